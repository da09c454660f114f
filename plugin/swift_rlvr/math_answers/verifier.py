r"""The math verifier: is the final answer of a completion mathematically equal to the gold?

What decides is the last answer block or, without one, the last ``\boxed{...}``, or the last ``####`` line, after the
last ``</think>`` (see `swift_rlvr.answers.marked_answer`); a completion that marks its answer in none of these ways is
searched for "the answer is $...$" in its last 1,000 characters. The gold may be marked in the same ways, as whole
solutions of MATH, NuminaMath and GSM8K are, or be the answer itself: LaTeX, plain text or a number.

Numbers, fractions, choices, words, sequences of them, and answers written like the gold are settled here, exactly
(`swift_rlvr.math_answers.reading`, `math_values`, `math_exact`). Everything else is judged by math_verify in worker processes
with a deadline (`math_workers`, `math_judge`). Within a batch each gold is parsed once and equal answers to it are
judged once.

Beyond math_verify: a gold with a unit accepts the bare number; ``50\%`` equals 50 and 1/2; a choice may be written A,
(A), A. or \text{A}, and may be followed by its text. More strictly than there, decimals must be exact (0.333333 is not
1/3; against an expression, to twelve places), and units that differ are not equal.
"""

from __future__ import annotations

import logging
import math
import re
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from swift_rlvr.answers import after_think, has_unclosed_answer, marked_answer
from swift_rlvr.math_answers import reading as math_notation
from swift_rlvr.math_answers import values as math_values
from swift_rlvr.math_answers.pool import TIMED_OUT, Job, Pool
from swift_rlvr.parallel import usable_cores

logger = logging.getLogger(__name__)
MAX_ANSWER_CHARS = 1000
"""Longer answers are not compared, unless they are written like the gold."""
_TAIL_CHARS = 1000
_MAX_GOLDS = 100_000
_NUMERAL = re.compile(r"(?<![\w{^.])\d+(?:[.,]\d+)*")
_OR = re.compile(r"\bor\b")
_CHOICE_OF_NUMBERS = re.compile(r"\d\D{0,20}\bor\b\D{0,20}\d")
_STATEMENT = re.compile(r"=|\b(?:is|are|was|were|equals?|gives?|makes?|total|has|have|needs?|costs?)\b", re.IGNORECASE)
_DENIAL = re.compile(  # of the number that math_verify would take, or a bound for it
    r"\b(?:not|but|than|at least|at most)\s+\S{0,2}\d[\d,.]*\s*\w*\W*$|\b(?:isn.t|wrong|incorrect|neither)\b",
    re.IGNORECASE,
)
_NO_PROSE = re.compile(
    r"\\begin\s*\{array\}\s*\{[^{}]*\}|\\(?:begin|end|text\w*|mathrm|operatorname)\s*\{[^{}]*\}|\\[A-Za-z]+|\\|[^A-Za-z\s\\]+"
)


class Reason(str, Enum):
    """Why a completion got its reward; the value is the text for logs."""

    BAD_GOLD = "bad gold"  # the gold is missing or cannot be parsed: nothing can be graded
    NO_ANSWER = "no answer"
    UNCLOSED_ANSWER = "unclosed answer"
    EMPTY_ANSWER = "empty answer"
    TOO_LONG = "too long"  # over MAX_ANSWER_CHARS characters
    UNREADABLE = "unreadable answer"
    TIMED_OUT = "timed out"
    WRONG = "wrong answer"
    CORRECT = "correct"

    def __str__(self) -> str:
        return self.value


class Verdict(NamedTuple):
    """What `grade_all` found for one completion."""

    reward: float | None
    """1.0 for a right answer, 0.0 for a wrong one, None where the gold cannot be parsed."""
    reason: Reason
    answer: str | None = None
    """The answer as it was written."""
    marked: str | None = None
    """How it was found: "answer tag", "boxed", "####" or "text"."""
    gold: str | None = None
    """The gold answer, as taken from the column."""


@dataclass(frozen=True)
class _Gold:
    text: str
    how: str
    value: math_values.Value | None = field(compare=False)
    plain: str


class MathVerifier:
    r"""Grades completions; keeps worker processes from call to call.

    Args:
        workers: processes that compare what takes computer algebra; None: one for each usable core, at most 8.
        timeout: seconds for one comparison. batch_timeout: seconds for all of one call, plus 0.01 for each answer.

    >>> with MathVerifier(workers=1) as verifier:
    ...     [str(v.reason) for v in verifier.grade_all([r"\boxed{\sqrt{8}}", r"\boxed{3}"], [r"2\sqrt{2}", "$4$"])]
    ['correct', 'wrong answer']
    """

    def __init__(self, workers: int | None = None, timeout: float = 2.0, batch_timeout: float = 5.0):
        for name, value in (("timeout", timeout), ("batch_timeout", batch_timeout)):
            if not 0 < value < math.inf:
                raise ValueError(f"{name} must be a number of seconds above 0, not {value!r}")
        if workers is not None and workers < 1:
            raise ValueError(f"workers must be at least 1, not {workers!r}")
        self._readable: dict[str, bool] = {}  # for golds that only computer algebra can read: whether it can
        self.pool = Pool(workers or min(8, usable_cores()), timeout, batch_timeout)

    def __enter__(self) -> MathVerifier:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker processes; they start again when they are needed."""
        self.pool.close()

    def grade_all(self, texts: list[str | None], golds: list[object]) -> list[Verdict]:
        """Judge each completion by the gold at the same place.

        Raises:
            RuntimeError: where worker processes are needed and cannot be started; never because of a text.
        """
        verdicts: list[Verdict | None] = [None] * len(texts)
        batch: dict[_Gold, dict[tuple[str, str], list[int]]] = {}
        doubtful: dict[_Gold, list[int]] = {}  # the rows of golds that only computer algebra can read, or not even that
        for index, (text, solution) in enumerate(zip(texts, golds, strict=True)):
            gold = read_gold(solution)
            if gold is None:
                verdicts[index] = Verdict(None, Reason.BAD_GOLD)
                continue
            if gold.value is None:
                doubtful.setdefault(gold, []).append(index)
            reason, answer, marked = _find_answer(text)
            if reason is None:
                reason = _compare(gold, answer, marked)
            reward = None if reason is None else float(reason is Reason.CORRECT)
            verdicts[index] = Verdict(reward, reason, answer, marked, gold.text)
            if reason is None:
                batch.setdefault(gold, {}).setdefault((answer, _how(answer, marked)), []).append(index)
        for gold in doubtful:
            if gold.text not in self._readable:
                batch.setdefault(gold, {})
        self._judge(batch, verdicts)
        for gold, indexes in doubtful.items():
            if self._readable.get(gold.text) is not True:
                for index in indexes:
                    verdicts[index] = verdicts[index]._replace(reward=None, reason=Reason.BAD_GOLD)
        return verdicts

    def _judge(self, batch: dict[_Gold, dict[tuple[str, str], list[int]]], verdicts: list[Verdict]) -> None:
        """Compare what takes computer algebra: `batch` has, for each gold and answer, the places of its verdicts."""
        jobs = [Job(gold.text, gold.how, list(answers)) for gold, answers in batch.items()]
        if jobs:
            self.pool.run(jobs)
        for job, (gold, answers) in zip(jobs, batch.items(), strict=True):
            if job.gold == TIMED_OUT:
                logger.warning("the gold %r could not be parsed in time: its rows are not graded", job.gold_text[:200])
            if len(self._readable) >= _MAX_GOLDS:
                self._readable.clear()
            if job.gold != TIMED_OUT:  # which another batch may find out
                self._readable[job.gold_text] = job.gold
            for (answer, how), indexes, result in zip(answers, answers.values(), job.results, strict=True):
                if job.gold is False and gold.value is not None:  # read here, and the answer is nothing of the kind
                    reward, reason = 0.0, Reason.WRONG
                elif job.gold is not True:
                    reward, reason = None, Reason.BAD_GOLD
                elif result == TIMED_OUT:
                    logger.warning("comparing took too long: answer %r, gold %r", answer[-200:], job.gold_text[:200])
                    reward, reason = 0.0, Reason.TIMED_OUT
                else:
                    unread = Reason.NO_ANSWER if how == "anchored" else Reason.UNREADABLE
                    reason = {True: Reason.CORRECT, False: Reason.WRONG, None: unread}[result]
                    reward = float(result is True)
                for index in indexes:
                    verdicts[index] = verdicts[index]._replace(reward=reward, reason=reason)
                    if reason is Reason.NO_ANSWER:
                        verdicts[index] = verdicts[index]._replace(answer=None, marked=None)


def read_gold(solution: object) -> _Gold | None:
    """The gold answer of a row; None where there is none. Whether computer algebra can read it shows only later.

    >>> read_gold("So 3 + 4 = 7.\\n#### 7").text, read_gold(r"Hence $x = \\boxed{\\frac12}$.").text, read_gold(7).text
    ('7', '\\\\frac12', '7')
    >>> read_gold(None), read_gold("  "), read_gold("$$")
    (None, None, None)
    """
    if isinstance(solution, bool) or solution is None or (isinstance(solution, float) and not math.isfinite(solution)):
        return None
    if isinstance(solution, (int, float)):
        solution = repr(solution)
    return _read_gold(solution) if isinstance(solution, str) else None


@lru_cache(maxsize=4096)
def _read_gold(solution: str) -> _Gold | None:
    marked, text = marked_answer(solution) or ("", solution.strip())
    plain = math_notation.plain(text) if len(text) <= math_notation.MAX_CHARS else text
    if not plain.strip("$"):
        return None
    value = math_notation.read(text)
    if not marked and value is None and _is_prose(text) and not any(map(str.isdigit, text)) and "$" not in text:
        return None  # a proof, or a remark: no answer is in it
    return _Gold(text, _how(text, marked), value, plain)


def _find_answer(text: str | None) -> tuple[Reason | None, str | None, str | None]:
    if text is None:
        return Reason.NO_ANSWER, None, None
    marked = marked_answer(text)
    if marked is None:
        if has_unclosed_answer(text):
            return Reason.UNCLOSED_ANSWER, None, None
        tail = after_think(text[-_TAIL_CHARS:])
        return (None, tail, "text") if "nswer" in tail else (Reason.NO_ANSWER, None, None)
    how, answer = marked
    if not answer:
        return Reason.EMPTY_ANSWER, answer, how
    return None, answer, how


def _compare(gold: _Gold, answer: str, marked: str) -> Reason | None:
    """The verdict where it can be told without computer algebra."""
    if marked == "text":
        return None
    if len(answer) > math_notation.MAX_CHARS:
        return Reason.CORRECT if answer == gold.text else Reason.TOO_LONG
    value = math_notation.read(answer)
    if gold.value is not None and value is not None:
        equal = math_values.same(gold.value, value)
        if equal is not None:
            return Reason.CORRECT if equal else Reason.WRONG
    if math_notation.plain(answer) == gold.plain:
        return Reason.CORRECT
    if len(answer) > MAX_ANSWER_CHARS:
        return Reason.TOO_LONG
    return Reason.UNREADABLE if _how(answer, marked) == "text" and _is_a_list(answer, gold.text) else None


def _is_a_list(sentence: str, gold: str) -> bool:
    """Whether a sentence offers several numbers and states none as its answer; math_verify would take the last.

    >>> _is_a_list("I tried 1, then 2 and then 3", "3"), _is_a_list("it is 2 or 3", "3")
    (True, True)
    >>> _is_a_list("48 / 2 = 24 in May and 48 + 24 = 72 in all", "72")
    False
    """
    if _CHOICE_OF_NUMBERS.search(sentence) and not _OR.search(gold):
        return True
    if _DENIAL.search(sentence) and not _DENIAL.search(gold):
        return True
    return len(_NUMERAL.findall(sentence)) > 2 and _STATEMENT.search(sentence) is None


def _how(text: str, marked: str) -> str:
    """How `math_judge.parse_answer` is to read a text."""
    if marked == "text":
        return "anchored"
    return "text" if marked != "boxed" and (_is_prose(text) or "$" in text.strip("$. \n")) else "formula"


def _is_prose(text: str) -> bool:
    """Whether two or more words of two or more letters stand in a text outside LaTeX commands."""
    return sum(len(word) > 1 for word in _NO_PROSE.sub(" ", text).split()) > 1


@lru_cache(maxsize=8)
def shared_verifier(workers: int | None, timeout: float, batch_timeout: float) -> MathVerifier:
    """One verifier for all who ask with the same settings, so that they share its processes."""
    return MathVerifier(workers, timeout, batch_timeout)


def grade_all(texts: list[str | None], golds: list[object]) -> list[Verdict]:
    """Judge completions with a verifier of default settings that the whole process shares.

    >>> [verdict.reward for verdict in grade_all(["<answer>0.5</answer>", "so it is 2"], [r"\\frac{1}{2}", "2"])]
    [1.0, 0.0]
    """
    return shared_verifier(None, 2.0, 5.0).grade_all(texts, golds)
