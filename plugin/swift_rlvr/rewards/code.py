"""Reward for programming tasks: the completion's code is run against the row's tests, in a sandbox."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from swift_rlvr import sandbox
from swift_rlvr.answers import find_code
from swift_rlvr.rewards.base import Grade, Reward, Rule
from swift_rlvr.rewards.parameters import Parameters, parameter
from swift_rlvr.sandbox import PASSED, WRONG, BadTests, Limits, Outcome, read_tests

_ALL_PASSED, _SOME_FAILED, _BAD_TESTS = "all tests passed", "some tests failed", "bad tests"
_NO_TEXT, _NO_CODE, _TOO_LONG = "no text", "no code", "code too long"
_LONGEST_CODE = 100_000  # characters; the longest solutions that people hand in have a tenth of it


class _Verdict(NamedTuple):
    grade: Grade
    code: str | None
    tests: list
    outcomes: list[Outcome]
    """Of the first tests; those after them were not run."""
    detail: str = ""


class CodeReward(Reward):
    """1.0 if the code passes all tests of the row, else 0.0; with `partial` the share of tests that it passes.

    None where the tests cannot be read. Which forms of tests there are is said in `swift_rlvr.sandbox.cases`, what code
    can and cannot do in `swift_rlvr.sandbox`, and where code is taken from in `find_code`. Only the standard library
    can be imported. The verdict of the tests is that of MBPP (arXiv:2108.07732) and HumanEval (arXiv:2107.03374).

    Raises sandbox.SandboxError when it is called where code cannot be run safely.

    >>> reward = CodeReward()
    >>> good, bad = (f"```python\\ndef add(a, b):\\n    return a {sign} b\\n```" for sign in "+-")
    >>> reward([good, bad], tests=[["assert add(1, 2) == 3", "assert add(0, 0) == 0"]] * 2)
    [1.0, 0.0]
    """

    name = "external_code"
    runs_code = True
    columns = ("tests",)
    optional_columns = ("entry_point",)
    reasons = (
        *(_ALL_PASSED, _SOME_FAILED, _BAD_TESTS, _NO_TEXT, _NO_CODE, _TOO_LONG),
        *(failure for failure in sandbox.FAILURES if failure != WRONG),
    )

    @dataclass(frozen=True)
    class Parameters(Parameters):
        tasks: tuple[str, ...] = parameter(("code",), "values of the column `task` to which the reward applies")
        partial: bool = parameter(False, "give the share of tests that pass, not only 1 for all of them")
        timeout: float = parameter(6.0, "seconds for all tests of one completion, by the clock on the wall")
        memory_mb: int = parameter(512, "memory of the code, in MiB of address space")
        max_workers: int = parameter(0, "completions that are run at a time; 0: one for each CPU that can be used")

        def __post_init__(self):
            self.require(0 < self.timeout <= 3600, "timeout", "more than 0 and at most 3600 seconds")
            self.require(self.memory_mb >= 64, "memory_mb", "at least 64")
            self.require(self.max_workers >= 0, "max_workers", "0 or more")

    def grade(self, text: str | None, tests: object, entry_point: object = None) -> Grade:
        return self._judge(text, tests, entry_point).grade

    def grade_all(self, texts: list[str | None], *columns: list) -> list[Grade]:
        """Grade several at a time; code that occurs more than once with the same tests is run once."""
        keys = [(text is None, text and find_code(text), repr(row)) for text, *row in zip(texts, *columns, strict=True)]
        first = {}
        for index, key in enumerate(keys):
            first.setdefault(key, index)
        workers = self.parameters.max_workers or len(os.sched_getaffinity(0))
        with ThreadPoolExecutor(max(1, min(workers, len(first)))) as pool:
            rows = ((texts[index], *(column[index] for column in columns)) for index in first.values())
            grades = dict(zip(first, pool.map(lambda row: self.grade(*row), rows), strict=True))
        return [grades[key] for key in keys]

    def _judge(self, text: str | None, tests: object, entry_point: object) -> _Verdict:
        try:
            tests = read_tests(tests, entry_point)
        except BadTests as error:
            return _Verdict(Grade(None, _BAD_TESTS), None, [], [], str(error))
        code = None if text is None else find_code(text)
        if code is None or len(code) > _LONGEST_CODE:
            reason = _NO_TEXT if text is None else _NO_CODE if code is None else _TOO_LONG
            return _Verdict(Grade(0.0, reason), code, tests, [])
        limits = Limits(self.parameters.timeout, self.parameters.memory_mb)
        outcomes = sandbox.check(code, tests, limits, entry_point, self.parameters.partial)
        failures = [outcome.result for outcome in outcomes if outcome.result != PASSED]
        if not failures:
            return _Verdict(Grade(1.0, _ALL_PASSED), code, tests, outcomes)
        share = (len(outcomes) - len(failures)) / len(tests) if self.parameters.partial else 0.0
        return _Verdict(Grade(share, _SOME_FAILED if failures[0] == WRONG else failures[0]), code, tests, outcomes)

    def rules(self, text: str | None, tests: object, entry_point: object = None) -> tuple[str | None, list[Rule]]:
        (_, reason), code, tests, outcomes, detail = self._judge(text, tests, entry_point)
        rules = [Rule("the row's tests can be read", reason != _BAD_TESTS, detail or f"{len(tests)} tests")]
        found = None if reason == _BAD_TESTS else code is not None
        rules.append(Rule("there is a Python code block", found, "no text" if text is None else ""))
        long = None if not found else len(code) <= _LONGEST_CODE
        rules.append(Rule(f"it has at most {_LONGEST_CODE} characters", long, f"{len(code)}" if found else ""))
        compiles = None if not outcomes else outcomes[0].result != "syntax error"
        rules.append(Rule("it compiles", compiles, "" if compiles is not False else outcomes[0].detail))
        if compiles is False:
            outcomes = []
        for number, test in enumerate(tests):
            outcome = outcomes[number] if number < len(outcomes) else None
            passed = None if outcome is None else outcome.result == PASSED
            said = "not run" if outcome is None else ": ".join(filter(None, outcome)) if not passed else ""
            rules.append(Rule(f"it passes test {number + 1}", passed, f"{str(test)[:100]}{' -> ' * bool(said)}{said}"))
        return code, rules
