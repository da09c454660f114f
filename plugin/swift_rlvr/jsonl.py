"""Reading and writing JSON files, with errors that name the file and the line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TextIO

from swift_rlvr.errors import InputError

LONGEST_ROW = 8 * 2**20
"""Bytes of a line of a dataset; more is a mistake, and would fill the memory before anything else noticed it."""


def read_jsonl(path: str | Path, longest: int | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield `(line number from 1, object)` for every line that is not blank; one line at a time is in memory.

    A line that is no JSON object, or has more than `longest` bytes, raises InputError. So does a file that cannot be
    read.
    """
    try:
        with Path(path).open("rb") as file:
            for number in count(1):
                line = file.readline(-1 if longest is None else longest + 1)
                if not line:
                    return
                if longest is not None and len(line) > longest:
                    raise InputError(f"{path}, line {number}: longer than {longest:,} bytes")
                if line.strip():
                    yield number, _object(line, f"{path}, line {number}")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def check_jsonl(path: str | Path) -> int:
    """The number of rows of a dataset's file; InputError at a line that is no JSON object, and where there is none."""
    rows = sum(1 for _ in read_jsonl(path, LONGEST_ROW))
    if rows == 0:
        raise InputError(f"{path}: no rows")
    return rows


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    except ValueError as error:  # a number of thousands of digits is one too
        raise InputError(f"{where}: not JSON ({error})") from error
    except RecursionError:
        raise InputError(f"{where}: nested too deeply") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: expected an object such as {{...}}, got {line.decode('utf-8').strip()[:40]}")
    return row


def read_json(path: str | Path) -> dict[str, Any]:
    """The JSON object that a file holds; InputError if it holds anything else."""
    try:
        value = json.loads(_read(path))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: not JSON ({error.msg})") from error
    if not isinstance(value, dict):
        raise InputError(f"{path}: expected an object such as {{...}}, got a {type(value).__name__}")
    return value


def write_jsonl(path: str | Path, rows: Iterable[Mapping[str, Any]]) -> int:
    """Write one object a line, making the folder if need be; returns the number of rows.

    The rows go to a file beside `path` first, so that a failure on the way leaves no half-written file behind.
    """
    written = 0
    with _replacing(Path(path)) as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            written += 1
    return written


def write_json(path: str | Path, value: Mapping[str, Any]) -> None:
    """Write one object, indented, making the folder if need be."""
    with _replacing(Path(path)) as file:
        file.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


@contextmanager
def _replacing(path: Path) -> Iterator[TextIO]:
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("w", encoding="utf-8") as file:
            yield file
        part.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    finally:
        if part.exists():
            part.unlink()


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error
