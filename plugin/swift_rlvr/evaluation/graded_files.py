"""Files of completions -> graded records, for `compare` and `report`. Records keep the grades that
they have. Completions of other tools are graded now, as `score` does.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from swift_rlvr.evaluation.completion_files import (
    absent_columns,
    find_files,
    first_object,
    ids_in,
    left_out_files,
    nothing_usable,
    read_blocks,
    split_name,
)
from swift_rlvr.evaluation.completion_forms import Item
from swift_rlvr.evaluation.score import SHOWN_PROBLEMS, default_rewards, graded_items
from swift_rlvr.rewards import REWARDS, Grade
from swift_rlvr.rewards.question import QUESTION_COLUMNS
from swift_rlvr.runs.folder import RECORDS, SUMMARY
from swift_rlvr.runs.records import Record, is_record, judge, read_records
from swift_rlvr.runs.statistics import summarize
from swift_rlvr.success import Judges
from swift_rlvr.tasks.own import turns_of
from swift_rlvr.tasks.sources import Source
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import read_json
from swift_rlvr.verifiers.messages import completion_text


@dataclass
class GradedFiles:
    """Graded records, in the order of their steps and rows, and the rewards that have graded them.

    notes: what could not be used.
    """

    records: list[Record]
    judges: Judges
    notes: list[str]


def graded_records(
    path: str | Path,
    columns: Mapping[str, str] | None = None,
    answered: Source | None = None,
) -> GradedFiles:
    """The graded completions of a file or folder; InputError if there is none.

    columns, answered: as in `find_files`.
    """
    readings = find_files([path], columns, answered)
    if all(is_record(first_object(file)) for file in readings):
        records = list(chain.from_iterable(map(read_records, readings)))
        names: dict[str, None] = {}
        for record in records:
            names |= dict.fromkeys(record.rewards)
        judges = Judges.from_rewards(REWARDS[name] for name in names if name in REWARDS)
        return GradedFiles(_in_order(records), judges, [])

    # Files of another tool: the rewards that fit the first lines grade them now.
    rewards, left_out = default_rewards(readings)
    judges = Judges.from_rewards(rewards)
    notes = [f"{name} is left out, because it runs code from the completions" for name in left_out]
    absent = absent_columns(readings, answered)
    if absent:
        notes.append(absent)
    skipped = left_out_files([path], readings)
    if skipped:
        shown = ", ".join(file.name for file in skipped[:SHOWN_PROBLEMS])
        notes.append(
            f"{len(skipped):,} of its files not read: {shown}; name a file to have it read"
        )
    graded: list[tuple[str, Item, Record]] = []  # each with its file and line
    problems: list[str] = []
    for block in read_blocks(readings):
        of_block = graded_items(block, rewards, readings[block.file])
        problems += of_block.problems
        for line, item, grades in of_block.items:
            graded.append((f"{block.file}:{line}", item, _record_of(item, grades)))
    if not graded:
        raise nothing_usable(problems, readings)
    # Whoever shows the notes names the file or folder.
    _, place = split_name(path)
    for problem in problems[:SHOWN_PROBLEMS]:
        notes.append(problem.removeprefix(f"{place}, ").removeprefix(f"{place}/"))
    if len(problems) > SHOWN_PROBLEMS:
        notes.append(f"... and {len(problems) - SHOWN_PROBLEMS:,} more that could not be used")

    # Files may come in any order, and a pair of evaluations is compared by these numbers.
    _number_rows_and_samples(graded)
    records = [record for _, _, record in graded]
    judge(records, judges)
    return GradedFiles(_in_order(records), judges, notes)


@dataclass
class Evaluated:
    """The summary of an evaluation; its records, empty if they are not there; and notes as in
    `GradedFiles`.
    """

    summary: dict[str, Any]
    records: list[Record]
    notes: list[str]


def evaluated(
    path: Path,
    columns: Mapping[str, str] | None = None,
    answered: Source | None = None,
) -> Evaluated:
    """An evaluation by its folder or its summary.json, or the completions of a file or folder, as
    `graded_records` reads them; InputError for anything else.
    """
    is_summary = False
    if path.suffix == ".json":
        # It may hold rows, too: one, a list of them, or an object with such a list.
        first = first_object(str(path))
        is_summary = "success" in first and not is_record(first)
    folder_summary = path / SUMMARY
    if not is_summary and not folder_summary.is_file():
        graded = graded_records(path, columns, answered)
        # A training's completions are of another policy at each step.
        records = last_step(graded.records)
        if len(records) < len(graded.records):
            graded.notes.append(f"only the completions of step {records[0].step} are compared")
        return Evaluated(summarize(records), records, graded.notes)

    summary = read_json(path if is_summary else folder_summary)
    if "success" not in summary:
        raise InputError(
            f'{path}: expected a summary written by `swift-rlvr evaluate`; this file has no "success"'
        )
    records = list(read_records(path / RECORDS)) if (path / RECORDS).is_file() else []
    return Evaluated(summary, records, [])


def last_step(records: Sequence[Record]) -> list[Record]:
    """The records of the last step, all of them where they are of none: those of several steps are
    of several policies.
    """
    by_step: dict[int, list[Record]] = defaultdict(list)
    for record in records:
        by_step[record.step or 0].append(record)
    return by_step[max(by_step)] if by_step else []


def _record_of(item: Item, grades: dict[str, Grade]) -> Record:
    row = item.row
    prompt = row.get("prompts")
    messages = turns_of(prompt)
    if isinstance(prompt, str):
        messages = [{"role": "user", "content": prompt}]
    # Of the row only what its verdict depends on, without the question, which is in the messages.
    verified = {"task"}
    for name in grades:
        verified |= {*REWARDS[name].columns, *REWARDS[name].optional_columns}
    verified -= {*QUESTION_COLUMNS}
    # By an id the same row is found in another file.
    verified |= ids_in(row).keys()
    rewards = {}
    reasons = {}
    for name, grade in grades.items():
        rewards[name] = grade.reward
        reasons[name] = grade.reason
    step = row.get("step")
    return Record(
        index=0,
        completion=completion_text(item.completion) or "",
        rewards=rewards,
        reasons=reasons,
        row={name: row[name] for name in row if name in verified},
        messages=messages or None,
        finish=item.finish,
        step=step if isinstance(step, int) else None,
    )


def _number_rows_and_samples(graded: Sequence[tuple[str, Item, Record]]) -> None:
    """Give each record the index of its row and the number of its sample, the same whatever the order
    of the file.

    Completions are of one row where they have the same id, or else the same prompt, and the same
    gold; without both each line is a row.
    """
    # Files of two datasets may have the same ids, with other golds.
    keys = []
    for place, item, record in graded:
        ids = ids_in(item.row)
        asked = ids or record.messages or place
        keys.append(json.dumps([asked, record.row], sort_keys=True, default=str))
    places = {key: index for index, key in enumerate(sorted(set(keys)))}
    samples = Counter[tuple[int | None, str]]()
    for key, (_, _, record) in zip(keys, graded, strict=True):
        record.index = places[key]
        record.sample = samples[record.step, key]
        samples[record.step, key] += 1


def _in_order(records: Iterable[Record]) -> list[Record]:
    return sorted(
        records,
        key=lambda record: (record.step or 0, record.index, record.sample, record.turn or 0),
    )
