"""Checks of the datasets: their files, their first rows, those of the held-out evaluation and of the curriculum."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from swift_rlvr.data import check as checking
from swift_rlvr.data.sources import Source, file_rows, parse_source
from swift_rlvr.errors import InputError
from swift_rlvr.jsonl import check_jsonl
from swift_rlvr.launch.checks import CheckResult, Launch, failed, passed, warning
from swift_rlvr.launch.estimate import local_file
from swift_rlvr.recipes import number
from swift_rlvr.runs.curriculum import COLUMN, CurriculumSettings, check_levels
from swift_rlvr.runs.held_out import HeldOutSettings
from swift_rlvr.settings import PREFIX
from swift_rlvr.tasks import TASKS, RowError

FIRST = 200  # rows that are looked at; `swift-rlvr dataset check` looks at all
# Columns that ms-swift's own preprocessor makes a prompt of.
_PROMPTS = {"messages", "query", "prompt", "input", "instruction", "question", "problem", "conversations"}
_EXPLAINS = "`swift-rlvr dataset check` explains"
_RELATIVE = "relative paths count from the folder you are in"


@dataclass(frozen=True)
class ExampleRow:
    """A row that can be used: its line, its preprocessed form, and a completion that earns all, if known."""

    line: int
    row: dict[str, Any]
    gold: str | None


def _names_task(name: str) -> bool:
    return name.partition(":")[0].partition("#")[0] in TASKS


def readable_sources(launch: Launch) -> list[Source]:
    """The datasets of our tasks whose rows can be read here and now, limited to FIRST rows."""
    found = []
    for name in launch.listed("dataset"):
        with suppress(InputError):
            if (source := _readable(name, launch)) is not None:
                found.append(source)
    return found


def _readable(name: str, launch: Launch) -> Source | None:
    """What a value of `--dataset` names; None for another's, and for one on a hub; InputError where it cannot be."""
    if not _names_task(name) and local_file(name)[0] is None:
        return None
    source = parse_source(name, launch.use_hf)
    on_hub = source.path is None and source.made is None
    return None if on_hub else replace(source, limit=min(source.limit or FIRST, FIRST))


def examples(source: Source) -> Iterator[ExampleRow]:
    """The rows that can be used, in order; nothing more after a line that cannot be read."""
    try:
        for line, row in source.rows():
            try:
                yield ExampleRow(line, source.task.preprocess(row), source.task.of(row).gold_completion(row))
            except RowError:
                continue
    except InputError:
        return


def datasets(launch: Launch) -> Iterator[CheckResult]:
    """Every dataset can be read, its columns fit its task, and its golds can be graded."""
    if not launch.listed("dataset"):
        yield failed("dataset", "no dataset is named", "set DATASET or --dataset to NAME:FILE or a hub's id")
    for setting in ("dataset", "val_dataset"):
        for name in launch.listed(setting):
            try:
                yield _dataset(name, launch, setting)
            except InputError as error:
                expected = _EXPLAINS if local_file(name)[0] else "expected NAME:FILE or a hub's id"
                yield failed(setting, str(error), expected)


def _dataset(name: str, launch: Launch, setting: str) -> CheckResult:
    file, _ = local_file(name)
    if file is not None and not file.is_file():
        return failed(setting, f"there is no file {file}", _RELATIVE)
    total = check_jsonl(file) if file is not None and file.suffix == ".jsonl" else None  # all lines
    if file is not None and not _names_task(name):
        return _without_task(name, launch, setting)
    source = _readable(name, launch)
    if source is None:
        whose = f"comes from {launch.hub}" if _names_task(name) else "is not one of this package's tasks"
        return passed(setting, f"{name} {whose}; its rows were not looked at")
    return _looked_at(source, total, setting)


def _without_task(name: str, launch: Launch, setting: str) -> CheckResult:
    """A file without a task's name, which ms-swift's own preprocessor reads."""
    file, _ = local_file(name)
    assert file is not None
    _, row = next(file_rows(file))
    try:
        task = parse_source(name, launch.use_hf).task.name
    except InputError:
        task = None
    remedy = f"--{setting} {task or 'NAME'}:{name}; NAME is one of {', '.join(TASKS)}"
    if not _PROMPTS & row.keys():
        message = f"{file}: ms-swift makes no prompt of the columns {', '.join(row)} unless a task is named"
        return failed(setting, message, remedy)
    if task is not None:
        return warning(setting, f"{file} is read as it is, without the prompt and the columns of {task}", remedy)
    return passed(setting, f"{file} is read by ms-swift itself; its rows were not looked at")


def _looked_at(source: Source, total: int | None, setting: str) -> CheckResult:
    try:
        result = checking.check(source)
    except InputError as error:
        named = str(replace(source, limit=None))  # the limit is the doctor's, not the user's
        return failed(setting, str(error).replace(str(source), named), _EXPLAINS)
    of = f"the first {result.rows:,} of {total:,}" if total and total > result.rows else f"{result.rows:,}"
    where = f"{source.path or source}: {of} rows of {source.task.name}"
    name = source.task.name if source.path is None else f"{source.task.name}:{source.path}"
    remedy = f"`swift-rlvr dataset check {name}` shows more"
    # Duplicates are among the problems too, and they may be all of those that are kept.
    lines = [f"line {n}: {text}" for n, text in result.problems if not text.startswith("asks the same")]
    graded = (counts["reasons"] for counts in result.rewards.values())
    reasons = sum(graded, result.unusable + result.no_gold).most_common(3)
    first = "; ".join(lines[:3]) or ", ".join(f"{reason}: {count:,}" for reason, count in reasons)
    if result.too_many:
        return failed(setting, f"{where}, {result.bad:,} cannot be trained on: {first}", remedy)
    if result.bad:
        return warning(setting, f"{where}, {result.bad:,} cannot be graded or are left out: {first}", remedy)
    duplicates = f", {result.duplicates:,} ask what others ask" if result.duplicates else ""
    return passed(setting, f"{where}{duplicates}, every gold earns the full reward")


def held_out(launch: Launch) -> Iterator[CheckResult]:
    """`--callbacks held_out` has rows, and decides alone about the best checkpoint."""
    settings, variable = HeldOutSettings.from_environment(launch.environ), f"{PREFIX}HELD_OUT_DATASET"
    name = settings.held_out_dataset
    if "held_out" not in launch.listed("callbacks"):
        return
    if name is None:
        message = f"the callback held_out needs {variable}"
        yield failed("held-out", message, f"{variable}=NAME:FILE, or without held_out")
        return
    source = parse_source(name, launch.use_hf)
    has_data = bool(launch.listed("val_dataset")) or number(launch.settings, "split_dataset_ratio", 0.0) > 0
    if has_data and launch.settings.get("eval_strategy") not in ("no", False):
        message = "held_out keeps the best checkpoint by its own success, and ms-swift's evaluation by the reward"
        yield failed("held-out", message, "--eval_strategy no, or without the callback held_out")
    elif source.path is not None and not source.path.is_file():
        yield failed("held-out", f"there is no file {source.path}", _RELATIVE)
    else:
        rows, samples, every = settings.held_out_rows, settings.held_out_samples, settings.held_out_every
        message = (
            f"{name}: at most {rows:,} rows of {source.task.name}, {samples} completions each, every {every} steps"
        )
        yield passed("held-out", message)


def curriculum(launch: Launch) -> Iterator[CheckResult]:
    """The rows of `--callbacks curriculum` have a level, as far as they were looked at, and nothing else draws rows."""
    settings = CurriculumSettings.from_environment(launch.environ, curriculum=True)
    if "curriculum" not in launch.listed("callbacks"):
        return
    for name, value in (("async_generate", "true"), ("dynamic_sample", "true"), ("truncation_strategy", "delete")):
        if str(launch.settings.get(name)).lower() == value:
            remedy = f"without it, or without {name} {value}"
            yield failed("curriculum", f"{name} {value} draws rows of its own", remedy)
            return
    levels: list[Any] = [row.get(COLUMN) for source in readable_sources(launch) for _, row in source.rows()]
    try:
        check_levels(levels)
    except InputError as error:
        yield failed("curriculum", error.problem, "rows with levels, or without the callback curriculum")
        return
    shown = f"levels {min(levels)} to {max(levels)} in {len(levels):,} rows" if levels else "no row was looked at"
    yield passed("curriculum", f"{shown}, drawn so that success stays near {settings.curriculum_target:g}")


CHECKS = (datasets, held_out, curriculum)
