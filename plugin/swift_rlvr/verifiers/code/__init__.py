"""Run code that a policy wrote against tests, without trusting it.

`read_tests` reads the tests of a row, and `check` runs code against them: a `Verdict` for each test
that was run.

>>> tests = read_tests(["assert add(1, 2) == 3", "assert add(2, 2) == 4"])
>>> [verdict.reason for verdict in check("def add(a, b): return a + b", tests, Limits())]
['passed', 'passed']

Each completion runs in processes of its own: forks of one that runs no code of a completion and is
kept for the next (`process.Zygotes`). A program, with standard input and output, has one for each
case, and the parent compares. Functions have one process with the code, and the tests another one,
just as confined, in which the names of the code are proxies (`inside/`). A call of theirs goes to
the code's process by way of the parent; what comes back is plain values, and handles of what is not
plain. So the tests are compared with Python's own operators, in a process in which no object and no
function is the code's. Calls with arguments of JSON (`calls`), and asserts such as
``assert f(1) == 2`` in which all else is written down (`plain`), need no process of the tests: the
parent compares.

Some right code does not work across two processes. `passes_together` runs a test program in one with
the code. There code can lie to its tests, which `inside.seal` makes hard, so that a pass is no proof.

Code cannot

- **claim that it passed.** A program's output is compared with the expected output in the parent,
  values in the parent or by the tests. The code's process says nothing of verdicts: it answers with
  values, and whatever else it writes is a wrong answer. Printing a success message, exiting with
  status 0 before or during the tests, raising SystemExit, changing builtins or modules, and
  subclasses of int or list that lie about themselves (they arrive as plain values) earn nothing;
- **be equal to everything.** An object of the code is never equal to a value of the tests, and its
  class is not asked. Nor may it meet one in ``in``, ``<`` or ``-``: it would learn what is expected.
  Of two objects of the code its class says whether they are equal. An object that the tests have
  made themselves, by calling a class of the code, has its own operators: these are what is tested.
  Which names are classes is told by how the tests write them, with a capital letter;
- **find the expected results** in files (with Landlock), in /proc, in frames or with gc: they are
  not in the process. It cannot ask for anything either: what the tests hand over crosses as a plain
  value or not at all;
- **harm the machine**, keep running after its end, or reach anything outside: see `lockdown`.

Known limits:

- Tests are as strict as they are written. ``for x in f(): assert x > 0`` holds for an empty list,
  ``assert f(1) == f(1)`` for any function; an object's method may return what it likes, and a test
  of a class that only asks that is answered. ``result.equals(expected)`` of a function's result is
  refused, as is any question that hands a value to a part of such a result.
- Where the tests call a function whose name begins with a capital letter, in an assert that is not
  plain, code may write a class in its place whose ``-`` or ``in`` says what is wanted.
- What crosses is a copy: a list that a function returned is not the one that it keeps, and
  ``f(a) is a`` does not hold. Arguments that it changes in place are changed for the tests too. A
  test cannot hand over a function or an object of its own, derive from a class of the code, enter
  an object of it by ``with``, patch a builtin or standard input for it, await its functions, send
  values to its generators, capture what it prints, or seed its random numbers. `passes_together`
  can tell whether that is why code fails.
- The limit of time holds for the code and for the tests each.
- The code sees the arguments of the tests, one after the other, and can guess. It sees how long an
  answer may be, which tells the order of magnitude of the longest expected value of the row, above
  64 KiB.
- With `Limits.without_landlock`, where the kernel has none, it can read what the user can read,
  expected results included. It cannot send it anywhere.
- Packages that are named in `Limits.packages` are imported before the lockdown, with all that they
  import themselves, and their C code can be called.
- It can use a whole CPU and its memory for all of its time. All children of a machine together can
  use as much as their number times the limits; each process of a trainer has its own.
- What it writes is counted every tenth of a second, with files that it has removed and holds on to,
  so it can write more than 128 MiB by what fits into that. Empty files that it holds by mappings
  are not counted, some 65,000 of them. Where the hard limit of core dumps is 0 and the user is not
  root, only files that have a name are counted: the process must not be visible to its parent there.
- One completion can leave another a few bits: `lockdown` lists by what.

When the trainer ends or is killed, its children end within a second, and their folders in the
temporary folder are removed.
"""

from swift_rlvr.verifiers.code.cases import read_tests
from swift_rlvr.verifiers.code.check import (
    FAILURES,
    PASSED,
    TOO_MANY_CALLS,
    UNGRADED,
    WRONG,
    Verdict,
    check,
    leaves_no_trace,
    passes_together,
)
from swift_rlvr.verifiers.code.process import Limits, SandboxError
from swift_rlvr.verifiers.code.sources import BadTests

__all__ = [
    "FAILURES",
    "PASSED",
    "TOO_MANY_CALLS",
    "UNGRADED",
    "WRONG",
    "BadTests",
    "Limits",
    "SandboxError",
    "Verdict",
    "check",
    "leaves_no_trace",
    "passes_together",
    "read_tests",
]
