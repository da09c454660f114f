r"""What a sound human judge says about an answer (`pairs.jsonl`), case by case, and what holds for
all of its golds: written alike is right, changed is not.

A reward of 1.0 is right, 0.0 is wrong, None means that the gold cannot be graded. Where people
could disagree, the case takes the conservative side and its `why` says so. Rules that the cases
follow:

- The value counts, not the way of writing: 1/2, 0.5, ``\frac12`` and 50\% are one answer. A decimal
  is exactly itself, unless it has twelve places or more: then it stands for any number that it
  rounds.
- What the gold leaves out may be added and what it adds may be left out: units, ``x =``, a letter's
  parentheses. What contradicts it is wrong: another unit, another variable, another letter. No
  other unit is right: nothing is converted.
- 50\% stands for 0.5 and for 50, as in math_verify: a question for "what percent" is answered
  either way.
- Different numbers separated by commas are a set where nothing is known of the question, as in
  math_verify; in parentheses, with a repetition or with spaces alone they have an order. Boxes that
  stand together are one list, in the completion as in the gold; a box in earlier working counts for
  nothing.
- One answer, not several: naming the right one among others earns nothing.
- A statement such as ``\log_3 27 = 3`` is answered by the same statement, or by the value on its
  right alone.
- What is written like the gold is right, even where nothing can read it. Else all of a text is read
  or nothing.
- A ``<think>`` that is never closed hides boxes, ``####`` and sentences that follow it, but no
  answer block.
"""

import collections

import pytest

from present import present
from swift_rlvr.verifiers.answers import marked_answer
from swift_rlvr.verifiers.mathematics import Reason, grade
from verifiers.mathematics.mutations import mutations
from verifiers.mathematics.tables import PAIRS


def golds() -> list[str]:
    """The golds of the table that can be graded, each once."""
    texts = dict.fromkeys(case.gold for case in PAIRS if isinstance(case.gold, str))
    return [text for text in texts if grade("5", text).gold]


GOLDS = golds()
# those that are no solution with the answer marked in it
BARE = [gold for gold in GOLDS if marked_answer(gold) is None]
# (gold, a mutation of it, why it is right all the same)
STILL_RIGHT = [
    (r"\binom{5}{2}", r"\binom{5}{3}", "binomials are symmetric"),
    ("C_5^2", "C_5^3", "binomials are symmetric"),
    (r"C_5^2 \cdot C_4^1", r"C_5^3 \cdot C_4^1", "binomials are symmetric"),
    (
        r"x = \frac{n\pi}{6}, n \in \mathbb{Z}",
        r"x = \frac{n\pi}{6}",
        "the parameter's domain is understood",
    ),
    (
        r"x=k\pi, k \in \mathbb{Z}",
        r"x=k\pi",
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
    (r"\frac{1}{x}, x > 0", r"\frac{1}{x}", "a condition left out"),
]


@pytest.mark.parametrize(
    "case", PAIRS, ids=[f"{number}-{case.why}" for number, case in enumerate(PAIRS)]
)
def test_reward(case):
    verdict = grade(case.completion, case.gold)
    assert verdict.reward == case.reward, f"{verdict.reason}: {case.section}: {case.why}"
    assert verdict.reward is None or type(verdict.reward) is float
    assert isinstance(verdict.reason, Reason) and verdict.reason is not Reason.ERROR


@pytest.mark.parametrize("gold", GOLDS)
def test_an_answer_written_like_the_gold_is_right(gold):
    answer = present(grade("5", gold).gold)
    texts = [f"<answer>{answer}</answer>"]
    if answer.count("{") == answer.count("}"):
        texts.append(rf"\boxed{{{answer}}}")
    if "$" not in answer:
        texts.append(f"<answer> ${answer}$ </answer>")
    assert [grade(text, gold).reward for text in texts] == [1.0] * len(texts)


@pytest.mark.parametrize("gold", BARE)
def test_a_gold_changed_in_one_place_is_not_paid(gold):
    still_right = {text for right, text, _ in STILL_RIGHT if right == gold}
    paid = set()
    for _, text in mutations(gold):
        if grade(rf"\boxed{{{text}}}", gold).reward == 1.0:
            paid.add(text)
    assert paid == still_right


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
    for piece in code:
        for answer in (f"\\boxed{{{piece}}}", f"<answer>{piece}</answer>", f"#### {piece}"):
            assert grade(answer, "0").reward == 0.0
        assert grade(r"\boxed{0}", piece).reward != 1.0
    assert not marker.exists()


def test_the_table_is_long_and_has_no_row_twice():
    # repr, because 5 and 5.0 are two golds
    keys = collections.Counter((repr(case.gold), case.completion) for case in PAIRS)
    assert [key for key, count in keys.items() if count > 1] == []
    assert len(PAIRS) >= 1090
    assert {case.reward for case in PAIRS} == {1.0, 0.0, None}
    assert all(case.why and case.section for case in PAIRS)
