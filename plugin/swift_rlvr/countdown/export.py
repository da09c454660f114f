"""Writes generated Countdown tasks to JSONL or Parquet, as whole files only, and resumes where it stopped.

The rows go to FILE.part, which becomes FILE when it is complete. For JSONL, FILE.part.json says what is being made:
after an interruption the same call counts the complete lines of FILE.part and adds the missing ones, to the same bytes
as without a stop. The rows that are there are drawn again and not written: they decide which later ones are new. With
other settings it starts anew, and so does Parquet, whose rows are held in memory until the last is made.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from swift_rlvr.countdown.arrays import Chunk
from swift_rlvr.countdown.generator import TASK_ONLY, Columns, batches, rows_of
from swift_rlvr.countdown.settings import CountdownSettings
from swift_rlvr.errors import InputError, require

_STREAM = 1  # to be raised when the same settings and seed give other rows


def write_tasks(
    out: Path,
    settings: CountdownSettings,
    split: str,
    seed: int,
    rows: int | None,
    workers: int = 1,
    columns: Columns = TASK_ONLY,
    progress: Callable[[int], object] = lambda rows: None,
) -> int:
    """Write rows 0 to rows - 1, or all there are where `rows` is None; returns how many the file has.

    `progress` is called with the number of rows written so far. Raises InputError where the file cannot be written, and
    IndexError where there are fewer rows; nothing is then left behind.
    """
    if out.suffix not in (".jsonl", ".parquet"):
        raise InputError(f"must end in .jsonl or .parquet, got {out}", field="out")
    part, state = out.with_name(out.name + ".part"), out.with_name(out.name + ".part.json")
    lines = out.suffix == ".jsonl"
    described = {"stream": _STREAM, "settings": asdict(settings), "split": split, "seed": seed, "rows": rows}
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        skip = _resumable(part, state, json.dumps(described | asdict(columns))) if lines else 0
        finish = lines_of if lines else None
        chunks = batches(settings, split, seed, rows, skip=skip, workers=workers, columns=columns, finish=finish)
        written = (_write_jsonl if lines else _write_parquet)(part, chunks, skip, progress)
        part.replace(out)
        state.unlink(missing_ok=True)
        return written
    except IndexError:
        part.unlink(missing_ok=True)
        state.unlink(missing_ok=True)
        raise
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}") from error


def lines_of(chunk: Chunk) -> Chunk:
    """The chunk with its rows as lines of JSON, in the only column "line": (tasks,), bytes."""
    lines = [json.dumps(row) + "\n" for row in rows_of(chunk)]
    # Bytes of one length go from process to process at once, strings one by one.
    return replace(chunk, columns={"line": np.array(lines, np.bytes_)})


def _resumable(part: Path, state: Path, described: str) -> int:
    """How many complete lines of the same file are there; prepares for adding to them, or for a new start."""
    if part.exists() and state.exists() and state.read_text() == described:
        lines = end = 0
        with part.open("rb+") as file:
            for line in file:
                if line.endswith(b"\n"):
                    lines, end = lines + 1, end + len(line)
            file.truncate(end)
        return lines
    part.write_bytes(b"")
    state.write_text(described)
    return 0


def _write_jsonl(part: Path, chunks: Iterable[Chunk], written: int, progress: Callable[[int], object]) -> int:
    with part.open("ab") as file:
        for chunk in chunks:
            file.write(b"".join(chunk.columns["line"].tolist()))
            written += len(chunk)
            progress(written)
    return written


def _write_parquet(part: Path, chunks: Iterable[Chunk], written: int, progress: Callable[[int], object]) -> int:
    require("pyarrow", extra="train", purpose="writing a Parquet file")
    import pyarrow as pa
    from pyarrow import parquet

    record_batches = []
    for chunk in chunks:
        offsets = np.concatenate([[0], np.cumsum(chunk.size)]).astype(np.int32)
        nums = pa.ListArray.from_arrays(offsets, chunk.nums[chunk.nums > 0])
        record_batches.append(pa.RecordBatch.from_pydict({"nums": nums, "target": chunk.target, **chunk.columns}))
        written += len(chunk)
        progress(written)
    if record_batches:
        parquet.write_table(pa.Table.from_batches(record_batches), part, row_group_size=1 << 17)
    return written
