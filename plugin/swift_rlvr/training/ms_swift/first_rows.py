"""The first rows of datasets that ms-swift reads by itself, as its training will have them."""

import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from swift_rlvr.tasks import TASKS
from swift_rlvr.utils.errors import located

# How long the first rows of a dataset are waited for.
SECONDS = 90


@dataclass(frozen=True)
class FirstRows:
    """The first rows of a dataset.

    rows: with `messages` and the columns of the rewards. refused: how many raw rows ms-swift has left
    out because of an error, which its training does not raise; why: of the first of them. skipped: how
    many its preprocessor has left out by returning None. are_all: it has no others. problem: why none
    was read.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    refused: int = 0
    why: str = ""
    skipped: int = 0
    are_all: bool = False
    problem: str = ""
    late: str = ""

    @property
    def looked_at(self) -> int:
        """How many raw rows were looked at."""
        return len(self.rows) + self.refused + self.skipped


def names_to_read(names: Iterable[str], use_hf: bool) -> list[str]:
    """Those values of `--dataset` that no task of ours reads and that are files on this machine, and
    those that a plugin has registered with a file. ms-swift renames a file in folders that it reads.
    """
    from swift.dataset import DATASET_MAPPING, dataset_syntax

    chosen = []
    for name in names:
        syntax = dataset_syntax.DatasetSyntax.parse(name)
        meta = DATASET_MAPPING.get(syntax.dataset)
        if meta is None:
            place = syntax.dataset
            meta = syntax.get_dataset_meta(use_hf)
        else:
            place = meta.dataset_path
            if place is None:
                place = meta.hf_dataset_id if use_hf else meta.ms_dataset_id
        if meta.dataset_name not in TASKS and place is not None and Path(place).is_file():
            chosen.append(name)
    return chosen


def read_first_rows(name: str, count: int, options: Mapping[str, Any]) -> FirstRows:
    """Read the first `count` rows of a dataset with ms-swift's own loader and preprocessor.

    options: of ms-swift's `load_dataset`, as its training has them.
    """
    from swift.dataset import load_dataset

    # Rows are read as they are needed: a file may have millions.
    as_needed = {"streaming": True, "num_proc": None, "strict": False}
    left_out = _LeftOut(count)
    refused = left_out.refused
    rows: list[dict[str, Any]] = []
    are_all = True
    late = ""
    try:
        with _noting(left_out), _at_most(SECONDS):
            dataset, _ = load_dataset([name], **{**options, **as_needed})
            for row in dataset:
                del row["dataset"]  # the name that ms-swift adds
                rows.append(row)
                if len(rows) + left_out.count >= count:
                    are_all = False
                    break
    except _Enough:
        are_all = False
    except _Late as error:
        are_all = False
        late = str(error)
    # Of ms-swift, of datasets or of a user's preprocessor, which may end the program.
    except (Exception, SystemExit) as error:
        # Where no row is left, the error is about that alone.
        nothing_left = refused and not rows
        return FirstRows(problem=refused[0] if nothing_left else located(error))
    why = refused[0] if refused else ""
    return FirstRows(rows, len(refused), why, left_out.skipped, are_all, late=late)


class _Enough(Exception):
    """So many rows were left out that no more need to be read."""


class _Late(BaseException):
    """The time is over; with the place that was reached. It is no Exception, which would be taken for a
    row that is refused.
    """


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Raises _Late inside the `with` block where that takes longer, as a preprocessor that waits for a
    server may. In the main thread alone.
    """

    def end(number: int, frame: Any) -> None:
        raise _Late(f"{frame.f_code.co_filename}, line {frame.f_lineno}")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass
class _LeftOut:
    """The raw rows that ms-swift leaves out: the errors of those that it refuses, and how many its
    preprocessor skips. enough: how many are noted at most.
    """

    enough: int
    refused: list[str] = field(default_factory=list)
    skipped: int = 0

    @property
    def count(self) -> int:
        return len(self.refused) + self.skipped


@contextmanager
def _noting(left_out: _LeftOut) -> Iterator[None]:
    """Inside the `with` block, ms-swift's preprocessors note why they leave out a row."""
    from swift.dataset import RowPreprocessor

    original = RowPreprocessor.batched_preprocess

    def one_by_one(self, batched_row, *, strict, ignore_max_length_error):
        if left_out.count >= left_out.enough:
            raise _Enough
        kept: list[dict[str, Any]] = []
        for row in self.batched_to_rows(batched_row):
            alone = self.rows_to_batched([row])
            try:
                done = original(self, alone, strict=True, ignore_max_length_error=False)
            except Exception as error:  # of a user's preprocessor
                left_out.refused.append(located(error))
                continue
            if done["messages"]:
                kept += self.batched_to_rows(done)
            else:
                left_out.skipped += 1
        return self.rows_to_batched(kept) or {"messages": []}

    with mock.patch.object(RowPreprocessor, "batched_preprocess", one_by_one):
        yield
