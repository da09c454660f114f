"""Where the rows of a dataset come from: a file, a hub or a generator.

A dataset is named as in ms-swift's `--dataset`: `gsm8k:FILE`, `gsm8k` or `gsm8k:test`, each with
`#N` for the first N rows (ms-swift draws N at random). `FILE` alone is enough where its columns
tell the task. Rows of `reasoning_gym:TEXT#N` are made.
"""

import csv
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from swift_rlvr.tasks import TASKS, RowError, Task
from swift_rlvr.tasks.code import ONLY_TESTS
from swift_rlvr.tasks.options import COLUMNS as CHOICES
from swift_rlvr.tasks.row_check import allowed_share, check_columns, check_rows
from swift_rlvr.utils.errors import InputError, did_you_mean, require
from swift_rlvr.utils.files import find_file
from swift_rlvr.utils.jsonl import LONGEST_ROW, opened, read_jsonl
from swift_rlvr.utils.network import why_no_hub

SUFFIXES = (".jsonl", ".json", ".parquet", ".csv")
_FILE = f"a file ending in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"


@dataclass(frozen=True)
class Source:
    """A dataset of `task`: the file `path`, what the task makes of the text `made`, or the split
    `split` on a hub.
    """

    task: Task
    path: Path | None = None
    split: str | None = None
    limit: int | None = None  # how many of the first rows to read
    use_hf: bool = False  # the hub is Hugging Face, not ModelScope
    made: str | None = None
    # New names of columns by those in the file, as in ms-swift's `--columns`.
    columns: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        where = self.path or ":".join(filter(None, [self.task.name, self.made, self.split]))
        return str(where) if self.limit is None else f"{where}#{self.limit}"

    def rows(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """`(line or number of the row, from 1, raw row)`.

        InputError where a row cannot be read, the first one lacks a column of the task, or there is
        none.
        """
        if self.made is not None:
            rows: Iterator[tuple[int, Any]] = enumerate(self.task.make(self.made), start=1)
        else:
            rows = _hub_rows(self) if self.path is None else file_rows(self.path)
        rows = islice(with_columns(rows, self.columns), self.limit)
        line, row = next(rows, (0, None))
        if row is None:
            raise InputError(f"{self}: no rows; expected columns {', '.join(self.task.columns)}")
        try:
            check_columns(self.task, row)
        except ValueError as error:
            raise InputError(f"{self}, line {line}: {error}") from error
        yield line, row
        yield from rows

    def usable_rows(self) -> tuple[list[tuple[int, dict[str, Any]]], str]:
        """The rows that the task can use, as in `rows`, and a text that names the others; empty
        where there are none.

        InputError as in `rows`, and where too many cannot be used (`RowCheck.excess`).
        """
        rows = list(self.rows())
        result = check_rows(self.task, [row for _, row in rows])
        if not result.errors:
            return rows, ""
        problems = result.describe(str(self), lines=[line for line, _ in rows])
        excess = result.excess(allowed_share(self.task))
        if excess:
            raise InputError(f"{problems}\n{excess}")
        return [rows[index] for index in result.usable], problems

    def row(self, number: int) -> tuple[int, dict[str, Any]]:
        """`(line, raw row)` of row `number`, from 1; InputError where there is no such row."""
        row = next(islice(self.rows(), number - 1, None), None)
        if row is None:
            raise InputError(f"{self} has no row {number}")
        return row

    @contextmanager
    def at(self, line: int) -> Iterator[None]:
        """Turns a RowError inside the `with` block into an InputError that names the dataset and
        the line.
        """
        try:
            yield
        except RowError as error:
            raise InputError(f"{self}, line {line}: {error}") from error


def parse_source(name: str, use_hf: bool = False, columns: Any = None) -> Source:
    """The dataset that NAME, NAME:SPLIT, NAME:FILE or FILE stands for, each with or without #N.

    columns: as in `parse_columns`.
    """
    new_names = parse_columns(columns)
    text, limit = _without_limit(name)
    first, colon, rest = text.partition(":")
    if first in TASKS and not (colon and not rest):
        source = _named_source(name, TASKS[first], rest, limit, use_hf)
        return replace(source, columns=new_names)

    path = Path(text).expanduser()
    if colon and path.suffix in SUFFIXES and not path.exists():
        known = did_you_mean(first, TASKS) or f"expected one of {', '.join(TASKS)}"
        raise InputError(f"{name}: there is no dataset {first!r}; {known}")
    if path.suffix not in SUFFIXES:
        raise InputError(
            f"{name}: expected {_FILE}, NAME:FILE or NAME; NAME is one of {', '.join(TASKS)}"
        )
    return Source(guess_task(path, new_names), path, None, limit, use_hf, columns=new_names)


def parse_columns(value: Any) -> dict[str, str]:
    """New names of columns by those in the file, from ms-swift's `--columns`: an object, or one in
    JSON; empty for None and "". InputError for anything else.

    >>> parse_columns('{"Problem Statement": "problem"}')
    {'Problem Statement': 'problem'}
    """
    columns = value or {}
    if isinstance(value, str) and value:
        try:
            columns = json.loads(value)
        except ValueError:
            columns = None
    is_names = isinstance(columns, Mapping) and all(
        isinstance(name, str) and isinstance(new, str) for name, new in columns.items()
    )
    if not is_names:
        example = '{"Problem Statement": "problem"}'
        raise InputError(f"must be an object in JSON such as {example}, got {value!r}", "columns")
    return dict(columns)


def _without_limit(name: str) -> tuple[str, int | None]:
    """The name without #N, and N; a file may be called like that."""
    count = re.search(r"#([0-9]{1,12})\Z", name)
    if count is None or Path(name).exists():
        return name, None
    limit = int(count[1])
    if limit == 0:
        raise InputError(f"{name}: expected a number of rows from 1 after #")
    return name[: count.start()], limit


def _named_source(name: str, task: Task, rest: str, limit: int | None, use_hf: bool) -> Source:
    """The dataset of a task: what stands after its name and a colon is a file, a split or, for rows
    that are made, what to make.
    """
    if Path(rest).suffix in SUFFIXES:
        return Source(task, Path(find_file(rest)).expanduser(), None, limit, use_hf)
    if task.is_made:
        if limit is None or not rest:
            expected = f"{task.name}:FILE, or {task.name}:TASK#N to generate N rows"
            raise InputError(f"{name}: expected {expected}")
        task.make(rest)  # refuses what it cannot make
        return Source(task, limit=limit, made=rest)
    hub_id = task.hf_dataset_id if use_hf else task.ms_dataset_id
    if hub_id is None:
        raise InputError(f"{name}: {task.name} is not on a hub; give a file, {task.name}:FILE")
    if rest and rest not in task.splits:
        splits = f"one of the splits {', '.join(task.splits)}"
        raise InputError(f"{name}: expected {task.name}:FILE, {_FILE}, or {splits}")
    return Source(task, None, rest or task.splits[0], limit, use_hf)


def guess_task(path: Path, columns: Mapping[str, str]) -> Task:
    """The task whose columns the first row of a file has; InputError where there is none.

    columns: as in `Source`.
    """
    line, row = next(with_columns(file_rows(path), columns), (0, None))
    if row is None:
        raise InputError(f"{path}: no rows")
    if "task" in row:
        return TASKS["mixed"]
    # Under their own names the columns of `code` are those of no other task.
    known = []
    for task in TASKS.values():
        if task.name == "code" or not (task.is_mixed or task.any_columns):
            known.append(task)
    fitting = [task for task in known if set(task.columns) <= row.keys()]
    if not fitting:
        likely = "choice" if {*CHOICES} & row.keys() else "math"
        if {*ONLY_TESTS} & row.keys():
            likely = "code"
        raise InputError(
            f"{path}, line {line}: no task has the columns {', '.join(row)}; name the task, as in {likely}:{path}"
        )
    # Variants of a task have the same columns; the shortest name is the plain task's. Ours come
    # before other packages'.
    return min(fitting, key=lambda task: (task.name in TASKS.owners, len(task.name)))


def with_columns(
    rows: Iterator[tuple[int, dict[str, Any]]], columns: Mapping[str, str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows with new names of columns. As in ms-swift, case does not matter, and names that a
    row lacks are ignored.

    InputError where two columns would get the same name.
    """
    if not columns:
        yield from rows
        return
    new_names = {name.casefold(): new for name, new in columns.items()}
    for line, row in rows:
        renamed: dict[str, Any] = {}
        for name, value in row.items():
            new = new_names.get(name.casefold(), name)
            if new in renamed:
                raise InputError(
                    f"line {line}: two columns would be named {new}; one of them is {name}",
                    "columns",
                )
            renamed[new] = value
        yield line, renamed


def file_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """`(line, row)` of a .jsonl or .csv file, `(number of the row, row)` of another."""
    if path.suffix == ".jsonl":
        yield from read_jsonl(path, LONGEST_ROW)
        return
    with opened(path):
        pass  # only to see that it is there
    require("datasets", extra="train", purpose=f"reading a {path.suffix} file")
    import datasets

    builder = path.suffix[1:]
    options = {"na_filter": False} if builder == "csv" else {}
    try:
        loaded = datasets.load_dataset(builder, data_files=str(path), split="train", **options)
    except (
        datasets.exceptions.DatasetGenerationError,
        ValueError,
        TypeError,
        StopIteration,
    ) as error:
        raise InputError(
            f"{path}: cannot be read as {builder} ({error.__cause__ or error})"
        ) from error
    lines = _lines_of_csv(path) if builder == "csv" else []
    if len(lines) != len(loaded):
        lines = list(range(1, len(loaded) + 1))
    yield from zip(lines, loaded, strict=True)


def _lines_of_csv(path: Path) -> list[int]:
    """The line on which each row of a .csv file begins: a quoted field may hold line breaks.

    Empty where Python's reader does not read the file as `datasets` does.
    """
    csv.field_size_limit(LONGEST_ROW)
    lines = []
    before = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            for row in reader:
                if row:  # not an empty line
                    lines.append(before + 1)
                before = reader.line_num
    except (csv.Error, UnicodeDecodeError):
        return []
    return lines[1:]  # without the line of the names


def _hub_rows(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    require("swift", extra="train", purpose=f"reading {source} from a hub")
    from swift.hub import get_hub

    task = source.task
    name = task.hf_dataset_id if source.use_hf else task.ms_dataset_id
    assert name is not None, source  # parse_source has checked it
    # As in ms-swift, a folder of that name is read instead.
    hub = get_hub(source.use_hf or Path(name).is_dir())
    try:
        loaded = hub.load_dataset(name, task.subset, source.split)
    except Exception as error:  # the hubs' libraries raise all kinds of errors
        where = "Hugging Face" if source.use_hf else "ModelScope"
        # What the libraries say without a network is long, and Chinese from ModelScope's.
        problem = f"{name} cannot be loaded from {where} ({why_no_hub(source.use_hf) or error})"
        raise InputError(f"{problem}; to read a file, use {task.name}:FILE") from error
    yield from enumerate(loaded, start=1)
