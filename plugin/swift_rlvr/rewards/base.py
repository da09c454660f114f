"""What all rewards share: grades, the two shapes of completions, columns, tasks and the registry."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from swift_rlvr.rewards.parameters import BaseParameters, read_parameters, variable
from swift_rlvr.success import FULL, ROLES, VERIFIER
from swift_rlvr.tasks import TASKS, tasks_of
from swift_rlvr.tasks.task import folded_name
from swift_rlvr.utils.registry import Registry
from swift_rlvr.verifiers.messages import completion_text, last_text
from swift_rlvr.verifiers.thinking import opens_thinking, with_opening

# Every reward gives this reason for a row of a task that is not one of its own.
OTHER_TASK = "other task"

# Whether the rendered prompt of a row ends inside the thinking, for those who know.
THINKING_OPENED = "thinking_opened"

logger = logging.getLogger(__name__)

Row = Mapping[str, Any]  # the values of one row, by column
Columns = Mapping[str, Sequence[Any]]  # one value per completion, by column


class Grade(NamedTuple):
    """What a reward gives for one completion.

    reward: None if the row cannot be graded; the trainers leave it out of the row's sum.
    reason: one of the reward's `reasons`.
    """

    reward: float | None
    reason: str


class Rule(NamedTuple):
    """One rule that a reward checks, for people who ask why.

    passed: None if the rule was not checked, or is a measurement that cannot fail.
    """

    name: str
    passed: bool | None
    detail: str = ""


class Explanation(NamedTuple):
    """A grade with its rules, in the order in which they are checked.

    extracted: the part of the completion that was judged; None if there is none.
    """

    reward: float | None
    reason: str
    extracted: str | None
    rules: list[Rule]


class Example(NamedTuple):
    """A completion of a row, and what it earns with the default parameters."""

    completion: str
    row: Row
    reward: float | None


class Attempt(NamedTuple):
    """An answer that must not be paid, or that a policy can give without work.

    name: the same in every row. knows_gold: whether it is derived from the right answer.
    """

    name: str
    answer: str
    knows_gold: bool = False


def rules_in_order(rules: Mapping[Any, str], reason: Any, detail: str = "") -> list[Rule]:
    """The outcome of rules that are checked one after another until one fails.

    rules: the name of each rule, by the reason that its failure gives. Where `reason` is none of
    these, all have passed.
    detail: of the rule that failed.

    >>> rules_in_order({"no text": "there is a text", "wrong": "it is right", "long": "it is short"}, "wrong")[1:]
    [Rule(name='it is right', passed=False, detail=''), Rule(name='it is short', passed=None, detail='')]
    """
    outcomes = []
    passed: bool | None = True
    for failure, name in rules.items():
        if failure == reason:
            outcomes.append(Rule(name, False, detail))
            passed = None  # the rules after it were not checked
        else:
            outcomes.append(Rule(name, passed))
    return outcomes


def explained_by(
    rules: Mapping[Any, str],
    reward: float | None,
    reason: str,
    extracted: str | None = None,
    detail: str = "",
    further: Iterable[Rule] = (),
) -> Explanation:
    """An explanation with rules as in `rules_in_order`, then each part of the answer that is wrong."""
    return Explanation(
        reward, reason, extracted, [*rules_in_order(rules, reason, detail), *further]
    )


class Reward:
    """What ms-swift and TRL call: ``reward(completions, **columns) -> list[float | None]``.

    A subclass declares the attributes below and implements one method, `grade`. A reward without
    parameters is shorter as a function, see `swift_rlvr.rewards.reward`. Everyone else calls the
    reward, `grades` or `explain`, which read both shapes of completions, check the columns and pass
    over the rows of other tasks.

    >>> class Shorter(Reward):
    ...     name, role, columns, reasons = "external_shorter", "verifier", ("limit",), ("short", "too long")
    ...     def grade(self, text, row):
    ...         return Grade(1.0, "short") if text is not None and len(text) < row["limit"] else Grade(0.0, "too long")
    >>> Shorter()(["abc", [{"role": "assistant", "content": "abcdef"}]], limit=[5, 5])
    [1.0, 0.0]
    """

    name: ClassVar[str]
    # What it judges: VERIFIER, FORMAT or SHAPING of swift_rlvr.success.
    role: ClassVar[str | None] = None
    columns: tuple[str, ...] = ()
    optional_columns: tuple[str, ...] = ()
    # By column, its names in datasets of others, the likeliest first.
    columns_elsewhere: Mapping[str, tuple[str, ...]] = {}
    reasons: tuple[str, ...] = ()
    # The best, one that earns less and, for a reward with columns, one that is not graded.
    examples: ClassVar[tuple[Example, ...]] = ()
    # What a verifier or a format reward pays for a completion without fault.
    full_reward: ClassVar[float] = FULL
    # Whether a policy may read the details of its rules, because nothing of the gold is in them.
    shows_details: ClassVar[bool] = False
    # Whether it runs code that the policy wrote. Such a reward is used only where people ask for it.
    runs_code: bool = False
    # What `swift-rlvr dataset check` says of rows without a right answer, where their other columns
    # say what is right; empty if a row needs one.
    without_gold: ClassVar[str] = ""
    Parameters: ClassVar[type[BaseParameters]] = BaseParameters

    def __init__(self, args: object = None, **parameters: Any):
        """Take ms-swift's training arguments, or parameters by name.

        The arguments are read and not kept, because they do not pickle.
        """
        self.parameters: Any = read_parameters(
            self.Parameters, self.name, args, parameters, other_names=REWARDS
        )
        # The `swift_rlvr.runs.grade_log.GradeLog` of a training run.
        self.log: Any = None
        # What a row earns that cannot be graded. A reward that asks this one still gets None.
        self.neutral: float | None = None
        # The reward that this one asks whether an answer is right.
        self.verifier: Reward | None = None
        # The `swift_rlvr.rewards.gate.OutcomeGate` that pays right answers only.
        self.gate: Any = None
        # Whether a trainer calls it, which comes back with more completions; a command asks once.
        self.is_training = False
        self._has_warned = False

    def ask(self, verifier: Reward) -> None:
        """Let `verifier` say whether answers are right; its columns are then needed too."""
        self.verifier = verifier
        self.runs_code = verifier.runs_code
        self.columns = (*self.columns, *verifier.columns)
        self.columns_elsewhere = {**self.columns_elsewhere, **verifier.columns_elsewhere}
        optional = dict.fromkeys((*self.optional_columns, *verifier.optional_columns))
        self.optional_columns = tuple(name for name in optional if name not in self.columns)

    @property
    def __name__(self) -> str:
        """The name under which TRL logs a reward. ms-swift takes the class's, which is the same."""
        return str(type(self).__name__)

    @property
    def own_tasks(self) -> tuple[str, ...]:
        """The tasks whose rows it grades; empty for all.

        They are those of its parameter `tasks`, else those that name it, or the reward that it
        asks, as their verifier.
        """
        if self.parameters.tasks:
            return tuple(self.parameters.tasks)
        if self.role == VERIFIER:
            return tasks_of(self.name)
        return self.verifier.own_tasks if self.verifier else ()

    def takes(self, name: str) -> bool:
        """Whether it uses a column of this name if a row has one."""
        return name in self.columns or name in self.optional_columns or name == "task"

    def grade(self, text: str | None, row: Row) -> Grade | Explanation:
        """Grade one completion of one row; return an Explanation where the rules are worth listing.

        text: the completion's text; None if it has none.
        row: every column of `columns` and `optional_columns`; an optional one that is absent is
        None.

        It must not raise because of what a policy wrote.
        """
        raise NotImplementedError(f"{type(self).__name__} does not implement grade")

    def grade_batch(self, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
        """Grade each completion with its row; every column holds one value per text.

        Override it, beside `grade`, where many at once are faster than one by one.
        """
        grades = []
        for text, *values in zip(texts, *columns.values(), strict=True):
            row = dict(zip(columns, values, strict=True))
            reward, reason, *_ = self.grade(text, row)
            grades.append(Grade(reward, reason))
        return grades

    @classmethod
    def remarks(cls, row: Row) -> list[str]:
        """What `swift-rlvr dataset check` should mention about a row without calling it bad."""
        return []

    @classmethod
    def attempts(cls, row: Row) -> Sequence[Attempt]:
        """What `swift-rlvr attack` and `dataset check` try on the rows that this reward verifies,
        besides what they try on all rows.
        """
        return ()

    def __call__(
        self,
        completions: Sequence,
        *,
        log_extra: Any = None,
        log_metric: Any = None,
        **columns: Any,
    ) -> list[float | None]:
        """Reward each completion, in order.

        Args:
            log_extra: `log_extra(column, values)` adds a column to the trainer's table of
                completions. TRL passes both from 1.0 on.
            log_metric: `log_metric(name, value)` adds a figure to the trainer's log.

        ValueError if a needed column is missing, or a column has another length.
        """
        for reward in filter(None, (self, self.verifier)):
            reward.is_training = True
        handed = dict(columns)
        if log_extra is not None:
            handed["log_extra"] = log_extra
        if log_metric is not None:
            handed["log_metric"] = log_metric
        grades = self.grades(completions, **handed)
        if grades and all(grade.reason == OTHER_TASK for grade in grades):
            self._warn_of_tasks({str(name) for name in columns["task"]})

        if log_extra is not None:
            log_extra(f"{self.__name__}/reason", [str(grade.reason) for grade in grades])
        if self.log is not None:
            self.log.add(self, completions, columns, grades)
        elif log_metric is not None and grades:
            # The share of each reason, under the names that `reward_reasons` logs. Reasons that nothing got
            # are logged as 0: the trainer takes the mean of what it is told, over ranks and batches.
            counts = Counter(grade.reason for grade in grades)
            for reason in dict.fromkeys((*self.reasons, OTHER_TASK, *counts)):
                name = f"reasons/{self.__name__}/{reason.replace(' ', '_')}"
                log_metric(name, counts[reason] / len(grades))
        return [reward for reward, _ in grades]

    def _warn_of_tasks(self, tasks: set[str]) -> None:
        """Log, once, that a whole batch is of tasks that nobody knows here. One of ours, and one of another
        package, has a reward of its own.

        A dataset may have a column `task` of its own, such as the field of mathematics. A trainer then says
        only that no reward has graded anything.
        """
        if self._has_warned or any(task in TASKS for task in tasks):
            return
        self._has_warned = True
        own, theirs = ", ".join(self.own_tasks), ", ".join(sorted(tasks))
        logger.warning(
            "%s grades the tasks %s, and a whole batch is of %s. If it should grade these rows, remove the column "
            "'task', or set %s",
            *(self.name, own, theirs[:200], variable(self.name, "tasks")),
        )

    def grades(self, completions: Sequence, /, **columns: Any) -> list[Grade]:
        """The rewards with their reasons, without logging them to a training."""
        # Columns are lists in every trainer. A loop of one's own may have arrays and tensors, and their
        # elements are no numbers to a verifier, which would not grade a row.
        completions = completions.tolist() if hasattr(completions, "tolist") else completions
        for name, values in columns.items():
            if hasattr(values, "tolist"):
                columns[name] = values.tolist()
        self._check_column("completions", completions)
        count = len(completions)
        own = self._own_rows(columns.get("task"), count)
        # None, and not 0: a reward that is not for a row must not pull down what another one pays for it.
        grades = [Grade(None, OTHER_TASK)] * count
        if own == []:  # rows of other tasks need no columns
            return grades
        # The reward sees its own rows alone: in a mixed batch the others have None in its columns.
        texts = self._texts(completions, columns)
        used = self._used_columns(completions, columns)
        if own is not None:
            texts = [texts[index] for index in own]
            used = {name: [values[index] for index in own] for name, values in used.items()}
        graded = self.grade_batch(texts, used)
        if self.gate is not None:
            graded = self.gate.grades(graded, texts, used)
        for index, grade in zip(own or range(count), graded, strict=True):
            if grade.reward is None and self.neutral is not None:
                grade = Grade(self.neutral, grade.reason)
            grades[index] = grade
        return grades

    def explain(self, completion: object, row: Row) -> Explanation:
        """Say why one completion, in either shape, gets its reward.

        A row of another task needs no columns.
        """
        columns = {name: [value] for name, value in row.items()}
        if self._own_rows(columns.get("task"), 1) == []:
            detail = f"{row['task']!r} is not one of: {', '.join(self.own_tasks)}"
            return Explanation(None, OTHER_TASK, None, [Rule("task", False, detail)])
        used = {
            name: values[0] for name, values in self._used_columns([completion], columns).items()
        }
        (text,) = self._texts([completion], columns)
        explanation = self.judge(text, used)
        if explanation.reward is None:
            return explanation._replace(reward=self.neutral)
        return explanation

    def judge(self, text: str | None, row: Row) -> Explanation:
        """The explanation from `grade`, with at least one rule, for a caller that has text and columns."""
        grade = self.grade(text, row)
        if isinstance(grade, Explanation):
            return grade
        reward, reason = grade
        passed = None if reward is None else reward > 0
        return Explanation(reward, reason, text, [Rule(reason, passed)])

    def _texts(self, completions: Sequence, columns: Mapping[str, Any]) -> list[str | None]:
        """The text of each completion as ms-swift hands it over: with the opening of the thinking that
        stands at the end of the prompt.

        Every reward then sees that a completion which never closes it is nothing but thinking.
        """
        texts = []
        for completion in completions:
            text = completion if type(completion) is str else completion_text(completion)
            if text and self.parameters.thinking_opened:
                text = with_opening(text, opened=True)
            texts.append(text)

        for name, is_opened in OPENED_BY.items():
            values = columns.get(name)
            if values is None:
                continue
            if name == THINKING_OPENED:
                self._check_column(name, values, len(texts))
            # `prompts` and `messages` are no columns of ours: another trainer may mean something else by them.
            elif not isinstance(values, (list, tuple)) or len(values) != len(texts):
                continue
            for index, (text, value) in enumerate(zip(texts, values, strict=True)):
                if text and is_opened(value):
                    texts[index] = with_opening(text, opened=True)
        return texts

    def _used_columns(self, completions: Sequence, columns: Row) -> dict[str, Sequence[Any]]:
        """The needed and the optional columns; an absent optional one is None in every row."""
        count = len(completions)
        used: dict[str, Sequence[Any]] = {}
        for name in self.columns:
            if name not in columns:
                present = ", ".join(map(repr, sorted(columns))) or "none"
                message = f"needs the dataset column {name!r}; the columns present are {present}"
                for other in self.names_elsewhere(name, columns):
                    message += f"; rename {other!r} to {name!r}"
                raise ValueError(f"{type(self).__name__} {message}")
            used[name] = columns[name]
        for name in self.optional_columns:
            values = columns.get(name)
            used[name] = [None] * count if values is None else values
        for name, values in used.items():
            self._check_column(name, values, count)
        return used

    def names_elsewhere(self, column: str, present: Iterable[str]) -> list[str]:
        """Of the columns present those that may be a needed one under another name, the likeliest
        first.
        """
        by_folded_name: dict[str, str] = {}
        for name in present:
            by_folded_name.setdefault(folded_name(name), name)
        usual = [folded_name(name) for name in (column, *self.columns_elsewhere.get(column, ()))]
        return [by_folded_name[name] for name in usual if name in by_folded_name]

    def _own_rows(self, task: Any, count: int) -> list[int] | None:
        """Indexes of the rows of the reward's own tasks, known by their column `task`; None where
        that is all rows.
        """
        if task is None:
            return None
        own_tasks = self.own_tasks
        if not own_tasks:
            return None
        self._check_column("task", task, count)
        own = []
        for index, name in enumerate(task):
            if name is None or (isinstance(name, str) and name in own_tasks):
                own.append(index)
        return None if len(own) == count else own

    def _check_column(self, name: str, values: Any, count: int | None = None) -> None:
        if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__len__"):
            expected = "one value per completion" if count is not None else "completions"
            raise ValueError(
                f"{type(self).__name__}: {name!r} must be a list of {expected}, not {values!r:.80}"
            )
        if count is not None and len(values) != count:
            expected = f"one value per completion: it holds {len(values)} for {count} completions"
            raise ValueError(f"{type(self).__name__}: column {name!r} must hold {expected}")


def _prompt_opens_thinking(prompt: object) -> bool:
    text = last_text(prompt)
    return text is not None and opens_thinking(text)


def _question_opens_thinking(messages: object) -> bool:
    """Whether messages have such a prompt. ms-swift's end with the completion."""
    if isinstance(messages, (list, tuple)) and messages:
        last = messages[-1]
        if isinstance(last, Mapping) and last.get("role") == "assistant":
            return _prompt_opens_thinking(messages[:-1])
        return _prompt_opens_thinking(messages)
    return False


# By the column that says that the prompt has opened the thinking.
OPENED_BY: dict[str, Callable[[Any], bool]] = {
    THINKING_OPENED: bool,
    "prompts": _prompt_opens_thinking,
    "messages": _question_opens_thinking,
}


def _as_reward(item: Any) -> type[Reward]:
    """The reward class that an item of `REWARDS` is, or, for `@reward`, is an instance of.

    ValueError for what cannot be in `REWARDS`, or could not be told from what is there.
    """
    cls = type(item) if isinstance(item, Reward) else item
    if not isinstance(cls, type) or not issubclass(cls, Reward):
        raise ValueError(f"expected a subclass of swift_rlvr.rewards.Reward, got {item!r:.80}")
    name = getattr(cls, "name", None)
    if not isinstance(name, str) or not name.startswith("external_"):  # the others are ms-swift's
        raise ValueError(f"the name of a reward must begin with 'external_', got {name!r}")
    if cls.role not in ROLES:
        raise ValueError(f"the `role` of {cls.__name__} must be one of {', '.join(ROLES)}")
    if not cls.reasons:
        raise ValueError(f"{cls.__name__} must name every reason it gives in `reasons`")
    for taken, other in REWARDS.present.items():
        if cls.__name__ == other.__name__ and name != taken:
            owner = REWARDS.owner(taken)
            raise ValueError(
                f"the class name {cls.__name__!r} is taken by {taken} of {owner}, and two would be logged as one"
            )
    return cls


REWARDS: Registry[type[Reward]] = Registry("swift_rlvr.rewards", _as_reward, prefix="external_")


def add_reward(reward: type[Reward]) -> None:
    """Add a reward class to `REWARDS` by its `name`; ValueError for a name that is taken, or one
    that cannot be used.

    For a script or a plugin file; an installed package names its rewards in the entry points
    `swift_rlvr.rewards`.
    """
    REWARDS.add(reward)
