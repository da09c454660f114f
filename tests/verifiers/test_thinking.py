"""What of a completion is thinking, for every family of delimiters, wherever its prompt ended."""

import pytest

from swift_rlvr.verifiers.thinking import (
    DELIMITERS,
    after_thinking,
    is_thinking,
    opens_thinking,
    reasoning,
    with_opening,
    without_end_tokens,
)

FAMILIES = pytest.mark.parametrize(("opening", "closing"), DELIMITERS)


@FAMILIES
def test_what_follows_the_last_closing_delimiter_is_the_answer(opening, closing):
    text = f"{opening}1{closing}2"
    assert (after_thinking(text), reasoning(text)) == ("2", "1")
    # the prompt has the opening one
    assert (after_thinking(f"1{closing}2"), reasoning(f"1{closing}2")) == ("2", "1")
    assert after_thinking(f"1{closing}2", opened=True) == "2"
    assert after_thinking(f"{text}{opening}3{closing}4") == "4"


@FAMILIES
def test_thinking_that_is_never_closed_has_no_answer(opening, closing):
    assert after_thinking(f"{opening}1") == ""
    assert after_thinking(f"0{opening}1") == "0"
    assert after_thinking(f"{opening}1{closing}2{opening}3") == "2"
    assert reasoning(f"{opening}1") == "1"


@FAMILIES
def test_a_prompt_that_ends_with_an_opening_delimiter_opens_the_thinking(opening, closing):
    assert opens_thinking(f"assistant\n{opening}\n")
    assert opens_thinking(opening)
    assert not opens_thinking(f"Think in {opening} and {closing}.\nassistant\n")
    # a template with the thinking switched off
    assert not opens_thinking(f"assistant\n{opening}\n\n{closing}\n\n")


@FAMILIES
def test_the_opening_delimiter_of_the_prompt_is_put_back(opening, closing):
    text = f"1{closing}2"
    whole = with_opening(text, True)
    assert whole.startswith(opening)
    assert (after_thinking(whole), reasoning(whole).strip()) == ("2", "1")
    assert with_opening(whole, True) == whole
    assert with_opening(text, False) == text


ANALYSIS = "<|channel|>analysis<|message|>We add.<|end|><|start|>assistant"
TEXTS = [
    # (text, after the thinking, the thinking)
    ("", "", ""),
    ("1", "1", "1"),
    ("</think>", "", ""),
    ("1</think>2<think>3</think>4", "4", "3"),
    # families mixed: the last closing delimiter of any
    ("<think>1</think>2[/THINK]3", "3", "1</think>2"),
    ("[THINK]<think>1</think>2[/THINK]3", "3", "<think>1</think>2"),
    # gpt-oss, with its special tokens and decoded without them
    (
        f"{ANALYSIS}<|channel|>final<|message|>It is 7.<|return|>",
        "It is 7.<|return|>",
        "We add.<|end|><|start|>assistant",
    ),
    ("analysisWe add.assistantfinalIt is 7.", "It is 7.", "We add."),
    ("analysisWe add. \\boxed{7}", "", "We add. \\boxed{7}"),
    ("analysis用户问。assistantfinal是7。", "是7。", "用户问。"),
    ("analysis of 7", "analysis of 7", "analysis of 7"),
    # a call ends its thinking, too
    (
        f"{ANALYSIS}<|channel|>commentary to=functions.f <|constrain|>json<|message|>{{}}<|call|>",
        "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>",
        "We add.",
    ),
    (
        "analysisWe add.assistantcommentary to=functions.f json{}",
        "commentary to=functions.f json{}",
        "We add.",
    ),
    ("analysisWe add to=functions.f json{}", "", "We add to=functions.f json{}"),
    (
        f"{ANALYSIS}<|channel|>commentary<|message|>7",
        "",
        "We add.<|end|><|start|>assistant<|channel|>commentary<|message|>7",
    ),
    ("The assistantfinal is 7", "The assistantfinal is 7", "The assistantfinal is 7"),
    # no delimiter: other case, attributes, a part of a word
    ("<THINK>1</THINK>2", "<THINK>1</THINK>2", "<THINK>1</THINK>2"),
    ("[think]1[/think]2", "[think]1[/think]2", "[think]1[/think]2"),
    ("<think >1</think >2", "<think >1</think >2", "<think >1</think >2"),
]


@pytest.mark.parametrize(("text", "answer", "thinking"), TEXTS)
def test_texts(text, answer, thinking):
    assert after_thinking(text) == answer
    assert reasoning(text) == thinking
    # What goes on in a thinking is no answer.
    assert is_thinking(text) == (after_thinking(f"{text} 8") == "")


def test_opened_thinking_without_an_end_is_all_of_it():
    text = r"It is \boxed{7}, <answer>7</answer>, no: "
    assert after_thinking(text, opened=True) == ""
    assert reasoning(text, opened=True) == text.rstrip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [("7<|im_end|>\n<|endoftext|>", "7"), ("7</s>", "7"), ("a > b", "a > b"), ("<|im_end|>", "")],
)
def test_special_tokens_at_the_end(text, expected):
    assert without_end_tokens(text) == expected


@pytest.mark.parametrize("piece", ["<", "|", "[", "</", "◁", "<think", "[/THINK"])
def test_a_million_unfinished_delimiters_are_text(piece):
    """Quadratic time would take hours."""
    text = piece * 1_000_000
    assert after_thinking(text) == reasoning(text) == text


@FAMILIES
def test_a_hundred_thousand_delimiters(opening, closing):
    assert after_thinking(opening * 100_000) == ""
    assert after_thinking(closing * 100_000) == ""
