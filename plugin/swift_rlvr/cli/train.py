"""The command `swift-rlvr train`: GRPO with ms-swift or with TRL."""

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import typer
from rich.console import Console

from swift_rlvr.cli import flags
from swift_rlvr.cli.render import print_error, print_usage, terminal
from swift_rlvr.launch.checks import CheckResult
from swift_rlvr.launch.choose import read_words
from swift_rlvr.launch.machine import Machine, this_machine
from swift_rlvr.launch.plan import Plan, make_plan
from swift_rlvr.launch.variables import Variables
from swift_rlvr.runs.folder import checkpoints, is_finished, whole_checkpoints
from swift_rlvr.training.recipes import Recipe, flags_of_variables, read_flags
from swift_rlvr.utils.errors import DivergedError, InputError, require
from swift_rlvr.utils.imports import without_collecting
from swift_rlvr.utils.network import reserved


def train(words: flags.Launch = None) -> None:
    """Train with GRPO: train [RECIPE.yaml | countdown | my_data | trl] [--name value ...]

    A recipe of ms-swift (rlhf_type: grpo) is launched with its rollout server and
    watched; see docs/launch/index.md. Other recipes are for TRL's trainer. In
    place of a recipe, countdown, my_data and trl stand for the one in
    scripts/configs that fits this machine. my_data is for a file of yours:
    --dataset math:FILE.

    Settings have ms-swift's and TRL's names, as flags or as keys of the file;
    flags override the file. --trainer trl --help lists TRL's.
    Variables describe the machine: MODEL, DATASET, OUTPUT and others.
    DRY_RUN=1 shows the plan, checks dataset and verifiers, and stops. If a recipe
    of your own lacks this package's plugin, its callback reward_reasons or
    logging_steps: 1, they are added, and the plan says so.

    To resume, TRL takes --resume_from_checkpoint true, ms-swift RESUME=1.
    Exit status: 2 for settings that cannot be used, 3 if the training diverges,
    130 if it is interrupted.

    swift-rlvr train scripts/configs/countdown_trl_cpu.yaml --max_steps 10
    """
    if not words or words in (["--help"], ["-h"]):
        usage = "swift-rlvr train [RECIPE.yaml | countdown | my_data | trl] [--name value ...]"
        print_usage(usage, train.__doc__)
        return
    machine = this_machine()
    recipe, overrides = read_words(words, machine)
    # ms-swift's recipes are for `swift rlhf`, which names the algorithm; TRL's have no such key.
    if recipe is not None and "rlhf_type" in recipe.settings:
        plan = make_plan(recipe, overrides, machine)
        raise typer.Exit(_launch(plan, Console(highlight=False)))
    _train_with_trl(recipe, overrides, machine)


def _launch(plan: Plan, console: Console) -> int:
    """Show a plan, check it, and train with ms-swift as it says. The exit status."""
    from swift_rlvr.launch import doctor
    from swift_rlvr.launch.checks.machine import wanted_ports
    from swift_rlvr.launch.show import show_commands, show_plan
    from swift_rlvr.launch.supervisor import refuse_second_run, supervise

    if not plan.variables.dry_run:
        refuse_second_run(plan)
    show_plan(plan, console)
    if plan.variables.dry_run:
        # As the launch will read them, and only those that are on this machine.
        with terminal(stderr=True).status("Reading the dataset"):
            results = doctor.check_data(plan)
        problem = "a launch would be refused here; `swift-rlvr doctor` shows all checks"
        _refuse_failed(results, console, problem)
        show_commands(plan, console)
        return 0
    # A scheduler starts a job again that has ended; it must not fail then, nor train from the start.
    if plan.resume and is_finished(plan.resume, plan.settings):
        text = f"nothing to do: {plan.resume} is the last step's checkpoint; raise max_steps to train on"
        console.print(text, soft_wrap=True)
        return 0
    require("swift", "train", "training with ms-swift")
    # From before the check on: of two launches at once only one finds the ports free.
    with reserved(port for port, _, _ in wanted_ports(plan)):
        with terminal(stderr=True).status("Checking"):
            results = doctor.check_plan(plan)
        hint = "run `swift-rlvr doctor` with the same arguments to see all checks"
        _refuse_failed(results, console, f"nothing was started; {hint}")
        return supervise(plan, console)


def _refuse_failed(results: Sequence[CheckResult], console: Console, problem: str) -> None:
    """Show the checks that did not pass; InputError with this problem if one failed."""
    from swift_rlvr.cli.doctor import print_results

    # Those that passed are the doctor's to show: here they would hide the plan.
    print_results([result for result in results if result.status != "passed"], console)
    if any(result.status == "failed" for result in results):
        raise InputError(problem)


def _train_with_trl(recipe: Recipe | None, overrides: list[str], machine: Machine) -> None:
    """Train in this process, on the first visible GPU."""
    path: list[str] = []
    of_recipe: Mapping[str, Any] = {}
    if recipe is not None:
        path = [str(recipe.path)]
        of_recipe = recipe.settings
    # The recipe, then the variables of the machine, then what stands on the command line: the last one wins.
    variables = flags_of_variables(os.environ, {**of_recipe, **read_flags(overrides)})
    settings = {**of_recipe, **read_flags([*variables, *overrides])}
    words = [*path, *variables, *overrides]

    # torchrun gives each of its processes a GPU; without it one process takes one.
    if len(machine.gpus) > 1 and "RANK" not in os.environ:
        # The numbers are nvidia-smi's; CUDA's own order begins with the fastest.
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        os.environ["CUDA_VISIBLE_DEVICES"] = machine.gpus[0].index
    require("transformers", "trl", "--trainer trl")
    require("trl", "trl", "--trainer trl")
    require("requests", "trl", "--trainer trl")  # TRL 0.29 imports it, and does not ask for it
    from swift_rlvr.training.arguments import read_command

    # Under torchrun each process would print the same.
    is_first_rank = os.environ.get("RANK", "0") == "0"
    console = Console(highlight=False, quiet=not is_first_rank)
    try:
        command = read_command(words)
        # After what can be refused: importing TRL takes seconds.
        with without_collecting():
            from swift_rlvr.training import trl

        if Variables.from_environment().dry_run:
            trl.check(command, Console(stderr=True, highlight=False))
            device = f"CUDA_VISIBLE_DEVICES={machine.gpus[0].index} " if machine.gpus else ""
            typer.echo(f"{device}swift-rlvr train {shlex.join(words)}")
            return
        model = trl.run(command, console)
    except InputError as error:
        # A reward's field is its flag already.
        field = error.field and f"--{error.field.removeprefix('--')}"
        raise InputError(error.problem, field) from error
    except DivergedError as error:
        print_error(error)
        raise typer.Exit(3) from None
    except KeyboardInterrupt:
        folder = settings.get("output_dir") or "none"
        # Ctrl-C may come in the middle of writing one.
        kept = whole_checkpoints(folder) or checkpoints(folder)
        hint = "there is no checkpoint yet"
        if kept:
            hint = f"to resume from {kept[-1]}, set --resume_from_checkpoint true"
        console.print(f"\ninterrupted; {hint}", markup=False, soft_wrap=True)
        raise typer.Exit(130) from None
    console.print(f"saved: {model}", markup=False, soft_wrap=True)
