"""Carries weights from the trainer to the rollout server's workers, and their reports back, through a TCPStore.

ms-swift's protocol for one update: the trainer posts the tensors' names and shapes, the server starts its workers on
``update_*`` and answers 200 at once, the trainer broadcasts the tensors over a communicator and waits at a barrier.
On GPUs NCCL is that communicator. Here it is `SyncCommunicator`, and the trainer's barrier waits until every worker has
reported that its model holds the update, so that a failed update raises in the trainer instead of going unnoticed.
``SWIFT_RLVR_SYNC_TIMEOUT`` (seconds, 120 unless set) is the longest that either side waits.
"""

import os
import socket
import threading
import time
import uuid
from concurrent.futures import Future
from datetime import timedelta

import torch
from torch.distributed import DistError, TCPStore

LOOPBACK = "127.0.0.1"
_DONE = b"done"


class WeightSyncError(RuntimeError):
    """An update did not reach the rollout server, or failed there."""


def seconds(name: str, default: float) -> float:
    """The time limit in the environment variable ``name``.

    >>> seconds("SWIFT_RLVR_NOT_SET", 120)
    120.0
    """
    text = os.environ.get(name, str(default))
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ValueError(f"{name} must be a number of seconds above 0, got {text!r}")
    return value


def sync_timeout() -> float:
    return seconds("SWIFT_RLVR_SYNC_TIMEOUT", 120)


class SyncGroup:
    """The trainer (highest rank) and the server's workers (all other ranks; rank 0 holds the store).

    Replaces vLLM's ``StatelessProcessGroup``; ms-swift uses its `create`, ``rank``, ``world_size`` and `barrier`.
    """

    def __init__(self, store: TCPStore, rank: int, world_size: int):
        self.store, self.rank, self.world_size = store, rank, world_size
        self.is_trainer = rank == world_size - 1
        self._tensors = self._updates = 0

    @classmethod
    def create(cls, host: str, port: int, rank: int, world_size: int) -> "SyncGroup":
        """Join the group and make sure that the peers belong to this run and not to another behind the same port.

        Raises:
            WeightSyncError: the others did not join within the time limit.
        """
        limit = timedelta(seconds=sync_timeout())
        try:
            if rank == 0:
                # ms-swift asks for 0.0.0.0; nothing outside this machine takes part.
                store = TCPStore(
                    LOOPBACK, port, is_master=True, timeout=limit, wait_for_workers=False, use_libuv=False,
                    master_listen_fd=socket.create_server((LOOPBACK, port)).detach(),
                )  # fmt: skip
            else:
                store = _connect(LOOPBACK if host == "0.0.0.0" else host, port, limit)
            group = cls(store, rank, world_size)
            if group.is_trainer:
                token = uuid.uuid4().hex
                store.set("run", token)
                store.wait([f"{token}/{worker}" for worker in range(world_size - 1)], limit)
            else:
                store.set(f"{store.get('run').decode()}/{rank}", _DONE)
        except (DistError, OSError) as error:
            raise WeightSyncError(
                f"no weight-sync connection between trainer and rollout server on port {port} within "
                f"{limit.total_seconds():g} s: {error}. The rollout server's log has its side; another "
                "process may hold the port (--vllm_server_group_port sets it)."
            ) from error
        return group

    def send(self, tensor: torch.Tensor) -> None:
        """Trainer: hand ``tensor`` to the store; returns without waiting for the workers."""
        data = tensor.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes()
        self._guard(self.store.set, f"tensor/{self._tensors}", data)
        self._tensors += 1

    def receive(self, tensor: torch.Tensor) -> None:
        """Worker: fill ``tensor`` with the next one sent; dtype and shape are the receiver's.

        Raises:
            WeightSyncError: nothing arrived within the time limit, or a tensor of another size.
        """
        data = self._guard(self.store.get, f"tensor/{self._tensors}")
        self._tensors += 1
        if len(data) != tensor.nbytes:
            raise WeightSyncError(f"expected {tensor.nbytes} bytes for shape {tuple(tensor.shape)}, got {len(data)}")
        if data:
            tensor.copy_(torch.frombuffer(bytearray(data), dtype=tensor.dtype).view(tensor.shape))

    def report(self, error: str = "") -> None:
        """Worker: tell the trainer that an update is done, or why it failed."""
        self.store.set(f"report/{self._updates}/{self.rank}", error.encode() or _DONE)
        self._updates += 1

    def barrier(self) -> None:
        """Trainer: wait until every worker has reported the current update. Workers: pass, they report when loaded.

        Raises:
            WeightSyncError: a worker failed, is gone, or did not report within the time limit.
        """
        if not self.is_trainer:
            return
        for worker in range(self.world_size - 1):
            key = f"report/{self._updates}/{worker}"
            report = self._guard(self.store.get, key)
            if report != _DONE:
                raise WeightSyncError(f"the rollout server could not load the new weights:\n{report.decode()}")
            self.store.delete_key(key)
        for index in range(self._tensors):
            self.store.delete_key(f"tensor/{index}")
        self._updates += 1

    def _guard(self, operation, key: str, *args):
        start = time.monotonic()
        try:
            return operation(key, *args)
        except DistError as error:
            raise WeightSyncError(
                f"weight sync stopped after {time.monotonic() - start:.1f} s (limit {sync_timeout():g} s, "
                f"SWIFT_RLVR_SYNC_TIMEOUT): the {'rollout server' if self.is_trainer else 'trainer'} is gone or stuck; "
                f"waiting for {key!r}: {error}"
            ) from error


def _connect(host: str, port: int, limit: timedelta) -> TCPStore:
    """A client of the store; in a thread, because torch's own time limit does not cover a peer that never answers."""
    connected: Future[TCPStore] = Future()

    def connect() -> None:
        try:
            store = TCPStore(host, port, is_master=False, timeout=limit, wait_for_workers=False, use_libuv=False)
            connected.set_result(store)
        except BaseException as error:
            connected.set_exception(error)

    threading.Thread(target=connect, daemon=True).start()
    try:
        return connected.result(timeout=limit.total_seconds() + 1)
    except TimeoutError:
        raise TimeoutError("the process that listens there does not answer") from None


class SyncCommunicator:
    """Replaces vLLM's ``PyNcclCommunicator`` in ms-swift: `broadcast`, ``group``, ``rank`` and ``device``."""

    def __init__(self, group: SyncGroup, device: object = None):
        self.group, self.rank, self.device = group, group.rank, torch.device("cpu")

    def broadcast(self, tensor: torch.Tensor, src: int, stream: object = None) -> None:
        """Send ``tensor`` if this rank is ``src``, else fill it."""
        self.group.send(tensor) if self.rank == src else self.group.receive(tensor)
