"""What only GPUs use, as far as it goes without one: reports over vLLM's own group, between real
processes.

NCCL itself is not shown; `Carrier` takes its place.
"""

import ast
import asyncio
import inspect
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import torch

from present import present
from swift_rlvr.evaluation.models import visible_device
from swift_rlvr.training.ms_swift import __main__ as launcher
from swift_rlvr.training.ms_swift import replacements
from swift_rlvr.training.ms_swift.table import GPU
from swift_rlvr.training.ms_swift.weight_sync import WeightSyncError

pytestmark = pytest.mark.slow  # as a whole: vLLM takes seconds to import


def vllms_group() -> Any:
    pytest.importorskip("vllm")
    from vllm.distributed.utils import StatelessProcessGroup

    return StatelessProcessGroup


class Carrier:
    """Takes NCCL's place: made as vLLM's communicator is, and carries tensors through the store of
    vLLM's group.
    """

    disabled = False

    def __init__(self, group, device):
        assert isinstance(group, vllms_group())
        self.group, self.rank = group, group.rank
        self.id = group.broadcast_obj(f"made by {group.rank}", src=0)  # as NCCL's id is shared

    def broadcast(self, tensor, src, stream=None):
        tensor.copy_(self.group.broadcast(tensor, src))


def join(rank: int, size: int, port: int):
    group = replacements.reporting_group(vllms_group()).create(
        host="127.0.0.1", port=port, rank=rank, world_size=size
    )
    return replacements.checked_nccl(Carrier)(group, device="cpu")


UPDATES = [10.0, 20.0, 30.0]


def work(rank: int, size: int, port: int, ready, results) -> None:
    """A worker that takes updates of two broadcasts each, and reports each one."""
    ready.wait()  # until everything is imported in all of them
    communicator, received = join(rank, size, port), []
    for _ in UPDATES:
        for _ in range(2):
            tensor = torch.zeros(3)
            communicator.broadcast(tensor, src=size - 1)
            received.append(tensor.tolist())
        communicator.group.barrier()
        communicator.group.report()
    results.put((communicator.id, received))
    ready.wait()  # the first one holds the store


def test_every_update_is_reported_over_vllms_own_group_by_real_processes():
    port, processes = launcher.free_port(), multiprocessing.get_context("spawn")
    ready, results = processes.Barrier(3), processes.Queue()
    workers = [
        processes.Process(target=work, args=(rank, 3, port, ready, results), daemon=True)
        for rank in range(2)
    ]
    for worker in workers:
        worker.start()
    ready.wait(timeout=1800)
    trainer = join(2, 3, port)
    for value in UPDATES:
        for part in range(2):
            trainer.broadcast(torch.full((3,), value + part), src=2)
        trainer.group.barrier()
    ready.wait(timeout=1800)
    expected = [[value + part] * 3 for value in UPDATES for part in range(2)]
    assert [results.get(timeout=1800) for _ in workers] == [("made by 0", expected)] * 2
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0


@pytest.fixture
def pair():
    """A worker's communicator and the trainer's."""
    port = launcher.free_port()
    with ThreadPoolExecutor(2) as pool:
        yield list(pool.map(lambda rank: join(rank, 2, port), range(2)))


def test_an_update_that_fails_before_it_is_received_raises_instead_of_a_broadcast_without_end(pair):
    worker, trainer = pair
    worker.group.report("MemoryError: no room")
    with pytest.raises(
        WeightSyncError, match="could not load the new weights: MemoryError: no room"
    ):
        trainer.broadcast(torch.ones(3), src=1)


def test_nccl_that_is_not_there_is_an_error():
    """vLLM's communicator turns itself off without NCCL, and would drop the weights silently."""
    from vllm.distributed.device_communicators.pynccl import PyNcclCommunicator

    group = vllms_group()(rank=0, world_size=2, store=None)
    with pytest.raises(WeightSyncError, match="NCCL cannot be loaded here"):
        replacements.checked_nccl(PyNcclCommunicator)(
            group, device=torch.device("cpu"), library_path="no-such-library"
        )


def test_what_never_returns_ends_the_process_with_its_cause():
    code = """
    from swift_rlvr.training.ms_swift.weight_sync import deadline
    import time
    with deadline("the first"):
        pass
    with deadline("a broadcast of weights"):
        time.sleep(100)
    """
    env = os.environ | {"SWIFT_RLVR_SYNC_TIMEOUT": "0.5"}
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=env, capture_output=True, text=True
    )
    assert ended.returncode == 1
    assert "WeightSyncError: a broadcast of weights did not end within 0.5 s" in ended.stderr


def originals():
    from swift.pipelines.infer import rollout
    from swift.rlhf_trainers import vllm_client

    # The classes as they come, whatever was patched in this process before.
    extension = rollout.WeightSyncWorkerExtension
    extension = extension.__mro__[1] if hasattr(extension, "_swift_rlvr_patch") else extension
    client = vllm_client.VLLMClient
    return extension, client.__mro__[1] if hasattr(client, "_swift_rlvr_patch") else client


@pytest.mark.parametrize("which", [0, 1], ids=["worker extension", "client"])
def test_patched_classes_keep_every_method_and_its_signature(which):
    original = originals()[which]
    patched = (replacements.reporting_worker, replacements.checked_client)[which](original)
    for name, method in inspect.getmembers(original, inspect.isfunction):
        if name != "__init__":
            assert (
                inspect.signature(getattr(patched, name)).parameters
                == inspect.signature(method).parameters
            ), name


def test_group_and_communicator_take_what_ms_swift_passes():
    from vllm.distributed.device_communicators.pynccl import PyNcclCommunicator

    group = replacements.reporting_group(vllms_group())
    assert issubclass(group, vllms_group())  # PyNcclCommunicator asks
    inspect.signature(group.create).bind(host="127.0.0.1", port=1, rank=0, world_size=2)
    inspect.signature(group.barrier).bind(None)
    communicator = replacements.checked_nccl(PyNcclCommunicator)
    inspect.signature(communicator).bind(group, device="cuda:0")
    broadcast = inspect.signature(communicator.broadcast)
    assert list(broadcast.parameters) == list(
        inspect.signature(PyNcclCommunicator.broadcast).parameters
    )


@pytest.mark.parametrize("runner", ["gpu_model_runner.py", "gpu/model_runner.py"])
def test_both_model_runners_of_vllm_have_what_is_used_of_them(runner):
    """GPUs get vLLM's Model Runner V2, a CPU V1 (vLLM's `use_v2_model_runner`); V2 needs Triton to
    be imported.
    """
    vllm, rollout = (
        present(present(find_spec(name)).origin)
        for name in ("vllm", "swift.pipelines.infer.rollout")
    )
    used = {
        name
        for source in (rollout, replacements.__file__)
        for name in re.findall(
            r"self\.model_runner\.(\w+)", Path(source).read_text(encoding="utf-8")
        )
    }
    assert {"model", "model_config"} <= used
    tree = ast.parse((Path(vllm).parent / "v1" / "worker" / runner).read_text(encoding="utf-8"))
    (its_class,) = (
        node
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == "GPUModelRunner"
    )
    stored = {
        node.attr
        for node in ast.walk(its_class)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and ast.unparse(node.value) == "self"
    }
    methods = {node.name for node in its_class.body if isinstance(node, ast.FunctionDef)}
    assert used | {"get_model"} <= stored | methods


@pytest.mark.parametrize(
    "patch",
    [*GPU.server, *GPU.trainer, *GPU.torchrun, *GPU.colocated],
    ids=lambda patch: patch.target,
)
def test_every_target_exists(patch):
    assert callable(patch.make(resolve_name(patch.target)))


@pytest.mark.parametrize(
    ("server", "sync"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("localhost", "127.0.0.1"),
        ("::1", "::1"),
        ("0.0.0.0", "0.0.0.0"),
        ("gpu-7", "0.0.0.0"),
    ],
)
def test_the_weights_port_is_opened_where_the_server_listens(server, sync):
    """Up to the worker, with ms-swift's own server class and request; the client always asks for
    0.0.0.0.
    """
    from swift.infer_engine.protocol import InitCommunicatorRequest
    from swift.pipelines.infer.rollout import SwiftRolloutDeploy

    sent: list[dict] = []
    deploy = SimpleNamespace(
        args=SimpleNamespace(host=server, vllm_tensor_parallel_size=1, vllm_data_parallel_size=1),
        connections=[SimpleNamespace(send=sent.append)],
    )
    patched = replacements.loopback_sync(inspect.unwrap(SwiftRolloutDeploy.init_communicator))
    asyncio.run(patched(deploy, InitCommunicatorRequest(host="0.0.0.0", port=29516, world_size=2)))
    assert [message["kwargs"]["args"] for message in sent] == [(sync, 29516, 2)]


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_the_group_listens_on_the_address_that_it_is_given(host):

    port, group = launcher.free_port(), replacements.reporting_group(vllms_group())
    with ThreadPoolExecutor(2) as pool:
        members = list(pool.map(lambda rank: group.create(host, port, rank, 2), range(2)))
    listening = [
        c.laddr for c in psutil.Process().net_connections("inet") if c.status == psutil.CONN_LISTEN
    ]
    assert [address.ip for address in listening if address.port == port] == [host]
    assert [member.rank for member in members] == [0, 1]


def test_cuda_is_not_asked_which_device_there_is(monkeypatch):
    """torch's own Python code, as in a build for CUDA with one GPU that NVIDIA's driver library
    reports.

    A process that has asked CUDA itself ("cudaGetDeviceCount") can no longer start vLLM's engine by
    fork.
    """

    def asked(*args):
        raise AssertionError("CUDA was asked")

    monkeypatch.delenv(
        "PYTORCH_NVML_BASED_CUDA_CHECK", raising=False
    )  # which vLLM sets when it is imported
    monkeypatch.setattr(torch._C, "_accelerator_getAccelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch._C, "_cuda_getDeviceCount", asked, raising=False)
    monkeypatch.setattr(torch.cuda, "_is_compiled", lambda: True)
    for gpus, device in ((1, "cuda"), (0, "cpu")):
        monkeypatch.setattr(torch.cuda, "_device_count_nvml", lambda gpus=gpus: gpus)
        assert visible_device() == device
    with pytest.raises(AssertionError, match="CUDA was asked"):
        torch.cuda.is_available()  # what the test is about


SUPERVISOR = """
import os, subprocess, sys, time

env = os.environ | {"SWIFT_RLVR_SUPERVISOR": str(os.getpid())}
child = subprocess.Popen([sys.executable, "-m", "swift_rlvr.training.ms_swift", "rollout", "--port", "8000"], env=env)
print(child.pid, flush=True)
time.sleep(1000)
"""


def test_a_command_ends_when_its_supervisor_is_killed():
    with subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR], stdout=subprocess.PIPE, text=True
    ) as supervisor:
        command = psutil.Process(int(present(supervisor.stdout).readline()))
        # It imports torch after it has seen that its supervisor is there.
        maps = Path(f"/proc/{command.pid}/maps")
        end = time.monotonic() + 600
        while "libtorch" not in maps.read_text():
            assert time.monotonic() < end
            time.sleep(0.05)
        os.kill(supervisor.pid, signal.SIGKILL)
        command.wait(600)


def test_a_command_whose_supervisor_is_gone_does_not_start():
    command = [sys.executable, "-m", "swift_rlvr.training.ms_swift", "rollout", "--port", "eight"]
    env = os.environ | {"SWIFT_RLVR_SUPERVISOR": "999999999"}
    ended = subprocess.run(command, env=env, cwd=Path.cwd(), capture_output=True, text=True)
    assert ended.returncode == 1 and "invalid int value" not in ended.stderr


@pytest.mark.parametrize("from_checkpoint", [False, True])
def test_no_checkpoint_holds_the_buffers_of_an_offloaded_optimizer(monkeypatch, from_checkpoint):
    """ms-swift's own methods, on tensors that say they are on a GPU."""
    from swift.rlhf_trainers import rollout_mixin
    from torch._subclasses.fake_tensor import FakeTensorMode

    monkeypatch.setattr(rollout_mixin, "is_deepspeed_enabled", lambda: True)
    mixin = rollout_mixin.RolloutTrainerMixin
    offload = replacements.offload_with_kept_buffers(mixin.offload_optimizer)
    load = replacements.load_without_buffers(mixin.load_optimizer)
    with FakeTensorMode():
        parameter = torch.nn.Parameter(torch.zeros(4, 4, device="cuda"))
        optimizer = torch.optim.AdamW([parameter])
        parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        state = optimizer.state[parameter]
        if (
            from_checkpoint
        ):  # one of ms-swift without the patches: loading moved its buffers to the GPU
            state |= {
                f"{name}_offload_buffer": state[name].clone() for name in ("exp_avg", "exp_avg_sq")
            }
        trainer = SimpleNamespace(optimizer=optimizer)
        buffers = []
        for _ in range(3):
            offload(trainer)
            buffers.append([state["exp_avg_offload_buffer"], state["exp_avg_sq_offload_buffer"]])
            load(trainer)
            assert set(optimizer.state_dict()["state"][0]) == {"step", "exp_avg", "exp_avg_sq"}
        assert {each.device.type for each in buffers[-1]} == {"cpu"}
        assert all(first is second for first, second in zip(*buffers[1:], strict=True)), (
            "memory is used again"
        )
