"""Rewards that are tried on a few completions: what they pay there is what they pay in a training."""

import pytest

pytest.importorskip("swift")

from swift.rewards import ORM, AsyncORM, orms

from swift_rlvr.rewards import REWARDS
from swift_rlvr.training.ms_swift.trial import try_rewards


class Targets(ORM):
    """Sees a batch, with None in a row that lacks a column, and what only the trainer knows."""

    def __call__(self, completions, target, trainer_state, messages, request_id, **kwargs):
        assert trainer_state.global_step == 0 and len(request_id) == len(completions)
        assert [turns[-1]["content"] for turns in messages] == completions
        return target


class Later(AsyncORM):
    async def __call__(self, completions, **kwargs):
        return [float(len(text)) for text in completions]


class Fails(ORM):
    def __call__(self, completions, gold, **kwargs):
        return [1.0] * len(completions)


class Ends(ORM):
    def __call__(self, completions, **kwargs):
        raise SystemExit(3)


def rows(*completions):
    question = {"role": "user", "content": "?"}
    return [
        {"messages": [question, {"role": "assistant", "content": each}]} for each in completions
    ]


def test_one_batch_with_all_columns(monkeypatch):
    others = {"targets": Targets, "later": Later, "fails": Fails, "ends": Ends}
    for name, reward in (others | {"ours": REWARDS["external_countdown"]}).items():
        monkeypatch.setitem(orms, name, reward)
    right, wrong = rows("<answer>1+2</answer>", "<answer>1-2</answer>")
    right |= {"nums": [1, 2], "target": 3.0, "task": "countdown"}
    paid = try_rewards(["ours", *others], object(), [right, {**wrong, "task": "gsm8k"}]).paid
    assert paid["ours"] == [1.0, None]
    assert paid["targets"] == [3.0, None]
    assert paid["later"] == [20.0, 20.0]
    assert paid["ends"] == "SystemExit: 3"
    assert "missing 1 required positional argument: 'gold'" in paid["fails"]
    assert str(paid["fails"]).endswith("(the columns of the rows are nums, target, task)")


class Infinite(ORM):
    def __call__(self, completions, **kwargs):
        return [float("inf") if text == "a" else 0.0 for text in completions]


def test_what_makes_advantages_nan_is_no_pay(monkeypatch):
    monkeypatch.setitem(orms, "infinite", Infinite)
    paid = try_rewards(["infinite"], object(), rows("a", "b")).paid
    assert str(paid["infinite"]).startswith("it pays inf or -inf")
    assert try_rewards(["infinite"], object(), rows("b", "b")).paid == {"infinite": [0.0, 0.0]}


class Empties(ORM):
    def __call__(self, completions, **kwargs):
        paid = [float(len(text)) for text in completions]
        completions[:] = [""] * len(completions)
        return paid


def test_a_reward_that_changes_its_arguments_is_named(monkeypatch):
    """Those after it get what it has left, as in a training."""
    for name, reward in {"empties": Empties, "lengths": Empties, "targets": Targets}.items():
        monkeypatch.setitem(orms, name, reward)
    trial = try_rewards(["empties", "lengths"], object(), rows("a", "ab"))
    assert trial.paid == {"empties": [1.0, 2.0], "lengths": [0.0, 0.0]}
    assert trial.changed == {"empties": "completions"}
