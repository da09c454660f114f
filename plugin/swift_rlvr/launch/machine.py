"""What the machine has: its GPUs, as far as CUDA_VISIBLE_DEVICES lets this process see them, cores and memory."""

import csv
import io
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile

from swift_rlvr.errors import InputError
from swift_rlvr.parallel import usable_cores

_QUERY = ("index", "uuid", "name", "memory.total", "memory.used", "driver_version")


@dataclass(frozen=True)
class Gpu:
    """index: as nvidia-smi counts. memory, used: MiB, None where nvidia-smi does not know (unified memory)."""

    index: str
    name: str
    memory: int | None
    used: int | None


@dataclass(frozen=True)
class Machine:
    """gpus: the visible ones, in CUDA's order. driver: of the GPUs. memory: MiB, of the host."""

    gpus: tuple[Gpu, ...]
    driver: str | None
    cores: int
    memory: int

    def gpu(self, index: str) -> Gpu:
        return next(gpu for gpu in self.gpus if gpu.index == index)


def this_machine(environ: Mapping[str, str] | None = None) -> Machine:
    """This machine. InputError where CUDA_VISIBLE_DEVICES names a GPU that is not there."""
    environ = os.environ if environ is None else environ
    rows = _nvidia_smi(environ)
    gpus = {row[0]: Gpu(row[0], row[2], _mib(row[3]), _mib(row[4])) for row in rows}
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        names = (name.strip() for name in visible.split(","))
        wanted = list(takewhile(lambda name: name and name != "-1", names))  # as CUDA reads it
        by_uuid = {row[1]: row[0] for row in rows}
        for name in wanted:
            if gpus and name not in gpus and not _matches(name, by_uuid):
                raise InputError(f"names GPU {name!r}; nvidia-smi lists {', '.join(gpus)}", "CUDA_VISIBLE_DEVICES")
        indices = [name if name in gpus else by_uuid[_matches(name, by_uuid)[0]] for name in wanted if gpus]
        gpus = {index: gpus[index] for index in indices}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return Machine(tuple(gpus.values()), rows[0][5] if rows else None, usable_cores(), memory)


def _matches(name: str, by_uuid: Mapping[str, str]) -> list[str]:
    """CUDA takes the beginning of a GPU's UUID for its name too."""
    return [uuid for uuid in by_uuid if name.startswith("GPU-") and uuid.startswith(name)]


def _nvidia_smi(environ: Mapping[str, str]) -> list[list[str]]:
    command = ["nvidia-smi", f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits"]
    try:
        # The PATH counts that the command will run with.
        run = subprocess.run(command, capture_output=True, text=True, timeout=30, env=dict(environ))
    except (OSError, subprocess.TimeoutExpired):
        return []
    if run.returncode != 0:
        return []
    rows = csv.reader(io.StringIO(run.stdout), skipinitialspace=True)
    return [row for row in rows if len(row) == len(_QUERY)]


def _mib(text: str) -> int | None:
    return int(text) if text.isdigit() else None
