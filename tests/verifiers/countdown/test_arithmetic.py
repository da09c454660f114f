"""The grammar and its exact evaluation, and the lenient notation that is rewritten into it."""

from fractions import Fraction

import pytest

from present import present
from swift_rlvr.verifiers.countdown.arithmetic import _parse_shape, parse
from swift_rlvr.verifiers.countdown.notation import to_plain


def values(text: str) -> list | str | None:
    """The value of each side, "1/0" where one divides by zero, None where the text is not in the
    grammar.
    """
    parsed = parse(text)
    if parsed is None:
        return None
    shape, numbers = parsed
    try:
        return shape.evaluate(numbers)
    except ZeroDivisionError:
        return "1/0"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7", [7]),
        ("0", [0]),
        ("1 + 2 * 3", [7]),
        ("(1 + 2) * 3", [9]),
        ("10 - 3 - 2", [5]),  # to the left
        ("16 / 4 / 2", [2]),
        ("16 / (4 / 2)", [8]),
        ("2 - 3 * 4 + 5", [-5]),
        ("2 * 3 / 4", [Fraction(3, 2)]),
        ("1 / 3 * 3", [1]),  # uneven on the way
        ("1 - 1 / 3", [Fraction(2, 3)]),
        ("-7 / 2", [Fraction(-7, 2)]),
        ("-(7 / 2) + 1 / 2", [-3]),
        ("7 / -2", [Fraction(-7, 2)]),
        ("-3 + 5", [2]),
        ("+3 - +5", [-2]),
        ("3--5", [8]),
        ("3 - -(1 + 1)", [5]),
        ("-2 * -3", [6]),
        ("-(-(3))", [3]),
        ("((((5))))", [5]),
        ("1+2=3", [3, 3]),
        ("3 = 1 + 2 = 6 / 2", [3, 3, 3]),
        ("1 / 0", "1/0"),
        ("1 / (2 - 2) = 4", "1/0"),
        ("4 = 1 / (2 - 2)", "1/0"),
        ("1 / 3 / (1 / 3 - 1 / 3)", "1/0"),
        ("\t1\n+\r2\f\v", [3]),
        (
            "12345678901234567890 * 98765432109876543210",
            [12345678901234567890 * 98765432109876543210],
        ),
        ("99999 + 1", [100000]),  # runs of five digits do not shrink to one in the skeleton
        # Not in the grammar; more of them in the table of test_verifier.py.
        ("()", None),
        ("(1", None),
        ("1)", None),
        (")1(", None),
        ("(1 = 1)", None),
        ("1 +", None),
        ("* 1", None),
        ("1 2 = 12", None),
        ("(2)3", None),
        ("=", None),
        ("007", None),
        ("0 0", None),
        ("1 + ２", None),  # full-width is lenient notation, not the grammar
    ],
)
def test_values(text, expected):
    assert values(text) == expected


def test_even_divisions_stay_integers():
    assert all(type(value) is int for value in present(values("(8 / 2) * 3 / 6 = 6 / 3")))


def test_numbers_by_side():
    shape, numbers = present(parse("12 + 5 = 17 = (20 - 3)"))
    assert [numbers[side] for side in shape.sides] == [[12, 5], [17], [20, 3]]


def test_evaluating_leaves_the_numbers_alone():
    shape, numbers = present(parse("1 / 2 + 3"))
    assert shape.evaluate(numbers) == shape.evaluate(numbers) == [Fraction(7, 2)]
    assert numbers == [1, 2, 3]


def test_depth_is_no_limit():
    """Nothing recurses, and white space costs nothing. `verify` bounds the length of what is
    parsed.
    """
    assert values("(" * 10_000 + "5" + ")" * 10_000) == [5]
    assert values("(" * 10_001 + "5" + ")" * 10_000) is None
    assert values("1" + " " * 100_000 + "+ 2") == [3]
    assert values("+".join(["1"] * 10_000)) == [10_000]
    assert values("9" * 4000) == [int("9" * 4000)]
    assert values("0" * 4000) is None


def test_long_shapes_are_not_kept():
    _parse_shape.cache_clear()
    for count in range(40, 140):
        assert values("+".join(["1"] * count)) == [count]
    assert _parse_shape.cache_info().currsize == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2", [3]),
        ("6 × 2 ÷ 3 − 1", [3]),
        ("６＋（２＊３）＝１２", [12, 12]),
        ("6 · 2 ⋅ 3 ∙ 1 ∗ 1", [36]),
        ("6 ∕ 2 ⁄ 3 – 1", [0]),
        ("$1 + 2$", [3]),
        ("`1 + 2`", [3]),
        ("```\n1 + 2\n```", [3]),
        (r"\(1 + 2\)", [3]),
        (r"\[1 + 2 = 3\]", [3, 3]),
        (r"\frac{1}{2} + \dfrac{3}{2}", [2]),
        (r"\frac{1 + 2}{\frac{3}{4}}", [4]),
        (r"\frac {6} {2}", [3]),
        (r"2 \times \left(3 + 4\right) \div 7", [2]),
        (r"2 \cdot 3 \ast 4", [24]),
        (r"1\,+\;2", [3]),
        (r"\boxed{1 + 2}", [3]),
        (r"\boxed{1 + 2 = 3}", [3, 3]),
        (r"1 + 2 = \boxed{3}", [3, 3]),
        (r"\boxed{3} = 1 + 2", [3, 3]),
        (r"$\boxed{\boxed{3}}$", [3]),
        (r"-\frac{4}{2}", [-2]),
        # Refused; more of them in the table of test_verifier.py.
        ("2 ÷/ 3", None),
        (r"2 \times\times 3", None),
        (r"1\,2 + 3", None),
        (r"1\left2", None),
        (r"1{2}", None),
        ("{1} + 2", None),
        (r"\frac{1}", None),
        (r"\frac{1}{2", None),
        (r"\frac{1}{2}}", None),
        (r"2\frac{1}{2}", None),
        (r"3 * \boxed{1 + 2}", None),
        (r"\boxed{1}\boxed{2}", None),
        (r"\frac{\boxed{1}}{2}", None),
        (r"\boxed", None),
        (r"\boxed{}", None),
        (r"\timesx 3", None),
        ("1 + 2\\", None),
        (r"1 \% 2", None),
    ],
)
def test_lenient_notation(text, expected):
    plain = to_plain(text)
    assert (values(plain) if plain is not None else None) == expected


def test_rewriting_never_makes_a_text_longer():
    """So the bound on the text bounds what is parsed."""
    for text in (r"\frac{1}{2}", r"\boxed{1}", "１×２", r"\left(1\right)"):
        assert len(present(to_plain(text))) <= len(text)
