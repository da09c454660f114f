"""Runs ``swift rollout`` (vLLM) and ZeRO-3 training on a machine without an accelerator.

ms-swift, vLLM, DeepSpeed and accelerate each stop somewhere without an accelerator. This package fills those gaps with
the patches listed in `table.py`, and nothing else: the server, the trainers and every flag stay ms-swift's.

    python -m swift_rlvr.cpu_backend rollout --model ... --host 127.0.0.1 --vllm_enforce_eager true
    NPROC_PER_NODE=2 python -m swift_rlvr.cpu_backend rlhf --deepspeed scripts/configs/zero3_cpu.json ...

Where an accelerator is visible nothing is patched, and both commands are `swift rollout` and `swift rlhf`.
Everything runs on one machine and listens on its loopback interface; for the server itself pass `--host 127.0.0.1`.
"""

import multiprocessing
import os

LAUNCHED = "SWIFT_RLVR_CPU_BACKEND"  # set by the launcher for all processes of a command


def accelerator_visible() -> bool:
    """Whether torch sees an accelerator (CUDA, ROCm, XPU, NPU, MPS ...); if so, nothing here is active."""
    import torch

    return torch.accelerator.is_available()


def register_vllm_plugin() -> None:
    """Patch this process of the rollout server and, if it is a child, tie it to the server.

    vLLM calls it in each of its processes (entry point ``vllm.general_plugins``). Where vLLM was not started by the
    launcher it does nothing. Raises PatchError where an installed version lacks what a patch replaces.
    """
    if LAUNCHED not in os.environ or accelerator_visible():
        return
    from swift_rlvr.cpu_backend.patching import apply_patches
    from swift_rlvr.cpu_backend.table import SERVER
    from swift_rlvr.parallel import end_with_parent

    if multiprocessing.parent_process() is not None:
        end_with_parent()
    apply_patches(SERVER)
