"""Imports of large packages."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting() -> Iterator[None]:
    """For imports of torch, transformers, vLLM and ms-swift, which make no garbage. A fifth to a third of
    their time was spent looking for it.

    >>> with without_collecting():
    ...     import json
    >>> gc.isenabled()
    True
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if was_enabled:
            gc.enable()
