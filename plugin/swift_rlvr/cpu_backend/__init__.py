"""Runs ``swift rollout`` (vLLM) and ZeRO-3 training on a machine without an accelerator.

ms-swift, vLLM, DeepSpeed and accelerate each stop somewhere when no accelerator is there. This package fills those gaps
with the patches listed in `table.py`, and nothing else: the server, the trainers and every flag stay ms-swift's.

    python -m swift_rlvr.cpu_backend rollout <flags of swift rollout>
    NPROC_PER_NODE=2 python -m swift_rlvr.cpu_backend rlhf <flags of swift rlhf>

Where an accelerator is visible nothing is patched and both commands are `swift rollout` and `swift rlhf`.
Everything runs on one machine and listens on its loopback interface; for the server itself say `--host 127.0.0.1`.

The files: `__main__.py` launches, `table.py` is the table of patches, which `patching.py` applies, `replacements.py` what they put
in place, `server_worker.py` the server's processes, `weight_sync.py` the carrier of weights from trainer to server and of the server's answer back.
"""

import multiprocessing
import os

LAUNCHED = "SWIFT_RLVR_CPU_BACKEND"  # set by the launcher for all processes of a command


def accelerator_visible() -> bool:
    """Whether torch sees an accelerator (CUDA, ROCm, XPU, NPU, MPS ...); where it does, nothing here is active."""
    import torch

    return torch.accelerator.is_available()


def register_vllm_plugin() -> None:
    """Patch vLLM's processes and tie them to the server; for other uses of vLLM in this environment it does nothing.

    vLLM calls it in each of its processes (entry point ``vllm.general_plugins``).

    Raises:
        PatchError: an installed version lacks what a patch replaces.
    """
    if LAUNCHED not in os.environ or accelerator_visible():
        return
    from swift_rlvr.cpu_backend.patching import apply_patches
    from swift_rlvr.cpu_backend.table import SERVER
    from swift_rlvr.parallel import end_with_parent

    if multiprocessing.parent_process() is not None:
        end_with_parent()
    apply_patches(SERVER)
