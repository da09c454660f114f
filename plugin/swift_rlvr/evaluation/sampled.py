"""Rows of a dataset -> graded records in a folder, chunk by chunk, so that an interrupted command
can go on.

The folder gets records.jsonl, to which every chunk is added as it is graded, and settings.json, by
which samples of other settings are told apart. A chunk has a seed of its own: it does not depend on
those before it.
"""

import fcntl
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TimeElapsedColumn

from swift_rlvr.evaluation.grading import grade_samples
from swift_rlvr.evaluation.prompts import system_prompt
from swift_rlvr.evaluation.sampling import (
    Engine,
    SamplingSettings,
    choose_engine,
    mixed_seed,
    open_engine,
)
from swift_rlvr.runs.folder import RECORDS
from swift_rlvr.runs.log import clock, pace
from swift_rlvr.runs.records import Messages, Record, append_records, read_records
from swift_rlvr.tasks.sources import Source, parse_source
from swift_rlvr.tasks.task import with_system
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import read_json, write_json

SETTINGS = "settings.json"
HUB_ROWS = 500  # by default, of a dataset on a hub: +-0.04 on success
_MAY_DIFFER = ("batch_size", "use_hf")  # what a completion is drawn from does not depend on them
_IN_WORDS = {"rows_digest": "the content of the dataset", "weights": "the weights of the model"}
_SAID_EVERY = 30  # seconds, where there is no terminal for a progress bar


@dataclass
class Rows:
    """The rows of a dataset, each with its line, as read and preprocessed, and the conversation
    that asks it.
    """

    source: Source
    system: str | None
    lines: list[int] = field(default_factory=list)
    raw: list[dict[str, Any]] = field(default_factory=list)
    prepared: list[dict[str, Any]] = field(default_factory=list)
    conversations: list[Messages] = field(default_factory=list)

    @classmethod
    def read(
        cls, dataset: str, model: str, system: str | None = None, use_hf: bool = False
    ) -> Self:
        """Those of a dataset as in `parse_source`, HUB_ROWS of a NAME without #N; InputError as
        there, naming the line.

        model: its training says the system prompt where `system` is None, see `system_prompt`.
        """
        source = parse_source(dataset, use_hf)
        if source.path is None and source.limit is None:
            source = replace(source, limit=HUB_ROWS)
        rows = cls(source, system_prompt(model, source.task)[0] if system is None else system)
        for line, row in source.rows():
            with source.at(line):
                prepared = source.task.preprocess(row)
            rows.lines.append(line)
            rows.raw.append(row)
            rows.prepared.append(prepared)
            rows.conversations.append(
                with_system(prepared["messages"], rows.system, override=system is not None)
            )
        return rows

    def settings(self, sampling: SamplingSettings, dataset: str) -> dict[str, Any]:
        """Everything that the samples of these rows depend on."""
        return {
            **asdict(sampling),
            "engine": choose_engine(sampling),
            "weights": weights_digest(sampling.model),
            "task": self.source.task.name,
            "dataset": dataset,
            "rows": len(self.raw),
            "rows_digest": _digest(self.prepared),
            "system": self.system,
        }


class Sampler(ExitStack):
    """Samples rows with an engine that is opened when the first one is needed, and not where all
    are there already.
    """

    def __init__(self, sampling: SamplingSettings, rows: Rows, console: Console):
        super().__init__()
        self.sampling, self.rows, self.console = sampling, rows, console
        self._engine: Engine | None = None

    def fill(
        self, folder: Path, settings: Mapping[str, Any], draws: Sequence[Mapping[str, Any]] = ({},)
    ) -> list[Record]:
        """The records of all rows, in order: those that the folder has, and the others, which are
        made now.

        Args:
            settings: everything that they depend on. InputError where the folder has records of
            other ones.
            draws: for each set of samples of a row, what differs from the sampling settings, for
            `Engine.sample`.
        """
        file, count = folder / RECORDS, len(self.rows.raw)
        per_row = sum(draw.get("num_generations", self.sampling.num_generations) for draw in draws)
        records = _existing(folder, settings, per_row) if file.exists() else []
        first = len(records) // per_row
        if first == count:
            return records
        if records:
            text = f"going on after {first:,} of {count:,} rows, which {file} has"
            self.console.print(text, markup=False, soft_wrap=True)
        if self._engine is None:  # vLLM's random numbers depend on the first row that is sampled
            seeded = replace(self.sampling, seed=mixed_seed(self.sampling.seed, first))
            self._engine = self.enter_context(open_engine(seeded, self.rows.conversations))
        write_json(folder / SETTINGS, settings)
        step = max(1, self._engine.batch_size // per_row)
        with _locked(file), _progress(self.console, first, count, per_row, first + step) as advance:
            for start in range(first, count, step):
                chunk = self._samples(
                    self._engine, slice(start, min(start + step, count)), draws, advance
                )
                append_records(file, chunk)
                records += chunk
        return records

    def _samples(
        self,
        engine: Engine,
        part: slice,
        draws: Sequence[Mapping[str, Any]],
        advance: Callable[[float], None],
    ) -> list[Record]:
        """Graded samples of a part of the rows. advance: gets the number of rows that are done,
        with fractions.
        """
        asked = self.rows.conversations[part]
        groups: list[list] = [[] for _ in asked]
        seeds: list[int] = []
        for number, draw in enumerate(draws):

            def on_progress(share: float, number: int = number) -> None:
                advance(part.start + (number + share) / len(draws) * len(asked))

            seed = draw.get("seed", self.sampling.seed)
            options = {**draw, "seed": mixed_seed(seed, part.start)}
            drawn = engine.sample(asked, on_progress=on_progress, **options)
            for group, more in zip(groups, drawn, strict=True):
                group += more
            seeds += [seed] * len(drawn[0])
        records = grade_samples(self.rows.source.task, self.rows.prepared[part], asked, groups)
        for record in records:
            record.index += part.start
            record.seed = seeds[record.sample] if len(draws) > 1 else None
        advance(part.stop)
        return records


def weights_digest(model: str) -> str | None:
    """Tells whether a folder's weights are still the same files, by name, size and time; None for a
    hub id.
    """
    files = sorted(
        path
        for path in Path(model).expanduser().glob("*")
        if path.suffix in (".safetensors", ".bin")
    )
    stats = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    return _digest(stats) if files else None


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, default=str).encode()).hexdigest()[:16]


def _existing(folder: Path, settings: Mapping[str, Any], samples: int) -> list[Record]:
    """The records of the rows that are complete; the rest of an interrupted chunk is cut off the
    file.
    """
    with _locked(folder / RECORDS) as log:
        if log.tell() == 0:  # at its end
            return []
        if not (folder / SETTINGS).exists():
            raise InputError(
                f"{folder / RECORDS} is of something else; choose another folder", "out"
            )
        _check_same(folder / SETTINGS, settings)
        log.seek(0)
        sizes = [len(line) for line in log if line.endswith(b"\n")]
        del sizes[len(sizes) // samples * samples :]
        records = list(islice(read_records(folder / RECORDS), len(sizes)))
        for number, record in enumerate(records):
            if (record.index, record.sample) != divmod(number, samples):
                where = f"{folder / RECORDS}, line {number + 1}"
                raise InputError(f"{where}: not of these settings; delete the folder to begin anew")
        log.truncate(sum(sizes))
    return records


def _check_same(file: Path, settings: Mapping[str, Any]) -> None:
    """InputError where a folder holds samples of other settings, naming what differs."""
    before = read_json(file)
    differences = [
        f"{_IN_WORDS[name]} differs"
        if name in _IN_WORDS
        else f"{name} was {before.get(name)!r} and is {value!r}"
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
    """The file, opened to be read and added to; InputError where another process has it or it
    cannot be written.
    """
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
def _progress(
    console: Console, first: int, rows: int, samples: int, known: int
) -> Iterator[Callable[[float], None]]:
    """A bar with the time left, or on what is no terminal a line now and then; gets the number of
    rows done.

    Up to the row `known` it is the time if all completions get as long as they may: how long they
    do get is not known.
    """
    begin = said = time.monotonic()
    columns = ("{task.description}", BarColumn(), TimeElapsedColumn(), "{task.fields[left]}")
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(f"{rows:,} rows x {samples}", total=rows, completed=first, left="")

        def advance(done: float) -> None:
            nonlocal said
            now = time.monotonic()
            left = (now - begin) / max(done - first, 1e-9) * (rows - done)
            text = f"{'about' if done >= known else 'at most'} {clock(left)} left"
            progress.update(bar, completed=done, left=text)
            if not console.is_terminal and now - said > _SAID_EVERY and done > first:
                said = now
                console.print(f"{int(done):,} of {rows:,} rows, {text}", soft_wrap=True)

        yield advance
    seconds, made = time.monotonic() - begin, (rows - first) * samples
    console.print(f"sampled {made:,} completions in {seconds:.0f} s, {pace(made, seconds)}")
