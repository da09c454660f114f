"""Runs ``swift rollout`` (vLLM) and ZeRO-3 training on a machine without an accelerator.

ms-swift, vLLM, DeepSpeed and accelerate each stop somewhere when no accelerator is there. This package fills those gaps
with the patches listed in `patches.py`, and nothing else: the server, the trainers and every flag stay ms-swift's.

    python -m swift_rlvr.cpu_backend rollout <flags of swift rollout>
    NPROC_PER_NODE=2 python -m swift_rlvr.cpu_backend rlhf <flags of swift rlhf>

Where an accelerator is visible nothing is patched and both commands are `swift rollout` and `swift rlhf`.
Everything runs on one machine and listens on the loopback interface.

The files: `__main__.py` the launcher, `patches.py` the table of patches, `replacements.py` what they put in place,
`weight_sync.py` the carrier of weights from trainer to server and of the server's answer back.
"""


def accelerator_visible() -> bool:
    """Whether torch sees an accelerator (CUDA, ROCm, XPU, NPU, MPS ...); where it does, nothing here is active."""
    import torch

    return torch.accelerator.is_available()


def register_vllm_plugin() -> None:
    """Patch vLLM's worker processes; vLLM calls it in each of its processes (entry point ``vllm.general_plugins``).

    Raises:
        PatchError: an installed version lacks what a patch replaces.
    """
    if accelerator_visible():
        return
    from .patches import SERVER, apply_patches

    apply_patches(SERVER)
