"""Countdown: from the given numbers, each used exactly once, write an equation that equals the
target.

Rows have `nums` (list of int) and `target` (int), as in zouxuhong/Countdown-Tasks-3to4 (ModelScope)
and Jiayi-Pan/Countdown-Tasks-3to4 (Hugging Face). The user turn is word for word that of ms-swift's
own entry for the ModelScope id, so a run does not depend on which of the two is used. The system
turn is not part of a row: ms-swift takes it from `--system` and would ignore that flag for rows
with a system turn of their own.
"""

import random
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from swift_rlvr.tasks.calculation import calculation
from swift_rlvr.tasks.task import Gold, Row, RowError, Task, shown
from swift_rlvr.verifiers.countdown import read_gold

SYSTEM_PROMPT = (
    "You are a helpful assistant. You first think about the reasoning process in the mind "
    "and then provide the user with the answer."
)

PROMPT = (
    "Using the numbers {nums}, create an equation that equals {target}.\n"
    "You can use basic arithmetic operations (+, -, *, /) and each number can only be used once.\n"
    "Show your work in <think> </think> tags. And return the final equation and answer "
    "in <answer> </answer> tags, for example <answer> (1 + 2) / 3 * 4 = 4 </answer>."
)

_QUESTION = re.compile(
    re.escape(PROMPT.partition("\n")[0])
    .replace(r"\{nums\}", r"(\[[0-9, ]+\])")
    .replace(r"\{target\}", r"(-?[0-9]+)")
)


def to_messages(
    nums: Sequence[int], target: int, system: str | None = SYSTEM_PROMPT
) -> list[dict[str, str]]:
    """The chat messages that ask for one task; without the system turn where `system` is None or
    empty.
    """
    user = {"role": "user", "content": PROMPT.format(nums=list(nums), target=target)}
    return [{"role": "system", "content": system}, user] if system else [user]


def parse_row(row: Row) -> tuple[list[int], int]:
    """The numbers, in their order, and the target of a raw row, as ints.

    RowError, naming the column, for a form that the verifier does not accept, see `read_gold`.
    """
    nums, target = row.get("nums"), row.get("target")
    if read_gold(nums, 0) is None:
        raise RowError("nums", f"expected whole numbers such as [3, 5, 7], got {shown(nums)}")
    gold = read_gold([0], target)
    if gold is None:
        raise RowError("target", f"expected a whole number such as 22, got {shown(target)}")
    # read_gold sorts, and the prompt keeps the order of the numbers: read them one by one.
    parts: Any = re.findall(r"[^][(),\s]+", nums) if isinstance(nums, str) else nums
    numbers = []
    for part in parts:
        single = read_gold([part], 0)
        if single is not None:  # it is not, since all can be read together
            numbers.append(single[0][0])
    return numbers, gold[1]


def read_prompt(prompt: str) -> tuple[list[int], int] | None:
    """The numbers and the target that a prompt made of `PROMPT` asks for, or None if it is
    another prompt.

    For completions that were logged without the columns. The prompt may be rendered with a chat
    template. One that asks for two different tasks gives None, since the policy may have written
    the second question.
    """
    asked = set(_QUESTION.findall(prompt))
    if len(asked) != 1:
        return None
    ((nums, target),) = asked
    try:
        return parse_row({"nums": nums, "target": target})
    except RowError:
        return None


def columns_in_prompt(prompt: str) -> dict[str, Any] | None:
    """The same as the columns of a row."""
    asked = read_prompt(prompt)
    if asked is None:
        return None
    nums, target = asked
    return {"nums": nums, "target": target}


def preprocess(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages` (user turn), `nums` and `target` as ints, `task`, its
    other columns.
    """
    nums, target = parse_row(row)
    messages = to_messages(nums, target, system=None)
    return {**row, "messages": messages, "nums": nums, "target": target, "task": "countdown"}


def identity(row: Row) -> str:
    """The same text for the same multiset of numbers with the same target."""
    nums, target = parse_row(row)
    return f"{sorted(nums)} {target}"


def gold(row: Row) -> Gold | None:
    """An equation that solves the row, or None if there is none, or where the numbers are too
    many or too large.
    """
    nums, target = parse_row(row)
    expression = _expression(tuple(nums), target)
    if expression is None:
        return None
    equation = f"{expression} = {target}"
    return Gold(equation, f"{expression} makes {target}.", equation)


# A check asks three times for a row's.
@lru_cache(maxsize=1024)
def _expression(nums: tuple[int, ...], target: int) -> str | None:
    from swift_rlvr.verifiers.countdown import solver

    if len(nums) > solver.MOST_NUMBERS or max(*nums, abs(target)) > solver.LARGEST:
        return None
    return solver.solve(nums, target)


def worked(row: Row) -> Gold | None:
    """The same after a search in words: up to four trials of which most miss, the same ones for the
    same row.
    """
    nums, target = parse_row(row)
    right = gold(row)
    if right is None:
        return None
    draw = random.Random(identity(row))
    lines = []
    for _ in range(draw.randint(0, 4)):
        expression = ""
        for number in draw.sample(list(nums), len(nums)):
            expression += f"{number} {draw.choice('+-*')} "
        steps = calculation(expression[:-3])
        if steps and not steps[-1].endswith(f" = {target}"):
            lines.append(f"Try {', '.join(steps)}. That is not {target}.")
    steps = calculation(right.answer.partition(" = ")[0]) or [f"{target}"]
    return Gold(
        right.answer, "\n".join([*lines, f"Try {', '.join(steps)}. That is {target}."]), right.text
    )


def gold_text(row: Row) -> str:
    """What is to be reached, and from which numbers.

    >>> gold_text({"nums": [3, 5], "target": 8})
    'target 8 from 3, 5'
    """
    nums = row["nums"] if isinstance(row["nums"], (list, tuple)) else [row["nums"]]
    return f"target {row['target']} from {', '.join(map(str, nums))}"


TASK = Task(
    name="countdown",
    columns=("nums", "target"),
    preprocess=preprocess,
    identity=identity,
    gold=gold,
    worked=worked,
    gold_text=gold_text,
    columns_in_prompt=columns_in_prompt,
    # Qwen2.5-3B-Instruct, 2,000 steps of 128 completions (scripts/configs/countdown.yaml).
    seen_in_experiment={
        "Success": "rises to about 0.5",
        "Format": "stays at 0.9 to 1",
        "Spread within a group": "standard deviation 0.2 to 0.3 at the end: not converged",
        "Kinds of failure": "many are slips of arithmetic",
        "Length": "falls until about step 200, then rises to about 350 tokens",
    },
    system=SYSTEM_PROMPT,
    system_in_rows=False,
    prompt=PROMPT,
    reward_columns=("nums", "target"),
    verifier="external_countdown",
    other_verifiers=("CountdownORM",),
    examples=({"nums": [3, 5, 7], "target": 22}, {"nums": [19, 36, 55, 7], "target": 65}),
    ms_dataset_id="zouxuhong/Countdown-Tasks-3to4",
    hf_dataset_id="Jiayi-Pan/Countdown-Tasks-3to4",
)
