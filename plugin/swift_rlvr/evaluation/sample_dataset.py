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

from swift_rlvr.evaluation.grade_samples import grade_samples, rewards_of_a_run
from swift_rlvr.evaluation.models import sees_pictures
from swift_rlvr.evaluation.prompts import system_prompt
from swift_rlvr.evaluation.sampling import (
    Completion,
    Engine,
    SamplingSettings,
    choose_engine,
    mixed_seed,
    open_engine,
)
from swift_rlvr.evaluation.sampling.interface import NO_PICTURES
from swift_rlvr.evaluation.tools import with_tools
from swift_rlvr.rewards import Reward
from swift_rlvr.runs.folder import RECORDS
from swift_rlvr.runs.log import clock, pace
from swift_rlvr.runs.records import Messages, Record, append_records, read_records
from swift_rlvr.runs.statistics import summarize
from swift_rlvr.tasks.files import folder_files
from swift_rlvr.tasks.pictures import IMAGES
from swift_rlvr.tasks.sources import Source, parse_source
from swift_rlvr.tasks.task import with_system
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import read_json, write_json

SETTINGS = "settings.json"
# In it, the model that a server has answered with, where that is not the one asked for.
SERVED_MODEL = "served_model"
# Rows that are read by default of a dataset on a hub: success is then known to +-0.04.
HUB_ROWS = 500
# Settings that may differ when a command goes on: no completion depends on them.
_MAY_DIFFER = ("batch_size", "use_hf")
# Settings whose values say nothing to people, in words.
_IN_WORDS = {"rows_digest": "the content of the dataset", "weights": "the weights of the model"}
# Seconds between two lines of progress where there is no terminal for a bar.
_SECONDS_BETWEEN_LINES = 30


@dataclass(frozen=True)
class SampledRow:
    """A row of a dataset with its line in the file.

    raw: as read. prepared: as preprocessed by the task. messages: what the model is asked.
    """

    line: int
    raw: dict[str, Any]
    prepared: dict[str, Any]
    messages: Messages


@dataclass
class SampledDataset:
    """The rows of a dataset, and what grades completions of them.

    system: the system prompt. rewards: those of a run; by default each row's task decides. notes:
    which files of a folder were read, what of --columns no row has, and the rows that cannot be
    used, which a training skips too.
    """

    source: Source
    system: str | None
    rewards: list[Reward] = field(default_factory=list)
    rows: list[SampledRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @classmethod
    def read(
        cls,
        dataset: str,
        model: str,
        system: str | None = None,
        use_hf: bool = False,
        columns: str = "",
        reward_funcs: Sequence[str] = (),
    ) -> Self:
        """Read a dataset, which is named as in `parse_source`; InputError as there, and where too
        many rows cannot be used, naming the lines.

        Of a dataset on a hub without #N the first HUB_ROWS rows are read.

        system: the system prompt; None for that of the model's training, see `system_prompt`.
        columns: as in `parse_columns`.
        reward_funcs: as in `rewards_of_a_run`; by default the verifier and the format of the task.
        """
        rewards = rewards_of_a_run(reward_funcs)
        source = parse_source(dataset, use_hf, columns)
        if source.path is None and source.limit is None:
            source = replace(source, limit=HUB_ROWS)
        chosen = system_prompt(model, source.task)
        renamed: set[str] = set()
        usable, left_out = source.usable_rows(renamed)
        shown = chosen.text if system is None else system
        sampled = cls(source, shown, rewards)
        if source.path is not None and source.path.is_dir():
            # Of the files of several splits those of one are read, which is seldom the held-out one.
            names = ", ".join(file.name for file in folder_files(source.path, source.split))
            sampled.notes.append(f"read of {source.path}: {names}")
        for name in source.columns:
            if name not in renamed:
                sampled.notes.append(f"no row has the column {name!r}, which --columns renames")
        if left_out:
            sampled.notes.append(left_out)
        for line, raw in usable:
            prepared = source.task.preprocess(raw)
            messages = chosen.on(prepared["messages"])
            # The user's --system is what is to be tried, also on rows with a system turn of their own.
            if system is not None:
                messages = with_system(prepared["messages"], system, override=True)
            row = SampledRow(line, raw, prepared, with_tools(messages, prepared))
            sampled.rows.append(row)
        return sampled

    def settings(self, sampling: SamplingSettings, dataset: str) -> dict[str, Any]:
        """Everything that the samples of these rows and their grades depend on."""
        return {
            **asdict(sampling),
            "engine": choose_engine(sampling),
            "weights": weights_digest(sampling.model),
            "task": self.source.task.name,
            "dataset": dataset,
            "rows": len(self.rows),
            "rows_digest": _digest([row.prepared for row in self.rows]),
            "system": self.system,
            "reward_funcs": [reward.name for reward in self.rewards] or None,
        }

    def refuse_what_is_not_sent(self, sampling: SamplingSettings) -> None:
        """InputError if rows hold what the model would not see: its answers would be guesses."""
        held: set[str] = set()
        has_pictures = False
        for row in self.rows:
            held |= row.prepared.keys()
            has_pictures |= bool(row.prepared.get(IMAGES))
        for name in ("videos", "audios"):
            if name in held:
                raise InputError(f"the rows have {name}, which no engine here is sent", "dataset")
        if not has_pictures:
            return
        if choose_engine(sampling) != "server":
            raise InputError(NO_PICTURES, "engine")
        if sees_pictures(Path(sampling.model).expanduser()) is False:
            problem = f"the rows have pictures, and {sampling.model} reads text alone"
            raise InputError(problem, "model")


class Sampler(ExitStack):
    """Samples rows; needs a `with` statement.

    The engine is opened when the first sample is needed, and not at all where all records are there
    already.
    """

    def __init__(self, sampling: SamplingSettings, dataset: SampledDataset, console: Console):
        super().__init__()
        self.sampling = sampling
        self.dataset = dataset
        self.console = console
        self._engine: Engine | None = None
        for text in dataset.notes:
            console.print(text, style="yellow", markup=False, soft_wrap=True)

    def fill(
        self, folder: Path, settings: Mapping[str, Any], draws: Sequence[Mapping[str, Any]] = ({},)
    ) -> list[Record]:
        """The records of all rows, in order: those that the folder has, and the others, which are
        made now.

        Args:
            settings: everything that the samples depend on. InputError if the folder has records
                of other settings.
            draws: for each set of samples of a row, what differs from the sampling settings, for
                `Engine.sample`.
        """
        file = folder / RECORDS
        count = len(self.dataset.rows)
        per_row = sum(draw.get("num_generations", self.sampling.num_generations) for draw in draws)
        records = _complete_records(folder, settings, per_row) if file.exists() else []
        first = len(records) // per_row
        if first == count:
            text = f"nothing is left to sample: all {count:,} rows are in {file}"
            self.console.print(text, markup=False, soft_wrap=True)
            return records
        if records:
            text = f"continuing after {first:,} of {count:,} rows, which are in {file}"
            self.console.print(text, markup=False, soft_wrap=True)
        # A model may take minutes to load.
        if folder.exists() and not folder.is_dir():
            raise InputError(f"expected a folder, and {folder} is a file", "out")
        if self._engine is None:
            self.dataset.refuse_what_is_not_sent(self.sampling)
            # vLLM's random numbers depend on the first row that is sampled.
            seeded = replace(self.sampling, seed=mixed_seed(self.sampling.seed, first))
            conversations = [row.messages for row in self.dataset.rows]
            self._engine = self.enter_context(open_engine(seeded, conversations))

        # Before the first sample, so that an interrupted command can tell whose samples these are.
        earlier = read_json(folder / SETTINGS) if records else {}
        settings = {**settings, SERVED_MODEL: earlier.get(SERVED_MODEL)}
        write_json(folder / SETTINGS, settings)
        step = max(1, self._engine.batch_size // per_row)
        with _locked(file), _progress(self.console, first, count, per_row, first + step) as advance:
            for start in range(first, count, step):
                chunk = slice(start, min(start + step, count))
                graded = self._sample_chunk(self._engine, chunk, draws, advance)
                served = self._engine.served_model
                if served != settings[SERVED_MODEL]:
                    self._note_served(served, settings, has_samples=bool(records))
                    settings[SERVED_MODEL] = served
                    write_json(folder / SETTINGS, settings)
                append_records(file, graded)
                records += graded
        return records

    def summary(self, folder: Path, records: Sequence[Record]) -> dict[str, Any]:
        """The figures of the records of a folder, with its settings.

        cut_short: the share of completions that a server's own context has ended, before the limit.
        """
        limit = self.sampling.max_completion_length
        ended = 0
        for record in records:
            if record.finish == "length" and record.tokens is not None and record.tokens < limit:
                ended += 1
        return {
            "settings": read_json(folder / SETTINGS),
            **summarize(records),
            "cut_short": ended / len(records),
        }

    def _note_served(
        self, served: str | None, settings: Mapping[str, Any], has_samples: bool
    ) -> None:
        """Say that a server has another model than the one that was asked for; InputError if it
        has changed between the samples.
        """
        model = settings["model"]
        if has_samples:
            before = settings[SERVED_MODEL] or model
            problem = (
                f"answers with the model {served or model}, and earlier samples are of {before}"
            )
            raise InputError(f"{settings['server']} {problem}; choose another folder", "server")
        text = (
            f"note: the server answers with the model {served}, and the results are recorded as its"
        )
        self.console.print(text, style="yellow", markup=False, soft_wrap=True)

    def _sample_chunk(
        self,
        engine: Engine,
        chunk: slice,
        draws: Sequence[Mapping[str, Any]],
        advance: Callable[[float], None],
    ) -> list[Record]:
        """Graded samples of a slice of the rows. advance: gets the number of rows that are done,
        with fractions.
        """
        conversations: list[Messages] = []
        prepared: list[dict[str, Any]] = []
        pictures: list[list[Any]] = []
        groups: list[list[Completion]] = []
        for row in self.dataset.rows[chunk]:
            conversations.append(row.messages)
            prepared.append(row.prepared)
            pictures.append(row.prepared.get(IMAGES) or [])
            groups.append([])
        seeds: list[int] = []  # of each completion of a group
        for number, draw in enumerate(draws):

            def on_progress(share: float, number: int = number) -> None:
                share_of_all = (number + share) / len(draws)
                advance(chunk.start + share_of_all * len(conversations))

            # Mixed with the chunk's first row: a command that goes on draws as if nothing had stopped it.
            seed = draw.get("seed", self.sampling.seed)
            options = {**draw, "seed": mixed_seed(seed, chunk.start)}
            if any(pictures):
                options["pictures"] = pictures
            drawn = engine.sample(conversations, on_progress=on_progress, **options)
            for group, completions in zip(groups, drawn, strict=True):
                group += completions
            seeds += [seed] * len(drawn[0])

        task, rewards = self.dataset.source.task, self.dataset.rewards
        records = grade_samples(task, prepared, conversations, groups, rewards=rewards)
        for record in records:
            record.index += chunk.start
            if len(draws) > 1:
                record.seed = seeds[record.sample]
        advance(chunk.stop)
        return records


def weights_digest(model: str) -> str | None:
    """Tells whether a folder's weights are still the same files, by name, size and time; None for a
    hub id.
    """
    # Not by their content: to read the weights of a large model takes minutes.
    stats = []
    for path in sorted(Path(model).expanduser().glob("*")):
        if path.suffix in (".safetensors", ".bin"):
            stats.append((path.name, path.stat().st_size, path.stat().st_mtime_ns))
    return _digest(stats) if stats else None


def _digest(value: Any) -> str:
    return sha256(json.dumps(value, default=str).encode()).hexdigest()[:16]


def _complete_records(folder: Path, settings: Mapping[str, Any], samples: int) -> list[Record]:
    """The records of the rows that are complete; the rest of an interrupted chunk is cut off the
    file.
    """
    file = folder / RECORDS
    with _locked(file) as log:
        # The file is opened at its end.
        if log.tell() == 0:
            return []
        if not (folder / SETTINGS).exists():
            raise InputError(
                f"{file} was not written by this command; choose another folder", "out"
            )
        _check_same_settings(folder / SETTINGS, settings)
        log.seek(0)
        # The last line may be half of one, and the last row may lack some of its samples.
        sizes = [len(line) for line in log if line.endswith(b"\n")]
        complete = len(sizes) // samples * samples
        records = list(islice(read_records(file), complete))
        # Numbers that were changed by hand, or sorted, would put completions beside other rows.
        for number, record in enumerate(records):
            if (record.index, record.sample) != divmod(number, samples):
                raise InputError(
                    f"{file}, line {number + 1}: does not match these settings; delete the folder to "
                    "start again"
                )
        log.truncate(sum(sizes[:complete]))
    return records


def _check_same_settings(file: Path, settings: Mapping[str, Any]) -> None:
    """InputError if a folder holds samples of other settings, naming what differs."""
    before = read_json(file)
    # Compared as JSON, in which a tuple is a list.
    now = json.loads(json.dumps(settings))
    differences = []
    for name, value in now.items():
        if name in _MAY_DIFFER or before.get(name) == value:
            continue
        if name in _IN_WORDS:
            differences.append(f"{_IN_WORDS[name]} differs")
        else:
            differences.append(f"{name} was {before.get(name)!r} and is {value!r}")
    if differences:
        raise InputError(
            f"{file.parent} holds samples with other settings: {'; '.join(differences[:5])}; "
            "choose another folder, or delete this one",
            "out",
        )


@contextmanager
def _locked(file: Path) -> Iterator[BinaryIO]:
    """The file, opened to be read and added to; InputError if another process has it or it
    cannot be written.
    """
    try:
        with file.open("a+b") as opened:
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"{file}: another command is writing to it", "out") from None
            yield opened
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}") from error


@contextmanager
def _progress(
    console: Console, first: int, rows: int, samples: int, known: int
) -> Iterator[Callable[[float], None]]:
    """Shows how many rows are done and the time left; yields the function to call with the
    number of rows that are done.

    On a terminal it is a bar, elsewhere a line now and then. Up to the row `known` the time left is
    what it takes if all completions get as long as they may, since their real length is not known.
    """
    begin = time.monotonic()
    columns = ("{task.description}", BarColumn(), TimeElapsedColumn(), "{task.fields[left]}")
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task(f"{rows:,} rows x {samples}", total=rows, completed=first, left="")
        last_line = begin

        def advance(done: float) -> None:
            nonlocal last_line
            now = time.monotonic()
            # Rows of an earlier command took no time in this one.
            seconds_a_row = (now - begin) / max(done - first, 1e-9)
            certainty = "about" if done >= known else "at most"
            left = f"{certainty} {clock(seconds_a_row * (rows - done))} left"
            progress.update(bar, completed=done, left=left)
            is_due = now - last_line > _SECONDS_BETWEEN_LINES
            if not console.is_terminal and is_due and done > first:
                last_line = now
                console.print(f"{int(done):,} of {rows:,} rows, {left}", soft_wrap=True)

        yield advance
    seconds = time.monotonic() - begin
    made = (rows - first) * samples
    console.print(f"sampled {made:,} completions in {seconds:.0f} s, {pace(made, seconds)}")
