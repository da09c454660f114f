"""JSON and JSONL files: reading and writing them, with errors that name the file and the line."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from swift_rlvr.utils.errors import InputError

# The longest line of a dataset, in bytes. A longer one is a mistake and could fill the memory.
LONGEST_ROW = 8 * 2**20


class LineError(ValueError):
    """Text that cannot be used. Whoever reads the file adds its name and the line.

    ends: whether the line was written to its end.
    """

    ends = True


@contextmanager
def opened(path: str | Path) -> Iterator[BinaryIO]:
    """The file, opened for reading; InputError if that fails."""
    try:
        with Path(path).open("rb") as file:
            yield file
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def parse_object(text: bytes | str) -> dict[str, Any]:
    """The JSON object that a text holds; LineError for anything else.

    >>> parse_object('{"target": \\n')
    Traceback (most recent call last):
    ...
    swift_rlvr.utils.jsonl.LineError: not JSON (Expecting value at character 11)
    """
    try:
        # Editors on Windows begin a file with a byte order mark.
        value = json.loads(text.decode("utf-8-sig") if isinstance(text, bytes) else text)
    except UnicodeDecodeError as error:
        raise LineError(f"not UTF-8 text ({error.reason} at byte {error.start})") from error
    except RecursionError:
        raise LineError("JSON is nested too deeply") from None
    except json.JSONDecodeError as error:
        # Its own text counts lines within this one, which readers take for those of the file.
        place = min(error.pos, len(error.doc.rstrip())) + 1
        problem = error.msg.removesuffix(" starting at")
        raise LineError(f"not JSON ({problem} at character {place})") from error
    except ValueError as error:  # a number with thousands of digits
        raise LineError(f"not JSON ({error})") from error
    if not isinstance(value, dict):
        raise LineError(f"expected an object such as {{...}}, got {brief(value)}")
    return value


def brief(value: object) -> str:
    """A JSON value in at most 40 characters."""
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def read_jsonl(
    path: str | Path, longest: int | None = None, unfinished: Callable[[str], object] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield `(line number from 1, object)` for every line that is not blank.

    One line is in memory at a time.

    Args:
        longest: the most bytes of a line.
        unfinished: is called with a note where the last line is not written to its end yet; that
            line is then left out.

    Raises:
        InputError: the file cannot be read, or a line is no JSON object or too long.
    """
    with opened(path) as file:
        for number, row in parse_lines(path, file, longest):
            if not isinstance(row, LineError):
                yield number, row
            elif unfinished is None or row.ends:
                raise InputError(f"{path}, line {number}: {row}") from row
            else:
                where = f"{Path(path).name}, line {number}"
                unfinished(f"{where} is skipped: it is not complete yet")


def parse_lines(
    path: str | Path, file: BinaryIO, longest: int | None = None
) -> Iterator[tuple[int, dict[str, Any] | LineError]]:
    """Yield `(line number from 1, object)` for every line that is not blank, and the error in place
    of the object where a line holds none.

    Raises:
        InputError: a line has more than `longest` bytes.
    """
    limit = -1 if longest is None else longest + 1
    for number, line in enumerate(iter(lambda: file.readline(limit), b""), start=1):
        if longest is not None and len(line) > longest:
            raise InputError(f"{path}, line {number}: longer than {longest:,} bytes")
        if line.isspace():
            continue
        try:
            yield number, parse_object(line)
        except LineError as error:
            error.ends = line.endswith(b"\n")
            yield number, error


def check_jsonl(path: str | Path) -> int:
    """The number of rows of a dataset file; InputError if it has none, or none is an object. One
    that is no object is a row that cannot be used.
    """
    rows = 0
    first_error: tuple[int, LineError] | None = None
    has_object = False
    with opened(path) as file:
        for number, row in parse_lines(path, file, LONGEST_ROW):
            rows += 1
            if not isinstance(row, LineError):
                has_object = True
            elif first_error is None:
                first_error = number, row
    if first_error and not has_object:
        raise InputError(f"{path}, line {first_error[0]}: {first_error[1]}")
    if rows == 0:
        raise InputError(f"{path}: no rows")
    return rows


def read_json(path: str | Path) -> dict[str, Any]:
    """The JSON object that a file holds; InputError if it holds anything else."""
    try:
        with opened(path) as file:
            return parse_object(file.read())
    except LineError as error:
        raise InputError(f"{path}: {error}") from error


def write_jsonl(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one object a line; an error leaves no half-written file. The folder is made."""
    with replacing(Path(path)) as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def write_json(path: str | Path, value: Mapping[str, Any]) -> None:
    """Write one object, indented. The folder is made."""
    with replacing(Path(path)) as file:
        file.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """A file to write, which replaces `path` once it is whole; its folder is made.

    Raises:
        InputError: it cannot be written.
    """
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("w", encoding="utf-8") as file:
            yield file
        part.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    finally:
        # It is gone where it has replaced the file, and was never there below a path that is no folder.
        with suppress(OSError):
            part.unlink()
