"""Calls from one process to another, in both directions: each side is a `Peer`.

A message is a request or the reply to one. While a peer waits for a reply it serves the other's
requests, so that a function may call a function that it was given. Strictly one side at a time has
something to say, and whoever is between them only passes messages on.
"""

import sys
import types
from collections.abc import Callable
from typing import Any

from .proxies import (
    OPERATIONS,
    SPECIAL,
    Foreign,
    ForeignClass,
    build_class,
    build_object,
    number_of,
)
from .wire import Reader, Writer

_LONGEST_TEXT = 1000  # characters of an error

# What no process hands over: from these all the rest could be reached.
_KEPT = (types.ModuleType, types.FrameType, types.CodeType, types.TracebackType)
# whose attributes name them
_WITH_FRAMES = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)
_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, type)


class Control(BaseException):
    """Ends what this process does, and is nothing that the other has to know."""


class Gone(RuntimeError):
    """An object was asked whose process has ended."""


class Peer:
    """One end of the line.

    Attributes:
        is_trusting: whether any object of the other side may see what it is compared with. The
            tests do not trust the code; the code may trust the tests.
        operations: what the other side can ask for, by name.
        constructors: the numbers of the other side's classes that this side calls as such.
    """

    def __init__(
        self, exchange: Callable[[dict], dict], is_trusting: bool, has_arrays: bool = False
    ):
        """exchange: sends a message, and returns the one that follows."""
        self.is_trusting = is_trusting
        self.is_gone = False
        self.constructors: set[int] = set()
        self._exchange = exchange
        self._has_arrays = has_arrays
        self._objects: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._described: set[int] = set()
        self._proxies: dict[tuple[int, bool], Any] = {}
        self._classes: dict[int, type] = {}
        self.operations: dict[str, Callable] = {
            "call": self._do_call,
            "getattr": self._do_getattr,
            "setattr": self._do_setattr,
            "delattr": self._do_delattr,
            "operate": self._do_operate,
        }

    # --- asking ---

    def request(self, operation: str, *operands: object) -> Any:
        """Ask the other side. Raises what it raises."""
        if self.is_gone:
            raise Gone("the object went with the process that had it")
        writer = self._writer([])
        message = {"request": [operation, *map(writer.write, operands)]}
        reply = self._exchange(message)
        while "request" in reply:
            reply = self._exchange(self.answer(reply["request"]))
        if "raised" in reply:
            error = self._read_error(reply["raised"])
            if isinstance(error, StopIteration) and operands[:1] != ("__next__",):
                # ``all(map(f, ...))`` would take it for the end of what it goes over.
                raise RuntimeError(f"the call raised {type(error).__name__}") from error
            raise error
        reader = Reader(self._take, writer.containers)
        reader.apply(reply["changed"])
        return reader.read(reply["value"])

    def named(self, name: str, value: Any) -> Any:
        """The value, which this side knows under a name.

        Code may write a class where the tests call a function, whose objects would say of any
        result that it is right. What the tests mean is told by their own name for it: those of
        classes begin with a capital letter.
        """
        if isinstance(value, ForeignClass) and name[:1].isupper():
            self.constructors.add(number_of(value))
        return value

    def made(self, value: Any) -> Any:
        """The same object as one that the tests have made."""
        if isinstance(value, Foreign) and value._peer_ is self:
            return self._object(type(value), value._number_, True)
        return value

    def write(self, value: object) -> object:
        """A value as the other side reads it, outside a request."""
        return self._writer([]).write(value)

    def read(self, written: object) -> Any:
        """What `write` wrote on the other side, which may be anything."""
        return Reader(self._take).read(written)

    # --- answering ---

    def answer(self, request: list) -> dict:
        """The reply to a request, which may be anything."""
        reader = Reader(self._take)
        try:
            operation, *operands = request
            operands = [reader.read(each) for each in operands]
            before = reader.snapshots()
            value = self.operations[operation](*operands)
            writer = self._writer(reader.containers)
            changed = writer.changes(before)
            return {"changed": changed, "value": writer.write(value)}
        except Control:
            raise
        except BaseException as error:
            return {"raised": self._write_error(error)}

    def _do_call(self, function: Any, arguments: tuple, keywords: dict) -> object:
        self._require_own(function)
        return function(*arguments, **keywords)

    def _do_getattr(self, value: object, name: str) -> object:
        self._require_own(value)
        self._require_public(value, name)
        return getattr(value, name)

    def _do_setattr(self, value: object, name: str, new: object) -> None:
        self._require_own(value)
        self._require_public(value, name)
        self._require_changeable(value)
        setattr(value, name, new)

    def _do_delattr(self, value: object, name: str) -> None:
        self._require_own(value)
        self._require_public(value, name)
        self._require_changeable(value)
        delattr(value, name)

    def _do_operate(self, name: str, *operands: Any) -> object:
        self._require_own(*operands[:1])
        return OPERATIONS[name](*operands)

    def _require_own(self, value: object) -> None:
        """The other side may only use what it was given."""
        if not self.is_trusting and id(value) not in self._numbers:
            raise TypeError("it was not given this")

    def _require_public(self, value: object, name: str) -> None:
        if self.is_trusting:
            return
        is_private = not isinstance(name, str) or name[:1] == "_" or isinstance(value, _WITH_FRAMES)
        if isinstance(value, BaseException):
            # `obj` and the like are objects that the error is about.
            is_private = name not in ("args", *vars(value))
        if is_private:
            raise AttributeError(f"{type(value).__name__} has no attribute {name!s:.80}")

    def _require_changeable(self, value: object) -> None:
        if not self.is_trusting and isinstance(value, _FUNCTIONS):
            raise AttributeError(f"{type(value).__name__} cannot be changed")

    # --- values that are not plain ---

    def _writer(self, containers: list) -> Writer:
        return Writer(self._hand_over, containers, self._has_arrays)

    def _hand_over(self, value: object) -> list:
        if isinstance(value, Foreign):
            return ["yours", self._number_there(value._peer_, value._number_)]
        is_class = isinstance(value, type)
        if is_class and "_class_" in vars(value):
            return ["yours", self._number_there(*vars(value)["_class_"])]
        if isinstance(value, _KEPT) or not self.is_trusting and _is_test_case(value):
            raise TypeError(f"a {type(value).__name__} cannot be handed over")
        number = self._number(value)
        if is_class:
            return ["class", *self._description(value)]  # type: ignore[arg-type]
        return ["object", number, self._description(type(value))]

    def _number_there(self, peer: "Peer", number: int) -> int:
        if peer is not self:
            raise Gone("the object went with the process that had it")
        return number

    def _number(self, value: object) -> int:
        """The number of an object, which is kept for as long as this process runs."""
        number = self._numbers.setdefault(id(value), len(self._objects))
        self._objects[number] = value
        return number

    def _description(self, cls: type) -> list:
        """Number, and the first time name, bases and special methods, of a class."""
        number = self._number(cls)
        if number in self._described:
            return [number]
        self._described.add(number)
        bases: list = []
        for base in cls.__bases__:
            if base.__module__ == "builtins":
                if issubclass(base, BaseException):
                    bases.append(base.__name__)
            elif "_class_" not in vars(base):
                bases.append(self._description(base))
        special = [name for name in SPECIAL if _has(cls, name)]
        return [number, cls.__name__, bases, special]

    def _take(self, wire: list) -> Any:
        """The object that a handle stands for."""
        kind, *rest = wire
        if kind == "yours":
            (number,) = rest
            return self._objects[number]
        if kind == "class":
            return self._class(rest)
        if kind != "object":
            raise ValueError("unknown kind of value")
        number, description = rest
        return self._object(self._class(description), number, False)

    def _class(self, description: list) -> type:
        number, *rest = description
        if number not in self._classes:
            name, bases, special = rest
            parents = []
            for base in bases:
                parents.append(_builtin_error(base) if isinstance(base, str) else self._class(base))
            self._classes[number] = build_class(self, number, str(name), parents, special)
        return self._classes[number]

    def _object(self, cls: type, number: int, is_made: bool) -> Any:
        """The proxy of an object: the same one every time."""
        if not issubclass(cls, Foreign):
            return cls()  # an error that is no more than a value
        key = number, is_made
        if key not in self._proxies:
            self._proxies[key] = build_object(self, cls, number, is_made)
        return self._proxies[key]

    # --- errors ---

    def _write_error(self, error: BaseException) -> dict:
        try:
            text = f"{error}"[:_LONGEST_TEXT]
        except BaseException:  # it is untrusted code, and so is its text
            text = ""
        name = next(cls.__name__ for cls in type(error).__mro__ if cls.__module__ == "builtins")
        written: dict[str, Any] = {"class": name, "text": text}
        written |= {"arguments": ["tuple"], "state": ["dict"]}
        try:
            written["number"] = self._number(error)
            written["yours"] = vars(error).get("_number_there_")
            written["arguments"] = self._writer([]).write(tuple(error.args))
            cls = type(error)
            if cls.__module__ == "solution" or not self.is_trusting:
                if cls.__module__ != "builtins":
                    written["own"] = self._description(cls)
                state = {key: each for key, each in vars(error).items() if key[:1] != "_"}
                written["state"] = self._writer([]).write(state)
            elif cls.__module__ != "builtins":
                written["library"] = [cls.__module__, cls.__qualname__]
        except Control:
            raise
        except BaseException:
            # No memory is left, or what it holds cannot be written: its name will do.
            return {"class": name, "text": text, "arguments": ["tuple"], "state": ["dict"]}
        return written

    def _read_error(self, written: dict) -> BaseException:
        origin = written.get("yours")
        if origin is not None:
            original = self._objects[origin]
            if not isinstance(original, BaseException):
                raise TypeError("no error")
            return original
        reader = Reader(self._take)
        arguments: Any = reader.read(written["arguments"])
        cls = self._error_class(written)
        error = cls.__new__(cls, *arguments)
        error.args = arguments
        state: Any = Reader(self._take).read(written["state"])
        vars(error).update({str(key): each for key, each in state.items() if key[:1] != "_"})
        vars(error).update(_has_crossed_=True, _number_there_=written.get("number"))
        vars(error).update(_text_=str(written["text"]), _opaque_=bool(written.get("opaque")))
        return error

    def _error_class(self, written: dict) -> type[BaseException]:
        base = _builtin_error(written["class"])
        if "own" in written:
            own = self._class(written["own"])
            return own if issubclass(own, BaseException) else base
        if "library" in written:
            module, name = written["library"]
            found = getattr(sys.modules.get(module), name, None)
            if isinstance(found, type) and issubclass(found, base):
                return found
        return base


def _builtin_error(name: object) -> type[BaseException]:
    import builtins

    found = vars(builtins).get(str(name))
    if isinstance(found, type) and issubclass(found, BaseException):
        return found
    raise ValueError("no builtin error")


def _has(cls: type, name: str) -> bool:
    """Whether a class has a special method, which its metaclass' of that name is not."""
    for base in cls.__mro__:
        if name in vars(base):
            return vars(base)[name] is not None
    return False


def _is_test_case(value: object) -> bool:
    unittest = sys.modules.get("unittest.case")
    return unittest is not None and isinstance(value, unittest.TestCase)


__all__ = ["Control", "Foreign", "ForeignClass", "Gone", "Peer"]
