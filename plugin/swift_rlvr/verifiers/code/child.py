"""The sandboxed child: reads its job from a pipe, locks itself down, and only then runs the
completion's code.

`process.py` starts, by `serve` and outside the package, a process that forks a child whenever it is
asked to, and runs no code of a completion itself. A child's job is either to run a program once,
with standard input and output of its own, or to load the code as a module and to evaluate tests
that arrive one by one. It does not import `typing`, which would take a tenth of its start.
"""

import _socket
import _thread
import array
import builtins
import importlib
import json
import os
import sys
from collections.abc import Callable, Set
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from types import CodeType, ModuleType

LONGEST_DETAIL = 300
# as in LiveCodeBench; competitive programmers count on a limit far above Python's 1,000
_RECURSION_LIMIT = 50_000


class Opaque(Exception):
    """A value that is not made of plain types."""


def encode(value: object) -> object:
    """Write a value of plain types, or subclasses of them, as JSON that keeps them apart;
    `check.decode` reads it.

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
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < 1000:
        return encode(Fraction(value))
    if type(value).__module__ == "numpy" and hasattr(
        value, "tolist"
    ):  # an array, or a number of numpy's
        return encode(value.tolist())
    raise Opaque(f"of type {type(value).__name__}")


def _with_int_keys(arguments: list) -> list:
    """An only argument that is a dict of whole numbers has them as keys, which JSON cannot write.

    >>> _with_int_keys([{"1": "one"}]), _with_int_keys([{"1": "one"}, 2]), _with_int_keys([{"one": 1}])
    ([{1: 'one'}], [{'1': 'one'}, 2], [{'one': 1}])
    """
    match arguments:
        case [dict(only)] if all(key.removeprefix("-").isdecimal() for key in only):
            return [{int(key): value for key, value in only.items()}]
    return arguments


def _failure(error: BaseException) -> dict[str, object]:
    kinds = {MemoryError: "out of memory", SystemExit: "ended early", AssertionError: "failed"}
    kind = next((kind for cls, kind in kinds.items() if isinstance(error, cls)), "error")
    try:
        detail = f"{type(error).__name__}: {error}"
    except BaseException:  # the exception is untrusted code, and so is its text
        detail = type(error).__name__
    return {"kind": kind, "detail": detail[:LONGEST_DETAIL]}


def _run_program(compiled: CodeType, module: ModuleType, report: Callable) -> None:
    sys.argv = ["completion.py"]
    try:
        exec(compiled, vars(module))
    except SystemExit:
        raise
    except BaseException as error:
        report(_failure(error))
        sys.exit(1)


def _run_tests(
    compiled: CodeType, module: ModuleType, job: dict, report: Callable, receive: Callable
) -> None:
    """Run the code as a module, then evaluate the tests until no more arrive."""
    # taken before the code runs, so that it can't put its own in their place by assigning to a
    # module
    evaluate, execute, compile_, dumps = eval, exec, compile, json.JSONEncoder().encode
    recursion_limit, limit_recursion = sys.getrecursionlimit, sys.setrecursionlimit
    standard = {builtins: dict(vars(builtins))}
    for name in job["imports"]:
        try:
            imported = importlib.import_module(name)
        except ImportError:  # the test that imports it will fail and report that
            continue
        standard[imported] = dict(vars(imported))
    try:
        execute(compiled, vars(module))
    except BaseException as error:
        report(_failure(error))
        return
    names = {name: value for name, value in vars(module).items() if name[:2] != "__"}
    shadows = {
        name: names.pop(name)
        for name in standard[builtins].keys() & names.keys() - {job["entry_point"]}
    }
    space = {"__name__": "tests"} | names
    limit = recursion_limit()  # the code may have raised it
    report({"kind": "loaded"})
    while unit := receive():
        sys.settrace(None)
        sys.setprofile(None)
        limit_recursion(limit)
        for changed, saved in standard.items():
            vars(changed).update(saved)
        try:
            execute(compile_(unit["prepare"], "<tests>", "exec", dont_inherit=True), space)
            if unit["is_value"]:
                # where the value is compared outside, a function may well be called `sum` and stand
                # in for it
                seen = shadows | space if shadows and unit["is_hidden"] else space
                source, arguments = unit["source"], unit["arguments"]
                if arguments is not None and hasattr(
                    seen.get("Solution"), source
                ):  # as LeetCode asks for functions
                    source = f"Solution().{source}"
                value = evaluate(compile_(source, "<tests>", "eval", dont_inherit=True), seen)
                if arguments is not None:
                    value = value(*_with_int_keys(arguments))
                if not unit["is_hidden"]:
                    value = bool(value)
                limit_recursion(
                    1000
                )  # the C code below needs more stack for each level than Python's own calls do
                try:
                    answer = {"kind": "value", "value": encode(value)}
                except RecursionError:
                    raise Opaque("that contains itself or is nested too deep") from None
                if len(dumps(answer)) > job["longest"]:
                    raise Opaque("too long to be right")
            else:
                execute(compile_(unit["source"], "<tests>", "exec", dont_inherit=True), space)
                answer = {"kind": "done"}
        except Opaque as error:
            answer = {"kind": "opaque", "detail": f"a value {error}"[:LONGEST_DETAIL]}
        except BaseException as error:
            answer = _failure(error)
        report(answer | {"nonce": unit["nonce"]})


def _limit_stacks(most: int) -> None:
    """Give threads no more stack than this: 512 MB, which many ask for, would not fit into the
    address space.

    Python calls itself without a stack of C's; only functions such as `sorted` and `lru_cache` need
    one to call it.
    """
    stack_size = _thread.stack_size
    for name in {"_thread", "threading"} & sys.modules.keys():  # the second takes it from the first
        vars(sys.modules[name]).update(stack_size=lambda size=0: stack_size(min(size, most)))


def connect() -> tuple[Callable[[], dict], Callable[[dict], None]]:
    """Functions that receive a message, empty at the end, and report one, by the pipes that
    `process.Child` named.
    """
    source, sink = map(int, sys.argv[1:])
    # taken now for the same reason as in `_run_tests`
    decode, dumps = json.JSONDecoder().decode, json.JSONEncoder().encode
    read, write = os.fdopen(source, "rb").readline, os.write

    def receive() -> dict:
        return decode(read().decode() or "{}")  # empty at the end

    def report(message: dict) -> None:
        line = dumps(message).encode() + b"\n"
        while line:
            line = line[write(sink, line) :]

    return receive, report


def serve(lock_down: Callable, provide: Callable, end_with: Callable) -> None:
    """Fork a child for every message with pipes, and say its number; for a child's number say how
    that ended.

    The pipes are those of `connect`, and for a program its standard input and output. The arguments
    are functions of `lockdown` and `prelude`, which `main` needs. The program's are the parent, the
    folders of packages, and a socket.
    """
    end_with(int(sys.argv[1]))
    for name, folder in json.loads(sys.argv[2]).items():
        sys.path.append(folder)  # for as long as it is trusted code that imports
        importlib.import_module(name)
        sys.path.remove(folder)
    control = _socket.socket(fileno=int(sys.argv[3]))
    while True:
        request, sent, _, _ = control.recvmsg(64, _socket.CMSG_SPACE(4 * array.array("i").itemsize))
        if not request:
            return
        if not sent:
            control.sendall(b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(int(request), 0)[1]))
            continue
        pipes = array.array("i", sent[0][2])
        child = os.fork()
        if child == 0:
            control.close()
            for number, pipe in enumerate(pipes[2:]):
                os.dup2(pipe, number)
                os.close(pipe)
            sys.argv = ["-c", *map(str, pipes[:2])]
            return main(lock_down, provide)
        for pipe in pipes:
            os.close(pipe)
        control.sendall(b"%d\n" % child)


def main(lock_down: Callable, provide: Callable) -> None:
    """Lock the process down as the first message says, and do the job of the second; `provide` is
    `prelude`'s.
    """
    receive, report = connect()
    try:
        request = receive()
        os.chdir(request["folder"])
        os.environ.update(HOME=request["folder"], TMPDIR=request["folder"])
        lock_down(**request)
    except Exception as error:  # whatever it is: the code must not be run
        report(_failure(error) | {"kind": "refused"})
        return
    report({"kind": "locked down"})
    _limit_stacks(request["memory"] // 2)
    job = receive()
    vars(builtins).update(
        exit=sys.exit, quit=sys.exit
    )  # as the module `site` does, which is not loaded
    for name in ("child", "lockdown", "prelude"):
        sys.modules.pop(name, None)
    try:
        compiled = compile(job["code"], "<completion>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        report(_failure(error) | {"kind": "syntax error"})
        return
    name = "__main__" if job["imports"] is None else "solution"
    sys.modules[name] = module = ModuleType(name)
    provide(compiled, vars(module))
    sys.setrecursionlimit(_RECURSION_LIMIT)
    if job["imports"] is None:
        _run_program(compiled, module, report)
    else:
        _run_tests(compiled, module, job, report, receive)
