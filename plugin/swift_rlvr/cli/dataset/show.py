"""`swift-rlvr dataset show`: one row as the model sees it, before you train on it."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import counted, table, visible
from swift_rlvr.tasks.pictures import IMAGES, named
from swift_rlvr.tasks.sources import parse_source

LONGEST_PROMPT = 20_000
LONGEST_VALUE = 300
LONGEST_COMPLETION = 2_000


def show(
    dataset: flags.Dataset,
    model: flags.Tokenizer,
    row: Annotated[int, typer.Option(min=1, help="Row number, from 1.")] = 1,
    system: flags.RowSystem = None,
    columns: flags.Columns = "",
    use_hf: flags.UseHf = False,
) -> None:
    """Show the exact prompt that a model sees, the columns passed to the rewards, and what it asks for."""
    from swift_rlvr.contract.attack import grades_of
    from swift_rlvr.contract.findings import form_text
    from swift_rlvr.contract.graders import Graders
    from swift_rlvr.evaluation import prompts

    source = parse_source(dataset, use_hf, columns)
    shown = prompts.asked_row(source, model, row, system)
    console = Console(highlight=False)

    size = f"{shown.tokens:,} tokens"
    if shown.row.get(IMAGES):
        size += f" beside {counted(len(shown.row[IMAGES]), 'picture')}"
    tokens = (size, "bold")
    title = Text.assemble((str(source), "bold"), f", line {shown.line}: a prompt of ", tokens)
    console.print(title, soft_wrap=True)
    console.print(Text(f"The system prompt comes from {shown.system_from}.", "dim"), soft_wrap=True)
    console.rule("prompt", style="dim")
    console.print(visible(shown.prompt, LONGEST_PROMPT, console.encoding))
    console.rule("the completion starts here", style="dim")

    rows = []
    for name, value in shown.row.items():
        if name == "messages":
            continue
        # Not the megabytes of a picture that stands in the row itself.
        if name == IMAGES:
            value = named(value)
        text = value if isinstance(value, str) else json.dumps(value, default=str)
        rows.append((name, visible(text, LONGEST_VALUE, console.encoding)))
    console.print("", table("column", "value passed to the rewards", rows=rows), sep="\n")

    form = form_text(shown.form) if shown.form else "no form of answer"
    if shown.ideal is None:
        console.print(f"\nThe prompt asks for {form}; no right answer is known.")
        return
    completion = visible(shown.ideal, LONGEST_COMPLETION, console.encoding)
    console.print(f"\nThe prompt asks for {form}. An ideal completion:", soft_wrap=True)
    console.print(Padding(completion, (0, 0, 0, 2), expand=False))
    # Where the ideal completion does not earn everything, prompt and rewards do not fit together.
    earned = []
    for reward in Graders(None).of(shown):
        ((value, reason),) = grades_of(reward, [shown], [shown.graded or ""])
        style = "green" if value == reward.full_reward else "yellow"
        earned.append((reward.name, Text("none" if value is None else f"{value:g}", style), reason))
    console.print(
        "", table("reward", "it earns", "why", numbers=("it earns",), rows=earned), sep="\n"
    )
