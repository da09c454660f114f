"""Checks by what ms-swift makes of the arguments, and of the rewards: names, parameters, columns,
what they pay.
"""

import itertools
import os
from collections.abc import Iterator
from dataclasses import fields
from types import SimpleNamespace
from unittest import mock

from swift_rlvr.launch.checks import CheckResult, Launch, failed, passed, warning
from swift_rlvr.launch.checks.data import ExampleRow, examples
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.build import missing_column, rewards_without_rows
from swift_rlvr.rewards.parameters import stray_variables
from swift_rlvr.success import ROLES_VARIABLE, VERIFIER
from swift_rlvr.tasks import TASKS
from swift_rlvr.utils.errors import did_you_mean
from swift_rlvr.utils.settings import number

PLUGIN = "--external_plugins $(swift-rlvr plugin)"


def arguments(launch: Launch) -> Iterator[CheckResult]:
    """ms-swift knows every setting, and takes them together; a training would say so after the
    server has started.
    """
    parsed, listed = launch.parsed, "`swift rlhf --help` lists all"
    if parsed.problem:
        yield failed(
            "settings", f"ms-swift refuses them: {parsed.problem}", f"correct them; {listed}"
        )
    if parsed.failure:
        yield warning(
            "settings",
            f"ms-swift could not be asked: {parsed.failure}",
            "the training will say more",
        )
    for name in parsed.unknown:
        yield failed(
            "settings",
            f"ms-swift has no setting {name}",
            did_you_mean(name, parsed.settings) or listed,
        )
    if not (parsed.problem or parsed.failure or parsed.unknown):
        yield passed("settings", "ms-swift takes them")


def names(launch: Launch) -> Iterator[CheckResult]:
    """ms-swift with its plugins knows every reward, and there are as many weights."""
    known, named, others = (
        launch.parsed.rewards,
        launch.listed("reward_funcs"),
        _other_rewards(launch),
    )
    if not known:  # it has refused the arguments
        return
    unknown = [name for name in named if name not in known]
    count, weights = len(named) + len(others), launch.listed("reward_weights")
    for name in unknown:
        full = (
            REWARDS[name].name if name in REWARDS else name
        )  # ms-swift wants external_countdown for countdown
        remedy = (
            PLUGIN
            if name in REWARDS.data
            else did_you_mean(full, known) or f"one of {', '.join(known)}"
        )
        yield failed("rewards", f"ms-swift knows no reward {name}", remedy)
    if not count:
        yield failed("rewards", "reward_funcs names no reward", f"some of {', '.join(known)}")
    elif weights and len(weights) != count:
        yield failed(
            "rewards",
            f"{len(weights)} reward_weights for {count} rewards",
            f"{count} reward_weights",
        )
    elif not unknown:
        yield passed("rewards", ", ".join([*named, *others]))


def _other_rewards(launch: Launch) -> list[str]:
    """Rewards that are not among `reward_funcs`: models, and that of an environment."""
    gym = bool(launch.settings.get("use_gym_env", launch.settings.get("gym_env")))
    return launch.listed("reward_model") + ["that of the environment"] * gym


def build(launch: Launch) -> tuple[list[Reward], list[CheckResult]]:
    """Our rewards of the run with their parameters, and what is wrong with those."""
    rewards, results = list[Reward](), list[CheckResult]()
    arguments = SimpleNamespace(
        max_completion_length=number(launch.settings, "max_completion_length", 512)
    )
    # The parameters that a recipe sets under ENV are in this process's environment for a moment.
    variables = {
        name: value for name, value in launch.environ.items() if name.startswith("EXTERNAL_")
    }
    with mock.patch.dict(os.environ, variables):
        for name in launch.listed("reward_funcs"):
            try:
                if name in REWARDS.data:
                    rewards.append(REWARDS[name](arguments))
            except ValueError as error:  # among them InputError
                results.append(
                    failed("parameters", str(error), "see plugin/swift_rlvr/rewards/README.md")
                )
        for variable in stray_variables(REWARDS):
            known = [
                f"{name}_{each.name}".upper()
                for name in REWARDS
                for each in fields(REWARDS[name].Parameters)
            ]
            remedy = did_you_mean(variable, known) or f"unset {variable}"
            results.append(
                warning("parameters", f"{variable} is set and belongs to no reward", remedy)
            )
    return rewards, results


def parameters(launch: Launch) -> list[CheckResult]:
    """The parameters in EXTERNAL_* variables are valid, and each belongs to a reward."""
    rewards, results = build(launch)
    count = sum(name.startswith("EXTERNAL_") for name in launch.environ)
    if rewards and not results:
        results.append(
            passed("parameters", f"{count} set by variables" if count else "all as by default")
        )
    return results


def grades(launch: Launch) -> Iterator[CheckResult]:
    """Each reward of ours finds its columns, and those of a task pay its gold in full and nothing
    for nothing.
    """
    tasks, rewards, rows = TASKS.data, build(launch)[0], _example_rows(launch)
    for reward, remedy in rewards_without_rows(rewards, list(rows)) if rows else ():
        if reward.role != VERIFIER:  # `verifiers` says those
            looked_at_all = {
                name.partition(":")[0] for name in launch.listed("dataset")
            } == rows.keys()
            report = failed if looked_at_all else warning
            yield report("grades", f"{reward.name} grades no row of {', '.join(rows)}", remedy)
    pairs = itertools.product(rows.items(), rewards)
    for (task, example), reward in pairs:
        if (column := missing_column(reward, example.row)) is not None:
            present = ", ".join(name for name in example.row if name != "messages")
            message = f"{reward.name} needs the column {column!r}; rows of {task} have {present}"
            yield failed(
                "grades",
                message,
                "another reward, or set its parameter tasks to those that have the column",
            )
        elif task in tasks and reward.name in tasks[task].rewards and _grades_task(reward, task):
            for completion, expected in ((example.gold, reward.full_reward), ("", 0.0)):
                value, reason, *_ = reward.explain(completion or "", example.row)
                if completion is not None and (value or 0.0) != expected:
                    what = (
                        f"the gold of line {example.line} ({task})"
                        if completion
                        else "an empty completion"
                    )
                    remedy = "check its parameters, and the row with `swift-rlvr dataset check`"
                    yield failed("grades", f"{reward.name} gives {what} {value}: {reason}", remedy)


def columns(launch: Launch) -> Iterator[CheckResult]:
    """The rewards of others can be called with the columns of the rows."""
    rows = _example_rows(launch)
    for name in launch.listed("reward_funcs"):
        needed = launch.parsed.rewards.get(name, ([],))[0]
        without = [task for task, example in rows.items() if not set(needed) <= example.row.keys()]
        if without and len(without) == len(rows):
            yield failed(
                "columns", f"{name} needs {', '.join(needed)}, which no row has", "another reward"
            )
        elif without:
            message = f"{name} needs {', '.join(needed)}, which rows of {', '.join(without)} lack"
            yield warning(
                "columns", message, "external_accuracy grades only the tasks that it knows"
            )


def _example_rows(launch: Launch) -> dict[str, ExampleRow]:
    """The first row with a gold of each task in the data, or the first without one; by task."""
    found: dict[str, ExampleRow] = {}
    for example in examples(launch):
        if example.task not in found or (
            found[example.task].gold is None and example.gold is not None
        ):
            found[example.task] = example
    return found


def _grades_task(reward: Reward, task: str) -> bool:
    return not reward.own_tasks or task in reward.own_tasks


def verifiers(launch: Launch) -> list[CheckResult]:
    """Each task has a reward that verifies its answers.

    A reward gives None for tasks that are not its own. ms-swift sums with nansum for every
    estimator (swift/rl_core/advantage.py): None counts as 0. So a row that nothing grades teaches
    nothing.
    """
    known, named = (
        launch.parsed.rewards,
        [n for n in launch.listed("reward_funcs") if n in launch.parsed.rewards],
    )
    if not known or _other_rewards(launch):  # what those judge is not known here
        return []
    ours = {reward.name: reward for reward in build(launch)[0]}
    grading = {
        task: [n for n in named if n not in ours or _grades_task(ours[n], task)]
        for task in _example_rows(launch)
    }
    results, grading = list[CheckResult](), grading or {"the dataset": named}
    for task, rewards in grading.items():
        if not rewards:
            message = f"no reward grades rows of {task}: all their completions get 0 and nothing is learned from them"
            report = failed if len(grading) == 1 else warning
            results.append(report("verifiers", message, "a reward for that task, or leave it out"))
        elif not any(known[name][1] == VERIFIER for name in rewards):
            message = f"no reward verifies answers of {task}, there are {', '.join(rewards)}: success is not known"
            known_one = TASKS[task].verifier if task in TASKS else None
            remedy = f"{known_one or 'a reward that does'}, or for one of your own {ROLES_VARIABLE}=CLASS=verifier"
            results.append(warning("verifiers", message, remedy))
    names = ", ".join(name for name in named if known[name][1] == VERIFIER)
    return results or [passed("verifiers", f"of {', '.join(grading)}: {names}")]


CHECKS = (parameters, grades)
AFTER_MS_SWIFT = (arguments, names, columns, verifiers)
