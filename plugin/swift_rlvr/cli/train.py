"""The command `swift-rlvr train`: GRPO with ms-swift or with TRL."""

import os
import shlex
from inspect import cleandoc

import typer
from rich.console import Console
from rich.text import Text

from swift_rlvr.cli import flags
from swift_rlvr.launch.choose import read_words
from swift_rlvr.launch.machine import Machine, this_machine
from swift_rlvr.launch.plan import Plan, make_plan
from swift_rlvr.launch.variables import Variables
from swift_rlvr.runs.folder import checkpoints, is_finished
from swift_rlvr.training.recipes import Recipe, flags_of_variables, read_flags
from swift_rlvr.utils.errors import DivergedError, InputError, require
from swift_rlvr.utils.network import reserved


def train(words: flags.Launch = None) -> None:
    """Train with GRPO: train [RECIPE.yaml | countdown | my_data | trl] [--name value ...]

    A recipe of ms-swift (rlhf_type: grpo) is launched with its rollout server and
    watched; see docs/launch/index.md. Others are for TRL's trainer. In place of a
    recipe, countdown, my_data and trl stand for those of scripts/configs that fit
    this machine. my_data is for a file of yours: --dataset math:FILE.

    Settings have ms-swift's and TRL's names, as flags or as keys of the file;
    flags override the file. With --trainer trl and --help TRL's are listed.
    Variables say what the machine has: MODEL, DATASET, OUTPUT and others.
    DRY_RUN=1 shows the plan, checks dataset and verifiers, and stops. A recipe of your own
    gets this package's plugin, its callback reward_reasons and logging_steps: 1
    where it lacks them, and the plan says so.

    To resume, TRL takes --resume_from_checkpoint true, ms-swift RESUME=1.
    Exit status: 2 for settings that cannot be used, 3 where training diverges,
    130 where it is interrupted.

    swift-rlvr train scripts/configs/countdown_trl_cpu.yaml --max_steps 10
    """
    if not words or words in (["--help"], ["-h"]):
        usage = (
            "Usage: swift-rlvr train [RECIPE.yaml | countdown | my_data | trl] [--name value ...]"
        )
        typer.echo(f"{usage}\n\n{cleandoc(train.__doc__ or '')}")
        return
    machine = this_machine()
    recipe, overrides = read_words(words, machine)
    if recipe is not None and "rlhf_type" in recipe.settings:
        plan = make_plan(recipe, overrides, machine)
        raise typer.Exit(_launch(plan, Console(highlight=False)))
    _train_with_trl(recipe, overrides, machine)


def _launch(plan: Plan, console: Console) -> int:
    """Show a plan, check it, and train with ms-swift as it says. The exit status."""
    from swift_rlvr.launch.show import show_commands, show_plan
    from swift_rlvr.launch.supervisor import refuse_second_run, supervise

    if not plan.variables.dry_run:
        refuse_second_run(plan)
    show_plan(plan, console)
    if plan.variables.dry_run:
        _check_data(plan, console)
        show_commands(plan, console)
        return 0
    if plan.resume and is_finished(plan.resume, plan.settings):
        text = f"nothing to do: {plan.resume} is the last step's checkpoint; raise max_steps to train on"
        console.print(text, soft_wrap=True)
        return 0
    require("swift", "train", "training with ms-swift")
    from swift_rlvr.cli.doctor import print_results
    from swift_rlvr.launch import doctor
    from swift_rlvr.launch.checks.machine import wanted_ports

    # From before the check on: of two launches at once only one finds the ports free.
    with reserved(port for port, _, _ in wanted_ports(plan)):
        with Console(stderr=True).status("Checking"):
            results = [result for result in doctor.check_plan(plan) if result.status != "passed"]
        print_results(results, console)
        if any(result.status == "failed" for result in results):
            hint = "run `swift-rlvr doctor` with the same arguments to see all checks"
            raise InputError(f"nothing was started; {hint}")
        return supervise(plan, console)


def _check_data(plan: Plan, console: Console) -> None:
    """Read the datasets that are on this machine, as the launch will, and see whether the rewards
    grade them.

    Raises:
        InputError: the launch would be refused.
    """
    from swift_rlvr.cli.doctor import print_results
    from swift_rlvr.launch.doctor import check_data

    with Console(stderr=True).status("Reading the dataset"):
        results = [result for result in check_data(plan) if result.status != "passed"]
    print_results(results, console)
    if any(result.status == "failed" for result in results):
        raise InputError("a launch would be refused here; `swift-rlvr doctor` shows all checks")


def _train_with_trl(recipe: Recipe | None, overrides: list[str], machine: Machine) -> None:
    """Train in this process, on the first visible GPU."""
    recipe_settings = recipe.settings if recipe else {}
    variables = flags_of_variables(os.environ, {**recipe_settings, **read_flags(overrides)})
    words = [*variables, *overrides]
    settings = {**recipe_settings, **read_flags(words)}
    if recipe is not None:
        words = [str(recipe.path), *words]

    # torchrun gives each of its processes a GPU; without it one process takes one.
    if len(machine.gpus) > 1 and "RANK" not in os.environ:
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        os.environ["CUDA_VISIBLE_DEVICES"] = machine.gpus[0].index
    require("transformers", "train", "swift-rlvr train")
    require("trl", "trl", "--trainer trl")
    require("requests", "trl", "--trainer trl")  # TRL 0.29 imports it, and does not ask for it
    from swift_rlvr.training.arguments import read_command

    is_first_rank = os.environ.get("RANK", "0") == "0"
    console = Console(highlight=False, quiet=not is_first_rank)
    try:
        command = read_command(words)
        # After what can be refused: importing TRL takes seconds.
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
        message = Text.assemble(("Error:", "red"), f" {error}")
        Console(stderr=True).print(message, highlight=False, soft_wrap=True)
        raise typer.Exit(3) from None
    except KeyboardInterrupt:
        kept = checkpoints(settings.get("output_dir") or "none")
        hint = "there is no checkpoint yet"
        if kept:
            hint = f"to resume from {kept[-1]}, set --resume_from_checkpoint true"
        console.print(f"\ninterrupted; {hint}", markup=False, soft_wrap=True)
        raise typer.Exit(130) from None
    console.print(f"saved: {model}", markup=False, soft_wrap=True)
