"""The constraints of a row, in the forms in which datasets have them.

- IFEval and IFBench: `instruction_id_list` and `kwargs`, one object for each.
- IF-RLVR: a text of `[{"instruction_id": [...], "kwargs": [...]}]`.
- RLVR-IFeval: a text of one object, its `func_name` and the arguments of that function of open-instruct.
- ours: a list of `{"id": ..., "kwargs": {...}}`, as JSON, which every other form is turned into.
"""

import json
from ast import literal_eval
from collections.abc import Mapping, Sequence
from typing import Any

from swift_rlvr.verifiers.instructions import (  # noqa: F401 - they fill KINDS
    ifbench,
    ifbench_forms,
    ifeval,
)
from swift_rlvr.verifiers.instructions.answer import Answer
from swift_rlvr.verifiers.instructions.constraint import KINDS, BadConstraint, Constraint

_LONGEST_TEXT = 1_000_000
_NOTHING = Answer("")
# open-instruct's functions -> the constraint, the names of its arguments, and those that are fixed.
_FUNCTIONS: dict[str, tuple[str, dict[str, str], dict[str, Any]]] = {
    "verify_keywords": ("keywords:existence", {"keyword_list": "keywords"}, {}),
    "verify_keyword_frequency": (
        "keywords:frequency",
        {"word": "keyword", "N": "frequency"},
        {"relation": "exactly"},
    ),
    "validate_forbidden_words": (
        "keywords:forbidden_words",
        {"forbidden_words": "forbidden_words"},
        {},
    ),
    "verify_letter_frequency": (
        "keywords:letter_frequency",
        {"letter": "letter", "N": "let_frequency"},
        {"let_relation": "exactly"},
    ),
    "validate_response_language": ("language:response_language", {"language": "language"}, {}),
    "verify_paragraph_count": (
        "length_constraints:number_paragraphs",
        {"N": "num_paragraphs"},
        {},
    ),
    "validate_word_constraint": (
        "length_constraints:number_words",
        {"N": "num_words", "quantifier": "relation"},
        {},
    ),
    "verify_sentence_constraint": (
        "length_constraints:number_sentences",
        {"N": "num_sentences", "quantifier": "relation"},
        {},
    ),
    "validate_paragraphs": (
        "length_constraints:nth_paragraph_first_word",
        {"N": "num_paragraphs", "first_word": "first_word", "i": "nth_paragraph"},
        {},
    ),
    "verify_postscript": (
        "detectable_content:postscript",
        {"postscript_marker": "postscript_marker"},
        {},
    ),
    "validate_placeholders": (
        "detectable_content:number_placeholders",
        {"N": "num_placeholders"},
        {},
    ),
    "verify_bullet_points": ("detectable_format:number_bullet_lists", {"N": "num_bullets"}, {}),
    "validate_title": ("detectable_format:title", {}, {}),
    "validate_choice": ("detectable_format:constrained_response", {"options": "options"}, {}),
    "validate_highlighted_sections": (
        "detectable_format:number_highlighted_sections",
        {"N": "num_highlights"},
        {},
    ),
    "validate_sections": (
        "detectable_format:multiple_sections",
        {"N": "num_sections", "section_splitter": "section_spliter"},
        {},
    ),
    "validate_json_format": ("detectable_format:json_format", {}, {}),
    "validate_repeat_prompt": (
        "combination:repeat_prompt",
        {"original_prompt": "prompt_to_repeat"},
        {},
    ),
    "validate_two_responses": ("combination:two_responses", {}, {}),
    "validate_uppercase": ("change_case:english_capital", {}, {}),
    "validate_lowercase": ("change_case:english_lowercase", {}, {}),
    "validate_frequency_capital_words": (
        "change_case:capital_word_frequency",
        {"N": "capital_frequency", "quantifier": "capital_relation"},
        {},
    ),
    "validate_end": ("startend:end_checker", {"end_phrase": "end_phrase"}, {}),
    "validate_quotation": ("startend:quotation", {}, {}),
    "validate_no_commas": ("punctuation:no_comma", {}, {}),
}
_EXPECTED = (
    "expected instruction_id_list with kwargs, an object with func_name, or a list of "
    '{"id": ..., "kwargs": {...}}'
)


class BadConstraints(ValueError):
    """Constraints of a row that cannot be read. problems: the name of each, or what is there, and
    why.
    """

    def __init__(self, problems: Mapping[str, str]):
        super().__init__("; ".join(problems.values()))
        self.problems = dict(problems)


def read_constraints(value: object, kwargs: object = None) -> list[Constraint]:
    """The constraints of a row, at least one, in any of the forms above, also as a text of JSON or
    Python.

    kwargs: the column of this name, beside `instruction_id_list`.

    BadConstraints where one of them cannot be read.

    >>> [str(each) for each in read_constraints(["punctuation:no_comma"], [{}])]
    ['punctuation:no_comma']
    >>> [str(each) for each in read_constraints('{"func_name": "verify_bullet_points", "N": 3, "word": null}')]
    ['detectable_format:number_bullet_lists (num_bullets=3)']
    """
    written = _as_pairs(_parsed(value), _parsed(kwargs))
    if not written:
        raise BadConstraints({"no constraints": f"{_EXPECTED}, got {value!r:.80}"})
    constraints = []
    problems: dict[str, str] = {}
    for name, arguments in written:
        try:
            constraints.append(_read(name, arguments))
        except BadConstraint as error:
            problems[name] = str(error)
    if problems:
        raise BadConstraints(problems)
    return constraints


def _read(name: str, arguments: Mapping[str, Any]) -> Constraint:
    if name in _FUNCTIONS:
        known, names, fixed = _FUNCTIONS[name]
        renamed = {names.get(argument, argument): value for argument, value in arguments.items()}
        name, arguments = known, {**renamed, **fixed}
        # RLVR-IFeval has the arguments of all functions in each row.
        arguments = {key: value for key, value in arguments.items() if value is not None}
    if name not in KINDS:
        raise BadConstraint(f"{name}: there is no such constraint")
    read = KINDS[name].read(arguments)
    # A check finds the faults of an argument that its type does not say.
    read.outcome(_NOTHING)
    return read


def _parsed(value: object) -> object:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        return value
    for read in (json.loads, literal_eval):
        try:
            parsed: object = read(value)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
        return parsed
    return value


def _as_pairs(value: object, kwargs: object) -> list[tuple[str, Mapping[str, Any]]]:
    """The names and arguments of constraints; empty where they are in no known form."""
    if isinstance(value, Mapping):
        return _of_object(value)
    items: list[Any] = [value] if isinstance(value, str) else _listed(value)
    if items and all(isinstance(item, Mapping) for item in items):
        pairs: list[tuple[str, Mapping[str, Any]]] = []
        for item in items:
            pairs += _of_object(item)
        # none where one of the objects is no constraint
        return pairs if len(pairs) >= len(items) else []
    return _of_names(items, kwargs)


def _of_names(names: Sequence[Any], kwargs: object) -> list[tuple[str, Mapping[str, Any]]]:
    """The constraints of these names, with the arguments that stand in a list beside them."""
    arguments: list[Any] = [{}] * len(names)
    if kwargs is not None:
        # One constraint may have its arguments without a list around them.
        arguments = [_parsed(each) or {} for each in _listed(kwargs) or [kwargs]]
    if len(arguments) != len(names):
        return []
    pairs = []
    for name, each in zip(names, arguments, strict=True):
        if not isinstance(name, str) or not isinstance(each, Mapping):
            return []
        pairs.append((name, each))
    return pairs


def _listed(value: Any) -> list[Any]:
    """What a list, a tuple or an array holds; nothing of anything else."""
    if isinstance(value, (str, Mapping)) or not hasattr(value, "__iter__"):
        return []
    return list(value)


def _of_object(value: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    if isinstance(value.get("func_name"), str):
        arguments = {name: each for name, each in value.items() if name != "func_name"}
        return [(value["func_name"], arguments)]
    if isinstance(value.get("id"), str):
        arguments = value.get("kwargs") or {}
        return [(value["id"], arguments)] if isinstance(arguments, Mapping) else []
    for name in ("instruction_id_list", "instruction_id"):
        if value.get(name) is not None:
            return _as_pairs(_parsed(value[name]), _parsed(value.get("kwargs")))
    return []


def as_json(constraints: Sequence[Constraint]) -> str:
    """The constraints in our own form."""
    written = []
    for each in constraints:
        arguments = {}
        for name, value in each.arguments.items():
            arguments[name] = list(value) if isinstance(value, tuple) else value
        written.append({"id": each.name, "kwargs": arguments})
    return json.dumps(written, ensure_ascii=False)
