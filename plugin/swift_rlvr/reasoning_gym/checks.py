"""Is an answer that scores 1 on another item than its own right there too? For tasks with many right answers.

Written from the questions alone, apart from the scorers: the audit believes a scorer that gives a foreign answer 1 only
where these do too.
"""

import json
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

Entry = Mapping[str, Any]
_STEPS = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}


def n_queens(answer: str, entry: Entry) -> bool:
    """All queens are there, the given ones among them, and none attacks another."""
    given = entry["metadata"]["puzzle"]
    board = [line.split() for line in answer.split("\n")]
    queens = [(row, column) for row, line in enumerate(board) for column, cell in enumerate(line) if cell == "Q"]
    kept = all(
        board[row][column] == "Q" for row, line in enumerate(given) for column, cell in enumerate(line) if cell == "Q"
    )
    free = all(
        a[0] != b[0] and a[1] != b[1] and abs(a[0] - b[0]) != abs(a[1] - b[1]) for a, b in combinations(queens, 2)
    )
    return len(board) == len(given) == len(queens) and kept and free


def graph_color(answer: str, entry: Entry) -> bool:
    """Every vertex has one of the colors, and no edge joins two of the same."""
    colors, puzzle = json.loads(answer), entry["metadata"]["puzzle"]
    complete = all(colors.get(str(vertex)) in puzzle["color_options"] for vertex in puzzle["vertices"])
    return complete and all(colors[str(one)] != colors[str(other)] for one, other in puzzle["edges"])


def sokoban(answer: str, entry: Entry) -> bool:
    """All boxes are on goals after the moves; one into a wall or against two boxes has no effect."""
    grid = [line.split() for line in entry["metadata"]["gamestr"].strip().split("\n")]
    cells = {(row, column): cell for row, line in enumerate(grid) for column, cell in enumerate(line)}
    walls, goals = ({position for position, cell in cells.items() if cell in signs} for signs in ("+", "X$%"))
    boxes = {position for position, cell in cells.items() if cell in "@$"}
    ((row, column),) = [position for position, cell in cells.items() if cell in "*%"]
    for step in answer:
        down, right = _STEPS[step]
        target, behind = (row + down, column + right), (row + 2 * down, column + 2 * right)
        if target in walls or (target in boxes and behind in boxes | walls):
            continue
        if target in boxes:
            boxes = boxes - {target} | {behind}
        row, column = target
    return boxes <= goals


def jugs(answer: str, entry: Entry) -> bool:
    """A jug holds the target after the moves."""
    capacities, target = entry["metadata"]["puzzle"]["jug_capacities"], entry["metadata"]["puzzle"]["target"]
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


CHECKS: dict[str, Callable[[str, Entry], bool]] = {
    "graph_color": graph_color,
    "jugs": jugs,
    "n_queens": n_queens,
    "sokoban": sokoban,
}
