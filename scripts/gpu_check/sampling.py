"""vLLM with both of its model runners, and the quickstart from one end to the other."""

import sys
from collections.abc import Sequence
from pathlib import Path

from gpu_check import names
from gpu_check.programs import Command, run
from gpu_check.steps import Check, Measured, Step, needs_gpu
from swift_rlvr.runs.records import read_records
from swift_rlvr.utils.jsonl import read_json
from swift_rlvr.utils.network import free_port

# By how much the quickstart's training raises success at least.
LEARNED = 0.1


# vLLM.


def vllm_commands(check: Check) -> list[Command]:
    """The same greedy completions, each in a process of its own."""
    commands = []
    for name, runner in {"runner V1": "0", "runner V2": "1"}.items():
        folder = check.folder / "vllm" / name
        argv = (
            *(sys.executable, "-m", "swift_rlvr.cli", "evaluate", names.TINY_MODEL),
            *("--dataset", f"{names.TINY_TEST}#8", "--engine", "vllm"),
            *("--temperature", "0", "--max_completion_length", "24"),
            *("--out", str(folder / "out")),
        )
        commands.append(Command(argv, {names.RUNNER: runner}, folder))
    return commands


def measure_vllm(check: Check, commands: Sequence[Command]) -> Measured:
    """A command that fails stops no other."""
    texts: dict[str, list[str]] = {}
    failures = {}
    for command in commands:
        name = command.folder.name
        try:
            run(command, command.folder / "log", check.until)
        except Exception as error:
            failures[name] = str(error)
            continue
        records = read_records(command.folder / "out" / "records.jsonl")
        texts[name] = [record.completion for record in records]
    differ = [name for name, found in texts.items() if found != next(iter(texts.values()))]
    parts = [f"{name}: {len(found)} completions" for name, found in texts.items()]
    parts += [f"{name}: {problem}" for name, problem in failures.items()]
    if differ:
        parts.append(f"other texts: {', '.join(differ)}")
    figures = {"runs": list(texts), "failed": list(failures), "differ": differ}
    return Measured(not failures and not differ, "; ".join(parts), figures)


# The quickstart.


def quickstart_commands(check: Check) -> list[Command]:
    folder = check.folder / "quickstart"
    ports = {"PORT": str(free_port()), "SYNC_PORT": str(free_port())}
    env = {"OUTPUT": str(folder / "out"), **ports}
    if not check.gpus:
        env["CUDA_VISIBLE_DEVICES"] = "-1"
    return [Command(("bash", "scripts/quickstart.sh"), env, folder)]


def measure_quickstart(check: Check, commands: Sequence[Command]) -> Measured:
    (command,) = commands
    run(command, command.folder / "log", check.until)
    out = Path(command.env["OUTPUT"])
    success = []
    for name in ("before", "after"):
        summary = read_json(out / name / "summary.json")
        success.append(float(summary["success"]))
    before, after = success
    text = f"success {before:.3f} before, {after:.3f} after"
    return Measured(after - before >= LEARNED, text, {"before": before, "after": after})


VLLM = Step(
    name="vllm",
    claim="vLLM samples with Model Runner V1 and V2",
    expected="each writes the same greedy completions",
    minutes=8,
    commands=vllm_commands,
    run=measure_vllm,
    why_not=needs_gpu,
)
QUICKSTART = Step(
    name="quickstart",
    claim="bash scripts/quickstart.sh trains the tiny model, evaluated before and after",
    expected=f"success rises by {LEARNED} at least, from the records of 400 held-out tasks",
    minutes=20,
    commands=quickstart_commands,
    run=measure_quickstart,
)
