"""Run tests one after the other against the code of one completion."""

from __future__ import annotations

import secrets
import time
from fractions import Fraction
from typing import NamedTuple

from swift_rlvr.sandbox.asserts import Step, imports
from swift_rlvr.sandbox.cases import Case, same_output
from swift_rlvr.sandbox.process import Child, Limits

PASSED, WRONG = "passed", "wrong"
_REPORTED = ("syntax error", "error", "out of memory", "ended early")
FAILURES = (WRONG, *_REPORTED, "timeout", "too much output", "too many files", "killed")
_SPARE_OUTPUT = 1 << 16
_LONGEST_DETAIL = 300


class Outcome(NamedTuple):
    """What came of one test."""

    result: str
    """`PASSED`, or one of `FAILURES`."""
    detail: str = ""


def check(
    code: str, tests: list[Case] | list[Step], limits: Limits, entry_point: str | None = None, all_tests: bool = False
) -> list[Outcome]:
    """Run the tests in order, to the first that fails unless `all_tests`; the outcomes of those that were run.

    Raises:
        SandboxError: where the code cannot be run safely; nothing of it has been run then.

    >>> check("def double(x): return 2 * x", read_tests("assert double(2) == 4"), Limits())
    [Outcome(result='passed', detail='')]
    >>> check("print(int(input()) * 2)", [Case("2", "5")], Limits())
    [Outcome(result='wrong', detail="expected '5', got '4\\\\n'")]
    """
    deadline = time.monotonic() + limits.seconds
    if isinstance(tests[0], Step):
        return _check_steps(code, tests, limits, entry_point, all_tests, deadline)
    outcomes = []
    for case in tests:
        outcomes.append(_check_case(code, case, limits, deadline))
        result = outcomes[-1].result
        if result != PASSED and not all_tests or result == "syntax error" or time.monotonic() >= deadline:
            break
    return outcomes


def _check_case(code: str, case: Case, limits: Limits, deadline: float) -> Outcome:
    expected = case.output.encode(errors="replace")
    job = {"code": code, "imports": None}
    most = 2 * len(expected) + _SPARE_OUTPUT
    with Child(job, limits, deadline, case.input.encode(errors="replace"), most) as child:
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
    job = {"code": code, "imports": imports(steps), "entry_point": entry_point}
    outcomes = []
    with Child(job, limits, deadline) as child:
        report = child.ask()
        if report is not None and report.get("kind") != "loaded":
            return [_reported(report)]
        for step in steps if report is not None else ():
            outcome = _check_step(child, step)
            if outcome is None:
                break
            outcomes.append(outcome)
            if outcome.result != PASSED and not all_tests:
                return outcomes
        else:
            if report is not None:
                return outcomes
        return [*outcomes, _ended(child, child.status())]


def _check_step(child: Child, step: Step) -> Outcome | None:
    """Have one test done; None where the child does not answer, or not as it should."""
    nonce = secrets.token_hex(16)
    # a right value is written in not much more than the expected one; more is not even looked at
    longest = 16 * len(_shown(step.expected, None)) + _SPARE_OUTPUT
    message = {"prepare": step.prepare, "source": step.source, "is_value": step.kind != "run"}
    report = child.ask(message | {"is_hidden": step.is_hidden, "longest": longest, "nonce": nonce}, 2 * longest)
    if report is None or child.stopped or report.get("nonce") != nonce:
        return None
    kind = report.get("kind")
    if step.kind == "run" and kind in ("done", "failed"):
        return Outcome(PASSED) if kind == "done" else Outcome(WRONG, _text(report))
    if kind == "opaque":
        return Outcome(WRONG, f"expected {_shown(step.expected)}, got {_text(report)}")
    if kind != "value" or step.kind == "run":
        return _reported(report)
    try:
        got = _decode(report.get("value"))
        holds = step.holds(got)
    except (ValueError, TypeError, RecursionError, OverflowError, ZeroDivisionError, IndexError) as error:
        return Outcome(WRONG, f"the value cannot be read: {type(error).__name__}")
    return Outcome(PASSED) if holds else Outcome(WRONG, _difference(step.expected, got))


def _decode(value: object) -> object:
    """Read what `child.encode` wrote, or something that pretends to be that."""
    if not isinstance(value, list):
        if isinstance(value, dict):
            raise ValueError("no value is written as an object")
        return value
    kind, *parts = value
    if kind == "int":
        (digits,) = parts
        return int(digits, 16)
    if kind == "bytes":
        return bytes.fromhex(*parts)
    if kind == "fraction":
        numerator, denominator = parts
        return Fraction(int(numerator, 16), int(denominator, 16))
    if kind == "dict":
        return {_decode(key): _decode(each) for key, each in parts}
    if kind == "complex":
        return complex(*parts)
    kinds = {"list": list, "tuple": tuple, "set": set}
    if kind not in kinds:
        raise ValueError("unknown type")
    return kinds[kind](map(_decode, parts))


def _reported(report: dict) -> Outcome:
    kind = report.get("kind")
    return Outcome(kind if kind in _REPORTED else "error", _text(report))


def _text(report: dict) -> str:
    detail = report.get("detail")
    return detail[:_LONGEST_DETAIL] if isinstance(detail, str) else ""


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
