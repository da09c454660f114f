"""What every reward in the registry promises to the trainers that call it."""

import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from swift_rlvr.rewards import REWARDS, Reward, add_reward

# For each reward: columns of one row, a completion that earns most with them, one that earns less, and bad columns.
CASES = {
    "external_countdown": (
        {"nums": [1, 2, 3], "target": 6},
        "<think>1 + 2 + 3</think><answer>1 + 2 + 3 = 6</answer>",
        "<think>1 + 2 * 3</think><answer>1 + 2 * 3 = 6</answer>",
        {"nums": [1, None], "target": 6},
    ),
}
HUGE = 1_000_000
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
    columns, good, bad, bad_columns = CASES[request.param]
    return REWARDS[request.param](), columns, good, bad, bad_columns


def repeat(columns: dict, count: int) -> dict:
    return {name: [value] * count for name, value in columns.items()}


def test_every_reward_has_a_case():
    assert set(CASES) == set(REWARDS)


def test_order_and_length_are_kept(case):
    reward, columns, good, bad, _ = case
    assert reward([good, bad, bad, good], **repeat(columns, 4)) == [1.0, 0.0, 0.0, 1.0]
    assert reward([], **repeat(columns, 0)) == []
    assert all(type(value) is float for value in reward([good, bad], **repeat(columns, 2)))


def test_both_completion_shapes(case):
    reward, columns, good, bad, _ = case
    messages = [[{"role": "assistant", "content": text}] for text in (good, bad)]
    assert reward(messages, **repeat(columns, 2)) == [1.0, 0.0]
    parts = [{"role": "assistant", "content": [{"type": "text", "text": good}]}]
    assert reward([parts, bad], **repeat(columns, 2)) == [1.0, 0.0]


def test_bad_gold_is_none_and_does_not_touch_its_neighbours(case):
    reward, columns, good, bad, bad_columns = case
    rows = {name: [columns[name], bad_columns[name], columns[name]] for name in columns}
    assert reward([good, good, bad], **rows) == [1.0, None, 0.0]
    assert reward([good], **repeat(dict.fromkeys(columns), 1)) == [None]


def test_a_missing_column_is_named(case):
    reward, columns, good, *_ = case
    for name in columns:
        others = {other: [value] for other, value in columns.items() if other != name}
        with pytest.raises(ValueError, match=f"{type(reward).__name__} needs the dataset column '{name}'") as error:
            reward([good], **others, solution=["x"])
        assert all(repr(present) in str(error.value) for present in [*others, "solution"])
    with pytest.raises(ValueError, match="columns present are none"):
        reward([good])


def test_a_column_of_another_length_is_refused(case):
    reward, columns, good, *_ = case
    for name, value in columns.items():
        with pytest.raises(ValueError, match=f"column '{name}' .* holds 1 for 2 completions"):
            reward([good, good], **repeat(columns, 2) | {name: [value]})


def test_other_columns_are_ignored(case):
    reward, columns, good, *_ = case
    extra = {"solution": ["x"], "trainer_state": object(), "finish_reason": [None], "prompts": None}
    assert reward([good], **repeat(columns, 1), **extra) == [1.0]


def test_what_a_model_writes_never_raises(case):
    reward, columns, *_ = case
    assert reward(GARBAGE, **repeat(columns, len(GARBAGE))) == [0.0] * len(GARBAGE)


def test_built_as_the_trainers_build_it(case):
    """ms-swift: cls(args=args). TRL: any callable with a __name__."""
    reward = case[0]
    assert type(reward)(args=object()).__name__ == type(reward).__name__
    pickle.dumps(type(reward)(args=lambda: None))  # training arguments do not pickle, and are not kept


def test_same_again_pickled_in_threads_and_in_another_process(case):
    reward, columns, good, bad, _ = case
    completions, rows = [good, bad] * 20, repeat(columns, 40)
    expected = [1.0, 0.0] * 20
    assert reward(completions, **rows) == reward(completions, **rows) == expected
    assert pickle.loads(pickle.dumps(reward))(completions, **rows) == expected
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: reward(completions, **rows), range(8))) == [expected] * 8
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(reward, (completions,), rows) == expected


def test_bad_parameters_raise_when_it_is_built():
    countdown = REWARDS["external_countdown"]
    with pytest.raises(ValueError, match="notation must be 'lenient' or 'strict', not 'loose'"):
        countdown(notation="loose")
    with pytest.raises(TypeError, match="notatoin"):
        countdown(notatoin="strict")
    row = {"nums": [[1, 2]], "target": [2]}
    assert countdown(notation="strict")(["<answer>1 × 2</answer>"], **row) == [0.0]
    assert countdown(notation="lenient")(["<answer>1 × 2</answer>"], **row) == [1.0]


def test_the_registry_refuses_duplicates():
    before = dict(REWARDS)

    class Other(Reward):
        pass

    with pytest.raises(ValueError, match="'external_countdown' is taken by CountdownReward"):
        add_reward("external_countdown", Other)
    with pytest.raises(ValueError, match="must begin with 'external_'"):
        add_reward("format", Other)
    with pytest.raises(ValueError, match="class name 'CountdownReward' is taken"):
        add_reward("external_countdown_strict", type("CountdownReward", (Reward,), {}))
    assert before == REWARDS
