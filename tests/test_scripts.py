"""The shell scripts: help, the commands they would run with and without GPUs, and errors that name what is wrong.

GPUs are announced by a stand-in for nvidia-smi; only dry runs see it. The real runs are in tests/e2e.
"""

import os
import socket
import subprocess
import sys
import threading
from dataclasses import fields
from pathlib import Path

import pytest
from helpers import flags, run
from swift_rlvr.tasks.countdown import SYSTEM_PROMPT
from swift_rlvr.tiny_model import WEIGHTS

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted(path for path in (ROOT / "scripts").glob("*.sh") if path.name != "common.sh")

# The tutorial's run, value by value.
TUTORIAL = {
    "rlhf_type": "grpo",
    "model": "Qwen/Qwen2.5-3B-Instruct",
    "reward_funcs": "external_countdown format",
    "use_vllm": "true",
    "vllm_mode": "server",
    "vllm_server_host": "127.0.0.1",
    "vllm_server_port": "8000",
    "vllm_server_group_port": "51216",  # ms-swift's default
    "tuner_type": "full",
    "torch_dtype": "bfloat16",
    "dataset": "zouxuhong/Countdown-Tasks-3to4#50000",
    "max_length": "2048",
    "max_completion_length": "1024",
    "num_train_epochs": "1",
    "per_device_train_batch_size": "8",
    "per_device_eval_batch_size": "8",
    "learning_rate": "5e-7",
    "gradient_accumulation_steps": "8",
    "eval_steps": "500",
    "save_steps": "100",
    "save_total_limit": "20",
    "logging_steps": "1",
    "callbacks": "reward_reasons",  # not in the recipe: why completions got their rewards
    "output_dir": "output/GRPO_COUNTDOWN",
    "warmup_ratio": "0.01",
    "dataloader_num_workers": "4",
    "num_generations": "8",
    "temperature": "1.0",
    "system": SYSTEM_PROMPT,
    "deepspeed": "zero3",
    "log_completions": "true",
    "report_to": "tensorboard",
    "beta": "0.001",
    "num_iterations": "1",
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_help_is_the_header(script):
    shown = run(script.name, "--help")
    assert shown.returncode == 0
    assert f"bash scripts/{script.name}" in shown.stdout
    assert "Hardware:" in shown.stdout


def test_defaults_on_three_gpus_are_the_tutorials(tmp_path):
    shown = run("train_countdown.sh", gpus=3, folder=tmp_path, DRY_RUN="1")
    assert shown.returncode == 0, shown.stderr
    server, trainer = shown.stdout.splitlines()
    assert server.startswith("CUDA_VISIBLE_DEVICES=2 swift rollout")
    assert flags(server) == {"model": "Qwen/Qwen2.5-3B-Instruct", "host": "127.0.0.1", "port": "8000"}
    assert trainer.startswith("CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 swift rlhf")
    actual = flags(trainer)
    assert {name: actual.get(name) for name in TUTORIAL} == TUTORIAL
    assert Path(actual["external_plugins"]) == ROOT / "plugin" / "rlvr_plugin.py"
    assert actual.keys() - TUTORIAL.keys() == {"external_plugins", "max_steps"}


@pytest.mark.parametrize("gpus", [0, 3])
def test_ms_swift_knows_every_flag(gpus, tmp_path):
    from swift.arguments import RLHFArguments, RolloutArguments

    shown = run("train_countdown.sh", gpus=gpus, folder=tmp_path, DRY_RUN="1")
    for command, arguments in zip(shown.stdout.splitlines(), (RolloutArguments, RLHFArguments), strict=True):
        assert flags(command).keys() <= {field.name for field in fields(arguments)}


def test_settings_and_further_flags_reach_swift(tmp_path):
    settings = {"DRY_RUN": "1", "LEARNING_RATE": "1e-6", "BETA": "0.04", "PORT": "8123", "WANDB_API_KEY": "key"}
    shown = run("train_countdown.sh", "--seed", "7", gpus=4, folder=tmp_path, **settings)
    server, trainer = map(flags, shown.stdout.splitlines())
    expected = {"learning_rate": "1e-6", "beta": "0.04", "vllm_server_port": "8123", "report_to": "wandb", "seed": "7"}
    assert {name: trainer[name] for name in expected} == expected
    assert server["port"] == "8123"


def test_a_dataset_file_that_is_not_there_is_named_before_anything_starts(tmp_path):
    (tmp_path / "there.jsonl").touch()
    settings = {"DRY_RUN": "1", "DATASET": "countdown:there.jsonl#5"}
    assert run("train_countdown.sh", folder=tmp_path, **settings).returncode == 0
    shown = run("train_countdown.sh", folder=tmp_path, **settings | {"DATASET": "countdown:gone.jsonl#5"})
    assert shown.returncode == 2
    assert "DATASET names gone.jsonl: no such file" in shown.stderr


def test_further_flags_of_evaluate_win_over_the_scripts_own(tmp_path):
    arguments = (str(WEIGHTS), "out", "--rows", "3", "--max-new-tokens", "8")
    shown = run("evaluate.sh", *arguments, folder=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert len((tmp_path / "out" / "records.jsonl").read_text().splitlines()) == 3


def test_one_gpu_is_too_few(tmp_path):
    shown = run("train_countdown.sh", gpus=1, folder=tmp_path, DRY_RUN="1")
    assert shown.returncode == 2
    assert "two or more are needed" in shown.stderr


def test_without_a_gpu_the_tiny_model_trains_on_two_processes(tmp_path):
    shown = run("train_countdown.sh", folder=tmp_path, DRY_RUN="1")
    server, trainer = shown.stdout.splitlines()
    assert trainer.startswith("NPROC_PER_NODE=2 swift rlhf")
    for name in ("model", "external_plugins", "deepspeed"):
        assert Path(flags(trainer)[name]).exists(), name
    assert Path(flags(trainer)["dataset"].removeprefix("countdown:")).is_file()
    assert flags(server)["model"] == flags(trainer)["model"]
    assert flags(trainer)["reward_funcs"] == TUTORIAL["reward_funcs"]


def test_quickstart_offers_the_real_run_where_there_are_gpus(tmp_path):
    shown = run("quickstart.sh", gpus=3, folder=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "bash scripts/train_countdown.sh" in shown.stdout
    assert list(tmp_path.iterdir()) == [tmp_path / "nvidia-smi"]


def test_quickstart_keeps_earlier_results(tmp_path):
    (tmp_path / "out" / "run").mkdir(parents=True)
    shown = run("quickstart.sh", folder=tmp_path, OUT="out")
    assert shown.returncode == 2
    assert "out/run exists" in shown.stderr


@pytest.mark.parametrize(
    ("script", "setting"), [("rollout.sh", "PORT"), ("quickstart.sh", "PORT"), ("train_countdown.sh", "SYNC_PORT")]
)
def test_a_port_in_use_is_named(script, setting, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        free = str(other.getsockname()[1])
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        shown = run(script, folder=tmp_path, **{"PORT": free, setting: port})
    assert shown.returncode == 2
    assert f"port {port} on 127.0.0.1 is in use" in shown.stderr


def test_a_port_that_a_server_has_just_left_is_waited_for(tmp_path):
    """swift rollout would take the next port without a word, and the trainer wait for a server that never comes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        with socket.create_connection(server.getsockname()) as client:
            server.accept()[0].close()  # who closes first keeps its port for a minute
            assert client.recv(1) == b""
    command = ["bash", ROOT / "scripts" / "rollout.sh"]
    environment = os.environ | {"PORT": port, "VENV": sys.prefix, "CUDA_VISIBLE_DEVICES": ""}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as script:
        timer = threading.Timer(20, script.terminate)
        timer.start()
        said = script.stdout.readline()
        script.terminate()
        timer.cancel()
    assert said == f"   waiting for port {port}, which a server has just left: 0 s\n"


def test_evaluate_says_which_arguments_it_needs(tmp_path):
    shown = run("evaluate.sh", folder=tmp_path)
    assert shown.returncode == 2
    assert "bash scripts/evaluate.sh MODEL OUT" in shown.stderr
