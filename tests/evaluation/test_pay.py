"""What is wrong with what the rewards of a run pay for right and wrong completions of a task's rows."""

import pytest

from swift_rlvr.evaluation.pay import Pay, find_fault

RIGHT, WRONG, FORM = {"gold": 1.0, "form": 1.0}, {"gold": 0.0, "form": 1.0}, {"form": 1.0}
GOLD = {"gold": 1.0}


def pay(right, wrong=WRONG, full=GOLD, of_gold=1.0):
    return Pay("line 1", right, wrong, {"gold": of_gold, "form": 1.0}, full)


@pytest.mark.parametrize(
    ("pays", "said", "ends_run"),
    [
        ([pay(RIGHT)] * 3, None, False),
        # A few odd golds are no reason to end a run, most are.
        ([pay(RIGHT)] * 3 + [pay(WRONG)], "gold gives line 1 0 (1 of 4 rows", False),
        ([pay(RIGHT)] * 2 + [pay(WRONG)] * 2, "gold gives line 1 0 (2 of 4 rows", False),
        ([pay(RIGHT)] + [pay(WRONG)] * 3, "gold gives line 1 0 (3 of 4 rows", True),
        ([pay(WRONG)], "gold gives line 1 0", True),
        ([pay({"gold": None, "form": 1.0})], "no verifier grades line 1", True),
        ([pay({"gold": 0.5, "form": 1.0})], "and a wrong one 0; its full_reward is 1", True),
        ([pay(RIGHT, of_gold=-1.0)], "line 1 earns 0 (gold 1, form 1), and a wrong one 1", True),
        # A run for the format alone.
        ([pay(FORM, FORM, full={})] * 2, "no more (2 of 2 rows", False),
    ],
)
def test_most_rows_of_a_task_have_to_be_at_fault(pays, said, ends_run):
    fault = find_fault(pays)
    if said is None or fault is None:
        assert said is fault is None
    else:
        assert said in fault.text and fault.ends_run is ends_run
