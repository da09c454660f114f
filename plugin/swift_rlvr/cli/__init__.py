"""The command line."""

import errno
import os
import sys


def main() -> None:
    """Run the command line, which ends with status 130 on Ctrl-C: also while it is imported, which
    takes seconds on a busy machine.
    """
    try:
        from swift_rlvr.cli.app import app

        try:
            app()
        finally:
            # Here and not at the end of Python, whose errors nobody catches.
            if sys.stdout is not None:  # `>&-` closes it
                sys.stdout.flush()
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EPIPE):
            raise
        # What is still to be written would fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno == errno.EPIPE:  # `| head` has read enough
            sys.exit(1)
        print(f"Error: cannot write the output: {error.strerror}", file=sys.stderr)
        sys.exit(2)
