"""Run tests one after the other against the code of one completion."""

from __future__ import annotations

import secrets
import time
from fractions import Fraction
from typing import Any, NamedTuple

from swift_rlvr.sandbox.asserts import Step, imported_modules
from swift_rlvr.sandbox.cases import Case, same_output
from swift_rlvr.sandbox.child import LONGEST_DETAIL
from swift_rlvr.sandbox.process import Child, Limits

PASSED, WRONG = "passed", "wrong"
_REPORTED = ("syntax error", "error", "out of memory", "ended early")
FAILURES = (WRONG, *_REPORTED, "timeout", "too much output", "too many files", "killed")
_SPARE_OUTPUT = 1 << 16


class Outcome(NamedTuple):
    """The outcome of one test."""

    result: str
    """`PASSED`, or one of `FAILURES`."""
    detail: str = ""


def check(
    code: str, tests: list[Case] | list[Step], limits: Limits, entry_point: str | None = None, all_tests: bool = False
) -> list[Outcome]:
    """Run the tests in order, up to the first that fails unless `all_tests`; the outcomes of those that were run.

    Raises:
        SandboxError: where the code cannot be run safely; none of it has been run then.

    >>> from swift_rlvr.sandbox import read_tests
    >>> check("def double(x): return 2 * x", read_tests("assert double(2) == 4"), Limits())
    [Outcome(result='passed', detail='')]
    >>> check("print(int(input()) * 2)", [Case("2", "5")], Limits())
    [Outcome(result='wrong', detail="expected '5', got '4\\\\n'")]
    """
    deadline = time.monotonic() + limits.seconds
    steps = [test for test in tests if isinstance(test, Step)]
    if steps:
        return _check_steps(code, steps, limits, entry_point, all_tests, deadline)
    outcomes = []
    for case in tests:
        assert isinstance(case, Case)
        outcomes.append(_check_case(code, case, limits, deadline))
        result = outcomes[-1].result
        if result != PASSED and not all_tests or result == "syntax error" or time.monotonic() >= deadline:
            break
    return outcomes


def _check_case(code: str, case: Case, limits: Limits, deadline: float) -> Outcome:
    job = {"code": code, "imports": None}
    expected = case.output.encode(errors="replace")
    max_output = 2 * len(expected) + _SPARE_OUTPUT
    with Child(job, limits, deadline, case.input.encode(errors="replace"), max_output) as child:
        output, report = child.finish()
        if report is not None and not child.stopped:
            return _reported(report)
        status = child.status()
        if child.stopped or status:
            return _ended(child, status)
    got = output.decode(errors="replace")
    return Outcome(PASSED) if same_output(got, case.output) else Outcome(WRONG, _difference(case.output, got))


def _check_steps(
    code: str, steps: list[Step], limits: Limits, entry_point: str | None, all_tests: bool, deadline: float
) -> list[Outcome]:
    job = {"code": code, "imports": imported_modules(steps), "entry_point": entry_point}
    outcomes: list[Outcome] = []
    with Child(job, limits, deadline) as child:
        report = child.ask()
        if report is not None:
            if report.get("kind") != "loaded":
                return [_reported(report)]
            for step in steps:
                outcome = _check_step(child, step)
                if outcome is None:
                    break
                outcomes.append(outcome)
                if outcome.result != PASSED and not all_tests:
                    return outcomes
            else:
                return outcomes
        return [*outcomes, _ended(child, child.status())]


def _check_step(child: Child, step: Step) -> Outcome | None:
    """Have the child evaluate one test; None where it does not answer, or not as it should."""
    nonce = secrets.token_hex(16)
    # a right value is written in not much more than the expected one; more is not even looked at
    longest = 16 * len(_shown(step.expected, None)) + _SPARE_OUTPUT
    message = {"prepare": step.prepare, "source": step.source, "is_value": step.kind != "run"}
    report = child.ask(message | {"is_hidden": step.is_hidden, "longest": longest, "nonce": nonce}, 2 * longest)
    if report is None or child.stopped or report.get("nonce") != nonce:
        return None
    kind = report.get("kind")
    if step.kind == "run" and kind in ("done", "failed"):
        return Outcome(PASSED) if kind == "done" else Outcome(WRONG, _detail(report))
    if kind == "opaque":
        return Outcome(WRONG, f"expected {_shown(step.expected)}, got {_detail(report)}")
    if kind != "value" or step.kind == "run":
        return _reported(report)
    try:
        value = decode(report.get("value"))
        holds = step.holds(value)
    except (ValueError, TypeError, RecursionError, OverflowError, ZeroDivisionError) as error:
        return Outcome(WRONG, f"the value cannot be read: {type(error).__name__}")
    return Outcome(PASSED) if holds else Outcome(WRONG, _difference(step.expected, value))


def decode(value: Any) -> object:
    """Read what `child.encode` wrote, or something that pretends to be that.

    Raises:
        ValueError, TypeError, RecursionError, OverflowError, ZeroDivisionError: for what it cannot have written.
    """
    if isinstance(value, dict):
        raise ValueError("no value is written as an object")
    if not isinstance(value, list):
        return value
    match value:
        case ["int", digits]:
            return int(digits, 16)
        case ["bytes", digits]:
            return bytes.fromhex(digits)
        case ["fraction", numerator, denominator]:
            return Fraction(int(numerator, 16), int(denominator, 16))
        case ["complex", real, imaginary]:
            return complex(real, imaginary)
        case ["dict", *items]:
            return {decode(key): decode(each) for key, each in items}
        case ["list", *items]:
            return [decode(each) for each in items]
        case ["tuple", *items]:
            return tuple(map(decode, items))
        case ["set", *items]:
            return set(map(decode, items))
    raise ValueError("unknown type")


def _reported(report: dict) -> Outcome:
    kind = report.get("kind")
    return Outcome(kind if kind in _REPORTED else "error", _detail(report))


def _detail(report: dict) -> str:
    detail = report.get("detail")
    return detail[:LONGEST_DETAIL] if isinstance(detail, str) else ""


def _ended(child: Child, status: int) -> Outcome:
    if child.stopped:
        return Outcome(child.stopped, f"stopped after {child.limits.seconds:g} s" if child.stopped == "timeout" else "")
    if status < 0:
        return Outcome("killed", f"signal {-status}")
    return Outcome("ended early", f"exit status {status}")


def _difference(expected: object, got: object) -> str:
    return f"expected {_shown(expected)}, got {_shown(got)}"


def _shown(value: object, most: int | None = 100) -> str:
    try:
        return repr(value)[:most]
    except (ValueError, RecursionError):  # a number of more digits than Python writes, or too deep
        return "a value too long to write"
