"""All steps, the cheapest and most telling first, so that an hour that is cut short proves most; and
the rows of docs/launch/gpu_check.md that they fill.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_check import environment, faults, sampling, times, trainings, weights
from gpu_check.steps import FAILED, PASSED, SKIPPED, Result, Step

AS_IT_IS, *OTHER_TIMES = times.STEPS
STEPS: tuple[Step, ...] = (
    *environment.STEPS,
    weights.WEIGHTS,
    sampling.VLLM,
    weights.LOST,
    sampling.QUICKSTART,
    trainings.RESUME,
    weights.COLOCATE,
    weights.LORA,
    faults.KILL,
    faults.TERMINATE,
    trainings.FULL_LENGTH,
    AS_IT_IS,
    weights.ADAPTER,
    weights.LOST_LORA,
    weights.LOST_ADAPTER,
    *OTHER_TIMES,
    faults.NODES,
)


@dataclass(frozen=True)
class Row:
    """A row of the table "What was run on which hardware". steps: those that fill it."""

    name: str
    steps: tuple[str, ...]


TIMES = tuple(step.name for step in times.STEPS)
LOST = ("lost_update", "lost_lora", "lost_adapter")
ROWS = (
    Row("the lock of the machine, torch, the patches", ("install", "torch", "patches")),
    Row("vLLM without nvcc and with it, Model Runner V1 and V2", ("vllm",)),
    Row("`quickstart.sh`", ("quickstart",)),
    Row("weights: all parameters, LoRA", ("weights", "weights_lora", "weights_adapter")),
    Row("weights: colocate, with sleep and offload", ("weights_colocate",)),
    Row("an update that is lost ends the run", LOST),
    Row("memory, checkpoint and `RESUME=1` of the recipe", ("resume", "full_length")),
    Row("SIGKILL of a worker, SIGTERM of the launcher", ("kill_worker", "terminate")),
    Row("several nodes, as launches on one machine", ("nodes",)),
    Row("what a step's time goes to", TIMES),
)


def table_rows(results: Sequence[Result], on_gpus: bool, where: str) -> list[str]:
    """The table's rows for this machine, in Markdown: its column filled, the other one empty.

    where: the machine and the day.
    """
    lines = ["| | without a GPU | with GPUs |", "|---|---|---|"]
    by_name = {result.name: result for result in results}
    for row in ROWS:
        found = [by_name[name] for name in row.steps if name in by_name]
        text = _cell(found)
        cells = ("", text) if on_gpus else (text, "not run")
        lines.append(f"| {row.name} | {cells[0]} | {cells[1]} |")
    lines.append(f"\n{where}")
    return lines


def _cell(results: Sequence[Result]) -> str:
    """What the steps of a row say together: `passed: a, b; failed: c`."""
    parts = []
    for verdict in (PASSED, FAILED):
        names = [result.name for result in results if result.verdict == verdict]
        if names:
            parts.append(f"{verdict}: {', '.join(names)}")
    others = [result for result in results if result.verdict not in (PASSED, FAILED)]
    for result in others:
        reason = result.measured if result.verdict == SKIPPED else result.verdict
        parts.append(f"{result.name} {reason}")
    return "; ".join(parts) or "not run"
