"""Grades sampled completions, many at once: each by the verifier of its task and by format rewards, or
by the rewards of a run.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from swift_rlvr.evaluation.sampling import Completion
from swift_rlvr.rewards import REWARDS, Grade, Reward
from swift_rlvr.rewards.build import columns_for, reward_class
from swift_rlvr.rewards.question import QUESTION_COLUMNS
from swift_rlvr.runs.records import Messages, Record, judge
from swift_rlvr.success import FORMAT, Judges, key_of
from swift_rlvr.tasks import Task
from swift_rlvr.tasks.pictures import IMAGES, named
from swift_rlvr.utils.errors import InputError

BATCH = 256


def grade_samples(
    task: Task,
    rows: Sequence[Mapping[str, Any]],
    conversations: Sequence[Messages],
    completions: Sequence[Sequence[Completion]],
    formats: Sequence[Any] = (),
    rewards: Sequence[Reward] = (),
) -> list[Record]:
    """One judged record for each completion. No judge is asked: such figures are compared.

    Args:
        rows: preprocessed by `task`.
        completions: `completions[i]` are of `rows[i]` and answer `conversations[i]`.
        formats: the format rewards of a run, which may be plain functions. By default they are
            those of each row's task.
        rewards: all of a run, in place of the verifier and the formats; see `rewards_of_a_run`.
    """
    records = []
    for index, group in enumerate(completions):
        columns = _kept_columns(task, rows[index], rewards)
        for sample, completion in enumerate(group):
            record = Record(
                index=index,
                completion=completion.text,
                rewards={},
                row=columns,
                messages=list(conversations[index]),
                sample=sample,
                tokens=completion.tokens,
                finish=completion.finish,
            )
            records.append(record)

    # A run's rewards grade all records. Without them each row's task has its own: a file of mixed
    # tasks has several verifiers, and each grades its rows at once.
    by_name: dict[str, list[Record]] = {}
    for record in records:
        own = task.of(rows[record.index])
        names = [own.verifier] if own.verifier and not rewards else []
        if not rewards and not formats:
            names += format_rewards(own.further_rewards)
        for name in names:
            by_name.setdefault(name, []).append(record)
    to_grade: list[tuple[Any, list[Record]]] = []
    for name, of_reward in by_name.items():
        to_grade.append((REWARDS[name](), of_reward))
    for reward in (*rewards, *formats):
        to_grade.append((reward, records))
    for reward, of_reward in to_grade:
        _grade(reward, of_reward, rows)
    judge(records, Judges.from_rewards(reward for reward, _ in to_grade))
    return records


def rewards_of_a_run(names: Iterable[str]) -> list[Reward]:
    """The rewards of these names or import paths. InputError if none of them
    says what is right: there would be no success.
    """
    # By name, since a reward that is named twice would count twice.
    rewards: dict[str, Reward] = {}
    for name in names:
        reward = reward_class(name)()
        rewards[reward.name] = reward
    if rewards and not Judges.from_rewards(rewards.values()).has_verifier:
        problem = (
            f"none of {', '.join(rewards)} says what is right; name a verifier too, or set the "
            "function's `role` to verifier"
        )
        raise InputError(problem, "reward_funcs")
    return list(rewards.values())


def _kept_columns(task: Task, row: Mapping[str, Any], rewards: Sequence[Reward]) -> dict[str, Any]:
    """What a record keeps of a row beside its messages: the columns that its task's rewards read,
    and those of a run.
    """
    own = task.of(row)
    # A task without a verifier does not say what its rewards will read.
    names = own.reward_columns or [name for name in row if name != "messages"]
    for reward in rewards:
        names = [*names, *reward.columns, *_beside_question(reward.optional_columns)]
    columns = {name: row[name] for name in (*names, *optional_columns(own), "task") if name in row}
    # A picture may have megabytes: a record names it, see `named`.
    if row.get(IMAGES):
        columns[IMAGES] = named(row[IMAGES])
    return columns


def optional_columns(task: Task) -> list[str]:
    """What the verifier of a task reads of a row if it is there, beside the question."""
    if task.verifier is None:
        return []
    return _beside_question(REWARDS[task.verifier].optional_columns)


def _beside_question(columns: Iterable[str]) -> list[str]:
    """Those columns that do not hold the question, which the messages have already."""
    return [name for name in columns if name not in QUESTION_COLUMNS]


def format_rewards(names: Iterable[str]) -> list[str]:
    """Those of the rewards with these names that judge the format."""
    return [name for name in names if name in REWARDS and REWARDS[name].role == FORMAT]


def with_token_ids(row: Mapping[str, Any], tokens: object) -> dict[str, Any]:
    """The row of a completion with so many token ids, where their number is known: rewards for
    length only count them.
    """
    if not isinstance(tokens, int):
        return dict(row)
    return {**row, "response_token_ids": [0] * tokens}


def _grade(reward: Any, records: Sequence[Record], rows: Sequence[Mapping[str, Any]]) -> None:
    """Have a reward, or a plain function, grade the completions of these records, each of the row of
    its index; the grades go into the records.
    """
    key = key_of(reward)
    for start in range(0, len(records), BATCH):
        batch = records[start : start + BATCH]
        texts = [record.completion for record in batch]
        if isinstance(reward, Reward):
            of_batch = [with_token_ids(rows[record.index], record.tokens) for record in batch]
            grades = reward.grades(texts, **columns_for(reward, of_batch))
        else:
            # A plain function gets the columns of a trainer's batch: all that any row has, with None
            # for the rows that lack one.
            of_batch = [dict(rows[record.index]) for record in batch]
            columns = {}
            for name in set[str]().union(*of_batch):
                columns[name] = [row.get(name) for row in of_batch]
            grades = [Grade(value, "") for value in reward(texts, **columns)]
        for record, (value, reason) in zip(batch, grades, strict=True):
            record.rewards[key] = value
            if reason:
                record.reasons[key] = reason
