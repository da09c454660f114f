"""Golds of different rows that external_exact_match takes for one, though they are written
differently: C and c, [1] and (1).
"""

from collections.abc import Iterable
from typing import NamedTuple

from swift_rlvr.verifiers.answers import normalised_answer


class FoldedGold(NamedTuple):
    """A gold, and that of an earlier row from which only case, articles, punctuation and white
    space tell it apart.
    """

    line: int
    gold: str
    earlier_line: int
    earlier_gold: str


class GoldTexts:
    """The golds of the rows so far.

    >>> texts = GoldTexts()
    >>> texts.add(1, ["the Rhine", "Rhine"]), texts.add(2, ["Rhine"]), texts.add(3, ["rhine"])
    (None, None, FoldedGold(line=3, gold='rhine', earlier_line=1, earlier_gold='the Rhine'))
    """

    def __init__(self) -> None:
        # by the normal form, the texts that rows have put beside each other, and the first of them
        self._alike: dict[str, set[str]] = {}
        self._first: dict[str, tuple[int, str]] = {}

    def add(self, line: int, golds: Iterable[str]) -> FoldedGold | None:
        """Note the golds of a row; return the first that an earlier row writes differently.

        A row that accepts both forms says that they are one answer.
        """
        by_form: dict[str, list[str]] = {}
        for gold in golds:
            by_form.setdefault(normalised_answer(gold), []).append(gold.strip())

        folded = None
        for form, texts in by_form.items():
            alike = self._alike.setdefault(form, set())
            if alike and alike.isdisjoint(texts):
                folded = folded or FoldedGold(line, texts[0], *self._first[form])
            self._first.setdefault(form, (line, texts[0]))
            alike.update(texts)
        return folded
