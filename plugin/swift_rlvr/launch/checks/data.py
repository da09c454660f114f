"""Checks of the model and the data: their files, lengths and first rows."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from rich.filesize import decimal

from swift_rlvr.contract import datasets as checking
from swift_rlvr.contract.tasks import QUERY_COLUMNS, RESPONSE_COLUMNS
from swift_rlvr.evaluation.models import load_pretrained, sees_pictures
from swift_rlvr.evaluation.prompts import AskedRow, SystemPrompt, ask, token_count
from swift_rlvr.launch import estimate
from swift_rlvr.launch.checks import CheckResult, Launch, failed, judged, passed, warning
from swift_rlvr.launch.estimate import local_file, task_in
from swift_rlvr.launch.model_size import model_folder, model_size
from swift_rlvr.runs.held_out import HeldOutSettings, another_task
from swift_rlvr.tasks import TASKS, RowError
from swift_rlvr.tasks.columns import has_pictures
from swift_rlvr.tasks.files import UnreadableRow
from swift_rlvr.tasks.own import turns_of
from swift_rlvr.tasks.pictures import IMAGES, content_of
from swift_rlvr.tasks.sources import Source, file_rows, parse_columns, parse_source, with_columns
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import check_jsonl, read_json

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
# Rows that are looked at; `swift-rlvr dataset check` looks at all.
FIRST = 200
# Columns that hold a whole conversation.
_CONVERSATIONS = frozenset(("messages", "conversations", "conversation"))
# Models whose code in ms-swift imports qwen_vl_utils.
_QWEN_VL = re.compile(r"qwen[\d.]*-?(?:vl|omni)", re.IGNORECASE)
_EXPLAINS = "`swift-rlvr dataset check` explains"
_HELD_OUT = "SWIFT_RLVR_HELD_OUT_DATASET=NAME:FILE"

lengths = judged(
    "lengths", estimate.tokens, "a smaller max_completion_length, or another vllm_max_model_len"
)
steps = judged("steps", estimate.steps, "more rows, a smaller batch, or max_steps")


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
    return failed(setting, f"there is no folder {name}", _where(name))


def _where(path: str | Path) -> str:
    """What to do about a path at which there is nothing."""
    if not Path(path).is_absolute():
        return f"relative paths count from {Path.cwd()}"
    existing = next(parent for parent in Path(path).parents if parent.is_dir())
    return f"{existing} is the last folder of that path that exists"


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


# The data.


def asked_rows(launch: Launch, tokenizer: Any = None) -> Iterator[AskedRow]:
    """The FIRST rows of each dataset of our tasks that can be read here and now, as the trainer asks
    them; `datasets` names what cannot be read.
    """
    for name in launch.listed("dataset"):
        with suppress(InputError):
            source = _readable(name, launch)
            if source is None:
                continue
            for line, raw in source.rows():
                with suppress(RowError):
                    yield ask(source.task, raw, line, _system(launch), tokenizer)


def _system(launch: Launch) -> SystemPrompt:
    """What ms-swift puts before rows without a system turn."""
    return SystemPrompt(launch.settings.get("system"), "--system")


def _readable(name: str, launch: Launch) -> Source | None:
    """The rows that a value of `--dataset` names, if they are of our tasks and on this machine; else
    None.

    Raises:
        InputError: it names nothing that there is.
    """
    if not task_in(name) and local_file(name)[0] is None:
        return None
    source = parse_source(name, launch.use_hf, launch.settings.get("columns"))
    if source.path is None and source.made is None:
        return None
    return replace(source, limit=min(source.limit or FIRST, FIRST))


def datasets(launch: Launch) -> Iterator[CheckResult]:
    """Every dataset can be read, its columns fit its task, and its golds can be graded."""
    if not launch.listed("dataset"):
        remedy = "set DATASET or --dataset to NAME:FILE or a hub's id"
        yield failed("dataset", "no dataset is named", remedy)
    names = []
    for setting in ("dataset", "val_dataset"):
        for name in launch.listed(setting):
            names.append((setting, name))
    if "held_out" in launch.listed("callbacks"):
        held_out = HeldOutSettings.from_environment(launch.environ).held_out_dataset
        if held_out is None:
            yield failed("held_out", "the callback held_out has no rows", _HELD_OUT)
        else:
            tasks = [task_in(name) for name in launch.listed("dataset")]
            problem = another_task([task_in(held_out)], tasks)
            # A file without a task's name may be of any.
            if problem and all([task_in(held_out), *tasks]):
                remedy = f"{_HELD_OUT} of the same task"
                yield warning("held_out", f"{held_out}: {problem}", remedy)
            names.append(("held_out", held_out))
    # By dataset the names in --columns that no row has. One --columns is for all datasets of a run.
    absent: list[set[str]] = []
    for setting, name in names:
        try:
            yield _check_dataset(name, launch, setting, absent)
        except InputError as error:
            remedy = "expected NAME:FILE or a hub's id"
            if local_file(name)[0]:
                remedy = _EXPLAINS
            yield failed(setting, str(error), remedy)
    if absent and len(absent) == len(names):
        for column in sorted(set.intersection(*absent)):
            message = f"no row of any dataset has the column {column!r}, which --columns renames"
            yield warning("columns", message, "a name that the file has, or a path with dots")


def _check_dataset(name: str, launch: Launch, setting: str, absent: list[set[str]]) -> CheckResult:
    """Check one dataset. Raises InputError if it cannot be read."""
    if problem := _id_of_the_other_hub(name, launch, setting):
        return problem
    file, _ = local_file(name)
    task = task_in(name)
    total = None
    if file is not None:
        if ":" in name and not task and not name.startswith(str(file)):
            parse_source(name)  # refuses a task that there is not
        if not file.is_file():
            return failed(setting, f"there is no file {file}", _where(file))
        if file.suffix == ".jsonl":
            total = check_jsonl(file)
        if not task:
            return _without_task(name, file, launch, setting)
    source = _readable(name, launch)
    if source is not None:
        return _first_rows(source, total, launch, setting, absent)
    if task:
        message = f"{name} comes from {launch.hub}; its rows were not checked"
        remedy = f"to check them first, download it: --{setting} {task}:FILE"
        return warning(setting, message, remedy)
    message = f"{name} is not one of this package's tasks; its rows were not checked"
    remedy = f"to check them, download it: --{setting} math:FILE, choice:FILE or qa:FILE"
    return warning(setting, message, remedy)


def _id_of_the_other_hub(name: str, launch: Launch, setting: str) -> CheckResult | None:
    """Fail for an id of a task on ModelScope if the hub is Hugging Face, and the other way round."""
    hub_id = name.partition("#")[0].partition(":")[0]
    # Variants of a task, which have the same ids and longer names, come last.
    for task in sorted(TASKS.values(), key=lambda task: len(task.name)):
        expected, other = task.ms_dataset_id, task.hf_dataset_id
        if launch.use_hf:
            expected, other = other, expected
        if hub_id == other != expected:
            message = f"{other} is the id of {task.name} on the other hub; on {launch.hub} it is {expected}"
            remedy = f"--{setting} {name.replace(other, task.name)} is right for both hubs"
            return failed(setting, message, remedy)
    return None


def _without_task(name: str, file: Path, launch: Launch, setting: str) -> CheckResult:
    """Check a file without a task's name, which ms-swift's own preprocessor reads."""
    rows = list(with_columns(file_rows(file), parse_columns(launch.settings.get("columns"))))
    for line, row in rows:
        if isinstance(row, UnreadableRow):  # which without a task ends the run
            raise InputError(f"{file}, line {line}: {row.problem}")
    columns = rows[0][1].keys()
    task = None
    with suppress(InputError):
        task = parse_source(name, launch.use_hf).task.name
    remedy = f"--{setting} {task or 'NAME'}:{name}; NAME is one of {', '.join(TASKS)}"
    if not (QUERY_COLUMNS | _CONVERSATIONS) & columns:
        message = f"{file}: ms-swift makes no prompt of the columns {', '.join(columns)} unless a task is named"
        return failed(setting, message, remedy)
    silent = []
    for line, row in rows:
        if "messages" in row:
            turns = turns_of(row["messages"])
            if not any(turn["role"] == "user" and turn.get("content") for turn in turns):
                silent.append(line)
    if silent:
        count = f"{len(silent):,} of {len(rows):,} rows"
        message = f"{file}, line {silent[0]}: no user turn in messages ({count})"
        return failed(setting, message, "leave them out: the training would end there")
    if problem := _lost_column(file, columns, launch, setting):
        return problem
    if task is not None:
        message = f"{file} is read as it is, without the prompt and the columns of {task}"
        return warning(setting, message, remedy)
    message = f"ms-swift reads {file} itself; whether its {len(rows):,} rows can be graded was not checked"
    remedy = f"--{setting} math:{name} where they have right answers, or choice or qa"
    return warning(setting, message, remedy)


def _lost_column(
    file: Path, columns: Iterable[str], launch: Launch, setting: str
) -> CheckResult | None:
    """Fail for a reward whose column a file lacks, or which ms-swift takes for something else."""
    from swift_rlvr.launch.checks.rewards import build  # it reads rows from here

    columns = list(columns)
    # What ms-swift makes of a column, which no reward gets then. Of several for the same it takes
    # none, and it keeps `solution`.
    lost: dict[str, str] = {}
    if not _CONVERSATIONS & set(columns):
        for part, names in (("question", QUERY_COLUMNS), ("response", RESPONSE_COLUMNS)):
            own = [column for column in columns if column.lower() in names]
            if len(own) == 1 and own != ["solution"]:
                lost[own[0]] = part

    remedy = f"--{setting} math:{file}, which finds the right answer (or choice, qa, code)"
    for reward in build(launch)[0]:
        for column in reward.columns:
            if column in lost:
                message = (
                    f"{reward.name} needs the column {column!r} of {file}, which ms-swift takes for "
                    f"the {lost[column]}: the training would end at its first step"
                )
                return failed(setting, message, remedy)
            if column not in columns:
                message = (
                    f"{reward.name} needs the column {column!r}; {file} has {', '.join(columns)}"
                )
                return failed(setting, message, remedy)
    return None


def _first_rows(
    source: Source, total: int | None, launch: Launch, setting: str, absent: list[set[str]]
) -> CheckResult:
    """Check the rows as `swift-rlvr dataset check` does, with the rewards of the run. total: of all
    rows, if it is known. absent: gets the names in --columns that no row has.
    """
    from swift_rlvr.launch.checks.rewards import build  # it reads rows from here

    rewards, _ = build(launch)
    named = replace(source, limit=None)  # the limit is the doctor's, not the user's
    try:
        result = checking.check_dataset(
            source, rewards=rewards or None, system=_system(launch), weights=_weights(launch)
        )
    except InputError as error:
        return failed(setting, str(error).replace(str(source), str(named)), _EXPLAINS)
    # What --columns renames may be in another dataset of the run.
    absent.append(set(result.absent))
    result.absent = []
    count = f"{result.rows:,}"
    if total and total > result.rows:
        count = f"the first {result.rows:,} of {total:,}"
    where = f"{named}: {count} rows of {source.task.name}"
    duplicates = f", {result.duplicates:,} duplicate questions" if result.duplicates else ""
    if not result.bad and not result.doubts:
        return passed(setting, f"{where}{duplicates}, every gold earns the full reward")

    name = source.task.name
    if source.path is not None:
        name += f":{source.path}"
    remedy = f"`swift-rlvr dataset check {name}` shows more"
    if not result.bad:
        return warning(setting, f"{where}{duplicates}; {'; '.join(result.doubts)}", remedy)
    problems = _problems(result)
    if result.too_many:
        message = f"{where}, {result.bad:,} cannot be trained on: {problems}"
        return failed(setting, message, remedy)
    message = f"{where}, {result.bad:,} cannot be graded or are left out: {problems}"
    return warning(setting, message, remedy)


def _weights(launch: Launch) -> dict[str, float]:
    """The weights of the rewards by name; empty where they are not one for each."""
    names, weights = launch.listed("reward_funcs"), launch.listed("reward_weights")
    if len(names) != len(weights):
        return {}
    return {name: float(weight) for name, weight in zip(names, weights, strict=True)}


def _problems(findings: checking.Findings) -> str:
    """The first three bad lines, or the three most frequent reasons if no line is known."""
    lines = []
    for line, text in findings.problems:
        if not text.startswith(checking.REPEATS):
            lines.append(f"line {line}: {text}")
    if lines:
        return "; ".join(lines[:3])
    reasons = findings.unusable + findings.no_gold
    for paid in findings.rewards.values():
        reasons += paid.reasons
    return ", ".join(f"{reason}: {count:,}" for reason, count in reasons.most_common(3))


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
    if launch.settings.get("truncation_strategy") == "delete":
        fate = "left out"
        sampled = [count for count in tokens if count <= limit]
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
    yield warning("prompts", message, remedy)


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


CHECKS = (files, lengths, steps, datasets, system)
AFTER_MS_SWIFT = (prompts, pictures)
