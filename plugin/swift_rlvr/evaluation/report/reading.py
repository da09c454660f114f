"""What the report reads of a training's folder: the log, the graded completions, the settings, the alarms.

A run of ours has its graded completions in RECORDS and the roles of its rewards in REWARDS. Of a run of ms-swift
without our callback the tables of COMPLETIONS are read instead, and the roles are those of known names; `notes` says
so.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from swift_rlvr.errors import InputError
from swift_rlvr.evaluation.completion_files import with_columns_from_prompt
from swift_rlvr.jsonl import LineError, opened, parse_object, read_json
from swift_rlvr.rewards import REWARDS as OUR_REWARDS
from swift_rlvr.rewards import Reward
from swift_rlvr.runs.alarms import Alarms
from swift_rlvr.runs.folder import ALARMS, ARGS, COMPLETIONS, HELD_OUT, LOG, RECORDS, REWARDS, find_run
from swift_rlvr.runs.grades import judge
from swift_rlvr.runs.records import Record, record_from_json
from swift_rlvr.runs.tables import records_of_table
from swift_rlvr.success import FORMAT, VERIFIER, Judge, Judges, role_of

_LOGGED_MEAN = re.compile(r"rewards/(.+)/mean")


class Entry(NamedTuple):
    """What is kept in mind of a completion. question: a number, the same for the completions of a row in a run."""

    step: int
    question: int
    characters: int
    success: bool | None
    countdown: bool


@dataclass
class Run:
    """What the files of a run hold. steps, held_out: logged lines, each with `step`; last: the step it is to reach.

    entries: the completions of the training, in order. positions: which of the file's they are, without those that a
        resumed run made again.
    """

    folder: Path
    label: str
    steps: list[dict[str, Any]] = field(default_factory=list)
    held_out: list[dict[str, Any]] = field(default_factory=list)
    last: int | None = None
    alarms: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    judges: Judges = field(default_factory=lambda: Judges({}))
    entries: list[Entry] = field(default_factory=list)
    positions: set[int] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def records(self) -> Iterator[Record]:
        """The graded completions of the training, those of `entries`; of repeated ones the last."""
        yield from (record for number, record in enumerate(_training_records(self, [])) if number in self.positions)

    def held_out_records(self) -> Iterator[Record]:
        """The graded completions of held-out rows; of repeated ones the last."""
        path = self.folder / HELD_OUT
        if path.is_file():
            records = _records_of(path, self.notes)
            yield from {(record.step, record.index, record.sample): record for record in records}.values()

    @property
    def is_countdown(self) -> bool:
        """Whether all that is known of its tasks is Countdown."""
        if self.entries:
            return all(entry.countdown for entry in self.entries)
        return [key for key, each in self.judges.judges.items() if each.role == VERIFIER] == ["external_countdown"]


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
    run.judges = _judges(run)
    _index_completions(run)
    if not run.entries:
        run.notes.append(
            f"neither {RECORDS} nor {COMPLETIONS} has completions (ms-swift: --callbacks reward_reasons, or "
            "--log_completions true)"
        )
    _fill_in_success(run)
    if (folder / ALARMS).is_file():
        run.alarms = [row for _, row in _whole_lines(folder / ALARMS, run.notes)]
    elif run.steps:
        run.alarms = _raised(run)
        if run.alarms:
            run.notes.append(f"there is no {ALARMS}: the alarms are those that the log raises now")
    if (folder / ARGS).is_file():
        try:
            run.settings = read_json(folder / ARGS)
        except InputError as error:
            run.notes.append(f"the settings cannot be read: {error}")
    return run


def _judges(run: Run) -> Judges:
    """The roles that the run wrote down; else those of the names that it logs, and a note of what is assumed."""
    if (run.folder / REWARDS).is_file():
        return Judges.from_json(read_json(run.folder / REWARDS))
    ours: dict[str, type[Reward]] = {str(reward.__name__): reward for reward in OUR_REWARDS.values()}
    logged = dict.fromkeys(match[1] for row in run.steps for name in row if (match := _LOGGED_MEAN.fullmatch(name)))
    judges = {}
    for name in logged:
        reward = ours.get(name)
        key, role = (name, role_of(name)) if reward is None else (reward.name, reward.role)
        judges[key] = Judge(role, name)
    if judges:
        said = {"verifier": VERIFIER, "format reward": FORMAT, "reward of unknown role": None}
        parts = [
            (words, [each.logged for each in judges.values() if each.role == role]) for words, role in said.items()
        ]
        assumed = "; ".join(f"{words}: {', '.join(names)}" for words, names in parts if names)
        run.notes.append(f"there is no {REWARDS}: the roles of the rewards are assumed from their names ({assumed})")
    return Judges(judges)


def _index_completions(run: Run) -> None:
    """Fill in `entries` and `positions`."""
    questions: dict[str, int] = {}
    newest: dict[tuple[int, int], tuple[int, Entry]] = {}
    for position, record in enumerate(_training_records(run, run.notes)):
        question = questions.setdefault(record.question, len(questions))
        characters = len(record.completion) + (len(record.question) if question == len(questions) - 1 else 0)
        countdown = {"nums", "target"} <= record.row.keys()
        key = record.step or 0, record.index
        if newest and key[0] < next(reversed(newest))[0]:  # a resumed run goes back, and makes all from here again
            newest = {before: entry for before, entry in newest.items() if before[0] < key[0]}
        newest[key] = position, Entry(key[0], question, characters, record.success, countdown)
    run.entries = [entry for _, entry in newest.values()]
    run.positions = {position for position, _ in newest.values()}


def _training_records(run: Run, notes: list[str]) -> Iterator[Record]:
    """Every record of the training in the order of the file, also those that were made again later."""
    if (run.folder / RECORDS).is_file():
        yield from (each for each in _records_of(run.folder / RECORDS, notes) if each.mode in (None, "train"))
    elif (run.folder / COMPLETIONS).is_file():
        keys = {each.logged: key for key, each in run.judges.judges.items()}
        before: dict[str, Any] | None = None
        made: dict[int, int] = {}  # completions so far, by step
        for number, table in _whole_lines(run.folder / COMPLETIONS, notes):
            where = f"{run.folder / COMPLETIONS}, line {number}"
            if before and table.get("step") == before["step"] and table.get("completion") == before["completion"]:
                continue  # ms-swift writes the last table again when the training ends
            try:
                records = records_of_table(table, keys)
            except InputError as error:
                raise InputError(f"{where}: {error}") from error
            for record in records:
                if made and (record.step or 0) < max(made):  # a resumed run makes them again
                    made = {step: count for step, count in made.items() if step < (record.step or 0)}
                record.index = made.get(record.step or 0, 0)
                made[record.step or 0] = record.index + 1
                record.row = with_columns_from_prompt({**record.row, "prompt": record.messages})
                record.row.pop("prompt")
            judge(records, run.judges)
            yield from records
            before = table


def _records_of(path: Path, notes: list[str]) -> Iterator[Record]:
    for number, row in _whole_lines(path, notes):
        try:
            yield record_from_json(row)
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}") from error


def _fill_in_success(run: Run) -> None:
    """Success of each step from its completions, or from the mean of the only verifier, where the log has none."""
    if any("success" in row for row in run.steps) or not run.judges.has_verifier:
        return
    known: dict[int, list[bool]] = {}
    for entry in run.entries:
        if entry.success is not None:
            known.setdefault(entry.step, []).append(entry.success)
    verifiers = [each.logged for each in run.judges.judges.values() if each.role == VERIFIER]
    if known:
        run.notes.append(f"{LOG} has no success: it was counted from the completions")
    elif len(verifiers) == 1:
        run.notes.append(f"{LOG} has no success: the mean of {verifiers[0]} is taken for it")
    for row in run.steps:
        if own := known.get(row["step"]):
            row["success"] = sum(own) / len(own)
        elif not known and len(verifiers) == 1 and (mean := row.get(f"rewards/{verifiers[0]}/mean")) is not None:
            row["success"] = mean


def _raised(run: Run) -> list[dict[str, Any]]:
    """The alarms of a run that had none, from its log."""
    alarms = Alarms()
    rows = sorted([*run.held_out, *run.steps], key=lambda row: row["step"])
    return [alarm.as_json() for row in rows for alarm in alarms.row(row["step"], row)]


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
    for number, row in _whole_lines(path, notes):
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


def _whole_lines(path: Path, notes: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number from 1, object) of every line; a last one whose end is not written yet is left out and noted."""
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            if line.isspace():
                continue
            try:
                yield number, parse_object(line)
            except LineError as error:
                if line.endswith(b"\n"):
                    raise InputError(f"{path}, line {number}: {error}") from error
                notes.append(f"{path.name}, line {number}, is left out: its end is not written yet")
