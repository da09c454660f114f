"""The programs of a launch, as they are started."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swift_rlvr.launch.machine import Machine
from swift_rlvr.launch.servers import Server
from swift_rlvr.launch.settings import DATA, TENSOR, GrpoSettings
from swift_rlvr.launch.variables import Variables
from swift_rlvr.training.recipes import CONFIGS, as_flag, read_recipe
from swift_rlvr.utils.errors import InputError

# What the server takes over from the training's settings, besides the engine's, which begin with
# vllm_; and those that begin so and are the trainer's all the same.
_SERVER_TAKES = (
    *("model", "model_type", "model_revision", "template", "use_hf", "torch_dtype"),
    *("multi_turn_scheduler", "max_turns", "gym_env", "use_gym_env"),
)
_TRAINERS_ONLY = ("vllm_mode", "vllm_client", "vllm_server_")
# The server's recipes, with GPUs and without.
_SERVER_ON_GPUS, _SERVER_ON_CPU = CONFIGS / "rollout.yaml", CONFIGS / "rollout_cpu.yaml"
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


def is_of_engine(setting: str) -> bool:
    """Whether a setting is vLLM's, and so the server's where there is one."""
    return setting.startswith("vllm_") and not setting.startswith(_TRAINERS_ONLY)


def server_process(
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
        if is_of_engine(name) or name in _SERVER_TAKES:
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
    argv = (*_PATCHED_SWIFT, "rollout", str(recipe.path), *as_flags(recipe.found | flags))
    process = Process("server", argv, dict(env), output / "server.log")
    return process, {**values, **recipe.settings, **flags}


def trainer_process(
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


def devices(gpus: Sequence[str], machine: Machine) -> dict[str, str]:
    """The GPUs that a program sees."""
    env = {"CUDA_VISIBLE_DEVICES": ",".join(gpus)}
    if machine.gpus:
        # CUDA counts as nvidia-smi does.
        env = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", **env}
    return env


def as_flags(values: Mapping[str, Any]) -> list[str]:
    """Settings as they are written on a command line."""
    return [word for name, value in values.items() for word in as_flag(name, value)]
