"""Faults of a rollout server: updates of its weights fail while the file E2E_FAIL_UPDATES exists; while
one named drop_adapters does beside it, adapters (LoRA) are received and not loaded, and nobody is told.
"""

import os
import pathlib

from swift.pipelines.infer.rollout import WeightSyncWorkerExtension

FAIL_UPDATES = pathlib.Path(os.environ["E2E_FAIL_UPDATES"])
DROP_ADAPTERS = FAIL_UPDATES.with_name("drop_adapters")
Worker = WeightSyncWorkerExtension.__mro__[1]
update = Worker.update_flattened_params
update_adapter = Worker.update_adapter_flattened_param


def update_or_fail(self, metadatas):
    if FAIL_UPDATES.exists():
        raise MemoryError("no room for the new weights")
    update(self, metadatas)


Worker.update_flattened_params = update_or_fail


def update_adapter_or_drop(self, peft_config, metadatas):
    if DROP_ADAPTERS.exists():
        self.add_lora = lambda request: True
    try:
        update_adapter(self, peft_config, metadatas)
    finally:
        vars(self).pop("add_lora", None)


Worker.update_adapter_flattened_param = update_adapter_or_drop
