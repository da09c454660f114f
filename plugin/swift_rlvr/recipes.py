"""Recipes: YAML files in ms-swift's form, the flags that override them, and variables that say what the machine has.

    swift-rlvr train RECIPE.yaml --learning_rate 1e-6

Each key of the file is a setting's name; the variables under `ENV` are set for the processes, unless they are set
already. Of a flag that is given twice the last counts.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped]

from swift_rlvr.errors import InputError

SUFFIXES = (".yaml", ".yml")
_EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")

# Machine variables and the settings that they override; WANDB_API_KEY and the launcher's own are not in the table.
VARIABLES = {
    "MODEL": "model",
    "DATASET": "dataset",
    "OUTPUT": "output_dir",
    "USE_HF": "use_hf",
    "HOST": "vllm_server_host",
    "PORT": "vllm_server_port",
    "SYNC_PORT": "vllm_server_group_port",
}
# Variables that were settings once: a training that ignored them would be found out too late.
_REMOVED = (
    *("LEARNING_RATE", "SCHEDULER", "WARMUP", "WEIGHT_DECAY", "BETA", "EPSILON", "GENERATIONS", "BATCH", "MICRO_BATCH"),
    *("EVAL_BATCH", "ACCUMULATION", "ITERATIONS", "MAX_COMPLETION", "EPOCHS", "MAX_STEPS", "SAVE_STEPS", "EVAL_STEPS"),
    *("LOGGING_STEPS", "KEEP", "REWARDS", "REWARD_WEIGHTS", "EVAL_DATASET", "SAMPLER", "TASK"),
)


class Recipe(NamedTuple):
    """A file, taken apart. settings: with the values that YAML gives them; env: the variables under ENV."""

    path: Path
    settings: dict[str, Any]
    env: dict[str, str]


def read_recipe(path: str | Path) -> Recipe:
    """InputError, naming the file, where it cannot be read or does not hold settings."""
    path = Path(path)
    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not YAML ({error})") from error
    if not isinstance(settings, dict) or not all(isinstance(name, str) for name in settings):
        raise InputError(f"{path}: expected settings, such as `num_generations: 8`")
    env = settings.pop("ENV", None) or {}
    if not isinstance(env, dict):
        raise InputError(f"{path}: ENV: expected variables, such as `OMP_NUM_THREADS: 1`")
    return Recipe(path, settings, {str(name): str(value) for name, value in env.items()})


def flags_of_variables(environ: Mapping[str, str], names: Sequence[str] = tuple(VARIABLES)) -> list[str]:
    """The machine variables that are set, as flags; they come before the command's own, which win.

    >>> flags_of_variables({"MODEL": "weights", "PORT": ""})
    ['--model', 'weights']
    """
    for name in _REMOVED:
        if name in environ:
            raise InputError("is set and has no effect: settings are flags, named as in scripts/configs/*.yaml", name)
    return [word for name in names if environ.get(name) for word in (f"--{VARIABLES[name]}", environ[name])]


def as_flag(name: str, value: Any) -> list[str]:
    """A key of a file as flags; without a value it is as if it were not there.

    >>> as_flag("beta", 0.04), as_flag("reward_funcs", ["countdown", "format"])
    (['--beta=0.04'], ['--reward_funcs', 'countdown', 'format'])
    """
    if value is None:
        return []
    if isinstance(value, list):
        return [f"--{name}", *map(str, value)]
    return [f"--{name}={json.dumps(value) if isinstance(value, dict) else value}"]


def read_flags(words: Sequence[str]) -> dict[str, Any]:
    """The settings that flags give, with the values that YAML would give them.

    >>> read_flags(["--beta", "0.04", "--max-steps=5", "--reward_funcs", "a", "b", "--full"])
    {'beta': 0.04, 'max_steps': 5, 'reward_funcs': ['a', 'b'], 'full': True}
    >>> read_flags(["--learning_rate", "5e-7", "--use_vllm", "true"])
    {'learning_rate': 5e-07, 'use_vllm': True}
    """
    settings: dict[str, Any] = {}
    values: list[Any] = []
    for word in words:
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            name = name.replace("-", "_")
            values = settings[name] = [_scalar(value)] if equals else []
        elif not settings:
            raise InputError(f"expected a flag, such as --max_steps 100, got {word!r}")
        else:
            values.append(_scalar(word))
    return {name: given[0] if len(given) == 1 else given or True for name, given in settings.items()}


def _scalar(text: str) -> Any:
    """YAML 1.1 takes 5e-7 for text; on a command line it is a number."""
    try:
        value = float(text) if _EXPONENT.fullmatch(text) else yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return value if isinstance(value, bool | int | float) else text
