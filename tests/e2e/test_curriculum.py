"""A curriculum in ms-swift's trainer: two ZeRO-3 ranks, the real rollout server, workers of the
dataloader.
"""

import json

import pytest

from curriculum_replay import assert_drawn_by_level
from e2e.conftest import LEVELS
from swift_rlvr.runs.folder import whole_checkpoints
from swift_rlvr.utils.jsonl import read_json, read_jsonl

pytestmark = pytest.mark.e2e


def test_two_ranks_draw_what_the_rule_says_and_go_on_so_after_a_checkpoint(
    curriculum, continued_curriculum
):
    rows = [row for _, row in read_jsonl(LEVELS)]
    folders = [curriculum.output, continued_curriculum.output]
    replayed = assert_drawn_by_level(folders, rows, generations=4)
    assert replayed.batches == 10
    checkpoint = whole_checkpoints(continued_curriculum.output)[-1]
    state = read_json(checkpoint / "trainer_state.json")
    saved = state["stateful_callbacks"]["swift_rlvr.curriculum"]
    assert saved == json.loads(json.dumps(replayed.state()))
