"""The grades of a training step: the rewards report them one after another, until the step ends."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from swift_rlvr.runs.records import Messages, Record, is_long
from swift_rlvr.success import key_of
from swift_rlvr.tasks.pictures import IMAGES, named
from swift_rlvr.verifiers.messages import completion_text, message_text

# The column of a completion's token ids: ms-swift's, and TRL's.
TOKENS = ("response_token_ids", "completion_ids")
# Columns that are kept whatever our rewards read: the verifier may be a plain function.
ALWAYS = ("task", "level", "solution", "thinking_opened", IMAGES)
NOT_OF_THE_ROW = {*TOKENS, "messages", "prompts", "trainer_state"}


class GradeLog:
    """Collects what rewards are asked and answer, until it is taken.

    A reward reports to it where its attribute `log` is one. For others `training.grading_time` does.
    """

    def __init__(self) -> None:
        # By the object too: two of one class, or two lambdas, have the same key.
        self._by_reward: defaultdict[tuple[str, int], list[Record]] = defaultdict(list)

    def add(
        self,
        reward: Any,
        completions: Sequence,
        columns: Mapping[str, Any],
        grades: Sequence[tuple[float | None, str | None]],
    ) -> None:
        """Note one call of a reward: the completions and columns that it got, and its grades, without
        a reason where it gives none.
        """
        key = key_of(reward)
        of_the_row = {}
        own = (*reward.columns, *reward.optional_columns) if hasattr(reward, "log") else ()
        for name in (*own, *ALWAYS):
            if name not in NOT_OF_THE_ROW and columns.get(name) is not None:
                of_the_row[name] = columns[name]

        records = self._by_reward[key, id(reward)]
        graded = zip(completions, grades, strict=True)
        for index, (completion, (value, reason)) in enumerate(graded):
            row = {}
            for name, values in of_the_row.items():
                if name == IMAGES:
                    row[name] = named(values[index])
                elif not is_long(values[index]):
                    row[name] = values[index]
            record = Record(
                index=0,
                completion=completion_text(completion) or "",
                rewards={key: value},
                reasons={} if reason is None else {key: reason},
                row=row,
            )
            _add_trainers_columns(record, columns, index)
            records.append(record)

    def take(self) -> list[Record]:
        """The records since the last call, in order, each with the grades of all rewards."""
        merged: list[Record] = []
        for (key, _), records in self._by_reward.items():
            for known, record in zip(merged, records, strict=False):
                known.row |= record.row
                # Of several with one key the first that grades the row: each may be for other tasks.
                if known.rewards.get(key) is None:
                    known.rewards |= record.rewards
                    known.reasons |= record.reasons
            merged += records[len(merged) :]
        self._by_reward.clear()
        return merged


def _add_trainers_columns(record: Record, columns: Mapping[str, Any], index: int) -> None:
    """What ms-swift and TRL hand over of a completion beside its row."""
    messages = _value("messages", columns, index) or _value("prompts", columns, index)
    if isinstance(messages, str):  # TRL's, of a dataset without roles
        record.messages = [{"role": "user", "content": messages}]
    elif isinstance(messages, Sequence):
        record.messages = _prompt_of(messages)
    for name in TOKENS:
        ids = _value(name, columns, index)
        if ids is not None:
            # A conversation of several turns has a list for each turn.
            is_of_turns = bool(ids) and isinstance(ids[0], Sequence)
            record.tokens = sum(map(len, ids)) if is_of_turns else len(ids)
            break
    finish = _value("finish_reason", columns, index)
    if finish is not None:
        record.finish = str(finish)
    rollout = _value("rollout_infos", columns, index)
    if isinstance(rollout, Mapping) and isinstance(rollout.get("num_turns"), int):
        record.turn = rollout["num_turns"]


def _prompt_of(messages: Sequence[Any]) -> Messages:
    """The turns before a completion. ms-swift's messages end with it, and have fields that only it
    knows.
    """
    # TRL's prompts end with a user's turn, and need no cut.
    if messages and messages[-1].get("role") == "assistant":
        messages = messages[:-1]
    turns: Messages = []
    for turn in messages:
        content = turn.get("content")
        if turn.get("role") == "assistant":  # of an earlier turn, perhaps without its thinking
            content = message_text(turn) or content
        turns.append({"role": turn.get("role"), "content": content})
    return turns


def _value(name: str, columns: Mapping[str, Any], index: int) -> Any:
    """The value of a column for one completion; None if it is missing or not a column."""
    values = columns.get(name)
    if isinstance(values, Sequence) and len(values) > index:
        return values[index]
    return None
