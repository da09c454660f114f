"""torch's compiler for CPUs, where it cannot compile."""

import sys
from collections.abc import MutableMapping

# torch's own: its compiler does nothing.
DISABLED = "TORCHDYNAMO_DISABLE"


def avoid_inductor(environ: MutableMapping[str, str], prefix: str = sys.prefix) -> None:
    """Let torch compile nothing where a path has white space; whoever sets the variable is obeyed.

    torch 2.13 hands g++ its include folders unquoted, and they are in the environment. vLLM compiles
    what counts log-probabilities, in the first step, and ends.

    >>> environ = {}
    >>> avoid_inductor(environ, "/home/me/My Projects/swift-rlvr/.venv-cpu")
    >>> environ
    {'TORCHDYNAMO_DISABLE': '1'}
    """
    if any(character.isspace() for character in prefix):
        environ.setdefault(DISABLED, "1")
