"""Further tests for a row that has a reference solution.

A policy that sees a row's tests, or meets them often enough, can pass them with a table of what they
expect, or with a rule that is right for them alone. `add_tests` runs the reference on inputs that are
near the given ones (`nearby.py`) and writes what it returns as tests, which the prompt does not show.
First come those that refuse mutants of the reference (`mutants.py`) which the given tests let pass.

Kept is an input on which

- two runs of the reference, in processes of their own and in different order, give the same, without
  an exception and in `_SECONDS` of CPU time, and so do all other references of the row that pass its
  tests;
- the result is like the expected ones of the row: of the same types, not negative and not empty
  where none of them is. A solution that gives None for "not found" is not wrong because the reference
  gives -1, where no test of the row says which. For the same reason a value that the reference has
  written down is no result where all expected ones are parts of the input.
"""

import ast
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any, NamedTuple

from swift_rlvr.evaluation.mutants import mutants
from swift_rlvr.evaluation.nearby import nearby_calls, nearby_texts
from swift_rlvr.verifiers.code.calls import CallTest
from swift_rlvr.verifiers.code.cases import Form, ProgramTest, read_form, read_tests, same_output
from swift_rlvr.verifiers.code.check import PASSED, check, passes_together
from swift_rlvr.verifiers.code.inside.prelude import NAMES
from swift_rlvr.verifiers.code.inside.values import same_value
from swift_rlvr.verifiers.code.plain import AssertTest, Tolerance, read_asserts
from swift_rlvr.verifiers.code.process import Limits
from swift_rlvr.verifiers.code.run import run_program
from swift_rlvr.verifiers.code.sources import UnitTest

_SECONDS = 0.5  # of CPU time for a call or a program; the reward allows 6 by default
_SLOW = 5  # so many that take longer are enough
_ALL_SECONDS = 6.0  # of CPU time for a process that runs all of them
_MUTANT_SECONDS = 0.1  # for one call of a mutant
_TOGETHER = 8  # as many of them share a process
_CALLS = 15  # candidates for each test that is asked for
_FEWEST_CALLS = 200
_TEXTS = 2  # candidates for programs
_MUTANTS = 40
_REFERENCES = 3  # as many are compared
_LONGEST = 2_000  # characters of an input and of a result
_LONGEST_TESTS = 60_000  # characters of all added tests: records keep a column of that length
_LARGEST = 1e8  # of a float: sums of larger ones differ by their order
# Where these stand in a question several results are right.
_SEVERAL_RIGHT = re.compile(
    r"\bin any order\b|\bany (?:valid|one of|of them|such|possible|order)\b"
    r"|\bmultiple (?:valid |correct |possible )?(?:answers|solutions|outputs)\b"
    r"|\b(?:print|output|return) any\b",
    re.IGNORECASE,
)
_UNREADABLE = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)


class NoTests(ValueError):
    """Why nothing can be added to a row."""


class Added(NamedTuple):
    """What was added to a row.

    tests: text that `read_tests` reads. mutants: of the reference that pass the row's own tests.
    surviving: how many of them pass the added tests too, some because they do the same as it.
    """

    tests: str
    mutants: int
    surviving: int


class Case(NamedTuple):
    """An input, and what the reference gives for it."""

    input: Any
    result: Any


@dataclass(frozen=True)
class Given:
    """The given tests of a row: of a program, whose inputs are texts, or of the calls of a function.

    comparison: "output" of programs, "JSON" of calls, else as in AssertTest.
    """

    comparison: str
    inputs: tuple[Any, ...]
    function: str = ""
    keywords: tuple[str, ...] = ()  # the names of the last arguments
    tolerance: Tolerance = Tolerance()

    def call(self, arguments: Sequence[Any]) -> str:
        written = list(map(repr, arguments))
        first = len(written) - len(self.keywords)
        for index, name in enumerate(self.keywords, start=first):
            written[index] = f"{name}={written[index]}"
        return f"{self.function}({', '.join(written)})"

    def result(self, written: str) -> Any:
        """A result as the tests compare it. Raises one of `_UNREADABLE` where JSON cannot write it."""
        if self.comparison == "output":
            return written
        value = ast.literal_eval(written)
        if self.comparison == "JSON":
            return json.loads(json.dumps(value))
        return bool(value) if self.comparison == "truth" else value

    def same(self, written: str | None, result: Any) -> bool:
        """Whether a program that gives this passes a test that expects the result."""
        if written is None:
            return False
        if self.comparison == "output":
            return same_output(written, result)
        try:
            value = self.result(written)
        except _UNREADABLE:
            return False
        if self.comparison == "near":
            return isinstance(value, (int, float)) and self.tolerance.holds(value, result)
        return same_value(value, result)


def add_tests(
    tests: Any,
    references: Sequence[str],
    *,
    entry_point: str | None = None,
    question: str = "",
    count: int = 20,
    seed: int | str = 0,
    limits: Limits | None = None,
) -> Added:
    """Up to `count` further tests. The same seed gives the same, unless the reference is so slow that
    mutants of it run into the time limit.

    Raises:
        NoTests: where there is no reference that passes the row's own tests, or no test can be
            added, saying why.
        BadTests: where the row's own tests cannot be read.
        SandboxError: where code cannot be run safely.

    >>> given = ["assert least(4, 2) == 2", "assert least(3, 9) == 3"]
    >>> print(add_tests(given, ["def least(a, b): return a if a < b else b"], count=2).tests)
    ["assert least(4, 6) == 4", "assert least(7, 2) == 2"]
    """
    limits = limits or Limits()
    if not references:
        raise NoTests("no reference solution")
    if _SEVERAL_RIGHT.search(question):
        raise NoTests("several results are right")
    own_tests: Sequence[Any] = read_tests(tests, entry_point, limits.packages)
    passing = _passing(references, own_tests, limits)
    if all(isinstance(test, UnitTest) for test in own_tests):
        own_tests = _single_asserts(read_form(tests, entry_point), passing[0])
    given = _read_given(own_tests)
    rng = random.Random(f"{seed} {count}")
    if given.comparison == "output":
        inputs: list[Any] = nearby_texts(given.inputs, _TEXTS * count, rng)
    else:
        numbers = [value for value in _constants(passing[0]) if type(value) in (int, float)]
        inputs = nearby_calls(given.inputs, max(_CALLS * count, _FEWEST_CALLS), rng, numbers)

    # The first run says what the results are, the second, in another order, whether they stay, and
    # what mutants give.
    own = len(given.inputs)
    (results,) = _run(passing[:1], given, [*given.inputs, *inputs], limits)
    own_cases = _cases(given, given.inputs, results[:own])
    is_alike = _alike(given, own_cases, passing[0])
    candidates = list(filter(is_alike, _cases(given, inputs, results[own:])))
    cases = [*candidates, *own_cases][::-1]
    faulty = mutants(passing[0], _MUTANTS, rng)
    again = _run(passing, given, [case.input for case in cases], limits)
    of_mutants = _run_mutants(faulty, given, [case.input for case in cases], limits)

    passed = [_passed(given, cases, results) for results in again]
    own_places = range(len(own_cases))
    stable = [place for place in range(len(cases)) if all(map(itemgetter(place), passed))]
    passing_mutants = 0
    refused_by: dict[int, set[int]] = {place: set() for place in stable if place not in own_places}
    for number, results in enumerate(of_mutants):
        passed_by_mutant = _passed(given, cases, results)
        if not all(passed_by_mutant[place] for place in own_places):
            continue
        passing_mutants += 1
        for place, refusing in refused_by.items():
            if not passed_by_mutant[place]:
                refusing.add(number)

    chosen, refused = _refusing(refused_by, count)
    added = [cases[place] for place in chosen]
    others = [cases[place] for place in refused_by if place not in chosen]
    added += _varied(others[::-1], count - len(added))
    if not added:
        raise NoTests("the reference gives no further results that can be compared")
    while len(_written(given, added)) > _LONGEST_TESTS:
        added.pop()
    written = _written(given, added)
    read_tests(written, entry_point, limits.packages)
    return Added(written, passing_mutants, passing_mutants - len(refused))


def _passed(given: Given, cases: Sequence[Case], results: Sequence[str | None]) -> list[bool]:
    pairs = zip(cases, results, strict=True)
    return [given.same(written, case.result) for case, written in pairs]


def _refusing(refused_by: dict[int, set[int]], count: int) -> tuple[list[int], set[int]]:
    """The candidates that refuse most mutants together, each the most of those that are left, and
    what they refuse.
    """
    chosen: list[int] = []
    refused: set[int] = set()
    while len(chosen) < count and refused_by:
        best = max(refused_by, key=lambda index: len(refused_by[index] - refused))
        if not refused_by[best] - refused:
            break
        chosen.append(best)
        refused |= refused_by[best]
    return chosen, refused


def _varied(candidates: Sequence[Case], count: int) -> list[Case]:
    """So many of them, with as many different results as there are."""
    by_result: dict[str, list[Case]] = defaultdict(list)
    for candidate in candidates:
        by_result[repr(candidate.result)].append(candidate)
    chosen: list[Case] = []
    while by_result and len(chosen) < count:
        for result in list(by_result):
            chosen.append(by_result[result].pop(0))
            if not by_result[result]:
                del by_result[result]
            if len(chosen) == count:
                break
    return chosen


# --- What is given


def _passing(references: Sequence[str], own_tests: Any, limits: Limits) -> list[str]:
    """The first references that pass the row's own tests."""
    passing = []
    failure = ""
    for reference in references[: 2 * _REFERENCES]:
        verdicts = check(reference, own_tests, limits)
        failed = [verdict for verdict in verdicts if verdict.reason != PASSED]
        if not failed:
            passing.append(reference)
        elif not failure:
            failure = ": ".join(filter(None, failed[0][:2]))
        if len(passing) == _REFERENCES:
            break
    if not passing and passes_together(references[0], own_tests, limits):
        raise NoTests("the reference passes only with together=true")
    if not passing:
        raise NoTests(f"the reference fails the row's own tests ({failure[:200]})")
    return passing


def _single_asserts(form: Form, reference: str) -> list[AssertTest]:
    """Of test programs the asserts that are plain by themselves, on functions of the reference."""
    nodes = list(ast.walk(ast.parse(reference)))
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    tests = []
    for source in form.sources:
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Assert):
                text = ast.unparse(node)
                if form.function:
                    text = re.sub(r"\bcandidate\b", form.function, text)
                tests += read_asserts(text)
    return [test for test in tests if test.function.rpartition(".")[2] in functions]


def _read_given(tests: Sequence[Any]) -> Given:
    """The given inputs, of tests that `read_tests` has read."""
    texts = [test.input for test in tests if isinstance(test, ProgramTest)]
    if texts:
        texts = [text for text in texts if len(text) <= _LONGEST]
        if not texts:
            raise NoTests("all its inputs are very long")
        return Given("output", tuple(texts))

    # Calls of one function with the same number of arguments, by the same keywords.
    alike: dict[Any, list[tuple[list[Any], Any]]] = defaultdict(list)
    for test in tests:
        with suppress(*_UNREADABLE):
            if isinstance(test, CallTest):
                alike[test.function, len(test.arguments), ()].append((test.arguments, test))
            elif isinstance(test, AssertTest):
                by_name = ast.literal_eval(test.keywords)
                arguments = [*ast.literal_eval(test.arguments), *by_name.values()]
                alike[test.function, len(arguments), tuple(by_name)].append((arguments, test))
    if not alike:
        raise NoTests("no test compares the result of a call whose arguments are plain values")
    (function, _, keywords), found = max(alike.items(), key=lambda item: len(item[1]))
    inputs = tuple(arguments for arguments, _ in found)
    if isinstance(found[0][1], CallTest):
        if any(len(arguments) == 1 and isinstance(arguments[0], dict) for arguments in inputs):
            raise NoTests("its only argument is a dict, whose keys JSON does not keep")
        return Given("JSON", inputs, function)
    asserts = [test for _, test in found]
    comparisons = {test.comparison for test in asserts}
    if "near" in comparisons:
        # As near as the most generous of them asks.
        widest = max(asserts, key=lambda test: max(test.tolerance[:2])).tolerance
        return Given("near", inputs, function, keywords, widest)
    if comparisons <= {"true", "false"}:
        return Given("truth", inputs, function, keywords)
    return Given("is" if comparisons == {"is"} else "equal", inputs, function, keywords)


def _constants(source: str) -> list[Any]:
    """The values that a program has written down."""
    nodes = ast.walk(ast.parse(source))
    return [node.value for node in nodes if isinstance(node, ast.Constant)]


# --- Results


# Runs programs, each on all inputs. ITIMER_VIRTUAL counts the process's own CPU time, so that which
# inputs are kept does not depend on the load.
_DRIVER = """
def _run_all_():
    import ast, contextlib, io, json, signal, sys, types

    def stop(*_):
        raise TimeoutError

    signal.signal(signal.SIGVTALRM, stop)
    job = json.loads(sys.stdin.read())

    def result_of_call(names, arguments):
        function = job["function"]
        if "Solution" in names and function not in names:
            function = "Solution()." + function
        value = eval(arguments.replace(job["function"], function, 1), names)
        written = repr(value)
        return written if ast.literal_eval(written) == value else None

    def result_of_program(code, text):
        names = {"__name__": "__main__"}
        exec(job["prelude"], names)
        sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
        with contextlib.redirect_stdout(io.StringIO()) as output:
            with contextlib.suppress(SystemExit):
                exec(code, names)
        return output.getvalue()

    def timed(work, *values):
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, job["seconds"], 0.05)
            return work(*values)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def results_of(program):
        module = sys.modules["solution"] = types.ModuleType("solution")
        code = compile(program, "solution", "exec")
        exec(job["prelude"], module.__dict__)
        if not job["is_program"]:
            timed(exec, code, module.__dict__)
        slow = 0
        for each in job["inputs"]:
            result = None
            try:
                if slow < job["slow"] and job["is_program"]:
                    result = timed(result_of_program, code, each)
                elif slow < job["slow"]:
                    result = timed(result_of_call, module.__dict__, each)
            except TimeoutError:
                slow += 1
            except BaseException:
                pass
            yield result if result is None or len(result) <= job["longest"] else None

    results = []
    with contextlib.redirect_stdout(io.StringIO()):
        for program in job["programs"]:
            try:
                results.append(list(results_of(program)))
            except BaseException:
                results.append([None] * len(job["inputs"]))
    sys.stdout.write("\\n" + json.dumps(results))


_run_all_()
"""


def _run(
    programs: list[str], given: Given, inputs: list[Any], limits: Limits
) -> list[list[str | None]]:
    """Of each program the results as Python writes them, or its output; None where there is none."""
    output = _output(programs, given, inputs, limits, (_SECONDS, _SLOW, _ALL_SECONDS))
    if output is not None:
        return output
    # One of them has taken all memory or all time.
    if len(programs) > 1:
        return [_run([program], given, inputs, limits)[0] for program in programs]
    if len(inputs) == 1:
        return [[None]]
    half = len(inputs) // 2
    (before,) = _run(programs, given, inputs[:half], limits)
    (behind,) = _run(programs, given, inputs[half:], limits)
    return [before + behind]


def _run_mutants(
    programs: list[str], given: Given, inputs: list[Any], limits: Limits
) -> list[list[str | None]]:
    """The same for mutants, but for those that take all memory or time, or stand beside one that
    does. Where that happens twice, the reference itself is slow, and the others are left out.
    """
    results: list[list[str | None]] = []
    failed = 0
    for start in range(0, len(programs), _TOGETHER):
        few = programs[start : start + _TOGETHER]
        output = _output(few, given, inputs, limits, (_MUTANT_SECONDS, 1, _ALL_SECONDS))
        results += output or []
        failed += output is None
        if failed == 2:
            break
    return results


def _output(
    programs: list[str],
    given: Given,
    inputs: list[Any],
    limits: Limits,
    times: tuple[float, int, float],
) -> list[list[str | None]] | None:
    """What `_DRIVER` says. times: of one call, how many calls may take longer, and of all."""
    if not inputs:
        return [[] for _ in programs]
    is_program = given.comparison == "output"
    seconds, slow, all_seconds = times
    mentioned = {word for program in programs for word in re.findall(r"\w+", program)}
    job = {
        "programs": programs,
        "prelude": _prelude(mentioned),
        "inputs": inputs if is_program else list(map(given.call, inputs)),
        "is_program": is_program,
        "function": given.function,
        "seconds": seconds,
        "slow": slow,
        "longest": _LONGEST,
    }
    (output,) = run_program(_DRIVER, [json.dumps(job)], replace(limits, seconds=all_seconds))
    if output is None:
        return None
    results: list[list[str | None]] = json.loads(output.rpartition("\n")[2])
    return results


def _prelude(mentioned: set[str]) -> str:
    """Imports of what code may use without importing it."""
    lines = []
    for name in sorted(mentioned & NAMES.keys()):
        module = NAMES[name]
        lines.append(f"import {name}" if module == name else f"from {module} import {name}")
    return "\n".join(lines)


def _cases(given: Given, inputs: Sequence[Any], results: Sequence[str | None]) -> list[Case]:
    cases = []
    for each, written in zip(inputs, results, strict=True):
        if written is not None:
            with suppress(*_UNREADABLE):
                cases.append(Case(each, given.result(written)))
    return cases


def _alike(given: Given, own: list[Case], reference: str) -> Callable[[Case], bool]:
    """Whether a case is like the given ones, and its result one that can be compared."""
    if given.comparison == "output":
        is_empty = any(not case.result.strip() for case in own)
        minus = any("-" in case.result for case in own)
        lines = {len(case.result.split("\n")) for case in own}

        def is_like_outputs(case: Case) -> bool:
            output = case.result
            if (not output.strip() and not is_empty) or ("-" in output and not minus):
                return False
            return len(own) == 1 or len(lines) > 1 or len(output.split("\n")) in lines

        return is_like_outputs

    kinds = {kind for case in own for kind in _kinds(case.result)}
    are_parts = all(_is_part(case) for case in own)
    constants = set(map(repr, _constants(reference)))

    def is_like_results(case: Case) -> bool:
        if are_parts and not _is_part(case) and repr(case.result) in constants:
            return False
        if len(repr(case.input)) > _LONGEST or not set(_kinds(case.result)) <= kinds:
            return False
        return _is_comparable(given, case.result)

    return is_like_results


def _is_part(case: Case) -> bool:
    """Whether a result stands in one of the arguments: a letter, a word or an element."""
    for argument in case.input:
        if isinstance(argument, str) and isinstance(case.result, str) and case.result in argument:
            return True
        if isinstance(argument, (list, tuple, set, dict)) and case.result in list(argument):
            return True
    return False


def _kinds(value: Any, depth: int = 0) -> Iterator[tuple[int, str]]:
    """Of a value and all in it the type, and whether it is negative or empty."""
    name = "number" if type(value) in (int, float) else type(value).__name__
    if name == "number" and value < 0:
        name += " below 0"
    if isinstance(value, (str, list, tuple, dict, set)) and not value:
        name += ", empty"
    yield depth, name
    for element in _elements(value):
        yield from _kinds(element, depth + 1)


def _elements(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return value if isinstance(value, (list, tuple, set)) else ()


def _is_comparable(given: Given, value: Any) -> bool:
    """Whether another right solution gives this value, or one that is near enough."""
    if given.comparison == "near":
        return type(value) in (int, float) and _is_exact(value)
    if given.comparison == "is":
        return value is None or isinstance(value, bool)
    return _is_exact(value)


def _is_exact(value: Any) -> bool:
    """Whether its floats are so small that they are the same in any order of the operations, but for
    what `same_value` allows.
    """
    if isinstance(value, complex) or (isinstance(value, float) and not abs(value) < _LARGEST):
        return False
    return all(map(_is_exact, _elements(value)))


# --- Writing tests


def _written(given: Given, added: Sequence[Case]) -> str:
    """The tests in a form that `read_tests` reads."""
    return json.dumps(_tests(given, added), ensure_ascii=False)


def _tests(given: Given, added: Sequence[Case]) -> Any:
    if given.comparison == "output":
        return [
            {"input": case.input, "output": case.result, "type": "stdin_stdout"} for case in added
        ]
    if given.comparison == "JSON":
        inputs = [case.input for case in added]
        outputs = [case.result for case in added]
        return {"fn_name": given.function, "inputs": inputs, "outputs": outputs}
    asserts = []
    for case in added:
        call = given.call(case.input)
        match given.comparison:
            case "near":
                limits = f"rel_tol={given.tolerance.share!r}, abs_tol={given.tolerance.most!r}"
                asserts.append(f"assert math.isclose({call}, {case.result!r}, {limits})")
            case "truth":
                asserts.append(f"assert {call}" if case.result else f"assert not {call}")
            case "is":
                asserts.append(f"assert {call} is {case.result!r}")
            case _:
                asserts.append(f"assert {call} == {case.result!r}")
    return ["import math", *asserts] if given.comparison == "near" else asserts
