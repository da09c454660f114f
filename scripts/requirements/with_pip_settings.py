"""Runs a command, uv, with pip's settings in uv's variables: uv does not read pip's files, and the
index, mirror or folder of wheels that a machine is configured for is often only there. What is set
for uv itself counts more.

python with_pip_settings.py uv pip install ...
"""

import ast
import os
import shutil
import subprocess
import sys

VARIABLES = {
    "index-url": "UV_INDEX_URL",
    "extra-index-url": "UV_EXTRA_INDEX_URL",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
}


def pip_settings() -> dict[str, str]:
    """What `pip config list` says: PIP_* counts more than [install], and that more than
    [global].
    """
    for pip in [sys.executable, "-m", "pip"], ["pip3"], ["pip"]:
        if shutil.which(pip[0]):
            listed = subprocess.run([*pip, "config", "list"], capture_output=True, text=True)
            if listed.returncode == 0:
                break
    else:
        return {}
    sections: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listed.stdout.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        if section in sections:
            sections[section][name.removeprefix("default-")] = " ".join(
                ast.literal_eval(value).split()
            )
    merged = sections["global"] | sections["install"] | sections[":env:"]
    return {name: value for name, value in merged.items() if value}


def uv_variables(settings: dict[str, str]) -> dict[str, str]:
    """`settings` of pip as uv's variables."""
    variables = {VARIABLES[name]: value for name, value in settings.items() if name in VARIABLES}
    if "find-links" in settings:
        variables["UV_FIND_LINKS"] = ",".join(settings["find-links"].split())
    if "extra-index-url" in settings:
        # As pip does: a version may be in any index. uv takes only the first that has the name.
        variables["UV_INDEX_STRATEGY"] = "unsafe-best-match"
    return variables


if __name__ == "__main__":
    settings = pip_settings()
    no_index = (
        ["--no-index"]
        if settings.get("no-index", "0").lower() in ("1", "true", "yes", "on")
        else []
    )
    os.execvpe(sys.argv[1], [*sys.argv[1:], *no_index], uv_variables(settings) | os.environ)
