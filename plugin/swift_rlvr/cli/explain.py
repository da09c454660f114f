"""`swift-rlvr explain`: why one completion gets its reward."""

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import note, print_explanation, terminal
from swift_rlvr.evaluation.completion_files import Reading
from swift_rlvr.evaluation.completion_forms import Item, is_completion, with_columns_from_prompt
from swift_rlvr.evaluation.row_places import row_at
from swift_rlvr.evaluation.score import verifiers_for
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.build import build_rewards, missing_column
from swift_rlvr.tasks import RowError
from swift_rlvr.tasks.countdown import parse_row
from swift_rlvr.tasks.sources import parse_columns
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import LineError

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
    columns: flags.Columns = "",
    reward_funcs: flags.RewardNames = None,
    as_json: flags.Json = False,
) -> None:
    """Show why a completion gets its reward: what was judged, and every rule.

    With --row FILE:LINE the completion on that line is graded, unless you
    give another one. With --row TASK:FILE:LINE, as in sql:dev.json:1, the
    row is read as a training reads it. --columns renames the row's columns.
    One line break at the end of standard input is ignored.

    swift-rlvr explain "<answer>3*5+7</answer>" --nums "3 5 7" --target 22
    """
    new_names = parse_columns(columns)
    item = Item(None, None, {})
    if row is not None:
        renamed: set[str] = set()
        item = row_at(row, new_names, renamed)
        absent = [name for name in new_names if name not in renamed]
        # A note, as in `score`: one row may lack a column that the others of its file have.
        if absent:
            problem = f"--row has no column {', '.join(absent)}, which --columns renames"
            terminal(stderr=True).print(note(problem))
    elif new_names:
        raise InputError("renames columns of a row: give one with --row", field="columns")
    values = _values(item, nums, target, gold, column or [])

    text: object = completion
    if completion == "-":
        try:
            # The shell's echo ends with a line break that no model wrote; a second one is the model's.
            text = sys.stdin.buffer.read().decode().removesuffix("\n")
        except UnicodeDecodeError as error:
            raise InputError(
                f"standard input: not UTF-8 text ({error.reason} at byte {error.start})"
            ) from error
    elif completion is None:
        text = item.completion
        if not is_completion(text):
            raise InputError(
                "COMPLETION: there is no completion to grade: give one as an argument, use - for "
                "standard input, or name a line that has one with --row"
            )

    if reward_funcs is None:
        # Nothing that a completion says is run unless the user asks for it by name.
        reward_funcs = [name for name in verifiers_for(values) if not REWARDS[name].runs_code]
    if not reward_funcs:
        raise InputError(
            "name a reward with --reward_funcs, or give a Countdown task with --nums and --target, "
            f"or a right answer with --gold; the rewards are {', '.join(REWARDS)}"
        )

    # All of them before any is shown: a column that is missing for the second is no half of an answer.
    explanations = {}
    for reward in build_rewards(reward_funcs):
        missing = missing_column(reward, values)
        if missing is not None:
            flag = FLAGS.get(missing, f"--column {missing}=VALUE")
            raise InputError(f"{reward.name} needs the column {missing!r}: give it with {flag}")
        explanations[reward.name] = reward.explain(text, values)

    if as_json:
        rewards = {}
        for name, explanation in explanations.items():
            rules = [rule._asdict() for rule in explanation.rules]
            rewards[name] = {**explanation._asdict(), "rules": rules}
        typer.echo(json.dumps({"rewards": rewards}))
        return
    for name, explanation in explanations.items():
        print_explanation(Console(highlight=False), name, explanation)


def _values(
    item: Item, nums: str | None, target: str | None, gold: str | None, pairs: list[str]
) -> dict[str, Any]:
    """The values of a row's columns, with those that flags and its prompt give. pairs: of --column,
    such as `level=2`; the value is JSON or text.
    """
    try:
        columns = {**Reading().filled(item.row)}
    except LineError as error:
        raise InputError(f"the right answer cannot be read: {error}", field="row") from error
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
    # JSON where it is JSON: `--column level=2` is the number, `--column gold=Rhine` the text.
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise InputError(f"must be NAME=VALUE, got {pair!r}", field="column")
        try:
            columns[name] = json.loads(text)
        except (ValueError, RecursionError):
            columns[name] = text
    return with_columns_from_prompt(columns)
