"""What the rewards of a run pay together for a right completion of a row, and for a wrong one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# An answer that is right for no row. A gold that cannot be read still equals itself, so the right
# answer alone would not show it; a reward that gives this one None cannot grade what a policy writes
# for the row, and one that pays it pays everything.
GUESS = "271828183"
# Rows of a task on which the rewards are tried before a training: with two completions each, as many as
# a small batch of the training, which may ask a model as a judge.
TRIED_ROWS = 32


@dataclass(frozen=True)
class Pay:
    """What each reward, by name, pays for the two completions.

    where: names the right one. weights: what the pay of a reward is multiplied with. full: what each
    verifier pays for a right completion.

    >>> weights, full = {"gold": -1, "short": 1}, {"gold": 1.0}
    >>> pay = Pay("line 1", {"gold": 1.0, "short": 0.5}, {"gold": 0.0, "short": 1.0}, weights, full)
    >>> pay.is_more, str(pay)
    (False, 'line 1 earns -0.5 (gold 1, short 0.5), and a wrong one 1 (gold 0, short 1)')
    """

    where: str
    right: Mapping[str, float | None]
    wrong: Mapping[str, float | None]
    weights: Mapping[str, float]
    full: Mapping[str, float]

    def why_not_full(self) -> str:
        """What is wrong where the verifiers do not pay the right completion in full; else empty."""
        # One verifier of several may leave a row to the others: that of a mixed file's other task.
        graded = [name for name in self.full if self.right[name] is not None]
        if self.full and not graded:
            return f"no verifier grades {self.where}"
        for name in graded:
            right, wrong = self.right[name] or 0.0, self.wrong[name] or 0.0
            if right < self.full[name]:
                problem = f"{name} gives {self.where} {right:g}"
                if wrong < right:
                    problem += (
                        f", and a wrong one {wrong:g}; its full_reward is {self.full[name]:g}"
                    )
                return problem
        return ""

    @property
    def is_more(self) -> bool:
        """Whether the right completion earns more than the wrong one."""
        return self._total(self.right) > self._total(self.wrong)

    def __str__(self) -> str:
        return f"{self.where} earns {self._shown(self.right)}, and a wrong one {self._shown(self.wrong)}"

    def _total(self, paid: Mapping[str, float | None]) -> float:
        """The weighted sum, in which what was not graded counts as 0, as in ms-swift and TRL."""
        return sum((value or 0.0) * self.weights[name] for name, value in paid.items())

    def _shown(self, paid: Mapping[str, float | None]) -> str:
        parts = [f"{name} {value:g}" for name, value in paid.items() if value is not None]
        return f"{self._total(paid):g} ({', '.join(parts) or 'nothing'})"


@dataclass(frozen=True)
class Fault:
    """What is wrong with the pay of a task's rows.

    text: of the first row at fault, with how many are. is_of_total: a wrong completion earns as much in
    all; else a verifier does not pay a right one in full. ends_run: most rows are at fault.
    """

    text: str
    is_of_total: bool
    ends_run: bool


def find_fault(pays: Sequence[Pay]) -> Fault | None:
    """What is wrong with the pay of some rows of a task; None if nothing is.

    A few golds may be odd. Without a verifier, equal pay may be meant: a run for the format alone.
    """
    faults: list[tuple[str, bool]] = []
    for pay in pays:
        problem = pay.why_not_full()
        if problem:
            faults.append((problem, False))
        elif not pay.is_more:
            faults.append((f"{pay}: no more", True))
    if not faults:
        return None

    text, is_of_total = faults[0]
    if len(pays) > 1:
        text += f" ({len(faults):,} of {len(pays):,} rows that were tried are at fault)"
    ends_run = bool(pays[0].full) and 2 * len(faults) > len(pays)
    return Fault(text, is_of_total, ends_run)
