"""Foreign code can neither pass tests that it does not pass, nor harm the machine, nor outlive its run."""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hangs import done_within
from hypothesis import given
from hypothesis import strategies as st
from swift_rlvr.sandbox import Limits, SandboxError, check, lockdown, process, read_tests
from swift_rlvr.sandbox.check import _decode
from swift_rlvr.sandbox.child import encode
from swift_rlvr.sandbox.process import Child

PLUGIN = Path(__file__).parents[2] / "plugin"
SHORT = Limits(seconds=3, memory_mb=256)


def output_of(code: str, stdin: bytes = b"", limits: Limits = SHORT) -> str:
    """What a program prints that runs to its end."""
    job = {"code": textwrap.dedent(code), "imports": None}
    with Child(job, limits, time.monotonic() + limits.seconds, stdin, 1 << 20) as child:
        output, report = child.finish()
        assert (report, child.status(), child.stopped) == (None, 0, "")
    return output.decode()


def result_of(code: str, tests: object = "assert f(1) == 2", limits: Limits = SHORT, **options) -> list[str]:
    tests = read_tests(tests, options.get("entry_point"))
    return [outcome.result for outcome in check(textwrap.dedent(code), tests, limits, **options)]


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path, monkeypatch):
    """After every test: no process, no folder and no open file more than before it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    files = len(os.listdir("/proc/self/fd"))
    yield
    assert sandboxed(parent=os.getpid()) == set()
    seen = sandboxed()  # another run of these tests may have some as well, but none of them stays
    wait_until(lambda: not seen & sandboxed())
    assert os.listdir(folder) == []
    assert len(os.listdir("/proc/self/fd")) == files


def sandboxed(parent: int | None = None) -> set[int]:
    """The sandboxed processes on this machine, or those of one parent."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            own_parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:  # it has ended
            continue
        if process._START.encode() in words and parent in (None, own_parent):
            found.add(int(folder.name))
    return found


def wait_until(condition) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# --- what code may do ---


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("print(sum(map(int, input().split())))", "7"),
        ("import sys\nprint(len(sys.stdin.read()))", "4"),
        ("print(open(0).read().strip())", "3 4"),
        ("import atexit\natexit.register(print, 'at exit')", "at exit"),
        ("import sys\nprint('é')\nsys.exit()", "é"),
        ("if __name__ == '__main__': print(__name__)", "__main__"),
        # deep recursion in a thread with a large stack, as competitive programmers do it
        (
            """
            import sys, threading
            sys.setrecursionlimit(10**6)
            threading.stack_size(100 << 20)
            depth = lambda n: 0 if n == 0 else 1 + depth(n - 1)
            thread = threading.Thread(target=lambda: print(depth(50_000)))
            thread.start()
            thread.join()
            """,
            "50000",
        ),
        ("import asyncio\nprint(asyncio.run(asyncio.sleep(0.01, 'slept')))", "slept"),
        ("import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))\nprint('lowered')", "lowered"),
        # files in its own folder, and in no other
        (
            "open('a', 'w').write('x' * 9)\nimport os\nos.rename('a', 'b')\nprint(open('b').read())\nos.remove('b')",
            "x" * 9,
        ),
        ("import tempfile\nwith tempfile.TemporaryFile() as file: print(file.write(b'abc'))", "3"),
        (
            "import bisect, heapq, re, json, decimal, fractions, itertools, zoneinfo, ssl, sqlite3\nprint('imported')",
            "imported",
        ),
    ],
)
def test_ordinary_programs_run(code, printed):
    assert output_of(code, b"3 4\n").strip() == printed


def test_input_and_output_may_be_large_and_input_may_be_left_unread():
    megabytes = b"7 " * 1_500_000
    assert output_of("print(sum(map(int, input().split())))", megabytes) == "10500000\n"
    assert output_of("print('done')", megabytes) == "done\n"
    assert result_of("print(input() * 10)", [{"input": "7" * 100_000, "output": "7" * 1_000_000}]) == ["passed"]


def test_the_order_of_a_set_does_not_change_from_run_to_run():
    assert len({output_of("print({'a', 'b', 'c', 'd', 'e'}, hash('x'))") for _ in range(3)}) == 1


def test_memory_and_cpu_limits_cannot_be_raised():
    code = """
    import resource
    for limit in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_FSIZE):
        try:
            resource.setrlimit(limit, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            print("raised")
        except (ValueError, PermissionError):
            print("refused")
    """
    assert output_of(code).split() == ["refused"] * 3


# --- what comes of code ---


@pytest.mark.parametrize(
    ("code", "results"),
    [
        ("def f(x): return x + 1", ["passed"]),
        ("def f(x): return x", ["wrong"]),
        ("def f(x): return '2'", ["wrong"]),
        ("def f(x): return 2.0", ["passed"]),  # as == has it
        ("from fractions import Fraction\ndef f(x): return Fraction(2)", ["passed"]),
        ("from decimal import Decimal\ndef f(x): return Decimal(2)", ["passed"]),
        ("f = lambda x: object()", ["wrong"]),
        ("def f(x): return f", ["wrong"]),
        ("def f(x): return 'x' * 200_000", ["wrong"]),
        ("def f(x): return 10 ** 10_000", ["wrong"]),
        ("def f(x):\n    a = []\n    a.append(a)\n    return a", ["wrong"]),  # contains itself
        ("def f(x)", ["syntax error"]),
        ("def f(x): return '\0'", ["syntax error"]),
        ("f = '\ud800'", ["syntax error"]),
        ("(" * 5000, ["syntax error"]),
        ("", ["error"]),
        ("def g(x): return 2", ["error"]),
        ("def f(x): return x / 0", ["error"]),
        ("def f(x): assert x == 3", ["error"]),
        ("import numpy_that_is_not_there", ["error"]),
        ("raise SystemExit", ["ended early"]),
        ("import os\nos._exit(0)", ["ended early"]),
        ("import os\nos.kill(os.getpid(), 9)", ["killed"]),
        ("import os\nos.kill(os.getpid(), 40)", ["killed"]),  # a signal without a name
        ("import ctypes\nctypes.string_at(0)", ["killed"]),
        ("import os\nos.abort()", ["killed"]),
        ("x = bytearray(1 << 40)", ["out of memory"]),
        ("x = []\nwhile True: x.append(bytearray(1 << 20))", ["out of memory"]),
        ("def f(x): return f(x)", ["error"]),
    ],
)
def test_the_outcome_says_what_happened(code, results):
    assert result_of(code) == results


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("while True: pass", "timeout"),
        ("import time\ntime.sleep(1000)", "timeout"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)", "timeout"),
        ("import os\nos.close(0), os.close(1), os.close(2)\nwhile True: pass", "timeout"),
        ("import os\nfor fd in range(64):\n  try: os.close(fd)\n  except OSError: pass\nwhile True: pass", "timeout"),
        ("import ctypes\nctypes.CDLL(None).pause()", "timeout"),
        ("(9 ** 9 ** 9)", "timeout"),
    ],
)
def test_time_is_measured_on_the_wall(code, expected):
    for tests in ("assert f(1) == 2", [{"input": "", "output": ""}]):
        with done_within(20):
            assert result_of(code, tests, Limits(seconds=0.4)) == [expected]


def test_output_without_end_is_cut_off():
    case = {"input": "", "output": "x"}
    assert result_of("while True: print('x' * 1000)", [case], Limits(seconds=20)) == ["too much output"]


def test_all_tests_go_on_after_a_failure_and_the_time_is_for_all_of_them():
    code = "def f(x):\n    if x == 1: raise ValueError\n    if x == 4: __import__('os')._exit(0)\n    return x"
    tests = [f"assert f({x}) == {x}" for x in range(7)]
    assert result_of(code, tests) == ["passed", "error"]
    assert result_of(code, tests, all_tests=True) == ["passed", "error", "passed", "passed", "ended early"]
    cases = [{"input": str(x), "output": "1"} for x in range(3)]
    assert result_of("print(input())", cases, all_tests=True) == ["wrong", "passed", "wrong"]
    slow = "import time\ntime.sleep(0.4)\nprint(1)"
    assert result_of(slow, cases, Limits(seconds=0.7), all_tests=True) == ["passed", "timeout"]


def test_it_works_in_many_threads_at_once():
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: result_of(f"def f(x): return {n}"), range(24)))
    assert results == [["passed" if n == 2 else "wrong"] for n in range(24)]


# --- what code may not do ---

FORBIDDEN = {
    "fork": "os.fork()",
    "forkpty": "os.forkpty()",
    "vfork through the C library": "check(ctypes.CDLL(None, use_errno=True).vfork())",
    "clone": "check(ctypes.CDLL(None, use_errno=True).syscall(56 if machine == 'x86_64' else 220, 17, 0, 0, 0, 0))",
    "subprocess": "subprocess.run(['/bin/true'])",
    "posix_spawn": "os.posix_spawn('/bin/true', ['true'], {})",
    "exec": "os.execv('/bin/true', ['true'])",
    "system": "check(-1 if os.system('true') else 0, errno.EPERM)",
    "multiprocessing": "multiprocessing.get_context('fork').Process(target=print).start()",
    "a TCP socket": "socket.socket()",
    "a UDP socket": "socket.socket(type=socket.SOCK_DGRAM)",
    "a local socket": "socket.socket(socket.AF_UNIX)",
    "a netlink socket": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "connect a socket of a pair": "socket.socketpair()[0].connect('/dev/log')",
    "io_uring": "check(ctypes.CDLL(None, use_errno=True).syscall(425, 1, ctypes.create_string_buffer(256)))",
    "kill its parent": "os.kill(os.getppid(), 9)",
    "kill all": "os.kill(-1, 9)",
    "kill its group": "os.killpg(0, 9)",
    "slow its parent down": "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
    "move its parent": "os.sched_setaffinity(os.getppid(), {0})",
    "limit its parent": "resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))",
    "open its parent": "os.pidfd_open(os.getppid())",
    "trace its parent": "check(ctypes.CDLL(None, use_errno=True).ptrace(16, os.getppid(), 0, 0))",
    "outlive its parent": "check(ctypes.CDLL(None, use_errno=True).prctl(1, 0, 0, 0, 0))",
    "shared memory": "check(ctypes.CDLL(None, use_errno=True).shmget(0, 4096, 0o1600))",
    "memory in a file": "os.memfd_create('x')",
    "new namespaces": "check(ctypes.CDLL(None, use_errno=True).unshare(0x10000000))",
    "mount": "check(ctypes.CDLL(None, use_errno=True).mount(b'none', b'/tmp', b'tmpfs', 0, None))",
    "chmod": "os.chmod('.', 0)",
    "chown": "os.chown('.', 1, 1)",
    "utime": "os.utime('.')",
    "truncate": "os.truncate(given, 0)",
    "open to write": "open(given, 'w')",
    "open to append": "open(given, 'a')",
    "remove": "os.remove(given)",
    "rename": "os.rename(given, 'mine')",
    "link": "os.link(given, 'mine')",
    "create beside": "open(given + '2', 'x')",
    "make a folder": "os.mkdir('folder')",
    "make a folder elsewhere": "os.mkdir('/tmp/folder-of-the-sandbox')",
    "make a link": "os.symlink(given, 'mine')",
    "make a pipe": "os.mkfifo('pipe')",
}
FORBIDDEN_WITH_LANDLOCK = {
    "read": "open(given).read()",
    "list": "os.listdir(os.path.dirname(given))",
    "list home folders": "os.listdir('/home')",
    "its parent's environment": "open(f'/proc/{os.getppid()}/environ').read()",
    "its parent's memory": "open(f'/proc/{os.getppid()}/mem', 'rb')",
    "the processes": "os.listdir('/proc')",
    "the users": "open('/etc/passwd').read()",
    "shared memory files": "open('/dev/shm/of-the-sandbox', 'w')",
}
ATTEMPT = """
import ctypes, errno, multiprocessing, os, resource, socket, subprocess, sys
given, machine = input(), os.uname().machine
def check(result, number=None):
    if result == -1:
        raise OSError(number or ctypes.get_errno(), "refused")
"""


def attempts(actions: dict[str, str], given: Path, limits: Limits) -> dict[str, str]:
    """Try each action; what came of it, by its name."""
    code = ATTEMPT
    for name, action in actions.items():
        code += f"try:\n    {action}\n    print({name!r}, 'done', sep='|')\n"
        code += f"except OSError as error:\n    print({name!r}, errno.errorcode[error.errno], sep='|')\n"
    return dict(line.split("|") for line in output_of(code, f"{given}\n".encode(), limits).splitlines())


@pytest.fixture
def file_outside(tmp_path):
    file = tmp_path / "given"
    file.write_text("the tests")
    file.chmod(0o666)
    yield file
    assert file.read_text() == "the tests"
    assert sorted(os.listdir(tmp_path)) == ["given", "temporary"]


def test_nothing_outside_can_be_reached(file_outside, monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "s3cret")
    outcomes = attempts(FORBIDDEN, file_outside, SHORT)
    allowed = {name: {"EPERM", "EACCES"} for name in FORBIDDEN}
    allowed["rename"] = allowed["link"] = {"EXDEV", "EACCES"}  # Landlock's answers where a file would change folders
    assert {name: outcome for name, outcome in outcomes.items() if outcome not in allowed[name]} == {}
    assert outcomes.keys() == FORBIDDEN.keys()
    environment = output_of("import os\nprint(*os.environ)").split()
    assert sorted(environment) == sorted({"HOME", "LANG", "PATH", "PYTHONHASHSEED", "PYTHONUTF8", "TMPDIR"})


def test_files_outside_cannot_be_read(file_outside):
    if ctypes.CDLL(None).syscall(444, None, 0, 1) < 1:
        pytest.skip("the kernel has no Landlock")
    outcomes = attempts(FORBIDDEN_WITH_LANDLOCK, file_outside, SHORT)
    assert outcomes == dict.fromkeys(FORBIDDEN_WITH_LANDLOCK, "EACCES")


def test_without_landlock_nothing_at_all_can_be_written(file_outside):
    limits = Limits(seconds=3, landlock=False)
    outcomes = attempts(
        FORBIDDEN | {"in its folder": "open('x', 'w')", "O_TMPFILE": "os.open('.', os.O_TMPFILE | 2)"},
        file_outside,
        limits,
    )
    assert {name for name, outcome in outcomes.items() if outcome not in ("EPERM", "EACCES")} == set()
    assert output_of("print(open(0).read())", b"7", limits) == "7\n"


def test_no_connection_arrives():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        code = f"import socket\nsocket.create_connection(('127.0.0.1', {server.getsockname()[1]}), timeout=1)"
        assert result_of(code) == ["error"]
        with pytest.raises(TimeoutError):
            server.accept()


def test_a_daemon_cannot_be_left_behind():
    """Double fork, setsid, beat into a file in the folder: no second process comes into being, and the file is gone."""
    code = """
    import os, time
    for step in range(2):
        try:
            if os.fork():
                os._exit(0)
        except PermissionError:
            pass
        try:
            os.setsid()
        except PermissionError:  # it leads its session already
            pass
    while True:
        open("heartbeat", "a").write("x")
        time.sleep(0.01)
    """
    assert result_of(code, limits=Limits(seconds=0.5)) == ["timeout"]  # and the fixture looks for what is left


def test_a_fork_bomb_and_a_thread_bomb_go_off_in_one_process():
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    assert result_of(bomb, limits=Limits(seconds=0.4)) == ["timeout"]
    threads = """
    import _thread, os, time  # Thread.start() would wait for ever for a thread that dies for want of memory
    _thread.stack_size(32 << 10)
    count = 0
    try:
        while count < 10_000:
            _thread.start_new_thread(time.sleep, (100,))
            count += 1
    except (RuntimeError, MemoryError):
        pass
    print(count, flush=True)
    os._exit(0)
    """
    assert 10 < int(output_of(threads, limits=Limits(seconds=60))) < 10_000  # the memory limit ends it


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("open('x', 'wb').write(bytes(100 << 20))", "error"),  # EFBIG
        (
            "for n in range(100):\n    open(str(n), 'wb').write(bytes(15 << 20))\n__import__('time').sleep(9)",
            "too many files",
        ),
        ("for n in range(999):\n    open(str(n), 'wb').close()\n__import__('time').sleep(9)", "too many files"),
    ],
)
def test_the_disk_is_not_filled(code, expected):
    assert result_of(code, limits=Limits(seconds=8)) == [expected]


def test_the_child_dies_with_its_parent(tmp_path):
    """Its parent is killed without a chance to clean up; the child would compute for a minute."""
    code = "from swift_rlvr.sandbox import *; check('while True: pass', read_tests('f()'), Limits(60))"
    environment = os.environ | {"PYTHONPATH": str(PLUGIN), "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", code], env=environment)
    try:
        wait_until(lambda: sandboxed(parent.pid))
        (child,) = sandboxed(parent.pid)
        time.sleep(0.2)
        assert child in sandboxed()
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: child not in sandboxed())


# --- where it cannot be made safe ---


def test_it_refuses_where_there_is_no_filter():
    """In a process whose kernel, as far as it can tell, refuses seccomp filters."""
    code = """
    import ctypes, errno, os, struct
    from swift_rlvr.sandbox import *
    from swift_rlvr.sandbox import lockdown as l
    column = list(l._AUDIT_ARCHITECTURE).index(os.uname().machine)
    program = [
        (l._LOAD, 0, 0, 0), (l._EQUAL, 0, 3, l._CHECKED_SYSCALLS["prctl"][column]), (l._LOAD, 0, 0, 16),
        (l._EQUAL, 0, 1, 22), (l._RETURN, 0, 0, l._FAIL | errno.EINVAL), (l._RETURN, 0, 0, l._ALLOW),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
    libc = ctypes.CDLL(None, use_errno=True)
    l._prctl(libc, 38, 1)
    l._prctl(libc, 22, 2, ctypes.create_string_buffer(struct.pack("HxxxxxxP", 6, ctypes.addressof(code))))
    try:
        check("open('ran', 'w')", read_tests("f()"), Limits())
    except SandboxError as error:
        print(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    environment = os.environ | {"PYTHONPATH": str(PLUGIN)}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=20)
    assert "can't be run safely here, and so not at all: LockdownError: prctl(22) is refused" in result.stdout, (
        result.stderr
    )


def test_it_refuses_where_the_interpreter_does_not_start(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(SandboxError, match="/bin/false ends at once with status 1"):
        result_of("x = 1")


# --- the filter, also for the architecture that this machine has not ---


def verdict(
    machine: str, number: int, *arguments: int, read_only: bool = False, architecture: int | None = None
) -> str:
    """Interpret the filter as the kernel does."""
    arguments = [*arguments, *[0] * (6 - len(arguments))]
    data = [number, architecture or lockdown._AUDIT_ARCHITECTURE[machine], 0, 0]
    data += [half for each in arguments for half in (each & 0xFFFFFFFF, each >> 32)]
    program, position, register = lockdown._program(machine, 4321, read_only), 0, 0
    while True:
        code, if_true, if_false, constant = program[position]
        position += 1
        if code == lockdown._LOAD:
            register = data[constant // 4]
        elif code == lockdown._RETURN:
            return {0x7FFF0000: "allow", 0x80000000: "kill", 0x50001: "EPERM", 0x50026: "ENOSYS"}[constant]
        else:
            true = {0x15: register == constant, 0x35: register >= constant, 0x45: bool(register & constant)}[code]
            position += if_true if true else if_false


@pytest.mark.parametrize(
    ("x86_64", "aarch64", "arguments", "expected"),
    [
        (0, 63, (0,), "allow"),  # read
        (9, 222, (0, 4096), "allow"),  # mmap
        (53, 199, (1, 1), "allow"),  # socketpair
        (41, 198, (2, 1), "EPERM"),  # socket
        (59, 221, (), "EPERM"),  # execve
        (56, 220, (0x3D0F00,), "allow"),  # clone as pthread_create calls it
        (56, 220, (0x1200011,), "EPERM"),  # clone as fork calls it
        (435, 435, (), "ENOSYS"),  # clone3
        (62, 129, (4321, 9), "allow"),  # kill, itself
        (62, 129, (4322, 9), "EPERM"),
        (62, 129, (0, 9), "EPERM"),
        (62, 129, (0xFFFFFFFF, 9), "EPERM"),
        (234, 131, (4321, 4321, 6), "allow"),  # tgkill, as abort() does
        (302, 261, (0, 7), "allow"),  # prlimit64
        (302, 261, (4321, 7), "allow"),
        (302, 261, (1, 7), "EPERM"),
        (157, 167, (1, 0), "EPERM"),  # prctl: the signal at its parent's death
        (157, 167, (15, 0), "allow"),  # prctl: its name
        (425, 425, (), "EPERM"),  # io_uring_setup
        (257, 56, (0, 0, os.O_WRONLY), "allow"),  # openat, which Landlock looks at
    ],
)
def test_the_filter_on_both_architectures(x86_64, aarch64, arguments, expected):
    assert verdict("x86_64", x86_64, *arguments) == verdict("aarch64", aarch64, *arguments) == expected


def test_the_filter_knows_no_way_around():
    assert verdict("x86_64", 41, architecture=0x40000003) == "kill"  # 32-bit calls, whose numbers are others
    assert verdict("x86_64", 0x40000000 + 41) == "kill"  # x32
    for flags, expected in ((os.O_RDONLY | os.O_CLOEXEC, "allow"), (os.O_RDWR, "EPERM"), (os.O_CREAT, "EPERM")):
        assert verdict("x86_64", 257, 0, 0, flags, read_only=True) == expected
        assert verdict("aarch64", 56, 0, 0, flags, read_only=True) == expected
        assert verdict("x86_64", 2, 0, flags, read_only=True) == expected  # open
    assert verdict("x86_64", 87, read_only=True) == verdict("aarch64", 35, read_only=True) == "EPERM"  # unlink


# --- lies ---

PIPES = """
import os
def each_pipe(action):
    for fd in range(3, 64):
        try:
            action(fd)
        except OSError:
            pass
"""


@pytest.mark.parametrize(
    "code",
    [
        "each_pipe(lambda fd: os.write(fd, b'{}\\n' * 9))",
        "each_pipe(lambda fd: os.write(fd, b'\\xff\\xfe\\n'))",
        "each_pipe(lambda fd: os.write(fd, b'[' * 60000 + b'\\n'))",
        "each_pipe(lambda fd: os.write(fd, b'9' * 60000 + b'\\n'))",
        "each_pipe(lambda fd: [os.write(fd, b'x' * 60000) for _ in range(9)])",
        'each_pipe(lambda fd: os.write(fd, b\'{"kind": "refused"}\\n\'))',  # must not stop a training
        'each_pipe(lambda fd: os.write(fd, b\'{"kind": [], "detail": [[1]]}\\n\'))',
        'each_pipe(lambda fd: os.write(fd, b\'{"kind": "loaded"}\\n{"kind": "done"}\\n\' * 9))',
        'each_pipe(lambda fd: os.write(fd, b\'{"kind": "loaded"}\\n{"kind": "value", "value": true}\\n\' * 9))',
        "each_pipe(os.close)",
    ],
)
def test_what_is_said_unasked_is_not_believed(code):
    for tests in ("assert f(1) == 2", "assert f(1)", "for x in [1]: assert f(x)", [{"input": "", "output": "1"}]):
        assert "passed" not in result_of(PIPES + code, tests, Limits(seconds=1))


@pytest.mark.parametrize(
    "value",
    [
        *([], ["list", ["list"], 3], ["set", ["list"]], ["int", "x"], ["int"], ["int", 3], ["dict", 3], ["dict", [1]]),
        *(
            ["fraction", "1", "0"],
            ["bytes", "xyz"],
            [["a"]],
            {"a": 1},
            ["complex", []],
            ["nothing"],
            ["dict", [["list"], 1]],
        ),
    ],
)
def test_a_value_that_was_written_by_somebody_else_is_read_or_refused(value):
    """The errors are those that `_check_step` expects."""
    try:
        read = _decode(value)
    except (ValueError, TypeError, ZeroDivisionError):
        return
    assert isinstance(read, list)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.complex_numbers(allow_nan=False),
    lambda each: (
        st.lists(each)
        | st.tuples(each, each)
        | st.dictionaries(st.integers() | st.text(), each)
        | st.frozensets(st.integers())
    ),
    max_leaves=20,
)


@given(PLAIN)
def test_values_come_back_as_they_were(value):
    back = _decode(json.loads(json.dumps(encode(value))))
    assert back == value
    assert type(back) is (set if type(value) is frozenset else type(value))


def test_signals_of_the_parent_are_left_alone():
    """No alarm, no handler: it must work beside a trainer that has its own."""
    before = [signal.getsignal(each) for each in (signal.SIGALRM, signal.SIGCHLD, signal.SIGPIPE)]
    result_of("def f(x): return 2")
    assert [signal.getsignal(each) for each in (signal.SIGALRM, signal.SIGCHLD, signal.SIGPIPE)] == before
