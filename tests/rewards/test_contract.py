"""What every reward in the registry promises to the trainers that call it: the rules of
`swift_rlvr.contract`.

What of it the base class does for all rewards, in its own words, is here.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest

from present import all_present, present
from swift_rlvr.contract import check_reward
from swift_rlvr.contract.rewards import HOSTILE
from swift_rlvr.rewards import REWARDS, Reward, add_reward
from swift_rlvr.runs.grade_log import GradeLog
from swift_rlvr.utils.errors import NotInstalledError

PAYS_FOR_NO_FORM = {
    "external_length",
    "external_random",
    "external_repetition_penalty",
    "external_soft_overlong",
}


def listed(row: Mapping, count: int = 1) -> dict:
    return {name: [value] * count for name, value in row.items()}


@pytest.fixture(params=list(REWARDS))
def case(request):
    """A reward, and the example of its class that earns the most."""
    cls = REWARDS[request.param]
    return cls(), max(
        (each for each in cls.examples if each.reward is not None),
        key=lambda each: present(each.reward),
    )


@pytest.mark.parametrize("name", list(REWARDS))
def test_every_rule_holds(name):
    try:
        assert check_reward(REWARDS[name]) == []
    except NotInstalledError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    "name", [name for name, reward in REWARDS.items() if reward.role != "verifier"]
)
def test_hostile_texts_earn_nothing_for_their_form_either(name):
    """The rules ask it of rewards for the outcome; these could be for anything."""
    if name in PAYS_FOR_NO_FORM:
        return
    reward = REWARDS[name]()
    least = min(each.reward for each in reward.examples if each.reward is not None)
    row = listed(reward.examples[0].row, len(HOSTILE))
    assert max(all_present(reward(HOSTILE, **row))) <= max(least, 0.0)


@pytest.mark.parametrize("value", ["42", b"42", {"a": 1}, 42], ids=repr)
def test_what_is_no_list_is_refused(case, value):
    reward, best = case
    for name in reward.columns:
        with pytest.raises(
            ValueError, match=f"{type(reward).__name__}: '{name}' must be a list of one value per"
        ):
            reward([best.completion], **listed(best.row) | {name: value})
    with pytest.raises(ValueError, match="'completions' must be a list"):
        reward(value, **listed(best.row, 2))
    with pytest.raises(ValueError, match="'task' must be a list"):
        type(reward)(tasks="mine")([best.completion], **listed(best.row), task=value)


def test_rows_of_another_task_need_no_columns(case):
    reward, best = case
    reward = type(reward)(tasks=("mine",))
    empty = listed(dict.fromkeys(best.row))
    assert reward.grades([best.completion], **empty, task=["theirs"]) == [(None, "other task")]
    # Where a trainer asks row by row, they are not even there.
    assert reward.grades([best.completion], task=["theirs"]) == [(None, "other task")]
    assert reward.grades([best.completion], task=[np.array(["mine", "x"])])[0].reward is None
    assert reward.explain(best.completion, {"task": "theirs"}).reason == "other task"


@pytest.mark.parametrize("kind", ["array", "tensor", "series"])
def test_a_loop_of_ones_own_may_hand_over_arrays(kind):
    """They are lists in all trainers. As numbers of NumPy no gold was read, and tokens were counted as characters."""
    if kind == "array":
        make = np.array
    elif kind == "tensor":
        make = pytest.importorskip("torch").tensor
    else:
        make = partial(pytest.importorskip("pandas").Series, index=[5, 6])
    completions: Any = [r"\boxed{1}", r"\boxed{3}"]
    array: Any = np.array(completions)
    assert REWARDS["accuracy"]()(array, solution=make([1, 2])) == [1.0, 0.0]
    if kind != "series":
        length = REWARDS["length"](unit="tokens")
        for tokens in (make([[1, 2, 3], [4, 5, 6]]), [make([1, 2, 3]), make([4, 5, 6])]):
            assert length(completions, completion_ids=tokens) == [3.0, 3.0]


@pytest.mark.parametrize(
    ("task", "tasks", "is_warned"),
    [
        ("algebra", "", True),
        ("math", "mine", False),  # of another reward in the run
        ("algebra", "algebra", False),
    ],
)
def test_a_batch_of_tasks_that_nobody_knows_is_named(task, tasks, is_warned, caplog):
    """TRL says only that no reward has returned anything for the row."""
    reward = REWARDS["accuracy"](tasks=tuple(tasks.split()))
    for _ in range(2):
        reward([r"\boxed{1}"], solution=["1"], task=[task])
    assert len(caplog.messages) == is_warned
    if is_warned:
        assert "batch is of algebra. If it" in caplog.text
        assert "remove the column 'task', or set EXTERNAL_ACCURACY_TASKS" in caplog.text


def test_a_trainer_that_asks_for_reasons_gets_one_for_each_completion_and_the_share_of_each():
    """TRL from 1.0 on hands over `log_extra` and `log_metric`; a reason that nothing got has 0."""
    columns: dict[str, list] = {}
    metrics: dict[str, float] = {}
    reward = REWARDS["countdown"]()
    completions = ["<answer>3*5+7</answer>", "<answer>3+5+7</answer>", "", ""]
    row = listed({"nums": [3, 5, 7], "target": 22}, 4)
    paid = reward(completions, **row, log_extra=columns.__setitem__, log_metric=metrics.__setitem__)
    assert paid == reward(completions, **row) == [1.0, 0.0, 0.0, 0.0]
    reasons = [grade.reason for grade in reward.grades(completions, **row)]
    assert columns == {"CountdownReward/reason": reasons}
    assert metrics["reasons/CountdownReward/correct"] == 0.25
    assert metrics["reasons/CountdownReward/no_answer"] == 0.5
    assert metrics["reasons/CountdownReward/other_task"] == 0.0
    assert sum(metrics.values()) == 1.0 and len(metrics) == len(reward.reasons) + 1


def test_a_trainer_with_our_callback_gets_the_shares_from_it_alone():
    reward, metrics = REWARDS["tag_count"](), []
    reward.log = GradeLog()
    reward(["a"], log_metric=lambda *metric: metrics.append(metric))
    assert metrics == [] and len(reward.log.take()) == 1


def test_the_registry_knows_short_names():
    assert REWARDS["accuracy"] is REWARDS["external_accuracy"] is REWARDS.get("accuracy")
    assert "accuracy" in REWARDS and "external_accuracy" in REWARDS
    assert "luck" not in REWARDS and REWARDS.get("luck") is None
    with pytest.raises(
        KeyError, match="there is no 'luck'; there are external_countdown, external_acc"
    ):
        REWARDS["luck"]
    with pytest.raises(KeyError, match="there is no 'acuracy'; did you mean external_accuracy"):
        REWARDS["acuracy"]
    assert list(REWARDS) == [reward.name for reward in REWARDS.values()] == list(dict(REWARDS))


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"name": "external_countdown"}, "'external_countdown' is taken by CountdownReward"),
        ({"name": "format"}, "must begin with 'external_'"),
        ({"__name__": "CountdownReward"}, "class name 'CountdownReward' is taken"),
        ({"reasons": ()}, "Other must name every reason"),
        ({"role": "judge"}, "`role` of Other must be one of verifier, format, shaping"),
    ],
)
def test_the_registry_refuses_what_cannot_be_told_apart_or_used(attributes, message):
    before = dict(REWARDS)
    attributes = {"name": "external_other", "reasons": ("right",), "role": "verifier", **attributes}
    other = type(attributes.pop("__name__", "Other"), (Reward,), attributes)
    with pytest.raises(ValueError, match=message):
        add_reward(other)
    assert before == REWARDS
