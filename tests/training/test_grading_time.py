"""A slow reward is measured and named: under ms-swift's own scoring, with every shape of reward."""

import asyncio
from types import SimpleNamespace

import pytest

pytest.importorskip("torch", reason="needs the extra [train]")
from collections.abc import Callable

import torch
from rich.console import Console

from swift_rlvr.rewards import Grade, Reward
from swift_rlvr.rewards.countdown import CountdownReward
from swift_rlvr.runs.grade_log import GradeLog
from swift_rlvr.runs.log import RunLog, line
from swift_rlvr.success import key_of, logged_name, role_of
from swift_rlvr.training import grading_time
from swift_rlvr.training.grading_time import GradingTime, untimed
from swift_rlvr.training.reason_callback import ReasonCallback
from test_success import trainer_of
from waiting import wait_until

SLOW = 3.0  # seconds of the clock below


class Clock:
    """Goes on only when a reward says so, so that a busy machine changes nothing."""

    now = 0.0

    @classmethod
    def perf_counter(cls):
        return cls.now


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    monkeypatch.setattr(grading_time, "time", Clock)


def work():
    Clock.now += SLOW


class SlowReward(Reward):
    name, role, reasons = "external_slow", "verifier", ("ok",)

    def grade(self, text, row):
        work()
        return Grade(1.0, "ok")


class Theirs:
    """As ms-swift's ORM."""

    full_reward = 2.0

    def __call__(self, completions, **columns):
        work()
        return [1.0] * len(completions)


class TheirsLater:
    """As ms-swift's AsyncORM."""

    async def __call__(self, completions, **columns):
        work()
        return [1.0] * len(completions)


def function(completions, **columns):
    work()
    return [1.0] * len(completions)


async def later(completions, **columns):
    work()
    return [1.0] * len(completions)


def watched(*rewards):
    trainer = SimpleNamespace(reward_funcs=list(rewards))
    grading = GradingTime(GradeLog())
    grading.watch(trainer)
    return trainer, grading


REWARDS_OF_ALL_SHAPES: dict[str, Callable] = {
    "external_slow": SlowReward,
    "Theirs": Theirs,
    "function": lambda: function,
    "TheirsLater": TheirsLater,
    "later": lambda: later,
}


@pytest.mark.parametrize("key", REWARDS_OF_ALL_SHAPES)
def test_every_shape_of_reward_is_timed_and_stays_what_it_is(key):
    reward = REWARDS_OF_ALL_SHAPES[key]()
    trainer, grading = watched(reward)
    (timed,) = trainer.reward_funcs
    assert timed is not reward
    assert (key_of(timed), logged_name(timed)) == (key_of(reward), logged_name(reward))
    assert role_of(timed) == role_of(reward)
    assert getattr(timed, "full_reward", None) == getattr(reward, "full_reward", None)
    assert isinstance(timed, Reward) == isinstance(reward, Reward)
    assert asyncio.iscoroutinefunction(timed) == asyncio.iscoroutinefunction(reward)

    values = timed(["a"])
    if asyncio.iscoroutine(values):
        values = asyncio.run(values)
    assert values == [1.0]
    assert grading.figures() == {f"grading/{key}": SLOW}
    grading.clear()
    assert grading.figures() == {}


@pytest.mark.parametrize("is_async", [False, True])
def test_a_reward_that_does_not_return_is_named_meanwhile(monkeypatch, is_async):
    monkeypatch.setattr(grading_time, "LONG", 0.01)
    monkeypatch.setenv("LOCAL_RANK", "1")
    said: list[str] = []
    monkeypatch.setattr(grading_time._logger, "warning", said.append)

    def stuck(completions, **columns):
        wait_until(lambda: len(said) >= 2, "two lines")  # the second after twice the time
        return [1.0]

    async def stuck_later(completions, **columns):
        return stuck(completions)

    trainer, _ = watched(stuck_later if is_async else stuck)
    values = trainer.reward_funcs[0](["a"])
    assert (asyncio.run(values) if is_async else values) == [1.0]
    name = "stuck_later" if is_async else "stuck"
    assert said[0].startswith(f"rank 1 still grades with {name} after 0.01 s")
    assert said[1].startswith(f"rank 1 still grades with {name} after 0.02 s")


def test_ms_swift_scores_with_timed_rewards_of_every_shape():
    algorithm = pytest.importorskip("swift.rl_core.grpo_algorithm")
    trainer, grading = watched(*(make() for make in REWARDS_OF_ALL_SHAPES.values()))
    turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
    sample = SimpleNamespace(messages=turns, to_reward_row=lambda: {"messages": turns})
    device = torch.device("cpu")
    rewards = algorithm.compute_rewards_per_func([sample], trainer.reward_funcs, None, device)
    assert rewards.tolist() == [[1.0] * 5]
    assert grading.figures() == {f"grading/{key}": SLOW for key in REWARDS_OF_ALL_SHAPES}
    # Ours report themselves, to the log that the callback gives them.
    (record,) = grading.grades.take()
    assert record.rewards == dict.fromkeys(REWARDS_OF_ALL_SHAPES.keys() - {"external_slow"}, 1.0)
    assert (record.completion, record.messages) == ("!", turns[:1])


def test_a_reward_that_raises_is_timed_and_still_raises():
    def broken(completions, **columns):
        work()
        raise RuntimeError("no server")

    trainer, grading = watched(broken)
    with pytest.raises(RuntimeError, match="no server"):
        trainer.reward_funcs[0](["a"])
    assert grading.figures() == {"grading/broken": SLOW}


@pytest.mark.parametrize("writes", [True, False], ids=["TRL", "ms-swift"])
def test_the_callback_logs_the_seconds_of_each_reward_in_a_step(tmp_path, writes):
    answers = [SimpleNamespace(row={"nums": [1, 2], "target": 3}, text="<answer>1 + 2</answer>")]
    trainer = trainer_of([CountdownReward(), SlowReward()], answers)
    arguments = SimpleNamespace(output_dir=tmp_path)
    state = SimpleNamespace(global_step=0, max_steps=2, is_world_process_zero=True)
    with RunLog(tmp_path, Console(quiet=True)) as log:
        callback = ReasonCallback(arguments, trainer, log if writes else None)
        callback.on_train_begin(arguments, state, None)
        score_with(trainer, answers)  # as in an evaluation: no part of the step
        callback.grades.take()
        callback.on_step_begin(arguments, state, None)
        score_with(trainer, answers)
        state.global_step = 1
        callback.on_step_end(arguments, state, SimpleNamespace())
    logged = trainer._metrics["train"]
    assert logged["success"] == [1.0]  # the records are those of the rewards under the timer
    assert logged["grading/external_slow"] == [SLOW]
    assert logged["grading/external_countdown"] == [0.0]


def test_rewards_that_go_from_trainer_to_trainer_are_logged_by_the_one_that_trains(tmp_path):
    """Two stages in one script, or a cell of a notebook that is run again: the list is the same."""
    answers = [SimpleNamespace(row={"nums": [1, 2], "target": 3}, text="<answer>1 + 2</answer>")]
    rewards = [CountdownReward()]
    trainers = [trainer_of(rewards, answers), trainer_of(rewards, answers)]
    for trainer in trainers:
        trainer.reward_funcs = rewards  # TRL keeps the list that it gets
    arguments = SimpleNamespace(output_dir=tmp_path)
    state = SimpleNamespace(global_step=0, max_steps=2, is_world_process_zero=True)
    callbacks = [ReasonCallback(arguments, trainer) for trainer in trainers]
    for number in (0, 1, 0):
        callbacks[number].on_train_begin(arguments, state, None)
        score_with(trainers[number], answers)
        callbacks[number].on_step_end(arguments, state, SimpleNamespace())
    assert [trainer._metrics["train"]["success"] for trainer in trainers] == [[1.0, 1.0], [1.0]]
    assert type(rewards[0]) is CountdownReward


def test_what_is_graded_beside_the_steps_is_in_no_record():
    """The held-out evaluation asks the rewards of the run, which may be plain functions."""

    def short(completions, **columns):
        return [float(len(text) < 9) for text in completions]

    answers = [SimpleNamespace(row={"nums": [1, 2], "target": 3}, text="1 + 2")]
    trainer = trainer_of([short, CountdownReward(), Theirs()], answers)
    grades = GradeLog()
    GradingTime(grades).watch(trainer)
    for reward in map(untimed, trainer.reward_funcs):
        reward(["1 + 2"], nums=[[1, 2]], target=[3])
    assert grades.take() == []
    trainer.reward_funcs[0](["1 + 2"])
    assert len(grades.take()) == 1


def score_with(trainer, answers):
    """Score as a trainer does: with what stands in `reward_funcs` now."""
    columns = {name: [answer.row[name] for answer in answers] for name in answers[0].row}
    for reward, name in zip(trainer.reward_funcs, trainer.reward_func_names, strict=True):
        values = reward([answer.text for answer in answers], **columns)
        trainer._logs["rewards"][name].extend(values)


@pytest.mark.parametrize(
    ("step", "grading", "said"),
    [
        (10.0, {"external_code": 4.2, "format": 0.01}, " grading 4.2 s (external_code)"),
        (10.0, {"mine": 2.0, "external_judge": 2.5}, " grading 4.5 s (external_judge, mine)"),
        (10.0, {"external_code": 2.0}, ""),  # a fifth of the step
        (2.0, {"external_code": 0.9}, ""),  # less than a second
        (None, {"external_code": 9.0}, ""),
    ],
)
def test_the_line_of_a_step_names_a_slow_reward(step, grading, said):
    row = {"reward": 1.0, "global_step/max_steps": "3/9"}
    if step is not None:
        row["step_time"] = step
    row |= {f"grading/{name}": seconds for name, seconds in grading.items()}
    assert line(row).partition("left 1:00")[2] == (said if step == 10.0 else "")
    assert ("grading" in line(row)) is bool(said)
