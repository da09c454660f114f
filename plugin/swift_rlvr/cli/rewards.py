"""The commands `swift-rlvr explain`, for one completion, and `swift-rlvr score`, for files of
completions.
"""

import json
import re
import sys
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import LONGEST_DETAIL, print_explanation, table, visible
from swift_rlvr.evaluation.completion_files import (
    COMPLETION_KEYS,
    Item,
    is_completion,
    items_of,
    read_object,
    with_columns_from_prompt,
)
from swift_rlvr.evaluation.score import SHOWN_PROBLEMS, default_rewards, stored_grades
from swift_rlvr.evaluation.score import score as score_files
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.build import build_rewards, missing_column
from swift_rlvr.runs.log import pace
from swift_rlvr.tasks import RowError
from swift_rlvr.tasks.countdown import parse_row
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import LineError, opened

FLAGS = {"nums": '--nums "3 5 7"', "target": "--target 22", "solution": "--gold TEXT"}


def explain(
    completion: Annotated[
        str | None, typer.Argument(help="What the model wrote; - reads standard input.")
    ] = None,
    row: Annotated[
        str | None,
        typer.Option(help="Columns as JSON, FILE.jsonl:LINE or FILE.jsonl:LINE:POSITION."),
    ] = None,
    nums: Annotated[
        str | None, typer.Option(help='Countdown: the numbers, such as "3 5 7".')
    ] = None,
    target: Annotated[str | None, typer.Option(help="Countdown: the number to reach.")] = None,
    gold: Annotated[
        str | None, typer.Option(help="The right answer, for the column solution.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE, any other column, JSON or text; may be repeated."),
    ] = None,
    reward_funcs: flags.RewardNames = None,
    as_json: flags.Json = False,
) -> None:
    """Show why a completion gets its reward: what was judged, and every rule.

    With --row FILE.jsonl:LINE the completion is the one on that line, unless
    another is given. One line break at the end of standard input is not taken as
    part of the completion.

    swift-rlvr explain "<answer>3*5+7</answer>" --nums "3 5 7" --target 22
    """
    item = Item(None, None, {}) if row is None else _read_row(row)
    columns = with_columns_from_prompt({**item.row, **_columns(nums, target, gold, column or [])})
    text = _completion(completion, item)
    if reward_funcs is None:
        fitting = {"external_countdown": {"nums", "target"}, "external_accuracy": {"solution"}}
        reward_funcs = [name for name, needed in fitting.items() if needed <= columns.keys()]
        if not reward_funcs:
            raise InputError(
                "name a reward with --reward_funcs, or give a Countdown task with --nums and --target, or a right "
                f"answer with --gold; the rewards are {', '.join(REWARDS)}"
            )
    explanations = {}
    for each in build_rewards(reward_funcs):
        if (name := missing_column(each, columns)) is not None:
            flag = FLAGS.get(name, f"--column {name}=VALUE")
            raise InputError(f"{each.name} needs the column {name!r}: give it with {flag}")
        explanations[each.name] = each.explain(text, columns)
    if as_json:
        rewards = {
            name: {**explanation._asdict(), "rules": [rule._asdict() for rule in explanation.rules]}
            for name, explanation in explanations.items()
        }
        typer.echo(json.dumps({"rewards": rewards}))
        return
    for name, explanation in explanations.items():
        print_explanation(Console(highlight=False), name, explanation)


def score(
    files: Annotated[list[Path], typer.Argument(help="Files with completions, .jsonl.")],
    reward_funcs: flags.RewardNames = None,
    out: Annotated[
        Path | None, typer.Option(help="A .jsonl file for the reward and reason of each.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes; by default one a core.")
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(help="`stored` for the verdicts in the file, or another file of verdicts."),
    ] = None,
    fail_on_change: Annotated[
        bool, typer.Option("--fail_on_change", help="Exit with 1 if a verdict changed.")
    ] = False,
    as_json: flags.Json = False,
) -> None:
    """Grade files of completions and count rewards and reasons.

    A line is a record, as in the records.jsonl of swift-rlvr evaluate and of
    every training, or {"completion": ..., and the columns, "nums": ...}, or a
    table of ms-swift's completions.jsonl. Without --reward_funcs, every reward
    grades whose columns the first line has, except those that run code; with
    --against those that the verdicts are of.

    swift-rlvr score eval/records.jsonl --against stored --fail-on-change
    """
    if fail_on_change and against is None:
        raise InputError("needs --against", field="fail_on_change")
    if against is not None and len(files) != 1:
        raise InputError(f"is for one file, got {len(files)}", field="against")
    verdicts = (
        None if against is None else stored_grades(files[0] if against == "stored" else against)
    )
    if verdicts and reward_funcs is None:
        reward_funcs = [name for name in REWARDS if any(name in each for each in verdicts.values())]
    flags.check_out(out)
    rewards = build_rewards(reward_funcs) if reward_funcs else default_rewards(files)
    errors = Console(stderr=True)
    columns = (TextColumn("grading"), BarColumn(), TimeRemainingColumn())
    with Progress(
        *columns, console=errors, transient=True, disable=as_json or not errors.is_terminal
    ) as progress:
        bar = progress.add_task("", total=1.0)
        summary = score_files(
            files,
            rewards,
            out,
            workers=workers,
            against=verdicts,
            advance=lambda x: progress.update(bar, completed=x),
        )
    if as_json:
        typer.echo(json.dumps({**summary, "out": None if out is None else str(out)}))
    else:
        _show_scores(summary, reward_funcs, out)
    if fail_on_change and summary["changed"]:
        raise typer.Exit(1)


def _show_scores(summary: dict[str, Any], reward_funcs: list[str] | None, out: Path | None) -> None:
    """What was counted: rewards, reasons, completions that cannot be used, verdicts that have
    changed.
    """
    console = Console(highlight=False)
    if reward_funcs is None:
        console.print(
            f"Rewards that fit the first line: {', '.join(summary['rewards'])}", style="dim"
        )
    processes = "1 process" if summary["workers"] == 1 else f"{summary['workers']} processes"
    console.print(
        f"{summary['completions']:,} completions graded by {processes} in {summary['seconds']:.2f} s, "
        f"{pace(summary['completions'], summary['seconds'])}"
    )
    if summary["from_prompt"]:
        console.print(
            f"nums and target of {summary['from_prompt']:,} completions were read from their prompts"
        )
    rewards, reasons = [], []
    for name, figures in summary["rewards"].items():
        mean = "-" if figures["mean"] is None else f"{figures['mean']:.3f}"
        rewards.append((name, mean, f"{figures['ungraded']:,}"))
        for number, (reason, count) in enumerate(figures["reasons"].items()):
            share = f"{count / summary['completions']:.1%}"
            reasons.append(("" if number else name, reason, f"{count:,}", share))
    numbers = ("mean", "not graded", "completions", "share")
    console.print("", table("reward", *numbers[:2], numbers=numbers, rows=rewards), "", sep="\n")
    console.print(table("reward", "reason", *numbers[2:], numbers=numbers, rows=reasons))
    if summary["unusable"]:
        console.print(f"\n{summary['unusable']:,} could not be used:", style="yellow")
        for problem in summary["problems"]:
            console.print(
                "  ", visible(problem, LONGEST_DETAIL, console.encoding), sep="", soft_wrap=True
            )
        if summary["unusable"] > SHOWN_PROBLEMS:
            console.print(f"  ... and {summary['unusable'] - SHOWN_PROBLEMS:,} more")
    for each in summary.get("changed", ()):
        (was, why), (now, why_now) = each["before"], each["now"]
        position = f", completion {each['position']}" if "position" in each else ""
        where = f"{each['file']}, line {each['line']}{position}: {each['reward']}"
        console.print(
            f"{where} was {was} ({why}) and is {now} ({why_now})", markup=False, soft_wrap=True
        )
    if "changed" in summary:
        console.print(f"{len(summary['changed']):,} of {summary['compared']:,} verdicts changed")
    if out is not None:
        console.print(f"written: {out}", markup=False, soft_wrap=True)


def _read_row(text: str) -> Item:
    """The row that `--row` names, with its completion if it has one."""
    line: str | bytes = text
    where, place = "the object", None
    if not text.lstrip().startswith("{"):
        place = re.fullmatch(r"(.+?):([0-9]{1,12})(?::([0-9]{1,12}))?", text, re.DOTALL)
        if place is None:
            expected = """must be '{"nums": [3, 5, 7], ...}', FILE.jsonl:LINE or FILE.jsonl:LINE:POSITION"""
            raise InputError(f"{expected}, got {text}", field="row")
        path, number, where = place[1], int(place[2]), f"line {place[2]} of {place[1]}"
        with opened(path) as file:
            line = next(islice(file, number - 1, None), b"") if number else b""
        if not line:
            raise InputError(f"{path} has no line {number}", field="row")
    try:
        row = read_object(line)
        if not any(key in row for key in COMPLETION_KEYS):  # a row of a dataset
            return Item(None, None, row)
        items = items_of(row)
    except LineError as error:
        raise InputError(f"{where}: {error}", field="row") from error
    if place is None or place[3] is None:
        if len(items) != 1:
            raise InputError(
                f"{where} has {len(items)} completions: say which, as in FILE.jsonl:LINE:1",
                field="row",
            )
        return items[0]
    position = int(place[3])
    if not 1 <= position <= len(items):
        raise InputError(
            f"{where} has {len(items)} completions, got position {position}", field="row"
        )
    return items[position - 1]


def _columns(
    nums: str | None, target: str | None, gold: str | None, pairs: list[str]
) -> dict[str, Any]:
    columns: dict[str, Any] = {} if gold is None else {"solution": gold}
    for name, text in (("nums", nums), ("target", target)):
        if text is None:
            continue
        try:
            task = parse_row({"nums": [0], "target": 0, name: text})
        except RowError as error:
            raise InputError(f"--{name}: {str(error).partition(': ')[2]}") from error
        columns[name] = task[0] if name == "nums" else task[1]
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise InputError(f"must be NAME=VALUE, got {pair!r}", field="column")
        try:
            columns[name] = json.loads(text)
        except (ValueError, RecursionError):
            columns[name] = text
    return columns


def _completion(text: str | None, item: Item) -> object:
    if text == "-":
        try:
            return sys.stdin.buffer.read().decode().removesuffix("\n")
        except UnicodeDecodeError as error:
            raise InputError(
                f"standard input: not UTF-8 text ({error.reason} at byte {error.start})"
            ) from error
    if text is None and not is_completion(item.completion):
        wanted = "give what the model wrote as an argument, as - from standard input, or on the line that --row names"
        raise InputError(f"COMPLETION: {wanted}")
    return item.completion if text is None else text
