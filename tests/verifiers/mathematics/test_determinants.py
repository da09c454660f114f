r"""A determinant in a gold is the number that it is, and `2\begin{vmatrix}` is twice that number."""

import pytest

from swift_rlvr.verifiers.mathematics import grade

DETERMINANT = r"\begin{vmatrix} 1 & 2 \\ 3 & 4 \end{vmatrix}"
CASES = [
    (DETERMINANT, DETERMINANT, 1.0),
    (DETERMINANT, "-2", 1.0),
    (DETERMINANT, "2", 0.0),
    (DETERMINANT, "10", 0.0),
    (f"2{DETERMINANT}", f"2 {DETERMINANT}", 1.0),
    (f"2{DETERMINANT}", "-4", 1.0),
    (f"2{DETERMINANT}", "-8", 0.0),
    (f"2{DETERMINANT}", "-2", 0.0),
    # each entry is multiplied: four times as much
    (f"2{DETERMINANT}", r"\begin{vmatrix} 2 & 4 \\ 6 & 8 \end{vmatrix}", 0.0),
    (f"2{DETERMINANT}", r"2\begin{vmatrix} 1 & 2 \\ 3 & 5 \end{vmatrix}", 0.0),
    (f"2{DETERMINANT}", r"2\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", 0.0),
    (r"2\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\begin{pmatrix} 2 & 4 \\ 6 & 8 \end{pmatrix}", 1.0),
    (r"\begin{vmatrix} a & b \\ c & d \end{vmatrix}", "a d - b c", 1.0),
    (r"\begin{vmatrix} a & b \\ c & d \end{vmatrix}", "a b - c d", 0.0),
    (r"\begin{vmatrix} 2 & 1 & 3 \\ 2 & 4 & 2 \\ 1 & 4 & -5 \end{vmatrix}", "-32", 1.0),
    # the question, where its value is asked for
    ("-2", DETERMINANT, 0.0),
]  # fmt: skip


@pytest.mark.parametrize("gold, answer, reward", CASES)
def test_determinant(gold, answer, reward):
    assert grade(rf"\boxed{{{answer}}}", gold).reward == reward
