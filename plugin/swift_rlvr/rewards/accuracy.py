"""The accuracy reward: 1.0 for an answer that is mathematically equal to the gold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from swift_rlvr.rewards.base import (
    Columns,
    Example,
    Explanation,
    Grade,
    Row,
    rules_in_order,
)
from swift_rlvr.rewards.copied import QUESTION_COLUMNS, is_copied, question_of
from swift_rlvr.rewards.judge import (
    Comparison,
    JudgedReward,
    JudgeParameters,
    comparison_of,
    question_in,
)
from swift_rlvr.rewards.options import with_options
from swift_rlvr.success import VERIFIER
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers.mathematics import (
    Leniency,
    Reason,
    Verdict,
    grade_all,
    readable_gold,
    why_unreadable,
)

RULES = {  # in the order in which they are checked
    Reason.BAD_GOLD: "the gold answer in the column solution can be read, or the answer is written like it",
    Reason.ERROR: "the comparison ends without an internal error",
    Reason.NO_ANSWER: "an answer is marked after the thinking (<answer>, \\boxed{}, ####) or is the whole text",
    Reason.UNCLOSED_ANSWER: "the answer block is closed by </answer>",
    Reason.EMPTY_ANSWER: "the answer is not empty",
    Reason.TOO_LONG: "the answer is short enough to compare",
    Reason.UNREADABLE: "the answer can be read as one answer",
    Reason.WRONG: "the answer equals the gold",
}


class AccuracyReward(JudgedReward):
    r"""Reward 1.0 for a completion whose final answer equals the column `solution`, 0.0 for any
    other.

    If the solution cannot be read, the row is not graded (None), unless the answer is written like
    it. With ``neutral_gold=True`` it gets the neutral value of the R1-Zero recipe.
    `swift_rlvr.verifiers.mathematics` defines what counts as the answer and as equal. A verdict
    depends on the completion, the solution and, where the row has some, the choices in `options`.
    With `judge_url` a model is asked about words and expressions that are wrong by these rules.

    >>> reward = AccuracyReward()
    >>> reward([r"so \boxed{\frac{1}{2}}", "<answer>0.4</answer>"], solution=["0.5", r"Thus $x = \boxed{0.5}$."])
    [1.0, 0.0]
    """

    name = "external_accuracy"
    role = VERIFIER
    columns = ("solution",)
    columns_elsewhere = {
        "solution": ("answer", "ground_truth", "gold", "final_answer", "expected_answer", "label")
    }
    optional_columns: tuple[str, ...] = ("options",)
    reasons = tuple(map(str, Reason))
    examples = (
        Example(
            "<think>A half.</think><answer>0.5</answer>",
            {"solution": r"So it is $\boxed{\frac{1}{2}}$."},
            1.0,
        ),
        Example(
            "<think>A half.</think><answer>0.6</answer>",
            {"solution": r"So it is $\boxed{\frac{1}{2}}$."},
            0.0,
        ),
        Example("<think>A half.</think><answer>0.5</answer>", {"solution": "$$"}, None),
    )

    @dataclass(frozen=True)
    class Parameters(JudgeParameters):
        neutral_gold: bool = setting(
            False, "give 0.5 if the gold answer cannot be read, instead of leaving the row ungraded"
        )
        gold_is_list: bool = setting(
            False, "`solution` may be a list; any of its elements is a right answer"
        )
        rounded_gold: bool = setting(
            False, "for a decimal gold answer, also accept an exact form that rounds to it"
        )
        convert_units: bool = setting(
            False, "for a gold answer with a unit, also accept the same quantity in another unit"
        )
        refuse_copied: bool = setting(False, "give nothing for a formula copied from the question")

    def __init__(self, args: object = None, **parameters: Any):
        super().__init__(args, **parameters)
        self.neutral = 0.5 if self.parameters.neutral_gold else None
        if self.parameters.refuse_copied:
            names = dict.fromkeys((*self.optional_columns, *QUESTION_COLUMNS))
            self.optional_columns = tuple(names)

    def grade_batch(self, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
        verdicts = self._verdicts(texts, columns)
        grades = [Grade(verdict.reward, str(verdict.reason)) for verdict in verdicts]
        if self.model_judge is None:
            return grades
        comparisons = []
        for index, verdict in enumerate(verdicts):
            row = {name: values[index] for name, values in columns.items()}
            comparisons.append(self._comparison(verdict, row))
        return self.with_judge(grades, comparisons)

    def grade(self, text: str | None, row: Row) -> Explanation:
        (verdict,) = self._verdicts([text], {name: [value] for name, value in row.items()})
        details = {RULES[Reason.WRONG]: f"the gold is {verdict.gold}"}
        if verdict.reason is Reason.BAD_GOLD:
            details[RULES[Reason.BAD_GOLD]] = _about_gold(verdict, row["solution"])
        if verdict.marked:
            details[RULES[Reason.NO_ANSWER]] = f"found by: {verdict.marked}"
        rules = []
        for rule in rules_in_order(RULES, verdict.reason):
            if rule.passed is not None:
                rule = rule._replace(detail=details.get(rule.name, ""))
            rules.append(rule)
        explanation = Explanation(verdict.reward, str(verdict.reason), verdict.answer, rules)
        if self.model_judge is None:
            return explanation
        return self.explained_with_judge(explanation, self._comparison(verdict, row))

    def _comparison(self, verdict: Verdict, row: Row) -> Comparison | str:
        """What to ask a judge about an answer that is wrong by the rules, or why it is not asked."""
        if verdict.reason not in (Reason.WRONG, Reason.UNREADABLE):
            return f"the rule says: {verdict.reason}"
        if row.get("options") is not None:
            return "the row has choices"
        assert verdict.answer is not None and verdict.gold is not None
        question = question_of(row) or ""
        is_refused = self.parameters.refuse_copied
        if is_refused and is_copied(verdict.answer, verdict.gold, question):
            return "the answer is copied from the question"
        return comparison_of(question_in(row), self._gold_texts(verdict, row), verdict.answer)

    def _gold_texts(self, verdict: Verdict, row: Row) -> list[str]:
        gold = row["solution"]
        if not isinstance(gold, (list, tuple)):
            return [verdict.gold or ""]
        readable = [readable_gold(each) for each in gold]
        return [each[0] for each in readable if each is not None]

    def _verdicts(self, texts: Sequence[str | None], columns: Columns) -> list[Verdict]:
        parameters = self.parameters
        golds = columns["solution"]
        leniency = Leniency(parameters.rounded_gold, parameters.convert_units)
        verdicts = grade_all(texts, golds, parameters.gold_is_list, leniency)
        for index, choices in enumerate(columns.get("options", [None] * len(golds))):
            if choices is not None:
                verdicts[index] = with_options(verdicts[index], golds[index], choices, leniency)
            elif parameters.refuse_copied:
                row = {name: columns[name][index] for name in QUESTION_COLUMNS}
                verdicts[index] = _without_copies(verdicts[index], question_of(row))
        return verdicts


def _without_copies(verdict: Verdict, question: str | None) -> Verdict:
    """The verdict, which is that of a wrong answer where a right one is copied from the question."""
    if verdict.reason is not Reason.CORRECT or not (verdict.answer and verdict.gold and question):
        return verdict
    if not is_copied(verdict.answer, verdict.gold, question):
        return verdict
    return verdict._replace(reward=Reason.WRONG.reward, reason=Reason.WRONG)


def _about_gold(verdict: Verdict, gold: object) -> str:
    if isinstance(gold, (list, tuple)):
        any_of = "with gold_is_list=True any of its elements is right"
        several = r"an answer of several parts is one text, such as '1, 2' or '\{1, 2\}'"
        return f"a list, {gold!r:.200}: {any_of}; {several}"
    if verdict.gold is None:
        return f"no answer in {gold!r:.200}"
    return f"read from it: {verdict.gold:.200}; {why_unreadable(verdict.gold)}"
