"""The verifier of reasoning-gym: is an answer to one of its rows right?

An answer is right where its score is exactly 1. What else a scorer gives, such as reasoning-gym's
share of an answer that contains the right one, is partial credit.
"""

import re
from collections.abc import Sequence
from concurrent.futures import Future
from enum import StrEnum
from typing import NamedTuple

from swift_rlvr.utils.limits import usable_cores
from swift_rlvr.verifiers.answers import OPEN, has_unclosed_answer
from swift_rlvr.verifiers.reasoning_gym import processes
from swift_rlvr.verifiers.reasoning_gym.library import REFUSED
from swift_rlvr.verifiers.reasoning_gym.rows import BadEntry, read_entry
from swift_rlvr.verifiers.statements import WORDS, final_statement
from swift_rlvr.verifiers.thinking import after_thinking, thinking_end, without_end_tokens

# An answer may be so much longer than the gold, and so many times as long.
_SPARE_CHARS = 1000
_CHARS_PER_GOLD = 4
# Answer: and **Final Answer:** at the beginning of a line
_LABEL = re.compile(
    r"^[ \t#*_]*(?:the )?(?:final |correct )?answer[ \t*_]*:[ \t*_]*", re.IGNORECASE | re.MULTILINE
)
# Marks that a response which is nothing but its answer has not.
_MARKED = re.compile(r"\\boxed|####|\banswer\b", re.IGNORECASE)


class Reason(StrEnum):
    """Why a completion got its reward; the value is the text for logs. Where several apply, the
    first listed counts.
    """

    # the column entry is not what this package writes, or the right answer cannot be scored either
    BAD_ROW = "bad row"
    REFUSED_TASK = "refused task"  # and the dataset string did not insist
    NO_ANSWER = "no answer"
    UNCLOSED_ANSWER = "unclosed answer"
    EMPTY_ANSWER = "empty answer"
    TOO_LONG = "too long"  # more than four times as long as the gold, and 1,000 characters
    TIMED_OUT = "timed out"
    # it ended its process, ran out of memory, or gave a score outside 0 to 1
    SCORER_FAILED = "scorer failed"
    WRONG = "wrong answer"
    PARTLY_RIGHT = "partly right"
    CORRECT = "correct"


class Verdict(NamedTuple):
    """The judgement of one completion."""

    score: float | None  # from 0 to 1, where 1 is right; None where the row cannot be graded
    reason: Reason
    answer: str | None = None  # as written
    detail: str = ""  # what the scorer or the row says of it


def grade_all(
    texts: Sequence[str | None],
    entries: Sequence[object],
    seconds: float = 2.0,
    memory_mb: int = processes.MEMORY_MB,
    workers: int = 0,
    forms: Sequence[str | None] | None = None,
) -> list[Verdict]:
    """Grade each completion by the entry of the same index; equal answers to the same entry are
    scored once.

    Args:
        seconds, memory_mb: for one answer, see `processes.ask`.
        workers: processes; 0 is one for each core.
        forms: where each answer stands, see `swift_rlvr.verifiers.statements`.

    Raises:
        NotInstalledError: reasoning-gym is not installed.
    """
    # Threads only wait here: each has a process of its own, in which a scorer may hang or die.
    pool = processes.pool(workers or usable_cores())
    verdicts: list[Verdict | Future[Verdict]] = []
    futures: dict[tuple[str, str], Future[Verdict]] = {}
    try:
        forms = forms or [None] * len(texts)
        for text, entry, form in zip(texts, entries, forms, strict=True):
            answer = _answer_to_score(text, entry, form)
            if isinstance(answer, Verdict):
                verdicts.append(answer)
                continue
            # A policy that has settled writes one answer many times in a group.
            job = (answer, str(entry))
            if job not in futures:
                futures[job] = pool.submit(_score, *job, seconds, memory_mb)
            verdicts.append(futures[job])
        judged = []
        for verdict in verdicts:
            judged.append(verdict.result() if isinstance(verdict, Future) else verdict)
        return judged
    finally:
        # What has not begun when this is interrupted never begins.
        for future in futures.values():
            future.cancel()


def _answer_to_score(text: str | None, entry_text: object, form: str | None) -> str | Verdict:
    """The answer to be scored, or the verdict where there is none."""
    try:
        entry = read_entry(entry_text)
    except BadEntry as error:
        return Verdict(None, Reason.BAD_ROW, detail=str(error))
    task = entry["task"]
    if task in REFUSED and entry.get("refused") != "yes":
        return Verdict(None, Reason.REFUSED_TASK, detail=f"{task}: {REFUSED[task]}")
    if text is None:
        return Verdict(0.0, Reason.NO_ANSWER)
    answer = _stated(text, form, entry["answer"].strip())
    if answer is None:
        reason = Reason.UNCLOSED_ANSWER if has_unclosed_answer(text) else Reason.NO_ANSWER
        return Verdict(0.0, reason)
    if not answer:
        return Verdict(0.0, Reason.EMPTY_ANSWER)
    if len(answer) > _SPARE_CHARS + _CHARS_PER_GOLD * len(entry["answer"]):
        return Verdict(0.0, Reason.TOO_LONG)
    return answer


def _stated(text: str, form: str | None, gold: str) -> str | None:
    """The answer of a completion; None where it states none.

    Many golds are no value on one line, which `final_statement` looks for where nothing is marked, but
    a grid, a word or a list of moves. What is read here for them is what tags would hold.
    """
    reader = WORDS._replace(is_value=lambda line: WORDS.is_value(line) or line == gold)
    statement = final_statement(text, form, reader)
    final = without_end_tokens(after_thinking(text)).strip()
    stated = None if statement is None else statement.answer.strip()
    if form or OPEN in final or not gold:
        return stated

    # a grid behind "Answer:", or a sentence with words that leave an answer open elsewhere
    labels = list(_LABEL.finditer(final))
    if labels:
        behind = final[labels[-1].end() :].strip()
        is_grid = "\n" in gold and "\n" in behind and not behind.startswith("```")
        return behind if is_grid or behind == gold else stated
    # all of the response, as long as the gold, behind a thinking that is closed
    is_alone = thinking_end(text) > 0 and not _MARKED.search(final)
    if stated is None and is_alone and final.count("\n") == gold.count("\n"):
        return final or None
    return stated


def _score(answer: str, entry: str, seconds: float, memory_mb: int) -> Verdict:
    job = {"answer": answer, "entry": entry, "seconds": seconds}
    report = processes.ask(job, seconds, memory_mb)
    if "bad_row" in report:
        return Verdict(None, Reason.BAD_ROW, answer, report["bad_row"])
    if "ended" in report:
        if report["ended"] == "timeout":
            return Verdict(0.0, Reason.TIMED_OUT, answer, f"stopped after {seconds:g} s")
        return Verdict(0.0, Reason.SCORER_FAILED, answer, report["ended"])
    if "error" in report:
        # A scorer that raises anything else cannot read the answer.
        out_of_memory = report["error"].startswith("MemoryError")
        reason = Reason.SCORER_FAILED if out_of_memory else Reason.WRONG
        return Verdict(0.0, reason, answer, report["error"])

    score = report["score"]
    if not 0 <= score <= 1:  # NaN too
        return Verdict(0.0, Reason.SCORER_FAILED, answer, f"a score of {score}")
    if score == 1:
        return Verdict(score, Reason.CORRECT, answer)
    if score > 0:
        return Verdict(score, Reason.PARTLY_RIGHT, answer)
    return Verdict(score, Reason.WRONG, answer)
