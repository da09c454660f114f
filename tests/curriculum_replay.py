"""Checks a training with a curriculum by its own log: each batch is what the rule draws from the
rewards before it.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from swift_rlvr.runs.curriculum import Curriculum, CurriculumSettings
from swift_rlvr.runs.records import read_records
from swift_rlvr.utils.jsonl import read_jsonl


def assert_drawn_by_level(
    folders: Iterable[Path], rows: Sequence[Mapping[str, Any]], generations: int, seed: int = 42
) -> Curriculum:
    """Of a run, in one folder or, with its continuation, in several. Returns the curriculum at the
    run's end.

    rows: the dataset, in its order. In records.jsonl the completions of all ranks are in order.
    """
    curriculum = Curriculum([row["level"] for row in rows], CurriculumSettings(), seed)
    steps = []
    for folder in folders:
        logged = {
            row["global_step/max_steps"].partition("/")[0]: row
            for _, row in read_jsonl(folder / "logging.jsonl")
            if "reward" in row
        }
        records = [each for each in read_records(folder / "records.jsonl") if each.mode == "train"]
        for step, batch in groupby(records, key=lambda each: each.step):
            own = list(batch)
            steps.append(step)
            asked = [(each.row["nums"], each.row["target"]) for each in own]
            numbers = [
                row
                for row in curriculum.draw(len(asked) // generations)
                for _ in range(generations)
            ]
            assert asked == [(rows[row]["nums"], rows[row]["target"]) for row in numbers], (
                f"{folder}, step {step}"
            )
            figures = curriculum.record(numbers, [each.success for each in own])
            assert {name: logged[str(step)][name] for name in figures} == pytest.approx(
                figures, abs=1e-6
            )
    assert steps == list(range(1, len(steps) + 1))
    return curriculum
