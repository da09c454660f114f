"""What the part of a dataset string after `reasoning_gym:` stands for.

    NAME[?SETTING=VALUE[&...]][+NAME[?...]]...[:SPLIT]

NAME is a task, a category or `all`. A SETTING is a field of the task's config, `level`, `seed` or
`refused`, see README.md; several values have commas between them, and %2B and the like stand for
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
    if split not in SPLITS and colon:
        raise InputError(
            f"reasoning_gym:{text}: expected one of the splits {', '.join(SPLITS)}, got {split!r}"
        )
    parts = [part for each in names.split("+") for part in _parts(each.strip())]
    tasks = [part.name for part in parts]
    if twice := sorted({name for name in tasks if tasks.count(name) > 1}):
        raise InputError(f"reasoning_gym:{text}: {', '.join(twice)} occurs twice")
    return parts, split or SPLITS[0]


def tasks_of(name: str) -> list[str]:
    """The tasks that a name stands for: a task, a category or `all`; InputError for any other."""
    known = library.datasets()
    if name in known:
        return [name]
    category_of = {
        each: dataset.__module__.split(".")[1] for each, (dataset, _) in known.items()
    }  # its folder
    categories = sorted({*category_of.values()})
    if name not in (*categories, "all"):
        nearest = did_you_mean(name, [*known, *categories, "all"]) or "none is near."
        raise InputError(
            f"reasoning_gym: there is no task {name!r}; {nearest} There are {', '.join(known)}; categories are "
            f"{', '.join(categories)}, and all"
        )
    return [each for each, category in category_of.items() if name in (category, "all")]


def _parts(text: str) -> list[Part]:
    """The tasks that one of the names between + stands for, with their settings."""
    name, _, query = text.partition("?")
    names = tasks_of(name)
    several = names != [name]
    settings: dict[str, Text] = {}
    for pair in query.split("&") if query else []:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise InputError(f"reasoning_gym:{text}: expected SETTING=VALUE, got {pair!r}")
        if key in settings:
            raise InputError(f"reasoning_gym:{text}: a setting is given twice")
        settings[key] = Text(unquote(value))
    insists = as_type(settings.pop("refused", Text("no")), bool, "reasoning_gym: refused")
    seed = as_type(settings.pop("seed", Text("0")), int, "reasoning_gym: seed")
    parts = []
    for each in names:
        why = library.why_refused(each)
        if why is None or (insists and not library.is_missing(each)):
            parts.append(Part(each, _settings(each, settings, several), seed, why is not None))
        elif not several:  # a category is what can be used of it
            remedy = (
                "" if library.is_missing(each) else f"; {name}?refused=yes takes it all the same"
            )
            raise InputError(f"reasoning_gym:{each} is refused: {why}{remedy}")
    if not parts:
        raise InputError(f"reasoning_gym:{name}: all its tasks are refused")
    return parts


def _settings(name: str, texts: Mapping[str, Text], several: bool) -> dict[str, Any]:
    """Config fields from texts, checked by the task's config."""
    config = library.datasets()[name][1]
    known = {  # with their defaults; seed and size are ours to set
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(config)
        if each.name not in ("seed", "size")
    }
    hints = get_type_hints(config)
    values = _level(name, texts["level"], several) if "level" in texts else {}
    for key, text in texts.items():
        if key in known:
            values[key] = _value(f"reasoning_gym:{name}: {key}", text, hints[key], known[key])
        elif key != "level":
            raise InputError(no_setting(f"reasoning_gym:{name}", key, known))
    if values:
        library.create(name, values, seed=0, size=1)  # refuses what does not fit together
    return values


def _value(where: str, text: Text, hint: Any, default: Any) -> Any:
    """The value of a setting as its type: a boolean, a number, a text, or several of them."""
    if text.lower() == "none" and NoneType in get_args(hint):
        return None
    if hint in (list, tuple):
        hint = hint[type(default[0]), ...] if hint is tuple else hint[type(default[0])]
    inner = next((each for each in get_args(hint) if each is not NoneType), hint)
    if get_origin(inner) or not isinstance(inner, type) or not issubclass(inner, (int, float, str)):
        raise InputError(
            f"{where} cannot be set here, its type is {getattr(hint, '__name__', hint)}"
        )
    return str(text) if hint is str else as_type(text, hint, where)


def _level(name: str, text: Text, several: bool) -> dict[str, Any]:
    """The config fields that a level of the curriculum stands for; the other fields keep the
    config's defaults.
    """
    curricula, level = library.load().CURRICULA, as_type(text, int, f"reasoning_gym:{name}: level")
    curriculum = curricula[name]() if name in curricula else None
    attributes = curriculum.attributes if curriculum else {}
    highest = max((len(each.levels) for each in attributes.values()), default=0) - 1
    if not attributes and not several:
        raise InputError(f"reasoning_gym:{name} has no curriculum, and so no levels")
    if level < 0 or (level > highest and not several):
        raise InputError(f"reasoning_gym:{name}: level must be from 0 to {highest}, got {level}")
    if curriculum is None:
        return {}
    for each, attribute in attributes.items():
        curriculum.set_attr_level(each, min(level, len(attribute.levels) - 1))
    config = vars(curriculum.generate_configuration())
    keys = ("field_name", "lower_field_name", "upper_field_name")
    changed = [vars(attribute).get(key) for attribute in attributes.values() for key in keys]
    return {each: config[each] for each in changed if each}
