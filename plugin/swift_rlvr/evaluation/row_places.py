"""One row of a file, by its place there."""

import re
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from swift_rlvr.evaluation.completion_files import renamed_row
from swift_rlvr.evaluation.completion_forms import Item, NoCompletionError, items_of, read_object
from swift_rlvr.tasks import TASKS, RowError
from swift_rlvr.tasks.files import COMPRESSED, data_suffix, file_rows
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import LineError, opened


def row_at(
    text: str, columns: Mapping[str, str] | None = None, renamed: set[str] | None = None
) -> Item:
    """The row that a text such as `rows.jsonl:7` names, with its completion if it has one.

    text: a JSON object, FILE:LINE, FILE:LINE:POSITION for one of several completions, or
    TASK:FILE:LINE for a row of a dataset, which is preprocessed. columns: new names of columns, as in
    `parse_columns`. renamed: gets those names of `columns` that a row read has. InputError for what
    is not there.
    """
    columns = columns or {}
    if text.lstrip().startswith("{"):
        return _item_of(text, "the object", None, columns, renamed)

    place = re.fullmatch(r"(.+?):([0-9]{1,12})(?::([0-9]{1,12}))?", text, re.DOTALL)
    if place is None:
        forms = """'{"nums": [3, 5, 7], ...}', FILE:LINE, FILE:LINE:POSITION or TASK:FILE:LINE"""
        raise InputError(f"must be {forms}, got {text}", field="row")
    path = place[1]
    number = int(place[2])
    if path.partition(":")[0] in TASKS.data:
        source = parse_source(path, columns=columns)
        raw = _row_in_line(number, source.rows(renamed), path)
        with source.at(number):
            return Item(None, None, source.task.preprocess(raw))
    position = None if place[3] is None else int(place[3])
    where = f"line {number} of {path}"
    if data_suffix(Path(path)) not in ("", ".jsonl") or path.endswith(COMPRESSED):
        row = _row_in_line(number, file_rows(Path(path)), path)
        return _item_of(row, where, position, columns, renamed)
    # Only this line is parsed: files of completions are large.
    with opened(path) as file:
        line = next(islice(file, number - 1, None), b"") if number else b""
    if not line:
        raise InputError(f"{path} has no line {number}", field="row")
    return _item_of(line, where, position, columns, renamed)


def _row_in_line(
    number: int, rows: Iterable[tuple[int, dict[str, Any]]], path: str
) -> dict[str, Any]:
    for line_number, row in rows:
        if line_number == number:
            return row
    raise InputError(f"{path} has no row in line {number}", field="row")


def _item_of(
    line: str | bytes | dict[str, Any],
    where: str,
    position: int | None,
    columns: Mapping[str, str],
    renamed: set[str] | None,
) -> Item:
    """One completion of a line, which holds several in ms-swift's tables.

    line: JSON, or a row that is read. position: from 1.
    """
    try:
        row = line if isinstance(line, dict) else read_object(line)
        row = renamed_row(row, columns, renamed)
        items = items_of(row)
    except NoCompletionError:
        # A row of a dataset.
        return Item(None, None, row)
    except (LineError, RowError) as error:
        raise InputError(f"{where}: {error}", field="row") from error
    if position is None:
        if len(items) != 1:
            problem = "completions: add a position, as in FILE:LINE:1"
            raise InputError(f"{where} has {len(items)} {problem}", field="row")
        return items[0]
    if not 1 <= position <= len(items):
        problem = f"{where} has {len(items)} completions, got position {position}"
        raise InputError(problem, field="row")
    return items[position - 1]
