"""What a launch will do, before anything starts: which GPUs do what, with which commands, and what was derived.

    plan = make_plan(["scripts/configs/countdown_3gpu.yaml", "--max_steps", "100"])

The trainers take the first visible GPUs, as many as the recipe has processes (NPROC_PER_NODE under its ENV), and the
server takes the others, at most one for each trainer. ROLLOUT_GPUS and TRAIN_GPUS override that. Completions a step are
those of the recipe: with another number of processes gradient_accumulation_steps is derived.
"""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from swift_rlvr.errors import InputError
from swift_rlvr.launch.machine import Machine, this_machine
from swift_rlvr.launch.sizes import longest_completion
from swift_rlvr.network import free_port, is_loopback
from swift_rlvr.recipes import SUFFIXES, VARIABLES, Recipe, flags_of_variables, read_flags, read_recipe
from swift_rlvr.runs.folder import whole_checkpoints

CONFIGS = Path("scripts/configs")
EXPERIMENTS = ("countdown", "tiny", "scratch", "trl")
# What the server takes over from the training's settings, besides the engine's, which begin with vllm_.
_SHARED = (
    *("model", "model_type", "model_revision", "template", "use_hf", "torch_dtype"),
    *("multi_turn_scheduler", "max_turns", "gym_env", "use_gym_env"),
)
_TRAINERS_ONLY = ("vllm_mode", "vllm_client")
_RENDEZVOUS = ("NPROC_PER_NODE", "NNODES", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")
_OF_SERVERS = ("HOST", "PORT", "SYNC_PORT")


@dataclass(frozen=True)
class Variables:
    """The launcher's own variables.

    start_server: START_SERVER=0 uses servers that run already. server_timeout: seconds to wait for them.
    resume: RESUME=1 goes on from the last whole checkpoint. restarts: how often a server that died is started again.
    verbose: VERBOSE=1 shows what the programs print. dry_run: DRY_RUN=1 stops after the plan.
    """

    start_server: bool = True
    server_timeout: float = 1800
    resume: bool = False
    restarts: int = 0
    verbose: bool = False
    dry_run: bool = False


@dataclass(frozen=True)
class Process:
    """A program to start. env: on top of the environment. log: what it prints."""

    name: str
    argv: tuple[str, ...]
    env: dict[str, str]
    log: Path

    def command(self) -> str:
        """As it could be typed."""
        words = ["python" if word == sys.executable else shlex.quote(word) for word in self.argv]
        return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in self.env.items()), *words])


@dataclass(frozen=True)
class Plan:
    """A launch. settings: what ms-swift's trainer gets, with the names that it gives them.

    processes: trainer processes on each node. completions: in a step, of all nodes.
    output: the folder of the run. server: None where none is started here. resume: the checkpoint to go on from.
    notes: what was derived, or could not be kept.
    """

    recipe: Path
    settings: dict[str, Any]
    machine: Machine
    processes: int
    nodes: int
    node_rank: int
    train_gpus: tuple[str, ...]
    server_gpus: tuple[str, ...]
    completions: int
    output: Path
    server: Process | None
    trainer: Process
    resume: Path | None
    variables: Variables = field(default_factory=Variables)
    notes: tuple[str, ...] = ()

    @property
    def has_servers(self) -> bool:
        """Whether completions come from rollout servers, started here or elsewhere."""
        return _in_server_mode(self.settings)

    @property
    def hosts(self) -> list[str]:
        return [str(host) for host in _as_list(self.settings.get("vllm_server_host", "127.0.0.1"))]

    @property
    def ports(self) -> list[int]:
        """Of the servers, one for each host."""
        return _whole_numbers(self.settings, "vllm_server_port", 8000)

    @property
    def sync_ports(self) -> list[int]:
        """Where each server's first worker listens for weights; ms-swift counts up from the first."""
        ports = _whole_numbers(self.settings, "vllm_server_group_port", 51216)
        return ports if len(ports) == len(self.hosts) else [ports[0] + i for i in range(len(self.hosts))]

    @property
    def master_port(self) -> int:
        return int(self.trainer.env["MASTER_PORT"])


def name_recipe(words: Sequence[str], machine: Machine) -> list[str]:
    """Words in which an experiment's name, as the first of them, is replaced by the recipe for the machine.

    `countdown my.yaml` is `my.yaml`, so that a script can say what it is for and its user another recipe.
    """
    if not words or words[0] not in EXPERIMENTS:
        return list(words)
    if len(words) > 1 and words[1].endswith(SUFFIXES):
        return list(words[1:])
    return [str(recipe_for(machine, words[0])), *words[1:]]


def recipe_for(machine: Machine, experiment: str) -> Path:
    """The recipe of scripts/configs that fits the machine; experiment is one of EXPERIMENTS."""
    gpus = machine.gpus
    if experiment == "scratch":
        name = "gsm8k_scratch" if gpus else "countdown_scratch_cpu"
    elif experiment == "trl":
        name = "r1_zero_trl" if gpus else "countdown_trl_cpu"
    elif not gpus:
        name = "countdown_cpu"
    elif experiment == "tiny":
        name = "countdown_tiny_1gpu" if len(gpus) == 1 else "countdown_tiny_gpus"
    elif len(gpus) == 1:
        name = _for_one_gpu(machine)
    else:
        name = f"countdown_{max(n for n in (2, 3, 4, 8) if n <= len(gpus))}gpu"
    path = CONFIGS / f"{name}.yaml"
    if not path.is_file():
        raise InputError(f"there is no {path} here: name a recipe, or run this in the root of the repository")
    return path


def _for_one_gpu(machine: Machine) -> str:
    return "countdown_1gpu_80gb" if (machine.gpus[0].memory or 0) >= 70 * 1024 else "countdown_1gpu_24gb"


def make_plan(words: Sequence[str], environ: Mapping[str, str] | None = None, machine: Machine | None = None) -> Plan:
    """The plan for `swift-rlvr train WORDS` with ms-swift.

    Args:
        words: the recipe, a .yaml file, and flags of swift rlhf.
        environ: where the machine variables are read from.
        machine: by default this one.

    Raises:
        InputError: a recipe, flag or variable that cannot be used; its field is the flag or the variable.
    """
    environ = os.environ if environ is None else environ
    machine = machine or this_machine(environ)
    variables = _variables(environ)
    if not words or words[0].startswith("-"):
        raise InputError("name a recipe first, such as scripts/configs/countdown_3gpu.yaml")
    recipe = read_recipe(words[0])
    if "micro_batch_size" in recipe.settings:
        raise InputError(f"{recipe.path} has Megatron's settings: megatron rlhf --use_ray true --config {recipe.path}")
    env = {name: value for name, value in recipe.env.items() if name not in (*environ, *_RENDEZVOUS)}
    own = {**recipe.env, **environ}
    nodes, node_rank = _number(own, "NNODES", 1), _number(environ, "NODE_RANK", 0, low=0)
    if node_rank >= nodes:
        raise InputError(f"must be below NNODES ({nodes}), got {node_rank}", "NODE_RANK")
    in_server_mode = _in_server_mode({**recipe.settings, **read_flags(words[1:])})
    if not in_server_mode and "vllm_server_host" in recipe.settings:
        raise InputError(f"needs a recipe without vllm_server_host, unlike {recipe.path}", "vllm_mode")
    names = [name for name in VARIABLES if in_server_mode or name not in _OF_SERVERS]
    trainer_flags = [*flags_of_variables(environ, names), *_for_wandb(recipe.settings, environ), *words[1:]]
    flagged = read_flags(trainer_flags)
    settings = {**recipe.settings, **flagged}

    hosts = [str(host) for host in _as_list(settings.get("vllm_server_host")) if host]
    if in_server_mode and not hosts:
        raise InputError("is needed with vllm_mode server, such as 127.0.0.1", "vllm_server_host")
    for name, default in (("vllm_server_port", 8000), ("vllm_server_group_port", 51216)):
        if len(_whole_numbers(settings, name, default)) not in (1, len(hosts)) and in_server_mode:
            raise InputError(f"must be one port for each of the {len(hosts)} hosts of vllm_server_host", name)
    remote = in_server_mode and not is_loopback(hosts[0])
    several = len(hosts) > 1
    elsewhere = node_rank > 0 or remote and (several or not variables.start_server)
    notes: list[str] = []
    recipe_processes = _number(recipe.env, "NPROC_PER_NODE", 1)
    train, served = _share_gpus(machine, recipe, settings, environ, elsewhere, recipe_processes, notes)
    processes = len(train) if machine.gpus else _number(own, "PROCESSES", recipe_processes)
    completions = _completions(recipe, flagged, recipe_processes, processes, nodes, settings, trainer_flags, notes)

    if not settings.get("output_dir"):
        raise InputError("is needed: the folder of the run", "output_dir")
    output = Path(str(settings["output_dir"]))
    resume = None
    if variables.resume:
        existing = whole_checkpoints(output)
        if not existing:
            raise InputError(f"there is no whole checkpoint in {output} to go on from", "RESUME")
        resume = existing[-1]
        trainer_flags += ["--resume_from_checkpoint", str(resume)]
    if "ddp_timeout" not in settings:
        # Seconds. ms-swift's own limit is 200 days, and a hung rank would hang all.
        trainer_flags += ["--ddp_timeout", "1800"]
    if settings.get("add_version") is not False:
        settings["add_version"] = False
        trainer_flags += ["--add_version", "false"]
    if in_server_mode and "vllm_server_timeout" not in settings:
        trainer_flags += ["--vllm_server_timeout", f"{variables.server_timeout:g}"]

    server = None
    if in_server_mode and variables.start_server and node_rank == 0 and not several:
        if "vllm_max_model_len" not in settings and {"max_length", "max_completion_length"} & flagged.keys():
            lengths = [settings.get(name, 512) for name in ("max_length", "max_completion_length")]
            if all(isinstance(length, int) for length in lengths):  # what is none is the doctor's business
                # The server's recipe fits the training's.
                settings["vllm_max_model_len"] = lengths[0] + longest_completion(settings)
        server = _server(settings, machine, served, env, output)
    if nodes > 1 and not environ.get("MASTER_ADDR"):
        raise InputError("is needed with several nodes: an address of node 0", "MASTER_ADDR")
    rendezvous = {"NPROC_PER_NODE": str(processes), "MASTER_PORT": str(_master_port(environ, nodes))}
    if nodes > 1:
        rendezvous |= {"NNODES": str(nodes), "NODE_RANK": str(node_rank), "MASTER_ADDR": environ["MASTER_ADDR"]}
    trainer = Process(
        "trainer",
        (sys.executable, "-m", "swift_rlvr.backend", "rlhf", str(recipe.path), *trainer_flags),
        {**env, **_devices(train, machine), **rendezvous},
        output / (f"trainer-node{node_rank}.log" if node_rank else "trainer.log"),  # nodes may share the folder
    )
    return Plan(
        recipe.path, settings, machine, processes, nodes, node_rank, tuple(train), tuple(served), completions, output,
        server, trainer, resume, variables, tuple(notes),
    )  # fmt: skip


def rollout_server(
    words: Sequence[str], environ: Mapping[str, str] | None = None, machine: Machine | None = None
) -> Process:
    """The server that `swift-rlvr rollout WORDS` starts: a recipe of `swift rollout`, or this machine's, and flags."""
    environ = os.environ if environ is None else environ
    machine = machine or this_machine(environ)
    words = list(words)
    path = words.pop(0) if words and not words[0].startswith("-") else CONFIGS / _rollout_recipe(machine)
    recipe = read_recipe(path)
    variables: list[str] = []
    for name, flag in (("MODEL", "--model"), ("HOST", "--host"), ("PORT", "--port"), ("USE_HF", "--use_hf")):
        variables += [flag, environ[name]] if environ.get(name) else []
    flags = [*variables, *words]
    settings = {**recipe.settings, **read_flags(flags)}
    gpus: Sequence[str] = ()
    if machine.gpus:
        gpus = _listed(environ, "ROLLOUT_GPUS", machine)
        if not gpus:
            training = read_recipe(recipe_for(machine, "countdown"))
            processes = _number(training.env, "NPROC_PER_NODE", 1)
            _, gpus = _share_gpus(machine, training, training.settings, environ, False, processes, [])
        flags += _parallel(settings, len(gpus))
    env = {name: value for name, value in recipe.env.items() if name not in environ}
    argv = (sys.executable, "-m", "swift_rlvr.backend", "rollout", str(path), *flags)
    return Process("server", argv, {**env, **_devices(gpus, machine)}, Path("server.log"))


def _server(
    settings: Mapping[str, Any], machine: Machine, gpus: Sequence[str], env: Mapping[str, str], output: Path
) -> Process:
    taken = {
        name: value
        for name, value in settings.items()
        if (name in _SHARED or name.startswith("vllm_")) and name not in _TRAINERS_ONLY
        if not name.startswith("vllm_server_")
    }
    flags = [word for name, value in taken.items() for word in (f"--{name}", *map(_text, _as_list(value)))]
    flags += ["--host", str(_as_list(settings["vllm_server_host"])[0])]
    flags += ["--port", str(_as_list(settings.get("vllm_server_port", 8000))[0])]
    if machine.gpus:
        flags += _parallel(settings, len(gpus))
    if settings.get("multi_turn_scheduler") or settings.get("gym_env"):
        flags += ["--external_plugins", *map(str, _as_list(settings.get("external_plugins")))]
    argv = (sys.executable, "-m", "swift_rlvr.backend", "rollout", str(CONFIGS / _rollout_recipe(machine)), *flags)
    return Process("server", argv, {**env, **_devices(gpus, machine)}, output / "server.log")


def _rollout_recipe(machine: Machine) -> str:
    return "rollout.yaml" if machine.gpus else "rollout_cpu.yaml"


def _parallel(settings: Mapping[str, Any], gpus: int) -> list[str]:
    """The server's workers, one for each of its GPUs, or for each group that shares a model."""
    (tensor,) = _whole_numbers(settings, "vllm_tensor_parallel_size", 1)
    if gpus % tensor:
        raise InputError(f"must divide the server's {gpus} GPUs, got {tensor}", "vllm_tensor_parallel_size")
    (data,) = _whole_numbers(settings, "vllm_data_parallel_size", gpus // tensor)
    if data * tensor != gpus:
        raise InputError(
            f"{data} x {tensor} (vllm_tensor_parallel_size) must be the number of the server's GPUs, which is {gpus}",
            "vllm_data_parallel_size",
        )
    return [] if "vllm_data_parallel_size" in settings or data == 1 else ["--vllm_data_parallel_size", str(data)]


def _share_gpus(
    machine: Machine, recipe: Recipe, settings: Mapping[str, Any], environ: Mapping[str, str], elsewhere: bool,
    processes: int, notes: list[str],
) -> tuple[list[str], list[str]]:  # fmt: skip
    """The trainers' GPUs and the server's, which are never the same."""
    visible = [gpu.index for gpu in machine.gpus]
    if not visible:
        for name in ("ROLLOUT_GPUS", "TRAIN_GPUS"):
            if environ.get(name):
                raise InputError("is set, and no GPU is visible", name)
        return [], []
    train, served = _listed(environ, "TRAIN_GPUS", machine), _listed(environ, "ROLLOUT_GPUS", machine)
    if both := set(train) & set(served):
        raise InputError(f"and ROLLOUT_GPUS both name GPU {', '.join(sorted(both))}", "TRAIN_GPUS")
    needs_server = _in_server_mode(settings) and not elsewhere
    if served and not needs_server:
        raise InputError(f"is set, and {recipe.path} needs no server on this machine", "ROLLOUT_GPUS")
    needed = 1 + needs_server
    if len(visible) < needed:
        raise InputError(
            f"{recipe.path} needs two or more GPUs, one for the server and the others for training, and one is visible "
            f"({visible[0]}); for one GPU there is {CONFIGS / _for_one_gpu(machine)}.yaml"
        )
    free = [gpu for gpu in visible if gpu not in train and gpu not in served]
    if needs_server and not served:
        (tensor,) = _whole_numbers(settings, "vllm_tensor_parallel_size", 1)
        data = _whole_numbers(settings, "vllm_data_parallel_size", 1)[0] if "vllm_data_parallel_size" in settings else 0
        least = tensor * max(1, data)
        trainers = len(train) or _most_even(processes, len(free) - least, recipe)
        rest = free if train else free[max(0, trainers) :]
        if trainers < 1 or len(rest) < least:
            raise InputError(f"{len(visible)} GPUs are too few: the server needs {least}, the training at least one")
        served = rest[-(least if data else max(least, min(len(rest), trainers) // tensor * tensor)) :]
        free = [gpu for gpu in free if gpu not in served]
    if not train:
        if not free:
            raise InputError("leaves no GPU for training", "ROLLOUT_GPUS")
        train = free[: _most_even(processes, len(free), recipe)]
    if unused := [gpu for gpu in visible if gpu not in train and gpu not in served]:
        notes.append(f"GPU {', '.join(unused)} not used: {recipe.path.name} is for {processes} trainer processes")
    return train, served


def _most_even(processes: int, most: int, recipe: Recipe) -> int:
    """How many trainers, at most as many as the recipe has: those with which completions a step can be kept."""
    most = min(processes, most)
    with suppress(TypeError, ValueError):
        forwards = processes * int(recipe.settings.get("gradient_accumulation_steps", 1))
        return next((count for count in range(most, 0, -1) if forwards % count == 0), most)
    return most


def _completions(
    recipe: Recipe, flagged: Mapping[str, Any], recipe_processes: int, processes: int, nodes: int,
    settings: dict[str, Any], flags: list[str], notes: list[str],
) -> int:  # fmt: skip
    """Completions a step, kept as the recipe has them: sets gradient_accumulation_steps where it must change."""
    names = ("per_device_train_batch_size", "gradient_accumulation_steps")
    try:
        batch, accumulation = (int(settings.get(name, 1)) for name in names)
        meant = recipe_processes * _number(recipe.env, "NNODES", 1)
        wanted = meant * int(recipe.settings.get(names[0], 1)) * int(recipe.settings.get(names[1], 1))
        group = int(settings.get("num_generations", 8))
        if min(batch, accumulation, group) < 1:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{', '.join(names)} and num_generations must be whole numbers of at least 1") from None
    at_once = processes * nodes * batch
    if names[1] not in flagged and at_once * accumulation != wanted:
        accumulation = max(1, round(wanted / at_once))
        while at_once * accumulation % group and accumulation < 1024:
            accumulation += 1
        settings[names[1]] = accumulation
        flags += [f"--{names[1]}", str(accumulation)]
        derived = f"{processes * nodes} x {batch} x {accumulation} (derived) = {at_once * accumulation}"
        if at_once * accumulation == wanted:
            notes.append(f"completions a step stay {wanted}: {derived}")
        else:
            notes.append(f"{wanted} completions a step cannot be kept with {processes * nodes} x {batch}: {derived}")
    elif at_once * accumulation != wanted:
        notes.append(f"{at_once * accumulation} completions a step, as the flags say; the recipe has {wanted}")
    return at_once * accumulation


def _variables(environ: Mapping[str, str]) -> Variables:
    return Variables(
        start_server=switch(environ, "START_SERVER", True),
        server_timeout=_number(environ, "SERVER_TIMEOUT", 1800),
        resume=switch(environ, "RESUME", False),
        restarts=_number(environ, "RESTARTS", 0, low=0),
        verbose=switch(environ, "VERBOSE", False),
        dry_run=switch(environ, "DRY_RUN", False),
    )


def switch(environ: Mapping[str, str], name: str, default: bool) -> bool:
    """A variable that is 0 or 1; InputError for anything else."""
    value = environ.get(name) or str(int(default))
    if value not in ("0", "1"):
        raise InputError(f"must be 0 or 1, got {value!r}", name)
    return value == "1"


def _number(environ: Mapping[str, str], name: str, default: int, low: int = 1) -> int:
    value = environ.get(name) or str(default)
    if not value.isdecimal() or int(value) < low:
        raise InputError(f"must be a whole number of at least {low}, got {value!r}", name)
    return int(value)


def _listed(environ: Mapping[str, str], name: str, machine: Machine) -> list[str]:
    """The GPUs that a variable names, such as "2,3"."""
    gpus = [gpu.strip() for gpu in environ.get(name, "").split(",") if gpu.strip()]
    visible = [gpu.index for gpu in machine.gpus]
    for gpu in gpus:
        if gpu not in visible:
            raise InputError(f"names GPU {gpu}, and visible are {', '.join(visible)}", name)
    if len(set(gpus)) < len(gpus):
        raise InputError(f"names a GPU twice: {','.join(gpus)}", name)
    return gpus


def _devices(gpus: Sequence[str], machine: Machine) -> dict[str, str]:
    """PCI_BUS_ID: so that CUDA counts as nvidia-smi does."""
    if not machine.gpus:
        return {"CUDA_VISIBLE_DEVICES": ""}
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(gpus)}


def _in_server_mode(settings: Mapping[str, Any]) -> bool:
    return bool(settings.get("use_vllm")) and settings.get("vllm_mode", "colocate") == "server"


def _for_wandb(settings: Mapping[str, Any], environ: Mapping[str, str]) -> list[str]:
    return ["--report_to", "wandb"] if environ.get("WANDB_API_KEY") and settings.get("report_to") else []


def _master_port(environ: Mapping[str, str], nodes: int) -> int:
    """Where torchrun's ranks meet: MASTER_PORT, else a free port, or with several nodes torchrun's own."""
    if environ.get("MASTER_PORT") or nodes > 1:
        return _number(environ, "MASTER_PORT", 29500)
    return free_port()


def _as_list(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]


def _whole_numbers(settings: Mapping[str, Any], name: str, default: int) -> list[int]:
    """A setting that is a whole number, or a list of them."""
    values = _as_list(settings.get(name, default))
    if not values or any(type(value) is not int or value < 1 for value in values):
        raise InputError(f"must be a whole number of at least 1, got {settings[name]!r}", name)
    return values


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
