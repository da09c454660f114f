"""What `--add_cases` catches on public rows, beside gameability (PyPI).

    pip install mutmut gameability==0.3.1
    PYTHONPATH=plugin python tests/benchmarks/bench_added_tests.py FOLDER [--rows N] [--count 20] [--show]

FOLDER holds the archives that the head of `public_code.py` names. 60 rows take 15 minutes on two busy
cores, and are half of HumanEval, half of LeetCode, chosen by a fixed seed.

The first three asserts of a row are what a policy sees, as in MBPP. The others (four or more, written by
the authors of the data) say which programs are wrong, and neither tool is shown them:

- `mutants`: changes of the reference at one place by mutmut's operators, which neither tool has, that
  pass what is visible and fail a hidden assert;
- `wrong`: programs of codegen-2b (HumanEval) that do so;
- `right`: its programs that pass all asserts.

A tool is better the fewer mutants and wrong programs survive its tests, and the fewer right ones it
refuses. Each gets the reference and the three visible asserts and adds up to `count`. What a part of
ours brings is seen without it: `--tools ours "ours without sorted lists"`. `harden` of gameability adds
a test for each of its own mutants that survives, then inputs of its own up to as many.
Prints a table and one line of JSON.
"""

import argparse
import ast
import json
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

import public_code
from public_code import passes

from swift_rlvr.evaluation.added_tests import NoTests, add, add_tests, calls

VISIBLE = 3
FEWEST_HIDDEN = 4
MUTANTS = 40  # of each reference
WRONG = RIGHT = 10  # programs of the model for each row
PROGRAMS = 40  # of the model that are tried for each row
SECONDS = 1.0


class Example(NamedTuple):
    """A row with what a policy may write for it. `wrong` and `mutants` pass the visible asserts."""

    name: str
    function: str
    reference: str
    question: str
    visible: list[str]
    mutants: list[str]
    wrong: list[str]
    right: list[str]


def rows(folder: Path, rng: random.Random, number: int) -> Iterator[tuple[Any, ...]]:
    """Name, function, reference, question, asserts and programs of a model; each kind in turns."""
    programs = public_code.completions(folder)
    humaneval: list[tuple[Any, ...]] = []
    for row in public_code.humaneval(folder):
        asserts = _asserts(row["test"], row["entry_point"])
        reference = row["prompt"] + row["canonical_solution"]
        name = row["task_id"]
        humaneval.append(
            (name, row["entry_point"], reference, row["prompt"], asserts, programs.get(name, []))
        )
    leetcode: list[tuple[Any, ...]] = []
    for problem in public_code.leetcode(folder):
        asserted = problem.asserts()
        if asserted is not None:
            values = (
                asserted["task_id"],
                asserted["entry_point"],
                asserted["solution"],
                asserted["question"],
                asserted["tests"],
            )
            leetcode.append((*values, []))
    half = (number + 1) // 2
    for source in (humaneval, leetcode):
        rng.shuffle(source)
        kept = 0
        for values in source:
            asserts = values[4]
            if len(asserts) < VISIBLE + FEWEST_HIDDEN or len("".join(asserts)) > 20_000:
                continue
            if passes(values[2], "\n".join(asserts), SECONDS):
                yield values
                kept += 1
            if kept == half:
                break


def _asserts(source: str, function: str) -> list[str]:
    """The plain asserts of HumanEval's `check(candidate)`."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Assert(
                ast.Compare(ast.Call(ast.Name("candidate"), arguments), [ast.Eq()], [right])
            ):
                try:
                    list(map(ast.literal_eval, [*arguments, right]))
                except ValueError:
                    continue
                node.msg = None
                found.append(ast.unparse(node).replace("candidate(", f"{function}(", 1))
    return list(dict.fromkeys(found))


def mutants(reference: str) -> list[str]:
    """The reference with a change at one place each, by mutmut."""
    from mutmut.mutation.file_mutation import create_mutations, deep_replace

    module, changes, *_ = create_mutations("reference.py", reference)
    changed = []
    for change in changes:
        code = deep_replace(module, change.original_node, change.mutated_node).code
        if code != reference:
            changed.append(code)
    return changed


def example(row: tuple[Any, ...], rng: random.Random) -> Example:
    name, function, reference, question, asserts, programs = row
    visible, hidden = asserts[:VISIBLE], asserts[VISIBLE:]

    def split(codes: list[str]) -> tuple[list[str], list[str]]:
        seen = [code for code in codes if passes(code, "\n".join(visible), SECONDS)]
        right = [code for code in seen if passes(code, "\n".join(hidden), SECONDS)]
        return right, [code for code in seen if code not in right]

    changed = mutants(reference)
    _, broken = split(rng.sample(changed, min(MUTANTS, len(changed))))
    right, wrong = split(rng.sample(programs, min(PROGRAMS, len(programs))))
    return Example(
        name, function, reference, question, visible, broken, wrong[:WRONG], right[:RIGHT]
    )


# --- The tools


def ours(one: Example, count: int) -> list[str]:
    try:
        added = add_tests(
            one.visible,
            [one.reference],
            entry_point=one.function,
            question=one.question,
            count=count,
        )
    except NoTests:
        return []
    return json.loads(added.tests)


def gameability(one: Example, count: int) -> list[str]:
    from gameability.engine import Problem
    from gameability.harden import harden

    problem = Problem(one.name, one.reference, one.visible, entry=one.function)
    result = harden(problem, rounds=3, target_tests=VISIBLE + count)
    return [test for test in result["final_tests"] if test not in one.visible][:count]


def chosen_without_mutants(
    candidates: list, refused_by: dict[int, set[int]], count: int, chosen: Callable = add._chosen
) -> tuple[list, set[int]]:
    """As `add._chosen`, of candidates that refuse no mutant."""
    return chosen(candidates, {place: set() for place in refused_by}, count)


# Parts of ours: the module and the function, and what stands in for it.
PARTS: dict[str, tuple[ModuleType, str, Callable[..., Any]]] = {
    "choice by mutants": (add, "_chosen", chosen_without_mutants),
    "properties in common": (calls, "common_properties", lambda given: set()),
    "same change everywhere": (calls, "_changed_everywhere", lambda values, rng: list(values)),
    "sorted lists": (calls, "_in_order_of", lambda pool, changed: changed),
    "small alphabets": (calls, "small_alphabet", lambda texts: None),
}


def without(part: str, one: Example, count: int) -> list[str]:
    module, name, other = PARTS[part]
    with mock.patch.object(module, name, other):
        return ours(one, count)


TOOLS: dict[str, Callable[[Example, int], list[str]]] = {"ours": ours, "gameability": gameability}
VARIANTS = {f"ours without {part}": partial(without, part) for part in PARTS}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--examples", type=Path, help="keep what was made here, for another run")
    parser.add_argument(
        "--tools", nargs="*", default=list(TOOLS), choices=[*TOOLS, *VARIANTS], metavar="TOOL"
    )
    parser.add_argument("--show", action="store_true", help="print right programs that are refused")
    options = parser.parse_args()

    rng = random.Random(0)
    if options.examples and options.examples.exists():
        examples = [Example(*values) for values in json.loads(options.examples.read_text())]
    else:
        examples = [example(row, rng) for row in rows(options.folder, rng, options.rows)]
        if options.examples:
            options.examples.write_text(json.dumps(examples))

    survivors: dict[str, dict[str, set[tuple[int, int]]]] = {}
    table = []
    for name in options.tools:
        left: dict[str, set[tuple[int, int]]] = {
            kind: set() for kind in ("mutants", "wrong", "right")
        }
        number, none, seconds = 0, 0, 0.0
        for index, one in enumerate(examples):
            start = time.perf_counter()
            tests = (TOOLS | VARIANTS)[name](one, options.count)
            seconds += time.perf_counter() - start
            number += len(tests)
            none += not tests
            for kind in left:
                for place, code in enumerate(getattr(one, kind)):
                    if passes(code, "\n".join(tests), SECONDS):
                        left[kind].add((index, place))
                    elif kind == "right" and options.show:
                        failing = [test for test in tests if not passes(code, test, SECONDS)]
                        print(
                            f"--- {name} refuses of {one.name}\n{code}\n{failing[:3]}", flush=True
                        )
        survivors[name] = left
        table.append(
            {
                "tool": name,
                "tests": number,
                "rows without": none,
                "mutants": len(left["mutants"]),
                "wrong": len(left["wrong"]),
                "right refused": sum(len(one.right) for one in examples) - len(left["right"]),
                "seconds": round(seconds, 1),
            }
        )
        print(json.dumps(table[-1]), flush=True)
    totals = {kind: sum(len(getattr(one, kind)) for one in examples) for kind in left}
    both = {}
    if len(survivors) > 1:
        for kind in ("mutants", "wrong"):
            both[kind] = len(set.intersection(*(left[kind] for left in survivors.values())))
    print(f"\n{len(examples)} rows; the visible tests pass {totals}; both pass {both}")
    print(
        json.dumps(
            {"bench": "added tests", "rows": len(examples), **totals, "both": both, "table": table}
        )
    )


if __name__ == "__main__":
    main()
