"""What tests use of pytest and numpy without more of them: how near a number is, what is raised,
and with which arguments a test is called.

They stand in for these packages in the process of the tests, which need not be installed then.
`sources.py` declines tests that use anything else of them.
"""

import math
import re
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any


class Approx:
    """pytest's `approx`: equal to numbers near its own, in lists, tuples and dicts as well."""

    def __init__(self, expected: Any, rel: float | None = None, abs: float | None = None):
        self.expected = expected
        # pytest: with an absolute tolerance alone nothing else counts.
        self._share = rel if rel is not None else (0.0 if abs is not None else 1e-6)
        self._most = abs if abs is not None else 1e-12

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, actual: object) -> bool:
        return self._is_near(actual, self.expected)

    def __ne__(self, actual: object) -> bool:
        return not self == actual

    def __repr__(self) -> str:
        return f"approx({self.expected!r})"

    def _is_near(self, actual: Any, expected: Any) -> bool:
        if isinstance(expected, Mapping):
            if not isinstance(actual, Mapping) or actual.keys() != expected.keys():
                return False
            return all(self._is_near(actual[key], expected[key]) for key in expected)
        if isinstance(expected, (list, tuple)):
            if not hasattr(actual, "__len__") or isinstance(actual, (str, Mapping, set)):
                return False
            if len(actual) != len(expected):
                return False
            return all(map(self._is_near, actual, expected))
        if actual == expected:
            return True
        if isinstance(expected, bool) or not all(map(_is_number, (actual, expected))):
            return False
        actual = _plain(actual)
        if abs(expected) == math.inf:  # of which a share is infinite, too
            return False
        return bool(abs(actual - expected) <= max(self._most, self._share * abs(expected)))


def _is_number(value: object) -> bool:
    if isinstance(value, (int, float, complex)):
        return True
    # Else one of these modules has its class; one of the code's may only say that it is from there.
    cls = type(value)
    if cls.__module__ not in ("numpy", "fractions", "decimal"):
        return False
    return getattr(sys.modules.get(cls.__module__), cls.__name__, None) is cls


def _plain(number: Any) -> Any:
    """The number as Python has it, where a class of the code's might say that it is near any other."""
    kinds: tuple[Any, ...] = (int, float, complex)
    for kind in kinds:
        if isinstance(number, kind):
            return kind.__pos__(number)
    return number


class _Raises:
    """pytest's `raises`, as a context; it holds the error as `value`."""

    def __init__(self, expected: Any, match: str | None = None):
        self.expected = expected
        self._match = match
        self.value: BaseException | None = None

    def __enter__(self) -> "_Raises":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, _: object) -> bool:
        if error is None:
            name = getattr(self.expected, "__name__", str(self.expected))
            raise AssertionError(f"{name} was not raised")
        if not isinstance(error, self.expected):
            return False
        self.value = error
        self.type = kind
        if self._match is not None:
            self.match(self._match)
        return True

    def match(self, pattern: str) -> bool:
        if not re.search(pattern, str(self.value)):
            raise AssertionError(f"{str(self.value)!r:.80} does not match {pattern!r}")
        return True


def raises(expected: Any, *called: Any, match: str | None = None, **keywords: Any) -> _Raises:
    """pytest's `raises`: a context, or with a function a call of that."""
    context = _Raises(expected, match)
    if called:
        function, *arguments = called
        with context:
            function(*arguments, **keywords)
    return context


def parametrize(names: Any, values: Any, ids: object = None) -> Callable:
    """pytest's `mark.parametrize`; `cases_of` reads what it leaves behind."""
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",")]
    cases = []
    for each in values:
        cases.append(dict(zip(names, [each] if len(names) == 1 else each, strict=True)))

    def decorate(function: Any) -> Any:
        function.cases = [
            case | other for other in getattr(function, "cases", [{}]) for case in cases
        ]
        return function

    return decorate


def cases_of(function: object) -> list[dict[str, Any]]:
    """The arguments of each call of a test."""
    return getattr(function, "cases", [{}])


def _elements(value: Any) -> Any:
    """A nested list of the numbers, or a number."""
    if isinstance(value, (list, tuple)):
        return [_elements(each) for each in value]
    if not _is_number(value):
        raise TypeError(f"a {type(value).__name__} is no number")
    return _plain(value)


def _near(actual: Any, expected: Any, share: float, most: float) -> Any:
    """numpy's comparison, for each element."""
    if isinstance(actual, list) or isinstance(expected, list):
        if not isinstance(actual, list):
            actual = [actual] * len(expected)
        # numpy has an empty list be near any number: nothing in it is not.
        if not isinstance(expected, list) and actual:
            expected = [expected] * len(actual)
        if not isinstance(expected, list) or len(actual) != len(expected):
            raise ValueError("the shapes differ")
        return [_near(*pair, share, most) for pair in zip(actual, expected, strict=True)]
    if math.inf in (abs(actual), abs(expected)):
        return actual == expected
    return actual == expected or abs(actual - expected) <= most + share * abs(expected)


def _all(values: Any) -> bool:
    return all(map(_all, values)) if isinstance(values, list) else bool(values)


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8) -> Any:
    """numpy's `isclose`."""
    return _near(_elements(a), _elements(b), rtol, atol)


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8) -> bool:
    """numpy's `allclose`."""
    try:
        return _all(isclose(a, b, rtol, atol))
    except ValueError:
        return False


def assert_allclose(
    actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 0, **_: object
) -> None:
    """numpy's `testing.assert_allclose`."""
    if not allclose(actual, desired, rtol, atol):
        raise AssertionError(f"expected near {desired!r:.80}, got {actual!r:.80}")


def _module(name: str, **members: Any) -> ModuleType:
    module = ModuleType(name)
    vars(module).update(members)
    return module


def build() -> dict[str, ModuleType]:
    """The modules, by name."""
    mark = _module("pytest.mark", parametrize=parametrize)
    testing = _module("numpy.testing", assert_allclose=assert_allclose)
    # of which there is no value
    types = {name: type(name, (), {}) for name in ("ndarray", "float32", "float64")}
    return {
        "pytest": _module("pytest", approx=Approx, raises=raises, mark=mark),
        "numpy": _module("numpy", allclose=allclose, isclose=isclose, testing=testing, **types),
        "numpy.testing": testing,
    }


# What of them tests may name, as `sources.py` checks it; longer names go before.
NAMES = {
    "pytest": {"approx", "raises", "mark", "mark.parametrize"},
    "numpy": {
        *("allclose", "isclose", "testing", "testing.assert_allclose"),
        *("ndarray", "float32", "float64"),
    },
}
