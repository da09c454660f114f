"""The classes in forms.py, row by row."""

import pytest
from swift_rlvr.verifiers.mathematics import Reason, grade
from verifiers.mathematics.forms import FORMS

ROWS = [(name, *row) for name, rows in FORMS.items() for row in rows]


@pytest.mark.parametrize(
    "name, gold, text, expected", ROWS, ids=[f"{n}-{row[0]}" for n, row in enumerate(ROWS)]
)
def test_reward(name, gold, text, expected):
    verdict = grade(text, gold)
    assert verdict.reward == expected, verdict
    assert verdict.reason is not Reason.ERROR


def test_every_class_has_rows_that_pay_and_neighbours():
    for name, rows in FORMS.items():
        rewards = [reward for _, _, reward in rows]
        assert rewards.count(0.0) >= 5 and (
            rewards.count(1.0) >= 5 or "cheat" in name or "several" in name
        ), name
        assert len(rows) == len(set(rows)), name
