"""Rewards that are functions. A module, so that they pickle; importing it leaves the registry as it
was.
"""

from swift_rlvr.rewards import REWARDS, reward

CALLS: list[object] = []


@reward(
    "external_word_count",
    columns=["count"],
    role="verifier",
    examples=[
        ("one two", {"count": 2}, 1.0),
        ("one", {"count": 2}, 0.0),
        ("one", {"count": None}, None),
    ],
)
def word_count(completion: str, count: int) -> float:
    """1.0 for as many words as the row says.

    >>> word_count(["one two"], count=[2])
    [1.0]
    """
    CALLS.append(completion)
    return len(completion.split()) == count


@reward("external_short", role="shaping", reasons=["short", "long"])
def short(completion: str, limit: int, margin: int = 0, *, unit: str = "characters"):
    """The reason with the value, and columns by the function's parameters."""
    length = len(completion.split()) if unit == "words" else len(completion)
    if not isinstance(limit, int):
        return None
    return (1.0, "short") if length <= limit - margin else (0.25, "long")


@reward(
    "external_careless",
    role="verifier",
    examples=[("7", {"number": 7}, 1.0), ("8", {"number": 7}, 0.0), ("7", {"number": None}, None)],
)
def careless(completion: str, number: int) -> float:
    """Raises for most of what a model may write."""
    return float(int(completion) == number)


@reward("external_costly", role="verifier", least=-1.0)
def costly(completion: str, number: int) -> float:
    return 1.0 if int(completion) == number else -1.0


for each in (word_count, short, careless, costly):
    del REWARDS[each.name]
