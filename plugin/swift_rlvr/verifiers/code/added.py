"""Further tests for a row that has a reference solution.

A policy that sees a row's tests, or meets them often enough, can pass them with a table of what they
expect. `add_tests` runs the reference on inputs that are near the given ones (`nearby.py`) and
writes what it returns as tests, which the prompt does not show.

Kept is an input on which

- two runs of the reference, in processes of their own and in different order, give the same, without
  an exception and in `_SECONDS` of CPU time, and so do all other references of the row that pass its
  tests;
- the result is like the expected ones of the row: of the same types, not negative and not empty
  where none of them is, and a part of the input where all are. A solution that gives None for
  "not found" is not wrong because the reference gives -1, where no test of the row says which;
- a float is compared with a tolerance, or is one that every order of the same operations gives.
"""

import ast
import copy
import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from swift_rlvr.verifiers.code.calls import read_calls
from swift_rlvr.verifiers.code.cases import Form, read_form, read_tests, same_output
from swift_rlvr.verifiers.code.check import PASSED, check, passes_together
from swift_rlvr.verifiers.code.nearby import nearby_calls, nearby_texts
from swift_rlvr.verifiers.code.process import Limits
from swift_rlvr.verifiers.code.run import run_program

_SECONDS = 0.5  # of CPU time for a call; the reward allows 6 by default
_PROGRAM_SECONDS = 2.0  # the same for a program
_SLOW = 5  # so many calls that take longer are enough
_CALLS = 15  # candidates for each test that is asked for; calls share a process
_TEXTS = 2  # the same for programs, each of which has one of its own
_REFERENCES = 3  # as many are compared
_LONGEST = 2_000  # characters of an input and of a result
_LONGEST_TESTS = 60_000  # characters of all added tests: records keep a column of that length
_NEAR = 1e-6
# Where these stand in a question several results are right.
_SEVERAL_RIGHT = re.compile(
    r"\bin any order\b|\bany (?:valid|one of|of them|such|possible|order)\b"
    r"|\bmultiple (?:valid |correct |possible )?(?:answers|solutions|outputs)\b"
    r"|\b(?:print|output|return) any\b",
    re.IGNORECASE,
)
_UNREADABLE = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)
_MOST_TURNS = 100  # of a loop over cases

Result = Any


class NoTests(ValueError):
    """Why nothing can be added to a row."""


class Slot(NamedTuple):
    """An assert of a row, with a place for the arguments of its one call."""

    before: str  # what stands around the arguments: `sorted(f(` and `))`
    after: str
    kind: str  # "equal", "near", "true" or "is"
    keywords: tuple[str, ...] = ()  # the names of the last arguments

    def expression(self, arguments: Sequence[Any]) -> str:
        written = list(map(repr, arguments))
        first = len(written) - len(self.keywords)
        for index, name in enumerate(self.keywords, start=first):
            written[index] = f"{name}={written[index]}"
        return f"{self.before}{', '.join(written)}{self.after}"


@dataclass(frozen=True)
class Given:
    """The given tests of a row.

    style: "program", whose inputs are texts; "calls", whose results are compared as JSON writes
    them; or "asserts", each with a slot. prepare: what a source of asserts does before.
    """

    style: str
    function: str = ""
    inputs: tuple[Any, ...] = ()
    slots: tuple[Slot, ...] = ()
    prepare: str = ""


def add_tests(
    tests: Any,
    references: Sequence[str],
    *,
    entry_point: str | None = None,
    question: str = "",
    count: int = 20,
    seed: int | str = 0,
    limits: Limits | None = None,
) -> str:
    """Up to `count` further tests, as text that `read_tests` reads. The same seed gives the same.

    Raises:
        NoTests: where there is no reference that passes the row's own tests, or no test can be
            added, saying why.
        BadTests: where the row's own tests cannot be read.
        SandboxError: where code cannot be run safely.

    >>> print(add_tests(["assert add(1, 2) == 3", "assert add(4, 2) == 6"], ["def add(a, b): return a + b"], count=2))
    ["assert add(3, 2) == 5", "assert add(1, 5) == 6"]
    """
    limits = limits or Limits()
    if not references:
        raise NoTests("no reference solution")
    if _SEVERAL_RIGHT.search(question):
        raise NoTests("several results are right")
    passing = _passing(references, tests, entry_point, limits)
    given = _read_given(read_form(tests, entry_point), passing[0])
    rng = random.Random(f"{seed} {count}")
    if given.style == "program":
        added = _added_programs(given, passing, count, rng, limits)
    else:
        added = _added_calls(given, passing, count, rng, limits)
    if not added:
        raise NoTests("the reference gives no further results that can be compared")
    written = json.dumps(_written(given, added), ensure_ascii=False)
    while len(written) > _LONGEST_TESTS:
        added.pop()
        written = json.dumps(_written(given, added), ensure_ascii=False)
    read_tests(written, entry_point, limits.packages)
    return written


def _passing(
    references: Sequence[str], tests: Any, entry_point: str | None, limits: Limits
) -> list[str]:
    """The first references that pass the row's own tests."""
    own_tests = read_tests(tests, entry_point, limits.packages)
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


# --- The given inputs


def _read_given(form: Form, reference: str) -> Given:
    """The given inputs, of tests that `read_tests` has accepted."""
    if form.sources:
        return _given_asserts("\n".join(form.sources), reference, form.function or "")
    if form.programs:
        return Given("program", inputs=tuple(test.input for test in form.programs))
    inputs = [test.arguments for test in read_calls(list(form.calls))]
    if any(len(arguments) == 1 and isinstance(arguments[0], dict) for arguments in inputs):
        raise NoTests("its only argument is a dict, whose keys JSON does not keep")
    return Given("calls", form.calls[-1].function, tuple(inputs))


def _given_asserts(source: str, reference: str, entry_point: str) -> Given:
    """The asserts of a source that compare the result of one call with plain arguments."""
    tree = ast.parse(source)
    names = _functions(reference)
    if entry_point:
        names = {entry_point.rpartition(".")[2]} & names or names
    # Calls of one function with the same number of arguments, by the same keywords.
    alike: dict[Any, list[tuple[list[Any], Slot]]] = defaultdict(list)
    for kind, expression in _comparisons(tree.body, {}):
        expression = _with_candidate(expression, entry_point)
        calls = [call for call in ast.walk(expression) if _name_of_call(call) in names]
        if len(calls) != 1:
            continue
        with suppress(*_UNREADABLE):
            arguments = _literal_arguments(calls[0])
            slot = _slot(kind, expression, calls[0])
            kind_of_call = (_name_of_call(calls[0]), len(arguments), slot.keywords)
            alike[kind_of_call].append((arguments, slot))
    if not alike:
        raise NoTests("no test compares the result of a call whose arguments are plain values")

    (function, *_), found = max(alike.items(), key=lambda item: len(item[1]))
    slots = tuple(slot for _, slot in found)
    inputs = tuple(arguments for arguments, _ in found)
    return Given("asserts", function, inputs, slots, _preparation(tree, names, slots))


def _functions(reference: str) -> set[str]:
    """The functions that a reference defines, also as methods of its classes."""
    names = set()
    for node in ast.walk(ast.parse(reference)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            names.add(node.name)
    return names


def _name_of_call(node: ast.AST) -> str | None:
    match node:
        case ast.Call(ast.Name(name)) | ast.Call(ast.Attribute(_, name)):
            return name
    return None


def _with_candidate(expression: ast.expr, entry_point: str) -> ast.expr:
    """The expression with the function's own name for HumanEval's `candidate`."""
    if not entry_point:
        return expression
    expression = copy.deepcopy(expression)
    for node in ast.walk(expression):
        if isinstance(node, ast.Name) and node.id == "candidate":
            node.id = entry_point
    return ast.parse(ast.unparse(expression), mode="eval").body


def _literal_arguments(call: ast.AST) -> list[Any]:
    """The values of plain arguments; ValueError for others."""
    assert isinstance(call, ast.Call)
    if any(keyword.arg is None for keyword in call.keywords):
        raise ValueError("**")
    values = [*call.args, *(keyword.value for keyword in call.keywords)]
    return [ast.literal_eval(value) for value in values]


# The names that stand for an expression, in a block of statements.
Names = dict[str, ast.expr]


def _comparisons(body: list[ast.stmt], names: Names) -> Iterator[tuple[str, ast.expr]]:
    """Of each assert how it compares, and the expression that it compares, with what its names
    stand for. Loops over written values are followed.
    """
    for statement in body:
        match statement:
            case ast.Assign([ast.Name(name)], value):
                names[name] = _substituted(value, names)
            case ast.Assert(test):
                yield from _comparison(_substituted(test, names))
            case ast.Expr(ast.Call(ast.Attribute(_, "assertEqual"), [left, right, *_])):
                yield from _equal(_substituted(left, names), _substituted(right, names))
            case ast.FunctionDef() | ast.ClassDef():
                yield from _comparisons(statement.body, dict(names))
            case ast.If() | ast.With():
                yield from _comparisons(statement.body, names)
            case ast.For(target, values):
                for value in _elements(_substituted(values, names))[:_MOST_TURNS]:
                    bound = names | _bound(target, value)
                    yield from _comparisons(statement.body, bound)


def _substituted(expression: ast.expr, names: Names) -> ast.expr:
    """The expression with what its names stand for; `f(*(1, 2))` becomes `f(1, 2)`."""

    class Substitute(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return copy.deepcopy(names.get(node.id, node))

        def visit_Call(self, node: ast.Call) -> ast.expr:
            self.generic_visit(node)
            arguments = []
            for argument in node.args:
                if isinstance(argument, ast.Starred):
                    arguments += _elements(argument.value) or [argument]
                else:
                    arguments.append(argument)
            node.args = arguments
            return node

    changed = Substitute().visit(copy.deepcopy(expression))
    assert isinstance(changed, ast.expr)
    return changed


def _elements(values: ast.expr) -> list[ast.expr]:
    """The elements of a list that is written out, of `zip` and `enumerate` of such; else none."""
    match values:
        case ast.List(elements) | ast.Tuple(elements):
            return elements
        case ast.Call(ast.Name("zip"), columns):
            rows = zip(*map(_elements, columns), strict=False)
            return [ast.Tuple(list(row), ast.Load()) for row in rows]
        case ast.Call(ast.Name("enumerate"), [column, *_]):
            numbered = enumerate(_elements(column))
            return [ast.Tuple([ast.Constant(i), element], ast.Load()) for i, element in numbered]
    return []


def _bound(target: ast.expr, value: ast.expr) -> Names:
    """The names of a loop's target, with what they stand for."""
    match target:
        case ast.Name(name):
            return {name: value}
        case ast.Tuple(targets) | ast.List(targets):
            bound: Names = {}
            for one, element in zip(targets, _elements(value), strict=False):
                bound |= _bound(one, element)
            return bound
    return {}


def _comparison(test: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    match test:
        case ast.Compare(left, [ast.Eq()], [right]):
            yield from _equal(left, right)
        case ast.Compare(left, [ast.Is()], [ast.Constant()]):
            yield "is", left
        case ast.Compare(
            ast.Call(ast.Name("abs"), [ast.BinOp(left, ast.Sub(), right)]), [ast.Lt() | ast.LtE()]
        ):
            yield from _near(left, right)
        case ast.Call(
            ast.Name("isclose" | "allclose") | ast.Attribute(_, "isclose" | "allclose"),
            [left, right, *_],
        ):
            yield from _near(left, right)
        case ast.UnaryOp(ast.Not(), operand):
            yield "true", operand
        case ast.Call():
            yield "true", test


def _equal(left: ast.expr, right: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(right, ast.Call) and _name_of_call(right) == "approx":
        yield "near", left
    else:
        # A slot is made of the side that has the call.
        yield "equal", left
        yield "equal", right


def _near(left: ast.expr, right: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    yield "near", left
    yield "near", right


def _slot(kind: str, expression: ast.expr, call: ast.AST) -> Slot:
    """What stands around the arguments of a call."""
    assert isinstance(call, ast.Call)
    place = "arguments_of_the_call_"
    keywords = tuple(str(keyword.arg) for keyword in call.keywords)
    call.args, call.keywords = [ast.Name(place)], []
    before, _, after = ast.unparse(expression).partition(place)
    return Slot(before, after, kind, keywords)


def _preparation(tree: ast.Module, names: set[str], slots: Iterable[Slot]) -> str:
    """The imports and helpers of a source that its slots use."""
    used = {word for slot in slots for word in re.findall(r"\w+", slot.before + slot.after)}
    kept: list[ast.stmt] = []
    for statement in tree.body:
        bound: set[str] = set()
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            for alias in statement.names:
                bound.add((alias.asname or alias.name).partition(".")[0])
        elif isinstance(statement, ast.FunctionDef):
            bound.add(statement.name)
        if bound & (used - names):
            kept.append(statement)
    return ast.unparse(ast.Module(kept, []))


# --- The results of the reference


class Added(NamedTuple):
    """One test to be written."""

    input: Any
    result: Result
    slot: Slot | None = None


def _added_programs(
    given: Given, references: list[str], count: int, rng: random.Random, limits: Limits
) -> list[Added]:
    own = [text for text in given.inputs if len(text) <= _LONGEST]
    if not own:
        raise NoTests("all its inputs are very long")
    # A right program that is slower than the reference still has time enough.
    limits = replace(limits, seconds=min(_PROGRAM_SECONDS, limits.seconds))
    texts = nearby_texts(own, _TEXTS * count, rng)
    own_outputs = run_program(references[0], own, limits)
    is_empty = any(not (output or "").strip() for output in own_outputs)
    minus = any("-" in (output or "") for output in own_outputs)
    lines = {len((output or "").split("\n")) for output in own_outputs}

    outputs = run_program(references[0], texts, limits)
    kept = []
    for text, output in zip(texts, outputs, strict=True):
        if output is None or len(output) > _LONGEST:
            continue
        if (not output.strip() and not is_empty) or ("-" in output and not minus):
            continue
        if len(lines) == 1 and len(own) > 1 and len(output.split("\n")) not in lines:
            continue
        kept.append(Added(text, output))
    chosen = _varied(kept, count, key=lambda added: added.result.strip())
    for other in (references[0], *references[1:]):
        again = run_program(other, [added.input for added in chosen], limits)
        agreeing = []
        for added, output in zip(chosen, again, strict=True):
            if output is not None and same_output(output, added.result):
                agreeing.append(added)
        chosen = agreeing
    return chosen


def _added_calls(
    given: Given, references: list[str], count: int, rng: random.Random, limits: Limits
) -> list[Added]:
    own = list(given.inputs)
    made = nearby_calls(own, _CALLS * count, rng)
    slots = list(given.slots) or [Slot(f"{given.function}(", ")", "equal")]
    chosen_slots = [slots[number % len(slots)] for number in range(len(made))]
    own_slots = list(given.slots) or slots * len(own)

    expressions = []
    for arguments, slot in zip([*own, *made], own_slots + chosen_slots, strict=True):
        expressions.append(slot.expression(arguments))
    results = _evaluated(references[0], given, expressions, limits)
    for other in (references[0], *references[1:]):
        again = _evaluated(other, given, expressions[::-1], limits)[::-1]
        results = [
            result if result == same else None for result, same in zip(results, again, strict=True)
        ]

    own_pairs = [
        (arguments, _value(result))
        for arguments, result in zip(own, results[: len(own)], strict=True)
        if result is not None
    ]
    is_alike = _alike(own_pairs)
    kept = []
    for arguments, slot, result in zip(made, chosen_slots, results[len(own) :], strict=True):
        if result is None or len(repr(arguments)) > _LONGEST:
            continue
        value = _value(result)
        if is_alike(arguments, value) and _is_comparable(value, slot, given.style):
            kept.append(Added(arguments, value, slot))
    return _varied(kept, count, key=lambda added: repr(added.result))


def _value(result: str) -> Any:
    """What `_DRIVER` has written."""
    return ast.literal_eval(result)


# Evaluates expressions one after the other. ITIMER_VIRTUAL counts the process's own CPU time, so
# that which inputs are kept does not depend on the load.
_DRIVER = """
def _evaluate_expressions_():
    import ast, contextlib, io, json, signal, sys

    slow = 0

    def stop(*_):
        nonlocal slow
        slow += 1
        raise TimeoutError

    signal.signal(signal.SIGVTALRM, stop)
    job = json.loads(sys.stdin.read())
    names = globals()
    results = []
    with contextlib.redirect_stdout(io.StringIO()):
        if "Solution" in names and job["function"] not in names:
            names[job["function"]] = lambda *values: getattr(Solution(), job["function"])(*values)
        exec(job["prepare"], names)
        for expression in job["expressions"]:
            result = None
            if slow == job["slow"]:
                results.append(None)
                continue
            try:
                signal.setitimer(signal.ITIMER_VIRTUAL, job["seconds"])
                value = eval(expression, names)
                written = repr(value)
                if len(written) <= job["longest"] and ast.literal_eval(written) == value:
                    result = written
            except BaseException:
                pass
            finally:
                signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            results.append(result)
    sys.stdout.write("\\n" + json.dumps(results))


_evaluate_expressions_()
"""


def _evaluated(
    reference: str, given: Given, expressions: list[str], limits: Limits
) -> list[str | None]:
    """The value of each expression as Python writes it; None where there is none that is plain."""
    job = {
        "expressions": expressions,
        "function": given.function,
        "prepare": given.prepare,
        "seconds": _SECONDS,
        "slow": _SLOW,
        "longest": _LONGEST,
    }
    module = ast.parse(reference)
    start = 0
    for statement in module.body:
        is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        is_future = isinstance(statement, ast.ImportFrom) and statement.module == "__future__"
        if not (is_text or is_future):
            break
        start += 1
    # What stands under `if __name__ == "__main__":` is not run.
    module.body[start:start] = ast.parse('__name__ = "solution"').body
    program = f"{ast.unparse(module)}\n{_DRIVER}"
    (output,) = run_program(program, [json.dumps(job)], limits)
    if output is None:
        if len(expressions) < 2:
            return [None] * len(expressions)
        # One of them has taken all memory or all time.
        half = len(expressions) // 2
        first = _evaluated(reference, given, expressions[:half], limits)
        return first + _evaluated(reference, given, expressions[half:], limits)
    results = json.loads(output.rpartition("\n")[2])
    assert isinstance(results, list)
    return results


def _alike(given: list[tuple[list[Any], Any]]) -> Callable[[list[Any], Any], bool]:
    """Whether the result for some arguments is like the given ones."""
    kinds = {kind for _, result in given for kind in _kinds(result)}
    is_part = all(_is_part(result, arguments) for arguments, result in given)

    def test(arguments: list[Any], result: Any) -> bool:
        if is_part and not _is_part(result, arguments):
            return False
        return set(_kinds(result)) <= kinds

    return test


def _is_part(result: Any, arguments: list[Any]) -> bool:
    """Whether a result stands in one of the arguments: a letter, a word or an element."""
    for argument in arguments:
        if isinstance(argument, str) and isinstance(result, str) and result in argument:
            return True
        if isinstance(argument, (list, tuple, set, dict)) and result in list(argument):
            return True
    return False


def _kinds(value: Any, depth: int = 0) -> Iterator[tuple[int, str]]:
    """Of a value and all in it the type, and whether it is negative or empty."""
    name = type(value).__name__
    if type(value) in (int, float) and value < 0:
        name += " below 0"
    if isinstance(value, (str, list, tuple, dict, set)) and not value:
        name += ", empty"
    yield depth, name
    elements: Iterable[Any] = ()
    if isinstance(value, (list, tuple, set)):
        elements = value
    elif isinstance(value, dict):
        elements = [*value.keys(), *value.values()]
    for element in elements:
        yield from _kinds(element, depth + 1)


def _is_comparable(value: Any, slot: Slot, style: str) -> bool:
    """Whether another right solution gives this very value, rounding included."""
    if style == "calls":
        with suppress(*_UNREADABLE):
            if json.loads(json.dumps(value)) != json.loads(json.dumps(value, allow_nan=False)):
                return False
            return _is_rounding_safe(value)
        return False
    if type(value) is float:
        return abs(value) < 1e15  # it is compared with a tolerance
    if slot.kind == "near":
        return type(value) is int
    if slot.kind == "is":
        return value is None or isinstance(value, bool)
    return slot.kind == "true" or _is_rounding_safe(value)


def _is_rounding_safe(value: Any) -> bool:
    """Whether its floats have so few binary digits that sums and means of any order give them."""
    for element in _leaves(value):
        if isinstance(element, complex):
            return False
        if isinstance(element, float):
            scaled = element * 1024
            if not abs(scaled) < 2**40 or scaled != int(scaled):
                return False
    return True


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = [*value.keys(), *value.values()]
    if isinstance(value, (list, tuple, set)):
        for element in value:
            yield from _leaves(element)
    else:
        yield value


def _varied(candidates: list[Added], count: int, key: Callable[[Added], str]) -> list[Added]:
    """So many of them, with as many different results as there are."""
    by_result: dict[str, list[Added]] = defaultdict(list)
    for candidate in candidates:
        by_result[key(candidate)].append(candidate)
    chosen: list[Added] = []
    while by_result and len(chosen) < count:
        for result in list(by_result):
            chosen.append(by_result[result].pop(0))
            if not by_result[result]:
                del by_result[result]
            if len(chosen) == count:
                break
    return chosen


# --- Writing tests


def _written(given: Given, added: Sequence[Added]) -> Any:
    """The tests in a form that `read_tests` reads."""
    if given.style == "program":
        return [
            {"input": test.input, "output": test.result, "type": "stdin_stdout"} for test in added
        ]
    if given.style == "calls":
        inputs = [test.input for test in added]
        outputs = [test.result for test in added]
        return {"fn_name": given.function, "inputs": inputs, "outputs": outputs}
    asserts = []
    is_close = False
    for test in added:
        assert test.slot is not None
        expression = test.slot.expression(test.input)
        if type(test.result) is float or test.slot.kind == "near":
            is_close = True
            limits = f"rel_tol={_NEAR!r}, abs_tol={_NEAR!r}"
            asserts.append(f"assert math.isclose({expression}, {test.result!r}, {limits})")
        elif test.slot.kind == "true":
            asserts.append(f"assert {'' if test.result else 'not '}{expression}")
        elif test.slot.kind == "is":
            asserts.append(f"assert {expression} is {test.result!r}")
        else:
            asserts.append(f"assert {expression} == {test.result!r}")
    prepare = f"import math\n{given.prepare}" if is_close else given.prepare
    return [prepare, *asserts] if prepare.strip() else asserts
