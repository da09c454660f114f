"""When a run evaluates held-out rows, what it may cost, which evaluation is the best, and when the run stops."""

import pytest
from swift_rlvr.runs.folder import checkpoints, link_best
from swift_rlvr.runs.held_out import HeldOutSettings, Schedule, figures
from swift_rlvr.runs.records import Record


class Clock:
    """Seconds that pass when the test says so."""

    now = 0.0

    def __call__(self):
        return self.now


def simulated(settings, steps, step_seconds, evaluation_seconds):
    """The steps that a run evaluates, and its schedule at the end."""
    clock = Clock()
    schedule, evaluated = Schedule(settings, clock), []
    for step in range(steps + 1):
        clock.now += step_seconds if step else 0
        if schedule.is_candidate(step, steps) and schedule.is_affordable(step, steps):
            clock.now += evaluation_seconds
            schedule.record(step, 0.5, evaluation_seconds)
            evaluated.append(step)
    return evaluated, schedule


def test_the_first_and_the_last_step_and_every_tenth():
    evaluated, schedule = simulated(HeldOutSettings(), 65, 5.0, 1.0)
    assert evaluated == [0, 10, 20, 30, 40, 50, 60, 65]
    assert schedule.skipped == 0 and schedule.share < 0.03


@pytest.mark.parametrize("evaluation_seconds", [4, 8, 15, 25])
@pytest.mark.parametrize("step_seconds", [3, 10])
def test_the_share_of_the_time_stays_below_the_limit(step_seconds, evaluation_seconds):
    """As long as the run is long enough for the first and the last evaluation."""
    evaluated, schedule = simulated(HeldOutSettings(), 200, step_seconds, evaluation_seconds)
    assert 0 < schedule.share <= 0.1
    assert evaluated[0] == 0 and evaluated[-1] == 200
    assert all(step % 10 == 0 for step in evaluated)
    affordable = 0.1 * schedule.elapsed / evaluation_seconds
    assert len(evaluated) >= 0.7 * min(21, affordable), "more is skipped than the limit asks for"


def test_without_a_limit_nothing_is_skipped():
    evaluated, schedule = simulated(HeldOutSettings(held_out_share=1.0), 30, 1.0, 50.0)
    assert evaluated == [0, 10, 20, 30] and schedule.skipped == 0


def test_the_best_is_of_a_trained_step_and_patience_counts_from_it():
    schedule = Schedule(HeldOutSettings(held_out_patience=2))
    verdicts = [schedule.record(step, success, 1.0) for step, success in
                ((0, 0.9), (10, 0.3), (20, 0.5), (30, 0.5), (40, 0.6), (50, 0.2), (60, None))]  # fmt: skip
    assert [verdict.best for verdict in verdicts] == [False, True, True, False, True, False, False]
    assert [verdict.stop is not None for verdict in verdicts] == [False] * 6 + [True]
    assert "0.600 at step 40" in verdicts[-1].stop
    assert (schedule.best, schedule.best_step) == (0.6, 40)


def test_a_continuation_knows_the_best_the_patience_and_the_time():
    clock = Clock()
    first = Schedule(HeldOutSettings(held_out_patience=3), clock)
    for step, success in ((10, 0.5), (20, 0.4), (30, 0.4)):
        clock.now += 100
        first.record(step, success, 5.0)
    second = Schedule(HeldOutSettings(held_out_patience=3), clock)
    second.load(first.state())
    second.start()
    assert not second.is_candidate(30, 100)
    assert second.share == first.share == 15 / 300
    assert second.record(40, 0.5, 5.0).stop is not None
    assert second.state() == {**first.state(), "evaluated": 40, "without_best": 3, "seconds": 20.0}


def test_figures_of_graded_completions():
    """Task 0: one of two right, without the format; task 1: both right; task 2 cannot be graded."""
    rows = [(0, True, False), (0, False, True), (1, True, True), (1, True, True), (2, None, True), (2, None, True)]
    records = []
    for index, success, format in rows:
        strict = None if success is None else success and format
        finish = "length" if index else "stop"
        judged = {"success": success, "strict": strict, "format": format}
        records.append(Record(index=index, completion="", rewards={}, tokens=10 + index, finish=finish, **judged))
    assert figures(records) == {
        "eval/success": 0.75,
        "eval/strict": 0.5,
        "eval/pass@2": 1.0,
        "eval/format": pytest.approx(5 / 6),
        "eval/mean_length": 11.0,
        "eval/cut_off": pytest.approx(4 / 6),
        "eval/tasks": 2.0,
    }
    assert "eval/success" not in figures(records[-2:])


MISTAKES = {
    ("HELD_OUT_ROWS", "many"): "SWIFT_RLVR_HELD_OUT_ROWS must be a whole number, got 'many'",
    ("HELD_OUT_EVERY", "0"): "SWIFT_RLVR_HELD_OUT_EVERY must be at least 1, got 0",
    ("HELD_OUT_SHARE", "1.5"): "SWIFT_RLVR_HELD_OUT_SHARE must be more than 0 and at most 1, got 1.5",
    ("HELD_OUT_SHARE", "nan"): "SWIFT_RLVR_HELD_OUT_SHARE must be a finite number, got 'nan'",
    ("HELD_OUT_PATIENCE", "-1"): "SWIFT_RLVR_HELD_OUT_PATIENCE must be at least 0, got -1",
    ("HELD_OUT_SAMPELS", "4"): "the nearest is SWIFT_RLVR_HELD_OUT_SAMPLES",
}


def test_the_link_to_the_best_checkpoint_moves_and_survives_a_move_of_the_folder(tmp_path):
    run = tmp_path / "run"
    for step in (10, 20):
        (run / f"checkpoint-{step}").mkdir(parents=True)
        link_best(run, step)
    assert (run / "best").resolve() == (run / "checkpoint-20").resolve()
    moved = run.rename(tmp_path / "moved")
    assert (moved / "best").resolve() == (moved / "checkpoint-20").resolve()
    assert [path.name for path in checkpoints(moved)] == ["checkpoint-10", "checkpoint-20"]
