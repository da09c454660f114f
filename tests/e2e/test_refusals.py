"""Launches that end before a training begins: refused by a check or for another launch, or stopped by a signal.

In words, with nothing left behind, as in test_faults.py.
"""

import socket
import time

import pytest

from e2e.programs import HANG
from paths import DATASETS

pytestmark = pytest.mark.e2e


def test_of_three_launches_at_once_one_gets_the_ports_until_a_signal_stops_its_programs(launcher):
    """None of their programs listens yet when the others look, nor when the signal comes."""
    folders = [launcher.folder / f"run-{number}" for number in range(3)]
    runs = [launcher.start("--output_dir", folder) for folder in folders]
    end = time.monotonic() + HANG
    while sum(run.process.poll() is None for run in runs) > 1 and time.monotonic() < end:
        time.sleep(0.1)
    (winner,) = [run for run in runs if run.process.poll() is None]
    for run, folder in zip(runs, folders, strict=True):
        if run is not winner:
            launcher.refused(run, "another launch at once", "another launch uses it")
            assert not folder.exists()

    for program in ("server", "trainer"):
        winner.wait_for(lambda: launcher.members(winner, program), program)  # noqa: B023
    winner.process.terminate()
    message = "Error: stopped by SIGTERM, before the first step"
    launcher.ends(winner, "SIGTERM while starting", 143, message)
    assert "There is no checkpoint to resume from" in winner.text()


def test_all_that_stands_in_the_way_is_named_before_anything_starts(launcher):
    """Ports that others hold, a model and a dataset that cannot be used: each more in
    tests/launch/test_doctor.py.
    """
    samples = (DATASETS / "countdown" / "tiny_train.jsonl").read_text()
    path = launcher.folder / "rows.jsonl"
    path.write_text(samples.replace('"target": ', '"goal": '))
    with (
        socket.create_server(("127.0.0.1", launcher.port)),
        socket.create_server(("127.0.0.1", launcher.sync_port)),
    ):
        run = launcher.start("--dataset", f"countdown:{path}", "--model", "/no/such/model")
        launcher.refused(run, "four things", "target")
    for cause in (launcher.port, launcher.sync_port, "/no/such/model"):
        assert str(cause) in run.text()
    assert not (launcher.output / "trainer.log").exists()
    assert not (launcher.output / "server.log").exists()
