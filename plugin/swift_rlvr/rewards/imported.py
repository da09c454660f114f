"""Rewards by import path, of others and of your own: `--reward_funcs trl.rewards:accuracy_reward`.

The path is ``module:function`` or ``file.py:function``. It may name

- a function of a batch, as TRL, open-r1 and ms-swift have them: ``f(completions, **columns)``
  returns a list of numbers, None if it does not grade. It may be async, an object with
  `__call__`, or a class whose objects have one;
- a function of one completion: ``f(completion, **columns)``;
- a reward of this kind already: what `@reward` made, or a subclass of `Reward`.

How a function is called is read from its signature, as for `@reward`. What that declares may be said
by attributes of the function: `role`, `full_reward`, `least`, `examples`, `batch` and `messages`.
"""

import functools
import importlib
import importlib.util
import inspect
import os
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from swift_rlvr.rewards.base import Reward
from swift_rlvr.rewards.function import OF_FILES, function_reward
from swift_rlvr.rewards.signature import read_signature
from swift_rlvr.success import FULL, role_of
from swift_rlvr.utils.errors import InputError, located

FIELD = "--reward_funcs"


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


# One class for a path: what is unpickled has the class of what was pickled.
@functools.cache
def import_reward(path: str) -> type[Reward]:
    """Return the class of the reward at an import path; InputError if there is none.

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
        try:
            target = target()
        except Exception as error:  # of somebody else's code; it may need arguments
            problem = f"{path} cannot be built without arguments ({error})"
            example = f"name an object of it, such as mine = {name}(...)"
            raise InputError(f"{problem}; {example}", FIELD) from error
    elif (
        inspect.isfunction(target)
        and next(iter(inspect.signature(target).parameters), "") == "self"
    ):
        raise InputError(f"{path} is a method of a class; name that of an object", FIELD)
    if not callable(target):
        raise InputError(f"{path} must be a function, got {target!r:.80}", FIELD)
    return _reward_class(path, name, target)


def paths_in_file(file: str) -> list[str]:
    """The import paths of the rewards that a file defines, in its order; InputError if there is
    none.

    A reward is what `@reward` made, or a subclass of `Reward` with a name.
    """
    module = _module(file)
    paths: dict[Any, str] = {}
    for name, item in vars(module).items():
        cls = type(item) if isinstance(item, Reward) else item
        if not inspect.isclass(cls) or not issubclass(cls, Reward):
            continue
        # What a file imports is another one's.
        if cls.__module__ == module.__name__ and hasattr(cls, "name"):
            paths.setdefault(cls, f"{file}:{name}")
    if not paths:
        possible = ", ".join(possible_paths(file)) or f"{file}:function"
        problem = f"{file} has no @reward; to name a function, write {possible}"
        raise InputError(problem, FIELD)
    return list(paths.values())


def possible_paths(file: str) -> list[str]:
    """The import paths of all in a file that can be a reward: what `@reward` made, and its functions
    of completions; InputError if the file cannot be imported.
    """
    module = _module(file)
    paths = []
    for name, item in vars(module).items():
        is_function = inspect.isfunction(item) and item.__module__ == module.__name__
        if name.startswith("_") or not (is_function or isinstance(item, Reward)):
            continue
        # A helper takes no completions.
        with suppress(InputError):
            import_reward(f"{file}:{name}")
            paths.append(f"{file}:{name}")
    return paths


def _module(name: str) -> ModuleType:
    """The module, or that of the file, with a name; InputError if it cannot be imported."""
    if name.endswith(".py"):
        if not Path(name).is_file():
            raise InputError(f"there is no file {name}", FIELD)
        return _module_of_file(os.path.realpath(name))
    # As `python` does; a command has another folder there.
    if not {"", str(Path.cwd())} & {*sys.path}:
        sys.path.append(str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise InputError(located(error), FIELD) from error
        problem = f"there is no module {error.name!r}; to name a file, write .py, as in {name}.py:f"
        raise InputError(problem, FIELD) from None
    except Exception as error:  # whatever somebody else's code raises
        raise InputError(located(error), FIELD) from error


@functools.cache
def _module_of_file(path: str) -> ModuleType:
    """The module of a file; InputError with the line where it cannot be imported.

    One that is imported already, as by --external_plugins, is not loaded again, since its rewards
    have taken their names.
    """
    for module in list(sys.modules.values()):
        file = getattr(module, "__dict__", {}).get("__file__")
        if file is not None and os.path.realpath(file) == path and module.__name__ != "__main__":
            return module
    name = f"{OF_FILES[0]}{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # for a name with .py there is a loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    # Modules beside the file, as for --external_plugins.
    folder = str(Path(path).parent)
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, (Exception, SystemExit)):
            raise
        raise InputError(located(error, path), FIELD) from error
    return module


def _reward_class(path: str, name: str, function: Callable[..., Any]) -> type[Reward]:
    """The class of a reward that calls a function, with the function's name, as TRL logs it."""
    name = name.rpartition(".")[2]
    try:
        signature = read_signature(
            function, path, batch=_said(function, "batch"), messages=_said(function, "messages")
        )
    except ValueError as error:
        raise InputError(str(error), FIELD) from None
    return function_reward(
        function,
        path,
        class_name=name,
        role=role_of(function) or role_of(name),
        signature=signature,
        examples=getattr(function, "examples", ()),
        full_reward=getattr(function, "full_reward", FULL),
        least=getattr(function, "least", 0.0),
    )


def _said(function: Callable[..., Any], attribute: str) -> bool | None:
    """What an attribute of the function says, where it is one of ours."""
    value = getattr(function, attribute, None)
    return value if isinstance(value, bool) else None
