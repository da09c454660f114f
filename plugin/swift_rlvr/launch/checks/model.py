"""Checks of the model: its files and its lengths."""

import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from swift_rlvr.errors import InputError
from swift_rlvr.jsonl import read_json
from swift_rlvr.launch import estimate, sizes
from swift_rlvr.launch.checks import CheckResult, Launch, failed, judged, passed

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "tokenizer_config.json")
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


def files(launch: Launch) -> Iterator[CheckResult]:
    """A model's folder has all it needs, or its name can be one on a hub; adapters too."""
    name = str(launch.settings.get("model") or "")
    if not name:
        yield failed("model", "no model is named", "set MODEL or --model to a folder or a hub's id")
        return
    folder = sizes.model_folder(name)
    if folder is not None:
        yield _complete(folder, name)
    elif not re.fullmatch(r"[\w.-]+/[\w.-]+", name) or Path(name.partition("/")[0]).is_dir():
        yield failed("model", f"there is no folder {name}", _nearest(Path(name).expanduser()))
    else:
        model = sizes.model_size(name)
        size = f", {sizes.gigabytes(2 * model.parameters)}" if model else ""
        yield passed("model", f"{name} comes from {launch.hub}{size}")
    for adapter in launch.listed("adapters"):
        if Path(adapter, "adapter_config.json").is_file():
            yield passed("adapter", adapter)
        else:
            yield failed("adapter", f"{adapter} has no adapter_config.json", _nearest(Path(adapter)))


def _complete(path: Path, name: str) -> CheckResult:
    if not (path / "config.json").is_file():
        if (path / "adapter_config.json").is_file():
            base = _read(path / "adapter_config.json").get("base_model_name_or_path") or "BASE"
            remedy = f"--model {base} --adapters {name}, or merge it: swift export --merge_lora true"
            return failed("model", f"{name} is a LoRA adapter, not a model", remedy)
        checkpoint = max(path.glob("checkpoint-*"), default=None)
        remedy = str(checkpoint or "name a folder with config.json, weights, tokenizer")
        return failed("model", f"{name} has no config.json", remedy)
    missing = [] if any((path / file).is_file() for file in TOKENIZERS) else ["a tokenizer"]
    if not any(file for pattern in WEIGHTS for file in path.glob(pattern)):
        missing.append("weights (.safetensors)")
    try:
        read_json(path / "config.json")
    except InputError as error:
        return failed("model", str(error), "download the model again")
    shards = set(_read(path / "model.safetensors.index.json").get("weight_map", {}).values())
    missing += sorted(shard for shard in shards if not (path / shard).is_file())
    if missing:
        remedy = "download the model again, or name another folder"
        return failed("model", f"{name} lacks {', '.join(missing)}", remedy)
    model = sizes.model_size(str(path))
    return passed("model", f"{name}, {model.parameters:,} parameters" if model else name)


def _read(path: Path) -> dict:
    """The content of a JSON file, empty where there is none."""
    try:
        return read_json(path)
    except InputError:
        return {}


def _nearest(path: Path) -> str:
    """A remedy that names the folder that was meant, as far as one can tell."""
    parent = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.is_dir())
    wanted = path.absolute().relative_to(parent).parts
    close = get_close_matches(wanted[0], [each.name for each in parent.iterdir() if each.is_dir()], 1) if wanted else []
    found = parent.joinpath(*close, *wanted[1:])
    found = found if close and found.is_dir() else parent.joinpath(*close)
    return f"the nearest folder is {found}; relative paths count from {Path.cwd()}"


def lengths(launch: Launch) -> Iterator[CheckResult]:
    """Completion, prompt and context."""
    remedy = "a smaller max_completion_length, or a larger vllm_max_model_len"
    yield judged("lengths", estimate.tokens(launch.plan), remedy)


CHECKS = (files, lengths)
