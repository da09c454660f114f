"""`python -m swift_rlvr.cli`: the command without its installed script."""

from swift_rlvr.cli import main

if (
    __name__ == "__main__"
):  # not in the worker processes of `score`, which import this module as well
    main()
