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

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints
from urllib.parse import unquote

from swift_rlvr.errors import InputError
from swift_rlvr.reasoning_gym import library
from swift_rlvr.reasoning_gym.refused import REFUSED
from swift_rlvr.settings import Text, as_type, no_setting

SPLITS = ("train", "test")
_OWN = ("seed", "size")  # fields of a config that are ours to set


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


def tasks_of(name: str) -> list[str]:
    """The tasks that a name stands for: a task, a category or `all`; InputError for any other."""
    known = library.datasets()
    if name in known:
        return [name]
    categories = sorted({library.category(each) for each in known})
    if name not in (*categories, "all"):
        nearest = get_close_matches(name, [*known, *categories, "all"], n=1)
        hint = f"; did you mean {nearest[0]}?" if nearest else ""
        raise InputError(
            f"reasoning_gym: there is no task {name!r}{hint} `swift-rlvr reasoning-gym list` shows the tasks; "
            f"categories are {', '.join(categories)}, and all"
        )
    return [each for each in known if name in (library.category(each), "all")]


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
    insists = _as_type(settings.pop("refused", Text("no")), bool, "reasoning_gym: refused")
    seed = _as_type(settings.pop("seed", Text("0")), int, "reasoning_gym: seed")
    parts = []
    for each in names:
        why = why_refused(each)
        if why is None or (insists and each not in library.missing()):
            parts.append(Part(each, _settings(each, settings, several), seed, why is not None))
        elif not several:  # a category is what can be used of it
            remedy = "" if each in library.missing() else f"; {name}?refused=yes takes it all the same"
            raise InputError(f"reasoning_gym:{each} is refused: {why}{remedy}")
    if not parts:
        raise InputError(f"reasoning_gym:{name}: all its tasks are refused")
    return parts


def _settings(name: str, texts: Mapping[str, Text], several: bool) -> dict[str, Any]:
    """Config fields from texts, checked by the task's config."""
    known, hints = defaults(name), get_type_hints(library.datasets()[name][1])
    level_texts = {key: text for key, text in texts.items() if key.partition(".")[0] == "level"}
    values = _levels(name, level_texts, several)
    for key, text in texts.items():
        if key not in level_texts:
            if key not in known:
                raise InputError(no_setting(f"reasoning_gym:{name}", key, known))
            values[key] = _value(f"reasoning_gym:{name}: {key}", text, hints[key], known[key])
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
        raise InputError(f"{where} cannot be set here, its type is {getattr(hint, '__name__', hint)}")
    return str(text) if hint is str else _as_type(text, hint, where)


def _as_type(text: Text, hint: Any, where: str) -> Any:
    try:
        return as_type(text, hint, where)
    except InputError as error:
        raise InputError(str(error)) from None  # without a field, which a command would take for a flag of its own


def defaults(name: str) -> dict[str, Any]:
    """The settings of a task, each with its default."""
    return {
        each.name: each.default if each.default_factory is MISSING else each.default_factory()
        for each in fields(library.datasets()[name][1])
        if each.name not in _OWN
    }


def levels(name: str) -> dict[str, list[Any]]:
    """The attributes of a task's curriculum, each with the values of its levels; empty where there is no curriculum."""
    curricula = library.load().CURRICULA
    if name not in curricula:
        return {}
    return {each: list(attribute.levels) for each, attribute in curricula[name]().attributes.items()}


def _levels(name: str, texts: Mapping[str, Text], several: bool) -> dict[str, Any]:
    """The config fields that levels of the curriculum stand for; the other fields keep the config's defaults."""
    known = levels(name)
    if not texts or (several and not known):
        return {}
    if not known:
        raise InputError(f"reasoning_gym:{name} has no curriculum, and so no levels")
    curriculum = library.load().CURRICULA[name]()
    changed = []
    for key in sorted(texts):  # `level` comes before `level.ATTRIBUTE`, which overrides it
        attribute, level = key.partition(".")[2], _as_type(texts[key], int, f"reasoning_gym:{name}: {key}")
        if attribute and attribute not in known:
            raise InputError(f"reasoning_gym:{name}: there is no attribute {attribute!r}; it has {', '.join(known)}")
        chosen = [attribute] if attribute else list(known)
        highest = max(len(known[each]) for each in chosen) - 1
        if level < 0 or (level > highest and not several):
            raise InputError(f"reasoning_gym:{name}: {key} must be from 0 to {highest}, got {level}")
        for each in chosen:
            curriculum.set_attr_level(each, min(level, len(known[each]) - 1))
            definition = vars(curriculum.attributes[each])
            changed += [definition.get(key) for key in ("field_name", "lower_field_name", "upper_field_name")]
    config = vars(curriculum.generate_configuration())
    return {each: config[each] for each in changed if each}
