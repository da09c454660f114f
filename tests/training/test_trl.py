"""Training under TRL through the real command: files, reports, resuming, and what cannot be used.

What imports TRL runs in one process of its own: importing ms-swift, as other tests do, replaces transformers' callbacks
for good.
"""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pytest
from rich.console import Console
from swift_rlvr.countdown import verify
from swift_rlvr.data.prompts import system_prompt
from swift_rlvr.errors import InputError
from swift_rlvr.evaluation.report import read_completions, read_steps, write_report
from swift_rlvr.evaluation.scoring import Scoring
from swift_rlvr.jsonl import read_json, read_jsonl
from swift_rlvr.rewards.build import build_rewards
from swift_rlvr.tasks import TASKS
from swift_rlvr.tasks.countdown import SYSTEM_PROMPT, read_prompt
from swift_rlvr.tiny_model import WEIGHTS
from swift_rlvr.training.rows import read_data
from swift_rlvr.training.trl.run import train
from swift_rlvr.training.trl.settings import CHOICES, TrlSettings, check_out
from transformers.trainer_utils import SchedulerType

ROOT = Path(__file__).parents[2]
COUNTDOWN = ROOT / "datasets" / "countdown"
QUIET = Console(quiet=True)
BATCH = 16
FLAGS = {
    "--model": WEIGHTS,
    "--dataset": f"countdown:{COUNTDOWN / 'tiny_train.jsonl'}#40",
    "--eval-dataset": f"countdown:{COUNTDOWN / 'tiny_validation.jsonl'}#1",
    "--batch": BATCH, "--eval-batch": 8, "--accumulation": 1, "--max-completion": 64, "--learning-rate": 1e-3,
    "--warmup": 0, "--max-steps": 2, "--logging-steps": 1, "--eval-steps": 2, "--save-steps": 1, "--workers": 0,
}  # fmt: skip
REWARDS = ["external_countdown", "format", "external_cosine"]


def settings(**changes) -> TrlSettings:
    """Those of a small run; without a model that could be loaded, so that no test trains by mistake."""
    given = {"model": "no/model", "dataset": FLAGS["--dataset"], "out": "nowhere", "rewards": ("countdown",)}
    return TrlSettings(**{**given, **changes})


def run_commands(folder: Path) -> dict:
    """Everything that needs TRL, in one process: importing it takes longer than to train."""
    os.environ["EXTERNAL_COSINE_ACCURACY"] = "external_countdown"
    import torch

    torch.set_num_threads(1)
    import typer
    from swift_rlvr.cli.train_trl import train_trl
    from swift_rlvr.training.trl.run import build_config
    from typer.testing import CliRunner

    app = typer.Typer()
    app.command()(train_trl)

    def command(out: Path, *further: str, **changes: object):
        flags = {**FLAGS, "--out": out, **{f"--{name.replace('_', '-')}": value for name, value in changes.items()}}
        rewards = [word for reward in REWARDS for word in ("--reward", reward)]
        return CliRunner().invoke(app, [*(str(word) for pair in flags.items() for word in pair), *rewards, *further])

    run, stopped, diverged = folder / "run", folder / "stopped", folder / "diverged"
    first = command(run)
    # As if it had been stopped after its first step.
    shutil.copytree(run, stopped)
    shutil.rmtree(stopped / "checkpoint-2")
    (stopped / "model.safetensors").unlink()
    again = command(stopped, "--resume")
    # The first step has rate 0, the second one beyond float32.
    nan = command(diverged, "--scheduler", "constant_with_warmup", learning_rate=1e39, warmup=0.5)
    recipe = build_config(settings(out=str(folder / "recipe"), report_to="tensorboard"), evaluates=True)
    return {
        "output": first.output,
        "exit_codes": (first.exit_code, again.exit_code),
        "problems": [repr(each.exception) for each in (first, again) if each.exception],
        "diverged": nan.exception,
        "recipe": recipe.to_dict(),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("trl")


@pytest.fixture(scope="module")
def results(folder):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = pool.submit(run_commands, folder).result(timeout=300)
    assert found["exit_codes"] == (0, 0), found["problems"]
    return found


def tensors(path: Path) -> dict:
    from safetensors.torch import load_file

    return load_file(path / "model.safetensors")


def test_two_steps_change_the_weights_and_leave_a_model_that_says_where_it_is_from(results, folder):
    import torch

    before, after = tensors(WEIGHTS), tensors(folder / "run")
    assert before.keys() == after.keys()
    assert any(not torch.equal(before[name], after[name]) for name in before)
    noted = read_json(folder / "run" / "args.json")
    assert noted["trainer"] == "trl" and noted["model"] == str(WEIGHTS) and noted["dataset"] == FLAGS["--dataset"]
    assert noted["reward_parameters"]["external_cosine"]["accuracy"] == "external_countdown"
    for model in (folder / "run", folder / "run" / "checkpoint-2"):
        assert system_prompt(str(model), TASKS["gsm8k"])[0] == SYSTEM_PROMPT


def test_the_model_is_loaded_again_and_asked_a_held_out_row(results):
    row = json.loads((COUNTDOWN / "tiny_validation.jsonl").read_text().splitlines()[0])
    shown = results["output"]
    assert f"Using the numbers {row['nums']}, create an equation that equals {row['target']}." in shown
    assert "<think>" in shown.partition("saved:")[2]
    assert "countdown: reward" in shown
    assert "step 2/2  reward" in shown and "evaluation at step 2/2  reward" in shown


def test_the_logs_are_read_by_report_and_have_every_reward_and_reason(results, folder):
    steps = read_steps(folder / "run")
    assert [step["step"] for step in steps] == [1, 2]
    tables = read_completions(folder / "run")
    reasons = [line for _, line in read_jsonl(folder / "run" / "reasons.jsonl") if line["mode"] == "train"]
    assert len(reasons) == 2 * BATCH
    for step, table in zip(steps, tables, strict=True):
        assert len(table["completion"]) == BATCH
        # Each completion stands beside its own prompt and its own rewards.
        for i, prompt in enumerate(table["prompt"]):
            assert table["CountdownReward"][i] == verify(table["completion"][i], *read_prompt(prompt)).reward
            line = reasons[(step["step"] - 1) * BATCH + i]
            assert (line["step"], line["index"]) == (step["step"], i)
            assert line["rewards"]["CountdownReward"] == table["CountdownReward"][i]
            assert line["rewards"]["CosineLengthReward"] == pytest.approx(table["CosineLengthReward"][i])
        right = sum(table["CountdownReward"]) / BATCH
        assert step["rewards/CountdownReward/mean"] == pytest.approx(right)
        assert step.get("reasons/CountdownReward/correct", 0.0) == pytest.approx(right)
        assert {"loss", "learning_rate", "kl", "completions/mean_length", "reward_std"} <= step.keys()
    curves, page = write_report(folder / "run", folder / "report")
    assert curves.stat().st_size > 10_000
    assert "Using the numbers [" in page.read_text()  # the question of a completion, found in its rendered prompt
    lines = [line for _, line in read_jsonl(folder / "run" / "logging.jsonl")]
    assert any("eval_rewards/CountdownReward/mean" in line for line in lines)
    scored = Scoring([folder / "run" / "completions.jsonl"], build_rewards(["countdown"]), 1).run(None)
    logged = sum(sum(table["CountdownReward"]) for table in tables) / (2 * BATCH)
    assert scored["rewards"]["external_countdown"]["mean"] == pytest.approx(logged, abs=1e-4)


def test_a_run_that_was_stopped_goes_on_bit_for_bit(results, folder):
    import torch

    straight, resumed = tensors(folder / "run"), tensors(folder / "stopped")
    assert all(torch.equal(straight[name], resumed[name]) for name in straight)


def test_weights_that_are_not_finite_end_the_run_and_the_last_checkpoint_is_kept(results, folder):
    import torch

    assert isinstance(results["diverged"], InputError), results["diverged"]
    said = str(results["diverged"])
    assert "training has diverged: the weights are no longer finite after step 2; a smaller --learning-rate" in said
    assert f"the last checkpoint is {folder / 'diverged' / 'checkpoint-1'}" in said
    kept = tensors(folder / "diverged" / "checkpoint-1")
    assert all(torch.equal(weight, kept[name]) for name, weight in tensors(WEIGHTS).items())


def test_the_defaults_reach_trl_as_the_recipes_arguments(results):
    expected = {
        "num_train_epochs": 1.0, "per_device_train_batch_size": 8, "per_device_eval_batch_size": 16,
        "gradient_accumulation_steps": 2, "learning_rate": 5e-5, "warmup_steps": 0.1, "weight_decay": 0.01,
        "logging_steps": 10, "eval_strategy": "steps", "eval_steps": 50, "save_strategy": "steps", "save_steps": 50,
        "save_total_limit": 2, "dataloader_num_workers": 2, "seed": 42, "gradient_checkpointing": True,
        "report_to": ["tensorboard"], "num_generations": 8, "generation_batch_size": 16,
    }  # fmt: skip
    assert {name: results["recipe"][name] for name in expected} == expected


def script(folder: Path, *arguments: str, gpus: bool = False, **environment: str):
    """Run train_trl.sh; `gpus` puts a stand-in for nvidia-smi first on the PATH, for dry runs."""
    settings = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "VENV": sys.prefix, **environment}
    if gpus:
        (folder / "nvidia-smi").write_text("#!/bin/sh\nprintf '0\\n1\\n'\n")
        (folder / "nvidia-smi").chmod(0o755)
        settings["PATH"] = f"{folder}:{settings['PATH']}"
    command = ["bash", str(ROOT / "scripts" / "train_trl.sh"), *arguments]
    return subprocess.run(command, env=settings, cwd=folder, capture_output=True, text=True, timeout=300)


def test_the_script_on_a_gpu_is_the_r1_zero_recipe(tmp_path):
    words = script(tmp_path, "--seed", "7", gpus=True, DRY_RUN="1", LEARNING_RATE="1e-6").stdout.split()
    assert words[:3] == ["CUDA_VISIBLE_DEVICES=0", "swift-rlvr", "train-trl"]
    recipe = {
        "--model": "Qwen/Qwen2.5-0.5B-Instruct", "--dataset": "numina_math_tir", "--batch": "8", "--eval-batch": "16",
        "--accumulation": "2", "--warmup": "0.1", "--weight-decay": "0.01", "--logging-steps": "10", "--keep": "2",
        "--eval-steps": "50", "--save-steps": "50", "--workers": "2", "--epochs": "1",
        "--eval-dataset": "numina_math_tir:test",
    }  # fmt: skip
    assert {name: words[words.index(name) + 1] for name in recipe} == recipe
    rewards = [words[i + 1] for i, word in enumerate(words) if word == "--reward"]
    five = ("accuracy", "format", "reasoning_steps", "cosine", "repetition_penalty")
    assert rewards == [f"external_{name}" for name in five]
    assert words[words.index("--learning-rate") + 1] == "1e-6"
    assert words[-2:] == ["--seed", "7"]  # what the user adds comes last, and wins
    assert "--use-hf" in words and "--checkpointing" in words


def test_the_script_ends_with_code_2_and_names_what_is_wrong(tmp_path):
    ended = script(tmp_path, CUDA_VISIBLE_DEVICES="", REWARDS="external_nope")
    assert ended.returncode == 2
    assert "there is no reward 'external_nope'; there are external_countdown" in ended.stderr
    ended = script(tmp_path, CUDA_VISIBLE_DEVICES="", DATASET="countdown:gone.jsonl")
    assert ended.returncode == 2
    assert "--dataset: cannot read gone.jsonl" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_schedulers_are_those_of_transformers():
    assert set(CHOICES["scheduler"]) == {kind.value for kind in SchedulerType}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"rewards": ()}, "--reward: expected at least one"),
        ({"batch": 0}, "--batch must be at least 1, got 0"),
        ({"batch": 9}, "--batch times --accumulation must be a multiple of --generations 8, got 18"),
        ({"eval_batch": 9, "eval_dataset": "countdown"}, "--eval-batch must be a multiple of --generations 8, got 9"),
        ({"generations": 1}, "--generations must be at least 2, got 1"),
        ({"learning_rate": 0.0}, "--learning-rate must be above 0"),
        ({"learning_rate": float("nan")}, "--learning-rate must be above 0, got nan"),
        ({"beta": -0.1}, "--beta must be at least 0"),
        ({"temperature": float("inf")}, "--temperature must be above 0, got inf"),
        ({"warmup": 1.0}, "--warmup must be a share of the steps"),
        ({"max_steps": 0}, "--max-steps must be at least 1, or -1 for all"),
        ({"loss": "sum"}, "--loss must be one of grpo, "),
        ({"scheduler": "zigzag"}, "--scheduler must be one of linear, "),
        ({"config": ("beta",)}, "--config: expected NAME=VALUE, got 'beta'"),
    ],
)
def test_settings_out_of_range_are_named(changes, problem):
    with pytest.raises(InputError) as raised:
        settings(**changes)
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"rewards": ("countdwn",)}, "there is no reward 'countdwn'; there are external_countdown"),
        ({"parameters": ("notations=strict",)}, "--set notations=strict: no such parameter"),
        ({"dataset": "countdown:gone.jsonl"}, "--dataset: cannot read gone.jsonl"),
        ({"dataset": "countdown:empty.jsonl"}, "--dataset: empty.jsonl: no rows"),
        ({"dataset": "nope"}, "--dataset: nope: expected a file"),
        ({"eval_dataset": "countdown:empty.jsonl"}, "--eval-dataset: empty.jsonl: no rows"),
        ({"rewards": ("accuracy",)}, "none of external_accuracy grades a row of"),
        ({"rewards": ("boxed",)}, "external_boxed needs the column 'solution', and row 1"),
        ({"batch": 400}, "40 rows that can be used, and a step takes 100: lower --batch"),
        ({"model": "/no/model"}, "--model /no/model: cannot be loaded"),
        ({"model": str(WEIGHTS), "max_completion": 1000}, "--max-completion must be at most 901, got 1000"),
        ({"resume": True}, "--resume: new has no checkpoint to go on from"),
    ],
)
def test_what_cannot_be_used_is_named_before_anything_is_made(changes, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("empty.jsonl").touch()
    with pytest.raises(InputError) as raised:
        train(settings(out="new", **changes), QUIET)
    assert problem in str(raised.value)
    assert not Path("new").exists()


def test_another_run_is_not_written_over_and_not_gone_on_with_by_other_settings(tmp_path):
    ours = settings(out=str(tmp_path))
    check_out(ours)
    (tmp_path / "checkpoint-50").mkdir()
    with pytest.raises(InputError, match=r"holds another run \(checkpoint-50\).*--resume"):
        check_out(ours)
    (tmp_path / "args.json").write_text(json.dumps(ours.as_json("Think.")))
    check_out(replace(ours, resume=True, workers=0))
    with pytest.raises(InputError, match="has --learning-rate 5e-05, not 0.001"):
        check_out(replace(ours, resume=True, learning_rate=1e-3))
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="there is a file of that name"):
        check_out(settings(out=str(tmp_path / "file")))


def test_unusable_rows_are_counted_named_and_limited(tmp_path, capsys):
    rows = [{"nums": [3, 5, 7], "target": 22}] * 30 + [{"nums": [3, 5, None], "target": 22}] * 3
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    read = partial(read_data, "--dataset", f"countdown:{file}", build_rewards(["countdown"]), system="Think.")
    data = read(Console(soft_wrap=True))
    assert len(data.rows) == 30 and data.system == "Think."
    assert data.rows[0]["prompt"][0] == {"role": "system", "content": "Think."}
    assert data.rows[0].keys() == {"prompt", "nums", "target", "task"}
    said = capsys.readouterr().out
    assert "3 of 33 rows cannot be used (nums: 3)" in said and "row 31: column 'nums'" in said
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[:2] + rows[-1:] * 20))
    with pytest.raises(InputError, match=r"--dataset: .*(?s:.)*more than the limit of 10%"):
        read(QUIET)


def test_rows_with_a_system_prompt_of_their_own_keep_it(capsys):
    file, rewards = ROOT / "datasets" / "numina_math_tir" / "train.jsonl", build_rewards(["accuracy", "cosine"])
    data = read_data("--dataset", f"numina_math_tir:{file}", rewards, Console(soft_wrap=True), system="No.")
    assert data.system == TASKS["numina_math_tir"].system == data.rows[0]["prompt"][0]["content"]
    assert "--system is not used" in capsys.readouterr().out
    assert data.rows[0].keys() == {"prompt", "solution", "task"}
