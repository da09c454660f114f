"""Held-out evaluation in ms-swift's trainer: two ZeRO-3 ranks and the real rollout server.

A server that dies during an evaluation is in test_faults.py.
"""

import re

import pytest

from e2e.conftest import HELD_OUT
from swift_rlvr.runs.folder import whole_checkpoints
from swift_rlvr.runs.records import read_records
from swift_rlvr.utils.jsonl import read_json, read_jsonl

pytestmark = pytest.mark.e2e
ROWS = HELD_OUT["SWIFT_RLVR_HELD_OUT_ROWS"]
SAMPLES = HELD_OUT["SWIFT_RLVR_HELD_OUT_SAMPLES"]


def held_out_records(training):
    return list(read_records(training.output / "held_out.jsonl"))


def test_every_evaluation_is_logged_with_its_cost(curriculum):
    evaluations = curriculum.evaluations()
    assert list(evaluations) == [0, 2, 4, 6]
    for row in evaluations.values():
        assert 0 <= row["eval/strict"] <= row["eval/success"] <= row["eval/pass@2"] <= 1
        assert 0 <= row["eval/format"] <= 1
        assert 0 <= row["eval/cut_off"] <= 1
        assert 5 < row["eval/mean_length"] <= 64
        assert row["eval/tasks"] == ROWS
        assert row["eval/seconds"] > 0
    assert len(curriculum.steps()) == 6, "an evaluation takes no step's line"


def test_the_records_are_those_of_the_rows_in_order(curriculum):
    records = held_out_records(curriculum)
    expected = []
    for step in (0, 2, 4, 6):
        for index in range(ROWS):
            expected += [(step, index, sample) for sample in range(SAMPLES)]
    assert [(record.step, record.index, record.sample) for record in records] == expected


def test_the_completions_are_answers_to_their_rows(curriculum):
    dataset = HELD_OUT["SWIFT_RLVR_HELD_OUT_DATASET"].partition(":")[2]
    rows = [row for _, row in read_jsonl(dataset)][:ROWS]
    with_numbers_of_row = 0
    records = held_out_records(curriculum)
    for record in records:
        row = rows[record.index]
        assert {name: record.row[name] for name in ("nums", "target")} == row
        # The first equation after the line with <think>: only numbers of the row on its left side.
        equation = record.completion.partition("=")[0].partition("\n")[2]
        numbers = set(re.findall(r"\d+", equation))
        if record.step == 0 and numbers <= set(map(str, row["nums"])):
            with_numbers_of_row += 1
    assert with_numbers_of_row >= 0.8 * ROWS * SAMPLES


def test_the_figures_are_those_of_the_records(curriculum):
    records = held_out_records(curriculum)
    for step, row in curriculum.evaluations().items():
        of_step = [record for record in records if record.step == step]
        success = sum(record.success for record in of_step) / len(of_step)
        tokens = sum(record.tokens for record in of_step) / len(of_step)
        assert row["eval/success"] == pytest.approx(success)
        assert row["eval/mean_length"] == pytest.approx(tokens, abs=1e-6)


def test_the_training_goes_on_with_the_weights_that_the_evaluation_got(curriculum):
    """An evaluation sends the weights of its step; the next step needs no other, and samples from
    them.
    """
    for step in curriculum.steps():
        assert step["rollout_correction/k3_kl"] < 1e-5


def test_the_best_checkpoint_is_kept_and_known_to_the_trainer(curriculum):
    success = {step: row["eval/success"] for step, row in curriculum.evaluations().items() if step}
    best = max(success, key=success.__getitem__)
    checkpoint = curriculum.output / f"checkpoint-{best}"
    assert (curriculum.output / "best").resolve() == checkpoint
    last = read_json(whole_checkpoints(curriculum.output)[-1] / "trainer_state.json")
    assert last["best_global_step"] == best
    assert last["best_metric"] == pytest.approx(success[best])
    assert last["best_model_checkpoint"] == str(checkpoint)
    assert len(whole_checkpoints(curriculum.output)) <= 2


def test_a_checkpoint_knows_the_best(curriculum):
    state = read_json(whole_checkpoints(curriculum.output)[-1] / "trainer_state.json")
    memory = state["stateful_callbacks"]["swift_rlvr.held_out"]
    assert memory["evaluated"] == 6
    assert memory["best_step"] == state["best_global_step"]


def test_a_resumed_run_knows_its_best_and_its_patience(curriculum, continued_curriculum):
    assert list(continued_curriculum.evaluations()) == [8, 10]
    message = (
        "stopping at step 10: 2 held-out evaluations in a row are no better than the best, 1.100"
    )
    assert message in continued_curriculum.text
    before = read_json(whole_checkpoints(curriculum.output)[-1] / "trainer_state.json")
    last = read_json(whole_checkpoints(continued_curriculum.output)[-1] / "trainer_state.json")
    assert last["global_step"] == 10, "the end is saved, to go on from"
    assert last["best_global_step"] == before["best_global_step"]
