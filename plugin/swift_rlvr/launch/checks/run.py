"""Checks of the settings against each other and against ms-swift 4.6.0, and of the run's folder."""

import os
import re
import tempfile
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from swift_rlvr.errors import InputError
from swift_rlvr.launch import estimate
from swift_rlvr.launch.checks import Case, Finding, failed, passed, warning
from swift_rlvr.launch.sizes import number
from swift_rlvr.runs.folder import checkpoint_to_resume

# Where ms-swift declares the flags of `swift rlhf`, and transformers those that ms-swift takes over from it.
_DECLARED = {
    "swift": (
        *("arguments/base_args/*.py", "arguments/rlhf_args.py", "arguments/sft_args.py", "arguments/tuner_args.py"),
        *("trainers/arguments.py", "rlhf_trainers/args_mixin.py", "ray_utils/*.py"),
    ),
    "transformers": ("training_args.py", "training_args_seq2seq.py"),
}


@cache
def known_settings() -> frozenset[str]:
    """Names that `swift rlhf` takes, and a few more: those annotated in its classes, read without running them.

    Empty where a package is not installed.
    """
    found: set[str] = set()
    for package, patterns in _DECLARED.items():
        spec = find_spec(package)
        if spec is None or spec.origin is None:
            return frozenset()
        for pattern in patterns:
            for path in Path(spec.origin).parent.glob(pattern):
                found.update(re.findall(r"^    (\w+): ", path.read_text(encoding="utf-8"), re.MULTILINE))
    return frozenset(found)


def names(case: Case) -> Iterator[Finding]:
    """Every setting is one of ms-swift's, which refuses others only after the server has started."""
    known = known_settings()
    for name in case.settings:
        if known and name not in known:
            close = get_close_matches(name, known, 1)
            remedy = f"did you mean {close[0]}?" if close else "`swift rlhf --help` lists all"
            yield failed("settings", f"ms-swift has no setting {name}", remedy)


def batch(case: Case) -> Iterator[Finding]:
    """ms-swift's rules for batches (RolloutTrainerArgumentsMixin._init_generation_batch_params), and its own steps."""
    plan, settings = case.plan, case.settings
    group = int(number(settings, "num_generations", 8))
    processes, own = plan.processes * plan.variables.nnodes, int(number(settings, "per_device_train_batch_size", 1))
    at_once = processes * own
    sampled = estimate.generation_batch(plan)
    accumulation = int(number(settings, "gradient_accumulation_steps", 1))
    explained = f"{processes} processes x per_device_train_batch_size {own}"
    if min(group, at_once, accumulation) < 1 or group < 2:
        message = f"num_generations {group}, {explained}, gradient_accumulation_steps {accumulation}"
        yield failed("batch", message, "num_generations of at least 2, the others of at least 1")
        return
    found = list(_batch_rules(case, group, at_once, sampled, explained))
    yield from found
    for note in plan.notes:
        if "cannot be kept" in note:
            remedy = "set per_device_train_batch_size or gradient_accumulation_steps"
            yield warning("batch", note, remedy)
    if not found:
        text = f"{sampled} completions are sampled at once, {sampled // group} prompts x {group}"
        yield passed("batch", f"{text}, and {at_once * accumulation} make a step")


def _batch_rules(case: Case, group: int, at_once: int, sampled: int, explained: str) -> Iterator[Finding]:
    settings = case.settings
    if sampled % group:
        divisors = [str(n) for n in range(2, min(sampled, 64) + 1) if sampled % n == 0]
        message = f"generation_batch_size {sampled} ({explained} x steps_per_generation) is no multiple of"
        remedy = f"num_generations one of {', '.join(divisors)}, or another batch size"
        yield failed("batch", f"{message} num_generations {group}", remedy)
    if settings.get("generation_batch_size") is not None:
        steps = settings.get("steps_per_generation")
        if sampled % at_once or (
            steps is not None and sampled != at_once * int(number(settings, "steps_per_generation", 1))
        ):
            message = f"generation_batch_size {sampled} is no multiple of {at_once} ({explained})"
            if steps is not None:
                message = (
                    f"generation_batch_size {sampled} is not {at_once} ({explained}) x steps_per_generation {steps}"
                )
            yield failed("batch", message, f"a multiple of {at_once}, or leave one of the two out")
    if evaluates(case):
        held = int(number(settings, "num_generations_eval", group))
        evaluated = (
            case.plan.processes * case.plan.variables.nnodes * int(number(settings, "per_device_eval_batch_size", 1))
        )
        if held and evaluated % held:
            message = f"{evaluated} completions are evaluated at once, which is no multiple of num_generations {held}"
            yield failed("batch", message, "a per_device_eval_batch_size that makes it one, or num_generations_eval")


def steps(case: Case) -> Iterator[Finding]:
    """There is a step at all."""
    result = estimate.steps(case.plan)
    if result.fits:
        yield passed("steps", result.text)
    else:
        yield failed("steps", result.text, "more rows, a smaller batch, or max_steps")


def evaluation(case: Case) -> Iterator[Finding]:
    """eval_steps without anything to evaluate on: ms-swift then sets eval_strategy to no without a word."""
    settings = case.settings
    asked = [name for name in ("eval_steps", "eval_strategy") if settings.get(name) not in (None, "no", False)]
    if not asked:
        return
    if evaluates(case):
        yield passed("evaluation", f"{asked[0]} {settings[asked[0]]}")
    else:
        message = f"{asked[0]} {settings[asked[0]]} has no effect: there is no evaluation data"
        yield warning("evaluation", message, "--val_dataset NAME:FILE, or --split_dataset_ratio 0.01")


def evaluates(case: Case) -> bool:
    """Whether ms-swift evaluates: there is something to evaluate on, and it is not switched off."""
    data = bool(case.listed("val_dataset")) or number(case.settings, "split_dataset_ratio", 0) > 0
    return data and case.settings.get("eval_strategy") not in ("no", False)


def advantages(case: Case) -> Iterator[Finding]:
    """Estimators and scalings that ms-swift takes together, and then silently uses only one of them.

    From swift/rl_core/advantage.py: `compute_advantages` knows gdpo for grpo and rloo only, and
    `compute_advantages_dynamic`, for conversations of several turns, not at all.
    """
    settings = case.settings
    estimator = str(settings.get("advantage_estimator") or "grpo")
    scaling = settings.get("scale_rewards")
    scalings = ("group", "batch", "none", "gdpo")
    if estimator not in ("grpo", "rloo", "reinforce_plus_plus"):
        yield failed("advantages", f"advantage_estimator {estimator} is none", "grpo, rloo or reinforce_plus_plus")
    elif scaling is not None and str(scaling).lower() not in scalings:
        yield failed("advantages", f"scale_rewards {scaling} is none", f"one of {', '.join(scalings)}")
    elif scaling == "gdpo" and estimator == "reinforce_plus_plus":
        message = "scale_rewards gdpo has no effect with reinforce_plus_plus: rewards are not scaled at all"
        yield warning("advantages", message, "advantage_estimator grpo, or scale_rewards batch")
    elif scaling == "gdpo" and settings.get("multi_turn_scheduler"):
        message = "scale_rewards gdpo has no effect where turns make several samples of a completion"
        yield warning("advantages", message, "scale_rewards group")
    elif scaling == "gdpo" and settings.get("kl_in_reward") is True:
        message = "scale_rewards gdpo switches kl_in_reward off"
        yield warning("advantages", message, "kl_in_reward false, which puts the KL term into the loss")


def scaling_of(case: Case) -> tuple[str, str]:
    """The advantage estimator and the scaling that belongs to it unless another is set (RLHFArguments._init_grpo)."""
    estimator = str(case.settings.get("advantage_estimator") or "grpo")
    default = {"grpo": "group", "rloo": "none", "reinforce_plus_plus": "batch"}.get(estimator, "group")
    scaling = "none" if case.settings.get("loss_type") == "real" else case.settings.get("scale_rewards") or default
    return estimator, str(scaling)


def takes_none(scaling: str) -> bool:
    """Whether rewards of None are left out: with gdpo since ms-swift 4.0.0 (issue 8123), with the others always."""
    try:
        return scaling != "gdpo" or int(version("ms-swift").partition(".")[0]) >= 4
    except (PackageNotFoundError, ValueError):
        return True


def folder(case: Case) -> Iterator[Finding]:
    """The run's folder can be written, and holds no other run."""
    plan = case.plan
    try:
        if (
            plan.resume is None and plan.variables.node_rank == 0
        ):  # nodes may share the folder, and the first may be ahead
            checkpoint_to_resume(plan.output, None)
    except InputError as error:
        problem = error.problem.partition(";")[0]
        remedy = "RESUME=1 goes on in it; or set OUTPUT to another folder" if "another run" in problem else "set OUTPUT"
        yield failed("folder", problem, remedy)
        return
    there = next(path for path in (plan.output.absolute(), *plan.output.absolute().parents) if path.is_dir())
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"0" * 4096)
    except OSError as error:
        yield failed(
            "folder", f"{plan.output} cannot be written: {there}: {error.strerror}", "set OUTPUT to another folder"
        )
        return
    yield passed("folder", f"goes on from {plan.resume}" if plan.resume else f"{plan.output} is free")


def plugins(case: Case) -> Iterator[Finding]:
    """The files of --external_plugins are there, and ours is among them where it is needed."""
    named = case.listed("external_plugins")
    missing = [path for path in named if not Path(path).expanduser().is_file()]
    if missing:
        remedy = "`swift-rlvr plugin` prints the path of ours; relative paths count from " + os.getcwd()
        yield failed("plugins", f"there is no file {', '.join(missing)}", remedy)
    elif named:
        yield passed("plugins", ", ".join(named))
