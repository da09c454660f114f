"""A reward that is written as a function: the decorator `reward`."""

import importlib
import inspect
import logging
import math
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, ClassVar

from swift_rlvr.rewards.base import REWARDS, Example, Explanation, Reward, Row, Rule
from swift_rlvr.success import FULL
from swift_rlvr.utils.errors import NotInstalledError

# The reasons of a function that gives none itself.
FULL_REWARD, PARTIAL_REWARD, NO_REWARD = "full reward", "partial reward", "no reward"
NOT_GRADED, NO_TEXT = "not graded", "no text"
# The reason where a function has raised. It is not declared, so `swift-rlvr check` reports it.
RAISED = "error"

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

logger = logging.getLogger(__name__)


class FunctionReward(Reward):
    """A reward whose `grade` calls a function with one completion's text and the row's columns.

    - A row without a value in a needed column is not graded (None). The function is not called.
    - A completion without text earns 0.0. The function is not called.
    - If the function raises, or returns something that is not a finite number, the completion
      earns 0.0, so that no policy gains by it. A warning names the first error.
    """

    function: ClassVar[Callable[..., Any]]
    warned: ClassVar[bool] = False

    def grade(self, text: str | None, row: Row) -> Explanation:
        for name in self.columns:
            if row[name] is None:
                rule = Rule("the row has its columns", False, f"there is nothing in {name!r}")
                return Explanation(None, NOT_GRADED, None, [rule])
        if text is None:
            return Explanation(0.0, NO_TEXT, None, [Rule("there is a text", False)])

        values = {name: row[name] for name in self.columns}
        for name in self.optional_columns:
            if row[name] is not None:  # else the function's default holds
                values[name] = row[name]
        try:
            reward, reason = self._read(type(self).function(text, **values))
        except (NotInstalledError, ImportError):  # the installation is at fault, not the policy
            raise
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            self._warn(problem)
            rule = Rule("the function raises nothing", False, problem[:200])
            return Explanation(0.0, RAISED, text, [rule])
        passed = None if reward is None else reward > 0
        return Explanation(reward, reason, text, [Rule(reason, passed)])

    def _read(self, result: Any) -> tuple[float | None, str]:
        """The reward and the reason in what the function has returned."""
        reason = None
        if isinstance(result, tuple):
            result, reason = result
        if result is None:
            return None, reason or NOT_GRADED
        reward = float(result)
        if not math.isfinite(reward):
            raise ValueError(f"the function returned {reward}")
        if reason is None:
            reason = PARTIAL_REWARD
            if reward >= self.full_reward:
                reason = FULL_REWARD
            elif reward <= 0:
                reason = NO_REWARD
        return reward, reason

    def _warn(self, problem: str) -> None:
        cls = type(self)
        if not cls.warned:
            cls.warned = True
            logger.warning("%s raised an error; the completion earns 0.0: %s", self.name, problem)

    def __reduce__(self) -> Any:
        """Pickle by the function's name, under which its module has the reward."""
        function = type(self).function
        return _find, (function.__module__, function.__qualname__), self.__getstate__()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "__wrapped__"}


def _find(module: str, name: str) -> FunctionReward:
    """A new object of the class of the reward that a module has under a name."""
    instance: FunctionReward = attrgetter(name)(importlib.import_module(module))
    return object.__new__(type(instance))


def reward(
    name: str,
    *,
    role: str,
    columns: Sequence[str] | None = None,
    reasons: Sequence[str] = (),
    examples: Sequence[tuple[str, Row, float | None]] = (),
    full_reward: float = FULL,
) -> Callable[[Callable[..., Any]], FunctionReward]:
    """Make a function a reward, and register it for ms-swift, TRL and every command here.

    The function takes the text of one completion and the row's columns by name. It returns the
    reward as a number, or None where the row cannot be graded, or either with a reason:
    ``return 0.0, "too long"``. Afterwards its name is the reward: call it with lists, as the
    trainers do, or ask `explain` about one completion. `function` is what you wrote.

    Args:
        name: as in `--reward_funcs`; it begins with ``external_``.
        role: what it judges, "verifier", "format" or "shaping".
        columns: the columns it needs, by default the function's parameters after the first.
            Parameters with a default are optional columns.
        reasons: the reasons that the function returns, for `swift-rlvr check`.
        examples: for `swift-rlvr check`, (completion, row, reward): the best, one that earns less
            and one that cannot be graded.
        full_reward: what it pays for a completion without fault.

    Raises:
        ValueError: the name is taken or cannot be used, or the function does not take the columns.

    >>> @reward("external_doc_word_count", role="verifier", columns=["count"])
    ... def doc_word_count(completion: str, count: int) -> float:
    ...     return float(len(completion.split()) == count)
    >>> doc_word_count(["one two", [{"role": "assistant", "content": "one"}], None], count=[2, 2, 2])
    [1.0, 0.0, 0.0]
    >>> doc_word_count.explain("one", {"count": 2}).reason
    'no reward'
    >>> del REWARDS[doc_word_count.name]
    """

    def decorate(function: Callable[..., Any]) -> FunctionReward:
        attributes = reward_attributes(function, name, columns, reasons) | {
            "__doc__": function.__doc__,
            "__module__": function.__module__,
            "function": staticmethod(function),
            "name": name,
            "role": role,
            "examples": tuple(Example(*example) for example in examples),
            "full_reward": full_reward,
        }
        cls = type(class_name(function.__name__), (FunctionReward,), attributes)
        _forget_earlier(name, function)
        REWARDS.add(cls)
        instance: FunctionReward = cls()
        # doctest finds the function's examples by it.
        instance.__wrapped__ = function  # type: ignore[attr-defined]
        return instance

    return decorate


def reward_attributes(
    function: Callable[..., Any],
    name: str,
    columns: Sequence[str] | None = None,
    reasons: Sequence[str] = (),
) -> dict[str, Any]:
    """The columns and reasons of a `FunctionReward` that calls a function; ValueError as in
    `reward`.
    """
    needed, optional = _columns_of(function, name, columns)
    declared = dict.fromkeys(
        (*reasons, FULL_REWARD, PARTIAL_REWARD, NO_REWARD, NOT_GRADED, NO_TEXT)
    )
    return {"columns": needed, "optional_columns": optional, "reasons": tuple(declared)}


def class_name(name: str) -> str:
    """The name of the class behind a function, under which trainers log it.

    >>> class_name("word_count")
    'WordCountReward'
    """
    return "".join(part.capitalize() for part in name.split("_")) + "Reward"


def _forget_earlier(name: str, function: Callable[..., Any]) -> None:
    """Let a function that is defined again, as in a notebook, take its own place."""
    earlier = REWARDS.present.get(name)
    if earlier is None or not issubclass(earlier, FunctionReward):
        return
    other = earlier.function
    if (other.__module__, other.__qualname__) == (function.__module__, function.__qualname__):
        del REWARDS.present[name]


def _columns_of(
    function: Callable[..., Any], name: str, columns: Sequence[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns that a function needs, and those that it can use."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    parameters = [parameter for parameter in parameters if parameter.kind in _BY_NAME]
    optional = [
        parameter.name for parameter in parameters if parameter.default is not parameter.empty
    ]
    needed = [parameter.name for parameter in parameters if parameter.default is parameter.empty]
    if columns is not None:
        needed = list(columns)
        optional = [column for column in optional if column not in needed]
    try:
        inspect.signature(function).bind("a completion", **dict.fromkeys([*needed, *optional]))
    except TypeError as error:
        raise ValueError(
            f"{name}: {function.__name__} must take the completion and the columns "
            f"{', '.join(needed) or '(none)'}: {error}"
        ) from None
    return tuple(needed), tuple(optional)
