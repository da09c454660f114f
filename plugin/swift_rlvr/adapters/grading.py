"""What all adapters share: a completion and its row -> one score, each reward, each reason."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from swift_rlvr.rewards import Reward
from swift_rlvr.rewards.base import OTHER_TASK, Grade
from swift_rlvr.rewards.build import build_rewards, missing_column
from swift_rlvr.tasks import TASKS, verifier_of
from swift_rlvr.tasks.columns import parsed
from swift_rlvr.tasks.own import golds_in
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import PREFIX, Settings, Text, setting

# The column of a label that is not an object of columns.
LABEL = "solution"
# How verl calls the sources of its rows (`verl.utils.reward_score`), and Search-R1 its own: the
# beginnings of names, by the task of ours that such rows are of.
SOURCES = {
    "gsm8k": ("openai/gsm8k",),
    "math": ("lighteval/MATH", "DigitalLearningGmbH/MATH", "HuggingFaceH4/MATH", "math_dapo")
    + ("aime", "numina_", "hiyouga/geometry3k"),
    "code": ("codecontests", "apps", "codeforces", "taco"),
    "qa": ("searchR1_", "nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihopqa", "musique")
    + ("bamboogle",),
}
# One of these is in a label that is the tests of a program (PRIME, code-r1, verl's sandbox).
TESTS = ("inputs", "functional", "pytest", "assert_case")


@dataclass(frozen=True)
class AdapterSettings(Settings):
    """Which rewards, where the trainer's configuration has no place to say so: variables."""

    reward_funcs: tuple[str, ...] = setting((), "Names of rewards. Default: the task's verifier.")
    reward_weights: tuple[float, ...] = setting((), "One weight per reward. Default: 1.")


def grade(
    completion: object, row: Mapping[str, Any], rewards: Any = None, weights: Any = None
) -> dict[str, Any]:
    """Grade one completion of a row: ``{"score": ..., NAME: ..., NAME_reason: ...}``.

    The score is the weighted sum of the rewards that grade the row, as in ms-swift and TRL; None
    where none does. A reward that does not grade the row is None too, with the reason. So rows of
    several tasks get the same keys where the rewards are named.

    Args:
        completion: a text, or a list of messages.
        row: its columns. In `task` a name that is no task of ours counts as none.
        rewards: names as in `--reward_funcs`, one or several. By default those of
            SWIFT_RLVR_REWARD_FUNCS, or else the verifier of the row's `task`.
        weights: one for each; by default SWIFT_RLVR_REWARD_WEIGHTS, or else 1.

    Raises:
        InputError: no reward is named, one is unknown, or there are more or fewer weights.
        ValueError: the row lacks a column that a reward needs.

    >>> grade("<answer>1+2</answer>", {"nums": [1, 2], "target": 3}, ["countdown", "format"], [1, 0.1])
    {'score': 1.0, 'countdown': 1.0, 'countdown_reason': 'correct', 'format': 0.0, 'format_reason': 'no think part'}
    """
    names, numbers = _chosen(rewards, weights)
    values: dict[str, Any] = _plain(dict(row))  # which a row of pandas is not yet
    if not names:
        task = values.get("task")
        verifier = verifier_of(task)
        if verifier is None and has_no_label(values):
            return {"score": None}
        if verifier is None:
            problem = f"no reward is named, and the row's task {task!r} has no verifier"
            remedy = "name some, such as countdown,format"
            raise InputError(f"{problem}; {remedy}", f"{PREFIX}REWARD_FUNCS")
        names = (verifier,)
    numbers = numbers or (1.0,) * len(names)
    if len(numbers) != len(names):
        problem = f"must have one weight for each of {', '.join(names)}, got {len(numbers)}"
        raise InputError(problem, "reward_weights")

    # None is not 0: where no reward grades the row, there is no score, and the trainer's adapter says what it
    # can make of that.
    total = None
    grades: dict[str, Any] = {}
    graded = _graded(completion, values, _built(names))
    for (reward, (value, reason)), weight in zip(graded, numbers, strict=True):
        name = short_name(reward.name)
        grades |= {name: value, f"{name}_reason": reason}
        if value is not None:
            total = (total or 0.0) + weight * value
    return {"score": total, **grades}


def same_keys(grades: Mapping[str, Any], rewards: Any = None) -> dict[str, Any]:
    """The grades with the keys that every row gets, for a trainer that takes those of one row for
    all.

    They are the same already where the rewards are named. Else the verifiers of all other tasks are
    added, as None.

    >>> grades = grade("1+2", {"nums": [1, 2], "target": 3, "task": "countdown"})
    >>> list(same_keys(grades))[:5]
    ['score', 'countdown', 'countdown_reason', 'accuracy', 'accuracy_reason']
    """
    names, _ = _chosen(rewards, None)
    if names:
        return dict(grades)
    every: dict[str, Any] = {"score": None}
    for task in TASKS.values():
        if task.verifier is not None:
            name = short_name(task.verifier)
            every |= {name: None, f"{name}_reason": OTHER_TASK}
    return {**every, **grades}


def row_of(label: object, task: object = None, /, **columns: Any) -> dict[str, Any]:
    """The row that a trainer's one label stands for, beside the columns that it hands over itself.

    A JSON object holds columns, as `swift-rlvr dataset prepare --format` writes them. The tests of a
    program are the column `tests`. Any other label is the column `solution`: of several golds any
    is right, and None, "" and NaN are None.

    task: the row's, where it names none; one of ours, its id on a hub, or one of verl's sources.

    >>> row_of('{"nums": [1, 2], "target": 3}', "countdown")
    {'nums': [1, 2], 'target': 3, 'task': 'countdown'}
    >>> row_of("72", question="6 * 12?")
    {'question': '6 * 12?', 'solution': '72'}
    """
    row = _plain({**columns, **_columns_in(_plain(label))})
    # A label that says nothing does not hide the gold that the trainer hands over beside it.
    if row.get(LABEL) is None and columns.get(LABEL) is not None:
        row[LABEL] = columns[LABEL]
    if isinstance(row.get(LABEL), list):
        row |= _columns_in(row[LABEL])
    # The row's own name first: a trainer's source may be a mixture of several tasks.
    named = task_of(row.get("task")) or task_of(task)
    if named is not None:
        row["task"] = named
    return row


def has_no_label(row: Mapping[str, Any]) -> bool:
    """Whether `row_of` made the row of an empty label, so that nothing in it can be graded.

    >>> has_no_label(row_of("")), has_no_label(row_of("72")), has_no_label({"nums": [1, 2]})
    (True, False, False)
    """
    return LABEL in row and row[LABEL] is None


def task_of(name: object) -> str | None:
    """The task of ours that a name stands for, as in `row_of`; None if there is none.

    >>> task_of("searchR1_nq"), task_of("openai/gsm8k"), task_of("algebra")
    ('qa', 'gsm8k', None)
    """
    if not isinstance(name, str):
        return None
    if name in TASKS:
        return name
    for known, beginnings in SOURCES.items():
        if name.startswith(beginnings):
            return known
    for task in TASKS.values():
        if name in (task.hf_dataset_id, task.ms_dataset_id):
            return task.name
    return None


def short_name(reward: str) -> str:
    """The name of a reward in logs.

    >>> short_name("external_countdown")
    'countdown'
    """
    return reward.removeprefix("external_")


def _plain(value: Any) -> Any:
    """A value as JSON has it: lists for NumPy's arrays, and None for NaN."""
    # Rows of parquet files come as NumPy's arrays and scalars, or as pandas's NaN.
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and math.isnan(value):
        return None
    return value


def _columns_in(label: Any) -> dict[str, Any]:
    """The columns that a label stands for, see `row_of`."""
    value = parsed(label)
    golds = []
    for gold in golds_in(label):
        text = "" if gold is None else str(gold).strip()
        # An empty gold would be paid for an empty answer.
        if text:
            golds.append(text)
    if isinstance(value, Mapping):
        if set(value) & set(TESTS):
            return {"tests": value}
        # Search-R1's and TriviaQA's golds; the target of a countdown is a number
        if not isinstance(value.get("target"), list) and "aliases" not in value:
            return dict(value)
    if isinstance(value, list) and value and not golds and isinstance(value[0], Mapping):
        return {"tests": value}  # cases of input and output
    if len(golds) > 1:
        return {LABEL: json.dumps(golds, ensure_ascii=False)}  # as `math:` writes them
    return {LABEL: next(iter(golds), None)}


def _chosen(rewards: Any, weights: Any) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The names and the weights of the arguments, or else of the variables."""
    settings = AdapterSettings.from_environment()
    names, numbers = _listed(rewards), _listed(weights)
    chosen = AdapterSettings(names or settings.reward_funcs, numbers or settings.reward_weights)
    return chosen.reward_funcs, chosen.reward_weights


def _listed(value: Any) -> Any:
    """What a configuration has for a list: one, a text with commas, or a single item."""
    if isinstance(value, str):
        return Text(value)
    if value is None or isinstance(value, (int, float)):
        return () if value is None else (value,)
    return tuple(value)


@cache
def _built(names: tuple[str, ...]) -> list[Reward]:
    """The rewards, built once in a process."""
    rewards = build_rewards(names)
    if len(rewards) != len(names):
        raise InputError(f"a reward is named twice in {', '.join(names)}", "reward_funcs")
    # A training goes on where a plain function fails on a few completions of many.
    for reward in rewards:
        reward.is_training = True
    return rewards


def _graded(
    completion: object, row: dict[str, Any], rewards: list[Reward]
) -> list[tuple[Reward, Grade]]:
    """What each reward gives. One that is for some tasks only does not grade the rows of others."""
    # A trainer's own name for the dataset, such as a column `task` of its file, is none of our tasks.
    known = set(TASKS)
    for reward in rewards:
        known.update(reward.own_tasks)
    task = row.get("task")
    if not isinstance(task, str) or task not in known:
        row = {name: value for name, value in row.items() if name != "task"}

    # A row that names no task is for the verifiers whose columns it has, if there are any.
    of_other_tasks: list[Reward] = []
    if "task" not in row:
        fitting = False
        lacking = []
        for reward in rewards:
            if not reward.own_tasks:
                continue
            if missing_column(reward, row) is None:
                fitting = True
            else:
                lacking.append(reward)
        # Where none fits, each says which column the row lacks.
        if fitting:
            of_other_tasks = lacking
    graded = []
    for reward in rewards:
        if reward in of_other_tasks:
            graded.append((reward, Grade(None, OTHER_TASK)))
            continue
        columns = {name: [value] for name, value in _with_needed(reward, row).items()}
        graded.append((reward, reward.grades([completion], **columns)[0]))
    return graded


def _with_needed(reward: Reward, row: dict[str, Any]) -> dict[str, Any]:
    """The row, with the columns that a reward needs where they have another name in it."""
    if missing_column(reward, row) is None:
        return row
    row = dict(row)
    # Several golds come as JSON, which the verifier of mathematics reads. Other rewards take the list.
    label = row.get(LABEL)
    golds = golds_in(label)
    if len(golds) > 1:
        label = golds
    missing = []
    for column in reward.columns:
        if column in row:
            continue
        elsewhere = reward.names_elsewhere(column, row)
        if elsewhere:
            row[column] = label if elsewhere[0] == LABEL else row[elsewhere[0]]
        else:
            missing.append(column)
    # A label is the one column that the verifier of the row's task needs.
    is_label = len(reward.columns) == 1 and row.get("task") in reward.own_tasks
    if has_no_label(row) or (is_label and LABEL in row):
        row |= dict.fromkeys(missing, label)
    return row
