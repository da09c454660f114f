"""Further tests for programming tasks, which a policy has not seen; `add.py` says which."""

from swift_rlvr.evaluation.added_tests.add import Added, add_tests
from swift_rlvr.evaluation.added_tests.given import NoTests

__all__ = ["Added", "NoTests", "add_tests"]
