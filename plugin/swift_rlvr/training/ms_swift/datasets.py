"""Our tasks as ms-swift's datasets: a preprocessor, a loader for local files, and the subsets."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from swift.dataset import (
    DatasetMeta,
    RowPreprocessor,
    SubsetDataset,
    dataset_syntax,
    register_dataset,
)
from swift.dataset.loader import DatasetLoader
from swift.utils import get_logger

from datasets import Dataset
from swift_rlvr.rewards.imported import reward_names
from swift_rlvr.tasks import Task
from swift_rlvr.tasks.row_check import allowed_share, check_columns, check_rows
from swift_rlvr.tasks.sources import SUFFIXES, parse_source
from swift_rlvr.tasks.task import RowError
from swift_rlvr.training.ms_swift.reward_names import require_ours
from swift_rlvr.utils.jsonl import check_jsonl

logger = get_logger()


class TaskPreprocessor(RowPreprocessor):
    """Hands rows to `task.preprocess`, which makes all columns that are kept.

    Unusable rows are counted and left out. Too many (see `allowed_share`), or any with `--strict
    true`, end the run. With `--streaming true` they are counted as they come, and only `--strict
    true` ends the run.

    source: the file, which messages name.
    """

    def __init__(self, task: Task, source: str | None = None):
        super().__init__()
        self.task = task
        self.name = f"{source}: {task.name}" if source else task.name
        self.left_out = 0

    def __call__(self, dataset, *, strict=False, **kwargs):
        self.strict = strict
        return super().__call__(dataset, strict=strict, **kwargs)

    def prepare_dataset(self, dataset):
        check_columns(self.task, dataset.features)
        if self.task.any_columns:  # ms-swift caches rows under a hash of this object as well
            self.columns_found = self.task.find_columns(dataset.features)
        if not hasattr(dataset, "select"):  # streaming: rows are seen one at a time, later
            return dataset
        rows = dataset
        if self.task.columns and not self.task.is_mixed and not self.task.any_columns:
            rows = dataset.select_columns(list(self.task.columns))  # reading others takes longer
        result = check_rows(self.task, rows)
        if not result.errors and result.usable:
            return dataset
        problems = result.describe(self.name)
        excess = result.excess(allowed_share(self.task))
        if excess:
            raise ValueError(f"{problems}\n{excess}")
        if self.strict:
            raise ValueError(problems)
        logger.warning(problems)
        return dataset.select(result.usable)

    def preprocess(self, row):
        try:
            return self.task.preprocess_for_training(row)
        except RowError as error:
            self.left_out += 1
            count = self.left_out
            if count in (1, 10, 100) or count % 1000 == 0:
                text = f"rows left out so far: {count}; reason for the last one: {error}"
                logger.warning(f"{self.name}: {text}")
            raise


class TaskLoader(DatasetLoader):
    """Loads `NAME:FILE`. ms-swift reads the part after the colon as subsets, which it separates by
    slashes.
    """

    def load(self, dataset_syntax=None, dataset_meta=None, *, use_hf=None):
        # By now all plugins are loaded.
        require_ours(reward_names(sys.argv))
        path = Path("/".join(dataset_syntax.subsets)).expanduser()
        name = dataset_meta.dataset_name
        task = dataset_meta.preprocess_func.task
        if path.suffix not in SUFFIXES:
            if task.is_made:
                return self._made(dataset_syntax, dataset_meta)
            if dataset_syntax.dataset is None:
                problem = "this dataset is not on a hub"
                raise ValueError(f"--dataset {name}: {problem}; give a file, {name}:FILE")
            return super().load(dataset_syntax, dataset_meta, use_hf=use_hf)
        if not path.is_file():
            raise FileNotFoundError(f"--dataset {name}:{path}: no such file")
        if path.suffix == ".jsonl":
            check_jsonl(path)  # names the line, which the reader that comes next does not
        # ms-swift notes it in each row, as where the row is from.
        dataset_syntax.dataset = str(path)
        meta = replace(dataset_meta, preprocess_func=TaskPreprocessor(task, str(path)))
        return self._load_dataset_path(str(path), dataset_meta=meta)

    def _made(self: Any, dataset_syntax: Any, dataset_meta: Any) -> Any:
        """The rows that `NAME:TEXT#N` stands for; each rank makes the same."""
        task = dataset_meta.preprocess_func.task
        name = task.name
        text = "/".join(dataset_syntax.subsets)
        if text:
            name += f":{text}"
        if dataset_syntax.dataset_sample:
            name += f"#{dataset_syntax.dataset_sample}"
        source = parse_source(name)
        dataset = Dataset.from_list([row for _, row in source.rows()])
        if self.streaming:
            dataset = dataset.to_iterable_dataset()
        preprocess = TaskPreprocessor(task, str(source))
        dataset = preprocess(dataset, num_proc=self.num_proc, strict=self.strict)
        if self.remove_unused_columns:
            return RowPreprocessor.remove_useless_columns(dataset)
        return dataset


def register_task(task: Task) -> None:
    """Make a task known to `--dataset` by its name and its ids on the hubs; ValueError where the
    name is taken.

    `NAME` alone is the first split, the others are `NAME:SPLIT`.
    """
    first, *others = task.splits
    subsets = [SubsetDataset("default", task.subset, [first])]
    subsets += [SubsetDataset(split, task.subset, [split], is_weak_subset=True) for split in others]
    register_dataset(
        DatasetMeta(
            dataset_name=task.name,
            ms_dataset_id=task.ms_dataset_id,
            hf_dataset_id=task.hf_dataset_id,
            subsets=subsets,
            preprocess_func=TaskPreprocessor(task),
            loader=TaskLoader,
        )
    )
    # Before 4.6 an index of the datasets' ids that was made earlier would go on without this one.
    dataset_syntax._dataset_meta_mapping = None
