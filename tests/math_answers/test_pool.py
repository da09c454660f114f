"""The worker processes of the math verifier: started when needed, killed at a deadline, never left behind.

Everything here uses real processes. What they compare takes computer algebra, so that it can't be settled without them.
Where the algebra itself does not matter, `stand_in_worker` takes sympy's place.
"""

import contextlib
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hangs import done_within
from paths import PLUGIN
from swift_rlvr.math_answers import MathVerifier, Reason, pool

pytestmark = pytest.mark.slow  # as a whole

HARD = [(rf"\ln {n * n}", rf"\boxed{{2\ln {n}}}", 1.0) for n in range(2, 34)]
HARD += [(rf"\ln {n * n}", rf"\boxed{{3\ln {n}}}", 0.0) for n in range(2, 34)]
TOWERS = [rf"9^{{9^{{9^{{{n}}}}}}}+\ln 2" for n in range(10, 42)]
TOWER = ("5", rf"\boxed{{{TOWERS[0]}}}", 0.0)


@pytest.fixture
def stand_in(monkeypatch):
    """Workers load the stand-in instead of sympy."""
    monkeypatch.setattr(pool, "WORKER", "stand_in_worker")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


@pytest.fixture
def fresh(stand_in):
    """A verifier whose processes a test may treat as it likes; none is started yet."""
    with MathVerifier(workers=2) as verifier:
        yield verifier


def grade(verifier, rows=HARD):
    return [
        verdict.reward for verdict in verifier.grade_all([text for _, text, _ in rows], [gold for gold, *_ in rows])
    ]


def expected(rows=HARD):
    return [reward for *_, reward in rows]


def pids(verifier) -> list[int]:
    return [verifier.pool._nursery.pid, *(worker.pid for worker in verifier.pool._workers)]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def all_end(pids, seconds=10.0) -> bool:
    end = time.monotonic() + seconds
    while any(map(is_running, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(map(is_running, pids))


# --- parameters and starting


@pytest.mark.parametrize(
    "parameters",
    [{"timeout": 0}, {"timeout": -1}, {"timeout": float("inf")}, {"timeout": float("nan")}, {"batch_timeout": 0},
     {"batch_timeout": float("nan")}, {"workers": 0}, {"workers": -1}],
)  # fmt: skip
def test_bad_parameters_are_named(parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        MathVerifier(**parameters)


def test_no_process_is_started_before_the_first_hard_answer(fresh):
    assert fresh.grade_all([r"\boxed{\sqrt{8}}", "<answer>1/2</answer>"], [r"2\sqrt{2}", "0.5"])[0].reward == 1.0
    assert fresh.pool._nursery is None
    assert grade(fresh) == expected()
    assert all(map(is_running, pids(fresh))) and len(pids(fresh)) == 3


def test_a_start_that_fails_names_the_command(fresh, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/bin/false")
        with pytest.raises(RuntimeError, match="/bin/false -m stand_in_worker"):
            grade(fresh)
    assert grade(fresh) == expected()


# --- deadlines and memory, with sympy


def test_power_towers_time_out_and_cost_only_themselves(hurried):
    towers = [("5", rf"\boxed{{{tower}}}", 0.0) for tower in TOWERS]
    rows = [row for pair in zip(HARD[::2], towers, strict=True) for row in pair]
    grade(hurried, HARD[:1])  # started
    with done_within(60):  # without a deadline for ever
        verdicts = hurried.grade_all([text for _, text, _ in rows], [gold for gold, *_ in rows])
    assert [verdict.reward for verdict in verdicts] == expected(rows)
    assert {verdict.reason for verdict in verdicts[::2]} == {Reason.CORRECT, Reason.WRONG}
    assert {verdict.reason for verdict in verdicts[1::2]} == {Reason.TIMED_OUT}
    assert grade(hurried) == expected()


def test_the_log_names_what_timed_out(hurried, caplog):
    with caplog.at_level(logging.WARNING, logger="swift_rlvr.math_answers"):
        assert hurried.grade_all([TOWER[1]], ["5"])[0].reason is Reason.TIMED_OUT
    (record,) = caplog.records
    assert record.args == (TOWERS[0], "5")


def test_a_gold_that_times_out_costs_only_its_own_rows(hurried, caplog):
    golds, texts, _ = zip(*HARD, strict=True)
    verdicts = hurried.grade_all([r"\boxed{\ln 5}", *texts], [TOWERS[0], *golds])
    assert [verdict.reward for verdict in verdicts[1:]] == expected()
    assert verdicts[0].reward != 1.0 and verdicts[0].reason in (Reason.BAD_GOLD, Reason.TIMED_OUT)
    assert TOWERS[0] in caplog.records[0].args


@pytest.mark.parametrize(
    "answer",
    [r"10^{10^{10}}", r"\binom{10^9}{5\cdot 10^8}", r"(10^{8})!", r"\sum_{k=1}^{10^{9}} \frac{1}{k}", "(x+y+z+1)^{900}",
     r"\begin{pmatrix}" + r"\\".join("&".join(["x^2"] * 40) for _ in range(10)) + r"\end{pmatrix}"],
)  # fmt: skip
def test_answers_that_eat_memory_or_time_do_no_harm(hurried, answer):
    verdicts = hurried.grade_all([rf"\boxed{{{answer}}}", HARD[0][1]], [r"\ln 5", HARD[0][0]])
    assert [verdict.reward for verdict in verdicts] == [0.0, 1.0]


# --- processes that are killed


def test_a_killed_worker_is_replaced(fresh):
    grade(fresh)
    os.kill(pids(fresh)[1], signal.SIGKILL)
    assert grade(fresh) == expected()


def test_a_killed_nursery_is_replaced(fresh):
    grade(fresh)
    old = pids(fresh)
    os.kill(old[0], signal.SIGKILL)
    assert grade(fresh) == expected()
    assert pids(fresh)[0] != old[0]
    assert all_end(old)


@pytest.mark.parametrize("which", [0, 1])
def test_processes_killed_during_a_batch(fresh, which):
    grade(fresh, HARD[:4])
    fresh.pool.timeout = 0.3
    rows = [TOWER, *HARD]
    victim = pids(fresh)[which]
    timer = threading.Timer(0.05, os.kill, (victim, signal.SIGKILL))
    timer.start()
    rewards = grade(fresh, rows)
    timer.join()
    assert rewards == expected(rows)
    assert grade(fresh) == expected()


# --- threads and forks


def test_off_the_main_thread_and_from_several_at_once(verifier):
    with ThreadPoolExecutor(6) as threads:
        results = list(threads.map(lambda _: grade(verifier, HARD[::4]), range(6)))
    assert results == [expected(HARD[::4])] * 6


def test_a_forked_child_grades_with_its_own_processes(fresh):
    assert grade(fresh) == expected()
    mine = pids(fresh)
    child = os.fork()
    if child == 0:  # no assert may leave this branch
        right = False
        with contextlib.suppress(Exception):
            right = grade(fresh) == expected() and not set(pids(fresh)) & set(mine)
            fresh.close()
        os._exit(0 if right else 1)
    assert grade(fresh) == expected()  # at the same time
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pids(fresh) == mine and all(map(is_running, mine))
    assert grade(fresh) == expected()


def grade_in_child(queue, worker):
    pool.WORKER = worker
    with MathVerifier(workers=1) as verifier:
        queue.put((grade(verifier), pids(verifier)))


@pytest.mark.parametrize("method, daemon", [("spawn", False), ("fork", True)])
def test_in_multiprocessing_children(stand_in, method, daemon):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=grade_in_child, args=(queue, pool.WORKER), daemon=daemon)
    process.start()
    rewards, started = queue.get(timeout=60)
    process.join(20)
    assert rewards == expected()
    assert process.exitcode == 0 and all_end(started)


# --- nothing is left behind


def test_close_ends_all_and_the_next_batch_starts_again(fresh):
    grade(fresh)
    started = pids(fresh)
    fresh.close()
    fresh.close()
    assert all_end(started)
    assert grade(fresh) == expected()


# The package is found by sys.path alone, as where ms-swift loads a plugin file by its path.
SCRIPT = rf"""
import os, signal, sys, threading, time
sys.path.insert(0, {str(PLUGIN)!r})
from swift_rlvr.math_answers import pool
from swift_rlvr.math_answers.verifier import shared_verifier

pool.WORKER = "stand_in_worker"
verifier = shared_verifier(2, 60.0, 60.0)
assert verifier.grade_all([r"\boxed{{2\ln 3}}"], [r"\ln 9"])[0].reward == 1.0
print(verifier.pool._nursery.pid, *(worker.pid for worker in verifier.pool._workers), flush=True)
"""
COMPARE = rf"verifier.grade_all([r'{TOWER[1]}'], ['5'])"
ENDINGS = {  # what the script does next, the signal that it and its group get, its exit status
    "normal exit": ("", None, 0),
    "sys.exit": ("sys.exit(3)", None, 3),
    "SIGKILL while comparing": (
        f"threading.Timer(0.3, os.kill, (os.getpid(), 9)).start(); {COMPARE}", None, -signal.SIGKILL,
    ),
    "Ctrl-C while comparing": (COMPARE, signal.SIGINT, -signal.SIGINT),
    "Ctrl-C while waiting": ("time.sleep(60)", signal.SIGINT, -signal.SIGINT),
}  # fmt: skip
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(PLUGIN), str(Path(__file__).parent)])}


@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_is_left_when_the_parent_ends(ending, tmp_path):
    last, sent, status = ENDINGS[ending]
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + last + "\n")
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env=ENVIRONMENT,
    )  # fmt: skip
    started = [int(pid) for pid in process.stdout.readline().split()]
    assert len(started) == 3, process.communicate()[1]
    if sent is not None:
        time.sleep(0.3)
        os.killpg(process.pid, sent)
    assert process.wait(20) == status, process.stderr.read()
    process.communicate()
    assert all_end(started)


@pytest.mark.slow  # torchrun loads torch
def test_under_torchrun(tmp_path):
    pytest.importorskip("torch")
    script = tmp_path / "ranks.py"
    last = """
with open(__file__ + os.environ["RANK"], "w") as file:
    print(verifier.pool._nursery.pid, *(worker.pid for worker in verifier.pool._workers), file=file)
"""
    script.write_text(SCRIPT + last)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr[-2000:]
    started = [int(pid) for rank in "01" for pid in Path(f"{script}{rank}").read_text().split()]
    assert len(started) == 6 and all_end(started)
