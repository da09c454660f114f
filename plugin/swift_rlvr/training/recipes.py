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

import yaml

from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import find_file

SUFFIXES = (".yaml", ".yml")
CONFIGS = Path("scripts/configs")

# What smaller and fewer GPUs change. The learning rate of countdown_lora is ten times the experiment's:
# Schulman et al. 2025, "LoRA Without Regret", for LoRA on all layers.
_BATCH_4 = "--per_device_train_batch_size 4"
_BATCH_2 = "--per_device_train_batch_size 2 --per_device_eval_batch_size 8"
_OFFLOAD = f"{_BATCH_4} --offload_optimizer true"
_SMALL = f"{_OFFLOAD} --vllm_gpu_memory_utilization 0.45"
_16_GB = "--offload_model true --vllm_gpu_memory_utilization 0.7 --per_device_eval_batch_size 8"

# The recipes of an experiment: the fewest GPUs, and the recipe with its flags, from the one that
# needs most memory of a GPU to the one that needs least. A machine with GPUs takes the first line
# that fits with the user's model (launch/choose.py); one without takes the line of 0.
EXPERIMENTS: dict[str, tuple[tuple[int, str], ...]] = {
    "countdown": (
        # Training and vLLM in turn on every GPU, where 128 completions a step can be divided.
        (8, "countdown_colocate"),
        (8, f"countdown_colocate {_SMALL}"),
        # Four trainers under ZeRO-3, and one to three GPUs for the server.
        (5, "countdown"),
        (5, f"countdown {_BATCH_4}"),
        (5, f"countdown {_BATCH_2}"),
        (4, "countdown_colocate"),
        (4, f"countdown_colocate {_SMALL}"),
        # Two trainers and a server, as in the experiment.
        (3, "countdown"),
        (3, f"countdown {_BATCH_4}"),
        (3, f"countdown {_BATCH_2}"),
        (2, "countdown_colocate"),
        (2, f"countdown_colocate {_OFFLOAD}"),
        (1, "countdown_colocate"),
        (1, f"countdown_colocate {_OFFLOAD}"),
        # LoRA: each GPU has all weights, so that their number does not matter.
        (1, "countdown_lora"),
        (1, f"countdown_lora {_16_GB}"),
        (0, "countdown_cpu"),
    ),
    "tiny": (
        (2, "countdown_tiny_gpus"),
        (1, "countdown_tiny_1gpu"),
        (0, "countdown_cpu"),
    ),
    # LoRA on Qwen2.5-1.5B for a file of the user's.
    "my_data": ((1, "my_data"),),
    "trl": (
        (1, "r1_zero_trl"),
        (0, "countdown_trl_cpu"),
    ),
}

# What to do where an experiment needs a GPU and there is none.
FOR_A_CPU = f"for a CPU there is {CONFIGS / 'smollm2_cpu.yaml'} with --dataset and --reward_funcs"

# A number that YAML 1.1 takes for text: 5e-7, 1E3.
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
    """A recipe's file, taken apart.

    settings: with the values that YAML gives them. env: the variables under ENV.
    found: those settings whose paths are not below the current folder but in the repository or the
    package, with the paths there.
    note: why this recipe was chosen, where another one comes first.
    """

    path: Path
    settings: dict[str, Any]
    env: dict[str, str]
    found: dict[str, Any] = {}
    note: str = ""


def read_recipe(path: str | Path) -> Recipe:
    """Read a recipe's file.

    Raises:
        InputError: it cannot be read or does not hold settings; the message names the file.
    """
    path = Path(find_file(str(path)))
    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {reason}") from error
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not YAML ({error})") from error
    if not isinstance(settings, dict) or not all(isinstance(name, str) for name in settings):
        raise InputError(f"{path}: expected settings, such as `num_generations: 8`")
    env = settings.pop("ENV", None) or {}
    if not isinstance(env, dict):
        raise InputError(f"{path}: ENV: expected variables, such as `OMP_NUM_THREADS: 1`")

    found = {}
    for name, value in settings.items():
        place = find_file(value)
        if place != value:
            found[name] = place
    variables = {str(name): find_file(str(value)) for name, value in env.items()}
    return Recipe(path, settings | found, variables, found)


def uses_servers(settings: Mapping[str, Any]) -> bool:
    """Whether ms-swift gets its completions from rollout servers, not from vLLM in the trainer's
    process.
    """
    return bool(settings.get("use_vllm")) and settings.get("vllm_mode", "colocate") == "server"


def flags_of_variables(environ: Mapping[str, str], settings: Mapping[str, Any]) -> list[str]:
    """The machine variables that are set, as flags; they come before the command's own, which win.

    >>> flags_of_variables({"MODEL": "weights", "USE_HF": "", "PORT": "8001"}, {"use_vllm": False})
    ['--model', 'weights']
    """
    flags = []
    for variable, setting in VARIABLES.items():
        is_for_server = setting.startswith("vllm_")
        if is_for_server and not uses_servers(settings):
            continue
        if environ.get(variable):
            flags += [f"--{setting}", environ[variable]]
    if environ.get("WANDB_API_KEY") and settings.get("report_to"):
        flags += ["--report_to", "wandb"]
    return flags


def as_flag(name: str, value: Any) -> list[str]:
    """A key of a file as a flag; none for a key without a value.

    >>> as_flag("beta", 0.04), as_flag("reward_funcs", ["countdown", "format"])
    (['--beta=0.04'], ['--reward_funcs', 'countdown', 'format'])
    """
    if value is None:
        return []
    if isinstance(value, list):
        return [f"--{name}", *map(str, value)]
    if isinstance(value, dict):
        value = json.dumps(value)
    return [f"--{name}={value}"]


def read_flags(words: Sequence[str]) -> dict[str, Any]:
    """The settings that flags give, with the values that YAML would give them.

    >>> read_flags(["--beta", "0.04", "--max-steps=5", "--reward_funcs", "a", "b", "--full"])
    {'beta': 0.04, 'max_steps': 5, 'reward_funcs': ['a', 'b'], 'full': True}
    >>> read_flags(["--learning_rate", "5e-7", "--use_vllm", "true"])
    {'learning_rate': 5e-07, 'use_vllm': True}
    """
    values: dict[str, list[Any]] = {}
    name = None
    for word in words:
        if word.startswith("--"):
            flag, equals, value = word[2:].partition("=")
            name = flag.replace("-", "_")
            values[name] = [_scalar(value)] if equals else []
        elif name is None:
            raise InputError(f"expected a flag, such as --max_steps 100, got {word!r}")
        else:
            values[name].append(_scalar(word))

    settings: dict[str, Any] = {}
    for name, items in values.items():
        if not items:
            settings[name] = True
        elif len(items) == 1:
            settings[name] = items[0]
        else:
            settings[name] = items
    return settings


def _scalar(text: str) -> Any:
    """A number or a boolean as YAML reads it, else the text."""
    if _EXPONENT.fullmatch(text):
        return float(text)
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return value if isinstance(value, bool | int | float) else text
