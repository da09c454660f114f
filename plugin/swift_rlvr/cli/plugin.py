"""`swift-rlvr plugin`: where the file for --external_plugins is."""

import os
from importlib.util import find_spec

import typer

from swift_rlvr.utils.errors import InputError


def plugin() -> None:
    """Print the path of the plugin for ms-swift.

    swift rlhf --external_plugins "$(swift-rlvr plugin)" ...
    """
    # `find_spec` finds the file without running it, which would import ms-swift.
    spec = find_spec("rlvr_plugin")
    if spec is None or spec.origin is None:
        raise InputError(
            "rlvr_plugin.py is missing from this installation: pip install --force-reinstall swift-rlvr"
        )
    typer.echo(os.path.abspath(spec.origin))
