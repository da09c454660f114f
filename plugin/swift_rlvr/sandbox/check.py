"""Run tests one after the other against the code of one completion."""

import secrets
import time
from collections import Counter
from collections.abc import Generator
from contextlib import closing
from fractions import Fraction
from typing import Any, NamedTuple

from swift_rlvr.sandbox.asserts import UnitTest, imported_modules
from swift_rlvr.sandbox.cases import ProgramTest, same_output
from swift_rlvr.sandbox.child import LONGEST_DETAIL
from swift_rlvr.sandbox.process import Child, Ended, Limits, sandboxed
from swift_rlvr.sandbox.unfold import COLLECTIONS, find_methods

PASSED, WRONG = "passed", "wrong"
_REPORTED = ("syntax error", "error", "out of memory", "ended early")
FAILURES = (WRONG, *_REPORTED, "timeout", "too much output", "too many files", "killed")
_SPARE_OUTPUT = 1 << 16
_MOST_COLLISIONS = 16  # of keys in a set; -1 and -2 have the same hash, and hardly anything else that is honest
_LONGEST_FRACTION = 2000  # hexadecimal digits; reducing it takes quadratic time


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
    """Run the tests in order, up to the first that fails unless `all_tests`; the outcomes of those that were run.

    Raises:
        SandboxError: where the code cannot be run safely; none of it has been run then.

    >>> from swift_rlvr.sandbox import read_tests
    >>> check("def double(x): return 2 * x", read_tests("assert double(2) == 4"), Limits())
    [Outcome(result='passed', detail='')]
    >>> check("print(int(input()) * 2)", [ProgramTest("2", "5")], Limits())
    [Outcome(result='wrong', detail="expected '5', got '4\\\\n'")]
    """
    deadline = time.monotonic() + limits.seconds
    programs = [test for test in tests if isinstance(test, ProgramTest)]
    units = [test for test in tests if isinstance(test, UnitTest)]
    job = {"code": code, "imports": imported_modules(units) if units else None, "entry_point": entry_point}
    outcomes = []
    runs = _run_units(job, units, limits, deadline) if units else _run_programs(job, programs, limits, deadline)
    with closing(runs):  # which ends the child, also where not all tests are run
        for outcome in runs:
            outcomes.append(outcome)
            if outcome.result != PASSED and not all_tests:
                break
    return outcomes


def _run_programs(
    job: dict, programs: list[ProgramTest], limits: Limits, deadline: float
) -> Generator[Outcome, None, None]:
    for program in programs:
        expected = program.output.encode(errors="replace")
        try:
            with sandboxed(limits, deadline, is_program=True) as child:
                stdin = program.input.encode(errors="replace")
                output, report = child.run(job, stdin, max_output=2 * len(expected) + _SPARE_OUTPUT)
        except Ended as ended:
            outcome = _stopped(ended, limits)
        else:
            got = output.decode(errors="replace")
            outcome = Outcome(PASSED) if same_output(got, program.output) else _wrong(program.output, _shown(got))
            if report is not None:
                outcome = _reported(report)
        yield outcome
        if outcome.result == "syntax error" or time.monotonic() >= deadline:
            return


def _run_units(job: dict, units: list[UnitTest], limits: Limits, deadline: float) -> Generator[Outcome, None, None]:
    try:
        with sandboxed(limits, deadline) as child:
            report = child.ask(job)
            if report.get("kind") != "loaded":
                yield _reported(report)
                return
            if "Solution" in job["code"]:
                source = "\n".join(f"{unit.prepare}\n{unit.source}" for unit in units if unit.arguments is None)
                units = [units[0]._replace(prepare=find_methods(source) + units[0].prepare), *units[1:]]
            # A right value is written in not much more than the expected one; more is not even looked at. The code can
            # see this limit, so it is one for all tests of the row, and says no more than their order of magnitude.
            longest = 16 * max(len(_shown(unit.expected, None)) for unit in units) + _SPARE_OUTPUT
            for unit in units:
                yield _check_unit(child, unit, 1 << longest.bit_length())
    except Ended as ended:
        yield _stopped(ended, limits)


def _stopped(ended: Ended, limits: Limits) -> Outcome:
    return (
        Outcome("timeout", f"stopped after {limits.seconds:g} s") if "timeout" in ended.args else Outcome(*ended.args)
    )


def _check_unit(child: Child, unit: UnitTest, longest: int) -> Outcome:
    nonce = secrets.token_hex(16)
    message = {"prepare": unit.prepare, "source": unit.source, "longest": longest, "nonce": nonce}
    message |= {"is_value": unit.kind != "run", "is_hidden": unit.kind not in ("run", "true")}
    message["arguments"] = unit.arguments
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
                return Outcome(PASSED) if unit.holds(value) else _wrong(unit.expected, _shown(value))
            except (ValueError, TypeError, RecursionError, OverflowError, ZeroDivisionError) as error:
                return Outcome(WRONG, f"the value cannot be compared: {type(error).__name__}")
    return _reported(report)


def decode(value: Any) -> object:
    """Read what `child.encode` wrote; for anything else it raises one of the errors that `_check_unit` catches."""
    match value:
        case ["int", digits]:
            return int(digits, 16)
        case ["bytes", digits]:
            return bytes.fromhex(digits)
        case ["fraction", str(numerator), str(denominator)] if len(numerator) + len(denominator) < _LONGEST_FRACTION:
            return Fraction(int(numerator, 16), int(denominator, 16))
        case ["complex", real, imaginary]:
            return complex(real, imaginary)
        case ["dict", *items]:
            keys = _without_collisions([decode(key) for key, _ in items])
            return dict(zip(keys, (decode(each) for _, each in items), strict=True))
        case ["set", *items]:
            return set(_without_collisions([*map(decode, items)]))
        case ["list" | "tuple" as name, *items]:
            return COLLECTIONS[name](map(decode, items))
        case list() | dict():
            raise ValueError("unknown type")
    return value


def _without_collisions(keys: list) -> list:
    """Refuse keys that are chosen so that a set of them takes quadratic time."""
    if max(Counter(map(hash, keys)).values(), default=0) > _MOST_COLLISIONS:
        raise ValueError("keys of one hash")
    return keys


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
