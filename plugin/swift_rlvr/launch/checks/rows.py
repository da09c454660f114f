"""The rows of a launch's data that its checks look at, as its trainer asks them."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from swift_rlvr.evaluation.prompts import AskedRow, SystemPrompt, ask
from swift_rlvr.launch.checks import Launch
from swift_rlvr.launch.estimate import local_file, task_in
from swift_rlvr.rewards import REWARDS
from swift_rlvr.success import VERIFIER
from swift_rlvr.tasks import TASKS, RowError, Task
from swift_rlvr.tasks.own import pictures_digest, question_of
from swift_rlvr.tasks.sources import Source, parse_source
from swift_rlvr.tasks.task import Row, normalised, prompt_text, tasks_of
from swift_rlvr.utils.errors import InputError

# Tasks whose right answers are looked for in rows of which nobody says whose they are, one that wants
# more columns first.
GUESSED = ("choice", "math", "qa")
# Rows that are looked at; `swift-rlvr dataset check` looks at all.
FIRST = 200


def asked_rows(launch: Launch, tokenizer: Any = None) -> Iterator[AskedRow]:
    """The FIRST rows of each dataset that can be read here and now, as the trainer asks them; the
    checks of datasets name what cannot be read.
    """
    for name in launch.listed("dataset"):
        with suppress(InputError):
            source = read_by_ms_swift(name, launch) or readable(name, launch)
            if source is None:
                continue
            for line, raw in source.rows():
                with suppress(RowError):
                    yield ask(source.task, raw, line, system_prompt(launch), tokenizer)


@dataclass(frozen=True)
class ReadRows(Source):
    """Rows that ms-swift has read by itself. name: the dataset, as the launch names it."""

    name: str = ""
    raw: tuple[Row, ...] = field(default=(), hash=False)

    def __str__(self) -> str:
        return self.name

    def rows(self, renamed: set[str] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, row in enumerate(self.raw, start=1):
            yield number, dict(row)

    def with_golds(self) -> "ReadRows":
        """The same with the columns of the task's verifier, whatever the rows call them."""
        task = TASKS[self.task.name]
        raw: list[Row] = []
        for row in self.raw:
            found: Row = {}
            with suppress(RowError):  # which the check of the row as it is says
                prepared = task.preprocess(row)
                found = {name: prepared[name] for name in task.reward_columns}
            raw.append({**row, **found})
        return replace(self, raw=tuple(raw))


def read_by_ms_swift(name: str, launch: Launch) -> ReadRows | None:
    """The rows of a dataset that ms-swift has read by itself, of the task whose right answers most of
    them have; None if there are none, or only a few have any.
    """
    first = launch.read.get(name)
    if first is None or not first.rows or not launch.listed("reward_funcs"):
        return None
    tasks = verified_tasks(launch)
    least = 0
    if not tasks:
        # Nobody says whose rows they are: their columns' names have to, of most of them.
        tasks = [TASKS[task] for task in GUESSED]
        least = max(1, len(first.rows) // 2)
    # At a draw the task for anybody's rows wins: what it says of them fits best.
    tasks.sort(key=lambda task: not task.any_columns)
    best, most = tasks[0], 0
    for task in tasks:
        usable = 0
        for row in first.rows:
            with suppress(RowError):
                task.gold(row)
                usable += 1
        if usable > most:
            best, most = task, usable
    if most < least:
        return None
    # ms-swift adds no prompt and no column of the task, and the question is in the messages alone.
    # A prompt of the user's own promises nothing to the task's other rewards.
    as_read = replace(
        best,
        preprocess=_as_read,
        identity=_asked,
        system="",
        system_in_rows=False,
        further_rewards=(),
    )
    return ReadRows(as_read, name=name, raw=tuple(first.rows))


def is_guess(launch: Launch, asked: AskedRow) -> bool:
    """Whether only the names of its columns tell what is right for a row: ms-swift reads it by itself,
    and no reward of the run verifies a task of ours.
    """
    return "task" not in asked.row and not verified_tasks(launch)


def verified_tasks(launch: Launch) -> list[Task]:
    """The tasks whose answers a reward of the run verifies; for a verifier of ours that is no task's
    own, such as `external_boxed`, those that have its columns.
    """
    names: dict[str, None] = {}
    for reward in launch.listed("reward_funcs"):
        known = REWARDS.get(reward)
        verified = tasks_of(known.name if known else reward)
        names.update(dict.fromkeys(verified))
        if known and known.role == VERIFIER and not verified:
            for task in TASKS.data.values():
                if set(known.columns) <= set(task.reward_columns):
                    names[task.name] = None
    return [TASKS[name] for name in names if not TASKS[name].is_mixed]


def _as_read(row: Row) -> dict[str, Any]:
    """A row that is ready for training, without the assistant's answer, which GRPO takes away."""
    return {**row, "messages": question_of(row["messages"])}


def _asked(row: Row) -> str:
    """The same text for rows that ask the same, of the same pictures."""
    return normalised(prompt_text(question_of(row["messages"]))) + pictures_digest(row)


def tasks_of_data(launch: Launch) -> tuple[list[str], list[str]]:
    """The tasks of a launch's data, by its rows, or by the name of a dataset whose rows are not on this
    machine; and the datasets whose tasks are not known.
    """
    tasks = dict.fromkeys(task_of(asked) for asked in launch.asked)
    others = []
    for name in launch.listed("dataset"):
        task = None
        with suppress(InputError):
            if read_by_ms_swift(name, launch) or readable(name, launch):
                continue
            # A file without a task's name is read by ms-swift itself.
            if task_in(name) or local_file(name)[0] is None:
                task = parse_source(name, launch.use_hf).task
        # Rows of a mixture each name their task.
        if task is not None and task.verifier is not None:
            tasks[task.name] = None
        else:
            others.append(name)
    return list(tasks), others


def system_prompt(launch: Launch) -> SystemPrompt:
    """What ms-swift puts before rows without a system turn."""
    return SystemPrompt(launch.settings.get("system"), "--system")


def readable(name: str, launch: Launch) -> Source | None:
    """The rows that a value of `--dataset` names, if a task of ours reads them and they are on this
    machine; else None.

    Raises:
        InputError: it names nothing that there is.
    """
    if not task_in(name):
        return None
    source = parse_source(name, launch.use_hf, launch.settings.get("columns"))
    if source.path is None and source.made is None:
        return None
    return replace(source, limit=min(source.limit or FIRST, FIRST))


def task_of(asked: AskedRow) -> str:
    """The task by which rewards choose their rows."""
    return str(asked.row.get("task") or asked.task.name)
