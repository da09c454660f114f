"""What trainer and rollout server tell each other while weights are synced; on a CPU the weights go
the same way.

ms-swift's protocol for one update: the trainer posts the tensors' names and shapes, the server
starts its workers on ``update_*`` and answers 200 at once, the trainer broadcasts the tensors over
a communicator and waits at a barrier. Here the trainer's barrier waits until every worker has
reported that its model holds the update, so that a failed one raises in the trainer instead of
going unnoticed. The reports go through the TCPStore of a group: `Reports`. What a worker looks at
before it reports is in `confirmation.py`.

On a GPU the group is vLLM's ``StatelessProcessGroup`` with these reports, and NCCL carries the
tensors. On a CPU it is `Reports` alone, and its store carries them too. ``SWIFT_RLVR_SYNC_TIMEOUT``
(seconds, 120 unless set) is the longest that either side waits.
"""

import os
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import DistError, TCPStore

from swift_rlvr.utils.network import LOOPBACK
from swift_rlvr.utils.settings import Settings, setting

_DONE = b"done"


# Seconds for which a plain trainer is told from one that has connected and not yet spoken.
GREETING = 2
BOTH = (
    "start both with `python -m swift_rlvr.training.ms_swift`, as `swift-rlvr train` does, or both "
    "without it (`swift rollout` with `swift rlhf` or `megatron rlhf`)"
)


class WeightSyncError(RuntimeError):
    """An update did not reach the rollout server, or failed there."""


@dataclass(frozen=True)
class SyncSettings(Settings):
    """Time limits in seconds, from variables."""

    sync_timeout: float = setting(
        120.0, "Time limit for trainer and server to wait for each other.", more_than=0
    )
    request_timeout: float = setting(
        1800.0, "Time limit for the trainer to wait for completions.", more_than=0
    )


def sync_timeout() -> float:
    """Seconds that either side waits at most, from the environment."""
    return SyncSettings.from_environment().sync_timeout


class Reports:
    """A member of a group: the trainer (highest rank) or a worker of the server (rank 0 of them
    holds the store).
    """

    def __init__(self, store: TCPStore, rank: int, world_size: int):
        self.store = store
        self.rank = rank
        self.world_size = world_size
        self.is_trainer = rank == world_size - 1
        self._reports = 0
        self.sent: list[str] = []  # keys of the store that are needed up to the next barrier

    @classmethod
    def create(cls, host: str, port: int, rank: int, world_size: int) -> Any:
        """Join the group and make sure that the peers belong to this run and not to another behind
        the same port.

        Args:
            host: where rank 0 listens, and where the others find it; all workers are on one
                machine.

        Raises:
            WeightSyncError: the others did not join within the time limit.
        """
        limit = timedelta(seconds=sync_timeout())
        try:
            store = _listen(host, port, limit) if rank == 0 else _connect(host, port, limit)
            group = cls(store, rank, world_size)
            if group.is_trainer:
                _refuse_plain_peer(store, "rollout server")
                # Workers of an earlier run that still hold the port do not answer to it.
                token = uuid.uuid4().hex
                store.set("run", token)
                store.wait([f"{token}/{worker}" for worker in range(world_size - 1)], limit)
            else:
                if rank == 0:
                    _await_run(store, limit)
                store.set(f"{store.get('run').decode()}/{rank}", _DONE)
        except (DistError, OSError) as error:
            raise WeightSyncError(
                "no weight-sync connection between trainer and rollout server on port "
                f"{port} within {limit.total_seconds():g} s: {error}. The rollout server's log has "
                "its side; another process may hold the port (--vllm_server_group_port sets it), or "
                f"one of the two is plain ms-swift: {BOTH}"
            ) from error
        return group

    def report(self, error: str = "") -> None:
        """Worker: tell the trainer that it has come this far, or why not."""
        key = f"report/{self._reports}/{self.rank}"
        self.guarded(self.store.set, key, error.encode() or _DONE)
        self._reports += 1

    def barrier(self) -> None:
        """Trainer: wait until every worker has made its next report. Workers: pass, they report
        when they have loaded.

        Raises:
            WeightSyncError: a worker failed, is gone, or did not report within the time limit.
        """
        if not self.is_trainer:
            return
        for worker in range(self.world_size - 1):
            key = f"report/{self._reports}/{worker}"
            report = self.guarded(self.store.get, key)
            if report != _DONE:
                # A traceback: its last line first, because messages are cut short.
                text = report.decode().strip()
                cause = text.rpartition("\n")[2]
                problem = "the rollout server could not load the new weights"
                raise WeightSyncError(f"{problem}: {cause}\n{text}")
            self.sent.append(key)
        # On a CPU among them the tensors: the store would hold the model once more for each update.
        for key in self.sent:
            self.store.delete_key(key)
        self.sent.clear()
        self._reports += 1

    def guarded(self, operation: Any, key: str, *args: Any) -> Any:
        """An operation of the store on a key; WeightSyncError if it fails or takes too long."""
        start = time.monotonic()
        try:
            return operation(key, *args)
        except DistError as error:
            peer = "rollout server" if self.is_trainer else "trainer"
            limit = f"limit {sync_timeout():g} s, SWIFT_RLVR_SYNC_TIMEOUT"
            raise WeightSyncError(
                f"weight sync stopped after {time.monotonic() - start:.1f} s ({limit}): the {peer} "
                f"is gone or stuck; waiting for {key!r}: {error}"
            ) from error


def _is_of_plain_peer(store: TCPStore) -> bool:
    """Whether a plain process has joined: torch's store counts those that wait for each other in a
    key that no other can have, and ours begin with `run`.
    """
    return store.num_keys() > 0 and not store.check(["run"])


def _refuse_plain_peer(store: TCPStore, peer: str) -> None:
    """WeightSyncError if the other side is ms-swift without our patches, and would say nothing."""
    if _is_of_plain_peer(store):
        ours = "trainer" if peer == "rollout server" else "rollout server"
        problem = f"the {peer} is plain ms-swift, and this {ours} is patched by swift-rlvr"
        raise WeightSyncError(f"{problem}: {BOTH}")


def _await_run(store: TCPStore, limit: timedelta) -> None:
    """The first worker waits for the trainer's greeting; WeightSyncError if a plain one has come."""
    end = time.monotonic() + limit.total_seconds()
    plain_since = None
    while not store.check(["run"]) and time.monotonic() < end:
        now = time.monotonic()
        if not _is_of_plain_peer(store):
            plain_since = None
        elif plain_since is None:
            plain_since = now
        elif now - plain_since > GREETING:
            _refuse_plain_peer(store, "trainer")
        time.sleep(0.05)


def _listen(host: str, port: int, limit: timedelta) -> TCPStore:
    """The store itself, which listens on `host` only: torch's own would on every interface."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family)
    return TCPStore(
        host,
        port,
        is_master=True,
        master_listen_fd=listener.detach(),
        timeout=limit,
        wait_for_workers=False,
        use_libuv=False,
    )


def _connect(host: str, port: int, limit: timedelta) -> TCPStore:
    """A client of the store; in a thread, because torch's own time limit does not cover a peer that
    never answers.
    """
    host = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(host, host)
    connected: Future[TCPStore] = Future()

    def connect() -> None:
        try:
            store = TCPStore(
                host, port, is_master=False, timeout=limit, wait_for_workers=False, use_libuv=False
            )
            connected.set_result(store)
        except BaseException as error:
            connected.set_exception(error)

    threading.Thread(target=connect, daemon=True).start()
    try:
        return connected.result(timeout=limit.total_seconds() + 1)
    except TimeoutError:
        raise TimeoutError("the process that listens there does not answer") from None


class SyncCommunicator:
    """Replaces vLLM's ``PyNcclCommunicator`` in ms-swift on a CPU: the group's store carries the
    tensors.
    """

    def __init__(self, group: Reports, device: object = None):
        self.group = group
        self.rank = group.rank
        self.device = torch.device("cpu")
        self._tensors = 0

    def broadcast(self, tensor: torch.Tensor, src: int, stream: object = None) -> None:
        """Send ``tensor`` if this rank is ``src``, without waiting, else fill it; dtype and shape
        are the receiver's.

        Raises:
            WeightSyncError: nothing arrived within the time limit, or a tensor of another size.
        """
        key = f"tensor/{self._tensors}"
        store = self.group.store
        self._tensors += 1
        if self.rank == src:
            data = tensor.detach().contiguous().flatten().view(torch.uint8).numpy().tobytes()
            self.group.guarded(store.set, key, data)
            self.group.sent.append(key)
            return
        data = self.group.guarded(store.get, key)
        if len(data) != tensor.nbytes:
            expected = f"{tensor.nbytes} bytes for shape {tuple(tensor.shape)}"
            raise WeightSyncError(f"expected {expected}, got {len(data)}")
        # torch.frombuffer takes no empty buffer, and warns of one that cannot be written.
        if data:
            tensor.copy_(torch.frombuffer(bytearray(data), dtype=tensor.dtype).view(tensor.shape))


@contextmanager
def deadline(what: str) -> Iterator[None]:
    """End this process loudly if the block takes longer than the limit: nothing interrupts a call
    into CUDA or NCCL.
    """

    def give_up() -> None:
        side = "its peer, the trainer or the rollout server, is gone or stuck"
        limit = f"within {sync_timeout():g} s (SWIFT_RLVR_SYNC_TIMEOUT)"
        print(f"WeightSyncError: {what} did not end {limit}: {side}", file=sys.stderr, flush=True)
        os._exit(1)

    timer = threading.Timer(sync_timeout(), give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
