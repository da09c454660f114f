"""Run a trusted solution in the sandbox, and get what it prints."""

import time
from contextlib import closing

from swift_rlvr.verifiers.code.process import ALL_TESTS, LOAD, Ended, Limits, Zygotes, sandboxed

_MOST_OUTPUT = 1 << 22  # bytes


def run_program(code: str, inputs: list[str], limits: Limits) -> list[str | None]:
    r"""The output for each input, each in a process of its own; None where the program fails, is
    stopped or prints too much.

    SandboxError where code cannot be run safely.

    >>> run_program("print(int(input()) + 1)", ["1\n", "one\n"], Limits())
    ['2\n', None]
    """
    job = {"kind": "program", "code": code}
    outputs: list[str | None] = []
    with closing(Zygotes(limits.packages)) as zygotes:
        for text in inputs:
            deadline = time.monotonic() + LOAD * ALL_TESTS * limits.seconds
            stdin = text.encode(errors="replace")
            try:
                with (
                    zygotes.borrow() as zygote,
                    sandboxed(zygote, limits, deadline, job, stdin) as child,
                ):
                    child.allow(limits.seconds)
                    output, report = child.run(_MOST_OUTPUT)
            except Ended:
                outputs.append(None)
                continue
            outputs.append(output.decode(errors="replace") if report is None else None)
    return outputs
