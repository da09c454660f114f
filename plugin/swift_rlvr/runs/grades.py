"""The grades of a training's completions, collected from its rewards and judged."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from swift_rlvr.runs.records import Record
from swift_rlvr.success import Judges, key_of
from swift_rlvr.tasks import verifier_of
from swift_rlvr.verifiers.answers import completion_text

TOKENS = (
    "response_token_ids",
    "completion_ids",
)  # ms-swift's and TRL's column of a completion's token ids
NOT_OF_THE_ROW = {*TOKENS, "prompts", "trainer_state"}
LONGEST_COLUMN = 65_536  # characters of a text that a record keeps; longer ones stay in the dataset


class GradeLog:
    """Collects what rewards are asked and say, until it is taken. Each reward whose `log` it is
    adds its own.
    """

    def __init__(self) -> None:
        self._by_reward: defaultdict[str, list[Record]] = defaultdict(list)

    def add(
        self,
        reward: Any,
        completions: Sequence,
        columns: Mapping[str, Any],
        grades: Sequence[tuple[float | None, str]],
    ) -> None:
        """Take note of a call of a reward: the completions and all columns as it got them, and its
        grades.
        """
        key, own = (
            key_of(reward),
            dict.fromkeys((*reward.columns, *reward.optional_columns, "task", "level")),
        )
        present = {
            name: columns[name]
            for name in own
            if name not in NOT_OF_THE_ROW and columns.get(name) is not None
        }
        for index, (completion, (value, reason)) in enumerate(
            zip(completions, grades, strict=True)
        ):
            row = {
                name: values[index]
                for name, values in present.items()
                if not is_long(values[index])
            }
            text = completion_text(completion) or ""
            record = Record(
                index=0, completion=text, rewards={key: value}, reasons={key: reason}, row=row
            )
            _add_trainers_columns(record, columns, index)
            self._by_reward[key].append(record)

    def take(self) -> list[Record]:
        """The records since the last call, in order, each with the grades of all rewards."""
        records: list[Record] = []
        for own in self._by_reward.values():
            for known, record in zip(records, own, strict=False):
                known.rewards |= record.rewards
                known.reasons |= record.reasons
                known.row |= record.row
            records += own[len(records) :]
        self._by_reward.clear()
        return records


def is_long(value: Any) -> bool:
    """Whether a column's value is too long to be kept in records."""
    return isinstance(value, str) and len(value) > LONGEST_COLUMN


def _add_trainers_columns(record: Record, columns: Mapping[str, Any], index: int) -> None:
    """What ms-swift, TRL and our trainer say of a completion beside its row."""

    def value(name: str) -> Any:
        values = columns.get(name)
        return values[index] if isinstance(values, Sequence) and len(values) > index else None

    messages = value("messages") or value("prompts")
    if isinstance(messages, Sequence) and not isinstance(messages, str):
        # ms-swift's end with the completion, without the fields that only it knows.
        messages = (
            messages[:-1] if messages and messages[-1].get("role") == "assistant" else messages
        )
        record.messages = [
            {"role": each.get("role"), "content": each.get("content")} for each in messages
        ]
    ids = next((ids for name in TOKENS if (ids := value(name)) is not None), None)
    if ids is not None:  # of several turns, a list of each
        record.tokens = sum(map(len, ids)) if ids and isinstance(ids[0], Sequence) else len(ids)
    finish = value("finish_reason")
    record.finish = str(finish) if finish is not None else None
    rollout = value("rollout_infos")
    if isinstance(rollout, Mapping) and isinstance(rollout.get("num_turns"), int):
        record.turn = rollout["num_turns"]


def judge(records: Sequence[Record], judges: Judges) -> None:
    """Say of each record whether it is a success, by its rewards and its row's task."""
    for record in records:
        verifier = verifier_of(record.row.get("task"))
        record.success, record.strict, record.format = judges.of(record.rewards, verifier)


def reason_of(record: Record) -> str:
    """Why a record is a success or none: the reason of its task's verifier, else of the first
    reward that gave one.
    """
    verifier = verifier_of(record.row.get("task"))
    return record.reasons.get(verifier or "") or next(iter(record.reasons.values()), "")
