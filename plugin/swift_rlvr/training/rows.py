"""Rows of a dataset for a GRPO trainer, and what can be wrong with them before a model is
loaded.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console
from transformers import TrainerState

from swift_rlvr.evaluation.pay import GUESS, TRIED_ROWS, Pay, find_fault
from swift_rlvr.evaluation.prompts import AskedRow, SystemPrompt, ask, chosen_system
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.base import THINKING_OPENED
from swift_rlvr.rewards.build import missing_column, rewards_without_rows
from swift_rlvr.rewards.function import FunctionReward, as_messages
from swift_rlvr.rewards.parameters import stray_variables
from swift_rlvr.runs.curriculum import COLUMN as LEVEL
from swift_rlvr.success import VERIFIER
from swift_rlvr.tasks.columns import KEPT
from swift_rlvr.tasks.pictures import IMAGES
from swift_rlvr.tasks.sources import Source, parse_source
from swift_rlvr.tasks.tool_calls import refuse_native_tools
from swift_rlvr.training.arguments import DataArguments
from swift_rlvr.utils.errors import InputError

# Columns of rewards that the trainer fills in, and no dataset; the messages are in `prompts`.
FROM_TRAINER = (
    *("messages", "prompt", "prompts", "completions", "completion_ids", "response_token_ids"),
    *("trainer_state", "log_extra", "log_metric", "environments"),
)


def read_data(
    arguments: DataArguments,
    rewards: Sequence[Reward],
    console: Console,
    all_columns: bool = False,
    with_pictures: bool = False,
    weights: Sequence[float] | None = None,
    tokenizer: Callable[[], Any] = lambda: None,
) -> tuple[list[dict[str, Any]], str | None]:
    """The rows of a run's dataset, with `prompt` (messages) and the columns of the rewards, and
    their system prompt.

    Rows that cannot be used are reported and skipped. With `all_columns` those are kept too that
    these rewards do not take, but for what the trainer fills in itself. With `with_pictures` rows keep
    their `images`, which another trainer would not show to the model. With `weights` the rewards are
    tried on the rows; `tokenizer` gives the model's for it, once nothing else is wrong, or None.

    Raises:
        InputError: too many rows cannot be used (`allowed_share`), a reward lacks a column, or rows
            have pictures that the model would not see.
    """
    for variable in stray_variables(REWARDS):
        problem = "is set, but no reward has this name"
        console.print(f"{variable} {problem}", style="yellow")
    try:
        source = parse_source(arguments.dataset, arguments.use_hf, arguments.columns)
        usable, left_out = source.usable_rows()
    except InputError as error:
        if error.field == "columns":
            raise
        raise InputError(str(error), "dataset") from error
    if left_out:
        console.print(left_out, style="yellow", markup=False)
    rows = [source.task.preprocess_for_training(row) for _, row in usable]
    system = chosen_system(source.task, arguments.system)
    refuse_native_tools(rows, "TRL")
    messages = [system.on(row["messages"]) for row in rows]
    first = messages[0][0]
    if arguments.system and first["content"] != system.text:
        problem = "its rows have their own system prompt, so `system` is not used"
        console.print(f"{source}: {problem}", style="yellow")
    columns = reward_columns(source, rewards, rows)
    existing = set[str]().union(*rows)
    if all_columns:
        columns = sorted(existing - {*FROM_TRAINER, *KEPT})
    else:
        _warn_of_tasks_that_nobody_verifies(source, rewards, rows, console)
    if with_pictures and IMAGES in existing - set(columns):
        columns = [*columns, IMAGES]
    _check_what_the_model_sees(source, rows, columns, console)
    prompts = []
    for turns, row in zip(messages, rows, strict=True):
        prompts.append({"prompt": turns, **{name: row.get(name) for name in columns}})
    if weights is not None:
        _try_rewards(source, usable, system, prompts, rewards, weights, tokenizer(), console)
    return prompts, first["content"] if first["role"] == "system" else None


def _try_rewards(
    source: Source,
    usable: Sequence[tuple[int, dict[str, Any]]],
    system: SystemPrompt,
    rows: Sequence[dict[str, Any]],
    rewards: Sequence[Reward],
    weights: Sequence[float],
    tokenizer: Any,
    console: Console,
) -> None:
    """Call the rewards as TRL calls them, with the right completion and a wrong one of the first rows of
    each task; InputError where the right one earns no more. `rows` are what `usable` became.
    tokenizer: None where the model's is not here, so that completions stay as they are written.
    """
    asked_rows: list[AskedRow] = []
    batch: list[dict[str, Any]] = []
    completions: list[str] = []
    tried = Counter[str]()
    # Of each task, since a file of two tasks may pay for one of them only.
    for (line, raw), row in zip(usable, rows, strict=True):
        task = source.task.of(raw).name
        if tried[task] == TRIED_ROWS:
            continue
        tried[task] += 1
        asked = ask(source.task, raw, line, system)
        if asked.ideal is not None:
            asked_rows.append(asked)
            batch += [row, row]
            completions += [asked.ideal, asked.answering(GUESS)]
    if not batch:
        return

    # What TRL's trainer would have decoded: without special tokens, which may be a model's <tool_call>.
    token_ids = [[0] * (len(text) // 4 + 1) for text in completions]
    special: list[str] = []
    if tokenizer is not None:
        token_ids = tokenizer(completions, add_special_tokens=False)["input_ids"]
        completions = tokenizer.batch_decode(token_ids, skip_special_tokens=True)
        added = tokenizer.added_tokens_decoder.values()
        special = [token.content for token in added if token.special]

    columns = {name: [row[name] for row in batch] for name in batch[0]}
    prompts = columns.pop("prompt")
    paid: dict[str, list[float | None]] = {}
    for reward in rewards:
        try:
            paid[reward.name] = reward(
                prompts=prompts,
                completions=list(map(as_messages, completions)),
                completion_ids=token_ids,
                trainer_state=TrainerState(),
                **columns,
            )
            if isinstance(reward, FunctionReward):
                reward.end_if_it_only_fails()
        except InputError as error:
            raise InputError(error.problem, error.field or "reward_funcs") from error
        except Exception as error:  # it may be anyone's
            problem = f"{reward.name} cannot grade the first rows: {type(error).__name__}: {error}"
            raise InputError(problem, "reward_funcs") from error

    # A reward that is named twice is called twice, and counts with both weights.
    by_name: dict[str, float] = dict.fromkeys(paid, 0.0)
    for reward, weight in zip(rewards, weights, strict=True):
        by_name[reward.name] += weight
    full = {reward.name: reward.full_reward for reward in rewards if reward.role == VERIFIER}
    pays: dict[str, list[Pay]] = {}  # by task
    for number, asked in enumerate(asked_rows):
        right = {name: values[2 * number] for name, values in paid.items()}
        wrong = {name: values[2 * number + 1] for name, values in paid.items()}
        where = f"the right completion of line {asked.line} ({asked.task.name})"
        pays.setdefault(asked.task.name, []).append(Pay(where, right, wrong, by_name, full))
    # Where no prompt says what the answer looks like, the completion that was tried may not be right.
    unknown = {asked.task.name for asked in asked_rows if asked.form is None}
    for task, of_task in pays.items():
        fault = find_fault(of_task)
        if fault is None:
            continue
        text = fault.text
        ideals = [str(asked.ideal) for asked in asked_rows if asked.task.name == task]
        lost = [token for token in special if any(token in ideal for ideal in ideals)]
        if lost:
            text += (
                f": TRL drops the model's special tokens, here {', '.join(lost)}; ms-swift does not"
            )
        elif not fault.is_of_total:
            text += f": check the rows with `swift-rlvr dataset check {source}`"
        if fault.ends_run and task not in unknown:
            raise InputError(text, "reward_weights" if fault.is_of_total else "reward_funcs")
        console.print(text, style="yellow", markup=False)


def _warn_of_tasks_that_nobody_verifies(
    source: Source, rewards: Sequence[Reward], rows: Sequence[dict], console: Console
) -> None:
    for task, count in Counter(row.get("task") for row in rows).items():
        roles = {each.role for each in rewards if task in (each.own_tasks or (task,))}
        if task is None or VERIFIER in roles:
            continue
        problem = "no reward verifies their answers"
        if not roles:
            problem = "no reward grades them, so nothing is learned from them"
        of_task = f"1 row of {task}" if count == 1 else f"{count:,} rows of {task}"
        console.print(f"{source}: {of_task}: {problem}", style="yellow")


def _check_what_the_model_sees(
    source: Source, rows: Sequence[dict], columns: Sequence[str], console: Console
) -> None:
    """InputError if rows have pictures and the like besides these columns; a warning for others."""
    unseen = {name for row in rows for name in KEPT if name in row and name not in columns}
    media = sorted(unseen & {IMAGES, "videos", "audios"})
    if media:
        problem = f"rows have {', '.join(media)}, which this trainer does not show to the model"
        raise InputError(f"{source}: {problem}; train with ms-swift", "dataset")
    if unseen:
        text = f"{source}: the model does not see the columns {', '.join(sorted(unseen))}"
        console.print(f"{text}; to use them, train with ms-swift", style="yellow")


def reward_columns(source: Source, rewards: Sequence[Reward], rows: Sequence[dict]) -> list[str]:
    """The columns that the rewards take, the task and the level.

    The others are dropped: TRL gives some names, such as `images`, a meaning of its own.

    Raises:
        InputError: a row lacks a column, or a reward grades no row.
    """
    for number, row in enumerate(rows, start=1):
        for reward in rewards:
            column = missing_column(reward, row)
            if column is not None:
                present = ", ".join(key for key in row if key != "messages")
                raise InputError(
                    f"{source}: {reward.name} needs the column {column!r}, but usable "
                    f"row {number} has {present}",
                    "dataset",
                )
    tasks = {row.get("task") for row in rows}
    for reward, remedy in rewards_without_rows(rewards, tasks):
        names = ", ".join(sorted(map(str, tasks)))
        problem = f"{reward.name} grades no row of {source}, with the task {names}"
        raise InputError(f"{problem}: {remedy}", "reward_funcs")

    used = {"task", LEVEL, THINKING_OPENED}
    for reward in rewards:
        used |= {*reward.columns, *reward.optional_columns}
    existing = set[str]().union(*rows)
    return sorted((used & existing) - set(FROM_TRAINER))
