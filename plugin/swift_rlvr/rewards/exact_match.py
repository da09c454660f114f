"""The exact-match reward: 1.0 for an answer that is one of several texts, after normalisation."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from swift_rlvr.rewards.answer_form import ANSWER_FORM, AnswerFormParameters, answer_form
from swift_rlvr.rewards.base import Columns, Example, Explanation, Grade, Row, rules_in_order
from swift_rlvr.rewards.judge import (
    Comparison,
    JudgedReward,
    JudgeParameters,
    comparison_of,
)
from swift_rlvr.rewards.question import question_in
from swift_rlvr.success import VERIFIER
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers.answers import has_unclosed_answer, normalised_answer
from swift_rlvr.verifiers.statements import WORDS, Reader, final_statement

MAX_ANSWER_CHARS = 1000
# The most that a partly right answer earns: the same words in another order have an F1 of 1.
_MOST_PARTIAL = 0.99
_ACCEPTED = {"accepted_answers": ["the Rhine", "Rhein"]}
# Reason -> what has to hold, in the order in which it is checked.
RULES = {
    "bad gold": "the column accepted_answers is a text or a list of texts",
    "no answer": "an answer is stated after the thinking, or the last line is a right answer",
    "unclosed answer": "the block is closed by </answer>",
    "empty answer": "the answer is not empty",
    "too long": f"it has at most {MAX_ANSWER_CHARS:,} characters",
    "wrong answer": "it has a word of a right answer",
    "partly right": "it is a right answer",
}


def f1(answer: str, gold: str) -> float:
    """The F1 of the words of two normalised texts, as SQuAD computes it.

    F1 is the harmonic mean of precision and recall.

    >>> f1("rhine river", "rhine"), f1("danube", "rhine")
    (0.6666666666666666, 0.0)
    """
    answer_words = answer.split()
    gold_words = gold.split()
    common = (Counter(answer_words) & Counter(gold_words)).total()
    if common == 0:
        return 0.0
    return 2 * common / (len(answer_words) + len(gold_words))


class ExactMatchReward(JudgedReward):
    """Reward 1.0 for a final answer that equals one of the row's `accepted_answers`.

    Other answers get 0.0; with ``partial=True`` they earn the best F1 of their words, at most 0.99.
    `swift_rlvr.verifiers.statements` says which answer is the final one, and
    `swift_rlvr.verifiers.answers.normalised_answer` what is equal. With `judge_url` a model is
    asked about the others. Source: Rajpurkar et al.
    2016, SQuAD (arXiv 1606.05250), whose evaluation this follows.

    >>> texts = ["<answer>Rhine.</answer>", "<answer>the river Rhine</answer>", "Answer: Rhine", "the Rhine it is"]
    >>> ExactMatchReward()(texts, accepted_answers=[["The Rhine"]] * 4)
    [1.0, 0.0, 1.0, 0.0]
    >>> ExactMatchReward(literal=True)(texts, accepted_answers=[["Rhine."]] * 4)
    [1.0, 0.0, 0.0, 0.0]
    """

    name = "external_exact_match"
    role = VERIFIER
    columns = ("accepted_answers",)
    optional_columns: tuple[str, ...] = (ANSWER_FORM,)
    reasons = (*RULES, "correct")
    examples = (
        Example("<think>Cologne.</think><answer>Rhine</answer>", _ACCEPTED, 1.0),
        Example("<think>Cologne.</think><answer>Danube</answer>", _ACCEPTED, 0.0),
        Example("<think>Cologne.</think><answer>Rhine</answer>", {"accepted_answers": []}, None),
    )

    @dataclass(frozen=True)
    class Parameters(AnswerFormParameters, JudgeParameters):
        partial: bool = setting(False, "give a wrong answer the F1 of its words, at most 0.99")
        literal: bool = setting(
            False,
            "accept only the same text: case, articles, punctuation and white space count, "
            "as in a program's output",
        )

        def __post_init__(self) -> None:
            super().__post_init__()
            accepted = "false with judge_url, because literal accepts only the same text"
            self.require(not (self.literal and self.judge_url), "literal", accepted)

    def grade_batch(self, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
        if self.model_judge is None:
            return super().grade_batch(texts, columns)
        grades = []
        comparisons = []
        for index, text in enumerate(texts):
            row = {name: values[index] for name, values in columns.items()}
            explanation = self._by_rule(text, row)
            grades.append(Grade(explanation.reward, explanation.reason))
            comparisons.append(_comparison(explanation, row))
        return self.with_judge(grades, comparisons)

    def grade(self, text: str | None, row: Row) -> Explanation:
        explanation = self._by_rule(text, row)
        if self.model_judge is None:
            return explanation
        return self.explained_with_judge(explanation, _comparison(explanation, row))

    def _by_rule(self, text: str | None, row: Row) -> Explanation:
        golds = golds_of(row["accepted_answers"])
        if golds is None:
            return Explanation(None, "bad gold", None, rules_in_order(RULES, "bad gold"))
        literal = self.parameters.literal
        form = answer_form(row, self.parameters)
        statement = final_statement(text or "", form, _reader(golds, literal))
        share = 0.0
        answer = None
        if statement is None:
            reason = "unclosed answer" if has_unclosed_answer(text or "") else "no answer"
        else:
            answer = statement.answer.strip()
            share, reason = _compared(answer, golds, literal)
        reward = share if share == 1 or self.parameters.partial else 0.0
        rules = rules_in_order(RULES, reason, f"the F1 is {share:.2f}")
        return Explanation(reward, reason, answer, rules)


def _comparison(explanation: Explanation, row: Row) -> Comparison | str:
    """What to ask a judge about an answer that is not right, or why it is not asked."""
    if explanation.reason not in ("wrong answer", "partly right"):
        return f"the rule says: {explanation.reason}"
    golds = golds_of(row["accepted_answers"]) or []
    return comparison_of(question_in(row), golds, explanation.extracted or "")


def golds_of(value: object) -> list[str] | None:
    """The accepted texts of a row; None where they cannot be read."""
    golds = [value] if isinstance(value, str) else value
    if not isinstance(golds, (list, tuple)) or not golds:
        return None
    if not all(isinstance(gold, str) for gold in golds):
        return None
    return list(golds)


def _reader(golds: list[str], literal: bool) -> Reader:
    """What of a last line is a value: also a right answer. Other words alone cannot be told from the
    end of a sentence.
    """

    def is_value(line: str) -> bool:
        return WORDS.is_value(line) or _compared(line, golds, literal) == (1.0, "correct")

    return WORDS._replace(is_value=is_value)


def _compared(answer: str, golds: list[str], literal: bool) -> tuple[float, str]:
    """The share of an answer that is right, and the reason."""
    if not answer:
        return 0.0, "empty answer"
    if len(answer) > MAX_ANSWER_CHARS:
        return 0.0, "too long"
    if literal:
        words = answer
        accepted = [gold.strip() for gold in golds]
    else:
        words = normalised_answer(answer)
        accepted = [normalised_answer(gold) for gold in golds]
    if words in accepted:
        return 1.0, "correct"
    best = max(f1(words, gold) for gold in accepted)
    share = min(best, _MOST_PARTIAL)
    return share, "partly right" if share else "wrong answer"
