"""Requests of the tests (`Code`) to the process of the code (`Objects`), and what it replies.

Only the tests ask. What they have themselves crosses as a plain value or not at all: a function of
theirs that the code is to call does not.
"""

import builtins
import sys
import types
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .proxies import (
    OPERATIONS,
    RESULT,
    SPECIAL,
    Foreign,
    ForeignClass,
    build_class,
    build_object,
)
from .refused import is_refusal
from .values import Opaque
from .wire import read, refill, write

_LONGEST_TEXT = 1000  # characters of an error
_CHANGEABLE = (list, dict, set, deque, bytearray)


class Control(BaseException):
    """Ends what this process does, and is nothing that the other has to know."""


class Gone(RuntimeError):
    """An object was asked whose process has ended."""


class Code:
    """The code, as the process of the tests asks for it.

    Attributes:
        constructors: the numbers of the classes that the tests call as such.
    """

    def __init__(self, exchange: Callable[[list], dict], has_arrays: bool):
        """exchange: sends a request, and returns the reply, which may be anything. has_arrays: whether
        the tests look at numpy's arrays as such; else they are lists.
        """
        self.is_gone = False
        self.constructors: set[int] = set()
        self._exchange = exchange
        self._has_arrays = has_arrays
        self._objects: dict[tuple[int, str], Any] = {}
        self._classes: dict[int, type] = {}

    def request(self, operation: str, *operands: object) -> Any:
        """Ask for something. Raises what that raises."""
        if self.is_gone:
            raise Gone("the object went with the process that had it")
        reply = self._exchange([operation, *(write(each, self._hand_over) for each in operands)])
        if "raised" in reply:
            error = self._error(reply["raised"])
            if isinstance(error, StopIteration) and operands[:1] != ("__next__",):
                # ``all(map(f, ...))`` would take it for the end of what it goes over.
                raise RuntimeError(f"the call raised {type(error).__name__}") from error
            raise error
        for place, content in reply["changed"]:
            # what a call has changed in place, by its place among the arguments
            arguments = operands[1] if isinstance(place, int) else operands[2]
            argument = arguments[place]  # type: ignore[index]
            if isinstance(argument, _CHANGEABLE):
                refill(argument, self.read(content))
        return self.read(reply["value"])

    def read(self, written: object) -> Any:
        """What the process of the code wrote, which may be anything."""
        return read(written, self._take, self._has_arrays)

    def named(self, name: str, value: Any) -> Any:
        """The value, which the tests know under a name.

        Code may write a class where the tests call a function, whose objects would say of any
        result that it is right. What the tests mean is told by their own name for it: those of
        classes begin with a capital letter.
        """
        if isinstance(value, ForeignClass) and name[:1].isupper():
            self.constructors.add(value._class_number_)
        return value

    def proxy(self, cls: type, number: int, origin: str) -> Any:
        """The proxy of an object: the same one every time."""
        if not issubclass(cls, Foreign):
            return cls()  # an error that is no more than a value
        key = number, origin
        if key not in self._objects:
            self._objects[key] = build_object(self, cls, number, origin)
        return self._objects[key]

    def _hand_over(self, value: object) -> list:
        if isinstance(value, Foreign):
            owner, number = value._code_, value._number_
        elif isinstance(value, type) and "_class_code_" in vars(value):
            owner, number = vars(value)["_class_code_"], vars(value)["_class_number_"]
        else:
            error = TypeError(f"a {type(value).__name__} of the tests cannot be handed over")
            vars(error)["_has_crossed_"] = True  # no error of the tests
            raise error
        if owner is not self:
            raise Gone("the object went with the process that had it")
        return ["yours", number]

    def _take(self, handle: list) -> Any:
        """The class or object that a handle stands for."""
        kind, *rest = handle
        if kind == "class":
            return self._class(rest)
        if kind != "object":
            raise ValueError("unknown kind of value")
        number, description = rest
        return self.proxy(self._class(description), number, RESULT)

    def _class(self, description: list) -> type:
        number, *rest = description
        if number not in self._classes:
            name, bases, special = rest
            parents = []
            for base in bases:
                parents.append(_builtin_error(base) if isinstance(base, str) else self._class(base))
            self._classes[number] = build_class(self, number, str(name), parents, special)
        return self._classes[number]

    def _error(self, written: dict) -> BaseException:
        cls = _builtin_error(written["class"])
        if "own" in written:
            own = self._class(written["own"])
            cls = own if issubclass(own, BaseException) else cls
        elif "library" in written:
            module, name = written["library"]
            found = getattr(sys.modules.get(module), name, None)
            cls = found if isinstance(found, type) and issubclass(found, cls) else cls
        arguments = self.read(written["arguments"])
        error = cls.__new__(cls, *arguments)
        error.args = arguments
        for name, value in self.read(written["state"]).items():
            if str(name)[:1] != "_":
                vars(error)[str(name)] = value
        vars(error).update(_has_crossed_=True, _text_=str(written["text"]))
        vars(error)["_opaque_"] = bool(written.get("opaque"))
        vars(error)["_is_refusal_"] = bool(written.get("refused"))
        return error


class Objects:
    """What the process of the code has handed over, by number, and what it does with that."""

    def __init__(self, find: Callable[[str], object]):
        """find: what a name of the tests stands for."""
        self._objects: list[Any] = []
        self._numbers: dict[int, int] = {}
        self._described: set[int] = set()
        self._operations: dict[str, Callable] = {
            "name": find,
            "getattr": getattr,
            "setattr": setattr,
            "operate": lambda name, *operands: OPERATIONS[name](*operands),
        }

    def answer(self, request: list) -> dict:
        """The reply to a request."""
        try:
            operation, *written = request
            operands = [read(each, self._take) for each in written]
            if operation != "call":
                value = self._operations[operation](*operands)
                return {"changed": [], "value": self.write(value)}
            function, arguments, keywords = operands
            value = function(*arguments, **keywords)
            changed: list = []
            for place, before in enumerate(written[1][1:]):
                self._note_change(place, before, arguments[place], changed)
            for name, before in written[2][1:]:
                self._note_change(name, before, keywords[name], changed)
            return {"changed": changed, "value": self.write(value)}
        except BaseException as error:
            return {"raised": self._error(error)}

    def _note_change(self, place: int | str, before: object, argument: object, to: list) -> None:
        if isinstance(argument, _CHANGEABLE):
            now = self.write(argument)
            if now != before:
                to.append([place, now])

    def write(self, value: object) -> object:
        """A value as the tests read it."""
        return write(value, self._hand_over)

    def _hand_over(self, value: object) -> list:
        if isinstance(value, types.ModuleType):
            raise TypeError("a module cannot be handed over")
        if isinstance(value, type):
            return ["class", *self._description(value)]
        return ["object", self._number(value), self._description(type(value))]

    def _number(self, value: object) -> int:
        """The number of an object, which is kept for as long as this process runs."""
        number = self._numbers.setdefault(id(value), len(self._objects))
        if number == len(self._objects):
            self._objects.append(value)
        return number

    def _take(self, handle: list) -> Any:
        kind, number = handle
        if kind != "yours":
            raise ValueError("unknown kind of value")
        return self._objects[number]

    def _description(self, cls: type) -> list:
        """Number, and the first time name, bases and special methods, of a class."""
        number = self._number(cls)
        if number in self._described:
            return [number]
        self._described.add(number)
        bases: list = []
        for base in cls.__bases__:
            if base.__module__ != "builtins":
                bases.append(self._description(base))
            elif issubclass(base, BaseException):
                bases.append(base.__name__)
        # What its class has, which is not what its metaclass has of that name.
        space: dict[str, Any] = {}
        for base in reversed(cls.__mro__[:-1]):
            space.update(vars(base))
        special = [name for name in SPECIAL if space.get(name) is not None]
        return [number, cls.__name__, bases, special]

    def _error(self, error: BaseException) -> dict:
        cls = type(error)
        least: dict[str, Any] = {"text": "", "arguments": ["tuple"], "state": ["dict"]}
        least["class"] = next(
            each.__name__ for each in cls.__mro__ if each.__module__ == "builtins"
        )
        with suppress(BaseException):  # its class may say all of this in its own way
            least["refused"] = is_refusal(error)
            least["text"] = f"{error}"[:_LONGEST_TEXT]
        if isinstance(error, Opaque):
            return least | {"class": "AssertionError", "opaque": True}
        try:
            written = least | {"arguments": self.write(tuple(error.args))}
            if cls.__module__ == "solution":
                written["own"] = self._description(cls)
                written["state"] = self.write(vars(error))
            elif cls.__module__ != "builtins":
                written["library"] = [cls.__module__, cls.__qualname__]
            return written
        except BaseException:
            # No memory is left, or what it holds cannot be written: its name will do.
            return least


def _builtin_error(name: object) -> type[BaseException]:
    found = vars(builtins).get(str(name))
    if isinstance(found, type) and issubclass(found, BaseException):
        return found
    raise ValueError("no builtin error")
