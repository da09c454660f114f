"""What the sandboxed child does to itself before it runs any foreign code. Nothing of it can be undone from inside.

It needs no privilege, no namespace and no container setting, only a Linux kernel with seccomp filters, on x86_64 or
aarch64. A filter that the kernel enforces whatever Python or C code asks for allows

- no other process: fork and exec fail, threads are allowed. So there are no daemons, no fork bombs, no shell, the
  memory limit of the process is the limit of the run, and killing the one process ends all of it;
- no network and no socket of any kind but a `socketpair`, which asyncio needs;
- no signal, tracing, priority or limit for any process but itself;
- no memory that outlives it (System V, memfd), no io_uring, no change of permissions, owners or times of files.

Resource limits (CPU, address space, size of a file, open files, no core dump) cannot be raised again, because all
capabilities are dropped, which binds root as well. RLIMIT_NPROC is not used: it counts all that the user runs
elsewhere and does not bind root. Where the kernel has Landlock (5.13 or later), files can be read only in Python's own
library and in what that needs, and written only in the run's folder, in which no further folders can be made. Without
it nothing can be written at all, but all that the user can read stays readable.

This module is also imported by the child, outside the package: it imports only the standard library.
"""

import ctypes
import errno
import os
import resource
import signal
import struct
import sys

_AUDIT_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def _numbers(table: str) -> dict[str, tuple[int | None, int | None]]:
    entries = (entry.split() for entry in table.split("|"))
    return {name: tuple(None if each == "-" else int(each) for each in pair) for name, *pair in entries}


# Name, number on x86_64, number on aarch64 ("-": no such call), from Linux' unistd_64.h and asm-generic/unistd.h
_SYSCALLS = _numbers("""
    socket 41 198 | connect 42 203 | accept 43 202 | bind 49 200 | listen 50 201 | accept4 288 242 | fork 57 - |
    vfork 58 - | execve 59 221 | execveat 322 281 | unshare 272 97 | setns 308 268 | ptrace 101 117 |
    process_vm_readv 310 270 | process_vm_writev 311 271 | kcmp 312 272 | tkill 200 130 | rt_sigqueueinfo 129 138 |
    rt_tgsigqueueinfo 297 240 | process_madvise 440 440 | pidfd_send_signal 424 424 | pidfd_open 434 434 |
    pidfd_getfd 438 438 | io_uring_setup 425 425 | io_uring_enter 426 426 | io_uring_register 427 427 |
    setpriority 141 140 | ioprio_set 251 30 | migrate_pages 256 238 | move_pages 279 239 | sched_setparam 142 118 |
    sched_setscheduler 144 119 | sched_setaffinity 203 122 | sched_setattr 314 274 | shmget 29 194 | semget 64 190 |
    msgget 68 186 | mq_open 240 180 | memfd_create 319 279 | memfd_secret 447 447 | userfaultfd 323 282 |
    bpf 321 280 | perf_event_open 298 241 | add_key 248 217 | request_key 249 218 | keyctl 250 219 | mount 165 40 |
    umount2 166 39 | pivot_root 155 41 | chroot 161 51 | open_by_handle_at 304 265 | open_tree 428 428 |
    move_mount 429 429 | fsopen 430 430 | mount_setattr 442 442 | fanotify_init 300 262 | chmod 90 - | fchmod 91 52 |
    fchmodat 268 53 | fchmodat2 452 452 | chown 92 - | fchown 93 55 | lchown 94 - | fchownat 260 54 | truncate 76 45 |
    setxattr 188 5 | lsetxattr 189 6 | fsetxattr 190 7 | setxattrat 463 463 | removexattrat 466 466 |
    removexattr 197 14 | lremovexattr 198 15 | fremovexattr 199 16 | file_setattr 469 469 | utime 132 - |
    utimes 235 - | futimesat 261 - | utimensat 280 88
""")
# denied as well where there is no Landlock to keep them within the folder
_WRITING_SYSCALLS = _numbers("""
    creat 85 - | rename 82 - | renameat 264 38 | renameat2 316 276 | mkdir 83 - | mkdirat 258 34 | rmdir 84 - |
    link 86 - | linkat 265 37 | symlink 88 - | symlinkat 266 36 | unlink 87 - | unlinkat 263 35 | mknod 133 - |
    mknodat 259 33
""")
# allowed for some arguments
_CHECKED_SYSCALLS = _numbers("""
    clone 56 220 | clone3 435 435 | kill 62 129 | tgkill 234 131 | prlimit64 302 261 | prctl 157 167 | open 2 - |
    openat 257 56 | openat2 437 437
""")
_LOAD, _EQUAL, _NOT_LESS, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF instructions
_ALLOW, _KILL, _FAIL = 0x7FFF0000, 0x80000000, 0x00050000
_CLONE_THREAD = 0x00010000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38

# Landlock's access rights, by bit
_WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_FILE, _MAKE_FILE, _TRUNCATE = (1 << bit for bit in (1, 2, 3, 5, 8, 14))
_RIGHTS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_READABLE = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64", "/usr/share/zoneinfo", "/etc/localtime")
_READABLE += ("/etc/ld.so.cache", "/dev/urandom", "/dev/random", "/dev/zero", "/dev/null")


class LockdownError(Exception):
    """The kernel does not offer what the sandbox cannot do without."""


def lock_down(parent: int, folder: str, memory: int, cpu_seconds: int, file_size: int, landlock: bool = True) -> None:
    """Give up, for good, all that the calling process does not need in order to compute.

    Args:
        parent: the process that is to take this one along when it dies. folder: the only one to be written to.
        memory, file_size: bytes. landlock: False to do without it, for tests of that.

    Raises:
        LockdownError: where that is not possible; foreign code must not be run then.
    """
    if not sys.platform.startswith("linux") or os.uname().machine not in _AUDIT_ARCHITECTURE or sys.maxsize < 2**32:
        raise LockdownError(f"it needs 64-bit Linux on x86_64 or aarch64, and this is {sys.platform}")
    libc = ctypes.CDLL(None, use_errno=True)
    _prctl(libc, _PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above
        os._exit(1)
    for limit, value in (
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, file_size),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(limit)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))
    _prctl(libc, _PR_SET_DUMPABLE, 0)  # RLIMIT_CORE does not keep a crash from a core dump handler
    _prctl(libc, _PR_SET_NO_NEW_PRIVS, 1)
    confined = landlock and _confine_files(libc, folder)
    header, nothing = struct.pack("Ii", 0x20080522, 0), bytes(24)
    if libc.capset(header, nothing) != 0:
        raise LockdownError(f"the capabilities cannot be dropped: {os.strerror(ctypes.get_errno())}")
    _filter_syscalls(libc, read_only=not confined)
    if libc.socket(2, 1, 0) != -1 or ctypes.get_errno() != errno.EPERM:
        raise LockdownError("the kernel accepts the seccomp filter and does not heed it")


def _prctl(libc: ctypes.CDLL, option: int, *values) -> None:
    arguments = [value if isinstance(value, ctypes.Array) else ctypes.c_ulong(value) for value in values]
    if libc.prctl(option, *arguments, *[ctypes.c_ulong(0)] * (4 - len(arguments))) != 0:
        raise LockdownError(f"prctl({option}) is refused: {os.strerror(ctypes.get_errno())}")


def _confine_files(libc: ctypes.CDLL, folder: str) -> bool:
    """Restrict by Landlock which files can be opened; say whether the kernel has it."""
    create, add, restrict = 444, 445, 446

    def call(number: int, *arguments) -> int:
        wide = [each if isinstance(each, bytes) else ctypes.c_long(each) for each in arguments]
        return libc.syscall(ctypes.c_long(number), *wide)

    version = call(create, 0, 0, 1)
    if version < 1:
        return False
    rights = (1 << _RIGHTS_BY_VERSION[min(version, max(_RIGHTS_BY_VERSION))]) - 1
    ruleset = call(create, struct.pack("Q", rights), 8, 0)
    if ruleset < 0:
        raise LockdownError(f"Landlock is refused: {os.strerror(ctypes.get_errno())}")
    # the child's own search path holds its standard library; libraries in C lie beside it in a conda environment
    library = os.path.dirname(os.__file__)
    allowed = dict.fromkeys((*_READABLE, *sys.path, library, os.path.dirname(library)), _READ_FILE | _READ_DIR)
    allowed["/dev/null"] |= _WRITE_FILE
    allowed[folder] = _READ_FILE | _READ_DIR | _WRITE_FILE | _REMOVE_FILE | _MAKE_FILE | _TRUNCATE
    for path, granted in allowed.items():
        try:
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # not every system has every one
            continue
        if not os.path.isdir(path):
            granted &= _READ_FILE | _WRITE_FILE | _TRUNCATE
        if call(add, ruleset, 1, struct.pack("=Qi", granted & rights, beneath), 0) != 0:
            raise LockdownError(f"Landlock refuses a rule for {path}: {os.strerror(ctypes.get_errno())}")
        os.close(beneath)
    if call(restrict, ruleset, 0) != 0:
        raise LockdownError(f"Landlock is refused: {os.strerror(ctypes.get_errno())}")
    os.close(ruleset)
    return True


def _filter_syscalls(libc: ctypes.CDLL, read_only: bool) -> None:
    program = _program(os.uname().machine, os.getpid(), read_only)
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in program))
    _prctl(
        libc,
        _PR_SET_SECCOMP,
        2,
        ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))),
    )


def _program(machine: str, own: int, read_only: bool) -> list[tuple[int, int, int, int]]:
    """The filter: instructions (code, jump if true, jump if false, constant) over `struct seccomp_data`."""
    column = list(_AUDIT_ARCHITECTURE).index(machine)
    fail = (_RETURN, 0, 0, _FAIL | errno.EPERM)
    missing = (_RETURN, 0, 0, _FAIL | errno.ENOSYS)
    allow = (_RETURN, 0, 0, _ALLOW)
    writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

    def argument(index: int) -> tuple[int, int, int, int]:
        return _LOAD, 0, 0, 16 + 8 * index  # its lower half

    rules = {
        "clone": [argument(0), (_ANY_BIT, 1, 0, _CLONE_THREAD), fail, allow],
        "clone3": [missing],  # its flags lie in memory, out of a filter's sight; the C library then asks for clone
        "kill": [argument(0), (_EQUAL, 1, 0, own), fail, allow],
        "tgkill": [argument(0), (_EQUAL, 1, 0, own), fail, allow],
        "prlimit64": [argument(0), (_EQUAL, 2, 0, 0), (_EQUAL, 1, 0, own), fail, allow],
        "prctl": [argument(0), (_EQUAL, 0, 1, _PR_SET_PDEATHSIG), fail, allow],
    }
    if read_only:
        rules["open"] = [argument(1), (_ANY_BIT, 0, 1, writes), fail, allow]
        rules["openat"] = [argument(2), (_ANY_BIT, 0, 1, writes), fail, allow]
        rules["openat2"] = [missing]
    rules |= dict.fromkeys([*_SYSCALLS, *(_WRITING_SYSCALLS if read_only else ())], [fail])
    program = [(_LOAD, 0, 0, 4), (_EQUAL, 1, 0, _AUDIT_ARCHITECTURE[machine]), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, 0)]
    if machine == "x86_64":  # the same calls once more, under the numbers of the x32 interface
        program += [(_NOT_LESS, 0, 1, 0x40000000), (_RETURN, 0, 0, _KILL)]
    numbers = _SYSCALLS | _WRITING_SYSCALLS | _CHECKED_SYSCALLS
    for name, instructions in rules.items():
        number = numbers[name][column]
        if number is not None:
            program += [(_EQUAL, 0, len(instructions), number), *instructions]
    return [*program, allow]
