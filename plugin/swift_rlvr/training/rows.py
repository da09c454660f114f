"""Rows of a dataset for a GRPO trainer, and what can be wrong with them before a model is
loaded.
"""

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.build import missing_column, rewards_without_rows
from swift_rlvr.rewards.parameters import stray_variables
from swift_rlvr.runs.curriculum import COLUMN as LEVEL
from swift_rlvr.tasks.row_check import allowed_share, check_rows
from swift_rlvr.tasks.sources import Source, parse_source
from swift_rlvr.tasks.task import with_system
from swift_rlvr.training.arguments import RunArguments
from swift_rlvr.utils.errors import InputError

FROM_TRAINER = (
    "prompts",
    "completion_ids",
    "response_token_ids",
)  # columns of rewards that are no dataset's


def read_data(
    arguments: RunArguments, rewards: Sequence[Reward], console: Console
) -> tuple[list[dict[str, Any]], str | None]:
    """The rows of a run's dataset, with `prompt` (messages) and the columns of the rewards, and
    their system prompt.

    Rows that cannot be used are reported and skipped; past the limit (`allowed_share`) they are an
    InputError, as is a column that a reward lacks.
    """
    for variable in stray_variables(REWARDS):
        console.print(
            f"{variable} is set, and no reward has a name that it begins with", style="yellow"
        )
    try:
        source = parse_source(arguments.dataset, arguments.use_hf)
        raw = [row for _, row in source.rows()]
        result = check_rows(source.task, raw)
        excess = result.excess(allowed_share(source.task))
        if excess:
            raise InputError("\n".join([result.describe(str(source)), excess]))
    except InputError as error:
        raise InputError(str(error), "dataset") from error
    if result.errors:
        console.print(result.describe(str(source)), style="yellow", markup=False)
    rows = [source.task.preprocess_for_training(raw[index]) for index in result.usable]
    system = source.task.system if arguments.system is None else arguments.system
    messages = [with_system(row["messages"], system) for row in rows]
    first = messages[0][0]
    if arguments.system and first["content"] != system:
        console.print(
            f"{source}: its rows have a system prompt of their own, `system` is not used",
            style="yellow",
        )
    columns = reward_columns(source, rewards, rows)
    prompts = [
        {"prompt": turns, **{name: row.get(name) for name in columns}}
        for turns, row in zip(messages, rows, strict=True)
    ]
    return prompts, first["content"] if first["role"] == "system" else None


def reward_columns(source: Source, rewards: Sequence[Reward], rows: Sequence[dict]) -> list[str]:
    """The columns that the rewards take; InputError where a row lacks one, or a reward grades no
    row.

    The others, but the level, are dropped: TRL gives some names, such as `images`, a meaning of its
    own.
    """
    for number, row in enumerate(rows, start=1):
        for reward in rewards:
            if column := missing_column(reward, row):
                present = ", ".join(key for key in row if key != "messages")
                problem = f"{reward.name} needs the column {column!r}, and row {number} of those that can be used has"
                raise InputError(f"{source}: {problem} {present}", "dataset")
    tasks = {row.get("task") for row in rows}
    for reward, remedy in rewards_without_rows(rewards, tasks):
        problem = f"{reward.name} grades no row of {source}, whose task is {', '.join(sorted(map(str, tasks)))}"
        raise InputError(f"{problem}: {remedy}", "reward_funcs")
    used = {
        column
        for reward in rewards
        for column in (*reward.columns, *reward.optional_columns, "task", LEVEL)
    }
    return sorted(
        column
        for column in used
        if column not in FROM_TRAINER and any(column in row for row in rows)
    )
