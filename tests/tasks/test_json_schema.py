"""json:FILE: the columns of public data sets, and the rows that are refused."""

import json
from typing import Any

import pytest

from swift_rlvr.evaluation.prompts import ask
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS, RowError

TASK = TASKS["json"]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
}
GOLD = {"name": "Ann", "age": 30}
JSON_MODE_EVAL = {
    "prompt": [
        {"role": "system", "content": f"Here is the schema:\n<schema>\n{SCHEMA}\n</schema>"},
        {"role": "user", "content": "Ann is 30."},
    ],
    "completion": json.dumps(GOLD),
    "schema": json.dumps(SCHEMA),
}
NEMO = {
    "responses_create_params": {"input": [{"role": "user", "content": "Ann is 30."}]},
    "schema_str": json.dumps(SCHEMA),
}
OPENAI = {
    "problem": "Ann is 30.",
    "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}},
    "answer": GOLD,
}
MESSAGES = {
    "messages": [
        {"role": "user", "content": "Ann is 30."},
        {"role": "assistant", "content": json.dumps(GOLD)},
    ],
    "json_schema": SCHEMA,
}
# As a table of several schemas has it.
PADDED = {
    "problem": "Ann is 30.",
    "schema": {**SCHEMA, "$ref": None, "properties": {**SCHEMA["properties"], "other": None}},
    "solution": {**GOLD, "other": None},
}
PASSAGE = {
    "question": "Who?",
    "context": "Ann is 30.",
    "schema": SCHEMA,
    "answer": json.dumps(GOLD),
}
SHAPES: dict[str, dict] = {
    "json-mode-eval": JSON_MODE_EVAL,
    "nemo-gym": NEMO,
    "openai": OPENAI,
    "messages": MESSAGES,
    "padded": PADDED,
    "passage": PASSAGE,
}


@pytest.mark.parametrize("name", SHAPES)
def test_public_columns_need_no_other_names(name):
    asked = ask(TASK, SHAPES[name])
    right = asked.ideal or json.dumps(GOLD)
    wrong = json.dumps({**GOLD, "age": "30"})
    reward = REWARDS["json"]()
    columns = {"schema": [asked.row["schema"]] * 2}
    if asked.row.get("solution"):
        columns["solution"] = [asked.row["solution"]] * 2
    assert (asked.ideal is None) == (name == "nemo-gym")
    assert reward([right, wrong], **columns) == [1.0, 0.0]
    assert "Ann is 30." in asked.prompt
    assert asked.form == "json"


def test_a_table_gives_every_right_answer_the_fields_of_all():
    # Other fields than the schema's are allowed, so what the table has added is valid.
    fields = {"name": {"type": "string"}, "age": {"type": ["null", "integer"]}, "town": None}
    schema = {"type": "object", "properties": fields}
    row = {
        "problem": "Ann.",
        "schema": schema,
        "answer": {"name": "Ann", "age": None, "town": None},
    }
    prepared = TASK.preprocess(row)
    columns = {name: [prepared[name]] * 3 for name in ("schema", "solution")}
    answers = ['{"name": "Ann", "age": null}', '{"name": "Ann"}', '{"name": "Bo", "age": null}']
    assert REWARDS["json"]()(answers, **columns) == [1.0, 0.0, 0.0]


def test_the_prompt_shows_the_schema_alone():
    assert "json_schema" not in TASK.preprocess(OPENAI)["messages"][-1]["content"]


def test_the_schema_stands_in_the_prompt_once():
    for name, row in SHAPES.items():
        prompt = ask(TASK, row).prompt.replace("'", '"')
        assert prompt.count('"age"') == 2, name  # a property, and required
    assert "Answer with JSON" not in ask(TASK, JSON_MODE_EVAL).prompt
    assert "Answer with JSON" in ask(TASK, OPENAI).prompt


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**OPENAI, "response_format": None}, "column 'schema': no schema in the columns"),
        (
            {**JSON_MODE_EVAL, "schema": "{"},
            "column 'schema': expected a JSON Schema, but it is not JSON",
        ),
        (
            {**JSON_MODE_EVAL, "schema": '{"$ref": "https://x.y/z"}'},
            "column 'schema': .*nothing is fetched",
        ),
        ({**JSON_MODE_EVAL, "completion": "Ann, 30"}, "column 'completion': expected JSON"),
        ({"schema": SCHEMA}, "column 'problem': no question"),
    ],
)
def test_rows_that_cannot_be_used_say_why(row, message):
    with pytest.raises(RowError, match=message):
        TASK.preprocess(row)
