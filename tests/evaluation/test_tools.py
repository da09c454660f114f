"""Tools as a column: what ms-swift's templates, chat templates and servers show of them."""

import json

import pytest

from commands import refused
from swift_rlvr.evaluation.models import fitting_prompts, load_tokenizer
from swift_rlvr.evaluation.prompts import ask
from swift_rlvr.evaluation.tools import as_chat, rendered, with_tools
from swift_rlvr.tasks import TASKS, RowError
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import TINY_MODEL

TASK = TASKS["tool_calls"]
ADD = {
    "name": "add",
    "description": "Adds.",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
}
ONE, TWO = ({"name": "add", "arguments": {"a": number}} for number in (1, 2))
FIRST = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "1?"}]
ROW = {"tools": [ADD], "messages": FIRST, "calls": [ONE]}
TURNS = [
    *FIRST,
    {"role": "tool_call", "content": json.dumps(ONE)},
    {"role": "tool_call", "content": json.dumps(TWO)},
    {"role": "tool_response", "content": "3"},
    {"role": "tool_response", "content": "4"},
    {"role": "assistant", "content": "It is 3."},
    {"role": "user", "content": "And 2?"},
]
LONGER = {**ROW, "messages": TURNS}


@pytest.fixture
def native(monkeypatch):
    monkeypatch.setenv("SWIFT_RLVR_NATIVE_TOOLS", "true")


def by_ms_swift(prepared, template_type):
    """The prompt that ms-swift gives to a model with this template."""
    pytest.importorskip("swift", reason="needs the extra [train]")
    from swift.model import get_processor
    from swift.template import get_template

    processor = get_processor(str(TINY_MODEL), model_type="qwen2")
    template = get_template(processor, template_type=template_type, max_length=4096)
    template.set_mode("vllm")
    row = {"messages": [dict(turn) for turn in prepared["messages"]]}
    if "tools" in prepared:
        row["tools"] = prepared["tools"]
    return processor.decode(template.encode(row)["input_ids"])


@pytest.mark.parametrize("row", [ROW, LONGER])
def test_of_qwen_the_text_and_the_column_are_the_same_prompt(row, monkeypatch):
    in_words = by_ms_swift(TASK.preprocess(row), "qwen2_5")
    monkeypatch.setenv("SWIFT_RLVR_NATIVE_TOOLS", "true")
    assert by_ms_swift(TASK.preprocess(row), "qwen2_5") == in_words
    assert "within <tools></tools> XML tags" in in_words and in_words.count('"name": "add"') >= 1


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("qwen3_5", "an inner <function=...></function> block"),
        ("llama3_2", 'Respond in the format {"name": function name, "parameters"'),
    ],
)
def test_other_templates_of_ms_swift_use_their_own_words(template, words, native):
    prepared = TASK.preprocess(ROW)
    prompt = by_ms_swift(prepared, template)
    assert words in prompt and prompt.count('"name": "add"') == 1
    assert "For each function call, return a json object" not in prompt


@pytest.mark.parametrize("row", [ROW, LONGER])
def test_a_chat_template_shows_what_ms_swift_shows(row, native):
    templates = pytest.importorskip("trl.chat_template_utils", reason="needs the extra [trl]")
    tokenizer = load_tokenizer(str(TINY_MODEL))
    tokenizer.chat_template = templates.qwen3_chat_template
    asked = ask(TASK, row, tokenizer=tokenizer)
    # Qwen3's words of tools and calls are those of Qwen2.5.
    assert asked.prompt == by_ms_swift(asked.row, "qwen2_5")
    (ids,) = fitting_prompts(tokenizer, [asked.messages], 1, None)
    assert tokenizer.decode(ids) == asked.prompt


def test_calls_and_results_have_the_roles_of_the_api(native):
    prepared = TASK.preprocess(LONGER)
    turns, tools = as_chat(with_tools(prepared["messages"], prepared), calls_in_text=True)
    assert [turn["role"] for turn in turns] == [
        *("system", "user", "assistant", "tool", "tool", "assistant", "user"),
    ]
    made = [call["function"] for call in turns[2]["tool_calls"]]
    assert [json.loads(call["arguments"]) for call in made] == [{"a": 1}, {"a": 2}]
    ids = [call["id"] for call in turns[2]["tool_calls"]]
    assert ids == [turn["tool_call_id"] for turn in turns[3:5]]
    assert len(set(ids)) == 2 and all(len(each) == 9 and each.isalnum() for each in ids)
    assert tools == json.loads(prepared["functions"])


def test_a_question_after_a_result_is_no_turn_of_a_template(native):
    turns = [turn for turn in TURNS if turn["role"] != "assistant"]
    with pytest.raises(RowError, match="want a turn of the assistant between them"):
        TASK.preprocess({**ROW, "messages": turns})


def test_a_template_without_tools_is_an_error(native):
    tokenizer = load_tokenizer(str(TINY_MODEL))
    prepared = TASK.preprocess(ROW)
    with pytest.raises(InputError, match="shows no tools; without SWIFT_RLVR_NATIVE_TOOLS"):
        rendered(tokenizer, with_tools(prepared["messages"], prepared))


def test_who_shows_no_column_refuses_it(native, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ROW) + "\n")
    out = str(tmp_path / "out.jsonl")
    message = refused("dataset", "prepare", f"tool_calls:{path}", "--format", "slime", "--out", out)
    assert "slime shows the model no column tools; unset SWIFT_RLVR_NATIVE_TOOLS" in message
