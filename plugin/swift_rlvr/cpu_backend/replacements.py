"""What the patches put in place, mostly functions from the original to its replacement; `table.py` says why."""

import functools
import os
import socket
import traceback
from contextlib import asynccontextmanager
from typing import Any

import torch

from swift_rlvr.cpu_backend import register_vllm_plugin
from swift_rlvr.cpu_backend.weight_sync import LOOPBACK, SyncCommunicator, WeightSyncError, seconds
from swift_rlvr.parallel import end_with_parent

_UPDATES = ("update_named_param", "update_flattened_params", "update_adapter_param", "update_adapter_flattened_param")


def count_cores() -> int:
    """Each core that this process may use counts as a device, so that ``--vllm_data_parallel_size`` has a meaning."""
    return len(os.sched_getaffinity(0))


def tied_worker(worker):
    """The server's worker process, which ends with the server, however that ends."""
    return functools.partial(_run_tied, worker.__name__)


def _run_tied(name: str, *args) -> None:
    """In the worker's new process, where nothing is patched yet: ``name`` is still ms-swift's own function."""
    end_with_parent()
    from swift.pipelines.infer import rollout

    worker = getattr(rollout, name)
    register_vllm_plugin()
    worker(*args)


def do_nothing(*args, **kwargs) -> None: ...


def broadcast(communicator: SyncCommunicator, tensors) -> None:
    for tensor in tensors:
        communicator.broadcast(tensor, src=communicator.rank)


def loopback_store(store_class):
    """The store in which torchrun's ranks meet, listening on the loopback interface only."""

    def store(host, port, world_size, is_master, timeout, **options):
        if is_master and host == LOOPBACK:
            options["master_listen_fd"] = socket.create_server((host, port)).detach()
        return store_class(host, port, world_size, is_master, timeout, **options)

    return store


def gloo_backend(prepare_backend):
    """gloo where accelerate finds no backend for a launched rank."""

    def prepare(*args, **kwargs):
        from accelerate.utils import DistributedType

        chosen, distributed_type = prepare_backend(*args, **kwargs)
        if chosen is None and "LOCAL_RANK" in os.environ:
            return "gloo", DistributedType.MULTI_CPU
        return chosen, distributed_type

    return prepare


def plain_gemm(layer, remove_weight: bool) -> None:
    """Make it a plain linear layer that reads its weight at every call, so that an update takes effect."""
    layer.cpu_linear = torch.nn.functional.linear


def reporting_worker(extension: Any):
    """The worker extension, reporting every update to the trainer, and whether it held all parameters."""

    class ReportingWeightSync(extension):
        def init_communicator(self, host: str, port: int, world_size: int) -> None:
            super().init_communicator(host, port, world_size)
            self._loaded_parameters: set[str] = set()
            model = self.model_runner.model
            load_weights = type(model).load_weights

            def remember(weights):
                loaded = load_weights(model, weights)
                # vLLM lets a model return None; it is taken to have loaded all.
                self._loaded_parameters |= set(dict(model.named_parameters())) if loaded is None else loaded
                return loaded

            model.load_weights = remember

        def process_weights_after_loading(self) -> None:
            """Called by ms-swift when the last bucket of a full update is loaded."""
            self._report(self._finish_update)

        def _finish_update(self) -> None:
            loaded, self._loaded_parameters = self._loaded_parameters, set()
            missing = {name for name, _ in self.model_runner.model.named_parameters()} - loaded
            if missing:
                raise WeightSyncError(f"the update left out {len(missing)} parameters: {sorted(missing)[:5]} ...")
            super().process_weights_after_loading()

        def _report(self, update, *args) -> None:
            try:
                update(*args)
            except BaseException:
                if self.communicator is not None:
                    self.communicator.group.report(traceback.format_exc())
                raise
            self.communicator.group.report()

    def reported(name):
        return lambda self, *args: self._report(getattr(super(ReportingWeightSync, self), name), *args)

    for name in _UPDATES:
        setattr(ReportingWeightSync, name, reported(name))
    return ReportingWeightSync


def checked_client(client: Any):
    """The trainer's client, with a time limit for requests; a full update waits for the last report of all workers."""

    class CheckedVLLMClient(client):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            limit = seconds("SWIFT_RLVR_REQUEST_TIMEOUT", 1800)
            for session in self.sessions:
                session.request = functools.partial(session.request, timeout=limit)

        def process_weights_after_loading(self) -> None:
            super().process_weights_after_loading()
            for communicator in self.pynccl_comms:
                communicator.group.barrier()

    return CheckedVLLMClient


def prompt_shutdown(lifespan):
    """Tells the workers to stop before ms-swift waits for them."""

    @asynccontextmanager
    async def stop_workers(self, app):
        async with lifespan(self, app):
            yield
            for connection, process in zip(self.connections, self.processes, strict=True):
                if process.is_alive():
                    connection.send({"type": "shutdown"})

    return stop_workers
