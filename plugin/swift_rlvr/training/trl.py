"""The same rewards and datasets under TRL's GRPOTrainer, with ms-swift's form of logs.

    swift-rlvr train --trainer trl ...

For a script of your own there is `load_dataset`. The settings are those of TRL's GRPOConfig under
their own names. The output folder gets the trained model with its tokenizer, the last checkpoints,
and the files of `swift_rlvr.runs.folder`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache, partial
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import torch
import trl
from datasets import Dataset
from pyarrow import ArrowException
from rich.console import Console
from transformers import AutoConfig, PrinterCallback, ProgressCallback
from trl import GRPOConfig

from swift_rlvr.evaluation.models import (
    ends_in_thinking,
    fitting_prompts,
    load_pretrained,
    load_tokenizer,
)
from swift_rlvr.evaluation.sampling import Completion
from swift_rlvr.evaluation.sampling.checkpoint import download
from swift_rlvr.rewards import Reward
from swift_rlvr.rewards.base import THINKING_OPENED
from swift_rlvr.rewards.build import build_rewards
from swift_rlvr.runs.curriculum import CurriculumSettings, check_has_verifier, curriculum_of
from swift_rlvr.runs.folder import (
    ARGS,
    as_json,
    check_same_settings,
    checkpoint_to_resume,
    checkpoints,
    diverged,
    is_finished,
    missing,
)
from swift_rlvr.runs.held_out import HeldOutSettings
from swift_rlvr.runs.log import RunLog
from swift_rlvr.tasks.pictures import IMAGES, TAG, opened
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.training.arguments import Command, DataArguments, RunArguments
from swift_rlvr.training.curriculum import CurriculumCallback
from swift_rlvr.training.held_out import HeldOut, HeldOutCallback, held_out_rows
from swift_rlvr.training.reason_callback import ReasonCallback
from swift_rlvr.training.rows import read_data
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.imports import without_collecting
from swift_rlvr.utils.jsonl import write_json
from swift_rlvr.utils.settings import Accepts, setting
from swift_rlvr.verifiers.thinking import opens_thinking, with_opening

# What TRL accepts in settings of its own is checked here where it is wider, or known only once a
# model is loaded.
RANGES = {
    "num_generations": Accepts({"at_least": 2}),
    "per_device_train_batch_size": Accepts({"at_least": 1}),
    "gradient_accumulation_steps": Accepts({"at_least": 1}),
    "max_completion_length": Accepts({"at_least": 1}),
    "num_iterations": Accepts({"at_least": 1}),
    "num_train_epochs": Accepts({"more_than": 0}),
    "max_steps": Accepts({"at_least": -1}),
    "temperature": Accepts({"more_than": 0}),
    "top_p": Accepts({"more_than": 0, "at_most": 1}),
    "top_k": Accepts({"at_least": 0}),
    "epsilon": Accepts({"at_least": 0}),
    "epsilon_high": Accepts({"at_least": 0}),
    "delta": Accepts({"more_than": 1}),
    "top_entropy_quantile": Accepts({"more_than": 0}),
    "beta": Accepts({"at_least": 0}),
    "learning_rate": Accepts({"more_than": 0}),
    "weight_decay": Accepts({"at_least": 0}),
    "adam_beta1": Accepts({"at_least": 0, "less_than": 1}),
    "adam_beta2": Accepts({"at_least": 0, "less_than": 1}),
    "max_grad_norm": Accepts({"at_least": 0}),
    "save_steps": Accepts({"more_than": 0}),
    "save_total_limit": Accepts({"at_least": 1}),
    "seed": Accepts({"at_least": 0}),
    "sapo_temperature_pos": Accepts({"more_than": 0}),
    "sapo_temperature_neg": Accepts({"more_than": 0}),
}
# Settings whose values TRL compares with names, and refuses others in the first step.
NAMED = ("loss_type", "importance_sampling_level", "scale_rewards", "multi_objective_aggregation")


@dataclass(frozen=True, kw_only=True)
class TrlArguments(RunArguments):
    """Model, data and rewards of a training; TRL's GRPOConfig has the rest."""

    warmup_ratio: float = setting(
        0.0, "Share of the steps over which the learning rate rises.", at_least=0, less_than=1
    )


def read(command: Command) -> tuple[TrlArguments, GRPOConfig, HeldOutSettings, CurriculumSettings]:
    """The settings of a command line, with defaults for this machine where TRL's would not work."""
    cuda = torch.cuda.is_available()
    arguments, config, evaluation, drawing = command.parse(
        (TrlArguments, GRPOConfig, HeldOutSettings, CurriculumSettings),
        use_cpu=not cuda,
        bf16=cuda and torch.cuda.is_bf16_supported(),
        dataloader_pin_memory=cuda,
        logging_nan_inf_filter=False,  # which would hide a loss that is not finite
    )
    # Without one, transformers takes trainer_output.
    if not command.settings.get("output_dir"):
        problem = "is required: the folder for the model, its checkpoints and the logs"
        raise InputError(problem, "output_dir")
    for name, accepts in RANGES.items():
        value = getattr(config, name)
        if value is not None and not accepts.allows(value):
            raise InputError(f"must be {accepts}, got {value!r}", name)
    for name in NAMED:
        names, value = names_in_trl(name), getattr(config, name)
        if names and value not in names:
            raise InputError(f"must be one of {', '.join(names)}, got {value!r}", name)
    weights, rewards = config.reward_weights, arguments.reward_funcs
    if weights and len(weights) != len(rewards):
        problem = f"must be one for each of {', '.join(rewards)}, got {len(weights)}"
        raise InputError(problem, "reward_weights")

    # Settings with which a training runs to its end, and no completion is better than another.
    for name in ("top_k", "min_p"):
        if getattr(config, name) == 1:
            problem = "must not be 1: all completions of a prompt would be the same"
            raise InputError(problem, name)
    high = config.epsilon if config.epsilon_high is None else config.epsilon_high
    # Other losses clip at 1 + epsilon_high, and so its default, epsilon, is far too small for this one.
    if config.loss_type == "cispo" and high < 1:
        problem = (
            f"must be at least 1 with loss_type cispo, whose largest ratio it is, got {high:g}"
        )
        raise InputError(problem, "epsilon_high")
    if weights and not any(weights):
        problem = "must not all be 0: every completion would be worth the same"
        raise InputError(problem, "reward_weights")
    if config.max_steps == 0:
        raise InputError("must be at least 1, or -1 for all epochs, got 0", "max_steps")

    if arguments.warmup_ratio:
        # transformers takes a number below 1 as a share.
        config.warmup_steps = arguments.warmup_ratio
    return arguments, config, evaluation, drawing


@cache
def names_in_trl(setting: str) -> list[str]:
    """The names with which the installed TRL compares a setting of its trainer.

    >>> {"group", "batch", "none"} <= {*names_in_trl("scale_rewards")}
    True
    """
    code = Path(trl.__file__).with_name("trainer") / "grpo_trainer.py"
    compared = re.findall(rf'self\.{setting} (?:==|in) (\[.*?\]|".*?")', code.read_text())
    return list(dict.fromkeys(re.findall(r'"(\w+)"', " ".join(compared))))


class RunData(NamedTuple):
    """The rewards and the rows of a run, as `read_data` and `held_out_rows` give them."""

    rewards: list[Reward]
    rows: list[dict[str, Any]]
    system: str | None
    held_out: HeldOut | None


def load(
    arguments: TrlArguments,
    config: GRPOConfig,
    evaluation: HeldOutSettings,
    tokenizer: Callable[[], Any],
    console: Console,
) -> RunData:
    """The rewards and the rows of a run. tokenizer: as for `read_data`.

    Raises:
        InputError: what cannot be used, or too few rows for a step.
    """
    rewards = build_rewards(arguments.reward_funcs)
    weights = config.reward_weights or [1.0] * len(rewards)
    rows, system = read_data(arguments, rewards, console, weights=weights, tokenizer=tokenizer)
    held_out = held_out_rows(arguments, evaluation, rows, console)
    prompts = config.generation_batch_size // config.num_generations
    if len(rows) < prompts:
        step = (
            f"{config.generation_batch_size} completions / num_generations {config.num_generations}"
        )
        raise InputError(f"the dataset has {len(rows)} rows, too few for one step: {step}")
    # As under ms-swift, see `rescaled` in training/ms_swift/unusable.py; dapo is TRL's default.
    sampled, summed = config.steps_per_generation, config.gradient_accumulation_steps
    if config.loss_type in ("dapo", "cispo") and sampled != summed:
        text = (
            f"steps_per_generation {sampled}: with loss_type {config.loss_type} the gradient is "
            f"{summed / sampled:.3g} times as large as with gradient_accumulation_steps, {summed}. AdamW's steps stay "
            "the same, but max_grad_norm clips at another norm"
        )
        console.print(text, style="yellow", soft_wrap=True)
    return RunData(rewards, rows, system, held_out)


def check(command: Command, console: Console) -> None:
    """Read the settings, the rewards and the rows as `run` does; what is on a hub is not downloaded,
    and a note says so.

    Raises:
        InputError: a training would end there.
    """
    arguments, config, evaluation, _ = read(command)
    for name in filter(None, (arguments.dataset, evaluation.held_out_dataset)):
        try:
            source = parse_source(name, arguments.use_hf, arguments.columns)
        except InputError as error:
            raise InputError(str(error), error.field or "dataset") from error
        if source.path is None and source.made is None:
            build_rewards(arguments.reward_funcs)
            text = f"{name} is on a hub: DRY_RUN downloads nothing, so its rows were not checked"
            console.print(text, style="yellow", markup=False, soft_wrap=True)
            return

    def tokenizer() -> Any:
        if Path(arguments.model).expanduser().is_dir():
            return load_tokenizer(download(arguments.model))
        text = (
            f"{arguments.model} is no folder: DRY_RUN downloads nothing, so the rewards were tried"
        )
        text += " without its tokenizer, whose special tokens TRL drops"
        console.print(text, style="yellow", markup=False, soft_wrap=True)
        return None

    load(arguments, config, evaluation, tokenizer, console)


def run(command: Command, console: Console) -> str:
    """Train, and return the folder of the model.

    Raises:
        InputError: before the training, for what cannot be used.
        DivergedError: in the training.
    """
    arguments, config, evaluation, drawing = read(command)
    folder = Path(config.output_dir)
    checkpoint = checkpoint_to_resume(folder, config.resume_from_checkpoint)

    def tokenizer() -> Any:
        return load_tokenizer(download(arguments.model, arguments.use_hf, weights=False))

    rewards, rows, system, held_out = load(arguments, config, evaluation, tokenizer, console)
    if curriculum_of(rows, drawing, config.seed):
        check_has_verifier(rewards)

    settings = {**arguments.as_json(system, rewards), **asdict(evaluation), **drawing.as_json()}
    info = as_json({"trainer": "trl", **config.to_dict(), **settings})
    if checkpoint is not None:
        available = checkpoints(folder)
        for path in available[available.index(checkpoint) + 1 :]:
            if lost := missing(path):
                text = f"{path} is skipped: it lacks {lost}"
                console.print(text, markup=False, soft_wrap=True)
        check_same_settings(checkpoint, info)
        # transformers would make no step, and save the model of the checkpoint as the run's result.
        if is_finished(checkpoint, config.to_dict()):
            text = f"nothing to do: {checkpoint} is the checkpoint of the last step"
            console.print(text, markup=False, soft_wrap=True)
            return str(folder)

    trainer = _trainer(arguments, config, rewards, rows, held_out, console)
    with RunLog(folder, console, stop_on_alarm=arguments.stop_on_alarm) as log:
        trainer.add_callback(ReasonCallback(config, trainer, log))
        if held_out is not None:
            trainer.add_callback(HeldOutCallback(config, trainer, held_out, sample, log))
        if drawing.curriculum:
            trainer.add_callback(CurriculumCallback(config, trainer, drawing))
        if trainer.is_world_process_zero():
            write_json(folder / ARGS, info)
        text = f"{len(rows):,} rows, {config.generation_batch_size} completions a step"
        console.print(f"{text} in groups of {config.num_generations}", soft_wrap=True)
        try:
            trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
        except RuntimeError as error:
            # What torch says where the logits are not finite.
            if "probability tensor" not in str(error):
                raise
            step = trainer.state.global_step + 1
            raise diverged(folder, step, "the logits are not finite") from error
    trainer.save_model(str(folder))
    return str(folder)


def load_dataset(
    name: str,
    reward_funcs: Any = (),
    *,
    processing_class: Any = None,
    system: str | None = None,
    columns: str | Mapping[str, str] | None = None,
    use_hf: bool = False,
) -> Dataset:
    """The rows of a dataset for TRL's trainers: `prompt`, as messages, and the columns of the
    rewards.

    They are the rows that `swift-rlvr train --trainer trl` trains on. Those that cannot be used are
    left out and named on stderr.

        rewards = [REWARDS["accuracy"](), REWARDS["format"]()]
        dataset = load_dataset("math:FILE", rewards)
        GRPOTrainer(model, reward_funcs=rewards, train_dataset=dataset, ...)

    Args:
        name: as in `--dataset`: NAME:FILE, FILE, NAME or NAME:SPLIT, each with or without #N.
        reward_funcs: as in GRPOTrainer. The columns of those of this package are looked for. Where
            there are others too, or none is named, all columns are kept.
        processing_class: the model's tokenizer or processor. Where its chat template opens the
            thinking in the prompt, the column `thinking_opened` tells the rewards. Rows with pictures
            need a processor that takes them.
        system: the system prompt of rows without one; by default the task's.
        columns: new names of columns, as in `--columns`.
        use_hf: load a dataset NAME from Hugging Face instead of ModelScope.

    Raises:
        InputError: the dataset cannot be read, too many of its rows cannot be used, a reward lacks a
            column or grades no row, or a table cannot hold a column.
    """
    new_names = json.dumps(columns) if isinstance(columns, Mapping) else columns
    arguments = DataArguments(dataset=name, system=system, use_hf=use_hf, columns=new_names)
    if not isinstance(reward_funcs, (list, tuple)):  # GRPOTrainer takes a single one, too
        reward_funcs = [reward_funcs]
    rewards = [reward for reward in reward_funcs if isinstance(reward, Reward)]
    is_all = bool(rewards) and len(rewards) == len(reward_funcs)
    sees = hasattr(processing_class, "image_processor")
    console = Console(stderr=True, soft_wrap=True)
    rows, _ = read_data(arguments, rewards, console, all_columns=not is_all, with_pictures=sees)
    if any(row.get(IMAGES) for row in rows):
        rows = [_with_pictures(row) for row in rows]
    return as_dataset(_with_thinking(rows, processing_class))


def _with_pictures(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as TRL takes pictures: `images`, opened, and messages whose content is a list of texts and
    places for them.
    """
    pictures = row.get(IMAGES) or []
    turns = []
    for turn in row["prompt"]:
        parts = []
        for number, text in enumerate(str(turn["content"]).split(TAG)):
            if number and pictures:
                parts.append({"type": "image", "text": None})
            if text:
                parts.append({"type": "text", "text": text})
        turns.append({"role": turn["role"], "content": parts})
    return {**row, "prompt": turns, IMAGES: [opened(picture) for picture in pictures]}


def _with_thinking(
    rows: list[dict[str, Any]], tokenizer: Any, **template_kwargs: Any
) -> list[dict[str, Any]]:
    """The rows, which say that their prompt opens the thinking where it does."""
    if getattr(tokenizer, "chat_template", None) is None:
        return rows
    prompt = tokenizer.apply_chat_template(
        rows[0]["prompt"], add_generation_prompt=True, tokenize=False, **template_kwargs
    )
    if not opens_thinking(prompt):
        return rows
    return [{**row, THINKING_OPENED: True} for row in rows]


def _trainer(
    arguments: TrlArguments,
    config: GRPOConfig,
    rewards: Sequence[Any],
    rows: list[dict[str, Any]],
    held_out: HeldOut | None,
    console: Console,
) -> Any:
    """TRL's trainer with its model, without its progress bar."""
    console.print(f"Loading {arguments.model}", style="dim", markup=False, soft_wrap=True)
    model = download(arguments.model, arguments.use_hf)
    tokenizer = load_tokenizer(model)
    # A prompt ends where its completion begins.
    tokenizer.padding_side = tokenizer.truncation_side = "left"
    conversations = [row["prompt"] for row in rows]
    if held_out is not None:
        conversations += held_out.conversations
    model_config = load_pretrained(AutoConfig, model)
    fitting_prompts(tokenizer, conversations, config.max_completion_length, model_config)
    template_kwargs = getattr(config, "chat_template_kwargs", None) or {}
    dataset = as_dataset(_with_thinking(rows, tokenizer, **template_kwargs))
    trainer_class = trainer_class_of(config.use_vllm)
    try:
        trainer = trainer_class(
            model,
            list(rewards),
            config,
            train_dataset=dataset,
            processing_class=tokenizer,
        )
    except (OSError, ValueError) as error:
        problem = f"TRL cannot train {arguments.model} with these settings: {error}"
        raise InputError(problem) from error
    # Also ms-swift's, which takes the place of transformers' where it is imported.
    for callback in list(trainer.callback_handler.callbacks):
        if isinstance(callback, (ProgressCallback, PrinterCallback)):
            trainer.remove_callback(callback)
    return trainer


def as_dataset(rows: Sequence[Mapping[str, Any]]) -> Dataset:
    """The rows, which all have the same columns, as the kind of dataset that TRL takes.

    Raises:
        InputError: a column whose values a table cannot hold, such as numbers beside texts.
    """
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for name, values in columns.items():
        try:
            Dataset.from_dict({name: values})
        except (ArrowException, OverflowError) as error:
            problem = f"the column {name!r} needs values of one type in all rows"
            raise InputError(f"{problem}: {error}", "dataset") from error
    return Dataset.from_dict(columns)


def trainer_class_of(use_vllm: bool) -> Any:
    """TRL's trainer. Its import takes vLLM with it where that is installed; here only where it is
    used.
    """
    from trl import import_utils

    is_vllm_available = import_utils.is_vllm_available
    try:
        if not use_vllm:
            import_utils.is_vllm_available = lambda *args, **options: False
        with without_collecting():
            from trl import GRPOTrainer
    finally:
        import_utils.is_vllm_available = is_vllm_available
    return GRPOTrainer


def sample(trainer: Any, rows: Sequence[Mapping[str, Any]]) -> list[Completion]:
    """A completion for each row of this rank, the way that TRL's trainer gets those it trains on."""
    size = len(rows)
    if not trainer.use_vllm:  # all that transformers is given is one batch
        size = trainer.args.per_device_train_batch_size * trainer.args.steps_per_generation
    tokenizer = trainer.processing_class
    # Older trainers end a completion at the tokenizer's token only.
    ends = {*getattr(trainer, "eos_token_ids", [tokenizer.eos_token_id]), tokenizer.pad_token_id}
    completions = []
    with _single_completions(trainer) as generate:
        for start in range(0, len(rows), size):
            conversations = [row["messages"] for row in rows[start : start + size]]
            prompts = trainer._tokenize_prompts(conversations)
            for prompt, ids in zip(prompts[0], generate(*prompts)[0], strict=True):
                text = tokenizer.decode(ids, skip_special_tokens=True)
                text = with_opening(text, ends_in_thinking(tokenizer, prompt))
                finish = "stop" if ids and ids[-1] in ends else "length"
                completions.append(Completion(text, len(ids), finish))
    return completions


@contextmanager
def _single_completions(trainer: Any) -> Iterator[Callable[..., Any]]:
    """The trainer's method that samples, for prompts of which none is repeated as in a group.

    Newer versions of TRL are told the number of completions of a prompt, older ones look it up.
    """
    generate = trainer._generate_single_turn
    if "num_generations" in signature(generate).parameters:
        yield partial(generate, num_generations=1)
        return
    num_generations = trainer.num_generations
    trainer.num_generations = 1
    try:
        yield generate
    finally:
        trainer.num_generations = num_generations
