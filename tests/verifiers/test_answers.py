"""Which text counts as the answer: tags in every order, think parts, boxes, both completion
shapes.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swift_rlvr.verifiers.answers import (
    boxed_answer,
    has_unclosed_answer,
    last_answer,
    last_boxed,
    marked_answer,
)

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
    (
        f"{A}1{Z}{A}</th{Z}ink>",
        "</th",
        None,
    ),  # no tag may arise from what stands around another one
    (f"{A}1</th{Z}ink>{A}", "1</th", None),
    ("<ANSWER>1</ANSWER>", None, False),  # tags are in lower case
    ('<answer type="x">1</answer>', None, False),  # and without attributes
    ("< answer >1</ answer >", None, False),
    ("<answer >1</answer>", None, False),
    ("&lt;answer&gt;1&lt;/answer&gt;", None, False),
    (f"{A}1</ANSWER>2{Z}", "1</ANSWER>2", None),
    (f"<think>{A}1{Z}</THINK>", None, False),  # not a </think>
    (f"<think>{A}1{Z} or", None, False),  # never closed, and the completion goes on
    (f"<think>{A}1{Z}<|im_end|>\n", "1", None),
    (f"<think>{A}1{Z} {A}2{Z}", "2", None),
    (f"[THINK]{A}1{Z}[/THINK]{A}2{Z} or", "2", None),
    (f"[THINK]{A}1{Z}[/THINK]", None, False),
]


@pytest.mark.parametrize(("text", "answer", "is_open"), BLOCKS)
def test_last_answer(text, answer, is_open):
    assert last_answer(text) == answer
    if answer is None:
        assert has_unclosed_answer(text) is is_open


# (text, the last box, the answer of the last boxes that stand together)
BOXES = [
    ("", None, None),
    ("no box", None, None),
    (r"\boxed{1}", "1", "1"),
    (r"\boxed {1}", "1", "1"),
    (r"\fbox{1}", "1", "1"),
    (r"\boxed{}", "", ""),
    (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}", r"\frac{1}{2}"),
    (r"\boxed{\{1, 2\}}", r"\{1, 2\}", r"\{1, 2\}"),
    (r"\boxed{\boxed{1}}", "1", "1"),
    (r"\boxed{1", None, None),
    (r"\boxed{1} and \boxed{2", "1", "1"),
    (r"\boxed1", None, None),
    (r"\boxedx{1}", None, None),
    (r"\boxed{1}\boxed{2}", "2", "1, 2"),
    (r"\boxed{1}, \boxed{2}", "2", "1, 2"),
    (r"$\boxed{1}$ and $\boxed{2}$", "2", "1, 2"),
    (r"\(\boxed{1}\) or \(\boxed{2}\)", "2", "1 or 2"),
    (r"\boxed{1} \text{ or } \boxed{2}", "2", "1 or 2"),
    (r"\boxed{1}; \boxed{2} \quad \boxed{3}", "3", "1, 2, 3"),
    (r"$x=\boxed{1}$, $y=\boxed{2}$", "2", "x = 1, y = 2"),
    (r"$x_1=\boxed{1}$ and $x_2=\boxed{2}$", "2", "x_1 = 1, x_2 = 2"),
    (r"$x=\boxed{1}$ or $\boxed{2}$", "2", "1 or 2"),
    (r"\boxed{1} \boxed{1}", "1", "1"),  # said twice
    (r"$\boxed{1}$. So \boxed{2}", "2", "2"),  # earlier working
    (r"\boxed{1} then \boxed{2}", "2", "2"),
    (r"\boxed{3}. So $\boxed{1}$ and $\boxed{2}$.", "2", "1, 2"),
    (r"\boxed{1}" + " " * 80 + r"\boxed{2}", "2", "2"),  # far apart
    (r"\boxed{1} not \boxed{2}", "2", "2"),
    (r"\boxed{1}. \boxed{2}", "2", "2"),
]


@pytest.mark.parametrize(("text", "last", "together"), BOXES)
def test_boxes(text, last, together):
    assert (last_boxed(text), boxed_answer(text)) == (last, together)


# (text, how the answer is marked and the answer)
MARKED = [
    ("1", None),
    (f"{A} 1 {Z}", ("answer tag", "1")),
    (rf"{A}so \boxed{{1}} {Z}", ("boxed", "1")),
    (rf"{A}\boxed{{1}} and \boxed{{2}}{Z}", ("boxed", "1, 2")),
    (rf"{A}1{Z} \boxed{{2}}", ("answer tag", "1")),
    (r"\boxed{ 1 }", ("boxed", "1")),
    (r"\boxed{1} #### 2", ("boxed", "1")),
    ("#### 1\n#### 2 \n3", ("####", "2")),
    ("####", ("####", "")),
    (r"<think>\boxed{1}</think> 2", None),
    (r"<think>\boxed{1}</think> #### 2", ("####", "2")),
    (r"<think>\boxed{1}", None),  # never closed: nothing that follows counts
    ("<think>#### 1", None),
    (rf"<think>{A}1{Z}", ("answer tag", "1")),  # but an answer block
    (r"\boxed{1} <think>\boxed{2}", ("boxed", "1")),
    (r"<think>\boxed{1}</think> \boxed{2} <think> \boxed{3}", ("boxed", "2")),
    (r"\boxed{1}</think>", None),
    (r"</think>\boxed{1}", ("boxed", "1")),
]


@pytest.mark.parametrize(("text", "expected"), MARKED)
def test_marked_answer(text, expected):
    assert marked_answer(text) == expected


PIECES = st.sampled_from([A, Z, "<think>", "</think>", r"\boxed{", r"\fbox {", "{", "}", "\\", "####", "\n", " and ",
                          ", ", "$", "x=", "1", "2"])  # fmt: skip


@settings(max_examples=500, derandomize=True)
@given(st.lists(PIECES, max_size=20).map("".join))
def test_an_answer_is_a_part_of_its_text(text):
    marked = marked_answer(text)
    if marked is not None:
        mark, answer = marked
        assert mark in ("answer tag", "boxed", "####") and answer == answer.strip()
        assert answer in text or mark == "boxed"
    last, together = last_boxed(text), boxed_answer(text)
    assert (last is None) is (together is None)
    # Of a box in a box the answer is what the inner one holds, and the last one is the outer.
    if last is not None and together is not None and r"\boxed" not in last:
        assert last in text and together.strip().endswith(last.strip())
