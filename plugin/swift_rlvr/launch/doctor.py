"""`swift-rlvr doctor`: can the planned launch work on this machine? Each check passes, warns or
fails, with a remedy.

    results = check(make_plan(read_recipe("scripts/configs/countdown.yaml"), [], this_machine()))

Every launch does this by itself: our own checks, which take a second and import none of the large
packages, and where none of them has failed, what ms-swift says of the arguments, in a process of
its own that takes as long as its imports.
"""

from collections.abc import Sequence

from swift_rlvr.launch import parse_arguments
from swift_rlvr.launch.checks import (
    Check,
    CheckResult,
    Launch,
    data,
    failed,
    machine,
    objective,
    resources,
    rewards,
)
from swift_rlvr.launch.plan import Plan

CHECKS: tuple[Check, ...] = (
    *machine.CHECKS,
    *resources.CHECKS,
    *objective.CHECKS,
    *data.CHECKS,
    *rewards.CHECKS,
)
AFTER_MS_SWIFT: tuple[Check, ...] = (
    *rewards.AFTER_MS_SWIFT,
    *objective.AFTER_MS_SWIFT,
    *data.AFTER_MS_SWIFT,
)


def check(plan: Plan) -> list[CheckResult]:
    """All results, in the order of the checks. A check that cannot read something, such as a
    number, has failed.
    """
    with parse_arguments.started(plan) as parser:
        results = _run(CHECKS, Launch(plan))
        if any(result.status == "failed" for result in results):
            return results
        return results + _run(AFTER_MS_SWIFT, Launch(plan, parser()))


def _run(checks: Sequence[Check], launch: Launch) -> list[CheckResult]:
    results: list[CheckResult] = []
    for run_check in checks:
        try:
            results += run_check(launch)
        except (ValueError, ArithmeticError, OSError) as error:  # among them InputError
            problem = _unreadable(run_check, error)
            # Several checks read the same setting.
            if all(problem.message != result.message for result in results):
                results.append(problem)
    return results


def _unreadable(check: Check, error: Exception) -> CheckResult:
    """The failure of a check that could not read something."""
    setting = getattr(error, "field", None)
    if setting:
        return failed("settings", str(error), f"correct {setting}")
    name = check.__name__.replace("_", " ")
    return failed(name, str(error), "correct the setting, the variable or the file")
