"""Rows of a dataset for a GRPO trainer, and what can be wrong with them before a model is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from swift_rlvr.data.sources import Source, parse_source
from swift_rlvr.errors import InputError
from swift_rlvr.rewards import Reward
from swift_rlvr.rewards.build import missing_column
from swift_rlvr.tasks.row_check import allowed_share, check_rows
from swift_rlvr.tasks.task import with_system

FROM_TRAINER = ("prompts", "completion_ids", "response_token_ids")  # columns of rewards that are no dataset's


@dataclass(frozen=True)
class Data:
    """`rows`: `prompt` (messages) and the columns of the rewards. `system`: the prompts'."""

    rows: list[dict[str, Any]]
    system: str | None


def read_data(
    flag: str,
    given: str,
    rewards: Sequence[Reward],
    console: Console,
    *,
    system: str | None = None,
    use_hf: bool = False,
) -> Data:
    """The prompts of a dataset, `given` as in `swift_rlvr.data.sources.parse_source` with `flag`.

    Rows that cannot be used are said and left out; past the limit (`allowed_share`) they are an error. `system` is for
    rows without a system prompt of their own; None for the task's.

    Raises:
        InputError: naming the flag, where a reward lacks a column too, and where no verifying reward grades a row.
    """
    try:
        source = parse_source(given, use_hf)
        raw = [row for _, row in source.rows()]
        result = check_rows(source.task, raw)
        excess = result.excess(allowed_share(source.task))
        if excess:
            raise InputError("\n".join([result.describe(str(source)), excess]))
    except InputError as error:
        raise InputError(f"{flag}: {error}") from error
    if result.errors:
        console.print(result.describe(str(source)), style="yellow", markup=False)
    rows = [source.task.preprocess(raw[index]) for index in result.usable]
    used = source.task.system if system is None else system
    messages = [with_system(row["messages"], used) for row in rows]
    if system and messages[0][0]["content"] != system:
        console.print(f"{source}: its rows have a system prompt of their own, --system is not used", style="yellow")
    columns = reward_columns(flag, source, rewards, rows)
    first = messages[0][0]
    return Data(
        [
            {"prompt": asked, **{key: row.get(key) for key in columns}}
            for asked, row in zip(messages, rows, strict=True)
        ],
        first["content"] if first["role"] == "system" else None,
    )


def reward_columns(flag: str, source: Source, rewards: Sequence[Reward], rows: Sequence[dict]) -> list[str]:
    """The columns that the rewards take; InputError where a row lacks one that its reward needs, or no reward is its.

    Others stay behind: TRL gives some names, such as `images`, a meaning of its own.
    """
    for number, row in enumerate(rows, start=1):
        for reward in rewards:
            column = missing_column(reward, row)
            if column is not None:
                raise InputError(
                    f"{flag} {source}: {reward.name} needs the column {column!r}, and row {number} of those that "
                    f"can be used has {', '.join(key for key in row if key != 'messages')}"
                )
    verifying = [reward for reward in rewards if reward.columns]
    tasks = {row.get("task") for row in rows}
    own = [set(reward.parameters.tasks) for reward in verifying]
    if verifying and not any(not names or None in tasks or names & tasks for names in own):
        raise InputError(
            f"--reward: none of {', '.join(reward.name for reward in verifying)} grades a row of {source}, whose task "
            f"is {', '.join(sorted(tasks))}; choose others, or set their parameter tasks with --set"
        )
    used = {column for reward in rewards for column in (*reward.columns, *reward.optional_columns, "task")}
    return sorted(column for column in used if column not in FROM_TRAINER and any(column in row for row in rows))
