"""What the machine has: its GPUs, as far as CUDA_VISIBLE_DEVICES lets this process see them, cores
and memory.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.parallel import usable_cores

# A driver that does not know compute_cap (before 510) refuses the whole question, and is asked
# again without it.
_QUERY = ("index", "uuid", "name", "memory.total", "memory.used", "driver_version", "compute_cap")
_INSTANCE = re.compile(
    r"^ +(MIG \S*?(\d+)gb\S*) +Device +(\d+): \(UUID: (MIG-[\w/-]+)\)", re.MULTILINE
)


@dataclass(frozen=True)
class Gpu:
    """A GPU or a MIG instance. index: as nvidia-smi counts; an instance's UUID. instance: its
    number in its GPU.

    memory, used: MiB. capability: such as 9.0. They are None where nvidia-smi does not know
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
    rows = _rows(environ, _QUERY) or [[*row, ""] for row in _rows(environ, _QUERY[:-1])]
    gpus = {
        row[1]: Gpu(row[0], row[2], _number(row[3]), _number(row[4]), _number(row[6], float))
        for row in rows
    }
    instances = [  # NVIDIA's names say the memory, 5% more than there is in the smallest
        Gpu(
            uuid,
            name,
            int(gigabytes) * 1024 * 19 // 20,
            None,
            _number(rows[0][6], float),
            int(number),
        )
        for name, gigabytes, number, uuid in _INSTANCE.findall(
            output_of(environ, "nvidia-smi", "-L") if rows else ""
        )
    ]
    names = environ.get(
        "CUDA_VISIBLE_DEVICES", "0" if instances else ",".join(gpu.index for gpu in gpus.values())
    )
    by_uuid = gpus | {gpu.index: gpu for gpu in instances}
    seen = instances if instances and names == "0" else list(_visible(by_uuid, names))
    seen = [gpu for gpu in seen if gpu.instance is not None][
        :1
    ] or seen  # CUDA sees one instance and nothing else
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return Machine(tuple(seen), rows[0][5] if rows else None, usable_cores(), memory)


def _visible(gpus: Mapping[str, Gpu], names: str) -> Iterator[Gpu]:
    """What CUDA_VISIBLE_DEVICES names, by index or the beginning of a UUID, up to an empty name or
    -1.
    """
    for name in map(str.strip, names.split(",") if gpus else []):
        if name in ("", "-1"):
            return
        by_uuid = [
            gpu
            for uuid, gpu in gpus.items()
            if name[:4] in ("GPU-", "MIG-") and uuid.startswith(name)
        ]
        matching = [gpu for gpu in gpus.values() if gpu.index == name] or by_uuid
        if not matching:
            listed = ", ".join(gpu.index for gpu in gpus.values())
            raise InputError(
                f"names GPU {name!r}; nvidia-smi lists {listed}", "CUDA_VISIBLE_DEVICES"
            )
        yield matching[0]


def _rows(environ: Mapping[str, str], query: Sequence[str]) -> list[list[str]]:
    text = output_of(
        environ, "nvidia-smi", f"--query-gpu={','.join(query)}", "--format=csv,noheader,nounits"
    )
    return [row for line in text.splitlines() if len(row := line.split(", ")) == len(query)]


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


def _number(text: str, kind: type[int] | type[float] = int) -> Any:
    """None where nvidia-smi does not know it."""
    with suppress(ValueError):
        return kind(text)
    return None
