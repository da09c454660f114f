"""The rows of a file, or of a folder of files: JSON, JSONL, CSV, Parquet or text, also compressed.

Nothing is needed but Python, and for Parquet pyarrow. A row that cannot be read does not end the
reading: it is an `UnreadableRow`, which every task refuses and counts.
"""

import csv
import gzip
import io
import json
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

from swift_rlvr.tasks.task import RowError
from swift_rlvr.utils.errors import InputError, require
from swift_rlvr.utils.jsonl import LONGEST_ROW, LineError, opened, parse_lines

SUFFIXES = (".jsonl", ".json", ".parquet", ".csv", ".tsv", ".txt")
# A compressed file has this after its suffix.
COMPRESSED = ".gz"
DATA_FILE = f"a file ending in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, also with {COMPRESSED}"
# The splits in the names of a folder's files, the one that is read first.
SPLITS = ("train", "test", "validation", "valid", "dev", "eval")
_DELIMITERS = ",;\t|"
_WHOLE_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_NUMBER = re.compile(r"[-+]?[\d.]+")
# A quoted text is rows if this share of its lines have as many delimiters as the first line.
_MOST_LINES = 0.9
# Rows of a Parquet file in memory at a time.
_BATCH = 1000

Numbered = Iterator[tuple[int, dict[str, Any]]]


class UnreadableRow(dict[str, Any]):
    """What stands for a row that cannot be read: to look into it raises a RowError that says why."""

    def __init__(self, problem: str, label: str):
        super().__init__()
        self.problem = problem
        self.label = label

    def _refuse(self, *arguments: Any) -> NoReturn:
        raise RowError("row", self.problem, self.label)

    __getitem__ = __contains__ = __iter__ = __len__ = _refuse
    get = keys = values = items = _refuse


def data_suffix(path: Path) -> str:
    """The suffix that tells how to read a file, without that of a compression; empty if it is
    no data file.

    >>> data_suffix(Path("a.jsonl")), data_suffix(Path("a.csv.gz")), data_suffix(Path("a.tar.gz"))
    ('.jsonl', '.csv', '')
    """
    name = path.name.lower().removesuffix(COMPRESSED)
    suffix = Path(name).suffix
    return suffix if suffix in SUFFIXES else ""


def folder_files(folder: Path, split: str | None = None) -> list[Path]:
    """The data files of a folder, those of one split where their names say which; InputError where
    there are none.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file() and data_suffix(path))
    by_split = {}
    for name in SPLITS:
        # As a word of the file's name: train-00000.parquet, my_test.jsonl.
        word = re.compile(rf"(?:^|[^a-z0-9]){name}(?:[^a-z0-9]|$)")
        by_split[name] = [path for path in files if word.search(path.name.lower())]
    if split is not None:
        chosen = by_split.get(split, [])
    else:
        chosen = next(filter(None, by_split.values()), files)
    if not chosen:
        of_split = f" of the split {split}" if split else ""
        raise InputError(f"{folder}: no data files{of_split} in this folder; expected {DATA_FILE}")
    return chosen


def left_out_files(folder: Path, split: str | None = None) -> list[Path]:
    """What else is in a folder whose `folder_files` are read, but for hidden files."""
    read = folder_files(folder, split)
    others = [path for path in folder.iterdir() if path not in read]
    return sorted(path for path in others if not path.name.startswith("."))


def file_rows(path: Path, split: str | None = None) -> Numbered:
    """`(line, row)` of each row of a file with lines, `(number of the row, row)` of another, from 1;
    of a folder the number of the row in all its files.

    split: of a folder, as in `folder_files`.

    Raises:
        InputError: the file cannot be opened, or is not what its suffix says.
    """
    if path.is_dir():
        rows = chain.from_iterable(map(file_rows, folder_files(path, split)))
        for number, (_, row) in enumerate(rows, start=1):
            yield number, row
        return
    suffix = data_suffix(path)
    if suffix == ".parquet":
        yield from _parquet_rows(path)
        return
    with opened(path) as file:
        unpacked: Any = file
        if path.name.lower().endswith(COMPRESSED):
            unpacked = gzip.GzipFile(fileobj=file)
        try:
            if suffix == ".jsonl":
                yield from _json_lines(path, unpacked)
            elif suffix == ".json":
                yield from _json_rows(path, unpacked)
            elif suffix == ".txt":
                yield from _text_rows(path, unpacked)
            else:
                yield from _csv_rows(path, unpacked)
        except (OSError, EOFError, zlib.error) as error:  # of the compression
            raise InputError(f"{path}: cannot be read ({error})") from error


def _json_lines(path: Path, file: BinaryIO) -> Numbered:
    for number, row in parse_lines(path, file, LONGEST_ROW):
        yield (
            number,
            UnreadableRow(str(row), "not JSON") if isinstance(row, LineError) else _checked(row),
        )


def _checked(row: Any) -> dict[str, Any]:
    r"""The row, or an `UnreadableRow` for what is no object, or has half a character such as `\ud83d`
    alone, which no trainer can write.
    """
    if not isinstance(row, dict):
        return UnreadableRow("expected an object", "not JSON")
    try:
        json.dumps(row, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        half = ascii(error.object[error.start])[1:-1]
        return UnreadableRow(rf"half of a character: {half} without its other half", "not Unicode")
    return row


def _json_rows(path: Path, file: BinaryIO) -> Numbered:
    """The rows of a .json file: a list of objects, an object that holds one, columns, or JSON Lines."""
    text = file.read()
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        # Many a file of JSON Lines is called .json; of one list that is cut off the error is told.
        lines = text.strip().splitlines()
        if len(lines) < 2 or not lines[0].rstrip().endswith(b"}"):
            raise InputError(f"{path}: cannot be read as json ({error})") from error
        yield from _json_lines(path, io.BytesIO(text))
        return
    if isinstance(value, dict):
        # pandas writes rows as {"column": {"0": ...}}, others as {"id": {...}}: they would be one row.
        keys = [held.keys() if isinstance(held, dict) else None for held in value.values()]
        if len(keys) > 1 and keys[0] and all(each == keys[0] for each in keys):
            problem = f"got one object of {len(keys)} objects with the same keys"
            remedy = "pandas writes a list with orient='records'"
            raise InputError(
                f"{path}: cannot be read as json (expected a list of objects, one a row; {problem}; {remedy})"
            )
        lists = [held for held in value.values() if isinstance(held, list)]
        lengths = {len(held) for held in lists}
        if len(lists) == len(value) > 1 and len(lengths) == 1:
            # A table by its columns, as Hugging Face's Dataset.to_dict gives it.
            value = [dict(zip(value, values, strict=True)) for values in zip(*lists, strict=True)]
        else:
            # SQuAD's own files, and what dashboards export: {"version": ..., "data": [...]}.
            are_objects = len(lists) == 1 and all(isinstance(row, dict) for row in lists[0])
            value = lists[0] if are_objects and lists[0] else [value]
    if not isinstance(value, list):
        raise InputError(f"{path}: cannot be read as json (expected a list of objects)")
    for number, row in enumerate(value, start=1):
        yield number, _checked(row)


def _csv_rows(path: Path, file: BinaryIO) -> Numbered:
    """The rows of a CSV file, whose delimiter is the one that its first line has most of.

    A quote that takes in the rows after it makes each of their lines an `UnreadableRow`.
    """
    text = io.TextIOWrapper(file, encoding="utf-8-sig", errors="strict", newline="")
    csv.field_size_limit(LONGEST_ROW)
    lines: list[str] = []  # of the record that is read

    def noted(text: Iterable[str]) -> Iterator[str]:
        for line in text:
            lines.append(line)
            yield line

    skipped = 0  # the lines before the names of the columns
    before = 0  # the lines before that record
    try:
        header = text.readline(LONGEST_ROW)
        # Excel takes a first line `sep=;` for the delimiter of the others.
        stated = re.fullmatch(r"sep=(.)\s*", header)
        if stated is not None:
            skipped = 1
            header = text.readline(LONGEST_ROW)
        outside_quotes = re.sub(r'"[^"]*"', "", header)
        delimiter = stated[1] if stated else max(_DELIMITERS, key=outside_quotes.count)
        reader = csv.reader(noted(chain([header], text)), delimiter=delimiter, strict=False)
        names = next(reader, [])
        if _quotes_rows(lines, delimiter, names):
            raise InputError(f"{path}: a quote that opens in the first line is not closed there")
        # The row is a dict, in which the second one would take the place of the first.
        repeated = [name for name, count in Counter(names).items() if name and count > 1]
        if repeated:
            raise InputError(
                f"{path}: the first line names two columns {repeated[0]!r}; rename one"
            )
        before = reader.line_num + skipped
        lines.clear()
        for values in reader:
            last = reader.line_num + skipped
            yield from _Record(before + 1, last, lines, values).rows(names, delimiter)
            before = last
            lines.clear()
    except csv.Error as error:
        where = f"{path}, line {before + 1}"
        raise InputError(f"{where}: cannot be read as csv ({error})") from error
    except UnicodeDecodeError as error:
        remedy = "save it as CSV UTF-8"
        raise InputError(f"{path}: cannot be read as csv in UTF-8 ({error}); {remedy}") from error


class _Record(NamedTuple):
    """A record of a CSV file: its first and last line, its lines as they are written, its fields."""

    first: int
    last: int
    lines: list[str]
    values: list[str]

    def rows(self, names: list[str], delimiter: str) -> Numbered:
        """The row that it is, or one that cannot be read for each line that a quote takes in."""
        count = len(self.values)
        is_wrong = len(self.lines) > 1 and self.values and count != len(names)
        if is_wrong or _quotes_rows(self.lines, delimiter, self.values):
            problem = (
                f"a quote that opens in line {self.first} takes in all up to line {self.last}; "
                "a quote within a text is written twice"
            )
            for number, line in enumerate(self.lines, start=self.first):
                if line.strip():
                    yield number, UnreadableRow(problem, "not CSV")
        elif not any(self.values):
            return  # an empty line, of a spreadsheet with its delimiters
        elif count == len(names):
            row: dict[str, Any] = {}
            # 007 may be a code, and 1.50 a price: only what a whole number would be written as is one.
            for name, text in zip(names, self.values, strict=True):
                row[name] = int(text) if _WHOLE_NUMBER.fullmatch(text) else text
            yield self.first, row
        else:
            fields = "1 field" if count == 1 else f"{count} fields"
            problem = f"{fields}, and the first line names {len(names)}"
            yield self.first, UnreadableRow(problem, "not CSV")


def _quotes_rows(lines: list[str], delimiter: str, values: list[str]) -> bool:
    """Whether a quoted text in a record of several lines is most likely a quote that was never
    closed, and the rows after it. values: the fields of the record.
    """
    if len(lines) == 1:
        return False
    try:
        # The file ends within the quote, or more follows where it is closed: that is where the
        # next quoted text opens.
        next(csv.reader(lines, delimiter=delimiter, strict=True), None)
    except csv.Error:
        return True
    # Or each line is a row by itself, with a number at its end where the record has one. In prose a
    # space follows a comma; a text of two such lines may be chance.
    ends_in_number = bool(_NUMBER.fullmatch(values[-1]))
    rows = 0
    for line in lines:
        fields = re.split(rf"{re.escape(delimiter)}(?! )", line.rstrip("\r\n"))
        is_row = len(fields) == len(values)
        rows += is_row and (not ends_in_number or bool(_NUMBER.fullmatch(fields[-1])))
    return len(values) > 1 and len(lines) > 2 and rows >= _MOST_LINES * len(lines)


def _text_rows(path: Path, file: Any) -> Numbered:
    """The rows of a .txt file: JSON Lines or tab-separated values where its first line is of that
    kind, else each line that is not blank is the column `text`.
    """
    buffered = io.BufferedReader(file)
    first = buffered.peek(LONGEST_ROW).lstrip().partition(b"\n")[0]
    if first.startswith(b"{"):
        yield from _json_lines(path, buffered)
    elif b"\t" in first:
        yield from _csv_rows(path, buffered)
    else:
        lines = io.TextIOWrapper(buffered, encoding="utf-8-sig", errors="replace")
        for number, line in enumerate(lines, start=1):
            if line.strip():
                yield number, {"text": line.strip()}


def _parquet_rows(path: Path) -> Numbered:
    with opened(path):
        pass  # only to see that it is there
    require("pyarrow", extra="train", purpose="reading a .parquet file")
    import pyarrow
    from pyarrow.parquet import ParquetFile

    number = 0
    try:
        for batch in ParquetFile(path).iter_batches(_BATCH):
            for row in batch.to_pylist():
                number += 1
                yield number, row
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as parquet ({error})") from error
