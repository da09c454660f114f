"""Which text counts as the answer: tags in every order, think parts, both completion shapes."""

import pytest
from swift_rlvr.answers import completion_text, has_unclosed_answer, last_answer

A, Z = "<answer>", "</answer>"

BLOCKS = [
    # (text, last answer, is one left open)
    ("", None, False),
    ("1+2", None, False),
    (f"{A}1+2{Z}", "1+2", None),
    (f"{A}{Z}", "", None),
    (f"{A} \n 1+2 \n {Z}", " \n 1+2 \n ", None),
    (f"{A}1{Z}{A}2{Z}", "2", None),  # the last of several
    (f"{A}1{Z} text {A}2", "1", None),  # a later tag that is never closed opens nothing
    (f"{A}1{Z}{Z}", "1", None),  # a block ends at its first closing tag
    (f"{A}1{Z}{Z}{A}2", "1", None),
    (f"{A}{A}1{Z}{Z}", "1", None),  # nested: the inner block
    (f"{Z}{A}1", None, True),  # wrong order
    (f"{Z}1{A}", None, True),
    (Z, None, False),
    (f"{A}1", None, True),
    (f"<think>{A}1{Z}</think>", None, False),  # only inside the think part
    (f"<think>{A}1{Z}</think>{A}2{Z}", "2", None),
    (f"<think>{A}1{Z}</think>{A}2", None, True),
    (f"<think>{A}1{Z}", "1", None),  # the think part is never closed: the completion's last block
    (f"x</think>{A}1{Z}", "1", None),  # a prompt may have opened the think part
    (f"</think>{A}1{Z}</think>", None, False),  # everything before the last </think> is thought
    (f"<think>a</think>{A}1{Z}<think>{A}2{Z}</think>{A}3{Z}", "3", None),
    (f"<think>{A}1</think>2{Z}", None, False),  # opened inside, closed outside
    (f"{A}1</think>{Z}", None, False),
    (f"{A}1</think", None, True),
    (f"{A}1{Z}{A}</th{Z}ink>", "</th", None),  # no tag may arise from what stands around another one
    (f"{A}1</th{Z}ink>{A}", "1</th", None),
    ("<ANSWER>1</ANSWER>", None, False),  # tags are in lower case
    ('<answer type="x">1</answer>', None, False),  # and without attributes
    ("< answer >1</ answer >", None, False),
    ("<answer >1</answer>", None, False),
    ("&lt;answer&gt;1&lt;/answer&gt;", None, False),
    (f"{A}1</ANSWER>2{Z}", "1</ANSWER>2", None),
    (f"<think>{A}1{Z}</THINK>", "1", None),  # not a </think>
]


@pytest.mark.parametrize(("text", "answer", "is_open"), BLOCKS)
def test_last_answer(text, answer, is_open):
    assert last_answer(text) == answer
    if answer is None:
        assert has_unclosed_answer(text) is is_open


@pytest.mark.parametrize(
    ("completion", "text"),
    [
        ("abc", "abc"),
        ([{"role": "assistant", "content": "abc"}], "abc"),
        (({"role": "assistant", "content": "abc"},), "abc"),
        ([{"role": "assistant", "content": "call"}, {"role": "tool", "content": "7"}, {"content": "abc"}], "abc"),
        ([{"content": [{"type": "text", "text": "ab"}, {"type": "image"}, {"type": "text", "text": "c"}]}], "abc"),
        ([{"content": ["abc", None, {"text": 3}]}], ""),
        ([{"role": "assistant", "content": None}], None),
        ([{"role": "assistant"}], None),
        ([{"content": 3}], None),
        ([], None),
        (["abc"], None),
        (None, None),
        (3.5, None),
        ({"content": "abc"}, None),
        (b"abc", None),
    ],
)
def test_completion_text(completion, text):
    assert completion_text(completion) == text
