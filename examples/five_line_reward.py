"""A reward in five lines: 1.0 for as many words as the row's column `count` says.

>>> word_count(["one two", "one"], count=[2, 2])
[1.0, 0.0]
"""

from swift_rlvr.rewards import reward


@reward(
    "external_word_count",
    columns=["count"],
    role="verifier",
    examples=[
        ("one two", {"count": 2}, 1.0),
        ("one", {"count": 2}, 0.0),
        ("", {"count": None}, None),
    ],
)
def word_count(completion: str, count: int) -> float:
    """1.0 for as many words as the row says."""
    return len(completion.split()) == count
