"""Ties processes together: nothing that a command started outlives it. `patches.py` says why each is needed."""

from swift_rlvr.parallel import end_with_parent


def tied_worker(worker):
    """The server's worker process, started so that it ends with the server however that ends."""
    return {"llm_worker": tied_llm_worker, "llm_worker_entry": tied_async_llm_worker}[worker.__name__]


def tied_llm_worker(*args) -> None:
    _run_tied("llm_worker", *args)


def tied_async_llm_worker(*args) -> None:
    _run_tied("llm_worker_entry", *args)


def _run_tied(name: str, *args) -> None:
    """In the new process, where nothing is patched yet."""
    end_with_parent()
    from swift.pipelines.infer import rollout

    worker = getattr(rollout, name)
    from swift_rlvr.cpu_backend.patching import apply_patches
    from swift_rlvr.cpu_backend.table import SERVER

    apply_patches(SERVER)
    worker(*args)
