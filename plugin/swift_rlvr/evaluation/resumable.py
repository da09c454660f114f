"""Samples many rows, chunk by chunk, into a file of graded records, so that an interrupted command can go on.

The folder holds records.jsonl, to which every chunk is added as it is graded, and settings.json, by which samples of
other settings are told apart. A chunk has a seed of its own: it does not depend on those before it.
"""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

from rich.console import Console

from swift_rlvr.data.grading import grade_samples
from swift_rlvr.errors import InputError
from swift_rlvr.jsonl import LineError, parse_object, read_json, write_json
from swift_rlvr.runs.folder import RECORDS
from swift_rlvr.runs.records import Messages, Record, record_from_json
from swift_rlvr.sampling import SamplingSettings, mixed_seed, open_engine
from swift_rlvr.sampling.progress import progress_bar
from swift_rlvr.tasks import Task

SETTINGS = "settings.json"
_MAY_DIFFER = ("batch_size", "use_hf")  # what a completion is drawn from does not depend on them
_IN_WORDS = {"rows_digest": "the content of the dataset", "weights": "the weights of the model"}
_SAID_EVERY = 30  # seconds, where there is no terminal for a progress bar


def sample_rows(
    sampling: SamplingSettings,
    task: Task,
    rows: Sequence[Mapping[str, Any]],
    conversations: Sequence[Messages],
    settings: Mapping[str, Any],
    folder: Path,
    console: Console,
) -> list[Record]:
    """The records of all rows, in order: those that the folder has, and the others, which are sampled now.

    Args:
        rows: preprocessed by `task`. conversations: what the model is asked for each.
        settings: everything that the samples depend on. InputError where the folder has samples of other ones.
    """
    file = folder / RECORDS
    records, size = _existing(folder, settings, sampling.num_generations)
    first = len(records) // sampling.num_generations
    if first == len(rows):
        return records
    if records:
        console.print(f"going on after {first:,} of {len(rows):,} rows, which {file} has", markup=False, soft_wrap=True)
    with open_engine(replace(sampling, seed=mixed_seed(sampling.seed, first)), conversations) as engine:
        write_json(folder / SETTINGS, settings)
        with _appending(file, size) as log, _progress(console, first, len(rows), sampling.num_generations) as advance:
            step = max(1, engine.batch_size // sampling.num_generations)
            for start in range(first, len(rows), step):
                places = range(start, min(start + step, len(rows)))

                def part(done: float, start: int = start, many: int = len(places)) -> None:
                    advance(start + done * many)

                asked, seed = conversations[start : places.stop], mixed_seed(sampling.seed, start)
                groups = engine.sample(asked, seed=seed, on_progress=part)
                chunk = grade_samples(task, rows[start : places.stop], asked, groups)
                for record in chunk:
                    record.index += start
                log.write("".join(json.dumps(each.as_json(), ensure_ascii=False) + "\n" for each in chunk).encode())
                log.flush()
                records += chunk
                part(1.0)
    return records


def weights_digest(model: str) -> str | None:
    """Tells whether a folder's weights are still the same files, by name, size and time; None for a hub id."""
    files = sorted(path for path in Path(model).expanduser().glob("*") if path.suffix in (".safetensors", ".bin"))
    stats = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return sha256(json.dumps(stats).encode()).hexdigest()[:16] if files else None


def _existing(folder: Path, settings: Mapping[str, Any], samples: int) -> tuple[list[Record], int]:
    """The records of the rows that are complete, and their size in bytes; the rest of an interrupted chunk is cut."""
    file, settings_file = folder / RECORDS, folder / SETTINGS
    if not file.exists() or file.stat().st_size == 0:
        return [], 0
    if not settings_file.exists():
        raise InputError(f"{file} is of something else, an evaluation for example; choose another folder", "out")
    _check_same(settings_file, settings)
    records: list[Record] = []
    size = end = 0
    with _locked(file, "r+b") as log:
        for number, line in enumerate(log):
            if not line.endswith(b"\n"):
                break
            try:
                record = record_from_json(parse_object(line))
            except (LineError, InputError) as error:
                raise InputError(f"{file}, line {number + 1}: {error}") from error
            if (record.index, record.sample) != divmod(number, samples):
                raise InputError(f"{file}, line {number + 1}: not of this probe; delete the folder to begin anew")
            records.append(record)
            end += len(line)
            if len(records) % samples == 0:
                size = end
        log.truncate(size)
    return records[: len(records) // samples * samples], size


def _check_same(file: Path, settings: Mapping[str, Any]) -> None:
    """InputError where a folder holds samples of other settings, naming what differs."""
    before = read_json(file)
    differences = [
        f"{_IN_WORDS[name]} differs" if name in _IN_WORDS else f"{name} was {before.get(name)!r} and is {value!r}"
        for name, value in json.loads(json.dumps(settings)).items()
        if name not in _MAY_DIFFER and before.get(name) != value
    ]
    if differences:
        raise InputError(
            f"{file.parent} holds samples with other settings: {'; '.join(differences[:5])}; choose another folder, or "
            "delete this one",
            "out",
        )


@contextmanager
def _locked(file: Path, mode: str) -> Iterator[BinaryIO]:
    """The file, opened; InputError where another process has it or it cannot be written, such as on a full disk."""
    try:
        with file.open(mode) as opened:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"{file}: another probe is writing there", "out") from None
            yield opened  # type: ignore[misc]
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}") from error


@contextmanager
def _appending(file: Path, size: int) -> Iterator[BinaryIO]:
    with _locked(file, "ab") as log:
        if os.fstat(log.fileno()).st_size != size:
            raise InputError(f"{file}: another probe has written there meanwhile", "out")
        yield log


@contextmanager
def _progress(console: Console, first: int, rows: int, samples: int) -> Iterator[Callable[[float], None]]:
    """A bar with the time left, or on what is no terminal a line now and then; gets the number of rows done."""
    begin = said = time.monotonic()
    with progress_bar(console) as progress:
        bar = progress.add_task(f"{rows:,} rows x {samples}", total=rows, completed=first)

        def advance(done: float) -> None:
            nonlocal said
            progress.update(bar, completed=done)
            now = time.monotonic()
            if not console.is_terminal and now - said > _SAID_EVERY and done > first:
                said = now
                left = (now - begin) / (done - first) * (rows - done)
                console.print(f"{int(done):,} of {rows:,} rows, about {left / 60:.1f} min left", soft_wrap=True)

        yield advance
    seconds, made = time.monotonic() - begin, (rows - first) * samples
    console.print(f"sampled {made:,} completions in {seconds:.0f} s, {made / max(seconds, 0.001):.0f} a second")
