"""What the time of a step goes to: generation, old policy, reference, policy, update, sync; with and
without the speedups. And how long a training takes until its first step begins.
"""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from gpu_check import names
from gpu_check.notes import notes
from gpu_check.programs import Command, run
from gpu_check.steps import Check, Measured, Step

# The first step warms up, and the last has no next one that says when it ended.
STEPS_MADE = 4
PARTS = ("generation", "sync", "old policy", "reference", "policy", "update")


def timed_commands(variant: str):
    def commands(check: Check) -> list[Command]:
        words = (*names.NO_CHECKPOINT, "--max_steps", str(STEPS_MADE))
        return [check.main(f"time_{variant}", *words, env=names.VARIANTS[variant])]

    return commands


def measure_times(check: Check, commands: Sequence[Command]) -> Measured:
    (command,) = commands
    program = run(command, command.folder / "log", check.until)
    rows = [rows for rows in notes(command, "trainer", "step").values() if rows[0]["rank"] == 0]
    first, *steps = rows[0]
    figures: dict[str, Any] = {"total": round(fmean(row["total"] for row in steps), 3)}
    for part in PARTS:
        figures[part] = round(fmean(row.get(part, 0.0) for row in steps), 3)
    figures["other"] = round(figures["total"] - sum(figures[part] for part in PARTS), 3)
    figures["steps"] = len(steps)
    figures["start"] = round(first["time"] - first["total"] - program.launched, 1)
    parts = ", ".join(f"{part} {figures[part]:.2f}" for part in (*PARTS, "other"))
    text = f"{figures['total']:.2f} s a step (mean of {len(steps)}): {parts}; "
    text += f"the first took {first['total']:.2f} s and began {figures['start']:.0f} s after launch"
    return Measured(True, text, figures)


def step_of_variant(variant: str) -> Step:
    return Step(
        name=f"time_{variant}",
        claim=f"what a step's time goes to, {variant.replace('_', ' ')}",
        expected="a training that ends; its figures",
        minutes=8,
        commands=timed_commands(variant),
        run=measure_times,
    )


STEPS = tuple(map(step_of_variant, names.VARIANTS))
