"""A limit for what would otherwise take minutes or for ever."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def done_within(seconds: float) -> Iterator[None]:
    """Fail where the block takes more seconds of the clock.

    It tells a hang, or a time that grows with the square of the text, from ordinary work, also on a
    machine that does other things as well: give ten times what an idle one takes, or more. How fast
    something is belongs to benchmarks/.
    """
    start = time.monotonic()
    yield
    taken = time.monotonic() - start
    assert taken < seconds, f"took {taken:.1f} s, and {seconds} s would be far more than it needs"
