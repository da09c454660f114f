"""Rows of a dataset -> graded records in a folder, chunk by chunk, so that an interrupted command can go on.

The folder gets records.jsonl, to which every chunk is added as it is graded, and settings.json, by which samples of
other settings are told apart. A chunk has a seed of its own: it does not depend on those before it.
"""

import fcntl
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from swift_rlvr.data.grading import grade_samples
from swift_rlvr.data.prompts import system_prompt
from swift_rlvr.data.sources import Source, parse_source
from swift_rlvr.errors import InputError
from swift_rlvr.jsonl import LineError, parse_object, read_json, write_json
from swift_rlvr.runs.folder import RECORDS
from swift_rlvr.runs.records import Messages, Record, record_from_json
from swift_rlvr.sampling import Engine, SamplingSettings, choose_engine, mixed_seed, open_engine
from swift_rlvr.tasks import Task
from swift_rlvr.tasks.task import with_system

SETTINGS = "settings.json"
HUB_ROWS = 500  # by default, of a dataset on a hub: +-0.04 on success
_MAY_DIFFER = ("batch_size", "use_hf")  # what a completion is drawn from does not depend on them
_IN_WORDS = {"rows_digest": "the content of the dataset", "weights": "the weights of the model"}
_SAID_EVERY = 30  # seconds, where there is no terminal for a progress bar
Produce = Callable[[Engine, range, Callable[[float], None]], list[Record]]


@dataclass
class Rows:
    """The rows of a dataset, each with its line, as read and preprocessed, and the conversation that asks it."""

    source: Source
    system: str | None
    lines: list[int] = field(default_factory=list)
    raw: list[dict[str, Any]] = field(default_factory=list)
    prepared: list[dict[str, Any]] = field(default_factory=list)
    conversations: list[Messages] = field(default_factory=list)

    @classmethod
    def read(cls, dataset: str, model: str, system: str | None = None, use_hf: bool = False) -> Self:
        """Those of a dataset as in `parse_source`, HUB_ROWS of a NAME without #N.

        Args:
            model: whose training says the system prompt where `system` is None, see `system_prompt`.

        Raises:
            InputError: naming the line, a row that cannot be used; or a dataset that cannot be read.
        """
        source = capped_source(dataset, use_hf)
        rows = cls(source, None)
        for line, row in source.rows():
            with source.at(line):
                rows.prepared.append(source.task.preprocess(row))
            rows.lines.append(line)
            rows.raw.append(row)
        rows.system = system_prompt(model, source.task)[0] if system is None else system
        override = system is not None
        rows.conversations = [with_system(row["messages"], rows.system, override) for row in rows.prepared]
        return rows

    @property
    def task(self) -> Task:
        """The task that preprocesses them; the task of a row is `task.of(row)`."""
        return self.source.task

    def settings(self, sampling: SamplingSettings, dataset: str) -> dict[str, Any]:
        """Everything that the samples of these rows depend on."""
        content = sha256(json.dumps(self.prepared, default=str).encode()).hexdigest()[:16]
        return {
            **asdict(sampling),
            "engine": choose_engine(sampling),
            "weights": weights_digest(sampling.model),
            "task": self.task.name,
            "dataset": dataset,
            "rows": len(self.raw),
            "rows_digest": content,
            "system": self.system,
        }


def capped_source(name: str, use_hf: bool) -> Source:
    """The dataset of this name, as in `parse_source`; of one on a hub without #N only the first HUB_ROWS rows."""
    source = parse_source(name, use_hf)
    return replace(source, limit=HUB_ROWS) if source.path is None and source.limit is None else source


class Sampler:
    """Samples rows with an engine that is opened when the first one is needed, and not where all are there already.

    Args:
        growth: the tokens by which conversations may grow that it is asked later.
    """

    def __init__(self, sampling: SamplingSettings, rows: Rows, console: Console, growth: int = 0):
        self.sampling, self.rows, self.console, self.growth = sampling, rows, console, growth
        self._opened: AbstractContextManager[Engine] | None = None
        self._engine: Engine | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._opened is not None:
            self._opened.__exit__(*error)

    def engine(self, first: int) -> Engine:
        """The engine; `first` is the first row that is sampled, on which vLLM's random numbers depend."""
        if self._engine is None:
            seeded = replace(self.sampling, seed=mixed_seed(self.sampling.seed, first))
            self._opened = open_engine(seeded, self.rows.conversations, self.growth)
            self._engine = self._opened.__enter__()
        return self._engine

    def samples(
        self, engine: Engine, positions: range, on_progress: Callable[[float], None], **options: Any
    ) -> list[Record]:
        """Graded samples of some rows, in order. options: of `Engine.sample`; `seed` is mixed with the position."""
        options["seed"] = mixed_seed(options.get("seed", self.sampling.seed), positions.start)
        part = slice(positions.start, positions.stop)
        asked = self.rows.conversations[part]
        groups = engine.sample(asked, on_progress=on_progress, **options)
        records = grade_samples(self.rows.task, self.rows.prepared[part], asked, groups)
        for record in records:
            record.index += positions.start
        return records

    def fill(
        self, folder: Path, settings: Mapping[str, Any], per_row: int, produce: Produce | None = None
    ) -> list[Record]:
        """The records of all rows, in order: those that the folder has, and the others, which are made now.

        Args:
            settings: everything that they depend on. InputError where the folder has records of other ones.
            per_row: how many there are of each row. produce: makes those of a chunk of rows; by default `samples`.
        """
        file, count = folder / RECORDS, len(self.rows.raw)
        records = _existing(folder, settings, per_row) if file.exists() else []
        first = len(records) // per_row
        if first == count:
            return records
        if records:
            text = f"going on after {first:,} of {count:,} rows, which {file} has"
            self.console.print(text, markup=False, soft_wrap=True)
        engine = self.engine(first)
        write_json(folder / SETTINGS, settings)
        with _locked(file) as log, _progress(self.console, first, count, per_row) as advance:
            step = max(1, engine.batch_size // per_row)
            for start in range(first, count, step):
                positions = range(start, min(start + step, count))

                def part(done: float, start: int = start, many: int = len(positions)) -> None:
                    advance(start + done * many)

                chunk = (produce or self.samples)(engine, positions, part)
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


def _existing(folder: Path, settings: Mapping[str, Any], samples: int) -> list[Record]:
    """The records of the rows that are complete; the rest of an interrupted chunk is cut off the file."""
    records: list[Record] = []
    with _locked(folder / RECORDS) as log:
        if log.tell() == 0:  # at its end
            return records
        if not (folder / SETTINGS).exists():
            raise InputError(f"{folder / RECORDS} is of something else; choose another folder", "out")
        _check_same(folder / SETTINGS, settings)
        log.seek(0)
        size = end = 0
        for number, line in enumerate(log):
            if not line.endswith(b"\n"):
                break
            where = f"{folder / RECORDS}, line {number + 1}"
            try:
                record = record_from_json(parse_object(line))
            except (LineError, InputError) as error:
                raise InputError(f"{where}: {error}") from error
            if (record.index, record.sample) != divmod(number, samples):
                raise InputError(f"{where}: not of these settings; delete the folder to begin anew")
            records.append(record)
            end += len(line)
            if len(records) % samples == 0:
                size = end
        log.truncate(size)
    return records[: len(records) // samples * samples]


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
def _locked(file: Path) -> Iterator[BinaryIO]:
    """The file, opened to be read and added to; InputError where another process has it or it cannot be written."""
    try:
        with file.open("a+b") as opened:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"{file}: another command is writing there", "out") from None
            yield opened
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}") from error


@contextmanager
def _progress(console: Console, first: int, rows: int, samples: int) -> Iterator[Callable[[float], None]]:
    """A bar with the time left, or on what is no terminal a line now and then; gets the number of rows done."""
    begin = said = time.monotonic()
    columns = ("{task.description}", BarColumn(), TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
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
