"""Grades of the last batch, handed from one reward to another that would compute the same ones.

`external_cosine` and gated rewards ask another reward whether the answers are right. In training that one usually runs
beside them: the trainer builds all and calls them one after the other with the same completions and columns. While a
reward that builds on another exists, a `SharedBatch` keeps the last grades. Another object of the same class with the
same parameters takes them from there, once: a verdict that depends on the machine's load (a timeout) outlives no batch.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

from swift_rlvr.rewards.grade import Columns, Grade

_LOCK = threading.Lock()
_SHARED: WeakValueDictionary[tuple, SharedBatch] = WeakValueDictionary()  # by class and parameters


class SharedBatch:
    """The last batch that rewards of one class with the same parameters have graded. Made by `shared_batch`."""

    def __init__(self, *key: Any):
        self.key = key
        self.batch: tuple[list[str | None], bytes] | None = None
        self.grades: list[Grade] = []
        self.holders: set[int] = set()  # ids of the rewards that have these grades already

    def __reduce__(self) -> tuple:  # a copy or a pickle shares as well, and starts without a batch
        return shared_batch, self.key


def shared_batch(cls: type, parameters: Any) -> SharedBatch:
    """The one `SharedBatch` of all rewards of this class with these parameters, for as long as anyone keeps it."""
    with _LOCK:
        return _SHARED.setdefault((cls, parameters), SharedBatch(cls, parameters))


def shared_grades(reward: Any, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
    """`reward.grade_batch`, or the grades of an equal reward, where one of them asked for that with `shared_batch`."""
    shared = _SHARED.get((type(reward), reward.parameters))
    if shared is None:
        return reward.grade_batch(texts, columns)
    try:
        # A copy of the columns, since rows can be changed in place; and bytes, where 1, 1.0 and True differ.
        batch = list(texts), pickle.dumps(dict(columns))
    except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
        return reward.grade_batch(texts, columns)
    with _LOCK:
        if batch == shared.batch and id(reward) not in shared.holders:
            shared.holders.add(id(reward))
            return list(shared.grades)
    grades = reward.grade_batch(texts, columns)
    with _LOCK:
        shared.batch, shared.grades, shared.holders = batch, list(grades), {id(reward)}
    return grades
