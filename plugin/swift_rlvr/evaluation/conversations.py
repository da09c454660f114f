"""Rows for supervised training (`swift sft`): conversations that end in a right answer, each judged
by the verifier.

They come from a dataset whose right answers are written out (a cold start), or from the right
completions in the records of a probe, an evaluation or a training (rejection sampling). Questions of
the held-out datasets are left out.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from swift_rlvr.evaluation.grade_samples import BATCH, grade_samples
from swift_rlvr.evaluation.prompts import SystemPrompt, chosen_system
from swift_rlvr.evaluation.sampling import Completion
from swift_rlvr.runs.records import Record, read_records
from swift_rlvr.tasks import TASKS, RowError
from swift_rlvr.tasks.pictures import IMAGES, Picture, data_uri, digests, picture_of
from swift_rlvr.tasks.sources import Source
from swift_rlvr.tasks.task import normalised

Conversation = dict[str, Any]  # a row: `messages`


def from_answers(
    source: Source, held_out: Iterable[Source], left_out: Counter[str], system: str | None = None
) -> Iterator[Conversation]:
    """The question and right answer of each row of a dataset.

    left_out: counts why rows are left out. system: for rows without a system turn; None for the
    task's.
    """
    excluded = _questions(held_out)
    seen = set[str]()
    rows = (row for _, row in source.rows())
    chosen = chosen_system(source.task, system)
    # Many at once, since verifiers that run code do that in parallel.
    while batch := list(islice(rows, BATCH)):
        prepared_rows, answers = _with_answers(source, batch, left_out, chosen)
        conversations = [row["messages"] for row in prepared_rows]
        for record in grade_samples(source.task, prepared_rows, conversations, answers):
            keys = _question_keys(prepared_rows[record.index])
            reason = _refusal(record)
            if not reason and keys & excluded:
                reason = "held out"
            elif not reason and keys & seen:
                reason = "asked before"
            seen |= keys
            if reason:
                left_out[reason] += 1
            else:
                yield _conversation(record, prepared_rows[record.index].get(IMAGES) or [])


def _with_answers(
    source: Source, rows: list[dict[str, Any]], left_out: Counter[str], system: SystemPrompt
) -> tuple[list[dict[str, Any]], list[list[Completion]]]:
    """The preprocessed rows whose right answer is known, and that answer as a completion of each."""
    prepared_rows, answers = [], []
    for row in rows:
        try:
            prepared = source.task.preprocess(row)
            messages = system.on(prepared["messages"])
            gold = source.task.of(row).gold_completion(row, worked=True, messages=messages)
        except RowError as error:
            left_out[f"cannot be used, {error.label}"] += 1
            continue
        if gold is None:
            left_out["no right answer is known"] += 1
            continue
        prepared_rows.append({**prepared, "messages": messages})
        answers.append([Completion(gold, 0, "stop")])
    return prepared_rows, answers


def from_records(
    paths: Iterable[Path],
    held_out: Iterable[Source],
    left_out: Counter[str],
    most: int,
    shortest: bool,
) -> Iterator[Conversation]:
    """The right completions of files of records.

    A completion is right where the file calls it a success, in the right form where that is known,
    and not cut off.

    Args:
        left_out: counts why completions are left out.
        most: how many different completions of a question are taken.
        shortest: take the shortest ones of a question, in place of random ones. The random choice
            is the same each time.
    """
    excluded = _questions(held_out)
    right: dict[str, dict[str, Conversation]] = {}  # by question, then by text
    for path in paths:
        for record in read_records(path):
            known = right.setdefault(record.question, {})
            pictures: list[Picture] | None = []
            try:
                pictures = [picture_of(name, IMAGES) for name in record.row.get(IMAGES) or ()]
            except RowError:
                # Records hold no content, and the file that they name may be on another machine.
                pictures = None
            reason = _refusal(record)
            if reason:
                left_out[reason] += 1
            elif record.completion in known:
                left_out["duplicate answer"] += 1
            elif pictures is None:
                left_out["the file with its picture is not here"] += 1
            elif excluded & _question_keys(
                {**record.row, IMAGES: pictures, "messages": record.messages}
            ):
                left_out["held out"] += 1
            else:
                known[record.completion] = _conversation(record, pictures)

    for question, answers in right.items():
        texts = sorted(answers, key=lambda text: (len(text), text))
        # Seeded by the question, so that the choice does not depend on the rows before it, and sorted
        # before, so that it does not depend on the order of the files.
        if not shortest:
            random.Random(question).shuffle(texts)
        if len(texts) > most:
            left_out[f"more than {most} for its question"] += len(texts) - most
        for text in texts[:most]:
            yield answers[text]


def _refusal(record: Record) -> str:
    """Why a completion is no example to train on; empty if it is one."""
    if not record.messages:
        return "the record has no conversation"
    if record.success is None:
        return "not graded"
    if not record.success:
        return "not right"
    if record.strict is False:
        return "right answer in the wrong format"
    if record.finish == "length":
        return "cut off"
    return ""


def _conversation(record: Record, pictures: Sequence[Picture]) -> Conversation:
    answer = {"role": "assistant", "content": record.completion}
    conversation: Conversation = {"messages": [*(record.messages or []), answer]}
    if pictures:
        # In JSON, as ms-swift reads them: a path, or the file itself.
        conversation[IMAGES] = []
        for picture in pictures:
            named = data_uri(picture) if picture["bytes"] else picture["path"]
            conversation[IMAGES].append(named)
    return conversation


def _questions(sources: Iterable[Source]) -> set[str]:
    """The keys of every question of some datasets."""
    keys = set[str]()
    for source in sources:
        for line, row in source.rows():
            with source.at(line):
                keys |= _question_keys(source.task.preprocess(row))
    return keys


def _question_keys(row: dict[str, Any]) -> set[str]:
    """Texts of a preprocessed row; two rows that ask the same share one of them.

    They are the row's user turns, and the identity that its task gives it.
    """
    user_turns = [str(turn["content"]) for turn in row["messages"] if turn["role"] == "user"]
    keys = {f"{normalised(' '.join(user_turns))}{digests(row.get(IMAGES) or ())}"}
    task = TASKS.get(str(row.get("task")))
    if task is not None and set(task.columns) <= row.keys():
        with suppress(RowError):
            keys.add(f"{task.name}: {task.identity(row)}")
    return keys
