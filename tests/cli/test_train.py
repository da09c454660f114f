"""`swift-rlvr train` and scripts/train_from_scratch.sh: flags, a small run with its continuation, and mistakes."""

import sys
from dataclasses import fields
from pathlib import Path

import pytest
from helpers import flags
from helpers import run as run_script
from swift_rlvr.cli import app as cli
from swift_rlvr.cli.train import PANELS
from swift_rlvr.evaluation.report import read_steps
from swift_rlvr.grpo import GRPOSettings
from swift_rlvr.jsonl import read_json, read_jsonl
from swift_rlvr.tiny_model import WEIGHTS

ROOT = Path(__file__).parents[2]
COUNTDOWN = f"countdown:{ROOT}/datasets/countdown/tiny_train.jsonl#20"
GSM8K = f"gsm8k:{ROOT}/datasets/gsm8k/train.jsonl"
SMALL = ("--num-generations", 4, "--batch-size", 8, "--max-completion-length", 12, "--top-p", 1, "--top-k", 0)


def train(monkeypatch, *arguments) -> int:
    """The exit code of `swift-rlvr train ARGUMENTS`."""
    monkeypatch.setattr(sys, "argv", ["swift-rlvr", "train", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code or 0


def test_the_flags_are_the_fields_of_the_settings():
    known = {field.name: field.default for field in fields(GRPOSettings)}
    flagged = {name: default for panel in PANELS.values() for name, (_, default, _) in panel.items()}
    assert known.pop("reward_weights") is None  # --reward-weight
    assert known.pop("bf16") is False and flagged.pop("bf16") is None  # where the GPU can
    assert flagged == known


def test_a_run_its_continuation_and_the_question_at_the_end(monkeypatch, tmp_path, capsys):
    out = tmp_path / "run"
    given = ("--model", WEIGHTS, "--dataset", COUNTDOWN, "--out", out, "--reward", "countdown", "--reward", "format",
             "--reward-weight", 1, "--reward-weight", 0.5, *SMALL, "--beta", 0.01, "--max-steps", 2)  # fmt: skip
    assert train(monkeypatch, *given) == 0
    said = capsys.readouterr().out
    assert "20 rows, 2 updates with 8 completions in groups of 4, on cpu" in said
    assert f"saved: {out}/checkpoint-2" in said and "countdown: reward" in said
    args = read_json(out / "checkpoint-2" / "args.json")
    assert args["trainer"] == "swift_rlvr.grpo" and args["reward_weights"] == [1.0, 0.5]
    assert args["system"].startswith("You are a helpful assistant.")
    first = read_steps(out)[0]
    means = (first[f"rewards/{name}/mean"] for name in ("CountdownReward", "FormatReward"))
    assert first["reward"] == pytest.approx(sum(weight * mean for weight, mean in zip((1, 0.5), means, strict=True)))

    assert train(monkeypatch, *given) == 2
    assert "holds another run; choose another folder, or go on with that run" in capsys.readouterr().err
    assert train(monkeypatch, *given, "--resume") == 0  # nothing is left to do
    assert [step["step"] for step in read_steps(out)] == [1, 2]
    assert train(monkeypatch, *given, "--resume", "--dataset", GSM8K, "--reward", "accuracy") == 2
    assert "--resume: the run in" in capsys.readouterr().err
    assert train(monkeypatch, *given, "--resume", "--beta", 0.5) == 2
    assert "cannot be continued with other settings: there beta 0.01, now 0.5" in capsys.readouterr().err


def test_gsm8k_with_the_recipes_rewards(monkeypatch, tmp_path):
    rewards = ("external_format_strict", "external_tag_count", "external_accuracy")
    chosen = [part for name in rewards for part in ("--reward", name)]
    out = tmp_path / "run"
    given = ("--model", WEIGHTS, "--dataset", f"{GSM8K}#4", "--out", out, *chosen, *SMALL, "--beta", 0)
    assert train(monkeypatch, *given, "--max-steps", 1, "--num-iterations", 2, "--loss-type", "dapo") == 0
    (step,) = read_steps(out)
    assert {f"rewards/{name}Reward/mean" for name in ("FormatStrict", "TagCount", "Accuracy")} <= step.keys()
    assert all(line["reasons"]["AccuracyReward"] for _, line in read_jsonl(out / "reasons.jsonl"))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (["--temperature", 0], "--temperature must be more than 0, got 0.0"),
        (["--batch-size", 6], "--batch-size must be a multiple of num_generations, 4, got 6"),
        (["--loss-type", "ppo"], "--loss-type must be one of grpo, dapo, dr_grpo, got 'ppo'"),
        (["--reward", "luck"], "there is no reward 'luck'"),
        (["--reward-weight", 1, "--reward-weight", 2], "--reward-weight must be one for each of 1 rewards, got 2"),
        (["--dataset", "countdown:gone.jsonl"], "--dataset: cannot read gone.jsonl"),
        (["--dataset", "countdown:empty.jsonl"], "--dataset: empty.jsonl: no rows"),
        (["--dataset", COUNTDOWN.replace("#20", "#1")], "the dataset has 1 rows, too few for one step"),
        (["--model", "./nowhere"], "--model ./nowhere: cannot be loaded"),
        (["--max-completion-length", 2000], "--max-completion-length must be at most 9"),
        (["--resume"], "--resume: run has no checkpoint to go on from"),
    ],
)
def test_mistakes_name_the_flag(monkeypatch, tmp_path, capsys, changed, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.jsonl").touch()
    given = ("--model", WEIGHTS, "--dataset", COUNTDOWN, "--out", "run", *SMALL, *changed)
    assert train(monkeypatch, *given, *([] if "--reward" in changed else ["--reward", "countdown"])) == 2
    said = capsys.readouterr().err
    assert message in said and "Traceback" not in said
    assert not (tmp_path / "run").exists()


def test_the_script_on_a_gpu_is_the_recipe(tmp_path):
    shown = run_script("train_from_scratch.sh", "--seed", "7", gpus=2, folder=tmp_path, DRY_RUN="1")
    assert shown.returncode == 0, shown.stderr
    prepare, command = shown.stdout.splitlines()
    expected = {"model": "Qwen/Qwen2.5-0.5B-Instruct", "max-prompt-tokens": "300", "max-answer-tokens": "200",
                "rows": "1024", "out": "output/scratch_gsm8k/gsm8k_1024.jsonl"}  # fmt: skip
    assert flags(prepare) == expected
    assert command.startswith("CUDA_VISIBLE_DEVICES=0 swift-rlvr train ")
    expected = {"model": "Qwen/Qwen2.5-0.5B-Instruct", "dataset": "gsm8k:output/scratch_gsm8k/gsm8k_1024.jsonl",
                "num-generations": "8", "epsilon": "0.2", "beta": "0.04", "temperature": None, "top-p": "0.9",
                "top-k": "50", "num-iterations": "1", "learning-rate": "1e-6", "seed": "7"}  # fmt: skip
    actual = flags(command)
    assert {name: actual.get(name) for name in expected} == expected
    words = command.split()
    pairs = list(zip(words, words[1:], strict=False))
    assert [value for name, value in pairs if name == "--reward"] == [
        "external_format_strict", "external_tag_count", "external_accuracy"]  # fmt: skip
    assert [value for name, value in pairs if name == "--reward-weight"] == ["0.5", "0.5", "1"]


@pytest.mark.parametrize(("task", "dataset"), [("gsm8k", "gsm8k"), ("countdown", "countdown")])
def test_the_scripts_small_files_are_there(task, dataset, tmp_path):
    shown = run_script("train_from_scratch.sh", folder=tmp_path, DRY_RUN="1", TASK=task)
    name, _, path = flags(shown.stdout)["dataset"].partition(":")
    assert name == dataset and Path(path).is_file()


def test_the_script_says_which_tasks_there_are(tmp_path):
    shown = run_script("train_from_scratch.sh", folder=tmp_path, DRY_RUN="1", TASK="chess")
    assert shown.returncode == 2
    assert "TASK must be gsm8k or countdown, got chess; for another one set DATASET and REWARDS" in shown.stderr
