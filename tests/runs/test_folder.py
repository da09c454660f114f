"""The folder of a run: which run may write into it, which one may be resumed, and with which
settings.
"""

import json
import pickle
import shutil
import zipfile
from pathlib import Path

import pytest

from present import present
from swift_rlvr.runs.folder import (
    ARGS,
    LOG,
    check_same_settings,
    checkpoint_to_resume,
    checkpoints,
    decided_otherwise,
    diverged,
    is_finished,
    missing,
    training_args,
    whole_checkpoints,
)
from swift_rlvr.utils.errors import DivergedError, InputError
from swift_rlvr.utils.jsonl import write_json


@pytest.fixture
def run(tmp_path):
    """The folder of a run with three checkpoints, and things that are none."""
    for name in (
        "checkpoint-2",
        "checkpoint-10",
        "checkpoint-4",
        "checkpoint-10.part",
        "checkpoint-best",
    ):
        (tmp_path / name).mkdir()
    (tmp_path / ARGS).write_text(
        json.dumps({"beta": 0.04, "model": "a", "save_steps": 5, "rewards": {"x": {"n": 1}}})
    )
    return tmp_path


def test_checkpoints_are_in_the_order_of_their_steps(run):
    assert [path.name for path in checkpoints(run)] == [
        "checkpoint-2",
        "checkpoint-4",
        "checkpoint-10",
    ]
    assert checkpoints(run / "nowhere") == []


def test_a_new_run_needs_a_folder_without_another(run, tmp_path_factory):
    empty = tmp_path_factory.mktemp("empty")
    assert checkpoint_to_resume(empty, None) is None
    assert checkpoint_to_resume(empty / "deeper", "false") is None
    with pytest.raises(
        InputError,
        match=r"output_dir: .*holds another run \(args.json, checkpoint-2, checkpoint-4\)",
    ):
        checkpoint_to_resume(run, None)
    (empty / ARGS).write_text("{}")
    (empty / LOG).write_text('{"eval/success": 0.1, "global_step/max_steps": "0/4"}\n')
    assert checkpoint_to_resume(empty, None) is None  # an attempt that made no step
    with (empty / LOG).open("a") as log:
        log.write('{"reward": 0.1, "global_step/max_steps": "1/4"}\n')
    with pytest.raises(
        InputError,
        match=r"holds another run \(args.json, logging.jsonl\).*--resume_from_checkpoint true",
    ):
        checkpoint_to_resume(empty, None)
    with pytest.raises(InputError, match="output_dir: .*is a file, expected a folder"):
        checkpoint_to_resume(empty / LOG, None)


@pytest.mark.parametrize(
    ("settings", "finished"),
    [
        ({"max_steps": 60}, True),
        ({"max_steps": "61"}, False),
        ({"max_steps": 50}, True),
        ({"num_train_epochs": 2}, True),
        ({"num_train_epochs": 3}, False),
        ({"max_steps": -1, "num_train_epochs": 2.0}, True),
    ],
)
def test_whether_a_run_is_finished(tmp_path, settings, finished):
    state = {"global_step": 60, "max_steps": 60, "num_train_epochs": 2}
    (tmp_path / "trainer_state.json").write_text(json.dumps(state))
    assert is_finished(tmp_path, settings) is finished
    (tmp_path / "trainer_state.json").write_text(json.dumps({**state, "global_step": 40}))
    assert is_finished(tmp_path, {**settings, "max_steps": 60}) is False


def test_a_run_goes_on_from_its_last_checkpoint_or_a_named_one(run, tmp_path_factory):
    assert checkpoint_to_resume(run, "true") == run / "checkpoint-10"
    assert checkpoint_to_resume(run, f"{run}/../{run.name}/checkpoint-4/") == run / "checkpoint-4"
    with pytest.raises(
        InputError,
        match=r"resume_from_checkpoint: .*/checkpoint-3: expected true or a checkpoint in",
    ):
        checkpoint_to_resume(run, str(run / "checkpoint-3"))
    with pytest.raises(
        InputError, match="resume_from_checkpoint: true: expected .*; available: none"
    ):
        checkpoint_to_resume(tmp_path_factory.mktemp("empty"), "true")


def test_settings_that_change_the_result_must_stay(run):
    same = {"beta": 0.04, "model": "a", "rewards": {"x": {"n": 1}}}
    check_same_settings(run / "checkpoint-2", {**same, "save_steps": 7, "output_dir": "elsewhere"})
    with pytest.raises(
        InputError,
        match=r"other settings: beta was 0\.04 and is 0\.1; rewards\.x\.n was 1 and is 2$",
    ):
        check_same_settings(run / "checkpoint-2", {**same, "beta": 0.1, "rewards": {"x": {"n": 2}}})
    with pytest.raises(InputError, match="seed was None and is 7"):
        check_same_settings(run, {**same, "seed": 7})


@pytest.mark.parametrize(
    ("settings", "changes"),
    [
        ({"beta": "1e-3", "reward_funcs": "format", "dataset": ["math:a.jsonl"]}, []),
        ({"beta": 0.5}, ["beta was 0.001 and is 0.5"]),
        ({"reward_funcs": ["format", "code"]}, ["reward_funcs was format and is format, code"]),
        ({"epsilon_high": 0.28}, ["epsilon_high was not set and is 0.28"]),
        ({"save_steps": 7, "unknown": 1}, []),
        ({"max_steps": 200}, ["max_steps was 100 and is 200"]),
        ({"ignore_data_skip": True}, ["ignore_data_skip begins the epoch's rows anew"]),
        ({"resume_only_model": True}, ["resume_only_model begins with a new optimizer"]),
    ],
)
def test_settings_that_decide_what_is_learned_are_compared(tmp_path, settings, changes):
    args = {"beta": 0.001, "reward_funcs": ["format"], "dataset": ["math:a.jsonl"]}
    batch = {
        "global_world_size": 2,
        "per_device_train_batch_size": 8,
        "gradient_accumulation_steps": 4,
    }
    others = {"epsilon_high": None, "save_steps": 5, "max_steps": 100}
    write_json(tmp_path / "args.json", args | batch | others)
    (tmp_path / "checkpoint-1").mkdir()
    assert decided_otherwise(tmp_path / "checkpoint-1", settings, completions=64) == changes
    (of_batch,) = decided_otherwise(tmp_path / "checkpoint-1", args, completions=128)
    assert of_batch.startswith("a step had 64 completions and has 128")


def test_the_args_of_a_checkpoint_are_its_own_or_those_of_its_run(run):
    assert present(training_args(run / "checkpoint-4"))[0] == run / ARGS
    (run / "checkpoint-4" / ARGS).write_text("{}")
    assert training_args(run / "checkpoint-4") == (run / "checkpoint-4" / ARGS, {})
    assert training_args(run / "checkpoint-4" / "a" / "b") is None


def test_divergence_names_step_sign_and_what_is_left(run, tmp_path_factory):
    error = diverged(run, 12, "the loss is nan")
    assert not isinstance(error, ValueError)
    assert str(error).startswith(
        "training has diverged at step 12: the loss is nan; a smaller learning_rate"
    )
    assert str(error).endswith(f"the last checkpoint is {run / 'checkpoint-10'}")
    assert "there is no checkpoint yet" in str(
        diverged(tmp_path_factory.mktemp("empty"), 1, "the loss is nan")
    )
    assert type(pickle.loads(pickle.dumps(error))) is DivergedError


def save(path: Path, deepspeed: bool) -> None:
    """A checkpoint with the files that transformers writes, with DeepSpeed's of two ranks or
    without.
    """
    path.mkdir()
    names = ["optimizer.pt", "scheduler.pt", "rng_state.pth"]
    if deepspeed:
        (path / ARGS).write_text('{"global_world_size": 2}')
        (path / "global_step4").mkdir()
        (path / "latest").write_text("global_step4")
        names = ["scheduler.pt", "rng_state_0.pth", "rng_state_1.pth"]
        for rank in (0, 1):
            names += [
                f"global_step4/zero_pp_rank_{rank}_mp_rank_00_{kind}_states.pt"
                for kind in ("model", "optim")
            ]
    for name in names:
        with zipfile.ZipFile(path / name, "w") as file:  # as torch.save's are
            file.writestr("data", bytes(100))
    header = {"weight": {"dtype": "F32", "shape": [25], "data_offsets": [0, 100]}}
    text = json.dumps({**header, "__metadata__": {"format": "pt"}}).encode()
    weights = len(text).to_bytes(8, "little") + text + bytes(100)
    (path / "model.safetensors").write_bytes(weights)
    (path / "trainer_state.json").write_text(
        json.dumps({"global_step": int(path.name.rpartition("-")[2])})
    )


@pytest.mark.parametrize("deepspeed", [True, False])
def test_a_checkpoint_without_the_end_of_any_of_its_files_is_not_whole(tmp_path, deepspeed):
    save(tmp_path / "checkpoint-4", deepspeed)
    save(tmp_path / "checkpoint-8", deepspeed)
    assert whole_checkpoints(tmp_path) == [tmp_path / "checkpoint-4", tmp_path / "checkpoint-8"]
    files = [path for path in (tmp_path / "checkpoint-8").rglob("*.*") if path.name != ARGS]
    assert len(files) == (9 if deepspeed else 5)
    for file in files:
        text = file.read_bytes()
        for kept in (0, len(text) // 2, len(text) - 1):
            file.write_bytes(text[:kept])
            assert whole_checkpoints(tmp_path) == [tmp_path / "checkpoint-4"], file
            assert file.name in present(missing(tmp_path / "checkpoint-8"))
        file.write_bytes(text)
    assert missing(tmp_path / "checkpoint-8") is None


def test_the_last_checkpoint_to_resume_from_is_a_whole_one(tmp_path):
    save(tmp_path / "checkpoint-4", False)
    save(tmp_path / "checkpoint-8", False)
    assert checkpoint_to_resume(tmp_path, "true") == tmp_path / "checkpoint-8"
    (tmp_path / "checkpoint-8" / "model.safetensors").write_bytes(b"")
    assert checkpoint_to_resume(tmp_path, "true") == tmp_path / "checkpoint-4"
    # Of weights alone transformers goes on too.
    for path in tmp_path.glob("checkpoint-*"):
        (path / "optimizer.pt").unlink()
    assert checkpoint_to_resume(tmp_path, "true") == tmp_path / "checkpoint-8"


@pytest.mark.parametrize(
    ("name", "deepspeed"),
    [
        *(
            (name, True)
            for name in ("trainer_state.json", "latest", "rng_state_1.pth", "global_step4")
        ),
        *((name, False) for name in ("optimizer.pt", "rng_state.pth")),
    ],
)
def test_a_checkpoint_without_one_of_its_files_is_not_whole(tmp_path, name, deepspeed):
    path = tmp_path / "checkpoint-4"
    save(path, deepspeed)
    shutil.rmtree(path / name) if (path / name).is_dir() else (path / name).unlink()
    assert whole_checkpoints(tmp_path) == []


def test_of_weights_alone_no_run_goes_on(tmp_path):
    save(tmp_path / "checkpoint-4", False)
    for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth"):
        (tmp_path / "checkpoint-4" / name).unlink()
    assert "save_only_model" in present(missing(tmp_path / "checkpoint-4"))


def test_ranks_without_deepspeed_have_random_numbers_each(tmp_path):
    path = tmp_path / "checkpoint-4"
    save(path, False)
    (path / ARGS).write_text('{"global_world_size": 2}')
    (path / "rng_state.pth").rename(path / "rng_state_0.pth")
    assert missing(path) == "rng_state_1.pth"
    shutil.copy(path / "rng_state_0.pth", path / "rng_state_1.pth")
    assert missing(path) is None
