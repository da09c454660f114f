"""The sandboxed child: locks itself down, and only then reads the completion's code from a pipe and
runs it.

`process.py` starts, by `serve` and outside the package, a process that forks a child whenever it is
asked to, and runs no code of a completion itself. `inside.jobs` has the jobs of a child: to run a
program once, with standard input and output of its own, to load the code as a module and serve
those that ask for its functions, or to run the tests that do so.

The order in `main` is the whole of the sandbox: nothing of a completion is read before the process
is locked down, and nothing is imported for the child itself after that.

What all children do alike the process that forks them has done before (`serve`). A page of memory that
a child writes to is copied first, and Python writes to whatever it looks at.
"""

import _multiprocessing  # type: ignore[import-not-found]
import _socket
import _thread
import array
import atexit
import builtins
import gc
import importlib
import json
import math
import os
import select
import signal
import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

# made before there is a child, which takes time of each otherwise
_DECODE, _ENCODE = json.JSONDecoder().decode, json.JSONEncoder().encode
_CHUNK = 1 << 16  # bytes that are read at a time
_CORES = 8  # that a child is told of
_STACK = 1 << 22  # bytes of the stack of a thread; half of what Linux gives it


def _limit_stacks() -> Callable[[int], None]:
    """Have threads get no more stack than what the function says that is returned: 512 MB, which many
    ask for, would not fit into the address space.

    Python calls itself without a stack of C's; only functions such as `sorted` and `lru_cache` need
    one to call it.
    """
    stack_size = _thread.stack_size
    most = 1 << 30

    def limited(size: int = 0) -> int:
        return stack_size(min(size, most))

    def limit(size: int) -> None:
        nonlocal most
        most = size
        if sys.version_info >= (3, 13):  # since when a thread keeps its stack until it is joined
            stack_size(_STACK)

    for name in {"_thread", "threading"} & sys.modules.keys():  # the second takes it from the first
        vars(sys.modules[name]).update(stack_size=limited)
    return limit


def connect() -> tuple[Callable[[], dict], Callable[..., bool]]:
    """Functions that receive a message, empty at the end, and report one, unless it is longer than
    that, by the pipes that `process.Child` named.
    """
    source, sink = map(int, sys.argv[1:])
    # taken now, before code runs that can assign to any module
    decode, dumps = _DECODE, _ENCODE
    read, write = os.read, os.write
    unread = bytearray()

    def receive() -> dict:
        chunk = b""
        while b"\n" not in (chunk or unread):
            chunk = read(source, _CHUNK)
            if not chunk:
                return {}
            unread.extend(chunk)
        line, _, rest = unread.partition(b"\n")
        unread[:] = rest
        return decode(line.decode())

    def report(message: dict, longest: float = math.inf) -> bool:
        text = dumps(message)
        if len(text) > longest:
            return False
        line = text.encode() + b"\n"
        while line:
            line = line[write(sink, line) :]
        return True

    return receive, report


def _supervise(trainer: int, folder: str, folders: ModuleType, control: _socket.socket) -> int:
    """Fork the process that is going to serve, and return there, with the number of this one. Wait for
    its end, or for that of the trainer, which ends it, too, and remove the folder that it has had. It
    cannot do so itself: it is confined to the folder.
    """
    own = os.getpid()
    server = os.fork()
    if server == 0:
        return own
    signal.signal(signal.SIGTERM, lambda *_: os.kill(server, signal.SIGKILL))
    control.close()
    end = select.poll()
    end.register(os.pidfd_open(server), select.POLLIN)
    # A fork of the trainer may have a copy of the other end of the socket, so that it need not close
    # with the trainer. And the kernel's own signal (PR_SET_PDEATHSIG) comes as soon as the thread ends
    # that started this process.
    while not end.poll(1000):
        if os.getppid() != trainer:
            os.kill(server, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(server, 0)[1])
    folders.remove(folder)
    if status < 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def serve(folders: ModuleType, lockdown: ModuleType, jobs: ModuleType) -> None:
    """Fork a child for every message with pipes, and say its number, or the negative errno where that
    fails; for a child's number say how that ended.

    The pipes are those of `connect`, and for a program its input, a file, and its output; the message
    says what the child may use. The first message is a request. The program's argument is the socket
    of all messages.
    """
    control = _socket.socket(fileno=int(sys.argv[1]))
    request = json.loads(control.recv(1 << 16))
    supervisor = _supervise(request["parent"], request["folder"], folders, control)
    lockdown.give_up_mounts(request["folder"])
    os.chdir(request["folder"])
    # Most completions import some of these, and tests the last, which takes longer than all else that
    # they do.
    for name in (*jobs.prelude.NAMES.values(), "unittest"):
        importlib.import_module(name)
    lock_down = lockdown.lock_down
    try:
        readable = _import_packages(request["packages"], lockdown)
        lockdown.confine(request["folder"], [*request["readable"], *readable], request["landlock"])
        lockdown.end_with(supervisor)  # not before: a change of rights undoes it
        del supervisor  # code can see what is in the frames below it
    except lockdown.LockdownError as error:
        lock_down = _refusing(error)  # so that each child can say why
    limit_stacks = _limit_stacks()
    _prepare(jobs.refused.SemLock)
    # What is there now stays in every child: neither collected nor, for that, copied.
    gc.collect()
    gc.freeze()

    ancillary_size = _socket.CMSG_SPACE(4 * array.array("i").itemsize)  # four pipes at most
    own = os.getpid()
    while True:
        message, sent, _, _ = control.recvmsg(1 << 10, ancillary_size)
        if not message:
            return
        if not sent:
            status = os.waitstatus_to_exitcode(os.waitpid(int(message), 0)[1])
            control.sendall(b"%d\n" % status)
            continue
        allowed = _DECODE(message.decode())
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
            limit_stacks(allowed["memory"] // 2)
            _exit_after(partial(main, partial(lock_down, own, **allowed), jobs.run))
        # A pipe ends for its reader when the last writer closes it. And the next child must not
        # have the pipes of this one.
        for pipe in pipes:
            os.close(pipe)
        control.sendall(b"%d\n" % child)


def _import_packages(packages: dict[str, str], lockdown: ModuleType) -> list[str]:
    """Import packages, by name and the folder in which they lie, and return what they may read of
    these folders later, besides themselves: pandas uses pyarrow where it is installed. Raises
    LockdownError.
    """
    folders = list(dict.fromkeys(packages.values()))
    own_path = [*sys.path]
    sys.path += folders  # for as long as it is trusted code that imports
    name = ""
    try:
        for name in packages:
            importlib.import_module(name)
    except Exception as error:  # whatever the package raises
        problem = f"{type(error).__name__}: {error}"
        raise lockdown.LockdownError(f"the package {name} cannot be imported: {problem}") from None
    finally:
        sys.path[:] = own_path

    readable: list[str] = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if "." in name or not file:
            continue
        place = os.path.dirname(file) if hasattr(module, "__path__") else file
        if os.path.dirname(place) in folders:
            readable += [place, f"{place}.libs"]
    return readable


def _prepare(lock: type) -> None:
    """Make of this process what code finds in each child."""
    # Standard input and output know that they are pipes in a child, where nobody can seek. Python has
    # asked that already, of the null device that they are here.
    null = os.dup(0)
    for number, end in enumerate(os.pipe()):
        os.dup2(end, number)
        os.close(end)
    stdin: Any = open(0, encoding="utf-8", errors=sys.stdin.errors, closefd=False)  # noqa: SIM115
    stdout: Any = open(1, "w", encoding="utf-8", errors=sys.stdout.errors, closefd=False)  # noqa: SIM115
    stdin.buffer.raw.name, stdout.buffer.raw.name = "<stdin>", "<stdout>"
    vars(sys).update(stdin=stdin, __stdin__=stdin, stdout=stdout, __stdout__=stdout)
    for number in (0, 1):
        os.dup2(null, number)
    os.close(null)
    # as in most graders: digits cost the code's own time
    sys.set_int_max_str_digits(0)
    # as the module `site` does, which is not loaded
    vars(builtins).update(exit=sys.exit, quit=sys.exit)
    vars(_multiprocessing).update(SemLock=lock)
    # A pool has as many threads, which are limited, and how many must not depend on the machine.
    for name in ("cpu_count", "process_cpu_count"):
        vars(os)[name] = lambda: _CORES
    # Code that imports these gets no handle on what judges it.
    for name in [*sys.modules]:
        if name.partition(".")[0] in ("child", "folders", "lockdown", "inside"):
            del sys.modules[name]
    compile("", "", "exec")  # the first time it makes the types of syntax trees


def _refusing(error: Exception) -> Callable:
    """What stands in for `lock_down` where that is impossible."""

    def lock_down(*_: object, **__: object) -> None:
        raise error

    return lock_down


def _exit_after(run: Callable) -> None:
    """Call a function and end the process as Python does, but for taking all of its own modules
    apart, which takes longer than most programs run.
    """
    end = os._exit
    status = 1
    try:
        try:
            run()
            status = 0
        except SystemExit as error:
            if error.code is None:
                status = 0
            elif isinstance(error.code, int):
                status = error.code & 255
        except BaseException:
            status = 1
        # as Py_FinalizeEx does: threads, functions to be called at exit, output, `__del__`, output
        if "threading" in sys.modules:
            sys.modules["threading"]._shutdown()
        atexit._run_exitfuncs()
        # What stands in for it may need the names of the module, as the fast output of many does.
        _flush(sys.stdout)
        if "__main__" in sys.modules:
            vars(sys.modules["__main__"]).clear()
        _flush(sys.__stdout__)
    except BaseException:  # all of this can be the code's own
        status = status or 120
    finally:
        end(status)


def _flush(stream: Any) -> None:
    """Write what is left in a stream, unless the code has closed it, or replaced it by None."""
    if stream is not None and not getattr(stream, "closed", False):
        stream.flush()


def main(lock_down: Callable[[], None], run: Callable) -> None:
    """Lock the process down, and do the job of the first message; `run` is that of `inside.jobs`."""
    receive, report = connect()
    try:
        lock_down()
    except Exception as error:  # whatever it is: the code must not be run
        report({"kind": "refused", "detail": f"{type(error).__name__}: {error}"})
        return
    # The code may have been sent before, but nothing of it is read before here.
    report({"kind": "locked down"})
    run(receive(), receive, report)
