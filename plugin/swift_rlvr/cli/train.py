"""The command `swift-rlvr train`: GRPO with ms-swift or with TRL."""

import os
import shlex
from inspect import cleandoc

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from swift_rlvr.cli import flags
from swift_rlvr.launch.choose import read_words
from swift_rlvr.launch.machine import Machine, this_machine
from swift_rlvr.launch.plan import Plan, Variables, make_plan
from swift_rlvr.runs.folder import checkpoints, is_finished
from swift_rlvr.tasks import TASKS
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
    DRY_RUN=1 shows the plan, checks the dataset, and stops. A recipe of your own
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
    from swift_rlvr.launch.supervisor import refuse_second_run, supervise

    if not plan.variables.dry_run:
        refuse_second_run(plan)
    _show_plan(plan, console)
    if plan.variables.dry_run:
        _check_datasets(plan, console)
        _show_commands(plan, console)
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
            results = [result for result in doctor.check(plan) if result.status != "passed"]
        print_results(results, console)
        if any(result.status == "failed" for result in results):
            hint = "run `swift-rlvr doctor` with the same arguments to see all checks"
            raise InputError(f"nothing was started; {hint}")
        return supervise(plan, console)


def _check_datasets(plan: Plan, console: Console) -> None:
    """Read the datasets that are on this machine, as the launch will.

    Raises:
        InputError: a training would end there.
    """
    from swift_rlvr.cli.doctor import print_results
    from swift_rlvr.launch.checks import Launch
    from swift_rlvr.launch.checks.data import datasets

    with Console(stderr=True).status("Reading the dataset"):
        results = [result for result in datasets(Launch(plan)) if result.status != "passed"]
    print_results(results, console)
    if any(result.status == "failed" for result in results):
        raise InputError("the training cannot load its dataset")


def _show_plan(plan: Plan, console: Console) -> None:
    """Print what will run where, on which data and for which rewards."""
    from swift_rlvr.launch import estimate

    tuner = "all parameters" if plan.settings.get("tuner_type") == "full" else "LoRA"
    logs = "trainer.log and server.log" if plan.server else "trainer.log"
    lines = {
        "recipe": str(plan.recipe),
        "model": f"{plan.settings.get('model')}, {tuner}",
        "dataset": _datasets(plan),
        "rewards": _rewards(plan),
        "devices": _devices(plan),
        "a step": _step(plan),
        "steps": estimate.steps(plan).text,
    }
    if takes := estimate.hours(plan):
        lines["time"] = takes.text
    lines |= {
        "tokens": estimate.tokens(plan).text,
        "memory": estimate.memory(plan).text,
        "disk": estimate.disk(plan).text,
        "ports": _ports(plan),
        "results": f"{plan.output}, with {logs}",
    }
    if plan.resume:
        lines["resumes"] = str(plan.resume)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in lines.items():
        table.add_row(label, Text(text))  # no markup: it may quote a path
    console.print(table)
    for text in plan.added:
        console.print(Text(text), soft_wrap=True)
    for note in plan.notes:
        console.print(Text.assemble(("note: ", "yellow"), note), soft_wrap=True)


def _show_commands(plan: Plan, console: Console) -> None:
    """Print the commands, as they could be typed."""
    for process in (plan.server, plan.trainer):
        if process is not None:
            console.print(process.command(), markup=False, soft_wrap=True)


def _datasets(plan: Plan) -> str:
    """Each dataset with its rows, or where it comes from."""
    from swift_rlvr.launch.checks import Launch
    from swift_rlvr.launch.estimate import dataset_rows, local_file

    launch = Launch(plan)
    shown = []
    for name in launch.listed("dataset"):
        rows = dataset_rows(name)
        remark = f"{rows:,} rows" if rows is not None else ""
        if local_file(name)[0] is None and not _is_made(name):
            remark = f"{remark} from {launch.hub}".strip()
            if plan.variables.dry_run:
                remark += "; DRY_RUN downloads nothing"
        shown.append(f"{name} ({remark})" if remark else name)
    return ", ".join(shown) or "none is named"


def _is_made(name: str) -> bool:
    """Whether a dataset is made on this machine, as those of reasoning_gym are."""
    task = TASKS.get(name.partition(":")[0].partition("#")[0])
    return task is not None and task.is_made


def _rewards(plan: Plan) -> str:
    """Each reward, with its weight where the recipe has weights."""
    from swift_rlvr.launch.checks.rewards import weighted_names

    return ", ".join(weighted_names(plan.settings)) or "none is named"


def _devices(plan: Plan) -> str:
    trainers = _processes(plan.processes)
    if plan.variables.nnodes > 1:
        trainers += f" on each of {plan.variables.nnodes} nodes"
    if not plan.machine.gpus:
        server = ", rollout server" if plan.server else ""
        return f"no GPU: {trainers} for training{server}, on {plan.machine.cores} cores"
    name = plan.machine.gpu(plan.train_gpus[0]).name
    text = f"training on GPU {', '.join(plan.train_gpus)} ({name}), {trainers}"
    if plan.server_gpus:
        server = "rollout server on" if plan.server else "kept for the server that runs already:"
        return f"{text}; {server} GPU {', '.join(plan.server_gpus)}"
    if plan.hosts:
        return f"{text}; rollout servers on {', '.join(plan.hosts)}"
    if plan.settings.get("use_vllm"):
        return f"{text}; vLLM on the same"
    return text


def _step(plan: Plan) -> str:
    """How the completions of a step come about: 2 processes x 8 x 8 accumulated = 128 ..."""
    batch = plan.settings.get("per_device_train_batch_size", 1)
    accumulation = plan.settings.get("gradient_accumulation_steps", 1)
    group = int(plan.settings.get("num_generations", 8))
    processes = _processes(plan.processes * plan.variables.nnodes)
    product = f"{processes} x {batch} x {accumulation} accumulated = {plan.completions} completions"
    return f"{product}, {plan.completions // group} prompts x {group}"


def _ports(plan: Plan) -> str:
    ranks = "ranks on a free port"
    if plan.master_port:
        ranks = f"ranks {plan.variables.master_addr or '127.0.0.1'}:{plan.master_port}"
    if not plan.hosts:
        return ranks
    pairs = zip(plan.hosts, plan.ports, strict=False)
    servers = ", ".join(f"{host}:{port}" for host, port in pairs)
    weights = ", ".join(map(str, plan.sync_ports))
    return f"rollout server {servers}; weights {weights}; {ranks}"


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"


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
