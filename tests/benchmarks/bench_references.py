"""Public reference solutions through `external_code`: paid, not graded, refused; apart and together.

    PYTHONPATH=plugin python tests/benchmarks/bench_references.py FOLDER [--only NAME] [--sample N] [--show]

FOLDER holds the archives that the head of `public_code.py` names. BigCodeBench needs pandas, numpy and
scipy in the Python that runs this. All rows take 25 minutes on two busy cores; --sample takes so many of
each kind, chosen by a fixed seed.

Each row goes the way of `--dataset code:FILE`: its columns are found, its prompt is made, and the
reference stands in the block of a completion. A reference that plain Python does not pass with the same
tests on this machine (a package or a version that differs) is counted as `broken` and not asked.
Prints a table and one line of JSON; exits with 1 where a right reference gets 0.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import public_code

from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS

# Of the packages that BigCodeBench's rows use, those that this Python has.
DATA = tuple(filter(find_spec, ("numpy", "pandas", "polars", "scipy", "sklearn", "dateutil")))
UNITTEST = """
import unittest
suite = unittest.TestSuite()
for cls in list(globals().values()):
    if isinstance(cls, type) and issubclass(cls, unittest.TestCase) and cls is not unittest.TestCase:
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(cls))
result = suite.run(unittest.TestResult())
assert result.testsRun and result.wasSuccessful()
"""
PYTEST = """
for name, cls in list(globals().items()):
    if not (name.startswith("Test") and isinstance(cls, type)): continue
    for test in [value for key, value in vars(cls).items() if key.startswith("test")]:
        for mark in test.pytestmark:
            for case in mark.args[1]:
                one = cls()
                one.setup_method()
                test(one, *case)
"""


def kinds(folder: Path) -> dict[str, tuple[list[dict[str, Any]], dict[str, Any], str]]:
    """By name the rows, the reward's parameters, and what plain Python runs behind the tests."""
    leetcode = list(public_code.leetcode(folder))
    asserts = [row for row in (problem.asserts() for problem in leetcode) if row]
    big = {"packages": DATA, "memory_mb": 4096}
    main = 'if __name__ == "__main__":'
    frames = {}
    for library in ("pandas", "polars"):
        rows = public_code.bigcodebench(folder, library)
        known = {*sys.stdlib_module_names, *DATA}
        # Rows that draw need matplotlib, which does not start in the sandbox.
        plain = [row for row in rows if "plot" not in row["solution"]]
        frames[library] = [row for row in plain if {*row["libs"]} <= known]
        for row in frames[library]:
            row["tests"] = row["tests"].partition(main)[0]
    return {
        "humaneval": (public_code.humaneval(folder), {}, ""),
        "leetcode asserts": (asserts, {}, ""),
        "leetcode pytest": ([problem.program() for problem in leetcode], {}, PYTEST),
        "bigcodebench pandas": (frames["pandas"], big, UNITTEST),
        "bigcodebench polars": (frames["polars"], big, UNITTEST),
    }


def is_right(row: dict[str, Any], code: str, runner: str) -> bool:
    """Whether plain Python passes the row's own tests with this code."""
    tests = row.get("tests") or f"{row['test']}\ncheck({row['entry_point']})"
    if isinstance(tests, list):
        tests = "\n".join(tests)
    tests = tests.replace("from solution import Solution\n", "")
    return public_code.passes(code, f"{tests}\n{runner}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--sample", type=int)
    parser.add_argument("--show", action="store_true", help="name each row that is not paid")
    options = parser.parse_args()
    task = TASKS["code"]
    table: list[dict[str, Any]] = []
    for name, (rows, parameters, runner) in kinds(options.folder).items():
        if options.only not in name:
            continue
        if options.sample and len(rows) > options.sample:
            rows = random.Random(0).sample(rows, options.sample)
        counts: Counter[str] = Counter()
        seconds = 0.0
        for row in rows:
            gold = task.gold(row)
            # A reference in the syntax of a later Python is no code for this one.
            if gold is None or not is_right(row, gold.text, runner):
                counts["broken"] += 1
                continue
            prepared = task.preprocess(row)
            columns = {"tests": [prepared["tests"]]}
            columns["entry_point"] = [prepared.get("entry_point")]
            start = time.perf_counter()
            (grade,) = REWARDS["code"](**parameters).grades([gold.answer], **columns)
            seconds += time.perf_counter() - start
            verdict = {1.0: "apart", None: "not graded", 0.0: "refused"}[grade.reward]
            if grade.reason == "passes only together with its tests":
                verdict = "together"
            counts[verdict] += 1
            if options.show and grade.reward != 1.0:
                print(f"{name} {row['task_id']}: {grade.reward} {grade.reason}", flush=True)
        table.append({"rows": name, "read": len(rows), **counts, "seconds": round(seconds, 1)})
        print(json.dumps(table[-1]), flush=True)
    heads = ("read", "broken", "apart", "together", "not graded", "refused", "seconds")
    print("\n| public references | " + " | ".join(heads) + " |\n|---|" + "---|" * len(heads))
    for line in table:
        print(f"| {line['rows']} | " + " | ".join(str(line.get(each, 0)) for each in heads) + " |")
    refused = sum(line.get("refused", 0) for line in table)
    print(
        json.dumps({"bench": "references", "table": table, "missed": ["refused"] * bool(refused)})
    )
    sys.exit(1 if refused else 0)


if __name__ == "__main__":
    main()
