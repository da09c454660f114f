"""Work on several processes: in order, items read as needed; a killed worker is an error; nothing
is left behind.
"""

import operator
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path

import psutil
import pytest

from helpers import done_within
from paths import PLUGIN
from present import present
from swift_rlvr.utils.parallel import map_in_order, map_within


def slow_when_even(number: int) -> tuple[int, int]:
    time.sleep(0.02 * (number % 2 == 0))
    return number, os.getpid()


def killed_while_sending(path: Path | None) -> bytes:
    """A result too large for a pipe's buffer, whose sender is killed before it has been received as
    a whole.

    It is sent when the file is there: a receiver that had nothing else to read would have all of it
    before the kill.
    """
    if path:
        while not path.exists():
            time.sleep(0.05)
        path.with_suffix(".pid").write_text(str(os.getpid()))
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return bytes(1 << 26)
    return b""


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_come_in_order_and_items_are_read_only_as_they_are_needed(workers):
    """Memory stays small: at most 4 items a worker are read ahead of the result that is due."""
    read = 0

    def items():
        nonlocal read
        while read < 60:
            read += 1
            yield read

    pids = set()
    for due, (number, pid) in enumerate(map_in_order(slow_when_even, items(), workers), start=1):
        assert number == due and read <= due + 4 * workers
        pids.add(pid)
    assert read == 60 and (
        pids == {os.getpid()} if workers == 1 else os.getpid() not in pids and len(pids) <= workers
    )


@pytest.mark.parametrize("workers", [1, 2])
def test_no_items_and_items_that_are_false(workers):
    assert list(map_in_order(str, [], workers)) == []
    assert list(map_in_order(str, [None, 0, "", False], workers)) == ["None", "0", "", "False"]


def ends_or_raises(number: int) -> int:
    if number == 0:
        os._exit(7)
    return 6 // (number - 1)


def test_within_a_time_what_ends_the_process_or_raises_is_a_result_and_the_rest_goes_on():
    results = list(map_within(ends_or_raises, [3, 0, 1, 4], 600, start=os.getpid))
    assert [item for item, _ in results] == [3, 0, 1, 4]
    (_, three), (_, ended), (_, raised), (_, two) = results
    assert (
        (three, two) == (3, 2)
        and isinstance(ended, BrokenProcessPool)
        and isinstance(raised, ZeroDivisionError)
    )
    assert "exit code 7" in str(ended)


def test_what_takes_longer_than_its_time_is_ended():
    results = list(map_within(time.sleep, [3600, 3601], 0.5, start=os.getpid))
    assert [(item, str(error)) for item, error in results] == [
        (3600, "not finished after 0.5 s"),
        (3601, "not finished after 0.5 s"),
    ]
    assert all(isinstance(error, TimeoutError) for _, error in results)


@pytest.mark.parametrize("workers", [1, 2])
def test_what_the_function_raises_is_raised_in_its_turn(workers):
    results = map_in_order(partial(operator.truediv, 6), [3, 2, 0, 1], workers)
    assert [next(results), next(results)] == [2, 3]
    with pytest.raises(ZeroDivisionError) as caught:
        next(results)
    assert workers == 1 or "in the worker process" in "".join(caught.value.__notes__).lower()


@pytest.mark.parametrize("workers", [1, 2])
def test_what_reading_an_item_raises_is_raised(workers):
    with pytest.raises(ZeroDivisionError):
        list(map_in_order(str, (1 // number for number in (1, 0)), workers))


def test_a_worker_that_ends_early_is_an_error():
    with pytest.raises(BrokenProcessPool, match="a worker process died with exit code 7"):
        list(map_in_order(os._exit, [7] * 9, workers=2))


def test_a_worker_that_is_killed_while_it_sends_a_large_result_is_an_error(tmp_path):
    """ProcessPoolExecutor waits forever for the rest of it: why there is code of our own."""
    send, sender = tmp_path / "send", tmp_path / "send.pid"
    with done_within(300), pytest.raises(BrokenProcessPool, match="exit code -9"):
        for _ in map_in_order(killed_while_sending, [None, send], workers=2):
            send.touch()
            # Its result is not read before it is dead.
            while not (
                sender.is_file() and sender.read_text() and is_dead(int(sender.read_text()))
            ):
                time.sleep(0.05)


def is_dead(process: int) -> bool:
    return psutil.Process(process).status() == psutil.STATUS_ZOMBIE


def test_a_result_that_cannot_be_pickled_is_an_error(capfd):
    with pytest.raises(BrokenProcessPool, match="exit code 1"):
        list(map_in_order(open, [os.devnull], workers=2))
    assert "Traceback" in capfd.readouterr().err


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


in_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"
)


@in_proc
@pytest.mark.parametrize("how", ["exhausted", "closed", "interrupted"])
def test_workers_end_with_the_iterator(how):
    """At once, also those that are busy for an hour."""
    long = [] if how == "exhausted" else [3600] * 3
    results = map_in_order(sleep_and_tell, [0, 0, *long], workers=2)
    pids = {next(results), next(results)}
    with done_within(300):
        if how == "exhausted":
            assert not list(results)
        elif how == "closed":
            assert isinstance(results, Generator)
            results.close()
        else:
            timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                list(results)
    assert pids and not any(map(is_running, pids))


def sleep_and_tell(seconds: float) -> int:
    time.sleep(seconds)
    return os.getpid()


ABANDONED = """
import os, sys, time
from swift_rlvr.utils.parallel import map_in_order
if __name__ == "__main__":
    results = map_in_order(eval, ["__import__('os').getpid()"] * 2 + ["__import__('time').sleep(3600)"] * 3, 2)
    print(next(results), next(results), flush=True)
    sys.argv[1] == "killed" and time.sleep(3600)
"""


@in_proc
@pytest.mark.parametrize("how", ["abandoned", "killed"])
def test_workers_end_with_their_parent(tmp_path, how):
    """Also where it ends without closing the iterator, and where it is killed while they are
    busy.
    """
    script = tmp_path / "abandoned.py"
    script.write_text(ABANDONED)
    environment = os.environ | {"PYTHONPATH": str(PLUGIN)}
    parent = subprocess.Popen(
        [sys.executable, script, how], env=environment, stdout=subprocess.PIPE, text=True
    )
    pids = list(map(int, present(parent.stdout).readline().split()))
    if how == "killed":
        assert all(map(is_running, pids))
        parent.kill()
    with done_within(300):
        assert parent.wait() == (-9 if how == "killed" else 0)
        while any(map(is_running, pids)):
            time.sleep(0.01)
    present(parent.stdout).close()
