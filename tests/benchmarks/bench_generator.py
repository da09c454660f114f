"""How fast Countdown tasks are made and solved.

Tutorial preset (3 to 4 numbers of 1..99, target 10..100), split train: different tasks as they
come, as lines of a JSONL file, and chosen by the number of solutions of each. Every time is
processor time, the best of --rounds, so that other work on the machine disturbs less.

Usage: PYTHONPATH=plugin python tests/benchmarks/bench_generator.py [--rows 200000] [--rounds 3]
Prints a table and, last, one line of JSON. Exits 1 where a figure is missed.
"""

import argparse
import json
import random
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from swift_rlvr.utils.jsonl import write_jsonl
from swift_rlvr.verifiers.countdown.generator import make_tasks
from swift_rlvr.verifiers.countdown.solver import difficulty, solve
from swift_rlvr.verifiers.countdown.task_settings import TUTORIAL, CountdownSettings

FIGURES = {"tasks": 50_000, "chosen by solutions": 300}  # a second, at least
COUNTED = replace(TUTORIAL, with_solutions=(1, 10**9))  # which all are
MOST_MS = {4: 20.0, 6: 2000.0}


def best(rounds: int, function) -> float:
    """Seconds of the fastest of several calls."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times)


def make(rows: int, settings: CountdownSettings = TUTORIAL) -> None:
    assert sum(1 for _ in make_tasks(settings, "train", 0, rows)) == rows


def write(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_jsonl(Path(folder) / "t.jsonl", make_tasks(TUTORIAL, "train", 0, rows))


def solver(rounds: int) -> dict[str, float]:
    """The slowest of some tasks, in milliseconds; of each task the best time counts."""
    rng, slowest = random.Random(0), {}
    for size, tasks in ((4, 200), (6, 5)):
        rows = [
            ([rng.choice((rng.randint(1, 99), 7)) for _ in range(size)], rng.randint(10, 100))
            for _ in range(tasks)
        ]
        for name, function in (("one", solve), ("all", difficulty)):
            milliseconds = [best(rounds, lambda: function(*row)) * 1000 for row in rows]  # noqa: B023
            slowest[f"{size} numbers, {name}"] = round(max(milliseconds), 2)
    return slowest


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--rows", type=int, default=200_000, help="tasks in a timing (default: 200000)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="timings of each (default: 3)")
    options = parser.parse_args()
    rows, few = options.rows, options.rows // 200
    per_second = {
        "tasks": round(rows / best(options.rounds, lambda: make(rows))),
        "as a JSONL file": round(rows / best(options.rounds, lambda: write(rows))),
        "chosen by solutions": round(few / best(options.rounds, lambda: make(few, COUNTED))),
    }
    solver_ms = solver(options.rounds)
    missed = [f"{name} a second" for name, least in FIGURES.items() if per_second[name] < least]
    missed += [f"{name}, ms" for name, worst in solver_ms.items() if worst >= MOST_MS[int(name[0])]]
    for heading, figures in (
        ("tutorial preset, tasks a second", per_second),
        ("solver, slowest task, ms", solver_ms),
    ):
        print(heading)
        for name, value in figures.items():
            print(f"  {name:<32}{value:>10,}")
    print()
    print(
        json.dumps(
            {
                "benchmark": "generator",
                "per_second": per_second,
                "solver_ms": solver_ms,
                "missed": missed,
            }
        )
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
