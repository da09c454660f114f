"""Packages of other people, as an installation leaves them: a folder for the PYTHONPATH, without
any installing.
"""

import os
import subprocess
import sys
from pathlib import Path

from paths import PLUGIN


def distribution(
    folder: Path,
    name: str,
    modules: dict[str, str],
    rewards: dict[str, str] | None = None,
    tasks: dict | None = None,
) -> Path:
    """Write the distribution `name` with these modules and entry points into a folder for the
    path.
    """
    information = folder / f"{name}-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = []
    for group, entries in (("swift_rlvr.rewards", rewards), ("swift_rlvr.tasks", tasks)):
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in (entries or {}).items())]
    (information / "entry_points.txt").write_text("\n".join(lines) + "\n")
    for module, text in modules.items():
        path = folder / module
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def python(
    *arguments: str,
    path: Path | str,
    check: bool = True,
    folder: Path | None = None,
    **variables: str,
) -> subprocess.CompletedProcess:
    """Run Python in a process of its own and in a folder, with what lies in `path` installed beside
    this package.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("EXTERNAL_", "RLVR_"))
    }
    environment |= {
        "PYTHONPATH": os.pathsep.join([str(path), str(PLUGIN)]),
        "COLUMNS": "200",
        **variables,
    }
    result = subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=folder, capture_output=True, text=True
    )
    assert not check or result.returncode == 0, result.stdout + result.stderr
    return result
