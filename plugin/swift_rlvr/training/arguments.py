"""The command line of `swift-rlvr train`: a YAML file, flags that override it, and the dataclasses that they fill.

    swift-rlvr train [CONFIG.yaml] [--trainer scratch|trl] [--name value ...]

The file has ms-swift's form: each key is a setting's name, and the variables under ENV are set before anything is read,
unless they are set already. transformers' HfArgumentParser derives the flags from the trainers' own dataclasses.
"""

import os
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from swift_rlvr.errors import InputError
from swift_rlvr.recipes import as_flag, read_recipe
from swift_rlvr.rewards import Reward

TRAINERS = {"scratch": "swift_rlvr.training.scratch", "trl": "swift_rlvr.training.trl"}


def setting(help: str, default: Any = None, **options: Any) -> Any:
    return field(default=default, metadata={"help": help, **options})


@dataclass
class RunArguments:
    """What to train on what; the same for both trainers."""

    model: str = field(metadata={"help": "A folder with a model, or a hub id."})
    dataset: str = field(
        metadata={"help": "NAME:FILE, FILE, NAME or NAME:SPLIT, each with #N for the first N rows; NAME is a task."}
    )
    reward_funcs: list[str] = field(metadata={"help": "Names of rewards, with or without external_."})
    set: list[str] | None = setting(
        "NAME=VALUE or REWARD.NAME=VALUE, parameters of rewards; flags add to those of the file.", action="extend"
    )
    system: str | None = setting("System prompt for rows without one; by default the task's.")
    use_hf: bool = setting("Read a dataset's NAME from Hugging Face, not ModelScope.", False)
    stop_on_alarm: bool = setting("End the run when a warning is raised, see alarms.jsonl in its folder.", False)

    def as_json(self, system: str | None, rewards: Sequence[Reward]) -> dict[str, Any]:
        """What the run's args.json holds of this. system: the prompt that the rows really have."""
        parameters = {reward.name: asdict(reward.parameters) for reward in rewards}
        return {**asdict(self), "system": system, "reward_parameters": parameters}


class Trained(NamedTuple):
    """A run that has ended: the saved model, and what to ask it."""

    model: str
    dataset: str
    use_hf: bool
    max_completion_length: int


@dataclass(frozen=True)
class Command:
    """A command line, taken apart. config: the file; keys: its settings; argv: those and the flags, as flags."""

    trainer: str
    config: Path | None
    keys: tuple[str, ...]
    argv: tuple[str, ...]
    help: bool

    def parse(self, classes: Iterable[type], **defaults: Any) -> list[Any]:
        """An instance of each dataclass; `--help` prints their settings and exits. defaults: in place of theirs."""
        from transformers import HfArgumentParser

        prog = f"swift-rlvr train --trainer {self.trainer}"
        usage = "%(prog)s [CONFIG.yaml] [--name value ...]"
        parser = HfArgumentParser(classes, prog=prog, usage=usage, allow_abbrev=False)
        parser.set_defaults(**defaults)
        parser.error = _fail
        if self.help:
            parser.print_help()
            raise SystemExit(0)
        known = [action.dest for action in parser._actions]
        for key in self.keys:
            if key not in known:
                raise _unknown(f"{self.config}: there is no setting {key!r}", key, known, prog)
        _, rest = parser.parse_known_args(self.argv)
        if rest:
            name = rest[0].partition("=")[0]
            raise _unknown(f"{name}: there is no such setting", name, known, prog)
        try:
            return list(parser.parse_args_into_dataclasses(self.argv, look_for_args_file=False))
        except InputError:
            raise
        except (ValueError, TypeError) as error:
            raise InputError(f"{self.trainer} refuses these settings: {error}") from error


def read_command(words: Sequence[str]) -> Command:
    """Take a command line apart, read its file, and set the variables that the file has under ENV."""
    config = Path(words[0]) if words and not words[0].startswith("-") else None
    options: dict[str, Any] = {}
    if config is not None:
        recipe = read_recipe(config)
        options = recipe.settings
        for name, value in recipe.env.items():
            os.environ.setdefault(name, value)
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.error = _fail  # type: ignore[method-assign]
    parser.add_argument("--trainer", choices=TRAINERS)
    parser.add_argument("--help", "-h", action="store_true")
    own, flags = parser.parse_known_args(words if config is None else words[1:])
    default = options.pop("trainer", "scratch")
    trainer = str(own.trainer or default)
    if trainer not in TRAINERS:
        raise InputError(f"{config}: trainer must be one of {', '.join(TRAINERS)}, got {trainer!r}")
    flagged = {word[2:].partition("=")[0].replace("-", "_") for word in flags if word.startswith("--")} - {"set"}
    argv = [word for name, value in options.items() if name not in flagged for word in as_flag(name, value)]
    return Command(trainer, config, tuple(options), (*argv, *flags), own.help)


def _fail(message: str) -> NoReturn:
    raise InputError(message)


def _unknown(problem: str, name: str, known: list[str], prog: str) -> InputError:
    nearest = get_close_matches(name.lstrip("-").replace("-", "_"), known, 1)
    hint = f"; the nearest is {nearest[0]}" if nearest else ""
    return InputError(f"{problem}{hint}; `{prog} --help` lists all")
