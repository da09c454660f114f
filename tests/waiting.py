"""Waiting for what another process or thread does."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
HANG = 1800  # seconds; what the tests wait for takes less than a minute on an idle machine


def wait_until(condition: Callable[[], T], what: str, seconds: float = HANG) -> T:
    """What the condition returns, as soon as that is true.

    The limit tells a hang from a machine that does other things as well.
    """
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, f"waited {seconds:.0f} s for {what}"
        time.sleep(0.1)
    return result
