"""The command line."""

import sys


def main() -> None:
    """Run the command line, which ends with status 130 on Ctrl-C: also while it is imported, which
    takes seconds on a busy machine.
    """
    try:
        from swift_rlvr.cli.app import app

        app()
    except KeyboardInterrupt:
        sys.exit(130)
