"""Writes rows to JSONL or Parquet, as whole files only; a JSONL file that was interrupted is continued.

The rows go to FILE.HASH.part, which becomes FILE when it is complete. The hash is of what is being made: the same call
goes on where the last one stopped, to the same bytes as without a stop, and another call starts anew.
"""

import json
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

from swift_rlvr.errors import InputError, require

RowsFrom = Callable[[int], Iterable[dict[str, Any]]]  # the rows from row n on


def write_rows(out: Path, rows_from: RowsFrom, description: object) -> int:
    """Write a file ending in .jsonl or .parquet; returns how many rows it has.

    The repr of `description` tells these rows from others. InputError where the file cannot be written. An IndexError
    of the rows is passed on; nothing is then left behind.
    """
    if out.suffix not in (".jsonl", ".parquet"):
        raise InputError(f"must end in .jsonl or .parquet, got {out}", field="out")
    part = out.with_name(f"{out.name}.{sha256(repr(description).encode()).hexdigest()[:8]}.part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        written = (_write_jsonl if out.suffix == ".jsonl" else _write_parquet)(part, rows_from)
        part.replace(out)
        return written
    except IndexError:
        part.unlink(missing_ok=True)
        raise
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}") from error


def _write_jsonl(part: Path, rows_from: RowsFrom) -> int:
    with part.open("ab+") as file:
        file.seek(0)
        whole = [len(line) for line in file if line.endswith(b"\n")]  # the last line may have been cut off
        file.truncate(sum(whole))
        written = len(whole)
        for row in rows_from(written):
            file.write(json.dumps(row).encode() + b"\n")
            written += 1
    return written


def _write_parquet(part: Path, rows_from: RowsFrom) -> int:
    require("pyarrow", extra="train", purpose="writing a Parquet file")
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.Table.from_pylist(list(rows_from(0)))
    parquet.write_table(table, part)
    return table.num_rows
