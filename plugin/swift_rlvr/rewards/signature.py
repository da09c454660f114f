"""How a function wants to be called: read once from its signature, when it becomes a reward."""

import ast
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import CodeType
from typing import Any

BATCH, SINGLE = "completions", ("completion", "text")  # names of the parameter
# What a trainer hands over beside the row, one value per completion, by TRL's names and ms-swift's.
PROMPTS, TOKENS = ("prompts", "messages"), ("completion_ids", "response_token_ids")
OF_COMPLETIONS = (*PROMPTS, *TOKENS)
# And once for a batch. `log_extra`, `log_metric` and `environments` are TRL's, `trajectory_inputs` is ms-swift's.
OF_BATCH = ("trainer_state", "log_extra", "log_metric", "environments", "trajectory_inputs")

_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
# In an annotation: what says that a completion is a list of messages.
_MESSAGES = re.compile(r"\b(dict|Dict|Mapping|\w*Message\w*)\b")
_TEXTS = re.compile(r"\b(str|Text)\b")


@dataclass(frozen=True)
class Signature:
    """What a function takes.

    batch: the completions of a batch together, and it returns a list; else one completion.
    messages: a completion as a list of messages, and not as a text.
    first: the name by which it is handed the completions; None for the first parameter.
    needed, optional: the columns that it names; an optional one has a default.
    trainers: what it names that comes from the trainer.
    with_default: of these, those that have one.
    takes_all: it has `**kwargs`, and is handed every column.
    """

    batch: bool
    messages: bool
    first: str | None
    needed: tuple[str, ...]
    optional: tuple[str, ...]
    trainers: tuple[str, ...]
    with_default: tuple[str, ...]
    takes_all: bool

    def __str__(self) -> str:
        """For people who ask whether it was read as they meant it."""
        text = "one message list" if self.messages else "one text"
        if self.batch:
            text = "a batch of message lists" if self.messages else "a batch of texts"
        parts = [f"{text} at a time", *self.trainers]
        if self.takes_all:
            parts.append("all other columns")
        return ", ".join(parts)

    def takes(self, name: str) -> bool:
        """Whether the function can be handed something of this name."""
        named = name in self.needed or name in self.optional or name in self.trainers
        return named or self.takes_all


def read_signature(
    function: Callable[..., Any],
    name: str,
    batch: bool | None = None,
    messages: bool | None = None,
    columns: Sequence[str] | None = None,
) -> Signature:
    """Read how a function wants to be called.

    A parameter `completions` means a batch, a first parameter `completion` or `text` a single
    completion. The shape of a completion is what the annotation of that parameter says: `str` a
    text, `dict` messages. Without one it is messages where the code of the function, or of a
    function of the same module that it calls, looks up "content", else a text.

    Args:
        name: of the reward, for messages.
        batch, messages: what the function takes, where that is not to be read from it.
        columns: those that it needs, by default its parameters without a default.

    Raises:
        ValueError: it cannot be told, or the function does not take the columns.

    >>> read_signature(lambda completions, gold, **kwargs: [], "mine").batch
    True
    >>> read_signature(lambda completion, gold: 1.0, "mine").needed
    ('gold',)
    >>> read_signature(lambda answer: 1.0, "mine")
    Traceback (most recent call last):
    ...
    ValueError: mine: (answer) does not say what it takes: ...
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name}: its parameters cannot be read: {error}") from None
    parameters = dict(signature.parameters)
    # What a partial has bound is no column.
    for bound in getattr(function, "keywords", None) or {}:
        parameters.pop(bound, None)

    first = _parameter_of_completions(parameters)
    if batch is None:
        is_both = BATCH in parameters and "completion" in parameters
        if is_both or first not in (BATCH, *SINGLE):
            raise ValueError(
                f"{name}: {signature} does not say what it takes: name a parameter completions (a batch, "
                "which earns a list) or the first completion (one text), or set batch=True or False"
            )
        batch = first == BATCH

    if messages is None:
        messages = _reads_messages(function, first, parameters)
    takes = _signature_of(parameters, first, batch, messages)
    if columns is not None:
        optional = tuple(column for column in takes.optional if column not in columns)
        takes = replace(takes, needed=tuple(columns), optional=optional)

    # Said now, with the names, and not by Python in the first step of a training.
    arguments = dict.fromkeys([*takes.needed, *takes.optional, *takes.trainers])
    try:
        if takes.first is None:
            signature.bind("a completion", **arguments)
        else:
            signature.bind(**{takes.first: "a completion"}, **arguments)
    except TypeError as error:
        listed = ", ".join(takes.needed) or "(none)"
        problem = f"{signature} must take the completion and the columns {listed}: {error}"
        raise ValueError(f"{name}: {problem}") from None
    return takes


def _signature_of(
    parameters: Mapping[str, inspect.Parameter], first: str | None, batch: bool, messages: bool
) -> Signature:
    """What a function takes by its parameters, of which the first is handed the completions."""
    needed, optional, trainers, with_default = [], [], [], []
    for parameter in parameters.values():
        if parameter.name == first or parameter.kind not in _BY_NAME:
            continue
        has_default = parameter.default is not parameter.empty
        if parameter.name in (*OF_COMPLETIONS, *OF_BATCH):
            trainers.append(parameter.name)
            if has_default:
                with_default.append(parameter.name)
        elif has_default:
            optional.append(parameter.name)
        else:
            needed.append(parameter.name)
    by_name = first is not None and parameters[first].kind in _BY_NAME
    return Signature(
        batch=batch,
        messages=messages,
        first=first if by_name else None,
        needed=tuple(needed),
        optional=tuple(optional),
        trainers=tuple(trainers),
        with_default=tuple(with_default),
        takes_all=any(each.kind == each.VAR_KEYWORD for each in parameters.values()),
    )


def _parameter_of_completions(parameters: Mapping[str, inspect.Parameter]) -> str | None:
    """The parameter called so, or else the first one that may be handed over by its place."""
    for name in (BATCH, "completion"):
        if name in parameters:
            return name
    for parameter in parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            return parameter.name
    return None


def _reads_messages(
    function: Callable[..., Any],
    first: str | None,
    parameters: dict[str, inspect.Parameter],
) -> bool:
    if first is not None:
        annotation = parameters[first].annotation
        if annotation is not inspect.Parameter.empty:
            said = (
                annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
            )
            if _MESSAGES.search(said):
                return True
            if _TEXTS.search(said):
                return False
    return _looks_up_content(code_of(function), set())


def code_of(function: Any) -> Any:
    """The Python function behind a partial, a wrapper, a method or an object that can be called."""
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function):
        function = type(function).__call__
    return inspect.unwrap(getattr(function, "__func__", function))


def _looks_up_content(function: Any, seen: set[Any]) -> bool:
    """Whether a function, or one of its module that it names, has ["content"] or .get("content")."""
    if not inspect.isfunction(function) or function in seen:
        return False
    seen.add(function)
    # The source of a lambda is that of the line it stands in, and what exec has made has none.
    tree = None
    if function.__name__ != "<lambda>":
        with suppress(OSError, SyntaxError):
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    if tree is not None and any(map(_is_look_up, ast.walk(tree))):
        return True
    for each in _codes(function.__code__):
        if tree is None and "content" in each.co_consts:
            return True
        for name in each.co_names:
            called = function.__globals__.get(name)
            is_beside = getattr(called, "__module__", None) == function.__module__
            if is_beside and _looks_up_content(called, seen):
                return True
    return False


def _is_look_up(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        key: ast.AST | None = node.slice
    elif isinstance(node, ast.Call) and getattr(node.func, "attr", None) == "get":
        key = next(iter(node.args), None)
    else:
        return False
    return isinstance(key, ast.Constant) and key.value == "content"


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A function's code, and that of the functions within it."""
    yield code
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield from _codes(constant)
