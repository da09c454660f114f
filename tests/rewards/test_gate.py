"""The outcome gate: what right, wrong and ungraded completions earn, and that a wrong one never
earns more.

How the estimators of ms-swift and TRL take these values: tests/training/test_advantages.py.
"""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from present import all_present, present
from swift_rlvr.rewards import REWARDS, Grade
from swift_rlvr.rewards.base import OTHER_TASK
from swift_rlvr.rewards.countdown import CountdownReward
from swift_rlvr.rewards.gate import GATE_REASONS, ShapingReward
from swift_rlvr.utils.errors import InputError

SHAPING = sorted(name for name, reward in REWARDS.items() if issubclass(reward, ShapingReward))
WITH_COSINE = [*SHAPING, "external_cosine"]
RIGHT, WRONG = (
    "<think>\n{}\n</think>\n<answer>\n1+2\n</answer>",
    "<think>\n{}\n</think>\n<answer>\n1-2\n</answer>",
)
THOUGHTS = (
    "",
    "First, add them.",
    "add add add add add add",
    "Step 1: add.\nStep 2: look.\nStep 3: end.",
    "x " * 400,
)
PENALTY_OF: dict[str, dict] = {
    "external_length": {"scale": -0.01, "max_length": 500},
    "external_soft_overlong": {"max_length": 300},
}


def gated(name: str, **parameters) -> ShapingReward:
    return shaping(
        name,
        gate="outcome",
        accuracy="external_countdown",
        **{**PENALTY_OF.get(name, {}), **parameters},
    )


def shaping(name: str, **parameters) -> ShapingReward:
    reward = REWARDS[name](**parameters)
    assert isinstance(reward, ShapingReward)
    return reward


def columns(count: int, **more) -> dict:
    return {"nums": [[1, 2]] * count, "target": [3] * count, **more}


@pytest.mark.parametrize("name", SHAPING)
def test_a_right_answer_earns_what_is_above_the_least_and_a_wrong_one_nothing(name):
    reward, plain = gated(name), shaping(name, **PENALTY_OF.get(name, {}))
    texts = [RIGHT.format(thought) for thought in THOUGHTS]
    ungated = all_present(plain(texts))
    assert reward(texts, **columns(len(texts))) == [value - reward.least for value in ungated]
    assert min(ungated) >= reward.least == plain.least
    wrong = [WRONG.format(thought) for thought in THOUGHTS] + ["", "3", None]
    assert reward.grades(wrong, **columns(len(wrong))) == [(0.0, "not right")] * len(wrong)


@pytest.mark.parametrize(
    ("name", "worst"), [("length", -5.0), ("repetition_penalty", -0.1), ("soft_overlong", -1.0)]
)
def test_the_least_of_a_penalty_is_its_worst(name, worst):
    assert gated(f"external_{name}").least == worst


def test_cosine_with_a_gate_pays_a_wrong_answer_nothing_at_any_length():
    reward = REWARDS["cosine"](
        gate="outcome", accuracy="external_countdown", max_len=100, unit="characters"
    )
    texts = [
        "<answer>1+2</answer>",
        "<answer>1+2</answer>".rjust(100),
        "<answer>1-2</answer>",
        "x" * 200,
    ]
    assert reward(texts, **columns(4))[1:] == [0.8, 0.0, 0.0]
    assert 0.8 < present(reward(texts, **columns(4))[0]) <= 1.0
    with pytest.raises(
        InputError,
        match="max_len_value_correct: must be more than 0, because a wrong answer earns 0 with a",
    ):
        REWARDS["cosine"](gate="outcome", max_len_value_correct=0.0)
    REWARDS["cosine"](gate="outcome", min_len_value_wrong=2.0)  # is not used


@pytest.mark.parametrize("name", WITH_COSINE)
def test_rows_that_cannot_be_judged_are_left_out_and_touch_no_neighbour(name):
    reward, text = gated(name), RIGHT.format("add")
    rows = {
        "nums": [[1, 2], None, [1, 2], [1, 2]],
        "target": [3, 3, 3, 3],
        "task": ["countdown"] * 3 + ["gsm8k"],
    }
    (alone,) = reward([text], **columns(1))
    grades = reward.grades([text, text, WRONG, text], **rows)
    assert [grade.reward for grade in grades] == [alone, None, 0.0, None]
    assert grades[1].reason == "not graded" and grades[3].reason == OTHER_TASK


def test_a_row_that_shaping_cannot_read_is_none_whatever_the_answer():
    reward = gated("external_language_consistency")
    texts = [RIGHT.format("add"), WRONG.format("add")]
    assert (
        reward.grades(texts, **columns(2, language=["klingon"] * 2))
        == [(None, "unknown language")] * 2
    )


class Half(CountdownReward):
    name = "external_half"

    def grade_batch(self, texts, columns):
        return [
            Grade({1.0: 1.0, 0.0: 0.5}[present(reward)], reason)
            for reward, reason in super().grade_batch(texts, columns)
        ]


def test_only_a_full_reward_opens_the_gate(monkeypatch):
    monkeypatch.setitem(REWARDS, "external_half", Half)
    reward = REWARDS["format"](gate="outcome", accuracy="external_half")
    assert reward([RIGHT.format("a"), WRONG.format("a")], **columns(2)) == [1.0, 0.0]


@pytest.mark.parametrize("name", SHAPING)
def test_contract_of_a_gated_reward(name):
    reward = gated(name)
    assert set(GATE_REASONS) < set(reward.reasons) and not set(GATE_REASONS) & set(
        REWARDS[name].reasons
    )
    texts = [RIGHT.format("add"), WRONG.format("add")] * 3
    expected = reward(texts, **columns(6))
    assert (
        reward([[{"role": "assistant", "content": text}] for text in texts], **columns(6))
        == expected
    )
    assert pickle.loads(pickle.dumps(reward))(texts, **columns(6)) == expected
    assert reward([], **columns(0)) == []
    assert (
        REWARDS[name]().columns == ()
        and reward.columns == ("nums", "target")
        and reward.own_tasks == ("countdown",)
    )
    with pytest.raises(ValueError, match="needs the dataset column 'target'"):
        reward(texts, nums=[[1, 2]] * 6)
    own = gated(name, tasks=("mine",))
    assert own(texts, **columns(6), task=["countdown"] * 6) == [None] * 6


@pytest.mark.parametrize("name", ["external_format", "external_cosine"])
def test_the_verifier_reads_its_own_parameters(name, monkeypatch):
    text, row = RIGHT.format("a").replace("1+2", "1 × 3"), {"nums": [[1, 3]], "target": [3]}
    (lenient,) = gated(name)([text], **row)
    monkeypatch.setenv("EXTERNAL_COUNTDOWN_NOTATION", "strict")
    assert gated(name)([text], **row) == [0.0] and present(lenient) > 0


@pytest.mark.parametrize("name", WITH_COSINE)
def test_explanations_agree_with_grades_and_say_who_judged(name):
    reward = gated(name)
    for text in (RIGHT.format("add"), WRONG.format("add"), "", None):
        for nums in ([1, 2], None):
            explanation = reward.explain(text, {"nums": nums, "target": 3})
            assert [explanation[:2]] == reward.grades([text], nums=[nums], target=[3])
            assert explanation.reason in reward.reasons
            assert any("external_countdown" in rule.detail for rule in explanation.rules)


@pytest.mark.parametrize("name", WITH_COSINE)
def test_bad_parameters_name_what_is_accepted(name, monkeypatch):
    for accuracy in (name, "external_format", "countdown", "external_luck"):
        verifiers = sorted(each for each, reward in REWARDS.items() if reward.role == "verifier")
        accepted = f"must be one of {', '.join(verifiers)}, got"
        with pytest.raises(InputError, match=accepted):
            REWARDS[name](gate="outcome", accuracy=accuracy)
    monkeypatch.setenv(f"{name.upper()}_GATE", "outcom")
    with pytest.raises(
        InputError, match=f"{name.upper()}_GATE: must be one of none, outcome, got 'outcom'"
    ):
        REWARDS[name]()


def test_a_penalty_without_an_end_cannot_be_gated():
    with pytest.raises(
        InputError,
        match="max_length: must be more than 0 if there is a gate and scale is negative, got 0",
    ):
        REWARDS["length"](gate="outcome", scale=-1.0)
    assert shaping("length", gate="outcome", scale=1.0).least == 0.0
    assert REWARDS["length"](scale=-1.0)(["abc"]) == [-3.0]


# --- a wrong answer is never better than a right one

words = st.sampled_from(
    ["First,", "add", "the", "numbers", "low", "\n- ", "1.", "加", "Step 1:", "</think>", "<think>"]
)
texts = st.lists(words, max_size=60).map(" ".join)
weights = st.floats(0, 100)


def parameters_of(name: str) -> st.SearchStrategy[dict]:
    several: dict[str, dict] = {
        "external_length": {"scale": st.floats(-10, 10), "max_length": st.integers(1, 300)},
        "external_repetition_penalty": {
            "max_penalty": st.floats(-10, 0),
            "n_grams": st.integers(1, 4),
        },
        "external_soft_overlong": {"max_length": st.integers(1, 300)},
        "external_reasoning_steps": {"steps": st.integers(1, 5)},
    }
    return st.fixed_dictionaries(several.get(name, {}))


@pytest.mark.parametrize("name", SHAPING)
@settings(max_examples=60, deadline=None)
@given(data=st.data(), right=texts, wrong=texts, weight=weights)
def test_a_right_answer_earns_more_by_at_least_what_the_verifier_gives(
    name, data, right, wrong, weight
):
    """For all parameters of the shaping, whatever is written, and all weights that are not
    negative.
    """
    reward = gated(name, **data.draw(parameters_of(name)))
    completions = [f"{right}<answer>1+2</answer>", f"{wrong}<answer>1-2</answer>"]
    outcome = all_present(CountdownReward()(completions, **columns(2)))
    shaped = all_present(reward(completions, **columns(2)))
    assert outcome == [1.0, 0.0] and shaped[0] >= 0.0 == shaped[1]
    total = [each + weight * more for each, more in zip(outcome, shaped, strict=True)]
    assert total[0] >= total[1] + 1.0
