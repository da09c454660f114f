"""The rows of a launch's data that its checks look at, as its trainer asks them."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

from swift_rlvr.evaluation.prompts import AskedRow, SystemPrompt, ask
from swift_rlvr.launch.checks import Launch
from swift_rlvr.launch.estimate import local_file, task_in
from swift_rlvr.tasks import RowError
from swift_rlvr.tasks.sources import Source, parse_source
from swift_rlvr.utils.errors import InputError

# Rows that are looked at; `swift-rlvr dataset check` looks at all.
FIRST = 200


def asked_rows(launch: Launch, tokenizer: Any = None) -> Iterator[AskedRow]:
    """The FIRST rows of each dataset of our tasks that can be read here and now, as the trainer asks
    them; the check `datasets` names what cannot be read.
    """
    for name in launch.listed("dataset"):
        with suppress(InputError):
            source = readable(name, launch)
            if source is None:
                continue
            for line, raw in source.rows():
                with suppress(RowError):
                    yield ask(source.task, raw, line, system_prompt(launch), tokenizer)


def tasks_of_data(launch: Launch) -> tuple[list[str], list[str]]:
    """The tasks of a launch's data, by its rows, or by the name of a dataset whose rows are not on this
    machine; and the datasets whose tasks are not known.
    """
    tasks = dict.fromkeys(task_of(asked) for asked in asked_rows(launch))
    others = []
    for name in launch.listed("dataset"):
        task = None
        with suppress(InputError):
            if readable(name, launch) is not None:
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
    """The rows that a value of `--dataset` names, if they are of our tasks and on this machine; else
    None.

    Raises:
        InputError: it names nothing that there is.
    """
    if not task_in(name) and local_file(name)[0] is None:
        return None
    source = parse_source(name, launch.use_hf, launch.settings.get("columns"))
    if source.path is None and source.made is None:
        return None
    return replace(source, limit=min(source.limit or FIRST, FIRST))


def task_of(asked: AskedRow) -> str:
    """The task by which rewards choose their rows."""
    return str(asked.row.get("task") or asked.task.name)
