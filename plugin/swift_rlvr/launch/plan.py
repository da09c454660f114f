"""What a launch will do, before anything starts: which GPUs do what, with which commands, and what
was derived.

`make_plan` reads from top to bottom: settings, servers, GPUs, batches, commands.
docs/launch/index.md explains what a plan says.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from swift_rlvr.evaluation.models import SWIFT_SETTINGS, folder_of
from swift_rlvr.launch.additions import additions
from swift_rlvr.launch.commands import Process, as_flags, devices, server_process, trainer_process
from swift_rlvr.launch.gpus import Sharing
from swift_rlvr.launch.machine import Machine
from swift_rlvr.launch.servers import Server, rollout_servers
from swift_rlvr.launch.settings import ACCUMULATION, BATCH, GrpoSettings, refuse_bare_flags
from swift_rlvr.launch.variables import Variables
from swift_rlvr.runs.folder import checkpoints, whole_checkpoints
from swift_rlvr.training.ms_swift import RENDEZVOUS
from swift_rlvr.training.recipes import (
    Recipe,
    as_flag,
    flags_of_variables,
    read_flags,
    uses_servers,
)
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.network import is_loopback

# vLLM's context is that of the recipes' lengths; a flag for one of these asks for another.
_LENGTHS = ("max_length", "max_completion_length", "multi_turn_scheduler", "max_turns")


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
    def vllm_gpus(self) -> tuple[str, ...]:
        """Those on which vLLM samples: the server's, or the trainers' that have vLLM themselves."""
        return self.train_gpus if self.grpo.is_colocated else self.server_gpus

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
    refuse_bare_flags(words)
    overrides = read_flags(words)
    values = recipe.settings | overrides
    _refuse_what_no_launch_has(recipe, values)
    settings = GrpoSettings.read(values)

    servers = rollout_servers(values)
    # Only the first process of all nodes asks the servers, so that they are node 0's.
    of_this_node = servers if variables.node_rank == 0 else ()
    starts_server = variables.start_server and len(of_this_node) == 1
    # One that runs already has GPUs of this machine where its address is a loopback address.
    has_server = starts_server or any(is_loopback(server.host) for server in of_this_node[:1])

    sharing = Sharing(recipe, settings, variables, machine, has_server)
    train_gpus, server_gpus = sharing.share()
    processes = sharing.processes(train_gpus)
    all_processes = processes * variables.nnodes

    checkpoint = _checkpoint_to_resume(values, variables)
    has_engine = starts_server or settings.is_colocated
    derived, added = _derived(sharing, overrides, all_processes, checkpoint, has_engine)
    values = values | derived
    settings = GrpoSettings.read(values)
    completions = settings.completions(all_processes)
    at_once = settings.sampled_at_once(all_processes)
    # ms-swift refuses it as well, after the rollout server has started.
    if at_once % settings.num_generations:
        raise InputError(
            f"must divide the {at_once} completions that are sampled at once (processes x {BATCH} x "
            f"{ACCUMULATION}), got {settings.num_generations}",
            "num_generations",
        )

    # The recipe's variables that are not set already, without where ranks meet, which follows.
    is_set = {*environ, *RENDEZVOUS}
    env = {name: value for name, value in recipe.env.items() if name not in is_set}
    output = Path(str(values["output_dir"]))
    # Of a flag that stands there twice the last counts: flags win over the recipe, and what follows from
    # the machine, which no flag sets, over the recipe too.
    argv = (*recipe_words, *words, *as_flags(derived))
    trainer_env = env | devices(train_gpus, machine)
    server, server_values = None, values
    if starts_server:
        server_env = env | devices(server_gpus, machine)
        server, server_values = server_process(
            settings, servers[0], server_gpus, server_env, output
        )
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
        trainer=trainer_process(argv, trainer_env, processes, variables, checkpoint, output),
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
    recipe_words = [str(recipe.path), *as_flags(recipe.found)]
    if overrides.get("use_vllm") is False:
        # ms-swift refuses `vllm_mode` then, and connects to a `vllm_server_host` all the same. No flag
        # takes a setting of a file away, so that flags stand in its place.
        others = recipe.settings.items()
        kept = {name: value for name, value in others if not name.startswith("vllm_")}
        recipe = recipe._replace(settings=kept)
        recipe_words = as_flags(kept)
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
        # ms-swift keeps all of them, of 42 GB each for a model of 3B. With 0 so does a launch.
        derived["save_total_limit"] = 3
    if settings.uses_servers and "vllm_server_timeout" not in values:
        derived["vllm_server_timeout"] = variables.server_timeout
    lacking, added = additions(values)
    derived |= lacking

    # The context that vLLM needs is the sum of prompt and completion, where a flag changes these. A recipe
    # whose context is not the sum of its own lengths keeps it.
    context = "vllm_max_model_len"
    changes_lengths = any(length in overrides for length in _LENGTHS)
    if has_engine and changes_lengths and context not in overrides:
        recipe = sharing.recipe.settings
        if recipe.get(context) in (None, GrpoSettings.read(recipe).longest_row):
            derived[context] = settings.longest_row
    return derived, added
