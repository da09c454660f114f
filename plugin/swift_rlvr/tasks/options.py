"""The choices of a question by their labels, in whatever form a dataset has them."""

import re
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Any

from swift_rlvr.tasks.columns import parsed, value_at
from swift_rlvr.tasks.task import Row, columns_named, folded_name
from swift_rlvr.verifiers.answers import marked_answer, normalised_answer

# The column that has them, by its usual names.
COLUMNS = (
    "choices",
    "options",
    "question.choices",
    "endings",
    "candidates",
    "alternatives",
    "choice",
    "选项",
)
# What the choices are called in a prompt; MMLU-Pro has ten.
LETTERS = ascii_uppercase[:10]
# What the two columns of a choice are called where each is an object.
_LABEL_NAMES = ("label", "key", "letter", "id")
_TEXT_NAMES = ("text", "value", "content", "option")
# "A) iron", "(B) iron", "C. iron", as in AQuA
_WITH_LABEL = re.compile(r"\(?([A-J])\s?[).:、．]\s*(\S.*)", re.DOTALL | re.IGNORECASE)
# The label of a choice within a text: at the beginning, or after a break
_LABEL_IN_TEXT = re.compile(r"(?:^|(?<=[\s,;]))\(?([A-Ja-j])\s?[).:、．]\s*", re.MULTILINE)
# Of a column that holds the choices as text, as in a .csv file.
_LONGEST_TEXT = 10_000
# Columns with one choice each: option_a, opb, sol1, ending0, choice2.
_CHOICE_COLUMN = re.compile(
    r"(options?|choices?|opt|op|sol|answer|ans|endings?|alternative|选项)([a-j]|\d{1,2})"
)
# Columns with a wrong choice, or a list of them.
_WRONG_COLUMN = re.compile(
    r"(?:incorrect|wrong|false)(?:answer|option|choice)s?\d*|distractors?\d*"
)
_RIGHT = ("correct_answer", "best_answer", "right_answer", "correct_option", "correct", "answer")
# "B", "(B)", "B."
_MARKS_OF_LABEL = "()[]{}.: "
# What stands around and between several letters: "(A) and (C)", "options A, C", "A、C"
_AROUND_LETTERS = re.compile(
    r"[()\[\]{}*.:$\\]|\b(?:and|options?|choices?|answers?)\b", re.IGNORECASE
)
_BETWEEN_LETTERS = re.compile(r"[\s,;/&+|、，；和与及]+")


def choices_by_label(value: Any) -> dict[str, str]:
    """The choices by their labels, at least two different texts; empty if there are none.

    >>> choices_by_label(["iron", "salt"]), choices_by_label({"text": ["iron", "salt"], "label": ["1", "2"]})
    ({'A': 'iron', 'B': 'salt'}, {'1': 'iron', '2': 'salt'})
    >>> choices_by_label(["A) 21", "B) 21.5"]), choices_by_label([{"A": "iron"}, {"B": "salt"}])
    ({'A': '21', 'B': '21.5'}, {'A': 'iron', 'B': 'salt'})
    >>> choices_by_label(["iron"]), choices_by_label(["iron", "iron"]), choices_by_label(None)
    ({}, {}, {})
    """
    by_label: dict[str, str] = {}
    for label, choice in _labelled(value):
        text = ""
        if isinstance(choice, (str, int, float)) and not isinstance(choice, bool):
            text = str(choice).strip()
        if not text or label in by_label:
            return {}
        by_label[label] = text
    return by_label if _can_be_chosen_from(by_label) else {}


def _can_be_chosen_from(choices: Mapping[str, str]) -> bool:
    """Whether there are several choices, no two of which say the same."""
    texts = list(choices.values())
    return 2 <= len(texts) <= len(LETTERS) and len({*texts}) == len(texts)


def _labelled(value: Any) -> list[tuple[str, Any]]:
    """(label, choice) of each choice."""
    if isinstance(value, str):
        value = parsed(value) if len(value) <= _LONGEST_TEXT else None
        if isinstance(value, str):
            return list(choices_in_text(value).items())
    if isinstance(value, Mapping):
        if {"text", "label"} <= value.keys():  # as in ARC
            labels, texts = value["label"], value["text"]
            if not (isinstance(labels, list) and isinstance(texts, list)):
                return []
            return list(zip(map(str, labels), texts, strict=False))
        # A column A, B, C ... that a row does not need is None.
        return [(str(label), choice) for label, choice in value.items() if choice is not None]
    if not isinstance(value, (list, tuple)):
        return []
    if all(isinstance(choice, Mapping) for choice in value):
        return list(map(_labelled_object, value))
    return _with_labels_taken_off(list(zip(ascii_uppercase, value, strict=False)))


def _labelled_object(choice: Mapping[str, Any]) -> tuple[str, Any]:
    """Of {"A": "iron"}, or of {"label": "A", "text": "iron"}."""
    if len(choice) == 1:
        ((label, text),) = choice.items()
        return str(label), text
    label = next((choice[name] for name in _LABEL_NAMES if name in choice), "")
    return str(label), next((choice[name] for name in _TEXT_NAMES if name in choice), None)


def _with_labels_taken_off(choices: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """The same without the labels in the texts, where each text begins with its own."""
    bare = []
    for label, choice in choices:
        match = _WITH_LABEL.fullmatch(choice.strip()) if isinstance(choice, str) else None
        if match is None or match[1].upper() != label:
            return choices
        bare.append((label, match[2]))
    return bare


def choices_in_text(text: str) -> dict[str, str]:
    """The choices that stand in a text, one after the other with their labels; empty if none do.

    >>> choices_in_text("Which? A) iron B) salt"), choices_in_text("a ) 38 , b ) 27.5 , c ) none")
    ({'A': 'iron', 'B': 'salt'}, {'A': '38', 'B': '27.5', 'C': 'none'})
    >>> choices_in_text("Which?\\nA. iron\\nB. salt\\n\\nAnswer with the letter.")
    {'A': 'iron', 'B': 'salt'}
    >>> choices_in_text("Point A. Then B. Then A."), choices_in_text("Is it so?")
    ({}, {})
    """
    if len(text) > _LONGEST_TEXT:
        return {}
    labels = list(_LABEL_IN_TEXT.finditer(text))
    # The last A begins them: an earlier one may be a point, or an article.
    starts = [index for index, label in enumerate(labels) if label[1] in "Aa"]
    if not starts:
        return {}
    labels = labels[starts[-1] :]
    choices: dict[str, str] = {}
    for index, label in enumerate(labels):
        letter = label[1].upper()
        if letter != LETTERS[index : index + 1]:
            return {}
        end = labels[index + 1].start() if index + 1 < len(labels) else len(text)
        choice = text[label.end() : end].strip()
        if index + 1 == len(labels) and not any("\n" in other for other in choices.values()):
            # What follows a last choice of one line, as the others are, asks for the answer.
            choice = choice.partition("\n")[0]
        choice = choice.strip().rstrip(",;").strip()
        if not choice:
            return {}
        choices[letter] = choice
    return choices if _can_be_chosen_from(choices) else {}


def choices_in_columns(row: Row) -> tuple[dict[str, str], int | None]:
    """The choices that have a column each, such as opa, opb or sol1, sol2, and the number that the
    first one has in its name, None if it has a letter; empty if none have.

    >>> choices_in_columns({"question": "?", "opa": "iron", "opb": "salt", "cop": 1})
    ({'A': 'iron', 'B': 'salt'}, None)
    >>> choices_in_columns({"goal": "?", "sol1": "turn", "sol2": "eat"})
    ({'A': 'turn', 'B': 'eat'}, 1)
    """
    by_stem: dict[str, dict[str, Any]] = {}
    for name, value in row.items():
        match = _CHOICE_COLUMN.fullmatch(folded_name(name))
        if match and value is not None:
            by_stem.setdefault(match[1], {})[match[2]] = value
    for columns in by_stem.values():
        # opa before opb, and 2 before 10. Numbers that begin elsewhere count something else.
        labels = sorted(columns, key=lambda label: (len(label), label))
        choices = choices_by_label([columns[label] for label in labels])
        if choices and labels[0] in ("a", "0", "1"):
            return choices, None if labels[0] == "a" else int(labels[0])
    return {}, None


def right_and_wrong(row: Row) -> tuple[Any, list[Any]]:
    """The right choice and the wrong ones, where they have columns of their own, as in GPQA, SciQ
    and TruthfulQA; no wrong ones where they have not.
    """
    targets = value_at(row, "mc1_targets.choices"), value_at(row, "mc1_targets.labels")
    if all(isinstance(each, (list, tuple)) for each in targets):
        by_label: dict[bool, list[Any]] = {True: [], False: []}
        for text, label in zip(*targets, strict=False):
            by_label[label == 1].append(text)
        if len(by_label[True]) == 1:
            return by_label[True][0], by_label[False]

    wrong: list[Any] = []
    for name, value in row.items():
        if _WRONG_COLUMN.fullmatch(folded_name(name)) and value:
            value = parsed(value)
            wrong += value if isinstance(value, (list, tuple)) else [value]
    names = columns_named(_RIGHT, row)
    return (value_at(row, names[0]) if names else None), wrong


def number_of_gold(gold: Any, choices: Mapping[str, str], first: int | None = 0) -> int | None:
    r"""The number, from 0, of the choice that a gold means: by its label, its text, both, or its
    number; None if it means none, or could mean two.

    first: the number of the first choice, as the gold counts; None if no gold is a number of a choice.

    >>> choices = {"A": "salt", "B": "iron"}
    >>> golds = ("B", "(b)", r"\boxed{B}", "B. iron", "iron", "1", 1, "C", "B. salt")
    >>> [number_of_gold(gold, choices) for gold in golds]
    [1, 1, 1, 1, 1, 1, 1, None, None]
    """
    if isinstance(gold, bool):
        return None
    if isinstance(gold, float) and gold.is_integer():
        gold = int(gold)
    text = str(gold).strip()
    numbers = _numbers_of(text, choices)
    marked = marked_answer(text) if not numbers else None
    if marked:
        text = marked[1].strip()
        numbers = _numbers_of(text, choices)
    if not numbers and first is not None and re.fullmatch(r"\d{1,2}", text, re.ASCII):
        number = int(text) - first
        return number if 0 <= number < len(choices) else None
    return numbers[0] if len(numbers) == 1 else None


def _numbers_of(text: str, choices: Mapping[str, str]) -> list[int]:
    """The choices that a text names, by label, by what they say, or by both."""
    label = text.strip(_MARKS_OF_LABEL).casefold()
    words = normalised_answer(text)
    both = _WITH_LABEL.fullmatch(text)
    exactly = []
    in_words = []
    for number, (known, choice) in enumerate(choices.items()):
        known = known.casefold()
        says = normalised_answer(choice)
        # "B. salt" names nothing where B is iron.
        is_both = False
        if both is not None:
            is_both = both[1].casefold() == known and normalised_answer(both[2]) == says
        if label == known or text == choice or is_both:
            exactly.append(number)
        if words == says:
            in_words.append(number)
    # Without case and articles "A" and "a" may be the same, so the text as it is written comes first.
    return exactly or in_words


def letters_in(text: str, labels: Sequence[str] = LETTERS) -> list[str]:
    """The letters of several choices, in order, where a text is nothing else; empty if it is one
    letter, or something else.

    >>> letters_in("A, C"), letters_in("CA"), letters_in("(a) and (c)"), letters_in("['A', 'C']")
    (['A', 'C'], ['A', 'C'], ['A', 'C'], ['A', 'C'])
    >>> letters_in("A"), letters_in("A or C"), letters_in("ac"), letters_in("A and iron"), letters_in("AC", "AB")
    ([], [], [], [], [])
    """
    bare = _AROUND_LETTERS.sub(" ", text.replace("'", " ").replace('"', " "))
    parts = list(filter(None, _BETWEEN_LETTERS.split(bare)))
    if any(len(part) > 1 for part in parts):
        # AC, in capitals: in small letters it may be a word
        parts = list("".join(parts))
    elif len(parts) > 1:
        parts = [part.upper() for part in parts]
    different = sorted({*parts})
    return different if len(different) > 1 and all(part in labels for part in different) else []
