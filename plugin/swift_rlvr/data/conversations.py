"""Rows for supervised training (`swift sft`): conversations that end in a right answer, each judged by the verifier.

They come from a dataset, whose right answers are written out (a cold start), or from the records of a probe, an
evaluation or a training, of which the right ones are taken (rejection sampling). No question of the datasets that are
to be held out is among them.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from swift_rlvr.data.grading import BATCH, grade_samples
from swift_rlvr.data.sources import Source
from swift_rlvr.errors import InputError
from swift_rlvr.runs.records import Record, read_records
from swift_rlvr.sampling import Completion
from swift_rlvr.tasks import TASKS, RowError
from swift_rlvr.tasks.task import normalised, with_system

CHOICES = ("random", "shortest")
Conversation = dict[str, Any]  # a row: `messages`


def from_answers(
    source: Source, held_out: Iterable[Source], system: str | None = None
) -> Iterator[tuple[Conversation | None, str]]:
    """For each row of a dataset its question and right answer, or None and why it is left out.

    system: for rows without a system turn; None for the task's.
    """
    excluded, seen = _questions(held_out), set[str]()
    rows = (row for _, row in source.rows())
    system = source.task.system if system is None else system
    while batch := list(islice(rows, BATCH)):
        asked, answers = [], []
        for row in batch:
            try:
                prepared, gold = source.task.preprocess(row), source.task.of(row).gold_completion(row, worked=True)
            except RowError as error:
                yield None, f"cannot be used, {error.label}"
                continue
            if gold is None:
                yield None, "no right answer is known"
                continue
            asked.append({**prepared, "messages": with_system(prepared["messages"], system)})
            answers.append([Completion(gold, 0, "stop")])
        conversations = [row["messages"] for row in asked]
        for record in grade_samples(source.task, asked, conversations, answers):
            keys = _keys(asked[record.index])
            reason = _refusal(record) or ("held out" if keys & excluded else "asked before" if keys & seen else "")
            seen |= keys
            yield None if reason else _conversation(record), reason


def from_records(
    paths: Sequence[Path], held_out: Iterable[Source], most: int, choose: str, seed: int
) -> Iterator[tuple[Conversation | None, str]]:
    """The right completions of files of records, at most so many different ones a question, and why others are not.

    Right are those that the file calls a success, in the right form where it knows that, and not cut off.
    choose: one of CHOICES, which of a question's.
    """
    excluded, right = _questions(held_out), dict[str, dict[str, Record]]()
    for record in (each for path in paths for each in read_records(path)):
        reason = "" if record.messages else "its conversation is not in the record"
        reason = reason or _refusal(record)
        if not reason and _keys({**record.row, "messages": record.messages}) & excluded:
            reason = "held out"
        if not reason and record.completion in (known := right.setdefault(record.question, {})):
            reason = "the same answer again"
        if reason:
            yield None, reason
        else:
            known[record.completion] = record
    draw = random.Random(seed)
    for answers in right.values():
        chosen = sorted(answers.values(), key=lambda each: (len(each.completion), each.completion))
        if choose == "random":
            draw.shuffle(chosen)
        yield from ((_conversation(record), "") for record in chosen[:most])
        yield from ((None, f"more than {most} of its question") for _ in chosen[most:])


def count_and_keep(rows: Iterable[tuple[Conversation | None, str]], left_out: Counter[str]) -> Iterator[Conversation]:
    """The conversations; those that are left out are counted by the reason."""
    for row, reason in rows:
        if row is None:
            left_out[reason] += 1
        else:
            yield row


def _refusal(record: Record) -> str:
    if record.success is None:
        return "not graded"
    if not record.success:
        return "not right"
    if record.strict is False:
        return "right in the wrong form"
    return "cut off" if record.finish == "length" else ""


def _conversation(record: Record) -> Conversation:
    answer = {"role": "assistant", "content": record.completion}
    return {"messages": [*(record.messages or []), answer]}


def _questions(sources: Iterable[Source]) -> set[str]:
    """Of datasets, what their rows ask."""
    keys = set[str]()
    for source in sources:
        for line, row in source.rows():
            with source.at(line):
                keys |= _keys(source.task.preprocess(row))
    return keys


def _keys(row: dict[str, Any]) -> set[str]:
    """Texts that a preprocessed row shares with each that asks the same: its task's identity, and its user turns."""
    keys = {normalised(" ".join(str(turn["content"]) for turn in row["messages"] if turn["role"] == "user"))}
    task = TASKS.get(str(row.get("task")))
    if task is None or not set(task.columns) <= row.keys():
        return keys
    try:
        return keys | {f"{task.name}: {task.identity(row)}"}
    except RowError as error:
        raise InputError(f"a row of {task.name}: {error}") from error
