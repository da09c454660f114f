"""What the part of a dataset string after `reasoning_gym:` stands for.

    NAME[?SETTING=VALUE[&...]][+NAME[?...]]...[:SPLIT]

NAME is a task, a category or `all`; SPLIT is `train`, which is the default, or `test`. Row i of several tasks is of
task i modulo their number. A SETTING is one of

- a field of the task's config, such as `min_terms=3`; several values have commas between them; %2B and the like stand
  for characters that mean something here;
- `level=2`: all attributes of the task's curriculum at this level, from 0; a shorter list of levels ends at its last.
  `level.ATTRIBUTE=2` is one attribute;
- `seed=1`: other rows, by default 0;
- `refused=yes`: take tasks that are refused.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints
from urllib.parse import unquote

from swift_rlvr.errors import InputError
from swift_rlvr.reasoning_gym import library
from swift_rlvr.reasoning_gym.refused import REFUSED

SPLITS = ("train", "test")
_OWN = ("seed", "size")  # fields of a config that are ours to set
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class Part:
    """One task of a dataset string, with the fields of its config that differ from the defaults."""

    name: str
    settings: Mapping[str, Any] = field(default_factory=dict, hash=False)
    seed: int = 0
    insisted: bool = False  # it is refused, and was asked for in spite of that


def parse(text: str) -> tuple[list[Part], str]:
    """The tasks and the split that a dataset string names; InputError for what is not known or not accepted.

    >>> parse("gcd?max_numbers=3&seed=7+lcm:test")[1]
    'test'
    """
    names, colon, split = text.partition(":")
    if split not in SPLITS and colon:
        raise InputError(f"reasoning_gym:{text}: expected one of the splits {', '.join(SPLITS)}, got {split!r}")
    parts = [part for each in names.split("+") for part in _parts(each.strip())]
    twice = {part.name for part in parts if sum(part.name == other.name for other in parts) > 1}
    if twice:
        raise InputError(f"reasoning_gym:{text}: {', '.join(sorted(twice))} occurs twice")
    return parts, split or SPLITS[0]


def why_refused(name: str) -> str | None:
    """Why a task is refused, with the remedy, or None."""
    package = library.missing().get(name)
    if package is not None:
        return f"it needs {package}, which is not installed: pip install {package}"
    return REFUSED.get(name)


def _parts(text: str) -> list[Part]:
    name, _, query = text.partition("?")
    known = library.datasets()
    categories = sorted({library.category(each) for each in known})
    names = [each for each in known if name == "all" or library.category(each) == name]
    several = bool(names)
    if not several:
        if name not in known:
            near = difflib.get_close_matches(name, [*known, *categories, "all"], n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InputError(
                f"reasoning_gym: there is no task {name!r}{hint} `swift-rlvr reasoning-gym list` shows the tasks; "
                f"categories are {', '.join(categories)}, and all"
            )
        names = [name]
    pairs = [_pair(each, text) for each in query.split("&")] if query else []
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise InputError(f"reasoning_gym:{text}: a setting is given twice")
    settings = dict(pairs)
    insists = _boolean("refused", settings.pop("refused", "no"))
    seed = _integer("seed", settings.pop("seed", "0"))
    taken = []
    for each in names:
        why = why_refused(each)
        if why is not None and (not insists or each in library.missing()):
            if several:  # a category is what can be used of it
                continue
            remedy = "" if each in library.missing() else f"; {name}?refused=yes takes it all the same"
            raise InputError(f"reasoning_gym:{each} is refused: {why}{remedy}")
        taken.append(Part(each, _settings(each, settings, several), seed, why is not None))
    if not taken:
        raise InputError(f"reasoning_gym:{name}: all its tasks are refused")
    return taken


def _pair(text: str, whole: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InputError(f"reasoning_gym:{whole}: expected SETTING=VALUE, got {text!r}")
    return key, unquote(value)


def _settings(name: str, texts: Mapping[str, str], several: bool) -> dict[str, Any]:
    """Config fields from texts, checked by the task's config."""
    _, config = library.datasets()[name]
    known = {each.name: each for each in fields(config) if each.name not in _OWN}
    types = get_type_hints(config)
    own = {key: text for key, text in texts.items() if key.partition(".")[0] != "level"}
    values = _levels(name, {key: text for key, text in texts.items() if key not in own}, several)
    for key, text in own.items():
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {near[0]}? It has" if near else "it has"
            raise InputError(f"reasoning_gym:{name} has no setting {key!r}; {hint} {', '.join(known)}")
        values[key] = _value(f"reasoning_gym:{name}: {key}", text, types[key], _default(known[key]))
    if values:
        library.create(name, values, seed=0, size=1)  # refuses what does not fit together
    return values


def _default(known: Any) -> Any:
    return (
        known.default_factory() if known.default is MISSING and known.default_factory is not MISSING else known.default
    )


def _value(where: str, text: str, hint: Any, default: Any) -> Any:
    """The value of a setting as its type: a boolean, a number, a text, or several of them."""
    if get_origin(hint) in (Union, UnionType):
        options = [each for each in get_args(hint) if each is not type(None)]
        if text.lower() == "none" and len(options) < len(get_args(hint)):
            return None
        hint = options[0]
    plain = get_origin(hint) or hint
    if plain in (list, tuple):
        inner = [each for each in get_args(hint) if each is not ...] or [type(default[0]) if default else str]
        return plain(_value(where, each.strip(), inner[0], None) for each in text.split(","))
    if plain is bool:
        return _boolean(where, text)
    if plain is int:
        return _integer(where, text)
    if plain is float:
        if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?", text):
            raise InputError(f"{where} must be a number, got {text!r}")
        return float(text)
    if isinstance(plain, type) and issubclass(plain, str):
        return text
    raise InputError(f"{where} cannot be set here, its type is {getattr(hint, '__name__', hint)}")


def _boolean(where: str, text: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise InputError(f"{where} must be yes or no, got {text!r}")
    return _BOOLEANS[text.lower()]


def _integer(where: str, text: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise InputError(f"{where} must be a whole number, got {text!r}")
    return int(text)


def defaults(name: str) -> dict[str, Any]:
    """The settings of a task, each with its default."""
    return {each.name: _default(each) for each in fields(library.datasets()[name][1]) if each.name not in _OWN}


def levels(name: str) -> dict[str, list[Any]]:
    """The attributes of a task's curriculum, each with the values of its levels; empty where there is no curriculum."""
    curricula = library.load().CURRICULA
    if name not in curricula:
        return {}
    return {each: list(attribute.levels) for each, attribute in curricula[name]().attributes.items()}


def _levels(name: str, texts: Mapping[str, str], several: bool) -> dict[str, Any]:
    """The config fields that levels of the curriculum stand for; the other fields keep the config's defaults."""
    known = levels(name)
    if not texts or (several and not known):
        return {}
    if not known:
        raise InputError(f"reasoning_gym:{name} has no curriculum, and so no levels")
    curriculum = library.load().CURRICULA[name]()
    changed = []
    for key in sorted(texts):  # `level` comes before `level.ATTRIBUTE`, which overrides it
        attribute, level = key.partition(".")[2], _integer(f"reasoning_gym:{name}: {key}", texts[key])
        if attribute and attribute not in known:
            raise InputError(f"reasoning_gym:{name}: there is no attribute {attribute!r}; it has {', '.join(known)}")
        most = (len(known[attribute]) if attribute else max(map(len, known.values()))) - 1
        if level < 0 or (level > most and not several):
            raise InputError(f"reasoning_gym:{name}: {key} must be from 0 to {most}, got {level}")
        for each in [attribute] if attribute else known:
            curriculum.set_attr_level(each, min(level, len(known[each]) - 1))
            changed += _fields(curriculum.attributes[each])
    config = vars(curriculum.generate_configuration())
    return {each: config[each] for each in changed}


def _fields(attribute: Any) -> list[str]:
    names = ("field_name", "lower_field_name", "upper_field_name")
    return [value for value in (getattr(attribute, each, None) for each in names) if value]
