"""A plan in ten lines, and the commands that it stands for."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from swift_rlvr.launch import estimate
from swift_rlvr.launch.plan import Plan


def show_plan(plan: Plan, console: Console) -> None:
    """Print what will run where; with DRY_RUN also the commands, as they could be typed."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for label, text in lines(plan):
        table.add_row(label, Text(text))  # no markup: it may quote a path
    console.print(table)
    for note in plan.notes:
        console.print(Text.assemble(("note: ", "yellow"), note), soft_wrap=True, highlight=False)
    if plan.variables.dry_run:
        for process in filter(None, (plan.server, plan.trainer)):
            console.print(process.command(), markup=False, highlight=False, soft_wrap=True)


def lines(plan: Plan) -> list[tuple[str, str]]:
    """The plan's labels and texts."""
    settings = plan.settings
    rows = [
        ("recipe", str(plan.recipe)),
        ("model", f"{settings.get('model')}, {'all parameters' if settings.get('tuner_type') == 'full' else 'LoRA'}"),
        ("devices", _devices(plan)),
        ("a step", _step(plan)),
        ("steps", estimate.steps(plan).text),
        ("tokens", estimate.tokens(plan).text),
        ("memory", estimate.memory(plan).text),
        ("disk", estimate.disk(plan).text),
        ("ports", _ports(plan)),
        ("results", f"{plan.output}, with trainer.log" + (" and server.log" if plan.server else "")),
    ]
    if plan.resume:
        rows.append(("resumes", str(plan.resume)))
    return rows


def _devices(plan: Plan) -> str:
    trainers = f"{plan.processes} process{'es' * (plan.processes > 1)}"
    trainers += f" on each of {plan.nodes} nodes" if plan.nodes > 1 else ""
    if not plan.machine.gpus:
        server = ", rollout server" if plan.server else ""
        return f"no GPU: {trainers} for training{server}, on {plan.machine.cores} cores"
    parts = [f"training on GPU {', '.join(plan.train_gpus)} ({plan.machine.gpu(plan.train_gpus[0]).name}), {trainers}"]
    if plan.server_gpus:
        kept = "rollout server on" if plan.server else "kept for the server that runs already:"
        parts.append(f"{kept} GPU {', '.join(plan.server_gpus)}")
    elif plan.has_servers:
        parts.append(f"rollout servers on {', '.join(plan.hosts)}")
    elif plan.settings.get("use_vllm"):
        parts.append("vLLM on the same")
    return "; ".join(parts)


def _step(plan: Plan) -> str:
    settings = plan.settings
    group = int(settings.get("num_generations", 8))
    processes = plan.processes * plan.nodes
    factors = f"{processes} process{'es' * (processes > 1)} x {settings.get('per_device_train_batch_size', 1)}"
    factors += f" x {settings.get('gradient_accumulation_steps', 1)} accumulated"
    return f"{factors} = {plan.completions} completions, {plan.completions // group} prompts x {group}"


def _ports(plan: Plan) -> str:
    ranks = f"ranks {plan.trainer.env.get('MASTER_ADDR', '127.0.0.1')}:{plan.master_port}"
    if not plan.has_servers:
        return ranks
    servers = ", ".join(f"{host}:{port}" for host, port in zip(plan.hosts, plan.ports, strict=False))
    return f"rollout server {servers}; weights {', '.join(map(str, plan.sync_ports))}; {ranks}"
