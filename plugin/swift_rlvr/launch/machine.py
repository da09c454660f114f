"""What the machine has: its GPUs, as far as CUDA_VISIBLE_DEVICES lets this process see them, cores and memory."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

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
        """The visible GPU of an index."""
        return next(gpu for gpu in self.gpus if gpu.index == index)


def this_machine(environ: Mapping[str, str] | None = None) -> Machine:
    """This machine. InputError where CUDA_VISIBLE_DEVICES names a GPU that is not there."""
    environ = os.environ if environ is None else environ
    rows = _nvidia_smi(environ)
    gpus = {row[1]: Gpu(row[0], row[2], _mib(row[3]), _mib(row[4])) for row in rows}
    seen = tuple(
        _visible(gpus, environ["CUDA_VISIBLE_DEVICES"]) if "CUDA_VISIBLE_DEVICES" in environ else gpus.values()
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return Machine(seen, rows[0][5] if rows else None, usable_cores(), memory)


def _visible(gpus: Mapping[str, Gpu], names: str) -> Iterator[Gpu]:
    """The GPUs that CUDA_VISIBLE_DEVICES names, by index or the beginning of a UUID, up to an empty name or -1."""
    for name in map(str.strip, names.split(",") if gpus else []):
        if name in ("", "-1"):
            return
        by_uuid = [gpu for uuid, gpu in gpus.items() if name.startswith("GPU-") and uuid.startswith(name)]
        matching = [gpu for gpu in gpus.values() if gpu.index == name] or by_uuid
        if not matching:
            listed = ", ".join(gpu.index for gpu in gpus.values())
            raise InputError(f"names GPU {name!r}; nvidia-smi lists {listed}", "CUDA_VISIBLE_DEVICES")
        yield matching[0]


def _nvidia_smi(environ: Mapping[str, str]) -> list[list[str]]:
    command = ["nvidia-smi", f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits"]
    try:
        # The PATH counts that the command will run with.
        run = subprocess.run(command, capture_output=True, text=True, timeout=30, env=dict(environ), check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    rows = (line.split(", ") for line in run.stdout.splitlines())
    return [row for row in rows if len(row) == len(_QUERY)]


def _mib(text: str) -> int | None:
    return int(text) if text.isdigit() else None
