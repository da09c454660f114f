"""Measures how long each reward of a trainer takes, so that a slow one can be named, and notes what
plain functions give.

ms-swift and TRL call `trainer.reward_funcs` one after another, and log no time under ms-swift. Here
each entry is replaced with one that counts its seconds and is otherwise the same. One that does not
return, such as one that asks a server without a time limit, is named while it is waited for.
"""

import functools
import inspect
import logging
import math
import os
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from accelerate.utils import gather_object
from torch import nn

from swift_rlvr.runs.grade_log import GradeLog
from swift_rlvr.runs.log import GRADING, STILL_GRADING
from swift_rlvr.success import key_of, logged_name

# Seconds after which a reward that has not returned is named, and again after twice the time.
LONG = 60.0

_logger = logging.getLogger(__name__)


class GradingTime:
    """The seconds that each reward has taken since `clear`, by its key in records.

    grades: where the values of rewards go that do not report them themselves, as ours do.
    """

    def __init__(self, grades: GradeLog | None = None) -> None:
        self.grades = grades
        self.seconds: defaultdict[str, float] = defaultdict(float)
        # Seconds after which the next line about a reward is due.
        self._limits: defaultdict[str, float] = defaultdict(lambda: LONG)
        self._is_watching = False

    def clear(self) -> None:
        self.seconds.clear()

    def watch(self, trainer: Any) -> None:
        """Replace the trainer's rewards with timed ones; of a reward model ms-swift's plugin."""
        if self._is_watching:  # a trainer may train twice
            return
        self._is_watching = True
        # The list is the script's own: the rewards in it may go to another trainer next.
        trainer.reward_funcs = list(trainer.reward_funcs)
        plugins = getattr(trainer, "reward_model_plugins", None)
        for index, reward in enumerate(trainer.reward_funcs):
            if not isinstance(reward, nn.Module):
                trainer.reward_funcs[index] = _timed(reward, key_of(reward), self)
            elif plugins and plugins[index] is not None:
                plugins[index] = _timed(plugins[index], key_of(reward), self)

    @contextmanager
    def measured(self, key: str) -> Iterator[None]:
        """Count the seconds of the block as a reward's."""
        has_returned = threading.Event()
        threading.Thread(target=self._name_if_long, args=(key, has_returned), daemon=True).start()
        started = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[key] += time.perf_counter() - started
            has_returned.set()

    def note(
        self, reward: Any, args: Sequence[Any], columns: Mapping[str, Any], values: Any
    ) -> None:
        """Note what a call of a reward has given, with the trainer's arguments."""
        if self.grades is None or hasattr(reward, "log"):
            return
        # ms-swift's plugins of reward models get no completions, and what is no value for each of
        # them is for the trainer to refuse.
        completions = columns.get("completions", args[0] if args else ())
        if not hasattr(values, "__len__") or len(values) != len(completions):
            return
        grades: list[tuple[float | None, str | None]] = []
        for value in values:
            is_graded = value is not None and not math.isnan(value)
            grades.append((float(value) if is_graded else None, None))
        self.grades.add(reward, completions, columns, grades)

    def _name_if_long(self, key: str, has_returned: threading.Event) -> None:
        waited = 0.0
        while not has_returned.wait(self._limits[key] - waited):
            # For the whole run: one that always takes long fills no log.
            waited = self._limits[key]
            self._limits[key] *= 2
            where = (
                f"rank {os.environ['LOCAL_RANK']}" if "LOCAL_RANK" in os.environ else "the trainer"
            )
            remedy = "what it asks may need a time limit"
            _logger.warning(f"{where} {STILL_GRADING} {key} after {waited:g} s: {remedy}")

    def figures(self) -> dict[str, float]:
        """What is to be logged with a step: of each reward the time of the slowest rank, for which
        the others wait. All ranks have to call it.
        """
        slowest: dict[str, float] = {}
        for seconds in gather_object([dict(self.seconds)]):
            for key, value in seconds.items():
                slowest[key] = max(value, slowest.get(key, 0.0))
        return {f"{GRADING}{key}": value for key, value in slowest.items()}


def untimed(reward: Any) -> Any:
    """The reward itself, whose calls count for no step: that of a trainer that is watched, or any."""
    return getattr(reward, "untimed", reward)


def _timed(reward: Any, key: str, grading: GradingTime) -> Any:
    """The reward, whose calls are counted. A coroutine counts from its start to its result."""
    is_async = inspect.iscoroutinefunction(reward) or inspect.iscoroutinefunction(
        getattr(reward, "__call__", None)  # noqa: B004
    )
    if inspect.isfunction(reward):
        # A function for a function: TRL asks whether it is a coroutine's.
        timed = _timed_coroutine if is_async else _timed_call
        call = functools.wraps(reward)(timed(reward, key, grading))
        call.untimed = reward  # type: ignore[attr-defined]
        return call
    cls = _AsyncTimedReward if is_async else _TimedReward
    return cls(reward, key, grading)


def _timed_call(reward: Any, key: str, grading: GradingTime) -> Any:
    def call(*args: Any, **columns: Any) -> Any:
        with grading.measured(key):
            values = reward(*args, **columns)
        grading.note(reward, args, columns, values)
        return values

    return call


def _timed_coroutine(reward: Any, key: str, grading: GradingTime) -> Any:
    async def call(*args: Any, **columns: Any) -> Any:
        with grading.measured(key):
            values = await reward(*args, **columns)
        grading.note(reward, args, columns, values)
        return values

    return call


class _TimedReward:
    """Stands for a reward that is an object: its attributes, its name, and a timed call."""

    def __init__(self, reward: Any, key: str, grading: GradingTime):
        self.__name__ = logged_name(reward)
        self.untimed = reward
        self._call = _timed_call(reward, key, grading)

    @property  # type: ignore[misc]  # object's can be set too
    def __class__(self) -> Any:
        return type(self.untimed)  # for isinstance

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "untimed":
            raise AttributeError(name)
        return getattr(self.untimed, name)

    def __setattr__(self, name: str, value: Any) -> None:
        # A trainer that trains again gives its log to the reward, which may have another's by now.
        target = self if name in ("__name__", "untimed", "_call") else self.untimed
        object.__setattr__(target, name, value)

    def __call__(self, *args: Any, **columns: Any) -> Any:
        return self._call(*args, **columns)


class _AsyncTimedReward(_TimedReward):
    """The same for an object whose call is a coroutine."""

    def __init__(self, reward: Any, key: str, grading: GradingTime):
        super().__init__(reward, key, grading)
        self._call = _timed_coroutine(reward, key, grading)

    async def __call__(self, *args: Any, **columns: Any) -> Any:
        return await self._call(*args, **columns)
