"""Tests as Python source -> the asserts that they stand for, one after the other, as far as they
can be told apart.

Comparisons with a literal are made outside the code that is tested (`asserts.py`): the more of them
are found, the less there is to lie about. The table in `rewards/README.md` says what is unfolded.
What is not needed any longer is left out: it would tell the code what is expected.
"""

import ast
import builtins
import math
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeGuard, TypeVar

NO_LITERAL = (
    ValueError,
    TypeError,
    SyntaxError,
    MemoryError,
    RecursionError,
    ArithmeticError,
    LookupError,
)
COLLECTIONS = {"set": set, "frozenset": frozenset, "list": list, "tuple": tuple, "dict": dict}
# called with an expression, a literal and two limits (`asserts.py`); no source can contain that
# name
NEAR = "@near"
_MOST_STEPS, _DEEPEST = 10_000, 30
_LARGEST = 1 << 20  # elements of a value that is computed
_CALLS: dict[str, Callable] = COLLECTIONS | {"len": len, "range": range}
_OPERATORS: dict[type, Callable] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_OPERATORS |= {ast.Div: operator.truediv, ast.Pow: operator.pow}
_OPPOSITES: dict[type, type] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.NotIn: ast.In,
    ast.IsNot: ast.Is,
}
_ASSERT = "self_assert"
_METHODS = {f"{name}Equal": "a == b" for name in ("", "List", "Tuple", "Set", "Dict", "MultiLine")}
_METHODS |= {
    "NotEqual": "a != b",
    "True": "a",
    "False": "not a",
    "Is": "a is b",
    "IsNone": "a is None",
}
_METHODS |= {
    "IsNotNone": "a is not None",
    "In": "a in b",
    "NotIn": "a not in b",
    "IsInstance": "isinstance(a, b)",
}
_METHODS |= {"Greater": "a > b", "GreaterEqual": "a >= b", "Less": "a < b", "LessEqual": "a <= b"}
_METHODS |= {"AlmostEqual": "abs(a - b) <= c"}  # all of unittest.TestCase
_ACTIONS = (ast.Call, ast.Subscript, ast.Attribute, ast.NamedExpr)
_RAISES = ("pytest.raises", "raises", "self_assertRaises")
_PARAMETRIZE = ("pytest.mark.parametrize", "mark.parametrize")
_NEAR = dict.fromkeys(("approx", "pytest.approx"), {"rel": 1e-6, "abs": 1e-12}) | dict.fromkeys(
    ("np.allclose", "np.isclose", "numpy.allclose", "numpy.isclose"), {"rtol": 1e-5, "atol": 1e-8}
)
_Node = TypeVar("_Node", bound=ast.AST)


class BadTests(ValueError):
    """The column `tests` of a row cannot be used."""


def unfold(body: list[ast.stmt], candidate: ast.expr | None) -> list[ast.stmt]:
    """Statements that do the same as the tests; a function ``check`` that nothing calls is called
    with the `candidate`.

    Raises BadTests where only a test runner could run the tests.
    """
    body = [part for each in body for part in _class_parts(each) if not _does_nothing(part)]
    unfolding = _Unfolding(body)
    own = {
        each.name: {each.name} & _names([each])
        for each in body
        if isinstance(each, ast.FunctionDef)
    }
    uses = Counter(name for each in body for name in _names([each]))
    for name, function in unfolding.functions.items():
        if uses[name] == len(own[name]):  # by nothing but itself
            if name == "check" and candidate:
                body.append(_call("check", candidate))
            elif name.startswith("test"):
                body += _test(function)
    for each in body:
        unfolding.add(each)
    steps = _needed(unfolding.steps)
    for name in _names(steps) - _names(steps, ast.Store):
        if name.startswith("self_"):
            raise BadTests(f"{name.replace('_', '.', 1)} is needed, which only a test runner has")
    return [ast.fix_missing_locations(each) for each in steps]


class _Unfolding:
    """The statements so far (`steps`), and the names that stand for a literal after them."""

    def __init__(self, body: list[ast.stmt]):
        self.functions = {each.name: each for each in body if isinstance(each, ast.FunctionDef)}
        self.bound = {name for each in body for name in _bound(each)}
        nodes = [node for each in body for node in ast.walk(each)]
        self.shared = {
            name for node in nodes if isinstance(node, ast.Global) for name in node.names
        }
        self.steps: list[ast.stmt] = []
        self.constants: dict[str, ast.expr] = {}
        self.left = _MOST_STEPS

    def add(self, statement: ast.stmt, depth: int = 0) -> None:
        self.left -= 1
        statement = self._folded(statement)
        parts = self._parts(statement) if self.left > 0 and depth < _DEEPEST else None
        if parts is None:
            self._leave(statement)
        for part in parts or ():
            if not _does_nothing(part):
                self.add(part, depth + 1)

    def _folded(self, statement: ast.stmt) -> ast.stmt:
        """With literals for the names that stand for one, where nothing can change what they stand
        for.
        """
        if not isinstance(statement, (ast.Assert, ast.Assign, ast.AnnAssign, ast.Expr, ast.If)):
            return statement
        field = "test" if isinstance(statement, (ast.Assert, ast.If)) else "value"
        value = getattr(statement, field)
        if value is not None:
            fixed = {name: each for name, each in self.constants.items() if not _is_mutable(each)}
            late = [node for node in ast.walk(value) if isinstance(node, ast.Lambda)]
            names = fixed.keys() - _names([value], ast.Store) - _names(late)
            value = _substitute(value, {name: fixed[name] for name in names})
        if isinstance(statement, ast.Assert):
            value = _near(self._folded_operands(value) if isinstance(value, ast.Compare) else value)
        return _replaced(statement, {field: value})

    def _folded_operands(self, test: ast.Compare) -> ast.Compare:
        """With literals also for lists and the like, in those operands that are nothing else."""
        operands = [test.left, *test.comparators]
        usable = {
            name: self.constants[name] for name in self.constants.keys() - _names([test], ast.Store)
        }
        while True:
            folded = [_substitute(each, usable) for each in operands]
            known = [is_literal(each.args[0] if _is_near(each) else each) for each in folded]
            evaluated = _names(
                each for each, is_known in zip(operands, known, strict=True) if not is_known
            )
            changed = {name for name in evaluated & usable.keys() if _is_mutable(usable[name])}
            usable = {name: value for name, value in usable.items() if name not in changed}
            if not changed:
                break
        left, *others = (
            new if is_known else old
            for old, new, is_known in zip(operands, folded, known, strict=True)
        )
        return ast.Compare(left, test.ops, others)

    def _leave(self, statement: ast.stmt) -> None:
        """Take it as it is. It may change what it names, and what the functions name that it
        names.
        """
        self.steps.append(statement)
        seen: set[str] = set()
        bound = _bound(statement)
        left: list[ast.AST] = [] if isinstance(statement, ast.FunctionDef) else [statement]
        while left:
            node = left.pop()
            named = _names([node]) - seen
            seen |= named
            left += [self.functions[name] for name in named if name in self.functions]
        for name in [*self.constants]:
            if name in bound or (name in seen and _is_mutable(self.constants[name])):
                del self.constants[name]
        match statement:
            case ast.Assign([ast.Name(name)], value) if name not in self.shared and is_literal(
                value
            ):
                self.constants[name] = value

    def _parts(self, statement: ast.stmt) -> list[ast.stmt] | None:
        """What a statement consists of; None for one that is to be left as it is."""
        match statement:
            case ast.Assert(test):
                conditions = self._conditions(test)
                return None if conditions is None else [ast.Assert(each) for each in conditions]
            case ast.If(test, body, []) if _fails(body):
                return [ast.Assert(_negated(test))]
            case ast.If(test, body, otherwise) if _fails(otherwise) and all(
                map(_does_nothing, body)
            ):
                return [ast.Assert(test)]
            case ast.For(target, iterable, body, []):
                return self._loop(target, iterable, body)
            case ast.AnnAssign(ast.Name() as target, _, ast.expr() as value):
                return [ast.Assign([target], value)]
            case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(values):
                return [*map(_assign, targets, values)] if all(map(is_literal, values)) else None
            case ast.With([ast.withitem(ast.Call(ast.Name("self_subTest")))], body):
                return body
            case ast.With([ast.withitem(ast.Call(function, [error], keywords), None)], body):
                if ast.unparse(function) in _RAISES and {each.arg for each in keywords} <= {
                    "match"
                }:
                    return [_raises(error, body, keywords)]
            case ast.Expr(ast.Call(function, [error, called, *values], [])) if (
                ast.unparse(function) in _RAISES
            ):
                return [_raises(error, [ast.Expr(ast.Call(called, values, []))], [])]
            case ast.Expr(ast.Call(ast.Name(name), values, keywords)) if (
                name.removeprefix(_ASSERT) in _METHODS
            ):
                return [_method(name.removeprefix(_ASSERT), values, keywords)]
            case ast.Expr(ast.Call(ast.Name(name), values, [])) if name in self.functions:
                return self._inlined(self.functions[name], values)
        return None

    def _inlined(self, function: ast.FunctionDef, values: list[ast.expr]) -> list[ast.stmt] | None:
        """The statements in a function as they would stand outside it, where they can."""
        names = [each.arg for each in function.args.args]
        values = [
            *values,
            *function.args.defaults[len(function.args.defaults) + len(values) - len(names) :],
        ]
        if (
            function.decorator_list
            or len(values) != len(names)
            or _names([function.args], ast.Store) != {*names}
        ):
            return None
        if close := _evalplus(function, values):
            return [close]
        given = dict(zip(names, values, strict=True))
        inner = ast.Module(function.body, [])
        known = {name: value for name, value in given.items() if is_literal(value)}
        if substituted := _substituted(inner, known):
            inner, given = (
                substituted,
                {name: value for name, value in given.items() if name not in known},
            )
        given = {name: value for name, value in given.items() if ast.unparse(value) != name}
        if any(_names([value]) & given.keys() - {name} for name, value in given.items()):
            return None
        inner.body = [*(_assign(_load(name), value) for name, value in given.items()), *inner.body]
        if _bound(inner) & self.bound:
            return None
        try:
            compile(ast.fix_missing_locations(inner), "<tests>", "exec", dont_inherit=True)
        except SyntaxError:  # a return or a yield
            return None
        return inner.body

    def _loop(
        self, target: ast.expr, iterable: ast.expr, body: list[ast.stmt]
    ) -> list[ast.stmt] | None:
        inner = [node for each in body for node in ast.walk(each)]
        items = self._items(iterable) or []
        self.left -= len(items)
        if (
            any(isinstance(node, (ast.Break, ast.Continue, ast.Return)) for node in inner)
            or self.left < 0
        ):
            return None
        parts: list[ast.stmt] = []
        module: ast.Module | None = None
        is_late = any(isinstance(node, (ast.Lambda, ast.FunctionDef)) for node in inner)
        for item in items:
            module = (
                None if is_late else _substituted(ast.Module(body, []), _unpacked(target, item))
            )
            parts += [_assign(target, item), *body] if module is None else module.body
        return (
            [*parts, _assign(target, items[-1])] if module else parts or None
        )  # it is there after the loop

    def _items(self, iterable: ast.expr) -> list[ast.expr] | None:
        """The literals that a loop goes over."""
        iterable = _substitute(iterable, self.constants)
        match iterable:
            case ast.List(items) | ast.Tuple(items) if is_literal(iterable):
                return items
            case ast.Call(ast.Name("range")) if (
                is_literal(iterable) and len(literal(iterable)) < _MOST_STEPS
            ):
                return [ast.Constant(each) for each in literal(iterable)]
            case ast.Call(ast.Name("enumerate"), [values], []):
                items = self._items(values) or []
                return [
                    ast.Tuple([ast.Constant(index), each], ast.Load())
                    for index, each in enumerate(items)
                ]
            case ast.Call(ast.Name("zip"), values):
                columns = [self._items(each) or [] for each in values]
                return [ast.Tuple([*each], ast.Load()) for each in zip(*columns, strict=False)]
            case ast.Call(ast.Attribute(ast.Dict(keys, values) as mapping, "items"), [], []) if (
                is_literal(mapping)
            ):
                if len(keys) == len(literal(mapping)):
                    return [
                        ast.Tuple([key, value], ast.Load())
                        for key, value in zip(keys, values, strict=True)
                        if key
                    ]
        return None

    def _conditions(self, test: ast.expr) -> list[ast.expr] | None:
        """Expressions that are all true where `test` is; None where it is to be left as it is."""
        match test:
            case ast.BoolOp(ast.And(), values):
                return values
            case ast.UnaryOp(ast.Not(), operand):
                opposite = _negated(operand)
                return None if isinstance(opposite, ast.UnaryOp) else [opposite]
            case ast.Compare(
                ast.Compare() | ast.BoolOp() as inner, [ast.Is() | ast.Eq()], [ast.Constant(True)]
            ) | ast.Call(ast.Name("bool"), [ast.Compare() | ast.BoolOp() as inner], []):
                return [inner]
            case ast.Call(ast.Name("all"), [ast.List(values) | ast.Tuple(values)], []) if values:
                return values
            case ast.Call(
                ast.Name("all"),
                [ast.GeneratorExp(element, [loop]) | ast.ListComp(element, [loop])],
                [],
            ):
                items = [] if loop.ifs else self._items(loop.iter) or []
                conditions = [_substituted(element, _unpacked(loop.target, item)) for item in items]
                return [each for each in conditions if each] if all(conditions) and items else None
            case ast.Compare(left, operators, others) if len(others) > 1:
                operands = [left, *others]
                known = [each for each in operands if is_literal(each)]
                if (
                    known
                    and len(known) < len(operands)
                    and all(isinstance(each, ast.Eq) for each in operators)
                ):
                    pairs = [
                        ast.Compare(each, [ast.Eq()], known[:1])
                        for each in operands
                        if each not in known
                    ]
                    return [
                        *pairs,
                        *(ast.Compare(known[0], [ast.Eq()], [each]) for each in known[1:]),
                    ]
            case ast.Call(ast.Name(name), values, []) if name in self.functions:
                body = [each for each in self.functions[name].body if not _does_nothing(each)]
                names = [each.arg for each in self.functions[name].args.args]
                match body:
                    case [ast.Return(ast.expr() as value)] if len(names) == len(values) and {
                        *names
                    } <= _names([value]):
                        result = _substituted(value, dict(zip(names, values, strict=True)))
                        return [result] if result else None
        return None


def literal(node: ast.expr | None) -> Any:
    """The value of a literal, also one such as ``set([1, 2])``, ``2**31 - 1``, ``float("inf")`` or
    ``math.inf``.

    Raises one of `NO_LITERAL` for anything else.
    """
    match node:
        case ast.Constant(value):
            return value
        case ast.List(items) | ast.Tuple(items) | ast.Set(items):
            return COLLECTIONS[type(node).__name__.lower()](map(literal, items))
        case ast.Dict(keys, values):
            return dict(zip(map(literal, keys), map(literal, values), strict=True))
        case ast.UnaryOp(ast.USub(), operand):
            return -literal(operand)
        case ast.BinOp(left, sign, right) if type(sign) in _OPERATORS:
            numbers = literal(left), literal(right)
            limit = 1000 if isinstance(sign, ast.Pow) else math.inf
            if all(
                isinstance(each, (int, float, complex)) and abs(each) <= limit for each in numbers
            ):
                return _OPERATORS[type(sign)](*numbers)
        case ast.Subscript(value, index):
            return literal(value)[literal(index)]
        case ast.Call(ast.Name("float"), [ast.Constant("inf" | "-inf" | "nan" as text)], []):
            return float(text)
        case ast.Name("inf" as name) | ast.Attribute(ast.Name("math"), "inf" | "pi" | "e" as name):
            return getattr(math, name)
        case ast.Call(ast.Name(name), arguments, []) if name in _CALLS:
            values = [*map(literal, arguments)]
            if not any(
                isinstance(each, range) and len(each) > _LARGEST for each in values
            ):  # longer than the source
                return _CALLS[name](*values)
    raise ValueError("no literal")


def is_literal(node: ast.expr) -> bool:
    with suppress(*NO_LITERAL):
        literal(node)
        return True
    return False


def _is_mutable(node: ast.expr) -> bool:
    return not isinstance(node, ast.Constant) and not (
        isinstance(node, (ast.Tuple, ast.UnaryOp, ast.BinOp))
        and not any(
            _is_mutable(each) for each in ast.iter_child_nodes(node) if isinstance(each, ast.expr)
        )
    )


def _is_near(node: ast.expr) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and ast.unparse(node.func) in _NEAR and bool(node.args)


def _near(test: ast.expr) -> ast.expr:
    """A call of `NEAR` for a comparison with a literal by pytest's approx or numpy's allclose."""
    call, expression = test, None
    match test:
        case ast.Compare(left, [ast.Eq()], [right]):
            call, expression = (right, left) if _is_near(right) else (left, right)
    if not _is_near(call):
        return test
    expression, expected, *others = call.args if expression is None else [expression, *call.args]
    with suppress(*NO_LITERAL):
        options = _NEAR[ast.unparse(call.func)]
        given = dict(zip(options, map(literal, others), strict=False))
        given |= {str(each.arg): literal(each.value) for each in call.keywords}
        if given.keys() == {"abs"}:  # then pytest asks for nothing else
            given["rel"] = 0.0
        if given.keys() <= options.keys() and is_literal(expected):
            share, most = (options | given).values()
            return ast.Call(
                _load(NEAR), [expression, expected, ast.Constant(most), ast.Constant(share)], []
            )
    return test


def _evalplus(function: ast.FunctionDef, values: list[ast.expr]) -> ast.stmt | None:
    """A call of EvalPlus's ``assertion(out, exp, atol)``, as an assert: floats may differ by 1e-6
    if `atol` is 0.
    """
    called = {ast.unparse(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}
    is_close = called in ({"is_floats", "np.allclose"}, {"is_floats", "np.testing.assert_allclose"})
    names = [each.arg for each in function.args.args]
    if not is_close or names != ["out", "exp", "atol"] or not all(map(is_literal, values[1:])):
        return None
    expected, most = map(literal, values[1:])
    numbers = expected if isinstance(expected, (list, tuple)) else [expected]
    if not most and not all(isinstance(each, float) for each in numbers):
        return _assert("a == b", *values[:2])
    return ast.Assert(
        ast.Call(_load(NEAR), [*values[:2], ast.Constant(most or 1e-6), ast.Constant(1e-7)], [])
    )


def _substitute(node: _Node, values: Mapping[str, ast.expr], uses: Counter | None = None) -> _Node:
    """Put values for names, and elements of literals for their subscripts; counts each use of what
    could be changed.
    """
    if not values:
        return node
    root: ast.AST = node
    while isinstance(root, ast.Subscript):
        root = root.value
    if (
        isinstance(root, ast.Name)
        and root.id in values
        and isinstance(getattr(node, "ctx", None), ast.Load)
    ):
        value = _element(node, values)
        if value is not None:
            if uses is not None and _is_mutable(value):
                uses[ast.unparse(node)] += 1
            return value  # type: ignore[return-value]
    changed: dict[str, Any] = {}
    for field, old in ast.iter_fields(node):
        if isinstance(old, ast.AST):
            new: Any = _substitute(old, values, uses)
        elif isinstance(old, list):
            new = [
                _substitute(each, values, uses) if isinstance(each, ast.AST) else each
                for each in old
            ]
            new = old if all(map(operator.is_, old, new)) else new
        else:
            continue
        if new is not old:
            changed[field] = new
    return _replaced(node, changed)


def _element(node: ast.AST, values: Mapping[str, ast.expr]) -> ast.expr | None:
    """What a name, or subscripts of it, stand for; None where that is not written in the
    literal.
    """
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.Subscript) and (whole := _element(node.value, values)):
        with suppress(*NO_LITERAL):
            index = literal(_substitute(node.slice, values))
            if isinstance(whole, (ast.List, ast.Tuple)):
                return whole.elts[operator.index(index)]
            if isinstance(whole, ast.Dict):
                return whole.values[[*map(literal, whole.keys)].index(index)]
    return None


def _substituted(node: _Node, values: Mapping[str, ast.expr] | None) -> _Node | None:
    """`_substitute`, or None where a value that can change would be there twice, or its name is
    assigned.
    """
    if values is None or _names([node], ast.Store) & (values.keys() | _names(values.values())):
        return None
    uses: Counter = Counter()
    result = _substitute(node, values, uses)
    return None if any(count > 1 for count in uses.values()) else result


def _replaced(node: _Node, changed: Mapping[str, Any]) -> _Node:
    return type(node)(**{**dict(ast.iter_fields(node)), **changed}) if changed else node


def _unpacked(target: ast.expr, value: ast.expr) -> dict[str, ast.expr] | None:
    match target, value:
        case ast.Name(name), _:
            return {name: value}
        case ((ast.Tuple(targets) | ast.List(targets)), (ast.Tuple(values) | ast.List(values))):
            parts = [_unpacked(*pair) for pair in zip(targets, values, strict=False)]
            if len(targets) == len(values) and None not in parts:
                return {name: each for part in parts if part for name, each in part.items()}
    return None


def _names(nodes: Iterable[ast.AST], context: type[ast.expr_context] = ast.Load) -> set[str]:
    """Names that have to be there for them, or with `ast.Store` those that are assigned, also as
    arguments.
    """
    names = set()
    for each in nodes:
        for node in ast.walk(each):
            match node:
                case ast.Name(name, ast.Del()) | ast.AugAssign(ast.Name(name)):
                    names.add(name)
                case ast.Name(name, form) if isinstance(form, context):
                    names.add(name)
                case ast.arg(name) if context is ast.Store:
                    names.add(name)
    return names


def _bound(statement: ast.AST) -> set[str]:
    """Names that a statement binds where it stands."""
    match statement:
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            return {name}
        case ast.Import(aliases) | ast.ImportFrom(_, aliases):
            return {(each.asname or each.name).partition(".")[0] for each in aliases}
        case ast.Name(name, ast.Store() | ast.Del()):
            return {name}
        case ast.ExceptHandler(_, str(name), body):
            return {name}.union(*map(_bound, body))
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return set()
    return set().union(*map(_bound, ast.iter_child_nodes(statement)))


def find_methods(source: str) -> str:
    """Statements after which functions that tests name are methods of the code's ``Solution``,
    where it has only those.

    LeetCode asks for that class, and its problems are tested with ``assert add(1, 2) == 3``
    elsewhere. What the code only imports, or the prelude gives it, is no function of its own.
    """
    tree = ast.parse(source)
    wanted = sorted(
        _names([tree]) - _names([tree], ast.Store) - _bound(tree) - vars(builtins).keys()
    )
    return f"""globals().update({{
        name: lambda *values, _name=name, **named: getattr(Solution(), _name)(*values, **named)
        for name in {wanted} if hasattr(globals().get("Solution"), name)
        and getattr(globals().get(name), "__module__", None) != "solution"
    }})\n"""


def _needed(steps: list[ast.stmt]) -> list[ast.stmt]:
    """Without definitions, imports and names for literals that nothing needs."""

    def can_go(step: ast.stmt) -> bool:
        match step:
            case ast.FunctionDef() | ast.ClassDef():
                return not step.decorator_list
            case ast.Assign([target], value):
                return _unpacked(target, value) is not None and is_literal(value)
        return isinstance(step, (ast.Import, ast.ImportFrom)) and "*" not in _bound(step)

    free = {id(step) for step in steps if can_go(step)}
    names: set[str] = set()
    while True:
        kept = [step for step in steps if id(step) not in free or _bound(step) & names]
        more = _names(kept)
        if more == names:
            return kept
        names = more


def _does_nothing(statement: ast.stmt) -> bool:
    """``assert True``, a print, ``if __name__ == "__main__"`` with all that it holds, or a value
    nobody asks for.

    The last is a docstring, or text that is no test at all: LiveCodeBench's compressed cases are
    valid Python.
    """
    match statement:
        case ast.Assert(ast.Constant(value)):
            return bool(value)
        case ast.Expr(ast.Call(ast.Name("print"))) | ast.Pass():
            return True
        case ast.Expr(value):
            return not any(isinstance(node, _ACTIONS) for node in ast.walk(value))
        case ast.If(test):
            return "__name__" in _names([test])
    return False


def _fails(body: list[ast.stmt]) -> bool:
    """Whether statements do no more than raise an error, perhaps after they have printed why."""
    match body:
        case [*others, ast.Raise() | ast.Assert(ast.Constant(False))]:
            return all(map(_does_nothing, others))
    return False


def _negated(test: ast.expr) -> ast.expr:
    match test:
        case ast.UnaryOp(ast.Not(), operand):
            return operand
        case ast.Compare(left, [sign], others) if type(sign) in _OPPOSITES:
            return ast.Compare(left, [_OPPOSITES[type(sign)]()], others)
        case ast.BoolOp(ast.Or(), values):
            return ast.BoolOp(ast.And(), [*map(_negated, values)])
        case ast.Call(
            ast.Name("any"), [ast.GeneratorExp(element, loops) | ast.ListComp(element, loops)], []
        ):
            return ast.Call(_load("all"), [ast.GeneratorExp(_negated(element), loops)], [])
    return ast.UnaryOp(ast.Not(), test)


def _load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _call(name: str, *values: ast.expr) -> ast.stmt:
    return ast.Expr(ast.Call(_load(name), [*values], []))


def _assign(target: ast.expr, value: ast.expr) -> ast.stmt:
    return ast.Assign(
        [ast.Name(target.id, ast.Store()) if isinstance(target, ast.Name) else target], value
    )


def _raises(error: ast.expr, body: list[ast.stmt], keywords: list[ast.keyword]) -> ast.stmt:
    says = [_assert("__import__('re').search(a, str(_error))", each.value) for each in keywords]
    handler = ast.ExceptHandler(error, "_error", says or [ast.Pass()])
    return ast.Try(body, [handler], [ast.Raise(_load("AssertionError"))], [])


def _assert(template: str, *values: ast.expr) -> ast.stmt:
    """The assert of an expression, with values for the names a, b and c in it."""
    test = ast.parse(template, mode="eval").body
    return ast.Assert(_substitute(test, dict(zip("abc", values, strict=False))))


def _method(name: str, values: list[ast.expr], keywords: list[ast.keyword]) -> ast.stmt:
    """An assert method of unittest, as an assert."""
    options = {each.arg: each.value for each in keywords if each.arg != "msg"}
    if name == "AlmostEqual":
        places = options.pop("places", values[2] if len(values) > 2 else ast.Constant(7))
        values = [*values[:2], options.pop("delta", ast.Constant(0.5 * 10.0 ** -literal(places)))]
    if options or len(values) < len(_names([ast.parse(_METHODS[name])]) & {*"abc"}):
        raise BadTests(f"self.assert{name} is called in a way that is not understood")
    return _assert(_METHODS[name], *values)


def _test(
    function: ast.FunctionDef, around: tuple[list[ast.stmt], list[ast.stmt]] = ([], [])
) -> list[ast.stmt]:
    """Calls of a test, with the parameters that pytest gives it; between the statements
    `around`.
    """
    names = [each.arg for each in function.args.args]
    body = [*around[0], _call(function.name, *map(_load, names)), *around[1]]
    while function.decorator_list:
        match function.decorator_list[-1]:
            case ast.Call(decorator, [which, values], [] | [ast.keyword("ids")]) if (
                ast.unparse(decorator) in _PARAMETRIZE
            ):
                chosen = literal(which)
                chosen = (
                    [each.strip() for each in chosen.split(",")]
                    if isinstance(chosen, str)
                    else chosen
                )
                stored: list[ast.expr] = [ast.Name(each, ast.Store()) for each in chosen]
                target = stored[0] if len(stored) == 1 else ast.Tuple(stored, ast.Store())
                body = [ast.For(target, values, body, [])]
                names = [name for name in names if name not in chosen]
                function.decorator_list.pop()
            case _:
                return body
    if names:
        raise BadTests(f"{function.name} takes arguments, and nothing supplies them")
    return body


class _Self(ast.NodeTransformer):
    """``self.name`` -> ``self_name``."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            return ast.Name(f"self_{node.attr}", node.ctx)
        return self.generic_visit(node)  # type: ignore[return-value]


def _class_parts(statement: ast.stmt) -> list[ast.stmt]:
    """A class of tests as functions and calls of them; any other statement as it is."""
    if not isinstance(statement, ast.ClassDef):
        return [statement]
    methods = {each.name: each for each in statement.body if isinstance(each, ast.FunctionDef)}
    if not any(getattr(each, "name", "").startswith("test") for each in statement.body):
        return [statement]
    strange = {*map(ast.unparse, statement.bases)} - {"unittest.TestCase", "TestCase", "object"}
    strange |= {"async" for each in statement.body if isinstance(each, ast.AsyncFunctionDef)}
    strange |= {"static" for each in statement.body if ast.unparse(each).startswith("@static")}
    if strange or statement.decorator_list:
        raise BadTests(f"the methods of {statement.name} are tests that only a test runner finds")
    parts: list[ast.stmt] = []
    for each in statement.body:
        if isinstance(each, ast.FunctionDef):
            each.decorator_list = [
                other for other in each.decorator_list if ast.unparse(other) != "classmethod"
            ]
            each.args.args = each.args.args[1:]
            each.body = [
                part for part in each.body if not ast.unparse(part).startswith("super()")
            ] or [ast.Pass()]
            each.name = f"self_{each.name}"
        elif isinstance(each, ast.Assign):
            each.targets = [
                ast.Name(f"self_{t.id}", t.ctx) if isinstance(t, ast.Name) else t
                for t in each.targets
            ]
        parts.append(_Self().visit(each))
    if {"self", "cls"} & _names(parts):
        raise BadTests(
            f"the methods of {statement.name} pass self on, and only a test runner has it"
        )

    def calls(*names: str) -> list[ast.stmt]:
        return [_call(f"self_{name}") for name in names if name in methods]

    around = calls("setUp", "setup_method"), calls("tearDown", "teardown_method")
    tests = [
        part for name in methods if name.startswith("test") for part in _test(methods[name], around)
    ]
    return [*parts, *calls("setUpClass", "setup_class"), *tests]
