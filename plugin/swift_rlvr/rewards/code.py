"""Reward for programming tasks: the completion's code is run against the row's tests, in a
sandbox.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest

from swift_rlvr.rewards.base import Reward
from swift_rlvr.rewards.grade import Columns, Example, Explanation, Grade, Row, Rule, rules_in_order
from swift_rlvr.rewards.parameters import BaseParameters
from swift_rlvr.success import VERIFIER
from swift_rlvr.utils.parallel import usable_cores
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers import code as sandbox
from swift_rlvr.verifiers.answers import find_code
from swift_rlvr.verifiers.code import FAILURES, PASSED, WRONG, BadTests, Limits, Verdict, read_tests
from swift_rlvr.verifiers.code.asserts import UnitTest
from swift_rlvr.verifiers.code.cases import ProgramTest

_ALL_PASSED, _SOME_FAILED, _BAD_TESTS = "all tests passed", "some tests failed", "bad tests"
_NO_TEXT, _NO_CODE, _TOO_LONG, _SYNTAX_ERROR = "no text", "no code", "code too long", "syntax error"
_LONGEST_CODE = 100_000  # characters; the longest solutions that people submit have a tenth of that
_RULES = {
    _BAD_TESTS: "the row's tests can be read",
    _NO_CODE: "there is a Python code block",
    _TOO_LONG: f"it has at most {_LONGEST_CODE} characters",
    _SYNTAX_ERROR: "it compiles",
}
UNUSABLE = "tests cannot be used"


class CodeReward(Reward):
    """1.0 if the code passes all tests of the row, else 0.0; with `partial` the share of tests that
    it passes.

    None where the tests cannot be read. `swift_rlvr.verifiers.code.cases` lists the forms of tests,
    `swift_rlvr.verifiers.code` what code can and cannot do, and `find_code` says where code is
    taken from. Calling it raises sandbox.SandboxError where code cannot be run safely. The metric
    is that of MBPP (arXiv:2108.07732) and HumanEval (arXiv:2107.03374).

    >>> reward = CodeReward()
    >>> good, bad = (f"```python\\ndef add(a, b):\\n    return a {sign} b\\n```" for sign in "+-")
    >>> reward([good, bad], tests=[["assert add(1, 2) == 3", "assert add(0, 0) == 0"]] * 2)
    [1.0, 0.0]
    """

    name = "external_code"
    role = VERIFIER
    runs_code = True
    columns = ("tests",)
    optional_columns = ("entry_point",)
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
        *(_ALL_PASSED, _SOME_FAILED, _BAD_TESTS, _NO_TEXT, _NO_CODE, _TOO_LONG),
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
        Example("<answer>def add(a, b): return a + b</answer>", {"tests": "assert ("}, None),
    )

    @dataclass(frozen=True)
    class Parameters(BaseParameters):
        partial: bool = setting(
            False, "give the share of tests that pass, not only 1 for all of them"
        )
        timeout: float = setting(
            6.0,
            "seconds of CPU time for each test, a third of that asleep; five times as much for all of them",
            more_than=0,
            at_most=3600,
        )
        memory_mb: int = setting(512, "memory of the code, in MiB of address space", at_least=64)
        packages: tuple[str, ...] = setting(
            (),
            "modules that code and tests may import besides the standard library, such as numpy; installed here",
        )
        max_workers: int = setting(
            0, "completions to run at a time; 0: one for each core of its rank", at_least=0
        )

    @classmethod
    def remarks(cls, row: Row) -> list[str]:
        try:
            tests = read_tests(row["tests"], row.get("entry_point"))
        except BadTests as error:
            return [f"{UNUSABLE}: {error}"]
        told = {test.told for test in tests if isinstance(test, UnitTest)}
        return [f"a test that code can lie to: {each}" for each in sorted(filter(None, told))]

    def _read_tests(self, row: Row) -> list[ProgramTest] | list[UnitTest]:
        return read_tests(row["tests"], row.get("entry_point"), self.parameters.packages)

    def grade(self, text: str | None, row: Row) -> Grade:
        return Grade(*self.explain_text(text, row)[:2])

    def grade_batch(self, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
        """Grade several at a time; code that occurs more than once with the same tests is run
        once.
        """
        rows = [
            dict(zip(columns, values, strict=True))
            for values in zip(*columns.values(), strict=True)
        ]
        keys = [
            (text is None, text and find_code(text), repr(row))
            for text, row in zip(texts, rows, strict=True)
        ]
        runs = {key: (text, row) for key, text, row in zip(keys, texts, rows, strict=True)}
        for row in {
            key[2]: row for key, (_, row) in runs.items()
        }.values():  # not each by its own thread
            with suppress(BadTests):
                self._read_tests(row)
        workers = self.parameters.max_workers or usable_cores()
        with ThreadPoolExecutor(max(1, min(workers, len(runs)))) as pool:
            grades = dict(
                zip(runs, pool.map(lambda run: self.grade(*run), runs.values()), strict=True)
            )
        return [grades[key] for key in keys]

    def explain_text(self, text: str | None, row: Row) -> Explanation:
        code: str | None = None
        tests: list[ProgramTest] | list[UnitTest] = []
        outcomes: Sequence[Verdict] = ()  # of the first tests; those after them were not run

        def explanation(reward: float | None, reason: str, detail: str = "") -> Explanation:
            rules = rules_in_order(_RULES, _NO_CODE if reason == _NO_TEXT else reason, detail)
            for number, (test, outcome) in enumerate(zip_longest(tests, outcomes), 1):
                passed = None if outcome is None else outcome.reason == PASSED
                result = "not run" if outcome is None else ": ".join(filter(None, outcome))
                rules.append(
                    Rule(f"it passes test {number}", passed, f"{str(test)[:100]} -> {result}")
                )
            return Explanation(reward, reason, code, rules)

        try:
            tests = self._read_tests(row)
        except BadTests as error:
            return explanation(None, _BAD_TESTS, str(error))
        if text is None:
            return explanation(0.0, _NO_TEXT, "no text")
        code = find_code(text)
        if code is None:
            return explanation(0.0, _NO_CODE)
        if len(code) > _LONGEST_CODE:
            return explanation(0.0, _TOO_LONG, f"it has {len(code)}")
        limits = Limits(
            self.parameters.timeout, self.parameters.memory_mb, self.parameters.packages
        )
        results = sandbox.check(
            code, tests, limits, row.get("entry_point"), self.parameters.partial
        )
        if results[0].reason == _SYNTAX_ERROR:
            return explanation(0.0, _SYNTAX_ERROR, results[0].detail)
        outcomes = results
        failures = [outcome.reason for outcome in outcomes if outcome.reason != PASSED]
        if not failures:
            return explanation(1.0, _ALL_PASSED)
        share = (len(outcomes) - len(failures)) / len(tests) if self.parameters.partial else 0.0
        return explanation(share, _SOME_FAILED if failures[0] == WRONG else failures[0])
