r"""The math verifier: is the final answer of a completion mathematically equal to the gold?

`swift_rlvr.answers.marked_answer` finds the answer. Where nothing marks it, "the answer is $...$" is searched for in
the last 1,000 characters. The gold is marked in the same ways, or is the bare answer: LaTeX, plain text or a number.

Numbers, fractions, choices, words, sequences of them, and answers written like the gold are settled here, exactly
(`reading.py`, `values.py`, `formulas.py`). math_verify judges everything else, in worker processes with a deadline
(`pool.py`, `worker.py`, `judge.py`). Within a batch each gold is parsed once, and equal answers to it are judged once.

More lenient than math_verify: a gold with a unit accepts the bare number; ``50\%`` equals 50 and 1/2; a choice may be
written A, (A), A. or \text{A}, and its text may follow. Stricter: decimals must be exact (0.333333 is not 1/3; against
an expression, to twelve places), and different units are not equal.
"""

import logging
import math
import re
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import NamedTuple, Self

from swift_rlvr.answers import after_think, has_unclosed_answer, marked_answer
from swift_rlvr.math_answers.pool import Job, Pool
from swift_rlvr.math_answers.reading import MAX_CHARS, plain, read
from swift_rlvr.math_answers.values import Value, same
from swift_rlvr.parallel import usable_cores

logger = logging.getLogger(__name__)
MAX_ANSWER_CHARS = 1000  # longer answers earn nothing, unless they are exact values or written like the gold
_TAIL_CHARS = 1000
_MAX_GOLDS = 100_000
_NUMERAL = re.compile(r"(?<![\w{^.])\d+(?:[.,]\d+)*")
_OR = re.compile(r"\bor\b")
_CHOICE_OF_NUMBERS = re.compile(r"\d\D{0,20}\bor\b\D{0,20}\d")
_STATEMENT = re.compile(r"=|\b(?:is|are|was|were|equals?|gives?|makes?|total|has|have|needs?|costs?)\b", re.IGNORECASE)
_DENIAL = re.compile(  # of the number that math_verify would take, or a bound on it
    r"\b(?:not|but|than|at least|at most)\s+\S{0,2}\d[\d,.]*\s*\w*\W*$|\b(?:isn.t|wrong|incorrect|neither)\b",
    re.IGNORECASE,
)
_NO_PROSE = re.compile(
    r"\\begin\s*\{array\}\s*\{[^{}]*\}|\\(?:begin|end|text\w*|mathrm|operatorname)\s*\{[^{}]*\}|\\[A-Za-z]+|\\|[^A-Za-z\s\\]+"
)


class Reason(str, Enum):
    """Why a completion got its reward; the value is the text for logs."""

    BAD_GOLD = "bad gold"  # the gold is missing or cannot be parsed: the row cannot be graded
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

    @property
    def reward(self) -> float | None:
        return None if self is Reason.BAD_GOLD else float(self is Reason.CORRECT)


class Verdict(NamedTuple):
    """The result for one completion."""

    reward: float | None  # 1.0 for a right answer, 0.0 for a wrong one, None where the gold cannot be parsed
    reason: Reason
    answer: str | None = None  # as written
    marked: str | None = None  # how it was marked: "answer tag", "boxed", "####", or "text" where it is searched for
    gold: str | None = None  # taken out of its marks


@dataclass(frozen=True)
class _Gold:
    text: str
    how: str
    value: Value | None = field(compare=False)
    plain: str


_Batch = dict[_Gold, dict[tuple[str, str], list[int]]]  # {gold: {(answer, how to read it): indexes of the rows}}


class MathVerifier:
    r"""Grades completions; keeps its worker processes between calls.

    Args:
        workers: processes for the comparisons that need computer algebra; None: one for each usable core, at most 8.
        timeout: seconds for one comparison.
        batch_timeout: seconds for one call, plus 0.01 for each answer.

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
        self._readable: dict[str, bool] = {}  # of golds that need computer algebra: whether it can read them
        self.pool = Pool(workers or min(8, usable_cores()), timeout, batch_timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker processes; they start again when needed."""
        self.pool.close()

    def grade_all(self, texts: list[str | None], golds: list[object]) -> list[Verdict]:
        """Grade each completion by the gold of the same index.

        Raises:
            RuntimeError: worker processes are needed and cannot be started. No text ever makes it raise.
        """
        if len(self._readable) > _MAX_GOLDS:
            self._readable = {}
        readable = self._readable
        verdicts = []
        batch: _Batch = {}
        read_golds = [read_gold(solution) for solution in golds]
        for index, (text, gold) in enumerate(zip(texts, read_golds, strict=True)):
            if gold is None:
                verdicts.append(Verdict(None, Reason.BAD_GOLD))
                continue
            if gold.value is None and gold.text not in readable:
                batch.setdefault(gold, {})
            found = _find_answer(text)
            if isinstance(found, Reason):
                verdicts.append(Verdict(found.reward, found, gold=gold.text))
                continue
            marked, answer = found
            reason = _compare(gold, answer, marked)
            if reason is None:
                batch.setdefault(gold, {}).setdefault((answer, _how(answer, marked)), []).append(index)
                reason = Reason.UNREADABLE  # until it is judged
            verdicts.append(Verdict(reason.reward, reason, answer, marked, gold.text))
        if batch:
            self._judge(batch, verdicts, readable)
        for index, gold in enumerate(read_golds):
            if gold and gold.value is None and not readable.get(gold.text):
                verdicts[index] = verdicts[index]._replace(reward=None, reason=Reason.BAD_GOLD)
        return verdicts

    def _judge(self, batch: _Batch, verdicts: list[Verdict], readable: dict[str, bool]) -> None:
        """Fill in the verdicts that need computer algebra, and which golds it can read."""
        jobs = [Job(gold.text, gold.how, list(answers)) for gold, answers in batch.items()]
        self.pool.run(jobs)
        for job, (gold, answers) in zip(jobs, batch.items(), strict=True):
            if job.gold is None:  # another batch may have the time
                logger.warning("the gold %r could not be parsed in time: its rows are not graded", gold.text[:200])
            else:
                readable[gold.text] = job.gold
            for number, ((answer, how), indexes) in enumerate(answers.items()):
                if job.gold is False and gold.value is not None:  # an exact value, and the answer is of another kind
                    reason = Reason.WRONG
                elif not job.gold:
                    reason = Reason.BAD_GOLD
                elif number not in job.results:
                    logger.warning("comparing took too long: answer %r, gold %r", answer[-200:], gold.text[:200])
                    reason = Reason.TIMED_OUT
                elif job.results[number] is None:
                    reason = Reason.NO_ANSWER if how == "anchored" else Reason.UNREADABLE
                else:
                    reason = Reason.CORRECT if job.results[number] else Reason.WRONG
                for index in indexes:
                    verdicts[index] = verdicts[index]._replace(reward=reason.reward, reason=reason)
                    if reason is Reason.NO_ANSWER:
                        verdicts[index] = verdicts[index]._replace(answer=None, marked=None)


def read_gold(solution: object) -> _Gold | None:
    """The gold answer of a row, or None where there is none. It may still turn out to be unreadable.

    >>> read_gold("So 3 + 4 = 7.\\n#### 7").text, read_gold(r"Hence $x = \\boxed{\\frac12}$.").text, read_gold(7).text
    ('7', '\\\\frac12', '7')
    >>> read_gold(None), read_gold("  "), read_gold("$$")
    (None, None, None)
    """
    if isinstance(solution, bool) or (isinstance(solution, float) and not math.isfinite(solution)):
        return None
    if isinstance(solution, (int, float)):
        solution = repr(solution)
    return _read_gold(solution) if isinstance(solution, str) else None


@lru_cache(maxsize=4096)
def _read_gold(solution: str) -> _Gold | None:
    marked, text = marked_answer(solution) or ("", solution.strip())
    plain_text = plain(text) if len(text) <= MAX_CHARS else text
    if not plain_text.strip("$"):
        return None
    value = read(text)
    if not marked and value is None and _is_prose(text) and not any(map(str.isdigit, text)) and "$" not in text:
        return None  # a proof, or a remark, without an answer
    return _Gold(text, _how(text, marked), value, plain_text)


def _find_answer(text: str | None) -> Reason | tuple[str, str]:
    """How a completion marks its answer, and the answer; or why there is none."""
    if text is None:
        return Reason.NO_ANSWER
    if marked := marked_answer(text):
        return marked
    if has_unclosed_answer(text):
        return Reason.UNCLOSED_ANSWER
    tail = after_think(text[-_TAIL_CHARS:])
    return ("text", tail) if "nswer" in tail else Reason.NO_ANSWER


def _compare(gold: _Gold, answer: str, marked: str) -> Reason | None:
    """The verdict, or None where it takes computer algebra."""
    if marked == "text":
        return None
    if not answer:
        return Reason.EMPTY_ANSWER
    if len(answer) > MAX_CHARS:
        return Reason.CORRECT if answer == gold.text else Reason.TOO_LONG
    value = read(answer)
    equal = same(gold.value, value) if gold.value and value else None
    if equal is not None:
        return Reason.CORRECT if equal else Reason.WRONG
    if plain(answer) == gold.plain:
        return Reason.CORRECT
    if len(answer) > MAX_ANSWER_CHARS:
        return Reason.TOO_LONG
    return Reason.UNREADABLE if _how(answer, marked) == "text" and _is_a_list(answer, gold.text) else None


def _is_a_list(sentence: str, gold: str) -> bool:
    """Whether a sentence offers several numbers without stating one as the answer; math_verify would take the last.

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
    """The argument `how` of `swift_rlvr.math_answers.judge.parse_answer`."""
    if marked == "text":
        return "anchored"
    return "text" if marked != "boxed" and (_is_prose(text) or "$" in text.strip("$. \n")) else "formula"


def _is_prose(text: str) -> bool:
    """Whether a text has two words or more, of two letters or more, outside LaTeX commands."""
    return sum(len(word) > 1 for word in _NO_PROSE.sub(" ", text).split()) > 1


shared_verifier = lru_cache(maxsize=8)(MathVerifier)  # callers with the same arguments share its processes


def grade_all(texts: list[str | None], golds: list[object]) -> list[Verdict]:
    """Grade completions with a verifier of default settings that the whole process shares.

    >>> [verdict.reward for verdict in grade_all(["<answer>0.5</answer>", "so it is 2"], [r"\\frac{1}{2}", "2"])]
    [1.0, 0.0]
    """
    return shared_verifier(None, 2.0, 5.0).grade_all(texts, golds)
