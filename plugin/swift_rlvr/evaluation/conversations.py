"""Rows for supervised training (`swift sft`): conversations that end in a right answer, each judged
by the verifier.

They come from a dataset, whose right answers are written out (a cold start), or from the records of
a probe, an evaluation or a training, of which the right ones are taken (rejection sampling). No
question of the datasets that are to be held out is among them.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from swift_rlvr.evaluation.grading import BATCH, grade_samples
from swift_rlvr.evaluation.sampling import Completion
from swift_rlvr.runs.records import Record, read_records
from swift_rlvr.tasks import TASKS, RowError
from swift_rlvr.tasks.sources import Source
from swift_rlvr.tasks.task import normalised, with_system

Conversation = dict[str, Any]  # a row: `messages`


def from_answers(
    source: Source, held_out: Iterable[Source], left_out: Counter[str], system: str | None = None
) -> Iterator[Conversation]:
    """For each row of a dataset its question and right answer.

    left_out: counts why others are not among them. system: for rows without a system turn; None for
    the task's.
    """
    excluded, seen = _questions(held_out), set[str]()
    rows = (row for _, row in source.rows())
    system = source.task.system if system is None else system
    while batch := list(islice(rows, BATCH)):
        asked, answers = [], []
        for row in batch:
            try:
                prepared, gold = (
                    source.task.preprocess(row),
                    source.task.of(row).gold_completion(row, worked=True),
                )
            except RowError as error:
                left_out[f"cannot be used, {error.label}"] += 1
                continue
            if gold is None:
                left_out["no right answer is known"] += 1
            else:
                asked.append({**prepared, "messages": with_system(prepared["messages"], system)})
                answers.append([Completion(gold, 0, "stop")])
        conversations = [row["messages"] for row in asked]
        for record in grade_samples(source.task, asked, conversations, answers):
            keys = _keys(asked[record.index])
            reason = _refusal(record) or (
                "held out" if keys & excluded else "asked before" if keys & seen else ""
            )
            seen |= keys
            if reason:
                left_out[reason] += 1
            else:
                yield _conversation(record)


def from_records(
    paths: Iterable[Path],
    held_out: Iterable[Source],
    left_out: Counter[str],
    most: int,
    shortest: bool,
) -> Iterator[Conversation]:
    """The right completions of files of records, at most so many different ones a question.

    Right are those that the file calls a success, in the right form where it knows that, and not
    cut off.
    shortest: these of a question, in place of random ones, which are the same each time.
    """
    excluded, right = _questions(held_out), dict[str, dict[str, Record]]()
    for record in (each for path in paths for each in read_records(path)):
        known = right.setdefault(record.question, {})
        reason = _refusal(record) or ("the same answer again" if record.completion in known else "")
        if not reason and _keys({**record.row, "messages": record.messages}) & excluded:
            reason = "held out"
        if reason:
            left_out[reason] += 1
        else:
            known[record.completion] = record
    for question, answers in right.items():
        chosen = sorted(answers.values(), key=lambda each: (len(each.completion), each.completion))
        if not shortest:
            random.Random(question).shuffle(chosen)
        left_out.update([f"more than {most} of its question"] * len(chosen[most:]))
        yield from map(_conversation, chosen[:most])


def _refusal(record: Record) -> str:
    if not record.messages:
        return "its conversation is not in the record"
    if record.success is None:
        return "not graded"
    if not record.success:
        return "not right"
    if record.strict is False:
        return "right in the wrong form"
    return "cut off" if record.finish == "length" else ""


def _conversation(record: Record) -> Conversation:
    return {
        "messages": [*(record.messages or []), {"role": "assistant", "content": record.completion}]
    }


def _questions(sources: Iterable[Source]) -> set[str]:
    """Of datasets, what their rows ask."""
    keys = set[str]()
    for source in sources:
        for line, row in source.rows():
            with source.at(line):
                keys |= _keys(source.task.preprocess(row))
    return keys


def _keys(row: dict[str, Any]) -> set[str]:
    """Texts that a preprocessed row shares with each that asks the same: its task's identity, and
    its user turns.
    """
    keys = {
        normalised(
            " ".join(str(turn["content"]) for turn in row["messages"] if turn["role"] == "user")
        )
    }
    task = TASKS.get(str(row.get("task")))
    if task is not None and set(task.columns) <= row.keys():
        with suppress(RowError):
            keys.add(f"{task.name}: {task.identity(row)}")
    return keys
