"""A fault of a rollout server: updates of its weights fail while the file E2E_FAIL_UPDATES exists."""

import os
import pathlib

from swift.pipelines.infer.rollout import WeightSyncWorkerExtension

Worker = WeightSyncWorkerExtension.__mro__[1]
update = Worker.update_flattened_params


def update_or_fail(self, metadatas):
    if pathlib.Path(os.environ["E2E_FAIL_UPDATES"]).exists():
        raise MemoryError("no room for the new weights")
    update(self, metadatas)


Worker.update_flattened_params = update_or_fail
