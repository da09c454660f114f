"""Checks of the rewards: their names, parameters and columns, what they give, and which rows they leave ungraded."""

import ast
import os
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from swift_rlvr.errors import InputError
from swift_rlvr.launch.checks import Case, Finding, failed, passed, warning
from swift_rlvr.launch.checks.data import Example, examples, readable_sources
from swift_rlvr.launch.checks.run import scaling_of, takes_none
from swift_rlvr.launch.sizes import number
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.build import missing_column
from swift_rlvr.rewards.parameters import stray_variables
from swift_rlvr.tasks import TASKS
from swift_rlvr.tasks.mixed import PARTS

PLUGIN = "rlvr_plugin.py"


@cache
def built_in() -> dict[str, tuple[str, ...]]:
    """ms-swift's own rewards and the columns that each needs, read from its source without running it."""
    spec = find_spec("swift")
    if spec is None or spec.origin is None:
        return {}
    try:
        tree = ast.parse(Path(spec.origin).with_name("rewards").joinpath("orm.py").read_text(encoding="utf-8"))
    except (OSError, SyntaxError):
        return {}
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    found: dict[str, tuple[str, ...]] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and _names(node.targets) == ["orms"]:
            for key, value in zip(node.value.keys, node.value.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Name):
                    found[str(key.value)] = _columns(classes.get(value.id))
    return found


def _names(targets: list[ast.expr]) -> list[str]:
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _columns(cls: ast.ClassDef | None) -> tuple[str, ...]:
    for node in cls.body if cls else []:
        if isinstance(node, ast.FunctionDef) and node.name == "__call__":
            required = node.args.args[: len(node.args.args) - len(node.args.defaults)]
            return tuple(argument.arg for argument in required if argument.arg not in ("self", "completions"))
    return ()


@contextmanager
def _variables(case: Case) -> Iterator[None]:
    """The parameters of rewards that a recipe sets under ENV, in this process's environment for a moment."""
    before = dict(os.environ)
    os.environ.update({name: value for name, value in case.plan.trainer.env.items() if name.startswith("EXTERNAL_")})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def names(case: Case) -> Iterator[Finding]:
    """ms-swift will know every name, and there are as many weights."""
    named = case.listed("reward_funcs")
    gym = bool(case.settings.get("use_gym_env", case.settings.get("gym_env")))  # a reward of its own, the last one
    if not named and not (case.listed("reward_model") or gym):
        known = ", ".join([*REWARDS, *built_in()])
        yield failed("rewards", "reward_funcs names no reward", f"some of {known}")
        return
    plugins = [Path(path).expanduser() for path in case.listed("external_plugins")]
    others = "".join(_text(path) for path in plugins if path.name != PLUGIN)
    bad = False
    for name in named:
        if name in REWARDS.data or name in built_in() or f'"{name}"' in others or f"'{name}'" in others:
            continue
        bad = True
        close = get_close_matches(name, [*REWARDS, *built_in()], 1)
        right = REWARDS[name].name if name in REWARDS else close[0] if close else None
        remedy = f"did you mean {right}?" if right else f"one of {', '.join([*REWARDS, *built_in()])}"
        yield failed("rewards", f"ms-swift knows no reward {name}", remedy)
    ours = [name for name in named if name in REWARDS.data]
    data = [each for each in case.listed("dataset") if each.partition(":")[0].partition("#")[0] in TASKS]
    if (ours or data) and not any(path.name == PLUGIN for path in plugins):
        bad = True
        remedy = "--external_plugins $(swift-rlvr plugin)"
        yield failed("rewards", f"{', '.join([*ours, *data])} come with {PLUGIN}, which is not loaded", remedy)
    weights, count = case.listed("reward_weights"), len(named) + len(case.listed("reward_model")) + gym
    if weights and len(weights) != count:
        bad = True
        yield failed("rewards", f"{len(weights)} reward_weights for {count} rewards", f"{count} reward_weights")
    if not bad:
        yield passed("rewards", ", ".join([*named, *case.listed("reward_model")]) or "those of the environment")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def build(case: Case) -> tuple[list[Reward], list[Finding]]:
    """Our rewards of the run with their parameters, and what is wrong with those."""
    rewards, found = [], []
    arguments = SimpleNamespace(max_completion_length=int(number(case.settings, "max_completion_length", 512)))
    with _variables(case):
        for name in case.listed("reward_funcs"):
            if name not in REWARDS.data:
                continue
            try:
                rewards.append(REWARDS[name](arguments))
            except (InputError, ValueError) as error:
                found.append(failed("parameters", str(error), "see plugin/swift_rlvr/rewards/README.md"))
        for variable in stray_variables(REWARDS):
            close = get_close_matches(
                variable, [f"{name}_{each}".upper() for name in REWARDS for each in _fields(name)], 1
            )
            remedy = f"did you mean {close[0]}?" if close else f"unset {variable}"
            found.append(warning("parameters", f"{variable} is set and belongs to no reward", remedy))
    return rewards, found


def _fields(name: str) -> list[str]:
    return list(REWARDS[name].Parameters.__dataclass_fields__)


def parameters(case: Case) -> Iterator[Finding]:
    """The parameters in EXTERNAL_* variables are valid, and each belongs to a reward."""
    rewards, found = build(case)
    yield from found
    if rewards and not found:
        count = sum(name.startswith("EXTERNAL_") for name in case.environ)
        yield passed(
            "parameters", f"{count} set by variables, the others as by default" if count else "all as by default"
        )


def grades(case: Case) -> Iterator[Finding]:
    """Each reward on a gold, where it should be full, and on an empty completion, where it should be 0 or less."""
    rewards, _ = build(case)
    kinds = _kinds(case)
    if not kinds or not (rewards or case.listed("reward_funcs")):
        return
    parts, details, bad = [], [], False
    for reward in rewards:
        values: list[str] = []
        for task, example in kinds.items():
            own = TASKS[task].rewards if task in TASKS else PARTS[task].rewards if task in PARTS else ()
            column = missing_column(reward, example.row)
            if column is not None:
                bad = True
                present = ", ".join(name for name in example.row if name != "messages")
                message = f"{reward.name} needs the column {column!r}; rows of {task} have {present}"
                yield failed(
                    "grades", message, "another reward, or set its parameter tasks to those that have the column"
                )
                continue
            if not _applies(reward, task):
                continue
            empty = reward.explain("", example.row)
            gold = reward.explain(example.gold, example.row) if example.gold is not None else None
            if gold is not None and reward.name in own and gold.reward != 1.0:
                bad = True
                message = f"{reward.name} gives the gold of line {example.line} ({task}) {gold.reward}: {gold.reason}"
                yield failed("grades", message, "check the row with `swift-rlvr dataset check`, and the parameters")
            if reward.name in own and empty.reward:
                bad = True
                message = f"{reward.name} gives an empty completion {empty.reward} ({empty.reason})"
                yield failed("grades", message, "check its parameters")
            values.append(f"{_number(gold.reward) if gold else 'no gold known'} and {_number(empty.reward)}")
            details.append(f"{reward.name}, {task}, line {example.line}: gold {values[-1].replace(' and', ', empty')}")
        if values:
            parts.append(f"{reward.name} {values[0]}")
    graded, findings = _built_in_grades(case, kinds)
    yield from findings
    if parts + graded and not bad and not any(finding.status == "failed" for finding in findings):
        yield passed("grades", f"on a gold and on nothing: {'; '.join(parts + graded)}", "\n".join(details))


def _number(reward: float | None) -> str:
    return "none" if reward is None else f"{reward:g}"


def _built_in_grades(case: Case, kinds: dict[str, Example]) -> tuple[list[str], list[Finding]]:
    """ms-swift's own rewards: their columns, and in the full part what they give."""
    texts: list[str] = []
    findings: list[Finding] = []
    for name in case.listed("reward_funcs"):
        if name not in built_in():
            continue
        columns = built_in()[name]
        without = [task for task, example in kinds.items() if any(column not in example.row for column in columns)]
        if len(without) == len(kinds):
            message = f"ms-swift's {name} needs the column {', '.join(columns)}, which no row has"
            findings.append(failed("grades", message, "another reward"))
        elif without:
            message = f"ms-swift's {name} needs {', '.join(columns)}, which rows of {', '.join(without)} lack"
            findings.append(warning("grades", message, "external_accuracy grades only the tasks that it knows"))
        elif not case.fast:
            texts.append(_call(name, next(iter(kinds.values())), case))
    return texts, findings


def _call(name: str, example: Example, case: Case) -> str:
    from swift.rewards import orms

    texts = [text for text in (example.gold, "") if text is not None]
    columns: dict[str, list[Any]] = {key: [value] * len(texts) for key, value in example.row.items()}
    try:
        values = orms[name](args=SimpleNamespace(**case.settings))(completions=texts, **columns)
    except Exception as error:  # of another package, with arguments that only its trainer has
        return f"{name} was not graded ({type(error).__name__})"
    return f"{name} {' and '.join(_number(value) for value in values)}"


def _kinds(case: Case) -> dict[str, Example]:
    """The first row with a gold of each task in the data, or the first without one; by task."""
    found: dict[str, Example] = {}
    for source in readable_sources(case):
        for example in examples(source):
            task = str(example.row.get("task") or source.task.name)
            if task not in found or (found[task].gold is None and example.gold is not None):
                found[task] = example
            if not source.task.part and found[task].gold is not None:
                break
    return found


def _applies(reward: Reward, task: str) -> bool:
    return not reward.own_tasks or task in reward.own_tasks


def ungraded(case: Case) -> Iterator[Finding]:
    """Rewards of None, which a reward gives for tasks that are not its own, and what the advantages make of them.

    ms-swift 4.6.0 sums with nansum for every estimator (swift/rl_core/advantage.py): None counts as 0, for all
    completions of a row. So a row that nothing grades teaches nothing, and where the sum is not scaled by group (batch,
    none) tasks that more rewards grade weigh more. gdpo scales each reward alone and leaves None out.
    """
    kinds, (rewards, _) = _kinds(case), build(case)
    everywhere = [name for name in case.listed("reward_funcs") if name not in REWARDS.data]
    if not kinds or not rewards:
        return
    graded = {task: [reward for reward in rewards if _applies(reward, task)] for task in kinds}
    counts = {task: len(own) + len(everywhere) for task, own in graded.items()}
    none = {task: [reward.name for reward in rewards if reward not in own] for task, own in graded.items()}
    estimator, scaling = scaling_of(case)
    judged = any(reward.columns for reward in rewards)
    report = failed if len(kinds) == 1 else warning
    bad = False
    for task in kinds:
        if not counts[task]:
            bad = True
            message = f"no reward grades rows of {task}: all their completions get 0 and nothing is learned from them"
            if case.settings.get("dynamic_sample") is True:
                message += f"; dynamic_sample draws again up to {case.settings.get('max_resample_times', 3)} times"
            yield report("None rewards", message, "a reward for that task, or leave it out")
        elif judged and not any(reward.columns for reward in graded[task]) and not _verifies(everywhere, kinds[task]):
            bad = True
            others = ", ".join([*(reward.name for reward in graded[task]), *everywhere])
            message = f"no reward verifies answers of {task}: only {others} count"
            yield report("None rewards", message, "a reward that grades that task")
    if any(none.values()) and not takes_none(scaling):
        bad = True
        message = "scale_rewards gdpo turns None into NaN for a whole batch in this ms-swift (issue 8123)"
        yield failed("None rewards", message, "ms-swift 4.6.0, or scale_rewards group")
    if len(set(counts.values())) > 1 and scaling in ("batch", "none"):
        bad = True
        listed = ", ".join(f"{task} by {count}" for task, count in counts.items())
        message = f"{listed} rewards: with {estimator} and scale_rewards {scaling} the tasks weigh differently"
        yield warning("None rewards", message, "scale_rewards group or gdpo (advantage_estimator grpo)")
    if not bad:
        partial = [task for task, missing in none.items() if missing]
        text = f"for rows of {', '.join(partial)}; they are left out" if partial else "every reward grades every task"
        yield passed("None rewards", f"{text} ({estimator}, scale_rewards {scaling})")


def _verifies(builtins: list[str], example: Example) -> bool:
    return any(built_in().get(name) or name not in built_in() for name in builtins)
