"""The sizes of a model, and the memory and disk that training it takes, from its config.json and the settings.

Bytes on a GPU for each of P parameters that are trained, in 16 bits, by N processes:

- ZeRO-3: 18 P / N, and twice the largest layer in 16 bits; ZeRO-2: 2 P + 18 P / N. These are DeepSpeed's own estimates
  (`estimate_zero3_model_states_mem_needs` in deepspeed/runtime/zero/stage3.py, and its like in stage_1_and_2.py):
  weights and gradients in 16 bits, AdamW's weights, momentum and variance in 32 bits (Rajbhandari et al. 2020, arXiv
  1910.02054, section 3.1), and the gradients in 32 bits at the step. With `_offload` the optimizer is in the host's
  memory.
- Without DeepSpeed: 2 + 2 + 4, since AdamW's states have the type of the weights.
- LoRA: P counts the adapters; the weights of the model come on top, divided by N under ZeRO-3.
- The reference policy (full training with beta > 0): 2 P, divided by N under ZeRO-3.

Activations for B completions, the longest with T tokens of prompt and completion, C of them completion:

- logits: 4 x B x (C + 1) x vocabulary values, which are the logits, their log-softmax, and the gradients of both.
  Without DeepSpeed accelerate converts what a model returns to 32 bits.
- layers: B x T x (8 x hidden + 4 x intermediate) values inside a layer, for one layer with gradient checkpointing and
  B x T x hidden for each of the others, else for all. This is the count of Korthikanti et al. 2022 (arXiv 2205.05198,
  equation 2) for a gated MLP and without attention scores, which are recomputed. What Qwen2 really keeps for the
  backward pass was 1.04 to 1.2 times that.

A checkpoint holds the weights, and under DeepSpeed 12 bytes for each trained parameter and, with ZeRO-1 or 2, the
weights once more. The tiny model (856,704 parameters, 32 bits) takes 13.95 MB with ZeRO-3, 13.71 by this count; 3.1
billion parameters in 16 bits take 43 GB.

Left out are CUDA's context, NCCL's buffers and fragmentation: some GB together.
"""

import json
import math
import os
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from swift_rlvr.environments import FEEDBACK_TOKENS
from swift_rlvr.errors import InputError
from swift_rlvr.jsonl import read_json

ACTIVATIONS = ("logits", "activations")  # parts of `training_memory` that depend on the completions' lengths
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float": 4, "half": 2}
# For models that are not on this machine yet, from their config.json: hidden, intermediate, layers, heads, key-value
# heads, vocabulary, and whether the embedding is the last layer too.
_KNOWN = {
    "Qwen2.5-0.5B-Instruct": (896, 4864, 24, 14, 2, 151936, True),
    "Qwen2.5-1.5B-Instruct": (1536, 8960, 28, 12, 2, 151936, True),
    "Qwen2.5-3B-Instruct": (2048, 11008, 36, 16, 2, 151936, True),
    "Qwen2.5-7B-Instruct": (3584, 18944, 28, 28, 4, 152064, False),
}


@dataclass(frozen=True)
class Shape:
    """The sizes of a decoder. parameters: all; dtype: of the saved weights; context: in tokens, None where unknown."""

    parameters: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    key_value_heads: int
    head_size: int
    vocabulary: int
    context: int | None
    dtype: str

    @property
    def largest_layer(self) -> int:
        """Parameters of the embedding or of one decoder layer, whichever has more."""
        return max(self.vocabulary * self.hidden, self._attention + 3 * self.hidden * self.intermediate)

    @property
    def _attention(self) -> int:
        return self.hidden * self.head_size * 2 * (self.heads + self.key_value_heads)

    def adapter(self, rank: int) -> int:
        """Parameters of LoRA adapters of that rank on all linear layers of the decoder."""
        query, keys = self.heads * self.head_size, self.key_value_heads * self.head_size
        ends = 2 * (self.hidden + query) + 2 * (self.hidden + keys) + 3 * (self.hidden + self.intermediate)
        return rank * ends * self.layers


def model_folder(model: str, environ: Mapping[str, str] | None = None) -> Path | None:
    """The folder of a model: `model` itself, or where a hub's client has put it; None where it is not here."""
    environ = os.environ if environ is None else environ
    path = Path(model).expanduser()
    if path.is_dir():
        return path
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", model):
        return None
    owner, name = model.split("/")
    home = Path(environ.get("HOME") or "~").expanduser()
    hugging_face = Path(
        environ.get("HF_HUB_CACHE") or Path(environ.get("HF_HOME") or home / ".cache/huggingface", "hub")
    )
    scope = Path(environ.get("MODELSCOPE_CACHE") or home / ".cache/modelscope").expanduser()
    safe = name.replace(".", "___")
    folders = [
        *hugging_face.expanduser().glob(f"models--{owner}--{name}/snapshots/*"),
        *scope.glob(f"models/{owner}--{name}/snapshots/*"),
        *(scope / part / owner / safe for part in ("models", "hub/models", "hub", ".")),
    ]
    return next((folder for folder in folders if (folder / "config.json").is_file()), None)


def model_shape(model: str, environ: Mapping[str, str] | None = None) -> Shape | None:
    """The sizes of a model in a folder or in a hub's cache, or of one of the Qwen2.5 of the recipes; else None.

    >>> model_shape("Qwen/Qwen2.5-3B-Instruct").parameters
    3085938688
    """
    folder = model_folder(model, environ)
    if folder is None:
        known = _KNOWN.get(model.rpartition("/")[2])
        names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads")
        if known is None:
            return None
        config: dict[str, Any] = dict(zip((*names, "vocab_size", "tie_word_embeddings"), known, strict=True))
        return _shape(config | {"model_type": "qwen2", "max_position_embeddings": 32768, "dtype": "bfloat16"}, None)
    try:
        config = read_json(folder / "config.json")
        return _shape(config | (config.get("text_config") or {}), _counted(folder))
    except (InputError, KeyError, TypeError, ValueError, OSError):
        return None


def _shape(config: Mapping[str, Any], parameters: int | None) -> Shape:
    hidden, heads, layers = config["hidden_size"], config["num_attention_heads"], config["num_hidden_layers"]
    head_size = config.get("head_dim") or hidden // heads
    key_value, inner = config.get("num_key_value_heads") or heads, config["intermediate_size"]
    if parameters is None:
        query, keys = heads * head_size, key_value * head_size
        biases = query + 2 * keys if config.get("model_type") == "qwen2" else 0
        experts = config.get("num_experts") or config.get("num_local_experts") or 1
        mlp = 3 * hidden * (config.get("moe_intermediate_size") or inner) * experts
        layer = 2 * hidden * (query + keys) + biases + mlp + 2 * hidden
        embeddings = config["vocab_size"] * hidden * (1 if config.get("tie_word_embeddings") else 2)
        parameters = embeddings + layers * layer + hidden
    dtype = str(config.get("dtype") or config.get("torch_dtype") or "bfloat16")
    context = config.get("max_position_embeddings")
    return Shape(parameters, hidden, inner, layers, heads, key_value, head_size, config["vocab_size"], context, dtype)


def _counted(folder: Path) -> int | None:
    """The parameters in a folder's .safetensors files, from their headers; None without such files."""
    total = 0
    for path in folder.glob("*.safetensors"):
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(min(length, 100_000_000)))
        total += sum(math.prod(each["shape"]) for name, each in header.items() if name != "__metadata__")
    return total or None


def setting_list(settings: Mapping[str, Any], name: str) -> list[Any]:
    """A setting that takes one value or several, as a list.

    >>> setting_list({"reward_funcs": "format"}, "reward_funcs"), setting_list({}, "reward_funcs")
    (['format'], [])
    """
    value = settings.get(name)
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def number(settings: Mapping[str, Any], name: str, default: float) -> float:
    """A setting that is a number, or its default; InputError for anything else."""
    value = settings.get(name)
    try:
        result = default if value is None else float(value)
    except (TypeError, ValueError):
        result = math.nan
    if not math.isfinite(result):
        raise InputError(f"must be a number, got {value!r}", name)
    return result


def turns(settings: Mapping[str, Any]) -> int:
    """How often the policy answers at most."""
    return max(1, int(number(settings, "max_turns", 1))) if settings.get("multi_turn_scheduler") else 1


def longest_completion(settings: Mapping[str, Any]) -> int:
    """Tokens after the first prompt: those of all answers, and the feedback between them."""
    count = turns(settings)
    return count * int(number(settings, "max_completion_length", 512)) + (count - 1) * FEEDBACK_TOKENS


def zero_stage(settings: Mapping[str, Any]) -> tuple[int | None, bool]:
    """DeepSpeed's ZeRO stage, None without DeepSpeed, and whether the optimizer is kept in the host's memory.

    >>> zero_stage({"deepspeed": "zero3_offload"}), zero_stage({})
    ((3, True), (None, False))
    """
    value = settings.get("deepspeed")
    if not value:
        return None, False
    if isinstance(value, str):
        name = re.fullmatch(r"zero([0-3])(_offload)?", value)
        if name:
            return int(name[1]), bool(name[2])
        value = read_json(value)
    try:
        zero = value.get("zero_optimization") or {}
        offload = (zero.get("offload_optimizer") or {}).get("device", "none") != "none"
        return int(zero.get("stage", 0)), offload
    except (AttributeError, TypeError, ValueError):
        raise InputError(
            f"must be zero0 to zero3 or a configuration of DeepSpeed, got {value!r}", "deepspeed"
        ) from None


def training_memory(shape: Shape, settings: Mapping[str, Any], processes: int) -> dict[str, int]:
    """Bytes on each training GPU at the worst moment, by what needs them."""
    stage, offload = zero_stage(settings)
    size = BYTES.get(str(settings.get("torch_dtype") or shape.dtype), 2)
    whole, shared = shape.parameters, 1 if stage != 3 else processes
    full = settings.get("tuner_type", "lora") == "full"
    trained = whole if full else shape.adapter(int(number(settings, "lora_rank", 8)))
    parts = {"weights": size * whole // shared}
    if stage is None:
        parts["gradients and optimizer"] = 3 * size * trained
    else:
        # Weights, momentum and variance in 32 bits, and gradients: under ZeRO-3 those of a part at a time.
        optimizer = 12 if size == 4 else 14 if stage == 3 else 16
        divided = processes if stage else 1
        parts["gradients"] = size * trained // (processes if stage >= 2 else 1)
        parts["optimizer"] = 0 if offload else optimizer * trained // divided
        if stage == 3:
            parts["gathered layer"] = 2 * size * shape.largest_layer
    if full and number(settings, "beta", 0.04):
        parts["reference policy"] = size * whole // shared
    batch = int(number(settings, "per_device_train_batch_size", 1))
    completion = longest_completion(settings)
    prompt = int(number(settings, "max_length", 1024))
    value = size if stage is not None else 4
    parts["logits"] = 4 * value * batch * (completion + 1) * shape.vocabulary
    tokens = batch * (prompt + completion) * size
    inside = tokens * (8 * shape.hidden + 4 * shape.intermediate)
    checkpointing = settings.get("gradient_checkpointing", True) is not False
    parts["activations"] = tokens * shape.hidden * shape.layers + inside if checkpointing else inside * shape.layers
    return parts


@dataclass(frozen=True)
class ServerMemory:
    """Bytes on each GPU of vLLM: its share of the GPU, the weights in it, and how many `tokens` the rest caches."""

    share: int
    weights: int
    tokens: int


def server_memory(shape: Shape, settings: Mapping[str, Any], gpu: int) -> ServerMemory:
    """What vLLM makes of a GPU of `gpu` bytes. tokens: below 0 where not even the weights fit."""
    size = BYTES.get(str(settings.get("torch_dtype") or shape.dtype), 2)
    parallel = int(number(settings, "vllm_tensor_parallel_size", 1))
    share = int(gpu * number(settings, "vllm_gpu_memory_utilization", 0.9))
    weights = size * shape.parameters // parallel
    token = 2 * shape.layers * max(1, shape.key_value_heads // parallel) * shape.head_size * size
    return ServerMemory(share, weights, (share - weights) // token)


def colocated_memory(training: Mapping[str, int], server: ServerMemory, settings: Mapping[str, Any]) -> int:
    """Bytes on a GPU that trains and samples in turn: with `sleep_level` vLLM gives its share back while training."""
    trained = sum(training.values())
    if not int(number(settings, "sleep_level", 0)):
        return trained + server.share
    weights = 0 if settings.get("offload_model") is True else training["weights"] + training.get("reference policy", 0)
    names = ("gradients and optimizer", "optimizer")
    states = 0 if settings.get("offload_optimizer") is True else sum(training.get(name, 0) for name in names)
    return max(trained, server.share + weights + states)


def checkpoint_size(shape: Shape, settings: Mapping[str, Any]) -> int:
    """Bytes of one checkpoint, without the tokenizer."""
    stage, _ = zero_stage(settings)
    size = BYTES.get(str(settings.get("torch_dtype") or shape.dtype), 2)
    full = settings.get("tuner_type", "lora") == "full"
    trained = shape.parameters if full else shape.adapter(int(number(settings, "lora_rank", 8)))
    weights = size * trained
    if settings.get("save_only_model") is True:
        return weights
    if stage is None:
        return weights + 2 * size * trained
    return weights + 12 * trained + (weights if stage < 3 else 0)


def gigabytes(count: float) -> str:
    """A number of bytes for people, in powers of ten, as disks are sold.

    >>> gigabytes(43.2e9), gigabytes(0.87e12), gigabytes(13.9e6)
    ('43 GB', '0.87 TB', '14 MB')
    """
    if count >= 5e11:
        return f"{count / 1e12:.2f} TB"
    if count >= 1e10:
        return f"{count / 1e9:.0f} GB"
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
