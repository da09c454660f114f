"""What the machine has: its GPUs, as far as CUDA_VISIBLE_DEVICES lets this process see them, cores
and memory.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.parallel import usable_cores

# What nvidia-smi is asked of each GPU. A driver that does not know compute_cap (before 510) refuses
# the whole question, and is asked again without it.
_QUERY = ("index", "uuid", "name", "memory.total", "memory.used", "driver_version", "compute_cap")
# A MIG instance in `nvidia-smi -L`:
#   MIG 3g.40gb     Device  0: (UUID: MIG-c7384736-a75d-5afc-978f-d2f1294409fd)
_INSTANCE = re.compile(
    r"^ +(MIG \S*?(\d+)gb\S*) +Device +(\d+): \(UUID: (MIG-[\w/-]+)\)", re.MULTILINE
)


Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Gpu:
    """A GPU or a MIG instance.

    index: as nvidia-smi counts; of an instance its UUID. instance: its number in its GPU.
    memory, used: MiB. capability: such as 9.0. They are None where nvidia-smi does not know them
    (unified memory).
    """

    index: str
    name: str
    memory: int | None
    used: int | None
    capability: float | None = None
    instance: int | None = None


@dataclass(frozen=True)
class Machine:
    """gpus: the visible ones, in CUDA's order. driver: of the GPUs. memory: MiB, of the host."""

    gpus: tuple[Gpu, ...]
    driver: str | None
    cores: int
    memory: int

    def gpu(self, index: str) -> Gpu:
        """The visible GPU of an index."""
        return next(gpu for gpu in self.gpus if gpu.index == index)


def this_machine(environ: Mapping[str, str] | None = None) -> Machine:
    """This machine. InputError where CUDA_VISIBLE_DEVICES names a GPU that is not there."""
    environ = os.environ if environ is None else environ
    rows = _rows(environ, _QUERY)
    if not rows:
        rows = [[*row, ""] for row in _rows(environ, _QUERY[:-1])]
    gpus: dict[str, Gpu] = {}
    for index, uuid, name, memory, used, _, capability in rows:
        gpus[uuid] = Gpu(
            index, name, _number(memory, int), _number(used, int), _number(capability, float)
        )
    instances = _instances(environ, _number(rows[0][6], float)) if rows else []

    # Without the variable CUDA sees all GPUs, or the first MIG instance.
    default = "0" if instances else ",".join(gpu.index for gpu in gpus.values())
    names = environ.get("CUDA_VISIBLE_DEVICES", default)
    if instances and names == "0":
        visible = instances
    else:
        visible = list(_visible(gpus | {gpu.index: gpu for gpu in instances}, names))
    # CUDA sees one instance and nothing else.
    visible_instances = [gpu for gpu in visible if gpu.instance is not None]
    if visible_instances:
        visible = visible_instances[:1]

    driver = rows[0][5] if rows else None
    memory_mib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return Machine(tuple(visible), driver, usable_cores(), memory_mib)


def _instances(environ: Mapping[str, str], capability: float | None) -> list[Gpu]:
    """The MIG instances that nvidia-smi lists."""
    instances = []
    listed = output_of(environ, "nvidia-smi", "-L")
    for name, gigabytes, number, uuid in _INSTANCE.findall(listed):
        # NVIDIA's names say 5% more memory than there is in the smallest.
        memory = int(gigabytes) * 1024 * 19 // 20
        instances.append(Gpu(uuid, name, memory, None, capability, int(number)))
    return instances


def _visible(gpus: Mapping[str, Gpu], names: str) -> Iterator[Gpu]:
    """What CUDA_VISIBLE_DEVICES names, by index or the beginning of a UUID, up to an empty name or
    -1. gpus: by UUID.
    """
    if not gpus:
        return
    for name in names.split(","):
        name = name.strip()
        if name in ("", "-1"):
            return
        matching = [gpu for gpu in gpus.values() if gpu.index == name]
        if not matching and name.startswith(("GPU-", "MIG-")):
            matching = [gpu for uuid, gpu in gpus.items() if uuid.startswith(name)]
        if not matching:
            listed = ", ".join(gpu.index for gpu in gpus.values())
            problem = f"names GPU {name!r}; nvidia-smi lists {listed}"
            raise InputError(problem, "CUDA_VISIBLE_DEVICES")
        yield matching[0]


def _rows(environ: Mapping[str, str], query: Sequence[str]) -> list[list[str]]:
    """What nvidia-smi answers to a query, a row for each GPU; none where it has none or refuses."""
    arguments = (f"--query-gpu={','.join(query)}", "--format=csv,noheader,nounits")
    rows = []
    for line in output_of(environ, "nvidia-smi", *arguments).splitlines():
        row = line.split(", ")
        if len(row) == len(query):  # and not "No devices were found"
            rows.append(row)
    return rows


def output_of(environ: Mapping[str, str], *command: str) -> str:
    """What a command prints; "" where there is none, and where it fails or takes half a minute."""
    try:
        # The PATH counts that the command will run with.
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=30, env=dict(environ), check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return run.stdout


def _number(text: str, cls: type[Number]) -> Number | None:
    """None where nvidia-smi does not know it: "[N/A]"."""
    with suppress(ValueError):
        return cls(text)
    return None
