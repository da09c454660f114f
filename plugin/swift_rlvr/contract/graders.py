"""Right answers graded by the rewards of a run, each beside a guess in the same form."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from swift_rlvr.contract.attack import grades_of, guess_of
from swift_rlvr.evaluation.pay import GUESS
from swift_rlvr.evaluation.prompts import AskedRow
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.base import OTHER_TASK, Grade
from swift_rlvr.rewards.build import missing_column
from swift_rlvr.success import FORMAT, ONLY_TOGETHER, SHAPING, VERIFIER
from swift_rlvr.utils.errors import InputError

# Something to say at length, without a value and without repetition: "ba be", "ba bi" and so on.
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiou"]
AT_LENGTH = ", ".join(f"{one} {other}" for one in _SYLLABLES[:14] for other in _SYLLABLES)


class Graders:
    """The rewards that grade a row: those given, or else those of its task.

    weights: of those given by name, where one is not 1.
    """

    def __init__(
        self, rewards: Sequence[Reward] | None, weights: Mapping[str, float] | None = None
    ):
        self._given = rewards
        self._weights = weights or {}
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
        graders: list[Reward] = []
        if self._given is None:
            for name in names:
                if name not in self._of_tasks:
                    self._of_tasks[name] = REWARDS[name]()
                graders.append(self._of_tasks[name])
            return graders

        for reward in self._given:
            if reward.role == SHAPING and reward.name not in names:
                continue
            # Rows that ms-swift reads by itself name no task, and every reward grades them.
            task = asked.row.get("task")
            if reward.own_tasks and task is not None and task not in reward.own_tasks:
                continue
            column = missing_column(reward, asked.row)
            if column is not None:
                present = ", ".join(name for name in asked.row if name != "messages")
                problem = f"needs the column {column!r}; rows of {asked.task.name} have {present or 'none'}"
                raise InputError(f"{reward.name} {problem}", "--reward_funcs")
            graders.append(reward)
        return graders

    def right_and_long_wrong(self, asked: AskedRow) -> tuple[float, float] | None:
        """What all rewards given pay together for the right answer of a row, and for a long wrong one;
        None unless one verifies and another one is shaping.
        """
        given = []
        roles = set()
        for reward in self._given or ():
            # Of a mixed file the rewards of other tasks lack their columns here.
            if missing_column(reward, asked.row) is None:
                given.append(reward)
                roles.add(reward.role)
        if not {VERIFIER, SHAPING} <= roles:
            return None
        completions = [asked.graded or "", asked.answering(GUESS, AT_LENGTH)]
        right = wrong = 0.0
        for reward in given:
            of_right, of_wrong = grades_of(reward, [asked] * 2, completions)
            weight = self._weights.get(reward.name, 1.0)
            right += weight * (of_right.reward or 0.0)
            wrong += weight * (of_wrong.reward or 0.0)
        return right, wrong

    @property
    def without_verifier(self) -> list[str]:
        """The names of the rewards given, where each declares that it judges something else than the
        answer.
        """
        names = []
        for reward in self._given or ():
            # A function of one's own without a role may verify.
            if reward.role not in (FORMAT, SHAPING):
                return []
            names.append(reward.name)
        return names


@dataclass(frozen=True)
class GradedRow:
    """What a reward gives the ideal completion of a row, and a guess in the same form."""

    reward: Reward
    asked: AskedRow
    ideal: Grade
    guess: Grade

    @property
    def grade(self) -> Grade:
        """The grade that says whether the row can be graded."""
        # None to any guess: a gold that no answer can be compared with, though it equals itself. What is
        # wrong with a program says nothing of the row's reference.
        reward = self.reward
        if reward.columns and self.guess.reward is None and not reward.runs_code:
            return self.guess
        return self.ideal

    @property
    def is_verified(self) -> bool:
        return self.reward.role == VERIFIER

    @property
    def is_paid(self) -> bool:
        """Whether the right answer earns what it should: the maximum, or anything of a reward of one's
        own, whose maximum is not known.
        """
        reward = self.reward
        if self.grade.reward == reward.full_reward:
            return True
        is_ours = reward.name in self.asked.task.rewards
        owes_all = self.is_verified or reward.role == FORMAT or is_ours
        return bool(self.grade.reward) and not owes_all

    @property
    def refuses_the_form(self) -> bool:
        """Whether it is not the row that is at fault, but a reward that wants another form than the
        prompt asks for: it refuses the right answer and the guess for the same reason.
        """
        return not self.is_verified and self.grade.reason == self.guess.reason

    def pays_a_guess(self) -> str:
        """What is wrong where a guess earns all that a right answer does; else empty."""
        reward = self.reward
        if not self.is_verified or self.guess.reward != reward.full_reward:
            return ""
        what = "a program that returns" if reward.runs_code else "the answer"
        return f"{reward.name} pays {what} {GUESS} in full too"

    def why_less(self) -> str:
        """What is wrong with a row whose right answer is not paid in full."""
        name, grade = self.reward.name, self.grade
        if grade.reward is not None:
            problem = f"{name} gives the gold {grade.reward:g}: {grade.reason}"
            guess = self.guess.reward
            if name not in REWARDS and guess is not None and guess < grade.reward:
                # It tells them apart, so that only what it is said to pay at most may be wrong.
                problem += f", and a wrong answer {guess:g}; its full_reward is {self.reward.full_reward:g}"
            return problem
        if grade.reason == ONLY_TOGETHER:
            return f"the reference passes only with {name}'s together=true"
        outcome = (
            "does not grade the reference" if self.reward.runs_code else "cannot read the gold"
        )
        return f"{name} {outcome}: {grade.reason}"

    def failed_rule(self) -> str:
        """The first rule that a reference fails, in brackets: the reason alone may be "error", such as
        for a module that `packages` does not name.
        """
        for rule in self.reward.explain(self.asked.graded, self.asked.row).rules:
            if rule.passed is False:
                return f" ({rule.detail})"
        return ""


def graded_rows(reward: Reward, rows: Sequence[AskedRow]) -> Iterator[GradedRow]:
    """The rows with what a reward gives them; without those that it leaves to another task."""
    ideals = grades_of(reward, rows, [asked.graded or "" for asked in rows])
    guesses = grades_of(reward, rows, [guess_of(asked) for asked in rows])
    for asked, ideal, guess in zip(rows, ideals, guesses, strict=True):
        if ideal.reason != OTHER_TASK:
            yield GradedRow(reward, asked, ideal, guess)
