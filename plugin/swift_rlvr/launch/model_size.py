"""The size of a model, by its files where they are on this machine, else by its name."""

import json
import math
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import read_json

# Of Qwen2.5-3B; 7B has 28, 32B 64.
LAYERS = 36
# Bytes of a .safetensors' header, as its own reader has the limit.
LONGEST_HEADER = 100_000_000


class ModelSize(NamedTuple):
    """What the formulas need of a model; the defaults are Qwen2.5's. context: in tokens; None where
    it is not known.

    embedding: numbers in the table of embeddings, 0 where it is not known. is_tied: the table is
    also the head that makes the logits.
    """

    parameters: int
    vocabulary: int = 150_000
    context: int | None = None
    layers: int = LAYERS
    embedding: int = 0
    is_tied: bool = True


def model_size(model: str) -> ModelSize | None:
    """The size of a model in a folder or in a hub's cache, by its files, else the one in its name.

    >>> model_size("Qwen/Qwen2.5-3B-Instruct").parameters, model_size("owner/large")
    (3000000000, None)
    """
    folder = model_folder(model)
    if folder is not None:
        with suppress(InputError, OSError, ValueError, KeyError, TypeError, AttributeError):
            return size_of_files(folder)
    return size_in_name(model)


def size_in_name(model: str) -> ModelSize | None:
    """The size that the name of a model tells.

    >>> size_in_name("Qwen/Qwen2.5-0.5B-Instruct").parameters
    500000000
    """
    # 3B, 0.5B, 135M, as a word of its own; not the B of Qwen3-30B-A3B, which is the second.
    name = model.rpartition("/")[2]
    match = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)([BM])(?![A-Za-z])", name, re.IGNORECASE)
    if match is None:
        return None
    unit = 1e9 if match[2].upper() == "B" else 1e6
    parameters = round(float(match[1]) * unit)
    # As Qwen2.5: about sqrt(P) / 27 wide, and below 5B with one table for both ends.
    width = math.sqrt(parameters) / 27
    size = ModelSize(parameters, is_tied=parameters < 5e9)
    return size._replace(embedding=round(size.vocabulary * width))


def size_of_files(folder: Path) -> ModelSize:
    """The size of the model in a folder.

    Raises:
        InputError: there are no weights in .safetensors. KeyError, ValueError and others: the files
        are not what they should be.
    """
    config = read_json(folder / "config.json")
    config = config | (config.get("text_config") or {})  # of a model that also sees
    parameters = 0
    for path in folder.glob("*.safetensors"):
        # Its header is a length in 8 bytes, then JSON.
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > LONGEST_HEADER:
                # A pointer of Git LFS, for example.
                raise InputError(f"{path}: no .safetensors")
            header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        parameters += sum(math.prod(tensor["shape"]) for tensor in header.values())
    if not parameters:
        raise InputError(f"{folder}: no weights in .safetensors")
    vocabulary, width = config["vocab_size"], config.get("hidden_size", 0)
    return ModelSize(
        parameters,
        vocabulary,
        config.get("max_position_embeddings"),
        config.get("num_hidden_layers", LAYERS),
        vocabulary * width,
        config.get("tie_word_embeddings", True),
    )


def model_folder(model: str, environ: Mapping[str, str] | None = None) -> Path | None:
    """The folder of a model: `model` itself, or where a hub's client has put it; None where it is
    not here.
    """
    environ = os.environ if environ is None else environ
    path = Path(model).expanduser()
    if path.is_dir():
        return path
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", model):
        return None
    owner, name = model.split("/")
    cache = Path(environ.get("HOME") or "~").expanduser() / ".cache"

    hugging_face = Path(environ.get("HF_HOME") or cache / "huggingface", "hub")
    if environ.get("HF_HUB_CACHE"):
        hugging_face = Path(environ["HF_HUB_CACHE"])
    folders = list(hugging_face.expanduser().glob(f"models--{owner}--{name}/snapshots/*"))

    modelscope = Path(environ.get("MODELSCOPE_CACHE") or cache / "modelscope").expanduser()
    folders += modelscope.glob(f"models/{owner}--{name}/snapshots/*")
    # Its older versions: a dot of the name is written ___.
    for part in ("models", "hub/models", "hub", "."):
        folders.append(modelscope / part / owner / name.replace(".", "___"))
    return next((folder for folder in folders if (folder / "config.json").is_file()), None)
