"""The jobs of a child that has locked itself down: a program, a module of functions, or tests."""

import sys
from collections.abc import Callable
from types import ModuleType

from . import harness, prelude, refused, solution, together

# as in LiveCodeBench; competitive programmers count on a limit far above Python's 1,000
_RECURSION_LIMIT = 50_000


def run(job: dict, receive: Callable[[], dict], report: Callable[..., bool]) -> None:
    """Do the job of the first message that comes after the lockdown."""
    # what stands in for what has been refused before
    stand_ins = job.get("stand_ins", 0)
    if stand_ins >= 1:
        refused.share_nothing()
    if stand_ins >= 2:
        refused.processes_as_threads()

    if job["kind"] == "tests":
        harness.run(job, receive, report)
        return

    try:
        # Without dont_inherit it would have the future statements of this module.
        compiled = compile(job["code"], "<completion>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        report(solution.failure(error) | {"kind": "syntax error"})
        return
    is_program = job["kind"] == "program"
    name = "__main__" if is_program else "solution"
    sys.modules[name] = module = ModuleType(name)
    # There is no such file, but programs ask for its folder.
    module.__file__ = "completion.py"
    prelude.provide(compiled, vars(module))
    sys.setrecursionlimit(_RECURSION_LIMIT)
    if is_program:
        sys.argv = ["completion.py"]
        try:
            exec(compiled, vars(module))
        except SystemExit:
            raise
        except BaseException as error:
            report(solution.failure(error))
            sys.exit(1)
    elif job["kind"] == "together":
        together.run(compiled, module, job, receive, report)
    else:
        solution.run(compiled, module, job, receive, report)
