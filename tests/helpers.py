"""What tests of several folders share: the shell scripts, run with a clean environment, and the flags of a command."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

from paths import ROOT


def run(name: str, *arguments: str, gpus: int = 0, folder: Path | None = None, **settings: str):
    """Run a script of `scripts/` with a clean environment, in `folder`.

    gpus > 0 puts a stand-in for nvidia-smi, which lists so many, first on the PATH; `folder` must then be given.
    settings: further environment variables.
    """
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "VENV": sys.prefix, **settings}
    if gpus:
        smi = folder / "nvidia-smi"
        smi.write_text("#!/bin/sh\nprintf '%s\\n' " + " ".join(map(str, range(gpus))) + "\n")
        smi.chmod(0o755)
        environment["PATH"] = f"{folder}:{environment['PATH']}"
    else:
        environment["CUDA_VISIBLE_DEVICES"] = ""
    command = ["bash", str(ROOT / "scripts" / name), *arguments]
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=60)


def flags(command: str) -> dict[str, str]:
    """`... --name value value ...` -> {name: "value value"}; of a flag given twice, the last."""
    values: dict[str, list[str]] = {}
    for word in shlex.split(command):
        if word.startswith("--"):
            values[word[2:]] = current = []
        elif values:
            current.append(word)
    return {name: " ".join(words) for name, words in values.items()}
