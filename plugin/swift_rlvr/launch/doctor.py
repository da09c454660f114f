"""`swift-rlvr doctor`: can the planned launch work on this machine? Each check passes, warns or
fails, with a remedy.

    results = check_plan(make_plan(read_recipe("scripts/configs/countdown.yaml"), [], this_machine()))

Every launch does this by itself: our own checks, which take a second and import none of the large
packages, and where none of them has failed, what ms-swift says of the arguments, in a process of
its own that takes as long as its imports.
"""

from collections.abc import Sequence
from dataclasses import replace

from swift_rlvr.launch import parse_arguments
from swift_rlvr.launch.checks import (
    Check,
    CheckResult,
    Launch,
    data,
    failed,
    machine,
    resources,
    rewards,
    warning,
)
from swift_rlvr.launch.checks.datasets import datasets, without_task
from swift_rlvr.launch.machine import Gpu, Machine
from swift_rlvr.launch.plan import Plan
from swift_rlvr.training.recipes import Recipe

ANYWHERE: tuple[Check, ...] = (*data.CHECKS, *rewards.CHECKS)
CHECKS: tuple[Check, ...] = (*machine.CHECKS, *resources.CHECKS, *ANYWHERE)
AFTER_MS_SWIFT: tuple[Check, ...] = (
    *rewards.AFTER_MS_SWIFT,
    *data.AFTER_MS_SWIFT,
)


# The GPUs of the node that a login node submits to; as many and as large as any recipe needs.
ASSUMED_GPUS = tuple(Gpu(str(index), "GPU", 81_559, 0, 9.0) for index in range(8))


def for_gpus(recipe: Recipe) -> bool:
    """Whether a recipe is for a machine with GPUs: it computes in 16 bits, and no part of it is for a
    CPU.
    """
    settings = recipe.settings
    is_for_cpu = settings.get("use_cpu") is True or "cpu" in str(settings.get("deepspeed"))
    return str(settings.get("torch_dtype")) in ("bfloat16", "float16") and not is_for_cpu


def with_assumed_gpus(this: Machine) -> Machine:
    """The machine as if it had GPUs."""
    return replace(this, gpus=ASSUMED_GPUS)


def check_plan(plan: Plan) -> list[CheckResult]:
    """Run all checks, and return their results in order. A check that cannot read something, such as
    a number, has failed.

    With ASSUMED_GPUS the data, the flags and the rewards of a plan are checked, and not the machine.
    """
    checks = CHECKS
    results: list[CheckResult] = []
    is_elsewhere = plan.machine.gpus == ASSUMED_GPUS
    if is_elsewhere:
        checks = ANYWHERE
        message = (
            "none is visible here, so that this machine, its memory and its ports were not checked"
        )
        remedy = "run it again on the machine with the GPUs"
        results.append(warning("GPUs", message, remedy))
    # It imports for seconds, while our own checks run.
    with parse_arguments.started(plan) as ms_swift:
        launch = Launch(plan, load_tokenizer=ms_swift.load_tokenizer)
        results += _results(checks, launch)
        has_failed = any(result.status == "failed" for result in results)
        if has_failed and not is_elsewhere:  # no launch waits for what takes longer
            return results
        launch = replace(launch, read=ms_swift.first_rows())
        launch = replace(launch, parsed=ms_swift.parsed(rewards.rows_to_grade(launch)))
        return results + _results(AFTER_MS_SWIFT, launch)


def check_data(plan: Plan) -> list[CheckResult]:
    """The checks that need no large package and read nothing of other programs: what DRY_RUN=1 looks
    at.
    """
    return _results((machine.sleep, datasets, without_task, rewards.verifiers), Launch(plan))


def _results(checks: Sequence[Check], launch: Launch) -> list[CheckResult]:
    results: list[CheckResult] = []
    for check in checks:
        try:
            results += check(launch)
        except (ValueError, ArithmeticError, OSError) as error:  # among them InputError
            name, remedy = check.__name__.replace("_", " "), "the setting, the variable or the file"
            if setting := getattr(error, "field", None):
                name, remedy = "settings", setting
            # Several checks read the same setting.
            if all(str(error) != result.message for result in results):
                results.append(failed(name, str(error), f"correct {remedy}"))
    return results
