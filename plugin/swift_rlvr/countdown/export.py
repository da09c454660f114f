"""Writes generated Countdown tasks to JSONL or Parquet, in one pass, as whole files only, and goes on where it stopped.

The rows go to FILE.part, which becomes FILE when it is complete. For JSONL, FILE.part.json says what is being made:
after an interruption the same call counts the complete lines of FILE.part and adds those that are missing, so that the
file is the same to the byte as one made without a stop. The rows that are there are drawn again and not written: they
decide which later ones are new. With other settings, and for Parquet, it starts anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from itertools import repeat
from pathlib import Path

import numpy as np

from swift_rlvr.countdown.arrays import Chunk
from swift_rlvr.countdown.generator import TASK_ONLY, Columns, batches
from swift_rlvr.countdown.settings import CountdownSettings
from swift_rlvr.errors import InputError

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
    progress: Callable[[int], None] = lambda rows: None,
) -> int:
    """Write rows 0 to rows - 1, or all there are where `rows` is None; returns how many the file has.

    progress: called with the number of rows written so far. Raises InputError where the file cannot be written, and
    IndexError, leaving nothing behind, where there are fewer rows.
    """
    if out.suffix not in FORMATS:
        raise InputError(f"expected a name ending in {' or '.join(FORMATS)}, got {out}")
    part, state = out.with_name(out.name + ".part"), out.with_name(out.name + ".part.json")
    write = _write_jsonl if out.suffix == ".jsonl" else _write_parquet
    described = {"stream": _STREAM, "settings": asdict(settings), "split": split, "seed": seed, "rows": rows}
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        skip = _resumable(part, state, described | asdict(columns)) if write is _write_jsonl else 0
        try:
            finish = lines_of if write is _write_jsonl else None
            made = batches(settings, split, seed, rows, skip=skip, workers=workers, columns=columns, finish=finish)
            written = write(part, made, skip, progress)
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
    """The chunk with its rows as lines of JSON, in the column "line"."""
    nums = chunk.nums.tolist()
    if chunk.size.min(initial=9) < chunk.nums.shape[1]:
        nums = [row[:size] for row, size in zip(nums, chunk.size.tolist(), strict=True)]
    columns = [map(str, nums), chunk.target.tolist()]
    form = '{"nums": %s, "target": %d'
    if chunk.solution is not None:
        form += ', "solution": "%s"'
        columns.append(chunk.solution)
    for name, values in (chunk.extra or {}).items():
        form += f', "{name}": ' + ("%d" if values.dtype != object else '"%s"')
        columns.append(values.tolist())
    lines = list(map(str.__mod__, repeat(form + "}\n"), zip(*columns, strict=True)))
    # Bytes of one length go from process to process at once, strings one by one.
    return Chunk(chunk.keys, chunk.size, chunk.nums, chunk.target, extra={"line": np.array(lines, np.bytes_)})


def _resumable(part: Path, state: Path, described: dict) -> int:
    """How many complete lines of the same file are there; makes room for them, or for a new start."""
    described = json.dumps(described)
    if part.exists() and state.exists() and state.read_text() == described:
        lines, end = 0, 0
        with part.open("rb+") as file:
            while block := file.read(1 << 20):
                lines += block.count(b"\n")
                if b"\n" in block:
                    end = file.tell() - len(block) + block.rindex(b"\n") + 1
            file.truncate(end)
        return lines
    part.write_bytes(b"")
    state.write_text(described)
    return 0


def _write_jsonl(part, chunks, written, progress) -> int:
    with part.open("ab") as file:
        for chunk in chunks:
            file.write(b"".join(chunk.extra["line"].tolist()))
            written += len(chunk)
            progress(written)
    return written


def _write_parquet(part, chunks, written, progress) -> int:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise InputError("to write Parquet files, install pyarrow: pip install pyarrow") from error
    writer, waiting = None, []

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


def _record_batch(pa, chunk: Chunk):
    offsets = np.concatenate([[0], np.cumsum(chunk.size)]).astype(np.int32)
    flat = chunk.nums[np.arange(chunk.nums.shape[1]) < chunk.size[:, None]]
    columns = {"nums": pa.ListArray.from_arrays(offsets, pa.array(flat.astype(np.int64)))}
    columns["target"] = pa.array(chunk.target.astype(np.int64))
    if chunk.solution is not None:
        columns["solution"] = pa.array(chunk.solution, pa.string())
    for name, values in (chunk.extra or {}).items():
        columns[name] = pa.array(values.tolist(), pa.int64() if values.dtype != object else pa.string())
    return pa.RecordBatch.from_pydict(columns)
