"""What tests of several folders share: running the shell scripts, plans of launches, the flags of a
command, records, and a limit for hangs.
"""

import io
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

import nvml
from paths import ROOT
from present import present
from swift_rlvr.launch.choose import read_words
from swift_rlvr.launch.machine import Machine, this_machine
from swift_rlvr.launch.plan import Plan, make_plan
from swift_rlvr.runs.records import Record, append_records


def run(name: str, *arguments: str, gpus: int = 0, folder: Path | None = None, **settings: str):
    """Run a script of `scripts/` in `folder`, in the environment of the tests, with no other
    variables but `settings`.

    gpus > 0 puts stand-ins that list so many first on the PATH and the PYTHONPATH, for nvidia-smi
    and for the driver's library; `folder` must then be given.
    """
    environment = bare_environment() | settings
    if gpus:
        assert folder is not None
        write_nvidia_smi(folder, gpus)
        nvml.write(folder, [nvml.h100(index) for index in range(gpus)])
        environment["PATH"] = f"{folder}:{environment['PATH']}"
        others = environment.get("PYTHONPATH", "")
        environment["PYTHONPATH"] = f"{folder}:{others}".rstrip(":")
    else:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    command = ["bash", str(ROOT / "scripts" / name), *arguments]
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=1800
    )


def bare_environment() -> dict[str, str]:
    """PATH, with the environment of the tests first, HOME and PYTHONPATH; the scripts install
    nothing.
    """
    kept = {name: os.environ[name] for name in ("HOME", "PYTHONPATH") if name in os.environ}
    return kept | {"INSTALL": "0", "PATH": f"{sys.prefix}/bin:{os.environ['PATH']}"}


def write_nvidia_smi(folder: Path, gpus: int) -> None:
    """A stand-in for nvidia-smi that has so many GPUs, for scripts/common.sh."""
    path = folder / "nvidia-smi"
    path.write_text(NVIDIA_SMI.format(indices=" ".join(map(str, range(gpus)))))
    path.chmod(0o755)


# It answers as nvidia-smi does what scripts/common.sh asks: --query-gpu=index and =driver_version.
NVIDIA_SMI = """#!/bin/sh
[ -n "{indices}" ] || exec echo "No devices were found"
for index in {indices}; do
  case "$*" in
    *query-gpu=driver_version*) echo 580.65.06 ;;
    *query-gpu=index*) echo "$index" ;;
  esac
done
"""


def toolkit(folder: Path, release: str = "13.0", header: str = "include/curand_kernel.h") -> Path:
    """A folder as CUDA's packages lay one out, with an nvcc that is of this release."""
    path = folder / "bin" / "nvcc"
    path.parent.mkdir(parents=True)
    line = f"Cuda compilation tools, release {release}, V{release}.1"
    path.write_text(f"#!/bin/sh\necho '{line}'\n")
    path.chmod(0o755)
    if header:
        (folder / header).parent.mkdir(parents=True)
        (folder / header).touch()
    return folder


def ninja(folder: Path) -> Path:
    """A program that stands for ninja, in this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "ninja"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def flags(command: str) -> dict[str, str]:
    """`... --name value value ...` -> {name: "value value"}; of a flag given twice, the last."""
    values: dict[str, list[str]] = {}
    for word in shlex.split(command):
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            values[name] = current = [value] if equals else []
        elif values:
            current.append(word)
    return {name: " ".join(words) for name, words in values.items()}


def planned(
    *words: object, machine: Machine | None = None, environ: dict[str, str] | None = None
) -> Plan:
    """The plan of `swift-rlvr train WORDS`, by default on this machine and with its variables."""
    machine = machine or this_machine()
    recipe, flags = read_words(list(map(str, words)), machine, environ)
    return make_plan(present(recipe), flags, machine, environ)


def graded(index, success=True, reason="correct", row=None, format=True, **values):
    """A record of a Countdown completion that is right, wrong or, with None, could not be
    graded.
    """
    strict = None if success is None else bool(success and format)
    values = {"tokens": 10, "finish": "stop", **values}
    reward = None if success is None else float(success)
    rewards, reasons = {"external_countdown": reward}, {"external_countdown": reason}
    return Record(
        index=index,
        completion="",
        rewards=rewards,
        reasons=reasons,
        row=row or {},
        success=success,
        strict=strict,
        format=format,
        **values,
    )


def printed(console: Console) -> str:
    """What was printed to a console on a StringIO."""
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def write_records(path: Path, records: Iterable[Record]) -> None:
    """A file with these records alone."""
    path.unlink(missing_ok=True)
    append_records(path, list(records))


@contextmanager
def done_within(seconds: float) -> Iterator[None]:
    """Fail where the block takes more seconds of the clock.

    It tells a hang, or a time that grows with the square of the text, from ordinary work, also on a
    machine that does other things as well: give thirty times what an idle one takes, or more. How
    fast something is belongs to benchmarks/.
    """
    start = time.monotonic()
    yield
    taken = time.monotonic() - start
    assert taken < seconds, f"took {taken:.1f} s, and {seconds} s would be far more than it needs"
