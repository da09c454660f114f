"""The sandboxed child: reads its job from a pipe, locks itself down, and only then runs the
completion's code.

`process.py` starts, by `serve` and outside the package, a process that forks a child whenever it is
asked to, and runs no code of a completion itself. `inside.jobs` has the jobs of a child: to run a
program once, with standard input and output of its own, to load the code as a module and serve
those that ask for its functions, or to run the tests that do so.

The order in `main` is the whole of the sandbox: nothing of a completion is read before the process
is locked down, and nothing is imported for the child itself after that.
"""

import _socket
import _thread
import array
import importlib
import json
import os
import sys
from collections.abc import Callable


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
    # taken now, before code runs that can assign to any module
    decode, dumps = json.JSONDecoder().decode, json.JSONEncoder().encode
    read, write = os.fdopen(source, "rb").readline, os.write

    def receive() -> dict:
        return decode(read().decode() or "{}")  # empty at the end

    def report(message: dict) -> None:
        line = dumps(message).encode() + b"\n"
        while line:
            line = line[write(sink, line) :]

    return receive, report


def serve(lock_down: Callable, run: Callable, end_with: Callable) -> None:
    """Fork a child for every message with pipes, and say its number, or the negative errno where that
    fails; for a child's number say how that ended.

    The pipes are those of `connect`, and for a program its standard input and output. The arguments
    are functions of `lockdown` and `inside.jobs`, which `main` needs. The program's are the parent, the
    folders of packages, and a socket.
    """
    end_with(int(sys.argv[1]))
    for name, folder in json.loads(sys.argv[2]).items():
        sys.path.append(folder)  # for as long as it is trusted code that imports
        importlib.import_module(name)
        sys.path.remove(folder)
    control = _socket.socket(fileno=int(sys.argv[3]))
    ancillary_size = _socket.CMSG_SPACE(4 * array.array("i").itemsize)  # four pipes at most
    while True:
        request, sent, _, _ = control.recvmsg(64, ancillary_size)
        if not request:
            return
        if not sent:
            _, status = os.waitpid(int(request), 0)
            control.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
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
            return main(lock_down, run)
        # A pipe ends for its reader when the last writer closes it. And the next child must not
        # have the pipes of this one.
        for pipe in pipes:
            os.close(pipe)
        control.sendall(b"%d\n" % child)


def main(lock_down: Callable, run: Callable) -> None:
    """Lock the process down as the first message says, and do the job of the second; `run` is that
    of `inside.jobs`.
    """
    receive, report = connect()
    try:
        request = receive()
        os.chdir(request["folder"])
        os.environ.update(HOME=request["folder"], TMPDIR=request["folder"])
        lock_down(**request)
    except Exception as error:  # whatever it is: the code must not be run
        report({"kind": "refused", "detail": f"{type(error).__name__}: {error}"})
        return
    # Only now does the parent send code.
    report({"kind": "locked down"})
    _limit_stacks(request["memory"] // 2)
    run(receive(), receive, report)
