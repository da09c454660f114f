"""Further tests for a row that has a reference solution.

A policy that sees a row's tests, or meets them often enough, can pass them with a table of what they
expect, or with a rule that is right for them alone. `add_tests` runs the reference on inputs that are
near the given ones (`calls.py`, `texts.py`) and writes what it returns as tests, which the prompt does
not show. First come those that refuse mutants of the reference (`mutants.py`) which the given tests let
pass.

Kept is an input on which

- two runs of the reference, in processes of their own and in different order, give the same, without
  an exception and in half a second of CPU time, and so do all other references of the row that pass
  its tests;
- the result is like the expected ones of the row: of the same types, not negative and not empty
  where none of them is. A solution that gives None for "not found" is not wrong because the reference
  gives -1, where no test of the row says which. For the same reason a value that the reference has
  written down is no result where all expected ones are parts of the input.
"""

import ast
import random
import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, zip_longest
from typing import Any, NamedTuple

from swift_rlvr.evaluation.added_tests.alike import constants_of, like_outputs, like_results
from swift_rlvr.evaluation.added_tests.calls import nearby_calls
from swift_rlvr.evaluation.added_tests.given import (
    Calls,
    Case,
    Given,
    NoTests,
    read_given,
)
from swift_rlvr.evaluation.added_tests.mutants import mutants
from swift_rlvr.evaluation.added_tests.running import results_of, results_of_mutants
from swift_rlvr.evaluation.added_tests.texts import nearby_texts
from swift_rlvr.verifiers.code.cases import Form, read_form, read_tests
from swift_rlvr.verifiers.code.check import PASSED, check, passes_together
from swift_rlvr.verifiers.code.plain import AssertTest, read_asserts
from swift_rlvr.verifiers.code.process import Limits
from swift_rlvr.verifiers.code.sources import UnitTest

_CALLS = 15  # candidates for each test that is asked for
_FEWEST_CALLS = 200
_TEXTS = 2  # candidates for programs
_MUTANTS = 40
_REFERENCES = 3  # as many are compared
_LONGEST_TESTS = 60_000  # characters of all added tests: records keep a column of that length
# Where these stand in a question several results are right.
_SEVERAL_RIGHT = re.compile(
    r"\bin any order\b|\bany (?:valid|one of|of them|such|possible|order)\b"
    r"|\bmultiple (?:valid |correct |possible )?(?:answers|solutions|outputs)\b"
    r"|\b(?:print|output|return) any\b",
    re.IGNORECASE,
)


class Added(NamedTuple):
    """What was added to a row.

    tests: text that `read_tests` reads. mutants: of the reference that pass the row's own tests.
    surviving: how many of them pass the added tests too, some because they do the same as it.
    """

    tests: str
    mutants: int
    surviving: int


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
        NoTests: if there is no reference that passes the row's own tests, or no test can be
            added, saying why.
        BadTests: if the row's own tests cannot be read.
        SandboxError: if code cannot be run safely.

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
    references = _passing(references, own_tests, limits)
    reference = references[0]
    if all(isinstance(test, UnitTest) for test in own_tests):
        own_tests = _plain_asserts(read_form(tests, entry_point), reference)
    given = read_given(own_tests)
    # random takes a text by its SHA-512, so PYTHONHASHSEED does not matter.
    rng = random.Random(f"{seed} {count}")
    inputs: Sequence[Any]
    if isinstance(given, Calls):
        # The limits at which the reference does another thing. True and False are ints, and no limits.
        numbers = []
        for value in constants_of(reference):
            if type(value) in (int, float):
                numbers.append(value)
        most = max(_CALLS * count, _FEWEST_CALLS)
        inputs = nearby_calls(given.inputs, most, rng, numbers)
    else:
        inputs = nearby_texts(given.inputs, _TEXTS * count, rng)

    # The first run says what the results are, the second, in another order, whether they stay, and
    # what mutants give.
    (results,) = results_of([reference], given, [*given.inputs, *inputs], limits)
    own = len(given.inputs)
    own_cases = given.cases(given.inputs, results[:own])
    candidates = given.cases(inputs, results[own:])
    if isinstance(given, Calls):
        candidates = like_results(given, own_cases, candidates, reference)
    else:
        candidates = like_outputs(own_cases, candidates)
    # A reference that keeps something from call to call gives other results in another order.
    own_cases.reverse()
    candidates.reverse()
    faulty = mutants(reference, _MUTANTS, rng)
    second = _run_again(given, own_cases, candidates, references, faulty, limits)

    added, refused = _chosen(candidates, second.refused_by, count)
    if not added:
        raise NoTests("the reference gives no further results that can be compared")
    # From the end: the first ones refuse the most mutants.
    while len(given.tests(added)) > _LONGEST_TESTS:
        added.pop()
    written = given.tests(added)
    # Written in one of several forms: what cannot be read again ends here, and not in the training.
    read_tests(written, entry_point, limits.packages)
    return Added(written, second.mutants, second.mutants - len(refused))


class _SecondRun(NamedTuple):
    """mutants: how many pass the row's own tests. refused_by: by the place of each candidate whose
    result stays, the numbers of those that it refuses.
    """

    mutants: int
    refused_by: dict[int, set[int]]


def _run_again(
    given: Given,
    own_cases: Sequence[Case],
    candidates: Sequence[Case],
    references: Sequence[str],
    faulty: Sequence[str],
    limits: Limits,
) -> _SecondRun:
    """Run all references, and the mutants of the first one, on all cases."""
    cases = [*own_cases, *candidates]
    inputs = [case.input for case in cases]

    def passed(results: Sequence[str | None]) -> tuple[list[bool], list[bool]]:
        """Which of its own tests, and which candidates, a program with these results passes."""
        outcomes = []
        for case, written in zip(cases, results, strict=True):
            outcomes.append(given.passes(written, case.result))
        return outcomes[: len(own_cases)], outcomes[len(own_cases) :]

    # A result on which one of the references disagrees is not the only right one.
    refused_by: dict[int, set[int]] = {place: set() for place in range(len(candidates))}
    for results in results_of(references, given, inputs, limits):
        _, outcomes = passed(results)
        for place, stays in enumerate(outcomes):
            if not stays:
                refused_by.pop(place, None)

    passing = 0
    for number, results in enumerate(results_of_mutants(faulty, given, inputs, limits)):
        own, outcomes = passed(results)
        # A fault that the row's own tests see already says nothing about the candidates.
        if not all(own):
            continue
        passing += 1
        for place, refusing in refused_by.items():
            if not outcomes[place]:
                refusing.add(number)
    return _SecondRun(passing, refused_by)


# --- The references and tests of the row


def _passing(references: Sequence[str], own_tests: Any, limits: Limits) -> list[str]:
    """The first references that pass the row's own tests; NoTests if none does."""
    passing = []
    failure = ""
    # Each runs all tests of the row: a row with a hundred solutions would take minutes.
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


def _plain_asserts(form: Form, reference: str) -> list[AssertTest]:
    """The asserts of test programs that are plain by themselves and call functions of the reference."""
    functions = set()
    for node in ast.walk(ast.parse(reference)):
        if isinstance(node, ast.FunctionDef):
            functions.add(node.name)
    tests = []
    for source in form.sources:
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.Assert):
                continue
            text = ast.unparse(node)
            # HumanEval's `check(candidate)`.
            if form.function:
                text = re.sub(r"\bcandidate\b", form.function, text)
            for test in read_asserts(text):
                # A method, `Solution().f`, by its own name.
                if test.function.rpartition(".")[2] in functions:
                    tests.append(test)
    return tests


# --- Choosing


def _chosen(
    candidates: Sequence[Case], refused_by: dict[int, set[int]], count: int
) -> tuple[list[Case], set[int]]:
    """Up to `count` candidates, and the mutants that they refuse.

    First come those that refuse most mutants together, each the most of those that are left; then
    others, with as many different results as there are. refused_by: as in `_SecondRun`.
    """
    places: list[int] = []
    refused: set[int] = set()
    while len(places) < count and refused_by:
        best = max(refused_by, key=lambda place: len(refused_by[place] - refused))
        if not refused_by[best] - refused:
            break
        places.append(best)
        refused |= refused_by[best]

    # A round takes one candidate of each result: a program that always says True passes all that expect it.
    by_result: dict[str, list[Case]] = defaultdict(list)
    for place in reversed(refused_by):
        if place not in places:
            by_result[repr(candidates[place].result)].append(candidates[place])
    rounds = chain.from_iterable(zip_longest(*by_result.values()))
    chosen = [candidates[place] for place in places]
    # zip_longest fills up the results that have fewer candidates.
    chosen += filter(None, rounds)
    return chosen[:count], refused
