r"""The worker with a stand-in for sympy, for tests of processes and not of algebra: it starts in 0.1 s.

It knows that ``2\ln 3`` equals ``\ln 9``, and works for ever on an answer that starts like a power tower.
"""

import re
import runpy
import sys
import types

LOGARITHM = re.compile(r"(\d*)\\ln (\d+)")


def parse_answer(text: str, how: str) -> tuple[int | str, ...]:
    match = LOGARITHM.fullmatch(text)
    return (int(match[2]) ** int(match[1] or 1) if match else text,)


def equal(golds: tuple[int | str, ...], answers: tuple[int | str, ...]) -> bool:
    while str(answers[0]).startswith("9^{9^"):
        pass
    return golds == answers


if __name__ == "__main__":
    judge = types.ModuleType("swift_rlvr.math_answers.judge")
    judge.parse_answer, judge.equal = parse_answer, equal
    sys.modules[judge.__name__] = judge
    runpy.run_module("swift_rlvr.math_answers.worker", run_name="__main__")
