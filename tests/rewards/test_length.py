"""The rewards that look at how long a completion is and how often it repeats itself."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import done_within
from present import all_present, present
from swift_rlvr.rewards.base import OTHER_TASK, REWARDS
from swift_rlvr.rewards.cosine import CosineLengthReward
from swift_rlvr.rewards.language_consistency import LanguageConsistencyReward
from swift_rlvr.rewards.length import LengthReward, completion_length, token_ids
from swift_rlvr.rewards.reasoning_steps import ReasoningStepsReward
from swift_rlvr.rewards.repetition_penalty import RepetitionPenaltyReward, count_ngrams, words
from swift_rlvr.rewards.soft_overlong import SoftOverlongReward

NOT_TOKENS: list[Any] = [
    None,
    [],
    "12",
    3,
    [None],
    ["1"],
    [1, "2"],
    [True],
    [1.0],
    [[1], 2],
    [[[1]]],
    [[]],
    {},
    {1: 2},
    ...,
]
TOKENS = [  # (value of one column, number of tokens)
    ([1, 2, 3], 3),
    ((1, 2), 2),
    ([[1, 2], [3]], 3),
    ([[1, 2], []], 2),
    ([(1, 2), [3, 4]], 4),
]


@pytest.mark.parametrize("value", NOT_TOKENS, ids=repr)
def test_what_holds_no_token_ids_is_passed_over(value):
    assert token_ids({"completion_ids": value}) is None
    assert completion_length("four", {"response_token_ids": value})[0] == 4
    assert (
        completion_length("four", {"response_token_ids": value, "completion_ids": [1, 2]})[0] == 2
    )
    assert (
        completion_length("four", {"response_token_ids": [1, 2], "completion_ids": value})[0] == 2
    )


@pytest.mark.parametrize("value, count", TOKENS)
def test_tokens_are_counted_over_all_turns(value, count):
    assert (
        completion_length("four", {"response_token_ids": value, "completion_ids": None})[0] == count
    )
    assert completion_length(None, {"completion_ids": value})[0] == count


def test_token_ids_that_are_whole_numbers_of_another_kind():
    numpy = pytest.importorskip("numpy")
    assert completion_length("four", {"completion_ids": list(numpy.arange(7))})[0] == 7


# --- length


@pytest.mark.parametrize(
    "parameters, text, tokens, expected",
    [
        ({}, "", None, 0.0),
        ({}, "five!", [1, 2], 5.0),  # characters, whatever the tokens
        ({}, "日本語", None, 3.0),
        ({"unit": "tokens"}, "five!", [1, 2], 2.0),
        ({"unit": "tokens"}, "five!", [[1, 2], [3]], 3.0),
        ({"unit": "tokens"}, "five!", None, 5.0),
        ({"scale": 0.5}, "five!", None, 2.5),
        ({"scale": -1}, "five!", None, -5.0),
        ({"max_length": 3}, "five!", None, 3.0),
        ({"max_length": 3, "scale": -2}, "five!", None, -6.0),
        ({"max_length": 3}, "ab", None, 2.0),
    ],
)
def test_length(parameters, text, tokens, expected):
    assert LengthReward(**parameters)([text], response_token_ids=[tokens]) == [expected]
    assert LengthReward(**parameters)([text], completion_ids=[tokens]) == [expected]


def test_length_of_nothing_is_zero_and_never_minus_zero():
    grades = LengthReward(scale=-1.0).grades([None, ""])
    assert grades == [(0.0, "no text"), (0.0, "length")]
    assert [math.copysign(1, present(grade.reward)) for grade in grades] == [1, 1]


# --- soft overlong


@pytest.mark.parametrize(
    "length, expected, reason",
    [
        (0, 0.0, "within the limit"),
        (80, 0.0, "within the limit"),
        (81, -0.05, "in the cache"),
        (90, -0.5, "in the cache"),
        (100, -1.0, "in the cache"),
        (101, -1.0, "beyond the limit"),
        (10_000, -1.0, "beyond the limit"),  # not below -1
    ],
)
def test_soft_overlong(length, expected, reason):
    reward = SoftOverlongReward(max_length=100, cache_length=20)
    assert reward.grades(["x" * length]) == [(expected, reason)]
    if length:
        assert reward.grades(["some text"], response_token_ids=[[1] * length]) == [
            (expected, reason)
        ]
        assert reward.grades([None], completion_ids=[[1] * length]) == [(expected, reason)]
    assert reward.grades([None]) == [(0.0, "no text")]


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 700))
def test_soft_overlong_never_rises_with_the_length(first, second, length):
    reward = SoftOverlongReward(max_length=max(first, second), cache_length=min(first, second))
    shorter, longer = (
        present(reward.grade("x" * count, {}).reward) for count in (length, length + 1)
    )
    assert -1 <= longer <= shorter <= 0


@pytest.mark.parametrize(
    "args, parameters, max_length, cache_length",
    [
        (None, {}, 1024, 204),
        (2000, {}, 2000, 400),
        (2000, {"max_length": 100}, 100, 20),
        (2000, {"cache_length": 100}, 2000, 100),
        (None, {"max_length": 3}, 3, 1),
        (None, {"max_length": 3, "cache_length": 3}, 3, 3),
    ],
)
def test_soft_overlong_takes_the_limit_of_the_training(args, parameters, max_length, cache_length):
    training = None if args is None else type("Arguments", (), {"max_completion_length": args})()
    given = SoftOverlongReward(training, **parameters).parameters
    assert (given.max_length, given.cache_length) == (max_length, cache_length)


# --- repetition penalty


@pytest.mark.parametrize(
    "text, expected",
    [
        ("It is a cat", ["it", "is", "a", "cat"]),
        ("  two\twords\n", ["two", "words"]),
        ("", []),
        ("我们走吧", ["我", "们", "走", "吧"]),
        ("x=5，所以 y=6", ["x=5", "，", "所", "以", "y=6"]),
        ("カタカナとひらがな", list("カタカナとひらがな")),
        ("ภาษาไทย", list("ภาษาไทย")),
        ("\U00020000\U00020001", ["\U00020000", "\U00020001"]),
        ("한국어는 띄어 씁니다", ["한국어는", "띄어", "씁니다"]),  # Korean has spaces
        ("\ud800 a", ["\ud800", "a"]),
        # counted words are the same word, variables and numbers are not
        ("wait1 wait2, wait-3 wait_4 wait5.", ["wait", "wait,", "wait", "wait", "wait."]),
        ("x1 x2 2x 3rd 12 1.5 H2O F16", ["x1", "x2", "2x", "3rd", "12", "1.5", "h2o", "f16"]),
        ("sin2x a_12 step1a total=24", ["sin2x", "a_12", "step1a", "total=24"]),
    ],
)
def test_words(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    "text, n, expected, reason",
    [
        ("", 3, 0.0, "too short"),
        ("two words", 3, 0.0, "too short"),
        ("just three words", 3, 0.0, "no repetition"),
        ("a b c a b c", 3, -0.1 * (1 - 3 / 4), "repetition"),
        ("a a a a a", 3, -0.1 * (1 - 1 / 3), "repetition"),
        ("A b C a B c", 3, -0.1 * (1 - 3 / 4), "repetition"),  # case does not hide it
        ("a a", 1, -0.1 * (1 - 1 / 2), "repetition"),
        ("wait1 wait2 wait3 wait4 wait5", 3, -0.1 * (1 - 1 / 3), "repetition"),
        ("x1 x2 x3 x4 x5", 3, 0.0, "no repetition"),
        ("好的好的好的", 2, -0.1 * (1 - 2 / 5), "repetition"),
        ("好的", 3, 0.0, "too short"),
    ],
)
def test_repetition_penalty(text, n, expected, reason):
    grade = RepetitionPenaltyReward(n_grams=n).grade(text, {})
    assert grade.reason == reason and grade.reward == pytest.approx(expected, abs=1e-15)
    assert math.copysign(1, present(grade.reward)) == (-1 if expected else 1)


def test_repetition_of_tokens():
    reward = RepetitionPenaltyReward(unit="tokens", n_grams=2, max_penalty=-1)
    columns = {"response_token_ids": [[1, 1, 1], [[1, 2], [1, 2]], [1], None, None]}
    texts = ["a b c d", "a b c d", "a b c d", "a a a", None]  # the last two have no tokens
    assert reward.grades(texts, **columns) == [
        (-0.5, "repetition"),
        (pytest.approx(-1 / 3), "repetition"),
        (0.0, "too short"),
        (-0.5, "repetition"),
        (0.0, "no text"),
    ]
    by_words = RepetitionPenaltyReward(n_grams=2).grade(
        "a b c d", {"response_token_ids": [1, 1, 1]}
    )
    assert (by_words.reward, by_words.reason) == (0.0, "no repetition")


@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 8))
def test_ngrams_are_counted_as_by_hand(units, n):
    by_hand = [tuple(units[start : start + n]) for start in range(len(units) - n + 1)]
    assert count_ngrams(units, n) == (len(set(by_hand)), len(by_hand))


@given(st.text(alphabet="ab 好", max_size=60), st.integers(1, 5))
def test_repetition_penalty_stays_between_the_worst_and_nothing(text, n):
    reward = RepetitionPenaltyReward(n_grams=n, max_penalty=-0.3).grade(text, {}).reward
    assert -0.3 < present(reward) <= 0


# --- cosine

RIGHT, WRONG = "<answer>1+2</answer>", "<answer>1-2</answer>"
ROW = {"nums": [[1, 2]], "target": [3]}


def cosine(**parameters) -> CosineLengthReward:
    return CosineLengthReward(accuracy="external_countdown", **parameters)


@pytest.mark.parametrize(
    "text, length, expected",
    [
        (RIGHT, 1, 1.0),
        (RIGHT, 250, 0.8 + 0.2 * (2 + math.sqrt(2)) / 4),
        (RIGHT, 500, 0.9),
        (RIGHT, 1000, 0.8),
        (RIGHT, 1500, 0.8),  # unclamped it would be 0.9 again, and 1.0 at 2000
        (RIGHT, 2000, 0.8),
        (WRONG, 1, -0.5),
        (WRONG, 500, -0.3),
        (WRONG, 1000, -0.1),
        (WRONG, 2000, -0.1),
    ],
)
def test_cosine_of_the_recipe(text, length, expected):
    for name in ("response_token_ids", "completion_ids"):
        assert cosine()([text], **ROW, **{name: [[7] * length]}) == [
            pytest.approx(expected, abs=1e-5)
        ]
    padded = text.rjust(length)
    if len(padded) == length:
        assert cosine()([padded], **ROW) == [pytest.approx(expected)]
        assert cosine(unit="characters")([padded], **ROW, completion_ids=[[7]]) == [
            pytest.approx(expected)
        ]


@given(st.integers(1, 3000), st.integers(0, 3000))
def test_cosine_right_is_better_short_wrong_is_better_long(length, more):
    reward = cosine()
    rewards = reward(
        [RIGHT, RIGHT, WRONG, WRONG],
        nums=[[1, 2]] * 4,
        target=[3] * 4,
        completion_ids=[[7] * length, [7] * (length + more)] * 2,
    )
    right, longer_right, wrong, longer_wrong = all_present(rewards)
    assert 1.0 >= right >= longer_right >= 0.8 and -0.5 <= wrong <= longer_wrong <= -0.1


def test_cosine_goes_where_its_accuracy_reward_goes():
    task = ["countdown", "math", None]
    rows = {"nums": [[1, 2]] * 3, "target": [3] * 3}
    grades = cosine(max_len=10).grades([RIGHT] * 3, task=task, **rows)
    assert grades == [(0.8, "right"), (None, OTHER_TASK), (0.8, "right")]
    assert cosine(max_len=10)([RIGHT] * 3, task=task, **rows) == [0.8, None, 0.8]
    assert cosine(max_len=10, tasks=("math",))([RIGHT] * 3, task=task, **rows) == [None, 0.8, 0.8]
    assert cosine().grades([RIGHT], nums=[[1, None]], target=[3]) == [(None, "not graded")]
    assert cosine(max_len=10).grades([None], **ROW) == [(-0.5, "wrong")]
    with pytest.raises(ValueError, match="CosineLengthReward needs the dataset column 'nums'"):
        cosine()([RIGHT], target=[3])


# --- all of them


@pytest.mark.parametrize(
    "kind, parameters, message",
    [
        (
            ReasoningStepsReward,
            {"steps": 0},
            "external_reasoning_steps: steps: must be at least 1, got 0",
        ),
        (LanguageConsistencyReward, {"language": "english"}, "language: must be one of en, de"),
        (LengthReward, {"unit": "words"}, "unit: must be one of characters, tokens, got 'words'"),
        (LengthReward, {"max_length": -1}, "max_length: must be at least 0, got -1"),
        (LengthReward, {"scale": math.inf}, "scale: must be a finite number, got inf"),
        (SoftOverlongReward, {"max_length": -1}, "max_length: must be at least 0, got -1"),
        (SoftOverlongReward, {"cache_length": -1}, "cache_length: must be at least 0, got -1"),
        (
            SoftOverlongReward,
            {"max_length": 9, "cache_length": 10},
            "cache_length: must be at most max_length, 9",
        ),
        (
            SoftOverlongReward,
            {"cache_length": 1025},
            "cache_length: must be at most max_length, 1024, got 1025",
        ),
        (
            RepetitionPenaltyReward,
            {"n_grams": 0},
            "n_grams: must be at least 1 and at most 100, got 0",
        ),
        (RepetitionPenaltyReward, {"max_penalty": 0.1}, "max_penalty: must be at most 0, got 0.1"),
        (
            RepetitionPenaltyReward,
            {"unit": "lines"},
            "unit: must be one of words, tokens, got 'lines'",
        ),
        (cosine, {"max_len": 0}, "max_len: must be at least 1, got 0"),
        (cosine, {"unit": "words"}, "unit: must be one of characters, tokens, got 'words'"),
        (
            cosine,
            {"max_len_value_wrong": 0.8},
            "max_len_value_wrong: must be less than what a right answer earns, 0.8",
        ),
        (
            cosine,
            {"min_len_value_wrong": 0.9},
            "min_len_value_wrong: must be less than what a right answer earns, 0.8",
        ),
    ],
)
def test_bad_parameters_are_named(kind, parameters, message):
    with pytest.raises(ValueError, match=message):
        kind(**parameters)


MEGABYTE = 1_000_000
HOSTILE = {
    "short words": "a " * (MEGABYTE // 2),
    "different words": " ".join(map(str, range(MEGABYTE // 7))),
    "Han": "".join(
        chr(0x4E00 + index * index % 20_000) for index in range(MEGABYTE // 3)
    ),  # 1 MB in UTF-8
    "mixed": "a好" * (MEGABYTE // 4),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_a_megabyte_of_words_or_tokens_takes_little_time(text):
    with done_within(60):  # 0.2
        RepetitionPenaltyReward()([text])
        RepetitionPenaltyReward(unit="tokens")(
            ["x"], completion_ids=[list(range(MEGABYTE // 2)) * 2]
        )


# --- against ms-swift's own

COSINE_VALUES = {
    ("min", "wrong"): -0.5,
    ("max", "wrong"): 0.0,
    ("min", "correct"): 1.0,
    ("max", "correct"): 0.5,
}


def test_equal_to_ms_swifts_own():
    """Where both are defined: below the limits, for text with spaces."""
    orm = pytest.importorskip("swift.rewards.orm", reason="needs the extra [train]")
    swift_args = type("Arguments", (), {})()
    swift_args.__dict__.update(
        {f"cosine_{end}_len_value_{side}": value for (end, side), value in COSINE_VALUES.items()},
        cosine_max_len=100,
        repetition_n_grams=2,
        repetition_max_penalty=-0.7,
        soft_max_length=100,
        soft_cache_length=30,
    )
    texts = [RIGHT, WRONG, "a b a b c", "The the THE", "", "x"]
    ids = [[7] * length for length in (1, 100, 37, 71, 99, 64)]
    rows = {"nums": [[1, 2]] * 6, "target": [3] * 6, "response_token_ids": ids}
    countdown = REWARDS["external_countdown"]()
    theirs = orm.CosineReward(
        swift_args, lambda completions, solution, **columns: countdown(completions, **columns)
    )
    values = {f"{end}_len_value_{side}": value for (end, side), value in COSINE_VALUES.items()}
    assert cosine(max_len=100, **values)(texts, **rows) == pytest.approx(
        theirs(texts, solution=None, **rows)
    )
    theirs = orm.RepetitionPenalty(swift_args)
    assert RepetitionPenaltyReward(n_grams=2, max_penalty=-0.7)(texts) == pytest.approx(
        theirs(texts)
    )
    theirs = orm.SoftOverlong(swift_args)
    ours = SoftOverlongReward(max_length=100, cache_length=30)
    assert ours(texts, **rows) == pytest.approx(theirs(texts, **rows))
