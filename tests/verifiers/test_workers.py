"""Processes that stay for many jobs: what ends one costs its own job alone, and what runs in one is
confined.
"""

import os

import pytest

from swift_rlvr.utils.errors import NotInstalledError
from swift_rlvr.verifiers.workers import Worker

MEMORY = 256 << 20
# A module as those of `sql` and `reasoning_gym`, whose jobs are expressions.
MODULE = """
import os, signal, socket
from swift_rlvr.verifiers.code.child import connect
from swift_rlvr.verifiers.worker_limits import confine

def attempt(do, *arguments):
    try:
        return str(do(*arguments))
    except BaseException as error:
        return type(error).__name__

def main():
    receive, report = connect()
    memory = receive()["memory"]
    confine(memory)
    report({})
    jobs = 0
    while job := receive():
        jobs += 1
        signal.setitimer(signal.ITIMER_PROF, job["seconds"])
        report({"value": eval(job["do"]), "process": os.getpid(), "jobs": jobs})
        signal.setitimer(signal.ITIMER_PROF, 0)
"""
UNAVAILABLE = """
from swift_rlvr.verifiers.code.child import connect

def main():
    receive, report = connect()
    receive()
    report({"unavailable": "of_the_test is not installed"})
"""


@pytest.fixture
def worker(tmp_path):
    (tmp_path / "of_the_test.py").write_text(MODULE)
    worker = Worker("of_the_test", MEMORY, {"PYTHONPATH": str(tmp_path)}, longest=1 << 16)
    yield worker
    worker.close()


def ask(worker, do, seconds=60.0):
    return worker.ask({"do": do, "seconds": seconds}, seconds)


def test_a_worker_stays_for_the_next_job(worker):
    first, second = ask(worker, "1 + 1"), ask(worker, "2 + 2")
    assert (first["value"], second["value"]) == (2, 4)
    assert first["process"] == second["process"] != os.getpid()
    assert (first["jobs"], second["jobs"]) == (1, 2)


def test_a_closed_worker_is_replaced_for_the_next_job(worker):
    first = ask(worker, "1 + 1")
    worker.close()
    again = ask(worker, "1 + 1")
    assert again["process"] != first["process"]
    assert (again["value"], again["jobs"]) == (first["value"], 1)


@pytest.mark.parametrize(
    ("do", "ended"),
    [
        ("os._exit(7)", "exit status 7"),
        ("os.close(1) or os._exit(0)", "exit status 0"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "exit status -11"),
        ("int('no number')", "exit status 1"),
        ("[0 for _ in iter(int, 1)]", "timeout"),
    ],
)
def test_a_job_that_ends_the_process_costs_no_other_one(worker, do, ended):
    before = ask(worker, "3 * 3")
    # Each time: what happened to the first does not depend on which process had it.
    for _ in range(2):
        assert ask(worker, do, seconds=0.3) == {"ended": ended}
    after = ask(worker, "3 * 3")
    assert after["value"] == before["value"]
    assert after["process"] != before["process"]


def test_a_process_that_somebody_has_killed_gets_its_job_again(worker):
    process = ask(worker, "1 + 1")["process"]
    os.kill(process, 9)
    again = ask(worker, "1 + 1")
    assert again["value"] == 2
    assert again["process"] != process


def test_a_job_that_has_itself_killed_is_not_tried_for_ever(worker):
    assert ask(worker, "os.kill(os.getpid(), 9)") == {"ended": "exit status -9"}
    assert ask(worker, "1 + 1")["value"] == 2


def test_memory_is_limited(worker):
    half, more = MEMORY // 2, 2 * MEMORY
    assert ask(worker, f"attempt(lambda: len(bytes({half})))")["value"] == str(half)
    assert ask(worker, f"attempt(lambda: len(bytes({more})))")["value"] == "MemoryError"
    # It is there for the next job.
    assert ask(worker, f"attempt(lambda: len(bytes({half})))")["value"] == str(half)


@pytest.mark.parametrize(
    "do",
    [
        "attempt(os.fork)",
        "attempt(socket.socket)",
        "attempt(lambda: os.execv('/bin/true', ['true']))",
        "attempt(lambda: os.write(os.open('written', os.O_WRONLY | os.O_CREAT), b'x'))",
        "attempt(lambda: os.kill(os.getppid(), 0))",
    ],
)
def test_what_runs_in_a_worker_does_no_more_than_compute_and_read(
    worker, do, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    assert ask(worker, do)["value"].endswith("Error")
    written = tmp_path / "written"
    assert not written.exists() or not written.read_bytes()


def test_a_longer_report_than_may_be_ends_the_process(worker):
    answer = ask(worker, "'x' * (1 << 17)")
    assert set(answer) == {"ended"}
    assert ask(worker, "1 + 1")["value"] == 2


def test_what_is_not_installed_is_said(tmp_path):
    (tmp_path / "of_the_test.py").write_text(UNAVAILABLE)
    worker = Worker("of_the_test", MEMORY, {"PYTHONPATH": str(tmp_path)}, longest=1 << 16)
    with pytest.raises(NotInstalledError, match="of_the_test is not installed"):
        ask(worker, "1 + 1")


def test_a_worker_that_does_not_start_is_an_error(tmp_path):
    worker = Worker("not_there_of_the_test", MEMORY, {"PYTHONPATH": str(tmp_path)}, longest=1 << 16)
    with pytest.raises(RuntimeError, match="not_there_of_the_test did not start"):
        ask(worker, "1 + 1")
