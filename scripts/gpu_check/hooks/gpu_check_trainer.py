"""For --external_plugins: what the check sees in a trainer's rank, and the updates that it drops.

GPU_CHECK_FOLDER and the variables of gpu_check_watch.py. GPU_CHECK_DROP=N: a part of the N-th update
of the weights, counted from 1, is not sent, and nobody is told.
Seconds of a step are sums of a function's own time, without what it calls: they add up.
"""

import functools
import os
import resource
import threading
import time
from collections import Counter
from typing import Any

import torch
from gpu_check_watch import (
    FOLDER,
    is_on,
    make_completions_full,
    note,
    note_engine,
    sums_of,
)
from swift.rlhf_trainers import vllm_client
from swift.rlhf_trainers.grpo_trainer import GRPOTrainer

# Updates are counted here, and what each of them has sent.
DROPPED_UPDATE = int(os.environ.get("GPU_CHECK_DROP", 0))
SUMS = is_on("GPU_CHECK_SUMS")


# --- Seconds and memory of each step


class Clock:
    """The seconds of the current step by what they went to; the innermost of the open parts runs."""

    def __init__(self) -> None:
        self.step: int | None = None
        self.started = 0.0
        self.seconds: Counter[str] = Counter()
        self.open: list[list[Any]] = []  # [part, seconds of what it has called]

    def begin(self, step: int) -> None:
        """The first micro-batch of a step; what the one before took is written."""
        if step == self.step:
            return
        now = time.perf_counter()
        if self.step is not None:
            self.write(now - self.started)
        self.step, self.started = step, now
        self.seconds.clear()

    def write(self, total: float) -> None:
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        if torch.cuda.is_available():
            memory = torch.cuda.max_memory_reserved()
        note("trainer", "step", step=self.step, total=total, memory=memory, **self.seconds)


clock = Clock()


def timed(function: Any, part_of: Any) -> Any:
    """Counts the own time of a function. part_of: the part that a call belongs to, or a function
    that says it; None: to none.
    """

    @functools.wraps(function)
    def call(self, *args: Any, **options: Any) -> Any:
        part = part_of(self, *args) if callable(part_of) else part_of
        # With async_generate completions are sampled in another thread meanwhile.
        is_main = threading.current_thread() is threading.main_thread()
        if part is None or not is_main or not self.model.training:
            return function(self, *args, **options)
        if part == "update":
            clock.begin(self.state.global_step)
        started = _now()
        clock.open.append([part, 0.0])
        try:
            return function(self, *args, **options)
        finally:
            elapsed = _now() - started
            part, inner = clock.open.pop()
            clock.seconds[part] += elapsed - inner
            if clock.open:
                clock.open[-1][1] += elapsed

    return call


def _now() -> float:
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def forward_pass(self, model: Any, *args: Any) -> str:
    """What a pass over the completions is for."""
    if torch.is_grad_enabled():
        return "policy"
    if model is not self.model or getattr(self, "is_reference", False):
        return "reference"
    return "old policy"


def watch_steps() -> None:
    parts = {
        "training_step": "update",
        "_prepare_inputs": "other",
        "_generate_completions": "generation",
        "_move_model_to_vllm": "sync",
        "compute_loss": "policy",
        "_get_per_token_logps_and_entropies": forward_pass,
    }
    for name, part in parts.items():
        setattr(GRPOTrainer, name, timed(getattr(GRPOTrainer, name), part))
    null_ref_context = GRPOTrainer.null_ref_context

    def reference_context(self) -> Any:
        return _Reference(self, null_ref_context(self))

    GRPOTrainer.null_ref_context = reference_context


class _Reference:
    """LoRA's reference policy is the model itself, without its adapter."""

    def __init__(self, trainer: Any, context: Any):
        self.trainer, self.context = trainer, context

    def __enter__(self) -> None:
        self.context.__enter__()
        self.trainer.is_reference = True

    def __exit__(self, *error: Any) -> Any:
        self.trainer.is_reference = False
        return self.context.__exit__(*error)


# --- Updates of the weights


class Updates:
    """How many updates have begun, and the checksums of what the current one holds."""

    def __init__(self) -> None:
        self.count = 0
        self.sums: dict[str, int] = {}

    def drops(self) -> bool:
        """Whether this is the part of an update that is dropped; said once."""
        global DROPPED_UPDATE
        if self.count != DROPPED_UPDATE:
            return False
        DROPPED_UPDATE = 0
        note("trainer", "dropped", update=self.count)
        return True


updates = Updates()


def watch_updates() -> None:
    move_full = GRPOTrainer._move_full_model_to_vllm
    load = GRPOTrainer._load_state_dict_to_vllm

    def load_watched(self, state_dict: Any) -> None:
        if SUMS and self.accelerator.is_main_process:
            updates.sums |= sums_of(state_dict.items())
        if self.vllm_mode == "colocate" and updates.drops():
            names = sorted(state_dict)
            state_dict = {name: state_dict[name] for name in names[len(names) // 2 :]}
        load(self, state_dict)

    def move_full_watched(self) -> None:
        updates.count += 1
        updates.sums = {}
        move_full(self)
        if not SUMS:
            return
        if self.accelerator.is_main_process:
            note("trainer", "weights", update=updates.count, sums=updates.sums)
        if self.vllm_mode == "colocate":
            note_engine(self.engine.inner_model)

    GRPOTrainer._load_state_dict_to_vllm = load_watched
    GRPOTrainer._move_full_model_to_vllm = move_full_watched
    watch_client(vllm_client.VLLMClient)


def watch_client(client: Any) -> None:
    """The trainer's side of the server."""
    send = client.update_flattened_params

    def send_watched(self, metadatas: Any, flattened: Any) -> None:
        if not updates.drops():
            send(self, metadatas, flattened)

    client.update_flattened_params = send_watched


if FOLDER is not None:
    watch_steps()
    watch_updates()
    if is_on("GPU_CHECK_FULL_LENGTH"):
        make_completions_full()
