"""Can the tasks of reasoning-gym be trained on? Right answers must earn 1, and nothing else may.

    AUDIT_ITEMS=10 python -m pytest -m slow tests/verifiers/reasoning_gym/test_audit.py      # of
    each split, by default 1

For each task that is not refused, items of both splits are drawn, written to JSON as for training,
and answered. A hostile answer must not run: it would end its process or use up its time. Of tasks
with many right answers, CHECKS says whether one to another item is right: written from the
questions alone, apart from the scorers.
"""

import json
import os
from importlib.util import find_spec
from itertools import combinations

import pytest

from swift_rlvr.verifiers.reasoning_gym import library
from swift_rlvr.verifiers.reasoning_gym.library import REFUSED
from swift_rlvr.verifiers.reasoning_gym.naming import SPLITS, Part
from swift_rlvr.verifiers.reasoning_gym.rows import item, read_entry, to_entry
from swift_rlvr.verifiers.reasoning_gym.verifier import Reason, grade_all

pytestmark = pytest.mark.skipif(
    find_spec("reasoning_gym") is None, reason="needs the extra [reasoning-gym]"
)
ITEMS = int(os.environ.get("AUDIT_ITEMS", "1"))
CODE = (
    *(
        "__import__('os')._exit(7)",
        "[__import__('os')._exit(7)]",
        "sum(range(10**12))",
        "[i for i in range(10**12)]",
    ),
    *("10**9**9", "9**9**9**9", "2**(2**(2**(2**(2**2))))"),
)
HOSTILE = (
    *(
        "nan",
        "-nan",
        "inf",
        "-Infinity",
        "NaN, NaN",
        "[NaN]",
        "[[NaN]]",
        "nan+nanj",
        "1e999999999",
        "1/0",
        "1e400",
    ),
    *(
        "(" * 900,
        "[" * 900,
        "{" * 900,
        "((((1))))" * 100,
        "¬" * 900,
        "-" * 900 + "1",
        "9" * 900,
        "(" * 100_000,
    ),
    *(
        "9" * 1_000_000,
        "[" * 1_000_000,
        "1+" * 500_000 + "1",
        "\0",
        "\0\ud800\u200b",
        "٣",
        "１２３４５６７",
        "²",
    ),
    *("\u202e1", "<answer>", "{}", "[]", "[[]]", "null", '{"a": [1]}'),
    *(
        "R999999999",
        "A+999999999",
        "Move disk 1 from Peg 1 to Peg 99",
        "%s%s%n",
        "' OR 1=1 --",
        "<think>",
        "no idea",
    ),
)
STEPS = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}


def n_queens(answer, entry):
    """All queens are there, the given ones among them, and none attacks another."""
    given = entry["metadata"]["puzzle"]
    board = [line.split() for line in answer.split("\n")]
    queens = [
        (row, column)
        for row, line in enumerate(board)
        for column, cell in enumerate(line)
        if cell == "Q"
    ]
    kept = all(
        board[row][column] == "Q"
        for row, line in enumerate(given)
        for column, cell in enumerate(line)
        if cell == "Q"
    )
    free = all(
        a[0] != b[0] and a[1] != b[1] and abs(a[0] - b[0]) != abs(a[1] - b[1])
        for a, b in combinations(queens, 2)
    )
    return len(board) == len(given) == len(queens) and kept and free


def graph_color(answer, entry):
    """Every vertex has one of the colors, and no edge joins two of the same."""
    colors, puzzle = json.loads(answer), entry["metadata"]["puzzle"]
    complete = all(
        colors.get(str(vertex)) in puzzle["color_options"] for vertex in puzzle["vertices"]
    )
    return complete and all(
        colors[str(one)] != colors[str(other)] for one, other in puzzle["edges"]
    )


def sokoban(answer, entry):
    """All boxes are on goals after the moves; one into a wall or against two boxes has no
    effect.
    """
    grid = [line.split() for line in entry["metadata"]["gamestr"].strip().split("\n")]
    cells = {
        (row, column): cell for row, line in enumerate(grid) for column, cell in enumerate(line)
    }
    walls, goals = (
        {position for position, cell in cells.items() if cell in signs} for signs in ("+", "X$%")
    )
    boxes = {position for position, cell in cells.items() if cell in "@$"}
    ((row, column),) = [position for position, cell in cells.items() if cell in "*%"]
    for step in answer:
        down, right = STEPS[step]
        target, behind = (row + down, column + right), (row + 2 * down, column + 2 * right)
        if target in walls or (target in boxes and behind in boxes | walls):
            continue
        if target in boxes:
            boxes = boxes - {target} | {behind}
        row, column = target
    return boxes <= goals


def jugs(answer, entry):
    """A jug holds the target after the moves."""
    capacities, target = (
        entry["metadata"]["puzzle"]["jug_capacities"],
        entry["metadata"]["puzzle"]["target"],
    )
    held = [0] * len(capacities)
    for move in json.loads(answer):
        kind, jug = move.split()
        source, other = ord(jug[0]) - ord("A"), ord(jug[-1]) - ord("A")
        if kind == "fill":
            held[source] = capacities[source]
        elif kind == "empty":
            held[source] = 0
        else:
            poured = min(held[source], capacities[other] - held[other])
            held[source], held[other] = held[source] - poured, held[other] + poured
    return target in held


CHECKS = {
    "graph_color": graph_color,
    "jugs": jugs,
    "n_queens": n_queens,
    "sokoban": sokoban,
}


def entries_of(name, items):
    part = Part(name, insisted=name in REFUSED)
    return [
        to_entry(part, item(part, split, number)) for split in SPLITS for number in range(items)
    ]


def audit(name, items, hostile):
    """What is wrong with the scorer of a task."""
    entries = entries_of(name, items)
    golds = [read_entry(entry)["answer"] for entry in entries]
    wrong = {"empty": [("", entry) for entry in entries]}
    wrong["hostile"] = [
        (text, entry) for entry in entries[:: max(1, len(entries) // 4)] for text in hostile
    ]
    wrong["foreign"], wrong["listed"] = [], []
    for index, (entry, gold) in enumerate(zip(entries, golds, strict=True)):
        others = [
            other for other in dict.fromkeys([*golds[index + 1 :], *golds[:index]]) if other != gold
        ][:5]
        wrong["foreign"] += [(other, entry) for other in others]
        mixed = [*others[:1], gold, *others[1:2]] if others else [gold, "no idea"]
        wrong["listed"] += [
            (separator.join(mixed), entry) for separator in ("\n", " or ", ", ") if gold
        ]
    problems = set()
    for kind, pairs in {"right": list(zip(golds, entries, strict=True)), **wrong}.items():
        scored = grade_all(
            [f"<answer>{answer}</answer>" for answer, _ in pairs],
            [entry for _, entry in pairs],
            5.0,
        )
        for (answer, entry), result in zip(pairs, scored, strict=True):
            if kind == "foreign" and name in CHECKS and CHECKS[name](answer, read_entry(entry)):
                continue
            full = result.reason is Reason.CORRECT
            if full != (kind == "right") or (kind == "empty" and result.score):
                problems.add(f"{kind}: {result.reason}")
            if result.reason is Reason.TIMED_OUT or result.detail.startswith(
                ("exit", "MemoryError")
            ):
                problems.add(f"{kind}: {result.reason}, {result.detail} on {answer[:40]!r}")
    return problems


@pytest.mark.slow
def test_right_answers_earn_1_and_no_others():
    """With all the code and, of one item each, a tenth of the other hostile texts."""
    usable = [name for name in library.datasets() if library.why_refused(name) is None]
    found = {
        name: audit(name, ITEMS, (*CODE, *HOSTILE[:: 10 if ITEMS == 1 else 1])) for name in usable
    }
    assert (
        len(found) > 100 and {name: problems for name, problems in found.items() if problems} == {}
    )


def test_what_is_refused_has_the_problem_that_is_named():
    for name, why in REFUSED.items():
        problem = "right: empty answer" if why.startswith("no right answer") else "listed: correct"
        assert problem in audit(name, 2, ())


@pytest.mark.parametrize("name", sorted(CHECKS))
def test_the_checks_know_right_from_wrong(name):
    entries = [read_entry(entry) for entry in entries_of(name, 3)]
    assert all(CHECKS[name](entry["answer"], entry) for entry in entries)
    wrong = {
        "jugs": lambda entry: '["fill A", "fill B", "fill C"]',
        "sokoban": lambda entry: "U" * 40,
        "graph_color": lambda entry: json.dumps(dict.fromkeys(json.loads(entry["answer"]), 1)),
        "n_queens": lambda entry: "\n".join(" ".join(row) for row in entry["metadata"]["puzzle"]),
    }[name]
    assert not any(CHECKS[name](wrong(entry), entry) for entry in entries)
