"""The folder of a run -> its steps, held-out evaluations, alarms, settings and completions, as far as there are any.

A run that is still training has half a last line in any of its files, which is left out, and may lack any file but the
log; `Run.notes` says what is missing.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from swift_rlvr.errors import InputError
from swift_rlvr.jsonl import LineError, opened, parse_object, read_json
from swift_rlvr.runs.alarms import read_alarms
from swift_rlvr.runs.folder import ARGS, COMPLETIONS, LOG, REASONS, find_run
from swift_rlvr.runs.turns import first_prompts

ALARMS, HELD_OUT = "alarms.jsonl", "held_out.jsonl"


class Table(NamedTuple):
    """Where a table of completions stands in COMPLETIONS, and for each of them its step and its place there."""

    offset: int
    steps: list[int]
    places: list[int]
    groups: list[int]  # a number that is the same for the same prompt within the table, before any answer
    characters: int  # of all texts, each prompt once


@dataclass
class Run:
    """What the files of a run hold. steps, held_out: logged lines, each with `step`; last: the step it is to reach."""

    folder: Path
    label: str
    steps: list[dict[str, Any]] = field(default_factory=list)
    held_out: list[dict[str, Any]] = field(default_factory=list)
    last: int | None = None
    alarms: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    tables: list[Table] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_run(path: str | Path, label: str = "") -> Run:
    """Everything about a run but its completions' texts; InputError where a line is damaged or no log is there."""
    folder = find_run(path)
    run = Run(folder, label or folder.name)
    run.steps, run.held_out, run.last = _read_log(folder / LOG, run.notes)
    if not run.steps:
        run.notes.append(f"{LOG} has no training step yet: there are no curves")
    elif run.last is not None and run.steps[-1]["step"] < run.last:
        reached = run.steps[-1]["step"]
        run.notes.append(f"step {reached} of {run.last} is the last one logged: it is still training, or was stopped")
    run.tables = index_completions(folder, run.notes)
    if not run.tables:
        absent = "is empty" if (folder / COMPLETIONS).is_file() else "is not there"
        run.notes.append(f"{COMPLETIONS} {absent}: there are no completions (ms-swift: --log_completions true)")
    if (folder / ALARMS).is_file():
        run.alarms = [row for *_, row in _whole_lines(folder / ALARMS, run.notes)]
    elif run.steps:
        run.alarms = list(_raised(folder))
        if run.alarms:
            run.notes.append(f"there is no {ALARMS}: the alarms are those that the log raises now")
    if (folder / ARGS).is_file():
        try:
            run.settings = read_json(folder / ARGS)
        except InputError as error:
            run.notes.append(f"the settings cannot be read: {error}")
    return run


def read_runs(paths: Sequence[str | Path]) -> list[Run]:
    """Several runs, each with a label of its own: the parts of the paths in which they differ."""
    folders = [find_run(path) for path in paths]
    return [read_run(folder, label) for folder, label in zip(folders, labels(folders), strict=True)]


def labels(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that differ, without what all end in.

    >>> labels([Path("out/stable/run"), Path("out/unstable/run")]), labels([Path("a/b/c/run"), Path("d/e")])
    (['stable', 'unstable'], ['run', 'e'])
    """
    if len(folders) == 1:
        return [folders[0].resolve().name]
    parts = [folder.resolve().parts for folder in folders]
    if len(set(parts)) < len(parts):
        raise InputError("the same run is named twice", field="runs")
    while len({part[-1] for part in parts}) == 1 and min(map(len, parts)) > 1:
        parts = [part[:-1] for part in parts]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            break
    return names


def read_steps(run: str | Path) -> list[dict[str, Any]]:
    """The training steps of a run in order, each with `step` (from 1); of one that a resumed run repeats, the last."""
    path = Path(run) / LOG
    steps, _, _ = _read_log(path, [])
    if not steps:
        raise InputError(f'{path}: no training step is logged, no line has "reward"')
    return steps


def _read_log(path: Path, notes: list[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int | None]:
    steps: dict[int, dict[str, Any]] = {}
    held_out: dict[int, dict[str, Any]] = {}
    last = None
    for number, _, row in _whole_lines(path, notes):
        evaluated = {key: value for key, value in row.items() if key.startswith("eval")}
        if "reward" not in row and not evaluated:
            continue  # the end of the training
        place = re.match(r"([0-9]+)/([0-9]+)", str(row.get("global_step/max_steps")))
        if place is None:
            raise InputError(f'{path}, line {number}: expected "global_step/max_steps" such as "7/100"')
        step, last = int(place[1]), int(place[2])
        if "reward" in row:
            steps[step] = {"step": step, **row}
        if evaluated:
            held_out[step] = held_out.get(step, {"step": step}) | evaluated
    return [steps[step] for step in sorted(steps)], [held_out[step] for step in sorted(held_out)], last


def read_completions(run: str | Path) -> list[dict[str, Any]]:
    """The logged tables of completions in order, each a dict of lists of equal length; [] where none was logged."""
    return [table for _, table in tables_of(Path(run), index_completions(run, []))]


def index_completions(run: str | Path, notes: list[str]) -> list[Table]:
    """Where the tables of COMPLETIONS stand. Of those that a resumed run has made again, the last count."""
    path = Path(run) / COMPLETIONS
    tables: list[Table] = []
    if not path.is_file():
        return tables
    before: dict[str, Any] | None = None
    made: Counter[int] = Counter()  # completions so far, by step
    for number, offset, row in _whole_lines(path, notes):
        _check_table(row, f"{path}, line {number}")
        texts = row["completion"]
        if not texts or (before is not None and row["step"] == before["step"] and texts == before["completion"]):
            continue  # ms-swift writes the last table again when the training ends
        steps = [_step(value, f"{path}, line {number}") for value in row["step"]]
        if tables and steps[0] < tables[-1].steps[0]:  # a resumed run makes them again
            tables = [table for table in tables if table.steps[0] < steps[0]]
            made = Counter(step for table in tables for step in table.steps)
        places = []
        for step in steps:
            places.append(made[step])
            made[step] += 1
        prompts: dict[str, int] = {}
        groups = [prompts.setdefault(_key(prompt), len(prompts)) for prompt in first_prompts(row)]
        tables.append(Table(offset, steps, places, groups, sum(map(_size, (*texts, *prompts)))))
        before = row
    return tables


def tables_of(run: Path, tables: Sequence[Table]) -> Iterator[tuple[Table, dict[str, Any]]]:
    """The tables that stand at these places."""
    if not tables:
        return
    with opened(run / COMPLETIONS) as file:
        for table in tables:
            file.seek(table.offset)
            yield table, parse_object(file.readline())


def _raised(folder: Path) -> Iterator[dict[str, Any]]:
    """The alarms of a run that had none; up to a line whose end is not written yet."""
    with suppress(InputError):
        for alarm in read_alarms(folder):
            yield alarm.as_json()


def read_held_out(run: Run) -> Iterator[dict[str, Any]]:
    """The graded completions of held-out rows, each with its `step` and `index`; of repeated ones the last."""
    path = run.folder / HELD_OUT
    if path.is_file():
        needed = {"step", "index", "completion", "reward"}
        rows = (row for *_, row in _whole_lines(path, run.notes) if needed <= row.keys())
        yield from {(row["step"], row["index"], row.get("sample")): row for row in rows}.values()


def read_reasons(run: Run) -> dict[tuple[int, int], dict[str, Any]]:
    """The line of each completion in REASONS, by its step and its place there; of repeated ones the last."""
    path = run.folder / REASONS
    if not path.is_file():
        return {}
    rows = (row for *_, row in _whole_lines(path, run.notes) if row.get("mode", "train") == "train")
    return {(row["step"], row["index"]): row for row in rows if {"step", "index", "rewards", "reasons"} <= row.keys()}


def _whole_lines(path: Path, notes: list[str]) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """(number from 1, offset, object) of every line; a last one whose end is not written yet is left out and noted."""
    with opened(path) as file:
        offset = 0
        for number, line in enumerate(file, start=1):
            if not line.isspace():
                try:
                    yield number, offset, parse_object(line)
                except LineError as error:
                    if line.endswith(b"\n"):
                        raise InputError(f"{path}, line {number}: {error}") from error
                    notes.append(f"{path.name}, line {number}, is left out: its end is not written yet")
            offset += len(line)


def _check_table(row: dict[str, Any], where: str) -> None:
    if not {"step", "prompt", "completion"} <= row.keys():
        raise InputError(f"{where}: expected the lists step, prompt and completion")
    for name in ("step", "prompt", "completion"):
        if not isinstance(row[name], list) or len(row[name]) != len(row["completion"]):
            raise InputError(f"{where}: {name} must be a list with one value for each completion")


def _step(value: Any, where: str) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise InputError(f"{where}: expected a step such as 7, got {value!r:.40}") from None


def _key(prompt: Any) -> str:
    return prompt if isinstance(prompt, str) else json.dumps(prompt)


def _size(text: Any) -> int:
    return len(_key(text))
