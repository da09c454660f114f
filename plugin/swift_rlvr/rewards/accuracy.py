"""The accuracy reward: 1.0 for an answer that is mathematically equal to the gold."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from swift_rlvr.rewards.answer_form import ANSWER_FORM, AnswerFormParameters
from swift_rlvr.rewards.base import (
    Columns,
    Example,
    Explanation,
    Grade,
    Reward,
    Row,
    rules_in_order,
)
from swift_rlvr.rewards.options import choice_alone, with_options
from swift_rlvr.rewards.question import QUESTION_COLUMNS, question_in
from swift_rlvr.success import VERIFIER
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers.answer_forms import TAGS
from swift_rlvr.verifiers.mathematics import (
    Leniency,
    Reason,
    Verdict,
    asks_for_order,
    grade,
    why_unreadable,
)
from swift_rlvr.verifiers.statements import check_form

RULES = {  # in the order in which they are checked
    Reason.BAD_GOLD: "the gold answer in the column solution can be read, or the answer is written like it",
    Reason.ERROR: "the comparison ends without an internal error",
    Reason.NO_ANSWER: "an answer is stated after the thinking: in <answer> tags, a box, behind #### or "
    "'The answer is', in JSON or alone on the last line",
    Reason.UNCLOSED_ANSWER: "the answer block is closed by </answer>",
    Reason.EMPTY_ANSWER: "the answer is not empty",
    Reason.TOO_LONG: "the answer is short enough to compare",
    Reason.UNREADABLE: "the answer can be read as one answer",
    Reason.WRONG: "the answer equals the gold",
}


_NUMBER = re.compile(r"-?[\d.]+")


class AccuracyReward(Reward):
    r"""Reward 1.0 for a completion whose final answer equals the column `solution`, 0.0 for any
    other.

    If the solution cannot be read, the row is not graded (None), unless the answer is written like
    it. With ``neutral_gold=True`` it gets the neutral value of the R1-Zero recipe.
    `swift_rlvr.verifiers.mathematics` defines what counts as the answer and as equal. A verdict
    depends on the completion, the solution and, where the row has some, the choices in `options`.

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
    optional_columns: tuple[str, ...] = ("options", ANSWER_FORM, *QUESTION_COLUMNS)
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
    class Parameters(AnswerFormParameters):
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
        ordered: str = setting(
            "auto",
            "whether the order counts in a gold that is a list of different values; auto: as the "
            "question says",
            choices=("auto", "yes", "no"),
        )

    def __init__(self, args: object = None, **parameters: Any):
        super().__init__(args, **parameters)
        self.neutral = 0.5 if self.parameters.neutral_gold else None

    def grade_batch(self, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
        grades = []
        for text, *values in zip(texts, *columns.values(), strict=True):
            verdict = self._verdict(text, dict(zip(columns, values, strict=True)))
            grades.append(Grade(verdict.reward, str(verdict.reason)))
        return grades

    def grade(self, text: str | None, row: Row) -> Explanation:
        verdict = self._verdict(text, row)
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
        return Explanation(verdict.reward, str(verdict.reason), verdict.answer, rules)

    def _verdict(self, text: str | None, row: Row) -> Verdict:
        parameters = self.parameters
        gold = row["solution"]
        ordered: bool | None = parameters.ordered == "yes"
        if parameters.ordered == "auto":
            # None if nothing is known of the question, or the gold is one number, as most are.
            is_number = _NUMBER.fullmatch(str(gold))
            question = "" if is_number else question_in(row)
            ordered = asks_for_order(question) if question else None
        leniency = Leniency(parameters.rounded_gold, parameters.convert_units, ordered)
        form = row.get(ANSWER_FORM) or parameters.answer_form
        if form:
            # The verifier would take an unknown one for an error of its own.
            check_form(form)
        verdict = grade(text, gold, leniency, parameters.gold_is_list, form)
        options = row.get("options")
        if options is None:
            return verdict
        # Words alone on the last line may be the end of a sentence, but not where they are a choice.
        if verdict.reason is Reason.NO_ANSWER and text is not None:
            choice = choice_alone(text, options, form)
            if choice is not None:
                verdict = grade(f"<answer>{choice}</answer>", gold, leniency, form=TAGS)
        return with_options(verdict, gold, options, leniency)


def _about_gold(verdict: Verdict, gold: object) -> str:
    if isinstance(gold, (list, tuple)):
        any_of = "with gold_is_list=True any of its elements is right"
        several = r"an answer of several parts is one text, such as '1, 2' or '\{1, 2\}'"
        return f"a list, {gold!r:.200}: {any_of}; {several}"
    if verdict.gold is None:
        return f"no answer in {gold!r:.200}"
    return f"read from it: {verdict.gold:.200}; {why_unreadable(verdict.gold)}"
