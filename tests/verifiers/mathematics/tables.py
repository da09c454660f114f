"""The tables of cases beside this file: JSON lines, one case a line.

`pairs.jsonl` holds what a sound human judge says about an answer, `forms.jsonl` how models write
answers. The rules that their rows follow are in `test_pairs.py` and `test_forms.py`.
"""

import json
from pathlib import Path
from typing import NamedTuple


class Case(NamedTuple):
    """A completion, and what it earns for a gold."""

    gold: str | float | None
    completion: str | None
    reward: float | None  # 1.0 is right, 0.0 is wrong, None means that the gold cannot be graded
    section: str  # cases that attack the same rule stand together
    why: str = ""  # what this case attacks


def read_cases(name: str) -> list[Case]:
    """The cases of a table, in the order of the file."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return [Case(**json.loads(line)) for line in text.split("\n") if line]


PAIRS = read_cases("pairs.jsonl")
FORMS = read_cases("forms.jsonl")
