"""Values that ms-swift's parser takes, and that end its GRPO training later: while the trainer is
built, which is after the server's start, or in the first step. And values with which it runs to its
end and learns nothing.

Names are looked up in ms-swift's own registries. Its rewards, the optimizer and the schedule are
made as the trainer makes them. What it has only in its code is in the tables below, as of 4.6.0.
"""

import math
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from swift_rlvr.utils.errors import did_you_mean

# Losses that ms-swift's trainer has, by `_compute_loss_and_metrics` of its grpo_trainer.py.
LOSSES = ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo")
# It has these too, and refuses them in the first step: without a teacher the policy counts as its
# own, and with one its parser refuses them.
REFUSED_LOSSES = ("real", "fipo")


class Unusable(NamedTuple):
    """A setting that the training cannot use: what is wrong, and what to do."""

    setting: str
    problem: str
    remedy: str


def unusable(arguments: Any) -> Iterator[Unusable]:
    """What of `RLHFArguments` that ms-swift has parsed, with the plugins loaded, its training cannot
    use.
    """
    from swift.loss_scale import get_loss_scale

    if arguments.use_ray:
        remedy = "leave it out; Ray is for `megatron rlhf`, see docs/launch/megatron.md"
        yield Unusable("use_ray", "`swift rlhf` trains without Ray, whatever it says", remedy)
    yield from _losses(arguments)
    for limits in RANGES:
        value = getattr(arguments, limits.setting)
        if value is not None and limits.matters(arguments) and not limits.holds(value):
            problem = f"{limits.whose} cannot use {value:g}"
            yield Unusable(limits.setting, problem, f"{limits} for {limits.setting}")
    yield from _unknown_names(arguments)
    yield from _learning_nothing(arguments)
    yield from _incomplete(arguments)
    yield from _reward_models(arguments)
    # What is made as in the trainer.
    yield from _rewards(arguments)
    try:
        get_loss_scale(arguments.loss_scale)
    except KeyError as error:
        problem = f"ms-swift has no {error} in {arguments.loss_scale}"
        yield Unusable("loss_scale", problem, "leave it out for last_round")
    yield from _optimizer(arguments.training_args)


def _losses(arguments: Any) -> Iterator[Unusable]:
    loss = arguments.loss_type
    if loss == "gspo":
        remedy = "--importance_sampling_level sequence, which is GSPO, without --loss_type gspo"
        yield Unusable("loss_type", "ms-swift has no loss gspo", remedy)
    elif loss in REFUSED_LOSSES:
        problem = f"ms-swift's trainer refuses the loss {loss} in the first step"
        yield Unusable("loss_type", problem, f"one of {', '.join(LOSSES)}")
    elif loss is not None and loss not in LOSSES:
        remedy = did_you_mean(str(loss), LOSSES) or f"one of {', '.join(LOSSES)}"
        yield Unusable("loss_type", f"ms-swift has no loss {loss}", remedy)
    # Other losses clip at 1 + epsilon_high, and so its default, epsilon, is far too small for this one.
    high = arguments.epsilon if arguments.epsilon_high is None else arguments.epsilon_high
    if loss == "cispo" and 0 <= high < 1:
        problem = (
            f"with cispo it is the largest ratio itself, and {high:g} cuts that of every token"
        )
        yield Unusable("epsilon_high", problem, "--epsilon_high 5, or another above 1")
    if arguments.off_policy_sequence_mask_delta is not None:
        problem = "ms-swift's trainer refuses it in the first step"
        yield Unusable("off_policy_sequence_mask_delta", problem, "leave it out")


def rescaled(arguments: Any) -> Iterator[Unusable]:
    """A setting with which the loss is a multiple of what it should be.

    These losses divide by the tokens of all completions that are sampled at once, and a step sums the part of them that
    it trains on. Both are the same where both have the same number of micro-batches.
    """
    # Those of the trainer, which makes the one out of generation_batch_size where that is set.
    trainer = arguments.training_args
    sampled, summed = trainer.steps_per_generation, trainer.gradient_accumulation_steps
    if arguments.loss_type not in ("dapo", "cispo") or sampled in (None, summed):
        return
    times = f"{summed / sampled:.3g} times as large"
    problem = (
        f"{arguments.loss_type} divides by the tokens of all {sampled} micro-batches that are sampled at "
        f"once, and a step sums {summed} of them: the gradient is {times}. AdamW's steps stay the same, "
        "but max_grad_norm clips at another norm"
    )
    remedy = f"max_grad_norm {times}, or --steps_per_generation {summed}"
    yield Unusable("steps_per_generation", problem, remedy)


# Ranges.


@dataclass(frozen=True)
class Range:
    """The values of a setting with which a training works. whose: who refuses others. read_with: another
    setting and the value with which alone this one is read.
    """

    setting: str
    whose: str
    more_than: float = -math.inf
    at_least: float = -math.inf
    at_most: float = math.inf
    less_than: float | None = None
    read_with: tuple[str, Any] | None = None

    def matters(self, arguments: Any) -> bool:
        if self.read_with is None:
            return True
        other, value = self.read_with
        return bool(getattr(arguments, other) == value)

    def holds(self, value: float) -> bool:
        is_below = self.less_than is None or value < self.less_than
        return is_below and self.more_than < value and self.at_least <= value <= self.at_most

    def __str__(self) -> str:
        limits = []
        if self.more_than > -math.inf:
            limits.append(f"more than {self.more_than:g}")
        if self.at_least > -math.inf:
            limits.append(f"at least {self.at_least:g}")
        if self.at_most < math.inf:
            limits.append(f"at most {self.at_most:g}")
        if self.less_than is not None:
            limits.append(f"less than {self.less_than:g}")
        return " and ".join(limits)


_VLLM = ("use_vllm", True)
_SAPO = ("loss_type", "sapo")
_LORA = ("tuner_type", "lora")

RANGES = (
    # `SamplingParams._verify_args` of vLLM. The trainer divides logits by the temperature.
    Range("temperature", "the trainer", more_than=0),
    Range("temperature", "vLLM", at_most=2, read_with=_VLLM),
    Range("top_p", "vLLM", more_than=0, at_most=1, read_with=_VLLM),
    Range("top_k", "vLLM", at_least=-1, read_with=_VLLM),
    Range("min_p", "vLLM", at_least=0, at_most=1, read_with=_VLLM),
    Range("repetition_penalty", "the sampler", more_than=0),
    Range("max_completion_length", "the sampler", at_least=1),
    # With 0 no row is drawn, and the training ends at once, without an error.
    Range("num_iterations", "ms-swift", at_least=1),
    Range("ref_model_sync_steps", "ms-swift", at_least=1, read_with=("sync_ref_model", True)),
    # With 0 no group is replaced, and dynamic_sample only warns of them in a log.
    Range("max_resample_times", "ms-swift", at_least=1, read_with=("dynamic_sample", True)),
    Range("fipo_decay_rate", "ms-swift", more_than=0),
    Range("tau_pos", "ms-swift", more_than=0, read_with=_SAPO),
    Range("tau_neg", "ms-swift", more_than=0, read_with=_SAPO),
    Range("dataloader_num_workers", "torch", at_least=0),
    Range("lora_rank", "peft", at_least=1, read_with=_LORA),
    # Outside these a training runs, and learns nothing or the opposite: of no token or of all of them
    # the gradient is 0, or the policy is paid for leaving the reference policy.
    Range("beta", "the KL term", at_least=0),
    Range("epsilon", "the clip range", at_least=0),
    Range("epsilon_high", "the clip range", at_least=0),
    # Below 1 it clips the ratio of every token that the policy has just sampled: none becomes likelier.
    Range("delta", "two-sided clipping", more_than=1),
    Range("top_entropy_quantile", "ms-swift", more_than=0),
    Range("rollout_importance_sampling_threshold", "ms-swift", more_than=0),
    Range("lora_alpha", "peft", more_than=0, read_with=_LORA),
    Range("lora_dropout", "peft", at_least=0, less_than=1, read_with=_LORA),
)


# Names.


def _unknown_names(arguments: Any) -> Iterator[Unusable]:
    """Names that are in none of ms-swift's registries, which plugins add to."""
    from swift.callbacks import callbacks_map
    from swift.optimizers import optimizers_map
    from swift.rewards import rm_plugins
    from swift.rollout import envs, multi_turns

    registries: tuple[tuple[str, Any, Collection[str]], ...] = (
        ("callbacks", arguments.callbacks, callbacks_map),
        ("optimizer", arguments.optimizer, optimizers_map),
        ("multi_turn_scheduler", arguments.multi_turn_scheduler, multi_turns),
        ("gym_env", arguments.gym_env, envs),
        ("reward_model_plugin", arguments.reward_model_plugin, rm_plugins),
    )
    for setting, value, registry in registries:
        for name in value if isinstance(value, list) else [value]:
            if name is None or name in registry:
                continue
            listed = ", ".join(registry) or "none; a plugin has to register it"
            remedy = did_you_mean(name, registry) or f"known are {listed}"
            yield Unusable(setting, f"ms-swift and its plugins have no {name}", remedy)


# Settings with which nothing is learned.


def _learning_nothing(arguments: Any) -> Iterator[Unusable]:
    """A training runs to its end with these, and no completion is better than another."""
    if arguments.learning_rate == 0:
        yield Unusable("learning_rate", "with 0 no weight changes", "more than 0, such as 1e-6")
    same = "all completions of a prompt are the same, so that none is better than another"
    if arguments.top_k == 1:
        yield Unusable("top_k", same, "-1 for all tokens, or 2 and more")
    if arguments.min_p == 1:
        yield Unusable("min_p", same, "less than 1")
    if arguments.use_vllm and 0 < arguments.temperature < 0.01:
        own = f"the trainer divides by {arguments.temperature:g}"
        problem = f"vLLM takes 0.01 in its place, and {own}; nearly {same}"
        yield Unusable("temperature", problem, "0.5 to 1")
    if arguments.streaming:
        problem = (
            "ms-swift samples once for each streamed row, and not num_generations times: the completions "
            "of a group would answer different questions"
        )
        yield Unusable("streaming", problem, "leave it out; `--dataset NAME#N` limits the rows")


# Settings that need others.


def _incomplete(arguments: Any) -> Iterator[Unusable]:
    """Settings without others that they need."""
    if arguments.use_gym_env and not arguments.multi_turn_scheduler:
        problem = (
            "without multi_turn_scheduler nothing steps the environment, which gives the reward"
        )
        remedy = "--multi_turn_scheduler gym_scheduler, or one of your own"
        yield Unusable("gym_env", problem, remedy)
    probabilities = arguments.interleave_prob
    datasets = arguments.dataset
    if probabilities and len(datasets) > 1 and len(probabilities) != len(datasets):
        problem = f"{len(probabilities)} probabilities for {len(datasets)} datasets"
        yield Unusable("interleave_prob", problem, "one for each dataset, 1 in sum")
    if arguments.chord_sft_dataset:
        needed = (
            *("chord_sft_per_device_train_batch_size", "chord_mu_warmup_steps"),
            *("chord_mu_decay_steps", "chord_mu_peak", "chord_mu_valley"),
        )
        missing = [name for name in needed if getattr(arguments, name) is None]
        if missing:
            problem = f"it needs {', '.join(missing)} too"
            yield Unusable("chord_sft_dataset", problem, f"set {', '.join(missing)}")
    # `--eval_strategy steps` without rows is switched off by ms-swift, and this is not.
    has_rows = arguments.val_dataset or arguments.split_dataset_ratio > 0
    if arguments.training_args.eval_on_start and not has_rows:
        problem = "there are no rows for an evaluation"
        yield Unusable("eval_on_start", problem, "--val_dataset, or --split_dataset_ratio 0.01")


def _reward_models(arguments: Any) -> Iterator[Unusable]:
    """Reward models that are in folders; `other_models` of the doctor looks for those that are not
    there.
    """
    from swift.model import get_model_info_meta

    models = arguments.reward_model or []
    plugins = arguments.reward_model_plugin
    if plugins and len(plugins) != len(models):
        problem = f"{len(plugins)} plugins for {len(models)} reward models"
        yield Unusable("reward_model_plugin", problem, "one for each reward_model")
    types = arguments.reward_model_type or [None] * len(models)
    if len(types) != len(models):
        problem = f"{len(types)} types for {len(models)} reward models"
        yield Unusable("reward_model_type", problem, "one for each reward_model")
        return
    for model, model_type in zip(models, types, strict=True):
        if not os.path.isdir(model):
            continue
        try:
            get_model_info_meta(model, model_type=model_type)
        except (ValueError, OSError) as error:
            problem = " ".join(str(error).split())
            yield Unusable("reward_model", problem, "--reward_model_type for each reward_model")


# What the trainer makes of the arguments.


def _rewards(arguments: Any) -> Iterator[Unusable]:
    """Those of ms-swift's own rewards that have settings, made and called once."""
    from swift.rewards import orms

    answer = {"completions": ["1 2 3 4"], "response_token_ids": [[1, 2, 3, 4]], "solution": ["4"]}
    for name in arguments.reward_funcs:
        reward = orms.get(name)
        if name not in _REWARD_SETTINGS or not reward.__module__.startswith("swift."):
            continue
        try:
            reward(args=arguments.training_args)(**answer)
        except (AssertionError, ArithmeticError, ValueError) as error:
            values = []
            for setting in _REWARD_SETTINGS[name]:
                values.append(f"{setting} {getattr(arguments.training_args, setting)}")
            reason = str(error) or "the first must be below the second"
            problem = f"ms-swift's reward {name} fails with {', '.join(values)}: {reason}"
            yield Unusable("reward_funcs", problem, "other values for these settings")


# Settings with which ms-swift's own rewards fail, for some of their values.
_REWARD_SETTINGS = {
    "soft_overlong": ("soft_cache_length", "soft_max_length"),
    "repetition": ("repetition_n_grams",),
    "cosine": ("cosine_max_len",),
}


def choosing(arguments: Any) -> list[str]:
    """The flags that choose which parameters of the model are trained."""
    if arguments.adapters:
        return []
    if arguments.tuner_type == "lora":
        return ["target_modules"] if arguments.target_modules != ["all-linear"] else []
    is_set = {
        "freeze_parameters": bool(arguments.freeze_parameters),
        "freeze_parameters_regex": arguments.freeze_parameters_regex is not None,
        "freeze_parameters_ratio": arguments.freeze_parameters_ratio > 0,
    }
    return [name for name in is_set if is_set[name]]


def untrained(arguments: Any) -> Iterator[Unusable]:
    """Flags that leave nothing of the model to train, as ms-swift applies them to it. The model, which
    is on this machine, is made without its weights.
    """
    import torch
    from swift.pipelines.train.tuner import TunerMixin

    settings = choosing(arguments)
    if not settings:
        return
    try:
        with torch.device("meta"):
            model, _ = arguments.get_model_processor(return_dummy_model=True)
            model = TunerMixin.prepare_model(arguments, model)
    except (ImportError, OSError):  # `pictures` and `files` name what the model's own code lacks
        return
    except ValueError as error:
        yield Unusable(settings[0], str(error), "names of the model's own modules")
        return
    if not any(parameter.requires_grad for parameter in model.parameters()):
        problem = "no parameter of the model is left to train"
        yield Unusable(", ".join(settings), problem, "freeze fewer, or name trainable_parameters")


def end_without_token(arguments: Any) -> str:
    """The text with which the template ends an answer, if the model, which is on this machine, has no
    token for it; else "".
    """
    from swift.template import TEMPLATE_MAPPING

    try:
        _, processor = arguments.get_model_processor(load_model=False)
    except (ImportError, OSError, ValueError):  # `prompts` says what is wrong with a tokenizer
        return ""
    tokenizer = getattr(processor, "tokenizer", processor)
    for part in TEMPLATE_MAPPING[arguments.template].suffix or ():
        # Others are names of tokens that every tokenizer has.
        if isinstance(part, str) and len(tokenizer.tokenize(part.strip())) > 1:
            return part.strip()
    return ""


def _optimizer(training_args: Any) -> Iterator[Unusable]:
    """AdamW and the schedule of its learning rate, on one parameter. Other optimizers need packages or
    a GPU.
    """
    import torch
    from transformers import Trainer, get_scheduler

    if training_args.optimizer or not str(training_args.optim.value).startswith("adamw_torch"):
        return
    try:
        optimizer_class, options = Trainer.get_optimizer_cls_and_kwargs(training_args)
        weight = torch.nn.Parameter(torch.zeros(1))
        optimizer = optimizer_class([weight], **options)
    except (ValueError, TypeError) as error:
        remedy = "another learning_rate, adam_beta1, adam_beta2 or adam_epsilon"
        yield Unusable("optim", f"the optimizer cannot be made: {error}", remedy)
        return
    try:
        get_scheduler(
            training_args.lr_scheduler_type,
            optimizer=optimizer,
            num_warmup_steps=1,
            num_training_steps=10,
            scheduler_specific_kwargs=training_args.lr_scheduler_kwargs,
        )
    except (ValueError, TypeError) as error:
        name = training_args.lr_scheduler_type.value
        problem = f"the schedule {name} cannot be made: {error}"
        remedy = """--lr_scheduler_kwargs '{"NAME": VALUE}' with what it needs"""
        yield Unusable("lr_scheduler_type", problem, remedy)
