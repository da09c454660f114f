"""Run code that a policy wrote against tests, without trusting it.

`read_tests` reads the tests of a row, and `check` runs code against them: a `Verdict` for each test
that was run.

>>> tests = read_tests(["assert add(1, 2) == 3", "assert add(2, 2) == 4"])
>>> [verdict.reason for verdict in check("def add(a, b): return a + b", tests, Limits())]
['passed', 'passed']

Each completion runs in child processes that are started for it alone. Code cannot

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
- It can use a whole CPU and its memory for all of its time, and fill the disk for that long with
  files that it has removed but holds on to. All children of a machine together can use as much as
  their number times the limits; each process of a trainer has its own.

When the trainer is killed, its children die with it, and only their small folders in the temporary
folder remain.
"""

from swift_rlvr.verifiers.code.cases import read_tests
from swift_rlvr.verifiers.code.check import FAILURES, PASSED, WRONG, Verdict, check
from swift_rlvr.verifiers.code.process import Limits, SandboxError
from swift_rlvr.verifiers.code.sources import BadTests

__all__ = [
    "FAILURES",
    "PASSED",
    "WRONG",
    "BadTests",
    "Limits",
    "SandboxError",
    "Verdict",
    "check",
    "read_tests",
]
