"""Where the files of this package are: in a checkout, or in a wheel that was installed."""

import re
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parents[1]
CHECKOUT = PACKAGE.parents[1]  # where this is one, and not an installed wheel
TINY_MODEL = PACKAGE / "share" / "tiny_model" / "weights"
# Paths of this repository, which a wheel holds as well, in a dataset's name too:
# countdown:datasets/...
_OURS = re.compile(r"(\w+:)?((?:datasets|plugin|scripts)/[^#]+)(#\d+)?")


def find_file(value: Any) -> Any:
    """A path of this repository, a dataset's name with one or a list of them, from any folder; else
    the value.

    It is a path below the current folder, below the checkout's, or one in the package that a wheel
    installed.
    """
    if isinstance(value, list):
        return [find_file(each) for each in value]
    match = _OURS.fullmatch(value) if isinstance(value, str) else None
    if match is None or Path(match[2]).exists():
        return value
    places = [CHECKOUT / match[2], PACKAGE / "share" / match[2]]
    places.append(PACKAGE.parent / match[2].removeprefix("plugin/"))
    path = next((place for place in places if place.exists()), match[2])
    return f"{match[1] or ''}{path}{match[3] or ''}"
