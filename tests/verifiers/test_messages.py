"""What of a conversation the policy wrote, in every form that trainers, parsers and servers pass."""

import pytest
from datasets import Dataset

from present import present
from swift_rlvr.rewards import REWARDS
from swift_rlvr.runs.grade_log import GradeLog
from swift_rlvr.verifiers.messages import completion_text, last_text, message_text

RIGHT = "<think>\n3 + 4\n</think>\n<answer>\n3 + 4\n</answer>"
THOUGHT, ANSWER = "3 + 4", "<answer>\n3 + 4\n</answer>"
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"type": "function", "function": {"name": "solve", "arguments": {}}}],
}


def assistant(content, **fields):
    return {"role": "assistant", "content": content, **fields}


COMPLETIONS = [
    ("abc", "abc"),
    ([assistant("abc")], "abc"),
    ((assistant("abc"),), "abc"),
    ([{"content": "abc"}], "abc"),
    # several messages: the last one counts, if it is the assistant's
    ([CALL, {"role": "tool", "content": "7"}, assistant("abc")], "abc"),
    ([assistant("one"), assistant("two")], "two"),
    ([CALL, {"role": "tool", "name": "solve", "content": RIGHT}], None),
    ([assistant(RIGHT), {"role": "user", "content": RIGHT}], None),
    ([{"role": "system", "content": RIGHT}], None),
    ([{"role": None, "content": RIGHT}], None),
    ([CALL], None),
    ([assistant("", tool_calls=CALL["tool_calls"])], ""),
    # parts
    ([assistant([{"type": "text", "text": "ab"}, {"type": "image"}, {"text": "c"}])], "abc"),
    ([assistant([{"type": "output_text", "text": "abc", "annotations": []}])], "abc"),
    ([assistant([{"type": "tool_result", "text": RIGHT}])], ""),
    ([assistant(["abc", None, {"text": 3}])], ""),
    # nothing
    ([assistant(None)], None),
    ([{"role": "assistant"}], None),
    ([{"content": 3}], None),
    ([], None),
    (["abc"], None),
    ([None], None),
    (None, None),
    (3.5, None),
    ({"content": "abc"}, None),
    (b"abc", None),
]


@pytest.mark.parametrize(("completion", "text"), COMPLETIONS)
def test_completion_text(completion, text):
    assert completion_text(completion) == text


# The same completion as parsers and servers split it.
SPLIT = {
    "TRL, older vLLM": assistant(ANSWER, reasoning_content=THOUGHT),
    "vLLM": assistant("\n" + ANSWER, reasoning=f"\n{THOUGHT}\n"),
    "gpt-oss, LFM2.5": assistant(ANSWER, thinking=THOUGHT),
    "both names of one field": assistant(ANSWER, reasoning=THOUGHT, reasoning_content=THOUGHT),
    "absent fields of a table": assistant(ANSWER, reasoning_content=None, thinking=THOUGHT),
    "Anthropic": assistant(
        [{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": ANSWER}]
    ),
    "Mistral": assistant(
        [
            {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]},
            {"type": "text", "text": ANSWER},
        ]
    ),
    "OpenAI": assistant(
        [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}]},
            {"type": "output_text", "text": ANSWER},
        ]
    ),
}


@pytest.mark.parametrize("message", SPLIT.values(), ids=SPLIT)
def test_thinking_stands_before_the_answer_again(message):
    assert completion_text([message]) == message_text(message) == RIGHT


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (assistant(None, reasoning_content="so 7"), "<think>\nso 7\n</think>\n"),
        (assistant("", reasoning_content="so 7", tool_calls=[]), "<think>\nso 7\n</think>\n"),
        (assistant("7", reasoning_content=""), "7"),
        (assistant("7", reasoning_content=" \n"), "7"),
        (assistant("7", reasoning_content=7), "7"),
        # a think part that the policy has opened a second time stays to be seen
        (
            assistant("<think>b</think>7", reasoning_content="a"),
            "<think>\na\n</think>\n<think>b</think>7",
        ),
    ],
)
def test_edges_of_split_thinking(message, text):
    assert message_text(message) == text


# Of trl 1.16, chat_template_utils.py: Qwen3, and DeepSeek-R1-Distill, whose prompt opens the think part.
_THINK = {"close_pattern": r"</think>\s*", "content": "text"}
_CONTENT = {"close_pattern": r"<\|im_end\|>\s*|$", "content": "text"}
TEMPLATES = {
    "qwen3": {
        "defaults": {"role": "assistant"},
        "start_anchor": "<|im_start|>assistant\n",
        "fields": {"reasoning_content": {"open": "<think>", **_THINK}, "content": _CONTENT},
    },
    "prefilled": {
        "defaults": {"role": "assistant"},
        "start_anchor": "<|im_start|>assistant\n<think>\n",
        "fields": {
            "reasoning_content": {"open_pattern": r"(?=[\s\S]*?</think>)", **_THINK},
            "content": _CONTENT,
        },
    },
}


@pytest.mark.parametrize("name", TEMPLATES)
@pytest.mark.parametrize(
    "written",
    [RIGHT, "<think>3 + 4</think><answer>3 + 4</answer>", "<answer>3 + 4</answer>", "<think>3 + 4"],
)
def test_transformers_parser_changes_no_verdict(name, written):
    """What the parser splits is graded as the text that ms-swift hands over."""
    chat_parsing = pytest.importorskip("transformers.utils.chat_parsing")
    prompt = "<|im_start|>user\n?<|im_end|>\n<|im_start|>assistant\n"
    generated = written + "<|im_end|>"
    if name == "prefilled":
        prompt += "<think>\n"
        generated = generated.removeprefix("<think>").lstrip("\n")
    message = chat_parsing.parse_response(generated, TEMPLATES[name], prefix=prompt)
    assert message["role"] == "assistant"
    row = {"nums": [[3, 4]], "target": [7], "prompts": [prompt]}
    for reward in ("external_countdown", "external_format"):
        as_text = REWARDS[reward]()([generated], **row)
        assert REWARDS[reward]()([[message]], **row) == as_text


def test_an_answer_that_was_only_thought_of_earns_nothing():
    """The parser hides whether a think part was closed."""
    cut_off = assistant("", reasoning_content="perhaps <answer>3 + 4</answer>")
    assert REWARDS["external_countdown"]()([[cut_off]], nums=[[3, 4]], target=[7]) == [0.0]


@pytest.mark.parametrize("name", REWARDS.present)
def test_no_reward_pays_for_the_words_of_a_tool(name):
    reward = REWARDS[name]()
    best = max(REWARDS[name].examples, key=lambda example: example.reward or 0.0)
    row = {column: [value] for column, value in best.row.items()}
    by_tool = [CALL, {"role": "tool", "content": best.completion}]
    assert reward([by_tool], **row) == reward([None], **row)


def test_every_reward_and_the_records_see_split_thinking():
    log = GradeLog()
    earlier = assistant("<answer>4</answer>", reasoning_content="four")
    prompts = [{"role": "user", "content": "?"}, earlier, {"role": "user", "content": "Again."}]
    for name in ("external_format_strict", "external_tag_count", "external_countdown"):
        reward = REWARDS[name]()
        reward.log = log
        row = {"nums": [[3, 4]], "target": [7], "prompts": [prompts]}
        assert reward([[SPLIT["TRL, older vLLM"]]], **row) == [1.0]
    (record,) = log.take()
    assert record.completion == RIGHT
    assert present(record.messages)[1]["content"] == "<think>\nfour\n</think>\n<answer>4</answer>"


def test_a_prompt_is_read_whoever_wrote_its_end():
    """A prefilled think part is an assistant's message at the end of the prompt, or no message."""
    user = {"role": "user", "content": "1 + 1?"}
    assert last_text([assistant("x"), user]) == "1 + 1?"
    prefilled = [user, assistant("<think>\n")]
    completion = "1 + 1</think><answer>2</answer>"
    assert REWARDS["external_format"]()([completion], prompts=[prefilled]) == [1.0]


def test_messages_of_a_table():
    """In Arrow a field that one message has is None in the others."""
    completions = [[SPLIT["TRL, older vLLM"]], [CALL, {"role": "tool", "content": RIGHT}]]
    table = Dataset.from_list([{"completion": completion} for completion in completions])
    assert [completion_text(row["completion"]) for row in table] == [RIGHT, None]
