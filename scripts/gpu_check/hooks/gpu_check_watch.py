"""What the check sees inside vLLM's processes and the trainer's ranks, and the faults that it puts
there.

GPU_CHECK_FOLDER: where each process writes a file of its own. What is done with it:
GPU_CHECK_SUMS=1: checksums of the weights after each update, on both sides.
GPU_CHECK_FULL_LENGTH=1: completions go on after the end-of-sequence token, to their longest.
"""

import json
import os
import time
from pathlib import Path
from typing import Any

import torch

FOLDER = os.environ.get("GPU_CHECK_FOLDER")
# Numbers in memory at a time: the sums are of 64-bit integers.
CHUNK = 4_000_000


def is_on(name: str) -> bool:
    """Whether a variable of the check is set to 1."""
    return os.environ.get(name) == "1"


def note(program: str, kind: str, **values: Any) -> None:
    """A line in this process's file of the check."""
    path = Path(str(FOLDER), f"{program}-{os.getpid()}.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    rank = int(os.environ.get("RANK", 0))
    line = {"kind": kind, "time": time.time(), "rank": rank, **values}
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def checksum(tensor: torch.Tensor) -> int:
    """The sum of all bits as integers, each times the number of its column, modulo 2^64.

    Sums of rows add up: vLLM stacks the rows of several parameters in one (q, k and v), and pads
    them with zeros.
    """
    tensor = tensor.detach()
    columns = tensor.shape[-1] if tensor.ndim > 1 else 1
    rows = tensor.reshape(-1, columns)
    integers = {1: torch.int8, 2: torch.int16, 4: torch.int32}[tensor.element_size()]
    weights = torch.arange(1, columns + 1, device=tensor.device)
    total = 0
    for part in rows.split(max(1, CHUNK // columns)):
        bits = part.contiguous().view(integers).long()
        total += int((bits * weights).sum())
    return total % 2**64


def sums_of(named_tensors: Any) -> dict[str, int]:
    """The checksum of each tensor, by its name."""
    return {name: checksum(tensor) for name, tensor in named_tensors}


def note_engine(model: Any) -> None:
    """The weights that vLLM samples with, and how its parameters are stacked."""
    packed = getattr(model, "packed_modules_mapping", {})
    note("engine", "weights", sums=sums_of(model.named_parameters()), packed=packed)


def watch_vllm() -> None:
    """In each process of the rollout server. A second call changes nothing."""
    if FOLDER is None:
        return
    if is_on("GPU_CHECK_FULL_LENGTH"):
        make_completions_full()
    if is_on("GPU_CHECK_SUMS"):
        from swift.pipelines.infer import rollout

        watch_worker(rollout.WeightSyncWorkerExtension)


def watch_worker(extension: Any) -> None:
    """Checksums of what a worker's model holds when an update has ended there."""
    if getattr(extension, "is_watched", False):
        return
    finish = extension.process_weights_after_loading

    def finish_and_note(self) -> None:
        finish(self)
        note_engine(self.get_model())

    extension.process_weights_after_loading = finish_and_note
    extension.is_watched = True


def make_completions_full() -> None:
    """No token ends a completion before max_tokens. Probabilities stay as they are, unlike with
    vLLM's min_tokens.
    """
    from swift.infer_engine.vllm_engine import VllmEngine

    def add_no_stop_words(self, generation_config: Any, request_config: Any) -> None:
        generation_config.ignore_eos = True
        generation_config.stop = []
        generation_config.stop_token_ids = []

    VllmEngine._add_stop_words = add_no_stop_words
