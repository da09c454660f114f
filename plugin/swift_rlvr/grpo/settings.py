"""The settings of a GRPO run, under the names that ms-swift and TRL use.

Each is written once, here: `swift-rlvr train` takes its flags, YAML keys, help and checks from the dataclass.
"""

import math
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

from swift_rlvr.errors import InputError

LossType = Literal["grpo", "dapo", "dr_grpo"]
RatioLevel = Literal["token", "sequence"]
AGGREGATIONS: tuple[str, ...] = get_args(LossType)
RATIO_LEVELS: tuple[str, ...] = get_args(RatioLevel)


class Range(NamedTuple):
    """The values that a number may have: finite, from `low` to `high`; `above` and `below` leave out the ends.

    >>> str(Range(1)), str(Range(0, 1, above=True)), 0 in Range(0, above=True)
    ('at least 1', 'more than 0 and at most 1', False)
    """

    low: float
    high: float = math.inf
    above: bool = False
    below: bool = False

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, (int, float)) or not math.isfinite(value):
            return False
        return (value > self.low if self.above else value >= self.low) and (
            value < self.high if self.below else value <= self.high
        )

    def __str__(self) -> str:
        low = f"{'more than' if self.above else 'at least'} {self.low:g}"
        return low if self.high == math.inf else f"{low} and {'less than' if self.below else 'at most'} {self.high:g}"


def setting(default: Any, help: str) -> Any:
    return field(default=default, metadata={"help": help})


@dataclass(frozen=True)
class GRPOSettings:
    """What can be set about a run. The defaults are those of the GSM8K recipe, with DeepSeekMath's values where the
    paper gives them. A step is one update; `batch_size` completions are sampled for it.
    """

    num_generations: Annotated[int, Range(2)] = setting(8, "Completions for each prompt.")
    per_device_train_batch_size: Annotated[int, Range(1)] = setting(
        4, "Completions in memory at a time; changes speed and memory, not the result."
    )
    gradient_accumulation_steps: Annotated[int, Range(1)] = setting(
        2, "Times per_device_train_batch_size: completions a step, a multiple of num_generations."
    )
    max_completion_length: Annotated[int, Range(1)] = setting(512, "The longest completion, in tokens.")
    temperature: Annotated[float, Range(0, above=True)] = setting(1.0, "Of sampling.")
    top_p: Annotated[float, Range(0, 1, above=True)] = setting(0.9, "Nucleus sampling; 1 for all tokens.")
    top_k: Annotated[int, Range(0)] = setting(50, "The likeliest tokens to sample from; 0 for all.")
    sampling_batch_size: Annotated[int, Range(1)] = setting(64, "Completions sampled at a time, without vLLM.")
    use_vllm: bool = setting(False, "Sample with a vLLM engine in this process.")
    loss_type: LossType = setting("grpo", "How the tokens of a batch are averaged.")
    importance_sampling_level: RatioLevel = setting("token", "Of the ratio; sequence is GSPO.")
    num_iterations: Annotated[int, Range(1)] = setting(1, "Updates with each batch of completions, mu.")
    epsilon: Annotated[float, Range(0)] = setting(0.2, "Clip range of the ratio.")
    epsilon_high: Annotated[float | None, Range(0)] = setting(None, "Its upper end; by default epsilon.")
    beta: Annotated[float, Range(0)] = setting(0.04, "Weight of the KL to the reference policy.")
    scale_rewards: Literal["group", "none"] = setting("group", "Divide by the group's standard deviation, or not.")
    reward_weights: list[float] | None = setting(None, "One for each reward, in their order; by default 1.")
    max_steps: Annotated[int, Range(-1)] = setting(-1, "Updates in all; -1 for num_train_epochs.")
    num_train_epochs: Annotated[float, Range(0, above=True)] = setting(1, "Passes over the prompts.")
    learning_rate: Annotated[float, Range(0, above=True)] = setting(1e-6, "Of AdamW.")
    lr_scheduler_type: Literal["constant", "constant_with_warmup", "linear", "cosine"] = setting(
        "constant", "As in transformers."
    )
    warmup_ratio: Annotated[float, Range(0, 1)] = setting(0.0, "Share of the updates over which the rate rises.")
    weight_decay: Annotated[float, Range(0)] = setting(0.0, "Of matrices.")
    adam_beta1: Annotated[float, Range(0, 1, below=True)] = setting(0.9, "Decay of the mean of gradients.")
    adam_beta2: Annotated[float, Range(0, 1, below=True)] = setting(0.999, "Decay of the mean of their squares.")
    max_grad_norm: Annotated[float, Range(0)] = setting(1.0, "Larger gradients are scaled down; 0 for no clipping.")
    gradient_checkpointing: bool = setting(False, "Less memory, more time.")
    bf16: bool | None = setting(None, "Autocast to bfloat16, with float32 weights; by default where the GPU can.")
    save_steps: Annotated[int, Range(0, above=True)] = setting(100, "Updates between checkpoints; the last is saved.")
    save_total_limit: Annotated[int, Range(1)] = setting(2, "Checkpoints that are kept.")
    seed: Annotated[int, Range(0)] = setting(42, "Of sampling and of the order of prompts.")

    @property
    def batch_size(self) -> int:
        """Completions a step."""
        return self.per_device_train_batch_size * self.gradient_accumulation_steps

    def __post_init__(self) -> None:
        check_ranges(self)
        for name, hint in get_type_hints(GRPOSettings).items():
            if (choices := get_args(hint)) and isinstance(choices[0], str) and getattr(self, name) not in choices:
                raise InputError(f"must be one of {', '.join(choices)}, got {getattr(self, name)!r}", name)
        if self.batch_size % self.num_generations:
            raise InputError(
                f"times gradient_accumulation_steps must be a multiple of num_generations, {self.num_generations}, "
                f"got {self.batch_size}",
                "per_device_train_batch_size",
            )
        if self.epsilon_high is not None and self.epsilon_high < self.epsilon:
            raise InputError(f"must be at least epsilon, {self.epsilon}, got {self.epsilon_high}", "epsilon_high")
        if self.lr_scheduler_type == "constant" and self.warmup_ratio:
            raise InputError("must be constant_with_warmup where warmup_ratio is not 0", "lr_scheduler_type")
        if self.reward_weights is not None and not all(map(math.isfinite, self.reward_weights)):
            raise InputError(f"must be finite numbers, got {self.reward_weights}", "reward_weights")


def check_ranges(settings: Any) -> None:
    """InputError where a number is out of the range that GRPOSettings gives for its name.

    settings: these or another trainer's, such as TRL's GRPOConfig, which has many of the same names.
    """
    for name, hint in get_type_hints(GRPOSettings, include_extras=True).items():
        value = getattr(settings, name, None)
        for allowed in getattr(hint, "__metadata__", ()):
            if value is not None and value not in allowed:
                raise InputError(f"must be {allowed}, got {value}", name)
    if settings.max_steps == 0:
        raise InputError("must be at least 1, or -1 for all epochs, got 0", "max_steps")


def check_enough_rows(rows: int, completions: int, num_generations: int) -> None:
    """InputError where a dataset has fewer rows than a step has prompts."""
    if rows < completions // num_generations:
        raise InputError(
            f"the dataset has {rows} rows, too few for one step: {completions} completions "
            f"/ num_generations {num_generations}"
        )
