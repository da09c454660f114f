"""scripts/gpu_check.sh: what it would do on machines with and without GPUs, how it goes on after a
failure and within its time, and that its measurements can fail.
"""

import doctest
import importlib.util
import json
import re
import sys
import time

import pytest
from rich.console import Console

from gpu_check import (
    names,
    notes,
    order,
    programs,
    report,
    steps,
    trainings,
    weights,
)
from gpu_check.__main__ import main, run_steps
from gpu_check.programs import (
    GIB,
    Command,
    Memory,
    OutOfTime,
    Program,
    ProgramFailed,
    left_behind,
    run,
)
from gpu_check.steps import (
    DRY,
    FAILED,
    INTERRUPTED,
    NO_TIME,
    PASSED,
    SKIPPED,
    Check,
    Measured,
    Step,
)
from helpers import run as run_script
from paths import ROOT
from swift_rlvr.launch.machine import Gpu, Machine
from swift_rlvr.launch.plan import Plan
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.jsonl import read_json

HOUR = 3600
MACHINES = [0, 1, 3, 8]


def machine(gpus: int) -> Machine:
    """A machine with so many GPUs of 80 GB."""
    listed = []
    for index in range(gpus):
        listed.append(Gpu(str(index), "NVIDIA H100 80GB HBM3", 81559, 4, 9.0))
    return Machine(gpus=tuple(listed), driver="580.65.06", cores=16, memory=128 * 1024)


def check_of(folder, gpus: int = 0, model: str | None = None) -> Check:
    return Check(machine(gpus), folder, model)


def step(name: str, measure, minutes: float = 1, commands=lambda check: []) -> Step:
    return Step(name, f"{name} works", "it does", minutes, commands, measure)


def passes(check, commands) -> Measured:
    return Measured(True, "it did", {"seconds": 1})


def run_all(check, *all_steps, seconds=HOUR, dry=False) -> tuple[int, list[steps.Result]]:
    """The exit status, and the results as the report has them."""
    status = run_steps(check, all_steps, Console(quiet=True), seconds, dry)
    return status, report.read(check.folder)


# What it would do


@pytest.mark.parametrize("gpus", MACHINES)
def test_a_dry_run_says_what_every_step_would_do(gpus, tmp_path):
    status, results = run_all(check_of(tmp_path, gpus), *order.STEPS, dry=True)
    assert status == 0
    assert [result.name for result in results] == [step.name for step in order.STEPS]
    for result in results:
        assert result.claim and result.expected
        assert result.verdict in (DRY, SKIPPED)
        # Either the commands, or why there are none.
        assert bool(result.commands) == (result.verdict == DRY)
        assert bool(result.measured) == (result.verdict == SKIPPED)
    assert not list(tmp_path.glob("*/log")), "nothing was started"


@pytest.mark.parametrize(
    ("gpus", "skipped"),
    [
        (0, {"vllm", "weights_colocate"}),
        (1, set()),
        (8, set()),
    ],
)
def test_what_a_machine_cannot_show_is_skipped(gpus, skipped, tmp_path):
    check = check_of(tmp_path, gpus)
    assert {step.name for step in order.STEPS if step.why_not(check)} == skipped


def planned_trainings(check: Check) -> dict[str, Plan]:
    """The plan of the first training of each step that starts one."""
    plans = {}
    for step_ in order.STEPS:
        if step_.why_not(check):
            continue
        command = step_.commands(check)[0]
        if "train" in command.argv:
            plans[step_.name] = trainings.plan_of(check, command)
    return plans


@pytest.mark.parametrize("model", [None, str(TINY_MODEL)])
@pytest.mark.parametrize("gpus", MACHINES)
def test_every_training_can_be_planned(gpus, model, tmp_path):
    """With the recipes as they are: a flag or a recipe that is gone would be found only on a GPU."""
    plans = planned_trainings(check_of(tmp_path, gpus, model))
    assert len(plans) >= 10
    for name, plan in plans.items():
        assert plan.output.is_relative_to(tmp_path), name
        if gpus == 0:
            assert plan.server is not None, name
    if gpus >= 3:
        assert plans["weights"].server_gpus
        assert not plans["weights_colocate"].server_gpus


def test_a_real_model_gets_the_experiments_recipe(tmp_path):
    check = Check(machine(3), tmp_path, "/models/mine", "countdown:/data/mine.jsonl")
    command = check.main("resume")
    assert command.argv[command.argv.index("train") + 1] == names.EXPERIMENT
    text = str(command)
    assert "--model /models/mine --dataset countdown:/data/mine.jsonl" in text
    assert "--eval_strategy no" in text


@pytest.mark.parametrize("gpus", [0, 2])
def test_the_script_shows_a_dry_run(gpus, tmp_path):
    out = tmp_path / "report"
    shown = run_script(
        "gpu_check.sh", "--dry-run", "--output", str(out), gpus=gpus, folder=tmp_path
    )
    assert shown.returncode == 0, shown.stderr
    results = report.read(out)
    assert len(results) == len(order.STEPS)
    for step_ in order.STEPS:
        assert f"{step_.name}: " in shown.stdout
    # What the tiny model's training runs on is the machine's.
    assert ("CUDA_VISIBLE_DEVICES=-1" in shown.stdout) == (not gpus)


# How it goes on


def test_a_step_that_fails_stops_no_other_and_each_is_in_the_report_at_once(tmp_path):
    seen: list = []

    def fails(check, commands):
        raise ZeroDivisionError("no such GPU")

    def misses(check, commands):
        return Measured(False, "43 GiB")

    def reads_report(check, commands):
        seen.extend(result.name for result in report.read(check.folder))
        return passes(check, commands)

    all_steps = (step("a", fails), step("b", misses), step("c", reads_report))
    status, results = run_all(check_of(tmp_path), *all_steps)
    assert status == 1
    assert [result.verdict for result in results] == [FAILED, FAILED, PASSED]
    assert "ZeroDivisionError: no such GPU" in results[0].measured
    assert results[1].measured == "43 GiB"
    assert seen == ["a", "b"]
    text = (tmp_path / report.MARKDOWN).read_text()
    for name in "abc":
        assert f"## {name}: " in text


def test_no_step_is_longer_than_its_part_of_the_time_and_none_begins_at_the_end(tmp_path):
    command = Command(("sleep", "600"), {}, tmp_path)

    def sleeps(check, commands):
        run(command, tmp_path / "log", check.until)
        return passes(check, commands)

    began = time.monotonic()
    status, results = run_all(
        check_of(tmp_path), step("a", sleeps, minutes=0.01), step("b", passes)
    )
    assert time.monotonic() - began < 300
    assert status == 1
    assert [result.verdict for result in results] == [FAILED, PASSED]
    assert results[0].measured.startswith("out of time")

    status, results = run_all(check_of(tmp_path / "late"), step("a", passes), seconds=1)
    assert (status, results[0].verdict) == (0, NO_TIME)


def test_what_has_passed_in_a_folder_is_not_run_again(tmp_path):
    calls = []

    def counts(check, commands):
        calls.append(1)
        return Measured(len(calls) > 1, "")

    all_steps = (step("a", passes), step("b", counts))
    assert run_all(check_of(tmp_path), *all_steps)[0] == 1
    assert run_all(check_of(tmp_path), *all_steps)[0] == 0
    # With --only the others stay in the report.
    status, results = run_all(check_of(tmp_path), step("b", None))
    assert status == 0 and [result.name for result in results] == ["a", "b"]
    assert len(calls) == 2


def test_an_interrupted_run_has_its_report(tmp_path):
    def interrupted(check, commands):
        raise KeyboardInterrupt

    status, results = run_all(check_of(tmp_path), step("a", passes), step("b", interrupted))
    assert status == 130
    assert [result.verdict for result in results] == [PASSED, INTERRUPTED]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--only", "wights"], "only: there is no step 'wights'"),
        (["--minutes", "0"], "minutes: must be above 0"),
        (["--model", "/no/such/folder"], "model: /no/such/folder: expected a folder"),
        (["--dataset", "x.jsonl"], "dataset: is for --model"),
        (
            ["--model", str(TINY_MODEL), "--dataset", "countdown:/none.jsonl"],
            "dataset: countdown:/none.jsonl: no such file",
        ),
    ],
)
def test_options_that_cannot_be_used(words, problem, tmp_path, capsys):
    assert main([*words, "--output", str(tmp_path)]) == 2
    assert problem in capsys.readouterr().err


# docs/launch/gpu_check.md


def test_the_page_says_of_every_step_what_was_run():
    text = (ROOT / "docs" / "launch" / "gpu_check.md").read_text()
    for step_ in order.STEPS:
        assert re.search(rf"\b{step_.name}\b", text), step_.name


# Programs


def test_what_a_program_leaves_behind_is_named_and_ended(tmp_path):
    """A child in a session of its own that listens on a port, as a worker of vLLM may."""
    script = tmp_path / "leaves.py"
    script.write_text(
        "import subprocess, sys, time\n"
        "code = \"import socket, time; s = socket.create_server(('127.0.0.1', 0));\"\n"
        'code += "print(s.getsockname()[1], flush=True); time.sleep(600)"\n'
        "child = subprocess.Popen([sys.executable, '-c', code], start_new_session=True)\n"
        "time.sleep(600)\n"
    )
    command = Command((sys.executable, str(script)), {}, tmp_path)
    program = Program(command, tmp_path / "log", time.monotonic() + HOUR)
    try:
        program.wait_for(lambda: program.text().splitlines()[1:], "the port")
        port = int(program.text().splitlines()[1])
        program.process.kill()
        program.process.wait()
        left = left_behind(program, [port], Memory([]), seconds=0)
        assert f"port {port}" in left
        assert any(item.startswith("process ") for item in left)
    finally:
        program.stop()
    assert left_behind(program, [port], Memory([])) == []


def test_a_program_that_fails_is_told_with_its_last_lines(tmp_path):
    command = Command((sys.executable, "-c", "print('no room'); raise SystemExit(3)"))
    with pytest.raises(ProgramFailed, match="(?s)exit status 3.*no room"):
        run(command, tmp_path / "log", time.monotonic() + HOUR)
    with pytest.raises(OutOfTime):
        run(Command(("sleep", "600")), tmp_path / "log", time.monotonic())


def test_an_empty_variable_is_taken_away(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_HOME", "/usr/local/cuda")
    code = "import os; print('CUDA_HOME' in os.environ, os.environ['OTHER'])"
    command = Command((sys.executable, "-c", code), {"CUDA_HOME": "", "OTHER": "1"})
    program = run(command, tmp_path / "log", time.monotonic() + HOUR)
    assert program.text().splitlines()[-1] == "False 1"


def test_a_training_that_runs_out_of_time_leaves_its_peak_of_memory(tmp_path, monkeypatch):
    """A lent GPU was given back with nothing but "out of time"."""
    monkeypatch.setattr(programs, "used_by_gpu", lambda gpus: dict.fromkeys(gpus, 7 * GIB))
    check = check_of(tmp_path, gpus=1)
    (command,) = trainings.FULL_LENGTH.commands(check)
    check.until = time.monotonic()
    with pytest.raises(OutOfTime, match="peaks until then: GPU 0 7.0 GiB; waited for"):
        trainings.run_measured(check, command, "log")


# Weights


@pytest.fixture
def watch(monkeypatch):
    """hooks/gpu_check_watch.py, outside of a check."""
    pytest.importorskip("torch")
    monkeypatch.delenv("GPU_CHECK_FOLDER", raising=False)
    spec = importlib.util.spec_from_file_location("watch", names.HOOKS / "gpu_check_watch.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_checksums_add_up_over_rows_and_see_every_bit(watch, dtype, monkeypatch):
    import torch

    monkeypatch.setattr(watch, "CHUNK", 50)  # several parts
    values = torch.randn(40, 16, generator=torch.Generator().manual_seed(0))
    tensor = values.to(getattr(torch, dtype))
    parts = watch.checksum(tensor[:10]) + watch.checksum(tensor[10:])
    assert watch.checksum(tensor) == parts % 2**64
    padded = torch.cat([tensor, torch.zeros(24, 16, dtype=tensor.dtype)])
    assert watch.checksum(padded) == watch.checksum(tensor)

    changed = tensor.clone()
    changed[7, 3] = -changed[7, 3]
    assert watch.checksum(changed) != watch.checksum(tensor)
    assert watch.checksum(tensor.roll(1, dims=1)) != watch.checksum(tensor)


def written(folder, program: str, process: int, *sums: dict, **values) -> None:
    """Notes as a watched process writes them."""
    folder.mkdir(exist_ok=True)
    rows = [json.dumps({"kind": "weights", "sums": sum_, **values}) for sum_ in sums]
    (folder / f"{program}-{process}.jsonl").write_text("\n".join(rows) + "\n")


PACKED = {"qkv_proj": ["q_proj", "k_proj", "v_proj"]}
FIRST = {"a.q_proj.weight": 1, "a.k_proj.weight": 2, "a.v_proj.weight": 2**64 - 1, "n": 5}
SECOND = {"a.q_proj.weight": 4, "a.k_proj.weight": 2, "a.v_proj.weight": 6, "n": 7}
HELD = {"a.qkv_proj.weight": 2, "n": 5}, {"a.qkv_proj.weight": 12, "n": 7}


@pytest.mark.parametrize(
    ("sent", "held", "problem"),
    [
        ((FIRST, SECOND), HELD, None),
        # The worker has what it had before.
        ((FIRST, SECOND), (HELD[0], HELD[0]), "update 2: 2 differ, such as a.qkv_proj.weight"),
        ((FIRST, SECOND), HELD[:1], "had 1 updates of 2"),
        ((FIRST, SECOND), (HELD[0], {"n": 7}), "differ, such as a.qkv_proj.weight"),
        # Weights that do not move prove nothing.
        ((FIRST, FIRST), (HELD[0], HELD[0]), "0 of 4 tensors moved"),
    ],
)
def test_weights_are_compared_after_each_update(sent, held, problem, tmp_path):
    folder = tmp_path / "notes"
    written(folder, "trainer", 1, *sent)
    for worker in (2, 3):
        written(folder, "engine", worker, *held, packed=PACKED)
    command = Command((), {"GPU_CHECK_FOLDER": str(folder)}, tmp_path)
    measured = weights.compare_weights(command)
    assert measured.passed == (problem is None)
    assert (problem or "all checksums are equal") in measured.text
    assert "2 workers" in measured.text


def test_the_example_of_stacked_parameters():
    assert doctest.testmod(notes).attempted and doctest.testmod(notes).failed == 0


def test_no_worker_is_no_proof(tmp_path):
    folder = tmp_path / "notes"
    written(folder, "trainer", 1, FIRST, SECOND)
    command = Command((), {"GPU_CHECK_FOLDER": str(folder)}, tmp_path)
    assert not weights.compare_weights(command).passed


@pytest.mark.e2e
@pytest.mark.weekly  # what it runs is tested in e2e/, and how it reports above
def test_the_check_itself_on_a_cpu(tmp_path):
    """The steps that take a minute, with the real programs."""
    out = tmp_path / "report"
    words = ("--only", "torch", "patches", "weights", "--output", str(out))
    shown = run_script("gpu_check.sh", *words, folder=tmp_path)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    found = {row["name"]: row for row in read_json(out / report.JSON)["steps"]}
    assert found["weights"]["figures"]["updates"] == weights.STEPS_MADE
    assert found["weights"]["figures"]["moved"] == found["weights"]["figures"]["tensors"]
