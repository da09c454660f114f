"""The Countdown verifier's table: what policies write, what attacks write, and what each is worth.

Every bug adds a row. Rows give (completion, nums, target, reward, reason); a completion without a
tag is put into an answer block, so that most rows show the answer alone.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swift_rlvr.rewards.countdown import CountdownReward
from swift_rlvr.verifiers.countdown import Reason, grade_all, verify
from swift_rlvr.verifiers.countdown.verifier import MAX_CHARS

R = Reason
N3, N4 = [1, 2, 3], [1, 2, 3, 4]
LONG = "<think>" + "we try 1 + 2 = 3, too low. " * 40 + "</think>"


def block(text: str) -> str:
    return text if "<" in text else f"<answer>{text}</answer>"


TABLE = [
    # Right, in the ways policies write it.
    ("(1 + 2) / 3 * 4 = 4", N4, 4, 1.0, R.CORRECT),  # the prompt's own example
    (" (1 + 2) / 3 * 4 = 4 ", N4, 4, 1.0, R.CORRECT),
    ("\n(1 + 2) / 3 * 4\n", N4, 4, 1.0, R.CORRECT),
    ("(1+2)/3*4", N4, 4, 1.0, R.CORRECT),
    ("1 +\n2\n+ 3", N3, 6, 1.0, R.CORRECT),  # line breaks are white space
    ("1 + 2 + 3\n= 6", N3, 6, 1.0, R.CORRECT),
    (LONG + "\n<answer>1 + 2 + 3</answer>", N3, 6, 1.0, R.CORRECT),
    ("6 = 1 + 2 + 3", N3, 6, 1.0, R.CORRECT),  # the other way round
    ("(1 + 2) * 3 = 3 * 3 = 9", N3, 9, 1.0, R.CORRECT),  # a chain of true equations
    ("1 + 2 + 3 = 3 + 2 + 1", N3, 6, 1.0, R.CORRECT),
    ("7", [7], 7, 1.0, R.CORRECT),
    ("((((1)))) + (2 + (3))", N3, 6, 1.0, R.CORRECT),
    ("2 + 2", [2, 2], 4, 1.0, R.CORRECT),  # a number given twice is used twice
    ("0 * 5 + 3", [0, 5, 3], 3, 1.0, R.CORRECT),
    ("8 / (3 - 8 / 3)", [8, 3, 8, 3], 24, 1.0, R.CORRECT),  # only exact with rational numbers
    ("1 / 3 * 3", [1, 3, 3], 1, 1.0, R.CORRECT),
    ("7 / 2 + 1 / 2", [7, 2, 1, 2], 4, 1.0, R.CORRECT),
    ("1 - 2 - 3", N3, -4, 1.0, R.CORRECT),
    ("123456789 * 987654321", [123456789, 987654321], 123456789 * 987654321, 1.0, R.CORRECT),
    # Signs: at most one in front of an operand.
    ("-1 + 2 + 3", N3, 4, 1.0, R.CORRECT),
    ("+1 + 2 + 3", N3, 6, 1.0, R.CORRECT),
    ("3 - -2 + 1", N3, 6, 1.0, R.CORRECT),
    ("3--2+1", N3, 6, 1.0, R.CORRECT),
    ("3 * -(1 - 2)", N3, 3, 1.0, R.CORRECT),
    ("--1 + 2 + 3", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("3 - --2 + 1", N3, 2, 0.0, R.NOT_AN_EXPRESSION),
    ("3 +-+ 2 + 1", N3, 2, 0.0, R.NOT_AN_EXPRESSION),
    # Near misses.
    ("1 + 2 * 3", N3, 6, 0.0, R.WRONG_VALUE),
    (
        "8 / 3 * 3 + 1 / 1000000",
        [8, 3, 3, 1, 1000000],
        8,
        0.0,
        R.WRONG_VALUE,
    ),  # off by 1e-6: not near, equal
    ("10 / 3", [10, 3], 3, 0.0, R.WRONG_VALUE),
    ("1 + 2 + 3 = 7", N3, 6, 0.0, R.FALSE_EQUATION),
    (
        "1 + 2 + 3 = 7",
        N3,
        7,
        0.0,
        R.FALSE_EQUATION,
    ),  # what it claims is the target, but it is false
    ("1 + 2 + 3 = 6", N3, 7, 0.0, R.WRONG_VALUE),  # true, and beside the target
    ("1 + 2 + 3 = 3 + 3 = 7", N3, 6, 0.0, R.FALSE_EQUATION),
    ("1 + 2 = 3 + 3 = 6", N3, 6, 0.0, R.MISSING_NUMBER),  # running totals
    ("1 + 2 + 3 = ?", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 =", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("= 1 + 2 + 3", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 == 6", N3, 6, 0.0, R.FORBIDDEN_OPERATOR),
    ("1 + 2 + 3 ≈ 6", N3, 6, 0.0, R.FORBIDDEN_OPERATOR),
    ("1 + 2 + 3 != 7", N3, 6, 0.0, R.FORBIDDEN_OPERATOR),
    ("1 / (2 - 2)", [1, 2, 2], 0, 0.0, R.DIVISION_BY_ZERO),
    ("1 + 2 + 3 = 6 / 0", N3, 6, 0.0, R.DIVISION_BY_ZERO),
    ("1 / 3 / (2 / 3 - 2 / 3)", [1, 3, 2, 3, 2, 3], 0, 0.0, R.DIVISION_BY_ZERO),
    ("0 / 0", [0, 0], 0, 0.0, R.DIVISION_BY_ZERO),
    # The wrong numbers.
    ("1 + 2", N3, 3, 0.0, R.MISSING_NUMBER),
    ("6", N3, 6, 0.0, R.EXTRA_NUMBER),  # the target alone
    ("6 = 6", N3, 6, 0.0, R.EXTRA_NUMBER),
    ("1 + 2 + 3 + 0", N3, 6, 0.0, R.EXTRA_NUMBER),
    ("1 + 2 + 3 + 3 - 3", N3, 6, 0.0, R.REUSED_NUMBER),
    ("3 + 3", N3, 6, 0.0, R.REUSED_NUMBER),
    ("2 + 2", [2, 2, 2], 4, 0.0, R.MISSING_NUMBER),
    ("12 + 3", N3, 15, 0.0, R.EXTRA_NUMBER),  # digits joined
    ("1 2 + 3", N3, 15, 0.0, R.NOT_AN_EXPRESSION),
    ("1\n2 + 3", N3, 15, 0.0, R.NOT_AN_EXPRESSION),
    ("1\u00a02 + 3", N3, 15, 0.0, R.NOT_AN_EXPRESSION),
    ("1\u200b2 + 3", N3, 15, 0.0, R.NOT_AN_EXPRESSION),  # a zero-width space
    ("1$2 + 3", N3, 15, 0.0, R.NOT_AN_EXPRESSION),
    ("3 + 3 = 1 + 2 + 3", N3, 6, 1.0, R.CORRECT),  # the side that uses the numbers may be any
    ("1 + 2 = 3", N3, 3, 0.0, R.MISSING_NUMBER),  # the numbers of two sides are not added up
    ("01 + 2 + 3", N3, 6, 0.0, R.NOT_AN_EXPRESSION),  # the given number is 1, not 01
    ("00 + 5", [0, 5], 5, 0.0, R.NOT_AN_EXPRESSION),
    ("1,000 + 2", [1000, 2], 1002, 0.0, R.NOT_AN_EXPRESSION),
    ("1_0 + 2", [10, 2], 12, 0.0, R.NOT_AN_EXPRESSION),
    # Operators and literals that Python's eval would take.
    ("2 ** 3 + 1", N3, 9, 0.0, R.FORBIDDEN_OPERATOR),
    ("7 // 2", [7, 2], 3, 0.0, R.FORBIDDEN_OPERATOR),
    ("7 % 2", [7, 2], 1, 0.0, R.FORBIDDEN_OPERATOR),
    ("2 ^ 3 + 1", N3, 9, 0.0, R.FORBIDDEN_OPERATOR),
    ("2^{3} + 1", N3, 9, 0.0, R.FORBIDDEN_OPERATOR),
    ("3! * 1 * 2", N3, 12, 0.0, R.FORBIDDEN_OPERATOR),
    ("<answer>1 << 2 + 3</answer>", N3, 32, 0.0, R.FORBIDDEN_OPERATOR),
    ("~1 + 2 + 3", N3, 3, 0.0, R.FORBIDDEN_OPERATOR),
    ("1 | 2 | 3", N3, 3, 0.0, R.FORBIDDEN_OPERATOR),
    ("√4 + 1", [4, 1], 3, 0.0, R.FORBIDDEN_OPERATOR),
    ("**1 + 2 + 3**", N3, 6, 0.0, R.FORBIDDEN_OPERATOR),  # Markdown; it cannot be told from a power
    ("2 * * 3 + 1", N3, 9, 0.0, R.NOT_AN_EXPRESSION),
    ("7 / / 2", [7, 2], 3, 0.0, R.NOT_AN_EXPRESSION),
    ("9**9**9**9", [9, 9, 9, 9], 1, 0.0, R.FORBIDDEN_OPERATOR),
    ("1.5 * 2", [1, 5, 2], 3, 0.0, R.NOT_AN_EXPRESSION),
    ("1. + 2. + 3.", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    # The result at the end may have a point and zeros; nothing else may.
    ("1 + 2 + 3 = 6.0", N3, 6, 1.0, R.CORRECT),
    ("(1 + 2) * 3 = 3 * 3 = 9.000\n", N3, 9, 1.0, R.CORRECT),
    (r"$1 + 2 + 3 = \boxed{6.0}$", N3, 6, 1.0, R.CORRECT),
    ("1 - 2 - 3 = -4.0", N3, -4, 1.0, R.CORRECT),
    ("1 + 2 + 3 = 6.0", N3, 7, 0.0, R.WRONG_VALUE),
    ("1 + 2 + 3 = 7.0", N3, 7, 0.0, R.FALSE_EQUATION),
    ("1 + 2 + 3 = 60.0", N3, 6, 0.0, R.FALSE_EQUATION),
    ("1 + 2 = 3.0", N3, 3, 0.0, R.MISSING_NUMBER),
    ("6 = 6.0", N3, 6, 0.0, R.EXTRA_NUMBER),
    ("1 + 2 + 3 = 6.01", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 = 6.0000001", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("10 / 3 = 3.3", [10, 3], 3, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 = 6.0.0", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 = 06.0", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 = .0", N3, 0, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 = 6,0", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 = 6 .0", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 = 6.0 + 0", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 = 6.0 = 6", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("6.0 = 1 + 2 + 3", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1.0 + 2 + 3 = 6", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1.0 + 2.0 + 3.0 = 6.0", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3.0", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("6.0", [6], 6, 0.0, R.NOT_AN_EXPRESSION),
    ("6.0 = 6.0", [6], 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 = 6.", N3, 6, 0.0, R.NOT_AN_EXPRESSION),  # a full stop is no part of an expression
    (".1 + 2", [1, 2], 2, 0.0, R.NOT_AN_EXPRESSION),
    ("1e3 + 2", [1, 3, 2], 1002, 0.0, R.NOT_AN_EXPRESSION),
    ("0x1 + 2", [0, 1, 2], 3, 0.0, R.NOT_AN_EXPRESSION),
    ("1j * 2", [1, 2], 2, 0.0, R.NOT_AN_EXPRESSION),
    ("2(3) + 1", N3, 7, 0.0, R.NOT_AN_EXPRESSION),  # multiplication without a sign
    ("(1 + 2)(3)", N3, 9, 0.0, R.NOT_AN_EXPRESSION),
    ("[1 + 2] * 3", N3, 9, 0.0, R.NOT_AN_EXPRESSION),  # parentheses only
    ("{1 + 2} * 3", N3, 9, 0.0, R.NOT_AN_EXPRESSION),
    ("1, 2, 3", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 # - 6", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3; 0", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("2 x 3 + 1", N3, 7, 0.0, R.NOT_AN_EXPRESSION),  # the letter is a name
    ("2 mod 3", [2, 3], 2, 0.0, R.NOT_AN_EXPRESSION),
    # Injections.
    ("__import__('os').system('true')", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("(lambda: 6)()", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("target", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("6 if 1 + 2 + 3 else 0", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 or 7", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("n + n + n", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("%s + 2 + 3", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3\0", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2\0+ 3", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3\ud800", N3, 6, 0.0, R.NOT_AN_EXPRESSION),  # a lone surrogate
    ("\ufeff1 + 2 + 3", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 &#43; 2 + 3", N3, 6, 0.0, R.FORBIDDEN_OPERATOR),
    ("2 &times; 3 + 1", N3, 7, 0.0, R.NOT_AN_EXPRESSION),
    # A note behind the equation, right or wrong, is none of the task's.
    ("1 + 2 + 3 = 6 (uses every number once)", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 = 6\nThis uses all the numbers.", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 = 6, as wanted", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 = 6 (or 1 * 2 * 3 = 6)", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 = 6 is wrong; there is no solution", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 * 3 = 6 (close enough)", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    # Words and layout around the expression.
    ("The answer is 1 + 2 + 3", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 = 6!\nDone", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("x = 1 + 2 + 3", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    (
        "1 + 2 = 3\n3 + 3 = 6",
        N3,
        6,
        0.0,
        R.NOT_AN_EXPRESSION,
    ),  # working line by line: reads "... = 3 3 + ..."
    ("'1 + 2 + 3'", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("```python\n1 + 2 + 3\n```", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("1 + 2 + 3 =\u20096", N3, 6, 1.0, R.CORRECT),  # a typographic space
    # Typographic and LaTeX notation.
    ("2 × 3 + 1", N3, 7, 1.0, R.CORRECT),
    ("3 ÷ 1 − 2", N3, 1, 1.0, R.CORRECT),
    ("2 · 3 – 1", N3, 5, 1.0, R.CORRECT),
    ("（１＋２）×３＝９", N3, 9, 1.0, R.CORRECT),
    (r"$\frac{1 + 2}{3}$", N3, 1, 1.0, R.CORRECT),
    (r"\frac{\frac{1}{2}}{3} = \frac{1}{6}", N3, 0, 0.0, R.WRONG_VALUE),
    (r"\left( 1 + 2 \right) \times 3 = \boxed{9}", N3, 9, 1.0, R.CORRECT),
    (r"\boxed{(1 + 2) \cdot 3 = 9}", N3, 9, 1.0, R.CORRECT),
    (r"\boxed{1 + 2} * 3", N3, 9, 0.0, R.NOT_AN_EXPRESSION),
    (r"\[ 3 \div 1 - 2 \]", N3, 1, 1.0, R.CORRECT),
    ("`1 + 2 + 3`", N3, 6, 1.0, R.CORRECT),
    (r"\sqrt{4} + 1", [4, 1], 3, 0.0, R.NOT_AN_EXPRESSION),
    (r"1 + 2 + 3 \text{ is right}", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    (r"\frac12 + 3", N3, 3, 0.0, R.NOT_AN_EXPRESSION),
    ("2×*3 + 1", N3, 9, 0.0, R.FORBIDDEN_OPERATOR),  # two signs do not add up to a power
    ("7 ∕/ 2", [7, 2], 3, 0.0, R.FORBIDDEN_OPERATOR),
    ("2³ + 1", [2, 3, 1], 24, 0.0, R.FORBIDDEN_OPERATOR),  # an exponent is not the digit of 23
    ("2³ + 1", [23, 1], 24, 0.0, R.FORBIDDEN_OPERATOR),
    ("2₃ + 1", [23, 1], 24, 0.0, R.NOT_AN_EXPRESSION),
    ("١ + ٢ + ٣", N3, 6, 0.0, R.NOT_AN_EXPRESSION),  # Arabic digits
    ("१ + २ + ३", N3, 6, 0.0, R.NOT_AN_EXPRESSION),  # Devanagari digits
    ("𝟏 + 𝟐 + 𝟑", N3, 6, 0.0, R.NOT_AN_EXPRESSION),  # mathematical bold
    ("½ + 3", N3, 3, 0.0, R.NOT_AN_EXPRESSION),
    ("① + ② + ③", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("Ⅰ + Ⅱ + Ⅲ", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    # Tags.
    ("<think>hm</think>", N3, 6, 0.0, R.NO_ANSWER),
    ("<answer>1 + 2 + 3", N3, 6, 0.0, R.UNCLOSED_ANSWER),
    ("<answer>1 + 2 + 3<answer>", N3, 6, 0.0, R.UNCLOSED_ANSWER),
    ("1 + 2 + 3</answer>", N3, 6, 0.0, R.NO_ANSWER),
    ("<answer></answer>", N3, 6, 0.0, R.EMPTY_ANSWER),
    ("<answer> \n\t\u3000</answer>", N3, 6, 0.0, R.EMPTY_ANSWER),
    ("<think><answer>1 + 2 + 3</answer></think>", N3, 6, 0.0, R.NO_ANSWER),
    ("<think><answer>1 + 2 + 3</answer></think><answer>", N3, 6, 0.0, R.UNCLOSED_ANSWER),
    ("<think><answer>1 + 2 + 3</answer></think><answer>7</answer>", N3, 6, 0.0, R.EXTRA_NUMBER),
    (
        "<think>so <answer>1 + 2 + 3</answer>",
        N3,
        6,
        1.0,
        R.CORRECT,
    ),  # the think part was never closed
    ("<answer>1 + 2 + 3</answer></think>", N3, 6, 0.0, R.NO_ANSWER),
    ("<answer>7</answer><answer>1 + 2 + 3</answer>", N3, 6, 1.0, R.CORRECT),  # the last one counts
    ("<answer>1 + 2 + 3</answer><answer>7</answer>", N3, 6, 0.0, R.EXTRA_NUMBER),
    (
        "<answer>1 + 2 + 3</answer><answer>1 + 2",
        N3,
        6,
        1.0,
        R.CORRECT,
    ),  # cut off while repeating itself
    ("<answer><answer>1 + 2 + 3</answer></answer>", N3, 6, 1.0, R.CORRECT),
    ("<ANSWER>1 + 2 + 3</ANSWER>", N3, 6, 0.0, R.NO_ANSWER),
    ("<answer id=1>1 + 2 + 3</answer>", N3, 6, 0.0, R.NO_ANSWER),
    ("<answer><b>1 + 2 + 3</b></answer>", N3, 6, 0.0, R.NOT_AN_EXPRESSION),
    ("<answer>1 < 2 + 3</answer>", N3, 6, 0.0, R.FORBIDDEN_OPERATOR),
    ("", N3, 6, 0.0, R.EMPTY_ANSWER),
    # Huge.
    ("9" * MAX_CHARS, N3, 6, 0.0, R.EXTRA_NUMBER),
    ("9" * (MAX_CHARS + 1), N3, 6, 0.0, R.TOO_LONG),
    ("1 + 2 + 3" + " " * 100_000 + "= 6", N3, 6, 1.0, R.CORRECT),  # white space does not count
    (
        "(" * 509 + "1 + 2 + 3" + ")" * 510,
        N3,
        6,
        0.0,
        R.NOT_AN_EXPRESSION,
    ),  # the longest that is read
    ("(" * 510 + "1 + 2 + 3" + ")" * 510, N3, 6, 0.0, R.TOO_LONG),
    ("+".join(["1"] * (MAX_CHARS // 2)), [1] * (MAX_CHARS // 2), MAX_CHARS // 2, 1.0, R.CORRECT),
    ("1 + 2 + 3 = " + "/".join(["7", "9"] * 250), N3, 6, 0.0, R.FALSE_EQUATION),
    ("1 + 2 + 3 = " + "1/3-1/7+" * 120 + "1", N3, 6, 0.0, R.FALSE_EQUATION),
    ("(" * 400 + "1 + 2 + 3" + ")" * 400, N3, 6, 1.0, R.CORRECT),
    ("(" * 100_000 + "1 + 2 + 3" + ")" * 100_000, N3, 6, 0.0, R.TOO_LONG),
    ("1 + 2 + 3" + " = 6" * 200, N3, 6, 1.0, R.CORRECT),
    ("1 + 2 + 3 = " + "*".join(["99999"] * 160), N3, 6, 0.0, R.FALSE_EQUATION),
    ("1 + 2 + 3 = " + "+".join(f"1/{n}" for n in range(800, 930)), N3, 6, 0.0, R.FALSE_EQUATION),
    ("<answer>" * 100_000, N3, 6, 0.0, R.UNCLOSED_ANSWER),
    ("<answer>" * 100_000 + "1 + 2 + 3</answer>", N3, 6, 1.0, R.CORRECT),
    ("<answer>1 + 2 + 3</answer>" * 10_000, N3, 6, 1.0, R.CORRECT),
    ("<think>" * 100_000, N3, 6, 0.0, R.NO_ANSWER),
    # Rows that cannot be graded, whatever the completion.
    ("1 + 2 + 3", [], 6, None, R.BAD_GOLD),
    ("1 + 2 + 3", None, 6, None, R.BAD_GOLD),
    ("1 + 2 + 3", [1, 2, None], 6, None, R.BAD_GOLD),
    ("1 + 2 + 3", [True, 2, 3], 6, None, R.BAD_GOLD),
    ("1 + 2 + 3", [1, 2, 3.5], 6, None, R.BAD_GOLD),
    ("1 + 2 + 3", [1, 2, float("nan")], 6, None, R.BAD_GOLD),
    ("1 + 2 + 3", [1, 2, float("inf")], 6, None, R.BAD_GOLD),
    ("1 + 2 - 3", [1, 2, -3], 0, None, R.BAD_GOLD),
    ("1 + 2 + 3", [[1, 2, 3]], 6, None, R.BAD_GOLD),
    ("1 + 2 + 3", "one, two", 6, None, R.BAD_GOLD),
    ("1 + 2 + 3", "[1, 2, 3", 6, None, R.BAD_GOLD),
    ("1 + 2 + 3", "", 6, None, R.BAD_GOLD),
    ("1 + 2 + 3", {1: 2}, 6, None, R.BAD_GOLD),
    ("1 + 2 + 3", 123, 6, None, R.BAD_GOLD),
    ("1 + 2 + 3", N3, None, None, R.BAD_GOLD),
    ("1 + 2 + 3", N3, True, None, R.BAD_GOLD),
    ("1 + 2 + 3", N3, 6.5, None, R.BAD_GOLD),
    ("1 + 2 + 3", N3, float("nan"), None, R.BAD_GOLD),
    ("1 + 2 + 3", N3, "six", None, R.BAD_GOLD),
    ("1 + 2 + 3", N3, "", None, R.BAD_GOLD),
    ("1 + 2 + 3", N3, [6], None, R.BAD_GOLD),
    ("1 + 2 + 3", N3, "9" * 10_000, None, R.BAD_GOLD),
    (None, None, 6, None, R.BAD_GOLD),
    # What is not a text has no answer.
    (None, N3, 6, 0.0, R.NO_ANSWER),
    (6, N3, 6, 0.0, R.NO_ANSWER),
    (b"<answer>1 + 2 + 3</answer>", N3, 6, 0.0, R.NO_ANSWER),
]


@pytest.mark.parametrize(
    ("completion", "nums", "target", "reward", "reason"),
    TABLE,
    ids=[f"{i}-{row[4].name}" for i, row in enumerate(TABLE)],
)
def test_table(completion, nums, target, reward, reason):
    completion = block(completion) if isinstance(completion, str) else completion
    verdict = verify(completion, nums, target)
    assert (verdict.reward, verdict.reason) == (reward, reason)
    assert (verdict.reward is None, verdict.reward == 1.0) == (
        reason is R.BAD_GOLD,
        reason is R.CORRECT,
    )


def columns(rows) -> tuple[list, list, list]:
    completions, nums, targets = ([row[i] for row in rows] for i in range(3))
    return [block(text) if isinstance(text, str) else text for text in completions], nums, targets


ROWS = st.sampled_from(
    [row for row in TABLE if not isinstance(row[0], str) or len(row[0]) < 2000]
) | st.tuples(
    st.none() | st.text(alphabet="0123456789+-*/()= ×\0\n", max_size=20),
    st.lists(st.integers(-1, 12), max_size=4)
    | st.sampled_from(["1, 2, 3", [1.0, 2, 3], [True, 2, 3], None]),
    st.integers(-3, 12) | st.sampled_from(["6", 6.0, True, None]),
)


@given(st.lists(ROWS, max_size=8), st.sampled_from(["lenient", "strict"]))
@settings(max_examples=300, deadline=None)
def test_many_together_as_one_by_one(rows, notation):
    """A verdict depends on nothing but its own row: not on the others, their order, or what was
    judged before.
    """
    corpus = columns(rows)
    one_by_one = [verify(*row, notation=notation) for row in zip(*corpus, strict=True)]
    assert grade_all(*corpus, notation=notation) == one_by_one
    backwards = grade_all(*(column[::-1] for column in corpus), notation=notation)
    assert backwards[::-1] == one_by_one
    assert [type(verdict.value) for verdict in backwards[::-1]] == [
        type(verdict.value) for verdict in one_by_one
    ]


def test_the_reward_gives_these_grades():
    completions, nums, targets = columns(TABLE)
    grades = CountdownReward().grades(completions, nums=nums, target=targets)
    assert grades == [(reward, str(reason)) for *_, reward, reason in TABLE]
    assert {type(reason) for _, reason in grades} == {str}


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="2 completions, 1 nums, 2 target: must be equally many"):
        grade_all(["<answer>1</answer>"] * 2, [[1]], [1, 1])


def test_the_table_names_every_reason():
    assert {row[4] for row in TABLE} == set(Reason)
