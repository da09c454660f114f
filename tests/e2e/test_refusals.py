"""Launches that end before a training begins: refused by a check or for another launch, or killed.

In words, with nothing left behind, as in test_faults.py.
"""

import socket

import pytest

from e2e.programs import is_listening
from paths import DATASETS
from waiting import wait_until

pytestmark = pytest.mark.e2e


def test_of_two_launches_at_once_one_gets_the_ports_and_kill_9_takes_its_programs_with_it(
    launcher,
):
    """None of its programs listens yet when the other looks."""
    folders = {}
    for name in ("run-0", "run-1"):
        folder = launcher.folder / name
        folders[launcher.start("--output_dir", folder)] = folder

    wait_until(lambda: any(run.process.poll() is not None for run in folders), "a refusal")
    (refused,) = [run for run in folders if run.process.poll() is not None]
    (winner,) = [run for run in folders if run is not refused]
    launcher.refused(refused, "another launch at once", "another launch uses it")
    assert not folders[refused].exists()

    # torchrun and two ranks; the server and a process of its engine.
    for program, processes in (("trainer", 3), ("server", 2)):
        winner.wait_for(lambda: len(launcher.members(winner, program)) >= processes, program)  # noqa: B023
    winner.process.kill()
    winner.finish()
    assert not is_listening(launcher.port) and not is_listening(launcher.sync_port)
    wait_until(lambda: not any(launcher.temporary.iterdir()), "the end of its temporary files")


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
