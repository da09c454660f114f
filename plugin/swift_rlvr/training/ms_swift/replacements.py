"""What the patches put in place, mostly functions from the original to its replacement; `table.py`
says why.
"""

import functools
import multiprocessing
import os
import socket
import traceback
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import Any

import torch

from swift_rlvr.training.ms_swift import register_vllm_plugin
from swift_rlvr.training.ms_swift.confirmation import LoadedParameters, confirm_next_adapter
from swift_rlvr.training.ms_swift.weight_sync import (
    Reports,
    SyncCommunicator,
    SyncSettings,
    WeightSyncError,
    deadline,
)
from swift_rlvr.utils.network import LOOPBACK, is_loopback
from swift_rlvr.utils.parallel import end_with_parent

_UPDATES = ("update_named_param", "update_flattened_params")
_ADAPTER_UPDATES = ("update_adapter_param", "update_adapter_flattened_param")


# --- the rollout server: its processes, and where it listens


def count_cores() -> int:
    """Each core that this process may use counts as a device, so that ``--vllm_data_parallel_size``
    has a meaning.
    """
    return len(os.sched_getaffinity(0))


def fork_workers() -> None:
    """Workers are forks of the server, and so have its imports.

    They have the threads of its torch as well, which was loaded before OMP_NUM_THREADS was set.
    """
    import torch

    # It may be a list, of which the first is for a region that is in no other: 4,2
    threads, _, _ = os.environ["OMP_NUM_THREADS"].partition(",")
    if threads.strip().isdigit():  # what it cannot read OpenMP ignores
        torch.set_num_threads(max(1, int(threads)))
    multiprocessing.set_start_method("fork", force=True)


# ms-swift's own functions, by name: in a worker that is a fork they are replaced already.
_workers: dict[str, Callable[..., None]] = {}


def tied_worker(worker):
    """The server's worker process, which ends with the server, however that ends."""
    _workers[worker.__name__] = worker
    return functools.partial(_run_tied, worker.__name__)


def _run_tied(name: str, *args) -> None:
    """In the worker's new process. If it is no fork, nothing is patched there yet: ``name`` is still
    ms-swift's own function.
    """
    end_with_parent()
    server = multiprocessing.parent_process()
    if server is not None and not server.is_alive():  # it died before the line above
        return
    from swift.pipelines.infer import rollout

    worker = _workers.get(name) or getattr(rollout, name)
    register_vllm_plugin()
    worker(*args)


def do_nothing(*args, **kwargs) -> None:
    """In place of what a CPU does not need."""


# --- weights on their way from the trainer to the server


def broadcast(communicator: SyncCommunicator, tensors) -> None:
    """Trainer: hand all tensors to the communicator, in order."""
    for tensor in tensors:
        communicator.broadcast(tensor, src=communicator.rank)


def reporting_group(process_group: Any):
    """vLLM's group with reports in its store: what it sends and broadcasts, NCCL's id for example,
    stays as it is.
    """

    class ReportingGroup(Reports, process_group):
        def __init__(self, store, rank: int, world_size: int):
            process_group.__init__(self, rank=rank, world_size=world_size, store=store)
            Reports.__init__(self, store, rank, world_size)

    return ReportingGroup


def checked_nccl(communicator: Any):
    """NCCL between trainer and workers: without it an error, and no broadcast that the other side
    never joins.
    """

    class CheckedNccl(communicator):
        def __init__(self, group: Reports, device, **options):
            with deadline("NCCL's connection for the weights"):
                super().__init__(group, device, **options)
            if self.disabled:
                raise WeightSyncError(
                    "NCCL cannot be loaded here, so no weights would reach the rollout server"
                )

        def broadcast(self, tensor: torch.Tensor, src: int, stream=None) -> None:
            """A worker reports that it is about to receive, or has failed before: NCCL would wait
            for it forever.
            """
            if self.rank == src:
                self.group.barrier()
            else:
                self.group.report()
            with deadline("a broadcast of weights"):
                super().broadcast(tensor, src, stream)
                if stream is not None:
                    stream.synchronize()

    return CheckedNccl


def loopback_sync(init_communicator):
    """The weights' port is opened where the server listens: on loopback only, unless it can be
    reached from outside.
    """

    @functools.wraps(init_communicator)
    async def init(self, request):
        if is_loopback(self.args.host):
            host = "::1" if ":" in self.args.host else LOOPBACK
            request = request.model_copy(update={"host": host})
        return await init_communicator(self, request)

    return init


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
    """Make it a plain linear layer that reads its weight at every call, so that an update takes
    effect.
    """
    layer.cpu_linear = torch.nn.functional.linear


def reporting_worker(extension: Any):
    """The worker extension, reporting every update to the trainer, and whether it held all
    parameters or the whole adapter.
    """

    class ReportingWeightSync(extension):
        def init_communicator(self, host: str, port: int, world_size: int) -> None:
            super().init_communicator(host, port, world_size)
            self._loaded_parameters = LoadedParameters(self.get_model())

        def process_weights_after_loading(self) -> None:
            """Called by ms-swift when the last bucket of a full update is loaded."""
            self._report(self._finish_update)

        def _finish_update(self) -> None:
            is_quantized = self.model_runner.model_config.quantization is not None
            self._loaded_parameters.check_all(is_quantized)
            super().process_weights_after_loading()

        def _report(self, update, *args, **kwargs) -> None:
            from swift.pipelines.infer import rollout

            try:
                update(*args, **kwargs)
                rollout.synchronize()  # what fails on a GPU shows only now
            except BaseException:
                if self.communicator is not None:
                    self.communicator.group.report(traceback.format_exc())
                raise
            self.communicator.group.report()

    def reported(name):
        @functools.wraps(getattr(extension, name))
        def update(self, *args, **kwargs):
            self._report(getattr(super(ReportingWeightSync, self), name), *args, **kwargs)

        return update

    def reported_adapter(name):
        @functools.wraps(getattr(extension, name))
        def update(self, *args, **kwargs):
            load = functools.partial(getattr(super(ReportingWeightSync, self), name), *args)
            self._report(confirm_next_adapter, self.model_runner, functools.partial(load, **kwargs))

        return update

    for name in _UPDATES:
        setattr(ReportingWeightSync, name, reported(name))
    for name in _ADAPTER_UPDATES:
        setattr(ReportingWeightSync, name, reported_adapter(name))
    return ReportingWeightSync


def empty_prefix_cache(reset_prefix_cache):
    """The server's answer when it could not empty its cache is an error, not a line of text: what
    is in there was computed with the last weights.
    """

    @functools.wraps(reset_prefix_cache)
    async def reset(self):
        from fastapi import HTTPException

        answer = await reset_prefix_cache(self)
        if answer["message"].endswith("False"):
            problem = "vLLM did not empty its prefix cache, which holds values of the last weights"
            raise HTTPException(500, problem)
        return answer

    return reset


def complete_move(move_full_model):
    """Colocate mode: a full update that leaves out parameters of vLLM's model is an error, as it is
    in the server.
    """

    @functools.wraps(move_full_model)
    def move(self) -> None:
        if self.vllm_mode != "colocate":
            move_full_model(self)
            return
        loaded = LoadedParameters(self.engine.inner_model)
        move_full_model(self)
        loaded.check_all(self.engine.engine.model_config.quantization is not None)

    return move


def confirmed_move(move_adapter):
    """Colocate mode: an adapter that vLLM's layers do not hold afterwards is an error."""
    move_adapter = without_merging(move_adapter)

    @functools.wraps(move_adapter)
    def move(self) -> None:
        if self.vllm_mode != "colocate":
            move_adapter(self)
            return
        worker = self.engine.inner_model_executor.driver_worker.worker
        confirm_next_adapter(worker.model_runner, functools.partial(move_adapter, self))

    return move


def without_merging(move_adapter):
    """Nothing is merged to send an adapter alone, which needs no merged weights: in bfloat16 merging
    and unmerging rounds the base weights, and vLLM's would stay what they were.
    """

    @functools.wraps(move_adapter)
    def move(self) -> None:
        self.model.merge_adapter = self.model.unmerge_adapter = do_nothing
        try:
            move_adapter(self)
        finally:
            del self.model.merge_adapter, self.model.unmerge_adapter

    return move


def emptied_caches(reset_vllm_cache):
    """Colocate mode: a prefix cache that vLLM could not empty is an error, as it is in the server."""

    @functools.wraps(reset_vllm_cache)
    def reset(self) -> None:
        reset_vllm_cache(self)
        if self.vllm_mode == "colocate" and not self.engine.engine.reset_prefix_cache():
            raise WeightSyncError(
                "vLLM did not empty its prefix cache, which holds values of the last weights"
            )

    return reset


def checked_client(client: Any):
    """The trainer's client, with a time limit for requests; a full update waits for the last report
    of all workers.
    """

    class CheckedVLLMClient(client):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            limit = SyncSettings.from_environment().request_timeout
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


# --- the offloaded optimizer, whose copies in memory are no part of a checkpoint


def _take_buffers(optimizer) -> list[dict[Any, torch.Tensor]]:
    """Take the copies in memory out of the state of the optimizer, where ms-swift keeps them and a
    checkpoint would save them; those of each parameter.
    """
    taken = []
    for state in optimizer.state.values():
        keys = [key for key in state if str(key).endswith("_offload_buffer")]
        taken.append({key: state.pop(key) for key in keys})
    return taken


def offload_with_kept_buffers(offload_optimizer):
    """Back into the state go the buffers of the last time, to be used again, and none that a
    checkpoint brought.
    """

    def offload(self) -> None:
        _take_buffers(self.optimizer)
        kept = getattr(self, "_offload_buffers", ())
        for state, buffers in zip(self.optimizer.state.values(), kept, strict=False):
            state.update(buffers)
        offload_optimizer(self)

    return offload


def load_without_buffers(load_optimizer):
    """The buffers leave the state until the optimizer is offloaded again."""

    def load(self) -> None:
        load_optimizer(self)
        self._offload_buffers = _take_buffers(self.optimizer)

    return load
