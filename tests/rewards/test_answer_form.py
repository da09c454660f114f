"""The final answer and its form, as the rewards read them: by the row, by the parameter, or the last
statement; for mathematics, choices, texts and reasoning-gym alike.
"""

import json
from importlib.util import find_spec

import pytest

from swift_rlvr.rewards import REWARDS
from swift_rlvr.utils.errors import InputError
from swift_rlvr.verifiers.thinking import DELIMITERS

GCD = {
    "task": "gcd",
    "settings": {},
    "question": "Find the Greatest Common Divisor (GCD) of these numbers: 297, 24.",
    "answer": "3",
    "metadata": ["dict", ["numbers", ["list", 297, 24]], ["result", 3]],
}
# Each with the gold 3.
ROWS: dict[str, dict] = {
    "accuracy": {"solution": ["3"]},
    "exact_match": {"accepted_answers": [["3"]]},
}
CHOICE = {"solution": ["C"], "options": [["1 cm", "2 cm", "12 cm", "3 cm"]]}
# (text, what it earns)
TEXTS = [
    ("<answer>3</answer>", 1.0),
    ("So \\boxed{3}.", 1.0),
    ("297 = 3 * 99\n#### 3", 1.0),
    ("The answer is 3.", 1.0),
    ("Answer: 3", 1.0),
    ('{"answer": 3}', 1.0),
    ("【答案】3", 1.0),
    ("3 * 99 = 297\n\n3", 1.0),
    ("\\boxed{4}\nFinal answer: 3", 1.0),
    ("\\boxed{3}\nFinal answer: 4", 0.0),
    ("\\boxed{3}\n#### 4", 0.0),
    ("The answer is 3 or 4.", 0.0),
    ("not \\boxed{3}", 0.0),
    ("\\boxed{3} or 4", 0.0),
    ("It is 3, I think", 0.0),
    ("3\n4", 0.0),
    ("4\n3", 0.0),
]


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize(("text", "earned"), TEXTS)
def test_every_verifier_reads_the_same_final_answer(name, text, earned):
    assert REWARDS[name]()([text], **ROWS[name]) == [earned]


def test_reasoning_gym_reads_it_too():
    if find_spec("reasoning_gym") is None:  # which imports pycosat, unless ours stands in
        pytest.skip("reasoning_gym is not installed")
    texts = [text for text, _ in TEXTS]
    grades = REWARDS["reasoning_gym"]()(texts, entry=[json.dumps(GCD)] * len(texts))
    assert grades == [earned for _, earned in TEXTS]


@pytest.mark.parametrize(("opening", "closing"), DELIMITERS)
@pytest.mark.parametrize("name", ROWS)
def test_an_answer_in_the_thinking_alone_earns_nothing(name, opening, closing):
    reward = REWARDS[name]()
    for answer in ("\\boxed{3}", "<answer>3</answer>", "#### 3\n", "The answer is 3.\n"):
        for text in (f"{opening}{answer}{closing}", f"{opening}{answer} and", f"{answer}{closing}"):
            assert reward([text], **ROWS[name]) == [0.0]
        assert reward([f"{opening}\\boxed{{4}}{closing}{answer}"], **ROWS[name]) == [1.0]


@pytest.mark.parametrize("name", ROWS)
def test_a_form_is_named_by_the_row_or_else_by_the_reward(name, monkeypatch):
    text = "\\boxed{3}\n#### 4"
    reward = REWARDS[name]()
    row = ROWS[name]
    assert reward([text], **row, answer_form=["boxed"]) == [1.0]
    assert reward([text], **row, answer_form=["hash"]) == [0.0]
    assert reward([text], **row, answer_form=["tags"]) == [0.0]
    assert reward([text], **row, answer_form=[None]) == reward([text], **row, answer_form=[""])
    assert reward([text], **row, answer_form=[r"\\boxed\{(\d)\}"]) == [1.0]
    of_all = REWARDS[name](answer_form="boxed")
    assert of_all([text], **row) == [1.0]
    assert of_all([text], **row, answer_form=["hash"]) == [0.0]
    monkeypatch.setenv(f"EXTERNAL_{name}_ANSWER_FORM".upper(), "boxed")
    assert REWARDS[name]()([text], **row) == [1.0]
    assert reward.explain(text, {key: value[0] for key, value in row.items()}).reward == 0.0


def test_what_is_no_form_is_named():
    with pytest.raises(InputError, match="answer_form: must be one of tags, boxed, .*got 'box'"):
        REWARDS["accuracy"](answer_form="box")
    with pytest.raises(ValueError, match="answer_form must be one of tags, .*got 'box'"):
        REWARDS["exact_match"]()(["3"], accepted_answers=["3"], answer_form=["box"])
    # it is no mistake of this package, which the row would be left out for
    with pytest.raises(ValueError, match="answer_form must be one of tags, .*got 'box'"):
        REWARDS["accuracy"]()(["3"], solution=["3"], answer_form=["box"])
    with pytest.raises(ValueError, match="answer_form must be one of tags, .*got 7"):
        REWARDS["accuracy"]()(["3"], solution=["3"], answer_form=[7])


@pytest.mark.parametrize(
    ("text", "earned"),
    [
        ("The answer is C, 12 cm.", 1.0),
        ("The answer is C, 2 cm.", 0.0),
        ("The answer is C, D.", 0.0),
        ("The answer is most likely C.", 1.0),
        ("The correct answer is:\n\nC. 12 cm\n\nThe other options are no 12 cm.", 1.0),
        ("【答案】C", 1.0),
        ('{"answer": "C"}', 1.0),
        ("So I choose\nC", 1.0),
        ("Answer: 12 cm", 1.0),
        ("\\boxed{C}\n\nD", 0.0),
        ("C\nD", 0.0),
        ("D\nC", 0.0),
        ("A, B, C, D", 0.0),
    ],
)
def test_choices(text, earned):
    assert REWARDS["accuracy"]()([text], **CHOICE) == [earned]


@pytest.mark.parametrize(
    ("text", "gold", "earned"),
    [
        ("The answer is False.", "False", 1.0),
        ("The answer is False.", "True", 0.0),
        ("The answer is True.", "False", 0.0),
        ("The answer is not False.", "False", 0.0),
        ("The answer is No.", "No", 1.0),
        ("The answer is: Incorrect", "Incorrect", 1.0),
    ],
)
def test_false_is_paid_as_true_is(text, gold, earned):
    assert REWARDS["accuracy"]()([text], solution=[gold]) == [earned]
    assert REWARDS["exact_match"]()([text], accepted_answers=[gold]) == [earned]


def test_a_right_text_alone_on_the_last_line():
    reward = REWARDS["exact_match"]()
    texts = [
        "Rhine",
        "It is\nthe Rhine",
        "It is the Rhine",
        "The answer is Rhine or Elbe",
        "Rhine\nElbe",
    ]
    assert reward(texts, accepted_answers=["Rhine"] * 5) == [1.0, 1.0, 0.0, 0.0, 0.0]
    # no partial credit for words that state nothing
    assert REWARDS["exact_match"](partial=True)(texts[2:3], accepted_answers=["Rhine"]) == [0.0]
