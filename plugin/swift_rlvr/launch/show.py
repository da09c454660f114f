"""A plan as a user reads it: what will run where, on which data and for which rewards."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from swift_rlvr.launch import estimate
from swift_rlvr.launch.checks import Launch
from swift_rlvr.launch.checks.rewards import weighted_names
from swift_rlvr.launch.plan import Plan
from swift_rlvr.tasks import TASKS


def show_plan(plan: Plan, console: Console) -> None:
    """Print a plan."""
    tuner = "all parameters" if plan.grpo.trains_all_parameters else "LoRA"
    logs = "trainer.log and server.log" if plan.server else "trainer.log"
    lines = {
        "recipe": str(plan.recipe),
        "model": f"{plan.settings.get('model')}, {tuner}",
        "dataset": datasets_line(plan),
        "rewards": ", ".join(weighted_names(plan.grpo)) or "none is named",
        "devices": devices_line(plan),
        "a step": step_line(plan),
        "steps": estimate.steps(plan).text,
        "tokens": estimate.tokens(plan).text,
        "memory": estimate.memory(plan).text,
        "disk": estimate.disk(plan).text,
        "ports": ports_line(plan),
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


def show_commands(plan: Plan, console: Console) -> None:
    """Print the commands, as they could be typed."""
    for process in (plan.server, plan.trainer):
        if process is not None:
            console.print(process.command(), markup=False, soft_wrap=True)


def datasets_line(plan: Plan) -> str:
    """Each dataset with its rows, or where it comes from."""
    launch = Launch(plan)
    shown = []
    for name in launch.listed("dataset"):
        rows = estimate.dataset_rows(name)
        remark = f"{rows:,} rows" if rows is not None else ""
        task = estimate.task_in(name)
        # Those of reasoning_gym are made on this machine.
        is_made = task != "" and TASKS[task].is_made
        is_file = estimate.local_file(name)[0] is not None
        if not is_file and not task and "/" not in name:  # no id of a hub
            remark = "as a plugin registers it"
        elif not is_file and not is_made:
            remark = f"{remark} from {launch.hub}".strip()
            if plan.variables.dry_run:
                remark += "; DRY_RUN downloads nothing"
        shown.append(f"{name} ({remark})" if remark else name)
    return ", ".join(shown) or "none is named"


def devices_line(plan: Plan) -> str:
    """Who trains and who samples on which GPUs."""
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
    if plan.servers:
        hosts = ", ".join(server.host for server in plan.servers)
        return f"{text}; rollout servers on {hosts}"
    if plan.grpo.uses_vllm:
        return f"{text}; vLLM on the same"
    return text


def step_line(plan: Plan) -> str:
    """How the completions of a step come about: 2 processes x 8 x 8 accumulated = 128 ..."""
    batch = plan.grpo.per_device_train_batch_size
    accumulation = plan.grpo.gradient_accumulation_steps
    group = plan.grpo.num_generations
    processes = _processes(plan.processes * plan.variables.nnodes)
    product = f"{processes} x {batch} x {accumulation} accumulated = {plan.completions} completions"
    return f"{product}, {plan.completions // group} prompts x {group}"


def ports_line(plan: Plan) -> str:
    """Where servers answer, and where weights and ranks meet."""
    ranks = "ranks on a free port"
    if plan.master_port:
        ranks = f"ranks {plan.variables.master_addr or '127.0.0.1'}:{plan.master_port}"
    if not plan.servers:
        return ranks
    servers = ", ".join(map(str, plan.servers))
    weights = ", ".join(str(server.sync_port) for server in plan.servers)
    return f"rollout server {servers}; weights {weights}; {ranks}"


def _processes(count: int) -> str:
    return "1 process" if count == 1 else f"{count} processes"
