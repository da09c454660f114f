"""What references and mutants of them return for inputs: many programs on many inputs, in few
processes of the sandbox.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from swift_rlvr.evaluation.added_tests.given import LONGEST, Calls, Given
from swift_rlvr.verifiers.code.inside.prelude import NAMES
from swift_rlvr.verifiers.code.process import Limits
from swift_rlvr.verifiers.code.run import run_program

# Of each input what a program returns, as Python writes it, or its output; None if it fails, is
# slow or gives what cannot be compared.
Results = list[str | None]


class _Times(NamedTuple):
    """CPU seconds for one call or program and for a process, which runs all of them, and how many
    calls may take longer: further ones are not tried.
    """

    call: float
    slow: int
    process: float


# The reward allows 6 seconds for a test by default.
_OF_REFERENCES = _Times(call=0.5, slow=5, process=6.0)
_OF_MUTANTS = _Times(call=0.1, slow=1, process=6.0)
_TOGETHER = 8  # mutants that share a process

# Runs programs, each on all inputs. ITIMER_VIRTUAL counts the process's own CPU time, so that which
# inputs are kept does not depend on the load.
_DRIVER = """
def _run_all_():
    import ast, contextlib, io, json, signal, sys, types

    def stop(*_):
        raise TimeoutError

    signal.signal(signal.SIGVTALRM, stop)
    job = json.loads(sys.stdin.read())

    def result_of_call(names, arguments):
        function = job["function"]
        if "Solution" in names and function not in names:
            function = "Solution()." + function
        value = eval(arguments.replace(job["function"], function, 1), names)
        written = repr(value)
        return written if ast.literal_eval(written) == value else None

    def result_of_program(code, text):
        names = {"__name__": "__main__"}
        exec(job["prelude"], names)
        sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
        with contextlib.redirect_stdout(io.StringIO()) as output:
            with contextlib.suppress(SystemExit):
                exec(code, names)
        return output.getvalue()

    def timed(work, *values):
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, job["seconds"], 0.05)
            return work(*values)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)

    def results_of(program):
        module = sys.modules["solution"] = types.ModuleType("solution")
        code = compile(program, "solution", "exec")
        exec(job["prelude"], module.__dict__)
        if not job["is_program"]:
            timed(exec, code, module.__dict__)
        slow = 0
        for each in job["inputs"]:
            result = None
            try:
                if slow < job["slow"] and job["is_program"]:
                    result = timed(result_of_program, code, each)
                elif slow < job["slow"]:
                    result = timed(result_of_call, module.__dict__, each)
            except TimeoutError:
                slow += 1
            except BaseException:
                pass
            yield result if result is None or len(result) <= job["longest"] else None

    results = []
    with contextlib.redirect_stdout(io.StringIO()):
        for program in job["programs"]:
            try:
                results.append(list(results_of(program)))
            except BaseException:
                results.append([None] * len(job["inputs"]))
    sys.stdout.write("\\n" + json.dumps(results))


_run_all_()
"""


def results_of(
    programs: Sequence[str], given: Given, inputs: Sequence[Any], limits: Limits
) -> list[Results]:
    """The results of each program."""
    results = _run_in_a_process(programs, given, inputs, limits, _OF_REFERENCES)
    if results is not None:
        return results
    # One of them has taken all memory or all time: each alone, and then half of the inputs.
    if len(programs) > 1:
        return [results_of([program], given, inputs, limits)[0] for program in programs]
    if len(inputs) == 1:
        return [[None]]
    half = len(inputs) // 2
    (before,) = results_of(programs, given, inputs[:half], limits)
    (behind,) = results_of(programs, given, inputs[half:], limits)
    return [before + behind]


def results_of_mutants(
    programs: Sequence[str], given: Given, inputs: Sequence[Any], limits: Limits
) -> list[Results]:
    """The results of mutants, without those that take all memory or time, or stand beside one that
    does. Where that happens twice, the reference itself is slow, and the others are left out.
    """
    results: list[Results] = []
    failed = 0
    for start in range(0, len(programs), _TOGETHER):
        few = programs[start : start + _TOGETHER]
        of_few = _run_in_a_process(few, given, inputs, limits, _OF_MUTANTS)
        results += of_few or []
        failed += of_few is None
        if failed == 2:
            break
    return results


def _run_in_a_process(
    programs: Sequence[str], given: Given, inputs: Sequence[Any], limits: Limits, times: _Times
) -> list[Results] | None:
    """What `_DRIVER` says; None if its process was ended."""
    if not inputs:
        return [[] for _ in programs]
    function = ""
    written = inputs
    # As source, since arguments such as sets and tuples have no JSON.
    if isinstance(given, Calls):
        function = given.function
        written = list(map(given.call, inputs))
    # Imports of what code may use without importing it.
    mentioned = set(re.findall(r"\w+", "\n".join(programs)))
    imports = []
    for name in sorted(mentioned & NAMES.keys()):
        module = NAMES[name]
        imports.append(f"import {name}" if module == name else f"from {module} import {name}")
    job = {
        "programs": programs,
        "prelude": "\n".join(imports),
        "inputs": written,
        "is_program": not isinstance(given, Calls),
        "function": function,
        "seconds": times.call,
        "slow": times.slow,
        "longest": LONGEST,
    }
    (output,) = run_program(_DRIVER, [json.dumps(job)], replace(limits, seconds=times.process))
    if output is None:
        return None
    # The last line alone: a program may have written past the stream that the driver redirects.
    results: list[Results] = json.loads(output.rpartition("\n")[2])
    return results
