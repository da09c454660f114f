"""What a launch will do, before anything starts: which GPUs do what, with which commands, and what
was derived.

`make_plan` reads from top to bottom: settings, servers, GPUs, batches, commands.
docs/launch/index.md explains what a plan says.
"""

import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swift_rlvr.evaluation.models import SWIFT_SETTINGS, folder_of
from swift_rlvr.launch.machine import Machine
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.feedback import FEEDBACK_TOKENS
from swift_rlvr.runs.folder import checkpoints, whole_checkpoints
from swift_rlvr.training.ms_swift import RENDEZVOUS
from swift_rlvr.training.recipes import (
    CONFIGS,
    Recipe,
    as_flag,
    flags_of_variables,
    read_flags,
    read_recipe,
    uses_servers,
)
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import find_file
from swift_rlvr.utils.network import is_loopback
from swift_rlvr.utils.settings import Settings, as_list, number, setting

BATCH, ACCUMULATION = "per_device_train_batch_size", "gradient_accumulation_steps"
TENSOR, DATA = "vllm_tensor_parallel_size", "vllm_data_parallel_size"
PORT, SYNC_PORT = "vllm_server_port", "vllm_server_group_port"

# What the server takes over from the training's settings, besides the engine's, which begin with
# vllm_; and those that begin so and are the trainer's all the same.
_SERVER_TAKES = (
    *("model", "model_type", "model_revision", "template", "use_hf", "torch_dtype"),
    *("multi_turn_scheduler", "max_turns", "gym_env", "use_gym_env"),
)
_TRAINERS_ONLY = ("vllm_mode", "vllm_client", "vllm_server_")
# vLLM's context is that of the recipes' lengths; a flag for one of these asks for another.
_LENGTHS = ("max_length", "max_completion_length", "multi_turn_scheduler", "max_turns")
# Settings whose type ms-swift itself would need half a minute to check.
_NUMBERS = (
    *("learning_rate", "beta", "temperature", "top_p", "warmup_ratio", "epsilon"),
    "weight_decay",
)
# The server's recipes, with GPUs and without.
_SERVER_ON_GPUS, _SERVER_ON_CPU = CONFIGS / "rollout.yaml", CONFIGS / "rollout_cpu.yaml"
# What a launch adds to a recipe of GRPO that lacks it.
PLUGIN, CALLBACK = "plugin/rlvr_plugin.py", "reward_reasons"
_PATCHED_SWIFT = (sys.executable, "-m", "swift_rlvr.training.ms_swift")


@dataclass(frozen=True)
class Variables(Settings):
    """The launcher's own variables, which have these names in capitals."""

    variable_prefix = ""

    start_server: bool = setting(True, "0: use servers that are already running.")
    server_timeout: int = setting(1800, "Seconds to wait for the servers.", at_least=1)
    resume: str = setting(
        "0",
        "1: resume from the last complete checkpoint; auto: or start over if there is none.",
        choices=("0", "1", "auto"),
    )
    restarts: int = setting(0, "How often to restart a server that died.", at_least=0)
    verbose: bool = setting(False, "1: show what the programs print.")
    dry_run: bool = setting(False, "1: stop after the plan.")
    train_gpus: tuple[str, ...] = setting((), "The trainers' GPUs, such as 0,1.")
    rollout_gpus: tuple[str, ...] = setting((), "The server's GPUs.")
    nproc_per_node: int | None = setting(
        None, "Trainers on each machine. Default: at most as many as the recipe has.", at_least=1
    )
    nnodes: int = setting(1, "Machines that train.", at_least=1)
    node_rank: int = setting(0, "Which of them this is.", at_least=0)
    master_addr: str | None = setting(None, "An address of node 0.")
    master_port: int | None = setting(None, "Where the ranks meet.", at_least=1)

    def __post_init__(self) -> None:
        """InputError for a value that cannot be used."""
        super().__post_init__()
        self.require(self.node_rank < self.nnodes, "node_rank", f"below NNODES ({self.nnodes})")
        if self.nnodes > 1 and not self.master_addr:
            raise InputError("is needed with several nodes: an address of node 0", "master_addr")
        gpus = [*self.train_gpus, *self.rollout_gpus]
        if len(set(gpus)) < len(gpus):
            problem = f"names a GPU twice, or one of ROLLOUT_GPUS: {', '.join(gpus)}"
            raise InputError(problem, "train_gpus")


@dataclass(frozen=True)
class Process:
    """A program to start. env: on top of the environment. log: where its output goes."""

    name: str
    argv: tuple[str, ...]
    env: dict[str, str]
    log: Path

    def command(self) -> str:
        """As it could be typed."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.env.items()]
        words = ["python" if word == sys.executable else shlex.quote(word) for word in self.argv]
        return " ".join([*variables, *words])


@dataclass(frozen=True)
class Plan:
    """A launch. settings: what ms-swift's trainer gets, with the names that it gives them.

    hosts, ports: of the rollout servers, started here or elsewhere; none where vLLM is in the
    trainer's process.
    sync_ports: where each server's first worker listens for weights.
    processes: trainer processes on each node. completions: in a step, of all nodes.
    server_settings: what vLLM gets.
    output: the folder of the run. server: None where none is started here. resume: the checkpoint
    to go on from.
    notes: what could not be kept. added: what the recipe lacked, see `_missing`.
    """

    recipe: Path
    settings: dict[str, Any]
    machine: Machine
    variables: Variables
    hosts: tuple[str, ...]
    ports: tuple[int, ...]
    sync_ports: tuple[int, ...]
    train_gpus: tuple[str, ...]
    server_gpus: tuple[str, ...]
    processes: int
    completions: int
    server_settings: dict[str, Any]
    output: Path
    server: Process | None
    trainer: Process
    resume: Path | None = None
    notes: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    @property
    def master_port(self) -> int | None:
        """Where the trainer's ranks meet; None: on a free port, which is chosen when they start."""
        return int(self.trainer.env.get("MASTER_PORT", 0)) or None


# From a recipe and flags to a plan.


def make_plan(
    recipe: Recipe, flags: Sequence[str], machine: Machine, environ: Mapping[str, str] | None = None
) -> Plan:
    """The plan for `swift-rlvr train RECIPE.yaml FLAGS` with ms-swift.

    Args:
        flags: of swift rlhf.
        environ: where the machine variables and the launcher's are read from.

    Raises:
        InputError: a recipe, flag or variable that cannot be used; its field is the flag or the
        variable.
    """
    environ = os.environ if environ is None else environ
    variables = _variables(recipe, environ)
    words = _words(recipe, flags, environ)
    overrides = read_flags(words)
    recipe = _without_vllm(recipe, overrides)
    settings = recipe.settings | overrides
    _check_settings(recipe, settings)

    hosts = _server_hosts(settings)
    ports = _server_ports(settings, PORT, 8000, hosts)
    sync_ports = _sync_ports(settings, hosts)
    starts_server = variables.start_server and variables.node_rank == 0 and len(hosts) == 1
    has_server = starts_server or _server_runs_here(hosts, variables)

    train_gpus, server_gpus = _share_gpus(recipe, settings, variables, machine, has_server)
    without_gpus = variables.nproc_per_node or _recipes_processes(recipe)
    processes = len(train_gpus) or without_gpus
    all_processes = processes * variables.nnodes

    derived = _accumulation(recipe, settings, overrides, all_processes)
    derived |= _checkpoint(settings, variables)
    derived |= _defaults(settings, variables, hosts)
    missing, added = _missing(settings)
    derived |= missing
    is_colocated = bool(settings.get("use_vllm")) and not hosts
    if starts_server or is_colocated:
        derived |= _context(recipe, settings, overrides)
    settings = settings | derived
    completions = _completions(settings, all_processes)

    env = _environment(recipe, environ)
    recipe_words = [str(recipe.path), *_as_flags(recipe.found)]
    if overrides.get("use_vllm") is False:
        # In place of the file, of which no flag takes a setting away.
        recipe_words = _as_flags(recipe.settings)
    trainer_words = [*recipe_words, *words, *_as_flags(derived)]
    checkpoint = derived.get("resume_from_checkpoint")
    rendezvous = _rendezvous(processes, variables, checkpoint)
    trainer_env = env | _devices(train_gpus, machine) | rendezvous
    trainer = _trainer(settings, variables, trainer_words, trainer_env)
    server = None
    server_settings = settings
    if starts_server:
        server_env = env | _devices(server_gpus, machine)
        server_recipe = read_recipe(_SERVER_ON_GPUS if machine.gpus else _SERVER_ON_CPU)
        server_flags = _server_flags(settings, hosts[0], ports[0], server_gpus)
        server = _server(server_recipe, server_flags, server_env, trainer.log.parent)
        server_settings = settings | server_recipe.settings | server_flags
    return Plan(
        recipe=recipe.path,
        settings=settings,
        machine=machine,
        variables=variables,
        hosts=hosts,
        ports=ports,
        sync_ports=sync_ports,
        train_gpus=train_gpus,
        server_gpus=server_gpus,
        processes=processes,
        completions=completions,
        server_settings=server_settings,
        output=trainer.log.parent,
        server=server,
        trainer=trainer,
        resume=checkpoint,
        notes=_notes(recipe, overrides, variables, machine, train_gpus, server_gpus, completions),
        added=added,
    )


# Settings.


def _variables(recipe: Recipe, environ: Mapping[str, str]) -> Variables:
    """The launcher's variables: the environment's, else the recipe's.

    NPROC_PER_NODE of a recipe is the most that it is for, and so no variable of the launcher.
    """
    of_recipe = {name: value for name, value in recipe.env.items() if name != "NPROC_PER_NODE"}
    return Variables.from_environment({**of_recipe, **environ})


def _words(recipe: Recipe, flags: Sequence[str], environ: Mapping[str, str]) -> list[str]:
    """The machine variables as flags, the flags, and a folder in place of a model's name.

    A model such as smollm2 gets its weights now, where it has none on this machine yet.
    """
    variables = flags_of_variables(environ, {**recipe.settings, **read_flags(flags)})
    words = [*variables, *flags]
    overrides = read_flags(words)
    model = str({**recipe.settings, **overrides}.get("model"))
    folder = folder_of(model)
    if folder != model:
        words += ["--model", folder]
        for name, value in SWIFT_SETTINGS.items():
            if name not in overrides:
                words += as_flag(name, value)
    return words


def _without_vllm(recipe: Recipe, overrides: Mapping[str, Any]) -> Recipe:
    """The recipe without its settings of vLLM, where a flag turns that off: ms-swift refuses
    `vllm_mode` then, and connects to a `vllm_server_host` all the same.
    """
    if overrides.get("use_vllm") is not False:
        return recipe
    kept = {}
    for name, value in recipe.settings.items():
        if not name.startswith("vllm_"):
            kept[name] = value
    return recipe._replace(settings=kept)


def _check_settings(recipe: Recipe, settings: Mapping[str, Any]) -> None:
    """InputError for what no launch can have."""
    if "micro_batch_size" in settings:
        page = "https://swift.readthedocs.io/en/latest/Instruction/Ray.html"
        problem = f"is one of Megatron's settings, which `megatron rlhf` takes: {page}"
        raise InputError(problem, "micro_batch_size")
    if settings.get("rlhf_type") != "grpo":
        problem = (
            f"{settings.get('rlhf_type')} has no rewards of completions, which a launch plans and "
            "shows; `swift rlhf` trains with it, without --callbacks reward_reasons"
        )
        raise InputError(problem, "rlhf_type")
    if not uses_servers(settings) and "vllm_server_host" in recipe.settings:
        problem = f"needs a recipe without vllm_server_host, unlike {recipe.path}"
        raise InputError(problem, "vllm_mode")
    if not settings.get("output_dir"):
        raise InputError("is needed: the folder of the run", "output_dir")
    for name in _NUMBERS:
        if name in settings:
            number(settings, name, 0.0)


def _checkpoint(settings: Mapping[str, Any], variables: Variables) -> dict[str, Path]:
    """The checkpoint to go on from, with RESUME=1 or auto."""
    if variables.resume == "0":
        return {}
    output = settings["output_dir"]
    available, complete = checkpoints(output), whole_checkpoints(output)
    if complete:
        return {"resume_from_checkpoint": complete[-1]}
    if variables.resume == "1":
        raise InputError(f"no complete checkpoint in {output}", "RESUME=1")
    if settings.get("save_only_model") is True and available:
        problem = f"{available[-1]} has only weights (save_only_model), and would be written again"
        raise InputError(problem, "RESUME=auto")
    return {}


def _defaults(
    settings: Mapping[str, Any], variables: Variables, hosts: Sequence[str]
) -> dict[str, Any]:
    """What a launch sets where neither recipe nor flags do."""
    defaults: dict[str, Any] = {}
    if "ddp_timeout" not in settings:
        # Seconds. ms-swift's own limit is 200 days, for which a hung rank would hang all. The ranks
        # wait while the server starts.
        defaults["ddp_timeout"] = max(1800, variables.server_timeout)
    if settings.get("add_version") is not False:
        defaults["add_version"] = False
    if "save_total_limit" not in settings:
        # ms-swift keeps all of them, of 43 GB each for a model of 3B. With 0 so does a launch.
        defaults["save_total_limit"] = 3
    if hosts and "vllm_server_timeout" not in settings:
        defaults["vllm_server_timeout"] = variables.server_timeout
    return defaults


def _missing(settings: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What a recipe of GRPO needs so that the launch can show its steps, and a line about each
    addition. Values that the user has set stay.
    """
    missing: dict[str, Any] = {}
    lines = []
    plugins = [str(name) for name in as_list(settings.get("external_plugins"))]
    callbacks = [str(name) for name in as_list(settings.get("callbacks"))]
    has_ours = any(_is_ours(Path(name)) for name in plugins)
    conflict = None if has_ours else _conflict(plugins)
    if conflict:
        lines.append(f"not added: external_plugins {PLUGIN}, because {conflict}")
    elif not has_ours:
        ours = find_file(PLUGIN)
        missing["external_plugins"] = [*plugins, ours]
        lines.append(f"added: external_plugins {ours} (rewards, datasets and callbacks)")
    if CALLBACK not in callbacks and not conflict:
        missing["callbacks"] = [CALLBACK, *callbacks]
        lines.append(f"added: callbacks {CALLBACK} (logs success and the reasons of each reward)")
    if "logging_steps" not in settings:
        missing["logging_steps"] = 1
        lines.append("added: logging_steps 1 (a line for each step)")
    return missing, tuple(lines)


def _is_ours(plugin: Path) -> bool:
    """Whether a plugin is this package's, or imports it."""
    return plugin.name == Path(PLUGIN).name or Path(PLUGIN).stem in _source(plugin)


def _conflict(plugins: Sequence[str]) -> str | None:
    """Which plugin has a reward of ours too, as ms-swift's own example has `external_countdown`.
    Both cannot be loaded.
    """
    for plugin in plugins:
        source = _source(Path(plugin))
        for name, reward in REWARDS.data.items():
            registers = rf"^orms\[[\"']{name}[\"']\] *=|^class {reward.__name__}\b"
            if re.search(registers, source, re.MULTILINE):
                return f"{plugin} has a reward {name} too"
    return None


def _source(plugin: Path) -> str:
    try:
        return plugin.expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):  # ms-swift says what is wrong with it
        return ""


def _context(
    recipe: Recipe, settings: Mapping[str, Any], overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """vLLM's context, where a flag asks for other lengths than the recipe has: the sum of prompt and
    completion, unless a recipe has another for its own lengths.
    """
    name = "vllm_max_model_len"
    if name in overrides or not any(length in overrides for length in _LENGTHS):
        return {}
    if recipe.settings.get(name) not in (None, _longest_row(recipe.settings)):
        return {}
    return {name: _longest_row(settings)}


def _longest_row(settings: Mapping[str, Any]) -> int:
    """Tokens of the longest prompt and completion."""
    return number(settings, "max_length", 512) + longest_completion(settings)


def longest_completion(settings: Mapping[str, Any]) -> int:
    """Tokens after the first prompt: those of all answers, and the feedback between them."""
    turns = 1
    if settings.get("multi_turn_scheduler"):
        turns = number(settings, "max_turns", 1, at_least=1)
    answers = turns * number(settings, "max_completion_length", 512)
    return answers + (turns - 1) * FEEDBACK_TOKENS


# Servers.


def _server_hosts(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The rollout servers' hosts; none where vLLM is in the trainer's process."""
    if not uses_servers(settings):
        return ()
    hosts = tuple(str(host) for host in as_list(settings.get("vllm_server_host")) if host)
    if not hosts:
        raise InputError("is needed with vllm_mode server, such as 127.0.0.1", "vllm_server_host")
    return hosts


def _server_ports(
    settings: Mapping[str, Any], name: str, default: int, hosts: Sequence[str]
) -> tuple[int, ...]:
    """A port for each host, or one for all; none without hosts."""
    if not hosts:
        return ()
    values = as_list(settings.get(name, default))
    ports = tuple(_count({name: value}, name, default) for value in values)
    if len(ports) not in (1, len(hosts)):
        problem = f"must be one port for each of the {len(hosts)} hosts of vllm_server_host"
        raise InputError(problem, name)
    return ports


def _sync_ports(settings: Mapping[str, Any], hosts: Sequence[str]) -> tuple[int, ...]:
    """Where the servers' first workers listen for weights: from the one port on, as ms-swift
    counts.
    """
    ports = _server_ports(settings, SYNC_PORT, 51216, hosts)
    if len(ports) < len(hosts):
        return tuple(ports[0] + index for index in range(len(hosts)))
    return ports


def _server_runs_here(hosts: Sequence[str], variables: Variables) -> bool:
    """Whether a server that runs already has GPUs of this machine.

    Only the first process of all nodes asks the server, so that a loopback address is node 0's.
    """
    return bool(hosts) and variables.node_rank == 0 and is_loopback(hosts[0])


def _server_flags(
    settings: Mapping[str, Any], host: str, port: int, gpus: Sequence[str]
) -> dict[str, Any]:
    """What a rollout server gets besides its recipe: a worker for each GPU, or for GPUs that share
    a model.
    """
    flags = {}
    for name, value in settings.items():
        is_of_engine = name.startswith("vllm_") and not name.startswith(_TRAINERS_ONLY)
        if is_of_engine or name in _SERVER_TAKES:
            flags[name] = value
    flags |= {"host": host, "port": port}
    if settings.get("multi_turn_scheduler") or settings.get("gym_env"):
        flags["external_plugins"] = settings.get("external_plugins")

    tensor = _count(settings, TENSOR)
    workers = _count(settings, DATA, max(1, len(gpus) // tensor))
    if gpus and workers * tensor != len(gpus):
        problem = f"{workers} x {tensor} ({TENSOR}) must be the number of the server's GPUs"
        raise InputError(f"{problem}, which is {len(gpus)}", DATA)
    if workers > 1:
        flags[DATA] = workers
    return flags


# GPUs.


def _share_gpus(
    recipe: Recipe,
    settings: Mapping[str, Any],
    variables: Variables,
    machine: Machine,
    has_server: bool,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The trainers' GPUs and the server's, which are never the same.

    has_server: a server runs on this machine, or will.
    """
    visible = [gpu.index for gpu in machine.gpus]
    _check_named_gpus(recipe, variables, visible, has_server)
    if not visible:
        return (), ()
    train, server = variables.train_gpus, variables.rollout_gpus
    # The fewest GPUs that the server can do with, where no variable names them.
    needed = 0
    if has_server and not server:
        needed = _count(settings, TENSOR) * _count(settings, DATA)

    free = tuple(gpu for gpu in visible if gpu not in train and gpu not in server)
    if not train:
        count = _number_of_trainers(recipe, settings, variables, len(free) - needed)
        train, free = free[:count], free[count:]
    _check_processes(variables, train, needed)
    if not train and server:
        raise InputError("leaves no GPU for training", "ROLLOUT_GPUS")
    if not train or len(free) < needed:
        raise _too_few_gpus(recipe, settings, variables, len(visible), needed)
    if needed and DATA not in settings:
        # A worker for each trainer: more would wait for the trainers most of the time.
        tensor = _count(settings, TENSOR)
        needed = max(tensor, min(len(free), len(train)) // tensor * tensor)
    if needed:
        server = free[-needed:]
    return train, server


def _check_processes(variables: Variables, train: Sequence[str], needed: int) -> None:
    """InputError where NPROC_PER_NODE asks for another number of trainers than have GPUs. needed: of
    the server.
    """
    asked = variables.nproc_per_node
    if asked in (None, len(train)):
        return
    if variables.train_gpus:
        problem = f"is {asked}, and TRAIN_GPUS names {len(train)}: leave one of the two out"
    else:
        problem = f"is {asked}, and {len(train)} GPUs are free for trainers"
        if needed:
            problem += "; the server has the others (a recipe with vllm_mode: colocate has none)"
    raise InputError(problem, "NPROC_PER_NODE")


def _check_named_gpus(
    recipe: Recipe, variables: Variables, visible: Sequence[str], has_server: bool
) -> None:
    """InputError where TRAIN_GPUS or ROLLOUT_GPUS cannot be used."""
    named = {"TRAIN_GPUS": variables.train_gpus, "ROLLOUT_GPUS": variables.rollout_gpus}
    for name, gpus in named.items():
        for gpu in gpus:
            if gpu not in visible:
                listed = ", ".join(visible) or "none"
                raise InputError(f"names GPU {gpu}, and visible are {listed}", name)
    if variables.rollout_gpus and not has_server:
        problem = f"is set, and {recipe.path} needs no server on this machine"
        raise InputError(problem, "ROLLOUT_GPUS")


def _number_of_trainers(
    recipe: Recipe, settings: Mapping[str, Any], variables: Variables, available: int
) -> int:
    """As many as NPROC_PER_NODE asks for and there are GPUs for. Without it the largest number with
    which the recipe's completions a step can be kept, else the largest that there are GPUs for; at
    most as many as the recipe has.
    """
    if variables.nproc_per_node:
        return max(0, min(variables.nproc_per_node, available))
    most = max(0, min(_recipes_processes(recipe), available))
    wanted = _recipes_completions(recipe)
    for count in range(most, 0, -1):
        at_once = count * variables.nnodes * _count(settings, BATCH)
        if wanted % at_once == 0:
            return count
    return most


def _too_few_gpus(
    recipe: Recipe,
    settings: Mapping[str, Any],
    variables: Variables,
    gpus: int,
    needed: int,
) -> InputError:
    """Who asks for how many GPUs, and how they would be enough."""
    tensor, data = _count(settings, TENSOR), _count(settings, DATA)
    server = f"{tensor} ({TENSOR})"
    if data > 1:
        server += f" x {data} ({DATA})"
    trainers = "the training needs at least one"
    if variables.train_gpus:
        trainers = f"TRAIN_GPUS is {','.join(variables.train_gpus)}"

    remedy = "more GPUs, or a recipe without a server (vllm_mode: colocate)"
    left = gpus - max(1, len(variables.train_gpus))
    smaller = [size for size in (8, 4, 2, 1) if size < tensor and size * data <= left]
    if len(variables.train_gpus) > 1 and needed < gpus:
        remedy = "leave TRAIN_GPUS out"
    elif smaller:
        remedy = f"--{TENSOR} {smaller[0]}"
    elif data > 1 and tensor <= left:
        remedy = f"--{DATA} {left // tensor}"
    problem = f"needs more than {gpus} GPUs: the rollout server takes {server}, and {trainers}"
    return InputError(f"{problem}: {remedy}", str(recipe.path))


# Batches.


def _recipes_processes(recipe: Recipe) -> int:
    """Trainer processes on each node, as the recipe has them."""
    return _count(recipe.env, "NPROC_PER_NODE")


def _recipes_completions(recipe: Recipe) -> int:
    """Completions a step, as the recipe has them."""
    processes = _recipes_processes(recipe) * _count(recipe.env, "NNODES")
    return _completions(recipe.settings, processes)


def _completions(settings: Mapping[str, Any], processes: int) -> int:
    """Completions a step with so many processes of all nodes."""
    return processes * _count(settings, BATCH) * _count(settings, ACCUMULATION)


def _accumulation(
    recipe: Recipe, settings: Mapping[str, Any], overrides: Mapping[str, Any], processes: int
) -> dict[str, Any]:
    """The accumulation that keeps the recipe's completions a step, where it is not the recipe's and
    no flag sets it.
    """
    wanted = _recipes_completions(recipe)
    if ACCUMULATION in overrides or _completions(settings, processes) == wanted:
        return {}
    at_once = processes * _count(settings, BATCH)
    accumulation = max(1, round(wanted / at_once))
    # ms-swift needs whole groups.
    while at_once * accumulation % _count(settings, "num_generations", 8):
        accumulation += 1
    return {ACCUMULATION: accumulation}


# Commands.


def _environment(recipe: Recipe, environ: Mapping[str, str]) -> dict[str, str]:
    """The recipe's variables that are not set already, without where ranks meet: the plan says."""
    env = {}
    for name, value in recipe.env.items():
        if name not in environ and name not in RENDEZVOUS:
            env[name] = value
    return env


def _trainer(
    settings: Mapping[str, Any],
    variables: Variables,
    words: Sequence[str],
    env: dict[str, str],
) -> Process:
    output = Path(str(settings["output_dir"]))
    log = "trainer.log"
    if variables.node_rank:  # nodes may share the folder
        log = f"trainer-node{variables.node_rank}.log"
    argv = (*_PATCHED_SWIFT, "rlhf", *words)
    return Process("trainer", argv, env, output / log)


def _server(recipe: Recipe, flags: Mapping[str, Any], env: dict[str, str], output: Path) -> Process:
    words = _as_flags({**recipe.found, **flags})
    argv = (*_PATCHED_SWIFT, "rollout", str(recipe.path), *words)
    return Process("server", argv, env, output / "server.log")


def _rendezvous(processes: int, variables: Variables, checkpoint: Path | None) -> dict[str, str]:
    """Where the ranks meet. `swift_rlvr.training.ms_swift` chooses a free port where none is
    named.
    """
    env = {"NPROC_PER_NODE": str(processes)}
    if variables.nnodes > 1:
        env["NNODES"] = str(variables.nnodes)
        env["NODE_RANK"] = str(variables.node_rank)
        env["MASTER_ADDR"] = str(variables.master_addr)
        env["MASTER_PORT"] = "29500"
        # torchrun's --rdzv_conf: node 0 is there when its server is ready, and a launch may be 300
        # s behind another.
        env["PET_RDZV_CONF"] = f"timeout={variables.server_timeout + 300}"
        # torchrun's --rdzv_id. Nodes that do not see the same folder would begin at different steps
        # and train on; so they do not meet.
        env["PET_RDZV_ID"] = checkpoint.name if checkpoint else "new"
    if variables.master_port:
        env["MASTER_PORT"] = str(variables.master_port)
    return env


def _devices(gpus: Sequence[str], machine: Machine) -> dict[str, str]:
    """The GPUs that a program sees."""
    env = {"CUDA_VISIBLE_DEVICES": ",".join(gpus)}
    if machine.gpus:
        # CUDA counts as nvidia-smi does.
        env = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **env}
    return env


def _notes(
    recipe: Recipe,
    overrides: Mapping[str, Any],
    variables: Variables,
    machine: Machine,
    train_gpus: Sequence[str],
    server_gpus: Sequence[str],
    completions: int,
) -> tuple[str, ...]:
    """What a user may not expect of the plan."""
    notes = []
    if recipe.note:
        notes.append(recipe.note)
    used = {*train_gpus, *server_gpus}
    unused = [gpu.index for gpu in machine.gpus if gpu.index not in used]
    if unused:
        why = _why_unused(recipe, variables, len(train_gpus), len(unused))
        notes.append(f"GPU {', '.join(unused)} not used: {why}")
    wanted = _recipes_completions(recipe)
    if completions != wanted:
        why = "as the flags say" if ACCUMULATION in overrides else "which cannot be kept"
        notes.append(f"{completions} completions a step; the recipe has {wanted}, {why}")
    return tuple(notes)


def _why_unused(recipe: Recipe, variables: Variables, trainers: int, unused: int) -> str:
    """Why GPUs are left over, and what would give them work."""
    if variables.train_gpus:
        return "TRAIN_GPUS names others"
    if variables.nproc_per_node:
        return f"NPROC_PER_NODE is {trainers}"
    most = _recipes_processes(recipe)
    if trainers >= most:
        return f"{recipe.path} is for {most} trainer processes"
    completions = _recipes_completions(recipe)
    why = f"{completions} completions a step are not divided among more"
    all_processes = min(most, trainers + unused) * variables.nnodes
    if completions % all_processes == 0:
        why += f"; --{BATCH} {completions // all_processes} divides them"
    return why


def _as_flags(settings: Mapping[str, Any]) -> list[str]:
    return [word for name, value in settings.items() for word in as_flag(name, value)]


def _count(settings: Mapping[str, Any], name: str, default: int = 1) -> int:
    return number(settings, name, default, at_least=1)
