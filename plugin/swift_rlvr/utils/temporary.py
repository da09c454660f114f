"""A folder for the temporary files of programs, removed however the process that made it ends.

torchrun leaves a folder behind after each run, and a vLLM that is killed leaves its sockets. Nobody
removes them from the machine's own folder, where they add up.
"""

import getpass
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from swift_rlvr.utils.errors import InputError

# The path of a Unix socket has at most 107 bytes on Linux (unix(7)).
LONGEST_SOCKET = 107
# The longest name that a program gives a socket there: vLLM's is a UUID, and that of Python's
# multiprocessing is like /pymp-12345678/listener-12345678.
_SOCKET = "/12345678-1234-1234-1234-123456789012"
_PREFIX = "rlvr-"
# The bytes that the path of the machine's folder may have.
LONGEST = LONGEST_SOCKET - len(_SOCKET) - len(f"/{_PREFIX}12345678")
# In place of one that is too long.
SHORT = "/tmp"

# What removes the folder, after a line of input or when nobody is left who could send one. Processes
# that are killed with the one that made it may be writing for a moment longer.
_REMOVE = 'read -r line; rm -rf -- "$1" || { sleep 5; rm -rf -- "$1"; }'


def try_to_write(folder: str | Path) -> None:
    """Write a file into a folder that nobody sees. Raises OSError if there is no room for one, or it
    is not allowed.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"0" * 4096)


def place_for_temporary_files() -> str:
    """The folder in which the temporary folders of programs are made: TMPDIR, or /tmp where a socket in
    TMPDIR would have too long a path.

    Raises InputError where neither can be used.
    """
    try:
        place = tempfile.gettempdir()
        if len(os.fsencode(place)) > LONGEST:
            place = SHORT
        try_to_write(place)
    except OSError as error:
        problem = f"no temporary file can be written: {error.strerror or error}"
        raise InputError(problem, "TMPDIR") from error
    return place


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A new folder, which is gone after the block, also where this process is killed in it.

    Raises InputError where none can be made.
    """
    folder = tempfile.mkdtemp(prefix=_PREFIX, dir=place_for_temporary_files())
    remover = subprocess.Popen(
        ["/bin/sh", "-c", _REMOVE, "sh", folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        # Ctrl-C is for this process, and not for what cleans up after it.
        start_new_session=True,
    )
    try:
        yield Path(folder)
    finally:
        # A fork of this process may hold the pipe open: closing it here would not be its end.
        remover.communicate(b"\n")


@contextmanager
def in_temporary_folder() -> Iterator[None]:
    """In the block this process and those that it starts put their temporary files into such a folder."""
    with temporary_folder() as folder:
        variables = variables_of(folder, os.environ)
        before = {name: os.environ.get(name) for name in variables}, tempfile.tempdir
        os.environ.update(variables)
        tempfile.tempdir = str(folder)  # it may have been asked for before
        try:
            yield
        finally:
            for name, value in before[0].items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
            tempfile.tempdir = before[1]


def variables_of(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables with which programs put their temporary files into a folder.

    What torch has compiled stays where torch would keep it, for the next run.
    """
    variables = {"TMPDIR": str(folder)}
    if "TORCHINDUCTOR_CACHE_DIR" not in environ:
        cache = Path(tempfile.gettempdir(), f"torchinductor_{_user()}")
        variables["TORCHINDUCTOR_CACHE_DIR"] = str(cache)
    return variables


def _user() -> str:
    """As torch names the folder of its compiler."""
    try:
        return getpass.getuser().replace("/", "_")
    except (KeyError, ModuleNotFoundError, OSError):
        return f"uid_{os.getuid()}"
