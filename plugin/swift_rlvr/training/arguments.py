"""The settings of a training that `swift-rlvr train` runs in its own process: TRL's.

    swift-rlvr train [CONFIG.yaml] [--name value ...]

The file has ms-swift's form, see `swift_rlvr.training.recipes`; flags override it. Both fill
dataclasses: this package's, and TRL's GRPOConfig, whose types are checked as ours are.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, fields
from enum import Enum
from pathlib import Path
from textwrap import fill
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.build import build_rewards
from swift_rlvr.rewards.parameters import flag_elsewhere
from swift_rlvr.runs.held_out import AlarmSettings
from swift_rlvr.training.recipes import read_flags, read_recipe
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import Settings, Text, as_list, as_type, no_setting, setting

TRAINERS = {"trl": "swift_rlvr.training.trl"}  # besides ms-swift, which launch/ starts
_PLAIN = (bool, int, float, str)


@dataclass(frozen=True, kw_only=True)
class DataArguments(Settings):
    """Which rows, and what is asked with them."""

    dataset: str = setting(
        help="NAME:FILE, FILE, NAME or NAME:SPLIT. NAME is a task; add #N for the first N rows."
    )
    system: str | None = setting(None, "System prompt for rows without one. Default: the task's.")
    use_hf: bool = setting(False, "Load a dataset NAME from Hugging Face instead of ModelScope.")
    columns: str | None = setting(
        None, 'Rename columns, as in ms-swift: {"Problem Statement": "problem"}.'
    )


@dataclass(frozen=True, kw_only=True)
class RunArguments(AlarmSettings, DataArguments):
    """What to train on what."""

    model: str = setting(help="Model folder, hub id, or smollm2.")
    reward_funcs: list[str] = setting(help="Names of rewards, with or without external_.")

    def as_json(self, system: str | None, rewards: Sequence[Reward]) -> dict[str, Any]:
        """What the run's args.json holds of this. system: the prompt that the rows really have."""
        parameters = {reward.name: asdict(reward.parameters) for reward in rewards}
        return {**asdict(self), "system": system, "reward_parameters": parameters}


@dataclass(frozen=True)
class Command:
    """A command line, taken apart.

    config: its file. keys: the settings in the file. settings: those and the flags.
    """

    trainer: str
    config: Path | None
    keys: tuple[str, ...]
    settings: Mapping[str, Any]

    def parse(self, classes: Iterable[type], **defaults: Any) -> list[Any]:
        """An instance of each dataclass; with `--help` their settings are printed instead.

        defaults: in place of those of the classes.

        Raises:
            InputError: an unknown setting, a missing one, or one of another type.
            SystemExit: after the help.
        """
        classes = list(classes)
        if "help" in self.settings:
            print(_help(self.trainer, classes, defaults))
            raise SystemExit(0)
        known = {field.name for cls in classes for field in fields(cls) if field.init}
        # An unknown setting is often a reward's parameter, which is a variable here and no flag.
        for name in self.settings:
            if name in known | {"trainer"}:
                continue
            parameters = [(reward.name, reward.Parameters) for reward in REWARDS.values()]
            hint = flag_elsewhere(name, parameters, variables=True)
            problem = no_setting(f"the trainer {self.trainer}", name, sorted(known), hint)
            message = f"{problem}; `swift-rlvr train --trainer {self.trainer} --help` lists all"
            raise InputError(f"{self.config}: {message}" if name in self.keys else message)
        return [self._instance(cls, defaults) for cls in classes]

    def _instance(self, cls: type, defaults: Mapping[str, Any]) -> Any:
        hints = get_type_hints(cls)
        values = {}
        for field in fields(cls):
            name = field.name
            if self.settings.get(name) is not None:
                values[name] = _converted(self.settings[name], hints[name], name)
            elif name in defaults:
                values[name] = defaults[name]
            elif _is_required(field):
                raise InputError(f"is required: {field.metadata['help']}", name)
        try:
            return cls(**values)
        except InputError:
            raise
        except (ValueError, TypeError) as error:
            raise InputError(f"{self.trainer} rejects these settings: {error}") from error


def read_command(words: Sequence[str]) -> Command:
    """Take a command line apart, and set the variables that its file has under ENV.

    Raises:
        InputError: a file that cannot be read, an unknown trainer, or an unknown reward.
    """
    config = Path(words[0]) if words and not words[0].startswith("-") else None
    file_settings: dict[str, Any] = {}
    flags = list(words)
    if config is not None:
        recipe = read_recipe(config)
        file_settings = recipe.settings
        for name, value in recipe.env.items():
            os.environ.setdefault(name, value)
        flags = flags[1:]
    flags = ["--help" if word == "-h" else word for word in flags]
    settings = {**file_settings, **read_flags(flags)}
    trainer = settings.get("trainer", "trl")
    where = f"{config}: trainer" if config else "--trainer"
    # Earlier releases had it as a trainer, and notes of others still name it so.
    if trainer == "scratch":
        script = "for GRPO from scratch run `python scripts/grpo_from_scratch.py`"
        raise InputError(f"{where}: {script}; trl is TRL's trainer")
    if trainer not in TRAINERS:
        raise InputError(f"{where}: must be trl, got {trainer!r}")
    build_rewards(as_list(settings.get("reward_funcs")))  # before TRL is imported
    return Command(trainer, config, tuple(file_settings), settings)


def _converted(value: Any, hint: Any, name: str) -> Any:
    """A value that YAML has read as one of the hint's type; InputError if it stands for none.

    What a hint such as `dict | str` accepts is left to the class.
    """
    kinds = [hint]
    if get_origin(hint) in (Union, UnionType):  # such as `int | None`
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    for kind in kinds:
        if isinstance(kind, type) and issubclass(kind, Enum):
            accepted = [member.value for member in kind]
            if value not in accepted:
                raise InputError(f"must be one of {', '.join(accepted)}, got {value!r}", name)
            return value
    if len(kinds) > 1:
        return value
    kind = kinds[0]
    if kind in _PLAIN:
        return as_type(_text(value), kind, name)
    if get_origin(kind) is list and get_args(kind)[0] in _PLAIN:
        # One text may hold several, with commas between them.
        if not isinstance(value, str):
            value = [_text(item) for item in as_list(value)]
        return as_type(value, kind, name)
    return value


def _text(value: Any) -> Any:
    """A number or truth value as the text that stands for it, so that `use_hf: 1` is true."""
    if isinstance(value, bool):
        return Text(str(value).lower())
    return Text(value) if isinstance(value, int | float | str) else value


def _is_required(field: Field) -> bool:
    return field.init and field.default is MISSING and field.default_factory is MISSING


def _help(trainer: str, classes: Sequence[type], defaults: Mapping[str, Any]) -> str:
    """All settings with their meanings and defaults."""
    lines = [f"Usage: swift-rlvr train --trainer {trainer} [CONFIG.yaml] [--name value ...]"]
    for cls in classes:
        lines.append(f"\n{cls.__name__}:")
        for field in fields(cls):
            if not field.init:
                continue
            meaning = " ".join(field.metadata.get("help", "").split())
            default = defaults.get(field.name, field.default)
            if _is_required(field):
                meaning += " (required)"
            elif default is not MISSING and default is not None:
                meaning += f" (default: {getattr(default, 'value', default)})"
            lines.append(f"  --{field.name}")
            if meaning:
                indent = " " * 8
                lines.append(fill(meaning, 100, initial_indent=indent, subsequent_indent=indent))
    return "\n".join(lines)
