"""Check a dataset before training, on the way of the training: does what each prompt asks for earn
the reward?

A row is preprocessed, its prompt is rendered, the right answer is written in the form that this
prompt asks for (`swift_rlvr.evaluation.prompts.ask`), and the rewards of the run, or those of the
task, grade it in batches. Two rows with the same `Task.identity` ask the same.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple

from swift_rlvr.contract.attack import GUESS, Earned, grades_of, guess_of, paid_by
from swift_rlvr.evaluation.grade_samples import BATCH
from swift_rlvr.evaluation.prompts import AskedRow, SystemPrompt, ask
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.accuracy import AccuracyReward
from swift_rlvr.rewards.base import OTHER_TASK, Grade
from swift_rlvr.rewards.box import BoxReward
from swift_rlvr.rewards.build import missing_column
from swift_rlvr.rewards.code import UNUSABLE
from swift_rlvr.success import FORMAT, ONLY_TOGETHER, SHAPING, VERIFIER
from swift_rlvr.tasks import RowError, unread_columns, unused_columns, verifier_of
from swift_rlvr.tasks.boxes import unsaid_pixels
from swift_rlvr.tasks.options import LETTERS, letters_in
from swift_rlvr.tasks.pictures import IMAGES, content_of
from swift_rlvr.tasks.row_check import FORGIVEN, allowed_share
from swift_rlvr.tasks.sources import Source
from swift_rlvr.tasks.task import Row, prompt_text
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import opened
from swift_rlvr.utils.settings import PREFIX
from swift_rlvr.verifiers.answer_forms import CALLS, FORMS, WHOLE, unknown_form
from swift_rlvr.verifiers.mathematics.notation import tidy
from swift_rlvr.verifiers.mathematics.plain_numbers import with_decimal_comma

# The rows that are looked at unless all are asked for: enough for every kind of fault, in seconds.
FIRST_ROWS = 2000
# The problems that are kept to be shown.
SHOWN = 10
# How the problem of a row that repeats another one begins.
REPEATS = "asks the same as"
# What a policy earns that does no work is tried on the first so many rows.
ATTACKED_ROWS = 200
# A strategy that earns more than this share of the rows is a warning.
MUCH = 0.02
# The largest coordinate of boxes on Qwen3-VL's scale, and how many larger pictures have to be seen
# before it says something that no box goes beyond it.
_RELATIVE_SIDE = 1000
_SEEN_PICTURES = 10
# That no first choice is right is chance once in 400 datasets where so many would be.
_EXPECTED_FIRST = 6
# Something to say at length, without a value and without repetition: "ba be", "ba bi" and so on.
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiou"]
AT_LENGTH = ", ".join(f"{one} {other}" for one in _SYLLABLES[:14] for other in _SYLLABLES)
# Of so many rows a long wrong answer is compared with the right one.
_COMPARED_ROWS = 20
# How a reference passes its tests: in a process of its own, only in one with them, or not at all.
WAYS = APART, TOGETHER, NOT_AT_ALL = "apart", "only together", "not at all"

# A line, from 1, and what is wrong there.
Problem = tuple[int, str]


class Disagreement(NamedTuple):
    """A reward that wants something else than the prompts ask for."""

    reward: str
    form: str | None  # what the prompts ask for
    reason: str  # why the reward does not pay for it


@dataclass
class Paid:
    """How many ideal completions earn the maximum of a reward, less, and None, with the reasons
    for the latter two. Of prompts whose form is known, nothing: how many earn 0, and no more than a
    wrong one; ungraded: of how many not even a wrong one is graded.
    """

    full: int = 0
    less: int = 0
    none: int = 0
    nothing: int = 0
    ungraded: int = 0
    reasons: Counter = field(default_factory=Counter)

    @property
    def rows(self) -> int:
        return self.full + self.less + self.none


@dataclass
class Findings:
    """What the check found."""

    # The share of bad rows that is too much.
    limit: float
    # How many rows each other file has too, by its name.
    shared: dict[str, int]
    # How many rows were looked at, and of how many; None where that is not known.
    rows: int = 0
    total: int | None = None
    # Rows that the task refuses, by label.
    unusable: Counter = field(default_factory=Counter)
    # Usable rows without a known right answer, by label.
    no_gold: Counter = field(default_factory=Counter)
    # Rows by the form that their prompts ask for; None: they do not say.
    forms: Counter = field(default_factory=Counter)
    rewards: dict[str, Paid] = field(default_factory=dict)
    # Rows by what their prompts and a reward do not agree on.
    disagreements: Counter = field(default_factory=Counter)
    # Rows of each task whose right answer a verifier has graded, and rows that bring none, since
    # other columns say what is right.
    verified: Counter = field(default_factory=Counter)
    untried: Counter = field(default_factory=Counter)
    # Rows by how the reference passes its tests: APART, TOGETHER or NOT_AT_ALL.
    ways: Counter = field(default_factory=Counter)
    # Rows by a column that seems to belong to the question and is not used.
    unused: Counter = field(default_factory=Counter)
    # Rows by a column that neither the prompt nor a reward gets anything from.
    unread: Counter = field(default_factory=Counter)
    # Rows whose prompts show a form that no reward reads, and golds with what may be a decimal comma:
    # the line and the text.
    unknown_forms: list[Problem] = field(default_factory=list)
    decimal_commas: list[Problem] = field(default_factory=list)
    # Rows whose boxes are taken for pixels of a picture of more than 1,000 of them, since nothing says
    # what they are, and the largest number of all these boxes.
    large_pictures: int = 0
    largest_of_boxes: float = 0.0
    # Rows that ask what an earlier one asks, with another gold: the line and what it contradicts.
    contradictions: list[Problem] = field(default_factory=list)
    # Rows of a choice that are right with another letter than A, those with A, and how many of these
    # there would be if it were chance.
    other_letters: int = 0
    first_letters: int = 0
    expected_first: float = 0.0
    # What the rewards of the run pay in all, each for a right answer and for a long wrong one, of
    # the first row where the latter is not less, and of how many rows of those compared that is so.
    long_wrong: tuple[float, float] | None = None
    long_wrong_rows: int = 0
    compared: int = 0
    # The names in `--columns` that no row has.
    absent: list[str] = field(default_factory=list)
    # Rows with pictures, and those of which one is at a URL, which was not opened.
    with_pictures: int = 0
    pictures_at_urls: int = 0
    # Usable rows of each task, and the others, where they name one.
    tasks: Counter = field(default_factory=Counter)
    refused: Counter = field(default_factory=Counter)
    # Rows by what the verifier remarks about them; a remark alone makes no row bad.
    remarks: Counter = field(default_factory=Counter)
    # Rows that are unusable, without a known right answer, or whose ideal completion misses the
    # maximum of a reward.
    bad: int = 0
    # Rows that ask the same as an earlier one.
    duplicates: int = 0
    # The first SHOWN.
    problems: list[Problem] = field(default_factory=list)
    # The strategies of `attack` that were paid, the best one first, and on how many rows they were
    # tried.
    earned: list[Earned] = field(default_factory=list)
    attacked: int = 0

    @property
    def too_many(self) -> bool:
        """Whether more rows are bad than the limit and FORGIVEN allow, or most are."""
        return 2 * self.bad > self.rows or self.bad > max(FORGIVEN, self.limit * self.rows)

    @property
    def pays_nothing(self) -> bool:
        """Whether all right answers earn 0, of every reward of the run, and wrong ones as much. It
        says nothing where one was not graded: None.
        """
        paid = self.rewards.values()
        return any(each.nothing for each in paid) and all(
            each.nothing == each.rows for each in paid
        )

    @property
    def grades_nothing(self) -> bool:
        """Whether no reward of the run has graded anything in a form that is known, right or wrong."""
        paid = self.rewards.values()
        return bool(paid) and all(each.ungraded == each.rows > 0 for each in paid)

    @property
    def failed(self) -> bool:
        found = self.too_many or self.pays_nothing or self.grades_nothing
        return found or any(self.shared.values())

    @property
    def doubts(self) -> list[str]:
        """Why a dataset without a bad row may still teach nothing, or something else. Empty if
        everything was looked at and agrees.
        """
        return [*self._doubts_of_rows(), *self._doubts_of_rewards()]

    def _doubts_of_rows(self) -> Iterator[str]:
        """What the columns, the prompts and the golds may mean otherwise than they are read."""
        for name in self.absent:
            yield f"no row has the column {name!r}, which --columns renames"
        for column, count in self.unused.items():
            yield f"{rows_text(count)}: the column {column!r} is not used, though it seems to belong to the question"
        if self.unknown_forms:
            line, form = self.unknown_forms[0]
            rows = rows_text(len(self.unknown_forms))
            yield f"{rows}: the prompt shows {form} (line {line}), which no reward reads"
        if self.decimal_commas:
            line, gold = self.decimal_commas[0]
            rows = rows_text(len(self.decimal_commas))
            yield (
                f"{rows}: the gold has a comma that may be a decimal one, as {gold} (line {line}), so the "
                "same with a point is not graded; write a point, or a space behind the comma of a list"
            )
        if self.expected_first >= _EXPECTED_FIRST and not self.first_letters:
            yield (
                f"{rows_text(self.other_letters)}: the right choice is never the first; where it is told by "
                "number, the numbers may begin at 1, and are read as if they began at 0"
            )
        # From where it is no longer a few that somebody has overlooked.
        if 2 * self.duplicates > self.rows:
            yield f"{rows_text(self.duplicates)} of {self.rows:,}: an earlier row asks the same"
        if self.contradictions:
            line, text = self.contradictions[0]
            rows = rows_text(len(self.contradictions))
            yield (
                f"{rows}: an earlier row asks the same, with another gold (line {line}: {text}), "
                "as where a picture or a passage is missing"
            )
        if self.large_pictures >= _SEEN_PICTURES and self.largest_of_boxes <= _RELATIVE_SIDE:
            yield (
                f"{rows_text(self.large_pictures)}: the picture has more than 1,000 pixels a side, and no "
                f"box goes beyond 1000: they may be on a scale of 0 to 1000, and are read as pixels; "
                f"{PREFIX}GOLD_COORDINATES says which (relative or absolute)"
            )
        if at_urls := self.pictures_at_urls:
            yield f"{rows_text(at_urls)}: pictures at URLs, which were not opened"
        if silent := self.forms[None]:
            yield f"{rows_text(silent)}: the prompt does not say what the answer looks like"

    def _doubts_of_rewards(self) -> Iterator[str]:
        """What the rewards do not pay, pay too easily, or have not graded."""
        for (reward, form, reason), count in self.disagreements.items():
            asked = f"asks for {form_text(form)}" if form else "asks for no form"
            yield f"{rows_text(count)}: the prompt {asked}, so {reward} can hardly be earned ({reason})"
        if self.long_wrong:
            right, wrong = self.long_wrong
            yield (
                f"{rows_text(self.long_wrong_rows)} of {self.compared}: a wrong answer of "
                f"{len(AT_LENGTH):,} characters earns {wrong:g} of all rewards together, and a short right "
                f"one {right:g}"
            )
        for task, count in self.untried.items():
            if count:
                verifier = REWARDS[verifier_of(task) or ""]
                yield f"{rows_text(count)}: {verifier.without_gold}"
        for earned in self.earned:
            if earned.strategy.knows_gold:
                problem = f"{earned.strategy.name!r} is paid, though it does not state the answer"
                yield f"{rows_text(len(earned.paid))}: {problem}"
        for task, count in self.tasks.items():
            if not self.verified[task] and not self.untried[task] and self.bad < self.rows:
                yield f"{rows_text(count)} of {task}: no verifier has graded a right answer"
        for task, count in self.refused.items():
            if self.tasks and task not in self.tasks:
                yield f"{rows_text(count)} of {task}: none of them can be used"

    def as_json(self) -> dict[str, Any]:
        forms = {form or "none": count for form, count in self.forms.items()}
        disagreements = []
        for disagreement, count in self.disagreements.items():
            disagreements.append({**disagreement._asdict(), "rows": count})
        computed = {
            "too_many": self.too_many,
            "pays_nothing": self.pays_nothing,
            "grades_nothing": self.grades_nothing,
            "doubts": self.doubts,
            "forms": forms,
            "disagreements": disagreements,
            "rewards": {name: vars(paid) for name, paid in self.rewards.items()},
            "problems": [{"line": line, "problem": problem} for line, problem in self.problems],
            "earned": [earned.as_json() for earned in self.earned],
        }
        return {**vars(self), **computed}


def rows_text(count: int) -> str:
    """A number of rows for people.

    >>> rows_text(1), rows_text(2000)
    ('1 row', '2,000 rows')
    """
    return "1 row" if count == 1 else f"{count:,} rows"


def form_text(form: str) -> str:
    """A form of answer for people.

    >>> form_text("tags"), form_text("<SOLUTION>(.*?)</SOLUTION>")
    ('<answer> tags', 'the form <SOLUTION>(.*?)</SOLUTION>')
    """
    if form == WHOLE:
        return "no form: the whole response is the answer"
    if form == CALLS:
        return "calls of its tools"
    return FORMS.get(form, f"the form {form}")


class Graders:
    """The rewards that grade a row: those given, or else those of its task."""

    def __init__(self, rewards: Sequence[Reward] | None):
        self._given = rewards
        self._of_tasks: dict[str, Reward] = {}

    def by_reward(self, rows: Iterable[AskedRow]) -> dict[Reward, list[AskedRow]]:
        """The rows that each reward grades."""
        graded: dict[Reward, list[AskedRow]] = {}
        for asked in rows:
            for reward in self.of(asked):
                graded.setdefault(reward, []).append(asked)
        return graded

    def of(self, asked: AskedRow) -> list[Reward]:
        """Those that say something about the completion that a prompt asks for: no shaping, unless
        the task names it. InputError where the row lacks a column.
        """
        names = asked.task.rewards
        if self._given is None:
            for name in names:
                if name not in self._of_tasks:
                    self._of_tasks[name] = REWARDS[name]()
            return [self._of_tasks[name] for name in names]
        graders = []
        for reward in self._given:
            if reward.role == SHAPING and reward.name not in names:
                continue
            task = asked.row.get(
                "task"
            )  # none in rows that ms-swift reads by itself, which all grade
            if reward.own_tasks and task is not None and task not in reward.own_tasks:
                continue
            column = missing_column(reward, asked.row)
            if column is not None:
                present = ", ".join(name for name in asked.row if name != "messages")
                problem = f"needs the column {column!r}; rows of {asked.task.name} have {present}"
                raise InputError(f"{reward.name} {problem}", "--reward_funcs")
            graders.append(reward)
        return graders

    def together(self, asked: AskedRow) -> list[Reward]:
        """All rewards given, where one verifies and another one is shaping; else none."""
        given = [each for each in self._given or () if missing_column(each, asked.row) is None]
        roles = {reward.role for reward in given}
        return given if {VERIFIER, SHAPING} <= roles else []


def check_dataset(
    source: Source,
    against: Sequence[Source] = (),
    limit: float | None = None,
    rewards: Sequence[Reward] | None = None,
    system: SystemPrompt | None = None,
    tokenizer: Any = None,
    first: int | None = None,
    weights: Mapping[str, float] | None = None,
    progress: Callable[[int], object] = lambda rows: None,
) -> Findings:
    """Check the rows of a dataset.

    Args:
        against: files whose rows must not be in the dataset, of tasks with the same columns. Rows
            with other columns could not be shared.
        limit: the share of bad rows that is too much; None for the task's.
        rewards: those of the run; None for those of each row's task.
        system, tokenizer: as in `ask`.
        first: look at the first so many rows; None for all.
        weights: of the rewards by name, where one is not 1.
        progress: is called with the number of rows so far.

    Raises:
        InputError: a line cannot be read, which it names, or a file in `against` has other columns.
    """
    if limit is None:
        limit = allowed_share(source.task)
    check = DatasetCheck(source, against, limit, rewards, weights)
    findings = check.findings
    renamed: set[str] = set()
    rows = islice(source.rows(renamed), first)
    while batch := list(islice(rows, BATCH)):
        check.add(batch, system, tokenizer)
        progress(findings.rows)

    if first is None or findings.rows < first:
        findings.total = findings.rows
    else:
        findings.total = rows_without_reading(source)
    findings.absent = [name for name in source.columns if name not in renamed]
    findings.earned = paid_by(check.attacked)
    return findings


class DatasetCheck:
    """The check of a dataset, a batch of rows at a time.

    attacked: by verifier, the first rows with a right answer.
    """

    def __init__(
        self,
        source: Source,
        against: Sequence[Source],
        limit: float,
        rewards: Sequence[Reward] | None,
        weights: Mapping[str, float] | None = None,
    ):
        self._task = source.task
        self._weights = weights or {}
        self._graders = Graders(rewards)
        # By `Task.identity`: the first line of each question, and the questions of the other files.
        self._first_lines: dict[str, int] = {}
        self._first_golds: dict[str, _FirstGold] = {}
        self._elsewhere: dict[str, set[str]] = {}
        for other in against:
            columns = source.task.columns
            if other.task.columns != columns:
                expected = f"a file of {source.task.name}, with the columns {', '.join(columns)}"
                problem = f"{other}: expected {expected}; its task is {other.task.name}"
                raise InputError(problem, field="against")
            identities = self._elsewhere.setdefault(str(other), set())
            for _, row in other.rows():
                with suppress(RowError):
                    identities.add(other.task.identity(row))
        self.attacked: dict[Reward, list[AskedRow]] = {}
        self.findings = Findings(limit, shared=dict.fromkeys(self._elsewhere, 0))

    def add(
        self,
        batch: Sequence[tuple[int, Mapping[str, Any]]],
        system: SystemPrompt | None,
        tokenizer: Any,
    ) -> None:
        """Look at raw rows with their lines: first each on its own, then each reward on all."""
        findings = self.findings
        findings.rows += len(batch)
        bad: list[Problem] = []
        usable: list[AskedRow] = []
        for line, raw in batch:
            try:
                asked = ask(self._task, raw, line, system, tokenizer)
                identity = self._task.identity(raw)
            except RowError as error:
                findings.unusable[error.label] += 1
                bad.append((line, str(error)))
                with suppress(RowError):
                    findings.refused[self._task.of(raw).name] += 1
                continue
            findings.tasks[asked.task.name] += 1
            findings.forms[asked.form] += 1
            pictures = asked.row.get(IMAGES) or []
            findings.with_pictures += bool(pictures)
            findings.pictures_at_urls += any(content_of(each) is None for each in pictures)
            findings.unused.update(unused_columns(self._task, raw))
            findings.unread.update(unread_columns(self._task, raw))
            _note_doubts(findings, asked, raw)
            self._compare(asked, identity)
            bad += _remarks(findings, asked)
            if asked.ideal is not None:
                usable.append(asked)

        for reward, rows in self._graders.by_reward(usable).items():
            bad += grade_rows(findings, reward, rows)
            # Attacks on tests would run for minutes.
            if reward.role == VERIFIER and not reward.runs_code:
                attacked = rows[: ATTACKED_ROWS - findings.attacked]
                self.attacked.setdefault(reward, []).extend(attacked)
                findings.attacked += len(attacked)
        self._compare_long_answers(usable)
        findings.bad += len({line for line, _ in bad})
        # By line, with rows that only repeat another one last.
        findings.problems += bad
        findings.problems.sort(key=lambda problem: (problem[1].startswith(REPEATS), problem))
        del findings.problems[SHOWN:]

    def _compare_long_answers(self, rows: Sequence[AskedRow]) -> None:
        """Note rows of which a long wrong answer earns no less than the right one."""
        findings = self.findings
        for asked in rows[: _COMPARED_ROWS - findings.compared]:
            rewards = self._graders.together(asked)
            if not rewards:
                continue
            right = wrong = 0.0
            completions = [asked.graded or "", asked.answering(GUESS, AT_LENGTH)]
            for reward in rewards:
                paid = grades_of(reward, [asked] * 2, completions)
                weight = self._weights.get(reward.name, 1.0)
                right += weight * (paid[0].reward or 0.0)
                wrong += weight * (paid[1].reward or 0.0)
            findings.compared += 1
            if wrong >= right and (wrong or right):
                findings.long_wrong = findings.long_wrong or (right, wrong)
                findings.long_wrong_rows += 1

    def _compare(self, asked: AskedRow, identity: str) -> None:
        """Count a row that asks what another row asks."""
        findings = self.findings
        line = asked.line
        first_line = self._first_lines.setdefault(identity, line)
        if first_line != line:
            findings.duplicates += 1
            findings.problems.append((line, f"{REPEATS} line {first_line}"))
            self._compare_golds(asked, self._first_golds.get(identity))
        elif asked.gold is not None:
            columns = REWARDS[asked.task.verifier or ""].columns
            self._first_golds[identity] = _FirstGold(
                _gold_in_words(asked), {name: asked.row[name] for name in columns}
            )
        for name, identities in self._elsewhere.items():
            if identity in identities:
                findings.shared[name] += 1
                findings.problems.append((line, f"is also in {name}"))

    def _compare_golds(self, asked: AskedRow, first: "_FirstGold | None") -> None:
        """Note a row and the first one with its question, of which neither pays the other's gold."""
        if first is None or asked.gold is None:
            return
        verifier = REWARDS[asked.task.verifier or ""]
        gold = _gold_in_words(asked)
        # Several letters say nothing of choices in another order.
        is_several = bool(letters_in(gold) or letters_in(first.answer))
        if gold == first.answer or is_several or verifier.runs_code:
            return
        as_first = replace(asked, row={**asked.row, **first.columns})
        answers = [asked.answering(first.answer), asked.answering(gold)]
        grades = grades_of(verifier(), [asked, as_first], answers)
        if all(grade.reward == 0.0 for grade in grades):
            self.findings.contradictions.append((asked.line, f"{gold:.80} and {first.answer:.80}"))


class _FirstGold(NamedTuple):
    """The right answer of the first row that asks something, and the columns that verify it."""

    answer: str
    columns: dict[str, Any]


def _gold_in_words(asked: AskedRow) -> str:
    """The right answer of a row that has one; the choice and not its letter, since the same question
    may have its choices in another order.
    """
    gold = asked.gold.answer.strip() if asked.gold else ""
    options = asked.row.get("options") or []
    if len(gold) == 1 and gold in LETTERS[: len(options)]:
        return str(options[LETTERS.index(gold)])
    return gold


def rows_without_reading(source: Source) -> int | None:
    """How many rows a dataset has, or None if all would have to be read to know."""
    if source.path is None or source.path.suffix != ".jsonl":
        return source.limit
    with opened(source.path) as file:
        count = sum(1 for line in file if line.strip())
    return min(count, source.limit or count)


def _note_doubts(findings: Findings, asked: AskedRow, raw: Row) -> None:
    """Note what may be meant otherwise than it is read: the form of the answer, a comma, the scale of
    boxes.
    """
    # Of the user's turns: the task's own system prompt asks for a form that is known.
    turns = [turn for turn in asked.row["messages"] if turn["role"] == "user"]
    form = unknown_form(prompt_text(turns))
    if form is not None:
        findings.unknown_forms.append((asked.line, form))
    if asked.task.verifier == BoxReward.name and (pixels := unsaid_pixels(raw)) is not None:
        largest, side = pixels
        findings.large_pictures += side > _RELATIVE_SIDE
        findings.largest_of_boxes = max(findings.largest_of_boxes, largest)
    if asked.gold is not None and asked.task.name == "choice":
        is_first = LETTERS[0] in asked.gold.answer
        findings.first_letters += is_first
        findings.other_letters += not is_first
        findings.expected_first += 1 / len(asked.row["options"])
    if asked.gold is not None and asked.task.verifier == AccuracyReward.name:
        answer = asked.gold.answer.strip()
        # 3,75 and 4,00 €, but neither 1,234 nor the pair 1,5
        if with_decimal_comma(tidy(answer)) is not None:
            findings.decimal_commas.append((asked.line, answer))


def _remarks(findings: Findings, asked: AskedRow) -> list[Problem]:
    """Count what the verifier remarks about a row, and return why the row is bad.

    A row is bad if nothing says what is right for it: it has neither a gold nor usable tests.
    """
    verifier = REWARDS[asked.task.verifier or ""]
    remarks = verifier.remarks(asked.row)
    for remark in remarks:
        findings.remarks[remark] += 1
        findings.problems.append((asked.line, remark))
    if asked.ideal is not None:
        return []
    if verifier.without_gold:
        unusable = [(asked.line, remark) for remark in remarks if UNUSABLE in remark]
        findings.untried[asked.task.name] += not unusable
        return unusable
    label = "unsolvable" if "nums" in asked.row else "no right answer is known"
    findings.no_gold[label] += 1
    return [(asked.line, label)]


def grade_rows(findings: Findings, reward: Reward, rows: list[AskedRow]) -> Iterator[Problem]:
    """Grade and count the ideal completions of rows, and yield the problems of those that fail.

    A guess in the same form tells a row at fault from a reward that wants another form: the latter
    refuses both for the same reason.
    """
    ideals = grades_of(reward, rows, [asked.graded or "" for asked in rows])
    guesses = grades_of(reward, rows, [guess_of(asked) for asked in rows])
    is_verifier = reward.role == VERIFIER
    paid = findings.rewards.setdefault(reward.name, Paid())
    for asked, ideal, guess in zip(rows, ideals, guesses, strict=True):
        if ideal.reason == OTHER_TASK:
            continue
        # A gold that no answer can be compared with. What is wrong with a program says nothing of the
        # row's reference.
        is_unreadable = reward.columns and guess.reward is None and not reward.runs_code
        grade = guess if is_unreadable else ideal
        if is_verifier:
            _count_verified(findings, reward, asked, grade)
        # What a reward of one's own pays at most is not known.
        is_owed = is_verifier or reward.role == FORMAT or reward.name in asked.task.rewards
        if grade.reward == reward.full_reward or (grade.reward and not is_owed):
            paid.full += 1
            if is_verifier and guess.reward == reward.full_reward:
                what = "a program that returns" if reward.runs_code else "the answer"
                yield asked.line, f"{reward.name} pays {what} {GUESS} in full too"
            continue
        paid.reasons[grade.reason] += 1
        paid.none += grade.reward is None
        paid.less += grade.reward is not None
        # Where the prompt's form is not known, the ideal may not be what it asks for.
        is_shown = asked.form is not None
        paid.nothing += is_shown and grade.reward == 0 and guess.reward in (0, None)
        paid.ungraded += is_shown and grade.reward is None and guess.reward is None
        if not is_verifier and grade.reason == guess.reason:
            disagreement = Disagreement(reward.name, asked.form, grade.reason)
            findings.disagreements[disagreement] += 1
        else:
            problem = _why_less(reward, grade)
            if reward.runs_code and grade.reward is not None and paid.less <= SHOWN:
                # The reason alone may be "error": a module that `packages` does not name, for example.
                rules = reward.explain(asked.graded, asked.row).rules
                details = [rule.detail for rule in rules if rule.passed is False]
                problem += f" ({details[0]})" if details else ""
            yield asked.line, problem


def _count_verified(findings: Findings, reward: Reward, asked: AskedRow, grade: Grade) -> None:
    """Count a row whose right answer a verifier has graded, and how a reference passes its tests."""
    findings.verified[asked.task.name] += grade.reward is not None
    if not reward.runs_code:
        return
    way = APART if grade.reward == reward.full_reward else NOT_AT_ALL
    if grade.reason == ONLY_TOGETHER:  # paid or not
        way = TOGETHER
    findings.ways[way] += 1


def _why_less(reward: Reward, grade: Grade) -> str:
    """What is wrong with a row whose right answer is not paid in full."""
    if grade.reward is not None:
        return f"{reward.name} gives the gold {grade.reward:g}: {grade.reason}"
    if grade.reason == ONLY_TOGETHER:
        return f"the reference passes only with {reward.name}'s together=true"
    outcome = "does not grade the reference" if reward.runs_code else "cannot read the gold"
    return f"{reward.name} {outcome}: {grade.reason}"
