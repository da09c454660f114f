"""What the time of a step goes to: generation, old policy, reference, policy, update, sync; for the
recipe as it is and with one thing changed.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from gpu_check import names
from gpu_check.notes import notes
from gpu_check.programs import Command, run
from gpu_check.steps import NEEDS_GPU, Check, Measured, Step, needs_gpu, needs_server

# The first step warms up, and the last has no next one that says when it ended.
STEPS_MADE = 4
PARTS = ("generation", "sync", "old policy", "reference", "policy", "update")


def timed_commands(variant: str):
    mode, flags, env = names.VARIANTS[variant]

    def commands(check: Check) -> list[Command]:
        words = (*names.NO_CHECKPOINT, "--max_steps", str(STEPS_MADE), *flags)
        return [check.main(f"time_{variant}", *words, env=env, mode=mode)]

    return commands


def measure_times(check: Check, commands: Sequence[Command]) -> Measured:
    (command,) = commands
    run(command, command.folder / "log", check.until)
    rows = [rows for rows in notes(command, "trainer", "step").values() if rows[0]["rank"] == 0]
    steps = [row for row in rows[0] if row["step"] > 0]
    figures: dict[str, Any] = {"total": round(fmean(row["total"] for row in steps), 3)}
    for part in PARTS:
        figures[part] = round(fmean(row.get(part, 0.0) for row in steps), 3)
    figures["other"] = round(figures["total"] - sum(figures[part] for part in PARTS), 3)
    figures["steps"] = len(steps)
    parts = ", ".join(f"{part} {figures[part]:.2f}" for part in (*PARTS, "other"))
    text = f"{figures['total']:.2f} s a step (mean of {len(steps)}): {parts}"
    return Measured(True, text, figures)


def why_not_timed(variant: str):
    mode, _, _ = names.VARIANTS[variant]

    def why_not(check: Check) -> str:
        if variant == "zero2" and not check.gpus:
            return f"{NEEDS_GPU}: the recipe for a CPU has DeepSpeed settings of its own"
        if mode == names.IN_COLOCATE_MODE:
            return needs_gpu(check)
        if mode == names.IN_SERVER_MODE:
            return needs_server(check)
        return ""

    return why_not


def step_of_variant(variant: str) -> Step:
    return Step(
        name=f"time_{variant}",
        claim=f"what a step's time goes to, {variant.replace('_', ' ')}",
        expected="a training that ends; its figures",
        minutes=8,
        commands=timed_commands(variant),
        run=measure_times,
        why_not=why_not_timed(variant),
    )


STEPS = tuple(map(step_of_variant, names.VARIANTS))
