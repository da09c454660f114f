"""How long a planned run is and what it needs: steps, tokens, memory and disk, each as a line for
people.

`sizes.py` has the formulas for memory and disk.
"""

import math
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.filesize import decimal

from swift_rlvr.launch import sizes
from swift_rlvr.launch.sizes import ModelSize
from swift_rlvr.runs.folder import checkpoints
from swift_rlvr.tasks.sources import SUFFIXES
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import LONGEST_ROW, read_jsonl
from swift_rlvr.utils.settings import as_list, number

if TYPE_CHECKING:
    from swift_rlvr.launch.plan import Plan

GIB, MIB = 2**30, 2**20
TIGHT = 0.9  # above this share of a GPU what the estimate leaves out may no longer fit


@dataclass(frozen=True)
class Estimate:
    """One line. count: the number it is about, in its unit; None where it is not known.

    fits: false where the run cannot work. tight: it may not, for the estimate is rough or little is
    left.
    """

    text: str
    count: int | None = None
    fits: bool = True
    tight: bool = False


def steps(plan: "Plan") -> Estimate:
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
        return Estimate(
            f"not known before {', '.join(map(str, as_list(settings.get('dataset'))))} is loaded"
        )
    group, epochs = (
        number(settings, "num_generations", 8),
        number(settings, "num_train_epochs", 3.0),
    )
    iterations = number(settings, "num_iterations", 1)
    count = rows // max(1, plan.completions // group) * iterations
    total = math.ceil(epochs * max(1, count))
    text = f"{epochs:g} epoch{'s' * (epochs != 1)} x {rows:,} rows x {group} completions"
    text += f" x {iterations} iterations" if iterations > 1 else ""
    return Estimate(f"{total:,} = {text} / {plan.completions} a step", total, fits=count > 0)


def training_rows(settings: dict[str, Any]) -> int | None:
    """The rows that a run trains on, as far as .jsonl files and `#N` tell."""
    total = 0
    for name in map(str, as_list(settings.get("dataset"))):
        file, count = local_file(name)
        if count is not None:
            total += count  # where there are fewer, ms-swift repeats rows
        elif file is None or file.suffix != ".jsonl" or not file.is_file():
            return None
        else:
            with suppress(InputError):  # the doctor says which line it is
                total += sum(1 for _ in read_jsonl(file, LONGEST_ROW))
    share = 0.0 if settings.get("val_dataset") else number(settings, "split_dataset_ratio", 0.0)
    return total - int(total * share) if total else None


def local_file(name: str) -> tuple[Path | None, int | None]:
    """The file that a value of `--dataset` names, None where it is a hub's, and the number after
    `#`.

    >>> local_file("countdown:tasks.jsonl#100"), local_file("gsm8k")
    ((PosixPath('tasks.jsonl'), 100), (None, None))
    """
    count = re.search(r"#(\d+)\Z", name)
    text = name[: count.start()] if count else name
    path = Path(text if Path(text).is_file() else text.partition(":")[2] or text)
    return (path.expanduser() if path.suffix in SUFFIXES else None), int(
        count[1]
    ) if count else None


def tokens(plan: "Plan") -> Estimate:
    """Prompt, of which max_length is the limit, and completion against what the model reads."""
    settings, model = plan.settings, _model(plan)
    completion = sizes.longest_completion(settings)
    limits = [(model.context, "the model's context")] if model and model.context else []
    if settings.get("use_vllm") and (
        limit := number(plan.server_settings, "vllm_max_model_len", 0)
    ):
        if any(completion < context < limit for context, _ in limits):
            text = (
                f"vLLM refuses a vllm_max_model_len of {limit:,}: the model reads {limits[0][0]:,}"
            )
            return Estimate(text, completion, False)
        limits.append((limit, "vllm_max_model_len"))
    text = f"completion {completion:,}"
    if prompt := number(settings, "max_length", 0):
        text = f"prompt up to {prompt:,} + {text}"
    if not limits:
        return Estimate(f"{text}; the model's context is not known yet")
    limit, name = min(limits)
    return Estimate(f"{text}, of {limit:,} ({name})", completion, completion < limit)


def memory(plan: "Plan") -> Estimate:
    """GiB on each GPU, or of the host's where there is none. count: bytes on a training GPU, or on
    the host.
    """
    model, server = _model(plan), plan.server_settings
    if model is None:
        return Estimate(f"not known before {plan.settings.get('model')} is here")
    settings = plan.settings | {"vllm_max_model_len": server.get("vllm_max_model_len")}
    training = sizes.training_memory(model, settings, plan.processes * plan.variables.nnodes)
    certain = training._replace(batch=0)  # completions may be shorter
    if not plan.machine.gpus:
        return _host_memory(plan, model, sum(training), sum(certain))
    needed, least = sum(training), sum(certain)
    gpu, server_gpu = _smallest(plan, plan.train_gpus), _smallest(plan, plan.server_gpus)
    if gpu and plan.settings.get("use_vllm") and not plan.hosts:  # in the trainer's process
        server_gpu, parts = gpu, sizes.server_memory(model, server, gpu)[:2]
        needed, least = (
            sizes.colocated_memory(each, *parts, plan.settings) for each in (training, certain)
        )
    texts, fits = list[str](), not gpu or least <= gpu
    if gpu:
        texts.append(f"training about {needed / GIB:.0f} of {gpu / GIB:.0f} GiB a GPU")
    if (
        sizes.zero_stage(settings)[1] and settings.get("tuner_type") == "full"
    ):  # AdamW and gradients, in 32 bits
        offloaded = 16 * model.parameters // plan.variables.nnodes
        fits = fits and offloaded <= plan.machine.memory * MIB
        texts.append(
            f"about {offloaded / GIB:.0f} of the host's {plan.machine.memory * MIB / GIB:.0f} GiB"
        )
    if server_gpu:
        share, weights, cached = sizes.server_memory(model, server, server_gpu)
        fits = fits and cached >= number(server, "vllm_max_model_len", model.context or 0)
        text = f"and {cached:,} tokens of cache" if cached > 0 else "do not fit"
        texts.append(f"vLLM {share / GIB:.0f}: weights {weights / GIB:.1f} {text}")
    text = "; ".join(texts) or "the GPUs' memory is not known"
    return Estimate(text, needed, fits, fits and bool(gpu) and needed > TIGHT * gpu)


def _smallest(plan: "Plan", gpus: Sequence[str]) -> int:
    """Bytes of the smallest of these GPUs; 0 where there is none whose memory is known."""
    return (
        min(
            (gpu.memory for gpu in plan.machine.gpus if gpu.index in gpus and gpu.memory), default=0
        )
        * MIB
    )


def _host_memory(plan: "Plan", model: ModelSize, training: int, least: int) -> Estimate:
    needed, host = training * plan.processes, plan.machine.memory * MIB
    if plan.settings.get("use_vllm"):
        cache = number({**os.environ, **plan.trainer.env}, "VLLM_CPU_KVCACHE_SPACE", 1.0)
        needed += 4 * model.parameters + int(cache * GIB)
    text = f"models and activations about {needed / GIB:.1f} of {host / GIB:.0f} GiB"
    return Estimate(text, needed, least * plan.processes <= host, needed > TIGHT * host)


def disk(plan: "Plan") -> Estimate:
    """The checkpoints against what is free where the run's folder is. count: bytes, None where they
    are not known.
    """
    model, kept = _model(plan), checkpoints_kept(plan)
    free = _free(plan)
    left = f"; {decimal(free)} free"
    if kept == 0:
        return Estimate(f"no checkpoints{left}", 0)
    if model is None:
        return Estimate(
            f"checkpoints of a size that is not known before {plan.settings.get('model')} is here{left}"
        )
    size = sizes.checkpoint_size(model, plan.settings)
    if kept is None:
        return Estimate(
            f"checkpoints of {decimal(size)}, their number is not known{left}", size, size <= free
        )
    text = f"{kept} checkpoints of {decimal(size)}: {decimal(kept * size)}{left}"
    missing = max(0, kept - len(checkpoints(plan.output)))  # a run that goes on has written some
    # Tight: the oldest one is deleted when the next is written.
    return Estimate(text, kept * size, missing * size <= free, (missing + 1) * size > free)


def _free(plan: "Plan") -> int:
    """Bytes that are free where the run's folder is or will be."""
    output = plan.output.absolute()
    return shutil.disk_usage(next(each for each in (output, *output.parents) if each.is_dir())).free


def checkpoints_that_fit(plan: "Plan") -> tuple[int, str] | None:
    """How many checkpoints to keep, at least 2, and why, where nobody has said and the disk does
    not hold all.
    """
    model, kept = _model(plan), checkpoints_kept(plan)
    if plan.settings.get("save_total_limit") or kept == 0:
        return None
    if model is None:
        return 2, "for their size is not known yet"
    fitting = _free(plan) // sizes.checkpoint_size(model, plan.settings) + len(
        checkpoints(plan.output)
    )
    # One less: the oldest one is deleted when the next is written.
    all_fit = kept is not None and kept <= fitting
    return None if all_fit else (max(2, fitting - 1), f"for the disk does not hold {kept or 'all'}")


def checkpoints_kept(plan: "Plan") -> int | None:
    """How many checkpoints the run leaves; None where that is not known."""
    settings, total, every = (
        plan.settings,
        steps(plan).count,
        number(plan.settings, "save_steps", 500.0),
    )
    strategy, limit = (
        settings.get("save_strategy", "steps"),
        number(settings, "save_total_limit", 0) or None,
    )
    if strategy in ("no", False):  # False: as YAML reads it
        return 0
    if strategy == "epoch" or total is None or every < 1:  # below 1 it is a share of the steps
        return limit
    return min(math.ceil(total / every), limit or total)


def _model(plan: "Plan") -> ModelSize | None:
    return sizes.model_size(str(plan.settings.get("model")))
