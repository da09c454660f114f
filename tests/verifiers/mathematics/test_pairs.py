"""The table in pairs.py, row by row, and what holds for all of its golds: written alike is right,
changed is not.
"""

import collections

import pytest
from swift_rlvr.verifiers.answers import marked_answer
from swift_rlvr.verifiers.mathematics import Reason, grade, grade_all
from verifiers.mathematics.mutations import mutations
from verifiers.mathematics.pairs import PAIRS

IDS = [f"{number}-{comment}" for number, (_, _, _, comment) in enumerate(PAIRS)]
GOLDS = list(
    dict.fromkeys(gold for gold, *_ in PAIRS if isinstance(gold, str) and grade("5", gold).gold)
)
BARE = [gold for gold in GOLDS if marked_answer(gold) is None]  # not marked within a solution
# (gold, a mutation of it, why it is right all the same)
STILL_RIGHT = [
    (r"\binom{5}{2}", r"\binom{5}{3}", "binomials are symmetric"),
    (
        r"x = \frac{n\pi}{6}, n \in \mathbb{Z}",
        r"x = \frac{n\pi}{6}",
        "the parameter's domain is understood",
    ),
    (
        r"x = 2k\pi \text{ or } x = (2k+1)\pi, k \in \mathbb{Z}",
        r"x = 2k\pi \text{ or } x = (2k+1)\pi",
        "the parameter's domain is understood",
    ),
    (
        r"x = 2k\pi \text{ or } x = (2k+1)\pi, k \in \mathbb{Z}",
        r"x = 2k\pi \text{ or } x = (2k-1)\pi, k \in \mathbb{Z}",
        "the odd numbers are also those before the even ones",
    ),
    (
        r"8 \, \text{meters per second}",
        "8 \\",
        "the unit may be left out, and a backslash at the end is a slip",
    ),
    (r"\frac{1}{x-2}, x \neq 2", r"\frac{1}{x-2}", "the fraction has its condition in itself"),
]


@pytest.mark.parametrize("gold, text, expected, comment", PAIRS, ids=IDS)
def test_reward(gold, text, expected, comment):
    verdict = grade(text, gold)
    assert verdict.reward == expected, f"{verdict.reason}: {comment}"
    assert verdict.reward is None or type(verdict.reward) is float
    assert isinstance(verdict.reason, Reason) and verdict.reason is not Reason.ERROR


@pytest.mark.parametrize("gold", GOLDS)
def test_an_answer_written_like_the_gold_is_right(gold):
    answer = grade("5", gold).gold
    texts = [f"<answer>{answer}</answer>"]
    if answer.count("{") == answer.count("}"):
        texts.append(rf"\boxed{{{answer}}}")
    if "$" not in answer:
        texts.append(f"<answer> ${answer}$ </answer>")
    assert [grade(text, gold).reward for text in texts] == [1.0] * len(texts)


@pytest.mark.parametrize("gold", BARE)
def test_a_gold_changed_in_one_place_is_not_paid(gold):
    expected = {text for each, text, _ in STILL_RIGHT if each == gold}
    paid = {text for _, text in mutations(gold) if grade(rf"\boxed{{{text}}}", gold).reward == 1.0}
    assert paid == expected


def test_every_kind_of_change_is_among_the_mutations():
    kinds = collections.Counter(kind for gold in BARE for kind, _ in mutations(gold))
    assert sum(kinds.values()) >= 1500
    assert min(kinds.values()) >= 5 and kinds.keys() == {
        "digit", "sign", "sign lost", "direction", "power", "variable", "bracket", "function", "root", "constant",
        "boundary", "unit", "element lost"}  # fmt: skip


def test_no_code_of_a_completion_or_a_gold_runs(tmp_path):
    marker = tmp_path / "ran"
    code = [
        f"""__import__("os").system("touch {marker}")""",
        f"""open("{marker}", "w")""",
        rf"\input{{|touch {marker}}}",
    ]
    answers = [
        form % piece for piece in code for form in ("\\boxed{%s}", "<answer>%s</answer>", "#### %s")
    ]
    assert [verdict.reward for verdict in grade_all(answers, ["0"] * len(answers))] == [0.0] * len(
        answers
    )
    assert 1.0 not in [verdict.reward for verdict in grade_all(["\\boxed{0}"] * len(code), code)]
    assert not marker.exists()


def test_the_table_is_long_and_has_no_row_twice():
    keys = collections.Counter((repr(gold), text) for gold, text, _, _ in PAIRS)
    assert [key for key, count in keys.items() if count > 1] == []
    assert len(PAIRS) >= 810
    assert {expected for _, _, expected, _ in PAIRS} == {1.0, 0.0, None}
    assert all(comment for *_, comment in PAIRS)
