"""Tells ms-swift about this package's rewards and datasets. No logic: see swift_rlvr/rewards and swift_rlvr/tasks.

    swift rlhf --external_plugins plugin/rlvr_plugin.py --reward_funcs external_countdown format \
        --dataset countdown:datasets/countdown/train.jsonl ...

Rewards go into `orms` under the names in REWARDS. A name that is there already is an error: none is overwritten.

`--callbacks reward_reasons` logs the share of each reason and writes reasons.jsonl: see swift_rlvr/reason_log.py.

Each task in TASKS can be named in `--dataset` and `--val_dataset` as
- `countdown:FILE`, a local .jsonl, .json, .parquet or .csv file with the task's columns,
- `countdown`, the dataset on ModelScope, or on Hugging Face with `--use_hf true`,
- the dataset's id there, such as `zouxuhong/Countdown-Tasks-3to4`,
each with `#N` for N rows. ms-swift has an entry for that ModelScope id. The entry stays, but a look-up by id finds
the one registered last, which is ours: same prompt, but the target as an int, several forms of nums, and an account of
the rows that cannot be used.
"""

from pathlib import Path

from swift.callbacks import callbacks_map
from swift.dataset import DatasetMeta, RowPreprocessor, register_dataset
from swift.dataset.loader import DatasetLoader
from swift.rewards import orms
from swift.utils import get_logger
from swift_rlvr.reason_log import ReasonCallback
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.parameters import stray_variables
from swift_rlvr.tasks import TASKS, Task
from swift_rlvr.tasks.task import check_columns, check_rows

FILE_SUFFIXES = (".jsonl", ".json", ".parquet", ".csv")
CALLBACK = "reward_reasons"
logger = get_logger()


class TaskPreprocessor(RowPreprocessor):
    """Hands rows to `task.preprocess`. Unusable rows are counted and left out, or with `--strict true` end the run."""

    def __init__(self, task: Task):
        super().__init__()
        self.task = task

    def __call__(self, dataset, *, strict=False, **kwargs):
        self.strict = strict
        return super().__call__(dataset, strict=strict, **kwargs)

    def prepare_dataset(self, dataset):
        check_columns(self.task, dataset.features)
        if not hasattr(dataset, "select"):  # streaming: rows are seen one at a time, later
            return dataset
        result = check_rows(self.task, dataset.select_columns(list(self.task.columns)))
        if result.errors and (self.strict or not result.usable):
            raise ValueError(result.describe(self.task.name))
        if not result.errors:
            return dataset
        logger.warning(result.describe(self.task.name))
        return dataset.select(result.usable)

    def preprocess(self, row):
        return self.task.preprocess(row)


class TaskLoader(DatasetLoader):
    """Loads `NAME:FILE`. ms-swift reads the part after the colon as subsets, which it separates by slashes."""

    def load(self, dataset_syntax=None, dataset_meta=None, *, use_hf=None):
        path = Path("/".join(dataset_syntax.subsets)).expanduser()
        if path.suffix not in FILE_SUFFIXES:
            return super().load(dataset_syntax, dataset_meta, use_hf=use_hf)
        if not path.is_file():
            raise FileNotFoundError(f"--dataset {dataset_meta.dataset_name}:{path}: no such file")
        dataset_syntax.dataset = str(path)  # ms-swift notes it in each row, as where the row is from
        return self._load_dataset_path(str(path), dataset_meta=dataset_meta)


for name, reward in REWARDS.items():
    if name in orms:
        raise ValueError(f"the reward {name} is registered already, by {orms[name].__module__}: load this plugin once")
    if reward.__name__ in {taken.__name__ for taken in orms.values()}:
        raise ValueError(f"a reward class is called {reward.__name__} already, and both would be logged under one name")
    orms[name] = reward

for variable in stray_variables(REWARDS):
    logger.warning(f"{variable} is set, and no reward here has a name that it begins with: {', '.join(REWARDS)}")

if CALLBACK in callbacks_map:
    raise ValueError(f"the callback {CALLBACK} is registered already: load this plugin once")
callbacks_map[CALLBACK] = ReasonCallback

for task in TASKS.values():
    register_dataset(
        DatasetMeta(
            dataset_name=task.name,
            ms_dataset_id=task.ms_dataset_id,
            hf_dataset_id=task.hf_dataset_id,
            preprocess_func=TaskPreprocessor(task),
            loader=TaskLoader,
        )
    )
