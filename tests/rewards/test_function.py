"""A reward that is a function: what the decorator makes of it, and what holds whatever it does."""

import doctest
import os
import pickle
import subprocess
import sys

import pytest
from paths import ROOT
from rewards import function_rewards
from rewards.function_rewards import careless, short, word_count
from swift_rlvr.contract import check_reward
from swift_rlvr.rewards import REWARDS, Reward, add_reward, reward
from swift_rlvr.success import role_of
from swift_rlvr.utils.errors import NotInstalledError

WORDS = "one two"


def test_it_is_a_reward_like_any_other():
    assert isinstance(word_count, Reward) and word_count.__name__ == "WordCountReward"
    assert (word_count.name, role_of(word_count)) == ("external_word_count", "verifier")
    messages = [{"role": "assistant", "content": WORDS}]
    assert word_count([WORDS, messages, "one"], count=[2, 2, 2], other=[0] * 3) == [1.0, 1.0, 0.0]
    assert all(type(value) is float for value in word_count([WORDS, "one"], count=[2, 2]))
    with pytest.raises(ValueError, match="needs the dataset column 'count'; .* are 'number'"):
        word_count([WORDS], number=[2])


def test_every_rule_holds():
    assert check_reward(type(word_count)) == []


def test_it_is_registered_and_built_as_ms_swift_builds_it(monkeypatch):
    add_reward(word_count)  # as an entry point may name it, rather than its class
    built = REWARDS["word_count"](args=object())
    assert built([WORDS], count=[2]) == [1.0]
    monkeypatch.setenv("EXTERNAL_WORD_COUNT_TASKS", "mine")
    built = REWARDS["word_count"](args=None)
    assert built([WORDS] * 2, count=[2, None], task=["mine", "theirs"]) == [1.0, None]
    with pytest.raises(ValueError, match="'external_word_count' is taken by WordCountReward"):
        reward("external_word_count", role="verifier")(lambda completion: 1.0)


def test_a_function_that_is_defined_again_takes_its_own_place():
    for value in (1.0, 0.5):  # as a cell of a notebook that is run twice

        @reward("external_again", role="shaping")
        def again(completion, value=value):
            return value

    assert REWARDS["again"]()(["x"]) == again(["x"]) == [0.5]


def test_reasons_and_optional_columns():
    assert short.columns == ("limit",) and short.optional_columns == ("margin", "unit")
    grades = short.grades(
        ["abc", "abc", "a b", "abc"],
        limit=[3, 3, 2, "3"],
        margin=[None, 1, None, None],
        unit=[None, None, "words", None],
    )
    assert grades == [(1.0, "short"), (0.25, "long"), (1.0, "short"), (None, "not graded")]
    assert {reason for _, reason in grades} <= set(short.reasons)


@pytest.mark.parametrize(
    ("value", "grade"),
    [
        (2, (2.0, "full reward")),
        (True, (1.0, "full reward")),
        (0.5, (0.5, "partial reward")),
        (-1, (-1.0, "no reward")),
        (None, (None, "not graded")),
        ((None, "bad count"), (None, "bad count")),
        ((0, "too long"), (0.0, "too long")),
        (float("nan"), (0.0, "error")),
        ("right", (0.0, "error")),
        ((1.0, "a", "b"), (0.0, "error")),
    ],
)
def test_what_a_function_may_return(value, grade):
    @reward("external_returns", role="shaping")
    def returns(completion):
        return value

    assert returns.grades(["x"]) == [grade]
    explanation = returns.explain("x", {})
    assert explanation[:2] == grade and explanation.rules


def test_it_is_not_asked_about_a_missing_text_or_a_missing_gold():
    function_rewards.CALLS.clear()
    completions = [None, [{"role": "assistant", "content": None}], 3, WORDS]
    grades = word_count.grades(completions, count=[2, 2, 2, None])
    assert grades == [(0.0, "no text")] * 3 + [(None, "not graded")]
    assert function_rewards.CALLS == []


def test_a_function_that_raises_pays_nothing_and_says_so_once(caplog, monkeypatch):
    monkeypatch.setattr(type(careless), "warned", False)
    assert careless(["7", "seven", "8", ""], number=[7] * 4) == [1.0, 0.0, 0.0, 0.0]
    assert (
        caplog.text.count("external_careless raised an error; the completion earns 0.0: Value") == 1
    )
    rule = careless.explain("seven", {"number": 7}).rules[0]
    assert rule.passed is False and rule.detail.startswith("ValueError: invalid literal for int()")


def test_the_contract_finds_a_function_that_raises():
    problems = [problem for _, problem in check_reward(type(careless))]
    assert any("'<answer>nan</answer>' makes it raise ValueError" in each for each in problems)


@pytest.mark.parametrize("error", [ImportError("no sympy"), NotInstalledError("no sympy")])
def test_a_package_that_is_missing_is_not_the_policys_fault(error):
    @reward("external_needy", role="verifier")
    def needy(completion):
        raise error

    with pytest.raises(type(error), match="no sympy"):
        needy(["x"])


@pytest.mark.parametrize(
    ("function", "columns", "message"),
    [
        (lambda completion: 1.0, ["count"], "must take the completion and the columns count"),
        (
            lambda completion, other: 1.0,
            ["count"],
            "must take the completion and the columns count",
        ),
        (lambda: 1.0, None, "must take the completion and the columns"),
    ],
)
def test_a_function_that_does_not_take_its_columns_is_refused(function, columns, message):
    with pytest.raises(ValueError, match=message):
        reward("external_odd", role="verifier", columns=columns)(function)
    assert "odd" not in REWARDS


def test_a_name_or_a_role_that_cannot_be_used_is_refused():
    with pytest.raises(ValueError, match="must begin with 'external_'"):
        reward("odd", role="verifier")(lambda completion: 1.0)
    with pytest.raises(ValueError, match="`role` of .* must be one of verifier, format, shaping"):
        reward("external_odd", role="judge")(lambda completion: 1.0)


def test_it_pickles_by_the_name_of_the_function(tmp_path):
    again = pickle.loads(pickle.dumps(word_count))
    assert type(again) is type(word_count) and again([WORDS], count=[2]) == [1.0]
    (tmp_path / "pickle").write_bytes(pickle.dumps(type(word_count)(tasks=("mine",))))
    code = f"""if 1:
        import pickle, pathlib
        reward = pickle.loads(pathlib.Path({str(tmp_path / "pickle")!r}).read_bytes())
        print(reward.own_tasks, reward(["one two"], count=[2]))
    """
    # The other process finds this module where the tests are.
    paths = os.pathsep.join(map(str, (ROOT / "plugin", ROOT / "tests")))
    shown = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "('mine',) [1.0]\n"


def test_its_doctests_are_found():
    assert doctest.testmod(function_rewards).attempted >= 1
