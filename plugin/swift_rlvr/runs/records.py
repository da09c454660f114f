"""A graded completion: one schema, one writer and one reader for all files that hold them.

Such a file has a JSON object a line. `swift-rlvr evaluate` and `probe` write them, and a training
its RECORDS and HELD_OUT; `swift-rlvr score` grades any of them again, and the report shows them.
What is unknown is left out of a line.

    {"index": 0, "sample": 1, "row": {"nums": [3, 5, 7], "target": 22, "task": "countdown"},
     "messages": [{"role": "user", "content": "Using the numbers ..."}], "completion":
     "<think>...</answer>", "rewards": {"external_countdown": 1.0, "external_format": 0.0},
     "reasons": {"external_countdown": "correct", ...}, "success": true, "strict": false, "format":
     false, "tokens": 57, "finish": "stop"}
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from swift_rlvr.success import Judges
from swift_rlvr.tasks import verifier_of
from swift_rlvr.tasks.pictures import IMAGES
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import read_jsonl

Messages = list[dict[str, Any]]

# Characters of a text that a record keeps; longer ones stay in the dataset.
LONGEST_COLUMN = 65_536


@dataclass(kw_only=True)
class Record:
    """One graded completion.

    index: of its row in the dataset, from 0; in a training its position among the completions of
        its step.
    completion: the text that was judged, the last answer of a conversation.
    rewards, reasons: by reward, under its name in the registry. A plain function is under the
        name that is logged, and gives no reasons. A reward is None if it could not grade the row.
    success, strict, format: see `swift_rlvr.success`.
    row: the columns that the rewards read. messages: the conversation before the completion.
    sample: which completion of its row, from 0. tokens: of the completion, with the end-of-turn
        token; of all answers of a conversation. finish: "stop" or "length". turn: which answer of
        the conversation it is, from 1.
    step, mode: of a training, "train" or "eval". seed: of an evaluation with several.
    """

    index: int
    completion: str
    rewards: dict[str, float | None]
    reasons: dict[str, str] = field(default_factory=dict)
    success: bool | None = None
    strict: bool | None = None
    format: bool | None = None
    row: dict[str, Any] = field(default_factory=dict)
    messages: Messages | None = None
    sample: int = 0
    tokens: int | None = None
    finish: str | None = None
    turn: int | None = None
    step: int | None = None
    mode: str | None = None
    seed: int | None = None
    advantage: float | None = None

    @property
    def first_prompt(self) -> Messages:
        """The conversation before the first answer."""
        messages = self.messages or []
        earlier_turns = (self.turn or 1) - 1
        return messages[: len(messages) - 2 * earlier_turns]

    @property
    def question(self) -> str:
        """The first prompt, or the row: a text that all completions of a row share."""
        asked: Any = self.first_prompt or self.row
        if self.first_prompt and self.row.get(IMAGES):
            # "How many are there?" of another picture is another question.
            asked = [self.first_prompt, self.row[IMAGES]]
        return json.dumps(asked, ensure_ascii=False, default=str)

    @property
    def task(self) -> str | None:
        """The name of its row's task; of reasoning-gym with the task of the entry.

        >>> row = {"task": "reasoning_gym", "entry": '{"task": "gcd", "seed": 1}'}
        >>> Record(index=0, completion="", rewards={}, row=row).task
        'reasoning_gym:gcd'
        """
        name = self.row.get("task")
        entry = re.match(r'{"task": "(\w+)"', str(self.row.get("entry")))
        return f"{name}:{entry[1]}" if name and entry else name

    @property
    def reason(self) -> str:
        """Why it is a success or not: what its task's verifier said, else the first reward that
        gave a reason.
        """
        verifier = verifier_of(self.row.get("task"))
        return self.reasons.get(verifier or "") or next(iter(self.reasons.values()), "")

    def as_json(self) -> dict[str, Any]:
        """The JSON object of its line, without the fields that are unknown."""
        return {name: value for name, value in vars(self).items() if value is not None}


_KEYS = {column.name for column in fields(Record)}
_NEEDED = ("index", "completion", "rewards")


def judge(records: Sequence[Record], judges: Judges) -> None:
    """Fill in whether each record is a success, by its rewards and its row's task."""
    for record in records:
        verifier = verifier_of(record.row.get("task"))
        judgement = judges.of(record.rewards, verifier)
        record.success, record.strict, record.format = judgement


def is_long(value: Any) -> bool:
    """Whether a column's value is too long to be kept in records."""
    return isinstance(value, str) and len(value) > LONGEST_COLUMN


def is_record(value: Mapping[str, Any]) -> bool:
    """Whether an object of a file is a record."""
    return all(name in value for name in _NEEDED) and isinstance(value["rewards"], Mapping)


def record_from_json(value: Mapping[str, Any]) -> Record:
    """The record of an object; InputError for anything else, naming what is missing or unknown."""
    if not is_record(value):
        keys = ", ".join(value) or "nothing"
        raise InputError(f"expected a record with {', '.join(_NEEDED)}, got {keys}")
    # A misspelt key would be a column that nobody ever reads.
    unknown = sorted(value.keys() - _KEYS)
    if unknown:
        raise InputError(f"a record has no {', '.join(unknown)}; it has {', '.join(sorted(_KEYS))}")
    return Record(**value)


def read_records(
    path: str | Path, unfinished: Callable[[str], object] | None = None
) -> Iterator[Record]:
    """The records of a file, in order; InputError, which names the line, for any other line.

    unfinished: as in `read_jsonl`.
    """
    for number, value in read_jsonl(path, unfinished=unfinished):
        try:
            yield record_from_json(value)
        except InputError as error:
            raise InputError(f"{path}, line {number}: {error}") from error


def append_records(path: str | Path, records: Sequence[Record]) -> None:
    """Add records to a file; the file and its folder are made if need be."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record.as_json(), ensure_ascii=False, default=str) + "\n")
