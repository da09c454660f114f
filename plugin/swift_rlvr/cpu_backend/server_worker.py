"""Ties processes together: nothing that a command started outlives it. `table.py` says why each is needed."""

from swift_rlvr.cpu_backend.patching import apply_patches
from swift_rlvr.cpu_backend.table import SERVER
from swift_rlvr.parallel import end_with_parent


def tied_llm_worker(*args) -> None:
    _run_tied("llm_worker", *args)


def tied_llm_worker_entry(*args) -> None:
    _run_tied("llm_worker_entry", *args)


def _run_tied(name: str, *args) -> None:
    """In the new process, where nothing is patched yet."""
    end_with_parent()
    from swift.pipelines.infer import rollout

    worker = getattr(rollout, name)

    apply_patches(SERVER)
    worker(*args)
