"""Checks of the objective that is trained."""

from collections.abc import Iterator

from swift_rlvr.launch.checks import CheckResult, Launch, warning
from swift_rlvr.launch.plan import ACCUMULATION
from swift_rlvr.utils.settings import number

# Losses that ms-swift divides by the completion tokens of all micro-batches of a step
# (WINDOW_NORMALIZED_LOSS_TYPES of its grpo_trainer.py).
OF_ALL_TOKENS = ("dapo", "cispo", "fipo")


def gradient_scale(launch: Launch) -> Iterator[CheckResult]:
    """A loss whose gradient is another multiple than with ms-swift before 4.6, which divided it once
    more by the number of micro-batches (issue 10117, pull request 10116).

    AdamW's steps are the same for every multiple; what clips the gradient is not.
    """
    settings = launch.settings
    loss = settings.get("loss_type")
    accumulation = number(settings, ACCUMULATION, 1)
    if loss not in OF_ALL_TOKENS or accumulation == 1:
        return
    limit = number(settings, "max_grad_norm", 1.0)
    message = (
        f"loss_type {loss}: gradients are {accumulation} times those of ms-swift before 4.6, which "
        f"divided them by {ACCUMULATION} once more"
    )
    remedy = (
        f"keep learning_rate, because AdamW's steps do not depend on this; a max_grad_norm (here {limit:g}) "
        f"from an earlier run clips {accumulation} times sooner: compare it with grad_norm in the log"
    )
    yield warning("loss", message, remedy)


CHECKS = (gradient_scale,)
