"""A stand-in for NVML, the library of NVIDIA's driver: `libnvidia-ml.so.1` of a machine with made-up
GPUs, which the real `pynvml` asks.

In the tests' process `installed(monkeypatch, gpus)` puts it into pynvml. For other processes
`write(folder, gpus)` leaves a pynvml.py in a folder for their PYTHONPATH, which is the real one with
this library.
"""

import ctypes
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MIB = 2**20
DRIVER = "580.65.06"
SUCCESS, NOT_SUPPORTED, NOT_FOUND = 0, 3, 6


def h100(index: int, **values: Any) -> dict[str, Any]:
    """A GPU as the driver describes it: memory in MiB; None for what it does not know."""
    description = {
        "uuid": f"GPU-{index}abc",
        "name": "NVIDIA H100 80GB HBM3",
        "memory": 81559,
        "used": 4,
        "reserved": 551,
        "capability": [9, 0],
        "is_divided": False,
        "instances": {},  # by number
    }
    return description | values


class Library:
    """Answers as the library does: in the arguments, and with 0 or an error's number.

    lacks: functions that the driver does not have. status: what its start returns.
    """

    def __init__(
        self, gpus: Sequence[dict], lacks: Sequence[str] = (), status: int = 0, driver: str = DRIVER
    ):
        self.gpus, self.lacks, self.status, self.driver = gpus, lacks, status, driver
        self.handles: dict[int, tuple[Any, dict]] = {}  # by address

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml") and name in self.lacks:
            raise AttributeError(name)
        return super().__getattribute__(name)

    def _open(self, reference: Any, description: dict) -> int:
        """Let a handle stand for a GPU."""
        handle = reference._obj
        structure = handle._type_()
        handle.contents = structure
        self.handles[ctypes.addressof(structure)] = structure, description
        return SUCCESS

    def _described(self, handle: Any) -> dict:
        return self.handles[ctypes.addressof(handle.contents)][1]

    def nvmlInitWithFlags(self, flags: int) -> int:
        return self.status

    def nvmlShutdown(self) -> int:
        return SUCCESS

    def nvmlSystemGetDriverVersion(self, text: Any, length: Any) -> int:
        text.value = self.driver.encode()
        return SUCCESS

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:
        count._obj.value = len(self.gpus)
        return SUCCESS

    def nvmlDeviceGetHandleByIndex_v2(self, index: Any, handle: Any) -> int:
        return self._open(handle, self.gpus[index.value])

    def nvmlDeviceGetUUID(self, handle: Any, text: Any, length: Any) -> int:
        text.value = self._described(handle)["uuid"].encode()
        return SUCCESS

    def nvmlDeviceGetName(self, handle: Any, text: Any, length: Any) -> int:
        text.value = self._described(handle)["name"].encode()
        return SUCCESS

    def nvmlDeviceGetCudaComputeCapability(self, handle: Any, major: Any, minor: Any) -> int:
        capability = self._described(handle).get("capability")
        if capability is None:
            return NOT_SUPPORTED
        major._obj.value, minor._obj.value = capability
        return SUCCESS

    def nvmlDeviceGetMemoryInfo(self, handle: Any, memory: Any) -> int:
        gpu = self._described(handle)
        return self._write_memory(gpu, memory._obj, gpu["used"], gpu.get("reserved", 0))

    def nvmlDeviceGetMemoryInfo_v2(self, handle: Any, memory: Any) -> int:
        gpu = self._described(handle)
        return self._write_memory(gpu, memory._obj, gpu["used"], 0)

    def _write_memory(self, gpu: dict, memory: Any, used: int, reserved: int) -> int:
        if gpu["memory"] is None:
            return NOT_SUPPORTED
        memory.total = gpu["memory"] * MIB
        memory.used = (used + reserved) * MIB
        memory.free = memory.total - memory.used
        return SUCCESS

    def nvmlDeviceGetMigMode(self, handle: Any, current: Any, pending: Any) -> int:
        is_divided = self._described(handle).get("is_divided")
        current._obj.value = pending._obj.value = int(bool(is_divided))
        return SUCCESS

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: Any, count: Any) -> int:
        count._obj.value = 7
        return SUCCESS

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, index: Any, instance: Any) -> int:
        # JSON has the numbers as text.
        instances = {int(number): each for number, each in self._instances(handle).items()}
        if index.value not in instances:
            return NOT_FOUND
        return self._open(instance, instances[index.value])

    def _instances(self, handle: Any) -> dict:
        return self._described(handle).get("instances", {})


def installed(monkeypatch: Any, gpus: Sequence[dict], **options: Any) -> None:
    """Let pynvml in this process ask a library of a machine with these GPUs."""
    import pynvml

    monkeypatch.setattr(pynvml, "nvmlLib", Library(gpus, **options))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})


def write(folder: Path, gpus: Sequence[dict]) -> None:
    """A pynvml.py for the PYTHONPATH of other processes, where the machine has these GPUs."""
    text = MODULE.format(tests=str(Path(__file__).parent), gpus=json.dumps(gpus))
    (folder / "pynvml.py").write_text(text)


MODULE = """
import json, sys
from importlib.machinery import PathFinder
from pathlib import Path

here = Path(__file__).parent
elsewhere = [entry for entry in sys.path if Path(entry or ".").resolve() != here.resolve()]
path = PathFinder.find_spec("pynvml", elsewhere).origin
exec(compile(Path(path).read_text(), path, "exec"))

sys.path.append({tests!r})
from nvml import Library

nvmlLib = Library(json.loads({gpus!r}))
"""
