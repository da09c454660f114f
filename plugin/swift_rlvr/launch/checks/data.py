"""Checks of the datasets and of the prompts that a model sees of them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from swift_rlvr.data import check as checking
from swift_rlvr.data.sources import Source, file_rows, parse_source
from swift_rlvr.errors import InputError
from swift_rlvr.jsonl import check_jsonl
from swift_rlvr.launch import estimate, sizes
from swift_rlvr.launch.checks import Case, Finding, failed, passed, warning
from swift_rlvr.launch.checks.model import tokens_of
from swift_rlvr.launch.checks.network import dataset_answers, dataset_id
from swift_rlvr.launch.checks.run import evaluates
from swift_rlvr.launch.estimate import local_file
from swift_rlvr.runs.curriculum import COLUMN, CurriculumSettings, check_levels
from swift_rlvr.runs.held_out import HeldOutSettings
from swift_rlvr.settings import PREFIX
from swift_rlvr.tasks import TASKS, RowError
from swift_rlvr.tasks.task import with_system

FIRST = 200  # rows that the fast part looks at
FROM_HUB = 2000  # rows of a hub's dataset that the full part looks at
LONGEST = 5000  # rows that are rendered to find the longest prompt
# Columns that ms-swift's own preprocessor makes a prompt of.
_PROMPTS = {"messages", "query", "prompt", "input", "instruction", "question", "problem", "conversations"}


@dataclass(frozen=True)
class Example:
    """A row that can be used: its line, its preprocessed form, its task and a completion that earns all, if known."""

    line: int
    row: dict[str, Any]
    task: str
    gold: str | None


def source_of(name: str, use_hf: bool) -> Source | None:
    """What a value of `--dataset` names, as far as it is one of our tasks; InputError where it cannot be one."""
    file, count = local_file(name)
    if name.partition(":")[0].partition("#")[0] in TASKS or file is not None:
        return parse_source(name, use_hf)
    identity = dataset_id(name, use_hf)
    for task in TASKS.values():
        if identity and identity == (task.hf_dataset_id if use_hf else task.ms_dataset_id):
            return Source(task, None, task.splits[0], count, use_hf)
    return None


def readable_sources(case: Case, setting: str = "dataset") -> list[Source]:
    """The sources whose rows can be read here and now, each limited to what this part of the doctor looks at."""
    found = []
    for name in case.listed(setting):
        try:
            source = source_of(name, case.use_hf)
        except InputError:
            continue
        if source is not None and (limited := _limited(source, case)) is not None:
            found.append(limited)
    return found


def _limited(source: Source, case: Case) -> Source | None:
    if source.path is None and source.made is None and (case.fast or not dataset_answers(str(source), case.use_hf)):
        return None
    most = FIRST if case.fast else FROM_HUB if source.path is None else source.limit
    return replace(source, limit=most if source.limit is None else min(source.limit, most or source.limit))


def examples(source: Source) -> Iterator[Example]:
    """The rows that can be used, in order; nothing more after a line that cannot be read."""
    try:
        for line, row in source.rows():
            try:
                yield Example(
                    line, source.task.preprocess(row), source.task.of(row).name, source.task.gold_completion(row)
                )
            except RowError:
                continue
    except InputError:
        return


def datasets(case: Case) -> Iterator[Finding]:
    """Every dataset can be read, its columns fit its task, and its golds can be graded."""
    if not case.listed("dataset"):
        yield failed("dataset", "no dataset is named", "set DATASET or --dataset to NAME:FILE or a hub's id")
    for setting in ("dataset", "val_dataset"):
        for name in case.listed(setting):
            try:
                yield from _dataset(name, case, setting)
            except InputError as error:
                hint = (
                    "`swift-rlvr dataset check` explains" if local_file(name)[0] else "expected NAME:FILE or a hub's id"
                )
                yield failed(setting, str(error), hint)


def _dataset(name: str, case: Case, setting: str) -> Iterator[Finding]:
    file, _ = local_file(name)
    named = name.partition(":")[0].partition("#")[0] in TASKS
    if file is not None and not file.is_file():
        yield failed(setting, f"there is no file {file}", "relative paths count from the folder you are in")
        return
    total = check_jsonl(file) if file is not None and file.suffix == ".jsonl" else None  # all lines, in fast too
    if file is not None and not named:
        yield from _unnamed(name, case, setting)
        return
    source = source_of(name, case.use_hf)
    limited = source and _limited(source, case)
    if source is None:
        yield passed(setting, f"{name} is not one of this package's tasks; its rows were not looked at")
    elif limited is None:
        yield passed(setting, f"{name} comes from {case.hub}; its rows were not looked at")
    else:
        against = readable_sources(case, "val_dataset") if setting == "dataset" and not case.fast else []
        yield _looked_at(
            limited, total, setting, [other for other in against if other.task.columns == source.task.columns]
        )


def _unnamed(name: str, case: Case, setting: str) -> Iterator[Finding]:
    """A file without a task's name, which ms-swift's own preprocessor reads."""
    file, _ = local_file(name)
    assert file is not None
    _, row = next(file_rows(file))
    try:
        task = parse_source(name, case.use_hf).task.name
    except InputError:
        task = None
    remedy = f"--{setting} {task or 'NAME'}:{name}; NAME is one of {', '.join(TASKS)}"
    if not _PROMPTS & row.keys():
        message = f"{file}: ms-swift makes no prompt of the columns {', '.join(row)} unless a task is named"
        yield failed(setting, message, remedy)
    elif task is not None:
        yield warning(setting, f"{file} is read as it is, without the prompt and the columns of {task}", remedy)
    else:
        yield passed(setting, f"{file} is read by ms-swift itself; its rows were not looked at")


def _looked_at(source: Source, total: int | None, setting: str, against: list[Source]) -> Finding:
    try:
        result = checking.check(source, against)
    except InputError as error:
        named = str(replace(source, limit=None))  # the limit is the doctor's, not the user's
        return failed(setting, str(error).replace(str(source), named), "`swift-rlvr dataset check` explains")
    of = f"the first {result.rows:,} of {total:,}" if total and total > result.rows else f"{result.rows:,}"
    where = f"{source.path or source}: {of} rows of {source.task.name}"
    command = f"swift-rlvr dataset check {source.task.name}{f':{source.path}' if source.path else ''}"
    reasons = (
        result.unusable + result.no_gold + sum((counts["reasons"] for counts in result.rewards.values()), Counter())
    )
    # Duplicates are among the problems too, and they may be all of those that are kept.
    lines = [(line, text) for line, text in result.problems if not text.startswith(("asks the same", "is in "))]
    first = "; ".join(f"line {line}: {text}" for line, text in lines[:3]) or _counted(reasons)
    remedy = f"`{command}` shows more"
    if result.too_many:
        return failed(setting, f"{where}, {result.bad:,} cannot be trained on: {first}", remedy)
    shared = sum(result.shared.values())
    if shared:
        return warning(setting, f"{where}, {shared:,} of them are evaluation data as well", remedy)
    if result.bad:
        message = f"{where}, {result.bad:,} cannot be graded or are left out: {first}"
        return warning(setting, message, remedy)
    again = f", {result.duplicates:,} ask what others ask" if result.duplicates else ""
    return passed(setting, f"{where}{again}, every gold earns the full reward")


def _counted(reasons: Counter) -> str:
    return ", ".join(f"{reason}: {count:,}" for reason, count in reasons.most_common(3))


def held_out(case: Case) -> Iterator[Finding]:
    """The rows of `--callbacks held_out` can be read, and are none of the training's as far as those were looked at."""
    settings, variable = HeldOutSettings.from_environment(case.environ), f"{PREFIX}HELD_OUT_DATASET"
    name = settings.held_out_dataset
    if "held_out" not in case.listed("callbacks"):
        if name is not None:
            remedy = "--callbacks reward_reasons held_out"
            yield warning("held-out", f"{variable} has no effect without the callback held_out", remedy)
        return
    if name is None:
        yield failed(
            "held-out", f"the callback held_out needs {variable}", f"{variable}=NAME:FILE, or without held_out"
        )
        return
    if evaluates(case):
        message = "held_out keeps the best checkpoint by its own success, and ms-swift's evaluation by the reward"
        yield failed("held-out", message, "--eval_strategy no, or without the callback held_out")
        return
    source = parse_source(name, case.use_hf)
    limited = _limited(replace(source, limit=min(source.limit or settings.held_out_rows, settings.held_out_rows)), case)
    if limited is None:
        yield passed("held-out", f"{name} comes from {case.hub}; its rows were not looked at")
        return
    if source.path is not None and not source.path.is_file():
        yield failed("held-out", f"there is no file {source.path}", "relative paths count from the folder you are in")
        return
    asked = [limited.task.identity(row) for _, row in limited.rows()]
    trained = {
        other.task.identity(row)
        for other in readable_sources(case)
        if other.task.columns == limited.task.columns
        for _, row in other.rows()
    }
    shared = sum(each in trained for each in asked)
    rows = f"{len(asked):,} rows of {limited.task.name}, {settings.held_out_samples} completions each"
    if shared:
        message = f"{shared:,} of the {len(asked):,} rows of {name} are in the training too, and will be left out"
        yield warning("held-out", message, f"another file or split for {variable}")
    else:
        yield passed("held-out", f"{name}: {rows}, every {settings.held_out_every} steps")


def curriculum(case: Case) -> Iterator[Finding]:
    """The rows of `--callbacks curriculum` have a level, as far as they were looked at, and nothing else draws rows."""
    settings = CurriculumSettings.from_environment(case.environ, curriculum=True)
    if "curriculum" not in case.listed("callbacks"):
        if settings != CurriculumSettings(curriculum=True):
            message = f"the variables {PREFIX}CURRICULUM_... have no effect without the callback curriculum"
            yield warning("curriculum", message, "--callbacks reward_reasons curriculum")
        return
    for name, value in (("async_generate", "true"), ("dynamic_sample", "true"), ("truncation_strategy", "delete")):
        if str(case.settings.get(name)).lower() == value:
            yield failed(
                "curriculum", f"{name} {value} draws rows of its own", f"without it, or without {name} {value}"
            )
            return
    levels: list[Any] = [row.get(COLUMN) for source in readable_sources(case) for _, row in source.rows()]
    try:
        check_levels(levels)
    except InputError as error:
        yield failed("curriculum", error.problem, "rows with levels, or without the callback curriculum")
        return
    shown = f"levels {min(levels)} to {max(levels)} in {len(levels):,} rows" if levels else "no row was looked at"
    yield passed("curriculum", f"{shown}, drawn so that success stays near {settings.curriculum_target:g}")


def prompts(case: Case) -> Iterator[Finding]:
    """Full: prompts as the tokenizer's chat template renders them, their lengths, and one of them with its tokens."""
    folder = sizes.model_folder(str(case.settings.get("model")))
    sources = [] if case.fast or folder is None else readable_sources(case)
    if not sources:
        return
    from swift_rlvr.data.prompts import render
    from swift_rlvr.models import load_tokenizer

    try:
        tokenizer = load_tokenizer(str(folder))
    except InputError as error:
        yield failed("prompt", str(error), "an instruct model, whose tokenizer has a chat template")
        return
    system, limit = case.settings.get("system"), int(sizes.number(case.settings, "max_length", 0))
    longest = rows = cut = 0
    for source in sources:
        first = True
        for example in islice(examples(source), LONGEST):
            messages = with_system(example.row["messages"], system if isinstance(system, str) else None)
            text, count = render(tokenizer, messages)
            if first:
                detail = f"{text}\n\n{count} tokens: {tokens_of(tokenizer, text, count)}"
                yield passed("prompt", f"{source}, line {example.line}: {count:,} tokens", detail)
            first, rows, longest, cut = False, rows + 1, max(longest, count), cut + (0 < limit < count)
    if not rows:
        return
    result = estimate.tokens(case.plan, longest)
    measured = f"the longest prompt of {rows:,} rows has {longest:,} tokens"
    if cut:
        yield warning("prompt", f"{measured}; {cut:,} are cut at max_length {limit}", f"--max_length {longest}")
    elif not result.fits:
        remedy = "a smaller max_completion_length, or a larger vllm_max_model_len"
        yield warning("prompt", f"{measured}; long completions end early: {result.text}", remedy)
    else:
        yield passed("prompt", f"{measured}; {result.text}")
