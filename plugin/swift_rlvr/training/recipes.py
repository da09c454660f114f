"""Recipes: YAML files in ms-swift's form, the flags that override them, and variables that say what
the machine has.

    swift-rlvr train RECIPE.yaml --learning_rate 1e-6

Each key of the file is a setting's name; the variables under `ENV` are set for the processes,
unless they are set already. Of a flag that is given twice the last counts.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml  # type: ignore[import-untyped]

from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import find_file

SUFFIXES = (".yaml", ".yml")
CONFIGS = Path("scripts/configs")
# What GPUs with less memory change in countdown.yaml. LoRA's learning rate is ten times the
# experiment's: Schulman et al. 2025, "LoRA Without Regret", for LoRA on all layers.
_BATCH_4 = "--per_device_train_batch_size 4 --num_generations_eval 1"
_BATCH_2 = "--per_device_train_batch_size 2 --per_device_eval_batch_size 4 --num_generations_eval 1"
_LORA = f"--tuner_type lora --lora_rank 16 --lora_alpha 32 --learning_rate 5e-6 {_BATCH_2}"
# The recipes of an experiment without a GPU, on one, and on more: with flags, in the order in which
# they are tried, until one fits the GPUs' memory.
EXPERIMENTS = {
    "countdown": (
        ("countdown_cpu",),
        (
            *("countdown_1gpu_80gb", "countdown_1gpu_24gb"),
            "countdown_1gpu_24gb --offload_model true --vllm_gpu_memory_utilization 0.7",
        ),
        ("countdown", f"countdown {_BATCH_4}", f"countdown {_BATCH_2}", f"countdown {_LORA}"),
    ),
    "tiny": (("countdown_cpu",), ("countdown_tiny_1gpu",), ("countdown_tiny_gpus",)),
    "trl": (("countdown_trl_cpu",), ("r1_zero_trl",), ("r1_zero_trl",)),
}
_EXPONENT = re.compile(r"[-+]?\d+(\.\d*)?[eE][-+]?\d+")

# Machine variables and the settings that they override; WANDB_API_KEY and the launcher's own are
# not in the table.
VARIABLES = {
    "MODEL": "model",
    "DATASET": "dataset",
    "OUTPUT": "output_dir",
    "USE_HF": "use_hf",
    "HOST": "vllm_server_host",
    "PORT": "vllm_server_port",
    "SYNC_PORT": "vllm_server_group_port",
}


class Recipe(NamedTuple):
    """A file, taken apart. settings: with the values that YAML gives them; env: the variables under
    ENV.

    found: the settings whose paths are not below this folder, but in the repository or the package,
    as found there.
    note: why it was chosen, where another one comes first.
    """

    path: Path
    settings: dict[str, Any]
    env: dict[str, str]
    found: dict[str, Any] = {}
    note: str = ""


def read_recipe(path: str | Path) -> Recipe:
    """InputError, naming the file, where it cannot be read or does not hold settings."""
    path = Path(find_file(str(path)))
    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read {path}: {getattr(error, 'strerror', None) or error}"
        ) from error
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not YAML ({error})") from error
    if not isinstance(settings, dict) or not all(isinstance(name, str) for name in settings):
        raise InputError(f"{path}: expected settings, such as `num_generations: 8`")
    env = settings.pop("ENV", None) or {}
    if not isinstance(env, dict):
        raise InputError(f"{path}: ENV: expected variables, such as `OMP_NUM_THREADS: 1`")
    found = {
        name: there for name, value in settings.items() if (there := find_file(value)) != value
    }
    return Recipe(
        path,
        settings | found,
        {str(name): find_file(str(value)) for name, value in env.items()},
        found,
    )


def uses_servers(settings: Mapping[str, Any]) -> bool:
    """Whether ms-swift gets its completions from rollout servers, and not from vLLM in the
    trainer's process.
    """
    return bool(settings.get("use_vllm")) and settings.get("vllm_mode", "colocate") == "server"


def flags_of_variables(environ: Mapping[str, str], settings: Mapping[str, Any]) -> list[str]:
    """The machine variables that are set, as flags; they come before the command's own, which win.

    Those of a rollout server are left out where the settings use none.

    >>> flags_of_variables({"MODEL": "weights", "USE_HF": "", "PORT": "8001"}, {"use_vllm": False})
    ['--model', 'weights']
    """
    flags = []
    for name, setting in VARIABLES.items():
        if environ.get(name) and (uses_servers(settings) or not setting.startswith("vllm_")):
            flags += [f"--{setting}", environ[name]]
    if environ.get("WANDB_API_KEY") and settings.get("report_to"):
        flags += ["--report_to", "wandb"]
    return flags


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
    return {
        name: given[0] if len(given) == 1 else given or True for name, given in settings.items()
    }


def _scalar(text: str) -> Any:
    """YAML 1.1 takes 5e-7 for text; on a command line it is a number."""
    try:
        value = float(text) if _EXPONENT.fullmatch(text) else yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return value if isinstance(value, bool | int | float) else text
