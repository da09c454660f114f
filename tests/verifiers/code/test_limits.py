"""What a run uses is counted whatever it does to hide it, nothing of it can be seen by another, and
the processes that are kept for the next run end with their owner.
"""

import copy
import ctypes
import gc
import importlib
import math
import os
import pickle
import signal
import subprocess
import sys
import sysconfig
import tempfile
import textwrap
import time
from contextlib import closing
from pathlib import Path

import pytest

from helpers import done_within
from paths import PLUGIN
from swift_rlvr.rewards.code import CodeReward
from swift_rlvr.verifiers.code import Limits, SandboxError, check, process, read_tests, usage
from swift_rlvr.verifiers.code.process import Zygote, Zygotes, sandboxed
from swift_rlvr.verifiers.code.usage import Clock

GENEROUS = Limits(seconds=60, memory_mb=256)
ONE_CASE = [{"input": "", "output": "1"}]


def reason(code: str, limits: Limits = GENEROUS, tests: object = ONE_CASE) -> str:
    """What becomes of a program."""
    [verdict] = check(textwrap.dedent(code), read_tests(tests), limits)
    return verdict.reason


def run(code: str, limits: Limits = GENEROUS) -> tuple[str, process.Child]:
    """The output of a program that runs to its end, and the child that it has run in."""
    job = {"kind": "program", "code": textwrap.dedent(code)}
    with (
        closing(Zygote(limits.packages)) as zygote,
        sandboxed(zygote, limits, math.inf, job, b"") as child,
    ):
        output, report = child.run(1 << 20)
    assert report is None, report
    return output.decode(), child


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition) -> None:
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# --- what is written ---

HOLDS_WHAT_IS_REMOVED = {
    # One page of each is enough to keep all of it on the disk.
    "by mappings": """
        import mmap, os, time
        kept = []
        for _ in range(60):
            file = os.open("x", os.O_RDWR | os.O_CREAT)
            for _ in range(15):
                os.write(file, bytes(1 << 20))
            kept.append(mmap.mmap(file, 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ))
            os.close(file)
            os.remove("x")
        time.sleep(1000)
        """,
    "by descriptors": """
        import os, time
        for _ in range(50):
            file = os.open("x", os.O_RDWR | os.O_CREAT)
            for _ in range(15):
                os.write(file, bytes(1 << 20))
            os.remove("x")
        time.sleep(1000)
        """,
    "that never had a name": """
        import os, time
        for _ in range(50):
            file = os.open(".", os.O_RDWR | os.O_TMPFILE)
            for _ in range(15):
                os.write(file, bytes(1 << 20))
        time.sleep(1000)
        """,
    "by renaming over it": """
        import os, time
        for n in range(50):
            file = os.open("y", os.O_RDWR | os.O_CREAT)
            for _ in range(15):
                os.writev(file, [bytes(1 << 20)])
            os.rename("y", "x")
        time.sleep(1000)
        """,
    "copied by the kernel": """
        import os, time
        source = os.open("source", os.O_RDWR | os.O_CREAT)
        os.write(source, bytes(15 << 20))
        for _ in range(50):
            file = os.open("x", os.O_RDWR | os.O_CREAT)
            os.sendfile(file, source, 0, 15 << 20)
            os.remove("x")
        time.sleep(1000)
        """,
}


@pytest.mark.parametrize("name", HOLDS_WHAT_IS_REMOVED)
def test_removed_files_that_are_held_count(name):
    assert reason(HOLDS_WHAT_IS_REMOVED[name]) == "too many files"


def test_no_file_is_written_by_a_shared_mapping():
    """The kernel does not count it."""
    code = """
    import mmap, os
    file = os.open("x", os.O_RDWR | os.O_CREAT)
    os.write(file, bytes(4096))
    for prot in (mmap.PROT_READ | mmap.PROT_WRITE, mmap.PROT_READ):
        try:
            mmap.mmap(file, 4096, flags=mmap.MAP_SHARED, prot=prot)
            print("mapped")
        except PermissionError:
            print("refused")
    print(len(mmap.mmap(-1, 4096)), len(mmap.mmap(file, 4096, flags=mmap.MAP_PRIVATE)))
    """
    assert run(code)[0].split() == ["refused", "refused", "4096", "4096"]


def test_output_and_pipes_within_their_limits_are_no_files():
    code = """
    import os, socket
    a, b = socket.socketpair()
    for _ in range(100):
        a.sendall(bytes(1 << 10))
        b.recv(1 << 10)
    print("x" * 1_000_000)
    """
    assert len(run(code)[0]) == 1_000_001


# --- time ---


def test_code_that_computes_when_it_is_seen_is_seen_to_sleep():
    """It says by a byte of output when its parent wakes up, and computes just then."""
    code = """
    import os, time
    for _ in range(40):
        os.write(1, b"x")
        end = time.perf_counter() + 0.03
        while time.perf_counter() < end: pass
        time.sleep(0.05)
    """
    _, child = run(code)
    assert child._clock.asleep > 0.8  # of the 2 seconds that it sleeps


@pytest.mark.parametrize(
    ("states", "asleep", "blocked"),
    [
        ("S", 0.1, 0),
        ("T", 0.1, 0),  # stopped
        ("SSS", 0.1, 0),
        ("", 0.1, 0),
        ("R", 0, 0),
        ("SRD", 0, 0),
        ("D", 0, 0.1),  # as in fsync
        ("SDS", 0, 0.1),
    ],
)
def test_what_speaks_for_the_time_since_the_last_look(states, asleep, blocked, monkeypatch):
    monkeypatch.setattr(usage, "_states_of_threads", lambda process: states)
    clock = Clock(os.getpid(), longest=0.1)
    clock.waited(0.04)
    clock.waited(99)  # this process got no core for so long; the other may have got none either
    clock.look(lambda: False)
    clock.look(lambda: False)  # nothing has passed
    assert (clock.asleep, clock.blocked) == (asleep, blocked)


def test_an_answer_that_comes_while_it_is_looked_at_is_no_sleep(monkeypatch):
    answers = []

    def answers_and_sleeps(process):
        answers.append("{}")
        return "S"

    monkeypatch.setattr(usage, "_states_of_threads", answers_and_sleeps)
    clock = Clock(os.getpid(), longest=0.1)
    clock.waited(0.1)
    clock.look(lambda: bool(answers))
    clock.judge(is_done=True)
    assert clock.asleep == 0.0
    clock.waited(0.1)
    clock.look(lambda: bool(answers))
    clock.judge(is_done=False)  # it was no answer
    assert clock.asleep == 0.1


def test_looks_come_at_times_that_nobody_can_tell():
    clock = Clock(os.getpid(), longest=0.1)
    pauses = []
    for _ in range(50):
        clock.look(lambda: False)
        pauses.append(clock.next_look - time.monotonic())
    assert len(set(pauses)) == 50
    assert max(pauses) <= 0.1 and max(pauses) - min(pauses) > 0.02


def test_time_on_disk_counts_as_time_of_the_code(monkeypatch):
    monkeypatch.setattr(usage, "_states_of_threads", lambda process: "D")
    with done_within(300):
        assert reason("import time\ntime.sleep(1000)", Limits(seconds=0.5)) == "timeout"


def test_a_test_has_an_end_on_the_wall(monkeypatch):
    """Also one that waits for a core all the time, for all that can be seen."""
    monkeypatch.setattr(usage, "_states_of_threads", lambda process: "R")
    monkeypatch.setattr(process, "LOAD", 2)
    checking = importlib.import_module("swift_rlvr.verifiers.code.check")
    monkeypatch.setattr(checking, "ALL_TESTS", 50)
    with done_within(300):
        assert reason("import time\ntime.sleep(1000)", Limits(seconds=1)) == "timeout"


def test_output_byte_by_byte_is_read_in_larger_parts(monkeypatch):
    reads, read = [], process.Child._read

    def counted(child, pipe):
        reads.append(pipe)
        return read(child, pipe)

    monkeypatch.setattr(process.Child, "_read", counted)
    output, _ = run("import os\nfor _ in range(50_000): os.write(1, b'x')")
    assert len(output) == 50_000
    assert len(reads) < 5_000


def test_nothing_is_written_to_the_disk_itself():
    """fsync in a loop would wait for it nearly all of the time; the folder is removed anyhow."""
    code = """
    import fcntl, mmap, os, resource, sqlite3
    file = os.open("x", os.O_RDWR | os.O_CREAT)
    for _ in range(100):
        os.pwrite(file, b"x", 0)
        os.fsync(file)
        os.fdatasync(file)
    print("blocks", resource.getrusage(resource.RUSAGE_SELF).ru_oublock < 100)
    attempts = {
        "O_SYNC": lambda: os.open("x", os.O_RDWR | os.O_SYNC),
        "O_DSYNC": lambda: os.open("x", os.O_RDWR | os.O_DSYNC),
        "O_DIRECT": lambda: os.open("x", os.O_RDWR | os.O_DIRECT),
        "F_SETFL": lambda: fcntl.fcntl(file, fcntl.F_SETFL, os.O_DIRECT),
        "RWF_SYNC": lambda: os.pwritev(file, [b"x"], 0, os.RWF_SYNC),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
            print(name, "done")
        except PermissionError:
            print(name, "refused")
    fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_NONBLOCK)
    base = sqlite3.connect("base")
    with base:
        base.execute("create table t (x)")
        base.execute("insert into t values (7)")
    print(*base.execute("select x from t").fetchone(), sorted(os.listdir(".")))
    """
    lines = run(code)[0].splitlines()
    refused = [
        f"{name} refused" for name in ("O_SYNC", "O_DSYNC", "O_DIRECT", "F_SETFL", "RWF_SYNC")
    ]
    assert lines == ["blocks True", *refused, "7 ['base', 'x']"]


def test_the_parent_can_list_each_folder_that_code_makes():
    """Else a user other than root cannot count the files in it."""
    code = """
    import os
    os.umask(0o577)
    os.mkdir("a")
    for mode in (0o300, 0o400, 0o077, 0o500, 0o750):
        try:
            os.mkdir(oct(mode), mode)
        except PermissionError:
            pass
    os.umask(0o077)
    os.mkdir("b")
    for name in sorted(os.listdir(".")):
        print(name, oct(os.stat(name).st_mode & 0o777))
    """
    made = ["0o500 0o500", "0o750 0o750", "a 0o755", "b 0o700"]
    assert run(code)[0].splitlines() == made


# --- threads ---


@pytest.mark.skipif(os.getuid() == 0, reason="the kernel limits no threads of root's")
def test_threads_are_limited_by_the_kernel():
    code = """
    import _thread, os, time
    _thread.stack_size(32 << 10)
    count = 0
    try:
        while count < 3000:
            _thread.start_new_thread(time.sleep, (1000,))
            count += 1
    except (RuntimeError, MemoryError):
        pass
    os.write(1, b"%d" % count)
    os._exit(0)
    """
    if not mounts_can_be_given_up():
        pytest.skip("the kernel has no namespaces of users for this one")
    assert 100 < int(run(code)[0]) < 200


def test_a_dozen_threads_work():
    code = """
    import threading
    threads = [threading.Thread(target=print, args=["x"]) for _ in range(50)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    """
    assert run(code)[0].split() == ["x"] * 50


def test_forty_threads_work_at_a_time_in_the_default_memory():
    code = """
    import threading
    meeting = threading.Barrier(41, timeout=20)
    def meet():
        values = [[number] for number in range(2000)]
        meeting.wait()
    threads = [threading.Thread(target=meet) for _ in range(40)]
    for thread in threads: thread.start()
    meeting.wait()
    for thread in threads: thread.join()
    print("met")
    """
    assert run(code, Limits(seconds=60))[0] == "met\n"


# --- what is left of a run ---


def mounts_can_be_given_up() -> bool:
    code = """
    import sys
    from swift_rlvr.verifiers.code import lockdown
    folder = sys.argv[1]
    lockdown.give_up_mounts(folder)
    open(folder + "/x", "w").close()
    try:
        open(folder + "x", "w").close()
    except OSError as error:
        sys.exit(error.errno)
    """
    environment = os.environ | {"PYTHONPATH": str(PLUGIN)}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", textwrap.dedent(code), folder]
        return subprocess.run(command, env=environment, timeout=600).returncode == 30  # EROFS


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package that code may read, with a file, a folder and a link of long ago."""
    folder = tmp_path / "of_the_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "file").write_text("x")
    (folder / "folder").mkdir()
    (folder / "link").symlink_to("file")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder


def test_what_code_reads_cannot_be_seen_afterwards(package):
    """By the time of the last access, which the next completion could ask for."""
    if not mounts_can_be_given_up():
        pytest.skip("the kernel has no namespaces of mounts for this user")
    long_ago = time.time() - 1e6
    places = [package / name for name in ("file", "folder", "link")]
    for place in places:
        os.utime(place, (long_ago, long_ago), follow_symlinks=False)
    before = [os.lstat(place).st_atime for place in places]

    code = f"""
    import os
    os.chdir({str(package)!r})
    print(open("file").read(), os.listdir("folder"), open("link").read(), os.readlink("link"))
    """
    limits = Limits(seconds=60, packages=("of_the_test",))
    assert run(code, limits)[0] == "x [] x file\n"
    assert [os.lstat(place).st_atime for place in places] == before


SEEN_BY_OTHERS = {
    "free disk": "os.statvfs('.')",
    "load and free memory": "check(libc.sysinfo(bytes(512)))",
    "time of another process": "time.clock_gettime(~os.getppid() << 3 | 2)",
    "group of another process": "os.getpgid(os.getppid())",
    "session of another process": "os.getsid(os.getppid())",
    "cores of another process": "os.sched_getaffinity(os.getppid())",
    "priority of another process": "os.getpriority(os.PRIO_PROCESS, os.getppid())",
    "what is in the cache of files": "os.preadv(library, [bytearray(1)], 0, os.RWF_NOWAIT)",
    "pages in the cache": "check(libc.mincore(ctypes.c_void_p(id(0) & ~4095), 4096, bytes(1)))",
    "read locks": "fcntl.fcntl(library, fcntl.F_GETLK, bytes(32))",
    "locks of open files": "fcntl.fcntl(library, 37, bytes(32))",
    "locks of whole files": "fcntl.flock(library, fcntl.LOCK_SH)",
    "leases": "fcntl.fcntl(library, fcntl.F_SETLEASE, fcntl.F_RDLCK)",
    "notices of a folder": "fcntl.fcntl(library, fcntl.F_NOTIFY, 1)",
    "notices of files": "check(libc.inotify_init())",
    "notices of all files": "check(libc.fanotify_init(0, 0))",
    "semaphores": "check(libc.semget(1, 1, 0o1600))",
    "queues of messages": "check(libc.msgget(1, 0o1600))",
    "keys": "check(libc.syscall(248, b'user', b'x', b'x', 1, -4))",
    "an abstract socket": "socket.socket(socket.AF_UNIX)",
}


def test_channels_to_other_runs_are_closed():
    code = """
    import ctypes, errno, fcntl, os, socket, time
    libc, library = ctypes.CDLL(None, use_errno=True), os.open(os.__file__, os.O_RDONLY)
    def check(result):
        if result == -1:
            raise OSError(ctypes.get_errno(), "refused")
    """
    code = textwrap.dedent(code)
    for name, action in SEEN_BY_OTHERS.items():
        code += f"try:\n    {action}\n    print({name!r}, 'done', sep='|')\n"
        code += f"except OSError as error:\n    print({name!r}, errno.errorcode[error.errno], sep='|')\n"
    outcomes = dict(line.split("|") for line in run(code)[0].splitlines())
    assert {name: each for name, each in outcomes.items() if each != "EPERM"} == {}
    assert outcomes.keys() == SEEN_BY_OTHERS.keys()


@pytest.mark.skipif(
    os.getuid() != 0 or not mounts_can_be_given_up(), reason="only root can hide processes"
)
def test_files_and_threads_of_another_run_are_not_seen():
    """By `stat` of /proc, which nothing refuses."""
    job = {"kind": "program", "code": "import sys; sys.stdin.read()"}
    with (
        closing(Zygote()) as zygote,
        sandboxed(zygote, GENEROUS, math.inf, job, b"") as child,
    ):
        other = child._process.pid
        code = f"""
        import os
        for process in {other}, {os.getpid()}, os.getpid():
            print(os.path.exists(f"/proc/{{process}}/fd"))
        """
        assert run(code)[0].split() == ["False", "False", "True"]


def test_its_own_clocks_and_numbers_are_there():
    code = """
    import os, time
    print(time.process_time() > 0, time.thread_time() > 0, time.monotonic() > 0, time.time() > 0)
    print(os.getpgid(0) > 0, os.getsid(0) > 0, len(os.sched_getaffinity(0)) > 0)
    print(os.getpgid(os.getpid()) > 0, os.getpriority(os.PRIO_PROCESS, 0) > -99)
    """
    assert set(run(code)[0].split()) == {"True"}


def test_packages_of_the_base_interpreter_are_not_there():
    installed: list[Path] = []
    for scheme in ("purelib", "platlib"):
        base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
        folder = Path(sysconfig.get_path(scheme, vars=base))
        installed += folder.glob("*/*.py")
    for debians in ("/usr/lib/python3/dist-packages", "/usr/local/lib/python3/dist-packages"):
        installed += Path(debians).glob("*.py")
    if not installed:
        pytest.skip("nothing is installed there")
    for file in (installed[0], installed[-1]):
        code = f"""
        try:
            open({str(file)!r})
        except PermissionError:
            print("refused")
        """
        assert run(code)[0] == "refused\n", file


# --- processes that are kept ---

TESTS = read_tests("assert f(1) == 2")


CTRL_C = """
import os, signal, sys, threading, time
from swift_rlvr.rewards.code import CodeReward

reward = CodeReward(timeout=600, max_workers=3)
right = "```python\\ndef f(x): return x\\n```"
tests = [["assert f(1) == 1"]]
assert reward([right], tests=tests) == [1.0]
threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
codes = [f"```python\\ndef f(x):\\n    while True: x += {n}\\n```" for n in range(9)]
try:
    reward(codes, tests=tests * 9)
except KeyboardInterrupt:
    assert reward([right.replace("return x", "return x + 0")], tests=tests) == [1.0]
    print("stopped")
"""


def test_ctrl_c_ends_all_workers_at_once():
    """Each would compute for ten minutes; after it the reward works as before."""
    environment = os.environ | {"PYTHONPATH": str(PLUGIN)}
    command = [sys.executable, "-c", CTRL_C]
    ended = subprocess.run(command, env=environment, timeout=500, capture_output=True, text=True)
    assert ended.stdout == "stopped\n", ended.stderr


@pytest.mark.parametrize("number", [1, 2])
def test_a_process_that_is_killed_before_any_code_runs_is_started_again(number, monkeypatch):
    """That of the code, or that of the tests: by the machine, where it has no memory left."""
    # Each child stops before it locks itself down.
    stop = "import os, signal; f = lockdown.lock_down; lockdown.lock_down = lambda *a, **b: "
    stop += "(os.kill(os.getpid(), signal.SIGSTOP), f(*a, **b)); child.serve"
    monkeypatch.setattr(process, "_START", process._START.replace("child.serve", stop))
    children: list = []
    forked = Zygote.fork

    def fork(zygote, *arguments):
        child = forked(zygote, *arguments)
        children.append(child)
        stat = Path(f"/proc/{child.pid}/stat")
        wait_until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "T")
        os.kill(child.pid, signal.SIGKILL if len(children) == number else signal.SIGCONT)
        return child

    monkeypatch.setattr(Zygote, "fork", fork)
    (verdict,) = check("def f(x): return x", read_tests("y = [f(1)]\nassert y == [1]"), Limits(60))
    assert verdict.reason == "passed" and len(children) == 2 + number


def test_a_right_program_is_not_blamed_for_the_end_of_the_process_that_started_it(monkeypatch):
    received = process.Child.receive
    killed: list[process.Child] = []

    def receive(child, *options):
        report = received(child, *options)
        if report.get("kind") == "locked down" and not killed:
            killed.append(child)
            os.kill(child._process._zygote.pid, 9)
        return report

    monkeypatch.setattr(process.Child, "receive", receive)
    (verdict,) = check("def f(x): return x", read_tests("assert f(1) == 1"), Limits(60), True)
    assert verdict.reason == "passed" and killed


RIGHT = "def f(x): return x + 1"


def passes(zygotes: Zygotes) -> bool:
    return check(RIGHT, TESTS, GENEROUS, zygotes=zygotes)[0].reason == "passed"


def test_one_is_kept_for_the_next_completion():
    with closing(Zygotes()) as zygotes:
        with zygotes.borrow() as first:
            pass
        assert passes(zygotes)
        with zygotes.borrow() as again, zygotes.borrow() as another:
            assert again is first and another is not first
    wait_until(lambda: not is_running(first.pid) and not is_running(another.pid))
    assert not os.path.exists(first.folder)


def test_one_that_was_killed_is_replaced():
    with closing(Zygotes()) as zygotes:
        with zygotes.borrow() as first:
            pass
        os.kill(first.pid, signal.SIGKILL)
        assert passes(zygotes)
        assert not os.path.exists(first.folder)


def test_one_that_is_killed_while_it_is_used_is_replaced(monkeypatch):
    """Just before it is asked for a child."""
    killed: list[int] = []
    fork = Zygote.fork

    def kill_first(zygote, *arguments):
        if not killed:
            killed.append(zygote.pid)
            os.kill(zygote.pid, signal.SIGKILL)
            zygote._process.wait()
        return fork(zygote, *arguments)

    with closing(Zygotes()) as zygotes:
        assert passes(zygotes)
        monkeypatch.setattr(Zygote, "fork", kill_first)
        assert passes(zygotes) and killed


def test_it_is_closed_after_an_error():
    """It may still be about to answer what was asked."""
    with closing(Zygotes()) as zygotes:
        with pytest.raises(KeyboardInterrupt), zygotes.borrow() as broken:
            raise KeyboardInterrupt
        assert not is_running(broken.pid)


def test_it_ends_with_the_reward():
    reward = CodeReward()
    assert reward([f"```python\n{RIGHT} # kept\n```"], tests=["assert f(1) == 2"]) == [1.0]
    [zygote] = reward._zygotes._idle
    pid = zygote.pid
    assert is_running(pid)
    del reward, zygote
    gc.collect()
    wait_until(lambda: not is_running(pid))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each))])
def test_a_copy_starts_its_own(copied):
    with closing(Zygotes()) as zygotes:
        assert passes(zygotes)
        with closing(copied(zygotes)) as others:
            assert passes(others)
            assert zygotes._idle[0].pid != others._idle[0].pid
        assert passes(zygotes)


IN_A_PROCESS = """
import os, signal, sys, threading, time
from swift_rlvr.verifiers.code import Limits, check, read_tests
from swift_rlvr.verifiers.code.process import Zygotes
tests, limits, zygotes = read_tests("assert f(1) == 2"), Limits(60), Zygotes()
def passes():
    return check("def f(x): return x + 1", tests, limits, zygotes=zygotes)[0].reason == "passed"
assert passes()
print(zygotes._idle[0].pid, flush=True)
"""
ENDS = {
    "returns": "",
    "is killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "is killed with its group": "os.killpg(0, signal.SIGKILL)",
    "is killed while code writes": """
code = "import os\\nn = 0\\nwhile True:\\n    n += 1\\n    os.mkdir(str(n % 99))\\n    os.rmdir(str(n % 99))"
threading.Thread(target=check, args=(code, tests, limits), kwargs={"zygotes": zygotes}).start()
time.sleep(0.5)
os.kill(os.getpid(), signal.SIGKILL)
""",
    "is killed after what forks for it": """
with open(f"/proc/{zygotes._idle[0].pid}/task/{zygotes._idle[0].pid}/children") as file:
    os.kill(int(file.read()), signal.SIGKILL)
os.kill(os.getpid(), signal.SIGKILL)
""",
    "leaves at once": "os._exit(0)",
    "has a fork that goes on": """
fork = os.fork()
if fork == 0:
    os.close(1)  # who reads the parent's output is not to wait for the fork
    time.sleep(1800)
print(fork, flush=True)
""",
    "has a fork that runs code": """
first = zygotes._idle[0].pid
child = os.fork()
assert passes()
assert (zygotes._idle[0].pid == first) == (child != 0)
if child:
    assert os.waitpid(child, 0)[1] == 0
    assert passes() and zygotes._idle[0].pid == first  # which the end of the fork has not ended
""",
}


@pytest.mark.parametrize("end", ENDS)
def test_it_ends_with_the_process(end, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(PLUGIN), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-c", IN_A_PROCESS + ENDS[end]]
    ended = subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        timeout=600,
        text=True,
        start_new_session=True,
    )
    expected = -signal.SIGKILL if end.startswith("is killed") else 0
    assert ended.returncode == expected
    pid, *forks = map(int, ended.stdout.split())
    wait_until(lambda: not is_running(pid))
    assert os.listdir(tmp_path) == []
    for fork in forks:
        assert is_running(fork)
        os.kill(fork, signal.SIGKILL)


def test_a_fork_of_the_trainer_leaves_what_runs_alone():
    """It neither kills the child at its own end, nor holds the child's input open."""
    job = {"kind": "program", "code": "import sys; print(len(sys.stdin.read()))"}
    with (
        closing(Zygote()) as zygote,
        sandboxed(zygote, GENEROUS, time.monotonic() + 60, job, b"1\n") as child,
    ):
        fork = os.fork()
        if fork == 0:
            child.close()
            time.sleep(600)
            os._exit(0)
        try:
            output, _ = child.run(100)
        finally:
            os.kill(fork, signal.SIGKILL)
            os.waitpid(fork, 0)
    assert output == b"2\n"


def test_a_fork_of_the_trainer_holds_no_pipe_of_a_child_that_is_being_started():
    """Another thread of a trainer may fork at any moment: right programs were stopped as asleep."""
    forks = []

    class Interrupted(Zygote):
        def fork(self, pipes, request):
            forks.append(os.fork())
            if forks[-1] == 0:
                time.sleep(600)
                os._exit(0)
            return super().fork(pipes, request)

    job = {"kind": "program", "code": "import sys; print(len(sys.stdin.read()))"}
    try:
        with (
            closing(Interrupted()) as zygote,
            sandboxed(zygote, GENEROUS, time.monotonic() + 60, job, b"1\n") as child,
        ):
            child.allow(3)
            output, _ = child.run(100)
    finally:
        for fork in forks:
            os.kill(fork, signal.SIGKILL)
            os.waitpid(fork, 0)
    assert output == b"2\n"


def test_it_outlives_the_thread_that_started_it():
    code = """
    import threading
    thread = threading.Thread(target=passes)
    thread.start()
    thread.join()
    pid = zygotes._idle[0].pid
    time.sleep(0.1)
    assert passes() and zygotes._idle[0].pid == pid
    """
    script = IN_A_PROCESS.replace("assert passes()\nprint(zygotes._idle[0].pid, flush=True)\n", "")
    environment = os.environ | {"PYTHONPATH": str(PLUGIN)}
    command = [sys.executable, "-c", script + textwrap.dedent(code)]
    subprocess.run(command, env=environment, check=True, timeout=600)


@pytest.mark.parametrize("is_over", [False, True])
def test_one_that_never_starts_is_an_error_of_the_machine(monkeypatch, is_over):
    def start(*arguments, **options):
        started = popen(*arguments, **options)
        if is_over:  # before the first message is sent to it
            started.wait()
        return started

    popen = subprocess.Popen
    monkeypatch.setattr(process.subprocess, "Popen", start)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with closing(Zygotes()) as zygotes, pytest.raises(SandboxError, match="exit status 1"):
        passes(zygotes)


def test_a_machine_that_cannot_confine_it_says_why(monkeypatch):
    start = process._START.replace(
        "child.serve", "lockdown._PR_SET_NO_NEW_PRIVS = 999; child.serve"
    )
    monkeypatch.setattr(process, "_START", start)
    with closing(Zygotes()) as zygotes, pytest.raises(SandboxError, match=r"prctl\(999\)"):
        passes(zygotes)


def test_the_parent_can_see_what_a_child_writes():
    with closing(Zygote()) as zygote, sandboxed(zygote, GENEROUS, math.inf) as child:
        if ctypes.CDLL(None).syscall(444, None, 0, 1) < 1:
            pytest.skip("the kernel has no Landlock")
        assert usage.written(child._process.pid) > 0


def test_cases_for_which_no_time_is_left_are_not_passed(monkeypatch):
    """It is over between two cases where the last one has used more than was left."""
    monkeypatch.setattr(process.Child, "used", property(lambda child: 1000.0))
    program = read_tests({"inputs": ["1", "2"], "outputs": ["1", "2"]})
    assert [each.reason for each in check("print(input())", program, Limits())] == [
        "passed",
        "timeout",
    ]
