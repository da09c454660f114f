"""Grading of mathematical answers. Settings and rules: `swift_rlvr.math_answers.verifier`."""

from swift_rlvr.math_answers.verifier import MathVerifier, Reason, Verdict, grade_all

__all__ = ["MathVerifier", "Reason", "Verdict", "grade_all"]
