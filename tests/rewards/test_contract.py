"""What every reward in the registry promises to the trainers that call it."""

import math
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
from swift_rlvr.rewards import REWARDS, Reward, add_reward

HUGE = 1_000_000


class Case(NamedTuple):
    """What a reward's contract is tested with."""

    columns: dict
    """The columns of one row, the gold among them."""
    good: str
    """A completion that earns the most with them."""
    most: float
    bad: str
    """One that earns less."""
    less: float
    bad_columns: dict = {}
    """Columns with a gold that cannot be read; empty where there is no gold."""
    worst: float = 0.0
    """What garbage earns at most, where that is not what `bad` earns."""


THOUGHT = (
    "<think>\nFirst, add the numbers.\nNext, compare them.\nFinally, check the sum.\n</think>\n<answer>\n%s\n</answer>"
)
CASES = {
    "external_countdown": Case(
        {"nums": [1, 2, 3], "target": 6}, THOUGHT % "1 + 2 + 3 = 6", 1.0, THOUGHT % "1 + 2 * 3 = 6", 0.0,
        {"nums": [1, None], "target": 6},
    ),
    "external_accuracy": Case(
        {"solution": r"So it is $\boxed{\frac{1}{2}}$."}, THOUGHT % "0.5", 1.0, THOUGHT % "0.6", 0.0, {"solution": "$$"}
    ),
    "external_code": Case(
        {"tests": ["assert add(1, 2) == 3"]}, "<answer>def add(a, b): return a + b</answer>", 1.0,
        "<answer>def add(a, b): return a - b</answer>", 0.0, {"tests": "assert ("},
    ),
    "external_cosine": Case(
        {"solution": "7", "response_token_ids": [5, 6]}, THOUGHT % "7", 0.8 + 0.1 * (1 + math.cos(math.pi * 0.002)),
        THOUGHT % "8", -0.1 - 0.2 * (1 + math.cos(math.pi * 0.002)), {"solution": None, "response_token_ids": [5, 6]},
    ),
    "external_format": Case({}, THOUGHT % "7", 1.0, "<answer>7</answer>", 0.0),
    "external_format_strict": Case({}, THOUGHT % "7", 1.0, "<think>a</think><answer>7</answer>", 0.0),
    "external_tag_count": Case({}, THOUGHT % "7", 1.0, "7", 0.0),
    "external_boxed": Case({"solution": "7 a"}, r"\boxed{7a}", 1.0, r"\boxed{8}", 0.0, {"solution": None}),
    "external_reasoning_steps": Case({}, THOUGHT % "7", 1.0, "<think>so it is</think>", 0.0),
    "external_language_consistency": Case(
        {"language": "en"}, THOUGHT % "7", 1.0, "<think>因为三加四等于七</think>", 0.0, {"language": "klingon"}
    ),
    "external_repetition_penalty": Case(
        {}, "no three words of this text are found again in it", 0.0, "a b c " * 2, -0.1 * (1 - 3 / 4), {}, 0.0
    ),
    "external_length": Case({}, "seven..", 7.0, "six...", 6.0, {}, 2.0 * HUGE),
    "external_soft_overlong": Case({"response_token_ids": [1] * 10}, "short", 0.0, "x" * 1024, -1.0, {}, 0.0),
}  # fmt: skip
GARBAGE = [
    "",
    None,
    3,
    [],
    {},
    [None],
    [{}],
    [{"role": "assistant", "content": None}],
    "\0\ud800\u200b",
    "</answer></think><answer>",
    "(" * HUGE,
    "<answer>" + "(" * HUGE + "</answer>",
    "<answer>" * (HUGE // 8),
    "<answer>" + "9" * HUGE + "</answer>",
    "<answer>" + "1+" * (HUGE // 2) + "1</answer>",
    "<answer>" + "\\frac{" * (HUGE // 6) + "</answer>",
    "<answer>" + "９" * HUGE + "</answer>",
]


@pytest.fixture(params=list(REWARDS))
def case(request):
    return REWARDS[request.param](), CASES[request.param]


def repeat(columns: dict, count: int) -> dict:
    return {name: [value] * count for name, value in columns.items()}


def rows(case: Case, completions: list) -> dict:
    """Columns for the completions. Token ids belong to a completion: `bad` has one for each of its characters."""
    columns = repeat(case.columns, len(completions))
    if "response_token_ids" in columns and case.less == -1.0:
        columns["response_token_ids"] = [
            list(range(len(text))) if text == case.bad else case.columns["response_token_ids"] for text in completions
        ]
    return columns


def test_every_reward_has_a_case():
    assert set(CASES) == set(REWARDS)


def test_order_and_length_are_kept(case):
    reward, case = case
    completions = [case.good, case.bad, case.bad, case.good]
    assert reward(completions, **rows(case, completions)) == pytest.approx([case.most, case.less, case.less, case.most])
    assert reward([], **repeat(case.columns, 0)) == []
    assert all(type(value) is float for value in reward(completions, **rows(case, completions)))
    assert case.most > case.less


def test_both_completion_shapes(case):
    reward, case = case
    expected = reward([case.good, case.bad], **rows(case, [case.good, case.bad]))
    messages = [[{"role": "assistant", "content": text}] for text in (case.good, case.bad)]
    assert reward(messages, **rows(case, [case.good, case.bad])) == expected
    parts = [{"role": "assistant", "content": [{"type": "text", "text": case.good}]}]
    assert reward([parts, case.bad], **rows(case, [case.good, case.bad])) == expected


@pytest.mark.parametrize("case", [name for name, case in CASES.items() if case.bad_columns], indirect=True)
def test_bad_gold_is_none_and_does_not_touch_its_neighbours(case):
    reward, case = case
    columns = {name: [case.columns[name], case.bad_columns[name], case.columns[name]] for name in case.columns}
    assert reward([case.good, case.good, case.bad], **columns) == pytest.approx([case.most, None, case.less])
    if reward.columns:
        assert reward([case.good], **repeat(dict.fromkeys(case.columns), 1)) == [None]


def test_a_missing_column_is_named(case):
    reward, case = case
    for name in reward.columns:
        others = {other: [value] for other, value in case.columns.items() if other != name}
        with pytest.raises(ValueError, match=f"{type(reward).__name__} needs the dataset column '{name}'") as error:
            reward([case.good], **others, other=["x"])
        assert all(repr(present) in str(error.value) for present in [*others, "other"])
        with pytest.raises(ValueError, match="columns present are none"):
            reward([case.good])


def test_a_column_of_another_length_is_refused(case):
    reward, case = case
    for name, value in case.columns.items():
        with pytest.raises(ValueError, match=f"column '{name}' .* holds 1 for 2 completions"):
            reward([case.good, case.good], **repeat(case.columns, 2) | {name: [value]})


@pytest.mark.parametrize("value", ["42", b"42", {"a": 1}, 42], ids=repr)
def test_what_is_no_list_is_refused(case, value):
    reward, case = case
    for name in reward.columns:
        with pytest.raises(ValueError, match=f"{type(reward).__name__}: '{name}' must be a list of one value per"):
            reward([case.good], **repeat(case.columns, 1) | {name: value})
    with pytest.raises(ValueError, match="'completions' must be a list"):
        reward(value, **repeat(case.columns, 2))
    with pytest.raises(ValueError, match="'task' must be a list"):
        type(reward)(tasks="mine")([case.good], **repeat(case.columns, 1), task=value)


def test_other_columns_are_ignored(case):
    reward, case = case
    extra = {"answer": ["x"], "trainer_state": object(), "finish_reason": [None], "prompts": None, "task": [None]}
    assert reward([case.good], **repeat(case.columns, 1), **extra) == pytest.approx([case.most])


def test_rows_of_another_task_are_not_graded(case):
    reward, case = case
    reward = type(reward)(tasks=("mine", "ours"))
    completions = [case.bad, case.good, case.good, case.bad]
    graded = reward(completions, **rows(case, completions), task=["mine", "theirs", None, "ours"])
    assert graded == pytest.approx([case.less, None, case.most, case.less])
    if reward.columns:  # a row of another task need not have the columns filled
        empty = repeat(dict.fromkeys(case.columns), 1)
        assert reward.grades([case.good], **empty, task=["theirs"]) == [(None, "other task")]


def test_what_a_model_writes_never_raises_and_never_pays(case):
    reward, case = case
    columns = repeat(case.columns, len(GARBAGE))
    for value in reward(GARBAGE, **columns):
        assert value is not None and value <= max(case.less, case.worst)


def test_every_reason_is_one_of_its_reasons(case):
    reward, case = case
    grades = reward.grades(GARBAGE, **repeat(case.columns, len(GARBAGE)))
    grades += reward.grades([case.good, case.bad], **rows(case, [case.good, case.bad]))
    assert {grade.reason for grade in grades} <= set(reward.reasons)
    assert all(0 < len(reason) <= 40 for reason in reward.reasons)


def test_the_explanation_agrees_with_the_reward(case):
    reward, case = case
    for text in (case.good, case.bad, "", "<answer>", None):
        columns = rows(case, [text])
        explanation = reward.explain(text, {name: value for name, (value,) in columns.items()})
        assert [(explanation.reward, explanation.reason)] == reward.grades([text], **columns)
        assert explanation.rules
    row = {**case.columns, "task": "theirs"}
    assert type(reward)(tasks=("mine",)).explain(case.good, row).reason == "other task"


def test_built_as_the_trainers_build_it(case):
    """ms-swift: cls(args=args). TRL: any callable with a __name__."""
    reward = case[0]
    assert type(reward)(args=object()).__name__ == type(reward).__name__
    pickle.dumps(type(reward)(args=lambda: None))  # training arguments do not pickle, and are not kept


def test_same_again_pickled_in_threads_and_in_another_process(case):
    reward, case = case
    completions = [case.good, case.bad] * 20
    columns, expected = rows(case, completions), [case.most, case.less] * 20
    first = reward(completions, **columns)
    assert first == pytest.approx(expected)
    assert reward(completions, **columns) == first
    assert pickle.loads(pickle.dumps(reward))(completions, **columns) == first
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: reward(completions, **columns), range(8))) == [first] * 8
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(reward, (completions,), columns) == first


def test_parameters_from_the_environment_reach_every_reward(case, monkeypatch):
    reward, case = case
    monkeypatch.setenv(f"{reward.name.upper()}_TASKS", "mine")
    assert type(reward)()([case.good], **repeat(case.columns, 1), task=["theirs"]) == [None]
    monkeypatch.setenv(f"{reward.name.upper()}_TASK", "mine")
    with pytest.raises(ValueError, match=f"{reward.name.upper()}_TASK is set, and {reward.name} has no such parameter"):
        type(reward)()


def test_bad_parameters_raise_when_it_is_built():
    countdown = REWARDS["external_countdown"]
    with pytest.raises(ValueError, match="notation must be 'lenient' or 'strict', not 'loose'"):
        countdown(notation="loose")
    with pytest.raises(TypeError, match="notatoin"):
        countdown(notatoin="strict")
    row = {"nums": [[1, 2]], "target": [2]}
    assert countdown(notation="strict")(["<answer>1 × 2</answer>"], **row) == [0.0]
    assert countdown(notation="lenient")(["<answer>1 × 2</answer>"], **row) == [1.0]


def test_the_registry_knows_short_names():
    assert REWARDS["accuracy"] is REWARDS["external_accuracy"] is REWARDS.get("accuracy")
    assert "accuracy" in REWARDS and "external_accuracy" in REWARDS
    assert "luck" not in REWARDS and REWARDS.get("luck") is None
    with pytest.raises(KeyError, match="^'luck'$"):
        REWARDS["luck"]
    assert list(REWARDS) == [reward.name for reward in REWARDS.values()] == list(dict(REWARDS))
    assert len(REWARDS) == len(list(REWARDS))


def test_the_registry_refuses_duplicates():
    before = dict(REWARDS)

    def reward(class_name: str, name: str, reasons: tuple = ("right",)) -> type[Reward]:
        return type(class_name, (Reward,), {"name": name, "reasons": reasons})

    with pytest.raises(ValueError, match="'external_countdown' is taken by CountdownReward"):
        add_reward(reward("Other", "external_countdown"))
    with pytest.raises(ValueError, match="must begin with 'external_'"):
        add_reward(reward("Other", "format"))
    with pytest.raises(ValueError, match="class name 'CountdownReward' is taken"):
        add_reward(reward("CountdownReward", "external_other"))
    with pytest.raises(ValueError, match="must name every reason"):
        add_reward(reward("Other", "external_other", ()))
    assert before == REWARDS
