"""What the code reward costs: ordinary verdicts beside a peer, rows of many cases, slow right
solutions, hostile batches.

    PYTHONPATH=plugin python tests/benchmarks/bench_code.py [--hostile] [--only TEXT]

It takes 30 s; --hostile takes 20 minutes more on two cores.

The peer is what graders without a sandbox do, as HumanEval's: fork, and `exec` of the code with its
test, or with a case's standard input. It runs in turns with ours, so that other work on the machine
slows both. Prints a table and one line of JSON; exits with 1 where ours is slower than LEAST says.
"""

import argparse
import gc
import itertools
import json
import math
import os
import resource
import sys
import time
from collections.abc import Callable
from functools import partial

from swift_rlvr.rewards import REWARDS

HOSTILE = {
    "sleeps": "import time\ntime.sleep(1000)",
    "computes": "while True: pass",
    "forks": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "threads": "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=[1000]).start()",
    "memory": "x = []\nwhile True: x.append(bytearray(1 << 20))",
    "output": "while True: print('x' * 1000)",
    "files": "n = 0\nwhile True:\n    n += 1\n    open(str(n), 'w').write('x' * 10000)",
    "pipes": """
import os
for fd in range(3, 64):
    try: os.write(fd, b'x' * 60000)
    except OSError: pass
while True: pass""",
}
# What chooses when it is seen, or waits where no limit of the kernel's counts.
HIDING = {
    "a byte of output, then asleep": """
import os, time
while True:
    os.write(1, b'x')
    end = time.perf_counter() + 0.002
    while time.perf_counter() < end: pass
    time.sleep(0.09)""",
    "fsync": """
import os
file = os.open('x', os.O_RDWR | os.O_CREAT)
while True:
    os.pwrite(file, b'x', 0)
    os.fsync(file)""",
    "250 files and bytes of output": """
import os, time
for n in range(250): open(str(n), 'w').write('x')
while True:
    os.write(1, b'x')
    time.sleep(0.0002)""",
    "removed files that are mapped": """
import mmap, os
kept = []
while True:
    file = os.open('x', os.O_RDWR | os.O_CREAT)
    for _ in range(15): os.write(file, bytes(1 << 20))
    kept.append(mmap.mmap(file, 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ))
    os.close(file)
    os.remove('x')""",
}
SLOW = """
import time
def f(x):
    end = time.process_time() + 0.4
    while time.process_time() < end: pass
    return x"""


def run(programs: list[str], tests: object, workers: int) -> tuple[float, float]:
    """Seconds on the wall, and the sum of the rewards."""
    texts = [f"```python\n# {number}\n{program}\n```" for number, program in enumerate(programs)]
    reward = REWARDS["code"](max_workers=workers)
    start = time.perf_counter()
    rewards = reward(texts, tests=[tests] * len(texts))
    return time.perf_counter() - start, sum(value or 0.0 for value in rewards)


def forked(code: str, stdin: bytes = b"") -> bytes:
    """The peer: what code prints that runs in a fork of this process."""
    source, to_stdin = os.pipe()
    output, to_output = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(source, 0)
        os.dup2(to_output, 1)
        try:
            exec(code, {})
            sys.stdout.flush()
        finally:
            os._exit(0)
    for pipe in (source, to_output):
        os.close(pipe)
    os.write(to_stdin, stdin)
    os.close(to_stdin)
    with open(output, "rb") as file:
        result = file.read()
    os.waitpid(child, 0)
    return result


NUMBERS = itertools.count(10**6)  # of completions, all different


def cpu_seconds(make: Callable[[], Callable[[int], None]], rows: int) -> float:
    """Of this process and all that it has started, for each row; a busy machine changes it less than the
    time on the wall.
    """

    def spent(count: int) -> float:
        before = sum(map(sum, _usage()))
        work = make()
        for _ in range(count):
            work(next(NUMBERS))
        del work  # with the processes of the reward, whose time counts when they have ended
        gc.collect()
        return sum(map(sum, _usage())) - before

    least = spent(1)
    return (spent(1 + rows) - least) / rows


def _usage() -> list[tuple[float, float]]:
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    return [resource.getrusage(kind)[:2] for kind in kinds]


def a_second(work: Callable[[int], None], rows: int) -> Callable[[], float]:
    """A function that does `rows` rows and returns the most in a second of all turns so far."""
    best = 0.0
    number = 0

    def turn() -> float:
        nonlocal best, number
        start = time.perf_counter()
        for _ in range(rows):
            number += 1
            work(number)
        best = max(best, rows / (time.perf_counter() - start))
        return best

    return turn


# Tests that are no plain asserts: `x` is known only when they run.
UNITTEST = (
    "import unittest\nclass T(unittest.TestCase):\n    def test(self):\n        x = [1][0]\n"
    + "".join(f"        self.assertEqual(f({number}), {number - 1} + x)\n" for number in range(10))
)
RUN_UNITTEST = """
runner = unittest.TextTestRunner(stream=open('/dev/null', 'w'))
runner.run(unittest.defaultTestLoader.loadTestsFromTestCase(T))
"""
# The same with functions of the tests, which pass only together: ours tries apart before.
UNITTEST_TOGETHER = UNITTEST.replace("f(", "f(lambda: ")
LOOP_TOGETHER = "x = [1][0]\nfor i in range(1000):\n    assert f(lambda: i) == i - 1 + x"
# The share of the peer's speed that ours has at least. A loop goes through two processes a call.
LEAST = {"one assert": 0.6, "20 asserts": 0.5, "20 cases": 0.6, "unittest of 10 calls": 0.5}
LOOP = "x = [1][0]\nfor i in range(1000):\n    assert f(i) == i - 1 + x"


def _itself(work: Callable[[int], None]) -> Callable[[int], None]:
    return work


def beside_the_peer(turns: int = 7) -> dict[str, tuple[float, float, float]]:
    """Rows a second, ours and the peer's, one at a time, of different completions; and the same by
    CPU time, as a share of the peer's speed, the middle one of the turns.
    """
    cases = {"inputs": ["3"] * 20, "outputs": ["3"] * 20}
    asserts = [f"assert f({number}) == {number}" for number in range(20)]

    def a_function(tests: object, body: str = "x", together: bool = False) -> Callable[[int], None]:
        reward = REWARDS["code"](max_workers=1, together=together)

        def work(number: int) -> None:
            text = f"```python\ndef f(x): return {body} # {number}\n```"
            assert reward([text], tests=[tests]) == [1.0]

        return work

    def peer_of_function(tests: str, body: str = "x") -> Callable[[int], None]:
        def work(number: int) -> None:
            assert forked(f"def f(x): return {body} # {number}\n{tests}\nprint(1)") == b"1\n"

        return work

    def twenty_cases() -> Callable[[int], None]:
        reward = REWARDS["code"](max_workers=1)

        def work(number: int) -> None:
            text = f"```python\nprint(input()) # {number}\n```"
            assert reward([text], tests=[cases]) == [1.0]

        return work

    def peer_of_cases(number: int) -> None:
        for _ in range(20):
            assert forked(f"print(input()) # {number}", b"3\n") == b"3\n"

    many = "\n".join(asserts)
    unit = f"from solution import f\n{UNITTEST}"
    works = {
        "one assert": (lambda: a_function(asserts[1]), peer_of_function(asserts[1]), 40),
        "20 asserts": (lambda: a_function(asserts), peer_of_function(many), 20),
        "20 cases": (twenty_cases, peer_of_cases, 3),
        "unittest of 10 calls": (
            lambda: a_function(unit),
            peer_of_function(UNITTEST + RUN_UNITTEST),
            10,
        ),
        "a loop of 1,000 calls": (lambda: a_function(LOOP), peer_of_function(LOOP), 2),
        "unittest of 10 calls, together": (
            lambda: a_function(
                f"from solution import f\n{UNITTEST_TOGETHER}", "x()", together=True
            ),
            peer_of_function(UNITTEST_TOGETHER + RUN_UNITTEST, "x()"),
            10,
        ),
        "a loop of 1,000 calls, together": (
            lambda: a_function(LOOP_TOGETHER, "x()", together=True),
            peer_of_function(LOOP_TOGETHER, "x()"),
            10,
        ),
    }
    figures = {}
    for name, (make, peer_work, rows) in works.items():
        ours, peer = a_second(make(), rows), a_second(peer_work, rows)
        ours()  # which starts the process that forks
        shares = []
        for _ in range(turns):
            best = ours(), peer()
            of_the_peer = cpu_seconds(partial(_itself, peer_work), rows)
            shares.append(of_the_peer / cpu_seconds(make, rows))
        figures[name] = *best, sorted(shares)[turns // 2]
    return figures


def round_trip(count: int = 2000) -> float:
    """Microseconds, at best, that it takes to send a small message to another Python by a pipe and to
    have an answer; both read and write it as JSON. No call of another process' function takes less.
    """
    message = {"request": ["call", ["f"], [1]]}
    best = math.inf
    for _ in range(5):
        source, to_child = os.pipe()
        from_child, sink = os.pipe()
        child = os.fork()
        if child == 0:
            for _ in range(count):
                os.write(sink, json.dumps(json.loads(os.read(source, 1 << 16))).encode())
            os._exit(0)
        start = time.perf_counter()
        for _ in range(count):
            os.write(to_child, json.dumps(message).encode())
            json.loads(os.read(from_child, 1 << 16))
        best = min(best, (time.perf_counter() - start) / count)
        os.waitpid(child, 0)
        for pipe in (source, to_child, from_child, sink):
            os.close(pipe)
    return 1e6 * best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hostile", action="store_true")
    parser.add_argument("--only", default="", help="runs with this text in their name")
    options = parser.parse_args()
    missed = []
    print(f"a round trip between two processes, of a line of JSON: {round_trip():.0f} us")
    for name, (ours, peer, cpu) in beside_the_peer().items():
        text = f"{ours:7.1f} rows a second, fork and exec {peer:.1f}, {ours / peer:.2f} of it; "
        print(f"{text}by CPU time {cpu:.2f} of it  {name}", flush=True)
        if ours < LEAST.get(name, 0) * peer:
            missed.append(name)
    cores, figures = len(os.sched_getaffinity(0)), {}
    numbers = list(map(str, range(200)))
    runs: dict[str, tuple[list[str], object, int]] = {
        "100 functions, one test each, one at a time": (
            ["def f(x): return x"] * 100,
            "assert f(1) == 1",
            1,
        ),
        "a step of 1,024 completions, one assert each, 16 at a time": (
            [f"def f(x): return x # {number}" for number in range(1024)],
            "assert f(1) == 1",
            16,
        ),
        "a program with 200 cases": (
            ["print(input())"],
            {"inputs": numbers, "outputs": numbers},
            1,
        ),
        "8 right solutions of 3.2 s of CPU time each, two a core": (
            [SLOW] * 8,
            [f"assert f({x}) == {x}" for x in range(8)],
            2 * cores,
        ),
    }
    forms: tuple[object, ...] = ("assert f(1) == 2", [{"input": "", "output": "1"}])
    for tests in forms if options.hostile else ():
        form = "a function" if isinstance(tests, str) else "a program"
        runs[f"64 that sleep, as {form}"] = [HOSTILE["sleeps"]] * 64, tests, cores
        runs[f"64 hostile ones of 8 kinds, as {form}"] = [*HOSTILE.values()] * 8, tests, cores
        for kind, program in HIDING.items():
            runs[f"64 of {kind}, as {form}"] = [program] * 64, tests, cores
    for name, (programs, tests, workers) in runs.items():
        if options.only not in name:
            continue
        seconds, paid = figures[name] = run(programs, tests, workers)
        print(f"{seconds:7.1f} s  {paid:5g} of {len(programs):3} paid  {name}", flush=True)
    print(json.dumps(figures | {"missed": missed}))
    if missed:
        sys.exit(1)


if __name__ == "__main__":
    main()
