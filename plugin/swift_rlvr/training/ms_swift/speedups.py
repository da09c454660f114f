"""The same loss and gradient with less work: two changes of ms-swift's GRPO trainer, on every device.

`without_old_policy` leaves out the forward pass for the old policy where it is the policy itself,
and `alike_lengths_together` puts completions of like length into a micro-batch, which is then padded
less. Both stand back, and ms-swift does what it does, wherever the loss could change. Metrics that
ms-swift averages over micro-batches (kl, clip_ratio, rollout_correction) weigh completions a little
differently with the second.

``SWIFT_RLVR_SPEEDUPS=0`` turns both off.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from swift_rlvr.utils.settings import Settings, setting

# Losses that weigh a completion, or a token, the same whichever others are in its micro-batch.
# "bnpo" divides by the tokens of the micro-batch, "real" compares those that lie side by side; nor
# does ms-swift 4.6.0 get as far as the loss with "real" and "fipo".
_INDEPENDENT_OF_MICRO_BATCHES = ("grpo", "sapo", "dr_grpo", "dapo", "cispo")


@dataclass(frozen=True)
class SpeedupSettings(Settings):
    """From variables."""

    speedups: bool = setting(True, "Skip work that does not change the loss.")


def where_wanted(make: Any) -> Any:
    """A patch's `make`, which leaves the original where the owner has turned the speedups off."""

    @functools.wraps(make)
    def make_or_leave(original: Any) -> Any:
        if SpeedupSettings.from_environment().speedups:
            return make(original)
        return functools.wraps(original)(lambda *args, **options: original(*args, **options))

    return make_or_leave


# --- the old policy


def without_old_policy(prepare_batch_inputs: Any) -> Any:
    """No forward pass for the old policy where it is the policy itself; the loss then takes its own
    log probabilities, as it does wherever there are none of the old policy.

    Of a micro-batch ms-swift computes the old policy's log probabilities first, then those of the
    reference, for which a model with LoRA turns its adapter off.
    """

    @functools.wraps(prepare_batch_inputs)
    def prepare(self: Any, samples: Sequence[Any]) -> Any:
        if is_old_policy_read(self, samples):
            return prepare_batch_inputs(self, samples)
        log_probs = self._get_per_token_logps_and_entropies
        begun: list[int] = []  # micro-batches, all of which stay alive until the end

        def log_probs_after_the_first(model: Any, model_inputs: Any, batch: Any, **options: Any):
            if id(batch) in begun:
                return log_probs(model, model_inputs, batch, **options)
            begun.append(id(batch))
            return None, None

        self._get_per_token_logps_and_entropies = log_probs_after_the_first
        try:
            return prepare_batch_inputs(self, samples)
        finally:
            del self._get_per_token_logps_and_entropies

    return prepare


def is_old_policy_read(trainer: Any, samples: Sequence[Any]) -> bool:
    """Whether somebody needs the old policy's log probabilities, or they differ from the policy's.

    `GRPOTrainer.old_policy` is ms-swift's own answer to whether the weights can differ, which 4.6.0
    no longer asks.
    """
    from accelerate.utils import gather_object

    if not trainer.model.training or trainer.old_policy():
        return True
    # A KL term in the reward and a teacher read them before the loss, liger's loss with importance
    # sampling without looking whether they are there.
    is_read_by_liger = (
        trainer.use_liger_loss and trainer.rollout_importance_sampling_mode is not None
    )
    if trainer.kl_in_reward or trainer._has_teacher_explicit() or is_read_by_liger:
        return True
    # Two forward passes drop different activations.
    if has_dropout(trainer.model):
        return True
    # A row for a teacher makes the policy its own teacher. All ranks must do the same.
    return any(gather_object([any(map(is_for_teacher, samples))]))


def is_for_teacher(sample: Any) -> bool:
    """Whether a row says how a teacher sees it: `build_teacher_view` of ms-swift asks the same."""
    return bool(sample.teacher_prompt) or sample.teacher_images is not None


def has_dropout(model: Any) -> bool:
    """Whether a model in training drops activations at random."""
    configuration = getattr(model, "config", None)
    if getattr(configuration, "attention_dropout", 0):
        return True
    return any(isinstance(module, nn.Dropout) and module.p > 0 for module in model.modules())


# --- padding


def alike_lengths_together(split_by_mini_batches: Any) -> Any:
    """Micro-batches of completions of like length, where all of them make one step."""

    @functools.wraps(split_by_mini_batches)
    def split(self: Any, samples: Sequence[Any]) -> Any:
        if not is_order_read(self):
            samples = sorted(samples, key=response_tokens)
        return split_by_mini_batches(self, samples)

    return split


def is_order_read(trainer: Any) -> bool:
    """Whether it matters which completions are in a micro-batch, and in which order these come."""
    args = trainer.args
    if not trainer.model.training or trainer.old_policy():
        return True
    # liger divides by the tokens of a micro-batch with some losses. Entropies that are logged, the
    # KL term in the reward, and what is known of several samples of a trajectory are put beside the
    # completions in the order of the micro-batches; the entropies' quantile is that of a micro-batch.
    if trainer.use_liger_loss or trainer.loss_type not in _INDEPENDENT_OF_MICRO_BATCHES:
        return True
    if args.log_entropy or args.top_entropy_quantile < 1.0:
        return True
    if trainer.kl_in_reward or trainer.dynamic_num_samples:
        return True
    # A teacher's auxiliary loss is a mean of the micro-batch.
    if trainer._has_teacher_explicit() or trainer.sdar_loss_coef > 0:
        return True
    # Without padding nothing is saved, and the longest would all be in memory at once.
    return trainer.template.padding_free or trainer.template.sequence_parallel_size > 1


def response_tokens(sample: Any) -> int:
    ids = sample.response_token_ids
    if ids and isinstance(ids[0], list):  # of several turns
        return sum(map(len, ids))
    return len(ids)
