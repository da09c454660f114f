"""A reward in five lines: 1.0 for as many words as the row's column `count` says.

    python examples/five_line_reward.py

`word_count` is a reward function for TRL as it stands. For ms-swift, name this file before our
plugin:

    swift rlhf --external_plugins examples/five_line_reward.py "$(swift-rlvr plugin)" \\
        --reward_funcs external_word_count ...

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


if __name__ == "__main__":
    for text, count in (("one two", 2), ("one", 2), ("one", None)):
        grade = word_count.explain(text, {"count": count})
        print(f"{text!r} with count {count}: {grade.reward} ({grade.reason})")
