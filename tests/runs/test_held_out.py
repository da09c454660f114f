"""When a run evaluates held-out rows, which evaluation is the best, and when the run stops."""

import pytest

from present import present
from swift_rlvr.runs.folder import checkpoints, link_best
from swift_rlvr.runs.held_out import HeldOutSettings, Schedule, figures
from swift_rlvr.runs.records import Record


def test_the_first_and_the_last_step_and_every_tenth():
    schedule = Schedule(HeldOutSettings())
    assert [step for step in range(66) if schedule.is_due(step, 65)] == [
        0,
        10,
        20,
        30,
        40,
        50,
        60,
        65,
    ]


def test_the_best_is_of_a_trained_step_and_patience_counts_from_it():
    schedule = Schedule(HeldOutSettings(held_out_patience=2))
    verdicts = [schedule.record(step, success) for step, success in
                ((0, 0.9), (10, 0.3), (20, 0.5), (30, 0.5), (40, 0.6), (50, 0.2), (60, None))]  # fmt: skip
    assert [verdict.best for verdict in verdicts] == [False, True, True, False, True, False, False]
    assert [verdict.stop is not None for verdict in verdicts] == [False] * 6 + [True]
    assert "0.600 at step 40" in present(verdicts[-1].stop)
    assert (schedule.best, schedule.best_step) == (0.6, 40)


def test_a_continuation_knows_the_best_and_the_patience():
    first, second = (Schedule(HeldOutSettings(held_out_patience=3)) for _ in range(2))
    for step, success in ((10, 0.5), (20, 0.4), (30, 0.4)):
        first.record(step, success)
    second.load(first.state())
    assert not second.is_due(30, 100)
    assert second.record(40, 0.5).stop is not None
    assert second.state() == {**first.state(), "evaluated": 40, "without_best": 3}


def test_figures_of_graded_completions():
    """Task 0: one of two right, without the format; task 1: both right; task 2 cannot be graded."""
    rows = [
        (0, True, False),
        (0, False, True),
        (1, True, True),
        (1, True, True),
        (2, None, True),
        (2, None, True),
    ]
    records = []
    for index, success, format in rows:
        strict = None if success is None else success and format
        finish = "length" if index else "stop"
        records.append(
            Record(
                index=index,
                completion="",
                rewards={},
                tokens=10 + index,
                finish=finish,
                success=success,
                strict=strict,
                format=format,
            )
        )
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


def test_the_link_to_the_best_checkpoint_moves_and_survives_a_move_of_the_folder(tmp_path):
    run = tmp_path / "run"
    for step in (10, 20):
        (run / f"checkpoint-{step}").mkdir(parents=True)
        link_best(run, step)
    assert (run / "best").resolve() == (run / "checkpoint-20").resolve()
    moved = run.rename(tmp_path / "moved")
    assert (moved / "best").resolve() == (moved / "checkpoint-20").resolve()
    assert [path.name for path in checkpoints(moved)] == ["checkpoint-10", "checkpoint-20"]
