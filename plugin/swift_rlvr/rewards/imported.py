"""Rewards of others by import path, beside ours: `--reward_funcs trl.rewards:accuracy_reward`.

The path is ``module:function`` or ``file.py:function``. It may name

- a function of a batch, as TRL, open-r1 and ms-swift have them: ``f(completions, **columns)``
  returns a list of numbers, None where it does not grade. It may be async, an object with
  `__call__`, or a class whose objects have one;
- a function of one completion, as `@reward` takes it: ``f(completion, **columns)``;
- a reward of this kind already: what `@reward` made, or a subclass of `Reward`.

The columns are the parameters that the function names; those with a default are optional. It is
handed texts, or messages ``[{"role": "assistant", "content": ...}]`` where it reads "content".
"""

import asyncio
import functools
import importlib
import importlib.util
import inspect
import math
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, ClassVar

from swift_rlvr.rewards.base import Columns, Explanation, Grade, Reward, Row, Rule
from swift_rlvr.rewards.function import (
    FULL_REWARD,
    NO_REWARD,
    NOT_GRADED,
    PARTIAL_REWARD,
    FunctionReward,
    reward_attributes,
)
from swift_rlvr.success import FULL, role_of
from swift_rlvr.utils.errors import InputError

FIELD = "--reward_funcs"
# What trainers hand over beside the row, by TRL's names. Others are not to be had here.
_FROM_TRAINER = ("prompts", "completion_ids", "messages")
_ONLY_TRL = ("trainer_state", "log_extra", "log_metric", "environments")


def is_import_path(name: str) -> bool:
    """Whether a name in `--reward_funcs` is an import path.

    >>> is_import_path("trl.rewards:accuracy_reward"), is_import_path("external_countdown")
    (True, False)
    """
    return ":" in name


def reward_names(argv: Sequence[str]) -> list[str]:
    """The names in the flag `--reward_funcs` of a command line.

    >>> reward_names(["rlhf.py", "--reward_funcs", "mine.py:short", "format", "--beta", "0"])
    ['mine.py:short', 'format']
    """
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--reward_funcs", "--reward-funcs", nargs="*", default=[])
    settings, _ = parser.parse_known_args(list(argv[1:]))
    return settings.reward_funcs


@functools.cache
def import_reward(path: str) -> type[Reward]:
    """Return the class of the reward at an import path; InputError where there is none.

    >>> import_reward("builtins:no_such_function")
    Traceback (most recent call last):
    ...
    swift_rlvr.utils.errors.InputError: --reward_funcs: builtins has no 'no_such_function'
    """
    module_name, _, name = path.rpartition(":")
    if not module_name or not name:
        raise InputError(f"must be module:function or file.py:function, got {path!r}", FIELD)
    module = _module(module_name)
    try:
        target = functools.reduce(getattr, name.split("."), module)
    except AttributeError:
        raise InputError(f"{module_name} has no {name!r}", FIELD) from None
    if isinstance(target, Reward):
        return type(target)
    if inspect.isclass(target):
        if issubclass(target, Reward):
            return target
        target = target()
    if not callable(target):
        raise InputError(f"{path} must be a function, got {target!r:.80}", FIELD)
    return _reward_class(path, name, target)


def _module(name: str) -> ModuleType:
    """The module, or that of the file, with a name; InputError where it cannot be imported."""
    if name.endswith(".py"):
        if not Path(name).is_file():
            raise InputError(f"there is no file {name}", FIELD)
        return _module_of_file(str(Path(name).resolve()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        problem = f"there is no module {error.name!r}; to name a file, write .py, as in {name}.py:f"
        raise InputError(problem, FIELD) from None


@functools.cache
def _module_of_file(path: str) -> ModuleType:
    name = f"rewards_of_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # for a name with .py there is a loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _reward_class(path: str, name: str, function: Callable[..., Any]) -> type[Reward]:
    """The class of a reward that calls a function, with the function's name, as TRL logs it."""
    parameters = list(inspect.signature(function).parameters)
    if "completions" in parameters:
        base: type[Reward] = ImportedReward
        attributes = _batch_attributes(path, function)
    elif parameters[:1] in (["completion"], ["text"]):
        base = ImportedFunctionReward
        attributes = reward_attributes(function, path)
    else:
        raise InputError(
            f"{path} must take completions, or completion as its first parameter", FIELD
        )
    name = name.rpartition(".")[2]
    attributes |= {
        "__doc__": inspect.getdoc(function),
        "name": path,
        "role": role_of(function) or role_of(name),
        "function": staticmethod(_waiting(function)),
        "full_reward": getattr(function, "full_reward", FULL),
    }
    return type(name, (base,), attributes)


def _batch_attributes(path: str, function: Callable[..., Any]) -> dict[str, Any]:
    needed, optional = [], []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        has_default = parameter.default is not parameter.empty
        if name in _ONLY_TRL:
            if not has_default:
                raise InputError(f"{path} needs {name}, which only TRL's trainer has", FIELD)
        elif has_default or name in _FROM_TRAINER:
            optional.append(name)
        elif name != "completions":
            needed.append(name)
    if "prompts" in optional:
        optional.append("messages")  # ms-swift's, with the completion at the end
    if "completion_ids" in optional:
        optional.append("response_token_ids")
    reads_messages = any("content" in code.co_consts for code in _codes(function))
    return {
        "columns": tuple(needed),
        "optional_columns": tuple(dict.fromkeys(optional)),
        "reasons": (FULL_REWARD, PARTIAL_REWARD, NO_REWARD, NOT_GRADED),
        "shapes": (as_messages, str) if reads_messages else (str, as_messages),
    }


def _codes(function: Callable[..., Any]) -> list[CodeType]:
    """The code of a function, and of those in it, such as comprehensions."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if not hasattr(function, "__code__"):
        function = type(function).__call__
    codes = [code for code in (getattr(function, "__code__", None),) if code is not None]
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return codes


def as_messages(text: str) -> list[dict[str, str]]:
    """A completion as TRL hands it over."""
    return [{"role": "assistant", "content": text}]


class ImportedReward(Reward):
    """A reward that calls a function of others with a batch; a completion without text is "".

    shapes: of a completion, as the function reads it, and the other one.
    """

    function: ClassVar[Callable[..., Any]]
    shapes: ClassVar[Sequence[Callable[[str], Any]]]

    def grade(self, text: str | None, row: Row) -> Explanation:
        (grade,) = self.grade_batch([text], {name: [value] for name, value in row.items()})
        passed = None if grade.reward is None else grade.reward > 0
        return Explanation(grade.reward, grade.reason, text, [Rule(grade.reason, passed)])

    def grade_batch(self, texts: Sequence[str | None], columns: Columns) -> list[Grade]:
        if not texts:
            return []
        values = self._call([text or "" for text in texts], self._arguments(columns))
        if hasattr(values, "tolist"):  # a tensor or an array
            values = values.tolist()
        if not isinstance(values, (list, tuple)) or len(values) != len(texts):
            problem = f"must return a list of {len(texts)} numbers, one per completion"
            raise ValueError(f"{self.name} {problem}; it returned {values!r:.80}")
        return [self._grade(value) for value in values]

    def _arguments(self, columns: Columns) -> dict[str, Any]:
        """The columns by the function's names; without optional ones that no row has."""
        named = inspect.signature(type(self).function).parameters
        given = dict(columns)
        if "prompts" in named and _is_empty(given.get("prompts")):
            given["prompts"] = [_without_completion(turns) for turns in given["messages"]]
        if "completion_ids" in named and _is_empty(given.get("completion_ids")):
            given["completion_ids"] = given["response_token_ids"]
        arguments = {}
        for name, values in given.items():
            has_default = name in named and named[name].default is not inspect.Parameter.empty
            if name in named and not (has_default and _is_empty(values)):
                arguments[name] = list(values)
        return arguments

    def _call(self, texts: list[str], arguments: dict[str, Any]) -> Any:
        """What the function returns for texts, or for messages where it cannot read texts."""
        cls = type(self)
        try:
            return cls.function(completions=[cls.shapes[0](text) for text in texts], **arguments)
        except (TypeError, KeyError, IndexError, AttributeError) as error:
            try:
                completions = [cls.shapes[1](text) for text in texts]
                values = cls.function(completions=completions, **arguments)
            except Exception:
                problem = f"{type(error).__name__}: {error}"
                note = f"{self.name} raised {problem}; its columns are the parameters that it names"
                raise ValueError(note) from error
        cls.shapes = cls.shapes[::-1]
        return values

    def _grade(self, value: Any) -> Grade:
        if value is None:
            return Grade(None, NOT_GRADED)
        reward = float(value)
        if math.isnan(reward):
            return Grade(None, NOT_GRADED)
        if reward >= self.full_reward:
            return Grade(reward, FULL_REWARD)
        return Grade(reward, PARTIAL_REWARD if reward > 0 else NO_REWARD)

    def __reduce__(self) -> Any:
        return _new, (self.name,), vars(self)


class ImportedFunctionReward(FunctionReward):
    """A function of one completion, at an import path; see `FunctionReward`."""

    def __reduce__(self) -> Any:
        return _new, (self.name,), vars(self)


def _new(path: str) -> Reward:
    return object.__new__(import_reward(path))


def _waiting(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which waits for its result where that is a coroutine."""

    @functools.wraps(function)
    def waiting(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if not inspect.iscoroutine(result):
            return result
        # In a thread of its own, since an event loop may be running in this one.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, result).result()

    return waiting


def _is_empty(values: Sequence[Any] | None) -> bool:
    return values is None or all(value is None for value in values)


def _without_completion(messages: Any) -> Any:
    if messages and messages[-1].get("role") == "assistant":
        return messages[:-1]
    return messages
