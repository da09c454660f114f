"""The worker processes of the math verifier: started when needed, killed at a deadline, never left behind.

Everything here uses real processes. What they compare takes computer algebra, so that it can't be settled without them.
"""

import contextlib
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hangs import done_within
from swift_rlvr.math_answers import MathVerifier, Reason
from swift_rlvr.math_answers import pool as math_workers

HARD = [(rf"\ln {n * n}", rf"\boxed{{2\ln {n}}}", 1.0) for n in range(2, 34)]
HARD += [(rf"\ln {n * n}", rf"\boxed{{3\ln {n}}}", 0.0) for n in range(2, 34)]
TOWERS = [rf"\boxed{{9^{{9^{{9^{{{n}}}}}}}+\ln 2}}" for n in range(10, 74)]
PACKAGES = str(Path(math_workers.__file__).parents[1])


@pytest.fixture(scope="module")
def verifier():
    """One for all tests: what one of them does to its processes must not matter to the next."""
    with MathVerifier(workers=2, timeout=1.0) as verifier:
        yield verifier


def grade(verifier, rows=HARD):
    return [
        verdict.reward for verdict in verifier.grade_all([text for _, text, _ in rows], [gold for gold, *_ in rows])
    ]


def expected(rows=HARD):
    return [reward for *_, reward in rows]


def pids(verifier) -> list[int]:
    return [verifier.pool._nursery.pid, *(worker.pid for worker in verifier.pool._pool)]


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


def test_no_process_is_started_before_the_first_hard_answer(verifier):
    verifier.close()
    assert verifier.grade_all([r"\boxed{\sqrt{8}}", "<answer>1/2</answer>"], [r"2\sqrt{2}", "0.5"])[0].reward == 1.0
    assert verifier.pool._nursery is None
    assert grade(verifier, HARD[:1]) == [1.0]
    assert all(map(is_running, pids(verifier))) and len(pids(verifier)) == 3


def test_a_start_that_fails_names_the_command(verifier, monkeypatch):
    verifier.close()
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="/bin/false -m swift_rlvr.math_answers.judge"):
        grade(verifier, HARD[:1])
    monkeypatch.undo()
    assert grade(verifier, HARD[:1]) == [1.0]


@pytest.mark.parametrize("ranks, cores", [("1", 4), ("2", 2), ("4", 1), ("8", 1)])
def test_ranks_on_one_machine_share_its_cores(monkeypatch, ranks, cores):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", ranks)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    assert math_workers.usable_cores() == cores


# --- deadlines and memory


def test_power_towers_time_out_and_cost_only_themselves():
    rows = [row for pair in zip(HARD, [("5", tower, 0.0) for tower in TOWERS], strict=True) for row in pair]
    with MathVerifier(workers=2) as verifier:
        grade(verifier, HARD[:1])  # started
        with done_within(60):  # without a deadline for ever
            verdicts = verifier.grade_all([text for _, text, _ in rows], [gold for gold, *_ in rows])
        assert grade(verifier) == expected()
    assert [verdict.reward for verdict in verdicts] == expected(rows)
    assert {verdict.reason for verdict in verdicts[::2]} == {Reason.CORRECT, Reason.WRONG}
    assert {verdict.reason for verdict in verdicts[1::2]} == {Reason.TIMED_OUT}


def test_the_log_names_what_timed_out(verifier, caplog):
    with caplog.at_level(logging.WARNING, logger="swift_rlvr.math_answers"):
        assert verifier.grade_all([TOWERS[0]], ["5"])[0].reason is Reason.TIMED_OUT
    (record,) = caplog.records
    assert record.args == (TOWERS[0][len(r"\boxed{") : -1], "5")


def test_a_gold_that_times_out_costs_only_its_own_rows(verifier, caplog):
    tower = TOWERS[0][len(r"\boxed{") : -1]
    verdicts = verifier.grade_all([r"\boxed{\ln 5}", *(text for _, text, _ in HARD)], [tower, *(g for g, *_ in HARD)])
    assert [verdict.reward for verdict in verdicts[1:]] == expected()
    assert verdicts[0].reward != 1.0 and verdicts[0].reason in (Reason.BAD_GOLD, Reason.TIMED_OUT)
    assert tower in caplog.records[0].args


@pytest.mark.parametrize(
    "answer",
    [r"10^{10^{10}}", r"\binom{10^9}{5\cdot 10^8}", r"(10^{8})!", r"\sum_{k=1}^{10^{9}} \frac{1}{k}", "(x+y+z+1)^{900}",
     r"\begin{pmatrix}" + r"\\".join("&".join(["x^2"] * 40) for _ in range(10)) + r"\end{pmatrix}"],
)  # fmt: skip
def test_answers_that_eat_memory_or_time_do_no_harm(verifier, answer):
    verdicts = verifier.grade_all([rf"\boxed{{{answer}}}", HARD[0][1]], [r"\ln 5", HARD[0][0]])
    assert [verdict.reward for verdict in verdicts] == [0.0, 1.0]


# --- processes that are killed


def test_a_killed_worker_is_replaced(verifier):
    grade(verifier, HARD[:4])
    os.kill(pids(verifier)[1], signal.SIGKILL)
    assert grade(verifier) == expected()


def test_a_killed_nursery_is_replaced(verifier):
    grade(verifier, HARD[:4])
    old = pids(verifier)
    os.kill(old[0], signal.SIGKILL)
    assert grade(verifier) == expected()
    assert pids(verifier)[0] != old[0]
    assert all_end(old)


@pytest.mark.parametrize("which", [0, 1])
def test_processes_killed_during_a_batch(verifier, which):
    grade(verifier, HARD[:4])
    rows = [("5", TOWERS[0], 0.0), *HARD]
    victim = pids(verifier)[which]
    timer = threading.Timer(0.05, os.kill, (victim, signal.SIGKILL))
    timer.start()
    rewards = grade(verifier, rows)
    timer.join()
    assert rewards == expected(rows)
    assert grade(verifier) == expected()


# --- threads and forks


def test_off_the_main_thread_and_from_several_at_once(verifier):
    with ThreadPoolExecutor(6) as threads:
        results = list(threads.map(lambda _: grade(verifier, HARD[::4]), range(6)))
    assert results == [expected(HARD[::4])] * 6


def test_a_forked_child_grades_with_its_own_processes(verifier):
    assert grade(verifier, HARD[:8]) == expected(HARD[:8])
    mine = pids(verifier)
    child = os.fork()
    if child == 0:  # no assert may leave this branch
        right = False
        with contextlib.suppress(Exception):
            right = grade(verifier, HARD[::8]) == expected(HARD[::8]) and not set(pids(verifier)) & set(mine)
            verifier.close()
        os._exit(0 if right else 1)
    assert grade(verifier, HARD[::4]) == expected(HARD[::4])  # at the same time
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pids(verifier) == mine and all(map(is_running, mine))
    assert grade(verifier) == expected()


def grade_in_child(queue):
    with MathVerifier(workers=1) as verifier:
        queue.put((grade(verifier, HARD[::16]), pids(verifier)))


@pytest.mark.parametrize("method, daemon", [("spawn", False), ("fork", True)])
def test_in_multiprocessing_children(method, daemon):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=grade_in_child, args=(queue,), daemon=daemon)
    process.start()
    rewards, started = queue.get(timeout=60)
    process.join(20)
    assert rewards == expected(HARD[::16])
    assert process.exitcode == 0 and all_end(started)


# --- nothing is left behind


def test_close_ends_all_and_the_next_batch_starts_again(verifier):
    grade(verifier, HARD[:4])
    started = pids(verifier)
    verifier.close()
    verifier.close()
    assert all_end(started)
    assert grade(verifier, HARD[:4]) == expected(HARD[:4])


SCRIPT = """
import os, signal, sys, time
from swift_rlvr.math_answers import MathVerifier, shared_verifier
verifier = shared_verifier(2, 60.0, 60.0)
assert verifier.grade_all([r"\\boxed{2\\ln 3}"], [r"\\ln 9"])[0].reward == 1.0
print(verifier.pool._nursery.pid, *(worker.pid for worker in verifier.pool._pool), flush=True)
"""
ENDINGS = {  # what the script does next, the signal that it and its group get, its exit status
    "normal exit": ("", None, 0),
    "sys.exit": ("sys.exit(3)", None, 3),
    "SIGKILL while comparing": (
        r"import threading; threading.Timer(0.5, os.kill, (os.getpid(), 9)).start(); "
        r"verifier.grade_all([r'\boxed{9^{9^{9^{9}}}+\ln 2}'], ['5'])", None, -signal.SIGKILL,
    ),
    "Ctrl-C while comparing": (
        r"verifier.grade_all([r'\boxed{9^{9^{9^{9}}}+\ln 2}'], ['5'])", signal.SIGINT, -signal.SIGINT,
    ),
    "Ctrl-C while waiting": ("time.sleep(60)", signal.SIGINT, -signal.SIGINT),
}  # fmt: skip


@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_is_left_when_the_parent_ends(ending, tmp_path):
    last, sent, status = ENDINGS[ending]
    script = tmp_path / "script.py"
    script.write_text(SCRIPT + last + "\n")
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env={**os.environ, "PYTHONPATH": PACKAGES},
    )  # fmt: skip
    started = [int(pid) for pid in process.stdout.readline().split()]
    assert len(started) == 3
    if sent is not None:
        time.sleep(0.3)
        os.killpg(process.pid, sent)
    assert process.wait(20) == status, process.stderr.read()
    process.communicate()
    assert all_end(started)


def test_under_torchrun(tmp_path):
    pytest.importorskip("torch")
    script = tmp_path / "ranks.py"
    script.write_text(
        textwrap.dedent(
            r"""
            import os, pathlib
            from swift_rlvr.math_answers import grade_all, shared_verifier
            rank = os.environ["RANK"]
            golds = [rf"\ln {n * n}" for n in range(2, 12)]
            texts = [rf"\boxed{{2\ln {n}}}" for n in range(2, 12)]
            assert [verdict.reward for verdict in grade_all(texts, golds)] == [1.0] * 10
            pool = shared_verifier(None, 2.0, 5.0).pool
            pids = [pool._nursery.pid, *(worker.pid for worker in pool._pool)]
            pathlib.Path(__file__).with_name(f"rank{rank}").write_text(" ".join(map(str, pids)))
            """
        )
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", str(script)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": PACKAGES}
    )
    assert done.returncode == 0, done.stderr[-2000:]
    started = [int(pid) for rank in "01" for pid in (tmp_path / f"rank{rank}").read_text().split()]
    assert len(started) >= 4 and all_end(started)
