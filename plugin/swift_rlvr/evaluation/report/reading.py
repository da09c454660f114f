"""What the report reads of a training's folder: the log, the graded completions, the settings, the
alarms.

A run of ours has its graded completions in RECORDS and the roles of its rewards in REWARDS. Of a
run of ms-swift without our callback the tables of COMPLETIONS are read instead, and the roles are
those of known names; `notes` says so.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from swift_rlvr.evaluation.completion_files import split_name
from swift_rlvr.evaluation.graded_files import graded_records, last_step
from swift_rlvr.evaluation.report.swift_tables import (
    judges_by_name,
    records_of_tables,
    roles_in_words,
)
from swift_rlvr.runs.alarms import Alarm, Alarms
from swift_rlvr.runs.folder import (
    ALARMS,
    ARGS,
    COMPLETIONS,
    HELD_OUT,
    LOG,
    RECORDS,
    REWARDS,
    SUMMARY,
    find_run,
)
from swift_rlvr.runs.records import Record, read_records
from swift_rlvr.runs.statistics import summarize
from swift_rlvr.success import VERIFIER, Judges
from swift_rlvr.tasks import tasks_of
from swift_rlvr.tasks.sources import Source
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import read_json, read_jsonl


class Entry(NamedTuple):
    """What is kept in memory of a completion, whose text stays in its file.

    question: a number that all completions of a row share in a run. characters: of the completion,
    and of its question where it is the first one to ask it.
    """

    step: int
    question: int
    characters: int
    success: bool | None
    task: str | None = None


@dataclass
class Run:
    """What the files of a run hold.

    steps, held_out: logged lines in order, each with its `step`. entries: the completions of the
    training by their position in the file, without those that a resumed run made again.
    """

    folder: Path
    label: str
    steps: list[dict[str, Any]] = field(default_factory=list)
    held_out: list[dict[str, Any]] = field(default_factory=list)
    alarms: list[Alarm] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    judges: Judges = field(default_factory=lambda: Judges({}))
    entries: dict[int, Entry] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    # Only an evaluation or a file of completions has these two.
    graded: list[Record] | None = None
    summary: dict[str, Any] | None = None

    def records(self) -> Iterator[Record]:
        """The graded completions, those of `entries`."""
        if self.graded is not None:
            yield from self.graded
            return
        # The notes of reading them are there already.
        for position, record in enumerate(_training_records(self, notes=[])):
            if position in self.entries:
                yield record

    def held_out_records(self) -> Iterator[Record]:
        """The graded completions of held-out rows; of repeated ones the last."""
        path = self.folder / HELD_OUT
        if not path.is_file():
            return
        last = {}
        for record in read_records(path, self.notes.append):
            last[record.step, record.index, record.sample] = record
        yield from last.values()

    def merged_steps(self) -> list[dict[str, Any]]:
        """One row for each step with all that was logged of it."""
        rows: dict[int, dict[str, Any]] = {}
        for row in (*self.steps, *self.held_out):
            rows.setdefault(row["step"], {}).update(row)
        return _in_order(rows)

    @property
    def verifiers(self) -> dict[str, str]:
        """By its key in records, the name that each verifier is logged under."""
        names = {}
        for key, reward in self.judges.judges.items():
            if reward.role == VERIFIER:
                names[key] = reward.logged
        return names

    @property
    def tasks(self) -> list[str]:
        """The tasks of its completions, or the one that its verifiers judge."""
        names = dict.fromkeys(entry.task for entry in self.entries.values() if entry.task)
        if not names and self.judged_task is not None:
            return [self.judged_task]
        return list(names)

    @property
    def judged_task(self) -> str | None:
        """The task that its verifiers judge, or None if they judge several, or anything."""
        names = {tasks_of(verifier) for verifier in self.verifiers}
        if len(names) != 1:
            return None
        (tasks,) = names
        return tasks[0] if len(tasks) == 1 else None


def read_runs(
    paths: Sequence[str | Path],
    columns: Mapping[str, str] | None = None,
    answered: Source | None = None,
) -> list[Run]:
    """Several runs, evaluations or files of completions, each with a label of its own: the parts of
    the paths in which they differ.

    columns, answered: of files of completions, as in `find_files`. InputError for what is none of
    these.
    """
    places = []
    for path in map(Path, paths):
        # A file, or a folder with completions and no log, is read itself; else its run.
        _, place = split_name(path)
        has_completions = any(place.glob("*.jsonl")) or any(place.glob("completions_*.parquet"))
        is_run = (place / LOG).is_file() or not has_completions
        places.append(find_run(path) if is_run and not place.is_file() else path)
    runs = []
    for place, label in zip(places, labels(places), strict=True):
        if (place / LOG).is_file():
            runs.append(read_run(place, label))
        else:
            runs.append(_read_completions(place, label, columns, answered))
    return runs


def _read_completions(
    path: Path, label: str, columns: Mapping[str, str] | None, answered: Source | None
) -> Run:
    """An evaluation, or completions of another tool, as a run. Completions with steps, such as verl's
    dumps, give curves.
    """
    graded = graded_records(path, columns, answered)
    run = Run(path, label, judges=graded.judges, notes=graded.notes, graded=graded.records)
    run.summary = summarize(last_step(graded.records))
    if (path / SUMMARY).is_file():
        # With the settings, and the figures that the evaluation has shown.
        run.summary = read_json(path / SUMMARY)
        run.settings = run.summary.get("settings", {})
    by_step: dict[int, list[Record]] = {}
    for position, record in enumerate(graded.records):
        run.entries[position] = _entry(record, record.index)
        if record.step is not None:
            by_step.setdefault(record.step, []).append(record)
    if len(by_step) > 1:
        for step, records in by_step.items():
            figures = summarize(records)
            run.steps.append(
                {"step": step, "success": figures["success"], "format": figures["format"]}
            )
    return run


def _entry(record: Record, question: int, characters: int = 0) -> Entry:
    """characters: of the question, where this is the first completion that answers it."""
    size = len(record.completion) + characters
    return Entry(record.step or 0, question, size, record.success, record.task)


def labels(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that differ, without what all end in.

    >>> labels([Path("out/stable/run"), Path("out/unstable/run")]), labels([Path("a/b/c/run"), Path("d/e")])
    (['stable', 'unstable'], ['run', 'e'])
    """
    # Resolved, since "." and a link have names that say nothing.
    paths = [folder.resolve().parts for folder in folders]
    if len(set(paths)) < len(paths):
        raise InputError("the same run is named twice", field="runs")
    while len(paths) > 1 and len({parts[-1] for parts in paths}) == 1:
        paths = [parts[:-1] for parts in paths]
    length = 1
    while True:
        names = ["/".join(parts[-length:]) for parts in paths]
        if len(set(names)) == len(names):
            return names
        length += 1


def read_run(path: str | Path, label: str = "") -> Run:
    """Everything about a run but its completions' texts; InputError if a line is damaged or no
    log is there.
    """
    folder = find_run(path)
    run = Run(folder, label or folder.name)
    _read_log(run)
    if (folder / REWARDS).is_file():
        run.judges = Judges.from_json(read_json(folder / REWARDS))
    else:
        run.judges = judges_by_name(run.steps)
        if run.judges.judges:
            run.notes.append(
                f"there is no {REWARDS}: the roles of the rewards are guessed from their names "
                f"({roles_in_words(run.judges)})"
            )
    _index_completions(run)
    # Without this note a share of successes would be taken for that of all completions.
    ungraded = sum(entry.success is None for entry in run.entries.values())
    if ungraded and run.verifiers:
        of = f"{ungraded:,} of {len(run.entries):,} completions"
        run.notes.append(
            f"{of} were not graded by a verifier, and no share of successes counts them"
        )
    _fill_in_success(run)
    # A mixture gets `success/TASK` for each step and `eval/success/TASK` for each evaluation.
    _add_success_by_task(run.steps, "success", run.entries.values())
    _add_success_by_task(run.held_out, "eval/success", run.held_out_records())
    if (folder / ALARMS).is_file():
        for _, row in read_jsonl(folder / ALARMS, unfinished=run.notes.append):
            completions = tuple(map(str, row.get("completions") or ()))
            kind, message = str(row.get("kind", "")), str(row.get("message", ""))
            run.alarms.append(Alarm(row.get("step", 0), kind, message, completions))
    else:
        alarms = Alarms()
        for row in sorted([*run.held_out, *run.steps], key=lambda row: row["step"]):
            run.alarms += alarms.row(row["step"], row)
        if run.alarms:
            run.notes.append(f"there is no {ALARMS}: the alarms were recomputed from the log")
    if (folder / ARGS).is_file():
        try:
            run.settings = read_json(folder / ARGS)
        except InputError as error:
            run.notes.append(f"the settings cannot be read: {error}")
    return run


def _read_log(run: Run) -> None:
    """Fill in `steps` and `held_out`. Of a step that a resumed run repeats the last line counts."""
    path = run.folder / LOG
    last = 0
    steps: dict[int, dict[str, Any]] = {}
    held_out: dict[int, dict[str, Any]] = {}
    for number, row in read_jsonl(path, unfinished=run.notes.append):
        is_step = "reward" in row
        evaluated = {key: value for key, value in row.items() if key.startswith("eval")}
        if not is_step and not evaluated:
            # The closing lines of the training.
            continue
        place = re.match(r"([0-9]+)/([0-9]+)", str(row.get("global_step/max_steps")))
        if place is None:
            raise InputError(
                f'{path}, line {number}: expected "global_step/max_steps" such as "7/100"'
            )
        step = int(place[1])
        last = int(place[2])
        if is_step:
            steps[step] = {"step": step, **row}
        if evaluated:
            # Ours and ms-swift's own evaluation are in different lines.
            held_out.setdefault(step, {"step": step}).update(evaluated)
    run.steps = _in_order(steps)
    run.held_out = _in_order(held_out)
    if not steps:
        run.notes.append(f"{LOG} has no training step yet, so there are no curves")
    elif max(steps) < last:
        run.notes.append(
            f"the log ends at step {max(steps)} of {last}: the run is still training, or was stopped"
        )


def _in_order(rows_by_step: Mapping[int, dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, the earliest step first."""
    return [rows_by_step[step] for step in sorted(rows_by_step)]


def _index_completions(run: Run) -> None:
    """Fill in `entries`. A resumed run goes back, and makes all from there again."""
    questions: dict[str, int] = {}
    before = (-1, -1)
    for position, record in enumerate(_training_records(run, run.notes)):
        step = record.step or 0
        place = (step, record.index)
        # Of a step that was made again only the later completions count, as in the log.
        if place <= before:
            for earlier, entry in list(run.entries.items()):
                if entry.step >= step:
                    del run.entries[earlier]
        before = place
        question = record.question
        is_new = question not in questions
        number = questions.setdefault(question, len(questions))
        run.entries[position] = _entry(record, number, len(question) if is_new else 0)
    if not run.entries:
        run.notes.append(
            f"there are no completions in {RECORDS} or {COMPLETIONS} (ms-swift saves them with "
            "--callbacks reward_reasons or --log_completions true)"
        )


def _training_records(run: Run, notes: list[str]) -> Iterator[Record]:
    """Every record of the training in the order of the file, also those that were made again
    later.
    """
    if (run.folder / RECORDS).is_file():
        for record in read_records(run.folder / RECORDS, notes.append):
            # Records of ms-swift's own evaluation are in the same file; older ones have no mode.
            if record.mode in (None, "train"):
                yield record
    elif (run.folder / COMPLETIONS).is_file():
        yield from records_of_tables(run.folder / COMPLETIONS, run.judges, notes)


def _fill_in_success(run: Run) -> None:
    """Success of each step from its completions, or from the mean of the only verifier, where the
    log has none.
    """
    if any("success" in row for row in run.steps) or not run.verifiers:
        return
    first, *others = run.verifiers.values()
    shares = _shares(run.entries.values(), lambda entry: entry.step)
    if shares:
        run.notes.append(f"{LOG} has no success: it was computed from the completions")
    elif others:
        # The mean of one of several verifiers is the success of its own rows alone.
        return
    else:
        run.notes.append(f"{LOG} has no success: the mean of {first} is shown instead")
    for row in run.steps:
        mean = shares.get(row["step"]) if shares else row.get(f"rewards/{first}/mean")
        if mean is not None:
            row["success"] = mean


def _add_success_by_task(
    rows: Sequence[dict[str, Any]], name: str, completions: Iterable[Entry | Record]
) -> None:
    """Add the share of successes of each task to the rows, if completions are of several tasks."""

    def step_and_task(completion: Entry | Record) -> tuple[int | None, str]:
        return completion.step, completion.task or "unknown task"

    shares = _shares(completions, step_and_task)
    # Of a single task it is success, which has a panel already.
    if len({task for _, task in shares}) <= 1:
        return
    rows_by_step = {row["step"]: row for row in rows}
    for (step, task), share in shares.items():
        if step in rows_by_step:
            rows_by_step[step][f"{name}/{task}"] = share


def _shares(completions: Iterable[Entry | Record], key: Callable[[Any], Any]) -> dict[Any, float]:
    """The share of successes among the graded completions with the same key."""
    successes: dict[Any, list[bool]] = {}
    for completion in completions:
        if completion.success is not None:
            successes.setdefault(key(completion), []).append(completion.success)
    return {place: sum(values) / len(values) for place, values in successes.items()}
