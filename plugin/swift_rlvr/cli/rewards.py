"""The commands `swift-rlvr explain` (why one completion got its reward) and `swift-rlvr score` (files of them)."""

from __future__ import annotations

import json
import re
import sys
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from swift_rlvr.cli.render import print_explanation, print_summary
from swift_rlvr.evaluation.completion_files import (
    COMPLETION_KEYS,
    Item,
    is_completion,
    read_items,
    read_object,
    with_columns_from_prompt,
)
from swift_rlvr.evaluation.scoring import Scoring, default_rewards
from swift_rlvr.jsonl import LineError, opened
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.build import build_rewards, columns_for, missing_column
from swift_rlvr.tasks import RowError
from swift_rlvr.tasks.countdown import parse_row

FLAGS = {"nums": '--nums "3 5 7"', "target": "--target 22", "solution": "--gold TEXT"}

RewardNames = Annotated[
    list[str] | None, typer.Option("--reward", help="A reward, with or without external_; may be repeated.")
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="NAME=VALUE or REWARD.NAME=VALUE, a parameter; may be repeated.")
]


def explain(
    completion: Annotated[str | None, typer.Argument(help="What the model wrote; - reads standard input.")] = None,
    file: Annotated[Path | None, typer.Option(help="Text file with the completion.")] = None,
    row: Annotated[
        str | None, typer.Option(help="Columns as JSON, or FILE.jsonl:LINE, or FILE.jsonl:LINE:POSITION.")
    ] = None,
    nums: Annotated[str | None, typer.Option(help='Countdown: the numbers, such as "3 5 7".')] = None,
    target: Annotated[str | None, typer.Option(help="Countdown: the number to reach.")] = None,
    gold: Annotated[str | None, typer.Option(help="The right answer, for the column solution.")] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE, any other column, JSON or text; may be repeated.")
    ] = None,
    reward: RewardNames = None,
    settings: Settings = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")] = False,
) -> None:
    """Show why a completion gets its reward: what was judged, and every rule.

    With --row FILE.jsonl:LINE the completion is the one on that line, unless
    another is given. One line break at the end of a file or of standard input
    is not taken as part of the completion.

    swift-rlvr explain "<answer>3*5+7</answer>" --nums "3 5 7" --target 22
    """
    item = Item(None, None, {}) if row is None else _read_row(row)
    columns = {**item.row, **_columns(nums, target, gold, column or [])}
    text = _completion(completion, file, item)
    if reward is None:
        columns = with_columns_from_prompt(columns)
        fitting = {"external_countdown": {"nums", "target"}, "external_accuracy": {"solution"}}
        reward = [name for name, needed in fitting.items() if name in REWARDS and needed <= columns.keys()]
        if not reward:
            raise typer.BadParameter(
                "name a reward, or give a Countdown task with --nums and --target, or a right answer with --gold; "
                f"the rewards are {', '.join(REWARDS)}",
                param_hint="--reward",
            )
    explanations = {}
    for each in build_rewards(reward, settings or []):
        if set(each.columns) - columns.keys():
            columns = with_columns_from_prompt(columns)
        name = missing_column(each, columns)
        if name is not None:
            flag = FLAGS.get(name, f"--column {name}=VALUE")
            raise typer.BadParameter(
                f"{each.name} needs the column {name!r}: give it with {flag}", param_hint=flag.split()[0]
            )
        used = columns_for(each, [columns])
        explanations[each.name] = each.explain(text, **{name: value for name, (value,) in used.items()})
    if as_json:
        rewards = {
            name: {**explanation._asdict(), "rules": [rule._asdict() for rule in explanation.rules]}
            for name, explanation in explanations.items()
        }
        typer.echo(json.dumps({"rewards": rewards}))
        return
    console = Console(highlight=False)
    for number, (name, explanation) in enumerate(explanations.items()):
        if number:
            console.print()
        print_explanation(console, name, explanation)


def score(
    files: Annotated[list[Path], typer.Argument(help="Files with completions, .jsonl.")],
    reward: RewardNames = None,
    settings: Settings = None,
    out: Annotated[Path | None, typer.Option(help="A .jsonl file for the reward and reason of each.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one a core.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="End at the first line that cannot be used.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
) -> None:
    """Grade files of completions and count rewards and reasons.

    A line holds {"completion": ..., and the columns, "nums": ...}, as in the
    records.jsonl of swift-rlvr evaluate, or is a table of ms-swift's
    completions.jsonl. Without --reward, every reward grades whose columns the
    first line has, except those that run code.
    """
    if out is not None and out.suffix != ".jsonl":
        raise typer.BadParameter(f"expected a name ending in .jsonl, got {out}", param_hint="--out")
    rewards = build_rewards(reward, settings or []) if reward else default_rewards(files, settings or [])
    errors = Console(stderr=True)
    progress = Progress(
        TextColumn("grading"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=errors,
        transient=True,
        disable=as_json or not errors.is_terminal,
    )
    with progress:
        bar = progress.add_task("")
        scoring = Scoring(files, rewards, workers, strict, lambda size: progress.advance(bar, size))
        progress.update(bar, total=scoring.size)
        summary = scoring.run(out)
    if as_json:
        typer.echo(json.dumps({**summary, "out": None if out is None else str(out)}))
        return
    console = Console(highlight=False)
    if reward is None:
        console.print(f"Rewards that fit the first line: {', '.join(summary['rewards'])}", style="dim")
    print_summary(console, summary)
    if out is not None:
        console.print(f"written: {out}", markup=False)


def _read_row(given: str) -> Item:
    """The row that `--row` names, with its completion if it has one."""
    if given.lstrip().startswith("{"):
        return _only_item(given, "the object", given, None)
    place = re.fullmatch(r"(.+?):([0-9]{1,12})(?::([0-9]{1,12}))?", given, re.DOTALL)
    if place is None:
        expected = """expected '{"nums": [3, 5, 7], ...}', FILE.jsonl:LINE or FILE.jsonl:LINE:POSITION"""
        raise typer.BadParameter(f"{expected}, got {given}", param_hint="--row")
    path, number, position = place[1], int(place[2]), place[3]
    with opened(path) as file:
        line = next(islice(file, number - 1, None), None) if number else None
    if line is None:
        raise typer.BadParameter(f"{path} has no line {number}", param_hint="--row")
    return _only_item(line, f"line {number} of {path}", given, None if position is None else int(position))


def _only_item(line: str | bytes, where: str, given: str, position: int | None) -> Item:
    try:
        row = read_object(line)
        if not any(key in row for key in COMPLETION_KEYS):  # a row of a dataset
            return Item(None, None, row)
        items = read_items(line)
    except LineError as error:
        raise typer.BadParameter(f"{where}: {error}", param_hint="--row") from error
    if position is None and len(items) != 1:
        problem = f"{where} has {len(items)} completions: say which, as in FILE.jsonl:LINE:1"
        raise typer.BadParameter(problem, param_hint="--row")
    position = 1 if position is None else position
    if not 1 <= position <= len(items):
        raise typer.BadParameter(f"{where} has {len(items)} completions, got {given}", param_hint="--row")
    return items[position - 1]


def _columns(nums: str | None, target: str | None, gold: str | None, given: list[str]) -> dict[str, Any]:
    columns = {} if gold is None else {"solution": gold}
    for name, value in (("nums", nums), ("target", target)):
        if value is None:
            continue
        try:
            read = parse_row({"nums": [0], "target": 0, name: value})
        except RowError as error:
            raise typer.BadParameter(str(error).partition(": ")[2], param_hint=f"--{name}") from error
        columns[name] = read[0] if name == "nums" else read[1]
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"expected NAME=VALUE, got {pair!r}", param_hint="--column")
        try:
            columns[name] = json.loads(value)
        except (ValueError, RecursionError):
            columns[name] = value
    return columns


def _completion(given: str | None, file: Path | None, item: Item) -> object:
    if given is not None and file is not None:
        raise typer.BadParameter("give the completion as an argument or with --file, not both", param_hint="--file")
    if file is not None:
        with opened(file) as opened_file:
            return _decoded(opened_file.read(), "--file")
    if given == "-":
        return _decoded(sys.stdin.buffer.read(), "-")
    if given is not None:
        return given
    if is_completion(item.completion):
        return item.completion
    raise typer.BadParameter(
        "give what the model wrote as an argument, with --file, as - from standard input, or on the line that --row "
        "names",
        param_hint="COMPLETION",
    )


def _decoded(data: bytes, where: str) -> str:
    try:
        return data.decode().removesuffix("\n")
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 text ({error.reason} at byte {error.start})"
        raise typer.BadParameter(problem, param_hint=where) from error
