"""The command `swift-rlvr doctor`: whether a launch can work on this machine, before it is
started.
"""

from collections.abc import Sequence
from textwrap import wrap

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import plain, print_outcomes, print_usage, terminal
from swift_rlvr.launch.checks import CheckResult, failed
from swift_rlvr.launch.choose import read_words
from swift_rlvr.launch.machine import this_machine
from swift_rlvr.launch.plan import make_plan
from swift_rlvr.utils.errors import InputError

STATUS_WIDTH = 9
STYLES = {"passed": "green", "warning": "yellow", "failed": "bold red"}


def doctor(words: flags.Launch = None) -> None:
    """Check a launch without starting it: doctor [RECIPE.yaml] [--name value ...]

    Takes the same recipes, flags and variables as swift-rlvr train. Without a
    recipe it checks the Countdown experiment for this machine. It looks at
    packages, driver, GPUs, memory, disk, ports, model, datasets and rewards, and
    lets ms-swift read the settings. Each check passes, warns or fails, and says
    what to do. Every launch runs the same checks and shows those that did not
    pass.

    Exit status: 1 if a check fails.

    swift-rlvr doctor scripts/configs/countdown.yaml --learning_rate 1e-6
    """
    words = words or []
    if "--help" in words or "-h" in words:
        print_usage("swift-rlvr doctor [RECIPE.yaml] [--name value ...]", doctor.__doc__)
        return
    with terminal(stderr=True).status("Checking"):
        results = results_of(words)
    console = terminal()
    print_results(results, console)
    if print_outcomes(console, [result.status for result in results], STYLES):
        raise typer.Exit(1)


def results_of(words: Sequence[str]) -> list[CheckResult]:
    """What the doctor says of a launch; one that cannot even be planned is one failed check."""
    from swift_rlvr.launch.doctor import check_plan, for_gpus, with_assumed_gpus

    if not words or words[0].startswith("-"):
        words = ["countdown", *words]
    try:
        machine = this_machine()
        # A cluster's login node has no GPU and no driver, and the plan is for the nodes behind it.
        may_be_login_node = not machine.gpus and not machine.driver_problem
        try:
            recipe, overrides = read_words(words, machine)
        except InputError:  # among others for an experiment that has no recipe for a CPU
            if not may_be_login_node:
                raise
            recipe, overrides = read_words(words, with_assumed_gpus(machine))
        if recipe is None or "rlhf_type" not in recipe.settings:
            problem = "is a recipe for another trainer; doctor checks recipes for ms-swift (rlhf_type: grpo)"
            raise InputError(problem, words[0])
        if may_be_login_node and for_gpus(recipe):
            machine = with_assumed_gpus(machine)
        return check_plan(make_plan(recipe, overrides, machine))
    except InputError as error:
        remedy = f"correct {error.field or 'the recipe, the flag or the variable'}"
        return [failed("plan", str(error), remedy)]


def print_results(results: Sequence[CheckResult], console: Console) -> None:
    """Results in lines that break between words alone, so that paths stay whole; the remedy under
    the message.
    """
    name_width = 2 + max((len(result.name) for result in results), default=0)
    indent = STATUS_WIDTH + name_width
    # However narrow the terminal is: a word a line could not be read.
    width = max(console.width - indent, 40)
    previous_name = None
    for result in results:
        # Texts without markup: a message may quote a file.
        lines = [Text(line) for line in _wrapped(plain(result.message), width)]
        if result.remedy:
            remedy = f"-> {plain(result.remedy)}"
            lines += [Text(line, "cyan") for line in _wrapped(remedy, width)]
        # The name of several results in a row is shown once.
        name = "" if result.name == previous_name else result.name
        status = (f"{result.status:{STATUS_WIDTH}}", STYLES[result.status])
        body = Text("\n" + " " * indent).join(lines)
        console.print(Text.assemble(status, f"{name:{name_width}}", body), soft_wrap=True)
        previous_name = result.name


def _wrapped(text: str, width: int) -> list[str]:
    lines: list[str] = []
    for line in text.splitlines():
        lines += wrap(line, width, break_long_words=False, break_on_hyphens=False)
    return lines
