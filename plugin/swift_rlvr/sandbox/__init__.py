"""Run code that a policy wrote against tests, without trusting it.

Each completion runs in child processes that are started for it alone: `process` starts, feeds and kills them,
`lockdown` says what they may not do, `child` is what runs in them, `cases` reads the tests.

What code cannot do:

- **Say that it passed.** A program's output is compared with the expected output in the parent, which the child never
  sees. Of asserts the child gets the expression alone (``f(1)`` of ``assert f(1) == 2``), and only its value,
  written in plain types, comes back to be compared. Printing a success message, exiting with status 0 before or during
  the tests, raising SystemExit, and results whose class calls itself equal to everything earn nothing. Each answer must
  bear a number that is drawn for that test and sent with it, so that nothing can be answered in advance.
- **Find the expected results**, in files (given Landlock), in /proc, in frames or with gc: they are not in the process.
- **Harm the machine**, go on after its end, or reach anything outside: see `lockdown`.

What it can do, and this is known:

- An assert that compares with something that is no literal (``f(x) == g(x)``, ``f(x) in [1, 2]``, a loop, a ``try``)
  is evaluated beside the code. The functions of `builtins` and of modules that the tests import are put back before
  each test, and module-level names that hide a builtin are not taken over; but objects that lie about themselves
  (``__eq__``, ``__contains__``) pass, and so does code that goes through the interpreter's frames to the pipe and
  answers in our protocol. Whether the answer to ``assert not f(x)`` has to be true or false it does not know.
- It sees the arguments of the tests, one after the other, and can guess.
- Where the kernel has no Landlock it can read what the user can read. It cannot send it anywhere.
- It can use a whole CPU and its memory for the whole of its time. All children of a machine together can use as much as
  their number times the limits; each process of a trainer has its own.

Where the trainer is killed, its children die with it, and only their small folders in the temporary folder remain.
"""

from swift_rlvr.sandbox.asserts import BadTests, Step
from swift_rlvr.sandbox.cases import Case, read_tests
from swift_rlvr.sandbox.check import FAILURES, PASSED, WRONG, Outcome, check
from swift_rlvr.sandbox.process import Limits, SandboxError

__all__ = [
    "FAILURES",
    "PASSED",
    "WRONG",
    "BadTests",
    "Case",
    "Limits",
    "Outcome",
    "SandboxError",
    "Step",
    "check",
    "read_tests",
]
