"""What every trainer leaves in the folder of a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from swift_rlvr.errors import InputError
from swift_rlvr.jsonl import read_json

ARGS = "args.json"
LOG, COMPLETIONS = "logging.jsonl", "completions.jsonl"


def training_args(model: str) -> tuple[Path, dict[str, Any]] | None:
    """The args.json that every trainer here leaves beside a checkpoint or one folder above, and what it says."""
    for folder in (Path(model), Path(model).parent):
        if (file := folder / "args.json").is_file():
            return file, read_json(file)
    return None


def find_run(path: str | Path) -> Path:
    """The folder with `logging.jsonl`: `path` itself, or the newest `v<N>-<time>` folder in it.

    InputError where there is none.
    """
    path = Path(path)
    if (path / LOG).is_file():
        return path
    runs = sorted(path.glob(f"v*-*/{LOG}"), key=lambda log: log.stat().st_mtime)
    if not runs:
        raise InputError(f"{path}: expected a training run, a folder with {LOG} in it or in a folder v<N>-<time> below")
    return runs[-1].parent


def checkpoints(folder: str | Path) -> list[Path]:
    """The checkpoints in a folder, the oldest first."""
    found = [path for path in Path(folder).glob("checkpoint-*") if re.fullmatch(r"checkpoint-\d+", path.name)]
    return sorted(found, key=lambda path: int(path.name.rpartition("-")[2]))
