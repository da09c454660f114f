"""Checks of the model and the data: their files, lengths and first rows."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rich.filesize import decimal

from swift_rlvr.contract import datasets as checking
from swift_rlvr.launch import estimate
from swift_rlvr.launch.checks import CheckResult, Launch, failed, judged, passed, warning
from swift_rlvr.launch.estimate import local_file, model_folder, model_size
from swift_rlvr.runs.held_out import HeldOutSettings, another_task
from swift_rlvr.tasks import TASKS, RowError
from swift_rlvr.tasks.sources import Source, file_rows, parse_source
from swift_rlvr.tasks.task import with_system
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import check_jsonl, read_json
from swift_rlvr.utils.settings import number

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
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")
FIRST = 200  # rows that are looked at; `swift-rlvr dataset check` looks at all
# Columns that ms-swift's own preprocessor makes a prompt of.
_PROMPTS = {
    "messages",
    "query",
    "prompt",
    "input",
    "instruction",
    "question",
    "problem",
    "conversations",
}
_EXPLAINS = "`swift-rlvr dataset check` explains"

lengths = judged(
    "lengths", estimate.tokens, "a smaller max_completion_length, or another vllm_max_model_len"
)
steps = judged("steps", estimate.steps, "more rows, a smaller batch, or max_steps")


def files(launch: Launch) -> Iterator[CheckResult]:
    """A model's folder has all it needs, or its name can be one on a hub that can be reached."""
    name = str(launch.settings.get("model") or "")
    folder, model = model_folder(name), model_size(name)
    offline = [
        each
        for each in OFFLINE
        if launch.environ.get(each, "").lower() in ("1", "true", "yes", "on")
    ]
    if not name:
        yield failed("model", "no model is named", "set MODEL or --model to a folder or a hub's id")
    elif folder is not None and (missing := _missing(folder)):
        remedy = "download the model again, or name another folder"
        if (folder / "adapter_config.json").is_file():
            remedy = f"it is a LoRA adapter: --model BASE --adapters {name}, or swift export --merge_lora true"
        yield failed("model", f"{name} lacks {', '.join(missing)}", remedy)
    elif folder is not None:
        yield passed("model", f"{name}, {model.parameters:,} parameters" if model else name)
    elif not re.fullmatch(r"[\w.-]+/[\w.-]+", name) or Path(name.partition("/")[0]).is_dir():
        yield failed(
            "model", f"there is no folder {name}", f"relative paths count from {Path.cwd()}"
        )
    elif offline and launch.use_hf:
        message = f"{offline[0]} is set, and {name} is not here"
        yield failed("model", message, f"unset {offline[0]}, or set MODEL to a folder")
    else:
        size = f", {decimal(2 * model.parameters)}" if model else ""
        yield passed("model", f"{name} comes from {launch.hub}{size}")


def _missing(path: Path) -> list[str]:
    index = path / "model.safetensors.index.json"
    shards = sorted(set(read_json(index).get("weight_map", {}).values())) if index.is_file() else []
    others = [
        what for what, names in FILES.items() if not any(any(path.glob(name)) for name in names)
    ]
    return [shard for shard in shards if not (path / shard).is_file()] + others


class ExampleRow(NamedTuple):
    """A row of a task that can be used, as preprocessed; its line; and a completion that earns all,
    if known.
    """

    task: str
    line: int
    row: dict[str, Any]
    gold: str | None


def examples(launch: Launch) -> Iterator[ExampleRow]:
    """The FIRST rows of each dataset of our tasks that can be read here and now; `datasets` names
    what cannot.
    """
    for name in launch.listed("dataset"):
        with suppress(InputError):
            if (source := _readable(name, launch)) is None:
                continue
            for line, raw in source.rows():
                with suppress(RowError):
                    row = source.task.preprocess(raw)
                    gold = source.task.of(raw).gold_completion(raw)
                    yield ExampleRow(str(row.get("task") or source.task.name), line, row, gold)


def _names_task(name: str) -> bool:
    return name.partition(":")[0].partition("#")[0] in TASKS


def _readable(name: str, launch: Launch) -> Source | None:
    """What a value of `--dataset` names; None for another's, and for one on a hub; InputError where
    it cannot be.
    """
    if not _names_task(name) and local_file(name)[0] is None:
        return None
    source = parse_source(name, launch.use_hf)
    on_hub = source.path is None and source.made is None
    return None if on_hub else replace(source, limit=min(source.limit or FIRST, FIRST))


def datasets(launch: Launch) -> Iterator[CheckResult]:
    """Every dataset can be read, its columns fit its task, and its golds can be graded."""
    if not launch.listed("dataset"):
        yield failed(
            "dataset", "no dataset is named", "set DATASET or --dataset to NAME:FILE or a hub's id"
        )
    named = [
        (setting, name) for setting in ("dataset", "val_dataset") for name in launch.listed(setting)
    ]
    if "held_out" in launch.listed("callbacks"):
        held_out = HeldOutSettings.from_environment(launch.environ).held_out_dataset
        if held_out is None:
            yield failed(
                "held_out",
                "the callback held_out has no rows",
                "SWIFT_RLVR_HELD_OUT_DATASET=NAME:FILE",
            )
        else:
            yield from _of_another_task(held_out, launch)
            named.append(("held_out", held_out))
    for setting, name in named:
        try:
            yield _dataset(name, launch, setting)
        except InputError as error:
            expected = _EXPLAINS if local_file(name)[0] else "expected NAME:FILE or a hub's id"
            yield failed(setting, str(error), expected)


def _of_another_task(held_out: str, launch: Launch) -> Iterator[CheckResult]:
    tasks = list[str]()
    for name in [held_out, *launch.listed("dataset")]:
        try:
            tasks.append(parse_source(name, launch.use_hf).task.name)
        except InputError:
            tasks.append(f"another than {', '.join(TASKS)}")
    if problem := another_task(tasks[:1], tasks[1:]):
        yield warning(
            "held_out",
            f"{held_out}: {problem}",
            "SWIFT_RLVR_HELD_OUT_DATASET=NAME:FILE of the same task",
        )


def _dataset(name: str, launch: Launch, setting: str) -> CheckResult:
    file, _ = local_file(name)
    for task in sorted(
        TASKS.values(), key=lambda task: len(task.name)
    ):  # variants, which have the same ids, last
        here, there = (task.hf_dataset_id, task.ms_dataset_id)[:: 1 if launch.use_hf else -1]
        if name.partition("#")[0].partition(":")[0] == there != here:
            message = (
                f"{there} is the id of {task.name} on the other hub; on {launch.hub} it is {here}"
            )
            return failed(
                setting,
                message,
                f"--{setting} {name.replace(there, task.name)} is right for both hubs",
            )
    if (
        file is not None
        and ":" in name
        and not _names_task(name)
        and not name.startswith(str(file))
    ):
        parse_source(name)  # refuses a task that there is not
    if file is not None and not file.is_file():
        return failed(
            setting, f"there is no file {file}", f"relative paths count from {Path.cwd()}"
        )
    total = check_jsonl(file) if file is not None and file.suffix == ".jsonl" else None  # all lines
    if file is not None and not _names_task(name):
        return _without_task(name, file, launch, setting)
    source = _readable(name, launch)
    if source is None:
        if _names_task(name):
            return passed(setting, f"{name} comes from {launch.hub}; its rows were not looked at")
        message = f"{name} is not one of this package's tasks; its rows were not looked at"
        return warning(
            setting,
            message,
            f"download it to look at it: --{setting} math:FILE, choice:FILE or qa:FILE",
        )
    return _looked_at(source, total, setting)


def _without_task(name: str, file: Path, launch: Launch, setting: str) -> CheckResult:
    """A file without a task's name, which ms-swift's own preprocessor reads."""
    rows = list(file_rows(file))
    columns, task = rows[0][1].keys(), None
    with suppress(InputError):
        task = parse_source(name, launch.use_hf).task.name
    remedy = f"--{setting} {task or 'NAME'}:{name}; NAME is one of {', '.join(TASKS)}"
    if not _PROMPTS & columns:
        message = f"{file}: ms-swift makes no prompt of the columns {', '.join(columns)} unless a task is named"
        return failed(setting, message, remedy)
    silent = [line for line, row in rows if "messages" in row and not _asks(row["messages"])]
    if silent:
        message = f"{file}, line {silent[0]}: no turn of the user in messages ({len(silent):,} of {len(rows):,} rows)"
        return failed(setting, message, "leave them out: the training would end there")
    if task is not None:
        return warning(
            setting,
            f"{file} is read as it is, without the prompt and the columns of {task}",
            remedy,
        )
    message = f"{file} is read by ms-swift itself; whether its {len(rows):,} rows can be graded was not looked at"
    return warning(
        setting, message, f"--{setting} math:{name} where they have right answers, or choice or qa"
    )


def _asks(messages: Any) -> bool:
    turns = messages if isinstance(messages, (list, tuple)) else []
    return any(
        isinstance(turn, dict) and turn.get("role") == "user" and turn.get("content")
        for turn in turns
    )


def _looked_at(source: Source, total: int | None, setting: str) -> CheckResult:
    named = replace(source, limit=None)  # the limit is the doctor's, not the user's
    try:
        result = checking.check(source)
    except InputError as error:
        return failed(setting, str(error).replace(str(source), str(named)), _EXPLAINS)
    of = (
        f"the first {result.rows:,} of {total:,}"
        if total and total > result.rows
        else f"{result.rows:,}"
    )
    where = f"{named}: {of} rows of {source.task.name}"
    name = source.task.name if source.path is None else f"{source.task.name}:{source.path}"
    remedy = f"`swift-rlvr dataset check {name}` shows more"
    lines = [
        f"line {n}: {text}" for n, text in result.problems if not text.startswith(checking.REPEATS)
    ]
    graded = (counts["reasons"] for counts in result.rewards.values())
    reasons = sum(graded, result.unusable + result.no_gold).most_common(3)
    first = "; ".join(lines[:3]) or ", ".join(f"{reason}: {count:,}" for reason, count in reasons)
    if result.too_many:
        return failed(setting, f"{where}, {result.bad:,} cannot be trained on: {first}", remedy)
    if result.bad:
        return warning(
            setting, f"{where}, {result.bad:,} cannot be graded or are left out: {first}", remedy
        )
    duplicates = f", {result.duplicates:,} ask what others ask" if result.duplicates else ""
    return passed(setting, f"{where}{duplicates}, every gold earns the full reward")


def prompts(launch: Launch) -> Iterator[CheckResult]:
    """How many prompts are longer than max_length, which ms-swift cuts or leaves out without a
    word.
    """
    from swift_rlvr.evaluation.models import load_tokenizer
    from swift_rlvr.evaluation.prompts import render

    folder, limit = (
        model_folder(str(launch.settings.get("model"))),
        number(launch.settings, "max_length", 0),
    )
    rows = [example.row for example in examples(launch)]
    if folder is None or not limit or not rows:
        return
    try:
        tokenizer = load_tokenizer(str(folder))
    except InputError as error:  # ms-swift has templates of its own
        yield passed("prompts", f"not measured: {error}")
        return
    system = launch.settings.get("system")
    lengths = [render(tokenizer, with_system(row["messages"], system))[1] for row in rows]
    longer = sum(length > limit for length in lengths)
    text = f"the longest of {len(rows):,} prompts has {max(lengths):,} tokens, of {limit:,} (max_length)"
    if longer:
        done = (
            "left out"
            if launch.settings.get("truncation_strategy") == "delete"
            else "cut at the beginning"
        )
        remedy = (
            f"--max_length {max(lengths)} or more, or leave them out: `swift-rlvr dataset prepare`"
        )
        yield warning(
            "prompts",
            f"{longer:,} of {len(rows):,} prompts are {done} without a word: {text}",
            remedy,
        )
    else:
        yield passed("prompts", text)


CHECKS = (files, lengths, steps, datasets)
AFTER_MS_SWIFT = (prompts,)
