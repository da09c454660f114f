"""What works in the sandbox, in place of what libraries ask it for and it refuses."""

import os


def stand_in() -> None:
    """Have processes be threads, as `multiprocessing.dummy` does it, and have a change of permissions
    or times do nothing: `shelve` and `shutil.copy` ask for one.

    A thread sees what the others assign, so that what a program prints is no proof that it is right.
    """
    # Imported here: most programs need none of them.
    import concurrent.futures
    import multiprocessing.context
    import multiprocessing.dummy
    import threading

    dummy, context = multiprocessing.dummy, multiprocessing.context.BaseContext
    for name in (*dummy.__all__, "Value", "Array"):
        setattr(multiprocessing, name, getattr(dummy, name))
    vars(multiprocessing)["get_context"] = lambda method=None: multiprocessing
    # of the queue by which a pool of threads tells of their ends
    context.Lock = staticmethod(threading.Lock)  # type: ignore[assignment]
    vars(concurrent.futures)["ProcessPoolExecutor"] = concurrent.futures.ThreadPoolExecutor
    vars(os).update(chmod=lambda *_, **__: None, utime=lambda *_, **__: None)
