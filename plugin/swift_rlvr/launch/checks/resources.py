"""Checks of what a launch shares with others on its machine: the GPUs' memory, /dev/shm and the cores."""

import math
import shutil
from collections.abc import Iterator
from pathlib import Path

from swift_rlvr.launch import estimate
from swift_rlvr.launch.checks import CheckResult, Launch, failed, judged, passed, warning
from swift_rlvr.launch.memory import GIB, MIB, TIGHT

# MiB on a GPU that others use: above this it is not only a desktop or the driver.
BUSY = 1024
# MiB of /dev/shm that Docker gives a container.
DOCKERS_SHARED_MEMORY = 64


def busy_gpus(launch: Launch) -> Iterator[CheckResult]:
    """Whether what other programs leave on the GPUs of the plan is enough for vLLM and for
    training.
    """
    plan = launch.plan
    needed = (estimate.memory(plan).count or 0) / MIB  # roughly; 0 where it is not known
    for index in (*plan.train_gpus, *plan.server_gpus):
        gpu = plan.machine.gpu(index)
        if not gpu.memory or gpu.used is None:
            message = f"GPU {index}: not checked: the driver does not say how much memory is free"
            yield warning("GPUs", message, "free memory is needed; `nvidia-smi` lists who uses it")
            continue
        left = gpu.memory - gpu.used
        others = f"GPU {index}: other programs use {gpu.used:,} of {gpu.memory:,} MiB"
        remedy = (
            "stop them (`nvidia-smi` lists them), or leave out "
            f"GPU {index} with CUDA_VISIBLE_DEVICES"
        )
        # vLLM compares its share with what is free when it starts, and ends.
        share = plan.engine.vllm_gpu_memory_utilization if index in plan.vllm_gpus else 0.0
        if share * gpu.memory > left:
            wanted = f"vLLM wants {share * gpu.memory:,.0f} (vllm_gpu_memory_utilization {share:g})"
            fitting = max(0, math.floor(100 * left / gpu.memory) - 1) / 100
            remedy += f", or --vllm_gpu_memory_utilization {fitting:g}"
            yield failed("GPUs", f"{others}, and {wanted}", remedy)
        elif gpu.used > BUSY and index in plan.train_gpus and not 0 < needed <= TIGHT * left:
            text = f"{left / 1024:.1f} GiB are left"
            if needed:
                text += f", and training needs about {needed / 1024:.1f}"
            yield warning("GPUs", f"{others}: {text}", remedy)
        elif gpu.used > BUSY:
            yield passed("GPUs", others)
        else:
            yield passed("GPUs", f"GPU {index} is free")


memory = judged(
    "memory",
    estimate.memory,
    remedy="use smaller batches, LoRA (--tuner_type lora), more GPUs, or a smaller model; "
    "docs/recipes/index.md lists the recipes by GPU",
    to_know="run the doctor where the model is, and see what nvidia-smi shows in the first steps",
    report=warning,
)


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
    dockers = DOCKERS_SHARED_MEMORY * MIB
    in_groups = max(len(plan.train_gpus), len(plan.server_gpus)) > 1
    if free > (GIB if in_groups else dockers):
        yield passed("shared memory", text)
        return
    report = failed if in_groups and free <= dockers else warning
    needs = "NCCL needs more"
    if not in_groups:
        needs = "GPUs without direct access to each other need about 40 for the weights"
    remedy = "start the container with --shm-size 16g or --ipc host"
    yield report("shared memory", f"{text}: {needs}", remedy)


def cores(launch: Launch) -> Iterator[CheckResult]:
    """Whether each process that computes has a core: ranks, their data loaders, the server's
    processes. Where they share one, the GPUs wait.
    """
    plan = launch.plan
    if not plan.machine.gpus:
        return
    loaders = plan.grpo.dataloader_num_workers
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


CHECKS = (busy_gpus, memory, shared_memory, cores)
