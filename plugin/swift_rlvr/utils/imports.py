"""Imports of large packages."""

import functools
import gc
import importlib.metadata
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

# transformers and TRL each ask once, which reads the files of every installed package.
_packages_distributions = functools.cache(importlib.metadata.packages_distributions)


@contextmanager
def without_collecting() -> Iterator[None]:
    """For imports of torch, transformers, vLLM and ms-swift, which make no garbage. A fifth to a third of
    their time was spent looking for it. What they ask of the installed packages is read once.

    >>> with without_collecting():
    ...     from importlib.metadata import packages_distributions
    ...     packages_distributions() is packages_distributions()
    True
    >>> gc.isenabled()
    True
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with mock.patch.object(
            importlib.metadata, "packages_distributions", _packages_distributions
        ):
            yield
        gc.freeze()
    finally:
        if was_enabled:
            gc.enable()
