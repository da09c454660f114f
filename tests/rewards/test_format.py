"""external_format, external_format_strict, external_tag_count and external_boxed: which text earns
what, and why.
"""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from helpers import done_within
from swift_rlvr.rewards.boxed import BoxedReward
from swift_rlvr.rewards.format import FormatReward, FormatStrictReward
from swift_rlvr.rewards.tag_count import TagCountReward

LAID_OUT = "<think>\n1 + 1\n</think>\n<answer>\n2\n</answer>"
ONE_LINE = "<think>1 + 1</think><answer>2</answer>"

FORMAT = [
    # (text, reason of external_format)
    (ONE_LINE, "ok"),
    (LAID_OUT, "ok"),
    (f" \n{ONE_LINE}\n\n", "ok"),  # white space outside
    ("<think>1 + 1</think> \n\t <answer>2</answer>", "ok"),
    ("<think>a < b, <b>1</b></think><answer>2 > 1</answer>", "ok"),  # other tags are text
    (f"{ONE_LINE}<|im_end|>", "ok"),
    (f"{LAID_OUT}\n<|im_end|>\n<|endoftext|> ", "ok"),
    ("", "no text"),
    (None, "no text"),
    (" \n", "no text"),
    ("<|im_end|>", "no text"),
    ("The answer is 2.", "no think part"),
    ("<answer>2</answer>", "no think part"),
    ("1 + 1</think><answer>2</answer>", "no think part"),  # nothing says that the prompt opened it
    ("<THINK>1 + 1</THINK><answer>2</answer>", "no think part"),  # tags are in lower case
    ("<think>1 + 1", "think part not closed"),
    ("<think>1 + 1<answer>2</answer>", "think part not closed"),
    ("<think>1 + 1</think> 2", "no answer part"),
    ("<think>1 + 1</think>2</answer>", "no answer part"),
    ("<think>1 + 1</think><answer>2", "answer part not closed"),  # cut off
    (f"{ONE_LINE}{ONE_LINE}", "repeated tag"),
    ("<think><think>1 + 1</think><answer>2</answer>", "repeated tag"),
    ("<think>1</think><think>2</think><answer>2</answer>", "repeated tag"),
    ("<think>the <answer> tag</think><answer>2</answer>", "repeated tag"),  # inside a part, too
    ("<think>1 + 1</think><answer>2</answer></answer>", "repeated tag"),
    ("<answer>2</answer><think>1 + 1</think>", "wrong order"),
    ("</think>1 + 1<think><answer>2</answer>", "wrong order"),
    ("<think>1 + 1<answer>2</answer></think>", "wrong order"),  # the answer inside the think part
    ("<think>1 + 1<answer></think>2</answer>", "wrong order"),
    (f"Sure! {ONE_LINE}", "text outside the tags"),
    ("<think>1 + 1</think> So: <answer>2</answer>", "text outside the tags"),
    (f"{ONE_LINE} I hope it helps.", "text outside the tags"),
    (
        f"<|im_start|>{ONE_LINE}",
        "text outside the tags",
    ),  # only at the end do special tokens no harm
    ("<think></think><answer>2</answer>", "empty think part"),
    ("<think> \n </think><answer>2</answer>", "empty think part"),
    ("<think>1 + 1</think><answer>\n</answer>", "empty answer"),
    # what says nothing is empty
    ("<think>.</think><answer>.</answer>", "empty think part"),
    ("<think>...</think><answer>2</answer>", "empty think part"),
    ("<think>…\n---\n***</think><answer>2</answer>", "empty think part"),
    ("<think>。！？</think><answer>2</answer>", "empty think part"),
    ("<think>1 + 1</think><answer>.</answer>", "empty answer"),
    ("<think>1 + 1</think><answer>...</answer>", "empty answer"),
    ("<think>1 + 1</think><answer> … </answer>", "empty answer"),
    ("<think>1 + 1</think><answer>, ; : ! ?</answer>", "empty answer"),
    ("<think>1 + 1</think><answer>。</answer>", "empty answer"),
    # what is an answer
    ("<think>1 + 1</think><answer><</answer>", "ok"),
    ("<think>1 + 1</think><answer>+</answer>", "ok"),
    ("<think>1 + 1</think><answer>-</answer>", "ok"),
    ("<think>1 + 1</think><answer>∅</answer>", "ok"),
    ("<think>1 + 1</think><answer>(</answer>", "ok"),
    ("<think>1 + 1</think><answer>-1.</answer>", "ok"),
    ("<think>相加</think><answer>二</answer>", "ok"),
]
STRICT = [
    # (text, reason of external_format_strict), where external_format says ok
    (LAID_OUT, "ok"),
    (f"{LAID_OUT}\n", "ok"),
    (f"{LAID_OUT} \n<|im_end|>\n", "ok"),
    (
        "<think>\n\n 1 + 1\n\n</think>\n<answer>\n 2 \n</answer>",
        "ok",
    ),  # inside the parts white space is free
    (ONE_LINE, "tag not on its own line"),
    ("<think>1 + 1\n</think>\n<answer>\n2\n</answer>", "tag not on its own line"),
    ("<think>\n1 + 1</think>\n<answer>\n2\n</answer>", "tag not on its own line"),
    ("<think>\n1 + 1\n</think><answer>\n2\n</answer>", "tag not on its own line"),
    ("<think>\n1 + 1\n</think>\n<answer>2\n</answer>", "tag not on its own line"),
    ("<think>\n1 + 1\n</think>\n<answer>\n2</answer>", "tag not on its own line"),
    (f"\n{LAID_OUT}", "white space around the tags"),
    (f" {LAID_OUT}", "white space around the tags"),
    (LAID_OUT.replace("</think>\n", "</think>\n\n"), "white space around the tags"),
    (LAID_OUT.replace("</think>\n", "</think> \n"), "white space around the tags"),
    (LAID_OUT.replace("<think>\n", "<think> \n"), "white space around the tags"),
    (LAID_OUT.replace("\n</answer>", "\n </answer>"), "white space around the tags"),
    (LAID_OUT.replace("\n", "\r\n"), "white space around the tags"),
]
OPENED = [
    # (text after a prompt that ends with <think>, reason of external_format, reason of
    # external_format_strict)
    ("1 + 1\n</think>\n<answer>\n2\n</answer>", "ok", "ok"),
    (
        "\n1 + 1\n</think>\n<answer>\n2\n</answer>",
        "ok",
        "ok",
    ),  # the prompt may end before the line break
    (LAID_OUT, "ok", "ok"),  # opened again, at the very beginning
    (f"so {LAID_OUT}", "repeated tag", "repeated tag"),
    ("1 + 1</think><answer>2</answer>", "ok", "tag not on its own line"),
    ("1 + 1</think> So <answer>2</answer>", "text outside the tags", "text outside the tags"),
    ("</think>\n<answer>\n2\n</answer>", "empty think part", "empty think part"),
    ("<answer>\n2\n</answer>", "think part not closed", "think part not closed"),
    ("2", "think part not closed", "think part not closed"),
    ("", "no text", "no text"),
    (None, "no text", "no text"),
    ("<|im_end|>", "no text", "no text"),
]
PROMPTS = [
    # (prompt, does it open the think part)
    ("1 + 1 = ?\nAssistant: <think>", True),
    ("1 + 1 = ?\nAssistant: <think>\n", True),
    ("Use <think> tags.", False),
    ("<think></think>", False),
    (
        [{"role": "user", "content": "1 + 1 = ?"}, {"role": "assistant", "content": "<think>\n"}],
        True,
    ),
    ([{"role": "user", "content": [{"type": "text", "text": "1 + 1 = ? <think>"}]}], True),
    ([{"role": "user", "content": "<think>"}, {"role": "assistant", "content": "So"}], False),
    ([{"role": "user", "content": None}], False),
    ([], False),
    (None, False),
    (3, False),
]


def one(reward, text, **columns):
    (grade,) = reward.grades([text], **{name: [value] for name, value in columns.items()})
    assert grade.reason in reward.reasons
    explanation = reward.explain(text, columns)
    assert explanation[:2] == grade
    if (
        grade.reward is not None
    ):  # the rules tell the same story: all hold where the reward is whole, else one is broken
        assert any(rule.passed is False for rule in explanation.rules) is (grade.reward < 1)
    return grade


@pytest.mark.parametrize(("text", "reason"), FORMAT)
def test_format(text, reason):
    assert one(FormatReward(), text) == (float(reason == "ok"), reason)
    if reason != "ok":
        assert one(FormatStrictReward(), text) == (0.0, reason)


@pytest.mark.parametrize(("text", "reason"), STRICT)
def test_strict_format(text, reason):
    assert one(FormatReward(), text) == (1.0, "ok")
    assert one(FormatStrictReward(), text) == (float(reason == "ok"), reason)


@pytest.mark.parametrize(("text", "reason", "strict_reason"), OPENED)
def test_a_think_part_that_the_prompt_has_opened(text, reason, strict_reason):
    for kind, expected in ((FormatReward, reason), (FormatStrictReward, strict_reason)):
        assert one(kind(thinking_opened=True), text).reason == expected
        assert one(kind(), text, prompts="1 + 1 = ?\n<think>\n").reason == expected


@pytest.mark.parametrize(("prompt", "opened"), PROMPTS)
def test_which_prompts_open_the_think_part(prompt, opened):
    rest = "1 + 1\n</think>\n<answer>\n2\n</answer>"
    for reward in (FormatReward(), FormatStrictReward(), TagCountReward()):
        assert (one(reward, rest, prompts=prompt).reward == 1.0) is opened
        assert one(reward, LAID_OUT, prompts=prompt).reward == 1.0


def test_each_row_has_its_own_prompt():
    rest = "1 + 1</think><answer>2</answer>"
    assert FormatReward()([rest, rest, ONE_LINE], prompts=["<think>", "1 + 1", "<think>"]) == [
        1.0,
        0.0,
        1.0,
    ]


TAG_TEXT = st.lists(
    st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", "\n", "\n", " ", "x", "<"]),
    max_size=14,
).map("".join)


@given(TAG_TEXT)
@example(LAID_OUT)
@example("<think>\nx</answer>\n</think>\n<answer>\nx\n</answer>")
def test_strict_is_the_recipe_without_repeated_tags_and_empty_parts(text):
    match = re.fullmatch(
        r"<think>\n(.*)\n</think>\n<answer>\n(.*)\n</answer>", text.rstrip(), re.DOTALL
    )
    recipe = (
        match is not None
        and re.search(r"\w", match[1]) is not None
        and bool(match[2].strip())
        and not re.search("</?(think|answer)>", match[1] + match[2])
    )
    assert one(FormatStrictReward(), text).reward == recipe
    assert one(FormatReward(), text).reward >= recipe


TAGS = [
    # (text, reward, reason, reward with own_line=False)
    (LAID_OUT, 1.0, "all tags", 1.0),
    (f"{LAID_OUT}\n<|im_end|>", 1.0, "all tags", 1.0),
    (f"Sure: {LAID_OUT}!", 1.0, "all tags", 1.0),  # what stands around them does not count
    ("<think>\n1\n</think>\n\n<answer>\n2\n</answer>", 1.0, "all tags", 1.0),
    ("\n</answer>\n<answer>\n</think>\n<think>\n", 1.0, "all tags", 1.0),  # nor the order
    (ONE_LINE, 0.0, "tag not on its own line", 1.0),
    ("<think>\n1\n</think>\n<answer>2\n</answer>", 0.75, "tag not on its own line", 1.0),
    ("<think>\n1\n</think> <answer>\n2\n</answer>", 0.5, "tag not on its own line", 1.0),
    ("<think>\n1\n</think>\n<answer>\n2", 0.75, "missing tag", 0.75),  # cut off
    ("<think>\n1", 0.25, "missing tag", 0.25),
    ("<answer>2</answer>", 0.0, "missing tag", 0.5),
    (f"{LAID_OUT}\n{LAID_OUT}", 0.0, "repeated tag", 0.0),
    (f"{LAID_OUT}\n</answer>", 0.75, "repeated tag", 0.75),
    (
        "<think>\n1\n</think>\n</think>\n<answer>\n2\n</answer>",
        0.75,
        "repeated tag",
        0.75,
    ),  # they share a line break
    (
        "<think>\nin <answer> tags\n</think>\n<answer>\n2\n</answer>",
        1.0,
        "all tags",
        0.75,
    ),  # one with line breaks
    ("It is 2.", 0.0, "no tags", 0.0),
    ("<Think>\n1\n</Think>\n", 0.0, "no tags", 0.0),
    ("", 0.0, "no text", 0.0),
    (None, 0.0, "no text", 0.0),
    ("<|im_end|>", 0.0, "no text", 0.0),
]


@pytest.mark.parametrize(("text", "reward", "reason", "anywhere"), TAGS)
def test_tag_count(text, reward, reason, anywhere):
    assert one(TagCountReward(), text) == (reward, reason)
    assert one(TagCountReward(own_line=False), text).reward == anywhere


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        # after a prompt that ends with <think>
        ("1\n</think>\n<answer>\n2\n</answer>", 1.0),
        (LAID_OUT, 1.0),
        ("1\n<think>\n</think>\n<answer>\n2\n</answer>", 0.75),  # repeated
        ("2", 0.25),
        ("", 0.0),
    ],
)
def test_tag_count_after_an_opened_think_part(text, reward):
    assert one(TagCountReward(thinking_opened=True), text).reward == reward
    assert one(TagCountReward(), text, prompts="<think>\n").reward == reward


@given(TAG_TEXT)
def test_tag_count_is_the_recipe(text):
    marks = ("<think>\n", "\n</think>\n", "\n<answer>\n", "\n</answer>")
    recipe = (
        sum(len(re.findall(f"(?={mark})", text)) == 1 for mark in marks) / 4
    )  # looking ahead: they may overlap
    assert one(TagCountReward(), text).reward == recipe


BOXED = [
    # (text, solution, reward, reason)
    (r"So \boxed{72}.", "72", 1.0, "correct"),
    (r"So \boxed{72}.", 72, 1.0, "correct"),
    (r"So \boxed{72}.", 72.0, 1.0, "correct"),
    (r"So \boxed{0.5}.", 0.5, 1.0, "correct"),
    (r"So \fbox{72}.", "72", 1.0, "correct"),
    (r"So $\boxed{ \frac{1} {2} }$", r"$\frac{1}{2}$", 1.0, "correct"),  # white space and $
    (r"\boxed{1} or \boxed{72}", "72", 1.0, "correct"),  # the last one
    (r"\boxed{72} or \boxed{1}", "72", 0.0, "wrong answer"),
    (r"<think>\boxed{1}</think><answer>\boxed{72}</answer>", "72", 1.0, "correct"),
    (
        r"<think>\boxed{72}</think><answer>72</answer>",
        "72",
        0.0,
        "no box",
    ),  # thought is not answered
    (r"\boxed{72}", "48 + 24 = 72\n#### 72", 1.0, "correct"),  # golds of GSM8K
    (r"\boxed{72}", r"We get $\boxed{72}$.", 1.0, "correct"),  # MATH
    (r"\boxed{72}", "<answer> 72 </answer>", 1.0, "correct"),
    (r"\boxed{1/2}", r"\frac{1}{2}", 0.0, "wrong answer"),  # texts, not values
    (r"\boxed{72.0}", 72, 0.0, "wrong answer"),
    (r"\boxed{\boxed{72}}", "72", 1.0, "correct"),  # of nested ones the inner
    (r"\boxed{72", "72", 0.0, "no box"),
    (r"\boxed{}", "72", 0.0, "empty box"),
    (r"\boxed{ $ $ }", "72", 0.0, "empty box"),
    ("72", "72", 0.0, "no box"),
    ("", "72", 0.0, "no text"),
    (None, "72", 0.0, "no text"),
    *(
        (text, bad, None, "bad gold")
        for text in (r"\boxed{72}", r"\boxed{}", "", None)
        for bad in (
            None,
            "",
            " \n",
            "$$",
            "#### ",
            True,
            [],
            ["72"],
            {"a": 1},
            float("nan"),
            float("inf"),
        )
    ),
]


@pytest.mark.parametrize(("text", "solution", "reward", "reason"), BOXED)
def test_boxed(text, solution, reward, reason):
    assert one(BoxedReward(), text, solution=solution) == (reward, reason)


def test_a_gold_that_python_cannot_write_out_is_bad():
    assert one(BoxedReward(), r"\boxed{72}", solution=10**5000) == (None, "bad gold")


HUGE = 400_000


@pytest.mark.parametrize(
    "unit", ["<think>", "<answer>", "</think>\n", "\n", " <|im_end|>", "\\boxed{", "{", "<"]
)
def test_time_is_linear_in_the_text(unit):
    text = unit * (HUGE // len(unit))
    texts = [text, f"<think>\n{text}\n</think>\n<answer>\n2\n</answer>", rf"\boxed{{{text}"]
    with done_within(120):  # under one second; quadratic time would be far more
        for reward in (
            FormatReward(),
            FormatStrictReward(thinking_opened=True),
            TagCountReward(),
            BoxedReward(),
        ):
            reward(texts, **({"solution": ["2"] * 3} if reward.columns else {}))
