"""Run tests one after the other against the code of one completion."""

import errno
import secrets
import time
from collections.abc import Container, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import groupby, zip_longest
from typing import Any, NamedTuple

from swift_rlvr.verifiers.code.calls import CallTest
from swift_rlvr.verifiers.code.cases import ProgramTest, same_output
from swift_rlvr.verifiers.code.inside.solution import LONGEST_DETAIL, REFUSED
from swift_rlvr.verifiers.code.inside.values import decode
from swift_rlvr.verifiers.code.plain import AssertTest
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
from swift_rlvr.verifiers.code.sources import Program, UnitTest, with_operators

# The reasons of a verdict.
PASSED = "passed"
WRONG = "wrong"
# What may be no fault of the code: the sandbox refuses what it asked for (REFUSED); the tests fail
# by themselves, before they have asked the code for anything; or only the code's own class could say
# whether its object is equal to a value.
OWN_ERROR = "error of the tests"
COMPARES_ITSELF = "an object that compares itself"
UNGRADED = (REFUSED, OWN_ERROR, COMPARES_ITSELF)
# A program asks for something that the sandbox refuses, and for which it has nothing as good.
NOTHING_STANDS_IN = "needs what the sandbox refuses"
_STAND_INS = 2  # steps of what stands in (`inside.jobs`)
# A timeout, but in a test of so many calls that passing them on may have taken most of the time.
TOO_MANY_CALLS = "too many calls"
_MANY_CALLS = 1000
# what a child may report of itself; any other word of its report is an "error"
_REPORTED = ("syntax error", "error", "out of memory", "ended early")
FAILURES = (
    *(WRONG, *_REPORTED, "timeout", TOO_MANY_CALLS),
    *("too much output", "too many files", "killed", NOTHING_STANDS_IN),
    *UNGRADED,
)

_WAITS = (0.1, 0.3, 1.0)  # seconds before code is run again that found no room to run
_SPARE_OUTPUT = 1 << 16  # bytes that a program may write beside twice what is expected
_LONGEST_VALUE = 1 << 20  # characters
_LONGEST_MESSAGE = 1 << 26  # bytes that the tests may send at a time, such as arguments


class Verdict(NamedTuple):
    """The judgement of one test."""

    reason: str  # `PASSED`, or one of `FAILURES`
    detail: str = ""
    # of a test that has failed, how much of it passed: the share of the rounds of a loop
    share: float = 0.0


def check(
    code: str,
    tests: Sequence[ProgramTest] | Sequence[UnitTest | CallTest | AssertTest],
    limits: Limits,
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
    [Verdict(reason='passed', detail='', share=0.0)]
    >>> verdict, = check("print(int(input()) * 2)", [ProgramTest("2", "5")], Limits())
    >>> verdict.reason, verdict.detail
    ('wrong', "expected '5', got '4\\\\n'")
    """
    if zygotes is None:
        with closing(Zygotes(limits.packages, limits.landlock)) as own:
            return check(code, tests, limits, all_tests, own)

    for seconds in _WAITS:
        # Other processes, or another completion's threads, can take all the room for a moment.
        with suppress(OSError):
            return _run_all(code, tests, limits, all_tests, zygotes)
        time.sleep(seconds)
    return _run_all(code, tests, limits, all_tests, zygotes)


def passes_together(
    code: str,
    tests: Sequence[ProgramTest] | Sequence[UnitTest | CallTest | AssertTest],
    limits: Limits,
    zygotes: Zygotes | None = None,
) -> bool | None:
    """Whether code passes tests whose programs run in one process with it, where everything works
    and code may lie; other tests are run as `check` does it. None if it passes by operators of its own
    objects, such as a difference that is 0 whatever is subtracted. Raises as `check` does.

    >>> from swift_rlvr.verifiers.code import read_tests
    >>> tests = read_tests("items = [2, 1]\\nassert order(items) is items and items == [1, 2]")
    >>> passes_together("def order(items): items.sort(); return items", tests, Limits())
    True
    """
    if zygotes is None:
        with closing(Zygotes(limits.packages, limits.landlock)) as own:
            return passes_together(code, tests, limits, own)

    units = [unit for unit in tests if isinstance(unit, UnitTest)]
    others: Any = [test for test in tests if not isinstance(test, UnitTest)]
    run = _Run(limits)
    with zygotes.borrow() as zygote:
        try:
            with closing(run.together(zygote, code, units)) as running:
                verdicts = _run_up_to_a_failure(running, all_tests=False)
        except Ended:
            return False
    if others and _passed(verdicts):
        verdicts = check(code, others, limits, zygotes=zygotes)
    passes = _passed(verdicts)
    return None if passes and run.has_doubts else passes


def _passed(verdicts: Sequence[Verdict]) -> bool:
    return all(verdict.reason == PASSED for verdict in verdicts)


def leaves_no_trace(limits: Limits) -> bool:
    """Whether all files but its own are read-only for code, so that the kernel notes nowhere what it
    has read; containers often refuse that (`lockdown.give_up_mounts`). Raises as `check` does.
    """
    code = "try:\n    open('/swift-rlvr', 'w')\nexcept OSError as error:\n    print(error.errno)"
    test = ProgramTest("", str(errno.EROFS))
    return check(code, [test], limits)[0].reason == PASSED


def _run_all(
    code: str,
    tests: Sequence[ProgramTest] | Sequence[UnitTest | CallTest | AssertTest],
    limits: Limits,
    all_tests: bool,
    zygotes: Zygotes,
) -> list[Verdict]:
    programs = [test for test in tests if isinstance(test, ProgramTest)]
    if programs:
        running = _Run(limits).programs(zygotes, code, programs)
        return _run_up_to_a_failure(running, all_tests)

    units = [test for test in tests if not isinstance(test, ProgramTest)]
    verdicts: list[Verdict] = []
    # Where the sandbox refuses something, once more with what is as good. Threads in place of processes
    # are not: nobody would know whether a function that passes with them is right.
    for stand_ins in (0, 1):
        run = _Run(limits, stand_ins)
        with zygotes.borrow() as zygote:
            # Closing it ends the child, also where not all tests are run.
            with closing(run.units(zygote, code, units, all_tests)) as running:
                verdicts = _run_up_to_a_failure(running, all_tests)
            _require_alive(zygote, verdicts[-1:])
        if all(verdict.reason != REFUSED for verdict in verdicts):
            break
    return verdicts


def _run_up_to_a_failure(running: Iterator[Verdict], all_tests: bool) -> list[Verdict]:
    """The verdicts, up to the first on a test that has failed unless `all_tests`."""
    verdicts = []
    for verdict in running:
        verdicts.append(verdict)
        if verdict.reason != PASSED and not all_tests:
            break
    return verdicts


def _require_alive(zygote: Zygote, last: Sequence[Verdict]) -> None:
    """Raises OSError where a test has failed and its children have ended with a zygote."""
    if last and last[0].reason != PASSED and not zygote.is_alive:
        raise OSError(errno.ECHILD, "the process that starts others was killed")


@dataclass
class _Run:
    """Runs tests while there is time left; what a test uses up is its child's, so that the other
    tests lose nothing.
    """

    limits: Limits
    stand_ins: int = 0  # up to which step, for functions and their tests (`inside.jobs`)
    has_doubts: bool = False  # whether objects of the code may have decided what passes `together`
    left: float = field(init=False)  # seconds, as `Child.used` counts them
    deadline: float = field(init=False)  # by `time.monotonic`

    def __post_init__(self) -> None:
        self.left = ALL_TESTS * self.limits.seconds
        self.deadline = time.monotonic() + LOAD * self.left

    @property
    def is_over(self) -> bool:
        """Whether no time is left for further tests."""
        return self.left <= 0 or time.monotonic() >= self.deadline

    @contextmanager
    def child(
        self, zygote: Zygote, job: dict | None = None, stdin: bytes | None = None
    ) -> Iterator[Child]:
        """A child for one test or several, which was sent a job."""
        with sandboxed(zygote, self.limits, self.deadline, job, stdin) as child:
            self.allow(child)
            try:
                yield child
            finally:
                self.left -= child.used

    def allow(self, child: Child) -> None:
        """The time for one test."""
        child.allow(self.limits.seconds, in_all=self.left)

    def programs(
        self, zygotes: Zygotes, code: str, programs: list[ProgramTest]
    ) -> Generator[Verdict, None, None]:
        """Run a program once for each test, each time in a child of its own.

        Where the sandbox refuses it something, it goes on with what is as good, and where that is not
        enough, with threads in place of processes. If it passes all tests with threads, nobody knows
        whether it is right, and the last test bears the refusal; if not, it is wrong: a refusal that
        could be had for the asking would be a way out of every hard row.
        """
        job: dict[str, Any] = {"kind": "program", "code": code, "stand_ins": 0}
        refusal: Verdict | None = None
        passed = 0
        for program in programs:
            if self.is_over:
                yield Verdict("timeout", "no time is left for it")
                return
            verdict = self._program(zygotes, job, program)
            while verdict.reason == REFUSED and job["stand_ins"] < _STAND_INS:
                job["stand_ins"] += 1
                if job["stand_ins"] == _STAND_INS:
                    refusal = verdict
                verdict = self._program(zygotes, job, program)
            if verdict.reason == REFUSED:
                verdict = verdict._replace(reason=NOTHING_STANDS_IN)
            passed += verdict.reason == PASSED
            yield refusal if refusal is not None and passed == len(programs) else verdict
            if verdict.reason == "syntax error":
                return

    def _program(self, zygotes: Zygotes, job: dict, program: ProgramTest) -> Verdict:
        stdin = program.input.encode(errors="replace")
        expected = program.output.encode(errors="replace")
        max_output = 2 * len(expected) + _SPARE_OUTPUT
        with zygotes.borrow() as zygote:  # each finds an empty folder
            verdict = Verdict(PASSED)
            try:
                with self.child(zygote, job, stdin) as child:
                    output, report = child.run(max_output)
            except Ended as ended:
                verdict = _stopped(ended, self.limits)
            else:
                text = output.decode(errors="replace")
                if report is not None:
                    verdict = _reported(report)
                elif not same_output(text, program.output):
                    verdict = _wrong(program.output, _shown(text))
            _require_alive(zygote, [verdict])
        return verdict

    def units(
        self,
        zygote: Zygote,
        code: str,
        units: list[UnitTest | CallTest | AssertTest],
        all_tests: bool,
    ) -> Generator[Verdict, None, None]:
        """Load the code once and run the tests one by one; after a test that ends the child, go on
        in another one.
        """
        with ExitStack() as stack:
            solution = stack.enter_context(closing(_Solution(self, zygote, code, units)))
            try:
                # Where the code does not load, no test is asked.
                solution.child()
            except _NotLoaded as failed:
                yield failed.verdict
                return
            harness: _Harness | None = None
            for program, group in groupby(units, lambda unit: getattr(unit, "program", None)):
                if program is None:
                    yield from self._calls(solution, group)
                    continue
                if harness is None:
                    # In the same folder: tests look at the files that the code writes.
                    child = stack.enter_context(self.child(zygote))
                    harness = _Harness(self, solution, child, units, all_tests)
                steps = [unit for unit in group if isinstance(unit, UnitTest)]
                yield from harness.run(program, steps)
                if not harness.is_alive:
                    return

    def _calls(
        self, solution: "_Solution", tests: Iterator[UnitTest | CallTest | AssertTest]
    ) -> Generator[Verdict, None, None]:
        calls = [test for test in tests if not isinstance(test, UnitTest)]
        for test, following in zip_longest(calls, calls[1:]):
            if self.is_over:
                yield Verdict("timeout", "no time is left for it")
                return
            yield solution.call(test, following)

    def together(
        self, zygote: Zygote, code: str, units: list[UnitTest]
    ) -> Generator[Verdict, None, None]:
        """Load the code once and run the test programs in one process with it. Raises Ended where
        they do not come to their end.
        """
        imports = sorted({name for unit in units for name in unit.program.imports})
        packages = self.limits.packages
        job = {"kind": "together", "code": code, "packages": packages, "imports": imports}
        with self.child(zygote, job) as child:
            child.allow(min(len(units), ALL_TESTS) * self.limits.seconds)
            if child.receive().get("kind") != "loaded":
                raise Ended("ended early")
            for program, group in groupby(units, lambda unit: unit.program):
                # Code that writes a report in place of the tests' does not know this number before
                # they run.
                nonce = secrets.token_hex(16)
                message = with_operators(program)._asdict() | {"nonce": nonce}
                report = child.ask(message, _LONGEST_MESSAGE)
                if report.get("nonce") != nonce or report.get("is_sound") is not True:
                    raise Ended("ended early")
                self.has_doubts = self.has_doubts or report.get("doubts") is not False
                steps = list(group)
                tallies = {unit.step: _Tally() for unit in steps}
                for number, kind, detail in _validated(report, tallies).outcomes:
                    tallies[number].count(kind, detail)
                for unit in steps:
                    yield tallies[unit.step].verdict(unit.is_fair)


class _NotLoaded(Exception):
    """The code cannot be run as a module; `verdict` says why."""

    def __init__(self, verdict: Verdict):
        super().__init__(verdict.reason)
        self.verdict = verdict


class _Solution:
    """The process that has loaded the code, and another one after that has ended."""

    def __init__(
        self, run: _Run, zygote: Zygote, code: str, units: list[UnitTest | CallTest | AssertTest]
    ):
        self._run = run
        self._zygote = zygote
        # A right value is written in not much more than the expected one, which is in the source.
        longest_expected = 0
        names: set[str] = set()
        for unit in units:
            if isinstance(unit, UnitTest):
                longest_expected = max(longest_expected, len(unit.program.source))
                names.update(unit.program.names)
            else:
                longest_expected = max(longest_expected, len(_shown(unit.expected, None)))
        # How long a value may be written, in characters; more is not even looked at. It is a power of
        # two and the same for all tests, and for all rows but those that expect something very long,
        # since the code can find it out: so it tells nothing but the order of magnitude.
        self._longest = max(_LONGEST_VALUE, 1 << (16 * longest_expected).bit_length())
        self._job: dict[str, Any] = {
            "kind": "functions",
            "code": code,
            "longest": self._longest,
            "names": sorted(names),
            "stand_ins": run.stand_ins,
        }
        self._stack = ExitStack()
        self._child: Child | None = None
        # The functions that the first process has told of, as it wrote them. Of others the tests ask.
        self.names: dict = {}
        self._asked: str | None = None  # the number of a call that it was sent already

    def close(self) -> None:
        """End the process."""
        self._child = None
        self._asked = None
        self._stack.close()

    def child(self) -> Child:
        """A process that has loaded the code. Raises _NotLoaded where none can."""
        if self._child is not None:
            return self._child
        try:
            child = self._stack.enter_context(self._run.child(self._zygote, self._job))
            report = child.receive()
        except Ended as ended:
            self.close()
            raise _NotLoaded(_stopped(ended, self._run.limits)) from None
        if report.get("kind") != "loaded":
            verdict = _reported(report)
            if verdict.reason == REFUSED:
                # As a rule, the import of a package that is there and not in `Limits.packages`.
                verdict = Verdict("error", verdict.detail)
            raise _NotLoaded(verdict)
        self._child = child
        names = report.get("names")
        self.names = names if isinstance(names, dict) and self._job["names"] else {}
        self._job = self._job | {"names": []}
        return child

    def allow(self) -> None:
        """The time for one test."""
        if self._child is not None:
            self._run.allow(self._child)

    def ask(self, request: bytes) -> bytes:
        """The code's answer, which may be anything. Raises Ended where it gives none, or _NotLoaded."""
        child = self.child()
        child.send_line(request)
        try:
            return child.receive_line(2 * self._longest)
        except Ended:
            self.close()
            raise

    def call(
        self, test: CallTest | AssertTest, following: CallTest | AssertTest | None = None
    ) -> Verdict:
        """Have the code call a function, and compare, while it has the call that follows."""
        try:
            child = self.child()
            nonce, self._asked = self._asked or _send_call(child, test), None
            self.allow()
            report = child.receive(2 * self._longest)
        except Ended as ended:
            self.close()
            return _stopped(ended, self._run.limits)
        except _NotLoaded as failed:
            return failed.verdict
        # Not before the answer has come: what one test hands over may be what another expects.
        if following is not None and report.get("nonce") == nonce:
            self._asked = _send_call(child, following)
        if report.get("kind") == "opaque":
            verdict = _wrong(test.expected, _detail(report))
            # About `is`, which asks for None, True and False, no class has a say, and none about what JSON
            # writes.
            is_equality = isinstance(test, AssertTest) and test.comparison != "is"
            if report.get("compares_itself") and is_equality:
                verdict = verdict._replace(reason=COMPARES_ITSELF)
            return verdict
        if report.get("nonce") != nonce:
            self.close()
            return Verdict("ended early")
        if report.get("kind") != "value":
            return _reported(report)
        # The value may be anything.
        try:
            value = decode(report.get("value"))
            if test.holds(value):
                return Verdict(PASSED)
            return _wrong(test.expected, _shown(value))
        except (ValueError, TypeError, RecursionError, OverflowError, ZeroDivisionError) as error:
            return Verdict(WRONG, f"the value cannot be compared: {error}"[:LONGEST_DETAIL])


def _send_call(child: Child, test: CallTest | AssertTest) -> str:
    """Send a call, and return the number that the answer must bear, so that code cannot answer a test
    before it has come.
    """
    nonce = secrets.token_hex(16)
    child.send_line(f'{test.request[:-1]}, "nonce": "{nonce}"}}'.encode())
    return nonce


@dataclass
class _Tally:
    """What came of the executions of one test."""

    passed: int = 0
    failed: int = 0
    failure: Verdict | None = None  # the first

    @property
    def is_reached(self) -> bool:
        """Whether there was one."""
        return self.passed > 0 or self.failed > 0

    def count(self, kind: str, detail: str) -> None:
        """Add one of them, of the kind that the process of the tests has told."""
        if kind == "passed":
            self.passed += 1
            return
        reason = kind if kind in (*_REPORTED, *UNGRADED) else "error"
        self.fail(Verdict(WRONG if kind == "failed" else reason, detail))

    def fail(self, verdict: Verdict) -> None:
        """Add one that has failed."""
        self.failed += 1
        self.failure = self.failure or verdict

    def verdict(self, is_fair: bool) -> Verdict:
        """The verdict on all of them."""
        if self.failure is None:
            return Verdict(PASSED, "" if self.passed else "not reached")
        share = self.passed / (self.passed + self.failed) if is_fair else 0.0
        return self.failure._replace(share=share)


class _Harness:
    """The process of the tests, and what it has told of them.

    It asks for the code's process by way of this one. It is not trusted either: a dataset may have
    been written by anybody. But it knows what is right, and the code's process does not.
    """

    def __init__(
        self,
        run: _Run,
        solution: _Solution,
        child: Child,
        units: list[UnitTest | CallTest | AssertTest],
        all_tests: bool,
    ):
        programs = [unit.program for unit in units if isinstance(unit, UnitTest)]
        self._run = run
        self._solution = solution
        self._child = child
        self._ended: list[Verdict] = []
        self._step: int | None = None  # that runs now, as far as it has told
        self._calls = 0  # of this step
        self.is_alive = True
        self._job: dict | None = {
            "kind": "tests",
            "goes_on": all_tests,
            "packages": run.limits.packages,
            "has_arrays": any(program.has_arrays for program in programs),
            "stand_ins": run.stand_ins,
        }

    def run(self, program: Program, units: list[UnitTest]) -> Iterator[Verdict]:
        """The verdicts on the steps of a program, in order, up to the last that was reached where
        the process of the tests has ended.
        """
        tallies = {unit.step: _Tally() for unit in units}
        try:
            self._exchange(program, tallies)
        except Ended as ended:
            self.is_alive = False
            # The step fails in which it has ended.
            missed = [step for step, tally in tallies.items() if not tally.is_reached]
            step = self._step
            if step is None:
                step = missed[0] if missed else max(tallies)
            tallies[step].fail(self._stopped(ended))
        for unit in units:
            tally = tallies[unit.step]
            if not self.is_alive and not tally.is_reached:
                return
            yield tally.verdict(unit.is_fair)

    def _stopped(self, ended: Ended) -> Verdict:
        verdict = _stopped(ended, self._run.limits)
        if verdict.reason == "timeout" and self._calls >= _MANY_CALLS:
            detail = f"{verdict.detail}, and {self._calls} calls"
            return Verdict(TOO_MANY_CALLS, detail)
        return verdict

    def _exchange(self, program: Program, tallies: dict[int, _Tally]) -> None:
        """Pass messages on until the program has ended. Raises Ended where its process has."""
        message: dict[str, Any] = {
            "source": program.source,
            "steps": program.steps,
            "taken_over": program.taken_over,
        }
        if self._job is not None:  # the first message
            first = {"program": message, "names": self._solution.names}
            message, self._job = self._job | first, None
        self._child.send(message)
        while True:
            self._run.allow(self._child)
            report = _validated(self._child.receive(_LONGEST_MESSAGE), tallies)
            for number, kind, detail in report.outcomes:
                if kind == "ended" and self._ended:
                    tallies[number].fail(self._ended.pop(0))
                else:
                    tallies[number].count(kind, detail)
            if report.ask is None:
                self._step = None
                return
            if self._run.is_over:
                raise Ended("timeout")
            if report.step != self._step or self._step is None:
                self._step = report.step
                self._calls = 0
                self._solution.allow()
            self._calls += 1
            try:
                # Only the tests read it, who are confined, too.
                self._child.send_line(self._solution.ask(report.ask))
                continue
            except Ended as ended:
                self._ended.append(self._stopped(ended))
            except _NotLoaded as failed:
                self._ended.append(failed.verdict)
            self._child.send({"ended": True})


class _Report(NamedTuple):
    """What the process of the tests has to say: what came of its steps since the last report, in
    which step it is, and what it asks of the code; None where the tests are done.
    """

    outcomes: list[tuple[int, str, str]]
    step: int | None = None
    ask: bytes | None = None


def _validated(report: dict, steps: Container[int]) -> _Report:
    """A report of the harness. The tests share a process with it and may have written one
    themselves: raises Ended for anything that it would not say.
    """
    strange = Ended(OWN_ERROR, "the tests have written a report of their own")
    outcomes = report.get("outcomes")
    if not isinstance(outcomes, list):
        raise strange
    read = []
    for outcome in outcomes:
        match outcome:
            case [int(number), str(kind), str(detail)] if number in steps:
                read.append((number, kind, detail))
            case _:
                raise strange
    step, ask = report.get("step"), report.get("ask")
    if ask is None:
        return _Report(read)
    if not (step is None or isinstance(step, int) and step in steps):
        raise strange
    if not isinstance(ask, str) or not ask.isascii() or "\n" in ask:
        raise strange
    return _Report(read, step, ask.encode())


def _stopped(ended: Ended, limits: Limits) -> Verdict:
    if ended.reason != "timeout":
        return Verdict(ended.reason, ended.detail)
    return Verdict(
        "timeout", f"stopped after {limits.seconds:g} s of CPU time, or a third of that asleep"
    )


def _reported(report: dict) -> Verdict:
    """The verdict that a child reports of its code. Nothing that it can say is `PASSED`."""
    kind = report.get("kind")
    return Verdict(kind if kind in (*_REPORTED, REFUSED) else "error", _detail(report))


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
