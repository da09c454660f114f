"""The shell scripts: help, what they hand over to the launcher with and without GPUs, and errors
that name the cause.

GPUs are announced by stand-ins for nvidia-smi and the driver's library; only dry runs see them. Recipes are in
test_recipes.py, what the launcher makes of them in launch/, the real runs in e2e/.
"""

import os
import re
import shlex
import socket
import subprocess
import sys
import threading
from typing import Any

import pytest

from helpers import bare_environment, flags, run
from paths import ROOT
from present import present
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.network import free_port

WITHOUT_HELP = ("common.sh", "activate.sh", "install.sh")
SCRIPTS = sorted(path for path in (ROOT / "scripts").glob("*.sh") if path.name not in WITHOUT_HELP)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_help_is_the_header(script, tmp_path):
    shown = run(script.name, "--help", folder=tmp_path)
    assert shown.returncode == 0
    assert re.search(rf"^  s?ba(sh|tch) scripts/{script.name}", shown.stdout, re.MULTILINE)
    assert "Hardware:" in shown.stdout


def commands(shown: subprocess.CompletedProcess) -> list[str]:
    """The commands at the end of a dry run."""
    assert shown.returncode == 0, shown.stderr
    return [line for line in shown.stdout.splitlines() if "swift_rlvr.training.ms_swift" in line]


def plan_of(shown: subprocess.CompletedProcess) -> str:
    """The plan in one line, whatever the width of the terminal."""
    return " ".join(shown.stdout.split())


def test_the_countdown_experiment_on_three_gpus(tmp_path):
    shown = run("train_countdown.sh", gpus=3, folder=tmp_path, DRY_RUN="1")
    server, trainer = commands(shown)
    order, patched = "CUDA_DEVICE_ORDER=PCI_BUS_ID", "python -m swift_rlvr.training.ms_swift"
    assert server.startswith(
        f"{order} CUDA_VISIBLE_DEVICES=2 {patched} rollout scripts/configs/rollout.yaml"
    )
    assert trainer.startswith(
        f"{order} CUDA_VISIBLE_DEVICES=0,1 NPROC_PER_NODE=2 {patched} rlhf scripts/configs/count"
    )
    said = plan_of(shown)
    assert "2 processes x 8 x 8 accumulated = 128 completions, 16 prompts x 8" in said
    assert len(shown.stdout.splitlines()) < 25


@pytest.mark.parametrize("gpus", [0, 1, 2, 8])
def test_the_quickstart_runs_the_tiny_model_through_the_topology_of_the_machine(gpus, tmp_path):
    shown = run(
        "quickstart.sh", gpus=gpus, folder=tmp_path, DRY_RUN="1", OUTPUT=str(tmp_path / "out")
    )
    found = commands(shown)
    assert len(found) == (1 if gpus == 1 else 2)
    for command in found:
        assert (
            "tiny_model/weights" in command
            or "countdown_tiny" in command
            or "countdown_cpu" in command
        )
    assert "= 128 completions, 16 prompts x 8" in plan_of(shown)
    assert str(tmp_path / "out" / "run") in shlex.split(found[-1])
    assert not (tmp_path / "out").exists()


def test_the_quickstart_trains_smollm2_on_right_answers_first(tmp_path):
    out = tmp_path / "out"
    shown = run(
        "quickstart.sh",
        "smollm2",
        "--max_steps",
        "3",
        folder=tmp_path,
        DRY_RUN="1",
        OUTPUT=str(out),
    )
    rows, *programs = [
        line
        for line in shown.stdout.splitlines()
        if "dataset make sft" in line or "ms_swift" in line
    ]
    assert "--against" in rows and "chain_sum" in rows
    supervised, server, trainer = programs
    assert "ms_swift sft" in supervised and flags(supervised)["max_steps"] == "50"
    checkpoint = str(out / "cold_start" / "checkpoint-50")
    assert flags(server)["model"] == flags(trainer)["model"] == checkpoint
    assert flags(trainer) | {"max_steps": "3", "output_dir": str(out / "run")} == flags(trainer)
    assert "= 32 completions, 4 prompts x 8" in plan_of(shown) and not out.exists()
    shown = run("quickstart.sh", "smollm2", gpus=1, folder=tmp_path, DRY_RUN="1")
    assert (
        shown.returncode == 2
        and "CUDA_VISIBLE_DEVICES= bash scripts/quickstart.sh smollm2" in shown.stderr
    )


# Stands in for `swift sft`, and is python for everything else.
SUPERVISED = """#!/bin/bash
[ "$2" = swift_rlvr.training.ms_swift ] || exec "{python}" "$@"
while [ $# -gt 0 ]; do
  if [ "$1" = --output_dir ]; then out=$2; fi
  shift
done
mkdir -p "$out/checkpoint-2"
echo "490 lines of a library"
for step in 1 2; do
  echo "{{\\"loss\\": 0.5, \\"global_step/max_steps\\": \\"$step/2\\"}}" >>"$out/logging.jsonl"
done
exit {status}
"""


@pytest.mark.parametrize("status", [0, 1])
def test_the_cold_start_shows_its_steps_and_keeps_the_rest_in_a_log(tmp_path, status):
    stand_in, out = tmp_path / "bin" / "python", tmp_path / "out"
    stand_in.parent.mkdir()
    stand_in.write_text(SUPERVISED.format(python=sys.executable, status=status))
    stand_in.chmod(0o755)
    shown = run(
        "cold_start.sh",
        folder=tmp_path,
        DATASET="reasoning_gym:chain_sum#20",
        MODEL=str(TINY_MODEL),
        OUTPUT=str(out),
        PATH=f"{stand_in.parent}:{sys.prefix}/bin:{os.environ['PATH']}",
    )
    assert shown.returncode == status, shown.stderr
    assert "step 1/2 loss 0.500\nstep 2/2 loss 0.500\n" in shown.stdout
    assert f"the full output is in {out}.log" in shown.stdout
    assert (tmp_path / "out.log").read_text() == "490 lines of a library\n"
    if status:
        assert f"The end of {out}.log:\n  490 lines of a library" in shown.stdout
    else:
        assert "490 lines of a library" not in shown.stdout
        assert f"MODEL={out}/checkpoint-2" in shown.stdout


def test_another_recipe_comes_first_and_flags_follow(tmp_path):
    mine = tmp_path / "mine.yaml"
    recipe = "rlhf_type: grpo\nmodel: mine\ndataset: gsm8k\nreward_funcs: external_accuracy\noutput_dir: out\n"
    mine.write_text(f"{recipe}per_device_train_batch_size: 8\n")
    (trainer,) = commands(
        run("train_countdown.sh", str(mine), "--seed", "7", folder=tmp_path, DRY_RUN="1")
    )
    assert f"rlhf {mine} --seed 7 " in trainer
    for script in ("train_countdown.sh", "rollout.sh"):
        shown = run(script, "gone.yaml", folder=tmp_path, DRY_RUN="1")
        assert shown.returncode == 2
        assert "gone.yaml" in shown.stderr


def test_the_command_of_the_other_trainer(tmp_path):
    """What it chooses without GPUs is in tests/launch/test_choose.py."""
    variables = {"DRY_RUN": "1", "OUTPUT": "out", "USE_HF": "1"}
    shown = run("train_trl.sh", "--seed", "7", gpus=2, folder=tmp_path, **variables)
    assert shown.returncode == 0, shown.stderr
    recipe = "scripts/configs/r1_zero_trl.yaml"
    command = f"swift-rlvr train {recipe} --output_dir out --use_hf 1 --seed 7"
    assert shown.stdout.splitlines()[-1] == f"CUDA_VISIBLE_DEVICES=0 {command}"


def test_the_server_alone(tmp_path):
    shown = run(
        "rollout.sh",
        "--vllm_max_num_seqs",
        "8",
        gpus=3,
        folder=tmp_path,
        DRY_RUN="1",
        MODEL="mine",
        PORT="8123",
    )
    (command,) = commands(shown)
    assert shlex.split(command)[:2] == ["CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=2"]
    assert flags(command) | {"model": "mine", "port": "8123", "vllm_max_num_seqs": "8"} == flags(
        command
    )
    (command,) = commands(
        run("rollout.sh", gpus=3, folder=tmp_path, DRY_RUN="1", ROLLOUT_GPUS="0,1")
    )
    assert (
        "CUDA_VISIBLE_DEVICES=0,1" in shlex.split(command)
        and flags(command)["vllm_data_parallel_size"] == "2"
    )


def test_quickstart_keeps_earlier_results(tmp_path):
    (tmp_path / "out" / "run").mkdir(parents=True)
    shown = run("quickstart.sh", folder=tmp_path, OUTPUT=str(tmp_path / "out"))
    assert shown.returncode == 2
    assert "out/run exists" in shown.stderr


@pytest.mark.parametrize(
    ("script", "variable"),
    [("rollout.sh", "PORT"), ("quickstart.sh", "PORT"), ("train_countdown.sh", "SYNC_PORT")],
)
def test_a_port_in_use_is_named(script, variable, tmp_path):
    free = str(free_port())
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        variables: dict[str, Any] = {"OUTPUT": str(tmp_path / "out"), "PORT": free, variable: port}
        shown = run(script, folder=tmp_path, **variables)
    assert shown.returncode in (1, 2)
    assert port in shown.stdout + shown.stderr and f"{variable}" in shown.stdout + shown.stderr
    assert not (tmp_path / "out").exists()


def test_a_port_that_a_server_has_just_left_is_waited_for(tmp_path):
    """swift rollout would silently take the next port, and the trainer wait for a server that never
    comes.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        with socket.create_connection(server.getsockname()) as client:
            server.accept()[0].close()  # who closes first keeps its port for a minute
            assert client.recv(1) == b""
    command = ["bash", str(ROOT / "scripts" / "rollout.sh")]
    environment = bare_environment() | {"PORT": port, "CUDA_VISIBLE_DEVICES": ""}
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    ) as script:
        timer = threading.Timer(50, script.terminate)
        timer.start()
        line = present(script.stderr).readline()
        script.terminate()
        timer.cancel()
    assert line == f"waiting until the port {port} of an earlier server is free\n"
