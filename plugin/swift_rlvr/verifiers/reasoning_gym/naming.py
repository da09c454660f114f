"""What the part of a dataset string after `reasoning_gym:` stands for.

    NAME[?SETTING=VALUE[&...]][+NAME[?...]]...[:SPLIT]

NAME is a task, a category or `all`. A SETTING is a field of the task's config, `level`, `seed` or
`refused`, see docs/rewards/reasoning_gym.md; several values have commas between them, and %2B and the like stand for
characters that mean something here.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints
from urllib.parse import unquote

from swift_rlvr.utils.errors import InputError, did_you_mean
from swift_rlvr.utils.settings import Text, as_type, no_setting
from swift_rlvr.verifiers.reasoning_gym import library

SPLITS = ("train", "test")


@dataclass(frozen=True)
class Part:
    """One task of a dataset string, with the fields of its config that differ from the defaults."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    seed: int = 0
    insisted: bool = False  # it is refused, and was asked for in spite of that


def parse(text: str) -> tuple[list[Part], str]:
    """The tasks and the split that a dataset string names; InputError for what is not known or not
    accepted.

    >>> parse("gcd?max_numbers=3&seed=7+lcm:test")[1]
    'test'
    """
    names, colon, split = text.partition(":")
    if colon and split not in SPLITS:
        raise InputError(
            f"reasoning_gym:{text}: expected one of the splits {', '.join(SPLITS)}, got {split!r}"
        )
    parts: list[Part] = []
    for name in names.split("+"):
        parts += _parts(name.strip())
    tasks = [part.name for part in parts]
    repeated = sorted({name for name in tasks if tasks.count(name) > 1})
    if repeated:
        raise InputError(f"reasoning_gym:{text}: {', '.join(repeated)} occurs twice")
    return parts, split or SPLITS[0]


def tasks_of(name: str) -> list[str]:
    """The tasks that a name stands for: a task, a category or `all`; InputError for any other."""
    known = library.datasets()
    if name in known:
        return [name]
    category_of = {}
    for task, (dataset, _) in known.items():
        category_of[task] = dataset.__module__.split(".")[1]  # its folder
    categories = sorted({*category_of.values()})
    if name == "all":
        return list(known)
    if name not in categories:
        nearest = did_you_mean(name, [*known, *categories, "all"]) or "none is near."
        raise InputError(
            f"reasoning_gym: there is no task {name!r}; {nearest} There are {', '.join(known)}; categories are "
            f"{', '.join(categories)}, and all"
        )
    return [task for task, category in category_of.items() if category == name]


def _parts(text: str) -> list[Part]:
    """The tasks that one of the names between + stands for, with their settings."""
    name, _, query = text.partition("?")
    tasks = tasks_of(name)
    several = tasks != [name]
    settings: dict[str, Text] = {}
    for pair in query.split("&") if query else ():
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InputError(f"reasoning_gym:{text}: expected SETTING=VALUE, got {pair!r}")
        if key in settings:
            raise InputError(f"reasoning_gym:{text}: a setting is given twice")
        settings[key] = Text(unquote(value))

    insists = as_type(settings.pop("refused", Text("no")), bool, "reasoning_gym: refused")
    seed = as_type(settings.pop("seed", Text("0")), int, "reasoning_gym: seed")
    parts = []
    for task in tasks:
        why = library.why_refused(task)
        if why is None or (insists and not library.is_missing(task)):
            config = _settings(task, settings, several)
            parts.append(Part(task, config, seed, insisted=why is not None))
        elif not several:  # a category is what can be used of it
            remedy = ""
            if not library.is_missing(task):
                remedy = f"; {name}?refused=yes uses it anyway"
            raise InputError(f"reasoning_gym:{task} is refused: {why}{remedy}")
    if not parts:
        raise InputError(f"reasoning_gym:{name}: all its tasks are refused")
    return parts


def _settings(name: str, texts: Mapping[str, Text], several: bool) -> dict[str, Any]:
    """Config fields from texts, checked by the task's config."""
    _, config = library.datasets()[name]
    defaults = {}
    for setting in fields(config):
        if setting.name in ("seed", "size"):  # which are ours to set
            continue
        if setting.default_factory is MISSING:
            defaults[setting.name] = setting.default
        else:
            defaults[setting.name] = setting.default_factory()
    hints = get_type_hints(config)

    values = _level(name, texts["level"], several) if "level" in texts else {}
    for key, text in texts.items():
        if key in defaults:
            values[key] = _value(f"reasoning_gym:{name}: {key}", text, hints[key], defaults[key])
        elif key != "level":
            raise InputError(no_setting(f"reasoning_gym:{name}", key, defaults))
    if values:
        library.create(name, values, seed=0, size=1)  # refuses what does not fit together
    return values


def _value(where: str, text: Text, hint: Any, default: Any) -> Any:
    """The value of a setting as its type: a boolean, a number, a text, or several of them."""
    if text.lower() == "none" and NoneType in get_args(hint):
        return None
    # Where the config does not say of what it is a list, the default does.
    if hint is list:
        hint = list[type(default[0])]  # type: ignore[misc]
    elif hint is tuple:
        hint = tuple[type(default[0]), ...]  # type: ignore[misc]
    # what it is, or what it has several of
    inner = next((part for part in get_args(hint) if part is not NoneType), hint)
    is_plain = isinstance(inner, type) and issubclass(inner, (int, float, str))
    if get_origin(inner) or not is_plain:
        raise InputError(
            f"{where} cannot be set here, its type is {getattr(hint, '__name__', hint)}"
        )
    return str(text) if hint is str else as_type(text, hint, where)


def _level(name: str, text: Text, several: bool) -> dict[str, Any]:
    """The config fields that a level of the curriculum stands for; the other fields keep the
    config's defaults.

    Of a category, a task without a curriculum keeps its defaults, and one whose levels end before
    this one is at its highest.
    """
    level = as_type(text, int, f"reasoning_gym:{name}: level")
    curricula = library.load().CURRICULA
    curriculum = curricula[name]() if name in curricula else None
    attributes = curriculum.attributes if curriculum else {}
    if not attributes and not several:
        raise InputError(f"reasoning_gym:{name} has no curriculum, and so no levels")
    highest = max((len(attribute.levels) for attribute in attributes.values()), default=0) - 1
    if level < 0 or (level > highest and not several):
        raise InputError(f"reasoning_gym:{name}: level must be from 0 to {highest}, got {level}")
    if curriculum is None:
        return {}

    for attribute_name, attribute in attributes.items():
        curriculum.set_attr_level(attribute_name, min(level, len(attribute.levels) - 1))
    config = vars(curriculum.generate_configuration())
    values = {}
    for attribute in attributes.values():
        for key in ("field_name", "lower_field_name", "upper_field_name"):
            field_name = vars(attribute).get(key)
            if field_name:
                values[field_name] = config[field_name]
    return values
