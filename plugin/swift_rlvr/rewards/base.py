"""What all rewards share: completion shapes, checks of the columns, routing by task, grades, the
registry.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, WeakSet

from swift_rlvr.rewards.grade import Columns, Example, Explanation, Grade, Row, Rule
from swift_rlvr.rewards.parameters import BaseParameters, read_parameters
from swift_rlvr.success import FULL, ROLES, VERIFIER
from swift_rlvr.tasks import tasks_of
from swift_rlvr.utils.registry import Registry
from swift_rlvr.verifiers.answers import completion_text

# the reason that every reward gives for a row of a task that is not one of its own
OTHER_TASK = "other task"


class Reward:
    """A reward that ms-swift and TRL can call: ``reward(completions, **columns) -> list[float |
    None]``.

    A subclass declares the attributes below and implements one of `grade`, `explain_text` and
    `grade_batch` (where many are cheaper than one by one), from which the others follow. `text` is
    the completion's text, or None where it has none; `row` holds all columns by name, None for an
    optional one that is absent. None of the three may raise because of what a policy wrote.
    Everyone else calls the reward, `grades` or `explain`, which read both completion shapes, check
    the columns and leave out the rows of other tasks.

    >>> class Shorter(Reward):
    ...     name, role, columns, reasons = "external_shorter", "verifier", ("limit",), ("short", "too long")
    ...     def grade(self, text, row):
    ...         return Grade(1.0, "short") if text is not None and len(text) < row["limit"] else Grade(0.0, "too long")
    >>> Shorter()(["abc", [{"role": "assistant", "content": "abcdef"}]], limit=[5, 5])
    [1.0, 0.0]
    """

    name: ClassVar[str]
    columns: tuple[str, ...] = ()
    optional_columns: tuple[str, ...] = ()
    columns_elsewhere: ClassVar[
        Mapping[str, tuple[str, ...]]
    ] = {}  # by column, its names in datasets of others
    reasons: tuple[str, ...] = ()
    examples: ClassVar[
        tuple[Example, ...]
    ] = ()  # the best, one that earns less and, with a gold, one not graded
    # what it judges: VERIFIER, FORMAT or SHAPING of swift_rlvr.success
    role: ClassVar[str | None] = None
    # what a verifier or a format reward pays for a completion without fault
    full_reward: ClassVar[float] = FULL
    # a policy may read the details of its rules: nothing of the gold is in them
    shows_details: ClassVar[bool] = False
    runs_code: bool = False  # it runs code that the policy wrote; only where people ask for it
    Parameters: ClassVar[type[BaseParameters]] = BaseParameters

    def __init__(self, args: object = None, **parameters: Any):
        """Take ms-swift's training arguments, which are not kept because they do not pickle, or
        parameters by name.
        """
        self.parameters: Any = read_parameters(
            self.Parameters, self.name, args, parameters, other_names=REWARDS
        )
        self.log: Any = None  # the `swift_rlvr.runs.grade_log.GradeLog` of a training run
        # what a row earns that cannot be graded; rewards built on this one see None
        self.neutral: float | None = None
        # the `swift_rlvr.rewards.gate.Outcome` that it asks whether an answer is right
        self.outcome: Any = None

    @property
    def __name__(self) -> str:
        """TRL logs a reward under this name; ms-swift takes the class's, which is the same."""
        return str(type(self).__name__)

    @property
    def own_tasks(self) -> tuple[str, ...]:
        """The tasks whose rows it grades, empty for all: its parameter `tasks`, else those of its
        verifier.
        """
        if self.parameters.tasks or self.role == VERIFIER:
            return tuple(self.parameters.tasks) or tasks_of(self.name)
        return self.outcome.reward.own_tasks if self.outcome else ()

    def grade(self, text: str | None, row: Row) -> Grade:
        """Grade one completion of one row."""
        if type(self).grade_batch is not Reward.grade_batch:
            return self.grade_batch([text], {name: [value] for name, value in row.items()})[0]
        if type(self).explain_text is not Reward.explain_text:
            return Grade(*self.explain_text(text, row)[:2])
        raise NotImplementedError(
            f"{type(self).__name__} implements neither grade nor explain_text"
        )

    def grade_batch(self, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
        """Grade each completion with its row; every column holds one value per text."""
        rows = zip(texts, *columns.values(), strict=True)
        return [self.grade(text, dict(zip(columns, values, strict=True))) for text, *values in rows]

    def explain_text(self, text: str | None, row: Row) -> Explanation:
        """Grade one completion of one row, and list every rule with its outcome, in the order they
        are checked.
        """
        reward, reason = self.grade(text, row)
        return Explanation(
            reward, reason, text, [Rule(reason, None if reward is None else reward > 0)]
        )

    @classmethod
    def remarks(cls, row: Row) -> list[str]:
        """What `swift-rlvr dataset check` should count and name of a row that is not bad for it."""
        return []

    def __call__(self, completions: Sequence, **columns: Any) -> list[float | None]:
        """Reward each completion, in order; ValueError where a needed column is missing or has
        another length.
        """
        grades = self.grades(completions, **columns)
        if self.log is not None:
            self.log.add(self, completions, columns, grades)
        return [reward for reward, _ in grades]

    def grades(self, completions: Sequence, **columns: Any) -> list[Grade]:
        """The same with the reasons, and without the log of training."""
        self._check_column("completions", completions)
        texts = [text if type(text) is str else completion_text(text) for text in completions]
        used = self._used_columns(len(texts), columns)
        own = self._own_rows(columns.get("task"), len(texts))
        if own is not None:
            texts = [texts[index] for index in own]
            used = {name: [values[index] for index in own] for name, values in used.items()}
        grades = shared_grades(self, texts, used)
        if self.neutral is not None:
            grades = [
                grade if grade.reward is not None else Grade(self.neutral, grade.reason)
                for grade in grades
            ]
        if own is None:
            return grades
        result = [Grade(None, OTHER_TASK)] * len(completions)
        for index, grade in zip(own, grades, strict=True):
            result[index] = grade
        return result

    def explain(self, completion: object, row: Row) -> Explanation:
        """Say why one completion, in either shape, gets its reward; a row of another task needs no
        columns.
        """
        columns = {name: [value] for name, value in row.items()}
        if self._own_rows(columns.get("task"), 1) == []:
            own = ", ".join(self.own_tasks)
            return Explanation(
                None, OTHER_TASK, None, [Rule("task", False, f"{row['task']!r} is none of: {own}")]
            )
        row = {name: values[0] for name, values in self._used_columns(1, columns).items()}
        explanation = self.explain_text(completion_text(completion), row)
        return (
            explanation._replace(reward=self.neutral) if explanation.reward is None else explanation
        )

    def _used_columns(self, count: int, columns: Row) -> dict[str, Sequence[Any]]:
        """The needed and the optional columns, with None in place of every value of an optional one
        that is absent.
        """
        for name in self.columns:
            if name not in columns:
                present = ", ".join(map(repr, sorted(columns))) or "none"
                message = f"needs the dataset column {name!r}; the columns present are {present}"
                for other in self.columns_elsewhere.get(name, ()):
                    message += f"; rename {other!r} to {name!r}" if other in columns else ""
                raise ValueError(f"{type(self).__name__} {message}")
        used = {name: columns[name] for name in self.columns}
        for name in self.optional_columns:
            used[name] = [None] * count if columns.get(name) is None else columns[name]
        for name, values in used.items():
            self._check_column(name, values, count)
        return used

    def _own_rows(self, task: Any, count: int) -> list[int] | None:
        """Indexes of the rows of the reward's own tasks, known by their column `task`; None where
        that is all rows.
        """
        if task is None or not (own := self.own_tasks):
            return None
        self._check_column("task", task, count)
        mine = [index for index, name in enumerate(task) if name is None or name in own]
        return None if len(mine) == count else mine

    def _check_column(self, name: str, values: Any, count: int | None = None) -> None:
        if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__len__"):
            expected = "one value per completion" if count is not None else "completions"
            raise ValueError(
                f"{type(self).__name__}: {name!r} must be a list of {expected}, not {values!r:.80}"
            )
        if count is not None and len(values) != count:
            expected = f"one value per completion: it holds {len(values)} for {count} completions"
            raise ValueError(f"{type(self).__name__}: column {name!r} must hold {expected}")


_LOCK = threading.Lock()
_LAST: WeakKeyDictionary[Reward, tuple[Any, list[Grade], WeakSet] | None] = (
    WeakKeyDictionary()
)  # see `share_grades`


def share_grades(reward: Reward) -> None:
    """Have this reward and equal ones grade each batch once, for as long as this one exists.

    `external_cosine` and gated rewards ask another reward whether answers are right, which usually
    runs beside them: the trainer calls one after the other with the same completions and columns.
    """
    _LAST.setdefault(reward, None)


def shared_grades(reward: Reward, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
    """`reward.grade_batch`, or what an equal reward, of those that share, gave this batch when it
    was the last one.

    Each object takes them once: a verdict that depends on the machine's load (a timeout) outlives
    no batch.
    """
    alike = (
        each
        for each in list(_LAST)
        if type(each) is type(reward) and each.parameters == reward.parameters
    )
    keeper = next(alike, None)
    if keeper is None:
        return reward.grade_batch(texts, columns)
    try:
        # A copy of the columns, since rows can be changed in place; and bytes, where 1, 1.0 and
        # True differ.
        batch = list(texts), pickle.dumps(dict(columns))
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
        return reward.grade_batch(texts, columns)
    with _LOCK:
        last = _LAST[keeper]
        if last is not None and last[0] == batch and reward not in last[2]:
            last[2].add(reward)
            return list(last[1])
    grades = reward.grade_batch(texts, columns)
    with _LOCK:
        _LAST[keeper] = batch, list(grades), WeakSet([reward])
    return grades


def _check_reward(reward: Any) -> None:
    """Raise ValueError for what cannot be in `REWARDS`, or could not be told from what is."""
    if not isinstance(reward, type) or not issubclass(reward, Reward):
        raise ValueError(
            f"a reward is a subclass of swift_rlvr.rewards.Reward, and {reward!r:.80} is none"
        )
    name = getattr(reward, "name", None)
    if not isinstance(name, str) or not name.startswith("external_"):  # the others are ms-swift's
        raise ValueError(f"the name of a reward must begin with 'external_', and {name!r} does not")
    if getattr(reward, "role", None) not in ROLES:
        raise ValueError(f"the `role` of {reward.__name__} must be one of {', '.join(ROLES)}")
    if not reward.reasons:
        raise ValueError(f"{reward.__name__} must name every reason it gives in `reasons`")
    for taken, other in REWARDS.present.items():
        if reward.__name__ == other.__name__ and name != taken:
            owner = REWARDS.owner(taken)
            raise ValueError(
                f"the class name {reward.__name__!r} is taken by {taken} of {owner}, and two would be logged as one"
            )


REWARDS: Registry[type[Reward]] = Registry("swift_rlvr.rewards", _check_reward, prefix="external_")


def add_reward(reward: type[Reward]) -> None:
    """Add a reward class to `REWARDS` by its `name`; ValueError for a name that is taken, or one
    that cannot be used.

    For a script or a plugin file; an installed package names its rewards in the entry points
    `swift_rlvr.rewards`.
    """
    REWARDS.add(reward)
