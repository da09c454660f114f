"""Checks of the datasets of a launch: what is read of each, and whether its golds can be graded."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from swift_rlvr.contract import datasets as checking
from swift_rlvr.contract.findings import rows_text
from swift_rlvr.contract.tasks import QUERY_COLUMNS, RESPONSE_COLUMNS
from swift_rlvr.launch.checks import CheckResult, Launch, failed, last_folder, passed, warning
from swift_rlvr.launch.checks.rewards import build, weights_by_name
from swift_rlvr.launch.checks.rows import (
    FIRST,
    ReadRows,
    read_by_ms_swift,
    readable,
    system_prompt,
    verified_tasks,
)
from swift_rlvr.launch.estimate import held_back, local_file, prompts_at_once, steps, task_in
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.runs.held_out import HeldOutSettings, another_task
from swift_rlvr.success import FORMAT, SHAPING, role_of
from swift_rlvr.tasks import TASKS
from swift_rlvr.tasks.files import UnreadableRow
from swift_rlvr.tasks.own import turns_of
from swift_rlvr.tasks.sources import Source, file_rows, parse_columns, parse_source, with_columns
from swift_rlvr.training.ms_swift.first_rows import SECONDS, FirstRows
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import check_jsonl

# Columns that hold a whole conversation.
_CONVERSATIONS = frozenset(("messages", "conversations", "conversation"))
_EXPLAINS = "`swift-rlvr dataset check` explains"
_HELD_OUT = "SWIFT_RLVR_HELD_OUT_DATASET=NAME:FILE"


@dataclass(frozen=True)
class Checked:
    """What a dataset's check says. absent: the names in --columns that none of its rows has; None
    where its columns were not looked at, which the result then says. result: None where ms-swift
    reads the rows by itself, whose check is `without_task`. usable: its rows without those that are left
    out; None where not all of them were looked at.
    """

    result: CheckResult | None
    absent: frozenset[str] | None
    usable: int | None = None


def datasets(launch: Launch) -> Iterator[CheckResult]:
    """Every dataset can be read, its columns fit its task, and its golds can be graded."""
    if not launch.listed("dataset"):
        remedy = "set DATASET or --dataset to NAME:FILE or a hub's id"
        yield failed("dataset", "no dataset is named", remedy)
    named = []
    for setting in ("dataset", "val_dataset"):
        named += [NamedDataset(setting, name, launch) for name in launch.listed(setting)]
    if "held_out" in launch.listed("callbacks"):
        name = HeldOutSettings.from_environment(launch.environ).held_out_dataset
        if name is None:
            yield failed("held_out", "the callback held_out has no rows", _HELD_OUT)
        else:
            held_out = NamedDataset("held_out", name, launch)
            yield from held_out.of_another_task()
            named.append(held_out)
    checked = []
    looked_at = []
    for dataset in named:
        result = dataset.check()
        checked.append(result)
        if result.result is not None:
            yield result.result
        if result.absent is not None:
            looked_at.append(result.absent)
    yield from _too_few(launch, zip(named, checked, strict=True))

    # One --columns is for all datasets of a run.
    which = "any dataset"
    if len(looked_at) < len(checked):
        which = f"the {len(looked_at)} of {len(checked)} datasets that were looked at"
    for column in sorted(frozenset.intersection(*looked_at) if looked_at else ()):
        message = f"no row of {which} has the column {column!r}, which --columns renames"
        yield warning("columns", message, "a name that the file has, or a path with dots")


def _too_few(
    launch: Launch, checked: Iterable[tuple["NamedDataset", Checked]]
) -> Iterator[CheckResult]:
    """Fail where the rows that are left are fewer than one step needs. The lines of a .jsonl file, and what
    `NAME#N` says, are counted by `steps`.
    """
    rows = 0
    for dataset, result in checked:
        if dataset.setting != "dataset":
            continue
        # With interleave_prob an epoch ends when one of the datasets does.
        if result.usable is None or launch.settings.get("interleave_prob"):
            return
        rows += result.usable - held_back(result.usable, launch.plan.grpo)
    needed = prompts_at_once(launch.plan)
    if 0 < rows < needed and steps(launch.plan).fits:
        message = f"{rows:,} rows can be trained on, and {needed:,} prompts are sampled at once: no step would be made"
        yield failed("dataset", message, "more rows, or a smaller batch")


@dataclass(frozen=True)
class NamedDataset:
    """A dataset that a launch names, and the setting that names it."""

    setting: str
    name: str
    launch: Launch

    def failed(self, message: str, remedy: str) -> Checked:
        """It cannot be trained on."""
        return Checked(failed(self.setting, message, remedy), absent=None)

    def of_another_task(self) -> Iterator[CheckResult]:
        """Warn where it is of another task than the data of the training."""
        tasks = [task_in(name) for name in self.launch.listed("dataset")]
        problem = another_task([task_in(self.name)], tasks)
        # A file without a task's name may be of any.
        if problem and all([task_in(self.name), *tasks]):
            yield warning(self.setting, f"{self.name}: {problem}", f"{_HELD_OUT} of the same task")

    def check(self) -> Checked:
        """Read it, if it is on this machine."""
        file, _ = local_file(self.name)
        try:
            return self.of_the_other_hub() or self.read(file)
        except InputError as error:
            remedy = _EXPLAINS if file else "expected NAME:FILE or a hub's id"
            return self.failed(str(error), remedy)

    def of_the_other_hub(self) -> Checked | None:
        """Fail for an id of a task on ModelScope if the hub is Hugging Face, and the other way round."""
        hub_id = self.name.partition("#")[0].partition(":")[0]
        # Variants of a task, which have the same ids and longer names, come last.
        for task in sorted(TASKS.values(), key=lambda task: len(task.name)):
            expected, other = task.ms_dataset_id, task.hf_dataset_id
            if self.launch.use_hf:
                expected, other = other, expected
            if hub_id == other != expected:
                message = f"{other} is the id of {task.name} on the other hub; on {self.launch.hub} it is {expected}"
                name = self.name.replace(other, task.name)
                return self.failed(message, f"--{self.setting} {name} is right for both hubs")
        return None

    def read(self, file: Path | None) -> Checked:
        """Check its rows. Raises InputError if they cannot be read."""
        task = task_in(self.name)
        total = None
        if file is not None:
            if ":" in self.name and not task and not self.name.startswith(str(file)):
                parse_source(self.name)  # refuses a task that there is not
            if not file.is_file():
                return self.failed(f"there is no file {file}", last_folder(file))
            if file.suffix == ".jsonl":
                total = check_jsonl(file)
            if not task:
                return self.check_file(file)
        if self.is_read_by_ms_swift():
            return Checked(None, absent=None)
        source = readable(self.name, self.launch)
        if source is not None:
            return self.check_rows(source, total)
        message = f"{self.name} comes from {self.launch.hub}; its rows were not checked"
        remedy = f"to check them first, download it: --{self.setting} {task or 'NAME'}:FILE"
        return Checked(warning(self.setting, message, remedy), absent=None)

    def check_as_read(self) -> Iterator[CheckResult]:
        """Check the rows that ms-swift has read of it."""
        first = self.launch.read.get(self.name)
        if first is None:
            message = f"{self.name} is not one of this package's tasks; its rows were not checked"
            remedy = (
                "`swift-rlvr doctor` has ms-swift read what is on this machine; "
                f"else download it: --{self.setting} math:FILE, choice:FILE or qa:FILE"
            )
            yield warning(self.setting, message, remedy)
            return
        if first.problem:
            message = f"ms-swift cannot read {self.name}: {first.problem}"
            yield failed(
                self.setting, message, "correct the file, or the preprocessor that reads it"
            )
            return
        if first.late:
            message = (
                f"{self.name}: ms-swift has read {rows_text(first.looked_at)} of it in {SECONDS} seconds, and "
                f"was at {first.late}"
            )
            remedy = "correct the preprocessor, if it never ends: the training would wait for it"
            yield warning(self.setting, message, remedy)
        yield from self.left_out(first)
        if not first.rows:
            return
        source = read_by_ms_swift(self.name, self.launch)
        if source is not None:
            result = self.check_rows(source, None).result
            if result is not None:
                yield result
            return
        message = (
            f"ms-swift reads {self.name} itself; whether its rows can be graded was not checked, since no "
            "right answers are in columns with usual names"
        )
        remedy = f"--{self.setting} math:FILE where they have right answers, or choice or qa"
        yield warning(self.setting, message, remedy)

    def left_out(self, first: FirstRows) -> Iterator[CheckResult]:
        """What is wrong with the rows that ms-swift leaves out without a word."""
        of_all = f"of the first {first.looked_at:,} rows"
        if first.are_all:
            of_all = f"of {first.looked_at:,} rows"
        if not first.looked_at and not first.late:
            yield failed(self.setting, f"{self.name} has no rows", "a dataset with rows")
        if first.refused:
            report = failed if 2 * first.refused > first.looked_at else warning
            message = (
                f"{self.name}: ms-swift leaves out {first.refused:,} {of_all} "
                f"without a word: {first.why}"
            )
            yield report(
                self.setting, message, "correct the rows, or the preprocessor that reads them"
            )
        if first.skipped:
            # To choose rows may be what it is for.
            is_nothing_left = first.are_all and not first.rows
            report = failed if is_nothing_left else warning
            message = f"{self.name}: its preprocessor gives None for {first.skipped:,} {of_all}"
            if not first.rows and not first.are_all:
                message += ", so that none was checked"
            yield report(
                self.setting,
                f"{message}; ms-swift leaves them out",
                "a preprocessor that keeps some"
                if is_nothing_left
                else "as it is, if this is meant",
            )

    def check_file(self, file: Path) -> Checked:
        """Check a file without a task's name, which ms-swift's own preprocessor reads."""
        renames = parse_columns(self.launch.settings.get("columns"))
        renamed: set[str] = set()
        columns: list[str] = []
        silent: list[int] = []
        total = 0
        # One by one: all rows of a large file do not fit in memory.
        for line, row in with_columns(file_rows(file), renames, renamed):
            if isinstance(row, UnreadableRow):  # which without a task ends the run
                raise InputError(f"{file}, line {line}: {row.problem}")
            if not total:
                columns = list(row)
            # A conversation in which the user says nothing.
            if "messages" in row:
                turns = turns_of(row["messages"])
                if not any(turn["role"] == "user" and turn.get("content") for turn in turns):
                    silent.append(line)
            total += 1
        if not (QUERY_COLUMNS | _CONVERSATIONS) & set(columns):
            message = f"{file}: ms-swift makes no prompt of the columns {', '.join(columns)} unless a task is named"
            return self.failed(message, f"--{self.setting} {self.with_task()}")
        if silent:
            count = f"{len(silent):,} of {total:,} rows"
            message = f"{file}, line {silent[0]}: no user turn in messages ({count})"
            return self.failed(message, "leave them out: the training would end there")
        if problem := self.lost_column(file, columns):
            return problem
        absent = frozenset(renames.keys() - renamed)
        task = self.registered_task()
        if task is not None:
            message = f"{file} is read as it is, without the prompt and the columns of {task}"
            remedy = f"--{self.setting} {self.with_task()}"
            return Checked(warning(self.setting, message, remedy), absent)
        return Checked(None, absent)

    def registered_task(self) -> str | None:
        """The task whose rows a file without a task's name has by its path; None if none."""
        try:
            return parse_source(self.name, self.launch.use_hf).task.name
        except InputError:
            return None

    def is_read_by_ms_swift(self) -> bool:
        """Whether no task of ours reads it, by its name, its path or its id on a hub."""
        hub_id = self.name.partition("#")[0].partition(":")[0]
        for task in TASKS.values():
            if hub_id == (task.hf_dataset_id if self.launch.use_hf else task.ms_dataset_id):
                return False
        return not task_in(self.name) and self.registered_task() is None

    def with_task(self) -> str:
        """How to name a task for a file that is named without one."""
        task = self.registered_task() or "NAME"
        return f"{task}:{self.name}; NAME is one of {', '.join(TASKS)}"

    def lost_column(self, file: Path, columns: list[str]) -> Checked | None:
        """Fail for a reward whose column a file lacks, or which ms-swift takes for something else."""
        # What ms-swift makes of a column, which no reward gets then. Of several for the same it takes
        # none, and it keeps `solution`.
        lost: dict[str, str] = {}
        if not _CONVERSATIONS & set(columns):
            for part, names in (("question", QUERY_COLUMNS), ("response", RESPONSE_COLUMNS)):
                own = [column for column in columns if column.lower() in names]
                if len(own) == 1 and own != ["solution"]:
                    lost[own[0]] = part

        remedy = f"--{self.setting} math:{file}, which finds the right answer (or choice, qa, code)"
        of_others = {task_in(name) for name in self.launch.listed("dataset")}
        for reward in build(self.launch)[0]:
            # Mixed with the rows of its task, others have its columns, too: empty, so that it skips them.
            if of_others.intersection(reward.own_tasks):
                continue
            for column in reward.columns:
                needs = f"{reward.name} needs the column {column!r}"
                if column in lost:
                    message = (
                        f"{needs} of {file}, which ms-swift takes for the {lost[column]}: "
                        "the training would end at its first step"
                    )
                    return self.failed(message, remedy)
                if column not in columns:
                    return self.failed(f"{needs}; {file} has {', '.join(columns)}", remedy)
        return None

    def check_rows(self, source: Source, total: int | None) -> Checked:
        """Check the rows as `swift-rlvr dataset check` does, with the rewards of the run. total: of
        all rows, if it is known.
        """
        rewards, is_of_task = self.graders_of(source)
        if not rewards:
            source = replace(source, task=replace(source.task, further_rewards=()))
        is_guess = isinstance(source, ReadRows) and not verified_tasks(self.launch)
        if isinstance(source, ReadRows) and is_guess and is_of_task:
            # A reward of one's own reads them by whatever name, and the task's verifier by its own alone.
            source = source.with_golds()
        named = replace(source, limit=None)  # the limit is the doctor's, not the user's
        try:
            result = checking.check_dataset(
                source,
                against=self.trained_on(source),
                rewards=rewards or None,
                system=system_prompt(self.launch),
                weights=weights_by_name(self.launch),
            )
        except InputError as error:
            return self.failed(str(error).replace(str(source), str(named)), _EXPLAINS)
        # What --columns renames may be in another dataset of the run, so that it is no doubt here.
        absent = frozenset(result.absent)
        result.absent = []
        if is_of_task:  # what that verifier pays besides is not the run's
            result.earned = []

        report, said = _judged(result)
        if report is passed:
            said += ", every gold "
            said += "can be read" if is_of_task else "earns the full reward"
        for name, count in result.shared.items():
            if count:
                # The callback leaves them out, and ends the run where none is left.
                is_nothing_left = self.setting == "held_out" and count == result.rows
                report = failed if is_nothing_left or report is failed else warning
                said += f"; {rows_text(count)} are also in {name}, on which the run trains"
        is_read = isinstance(source, ReadRows)
        if is_guess and is_of_task and not self.launch.parsed.paid:
            report = warning
            said += ", what the rewards pay was not tried"
        if is_guess and report is failed:
            report = warning
            said += "; the columns' names alone tell what is right"
        text = f"{named}: {self.rows_in_words(source, result.rows, total)}{said}"
        remedy = ""
        if report is not passed:
            name = source.task.name
            if source.path is not None:
                name += f":{source.path}"
            remedy = f"`swift-rlvr dataset check {name}` shows more"
            if is_read:
                remedy = "correct the rows, or the preprocessor that reads them"
        # With NAME#N ms-swift repeats rows where there are fewer.
        usable = None
        is_whole = not is_read and result.rows < FIRST and local_file(self.name)[1] is None
        if is_whole:
            usable = result.rows - result.unusable.total()
        return Checked(report(self.setting, text, remedy), absent, usable)

    def graders_of(self, source: Source) -> tuple[list[Reward], bool]:
        """The rewards of the run that grade a dataset's rows, and whether the task's verifier judges the
        answers in their place.

        What rewards of others pay is told by ms-swift's process (`together`). Where they alone judge the
        answers, the task's verifier only tells whether these can be read.
        """
        task = source.task
        rewards, _ = build(self.launch)
        if isinstance(source, ReadRows):
            # Its rows do not name their task, by which the others would skip them.
            rewards = [
                each for each in rewards if not each.own_tasks or task.name in each.own_tasks
            ]
        if not rewards:
            return [], True
        built = {each.name for each in rewards}
        ours_judge = any(each.role not in (FORMAT, SHAPING) for each in rewards)
        others_judge = False
        for name in self.launch.listed("reward_funcs"):
            if name not in built and role_of(name) not in (FORMAT, SHAPING):
                others_judge = True
        is_of_others = others_judge and not ours_judge
        if is_of_others and task.verifier:
            rewards = [*rewards, REWARDS[task.verifier]()]
        return rewards, is_of_others

    def trained_on(self, source: Source) -> list[Source]:
        """The datasets of the training with the same columns, none of whose rows should be among those
        that are evaluated on.
        """
        others: list[Source] = []
        if self.setting == "dataset":
            return others
        for name in self.launch.listed("dataset"):
            with suppress(InputError):
                other = read_by_ms_swift(name, self.launch) or readable(name, self.launch)
                # Rows that ms-swift reads are told apart by other texts.
                if type(other) is type(source) and other.task.columns == source.task.columns:
                    list(other.rows())  # its own check says what cannot be read
                    others.append(other)
        return others

    def rows_in_words(self, source: Source, rows: int, total: int | None) -> str:
        """Which rows of the dataset were looked at. total: of all rows, if it is known."""
        if isinstance(source, ReadRows):
            count = f"{rows:,}" if self.launch.read[self.name].are_all else f"the first {rows:,}"
            return f"{count} rows as ms-swift reads them"
        count = f"{rows:,}"
        if total and total > rows:
            count = f"the first {rows:,} of {total:,}"
        return f"{count} rows of {source.task.name}"


def without_task(launch: Launch) -> Iterator[CheckResult]:
    """The datasets that ms-swift reads by itself: files in its own form, and those of plugins."""
    for setting in ("dataset", "val_dataset"):
        for name in launch.listed(setting):
            dataset = NamedDataset(setting, name, launch)
            # A file that looks like one of a task's, and is named without it, is read there too.
            if dataset.is_read_by_ms_swift() or name in launch.read:
                yield from dataset.check_as_read()


def _judged(findings: checking.Findings) -> tuple[Callable[..., CheckResult], str]:
    """How a dataset's findings are reported, and what is said of its rows."""
    if findings.bad:
        report, fate = warning, "left out or not graded"
        if findings.too_many:
            report, fate = failed, "cannot be trained on"
        # The first bad lines, or the most frequent reasons if no line is known.
        lines = []
        for line, text in findings.problems:
            if not text.startswith(checking.REPEATS):
                lines.append(f"line {line}: {text}")
        if lines:
            return report, f", {findings.bad:,} {fate}: {'; '.join(lines[:3])}"
        reasons = findings.unusable + findings.no_gold
        for paid in findings.rewards.values():
            reasons += paid.reasons
        most = [f"{reason}: {count:,}" for reason, count in reasons.most_common(3)]
        return report, f", {findings.bad:,} {fate}: {', '.join(most)}"
    duplicates = ""
    if findings.duplicates:
        duplicates = f", {findings.duplicates:,} duplicate questions"
    if findings.doubts:
        return warning, f"{duplicates}; {'; '.join(findings.doubts)}"
    return passed, duplicates
