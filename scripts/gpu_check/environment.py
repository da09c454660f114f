"""What this machine is, what was installed, and whether the installed packages fit together."""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from gpu_check.programs import GIB, Command, run
from gpu_check.steps import Check, Measured, Step, python_path
from swift_rlvr.launch.machine import output_of
from swift_rlvr.utils.files import CHECKOUT
from swift_rlvr.utils.jsonl import parse_object

# Set by gpu_check.sh: the seconds that the installation took, 0 where it was there already, and the
# lock.
INSTALL_SECONDS, LOCK = "GPU_CHECK_INSTALL_SECONDS", "GPU_CHECK_LOCK"


# What the machine is.


def machine_commands(check: Check) -> list[Command]:
    lines = ["nvcc --version", "ldd --version"]
    if check.gpus:
        lines = ["nvidia-smi", "nvidia-smi topo -m", *lines]
    return [Command(tuple(line.split())) for line in lines]


def measure_machine(check: Check, commands: Sequence[Command]) -> Measured:
    folder = check.folder / "machine"
    folder.mkdir(parents=True, exist_ok=True)
    printed = []
    for command in commands:
        printed.append(f"$ {command}\n{output_of(os.environ, *command.argv)}")
    (folder / "log").write_text("\n".join(printed))

    machine = check.machine
    gpus = [f"{gpu.name}, {gpu.memory} MiB, capability {gpu.capability}" for gpu in machine.gpus]
    shared = shutil.disk_usage("/dev/shm")
    facts = {
        "gpus": gpus,
        "driver": machine.driver,
        "nvcc": nvcc_version(),
        "glibc": platform.libc_ver()[1],
        "python": platform.python_version(),
        "cores": machine.cores,
        "memory_gib": machine.memory // 1024,
        "shm_gib": round(shared.total / GIB, 2),
        "disk_free_gib": round(shutil.disk_usage(check.folder).free / GIB),
    }
    text = ", ".join(f"{name} {value}" for name, value in facts.items() if name != "gpus")
    return Measured(True, f"{'; '.join(gpus) or 'no GPU'}; {text}", facts)


def nvcc_version() -> str | None:
    """The version of the nvcc on the PATH, such as 13.0."""
    match = re.search(r"release ([\d.]+)", output_of(os.environ, "nvcc", "--version"))
    return match[1] if match else None


# What was installed.


def install_commands(check: Check) -> list[Command]:
    return [Command(("bash", "scripts/install.sh"))]


def measure_installation(check: Check, commands: Sequence[Command]) -> Measured:
    """The script that starts the check has installed; this is what it took and whether the lock is
    what is there.
    """
    seconds = float(os.environ.get(INSTALL_SECONDS) or 0)
    lock = os.environ.get(LOCK) or ("gpu" if check.gpus else "cpu")
    pinned = Path(CHECKOUT, "scripts", "requirements", f"{lock}.lock").read_text()
    others = []
    for name, wanted in re.findall(r"^([\w.-]+)==(\S+)", pinned, re.MULTILINE):
        installed = None
        with suppress(PackageNotFoundError):
            installed = version(name)
        if installed != wanted:
            others.append(f"{name} {installed}, not {wanted}")
    size = subprocess.run(["du", "-sk", sys.prefix], capture_output=True, text=True, check=False)
    gib = int(size.stdout.split()[0]) / 2**20 if size.stdout else 0.0
    took = f"installed in {seconds:.0f} s" if seconds else "was installed before"
    text = f"{lock}.lock {took}, {gib:.1f} GiB; "
    text += f"differs: {'; '.join(others[:5])}" if others else "every package is the locked one"
    figures = {"seconds": seconds, "gib": round(gib, 2), "lock": lock, "differs": others}
    return Measured(not others, text, figures)


# Whether torch computes, and whether the patches fit.


def own_program(name: str) -> list[str]:
    """A program of this folder."""
    return [sys.executable, "-m", f"gpu_check.{name}"]


def program_commands(name: str):
    def commands(check: Check) -> list[Command]:
        argv = (*own_program(name), *check.gpus)
        env = {"PYTHONPATH": python_path(Path(CHECKOUT, "scripts"))}
        return [Command(argv, env, check.folder / name)]

    return commands


def measure_program(check: Check, commands: Sequence[Command]) -> Measured:
    """The program's last line is JSON: passed, text and figures."""
    (command,) = commands
    program = run(command, command.folder / "log", check.until)
    found = parse_object(program.text().rstrip().splitlines()[-1])
    return Measured(found.pop("passed"), found.pop("text"), found)


STEPS = (
    Step(
        name="machine",
        claim="what this machine has",
        expected="facts, for the other rows",
        minutes=1,
        commands=machine_commands,
        run=measure_machine,
    ),
    Step(
        name="install",
        claim="scripts/install.sh installs the lock of this machine, in one to three minutes",
        expected="every package has the version of the lock",
        minutes=1,
        commands=install_commands,
        run=measure_installation,
    ),
    Step(
        name="torch",
        claim="the locked torch computes on each GPU, in bfloat16",
        expected="a product of two matrices differs from the exact one by less than 1%",
        minutes=3,
        commands=program_commands("matmul"),
        run=measure_program,
    ),
    Step(
        name="patches",
        claim="all that the two patch tables replace is in the installed packages",
        expected="every target resolves",
        minutes=3,
        commands=program_commands("resolve_patches"),
        run=measure_program,
    ),
)
