"""The choices of a question by their labels, in whatever form a dataset has them."""

import json
import re
from ast import literal_eval
from collections.abc import Mapping
from string import ascii_uppercase
from typing import Any

# The column that has them, by its usual names.
COLUMNS = ("choices", "options", "选项")
# What the choices are called in a prompt; MMLU-Pro has ten.
LETTERS = ascii_uppercase[:10]
# What the two columns of a choice are called where each is an object.
_LABEL_NAMES = ("label", "key", "letter", "id")
_TEXT_NAMES = ("text", "value", "content", "option")
# "A) iron", "(B) iron", "C. iron", as in AQuA
_WITH_LABEL = re.compile(r"\(?([A-J])[).:]\s*(\S.*)", re.DOTALL)
# Of a column that holds the choices as text, as in a .csv file.
_LONGEST_TEXT = 10_000


def choices_by_label(value: Any) -> dict[str, str]:
    """The choices by their labels, at least two different texts; empty where there are none.

    >>> choices_by_label(["iron", "salt"]), choices_by_label({"text": ["iron", "salt"], "label": ["1", "2"]})
    ({'A': 'iron', 'B': 'salt'}, {'1': 'iron', '2': 'salt'})
    >>> choices_by_label(["A) 21", "B) 21.5"]), choices_by_label([{"A": "iron"}, {"B": "salt"}])
    ({'A': '21', 'B': '21.5'}, {'A': 'iron', 'B': 'salt'})
    >>> choices_by_label(["iron"]), choices_by_label(["iron", "iron"]), choices_by_label(None)
    ({}, {}, {})
    """
    by_label: dict[str, str] = {}
    for label, choice in _labelled(value):
        text = _text(choice)
        if not text or label in by_label:
            return {}
        by_label[label] = text
    texts = list(by_label.values())
    if not 2 <= len(texts) <= len(LETTERS) or len({*texts}) < len(texts):
        return {}
    return by_label


def _labelled(value: Any) -> list[tuple[str, Any]]:
    """(label, choice) of each choice."""
    if isinstance(value, str):
        value = _parsed(value)
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


def _parsed(text: str) -> Any:
    """What a text of JSON or of Python's notation stands for, or None."""
    if len(text) > _LONGEST_TEXT:
        return None
    for read in (json.loads, literal_eval):
        try:
            return read(text)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
    return None


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
        if match is None or match[1] != label:
            return choices
        bare.append((label, match[2]))
    return bare


def _text(choice: Any) -> str:
    """A choice as text; empty where it is none."""
    if isinstance(choice, str):
        return choice.strip()
    if isinstance(choice, (int, float)) and not isinstance(choice, bool):
        return str(choice)
    return ""
