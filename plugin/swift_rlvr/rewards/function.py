"""A reward that is written as a function: the decorator `reward`, and what calls the function."""

import asyncio
import functools
import inspect
import logging
import math
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, ClassVar, NamedTuple

from swift_rlvr.rewards.base import (
    REWARDS,
    Columns,
    Example,
    Explanation,
    Grade,
    Reward,
    Row,
    Rule,
    one_row,
    rows_at,
)
from swift_rlvr.rewards.signature import (
    BATCH,
    OF_BATCH,
    PROMPTS,
    TOKENS,
    Signature,
    code_of,
    read_signature,
)
from swift_rlvr.success import FULL, RAISED
from swift_rlvr.utils.errors import InputError, NotInstalledError, located, where_raised

# The reasons of a function that gives none itself.
FULL_REWARD, PARTIAL_REWARD, NO_REWARD = "full reward", "partial reward", "no reward"
NOT_GRADED, NO_TEXT = "not graded", "no text"
# Modules of files: ours that come by a path, and those of ms-swift's --external_plugins. Another
# process does not find them by these names.
OF_FILES = ("swift_rlvr_file_", "_swift_external_")
# A function that raises on so many of a training's first completions, in one process, cannot work. One that reads them
# with json.loads raises on most of what an untrained model writes, and is right to.
ENOUGH = 64

logger = logging.getLogger(__name__)


class _OfBatch(NamedTuple):
    """What is handed over once for a batch, where a column has one value per completion."""

    value: Any


class NoRewardError(ValueError):
    """What a function has returned is no reward, or no list of as many as there are completions."""


class FunctionReward(Reward):
    """A reward that asks a function: of a batch or of one completion, asynchronous or not.

    - A row without a value in a needed column is not graded (None). The function is not called.
    - A completion without text earns `least`. The function is not called.
    - It returns a number or None for a completion, either one with or without a reason. NaN counts
      as None, because a tensor cannot hold None.
    - If it raises, or returns something else, the completion earns `least`, so that no policy gains by
      it: 0.0, unless the function pays less and says so. A warning shows the first error.
    - If it has raised on every completion so far, InputError ends the run: in a training after
      ENOUGH completions, in a command after two.
    """

    function: ClassVar[Callable[..., Any]]
    signature: ClassVar[Signature]
    least: ClassVar[float] = 0.0
    warned: ClassVar[bool] = False
    warned_of_least: ClassVar[bool] = False

    def __init__(self, args: object = None, **parameters: Any):
        super().__init__(args, **parameters)
        # Whether it has graded a completion, and on how many it had raised before that, the first time how.
        self.has_graded = False
        self.failed = 0
        self.first_failure: Exception | None = None

    def takes(self, name: str) -> bool:
        return super().takes(name) or self.signature.takes(name)

    def grade(self, text: str | None, row: Row) -> Explanation:
        columns = one_row(row)
        refused = self._refused(text, columns, 0)
        if refused is not None:
            return refused
        (outcome,) = self._ask([text or ""], columns)
        self._warn([outcome])
        if isinstance(outcome, Exception):
            problem = f"{type(outcome).__name__}: {outcome}"
            rule = Rule("the function raises nothing", False, problem[:200])
            return Explanation(self.least, RAISED, text, [rule])
        passed = None if outcome.reward is None else outcome.reward > 0
        return Explanation(*outcome, text, [Rule(outcome.reason, passed)])

    def explain(self, completion: object, row: Row) -> Explanation:
        whole = dict(row)
        for name in OF_BATCH:
            if name in row:
                whole[name] = _OfBatch(row[name])
        return super().explain(completion, whole)

    def grade_batch(self, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
        refused = []
        asked = []
        for index, text in enumerate(texts):
            refused.append(self._refused(text, columns, index))
            if refused[index] is None:
                asked.append(index)
        outcomes = self._ask([texts[index] or "" for index in asked], rows_at(columns, asked))
        failures: list[Exception] = []
        paid: list[float] = []
        for outcome in outcomes:
            if isinstance(outcome, Exception):
                failures.append(outcome)
            elif outcome.reward is not None:
                paid.append(outcome.reward)
        # One that raises on some completions is careless; one that raises on all of them cannot work.
        if len(failures) < len(outcomes):
            self.has_graded = True
        if self.has_graded:
            self.first_failure = None  # its traceback keeps a batch in memory
        elif failures:
            self.failed += len(failures)
            self.first_failure = self.first_failure or failures[0]
        self.end_if_it_only_fails(ENOUGH if self.is_training else 2)
        self._warn(outcomes)
        # A policy that is paid -1 for a wrong answer learns to write what the function cannot read.
        cls = type(self)
        lowest = min(paid, default=self.least)
        if cls.warned and lowest < self.least and not cls.warned_of_least:
            cls.warned_of_least = True
            text = "%s pays %g, less than the %g that a completion earns on which it raises: declare least"
            logger.warning(text, self.name, lowest, self.least)

        answers = iter(outcomes)
        grades = []
        for explanation in refused:
            if explanation is not None:
                grades.append(Grade(explanation.reward, explanation.reason))
                continue
            outcome = next(answers)
            # Not None: a policy could opt out of a row by what the function cannot read.
            if isinstance(outcome, Exception):
                outcome = Grade(self.least, RAISED)
            grades.append(outcome)
        return grades

    def _refused(self, text: str | None, columns: Columns, index: int) -> Explanation | None:
        """The grade of a completion about which the function is not asked; None if it is."""
        for name in self.columns:
            if columns[name][index] is None:
                rule = Rule("the row has its columns", False, f"there is nothing in {name!r}")
                return Explanation(None, NOT_GRADED, None, [rule])
        if text is None:
            return Explanation(self.least, NO_TEXT, None, [Rule("there is a text", False)])
        return None

    def _used_columns(self, completions: Sequence, columns: Row) -> dict[str, Sequence[Any]]:
        """What the function takes, and the completions as they were handed over; ValueError if it needs
        something of the trainer's that was not.
        """
        used = super()._used_columns(completions, columns)
        used[BATCH] = completions
        takes = self.signature
        for name, values in columns.items():
            if name in used or name == BATCH or not takes.takes(name):
                continue
            # Trainers hand over more than columns, such as `trainer_state`. It is wrapped, so that the rows
            # of other tasks can be taken out of all alike; `explain` has done that already.
            is_column = isinstance(values, Sequence) and len(values) == len(completions) > 0
            is_wrapped = is_column and isinstance(values[0], _OfBatch)
            is_of_batch = name in OF_BATCH or isinstance(values, str) or not is_column
            if is_of_batch and not is_wrapped:
                values = [_OfBatch(values)] * len(completions)
            used[name] = values

        # What TRL calls `prompts` and `completion_ids` ms-swift calls otherwise: a function that names
        # TRL's gets them from both.
        for name in takes.trainers if completions else ():
            if not _is_empty(used.get(name)):
                continue
            if name == PROMPTS[0] and not _is_empty(columns.get(PROMPTS[1])):
                prompts = []
                for turns in columns[PROMPTS[1]]:
                    is_answered = bool(turns) and turns[-1].get("role") == "assistant"
                    prompts.append(turns[:-1] if is_answered else turns)
                used[name] = prompts
            elif name == TOKENS[0] and not _is_empty(columns.get(TOKENS[1])):
                used[name] = columns[TOKENS[1]]
            elif name not in takes.with_default:
                problem = f"needs {name!r}, which does not come with these rows; give it a default"
                raise ValueError(f"{type(self).__name__} {problem}")
        return used

    def _ask(self, texts: Sequence[str], columns: Columns) -> list[Grade | Exception]:
        """For each text its grade, or the error that the function raised."""
        if not texts:
            return []
        columns = {BATCH: texts, **columns}  # without them where another reward asks this one
        ask = self._ask_batch if self.signature.batch else self._ask_each
        outcomes = ask(texts, columns)
        for outcome in outcomes:
            # The installation is at fault, not the policy.
            if isinstance(outcome, NotInstalledError):
                raise outcome
            if isinstance(outcome, ImportError):
                where = located(outcome, _file(type(self)))
                raise InputError(f"{self.name}: {where}") from outcome
        return outcomes

    def _ask_each(self, texts: Sequence[str], columns: Columns) -> list[Grade | Exception]:
        """Ask a function of one completion; coroutines run at the same time."""
        results: list[Any] = []
        for index, text in enumerate(texts):
            arguments = {}
            for name, values in self._arguments(columns).items():
                value = values[index]
                if value is not None or name not in self.optional_columns:
                    arguments[name] = value.value if isinstance(value, _OfBatch) else value
            try:
                completion = self._completion(text, columns[BATCH][index])
                results.append(self._call(completion, arguments))
            except Exception as error:
                results.append(error)
        # All of them together, once every call is made: a judge on a server is asked for a whole batch at once.
        waiting = {}
        for index, result in enumerate(results):
            if inspect.isawaitable(result):
                waiting[index] = result
        for index, result in zip(waiting, _wait(list(waiting.values())), strict=True):
            results[index] = result
        return list(map(self._read, results))

    def _ask_batch(self, texts: Sequence[str], columns: Columns) -> list[Grade | Exception]:
        """Ask a function of a batch.

        Where it raises, each completion is tried alone, and those on which it raises are left out of
        the batch. Nothing else is made of what it returns then: a function may compare completions.
        """
        try:
            return self._ask_together(texts, columns)
        except Exception as error:
            problem = error
        # A server that does not answer would be asked again for each of them.
        if len(texts) == 1 or isinstance(problem, (OSError, ImportError, NotInstalledError)):
            return [problem] * len(texts)

        outcomes: list[Grade | Exception] = []
        rest = []
        for index, text in enumerate(texts):
            (outcome,) = self._ask_batch([text], rows_at(columns, [index]))
            outcomes.append(outcome)
            if not isinstance(outcome, Exception):
                rest.append(index)
        if not rest:
            return outcomes
        try:
            without_them = [texts[index] for index in rest]
            together = self._ask_together(without_them, rows_at(columns, rest))
        except Exception as error:
            return [error] * len(texts)
        for index, outcome in zip(rest, together, strict=True):
            outcomes[index] = outcome
        return outcomes

    def _ask_together(self, texts: Sequence[str], columns: Columns) -> list[Grade | Exception]:
        arguments = {}
        for name, values in self._arguments(columns).items():
            if isinstance(values[0], _OfBatch):
                arguments[name] = values[0].value
            elif not (name in self.optional_columns and _is_empty(values)):
                arguments[name] = list(values)
        completions = list(map(self._completion, texts, columns[BATCH]))
        values = self._call(completions, arguments)
        if inspect.isawaitable(values):
            (values,) = _wait([values])
            if isinstance(values, Exception):
                raise values
        # An array, a tensor, also one of shape (n, 1), a deque and a generator are lists of numbers, too.
        # A mapping and a set do not have the order of the completions, and a tensor's mean is one number.
        is_unordered = isinstance(values, (str, bytes, Mapping, Set))
        is_scalar = getattr(values, "ndim", None) == 0
        if isinstance(values, Iterable) and not is_unordered and not is_scalar:
            try:
                values = list(values)
            except SystemExit as error:
                raise _ended(error) from error
        if not isinstance(values, list) or len(values) != len(texts):
            problem = f"must return a list of {len(texts)} numbers, one per completion"
            raise NoRewardError(f"{self.name} {problem}; it returned {values!r:.80}")
        return list(map(self._read, values))

    def _arguments(self, columns: Columns) -> Columns:
        """The columns that the function is handed, without absent ones for which it has a default."""
        takes = self.signature
        arguments = {}
        for name, values in columns.items():
            if name == BATCH or not takes.takes(name):
                continue
            if not (name in takes.with_default and _is_empty(values)):
                arguments[name] = values
        return arguments

    def _completion(self, text: str, handed: Any) -> Any:
        """A completion in the shape that the function takes."""
        if not self.signature.messages:
            return text
        is_messages = isinstance(handed, (list, tuple)) and all(
            isinstance(turn, Mapping) and isinstance(turn.get("content"), str) for turn in handed
        )
        return handed if is_messages else as_messages(text)

    def _call(self, completions: Any, arguments: Mapping[str, Any]) -> Any:
        function, first = type(self).function, self.signature.first
        try:
            if first is None:
                return function(completions, **arguments)
            return function(**{first: completions}, **arguments)
        except SystemExit as error:  # of argparse, for one, which a completion can bring about
            raise _ended(error) from error

    def _read(self, result: Any) -> Grade | Exception:
        """The grade in what the function has returned for a completion, or what is wrong with it."""
        if isinstance(result, Exception):
            return result
        try:
            reason = None
            if isinstance(result, tuple):
                result, reason = result
            # float() would take the text of a number, and says of a list only that it is none.
            if isinstance(result, (str, bytes, list, Mapping)):
                raise NoRewardError(f"the function returned {result!r:.80} in place of a number")
            # Reasons are counted and logged by their text.
            if reason is not None and not isinstance(reason, str):
                problem = "it takes a number, or a number and a text as its reason"
                raise NoRewardError(f"the function returned {(result, reason)!r:.80}: {problem}")
            reward = math.nan if result is None else float(result)
        except Exception as error:  # of somebody else's object, too
            return error
        if math.isnan(reward):
            return Grade(None, reason or NOT_GRADED)
        if math.isinf(reward):
            return NoRewardError(f"the function returned {reward}")
        if reason is None:
            reason = PARTIAL_REWARD
            if reward >= self.full_reward:
                reason = FULL_REWARD
            elif reward <= 0:
                reason = NO_REWARD
        return Grade(reward, reason)

    def end_if_it_only_fails(self, enough: int = 2) -> None:
        """InputError if it has raised on so many completions, and nothing was graded so far. One alone
        may be a strange one.
        """
        error = self.first_failure
        if error is None or self.failed < enough:
            return
        shape = "messages" if self.signature.messages else "texts"
        where = where_raised(error, _file(type(self)))
        problem = f"raised on every completion so far: {type(error).__name__}: {error}"
        raise InputError(
            f"{self.name} {problem} ({where}; it is handed {shape}; `messages` says otherwise)"
        ) from error

    def _warn(self, outcomes: Sequence[Grade | Exception]) -> None:
        """Log the first error of all, once."""
        cls = type(self)
        error = next((each for each in outcomes if isinstance(each, Exception)), None)
        if error is not None and not cls.warned:
            cls.warned = True
            problem = f"{type(error).__name__}: {error}"
            text = "%s raised an error; the completion earns %s: %s"
            logger.warning(text, self.name, self.least, problem, exc_info=error)

    def __reduce__(self) -> Any:
        """Pickle by the class, which is found where its function stands: `word_count.__class__`.

        cloudpickle, and so Ray, takes along a class of `__main__`, which no other process has. What
        came by an import path or from a file is found by its path.
        """
        cls = type(self)
        if ":" in cls.name:
            return _of_path, (cls.name,), self.__getstate__()
        if cls.__module__.startswith(OF_FILES):
            file = sys.modules[cls.__module__].__file__
            path = f"{file}:{cls.__qualname__.removesuffix('.__class__')}"
            return _of_path, (path,), self.__getstate__()
        return object.__new__, (cls,), self.__getstate__()

    def __getstate__(self) -> dict[str, Any]:
        state = {**vars(self), "first_failure": None}  # somebody's exception may not pickle
        state.pop("__wrapped__", None)
        return state


def _of_path(path: str) -> Reward:
    from swift_rlvr.rewards.imported import import_reward

    return object.__new__(import_reward(path))


def as_messages(text: str) -> list[dict[str, str]]:
    """A completion as TRL passes it to a reward."""
    return [{"role": "assistant", "content": text}]


def _is_empty(values: Sequence[Any] | None) -> bool:
    return values is None or all(value is None for value in values)


def _ended(error: BaseException) -> RuntimeError:
    """The error for a function that tried to end the program."""
    ended = RuntimeError(f"the function ends the program: {type(error).__name__}: {error}")
    return ended.with_traceback(error.__traceback__)


@functools.cache
def _event_loop(process: int) -> asyncio.AbstractEventLoop:
    """The one in which a process waits for its rewards: what a function keeps from one batch to the
    next, such as a session or a semaphore, belongs to one.
    """
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="rewards", daemon=True).start()
    return loop


def _wait(awaitables: Sequence[Any]) -> list[Any]:
    """What each of them returns, or the exception that it raises."""
    if not awaitables:
        return []

    async def guarded(awaitable: Any) -> Any:
        try:
            return await awaitable
        except (SystemExit, KeyboardInterrupt) as error:
            # It would end the loop's thread, and what waits for the loop would wait forever.
            raise _ended(error) from error

    async def gather() -> list[Any]:
        return await asyncio.gather(*map(guarded, awaitables), return_exceptions=True)

    return asyncio.run_coroutine_threadsafe(gather(), _event_loop(os.getpid())).result()


def reward(
    name: str,
    *,
    role: str,
    columns: Sequence[str] | None = None,
    reasons: Sequence[str] = (),
    examples: Sequence[tuple[str, Row, float | None]] = (),
    full_reward: float = FULL,
    least: float = 0.0,
    batch: bool | None = None,
    messages: bool | None = None,
) -> Callable[[Callable[..., Any]], FunctionReward]:
    """Make a function a reward, and register it for ms-swift, TRL and every command here.

    The function takes one completion and the row's columns by name, and returns the reward as a
    number, or None if the row cannot be graded, or either with a reason: ``return 0.0, "too
    long"``. Or it takes all `completions` of a batch and the columns as lists, and returns a list.
    It may be asynchronous, and have ``**kwargs`` for all other columns. Afterwards its name is the
    reward: call it with lists, as the trainers do, or ask `explain` about one completion.
    `function` is what you wrote.

    Args:
        name: as in `--reward_funcs`; it begins with ``external_``.
        role: what it judges, "verifier", "format" or "shaping".
        columns: the columns it needs, by default the function's parameters beside the completion.
            Parameters with a default are optional columns.
        reasons: the reasons that the function returns, for `swift-rlvr check`.
        examples: for `swift-rlvr check`, (completion, row, reward): the best, one that earns less
            and one that cannot be graded.
        full_reward: what it pays for a completion without fault.
        least: what it pays at least, such as -1.0: a completion earns it on which the function raises.
        batch, messages: whether it takes a batch, and completions as messages, where its signature
            does not say so, see `swift_rlvr.rewards.signature.read_signature`.

    Raises:
        ValueError: the name is taken or cannot be used, the function does not take the columns, or
            it cannot be told whether it takes a batch.

    >>> @reward("external_doc_word_count", role="verifier", columns=["count"])
    ... def doc_word_count(completion: str, count: int) -> float:
    ...     return float(len(completion.split()) == count)
    >>> doc_word_count(["one two", [{"role": "assistant", "content": "one"}], None], count=[2, 2, 2])
    [1.0, 0.0, 0.0]
    >>> doc_word_count.explain("one", {"count": 2}).reason
    'no reward'
    >>> @reward("external_doc_longest", role="shaping")
    ... async def doc_longest(completions: list[str], **kwargs) -> list[float]:
    ...     longest = max(map(len, completions))
    ...     return [float(len(completion) == longest) for completion in completions]
    >>> doc_longest(["one", "three"])
    [0.0, 1.0]
    >>> del REWARDS[doc_word_count.name], REWARDS[doc_longest.name]
    """

    def decorate(written: Callable[..., Any]) -> FunctionReward:
        function: Any = written() if inspect.isclass(written) else written
        code = code_of(function)
        # A partial or an object has no name of its own, and all lambdas have the same.
        own_name = getattr(function, "__name__", "<lambda>")
        if own_name == "<lambda>":
            own_name = name.removeprefix("external_")
        cls = function_reward(
            function,
            name,
            class_name(own_name),
            role=role,
            signature=read_signature(function, name, batch, messages, columns),
            reasons=reasons,
            examples=examples,
            full_reward=full_reward,
            least=least,
        )
        cls.__module__ = code.__module__
        cls.__qualname__ = f"{getattr(function, '__qualname__', own_name)}.__class__"
        _forget_earlier(name, cls)
        REWARDS.add(cls)
        instance: FunctionReward = cls()
        # doctest finds the function's examples by it.
        instance.__wrapped__ = written  # type: ignore[attr-defined]
        return instance

    return decorate


def function_reward(
    function: Callable[..., Any],
    name: str,
    class_name: str,
    *,
    role: str | None,
    signature: Signature,
    reasons: Sequence[str] = (),
    examples: Sequence[tuple[str, Row, float | None]] = (),
    full_reward: float = FULL,
    least: float = 0.0,
) -> type[FunctionReward]:
    """The class of a reward that asks a function.

    class_name: under which trainers log it.
    """
    declared = (*reasons, FULL_REWARD, PARTIAL_REWARD, NO_REWARD, NOT_GRADED, NO_TEXT)
    attributes = {
        "__doc__": inspect.getdoc(function) or "",
        "function": staticmethod(function),
        "signature": signature,
        "name": name,
        "role": role,
        "columns": signature.needed,
        "optional_columns": signature.optional,
        "reasons": tuple(dict.fromkeys(declared)),
        "examples": tuple(Example(*example) for example in examples),
        "full_reward": full_reward,
        "least": float(least),
    }
    return type(class_name, (FunctionReward,), attributes)


def class_name(name: str) -> str:
    """The name of the class behind a function, under which trainers log it.

    >>> class_name("word_count")
    'WordCountReward'
    """
    return "".join(part.capitalize() for part in name.split("_")) + "Reward"


def _forget_earlier(name: str, cls: type[FunctionReward]) -> None:
    """Let a function that is defined again, in a notebook or because its file is imported under
    another name, take its own place.
    """
    earlier = REWARDS.present.get(name)
    if earlier is None or not issubclass(earlier, FunctionReward):
        return
    is_same_name = earlier.__qualname__ == cls.__qualname__
    if is_same_name and (earlier.__module__ == cls.__module__ or _file(earlier) == _file(cls)):
        del REWARDS.present[name]


def _file(cls: type[FunctionReward]) -> str:
    code = getattr(code_of(cls.function), "__code__", None)
    return code.co_filename if code is not None else repr(cls.function)
