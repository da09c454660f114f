"""Numbers, amounts, ranges, dates and times as answers that are compared as texts."""

import pytest

from swift_rlvr.rewards.exact_match import ExactMatchReward
from swift_rlvr.verifiers.quantities import same_quantity

# (gold, an answer that says the same)
SAME = [
    ("25", "twenty-five"),
    ("twenty-five", "25"),
    ("25", "２５"),
    ("25", "٢٥"),
    ("25", "二十五"),
    ("1234", "1,234"),
    ("3.5 million", "3,500,000"),
    ("five million", "5000000"),
    ("fifth", "5th"),
    ("the 21st", "twenty-first"),
    ("one half", "1/2"),
    ("two thirds", "2/3"),
    ("$5", "5 dollars"),
    ("$5", "five dollars"),
    ("$5", "USD 5"),
    ("$5", "$5.00"),
    ("€5", "5 euros"),
    ("£5", "5 pounds"),
    ("5 lb", "5 pounds"),
    ("¥500", "500 yen"),
    ("¥500", "500 yuan"),
    ("50%", "50 percent"),
    ("50%", "fifty per cent"),
    ("5-10", "5 to 10"),
    ("5–10", "between 5 and 10"),
    ("5-10 years", "from 5 to 10 years"),
    ("1914–1918", "1914 to 1918"),
    ("5 km", "5 kilometers"),
    ("5 km", "five kilometres"),
    ("5 apples", "five apples"),
    ("March 5, 2021", "5 March 2021"),
    ("March 5, 2021", "2021-03-05"),
    ("April 15", "the 15th of April"),
    ("3:30 PM", "15:30"),
    ("3:30 PM", "3:30 p.m."),
]
OTHERS = [
    ("25", "twenty-six"),
    ("25", "52"),
    ("25", "25th"),
    ("25", "25.0"),
    # nothing is left out or computed
    ("5 km", "5"),
    ("5", "5 km"),
    ("5 km", "5000 m"),
    ("5 km", "5 miles"),
    ("50%", "50"),
    ("50%", "0.5"),
    ("1/2", "2/4"),
    # names, versions and codes
    ("007", "7"),
    ("3.10", "3.1"),
    ("Apollo 11", "11"),
    ("9/11", "18/22"),
    ("third", "1/3"),
    # another money, another weight
    ("$5", "$6"),
    ("$5", "5 euros"),
    ("$5", "5 cents"),
    ("$5", "$5 per hour"),
    ("£5", "5 lb"),
    ("500 yen", "500 yuan"),
    # one end of a range, or another range
    ("5-10", "5"),
    ("5-10", "-5"),
    ("5-10", "10 to 5"),
    ("5-10", "6 to 10"),
    ("5-10 years", "5 to 10 days"),
    ("5", "-5"),
    ("5 million", "5 billion"),
    ("5 apples", "five pears"),
    ("March 5, 2021", "March 6, 2021"),
    ("March 5, 2021", "March 2021"),
    ("March 5, 2021", "2021"),
    ("3:30 PM", "3:30 AM"),
    ("Barack Obama", "Obama"),
    ("USA", "United States of America"),
]
# The day or the month first, of the morning or of the afternoon.
UNKNOWN = [("March 5, 2021", "03/05/2021"), ("03/05/2021", "5 March 2021"), ("3:30 PM", "3:30")]


def reward(gold: str, answer: str) -> float | None:
    return ExactMatchReward()([f"<answer>{answer}</answer>"], accepted_answers=[[gold]])[0]


@pytest.mark.parametrize("gold, answer", SAME)
def test_the_same_in_another_way(gold, answer):
    assert reward(gold, answer) == reward(answer, gold) == 1.0
    assert ExactMatchReward(literal=True)([answer], accepted_answers=[[gold]]) == [0.0]


@pytest.mark.parametrize("gold, answer", OTHERS)
def test_what_is_not_the_same(gold, answer):
    assert reward(gold, answer) == reward(answer, gold) == 0.0


@pytest.mark.parametrize("gold, answer", UNKNOWN)
def test_what_may_be_two_dates_or_times_is_not_graded(gold, answer):
    assert same_quantity(gold, answer) == "maybe"
    assert reward(gold, answer) is None
    # beside a gold that it is, it is right
    text = f"<answer>{answer}</answer>"
    assert ExactMatchReward()([text], accepted_answers=[[gold, answer]]) == [1.0]
    assert reward(gold, gold) == 1.0


def test_alone_on_the_last_line():
    reward = ExactMatchReward()
    texts = ["I count them.\ntwenty-five", "I count them.\ntwenty-six"]
    assert reward(texts, accepted_answers=[["25"]] * 2) == [1.0, 0.0]
