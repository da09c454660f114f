"""What the check of a dataset has counted, and what follows from it: whether the dataset fails, and why
it may teach nothing although no row is bad.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from swift_rlvr.contract.attack import Earned, by_knowledge
from swift_rlvr.contract.graders import AT_LENGTH, GradedRow
from swift_rlvr.contract.own_forms import UnreadForm
from swift_rlvr.rewards import REWARDS
from swift_rlvr.success import ONLY_TOGETHER
from swift_rlvr.tasks import verifier_of
from swift_rlvr.tasks.row_check import FORGIVEN, too_many
from swift_rlvr.utils.settings import PREFIX
from swift_rlvr.verifiers.answer_forms import CALLS, FORMS, WHOLE

# The problems that are kept to be shown.
SHOWN = 10
# The largest coordinate of boxes on Qwen3-VL's scale, and how many larger pictures have to be seen
# before it says something that no box goes beyond it.
RELATIVE_SIDE = 1000
_SEEN_PICTURES = 10
# Answers that do not state the right one and are paid; a reward that pays one mostly pays all like it.
_SHOWN_UNSTATED = 3
# That no first choice is right is chance once in 400 datasets where so many would be.
_EXPECTED_FIRST = 6
# How a reference passes its tests: in a process of its own, only in one with them, or not at all.
WAYS = APART, TOGETHER, NOT_AT_ALL = "apart", "only together", "not at all"

# A line, from 1, and what is wrong there.
Problem = tuple[int, str]

# How a row that is not bad may mean something else than it is read as, by name: what is said of the first
# such row, with its line and the text that raises the doubt.
ROW_DOUBTS = {
    "decimal_commas": (
        "the gold has a comma that may be a decimal one, as {text} (line {line}), so the same with a point "
        "is not paid; write a point, or a space behind the comma of a list"
    ),
    "other_golds": "two columns do not agree on the right answer (line {line}: {text})",
    "different_golds": (
        "the gold is a list of different values, and one of them is paid (line {line}: {text}); if all are "
        "wanted, write them as one text, such as '1, 2'"
    ),
    "golds_in_one": (
        "the gold may be several in one text, as {text} (line {line}), and none of them alone is paid; "
        "write a list where any of them is right"
    ),
    "numbers_of_two": (
        "the gold is a number, and is read as that of a choice, from 0, though another choice says it "
        "(line {line}: {text}); write the letter"
    ),
    "contradictions": (
        "an earlier row asks the same, with another gold (line {line}: {text}), as where a picture or a "
        "passage is missing"
    ),
    "templates": (
        "the question has a chat template's {text} (line {line}), and the trainer puts its own around it; "
        "keep the question alone, or `messages`"
    ),
}


class Disagreement(NamedTuple):
    """A reward that wants something other than what the prompts ask for."""

    reward: str
    form: str | None  # what the prompts ask for
    reason: str  # why the reward does not pay for it

    @property
    def asked(self) -> str:
        return form_text(self.form) if self.form else "no form"


@dataclass
class Paid:
    """How many ideal completions earn the maximum of a reward, less, and None, with the reasons
    for the latter two. Of prompts whose form is known, nothing: how many earn 0, and no more than a
    wrong one; ungraded: of how many not even a wrong one is graded. in_part: how many of `full` earn
    something of a reward whose maximum is not known, and less than 1.
    """

    full: int = 0
    in_part: int = 0
    less: int = 0
    none: int = 0
    nothing: int = 0
    ungraded: int = 0
    reasons: Counter = field(default_factory=Counter)

    @property
    def rows(self) -> int:
        return self.full + self.less + self.none

    def count_unpaid(self, graded: GradedRow) -> None:
        """Count a row whose right answer misses the maximum."""
        reward, guess = graded.grade.reward, graded.guess.reward
        self.reasons[graded.grade.reason] += 1
        self.none += reward is None
        self.less += reward is not None
        # Where the prompt's form is not known, the ideal may not be what it asks for.
        if graded.asked.form is not None:
            self.nothing += reward == 0 and guess in (0, None)
            self.ungraded += reward is None and guess is None


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
    # The rewards of the run, where none of them verifies an answer.
    without_verifier: list[str] = field(default_factory=list)
    # Rows by how the reference passes its tests: APART, TOGETHER or NOT_AT_ALL.
    ways: Counter = field(default_factory=Counter)
    # Rows by a column that seems to belong to the question and is not used.
    unused: Counter = field(default_factory=Counter)
    # Rows by a column that neither the prompt nor a reward gets anything from.
    unread: Counter = field(default_factory=Counter)
    # Rows whose prompts show a form of their own that a verifier does not read.
    unread_forms: list[UnreadForm] = field(default_factory=list)
    # The rows that raise each of ROW_DOUBTS: the line and the text.
    row_doubts: dict[str, list[Problem]] = field(
        default_factory=lambda: {name: [] for name in ROW_DOUBTS}
    )
    # Golds such as 1,5, which may be a number with a decimal comma, or a pair.
    numbers_or_pairs: list[Problem] = field(default_factory=list)
    # Rows by the column of a passage that they leave empty, as merged cells do, and those that fill it.
    without_passage: Counter = field(default_factory=Counter)
    with_passage: Counter = field(default_factory=Counter)
    # Rows by what their column `split` says.
    splits: Counter = field(default_factory=Counter)
    # Whether a gold is the number of a choice, and nothing else.
    has_numbers: bool = False
    # Rows whose boxes are taken for pixels of a picture of more than 1,000 of them, since nothing says
    # what they are, and the largest number of all these boxes.
    large_pictures: int = 0
    largest_of_boxes: float = 0.0
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
    # The mean that one without work may earn.
    guessing_limit: float = 1.0

    def count(self, graded: GradedRow) -> str:
        """Count what a reward gives the right answer of a row; returns what is wrong with the row, empty
        if nothing is.
        """
        reward, grade = graded.reward, graded.grade
        paid = self.rewards.setdefault(reward.name, Paid())
        if graded.is_verified:
            self.verified[graded.asked.task.name] += grade.reward is not None
        if graded.is_verified and reward.runs_code:
            way = APART if grade.reward == reward.full_reward else NOT_AT_ALL
            if grade.reason == ONLY_TOGETHER:  # paid or not
                way = TOGETHER
            self.ways[way] += 1

        if graded.is_paid:
            paid.full += 1
            paid.in_part += grade.reward != reward.full_reward
            return graded.pays_a_guess()
        paid.count_unpaid(graded)
        if graded.refuses_the_form:
            disagreement = Disagreement(reward.name, graded.asked.form, grade.reason)
            self.disagreements[disagreement] += 1
            return ""
        problem = graded.why_less()
        # To explain is to run the program again.
        if reward.runs_code and grade.reward is not None and paid.less <= SHOWN:
            problem += graded.failed_rule()
        return problem

    def count_long_wrong(self, right: float, wrong: float) -> None:
        """Count a row of which a long wrong answer was compared with the right one."""
        self.compared += 1
        if wrong >= right and (wrong or right):
            self.long_wrong = self.long_wrong or (right, wrong)
            self.long_wrong_rows += 1

    def counts_in_words(self) -> dict[str, int]:
        """Rows by what is wrong with them or remarkable."""
        counts = {f"cannot be used: {label}": count for label, count in self.unusable.items()}
        counts |= self.no_gold + self.remarks
        if self.duplicates:
            counts["repeat an earlier row's question"] = self.duplicates
        return counts

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
        return bool(paid) and all(each.nothing == each.rows > 0 for each in paid)

    @property
    def grades_nothing(self) -> bool:
        """Whether no reward of the run has graded anything in a form that is known, right or wrong."""
        paid = self.rewards.values()
        return bool(paid) and all(each.ungraded == each.rows > 0 for each in paid)

    @property
    def teaches_nothing(self) -> bool:
        """Whether no training can work with these rows and rewards."""
        is_unpaid = self.pays_nothing or self.grades_nothing
        return self.too_many or is_unpaid or bool(self.without_verifier)

    @property
    def failed(self) -> bool:
        return self.teaches_nothing or any(self.shared.values())

    def conclusion(self) -> str:
        """The check's result in a sentence."""
        counts = f"{self.bad:,} of {self.rows:,} rows are bad"
        limit = too_many(self.limit)
        rewards = ", ".join(self.rewards)
        if self.too_many:
            why = f"that is {limit}"
            if self.bad == self.rows:
                why = "no good row is left"
            elif 2 * self.bad > self.rows:
                why = "that is more than half"
            return f"Too many bad rows: {counts}, and {why}."
        if self.without_verifier:
            names = ", ".join(self.without_verifier)
            return (
                f"Nothing verifies these rows: of the rewards ({names}) none judges whether an answer is "
                "right. Add a verifier, such as that of the task."
            )
        if self.pays_nothing:
            return f"Every right answer earns 0, as a wrong one does: a training with {rewards} learns nothing."
        if self.grades_nothing:
            return (
                f"No answer was graded, right or wrong: a training with {rewards} learns nothing."
            )
        if self.bad:
            return f"Within the limit: {counts}. The check fails if {limit}, or more than half, are bad."
        if self.doubts:
            return "No row is bad. What is named above may still be wrong, or was not graded."
        in_full = [name for name, paid in self.rewards.items() if not paid.in_part]
        text = f"Every gold earns the maximum of {', '.join(in_full)}"
        for name in sorted(self.rewards.keys() - in_full):
            text += f", and something of {name}, whose maximum is not known"
        return f"{text}."

    @property
    def doubts(self) -> list[str]:
        """Why a dataset without a bad row may still teach nothing, or something else. Empty if
        everything was looked at and agrees.
        """
        return [
            *self._doubts_of_columns_and_golds(),
            *self._doubts_of_questions(),
            *self._doubts_of_rewards(),
            *self._doubts_of_coverage(),
        ]

    def _doubts_of_columns_and_golds(self) -> Iterator[str]:
        """Where a column or a gold may mean something else than it is read as."""
        for name in self.absent:
            yield f"no row has the column {name!r}, which --columns renames"
        for column, count in self.unused.items():
            yield f"{rows_text(count)}: the column {column!r} is not used, though it seems to belong to the question"
        for column, count in self.without_passage.items():
            if self.with_passage[column]:
                yield (
                    f"{rows_text(count)}: the column {column!r} is empty, and {self.with_passage[column]:,} "
                    "have one, as where a spreadsheet's cells were merged; write the text into each row"
                )
        if len(self.splits) > 1:
            counts = ", ".join(f"{name}: {count:,}" for name, count in self.splits.items())
            yield f"the column 'split' names several ({counts}), and the training reads all of them"
        row_doubts = dict(self.row_doubts)
        # A few golds such as 1,5 are pairs. Where most look so, they are numbers.
        if 2 * len(self.numbers_or_pairs) > self.rows:
            row_doubts["decimal_commas"] = sorted(
                self.row_doubts["decimal_commas"] + self.numbers_or_pairs
            )
        # Where other rows count their choices, these do, too.
        if self.has_numbers:
            row_doubts["numbers_of_two"] = []
        for name, sentence in ROW_DOUBTS.items():
            if row_doubts[name]:
                line, text = row_doubts[name][0]
                yield f"{rows_text(len(row_doubts[name]))}: {sentence.format(line=line, text=text)}"
        if self.expected_first >= _EXPECTED_FIRST and not self.first_letters:
            yield (
                f"{rows_text(self.other_letters)}: the right choice is never the first; where it is told by "
                "number, the numbers may begin at 1, and are read as if they began at 0"
            )
        if self.large_pictures >= _SEEN_PICTURES and self.largest_of_boxes <= RELATIVE_SIDE:
            yield (
                f"{rows_text(self.large_pictures)}: the picture has more than 1,000 pixels a side, and no "
                f"box goes beyond 1000: they may be on a scale of 0 to 1000, and are read as pixels; "
                f"{PREFIX}GOLD_COORDINATES says which (relative or absolute)"
            )

    def _doubts_of_questions(self) -> Iterator[str]:
        """Where rows repeat a question, or a prompt does not say what is wanted."""
        # From where it is no longer a few that somebody has overlooked.
        if 2 * self.duplicates > self.rows:
            yield f"{rows_text(self.duplicates)} of {self.rows:,}: an earlier row asks the same"
        # A few such rows do no harm. Most of them, and a right answer is hardly ever paid.
        for remark, count in self.remarks.items():
            if 2 * count > self.rows:
                yield f"{rows_text(count)} of {self.rows:,}: {remark}"
        if self.pictures_at_urls:
            rows = rows_text(self.pictures_at_urls)
            yield f"{rows}: pictures at URLs, which were not opened"
        if self.forms[None]:
            rows = rows_text(self.forms[None])
            yield f"{rows}: the prompt does not say what the answer looks like"

    def _doubts_of_rewards(self) -> Iterator[str]:
        """What the rewards do not pay, or pay too easily."""
        if self.unread_forms:
            first = self.unread_forms[0]
            rows = rows_text(len({unread.line for unread in self.unread_forms}))
            yield (
                f"{rows}: the prompt asks for {first.shown} (line {first.line}), which {first.reward} does not "
                f"read: {first.completion!r} earns {first.earned:g} ({first.reason}); have the prompt ask "
                "for \\boxed{}, <answer> tags or 'Answer:' in its place"
            )
        for each, count in self.disagreements.items():
            problem = f"so {each.reward} can hardly be earned ({each.reason})"
            yield f"{rows_text(count)}: the prompt asks for {each.asked}, {problem}"
        if self.long_wrong:
            right, wrong = self.long_wrong
            yield (
                f"{rows_text(self.long_wrong_rows)} of {self.compared}: a wrong answer of "
                f"{len(AT_LENGTH):,} characters earns {wrong:g} of all rewards together, and a short right "
                f"one {right:g}"
            )
        # Of all rows: what applies to a few, such as the number in the question, says little.
        without_work, unstated = by_knowledge(self.earned)
        best = max(without_work, key=lambda earned: earned.total, default=None)
        if best is not None and best.total > self.guessing_limit * self.attacked:
            yield (
                f"{rows_text(len(best.paid))} of {self.attacked:,}: {best.strategy.name} is paid, without "
                f"any work: {best.total / self.attacked:.2f} a row"
            )
        for earned in unstated[:_SHOWN_UNSTATED]:
            problem = f"{earned.strategy.name!r} is paid, though it does not state the answer"
            yield f"{rows_text(len(earned.paid))}: {problem}"
        if len(unstated) > _SHOWN_UNSTATED:
            others = len(unstated) - _SHOWN_UNSTATED
            yield f"{others} more such answers are paid; `swift-rlvr attack` lists them"

    def _doubts_of_coverage(self) -> Iterator[str]:
        """Rows of which no verifier has graded a right answer, or that cannot be used."""
        for task, count in self.untried.items():
            if count:
                verifier = REWARDS[verifier_of(task) or ""]
                yield f"{rows_text(count)}: {verifier.without_gold}"
        for task, count in self.tasks.items():
            was_tried = self.verified[task] or self.untried[task]
            if not was_tried and self.bad < self.rows:
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
        values = {**vars(self), **self.row_doubts, **computed}
        del values["row_doubts"]
        return values


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
