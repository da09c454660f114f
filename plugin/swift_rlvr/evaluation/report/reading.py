"""What the report reads of a training's folder: the log, the graded completions, the settings, the
alarms.

A run of ours has its graded completions in RECORDS and the roles of its rewards in REWARDS. Of a
run of ms-swift without our callback the tables of COMPLETIONS are read instead, and the roles are
those of known names; `notes` says so.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from swift_rlvr.evaluation.completion_files import items_of, with_columns_from_prompt
from swift_rlvr.rewards import REWARDS as OUR_REWARDS
from swift_rlvr.rewards import Reward
from swift_rlvr.runs.alarms import Alarms
from swift_rlvr.runs.folder import (
    ALARMS,
    ARGS,
    COMPLETIONS,
    HELD_OUT,
    LOG,
    RECORDS,
    REWARDS,
    find_run,
)
from swift_rlvr.runs.grades import judge
from swift_rlvr.runs.records import Record, read_records
from swift_rlvr.runs.statistics import is_number
from swift_rlvr.success import FORMAT, VERIFIER, Judge, Judges, role_of
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import LineError, read_json, read_jsonl
from swift_rlvr.verifiers.answers import completion_text

Steps = list[dict[str, Any]]  # logged lines, each with `step`
_LOGGED_MEAN = re.compile(r"rewards/(.+)/mean")
_NOT_A_COLUMN = {"step", "prompt", "completion", "advantages", "num_turns"}
_COUNTDOWN = {"external_countdown", "CountdownORM"}


class Entry(NamedTuple):
    """What is kept in mind of a completion. question: a number, the same for the completions of a
    row in a run.
    """

    step: int
    question: int
    characters: int
    success: bool | None
    task: str | None = None


@dataclass
class Run:
    """What the files of a run hold.

    entries: the completions of the training by their position in the file, without those that a
    resumed run made again.
    """

    folder: Path
    label: str
    steps: Steps = field(default_factory=list)
    held_out: Steps = field(default_factory=list)
    alarms: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    judges: Judges = field(default_factory=lambda: Judges({}))
    entries: dict[int, Entry] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def records(self) -> Iterator[Record]:
        """The graded completions of the training, those of `entries`."""
        return (
            record
            for number, record in enumerate(_training_records(self, []))
            if number in self.entries
        )

    def held_out_records(self) -> Iterator[Record]:
        """The graded completions of held-out rows; of repeated ones the last."""
        path = self.folder / HELD_OUT
        if path.is_file():
            records = read_records(path, self.notes.append)
            yield from {
                (record.step, record.index, record.sample): record for record in records
            }.values()

    @property
    def verifiers(self) -> dict[str, str]:
        """By its key in records, the name that each verifier is logged under."""
        return {
            key: each.logged for key, each in self.judges.judges.items() if each.role == VERIFIER
        }

    @property
    def is_countdown(self) -> bool:
        """Whether all that its verifiers judge is Countdown."""
        return bool(self.verifiers) and self.verifiers.keys() <= _COUNTDOWN


def read_run(path: str | Path, label: str = "") -> Run:
    """Everything about a run but its completions' texts; InputError where a line is damaged or no
    log is there.
    """
    folder = find_run(path)
    run = Run(folder, label or folder.name)
    _read_log(run)
    run.judges = _judges(run)
    _index_completions(run)
    _fill_in_success(run)
    _fill_in_success_by_task(run)
    _read_alarms(run)
    if (folder / ARGS).is_file():
        try:
            run.settings = read_json(folder / ARGS)
        except InputError as error:
            run.notes.append(f"the settings cannot be read: {error}")
    return run


def _read_log(run: Run) -> None:
    """Fill in `steps` and `held_out`: in order, of a step that a resumed run repeats the last
    line.
    """
    path, last = run.folder / LOG, 0
    steps: dict[int, dict[str, Any]] = {}
    held_out: dict[int, dict[str, Any]] = {}
    for number, row in read_jsonl(path, unfinished=run.notes.append):
        evaluated = {key: value for key, value in row.items() if key.startswith("eval")}
        if "reward" not in row and not evaluated:
            continue  # the end of the training
        place = re.match(r"([0-9]+)/([0-9]+)", str(row.get("global_step/max_steps")))
        if place is None:
            raise InputError(
                f'{path}, line {number}: expected "global_step/max_steps" such as "7/100"'
            )
        step, last = int(place[1]), int(place[2])
        if "reward" in row:
            steps[step] = {"step": step, **row}
        if evaluated:
            held_out[step] = held_out.get(step, {"step": step}) | evaluated
    run.steps = [steps[step] for step in sorted(steps)]
    run.held_out = [held_out[step] for step in sorted(held_out)]
    if not steps:
        run.notes.append(f"{LOG} has no training step yet: there are no curves")
    elif max(steps) < last:
        run.notes.append(
            f"step {max(steps)} of {last} is the last one logged: it is still training, or was stopped"
        )


def _judges(run: Run) -> Judges:
    """The roles that the run wrote down; else those of the names that it logs, and a note of what
    is assumed.
    """
    if (run.folder / REWARDS).is_file():
        return Judges.from_json(read_json(run.folder / REWARDS))
    ours: dict[str, type[Reward]] = {
        str(reward.__name__): reward for reward in OUR_REWARDS.values()
    }
    judges = {}
    for name in dict.fromkeys(
        match[1] for row in run.steps for key in row if (match := _LOGGED_MEAN.fullmatch(key))
    ):
        reward = ours.get(name)
        key, role = (name, role_of(name)) if reward is None else (reward.name, reward.role)
        judges[key] = Judge(role, name)
    words = {"verifier": VERIFIER, "format reward": FORMAT, "reward of unknown role": None}
    assumed = {
        text: [each.logged for each in judges.values() if each.role == role]
        for text, role in words.items()
    }
    said = "; ".join(f"{text}: {', '.join(names)}" for text, names in assumed.items() if names)
    if judges:
        run.notes.append(
            f"there is no {REWARDS}: the roles of the rewards are assumed from their names ({said})"
        )
    return Judges(judges)


def _index_completions(run: Run) -> None:
    """Fill in `entries`. A resumed run goes back, and makes all from there again."""
    questions: dict[str, int] = {}
    before = (-1, -1)
    for position, record in enumerate(_training_records(run, run.notes)):
        place = record.step or 0, record.index
        if place <= before:
            run.entries = {
                each: entry for each, entry in run.entries.items() if entry.step < place[0]
            }
        before, asked = place, record.question
        characters = len(record.completion) + (0 if asked in questions else len(asked))
        question = questions.setdefault(asked, len(questions))
        run.entries[position] = Entry(place[0], question, characters, record.success, record.task)
    if not run.entries:
        run.notes.append(
            f"neither {RECORDS} nor {COMPLETIONS} has completions (ms-swift: --callbacks reward_reasons, or "
            "--log_completions true)"
        )


def _training_records(run: Run, notes: list[str]) -> Iterator[Record]:
    """Every record of the training in the order of the file, also those that were made again
    later.
    """
    if (run.folder / RECORDS).is_file():
        written = read_records(run.folder / RECORDS, notes.append)
        yield from (record for record in written if record.mode in (None, "train"))
        return
    path = run.folder / COMPLETIONS
    if not path.is_file():
        return
    keys = {each.logged: key for key, each in run.judges.judges.items()}
    before: list[Record] = []
    for number, table in read_jsonl(path, unfinished=notes.append):
        try:
            records = [_record(item.completion, item.row, keys) for item in items_of(table)]
        except LineError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
        same_step = bool(before) and [each.step for each in records[:1]] == [before[0].step]
        if same_step and [each.completion for each in records] == [
            each.completion for each in before
        ]:
            continue  # ms-swift writes the last table again when the training ends
        for index, record in enumerate(records, start=before[-1].index + 1 if same_step else 0):
            record.index = index
        judge(records, run.judges)
        yield from records
        before = records or before


def _record(completion: object, row: dict[str, Any], keys: Mapping[str, str]) -> Record:
    """Of a completion in COMPLETIONS; LineError without a step. keys: of the rewards, by the name
    that is logged.

    The prompt, a text with the chat template, becomes one message.
    """
    row = with_columns_from_prompt(row)
    try:
        step = int(row["step"])
    except (KeyError, TypeError, ValueError):
        raise LineError(f"expected a step such as 7, got {row.get('step')!r:.40}") from None
    prompt, advantage = row.get("prompt"), row.get("advantages")
    return Record(
        index=0,
        step=step,
        completion=completion_text(completion) or "",
        messages=prompt if isinstance(prompt, list) else [{"role": "user", "content": str(prompt)}],
        rewards={
            key: row[name] if is_number(row[name]) else None
            for name, key in keys.items()
            if name in row
        },
        row={
            name: value
            for name, value in row.items()
            if name not in keys and name not in _NOT_A_COLUMN
        },
        advantage=advantage if is_number(advantage) else None,
    )


def _fill_in_success(run: Run) -> None:
    """Success of each step from its completions, or from the mean of the only verifier, where the
    log has none.
    """
    if any("success" in row for row in run.steps) or not run.verifiers:
        return
    verifiers = list(run.verifiers.values())
    means: dict[Any, float | None] = {**_shares(run.entries.values(), lambda each: each.step)}
    if means:
        run.notes.append(f"{LOG} has no success: it was counted from the completions")
    elif len(verifiers) == 1:
        run.notes.append(f"{LOG} has no success: the mean of {verifiers[0]} is taken for it")
        means = {row["step"]: row.get(f"rewards/{verifiers[0]}/mean") for row in run.steps}
    for row in run.steps:
        if (mean := means.get(row["step"])) is not None:
            row["success"] = mean


def _fill_in_success_by_task(run: Run) -> None:
    """Of a mixture, `success/TASK` of each step and `eval/success/TASK` of each held-out
    evaluation.
    """
    graded = (
        (run.steps, "success", run.entries.values()),
        (run.held_out, "eval/success", run.held_out_records()),
    )
    for rows, name, completions in graded:
        by_step = {row["step"]: row for row in rows}
        shares = _shares(completions, lambda each: (each.step, each.task or "unknown task"))
        if len({task for _, task in shares}) > 1:
            for (step, task), share in shares.items():
                by_step.get(step, {})[f"{name}/{task}"] = share


def _shares(completions: Iterable[Entry | Record], key: Callable[[Any], Any]) -> dict[Any, float]:
    """The share of successes among the graded completions with the same key."""
    known: dict[Any, list[bool]] = {}
    for each in completions:
        if each.success is not None:
            known.setdefault(key(each), []).append(each.success)
    return {place: sum(values) / len(values) for place, values in known.items()}


def _read_alarms(run: Run) -> None:
    if (run.folder / ALARMS).is_file():
        run.alarms = [
            row for _, row in read_jsonl(run.folder / ALARMS, unfinished=run.notes.append)
        ]
        return
    alarms = Alarms()
    rows = sorted([*run.held_out, *run.steps], key=lambda row: row["step"])
    run.alarms = [asdict(alarm) for row in rows for alarm in alarms.row(row["step"], row)]
    if run.alarms:
        run.notes.append(f"there is no {ALARMS}: the alarms are those that the log raises now")


def read_runs(paths: Sequence[str | Path]) -> list[Run]:
    """Several runs, each with a label of its own: the parts of the paths in which they differ."""
    folders = [find_run(path) for path in paths]
    return [read_run(folder, label) for folder, label in zip(folders, labels(folders), strict=True)]


def labels(folders: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that differ, without what all end in.

    >>> labels([Path("out/stable/run"), Path("out/unstable/run")]), labels([Path("a/b/c/run"), Path("d/e")])
    (['stable', 'unstable'], ['run', 'e'])
    """
    parts = [folder.resolve().parts for folder in folders]
    if len(set(parts)) < len(parts):
        raise InputError("the same run is named twice", field="runs")
    while len(parts) > 1 and len({part[-1] for part in parts}) == 1:
        parts = [part[:-1] for part in parts]
    length = 1
    while len(names := {"/".join(part[-length:]): None for part in parts}) < len(parts):
        length += 1
    return list(names)
