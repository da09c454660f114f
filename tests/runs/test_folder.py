"""The folder of a run: which run may write into it, which one may be resumed, and with which settings."""

import json
import pickle

import pytest
from swift_rlvr.errors import DivergedError, InputError
from swift_rlvr.runs.folder import (
    ARGS,
    LOG,
    check_same_settings,
    checkpoint_to_resume,
    checkpoints,
    diverged,
    training_args,
)


@pytest.fixture
def run(tmp_path):
    """The folder of a run with three checkpoints, and things that are none."""
    for name in ("checkpoint-2", "checkpoint-10", "checkpoint-4", "checkpoint-10.part", "checkpoint-best"):
        (tmp_path / name).mkdir()
    (tmp_path / ARGS).write_text(json.dumps({"beta": 0.04, "model": "a", "save_steps": 5, "rewards": {"x": {"n": 1}}}))
    return tmp_path


def test_checkpoints_are_in_the_order_of_their_steps(run):
    assert [path.name for path in checkpoints(run)] == ["checkpoint-2", "checkpoint-4", "checkpoint-10"]
    assert checkpoints(run / "nowhere") == []


def test_a_new_run_needs_a_folder_without_another(run, tmp_path_factory):
    empty = tmp_path_factory.mktemp("empty")
    assert checkpoint_to_resume(empty, None) is None
    assert checkpoint_to_resume(empty / "deeper", "false") is None
    with pytest.raises(InputError, match=r"output_dir .*holds another run \(args.json, checkpoint-2, checkpoint-4\)"):
        checkpoint_to_resume(run, None)
    (empty / LOG).touch()
    with pytest.raises(InputError, match=r"holds another run \(logging.jsonl\).*--resume_from_checkpoint true"):
        checkpoint_to_resume(empty, None)
    with pytest.raises(InputError, match="output_dir .*is a file, expected a folder"):
        checkpoint_to_resume(empty / LOG, None)


def test_a_run_goes_on_from_its_last_checkpoint_or_a_named_one(run, tmp_path_factory):
    assert checkpoint_to_resume(run, "true") == run / "checkpoint-10"
    assert checkpoint_to_resume(run, f"{run}/../{run.name}/checkpoint-4/") == run / "checkpoint-4"
    with pytest.raises(InputError, match=r"resume_from_checkpoint .*/checkpoint-3: expected true or a checkpoint in"):
        checkpoint_to_resume(run, str(run / "checkpoint-3"))
    with pytest.raises(InputError, match="resume_from_checkpoint true: expected .*; there is none"):
        checkpoint_to_resume(tmp_path_factory.mktemp("empty"), "true")


def test_settings_that_change_the_result_must_stay(run):
    same = {"beta": 0.04, "model": "a", "rewards": {"x": {"n": 1}}}
    check_same_settings(run / "checkpoint-2", {**same, "save_steps": 7, "output_dir": "elsewhere"})
    with pytest.raises(InputError, match=r"other settings: beta was 0\.04 and is 0\.1; rewards\.x\.n was 1 and is 2$"):
        check_same_settings(run / "checkpoint-2", {**same, "beta": 0.1, "rewards": {"x": {"n": 2}}})
    with pytest.raises(InputError, match="seed was None and is 7"):
        check_same_settings(run, {**same, "seed": 7})


def test_the_args_of_a_checkpoint_are_its_own_or_those_of_its_run(run):
    assert training_args(run / "checkpoint-4")[0] == run / ARGS
    (run / "checkpoint-4" / ARGS).write_text("{}")
    assert training_args(run / "checkpoint-4") == (run / "checkpoint-4" / ARGS, {})
    assert training_args(run / "checkpoint-4" / "a" / "b") is None


def test_divergence_names_step_sign_and_what_is_left(run, tmp_path_factory):
    error = diverged(run, 12, "the loss is nan")
    assert not isinstance(error, ValueError)
    assert str(error).startswith("training has diverged at step 12: the loss is nan; a smaller learning_rate")
    assert str(error).endswith(f"the last checkpoint is {run / 'checkpoint-10'}")
    assert "there is no checkpoint yet" in str(diverged(tmp_path_factory.mktemp("empty"), 1, "the loss is nan"))
    assert type(pickle.loads(pickle.dumps(error))) is DivergedError
