"""Grades sampled completions, many at once: each by the verifier of its task and by format rewards, or
by the rewards of a run.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from swift_rlvr.evaluation.sampling import Completion
from swift_rlvr.rewards import REWARDS, Grade, Reward
from swift_rlvr.rewards.build import columns_for, reward_class
from swift_rlvr.rewards.judge import by_rule_alone
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
        formats: the format rewards of a run, which may be functions of others. By default they are
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

    records_by_reward: dict[str, list[Record]] = {}
    for record in records:
        names = []
        if not rewards:
            names = _reward_names(task.of(rows[record.index]), with_formats=not formats)
        for name in names:
            records_by_reward.setdefault(name, []).append(record)

    used: list[Any] = []
    for name, to_grade in records_by_reward.items():
        reward = by_rule_alone(REWARDS[name])
        used.append(reward)
        grade_records(reward, to_grade, [rows[record.index] for record in to_grade])
    for reward in (*rewards, *formats):
        used.append(reward)
        grade_records(reward, records, [rows[record.index] for record in records])
    judge(records, Judges.from_rewards(used))
    return records


def rewards_of_a_run(names: Iterable[str]) -> list[Reward]:
    """The rewards of these names or import paths, without a judge. InputError where none of them
    says what is right: there would be no success.
    """
    classes = {cls.name: cls for cls in map(reward_class, names)}
    rewards = [by_rule_alone(cls) for cls in classes.values()]
    if rewards and not Judges.from_rewards(rewards).has_verifier:
        problem = (
            f"none of {', '.join(classes)} says what is right; name a verifier too, or set the "
            "function's `role` to verifier"
        )
        raise InputError(problem, "reward_funcs")
    return rewards


def _kept_columns(
    task: Task, row: Mapping[str, Any], rewards: Sequence[Reward] = ()
) -> dict[str, Any]:
    """What a record keeps of a row beside its messages: the columns that its task's rewards read,
    and those of a run.
    """
    own = task.of(row)
    names = own.reward_columns or [name for name in row if name != "messages"]
    for reward in rewards:
        optional = [name for name in reward.optional_columns if name not in QUESTION_COLUMNS]
        names = [*names, *reward.columns, *optional]
    columns = {name: row[name] for name in (*names, *optional_columns(own), "task") if name in row}
    if row.get(IMAGES):
        columns[IMAGES] = named(row[IMAGES])
    return columns


def optional_columns(task: Task) -> list[str]:
    """What the verifier of a task reads of a row if it is there, beside the question."""
    if task.verifier is None:
        return []
    names = REWARDS[task.verifier].optional_columns
    return [name for name in names if name not in QUESTION_COLUMNS]


def _reward_names(task: Task, with_formats: bool) -> list[str]:
    names = [task.verifier] if task.verifier else []
    if with_formats:
        names += [name for name in task.further_rewards if REWARDS[name].role == FORMAT]
    return names


def grade_records(
    reward: Any, records: Sequence[Record], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Have a reward grade the completions of these rows; the grades go into the records."""
    key = key_of(reward)
    for start in range(0, len(records), BATCH):
        batch = records[start : start + BATCH]
        grades = _grades(reward, batch, rows[start : start + BATCH])
        for record, (value, reason) in zip(batch, grades, strict=True):
            record.rewards[key] = value
            if reason:
                record.reasons[key] = reason


def _grades(
    reward: Any, records: Sequence[Record], rows: Sequence[Mapping[str, Any]]
) -> list[Grade]:
    texts = [record.completion for record in records]
    if isinstance(reward, Reward):
        rows_with_tokens = []
        for record, row in zip(records, rows, strict=True):
            columns = dict(row)
            if record.tokens is not None:
                # Rewards for length only count the tokens.
                columns["response_token_ids"] = [0] * record.tokens
            rows_with_tokens.append(columns)
        return reward.grades(texts, **columns_for(reward, rows_with_tokens))

    # A function of somebody else's, which gives no reasons.
    names = {name for row in rows for name in row}
    columns_by_name = {name: [row.get(name) for row in rows] for name in names}
    return [Grade(value, "") for value in reward(texts, **columns_by_name)]
