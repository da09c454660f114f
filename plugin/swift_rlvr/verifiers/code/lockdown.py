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
- no waiting for the disk: fsync says that it is done, and O_SYNC and O_DIRECT are refused;
- no change of the permissions, owners or times of files, which says that it is done, too: copies of
  files ask for one, and ours are nobody else's;
- no memory that outlives the process (System V, memfd), no io_uring, no bpf, no namespaces, no
  mounts and no keys.

A call that is not on the list fails with EPERM, or from number 424 on (Linux 5.1) with ENOSYS, as
on an older kernel: on that alone the C library and Python fall back to an older call. For instance
`clone3` keeps its flags in memory, where a filter cannot see them; on ENOSYS glibc uses `clone`,
which is checked. Neither answer lets a call through.

Resource limits (CPU, address space, file size, open files, no core dump) cannot be raised again
because all capabilities are dropped, which binds root as well. With Landlock (Linux 5.13) only
Python's own library and what that needs can be read, without packages that are installed in it, and
only the run's folder can be written. Without Landlock the lockdown is refused, unless the caller
allows for what is lost: nothing can be written then, but all that the user can read stays readable,
other processes' memory included. The trainer could be made unreadable (PR_SET_DUMPABLE), and is not:
that would also take its core dumps, py-spy, and the sharing of CUDA memory between its processes.

Two figures no filter and no limit counts in a process, and so the parent does (`usage.py`): bytes
that were written to files which are removed and held, and threads. It looks every tenth of a second
at the least, and code can pass a limit until then. For users other than root RLIMIT_NPROC limits the
threads exactly where there is a namespace of users; elsewhere it would count all processes of the
user.

What one run could leave for another to see, or tell one that runs at the same time:

- The time at which a file, a folder or a link was read: closed where all files but its own can be
  mounted read-only (`give_up_mounts`), or where they are mounted with noatime; else open. It cannot
  be closed there: Landlock has no right for stat and readlink, so any link of the system will do,
  and a seccomp filter does not see what stat answers. The doctor says so.
- Whether its folder is a new one, as the number and the birth of that tell: open. After a run that
  has made it larger the next one gets another.
- Files, links, locks, leases, notices of folders (inotify, fanotify, dnotify): closed.
- Queues, semaphores, shared memory, keys, abstract sockets, memfd: closed.
- Load, free memory, free disk (sysinfo, statfs), what /proc holds: closed.
- How many files and threads another process has, which stat tells of /proc: closed for root who can
  mount (`give_up_mounts`), else open.
- CPU time, priority, group, session and cores of other processes: closed.
- The cache of files: closed as mincore and RWF_NOWAIT tell it; open by how long a read takes.
- Numbers of processes, threads and pipes, which grow: open; anybody's processes move them.
- How fast the machine is just now: open.

Why not libseccomp: its Python binding is not on PyPI, and pyseccomp, which is, needs a
libseccomp.so.2 that slim images and conda environments lack, so that code could not be run there.
And as a plain list of instructions the filter can be tested for both architectures on one machine.
The child imports this outside the package: only the standard library.
"""

import ctypes
import errno
import os
import re
import resource
import signal
import struct
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache

_LIBC = ctypes.CDLL(None, use_errno=True)
_AUDIT_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_Instruction = tuple[int, int, int, int]  # BPF: code, jump if true, jump if false, constant


def _numbers(table: str) -> dict[str, dict[str, int]]:
    """A table of calls: name -> {machine: number}."""
    calls: dict[str, dict[str, int]] = {}
    for row in table.split("|"):
        name, *numbers = row.split()
        calls[name] = {}
        for machine, number in zip(_AUDIT_ARCHITECTURE, numbers, strict=True):
            if number != "-":
                calls[name][machine] = int(number)
    return calls


# Name, number on x86_64, number on aarch64 ("-": no such call), from Linux' unistd_64.h and
# asm-generic/unistd.h
_ALLOWED = _numbers("""
    read 0 63 | write 1 64 | readv 19 65 | writev 20 66 | pread64 17 67 | pwrite64 18 68 | preadv 295 69 |
    pwritev 296 70 | preadv2 327 286 | pwritev2 328 287 | sendfile 40 71 | copy_file_range 326 285 | lseek 8 62 |
    open 2 - | openat 257 56 | close 3 57 | close_range 436 436 | dup 32 23 | dup2 33 - | dup3 292 24 | fcntl 72 25 |
    ioctl 16 29 | ftruncate 77 46 | pipe 22 - | pipe2 293 59 | umask 95 166 |
    stat 4 - | lstat 6 - | fstat 5 80 | newfstatat 262 79 | statx 332 291 |
    access 21 - | faccessat 269 48 | faccessat2 439 439 | readlink 89 - | readlinkat 267 78 | getdents 78 - |
    getdents64 217 61 | getcwd 79 17 | chdir 80 49 | fchdir 81 50 |
    poll 7 - | ppoll 271 73 | select 23 - | pselect6 270 72 | epoll_create 213 - | epoll_create1 291 20 |
    epoll_ctl 233 21 | epoll_wait 232 - | epoll_pwait 281 22 | eventfd2 290 19 | socketpair 53 199 | sendto 44 206 |
    recvfrom 45 207 | shutdown 48 210 | getsockname 51 204 | getpeername 52 205 | getsockopt 55 209 |
    mmap 9 222 | munmap 11 215 | mremap 25 216 | mprotect 10 226 | madvise 28 233 |
    brk 12 214 | clone 56 220 | exit 60 93 | exit_group 231 94 | futex 202 98 | set_robust_list 273 99 |
    rseq 334 293 | gettid 186 178 | sched_yield 24 124 | sched_getaffinity 204 123 | getcpu 309 168 |
    rt_sigaction 13 134 | rt_sigprocmask 14 135 | rt_sigreturn 15 139 | rt_sigpending 127 136 | rt_sigsuspend 130 133 |
    rt_sigtimedwait 128 137 | sigaltstack 131 132 | restart_syscall 219 128 | pause 34 - | alarm 37 - |
    getitimer 36 102 | setitimer 38 103 | kill 62 129 | tgkill 234 131 |
    clock_gettime 228 113 | clock_getres 229 114 | clock_nanosleep 230 115 | nanosleep 35 101 | gettimeofday 96 169 |
    time 201 - | times 100 153 | getrusage 98 165 | getrlimit 97 163 | setrlimit 160 164 | prlimit64 302 261 |
    getpid 39 172 | getppid 110 173 | getpgid 121 155 | getpgrp 111 - | getsid 124 156 | getuid 102 174 |
    geteuid 107 175 | getgid 104 176 | getegid 108 177 | getresuid 118 148 | getresgid 120 150 | getgroups 115 158 |
    getpriority 140 141 | prctl 157 167 | uname 63 160 | getrandom 318 278
""")
# These say that they are done, and nothing is. The last three list the attributes of a file: none.
_DO_NOTHING = _numbers("""
    fsync 74 82 | fdatasync 75 83 | msync 26 227 | chmod 90 - | fchmod 91 52 | fchmodat 268 53 | chown 92 - |
    fchown 93 55 | lchown 94 - | fchownat 260 54 | utime 132 - | utimes 235 - | futimesat 261 - | utimensat 280 88 |
    listxattr 194 11 | llistxattr 195 12 | flistxattr 196 13
""")
# allowed only with Landlock, which keeps them within the folder
_WRITING = _numbers("""
    creat 85 - | rename 82 - | renameat 264 38 | unlink 87 - | unlinkat 263 35 | mkdir 83 - |
    mkdirat 258 34 | rmdir 84 -
""")
# From this number on, Linux 5.1, calls have the same number on every machine.
_FIRST_NEW = 424

# BPF instructions, and the kernel's answers to a call (linux/filter.h, linux/seccomp.h)
_LOAD, _EQUAL, _NOT_LESS, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW = (_RETURN, 0, 0, 0x7FFF0000)
_KILL = (_RETURN, 0, 0, 0x80000000)
_REFUSE = (_RETURN, 0, 0, 0x00050000 | errno.EPERM)
_DONE = (_RETURN, 0, 0, 0x00050000)  # success, and nothing is done
_MISSING = (_RETURN, 0, 0, 0x00050000 | errno.ENOSYS)

_ANY = 0x7FFFFFF7  # in a filter, in place of a process' number; no process and no call has it

# prctl's requests (linux/prctl.h)
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NAME, _PR_GET_NAME = 1, 4, 15, 16
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 22, 38

# The arguments with which a call is allowed.
# With these flags pthread_create calls clone, in glibc and in musl. Any others make a process.
_THREAD_FLAGS = (0x003D0F00, 0x007D0F00)
# SOCK_STREAM, with or without SOCK_NONBLOCK and SOCK_CLOEXEC
_STREAMS = (1, 0x801, 0x80001, 0x80801)
# F_DUPFD F_GETFD F_SETFD F_GETFL F_SETFL F_SETLK F_SETLKW F_DUPFD_CLOEXEC F_GETPIPE_SZ; without
# F_GETLK, by which one completion would see the read locks of another on a file of the library
# (F_SETLK sees none there: a write lock needs a file that is open for writing), and without F_SETOWN
# and F_SETSIG, which have the kernel send any signal to any process of the user when input arrives
_FCNTL_COMMANDS = (0, 1, 2, 3, 4, 6, 7, 1030, 1032)
# Nothing waits for the disk: that is no CPU time, it keeps others from the disk, and the folder is
# removed in any case. So fsync does nothing, and no file is written through or past the cache.
_F_SETFL = 4
_O_DIRECT = {"x86_64": 0o40000, "aarch64": 0o200000}
# TCGETS TIOCGWINSZ FIONREAD FIONBIO FIONCLEX FIOCLEX; without TIOCSTI, which types into the
# terminal of whoever started the trainer
_IOCTL_REQUESTS = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)

# what a folder's owner needs in order to see all that is in it: to read it, and to enter it
_LISTED = (0o400, 0o100)

# linux/mman.h, linux/time.h
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
# the machine's clocks, and the CPU time of the calling process and thread; a negative number may
# mean the CPU time of any other
_CLOCKS = (*range(12), -6 & 0xFFFFFFFF, -2 & 0xFFFFFFFF)

# Landlock's access rights, by bit (linux/landlock.h)
_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_REMOVE_FILE, _MAKE_FILE, _TRUNCATE = 1 << 5, 1 << 8, 1 << 14
_REMOVE_FOLDER, _MAKE_FOLDER = 1 << 4, 1 << 7
_CHANGE_FOLDER = 1 << 13  # of a file that is renamed
# version of Landlock -> how many rights it knows
_RIGHTS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
# In a run's own folder. Neither links nor devices can be made in it.
_OWN_FOLDER = _READ_FILE | _READ_DIR | _WRITE_FILE | _REMOVE_FILE | _MAKE_FILE | _TRUNCATE
_OWN_FOLDER |= _REMOVE_FOLDER | _MAKE_FOLDER | _CHANGE_FOLDER
# What Python needs to read besides its library
_READABLE = (
    "/usr/share/zoneinfo",
    "/etc/localtime",
    "/etc/ld.so.cache",
    "/dev/urandom",
    "/dev/random",
    "/dev/zero",
    "/dev/null",
)
_C_LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64")
# Folders beside them of packages that are installed, by the beginning of their name
_PACKAGES = ("python", "pypy", "site-packages", "dist-packages")

# Namespaces and mounts (linux/sched.h, linux/mount.h, linux/fcntl.h)
_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_BIND, _MS_REC, _MS_SLAVE = 1 << 12, 1 << 14, 1 << 19
_MOUNT_ATTR_RDONLY, _AT_RECURSIVE = 1, 0x8000


# Whether processes that are limited by RLIMIT_NPROC are those of this sandbox alone: it counts all
# processes of a user in a namespace of users (Linux 5.14).
_has_own_users = False
# Whether this process, or the one that has forked it, can open no other files than `confine` says,
# by Landlock; None: not confined.
_has_landlock: bool | None = None


class LockdownError(Exception):
    """The kernel lacks something that the sandbox cannot do without."""


def confine(folder: str, readable: Sequence[str] = (), landlock: bool = True) -> None:
    """Have the calling process and its children read no more than Python's own library, what that
    needs, and the folders `readable`, and write below `folder` only, as far as the kernel can; and
    give up what can be given up before a fork.

    It is for the process that forks children: what takes time is done once. `give_up_mounts` has to
    come before.
    """
    global _has_landlock
    _filter_for(_machine(), read_only=not landlock)  # made once for all children
    _give_up_rights()
    _has_landlock = False
    if landlock:
        allowed = _library() | dict.fromkeys(readable, _READ_FILE | _READ_DIR)
        own = {"/dev/null": _READ_FILE | _WRITE_FILE, folder: _OWN_FOLDER}
        _has_landlock = _confine_files(allowed | own)


def _machine() -> str:
    """The machine's name. Raises LockdownError where no filter is known for it."""
    machine = os.uname().machine
    is_64_bit_linux = sys.platform.startswith("linux") and sys.maxsize >= 2**32
    if not is_64_bit_linux or machine not in _AUDIT_ARCHITECTURE:
        raise LockdownError(
            f"it needs 64-bit Linux on x86_64 or aarch64, and this is {sys.platform}"
        )
    return machine


def _give_up_rights() -> None:
    # No program that is run gains rights, as by setuid. Landlock and seccomp demand it.
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1)
    # Without capabilities root, too, cannot raise its limits again.
    _call("capset", struct.pack("Ii", 0x20080522, 0), bytes(24))


def lock_down(
    parent: int,
    memory: int,
    cpu_seconds: int,
    file_size: int,
    without_landlock: bool = False,
    threads: int = 0,
) -> None:
    """Give up for good all that the calling process does not need in order to compute.

    It is killed when the process `parent` dies. `memory` (of address space) and `file_size` (of one
    file) are in bytes. What it can read and write is what `confine` has left. Where a limit can count
    its threads alone, there are not many more than `threads`. Where nothing has confined it by
    Landlock it is refused unless `without_landlock`: the code could read what the user can read.

    Raises:
        LockdownError: where that is not possible. Untrusted code must not be run then.
    """
    machine = _machine()
    # Code must not go on when the trainer was killed.
    end_with(parent)
    _limit("CPU", cpu_seconds)
    _limit("AS", memory)
    _limit("FSIZE", file_size)
    # Each open file takes memory of the kernel's, which no other limit counts.
    _limit("NOFILE", 64)
    if threads and _has_own_users:
        # Above the number for which the parent ends it, so that there is one verdict.
        _limit("NPROC", threads + 16)
    # A core dump would be a file outside the folder. A handler of core dumps, which the kernel
    # starts outside the sandbox, is started for any limit but this one (Linux' fs/coredump.c).
    _limit("CORE", 1)
    if _has_landlock is None:
        _give_up_rights()
    if not _has_landlock or resource.getrlimit(resource.RLIMIT_CORE)[0] != 1:
        # Others that nothing confines could read its memory. Where files can be written, though, the
        # parent has to be able to see how much (/proc/PID/io), which this flag would hide from it.
        _call("prctl", _PR_SET_DUMPABLE, 0)
    if not (_has_landlock or without_landlock):
        raise LockdownError(
            "the kernel has no Landlock (Linux 5.13, and `landlock` in its list of security modules), "
            "so code could read the expected results in the trainer's memory, and every file that "
            "the user can read; the parameter without_landlock allows that"
        )
    # Last, since the filter refuses the calls above.
    _filter_for(machine, read_only=not _has_landlock).install(os.getpid())
    # An emulator of a kernel may accept a filter and do nothing with it.
    if _LIBC.socket(2, 1, 0) != -1 or ctypes.get_errno() != errno.EPERM:
        raise LockdownError("the kernel accepts the seccomp filter and does not apply it")


def _limit(name: str, value: int) -> None:
    """Set a resource limit, so that it cannot be raised again, or keep a lower one that is set."""
    limit = getattr(resource, f"RLIMIT_{name}")
    _, hard = resource.getrlimit(limit)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(limit, (value, value))


def end_with(parent: int) -> None:
    """Have the kernel kill the calling process when the process `parent` dies, which started it."""
    _call("prctl", _PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above
        os._exit(1)


def _call(function: str, *arguments: int | bytes) -> int:
    """Call a function of the C library. Zeros follow the arguments: prctl demands them, and the
    others ignore them.
    """
    wide: list[ctypes.c_long | bytes] = []
    for argument in (*arguments, 0, 0, 0):
        wide.append(ctypes.c_long(argument) if isinstance(argument, int) else argument)
    result = getattr(_LIBC, function)(*wide)
    if result == -1:
        number = f"({arguments[0]})" if isinstance(arguments[0], int) else ""
        raise LockdownError(f"{function}{number} is refused: {os.strerror(ctypes.get_errno())}")
    return result


def give_up_mounts(folder: str) -> None:
    """Make all files read-only for the calling process and its children, but for those in a folder,
    where the kernel lets it.

    Landlock lets the library be read, and a read leaves its time in the file, and in each folder
    and link on the way: the next completion could see it. Where nothing can be written, no time is
    either. Root needs a namespace of mounts for that; another user also one of users, which many
    containers refuse. To be called before there are threads.
    """
    global _has_own_users
    user, group = os.getuid(), os.getgid()
    if _LIBC.unshare(_CLONE_NEWNS) == -1:
        if _LIBC.unshare(_CLONE_NEWNS | _CLONE_NEWUSER) == -1:
            return
        release = [int(each) for each in re.findall(r"\d+", os.uname().release)[:2]]
        _has_own_users = release >= [5, 14]
        # Everybody keeps their number.
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with suppress(OSError), open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    path = os.fsencode(folder)
    try:
        # From here on no mount reaches others. What they unmount is unmounted here too.
        _call("mount", 0, b"/", 0, _MS_REC | _MS_SLAVE)
        _call("mount", path, path, 0, _MS_BIND)
        # Of /proc what no two sandboxes share: stat tells how many files and threads a process has,
        # and neither Landlock nor the filter refuses it. Only root can do this (Linux 5.8).
        _LIBC.mount(b"proc", b"/proc", b"proc", 0, b"hidepid=ptraceable")
        _set_mounts(b"/", _AT_RECURSIVE, _MOUNT_ATTR_RDONLY, 0)
    except LockdownError:
        return
    _set_mounts(path, 0, 0, _MOUNT_ATTR_RDONLY)


def _set_mounts(path: bytes, flags: int, added: int, removed: int) -> None:
    mount_setattr, here = 442, -100  # on all machines; the C library may be older
    attributes = struct.pack("QQQQ", added, removed, 0, 0)
    _call("syscall", mount_setattr, here, path, flags, attributes, len(attributes))


def _library() -> dict[str, int]:
    """What Python needs to read -> rights: its own library without packages that are installed in
    it, and C libraries.
    """
    allowed = dict.fromkeys(_READABLE, _READ_FILE | _READ_DIR)
    library = os.path.dirname(os.__file__)
    for folder in sys.path:
        allowed[folder] = _READ_DIR  # which goes for the folders in it too
    # In a conda environment C libraries lie beside Python's.
    for folder in (*sys.path, *_C_LIBRARIES, os.path.dirname(library)):
        with suppress(OSError), os.scandir(os.path.realpath(folder)) as entries:
            # not every system has all of them
            for entry in entries:
                if not entry.name.startswith(_PACKAGES) and not entry.is_symlink():
                    allowed[entry.path] = _READ_FILE | _READ_DIR
    return allowed


def _confine_files(allowed: Mapping[str, int]) -> bool:
    """Restrict by Landlock which files can be opened: path -> rights, below it too. False where the
    kernel does not have it. Of two calls both hold.
    """
    # The C library has no functions for these system calls, which all machines number alike.
    create_ruleset, add_rule, restrict_self = 444, 445, 446
    try:
        version = _call("syscall", create_ruleset, 0, 0, 1)
    except LockdownError:
        return False
    # All rights that this kernel knows are refused, but for what the rules allow. The rights of a
    # later version than the last in the table stay as they are.
    known = _RIGHTS_BY_VERSION[min(version, max(_RIGHTS_BY_VERSION))]
    rights = (1 << known) - 1
    ruleset = _call("syscall", create_ruleset, struct.pack("Q", rights), 8, 0)
    for path, granted in allowed.items():
        try:
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # not every system has all of them
            continue
        if not os.path.isdir(path):
            # A rule for a file must not name rights that only folders have.
            granted &= _READ_FILE | _WRITE_FILE | _TRUNCATE
        if granted & rights:
            _call("syscall", add_rule, ruleset, 1, struct.pack("=Qi", granted & rights, beneath), 0)
        os.close(beneath)
    _call("syscall", restrict_self, ruleset, 0)
    os.close(ruleset)
    return True


class Filter:
    """A program for the kernel to apply, as it reads it: made before a fork and installed after it,
    when only the number of the process is still to be written.
    """

    def __init__(self, program: list[_Instruction]):
        code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
        self._code = ctypes.create_string_buffer(code)
        # where a number of a process stands: nothing else is like `_ANY`
        self._places = [found.start() for found in re.finditer(struct.pack("I", _ANY), code)]
        self._length = len(program)

    def install(self, own: int) -> None:
        """Have the kernel apply it to the calling process, which has the number `own`. It needs
        `_PR_SET_NO_NEW_PRIVS` first.
        """
        for place in self._places:
            struct.pack_into("I", self._code, place, own)
        # struct sock_fprog: how many instructions, and where they are
        pointer = struct.pack("HxxxxxxP", self._length, ctypes.addressof(self._code))
        _call("prctl", _PR_SET_SECCOMP, 2, pointer)


@cache
def _filter_for(machine: str, read_only: bool) -> Filter:
    return Filter(build_filter(machine, _ANY, read_only))


def _load_argument(index: int) -> _Instruction:
    """Load the lower 32 bits, which is all that the kernel reads of the arguments checked here."""
    return (_LOAD, 0, 0, 16 + 8 * index)


def _one_of(index: int, *values: int) -> list[_Instruction]:
    """Refuse the call unless the argument is one of these values."""
    program = [_load_argument(index)]
    for position, value in enumerate(values):
        # Jump over the values that follow and over the refusal.
        program.append((_EQUAL, len(values) - position, 0, value))
    return [*program, _REFUSE]


def _none_of(index: int, bits: int) -> list[_Instruction]:
    """Refuse the call if the argument has one of these bits."""
    return [_load_argument(index), (_ANY_BIT, 0, 1, bits), _REFUSE]


def _all_of(index: int, *bits: int) -> list[_Instruction]:
    """Refuse the call unless the argument has all of these bits."""
    program = [_load_argument(index)]
    for position, bit in enumerate(bits):
        is_last = position == len(bits) - 1
        # On to the next bit, and from the last one over the refusal.
        program.append((_ANY_BIT, int(is_last), len(bits) - 1 - position, bit))
    return [*program, _REFUSE]


def build_filter(machine: str, own: int, read_only: bool) -> list[_Instruction]:
    """The filter for the process `own`: a BPF program over `struct seccomp_data`.

    A call under another interface is never allowed: 32-bit calls, whose numbers mean something
    else, kill the process, and the numbers of x32 lie above all that are on the list. With
    `read_only` no file can be opened for writing, renamed or removed.
    """
    checks = {
        # threads, and no other processes
        "clone": _one_of(0, *_THREAD_FLAGS),
        # no signal and no limit for other processes, such as the trainer
        "kill": _one_of(0, own),
        "tgkill": _one_of(0, own),
        "prlimit64": _one_of(0, 0, own),
        # what is set above with prctl stays as it is
        "prctl": _one_of(0, _PR_SET_NAME, _PR_GET_NAME),
        "fcntl": [
            _load_argument(1),
            (_EQUAL, 0, 3, _F_SETFL),
            *_none_of(2, _O_DIRECT[machine]),
            *_one_of(1, *_FCNTL_COMMANDS),
        ],
        "ioctl": _one_of(1, *_IOCTL_REQUESTS),
        "socketpair": [*_one_of(0, 1), *_one_of(1, *_STREAMS)],  # AF_UNIX
        # A shared mapping of a file would be written without a call that counts.
        "mmap": [
            _load_argument(3),
            (_ANY_BIT, 0, 2, _MAP_SHARED),
            (_ANY_BIT, 1, 0, _MAP_ANONYMOUS),
            _REFUSE,
        ],
        # RWF_NOWAIT tells what another has read before.
        "preadv2": _one_of(5, 0),
        "pwritev2": _one_of(5, 0),  # such as RWF_SYNC
        # The parent, if it is not root, has to be able to count what is in a folder. The C library
        # expects no error of umask.
        "mkdir": _all_of(1, *_LISTED),
        "mkdirat": _all_of(2, *_LISTED),
        "umask": [_load_argument(0), (_ANY_BIT, 0, 1, sum(_LISTED)), _DONE],
        # nothing of other processes
        "clock_gettime": _one_of(0, *_CLOCKS),
        "clock_getres": _one_of(0, *_CLOCKS),
        "clock_nanosleep": _one_of(0, *_CLOCKS),
        "getpgid": _one_of(0, 0, own),
        "getsid": _one_of(0, 0, own),
        "sched_getaffinity": _one_of(0, 0, own),
        "getpriority": _one_of(1, 0, own),
    }
    allowed = _ALLOWED | _WRITING
    refused = os.O_SYNC | os.O_DSYNC | _O_DIRECT[machine]
    if read_only:
        allowed = _ALLOWED
        refused |= os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
    checks["open"] = _none_of(1, refused)
    checks["openat"] = _none_of(2, refused)

    actions: dict[int, list[_Instruction]] = {}
    for name, numbers in allowed.items():
        if machine in numbers:
            actions[numbers[machine]] = [*checks.get(name, ()), _ALLOW]
    for numbers in _DO_NOTHING.values():
        if machine in numbers:
            actions[numbers[machine]] = [_DONE]
    # From which number on what is done.
    ranges: list[tuple[int, list[_Instruction]]] = []
    for number in sorted({0, _FIRST_NEW, *actions, *(number + 1 for number in actions)}):
        action = actions.get(number, [_MISSING if number >= _FIRST_NEW else _REFUSE])
        if not ranges or ranges[-1][1] != action:
            ranges.append((number, action))
    return [
        (_LOAD, 0, 0, 4),  # the architecture
        (_EQUAL, 1, 0, _AUDIT_ARCHITECTURE[machine]),
        _KILL,
        (_LOAD, 0, 0, 0),  # the number of the call
        *_by_number(ranges),
    ]


def _by_number(ranges: list[tuple[int, list[_Instruction]]]) -> list[_Instruction]:
    """A search by halves: while it installs a filter, the kernel tries it with each number, and takes
    longer the more comparisons there are.
    """
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    below, above = _by_number(ranges[:middle]), _by_number(ranges[middle:])
    return [(_NOT_LESS, len(below), 0, ranges[middle][0]), *below, *above]
