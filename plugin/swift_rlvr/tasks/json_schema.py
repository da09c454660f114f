"""Structured output: `json:FILE`, a question or a text, the JSON Schema of the answer and, where there
is one, the right answer.

The question is looked for as `own.py` does it, with the text that it is about; the schema under the
names in `SCHEMAS`, as an object or as text, also as OpenAI's `response_format`. A schema that cannot
be used is a row that cannot be used. The prompt ends with the schema unless it holds that already, as
NousResearch/json-mode-eval's do. A right answer is the first of `GOLDS` that is JSON, or what the
assistant says at the end of the messages; without one the schema alone says what is right.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from swift_rlvr.tasks.columns import (
    KEPT_NAMES,
    NAMES,
    VARIABLES,
    find_columns,
    kept_columns,
    unused_passages,
    value_at,
    with_kept,
)
from swift_rlvr.tasks.own import prompt_of, turns_of
from swift_rlvr.tasks.task import (
    Gold,
    Row,
    RowError,
    Task,
    columns_named,
    normalised,
    shown,
    turns_text,
)
from swift_rlvr.verifiers.answer_forms import JSON, TAGS, answer_alone, asked_form
from swift_rlvr.verifiers.json_schema import BadSchema, TooMuchWork, read_schema
from swift_rlvr.verifiers.json_values import NotJson, read_json

# The usual names of the columns, the likeliest first.
SCHEMAS = (
    *("schema", "json_schema", "schema_str", "response_format", "response_schema"),
    *("output_schema", "target_schema", "structured_output_schema", "guided_json"),
    *("extra_info.schema", "metadata.schema"),
)
GOLDS = (
    *("solution", "gold", "golden", "answer", "expected_answer", "expected_output", "expected"),
    *("completion", "target", "ground_truth", "reference", "output", "response", "json"),
)
ASKS = "Answer with JSON that is valid against this JSON Schema, and with nothing else:"
# Keywords of a schema whose value may be null.
_MAY_BE_NULL = ("const", "default")


@dataclass(frozen=True)
class _Asked:
    """What a row holds. schema, solution: as JSON. used: the columns."""

    messages: list[dict[str, Any]]
    schema: str
    solution: str | None
    used: list[str]


def _read(row: Row) -> _Asked:
    """RowError if a row lacks something, or its schema or its right answer cannot be used."""
    schema_column, schema = _schema_of(row)
    gold_columns = [name for name in columns_named(GOLDS, row) if value_at(row, name) is not None]
    used = [schema_column, *gold_columns]
    for column in find_columns(row)["problem"]:
        question = value_at(row, column)
        if question is not None and column not in used:
            break
    else:
        where = ", ".join(map(str, row)) or "none"
        problem = f"no question in the columns {where}; set {VARIABLES['problem']} to name another"
        raise RowError("problem", problem)
    used.insert(0, column)
    messages = prompt_of(row, question, used)
    # The prompt may show it already, in JSON or as Python writes it.
    if _bare(schema) not in _bare(turns_text(messages)):
        last = messages[-1]
        asked = f"{last['content']}\n\n{ASKS}\n\n```json\n{schema}\n```"
        messages = [*messages[:-1], {**last, "content": asked}]
    return _Asked(messages, schema, _solution_of(row, column, gold_columns, schema), used)


def _schema_of(row: Row) -> tuple[str, str]:
    """The column of the schema, and the schema as JSON."""
    for column in columns_named(SCHEMAS, row):
        value = value_at(row, column)
        if value is None or value == "":
            continue
        try:
            if isinstance(value, Mapping):
                value = json.dumps(_without_padding(value), ensure_ascii=False)
            elif isinstance(value, bool):
                value = json.dumps(value)
            content = read_schema(value).content
            if json.loads(value) != content:
                # What surrounds a schema in a request to OpenAI is no part of it.
                value = json.dumps(content, ensure_ascii=False)
        except (BadSchema, TypeError, ValueError) as error:
            problem = f"expected a JSON Schema, but {error}"
            raise RowError("schema", problem, "schema that cannot be used", column) from None
        return column, value.strip()
    where = ", ".join(map(str, row)) or "none"
    flag = """--columns '{"NAME OF THE SCHEMA": "schema"}'"""
    raise RowError("schema", f"no schema in the columns {where}; rename it with {flag}")


def _without_padding(value: Any, may_be_null: Collection[str] = _MAY_BE_NULL) -> Any:
    """An object without the keys that a table has added to it with null, since other rows have them."""
    if isinstance(value, Mapping):
        kept = {}
        for key, inner in value.items():
            if inner is not None or key in may_be_null:
                kept[key] = _without_padding(inner, may_be_null)
        return kept
    if isinstance(value, (list, tuple)):
        return [_without_padding(inner, may_be_null) for inner in value]
    return value


def _properties_of(schema: Any) -> set[str]:
    """The names of all properties that a schema or a part of it names."""
    parts = schema if isinstance(schema, list) else []
    names: set[str] = set()
    if isinstance(schema, Mapping):
        parts = list(schema.values())
        properties = schema.get("properties")
        names |= set(properties) if isinstance(properties, Mapping) else set()
    for part in parts:
        names |= _properties_of(part)
    return names


def _solution_of(row: Row, question: str, columns: Sequence[str], schema: str) -> str | None:
    """The right answer as JSON; None if the row brings none. RowError if none that it brings is
    JSON.
    """
    values = {name: value_at(row, name) for name in columns}
    turns = turns_of(value_at(row, question))
    if turns and turns[-1]["role"] == "assistant":
        values[question] = turns[-1].get("content")
    problems = []
    for name, value in values.items():
        if isinstance(value, str) and not value.strip():
            continue
        try:
            return json.dumps(_gold_of(value, schema), ensure_ascii=False)
        except (NotJson, TypeError, ValueError, TooMuchWork) as error:
            problems.append((name, f"expected JSON, got {shown(value)}: {error}"))
    if problems:
        name, problem = problems[0]
        raise RowError("solution", problem, "right answer that is not JSON", name)
    return None


def _gold_of(value: Any, schema: str) -> Any:
    """The right answer that a text of JSON or a value is."""
    if isinstance(value, str):
        return read_json(value)
    gold = read_json(json.dumps(value, ensure_ascii=False))
    # A table pads an object with null. A property of the schema may be null, unless that refuses it.
    names = _properties_of(json.loads(schema))
    gold = _without_padding(gold, names) if names else gold
    return _without_padding(gold) if read_schema(schema).errors(gold) else gold


def _bare(text: str) -> str:
    return "".join(text.split()).replace("'", '"').casefold()


def preprocess(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, `schema`, `solution` where there is one, and `task`."""
    asked = _read(row)
    prepared = {"messages": asked.messages, "schema": asked.schema, "task": "json"}
    if asked.solution is not None:
        prepared["solution"] = asked.solution
    text = turns_text(asked.messages)
    return with_kept(prepared, kept_columns(row, text, text))


def identity(row: Row) -> str:
    """The same text for rows that ask the same."""
    return normalised(turns_text(_read(row).messages))


def gold(row: Row) -> Gold | None:
    """The right answer of a raw row; None if the schema alone says what is right."""
    solution = _read(row).solution
    return None if solution is None else Gold(solution)


@dataclass(frozen=True)
class JsonAnswerTask(Task):
    """A task whose columns may be called anything that is usual, and whose answers are JSON alone."""

    any_columns: ClassVar[bool] = True

    def form_of(self, prompt: str) -> str | None:
        return TAGS if asked_form(prompt) == TAGS else JSON

    def completion(
        self, prompt: str, reasoning: str, answer: str, thinking_opened: bool = False
    ) -> str:
        return answer_alone(prompt, reasoning, answer, thinking_opened)


@dataclass(frozen=True)
class JsonTask(JsonAnswerTask):
    """JSON that has to meet the row's schema."""

    def find_columns(self, present: Iterable[str]) -> dict[str, list[str]]:
        present = list(present)
        schemas = columns_named(SCHEMAS, present)
        return {"problem": find_columns(present)["problem"], "schema": schemas}

    def names_of(self, column: str) -> Sequence[str]:
        return SCHEMAS if column == "schema" else NAMES["problem"]

    def variable_of(self, column: str) -> str | None:
        return VARIABLES.get(column)

    def unused(self, row: Row) -> list[str]:
        asked = _read(row)
        used = [*asked.used, *columns_named((*SCHEMAS, *GOLDS, *KEPT_NAMES), row)]
        prompt = turns_text(asked.messages)
        return unused_passages(row, used, prompt)


_CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["city", "people"],
}
TASK = JsonTask(
    name="json",
    columns=("problem", "schema"),
    preprocess=preprocess,
    identity=identity,
    gold=gold,
    system="",
    system_in_rows=False,
    prompt=ASKS,
    reward_columns=("schema",),
    verifier="external_json",
    further_rewards=(),
    examples=(
        {
            "problem": "Extract the city and its number of people: Bonn has 340,000 people.",
            "schema": _CITY,
            "answer": {"city": "Bonn", "people": 340000},
        },
        {"problem": "Invent a city.", "schema": json.dumps(_CITY)},
    ),
)
