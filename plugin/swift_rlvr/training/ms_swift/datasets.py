"""Our tasks as ms-swift's datasets: a preprocessor, a loader, and the subsets."""

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow
from datasets import Dataset, IterableDataset
from swift.dataset import (
    DatasetMeta,
    RowPreprocessor,
    SubsetDataset,
    dataset_syntax,
    register_dataset,
)
from swift.dataset.loader import DatasetLoader
from swift.utils import get_logger, safe_ddp_context

from swift_rlvr.rewards.imported import reward_names
from swift_rlvr.tasks import Task
from swift_rlvr.tasks.files import data_suffix
from swift_rlvr.tasks.row_check import RowCheck, allowed_share, check_columns
from swift_rlvr.tasks.sources import Source, parse_source, undecoded, with_columns
from swift_rlvr.tasks.task import RowError, unused_columns
from swift_rlvr.training.ms_swift.reward_names import require_ours

logger = get_logger()

# Rows that become a table at a time.
BATCH = 10_000
# After so many rows the log says how many were read.
REPORTED = 20_000
# The first rows, in which columns that are not used are looked for.
LOOKED_AT = 1000


class TaskPreprocessor(RowPreprocessor):
    """Makes rows for training of raw rows, as `swift-rlvr dataset check` does, and hands them to
    ms-swift's own preprocessor, which brings messages, images and tools into its form.

    Unusable rows are counted and left out. Too many (see `allowed_share`), or any with `--strict
    true`, end the run. With `--streaming true` they are counted as they come, and only `--strict
    true` ends the run. A passage that no prompt shows is named in the log.

    source: the file, which messages name. columns: new names for those of a dataset, as in
    `parse_columns`. stream: whether rows are read as they are needed.
    """

    def __init__(
        self,
        task: Task,
        source: str | None = None,
        columns: Mapping[str, str] | None = None,
        stream: bool = False,
    ):
        super().__init__()
        self.task = task
        self.name = f"{source}: {task.name}" if source else task.name
        self.new_names = dict(columns or {})
        self.stream = stream

    def __call__(self, dataset, *, strict=False, **kwargs):
        """dataset: a dataset of raw rows, or a `Source`, which is read as a stream where `stream`."""
        if isinstance(dataset, Source):
            read = dataset.rows
        else:
            read = partial(self._raw_rows, self.get_features_dataset(dataset))
        if self.stream or isinstance(dataset, IterableDataset):
            read_and_strict = {"read": read, "strict": strict}
            prepared = IterableDataset.from_generator(self._one_by_one, gen_kwargs=read_and_strict)
        else:
            prepared = self._all(read, strict)
        return super().__call__(prepared, strict=strict, **kwargs)

    def _raw_rows(self, dataset):
        """(number, row) of each row of a dataset, with images and sounds as they lie in it."""
        rows = enumerate(undecoded(dataset), start=1)
        for number, row in with_columns(rows, self.new_names):
            if number == 1:
                check_columns(self.task, row)
            yield number, row

    def _one_by_one(self, read, strict):
        """The rows for training, as they come."""
        left_out = 0
        for line, row in read():
            try:
                yield self.task.preprocess_for_training(row)
            except RowError as error:
                left_out += 1
                text = f"rows left out so far: {left_out}; the last one: line {line}: {error}"
                if strict:
                    raise ValueError(f"{self.name}: {text}") from error
                if left_out in (1, 10, 100) or left_out % 1000 == 0:
                    logger.warning(f"{self.name}: {text}")

    def _all(self, read, strict):
        """The rows for training, as one table."""
        # Rows go into tables batch by batch, which take far less memory than as many dicts.
        tables: list[pyarrow.Table] = []
        batch: list[dict[str, Any]] = []
        check = RowCheck()
        not_used: Counter[str] = Counter()
        for line, row in read():
            prepared = check.prepared(self.task, row, line)
            if prepared is None:
                continue
            batch.append(prepared)
            if check.usable <= LOOKED_AT:
                not_used.update(unused_columns(self.task, row))
            if len(batch) == BATCH:
                tables.append(table_of(batch))
                batch = []
            if check.total % REPORTED == 0:
                logger.info(f"{self.name}: {check.total:,} rows read")
        tables.append(table_of(batch))

        for column, count in not_used.items():
            looked_at = min(check.usable, LOOKED_AT)
            where = f"in {count:,} of the first {looked_at:,} rows"
            remedy = "with --columns, rename it to 'context', or to 'images' if it holds one"
            text = (
                f"the column {column!r} looks like a part of the question, and no prompt shows it"
            )
            logger.warning(f"{self.name}: {text} ({where}); {remedy}")
        # A few bad rows are left out, and many end the run, before a GPU is taken.
        if check.errors or not check.usable:
            problems = check.describe(self.name)
            excess = check.excess(allowed_share(self.task))
            if excess:
                raise ValueError(f"{problems}\n{excess}")
            if strict:
                raise ValueError(problems)
            logger.warning(problems)

        # Some rows alone have choices, images or the columns of another task: all get all columns.
        table = pyarrow.concat_tables(tables, promote_options="permissive")
        if "solution" in table.column_names:
            # ms-swift copies it to this name, whose type would be that of the first 1,000 rows.
            table = table.append_column("__#solution", table["solution"])
        return Dataset(table)


def table_of(rows: Sequence[Mapping[str, Any]]) -> pyarrow.Table:
    """Rows as a table in which each column has one type. Values of several types, as a level that
    is a number here and a text there, are texts.
    """
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    columns = {}
    for name in names:
        # pyarrow refuses values of several types, and the run would end on one odd row.
        values = [row.get(name) for row in rows]
        try:
            columns[name] = pyarrow.array(values)
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
            texts = []
            for value in values:
                if value is not None and not isinstance(value, str):
                    value = json.dumps(value, ensure_ascii=False, default=str)
                texts.append(value)
            columns[name] = pyarrow.array(texts)
    return pyarrow.table(columns)


class TaskLoader(DatasetLoader):
    """Loads `NAME:FILE`, and all else that `parse_source` reads. ms-swift reads the part after the
    colon as subsets, which it separates by slashes.
    """

    def load(self, dataset_syntax=None, dataset_meta=None, *, use_hf=None):
        # By now all plugins are loaded.
        require_ours(reward_names(sys.argv))
        task = dataset_meta.preprocess_func.task
        text = "/".join(dataset_syntax.subsets)
        named = f"{task.name}:{text}".removesuffix(":")
        columns = self.columns or {}
        # What stands after a task's name: a file, a folder or an id on a hub; or else a split.
        is_place = bool(data_suffix(Path(text))) or "/" in text or Path(text).is_dir()
        if dataset_syntax.dataset is not None and not is_place:
            # The task's own dataset on a hub, with ms-swift's subsets. ms-swift itself gives the new
            # names, but for paths.
            paths = {name: new for name, new in columns.items() if "." in name}
            meta = replace(dataset_meta, preprocess_func=TaskPreprocessor(task, columns=paths))
            return super().load(dataset_syntax, meta, use_hf=use_hf)
        if task.is_made and dataset_syntax.dataset_sample and not data_suffix(Path(text)):
            named += f"#{dataset_syntax.dataset_sample}"
        source = parse_source(named, use_hf=bool(use_hf), columns=columns)
        if source.path is not None:
            if not source.path.exists():
                raise FileNotFoundError(f"--dataset {named}: no such file")
            # ms-swift notes it in each row, as where the row is from.
            dataset_syntax.dataset = str(source.path)
        return self._prepared(task, source)

    def _prepared(self, task, source):
        """The rows of a source for training; those of a hub are downloaded first."""
        place = str(source.path or source)
        preprocess = TaskPreprocessor(task, place, source.columns, stream=self.streaming)
        raw = source
        if source.hub_id:
            # One process downloads, as in ms-swift.
            with safe_ddp_context(hash_id=source.hub_id, use_barrier=True):
                raw = source.from_hub(
                    streaming=self.streaming,
                    download_mode=self.download_mode,
                    hub_token=self.hub_token,
                    num_proc=self.num_proc,
                )
        dataset = preprocess(
            raw,
            num_proc=self.num_proc,
            load_from_cache_file=self.load_from_cache_file,
            strict=self.strict,
        )
        if self.remove_unused_columns:
            return RowPreprocessor.remove_useless_columns(dataset)
        return dataset


def register_task(task: Task) -> None:
    """Make a task known to `--dataset` by its name and its ids on the hubs; ValueError if the
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
