"""Checks of the settings, most of them by ms-swift itself, and of the run's folder."""

import tempfile
from collections.abc import Iterator
from difflib import get_close_matches

from swift_rlvr.errors import InputError
from swift_rlvr.launch import estimate
from swift_rlvr.launch.checks import CheckResult, Launch, failed, judged, passed, warning
from swift_rlvr.launch.sizes import number
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


def batch(launch: Launch) -> Iterator[CheckResult]:
    """Completions a step are those of the recipe."""
    for note in launch.plan.notes:
        if "cannot be kept" in note:
            yield warning("batch", note, "set per_device_train_batch_size or gradient_accumulation_steps")


def steps(launch: Launch) -> Iterator[CheckResult]:
    """There is a step at all."""
    yield judged("steps", estimate.steps(launch.plan), "more rows, a smaller batch, or max_steps")


def evaluation(launch: Launch) -> Iterator[CheckResult]:
    """eval_steps without anything to evaluate on: ms-swift then sets eval_strategy to no without a word."""
    settings = launch.settings
    wanted = [name for name in ("eval_steps", "eval_strategy") if settings.get(name) not in (None, "no", False)]
    if wanted and not evaluates(launch):
        message = f"{wanted[0]} {settings[wanted[0]]} has no effect: there is no evaluation data"
        yield warning("evaluation", message, "--val_dataset NAME:FILE, or --split_dataset_ratio 0.01")


def evaluates(launch: Launch) -> bool:
    """Whether ms-swift evaluates: there is something to evaluate on, and it is not switched off."""
    data = bool(launch.listed("val_dataset")) or number(launch.settings, "split_dataset_ratio", 0) > 0
    return data and launch.settings.get("eval_strategy") not in ("no", False)


def advantages(launch: Launch) -> Iterator[CheckResult]:
    """What ms-swift takes together with `scale_rewards gdpo`, and then ignores one of (swift/rl_core/advantage.py)."""
    if launch.parsed.scale_rewards != "gdpo":
        return
    if launch.parsed.advantage_estimator == "reinforce_plus_plus":
        message = "has no effect with reinforce_plus_plus: rewards are not scaled at all"
        yield warning("advantages", f"scale_rewards gdpo {message}", "advantage_estimator grpo, or scale_rewards batch")
    if launch.settings.get("multi_turn_scheduler"):
        message = "has no effect where turns make several samples of a completion"
        yield warning("advantages", f"scale_rewards gdpo {message}", "scale_rewards group")
    if launch.settings.get("kl_in_reward") is True:
        remedy = "kl_in_reward false, which puts the KL term into the loss"
        yield warning("advantages", "scale_rewards gdpo switches kl_in_reward off", remedy)


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


CHECKS = (folder, batch, steps, evaluation)
AFTER_MS_SWIFT = (arguments, advantages)
