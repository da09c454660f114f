from swift_rlvr.math_answers.verifier import MathVerifier, Reason, Verdict, grade_all

__all__ = ["MathVerifier", "Reason", "Verdict", "grade_all"]
