"""The GPUs that NVML lists, the library of NVIDIA's driver that nvidia-smi and vLLM ask as well.

Imported where it is asked: its package, nvidia-ml-py, takes 50 ms, and belongs to the extras that train.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pynvml

from swift_rlvr.launch.machine import MIB, Device, Gpu


def driver_and_devices() -> tuple[str | None, list[Device], str]:
    """The driver's version, the GPUs that can be used, and why there are none where a driver is
    there that does not work.
    """
    try:
        pynvml.nvmlInit()
        try:
            return _ask(pynvml.nvmlSystemGetDriverVersion), list(_devices()), ""
        finally:
            pynvml.nvmlShutdown()
    except (pynvml.NVMLError_LibraryNotFound, pynvml.NVMLError_DriverNotLoaded):
        # No driver, or its packages on a machine without a GPU.
        return None, [], ""
    except pynvml.NVMLError as error:
        # Such as another version of the library than of the driver, after an update.
        return None, [], str(error)


def _devices() -> Iterator[Device]:
    for index in range(pynvml.nvmlDeviceGetCount()):
        handle = _ask(pynvml.nvmlDeviceGetHandleByIndex, index)
        if handle is None:  # lost, or another user's
            continue
        gpu = _gpu(handle, str(index))
        # The MIG instances, numbered as `nvidia-smi -L` does.
        instances = []
        for number in range(_ask(pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
            part = _ask(pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, number)
            if part is not None:
                uuid = pynvml.nvmlDeviceGetUUID(part)
                instances.append(_gpu(part, uuid, capability=gpu.capability, instance=number))
        mode = _ask(pynvml.nvmlDeviceGetMigMode, handle)
        is_divided = mode is not None and mode[0] == pynvml.NVML_DEVICE_MIG_ENABLE
        # CUDA cannot use a GPU that is to be divided and has no instance yet.
        if instances or not is_divided:
            yield Device(pynvml.nvmlDeviceGetUUID(handle), gpu, instances)


def _gpu(
    handle: Any, index: str, capability: float | None = None, instance: int | None = None
) -> Gpu:
    """What is known of a GPU. capability: of an instance, which has its GPU's."""
    # The second form does not count as used what the driver keeps for itself. Drivers before 510
    # lack it.
    memory = _ask(pynvml.nvmlDeviceGetMemoryInfo, handle, pynvml.nvmlMemory_v2)
    memory = memory or _ask(pynvml.nvmlDeviceGetMemoryInfo, handle)
    if capability is None:
        known = _ask(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
        if known is not None:
            major, minor = known
            capability = major + minor / 10
    return Gpu(
        index=index,
        name=_ask(pynvml.nvmlDeviceGetName, handle) or "a GPU without a name",
        memory=memory.total // MIB if memory else None,
        used=memory.used // MIB if memory else None,
        capability=capability,
        instance=instance,
    )


def _ask(function: Callable[..., Any], *arguments: Any) -> Any:
    """Ask NVML; None if it does not know, or the driver lacks the function."""
    with suppress(pynvml.NVMLError):
        return function(*arguments)
    return None
