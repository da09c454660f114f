"""`swift-rlvr attack`: what a policy that does no work earns of a reward."""

import json
from functools import partial
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import table, terminal, visible, with_progress
from swift_rlvr.contract.attack import Attack, asked_rows, attack_reward
from swift_rlvr.rewards.build import build_rewards, missing_column
from swift_rlvr.success import FORMAT, SHAPING
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.utils.errors import InputError

# Strategies in the table, and characters of an example.
_SHOWN = 12
_LONGEST_EXAMPLE = 60


def attack(
    reward: Annotated[
        str, typer.Argument(help="Name of a reward, or module:function, or file.py:function.")
    ],
    dataset: Annotated[str, flags.dataset_option("The rows to attack")],
    rows: Annotated[int, typer.Option(min=1, help="Attack this many rows, from the start.")] = 200,
    limit: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="The mean reward that a policy may earn without work. Default: 0.1; for few rows "
            "what three of them earn; for rows with choices one and a half times what guessing "
            "earns.",
        ),
    ] = None,
    columns: flags.Columns = "",
    use_hf: flags.UseHf = False,
    as_json: flags.Json = False,
) -> None:
    """Try to earn a reward without solving anything, before a policy does.

    On the rows of a dataset it grades constants, the question itself, empty forms
    and, for rewards that run code, programs that only look right. It also grades
    answers that mention the right one without stating it: among others, denied,
    or only in the thinking.

    Exit status: 1 if a policy that does no work earns more than --limit on
    average, if an answer that does not state the right one is paid, if no row
    pays for its right answer, or if nothing was graded.

    swift-rlvr attack mine.py:my_reward --dataset math:questions.jsonl
    """
    (attacked,) = build_rewards([reward])
    source = parse_source(dataset, use_hf, columns)
    asked, unusable = asked_rows(source, rows)
    # Without its column a reward grades nothing, which would look like a reward that pays no attack.
    missing = missing_column(attacked, asked[0].row)
    if missing is not None:
        present = ", ".join(asked[0].row)
        raise InputError(
            f"{attacked.name} needs the column {missing}; the prepared rows have {present}",
            "dataset",
        )
    progress = partial(with_progress, description="attacking", is_hidden=as_json)
    result = attack_reward(attacked, asked, limit, progress)
    if as_json:
        typer.echo(json.dumps({**result.as_json(), "unusable": unusable}))
    else:
        console = terminal()
        title = Text.assemble((attacked.name, "bold"), f" on {len(asked):,} rows of {source}")
        console.print(title)
        if unusable:
            console.print(f"  {unusable:,} rows cannot be used", style="yellow")
        _print_result(console, result)
    if result.failed:
        raise typer.Exit(1)


def _print_result(console: Console, result: Attack) -> None:
    """What was paid, how much was tried, and what follows from that."""
    paid = [each for each in result.earned if each.paid]
    # The most paid come first: one of them is enough to see what is wrong.
    lines = []
    for each in paid[:_SHOWN]:
        share = f"{len(each.paid):,} of {each.rows:,}"
        example = visible(" ".join(each.example.split()), _LONGEST_EXAMPLE, console.encoding)
        lines.append((each.strategy.name, share, f"{each.mean:.3f}", example))
    if lines:
        headings = ("what the policy does", "rows paid", "mean", "for example")
        console.print(table(*headings, numbers=("rows paid", "mean"), rows=lines))
    if len(paid) > _SHOWN:
        console.print(f"  and {len(paid) - _SHOWN} more; --json lists them", style="dim")
    console.print(f"{len(result.earned)} strategies, {result.graded:,} completions graded.")
    if not result.graded:
        console.print("The reward graded none of them: nothing is known.", style="red")
    elif not paid:
        console.print("None is paid.", style="green")

    # Two faults, of which each ends with status 1: a policy that earns without work, and an answer that is
    # paid although it does not state the right one.
    if result.without_work and result.without_work[0].paid:
        best = result.without_work[0]
        mean = best.total / result.rows
        style = "red" if mean > result.limit else ""
        text = f"The best policy without work, {best.strategy.name}, earns {mean:.3f} a row."
        console.print(text, style=style)
    if result.unstated:
        names = ", ".join(f"{each.strategy.name} (line {each.paid[0]})" for each in result.unstated)
        text = f"Paid though they do not state the right answer: {names}"
        console.print(text, style="red")
    # No fault of a format reward: a form is what it pays for.
    reward = result.reward
    if result.earned and reward.role in (FORMAT, SHAPING) and reward.name.startswith("external_"):
        text = (
            f"{reward.name} does not verify the answer, so a right form is enough: with "
            "gate=outcome it pays for right answers alone."
        )
        console.print(text, style="dim")
    # A reward that pays nothing would pass everything above.
    right = result.right
    if result.is_silent:
        outcome = "paid" if right.rows else "graded"
        text = f"The right answer is not {outcome} on any row: the reward teaches nothing."
        console.print(text, style="red")
    elif not right.rows:
        text = "No row has a right answer that was graded: what it earns is not known."
        console.print(text, style="yellow")
    else:
        share = f"{len(right.paid):,} of {right.rows:,} rows"
        console.print(f"The right answer is paid on {share}, {right.mean:.3f} a row.")
