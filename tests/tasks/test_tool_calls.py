"""tool_calls:FILE: the columns of public data sets, and the rows that are refused."""

import json
from typing import Any

import pytest

from swift_rlvr.evaluation.prompts import ask
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS, RowError

TASK = TASKS["tool_calls"]
ADD: dict[str, Any] = {
    "name": "add",
    "description": "Adds two numbers.",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
}
WRAPPED = {"type": "function", "function": ADD}
CALL = {"name": "add", "arguments": {"a": 1, "b": 2}}
OPENAI_CALL = {
    "id": "1",
    "type": "function",
    "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'},
}
ANTHROPIC_CALL = {"type": "tool_use", "id": "1", "name": "add", "input": {"a": 1, "b": 2}}
QUESTION = {"role": "user", "content": "How much is 1 + 2?"}
XLAM = {
    "id": 0,
    "query": "How much is 1 + 2?",
    "answers": json.dumps([CALL]),
    "tools": json.dumps(
        [
            {
                "name": "add",
                "description": "",
                "parameters": {
                    "a": {"type": "int"},
                    "b": {"type": "float, optional"},
                    "c": {"type": "List[str], optional"},
                },
            }
        ]
    ),
}
BFCL = {
    "id": "simple_0",
    "question": [[QUESTION]],
    "function": [
        {
            "name": "add",
            "description": "",
            "parameters": {
                "type": "dict",
                "properties": {"a": {"type": "integer"}, "b": {"type": "float"}},
                "required": ["a"],
            },
        }
    ],
    "ground_truth": [{"add": {"a": [1], "b": [2.0, 2]}}],
}
TOOLACE: dict[str, Any] = {
    "system": "You can compose functions. Here is a list of them in JSON format:\n"
    + json.dumps(
        [
            {
                "name": "add",
                "description": "",
                "parameters": {
                    "type": "dict",
                    "properties": ADD["parameters"]["properties"],
                    "required": ["a"],
                },
                "required": None,
            }
        ]
    )
    + "\nReturn [func_name1(params_name1=params_value1), func_name2(...)] and no other text.",
    "conversations": [
        {"from": "user", "value": "How much is 1 + 2?"},
        {"from": "assistant", "value": "[add(a=1, b=2)]"},
    ],
}
MS_SWIFT = {
    "tools": json.dumps([WRAPPED]),
    "messages": [QUESTION, {"role": "tool_call", "content": json.dumps(CALL)}],
}
OPENAI: dict[str, Any] = {
    "tools": [WRAPPED],
    "messages": [QUESTION, {"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]}],
}
SHAREGPT = {
    "tools": json.dumps([ADD]),
    "conversations": [
        {"from": "human", "value": "How much is 1 + 2?"},
        {"from": "function_call", "value": json.dumps(CALL)},
    ],
}
OLDER_OPENAI = {
    "functions": [ADD],
    "messages": [QUESTION, {"role": "assistant", "content": None, "function_call": CALL}],
}
SHAPES: dict[str, dict] = {
    "xlam": XLAM,
    "bfcl": BFCL,
    "toolace": TOOLACE,
    "ms-swift": MS_SWIFT,
    "openai": OPENAI,
    "sharegpt": SHAREGPT,
    "older openai": OLDER_OPENAI,
}


@pytest.mark.parametrize("name", SHAPES)
def test_public_columns_need_no_other_names(name):
    asked = ask(TASK, SHAPES[name])
    reward = REWARDS["tool_call"]()
    columns = {column: [asked.row[column]] * 2 for column in reward.columns}
    assert reward([asked.ideal, asked.answering("2")], **columns) == [1.0, 0.0]
    assert "How much is 1 + 2?" in asked.prompt and '"add"' in asked.prompt
    assert [turn["role"] for turn in asked.messages] == ["system", "user"]
    assert asked.row["calls"].count("add") == 1


def test_tools_stand_in_the_prompt_once():
    for name, row in SHAPES.items():
        prompt = ask(TASK, row).prompt
        assert prompt.count('"name": "add"') == 1, name
    # ToolACE's own instruction stays alone.
    assert ask(TASK, TOOLACE).prompt.startswith(TOOLACE["system"])
    assert ask(TASK, TOOLACE).ideal == "[add(a=1, b=2)]"


def test_earlier_calls_and_results_are_part_of_the_prompt():
    turns = [
        {"role": "system", "content": "Be brief."},
        QUESTION,
        {"role": "tool_call", "content": json.dumps(CALL)},
        {"role": "tool_response", "content": "3"},
        {"role": "assistant", "content": "It is 3."},
        {"role": "user", "content": "Thank you."},
    ]
    row = {"tools": [WRAPPED], "messages": [*turns, {"role": "assistant", "content": "Goodbye."}]}
    messages = TASK.preprocess(row)["messages"]
    roles = [turn["role"] for turn in messages]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    assert messages[0]["content"].startswith("Be brief.\n\n# Tools")
    assert messages[2]["content"].startswith("<tool_call>")
    assert messages[3]["content"] == "<tool_response>\n3\n</tool_response>"
    # The assistant answers the user without a call, so none is right.
    assert TASK.preprocess(row)["calls"] == "[]" and TASK.gold(row) is None


def test_a_conversation_that_ends_with_what_results_say_is_read_up_to_its_last_calls():
    said = {"role": "assistant", "content": "It is 3."}
    openai = {"role": "assistant", "content": None, "tool_calls": [OPENAI_CALL]}
    toolace = {"from": "assistant", "value": "[add(a=1, b=2)]"}
    for call, result in (
        (
            {"role": "tool_call", "content": json.dumps(CALL)},
            {"role": "tool_response", "content": "3"},
        ),
        (openai, {"role": "tool", "content": "3"}),
        (toolace, {"from": "tool", "value": "3"}),
    ):
        # ... and so is one that ends with the results.
        for end in ([said], []):
            row = {"tools": [WRAPPED], "conversations": [QUESTION, call, result, *end]}
            prepared = TASK.preprocess(row)
            assert [turn["role"] for turn in prepared["messages"]] == ["system", "user"], row
            assert json.loads(prepared["calls"]) == [CALL], row
    # What is said beside calls is no part of the right answer.
    row = {"tools": [WRAPPED], "messages": [QUESTION, {**openai, "content": "Let me add them."}]}
    prepared = TASK.preprocess(row)
    gold = TASK.gold(row)
    assert gold is not None
    columns = {name: [prepared[name]] for name in ("functions", "calls")}
    assert REWARDS["tool_call"]()([gold.answer], **columns) == [1.0]
    # A column of calls says what is right after the results.
    row = {"tools": [WRAPPED], "messages": [QUESTION, openai, {"role": "tool", "content": "3"}]}
    prepared = TASK.preprocess(row | {"calls": [CALL]})
    assert prepared["messages"][-1]["content"] == "<tool_response>\n3\n</tool_response>"


def test_a_table_gives_every_call_and_tool_the_arguments_of_all():
    # As Hugging Face's library writes two tools and their calls, to JSON lines and Parquet alike
    days = {"name": "days", "parameters": {"properties": {"a": None, "city": {"type": "string"}}}}
    add = json.loads(json.dumps(ADD))
    add["parameters"]["properties"] |= {"c": {"type": "number"}, "city": None}
    padded = {"name": "add", "arguments": {"a": 1.0, "b": 2.0, "c": None, "city": None}}
    asked = {"role": "assistant", "content": None, "tool_calls": [{"function": padded}]}
    for row in (
        {"query": "1 + 2?", "tools": [add, days], "answers": [padded]},
        {
            "query": "1 + 2?",
            "tools": [add, days],
            "answers": [{"add": {"a": [1], "b": [2], "c": None}}],
        },
        {"messages": [QUESTION, asked], "tools": [add, days]},
    ):
        prepared = TASK.preprocess(row)
        assert '"city": {}' not in prepared["messages"][0]["content"]
        columns = {name: [prepared[name]] for name in ("functions", "calls")}
        for text, expected in (("[add(a=1, b=2)]", 1.0), ("[add(a=1, b=3)]", 0.0)):
            assert REWARDS["tool_call"]()([text], **columns) == [expected], row
    results = [{"role": "tool", "content": "<tool_response>\n3\n</tool_response>"}]
    answered: dict[str, Any] = {"tools": [WRAPPED], "messages": [QUESTION, asked, *results]}
    messages = TASK.preprocess({**answered, "calls": "[]"})["messages"]
    assert messages[2]["content"] == (
        '<tool_call>\n{"name": "add", "arguments": {"a": 1.0, "b": 2.0}}\n</tool_call>'
    )
    assert messages[3]["content"] == "<tool_response>\n3\n</tool_response>"


def test_the_words_are_those_of_a_chat_template_of_hermes():
    system = TASK.preprocess(XLAM)["messages"][0]["content"]
    start, end = "within <tools></tools> XML tags:\n<tools>\n", "\n</tools>"
    tool = json.loads(system.partition(start)[2].partition(end)[0])
    assert tool["type"] == "function"
    parameters = tool["function"]["parameters"]
    assert parameters["properties"] == {
        "a": {"type": "integer"},
        "b": {"type": "number"},
        "c": {"type": "array", "items": {"type": "string"}},
    }
    assert parameters["required"] == ["a"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**XLAM, "tools": "[]"}, "column 'tools': no tools"),
        (
            {**XLAM, "tools": '[{"description": "x"}]'},
            "column 'tools': expected a tool with a name",
        ),
        ({**XLAM, "answers": "call add"}, "column 'answers': the right calls: expected calls"),
        (
            {**XLAM, "answers": '[{"name": "sub"}]'},
            "column 'answers': .*'sub' is not one of the tools",
        ),
        ({**XLAM, "query": ""}, "column 'query': expected a question"),
        (
            {"tools": XLAM["tools"], "query": "1 + 2?"},
            "column 'calls': no right calls in the columns",
        ),
        ({**MS_SWIFT, "messages": [{"role": "tool_call", "content": "x"}]}, "column 'messages'"),
        (
            {**OPENAI, "messages": [QUESTION, {"role": "moderator", "content": "Go on."}]},
            "column 'messages': expected one of the roles .*got 'moderator'",
        ),
        # As a text it would be no call, and a row of which none is right.
        (
            {**OPENAI, "messages": [QUESTION, {"role": "assistant", "content": [ANTHROPIC_CALL]}]},
            "column 'messages': expected parts of the type text, and calls in tool_calls",
        ),
    ],
)
def test_rows_that_cannot_be_used_say_why(row, message):
    with pytest.raises(RowError, match=message):
        TASK.preprocess(row)


def test_openais_parts_of_text_are_read_and_pictures_refused():
    parts: list[Any] = [
        {"type": "text", "text": "How much is "},
        {"type": "text", "text": "1 + 2?"},
    ]
    row = {"messages": [{"role": "user", "content": parts}], "tools": [WRAPPED], "calls": [CALL]}
    assert TASK.preprocess(row)["messages"][-1] == QUESTION
    parts.append({"type": "image_url", "image_url": {"url": "https://example.org/1.png"}})
    with pytest.raises(RowError, match="a task of tool calls has no pictures"):
        TASK.preprocess(row)


def test_what_a_developer_says_belongs_to_the_system_turn():
    says = {"role": "developer", "content": "Add whole numbers only."}
    messages = TASK.preprocess({**OPENAI, "messages": [says, *OPENAI["messages"]]})["messages"]
    assert [turn["role"] for turn in messages] == ["system", "user"]
    assert messages[0]["content"].startswith("Add whole numbers only.")
