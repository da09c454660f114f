"""The settings of a GRPO run, under the names that ms-swift and TRL use."""

from dataclasses import dataclass

from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import Settings, setting

AGGREGATIONS = ("grpo", "dapo", "dr_grpo")
RATIO_LEVELS = ("token", "sequence")
SCHEDULES = ("constant", "constant_with_warmup", "linear", "cosine")


@dataclass(frozen=True)
class GRPOSettings(Settings):
    """What can be set about a run. The defaults are those of the GSM8K recipe, with DeepSeekMath's
    values where the paper gives them. A step is one update; `batch_size` completions are sampled
    for it.
    """

    num_generations: int = setting(8, "Completions for each prompt.", at_least=2)
    per_device_train_batch_size: int = setting(
        4, "Completions in memory at a time; changes speed and memory, not the result.", at_least=1
    )
    gradient_accumulation_steps: int = setting(
        2,
        "Times per_device_train_batch_size: completions a step, a multiple of num_generations.",
        at_least=1,
    )
    max_completion_length: int = setting(512, "The longest completion, in tokens.", at_least=1)
    temperature: float = setting(1.0, "Of sampling.", more_than=0)
    top_p: float = setting(0.9, "Nucleus sampling; 1 for all tokens.", more_than=0, at_most=1)
    top_k: int = setting(50, "The likeliest tokens to sample from; 0 for all.", at_least=0)
    sampling_batch_size: int = setting(64, "Completions sampled at a time.", at_least=1)
    loss_type: str = setting(
        "grpo", "How the tokens of a batch are averaged.", choices=AGGREGATIONS
    )
    importance_sampling_level: str = setting(
        "token", "Of the ratio; sequence is GSPO.", choices=RATIO_LEVELS
    )
    num_iterations: int = setting(1, "Updates with each batch of completions, mu.", at_least=1)
    epsilon: float = setting(0.2, "Clip range of the ratio.", at_least=0)
    epsilon_high: float | None = setting(None, "Its upper end; by default epsilon.", at_least=0)
    beta: float = setting(0.04, "Weight of the KL to the reference policy.", at_least=0)
    scale_rewards: str = setting(
        "group", "Divide by the group's standard deviation, or not.", choices=("group", "none")
    )
    reward_weights: list[float] | None = setting(
        None, "One for each reward, in their order; by default 1."
    )
    max_steps: int = setting(-1, "Updates in all; -1 for num_train_epochs.", at_least=-1)
    num_train_epochs: float = setting(1.0, "Passes over the prompts.", more_than=0)
    learning_rate: float = setting(1e-6, "Of AdamW.", more_than=0)
    lr_scheduler_type: str = setting("constant", "As in transformers.", choices=SCHEDULES)
    warmup_ratio: float = setting(
        0.0, "Share of the updates over which the rate rises.", at_least=0, at_most=1
    )
    weight_decay: float = setting(0.0, "Of matrices.", at_least=0)
    adam_beta1: float = setting(0.9, "Decay of the mean of gradients.", at_least=0, less_than=1)
    adam_beta2: float = setting(
        0.999, "Decay of the mean of their squares.", at_least=0, less_than=1
    )
    max_grad_norm: float = setting(
        1.0, "Larger gradients are scaled down; 0 for no clipping.", at_least=0
    )
    gradient_checkpointing: bool = setting(False, "Less memory, more time.")
    bf16: bool | None = setting(
        None, "Autocast to bfloat16, with float32 weights; by default where the GPU can."
    )
    save_steps: int = setting(100, "Updates between checkpoints; the last is saved.", more_than=0)
    save_total_limit: int = setting(2, "Checkpoints that are kept.", at_least=1)
    seed: int = setting(42, "Of sampling and of the order of prompts.", at_least=0)

    @property
    def batch_size(self) -> int:
        """Completions a step."""
        return self.per_device_train_batch_size * self.gradient_accumulation_steps

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(self.max_steps != 0, "max_steps", "at least 1, or -1 for all epochs")
        if self.batch_size % self.num_generations:
            raise InputError(
                f"times gradient_accumulation_steps must be a multiple of num_generations, {self.num_generations}, "
                f"got {self.batch_size}",
                "per_device_train_batch_size",
            )
        above = self.epsilon_high is None or self.epsilon_high >= self.epsilon
        self.require(above, "epsilon_high", f"at least epsilon, {self.epsilon}")
        if self.lr_scheduler_type == "constant" and self.warmup_ratio:
            raise InputError(
                "must be constant_with_warmup where warmup_ratio is not 0", "lr_scheduler_type"
            )


def check_enough_rows(rows: int, completions: int, num_generations: int) -> None:
    """InputError where a dataset has fewer rows than a step has prompts."""
    if rows < completions // num_generations:
        step = f"{completions} completions / num_generations {num_generations}"
        raise InputError(f"the dataset has {rows} rows, too few for one step: {step}")
