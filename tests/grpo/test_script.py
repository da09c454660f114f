"""scripts/grpo_from_scratch.py trains: the same run with the same seed, a model that is loaded again
bit for bit, micro-batches that change nothing, logs that `report` reads.
"""

import runpy
import subprocess
import sys

import pytest
import torch
import transformers
from rich.console import Console

import grpo_from_scratch as script
from paths import DATASETS, ROOT
from present import present
from report_pages import Document
from small_models import SMALL_MODELS, small_model
from swift_rlvr.evaluation.report import write_report
from swift_rlvr.evaluation.report.reading import read_run
from swift_rlvr.runs.records import read_records
from swift_rlvr.utils.errors import DivergedError, InputError
from swift_rlvr.utils.jsonl import read_json

pytestmark = pytest.mark.slow  # as a whole

SMALL = [
    *("--max_steps", "3", "--save_steps", "2", "--max_completion_length", "40"),
    *("--num_generations", "4", "--prompts_per_step", "2", "--micro_batch_size", "3"),
    *("--learning_rate", "1e-3", "--beta", "0.04"),
]


def trained(folder, *flags):
    """The settings of a small run and its last checkpoint."""
    settings = script.read_settings([*SMALL, "--output_dir", str(folder), *flags])
    return settings, script.train(settings, Console(quiet=True))


def weights_of(checkpoint):
    model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("script") / "run"
    trained(folder)
    return folder


def test_it_trains_and_says_what_it_did(run):
    assert [path.name for path in sorted(run.glob("checkpoint-*"))] == [
        "checkpoint-2",
        "checkpoint-3",
    ]
    assert not torch.equal(weights_of(run / "checkpoint-3"), weights_of(run / "checkpoint-2"))
    steps = read_run(run).steps
    assert [step["step"] for step in steps] == [1, 2, 3]
    assert steps[0]["kl"] == 0 < steps[2]["kl"]
    records = list(read_records(run / "records.jsonl"))
    assert len(records) == 3 * 8
    for step in steps:
        own = [record for record in records if record.step == step["step"]]
        assert [record.index for record in own] == list(range(8))
        # A group has one prompt, and advantages that cancel.
        for group in (own[:4], own[4:]):
            assert len({record.row["target"] for record in group}) == 1
            assert sum(present(record.advantage) for record in group) == pytest.approx(0, abs=1e-4)
        paid = [present(record.rewards["external_countdown"]) for record in own]
        assert step["rewards/CountdownReward/mean"] == pytest.approx(sum(paid) / 8)
        assert step["success"] == pytest.approx(sum(present(record.success) for record in own) / 8)
        lengths = [present(record.tokens) for record in own]
        assert step["completions/mean_length"] == pytest.approx(sum(lengths) / 8)
    assert read_json(run / "args.json")["system"].startswith("You are a helpful assistant")


def test_the_report_reads_a_run(run, tmp_path):
    curves, page = write_report(run, tmp_path)
    assert present(curves).stat().st_size > 10_000
    assert len(Document(page.read_text()).completions()) == 3 * 8


def test_the_same_seed_trains_the_same_weights_and_another_one_others(run, tmp_path):
    first = weights_of(run / "checkpoint-3")
    torch.manual_seed(1)  # which has no part in it
    _, again = trained(tmp_path / "again")
    _, other = trained(tmp_path / "other", "--seed", "7")
    assert torch.equal(weights_of(again), first)
    assert not torch.equal(weights_of(other), first)


def test_the_saved_model_answers(run):
    settings = script.read_settings(SMALL)
    question = "Using the numbers [3, 5, 7], create an equation that equals 22."
    torch.manual_seed(0)
    answer = script.chat(str(run / "checkpoint-3"), question, settings)
    assert any(number in answer for number in "357") and "<|im_end|>" not in answer


def test_micro_batches_do_not_change_a_step(run, tmp_path):
    trained(tmp_path / "whole", "--max_steps", "1", "--micro_batch_size", "8")
    (whole,), first = read_run(tmp_path / "whole").steps, read_run(run).steps[0]
    for name in ("reward", "loss", "grad_norm", "kl"):
        assert whole[name] == pytest.approx(first[name], rel=1e-4, abs=1e-7), name


def test_a_second_iteration_has_the_same_completions_and_the_old_log_probabilities(tmp_path):
    flags = ["--num_iterations", "2", "--epsilon", "0.001", "--learning_rate", "1e-2"]
    trained(tmp_path / "run", *flags, "--lr_scheduler_type", "constant")
    first, second, third = read_run(tmp_path / "run").steps
    assert first["clip_ratio/region_mean"] == third["clip_ratio/region_mean"] == 0
    assert second["clip_ratio/region_mean"] > 0
    assert first["reward"] == second["reward"]
    assert {record.step for record in read_records(tmp_path / "run" / "records.jsonl")} == {1, 3}


def test_gsm8k_has_the_weights_of_its_recipe(tmp_path):
    settings = script.read_settings(["--task", "gsm8k"])
    assert (settings.epsilon, settings.beta, settings.num_iterations) == (0.2, 0.04, 1)
    assert (settings.temperature, settings.top_p, settings.top_k) == (1.0, 0.9, 50)
    assert settings.learning_rate == 1e-6 and settings.reward_weights == [0.5, 0.5, 1.0]
    tiny = script.TASKS["countdown"]["model"]
    flags = ["--task", "gsm8k", "--model", tiny, "--dataset", f"gsm8k:{DATASETS}/gsm8k/train.jsonl"]
    trained(tmp_path / "run", *flags, "--max_steps", "1")
    (step,) = read_run(tmp_path / "run").steps
    names = ("FormatStrict", "TagCount", "Accuracy")
    means = [step[f"rewards/{name}Reward/mean"] for name in names]
    expected = sum(weight * mean for weight, mean in zip((0.5, 0.5, 1.0), means, strict=True))
    assert step["reward"] == pytest.approx(expected, abs=1e-6)


def test_a_folder_with_another_run_is_refused(run):
    before = (run / "logging.jsonl").read_bytes()
    with pytest.raises(InputError):
        trained(run)
    assert (run / "logging.jsonl").read_bytes() == before


def test_a_loss_that_is_not_finite_ends_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(script, "k3_kl", lambda log_probs, ref: log_probs * torch.inf)
    with pytest.raises(DivergedError):
        trained(tmp_path / "run")
    assert not list((tmp_path / "run").glob("checkpoint-*"))


@pytest.mark.parametrize("name", SMALL_MODELS)
def test_log_probabilities_are_those_of_one_sequence_at_a_time(name):
    model = small_model(name)
    lengths = [(9, 3), (4, 20), (12, 1)]
    prompts = [torch.randint(3, 500, (prompt,)).tolist() for prompt, _ in lengths]
    completions = [torch.randint(3, 500, (length,)).tolist() for _, length in lengths]
    tokens, attention, mask = [], [], []
    for prompt, completion in zip(prompts, completions, strict=True):
        left, right = 12 - len(prompt), 20 - len(completion)
        tokens.append([0] * left + prompt + completion + [0] * right)
        attention.append([0] * left + [1] * (len(prompt) + 20))
        mask.append([True] * len(completion) + [False] * right)
    mask = torch.tensor(mask)
    batch = script.Batch(
        torch.tensor(tokens), torch.tensor(attention), mask, torch.zeros(3), mask.float()
    )
    log_probs = script.all_log_probs(model, batch, 2, temperature=0.7)
    for row, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        with torch.no_grad():
            whole = (model(torch.tensor([prompt + completion])).logits[0] / 0.7).log_softmax(-1)
        chosen = torch.tensor(completion).unsqueeze(1)
        expected = whole[len(prompt) - 1 : -1].gather(1, chosen).squeeze(1)
        assert torch.allclose(log_probs[row, : len(completion)], expected, atol=1e-5)


def test_none_is_no_reward_of_a_group():
    """A reward that applies to every other completion, beside one that always does."""
    rows = [{"messages": [], "n": number} for number in range(4)]

    def odd_only(completions, n, **columns):
        return [1.0 if number % 2 else None for number in n]

    def length(completions, **columns):
        return [float(len(text)) for text in completions]

    scores, _ = script.score([odd_only, length], rows, ["a", "bb", "ccc", "dddd"])
    totals = script.total_rewards(scores, torch.tensor([10.0, 1.0]))
    assert totals.tolist() == [1.0, 12.0, 3.0, 14.0]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (f"--dataset math:{DATASETS}/math/train.jsonl", "external_countdown grades no row of"),
        ("--reward_funcs countdown format countdown --reward_weights 1 1 1", "named twice in"),
    ],
)
def test_rewards_that_do_not_fit_are_named_before_the_model_is_loaded(flags, message, tmp_path):
    with pytest.raises(InputError, match=message):
        trained(tmp_path / "run", "--model", "/no/model", *flags.split())
    assert not (tmp_path / "run").exists()


PROGRAM = str(ROOT / "scripts" / "grpo_from_scratch.py")


def test_a_mistake_is_named_without_a_traceback(tmp_path):
    command = [sys.executable, PROGRAM, "--output_dir", "run", "--model", "/no/model"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.startswith("error: model: /no/model: ")
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "flags",
    [
        "--reward_weights 1",
        "--reward_weights 0 0",
        "--reward_weights nan 1",
        "--max_steps 0",
        "--temprature 1",
        # These taught nothing, did something else, or never ended.
        "--num_generations 1",
        "--scale_rewards batch",
        "--max_grad_norm 0",
        "--epsilon -0.1",
        "--num_iterations 0",
        # These ended in a traceback after the model was loaded.
        "--micro_batch_size 0",
        "--loss_type gspo",
        "--lr_scheduler_type zigzag",
    ],
)
def test_a_flag_that_cannot_be_used_is_named(flags, tmp_path, monkeypatch, capsys):
    """The program as it runs by its name, without the seconds in which a process imports torch."""
    flag, *values = flags.split()
    monkeypatch.setattr(
        sys, "argv", [PROGRAM, "--output_dir", str(tmp_path / "run"), flag, *values]
    )
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(PROGRAM, run_name="__main__")
    assert ended.value.code not in (None, 0)
    assert flag in f"{ended.value.code} {capsys.readouterr().err}"
    assert not (tmp_path / "run").exists()
