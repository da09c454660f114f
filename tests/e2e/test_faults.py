"""What can go wrong with a run, made to go wrong with the real programs: `swift-rlvr train
scripts/configs/...`.

Each fault must be told in words, end everything that was started, and leave no process and no port.
Where a whole checkpoint exists the run goes on from it. `-rP` shows how many seconds each takes. kill -9
of the launcher is in test_refusals.py. What needs no real program is in tests/launch/test_supervisor.py,
with small ones in their place.
"""

import contextlib
import socket
import time

import pytest

from e2e.conftest import HELD_OUT
from e2e.programs import UNCOMPILED, RolloutServer, interrupt, kill_all
from swift_rlvr.runs.alarms import SHORT
from swift_rlvr.runs.folder import missing, whole_checkpoints
from swift_rlvr.utils.jsonl import read_jsonl

pytestmark = pytest.mark.e2e

# Few completions of the tiny model are as long, until `alarm_ends_the_run` cuts all of them off.
LONG = ("--max_completion_length", 320)
PROXIES = {
    "http_proxy": "http://127.0.0.1:9",
    "https_proxy": "http://127.0.0.1:9",
    "all_proxy": "http://127.0.0.1:9",
}


@contextlib.contextmanager
def another_training_on_29500():
    """Takes torchrun's own port, unless something has it already."""
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with contextlib.suppress(OSError):
            other.bind(("127.0.0.1", 29500))
            other.listen()
        yield


def last_whole(launcher):
    return whole_checkpoints(launcher.output)[-1]


def step_of_checkpoint(path) -> int:
    return int(path.name.rpartition("-")[2])


@pytest.fixture
def start_server(tmp_path):
    """Starts a rollout server that outlives a training, and dies in the last fault."""
    servers: list[RolloutServer] = []

    def start() -> RolloutServer:
        servers.append(RolloutServer(tmp_path, **UNCOMPILED))
        return servers[-1]

    yield start
    for server in servers:
        server.command.kill()


# Each further start is a server and two ranks, a minute of a processor that is nearly all imports.
EVERY_FAULT = pytest.param(True, marks=pytest.mark.weekly, id="every fault")


@pytest.mark.parametrize("every_fault", [pytest.param(False, id="the commonest"), EVERY_FAULT])
def test_one_run_survives_one_fault_after_another(launcher, start_server, every_fault):
    """Each start goes on from the last whole checkpoint of the one before; at the end the log has
    every step once.
    """
    server_is_killed_during_an_update(launcher)
    # From here on one server for all starts. Those before had their own: one that outlived an
    # interrupted update would wait for the rest of it until its time limit, and meet no other trainer.
    server = start_server()
    launcher.use(server)
    if every_fault:
        disk_is_full(launcher)
    alarm_ends_the_run(launcher)
    last = launcher.step()
    assert launcher.logged() == list(range(1, last + 1))
    check_logs_of_completions(launcher, last)
    if every_fault:
        updates_are_dropped_and_the_server_dies_in_an_evaluation(launcher, server)


def server_is_killed_during_an_update(launcher) -> None:
    """The launcher starts both programs again, and Ctrl-C comes in a later update of these."""
    with another_training_on_29500():
        run = launcher.start(*LONG, **PROXIES, MASTER_PORT="", RESTARTS=1)
        launcher.wait_for_step(run, 3)

    # Two runs in one folder: the second is refused, and the first goes on.
    second = launcher.start()
    assert second.finish() == 2 and "another run is writing to it" in second.text()
    assert run.process.poll() is None

    launcher.wait_in_sync(run)
    reached = launcher.step()
    start = time.monotonic()
    kill_all(launcher.members(run, "server"))
    message = "Error: the rollout server was killed by SIGKILL"
    run.wait_for(lambda: message in run.text(), "the message")
    print(f"server killed while syncing: says so after {time.monotonic() - start:.1f} s")
    launcher.release()
    run.wait_for(lambda: "resuming from" in run.text(), "the restart")
    assert "the rollout server is gone: restart 1 of 1\n" in run.text()
    launcher.wait_for_step(run, reached + 1)
    assert launcher.logged() == list(range(1, launcher.step() + 1))

    # The next start shall find two, of which the last is broken, and the alarm's first steps in the other.
    def two_are_late_enough() -> bool:
        steps = [step_of_checkpoint(path) for path in whole_checkpoints(launcher.output)]
        return len(steps) >= 2 and steps[-2] >= SHORT

    run.wait_for(two_are_late_enough, "two checkpoints")

    launcher.wait_in_sync(run)
    reached = launcher.step()
    interrupt(run)
    launcher.ends(run, "Ctrl-C while syncing", 130, "Error: stopped by SIGINT, after step")
    assert "RESUME=1" in run.text()
    assert reached - step_of_checkpoint(last_whole(launcher)) <= 2
    launcher.release()


def disk_is_full(launcher) -> None:
    """The run goes on from the checkpoint before the last, which was not written to its end. The
    next one cannot be written: a rank fails, and torchrun ends the other.
    """
    (last_whole(launcher) / "rng_state_1.pth").unlink()
    checkpoint = last_whole(launcher)
    (launcher.faults / "full").touch()
    run = launcher.start(*LONG, RESUME=1)
    run.wait_for(lambda: "Error: " in run.text(), "the first checkpoint")
    launcher.ends(run, "disk full", 1, "Error: rank ")
    (launcher.faults / "full").unlink()
    assert f"resuming from {checkpoint}" in run.text()
    half = max(launcher.output.glob("checkpoint-*[0-9]"), key=step_of_checkpoint)
    assert missing(half) is not None
    assert f"{half} is skipped" in run.text()


def alarm_ends_the_run(launcher) -> None:
    """Nearly all completions are cut off from now on, and at the start few were: the alarm knows the
    steps of the starts before. Fewer tokens would leave no room for any right answer, and the launcher
    would refuse them.
    """
    run = launcher.start(*("--max_completion_length", 27), RESUME=1, SWIFT_RLVR_STOP_ON_ALARM=1)
    assert run.finish() == 0, run.text()[-4000:]
    (alarm, *_) = [row for _, row in read_jsonl(launcher.output / "alarms.jsonl")]
    assert alarm["kind"] == "length"
    assert len(alarm["completions"]) == 3
    assert " ".join(alarm["message"].split()) in " ".join(run.text().split())
    log = (launcher.output / "trainer.log").read_text(errors="replace")
    assert f"stopping at step {alarm['step']} because of an alarm: length" in log
    assert alarm["step"] <= launcher.step() <= alarm["step"] + 1
    assert step_of_checkpoint(last_whole(launcher)) == launcher.step(), "the end is saved"
    assert not (launcher.output / "best").exists(), "nothing was held out"


def check_logs_of_completions(launcher, last: int) -> None:
    for name in ("completions.jsonl", "records.jsonl"):
        steps = []
        for _, row in read_jsonl(launcher.output / name):
            step = row["step"]
            steps.append(int(step[-1] if isinstance(step, list) else step))
        assert sorted(set(steps)) == list(range(1, last + 1))
        assert steps == sorted(steps)
        # ms-swift writes the last step's completions a second time when it ends.
        assert len(steps) == (last + 1 if name == "completions.jsonl" else last * 16)


def updates_are_dropped_and_the_server_dies_in_an_evaluation(launcher, server) -> None:
    """Nothing says that an update was dropped but the log-probabilities. The server's death ends
    rank 0, and the other rank does not wait for it.
    """
    evaluating = HELD_OUT | {"SWIFT_RLVR_HELD_OUT_EVERY": 1}
    callbacks = ("--callbacks", "reward_reasons", "held_out")
    run = launcher.start(*LONG, *callbacks, RESUME=1, **evaluating)
    reached = launcher.step()
    launcher.wait_for_step(run, reached + 1)
    before = launcher.step()
    (launcher.faults / "drop").touch()
    warning = "does the rollout server get every update of the weights?"
    run.wait_for(lambda: warning in run.text(), "the warning")
    print(f"updates dropped without a word: a warning after {launcher.step() - before} steps")
    (launcher.faults / "drop").unlink()
    kill_all(server.command.family())
    launcher.ends(run, "server killed while evaluating", 1, "Error: ")
    assert "Connection" in (launcher.output / "trainer.log").read_text(errors="replace")
    for row in [row for _, row in read_jsonl(launcher.output / "logging.jsonl")][:2]:
        assert row["rollout_correction/k3_kl"] < 1e-4
