"""Run tests one after the other against the code of one completion."""

import secrets
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from swift_rlvr.verifiers.code.asserts import UnitTest, imported_modules
from swift_rlvr.verifiers.code.cases import ProgramTest, same_output
from swift_rlvr.verifiers.code.child import LONGEST_DETAIL
from swift_rlvr.verifiers.code.process import (
    ALL_TESTS,
    LOAD,
    Child,
    Ended,
    Limits,
    Zygote,
    sandboxed,
)
from swift_rlvr.verifiers.code.unfold import COLLECTIONS, find_methods

PASSED, WRONG = "passed", "wrong"
_REPORTED = ("syntax error", "error", "out of memory", "ended early")
FAILURES = (WRONG, *_REPORTED, "timeout", "too much output", "too many files", "killed")
_SPARE_OUTPUT, _LONGEST_VALUE = 1 << 16, 1 << 20
_ALIKE, _LONGEST_FRACTION = 64, 1 << 14


class Outcome(NamedTuple):
    """The outcome of one test."""

    result: str  # `PASSED`, or one of `FAILURES`
    detail: str = ""


def check(
    code: str,
    tests: list[ProgramTest] | list[UnitTest],
    limits: Limits,
    entry_point: str | None = None,
    all_tests: bool = False,
) -> list[Outcome]:
    """Run the tests in order, up to the first that fails unless `all_tests`; the outcomes of those
    that were run.

    Raises:
        SandboxError: where the code cannot be run safely; none of it has been run then.

    >>> from swift_rlvr.verifiers.code import read_tests
    >>> check("def double(x): return 2 * x", read_tests("assert double(2) == 4"), Limits())
    [Outcome(result='passed', detail='')]
    >>> check("print(int(input()) * 2)", [ProgramTest("2", "5")], Limits())
    [Outcome(result='wrong', detail="expected '5', got '4\\\\n'")]
    """
    programs = [test for test in tests if isinstance(test, ProgramTest)]
    units = [test for test in tests if isinstance(test, UnitTest)]
    job: dict[str, Any] = {"code": code, "imports": imported_modules(units) if units else None}
    job |= {"entry_point": entry_point, "longest": _longest(units)}
    outcomes = []
    with closing(Zygote(limits.packages)) as zygote:
        left = ALL_TESTS * limits.seconds
        run = _Run(zygote, limits, left, time.monotonic() + LOAD * left)
        runs = run.units(job, units) if units else run.programs(job, programs)
        with closing(runs):  # which ends the child, also where not all tests are run
            for outcome in runs:
                outcomes.append(outcome)
                if outcome.result != PASSED and not all_tests:
                    break
    return outcomes


def _longest(units: list[UnitTest]) -> int:
    """How long a value may be written, in characters.

    A right one is written in not much more than the expected one; more is not even looked at. The
    code can find out this number: it is the same for all tests, and for all rows but those that
    expect something very long.
    """
    most = max((len(_shown(unit.expected, None)) for unit in units), default=0)
    return max(_LONGEST_VALUE, 1 << (16 * most).bit_length())


@dataclass
class _Run:
    """Runs tests while there is time left; what a test uses up is its child's, so that the other
    tests lose nothing.
    """

    zygote: Zygote
    limits: Limits
    left: float  # seconds, as `Child.used` counts them
    deadline: float  # by `time.monotonic`

    @property
    def is_over(self) -> bool:
        """Whether no time is left for further tests."""
        return self.left <= 0 or time.monotonic() >= self.deadline

    @contextmanager
    def child(self, is_program: bool = False) -> Iterator[Child]:
        """A child for one test or several."""
        with sandboxed(self.zygote, self.limits, self.deadline, is_program) as child:
            self.allow(child)
            try:
                yield child
            finally:
                self.left -= child.used

    def allow(self, child: Child) -> None:
        """The time for one test."""
        child.allow(min(self.limits.seconds, self.left - child.used))

    def programs(self, job: dict, programs: list[ProgramTest]) -> Generator[Outcome, None, None]:
        for program in programs:
            expected = program.output.encode(errors="replace")
            try:
                with self.child(is_program=True) as child:
                    stdin = program.input.encode(errors="replace")
                    output, report = child.run(
                        job, stdin, max_output=2 * len(expected) + _SPARE_OUTPUT
                    )
            except Ended as ended:
                outcome = _stopped(ended, self.limits)
            else:
                got = output.decode(errors="replace")
                outcome = (
                    Outcome(PASSED)
                    if same_output(got, program.output)
                    else _wrong(program.output, _shown(got))
                )
                if report is not None:
                    outcome = _reported(report)
            yield outcome
            if outcome.result == "syntax error" or self.is_over:
                return

    def units(self, job: dict, units: list[UnitTest]) -> Generator[Outcome, None, None]:
        if "Solution" in job["code"]:
            source = "\n".join(
                f"{unit.prepare}\n{unit.source}" for unit in units if unit.arguments is None
            )
            units = [units[0]._replace(prepare=find_methods(source) + units[0].prepare), *units[1:]]
        done = 0
        while done < len(units) and not self.is_over:
            is_loaded = False
            try:
                with self.child() as child:
                    report = child.ask(job)
                    if report.get("kind") != "loaded":
                        yield _reported(report)
                        return
                    is_loaded = True
                    for unit in units[:done]:  # another child has run them
                        if unit.prepare:
                            _check_unit(
                                child, UnitTest(unit.prepare, "pass", "run"), job["longest"]
                            )
                    while done < len(units):
                        self.allow(child)
                        done += 1
                        yield _check_unit(child, units[done - 1], job["longest"])
            except Ended as ended:
                yield _stopped(ended, self.limits)
                if not is_loaded:
                    return


def _stopped(ended: Ended, limits: Limits) -> Outcome:
    if "timeout" not in ended.args:
        return Outcome(*ended.args)
    return Outcome(
        "timeout", f"stopped after {limits.seconds:g} s of CPU time, or a third of that asleep"
    )


def _check_unit(child: Child, unit: UnitTest, longest: int) -> Outcome:
    nonce = secrets.token_hex(16)
    message: dict[str, Any] = {
        "prepare": unit.prepare,
        "source": unit.source,
        "arguments": unit.arguments,
    }
    message |= {
        "is_value": unit.kind != "run",
        "is_hidden": unit.kind not in ("run", "true"),
        "nonce": nonce,
    }
    report = child.ask(message, 2 * longest)
    if report.get("nonce") != nonce:
        raise Ended("ended early")
    match unit.kind == "run", report.get("kind"):
        case True, "done":
            return Outcome(PASSED)
        case True, "failed":
            return Outcome(WRONG, _detail(report))
        case False, "opaque":
            return _wrong(unit.expected, _detail(report))
        case False, "value":
            try:
                value = decode(report.get("value"))
                return (
                    Outcome(PASSED) if unit.holds(value) else _wrong(unit.expected, _shown(value))
                )
            except (
                ValueError,
                TypeError,
                RecursionError,
                OverflowError,
                ZeroDivisionError,
            ) as error:
                return Outcome(WRONG, f"the value cannot be compared: {type(error).__name__}")
    return _reported(report)


def decode(value: Any) -> object:
    """Read what `child.encode` wrote; for anything else it raises one of the errors that
    `_check_unit` catches.

    The work grows with the length alone: numbers that code has chosen to be hashed alike, whose
    sets take quadratic time, are refused, and so are fractions of very many digits.
    """
    match value:
        case ["int", digits]:
            return int(digits, 16)
        case ["bytes", digits]:
            return bytes.fromhex(digits)
        case ["fraction", numerator, denominator]:
            if max(len(numerator), len(denominator)) > _LONGEST_FRACTION:
                raise ValueError("a fraction of very many digits")
            return Fraction(int(numerator, 16), int(denominator, 16))
        case ["complex", real, imaginary]:
            return complex(real, imaginary)
        case ["dict", *items]:
            return dict(
                zip(
                    _hashable(key for key, _ in items),
                    [decode(each) for _, each in items],
                    strict=True,
                )
            )
        case ["set", *items]:
            return set(_hashable(items))
        case ["list" | "tuple" as name, *items]:
            return COLLECTIONS[name](map(decode, items))
        case list() | dict():
            raise ValueError("unknown type")
    return value


def _hashable(items: Iterable[Any]) -> list[object]:
    """Decode elements of a set or keys of a dict. Raises ValueError where too many have the same
    hash.
    """
    values = [decode(item) for item in items]
    if values and max(Counter(map(hash, values)).values()) > _ALIKE:
        raise ValueError("too many values that are hashed alike")
    return values


def _reported(report: dict) -> Outcome:
    kind = report.get("kind")
    return Outcome(kind if kind in _REPORTED else "error", _detail(report))


def _detail(report: dict) -> str:
    detail = report.get("detail")
    return detail[:LONGEST_DETAIL] if isinstance(detail, str) else ""


def _wrong(expected: object, got: str) -> Outcome:
    return Outcome(WRONG, f"expected {_shown(expected)}, got {got}")


def _shown(value: object, most: int | None = 100) -> str:
    try:
        return repr(value)[:most]
    except (ValueError, RecursionError):  # a number of more digits than Python writes, or too deep
        return "a value too long to write"
