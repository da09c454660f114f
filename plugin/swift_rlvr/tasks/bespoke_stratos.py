r"""Bespoke-Stratos-17k: questions with long reasoning traces, of which those with a boxed answer can be graded.

Rows have `system` and `conversations`, as in bespokelabs/Bespoke-Stratos-17k (ModelScope and Hugging Face):

    {"system": "Think at length in a Thought section, then write a Solution section ...",
     "conversations": [
       {"from": "user", "value": "Return your final response within \\boxed{}. What is the sum of the first 40 ...?"},
       {"from": "assistant", "value": "<|begin_of_thought|>\n\n...\n\n<|end_of_thought|>\n\n<|begin_of_solution|>\n\n
                                       ... \\boxed{1600}.\n\n<|end_of_solution|>"}]}

The first user turn becomes the prompt, with the R1-Zero system prompt: the dataset's own asks for other tags than the
format rewards look for. The column `solution` for `external_accuracy` is the last box of the last turn, in its solution
section where it has one. Rows without a box (in the published dataset programming tasks above all, about a third) are
left out and counted as "no box"; only past a half of them loading stops. The system prompt is part of each row, and
ms-swift's `--system` has no effect on such rows.

    swift rlhf --external_plugins plugin/rlvr_plugin.py --dataset bespoke_stratos:datasets/bespoke_stratos/train.jsonl \
        --reward_funcs external_accuracy external_format ...
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from swift_rlvr.tasks.math_prompts import R1_ZERO_SYSTEM, boxed_gold, grade, to_messages

from .task import Reference, RowError, Task, normalised, shown

THOUGHT, SOLUTION = ("<|begin_of_thought|>", "<|end_of_thought|>"), ("<|begin_of_solution|>", "<|end_of_solution|>")
ASKS, ANSWERS = ("user", "human"), ("assistant", "gpt")


def turns(row: Mapping[str, Any]) -> tuple[str, str]:
    """The first turn of the user and the last one of the assistant; RowError where the conversation has another form.

    >>> turns({"conversations": [{"from": "user", "value": "1 + 1?"}, {"from": "assistant", "value": "2"}]})
    ('1 + 1?', '2')
    """
    found = row.get("conversations")
    if not isinstance(found, (list, tuple)) or len(found) < 2:
        raise RowError("conversations", f"expected a list of two turns or more, got {shown(found)}")
    for index, turn in enumerate(found):
        given = turn if isinstance(turn, Mapping) else {}
        who, said = given.get("from"), given.get("value")
        if who not in (ANSWERS if index % 2 else ASKS) or not isinstance(said, str) or not said.strip():
            expected = f'{{"from": "{(ASKS, ANSWERS)[index % 2][0]}", "value": a text}}'
            raise RowError("conversations", f"turn {index + 1}: expected {expected}, got {shown(turn)}")
    if len(found) % 2:
        raise RowError("conversations", "expected the assistant to have the last turn")
    return found[0]["value"].strip(), found[-1]["value"].strip()


def preprocess(row: Mapping[str, Any]) -> dict[str, Any]:
    r"""Raw row -> row for training: `messages`, `solution` and `task`.

    >>> asked, said = {"from": "user", "value": "1 + 1?"}, {"from": "assistant", "value": r"So it is \boxed{2}."}
    >>> row = preprocess({"system": "Think.", "conversations": [asked, said]})
    >>> print(row["solution"], row["task"], [message["role"] for message in row["messages"]])
    \boxed{2} bespoke_stratos ['system', 'user']
    """
    return {
        "messages": to_messages(turns(row)[0], R1_ZERO_SYSTEM),
        "solution": reference(row).answer,
        "task": "bespoke_stratos",
    }


def identity(row: Mapping[str, Any]) -> str:
    return normalised(turns(row)[0])


def reference(row: Mapping[str, Any]) -> Reference:
    text = turns(row)[1]
    gold = boxed_gold(_section(text, *SOLUTION))
    if gold is None:
        problem = rf"expected \boxed{{...}} in the last turn, which ends {shown(text[-55:])}"
        raise RowError("conversations", problem, "no box")
    return Reference(gold, _section(text, *THOUGHT), text)


def _section(text: str, opening: str, closing: str) -> str:
    """What stands after the last opening mark, up to the closing one; the whole text where there is none."""
    start = text.rfind(opening)
    return text if start < 0 else text[start + len(opening) :].partition(closing)[0].strip()


TASK = Task(
    name="bespoke_stratos",
    columns=("conversations",),
    preprocess=preprocess,
    grade=grade,
    system=R1_ZERO_SYSTEM,
    ms_dataset_id="bespokelabs/Bespoke-Stratos-17k",
    hf_dataset_id="bespokelabs/Bespoke-Stratos-17k",
    prompt=R1_ZERO_SYSTEM,
    identity=identity,
    reference=reference,
    reward_columns=("solution",),
    rewards=("external_accuracy", "external_format"),
    max_unusable=0.5,
)
