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
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from swift_rlvr.evaluation.models import SWIFT_SETTINGS, folder_of
from swift_rlvr.launch.gpus import Sharing
from swift_rlvr.launch.machine import Machine
from swift_rlvr.launch.settings import ACCUMULATION, DATA, TENSOR, GrpoSettings
from swift_rlvr.launch.variables import Variables
from swift_rlvr.rewards import REWARDS
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
from swift_rlvr.utils.settings import as_list, number

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
# The server's recipes, with GPUs and without.
_SERVER_ON_GPUS, _SERVER_ON_CPU = CONFIGS / "rollout.yaml", CONFIGS / "rollout_cpu.yaml"
# What a launch adds to a recipe of GRPO that lacks it.
PLUGIN, CALLBACK = "plugin/rlvr_plugin.py", "reward_reasons"
_PATCHED_SWIFT = (sys.executable, "-m", "swift_rlvr.training.ms_swift")


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


class Server(NamedTuple):
    """Where a rollout server answers. sync_port: where its first worker listens for weights."""

    host: str
    port: int
    sync_port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True)
class Plan:
    """A launch.

    settings: what ms-swift's trainer gets, with the names that it gives them. server_settings: what
    vLLM gets.
    servers: the rollout servers, started here or elsewhere; none where vLLM is in the trainer's
    process.
    processes: trainer processes on each node. completions: in a step, of all nodes.
    output: the folder of the run. server: None where none is started here. resume: the checkpoint
    to go on from.
    notes: what could not be kept. added: what the recipe lacked, a line for each.
    """

    recipe: Path
    settings: dict[str, Any]
    machine: Machine
    variables: Variables
    servers: tuple[Server, ...]
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

    @cached_property
    def grpo(self) -> GrpoSettings:
        """The settings that a launch reads, with their types."""
        return GrpoSettings.read(self.settings)

    @cached_property
    def engine(self) -> GrpoSettings:
        """The same of what vLLM gets."""
        return GrpoSettings.read(self.server_settings)

    @property
    def master_port(self) -> int | None:
        """Where the trainer's ranks meet; None: on a free port, which is chosen when they start."""
        return int(self.trainer.env.get("MASTER_PORT", 0)) or None


def make_plan(
    recipe: Recipe, flags: Sequence[str], machine: Machine, environ: Mapping[str, str] | None = None
) -> Plan:
    """The plan for `swift-rlvr train RECIPE.yaml FLAGS` with ms-swift.

    environ: where the machine variables and the launcher's are read from.

    Raises:
        InputError: a recipe, flag or variable that cannot be used, which is its field.
    """
    environ = os.environ if environ is None else environ
    # NPROC_PER_NODE of a recipe is the most that it is for, and so no variable of the launcher.
    of_recipe = {name: value for name, value in recipe.env.items() if name != "NPROC_PER_NODE"}
    variables = Variables.from_environment({**of_recipe, **environ})
    recipe, recipe_words, words = _read_words(recipe, flags, environ)
    overrides = read_flags(words)
    values = recipe.settings | overrides
    _refuse_what_no_launch_has(recipe, values)
    settings = GrpoSettings.read(values)

    servers = _servers(values)
    starts_server = variables.start_server and variables.node_rank == 0 and len(servers) == 1
    # One that runs already has GPUs of this machine where its address is a loopback address. Only the
    # first process of all nodes asks the server, so that such an address is node 0's.
    runs_here = bool(servers) and variables.node_rank == 0 and is_loopback(servers[0].host)

    sharing = Sharing(recipe, settings, variables, machine, starts_server or runs_here)
    train_gpus, server_gpus = sharing.share()
    processes = len(train_gpus) or variables.nproc_per_node or sharing.recipes_processes
    all_processes = processes * variables.nnodes

    checkpoint = _checkpoint_to_resume(values, variables)
    has_engine = starts_server or settings.is_colocated
    derived, added = _derived(sharing, overrides, all_processes, checkpoint, has_engine)
    values = values | derived
    settings = GrpoSettings.read(values)
    completions = settings.completions(all_processes)

    # The recipe's variables that are not set already, without where ranks meet, which follows.
    env = {}
    for name, value in recipe.env.items():
        if name not in environ and name not in RENDEZVOUS:
            env[name] = value
    output = Path(str(values["output_dir"]))
    argv = (*recipe_words, *words, *_as_flags(derived))
    trainer_env = env | _devices(train_gpus, machine)
    server, server_values = None, values
    if starts_server:
        server_env = env | _devices(server_gpus, machine)
        server, server_values = _server(settings, servers[0], server_gpus, server_env, output)
    return Plan(
        recipe=recipe.path,
        settings=values,
        machine=machine,
        variables=variables,
        servers=servers,
        train_gpus=train_gpus,
        server_gpus=server_gpus,
        processes=processes,
        completions=completions,
        server_settings=server_values,
        output=output,
        server=server,
        trainer=_trainer(argv, trainer_env, processes, variables, checkpoint, output),
        resume=checkpoint,
        notes=sharing.notes(train_gpus, server_gpus, completions, ACCUMULATION in overrides),
        added=added,
    )


# Settings.


def _read_words(
    recipe: Recipe, flags: Sequence[str], environ: Mapping[str, str]
) -> tuple[Recipe, list[str], list[str]]:
    """The recipe, the words that stand for it, and after them the machine variables as flags, the
    flags, and a folder in place of a model's name.

    A model such as smollm2 gets its weights now, where it has none on this machine yet.
    """
    variables = flags_of_variables(environ, {**recipe.settings, **read_flags(flags)})
    words = [*variables, *flags]
    overrides = read_flags(words)
    recipe_words = [str(recipe.path), *_as_flags(recipe.found)]
    if overrides.get("use_vllm") is False:
        # ms-swift refuses `vllm_mode` then, and connects to a `vllm_server_host` all the same. No flag
        # takes a setting of a file away, so that flags stand in its place.
        others = recipe.settings.items()
        kept = {name: value for name, value in others if not name.startswith("vllm_")}
        recipe = recipe._replace(settings=kept)
        recipe_words = _as_flags(kept)
    model = str({**recipe.settings, **overrides}.get("model"))
    folder = folder_of(model)
    if folder != model:
        words += ["--model", folder]
        for name, value in SWIFT_SETTINGS.items():
            if name not in overrides:
                words += as_flag(name, value)
    return recipe, recipe_words, words


def _refuse_what_no_launch_has(recipe: Recipe, values: Mapping[str, Any]) -> None:
    """Raise InputError for settings of another trainer or of another kind of training."""
    if values.get("rlhf_type") != "grpo":
        problem = (
            f"{values.get('rlhf_type')} has no rewards of completions, which a launch plans and "
            "shows; `swift rlhf` trains with it, without --callbacks reward_reasons"
        )
        raise InputError(problem, "rlhf_type")
    if not uses_servers(values) and "vllm_server_host" in recipe.settings:
        problem = f"needs a recipe without vllm_server_host, unlike {recipe.path}"
        raise InputError(problem, "vllm_mode")
    if not values.get("output_dir"):
        raise InputError("is needed: the folder of the run", "output_dir")


def _checkpoint_to_resume(values: Mapping[str, Any], variables: Variables) -> Path | None:
    """The checkpoint to go on from, with RESUME=1 or auto."""
    if variables.resume == "0":
        return None
    output = values["output_dir"]
    available, complete = checkpoints(output), whole_checkpoints(output)
    if complete:
        return complete[-1]
    if variables.resume == "1":
        raise InputError(f"no complete checkpoint in {output}", "RESUME=1")
    if values.get("save_only_model") is True and available:
        problem = f"{available[-1]} has only weights (save_only_model), and would be written again"
        raise InputError(problem, "RESUME=auto")
    return None


def _derived(
    sharing: Sharing,
    overrides: Mapping[str, Any],
    processes: int,
    checkpoint: Path | None,
    has_engine: bool,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """What the launch sets besides recipe and flags, and a line about each setting that the recipe
    lacks. processes: of all nodes. has_engine: the launch has an engine of vLLM.
    """
    settings, variables = sharing.settings, sharing.variables
    values = settings.values
    derived: dict[str, Any] = {}
    wanted = sharing.recipes_completions
    if ACCUMULATION not in overrides and settings.completions(processes) != wanted:
        at_once = processes * settings.per_device_train_batch_size
        accumulation = max(1, round(wanted / at_once))
        # ms-swift needs whole groups.
        while at_once * accumulation % settings.num_generations:
            accumulation += 1
        derived[ACCUMULATION] = accumulation
    if checkpoint:
        derived["resume_from_checkpoint"] = checkpoint
    if "ddp_timeout" not in values:
        # Seconds. ms-swift's own limit is 200 days, for which a hung rank would hang all. The ranks
        # wait while the server starts.
        derived["ddp_timeout"] = max(1800, variables.server_timeout)
    if values.get("add_version") is not False:
        derived["add_version"] = False
    if "save_total_limit" not in values:
        # ms-swift keeps all of them, of 43 GB each for a model of 3B. With 0 so does a launch.
        derived["save_total_limit"] = 3
    if settings.uses_servers and "vllm_server_timeout" not in values:
        derived["vllm_server_timeout"] = variables.server_timeout
    additions, added = _additions(values)
    derived |= additions
    if has_engine:
        derived |= _engine_context(sharing.recipe, settings, overrides)
    return derived, added


def _additions(values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Settings that a recipe lacks and that the launch needs to show its steps, and a line about each.
    Values that the user has set stay.
    """
    additions: dict[str, Any] = {}
    lines = []
    plugins = [str(name) for name in as_list(values.get("external_plugins"))]
    callbacks = [str(name) for name in as_list(values.get("callbacks"))]
    sources = dict.fromkeys(plugins, "")
    for name in plugins:
        with suppress(OSError, UnicodeDecodeError):  # ms-swift says what is wrong with it
            sources[name] = Path(name).expanduser().read_text(encoding="utf-8")
    # A plugin of the user's may import ours.
    has_ours = any(
        Path(name).name == Path(PLUGIN).name or Path(PLUGIN).stem in source
        for name, source in sources.items()
    )
    conflict = None if has_ours else _conflict(sources)
    if conflict:
        lines.append(f"not added: external_plugins {PLUGIN}, because {conflict}")
    elif not has_ours:
        ours = find_file(PLUGIN)
        additions["external_plugins"] = [*plugins, ours]
        lines.append(f"added: external_plugins {ours} (rewards, datasets and callbacks)")
    if CALLBACK not in callbacks and not conflict:
        additions["callbacks"] = [CALLBACK, *callbacks]
        lines.append(f"added: callbacks {CALLBACK} (logs success and the reasons of each reward)")
    if "logging_steps" not in values:
        additions["logging_steps"] = 1
        lines.append("added: logging_steps 1 (a line for each step)")
    return additions, tuple(lines)


def _conflict(sources: Mapping[str, str]) -> str | None:
    """Say which plugin has a reward of ours too; both cannot be loaded. ms-swift's own example has
    `external_countdown`.
    """
    for plugin, source in sources.items():
        for name, reward in REWARDS.data.items():
            registers = rf"^orms\[[\"']{name}[\"']\] *=|^class {reward.__name__}\b"
            if re.search(registers, source, re.MULTILINE):
                return f"{plugin} has a reward {name} too"
    return None


def _engine_context(
    recipe: Recipe, settings: GrpoSettings, overrides: Mapping[str, Any]
) -> dict[str, int]:
    """The context that vLLM needs if a flag changes the lengths: the sum of prompt and completion. A
    recipe whose context is not the sum of its own lengths keeps it.
    """
    name = "vllm_max_model_len"
    if name in overrides or not any(length in overrides for length in _LENGTHS):
        return {}
    recipes_own = GrpoSettings.read(recipe.settings)
    if recipe.settings.get(name) not in (None, recipes_own.longest_row):
        return {}
    return {name: settings.longest_row}


# Servers.


def _servers(values: Mapping[str, Any]) -> tuple[Server, ...]:
    """The rollout servers; none where vLLM is in the trainer's process."""
    if not uses_servers(values):
        return ()
    hosts = [str(host) for host in as_list(values.get("vllm_server_host")) if host]
    if not hosts:
        raise InputError("is needed with vllm_mode server, such as 127.0.0.1", "vllm_server_host")
    ports = _server_ports(values, PORT, 8000, len(hosts))
    sync_ports = _server_ports(values, SYNC_PORT, 51216, len(hosts))
    if len(ports) < len(hosts):
        ports *= len(hosts)
    if len(sync_ports) < len(hosts):
        # From the one port on, as ms-swift counts.
        sync_ports = [sync_ports[0] + index for index in range(len(hosts))]
    return tuple(map(Server, hosts, ports, sync_ports))


def _server_ports(values: Mapping[str, Any], name: str, default: int, hosts: int) -> list[int]:
    """The ports of a setting: one for each host, or one for all."""
    ports = []
    for value in as_list(values.get(name, default)):
        ports.append(number({name: value}, name, default, at_least=1))
    if len(ports) not in (1, hosts):
        problem = f"must be one port for each of the {hosts} hosts of vllm_server_host"
        raise InputError(problem, name)
    return ports


# Commands.


def _server(
    settings: GrpoSettings,
    address: Server,
    gpus: Sequence[str],
    env: Mapping[str, str],
    output: Path,
) -> tuple[Process, dict[str, Any]]:
    """A rollout server, and its settings: its recipe's, what it takes over from the training's, and a
    worker for each GPU, or for GPUs that share a model.
    """
    values = settings.values
    flags: dict[str, Any] = {}
    for name, value in values.items():
        is_of_engine = name.startswith("vllm_") and not name.startswith(_TRAINERS_ONLY)
        if is_of_engine or name in _SERVER_TAKES:
            flags[name] = value
    flags |= {"host": address.host, "port": address.port}
    if values.get("multi_turn_scheduler") or values.get("gym_env"):
        flags["external_plugins"] = values.get("external_plugins")

    tensor, workers = settings.vllm_tensor_parallel_size, settings.vllm_data_parallel_size
    if values.get(DATA) is None:
        workers = max(1, len(gpus) // tensor)
    if gpus and workers * tensor != len(gpus):
        problem = f"{workers} x {tensor} ({TENSOR}) must be the number of the server's GPUs"
        raise InputError(f"{problem}, which is {len(gpus)}", DATA)
    if workers > 1:
        flags[DATA] = workers

    recipe = read_recipe(_SERVER_ON_GPUS if gpus else _SERVER_ON_CPU)
    argv = (*_PATCHED_SWIFT, "rollout", str(recipe.path), *_as_flags(recipe.found | flags))
    process = Process("server", argv, dict(env), output / "server.log")
    return process, {**values, **recipe.settings, **flags}


def _trainer(
    words: Sequence[str],
    env: Mapping[str, str],
    processes: int,
    variables: Variables,
    checkpoint: Path | None,
    output: Path,
) -> Process:
    """The trainer, with where its ranks meet. `swift_rlvr.training.ms_swift` chooses a free port where
    none is named.
    """
    env = {**env, "NPROC_PER_NODE": str(processes)}
    log = "trainer.log"
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
    if variables.node_rank:  # nodes may share the folder
        log = f"trainer-node{variables.node_rank}.log"
    return Process("trainer", (*_PATCHED_SWIFT, "rlhf", *words), env, output / log)


def _devices(gpus: Sequence[str], machine: Machine) -> dict[str, str]:
    """The GPUs that a program sees."""
    env = {"CUDA_VISIBLE_DEVICES": ",".join(gpus)}
    if machine.gpus:
        # CUDA counts as nvidia-smi does.
        env = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **env}
    return env


def _as_flags(values: Mapping[str, Any]) -> list[str]:
    return [word for name, value in values.items() for word in as_flag(name, value)]
