"""What ms-swift 4 and 3.12 name, call or build differently. scripts/compat.sh shows what works with which version.

ms-swift 4 hands a reward the arguments of the training and has `--callbacks`. 3.12 has neither, so its GRPO trainer is
given both here: our rewards with the arguments, so that flags such as `--cosine_max_len` reach them, and the callback
`reward_reasons` in every training, because no flag can ask for it. `held_out` needs 4.6.
"""

import importlib.util
import sys
from collections.abc import Mapping
from typing import Any

from swift.utils import get_logger
from transformers import TrainerCallback

from swift_rlvr.errors import InputError
from swift_rlvr.runs.held_out import HeldOutSettings

V3 = importlib.util.find_spec("swift.rewards") is None
if V3:
    from swift.llm.dataset import DatasetMeta, DatasetSyntax, RowPreprocessor, SubsetDataset
    from swift.llm.dataset import register_dataset as _register_dataset
    from swift.llm.dataset.loader import DatasetLoader as _StaticLoader
    from swift.plugin import orms

    class DatasetLoader:
        """ms-swift 4's loader, an object that is built with the options, from the static functions of 3.12."""

        def __init__(self, **options: Any):
            self.options = options

        def load(self, dataset_syntax=None, dataset_meta=None, *, use_hf=None):
            return _StaticLoader.load(dataset_syntax, dataset_meta, use_hf=use_hf, **self.options)

        def _load_dataset_path(self, dataset_path, dataset_meta):
            options = {name: self.options[name] for name in self.options.keys() - {"hub_token", "download_mode"}}
            return _StaticLoader._load_dataset_path(dataset_path, dataset_meta, **options)
else:
    from swift.dataset import DatasetMeta, RowPreprocessor, SubsetDataset
    from swift.dataset import register_dataset as _register_dataset
    from swift.dataset.dataset_syntax import DatasetSyntax
    from swift.dataset.loader import DatasetLoader  # type: ignore[no-redef]
    from swift.rewards import orms

__all__ = [
    "DatasetLoader",
    "RowPreprocessor",
    "SubsetDataset",
    "get_logger",
    "orms",
    "register_dataset",
    "set_up_trainer",
    "set_up_turns",
]


def register_dataset(loader: type[DatasetLoader], **fields: Any) -> None:
    """Register a `DatasetMeta` with these fields, which `loader` loads."""
    if V3:
        fields["load_function"] = lambda syntax, meta, *, use_hf=None, **options: loader(**options).load(
            syntax, meta, use_hf=use_hf
        )
    else:
        fields["loader"] = loader
    _register_dataset(DatasetMeta(**fields))
    # Before 4.6 an index of the datasets' ids that was made earlier would go on without this one.
    vars(sys.modules[DatasetSyntax.__module__])["_dataset_meta_mapping"] = None


def set_up_turns() -> None:
    """Register the scheduler of several turns where ms-swift has the hooks that it needs, as 4.6 has."""
    if V3:
        return
    from swift.rollout.multi_turn import MultiTurnScheduler

    if hasattr(MultiTurnScheduler, "on_turn_end"):
        from swift_rlvr.training.multi_turn import register

        register()


def set_up_trainer(rewards: Mapping[str, type], callbacks: Mapping[str, type[TrainerCallback]]) -> None:
    """Make `callbacks` known to `--callbacks` by their names; under 3.12 see the head of this file.

    Raises:
        ValueError: if there is a callback of this name.
    """
    if not V3:
        from swift.callbacks import callbacks_map

        for name, each in callbacks.items():
            if name in callbacks_map:
                raise ValueError(f"the callback {name} is registered already: load this plugin once")
            callbacks_map[name] = each
        return
    if HeldOutSettings.from_environment().held_out_dataset is not None:
        raise InputError("has no effect: held-out evaluation needs ms-swift 4.6", "SWIFT_RLVR_HELD_OUT_DATASET")
    callback = callbacks["reward_reasons"]
    from swift.trainers.rlhf_trainer.grpo_trainer import GRPOTrainer

    ours = dict(rewards)  # the registry itself also knows `format`, which is ms-swift's here
    prepare_rewards = GRPOTrainer._prepare_rewards

    def prepare(trainer, reward_funcs, *args, **kwargs):
        names = reward_funcs if isinstance(reward_funcs, list) else [reward_funcs]
        built = [ours[each](args=trainer.args) if each in ours else each for each in names]
        prepare_rewards(trainer, built, *args, **kwargs)
        trainer.add_callback(callback(trainer.args, trainer))

    GRPOTrainer._prepare_rewards = prepare
