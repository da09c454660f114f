"""JSON and JSONL files: reading and writing them, with errors that name the file and the line."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from swift_rlvr.utils.errors import InputError

LONGEST_ROW = 8 * 2**20
"""The longest line of a dataset, in bytes. A longer one is a mistake and could fill the memory."""


class LineError(ValueError):
    """Text that cannot be used. The message says why; whoever reads the file adds its name and the
    line.
    """


@contextmanager
def opened(path: str | Path) -> Iterator[BinaryIO]:
    """The file, opened for reading; InputError where that fails."""
    try:
        with Path(path).open("rb") as file:
            yield file
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def parse_object(text: bytes | str) -> dict[str, Any]:
    """The JSON object that a text holds; LineError for anything else."""
    try:
        value = json.loads(text.decode("utf-8") if isinstance(text, bytes) else text)
    except UnicodeDecodeError as error:
        raise LineError(f"not UTF-8 text ({error.reason} at byte {error.start})") from error
    except RecursionError:
        raise LineError("not JSON that can be read (nested too deeply)") from None
    except ValueError as error:  # also for a number with thousands of digits
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
    """Yield `(line number from 1, object)` for every line that is not blank, holding one line in
    memory at a time.

    InputError for a file that cannot be read, and for a line that is no JSON object or has more
    than `longest` bytes.
    unfinished: gets a note of a last line whose end is not written yet, which is then left out.
    """
    limit = -1 if longest is None else longest + 1
    with opened(path) as file:
        for number, line in enumerate(iter(lambda: file.readline(limit), b""), start=1):
            if longest is not None and len(line) > longest:
                raise InputError(f"{path}, line {number}: longer than {longest:,} bytes")
            if line.isspace():
                continue
            try:
                yield number, parse_object(line)
            except LineError as error:
                if unfinished is None or line.endswith(b"\n"):
                    raise InputError(f"{path}, line {number}: {error}") from error
                unfinished(
                    f"{Path(path).name}, line {number}, is left out: its end is not written yet"
                )


def check_jsonl(path: str | Path) -> int:
    """The number of rows of a dataset file; InputError where a line is no JSON object or there is
    no row.
    """
    rows = sum(1 for _ in read_jsonl(path, LONGEST_ROW))
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
    """Write one object a line; the folder is made if need be, and no half-written file is left
    after an error.
    """
    with replacing(Path(path)) as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_json(path: str | Path, value: Mapping[str, Any]) -> None:
    """Write one object, indented; the folder is made if need be."""
    with replacing(Path(path)) as file:
        file.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


@contextmanager
def replacing(path: Path) -> Iterator[TextIO]:
    """A file to write, which takes its place, with its folder, when it is whole; InputError where
    it cannot be.
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
        with suppress(OSError):  # a parent that is no folder
            part.unlink()
