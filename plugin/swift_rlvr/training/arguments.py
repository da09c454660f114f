"""The command line of `swift-rlvr train`: a YAML file, flags that override it, and the dataclasses
that they fill.

    swift-rlvr train [CONFIG.yaml] [--trainer scratch|trl] [--name value ...]

The file has ms-swift's form, see `swift_rlvr.training.recipes`. transformers' HfArgumentParser
derives the flags.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from swift_rlvr.rewards import Reward
from swift_rlvr.rewards.build import build_rewards
from swift_rlvr.runs.held_out import AlarmSettings
from swift_rlvr.training.recipes import as_flag, read_flags, read_recipe
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import Text, as_list, no_setting, setting

TRAINERS = {"scratch": "swift_rlvr.training.scratch", "trl": "swift_rlvr.training.trl"}


@dataclass(frozen=True, kw_only=True)
class RunArguments(AlarmSettings):
    """What to train on what; the same for both trainers."""

    model: str = setting(help="A folder with a model, a hub id, or smollm2.")
    dataset: str = setting(
        help="NAME:FILE, FILE, NAME or NAME:SPLIT, each with #N for the first N rows; NAME is a task."
    )
    reward_funcs: list[str] = setting(help="Names of rewards, with or without external_.")
    system: str | None = setting(None, "System prompt for rows without one; by default the task's.")
    use_hf: bool = setting(False, "Read a dataset's NAME from Hugging Face, not ModelScope.")

    def as_json(self, system: str | None, rewards: Sequence[Reward]) -> dict[str, Any]:
        """What the run's args.json holds of this. system: the prompt that the rows really have."""
        parameters = {reward.name: asdict(reward.parameters) for reward in rewards}
        return {**asdict(self), "system": system, "reward_parameters": parameters}


@dataclass(frozen=True)
class Command:
    """A command line, taken apart. config: the file; keys: its settings; argv: those and the flags,
    as flags.
    """

    trainer: str
    config: Path | None
    keys: tuple[str, ...]
    argv: tuple[str, ...]

    def parse(self, classes: Iterable[type], **defaults: Any) -> list[Any]:
        """An instance of each dataclass; `--help` prints their settings and exits. defaults: in
        place of theirs.
        """
        parser = _parser(classes, f"swift-rlvr train --trainer {self.trainer}")
        parser.add_argument("--trainer", choices=TRAINERS)
        parser.set_defaults(**defaults)
        known = [action.dest for action in parser._actions]
        for key in self.keys:
            if key not in known:
                raise InputError(f"{self.config}: {self._no_setting(key, known)}")
        for word in parser.parse_known_args(self.argv)[1]:
            raise InputError(
                self._no_setting(word.partition("=")[0].lstrip("-").replace("-", "_"), known)
            )
        try:
            return list(parser.parse_args_into_dataclasses(self.argv, look_for_args_file=False))[
                :-1
            ]  # not the trainer
        except InputError:
            raise
        except (ValueError, TypeError) as error:
            raise InputError(f"{self.trainer} refuses these settings: {error}") from error

    def _no_setting(self, name: str, known: list[str]) -> str:
        problem = no_setting(f"the trainer {self.trainer}", name, known)
        return f"{problem}; `swift-rlvr train --trainer {self.trainer} --help` lists all"


def read_command(words: Sequence[str]) -> Command:
    """Take a command line apart, read its file, and set the variables that the file has under
    ENV.
    """
    config = Path(words[0]) if words and not words[0].startswith("-") else None
    options: dict[str, Any] = {}
    if config is not None:
        recipe = read_recipe(config)
        options = recipe.settings
        for name, value in recipe.env.items():
            os.environ.setdefault(name, value)
    flags = words if config is None else words[1:]
    trainer = read_flags(flags).get("trainer") or options.get("trainer", "scratch")
    if trainer not in TRAINERS:
        raise InputError(
            f"{config or '--trainer'}: trainer must be one of {', '.join(TRAINERS)}, got {trainer!r}"
        )
    build_rewards(
        as_list({**options, **read_flags(flags)}.get("reward_funcs"))
    )  # before TRL is imported
    argv = [
        word for name, value in options.items() for word in as_flag(name, value)
    ]  # of a flag the last counts
    return Command(trainer, config, tuple(options), (*argv, *flags))


def _fail(message: str) -> NoReturn:
    raise InputError(message)


def _parser(classes: Iterable[type], prog: str) -> Any:
    """transformers' parser of flags for dataclasses, which leaves the texts for ours to
    `Settings`.
    """
    from transformers import HfArgumentParser

    class Parser(HfArgumentParser):
        def add_argument(self, *names: str, **options: Any) -> Any:
            accepts = options.pop("accepts", None)
            if accepts is not None and options.get("type") not in (None, str):
                options["type"] = Text
            if accepts is not None and accepts.choices:
                options["metavar"] = f"{{{','.join(accepts.choices)}}}"
            return super().add_argument(*names, **options)

    parser = Parser(
        classes, prog=prog, usage="%(prog)s [CONFIG.yaml] [--name value ...]", allow_abbrev=False
    )
    parser.error = _fail
    return parser
