r"""GSM8K: grade-school word problems whose answer is a whole number.

Rows have `question` and `answer`, as in modelscope/gsm8k (ModelScope) and openai/gsm8k (Hugging
Face), subset main. What follows `####` in the answer, without thousands' commas, is the gold; the
calculator's `<<4*6=24>>` are removed. The system prompt asks for tags on lines of their own, as
`external_format_strict` and `external_tag_count` want them.
"""

import re
from dataclasses import replace
from typing import Any

from swift_rlvr.tasks.math_prompts import to_messages
from swift_rlvr.tasks.task import Gold, Row, RowError, Task, normalised, shown, text_of

LAYOUT = "<think>\n{reasoning}\n</think>\n<answer>\n{answer}\n</answer>"

SYSTEM_PROMPT = (
    "A conversation between User and Assistant. The User asks a question, and the Assistant solves it. The Assistant "
    "first thinks about the reasoning process in the mind and then gives the User the answer. The reasoning process "
    "and the answer are enclosed in tags, each tag on a line of its own, that is,\n"
    + LAYOUT.format(reasoning="reasoning process here", answer="answer here")
)

EXAMPLE = (
    "A baker puts 12 rolls in each bag and fills 5 bags. She sells 38 of the rolls. How many rolls are left?",
    LAYOUT.format(
        reasoning="The bags hold 5 * 12 = 60 rolls.\nAfter the sale 60 - 38 = 22 rolls are left.",
        answer="22",
    ),
)

_CALCULATOR = re.compile(r"<<[^<>=]*=[^<>]*>>")
_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


def read_answer(answer: str) -> tuple[str, str]:
    r"""The reasoning without calculator annotations, and the gold without thousands' commas;
    RowError without one.
    """
    reasoning, marks, gold = answer.rpartition("####")
    gold = gold.strip().replace(",", "").removeprefix("$")
    if not marks or not _NUMBER.fullmatch(gold):
        raise RowError(
            "answer",
            f"expected a number after ####, got {shown(answer[-55:])}",
            "no number after ####",
        )
    return _CALCULATOR.sub("", reasoning).strip(), gold


def preprocess(row: Row, *before: tuple[str, str]) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, `solution` and `task`; examples (question, answer)
    come `before`.
    """
    question, (_, gold) = text_of(row, "question", "How many?"), read_answer(_answer(row))
    return {
        "messages": to_messages(question, SYSTEM_PROMPT, *before),
        "solution": gold,
        "task": "gsm8k",
    }


def preprocess_one_shot(row: Row) -> dict[str, Any]:
    """As `preprocess`, with EXAMPLE before the question."""
    return preprocess(row, EXAMPLE)


def identity(row: Row) -> str:
    """The same text for rows that ask the same."""
    return normalised(text_of(row, "question", "How many?"))


def gold(row: Row) -> Gold:
    """The right answer of a raw row; RowError for one that cannot be used."""
    reasoning, answer = read_answer(_answer(row))
    return Gold(answer, reasoning, f"{reasoning}\n#### {answer}")


def _answer(row: Row) -> str:
    return text_of(row, "answer", "1 + 1 = 2\n#### 2")


TASK = Task(
    name="gsm8k",
    columns=("question", "answer"),
    preprocess=preprocess,
    identity=identity,
    gold=gold,
    system=SYSTEM_PROMPT,
    further_rewards=("external_format_strict", "external_tag_count"),
    ms_dataset_id="modelscope/gsm8k",
    hf_dataset_id="openai/gsm8k",
    examples=(
        {
            "question": "A box holds 6 eggs. How many eggs are in 4 boxes?",
            "answer": "Each box holds 6 eggs, so 4 boxes hold 4*6 = <<4*6=24>>24 eggs.\n#### 24",
        },
        {
            "question": "Tom has 1,000 pins and buys 200. How many has he?",
            "answer": "1000+200 = 1200\n#### 1,200",
        },
    ),
    subset="main",
    splits=("train", "test"),
)
ONE_SHOT = replace(
    TASK, name="gsm8k_one_shot", preprocess=preprocess_one_shot, prompt="\n".join(EXAMPLE)
)
