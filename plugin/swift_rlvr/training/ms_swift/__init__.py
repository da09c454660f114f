"""Runs ``swift rollout`` (vLLM) and ``swift rlhf``: on GPUs with checked weight sync, and also
without any GPU.

    python -m swift_rlvr.training.ms_swift rollout --model ... --host 127.0.0.1
    NPROC_PER_NODE=2 python -m swift_rlvr.training.ms_swift rlhf --deepspeed zero3 \
        --vllm_server_host 127.0.0.1 ...

The server, the trainers and every flag stay ms-swift's; `table.py` lists every change. On GPUs
these are: an update of the weights or of an adapter that does not arrive ends the run, with its
cause; work that changes no loss is left out (``SWIFT_RLVR_SPEEDUPS=0`` turns that off); no process
outlives the one that it belongs to; and on one machine nothing listens on other interfaces than
loopback. On a CPU the patches also fill the gaps at which ms-swift, vLLM, DeepSpeed and accelerate
stop there. With another accelerator nothing is patched.

Pass the server ``--host 127.0.0.1``, also on a CPU; the port of the weights then listens there too.
"""

import multiprocessing
import os

# Variables that processes of a command tell each other by.
# The device for which all of them are patched, "cpu" or "cuda"; set by the launcher.
LAUNCHED = "SWIFT_RLVR_PATCHES"
# The id of the process with which a command ends, also where that is killed.
SUPERVISOR = "SWIFT_RLVR_SUPERVISOR"
# What torchrun is told by.
RENDEZVOUS = ("NPROC_PER_NODE", "NNODES", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT")


def register_vllm_plugin() -> None:
    """Patch this process of the rollout server and, if it is a child, tie it to the server.

    vLLM calls it in each of its processes (entry point ``vllm.general_plugins``). Where vLLM was
    not started by the launcher it does nothing. Raises PatchError if an installed version lacks
    what a patch replaces.
    """
    device = os.environ.get(LAUNCHED)
    if device is None:
        return
    from swift_rlvr.training.ms_swift.patching import apply_patches
    from swift_rlvr.training.ms_swift.table import TABLES
    from swift_rlvr.utils.parallel import end_with_parent

    if multiprocessing.parent_process() is not None:
        end_with_parent()
    apply_patches(TABLES[device].server)
