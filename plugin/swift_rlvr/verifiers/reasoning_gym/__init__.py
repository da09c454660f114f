"""The tasks of reasoning-gym (github.com/open-thought/reasoning-gym, arXiv:2505.24760) as rows, and
their verdicts.

`naming.parse` reads which tasks are wanted, `rows.rows` makes their rows, and `verifier.grade_all`
judges completions: a `Verdict` with the score and its `Reason`. docs/rewards/reasoning_gym.md says
which tasks are safe to train on, how that was found, and what is scored in another way.

>>> from swift_rlvr.verifiers.reasoning_gym import naming, rows, verifier
>>> row = next(rows.rows(*naming.parse("gcd:test")))
>>> gold = rows.read_entry(row["entry"])["answer"]
>>> completions = [f"<answer>{gold}</answer>", "<answer>0</answer>"]
>>> [str(verdict.reason) for verdict in verifier.grade_all(completions, [row["entry"]] * 2)]
['correct', 'wrong answer']
"""
