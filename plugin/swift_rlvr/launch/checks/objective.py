"""Checks of the objective that is trained, and of the settings that only its training looks at."""

import re
from collections.abc import Iterator
from pathlib import Path

from swift_rlvr.launch.checks import CheckResult, Launch, failed, passed, warning
from swift_rlvr.launch.checks.data import HUB_ID
from swift_rlvr.launch.model_size import model_folder
from swift_rlvr.launch.settings import ACCUMULATION

# Settings that name models or adapters beside the model that is trained.
OTHER_MODELS = (
    *("reward_model", "ref_model", "teacher_model"),
    *("ref_adapters", "reward_adapters", "teacher_adapters"),
)
# Losses that ms-swift divides by the completion tokens of all micro-batches of a step
# (WINDOW_NORMALIZED_LOSS_TYPES of its grpo_trainer.py).
OF_ALL_TOKENS = ("dapo", "cispo", "fipo")


def gradient_scale(launch: Launch) -> Iterator[CheckResult]:
    """A loss whose gradient is another multiple than with ms-swift before 4.6, which divided it once
    more by the number of micro-batches (issue 10117, pull request 10116).

    AdamW's steps are the same for every multiple; what clips the gradient is not.
    """
    loss = launch.settings.get("loss_type")
    accumulation = launch.plan.grpo.gradient_accumulation_steps
    if loss not in OF_ALL_TOKENS or accumulation == 1:
        return
    limit = launch.plan.grpo.max_grad_norm
    message = (
        f"loss_type {loss}: gradients are {accumulation} times those of ms-swift before 4.6, which "
        f"divided them by {ACCUMULATION} once more"
    )
    remedy = (
        f"keep learning_rate, because AdamW's steps do not depend on this; a max_grad_norm (here {limit:g}) "
        f"from an earlier run clips {accumulation} times sooner: compare it with grad_norm in the log"
    )
    yield warning("loss", message, remedy)


def other_models(launch: Launch) -> Iterator[CheckResult]:
    """Each model beside the one that is trained is a folder, or has a name that one on a hub can
    have.
    """
    for setting in OTHER_MODELS:
        for name in launch.listed(setting):
            if model_folder(name) is not None:
                continue
            is_path = Path(name.partition("/")[0]).is_dir()
            if is_path or re.fullmatch(HUB_ID, name) is None:
                remedy = f"relative paths count from {Path.cwd()}"
                yield failed(setting, f"there is no folder {name}", remedy)


def later(launch: Launch) -> Iterator[CheckResult]:
    """What ms-swift's parser takes, its training can use."""
    parsed = launch.parsed
    if not parsed.is_read:
        return
    for setting, problem, remedy in parsed.unusable:
        yield failed(setting, problem, remedy)
    if not parsed.unusable:
        yield passed(
            "training", "the settings are known to the trainer, the losses and the sampler"
        )


CHECKS = (gradient_scale, other_models)
AFTER_MS_SWIFT = (later,)
