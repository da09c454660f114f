"""`python -m swift_rlvr.cli`: the command without its installed script."""

from swift_rlvr.cli import main

# The worker processes of `score` import this module as well, under another name.
if __name__ == "__main__":
    main()
