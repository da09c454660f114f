"""`swift-rlvr train` with our own trainer: file and flags, a small run with its continuation, and
mistakes.
"""

import os
from dataclasses import fields
from unittest.mock import Mock, patch

import pytest

pytest.importorskip("transformers", reason="needs the extra [train]")
from commands import WIDE, ran, refused
from paths import DATASETS
from swift_rlvr.cli import app
from swift_rlvr.evaluation.report.reading import read_run
from swift_rlvr.grpo import GRPOSettings, GRPOTrainer
from swift_rlvr.runs.folder import diverged
from swift_rlvr.training.arguments import read_command
from swift_rlvr.training.scratch import ScratchArguments
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.jsonl import read_json, read_jsonl
from typer.testing import CliRunner

pytestmark = pytest.mark.slow  # as a whole

COUNTDOWN = f"countdown:{DATASETS}/countdown/tiny_train.jsonl#20"
GSM8K = f"gsm8k:{DATASETS}/gsm8k/train.jsonl"
SMALL = ("--num_generations", 4, "--max-completion-length", 12, "--top_p", 1, "--top-k", 0)


def read(*words):
    command = read_command(list(map(str, words)))
    return command.parse((ScratchArguments, GRPOSettings))


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
    assert settings == GRPOSettings()
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
    assert arguments.reward_funcs == ["countdown", "format"] and settings.reward_weights == [
        1.0,
        -2.5,
    ]
    assert (arguments.model, arguments.use_hf, arguments.system) == ("tiny", True, "- Think.")
    assert (settings.learning_rate, settings.num_generations, settings.batch_size) == (5e-7, 8, 16)
    assert settings.epsilon_high is None and settings.max_steps == -1


def test_the_file_names_the_trainer_and_the_flag_wins(config):
    path = config("trainer: trl")
    assert read_command([path]).trainer == "trl"
    assert read_command([path, "--trainer", "scratch"]).trainer == "scratch"
    assert read_command([]).trainer == "scratch"


def test_variables_of_the_file_are_set_unless_they_are_set_already(config, monkeypatch):
    monkeypatch.setenv("RLVR_ONE", "mine")
    read_command([config("ENV: {RLVR_ONE: theirs, RLVR_TWO: 2}")])
    assert (os.environ["RLVR_ONE"], os.environ["RLVR_TWO"]) == ("mine", "2")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "num_generation: 8",
            "run.yaml: the trainer scratch has no setting 'num_generation'; the nearest is num_generations",
        ),
        (
            "xyzzy: 1",
            "no setting 'xyzzy'; `swift-rlvr train --trainer scratch --help` lists all",
        ),
        ("trainer: swift", "run.yaml: trainer must be one of scratch, trl, got 'swift'"),
        (
            "output_dir: out\nloss_type: ppo",
            "loss_type: must be one of grpo, dapo, dr_grpo, got 'ppo'",
        ),
        ("output_dir: out\nbeta: high", "beta: must be a finite number, got 'high'"),
        ("ENV: 3", "run.yaml: ENV: expected variables"),
        ("beta: [", "run.yaml: not YAML"),
        ("seed: 7", "the following arguments are required: --output_dir/--output-dir"),
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
    listed = " ".join(ran("train", "--trainer", "scratch", "--help").split())
    for each in (*fields(GRPOSettings), *fields(ScratchArguments)):
        assert f"--{each.name}" in listed
    assert "Completions for each prompt. (default: 8)" in listed


# Running


def test_a_run_and_its_continuation(tmp_path):
    out = tmp_path / "run"
    words = ("train", "--model", TINY_MODEL, "--dataset", COUNTDOWN, "--output_dir", out, "--beta", 0.01,
             "--reward_funcs", "countdown", "format", "--reward_weights", 1, 0.5, *SMALL)  # fmt: skip
    shown = ran(*words, "--max_steps", 2, columns=400)
    assert "20 rows, 2 updates with 8 completions in groups of 4, on cpu" in shown
    assert "step 2/2 success" in shown
    assert f"saved: {out}/checkpoint-2" in shown
    args = read_json(out / "checkpoint-2" / "args.json")
    assert args["trainer"] == "scratch" and args["reward_weights"] == [1.0, 0.5]
    assert args["reward_parameters"]["external_countdown"]["notation"] == "lenient"
    assert args["system"].startswith("You are a helpful assistant.")
    first = read_run(out).steps[0]
    means = (first[f"rewards/{name}/mean"] for name in ("CountdownReward", "FormatReward"))
    assert first["reward"] == pytest.approx(
        sum(weight * mean for weight, mean in zip((1, 0.5), means, strict=True))
    )

    words = (*words, "--max_steps", 2)
    assert (
        "holds another run (args.json, logging.jsonl, checkpoint-2); choose another folder"
        in refused(*words)
    )
    resume = ("--resume_from_checkpoint", "true")
    assert f"finished: {out}/checkpoint-2 is that of the last step" in ran(
        *words, *resume, columns=400
    )
    assert [step["step"] for step in read_run(out).steps] == [1, 2]
    for changed, problem in (
        (("--beta", 0.5), "beta was 0.01 and is 0.5"),
        (
            ("--dataset", GSM8K, "--reward_funcs", "format", "tag_count"),
            f"dataset was '{COUNTDOWN}' and is '{GSM8K}'",
        ),
    ):
        message = message_of(*words, *resume, *changed)
        assert "cannot be resumed with other settings: " in message and problem in message


def message_of(*words, code: int = 2) -> str:
    """As `refused`, where something was printed before."""
    result = CliRunner().invoke(app, list(map(str, words)), env=WIDE)
    assert result.exit_code == code, result.output
    return result.output


def test_gsm8k_with_the_recipes_rewards(tmp_path):
    rewards = ("external_format_strict", "external_tag_count", "external_accuracy")
    out = tmp_path / "run"
    words = (
        "--model",
        TINY_MODEL,
        "--dataset",
        f"{GSM8K}#4",
        "--output_dir",
        out,
        "--reward_funcs",
        *rewards,
        *SMALL,
    )
    ran(
        "train", *words, "--beta", 0, "--max_steps", 1, "--num_iterations", 2, "--loss_type", "dapo"
    )
    (step,) = read_run(out).steps
    assert {
        f"rewards/{name}Reward/mean" for name in ("FormatStrict", "TagCount", "Accuracy")
    } <= step.keys()
    assert all(
        line["reasons"]["external_accuracy"] for _, line in read_jsonl(out / "records.jsonl")
    )


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (
            diverged("run", 4, "the loss is nan"),
            3,
            "training has diverged at step 4: the loss is nan",
        ),
        (KeyboardInterrupt(), 130, "interrupted; there is no checkpoint yet"),
    ],
)
def test_how_a_run_that_breaks_off_ends(tmp_path, monkeypatch, error, code, message):
    monkeypatch.setattr(GRPOTrainer, "train", Mock(side_effect=error))
    words = (
        "--model",
        TINY_MODEL,
        "--dataset",
        COUNTDOWN,
        "--output_dir",
        tmp_path / "run",
        *SMALL,
    )
    assert message in message_of("train", *words, "--reward_funcs", "format", code=code)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["--temperature", 0], "--temperature: must be more than 0, got 0.0"),
        (
            ["--num_generations", 6],
            "--per_device_train_batch_size: times gradient_accumulation_steps must be a multiple",
        ),
        (
            ["--temprature", 1],
            "the trainer scratch has no setting 'temprature'; the nearest is temperature;",
        ),
        (["--reward_funcs", "luck"], "there is no reward 'luck'"),
        (
            ["--reward_weights", 1, 2],
            "--reward_weights: must be one for each of 1 rewards, got [1.0, 2.0]",
        ),
        (["--dataset", "countdown:gone.jsonl"], "--dataset: cannot read gone.jsonl"),
        (["--dataset", "countdown:empty.jsonl"], "--dataset: empty.jsonl: no rows"),
        (
            ["--dataset", COUNTDOWN.replace("#20", "#1")],
            "the dataset has 1 rows, too few for one step",
        ),
        (["--model", "./nowhere"], "--model: ./nowhere: cannot be loaded"),
        (["--max_completion_length", 2000], "--max_completion_length: must be at most 9"),
        (
            ["--resume_from_checkpoint", "true"],
            "--resume_from_checkpoint: true: expected true or a checkpoint in run",
        ),
    ],
)
def test_mistakes_name_the_flag(monkeypatch, tmp_path, changed, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.jsonl").touch()
    words = ["--model", TINY_MODEL, "--dataset", COUNTDOWN, "--output_dir", "run", *SMALL, *changed]
    if "--reward_funcs" not in changed:
        words += ["--reward_funcs", "countdown"]
    assert message in message_of("train", *words)
    assert not (tmp_path / "run").exists()
