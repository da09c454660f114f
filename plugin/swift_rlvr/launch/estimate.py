"""How long a planned run is and what it needs: steps, tokens, memory and disk, each as a line for
people.

Steps and tokens are counted. Memory and disk are rough, and only warn.
"""

import math
import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from rich.filesize import decimal

from swift_rlvr.launch.memory import (
    GIB,
    MIB,
    STEP,
    TIGHT,
    UPDATE,
    VLLM_RESERVES,
    peak_memory,
    trained_parameters,
    vllm_weights,
)
from swift_rlvr.launch.model_size import ModelSize, model_size
from swift_rlvr.launch.plan import Plan
from swift_rlvr.launch.settings import TENSOR, GrpoSettings
from swift_rlvr.runs.folder import checkpoints
from swift_rlvr.tasks import TASKS
from swift_rlvr.tasks.files import data_suffix
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import existing_folder
from swift_rlvr.utils.jsonl import LONGEST_ROW, read_jsonl
from swift_rlvr.utils.settings import number


@dataclass(frozen=True)
class Estimate:
    """One line. count: the number it is about, in its unit; None if it is not known, so that nothing
    was compared.

    fits: false if the run may not or cannot work.
    """

    text: str
    count: int | None = None
    fits: bool = True


# Steps and tokens.


def steps(plan: Plan) -> Estimate:
    """Steps of the optimizer: epochs x rows x generations / completions a step. A run that makes none
    does not fit: ms-swift ends it without an error.
    """
    settings = plan.grpo
    limit, epochs = settings.max_steps, settings.num_train_epochs
    rows = training_rows(settings)
    group, iterations = settings.num_generations, settings.num_iterations
    prompts = prompts_at_once(plan)
    if rows is not None and rows < prompts:
        text = f"none: {rows:,} rows to train on, and {prompts:,} prompts are sampled at once"
        return Estimate(text, 0, fits=False)
    if limit > 0:
        return Estimate(f"{limit:,} (max_steps)", limit)
    if limit == 0:
        return Estimate("none: max_steps is 0; with -1 num_train_epochs counts", 0, fits=False)
    if epochs <= 0:
        return Estimate(f"none: num_train_epochs is {epochs:g}", 0, fits=False)
    if settings.is_on("streaming"):
        return Estimate("not known: a streamed dataset needs max_steps", fits=False)
    if rows is None:
        names = ", ".join(settings.listed("dataset"))
        return Estimate(f"not known before {names} is loaded")

    completions_an_epoch = rows // prompts * prompts * group * iterations
    total = math.ceil(epochs * math.ceil(completions_an_epoch / plan.completions))
    text = f"{epochs:g} epoch{'s' * (epochs != 1)} x {rows:,} rows x {group} completions"
    if iterations > 1:
        text += f" x {iterations} iterations"
    return Estimate(f"{total:,} = {text} / {plan.completions} a step", total)


def prompts_at_once(plan: Plan) -> int:
    """The prompts that are sampled at once, and the rows that a step needs: ms-swift drops the last rows
    of an epoch, which are fewer.
    """
    sampled = plan.grpo.sampled_at_once(plan.processes * plan.variables.nnodes)
    return max(1, sampled // plan.grpo.num_generations)


def warmup(plan: Plan) -> Estimate:
    """The steps in which the learning rate rises, against all. count: of them."""
    rising, total = plan.grpo.warmup_steps, steps(plan).count
    if rising < 1:  # a share of the steps
        rising *= total or 0
    text = f"the learning rate rises for {rising:,.0f} steps"
    if total:
        text += f" of {total:,}"
    return Estimate(text, round(rising), fits=not total or rising < total)


def evaluation(plan: Plan) -> Estimate:
    """The rows of ms-swift's evaluation, of which its trainer wants as many as it takes at once; it
    says so after the server's start. count: rows.
    """
    settings = plan.grpo
    at_once = settings.evaluated_at_once * plan.processes * plan.variables.nnodes
    needed = at_once // (settings.num_generations_eval or settings.num_generations)
    setting = "val_dataset" if settings.values.get("val_dataset") else "dataset"
    rows = 0
    for name in settings.listed(setting):
        count = dataset_rows(name)
        if count is None:
            return Estimate(f"not known before {name} is loaded")
        rows += count if setting == "val_dataset" else held_back(count, settings)
    text = f"{rows:,} rows to evaluate on, of {needed:,} that are taken at once"
    return Estimate(text, rows, fits=rows >= needed)


def training_rows(settings: GrpoSettings) -> int | None:
    """The rows that a run trains on, as far as .jsonl files and `#N` tell. With interleave_prob it
    ends when one of its datasets does.
    """
    counts = [dataset_rows(name) for name in settings.listed("dataset")]
    if not counts or settings.values.get("interleave_prob"):
        return None
    total = 0
    for rows in counts:
        if rows is None:
            return None
        total += rows - held_back(rows, settings)
    return total


def held_back(rows: int, settings: GrpoSettings) -> int:
    """How many rows of a dataset ms-swift keeps for its evaluation: at least one, if any."""
    if settings.values.get("val_dataset") or settings.split_dataset_ratio <= 0:
        return 0
    return max(1, int(rows * settings.split_dataset_ratio))


def dataset_rows(name: str) -> int | None:
    """Count the rows that a value of `--dataset` stands for: the number after `#`, or else the lines
    of its .jsonl file. None if it is on a hub, in another form, or cannot be read.
    """
    file, count = local_file(name)
    if count is not None:
        return count  # where there are fewer, ms-swift repeats rows
    if file is None or file.suffix != ".jsonl" or not file.is_file():
        return None
    with suppress(InputError):  # the doctor says which line it is
        return sum(1 for _ in read_jsonl(file, LONGEST_ROW))
    return None


def task_in(name: str) -> str:
    """The task with which a value of `--dataset` begins; "" if it begins with none.

    >>> task_in("countdown:tasks.jsonl#100"), task_in("owner/dataset")
    ('countdown', '')
    """
    first = name.partition(":")[0].partition("#")[0]
    return first if first in TASKS else ""


def local_file(name: str) -> tuple[Path | None, int | None]:
    """The file that a value of `--dataset` names, None if it is a hub's, and the number after `#`.

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
    """The smaller of the model's context and vllm_max_model_len; None if neither is known."""
    limits = []
    model = model_size(plan.grpo.model)
    if model and model.context:
        limits.append(ContextLimit(model.context, "the model's context"))
    engine = plan.engine.vllm_max_model_len
    if plan.grpo.uses_vllm and engine:
        limits.append(ContextLimit(engine, "vllm_max_model_len"))
    return min(limits, default=None)


def tokens(plan: Plan) -> Estimate:
    """Completion and prompt, of which max_length is the limit, against what the model reads."""
    completion = plan.grpo.longest_completion
    limit = context_limit(plan)
    engine = plan.engine.vllm_max_model_len
    if limit and completion < limit.tokens < engine and plan.grpo.uses_vllm:
        text = f"vLLM refuses a vllm_max_model_len of {engine:,}: the model reads {limit.tokens:,}"
        return Estimate(text, completion, fits=False)

    text = f"completion {completion:,}"
    prompt = plan.grpo.max_length
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


# Memory and disk.


def memory(plan: Plan, model: ModelSize | None = None) -> Estimate:
    """GiB of each training GPU at its worst moment, or of the host without GPUs. count: bytes. model:
    in place of the plan's.
    """
    model = model or model_size(plan.grpo.model)
    if model is None:
        return Estimate(f"not known: neither files nor name of {plan.grpo.model} tell its size")
    # A server's recipe may have the context.
    settings = replace(plan.grpo, vllm_max_model_len=plan.engine.vllm_max_model_len)
    processes = plan.processes * plan.variables.nnodes
    if not plan.machine.gpus:
        return _memory_of_host(plan, model, settings, processes)
    available = plan.machine.least_memory(plan.train_gpus) * MIB
    if not available:
        return Estimate("the GPUs' memory is not known")
    share = (
        plan.machine.least_memory(plan.vllm_gpus) * MIB * plan.engine.vllm_gpu_memory_utilization
    )
    own_share = share * settings.is_colocated
    moment, needed = peak_memory(model, settings, processes, own_share)
    text = f"training about {needed / GIB:.0f} of {available / GIB:.0f} GiB a GPU"
    if moment != STEP:
        text += f", {moment}"
    is_at_once = settings.gathers_weights(processes) and not settings.move_model_batches
    if moment == UPDATE and is_at_once:
        text += " (--move_model_batches 16 sends them in parts)"
    fits = needed <= TIGHT * available
    if share:
        weights = vllm_weights(model, plan.engine)
        text += f"; vLLM {share / GIB:.0f}, of which weights {weights / GIB:.1f}"
        if weights + VLLM_RESERVES > share:
            text += f": too few, --{TENSOR} divides them"
            fits = False
    return Estimate(text, round(needed), fits)


def _memory_of_host(
    plan: Plan, model: ModelSize, settings: GrpoSettings, processes: int
) -> Estimate:
    """All processes of a machine without GPUs, and vLLM."""
    _, needed = peak_memory(model, settings, processes)
    needed *= plan.processes
    if settings.uses_vllm:
        environ = {**os.environ, **plan.trainer.env}
        needed += 4 * model.parameters + number(environ, "VLLM_CPU_KVCACHE_SPACE", 1.0) * GIB
    host = plan.machine.memory * MIB
    text = f"models and activations about {needed / GIB:.1f} of {host / GIB:.0f} GiB"
    return Estimate(text, round(needed), needed <= TIGHT * host)


def disk(plan: Plan) -> Estimate:
    """Compare the checkpoints with what is free where the run's folder is or will be. count: bytes;
    None if they are not known.
    """
    model, kept = model_size(plan.grpo.model), checkpoints_kept(plan)
    free = shutil.disk_usage(existing_folder(plan.output)).free
    left = f"{decimal(free)} free"
    if kept == 0:
        return Estimate(f"no checkpoints; {left}", 0)
    if model is None:
        text = f"checkpoints of a size that is not known, of {plan.grpo.model}; {left}"
        return Estimate(text)
    size = checkpoint_size(model, plan.grpo)
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
        begins = int(plan.resume.name.rpartition("-")[2]) if plan.resume else 0
        full_at = begins + (free // size + 1) * plan.grpo.save_steps
        text += f", which the next one fills at step {full_at:,.0f}"
    return Estimate(text, kept * size, fits)


def checkpoint_size(model: ModelSize, settings: GrpoSettings) -> int:
    """Bytes of one checkpoint: the weights, and what AdamW keeps."""
    size, saved = settings.bytes_a_parameter, trained_parameters(model, settings)
    if settings.is_on("save_only_model"):
        return round(size * saved)
    stage = settings.zero.stage
    # AdamW has two moments of each weight, as wide as the weight.
    if stage is None:
        return round(3 * size * saved)
    # DeepSpeed's are 4 bytes wide, as are the weights beside them. ZeRO-1 and 2 save the weights twice.
    copies = 1 if stage == 3 else 2
    return round((12 + copies * size) * saved)


def checkpoints_kept(plan: Plan) -> int | None:
    """How many checkpoints the run leaves; None if that is not known."""
    strategy = plan.settings.get("save_strategy", "steps")
    limit = plan.grpo.save_total_limit or None
    if strategy in ("no", False):  # False: as YAML reads it
        return 0
    total, every = steps(plan).count, plan.grpo.save_steps
    if strategy == "epoch" or total is None or every < 1:  # below 1 it is a share of the steps
        return limit
    return min(math.ceil(total / every), limit or total)
