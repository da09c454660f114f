"""The process of the completion's code: runs it as a module, and then does what it is asked to.

It is asked by `harness`, for the tests, or by `check` itself, for a call with arguments that JSON
can write. It sees names, arguments and objects that it was given, and never what is expected.
"""

from collections.abc import Callable, ItemsView, Iterable, Iterator, KeysView, Sequence, ValuesView
from types import CodeType, FunctionType, ModuleType
from typing import Any

from .crossing import Objects
from .refused import is_refusal
from .values import Opaque, decode, encode

# as in `check.UNGRADED`
REFUSED = "refused by the sandbox"
LONGEST_DETAIL = 300


def failure(error: BaseException) -> dict[str, object]:
    """The report on an error of the code, by its kind, which is one of `check.FAILURES`."""
    kind = "error"
    if isinstance(error, MemoryError):
        kind = "out of memory"
    elif isinstance(error, SystemExit):
        kind = "ended early"
    elif is_refusal(error):
        kind = REFUSED
    try:
        detail = f"{type(error).__name__}: {error}"
        if kind == REFUSED:
            detail = f"{detail}{_place(error)}"
    except BaseException:  # the exception is untrusted code, and so is its text
        detail = type(error).__name__
    return {"kind": kind, "detail": detail[:LONGEST_DETAIL]}


def _place(error: BaseException) -> str:
    """The line of the code that asked for what was refused: the error alone seldom says what that is."""
    place = ""
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == "<completion>":
            place = f", in line {traceback.tb_lineno} of the code"
        traceback = traceback.tb_next
    return place


def run(
    compiled: CodeType,
    module: ModuleType,
    job: dict,
    receive: Callable[[], dict],
    report: Callable[..., bool],
) -> None:
    """Run the code, and then serve requests until no more arrive."""
    names = Names(module)

    def send(message: dict) -> None:
        if not report(message, job["longest"]):
            message = {"kind": "opaque", "detail": "a value too long to be right"}
            report(message | {"raised": _OPAQUE})

    try:
        exec(compiled, vars(module))
    except BaseException as error:
        report(failure(error))
        return

    objects = Objects(names.find)
    known = {}
    for name in job["names"]:
        value = vars(module).get(name)
        if isinstance(value, FunctionType):
            known[name] = objects.write(value)
    report({"kind": "loaded", "names": known})
    while request := receive():
        if isinstance(request, list):
            send(objects.answer(request))
        else:
            send(_call(names, request))


# as the harness reads it: an assertion that fails, and no value
_OPAQUE = {
    "class": "AssertionError",
    "text": "a value too long to be right",
    "arguments": ["tuple", "a value too long to be right"],
    "state": ["dict"],
    "opaque": True,
}


class Names:
    """What the code defines, as the tests may ask for it."""

    def __init__(self, module: ModuleType):
        self.module = module

    def find(self, name: str) -> tuple[str, object]:
        """What a name stands for, and whether that is a module, which nobody hands over.

        Where the code has no such function and its class Solution has the method, it is that, of a
        new object for each call: LeetCode asks for that class, and its problems are tested with
        ``assert add(1, 2) == 3`` elsewhere. What the code only imports, or the prelude gives it, is
        no function of its own.
        """
        space = vars(self.module)
        if name[:2] == "__" or name == "Solution" and name not in space:
            raise NameError(f"name '{name}' is not defined")
        value = space.get(name)
        cls = space.get("Solution")
        if getattr(value, "__module__", None) != "solution" and hasattr(cls, name):

            def method(*arguments: object, **keywords: object) -> object:
                return getattr(space["Solution"](), name)(*arguments, **keywords)

            return "value", method
        if name not in space:
            raise NameError(f"name '{name}' is not defined")
        if isinstance(value, ModuleType):
            return "module", None
        return "value", value

    def called(self, request: dict) -> tuple[Any, Iterable, dict]:
        """The function that a request has called, its arguments and its keywords."""
        name = request["function"]
        if "of_json" in request:
            return self._function(name), _with_int_keys(request["of_json"]), {}
        if name.isidentifier():
            _, function = self.find(name)
        else:
            function = self._function(name)
        if "written" in request:
            return function, *decode(request["written"])
        return function, *(_evaluated(source, {}) for source in request["source"])

    def _function(self, name: str) -> Any:
        """What an expression says, such as ``Solution().add``."""
        space = vars(self.module)
        if hasattr(space.get("Solution"), name):
            name = f"Solution().{name}"  # as LeetCode asks for functions
        return _evaluated(name, {key: value for key, value in space.items() if key[:2] != "__"})


def _call(names: Names, request: dict) -> dict:
    """The answer to a call whose value is compared in the trainer's process."""
    try:
        function, arguments, keywords = names.called(request)
        value = function(*arguments, **keywords)
        if "of_json" in request:
            value = _with_lists(value)
        # Of an object that cannot be written it may be enough whether it is true.
        value = bool(value) if request.get("asks_truth") else value
        answer: dict[str, object] = {"kind": "value", "value": encode(value)}
    except Opaque as error:
        compares_itself = isinstance(getattr(type(error.part), "__eq__", None), FunctionType)
        answer = {"kind": "opaque", "detail": f"a value {error}"[:LONGEST_DETAIL]}
        answer["compares_itself"] = compares_itself
    except RecursionError:
        answer = {"kind": "error", "detail": "RecursionError"}
    except BaseException as error:
        answer = failure(error)
    # The number came with the test: no answer can be written in advance.
    return answer | {"nonce": request["nonce"]}


def _evaluated(written: str, space: dict) -> Any:
    return eval(compile(written, "<tests>", "eval", dont_inherit=True), space)


def _with_lists(value: Any) -> Any:
    """A result with lists for what JSON has only lists for: many solutions end in ``return
    groups.values()`` or ``return map(str, path)``, which LeetCode's judge takes. Not for sets, whose
    order is nobody's answer.

    >>> _with_lists({"a": range(2), "b": (map(abs, [-1]), {3})})
    {'a': [0, 1], 'b': [[1], {3}]}
    """
    if isinstance(value, (str, bytes, bytearray, memoryview)):
        return value
    if isinstance(value, (Iterator, KeysView, ValuesView, ItemsView, Sequence)):
        return [_with_lists(each) for each in value]
    if isinstance(value, dict):
        return {key: _with_lists(each) for key, each in value.items()}
    return value


def _with_int_keys(arguments: list) -> list:
    """An only argument that is a dict of whole numbers has them as keys, which JSON cannot write.

    >>> _with_int_keys([{"1": "one"}]), _with_int_keys([{"1": "one"}, 2]), _with_int_keys([{"one": 1}])
    ([{1: 'one'}], [{'1': 'one'}, 2], [{'one': 1}])
    """
    match arguments:
        case [dict(only)] if all(key.removeprefix("-").isdecimal() for key in only):
            return [{int(key): value for key, value in only.items()}]
    return arguments
