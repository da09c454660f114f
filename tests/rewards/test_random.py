"""The random reward: a fair lot that says nothing of the text and can be drawn again."""

from types import SimpleNamespace

import pytest

from present import all_present
from swift_rlvr.rewards import REWARDS

TEXTS = [f"<answer>{number}</answer>" for number in range(4000)]


def lots(step=None, **parameters):
    state = {} if step is None else {"trainer_state": SimpleNamespace(global_step=step)}
    return REWARDS["random"](**parameters)(TEXTS, **state)


@pytest.mark.parametrize("p", [0.0, 0.25, 0.5, 1.0])
def test_so_many_are_paid(p):
    paid = lots(p=p)
    assert set(paid) <= {0.0, 1.0} and sum(paid) / len(paid) == pytest.approx(p, abs=0.03)


@pytest.mark.parametrize("other", [{"seed": 1}, {"step": 1}, {"step": 2}])
def test_another_seed_or_step_draws_anew(other):
    same = sum(a == b for a, b in zip(lots(), lots(**other), strict=True)) / len(TEXTS)
    assert same == pytest.approx(0.5, abs=0.03)
    assert lots(**other) == lots(**other)


def test_no_text_is_lucky_for_long():
    """A policy that found one could write nothing else, and the control would rise as a reward does
    that is learnt.
    """
    reward = REWARDS["random"]()
    paid = [
        reward([TEXTS[7]], trainer_state=SimpleNamespace(global_step=step))[0]
        for step in range(400)
    ]
    assert sum(all_present(paid)) / 400 == pytest.approx(0.5, abs=0.1)
