"""Where the files of this package are: in a checkout, or in a wheel that was installed."""

import re
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
# The root of the repository, where this is a checkout and not an installed wheel.
CHECKOUT = PACKAGE.parents[1]
# The tiny Countdown model: 0.9 million parameters, made by scripts/build_tiny_model.py, so that
# everything runs without a download.
TINY_MODEL = PACKAGE / "share" / "tiny_model" / "weights"

# A path of this repository, alone or in a dataset's name: countdown:datasets/x.jsonl#100.
_REPOSITORY_PATH = re.compile(r"(\w+:)?((?:datasets|plugin|scripts)/[^#]+)(#\d+)?")


def existing_folder(path: Path) -> Path:
    """The last folder on the way to a path that exists; the path itself, if it is a folder."""
    path = path.absolute()
    return next(folder for folder in (path, *path.parents) if folder.is_dir())


def find_file(value: Any) -> Any:
    """A path of this repository, where it is on this machine, whatever the current folder.

    Looked for below the current folder, then in the checkout, then in the package that a wheel
    installed. A dataset's name keeps what stands around its path; a list is looked up item by
    item; anything else is returned as it is.
    """
    if isinstance(value, list):
        return [find_file(item) for item in value]
    match = _REPOSITORY_PATH.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return value
    task, path, limit = match.groups(default="")
    if Path(path).exists():
        return value
    places = (
        CHECKOUT / path,
        PACKAGE / "share" / path,
        PACKAGE.parent / path.removeprefix("plugin/"),
    )
    for place in places:
        if place.exists():
            return f"{task}{place}{limit}"
    return value
