"""What a launch will do, before anything starts: which GPUs do what, with which commands, and what
was derived.

scripts/README.md has the rules (The plan).
"""

import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from swift_rlvr.evaluation.models import SWIFT_SETTINGS, folder_of
from swift_rlvr.launch import estimate
from swift_rlvr.launch.estimate import Estimate
from swift_rlvr.launch.machine import Machine
from swift_rlvr.launch.sizes import longest_completion
from swift_rlvr.runs.folder import whole_checkpoints
from swift_rlvr.training.ms_swift import RENDEZVOUS
from swift_rlvr.training.recipes import (
    CONFIGS,
    EXPERIMENTS,
    SUFFIXES,
    Recipe,
    as_flag,
    flags_of_variables,
    read_flags,
    read_recipe,
    uses_servers,
)
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.network import is_loopback
from swift_rlvr.utils.settings import Settings, as_list, number, setting

# What the server takes over from the training's settings, besides the engine's, which begin with
# vllm_.
_SHARED = (
    *("model", "model_type", "model_revision", "template", "use_hf", "torch_dtype"),
    *("multi_turn_scheduler", "max_turns", "gym_env", "use_gym_env"),
)
_TRAINERS_ONLY = ("vllm_mode", "vllm_client", "vllm_server_")
BATCH, ACCUMULATION = "per_device_train_batch_size", "gradient_accumulation_steps"
SYNC_PORT = "vllm_server_group_port"
_LENGTHS = {"max_length", "max_completion_length", "multi_turn_scheduler", "max_turns"}
_PATCHED = (sys.executable, "-m", "swift_rlvr.training.ms_swift")


@dataclass(frozen=True)
class Variables(Settings):
    """The launcher's own variables, which have these names in capitals."""

    variable_prefix = ""

    start_server: bool = setting(True, "0: use servers that run already.")
    server_timeout: int = setting(1800, "Seconds to wait for the servers.", at_least=1)
    resume: bool = setting(False, "1: go on from the last whole checkpoint.")
    restarts: int = setting(0, "How often a server that died is started again.", at_least=0)
    verbose: bool = setting(False, "1: show what the programs print.")
    dry_run: bool = setting(False, "1: stop after the plan.")
    train_gpus: tuple[str, ...] = setting((), "The trainers' GPUs, such as 0,1.")
    rollout_gpus: tuple[str, ...] = setting((), "The server's GPUs.")
    processes: int | None = setting(None, "Of the trainer, where there is no GPU.", at_least=1)
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
        named = [*self.train_gpus, *self.rollout_gpus]
        if len(set(named)) < len(named):
            raise InputError(f"and ROLLOUT_GPUS name a GPU twice: {', '.join(named)}", "train_gpus")


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
        return " ".join(
            [*(f"{name}={shlex.quote(value)}" for name, value in self.env.items()), *words]
        )


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
    notes: what could not be kept. inputs: what it was made from.
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
    inputs: "_Inputs | None" = None

    @property
    def master_port(self) -> int | None:
        """Where the trainer's ranks meet; None: on a free port, which is chosen when they start."""
        return int(self.trainer.env.get("MASTER_PORT", 0)) or None


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
    variables = Variables.from_environment({**recipe.env, **environ})
    inputs = _with_folder(_Inputs(recipe, tuple(flags), environ, variables, machine))
    _check(inputs)
    plan = _plan(inputs)
    limit = estimate.checkpoints_that_fit(plan)
    return plan if limit is None else _plan(inputs, *limit)


def as_lora(settings: Mapping[str, Any]) -> str:
    """Flags that train LoRA in place of all parameters; for its learning rate see EXPERIMENTS."""
    return f"--tuner_type lora --learning_rate {10 * number(settings, 'learning_rate', 1e-6):g}"


def that_fit(
    inputs: "_Inputs | None",
    options: Iterable[str],
    estimated: Callable[[Plan], Estimate] = estimate.memory,
) -> Iterator[str]:
    """Those of the options, each of further flags, with which a launch fits by an estimate."""
    assert inputs is not None
    for option in options:
        with suppress(InputError):
            result = estimated(_plan(inputs._replace(flags=(*inputs.flags, *option.split()))))
            if result.fits and not result.tight:
                yield option


def read_words(
    words: Sequence[str], machine: Machine, environ: Mapping[str, str] | None = None
) -> tuple[Recipe | None, list[str]]:
    """The recipe that a command's words name, None where they begin with a flag, and the flags.

    In place of the file an experiment's name stands for the recipe that fits the machine.
    `countdown my.yaml` is `my.yaml`, so that a script can say what it is for and its user another
    recipe.

    Raises:
        InputError: there is no such file, or it cannot be read.
    """
    first, *flags = words or [""]
    if first in EXPERIMENTS and not (flags and flags[0].endswith(SUFFIXES)):
        return _fitting(EXPERIMENTS[first][min(len(machine.gpus), 2)], flags, machine, environ)
    if first in EXPERIMENTS:
        first, *flags = flags
    return (
        (None, list(words)) if first.startswith("-") or not first else (read_recipe(first), flags)
    )


def _fitting(
    candidates: Sequence[str], flags: list[str], machine: Machine, environ: Mapping[str, str] | None
) -> tuple[Recipe, list[str]]:
    """The first of the candidates, recipes with flags, whose memory the GPUs have; where none fits,
    the last.
    """
    environ = {
        **(os.environ if environ is None else environ),
        "RESUME": "0",
    }  # each has a folder of its own
    if (environ.get("NNODES") or "1") != "1":
        candidates = candidates[:1]  # all nodes need the same settings, whatever their GPUs
    found, refused = list[tuple[Recipe, list[str]]](), ""
    for name, *changes in map(str.split, candidates):
        recipe, words = read_recipe(CONFIGS / f"{name}.yaml"), [*changes, *flags]
        if refused:
            recipe = recipe._replace(
                note=f"chosen by memory: {found[0][0].path} as it is would take {refused}"
            )
        with suppress(InputError):  # the launch itself will raise it
            memory = estimate.memory(make_plan(recipe, words, machine, environ))
            if memory.count is None:  # of a model that is not here yet
                like = ["--model", str(recipe.settings["model"])]
                memory = estimate.memory(make_plan(recipe, [*words, *like], machine, environ))
            found.append((recipe, words))
            if (
                memory.fits
                and not memory.tight
                and None not in (gpu.memory for gpu in machine.gpus)
            ):
                break
            refused = refused or memory.text
        if not found:  # not a recipe of ms-swift, or flags that none can have
            return recipe, words
    return found[-1]


def _plan(inputs: "_Inputs", limit: int | None = None, why: str = "") -> Plan:
    """limit: how many checkpoints are kept, where that follows the disk, and why."""
    recipe, machine, variables = inputs.recipe, inputs.machine, inputs.variables
    servers = _servers(inputs)
    train, served = _share_gpus(inputs, servers.needs_gpus)
    processes = len(train) or variables.processes or inputs.most_processes
    added = _added_settings(inputs, servers, processes) | (
        {"save_total_limit": limit} if limit else {}
    )
    settings = inputs.settings | added
    completions = inputs.at_once(processes) * _count(settings, ACCUMULATION)

    env = {
        name: value
        for name, value in recipe.env.items()
        if name not in (*inputs.environ, *RENDEZVOUS)
    }
    output, rank = Path(str(settings["output_dir"])), variables.node_rank
    argv = (
        *_PATCHED,
        "rlhf",
        str(recipe.path),
        *_as_flags(recipe.found),
        *inputs.words,
        *_as_flags(added),
    )
    log = output / (
        f"trainer-node{rank}.log" if rank else "trainer.log"
    )  # nodes may share the folder
    trainer = Process(
        "trainer", argv, env | _devices(train, machine) | _rendezvous(processes, variables), log
    )
    server, sampling = None, settings
    if servers.is_started:
        flagged = _server_flags(settings, servers, served)
        server_recipe = read_recipe(
            CONFIGS / ("rollout.yaml" if machine.gpus else "rollout_cpu.yaml")
        )
        sampling = settings | server_recipe.settings | flagged
        argv = (
            *_PATCHED,
            "rollout",
            str(server_recipe.path),
            *_as_flags(server_recipe.found | flagged),
        )
        server = Process("server", argv, env | _devices(served, machine), output / "server.log")
    return Plan(
        recipe=recipe.path,
        settings=settings,
        machine=machine,
        variables=variables,
        hosts=servers.hosts,
        ports=servers.ports,
        sync_ports=servers.sync_ports,
        train_gpus=tuple(train),
        server_gpus=tuple(served),
        processes=processes,
        completions=completions,
        server_settings=sampling,
        output=output,
        server=server,
        trainer=trainer,
        resume=added.get("resume_from_checkpoint"),
        notes=(
            *_notes(inputs, {*train, *served}, completions),
            *(
                [f"the last {limit} checkpoints are kept, {why}; --save_total_limit N overrides"]
                if limit
                else []
            ),
        ),
        inputs=inputs,
    )


def _with_folder(inputs: "_Inputs") -> "_Inputs":
    """With the folder in place of a model's name; it gets its weights now where it has none."""
    name = str(inputs.settings.get("model"))
    folder = folder_of(name)
    if folder == name:
        return inputs
    known = {each: value for each, value in SWIFT_SETTINGS.items() if each not in inputs.flagged}
    return inputs._replace(flags=(*inputs.flags, "--model", folder, *_as_flags(known)))


class _Inputs(NamedTuple):
    """What a plan is made from. variables: the launcher's own, as read from environ."""

    recipe: Recipe
    flags: tuple[str, ...]
    environ: Mapping[str, str]
    variables: Variables
    machine: Machine

    @property
    def words(self) -> list[str]:
        """The machine variables as flags, and the flags."""
        variables = flags_of_variables(
            self.environ, {**self.recipe.settings, **read_flags(self.flags)}
        )
        return [*variables, *self.flags]

    @property
    def flagged(self) -> dict[str, Any]:
        """The settings that flags and machine variables give."""
        return read_flags(self.words)

    @property
    def settings(self) -> dict[str, Any]:
        """The recipe's, overridden by the flags."""
        return self.recipe.settings | self.flagged

    @property
    def most_processes(self) -> int:
        """How many trainer processes the recipe has on each node."""
        return _count(self.recipe.env, "NPROC_PER_NODE")

    @property
    def wanted(self) -> int:
        """Completions a step, as the recipe has them."""
        processes = self.most_processes * _count(self.recipe.env, "NNODES")
        return (
            processes
            * _count(self.recipe.settings, BATCH)
            * _count(self.recipe.settings, ACCUMULATION)
        )

    def at_once(self, processes: int) -> int:
        """Completions in one forward pass of so many processes on each node."""
        return processes * self.variables.nnodes * _count(self.settings, BATCH)


_NUMBERS = {
    "learning_rate",
    "beta",
    "temperature",
    "top_p",
    "warmup_ratio",
    "epsilon",
    "weight_decay",
}


def _check(inputs: _Inputs) -> None:
    """InputError for what no launch can have."""
    recipe = inputs.recipe
    if "micro_batch_size" in recipe.settings:
        raise InputError(
            f"{recipe.path} has Megatron's settings: megatron rlhf --use_ray true --config {recipe.path}"
        )
    if not uses_servers(inputs.settings) and "vllm_server_host" in recipe.settings:
        raise InputError(
            f"needs a recipe without vllm_server_host, unlike {recipe.path}", "vllm_mode"
        )
    if not inputs.settings.get("output_dir"):
        raise InputError("is needed: the folder of the run", "output_dir")
    for name in _NUMBERS & inputs.settings.keys():
        number(inputs.settings, name, 0.0)  # ms-swift itself would need half a minute to say so


class _Servers(NamedTuple):
    """The rollout servers. is_started: by this launch. needs_gpus: one runs here, or will."""

    hosts: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    sync_ports: tuple[int, ...] = ()
    is_started: bool = False
    needs_gpus: bool = False


def _servers(inputs: _Inputs) -> _Servers:
    settings, variables = inputs.settings, inputs.variables
    if not uses_servers(settings):
        return _Servers()
    hosts = tuple(str(host) for host in as_list(settings.get("vllm_server_host")) if host)
    if not hosts:
        raise InputError("is needed with vllm_mode server, such as 127.0.0.1", "vllm_server_host")
    ports, sync_ports = (
        _ports(settings, "vllm_server_port", 8000),
        _ports(settings, SYNC_PORT, 51216),
    )
    for name, values in (("vllm_server_port", ports), (SYNC_PORT, sync_ports)):
        if len(values) not in (1, len(hosts)):
            raise InputError(
                f"must be one port for each of the {len(hosts)} hosts of vllm_server_host", name
            )
    if len(sync_ports) < len(hosts):  # as ms-swift counts
        sync_ports = tuple(sync_ports[0] + index for index in range(len(hosts)))
    # Only the first process of all nodes asks the server, and its node starts it.
    is_started = variables.start_server and variables.node_rank == 0 and len(hosts) == 1
    return _Servers(
        hosts,
        ports,
        sync_ports,
        is_started,
        is_started or (variables.node_rank == 0 and is_loopback(hosts[0])),
    )


def _share_gpus(inputs: _Inputs, needs_server: bool) -> tuple[list[str], list[str]]:
    """The trainers' GPUs and the server's, which are never the same."""
    settings, gpus = inputs.settings, [gpu.index for gpu in inputs.machine.gpus]
    train, served = list(inputs.variables.train_gpus), list(inputs.variables.rollout_gpus)
    for name, named in (("TRAIN_GPUS", train), ("ROLLOUT_GPUS", served)):
        if hidden := [gpu for gpu in named if gpu not in gpus]:
            raise InputError(
                f"names GPU {hidden[0]}, and visible are {', '.join(gpus) or 'none'}", name
            )
    if not gpus:
        return [], []
    if served and not needs_server:
        raise InputError(
            f"is set, and {inputs.recipe.path} needs no server on this machine", "ROLLOUT_GPUS"
        )
    tensor = _count(settings, "vllm_tensor_parallel_size")
    needed = (
        tensor * _count(settings, "vllm_data_parallel_size") if needs_server and not served else 0
    )
    free = [gpu for gpu in gpus if gpu not in {*train, *served}]
    if not train:  # the largest number with which completions a step can be kept
        counts = range(min(inputs.most_processes, len(free) - needed), 0, -1)
        count = next(
            (count for count in counts if inputs.wanted % inputs.at_once(count) == 0), len(counts)
        )
        train, free = free[:count], free[count:]
    if not train and served:
        raise InputError("leaves no GPU for training", "ROLLOUT_GPUS")
    if not train or len(free) < needed:
        raise InputError(_too_few(inputs, needed, train))
    if needed and "vllm_data_parallel_size" not in settings:
        needed = max(tensor, min(len(free), len(train)) // tensor * tensor)
    return train, free[-needed:] if needed else served


def _too_few(inputs: _Inputs, needed: int, train: Sequence[str]) -> str:
    """Who asks for how many GPUs, and flags or a variable with which they are enough, if there are
    any.
    """
    gpus, settings = inputs.machine.gpus, inputs.settings
    tensor, data = (_count(settings, f"vllm_{each}_parallel_size") for each in ("tensor", "data"))
    trainers = (
        f"TRAIN_GPUS is {','.join(train)}"
        if inputs.variables.train_gpus
        else "the training needs at least one"
    )
    asked = f"{tensor} (vllm_tensor_parallel_size)" + (
        f" x {data} (vllm_data_parallel_size)" if data > 1 else ""
    )
    left = len(gpus) - max(1, len(train))
    ways = [
        f"--vllm_tensor_parallel_size {each}"
        for each in (8, 4, 2, 1)
        if each < tensor and each * data <= left
    ]
    ways += [f"--vllm_data_parallel_size {left // tensor}"] if data > 1 and tensor <= left else []
    ways += [f"{way} {as_lora(settings)}" for way in ways]
    way = (
        "leave TRAIN_GPUS out"
        if len(train) > 1 and needed < len(gpus)
        else next(that_fit(inputs, ways), None)
    )
    text = f"{inputs.recipe.path} needs more than {len(gpus)} GPUs: the rollout server takes {asked}, and {trainers}"
    return f"{text}: {way or 'more GPUs, or a recipe without a server (vllm_mode: colocate)'}"


def _added_settings(inputs: _Inputs, servers: _Servers, processes: int) -> dict[str, Any]:
    """What a launch derives, or sets where neither recipe nor flags do."""
    settings, added = inputs.settings, dict[str, Any]()
    accumulation, at_once = _count(settings, ACCUMULATION), inputs.at_once(processes)
    group = _count(settings, "num_generations", 8)
    if at_once * accumulation != inputs.wanted and ACCUMULATION not in inputs.flagged:
        accumulation = max(1, round(inputs.wanted / at_once))
        while at_once * accumulation % group:
            accumulation += 1
        added[ACCUMULATION] = accumulation
    if inputs.variables.resume:
        output = settings["output_dir"]
        existing = whole_checkpoints(output)
        if not existing:
            raise InputError(f"there is no whole checkpoint in {output} to go on from", "RESUME")
        added["resume_from_checkpoint"] = existing[-1]
    if "ddp_timeout" not in settings:
        # Seconds; ms-swift's own limit is 200 days, and a hung rank would hang all. They wait while
        # the server starts.
        added["ddp_timeout"] = max(1800, inputs.variables.server_timeout)
    if settings.get("add_version") is not False:
        added["add_version"] = False
    if servers.hosts and "vllm_server_timeout" not in settings:
        added["vllm_server_timeout"] = inputs.variables.server_timeout
    if (
        servers.is_started
        and "vllm_max_model_len" not in settings
        and _LENGTHS & inputs.flagged.keys()
    ):
        # The server's recipe fits the training's.
        added["vllm_max_model_len"] = number(settings, "max_length", 512) + longest_completion(
            settings
        )
    return added


def _notes(inputs: _Inputs, used: set[str], completions: int) -> Iterator[str]:
    if inputs.recipe.note:
        yield inputs.recipe.note
    if unused := [gpu.index for gpu in inputs.machine.gpus if gpu.index not in used]:
        yield f"GPU {', '.join(unused)} not used: {inputs.recipe.path} is for {inputs.most_processes} trainer processes"
    if completions != inputs.wanted:
        why = "as the flags say" if ACCUMULATION in inputs.flagged else "which cannot be kept"
        yield f"{completions} completions a step; the recipe has {inputs.wanted}, {why}"


def _rendezvous(processes: int, variables: Variables) -> dict[str, str]:
    """Where the ranks meet. `swift_rlvr.training.ms_swift` chooses a free port where none is
    named.
    """
    env = {"NPROC_PER_NODE": str(processes)}
    if variables.nnodes > 1:
        env |= {"NNODES": str(variables.nnodes), "NODE_RANK": str(variables.node_rank)}
        env |= {"MASTER_ADDR": str(variables.master_addr), "MASTER_PORT": "29500"}
        # torchrun's --rdzv_conf: node 0 is there when its server is ready, and a launch may be 300
        # s behind another.
        env |= {"PET_RDZV_CONF": f"timeout={variables.server_timeout + 300}"}
    return env | ({"MASTER_PORT": str(variables.master_port)} if variables.master_port else {})


def _server_flags(
    settings: Mapping[str, Any], servers: _Servers, gpus: Sequence[str]
) -> dict[str, Any]:
    """What a rollout server gets besides its recipe: a worker for each GPU, or for GPUs that share
    a model.
    """
    shared = {
        name: value
        for name, value in settings.items()
        if name in _SHARED or (name.startswith("vllm_") and not name.startswith(_TRAINERS_ONLY))
    }
    shared |= {"host": servers.hosts[0], "port": servers.ports[0]}
    if settings.get("multi_turn_scheduler") or settings.get("gym_env"):
        shared["external_plugins"] = settings.get("external_plugins")
    name, tensor = "vllm_data_parallel_size", _count(settings, "vllm_tensor_parallel_size")
    workers = _count(settings, name, max(1, len(gpus) // tensor))
    if gpus and workers * tensor != len(gpus):
        problem = f"{workers} x {tensor} (vllm_tensor_parallel_size) must be the number of the server's GPUs"
        raise InputError(f"{problem}, which is {len(gpus)}", name)
    return shared | ({name: workers} if workers > 1 else {})


def _devices(gpus: Sequence[str], machine: Machine) -> dict[str, str]:
    """PCI_BUS_ID: so that CUDA counts as nvidia-smi does."""
    order = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} if machine.gpus else {}
    return order | {"CUDA_VISIBLE_DEVICES": ",".join(gpus)}


def _as_flags(settings: Mapping[str, Any]) -> list[str]:
    return [word for name, value in settings.items() for word in as_flag(name, value)]


def _count(settings: Mapping[str, Any], name: str, default: int = 1) -> int:
    return number(settings, name, default, at_least=1)


def _ports(settings: Mapping[str, Any], name: str, default: int) -> tuple[int, ...]:
    return tuple(
        _count({name: port}, name, default) for port in as_list(settings.get(name, default))
    )
