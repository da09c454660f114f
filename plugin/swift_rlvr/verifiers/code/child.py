"""The sandboxed child: reads its job from a pipe, locks itself down, and only then runs the
completion's code.

`process.py` starts, by `serve` and outside the package, a process that forks a child whenever it is
asked to, and runs no code of a completion itself. A child's job is either to run a program once,
with standard input and output of its own, or to load the code as a module and to evaluate tests
that arrive one by one. It does not import `typing`, which would take a tenth of its start.

The order in `main` is the whole of the sandbox: nothing of a completion is read before the process
is locked down, and nothing is imported for the child itself after that.
"""

import _socket
import _thread
import array
import atexit
import builtins
import gc
import importlib
import json
import os
import select
import sys
from collections.abc import Callable, Set
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from types import CodeType, ModuleType

LONGEST_DETAIL = 300
# as in LiveCodeBench; competitive programmers count on a limit far above Python's 1,000
_RECURSION_LIMIT = 50_000
# for `encode`, whose C code needs more stack for each level than Python's own calls do
_ENCODING_RECURSION_LIMIT = 1000


# made before there is a child, which takes time of each otherwise
_DECODE, _ENCODE = json.JSONDecoder().decode, json.JSONEncoder().encode


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
        # Longer ones in base 16: reading a decimal takes quadratic time.
        return value if abs(value) < 1 << 63 else ["int", hex(value)]
    if isinstance(value, (list, tuple)):
        name = "list" if isinstance(value, list) else "tuple"
        return [name, *map(encode, value)]
    if isinstance(value, Set):  # also the keys of a dict
        return ["set", *map(encode, value)]
    if isinstance(value, dict):
        return ["dict", *([encode(key), encode(item)] for key, item in value.items())]
    if isinstance(value, (bytes, bytearray)):
        return ["bytes", value.hex()]
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    if isinstance(value, Rational):
        return ["fraction", hex(value.numerator), hex(value.denominator)]
    # 1e999999999 as a fraction would fill the memory.
    if isinstance(value, Decimal) and value.is_finite() and abs(value.adjusted()) < 1000:
        return encode(Fraction(value))
    # an array, or a number of numpy's
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
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
    """The report on an error: its kind is one of `check.FAILURES`, or "failed" for an assert."""
    if isinstance(error, MemoryError):
        kind = "out of memory"
    elif isinstance(error, SystemExit):
        kind = "ended early"
    elif isinstance(error, AssertionError):
        kind = "failed"
    else:
        kind = "error"
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


def _saved_names(imports: list[str]) -> list[tuple[dict, dict]]:
    """The names of each module that the tests use, first of builtins, and a copy of them to
    restore.

    The dictionaries themselves are kept, since the code could also replace `vars`.
    """
    standard = [(vars(builtins), dict(vars(builtins)))]
    for name in imports:
        try:
            imported = importlib.import_module(name)
        except ImportError:  # the test that imports it will fail and report that
            continue
        standard.append((vars(imported), dict(vars(imported))))
    return standard


def _run_tests(
    compiled: CodeType, module: ModuleType, job: dict, report: Callable, receive: Callable
) -> None:
    """Run the code as a module, then evaluate the tests until no more arrive."""
    # Taken before the code runs, so that it can't put its own in their place by assigning to a
    # module.
    evaluate, execute, compile_, dumps = eval, exec, compile, json.JSONEncoder().encode
    recursion_limit, limit_recursion = sys.getrecursionlimit, sys.setrecursionlimit
    set_trace, set_profile = sys.settrace, sys.setprofile
    defined = vars(module)
    standard = _saved_names(job["imports"])
    _, saved_builtins = standard[0]

    try:
        execute(compiled, defined)
    except BaseException as error:
        report(_failure(error))
        return

    # The tests see what the code has defined, but for what hides a builtin: a test that is
    # evaluated beside the code must not call an `all` or a `len` of the code's own.
    names = {name: value for name, value in defined.items() if name[:2] != "__"}
    hiding = saved_builtins.keys() & names.keys() - {job["entry_point"]}
    shadows = {name: names.pop(name) for name in hiding}
    space = {"__name__": "tests"} | names
    limit = recursion_limit()  # the code may have raised it

    def restore() -> None:
        """Undo what the code, or the test before, could use to change what a test means."""
        # A trace function could change the variables of a test while it is evaluated.
        set_trace(None)
        set_profile(None)
        limit_recursion(limit)
        # An `isclose` or a `sorted` of the code's own would say what it likes.
        for changed, saved in standard:
            changed.update(saved)

    def value_of(unit: dict) -> object:
        """The value of a test's expression, or of its call."""
        # Where the value is compared outside, a function may well be called `sum` and stand in for
        # it.
        seen = shadows | space if shadows and unit["is_hidden"] else space
        source, arguments = unit["source"], unit["arguments"]
        if arguments is not None and hasattr(seen.get("Solution"), source):
            source = f"Solution().{source}"  # as LeetCode asks for functions
        value = evaluate(compile_(source, "<tests>", "eval", dont_inherit=True), seen)
        if arguments is not None:
            value = value(*_with_int_keys(arguments))
        if not unit["is_hidden"]:
            value = bool(value)
        return value

    def answer_to(unit: dict) -> dict:
        """The answer to a test that compares a value outside. Raises Opaque where it has none."""
        value = value_of(unit)
        limit_recursion(_ENCODING_RECURSION_LIMIT)
        try:
            answer = {"kind": "value", "value": encode(value)}
        except RecursionError:
            raise Opaque("that contains itself or is nested too deep") from None
        if len(dumps(answer)) > job["longest"]:
            raise Opaque("too long to be right")
        return answer

    report({"kind": "loaded"})
    while unit := receive():
        restore()
        try:
            execute(compile_(unit["prepare"], "<tests>", "exec", dont_inherit=True), space)
            if unit["is_value"]:
                answer = answer_to(unit)
            else:
                execute(compile_(unit["source"], "<tests>", "exec", dont_inherit=True), space)
                answer = {"kind": "done"}
        except Opaque as error:
            answer = {"kind": "opaque", "detail": f"a value {error}"[:LONGEST_DETAIL]}
        except BaseException as error:
            answer = _failure(error)
        # The number came with the test: no answer can be written in advance.
        report(answer | {"nonce": unit["nonce"]})


def _limit_stacks(most: int) -> None:
    """Give threads no more stack than this: 512 MB, which many ask for, would not fit into the
    address space.

    Python calls itself without a stack of C's; only functions such as `sorted` and `lru_cache` need
    one to call it.
    """
    stack_size = _thread.stack_size

    def limited(size: int = 0) -> int:
        return stack_size(min(size, most))

    for name in {"_thread", "threading"} & sys.modules.keys():  # the second takes it from the first
        vars(sys.modules[name]).update(stack_size=limited)


def connect() -> tuple[Callable[[], dict], Callable[[dict], None]]:
    """Functions that receive a message, empty at the end, and report one, by the pipes that
    `process.Child` named.
    """
    source, sink = map(int, sys.argv[1:])
    # taken now for the same reason as in `_run_tests`
    decode, dumps = _DECODE, _ENCODE
    read, write = os.fdopen(source, "rb").readline, os.write

    def receive() -> dict:
        return decode(read().decode() or "{}")  # empty at the end

    def report(message: dict) -> None:
        line = dumps(message).encode() + b"\n"
        while line:
            line = line[write(sink, line) :]

    return receive, report


def serve(lockdown: ModuleType, prelude: ModuleType) -> None:
    """Fork a child for every message with pipes, and say its number, or the negative errno where that
    fails; for a child's number say how that ended.

    The pipes are those of `connect`, and for a program its standard input and output. The first
    message is a request. The program's argument is the socket of all messages.
    """
    control = _socket.socket(fileno=int(sys.argv[1]))
    request = json.loads(control.recv(1 << 16))
    lockdown.give_up_mounts(request["folder"])
    for name, folder in request["packages"].items():
        sys.path.append(folder)  # for as long as it is trusted code that imports
        importlib.import_module(name)
        sys.path.remove(folder)
    # Most completions import some of these, which takes as long as all else that they do.
    for name in prelude.NAMES.values():
        importlib.import_module(name)
    lock_down = lockdown.lock_down
    try:
        lockdown.confine(request["folder"], request["readable"], request["landlock"])
    except lockdown.LockdownError as error:
        lock_down = _refusing(error)  # so that each child can say why
    compile("", "", "exec")  # the first time it makes the types of syntax trees
    # What is there now stays in every child: neither collected nor, for that, copied.
    gc.collect()
    gc.freeze()

    ancillary_size = _socket.CMSG_SPACE(4 * array.array("i").itemsize)  # four pipes at most
    parent = request["parent"]
    while _is_readable(control.fileno(), parent):
        message, sent, _, _ = control.recvmsg(64, ancillary_size)
        if not message:
            return
        if not sent:
            status = _wait_for(int(message), parent)
            control.sendall(b"%d\n" % status)
            continue
        pipes = array.array("i", sent[0][2])
        try:
            child = os.fork()
        except OSError as error:
            # The machine has no room for a process just now: the parent tries again.
            child = -(error.errno or 1)
        if child == 0:
            # By this socket code could ask for a child with limits of its own choice.
            control.close()
            for number, pipe in enumerate(pipes[2:]):
                os.dup2(pipe, number)
                os.close(pipe)
            sys.argv = ["-c", *map(str, pipes[:2])]
            _exit_after(lambda: main(lock_down, prelude.provide))
        # A pipe ends for its reader when the last writer closes it. And the next child must not
        # have the pipes of this one.
        for pipe in pipes:
            os.close(pipe)
        control.sendall(b"%d\n" % child)


def _refusing(error: Exception) -> Callable:
    """What stands in for `lock_down` where that is impossible."""

    def lock_down(**request: object) -> None:
        raise error

    return lock_down


def _exit_after(run: Callable) -> None:
    """Call a function and end the process as Python does, but for taking all of its own modules
    apart, which takes longer than most programs run.
    """
    end = os._exit
    status = 1
    try:
        status = _status_of(run)
        # as Py_FinalizeEx does: threads, functions to be called at exit, `__del__`, output
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        atexit._run_exitfuncs()
        if "__main__" in sys.modules:
            vars(sys.modules["__main__"]).clear()
        sys.stdout.flush()
    except BaseException:  # all of this can be the code's own
        status = status or 120
    finally:
        end(status)


def _status_of(run: Callable) -> int:
    """The exit status of a process that calls this function and ends."""
    try:
        run()
    except SystemExit as error:
        if error.code is None:
            return 0
        return error.code & 255 if isinstance(error.code, int) else 1
    except BaseException:
        return 1
    return 0


def _is_readable(descriptor: int, parent: int) -> bool:
    """Wait until a descriptor can be read; False where the process `parent` ends before that.

    Another process may have a copy of the other end of the socket, so that it need not close with
    the parent. And the kernel's own signal (PR_SET_PDEATHSIG) comes as soon as the thread ends that
    started this process.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    while not poll.poll(1000):
        if os.getppid() != parent:
            return False
    return True


def _wait_for(child: int, parent: int) -> int:
    """The exit status of a child; where the process `parent` ends before that, so does this one, and
    the child with it.
    """
    descriptor = os.pidfd_open(child)
    try:
        if not _is_readable(descriptor, parent):
            os._exit(1)
    finally:
        os.close(descriptor)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


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
    # Only now does the parent send code.
    report({"kind": "locked down"})
    _limit_stacks(request["memory"] // 2)
    job = receive()
    # as the module `site` does, which is not loaded
    vars(builtins).update(exit=sys.exit, quit=sys.exit)
    # Code that imports `child` gets no handle on what judges it.
    for name in ("child", "lockdown", "prelude"):
        sys.modules.pop(name, None)

    try:
        # Without dont_inherit it would have the future statements of this module.
        compiled = compile(job["code"], "<completion>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        report(_failure(error) | {"kind": "syntax error"})
        return
    is_program = job["imports"] is None
    name = "__main__" if is_program else "solution"
    sys.modules[name] = module = ModuleType(name)
    provide(compiled, vars(module))
    sys.setrecursionlimit(_RECURSION_LIMIT)
    if is_program:
        _run_program(compiled, module, report)
    else:
        _run_tests(compiled, module, job, report, receive)
