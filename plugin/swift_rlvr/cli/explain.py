"""`swift-rlvr explain`: why one completion gets its reward."""

import json
import re
import sys
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import print_explanation
from swift_rlvr.evaluation.completion_files import Reading
from swift_rlvr.evaluation.completion_forms import (
    Item,
    NoCompletionError,
    is_completion,
    items_of,
    read_object,
    with_columns_from_prompt,
)
from swift_rlvr.evaluation.score import verifiers_for
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.build import build_rewards, missing_column
from swift_rlvr.tasks import TASKS, RowError
from swift_rlvr.tasks.countdown import parse_row
from swift_rlvr.tasks.files import COMPRESSED, data_suffix, file_rows
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import LineError, opened

FLAGS = {"nums": '--nums "3 5 7"', "target": "--target 22", "solution": "--gold TEXT"}


def explain(
    completion: Annotated[
        str | None, typer.Argument(help="The completion; - reads it from standard input.")
    ] = None,
    row: Annotated[
        str | None,
        typer.Option(
            help="The row: a JSON object, FILE:LINE or FILE:LINE:POSITION, such as rows.jsonl:7; "
            "TASK:FILE:LINE for a row of a dataset."
        ),
    ] = None,
    nums: Annotated[
        str | None, typer.Option(help='Countdown: the numbers, such as "3 5 7".')
    ] = None,
    target: Annotated[str | None, typer.Option(help="Countdown: the number to reach.")] = None,
    gold: Annotated[str | None, typer.Option(help="The gold answer (column solution).")] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            help="Any other column as NAME=VALUE; VALUE is JSON or text. May be repeated."
        ),
    ] = None,
    reward_funcs: flags.RewardNames = None,
    as_json: flags.Json = False,
) -> None:
    """Show why a completion gets its reward: what was judged, and every rule.

    With --row FILE:LINE the completion on that line is graded, unless you
    give another one. With --row TASK:FILE:LINE, as in sql:dev.json:1, the
    row is read as a training reads it. One line break at the end of standard input is ignored.

    swift-rlvr explain "<answer>3*5+7</answer>" --nums "3 5 7" --target 22
    """
    item = Item(None, None, {}) if row is None else _read_row(row)
    try:
        columns = Reading().filled(item.row)
    except LineError as error:
        raise InputError(f"the right answer cannot be read: {error}", field="row") from error
    columns = with_columns_from_prompt(
        {**columns, **_columns_of_flags(nums, target, gold, column or [])}
    )
    text = _completion_to_explain(completion, item)
    if reward_funcs is None:
        # Nothing that a completion says is run unless the user asks for it by name.
        reward_funcs = [name for name in verifiers_for(columns) if not REWARDS[name].runs_code]
    if not reward_funcs:
        raise InputError(
            "name a reward with --reward_funcs, or give a Countdown task with --nums and --target, "
            f"or a right answer with --gold; the rewards are {', '.join(REWARDS)}"
        )

    explanations = {}
    for reward in build_rewards(reward_funcs):
        missing = missing_column(reward, columns)
        if missing is not None:
            flag = FLAGS.get(missing, f"--column {missing}=VALUE")
            raise InputError(f"{reward.name} needs the column {missing!r}: give it with {flag}")
        explanations[reward.name] = reward.explain(text, columns)

    if as_json:
        rewards = {}
        for name, explanation in explanations.items():
            rules = [rule._asdict() for rule in explanation.rules]
            rewards[name] = {**explanation._asdict(), "rules": rules}
        typer.echo(json.dumps({"rewards": rewards}))
        return
    for name, explanation in explanations.items():
        print_explanation(Console(highlight=False), name, explanation)


def _read_row(text: str) -> Item:
    """The row that `--row` names, with its completion if it has one."""
    if text.lstrip().startswith("{"):
        return _item_of(text, "the object", position=None)

    place = re.fullmatch(r"(.+?):([0-9]{1,12})(?::([0-9]{1,12}))?", text, re.DOTALL)
    if place is None:
        forms = """'{"nums": [3, 5, 7], ...}', FILE:LINE, FILE:LINE:POSITION or TASK:FILE:LINE"""
        raise InputError(f"must be {forms}, got {text}", field="row")
    path = place[1]
    number = int(place[2])
    if path.partition(":")[0] in TASKS.data:
        source = parse_source(path)
        for line_number, raw in source.rows():
            if line_number == number:
                with source.at(line_number):
                    return Item(None, None, source.task.preprocess(raw))
        raise InputError(f"{path} has no row in line {number}", field="row")
    position = None if place[3] is None else int(place[3])
    where = f"line {number} of {path}"
    if data_suffix(Path(path)) not in ("", ".jsonl") or path.endswith(COMPRESSED):
        for line_number, row in file_rows(Path(path)):
            if line_number == number:
                return _item_of(row, where, position)
        raise InputError(f"{path} has no row in line {number}", field="row")
    with opened(path) as file:
        line = next(islice(file, number - 1, None), b"") if number else b""
    if not line:
        raise InputError(f"{path} has no line {number}", field="row")
    return _item_of(line, where, position)


def _item_of(line: str | bytes | dict[str, Any], where: str, position: int | None) -> Item:
    """One completion of a line, which holds several in ms-swift's tables.

    line: JSON, or a row that is read. position: from 1.
    """
    try:
        row = line if isinstance(line, dict) else read_object(line)
        items = items_of(row)
    except NoCompletionError:
        # A row of a dataset.
        return Item(None, None, row)
    except (LineError, RowError) as error:
        raise InputError(f"{where}: {error}", field="row") from error
    if position is None:
        if len(items) != 1:
            problem = "completions: add a position, as in FILE:LINE:1"
            raise InputError(f"{where} has {len(items)} {problem}", field="row")
        return items[0]
    if not 1 <= position <= len(items):
        problem = f"{where} has {len(items)} completions, got position {position}"
        raise InputError(problem, field="row")
    return items[position - 1]


def _columns_of_flags(
    nums: str | None, target: str | None, gold: str | None, pairs: list[str]
) -> dict[str, Any]:
    """The columns that flags give. pairs: of --column, such as `level=2`; the value is JSON or text."""
    columns: dict[str, Any] = {}
    if gold is not None:
        columns["solution"] = gold
    # Each may be given alone, beside a row.
    flag = "nums"
    try:
        if nums is not None:
            columns["nums"], _ = parse_row({"nums": nums, "target": 0})
        flag = "target"
        if target is not None:
            _, columns["target"] = parse_row({"nums": [0], "target": target})
    except RowError as error:
        # The message begins with the name of the column, which is the flag's.
        raise InputError(f"--{flag}: {str(error).partition(': ')[2]}") from error
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise InputError(f"must be NAME=VALUE, got {pair!r}", field="column")
        try:
            columns[name] = json.loads(text)
        except (ValueError, RecursionError):
            columns[name] = text
    return columns


def _completion_to_explain(text: str | None, item: Item) -> object:
    """The completion that was given, - for standard input, or else the one of --row."""
    if text == "-":
        try:
            return sys.stdin.buffer.read().decode().removesuffix("\n")
        except UnicodeDecodeError as error:
            raise InputError(
                f"standard input: not UTF-8 text ({error.reason} at byte {error.start})"
            ) from error
    if text is None and not is_completion(item.completion):
        raise InputError(
            "COMPLETION: there is no completion to grade: give one as an argument, use - for "
            "standard input, or name a line that has one with --row"
        )
    return item.completion if text is None else text
