"""Search traces for the tiny Countdown model's supervised warm start.

A trace tries expressions over three numbers, never one twice. Each trial is written as two operations and
compared with the target; the search ends when one hits the target or the searcher gives up, and the last trial becomes
the answer. The probability of giving up is the same after every miss, so reinforcement learning lengthens searches by
lowering one probability. The comparison is written out because a model of this size does not learn it otherwise:
trained without it, it stopped as often after a miss as after a hit.

Leaves out: more than three numbers, negative and fractional intermediate results, and results above `MAX_RESULT`, since
each result is one token of the tiny tokenizer.
"""

import random
from functools import lru_cache

MAX_RESULT, LONGEST_UNORDERED = 99, 20

Equation = tuple[int, str, int, int]  # left operand, operator, right operand, result


def _equations(a: int, b: int) -> list[Equation]:
    """Every allowed operation on a and b, the larger operand first, so that no two mirror each other."""
    a, b = max(a, b), min(a, b)
    equations = [(a, "+", b, a + b), (a, "-", b, a - b), (a, "*", b, a * b)]
    if b and a % b == 0:
        equations.append((a, "/", b, a // b))
    return [equation for equation in equations if equation[3] <= MAX_RESULT]


@lru_cache(maxsize=4096)
def trials(nums: tuple[int, int, int]) -> tuple[tuple[str, str, int], ...]:
    """All distinct trials over three numbers, as (line of the trace, answer expression, value).

    >>> ("4+3=7,7*2=14", "(4+3)*2", 14) in trials((2, 3, 4))
    True
    """
    distinct = {}
    for i, j, k in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        for a, op, b, r in _equations(nums[i], nums[j]):
            for x, op2, y, value in _equations(r, nums[k]):
                line = f"{a}{op}{b}={r},{x}{op2}{y}={value}"
                expression = f"({a}{op}{b}){op2}{y}" if x == r else f"{x}{op2}({a}{op}{b})"
                distinct[line] = (line, expression, value)
    return tuple(distinct.values())


def compare(value: int, target: int) -> str:
    """The word after a trial: its value is below, above or equal to the target."""
    return " low" if value < target else " high" if value > target else " yes"


def trace(rng: random.Random, nums: list[int], target: int, give_up: float, ordered: bool = True) -> str:
    """A search over three numbers, no trial twice, until one hits the target; then the answer.

    `give_up` is the probability in [0, 1] of stopping after a miss. `ordered`: the trials come in the order of `trials`
    from any of them on, so that each follows from the one before; else in any order, and at most `LONGEST_UNORDERED`.
    The state of `rng` decides about the rest.
    """
    pool = trials(tuple(sorted(nums)))
    start = rng.randrange(len(pool))
    order = (*pool[start:], *pool[:start]) if ordered else rng.sample(pool, min(LONGEST_UNORDERED, len(pool)))
    lines = []
    for line, expression, value in order:  # noqa: B007
        lines.append(line + compare(value, target))
        if value == target or rng.random() < give_up:
            break
    return "<think>\n" + "\n".join(lines) + f"\n</think>\n<answer>{expression}</answer>"
