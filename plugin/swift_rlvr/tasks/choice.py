"""Multiple choice of one's own, whatever the columns are called: `choice:FILE`.

The choices are in any form that `options.py` reads, the right one is a label, a choice as it is written,
its index from 0, or several of them. The policy is asked for the letter, or for the letters of all right
choices, of which none may be missing. The question is read as in `own.py`.
"""

import hashlib
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from swift_rlvr.tasks.columns import parsed
from swift_rlvr.tasks.math_prompts import R1_ZERO_SYSTEM
from swift_rlvr.tasks.options import (
    LETTERS,
    choices_by_label,
    choices_in_columns,
    choices_in_text,
    letters_in,
    number_of_gold,
    right_and_wrong,
)
from swift_rlvr.tasks.own import (
    MATH,
    RIGHT_CHOICE,
    OwnTask,
    Question,
    choices_value,
    golds_in,
    pictures_digest,
    read_question,
    with_kept_columns,
)
from swift_rlvr.tasks.task import Gold, Row, RowError, asked_text, folded_name, normalised, shown
from swift_rlvr.verifiers.answer_forms import asked_form


@dataclass(frozen=True)
class Choices:
    """The choices of a row and the right one.

    in_question: whether the question shows them by letter, numbered: by number, from 1. right: None if
    a column says it. in_columns: whether each has a column, and first: the number that the first one
    has in its name.
    """

    by_label: dict[str, str]
    in_question: bool = False
    numbered: bool = False
    right: int | None = None
    in_columns: bool = False
    first: int | None = None

    @property
    def letters(self) -> str:
        return LETTERS[: len(self.by_label)]

    def counted_from(self, column: str, gold: Any) -> int:
        """The number of the first choice where a gold is a number.

        It is an index, from 0, but for choices in columns of their own: WinoGrande's answer "1" is
        option1, and SocialIQA's label "1" is answerA. PIQA's label 0 is sol1. Where the question
        shows "1. iron 2. salt", the answer 2 is salt.
        """
        if self.numbered:
            return 1
        if not self.in_columns:
            return 0
        if self.first is None:
            return 1 if isinstance(gold, str) else 0
        return 0 if folded_name(column) == "label" else self.first

    def numbers_of_letters(self, gold: str) -> list[int | None]:
        """The numbers of the choices that a gold lists by their letters: "A, C", "AC", but not "BAD"."""
        letters = letters_in(gold, self.letters)
        # "BAD" spells a word: its letters are not in order, so that it lists nothing.
        written = "".join(character for character in gold if character in LETTERS)
        has_letters = list(self.by_label) == list(self.letters)
        if not has_letters or written != "".join(letters):
            return []
        return [LETTERS.index(letter) for letter in letters]


def _choices_in(row: Row, question: Question) -> Choices:
    """The choices of a row; RowError if there are none."""
    in_question = choices_in_text(question.asked)
    value = choices_value(row)
    choices = choices_by_label(value)
    if choices:
        shows_them = list(in_question.values()) == list(choices.values())
        numbered = True
        for number, text in enumerate(choices.values(), start=1):
            shown_so = rf"(?<!\w){number}\s?[).:、]\s*{re.escape(text)}"
            numbered = numbered and bool(re.search(shown_so, question.asked))
        return Choices(choices, shows_them, numbered)
    choices, first = choices_in_columns(row)
    if choices:
        return Choices(choices, in_columns=True, first=first)
    right, wrong = right_and_wrong(row)
    choices = choices_by_label([right, *wrong])
    if choices:
        # The right one must not always be A. The order is the question's own, so that neither the
        # rows before it nor the process change it.
        texts = list(choices.values())
        seed = hashlib.sha256(question.asked.encode()).digest()
        order = random.Random(seed).sample(range(len(texts)), len(texts))
        shuffled = [texts[index] for index in order]
        return Choices(dict(zip(LETTERS, shuffled, strict=False)), right=order.index(0))
    if in_question:
        return Choices(in_question, True)

    expected = f"2 to {len(LETTERS)} different texts, in a list or by label"
    if value is None:
        columns = ", ".join(map(str, row))
        flag = """--columns '{"NAME OF THE CHOICES": "choices"}'"""
        raise RowError("choices", f"none in the columns {columns}; expected {expected}: {flag}")
    raise RowError("choices", f"expected {expected}, got {shown(value)}")


def _right_choice(row: Row, question: Question, choices: Choices) -> str:
    """The letter of the right choice, or those of all right ones, as "A, C"; RowError if the answer
    is none of them, or could be two.
    """
    if choices.right is not None:
        return LETTERS[choices.right]
    offered = choices_value(row)
    for column, answer in question.answers.items():
        if answer == offered:  # ReClor has its choices in `answers`
            continue
        numbers: list[int | None] = []
        golds = golds_in(answer)
        for gold in golds:
            first = choices.counted_from(column, gold)
            number = _index_of(column, gold, offered, first)
            if number is None:
                number = number_of_gold(gold, choices.by_label, first)
            numbers.append(number)
        if numbers == [None] and isinstance(golds[0], str):
            numbers = choices.numbers_of_letters(golds[0])
        # One that names no choice makes the whole list doubtful, and the next column may be better.
        right = {number for number in numbers if number is not None}
        if right and len(right) == len(numbers):
            return ", ".join(LETTERS[number] for number in sorted(right))
    column, answer = list(question.answers.items())[-1]
    expected = f"one of {', '.join(choices.by_label)}, a choice or its index from 0"
    raise RowError(
        "answer", f"expected {expected}, or several, got {shown(answer)}", in_file=column
    )


def _index_of(column: str, gold: Any, offered: Any, first: int) -> int | None:
    """The index that a gold is where it is a number beside choices that are texts: MMLU's 2 is the third
    of "8", "2", "24", "120". None where it may be a choice as it is written.

    >>> texts = ["8", "2", "24", "120"]
    >>> _index_of("answer", 2, texts, 0), _index_of("answer_idx", "2", texts, 0)
    (2, 2)
    >>> _index_of("answer", "2", texts, 0), _index_of("answer", 2, [8, 2, 24, 120], 0)
    (None, None)
    """
    # A text is an index in a column that is called so; elsewhere it is what a choice says.
    number = None
    if isinstance(gold, str):
        is_index = folded_name(column).endswith(("index", "idx"))
        if is_index and gold.isdecimal():
            number = int(gold)
    elif isinstance(gold, (int, float)) and not isinstance(gold, bool) and gold == gold // 1:
        number = int(gold)
    # Beside choices that are numbers, 2 may be the choice that says 2.
    choices = parsed(offered)
    if isinstance(choices, Mapping) and set(choices) <= set(LETTERS):
        choices = list(choices.values())
    if number is None or not isinstance(choices, (list, tuple)):
        return None
    if not all(isinstance(each, str) for each in choices):
        return None
    index = number - first
    return index if 0 <= index < len(choices) else None


def prepare_choice(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, where the choices follow the question, `solution`,
    `options` and `task`.
    """
    question = read_question(row, RIGHT_CHOICE)
    choices = _choices_in(row, question)
    solution = _right_choice(row, question, choices)
    texts = list(choices.by_label.values())
    lines = [question.messages[-1]["content"], ""]
    if not choices.in_question:
        for letter, choice in zip(LETTERS, texts, strict=False):
            lines.append(f"{letter}. {choice}")
        lines.append("")
    if asked_form(question.asked) is None:
        what = "letters of all right choices" if len(solution) > 1 else "letter of the right choice"
        lines.append(f"Answer with the {what}.")
    asked = {"role": "user", "content": "\n".join(lines).strip()}
    prepared = {
        "messages": [*question.messages[:-1], asked],
        "solution": solution,
        "options": texts,
        "task": "choice",
    }
    return with_kept_columns(row, question, prepared)


def choice_identity(row: Row) -> str:
    """The same text for rows that ask the same: "Which is true?" with other choices is another
    question.
    """
    question = read_question(row, RIGHT_CHOICE)
    choices = sorted(_choices_in(row, question).by_label.values())
    text = normalised("\n".join([asked_text(question.messages), *choices]))
    return text + pictures_digest(row)


def choice_gold(row: Row) -> Gold:
    """The right answer of a raw row; RowError for one that cannot be used."""
    question = read_question(row, RIGHT_CHOICE)
    return Gold(_right_choice(row, question, _choices_in(row, question)))


@dataclass(frozen=True)
class ChoiceTask(OwnTask):
    """The same, whose answer may also be an index or a letter in a column of its own."""

    further: ClassVar[tuple[str, ...]] = RIGHT_CHOICE


TASK = ChoiceTask(
    name="choice",
    columns=MATH.columns,
    preprocess=prepare_choice,
    identity=choice_identity,
    gold=choice_gold,
    system=R1_ZERO_SYSTEM,
    reward_columns=("solution", "options"),
    examples=(
        {"problem": "Which is a metal?", "choices": ["oxygen", "iron"], "answer": "B"},
        {"problem": "Which is a gas?", "choices": ["helium", "lead", "salt"], "answer": 0},
    ),
)
