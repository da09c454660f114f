"""`ordered` of external_accuracy: the question says whether the order of a list counts."""

import pytest

from swift_rlvr.rewards import REWARDS
from swift_rlvr.verifiers.mathematics import asks_for_order

QUESTIONS = [
    ("How old are Tom, Ann and Bob now?", True),
    ("What are the next three terms of 2, 4, 6, ...?", True),
    ("Sort 3, 1, 2 from smallest to largest.", True),
    ("Find all primes below 20, in increasing order.", True),
    ("Find x and y, respectively.", True),
    ("从小到大排列所有的数", True),
    ("Find all solutions of $x^2 - 5x + 6 = 0$.", False),
    ("Solve $x^2 = 4$.", False),
    ("What are the roots of the polynomial?", False),
    ("Which of these numbers are prime?", False),
    ("List the possible values of n, in any order, separated by commas.", False),
    ("解方程 $x^2 = 4$", False),
]


@pytest.mark.parametrize("question, ordered", QUESTIONS)
def test_what_a_question_asks_for(question, ordered):
    assert asks_for_order(question) is ordered


@pytest.mark.parametrize("question, ordered", QUESTIONS)
def test_the_reward_reads_the_question_of_both_trainers(question, ordered):
    reward = REWARDS["accuracy"]()
    texts = ["<answer>14, 7, 18</answer>", "<answer>7, 14, 18</answer>"]
    golds = ["7, 14, 18"] * 2
    asked = [{"role": "user", "content": question}]
    wanted = [float(not ordered), 1.0]
    ended = [[*asked, {"role": "assistant", "content": text}] for text in texts]
    assert reward(texts, solution=golds, messages=ended) == wanted
    assert reward(texts, solution=golds, prompts=[asked] * 2) == wanted
    assert reward(texts, solution=golds, prompts=[question] * 2) == wanted


def test_the_setting_goes_before_the_question_and_without_one_any_order_will_do():
    text, gold = ["<answer>14, 7, 18</answer>"], ["7, 14, 18"]
    ages = [[{"role": "user", "content": "How old are they?"}]]
    assert REWARDS["accuracy"](ordered="no")(text, solution=gold, messages=ages) == [1.0]
    assert REWARDS["accuracy"](ordered="yes")(text, solution=gold) == [0.0]
    assert REWARDS["accuracy"]()(text, solution=gold) == [1.0]
    with pytest.raises(ValueError, match="ordered"):
        REWARDS["accuracy"](ordered="perhaps")
