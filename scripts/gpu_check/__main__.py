"""`python -m gpu_check`, which scripts/gpu_check.sh starts: runs the steps, one after another.

A step that fails, or takes longer than its part of the budget, stops no other.
"""

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from rich.console import Console

from gpu_check import report
from gpu_check.order import STEPS
from gpu_check.programs import OutOfTime, ProgramFailed
from gpu_check.steps import DRY, FAILED, INTERRUPTED, NO_TIME, PASSED, SKIPPED, Check, Result, Step
from swift_rlvr.launch.machine import Machine, this_machine
from swift_rlvr.utils.errors import InputError

STYLES = {
    PASSED: "green",
    FAILED: "bold red",
    SKIPPED: "yellow",
    NO_TIME: "yellow",
    INTERRUPTED: "yellow",
    DRY: "cyan",
}
# Seconds of the budget below which no step begins.
LEAST = 60


def options(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command's options."""
    parser = argparse.ArgumentParser(
        prog="bash scripts/gpu_check.sh",
        description="Verifies on this machine what the documentation says of GPUs.",
    )
    parser.add_argument("--minutes", type=float, default=55, help="for all steps together (55)")
    parser.add_argument("--model", help="a folder, for the steps that measure a recipe's memory")
    parser.add_argument(
        "--dataset", help="FILE or NAME:FILE for --model; by default 64 tasks of Countdown"
    )
    parser.add_argument("--only", nargs="+", metavar="STEP", help="these steps alone")
    parser.add_argument("--list", action="store_true", help="the steps, and what each claims")
    parser.add_argument("--dry-run", "--dry_run", action="store_true", help="say what it would do")
    parser.add_argument(
        "--output", help="the report's folder; what has passed there is not run again"
    )
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """The exit status: 0, 1 where a step has failed, 2 for options that cannot be used."""
    console = Console(highlight=False, soft_wrap=True)
    given = options(words)
    try:
        steps = chosen(given.only)
        if given.list:
            for step in steps:
                console.print(f"[bold]{step.name}[/bold]  {step.claim}")
            return 0
        check = prepared(given, this_machine())
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell has its background ignore Ctrl-C
        signal.signal(number, signal.default_int_handler)
    return run_steps(check, steps, console, given.minutes * 60, given.dry_run)


def chosen(only: Sequence[str] | None) -> list[Step]:
    """The steps of --only, in the order of the check; all without it."""
    by_name = {step.name: step for step in STEPS}
    for name in only or ():
        if name not in by_name:
            raise InputError(
                f"there is no step {name!r}; the steps are {', '.join(by_name)}", "only"
            )
    return [step for step in STEPS if not only or step.name in only]


def prepared(given: argparse.Namespace, machine: Machine) -> Check:
    """What the steps are told. InputError for options that cannot be used."""
    if not given.minutes > 0:
        raise InputError(f"must be above 0, got {given.minutes}", "minutes")
    if given.dataset and not given.model:
        raise InputError("is for --model: name a model's folder too", "dataset")
    if given.model and not Path(given.model, "config.json").is_file():
        raise InputError(f"{given.model}: expected a folder with config.json and weights", "model")
    if given.dataset and not Path(given.dataset.rpartition(":")[2].partition("#")[0]).is_file():
        raise InputError(f"{given.dataset}: no such file; expected FILE or NAME:FILE", "dataset")
    now = datetime.now().strftime("%Y%m%d-%H%M%S")
    folder = Path(given.output or f"output/gpu_check/{now}").absolute()
    folder.mkdir(parents=True, exist_ok=True)
    dataset = given.dataset
    if dataset and ":" not in dataset:
        dataset = f"countdown:{dataset}"
    return Check(machine, folder, given.model, dataset)


def run_steps(
    check: Check, steps: Sequence[Step], console: Console, seconds: float, dry: bool = False
) -> int:
    """Every step, and the report after each. The exit status."""
    end = time.monotonic() + seconds
    about = about_machine(check)
    console.print(f"[bold]{about['name']}[/bold]; the report is {check.folder / report.MARKDOWN}")
    # Those of earlier runs in this folder stay in the report, and what has passed is not run again.
    results = {result.name: result for result in report.read(check.folder)}
    interrupted = False
    for step in steps:
        earlier = results.get(step.name)
        if earlier is None or earlier.verdict != PASSED:
            with console.status(f"{step.name}: {step.claim}"):
                try:
                    result = run_step(check, step, end, dry)
                except KeyboardInterrupt:
                    interrupted = True
                    result = replace(described(check, step), verdict=INTERRUPTED)
            results[step.name] = result
            report.write(check.folder, list(results.values()), about)
        say(results[step.name], console)
        if interrupted:
            break
    if interrupted:
        return 130
    return 1 if any(results[step.name].verdict == FAILED for step in steps) else 0


def run_step(check: Check, step: Step, end: float, dry: bool) -> Result:
    """One step, within its part of the time until `end`, of time.monotonic()."""
    result = described(check, step)
    if result.verdict == SKIPPED:
        return result
    if dry:
        return replace(result, verdict=DRY)
    started = time.monotonic()
    if end - started < LEAST:
        return replace(result, verdict=NO_TIME)
    check.until = min(end, started + step.minutes * 60)
    commands = step.commands(check)
    result.commands = [str(command) for command in commands]
    try:
        measured = step.run(check, commands)
    except OutOfTime as error:
        minutes = (time.monotonic() - started) / 60
        text = f"out of time ({minutes:.1f} min): {error}"
        # Its own time, or what was left of the budget.
        verdict = FAILED if check.until < end else NO_TIME
        result = replace(result, verdict=verdict, measured=text)
    except (ProgramFailed, InputError) as error:
        result = replace(result, verdict=FAILED, measured=str(error))
    except Exception as error:  # whatever it is, the steps that follow have their own worth
        name = type(error).__name__
        result = replace(result, verdict=FAILED, measured=f"{name}: {error}")
    else:
        verdict = PASSED if measured.passed else FAILED
        result = replace(
            result, verdict=verdict, measured=measured.text, figures=dict(measured.figures)
        )
    return replace(result, seconds=round(time.monotonic() - started, 1))


def described(check: Check, step: Step) -> Result:
    """What a step would do: skipped with its reason, or dry."""
    why_not = step.why_not(check)
    commands = [] if why_not else [str(command) for command in step.commands(check)]
    verdict = SKIPPED if why_not else DRY
    return Result(step.name, step.claim, commands, step.expected, verdict, measured=why_not)


def about_machine(check: Check) -> dict[str, object]:
    gpus = [gpu.name for gpu in check.machine.gpus]
    name = "no GPU"
    if gpus:
        kinds = [f"{gpus.count(kind)} x {kind}" for kind in dict.fromkeys(gpus)]
        name = f"{', '.join(kinds)}, driver {check.machine.driver}"
    name += f", {check.machine.cores} cores, {check.machine.memory // 1024} GiB"
    return {
        "name": name,
        "date": datetime.now().strftime("%Y-%m-%d"),
        "gpus": gpus,
        "model": check.model,
        "dataset": check.dataset,
    }


def say(result: Result, console: Console) -> None:
    """A step's line in the terminal; where nothing has run, what it would do."""
    style = STYLES[result.verdict]
    console.print(f"[{style}]{result.verdict:8}[/{style}] ", end="")
    text = " ".join(result.measured.split())
    console.print(f"{result.name}: {text or result.claim}  ({result.seconds:.0f} s)", markup=False)
    if result.verdict == DRY:
        console.print(f"         expects {result.expected}", markup=False)
        for command in result.commands:
            console.print(f"         {command}", markup=False)


if __name__ == "__main__":
    sys.exit(main())
