"""Grades completions of preprocessed rows, many at once: each by its task's verifier, and by format
rewards.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from swift_rlvr.evaluation.sampling import Completion
from swift_rlvr.rewards import REWARDS, Grade, Reward
from swift_rlvr.rewards.build import columns_for
from swift_rlvr.runs.grades import judge
from swift_rlvr.runs.records import Messages, Record
from swift_rlvr.success import FORMAT, Judges, key_of
from swift_rlvr.tasks import Task

BATCH = 256


def grade_samples(
    task: Task,
    rows: Sequence[Mapping[str, Any]],
    conversations: Sequence[Messages],
    completions: Sequence[Sequence[Completion]],
    formats: Sequence[Any] = (),
) -> list[Record]:
    """One record for each completion, judged; `completions[i]` are of `rows[i]` and answer
    `conversations[i]`.

    rows: preprocessed by `task`. formats: the format rewards of a run, by default those of each
    row's task; they may be functions that are not ours.
    """
    records = []
    for index, group in enumerate(completions):
        columns = task.of(rows[index]).reward_columns or [
            name for name in rows[index] if name != "messages"
        ]
        row = {name: rows[index][name] for name in (*columns, "task") if name in rows[index]}
        for sample, each in enumerate(group):
            record = Record(index=index, completion=each.text, rewards={}, row=row, sample=sample)
            record.messages, record.tokens, record.finish = (
                list(conversations[index]),
                each.tokens,
                each.finish,
            )
            records.append(record)
    by_reward: dict[str, list[Record]] = {}
    for record in records:
        part = task.of(rows[record.index])
        further = (
            []
            if formats
            else [name for name in part.further_rewards if REWARDS[name].role == FORMAT]
        )
        for name in filter(None, (part.verifier, *further)):
            by_reward.setdefault(name, []).append(record)
    asked = [(REWARDS[name](), own) for name, own in by_reward.items()] + [
        (reward, records) for reward in formats
    ]
    for reward, own in asked:
        grade_records(reward, own, [rows[record.index] for record in own])
    judge(records, Judges.from_rewards(reward for reward, _ in asked))
    return records


def grade_records(
    reward: Any, records: Sequence[Record], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Have a reward grade completions of these rows; its grades go into the records."""
    key = key_of(reward)
    for start in range(0, len(records), BATCH):
        batch = records[start : start + BATCH]
        texts, given = [record.completion for record in batch], rows[start : start + BATCH]
        if isinstance(reward, Reward):
            # Rewards for length count tokens, no more.
            ids = [
                {} if each.tokens is None else {"response_token_ids": [0] * each.tokens}
                for each in batch
            ]
            counted = [{**row, **own} for row, own in zip(given, ids, strict=True)]
            grades = reward.grades(texts, **columns_for(reward, counted))
        else:
            columns = {
                name: [row.get(name) for row in given]
                for name in {name for row in given for name in row}
            }
            grades = [
                Grade(value, "") for value in reward(texts, **columns)
            ]  # others' give no reasons
        for record, (value, reason) in zip(batch, grades, strict=True):
            record.rewards[key] = value
            if reason:
                record.reasons[key] = reason
