"""A prompt that opens the thinking: whoever calls a reward, a completion that was cut off in its
thinking has no answer.
"""

import pytest

from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.build import columns_for

CUT_OFF = r"It is \boxed{7}, or <answer>7</answer>, or" + "\n#### 7\nThe answer is 7"
CLOSED = "3 + 4</think>\n<answer>7</answer>"
USER = {"role": "user", "content": "3 + 4?"}
PREFILLED = [USER, {"role": "assistant", "content": "<think>\n"}]
ASKED = [{"role": "user", "content": "3 + 4?\n<think>"}]
# What says that the thinking is open: ms-swift, TRL, and those who render the prompt themselves.
SAID = [
    {"prompts": "3 + 4?<|im_end|><|im_start|>assistant\n<think>\n"},
    {"prompts": PREFILLED},
    {"prompts": ASKED},
    {"messages": [*ASKED, {"role": "assistant", "content": CUT_OFF}]},
    {"messages": ASKED},
    {"thinking_opened": True},
]
NOT_SAID = [
    {},
    {"prompts": "Use <think> </think> tags."},
    {"prompts": [USER], "messages": [USER, {"role": "assistant", "content": "<think>"}]},
    {"prompts": "<think>\n\n</think>\n\n"},
    {"thinking_opened": None},
    {"thinking_opened": False},
]
ROWS = {
    "accuracy": {"solution": "7"},
    "boxed": {"solution": "7"},
    "exact_match": {"accepted_answers": ["7"]},
}


def columns(row):
    return {name: [value] for name, value in row.items()}


@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("name", ROWS)
def test_what_was_cut_off_in_its_thinking_earns_nothing(name, said):
    reward = REWARDS[name]()
    row = ROWS[name] | said
    assert reward([CUT_OFF], **columns(row)) == [0.0]
    assert reward.explain(CUT_OFF, row).reward == 0.0
    # the columns that evaluations and comparisons pass on
    assert reward([CUT_OFF], **columns_for(reward, [row])) == [0.0]
    messages = [{"role": "assistant", "content": CUT_OFF}]
    assert reward([messages], **columns(row)) == [0.0]


@pytest.mark.parametrize("said", SAID)
def test_what_closes_it_is_right_and_well_formed(said):
    row = {"solution": "7"} | said
    for name in ("accuracy", "format"):
        assert REWARDS[name]()([CLOSED], **columns(row)) == [1.0]


@pytest.mark.parametrize("said", NOT_SAID)
def test_other_prompts_open_nothing(said):
    row = {"solution": "7"} | said
    assert REWARDS["accuracy"]()([r"\boxed{7}"], **columns(row)) == [1.0]
    assert REWARDS["format"]()([CLOSED], **columns(row)) == [0.0]


def test_a_parameter_says_it_for_all_rows(monkeypatch):
    assert REWARDS["accuracy"](thinking_opened=True)([CUT_OFF], solution=["7"]) == [0.0]
    monkeypatch.setenv("EXTERNAL_ACCURACY_THINKING_OPENED", "true")
    assert REWARDS["accuracy"]()([CUT_OFF, CLOSED], solution=["7"] * 2) == [0.0, 1.0]


def test_columns_of_other_trainers_are_ignored_and_ours_is_checked():
    reward = REWARDS["boxed"]()
    for prompts in ("<think>", ["<think>"] * 2, {"a": 1}, 7):
        assert reward([r"\boxed{7}"], solution=["7"], messages=None, **{"prompts": prompts}) == [
            1.0
        ]
    with pytest.raises(ValueError, match="'thinking_opened' must hold one value per completion"):
        reward([r"\boxed{7}"], solution=["7"], thinking_opened=[True, True])


def test_each_row_says_it_for_itself():
    reward = REWARDS["accuracy"]()
    texts = [r"\boxed{7}"] * 3
    assert reward(texts, solution=["7"] * 3, thinking_opened=[True, False, None]) == [0.0, 1.0, 1.0]


def test_a_gate_asks_its_verifier_the_same_question():
    reward = REWARDS["reasoning_steps"](gate="outcome")
    text = "First, add. Second, double. Finally, halve. " + CUT_OFF
    row = {"solution": ["7"]}
    assert reward([text], **row, thinking_opened=[True]) == [0.0]
    assert reward([text], **row) == [1.0]
