"""Checks of the model and the data: their files, their lengths, and the steps that they make."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rich.filesize import decimal

from swift_rlvr.launch import estimate
from swift_rlvr.launch.checks import (
    CheckResult,
    Launch,
    failed,
    judged,
    last_folder,
    passed,
    warning,
)
from swift_rlvr.launch.checks.datasets import datasets, without_task
from swift_rlvr.launch.checks.pictures import pictures
from swift_rlvr.launch.checks.prompts import prompts
from swift_rlvr.launch.model_size import model_folder, model_size
from swift_rlvr.utils.jsonl import read_json

# What a model's folder must have, and the files that are it.
FILES = {
    "config.json": ("config.json",),
    "a tokenizer": (
        "tokenizer.json",
        "tokenizer.model",
        "vocab.json",
        "vocab.txt",
        "tokenizer_config.json",
    ),
    "weights (.safetensors)": ("*.safetensors", "pytorch_model*.bin"),
}
# An id on a hub: Qwen/Qwen2.5-3B-Instruct.
HUB_ID = r"[\w.-]+/[\w.-]+"
# Settings that name models or adapters beside the model that is trained.
OTHER_MODELS = (
    *("reward_model", "ref_model", "teacher_model"),
    *("ref_adapters", "reward_adapters", "teacher_adapters"),
)

lengths = judged(
    "lengths",
    estimate.tokens,
    remedy="a smaller max_completion_length, or another vllm_max_model_len",
    to_know="set vllm_max_model_len, or run the doctor where the model is",
)
steps = judged(
    "steps",
    estimate.steps,
    remedy="more rows, a smaller batch, or max_steps",
    to_know="set max_steps, or name the rows: NAME#N or a .jsonl file",
)


def evaluation(launch: Launch) -> list[CheckResult]:
    """ms-swift's own evaluation, where there is one, has enough rows."""
    if not launch.plan.grpo.evaluated_at_once or launch.plan.grpo.is_on("eval_use_evalscope"):
        return []
    compare = judged(
        "evaluation",
        estimate.evaluation,
        remedy="more rows, a smaller per_device_eval_batch_size, or --eval_strategy no",
        to_know="name the rows: NAME#N or a .jsonl file",
    )
    return list(compare(launch))


def warmup(launch: Launch) -> Iterator[CheckResult]:
    """The learning rate is reached before the run ends."""
    result = estimate.warmup(launch.plan)
    if not result.fits:
        yield warning("warmup", result.text, "a smaller warmup_steps, or warmup_ratio in its place")


def saves(launch: Launch) -> Iterator[CheckResult]:
    """No checkpoint is written while further steps are to train on completions that are there: a run that
    is resumed samples anew, and would train on these rows again.
    """
    plan = launch.plan
    sampled = plan.grpo.sampled_at_once(plan.processes * plan.variables.nnodes)
    steps = max(1, sampled * plan.grpo.num_iterations // plan.completions)
    every = plan.grpo.save_steps
    if every >= 1 and every % steps and plan.settings.get("save_strategy", "steps") == "steps":
        message = (
            f"{steps} steps train on the same completions, and a checkpoint after {every:g} is in the "
            "middle of them: a run that is resumed there trains on their rows again"
        )
        remedy = f"--save_steps {math.ceil(every / steps) * steps}"
        yield warning("checkpoints", message, remedy)


# The model.


def files(launch: Launch) -> Iterator[CheckResult]:
    """The model's folder has all it needs, or its name can be that of a model on a hub; models beside
    it are there, too.
    """
    name = str(launch.settings.get("model") or "")
    folder = model_folder(name)
    if not name:
        remedy = "set MODEL or --model to a folder or a hub's id"
        yield failed("model", "no model is named", remedy)
    elif folder is not None:
        yield _model_folder(name, folder)
    elif problem := _no_hub_id("model", name):
        yield problem
    else:
        message = f"{name} comes from {launch.hub}"
        if model := model_size(name):
            message += f", {decimal(2 * model.parameters)}"
        yield passed("model", message)
    for setting in OTHER_MODELS:
        for name in launch.listed(setting):
            if model_folder(name) is None and (problem := _no_hub_id(setting, name)):
                yield problem


def _no_hub_id(setting: str, name: str) -> CheckResult | None:
    """Fail for the name of a folder that is not there, which is none of a model on a hub."""
    if re.fullmatch(HUB_ID, name) and not Path(name.partition("/")[0]).is_dir():
        return None
    return failed(setting, f"there is no folder {name}", last_folder(name))


def _model_folder(name: str, folder: Path) -> CheckResult:
    """Whether a model's folder has FILES and the shards that its index names."""
    missing = []
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        shards = set(read_json(index).get("weight_map", {}).values())
        missing = [shard for shard in sorted(shards) if not (folder / shard).is_file()]
    for what, patterns in FILES.items():
        if not any(any(folder.glob(pattern)) for pattern in patterns):
            missing.append(what)
    if missing:
        remedy = "download the model again, or name another folder"
        if (folder / "adapter_config.json").is_file():
            remedy = f"it is a LoRA adapter: --model BASE --adapters {name}, or swift export --merge_lora true"
        return failed("model", f"{name} lacks {', '.join(missing)}", remedy)
    model = model_size(name)
    return passed("model", f"{name}, {model.parameters:,} parameters" if model else name)


# Prompts.


def system(launch: Launch) -> Iterator[CheckResult]:
    """`--system` is not lost: ms-swift puts it before rows without a system turn alone."""
    if not launch.settings.get("system"):
        return
    own = Counter(asked.task.name for asked in launch.asked if asked.system_from == "the row")
    for task, count in own.items():
        message = f"--system is not used for {count:,} rows of {task}, which have a system prompt"
        remedy = "put the instruction into the question or the messages: ours then gives way to it"
        yield warning("system", message, remedy)


CHECKS = (files, lengths, steps, warmup, saves, evaluation, datasets)
AFTER_MS_SWIFT = (without_task, system, prompts, pictures)
