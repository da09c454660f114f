"""The accuracy reward: its parameters, what it says for each reason, pickling, and shared processes."""

import gc
import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
from swift_rlvr.math_answers import MathVerifier, Reason
from swift_rlvr.math_answers.verifier import shared_verifier
from swift_rlvr.rewards.accuracy import RULES, AccuracyReward
from swift_rlvr.rewards.base import OTHER_TASK
from swift_rlvr.rewards.cosine import CosineLengthReward

ROWS = [  # completion, gold, reason, the answer that is shown
    (r"\boxed{5}", "$$", Reason.BAD_GOLD, None),
    (r"\boxed{\ln 5}", r"\frac{1}{", Reason.BAD_GOLD, r"\ln 5"),
    ("it is 5", "5", Reason.NO_ANSWER, None),
    ("<answer>5", "5", Reason.UNCLOSED_ANSWER, None),
    ("<answer> </answer>", "5", Reason.EMPTY_ANSWER, ""),
    ("<answer>" + "x" * 3000 + "</answer>", "5", Reason.TOO_LONG, "x" * 3000),
    (r"\boxed{\frac{1}{}}", "5", Reason.UNREADABLE, r"\frac{1}{}"),
    (r"\boxed{9^{9^{9^{9}}}+\ln 2}", "5", Reason.TIMED_OUT, r"9^{9^{9^{9}}}+\ln 2"),
    (r"\boxed{6}", "5", Reason.WRONG, "6"),
    (r"\boxed{2\ln 2}", r"\ln 5", Reason.WRONG, r"2\ln 2"),
    (r"\boxed{5}", "5", Reason.CORRECT, "5"),
]
REWARDS = {Reason.BAD_GOLD: None, Reason.CORRECT: 1.0}


@pytest.fixture(scope="module")
def reward():
    yield AccuracyReward(timeout=0.5, workers=1)
    shared_verifier(1, 0.5, 5.0).close()


@pytest.mark.parametrize("text, gold, reason, answer", ROWS, ids=[f"{row[2]}-{row[0][:20]}" for row in ROWS])
def test_reward_reason_and_rules(reward, text, gold, reason, answer):
    expected = REWARDS.get(reason, 0.0)
    assert reward([text], solution=[gold]) == [expected]
    explanation = reward.explain(text, {"solution": gold})
    assert (explanation.reward, explanation.reason, explanation.extracted) == (expected, str(reason), answer)
    assert [rule.name for rule in explanation.rules] == list(RULES.values())
    passed = [rule.passed for rule in explanation.rules]
    if reason is Reason.CORRECT:
        assert passed == [True] * len(RULES)
    else:
        failed = list(RULES).index(reason)
        assert passed == [True] * failed + [False] + [None] * (len(RULES) - failed - 1)


def test_every_reason_is_declared_and_tested(reward):
    assert {row[2] for row in ROWS} == set(Reason)
    assert reward.reasons == tuple(map(str, Reason))
    assert set(RULES) == set(Reason) - {Reason.CORRECT}


def test_details_say_how_the_answer_was_found_and_what_the_gold_is(reward):
    rules = {rule.name: rule.detail for rule in reward.explain(r"\boxed{6}", {"solution": r"so $\boxed{5}$"}).rules}
    assert rules[RULES[Reason.NO_ANSWER]] == "found by: boxed"
    assert rules[RULES[Reason.WRONG]] == "the gold is 5"


def test_grade_is_what_a_batch_says(reward):
    texts, golds, *_ = zip(*ROWS, strict=True)
    assert [reward.grade(text, {"solution": gold}) for text, gold in zip(texts, golds, strict=True)] == reward.grades(
        list(texts), solution=list(golds)
    )


def test_a_gold_that_cannot_be_parsed_may_be_neutral():
    neutral = AccuracyReward(neutral_gold=True, timeout=0.5, workers=1)
    assert neutral([r"\boxed{5}"] * 3, solution=[None, "5", "6"]) == [0.5, 1.0, 0.0]
    assert neutral.explain(r"\boxed{5}", {"solution": None}).reward == 0.5
    assert AccuracyReward()([r"\boxed{5}"], solution=[None]) == [None]


def test_both_completion_shapes_and_other_tasks(reward):
    messages = [{"role": "assistant", "content": r"\boxed{5}"}]
    assert reward([messages, r"\boxed{5}"], solution=["5", "5"], task=["math", "countdown"]) == [1.0, None]
    assert reward.grades([messages], solution=["5"], task=["code"])[0].reason == OTHER_TASK
    assert reward([r"\boxed{5}"] * 2, solution=["5", 5], task=["gsm8k", None]) == [1.0, 1.0]


@pytest.mark.parametrize(
    "name, values",
    [("timeout", (0, -1.0, math.inf, math.nan)), ("batch_timeout", (0.0, -1, math.inf)), ("workers", (-1, 1.5, True)),
     ("neutral_gold", (1, "yes"))],
)  # fmt: skip
def test_bad_parameters(name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"external_accuracy: {name}"):
            AccuracyReward(**{name: value})
    with pytest.raises(TypeError, match="external_accuracy has no parameter 'time'"):
        AccuracyReward(time=1)


def test_parameters_from_the_environment(monkeypatch):
    monkeypatch.setenv("EXTERNAL_ACCURACY_TIMEOUT", "0.25")
    monkeypatch.setenv("EXTERNAL_ACCURACY_BATCH_TIMEOUT", "3")
    monkeypatch.setenv("EXTERNAL_ACCURACY_WORKERS", "1")
    monkeypatch.setenv("EXTERNAL_ACCURACY_NEUTRAL_GOLD", "true")
    pool = AccuracyReward().verifier.pool
    assert (pool.timeout, pool.batch_timeout, pool.size) == (0.25, 3.0, 1)
    assert AccuracyReward()([""], solution=[""]) == [0.5]
    assert AccuracyReward(timeout=1).verifier.pool.timeout == 1.0
    monkeypatch.setenv("EXTERNAL_ACCURACY_TIMEOUT", "soon")
    with pytest.raises(ValueError, match="EXTERNAL_ACCURACY_TIMEOUT"):
        AccuracyReward()


def test_a_pickled_reward_grades(reward):
    reward([r"\boxed{2\ln 2}"], solution=[r"\ln 4"])  # processes are running
    copy = pickle.loads(pickle.dumps(reward))
    assert copy([r"\boxed{2\ln 2}"], solution=[r"\ln 4"]) == [1.0]
    assert copy.parameters == reward.parameters


def test_rewards_with_equal_settings_share_their_processes(reward):
    other = AccuracyReward(timeout=0.5, workers=1, neutral_gold=True)
    assert other.verifier is reward.verifier
    assert AccuracyReward(timeout=0.75, workers=1).verifier is not reward.verifier


# --- beside external_cosine, which needs the same verdicts


@pytest.fixture
def judged(monkeypatch):
    """The batches that the verifier is asked about, in order."""
    batches = []
    grade_all = MathVerifier.grade_all

    def counted(self, texts, golds):
        batches.append(list(texts))
        return grade_all(self, texts, golds)

    monkeypatch.setattr(MathVerifier, "grade_all", counted)
    return batches


TEXTS = [r"\boxed{5}", r"\boxed{6}", r"\boxed{5}", "none"]
COLUMNS = {"solution": ["5", "5", "", "5"], "completion_ids": [[1]] * 4, "task": ["math", "math", None, "countdown"]}


@pytest.mark.parametrize("neutral", [False, True])
@pytest.mark.parametrize("cosine_first", [False, True])
def test_a_batch_is_judged_once_for_accuracy_and_cosine(cosine_first, neutral, judged, monkeypatch):
    monkeypatch.setenv("EXTERNAL_ACCURACY_NEUTRAL_GOLD", str(neutral).lower())
    rewards = [CosineLengthReward(), AccuracyReward()] if cosine_first else [AccuracyReward(), CosineLengthReward()]
    alone = [reward(TEXTS, **COLUMNS) for reward in rewards[:1]]
    together = [reward(TEXTS, **COLUMNS) for reward in rewards]
    assert together[:1] == alone
    assert judged == [TEXTS[:3]] * 2  # the first reward asked twice; the second took the last verdicts
    accuracy, cosine = reversed(together) if cosine_first else together
    assert accuracy == [1.0, 0.0, 0.5 if neutral else None, None]
    assert cosine[0] > 0 > cosine[1] and cosine[2:] == [None, None]


def test_another_batch_is_judged_anew(judged):
    accuracy, cosine = AccuracyReward(), CosineLengthReward()
    solutions = ["5", "7"]
    for texts, change in [
        ([r"\boxed{5}", r"\boxed{7}"], lambda: None),
        ([r"\boxed{5}", r"\boxed{8}"], lambda: None),
        ([r"\boxed{5}", r"\boxed{8}"], lambda: solutions.__setitem__(1, "8")),  # the same list with another gold
    ]:
        change()
        accuracy(texts, solution=solutions)
        cosine(texts, solution=solutions)
    assert len(judged) == 3
    assert accuracy.grades([r"\boxed{5}", r"\boxed{8}"], solution=solutions)[1] == (1.0, "correct")
    assert len(judged) == 4  # who asks again gets a new judgement: a timeout does not outlive its batch
    accuracy([r"\boxed{5}"], solution=[1]), cosine([r"\boxed{5}"], solution=[True])
    assert len(judged) == 6


def test_other_parameters_share_nothing(judged):
    rewards = AccuracyReward(timeout=1.5), AccuracyReward(), CosineLengthReward()
    assert [reward([r"\boxed{5}"], solution=["5"])[0] > 0 for reward in rewards] == [True] * 3
    assert len(judged) == 2


def test_without_a_reward_that_builds_on_it_nothing_is_kept(judged):
    CosineLengthReward()([r"\boxed{5}"], solution=["5"])
    gc.collect()
    AccuracyReward()([r"\boxed{5}"], solution=["5"])
    assert len(judged) == 2


def test_sharing_survives_pickling_and_threads(judged):
    accuracy, cosine = AccuracyReward(), pickle.loads(pickle.dumps(CosineLengthReward()))
    for number in range(20):
        texts = [rf"\boxed{{{number}}}", r"\boxed{5}"]
        with ThreadPoolExecutor(2) as pool:
            right, paid = pool.map(lambda reward, texts=texts: reward(texts, solution=["5", "5"]), [accuracy, cosine])
        assert right == [float(number == 5), 1.0] and paid[1] > 0.9
    before = len(judged)
    accuracy(["5"], solution=["5"]), cosine(["5"], solution=["5"])
    assert len(judged) == before + 1
