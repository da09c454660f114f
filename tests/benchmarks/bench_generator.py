"""How fast Countdown tasks are made and solved, beside reasoning-gym's generator, in one run.

Tutorial preset (3 to 4 numbers of 1..99, target 10..100), split train: different tasks as they come, as lines of a
JSONL file, and chosen by the number of solutions of each.
reasoning-gym makes tasks of the same ranges; of its rows are counted those that are a repetition, those whose own
answer the Countdown verifier does not credit, and those that it fails to make.
Every time is processor time, the best of --rounds, so that other work on the machine disturbs less. Without
reasoning-gym (pip install reasoning-gym) that part is left out, and the run says so.

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

from swift_rlvr.countdown import verify
from swift_rlvr.countdown.generator import make_tasks
from swift_rlvr.countdown.settings import TUTORIAL, CountdownSettings
from swift_rlvr.countdown.solver import difficulty, solve
from swift_rlvr.jsonl import write_jsonl

INSTALL = "reasoning-gym is not installed; for the comparison: pip install reasoning-gym"
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
    for size, tasks, top in ((4, 200, 99), (6, 5, 99)):
        rows = [
            ([rng.choice((rng.randint(1, top), 7)) for _ in range(size)], rng.randint(10, 100)) for _ in range(tasks)
        ]
        for name, function in (("one", solve), ("all", difficulty)):
            milliseconds = [best(rounds, lambda: function(*row)) * 1000 for row in rows]  # noqa: B023
            slowest[f"{size} numbers, {name}"] = round(max(milliseconds), 2)
    return slowest


def reasoning_gym(rows: int, rounds: int) -> dict | None:
    """The same of reasoning-gym, or None where it is not installed."""
    try:
        from reasoning_gym import create_dataset
    except ImportError:
        return None
    low, high = TUTORIAL.number
    ranges = {"min_numbers": TUTORIAL.count[0], "max_numbers": TUTORIAL.count[1], "min_value": low, "max_value": high}
    ranges |= {"min_target": TUTORIAL.target[0], "max_target": TUTORIAL.target[1]}

    def made():
        dataset, entries = create_dataset("countdown", size=rows, seed=0, **ranges), []
        for index in range(rows):
            try:
                entries.append(dataset[index])
            except ValueError:  # "Failed to generate valid expression after 100 attempts"
                continue
        return entries

    seconds, entries = best(rounds, made), made()
    tasks = [(entry["metadata"]["numbers"], entry["metadata"]["target"]) for entry in entries]
    return {
        "per_second": round(len(entries) / seconds),
        "rows": rows,
        "failed": rows - len(entries),
        "repeated": len(tasks) - len({(*sorted(nums), target) for nums, target in tasks}),
        "not_credited": sum(
            verify(f"<answer>{entry['answer']}</answer>", *task).reward != 1.0
            for entry, task in zip(entries, tasks, strict=True)
        ),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=200_000, help="tasks in a timing (default: 200000)")
    parser.add_argument("--rounds", type=int, default=3, help="timings of each (default: 3)")
    parser.add_argument("--gym-rows", type=int, default=500, help="tasks that reasoning-gym makes (default: 500)")
    settings = parser.parse_args()
    rows, rounds = settings.rows, settings.rounds

    def rate(how_many, function):
        return round(how_many / best(rounds, function))

    per_second = {
        "tasks": rate(rows, lambda: make(rows)),
        "as a JSONL file": rate(rows, lambda: write(rows)),
        "chosen by solutions": rate(rows // 200, lambda: make(rows // 200, COUNTED)),
    }
    result = {"benchmark": "generator", "per_second": per_second, "solver_ms": solver(rounds)}
    missed = [
        f"{name}: {per_second[name]} < {least} a second" for name, least in FIGURES.items() if per_second[name] < least
    ]
    missed += [
        f"{name}: {worst} ms >= {MOST_MS[int(name[0])]} ms"
        for name, worst in result["solver_ms"].items()
        if worst >= MOST_MS[int(name[0])]
    ]
    gym = result["reasoning_gym"] = reasoning_gym(settings.gym_rows, rounds)
    result["missed"] = missed

    print("tutorial preset, tasks a second" + f" (best of {rounds})")
    for name, value in per_second.items():
        print(f"  {name:<32}{value:>10,}")
    if gym is None:
        print(f"  {INSTALL}")
    else:
        times = per_second["tasks"] / gym["per_second"]
        print(f"  {'reasoning-gym':<32}{gym['per_second']:>10,}   ours: {times:,.0f} times")
        counted = ", ".join(f"{gym[name]} {name.replace('_', ' ')}" for name in ("failed", "repeated", "not_credited"))
        print(f"    of {gym['rows']}: {counted}")
    print("solver, slowest task, ms")
    for name, value in result["solver_ms"].items():
        print(f"  {name:<32}{value:>10}")
    print()
    print(json.dumps(result))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
