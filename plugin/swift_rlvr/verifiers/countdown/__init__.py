from swift_rlvr.verifiers.countdown.verifier import Reason, Verdict, grade_all, read_gold, verify

__all__ = ["Reason", "Verdict", "grade_all", "read_gold", "verify"]
