"""How long a planned run is and what it needs: steps, tokens, memory and disk, each as a line for people.

`sizes.py` has the formulas for memory and disk.
"""

from __future__ import annotations

import math
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from swift_rlvr.data.sources import SUFFIXES
from swift_rlvr.errors import InputError
from swift_rlvr.jsonl import LONGEST_ROW, read_jsonl
from swift_rlvr.launch import sizes
from swift_rlvr.launch.sizes import Shape, number, setting_list
from swift_rlvr.recipes import read_flags, read_recipe

if TYPE_CHECKING:
    from swift_rlvr.launch.plan import Plan

GIB, MIB = 2**30, 2**20
TIGHT = 0.9  # above this share of a GPU what the estimate leaves out may no longer fit


@dataclass(frozen=True)
class Estimate:
    """One line. count: the number it is about, in its unit; None where it is not known.

    fits: false where the run cannot work. tight: it may not, for the estimate is rough or little is left.
    """

    text: str
    count: int | None = None
    fits: bool = True
    tight: bool = False


def steps(plan: Plan) -> Estimate:
    """Steps of the optimizer: epochs x rows x generations / completions a step, without a last incomplete batch.

    As TRL's RepeatSampler, which deals out the prompts, and transformers' Trainer count them.
    """
    settings = plan.settings
    most = int(number(settings, "max_steps", -1))
    if most > 0:
        return Estimate(f"{most:,} (max_steps)", most)
    if settings.get("streaming") is True:
        return Estimate("not known: a streamed dataset needs max_steps", fits=False)
    rows = training_rows(settings)
    if rows is None:
        return Estimate(f"not known before {_names(settings)} is loaded")
    group, epochs = int(number(settings, "num_generations", 8)), number(settings, "num_train_epochs", 3)
    sampled, accumulation = generation_batch(plan), int(number(settings, "gradient_accumulation_steps", 1))
    batches = rows // max(1, sampled // group) * int(number(settings, "num_iterations", 1))
    count = batches * max(1, sampled // _at_once(plan)) // accumulation
    total = math.ceil(epochs * max(1, count))
    times = f" x {settings['num_iterations']} iterations" if int(number(settings, "num_iterations", 1)) > 1 else ""
    parts = f"{epochs:g} epoch{'s' * (epochs != 1)} x {rows:,} rows x {group} completions{times}"
    return Estimate(f"{total:,} = {parts} / {_at_once(plan) * accumulation} a step", total, fits=batches > 0)


def generation_batch(plan: Plan) -> int:
    """The completions that are sampled at once: ms-swift's generation_batch_size."""
    settings = plan.settings
    accumulation = number(settings, "gradient_accumulation_steps", 1)
    sampled = _at_once(plan) * number(settings, "steps_per_generation", accumulation)
    return int(number(settings, "generation_batch_size", sampled))


def training_rows(settings: dict[str, Any]) -> int | None:
    """The rows that a run trains on, as far as .jsonl files and `#N` tell."""
    total = 0
    for name in map(str, setting_list(settings, "dataset")):
        file, count = local_file(name)
        if count is not None:
            total += count  # where there are fewer, ms-swift repeats rows
        elif file is None or file.suffix != ".jsonl" or not file.is_file():
            return None
        else:
            with suppress(InputError):  # the doctor says which line it is
                total += sum(1 for _ in read_jsonl(file, LONGEST_ROW))
    share = 0.0 if setting_list(settings, "val_dataset") else number(settings, "split_dataset_ratio", 0)
    return total - int(total * share) if total else None


def local_file(name: str) -> tuple[Path | None, int | None]:
    """The file that a value of `--dataset` names, None where it is a hub's, and the number after `#`.

    >>> local_file("countdown:tasks.jsonl#100"), local_file("gsm8k")
    ((PosixPath('tasks.jsonl'), 100), (None, None))
    """
    count = re.search(r"#(\d+)\Z", name)
    text, number = (name[: count.start()], int(count[1])) if count else (name, None)
    path = Path(text if Path(text).is_file() else text.partition(":")[2] or text)
    return (path.expanduser() if path.suffix in SUFFIXES else None), number


def tokens(plan: Plan, longest_prompt: int | None = None) -> Estimate:
    """Prompt and completion against what the model reads. longest_prompt: measured; else max_length is its limit."""
    settings, shape = plan.settings, _shape(plan)
    completion, turns = sizes.longest_completion(settings), sizes.turns(settings)
    prompt = longest_prompt or int(number(settings, "max_length", 0))
    rooms = {"the model's context": shape.context or 0 if shape else 0}
    if settings.get("use_vllm"):
        rooms["vllm_max_model_len"] = int(number(server_settings(plan), "vllm_max_model_len", 0))
    known = {name: room for name, room in rooms.items() if room}
    measured = "prompt" if longest_prompt else "prompt up to"
    what = "completion" if turns == 1 else f"{turns} turns"
    text = f"{measured} {prompt:,} + {what} {completion:,}" if prompt else f"{what} {completion:,}"
    if not known:
        return Estimate(f"{text}; the model's context is not known yet")
    name, room = min(known.items(), key=lambda pair: pair[1])
    needed = completion + (longest_prompt or 1)
    fits = needed <= room
    tight = fits and completion + (prompt or 0) > room
    return Estimate(f"{text}, of {room:,} ({name})", needed, fits, tight)


def memory(plan: Plan) -> Estimate:
    """GiB on each GPU, or of the host's where there is none. count: bytes on a training GPU, or on the host."""
    shape = _shape(plan)
    if shape is None:
        return Estimate(f"not known before {plan.settings.get('model')} is here")
    training = sizes.training_memory(shape, plan.settings, plan.processes * plan.variables.nnodes)
    certain = {name: size for name, size in training.items() if name not in sizes.ACTIVATIONS}
    if not plan.machine.gpus:
        return _host_memory(plan, shape, sum(training.values()), sum(certain.values()))
    engine = server_settings(plan)
    parts, fits, tight, needed = list[str](), True, False, sum(training.values())
    for gpus, is_trainer in ((plan.train_gpus, True), (plan.server_gpus, False)):
        known = [gpu.memory for gpu in plan.machine.gpus if gpu.index in gpus and gpu.memory]
        if not known:
            continue
        room = min(known) * MIB
        server = sizes.server_memory(shape, engine, room)
        colocated = bool(is_trainer and plan.settings.get("use_vllm") and not plan.hosts)
        if is_trainer:
            least = sum(certain.values())
            if colocated:
                needed = sizes.colocated_memory(training, server, plan.settings)
                least = sizes.colocated_memory(certain, server, plan.settings)
            fits, tight = fits and least <= room, tight or needed > TIGHT * room
            parts.append(f"training about {needed / GIB:.0f} of {room / GIB:.0f} GiB a GPU")
        if colocated or not is_trainer:
            longest = int(number(engine, "vllm_max_model_len", shape.context or 0))
            fits = fits and server.tokens >= longest
            cached = f"and {server.tokens:,} tokens of cache" if server.tokens > 0 else "do not fit"
            parts.append(f"vLLM {server.share / GIB:.0f}: weights {server.weights / GIB:.1f} {cached}")
    return Estimate("; ".join(parts) or "the GPUs' memory is not known", needed, fits, tight and fits)


def server_settings(plan: Plan) -> dict[str, Any]:
    """What vLLM gets: the training's settings and, for a server that the plan starts, those of its own command."""
    if plan.server is None:
        return plan.settings
    words = plan.server.argv[plan.server.argv.index("rollout") + 1 :]
    return {**plan.settings, **read_recipe(words[0]).settings, **read_flags(words[1:])}


def _host_memory(plan: Plan, shape: Shape, training: int, least: int) -> Estimate:
    needed = training * plan.processes
    if plan.settings.get("use_vllm"):
        cache = number({**os.environ, **plan.trainer.env}, "VLLM_CPU_KVCACHE_SPACE", 1)
        needed += 4 * shape.parameters + int(cache * GIB)
    room = plan.machine.memory * MIB
    text = f"models and activations about {needed / GIB:.1f} of {room / GIB:.0f} GiB"
    return Estimate(text, needed, least * plan.processes <= room, needed > TIGHT * room)


def disk(plan: Plan) -> Estimate:
    """The checkpoints against what is free where the run's folder is. count: bytes, None where they are not known."""
    shape, kept = _shape(plan), checkpoints_kept(plan)
    free = free_space(plan.output)
    left = f"{sizes.gigabytes(free)} free"
    if kept == 0:
        return Estimate(f"no checkpoints; {left}", 0)
    if shape is None:
        return Estimate(f"checkpoints of a size that is not known before {plan.settings.get('model')} is here; {left}")
    size = sizes.checkpoint_size(shape, plan.settings)
    each = f"of {sizes.gigabytes(size)}"
    if kept is None:
        return Estimate(f"checkpoints {each}, their number is not known; {left}", size, size <= free)
    total = f": {sizes.gigabytes(kept * size)}" if kept > 1 else ""
    fits = kept * size <= free
    # The oldest one is deleted when the next is written.
    tight = fits and (kept + 1) * size > free
    return Estimate(f"{kept} checkpoint{'s' * (kept > 1)} {each}{total}; {left}", kept * size, fits, tight)


def checkpoints_kept(plan: Plan) -> int | None:
    """How many checkpoints the run leaves; None where that is not known. save_steps below 1 is a share of the steps."""
    settings, total = plan.settings, steps(plan).count
    limit = None if settings.get("save_total_limit") is None else max(1, int(number(settings, "save_total_limit", 1)))
    strategy, every = settings.get("save_strategy") or "steps", number(settings, "save_steps", 500)
    if strategy == "no" or settings.get("save_strategy") is False:  # as YAML reads it
        return 0
    if strategy == "epoch":
        made = math.ceil(number(settings, "num_train_epochs", 3))
    elif total is None:
        return limit
    else:
        made = math.ceil(total / (every if every >= 1 else max(1, math.ceil(every * total))))
    return made if limit is None else min(made, limit)


def free_space(path: Path) -> int:
    """Free bytes of the file system that a path is on, or will be."""
    return shutil.disk_usage(next(_existing(path))).free


def _existing(path: Path) -> Iterator[Path]:
    for folder in (path.absolute(), *path.absolute().parents):
        if folder.is_dir():
            yield folder


def _shape(plan: Plan) -> Shape | None:
    return sizes.model_shape(str(plan.settings.get("model")))


def _at_once(plan: Plan) -> int:
    """Completions of one forward pass, of all processes."""
    return plan.processes * plan.variables.nnodes * int(number(plan.settings, "per_device_train_batch_size", 1))


def _names(settings: dict[str, Any]) -> str:
    return ", ".join(map(str, setting_list(settings, "dataset"))) or "a dataset"
