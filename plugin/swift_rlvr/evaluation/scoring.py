"""Files of completions -> rewards, reasons and counts, on several cores; memory does not grow with the files.

For `swift-rlvr score`; `swift_rlvr.evaluation.completion_files` describes the lines. One that cannot be used is counted
and reported, and has no effect on others.
"""

import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from swift_rlvr.errors import InputError
from swift_rlvr.evaluation.completion_files import (
    FROM_PROMPT,
    Item,
    column_names,
    is_completion,
    read_items,
    with_columns_from_prompt,
)
from swift_rlvr.jsonl import LineError, brief, opened, read_jsonl, write_jsonl
from swift_rlvr.parallel import map_in_order, usable_cores
from swift_rlvr.rewards import REWARDS, Grade, Reward
from swift_rlvr.rewards.build import build_rewards, columns_for, missing_column
from swift_rlvr.runs.records import is_record

SHOWN_PROBLEMS = 10
_BLOCK = 1 << 18  # bytes graded at a time: few enough for the cores to share a file, enough to be worth handing over
_WORTH_A_WORKER = 1 << 20  # bytes: a process takes longer to start than Countdown takes to grade them


@dataclass
class Tally:
    """The grades that one reward gave to many completions, counted."""

    graded: int = 0
    ungraded: int = 0
    total: float = 0.0
    highest: float = -math.inf
    at_highest: int = 0
    reasons: Counter = field(default_factory=Counter)

    def add(self, grades: Sequence[Grade]) -> None:
        """Count some grades.

        >>> tally = Tally()
        >>> tally.add([Grade(1.0, "correct"), Grade(0.0, "no answer"), Grade(None, "bad gold")])
        >>> tally.total, tally.graded, tally.ungraded, tally.at_highest
        (1.0, 2, 1, 1)
        """
        values = [grade.reward for grade in grades if grade.reward is not None]
        self.reasons.update(grade.reason for grade in grades)
        self.ungraded += len(grades) - len(values)
        self.graded += len(values)
        self.total += math.fsum(values)
        highest = max([self.highest, *values])
        self.at_highest = values.count(highest) + (self.at_highest if highest == self.highest else 0)
        self.highest = highest

    def summary(self) -> dict[str, Any]:
        """The figures by name; mean, bounds and share are None where nothing was graded."""
        n = self.graded
        return {
            "mean": self.total / n if n else None,
            "highest": self.highest if n else None,
            "share_at_highest": self.at_highest / n if n else None,
            "graded": n,
            "ungraded": self.ungraded,
            "reasons": dict(self.reasons.most_common()),
        }


class Graded(NamedTuple):
    """The grades of one block of lines of a file, `size` bytes long.

    places: (line, position) of each completion. grades: for each reward, the grade of each completion.
    from_prompt: how many rows got nums and target from their prompt. problems: what cannot be used, where and why.
    """

    file: str
    size: int
    places: list[tuple[int, int | None]]
    grades: list[list[Grade]]
    from_prompt: int
    problems: list[str]


class EarlierVerdict(NamedTuple):
    """What rewards have said of one completion."""

    rewards: Mapping[str, float | None]
    reasons: Mapping[str, str]


def grade_block(part: tuple[str, int, bytes], rewards: Sequence[Reward]) -> Graded:
    """Grade the completions of a part of a file, as `read_blocks` yields it."""
    file, first, block = part
    needed = frozenset(name for reward in rewards for name in reward.columns)
    usable: list[tuple[int, Item]] = []
    problems: list[str] = []
    from_prompt = 0
    for number, line in enumerate(block.split(b"\n"), start=first):
        if not line or line.isspace():
            continue
        try:
            items = read_items(line)
        except LineError as error:
            problems.append(f"{file}, line {number}: {error}")
            continue
        for item in items:
            if not needed <= item.row.keys() and needed >= FROM_PROMPT:
                row = with_columns_from_prompt(item.row)
                from_prompt += row is not item.row
                item = item._replace(row=row)
            problem = _problem(item.completion, item.row, rewards)
            if problem:
                within = "" if item.position is None else f", completion {item.position}"
                problems.append(f"{file}, line {number}{within}: {problem}")
            else:
                usable.append((number, item))
    completions, rows = [item.completion for _, item in usable], [item.row for _, item in usable]
    grades = [reward.grades(completions, **columns_for(reward, rows)) for reward in rewards]
    places = [(number, item.position) for number, item in usable]
    return Graded(file, len(block), places, grades, from_prompt, problems)


def _problem(completion: object, row: Mapping[str, Any], rewards: Iterable[Reward]) -> str | None:
    if not is_completion(completion):
        return f"expected a text or a list of messages, got {brief(completion)}"
    for reward in rewards:
        name = missing_column(reward, row)
        if name is not None:
            return f"{reward.name} needs the column {name!r}, and there is {column_names(row)}"
    return None


class Scoring:
    """One run over some .jsonl files; InputError for one that cannot be read or is empty.

    Args:
        workers: processes; None for one a core, or fewer where the files are too small to be worth it.
        advance: called with the number of bytes done since it was last called.
        against: earlier verdicts by (line, position), see `stored_verdicts`; `changed` lists those that are others now.
    """

    def __init__(
        self,
        files: Sequence[str | Path],
        rewards: Sequence[Reward],
        workers: int | None = None,
        advance: Callable[[int], object] = lambda size: None,
        against: Mapping[tuple[int, int | None], EarlierVerdict] | None = None,
    ):
        self.files = list(dict.fromkeys(map(str, files)))  # one that is named twice counts once
        self.rewards, self.advance = rewards, advance
        self.size = sum(map(_file_size, self.files))
        self.workers = workers or max(1, min(usable_cores(), self.size // _WORTH_A_WORKER))
        self.against, self.changed = against, list[dict[str, Any]]()
        self.completions = self.from_prompt = self.unusable = self.compared = 0
        self.problems: list[str] = []
        self.tallies = [Tally() for _ in rewards]
        self.seconds = 0.0

    def run(self, out: str | Path | None = None) -> dict[str, Any]:
        """Grade everything, write one record a completion to the file `out` if there is one; returns the summary."""
        if out is None:
            for _ in self.verdicts():
                pass
        elif Path(out).resolve() in [Path(path).resolve() for path in self.files]:
            raise InputError(f"{out}: this is a file to be graded, and would be replaced", field="out")
        else:
            write_jsonl(out, self.verdicts())
        return self.summary()

    def verdicts(self) -> Iterator[dict[str, Any]]:
        """Grade everything, yielding what is said of each completion, in order, with its file, line and position."""
        start = time.perf_counter()
        names = [reward.name for reward in self.rewards]
        grade: Callable[[tuple[str, int, bytes]], Graded] = partial(grade_block, rewards=self.rewards)
        for block in map_in_order(grade, read_blocks(self.files), self.workers):
            self.problems += block.problems[: SHOWN_PROBLEMS - len(self.problems)]
            self.unusable += len(block.problems)
            self.completions += len(block.places)
            self.from_prompt += block.from_prompt
            for tally, counted in zip(self.tallies, block.grades, strict=True):
                tally.add(counted)
            for (line, position), grades in zip(block.places, zip(*block.grades, strict=True), strict=True):
                verdict = {
                    "file": block.file,
                    "line": line,
                    **({} if position is None else {"position": position}),
                    "rewards": {name: grade.reward for name, grade in zip(names, grades, strict=True)},
                    "reasons": {name: grade.reason for name, grade in zip(names, grades, strict=True)},
                }
                self.compare(verdict)
                yield verdict
            self.advance(block.size)
        self.seconds = time.perf_counter() - start
        if not self.completions:
            named = "; ".join(self.problems[:3])
            raise InputError(f"no line can be used: {named}" if named else "no completions: there are only empty lines")

    def compare(self, verdict: Mapping[str, Any]) -> None:
        """Take note of each reward that says something else than the verdicts of `against`."""
        before = (self.against or {}).get((verdict["line"], verdict.get("position")), EarlierVerdict({}, {}))
        for name in verdict["rewards"].keys() & before.rewards.keys():
            self.compared += 1
            was, now = before.rewards[name], verdict["rewards"][name]
            if was is not now and (was is None or now is None or not math.isclose(was, now, abs_tol=1e-6)):
                reasons = before.reasons.get(name, ""), verdict["reasons"][name]
                where = {key: verdict[key] for key in ("file", "line", "position") if key in verdict}
                self.changed.append({**where, "reward": name, "before": [was, reasons[0]], "now": [now, reasons[1]]})

    def summary(self) -> dict[str, Any]:
        """All counts and figures, by name. `unusable` counts lines, and single completions of lines with many."""
        return {
            "files": self.files,
            "completions": self.completions,
            "from_prompt": self.from_prompt,
            "unusable": self.unusable,
            **({"compared": self.compared, "changed": self.changed} if self.against is not None else {}),
            "problems": self.problems,
            "workers": self.workers,
            "seconds": round(self.seconds, 3),
            "completions_per_second": round(self.completions / max(self.seconds, 1e-9)),
            "rewards": {
                reward.name: {**tally.summary(), "parameters": asdict(reward.parameters)}
                for reward, tally in zip(self.rewards, self.tallies, strict=True)
            },
        }


def stored_verdicts(path: str | Path) -> dict[tuple[int, int | None], EarlierVerdict]:
    """What a file says of completions, by line and position: records, or what `swift-rlvr score --out` wrote of others.

    InputError for a line that has no rewards.
    """
    found: dict[tuple[int, int | None], EarlierVerdict] = {}
    for number, row in read_jsonl(path):
        if not isinstance(row.get("rewards"), Mapping):
            raise InputError(f"{path}, line {number}: no rewards; expected records, or what `score --out` writes")
        position = None if is_record(row) else row.get("position")
        line = number if is_record(row) else int(row.get("line", number))
        found[line, position] = EarlierVerdict(row["rewards"], row.get("reasons") or {})
    return found


def read_blocks(files: Iterable[str]) -> Iterator[tuple[str, int, bytes]]:
    """Yield (file, number of a line from 1, that line and some more), in order."""
    for path in files:
        with opened(path) as file:
            number = 1
            while block := file.read(_BLOCK):
                block += file.readline()
                yield path, number, block
                number += block.count(b"\n")


def _file_size(path: str) -> int:
    with opened(path) as file:
        size = file.seek(0, os.SEEK_END)
    if not size:
        raise InputError(f"{path}: the file is empty; expected completions, one a line")
    return size


def default_rewards(files: Iterable[str | Path], settings: Sequence[str] = ()) -> list[Reward]:
    """The rewards whose columns the first usable line has, without those that run code; InputError where none fits."""
    where, row = _first_row(files)
    plain = [name for name, reward in REWARDS.items() if not reward.runs_code]
    # Built before their columns are read: those of a reward may depend on its parameters.
    built = [reward for reward in build_rewards(plain, settings) if not reward.runs_code]
    fitting = [reward.name for reward in built if set(reward.columns) <= row.keys()]
    if not fitting:
        raise InputError(
            f"{where}: no reward fits {column_names(row)}; choose one with --reward_funcs: {', '.join(REWARDS)}"
        )
    return build_rewards(fitting, settings)  # again, so that a setting for one that does not fit is refused


def _first_row(files: Iterable[str | Path]) -> tuple[str, dict[str, Any]]:
    problem = None
    for path in files:
        with opened(path) as file:
            for number, line in enumerate(file, start=1):
                where = f"{path}, line {number}"
                try:
                    items = read_items(line) if line.strip() else []
                except LineError as error:
                    problem = problem or f"{where}: {error}"
                    continue
                if items and is_completion(items[0].completion):
                    return where, with_columns_from_prompt(items[0].row)
    raise InputError(f"no line can be used; {problem}" if problem else "no completions: there are only empty lines")
