"""Reads what a watched training has left: its log, and the notes of hooks/."""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpu_check.programs import Command, Program
from swift_rlvr.runs.folder import LOG
from swift_rlvr.utils.jsonl import read_jsonl


def output_of(command: Command) -> Path:
    """The folder of a training's run."""
    return Path(command.env["OUTPUT"])


def logged(command: Command) -> list[dict[str, Any]]:
    """The lines of a training's steps."""
    path = output_of(command) / LOG
    if not path.is_file():
        return []
    # unfinished: the last line is being written.
    rows = [row for _, row in read_jsonl(path, unfinished=str)]
    return [row for row in rows if "reward" in row]


def step_of(row: Mapping[str, Any]) -> int:
    return int(str(row["global_step/max_steps"]).partition("/")[0])


def has_step(command: Command, step: int) -> bool:
    return any(step_of(row) >= step for row in logged(command))


def highest_k3(command: Command) -> float | None:
    """The largest difference between trainer and server in a step; None where none was logged."""
    values = [row.get("rollout_correction/k3_kl") for row in logged(command)]
    return max((value for value in values if value is not None), default=None)


def notes(command: Command, program: str, kind: str) -> dict[str, list[dict[str, Any]]]:
    """The notes of a kind, by the process that wrote them; program: trainer or engine."""
    folder = Path(command.env["GPU_CHECK_FOLDER"])
    found = {}
    for path in sorted(folder.glob(f"{program}-*.jsonl")):
        rows = [row for _, row in read_jsonl(path, unfinished=str) if row["kind"] == kind]
        if rows:
            found[path.stem] = rows
    return found


def stacked(sums: Mapping[str, int], packed: Mapping[str, list[str]]) -> dict[str, int]:
    """Checksums of a trainer's parameters under the names under which vLLM stacks them.

    >>> packed = {"qkv_proj": ["q_proj", "k_proj"]}
    >>> stacked({"layers.0.q_proj.weight": 2, "layers.0.k_proj.weight": 3, "norm.weight": 1}, packed)
    {'layers.0.qkv_proj.weight': 5, 'norm.weight': 1}
    """
    total: Counter[str] = Counter()
    for name, value in sums.items():
        for stack, parts in packed.items():
            name = re.sub(rf"\.({'|'.join(map(re.escape, parts))})\.", f".{stack}.", name)
        total[name] += value
    return {name: value % 2**64 for name, value in total.items()}


def cause(program: Program, command: Command) -> str:
    """Why a training has ended: the first line of its launcher that says so, and the error."""
    lines = [line.strip() for line in program.text().splitlines()]
    telling = [line for line in lines if re.match(r"[\w.]*Error: ", line)]
    return " | ".join(dict.fromkeys(line[:200] for line in telling[:2]))
