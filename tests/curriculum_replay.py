"""Checks a training with a curriculum by its own log: each batch is what the rule draws from the rewards before it."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from swift_rlvr.jsonl import read_jsonl
from swift_rlvr.runs.curriculum import Curriculum, CurriculumSettings
from swift_rlvr.tasks.countdown import read_prompt


def assert_drawn_by_level(
    folders: Iterable[Path], rows: Sequence[Mapping[str, Any]], generations: int, seed: int = 42
) -> Curriculum:
    """Of a run, in one folder or, with its continuation, in several. Returns the curriculum at the run's end.

    rows: the dataset, in its order. In completions.jsonl the prompts and rewards of all ranks are in order.
    """
    curriculum = Curriculum([row["level"] for row in rows], CurriculumSettings(), seed)
    steps = []
    for folder in folders:
        logged = {
            row["global_step/max_steps"].partition("/")[0]: row
            for _, row in read_jsonl(folder / "logging.jsonl")
            if "reward" in row
        }
        for _, table in read_jsonl(folder / "completions.jsonl"):
            (step,) = set(map(str, table["step"]))
            if steps and int(step) == steps[-1]:  # ms-swift writes the last table again with its closing line
                continue
            steps.append(int(step))
            asked = list(map(read_prompt, table["prompt"]))
            numbers = [row for row in curriculum.draw(len(asked) // generations) for _ in range(generations)]
            assert asked == [(rows[row]["nums"], rows[row]["target"]) for row in numbers], f"{folder}, step {step}"
            figures = curriculum.record(numbers, table["CountdownReward"])
            assert {name: logged[step][name] for name in figures} == pytest.approx(figures, abs=1e-6)
    assert steps == list(range(1, len(steps) + 1))
    return curriculum
