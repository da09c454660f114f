"""Where the rows of a dataset come from, for the commands that look at one: a file, or a dataset on the hubs.

Written as in ms-swift's `--dataset`: `gsm8k:FILE`, `gsm8k`, `gsm8k:test`, each with `#N`, which is the first N rows
here (ms-swift draws them at random). A FILE alone will do, too: its columns tell the task.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from swift_rlvr.errors import InputError
from swift_rlvr.jsonl import LONGEST_ROW, read_jsonl
from swift_rlvr.tasks import TASKS, Task
from swift_rlvr.tasks.row_check import check_columns

SUFFIXES = (".jsonl", ".json", ".parquet", ".csv")


@dataclass(frozen=True)
class Source:
    """A dataset: of `task`, in the file `path` or, where that is None, the split `split` on a hub.

    limit: only the first so many rows; None for all.
    """

    task: Task
    path: Path | None = None
    split: str | None = None
    limit: int | None = None
    use_hf: bool = False

    def __str__(self) -> str:
        where = self.path or ":".join(filter(None, [self.task.name, self.split]))
        return f"{where}" if self.limit is None else f"{where}#{self.limit}"

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """`(line of the file or number of the row, from 1, raw row)`.

        InputError where something cannot be read, where the task's columns are missing in all rows read so far, and
        where there is no row.
        """
        rows = _hub_rows(self) if self.path is None else file_rows(self.path)
        number = 0
        for number, (line, row) in enumerate(islice(rows, self.limit), start=1):
            if number == 1:
                try:
                    check_columns(self.task, row)
                except ValueError as error:
                    raise InputError(f"{self}, line {line}: {error}") from error
            yield line, row
        if number == 0:
            raise InputError(f"{self}: no rows; expected columns {', '.join(self.task.columns)}")


def parse_source(given: str, use_hf: bool = False) -> Source:
    """The dataset that NAME, NAME:SPLIT, NAME:FILE or FILE stands for, each with or without #N.

    >>> source = parse_source("gsm8k:test#100")
    >>> source.task.name, source.split, source.limit
    ('gsm8k', 'test', 100)
    """
    text, limit = given, None
    count = re.search(r"#([0-9]{1,12})\Z", given)
    if count is not None and not Path(given).exists():
        text, limit = given[: count.start()], int(count[1])
        if limit == 0:
            raise InputError(f"{given}: expected # and a number of rows from 1")
    name, colon, rest = text.partition(":")
    if name in TASKS and not (colon and not rest):
        task = TASKS[name]
        if Path(rest).suffix in SUFFIXES:
            return Source(task, Path(rest).expanduser(), None, limit, use_hf)
        if task.ms_dataset_id is None:
            raise InputError(f"{given}: {name} is on no hub, expected {name}:FILE")
        if rest and rest not in task.splits:
            splits = ", ".join(task.splits)
            raise InputError(f"{given}: expected {name}:FILE with {_or(SUFFIXES)}, or one of the splits {splits}")
        return Source(task, None, rest or task.splits[0], limit, use_hf)
    path = Path(text).expanduser()
    if path.suffix not in SUFFIXES:
        raise InputError(
            f"{given}: expected a file ending in {_or(SUFFIXES)}, NAME:FILE or NAME; NAME is one of {', '.join(TASKS)}"
        )
    return Source(guess_task(path), path, None, limit, use_hf)


def guess_task(path: Path) -> Task:
    """The task that the columns of a file's first row fit; InputError where they fit none."""
    line, row = next(file_rows(path), (0, None))
    if row is None:
        raise InputError(f"{path}: no rows")
    fitting = [task for task in TASKS.values() if not task.part and set(task.columns) <= row.keys()]
    if "task" in row and "mixed" in TASKS:
        return TASKS["mixed"]
    if not fitting:
        raise InputError(
            f"{path}, line {line}: no task has the columns {', '.join(row)}; say which, as in gsm8k:{path}"
        )
    # Two variants of a task have the same columns; the one with the shorter name is the plain one.
    return min(fitting, key=lambda task: len(task.name))


def file_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """`(line, row)` of a .jsonl file, `(number of the row, row)` of another."""
    if path.suffix == ".jsonl":
        yield from read_jsonl(path, LONGEST_ROW)
        return
    if not path.is_file():
        raise InputError(f"cannot read {path}: no such file")
    import datasets

    kind = path.suffix[1:]
    options = {"na_filter": False} if kind == "csv" else {}
    try:
        loaded = datasets.load_dataset(kind, data_files=str(path), split="train", **options)
    except (datasets.exceptions.DatasetGenerationError, ValueError, TypeError, StopIteration) as error:
        raise InputError(f"{path}: cannot be read as {kind} ({error.__cause__ or error})") from error
    yield from enumerate(loaded, start=1)


def _hub_rows(source: Source) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        from swift.hub import get_hub
    except ImportError as error:
        raise InputError(f"{source}: reading from a hub needs ms-swift; install the extra [train]") from error
    task = source.task
    name = task.hf_dataset_id if source.use_hf else task.ms_dataset_id
    # A folder of that name stands in for the hub, as it does in ms-swift.
    hub = get_hub(source.use_hf or Path(name).is_dir())
    try:
        loaded = hub.load_dataset(name, task.subset, source.split)
    except Exception as error:  # whatever the two hubs' libraries raise: none of it is a bug of ours
        where = "Hugging Face" if source.use_hf else "ModelScope"
        raise InputError(f"{name} cannot be loaded from {where}: {error}") from error
    yield from enumerate(loaded, start=1)


def _or(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
