"""The accuracy reward: its parameters, what it says for each reason, pickling, and shared
grades.
"""

import sys
from pathlib import Path

import pytest

from present import present
from swift_rlvr.rewards.accuracy import RULES, AccuracyReward
from swift_rlvr.rewards.base import OTHER_TASK
from swift_rlvr.rewards.cosine import CosineLengthReward
from swift_rlvr.verifiers.mathematics import Reason, verifier

ROWS = [  # completion, gold, reason, the answer that is shown
    (r"\boxed{5}", "$$", Reason.BAD_GOLD, None),
    (r"\boxed{\ln 5}", r"\frac{1}{", Reason.BAD_GOLD, r"\ln 5"),
    ("it is 5", "5", Reason.NO_ANSWER, None),
    ("<answer>5", "5", Reason.UNCLOSED_ANSWER, None),
    ("<answer> </answer>", "5", Reason.EMPTY_ANSWER, ""),
    ("<answer>" + "x" * 3000 + "</answer>", "5", Reason.TOO_LONG, "x" * 3000),
    (r"\boxed{\frac{1}{}}", "5", Reason.UNREADABLE, r"\frac{1}{}"),
    (r"\boxed{9^{9^{9^{9}}}+\ln 2}", "5", Reason.WRONG, r"9^{9^{9^{9}}}+\ln 2"),
    (r"\boxed{6}", "5", Reason.WRONG, "6"),
    (r"\boxed{2\ln 2}", r"\ln 5", Reason.WRONG, r"2\ln 2"),
    (r"\boxed{5}", "5", Reason.CORRECT, "5"),
]
REWARDS = {Reason.BAD_GOLD: None, Reason.CORRECT: 1.0}


@pytest.fixture(scope="module")
def reward():
    return AccuracyReward()


@pytest.mark.parametrize(
    "text, gold, reason, answer", ROWS, ids=[f"{row[2]}-{row[0][:20]}" for row in ROWS]
)
def test_reward_reason_and_rules(reward, text, gold, reason, answer):
    expected = REWARDS.get(reason, 0.0)
    assert reward([text], solution=[gold]) == [expected]
    explanation = reward.explain(text, {"solution": gold})
    assert (explanation.reward, explanation.reason, explanation.extracted) == (
        expected,
        str(reason),
        answer,
    )
    assert [rule.name for rule in explanation.rules] == list(RULES.values())
    passed = [rule.passed for rule in explanation.rules]
    if reason is Reason.CORRECT:
        assert passed == [True] * len(RULES)
    else:
        failed = list(RULES).index(reason)
        assert passed == [True] * failed + [False] + [None] * (len(RULES) - failed - 1)


@pytest.mark.parametrize(("answer", "earned"), [("7", 1.0), ("8", 0.0)])
@pytest.mark.parametrize("text", [r"So \boxed{{{}}}", "<answer>{}</answer>", "The answer is {}."])
def test_a_number_crosses_few_files_and_functions(reward, text, answer, earned):
    """Who asks why an answer earns what it earns has to read them all. A wrong one is compared
    in further ways than the digits. A comprehension is part of its function, as from Python 3.12 on.
    """
    called = set()

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        name = frame.f_code.co_name
        is_function = event == "call" and not name.startswith("<")
        if is_function and "swift_rlvr" in path.parts:
            called.add((path.name, name))

    reward([text.format(7)], solution=["7"])  # what is read once, such as the gold
    sys.setprofile(note)
    try:
        rewards = reward([text.format(answer)], solution=["7"])
    finally:
        sys.setprofile(None)
    assert rewards == [earned]
    files = {name for name, _ in called}
    further_files, further_functions = (0, 0) if earned else (2, 5)
    assert len(files) <= 6 + further_files, files
    assert len(called) <= 25 + further_functions, called


def test_every_reason_is_declared_and_tested(reward):
    assert {row[2] for row in ROWS} == set(Reason) - {Reason.ERROR}
    assert reward.reasons == tuple(map(str, Reason))
    assert set(RULES) == set(Reason) - {Reason.CORRECT}


def test_details_say_how_the_answer_was_found_and_what_the_gold_is(reward):
    rules = {
        rule.name: rule.detail
        for rule in reward.explain(r"\boxed{6}", {"solution": r"so $\boxed{5}$"}).rules
    }
    assert rules[RULES[Reason.NO_ANSWER]] == "found by: boxed"
    assert rules[RULES[Reason.WRONG]] == "the gold is 5"


@pytest.mark.parametrize(
    "gold, detail",
    [
        (r"So $x = \boxed{\frac{1}{}$", "read from it: So"),
        (r"\frac{1}{", r"read from it: \frac{1}{; a bracket is not closed"),
        (r"\foo{3}", r"read from it: \foo{3}; unknown: \foo"),
        ("", "no answer in ''"),
        ("2x + see above", "read from it: 2x + see above; words that are no value: see, above"),
    ],
)
def test_a_bad_gold_is_shown_with_what_cannot_be_read(reward, gold, detail):
    (rule,) = (
        rule
        for rule in reward.explain(r"\boxed{5}", {"solution": gold}).rules
        if rule.passed is False
    )
    assert rule.name == RULES[Reason.BAD_GOLD] and detail in rule.detail


def test_an_error_of_ours_is_no_verdict_on_the_answer(reward, monkeypatch, caplog):
    monkeypatch.setattr(verifier, "same", lambda gold, answer: 1 / 0)
    assert reward([r"\boxed{6}"], solution=["5"]) == [None]
    assert reward.grades([r"\boxed{6}"], solution=["5"])[0].reason == "error"
    assert (
        "gold ...'5'" in caplog.text
        and "please report this" in caplog.text
        and "ZeroDivisionError" in caplog.text
    )


def test_a_list_of_golds_means_any_of_them_only_if_the_settings_say_so(reward):
    assert reward([r"\boxed{5}"] * 2, solution=[["5", "6"], "5"]) == [
        None,
        1.0,
    ]  # one bad row ends no training
    rules = reward.explain(r"\boxed{5}", {"solution": ["5", "6"]}).rules
    assert "with gold_is_list=True any of its elements is right" in rules[0].detail
    any_of = AccuracyReward(gold_is_list=True)
    assert any_of(
        [r"\boxed{6}", r"\boxed{7}", r"\boxed{7}"], solution=[["5", "6"], ["5", "6"], "7"]
    ) == [1.0, 0.0, 1.0]
    assert any_of([r"\boxed{6}"] * 2, solution=[[], [None, "6"]]) == [None, 1.0]


def test_grade_is_what_a_batch_says(reward):
    texts, golds, *_ = zip(*ROWS, strict=True)
    alone = [
        tuple(reward.grade(text, {"solution": gold})[:2])
        for text, gold in zip(texts, golds, strict=True)
    ]
    assert alone == reward.grades(list(texts), solution=list(golds))


def test_a_gold_that_cannot_be_parsed_may_be_neutral():
    neutral = AccuracyReward(neutral_gold=True)
    assert neutral([r"\boxed{5}"] * 3, solution=[None, "5", "6"]) == [0.5, 1.0, 0.0]
    assert neutral.explain(r"\boxed{5}", {"solution": None}).reward == 0.5
    assert AccuracyReward()([r"\boxed{5}"], solution=[None]) == [None]


def test_rounded_golds_and_other_units_are_parameters(monkeypatch):
    texts, golds = [r"\boxed{\sqrt2}", r"\boxed{1200\text{ cm}}"], ["1.41", "12 m"]
    for parameter, rewards in (("rounded_gold", [1.0, 0.0]), ("convert_units", [0.0, 1.0])):
        assert AccuracyReward()(texts, solution=golds) == [0.0, 0.0]
        assert AccuracyReward(**{parameter: True})(texts, solution=golds) == rewards
        monkeypatch.setenv(f"EXTERNAL_ACCURACY_{parameter.upper()}", "true")
        assert AccuracyReward()(texts, solution=golds) == rewards
        monkeypatch.delenv(f"EXTERNAL_ACCURACY_{parameter.upper()}")


def test_both_completion_shapes_and_other_tasks(reward):
    messages = [{"role": "assistant", "content": r"\boxed{5}"}]
    assert reward([messages, r"\boxed{5}"], solution=["5", "5"], task=["math", "countdown"]) == [
        1.0,
        None,
    ]
    assert reward.grades([messages], solution=["5"], task=["code"])[0].reason == OTHER_TASK
    assert reward([r"\boxed{5}"] * 2, solution=["5", 5], task=["gsm8k", None]) == [1.0, 1.0]


@pytest.mark.parametrize("neutral", [False, True])
def test_cosine_gives_no_value_to_a_row_that_gets_the_neutral_one(neutral, monkeypatch):
    monkeypatch.setenv("EXTERNAL_ACCURACY_NEUTRAL_GOLD", str(neutral).lower())
    texts = [r"\boxed{5}", r"\boxed{6}", r"\boxed{5}", "none"]
    columns = {
        "solution": ["5", "5", "", "5"],
        "completion_ids": [[1]] * 4,
        "task": ["math", "math", None, "countdown"],
    }
    accuracy, cosine = AccuracyReward()(texts, **columns), CosineLengthReward()(texts, **columns)
    assert accuracy == [1.0, 0.0, 0.5 if neutral else None, None]
    assert present(cosine[0]) > 0 > present(cosine[1]) and cosine[2:] == [None, None]
