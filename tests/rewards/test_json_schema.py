"""external_json: what is right, what cannot be graded, and everything that must not be paid."""

import json
import socket
import threading
import time

import pytest

from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.base import Grade
from swift_rlvr.verifiers.json_schema import BadSchema, Schema, read_schema

ORDER = {
    "type": "object",
    "properties": {
        "item": {"type": "string"},
        "count": {"type": "integer", "minimum": 1},
        "price": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["item", "count", "price", "tags"],
    "additionalProperties": False,
}
GOLD = {"item": "mug", "count": 2, "price": 7.5, "tags": ["green", "new"]}
RIGHT = json.dumps(GOLD)
OTHER = json.dumps({**GOLD, "item": "cup"})
OPTIONAL = {"type": "object", "properties": {"item": {"type": "string"}}}


def graded(text, schema=ORDER, gold=GOLD, **parameters):
    columns = {"schema": [json.dumps(schema)]}
    if gold is not None:
        columns["solution"] = [gold if isinstance(gold, str) else json.dumps(gold)]
    ((reward, reason),) = REWARDS["json"](**parameters).grades([text], **columns)
    return reward, reason


@pytest.mark.parametrize(
    "text",
    [
        RIGHT,
        json.dumps(GOLD, indent=4),
        f"```json\n{RIGHT}\n```",
        f"```\n{RIGHT}\n```<|im_end|>",
        f"<think>{OTHER} or not?</think>\n{RIGHT}",
        f"<think>x</think><answer>\n{RIGHT}\n</answer>",
        # the order of keys, and how a number is written, say nothing
        '{"tags": ["green", "new"], "price": 7.50, "count": 2.0, "item": "m\\u0075g"}',
    ],
)
def test_right_answers_are_paid(text):
    assert graded(text) == (1.0, "correct")
    assert graded(text, gold=None) == (1.0, "valid")


def test_a_text_may_hold_what_looks_like_a_tag():
    schema = {"type": "object", "properties": {"html": {"type": "string"}}}
    gold = {"html": "<answer>1</answer> [x] {y}"}
    assert graded(json.dumps(gold), schema, gold) == (1.0, "correct")


# Texts that earn nothing, where ORDER and GOLD say what is right.
UNPAID = [
    "",
    " ",
    "{}",
    "[]",
    "null",
    "true",
    "0",
    '""',
    '"mug"',
    "I cannot do that.",
    OTHER,
    # several at once
    RIGHT + OTHER,
    OTHER + RIGHT,
    f"{RIGHT}\n{RIGHT}",
    f"[{RIGHT}]",
    f"[{RIGHT}, {OTHER}]",
    f"[{OTHER}, {RIGHT}]",
    f"{RIGHT},",
    f"```json\n{RIGHT}\n```\n```json\n{OTHER}\n```",
    f"```json\n{OTHER}\n```\n```json\n{RIGHT}\n```",
    f"<answer>{RIGHT}</answer><answer>{OTHER}</answer>",
    f"<answer>{RIGHT} {OTHER}</answer>",
    RIGHT[:-1] + ', "item": "cup"}',
    '{"item": "cup", ' + RIGHT[1:],
    '{"item": "cup", "it\\u0065m": "mug", "count": 2, "price": 7.5, "tags": ["green", "new"]}',
    # around it
    f"Sure! {RIGHT}",
    f"{RIGHT}\nI hope that helps.",
    f"The answer is {RIGHT}.",
    f"Not {RIGHT}",
    f"{RIGHT} is wrong",
    f"// {RIGHT}",
    f"/* {OTHER} */ {RIGHT}",
    f"{RIGHT} // {OTHER}",
    # thought, and not said
    f"<think>{RIGHT}</think>",
    f"<think>{RIGHT}",
    f"<think>{RIGHT}</think>I am not sure.",
    f"<think>{RIGHT}</think>{{}}",
    f"[THINK]{RIGHT}[/THINK]",
    f"<|channel|>analysis<|message|>{RIGHT}",
    # not JSON
    RIGHT[:-1],
    RIGHT[1:],
    RIGHT.replace('"', "'"),
    str(GOLD),
    "{item: 'mug', count: 2, price: 7.5, tags: ['green', 'new']}",
    RIGHT.replace("]", ",]"),
    RIGHT.replace("7.5", "NaN"),
    RIGHT.replace("7.5", "Infinity"),
    RIGHT.replace("7.5", "-Infinity"),
    RIGHT.replace("7.5", "1e999"),
    RIGHT.replace("7.5", "9" * 5000),
    RIGHT.replace("7.5", "07.5"),
    RIGHT.replace("7.5", "+7.5"),
    RIGHT.replace("2", "0x2"),
    json.dumps(RIGHT),
    f"\\boxed{{{RIGHT}}}",
    f"<json>{RIGHT}</json>",
    f'{{"answer": {RIGHT}}}',
    # of another type, or with more or less than the gold
    json.dumps({**GOLD, "count": "2"}),
    json.dumps({**GOLD, "count": True}),
    json.dumps({**GOLD, "count": 2.5}),
    json.dumps({**GOLD, "count": [2]}),
    json.dumps({**GOLD, "count": -2}),
    json.dumps({**GOLD, "item": None}),
    json.dumps({**GOLD, "item": ["mug", "cup"]}),
    json.dumps({**GOLD, "item": "mug or cup"}),
    json.dumps({**GOLD, "item": "Mug"}),
    json.dumps({**GOLD, "tags": []}),
    json.dumps({**GOLD, "tags": "green"}),
    json.dumps({**GOLD, "tags": ["new", "green"]}),
    json.dumps({**GOLD, "tags": ["green", "new", "old"]}),
    json.dumps({**GOLD, "price": 7.4999}),
    json.dumps({**GOLD, "more": 1}),
    json.dumps({key: value for key, value in GOLD.items() if key != "tags"}),
    json.dumps(ORDER),
    json.dumps({"type": "object", "properties": GOLD}),
    # long and deep
    "[" * 100_000,
    "[" * 100_000 + "]" * 100_000,
    '{"a":' * 50_000 + "1" + "}" * 50_000,
    "{" * 100_000,
    '"' * 100_000,
    RIGHT + " " * 300_000 + OTHER,
    json.dumps({**GOLD, "item": "mug" * 100_000}),
]


def test_at_least_sixty_attempts_are_made():
    assert len(set(UNPAID)) >= 60


@pytest.mark.parametrize("text", UNPAID, ids=range(len(UNPAID)))
def test_nothing_else_is_paid(text):
    assert graded(text)[0] == 0.0
    partial, _ = graded(text, partial=True)
    assert 0.0 <= partial < 1.0


def test_the_reason_says_what_is_wrong_first():
    assert graded(RIGHT + OTHER) == (0.0, "several values")
    assert graded(f"Sure: {RIGHT}") == (0.0, "text around")
    assert graded("1 + 2 is 3") == (0.0, "not JSON")


def test_text_around_is_a_setting_and_two_values_are_none():
    assert graded(f"Sure: {RIGHT} That is it.", text_around=True) == (1.0, "correct")
    assert graded(f"It is ```json\n{RIGHT}\n```", text_around=True) == (1.0, "correct")
    unlike = f"Not all is known. What is:\n```json\n{RIGHT}\n```\nIt is not much."
    assert graded(unlike, text_around=True) == (1.0, "correct")
    for text in (
        f"{OTHER} or {RIGHT}",
        f"{RIGHT} or {OTHER}",
        f"<think>{RIGHT}</think> It is {{x}}",
        # taken back
        f"Not {RIGHT}",
        f"Not ```json\n{RIGHT}\n```",
        f"This JSON would be wrong: {RIGHT}",
        f"{RIGHT} is wrong.",
        f"```json\n{RIGHT}\n```\nNo, that is not the right object.",
    ):
        assert graded(text, text_around=True)[0] == 0.0


def test_without_a_gold_an_empty_answer_is_paid_only_where_it_is_wanted():
    for text in ("{}", "[]"):
        assert graded(text, True, None) == (0.0, "empty")
        assert graded(text, True, None, empty=True) == (1.0, "valid")
    assert graded("{}", OPTIONAL, {}) == (1.0, "correct")
    remarks = REWARDS["json"].remarks
    assert remarks({"schema": json.dumps(OPTIONAL)}) != []
    assert remarks({"schema": json.dumps(OPTIONAL), "solution": '{"item": "mug"}'}) == []
    assert remarks({"schema": json.dumps(ORDER)}) == []


def test_tolerance_and_the_order_of_lists_are_settings():
    near = json.dumps({**GOLD, "price": 7.55})
    assert graded(near)[0] == 0.0
    assert graded(near, tolerance=0.01)[0] == 1.0
    assert graded(near, tolerance=0.001)[0] == 0.0
    turned = json.dumps({**GOLD, "tags": ["new", "green"]})
    assert graded(turned)[0] == 0.0
    assert graded(turned, unordered=True)[0] == 1.0
    twice = json.dumps({**GOLD, "tags": ["green", "green"]})
    assert graded(twice, unordered=True)[0] == 0.0


def test_two_numbers_near_each_other_find_their_partners():
    """The first partner that fits is the wrong one: 100 fits both golds, 99.2 the first alone."""
    numbers = {"type": "array", "items": {"type": "number"}}
    settings = {"unordered": True, "tolerance": 0.01}
    assert graded("[100, 99.2]", numbers, [99.5, 101], **settings) == (1.0, "correct")


def test_partial_credit_is_the_share_of_right_fields():
    # item, count, price and two tags
    assert graded(OTHER, partial=True) == (4 / 5, "partly right")
    wrong = json.dumps({**GOLD, "item": "cup", "tags": ["red"]})
    assert graded(wrong, partial=True) == (2 / 5, "partly right")
    # What was not asked for costs.
    stuffed = json.dumps({**GOLD, **{f"more {number}": 1 for number in range(95)}})
    assert graded(stuffed, partial=True) == (5 / 100, "not valid")
    assert graded(json.dumps({**GOLD, "count": "2"}), partial=True) == (4 / 5, "not valid")


@pytest.mark.parametrize(
    ("schema", "gold", "reason"),
    [
        ("not JSON", None, "bad schema"),
        ("[1]", None, "bad schema"),
        ('{"type": "text"}', None, "bad schema"),
        ('{"$ref": "#/$defs/missing"}', None, "bad schema"),
        ('{"properties": {"a": {"$ref": "other.json"}}}', None, "bad schema"),
        ('{"pattern": "("}', None, "bad schema"),
        ('{"$ref": "#"}', None, "bad schema"),
        (
            '{"$schema": "http://json-schema.org/draft-03/schema#", "extends": {"$ref": "#"}}',
            None,
            "bad schema",
        ),
        ("{}", "not JSON", "bad gold"),
        ("{}", '{"a": 1, "a": 2}', "bad gold"),
        ('{"type": "string"}', "3", "bad gold"),
    ],
)
def test_what_cannot_be_read_is_not_graded(schema, gold, reason):
    columns = {"schema": [schema] * 3, "solution": [gold] * 3}
    grades = REWARDS["json"]().grades(['{"a": 1}', "3", '"x"'], **columns)
    assert [tuple(grade) for grade in grades] == [(None, reason)] * 3


def test_nothing_is_fetched(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    for reference in (
        "http://127.0.0.1:9/a.json",
        "https://example.com/a.json#/b",
        "file:///etc/x",
    ):
        schema = {"properties": {"a": {"$ref": reference}}}
        assert graded('{"a": 1}', schema, None) == (None, "bad schema")
        assert graded('{"b": 1}', schema, None) == (None, "bad schema")


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"pattern": "^(a|aa)+$"}, json.dumps("a" * 5000 + "b")),
        ({"patternProperties": {"^(a|aa)+$": {}}}, json.dumps({"a" * 5000 + "b": 1})),
        ({"propertyNames": {"pattern": "^(a|aa)+$"}}, json.dumps({"a" * 5000 + "b": 1})),
        (
            {"patternProperties": {"^(a|aa)+$": {}}, "additionalProperties": False},
            json.dumps({"a" * 5000 + "b": 1}),
        ),
        (  # each level asks the next one twice
            {
                "anyOf": [
                    {"properties": {"a": {"$ref": "#"}}, "required": ["b"]},
                    {"properties": {"a": {"$ref": "#"}}, "required": ["c"]},
                ]
            },
            '{"a": ' * 60 + "1" + "}" * 60,
        ),
    ],
)
def test_what_would_take_for_ever_is_not_graded(schema, text):
    assert graded(text, schema, None) == (None, "too much work")


def test_a_long_list_is_unique_in_linear_time():
    items = [{"number": number} for number in range(10_000)]
    assert graded(json.dumps(items), {"uniqueItems": True}, None) == (1.0, "valid")
    assert graded(json.dumps([*items, {"number": 0.0}]), {"uniqueItems": True}, None)[0] == 0.0


def test_the_end_of_a_pattern_is_the_end_of_the_text():
    assert graded('"12\\n"', {"pattern": "^[0-9]+$"}, None)[0] == 0.0
    assert graded('"1$"', {"pattern": "^1[$]$"}, None)[0] == 1.0
    assert graded('"1$"', {"pattern": r"^1\$$"}, None)[0] == 1.0


def test_formats_are_a_setting():
    day = {"type": "string", "format": "date"}
    assert graded('"2026-02-30"', day, None)[0] == 1.0
    assert graded('"2026-02-30"', day, None, formats=True)[0] == 0.0
    assert graded('"2026-02-28"', day, None, formats=True)[0] == 1.0


def test_explain_lists_every_field_that_failed():
    text = json.dumps({**GOLD, "count": "2", "tags": ["green", "old"], "more": 1})
    row = {"schema": json.dumps(ORDER), "solution": json.dumps(GOLD)}
    explanation = REWARDS["json"]().explain(text, row)
    failed = [rule.name for rule in explanation.rules if rule.passed is False]
    assert sorted(failed[1:3]) == ["$ is valid", "$.count is valid"]
    assert failed[:1] + failed[3:] == [
        "it is valid against the schema",
        "$.count is right",
        "$.tags[1] is right",
        "$.more is right",
    ]


def test_threads_share_no_bounds():
    """Each answer of a batch in each thread has all of its own bounds."""
    items = json.dumps(list(range(5000)))
    schema = {"type": "array", "items": {"type": "integer"}}
    grades: list[Grade] = []

    def grade():
        grades.extend(graded(items, schema, None) for _ in range(3))

    threads = [threading.Thread(target=grade) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert grades == [(1.0, "valid")] * 12


@pytest.mark.parametrize(
    "text",
    [
        f"```json\r\n{RIGHT}\r\n```",
        f"\ufeff{RIGHT}",
        f"```json {RIGHT}```",
        f"```json{RIGHT}```",
        f"~~~~\n{RIGHT}\n~~~~",
    ],
)
def test_further_ways_to_write_the_answer_are_read(text):
    assert graded(text) == (1.0, "correct")


@pytest.mark.parametrize(
    "text",
    ["```json\n" + " " * 150_000 + "x", "```" + " " * 150_000, "{x " * 60_000, '{"a":' * 30_000],
)
def test_no_text_takes_long(text):
    start = time.process_time()
    assert graded(text, text_around=True)[0] == 0.0
    assert time.process_time() - start < 1.5


def test_lists_without_order_are_paired_in_bounded_time():
    objects = [{"a": i, "b": list(range(10))} for i in range(310)]
    turned = [{"a": i, "b": list(range(10))[::-1]} for i in range(310)][::-1]
    start = time.process_time()
    for answer in (objects, turned):
        text = json.dumps(answer)
        assert graded(text, True, objects, unordered=True) == (1.0, "correct")
    text = json.dumps(objects)
    assert graded(text, True, objects, unordered=True, tolerance=0.01) == (1.0, "correct")
    deep: list = list(range(10_000))
    for _ in range(50):
        deep = [deep]
    assert graded(json.dumps(deep), True, deep, unordered=True) == (1.0, "correct")
    assert time.process_time() - start < 3


def test_multiples_are_those_of_the_written_numbers():
    cents = {"type": "number", "multipleOf": 0.01}
    for text in ("19.99", "0.07", "-4.35", "3", "1e300", "0"):
        assert graded(text, cents, None)[0] == 1.0
    assert graded("19.999", cents, None)[0] == 0.0
    assert graded("5", {"multipleOf": 2}, None)[0] == 0.0
    assert graded('"5"', {"multipleOf": 2}, None)[0] == 1.0


def test_a_second_object_behind_what_is_no_json_counts():
    for junk in ("{x " * 100, "{x " * 20_000):
        assert graded(f"{RIGHT} {junk}{OTHER}", text_around=True)[0] == 0.0


@pytest.mark.parametrize(
    "schema",
    [
        False,
        {"not": {}},
        {"type": "integer", "minimum": 5, "maximum": 3},
        {"type": "object", "properties": {"a": False}, "required": ["a"]},
        {"anyOf": [False, {"type": "string", "minLength": 2, "maxLength": 1}]},
        {"enum": [], "type": "string"},
        {"type": "integer", "exclusiveMinimum": 3, "maximum": 3},
        {"type": "number", "minimum": 2, "exclusiveMaximum": 2},
        {"type": "integer", "minimum": 1.2, "maximum": 1.8},
        {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2},
        {"type": ["integer", "number"], "minimum": 5, "maximum": 3},
        {"type": "string", "enum": [1, True, None]},
        {"type": "integer", "const": True},
        {"type": "object", "required": ["a"], "additionalProperties": False},
        {"type": "array", "minItems": 1, "items": False},
        {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/x"}}}
        | {"$defs": {"x": {"type": "integer", "minimum": 5, "maximum": 3}}},
        # what has to hold itself has no end
        {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}},
        {"type": "array", "minItems": 1, "items": {"$ref": "#"}},
    ],
)
def test_schemas_that_no_answer_meets_cannot_be_used(schema):
    with pytest.raises(BadSchema, match="no answer can be valid against it"):
        read_schema(json.dumps(schema))
    assert graded("{}", schema=schema, gold=None) == (None, "bad schema")


@pytest.mark.parametrize(
    "schema",
    [
        {"minimum": 5, "maximum": 3},  # of numbers alone
        {"type": ["integer", "string"], "minimum": 5, "maximum": 3},
        {"type": "integer", "minimum": 1.2, "maximum": 2.8},
        {"type": "integer", "exclusiveMinimum": 1, "maximum": 2},
        {"$schema": "http://json-schema.org/draft-04/schema#", "type": "number", "minimum": 1}
        | {"exclusiveMinimum": True, "maximum": 2},
        {"type": "object", "properties": {"a": {"type": "integer", "minimum": 5, "maximum": 3}}},
        {"type": "number", "enum": [1]},
        {"enum": [None, 1], "type": ["string", "null"]},
        {"type": "object", "required": ["a1"], "additionalProperties": False}
        | {"patternProperties": {"^a": {}}},
        {"type": "array", "items": False},
        {"anyOf": [{"enum": ["a"], "type": "integer"}, {"type": "integer"}]},
        # a list with an end, and a tree
        {"type": "object", "required": ["next"]}
        | {"properties": {"next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}},
        {"$ref": "#/$defs/tree"}
        | {
            "$defs": {
                "tree": {
                    "type": "object",
                    "required": ["left"],
                    "properties": {"left": {"$ref": "#/$defs/trees"}},
                },
                "trees": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
            }
        },
    ],
)
def test_schemas_that_some_answer_meets_can_be_used(schema):
    read_schema(json.dumps(schema))


def test_a_schema_without_end_cannot_be_used():
    for schema in ({"$ref": "#"}, {"allOf": [{"$ref": "#"}]}):
        with pytest.raises(BadSchema, match="without end"):
            read_schema(schema)
    read_schema({"type": "object", "properties": {"a": {"$ref": "#"}}})


@pytest.mark.parametrize("calls", range(0, 60))
def test_a_schema_without_end_is_refused_from_wherever_it_is_read(calls):
    """Where Python's limit is met depends on the calls around; some places end the process."""

    def within(calls):
        if calls:
            return within(calls - 1)
        return Schema({"not": {"not": {"$ref": "#"}}})

    with pytest.raises(BadSchema, match="without end"):
        within(calls)


def test_an_answer_may_be_as_deep_as_it_is_read():
    node = {"type": "object", "properties": {"a": {"$ref": "#"}}, "additionalProperties": False}
    answer: dict = {}
    for _ in range(60):
        answer = {"a": answer}
    assert graded(json.dumps(answer), node, None)[0] == 1.0
    # With more keywords at each level it is not graded.
    longer = {"allOf": [{"allOf": [{"properties": {"a": {"$ref": "#"}}}]}]}
    assert graded(json.dumps(answer), longer, None) == (None, "too much work")
    innermost = json.dumps(answer).replace("{}", '{"b": 1}')
    assert graded(innermost, node, None)[0] == 0.0


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "integer", "minimum": 5, "maximum": 3}, "no integer meets minimum 5, maximum 3"),
        (
            {"required": ["age"], "type": "object", "properties": {"age": {"$ref": "#/$defs/x"}}}
            | {"$defs": {"x": {"type": "number", "minimum": 2, "exclusiveMaximum": 2}}},
            "no number meets minimum 2, exclusiveMaximum 2 at #/$defs/x",
        ),
        (
            {"allOf": [{}, {"type": "string", "minLength": 2, "maxLength": 1}]},
            "minLength 2 is above maxLength 1 at allOf.1",
        ),
        (
            {"type": "object", "required": ["a"], "additionalProperties": False},
            "properties.a is required, and additionalProperties is false",
        ),
        ({"type": "string", "enum": [1]}, "it has no value of the type string"),
    ],
)
def test_the_bounds_that_contradict_are_named(schema, problem):
    with pytest.raises(BadSchema) as error:
        read_schema(schema)
    assert str(error.value) == f"no answer can be valid against it: {problem}"
