"""What is written in words, or in the digits of another script, is its number; what only begins like
a number is none.
"""

import pytest

from swift_rlvr.verifiers.mathematics import grade
from swift_rlvr.verifiers.mathematics.in_digits import in_digits

# (gold, answer, reward)
ENGLISH = [
    ("29 cookies", "twenty-nine cookies", 1.0),
    ("29 (cookies)", "Twenty-nine cookies", 1.0),
    ("29", "twenty-nine cookies", 1.0),
    ("3 hours", "three hours", 1.0),
    ("$5", "five dollars", 1.0),
    ("50%", "fifty percent", 1.0),
    ("50%", "50 per cent", 1.0),
    ("twenty-five apples", "25 apples", 1.0),
    (r"\frac{1}{2}", "one half", 1.0),
    (r"\frac{1}{2}", "a half", 1.0),
    (r"\frac{2}{3}", "two-thirds", 1.0),
    (r"-\frac{3}{4}", "negative three quarters", 1.0),
    ("two thirds", "2/3", 1.0),
    ("1.5", "one and a half", 1.0),
    (r"\frac{35}{3}", "11 and 2/3", 1.0),
    ("3.25", "three point two five", 1.0),
    ("1000000", "a million", 1.0),
    ("5th", "fifth", 1.0),
    ("third", "3rd", 1.0),
    ("21", "twenty-first", 1.0),
    # another number, another unit
    ("29 cookies", "twenty-eight cookies", 0.0),
    ("29 cookies", "twenty-nine apples", 0.0),
    ("3 hours", "three minutes", 0.0),
    ("$5", "five euros", 0.0),
    ("50%", "fifteen percent", 0.0),
    (r"\frac{1}{2}", "two", 0.0),
    (r"\frac{2}{3}", "three halves", 0.0),
    (r"\frac{1}{3}", "third", 0.0),
    ("third", r"\frac{1}{3}", 0.0),
    ("1.5", "one", 0.0),
    ("5th", "sixth", 0.0),
    (r"\frac{29}{3}", "11 and 2/3", 0.0),
    # several numbers, or a part of what is said
    ("1", "one or two", 0.0),
    ("1", "one to one", 0.0),
    ("5", "five or six apples", 0.0),
    ("5", "five and six", 0.0),
    ("5", "five times two", 0.0),
    ("5", "five hundred", 0.0),
    ("5", "not five apples", 0.0),
    ("5", "less than five apples", 0.0),
    ("2", "half of five", 0.0),
]
MONEY = [
    ("$5", "USD 5", 1.0),
    ("18 dollars", "USD 18.00", 1.0),
    ("€5", "EUR 5", 1.0),
    ("£5", "5 GBP", 1.0),
    ("$5", "EUR 5", 0.0),
    ("$5", "USD 6", 0.0),
    ("€5", "GBP 5", 0.0),
]
CHINESE = [
    ("25", "二十五", 1.0),
    ("二十五", "25", 1.0),
    ("25元", "二十五元", 1.0),
    ("25", "二十五个", 1.0),
    (r"\frac{2}{3}", "三分之二", 1.0),
    ("三分之二", r"\frac{2}{3}", 1.0),
    ("2.5", r"二又二分之一", 1.0),
    ("50%", "百分之五十", 1.0),
    ("百分之五十", "50%", 1.0),
    ("50%", "五十%", 1.0),
    ("-5", "负五", 1.0),
    ("3.5", "三点五", 1.0),
    ("120", "一百二十", 1.0),
    ("102", "一百零二", 1.0),
    ("10005", "一万零五", 1.0),
    ("2", "两", 1.0),
    ("25", "五十二", 0.0),
    ("25元", "二十五美元", 0.0),
    (r"\frac{2}{3}", "二分之三", 0.0),
    ("50%", "百分之五", 0.0),
    ("50", "五", 0.0),
    ("-5", "五", 0.0),
    ("3.5", "五点三", 0.0),
    ("102", "一百二十", 0.0),
    # one figure behind another, and 一百二, which says 120 in speech
    ("25", "二五", 0.0),
    ("102", "一百二", 0.0),
    # words that begin with a numeral
    ("3", "三角形", 0.0),
    ("2", "二次函数", 0.0),
    ("5", "第五", 0.0),
    ("1", "一样", 0.0),
    ("9", "九月", 0.0),
    ("5", "五或六", 0.0),
    ("5", "不是五", 0.0),
]
OTHER_DIGITS = [
    ("25", "２５", 1.0),
    ("25", "٢٥", 1.0),
    ("٢٥", "25", 1.0),
    ("3.5", "٣٫٥", 1.0),
    ("1234", "١٬٢٣٤", 1.0),
    ("50%", "٥٠٪", 1.0),
    ("25", "२५", 1.0),
    ("x = 5", "x = ٥", 1.0),
    ("(1, 2)", "(١, ٢)", 1.0),
    (r"\frac{2}{3}", "٢/٣", 1.0),
    (r"\frac{1}{2}", "1⁄2", 1.0),
    ("25", "٥٢", 0.0),
    ("25", "५२", 0.0),
    ("3.5", "٥٫٣", 0.0),
    (r"\frac{1}{2}", "2⁄1", 0.0),
]
POINTS_AND_RELATIONS = [
    ("(-2, -9)", "the point (-2, -9)", 1.0),
    ("(-2, -9)", "P(-2, -9)", 1.0),
    ("(-2, -9)", "P = (-2, -9)", 1.0),
    ("(-2, -9)", "P(-9, -2)", 0.0),
    ("(-2, -9)", "the point (-2, 9)", 0.0),
    ("10", "C(5, 2)", 1.0),
    ("7", "C(5, 2)", 0.0),
    (r"x \ge 5", "x is greater than or equal to 5", 1.0),
    (r"x \ge 5", "x is at least 5", 1.0),
    (r"x \neq 5", r"all real numbers x such that x \neq 5", 1.0),
    (r"x \ge 5", "x is greater than 5", 0.0),
    (r"x \ge 5", "x is less than or equal to 5", 0.0),
    (r"x \ge 5", "x is at least 6", 0.0),
    (r"x \neq 5", r"all real numbers x such that x \neq -5", 0.0),
    ("x = -2, 5", "x_1 = -2, x_2 = 5", 1.0),
    ("x = -2, 5", "x_1 = -2, x_2 = -5", 0.0),
    ("x = -2, 5", "x_1 = -2", 0.0),
    ("x_1 = -2, x_2 = 5", "x_1 = 5, x_2 = -2", 0.0),
    ("x = 2, y = 5", "x_1 = 2, x_2 = 5", 0.0),
]
CASES = ENGLISH + MONEY + CHINESE + OTHER_DIGITS + POINTS_AND_RELATIONS


@pytest.mark.parametrize("gold, answer, reward", CASES)
def test_written_in_another_way(gold, answer, reward):
    for completion in (rf"\boxed{{{answer}}}", f"<answer>{answer}</answer>"):
        assert grade(completion, gold).reward == reward, completion


@pytest.mark.parametrize(
    "text", ["", "Paris", "a", "an apple", "the answer", "(1, 2)", "25", "half of x"]
)
def test_what_is_left_as_it_is(text):
    assert in_digits(text) == text
