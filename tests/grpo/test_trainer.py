"""The trainer from scratch: it learns, its micro-batches change nothing, a resumed run equals an
uninterrupted one bitwise, what it logs can be reported, and bad input is named before or while it
trains.
"""

import json
import math
from dataclasses import replace

import pytest
import torch
from curriculum_replay import assert_drawn_by_level
from paths import DATASETS
from rich.console import Console
from small_models import SMALL_MODELS, small_model
from swift_rlvr.evaluation.report.reading import read_run
from swift_rlvr.grpo import GRPOSettings, GRPOTrainer
from swift_rlvr.grpo.policy import Policy, collate
from swift_rlvr.rewards import REWARDS
from swift_rlvr.runs.curriculum import Curriculum, CurriculumSettings
from swift_rlvr.runs.folder import checkpoints
from swift_rlvr.runs.held_out import HeldOutSettings
from swift_rlvr.runs.records import read_records
from swift_rlvr.tasks.countdown import to_messages
from swift_rlvr.training.held_out import HeldOut
from swift_rlvr.utils.errors import DivergedError, InputError
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.jsonl import read_json, read_jsonl
from transformers import AutoModelForCausalLM, AutoTokenizer

pytestmark = pytest.mark.slow  # as a whole

SETTINGS = GRPOSettings(
    num_generations=4,
    per_device_train_batch_size=2,
    gradient_accumulation_steps=4,
    max_steps=4,
    max_completion_length=24,
    top_p=1.0,
    top_k=0,
    beta=0.04,
    learning_rate=1e-3,
    lr_scheduler_type="cosine",
    warmup_ratio=0.25,
    weight_decay=0.1,
    save_steps=2,
)
QUIET = Console(quiet=True)


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(TINY_MODEL)


@pytest.fixture(scope="module")
def rows(request):
    samples = request.config.rootpath / "datasets" / "countdown" / "tiny_train.jsonl"
    tasks = [row for _, row in read_jsonl(samples)][:7]  # no multiple of the two prompts of a step
    return [{"messages": to_messages(row["nums"], row["target"]), **row} for row in tasks]


def tiny_model():
    return AutoModelForCausalLM.from_pretrained(TINY_MODEL, dtype=torch.float32)


def early(completions, **columns):
    """Pays for a 5 early in the completion: every group of short completions has some spread."""
    return [1 / (1 + text.index("5")) if "5" in text else 0.0 for text in completions]


def countdown_only(completions, target, **columns):
    """None for every other row."""
    return [1.0 if number % 2 else None for number in target]


countdown_only.role = "verifier"


def trainer_of(
    tokenizer, rows, folder, settings=SETTINGS, rewards=(early, countdown_only), **options
):
    return GRPOTrainer(
        tiny_model(),
        tokenizer,
        list(rewards),
        rows,
        settings,
        folder,
        reference=tiny_model(),
        console=QUIET,
        **options,
    )


def weights_of(trainer):
    return torch.cat([parameter.detach().flatten() for parameter in trainer.model.parameters()])


def train_and_interrupt(trainer):
    """After three steps."""
    update = trainer.update

    def killed(batch):
        if trainer.step == 3:
            raise KeyboardInterrupt
        return update(batch)

    trainer.update = killed
    with pytest.raises(KeyboardInterrupt):
        trainer.train()


@pytest.fixture(scope="module")
def finished(tokenizer, rows, tmp_path_factory):
    """A run that nothing interrupted."""
    trainer = trainer_of(tokenizer, rows, tmp_path_factory.mktemp("run"), info={"system": "Think."})
    trainer.train()
    return trainer


def test_a_resumed_run_equals_an_uninterrupted_one_bitwise(tokenizer, rows, tmp_path, finished):
    first = trainer_of(tokenizer, rows, tmp_path)
    train_and_interrupt(first)
    assert [path.name for path in checkpoints(tmp_path)] == ["checkpoint-2"]
    torch.manual_seed(1234)  # what a new process would have
    second = trainer_of(tokenizer, rows, tmp_path)
    second.train(tmp_path / "checkpoint-2")
    assert torch.equal(weights_of(second), weights_of(finished))
    mine, whole = (read_run(folder).steps for folder in (tmp_path, finished.folder))
    for name in ("loss", "kl", "reward", "grad_norm", "learning_rate", "completions/mean_length"):
        assert [step[name] for step in mine] == [step[name] for step in whole], name


@pytest.mark.parametrize("size", [1, 8])
def test_micro_batches_do_not_change_the_run(tokenizer, rows, tmp_path, finished, size):
    trainer = trainer_of(
        tokenizer,
        rows,
        tmp_path,
        replace(
            SETTINGS,
            per_device_train_batch_size=size,
            gradient_accumulation_steps=8 // size,
            max_steps=1,
        ),
    )
    trainer.train()
    (step,), first = read_run(tmp_path).steps, read_run(finished.folder).steps[0]
    for name in ("reward", "loss", "grad_norm", "kl"):
        assert step[name] == pytest.approx(first[name], rel=1e-4, abs=1e-7), name


@pytest.mark.parametrize("name", SMALL_MODELS)
def test_log_probabilities_are_those_of_the_whole_logits_one_sequence_at_a_time(name):
    model = small_model(name)
    prompts = [torch.randint(3, 500, (length,)).tolist() for length in (9, 4, 12)]
    completions = [torch.randint(3, 500, (length,)).tolist() for length in (3, 20, 1)]
    batch = collate(prompts, completions, 0, "cpu")
    policy = Policy(model, temperature=0.7)
    assert policy._plain_head == (name != "gemma2")
    found = policy.all_log_probs(batch, 2)
    for row, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        with torch.no_grad():
            output = (model(torch.tensor([prompt + completion])).logits[0] / 0.7).log_softmax(-1)
        expected = (
            output[len(prompt) - 1 : -1].gather(1, torch.tensor(completion).unsqueeze(1)).squeeze(1)
        )
        assert torch.allclose(found[row, : len(completion)], expected, atol=1e-5)
        assert not found[row, len(completion) :].any()


def test_two_updates_with_each_batch_use_the_old_log_probabilities(tokenizer, rows, tmp_path):
    settings = replace(SETTINGS, num_iterations=2, max_steps=3, epsilon=0.01, warmup_ratio=0.0)
    trainer = trainer_of(tokenizer, rows, tmp_path, settings)
    trainer.train()
    steps = read_run(tmp_path).steps
    assert len(steps) == 3
    first, second, third = (step["clip_ratio/region_mean"] for step in steps)
    assert first == third == 0 and second > 0  # the ratio is 1 until the policy has changed
    assert steps[0]["reward"] == steps[1]["reward"]  # the same batch
    assert {record.step for record in read_run(tmp_path).records()} == {1, 3}
    assert checkpoints(tmp_path)[-1].name == "checkpoint-3"


def test_gradient_checkpointing_gives_the_same_run(tokenizer, rows, tmp_path, finished):
    settings = replace(SETTINGS, gradient_checkpointing=True, max_steps=2)
    trainer_of(tokenizer, rows, tmp_path, settings).train()
    first, whole = read_run(tmp_path).steps[0], read_run(finished.folder).steps[0]
    assert first["grad_norm"] == pytest.approx(whole["grad_norm"], rel=1e-5)


def test_bf16_runs_under_autocast_and_keeps_float32_weights(tokenizer, rows, tmp_path, finished):
    trainer = trainer_of(
        tokenizer, rows, tmp_path, replace(SETTINGS, bf16=True, max_steps=2, beta=0.0)
    )
    before = weights_of(trainer)
    trainer.train()
    assert weights_of(trainer).dtype == torch.float32
    assert not torch.equal(before, weights_of(trainer))


def test_it_learns_what_is_rewarded(tokenizer, rows, tmp_path):
    settings = replace(
        SETTINGS,
        per_device_train_batch_size=16,
        gradient_accumulation_steps=1,
        num_generations=8,
        max_steps=12,
        beta=0.0,
        max_completion_length=10,
        learning_rate=3e-3,
        lr_scheduler_type="constant_with_warmup",
    )
    trainer_of(tokenizer, rows, tmp_path, settings, rewards=(early,)).train()
    rewards = [step["reward"] for step in read_run(tmp_path).steps]
    assert sum(rewards[-3:]) > 1.5 * sum(rewards[:3])


def test_what_it_leaves_behind(finished, tokenizer):
    folder = finished.folder
    assert [path.name for path in checkpoints(folder)] == ["checkpoint-2", "checkpoint-4"]
    for place in (folder, folder / "checkpoint-4"):
        args = read_json(place / "args.json")
        assert (
            args["system"] == "Think."
            and args["learning_rate"] == 1e-3
            and args["trainer"] == "scratch"
        )
    saved = AutoModelForCausalLM.from_pretrained(folder / "checkpoint-4")
    assert all(
        torch.equal(a, b)
        for a, b in zip(saved.parameters(), finished.model.parameters(), strict=True)
    )  # and the tokenizer is there, too:
    assert (
        AutoTokenizer.from_pretrained(folder / "checkpoint-4").get_vocab() == tokenizer.get_vocab()
    )
    steps, records = read_run(folder).steps, list(read_run(folder).records())
    assert len(steps) == 4 and len(records) == 32
    names = (
        "loss grad_norm learning_rate reward reward_std frac_reward_zero_std rewards/early/mean "
        "rewards/early/std completions/mean_length completions/max_length completions/clipped_ratio kl "
        "clip_ratio/low_mean clip_ratio/region_mean epoch"
    )
    assert set(names.split()) <= steps[0].keys()
    # None leaves a completion out of the function's mean, and out of the sum.
    assert {record.rewards["countdown_only"] for record in records} == {None, 1.0}
    first = records[:8]
    total = [sum(value or 0.0 for value in record.rewards.values()) for record in first]
    assert steps[0]["reward"] == pytest.approx(sum(total) / 8, abs=1e-5)
    assert {record.step for record in first} == {1} and len(
        {record.question for record in first}
    ) == 2
    rates = [step["learning_rate"] for step in steps]
    assert rates[0] == 0 and rates[1] == pytest.approx(1e-3) and rates[1] > rates[2] > rates[3]
    assert any((folder / "runs").iterdir())


def test_reasons_are_logged_for_our_rewards(tokenizer, rows, tmp_path):
    rewards = [REWARDS["external_countdown"](), REWARDS["external_format"]()]
    trainer_of(tokenizer, rows, tmp_path, replace(SETTINGS, max_steps=1), rewards).train()
    (step,) = read_run(tmp_path).steps
    shares = [value for name, value in step.items() if name.startswith("reasons/CountdownReward/")]
    assert shares and sum(shares) == pytest.approx(1)
    records = list(read_records(tmp_path / "records.jsonl"))
    for name in ("success", "strict", "format"):
        values = [getattr(record, name) for record in records]
        assert step[name] == pytest.approx(sum(values) / len(values))
    assert [record.success for record in records] == [
        record.rewards["external_countdown"] == 1 for record in records
    ]


def test_all_rows_come_once_in_an_epoch_and_in_another_order_in_the_next(tokenizer, rows, tmp_path):
    trainer = trainer_of(tokenizer, rows, tmp_path)
    numbers = [number for _ in range(7) for number in trainer._next_rows()]
    assert sorted(numbers[:7]) == sorted(numbers[7:]) == list(range(7))
    assert numbers[:7] != numbers[7:]


@pytest.mark.parametrize(
    "values",
    [lambda n: [0.0] * (n - 1), lambda n: None, lambda n: 1.0],
    ids=["short", "None", "number"],
)
def test_a_reward_with_the_wrong_number_of_values_is_named(tokenizer, rows, tmp_path, values):
    def broken(completions, **columns):
        return values(len(completions))

    with pytest.raises(
        InputError, match="reward broken must return 8 values, one a completion, got"
    ):
        trainer_of(tokenizer, rows, tmp_path, rewards=(early, broken)).train()


def test_rewards_are_told_the_step_as_in_ms_swift_and_trl(tokenizer, rows, tmp_path):
    steps = []

    def recorded(completions, trainer_state, **columns):
        steps.append(trainer_state.global_step)
        return early(completions)

    trainer_of(tokenizer, rows, tmp_path, rewards=(recorded, REWARDS["random"]())).train()
    assert steps == [0, 1, 2, 3]


def test_a_loss_that_is_not_finite_ends_the_run_and_keeps_the_last_checkpoint(
    tokenizer, rows, tmp_path, finished
):
    def infinite(completions, **columns):
        infinite.calls += 1
        return [math.inf if infinite.calls == 4 else float(i) for i in range(len(completions))]

    infinite.calls = 0
    trainer = trainer_of(tokenizer, rows, tmp_path, rewards=(early, infinite))
    with pytest.raises(
        DivergedError,
        match=r"step 4: the loss is (nan|-?inf), .* last checkpoint is .*checkpoint-2",
    ):
        trainer.train()
    assert [path.name for path in checkpoints(tmp_path)] == ["checkpoint-2"]
    assert weights_of(trainer).isfinite().all()
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "checkpoint-2") is not None


def test_a_checkpoint_that_could_not_be_written_leaves_the_one_before(
    tokenizer, rows, tmp_path, monkeypatch
):
    trainer = trainer_of(tokenizer, rows, tmp_path)
    save = torch.save

    def full_disk(state, path):
        if state["step"] == 4:
            raise OSError("no space left on device")
        save(state, path)

    monkeypatch.setattr(torch, "save", full_disk)
    with pytest.raises(OSError, match="no space left"):
        trainer.train()
    monkeypatch.undo()
    assert [path.name for path in checkpoints(tmp_path)] == ["checkpoint-2"]
    trainer_of(tokenizer, rows, tmp_path).train(tmp_path / "checkpoint-2")
    assert checkpoints(tmp_path)[-1].name == "checkpoint-4"


def test_a_checkpoint_of_other_settings_is_refused(tokenizer, rows, tmp_path, finished):
    settings = replace(SETTINGS, beta=0.1, save_steps=50)
    other = trainer_of(tokenizer, rows, tmp_path, settings, info={"system": "Think."})
    with pytest.raises(
        InputError, match=r"resumed with other settings: beta was 0\.04 and is 0\.1$"
    ):
        other.train(finished.folder / "checkpoint-2")
    with pytest.raises(InputError, match=r"expected a checkpoint of a run, with args\.json in it"):
        other.train(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"gradient_accumulation_steps": 5},
            "gradient_accumulation_steps must be a multiple of num_generations, 4, got 10",
        ),
        ({"epsilon_high": 0.1}, "epsilon_high must be at least epsilon, 0.2, got 0.1"),
        ({"max_steps": 0}, "max_steps must be at least 1"),
        (
            {"lr_scheduler_type": "constant"},
            "lr_scheduler_type must be constant_with_warmup where warmup_ratio is not 0",
        ),
    ],
)
def test_settings_that_do_not_go_together_are_named(changes, message):
    with pytest.raises(InputError, match=message):
        replace(SETTINGS, **changes)


def test_what_does_not_fit_together_is_named_before_training(tokenizer, rows, tmp_path):
    with pytest.raises(InputError, match="the dataset has 0 rows, too few for one step"):
        trainer_of(tokenizer, [], tmp_path)
    with pytest.raises(InputError, match="one for each of 2 rewards, got "):
        trainer_of(tokenizer, rows, tmp_path, replace(SETTINGS, reward_weights=(1.0,)))
    with pytest.raises(
        InputError,
        match="max_completion_length must be at most 9[0-9]{2}, got 1000: the model reads 1024",
    ):
        trainer_of(tokenizer, rows, tmp_path, replace(SETTINGS, max_completion_length=1000))
    with pytest.raises(InputError, match="beta must be 0 without a reference model"):
        GRPOTrainer(tiny_model(), tokenizer, [early], rows, SETTINGS, tmp_path)
    assert not any(tmp_path.iterdir())


def test_the_json_of_a_run_is_json(finished):
    """No NaN in the log of an update, whatever the rewards say."""
    for name in ("logging.jsonl", "records.jsonl"):
        for line in (finished.folder / name).read_text().splitlines():
            json.loads(line, parse_constant=pytest.fail)


def test_a_curriculum_draws_by_level_and_goes_on_with_the_same_rows_after_a_checkpoint(
    tokenizer, tmp_path
):
    """Bitwise: the weights and the log of the resumed run are those of the other one."""
    levels = [row for _, row in read_jsonl(DATASETS / "countdown" / "tiny_levels_train.jsonl")]
    rows = [{"messages": to_messages(row["nums"], row["target"]), **row} for row in levels]
    rewards = [REWARDS["external_format"](), REWARDS["external_countdown"]()]
    settings = replace(SETTINGS, max_completion_length=64)
    runs = []
    for folder in (tmp_path / "whole", tmp_path / "resumed"):
        curriculum = Curriculum([row["level"] for row in rows], CurriculumSettings(), settings.seed)
        runs.append(trainer_of(tokenizer, rows, folder, settings, rewards, curriculum=curriculum))
    whole, resumed = runs
    whole.train()
    resumed.max_steps = 2
    resumed.train()
    curriculum = Curriculum([row["level"] for row in rows], CurriculumSettings(), settings.seed)
    last = trainer_of(tokenizer, rows, resumed.folder, settings, rewards, curriculum=curriculum)
    last.train(resumed.folder / "checkpoint-2")
    assert torch.equal(weights_of(last), weights_of(whole))
    for folder in (whole.folder, resumed.folder):
        replayed = assert_drawn_by_level([folder], rows, settings.num_generations)
        assert replayed.state() == whole.curriculum.state() == last.curriculum.state()
    with pytest.raises(
        InputError, match="reward_funcs must hold a reward that tells right from wrong"
    ):
        trainer_of(tokenizer, rows, tmp_path, rewards=rewards[:1], curriculum=whole.curriculum)


def held_out_of(request, **settings):
    """Of three tasks that are not in the training; `successes` may stand in for what the grades
    say.
    """
    file = request.config.rootpath / "datasets" / "countdown" / "tiny_validation.jsonl"
    chosen = {"held_out_every": 1, "held_out_rows": 3, "held_out_samples": 2, **settings}
    return HeldOut(HeldOutSettings(f"countdown:{file}", **chosen), say=lambda text: None)


def with_successes(held_out, successes):
    """The same, but the verdict of its evaluations follows from these numbers, by step."""
    record = held_out.schedule.record
    held_out.schedule.record = lambda step, success: record(step, successes[step])
    return held_out


def test_held_out_rows_are_evaluated_and_change_nothing_in_the_training(
    tokenizer, rows, tmp_path, finished, request
):
    trainer = trainer_of(
        tokenizer, rows, tmp_path, info={"system": "Think."}, held_out=held_out_of(request)
    )
    trainer.train()
    assert torch.equal(weights_of(trainer), weights_of(finished))
    lines = [line for _, line in read_jsonl(tmp_path / "logging.jsonl")]
    evaluations = [line for line in lines if "eval/success" in line]
    assert [line["global_step/max_steps"] for line in evaluations] == [
        f"{step}/4" for step in range(5)
    ]
    records = [line for _, line in read_jsonl(tmp_path / "held_out.jsonl")]
    assert [(line["step"], line["index"], line["sample"]) for line in records] == [
        (step, index, sample) for step in range(5) for index in range(3) for sample in range(2)
    ]
    for step, line in enumerate(evaluations):
        own = [record for record in records if record["step"] == step]
        assert line["eval/mean_length"] == pytest.approx(
            sum(record["tokens"] for record in own) / 6, abs=1e-6
        )
        assert line["eval/cut_off"] == pytest.approx(
            sum(record["finish"] == "length" for record in own) / 6, abs=1e-6
        )
    first, last = ([r["completion"] for r in records if r["step"] == step] for step in (0, 4))
    assert first != last, "the policy of the step was not sampled"


@pytest.mark.parametrize("limit", [1, 2])
def test_the_best_checkpoint_outlives_the_limit_and_a_resumption(
    tokenizer, rows, tmp_path, request, limit
):
    """The best is step 1 of 4; of the others as many stay as there is room for beside it, and at
    least the last.
    """
    settings = replace(SETTINGS, save_total_limit=limit, save_steps=1, max_steps=4)
    successes = {0: 0.9, 1: 0.8, 2: 0.1, 3: 0.2, 4: 0.3}
    first = trainer_of(
        tokenizer,
        rows,
        tmp_path,
        settings,
        held_out=with_successes(held_out_of(request), successes),
    )
    train_and_interrupt(first)
    assert [path.name for path in checkpoints(tmp_path)] == ["checkpoint-1", "checkpoint-3"]
    second = trainer_of(
        tokenizer,
        rows,
        tmp_path,
        settings,
        held_out=with_successes(held_out_of(request), successes),
    )
    assert second.train(tmp_path / "checkpoint-3") == tmp_path / "checkpoint-4"
    assert [path.name for path in checkpoints(tmp_path)] == ["checkpoint-1", "checkpoint-4"]
    assert (tmp_path / "best").resolve() == tmp_path / "checkpoint-1"
    AutoModelForCausalLM.from_pretrained(tmp_path / "best")


def test_patience_ends_the_run_with_a_checkpoint(tokenizer, rows, tmp_path, request):
    held_out = with_successes(
        held_out_of(request, held_out_patience=2), {0: 0.9, 1: 0.8, 2: 0.1, 3: 0.2}
    )
    settings = replace(SETTINGS, save_steps=100, max_steps=9)
    assert (
        trainer_of(tokenizer, rows, tmp_path, settings, held_out=held_out).train()
        == tmp_path / "checkpoint-3"
    )


def test_an_alarm_ends_a_run_that_asked_for_it(tokenizer, rows, tmp_path):
    """A reward that is the same for all gives no group any spread."""
    settings = replace(SETTINGS, save_steps=100, max_steps=15, max_completion_length=4, beta=0.0)

    def same(completions, **columns):
        return [0.5] * len(completions)

    trainer = trainer_of(tokenizer, rows, tmp_path, settings, rewards=[same], stop_on_alarm=True)
    assert trainer.train() == tmp_path / "checkpoint-10"
    (alarm,) = [row for _, row in read_jsonl(tmp_path / "alarms.jsonl")]
    assert (alarm["step"], alarm["kind"], len(alarm["completions"])) == (10, "no_spread", 3)
