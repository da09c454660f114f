"""Where the rows of a dataset come from: a file, a folder, a hub or a generator.

A dataset is named as in ms-swift's `--dataset`: `math:FILE`, `math:FOLDER`, `math:openai/gsm8k`, or for
a task with a dataset of its own `gsm8k` or `gsm8k:test`, each with `#N` for the first N rows (ms-swift
draws N at random). `FILE` alone is enough where its columns tell the task. Rows of
`reasoning_gym:TEXT#N` are made.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

from swift_rlvr.tasks import TASKS, RowError, Task
from swift_rlvr.tasks.code import ONLY_TESTS
from swift_rlvr.tasks.columns import MESSAGES, PICTURES, numbered_pictures, parsed, value_at
from swift_rlvr.tasks.files import DATA_FILE, UnreadableRow, data_suffix, file_rows
from swift_rlvr.tasks.options import COLUMNS as CHOICES
from swift_rlvr.tasks.pictures import beside, parts_beside, pictures_of_parts
from swift_rlvr.tasks.row_check import RowCheck, allowed_share, check_columns
from swift_rlvr.tasks.task import columns_named
from swift_rlvr.utils.errors import InputError, did_you_mean, require
from swift_rlvr.utils.files import find_file
from swift_rlvr.utils.network import why_no_hub

# org/name, org/name/CONFIG
_HUB_ID = re.compile(r"([\w.-]+/[\w.-]+)(?:/([\w.-]+))?")
# As the hubs' loaders list the configurations or splits that there are: ['main', 'socratic'].
_LISTED = re.compile(r"""\[['"][^\[\]]*\]""")
# The configuration, and the split, that is taken where there are several and none is named.
_USUAL = ("main", "default", "all", "train")
# So many rows show whether a task fits a file without a task's name.
_GUESSED_FROM = 100


@dataclass(frozen=True)
class Source:
    """A dataset of `task`: the file or folder `path`, what the task makes of the text `made`, or the
    split `split` on a hub, of the task's own dataset there or of `hub_id`.
    """

    task: Task
    path: Path | None = None
    split: str | None = None
    limit: int | None = None  # how many of the first rows to read
    use_hf: bool = False  # the hub is Hugging Face, not ModelScope
    made: str | None = None
    # An id on a hub, or a folder in a hub's layout, and the configuration.
    hub_id: str | None = None
    subset: str | None = None
    # New names of columns by those in the file, as in ms-swift's `--columns`.
    columns: Mapping[str, str] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        hub_id = "/".join(filter(None, [self.hub_id, self.subset]))
        parts = [self.task.name, self.made, hub_id, self.split]
        where = self.path or ":".join(filter(None, parts))
        return str(where) if self.limit is None else f"{where}#{self.limit}"

    def rows(self, renamed: set[str] | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
        """`(line or number of the row, from 1, raw row)`. A row that cannot be read is an
        `UnreadableRow`, which the task refuses.

        renamed: gets those names of `columns` that a row has.

        InputError if the file cannot be opened, its first row lacks a column of the task, or
        there is none.
        """
        rows: Iterator[tuple[int, dict[str, Any]]]
        if self.made is not None:
            rows = enumerate(map(dict, self.task.make(self.made)), start=1)
        elif self.path is not None:
            rows = file_rows(self.path, self.split)
        else:
            rows = enumerate(undecoded(self.from_hub()), start=1)
        rows = with_columns(rows, self.columns, renamed)
        if self.path is not None:
            folder = self.path if self.path.is_dir() else self.path.parent
            rows = with_pictures_beside(rows, folder)
        checked = False
        has_rows = False
        for line, row in islice(rows, self.limit):
            has_rows = True
            if not checked and not isinstance(row, UnreadableRow):
                try:
                    check_columns(self.task, row)
                except ValueError as error:
                    raise InputError(f"{self}, line {line}: {error}") from error
                checked = True
            yield line, row
        if not has_rows:
            raise InputError(f"{self}: no rows; expected columns {', '.join(self.task.columns)}")

    def from_hub(self, **options: Any) -> Any:
        """The raw dataset of a hub, as ms-swift's loader of the hub gives it.

        Configuration and split may be left out if the dataset has only one, or one with a usual
        name.

        options: as the hub's `load_dataset` takes them.
        """
        require("swift", extra="train", purpose=f"reading {self} from a hub")
        from swift.hub import get_hub

        name, subset = self.on_hub
        # As in ms-swift, a folder of that name is read instead.
        hub = get_hub(self.use_hf or Path(name).is_dir())
        split = self.split or "train"
        for _ in range(3):  # the names as they are, another configuration, another split
            try:
                loaded = hub.load_dataset(name, subset, split, **options)
                # ModelScope's own class around it
                return getattr(loaded, "_hf_ds", loaded)
            except Exception as error:  # the hubs' libraries raise all kinds of errors
                problem = error
            other = _named_instead(str(problem), subset, split)
            if other is None:
                break
            if other[0] != subset and self.subset or other[1] != split and self.split:
                break  # it was named, and there is none of that name
            subset, split = other

        where = "Hugging Face" if self.use_hf else "ModelScope"
        # What the libraries say without a network is long, and Chinese from ModelScope's.
        answered = Path(name).is_dir() or _LISTED.search(str(problem))
        why = None if answered else why_no_hub(self.use_hf)
        text = f"{name} cannot be loaded from {where} ({why or problem})"
        task = self.task.name
        remedy = f"to read a file, use {task}:FILE; a configuration is {task}:{name}/CONFIGURATION"
        raise InputError(f"{text}; {remedy}") from problem

    @property
    def on_hub(self) -> tuple[str, str]:
        """The id on the hub, or the folder, and the configuration: where none is named, that of the task
        whose dataset it is.
        """
        task = self.task
        name = self.hub_id or (task.hf_dataset_id if self.use_hf else task.ms_dataset_id)
        assert name is not None, self  # parse_source has checked it
        if self.subset:
            return name, self.subset
        for other in TASKS.values():
            if name in (other.hf_dataset_id, other.ms_dataset_id):
                return name, other.subset
        return name, task.subset

    def usable_rows(
        self, renamed: set[str] | None = None
    ) -> tuple[list[tuple[int, dict[str, Any]]], str]:
        """The rows that the task can use, as in `rows`, and a text that names the others; empty
        if there are none.

        InputError as in `rows`, and where too many cannot be used (`RowCheck.excess`).
        """
        check = RowCheck()
        usable = []
        for line, row in self.rows(renamed):
            if check.prepared(self.task, row, line) is not None:
                usable.append((line, row))
        if not check.errors:
            return usable, ""
        problems = check.describe(str(self))
        excess = check.excess(allowed_share(self.task))
        if excess:
            raise InputError(f"{problems}\n{excess}")
        return usable, problems

    def row(self, number: int) -> tuple[int, dict[str, Any]]:
        """`(line, raw row)` of row `number`, from 1; InputError if there is no such row."""
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
        source = Source(TASKS[first], limit=limit, use_hf=use_hf, columns=new_names)
        return _named_source(name, source, rest)

    path = Path(text).expanduser()
    if colon and data_suffix(path) and not path.exists():
        known = did_you_mean(first, TASKS) or f"expected one of {', '.join(TASKS)}"
        raise InputError(f"{name}: there is no dataset {first!r}; {known}")
    _refuse_unreadable(path)
    if not data_suffix(path) and not path.is_dir():
        raise InputError(
            f"{name}: expected {DATA_FILE}, NAME:FILE or NAME; NAME is one of {', '.join(TASKS)}"
        )
    return Source(guess_task(path, new_names), path, None, limit, use_hf, columns=new_names)


def parse_columns(value: Any) -> dict[str, str]:
    """New names of columns by those in the file, from ms-swift's `--columns`: an object, or one in
    JSON; empty for None and "". A name with dots is the path of a value within a column, such as
    `extra_info.answer`. InputError for anything else.

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


def _named_source(name: str, source: Source, rest: str) -> Source:
    """The dataset of a task: what stands after its name and a colon is a file, a folder, an id on a hub,
    a split or, for rows that are made, what to make.
    """
    task = source.task
    if rest and data_suffix(Path(rest)):
        return replace(source, path=Path(find_file(rest)).expanduser())
    _refuse_unreadable(Path(rest))
    if task.is_made:
        if source.limit is None or not rest:
            expected = f"{task.name}:FILE, or {task.name}:TASK#N to generate N rows"
            raise InputError(f"{name}: expected {expected}")
        task.make(rest)  # refuses what it cannot make
        return replace(source, made=rest)

    place, _, split = rest.partition(":")
    folder = Path(find_file(place)).expanduser() if place else None
    if folder is not None and folder.is_dir():
        _refuse_unreadable(folder)
        source = replace(source, split=split or None)
        if _has_hub_layout(folder):
            return replace(source, hub_id=str(folder))
        return replace(source, path=folder)

    # An id, or a split of the task's own dataset
    match = _HUB_ID.fullmatch(place)
    if match:
        hub_id, subset = match.groups()
        return replace(source, split=split or None, hub_id=hub_id, subset=subset)
    own_id = task.hf_dataset_id if source.use_hf else task.ms_dataset_id
    if own_id is None:
        expected = f"{task.name}:FILE or {task.name}:ID, such as {task.name}:openai/gsm8k"
        raise InputError(f"{name}: {task.name} is not on a hub; give {expected}")
    if rest and rest not in task.splits:
        splits = f"one of the splits {', '.join(task.splits)}"
        raise InputError(f"{name}: expected {task.name}:FILE, {DATA_FILE}, or {splits}")
    return replace(source, split=rest or task.splits[0])


def _refuse_unreadable(path: Path) -> None:
    """InputError for what has rows that cannot be read: a workbook, or what `save_to_disk` of the
    package datasets has written.
    """
    if (path / "state.json").is_file() or (path / "dataset_dict.json").is_file():
        load = f'datasets.load_from_disk("{path}")'
        load += "" if (path / "state.json").is_file() else '["train"]'
        raise InputError(
            f"{path}: what save_to_disk has written cannot be read; save its rows as {DATA_FILE}, "
            f'such as by {load}.to_parquet("rows.parquet")'
        )
    if path.is_file() and not data_suffix(path):
        kind = f"a {path.suffix} file" if path.suffix else "a file without a suffix"
        raise InputError(f"{path}: {kind} cannot be read; save its rows as {DATA_FILE}")


def _has_hub_layout(folder: Path) -> bool:
    """Whether a folder is laid out as on a hub: with a card, or its files in folders."""
    if (folder / "README.md").exists():
        return True
    has_files = any(data_suffix(path) for path in folder.iterdir())
    return not has_files and any(path.is_dir() for path in folder.iterdir())


def _named_instead(problem: str, subset: str, split: str) -> tuple[str, str] | None:
    """The configuration and the split to ask for, where a hub's loader says which there are; None
    if it does not, or leaves the choice open.
    """
    listed = _LISTED.findall(problem)
    try:
        names = ast.literal_eval(listed[-1]) if listed else []
    except (ValueError, SyntaxError):
        return None
    usual = [name for name in _USUAL if name in names]
    if len(names) == 1:
        usual = names
    if not usual or usual[0] in (subset, split):
        return None
    return (subset, usual[0]) if "split" in problem.casefold() else (usual[0], split)


def undecoded(dataset: Any) -> Any:
    """A dataset of Hugging Face's library, with its images and sounds left encoded."""
    for name, feature in (getattr(dataset, "features", None) or {}).items():
        # A list of images is decoded too.
        inner = getattr(feature, "feature", feature)
        if getattr(inner, "decode", False):
            plain = type(inner)(decode=False)
            new = plain if inner is feature else type(feature)(plain)
            dataset = dataset.cast_column(name, new)
    return dataset


def with_pictures_beside(
    rows: Iterator[tuple[int, dict[str, Any]]], folder: Path
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows with the paths of pictures that are in the folder of the data file."""
    for line, row in rows:
        if isinstance(row, UnreadableRow):
            yield line, row
            continue
        found = {}
        for name in (*columns_named(PICTURES, row), *numbered_pictures(row)):
            found[name] = beside(folder, parsed(value_at(row, name)))
        for name in columns_named((*MESSAGES, "prompt"), row):
            value = parsed(value_at(row, name))
            if pictures_of_parts(value):
                found[name] = parts_beside(folder, value)
        yield line, {**row, **found}


def guess_task(path: Path, columns: Mapping[str, str]) -> Task:
    """The task whose columns the rows of a file have and that can use most of them; InputError
    if there is none.

    columns: as in `Source`.
    """
    rows = []
    for _, row in islice(with_columns(file_rows(path), columns), _GUESSED_FROM):
        if not isinstance(row, UnreadableRow):
            rows.append(row)
    if not rows:
        raise InputError(f"{path}: no rows")
    first = rows[0]
    if "task" in first:
        return TASKS["mixed"]
    fitting = [task for task in TASKS.values() if _fits(task, rows)]
    if not fitting:
        choices = [value_at(first, name) for name in columns_named(CHOICES, first)]
        likely = "choice" if any(choices) else "math"
        if columns_named(ONLY_TESTS, first):
            likely = "code"
        raise InputError(
            f"{path}: no task is sure to fit the columns {', '.join(first)}; write {likely}:{path}"
        )
    # Variants of a task have the same columns; the shortest name is the plain task's. Ours come
    # before other packages'.
    return min(fitting, key=lambda task: (task.name in TASKS.owners, len(task.name)))


def _fits(task: Task, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether rows have the columns of a task, and it can use most of them."""
    # Under their own names the columns of `code` are those of no other task.
    is_known = task.name == "code" or not (task.is_mixed or task.any_columns)
    if not is_known or not set(task.columns) <= rows[0].keys():
        return False
    # Other datasets have columns of these names too, with other answers.
    check = RowCheck()
    for row in rows:
        check.prepared(task, row, 0)
    return 2 * check.usable >= check.total


def with_columns(
    rows: Iterator[tuple[int, dict[str, Any]]],
    columns: Mapping[str, str],
    renamed: set[str] | None = None,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows with new names of columns, and with decimals, as Parquet has them, as numbers.

    As in ms-swift, case does not matter, and names that a row lacks are ignored. A value within a
    column, which a name with dots leads to, also replaces a column of its new name.

    renamed: gets those names of `columns` that a row has.

    InputError if two columns would get the same name.
    """
    for line, row in rows:
        if isinstance(row, UnreadableRow):
            yield line, row
            continue
        for name, value in row.items():
            if isinstance(value, Decimal):
                is_whole = value == value.to_integral_value()
                row = {**row, name: int(value) if is_whole else str(value)}
        if columns:
            row, found = _with_new_names(row, columns, line)
            if renamed is not None:
                renamed |= found
        yield line, row


def _with_new_names(
    row: dict[str, Any], columns: Mapping[str, str], line: int
) -> tuple[dict[str, Any], set[str]]:
    """A row with new names of columns, and those names of `columns` that it has."""
    names = {name.casefold(): name for name in columns}
    found: set[str] = set()
    new_row: dict[str, Any] = {}
    for name, value in row.items():
        known = names.get(name.casefold())
        if known is not None:
            found.add(known)
        new = name if known is None else columns[known]
        if new in new_row:
            raise InputError(
                f"line {line}: two columns would be named {new}; one of them is {name}", "columns"
            )
        new_row[new] = value
    for path, new in columns.items():
        value = value_at(row, path) if "." in path else None
        if value is None:
            continue
        found.add(path)
        if path not in row:
            new_row[new] = value
    return new_row, found
