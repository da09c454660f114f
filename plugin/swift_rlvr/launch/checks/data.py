"""Checks of the model and the data: their files, lengths and first rows."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from rich.filesize import decimal

from swift_rlvr.contract import datasets as checking
from swift_rlvr.evaluation.models import load_pretrained, sees_pictures
from swift_rlvr.evaluation.prompts import AskedRow, token_count
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
from swift_rlvr.launch.checks.datasets import datasets
from swift_rlvr.launch.checks.rows import FIRST, asked_rows
from swift_rlvr.launch.estimate import local_file, task_in
from swift_rlvr.launch.model_size import model_folder, model_size
from swift_rlvr.tasks.columns import has_pictures
from swift_rlvr.tasks.files import UnreadableRow
from swift_rlvr.tasks.pictures import IMAGES, content_of
from swift_rlvr.tasks.sources import file_rows
from swift_rlvr.utils.errors import InputError
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
# Variables that limit the pixels of a picture for Qwen's models.
PIXELS = ("MIN_PIXELS", "MAX_PIXELS")
# Rows that ms-swift draws for each that it needs, before it gives up (swift/rl_core/resample.py).
DRAWN = 11
# Models whose code in ms-swift imports qwen_vl_utils.
_QWEN_VL = re.compile(r"qwen[\d.]*-?(?:vl|omni)", re.IGNORECASE)

lengths = judged(
    "lengths", estimate.tokens, "a smaller max_completion_length, or another vllm_max_model_len"
)
steps = judged("steps", estimate.steps, "more rows, a smaller batch, or max_steps")


def warmup(launch: Launch) -> Iterator[CheckResult]:
    """The learning rate is reached before the run ends."""
    result = estimate.warmup(launch.plan)
    if not result.fits:
        yield warning("warmup", result.text, "a smaller warmup_steps, or warmup_ratio in its place")


def evaluation(launch: Launch) -> Iterator[CheckResult]:
    """ms-swift's own evaluation, where there is one, has enough rows."""
    if not launch.plan.grpo.evaluated_at_once or launch.plan.grpo.is_on("eval_use_evalscope"):
        return
    result = estimate.evaluation(launch.plan)
    if result.fits:
        yield passed("evaluation", result.text)
    else:
        remedy = "more rows, a smaller per_device_eval_batch_size, or --eval_strategy no"
        yield failed("evaluation", result.text, remedy)


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
    own = Counter(asked.task.name for asked in asked_rows(launch) if asked.system_from == "the row")
    for task, count in own.items():
        message = f"--system is not used for {count:,} rows of {task}, which have a system prompt"
        remedy = "put the instruction into the question or the messages: ours then gives way to it"
        yield warning("system", message, remedy)


def prompts(launch: Launch) -> Iterator[CheckResult]:
    """How many prompts are longer than max_length, which ms-swift cuts or leaves out without a
    word; how many leave no room for a completion; how many answers max_completion_length cuts off,
    even without any reasoning.
    """
    from swift_rlvr.evaluation.models import load_tokenizer

    folder = model_folder(str(launch.settings.get("model")))
    if folder is None:
        return
    try:
        tokenizer = load_tokenizer(str(folder))
    except InputError as error:  # ms-swift has templates of its own
        yield passed("prompts", f"not measured: {error}")
        return
    rows = list(asked_rows(launch, tokenizer))
    if not rows:
        return
    yield from _cut_answers(launch, tokenizer, rows)
    tokens = [asked.tokens or 0 for asked in rows]
    if any(asked.row.get(IMAGES) for asked in rows):
        try:
            of_pictures = _tokens_of_pictures(folder, rows, launch.environ)
            tokens = [sum(both) for both in zip(tokens, of_pictures, strict=True)]
        except (InputError, ImportError, AttributeError) as error:
            problem = " ".join(str(error).split())[:200]
            message = f"the tokens of pictures were not counted: {problem}"
            remedy = "leave room in max_length: a Qwen2.5-VL has one for each 28 x 28 pixels"
            yield warning("prompts", message, remedy)
    yield from _cut_prompts(launch, tokens)


def _cut_prompts(launch: Launch, tokens: Sequence[int]) -> Iterator[CheckResult]:
    """Warn of prompts that are longer than max_length, and see what room the others leave.

    tokens: of each prompt.
    """
    limit = launch.plan.grpo.max_length
    if not limit:
        yield from _without_room(launch, tokens)
        return
    fate = "cut at the beginning"
    sampled = [min(count, limit) for count in tokens]
    report = warning
    if launch.settings.get("truncation_strategy") == "delete":
        fate = "left out"
        sampled = [count for count in tokens if count <= limit]
        # ms-swift draws others for them, and ends the training where it has to do that too often.
        if len(tokens) > DRAWN * len(sampled):
            report = failed
    yield from _without_room(launch, sampled)
    longest = max(tokens)
    longer = sum(count > limit for count in tokens)
    text = (
        f"the longest of {len(tokens):,} prompts has {longest:,} tokens, of {limit:,} (max_length)"
    )
    if not longer:
        yield passed("prompts", text)
        return
    message = f"{longer:,} of {len(tokens):,} prompts are silently {fate}: {text}"
    remedy = f"--max_length {longest} or more, or leave them out: `swift-rlvr dataset prepare`"
    yield report("prompts", message, remedy)


def _tokens_of_pictures(
    folder: Path, rows: Sequence[AskedRow], environ: Mapping[str, str]
) -> list[int]:
    """How many tokens the pictures of each row are, by the model's own processor.

    Raises:
        InputError, ImportError, AttributeError: the processor cannot be loaded, or does not say, or a
            picture is at a URL.
    """
    from transformers import AutoProcessor

    processor = load_pretrained(AutoProcessor, str(folder))
    # Of ms-swift's template for Qwen's models, in place of the processor's own.
    limits = {name.lower(): int(environ[name]) for name in PIXELS if environ.get(name)}
    tokens = []
    for asked in rows:
        sizes = []
        for picture in asked.row.get(IMAGES) or []:
            content = content_of(picture)
            if content is None:
                raise InputError(f"{picture['path']} is at a URL")
            sizes.append((content.height, content.width))
        count = 0
        if sizes:
            counts = processor._get_num_multimodal_tokens(image_sizes=sizes, **limits)
            count = sum(counts["num_image_tokens"])
        tokens.append(count)
    return tokens


def _without_room(launch: Launch, tokens: Sequence[int]) -> Iterator[CheckResult]:
    """Fail if a prompt fills what the model reads; warn if it leaves less than max_completion_length,
    because ms-swift's engine then samples so much less.

    tokens: of the prompts as they are sampled from, with max_length applied.
    """
    limit = estimate.context_limit(launch.plan)
    if limit is None or not tokens:
        return
    completion = launch.plan.grpo.max_completion_length
    longest = max(tokens)
    needed = longest + completion
    figures = (
        f"the longest of {len(tokens):,} prompts has {longest:,} tokens, with max_completion_length "
        f"{completion:,} that is {needed:,}, of {limit.tokens:,} ({limit.name})"
    )
    if needed <= limit.tokens:
        yield passed("prompts", figures)
        return
    count = sum(each + completion > limit.tokens for each in tokens)
    room = limit.tokens - longest
    remedy = f"--max_length {max(limit.tokens - completion, 1)} --truncation_strategy delete"
    if limit.name == "vllm_max_model_len":
        remedy = f"--vllm_max_model_len {needed}, where the model reads as much, or {remedy}"
    if room > 0:
        remedy = f"--max_completion_length {room}, {remedy}"
        message = f"completions of {count:,} prompts are cut off earlier: {figures}"
        yield warning("prompts", message, remedy)
    else:
        yield failed("prompts", f"there is no room for a completion: {figures}", remedy)


def _cut_answers(launch: Launch, tokenizer: Any, rows: Sequence[AskedRow]) -> Iterator[CheckResult]:
    """Fail if no right answer fits into max_completion_length; warn if some do not.

    Measured is the shortest completion in the form that the prompt asks for, with its end token.
    """
    limit = launch.plan.grpo.max_completion_length
    needed = []
    for asked in rows:
        if asked.gold is not None:
            needed.append((token_count(tokenizer, asked.answering(asked.gold.answer)) + 1, asked))
    cut = [(tokens, asked) for tokens, asked in needed if tokens > limit]
    if not cut:
        return
    tokens, asked = max(cut, key=lambda pair: pair[0])
    form = checking.form_text(asked.form) if asked.form else "no form of its own"
    message = (
        f"{len(cut):,} of {len(needed):,} right answers do not fit into max_completion_length {limit:,}: "
        f"that of line {asked.line} takes {tokens:,} tokens without any reasoning ({form})"
    )
    report = failed if len(cut) == len(needed) else warning
    yield report("completions", message, f"--max_completion_length {tokens} and room to think")


def pictures(launch: Launch) -> Iterator[CheckResult]:
    """Rows with pictures have a model that sees them: ms-swift drops them for another without a word."""
    rows, seen, not_opened = _count_pictures(launch)
    if not seen:
        return
    model = str(launch.settings.get("model"))
    folder = model_folder(model)
    sees = launch.parsed.sees_pictures
    if folder is not None:
        sees = sees_pictures(folder)
    have = f"{seen:,} of {rows:,} rows have pictures"
    remedy = "a model that sees, such as Qwen/Qwen2.5-VL-3B-Instruct"
    if sees is False:
        message = f"{have}, and {model} reads text alone: it would be trained without them"
        yield failed("pictures", message, remedy)
        return
    if sees is None:
        yield warning("pictures", f"{have}; whether {model} sees them is not known", remedy)
    elif not_opened:
        message = f"{have}, those of {not_opened:,} were not opened"
        remedy = "name files, not URLs, and a task: math:FILE, choice:FILE or qa:FILE"
        yield warning("pictures", message, remedy)
    else:
        yield passed("pictures", f"{have}, all can be read, and {model} sees them")
    # Its model's code imports it, and its own error comes after the rollout server has started.
    if _QWEN_VL.search(model) and find_spec("qwen_vl_utils") is None:
        message = f"{model} needs qwen_vl_utils, which is not installed"
        yield failed("pictures", message, "pip install 'qwen-vl-utils>=0.0.14' torchvision")


def _count_pictures(launch: Launch) -> tuple[int, int, int]:
    """Count rows, those with pictures, and of these the rows whose pictures were not opened."""
    rows = seen = not_opened = 0
    for asked in asked_rows(launch):
        rows += 1
        images = asked.row.get(IMAGES) or []
        seen += bool(images)
        not_opened += any(content_of(image) is None for image in images)
    for name in launch.listed("dataset"):
        # ms-swift reads a file without a task itself.
        file, _ = local_file(name)
        if file is None or not file.is_file() or task_in(name):
            continue
        with suppress(InputError):
            for _, row in islice(file_rows(file), FIRST):
                if not isinstance(row, UnreadableRow):
                    rows += 1
                    seen += has_pictures(row)
                    not_opened += has_pictures(row)
    return rows, seen, not_opened


CHECKS = (files, lengths, steps, warmup, evaluation, datasets, system)
AFTER_MS_SWIFT = (prompts, pictures)
