"""The folder for temporary files, and what is left of it."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import pytest

from paths import PLUGIN
from swift_rlvr.utils import temporary
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.temporary import in_temporary_folder, temporary_folder, variables_of

KEEPS_A_FILE = """
import subprocess, sys, time
from swift_rlvr.utils.temporary import temporary_folder

with temporary_folder() as folder:
    (folder / "socket").touch()
    print(folder, flush=True)
    time.sleep(1800)
"""


@pytest.mark.parametrize("error", [None, KeyError])
def test_it_is_gone_after_the_block(error):
    with pytest.raises(KeyError), temporary_folder() as folder:
        (folder / "torchelastic_1").mkdir()
        (folder / "torchelastic_1" / "file").touch()
        raise error or KeyError
    assert not folder.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_it_is_gone_when_the_process_is_killed(number):
    environment = os.environ | {"PYTHONPATH": str(PLUGIN)}
    command = [sys.executable, "-c", KEEPS_A_FILE]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    assert (folder / "socket").exists()
    process.send_signal(number)
    process.wait()
    process.stdout.close()
    end = time.monotonic() + 600
    while folder.exists() and time.monotonic() < end:
        time.sleep(0.05)
    assert not folder.exists()


def test_a_fork_that_lives_on_is_not_waited_for():
    with temporary_folder() as folder:
        pid = os.fork()
        if pid == 0:
            time.sleep(1800)
            os._exit(0)
    assert not folder.exists()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_a_tmpdir_in_which_no_socket_has_a_path_is_not_used(monkeypatch, tmp_path):
    """vLLM's sockets are named by a UUID; Python's manager, which ms-swift's preparation of datasets
    starts, has one in a folder of its own.
    """
    for length in (temporary.LONGEST, 100):
        base = Path(tempfile.mkdtemp(dir="/tmp"))
        place = base / ("x" * (length - len(str(base)) - 1))
        place.mkdir()
        monkeypatch.setenv("TMPDIR", str(place))
        monkeypatch.setattr(tempfile, "tempdir", None)
        with temporary_folder() as folder:
            environment = os.environ | variables_of(folder, os.environ)
            assert folder.parent == (place if length == temporary.LONGEST else Path("/tmp"))
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(str(folder / str(uuid.uuid4())))
            start = "import multiprocessing as m; m.Manager().shutdown()"
            subprocess.run([sys.executable, "-c", start], check=True, env=environment)
        assert not any(place.iterdir())
        place.rmdir()
        base.rmdir()


def test_where_nothing_can_be_written_tmpdir_is_named(monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", "/proc")
    with pytest.raises(InputError, match="TMPDIR: no temporary file can be written"):
        temporary.place_for_temporary_files()


def test_a_process_has_its_old_folder_back_after_the_block(monkeypatch):
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    before = dict(os.environ), tempfile.gettempdir()
    with in_temporary_folder():
        inside = tempfile.gettempdir()
        assert os.environ["TMPDIR"] == inside != before[1]
    assert (dict(os.environ), tempfile.gettempdir()) == before
    assert not Path(inside).exists()


def test_what_torch_has_compiled_stays_where_torch_keeps_it(tmp_path, monkeypatch):
    cache = pytest.importorskip("torch._inductor.runtime.cache_dir_utils")
    variables = variables_of(tmp_path, {})
    assert variables["TORCHINDUCTOR_CACHE_DIR"] == cache.default_cache_dir()
    assert "TORCHINDUCTOR_CACHE_DIR" not in variables_of(
        tmp_path, {"TORCHINDUCTOR_CACHE_DIR": "/mine"}
    )
