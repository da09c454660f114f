"""The math verifier from text to verdict: which mark decides, which golds can be graded, and the
reasons.
"""

import logging
import sys
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from present import present
from swift_rlvr.verifiers.mathematics import Leniency, Reason, grade, verifier
from swift_rlvr.verifiers.mathematics.verifier import MAX_ANSWER_CHARS, read_gold


@pytest.mark.parametrize(
    "text, marked, answer",
    [
        ("<answer>5</answer>", "answer tag", "5"),
        (r"\boxed{4} <answer>5</answer>", "answer tag", "5"),
        (r"<answer>5</answer> \boxed{4}", "answer tag", "5"),
        (r"<answer>4 or \boxed{5}</answer>", "boxed", "5"),
        (r"<answer>4</answer> and <answer> 5 </answer>", "answer tag", "5"),
        (r"\boxed{4} then \boxed{5}", "boxed", "5"),
        (r"\boxed{4} #### 5", "####", "5"),
        (r"\boxed {5}", "boxed", "5"),
        (r"\fbox{5}", "boxed", "5"),
        (r"\boxed{5} and \boxed{4", "boxed", "5"),
        (r"\boxed{5} or $\boxed{5}$", "boxed", "5"),
        ("#### 4\nno\n#### 5\nmore", "####", "5"),
        (r"<think>\boxed{4}</think> #### 5", "####", "5"),
        (r"<think>#### 4</think>\boxed{5}", "boxed", "5"),
        (r"\boxed{5} <think>\boxed{4}", "boxed", "5"),
        ("The final answer is $5$.", "text", "5"),
        ("Answer: 5", "text", "5"),
        ("**Answer:** 5", "text", "5"),
        ("所以答案是５。", "text", "５"),
        ("<think>the answer is 4</think>So the answer is $5$.", "text", "5"),
        ("Yes.\n" * 5000 + "The answer is $5$.", "text", "5"),
        ("So.\n**Answer:**\n\\[\n5\n\\]", "text", "5"),
        ("So.\n#### Final answer\n5", "text", "5"),
        ("<think>4</think>\n5<|im_end|>", "bare", "5"),
    ],
)
def test_which_mark_decides(text, marked, answer):
    verdict = grade(text, "5")
    assert verdict == (1.0, Reason.CORRECT, answer, marked, "5")
    assert grade(text, "4").reward == 0.0


@pytest.mark.parametrize(
    "text, gold, reason",
    [
        (None, "5", Reason.NO_ANSWER),
        ("", "5", Reason.NO_ANSWER),
        ("5", "5", Reason.CORRECT),
        ("6", "5", Reason.WRONG),
        ("yes", "yes", Reason.NO_ANSWER),
        ("it is 5", "5", Reason.NO_ANSWER),
        ("I have no answer", "5", Reason.NO_ANSWER),
        ("The answer is not 5.", "5", Reason.NO_ANSWER),
        ("The answer is 5 or 6.", "5", Reason.NO_ANSWER),
        ("<answer>5</answer></think> done", "5", Reason.NO_ANSWER),
        (r"<think>so \boxed{5}", "5", Reason.NO_ANSWER),
        (r"\boxed{5", "5", Reason.NO_ANSWER),
        ("The answer is $5$." + " " * 2000 + "x", "5", Reason.NO_ANSWER),
        ("<answer>5", "5", Reason.UNCLOSED_ANSWER),
        ("<think></think><answer>5", "5", Reason.UNCLOSED_ANSWER),
        ("<answer></answer>", "5", Reason.EMPTY_ANSWER),
        (r"<answer> \boxed{ } </answer>", "5", Reason.EMPTY_ANSWER),
        ("####", "5", Reason.EMPTY_ANSWER),
        (rf"\boxed{{{'x+' * 600}x}}", "5", Reason.TOO_LONG),
        (rf"\boxed{{{'x' * 2001}}}", "5", Reason.TOO_LONG),
        (r"\boxed{\frac{}", "5", Reason.NO_ANSWER),
        (r"\boxed{\frac{1}{}}", "5", Reason.UNREADABLE),
        ("<answer>I tried 1, then 2 and then 5</answer>", "5", Reason.UNREADABLE),
        ("<answer>either 4 or 5</answer>", "5", Reason.UNREADABLE),
        (r"\boxed{6}", "5", Reason.WRONG),
        (r"\boxed{\ln 6}", "5", Reason.WRONG),
        (r"\boxed{5}", "5", Reason.CORRECT),
        (r"\boxed{\ln e^5}", "5", Reason.CORRECT),
        (r"\boxed{5}", "", Reason.BAD_GOLD),
        (r"\boxed{\ln 5}", r"\frac{1}{", Reason.BAD_GOLD),
        (r"\boxed{3.75}", "3,75", Reason.BAD_GOLD),  # its comma may be a decimal one
        (r"\boxed{3.8}", "3,75", Reason.WRONG),
        (r"<answer>\frac{1}{</answer>", r"\frac{1}{", Reason.CORRECT),  # written alike
        ("<think>5</think>", r"\frac{1}{", Reason.NO_ANSWER),
    ],
)
def test_reasons(text, gold, reason):
    verdict = grade(text, gold)
    assert verdict.reason is reason
    assert verdict.reward == {Reason.CORRECT: 1.0, Reason.BAD_GOLD: None}.get(reason, 0.0)


@pytest.mark.parametrize(
    "gold, text",
    [
        ("7", "7"), (" 7 ", "7"), (7, "7"), (-7, "-7"), (0, "0"), (7.0, "7.0"), (0.1, "0.1"), (10**30, "1" + "0" * 30),
        (1e-7, "1e-07"), (r"$\frac12$", r"$\frac12$"), ("#### 7", "7"), ("so\n#### 1,234\n", "1,234"),
        ("<answer>7</answer>", "7"), (r"Thus $x = \boxed{\frac12}$.", r"\frac12"),
        (r"<think>\boxed{1}</think>\boxed{2}", "2"), (r"$\boxed{1}$ and $\boxed{2}$", "1, 2"), ("yes", "yes"),
        ("x is 7 cm long", "x is 7 cm long"), ("No solution", "No solution"),
    ],
)  # fmt: skip
def test_golds(gold, text):
    assert present(read_gold(gold)).text == text
    assert grade(f"<answer>{text}</answer>", gold).reward == 1.0


NO_GOLDS = [None, "", "  ", "$$", "$ $", "####", r"\boxed{}", "<answer> </answer>", True, False, float("nan"),
            float("inf"), -float("inf"), b"7", {"answer": 7}, {7}, object(), 7j]  # fmt: skip


@pytest.mark.parametrize("gold", NO_GOLDS, ids=lambda gold: repr(gold).partition(" at 0x")[0])
def test_what_is_no_gold(gold):
    assert read_gold(gold) is None
    assert grade(r"\boxed{7}", gold) == (None, Reason.BAD_GOLD, None, None, None)
    for text in (None, "", "<answer>", "<answer></answer>", r"\boxed{x}", "x" * 5000):
        assert grade(text, gold).reason is Reason.BAD_GOLD


def test_a_gold_that_cannot_be_read_is_shown():
    gold = "Let n be even. This proves the claim."
    assert grade(r"\boxed{7}", gold) == (None, Reason.BAD_GOLD, "7", "boxed", gold)
    assert grade(f"<answer>{gold}</answer>", gold).reward == 1.0


def test_golds_in_lists():
    texts = [r"\boxed{7}", r"\boxed{8}", r"\boxed{9}", r"\boxed{x}", "no"]
    golds = [["7", "8"], ("7", "8"), ["7", "8"], ["7", None], ["7", ""]]
    verdicts = [
        grade(text, gold, gold_is_list=True) for text, gold in zip(texts, golds, strict=True)
    ]
    assert [verdict.reward for verdict in verdicts] == [1.0, 1.0, 0.0, 0.0, 0.0]
    assert [verdict.gold for verdict in verdicts] == ["7", "8", "7", "7", "7"]
    for empty in ([], [None], [""]):
        assert grade("5", empty, gold_is_list=True).reward is None
    assert grade(texts[0], "7", gold_is_list=True).reward == 1.0  # a column may hold both
    for gold in (["7", "8"], ["7"], []):
        assert grade(r"\boxed{7}", gold)[:2] == (None, Reason.BAD_GOLD)


# gold, answer, what it earns where the order counts, where it does not, and where nothing is said
IN_ORDER = [
    ("7, 14, 18", "14, 7, 18", 0.0, 1.0, 1.0),
    ("7, 14, 18", "7, 14 and 18", 1.0, 1.0, 1.0),
    ("1, 1, 2", "1, 2, 1", 0.0, 1.0, 0.0),
    ("1 0", "0 1", 0.0, 1.0, 0.0),
    ("red, green", "green, red", 0.0, 1.0, 0.0),
    # what has no order, whatever the question says
    ("x = 1, y = 2", "y = 2, x = 1", 1.0, 1.0, 1.0),
    (r"1 \pm \sqrt2", r"1 - \sqrt2, 1 + \sqrt2", 1.0, 1.0, 1.0),
    ("x = 1 or x = 2", "2, 1", 1.0, 1.0, 1.0),
    (r"\{1, 2\}", r"\{2, 1\}", 1.0, 1.0, 1.0),
    ("A, C", "C, A", 1.0, 1.0, 1.0),
    # and what always has one
    ("(1, 2)", "(2, 1)", 0.0, 0.0, 0.0),
]


@pytest.mark.parametrize("gold, answer, ordered, unordered, unsaid", IN_ORDER)
def test_the_order_of_a_list(gold, answer, ordered, unordered, unsaid):
    text = f"<answer>{answer}</answer>"
    assert grade(text, gold, Leniency(ordered=True)).reward == ordered
    assert grade(text, gold, Leniency(ordered=False)).reward == unordered
    assert grade(text, gold).reward == unsaid


@pytest.mark.parametrize(("answer", "reward"), [("7", 1.0), ("8", 0.0)])
def test_a_plain_number_is_found_read_and_compared_and_nothing_else(answer, reward):
    called = set()

    def note(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and "swift_rlvr" in path.parts:
            called.add((path.name, frame.f_code.co_name))

    sys.setprofile(note)
    try:
        verdict = grade(rf"So \boxed{{{answer}}}", "7")
    finally:
        sys.setprofile(None)
    assert verdict.reward == reward
    assert len({name for name, _ in called}) <= 6 and len(called) <= 25, called


SPELLINGS = [
    (
        *("25 °C", "25°C", "25 C", r"25^\circ C", r"25^{\circ}C", r"25^{\circ} \mathrm{C}", "25℃"),
        *(r"25\,^\circ\text{C}", r"25 \text{ °C}", "25 degrees Celsius", "25 degrees C", "25.0 °C"),
        *("25 celsius", "25 degree Celsius", r"$25^\circ$C", r"25 \, \text{degrees Celsius}"),
    ),
    (
        *("5 m/s", "5m/s", r"5 \text{ m/s}", r"5\,\mathrm{m/s}", r"5 \mathrm{m\,s^{-1}}", "5 mps"),
        *(r"5\ \mathrm{m\cdot s^{-1}}", "5 m s^-1", "5 m s^{-1}", "5 m·s⁻¹", r"5 \frac{m}{s}"),
        *(r"5 \frac{\text{m}}{\text{s}}", "5 meters per second", "5 metres/second", "5 ms^{-1}"),
        *(r"5~\mathrm{m}/\mathrm{s}", r"5\,\mathrm{m}\,\mathrm{s}^{-1}", "5 meters/second"),
    ),
]


@pytest.mark.parametrize("spellings", SPELLINGS, ids=["25 °C", "5 m/s"])
def test_every_spelling_of_a_unit_is_every_other(spellings):
    wrong = []
    for gold, answer in permutations(spellings, 2):
        if grade(rf"\boxed{{{answer}}}", gold).reward != 1.0:
            wrong.append((gold, answer))
    assert wrong == []


def test_a_gold_with_thousands_of_digits_is_none():
    for gold in (10**5000, -(10**5000), str(10**4000)):
        assert grade("5", gold).reward in (None, 0.0)
    assert grade("5", 10**5000).reason is Reason.BAD_GOLD


@pytest.mark.parametrize("broken", ["read_plain", "same"])
def test_a_mistake_of_ours_is_an_error_with_a_traceback_and_no_reward(broken, monkeypatch, caplog):
    read_gold("5")  # cached: the answer is read next

    def fail(*_):
        raise KeyError("a mistake")

    monkeypatch.setattr(verifier, broken, fail)
    with caplog.at_level(logging.ERROR):
        assert grade(r"\boxed{6}", "5") == (None, Reason.ERROR, "6", "boxed", "5")
    assert "a mistake" in caplog.text and "boxed{6}" in caplog.text and "'5'" in caplog.text
    assert grade(r"\boxed{5}", "5").reward == 1.0  # written alike: nothing is read


def test_a_mistake_of_ours_in_a_gold_is_no_bad_gold(monkeypatch, caplog):
    def fail(*_):
        raise KeyError("a mistake")

    monkeypatch.setattr(verifier, "read", fail)
    with caplog.at_level(logging.ERROR):
        assert grade(r"\boxed{6}", "a gold of this test alone") == (
            None,
            Reason.ERROR,
            None,
            None,
            None,
        )
    assert "a mistake" in caplog.text and "a gold of this test alone" in caplog.text


def test_an_answer_of_any_length_may_equal_the_gold():
    for length in (MAX_ANSWER_CHARS + 1, 3000, 100_000):
        gold = "7" * length
        assert grade(f"<answer>{gold}</answer>", gold).reward == 1.0
        assert grade(f"<answer>{gold}8</answer>", gold).reward != 1.0
        assert grade(f"<answer>{gold}8</answer>", "7").reason is Reason.TOO_LONG


def test_a_gold_of_a_megabyte():
    assert grade(r"\boxed{5}", "x " * 500_000 + r"\boxed{5}").reward == 1.0
    assert grade(r"\boxed{5}", "(" * 1_000_000).reward is None


@settings(max_examples=60, derandomize=True)
@given(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6))
def test_numbers_in_every_mark(number, other):
    texts = [
        f"<answer>{number}</answer>",
        rf"\boxed{{{number}}}",
        f"#### {number:,}",
        rf"<answer>$\boxed{{{number}.0}}$</answer>",
        f"The answer is {number}.",
        rf"Answer: \({number}\)",
    ]
    for gold in (number, str(number), f"${number}$", f"So\n#### {number}", float(number)):
        assert {grade(text, gold).reward for text in texts} == {1.0}
    assert {grade(text, other).reward for text in texts} == {float(number == other)}


ROUNDED, CONVERTED = Leniency(rounded_gold=True), Leniency(convert_units=True)
LENIENT = [  # gold, answer, what is allowed, right where it is; without it nothing here is
    ("21.93", r"21\frac{13}{14}", ROUNDED, True), (r"41.4\%", r"\sqrt2-1", ROUNDED, True),
    (r"6.67\%", r"\frac1{15}", ROUNDED, True), (r"41.4\%", r"100\sqrt2-100", ROUNDED, True),
    ("66.7", r"66\frac23\%", ROUNDED, True), ("x = 1.41", r"x = \sqrt2", ROUNDED, True),
    ("x = 1.41", r"\sqrt2", ROUNDED, True), (r"1.41 \text{ cm}", r"\sqrt2", ROUNDED, True),
    ("21.93", "21.928", ROUNDED, False), ("21.93", "21.9286", ROUNDED, False),
    ("21.92", r"21\frac{13}{14}", ROUNDED, False), ("22", r"21\frac{13}{14}", ROUNDED, False),
    ("21.93", "22", ROUNDED, False), (r"41\%", r"\sqrt2-1", ROUNDED, False), ("1.41", r"-\sqrt2", ROUNDED, False),
    (r"41.4\%", r"4140\%", ROUNDED, False), ("x = 1.41", r"y = \sqrt2", ROUNDED, False),
    ("1.41", r"\approx 1.414", ROUNDED, False), (r"1.41 \text{ cm}", r"\sqrt2 \text{ m}", ROUNDED, False),
    ("1.41", r"\sqrt2 x", ROUNDED, False), (r"\sqrt2", "1.41", ROUNDED, False), ("12 m", "1200 cm", ROUNDED, False),
    ("12 m", "1200 cm", CONVERTED, True), ("90 minutes", "1.5 hours", CONVERTED, True),
    ("50 m/s", "180 km/h", CONVERTED, True), ("x = 12 m", "1200 cm", CONVERTED, True),
    ("12 m", "x = 1200 cm", CONVERTED, True), ("x = 12 m", "x = 1200 cm", CONVERTED, True),
    (r"2\pi \text{ m}", r"200\pi \text{ cm}", CONVERTED, True), ("$5", "500 cents", CONVERTED, True),
    ("3 m^2", "30000 cm^2", CONVERTED, True), ("1/3 hour", "20 minutes", CONVERTED, True),
    ("1 inch", "2.54 cm", CONVERTED, True), ("5 J", r"5 \text{ N m}", CONVERTED, True),
    ("12 m", "1200 mm", CONVERTED, False), ("12 m", "1200", CONVERTED, False), ("90 minutes", "1.5", CONVERTED, False),
    ("3 m^2", "300 cm^2", CONVERTED, False), ("0.33 hours", "20 minutes", CONVERTED, False),
    ("12 kg", "12000 m", CONVERTED, False), ("x = 12 m", "y = 1200 cm", CONVERTED, False),
    ("1 month", "30 days", CONVERTED, False), ("12 apples", "1 dozen apples", CONVERTED, False),
    (r"50\%", "50 cm", CONVERTED, False), ("1.41", r"\sqrt2", CONVERTED, False),
]  # fmt: skip


@pytest.mark.parametrize(
    "gold, answer, leniency, right", LENIENT, ids=[f"{row[0]}-{row[1]}" for row in LENIENT]
)
def test_rounded_golds_and_other_units_where_they_are_allowed(gold, answer, leniency, right):
    assert grade(f"<answer>{answer}</answer>", gold, leniency).reward == float(right)
    assert grade(f"<answer>{answer}</answer>", gold).reward == 0.0


@settings(max_examples=200, derandomize=True)
@given(st.integers(-999, 999), st.integers(1, 60), st.integers(1, 4), st.integers(-3, 3))
def test_a_fraction_is_right_for_the_decimal_that_it_rounds_to_and_no_other(
    above, below, places, off
):
    value = Fraction(above, below)
    nearest = round(value * 10**places)
    gold = f"{Decimal(nearest + off).scaleb(-places):f}"
    expected = abs(value * 10**places - (nearest + off)) <= Fraction(1, 2)
    assert grade(rf"\boxed{{\frac{{{above}}}{{{below}}}}}", gold, ROUNDED).reward == float(expected)


def test_a_solution_in_words_is_right_against_itself():
    """Its last line is what other answers are compared with."""
    for gold in (
        "We add\n$$\n3 + 5\n$$\nTherefore Tom has 8 apples.",
        "$$\nX = [0.38, 0.18]\n$$\n\nTherefore the probability of ending in location 2 is 0.18 .",
    ):
        assert grade(f"<answer>{gold}</answer>", gold).reward == 1.0
