"""The Countdown task: make the target from the given numbers, each used once, with ``+ - * /``.

`verify` judges a completion and `grade_all` many: a `Verdict` with the reward, its `Reason`, the
expression and its exact value. `generator` makes tasks, `task_settings` says what they look like,
and `solver` solves them and says how difficult they are.

>>> verdict = verify("<think>3 * 8</think><answer>(5 - 2) * 8 = 24</answer>", nums=[2, 5, 8], target=24)
>>> verdict.reward, str(verdict.reason)
(1.0, 'correct')
>>> str(verify("<answer>3 * 8</answer>", nums=[2, 5, 8], target=24).reason)
'extra number'
"""

from swift_rlvr.verifiers.countdown.verifier import Reason, Verdict, grade_all, read_gold, verify

__all__ = ["Reason", "Verdict", "grade_all", "read_gold", "verify"]
