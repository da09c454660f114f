"""The alarms: each is raised by the run it is for, once, and not by runs that are well, noise and
growth included.
"""

import json
import random

import pytest

from swift_rlvr.runs.alarms import KINDS, Alarms, replay
from swift_rlvr.runs.log import RunLog, cut_logs
from swift_rlvr.runs.records import Record
from swift_rlvr.success import Judge, Judges

STEPS = 60


def healthy(step, noise):
    """As in the quickstart: success rises from 0.25 to 0.6, the length from 60 to 170, with a
    batch's noise.
    """
    done = min(1.0, step / 40)
    return {
        "reward": 1.0,
        "success": 0.25 + 0.35 * done + noise.gauss(0, 0.08),
        "format": 1.0,
        "completions/mean_length": 60 + 110 * done + noise.gauss(0, 15),
        "completions/clipped_ratio": max(0.0, noise.gauss(0.01, 0.02)),
        "frac_reward_zero_std": min(1.0, abs(noise.gauss(0.1, 0.15))),
        "kl": 0.03 * done + abs(noise.gauss(0, 0.01)),
    }


def run(change=None, seed=0, steps=STEPS):
    """The alarms of a run that is healthy but for `change(step, row)`, which alters a row."""
    noise, alarms, raised = random.Random(seed), Alarms(), []
    for step in range(1, steps + 1):
        row = healthy(step, noise)
        if change is not None:
            change(step, row)
        raised += alarms.row(step, row)
    return raised


@pytest.mark.parametrize("seed", range(20))
def test_a_healthy_run_raises_none(seed):
    assert run(seed=seed, steps=200) == []


def falls(step, row):
    if step > 40:
        row["success"] = 0.05


def falls_at_once(step, row):
    """As with ms-swift and ten times the learning rate: before ten steps are there, success is
    gone.
    """
    row["success"] = [0.28, 0.48, 0.44, 0.17, 0.03, 0.06][step - 1] if step <= 6 else 0.0


def forgets(step, row):
    row["format"] = 0.8 if step <= 40 else 0.99
    falls(step, row)


def drifts(step, row):
    row["kl"] *= 1 if step <= 40 else 100 * (step - 40)


def rambles(step, row):
    row["completions/clipped_ratio"] = 0.0 if step <= 40 else 0.8


def grows_alone(step, row):
    row["success"] = 0.3 - step / 1000
    row["completions/mean_length"] = 100 if step <= 40 else 250


def shrinks(step, row):
    row["success"] = 0.3 - step / 1000
    row["completions/mean_length"] = 100 if step <= 40 else 20


def all_the_same(step, row):
    row["frac_reward_zero_std"] = 0.2 if step <= 40 else 1.0


CASES = [
    (falls, {"success"}, 0.05),
    (forgets, {"success"}, "learns the format instead of the task"),
    (drifts, {"kl"}, "KL"),
    (rambles, {"length"}, "80%"),
    (grows_alone, {"length"}, "from 100 to 220"),
    (shrinks, {"length"}, "from 100 to 20"),
    (all_the_same, {"no_spread"}, "92%"),
]


@pytest.mark.parametrize(
    ("change", "kinds", "shown"), CASES, ids=[case[0].__name__ for case in CASES]
)
def test_each_kind_is_raised_once_soon_after_what_it_is_for(change, kinds, shown):
    raised = run(change)
    assert {alarm.kind for alarm in raised} == kinds and len(raised) == len(kinds)
    assert kinds <= set(KINDS)
    for alarm in raised:
        assert 40 < alarm.step <= 56
        assert alarm.message.startswith(f"step {alarm.step}: ")
    assert any(str(shown) in alarm.message for alarm in raised)


def test_a_collapse_before_the_first_mean_is_seen_too():
    (alarm,) = run(falls_at_once)
    assert alarm.kind == "success" and alarm.step <= 25


def raises_errors(step, row):
    row["reasons/MineReward/raised_an_error"] = 0.02 if step <= 40 else 0.2


def test_a_function_that_raises_errors_is_named_in_the_step_in_which_it_does():
    (alarm,) = run(raises_errors)
    assert (alarm.kind, alarm.step) == ("errors", 41)
    assert "MineReward raised an error on 20% of the completions" in alarm.message


LEARNS_NOTHING = [
    (
        {"frac_reward_zero_std": 1.0},
        "no_spread",
        5,
        "no group had completions with different rewards",
    ),
    ({"completions/clipped_ratio": 0.97, "success": 0.0}, "length", 5, "97% of the completions"),
    ({"ungraded": 1.0}, "ungraded", 3, "could not grade 100%"),
]


@pytest.mark.parametrize(("change", "kind", "step", "shown"), LEARNS_NOTHING)
def test_a_run_that_learns_nothing_from_the_start_is_told_in_its_first_steps(
    change, kind, step, shown
):
    alarm = run(lambda _, row: row.update(change))[0]
    assert (alarm.kind, alarm.step) == (kind, step)
    assert shown in alarm.message


def test_a_start_that_is_hard_but_not_hopeless_is_no_alarm():
    def starts_slowly(step, row):
        if step <= 5:
            row["frac_reward_zero_std"] = 1.0 if step != 3 else 0.9
            row["completions/clipped_ratio"] = 0.95
            row["success"] = 0.1
            row["ungraded"] = 0.5

    assert run(starts_slowly) == []


def test_a_short_dip_is_no_alarm():
    def dips(step, row):
        if 40 < step <= 44:
            row["success"] = 0.0

    assert run(dips) == []


def test_held_out_success_counts_when_it_is_low_twice():
    alarms = Alarms()
    evaluation = {"eval/success": 0.6, "eval/format": 0.7, "eval/tasks": 64}
    assert alarms.row(10, evaluation) == []
    assert alarms.row(20, {**evaluation, "eval/success": 0.2}) == []
    assert alarms.row(30, {**evaluation, "eval/success": 0.55}) == []
    assert alarms.row(40, {**evaluation, "eval/success": 0.2}) == []
    raised = alarms.row(50, {**evaluation, "eval/success": 0.1, "eval/format": 0.95})
    assert [alarm.kind for alarm in raised] == ["held_out_success"]
    assert "is 0.10, down from 0.60 at step 10" in raised[0].message
    assert "0.70 to 0.95" in raised[0].message


def test_a_difference_that_few_tasks_leave_open_is_no_alarm():
    alarms = Alarms()
    evaluation = {"eval/success": 0.5, "eval/tasks": 8}
    assert [alarms.row(step, {**evaluation, "eval/success": success}) for step, success in
            ((10, 0.5), (20, 0.3), (30, 0.3), (40, 0.3))] == [[]] * 4  # fmt: skip


def test_examples_are_of_different_prompts():
    alarms = Alarms()
    alarms.batch(["a", "a", "b", "b", "c"], ["a1", "a2", "b1", "b2", "c1"])
    raised = []
    for step in range(1, STEPS + 1):
        raised += alarms.row(step, {"reward": 1.0, "frac_reward_zero_std": 1.0})
    assert raised[0].completions == ("a1", "b1", "c1")


def test_completions_that_no_verifier_graded_are_counted():
    def record(success):
        return Record(index=0, completion="", rewards={}, success=success)

    log = RunLog("run")
    log.judges = Judges({"external_countdown": Judge("verifier", "CountdownReward")})
    assert log.batch_figures([record(True), record(False)]) == {"success": [1.0, 0.0]}
    figures = log.batch_figures([record(None), record(True)])
    assert figures == {"success": [1.0], "ungraded": [1.0, 0.0]}
    # A mean over steps counts the zeros.
    assert log.batch_figures([record(True)]) == {"success": [1.0], "ungraded": [0.0]}
    log.judges = Judges({"Format": Judge("format", "Format")})
    assert log.batch_figures([record(None)]) == {}


@pytest.fixture
def collapsed(tmp_path):
    """The folder of a run that collapses at step 41, written by the log that watches it."""
    noise = random.Random(1)
    log = RunLog(tmp_path, stop_on_alarm=True)
    with log:
        log.start(0, STEPS)
        for step in range(1, STEPS + 1):
            row = healthy(step, noise)
            falls(step, row)
            texts = (f"{step}", "b", "c")
            log.records(
                [
                    Record(
                        index=i,
                        completion=texts[i],
                        rewards={},
                        row={"row": i},
                        step=step,
                        mode="train",
                    )
                    for i in range(3)
                ]
            )
            log.update(step, row)
    return tmp_path, log


def test_the_log_writes_its_alarms_and_says_why_to_stop(collapsed):
    folder, log = collapsed
    rows = [json.loads(line) for line in (folder / "alarms.jsonl").read_text().splitlines()]
    assert [row["kind"] for row in rows] == ["success"]
    assert rows[0]["completions"] == [str(rows[0]["step"]), "b", "c"]
    assert (
        log.stop
        == f"stopping at step {rows[0]['step']} because of an alarm: success (stop_on_alarm)"
    )


def test_the_log_gives_the_same_alarms_afterwards(collapsed):
    folder, _ = collapsed
    assert replay(folder, STEPS).raised == {"success"} and replay(folder, 40).raised == set()


def test_a_resumed_run_raises_no_alarm_twice_and_forgets_those_that_it_goes_back_behind(collapsed):
    folder, _ = collapsed
    step = json.loads((folder / "alarms.jsonl").read_text())["step"]
    log = RunLog(folder)
    log.resume_alarms(step)
    assert log.alarms.raised == {"success"}
    again = replay(folder, step - 1)
    assert again.raised == set()
    row = {"reward": 1.0, "success": 0.05, "format": 1.0}
    assert [alarm.kind for alarm in again.row(step, row)] == ["success"]
    assert cut_logs(folder, step - 1) == STEPS
    assert (folder / "alarms.jsonl").read_text() == ""
