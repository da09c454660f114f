"""The settings of a GRPO run, named as ms-swift and TRL name them."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from swift_rlvr.errors import InputError

from .objective import AGGREGATIONS, RATIO_LEVELS

CHOICES = {
    "loss_type": AGGREGATIONS,
    "importance_sampling_level": RATIO_LEVELS,
    "lr_scheduler_type": ("constant", "cosine"),
    "sampler": ("transformers", "vllm"),
}


@dataclass(frozen=True)
class GRPOSettings:
    """The defaults are those of recipe "GRPO from scratch on GSM8K", which follow DeepSeekMath where it says something.

    batch_size: completions a step, a multiple of num_generations, the completions of each prompt.
    micro_batch_size: completions in memory at a time; it changes speed and memory, not the result.
    sampling_batch_size: completions sampled at a time with transformers; vLLM decides for itself.
    num_iterations: updates with each batch (mu). max_steps: updates in all; -1 is num_train_epochs over the prompts.
    epsilon_high: the upper clip range; None is epsilon. reward_weights: None is 1 for each.
    top_k: 0 is all tokens. warmup_ratio: share of the updates. max_grad_norm: 0 is no clipping.
    save_steps: updates between checkpoints, the last one always; save_total_limit: how many are kept.
    bf16: autocast, for GPUs; the weights that are trained stay float32.
    """

    num_generations: int = 8
    batch_size: int = 8
    micro_batch_size: int = 4
    sampling_batch_size: int = 64
    num_iterations: int = 1
    max_steps: int = -1
    num_train_epochs: int = 1
    max_completion_length: int = 512
    temperature: float = 1.0
    top_p: float = 0.9
    top_k: int = 50
    loss_type: str = "grpo"
    importance_sampling_level: str = "token"
    epsilon: float = 0.2
    epsilon_high: float | None = None
    beta: float = 0.04
    scale_rewards: bool = True
    reward_weights: tuple[float, ...] | None = None
    learning_rate: float = 1e-6
    lr_scheduler_type: str = "constant"
    warmup_ratio: float = 0.0
    weight_decay: float = 0.0
    adam_beta1: float = 0.9
    adam_beta2: float = 0.999
    max_grad_norm: float = 1.0
    gradient_checkpointing: bool = False
    bf16: bool = False
    sampler: str = "transformers"
    save_steps: int = 100
    save_total_limit: int = 2
    seed: int = 42

    def __post_init__(self):
        for name in ("micro_batch_size", "num_iterations", "num_train_epochs", "max_completion_length", "save_steps"):
            self._at_least(name, 1)
        self._at_least("sampling_batch_size", 1)
        self._at_least("num_generations", 2)  # a group of one has no advantage
        self._at_least("save_total_limit", 1)
        for name in ("top_k", "beta", "epsilon", "weight_decay", "max_grad_norm", "seed", "warmup_ratio"):
            self._at_least(name, 0)
        for name in ("temperature", "learning_rate", "top_p"):
            self._at_least(name, 0, open_end=True)
        for name in ("top_p", "warmup_ratio"):
            if getattr(self, name) > 1:
                raise InputError(f"{name} must be at most 1, got {getattr(self, name)}")
        for name in ("adam_beta1", "adam_beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name} must be from 0 to less than 1, got {getattr(self, name)}")
        if self.max_steps != -1:
            self._at_least("max_steps", 1)
        if self.batch_size < 1 or self.batch_size % self.num_generations:
            raise InputError(
                f"batch_size must be a multiple of num_generations, {self.num_generations}, got {self.batch_size}"
            )
        if self.epsilon_high is not None and not self.epsilon_high >= self.epsilon:
            raise InputError(f"epsilon_high must be at least epsilon, {self.epsilon}, got {self.epsilon_high}")
        if self.reward_weights is not None and not all(map(isfinite, self.reward_weights)):
            raise InputError(f"reward_weights must be finite numbers, got {self.reward_weights}")
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise InputError(f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}")

    def _at_least(self, name: str, low: float, open_end: bool = False) -> None:
        value = getattr(self, name)
        if not (value > low if open_end else value >= low) or not isfinite(value):
            raise InputError(f"{name} must be {'more than' if open_end else 'at least'} {low}, got {value}")
