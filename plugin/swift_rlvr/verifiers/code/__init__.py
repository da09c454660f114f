"""Run code that a policy wrote against tests, without trusting it.

`read_tests` reads the tests of a row, and `check` runs code against them: a `Verdict` for each test
that was run.

>>> tests = read_tests(["assert add(1, 2) == 3", "assert add(2, 2) == 4"])
>>> [verdict.reason for verdict in check("def add(a, b): return a + b", tests, Limits())]
['passed', 'passed']

Each test that is a program, and all others of a completion together, run in a process of their own,
a fork of one that runs no code of a completion and is kept for the next (`process.Zygotes`). Code
cannot

- **claim that it passed.** A program's output is compared with the expected output in the parent;
  the child never sees that. Of an assert the child gets the expression alone (``f(1)`` of ``assert
  f(1) == 2``), of a call the function and its arguments, and only the value, written in plain
  types, comes back to be compared. Printing a success message, exiting with status 0 before or
  during the tests, raising SystemExit, and results whose class claims to be equal to everything
  earn nothing. Each answer must bear a random number that is sent with its test, so nothing can be
  answered in advance;
- **find the expected results** in files (with Landlock), in /proc, in frames or with gc: they are
  not in the process;
- **harm the machine**, keep running after its end, or reach anything outside: see `lockdown`.

Known limits:

- A test that cannot be unfolded into comparisons with a literal (`unfold.py`: ``f(x) == g(x)``, a
  ``while``, a ``try``) is evaluated beside the code. The functions of `builtins` and of modules
  that the tests import are restored before each test, and module-level names that hide a builtin
  are not taken over. But objects that lie about themselves (``__eq__``, ``__contains__``) pass, and
  so does code that finds the pipe through the interpreter's frames and answers in our protocol. It
  does not know whether the answer to ``assert not f(x)`` has to be true or false.
- The code sees the arguments of the tests, one after the other, and can guess. It sees how long an
  answer may be, which tells the order of magnitude of the longest expected value of the row, above
  64 KiB.
- With `Limits.without_landlock`, where the kernel has none, it can read what the user can read,
  expected results included. It cannot send it anywhere.
- Packages that are named in `Limits.packages` are imported before the lockdown, and their C code
  can be called.
- It can use a whole CPU and its memory for all of its time. All children of a machine together can
  use as much as their number times the limits; each process of a trainer has its own.
- What it writes is counted every tenth of a second, with files that it has removed and holds on to,
  so it can write more than 128 MiB by what fits into that. Empty files that it holds by mappings
  are not counted, some 65,000 of them. Where the hard limit of core dumps is 0 and the user is not
  root, only files that have a name are counted: the process must not be visible to its parent there.
- One completion can leave another a few bits: `lockdown` lists by what.

When the trainer ends or is killed, its children end within a second, and only their small folders in the temporary
folder remain.
"""

from swift_rlvr.verifiers.code.asserts import BadTests
from swift_rlvr.verifiers.code.cases import read_tests
from swift_rlvr.verifiers.code.check import (
    FAILURES,
    PASSED,
    WRONG,
    Verdict,
    check,
    leaves_no_trace,
)
from swift_rlvr.verifiers.code.process import Limits, SandboxError

__all__ = [
    "FAILURES",
    "PASSED",
    "WRONG",
    "BadTests",
    "Limits",
    "SandboxError",
    "Verdict",
    "check",
    "leaves_no_trace",
    "read_tests",
]
