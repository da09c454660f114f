"""The exact-match reward: 1.0 for an answer that is one of several texts, after normalisation."""

import re
from ast import literal_eval
from collections import Counter
from dataclasses import dataclass

from swift_rlvr.rewards.answer_form import ANSWER_FORM, AnswerFormParameters
from swift_rlvr.rewards.base import Example, Explanation, Reward, Row, rules_in_order
from swift_rlvr.rewards.options import TEXT_COMMAND
from swift_rlvr.success import VERIFIER
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers.answers import has_unclosed_answer, normalised_answer
from swift_rlvr.verifiers.quantities import same_quantity
from swift_rlvr.verifiers.statements import WORDS, final_statement

MAX_ANSWER_CHARS = 1000
# Of a gold that somebody else may put in the same words.
_MOST_WORDS = 15
# Golds of which no part is right.
_ALL_OR_NOTHING = frozenset(("yes", "no", "true", "false"))
_LETTER = re.compile(r"[^\W\d_]")
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
    "two dates": "a date or a time is one alone where it could be right: 03/05/2021 is two, and 3:30 as well",
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


def partial_share(answer: str, gold: str) -> float:
    """How much of a gold an answer gives, of two normalised texts: their F1, where at least half of
    the answer's words are the gold's. A number, yes and no are right or wrong.

    >>> partial_share("rhine river", "rhine"), partial_share("two or not", "two"), partial_share("yes no", "yes")
    (0.6666666666666666, 0.0, 0.0)
    """
    if answer == gold:
        return 1.0
    if gold in _ALL_OR_NOTHING or not _LETTER.search(gold):
        return 0.0
    common = (Counter(answer.split()) & Counter(gold.split())).total()
    if 2 * common < len(answer.split()):
        return 0.0
    return f1(answer, gold)


class ExactMatchReward(Reward):
    """Reward 1.0 for a final answer that equals one of the row's `accepted_answers`.

    Other answers get 0.0; with ``partial=True`` they earn the best F1 of their words, at most 0.99.
    `swift_rlvr.verifiers.statements` says which answer is the final one, and
    `swift_rlvr.verifiers.answers.normalised_answer` what is equal, as texts; and
    `swift_rlvr.verifiers.quantities` which numbers, amounts and dates are. Source:
    Rajpurkar et al. 2016, SQuAD (arXiv 1606.05250), whose evaluation this follows.

    >>> texts = ["<answer>Rhine.</answer>", "<answer>the river Rhine</answer>", "Answer: Rhine", "the Rhine it is"]
    >>> ExactMatchReward()(texts, accepted_answers=[["The Rhine"]] * 4)
    [1.0, 0.0, 1.0, 0.0]
    >>> ExactMatchReward(literal=True)(texts, accepted_answers=[["Rhine."]] * 4)
    [1.0, 0.0, 0.0, 0.0]
    """

    name = "external_exact_match"
    role = VERIFIER
    columns = ("accepted_answers",)
    columns_elsewhere = {
        "accepted_answers": ("solution", "golden_answers", "answers", "answer", "ground_truth")
    }
    optional_columns: tuple[str, ...] = (ANSWER_FORM,)
    reasons = (*RULES, "correct")
    examples = (
        Example("<think>Cologne.</think><answer>Rhine</answer>", _ACCEPTED, 1.0),
        Example("<think>Cologne.</think><answer>Danube</answer>", _ACCEPTED, 0.0),
        Example("<think>Cologne.</think><answer>Rhine</answer>", {"accepted_answers": []}, None),
    )

    @dataclass(frozen=True)
    class Parameters(AnswerFormParameters):
        partial: bool = setting(
            False,
            "give a wrong answer the F1 of its words, at most 0.99, if half of them are right; "
            "numbers, yes and no are right or wrong",
        )
        literal: bool = setting(
            False,
            "accept only the same text: case, articles, punctuation and white space count, "
            "as in a program's output; a value of Python may be written with other quotes and spaces",
        )

    @classmethod
    def remarks(cls, row: Row) -> list[str]:
        golds = golds_of(row["accepted_answers"]) or [""]
        if min(len(gold.split()) for gold in golds) > _MOST_WORDS:
            return [f"no other wording of a gold of more than {_MOST_WORDS} words is paid"]
        return []

    def grade(self, text: str | None, row: Row) -> Explanation:
        golds = golds_of(row["accepted_answers"])
        if golds is None:
            return Explanation(None, "bad gold", None, rules_in_order(RULES, "bad gold"))
        literal = self.parameters.literal
        form = row.get(ANSWER_FORM) or self.parameters.answer_form

        def is_value(line: str) -> bool:
            """Whether a last line is a value, or a right answer: other words alone cannot be told
            from the end of a sentence.
            """
            return WORDS.is_value(line) or _compared(line, golds, literal) == (1.0, "correct")

        statement = final_statement(text or "", form, WORDS._replace(is_value=is_value))
        share: float | None = 0.0
        answer = None
        if statement is None:
            reason = "unclosed answer" if has_unclosed_answer(text or "") else "no answer"
        else:
            answer = statement.answer.strip()
            share, reason = _compared(answer, golds, literal)
        if share is None:
            return Explanation(None, reason, answer, rules_in_order(RULES, reason))
        reward = share if share == 1 or self.parameters.partial else 0.0
        rules = rules_in_order(RULES, reason, f"the F1 is {share:.2f}")
        return Explanation(reward, reason, answer, rules)


def golds_of(value: object) -> list[str] | None:
    """The accepted texts of a row; None if they cannot be read."""
    golds = [value] if isinstance(value, str) else value
    if not isinstance(golds, (list, tuple)) or not golds:
        return None
    if not all(isinstance(gold, str) for gold in golds):
        return None
    return list(golds)


def _compared(answer: str, golds: list[str], literal: bool) -> tuple[float | None, str]:
    """The share of an answer that is right, and the reason. None where nobody here can say it."""
    if not answer:
        return 0.0, "empty answer"
    if len(answer) > MAX_ANSWER_CHARS:
        return 0.0, "too long"
    if literal:
        words = _python_value(answer)
        accepted = [_python_value(gold.strip()) for gold in golds]
    else:
        # A model that boxes words writes \boxed{\text{Rhine}}.
        answer = TEXT_COMMAND.sub(r"\1 ", answer)
        golds = [TEXT_COMMAND.sub(r"\1 ", gold) for gold in golds]
        words = normalised_answer(answer)
        accepted = [normalised_answer(gold) for gold in golds]
    if words in accepted:
        return 1.0, "correct"
    # "five" is 5, $5 are 5 dollars, and 3 March is March 3, which no comparison of texts can tell.
    if not literal:
        same = {same_quantity(gold, answer) for gold in golds}
        if "yes" in same:
            return 1.0, "correct"
        if "maybe" in same:
            return None, "two dates"
    best = max(partial_share(words, gold) for gold in accepted)
    share = min(best, _MOST_PARTIAL)
    return share, "partly right" if share else "wrong answer"


def _python_value(text: str) -> str:
    """A value of Python in one way of writing: quotes and spaces do not matter, and everything else
    does. Another text as it is.

    >>> _python_value('["a",1]'), _python_value("(0, 1)"), _python_value("1.0"), _python_value("Hello, world")
    ("['a', 1]", '(0, 1)', '1.0', 'Hello, world')
    """
    try:
        return repr(literal_eval(text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
