"""The verifier's parameters: notation, the forms of nums and target, and what a verdict holds."""

from fractions import Fraction

import pytest

from swift_rlvr.verifiers.countdown import Reason, verify

R = Reason
N3 = [1, 2, 3]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("1 + 2 * 3 = 7", R.CORRECT),
        ("\n1 + 2\n* 3\n", R.CORRECT),
        ("1 + 2 × 3", R.NOT_AN_EXPRESSION),
        (r"1 + 2 \times 3", R.NOT_AN_EXPRESSION),
        ("$1 + 2 * 3$", R.NOT_AN_EXPRESSION),
        ("`1 + 2 * 3`", R.NOT_AN_EXPRESSION),
        ("１ + 2 * 3", R.NOT_AN_EXPRESSION),
        ("1 + 2 * 3\u00a0", R.NOT_AN_EXPRESSION),
        ("\u3000", R.NOT_AN_EXPRESSION),
        ("1 + 2 * 3 = 7.0", R.NOT_AN_EXPRESSION),
        ("2 ** 3", R.FORBIDDEN_OPERATOR),
        (" \n ", R.EMPTY_ANSWER),
    ],
)
def test_strict_notation_reads_plain_ascii_only(answer, reason):
    assert verify(f"<answer>{answer}</answer>", N3, 7, notation="strict").reason is reason


@pytest.mark.parametrize("notation", ["Lenient", "", None, 1])
def test_other_notations_are_refused(notation):
    with pytest.raises(ValueError, match="notation must be 'lenient' or 'strict'"):
        verify("<answer>1</answer>", [1], 1, notation=notation)


@pytest.mark.parametrize(
    "nums",
    [
        [1, 2, 3],
        (3, 2, 1),
        "[1, 2, 3]",
        "(1, 2, 3)",
        "1,2,3",
        " 1 2  3 ",
        "[1 2\n 3]",
        [1.0, 2, "3"],
    ],
)
@pytest.mark.parametrize("target", [6, 6.0, "6", " 6 ", "6.0", "+6"])
def test_forms_of_the_gold(nums, target):
    assert verify("<answer>1 + 2 + 3</answer>", nums, target).reward == 1.0
    assert verify("<answer>1 + 2 * 3</answer>", nums, target).reward == 0.0


def test_array_golds():
    numpy = pytest.importorskip("numpy")
    answer = "<answer>1 + 2 + 3</answer>"
    for dtype in ("int64", "uint8", "float32", object):
        assert verify(answer, numpy.array([1, 2, 3], dtype=dtype), 6).reward == 1.0
    assert verify(answer, [numpy.int64(1), numpy.int32(2), 3], numpy.int64(6)).reward == 1.0
    assert verify(answer, N3, numpy.float32(6)).reward == 1.0
    assert verify(answer, N3, numpy.array(6)).reward == 1.0
    for bad in (
        numpy.array([]),
        numpy.array(6),
        numpy.array([1.5]),
        numpy.array([True]),
        numpy.array([[1, 2, 3]]),
    ):
        assert verify(answer, bad, 6).reason is R.BAD_GOLD
    assert verify(answer, N3, numpy.float64("nan")).reason is R.BAD_GOLD
    assert verify(answer, [numpy.bool_(True), 2, 3], 6).reason is R.BAD_GOLD


def test_what_a_verdict_holds():
    verdict = verify("<answer> 1 / 2 × 3 </answer>", N3, 2)
    assert verdict == (0.0, R.WRONG_VALUE, "1 / 2 × 3", Fraction(3, 2))
    assert verify("<answer>7 = 1 + 2 * 3</answer>", N3, 7)[2:] == ("7 = 1 + 2 * 3", Fraction(7))
    assert verify("<answer>9 = 1 + 2 * 3</answer>", N3, 9)[1:] == (
        R.FALSE_EQUATION,
        "9 = 1 + 2 * 3",
        Fraction(7),
    )
    assert type(verify("<answer>1 + 2</answer>", [1, 2], 3).value) is Fraction
    assert verify("<answer>what</answer>", N3, 7)[2:] == ("what", None)
    assert verify("none", N3, 7)[2:] == (None, None)
    assert f"{R.WRONG_VALUE}" == "wrong value"


def test_the_given_numbers_are_not_changed():
    nums = [3, 1, 2]
    verify("<answer>1 + 2 + 3</answer>", nums, 6)
    assert nums == [3, 1, 2]
