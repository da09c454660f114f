"""Faults of a rollout server while the file E2E_FAIL_UPDATES exists: updates of its weights fail, and
adapters (LoRA) that it receives are not loaded, which nobody says.
"""

import os
import pathlib

from swift.pipelines.infer.rollout import WeightSyncWorkerExtension

FAIL_UPDATES = pathlib.Path(os.environ["E2E_FAIL_UPDATES"])
Worker = WeightSyncWorkerExtension.__mro__[1]
update = Worker.update_flattened_params
update_adapter = Worker.update_adapter_flattened_param


def update_or_fail(self, metadatas):
    if FAIL_UPDATES.exists():
        raise MemoryError("no room for the new weights")
    update(self, metadatas)


Worker.update_flattened_params = update_or_fail


def update_adapter_or_drop(self, peft_config, metadatas):
    if FAIL_UPDATES.exists():
        self.add_lora = lambda request: True
    try:
        update_adapter(self, peft_config, metadatas)
    finally:
        vars(self).pop("add_lora", None)


Worker.update_adapter_flattened_param = update_adapter_or_drop
