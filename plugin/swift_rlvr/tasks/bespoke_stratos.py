r"""Bespoke-Stratos-17k: questions with long reasoning traces, of which those with a boxed answer
can be graded.

Rows have `system` and `conversations`, turns of user and assistant, as in
bespokelabs/Bespoke-Stratos-17k. The first user turn becomes the prompt, with the R1-Zero system
prompt, since the dataset's own asks for other tags than those of the format rewards. The gold is
the last box of the last turn, in its solution section where it has one. Rows without a box (in the
published dataset mostly programming tasks, about a third) are counted as "no box"; loading stops
only where they are more than half.
"""

from collections.abc import Mapping
from typing import Any

from swift_rlvr.tasks.math_prompts import R1_ZERO_SYSTEM, boxed_gold, to_messages
from swift_rlvr.tasks.task import Gold, Row, RowError, Task, normalised, shown

THOUGHT, SOLUTION = (
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|begin_of_solution|>", "<|end_of_solution|>"),
)
USER, ASSISTANT = ("user", "human"), ("assistant", "gpt")


def turns(row: Row) -> tuple[str, str]:
    """The user's first turn and the assistant's last; RowError if the conversation has another
    form.
    """
    conversation = row.get("conversations")
    if not isinstance(conversation, (list, tuple)) or len(conversation) < 2:
        raise RowError(
            "conversations", f"expected a list of two turns or more, got {shown(conversation)}"
        )
    for index, turn in enumerate(conversation):
        names = (USER, ASSISTANT)[index % 2]
        text = (
            turn.get("value") if isinstance(turn, Mapping) and turn.get("from") in names else None
        )
        if not isinstance(text, str) or not text.strip():
            expected = f'{{"from": "{names[0]}", "value": a text}}'
            raise RowError(
                "conversations", f"turn {index + 1}: expected {expected}, got {shown(turn)}"
            )
    if len(conversation) % 2:
        raise RowError("conversations", "expected the assistant to have the last turn")
    return conversation[0]["value"].strip(), conversation[-1]["value"].strip()


def preprocess(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, `solution` and `task`."""
    messages = to_messages(turns(row)[0], R1_ZERO_SYSTEM)
    return {"messages": messages, "solution": gold(row).answer, "task": "bespoke_stratos"}


def identity(row: Row) -> str:
    """The same text for rows that ask the same."""
    return normalised(turns(row)[0])


def gold(row: Row) -> Gold:
    """The right answer of a raw row; RowError for one that cannot be used."""
    text = turns(row)[1]
    answer = boxed_gold(_section(text, *SOLUTION))
    if answer is None:
        problem = rf"expected \boxed{{...}} in the last turn, which ends {shown(text[-55:])}"
        raise RowError("conversations", problem, "no box")
    return Gold(answer, _section(text, *THOUGHT), text)


def _section(text: str, opening: str, closing: str) -> str:
    """What stands after the last opening mark, up to the closing one; the whole text where there is
    none.
    """
    start = text.rfind(opening)
    return text if start < 0 else text[start + len(opening) :].partition(closing)[0].strip()


TASK = Task(
    name="bespoke_stratos",
    columns=("conversations",),
    preprocess=preprocess,
    identity=identity,
    gold=gold,
    system=R1_ZERO_SYSTEM,
    ms_dataset_id="bespokelabs/Bespoke-Stratos-17k",
    hf_dataset_id="bespokelabs/Bespoke-Stratos-17k",
    max_unusable=0.5,
    examples=tuple(
        {
            "conversations": [
                {"from": "user", "value": question},
                {"from": "assistant", "value": answer},
            ]
        }
        for question, answer in (
            ("What is the sum of the first 40 odd integers?", r"It is $40^2 = \boxed{1600}$."),
            ("What is the area of a square with side 3?", r"So \boxed{9}."),
        )
    ),
)
