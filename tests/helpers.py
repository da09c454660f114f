"""What tests of several folders share: running the shell scripts, and reading the flags of a command."""

import hashlib
import os
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from paths import ROOT


def run(name: str, *arguments: str, gpus: int = 0, folder: Path | None = None, **settings: str):
    """Run a script of `scripts/`, in `folder`, with nothing in its environment but PATH, HOME, VENV and `settings`.

    gpus > 0 puts a stand-in for nvidia-smi, which lists so many, first on the PATH; `folder` must then be given.
    """
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    environment = kept | {"VENV": installed().name} | settings
    if gpus:
        smi = folder / "nvidia-smi"
        smi.write_text("#!/bin/sh\nprintf '%s\\n' " + " ".join(map(str, range(gpus))) + "\n")
        smi.chmod(0o755)
        environment["PATH"] = f"{folder}:{environment['PATH']}"
    else:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    command = ["bash", str(ROOT / "scripts" / name), *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60)


@cache
def installed() -> TemporaryDirectory:
    """The environment of the tests under another path, with the stamp that keeps scripts from installing into it."""
    folder = TemporaryDirectory()
    for entry in Path(sys.prefix).iterdir():
        (Path(folder.name) / entry.name).symlink_to(entry)
    content = b"".join((ROOT / path).read_bytes() for path in ("scripts/requirements/cpu.lock", "setup.cfg"))
    (Path(folder.name) / f".installed-{hashlib.sha256(content).hexdigest()[:16]}").touch()
    return folder


def flags(command: str) -> dict[str, str]:
    """`... --name value value ...` -> {name: "value value"}; of a flag given twice, the last."""
    values: dict[str, list[str]] = {}
    for word in shlex.split(command):
        if word.startswith("--"):
            values[word[2:]] = current = []
        elif values:
            current.append(word)
    return {name: " ".join(words) for name, words in values.items()}
