"""What a step of the check is, and what it is told of the machine, the time and the options."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gpu_check import names
from gpu_check.programs import Command
from swift_rlvr.launch.machine import Machine
from swift_rlvr.utils.network import free_port

PASSED, FAILED, SKIPPED, NO_TIME, DRY = "passed", "failed", "skipped", "not run: no time", "dry"
INTERRUPTED = "interrupted"
NEEDS_GPU = "needs a GPU"


@dataclass
class Check:
    """machine: its visible GPUs, none for a run on the CPU. folder: of the report.

    model, dataset: as --model and --dataset of `swift-rlvr train`; None for the tiny model.
    until: time.monotonic() at which the current step's time is over.
    """

    machine: Machine
    folder: Path
    model: str | None = None
    dataset: str | None = None
    until: float = field(default_factory=lambda: time.monotonic() + 3600)

    @property
    def gpus(self) -> list[str]:
        return [gpu.index for gpu in self.machine.gpus]

    def train(
        self, folder: str, recipe: str, *flags: str, env: dict[str, str] | None = None
    ) -> Command:
        """`swift-rlvr train RECIPE FLAGS`, watched, in a folder of its own and on free ports."""
        path = self.folder / folder
        argv = (
            *(sys.executable, "-m", "swift_rlvr.cli", "train", recipe),
            *("--external_plugins", *names.PLUGINS, *flags),
        )
        variables = {
            "OUTPUT": str(path / "run"),
            "PORT": str(free_port()),
            "SYNC_PORT": str(free_port()),
            "GPU_CHECK_FOLDER": str(path / "notes"),
            "PYTHONPATH": python_path(names.HOOKS),
        }
        if not self.gpus:
            variables["CUDA_VISIBLE_DEVICES"] = "-1"
        return Command(argv, variables | (env or {}), path)

    def tiny(
        self, folder: str, *flags: str, env: dict[str, str] | None = None, colocate: bool = False
    ) -> Command:
        """A training of the tiny model: with a server, or on one GPU that also samples."""
        recipe = names.WITH_SERVER
        if not self.gpus:
            recipe = names.ON_CPU
            flags = (*names.SMALL_ON_CPU, *flags)
        elif colocate or len(self.gpus) == 1:
            recipe = names.COLOCATED
        return self.train(folder, recipe, *names.QUIET, *flags, env=env)

    def main(self, folder: str, *flags: str, env: dict[str, str] | None = None) -> Command:
        """A training of --model with the experiment's recipe, else of the tiny model."""
        words = (*names.QUIET, *names.K3_KL, *flags)
        if not self.gpus:
            words = (*names.SMALL_ON_CPU, *words)
        if self.model is None:
            return self.train(folder, names.TINY, *words, env=env)
        dataset = self.dataset or f"countdown:{names.COUNTDOWN}"
        of_model = ("--model", self.model, "--dataset", dataset, "--split_dataset_ratio", "0")
        no_evaluation = ("--eval_strategy", "no")
        return self.train(folder, names.EXPERIMENT, *of_model, *no_evaluation, *words, env=env)


def python_path(*folders: Path) -> str:
    """PYTHONPATH with these folders first."""
    return ":".join(filter(None, [*map(str, folders), os.environ.get("PYTHONPATH", "")]))


@dataclass(frozen=True)
class Measured:
    """What a step found. text: for people. figures: for programs."""

    passed: bool
    text: str
    figures: dict[str, Any] = field(default_factory=dict)


def no_need(check: Check) -> str:
    """For a step that every machine can run."""
    return ""


def needs_gpu(check: Check) -> str:
    """For CUDA, NCCL, and vLLM in the trainer's process."""
    return "" if check.gpus else NEEDS_GPU


@dataclass(frozen=True)
class Step:
    """claim: what the documentation says. expected: what is measured if that is true.

    minutes: the longest that it may take. commands: what it will start. run: starts them and
    measures. why_not: why it cannot be asked on this machine, "" where it can.
    """

    name: str
    claim: str
    expected: str
    minutes: float
    commands: Callable[[Check], Sequence[Command]]
    run: Callable[[Check, Sequence[Command]], Measured]
    why_not: Callable[[Check], str] = no_need


@dataclass
class Result:
    """A step's line in the report."""

    name: str
    claim: str
    commands: list[str]
    expected: str
    verdict: str
    measured: str = ""
    seconds: float = 0.0
    figures: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)
