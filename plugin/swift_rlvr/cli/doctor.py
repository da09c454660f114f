"""The command `swift-rlvr doctor`: whether a launch can work on this machine, before it is started."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from inspect import cleandoc

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from swift_rlvr.cli.render import plain, table, visible
from swift_rlvr.errors import InputError
from swift_rlvr.launch.checks import Finding
from swift_rlvr.launch.machine import this_machine
from swift_rlvr.launch.plan import make_plan
from swift_rlvr.recipes import read_words

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
USAGE = "Usage: swift-rlvr doctor [RECIPE.yaml] [the launch's flags] [--json] [--fast]"
STYLES = {"passed": "green", "warning": "yellow", "failed": "bold red"}
LONGEST_DETAIL = 6000


def doctor(context: typer.Context) -> None:
    """Check a launch before it is started: doctor [RECIPE.yaml] [the launch's flags] [--json] [--fast]

    Takes what `swift-rlvr train` takes, variables too; without a recipe it checks
    the Countdown experiment's for this machine. Looks at packages, driver, GPUs,
    memory, disk, ports, proxies, model, datasets, prompts, rewards, and settings
    that do not go together. Each line has passed, is a warning or has failed, with
    what to do about it.

    --fast: only what takes a second or two; every launch does this much by itself.
    --json: one JSON object, for programs.

    Exit status: 1 where a check has failed.

    swift-rlvr doctor scripts/configs/countdown.yaml --learning_rate 1e-6
    """
    words = [word for word in context.args if word not in ("--json", "--fast")]
    if "--help" in words or "-h" in words:
        typer.echo(f"{USAGE}\n\n{cleandoc(doctor.__doc__ or '')}")
        return
    as_json, fast = "--json" in context.args, "--fast" in context.args
    with Console(stderr=True).status("Checking"):
        findings = _findings(words, fast)
    counts = Counter(str(finding.status) for finding in findings)
    if as_json:
        typer.echo(
            json.dumps({**{status: counts[status] for status in STYLES}, "findings": list(map(asdict, findings))})
        )
    else:
        console = Console(highlight=False)
        print_findings(findings, console)
        _print_details(findings, console)
        summary = ", ".join(f"{counts[status]} {word}" for status, word in _words(counts).items() if counts[status])
        console.print(f"\n{summary}")
    if counts["failed"]:
        raise typer.Exit(1)


def _findings(words: Sequence[str], fast: bool) -> list[Finding]:
    """A launch that cannot even be planned is one failed check."""
    from swift_rlvr.launch.checks import failed
    from swift_rlvr.launch.doctor import check

    if not words or words[0].startswith("-"):
        words = ["countdown", *words]
    try:
        machine = this_machine()
        recipe, flags = read_words(words, [gpu.memory for gpu in machine.gpus])
        assert recipe is not None
        if "rlhf_type" not in recipe.settings or "micro_batch_size" in recipe.settings:
            trainer = "megatron" if "micro_batch_size" in recipe.settings else recipe.settings.get("trainer", "scratch")
            raise InputError(
                f"{recipe.path} is for the trainer {trainer}, and only launches of `swift rlhf` are checked"
            )
        return check(make_plan(recipe, flags, machine), fast)
    except InputError as error:
        field = error.field if error.field is None or error.field.isupper() else f"--{error.field}"
        remedy = "correct the recipe, the flag or the variable" if field is None else f"correct {field}"
        return [failed("plan", f"{field} {error.problem}" if field else error.problem, remedy)]


def _words(counts: Counter) -> dict[str, str]:
    return {"passed": "passed", "warning": "warning" if counts["warning"] == 1 else "warnings", "failed": "failed"}


def print_findings(findings: Sequence[Finding], console: Console) -> None:
    """A table of findings, with the remedy under the message; nothing where there are none."""
    if not findings:
        return
    rows = table("outcome", "check", "")
    for column in rows.columns[:2]:
        column.no_wrap = True
    last = None
    for finding in findings:
        text = Text(plain(finding.message))  # no markup: it may quote a file
        if finding.remedy:
            text = Text.assemble(text, "\n", ("-> ", "dim"), (plain(finding.remedy), "cyan"))
        rows.add_row(Text(finding.status, STYLES[finding.status]), "" if finding.name == last else finding.name, text)
        last = finding.name
    console.print(rows)


def _print_details(findings: Sequence[Finding], console: Console) -> None:
    """What is too long for the table: a rendered prompt with its tokens."""
    for finding in findings:
        if finding.detail and finding.name == "prompt":
            console.print(Text(f"\n{finding.name}: {finding.message}", "bold"))
            console.print(
                Padding(visible(finding.detail, LONGEST_DETAIL, console.encoding), (0, 0, 0, 2), expand=False)
            )
