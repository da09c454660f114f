"""Checks of what a launch shares with others on its machine: the GPUs' memory, the host's, /dev/shm and
the cores.
"""

import math
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from swift_rlvr.launch import estimate
from swift_rlvr.launch.checks import CheckResult, Launch, failed, judged, passed, warning
from swift_rlvr.launch.estimate import GIB, MIB, TIGHT
from swift_rlvr.launch.machine import Gpu
from swift_rlvr.launch.plan import TENSOR, Plan
from swift_rlvr.utils.jsonl import read_json
from swift_rlvr.utils.settings import number

# MiB on a GPU that others use: above this it is not only a desktop or the driver.
BUSY = 1024
# MiB of /dev/shm that Docker gives a container.
DOCKERS_SHARED_MEMORY = 64
# Bytes a parameter of a CPU Adam under DeepSpeed: weights, momentum, variance and gradient in 32 bits
# (`estimate_zero3_model_states_mem_needs` of deepspeed/runtime/zero/stage3.py).
OFFLOADED_OPTIMIZER = 16


# GPUs.


def busy_gpus(launch: Launch) -> Iterator[CheckResult]:
    """Whether what other programs leave on the GPUs of the plan is enough for vLLM and for
    training.
    """
    plan = launch.plan
    share = number(plan.server_settings, "vllm_gpu_memory_utilization", 0.9)
    training = (estimate.memory(plan).count or 0) / MIB
    for index in (*plan.train_gpus, *plan.server_gpus):
        gpu = plan.machine.gpu(index)
        if not gpu.memory or gpu.used is None:
            yield passed("GPUs", f"GPU {index}: the driver does not say how much memory is free")
            continue
        has_vllm = index in plan.server_gpus or _is_colocated(plan)
        if has_vllm and share * gpu.memory > gpu.memory - gpu.used:
            yield _no_room_for_vllm(gpu, share)
        else:
            yield _room_for_training(gpu, training if index in plan.train_gpus else None)


def _no_room_for_vllm(gpu: Gpu, share: float) -> CheckResult:
    """vLLM compares its share with what is free when it starts, and ends."""
    memory, used = gpu.memory or 0, gpu.used or 0
    wanted = f"vLLM wants {share * memory:,.0f} (vllm_gpu_memory_utilization {share:g})"
    fitting = max(0, math.floor(100 * (memory - used) / memory) - 1) / 100
    remedy = f"{_without_others(gpu)}, or --vllm_gpu_memory_utilization {fitting:g}"
    return failed("GPUs", f"{_others(gpu)}, and {wanted}", remedy)


def _room_for_training(gpu: Gpu, needed: float | None) -> CheckResult:
    """needed: MiB, roughly; 0 where it is not known, None on a GPU of the server."""
    memory, used = gpu.memory or 0, gpu.used or 0
    if needed is None:
        fits = True
    elif needed and (used > BUSY or needed <= TIGHT * memory):
        fits = needed <= TIGHT * (memory - used)
    else:
        # Not known, or too much without others too, which the estimate says.
        fits = used <= BUSY
    if not fits:
        left = f"{(memory - used) / 1024:.1f} GiB are left"
        if needed:
            left += f", and training needs about {needed / 1024:.1f}"
        return warning("GPUs", f"{_others(gpu)}: {left}", _without_others(gpu))
    if used > BUSY:
        return passed("GPUs", _others(gpu))
    return passed("GPUs", f"GPU {gpu.index} is free")


def _others(gpu: Gpu) -> str:
    return f"GPU {gpu.index}: other programs use {gpu.used:,} of {gpu.memory:,} MiB"


def _without_others(gpu: Gpu) -> str:
    leave_out = f"leave out GPU {gpu.index} with CUDA_VISIBLE_DEVICES"
    return f"stop them (`nvidia-smi` lists them), or {leave_out}"


def _is_colocated(plan: Plan) -> bool:
    """Whether vLLM is in the trainer's processes."""
    return bool(plan.settings.get("use_vllm")) and not plan.hosts


memory = judged(
    "memory",
    estimate.memory,
    "use smaller batches, LoRA (--tuner_type lora), more GPUs, or a smaller model; "
    "docs/recipes/index.md lists the recipes by GPU",
    report=warning,
)


# The host.


def host_memory(launch: Launch) -> Iterator[CheckResult]:
    """What offloading puts into the host's memory, against what is free there; a container may have
    less than its machine.
    """
    plan = launch.plan
    model = estimate.model_size(str(plan.settings.get("model")))
    if not plan.machine.gpus or plan.machine.available is None or model is None:
        return
    parts = _offloaded(plan, model)
    needed = plan.processes * sum(parts.values())
    if not needed:
        return
    shares = [f"{plan.processes * size / GIB:.1f} {name}" for name, size in parts.items() if size]
    available = plan.machine.available * MIB
    text = f"about {needed / GIB:.1f} of {available / GIB:.1f} GiB free: {', '.join(shares)}"
    if needed <= TIGHT * available:
        yield passed("host memory", text)
        return
    remedy = "request more memory (SLURM's --mem, a container's --memory), or offload less"
    if "vLLM's weights" in parts:
        remedy += "; with --sleep_level 2 vLLM keeps no copy"
    yield warning("host memory", text, remedy)


def _offloaded(plan: Plan, model: estimate.ModelSize) -> dict[str, float]:
    """Bytes of the host's memory for each trainer process, by what they hold.

    Moved by ms-swift while vLLM samples: weights (offload_model) and the optimizer's state
    (offload_optimizer), of which DeepSpeed's weights in 32 bits stay. Moved by vLLM while the
    trainer computes: its weights (sleep_level 1). Each keeps its buffers for the next time. Always
    there: what DeepSpeed offloads.
    """
    settings = plan.settings
    processes = plan.processes * plan.variables.nnodes
    on_gpu = estimate.training_memory(model, settings, processes)
    stage, is_offloaded = estimate.zero_stage(settings)
    size = 4 if settings.get("torch_dtype") in ("float32", "float") else 2
    parts: dict[str, float] = {}
    if _is_colocated(plan):
        if number(settings, "sleep_level", 0) == 1:
            parts["vLLM's weights"] = size * model.parameters / number(settings, TENSOR, 1)
        if settings.get("offload_model") is True:
            parts["weights"] = on_gpu["weights"]
        if settings.get("offload_optimizer") is True:
            # Of 12 bytes 4 are the weights.
            share = 2 / 3 if stage is not None else 1
            parts["optimizer"] = share * on_gpu["optimizer"]
    if is_offloaded:
        # On the GPU the gradients are in 16 bits.
        trained = on_gpu["gradients"] / 2
        if stage not in (2, 3):  # which divide them
            trained /= processes
        parts["DeepSpeed's optimizer"] = OFFLOADED_OPTIMIZER * trained
        if _offloads_weights(settings):
            parts["DeepSpeed's weights"] = size * model.parameters / processes
    return parts


def _offloads_weights(settings: Mapping[str, Any]) -> bool:
    """Whether DeepSpeed keeps the weights in the host's memory."""
    value = settings["deepspeed"]
    if isinstance(value, str):
        if value in ("zero2_offload", "zero3_offload"):
            return value == "zero3_offload"
        value = read_json(value)
    zero = value.get("zero_optimization") or {}
    return (zero.get("offload_param") or {}).get("device", "none") != "none"


def shared_memory(launch: Launch) -> Iterator[CheckResult]:
    """NCCL and vLLM's workers pass data through /dev/shm; a container has 64 MiB of it by default.

    NCCL takes 9.2 MiB a channel and direction between two GPUs without direct access to each other,
    such as GeForce cards; so do trainer and server with a GPU each, for the weights. vLLM's workers
    have queues there where they share a model.
    """
    plan, folder = launch.plan, Path("/dev/shm")
    if len(plan.train_gpus) + len(plan.server_gpus) < 2:
        return
    free = shutil.disk_usage(folder).free if folder.is_dir() else 0
    text = f"{free / MIB:,.0f} MiB free in {folder}"
    remedy = "start the container with --shm-size 16g or --ipc host"
    in_groups = max(len(plan.train_gpus), len(plan.server_gpus)) > 1
    if free >= GIB:
        yield passed("shared memory", text)
    elif in_groups:
        report = failed if free <= DOCKERS_SHARED_MEMORY * MIB else warning
        yield report("shared memory", f"{text}: NCCL needs more", remedy)
    elif free <= DOCKERS_SHARED_MEMORY * MIB:
        message = f"{text}: GPUs without direct access to each other need about 40 for the weights"
        yield warning("shared memory", message, remedy)
    else:
        yield passed("shared memory", text)


def cores(launch: Launch) -> Iterator[CheckResult]:
    """Whether each process that computes has a core: ranks, their data loaders, the server's
    processes. Where they share one, the GPUs wait.
    """
    plan = launch.plan
    if not plan.machine.gpus:
        return
    loaders = number(plan.settings, "dataloader_num_workers", 1)  # ms-swift's default
    needed = plan.processes * (1 + loaders)
    ranks = "1 trainer process" if plan.processes == 1 else f"{plan.processes} trainer processes"
    text = f"{ranks} with {loaders} data loader{'s' * (loaders != 1)} each"
    if plan.server is not None:
        # One that answers requests, and an engine for each GPU.
        server = 1 + len(plan.server_gpus)
        needed += server
        text += f", {server} processes of the server"
    message = f"{plan.machine.cores} for {needed}: {text}"
    if plan.machine.cores >= needed:
        yield passed("cores", message)
        return
    remedy = "give this process more cores (`taskset -p $$`, a container's --cpus), or set --dataloader_num_workers 0"
    if launch.environ.get("SLURM_JOB_ID"):
        remedy = (
            f"#SBATCH --cpus-per-task={needed} or more, and before srun, which does not take it over since "
            "SLURM 22.05: export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK"
        )
    yield warning("cores", message, remedy)


CHECKS = (busy_gpus, memory, host_memory, shared_memory, cores)
