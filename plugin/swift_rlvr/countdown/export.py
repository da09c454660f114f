"""Writes generated Countdown tasks to JSONL or Parquet, in one pass, as whole files only, and resumes where it stopped.

The rows go to FILE.part, which becomes FILE when it is complete. For JSONL, FILE.part.json says what is being made:
after an interruption the same call counts the complete lines of FILE.part and adds those that are missing, so that the
file is the same to the byte as one made without a stop. The rows that are there are drawn again and not written: they
decide which later ones are new. With other settings, and for Parquet, it starts anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from swift_rlvr.countdown.arrays import Chunk
from swift_rlvr.countdown.generator import TASK_ONLY, Columns, batches
from swift_rlvr.countdown.settings import CountdownSettings
from swift_rlvr.errors import InputError, require

FORMATS = (".jsonl", ".parquet")
_ROW_GROUP = 1 << 17
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

    Args:
        progress: called with the number of rows written so far.

    Raises:
        InputError: the file cannot be written.
        IndexError: there are fewer rows; nothing is left behind.
    """
    if out.suffix not in FORMATS:
        raise InputError(f"expected a name ending in {' or '.join(FORMATS)}, got {out}")
    part, state = out.with_name(out.name + ".part"), out.with_name(out.name + ".part.json")
    lines = out.suffix == ".jsonl"
    described = {"stream": _STREAM, "settings": asdict(settings), "split": split, "seed": seed, "rows": rows}
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        skip = _resumable(part, state, json.dumps(described | asdict(columns))) if lines else 0
        finish = lines_of if lines else None
        chunks = batches(settings, split, seed, rows, skip=skip, workers=workers, columns=columns, finish=finish)
        try:
            written = (_write_jsonl if lines else _write_parquet)(part, chunks, skip, progress)
        except IndexError:
            part.unlink(missing_ok=True)
            state.unlink(missing_ok=True)
            raise
        part.replace(out)
        state.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}") from error
    return written


def lines_of(chunk: Chunk) -> Chunk:
    """The chunk with its rows as lines of JSON, in the only column "line": (tasks,), bytes."""
    nums = [row[:size] for row, size in zip(chunk.nums.tolist(), chunk.size.tolist(), strict=True)]
    form = '{"nums": %s, "target": %d'
    for name, values in chunk.columns.items():
        form += f', "{name}": ' + ('"%s"' if values.dtype == object else "%d")
    columns = [values.tolist() for values in chunk.columns.values()]
    lines = [(form + "}\n") % row for row in zip(nums, chunk.target.tolist(), *columns, strict=True)]
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

    writer: Any = None
    waiting: list[Any] = []

    def flush():
        nonlocal writer, waiting
        table = pa.Table.from_batches(waiting)
        writer = writer or parquet.ParquetWriter(part, table.schema)
        writer.write_table(table)
        waiting = []

    try:
        for chunk in chunks:
            waiting.append(_record_batch(pa, chunk))
            written += len(chunk)
            if sum(map(len, waiting)) >= _ROW_GROUP:
                flush()
            progress(written)
        if waiting:
            flush()
    finally:
        if writer is not None:
            writer.close()
    return written


def _record_batch(pa, chunk: Chunk) -> Any:
    offsets = np.concatenate([[0], np.cumsum(chunk.size)]).astype(np.int32)
    flat = chunk.nums[np.arange(chunk.nums.shape[1]) < chunk.size[:, None]]
    columns = {"nums": pa.ListArray.from_arrays(offsets, pa.array(flat)), "target": pa.array(chunk.target)}
    return pa.RecordBatch.from_pydict(columns | {name: pa.array(values) for name, values in chunk.columns.items()})
