"""Training under TRL, `swift-rlvr train --trainer trl`: its files, its reports, resuming, and what
cannot be used.

What imports TRL runs in one process of its own: importing ms-swift, as other tests do, replaces
transformers' callbacks for good.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs the extra [trl]")
from rich.console import Console

from curriculum_replay import assert_drawn_by_level
from mixed_rows import MIXED
from paths import DATASETS, ROOT, words
from present import present
from report_pages import Document
from swift_rlvr.evaluation.prompts import system_prompt
from swift_rlvr.evaluation.report import write_report
from swift_rlvr.evaluation.report.reading import read_run
from swift_rlvr.evaluation.score import score_files
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.build import build_rewards
from swift_rlvr.runs.log import cut_logs
from swift_rlvr.runs.records import read_records
from swift_rlvr.tasks import TASKS
from swift_rlvr.tasks.countdown import SYSTEM_PROMPT, read_prompt
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.jsonl import read_json, read_jsonl
from swift_rlvr.verifiers.countdown import verify

# Importing TRL and training a little takes half a minute.
pytestmark = [pytest.mark.slow, pytest.mark.product]
COUNTDOWN = DATASETS / "countdown"
PAGE = ROOT / "docs" / "guides" / "other_trainers.md"
TRAIN = f"countdown:{COUNTDOWN / 'tiny_train.jsonl'}#40"
QUIET = Console(quiet=True)
BATCH = 16
CONFIG = f"""
trainer: trl
model: {TINY_MODEL}
dataset: {TRAIN}
reward_funcs: [external_countdown, format, external_cosine]
ENV: {{EXTERNAL_COSINE_ACCURACY: external_countdown}}
per_device_train_batch_size: {BATCH}
max_completion_length: 64
learning_rate: 1e-3
beta: 0.04
max_steps: 2
logging_steps: 1
save_steps: 1
"""
MISTAKES = {  # flags beside those of CONFIG -> part of the message
    "--per_device_train_batch_size 9": "trl rejects these settings: generation_batch_size (9) must be divisible by",
    "--reward_weights 1 0.5": "--reward_weights: must be one for each of external_countdown, format, ",
    # These would run to their end, and nothing would be learned.
    "--top_k 1": "--top_k: must not be 1: all completions of a prompt would be the same",
    "--min_p 1": "--min_p: must not be 1: all completions of a prompt would be the same",
    "--reward_weights 0 0 0": "--reward_weights: must not all be 0",
    "--reward_weights -1 1 -1": "--reward_weights: the right completion of line 1 (countdown) earns -0.9994",
    "--loss_type gspo": "--loss_type: must be one of cispo, grpo, bnpo, ",
    "--scale_rewards true": "--scale_rewards: must be one of group, none, batch",
    "--loss_type cispo": "--epsilon_high: must be at least 1 with loss_type cispo",
    "--delta 0.5": "--delta: must be more than 1, got 0.5",
    "--top_entropy_quantile 0": "--top_entropy_quantile: must be more than 0, got 0",
    "--max_steps 0": "--max_steps: must be at least 1, or -1 for all epochs, got 0",
    "--lr_scheduler_type zigzag": "--lr_scheduler_type: must be one of linear, cosine",
    "--batch_size 8": "the trainer trl has no setting 'batch_size'; the nearest is",
    "--dataset countdown:empty.jsonl": "--dataset: empty.jsonl: no rows",
    "--reward_funcs accuracy": "--reward_funcs: external_accuracy grades no row of",
    "--reward_funcs boxed": "external_boxed needs the column 'solution', but usable row 1",
    "--per_device_train_batch_size 400": "40 rows, too few for one step: 400 completions / num_generations 8",
    "--model /no/model": "--model: /no/model: cannot be loaded",
    "--max_completion_length 1000": "--max_completion_length: must be at most 901, got 1000",
    "--resume_from_checkpoint true": "expected true or a checkpoint in new; available: none",
    f"--held_out_dataset {TRAIN}": "--held_out_dataset: all 40 prompts of",
    "--curriculum true": "--dataset: curriculum needs the column 'level' with a whole number in every row, got None",
    "--output_dir=": "--output_dir: is required: the folder for the model",
}
HELD_OUT = words(f"""--held_out_dataset countdown:{COUNTDOWN / "tiny_validation.jsonl"} --held_out_rows 5
    --held_out_samples 3 --held_out_every 1 --save_steps 100""")

DIVERGING = [
    "--lr_scheduler_type",
    "constant_with_warmup",
    "--learning_rate",
    "1e39",
    "--warmup_ratio",
    "0.5",
    "--max_completion_length",
    "16",
    "--steps_per_generation",
    "2",
]
LEVELS = COUNTDOWN / "tiny_levels_train.jsonl"
CURRICULUM = words(f"--curriculum true --dataset countdown:{LEVELS}")


def train_in_a_script(folder: Path) -> tuple[dict, dict]:
    """What TRL's trainer logs of a step, and its further columns, in a script that has our reward
    and no callback of ours.
    """
    from trl import GRPOConfig

    from swift_rlvr.training.trl import load_dataset, trainer_class_of

    reward = REWARDS["countdown"]()
    dataset = load_dataset(f"countdown:{COUNTDOWN / 'tiny_train.jsonl'}#2", [reward])
    config = GRPOConfig(
        output_dir=str(folder),
        max_steps=1,
        per_device_train_batch_size=BATCH,
        num_generations=8,
        max_completion_length=64,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        bf16=False,
    )
    trainer = trainer_class_of(False)(
        str(TINY_MODEL), reward_funcs=[reward], args=config, train_dataset=dataset
    )
    trainer.train()
    columns = {name: list(values) for name, values in trainer._logs.get("extra", {}).items()}
    return trainer.state.log_history[0], columns


def script_of_the_page(folder: Path) -> list[dict]:
    """What the script of the page logs, with a model and a file that are here, for one step."""
    (script,) = re.findall(
        r"^```python\n(from .*?GRPOTrainer.*?)^```$", PAGE.read_text(), re.S | re.M
    )
    file = folder / "my_math.jsonl"
    file.write_text('{"question": "1 + 1?", "final_answer": "2"}\n' * 4)
    options = f"""GRPOConfig(output_dir={str(folder / "page")!r}, max_steps=1, max_completion_length=32,
        per_device_train_batch_size=8, use_cpu=True, bf16=False, report_to=[], logging_steps=1"""
    for text, here in {
        '"Qwen/Qwen2.5-0.5B-Instruct"': repr(str(TINY_MODEL)),
        "my_math.jsonl": str(file),
        'GRPOConfig(output_dir="out"': options,
    }.items():
        assert text in script
        script = script.replace(text, here)
    names: dict = {}
    exec(script, names)
    return names["trainer"].state.log_history


def opening_model(folder: Path) -> Path:
    """The tiny model with a chat template that opens the thinking."""
    model = folder / "opening model"
    shutil.copytree(TINY_MODEL, model)
    for file in model.glob("*"):
        text = file.read_bytes()
        end = b"<|im_start|>assistant"
        for line_break in (b"\\n", b"\n"):
            text = text.replace(end + line_break, end + line_break + b"<think>" + line_break)
        file.write_bytes(text)
    return model


def loaded_rows(folder: Path) -> dict:
    """What `load_dataset` makes of several files, for scripts that have TRL's trainer."""
    from datasets import concatenate_datasets

    from swift_rlvr.evaluation.models import load_tokenizer
    from swift_rlvr.training.trl import load_dataset

    own = folder / "own.jsonl"
    rows = [{"Frage": f"{n} + 2?", "final_answer": str(n + 2)} for n in range(20)]
    rows += [{"Frage": "Prove it.", "final_answer": "proof"}]
    own.write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = {"Frage": "problem"}
    countdown, accuracy = REWARDS["countdown"](), REWARDS["accuracy"]()
    # The columns of the other task are None in the joined rows.
    both = [countdown, accuracy]
    joined = concatenate_datasets(
        [
            load_dataset(f"{TRAIN.partition('#')[0]}#2", both),
            load_dataset(f"math:{own}", both, columns=names),
        ]
    ).select(range(3))
    columns = joined[:]
    completions = [[{"role": "assistant", "content": "<answer>2</answer>"}]] * 3
    opening = load_tokenizer(str(TINY_MODEL))
    opening.chat_template += "{{ '<think>\\n' }}"
    return {
        "own": load_dataset(f"math:{own}", [accuracy], columns=names, system="Think.").to_list(),
        "mixed": load_dataset(str(MIXED), [countdown, accuracy, len]).to_list(),
        "fewer": load_dataset(str(MIXED), [countdown, accuracy]).column_names,
        "one": load_dataset(str(MIXED), accuracy).column_names,
        "thinking": load_dataset(str(MIXED), processing_class=opening)["thinking_opened"][:],
        "joined": [reward(completions, prompts=columns["prompt"], **columns) for reward in both],
        "refused": refusal(load_dataset, f"math:{own}#5", [countdown], columns=names),
    }


def refusal(function: Callable, *args: object, **kwargs: object) -> str:
    with pytest.raises(InputError) as error:
        function(*args, **kwargs)
    return str(error.value)


def refused_dataset() -> str:
    from swift_rlvr.training.trl import as_dataset

    rows = [{"prompt": "a", "solution": 1}, {"prompt": "b", "solution": "one"}]
    return refusal(as_dataset, rows)


FUNCTION = """
def short(completions, **columns):
    return [float(len(completion[0]["content"]) % 7) for completion in completions]

short.role = "verifier"
"""


def script_with_own_function(folder: Path) -> list[Path]:
    """Runs in which no reward is ours: two updates with each batch, and evaluations whose batches are
    smaller than the training's.
    """
    from trl import GRPOConfig

    from swift_rlvr.runs.log import RunLog
    from swift_rlvr.training.reason_callback import ReasonCallback
    from swift_rlvr.training.trl import load_dataset, trainer_class_of

    names: dict = {}
    exec(FUNCTION, names)
    rewards = [names["short"]]
    dataset = load_dataset(TRAIN)
    runs = []
    evaluation: dict[str, Any] = {
        "eval_strategy": "steps",
        "eval_steps": 1,
        "per_device_eval_batch_size": 4,
    }
    differing: dict[str, dict[str, Any]] = {
        "iterations": {"num_iterations": 2, "max_steps": 3},
        "evaluation": {"max_steps": 1, "num_generations_eval": 2, **evaluation},
    }
    for name, settings in differing.items():
        config = GRPOConfig(
            output_dir=str(folder / name),
            per_device_train_batch_size=8,
            num_generations=4,
            max_completion_length=32,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            use_cpu=True,
            bf16=False,
            **settings,
        )
        # The list goes from one trainer to the next.
        trainer = trainer_class_of(False)(
            str(TINY_MODEL), rewards, config, dataset, eval_dataset=dataset.select(range(6))
        )
        log = RunLog(config.output_dir)
        trainer.add_callback(ReasonCallback(config, trainer, log))
        trainer.train()
        runs.append(log.folder)
    return runs


def train_with_pictures(folder: Path) -> dict:
    """Two steps of the same rows under TRL's own trainer, whose processor gets the pictures."""
    import torch
    from transformers import AutoModelForImageTextToText, AutoProcessor
    from trl import GRPOConfig, GRPOTrainer

    from small_models import save_vision_model
    from swift_rlvr.training.trl import load_dataset

    path = save_vision_model(folder / "vision_model")
    rewards = [REWARDS["accuracy"]()]
    processor = AutoProcessor.from_pretrained(path)
    name = f"math:{DATASETS / 'pictures' / 'dots.jsonl'}"
    dataset = load_dataset(name, rewards, processing_class=processor)

    def digits(completions, **columns):
        texts = [turns[0]["content"] for turns in completions]
        return [sum(map(str.isdigit, text)) / max(1, len(text)) for text in texts]

    weight = "model.multi_modal_projector.linear_1.weight"
    model = AutoModelForImageTextToText.from_pretrained(path)
    before = model.state_dict()[weight].clone()
    settings = GRPOConfig(
        str(folder / "with_pictures"),
        per_device_train_batch_size=8,
        num_generations=4,
        max_completion_length=16,
        max_steps=2,
        learning_rate=1e-2,
        use_cpu=True,
        bf16=False,
        report_to="none",
        logging_steps=1,
        dataloader_pin_memory=False,
        save_strategy="no",
        gradient_checkpointing=False,
    )
    trainer = GRPOTrainer(
        model, [*rewards, digits], settings, train_dataset=dataset, processing_class=processor
    )
    trainer.train()
    after = trainer.model.state_dict()[weight]
    return {
        "parts": [part["type"] for part in dataset[0]["prompt"][-1]["content"]],
        "size": dataset[0]["images"][0].size,
        "steps": len([line for line in trainer.state.log_history if "reward" in line]),
        "eyes have learned": not torch.equal(before, after),
    }


def run_commands(folder: Path) -> dict:
    """Everything that needs TRL, in one process: importing it takes longer than to train."""
    import torch
    from typer.testing import CliRunner

    from swift_rlvr.cli.app import app

    torch.set_num_threads(1)
    (folder / "run.yaml").write_text(CONFIG)

    def command(out: Path | str, *flags: object):
        words = ["train", folder / "run.yaml", "--output_dir", out, *flags]
        return CliRunner().invoke(app, list(map(str, words)), env={"COLUMNS": "400"})

    stopped = folder / "stopped"
    first = command(folder / "run")
    # As if it had been stopped after its first step.
    shutil.copytree(folder / "run", stopped)
    shutil.rmtree(stopped / "checkpoint-2")
    (stopped / "model.safetensors").unlink()
    again = command(stopped, "--resume_from_checkpoint", "true")
    other = command(stopped, "--resume_from_checkpoint", "true", "--beta", 0.5)
    held_out = command(folder / "held_out", *HELD_OUT)
    drawn = command(folder / "drawn", *CURRICULUM, "--max_steps", 3)
    shutil.copytree(folder / "drawn", folder / "drawn again")
    (folder / "drawn again" / "model.safetensors").unlink()
    shutil.rmtree(folder / "drawn again" / "checkpoint-3")
    cut_logs(folder / "drawn again", 2)
    drawn_again = command(
        folder / "drawn again", *CURRICULUM, "--max_steps", 3, "--resume_from_checkpoint", "true"
    )
    # Two steps an epoch; stopped in the second one.
    epochs = ["--dataset", f"{TRAIN.partition('#')[0]}#4", "--max_steps", 4]
    command(folder / "epochs", *epochs, "--max_completion_length", 16)
    shutil.copytree(folder / "epochs", folder / "epochs again")
    (folder / "epochs again" / "model.safetensors").unlink()
    shutil.rmtree(folder / "epochs again" / "checkpoint-4")
    cut_logs(folder / "epochs again", 3)
    epochs += ["--resume_from_checkpoint", "true"]
    command(folder / "epochs again", *epochs, "--max_completion_length", 16)
    # The first step has rate 0, the second one beyond float32.
    nan = command(folder / "diverged", *DIVERGING)
    opened = command(
        folder / "opened", "--model", opening_model(folder), "--max_steps", 1, *HELD_OUT
    )
    script = train_in_a_script(folder / "script")
    pictures = train_with_pictures(folder)
    os.chdir(folder)
    Path("empty.jsonl").touch()
    mistakes = {flags: command("new", *words(flags)) for flags in MISTAKES}
    return {
        "output": first.output,
        "exit_codes": [
            each.exit_code for each in (first, again, held_out, drawn, drawn_again, opened)
        ],
        "problems": [
            repr(each.exception)
            for each in (first, again, held_out, drawn, drawn_again, opened)
            if each.exception
        ],
        "held_out": held_out.output,
        "script": script,
        "pictures": pictures,
        "own function": script_with_own_function(folder),
        "refused dataset": refused_dataset(),
        "loaded": loaded_rows(folder),
        "page": script_of_the_page(folder),
        "other settings": (other.exit_code, other.stderr),
        "diverged": (nan.exit_code, nan.output),
        "mistakes": {flags: (each.exit_code, each.output) for flags, each in mistakes.items()},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("trl")


@pytest.fixture(scope="module")
def results(folder):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        results = pool.submit(run_commands, folder).result(timeout=1800)
    assert results["exit_codes"] == [0] * 6, results["problems"]
    return results


def tensors(path: Path) -> dict:
    from safetensors.torch import load_file

    return load_file(path / "model.safetensors")


def test_two_steps_change_the_weights_and_leave_a_model_that_says_where_it_is_from(results, folder):
    import torch

    before, after = tensors(TINY_MODEL), tensors(folder / "run")
    assert before.keys() == after.keys()
    assert any(not torch.equal(before[name], after[name]) for name in before)
    noted = read_json(folder / "run" / "args.json")
    assert (
        noted["trainer"] == "trl"
        and noted["model"] == str(TINY_MODEL)
        and noted["dataset"] == TRAIN
    )
    assert noted["reward_parameters"]["external_cosine"]["accuracy"] == "external_countdown"
    for model in (folder / "run", folder / "run" / "checkpoint-2"):
        assert system_prompt(str(model), TASKS["gsm8k"])[0] == SYSTEM_PROMPT


def test_the_logs_are_read_by_report_and_have_every_reward_and_reason(results, folder):
    steps = read_run(folder / "run").steps
    assert [step["step"] for step in steps] == [1, 2]
    records = [
        record
        for record in read_records(folder / "run" / "records.jsonl")
        if record.mode == "train"
    ]
    assert len(records) == 2 * BATCH
    for step in steps:
        own = [record for record in records if record.step == step["step"]]
        assert [record.index for record in own] == list(range(BATCH))
        for record in own:  # each completion stands beside its own prompt and its own rewards
            asked = present(read_prompt(present(record.messages)[-1]["content"]))
            assert record.rewards["external_countdown"] == verify(record.completion, *asked).reward
            assert (present(record.rewards["external_cosine"]) > 0) == record.success
        right = sum(present(record.rewards["external_countdown"]) for record in own) / BATCH
        assert step["success"] == step["rewards/CountdownReward/mean"] == pytest.approx(right)
        assert step.get("reasons/CountdownReward/correct", 0.0) == pytest.approx(right)
        assert {
            "loss",
            "learning_rate",
            "kl",
            "completions/mean_length",
            "reward_std",
        } <= step.keys()
    curves, page = write_report(folder / "run", folder / "report")
    assert present(curves).stat().st_size > 10_000
    shown = Document(page.read_text()).completions()
    assert len(shown) == 2 * BATCH  # each with its question, found in its rendered prompt
    assert all(each["question"].startswith("Using the numbers [") for each in shown)
    assert (
        "step 2/2 success" in results["output"] and f"saved: {folder / 'run'}" in results["output"]
    )
    scored = score_files(
        [folder / "run" / "records.jsonl"], build_rewards(["countdown"]), workers=1
    )
    every = list(read_records(folder / "run" / "records.jsonl"))
    logged = sum(present(record.rewards["external_countdown"]) for record in every) / len(every)
    assert scored["rewards"]["external_countdown"]["mean"] == pytest.approx(logged, abs=1e-4)


def test_a_run_that_was_stopped_goes_on_bit_for_bit(results, folder):
    import torch

    straight, resumed = tensors(folder / "run"), tensors(folder / "stopped")
    assert all(torch.equal(straight[name], resumed[name]) for name in straight)


def test_a_run_that_was_stopped_in_its_second_epoch_goes_on_bit_for_bit(results, folder):
    import torch

    straight, resumed = tensors(folder / "epochs"), tensors(folder / "epochs again")
    assert all(torch.equal(straight[name], resumed[name]) for name in straight)


def test_held_out_rows_are_evaluated_and_change_nothing_in_the_training(results, folder):
    """Before the first step and after each, with the training's own log and the weights bit for bit
    as without it.
    """
    import torch

    plain, run = tensors(folder / "run"), folder / "held_out"
    assert all(torch.equal(weight, plain[name]) for name, weight in tensors(run).items())
    lines = [line for _, line in read_jsonl(run / "logging.jsonl")]
    evaluations = [line for line in lines if "eval/success" in line]
    assert [line["global_step/max_steps"] for line in evaluations] == ["0/2", "1/2", "2/2"]
    assert (
        [step["step"] for step in read_run(run).steps]
        == [1, 2]
        == [step["step"] for step in read_run(folder / "run").steps]
    )
    for record, other in zip(
        read_run(run).records(), read_run(folder / "run").records(), strict=True
    ):
        assert record.completion == other.completion
    records = list(read_records(run / "held_out.jsonl"))
    assert len(records) == 3 * 5 * 3
    for line in evaluations:
        own = [record for record in records if record.step == int(line["global_step/max_steps"][0])]
        assert line["eval/success"] == pytest.approx(
            sum(present(record.success) for record in own) / 15
        )
        assert line["eval/cut_off"] == pytest.approx(
            sum(record.tokens == 64 for record in own) / 15, abs=0.07
        )
        for record in own:
            gold = verify(record.completion, record.row["nums"], record.row["target"]).reward
            assert record.rewards["external_countdown"] == gold
    success = {step: line["eval/success"] for step, line in enumerate(evaluations) if step}
    best = max(success, key=success.__getitem__)
    assert (run / "best").resolve() == run / f"checkpoint-{best}"
    assert "held out, step 1/2 success" in results["output"] + results["held_out"]


def test_weights_that_are_not_finite_end_the_run_and_the_last_checkpoint_is_kept(results, folder):
    import torch

    code, output = results["diverged"]
    assert code == 3, output
    assert (
        "steps_per_generation 2: with loss_type dapo the gradient is 0.5 times as large" in output
    )
    assert "at step 2: the weights are no longer finite" in output
    assert f"the last checkpoint is {folder / 'diverged' / 'checkpoint-1'}" in output
    kept = tensors(folder / "diverged" / "checkpoint-1")
    assert all(torch.equal(weight, kept[name]) for name, weight in tensors(TINY_MODEL).items())


@pytest.mark.parametrize("flags", MISTAKES)
def test_what_cannot_be_used_is_named_before_anything_is_made(flags, results, folder):
    code, output = results["mistakes"][flags]
    assert code == 2, output
    assert MISTAKES[flags] in output
    assert not (folder / "new").exists()


@pytest.mark.parametrize("name", ["drawn", "drawn again"])
def test_a_curriculum_draws_by_level_also_after_a_checkpoint(results, folder, name):
    rows = [row for _, row in read_jsonl(LEVELS)]
    curriculum = assert_drawn_by_level([folder / name], rows, generations=8)
    state = read_json(folder / name / "checkpoint-3" / "trainer_state.json")
    assert (
        state["stateful_callbacks"]["swift_rlvr.curriculum"] == curriculum.state()
        and curriculum.batches == 3
    )


@pytest.mark.skipif(version("trl") < "1", reason="TRL 0.29 does not ask for reasons")
def test_in_a_script_without_our_callback_the_reasons_are_in_trls_own_log(results):
    logged, columns = results["script"]
    counts = Counter(columns["CountdownReward/reason"])
    assert counts.total() == BATCH
    shares = {name: value for name, value in logged.items() if name.startswith("reasons/")}
    assert sum(shares.values()) == pytest.approx(1.0)
    for reason, count in counts.items():
        name = f"reasons/CountdownReward/{reason.replace(' ', '_')}"
        assert shares[name] == pytest.approx(count / BATCH)
    assert logged["rewards/CountdownReward/mean"] == pytest.approx(counts["correct"] / BATCH)


def test_the_trainer_gets_the_pictures_of_its_rows(results):
    assert results["pictures"] == {
        "parts": ["image", "text"],
        "size": (112, 112),
        "steps": 2,
        "eyes have learned": True,
    }


def test_records_of_functions_alone_are_those_of_their_own_batch(results):
    """And not the trainer's last ones: in a step that samples nothing, or in an evaluation."""
    iterations, evaluation = results["own function"]
    for run, counts in (
        (iterations, {("train", 1): 8, ("train", 3): 8}),
        (evaluation, {("train", 1): 8, ("eval", 1): 12}),
    ):
        records = list(read_records(run / "records.jsonl"))
        assert Counter((record.mode, record.step) for record in records) == counts
        for _, line in read_jsonl(run / "logging.jsonl"):
            mode, prefix = ("eval", "eval_") if "eval_reward" in line else ("train", "")
            step = int(line["global_step/max_steps"].partition("/")[0])
            own = [record for record in records if (record.mode, record.step) == (mode, step)]
            if not own or f"{prefix}reward" not in line:
                continue
            paid = statistics.mean(present(record.rewards["short"]) for record in own)
            right = statistics.mean(present(record.success) for record in own)
            assert line[f"{prefix}rewards/short/mean"] == pytest.approx(paid, abs=1e-5)
            assert line[f"{prefix}success"] == pytest.approx(right)


def test_two_ranks_log_every_completion_of_a_step_with_several_batches(tmp_path):
    """Under torchrun, with a function beside our rewards."""
    (tmp_path / "run.yaml").write_text(CONFIG)
    (tmp_path / "mine.py").write_text(FUNCTION)
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", "2"]
    command += ["--rdzv_backend", "c10d", "--rdzv_endpoint", "127.0.0.1:0"]
    command += ["-m", "swift_rlvr.cli", "train", tmp_path / "run.yaml", *HELD_OUT]
    command += ["--output_dir", tmp_path / "run", "--max_steps", "1", "--beta", "0"]
    command += words(f"--reward_funcs countdown {tmp_path / 'mine.py'}:short")
    command += words("--per_device_train_batch_size 4 --num_generations 4")
    command += words("--gradient_accumulation_steps 2 --steps_per_generation 1")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=environment, timeout=500
    )
    assert done.returncode == 0, done.stderr[-3000:]
    records = list(read_records(tmp_path / "run" / "records.jsonl"))
    assert [record.index for record in records] == list(range(16))
    for start in range(0, 16, 4):
        group = records[start : start + 4]
        assert len({record.question for record in group}) == 1
        totals = [sum(map(present, record.rewards.values())) for record in group]
        assert all(len(record.rewards) == 2 for record in group)
        spread = statistics.stdev(totals) + 1e-4  # TRL's
        for record, total in zip(group, totals, strict=True):
            advantage = (total - statistics.mean(totals)) / spread
            assert record.advantage == pytest.approx(advantage, abs=2e-3)


def test_the_script_of_the_page_trains(results):
    step, *_ = results["page"]
    assert "rewards/AccuracyReward/mean" in step and "rewards/FormatReward/mean" in step


def test_a_script_loads_what_the_training_loads(results):
    loaded = results["loaded"]
    assert len(loaded["own"]) == 20  # without the proof
    assert loaded["own"][0]["solution"] == "2" and loaded["own"][0]["task"] == "math"
    turns = [turn["role"] for turn in loaded["own"][0]["prompt"]]
    assert turns == ["system", "user"]
    assert loaded["refused"].startswith("reward_funcs: external_countdown grades no row of")


def test_a_script_loads_rows_of_several_tasks(results):
    loaded = results["loaded"]
    assert [row["task"] for row in loaded["mixed"]] == ["math", "code", "countdown", "qa"]
    # Where a function's columns are not known, all are kept.
    assert {"accepted_answers", "tests"} <= loaded["mixed"][0].keys()
    assert loaded["mixed"][0]["accepted_answers"] is None
    assert loaded["fewer"] == ["prompt", "nums", "solution", "target", "task"]
    assert loaded["one"] == ["prompt", "solution", "task"]


def test_datasets_of_several_tasks_are_joined(results):
    assert results["loaded"]["joined"] == [[0.0, 0.0, None], [None, None, 1.0]]


def test_rewards_are_told_where_the_template_opens_the_thinking(results):
    """A box in a thinking that never ends is no answer."""
    assert results["loaded"]["thinking"] == [True] * 4
    cut_off = [[{"role": "assistant", "content": r"It may be \boxed{7}."}]]
    accuracy = REWARDS["accuracy"]()
    assert accuracy(cut_off, solution=["7"]) == [1.0]
    assert accuracy(cut_off, solution=["7"], thinking_opened=[True]) == [0.0]
    assert accuracy(cut_off, solution=["7"], thinking_opened=[None]) == [1.0]
    closed = "Yes.</think><answer>7</answer>"
    opened = ["<|im_start|>assistant\n<think>\n"]
    assert accuracy([cut_off[0][0]["content"]], solution=["7"], prompts=opened) == [0.0]
    assert REWARDS["format"]()([closed], prompts=opened) == [1.0]


def test_a_column_that_no_table_can_hold_is_named(results):
    problem = "dataset: the column 'solution' needs values of one type in all rows: "
    assert results["refused dataset"].startswith(problem)


def test_a_run_is_not_resumed_with_other_settings(results):
    code, message = results["other settings"]
    assert code == 2 and "beta was 0.04 and is 0.5" in message


def test_a_chat_template_that_opens_the_thinking_is_known_to_the_rewards(results, folder):
    records = [row for _, row in read_jsonl(folder / "opened" / "records.jsonl")]
    assert records and all(record["row"]["thinking_opened"] is True for record in records)
    for record in records:
        assert record["reasons"]["external_format"] != "no think part"
