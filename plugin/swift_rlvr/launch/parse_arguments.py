"""Let ms-swift read the arguments of a launch: a program of its own, for the imports take seconds.

    python -m swift_rlvr.launch.parse_arguments PROCESSES RECIPE.yaml FLAGS...

The last line of its output is `Parsed` as JSON. It parses as `swift rlhf` does, with the rules
among arguments, and loads the plugins; it needs no GPU, connects to no server and hub, listens
nowhere, and writes only into a temporary folder. Where the model is not on this machine, the
arguments are read for the tiny one of this package.
"""

import inspect
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from swift_rlvr.launch.estimate import model_folder
from swift_rlvr.launch.plan import Plan
from swift_rlvr.success import role_of
from swift_rlvr.utils.files import TINY_MODEL

SECONDS = 300
# Of a process without GPUs, on its own, without a hub.
ENVIRONMENT = {
    "CUDA_VISIBLE_DEVICES": "",
    "DS_ACCELERATOR": "cpu",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}
UNSET = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "RAY_SWIFT_ARGS")
TINY = ("--model_type", "qwen2", "--template", "qwen2_5")


@dataclass(frozen=True)
class Parsed:
    """What ms-swift makes of the arguments.

    problem: why it refuses them. failure: why it could not be asked. Both are empty where it takes
    them.
    unknown: flags that it does not know. settings: all that it knows.
    rewards: by name in `--reward_funcs`, the columns that each reward needs and its role; all that
    the plugins left.
    """

    problem: str = ""
    failure: str = ""
    unknown: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    rewards: dict[str, tuple[list[str], str | None]] = field(default_factory=dict)


@contextmanager
def started(plan: Plan) -> Iterator[Callable[[], Parsed]]:
    """Runs the program for a plan's trainer inside the `with` block, and gives a function that
    waits for its answer.
    """
    words = plan.trainer.argv[plan.trainer.argv.index("rlhf") + 1 :]
    folder = model_folder(str(plan.settings.get("model")))
    model = ["--model", str(folder)] if folder else ["--model", str(TINY_MODEL), *TINY]
    command = [
        sys.executable,
        "-m",
        __name__,
        str(plan.processes * plan.variables.nnodes),
        *words,
        *model,
    ]
    env = {
        name: value for name, value in (os.environ | plan.trainer.env).items() if name not in UNSET
    } | ENVIRONMENT
    process = subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )

    def result() -> Parsed:
        errors = f"no answer in {SECONDS} seconds"
        try:
            output, errors = process.communicate(timeout=SECONDS)
            return Parsed(**json.loads(output.splitlines()[-1]))
        except (subprocess.TimeoutExpired, IndexError, ValueError, TypeError):
            return Parsed(failure=" ".join(errors.split()[-40:]))

    try:
        yield result
    finally:
        process.kill()
        process.communicate()


def parse(words: Sequence[str], processes: int) -> Parsed:
    """Parse a recipe and flags for so many trainer processes. Changes ms-swift's classes: for a
    process of its own.
    """
    from swift.arguments import RLHFArguments, rlhf_args
    from swift.cli.main import parse_yaml_args
    from swift.hub import HFHub, MSHub
    from swift.rewards import ORM, AsyncORM, orms
    from swift.rlhf_trainers import GRPOConfig
    from swift.utils.utils import _patch_get_type_hints
    from transformers import HfArgumentParser

    rlhf_args.set_default_ddp_config = lambda: None  # makes this process a rank, which listens
    RLHFArguments._init_external_vllm = lambda self: None  # connects to the server
    HFHub.try_login = MSHub.try_login = classmethod(lambda cls, token=None: False)
    GRPOConfig.world_size = property(lambda self: processes)

    words = list(words)
    parse_yaml_args(words)
    with _patch_get_type_hints():
        parser = HfArgumentParser(
            [RLHFArguments], allow_abbrev=False
        )  # a plan does not know abbreviations
    parser.error = _refuse
    known = sorted(action.dest for action in parser._actions)
    with tempfile.TemporaryDirectory() as folder:
        words += [
            "--output_dir",
            folder,
            "--report_to",
            "none",
            "--bf16",
            "false",
            "--fp16",
            "false",
        ]  # no GPU is seen
        try:
            arguments, others = parser.parse_args_into_dataclasses(
                words, return_remaining_strings=True, look_for_args_file=False
            )
        except (ValueError, AssertionError, NotImplementedError, OSError) as error:
            return Parsed(problem=_described(error), settings=known)
        except Exception as error:  # of a plugin, or of this process, which has no GPU
            return Parsed(failure=_described(error), settings=known)
    unknown = [
        word.lstrip("-").partition("=")[0].replace("-", "_")
        for word in others
        if word.startswith("--")
    ]
    for name in arguments.reward_funcs:
        if getattr(orms.get(name), "__call__", None) in (ORM.__call__, AsyncORM.__call__):  # noqa: B004
            return Parsed(
                problem=f"the reward {name} is not implemented: it has no __call__", settings=known
            )
    rewards = {name: (_columns(reward), role_of(reward)) for name, reward in orms.items()}
    return Parsed("", "", unknown, known, rewards)


def _refuse(message: str) -> None:
    raise ValueError(message)


def _described(error: Exception) -> str:
    """The message of an error, or the line that raised it where it has none."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    return (
        " ".join(str(error).split())
        or f"{type(error).__name__} at {Path(where.filename).name}: {where.line}"
    )


def _columns(reward: Any) -> list[str]:
    """The columns without which a reward, a function or a class, cannot be called."""
    parameters = inspect.signature(
        reward.__call__ if inspect.isclass(reward) else reward
    ).parameters.values()
    positional = [each for each in parameters if each.kind == each.POSITIONAL_OR_KEYWORD]
    required = [each.name for each in positional if each.default is each.empty]
    return [name for name in required if name not in ("self", "completions")]


if __name__ == "__main__":
    print(json.dumps(asdict(parse(sys.argv[2:], int(sys.argv[1])))), flush=True)
