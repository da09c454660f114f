"""What can go wrong with a run, made to go wrong with the real programs: `swift-rlvr train
scripts/configs/...`.

Each fault must be told in words, end everything that was started, and leave no process and no port.
Where a whole checkpoint exists the run goes on from it. `-rP` shows how many seconds each takes;
scripts/README.md has the table.
"""

import signal
import socket
import time

import psutil
import pytest
from swift_rlvr.runs.folder import missing, whole_checkpoints
from swift_rlvr.utils.jsonl import read_jsonl

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(7200)]


def server_is_up(launches) -> bool:
    log = launches.output / "server.log"
    return log.exists() and "Uvicorn running on" in log.read_text(errors="replace")


def rank(launches, run, number: int) -> psutil.Process:
    return next(
        p for p in launches.members(run, "trainer") if p.environ().get("LOCAL_RANK") == str(number)
    )


def wait_in_sync(launches, run) -> None:
    """Until the trainer stands in the middle of an update, which `launches.hold` keeps it in."""
    launches.hold.touch()
    run.wait_for(launches.holding.exists, 1500, "an update of the weights")


def release(launches) -> None:
    launches.hold.unlink()
    launches.holding.unlink()


def test_one_run_survives_one_fault_after_another(launches):
    """Each start goes on from the last whole checkpoint of the one before, and at the end the curve
    has every step.
    """
    proxy = {
        "http_proxy": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
        "all_proxy": "http://127.0.0.1:9",
    }
    with (
        socket.socket() as other
    ):  # another training's torchrun, unless something has the port already
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("127.0.0.1", 29500))
            other.listen()
        except OSError:
            pass
        run = launches.start(**proxy, MASTER_PORT="")
        launches.reaches(run, 3)

    # Two runs at once: the second is refused, in seconds, and the first goes on.
    start = time.monotonic()
    second = launches.start()
    assert second.finish(120) == 2
    print(f"two runs at once: the second is refused after {time.monotonic() - start:.1f} s")
    assert str(launches.port) in second.text() and "failed" in second.text(), second.text()
    assert run.process.poll() is None

    # kill -9 of the supervisor.
    reached = launches.step()
    start = time.monotonic()
    run.process.kill()
    run.finish(60)
    print(f"kill -9 of the supervisor: nothing is left after {time.monotonic() - start:.1f} s")
    last = int(whole_checkpoints(launches.output)[-1].name.rpartition("-")[2])
    assert reached - last <= 2

    # Going on from there; SIGTERM while completions are generated.
    run = launches.start(RESUME=1)
    launches.reaches(run, reached + 2)
    assert f"going on from {launches.output}/checkpoint-{last}" in run.text()
    assert launches.logged() == list(range(1, launches.step() + 1))
    run.process.terminate()
    launches.loud(run, "SIGTERM while generating", "Error: stopped by SIGTERM, after step", 143)
    assert "RESUME=1" in run.text()

    # Ctrl-C while the weights go to the server. A checkpoint that was not written to its end is
    # skipped.
    broken = whole_checkpoints(launches.output)[-1]
    (broken / "rng_state_1.pth").unlink()
    reached = launches.step()
    run = launches.start(RESUME=1)
    launches.reaches(run, reached + 2)
    wait_in_sync(launches, run)
    run.process.send_signal(signal.SIGINT)
    launches.loud(run, "Ctrl-C while syncing", "Error: stopped by SIGINT, after step", 130)
    release(launches)

    # The server is killed while it gets weights, and is started again once; then a rank is killed.
    run = launches.start(RESUME=1, RESTARTS=1)
    launches.reaches(run, launches.step() + 3)
    wait_in_sync(launches, run)
    reached = launches.step()
    start = time.monotonic()
    for process in launches.members(run, "server"):
        process.kill()
    run.wait_for(
        lambda: "Error: the rollout server was killed by SIGKILL" in run.text(), 60, "the message"
    )
    print(f"server killed while syncing: says so after {time.monotonic() - start:.1f} s")
    release(launches)
    run.wait_for(lambda: run.text().count("going on from") == 2, 60, "the restart")
    assert "the rollout server is gone: restart 1 of 1\n" in run.text()
    launches.reaches(run, reached + 2)
    rank(launches, run, 1).kill()
    launches.loud(run, "rank killed", "Error: rank 1 of the trainer was killed by SIGKILL")
    assert "RESUME=1" in run.text()

    # The next checkpoint cannot be written.
    launches.full.touch()
    run = launches.start(RESUME=1)
    run.wait_for(lambda: "Error: " in run.text(), 1500, "the first checkpoint")
    launches.loud(run, "disk full", "Error: rank ")
    launches.full.unlink()
    assert "File too large" in run.text(), run.text()
    half = max(
        launches.output.glob("checkpoint-*[0-9]"),
        key=lambda path: int(path.name.rpartition("-")[2]),
    )
    assert missing(half) is not None and f"{half} is skipped" in run.text()

    # And to the end.
    last = int(whole_checkpoints(launches.output)[-1].name.rpartition("-")[2])
    run = launches.start("--max_steps", str(last + 3), RESUME=1)
    assert run.finish(1500) == 0, run.text()[-4000:]
    assert launches.logged() == list(range(1, last + 4))
    for name in ("completions.jsonl", "records.jsonl"):
        rows = [row["step"] for _, row in read_jsonl(launches.output / name)]
        steps = [int(step[-1] if isinstance(step, list) else step) for step in rows]
        assert sorted(set(steps)) == list(range(1, last + 4)) and steps == sorted(steps)
        # ms-swift writes the last step's completions a second time when it ends.
        assert len(steps) == (last + 4 if name == "completions.jsonl" else (last + 3) * 16)


def test_a_server_that_dies_in_its_start_and_signals_in_the_start(launches):
    run = launches.start()
    run.wait_for(lambda: launches.members(run, "server"), 120, "the server's process")
    run.process.send_signal(signal.SIGINT)
    launches.loud(
        run, "Ctrl-C while starting", "Error: stopped by SIGINT, before the first step", 130
    )
    assert "There is no checkpoint to go on from" in run.text()

    launches.output = launches.folder / "second"
    run = launches.start("--output_dir", str(launches.output))
    run.wait_for(lambda: launches.members(run, "server"), 120, "the server's process")
    for process in launches.members(run, "server"):
        process.kill()
    launches.loud(
        run, "server killed while starting", "Error: the rollout server was killed by SIGKILL"
    )

    launches.output = launches.folder / "third"
    run = launches.start("--output_dir", str(launches.output))
    run.wait_for(lambda: launches.members(run, "trainer"), 120, "the trainer's process")
    run.process.terminate()
    launches.loud(
        run, "SIGTERM while starting", "Error: stopped by SIGTERM, before the first step", 143
    )


@pytest.fixture
def with_shared_server(rollout_server, launches):
    """A launch with START_SERVER=0, on the server of all tests."""
    launches.port, launches.sync_port = rollout_server.port, rollout_server.group_port
    return launches


def test_updates_that_are_dropped_show_in_the_log_probabilities(with_shared_server):
    launches = with_shared_server
    run = launches.start("--learning_rate", "3e-3", START_SERVER=0)
    launches.reaches(run, 2)
    launches.drop.touch()
    since = launches.step()
    run.wait_for(lambda: "Error: " in run.text(), 1500, "the message")
    assert run.finish(60) == 1
    print(f"updates dropped without a word: says so after {launches.step() - since} steps")
    assert "samples with other weights than the trainer's" in run.text(), run.text()[-4000:]
    rows = [row for _, row in read_jsonl(launches.output / "logging.jsonl")]
    assert all(row["rollout_correction/k3_kl"] < 1e-4 for row in rows[:2])


def test_an_update_that_fails_in_the_server_ends_the_run(rollout_server, with_shared_server):
    launches = with_shared_server
    run = launches.start(START_SERVER=0)
    launches.reaches(run, 1)
    rollout_server.fault.touch()
    start = time.monotonic()
    try:
        run.wait_for(lambda: "Error: " in run.text(), 120, "the message")
        print(f"update failed in the server: says so after {time.monotonic() - start:.1f} s")
        assert run.finish(60) == 1
    finally:
        rollout_server.fault.unlink()
    assert "the rollout server could not load the new weights" in run.text()
    assert "no room for the new weights" in run.text()
    assert rollout_server.is_healthy()


@pytest.mark.parametrize("name", ["port", "sync_port"])
def test_a_port_that_is_taken_is_named_before_anything_starts(launches, name):
    with socket.create_server(("127.0.0.1", getattr(launches, name))):
        refused(launches, f"{name} taken", str(getattr(launches, name)))


@pytest.mark.parametrize(
    ("fault", "message", "written"),
    [
        ("malformed row", "line 1", ""),
        ("missing column", "target", '"goal": '),
        ("unreadable gold", "target", '"target": "six", "was": '),
    ],
)
def test_a_file_that_cannot_be_trained_on_is_refused(launches, request, fault, message, written):
    samples = request.config.rootpath / "datasets" / "countdown" / "tiny_train.jsonl"
    path = launches.folder / "rows.jsonl"
    path.write_text(samples.read_text().replace('"target": ', written))
    refused(launches, fault, message, "--dataset", f"countdown:{path}")


def test_a_wrong_model_path_is_refused(launches):
    refused(launches, "wrong model path", "/no/such/model", "--model", "/no/such/model")


def refused(launches, fault: str, message: str, *flags: str) -> None:
    """The launch ends with status 2, names the cause, and has started nothing."""
    start = time.monotonic()
    run = launches.start(*flags)
    assert run.finish(120) == 2, run.text()
    print(f"{fault}: refused after {time.monotonic() - start:.1f} s")
    assert message in " ".join(run.text().split()) and "failed" in run.text(), run.text()
    assert (
        not (launches.output / "trainer.log").exists()
        and not (launches.output / "server.log").exists()
    )
