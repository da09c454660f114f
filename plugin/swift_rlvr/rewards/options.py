r"""An answer to a multiple choice, where the row has the column `options`: its letter or its value.

The verifier of mathematics sees a letter and a value. With the choices the two are one: for the
gold A the value of choice A is right, for the gold 7 the letter of the choice 7. A letter beside
the value of another choice is a hedge, and wrong. Of several right letters, as in "A, C", an answer
gives all and no other, by their letters.
"""

import re
from typing import NamedTuple

from swift_rlvr.tasks.options import LETTERS, choices_by_label, letters_in
from swift_rlvr.verifiers.answers import normalised_answer
from swift_rlvr.verifiers.mathematics import Leniency, Reason, Verdict, grade
from swift_rlvr.verifiers.statements import WORDS, final_statement

# \text{(A) iron}, \textbf{A}
TEXT_COMMAND = re.compile(r"\\(?:text|math)[a-z]{0,2}\s*\{([^{}]*)\}")
_SPACING = re.compile(r"\\[,;:! ]|\\q?quad\b|~|\$|\\[()\[\]]|\*\*|`")
# A, (A), [A], "Option A:", "the answer is (A)"; and behind it a value: "(A) 7", "A. 7", "A = 7"
_BEFORE = r"(?:(?:the )?(?:correct |right )?(?:answer|option|choice)(?: is)?:?\s*)"
_LETTER_FIRST = re.compile(
    rf"{_BEFORE}*(?:[(\[]([A-J])[)\]][.:]?|([A-J])[).:]|([A-J])(?=\Z|\s[-–—]\s|\s*=))"
    r"\s*(?:[-–—=,:]\s*)?(.*)",
    re.DOTALL | re.IGNORECASE,
)
# "A 7"; in lower case it may be a word
_BARE_LETTER_FIRST = re.compile(r"([A-J])\s+(.*)", re.DOTALL)
# "7 (A)", "7, option A"
_LETTER_LAST = re.compile(
    r"(\S.*?)[\s,]*(?:[(\[](?:option |choice )?([A-J])[)\]]|(?:option|choice) ([A-J]))\.?",
    re.DOTALL | re.IGNORECASE,
)
_LETTER_IN_BRACKETS = re.compile(r"[(\[]([A-J])[)\]]", re.IGNORECASE)


class _Answer(NamedTuple):
    """An answer in its two parts, of which one may be missing."""

    letter: str | None
    value: str


def choice_alone(text: str, options: object, form: str | None) -> str | None:
    """The choice that is all of the last line of a completion, where nothing else states an answer: to
    the verifier of mathematics it is the end of a sentence.

    >>> choice_alone("Salt is none.\\nIron.", ["salt", "iron"], None), choice_alone("So iron.", ["salt", "iron"], None)
    ('Iron.', None)
    """
    words = {normalised_answer(choice) for choice in _choices(options).values()}
    reader = WORDS._replace(is_value=lambda line: normalised_answer(line) in words)
    statement = final_statement(text, form, reader)
    return statement.answer if statement and reader.is_value(statement.answer) else None


def with_options(verdict: Verdict, gold: object, options: object, leniency: Leniency) -> Verdict:
    """The verdict on an answer by a gold, where the row has choices: the same where they say
    nothing about it.

    >>> def reason(answer, gold, options=("7", "8")):
    ...     return str(with_options(grade(f"<answer>{answer}</answer>", gold), gold, options, Leniency()).reason)
    >>> reason("7", "A"), reason("A", "7"), reason("(A) 7", "A"), reason("(A) 8", "A"), reason("8", "A")
    ('correct', 'correct', 'correct', 'wrong answer', 'wrong answer')
    """
    if verdict.answer is None or verdict.reason is Reason.ERROR:
        return verdict
    choices = _choices(options)
    several = letters_in(gold, [*choices]) if isinstance(gold, str) else []
    if several:
        # The letters alone, or each with what its choice says: (A) iron, (C) tin.
        bare = _SPACING.sub(" ", TEXT_COMMAND.sub(r"\1 ", verdict.answer))
        for letter, text in choices.items():
            bare = re.sub(rf"\b{letter}[).:]*\s*{re.escape(text)}(?!\w)", letter, bare)
        return _decided(verdict, letters_in(bare, [*choices]) == several)
    right = _right_letter(gold, verdict.gold, choices)
    if right is None:
        return verdict

    answer = _read(verdict.answer, choices)
    stated = _letters_of(answer.value, choices, leniency) if answer.value else []
    is_right = _is_right(answer, right, stated, verdict.reason is Reason.CORRECT)
    # "7, or (B)" names another choice beside its value.
    if answer.value not in choices.values():
        letters = {letter.upper() for letter in _LETTER_IN_BRACKETS.findall(answer.value)}
        if letters & choices.keys() - {right}:
            is_right = False
    return verdict if is_right is None else _decided(verdict, is_right)


def _decided(verdict: Verdict, is_right: bool) -> Verdict:
    reason = Reason.CORRECT if is_right else Reason.WRONG
    return verdict._replace(reward=reason.reward, reason=reason)


def _is_right(answer: _Answer, right: str, stated: list[str], is_gold: bool) -> bool | None:
    """Whether an answer is the right choice; None if the choices say nothing about it.

    stated: the choices that its value is. is_gold: whether the value equals the gold.
    """
    if answer.letter is None:
        # Of two choices with the value, such as 5 cm and 5 m for 5, it is neither.
        if stated == [right] or (is_gold and not stated):
            return True
        return False if stated else None
    if answer.letter != right:
        return False
    if not answer.value or right in stated:
        return True
    return False if stated else None


def _choices(options: object) -> dict[str, str]:
    """The choices by their letters; empty if they have other labels, or are letters
    themselves.
    """
    choices = choices_by_label(options)
    if list(choices) != list(LETTERS[: len(choices)]):
        return {}
    if any(text.strip("().").upper() in choices for text in choices.values()):
        return {}
    return choices


def _right_letter(gold: object, gold_text: str | None, choices: dict[str, str]) -> str | None:
    """The letter of the right choice; None if the gold is none of them, or could be two."""
    if not choices or not isinstance(gold, (str, int, float)) or isinstance(gold, bool):
        return None
    text = gold_text or str(gold)
    written = _read(text, choices)
    if written.letter is not None:
        return written.letter
    letters = _letters_of(text, choices, Leniency())
    return letters[0] if len(letters) == 1 else None


def _read(text: str, choices: dict[str, str]) -> _Answer:
    """The letter and the value that an answer gives. A letter is one of the choices'."""
    bare = _SPACING.sub(" ", TEXT_COMMAND.sub(r"\1 ", text)).strip().rstrip(".").strip()
    # "C. elegans", "A = 5" and "A body" may be choices themselves.
    if bare.casefold() in [choice.rstrip(".").casefold() for choice in choices.values()]:
        return _Answer(None, text)
    first = _LETTER_FIRST.fullmatch(bare)
    if first:
        letter = (first[1] or first[2] or first[3]).upper()
        if letter in choices:
            return _Answer(letter, first[4].strip())
    bare_letter = _BARE_LETTER_FIRST.fullmatch(bare)
    if bare_letter and bare_letter[1] in choices:
        return _Answer(bare_letter[1], bare_letter[2].strip())
    last = _LETTER_LAST.fullmatch(bare)
    if last:
        letter = (last[2] or last[3]).upper()
        if letter in choices:
            return _Answer(letter, last[1].strip())
    return _Answer(None, text)


def _letters_of(value: str, choices: dict[str, str], leniency: Leniency) -> list[str]:
    """The letters of the choices that a value is."""
    words = normalised_answer(value)
    letters = [letter for letter, text in choices.items() if normalised_answer(text) == words]
    if letters:
        return letters
    # Only now as mathematics, by which 1/2 is the choice 0.5: two choices may be worth the same, and the one with
    # the same text is meant.
    completion = f"<answer>{value}</answer>"
    for letter, text in choices.items():
        if grade(completion, text, leniency).reason is Reason.CORRECT:
            letters.append(letter)
    return letters
