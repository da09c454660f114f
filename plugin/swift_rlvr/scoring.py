r"""Files of completions -> rewards, reasons and counts: on several cores, and in memory that does not grow with the file.

    swift-rlvr score eval/before/records.jsonl --out graded.jsonl

A line is one of these; a file may mix them:

- ``{"completion": ..., "nums": [3, 5, 7], "target": 22}``: one completion, a text or a list of messages, and its
  columns. `swift-rlvr evaluate` writes such lines. Where there is no `completion`, `response` is taken, as
  `swift infer` writes it.
- ``{"step": [...], "prompt": [...], "completion": [...], ...}``: many completions, in lists of equal length, one value
  for each. ms-swift's completions.jsonl has one such table a logging step, without the columns of the dataset; nums and
  target are then read from the prompt, if that is the one of the Countdown task.

A line that cannot be used is counted and named, and never touches its neighbours.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from multiprocessing import connection, resource_tracker
from pathlib import Path
from typing import Any, NamedTuple

from swift_rlvr.answers import completion_text
from swift_rlvr.jsonl import InputError, write_jsonl
from swift_rlvr.rewards import REWARDS, Grade, Reward
from swift_rlvr.rewards.parameters import read_parameters, variable
from swift_rlvr.tasks.countdown import read_prompt

COMPLETION_KEYS = ("completion", "response")
SHOWN_PROBLEMS = 10
_BLOCK = 1 << 18  # bytes graded at a time: so few that cores share small files, so many that handing over costs little
_WORTH_A_WORKER = 1 << 20  # bytes: a process takes about as long to start as Countdown takes to grade 10 times as many
_RECOVERED = frozenset(("nums", "target"))


class LineError(ValueError):
    """A line, or one completion in it, that cannot be graded; the message says why."""


class Item(NamedTuple):
    """One completion of a file."""

    position: int | None
    """From 1, in a line that holds many; None in a line of its own."""
    completion: object
    row: dict[str, Any]
    """Its columns, and whatever else stands beside it."""


class Problem(NamedTuple):
    """What could not be used, and why."""

    line: int
    position: int | None
    message: str

    def describe(self, file: str) -> str:
        where = f"{file}, line {self.line}" + (f", completion {self.position}" if self.position else "")
        return f"{where}: {self.message}"


def full_name(name: str) -> str:
    """A reward's name in the registry, which may be given without its prefix; InputError for an unknown one.

    >>> full_name("countdown"), full_name("external_countdown")
    ('external_countdown', 'external_countdown')
    """
    for known in (name, f"external_{name}"):
        if known in REWARDS:
            return known
    raise InputError(f"--reward: there is no {name!r}; the rewards are {', '.join(REWARDS)}")


def build_rewards(names: Iterable[str], settings: Iterable[str] = ()) -> list[Reward]:
    """Build rewards with parameters written as `NAME=VALUE`, for each reward that has one, or `REWARD.NAME=VALUE`.

    A parameter not given here is taken from its environment variable, else it has its default.

    >>> build_rewards(["countdown"], ["notation=strict"])[0].parameters.notation
    'strict'
    """
    names = list(dict.fromkeys(map(full_name, names)))
    known = {name: [each.name for each in fields(REWARDS[name].Parameters)] for name in names}
    given: dict[str, dict[str, str]] = {name: {} for name in names}
    for setting in settings:
        key, equals, value = setting.partition("=")
        reward, dot, key = key.strip().rpartition(".")
        if not equals or not key:
            raise InputError(f"--set: expected NAME=VALUE or REWARD.NAME=VALUE, got {setting!r}")
        takers = [name for name in ([full_name(reward)] if dot else names) if key in known.get(name, ())]
        if not takers:
            has = "; ".join(f"{name} has {', '.join(known[name])}" for name in names)
            raise InputError(f"--set {setting}: no such parameter; {has}")
        for name in takers:
            given[name][key] = value
    return [_build(name, given[name]) for name in names]


def _build(name: str, given: Mapping[str, str]) -> Reward:
    # Values travel as environment variables would, so that the same text means the same in both.
    variables = {variable(name, key): value for key, value in given.items()}
    kind = REWARDS[name].Parameters
    try:
        read = read_parameters(kind, name, environment={**os.environ, **variables}, other_names=REWARDS)
        return REWARDS[name](**{key: getattr(read, key) for key in given})
    except ValueError as error:
        message = str(error)
        for key in given:
            message = message.replace(variable(name, key), f"--set {key}")
        raise InputError(message) from error


def read_items(line: bytes | str) -> list[Item]:
    """The completions of one line; LineError where it has none or is malformed.

    >>> read_items('{"completion": "<answer>1+2</answer>", "nums": [1, 2], "target": 3}')[0].row["target"]
    3
    >>> [(item.position, item.completion) for item in read_items('{"step": ["7", "7"], "completion": ["a", "b"]}')]
    [(1, 'a'), (2, 'b')]
    """
    try:
        row = json.loads(line)
    except UnicodeDecodeError as error:
        raise LineError(f"not UTF-8 text ({error.reason} at byte {error.start})") from error
    except RecursionError as error:
        raise LineError("not JSON that can be read (nested too deeply)") from error
    except ValueError as error:
        raise LineError(f"not JSON ({error})") from error
    if not isinstance(row, dict):
        raise LineError(f"expected an object such as {{...}}, got {_brief(row)}")
    key = next((key for key in COMPLETION_KEYS if key in row), None)
    if key is None:
        raise LineError(f"no completion: expected 'completion' or 'response', got {_names(row)}")
    value = row[key]
    if _is_completion(value):
        return [Item(None, value, row)]
    lists = {name: values for name, values in row.items() if isinstance(values, list)}
    if key not in lists or lists.keys() == {key} and not value:
        raise LineError(f"{key}: expected a text, a list of messages or a list of completions, got {_brief(value)}")
    for name, values in lists.items():
        if len(values) != len(value):
            raise LineError(f"lists of unequal length: {key} has {len(value)}, {name} has {len(values)}")
    rows = map(dict, zip(*([(name, each) for each in values] for name, values in lists.items()), strict=True))
    return [Item(number, row[key], row) for number, row in enumerate(rows, start=1)]


def with_recovered_columns(row: dict[str, Any]) -> dict[str, Any]:
    """The row with nums and target from its prompt, if it has neither and the prompt asks for them; else the row.

    The prompt is `prompt`, a text or messages, or the last turn of the user in `messages`.
    """
    if _RECOVERED & row.keys():
        return row
    prompt = row.get("prompt")
    if prompt is None and isinstance(row.get("messages"), list):
        turns = [turn for turn in row["messages"] if isinstance(turn, dict) and turn.get("role") == "user"]
        prompt = turns[-1:]
    task = read_prompt(completion_text(prompt) or "")
    return row if task is None else {**row, "nums": task[0], "target": task[1]}


def needs(reward: Reward, row: Mapping[str, Any]) -> str | None:
    """The first column that a reward lacks in a row, or None; a row of another task need not have any."""
    own, task = reward.parameters.tasks, row.get("task")
    if own and task is not None and task not in own:
        return None
    return next((name for name in reward.columns if name not in row), None)


def columns(reward: Reward, rows: Sequence[Mapping[str, Any]]) -> dict[str, list]:
    """The columns that a reward uses, one value per row; what a row lacks is None, as ms-swift has it."""
    used = (*reward.columns, *reward.optional_columns, "task")
    return {name: [row.get(name) for row in rows] for name in used}


def default_rewards(files: Iterable[str | Path]) -> list[str]:
    """The rewards whose columns the first usable line has, apart from those that run the code of a completion."""
    problem = None
    for path in files:
        with _opened(path) as file:
            for number, line in enumerate(file, start=1):
                try:
                    item = next(iter(read_items(line)), None) if line.strip() else None
                except LineError as error:
                    problem = problem or Problem(number, None, str(error)).describe(str(path))
                    continue
                if item is not None and _is_completion(item.completion):
                    row = with_recovered_columns(item.row)
                    fitting = [name for name, reward in REWARDS.items() if set(reward.columns) <= row.keys()]
                    chosen = [name for name in fitting if not getattr(REWARDS[name], "runs_code", False)]
                    if not chosen:
                        raise InputError(
                            f"{path}, line {number}: {_names(row)} are the columns of no reward; "
                            f"choose one with --reward: {', '.join(REWARDS)}"
                        )
                    return chosen
    raise InputError(f"no line can be used; the first: {problem}" if problem else "no completions: all files are empty")


@dataclass
class Tally:
    """What one reward said about many completions."""

    graded: int = 0
    ungraded: int = 0
    total: float = 0.0
    lowest: float = math.inf
    highest: float = -math.inf
    at_highest: int = 0
    reasons: Counter = field(default_factory=Counter)

    @classmethod
    def of(cls, grades: Sequence[Grade]) -> Tally:
        values = [grade.reward for grade in grades if grade.reward is not None]
        reasons = Counter(grade.reason for grade in grades)
        if not values:
            return cls(ungraded=len(grades), reasons=reasons)
        top = max(values)
        ungraded = len(grades) - len(values)
        return cls(len(values), ungraded, math.fsum(values), min(values), top, values.count(top), reasons)

    def add(self, other: Tally) -> None:
        """Count what another part of the completions got."""
        if other.highest >= self.highest:
            kept = self.at_highest if other.highest == self.highest else 0
            self.highest, self.at_highest = other.highest, kept + other.at_highest
        self.lowest = min(self.lowest, other.lowest)
        self.graded += other.graded
        self.ungraded += other.ungraded
        self.total += other.total
        self.reasons.update(other.reasons)

    def summary(self) -> dict[str, Any]:
        """The figures by name; None for those of which there are none where nothing was graded."""
        n = self.graded
        return {
            "mean": self.total / n if n else None,
            "lowest": self.lowest if n else None,
            "highest": self.highest if n else None,
            "share_at_highest": self.at_highest / n if n else None,
            "graded": n,
            "ungraded": self.ungraded,
            "reasons": dict(self.reasons.most_common()),
        }


class Graded(NamedTuple):
    """What came of one block of lines; small, because workers send it."""

    lines: int
    completions: int
    recovered: int
    tallies: list[Tally]
    unusable: int
    problems: list[Problem]
    records: list[tuple]
    """(line, position, rewards, reasons) of each completion, where that is wanted."""


def grade_block(rewards: Sequence[Reward], block: bytes, keep_records: bool) -> Graded:
    """Grade the completions of some lines, which are counted from 1."""
    needed = {name for reward in rewards for name in reward.columns}
    wants_task = needed >= _RECOVERED
    places, completions, rows, problems = [], [], [], []
    recovered = unusable = 0
    lines = block.split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line or line.isspace():
            continue
        position = None
        try:
            for position, completion, row in read_items(line):
                try:
                    if position is not None and not _is_completion(completion):
                        raise LineError(f"expected a text or a list of messages, got {_brief(completion)}")
                    if wants_task and not needed <= row.keys():
                        found = with_recovered_columns(row)
                        recovered += found is not row
                        row = found
                    if not needed <= row.keys():
                        _check_columns(rewards, row)
                except LineError as error:
                    unusable += 1
                    problems.append(Problem(number, position, str(error)))
                    continue
                places.append((number, position))
                completions.append(completion)
                rows.append(row)
        except LineError as error:
            unusable += 1
            problems.append(Problem(number, None, str(error)))
    graded = [reward.grades(completions, **columns(reward, rows)) for reward in rewards]
    records = []
    if keep_records:
        by_completion = zip(*graded, strict=True)
        for place, grades in zip(places, by_completion, strict=True):
            records.append((*place, [grade.reward for grade in grades], [grade.reason for grade in grades]))
    count = len(lines) - (not lines[-1])
    tallies = list(map(Tally.of, graded))
    return Graded(count, len(places), recovered, tallies, unusable, problems[:SHOWN_PROBLEMS], records)


def _check_columns(rewards: Sequence[Reward], row: Mapping[str, Any]) -> None:
    for reward in rewards:
        name = needs(reward, row)
        if name is not None:
            raise LineError(f"{reward.name} needs the column {name!r}, and there is {_names(row)}")


@dataclass
class Scoring:
    """One run over some files. `records` does the work; afterwards `summary` tells what came of it.

    strict: the first problem raises InputError. workers: None for as many as there are cores and the size is worth.
    advance: called with the number of bytes that have been graded since the last call.
    """

    files: Sequence[str | Path]
    rewards: Sequence[Reward]
    workers: int | None = None
    strict: bool = False
    advance: Callable[[int], None] = lambda count: None

    def __post_init__(self):
        self.size = sum(_size(path) for path in self.files)
        if self.workers is None:
            self.workers = max(1, min(usable_cores(), self.size // _WORTH_A_WORKER))
        self.completions = self.recovered = self.unusable = 0
        self.problems: list[str] = []
        self.tallies = [Tally() for _ in self.rewards]
        self.seconds = 0.0

    def run(self, out: str | Path | None = None) -> dict[str, Any]:
        """Grade everything, write one record per completion to the file `out` if one is given; returns the summary."""
        if out is None:
            deque(self.records(keep=False), maxlen=0)
        elif Path(out).resolve() in [Path(path).resolve() for path in self.files]:
            raise InputError(f"--out {out}: is one of the files to be graded, and would replace it")
        else:
            write_jsonl(out, self.records())
        return self.summary()

    def records(self, keep: bool = True) -> Iterator[dict[str, Any]]:
        """Grade everything and yield one record per completion, in order; with `keep` False none, only counting."""
        start = time.perf_counter()
        names = [reward.name for reward in self.rewards]
        file, lines = None, 0
        for path, size, graded in grade_blocks(read_blocks(self.files), self.rewards, keep, self.workers):
            if path != file:
                file, lines = path, 0
            self._count(str(file), lines, graded)
            self.advance(size)
            for line, position, rewards, reasons in graded.records:
                place = {"file": str(file), "line": lines + line} | ({"item": position} if position else {})
                graded_by_name = {name: {"reward": r, "reason": why} for name, r, why in zip(names, rewards, reasons)}
                yield {**place, "rewards": graded_by_name}
            lines += graded.lines
        self.seconds = time.perf_counter() - start
        if not self.completions:
            named = "; ".join(self.problems[:3])
            raise InputError(f"no line can be used: {named}" if named else "no completions: there are only empty lines")

    def _count(self, file: str, lines: int, graded: Graded) -> None:
        problems = [Problem(lines + line, *rest).describe(file) for line, *rest in graded.problems]
        if self.strict and problems:
            raise InputError(problems[0])
        self.problems += problems[: SHOWN_PROBLEMS - len(self.problems)]
        self.completions += graded.completions
        self.recovered += graded.recovered
        self.unusable += graded.unusable
        for tally, other in zip(self.tallies, graded.tallies, strict=True):
            tally.add(other)

    def summary(self) -> dict[str, Any]:
        """All counts and figures, by name."""
        return {
            "files": list(map(str, self.files)),
            "completions": self.completions,
            "recovered_from_prompt": self.recovered,
            "unusable": self.unusable,
            "problems": self.problems,
            "workers": self.workers,
            "seconds": round(self.seconds, 3),
            "completions_per_second": round(self.completions / self.seconds) if self.seconds else None,
            "rewards": {
                reward.name: {**tally.summary(), "parameters": asdict(reward.parameters)}
                for reward, tally in zip(self.rewards, self.tallies, strict=True)
            },
        }


def usable_cores() -> int:
    """How many cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def read_blocks(files: Iterable[str | Path]) -> Iterator[tuple[str | Path, bytes]]:
    """Yield (file, some whole lines of it), in order."""
    for path in files:
        with _opened(path) as file:
            while block := file.read(_BLOCK):
                yield path, block + file.readline()


def grade_blocks(
    blocks: Iterable[tuple[str | Path, bytes]], rewards: Sequence[Reward], keep_records: bool, workers: int
) -> Iterator[tuple[str | Path, int, Graded]]:
    """Yield (file, size, what came of it) for each block, in order; with one worker in this very process.

    Each worker has one block at a time, and blocks are read only as they are needed. A worker sees the end of its pipe
    and ends when this process is gone, however it went. Workers are not daemons: a reward may start processes.
    """
    if workers == 1:
        for path, block in blocks:
            yield path, len(block), grade_block(rewards, block, keep_records)
        return
    pipes: dict[connection.Connection, multiprocessing.Process] = {}
    try:
        for _ in range(workers):
            pipe, process = _start_worker(rewards, keep_records)
            pipes[pipe] = process
        yield from _in_order(iter(blocks), pipes)
    finally:
        for pipe, process in pipes.items():
            process.terminate()
            process.join()
            pipe.close()


def _in_order(blocks: Iterator[tuple[str | Path, bytes]], pipes: Mapping) -> Iterator[tuple[str | Path, int, Graded]]:
    idle, busy, done = list(pipes), {}, {}  # busy: pipe -> (number, file, size)
    window = 4 * len(pipes)  # blocks under way or waiting for an earlier one: what a slow one may hold up
    sent = wanted = 0
    more = True
    while more or busy:
        while more and idle and len(busy) + len(done) < window:
            path, block = next(blocks, (None, None))
            if block is None:
                more = False
                break
            pipe = idle.pop()
            with _watched(pipes[pipe]):
                pipe.send_bytes(block)
            busy[pipe] = sent, path, len(block)
            sent += 1
        while wanted in done:
            yield done.pop(wanted)
            wanted += 1
        for pipe in connection.wait(list(busy)) if busy else ():
            number, path, size = busy.pop(pipe)
            with _watched(pipes[pipe]):
                done[number] = path, size, pipe.recv()
            idle.append(pipe)
    while wanted in done:
        yield done.pop(wanted)
        wanted += 1


@contextmanager
def _watched(process: multiprocessing.Process) -> Iterator[None]:
    try:
        yield
    except (EOFError, OSError) as error:
        process.join(1)
        raise RuntimeError(
            f"a process that grades ended with exit code {process.exitcode}; what went wrong stands above, "
            "unless it was killed, for instance for want of memory"
        ) from error


def _start_worker(rewards: Sequence[Reward], keep_records: bool):
    context = multiprocessing.get_context("spawn")  # not fork: threads may be running, of a progress bar or of torch
    resource_tracker.ensure_running()  # it would otherwise start below, and let interrupts through again
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, rewards, keep_records))
    # A Ctrl-C reaches every process of the terminal; it is this one that ends the workers, so they start without.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
    return ours, process


def _work(pipe: connection.Connection, rewards: Sequence[Reward], keep_records: bool) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    while True:
        try:
            block = pipe.recv_bytes()
        except EOFError:
            return
        pipe.send(grade_block(rewards, block, keep_records))


@contextmanager
def _opened(path: str | Path) -> Iterator[Any]:
    try:
        with Path(path).open("rb") as file:
            yield file
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def _size(path: str | Path) -> int:
    if not Path(path).is_file():
        problem = "expected a file of lines, as evaluate writes them" if Path(path).exists() else "no such file"
        raise InputError(f"cannot read {path}: {problem}")
    size = Path(path).stat().st_size
    if not size:
        raise InputError(f"{path}: the file is empty; expected a completion on each line")
    return size


def _is_completion(value: object) -> bool:
    if isinstance(value, str):
        return True
    return isinstance(value, list) and bool(value) and isinstance(value[-1], dict) and "content" in value[-1]


def _brief(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _names(row: Mapping[str, Any]) -> str:
    names = ", ".join(map(repr, row)) or "nothing"
    return names if len(names) <= 120 else f"{names[:117]}..."
