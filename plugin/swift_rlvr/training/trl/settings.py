"""The settings of a run under TRL's GRPOTrainer, and what is checked about them before anything is loaded."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from swift_rlvr.errors import InputError
from swift_rlvr.jsonl import read_json
from swift_rlvr.runs.folder import LOG

ARGS = "args.json"
# At least so much, for the fields that are numbers.
LOWEST = {
    **dict.fromkeys(("batch", "eval_batch", "accumulation", "max_completion"), 1),
    **dict.fromkeys(("logging_steps", "eval_steps", "save_steps", "keep"), 1),
    **dict.fromkeys(("beta", "weight_decay", "workers", "seed"), 0),
    "generations": 2,
}
ABOVE_ZERO = ("learning_rate", "epochs", "temperature")
CHOICES = {
    "loss": ("grpo", "bnpo", "dr_grpo", "dapo", "cispo", "sapo", "luspo"),
    "report_to": ("none", "tensorboard", "wandb"),
    # transformers' SchedulerType, which is not imported for it.
    "scheduler": (
        *("linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "constant_with_warmup"),
        *("inverse_sqrt", "reduce_lr_on_plateau", "cosine_with_min_lr", "cosine_warmup_with_min_lr"),
        *("warmup_stable_decay", "greedy"),
    ),
}
# What a run that is taken up again may change.
FREE = ("resume", "workers", "logging_steps", "keep", "report_to")


def flag(name: str) -> str:
    """The command's flag for a field.

    >>> flag("eval_batch")
    '--eval-batch'
    """
    return "--" + {"rewards": "reward", "parameters": "set"}.get(name, name).replace("_", "-")


@dataclass(frozen=True)
class TrlSettings:
    """What to train on what, and how. The defaults are those of the R1-Zero recipe.

    It says nothing about `generations`, `max_completion`, `temperature`, which are as in TRL, and about `beta` and
    `loss`, which are as in DeepSeekMath (arXiv 2402.03300, equation 3 and section 4.2).

    model: a folder with the model and its tokenizer, or a hub id. dataset, eval_dataset: see
        `swift_rlvr.data.sources.parse_source`. out: the folder for the model, its checkpoints and the logs.
    rewards: names in REWARDS. parameters: of rewards, `NAME=VALUE`, see `swift_rlvr.rewards.build.build_rewards`.
    system: for rows that have no system prompt of their own; None for the task's.
    batch, eval_batch: completions on a device at a time. A step is batch * accumulation completions (times the number
        of processes), in groups of `generations` for one prompt.
    warmup: share of the steps. max_steps: -1 for all of `epochs`. keep: checkpoints. workers: that load data.
    bf16: None for "where the GPU can do it". config: further settings of TRL's GRPOConfig, `NAME=VALUE`.
    """

    model: str
    dataset: str
    out: str
    rewards: tuple[str, ...]
    eval_dataset: str | None = None
    parameters: tuple[str, ...] = ()
    system: str | None = None
    use_hf: bool = False
    learning_rate: float = 5e-5
    scheduler: str = "linear"
    epochs: float = 1.0
    max_steps: int = -1
    batch: int = 8
    eval_batch: int = 16
    accumulation: int = 2
    generations: int = 8
    max_completion: int = 256
    temperature: float = 1.0
    beta: float = 0.04
    loss: str = "grpo"
    warmup: float = 0.1
    weight_decay: float = 0.01
    logging_steps: int = 10
    eval_steps: int = 50
    save_steps: int = 50
    keep: int = 2
    workers: int = 2
    seed: int = 42
    checkpointing: bool = True
    bf16: bool | None = None
    report_to: str = "none"
    config: tuple[str, ...] = ()
    resume: bool = False

    def __post_init__(self):
        if not self.rewards:
            raise InputError("--reward: expected at least one")
        for name, low in LOWEST.items():
            value = getattr(self, name)
            if not low <= value < math.inf:
                raise InputError(f"{flag(name)} must be at least {low}, got {value}")
        for name in ABOVE_ZERO:
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"{flag(name)} must be above 0, got {getattr(self, name)}")
        if not 0 <= self.warmup < 1:
            raise InputError(f"--warmup must be a share of the steps, from 0 to below 1, got {self.warmup}")
        if self.max_steps < 1 and self.max_steps != -1:
            raise InputError(f"--max-steps must be at least 1, or -1 for all, got {self.max_steps}")
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise InputError(f"{flag(name)} must be one of {', '.join(choices)}, got {getattr(self, name)!r}")
        if self.report_to != "none" and find_spec(self.report_to) is None:
            raise InputError(f"--report-to {self.report_to}: is not installed here")
        self._check_groups()

    def _check_groups(self) -> None:
        """Completions are sampled for whole groups at a time."""
        step, further = self.completions(), options(self.config)
        processes = step // (self.batch * self.accumulation)
        if step % self.generations and not {"generation_batch_size", "steps_per_generation"} & further.keys():
            times = f" times {processes} processes" if processes > 1 else ""
            raise InputError(
                f"--batch times --accumulation{times} must be a multiple of --generations {self.generations}, "
                f"got {step}"
            )
        if self.eval_dataset is not None and self.eval_batch * processes % self.generations:
            raise InputError(
                f"--eval-batch must be a multiple of --generations {self.generations}, got {self.eval_batch}"
            )

    def completions(self) -> int:
        """Of a step, of all processes that torchrun started."""
        return self.batch * self.accumulation * int(os.environ.get("WORLD_SIZE", 1))

    def as_json(self, system: str | None) -> dict[str, Any]:
        """What goes into the run's args.json; `system` is the system prompt of its prompts."""
        return {"trainer": "trl", **json.loads(json.dumps(asdict(self))), "system": system}


def options(given: tuple[str, ...]) -> dict[str, Any]:
    """The values of `--config NAME=VALUE`, JSON or text.

    >>> options(("reward_weights=[1, 0.5]", "vllm_mode=colocate"))
    {'reward_weights': [1, 0.5], 'vllm_mode': 'colocate'}
    """
    found = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--config: expected NAME=VALUE, got {pair!r}")
        try:
            found[name.strip()] = json.loads(value)
        except (ValueError, RecursionError):
            found[name.strip()] = value.strip()
    return found


def check_out(settings: TrlSettings) -> None:
    """InputError where the output folder holds another run, or, to resume, none of the same settings."""
    out = Path(settings.out)
    if out.exists() and not out.is_dir():
        raise InputError(f"--out {out}: there is a file of that name, expected a folder")
    found = [path.name for path in (out / ARGS, out / LOG, *sorted(out.glob("checkpoint-*"))) if path.exists()]
    if not settings.resume:
        if found:
            raise InputError(
                f"--out {out}: holds another run ({', '.join(found[:3])}); choose another folder, or go on with that "
                "run from its last checkpoint with --resume"
            )
        return
    if not any(name.startswith("checkpoint-") for name in found):
        raise InputError(f"--resume: {out} has no checkpoint to go on from")
    before, now = read_json(out / ARGS), settings.as_json(None)
    for name, value in now.items():
        if name not in (*FREE, "system", "out") and before.get(name) != value:
            raise InputError(f"--resume: the run in {out} has {flag(name)} {_shown(before, name)}, not {value}")


def _shown(settings: Mapping[str, Any], name: str) -> str:
    return str(settings[name]) if name in settings else "unset"
