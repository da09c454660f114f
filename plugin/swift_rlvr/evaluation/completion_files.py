"""Files of completions: which there are, how each is read, and the columns that a verifier needs of
a row, whatever the file calls them.

`swift_rlvr.evaluation.completion_forms` describes the lines. The gold may have any name that is usual
in a dataset: a row without the columns of its verifier is read as `math:FILE` or `choice:FILE` would
read it. `score`, `compare` and `report` read files in this way.
"""

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from swift_rlvr.evaluation.completion_forms import (
    COMPLETION_KEYS,
    GOLDS_ELSEWHERE,
    Item,
    NoCompletionError,
    is_completion,
    is_lm_eval_sample,
    items_of,
    no_completion,
    read_object,
    with_columns_from_prompt,
)
from swift_rlvr.evaluation.grade_samples import optional_columns
from swift_rlvr.runs.folder import COMPLETIONS, RECORDS
from swift_rlvr.runs.records import is_record
from swift_rlvr.tasks import TASKS, RowError, Task
from swift_rlvr.tasks.columns import value_at
from swift_rlvr.tasks.files import COMPRESSED, UnreadableRow, data_suffix, file_rows
from swift_rlvr.tasks.instructions import has_constraints
from swift_rlvr.tasks.options import COLUMNS as CHOICES
from swift_rlvr.tasks.options import choices_in_columns
from swift_rlvr.tasks.sources import Source, with_columns
from swift_rlvr.tasks.task import columns_named, folded_name
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import LineError, opened

# Bytes in a block: few enough for the cores to share a file, enough to be worth handing over.
_BLOCK_SIZE = 1 << 18
# Lines of a file by which its rewards are chosen.
_FIRST_LINES = 1000
# Files of a run or an evaluation, of ms-swift, lm-evaluation-harness and TRL, which writes one a step, as
# verl does under names that say nothing.
_PATTERNS_OF_TOOLS = (RECORDS, COMPLETIONS, "samples_*.jsonl", "completions_*.parquet")
# What holds an object a line, whatever it is called; other suffixes are read as tables.
_OF_LINES = ("", ".jsonl", ".txt")
# Columns that tell no task: rows of many have a right answer under these names.
_PLAIN_GOLDS = {"solution", "answer"}


class Block(NamedTuple):
    """Whole lines of a file, the first of which has the number `first_line`.

    problem: why it holds no row; empty if it does.
    """

    file: str
    first_line: int
    text: bytes
    problem: str = ""


@dataclass(frozen=True)
class Reading:
    """How the lines of a file are read.

    task: the name of the task that reads the gold; empty if the columns of each row tell it.
    columns: new names of columns, as in `parse_columns`.
    filter: of a file of lm-evaluation-harness, which repeats a completion for each of its filters,
        the one to read.
    id_column, golds: for completions without a gold, the columns of their verifier, by the value of
        the completions' column `id_column`.
    """

    task: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    filter: str = ""
    id_column: str = ""
    golds: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    def items(self, line: bytes | str) -> list[Item]:
        """The completions of one line, none if it repeats those of another; LineError if it
        has none or is malformed.
        """
        row = read_object(line)
        if self.filter and row.get("filter") != self.filter:
            return []
        items = items_of(renamed_row(row, self.columns))
        if not self.golds:
            return items
        # Of the same names those of the dataset count, which was named for its right answers.
        with_golds = []
        for item in items:
            key = item.row.get(self.id_column)
            if str(key) not in self.golds:
                raise LineError(f"no row of the dataset has the {self.id_column} {key!r:.60}")
            with_golds.append(item._replace(row={**item.row, **self.golds[str(key)]}))
        return with_golds

    def filled(self, row: dict[str, Any]) -> dict[str, Any]:
        """The row with the columns of its verifier, where it lacks them and has what they are made
        of: a prompt that tells them, or a gold under another name; else the row itself.

        LineError if its gold cannot be read.
        """
        row = with_columns_from_prompt(row)
        task = self._task_of(row)
        # What the verifier reads is there: its own names win over whatever else the row has.
        if set(task.reward_columns) <= row.keys():
            return row
        raw = _without_completion(row)
        found = task.find_columns(raw)
        missing = [name for name in task.columns if not found.get(name)]
        if task.any_columns and missing == ["problem"]:
            # Only the gold is read here, and a file of completions may lack the question.
            raw["problem"] = "?"
        elif missing:
            return row
        try:
            prepared = task.preprocess(raw)
        except RowError as error:
            raise LineError(str(error)) from error
        return {**row, **_verified_columns(task.of(prepared), prepared)}

    def gold_columns(self, row: Mapping[str, Any]) -> list[str]:
        """The columns that may hold the gold of a row, the likeliest first. The list is empty if the row
        has the columns of its verifier.
        """
        task = self._task_of(row)
        if set(task.reward_columns) <= row.keys():
            return []
        columns = list(task.find_columns(_without_completion(row)).get("answer", ()))
        # `answer` is ours for what other tools call so.
        others = [name for name in GOLDS_ELSEWHERE if row.get(name) is row.get("answer")]
        # So does a sample of lm-evaluation-harness, whose gold is `target`.
        if self.filter:
            others = ["target"]
        return [*others, *columns[1:]] if others and columns[:1] == ["answer"] else columns

    def _task_of(self, row: Mapping[str, Any]) -> Task:
        task = TASKS[self.task] if self.task else task_of(row)
        # Each row of a mixed file names its own task.
        return task_of(row) if task.is_mixed else task


def renamed_row(
    row: dict[str, Any], columns: Mapping[str, str], renamed: set[str] | None = None
) -> dict[str, Any]:
    """The row of a file with new names of its columns; LineError if two would get the same name.

    renamed: gets those names of `columns` that the row has.
    """
    # Records have names of our own, whatever the columns of the dataset were called.
    if not columns or is_record(row):
        return row
    try:
        ((_, row),) = with_columns(iter([(0, row)]), columns, renamed)
    except InputError as error:
        # with_columns names a line, which the caller knows and it does not.
        raise LineError(f"--columns: {error.problem.partition(': ')[2]}") from error
    return row


def _without_completion(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row without its completion, which must not be taken for the gold: datasets keep their gold
    under the same names.
    """
    completions = columns_named(COMPLETION_KEYS, row)
    return {name: row[name] for name in row if name not in completions}


def _verified_columns(task: Task, prepared: Mapping[str, Any]) -> dict[str, Any]:
    """What the verifier reads of a preprocessed row beside the question, and its task."""
    names = (*task.reward_columns, *optional_columns(task), "task")
    return {name: prepared[name] for name in names if name in prepared}


def task_of(row: Mapping[str, Any]) -> Task:
    """The task that a row names, else the one whose columns it has: a row with a question and an
    answer is of `choice` where it has choices, and else of `math`.
    """
    name = row.get("task")
    if isinstance(name, str) and name in TASKS:
        return TASKS[name]
    # Countdown's nums and target, the tests of code, the calls of tool_calls.
    for task in TASKS.values():
        verified = set(task.reward_columns)
        if verified - _PLAIN_GOLDS and verified <= row.keys():
            return task
    if has_constraints(row):
        return TASKS["instructions"]
    # Not where the right choice and the wrong ones have columns of their own: the order in which the
    # model has seen them is unknown.
    has_choices = any(value_at(row, name) for name in columns_named(CHOICES, row))
    if has_choices or choices_in_columns(row)[0]:
        return TASKS["choice"]
    return TASKS["math"]


def find_files(
    names: Iterable[str | Path],
    columns: Mapping[str, str] | None = None,
    answered: Source | None = None,
) -> dict[str, Reading]:
    """How each file is read, by its path. A name is a file, a folder with such files, or NAME:FILE
    with the task that reads the gold.

    answered: the dataset with the gold, where the completions have none.

    InputError for a folder without completions, and where the dataset has not the id of the first
    one.
    """
    readings: dict[str, Reading] = {}
    for name in names:
        task, place = split_name(name)
        for path in map(str, _files_at(place, Reading(columns=columns or {}))):
            first = first_object(path)
            # Such a file is JSON too, and would be called a row without a completion.
            if {"before", "after", "different_settings"} <= first.keys():
                raise InputError(
                    f"{path}: a comparison, written by `swift-rlvr compare --out`; give one of the two "
                    "evaluations that it compares"
                )
            filter_of_first = str(first.get("filter") or "") if is_lm_eval_sample(first) else ""
            readings[path] = Reading(task, columns or {}, filter_of_first)
    if answered is not None:
        golds = _Golds(answered)
        for path, reading in readings.items():
            readings[path] = golds.join(path, reading)
    return readings


def split_name(name: str | Path) -> tuple[str, Path]:
    """The task that stands before a file or folder, and the file or folder.

    >>> split_name("qa:out/x.jsonl"), split_name("out/x.jsonl")
    (('qa', PosixPath('out/x.jsonl')), ('', PosixPath('out/x.jsonl')))
    """
    task, _, rest = str(name).partition(":")
    # The name of a file may have a colon itself.
    if not rest or task not in TASKS or Path(name).exists():
        return "", Path(name).expanduser()
    return task, Path(rest).expanduser()


def _files_at(path: Path, reading: Reading) -> list[Path]:
    """The file itself, or those in a folder that have completions where they are read so."""
    if path.exists() and not path.is_dir() and not path.is_file():
        problem = "a pipe can be read only once, and completions are read twice"
        raise InputError(f"{path}: {problem}; write them to a file first")
    if not path.is_dir():
        return [path]

    def by_number(file: Path) -> list[tuple[int, str]]:
        """2.jsonl comes before 10.jsonl."""
        key = []
        for part in re.findall(r"[0-9]{1,18}|[^0-9]+", file.name):
            key.append((int(part), "") if part.isdigit() else (-1, part))
        return key

    # The first pattern that finds any: beside its completions a tool leaves logs and settings in .jsonl.
    for pattern in (*_PATTERNS_OF_TOOLS, "*.jsonl"):
        files = []
        for file in path.glob(pattern):
            # The first line tells a dataset.
            _, first = next(read_items(str(file), reading), (0, NoCompletionError()))
            if not isinstance(first, NoCompletionError):
                files.append(file)
        if files:
            return sorted(files, key=by_number)
    expected = f"{RECORDS}, other .jsonl files or TRL's completions_*.parquet"
    raise InputError(f"{path}: expected a folder with {expected}, or name the files in it")


def left_out_files(names: Iterable[str | Path], readings: Mapping[str, Reading]) -> list[Path]:
    """The data files in the folders among these names that are not read.

    Of a folder of a known tool there are none: what is beside its completions is no completion.
    """
    left_out = []
    for name in names:
        _, folder = split_name(name)
        if not folder.is_dir():
            continue
        unread = []
        for file in sorted(folder.iterdir()):
            if not file.is_file() or not data_suffix(file):
                continue
            if any(map(file.match, _PATTERNS_OF_TOOLS)):
                break
            if str(file) not in readings:
                unread.append(file)
        else:
            left_out += unread
    return left_out


def first_object(path: str) -> dict[str, Any]:
    """The object on the first line that holds one; empty if none does."""
    for line in _lines(path):
        with suppress(LineError):
            return read_object(line)
    return {}


def _lines(path: str) -> Iterator[bytes]:
    """The lines of a file, whatever they hold."""
    for block in read_blocks([path]):
        yield from block.text.splitlines()


class _Golds:
    """The rows of a dataset with what their verifiers read, to be found by an id."""

    def __init__(self, source: Source):
        self.source = source
        self.rows: list[tuple[dict[str, Any], dict[str, Any]]] = []
        usable, _ = source.usable_rows()
        for _, raw in usable:
            prepared = source.task.preprocess(raw)
            self.rows.append((raw, _verified_columns(source.task.of(raw), prepared)))
        # Without a single usable row usable_rows has raised.
        first, _ = self.rows[0]
        self.id_columns = list(filter(is_id, first))

    def join(self, path: str, reading: Reading) -> Reading:
        """The reading of a file that finds the golds of its completions."""
        # The first completion decides; a later one without its row is an error of its line, see `items`.
        _, _, first = next(first_rows({path: reading}))
        ids = ids_in(first)
        repeated = ""
        for id_column in ids:
            # The column of the same name comes first.
            for name in sorted(self.id_columns, key=lambda name: name != id_column):
                golds = {str(raw.get(name)): gold for raw, gold in self.rows}
                if str(first[id_column]) not in golds:
                    continue
                # An id tells all rows apart.
                if len(golds) == len(self.rows):
                    return replace(reading, id_column=id_column, golds=golds)
                repeated = repeated or name
        problem = f"its column {repeated} has the same value in several rows"
        if not repeated:
            seen = ", ".join(f"{name} {first[name]!r:.40}" for name in ids) or "no id"
            problem = f"no row belongs to the first completion in {path}, which has {seen}"
        raise InputError(
            f"{self.source}: {problem}; expected a column such as id or custom_id with the same "
            "values, each once",
            "dataset",
        )


def is_id(name: str) -> bool:
    """Whether a column is called as one with an id: custom_id, uid, index."""
    folded = folded_name(name)
    return folded.endswith("id") or folded in ("index", "idx", "key")


def ids_in(row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a row that name it."""
    ids = {}
    for name, value in row.items():
        # By their names alone `valid: true` and a grid of numbers would be ids, and the rows that have
        # the same there be taken for one.
        if is_id(name) and isinstance(value, (str, int, float)) and not isinstance(value, bool):
            ids[name] = value
    return ids


def read_blocks(files: Iterable[str]) -> Iterator[Block]:
    """The files in blocks of whole lines, in order. Each row of a .json, .csv or .parquet file is a
    line.
    """
    for path in files:
        if data_suffix(Path(path)) not in _OF_LINES:
            for number, row in file_rows(Path(path)):
                if isinstance(row, UnreadableRow):
                    yield Block(path, number, b"", row.problem)
                else:
                    # Parquet has dates and decimals, which JSON lacks.
                    yield Block(path, number, json.dumps(row, default=str).encode())
            continue
        with opened(path) as file:
            number = 1
            is_compressed = path.lower().endswith(COMPRESSED)
            unpacked: Any = gzip.GzipFile(fileobj=file) if is_compressed else file
            try:
                while text := unpacked.read(_BLOCK_SIZE):
                    # To the end of a line: a block is graded alone, in another process.
                    text += unpacked.readline()
                    yield Block(path, number, text)
                    number += text.count(b"\n")
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise InputError(f"{path}: cannot be read ({error})") from error


def read_block(block: Block, reading: Reading) -> Iterator[tuple[int, Item | LineError]]:
    """Each completion of a block with the number of its line, or what is wrong with a line."""
    if block.problem:
        yield block.first_line, LineError(block.problem)
    for number, line in enumerate(block.text.split(b"\n"), start=block.first_line):
        if not line or line.isspace():
            continue
        try:
            items = reading.items(line)
        except LineError as error:
            yield number, error
            continue
        for item in items:
            yield number, item


def read_items(path: str, reading: Reading) -> Iterator[tuple[int, Item | LineError]]:
    """The same of all blocks of a file."""
    for block in read_blocks([path]):
        yield from read_block(block, reading)


def first_rows(readings: Mapping[str, Reading]) -> Iterator[tuple[str, Reading, dict[str, Any]]]:
    """The completions in the first lines of each file: file and line, the reading, and the columns.

    InputError if there is none, with what is wrong with the first lines.
    """
    found = False
    problems: list[str] = []
    for path, reading in readings.items():
        for number, item in islice(read_items(path, reading), _FIRST_LINES):
            where = f"{path}, line {number}"
            if isinstance(item, LineError):
                problems.append(f"{where}: {item}")
            elif is_completion(item.completion):
                found = True
                yield where, reading, item.row
            else:
                problems.append(f"{where}: {no_completion(item.completion)}")
    if not found:
        raise nothing_usable(problems, readings)


def absent_columns(readings: Mapping[str, Reading], answered: Source | None = None) -> str:
    """Names those columns that are to be renamed and that none of the first rows has, of the files or
    of the dataset with their golds; empty if there is none.

    A row may lack a column that others have, so this is no error.
    """
    # They are the same for all files.
    columns = next(iter(readings.values())).columns
    if not columns:
        return ""
    renamed: set[str] = set()
    has_rows = False
    for path in readings:
        for line in islice(_lines(path), _FIRST_LINES):
            # Most often the first row has them all.
            if renamed == columns.keys():
                return ""
            with suppress(LineError):
                row = read_object(line)
                has_rows |= not is_record(row)
                renamed_row(row, columns, renamed)
    if answered is not None:
        # Only for what reading them puts into `renamed`.
        list(islice(answered.rows(renamed), _FIRST_LINES))
    absent = [name for name in columns if name not in renamed]
    if not absent or not has_rows:
        return ""
    return f"none of the first rows has the column {', '.join(absent)}, which --columns renames"


def nothing_usable(problems: Sequence[str], files: Iterable[str]) -> InputError:
    """The error for files without a completion that can be graded; a problem that many lines have
    is named once.
    """
    # "x.jsonl, line 3: no completion: ...", of which only the place differs from line to line.
    first_lines: dict[str, str] = {}
    for problem in problems:
        where, _, text = problem.partition(": ")
        first_lines.setdefault(text, where)
    named = [f"{where}: {text}" for text, where in first_lines.items()]
    if named:
        return InputError(f"no line can be graded: {'; '.join(named[:3])}")
    whys = []
    for file in files:
        suffix = data_suffix(Path(file))
        why = "there is no row"
        if not Path(file).stat().st_size:
            why = "the file is empty"
        elif suffix in (".csv", ".tsv"):
            why = "there is a header and no row"
        elif suffix in _OF_LINES:
            why = "all lines are empty"
        whys.append(f"{file}: no completions: {why}")
    return InputError("; ".join(whys))
