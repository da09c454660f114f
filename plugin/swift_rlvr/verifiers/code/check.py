"""Run tests one after the other against the code of one completion."""

import errno
import secrets
import time
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
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
    Zygotes,
    sandboxed,
)
from swift_rlvr.verifiers.code.unfold import COLLECTIONS, find_methods

# The reasons of a verdict.
PASSED = "passed"
WRONG = "wrong"
# what a child may report of itself; any other word of its report is an "error"
_REPORTED = ("syntax error", "error", "out of memory", "ended early")
FAILURES = (WRONG, *_REPORTED, "timeout", "too much output", "too many files", "killed")

_WAITS = (0.1, 0.3, 1.0)  # seconds before code is run again that found no room to run
_SPARE_OUTPUT = 1 << 16  # bytes that a program may write beside twice what is expected
_LONGEST_VALUE = 1 << 20  # characters
_SAME_HASH = 64  # elements of a set, or keys of a dict, that may be hashed alike
_LONGEST_FRACTION = 1 << 14  # hexadecimal digits


class Verdict(NamedTuple):
    """The judgement of one test."""

    reason: str  # `PASSED`, or one of `FAILURES`
    detail: str = ""


def check(
    code: str,
    tests: list[ProgramTest] | list[UnitTest],
    limits: Limits,
    entry_point: str | None = None,
    all_tests: bool = False,
    zygotes: Zygotes | None = None,
) -> list[Verdict]:
    """Run the tests in order, up to the first that fails unless `all_tests`; the verdicts of the
    tests that were run.

    zygotes: of the same packages, which are kept for the next call; without them one is started
        for this call alone.

    Raises:
        SandboxError: where the code cannot be run safely; none of it has been run then.
        OSError: where the machine has no room for another process, pipe or folder, also after some
            waiting.

    >>> from swift_rlvr.verifiers.code import read_tests
    >>> check("def double(x): return 2 * x", read_tests("assert double(2) == 4"), Limits())
    [Verdict(reason='passed', detail='')]
    >>> check("print(int(input()) * 2)", [ProgramTest("2", "5")], Limits())
    [Verdict(reason='wrong', detail="expected '5', got '4\\\\n'")]
    """
    if zygotes is None:
        with closing(Zygotes(limits.packages, limits.landlock)) as own:
            return check(code, tests, limits, entry_point, all_tests, own)

    programs = [test for test in tests if isinstance(test, ProgramTest)]
    units = [test for test in tests if isinstance(test, UnitTest)]
    job = {
        "code": code,
        "imports": imported_modules(units) if units else None,
        "entry_point": entry_point,
        "longest": _longest(units),
    }
    for seconds in _WAITS:
        # Other processes, or another completion's threads, can take all the room for a moment.
        with suppress(OSError):
            return _run_all(job, programs, units, limits, all_tests, zygotes)
        time.sleep(seconds)
    return _run_all(job, programs, units, limits, all_tests, zygotes)


def leaves_no_trace(limits: Limits) -> bool:
    """Whether all files but its own are read-only for code, so that the kernel notes nowhere what it
    has read; containers often refuse that (`lockdown.give_up_mounts`). Raises as `check` does.
    """
    code = "try:\n    open('/swift-rlvr', 'w')\nexcept OSError as error:\n    print(error.errno)"
    test = ProgramTest("", str(errno.EROFS))
    return check(code, [test], limits)[0].reason == PASSED


def _run_all(
    job: dict,
    programs: list[ProgramTest],
    units: list[UnitTest],
    limits: Limits,
    all_tests: bool,
    zygotes: Zygotes,
) -> list[Verdict]:
    verdicts = []
    with zygotes.borrow() as zygote:
        seconds = ALL_TESTS * limits.seconds
        run = _Run(zygote, limits, left=seconds, deadline=time.monotonic() + LOAD * seconds)
        running = run.units(job, units) if units else run.programs(job, programs)
        with closing(running):  # which ends the child, also where not all tests are run
            for verdict in running:
                verdicts.append(verdict)
                if verdict.reason != PASSED and not all_tests:
                    break
    return verdicts


def _longest(units: list[UnitTest]) -> int:
    """How long a value may be written, in characters.

    A right one is written in not much more than the expected one; more is not even looked at. The
    code can find out this number: it is the same for all tests, and for all rows but those that
    expect something very long.
    """
    longest_expected = 0
    for unit in units:
        longest_expected = max(longest_expected, len(_shown(unit.expected, None)))
    # A power of two, so that the number tells nothing but the order of magnitude.
    return max(_LONGEST_VALUE, 1 << (16 * longest_expected).bit_length())


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

    def programs(self, job: dict, programs: list[ProgramTest]) -> Generator[Verdict, None, None]:
        """Run a program once for each test, each time in a child of its own."""
        for program in programs:
            verdict = self._program(job, program)
            yield verdict
            if verdict.reason == "syntax error" or self.is_over:
                return

    def _program(self, job: dict, program: ProgramTest) -> Verdict:
        stdin = program.input.encode(errors="replace")
        expected = program.output.encode(errors="replace")
        max_output = 2 * len(expected) + _SPARE_OUTPUT
        try:
            with self.child(is_program=True) as child:
                output, report = child.run(job, stdin, max_output)
        except Ended as ended:
            return _stopped(ended, self.limits)
        if report is not None:
            return _reported(report)
        text = output.decode(errors="replace")
        if same_output(text, program.output):
            return Verdict(PASSED)
        return _wrong(program.output, _shown(text))

    def units(self, job: dict, units: list[UnitTest]) -> Generator[Verdict, None, None]:
        """Load the code once and evaluate the tests one by one; after a test that ends the child,
        go on in another one.
        """
        if "Solution" in job["code"]:
            units = _with_methods(units)
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
                            preparation = UnitTest(unit.prepare, "pass", "run")
                            _check_unit(child, preparation, job["longest"])
                    while done < len(units):
                        self.allow(child)
                        unit = units[done]
                        done += 1
                        yield _check_unit(child, unit, job["longest"])
            except Ended as ended:
                yield _stopped(ended, self.limits)
                if not is_loaded:
                    return


def _with_methods(units: list[UnitTest]) -> list[UnitTest]:
    """The tests, of which the first finds the methods of a class Solution that they all use."""
    sources = [f"{unit.prepare}\n{unit.source}" for unit in units if unit.arguments is None]
    first, *others = units
    return [first._replace(prepare=find_methods("\n".join(sources)) + first.prepare), *others]


def _stopped(ended: Ended, limits: Limits) -> Verdict:
    if ended.reason != "timeout":
        return Verdict(ended.reason, ended.detail)
    return Verdict(
        "timeout", f"stopped after {limits.seconds:g} s of CPU time, or a third of that asleep"
    )


def _check_unit(child: Child, unit: UnitTest, longest: int) -> Verdict:
    """Have the child evaluate a test, and compare. Raises Ended where it gives no answer to it."""
    # The answer must bear this number, so that code cannot answer a test before it has come.
    nonce = secrets.token_hex(16)
    message: dict[str, Any] = {
        "prepare": unit.prepare,
        "source": unit.source,
        "arguments": unit.arguments,
        "is_value": unit.kind != "run",
        # whether the code does not see what is expected
        "is_hidden": unit.kind not in ("run", "true"),
        "nonce": nonce,
    }
    report = child.ask(message, 2 * longest)
    if report.get("nonce") != nonce:
        raise Ended("ended early")

    kind = report.get("kind")
    if unit.kind == "run":
        if kind == "done":
            return Verdict(PASSED)
        if kind == "failed":
            return Verdict(WRONG, _detail(report))
    elif kind == "opaque":
        return _wrong(unit.expected, _detail(report))
    elif kind == "value":
        return _compared(unit, report.get("value"))
    return _reported(report)


def _compared(unit: UnitTest, encoded: Any) -> Verdict:
    """The verdict on the value that a child has sent, which may be anything."""
    try:
        value = decode(encoded)
        if unit.holds(value):
            return Verdict(PASSED)
        return _wrong(unit.expected, _shown(value))
    except (ValueError, TypeError, RecursionError, OverflowError, ZeroDivisionError) as error:
        return Verdict(WRONG, f"the value cannot be compared: {type(error).__name__}")


def decode(value: Any) -> object:
    """Read what `child.encode` wrote; for anything else it raises one of the errors that
    `_compared` catches.

    The work grows with the length alone: numbers that code has chosen to be hashed alike, whose
    sets take quadratic time, are refused, and so are fractions of very many digits.

    >>> decode(["tuple", 1, ["list", 2.5, None], ["dict", ["a", ["set", 3]]]])
    (1, [2.5, None], {'a': {3}})
    """
    match value:
        case ["int", digits]:
            return int(digits, 16)
        case ["bytes", digits]:
            return bytes.fromhex(digits)
        case ["fraction", numerator, denominator]:
            # Fraction divides by the greatest common divisor, in quadratic time.
            if max(len(numerator), len(denominator)) > _LONGEST_FRACTION:
                raise ValueError("a fraction of very many digits")
            return Fraction(int(numerator, 16), int(denominator, 16))
        case ["complex", real, imaginary]:
            return complex(real, imaginary)
        case ["dict", *items]:
            keys = _hashable(key for key, _ in items)
            values = [decode(value) for _, value in items]
            return dict(zip(keys, values, strict=True))
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
    hashes = Counter(map(hash, values))
    if values and max(hashes.values()) > _SAME_HASH:
        raise ValueError("too many values that are hashed alike")
    return values


def _reported(report: dict) -> Verdict:
    """The verdict that a child reports of its code. Nothing that it can say is `PASSED`."""
    kind = report.get("kind")
    return Verdict(kind if kind in _REPORTED else "error", _detail(report))


def _detail(report: dict) -> str:
    detail = report.get("detail")
    return detail[:LONGEST_DETAIL] if isinstance(detail, str) else ""


def _wrong(expected: object, got: str) -> Verdict:
    return Verdict(WRONG, f"expected {_shown(expected)}, got {got}")


def _shown(value: object, most: int | None = 100) -> str:
    """The first characters of a value as Python writes it; all of them where `most` is None."""
    try:
        return repr(value)[:most]
    except (ValueError, RecursionError):  # a number of more digits than Python writes, or too deep
        return "a value too long to write"
