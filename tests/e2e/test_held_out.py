"""Held-out evaluation and alarms in ms-swift's trainer: two ZeRO-3 ranks and the real rollout
server.
"""

import json
import re
import signal
from pathlib import Path

import pytest
from paths import DATASETS
from swift_rlvr.runs.folder import whole_checkpoints
from swift_rlvr.runs.records import read_records
from swift_rlvr.utils.jsonl import read_json, read_jsonl

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
COUNTDOWN = DATASETS / "countdown"
ROWS, SAMPLES, EVERY, STEPS = 9, 3, 2, 6  # 27 completions, which two ranks cannot share evenly
SETTINGS = {
    "SWIFT_RLVR_HELD_OUT_DATASET": f"countdown:{COUNTDOWN / 'tiny_validation.jsonl'}",
    "SWIFT_RLVR_HELD_OUT_ROWS": ROWS,
    "SWIFT_RLVR_HELD_OUT_SAMPLES": SAMPLES,
    "SWIFT_RLVR_HELD_OUT_EVERY": EVERY,
}
FLAGS = [
    *("--callbacks", "reward_reasons", "held_out", "--save_strategy", "steps", "--save_steps", 100),
    *(
        "--save_total_limit",
        2,
        "--log_rollout_offpolicy_metrics",
        "true",
        "--log_completions",
        "true",
    ),
    *("--max_completion_length", 64),
]


def start(server, folder: Path, *flags: object, **variables: object):
    env = {name: str(value) for name, value in (SETTINGS | variables).items()}
    return server.trainer(folder, *map(str, [*FLAGS, *flags]), env=env)


def rows_of(output: Path) -> list[dict]:
    return [row for _, row in read_jsonl(output / "logging.jsonl")]


def evaluations(output: Path) -> dict[int, dict]:
    return {
        int(row["global_step/max_steps"].split("/")[0]): row
        for row in rows_of(output)
        if "eval/success" in row
    }


@pytest.fixture(scope="module")
def finished(_servers, tmp_path_factory) -> Path:
    """The output of a run that evaluates before its first step and after every second."""
    folder = tmp_path_factory.mktemp("held_out")
    run = start(_servers(), folder, "--max_steps", STEPS)
    try:
        assert run.finish(400) == 0, run.text()[-4000:]
    finally:
        run.kill_if_alive()
    return folder / "output"


def test_every_evaluation_is_logged_with_its_cost(finished):
    logged = evaluations(finished)
    assert list(logged) == [0, 2, 4, 6]
    for row in logged.values():
        assert 0 <= row["eval/strict"] <= row["eval/success"] <= row["eval/pass@2"] <= 1
        assert 0 <= row["eval/format"] <= 1 and 0 <= row["eval/cut_off"] <= 1
        assert 5 < row["eval/mean_length"] <= 64 and row["eval/tasks"] == ROWS
        assert 0 < row["eval/seconds"] < 60
    assert len([row for row in rows_of(finished) if "reward" in row]) == STEPS, (
        "an evaluation takes no step's line"
    )


def test_the_records_are_those_of_the_rows_in_order(finished):
    records = list(read_records(finished / "held_out.jsonl"))
    assert [(each.step, each.index, each.sample) for each in records] == [
        (step, i, k) for step in (0, 2, 4, 6) for i in range(ROWS) for k in range(SAMPLES)
    ]
    wanted = [row for _, row in read_jsonl(COUNTDOWN / "tiny_validation.jsonl")][:ROWS]
    fitting = 0
    for record in records:
        assert {name: record.row[name] for name in ("nums", "target")} == wanted[record.index]
        numbers = set(re.findall(r"\d+", record.completion.partition("=")[0].partition("\n")[2]))
        fitting += record.step == 0 and numbers <= set(map(str, wanted[record.index]["nums"]))
    assert fitting >= 0.8 * ROWS * SAMPLES, (
        "the model uses the numbers of its row: these are answers to other rows"
    )
    for step, row in evaluations(finished).items():
        own = [record for record in records if record.step == step]
        assert row["eval/success"] == pytest.approx(
            sum(record.success for record in own) / len(own)
        )
        assert row["eval/mean_length"] == pytest.approx(
            sum(record.tokens for record in own) / len(own), abs=1e-6
        )


def test_the_training_goes_on_with_the_weights_that_the_evaluation_got(finished):
    """An evaluation sends the weights of its step; the next step needs no other, and samples from
    them.
    """
    for row in rows_of(finished):
        if "reward" in row:
            assert row["rollout_correction/k3_kl"] < 1e-5


def test_the_best_checkpoint_is_kept_and_known_to_the_trainer(finished):
    logged = evaluations(finished)
    best = max((step for step in logged if step), key=lambda step: logged[step]["eval/success"])
    assert (finished / "best").resolve() == finished / f"checkpoint-{best}"
    last = read_json(whole_checkpoints(finished)[-1] / "trainer_state.json")
    assert last["best_global_step"] == best and last["best_metric"] == pytest.approx(
        logged[best]["eval/success"]
    )
    assert last["best_model_checkpoint"] == str(finished / f"checkpoint-{best}")
    assert len(whole_checkpoints(finished)) <= 2


def test_a_resumed_run_knows_its_best_and_its_patience(finished, rollout_server, tmp_path):
    """Nothing is better than a best of 1.1: the run saves no new best, and its patience of two ends
    it at step 10.
    """
    checkpoint = whole_checkpoints(finished)[-1]
    state = read_json(checkpoint / "trainer_state.json")
    memory = state["stateful_callbacks"]["swift_rlvr.held_out"]
    assert memory["evaluated"] == STEPS and memory["best_step"] == state["best_global_step"]
    memory["best"], memory["without_best"] = 1.1, 0
    (checkpoint / "trainer_state.json").write_text(json.dumps(state))
    run = start(
        rollout_server,
        tmp_path,
        "--max_steps",
        40,
        "--resume_from_checkpoint",
        checkpoint,
        SWIFT_RLVR_HELD_OUT_PATIENCE=2,
    )
    try:
        assert run.finish(400) == 0, run.text()[-4000:]
    finally:
        run.kill_if_alive()
    assert list(evaluations(tmp_path / "output")) == [8, 10]
    assert (
        "stopping at step 10: 2 held-out evaluations in a row are no better than the best, 1.100"
        in run.text()
    )
    state = read_json(whole_checkpoints(tmp_path / "output")[-1] / "trainer_state.json")
    assert state["global_step"] == 10, "the end is saved, to go on from"
    assert state["best_global_step"] == memory["best_step"]


def test_an_alarm_is_said_and_ends_a_run_that_asked_for_it(rollout_server, tmp_path):
    """At this learning rate nothing is left of the model: all completions are cut off, or none gets
    a reward.
    """
    run = start(
        rollout_server, tmp_path, "--max_steps", 60, "--learning_rate", "0.1", "--max_grad_norm", "100",
        "--save_strategy", "no", SWIFT_RLVR_STOP_ON_ALARM=1,
    )  # fmt: skip
    try:
        assert run.finish(600) == 0, run.text()[-4000:]
    finally:
        run.kill_if_alive()
    (first, *_) = [row for _, row in read_jsonl(tmp_path / "output" / "alarms.jsonl")]
    assert first["message"] in run.text() and len(first["completions"]) == 3
    assert f"stopping at step {first['step']} because of an alarm: {first['kind']}" in run.text()
    steps = [row for row in rows_of(tmp_path / "output") if "reward" in row]
    assert first["step"] <= len(steps) <= first["step"] + 1 < 60
    assert not (tmp_path / "output" / "best").exists(), "no checkpoint was asked for"


def test_a_server_that_dies_during_an_evaluation_ends_the_run(_servers, rollout_server, tmp_path):
    """As in the training: rank 0 fails, and the other rank does not wait for it. The next test gets
    a new server.
    """
    run = start(
        rollout_server,
        tmp_path,
        "--max_steps",
        500,
        SWIFT_RLVR_HELD_OUT_ROWS=80,
        SWIFT_RLVR_HELD_OUT_EVERY=1,
    )
    try:
        log = tmp_path / "output" / "held_out.jsonl"
        run.wait_for(log.exists, 300, "the first evaluation")
        rollout_server.run.process.send_signal(signal.SIGKILL)
        for process in rollout_server.run.family():
            process.kill()
        assert run.finish(120) != 0
    finally:
        run.kill_if_alive()
    assert "Connection" in run.text()
