"""The command `swift-rlvr doctor`: whether a launch can work on this machine, before it is
started.
"""

from collections import Counter
from collections.abc import Sequence
from inspect import cleandoc
from itertools import chain
from textwrap import wrap

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import plain
from swift_rlvr.launch.checks import CheckResult, failed
from swift_rlvr.launch.machine import this_machine
from swift_rlvr.launch.plan import make_plan, read_words
from swift_rlvr.utils.errors import InputError

STYLES = {"passed": "green", "warning": "yellow", "failed": "bold red"}


def doctor(words: flags.Launch = None) -> None:
    """Check a launch before it is started: doctor [RECIPE.yaml] [the launch's flags]

    Takes what `swift-rlvr train` takes, variables too; without a recipe it checks
    the Countdown experiment's for this machine. Looks at packages, driver, GPUs,
    memory, disk, ports, model, datasets and rewards, and lets ms-swift read the
    settings. Each line has passed, is a warning or has failed, with what to do
    about it. Every launch does the same, and shows what has not passed.

    Exit status: 1 where a check has failed.

    swift-rlvr doctor scripts/configs/countdown.yaml --learning_rate 1e-6
    """
    words = words or []
    if "--help" in words or "-h" in words:
        typer.echo(
            f"Usage: swift-rlvr doctor [RECIPE.yaml] [the launch's flags]\n\n{cleandoc(doctor.__doc__ or '')}"
        )
        return
    with Console(stderr=True).status("Checking"):
        results = results_of(words)
    counts, console = Counter(str(result.status) for result in results), Console(highlight=False)
    print_results(results, console)
    console.print(
        "\n" + ", ".join(f"{counts[status]} {status}" for status in STYLES if counts[status])
    )
    if counts["failed"]:
        raise typer.Exit(1)


def results_of(words: Sequence[str]) -> list[CheckResult]:
    """What the doctor says of a launch; one that cannot even be planned is one failed check."""
    from swift_rlvr.launch.doctor import check

    if not words or words[0].startswith("-"):
        words = ["countdown", *words]
    try:
        machine = this_machine()
        recipe, flags = read_words(words, machine)
        if recipe is None or "rlhf_type" not in recipe.settings:
            raise InputError(
                f"{words[0]} is for another trainer, and only launches of `swift rlhf` are checked"
            )
        return check(make_plan(recipe, flags, machine))
    except InputError as error:
        return [
            failed(
                "plan",
                str(error),
                f"correct {error.field or 'the recipe, the flag or the variable'}",
            )
        ]


def print_results(results: Sequence[CheckResult], console: Console) -> None:
    """Results in lines that break between words alone, so that paths stay whole; the remedy under
    the message.
    """
    names = 2 + max((len(result.name) for result in results), default=0)
    width, last = max(console.width - 9 - names, 40), None
    for result in results:
        lines = []
        for text, style in (
            (plain(result.message), ""),
            (f"-> {plain(result.remedy)}" * bool(result.remedy), "cyan"),
        ):
            parts = (
                wrap(line, width, break_long_words=False, break_on_hyphens=False)
                for line in text.splitlines()
            )
            lines += [
                Text(part, style) for part in chain.from_iterable(parts)
            ]  # no markup: it may quote a file
        name = "" if result.name == last else result.name
        outcome = (f"{result.status:9}", STYLES[result.status])
        body = Text("\n" + " " * (9 + names)).join(lines)
        console.print(Text.assemble(outcome, f"{name:{names}}", body), soft_wrap=True)
        last = result.name
