"""The reward for reasoning-gym's tasks: 1.0 for an answer that gets the full score.

The score is that of the task's own scorer, or of ours where that one is faulty.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from swift_rlvr.rewards.answer_form import ANSWER_FORM, AnswerFormParameters
from swift_rlvr.rewards.base import (
    Columns,
    Example,
    Explanation,
    Grade,
    Reward,
    Row,
    one_row,
    rules_in_order,
)
from swift_rlvr.success import VERIFIER
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers.reasoning_gym.verifier import Reason, Verdict, grade_all
from swift_rlvr.verifiers.statements import check_form

# In the order in which they are checked.
RULES = {
    Reason.BAD_ROW: "the column entry can be read",
    Reason.REFUSED_TASK: "the task is not refused, or refused=yes allows it",
    Reason.NO_ANSWER: "an answer is stated after the thinking",
    Reason.UNCLOSED_ANSWER: "the block is closed by </answer>",
    Reason.EMPTY_ANSWER: "the answer is not empty",
    Reason.TOO_LONG: "it is not far longer than the right answer",
    Reason.TIMED_OUT: "it is scored in time",
    Reason.SCORER_FAILED: "the scorer ends with a score from 0 to 1",
    Reason.WRONG: "it is at least partly right",
    Reason.PARTLY_RIGHT: "it is fully right",
}
_ENTRY = {
    "task": "gcd",
    "settings": {},
    "question": "Find the Greatest Common Divisor (GCD) of these numbers: 297, 24.",
    "answer": "3",
    "metadata": ["dict", ["numbers", ["list", 297, 24]], ["result", 3]],
}
_ROW = {"entry": json.dumps(_ENTRY)}


class ReasoningGymReward(Reward):
    """Reward 1.0 for a right answer to a task of reasoning-gym, 0.0 for any other.

    With ``partial=True`` a partly right answer gets the scorer's partial credit. None if the
    column `entry` cannot be read or the task is refused; see
    docs/rewards/reasoning_gym.md.

    >>> from itertools import islice
    >>> from swift_rlvr.verifiers.reasoning_gym import naming, rows
    >>> (row,) = islice(rows.rows(*naming.parse("gcd:test")), 1)
    >>> answer = rows.read_entry(row["entry"])["answer"]
    >>> ReasoningGymReward()([f"<answer>{answer}</answer>", "<answer>0</answer>"], entry=[row["entry"]] * 2)
    [1.0, 0.0]
    """

    name = "external_reasoning_gym"
    role = VERIFIER
    columns = ("entry",)
    optional_columns = (ANSWER_FORM,)
    reasons = tuple(map(str, Reason))
    examples = (
        Example("<think>297 = 3 * 99.</think><answer>3</answer>", _ROW, 1.0),
        Example("<think>297 = 3 * 99.</think><answer>2 or 3</answer>", _ROW, 0.0),
        Example("<think>297 = 3 * 99.</think><answer>3</answer>", {"entry": "{}"}, None),
    )

    @dataclass(frozen=True)
    class Parameters(AnswerFormParameters):
        partial: bool = setting(
            False, "give the scorer's partial credit, instead of only 1 for a right answer"
        )
        timeout: float = setting(
            2.0, "seconds of CPU time for one answer", more_than=0, at_most=3600
        )
        memory_mb: int = setting(
            1024,
            "memory for one answer, in MiB, on top of what reasoning-gym itself needs",
            at_least=64,
        )
        max_workers: int = setting(
            0, "how many answers are scored at a time; 0: one per core of the rank", at_least=0
        )

    def grade_batch(self, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
        verdicts = self._verdicts(texts, columns)
        return [Grade(self._reward(verdict), str(verdict.reason)) for verdict in verdicts]

    def grade(self, text: str | None, row: Row) -> Explanation:
        (verdict,) = self._verdicts([text], one_row(row))
        detail = verdict.detail
        if verdict.reason is Reason.PARTLY_RIGHT:
            detail = f"the score is {verdict.score:.3g}"
        rules = rules_in_order(RULES, verdict.reason, detail)
        return Explanation(self._reward(verdict), str(verdict.reason), verdict.answer, rules)

    def _verdicts(self, texts: Sequence[str | None], columns: Columns) -> list[Verdict]:
        parameters = self.parameters
        # The form that a row's own prompt asks for comes before the parameter's.
        named = columns.get(ANSWER_FORM) or [None] * len(texts)
        return grade_all(
            texts,
            columns["entry"],
            parameters.timeout,
            parameters.memory_mb,
            parameters.max_workers,
            [check_form(form or parameters.answer_form) for form in named],
        )

    def _reward(self, verdict: Verdict) -> float | None:
        if verdict.score is None or self.parameters.partial:
            return verdict.score
        return float(verdict.reason is Reason.CORRECT)
