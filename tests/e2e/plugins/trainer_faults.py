"""Faults of a trainer, which the tests switch on and off with files in the folder E2E_FAULTS.

hold: the trainer waits in the middle of an update of the weights, and says so with a file `holding`.
drop: it sends no update, and tells nobody.
full: from its start on it cannot write files of more than a megabyte, as on a full disk.
"""

import os
import pathlib
import resource
import time

from swift.rlhf_trainers import vllm_client

FOLDER = pathlib.Path(os.environ["E2E_FAULTS"])
if (FOLDER / "full").exists():
    resource.setrlimit(resource.RLIMIT_FSIZE, (10**6, 10**6))

broadcast_tensors = vllm_client._broadcast_tensors_for_vllm_weight_sync


def broadcast_and_wait(communicator, tensors):
    while (FOLDER / "hold").exists():
        (FOLDER / "holding").touch()
        time.sleep(0.05)
    broadcast_tensors(communicator, tensors)


def unless_dropped(function):
    def call(*args):
        if not (FOLDER / "drop").exists():
            function(*args)

    return call


vllm_client._broadcast_tensors_for_vllm_weight_sync = broadcast_and_wait
for name in ("update_flattened_params", "process_weights_after_loading"):
    method = getattr(vllm_client.VLLMClient, name)
    setattr(vllm_client.VLLMClient, name, unless_dropped(method))
