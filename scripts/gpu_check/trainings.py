"""The recipe as it is: memory and checkpoints beside their estimates, and a run that goes on."""

import os
from collections.abc import Sequence
from typing import Any

from gpu_check import names
from gpu_check.notes import highest_k3, logged, notes, output_of, step_of
from gpu_check.programs import GIB, Command, Memory, OutOfTime, Program, run
from gpu_check.steps import Check, Measured, Step
from swift_rlvr.launch import estimate
from swift_rlvr.launch.choose import read_words
from swift_rlvr.launch.model_size import model_size
from swift_rlvr.launch.plan import Plan, make_plan
from swift_rlvr.launch.stale_weights import K3_LIMIT
from swift_rlvr.runs.folder import whole_checkpoints

# What a measurement may be above its estimate, and in bytes, for what the formulas leave out.
TOLERANCE = 1.1
BESIDE_WEIGHTS = 32 * 2**20  # tokenizer, trainer's state
SAVED_AT, FIRST_END, SECOND_END = 3, 6, 8


def plan_of(check: Check, command: Command) -> Plan:
    """The plan of a training's command."""
    environ = {**os.environ, **command.env}
    words = list(command.argv[command.argv.index("train") + 1 :])
    recipe, flags = read_words(words, check.machine, environ)
    assert recipe is not None  # every training here has one
    return make_plan(recipe, flags, check.machine, environ)


# Memory.


def run_measured(check: Check, command: Command, log: str) -> dict[str, Any]:
    """Run a training to its end; the peaks of memory, beside the estimate. OutOfTime has the peaks
    until then: a lent GPU is not asked twice.
    """
    plan = plan_of(check, command)
    with Memory(check.gpus) as memory:
        program = Program(command, command.folder / log, check.until)
        try:
            program.finish()
        except OutOfTime as error:
            peaks = [f"GPU {gpu} {peak / GIB:.1f} GiB" for gpu, peak in memory.peak.items()]
            raise OutOfTime(f"peaks until then: {', '.join(peaks)}; {error}") from error
        finally:
            program.stop()
    program.check_status()
    ranks = [rows[-1]["memory"] for rows in notes(command, "trainer", "step").values()]
    return {
        "estimate": estimate.memory(plan).count,
        "peak_by_gpu": {gpu: memory.peak[gpu] - memory.before[gpu] for gpu in check.gpus},
        "train_gpus": list(plan.train_gpus),
        "ranks": ranks,
    }


def memory_text(check: Check, figures: dict[str, Any]) -> str:
    expected = figures["estimate"]
    estimated = f"estimate {expected / GIB:.1f} GiB" if expected else "no estimate"
    if not check.gpus:
        return f"memory is not measured without a GPU, {estimated}"
    peaks = []
    for gpu, peak in figures["peak_by_gpu"].items():
        role = "trains" if gpu in figures["train_gpus"] else "samples"
        peaks.append(f"GPU {gpu} ({role}) {peak / GIB:.1f} GiB")
    by_torch = max(figures["ranks"], default=0) / GIB
    return f"peaks {', '.join(peaks)}, torch's own {by_torch:.1f}; {estimated} for training"


def memory_fits(check: Check, figures: dict[str, Any]) -> bool:
    """The tiny model's memory is all context, of which no formula speaks: only a real model's is
    judged.
    """
    if not check.gpus or check.model is None or not figures["estimate"]:
        return True
    peaks = [figures["peak_by_gpu"][gpu] for gpu in figures["train_gpus"]]
    return max(peaks) <= TOLERANCE * figures["estimate"]


# A run that goes on.


def resume_commands(check: Check) -> list[Command]:
    """Six steps, saved at the third; then to the eighth."""
    words = ("--save_steps", str(SAVED_AT), "--save_total_limit", "2")
    first = check.main("resume", *words, "--max_steps", str(FIRST_END))
    second = check.main("resume", *words, "--max_steps", str(SECOND_END), env={"RESUME": "1"})
    return [first, second]


def measure_resume(check: Check, commands: Sequence[Command]) -> Measured:
    first, second = commands
    figures = run_measured(check, first, "first.log")
    program = run(second, second.folder / "second.log", check.until)
    figures |= read_resumed(check, second)
    if f"resuming from {output_of(second)}/checkpoint-{FIRST_END}" not in program.one_line():
        figures["problems"].append(f"it did not go on from step {FIRST_END}")
    if not memory_fits(check, figures):
        figures["problems"].append(f"the peak is more than {TOLERANCE:g} times the estimate")
    size, estimated = figures["checkpoint"] / 1e9, figures["checkpoint_estimate"] / 1e9
    text = f"{memory_text(check, figures)}; k3_kl {figures['k3_kl']:.2g} at most; "
    text += f"checkpoint {size:.3f} GB, estimate {estimated:.3f}; "
    text += "; ".join(figures["problems"]) or f"steps 1 to {SECOND_END} once each"
    return Measured(not figures["problems"], text, figures)


def read_resumed(check: Check, command: Command) -> dict[str, Any]:
    """What a run that was resumed has left, and what of it is not as it should be."""
    output = output_of(command)
    problems = []
    steps = [step_of(row) for row in logged(command)]
    if steps != list(range(1, SECOND_END + 1)):
        problems.append(f"steps in the log: {steps}")
    k3 = highest_k3(command)
    if k3 is None or k3 > K3_LIMIT:
        problems.append(f"k3_kl {k3}")

    whole = whole_checkpoints(output)
    size, estimated = 0, 0
    if whole:
        size = sum(file.stat().st_size for file in whole[-1].rglob("*") if file.is_file())
    else:
        problems.append("no whole checkpoint")
    settings = plan_of(check, command).grpo
    model = model_size(settings.model)
    if model is not None:
        estimated = estimate.checkpoint_size(model, settings)
    if estimated and size > TOLERANCE * estimated + BESIDE_WEIGHTS:
        problems.append("the checkpoint is larger than its estimate")
    return {
        "steps": steps,
        "k3_kl": k3 or 0.0,
        "checkpoints": [path.name for path in whole],
        "checkpoint": size,
        "checkpoint_estimate": estimated,
        "problems": problems,
    }


# Completions of full length.


def full_length_commands(check: Check) -> list[Command]:
    # The first step warms up, and the last has no next one that says when it ended.
    words: tuple[str, ...] = (*names.NO_CHECKPOINT, "--max_steps", "3")
    if not check.gpus:
        words = (*words, *names.LONG_ON_CPU)
    return [check.main("full_length", *words, env={"GPU_CHECK_FULL_LENGTH": "1"})]


def measure_full_length(check: Check, commands: Sequence[Command]) -> Measured:
    (command,) = commands
    figures = run_measured(check, command, "log")
    longest = plan_of(check, command).grpo.longest_completion
    lengths = [row["completions/mean_length"] for row in logged(command)]
    figures |= {"mean_lengths": lengths, "longest": longest}
    is_full = bool(lengths) and min(lengths) >= longest - 1
    text = f"mean length {min(lengths, default=0):g} of {longest}; {memory_text(check, figures)}"
    return Measured(is_full and memory_fits(check, figures), text, figures)


RESUME = Step(
    name="resume",
    claim="a recipe's memory and checkpoint are as the plan says, and RESUME=1 goes on",
    expected=f"steps 1 to {SECOND_END} once each, peak and checkpoint within a tenth of their "
    f"estimates (the peak with --model), k3_kl below {K3_LIMIT}",
    minutes=15,
    commands=resume_commands,
    run=measure_resume,
)
FULL_LENGTH = Step(
    name="full_length",
    claim="the estimate holds where every completion has its full length",
    expected="all completions at max_completion_length, the peak within a tenth (with --model)",
    minutes=10,
    commands=full_length_commands,
    run=measure_full_length,
)
