"""The GPUs of a machine as pynvml tells of them: which ones CUDA_VISIBLE_DEVICES leaves, MIG
instances, and what drivers do not know.

The driver's library is a stand-in (`nvml.py`); pynvml is the real one.
"""

import sys

import pytest

import nvml
from helpers import planned
from nvml import h100
from swift_rlvr.launch import machine as machine_module
from swift_rlvr.launch.machine import Gpu, this_machine
from swift_rlvr.utils.errors import InputError

FIRST = "MIG-c7384736-a75d-5afc-978f-d2f1294409fd"
SECOND = "MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d"
INSTANCES = {
    0: {"uuid": FIRST, "name": "NVIDIA A100-SXM4-80GB MIG 3g.40gb", "memory": 40192, "used": 25},
    3: {"uuid": SECOND, "name": "NVIDIA A100-SXM4-80GB MIG 1g.10gb", "memory": 9728, "used": 12},
}
# How NVML's errors are numbered (nvml.h).
DRIVER_NOT_LOADED, LIBRARY_OF_ANOTHER_DRIVER = 9, 18


def seen(monkeypatch, gpus, visible=None, **options):
    """The machine with these GPUs in the driver's list."""
    nvml.installed(monkeypatch, gpus, **options)
    return this_machine({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})


def test_gpus_are_those_that_the_driver_lists(monkeypatch):
    machine = seen(monkeypatch, [h100(index) for index in range(3)])
    assert [gpu.index for gpu in machine.gpus] == ["0", "1", "2"]
    assert machine.driver == "580.65.06" and machine.driver_problem == ""
    assert machine.gpus[0] == Gpu("0", "NVIDIA H100 80GB HBM3", 81559, 4, 9.0)
    assert seen(monkeypatch, []).gpus == ()


def test_a_machine_without_a_driver_has_no_gpus(monkeypatch):
    import pynvml

    def load(name):
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(pynvml, "nvmlLib", None)
    monkeypatch.setattr(pynvml, "CDLL", load)
    machine = this_machine({})
    assert (machine.gpus, machine.driver, machine.driver_problem) == ((), None, "")
    # The driver's packages on a login node.
    machine = seen(monkeypatch, [], status=DRIVER_NOT_LOADED)
    assert (machine.gpus, machine.driver_problem) == ((), "")


def test_a_driver_cannot_be_asked_without_its_package(monkeypatch, tmp_path):
    """The base installation has none, and needs none where there is no driver."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.delitem(sys.modules, "swift_rlvr.launch.nvml", raising=False)
    monkeypatch.setattr(machine_module, "DRIVER", tmp_path / "nvidiactl")
    found = this_machine({})
    assert (found.gpus, found.driver, found.driver_problem) == ((), None, "")
    machine_module.DRIVER.touch()
    assert "pip install nvidia-ml-py" in this_machine({}).driver_problem


@pytest.mark.parametrize("visible", [None, "0", "GPU-0abc"])
def test_a_driver_that_does_not_work_is_no_machine_without_gpus(monkeypatch, visible):
    machine = seen(monkeypatch, [h100(0)], visible, status=LIBRARY_OF_ANOTHER_DRIVER)
    assert machine.gpus == () and "mismatch" in machine.driver_problem.lower()


@pytest.mark.parametrize("visible", ["", "-1"])
def test_it_does_not_matter_where_the_cpu_is_meant(monkeypatch, visible):
    machine = seen(monkeypatch, [h100(0)], visible, status=LIBRARY_OF_ANOTHER_DRIVER)
    assert machine.gpus == () and machine.driver_problem == ""


def test_drivers_do_not_know_the_memory_of_unified_memory(monkeypatch):
    spark = h100(0, name="NVIDIA GB10", memory=None, used=None, capability=[12, 1])
    assert seen(monkeypatch, [spark]).gpus == (Gpu("0", "NVIDIA GB10", None, None, 12.1),)


def test_an_old_driver_lacks_functions(monkeypatch):
    lacks = (
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetCudaComputeCapability",
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetMaxMigDeviceCount",
    )
    (gpu,) = seen(monkeypatch, [h100(0)], lacks=lacks).gpus
    # Its older function counts what the driver keeps for itself.
    assert gpu == Gpu("0", "NVIDIA H100 80GB HBM3", 81559, 4 + 551, None)


def test_a_gpu_that_was_lost_is_left_out_and_the_others_keep_their_numbers(monkeypatch):
    gpu_is_lost = 15

    class Library(nvml.Library):
        def nvmlDeviceGetHandleByIndex_v2(self, index, handle):
            if index.value == 1:
                return gpu_is_lost
            return super().nvmlDeviceGetHandleByIndex_v2(index, handle)

    monkeypatch.setattr(nvml, "Library", Library)
    machine = seen(monkeypatch, [h100(index) for index in range(3)])
    assert [gpu.index for gpu in machine.gpus] == ["0", "2"]


@pytest.mark.parametrize(
    ("visible", "indices"),
    [
        ("2,GPU-0a", ["2", "0"]),
        ("GPU-1abc", ["1"]),
        ("", []),
        ("-1", []),
        ("1,-1,2", ["1"]),
        (" 1 , 2", ["1", "2"]),
    ],
)
def test_cuda_visible_devices_says_which_gpus_are_seen(monkeypatch, visible, indices):
    machine = seen(monkeypatch, [h100(index) for index in range(3)], visible)
    assert [gpu.index for gpu in machine.gpus] == indices


@pytest.mark.parametrize("visible", ["5", "GPU-7", "MIG-1"])
def test_a_gpu_that_is_not_listed_is_named(monkeypatch, visible):
    problem = f"CUDA_VISIBLE_DEVICES: names GPU '{visible}'; the driver lists 0, 1, 2"
    with pytest.raises(InputError, match=problem):
        seen(monkeypatch, [h100(index) for index in range(3)], visible)


@pytest.mark.parametrize(
    ("visible", "index", "name", "memory", "number"),
    [
        (None, FIRST, "NVIDIA A100-SXM4-80GB MIG 3g.40gb", 40192, 0),
        ("0", FIRST, "NVIDIA A100-SXM4-80GB MIG 3g.40gb", 40192, 0),
        ("MIG-a28ad590", SECOND, "NVIDIA A100-SXM4-80GB MIG 1g.10gb", 9728, 3),
        ("1,MIG-a28ad590", SECOND, "NVIDIA A100-SXM4-80GB MIG 1g.10gb", 9728, 3),
        ("1", "1", "NVIDIA H100 80GB HBM3", 81559, None),
    ],
)
def test_of_mig_instances_cuda_sees_one(
    monkeypatch, tmp_path, visible, index, name, memory, number
):
    divided = h100(0, capability=[8, 0], is_divided=True, instances=INSTANCES)
    machine = seen(monkeypatch, [divided, h100(1)], visible)
    (gpu,) = machine.gpus
    assert (gpu.index, gpu.name, gpu.memory, gpu.instance) == (index, name, memory, number)
    assert gpu.capability == (9.0 if number is None else 8.0)  # an instance has its GPU's

    words = ["scripts/configs/gsm8k.yaml", "--output_dir", tmp_path]
    plan = planned(*words, machine=machine, environ={})
    assert plan.trainer.env["CUDA_VISIBLE_DEVICES"] == index and not plan.server


def test_a_gpu_that_is_to_be_divided_and_is_not_cannot_be_used(monkeypatch):
    machine = seen(monkeypatch, [h100(0, is_divided=True), h100(1)])
    assert [gpu.index for gpu in machine.gpus] == ["1"]
