"""The size of a model, and an estimate of the memory and disk that training it takes, from its
config.json.

Bytes on a GPU, for P parameters in 16 bits and N processes:

- weights: 2 P, and as much for the reference policy (full training with beta > 0); divided by N
  under ZeRO-3.
- gradients and optimizer: 16 P / N under DeepSpeed, 6 P without: AdamW's weights, momentum and
  variance in 32 bits, gradients in 16 and a buffer (Rajbhandari et al. 2020, arXiv 1910.02054,
  section 3.1); AdamW alone has them in 16. Of LoRA's adapters, taken to be on all linear layers, 16
  bytes for each parameter.
- for a batch of B completions, the longest, with T tokens of prompt and completion: 8 B x
  completion x vocabulary for the logits, their log-softmax and the gradients of both; and 2 B x T x
  (8 x hidden + 4 x intermediate) inside a layer (Korthikanti et al. 2022, arXiv 2205.05198,
  equation 2, for a gated MLP), for one layer with gradient checkpointing, and 2 B x T x hidden for
  each of the others, else for all. An evaluation keeps no gradients: its rows count half. LoRA
  keeps a copy of what enters a linear layer, in 32 bits unless lora_dtype is another, dropout its
  mask: 5 bytes for each of B x T x (6 x hidden + intermediate); in 16 bits without dropout none
  (PEFT 0.20, Linear.forward).
- vLLM: its share holds the weights, GRAPHS, the larger of a forward pass over BATCHED_TOKENS and
  the logits of all sequences, as it measures them at its start, and keys and values of as many
  tokens as fit in the rest.

Left out are CUDA's context, NCCL's buffers and fragmentation: some GB together. A checkpoint holds
the weights, and under DeepSpeed 12 P, and with ZeRO-1 or 2 the weights once more.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from swift_rlvr.rewards.feedback import FEEDBACK_TOKENS
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import read_json
from swift_rlvr.utils.settings import number

BYTES = {"float32": 4, "float": 4}  # of a parameter; all other types have 2
GRAPHS = 2**30  # of vLLM's CUDA graphs, which it keeps while it sleeps; assumed
BATCHED_TOKENS, SEQUENCES = (
    2048,
    256,
)  # at once: vLLM 0.32 and ms-swift 4.6, unless vllm_max_num_seqs is set
# For models that are not on this machine yet, from their config.json.
_KEYS = (
    *(
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
    ),
    *("vocab_size", "tie_word_embeddings"),
)
_QWEN = {
    "0.5B": (896, 4864, 24, 14, 2, 151936, True),
    "1.5B": (1536, 8960, 28, 12, 2, 151936, True),
    "3B": (2048, 11008, 36, 16, 2, 151936, True),
    "7B": (3584, 18944, 28, 28, 4, 152064, False),
    "14B": (5120, 13824, 48, 40, 8, 152064, False),
    "32B": (5120, 27648, 64, 40, 8, 152064, False),
}


class ModelSize(NamedTuple):
    """The size of a decoder. bytes: of a parameter, as it is saved; context: in tokens, None where
    unknown.
    """

    parameters: int
    hidden: int
    intermediate: int
    layers: int
    key_value_heads: int
    head_size: int
    vocabulary: int
    context: int | None
    bytes: int

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "ModelSize":
        """That of a config.json; KeyError or TypeError where it is not a decoder's."""
        hidden, inner, layers, heads = (config[key] for key in _KEYS[:4])
        vocabulary, head_size = config["vocab_size"], config.get("head_dim") or hidden // heads
        key_value_heads = config.get("num_key_value_heads") or heads
        query, keys = heads * head_size, key_value_heads * head_size
        biases = query + 2 * keys if config.get("model_type") == "qwen2" else 0
        experts = config.get("num_experts") or config.get("num_local_experts") or 1
        mlp = 3 * hidden * (config.get("moe_intermediate_size") or inner) * experts
        layer = 2 * hidden * (query + keys) + biases + mlp + 2 * hidden
        embeddings = vocabulary * hidden * (1 if config.get("tie_word_embeddings") else 2)
        size = BYTES.get(str(config.get("dtype") or config.get("torch_dtype")), 2)
        parameters, context = (
            embeddings + layers * layer + hidden,
            config.get("max_position_embeddings"),
        )
        return cls(
            parameters, hidden, inner, layers, key_value_heads, head_size, vocabulary, context, size
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
    hugging_face = Path(
        environ.get("HF_HUB_CACHE") or Path(environ.get("HF_HOME") or cache / "huggingface", "hub")
    )
    scope = Path(environ.get("MODELSCOPE_CACHE") or cache / "modelscope").expanduser()
    folders = [
        *hugging_face.expanduser().glob(f"models--{owner}--{name}/snapshots/*"),
        *scope.glob(f"models/{owner}--{name}/snapshots/*"),
        *(
            scope / part / owner / name.replace(".", "___")
            for part in ("models", "hub/models", "hub", ".")
        ),
    ]
    return next((folder for folder in folders if (folder / "config.json").is_file()), None)


def model_size(model: str, environ: Mapping[str, str] | None = None) -> ModelSize | None:
    """The size of a model in a folder or in a hub's cache, or of a Qwen2.5-Instruct; else None.

    >>> model_size("Qwen/Qwen2.5-3B-Instruct").parameters
    3085938688
    """
    folder = model_folder(model, environ)
    try:
        if folder is not None:
            config = read_json(folder / "config.json")
            return ModelSize.from_config(config | (config.get("text_config") or {}))
        known = _QWEN[model.rpartition("/")[2].removeprefix("Qwen2.5-").removesuffix("-Instruct")]
        config = dict(zip(_KEYS, known, strict=True))
        return ModelSize.from_config(
            config | {"model_type": "qwen2", "max_position_embeddings": 32768}
        )
    except (InputError, KeyError, TypeError, AttributeError):
        return None


def longest_completion(settings: Mapping[str, Any]) -> int:
    """Tokens after the first prompt: those of all answers, and the feedback between them."""
    count = (
        number(settings, "max_turns", 1, at_least=1) if settings.get("multi_turn_scheduler") else 1
    )
    return count * number(settings, "max_completion_length", 512) + (count - 1) * FEEDBACK_TOKENS


def evaluates(settings: Mapping[str, Any]) -> bool:
    """Whether ms-swift samples and scores held-out rows during a training."""
    held_out = settings.get("val_dataset") or number(settings, "split_dataset_ratio", 0.0)
    return bool(held_out) and settings.get("eval_strategy") not in ("no", False)


def zero_stage(settings: Mapping[str, Any]) -> tuple[int | None, bool]:
    """DeepSpeed's ZeRO stage, None without DeepSpeed, and whether the optimizer is kept in the
    host's memory.

    >>> zero_stage({"deepspeed": "zero3_offload"}), zero_stage({})
    ((3, True), (None, False))
    """
    value = settings.get("deepspeed")
    if not value:
        return None, False
    if isinstance(value, str):
        if name := re.fullmatch(r"zero([0-3])(_offload)?", value):
            return int(name[1]), bool(name[2])
        value = read_json(value)
    zero = value.get("zero_optimization") or {}
    return int(zero.get("stage", 0)), (zero.get("offload_optimizer") or {}).get(
        "device", "none"
    ) != "none"


def _bytes(model: ModelSize, settings: Mapping[str, Any]) -> int:
    return (
        BYTES.get(str(settings["torch_dtype"]), 2) if settings.get("torch_dtype") else model.bytes
    )


def adapter_parameters(model: ModelSize, settings: Mapping[str, Any]) -> int:
    """Parameters of LoRA's adapters on all linear layers."""
    return (
        number(settings, "lora_rank", 8)
        * model.layers
        * (9 * model.hidden + 3 * model.intermediate)
    )


class TrainingMemory(NamedTuple):
    """Bytes on a training GPU at the worst moment. optimizer: with gradients. batch: what its
    longest row decides.
    """

    weights: int
    optimizer: int
    batch: int


def training_memory(
    model: ModelSize, settings: Mapping[str, Any], processes: int
) -> TrainingMemory:
    """As the formulas above have it. processes: of all nodes."""
    (stage, offload), size = zero_stage(settings), _bytes(model, settings)
    weights, optimizer = size * model.parameters, 16 * adapter_parameters(model, settings)
    if settings.get("tuner_type") == "full":
        weights *= 2 if number(settings, "beta", 0.04) else 1
        optimizer = (3 * size if stage is None else 2 if offload else 16) * model.parameters
    batch, completion = (
        number(settings, "per_device_train_batch_size", 1),
        longest_completion(settings),
    )
    if evaluates(settings):
        batch = max(batch, number(settings, "per_device_eval_batch_size", 1) // 2)
    # Without DeepSpeed accelerate converts what a model returns to 32 bits.
    logits = 4 * (4 if stage is None else size) * batch * completion * model.vocabulary
    limits = (number(settings, "vllm_max_model_len", 0), model.context)
    row = min(number(settings, "max_length", 1024) + completion, *filter(None, limits))
    tokens = batch * row * size
    layers = tokens * (8 * model.hidden + 4 * model.intermediate)
    if settings.get("tuner_type") != "full":
        copied = BYTES.get(str(settings.get("lora_dtype") or "float32"), 2)
        kept = copied + 1 if number(settings, "lora_dropout", 0.05) else copied if copied > 2 else 0
        layers += batch * row * kept * (6 * model.hidden + model.intermediate)
    if settings.get("gradient_checkpointing", True) is False:
        layers *= model.layers
    else:
        layers += tokens * model.hidden * model.layers
    return TrainingMemory(
        weights // (processes if stage == 3 else 1),
        optimizer // (processes if stage else 1),
        logits + layers,
    )


def server_memory(model: ModelSize, settings: Mapping[str, Any], gpu: int) -> tuple[int, int, int]:
    """Bytes of vLLM's share of a GPU of `gpu` bytes, of the weights in it, and how many tokens the
    rest caches.

    The last is below 0 where not even the weights and what vLLM reserves fit.
    """
    size, parallel = _bytes(model, settings), number(settings, "vllm_tensor_parallel_size", 1)
    share = int(gpu * number(settings, "vllm_gpu_memory_utilization", 0.9))
    weights = size * model.parameters // parallel
    forward = size * BATCHED_TOKENS * (4 * model.hidden + 3 * model.intermediate // parallel)
    # In the model's type, then in 32 bits, and as much for their softmax.
    logits = (size + 8) * number(settings, "vllm_max_num_seqs", SEQUENCES) * model.vocabulary
    reserve = max(forward, logits) + (0 if settings.get("vllm_enforce_eager") is True else GRAPHS)
    token = 2 * size * model.layers * max(1, model.key_value_heads // parallel) * model.head_size
    return share, weights, (share - weights - reserve) // token


def colocated_memory(
    training: TrainingMemory, share: int, sampler: int, settings: Mapping[str, Any]
) -> int:
    """Bytes on a GPU that trains and samples in turn: with `sleep_level` vLLM gives its share back
    while training.

    sampler: bytes of vLLM's weights, which lie beside all that is trained while they are renewed.
    """
    if not number(settings, "sleep_level", 0):
        return sum(training) + share
    kept = training._replace(batch=0)
    renewed = sum(kept) + sampler
    for name, part in (("offload_model", "weights"), ("offload_optimizer", "optimizer")):
        kept = kept._replace(**{part: 0}) if settings.get(name) is True else kept
    return max(sum(training) + GRAPHS, renewed + GRAPHS, share + sum(kept))


def checkpoint_size(model: ModelSize, settings: Mapping[str, Any]) -> int:
    """Bytes of one checkpoint, without the tokenizer."""
    (stage, _), size, saved = zero_stage(settings), _bytes(model, settings), model.parameters
    if settings.get("tuner_type") != "full":
        saved = adapter_parameters(model, settings)
    if settings.get("save_only_model") is True:
        return size * saved
    return saved * (3 * size if stage is None else 12 + size * (1 if stage == 3 else 2))
