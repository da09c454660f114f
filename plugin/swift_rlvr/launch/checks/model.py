"""Checks of the model: its files, its chat template, and its lengths."""

import json
import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from swift_rlvr.errors import InputError
from swift_rlvr.jsonl import read_json
from swift_rlvr.launch import estimate, sizes
from swift_rlvr.launch.checks import Case, Finding, failed, passed, warning

TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt", "tokenizer_config.json")
WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


def files(case: Case) -> Iterator[Finding]:
    """A model's folder has all it needs, or its name can be one on a hub; adapters too."""
    name = case.settings.get("model")
    if not name:
        yield failed("model", "no model is named", "set MODEL or --model to a folder or a hub's id")
        return
    yield from _folder(str(name), case)
    for adapter in case.listed("adapters"):
        if Path(adapter, "adapter_config.json").is_file():
            yield passed("adapter", adapter)
        else:
            yield failed("adapter", f"{adapter} has no adapter_config.json", _nearest(Path(adapter)))


def _folder(name: str, case: Case) -> Iterator[Finding]:
    path = Path(name).expanduser()
    if not path.is_dir():
        owner = Path(name.partition("/")[0])
        if not re.fullmatch(r"[\w.-]+/[\w.-]+", name) or owner.is_dir():
            yield failed("model", f"there is no folder {name}", _nearest(path))
        elif (cached := sizes.model_folder(name)) is not None:
            yield from _complete(cached, name)
        else:
            shape = sizes.model_shape(name)
            size = f", {sizes.gigabytes(2 * shape.parameters)}" if shape else ""
            yield passed("model", f"{name} comes from {case.hub}{size}")
        return
    yield from _complete(path, name)


def _complete(path: Path, name: str) -> Iterator[Finding]:
    if not (path / "config.json").is_file():
        if (path / "adapter_config.json").is_file():
            try:
                base = read_json(path / "adapter_config.json").get("base_model_name_or_path")
            except InputError:
                base = None
            remedy = f"--model {base or 'BASE'} --adapters {name}, or merge it: swift export --merge_lora true"
            yield failed("model", f"{name} is a LoRA adapter, not a model", remedy)
        else:
            checkpoints = sorted(folder.name for folder in path.glob("checkpoint-*"))
            remedy = (
                f"{path / checkpoints[-1]}" if checkpoints else "name a folder with config.json, weights, tokenizer"
            )
            yield failed("model", f"{name} has no config.json", remedy)
        return
    missing = [] if any((path / file).is_file() for file in TOKENIZERS) else ["a tokenizer"]
    if not any(file for pattern in WEIGHTS for file in path.glob(pattern)):
        missing.append("weights (.safetensors)")
    try:
        read_json(path / "config.json")
        index = path / "model.safetensors.index.json"
        shards = set(read_json(index).get("weight_map", {}).values()) if index.is_file() else set()
    except InputError as error:
        yield failed("model", str(error), "download the model again")
        return
    missing += sorted(shard for shard in shards if not (path / shard).is_file())
    if missing:
        yield failed("model", f"{name} lacks {', '.join(missing)}", "download the model again, or name another folder")
        return
    shape = sizes.model_shape(str(path))
    count = f", {shape.parameters / 1e9:.1f} billion parameters" if shape and shape.parameters > 5e7 else ""
    count = f", {shape.parameters:,} parameters" if shape and not count else count
    yield passed("model", f"{name}{count}")


def _nearest(path: Path) -> str:
    """A remedy that names the folder that was meant, as far as one can tell."""
    parent = next(folder for folder in (path.absolute(), *path.absolute().parents) if folder.is_dir())
    wanted = path.absolute().relative_to(parent).parts
    try:
        folders = [each.name for each in parent.iterdir() if each.is_dir()]
    except OSError:
        folders = []
    close = get_close_matches(wanted[0], folders, 1) if wanted else []
    found = parent / close[0] if close else parent
    for part in wanted[1:]:
        found = found / part if close and (found / part).is_dir() else found
    return f"the nearest folder is {_short(found)}; relative paths count from {Path.cwd()}"


def _short(path: Path) -> Path:
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) and path != Path.cwd() else path


def chat_template(case: Case) -> Iterator[Finding]:
    """The tokenizer's chat template, with which this package evaluates; ms-swift has its own, by the model's type."""
    folder = sizes.model_folder(str(case.settings.get("model")))
    if folder is None:
        return
    if (folder / "chat_template.jinja").is_file() or _config(folder, "tokenizer_config.json").get("chat_template"):
        yield passed("chat template", "the tokenizer has one")
    else:
        remedy = "use an instruct model, or put chat_template.jinja beside the tokenizer"
        yield warning("chat template", "the tokenizer has none: swift-rlvr evaluate and chat will refuse it", remedy)


def _config(folder: Path, name: str) -> dict[str, Any]:
    try:
        return read_json(folder / name)
    except InputError:
        return {}


def lengths(case: Case) -> Iterator[Finding]:
    """Completion, prompt and context; the full part measures the prompts, see `data.prompts`."""
    result = estimate.tokens(case.plan)
    if result.fits:
        yield passed("lengths", result.text)
    else:
        yield failed("lengths", result.text, "a smaller max_completion_length, or a larger vllm_max_model_len")


def engine(case: Case) -> Iterator[Finding]:
    """What vLLM refuses: heads that cannot be divided, adapters above its largest rank."""
    settings, shape = case.settings, sizes.model_shape(str(case.settings.get("model")))
    if not settings.get("use_vllm"):
        return
    parallel = int(sizes.number(settings, "vllm_tensor_parallel_size", 1))
    if shape and parallel and shape.heads % parallel:
        message = f"vllm_tensor_parallel_size {parallel} does not divide the model's {shape.heads} attention heads"
        divisors = [str(n) for n in range(1, 9) if shape.heads % n == 0]
        yield failed("vLLM", message, f"one of {', '.join(divisors)}")
    rank, largest = (int(sizes.number(settings, key, 0)) for key in ("lora_rank", "vllm_max_lora_rank"))
    if settings.get("vllm_enable_lora") is True and (rank or 8) > (largest or 16):
        message = f"lora_rank {rank} is above vllm_max_lora_rank ({largest or 16})"
        yield failed("vLLM", message, f"--vllm_max_lora_rank {rank}")


def tokens_of(tokenizer: Any, text: str, most: int = 60) -> str:
    """The first tokens of a text, each in quotation marks."""
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    shown = [json.dumps(tokenizer.decode([each]), ensure_ascii=False) for each in ids[:most]]
    return " ".join([*shown, *([f"... {len(ids) - most} more"] if len(ids) > most else [])])
