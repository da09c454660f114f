"""The shell scripts and their recipes: help, the commands with and without GPUs, and errors that name the cause.

GPUs are announced by a stand-in for nvidia-smi; only dry runs see it. The real runs are in tests/e2e.
"""

import os
import shlex
import socket
import subprocess
import threading
from unittest import mock

import pytest
import yaml
from helpers import flags, installed, run
from paths import ROOT
from swift_rlvr.tasks.countdown import SYSTEM_PROMPT
from swift_rlvr.tiny_model import WEIGHTS

SCRIPTS = sorted(path for path in (ROOT / "scripts").glob("*.sh") if path.name != "common.sh")
CONFIGS = ROOT / "scripts" / "configs"
RECIPES = sorted(path.name for path in CONFIGS.glob("*.yaml"))


def recipe(name: str) -> dict:
    return yaml.safe_load((CONFIGS / name).read_text())


def recipes_of(trainer: str | None) -> list[str]:
    return [name for name in RECIPES if recipe(name).get("trainer") == trainer]


# The Countdown experiment, value by value.
EXPERIMENT = {
    "rlhf_type": "grpo",
    "model": "Qwen/Qwen2.5-3B-Instruct",
    "reward_funcs": ["external_countdown", "format"],
    "use_vllm": True,
    "vllm_mode": "server",
    "vllm_server_host": "127.0.0.1",
    "vllm_server_port": 8000,
    "tuner_type": "full",
    "torch_dtype": "bfloat16",
    "dataset": "zouxuhong/Countdown-Tasks-3to4#50000",
    "max_length": 2048,
    "max_completion_length": 1024,
    "num_train_epochs": 1,
    "per_device_train_batch_size": 8,
    "per_device_eval_batch_size": 8,
    "learning_rate": 5e-7,
    "gradient_accumulation_steps": 8,
    "eval_steps": 500,
    "save_steps": 100,
    "save_total_limit": 20,
    "logging_steps": 1,
    "output_dir": "output/GRPO_COUNTDOWN",
    "warmup_ratio": 0.01,
    "dataloader_num_workers": 4,
    "num_generations": 8,
    "temperature": 1.0,
    "system": SYSTEM_PROMPT,
    "deepspeed": "zero3",
    "log_completions": True,
    "beta": 0.001,
    "num_iterations": 1,
}
# What our recipe says beside it: ms-swift's defaults, our rewards, their reasons in the log, TensorBoard for wandb.
BESIDE = {
    "vllm_server_group_port": 51216,
    "max_steps": -1,
    "external_plugins": "plugin/rlvr_plugin.py",
    "callbacks": "reward_reasons",
    "report_to": "tensorboard",
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_help_is_the_header(script, tmp_path):
    shown = run(script.name, "--help", folder=tmp_path)
    assert shown.returncode == 0
    assert f"bash scripts/{script.name}" in shown.stdout
    assert "Hardware:" in shown.stdout


def test_the_countdown_recipe_is_the_experiment():
    assert recipe("countdown_3gpu.yaml") == EXPERIMENT | BESIDE


def test_the_unstable_variant_differs_in_two_values():
    changed = {"learning_rate": 1e-6, "beta": 0.04, "output_dir": "output/GRPO_COUNTDOWN_UNSTABLE"}
    assert recipe("countdown_unstable_3gpu.yaml") == EXPERIMENT | BESIDE | changed


def test_the_countdown_experiment_in_small_has_the_same_prompt_and_rewards_and_a_model_and_tasks_that_are_here():
    small, server = recipe("countdown_cpu.yaml"), recipe("rollout_cpu.yaml")
    for name in ("system", "reward_funcs", "use_vllm", "vllm_mode", "num_generations", "temperature", "beta"):
        assert small[name] == EXPERIMENT[name]
    assert ROOT / small["model"] == ROOT / server["model"] == WEIGHTS
    assert server["model_type"] == small["model_type"] and server["vllm_max_model_len"] == small["max_length"]


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_says_how_it_is_run_and_names_files_that_are_here(name):
    text = (CONFIGS / name).read_text()
    header = text.partition("\n\n")[0]
    assert all(line.startswith("#") for line in header.splitlines())
    assert "Hardware:" in header
    assert f"scripts/configs/{name}" in header
    for script in {word for word in header.split() if word.endswith(".sh")}:
        assert (ROOT / script).is_file()
    values = recipe(name)
    named = [values.get(key, "") for key in ("model", "dataset", "val_dataset", "external_plugins", "deepspeed")]
    for path in (value.rpartition(":")[2].partition("#")[0] for value in named):
        if path.startswith(("plugin/", "datasets/", "scripts/")):
            assert (ROOT / path).exists(), path


@pytest.mark.slow
@pytest.mark.parametrize("name", recipes_of(None))
def test_ms_swift_reads_a_recipe_as_it_is_meant_and_flags_override_it(name, monkeypatch):
    """With ms-swift's own two steps: YAML to flags, flags to fields; an unknown key is an error of the second."""
    from swift.arguments import RLHFArguments, RolloutArguments
    from swift.cli.main import parse_yaml_args
    from swift.utils.utils import HfArgumentParser, _patch_get_type_hints

    monkeypatch.chdir(ROOT)
    argv = [f"scripts/configs/{name}", "--seed", "7", "--model", "another"]
    expected = recipe(name) | {"seed": 7, "model": "another"}
    with mock.patch.dict(os.environ):
        parse_yaml_args(argv)
        for variable, value in expected.pop("ENV", {}).items():
            assert os.environ[variable] == value
    with _patch_get_type_hints():
        parser = HfArgumentParser([RolloutArguments if name.startswith("rollout") else RLHFArguments])
    values = vars(parser.parse_args(argv))
    for key, value in expected.items():
        actual = values[key]
        assert actual == value or actual == [value] or actual == str(value), (key, actual, value)


@pytest.mark.parametrize("name", recipes_of("scratch"))
def test_our_trainer_reads_a_recipe_as_it_is_meant(name):
    from swift_rlvr.grpo import GRPOSettings
    from swift_rlvr.training.arguments import read_command
    from swift_rlvr.training.scratch import ScratchArguments

    with mock.patch.dict(os.environ):
        command = read_command([str(CONFIGS / name), "--seed", "7"])
    assert command.trainer == "scratch"
    check(name, *command.parse((ScratchArguments, GRPOSettings)))


@pytest.mark.slow
@pytest.mark.parametrize("name", recipes_of("trl"))
def test_trl_reads_a_recipe_as_it_is_meant(name):
    from swift_rlvr.training.arguments import read_command
    from swift_rlvr.training.trl import read

    with mock.patch.dict(os.environ):
        command = read_command([str(CONFIGS / name), "--seed", "7"])
    assert command.trainer == "trl"
    check(name, *read(command))


def check(name: str, *parts) -> None:
    """The settings of a recipe, read with `--seed 7`, are those in its file."""
    expected = recipe(name) | {"seed": 7}
    del expected["trainer"]
    expected.pop("ENV", None)
    for key, value in expected.items():
        (actual,) = (getattr(part, key) for part in parts if hasattr(part, key))
        assert actual == value or actual == [value] or list(actual) == value, key


def test_the_commands_on_three_gpus(tmp_path):
    shown = run("train_countdown.sh", gpus=3, folder=tmp_path, DRY_RUN="1")
    assert shown.returncode == 0, shown.stderr
    server, trainer = shown.stdout.splitlines()
    assert server.split() == [
        *("CUDA_VISIBLE_DEVICES=2", "swift", "rollout", "scripts/configs/rollout.yaml"),
        *("--model", "Qwen/Qwen2.5-3B-Instruct", "--host", "127.0.0.1", "--port", "8000"),
    ]
    assert trainer.split() == [
        *("CUDA_VISIBLE_DEVICES=0,1", "NPROC_PER_NODE=2", "swift", "rlhf", "scripts/configs/countdown_3gpu.yaml")
    ]


def test_the_commands_without_a_gpu(tmp_path):
    shown = run("train_countdown.sh", folder=tmp_path, DRY_RUN="1")
    assert shown.returncode == 0, shown.stderr
    server, trainer = shown.stdout.splitlines()
    backend = "python -m swift_rlvr.cpu_backend"
    assert server.startswith(f"{backend} rollout scripts/configs/rollout_cpu.yaml ")
    assert trainer.split() == f"NPROC_PER_NODE=2 {backend} rlhf scripts/configs/countdown_cpu.yaml".split()


def test_machine_variables_and_further_flags_reach_swift_after_the_recipe(tmp_path):
    variables = {"MODEL": "a model", "OUTPUT": "out", "PORT": "8123", "SYNC_PORT": "8124", "WANDB_API_KEY": "key"}
    flags = ("--beta", "0.04", "--output_dir=elsewhere")
    shown = run("train_countdown.sh", *flags, gpus=4, folder=tmp_path, DRY_RUN="1", **variables)
    server, trainer = map(shlex.split, shown.stdout.splitlines())
    assert server[-6:] == ["--model", "a model", "--host", "127.0.0.1", "--port", "8123"]
    assert trainer[trainer.index("scripts/configs/countdown_3gpu.yaml") + 1 :] == [
        *("--model", "a model", "--output_dir", "out", "--vllm_server_port", "8123"),
        *("--vllm_server_group_port", "8124", "--report_to", "wandb", *flags),
    ]


def test_the_server_gets_the_models_and_the_ports_flags_too(tmp_path):
    flags = ("--model", "theirs", "--vllm_server_port=8123")
    shown = run("train_countdown.sh", *flags, folder=tmp_path, DRY_RUN="1", MODEL="ours")
    server, _ = map(shlex.split, shown.stdout.splitlines())
    assert server[-6:] == ["--model", "theirs", "--host", "127.0.0.1", "--port", "8123"]


@pytest.mark.parametrize(
    ("script", "gpus", "name"),
    [
        ("train_from_scratch.sh", 2, "gsm8k_scratch"),
        ("train_from_scratch.sh", 0, "countdown_scratch_cpu"),
        ("train_trl.sh", 2, "r1_zero_trl"),
        ("train_trl.sh", 0, "countdown_trl_cpu"),
    ],
)
def test_the_command_of_the_other_trainers(script, gpus, name, tmp_path):
    shown = run(script, "--seed", "7", gpus=gpus, folder=tmp_path, DRY_RUN="1", OUTPUT="out", USE_HF="1")
    assert shown.returncode == 0, shown.stderr
    device = "CUDA_VISIBLE_DEVICES=0 " if gpus else ""
    command = f"{device}swift-rlvr train scripts/configs/{name}.yaml --output_dir out --use_hf 1 --seed 7 "
    assert shown.stdout.splitlines()[-1] == command


def test_gsm8k_is_prepared_first_as_its_recipes_say(tmp_path):
    shown = run("train_from_scratch.sh", gpus=1, folder=tmp_path, DRY_RUN="1")
    prepare = flags(shown.stdout.splitlines()[0])
    assert prepare == {
        "model": "Qwen/Qwen2.5-0.5B-Instruct",
        "max-prompt-tokens": "300",
        "max-answer-tokens": "200",
        "rows": "1024",
        "out": "output/gsm8k_1024.jsonl",
    }
    for name in ("gsm8k.yaml", "gsm8k_scratch.yaml"):
        assert recipe(name)["dataset"] == "gsm8k:output/gsm8k_1024.jsonl"
        header = (CONFIGS / name).read_text().partition("\n\n")[0].replace("\\\n#", "")
        (line,) = (line for line in header.splitlines() if "dataset prepare" in line)
        assert flags(line) == prepare
    shown = run("train_from_scratch.sh", gpus=1, folder=tmp_path, DRY_RUN="1", DATASET="gsm8k")
    assert len(shown.stdout.splitlines()) == 1


@pytest.mark.parametrize("script", ["train_countdown.sh", "rollout.sh"])
def test_another_recipe_comes_first(script, tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_text('model: "mine"  # quoted, with a comment\nvllm_server_port: 8123\n')
    shown = run(script, str(mine), "--seed", "7", folder=tmp_path, DRY_RUN="1")
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[-1].endswith(f" {mine} --seed 7 ")
    if script == "train_countdown.sh":
        assert "--model mine " in shown.stdout.splitlines()[0]
    shown = run(script, "gone.yaml", folder=tmp_path, DRY_RUN="1")
    assert shown.returncode == 2
    assert "there is no recipe gone.yaml" in shown.stderr


def test_a_setting_in_the_environment_is_an_error(tmp_path):
    shown = run("train_countdown.sh", folder=tmp_path, DRY_RUN="1", LEARNING_RATE="1e-6")
    assert shown.returncode == 2
    assert "the variable LEARNING_RATE has no effect: settings are flags" in shown.stderr


def test_a_dataset_file_that_does_not_exist_is_named_before_anything_starts(tmp_path):
    (tmp_path / "there.jsonl").touch()
    dataset = f"countdown:{tmp_path}/there.jsonl#5"
    assert run("train_countdown.sh", folder=tmp_path, DRY_RUN="1", DATASET=dataset).returncode == 0
    shown = run("train_countdown.sh", "--dataset", "countdown:gone.jsonl#5", folder=tmp_path, DRY_RUN="1")
    assert shown.returncode == 2
    assert "the dataset gone.jsonl does not exist" in shown.stderr


def test_one_gpu_is_too_few(tmp_path):
    shown = run("train_countdown.sh", gpus=1, folder=tmp_path, DRY_RUN="1")
    assert shown.returncode == 2
    assert "two or more are needed" in shown.stderr


def test_quickstart_offers_the_countdown_experiment_where_there_are_gpus(tmp_path):
    shown = run("quickstart.sh", gpus=3, folder=tmp_path, OUTPUT=str(tmp_path / "out"))
    assert shown.returncode == 0, shown.stderr
    assert "bash scripts/train_countdown.sh" in shown.stdout
    assert list(tmp_path.iterdir()) == [tmp_path / "nvidia-smi"]


def test_quickstart_keeps_earlier_results(tmp_path):
    (tmp_path / "out" / "run").mkdir(parents=True)
    shown = run("quickstart.sh", folder=tmp_path, OUTPUT=str(tmp_path / "out"))
    assert shown.returncode == 2
    assert "out/run exists" in shown.stderr


@pytest.mark.parametrize(
    ("script", "variable"), [("rollout.sh", "PORT"), ("quickstart.sh", "PORT"), ("train_countdown.sh", "SYNC_PORT")]
)
def test_a_port_in_use_is_named(script, variable, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        free = str(other.getsockname()[1])
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        variables = {"OUTPUT": str(tmp_path / "out"), "PORT": free, variable: port}
        shown = run(script, folder=tmp_path, **variables)
    assert shown.returncode == 2
    assert f"port {port} on 127.0.0.1 is in use" in shown.stderr
    assert not (tmp_path / "out").exists()


def test_a_port_that_a_server_has_just_left_is_waited_for(tmp_path):
    """swift rollout would silently take the next port, and the trainer wait for a server that never comes."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        with socket.create_connection(server.getsockname()) as client:
            server.accept()[0].close()  # who closes first keeps its port for a minute
            assert client.recv(1) == b""
    command = ["bash", ROOT / "scripts" / "rollout.sh"]
    environment = os.environ | {"PORT": port, "VENV": installed().name, "CUDA_VISIBLE_DEVICES": ""}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as script:
        timer = threading.Timer(20, script.terminate)
        timer.start()
        line = script.stdout.readline()
        script.terminate()
        timer.cancel()
    assert line == f"   waiting for port {port}, which a server has just left: 0 s\n"
