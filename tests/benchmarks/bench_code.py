"""What the code reward costs: ordinary verdicts, rows of many cases, slow right solutions, hostile
batches.

PYTHONPATH=plugin python tests/benchmarks/bench_code.py [--hostile]    # 20 s; hostile: 10 minutes
more on two cores

Prints a table and one line of JSON. There is no peer: the graders of other projects run code
without a sandbox.
"""

import argparse
import json
import os
import time

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
    return time.perf_counter() - start, sum(rewards)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hostile", action="store_true")
    options = parser.parse_args()
    cores, figures = len(os.sched_getaffinity(0)), {}
    numbers = list(map(str, range(200)))
    runs = {
        "100 functions, one test each, one at a time": (
            ["def f(x): return x"] * 100,
            "assert f(1) == 1",
            1,
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
    for tests in ("assert f(1) == 2", [{"input": "", "output": "1"}]) if options.hostile else ():
        form = "a function" if isinstance(tests, str) else "a program"
        runs[f"64 that sleep, as {form}"] = [HOSTILE["sleeps"]] * 64, tests, cores
        runs[f"64 hostile ones of 8 kinds, as {form}"] = [*HOSTILE.values()] * 8, tests, cores
    for name, (programs, tests, workers) in runs.items():
        seconds, paid = figures[name] = run(programs, tests, workers)
        print(f"{seconds:7.1f} s  {paid:5g} of {len(programs):3} paid  {name}", flush=True)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
