r"""What the mathematical tasks share: the R1-Zero system prompt, messages, the gold in a box."""

from swift_rlvr.verifiers.answers import boxed_answer

R1_ZERO_SYSTEM = (
    "A conversation between User and Assistant. The User asks a question, and the Assistant solves it. The Assistant "
    "first thinks about the reasoning process in the mind and then gives the User the answer. The reasoning process "
    "is enclosed in <think> </think> tags and the answer in <answer> </answer> tags, that is, "
    "<think> reasoning process here </think><answer> answer here </answer>."
)


def to_messages(question: str, system: str, *before: tuple[str, str]) -> list[dict[str, str]]:
    """System turn, then the turns of `before` as (question, answer), then the question.

    The system prompt is part of the row, so ms-swift's `--system` has no effect on it.
    """
    turns = [("system", system)]
    for example, answer in before:
        turns += [("user", example), ("assistant", answer)]
    return [{"role": role, "content": content} for role, content in [*turns, ("user", question)]]


def boxed_gold(solution: str) -> str | None:
    r"""The last box of a solution, or the last ones that stand together, as one box; None where
    none holds anything.

    >>> print(boxed_gold(r"First \boxed{1}, then $x = \boxed{\frac{1}{2}}$."), boxed_gold("none"))
    \boxed{\frac{1}{2}} None
    """
    box = (boxed_answer(solution) or "").strip()
    return rf"\boxed{{{box}}}" if box else None
