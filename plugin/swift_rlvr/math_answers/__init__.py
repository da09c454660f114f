"""Grading of mathematical answers. Rules: `swift_rlvr.math_answers.verifier`."""

from swift_rlvr.math_answers.reading import why_unreadable
from swift_rlvr.math_answers.verifier import Leniency, MathVerdict, Reason, grade, grade_all, readable_gold

__all__ = ["Leniency", "MathVerdict", "Reason", "grade", "grade_all", "readable_gold", "why_unreadable"]
