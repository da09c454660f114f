"""What ms-swift leaves of a run without our callback: tables of completions, with the rewards under the
names that are logged, and no word about their roles.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from swift_rlvr.evaluation.completion_forms import items_of, with_columns_from_prompt
from swift_rlvr.rewards import REWARDS
from swift_rlvr.runs.records import Record, judge
from swift_rlvr.runs.statistics import is_number
from swift_rlvr.success import FORMAT, VERIFIER, Judge, Judges, role_of
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import LineError, read_jsonl
from swift_rlvr.verifiers.messages import completion_text

# In a line of LOG, such as "rewards/CountdownReward/mean".
_LOGGED_MEAN = re.compile(r"rewards/(.+)/mean")
# Columns of the tables that are neither rewards nor columns of the dataset.
_NOT_A_COLUMN = {"step", "prompt", "completion", "advantages", "num_turns"}


def judges_by_name(steps: Iterable[Mapping[str, Any]]) -> Judges:
    """The roles of the rewards whose mean is logged, as far as their names tell."""
    # ms-swift logs a reward under the name of its class.
    ours = {str(reward.__name__): reward for reward in REWARDS.values()}
    judges = {}
    for row in steps:
        for key in row:
            match = _LOGGED_MEAN.fullmatch(key)
            if match is None:
                continue
            name = match[1]
            if name in ours:
                judges[ours[name].name] = Judge(ours[name].role, name)
            else:
                judges[name] = Judge(role_of(name), name)
    return Judges(judges)


def roles_in_words(judges: Judges) -> str:
    """Such as "verifier: CountdownReward; format reward: FormatReward"."""
    words = {"verifier": VERIFIER, "format reward": FORMAT, "reward of unknown role": None}
    parts = []
    for text, role in words.items():
        names = [reward.logged for reward in judges.judges.values() if reward.role == role]
        if names:
            parts.append(f"{text}: {', '.join(names)}")
    return "; ".join(parts)


def records_of_tables(path: Path, judges: Judges, notes: list[str]) -> Iterator[Record]:
    """The records of ms-swift's tables of completions, which may be several for a step."""
    keys = {reward.logged: key for key, reward in judges.judges.items()}
    before: list[Record] = []
    for number, table in read_jsonl(path, unfinished=notes.append):
        records = []
        try:
            for item in items_of(table):
                records.append(_record_of(item.completion, item.row, keys))
        except LineError as error:
            raise InputError(f"{path}, line {number}: {error}") from error
        if not records:
            continue
        first = 0
        if before and records[0].step == before[0].step:
            # ms-swift writes the last table again when the training ends.
            if _texts(records) == _texts(before):
                continue
            first = before[-1].index + 1
        for index, record in enumerate(records, start=first):
            record.index = index
        judge(records, judges)
        yield from records
        before = records


def _texts(records: Sequence[Record]) -> list[str]:
    return [record.completion for record in records]


def _record_of(completion: object, row: dict[str, Any], keys: Mapping[str, str]) -> Record:
    """The record of a completion in a table; LineError without a step.

    The prompt, a text with the chat template, becomes one message. keys: of the rewards, by the
    name that is logged.
    """
    row = with_columns_from_prompt(row)
    try:
        step = int(row["step"])
    except (KeyError, TypeError, ValueError):
        raise LineError(f"expected a step such as 7, got {row.get('step')!r:.40}") from None
    prompt = row.get("prompt")
    if not isinstance(prompt, list):
        prompt = [{"role": "user", "content": str(prompt)}]
    advantage = row.get("advantages")
    rewards: dict[str, float | None] = {}
    columns = {}
    for name, value in row.items():
        if name not in keys and name not in _NOT_A_COLUMN:
            columns[name] = value
    # ms-swift writes a None of a reward as NaN.
    for name, key in keys.items():
        if name in row:
            rewards[key] = row[name] if is_number(row[name]) else None
    return Record(
        index=0,
        step=step,
        completion=completion_text(completion) or "",
        messages=prompt,
        rewards=rewards,
        row=columns,
        advantage=advantage if is_number(advantage) else None,
    )
