"""`swift-rlvr train` with TRL: file and flags, help, and how a run ends that breaks off."""

import os
from pathlib import Path
from unittest.mock import Mock, patch

import pytest

pytest.importorskip("trl", reason="needs the extra [trl]")
from typer.testing import CliRunner, Result

from commands import WIDE, ran
from swift_rlvr.cli.app import app
from swift_rlvr.runs.folder import diverged
from swift_rlvr.training import trl
from swift_rlvr.training.arguments import read_command
from swift_rlvr.utils.errors import InputError

pytestmark = pytest.mark.slow  # as a whole


def read(*words):
    arguments, settings, _, _ = trl.read(read_command(list(map(str, words))))
    return arguments, settings


@pytest.fixture
def config(tmp_path):
    """Writes a file with settings, and leaves the environment as it was."""

    def write(text: str) -> str:
        (tmp_path / "run.yaml").write_text(
            f"model: tiny\ndataset: gsm8k\nreward_funcs: [accuracy]\n{text}\n"
        )
        return str(tmp_path / "run.yaml")

    with patch.dict(os.environ):
        yield write


# What is read


def test_a_run_without_settings_has_the_defaults():
    arguments, settings = read(
        "--model", "tiny", "--dataset", "gsm8k", "--reward_funcs", "format", "--output_dir", "out"
    )
    default = trl.GRPOConfig(output_dir="out", use_cpu=True, bf16=False)
    for name in ("num_generations", "learning_rate", "beta", "epsilon", "save_steps", "report_to"):
        assert getattr(settings, name) == getattr(default, name), name
    assert (arguments.system, arguments.use_hf) == (None, False)


def test_flags_override_the_file_with_dashes_or_underscores(config):
    path = config(
        "output_dir: out\nlearning_rate: 5e-7\nnum_generations: 16\nuse_hf: true\nreward_weights: [0.5]\n"
        "system: '- Think.'\nepsilon_high:\ngradient_accumulation_steps: 4"
    )
    arguments, settings = read(
        path, "--num-generations", 8, "--reward_funcs", "countdown", "format", "--reward-weights", 1, "-2.5",
        "--max_steps=-1",
    )  # fmt: skip
    assert arguments.reward_funcs == ["countdown", "format"]
    assert settings.reward_weights == [1.0, -2.5]
    assert (arguments.model, arguments.use_hf, arguments.system) == ("tiny", True, "- Think.")
    assert (settings.learning_rate, settings.num_generations) == (5e-7, 8)
    assert settings.gradient_accumulation_steps == 4
    assert settings.epsilon_high is None and settings.max_steps == -1


@pytest.mark.parametrize("words", [["--use_hf", 1], ["--use_hf", "true"], ["--use_hf"]])
def test_a_switch_is_on_with_what_stands_for_true(words):
    arguments, _ = read(
        "--model", 7, "--dataset", "gsm8k", "--reward_funcs", "format", "boxed", "--output_dir", "out", *words
    )  # fmt: skip
    assert arguments.use_hf is True
    assert arguments.model == "7" and arguments.reward_funcs == ["format", "boxed"]


def test_the_trainer_is_trl_and_that_from_scratch_is_a_script(config):
    assert read_command([config("trainer: trl")]).trainer == read_command([]).trainer == "trl"
    for words in ([config("trainer: scratch")], ["--trainer", "scratch"]):
        with pytest.raises(InputError, match="python scripts/grpo_from_scratch.py"):
            read_command(words)


def test_variables_of_the_file_are_set_unless_they_are_set_already(config, monkeypatch):
    monkeypatch.setenv("RLVR_ONE", "mine")
    read_command([config("ENV: {RLVR_ONE: theirs, RLVR_TWO: 2}")])
    assert (os.environ["RLVR_ONE"], os.environ["RLVR_TWO"]) == ("mine", "2")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "num_generation: 8",
            "run.yaml: the trainer trl has no setting 'num_generation'; the nearest is num_generations",
        ),
        (
            "cosine_min_value_correct: 0.5",
            "; open-r1's cosine_min_value_correct is EXTERNAL_COSINE_MAX_LEN_VALUE_CORRECT here",
        ),
        ("soft_cache_length: 9", "'s soft_cache_length is EXTERNAL_SOFT_OVERLONG_CACHE_LENGTH"),
        ("xyzzy: 1", "no setting 'xyzzy'; `swift-rlvr train --trainer trl --help` lists all"),
        ("trainer: swift", "run.yaml: trainer: must be trl, got 'swift'"),
        (
            "output_dir: out\nlr_scheduler_type: zigzag",
            "lr_scheduler_type: must be one of linear, cosine",
        ),
        ("output_dir: out\nnum_generations: 2.5", "num_generations: must be a whole number"),
        ("output_dir: out\ntemperature: 0", "temperature: must be more than 0, got 0.0"),
        ("output_dir: out\nheld_out_rows: 0", "held_out_rows: must be at least 1, got 0"),
        ("output_dir: out\nbeta: high", "beta: must be a finite number, got 'high'"),
        ("ENV: 3", "run.yaml: ENV: expected variables"),
        ("beta: [", "run.yaml: not YAML"),
        ("seed: 7", "output_dir: is required: the folder for the model"),
        ("output_dir: out\nmodel:", "model: is required: Model folder, hub id"),
    ],
)
def test_mistakes_in_the_file_are_named(config, text, problem):
    with pytest.raises(InputError) as raised:
        read(config(text))
    assert problem in str(raised.value)


def test_a_file_that_is_no_settings_or_not_there(tmp_path):
    (tmp_path / "list.yaml").write_text("- a\n")
    with pytest.raises(InputError, match="expected settings, such as `num_generations: 8`"):
        read(tmp_path / "list.yaml")
    with pytest.raises(InputError, match="cannot read gone.yaml: No such file"):
        read("gone.yaml")


def test_help_tells_how_and_with_a_trainer_lists_all_settings():
    assert "--resume_from_checkpoint true" in ran("train", "--help")
    listed = " ".join(ran("train", "--trainer", "trl", "--help").split())
    for setting in ("reward_funcs", "num_generations", "held_out_every", "learning_rate"):
        assert f"--{setting}" in listed
    assert "Names of rewards, with or without external_. (required)" in listed
    assert (
        "Steps between evaluations. There is also one before the first step and one after the last"
        in listed
    )


# Running: tests/training/test_trl.py has real runs.


def dry_run(folder: Path, *words: str) -> Result:
    """`DRY_RUN=1 swift-rlvr train trl` on a file of eight rows, with other flags after it."""
    (folder / "rows.jsonl").write_text('{"problem": "1 + 1?", "answer": "2"}\n' * 8)
    given = ["--dataset", f"math:{folder / 'rows.jsonl'}", "--reward_funcs", "external_accuracy"]
    given += ["--output_dir", str(folder / "run"), *words]
    env = {**WIDE, "DRY_RUN": "1", "CUDA_VISIBLE_DEVICES": ""}
    result = CliRunner().invoke(app, ["train", "trl", *given], env=env)
    assert not (folder / "run").exists()
    return result


@pytest.mark.slow
def test_a_dry_run_reads_dataset_and_rewards_as_the_training_does(tmp_path):
    (tmp_path / "unusable.jsonl").write_text('{"problem": "1 + 1?", "answer": null}\n' * 8)
    result = dry_run(tmp_path)
    assert result.exit_code == 0 and "swift-rlvr train" in result.stdout, result.output
    refused = [
        (("--dataset", "math:nix.jsonl"), "Error: --dataset: cannot read nix.jsonl"),
        (("--dataset", f"math:{tmp_path / 'unusable.jsonl'}"), "Error: --dataset: "),
        (("--reward_funcs", "nix.py:f"), "Error: --reward_funcs: there is no file nix.py"),
        (("--reward_funcs", "external_countdown"), "Error: --reward_funcs: external_countdown"),
        (("--reward_funcs", "nope"), "Error: --reward_funcs: there is no reward 'nope'"),
    ]
    for words, message in refused:
        result = dry_run(tmp_path, *words)
        assert result.exit_code == 2 and message in result.output, result.output
        assert "swift-rlvr train" not in result.stdout  # no command that would fail
    result = dry_run(tmp_path, "--dataset", "gsm8k")
    assert result.exit_code == 0
    assert "gsm8k is on a hub: DRY_RUN downloads nothing" in result.output


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (
            diverged("run", 4, "the loss is nan"),
            3,
            "training has diverged at step 4: the loss is nan",
        ),
        (KeyboardInterrupt(), 130, "interrupted; there is no checkpoint yet"),
        (InputError("must be more than 0", "temperature"), 2, "--temperature: must be more than 0"),
    ],
)
def test_how_a_run_that_breaks_off_ends(tmp_path, monkeypatch, error, code, message):
    monkeypatch.setattr(trl, "run", Mock(side_effect=error))
    words = ["train", "--trainer", "trl", "--output_dir", str(tmp_path / "run")]
    result = CliRunner().invoke(app, [*words, "--reward_funcs", "format"], env=WIDE)
    assert result.exit_code == code, result.output
    assert message in result.output
