"""The processes that run `judge.py`, as `pool.py` starts them: this module, with a socket as its standard input."""

import contextlib
import logging
import os
import resource
import select
import signal
import socket
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from swift_rlvr.math_answers.judge import equal, parse_answer
from swift_rlvr.parallel import end_with_parent

logger = logging.getLogger(__name__)
MEMORY_BYTES = 3 << 30  # address space of a worker: sympy needs 0.3 GiB; a power tower would take all there is
WARM_UP = (  # loads what a worker would otherwise load at its first use, in half a second each
    (r"\frac{\sqrt{3}}{2}x^2", r"\sqrt{3}x^2"), ("x>3", r"(3,\infty)"), (r"[1,2) \cup \{5\}", r"\{1,2\}"),
    (r"2\sin x\cos x", r"\sin 2x"), (r"\tan x", r"\frac{\sin x}{\cos x}"), (r"\log_2 9", r"2\log_2 3"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}1\\\sqrt{4}\end{pmatrix}"), ("y=2x^2", "x^2=y/2"),
    (r"e^{2x}", r"(e^x)^2"), (r"\arctan 1", r"\frac{\pi}{4}"),
    (r"x \in [1,\infty)", r"x \geq 1"), (r"\sqrt[3]{x+1}", "x"), (r"\frac{1}{1+i}", r"\frac{1-i}{3}"),
)  # fmt: skip


def serve(connection: Connection) -> None:
    """Judge jobs until the other side hangs up, which raises EOFError or OSError.

    A job is (gold, gold_how, [(answer, how), ...]). The replies are sent one by one: whether the gold could be parsed,
    then for each answer True, False, or None where it could not be parsed.
    """
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    while True:
        gold, gold_how, answers = connection.recv()
        golds = _guarded(parse_answer, gold, gold_how) or ()
        connection.send(bool(golds))
        for answer, how in answers if golds else ():
            parsed = _guarded(parse_answer, answer, how)
            connection.send(bool(_guarded(equal, golds, parsed)) if parsed else None)


def _guarded(function: Callable[..., Any], *arguments: Any) -> Any:
    """The function's result, or None where it raises: a formula can make sympy raise any exception."""
    try:
        return function(*arguments)
    except Exception:
        logger.debug("%s%r", function.__name__, arguments, exc_info=True)
        return None


def nursery(control: socket.socket) -> None:
    """Fork a worker for every message, and end with the parent process.

    A message is the id of a worker to kill first (8 bytes, 0 for none) and the new worker's socket; the reply is the
    new one's id. Forking here, where sympy is loaded and no thread runs, takes milliseconds; a new process, a second.
    """
    parent = os.getppid()
    children: set[int] = set()
    for pair in WARM_UP:
        _guarded(equal, *(parse_answer(text, "formula") for text in pair))
    control.sendall(b"ready")
    while os.getppid() == parent:
        if not select.select([control], [], [], 1.0)[0]:
            continue
        message, fds, _, _ = socket.recv_fds(control, 8, 1)
        if not message:
            break
        old = int.from_bytes(message, "big")
        if old in children:
            _kill(old)
            children.remove(old)
        pid = os.fork()
        if pid == 0:
            control.close()
            end_with_parent()  # in case the nursery itself is killed
            with contextlib.suppress(EOFError, OSError):
                serve(Connection(fds[0]))
            os._exit(0)
        os.close(fds[0])
        children.add(pid)
        control.sendall(pid.to_bytes(8, "big"))
    for pid in children:
        _kill(pid)


def _kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)  # safe where the worker has already ended: its id stays in use until waitpid
    os.waitpid(pid, 0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole process group; the parent decides
    logging.getLogger("math_verify").setLevel(logging.ERROR)  # it warns that its own time limits are off
    nursery(socket.socket(fileno=os.dup(0)))
