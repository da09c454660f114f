"""What the sandboxed child does to itself before it runs untrusted code. None of it can be undone
from inside.

It needs no privilege, namespace or container setting, only a Linux kernel with seccomp filters, on
x86_64 or aarch64. The filter is a list of the system calls that are allowed: those that CPython and
its standard library need in order to compute, to start threads and to use files. The kernel
enforces it whatever Python or C code asks for. So there are

- no other processes: fork and exec fail, threads work. There are no daemons, no fork bombs and no
  shell, the memory limit of the process is the limit of the run, and killing the one process ends
  all of it;
- no network, and no socket except a stream `socketpair`, which asyncio needs and which cannot be
  addressed;
- no signals to other processes, and no tracing, priority or limit of them;
- no memory that outlives the process (System V, memfd), no io_uring, no bpf, no namespaces, no
  mounts, no keys, and no change of the permissions, owners or times of files.

A call that is not on the list fails with EPERM, or from number 424 on (Linux 5.1) with ENOSYS, as
on an older kernel: on that alone the C library and Python fall back to an older call. For instance
`clone3` keeps its flags in memory, where a filter cannot see them; on ENOSYS glibc uses `clone`,
which is checked. Neither answer lets a call through.

Resource limits (CPU, address space, file size, open files, no core dump) cannot be raised again
because all capabilities are dropped, which binds root as well. RLIMIT_NPROC is not used: it counts
all processes of the user and does not bind root. With Landlock (Linux 5.13) only Python's own
library and what that needs can be read, and only the run's folder can be written. Without it
nothing can be written, but all that the user can read stays readable.

Why not libseccomp: its Python binding is not on PyPI, and pyseccomp, which is, needs a
libseccomp.so.2 that slim images and conda environments lack, so that code could not be run there.
And as a plain list of instructions the filter can be tested for both architectures on one machine.
The child imports this outside the package: only the standard library.
"""

import ctypes
import errno
import os
import resource
import signal
import struct
import sys
from collections.abc import Sequence

_LIBC = ctypes.CDLL(None, use_errno=True)
_AUDIT_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_Instruction = tuple[int, int, int, int]  # BPF: code, jump if true, jump if false, constant


def _numbers(table: str) -> dict[str, dict[str, int]]:
    """A table of calls: name -> {machine: number}."""
    rows = (row.split() for row in table.split("|"))
    return {
        name: {
            machine: int(number)
            for machine, number in zip(_AUDIT_ARCHITECTURE, pair, strict=True)
            if number != "-"
        }
        for name, *pair in rows
    }


# Name, number on x86_64, number on aarch64 ("-": no such call), from Linux' unistd_64.h and
# asm-generic/unistd.h
_ALLOWED = _numbers("""
    read 0 63 | write 1 64 | readv 19 65 | writev 20 66 | pread64 17 67 | pwrite64 18 68 | preadv 295 69 |
    pwritev 296 70 | preadv2 327 286 | pwritev2 328 287 | sendfile 40 71 | copy_file_range 326 285 | lseek 8 62 |
    open 2 - | openat 257 56 | close 3 57 | close_range 436 436 | dup 32 23 | dup2 33 - | dup3 292 24 | fcntl 72 25 |
    ioctl 16 29 | fsync 74 82 | fdatasync 75 83 | ftruncate 77 46 | pipe 22 - | pipe2 293 59 | umask 95 166 |
    stat 4 - | lstat 6 - | fstat 5 80 | newfstatat 262 79 | statx 332 291 | statfs 137 43 | fstatfs 138 44 |
    access 21 - | faccessat 269 48 | faccessat2 439 439 | readlink 89 - | readlinkat 267 78 | getdents 78 - |
    getdents64 217 61 | getcwd 79 17 | chdir 80 49 | fchdir 81 50 |
    poll 7 - | ppoll 271 73 | select 23 - | pselect6 270 72 | epoll_create 213 - | epoll_create1 291 20 |
    epoll_ctl 233 21 | epoll_wait 232 - | epoll_pwait 281 22 | eventfd2 290 19 | socketpair 53 199 | sendto 44 206 |
    recvfrom 45 207 | shutdown 48 210 | getsockname 51 204 | getpeername 52 205 | getsockopt 55 209 |
    mmap 9 222 | munmap 11 215 | mremap 25 216 | mprotect 10 226 | madvise 28 233 | msync 26 227 |
    brk 12 214 | clone 56 220 | exit 60 93 | exit_group 231 94 | futex 202 98 | set_robust_list 273 99 |
    rseq 334 293 | gettid 186 178 | sched_yield 24 124 | sched_getaffinity 204 123 | getcpu 309 168 |
    rt_sigaction 13 134 | rt_sigprocmask 14 135 | rt_sigreturn 15 139 | rt_sigpending 127 136 | rt_sigsuspend 130 133 |
    rt_sigtimedwait 128 137 | sigaltstack 131 132 | restart_syscall 219 128 | pause 34 - | alarm 37 - |
    getitimer 36 102 | setitimer 38 103 | kill 62 129 | tgkill 234 131 |
    clock_gettime 228 113 | clock_getres 229 114 | clock_nanosleep 230 115 | nanosleep 35 101 | gettimeofday 96 169 |
    time 201 - | times 100 153 | getrusage 98 165 | getrlimit 97 163 | setrlimit 160 164 | prlimit64 302 261 |
    getpid 39 172 | getppid 110 173 | getpgid 121 155 | getpgrp 111 - | getsid 124 156 | getuid 102 174 |
    geteuid 107 175 | getgid 104 176 | getegid 108 177 | getresuid 118 148 | getresgid 120 150 | getgroups 115 158 |
    getpriority 140 141 | prctl 157 167 | uname 63 160 | sysinfo 99 179 | getrandom 318 278
""")
# allowed only with Landlock, which keeps them within the folder
_WRITING = _numbers("creat 85 - | rename 82 - | renameat 264 38 | unlink 87 - | unlinkat 263 35")
_FIRST_NEW = 424
_LOAD, _EQUAL, _NOT_LESS, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF instructions
_ALLOW, _KILL = (_RETURN, 0, 0, 0x7FFF0000), (_RETURN, 0, 0, 0x80000000)
_REFUSE, _MISSING = ((_RETURN, 0, 0, 0x00050000 | number) for number in (errno.EPERM, errno.ENOSYS))
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NAME, _PR_GET_NAME = 1, 4, 15, 16
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38
_THREAD_FLAGS = (
    0x003D0F00,
    0x007D0F00,
)  # with which pthread_create calls clone, in glibc and in musl
_STREAMS = (
    1,
    0x801,
    0x80001,
    0x80801,
)  # SOCK_STREAM, with or without SOCK_NONBLOCK and SOCK_CLOEXEC
# F_DUPFD F_GETFD F_SETFD F_GETFL F_SETFL F_GETLK F_SETLK F_SETLKW F_DUPFD_CLOEXEC F_GETPIPE_SZ;
# without F_SETOWN and F_SETSIG, which have the kernel send any signal to any process of the user
# when input arrives
_FCNTL_COMMANDS = (0, 1, 2, 3, 4, 5, 6, 7, 1030, 1032)
_IOCTL_REQUESTS = (
    0x5401,
    0x5413,
    0x541B,
    0x5421,
    0x5450,
    0x5451,
)  # TCGETS TIOCGWINSZ FIONREAD FIONBIO FIO(N)CLEX

# Landlock's access rights, by bit
_WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_FILE, _MAKE_FILE, _TRUNCATE = (
    1 << bit for bit in (1, 2, 3, 5, 8, 14)
)
_RIGHTS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_READABLE = (
    *(
        "/usr/lib",
        "/usr/lib64",
        "/usr/local/lib",
        "/lib",
        "/lib64",
        "/usr/share/zoneinfo",
        "/etc/localtime",
    ),
    *("/etc/ld.so.cache", "/dev/urandom", "/dev/random", "/dev/zero", "/dev/null"),
)


class LockdownError(Exception):
    """The kernel lacks something that the sandbox cannot do without."""


def lock_down(
    parent: int,
    folder: str,
    memory: int,
    cpu_seconds: int,
    file_size: int,
    landlock: bool = True,
    readable: Sequence[str] = (),
) -> None:
    """Give up for good all that the calling process does not need in order to compute.

    It is killed when the process `parent` dies, and can write to `folder` only. `memory` (of
    address space) and `file_size` (of one file) are in bytes. The folders `readable` can be read
    besides the standard library. Without `landlock` it is as on a kernel that has none, for tests
    of that.

    Raises:
        LockdownError: where that is not possible. Untrusted code must not be run then.
    """
    if (
        not sys.platform.startswith("linux")
        or os.uname().machine not in _AUDIT_ARCHITECTURE
        or sys.maxsize < 2**32
    ):
        raise LockdownError(
            f"it needs 64-bit Linux on x86_64 or aarch64, and this is {sys.platform}"
        )
    end_with(parent)
    for name, value in {
        "CPU": cpu_seconds,
        "AS": memory,
        "FSIZE": file_size,
        "NOFILE": 64,
        "CORE": 0,
    }.items():
        limit = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(limit)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))
    _call(
        "prctl", _PR_SET_DUMPABLE, 0
    )  # RLIMIT_CORE does not keep a crash from a core dump handler
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1)
    confined = landlock and _confine_files(folder, readable)
    _call("capset", struct.pack("Ii", 0x20080522, 0), bytes(24))  # no capability
    install_filter(build_filter(os.uname().machine, os.getpid(), read_only=not confined))
    if _LIBC.socket(2, 1, 0) != -1 or ctypes.get_errno() != errno.EPERM:
        raise LockdownError("the kernel accepts the seccomp filter and does not apply it")


def end_with(parent: int) -> None:
    """Have the kernel kill the calling process when the process `parent` dies, which started it."""
    _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above
        os._exit(1)


def _call(function: str, *arguments: int | bytes) -> int:
    """Call a function of the C library. Zeros follow the arguments: prctl demands them, and the
    others ignore them.
    """
    wide = [
        ctypes.c_long(each) if isinstance(each, int) else each for each in (*arguments, 0, 0, 0)
    ]
    result = getattr(_LIBC, function)(*wide)
    if result == -1:
        number = f"({arguments[0]})" if isinstance(arguments[0], int) else ""
        raise LockdownError(f"{function}{number} is refused: {os.strerror(ctypes.get_errno())}")
    return result


def _confine_files(folder: str, readable: Sequence[str]) -> bool:
    """Restrict by Landlock which files can be opened. False where the kernel does not have it."""
    create, add, restrict = 444, 445, 446
    try:
        version = _call("syscall", create, 0, 0, 1)
    except LockdownError:
        return False
    rights = (1 << _RIGHTS_BY_VERSION[min(version, max(_RIGHTS_BY_VERSION))]) - 1
    ruleset = _call("syscall", create, struct.pack("Q", rights), 8, 0)
    # the child's search path holds its standard library; in a conda environment C libraries lie
    # beside it
    library = os.path.dirname(os.__file__)
    allowed = dict.fromkeys(
        (*_READABLE, *readable, *sys.path, library, os.path.dirname(library)),
        _READ_FILE | _READ_DIR,
    )
    allowed["/dev/null"] |= _WRITE_FILE
    allowed[folder] = _READ_FILE | _READ_DIR | _WRITE_FILE | _REMOVE_FILE | _MAKE_FILE | _TRUNCATE
    for path, granted in allowed.items():
        try:
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # not every system has all of them
            continue
        if not os.path.isdir(path):
            granted &= _READ_FILE | _WRITE_FILE | _TRUNCATE
        _call("syscall", add, ruleset, 1, struct.pack("=Qi", granted & rights, beneath), 0)
        os.close(beneath)
    _call("syscall", restrict, ruleset, 0)
    os.close(ruleset)
    return True


def install_filter(program: list[_Instruction]) -> None:
    """Have the kernel apply a filter to the calling process. It needs `_PR_SET_NO_NEW_PRIVS`
    first.
    """
    code = ctypes.create_string_buffer(
        b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    )
    _call(
        "prctl", _PR_SET_SECCOMP, 2, struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    )


def _load_argument(index: int) -> _Instruction:
    return (
        _LOAD,
        0,
        0,
        16 + 8 * index,
    )  # the lower 32 bits, which is all that the kernel reads of those checked here


def _one_of(index: int, *values: int) -> list[_Instruction]:
    """Refuse the call unless the argument is one of these values."""
    count = len(values)
    return [
        _load_argument(index),
        *((_EQUAL, count - i, 0, value) for i, value in enumerate(values)),
        _REFUSE,
    ]


def _none_of(index: int, bits: int) -> list[_Instruction]:
    """Refuse the call if the argument has one of these bits."""
    return [_load_argument(index), (_ANY_BIT, 0, 1, bits), _REFUSE]


def build_filter(machine: str, own: int, read_only: bool) -> list[_Instruction]:
    """The filter for the process `own`: a BPF program over `struct seccomp_data`.

    A call under another interface is never allowed: 32-bit calls, whose numbers mean something
    else, kill the process, and the numbers of x32 lie above all that are on the list. With
    `read_only` no file can be opened for writing, renamed or removed.
    """
    checks = {
        "clone": _one_of(0, *_THREAD_FLAGS),
        "kill": _one_of(0, own),
        "tgkill": _one_of(0, own),
        "prlimit64": _one_of(0, 0, own),
        "prctl": _one_of(0, _PR_SET_NAME, _PR_GET_NAME),
        "fcntl": _one_of(1, *_FCNTL_COMMANDS),
        "ioctl": _one_of(1, *_IOCTL_REQUESTS),
        "socketpair": [*_one_of(0, 1), *_one_of(1, *_STREAMS)],  # AF_UNIX
    }
    if read_only:
        writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
        checks |= {"open": _none_of(1, writes), "openat": _none_of(2, writes)}
    program = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, _AUDIT_ARCHITECTURE[machine]),
        _KILL,
        (_LOAD, 0, 0, 0),
    ]
    for name, numbers in (_ALLOWED if read_only else _ALLOWED | _WRITING).items():
        if machine in numbers:
            verdict = [*checks.get(name, ()), _ALLOW]
            program += [(_EQUAL, 0, len(verdict), numbers[machine]), *verdict]
    return [*program, (_NOT_LESS, 0, 1, _FIRST_NEW), _MISSING, _REFUSE]
