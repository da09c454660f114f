"""What all rewards have in common: both completion shapes, columns, parameters, routing by task, the answer to why."""

from __future__ import annotations

import logging
import os
from collections import Counter
from typing import Any, ClassVar, NamedTuple

from swift_rlvr.answers import completion_text
from swift_rlvr.rewards.parameters import Parameters, read_parameters

logger = logging.getLogger(__name__)
REWARDS: dict[str, type[Reward]] = {}
"""Every reward by its name, in the order in which they were added."""
_SHOWN_CHARS = 300
OTHER_TASK = "other task"  # the reason of every reward for a row whose column `task` is not one of its own


class Grade(NamedTuple):
    """What a reward says about one completion."""

    reward: float | None
    """None where the row cannot be graded; such a row counts for nothing."""
    reason: str
    """One of the reward's `reasons`."""


class Rule(NamedTuple):
    """One thing that a reward looks at, for people who ask why."""

    name: str
    passed: bool | None
    """None where it was not looked at, or where it is a measurement that can neither pass nor fail."""
    detail: str = ""


class Explanation(NamedTuple):
    """Why a completion got its reward."""

    reward: float | None
    reason: str
    extracted: str | None
    """The part of the completion that was judged, or None where nothing was found."""
    rules: list[Rule]


class Reward:
    """A reward that ms-swift and TRL can call: ``reward(completions, **columns) -> list[float | None]``.

    A subclass says its `name` in the registry, the dataset `columns` it needs, those it uses where they are present
    (`optional_columns`) and every reason it gives (`reasons`), and implements `grade`. That gets the completion's text
    (None where there is none) and the row's values in the order of columns and optional columns, None for an optional
    one that is absent. `grade` must not raise because of what a policy wrote. `self.parameters` holds the parameters,
    see `swift_rlvr.rewards.parameters`.

    >>> class Shorter(Reward):
    ...     name, columns, reasons = "external_shorter", ("limit",), ("short", "too long")
    ...     def grade(self, text, limit):
    ...         return Grade(1.0, "short") if text is not None and len(text) < limit else Grade(0.0, "too long")
    >>> Shorter()(["abc", [{"role": "assistant", "content": "abcdef"}]], limit=[5, 5])
    [1.0, 0.0]
    >>> Shorter().explain("abcdef", limit=5).reason
    'too long'
    """

    name: ClassVar[str]
    columns: ClassVar[tuple[str, ...]] = ()
    optional_columns: ClassVar[tuple[str, ...]] = ()
    reasons: ClassVar[tuple[str, ...]] = ()
    zero_is_best: ClassVar[bool] = False
    """Whether it only punishes, so that nothing but zeros is no cause for concern."""
    runs_code: ClassVar[bool] = False
    """Whether it runs what the policy wrote, which people should have asked for."""
    Parameters: ClassVar[type[Parameters]] = Parameters

    def __init__(self, args: object = None, **parameters: Any):
        """Take ms-swift's training arguments, which are not kept because they do not pickle, or parameters by name."""
        self.parameters = read_parameters(self.Parameters, self.name, args, parameters, other_names=REWARDS)
        if self.parameters.warn_after < 0:  # here, since a subclass's __post_init__ need not call that of Parameters
            raise ValueError(f"{self.name}: warn_after must be 0 or more, not {self.parameters.warn_after!r}")
        self.log = None
        """A `swift_rlvr.runs.reasons.ReasonLog` that is told every grade, or None."""
        self._barren = 0  # batches in a row without a reward other than 0

    @property
    def __name__(self) -> str:
        """TRL logs a reward under this name; ms-swift takes the class's, which is the same."""
        return type(self).__name__

    def grade(self, text: str | None, *row: object) -> Grade:
        raise NotImplementedError(f"{type(self).__name__} does not implement grade")

    def grade_all(self, texts: list[str | None], *columns: list) -> list[Grade]:
        """Grade each text with its row; to be overridden where many at once are cheaper than one by one."""
        return list(map(self.grade, texts, *columns))

    def rewards(self, texts: list[str | None], *columns: list) -> list[float | None]:
        """The rewards of `grade_all` alone; to be overridden where they are cheaper to have without the reasons."""
        return [grade.reward for grade in self.grade_all(texts, *columns)]

    def rules(self, text: str | None, *row: object) -> tuple[str | None, list[Rule]]:
        """The part of the text that was judged, and every rule with its outcome, in the order they are looked at."""
        reward, reason = self.grade(text, *row)
        return text, [Rule(reason, None if reward is None else reward > 0)]

    def __call__(self, completions: list, **columns: list) -> list[float | None]:
        """Reward each completion, in order. Columns that are not needed are ignored.

        Raises:
            ValueError: where a column is missing or is not as long as completions; this is a mistake in the dataset or
                its preprocessor, and training on would only hide it.
        """
        texts = [text if type(text) is str else completion_text(text) for text in completions]
        values = self._columns(len(texts), columns)
        if self.log is None:
            rewards = self._routed(self.rewards, None, texts, values, columns.get("task"))
        else:
            grades = self._routed(self.grade_all, Grade(None, OTHER_TASK), texts, values, columns.get("task"))
            self.log.add(type(self).__name__, grades)
            rewards = [grade.reward for grade in grades]
        if any(rewards):
            self._barren = 0
        elif rewards and not self.zero_is_best:
            self._note_barren_batch(completions, columns)
        return rewards

    def _note_barren_batch(self, completions: list, columns: dict[str, list]) -> None:
        """Warn, once in so many batches in a row without any reward, which rule fails and on what.

        Batches in which every row is another task's do not count.
        """
        task, own = columns.get("task"), self.parameters.tasks
        if own and task is not None and not any(name is None or name in own for name in task):
            return
        self._barren += 1
        if self.parameters.warn_after == 0 or self._barren % self.parameters.warn_after or _rank() != 0:
            return
        reasons = [grade.reason for grade in self.grades(completions, **columns)]
        counts = Counter(reason for reason in reasons if reason != OTHER_TASK)
        ((reason, count),) = counts.most_common(1)
        text = completion_text(completions[reasons.index(reason)])
        logger.warning(
            "%s: no reward other than 0 in %d batches. In the last one the most frequent reason is %r, %d of %d. "
            "One of these completions ends: %r",
            self.name, self._barren, reason, count, counts.total(), text and text[-_SHOWN_CHARS:],
        )  # fmt: skip

    def grades(self, completions: list, **columns: list) -> list[Grade]:
        """As calling the reward, with the reasons."""
        texts = [text if type(text) is str else completion_text(text) for text in completions]
        values = self._columns(len(texts), columns)
        return self._routed(self.grade_all, Grade(None, OTHER_TASK), texts, values, columns.get("task"))

    def explain(self, completion: object, **row: object) -> Explanation:
        """Say why one completion of one row gets its reward; `row` holds the columns' values, not lists of them."""
        columns = {name: [value] for name, value in row.items()}
        (grade,) = self.grades([completion], **columns)
        if grade.reason == OTHER_TASK:
            own = ", ".join(self.parameters.tasks)
            return Explanation(*grade, None, [Rule("task", False, f"{row['task']!r} is none of: {own}")])
        text = completion if type(completion) is str else completion_text(completion)
        return Explanation(*grade, *self.rules(text, *(value for (value,) in self._columns(1, columns))))

    def _columns(self, count: int, columns: dict[str, list]) -> list[list]:
        """The values of needed and optional columns, one list each."""
        for name in self.columns:
            if name not in columns:
                raise ValueError(
                    f"{type(self).__name__} needs the dataset column {name!r}; "
                    f"the columns present are {', '.join(map(repr, sorted(columns))) or 'none'}"
                )
        names = [*self.columns, *(name for name in self.optional_columns if columns.get(name) is not None)]
        for name in names:
            if len(columns[name]) != count:
                raise ValueError(
                    f"{type(self).__name__}: column {name!r} must hold one value per completion: "
                    f"it holds {len(columns[name])} for {count} completions"
                )
        return [columns[name] if name in names else [None] * count for name in (*self.columns, *self.optional_columns)]

    def _routed(self, judge, other, texts: list, values: list[list], task: list | None) -> list:
        """Judge the rows of the reward's own tasks; all others, known by their column `task`, get `other`."""
        own = self.parameters.tasks
        if not own or task is None:
            return judge(texts, *values)
        mine = [index for index, name in enumerate(task) if name is None or name in own]
        if len(mine) == len(texts):
            return judge(texts, *values)
        result = [other] * len(texts)
        judged = judge(*([column[index] for index in mine] for column in (texts, *values)))
        for index, value in zip(mine, judged, strict=True):
            result[index] = value
        return result


def _rank() -> int:
    return int(os.environ.get("RANK", 0))


def add_reward(reward: type[Reward]) -> None:
    """Add a reward class to `REWARDS`, under its `name`.

    Raises:
        ValueError: for a name without the prefix ``external_`` (the others are ms-swift's), for a name that is taken,
            for a class name that is taken (trainers log rewards under their class's name), and for a class that does
            not say its reasons.
    """
    name = reward.name
    if not name.startswith("external_"):
        raise ValueError(f"the name of a reward must begin with 'external_', and {name!r} does not")
    if name in REWARDS:
        raise ValueError(f"the reward name {name!r} is taken by {REWARDS[name].__name__}")
    if reward.__name__ in {taken.__name__ for taken in REWARDS.values()}:
        raise ValueError(f"the class name {reward.__name__!r} is taken, and two rewards would be logged as one")
    if not reward.reasons:
        raise ValueError(f"{reward.__name__} must name every reason it gives in `reasons`")
    REWARDS[name] = reward
