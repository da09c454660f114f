"""The column `options`: the value where the gold is a letter, the letter where it is a value, and
nothing for two answers in one.
"""

import pytest

from swift_rlvr.rewards import REWARDS

NUMBERS = ["7", "8", "9"]
WORDS = ["oxygen", "iron and salt", "a body", "C. elegans"]
# (options, gold, answers that are right, answers that are wrong)
ROWS = [
    (
        NUMBERS,
        "A",
        [
            *("A", "(A)", "a", "(a)", "[A]", "A.", r"\boxed{A}", "Option A", "The answer is (A)"),
            *("7", "$7$", "7.0", "14/2", r"\boxed{7}", "The answer is 7", "x = 7"),
            *("(A) 7", "A. 7", "A) 7", "A: 7", "A 7", "A = 7", "7 (A)", "7, option A", "A - 7"),
            *(r"\text{(A) }7", r"\textbf{(A)}\ 7", "(A) seven"),
        ],
        [
            *("B", "(B)", "8", "9", "10", "b"),
            # the letter of one and the value of another
            *("(A) 8", "A. 8", "A 8", "A = 8", "8 (A)", "8, option A", "A: 9", "A - 8"),
            *("(B) 7", "B. 7", "B 7", "B = 7", "7 (B)", "7, option B", "B: 7", r"\text{(B) }7"),
            # two answers
            *("7 or 8", "7, 8", "7 or (B)", "7 (A) or 8 (B)", "A or B", "A, B", "(A) or (B)"),
            *("(A) 7, (B) 8", "7 and (C)", "both 7 and 8", "B, not A", "A B", "7 B", "7, B"),
            *("not 7", "", "none"),
        ],
    ),
    (
        NUMBERS,
        "7",
        ["7", "A", "(A)", "a", "(A) 7", "7 (A)", "option A"],
        ["8", "B", "(B)", "(B) 7", "7 (B)", "(A) 8", "A or B", "B = 7", "C"],
    ),
    (NUMBERS, 8, ["8", "B", "(B) 8"], ["7", "A", "(A) 8", "(B) 7"]),
    (NUMBERS, "(B) 8", ["8", "B", "(B) 8"], ["7", "A", "(A) 8", "(B) 7"]),
    (
        WORDS,
        "B",
        ["B", "iron and salt", "Iron and salt.", "B. iron and salt", "iron and salt (B)"],
        ["iron", "salt", "oxygen", "A body", "(A) iron and salt", "(B) oxygen", "C. elegans"],
    ),
    (WORDS, "C", ["C", "a body", "A body", "(C) A body"], ["A", "body (A)", "C. elegans", "D"]),
    (WORDS, "D", ["D", "C. elegans", "(D) C. elegans"], ["C", "(C) C. elegans", "elegans (C)"]),
    # of two choices with the same number it is neither
    (["5 cm", "5 m"], "A", ["A", "5 cm", "(A) 5 cm"], ["5", "5 m", "(B) 5 cm", "B"]),
    (["A = 5", "B = 5"], "A", ["A", "A = 5"], ["B", "B = 5", "5"]),
    (list("qrstuvwxyz"), "I", ["I", "(I)", "y", "I. y"], ["J", "z", "(I) z", "(J) y"]),
    ({"A": "7", "B": "8"}, "A", ["A", "7"], ["B", "8", "(A) 8"]),
    ([{"A": "7"}, {"B": "8"}], "A", ["A", "7"], ["B", "8", "(A) 8"]),
    (["A) 7", "B) 8"], "A", ["A", "7"], ["B", "8", "(A) 8"]),
    (["(A) $7$", "(B) $8$"], "A", ["A", "7"], ["B", "8", "(A) 8"]),
    ([r"$\frac{1}{2}$", r"$\frac{1}{3}$"], "A", ["A", "1/2", "0.5"], ["1/3", "(A) 1/3", "B"]),
]


@pytest.mark.parametrize(("options", "gold", "right", "wrong"), ROWS)
def test_a_letter_and_its_value_are_one_answer(options, gold, right, wrong):
    reward = REWARDS["accuracy"]()
    for answers, value in ((right, 1.0), (wrong, 0.0)):
        texts = [f"<think>7 or A</think><answer>{answer}</answer>" for answer in answers]
        columns = {"solution": [gold] * len(texts), "options": [options] * len(texts)}
        rewards = dict(zip(answers, reward(texts, **columns), strict=True))
        assert rewards == dict.fromkeys(answers, value)
        for text in texts:
            assert reward.explain(text, {"solution": gold, "options": options}).reward == value


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        ("Iron and salt.", 1.0),
        ("Oxygen is a gas.\n\n**iron and salt**", 1.0),
        ("oxygen", 0.0),
        ("not iron and salt", 0.0),
        ("oxygen or iron and salt", 0.0),
        ("It must be iron and salt", 0.0),
        ("\\boxed{oxygen}\niron and salt", 0.0),
    ],
)
def test_a_choice_in_words_may_stand_alone_on_the_last_line(text, reward):
    """As a letter or a number may."""
    assert REWARDS["accuracy"]()([text], solution=["B"], options=[WORDS]) == [reward]
    in_tags = REWARDS["accuracy"](answer_form="tags")
    assert in_tags([text], solution=["B"], options=[WORDS]) == [0.0]


@pytest.mark.parametrize(
    "options",
    [
        None,
        [],
        ["7"],
        ["7", "7"],
        [7, None],
        {"1": "7", "2": "8"},  # no letters
        ["B", "A"],  # is A the first, or the second?
        "7 or 8",
        3,
        [["7"], ["8"]],
        {"text": "7", "label": "A"},
    ],
)
def test_other_options_change_nothing(options):
    answers = ["7", "A", "(A)", "(A) 7", "(A) 8", "8", "B", "(B) 7", "A or B", ""]
    texts = [f"<answer>{answer}</answer>" for answer in answers]
    for gold in ("A", "7", "x^2", "$$"):
        column = [gold] * len(texts)
        without = REWARDS["accuracy"]().grades(texts, solution=column)
        with_them = REWARDS["accuracy"]().grades(
            texts, solution=column, options=[options] * len(texts)
        )
        assert with_them == without


def test_a_gold_that_is_no_choice_or_two_is_compared_alone():
    reward = REWARDS["accuracy"]()
    texts = ["<answer>A</answer>", "<answer>5</answer>"]
    assert reward(texts, solution=["5"] * 2, options=[["5 cm", "5 m"]] * 2) == [0.0, 1.0]
    assert reward(texts, solution=["5"] * 2, options=[["3", "4"]] * 2) == [0.0, 1.0]


def test_options_are_the_rows_own():
    reward = REWARDS["accuracy"]()
    text = "<answer>7</answer>"
    assert reward([text] * 3, solution=["A"] * 3, options=[["7", "8"], ["8", "7"], None]) == [
        1.0,
        0.0,
        0.0,
    ]


METALS = ["salt", "iron", "gold", "wood"]


@pytest.mark.parametrize(
    ("answer", "reward"),
    [
        ("B, C", 1.0),
        ("CB", 1.0),
        ("(B) and (C)", 1.0),
        (r"\text{B, C}", 1.0),
        ("B. iron, C. gold", 1.0),
        ("Options B & C", 1.0),
        ("B", 0.0),
        ("iron", 0.0),
        ("A, B, C", 0.0),
        ("ABCD", 0.0),
        ("B or C", 0.0),
        ("B. gold, C. iron", 0.0),
        ("B. gold", 0.0),
        ("not B, C", 0.0),
    ],
)
def test_of_several_right_letters_an_answer_gives_all_and_no_other(answer, reward):
    columns = {"solution": ["B, C"], "options": [METALS]}
    assert REWARDS["accuracy"]()([f"<answer>{answer}</answer>"], **columns) == [reward]
