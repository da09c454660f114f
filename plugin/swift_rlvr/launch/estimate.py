"""How long a planned run is and what it needs: steps, hours, tokens, memory and disk, each as a line
for people.

Steps and tokens are counted. Hours are the run's own, or scaled from a measured step. Memory and
disk are rough, and only warn: `training_memory` is the formula.
"""

import json
import math
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.filesize import decimal

from swift_rlvr.launch.plan import BATCH, TENSOR, Plan, longest_completion
from swift_rlvr.runs.folder import LOG, checkpoints
from swift_rlvr.tasks.files import data_suffix
from swift_rlvr.training.recipes import uses_servers
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import LONGEST_ROW, read_json, read_jsonl
from swift_rlvr.utils.settings import as_list, number

GIB, MIB = 2**30, 2**20
# Above this share of a GPU what the formula leaves out may no longer fit.
TIGHT = 0.9
# Moments of a training GPU.
STEP, UPDATE = "in a step", "while vLLM gets the weights"
# What ms-swift sends to a rollout server at once, as SWIFT_UPDATE_WEIGHTS_BUCKET_SIZE is by default.
BUCKET = 512 * MIB
# vLLM's, for CUDA graphs and the logits of 256 sequences.
VLLM_RESERVES = 1.4 * GIB
# Of Qwen2.5-3B; 7B has 28, 32B 64.
LAYERS = 36
# Bytes of a .safetensors' header, as its own reader has the limit.
LONGEST_HEADER = 100_000_000


@dataclass(frozen=True)
class Estimate:
    """One line. count: the number it is about, in its unit; None where it is not known.

    fits: false where the run may not or cannot work.
    """

    text: str
    count: int | None = None
    fits: bool = True


# Steps and tokens.


def steps(plan: Plan) -> Estimate:
    """Steps of the optimizer: epochs x rows x generations / completions a step, without a last
    incomplete batch.
    """
    settings = plan.settings
    limit = number(settings, "max_steps", -1)
    if limit > 0:
        return Estimate(f"{limit:,} (max_steps)", limit)
    if settings.get("streaming") is True:
        return Estimate("not known: a streamed dataset needs max_steps", fits=False)
    rows = training_rows(settings)
    if rows is None:
        names = ", ".join(map(str, as_list(settings.get("dataset"))))
        return Estimate(f"not known before {names} is loaded")

    group = number(settings, "num_generations", 8)
    epochs = number(settings, "num_train_epochs", 3.0)
    iterations = number(settings, "num_iterations", 1)
    prompts_a_step = max(1, plan.completions // group)
    steps_an_epoch = rows // prompts_a_step * iterations
    total = math.ceil(epochs * max(1, steps_an_epoch))
    text = f"{epochs:g} epoch{'s' * (epochs != 1)} x {rows:,} rows x {group} completions"
    if iterations > 1:
        text += f" x {iterations} iterations"
    text = f"{total:,} = {text} / {plan.completions} a step"
    return Estimate(text, total, fits=steps_an_epoch > 0)


def training_rows(settings: Mapping[str, Any]) -> int | None:
    """The rows that a run trains on, as far as .jsonl files and `#N` tell."""
    total = 0
    for name in map(str, as_list(settings.get("dataset"))):
        rows = dataset_rows(name)
        if rows is None:
            return None
        total += rows
    if not total:
        return None
    if settings.get("val_dataset"):
        return total
    return total - int(total * number(settings, "split_dataset_ratio", 0.0))


def dataset_rows(name: str) -> int | None:
    """The rows that a value of `--dataset` stands for: the number after `#`, else the lines of its
    .jsonl file. None where it is on a hub, in another form, or cannot be read.
    """
    file, count = local_file(name)
    if count is not None:
        return count  # where there are fewer, ms-swift repeats rows
    if file is None or file.suffix != ".jsonl" or not file.is_file():
        return None
    with suppress(InputError):  # the doctor says which line it is
        return sum(1 for _ in read_jsonl(file, LONGEST_ROW))
    return None


def local_file(name: str) -> tuple[Path | None, int | None]:
    """The file that a value of `--dataset` names, None where it is a hub's, and the number after
    `#`.

    >>> local_file("countdown:tasks.jsonl#100"), local_file("gsm8k")
    ((PosixPath('tasks.jsonl'), 100), (None, None))
    """
    count = None
    if match := re.search(r"#(\d+)\Z", name):
        name, count = name[: match.start()], int(match[1])
    path = Path(name)
    if not path.is_file():  # a colon may be part of a file's name
        path = Path(name.partition(":")[2] or name)
    if not data_suffix(path):
        return None, count
    return path.expanduser(), count


class ContextLimit(NamedTuple):
    """How many tokens prompt and completion may have together, and what limits them."""

    tokens: int
    name: str


def context_limit(plan: Plan) -> ContextLimit | None:
    """The smaller of the model's context and vllm_max_model_len; None where neither is known."""
    limits = []
    model = model_size(str(plan.settings.get("model")))
    if model and model.context:
        limits.append(ContextLimit(model.context, "the model's context"))
    if engine_limit := _engine_limit(plan):
        limits.append(ContextLimit(engine_limit, "vllm_max_model_len"))
    return min(limits, default=None)


def _engine_limit(plan: Plan) -> int:
    """vllm_max_model_len where vLLM samples and it is set, or 0."""
    if not plan.settings.get("use_vllm"):
        return 0
    return number(plan.server_settings, "vllm_max_model_len", 0)


def tokens(plan: Plan) -> Estimate:
    """Completion and prompt, of which max_length is the limit, against what the model reads."""
    completion = longest_completion(plan.settings)
    limit = context_limit(plan)
    engine_limit = _engine_limit(plan)
    if limit and completion < limit.tokens < engine_limit:
        text = f"vLLM refuses a vllm_max_model_len of {engine_limit:,}: the model reads {limit.tokens:,}"
        return Estimate(text, completion, fits=False)

    text = f"completion {completion:,}"
    prompt = number(plan.settings, "max_length", 0)
    if limit is None:
        if prompt:
            text = f"prompt up to {prompt:,} + {text}"
        return Estimate(f"{text}; the model's context is not known yet")
    of_limit = f"of {limit.tokens:,} ({limit.name})"
    room = limit.tokens - completion
    if room <= 0:
        return Estimate(f"{text}, {of_limit}", completion, fits=False)
    # A longer prompt takes its tokens from the completion.
    prompt = min(prompt or room, room)
    return Estimate(f"prompt up to {prompt:,} + {text}, {of_limit}", completion)


# Hours.


class Measured(NamedTuple):
    """A step whose time was measured, on one GPU that trains all parameters and samples in turn.

    tokens: of every completion, all of full length.
    """

    seconds: float
    gpu: str
    parameters: float
    completions: int
    tokens: int


# `swift-rlvr train countdown` on an H100 of 80 GB, 26 November 2026, with random weights of
# Qwen2.5-3B's shape, whose completions never end by themselves: the first step, with its warm-up.
FULL_STEP = Measured(79.5, "H100", 3.09e9, 128, 1024)
# Below so many parameters a step is mostly what does not depend on them.
SMALLEST_TO_SCALE = 0.3e9


def hours(plan: Plan) -> Estimate | None:
    """How long the run takes: by its own log where it goes on, else by FULL_STEP, in proportion to
    the work for each GPU. None where nothing is known. count: seconds.
    """
    total = steps(plan).count
    if total is None:
        return None
    if plan.resume is not None:
        left = total - int(plan.resume.name.rpartition("-")[2])
        measured = _measured_seconds(plan.output / LOG)
        if measured is None:
            return None
        text = f"about {_hours(left * measured)} h for {left:,} more steps, as measured in this run"
        return Estimate(text, round(left * measured))

    model = model_size(str(plan.settings.get("model")))
    gpus = len(plan.train_gpus) * plan.variables.nnodes + len(plan.server_gpus)
    if model is None or not gpus or model.parameters < SMALLEST_TO_SCALE:
        return None
    size = model.parameters / FULL_STEP.parameters
    if 0.95 < size < 1.05:  # a name says 3B
        size = 1
    tokens_a_step = plan.completions * longest_completion(plan.settings)
    work = size * tokens_a_step / (FULL_STEP.completions * FULL_STEP.tokens)
    seconds = total * FULL_STEP.seconds * work / gpus
    trains_all = plan.settings.get("tuner_type") == "full"
    if work == gpus == 1 and trains_all:
        text = (
            f"at most {_hours(seconds)} h on an {FULL_STEP.gpu}, by a measured step of full length"
        )
        return Estimate(text, round(seconds))
    text = (
        f"about {_hours(seconds)} h on {FULL_STEP.gpu}s at full length, in proportion to 3B on one"
    )
    return Estimate(f"{text}; not measured", round(seconds))


def _measured_seconds(log: Path) -> float | None:
    """The mean step in a run's log; None where it has none."""
    seconds = None
    with suppress(InputError):
        for _, row in read_jsonl(log, LONGEST_ROW):
            seconds = row.get("train_speed(s/it)", seconds)
    return seconds


def _hours(seconds: float) -> str:
    """With one digit after the point below ten."""
    return f"{seconds / 3600:.{int(seconds < 36000)}f}"


# The size of a model.


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
            return _size_of_files(folder)
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


def _size_of_files(folder: Path) -> ModelSize:
    config = read_json(folder / "config.json")
    config = config | (config.get("text_config") or {})  # of a model that also sees
    parameters = sum(_parameters(path) for path in folder.glob("*.safetensors"))
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


def _parameters(weights: Path) -> int:
    """The numbers in a file of weights, by its header: its length in 8 bytes, then JSON."""
    with weights.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > LONGEST_HEADER:
            raise InputError(f"{weights}: no .safetensors")  # but a pointer of Git LFS, for example
        header = json.loads(file.read(length))
    shapes = [tensor["shape"] for name, tensor in header.items() if name != "__metadata__"]
    return sum(math.prod(shape) for shape in shapes)


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


# Memory and disk.


def peak_memory(
    model: ModelSize, settings: Mapping[str, Any], processes: int, share: float = 0
) -> tuple[str, float]:
    """The worst moment of a training GPU and its bytes, roughly: a step, an update of vLLM's weights,
    an evaluation, or vLLM's sampling where it is on the same GPU.

    processes: of all nodes. share: vLLM's bytes where it is on the same GPU, else 0.
    """
    parts = training_memory(model, settings, processes)
    states = parts["weights"] + parts["gradients"] + parts["optimizer"]
    moments = {
        STEP: states + parts["logits"] + parts["activations"],
        UPDATE: states + parts["update"],
        "in an evaluation": states + parts["evaluation"],
    }
    if share and number(settings, "sleep_level", 0):
        # vLLM gives its share back while the trainer computes, but for the weights while they are
        # updated.
        moments[UPDATE] += _vllm_weights(model, settings)
        moments["while vLLM samples"] = _kept_while_sampling(parts, settings) + share
    elif share:
        moments = {moment: needed + share for moment, needed in moments.items()}
    worst = max(moments, key=lambda moment: moments[moment])
    return worst, moments[worst]


def training_memory(
    model: ModelSize, settings: Mapping[str, Any], processes: int
) -> dict[str, float]:
    """Bytes on a training GPU by what they hold; roughly. The last four are not there at the same
    time: logits and activations are a step's, update and evaluation are moments of their own.

    processes: of all nodes. For P parameters and N processes, of which ZeRO-3 divides everything,
    ZeRO-2 gradients and optimizer, and ZeRO-1 the optimizer (Rajbhandari et al. 2020, arXiv
    1910.02054, section 3.1):

    - weights: 2 P in 16 bits, and as much for the reference policy (full training with beta > 0).
    - gradients and optimizer: under DeepSpeed 4 P and 12 P, for AdamW has the weights, momentum and
      variance in 32 bits; without it AdamW has the weights' own type. Of LoRA, of the adapters.
    - logits, log-softmax and the gradients of both: 4 numbers for each token of a completion and
      each of the vocabulary.
    - activations: with gradient checkpointing about 4.8 sqrt(P) bytes a token in 16 bits, which is
      what 8 x hidden + 4 x intermediate + hidden x layers makes for Qwen2.5 of 0.5B to 32B.
    - update: what ZeRO-3 gathers on every GPU to send it to vLLM, and the first GPU's copy of it
      (`_update_memory`).
    - evaluation: ms-swift runs the policy on a whole batch, without gradients: its logits, the
      log-softmax of one row, and the first two terms of the activations, 2.2 sqrt(P) bytes a token.

    Left out are CUDA's context, NCCL's buffers and fragmentation: some GB together.
    """
    stage, is_offloaded = zero_stage(settings)
    size = _bytes_a_parameter(settings)
    trained = _trained_parameters(model, settings)
    has_reference = settings.get("tuner_type") == "full" and number(settings, "beta", 0.04) > 0
    copies = 2 if has_reference else 1
    gradients, optimizer = (4, 12) if stage is not None else (size, 2 * size)
    if is_offloaded:
        gradients, optimizer = 2, 0

    rows, completion = number(settings, BATCH, 1), longest_completion(settings)
    row = number(settings, "max_length", 1024) + completion
    context = number(settings, "vllm_max_model_len", 0)
    if context:
        row = min(row, context)
    logits_a_row = size * completion * model.vocabulary
    activations_a_row = size * row * math.sqrt(model.parameters)
    evaluation = 0.0
    if evaluated := _evaluated_at_once(settings):
        evaluation = (evaluated + 1) * logits_a_row + 1.1 * evaluated * activations_a_row
    return {
        "weights": copies * size * model.parameters / (processes if stage == 3 else 1),
        "gradients": gradients * trained / (processes if stage in (2, 3) else 1),
        "optimizer": optimizer * trained / (processes if stage in (1, 2, 3) else 1),
        "logits": 4 * rows * logits_a_row,
        "activations": 2.4 * rows * activations_a_row,
        "update": _update_memory(model, settings, processes),
        "evaluation": evaluation,
    }


def _update_memory(model: ModelSize, settings: Mapping[str, Any], processes: int) -> float:
    """Bytes of the weights that are gathered at once for vLLM, and of the copy that goes to a
    server.

    ms-swift's `_move_full_model_to_vllm` gathers each group of `split_batches` on every GPU: all
    weights, or with move_model_batches so many groups of layers, and one of the embeddings with the
    head. For a server the first GPU copies each group in buckets of 512 MiB, or of one tensor if
    that is larger. One process has its weights as they are.
    """
    if not settings.get("use_vllm"):
        return 0
    batch = float(model.parameters)
    batches = number(settings, "move_model_batches", 0)
    if batches:
        layers = math.ceil(model.layers / batches)
        ends = model.embedding if model.is_tied else 2 * model.embedding
        batch = max(layers * model.parameters / model.layers, ends)

    size = _bytes_a_parameter(settings)
    stage, _ = zero_stage(settings)
    needed = 0.0
    if stage == 3 and processes > 1:
        needed += size * batch
    if uses_servers(settings):
        needed += min(size * batch, max(BUCKET, size * model.embedding))
    return needed


def _evaluated_at_once(settings: Mapping[str, Any]) -> int:
    """Completions of an evaluation that a GPU computes at once; 0 without ms-swift's evaluation."""
    has_rows = settings.get("val_dataset") or number(settings, "split_dataset_ratio", 0.0) > 0
    if not has_rows or settings.get("eval_strategy") in ("no", False):
        return 0
    return number(settings, "per_device_eval_batch_size", 1)


def _kept_while_sampling(parts: Mapping[str, float], settings: Mapping[str, Any]) -> float:
    """Bytes of the trainer that stay on a GPU while vLLM samples there."""
    kept = parts["gradients"] + parts["optimizer"]
    if settings.get("offload_optimizer") is True:
        # The two moments go; under DeepSpeed the weights in 32 bits stay, a third.
        kept -= parts["optimizer"]
        if zero_stage(settings)[0] is not None:
            kept += parts["optimizer"] / 3
    if settings.get("offload_model") is not True:
        kept += parts["weights"]
    return kept


def _vllm_weights(model: ModelSize, settings: Mapping[str, Any]) -> float:
    """Bytes of the model's weights on each of vLLM's GPUs."""
    return _bytes_a_parameter(settings) * model.parameters / number(settings, TENSOR, 1)


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
    device = (zero.get("offload_optimizer") or {}).get("device", "none")
    return int(zero.get("stage", 0)), device != "none"


def _bytes_a_parameter(settings: Mapping[str, Any]) -> int:
    return 4 if settings.get("torch_dtype") in ("float32", "float") else 2


def _trained_parameters(model: ModelSize, settings: Mapping[str, Any]) -> float:
    """All parameters, or those of LoRA's adapters on all linear layers, which are about 33 x rank
    x sqrt(P) for Qwen2.5 of 0.5B to 14B.
    """
    if settings.get("tuner_type") == "full":
        return model.parameters
    return 33 * number(settings, "lora_rank", 8) * math.sqrt(model.parameters)


def memory(plan: Plan, model: ModelSize | None = None) -> Estimate:
    """GiB of each training GPU at its worst moment, or of the host where there is none. count:
    bytes. model: in place of the plan's.
    """
    model = model or model_size(str(plan.settings.get("model")))
    if model is None:
        return Estimate(f"not known: neither files nor name of {_model(plan)} tell its size")
    context = plan.server_settings.get("vllm_max_model_len")
    settings = plan.settings | {"vllm_max_model_len": context}
    processes = plan.processes * plan.variables.nnodes
    if not plan.machine.gpus:
        _, needed = peak_memory(model, settings, processes)
        return _host_memory(plan, model, needed * plan.processes)

    available = _smallest(plan, plan.train_gpus)
    if not available:
        _, needed = peak_memory(model, settings, processes)
        return Estimate("the GPUs' memory is not known", round(needed))
    is_colocated = bool(settings.get("use_vllm")) and not plan.hosts
    server_gpu = available if is_colocated else _smallest(plan, plan.server_gpus)
    share = server_gpu * number(plan.server_settings, "vllm_gpu_memory_utilization", 0.9)
    moment, needed = peak_memory(model, settings, processes, share if is_colocated else 0)
    text = f"training about {needed / GIB:.0f} of {available / GIB:.0f} GiB a GPU"
    if moment != STEP:
        text += f", {moment}"
    gathers = zero_stage(settings)[0] == 3 and processes > 1
    if moment == UPDATE and gathers and not settings.get("move_model_batches"):
        text += " (--move_model_batches 16 sends them in parts)"
    fits = needed <= TIGHT * available
    if server_gpu:
        weights = _vllm_weights(model, plan.server_settings)
        text += f"; vLLM {share / GIB:.0f}, of which weights {weights / GIB:.1f}"
        if weights + VLLM_RESERVES > share:
            text += f": too few, --{TENSOR} divides them"
            fits = False
    return Estimate(text, round(needed), fits)


def _host_memory(plan: Plan, model: ModelSize, needed: float) -> Estimate:
    if plan.settings.get("use_vllm"):
        environ = {**os.environ, **plan.trainer.env}
        needed += 4 * model.parameters + number(environ, "VLLM_CPU_KVCACHE_SPACE", 1.0) * GIB
    host = plan.machine.memory * MIB
    text = f"models and activations about {needed / GIB:.1f} of {host / GIB:.0f} GiB"
    return Estimate(text, round(needed), needed <= TIGHT * host)


def _smallest(plan: Plan, gpus: tuple[str, ...]) -> int:
    """Bytes of the smallest of these GPUs; 0 where there is none whose memory is known."""
    sizes = [gpu.memory for gpu in plan.machine.gpus if gpu.index in gpus and gpu.memory]
    return min(sizes, default=0) * MIB


def disk(plan: Plan) -> Estimate:
    """The checkpoints against what is free where the run's folder is. count: bytes, None where they
    are not known.
    """
    model, kept = model_size(str(plan.settings.get("model"))), checkpoints_kept(plan)
    free = _free(plan)
    left = f"{decimal(free)} free"
    if kept == 0:
        return Estimate(f"no checkpoints; {left}", 0)
    if model is None:
        return Estimate(f"checkpoints of a size that is not known, of {_model(plan)}; {left}")
    size = checkpoint_size(model, plan.settings)
    if kept is None:
        text = f"checkpoints of {decimal(size)}, their number is not known; {left}"
        return Estimate(text, size, size <= free)
    missing = max(0, kept - len(checkpoints(plan.output)))  # a run that goes on has written some
    text = (
        f"{kept} checkpoint{'s' * (kept != 1)} of {decimal(size)}: {decimal(kept * size)}; {left}"
    )
    # One more: the oldest is deleted when the next is written.
    fits = (missing + 1) * size <= free
    if not fits:
        every = number(plan.settings, "save_steps", 500.0)
        begins = int(plan.resume.name.rpartition("-")[2]) if plan.resume else 0
        text += f", which the next one fills at step {begins + (free // size + 1) * every:,.0f}"
    return Estimate(text, kept * size, fits)


def checkpoint_size(model: ModelSize, settings: Mapping[str, Any]) -> int:
    """Bytes of one checkpoint: the weights, and what AdamW keeps."""
    size, saved = _bytes_a_parameter(settings), _trained_parameters(model, settings)
    if settings.get("save_only_model") is True:
        return round(size * saved)
    stage, _ = zero_stage(settings)
    if stage is None:
        return round(3 * size * saved)
    # ZeRO-1 and 2 save the weights twice.
    copies = 1 if stage == 3 else 2
    return round((12 + copies * size) * saved)


def checkpoints_kept(plan: Plan) -> int | None:
    """How many checkpoints the run leaves; None where that is not known."""
    settings = plan.settings
    strategy = settings.get("save_strategy", "steps")
    limit = number(settings, "save_total_limit", 0) or None
    if strategy in ("no", False):  # False: as YAML reads it
        return 0
    total, every = steps(plan).count, number(settings, "save_steps", 500.0)
    if strategy == "epoch" or total is None or every < 1:  # below 1 it is a share of the steps
        return limit
    return min(math.ceil(total / every), limit or total)


def _free(plan: Plan) -> int:
    """Bytes that are free where the run's folder is or will be."""
    output = plan.output.absolute()
    existing = next(path for path in (output, *output.parents) if path.is_dir())
    return shutil.disk_usage(existing).free


def _model(plan: Plan) -> Any:
    return plan.settings.get("model")
