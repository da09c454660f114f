"""`swift-rlvr score`: files of completions -> rewards, reasons and counts, on several cores.

`swift_rlvr.evaluation.completion_files` reads them. A line that cannot be used is counted and
reported, and does not affect the others. Files are graded block by block, so memory does not grow
with them.
"""

import math
import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from swift_rlvr.evaluation.completion_files import (
    Block,
    Reading,
    find_files,
    first_rows,
    nothing_usable,
    read_block,
    read_blocks,
    task_of,
)
from swift_rlvr.evaluation.completion_forms import (
    Item,
    column_names,
    is_completion,
    no_completion,
    readers_of_prompts,
    with_columns_from_prompt,
)
from swift_rlvr.evaluation.grade_samples import format_rewards
from swift_rlvr.rewards import REWARDS, Grade, Reward
from swift_rlvr.rewards.build import build_rewards, columns_for, missing_column
from swift_rlvr.runs.records import is_record
from swift_rlvr.success import VERIFIER
from swift_rlvr.tasks import TASKS, tasks_of, verifier_of
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import LineError, brief, opened, read_jsonl, write_jsonl
from swift_rlvr.utils.limits import usable_cores
from swift_rlvr.utils.parallel import map_in_order

SHOWN_PROBLEMS = 10

# Bytes of files for each worker: a process takes longer to start than Countdown takes for these.
_WORTH_A_WORKER = 1 << 20
# More take memory, and time to start, and grade no faster: also code has its own limit.
_PROCESSES_PER_CORE = 4
# The format reward of rows whose task names none.
_FORMAT = "external_format"

# The grades of completions, each by reward, at their line and position. The position counts the
# completions of a line from 1; it is None if the line has only one.
StoredGrades = Mapping[tuple[int, int | None], Mapping[str, Grade]]


class GradedItem(NamedTuple):
    """A completion with its line, the columns that the rewards need, and its grades by reward."""

    line: int
    item: Item
    grades: dict[str, Grade]


class GradedItems(NamedTuple):
    """What grading makes of a block.

    from_prompt: how many completions got columns from their prompt. problems: what cannot be used,
    and why.
    """

    items: list[GradedItem]
    from_prompt: int
    problems: list[str]


def graded_items(block: Block, rewards: Sequence[Reward], reading: Reading) -> GradedItems:
    """Grade every completion of a block that can be used."""
    graded: list[GradedItem] = []
    # What the rewards get of these: a reward that runs code grades a batch in parallel, so each has
    # the whole block at once.
    completions: list[object] = []
    rows: list[dict[str, Any]] = []
    problems: list[str] = []
    from_prompt = 0
    told_by_prompts = readers_of_prompts()
    for line, item in read_block(block, reading):
        if isinstance(item, LineError):
            problems.append(f"{block.file}, line {line}: {item}")
            continue
        try:
            row = _with_columns(item, rewards, reading)
        except LineError as error:
            within = "" if item.position is None else f", completion {item.position}"
            problems.append(f"{block.file}, line {line}{within}: {error}")
            continue
        added = row.keys() - item.row.keys()
        from_prompt += any(columns <= added for columns in told_by_prompts)
        graded.append(GradedItem(line, item._replace(row=row), {}))
        completions.append(item.completion)
        rows.append(row)

    for reward in rewards:
        grades = reward.grades(completions, **columns_for(reward, rows))
        for of_item, grade in zip(graded, grades, strict=True):
            of_item.grades[reward.name] = grade
    return GradedItems(graded, from_prompt, problems)


def _with_columns(item: Item, rewards: Iterable[Reward], reading: Reading) -> dict[str, Any]:
    """The row of a completion with the columns that the rewards need.

    LineError if one is missing, the gold cannot be read, or there is no completion.
    """
    row = item.row
    for reward in rewards:
        # The first one that lacks a column: all columns of the row's task are filled in at once.
        if missing_column(reward, row) is not None:
            row = _filled_for(reward, row, reading)
            break
    if not is_completion(item.completion):
        raise no_completion(item.completion)
    for reward in rewards:
        column = missing_column(reward, row)
        if column is not None:
            problem = f"needs the column {column!r}, and the row has {column_names(row)}"
            raise LineError(f"{reward.name} {problem}")
    return row


def _filled_for(reward: Reward, row: dict[str, Any], reading: Reading) -> dict[str, Any]:
    """The row with what a reward lacks, as far as the row belongs to a task that it grades."""
    own = reward.own_tasks
    task = task_of(row)
    if reading.task or not own or task.name in own:
        return reading.filled(row)
    if not task.any_columns:
        # Its columns tell the task. Countdown's target is no right answer to a question: a
        # completion would be paid for repeating it.
        return {**row, "task": task.name}

    # The reward was named for rows of a task that their columns do not tell, as external_exact_match
    # is.
    for name in own:
        if TASKS[name].any_columns:
            return replace(reading, task=name).filled(row)
    return with_columns_from_prompt(row)


class GradedBlock(NamedTuple):
    """A graded block for its file: size in bytes, and a row for each graded completion, as `score`
    writes them. from_prompt, problems: as in `GradedItems`.
    """

    size: int
    rows: list[dict[str, Any]]
    from_prompt: int
    problems: list[str]


def grade_block(
    block: Block, rewards: Sequence[Reward], readings: Mapping[str, Reading] | None = None
) -> GradedBlock:
    """Grade every completion of a block that can be used. readings: by file, see `find_files`."""
    reading = (readings or {}).get(block.file, Reading())
    graded = graded_items(block, rewards, reading)
    rows = []
    for line, item, grades in graded.items:
        row: dict[str, Any] = {"file": block.file, "line": line}
        if item.position is not None:
            row["position"] = item.position
        row["rewards"] = {}
        row["reasons"] = {}
        for name, grade in grades.items():
            row["rewards"][name] = grade.reward
            row["reasons"][name] = grade.reason
        rows.append(row)
    return GradedBlock(len(block.text), rows, graded.from_prompt, graded.problems)


class _Totals:
    """Counts over the graded blocks, and the grades that differ from the stored ones."""

    def __init__(
        self, files: Iterable[str], rewards: Sequence[Reward], against: StoredGrades | None
    ):
        self.against = against
        self.completions = 0
        self.from_prompt = 0
        self.unusable = 0
        self.compared = 0
        self.without_stored = 0
        self.matched: set[tuple[int, int | None]] = set()
        self.problems: list[str] = []
        self.changed: list[dict[str, Any]] = []
        self.graded = Counter[str]()
        self.sums: dict[str, float] = {}
        self.reasons: dict[str, Counter[str]] = {}
        for reward in rewards:
            self.sums[reward.name] = 0.0
            self.reasons[reward.name] = Counter()
        # By file and reward, the number of completions that it has graded, and the sum.
        self.by_file: dict[str, dict[str, tuple[int, float]]] = {name: {} for name in files}

    def add(self, block: GradedBlock) -> None:
        self.completions += len(block.rows)
        self.from_prompt += block.from_prompt
        self.unusable += len(block.problems)
        # No more than are shown: under a wrong name of a column each line of a large file has one.
        self.problems += block.problems[: SHOWN_PROBLEMS - len(self.problems)]
        for row in block.rows:
            for name, reward in row["rewards"].items():
                self.reasons[name][row["reasons"][name]] += 1
                # None is no grade: as a 0 it would lower the mean for a row that nobody could answer.
                if reward is not None:
                    self.graded[name] += 1
                    self.sums[name] += reward
                    of_file = self.by_file[row["file"]]
                    count, total = of_file.get(name, (0, 0.0))
                    of_file[name] = count + 1, total + reward
            if self.against is not None:
                place = row["line"], row.get("position")
                self.matched.add(place)
                self.without_stored += place not in self.against
                self.note_changes(row, self.against.get(place, {}))

    def note_changes(self, row: Mapping[str, Any], stored: Mapping[str, Grade]) -> None:
        """Note which grades of a row are not the stored ones."""
        for name, now in row["rewards"].items():
            if name not in stored:
                continue
            self.compared += 1
            before = stored[name].reward
            # None and a number are never the same: the one says nothing, and 0 says wrong.
            is_same = before is now
            if before is not None and now is not None:
                is_same = math.isclose(before, now, abs_tol=1e-6)
            if not is_same:
                change = {key: row[key] for key in ("file", "line", "position") if key in row}
                change["reward"] = name
                change["before"] = list(stored[name])
                change["now"] = [now, row["reasons"][name]]
                self.changed.append(change)

    def not_graded_now(self) -> list[dict[str, Any]]:
        """Where completions stand that have a stored grade of these rewards, and none now."""
        places = []
        for place, stored in (self.against or {}).items():
            if place not in self.matched and not stored.keys().isdisjoint(self.sums):
                line, position = place
                places.append({"line": line, "position": position})
        return places

    def counts(self) -> dict[str, Any]:
        """What was counted, by name."""
        counts: dict[str, Any] = {
            "completions": self.completions,
            "from_prompt": self.from_prompt,
            "unusable": self.unusable,
        }
        if self.against is not None:
            counts["compared"] = self.compared
            counts["changed"] = self.changed
            counts["without_stored"] = self.without_stored
            counts["not_graded_now"] = self.not_graded_now()
        return {**counts, "problems": self.problems}

    def figures(self, rewards: Sequence[Reward]) -> dict[str, Any]:
        """The figures of each reward, and the means by file."""
        by_reward = {}
        for reward in rewards:
            graded = self.graded[reward.name]
            by_reward[reward.name] = {
                "mean": self.sums[reward.name] / graded if graded else None,
                "graded": graded,
                "ungraded": self.completions - graded,
                "reasons": dict(self.reasons[reward.name].most_common()),
                "parameters": asdict(reward.parameters),
            }
        means = {}
        for file, of_file in self.by_file.items():
            means[file] = {name: total / count for name, (count, total) in of_file.items()}
        return {"rewards": by_reward, "means_by_file": means}


def score_files(
    files: Sequence[str | Path] | Mapping[str, Reading],
    rewards: Sequence[Reward],
    out: str | Path | None = None,
    *,
    workers: int | None = None,
    advance: Callable[[float], object] = lambda share: None,
    against: StoredGrades | None = None,
) -> dict[str, Any]:
    """Grade files of completions, and return all counts and figures by name.

    InputError for a file that is empty or cannot be read, and where no line can be used.

    Args:
        files: also with how each is read, as `find_files` gives them.
        out: a file for the grades of each completion, in order, with file, line and position.
        workers: processes; None for one a core, or fewer where the files are too small for that.
            InputError for more than a few a core.
        advance: called with the share that is done.
        against: earlier grades, see `stored_grades`. `changed` of the result lists the rewards
            that differ now, `not_graded_now` the places of earlier grades that have none now;
            `without_stored` counts the completions without an earlier one. InputError if nothing
            could be compared.
    """
    readings = files if isinstance(files, Mapping) else find_files(files)
    names = list(readings)
    if out is not None and Path(out).resolve() in [Path(name).resolve() for name in names]:
        raise InputError(
            f"{out}: this is one of the files to grade, and would be overwritten", field="out"
        )
    # Before any process starts: an empty file among many is mostly a path that went wrong.
    size = 0
    for name in names:
        with opened(name) as content:
            of_file = content.seek(0, os.SEEK_END)
        if not of_file:
            raise InputError(f"{name}: the file is empty; expected completions, one a line")
        size += of_file
    most = _PROCESSES_PER_CORE * usable_cores()
    if workers and workers > most:
        raise InputError(
            f"must be at most {most}, {_PROCESSES_PER_CORE} a core, got {workers}", "workers"
        )
    if not workers:
        workers = max(1, min(usable_cores(), size // _WORTH_A_WORKER))

    start = time.perf_counter()
    totals = _Totals(names, rewards, against)

    def graded_rows() -> Iterator[dict[str, Any]]:
        """The rows of all blocks, in order; `totals` counts them as they pass."""
        grade = partial(grade_block, rewards=rewards, readings=readings)
        done = 0
        for block in map_in_order(grade, read_blocks(names), workers):
            totals.add(block)
            yield from block.rows
            done += block.size
            advance(min(1.0, done / size))  # of a compressed file there is more
        # Raised within the generator, so that no --out is left.
        if not totals.completions:
            raise nothing_usable(totals.problems, names)
        if against is not None and not totals.compared:
            graded_by = ", ".join(reward.name for reward in rewards)
            raise InputError(
                f"no earlier verdict of {graded_by} is of these completions; nothing was compared",
                field="against",
            )

    # The rows are made as they are written, so that memory does not grow with the files.
    if out is None:
        deque(graded_rows(), maxlen=0)
    else:
        write_jsonl(out, graded_rows())
    seconds = round(time.perf_counter() - start, 3)
    return {
        "files": names,
        **totals.counts(),
        "workers": workers,
        "seconds": seconds,
        **totals.figures(rewards),
    }


def stored_grades(path: str | Path) -> dict[tuple[int, int | None], dict[str, Grade]]:
    """The grades that a file of records has, or that `swift-rlvr score --out` has written.

    InputError for a line that has no rewards, or those of a completion that had some before.
    """
    stored: dict[tuple[int, int | None], dict[str, Grade]] = {}
    for number, row in read_jsonl(path):
        where = f"{path}, line {number}"
        rewards = row.get("rewards")
        if not isinstance(rewards, Mapping):
            raise InputError(f"{where}: no rewards; expected records, or what `score --out` writes")
        reasons = row.get("reasons") or {}
        grades = {}
        for name, reward in rewards.items():
            if reward is not None and not isinstance(reward, (int, float)):
                raise InputError(f"{where}: {name}: expected a number, got {brief(reward)}")
            grades[name] = Grade(reward, reasons.get(name, ""))

        # A record is graded where it stands; what `score --out` writes tells where its completion does.
        line, position = number, None
        if not is_record(row):
            line, position = row.get("line", number), row.get("position")
            if not isinstance(line, int) or not isinstance(position, (int, type(None))):
                raise InputError(f"{where}: expected whole numbers as line and position")
        # What `score --out` has written of several files has the same lines several times.
        if (line, position) in stored:
            problem = f"line {line} has an earlier verdict already"
            raise InputError(f"{where}: {problem}; expected those of one file of completions")
        stored[line, position] = grades
    if not stored:
        raise InputError(f"{path}: no earlier verdicts: the file is empty")
    return stored


def default_rewards(readings: Mapping[str, Reading]) -> tuple[list[Reward], list[str]]:
    """The verifiers of the first lines, each with the format reward of its task, and the names of
    the verifiers that are left out because they run code.

    InputError if no verifier fits.
    """
    verifiers: dict[str, None] = {}
    formats: dict[str, None] = {}
    # The first of each, for the error where no line has a verifier: a single bad line is no reason to stop.
    unreadable, lacking = "", ""
    for where, reading, row in first_rows(readings):
        try:
            row = reading.filled(row)
        except LineError as error:
            unreadable = unreadable or f"{where}: {error}"
            continue
        of_row = verifiers_for(row)
        if not of_row:
            lacking = lacking or f"{where}: no right answer in {column_names(row)}"
            continue
        verifiers |= dict.fromkeys(of_row)
        task = TASKS.get(str(row.get("task")))
        formats |= dict.fromkeys(format_rewards(task.further_rewards if task else (_FORMAT,)))
    if not verifiers:
        expected = (
            "expected one in a column such as answer, solution or ground_truth, in another one that "
            "--columns names, or in --dataset"
        )
        other_task = "to read it as another task, write qa:FILE, choice:FILE or code:FILE"
        raise InputError(f"{unreadable or f'{lacking}; {expected}'}; {other_task}")
    names: list[str] = []
    left_out: list[str] = []
    for name in verifiers:
        # Nothing that a completion says is run unless the user asks for it by name.
        (left_out if REWARDS[name].runs_code else names).append(name)
    names += formats
    return build_rewards(names), left_out


def verifiers_for(row: Mapping[str, Any]) -> list[str]:
    """The verifier of the task that a row names, else those whose columns it has; of verifiers that
    need the same columns one, rather that of a task.
    """
    # A verifier in a package that is not installed here is not among the rewards.
    verifier = verifier_of(row.get("task"))
    if verifier and verifier in REWARDS and set(REWARDS[verifier].columns) <= row.keys():
        return [verifier]
    # Several compare with `solution`. Those of tasks come first: accuracy before exact_match.
    fitting: dict[frozenset[str], str] = {}
    for name in sorted(REWARDS, key=lambda name: not tasks_of(name)):
        cls = REWARDS[name]
        if cls.role == VERIFIER and cls.columns and set(cls.columns) <= row.keys():
            fitting.setdefault(frozenset(cls.columns), name)
    return list(fitting.values())
