"""What the machine has: its GPUs, as far as CUDA_VISIBLE_DEVICES lets this process see them, cores
and memory.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.limits import usable_cores, usable_memory

MIB = 2**20
DRIVER = Path("/dev/nvidiactl")


@dataclass(frozen=True)
class Gpu:
    """A GPU or a MIG instance.

    index: as nvidia-smi counts; of an instance its UUID. instance: its number in its GPU.
    memory, used: MiB. capability: such as 9.0. They are None where the driver does not know them
    (unified memory).
    """

    index: str
    name: str
    memory: int | None
    used: int | None
    capability: float | None = None
    instance: int | None = None


@dataclass(frozen=True)
class Device:
    """What CUDA_VISIBLE_DEVICES can name: a GPU with its MIG instances, or an instance."""

    uuid: str
    gpu: Gpu
    instances: list[Gpu] = field(default_factory=list)


@dataclass(frozen=True)
class Machine:
    """gpus: the visible ones, in CUDA's order. driver: of the GPUs. driver_problem: why the driver
    lists none, where it is there and does not work.
    cores, memory: what this process may use; MiB, of the host.
    """

    gpus: tuple[Gpu, ...]
    driver: str | None
    cores: int
    memory: int
    driver_problem: str = ""

    def gpu(self, index: str) -> Gpu:
        """The visible GPU of an index."""
        return next(gpu for gpu in self.gpus if gpu.index == index)

    def least_memory(self, indices: Collection[str]) -> int:
        """MiB of the smallest of these GPUs; 0 where there is none whose memory is known."""
        sizes = [gpu.memory for gpu in self.gpus if gpu.index in indices and gpu.memory]
        return min(sizes, default=0)


def this_machine(environ: Mapping[str, str] | None = None) -> Machine:
    """This machine. InputError where CUDA_VISIBLE_DEVICES names a GPU that is not there."""
    environ = os.environ if environ is None else environ
    driver: str | None = None
    devices: list[Device] = []
    problem = ""
    # Only here: of the commands only those that launch need a driver.
    try:
        from swift_rlvr.launch.nvml import driver_and_devices
    except ModuleNotFoundError as error:
        if error.name != "pynvml":
            raise
        # What the driver makes when it is loaded. Without it there is no GPU to ask about.
        if DRIVER.exists():
            problem = "nvidia-ml-py, which asks it, is missing: pip install nvidia-ml-py"
    else:
        driver, devices, problem = driver_and_devices()
    visible = list(_visible(devices, environ.get("CUDA_VISIBLE_DEVICES")))
    # CUDA sees one instance and nothing else.
    visible_instances = [gpu for gpu in visible if gpu.instance is not None]
    if visible_instances:
        visible = visible_instances[:1]
    if environ.get("CUDA_VISIBLE_DEVICES", "0") in ("", "-1"):
        problem = ""  # the CPU is meant
    return Machine(
        gpus=tuple(visible),
        driver=driver,
        cores=usable_cores(),
        memory=usable_memory() // MIB,
        driver_problem=problem,
    )


def _visible(devices: list[Device], names: str | None) -> Iterator[Gpu]:
    """What CUDA_VISIBLE_DEVICES names, by index or the beginning of a UUID, up to an empty name or
    -1. A GPU that is divided stands for its first instance.
    """
    if not devices:
        return
    instances: list[Device] = []
    for device in devices:
        instances += [Device(gpu.index, gpu) for gpu in device.instances]
    nameable = [*devices, *instances]
    by_index = {device.gpu.index: device for device in nameable}
    # Without the variable CUDA sees all GPUs, or the first MIG instance.
    if names is None:
        names = instances[0].uuid if instances else ",".join(by_index)
    for name in names.split(","):
        name = name.strip()
        if name in ("", "-1"):
            return
        named = by_index.get(name)
        if name.startswith(("GPU-", "MIG-")):
            named = next((each for each in nameable if each.uuid.startswith(name)), named)
        if named is None:
            problem = f"names GPU {name!r}; the driver lists {', '.join(by_index)}"
            raise InputError(problem, "CUDA_VISIBLE_DEVICES")
        yield named.instances[0] if named.instances else named.gpu
