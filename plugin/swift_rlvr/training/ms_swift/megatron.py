"""What `megatron rlhf` and its pipeline on Ray lack for our plugin: a callback of its own kind, and the
names of rewards in a file.

    megatron rlhf --rlhf_type grpo --external_plugins plugin/rlvr_plugin.py --callbacks reward_reasons ...

Rewards and datasets come from the registries that `swift rlhf` has too. docs/launch/megatron.md says
what works there and what does not. Only a Megatron process can import this.
"""

import sys
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import yaml
from swift.megatron.callbacks import MegatronCallback, megatron_callbacks_map

from swift_rlvr.rewards.imported import reward_names
from swift_rlvr.training.reason_callback import ReasonCallback
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.settings import as_list

NAME = "reward_reasons"
# Callbacks that sample or choose rows with ms-swift's other trainer.
NOT_HERE = ("held_out", "curriculum")
# What an evaluation's figures begin with in Megatron's log.
EVALUATION = "eval_"


class MegatronReasons(MegatronCallback):
    """`ReasonCallback` with the events of Megatron's trainer. Figures are means since the last line of
    the log; an alarm is a warning, and never ends the run.
    """

    def __init__(self, trainer: Any):
        super().__init__(trainer)
        self.reasons = ReasonCallback(trainer.args, trainer)
        self.figures: dict[str, dict[str, list[float]]] = {}

    def _state(self) -> SimpleNamespace:
        """The state as transformers' callbacks have it. The last rank writes what there is to
        write.
        """
        return SimpleNamespace(
            global_step=self.state.iteration,
            max_steps=self.args.train_iters,
            is_world_process_zero=self.trainer.is_main_process,
        )

    def on_train_begin(self) -> None:
        if not hasattr(self.trainer, "reward_funcs"):
            problem = (
                f"{NAME} needs the rewards of --rlhf_type grpo, and this trainer has none; on Ray they "
                "are in a process that has no callbacks"
            )
            raise InputError(problem, "callbacks")
        self.reasons.on_train_begin(self.args, self._state(), None)

    def on_step_begin(self) -> None:
        self.reasons.on_step_begin(self.args, self._state(), None)

    def on_step_end(self) -> None:
        self._add("train")
        for name, seconds in self.reasons.grading.figures().items():
            self.figures.setdefault("train", defaultdict(list))[name].append(seconds)

    def on_eval_step(self) -> None:
        self._add("eval")

    def on_log(self, logs: dict[str, Any]) -> None:
        """Add the figures to a line before the callbacks that write it, which come after ours."""
        is_evaluation = any(name.startswith(EVALUATION) for name in logs)
        mode, prefix = ("eval", EVALUATION) if is_evaluation else ("train", "")
        for name, values in self.figures.pop(mode, {}).items():
            logs[prefix + name] = sum(values) / len(values)
        self.reasons.on_log(self.args, self._state(), None, logs=logs)

    def _add(self, mode: str) -> None:
        figures = self.figures.setdefault(mode, defaultdict(list))
        for name, values in self.reasons.figures(mode, self.state.iteration).items():
            figures[name] += values


def register_callbacks(argv: Sequence[str]) -> None:
    """Make `reward_reasons` known to Megatron's trainer.

    Raises:
        InputError: the command names a callback of ours that does not work there, which would be a
        KeyError after the model is built.
    """
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--callbacks", nargs="*", default=[])
    settings, _ = parser.parse_known_args(list(argv[1:]))
    for name in settings.callbacks:
        if name in NOT_HERE:
            problem = f"{name} is for `swift rlhf`; `megatron rlhf` has {NAME}"
            raise InputError(problem, "--callbacks")
    if NAME in megatron_callbacks_map:
        raise ValueError(f"the callback {NAME} is registered already: load this plugin once")
    megatron_callbacks_map[NAME] = MegatronReasons


def all_reward_names(argv: Sequence[str]) -> list[str]:
    """The names of the flag `--reward_funcs`, and those in the file of the pipeline on Ray
    (`--config FILE`), which reads no other flags.
    """
    names = reward_names(argv)
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config")
    settings, _ = parser.parse_known_args(list(argv[1:]))
    if settings.config is None or "swift.ray" not in sys.modules:
        return names
    with open(settings.config, encoding="utf-8") as file:
        config = yaml.safe_load(file)
    # At the top for all groups of processes, or in one of them.
    for section in (config, *config.values()):
        if isinstance(section, dict):
            names += [str(name) for name in as_list(section.get("reward_funcs"))]
    return names
