"""The sandboxed child: reads its job from a pipe, locks itself down, and only then runs the completion's code.

`swift_rlvr.sandbox.process` starts it by `main`, outside the package. Its job is either to run a program once, with the
inherited standard input and output, or to load the code as a module and to evaluate tests that arrive one by one.
The parent believes its reports only as far as `swift_rlvr.sandbox` explains.
"""

from __future__ import annotations

import builtins
import importlib
import json
import os
import sys
from collections.abc import Callable, Set
from fractions import Fraction
from numbers import Rational
from types import CodeType, ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing `typing` would take a tenth of the child's start
    from typing import Any

LONGEST_DETAIL = 300


class Opaque(Exception):
    """A value that is not made of plain types."""


def encode(value: Any) -> Any:
    """Write a value of plain types as JSON that keeps them apart; subclasses as their plain ancestor.

    `swift_rlvr.sandbox.check.decode` reads it.

    >>> encode((1, [2.5, None], {"a": {3}}))
    ['tuple', 1, ['list', 2.5, None], ['dict', ['a', ['set', 3]]]]
    """
    if value is None or isinstance(value, (bool, str, float)):
        return value
    if isinstance(value, int):
        return value if abs(value) < 1 << 63 else ["int", hex(value)]
    if isinstance(value, (list, tuple)):
        return ["list" if isinstance(value, list) else "tuple", *map(encode, value)]
    if isinstance(value, Set):  # also the keys of a dict
        return ["set", *map(encode, value)]
    if isinstance(value, dict):
        return ["dict", *([encode(key), encode(each)] for key, each in value.items())]
    if isinstance(value, (bytes, bytearray)):
        return ["bytes", value.hex()]
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    if isinstance(value, Rational):
        return ["fraction", hex(value.numerator), hex(value.denominator)]
    if type(value).__module__ == "decimal" and value.is_finite() and abs(value.adjusted()) < 1000:
        return encode(Fraction(value))
    raise Opaque(f"of type {type(value).__name__}")


def _encode_any(value: object) -> object:
    try:
        return encode(value)
    except RecursionError:
        raise Opaque("that contains itself or is nested too deep") from None


def _describe(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:LONGEST_DETAIL]
    except BaseException:  # the exception is untrusted code, and so is its text
        return type(error).__name__[:LONGEST_DETAIL]


def _failure(error: BaseException) -> dict:
    kinds = {MemoryError: "out of memory", SystemExit: "ended early", AssertionError: "failed"}
    kind = next((kind for cls, kind in kinds.items() if isinstance(error, cls)), "error")
    return {"kind": kind, "detail": _describe(error)}


def _load(code: str, name: str) -> tuple[CodeType, ModuleType]:
    """Compile the code and make the module in which it is to run."""
    compiled = compile(code, "<completion>", "exec", dont_inherit=True)
    module = ModuleType(name)
    sys.modules[name] = module
    return compiled, module


def _run_program(job: dict, report: Callable) -> None:
    compiled, module = _load(job["code"], "__main__")
    sys.argv = ["completion.py"]
    try:
        exec(compiled, module.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        report(_failure(error))
        sys.exit(1)


def _run_tests(job: dict, report: Callable, receive: Callable) -> None:
    """Load the code as the module `solution`, then evaluate the tests until no more arrive."""
    # taken before the code runs, so that it can't put its own in their place by assigning to a module
    evaluate, execute, compile_, dumps = eval, exec, compile, json.JSONEncoder().encode
    standard: dict[ModuleType, dict] = {builtins: dict(vars(builtins))}
    for name in job["imports"]:
        try:
            module = importlib.import_module(name)
        except ImportError:  # the test that imports it will fail and report that
            continue
        standard[module] = dict(vars(module))
    compiled, module = _load(job["code"], "solution")
    try:
        execute(compiled, module.__dict__)
    except BaseException as error:
        report(_failure(error))
        return
    names = {name: value for name, value in vars(module).items() if name[:2] != "__"}
    shadows = {name: names[name] for name in names if name in standard[builtins] and name != job["entry_point"]}
    space = {"__name__": "tests"} | {name: value for name, value in names.items() if name not in shadows}
    report({"kind": "loaded"})
    while (step := receive()) is not None:
        sys.settrace(None)
        sys.setprofile(None)
        for module, saved in standard.items():
            vars(module).update(saved)
        answer: dict[str, object]
        try:
            if step["prepare"]:
                execute(compile_(step["prepare"], "<tests>", "exec", dont_inherit=True), space)
            if not step["is_value"]:
                execute(compile_(step["source"], "<tests>", "exec", dont_inherit=True), space)
                answer = {"kind": "done"}
            else:
                expression = compile_(step["source"], "<tests>", "eval", dont_inherit=True)
                # where the value is compared outside, a function may well be called `sum` and stand in for it
                value = evaluate(expression, shadows | space if shadows and step["is_hidden"] else space)
                answer = {"kind": "value", "value": _encode_any(value if step["is_hidden"] else bool(value))}
                if len(dumps(answer)) > step["longest"]:
                    answer = {"kind": "opaque", "detail": "a value too long to be right"}
        except Opaque as error:
            answer = {"kind": "opaque", "detail": f"a value {error}"[:LONGEST_DETAIL]}
        except BaseException as error:
            answer = _failure(error)
        answer["nonce"] = step["nonce"]
        report(answer)


def main(lock_down: Callable) -> None:
    """Do the job that arrives on the pipe argv[1], and report to the pipe argv[2]."""
    source, sink = int(sys.argv[1]), int(sys.argv[2])
    # taken now for the same reason as in `_run_tests`
    decode, dumps, write = json.JSONDecoder().decode, json.JSONEncoder().encode, os.write
    with open(source, "rb") as lines:
        read = lines.readline

        def receive() -> dict | None:
            line = read()
            return decode(line.decode()) if line else None

        def report(message: dict) -> None:
            line = dumps(message).encode() + b"\n"
            while line:
                line = line[write(sink, line) :]

        _converse(lock_down, receive, report)


def _converse(lock_down: Callable, receive: Callable, report: Callable) -> None:
    lockdown = receive()
    if lockdown is None:
        return
    try:
        lock_down(**lockdown)
    except Exception as error:  # whatever it is: the code must not be run
        report({"kind": "refused", "detail": _describe(error)})
        return
    report({"kind": "locked down"})
    job = receive()
    if job is None:
        return
    vars(builtins).update(exit=sys.exit, quit=sys.exit)  # as the module `site` does, which is not loaded
    for name in ("child", "lockdown"):
        sys.modules.pop(name, None)
    try:
        if job["imports"] is None:
            _run_program(job, report)
        else:
            _run_tests(job, report, receive)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:  # only compiling is not guarded inside
        report({"kind": "syntax error", "detail": _describe(error)})
