r"""refuse_copied: a formula of the question is no answer to it, a number of the question may be."""

import json
import re

import pytest
from paths import DATASETS
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.copied import is_copied, question_of
from swift_rlvr.tasks import RowError
from swift_rlvr.tasks.sources import parse_source

ROWS = [
    # (question, gold, answer, is it copied)
    (r"What is $7^2 - 4^2$?", "33", "7^2 - 4^2", True),
    (r"What is $7^2 - 4^2$?", "33", "7^{2}-4^{2}", True),
    (r"What is $7^2 - 4^2$?", "33", "33", False),
    (r"Simplify $\sqrt{72}$.", r"6\sqrt{2}", r"\sqrt{72}", True),
    (r"Simplify $\sqrt{72}$.", r"6\sqrt{2}", r"6\sqrt2", False),
    (r"Simplify $\sqrt{72}$.", r"6\sqrt{2}", r"2\sqrt{18}", False),  # something is done
    (r"What is $\frac{2}{3} + \frac14$?", r"\frac{11}{12}", r"\dfrac23 + \frac{1}{4}", True),
    (r"Simplify $\frac{12}{18}$.", r"\frac{2}{3}", "12/18", True),
    (r"Find $\sum_{k=1}^{20} k(k+1)$.", "3080", r"\sum_{k=1}^{20} k(k+1)", True),
    (r"Expand $\left(x - 3\right)(x^2 + 9)$.", "x^3-3x^2+9x-27", "(x-3)(x^2+9)", True),
    (r"Solve $2x - 7 > 5x + 2$.", r"(-\infty, -3)", "2x-7>5x+2", True),
    (r"Find $\cos 60^\circ + \tan 45^\circ$.", r"\frac32", r"\cos 60^\circ+\tan 45^\circ", True),
    (r"Write $0.\overline{36}$ as a fraction.", r"\frac{4}{11}", r"0.\overline{36}", True),
    (r"Find $\binom{5}{2}$.", "10", r"\binom52", True),
    ("State the final answer to 8 + 2 + 4 - 1 =", "13", "8 + 2 + 4 - 1", True),
    ("Let $3!$ be the number.", "6", "3!", True),
    # a number, a name, a fraction in lowest terms, a solved equation may be the answer
    ("There are 7 days and 5 boxes.", "7.0", "7", False),
    ("Is 50% more than 1/3?", "0.5", "50%", False),
    (r"A slope of $\frac{3}{4}$.", "0.75", r"\frac34", False),
    (r"An angle of $90^\circ$.", "90", r"90^\circ", False),
    (r"An angle of $\frac{\pi}{2}$ or $3\pi/4$.", r"0.5\pi", r"\frac{\pi}{2}", False),
    (r"The points $(3, 4)$ and $(5, 6)$.", r"(3.0, 4)", "(3,4)", False),
    (r"Let $x > 0$.", r"(0, \infty)", "x > 0", False),
    (r"Let $x = 3$.", "3", "x = 3", False),
    (r"A side of $5\text{ cm}$.", "5", r"5 \text{ cm}", False),
    # the gold is written so
    (r"Is $x + 1$ or $x + 2$ a factor?", "x+1", "$x + 1$", False),
    (r"Is $\frac{x+1}{2}$ or $x$ larger?", r"\frac{x + 1}{2}", r"\dfrac{x+1}{2}", False),
    # parts of longer numbers
    ("Find 13 + 45.", "8", "3+4", False),
    ("Find 1.5 + 45.", "9", "5 + 4", False),
    ("Find 3 + 45 and 3 + 4.", "7", "3+4", True),
    # words
    ("Which day is it?", "Monday", "on Monday", False),
    ("", "7", "3+4", False),
]


@pytest.mark.parametrize(("question", "gold", "answer", "copied"), ROWS)
def test_what_is_copied(question, gold, answer, copied):
    assert is_copied(answer, gold, question) is copied
    text = rf"<think>?</think><answer>{answer}</answer>"
    messages = [{"role": "system", "content": answer}, {"role": "user", "content": question}]
    ends_with_it = [*messages, {"role": "assistant", "content": text}]
    lenient, strict = REWARDS["accuracy"](), REWARDS["accuracy"](refuse_copied=True)
    columns = {"solution": [gold] * 4, "messages": [messages, ends_with_it, None, "text"]}
    (paid, *_) = lenient([text], solution=[gold])
    expected = 0.0 if copied else paid
    assert lenient([text] * 4, **columns) == [paid] * 4
    assert strict([text] * 4, **columns) == [expected, expected, paid, paid]
    assert strict([text] * 2, solution=[gold] * 2, prompts=[messages, question]) == [expected] * 2
    explanation = strict.explain(text, {"solution": gold, "messages": messages})
    assert explanation.reward == expected
    if copied:
        assert paid == 1.0 and explanation.reason == "wrong answer"


def test_the_value_of_a_choice_stands_in_the_question():
    messages = [{"role": "user", "content": "Which?\n\nA. $x + 1$\nB. $x + 2$"}]
    columns = {"solution": ["A"], "messages": [messages], "options": [["$x + 1$", "$x + 2$"]]}
    assert REWARDS["accuracy"](refuse_copied=True)(["<answer>x+1</answer>"], **columns) == [1.0]


def test_question_of():
    turns = [{"role": "user", "content": "first"}, {"role": "assistant", "content": "so"}]
    asked_again = [*turns, {"role": "user", "content": "last"}]
    assert question_of({"messages": asked_again}) == "first\n\nlast"
    assert question_of({"prompts": asked_again}) == "first\n\nlast"
    assert question_of({"messages": turns}) == "first"
    assert question_of({"messages": [{"role": "assistant", "content": "so"}]}) is None
    assert question_of({"prompts": "text"}) == "text"
    assert question_of({}) is None
    assert question_of(json.loads('{"messages": [1, null], "prompts": 7}')) is None


def test_a_copy_is_refused_in_a_later_turn_too():
    """With several turns the last turn of the user is feedback, and the formula is in the first."""
    answer = r"<answer>$\sqrt{72}$</answer>"
    messages = [
        {"role": "user", "content": r"Simplify $\sqrt{72}$."},
        {"role": "assistant", "content": "<answer>7</answer>"},
        {"role": "user", "content": "That is wrong. Try again."},
        {"role": "assistant", "content": answer},
    ]
    columns = {"solution": [r"$6\sqrt{2}$"], "messages": [messages]}
    assert REWARDS["accuracy"]()([answer], **columns) == [1.0]
    assert REWARDS["accuracy"](refuse_copied=True)([answer], **columns) == [0.0]


FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$]+)\$", re.DOTALL)


def formulas_of(question):
    """What stands between $ in a question, and the sides of its equations."""
    for match in FORMULA.finditer(question):
        formula = match[1] or match[2]
        yield from {formula, formula.partition("=")[0], formula.rpartition("=")[2]}


def test_on_the_samples_copies_are_refused_and_golds_are_not():
    lenient, strict = REWARDS["accuracy"](), REWARDS["accuracy"](refuse_copied=True)
    rows = 0
    paid = {"without": 0, "with": 0}
    for name in ("math", "numina_math_tir", "bespoke_stratos", "gsm8k"):
        for split in ("train", "test"):
            source = parse_source(f"{name}:{DATASETS / name / split}.jsonl")
            for _, raw in source.rows():
                try:
                    row = source.task.preprocess(raw)
                except RowError:
                    continue
                rows += 1
                columns = {name: [row[name]] for name in ("solution", "messages")}
                assert strict([source.task.gold_completion(raw)], **columns) == [1.0]
                answers = set(formulas_of(row["messages"][-1]["content"]))
                texts = [f"<answer>{answer}</answer>" for answer in answers]
                columns = {name: values * len(texts) for name, values in columns.items()}
                paid["without"] += 1.0 in lenient(texts, **columns)
                paid["with"] += 1.0 in strict(texts, **columns)
    assert (rows, paid) == (123, {"without": 14, "with": 2})  # the page of the rewards says so
