"""What the patches put in place. Each function takes the original and returns its stand-in; `table.py` says why."""

import functools
import importlib
import os
import socket
import traceback
from contextlib import asynccontextmanager

from swift_rlvr.cpu_backend.weight_sync import LOOPBACK, SyncCommunicator, SyncGroup, WeightSyncError, seconds

_UPDATES = ("update_named_param", "update_flattened_params", "update_adapter_param", "update_adapter_flattened_param")


def cores_as_devices(_):
    """Every core that this process may use counts as a device, so that ``--vllm_data_parallel_size`` has a meaning."""
    return lambda: len(os.sched_getaffinity(0))


def tied_worker(worker):
    """The server's worker process, started so that it ends with the server however that ends."""
    # Looked up by name: the module applies the table that this function stands in.
    return getattr(importlib.import_module("swift_rlvr.cpu_backend.server_worker"), f"tied_{worker.__name__}")


def nothing(_):
    """Does nothing, returns None."""
    return lambda *args, **kwargs: None


def sync_group(_):
    return type("CpuSyncGroup", (SyncGroup,), {})


def sync_communicator(_):
    return type("CpuSyncCommunicator", (SyncCommunicator,), {})


def broadcast_from_cpu(_):
    def broadcast(communicator, tensors) -> None:
        for tensor in tensors:
            communicator.broadcast(tensor, src=communicator.rank)

    return broadcast


def loopback_store(store_class):
    """The store in which torchrun's ranks meet listens where they are."""

    def store(host, port, world_size, is_master, timeout, **options):
        if is_master and host == LOOPBACK:
            options["master_listen_fd"] = socket.create_server((host, port)).detach()
        return store_class(host, port, world_size, is_master, timeout, **options)

    return store


def gloo_backend(prepare_backend):
    """gloo wherever accelerate finds no backend for a launched rank."""

    @functools.wraps(prepare_backend)
    def prepare(self, cpu=False, sagemaker_dp=False, backend=None):
        from accelerate.utils import DistributedType

        found, distributed_type = prepare_backend(self, cpu, sagemaker_dp, backend)
        if found is None and "LOCAL_RANK" in os.environ:
            return "gloo", DistributedType.MULTI_CPU
        return found, distributed_type

    return prepare


def keep_weights(_):
    """Plain linear layers that read ``layer.weight`` at every call, so that an update takes effect."""
    import torch

    def dispatch(layer, remove_weight: bool) -> None:
        layer.cpu_linear = torch.nn.functional.linear

    return dispatch


def reporting_worker(extension):
    """The worker extension that reports every update, and whether all parameters were in it, to the trainer."""

    class ReportingWeightSync(extension):
        def init_communicator(self, host: str, port: int, world_size: int) -> None:
            super().init_communicator(host, port, world_size)
            self._loaded_parameters = set()
            model = self.model_runner.model
            load_weights = type(model).load_weights

            def remember(weights):
                loaded = load_weights(model, weights)
                # A model that does not say what it loaded is taken to have loaded all.
                self._loaded_parameters |= set(dict(model.named_parameters())) if loaded is None else loaded
                return loaded

            model.load_weights = remember

        def process_weights_after_loading(self) -> None:
            """Called by ms-swift when the last bucket of a full update is loaded."""

            def check_complete() -> None:
                loaded, self._loaded_parameters = self._loaded_parameters, set()
                missing = {name for name, _ in self.model_runner.model.named_parameters()} - loaded
                if missing:
                    raise WeightSyncError(f"the update left out {len(missing)} parameters: {sorted(missing)[:5]} ...")
                super(ReportingWeightSync, self).process_weights_after_loading()

            self._report(check_complete)

        def _report(self, update, *args) -> None:
            try:
                update(*args)
            except BaseException:
                if self.communicator is not None:
                    self.communicator.group.report(traceback.format_exc())
                raise
            self.communicator.group.report()

    def reported(name):
        def update(self, *args):
            self._report(functools.partial(getattr(super(ReportingWeightSync, self), name), *args))

        return update

    for name in _UPDATES:
        setattr(ReportingWeightSync, name, reported(name))
    return ReportingWeightSync


def checked_client(client):
    """The trainer's client whose requests end in time and whose full update waits for the workers' last report."""

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
    """Tell the workers to stop before ms-swift waits for them."""

    @asynccontextmanager
    async def stop_workers(self, app):
        async with lifespan(self, app):
            yield
            for connection, process in zip(self.connections, self.processes, strict=True):
                if process.is_alive():
                    connection.send({"type": "shutdown"})

    return stop_workers
