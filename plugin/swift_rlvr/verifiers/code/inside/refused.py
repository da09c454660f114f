"""What the sandbox refuses, and what works in place of it.

The child imports this outside the package: only the standard library.
"""

import _thread
import errno
import opcode
import os
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

# how the kernel answers what the sandbox does not allow; the last where a file is renamed into another
# folder, which Landlock cannot allow before Linux 5.19
_REFUSALS = (errno.EPERM, errno.EACCES, errno.EROFS, errno.EXDEV)
_RAISE = opcode.opmap["RAISE_VARARGS"]  # a `raise` statement
# where programs write that want no more than to write somewhere
_FOLDERS = ("/tmp", "/var/tmp", "/dev/shm")
_OF_PATHS = """
    open mkdir rmdir remove unlink rename replace stat lstat listdir scandir access chdir truncate
"""


def is_refusal(error: BaseException) -> bool:
    """Whether the sandbox has refused something. Libraries in Rust tell it without a number, and
    SQLite without a class. What the code raises itself is none.
    """
    if vars(error).get("_has_crossed_"):
        return vars(error).get("_is_refusal_", False)
    is_permission = isinstance(error, PermissionError) and error.errno is None
    is_answer = isinstance(error, OSError) and error.errno in _REFUSALS
    name = getattr(error, "sqlite_errorname", "")
    if name not in ("SQLITE_CANTOPEN", "SQLITE_READONLY") and not is_permission and not is_answer:
        return False

    traceback = error.__traceback__
    if traceback is None:
        return True
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    # The last frame that it has left is where it was raised: by a statement, or by what that calls.
    with suppress(PermissionError):  # in one process with the tests nobody may look at frames
        code = traceback.tb_frame.f_code
        return code.co_filename != "<completion>" or code.co_code[traceback.tb_lasti] != _RAISE
    return True


class SemLock:
    """As `_multiprocessing.SemLock`: a lock that its owner may take again, or a semaphore, without the
    kernel's, which outlive a process. Queues, pools of threads and all else in `multiprocessing` are
    made of it. Within one process it is the same, and so every child has it.
    """

    SEM_VALUE_MAX = 2**31 - 1

    def __init__(self, kind: int, value: int, maxvalue: int, *_: object):
        # Imported here: whoever makes one has imported it, and most programs make none.
        from threading import Condition

        self.kind = kind
        self.maxvalue = maxvalue
        self.handle = id(self)
        self.name = None  # others would have to be told of it by a process
        self._is_recursive = kind == 0
        self._left = value
        self._taken = 0  # how often it is held
        self._owner = 0  # the thread that took it last
        self._changed = Condition()

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        if self._is_recursive and self._is_mine():
            self._taken += 1
            return True
        if not block:
            timeout = 0
        with self._changed:
            if not self._changed.wait_for(lambda: self._left > 0, timeout):
                return False
            self._left -= 1
            self._taken += 1
            self._owner = _thread.get_ident()
        return True

    def release(self) -> None:
        if self._is_recursive:
            if not self._is_mine():
                raise AssertionError("attempt to release recursive lock not owned by thread")
            if self._taken > 1:
                self._taken -= 1
                return
        with self._changed:
            if self._left >= self.maxvalue:
                raise ValueError("semaphore or lock released too many times")
            self._left += 1
            self._taken -= 1
            self._changed.notify()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: Any) -> None:
        self.release()

    def _is_mine(self) -> bool:
        return self._taken > 0 and self._owner == _thread.get_ident()

    def _count(self) -> int:
        return self._taken

    def _get_value(self) -> int:
        return self._left

    def _is_zero(self) -> bool:
        return self._left == 0

    def _after_fork(self) -> None: ...


def share_nothing() -> None:
    """Have temporary folders be one in the program's own, and the shared memory of `multiprocessing`
    and mappings of files that are only read its own memory. While there is one process, nothing in a
    program can tell.
    """
    # Imported here: most programs need none of them.
    import _io
    import builtins
    import io
    import mmap
    import sqlite3

    own = os.getcwd()
    temporary = f"{own}/tmp"
    with suppress(OSError):  # without Landlock nothing can be written
        os.mkdir(temporary)

    def moved(value: Any) -> Any:
        if not isinstance(value, (str, bytes, os.PathLike)):
            return value
        path = os.fsdecode(value)
        if path.startswith(own):  # it may lie in one of them itself
            return value
        for folder in _FOLDERS:
            if path == folder or path.startswith(f"{folder}/"):
                return temporary + path[len(folder) :]
        return value

    def of_paths(function: Callable) -> Callable:
        @wraps(function)
        def called(*arguments: Any, **keywords: Any) -> Any:
            values = {name: moved(value) for name, value in keywords.items()}
            return function(*map(moved, arguments), **values)

        return called

    for name in _OF_PATHS.split():
        vars(os)[name] = of_paths(getattr(os, name))
    opened = of_paths(open)
    for module in (builtins, io, _io):
        vars(module)["open"] = opened
    vars(sqlite3)["connect"] = of_paths(sqlite3.connect)

    class Mapping(mmap.mmap):
        """A private mapping of a file, where it is only read: fast input maps standard input."""

        def __new__(
            cls,
            fileno: int,
            length: int,
            flags: int = mmap.MAP_SHARED,
            prot: int = mmap.PROT_READ | mmap.PROT_WRITE,
            access: int = mmap.ACCESS_DEFAULT,
            offset: int = 0,
        ) -> "Mapping":
            if fileno != -1 and (access == mmap.ACCESS_READ or prot == mmap.PROT_READ):
                flags, prot, access = mmap.MAP_PRIVATE, mmap.PROT_READ, mmap.ACCESS_DEFAULT
            return super().__new__(cls, fileno, length, flags, prot, access, offset)

    vars(mmap)["mmap"] = Mapping

    # Not before: the modules that it imports take functions of `os` for later.
    import multiprocessing.heap

    def start(arena: Any, size: int, fd: int = -1) -> None:
        vars(arena).update(size=size, fd=fd, buffer=mmap.mmap(-1, size))

    vars(multiprocessing.heap)["Arena"].__init__ = start


def processes_as_threads() -> None:
    """Have processes be threads. A thread sees what the others assign, so that what a program prints
    is no proof that it is right.
    """
    import concurrent.futures
    import concurrent.futures.process
    import multiprocessing.dummy
    import multiprocessing.managers
    import multiprocessing.pool
    import threading
    from multiprocessing import popen_fork, popen_forkserver, popen_spawn_posix

    class Thread:
        """What starts a `Process`, of whatever class, and waits for it."""

        method = "thread"
        sentinel = None

        def __init__(self, process: Any):
            self.pid = os.getpid()
            self.returncode: int | None = None
            self._thread = threading.Thread(target=self._run, args=(process,), daemon=True)
            self._thread.start()

        def _run(self, process: Any) -> None:
            status = 1
            try:
                process.run()
                status = 0
            except SystemExit as error:
                status = error.code if isinstance(error.code, int) else int(error.code is not None)
            finally:
                self.returncode = status

        def poll(self, *_: object) -> int | None:
            return self.returncode

        def wait(self, timeout: float | None = None) -> int | None:
            self._thread.join(timeout)
            return self.returncode

        def close(self) -> None: ...

        terminate = kill = close

    class Manager:
        """Who holds what processes share."""

        Array = staticmethod(multiprocessing.Array)
        Value = staticmethod(multiprocessing.Value)

        def __init__(self, *_: object, **__: object): ...

        def __getattr__(self, name: str) -> Any:
            return getattr(multiprocessing.dummy, name)

        def __enter__(self) -> "Manager":
            return self

        def __exit__(self, *_: object) -> None: ...

        def start(self, *_: object) -> None: ...

    class Pool(multiprocessing.pool.ThreadPool):
        # with all of its arguments; the module calls the other one by the class' name
        __init__ = multiprocessing.pool.Pool.__init__
        _wait_for_updates = staticmethod(multiprocessing.pool.Pool._wait_for_updates)  # type: ignore[attr-defined]

    def executor(
        max_workers: Any = None,
        mp_context: object = None,
        initializer: Any = None,
        initargs: tuple = (),
        **_: object,
    ) -> Any:
        threads = concurrent.futures.ThreadPoolExecutor
        return threads(max_workers, "", initializer, initargs)

    for module in (popen_fork, popen_spawn_posix, popen_forkserver):
        vars(module)["Popen"] = Thread
    vars(multiprocessing.managers)["SyncManager"] = Manager
    vars(multiprocessing.pool)["Pool"] = Pool
    for module in (concurrent.futures, concurrent.futures.process):
        vars(module)["ProcessPoolExecutor"] = executor
