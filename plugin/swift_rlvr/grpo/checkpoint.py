"""Checkpoints: folders `checkpoint-<step>` with a model that transformers loads, and the trainer's whole state.

A checkpoint gets its name when it is complete, and older ones are deleted after that, so that an interrupted write
loses nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from swift_rlvr.errors import InputError
from swift_rlvr.jsonl import write_json
from swift_rlvr.runs.folder import ARGS, checkpoints

STATE = "trainer_state.pt"


def save(
    folder: Path, step: int, model: Any, tokenizer: Any, state: Mapping[str, Any], info: Mapping, keep: int
) -> Path:
    """Write `folder/checkpoint-<step>` and delete all but the newest `keep`; returns its path."""
    path, part = folder / f"checkpoint-{step}", folder / f"checkpoint-{step}.part"
    for old in (part, path):
        shutil.rmtree(old, ignore_errors=True)
    model.save_pretrained(part)
    tokenizer.save_pretrained(part)
    write_json(part / ARGS, info)
    torch.save(dict(state), part / STATE)
    part.rename(path)
    for old in checkpoints(folder)[:-keep]:
        shutil.rmtree(old)
    return path


def load_state(path: str | Path) -> dict[str, Any]:
    """The trainer's state in a checkpoint; InputError where there is none."""
    try:
        return torch.load(Path(path) / STATE, map_location="cpu", weights_only=True)
    except OSError as error:
        raise InputError(f"{path}: expected a checkpoint of this trainer, with {STATE} in it") from error
