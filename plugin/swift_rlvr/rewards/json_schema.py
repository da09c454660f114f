"""The reward of structured output: JSON that is valid against the row's schema, and equal to its gold."""

import json
from dataclasses import dataclass
from typing import Any

from swift_rlvr.rewards.base import Example, Explanation, Reward, Row, Rule, explained_by
from swift_rlvr.rewards.parameters import BaseParameters
from swift_rlvr.success import VERIFIER
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers.answers import last_answer
from swift_rlvr.verifiers.json_schema import (
    BadSchema,
    Schema,
    SchemaError,
    TooMuchWork,
    read_schema,
)
from swift_rlvr.verifiers.json_values import (
    DEEPEST,
    DUPLICATE_KEY,
    MOST_CHARS,
    NOT_A_NUMBER,
    NOT_JSON,
    TEXT_AROUND,
    TOO_DEEP,
    TOO_LONG,
    TWO_VALUES,
    NotJson,
    compare,
    read_answer,
    read_json,
)
from swift_rlvr.verifiers.thinking import after_thinking, without_end_tokens

# The most that an answer earns which is not right.
_MOST_PARTIAL = 0.99
# Reason -> what has to hold, in the order in which it is checked.
RULES = {
    "bad schema": "the column schema is a JSON Schema that can be used",
    "bad gold": "the row's right answer is JSON that is valid against the schema",
    "no answer": "there is an answer after the thinking",
    TOO_LONG: f"it has at most {MOST_CHARS:,} characters",
    TEXT_AROUND: "there is nothing around the JSON",
    TWO_VALUES: "it is one value",
    NOT_JSON: "it is JSON",
    DUPLICATE_KEY: "no object has a key twice",
    NOT_A_NUMBER: "its numbers are finite",
    TOO_DEEP: f"lists and objects lie at most {DEEPEST} deep",
    "too much work": "the schema can be checked in bounded time",
    "not valid": "it is valid against the schema",
    "empty": "it is not empty, where nothing says that it may be",
    "partly right": "it is equal to the right answer",
    "wrong answer": "it has a field of the right answer",
}
_PERSON = {
    "schema": '{"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}'
}


class JsonReward(Reward):
    """Reward 1.0 for JSON that is valid against the row's `schema` and equal to its `solution`, where
    it has one.

    The answer is what follows the thinking, or the last answer block in it, and nothing but JSON, in
    a block of Markdown or without one. Without a gold an empty object or list earns nothing: it meets
    every schema whose fields are optional. With ``partial=True`` an answer earns the share of the
    fields that are the gold's, at most 0.99; a field that is not in the gold counts as a wrong one.

    >>> schema = '{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}'
    >>> texts = ['{"name": "Ann"}', '{"name": "Bob"}', '{"name": 3}', 'Sure: {"name": "Ann"}']
    >>> JsonReward()(texts, schema=[schema] * 4, solution=['{"name": "Ann"}'] * 4)
    [1.0, 0.0, 0.0, 0.0]
    >>> JsonReward(text_around=True)(texts, schema=[schema] * 4)
    [1.0, 1.0, 0.0, 1.0]
    """

    name = "external_json"
    role = VERIFIER
    columns = ("schema",)
    optional_columns = ("solution",)
    columns_elsewhere = {"schema": ("json_schema", "schema_str", "response_format")}
    reasons = (*RULES, "valid", "correct")
    without_gold = (
        "no answer was tried, since the rows bring none: the schema alone says what is right"
    )
    examples = (
        Example(
            '<think>She is 30.</think>{"age": 30}', {**_PERSON, "solution": '{"age": 30}'}, 1.0
        ),
        Example(
            '<think>She is 30.</think>{"age": 31}', {**_PERSON, "solution": '{"age": 30}'}, 0.0
        ),
        Example('{"age": "thirty"}', _PERSON, 0.0),
        Example('{"age": 30}', {"schema": '{"$ref": "https://example.com/age.json"}'}, None),
    )

    @dataclass(frozen=True)
    class Parameters(BaseParameters):
        partial: bool = setting(
            False, "reward the share of fields that are the gold's, at most 0.99 if one is not"
        )
        tolerance: float = setting(
            0.0,
            "how far a number may be from the gold's, as a share of the gold's",
            at_least=0,
            less_than=1,
        )
        unordered: bool = setting(False, "the order of lists does not matter")
        text_around: bool = setting(
            False, "accept text around the JSON; it is still the only object or list of the answer"
        )
        empty: bool = setting(
            False, "pay {} and [] too where the schema accepts them and the row has no gold"
        )
        formats: bool = setting(
            False, 'check the formats "date", "email", "ipv4", "ipv6" and "uuid" of texts'
        )

    @classmethod
    def remarks(cls, row: Row) -> list[str]:
        try:
            schema = read_schema(row["schema"])
            accepts_empty = not schema.errors({}) or not schema.errors([])
        except (BadSchema, TooMuchWork):
            return []
        if accepts_empty and row.get("solution") is None:
            return ["the schema accepts an empty answer, since it requires no field"]
        return []

    def grade(self, text: str | None, row: Row) -> Explanation:
        parameters = self.parameters
        try:
            schema = read_schema(row["schema"], parameters.formats)
        except BadSchema as error:
            return explained_by(RULES, None, "bad schema", detail=str(error))
        gold = None
        has_gold = row.get("solution") is not None
        if has_gold:
            try:
                gold = read_gold(row["solution"], schema)
            except ValueError as error:
                return explained_by(RULES, None, "bad gold", detail=str(error))

        written = answer_in(text or "")
        if not written:
            return explained_by(RULES, 0.0, "no answer")
        try:
            extracted, answer = read_answer(written, parameters.text_around)
        except NotJson as error:
            return explained_by(RULES, 0.0, error.reason, written, str(error))
        try:
            errors = schema.errors(answer)
        except TooMuchWork as error:
            # Nobody knows now whether it is valid.
            return explained_by(RULES, None, "too much work", extracted, str(error))
        if has_gold:
            return self._beside_gold(gold, answer, errors, extracted)

        # Without a gold the schema alone decides. Most schemas accept {} or [], which says nothing, and a
        # policy finds that out within a few steps.
        reason = "valid"
        if errors:
            reason = "not valid"
        elif answer in ({}, []) and not parameters.empty:
            reason = "empty"
        reward = 1.0 if reason == "valid" else 0.0
        return explained_by(RULES, reward, reason, extracted, further=_rules(errors))

    def _beside_gold(
        self, gold: Any, answer: Any, errors: list[SchemaError], extracted: str
    ) -> Explanation:
        parameters = self.parameters
        # A field that breaks the schema is not right, even where the gold has the same value within the tolerance.
        fields = compare(gold, answer, parameters.tolerance, parameters.unordered)
        not_valid = {error.path for error in errors}
        right = 0
        rules = []
        for field in fields:
            right += field.is_right and field.path not in not_valid
            rules.append(Rule(f"{field.path} is right", field.is_right, field.detail))
        if errors:
            reason = "not valid"
        elif right == len(fields):
            reason = "correct"
        else:
            reason = "partly right" if right else "wrong answer"
        reward = 1.0 if reason == "correct" else 0.0
        if parameters.partial and reason != "correct":
            reward = min(_MOST_PARTIAL, right / len(fields))
        return explained_by(RULES, reward, reason, extracted, further=[*_rules(errors), *rules])


def _rules(errors: list[SchemaError]) -> list[Rule]:
    return [Rule(f"{path} is valid", False, problem) for path, problem in errors]


def answer_in(text: str) -> str:
    """What of a completion is its answer: what follows the thinking, or the last answer block in it."""
    scope = without_end_tokens(after_thinking(text)).strip().removeprefix("\ufeff").lstrip()
    # A text of the JSON may hold the tags.
    block = None if scope.startswith(("{", "[")) else last_answer(text)
    return scope if block is None else block.strip()


def read_gold(written: object, schema: Schema) -> Any:
    """The right answer of a row, JSON as text or its value; ValueError if it is none, or no valid
    one.
    """
    text = written if isinstance(written, str) else json.dumps(written, default=str)
    gold = read_json(text)
    try:
        errors = schema.errors(gold)
    except TooMuchWork as error:
        raise ValueError(str(error)) from None
    if errors:
        path, problem = errors[0]
        raise ValueError(f"it is not valid against the schema: {path}: {problem}")
    return gold
