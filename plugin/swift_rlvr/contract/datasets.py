"""Check a dataset before training, as the training will read it: does the answer that each prompt asks
for earn the reward?

A row is preprocessed, its prompt is rendered, the right answer is written in the form that this
prompt asks for (`swift_rlvr.evaluation.prompts.ask`), and the rewards of the run, or those of the
task, grade it in batches. Two rows with the same `Task.identity` ask the same.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

from swift_rlvr.contract.attack import default_limit, grades_of, paid_by, targets
from swift_rlvr.contract.findings import RELATIVE_SIDE, SHOWN, Findings, Problem
from swift_rlvr.contract.graders import Graders, graded_rows
from swift_rlvr.contract.own_forms import unread_forms
from swift_rlvr.evaluation.grade_samples import BATCH
from swift_rlvr.evaluation.prompts import AskedRow, SystemPrompt, ask
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.accuracy import AccuracyReward
from swift_rlvr.rewards.box import BoxReward
from swift_rlvr.rewards.code import UNUSABLE
from swift_rlvr.success import VERIFIER
from swift_rlvr.tasks import RowError, unread_columns, unused_columns
from swift_rlvr.tasks.boxes import unsaid_pixels
from swift_rlvr.tasks.columns import PASSAGES, parsed, passage_text
from swift_rlvr.tasks.files import SPLITS, data_suffix
from swift_rlvr.tasks.options import LETTERS, letters_in
from swift_rlvr.tasks.own import RIGHT_CHOICE, read_question
from swift_rlvr.tasks.pictures import IMAGES, content_of
from swift_rlvr.tasks.row_check import allowed_share
from swift_rlvr.tasks.sources import Source
from swift_rlvr.tasks.task import Row, Task, columns_named, prompt_text
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import opened
from swift_rlvr.verifiers.mathematics.notation import tidy
from swift_rlvr.verifiers.mathematics.plain_numbers import with_decimal_comma

# With which the templates of Qwen, Llama, Gemma, Mistral, Phi and DeepSeek begin a turn.
TEMPLATE = re.compile(
    r"<\|im_start\|>|<\|start_header_id\|>|<start_of_turn>|\[INST\]|<\|user\|>|<｜User｜>"
)
# The rows that are looked at unless all are asked for: enough for every kind of fault, in seconds.
FIRST_ROWS = 2000
# How the problem of a row that repeats another one begins.
REPEATS = "asks the same as"
# What a policy earns that does no work is tried on the first so many rows.
ATTACKED_ROWS = 200
# Of a gold that is a value or a name, and no sentence.
_MOST_WORDS = 3
# "Tom / Thomas", "Tom|Thomas", in a short text.
_LISTED = re.compile(r"\w\s*[|;]\s*\w|\w\s+/\s+\w")
_MOST_LISTED = 8
# 1,5
_NUMBER_OR_PAIR = re.compile(r"-?\d+,\d")
# Of so many rows a long wrong answer is compared with the right one.
_COMPARED_ROWS = 20


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
    limits = [default_limit(targets(rows)) for rows in check.attacked.values() if rows]
    findings.guessing_limit = max(limits, default=1.0)
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
        self._is_csv = source.path is not None and data_suffix(source.path) in (".csv", ".tsv")
        self._graders = Graders(rewards, weights)
        self._questions = SeenQuestions(source.task, against)
        self.attacked: dict[Reward, list[AskedRow]] = {}
        self.findings = Findings(
            limit,
            shared=dict.fromkeys(self._questions.elsewhere, 0),
            without_verifier=self._graders.without_verifier,
        )

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
            findings.unused.update(unused_columns(self._task, raw))
            findings.unread.update(unread_columns(self._task, raw))
            _note_ambiguities(findings, asked, raw)
            _note_columns(findings, raw, self._is_csv)
            self._questions.note_repeats(findings, asked, identity)
            bad += _remarks_on(findings, asked)
            if asked.ideal is not None:
                usable.append(asked)

        for reward, rows in self._graders.by_reward(usable).items():
            earning: list[AskedRow] = []
            for graded in graded_rows(reward, rows):
                problem = findings.count(graded)
                if problem:
                    bad.append((graded.asked.line, problem))
                elif graded.is_paid:
                    earning.append(graded.asked)
            # Attacks on tests would run for minutes.
            if reward.role == VERIFIER and not reward.runs_code:
                findings.unread_forms += unread_forms(reward, earning)
                attacked = rows[: ATTACKED_ROWS - findings.attacked]
                self.attacked.setdefault(reward, []).extend(attacked)
                findings.attacked += len(attacked)

        for asked in usable[: _COMPARED_ROWS - findings.compared]:
            paid = self._graders.right_and_long_wrong(asked)
            if paid is not None:
                findings.count_long_wrong(*paid)
        findings.bad += len({line for line, _ in bad})
        # Few are shown. By line, with rows that only repeat another one last.
        findings.problems += bad
        findings.problems.sort(key=lambda problem: (problem[1].startswith(REPEATS), problem))
        del findings.problems[SHOWN:]


class KnownGold(NamedTuple):
    """The right answer of the first row that asks something, and the columns that verify it."""

    answer: str
    columns: dict[str, Any]

    def contradicted_by(self, asked: AskedRow) -> bool:
        """Whether neither this row nor another one with its question pays the gold of the other."""
        verifier = REWARDS[asked.task.verifier or ""]
        gold = _gold_in_words(asked)
        # Several letters say nothing of choices in another order.
        is_several = bool(letters_in(gold) or letters_in(self.answer))
        if gold == self.answer or is_several or verifier.runs_code:
            return False
        as_first = replace(asked, row={**asked.row, **self.columns})
        answers = [asked.answering(self.answer), asked.answering(gold)]
        grades = grades_of(verifier(), [asked, as_first], answers)
        return all(grade.reward == 0.0 for grade in grades)


class SeenQuestions:
    """The questions of a dataset so far, each as `Task.identity` tells it from others.

    elsewhere: the questions of each file that must not share any with the dataset, by its name.
    """

    def __init__(self, task: Task, against: Sequence[Source]):
        self._first_lines: dict[str, int] = {}
        self._first_golds: dict[str, KnownGold] = {}
        self.elsewhere: dict[str, set[str]] = {}
        for other in against:
            if other.task.columns != task.columns:
                expected = f"a file of {task.name}, with the columns {', '.join(task.columns)}"
                problem = f"{other}: expected {expected}; its task is {other.task.name}"
                raise InputError(problem, field="against")
            identities = self.elsewhere.setdefault(str(other), set())
            for _, row in other.rows():
                with suppress(RowError):
                    identities.add(other.task.identity(row))

    def note_repeats(self, findings: Findings, asked: AskedRow, identity: str) -> None:
        """Note a row that asks what another row asks, here or elsewhere."""
        line = asked.line
        first_line = self._first_lines.setdefault(identity, line)
        if first_line != line:
            findings.duplicates += 1
            findings.problems.append((line, f"{REPEATS} line {first_line}"))
            first = self._first_golds.get(identity)
            if first and asked.gold is not None and first.contradicted_by(asked):
                golds = f"{_gold_in_words(asked):.80} and {first.answer:.80}"
                findings.row_doubts["contradictions"].append((line, golds))
        elif asked.gold is not None:
            columns = REWARDS[asked.task.verifier or ""].columns
            verified = {name: asked.row.get(name) for name in columns}
            self._first_golds[identity] = KnownGold(_gold_in_words(asked), verified)
        for name, identities in self.elsewhere.items():
            if identity in identities:
                findings.shared[name] += 1
                findings.problems.append((line, f"is also in {name}"))


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


def _note_ambiguities(findings: Findings, asked: AskedRow, raw: Row) -> None:
    """Note what may be meant otherwise than it is read: pictures, the scale of boxes, choices by number, a
    comma.
    """
    pictures = asked.row.get(IMAGES) or []
    findings.with_pictures += bool(pictures)
    findings.pictures_at_urls += any(content_of(each) is None for each in pictures)
    turns = [turn for turn in asked.row["messages"] if turn["role"] == "user"]
    token = TEMPLATE.search(prompt_text(turns))
    if token is not None:
        findings.row_doubts["templates"].append((asked.line, token[0]))
    scale = unsaid_pixels(raw) if asked.task.verifier == BoxReward.name else None
    if scale is not None:
        largest, side = scale
        findings.large_pictures += side > RELATIVE_SIDE
        findings.largest_of_boxes = max(findings.largest_of_boxes, largest)

    if asked.gold is None:
        return
    answer = asked.gold.answer.strip()
    choices = asked.row.get("options")
    if asked.task.name == "choice" and choices:
        is_first = LETTERS[0] in answer
        findings.first_letters += is_first
        findings.other_letters += not is_first
        findings.expected_first += 1 / len(choices)
        _note_numbers(findings, asked, raw)
    # 3,75 and 4,00 €, but neither 1,234 nor the pair 1,5
    is_mathematics = asked.task.verifier == AccuracyReward.name
    if is_mathematics and with_decimal_comma(tidy(answer)) is not None:
        findings.row_doubts["decimal_commas"].append((asked.line, answer))
    elif is_mathematics and _NUMBER_OR_PAIR.fullmatch(answer):
        findings.numbers_or_pairs.append((asked.line, answer))
    if is_mathematics:
        _note_different_golds(findings, asked)
    accepted = asked.row.get("accepted_answers") or ()
    if len(accepted) == 1 and len(answer.split()) <= _MOST_LISTED and _LISTED.search(answer):
        findings.row_doubts["golds_in_one"].append((asked.line, answer))
    _note_other_golds(findings, asked, raw)


def _note_columns(findings: Findings, raw: Row, is_csv: bool) -> None:
    """Note a passage that only the first of several rows has, and rows of several splits."""
    for name in columns_named(PASSAGES, raw):
        # JSON has an empty text where a question has no passage. Of merged cells all but the first are
        # empty, which pandas reads as NaN.
        is_nan = isinstance(raw[name], float)
        if is_nan or (is_csv and raw[name] == ""):
            findings.without_passage[name] += 1
        elif passage_text(raw[name]):
            findings.with_passage[name] += 1
    for name in columns_named(("split",), raw):
        if raw[name] in SPLITS:
            findings.splits[raw[name]] += 1


def _note_different_golds(findings: Findings, asked: AskedRow) -> None:
    """Note golds such as ["2", "3"], the two roots of an equation, of which one alone is paid."""
    golds = parsed(asked.row.get("solution"))
    if not isinstance(golds, list):
        return
    for gold in golds:
        # A list that the file wrote as a text is one answer. A letter beside the value is the same one.
        if not isinstance(gold, str) or not re.search(r"\d", gold):
            return
    first = {**asked.row, "solution": golds[0]}
    others = [asked.answering(gold) for gold in golds[1:]]
    rows = [replace(asked, row=first)] * len(others)
    for grade in grades_of(AccuracyReward(), rows, others):
        if grade.reward == 0.0:
            findings.row_doubts["different_golds"].append((asked.line, " | ".join(golds)[:80]))
            return


def _note_numbers(findings: Findings, asked: AskedRow, raw: Row) -> None:
    """Note a number as the gold of a choice: that of MMLU's 2 beside the choices 2, 3 and 4 may be
    either.
    """
    for value in read_question(raw, RIGHT_CHOICE).answers.values():
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            continue
        options = asked.row["options"]
        said = [choice for choice in options if choice.strip() == f"{value:g}"]
        # Of several right choices the answer is no single letter.
        letter = asked.gold.answer if asked.gold else ""
        used = ""
        if letter in LETTERS:
            used = options[LETTERS.index(letter)]
        # A number that no choice says can only count them, and then the other rows' numbers do, too.
        if not said:
            findings.has_numbers = True
        elif used not in said:
            findings.row_doubts["numbers_of_two"].append((asked.line, f"{value:g}, read as {used}"))
        return


def _note_other_golds(findings: Findings, asked: AskedRow, raw: Row) -> None:
    """Note a column with another right answer than the one that is used, such as a level in `label`
    beside the answer in `target`.
    """
    verifier = REWARDS[asked.task.verifier or ""]
    golds_by_column = asked.task.golds_by_column(raw)
    # Two programs may both be right.
    if verifier.runs_code or not golds_by_column:
        return
    (used_column, used), *others = golds_by_column.items()
    for column, gold in others:
        # A solution in words may end with a number that is not its answer.
        if gold == used or len(gold.split()) > _MOST_WORDS:
            continue
        (grade,) = grades_of(verifier(), [asked], [asked.answering(gold)])
        if grade.reward == 0.0:
            golds = f"{used:.80} in {used_column!r}, which is used, and {gold:.80} in {column!r}"
            findings.row_doubts["other_golds"].append((asked.line, golds))
            return


def _remarks_on(findings: Findings, asked: AskedRow) -> list[Problem]:
    """Count what the verifier remarks about a row, and return why the row is bad.

    A row is bad if nothing says what is right for it: it has neither a gold nor usable tests.
    """
    verifier = REWARDS[asked.task.verifier or ""]
    unusable: list[Problem] = []
    for remark in verifier.remarks(asked.row):
        findings.remarks[remark] += 1
        findings.problems.append((asked.line, remark))
        if UNUSABLE in remark:
            unusable.append((asked.line, remark))
    if asked.ideal is not None:
        return []
    if verifier.without_gold:
        findings.untried[asked.task.name] += not unusable
        return unusable
    label = "unsolvable" if "nums" in asked.row else "no right answer is known"
    findings.no_gold[label] += 1
    return [(asked.line, label)]
