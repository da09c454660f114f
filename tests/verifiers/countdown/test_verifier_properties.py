"""Properties of the verifier against an evaluator of its own: trees are built, computed with
Fraction, then written.
"""

import random
from fractions import Fraction

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from swift_rlvr.verifiers.countdown import Reason, verify

NUMBERS = st.lists(st.integers(0, 120), min_size=1, max_size=6)
SPACE = st.sampled_from(["", " ", "\n", "  "])
SIGNS = {"+": "+＋", "-": "-−–", "*": "*×·⋅", "/": "/÷∕"}


def tree(rng: random.Random, numbers: list[int]) -> int | tuple:
    """A random binary tree over the numbers: an int, ("-", tree) or (operator, left, right)."""
    node: int | tuple
    if len(numbers) == 1:
        node = numbers[0]
    else:
        cut = rng.randrange(1, len(numbers))
        node = (rng.choice("+-*/"), tree(rng, numbers[:cut]), tree(rng, numbers[cut:]))
    return ("-", node) if rng.random() < 0.1 else node


def compute(node) -> Fraction | None:
    """The exact value, or None where something is divided by zero."""
    if isinstance(node, int):
        return Fraction(node)
    operands = []
    for child in node[1:]:
        operand = compute(child)
        if operand is None:
            return None
        operands.append(operand)
    if len(operands) == 1:
        return -operands[0]
    a, b = operands
    if node[0] == "/":
        return a / b if b else None
    return {"+": a + b, "-": a - b, "*": a * b}[node[0]]


def write(rng: random.Random, node, lenient: bool, top: bool = True) -> str:
    """The tree as text, every inner node in parentheses, so that no precedence is needed to read
    it.
    """
    if isinstance(node, int):
        return str(node)
    parts = [write(rng, child, lenient, top=False) for child in node[1:]]
    if lenient and node[0] == "/" and len(parts) == 2 and rng.random() < 0.3:
        return rf"\frac{{{parts[0]}}}{{{parts[1]}}}"
    space = rng.choice(["", " ", "\n"])
    sign = space + (rng.choice(SIGNS[node[0]]) if lenient else node[0]) + space
    text = sign + parts[0] if len(parts) == 1 else parts[0] + sign + parts[1]
    return text if top and rng.random() < 0.5 else f"({text})"


@given(NUMBERS, st.randoms(use_true_random=False), st.booleans(), st.integers(-1, 1))
@settings(max_examples=500, deadline=None)
def test_credited_exactly_when_the_exact_value_is_the_target(numbers, rng, lenient, off):
    node = tree(rng, rng.sample(numbers, len(numbers)))
    value, completion = compute(node), f"<answer>{write(rng, node, lenient)}</answer>"
    target = (5 if value is None else int(value)) + off
    verdict = verify(completion, numbers, target, notation="lenient" if lenient else "strict")
    if value is None:
        assert verdict.reason is Reason.DIVISION_BY_ZERO
    else:
        assert verdict.value == value
        assert verdict.reason is (Reason.CORRECT if value == target else Reason.WRONG_VALUE)


@given(NUMBERS, st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_precedence_without_parentheses(numbers, rng):
    """Products and quotients first, from left to right; then sums and differences."""
    operators = rng.choices("+-*/", k=len(numbers) - 1)
    terms = [Fraction(numbers[0])]
    for operator, number in zip(operators, numbers[1:], strict=True):
        assume(operator != "/" or number)
        if operator in "+-":
            terms.append(Fraction(number if operator == "+" else -number))
        else:
            terms[-1] = terms[-1] * number if operator == "*" else terms[-1] / number
    text = str(numbers[0]) + "".join(
        f" {sign} {number}" for sign, number in zip(operators, numbers[1:], strict=True)
    )
    assert verify(f"<answer>{text}</answer>", numbers, 0).value == sum(terms)


@given(NUMBERS, NUMBERS, st.randoms(use_true_random=False))
@settings(max_examples=200, deadline=None)
def test_other_numbers_earn_nothing(used, numbers, rng):
    assume(sorted(used) != sorted(numbers))
    node = tree(rng, used)
    value = compute(node)
    verdict = verify(
        f"<answer>{write(rng, node, False)}</answer>", numbers, 0 if value is None else int(value)
    )
    if set(used) - set(numbers):
        assert verdict.reason is Reason.EXTRA_NUMBER
    elif any(used.count(number) > numbers.count(number) for number in used):
        assert verdict.reason is Reason.REUSED_NUMBER
    else:
        assert verdict.reason is Reason.MISSING_NUMBER


@given(
    st.lists(st.tuples(NUMBERS, st.randoms(use_true_random=False)), min_size=1, max_size=3),
    st.integers(0, 2),
)
@settings(max_examples=200, deadline=None)
def test_an_equation_is_right_when_every_side_is_the_target(sides, which):
    nodes = [tree(rng, numbers) for numbers, rng in sides]
    results = [compute(node) for node in nodes]
    assume(None not in results)
    numbers, value = sides[which % len(sides)][0], results[which % len(sides)]
    text = " = ".join(write(rng, node, False) for node, (_, rng) in zip(nodes, sides, strict=True))
    verdict = verify(f"<answer>{text}</answer>", numbers, int(value))
    assert (verdict.reward == 1.0) == all(result == int(value) for result in results)


@given(
    st.text() | st.text(alphabet="0123456789+-*/()= .<>answerthik\\{}$\0\ud800×１²"),
    st.sampled_from(
        [
            "{}",
            "<answer>{}</answer>",
            "<think>{}</think><answer>{}",
            "</think>{}<answer>{}</answer>",
        ]
    ),
    st.sampled_from(["lenient", "strict"]),
)
@example("\\", "<answer>{}</answer>", "lenient")
@example("0" * 5000, "<answer>{}</answer>", "lenient")
@settings(max_examples=500, deadline=None)
def test_arbitrary_text_never_raises(text, form, notation):
    completion = form.replace("{}", text)
    verdict = verify(completion, [1, 2, 3], 6, notation=notation)
    assert verdict.reward in (0.0, 1.0)
    assert (verdict.reward == 1.0) == (verdict.reason is Reason.CORRECT)


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(JUNK, JUNK, JUNK)
@settings(max_examples=300, deadline=None)
def test_arbitrary_columns_never_raise(completion, nums, target):
    verdict = verify(completion, nums, target)
    assert (verdict.reward is None) == (verdict.reason is Reason.BAD_GOLD)
