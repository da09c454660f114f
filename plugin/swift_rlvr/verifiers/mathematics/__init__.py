"""Grading of mathematical answers. Rules: `swift_rlvr.verifiers.mathematics.verifier`."""

from swift_rlvr.verifiers.mathematics.reading import why_unreadable
from swift_rlvr.verifiers.mathematics.verifier import (
    Leniency,
    MathVerdict,
    Reason,
    grade,
    grade_all,
    readable_gold,
)

__all__ = [
    "Leniency",
    "MathVerdict",
    "Reason",
    "grade",
    "grade_all",
    "readable_gold",
    "why_unreadable",
]
