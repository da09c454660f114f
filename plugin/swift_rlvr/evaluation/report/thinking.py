"""How a completion searches: the trials that it writes, whether they are calculated right, and what it says of them.

A trial is a line of the reasoning with at least one equation such as `4+3=7` or `(1 + 2) * 3 = 9 (too low)`. Prose that
tries several on one line counts as one, so that the figures are a lower bound there.
"""

import re
from functools import lru_cache

from swift_rlvr.answers import reasoning
from swift_rlvr.countdown.arithmetic import parse

LONGEST = 200_000  # characters of a completion that are looked at
_EQUATION = re.compile(r"(?<![0-9.])[0-9(][0-9+*/() -]{0,60}[0-9)] ?= ?-?[0-9]{1,9}(?![0-9.]| ?[-+*/=])")
_COMMENT = re.compile(r"\b(?:low|high|too (?:small|large|big|little|much))\b", re.IGNORECASE)


def thinking(completion: str) -> dict[str, int]:
    """trials: lines with an equation; equations, false: how many there are and how many do not hold; comments: 1 where
    one of the words low, high, too small, too large is there.

    >>> thinking("<think>\\n4+3=7,7*2=14 low\\n4*3=12, 12*2=25 high\\n</think><answer>4+3</answer>")
    {'trials': 2, 'equations': 4, 'false': 1, 'comments': 1}
    """
    text = reasoning(completion[:LONGEST]).replace("×", "*").replace("÷", "/")
    trials = equations = false = 0
    for line in text.split("\n") if "=" in text else ():
        written = _EQUATION.findall(line) if "=" in line else ()
        known = [holds for holds in map(_holds, written) if holds is not None]
        trials += bool(known)
        equations += len(known)
        false += known.count(False)
    return {"trials": trials, "equations": equations, "false": false, "comments": int(bool(_COMMENT.search(text)))}


@lru_cache(maxsize=1 << 16)
def _holds(equation: str) -> bool | None:
    """Whether both sides are equal; None where it is no equation of an operation, such as 7 = 7."""
    parsed = parse(equation.strip())
    if parsed is None or not parsed[0].steps:
        return None
    try:
        values = parsed[0].evaluate(parsed[1])
    except ZeroDivisionError:
        return False
    return values.count(values[0]) == len(values)
