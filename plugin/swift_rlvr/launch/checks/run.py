"""Checks of the settings, most of them by ms-swift itself, and of the run's folder."""

import tempfile
from collections.abc import Iterator
from difflib import get_close_matches

from swift_rlvr.errors import InputError
from swift_rlvr.launch import estimate
from swift_rlvr.launch.checks import CheckResult, Launch, failed, judged, passed, warning
from swift_rlvr.runs.folder import checkpoint_to_resume

LISTED = "`swift rlhf --help` lists all"


def arguments(launch: Launch) -> Iterator[CheckResult]:
    """ms-swift knows every setting, and takes them together; a training would say so after the server has started."""
    parsed = launch.parsed
    if parsed.problem:
        yield failed("settings", f"ms-swift refuses them: {parsed.problem}", f"correct them; {LISTED}")
    if parsed.failure:
        yield warning("settings", f"ms-swift could not be asked: {parsed.failure}", "the training will say more")
    for name in parsed.unknown:
        close = get_close_matches(name, parsed.settings, 1)
        remedy = f"did you mean {close[0]}?" if close else LISTED
        yield failed("settings", f"ms-swift has no setting {name}", remedy)
    if not (parsed.problem or parsed.failure or parsed.unknown):
        yield passed("settings", "ms-swift takes them")


def steps(launch: Launch) -> Iterator[CheckResult]:
    """There is a step at all."""
    yield judged("steps", estimate.steps(launch.plan), "more rows, a smaller batch, or max_steps")


def folder(launch: Launch) -> Iterator[CheckResult]:
    """The run's folder can be written, and holds no other run."""
    plan = launch.plan
    try:
        if plan.resume is None and plan.variables.node_rank == 0:  # nodes may share it, and the first may be ahead
            checkpoint_to_resume(plan.output, None)
    except InputError as error:
        problem = error.problem.partition(";")[0]
        remedy = "RESUME=1 goes on in it; or set OUTPUT to another folder" if "another run" in problem else "set OUTPUT"
        yield failed("folder", problem, remedy)
        return
    existing = next(path for path in (plan.output.absolute(), *plan.output.absolute().parents) if path.is_dir())
    try:
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(b"0" * 4096)
    except OSError as error:
        message = f"{plan.output} cannot be written: {existing}: {error.strerror}"
        yield failed("folder", message, "set OUTPUT to another folder")
        return
    yield passed("folder", f"goes on from {plan.resume}" if plan.resume else f"{plan.output} is free")


CHECKS = (folder, steps)
AFTER_MS_SWIFT = (arguments,)
