"""A curriculum in ms-swift's trainer: two ZeRO-3 ranks, the real rollout server, workers of the
dataloader.
"""

import json

import pytest
from curriculum_replay import assert_drawn_by_level
from paths import DATASETS
from swift_rlvr.runs.folder import whole_checkpoints
from swift_rlvr.utils.jsonl import read_json, read_jsonl

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
LEVELS = DATASETS / "countdown" / "tiny_levels_train.jsonl"
FLAGS = [
    *(
        "--dataset",
        f"countdown:{LEVELS}",
        "--dataset_shuffle",
        "false",
        "--dataloader_num_workers",
        "2",
    ),
    *(
        "--callbacks",
        "reward_reasons",
        "curriculum",
        "--log_completions",
        "true",
        "--max_completion_length",
        "64",
    ),
    *("--save_strategy", "steps", "--save_steps", "3"),
]


def test_two_ranks_draw_what_the_rule_says_and_go_on_so_after_a_checkpoint(
    rollout_server, tmp_path
):
    rows = [row for _, row in read_jsonl(LEVELS)]
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    run = rollout_server.trainer(first, *FLAGS, "--max_steps", "3")
    try:
        assert run.finish(400) == 0, run.text()[-4000:]
    finally:
        run.kill_if_alive()
    (checkpoint,) = whole_checkpoints(first / "output")
    run = rollout_server.trainer(
        second, *FLAGS, "--max_steps", "6", "--resume_from_checkpoint", str(checkpoint)
    )
    try:
        assert run.finish(400) == 0, run.text()[-4000:]
    finally:
        run.kill_if_alive()
    curriculum = assert_drawn_by_level([first / "output", second / "output"], rows, generations=4)
    state = read_json(whole_checkpoints(second / "output")[-1] / "trainer_state.json")
    assert state["stateful_callbacks"]["swift_rlvr.curriculum"] == json.loads(
        json.dumps(curriculum.state())
    )
    assert curriculum.batches == 6


def test_rows_without_a_level_end_the_run_before_its_first_step(rollout_server, tmp_path):
    other = f"countdown:{DATASETS / 'countdown' / 'tiny_train.jsonl'}"
    run = rollout_server.trainer(tmp_path, *FLAGS, "--dataset", other, "--max_steps", "2")
    try:
        assert run.finish(300) == 1
    finally:
        run.kill_if_alive()
    assert (
        "curriculum needs the column 'level' with a whole number in every row, got None in row 1"
        in run.text()
    )
