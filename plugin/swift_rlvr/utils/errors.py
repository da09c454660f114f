"""The error for anything the user supplied that cannot be used."""

import json
import os
import traceback
from collections.abc import Iterable
from difflib import get_close_matches
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from urllib.parse import unquote

from swift_rlvr.utils.files import CHECKOUT


class InputError(ValueError):
    """A setting, column or file that cannot be used; the message says what is accepted.

    `field`, the setting or column to blame, stands in front of `problem` in ``str(error)``, so a
    command line can show its flag instead: ``f"--batch_size: {error.problem}"``.
    """

    def __init__(self, problem: str, field: str | None = None):
        super().__init__(problem, field)
        self.problem, self.field = problem, field

    def __str__(self) -> str:
        return self.problem if self.field is None else f"{self.field}: {self.problem}"


class NotInstalledError(InputError):
    """A package that comes with an extra of swift-rlvr is not installed."""


def located(error: BaseException, file: str | None = None) -> str:
    """An error of somebody else's code in one line: the file, the line, the error.

    file: as for `where_raised`.
    """
    message = str(error)
    if isinstance(error, SyntaxError):
        message = error.msg  # the file and the line come before it
    text = " ".join(f"{type(error).__name__}: {message}".split()).removesuffix(":")
    return f"{where_raised(error, file)}: {text}"


def where_raised(error: BaseException, file: str | None = None) -> str:
    """The file and the line of somebody else's code that raised an error.

    file: the code that was run. The line is the last in it or in a file beside it, since a mistake
    is rarely in the library that it calls. Without it, the last line that has a file.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    # Frames of the import system have no file.
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<")
    ]
    if file is not None:
        folder = os.path.dirname(os.path.realpath(file))
        frames = [
            frame for frame in frames if os.path.dirname(os.path.realpath(frame.filename)) == folder
        ]
    if not frames:
        return file or "compiled code"
    return f"{frames[-1].filename}, line {frames[-1].lineno}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A remedy that names the nearest of the known names; empty if none is near."""
    close = get_close_matches(name, list(known), 1)
    return f"did you mean {close[0]}?" if close else ""


def require(package: str, extra: str, purpose: str) -> None:
    """NotInstalledError where a package that comes with an extra of swift-rlvr is missing; nothing
    is imported.
    """
    if find_spec(package) is None:
        name = package.replace("_", "-")
        raise NotInstalledError(
            f"{name} is not installed, and {purpose} needs it: {how_to_install(extra)}"
        )


def how_to_install(extra: str) -> str:
    """The command that installs what an extra needs, from where this copy was installed: it may be
    on no index.
    """
    try:
        source = json.loads(distribution("swift-rlvr").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return f"bash {CHECKOUT}/scripts/install.sh"
    url, vcs = source.get("url", ""), source.get("vcs_info", {})
    if source.get("dir_info", {}).get("editable"):
        return f"pip install -e '{unquote(url).removeprefix('file://')}[{extra}]'"
    if vcs:
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    return f"pip install 'swift-rlvr[{extra}]{' @ ' if url else ''}{url}'"


class DivergedError(RuntimeError):
    """Training has diverged: the loss, its gradient or the weights are no longer finite. The last
    checkpoint is kept.

    No mistake of the user, so no InputError: `swift-rlvr train` ends with status 3, not 2.
    """
