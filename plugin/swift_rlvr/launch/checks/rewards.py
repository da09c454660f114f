"""Checks of the rewards: their names, parameters and columns, what they pay, and which tasks have no verifier."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from difflib import get_close_matches
from types import SimpleNamespace

from swift_rlvr.launch.checks import CheckResult, Launch, failed, passed, warning
from swift_rlvr.launch.checks.data import ExampleRow, examples, readable_sources
from swift_rlvr.launch.sizes import number
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.build import missing_column
from swift_rlvr.rewards.parameters import stray_variables
from swift_rlvr.success import ROLES_VARIABLE, VERIFIER
from swift_rlvr.tasks import TASKS
from swift_rlvr.tasks.mixed import PARTS

PLUGIN = "--external_plugins $(swift-rlvr plugin)"


def names(launch: Launch) -> Iterator[CheckResult]:
    """ms-swift with its plugins knows every reward, and there are as many weights."""
    known, named, others = launch.parsed.rewards, launch.listed("reward_funcs"), _other_rewards(launch)
    if not known:  # it has refused the arguments
        return
    count, weights, bad = len(named) + len(others), launch.listed("reward_weights"), False
    if not count:
        yield failed("rewards", "reward_funcs names no reward", f"some of {', '.join(known)}")
        return
    for name in named:
        if name not in known:
            bad = True
            full = REWARDS[name].name if name in REWARDS else name  # ms-swift wants external_countdown for countdown
            close = [full] if full in known else get_close_matches(name, known, 1)
            remedy = f"did you mean {close[0]}?" if close else f"one of {', '.join(known)}"
            yield failed("rewards", f"ms-swift knows no reward {name}", PLUGIN if name in REWARDS.data else remedy)
    if weights and len(weights) != count:
        bad = True
        yield failed("rewards", f"{len(weights)} reward_weights for {count} rewards", f"{count} reward_weights")
    if not bad:
        yield passed("rewards", ", ".join([*named, *others]))


def _other_rewards(launch: Launch) -> list[str]:
    """Rewards that are not among `reward_funcs`: models, and that of an environment."""
    gym = bool(launch.settings.get("use_gym_env", launch.settings.get("gym_env")))
    return launch.listed("reward_model") + ["that of the environment"] * gym


@contextmanager
def _variables(launch: Launch) -> Iterator[None]:
    """The parameters of rewards that a recipe sets under ENV, in this process's environment for a moment."""
    before = dict(os.environ)
    os.environ.update({name: value for name, value in launch.environ.items() if name.startswith("EXTERNAL_")})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def build(launch: Launch) -> tuple[list[Reward], list[CheckResult]]:
    """Our rewards of the run with their parameters, and what is wrong with those."""
    rewards, results = list[Reward](), list[CheckResult]()
    arguments = SimpleNamespace(max_completion_length=int(number(launch.settings, "max_completion_length", 512)))
    with _variables(launch):
        for name in launch.listed("reward_funcs"):
            try:
                if name in REWARDS.data:
                    rewards.append(REWARDS[name](arguments))
            except ValueError as error:  # among them InputError
                results.append(failed("parameters", str(error), "see plugin/swift_rlvr/rewards/README.md"))
        for variable in stray_variables(REWARDS):
            known = [f"{name}_{each.name}".upper() for name in REWARDS for each in fields(REWARDS[name].Parameters)]
            close = get_close_matches(variable, known, 1)
            remedy = f"did you mean {close[0]}?" if close else f"unset {variable}"
            results.append(warning("parameters", f"{variable} is set and belongs to no reward", remedy))
    return rewards, results


def parameters(launch: Launch) -> Iterator[CheckResult]:
    """The parameters in EXTERNAL_* variables are valid, and each belongs to a reward."""
    rewards, results = build(launch)
    yield from results
    if rewards and not results:
        count = sum(name.startswith("EXTERNAL_") for name in launch.environ)
        yield passed("parameters", f"{count} set by variables" if count else "all as by default")


def grades(launch: Launch) -> Iterator[CheckResult]:
    """Each reward of ours finds its columns, and those of a task pay its gold in full and nothing for nothing."""
    rewards, _ = build(launch)
    checked, bad, tasks = list[str](), False, {**PARTS, **TASKS.data}
    for task, example in _example_rows(launch).items():
        for reward in rewards:
            if (column := missing_column(reward, example.row)) is not None:
                bad = True
                present = ", ".join(name for name in example.row if name != "messages")
                remedy = "another reward, or set its parameter tasks to those that have the column"
                yield failed(
                    "grades", f"{reward.name} needs the column {column!r}; rows of {task} have {present}", remedy
                )
                continue
            if task not in tasks or reward.name not in tasks[task].rewards or not _grades_task(reward, task):
                continue
            golds = [(example.gold, reward.full_reward, f"the gold of line {example.line}")] if example.gold else []
            for completion, expected, what in (*golds, ("", 0.0, "an empty completion")):
                value, reason, *_ = reward.explain(completion, example.row)
                if (value or 0.0) != expected:
                    bad = True
                    remedy = "check its parameters, and the row with `swift-rlvr dataset check`"
                    yield failed("grades", f"{reward.name} gives {what} ({task}) {value}: {reason}", remedy)
            checked.append(reward.name)
    if checked and not bad:
        yield passed("grades", f"full for a gold, 0 for nothing: {', '.join(dict.fromkeys(checked))}")


def columns(launch: Launch) -> Iterator[CheckResult]:
    """The rewards of others can be called with the columns of the rows."""
    rows = _example_rows(launch)
    for name in launch.listed("reward_funcs"):
        needed = launch.parsed.rewards.get(name, ([],))[0]
        without = [task for task, example in rows.items() if not set(needed) <= example.row.keys()]
        if without and len(without) == len(rows):
            yield failed("columns", f"{name} needs {', '.join(needed)}, which no row has", "another reward")
        elif without:
            message = f"{name} needs {', '.join(needed)}, which rows of {', '.join(without)} lack"
            yield warning("columns", message, "external_accuracy grades only the tasks that it knows")


def _example_rows(launch: Launch) -> dict[str, ExampleRow]:
    """The first row with a gold of each task in the data, or the first without one; by task."""
    found: dict[str, ExampleRow] = {}
    for source in readable_sources(launch):
        for example in examples(source):
            task = str(example.row.get("task") or source.task.name)
            if task not in found or (found[task].gold is None and example.gold is not None):
                found[task] = example
            if not source.task.part and found[task].gold is not None:
                break
    return found


def _grades_task(reward: Reward, task: str) -> bool:
    return not reward.own_tasks or task in reward.own_tasks


def verifiers(launch: Launch) -> Iterator[CheckResult]:
    """Each task has a reward that verifies its answers, and tasks weigh the same.

    A reward gives None for tasks that are not its own. ms-swift sums with nansum for every estimator
    (swift/rl_core/advantage.py): None counts as 0. So a row that nothing grades teaches nothing, and where the sum is
    not scaled by group (batch, none) tasks that more rewards grade weigh more.
    """
    known, rows = launch.parsed.rewards, _example_rows(launch)
    if not known or _other_rewards(launch):  # what those judge is not known here
        return
    ours = {reward.name: reward for reward in build(launch)[0]}
    grading = {
        task: [
            n for n in launch.listed("reward_funcs") if n in known and (n not in ours or _grades_task(ours[n], task))
        ]
        for task in rows
    }
    report, bad = (failed if len(rows) == 1 else warning), False
    for task, rewards in grading.items():
        roles = [known[name][1] for name in rewards]
        if VERIFIER in roles:
            continue
        bad = True
        if not rewards:
            message = f"no reward grades rows of {task}: all their completions get 0 and nothing is learned from them"
            yield report("verifiers", message, "a reward for that task, or leave it out")
        else:
            message = f"no reward verifies answers of {task}, there are {', '.join(rewards)}: success is not known"
            remedy = f"a reward that does, or for one of your own {ROLES_VARIABLE}=CLASS=verifier"
            yield warning("verifiers", message, remedy)
    scaling = launch.parsed.scale_rewards
    if len({len(rewards) for rewards in grading.values()}) > 1 and scaling in ("batch", "none"):
        bad = True
        listed = ", ".join(f"{task} by {len(rewards)}" for task, rewards in grading.items())
        message = f"{listed} rewards: with scale_rewards {scaling} the tasks weigh differently"
        yield warning("verifiers", message, "scale_rewards group or gdpo (advantage_estimator grpo)")
    if grading and not bad:
        names = dict.fromkeys(name for rewards in grading.values() for name in rewards if known[name][1] == VERIFIER)
        yield passed("verifiers", f"of {', '.join(grading)}: {', '.join(names)}")
