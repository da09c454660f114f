"""Reward for programming tasks: the completion's code is run against the row's tests, in a
sandbox.
"""

import hashlib
import pickle
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeVar

from swift_rlvr.rewards.base import (
    Columns,
    Example,
    Explanation,
    Grade,
    Reward,
    Row,
    Rule,
    rules_in_order,
)
from swift_rlvr.rewards.parameters import BaseParameters
from swift_rlvr.success import MEMORISED, ONLY_TOGETHER, VERIFIER
from swift_rlvr.tasks.code import unnamed
from swift_rlvr.utils.limits import usable_cores
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers import code as sandbox
from swift_rlvr.verifiers.answers import answer_scope, code_blocks
from swift_rlvr.verifiers.code import (
    FAILURES,
    PASSED,
    TOO_MANY_CALLS,
    UNGRADED,
    WRONG,
    BadTests,
    Limits,
    Verdict,
    read_tests,
)
from swift_rlvr.verifiers.code.blocks import is_program, program_of
from swift_rlvr.verifiers.code.calls import CallTest
from swift_rlvr.verifiers.code.cases import ProgramTest, read_form
from swift_rlvr.verifiers.code.check import COMPARES_ITSELF, NOTHING_STANDS_IN
from swift_rlvr.verifiers.code.plain import AssertTest
from swift_rlvr.verifiers.code.process import Zygotes
from swift_rlvr.verifiers.code.sources import UnitTest

_ALL_PASSED, _SOME_FAILED, _BAD_TESTS = "all tests passed", "some tests failed", "bad tests"
_NO_TEXT, _NO_CODE, _TOO_LONG, _SYNTAX_ERROR = "no text", "no code", "code too long", "syntax error"
_NO_ROOM = "no room to run it"
_LONGEST_CODE = 100_000  # characters; the longest solutions that people submit have a tenth of that
ADDED = "added_tests"
_RULES = {
    _BAD_TESTS: "the row's tests can be read",
    _NO_CODE: "there is a Python code block",
    _TOO_LONG: f"it has at most {_LONGEST_CODE} characters",
    _SYNTAX_ERROR: "it compiles",
}
Run = TypeVar("Run")
Result = TypeVar("Result")
UNUSABLE = "tests cannot be used"
UNNAMED = "the prompt does not name a function or class that the tests use"
# How code may fail that passes together with its tests all the same.
_MAY_PASS_TOGETHER = (WRONG, "error", TOO_MANY_CALLS, *UNGRADED)
# Outcomes that do not depend on how busy the machine is, unlike a timeout or a killed process.
_REPEATABLE = (PASSED, WRONG, _SYNTAX_ERROR, "error", NOTHING_STANDS_IN)
Tests = list[ProgramTest] | list[UnitTest | CallTest | AssertTest]


class CodeReward(Reward):
    """1.0 if the code passes all tests of the row, else 0.0; with `partial` the share of tests that
    it passes.

    The tests are those in `tests` and, if the row has some, those in `added_tests`, which no prompt
    shows. Code that passes the first and fails one of the second gets a reason of its own. The row
    is not graded (None) if the tests cannot be read, or if the machine has no room for another
    process, pipe or folder for a while. `swift_rlvr.verifiers.code.cases` lists the forms of tests,
    `swift_rlvr.verifiers.code` what code can and cannot do. The code is the last of the completion's
    `code_blocks` that may pass the tests, with those that define what it needs. Calling it raises
    sandbox.SandboxError where code cannot be run safely. The metric is that of MBPP
    (arXiv:2108.07732) and HumanEval (arXiv:2107.03374).

    >>> reward = CodeReward()
    >>> good, bad = (f"```python\\ndef add(a, b):\\n    return a {sign} b\\n```" for sign in "+-")
    >>> reward([good, bad], tests=[["assert add(1, 2) == 3", "assert add(0, 0) == 0"]] * 2)
    [1.0, 0.0]
    """

    name = "external_code"
    role = VERIFIER
    runs_code = True
    without_gold = "the tests were not tried, since there is no reference solution"
    columns = ("tests",)
    optional_columns = ("entry_point", ADDED)
    columns_elsewhere = {
        "tests": (
            "verification_info",
            "reward_model",
            "ground_truth",
            "input_output",
            "test_cases",
            "test_list",
        )
    }
    reasons = (
        *(_ALL_PASSED, _SOME_FAILED, MEMORISED),
        *(_BAD_TESTS, _NO_TEXT, _NO_CODE, _TOO_LONG, _NO_ROOM, ONLY_TOGETHER),
        *(failure for failure in FAILURES if failure != WRONG),
    )
    examples = (
        Example(
            "<answer>def add(a, b): return a + b</answer>",
            {"tests": ["assert add(1, 2) == 3"]},
            1.0,
        ),
        Example(
            "<answer>def add(a, b): return a - b</answer>",
            {"tests": ["assert add(1, 2) == 3"]},
            0.0,
        ),
        Example(
            "<answer>def add(a, b): return 3</answer>",
            {"tests": ["assert add(1, 2) == 3"], ADDED: '["assert add(1, 4) == 5"]'},
            0.0,
        ),
        Example("<answer>def add(a, b): return a + b</answer>", {"tests": "assert ("}, None),
    )

    @dataclass(frozen=True)
    class Parameters(BaseParameters):
        partial: bool = setting(
            False, "reward the share of tests that pass, instead of all or nothing"
        )
        timeout: float = setting(
            6.0,
            "CPU seconds for each test; it may sleep for a third of that, and all tests together get "
            "five times as much",
            more_than=0,
            at_most=3600,
        )
        memory_mb: int = setting(
            512, "memory limit for the code, in MiB of address space", at_least=64
        )
        packages: tuple[str, ...] = setting(
            (),
            "installed modules that code and tests may import besides the standard library, such as numpy",
        )
        without_landlock: bool = setting(
            False,
            "run code even without Landlock (Linux 5.13); it can then read every file that you can, "
            "and the expected results",
        )
        together: bool = setting(
            False,
            "pay code that passes a test program only in one process with it, where code can lie to "
            "its tests; else it is not graded",
        )
        max_workers: int = setting(
            0, "how many completions run at a time; 0: one per core of the rank", at_least=0
        )

    def __init__(self, args: object = None, **parameters: Any):
        super().__init__(args, **parameters)
        self._zygotes = Zygotes(self.parameters.packages)

    @property
    def limits(self) -> Limits:
        """What a completion may use."""
        parameters = self.parameters
        return Limits(
            parameters.timeout,
            parameters.memory_mb,
            parameters.packages,
            parameters.without_landlock,
        )

    @classmethod
    def remarks(cls, row: Row) -> list[str]:
        try:
            read_tests(row["tests"], row.get("entry_point"))
            if row.get(ADDED) is not None:
                read_tests(row[ADDED], row.get("entry_point"))
        except BadTests as error:
            return [f"{UNUSABLE}: {error}"]
        texts = []
        for message in row.get("messages") or ():
            texts.append(str(message.get("content")))
        form = read_form(row["tests"], row.get("entry_point"))
        return [UNNAMED] if texts and unnamed(form, "\n".join(texts)) else []

    def grade_batch(self, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
        """Grade several at a time; code that occurs more than once with the same tests is run once.

        `external_cosine` and gated rewards ask for the same verdicts in the same step, so those
        that do not depend on the machine are kept in `_VERDICTS`.
        """
        parameters = self.parameters
        decisive = (
            (parameters.partial, parameters.together, parameters.packages),
            (parameters.timeout, parameters.memory_mb, parameters.without_landlock),
        )
        keys = []
        runs: dict[str, tuple[str | None, Row]] = {}  # what has to be run, by its key
        for text, *values in zip(texts, *columns.values(), strict=True):
            row = dict(zip(columns, values, strict=True))
            # All that decides a verdict. Of the completion that is its code: what it says around the blocks
            # differs in all of a group. Without a block all of the answer may be code.
            blocks = None if text is None else code_blocks(text) or [text]
            key = _key_of((blocks, row, decisive))
            keys.append(key)
            runs[key] = text, row

        grades = _VERDICTS.known(keys)
        for key in grades:
            del runs[key]
        # Read the tests of all rows, which are kept, before several threads ask for them.
        for once in {_key_of(row): row for _, row in runs.values()}.values():
            with suppress(BadTests):
                self._read(once)
        workers = max(1, min(parameters.max_workers or usable_cores(), len(runs)))
        self._zygotes.is_stopped = False
        stop = self._zygotes.stop
        explained = _in_threads(lambda run: self._run(*run), list(runs.values()), workers, stop)
        for key, (explanation, repeatable) in zip(runs, explained, strict=True):
            grades[key] = Grade(explanation.reward, explanation.reason)
            if repeatable:
                _VERDICTS.keep(key, grades[key])
        return [grades[key] for key in keys]

    def grade(self, text: str | None, row: Row) -> Explanation:
        return self._run(text, row)[0]

    def _run(self, text: str | None, row: Row) -> tuple[Explanation, bool]:
        """The explanation of a grade, and whether every run of the code would give the same."""
        try:
            tests, added = self._read(row)
        except BadTests as error:
            return _explanation(None, _BAD_TESTS, detail=str(error)), True
        if text is None:
            return _explanation(0.0, _NO_TEXT, tests=tests, detail="no text"), True
        code = _program_of(text, row)
        if not code:
            return _explanation(0.0, _NO_CODE, tests=tests), True
        if len(code) > _LONGEST_CODE:
            detail = f"it has {len(code)}"
            return _explanation(0.0, _TOO_LONG, code, tests, detail=detail), True

        try:
            visible, more = self._checked(code, tests), _Checked()
            if added and (visible.passes or self.parameters.partial):
                # With limits of their own: further tests take nothing from the row's.
                more = self._checked(code, added)
        except OSError as error:
            return _explanation(None, _NO_ROOM, code, tests, detail=str(error)), False
        is_repeatable = visible.is_repeatable and more.is_repeatable
        first = visible.verdicts[0]
        if first.reason == _SYNTAX_ERROR:
            detail = first.detail
            return _explanation(0.0, _SYNTAX_ERROR, code, tests, detail=detail), is_repeatable
        reward, reason = self._judge(visible, more, len(tests) + len(added))
        explained = _explanation(
            reward, reason, code, tests, visible.verdicts, "", added, more.verdicts
        )
        return explained, is_repeatable

    def _checked(self, code: str, tests: Tests) -> "_Checked":
        """What came of the tests. Where code fails a test program, it is also run in one process with
        it: between two, what crosses is a copy or a proxy, and some right code does not work.
        """
        partial = self.parameters.partial
        verdicts = sandbox.check(code, tests, self.limits, partial, self._zygotes)
        apart = _Checked(verdicts)
        has_programs = any(isinstance(test, UnitTest) for test in tests)
        if not has_programs or not apart.failures or apart.failures[0] not in _MAY_PASS_TOGETHER:
            return apart
        passes = sandbox.passes_together(code, tests, self.limits, self._zygotes)
        return _Checked(verdicts, passes)

    def _judge(self, visible: "_Checked", more: "_Checked", count: int) -> tuple[float | None, str]:
        """Reward and reason for code that was run; `count` is how many tests there are."""
        failures = [*visible.failures, *more.failures]
        if not failures:
            return 1.0, _ALL_PASSED
        if visible.passes and more.passes:
            if None in (visible.passes_together, more.passes_together):
                return None, COMPARES_ITSELF
            # Here code can lie to its tests, so that this alone is no proof.
            return 1.0 if self.parameters.together else None, ONLY_TOGETHER
        # Nobody knows whether the code is wrong where one test says nothing, even if others fail.
        for failure in failures:
            if failure in UNGRADED:
                return None, failure

        reason = failures[0]
        if not visible.failures:
            reason = MEMORISED
        elif reason == WRONG:
            reason = _SOME_FAILED
        share = 0.0
        if self.parameters.partial:
            for verdict in (*visible.verdicts, *more.verdicts):
                share += 1.0 if verdict.reason == PASSED else verdict.share
        return share / count, reason

    def _read(self, row: Row) -> tuple[Tests, Tests]:
        """The tests of a row, and those that were added to it; empty where none were."""
        entry_point, packages = row.get("entry_point"), self.parameters.packages
        where = ""
        added: Tests = []
        try:
            tests = read_tests(row["tests"], entry_point, packages)
            if row.get(ADDED) is not None:
                where = f"{ADDED}: "
                added = read_tests(row[ADDED], entry_point, packages)
        except ValueError as error:  # BadTests, or a number of more digits than Python reads
            raise BadTests(f"{where}{error}") from None
        return tests, added


def _program_of(text: str, row: Row) -> str:
    """What of a completion is to be run; empty where it has no code."""
    form = read_form(row["tests"], row.get("entry_point"))
    blocks = code_blocks(text)
    if blocks:
        return program_of(blocks, form)
    # Many write no fence around an answer that is all code.
    whole = answer_scope(text)
    return whole if len(whole) <= _LONGEST_CODE and is_program(whole, form) else ""


@dataclass(frozen=True)
class _Checked:
    """What came of tests that code was run against; of none, where it was not."""

    verdicts: Sequence[Verdict] = ()
    # whether it passes those that it fails where it is in one process with them; None if its own objects
    # have said so
    passes_together: bool | None = False

    @property
    def failures(self) -> list[str]:
        """The reasons of the tests that were not passed."""
        return [verdict.reason for verdict in self.verdicts if verdict.reason != PASSED]

    @property
    def passes(self) -> bool:
        """Whether it passes them all, in one way or the other."""
        return self.passes_together is not False or not self.failures

    @property
    def is_repeatable(self) -> bool:
        """Whether the verdicts do not depend on how busy the machine is."""
        return all(verdict.reason in _REPEATABLE for verdict in self.verdicts)


def _key_of(value: object) -> str:
    """A short text that tells plain values apart."""
    try:
        written = repr(value).encode("utf-8", "surrogatepass")
    except ValueError:  # a whole number of more digits than Python writes in decimals
        written = pickle.dumps(value)
    return hashlib.sha256(written).hexdigest()


def _in_threads(
    run: Callable[[Run], Result], runs: list[Run], workers: int, stop: Callable[[], None]
) -> list[Result]:
    """The results of all runs, by this thread and up to `workers - 1` others, fewer where the
    machine has no room for them. After Ctrl-C `stop` is called, which ends the runs of the others.
    """
    results: dict[int, Result] = {}
    errors: list[BaseException] = []
    waiting = deque(enumerate(runs))

    def work() -> None:
        while not errors:
            try:
                number, one = waiting.popleft()
            except IndexError:
                return
            try:
                results[number] = run(one)
            except BaseException as error:
                errors.append(error)

    threads = []
    for _ in range(workers - 1):
        thread = threading.Thread(target=work)
        with suppress(RuntimeError):
            thread.start()
            threads.append(thread)
    work()
    try:
        if errors and not isinstance(errors[0], Exception):
            stop()
        for thread in threads:
            thread.join()
    except BaseException:
        stop()
        raise
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(runs))]


class _Verdicts:
    """The latest verdicts of a process by their keys, for all rewards and threads of it."""

    def __init__(self, most: int):
        self.most = most
        self._by_key: dict[str, Grade] = {}
        self._lock = threading.Lock()

    def known(self, keys: Iterable[str]) -> dict[str, Grade]:
        """Those of these keys that are kept."""
        with self._lock:
            return {key: self._by_key[key] for key in keys if key in self._by_key}

    def keep(self, key: str, grade: Grade) -> None:
        """Keep one, in place of the oldest where there are too many."""
        with self._lock:
            self._by_key[key] = grade
            if len(self._by_key) > self.most:
                del self._by_key[next(iter(self._by_key))]

    def clear(self) -> None:
        """Forget all."""
        with self._lock:
            self._by_key.clear()


_VERDICTS = _Verdicts(most=4096)


def _explanation(
    reward: float | None,
    reason: str,
    code: str | None = None,
    tests: Tests | None = None,
    outcomes: Sequence[Verdict] = (),
    detail: str = "",
    added: Sequence[object] = (),
    more: Sequence[Verdict] = (),
) -> Explanation:
    """The rules of a verdict: those about the code, then one for each test.

    outcomes: of the first tests; those after them were not run. added, more: the same of the tests
    that were added to the row.
    """
    rules = rules_in_order(_RULES, _NO_CODE if reason == _NO_TEXT else reason, detail)
    rules += _rules_of_tests("test", tests or [], outcomes)
    rules += _rules_of_tests("added test", added, more)
    return Explanation(reward, reason, code, rules)


def _rules_of_tests(
    name: str, tests: Sequence[object], outcomes: Sequence[Verdict]
) -> Iterator[Rule]:
    for number, (test, outcome) in enumerate(zip_longest(tests, outcomes), 1):
        passed, result = None, "not run"
        if outcome is not None:
            passed = outcome.reason == PASSED
            result = ": ".join(filter(None, (outcome.reason, outcome.detail)))
        yield Rule(f"it passes {name} {number}", passed, f"{str(test)[:100]} -> {result}")
