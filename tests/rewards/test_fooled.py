"""The table "What a policy can exploit" in docs/rewards/index.md: each row earns, and what the table
says stops it does.
"""

import re

import pytest

from paths import ROOT
from present import all_present, present
from swift_rlvr.rewards import REWARDS

PAGE = (ROOT / "docs" / "rewards" / "index.md").read_text(encoding="utf-8")
LAID_OUT = "<think>\nx\n</think>\n<answer>\nx\n</answer>"
RIGHT = "<think>\n3 + 4 = 7, by adding.\n</think>\n<answer>\n7\n</answer>"
STEPS = "<think>\n- a\n- b\n- c\n</think><answer>x</answer>"
WAITS = [
    "wait 1 wait 2 wait 3 wait 4 wait 5 wait 6",
    "waita waitb waitc waitd waite waitf",
]
# (reward, parameters, columns, text, what it earns without a gate)
SHAPING = [
    ("format", {}, {}, "<think>x</think><answer>x</answer>", 1.0),
    ("format_strict", {}, {}, LAID_OUT, 1.0),
    ("tag_count", {}, {}, "<think>\n\n</think>\n\n<answer>\n\n</answer>", 1.0),
    ("tag_count", {}, {}, LAID_OUT, 1.0),
    ("language_consistency", {}, {}, "<think>Xaqezt borfal</think><answer>x</answer>", 1.0),
    ("language_consistency", {}, {}, "<think>Wir addieren sie.</think><answer>x</answer>", 1.0),
    ("language_consistency", {}, {}, "<think>We add.</think>", 1.0),
    ("language_consistency", {"language": "zh"}, {}, "<think>相加 `We add them`</think>", 1.0),
    *(("repetition_penalty", {}, {}, text, 0.0) for text in WAITS),
    (
        "repetition_penalty",
        {"unit": "tokens"},
        {"response_token_ids": [[9, 1, 9, 2, 9, 3, 9, 4]]},
        "wait1 wait2 wait3 wait4",
        0.0,
    ),
    ("reasoning_steps", {}, {}, STEPS, 1.0),
    ("length", {"max_length": 100}, {}, "x" * 100, 100.0),
    ("soft_overlong", {}, {}, "x", 0.0),
]


@pytest.mark.parametrize(("name", "parameters", "columns", "text", "earned"), SHAPING)
def test_the_gate_closes_what_a_shaping_reward_can_be_fooled_by(
    name, parameters, columns, text, earned
):
    assert REWARDS[name](**parameters)([text], **columns) == [earned]
    gated = REWARDS[name](gate="outcome", **parameters)
    assert gated([text], solution=["7"], **columns) == [0.0]
    # A right answer gets it, or what it has above the least.
    assert present(gated([RIGHT], solution=["7"], **columns)[0]) >= 0


def test_a_longer_wrong_answer_earns_more_of_the_cosine():
    texts = ["<answer>1</answer>", "<answer>1</answer>".rjust(500)]
    short, long = all_present(REWARDS["cosine"]()(texts, solution=["7"] * 2))
    assert short < long < 0
    assert REWARDS["cosine"](gate="outcome")(texts, solution=["7"] * 2) == [0.0, 0.0]


@pytest.mark.parametrize(
    ("name", "parameters", "columns", "answer", "closed"),
    [
        # (reward, what closes it, columns, the answer, what it earns then)
        ("exact_match", {"literal": True}, {"accepted_answers": "[0, 1]"}, "(0, 1)", 0.0),
        ("exact_match", {"literal": True}, {"accepted_answers": "a"}, "A", 0.0),
        ("exact_match", {"literal": True}, {"accepted_answers": "'a'"}, '"a"', 1.0),
    ],
)
def test_parameters_close_what_verifiers_can_be_fooled_by(
    name, parameters, columns, answer, closed
):
    texts = [f"<answer>{answer}</answer>"]
    columns = {column: [value] for column, value in columns.items()}
    assert REWARDS[name]()(texts, **columns) == [1.0]
    assert REWARDS[name](**parameters)(texts, **columns) == [closed]


def test_the_table_names_every_reward_but_those_that_are_exact():
    (table,) = re.findall(r"\| reward \| what a policy can do \|.*?\n\n", PAGE, re.DOTALL)
    named = set(re.findall(r"`(external_\w+)` *[,|]", table))
    assert named | {
        "external_countdown",  # compares exactly
        "external_boxed",  # compares texts
        "external_random",  # pays by chance, and is there for that
        "external_soft_overlong",  # pays for being short alone
    } == set(REWARDS)
