"""The grammar and its exact evaluation, and the lenient notation that is rewritten into it."""

from fractions import Fraction

import pytest
from swift_rlvr.countdown.arithmetic import MAX_CHARS, _parse_shape, solve, solve_all
from swift_rlvr.countdown.notation import to_plain


def values(text: str) -> list | None:
    """The value of each side."""
    solved = solve(text)
    return None if solved is None else [solved[1][root] for root in solved[0].roots]


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
        ("1 / 0", [None]),
        ("1 / (2 - 2) = 4", [None, 4]),
        ("1 / 3 / (1 / 3 - 1 / 3)", [None]),
        ("\t1\n+\r2\f\v", [3]),
        ("12345678901234567890 * 98765432109876543210", [12345678901234567890 * 98765432109876543210]),
        ("99999 + 1", [100000]),  # runs of five digits do not shrink to one in the skeleton
        # Not in the grammar.
        ("", None),
        ("   ", None),
        ("()", None),
        ("(1", None),
        ("1)", None),
        (")1(", None),
        ("(1 = 1)", None),
        ("1 +", None),
        ("* 1", None),
        ("1 2", None),
        ("1\n2", None),
        ("1 2 = 12", None),
        ("2(3)", None),
        ("(2)3", None),
        ("(2)(3)", None),
        ("--5", None),
        ("3 - --5", None),
        ("3 + - + 5", None),
        ("2 ** 3", None),
        ("2 * * 3", None),
        ("7 // 2", None),
        ("7 / / 2", None),
        ("1 == 1", None),
        ("= 1", None),
        ("1 =", None),
        ("=", None),
        ("1.5", None),
        ("1.", None),
        ("1e3", None),
        ("0x1f", None),
        ("1_000", None),
        ("1,000", None),
        ("007", None),
        ("00", None),
        ("0 0", None),
        ("١ + ٢", None),  # digits of other scripts
        ("1 + ２", None),  # full-width is lenient notation, not the grammar
        ("1\u00a0+ 2", None),
        ("1\u200b+ 2", None),
        ("1 + 2\0", None),
        ("1 + \ud800", None),
        ("n + n", None),
    ],
)
def test_solve(text, expected):
    assert values(text) == expected


def test_even_divisions_stay_integers():
    assert all(type(value) is int for value in solve("(8 / 2) * 3 / 6")[1])


def test_many_at_once_as_one_by_one():
    texts = ["1 + 2", "", "1\0+2", "1 + 2", "4 / 3", "\0", "1 2", "x", "\ud800", "1 / 0", "(" * 99 + "5" + ")" * 99]
    assert solve_all(texts) == [solve(text) for text in texts]
    assert solve_all([]) == []


def test_length_and_depth_are_bounded():
    """The bound is on the text; white space does not count, and nothing on the way recurses."""
    depth = (MAX_CHARS - 1) // 2
    assert values("(" * depth + "5" + ")" * depth) == [5]
    assert values("(" * (depth + 1) + "5" + ")" * (depth + 1)) is None
    assert values("9" * MAX_CHARS) == [int("9" * MAX_CHARS)]
    assert values("9" * (MAX_CHARS + 1)) is None
    assert values("1" + " " * 100_000 + "+ 2") == [3]
    assert values("+".join(["1"] * (MAX_CHARS // 2))) == [MAX_CHARS // 2]


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
        # Refused.
        ("2³", None),
        ("2₃", None),
        ("½ + 1", None),
        ("①+1", None),
        ("𝟏 + 1", None),
        ("2×*3", None),
        ("2 ÷/ 3", None),
        (r"2 \times\times 3", None),
        ("1$2", None),
        (r"1\,2 + 3", None),
        (r"1\left2", None),
        (r"1{2}", None),
        ("{1} + 2", None),
        (r"\frac12", None),
        (r"\frac{1}", None),
        (r"\frac{1}{2", None),
        (r"\frac{1}{2}}", None),
        (r"2\frac{1}{2}", None),
        (r"\boxed{1 + 2} * 3", None),  # a box is not a parenthesis
        (r"3 * \boxed{1 + 2}", None),
        (r"\boxed{1}\boxed{2}", None),
        (r"\frac{\boxed{1}}{2}", None),
        (r"\boxed", None),
        (r"\boxed{}", None),
        (r"\sqrt{4}", None),
        (r"\text{3}", None),
        (r"\timesx 3", None),
        ("1 + 2\\", None),
        (r"1 \% 2", None),
        ("[1 + 2]", None),
    ],
)
def test_lenient_notation(text, expected):
    plain = to_plain(text)
    assert (values(plain) if plain is not None else None) == expected


def test_rewriting_never_makes_a_text_longer():
    """So the bound on the text bounds what is parsed."""
    for text in (r"\frac{1}{2}", r"\boxed{1}", "１×２", r"\left(1\right)"):
        assert len(to_plain(text)) <= len(text)
