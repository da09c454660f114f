"""`swift-rlvr dataset prepare code:FILE --add_cases N`: rows -> the same rows with further tests.

`swift_rlvr.evaluation.added_tests` says which. They are in the column `added_tests`, which
`external_code` reads and no prompt shows.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from swift_rlvr.evaluation.added_tests import NoTests, add_tests
from swift_rlvr.rewards.code import ADDED, CodeReward
from swift_rlvr.tasks.code import TASK, preprocess, references_of
from swift_rlvr.tasks.mixed import part_of
from swift_rlvr.tasks.sources import Source
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.limits import usable_cores
from swift_rlvr.utils.parallel import map_in_order
from swift_rlvr.verifiers.code import BadTests, Limits, SandboxError, read_tests


class WithCases(NamedTuple):
    """A row with the tests that were added to it.

    added: how many. mutants, surviving: of its reference, as in Added. problem: why there are none;
    None if the row is of another task.
    """

    line: int
    row: dict[str, Any]
    added: int = 0
    mutants: int = 0
    surviving: int = 0
    problem: str | None = None


def add_cases(
    source: Source, rows: Sequence[tuple[int, dict[str, Any]]], count: int, seed: int
) -> Iterator[WithCases]:
    """Up to `count` further tests for each row, in order, by several processes. The same seed gives
    the same, also for a row that stands elsewhere.

    rows: of the source, each with its line. InputError for a dataset that has no programming tasks,
    and where code cannot be run safely.
    """
    if source.task != TASK and not source.task.is_mixed:
        problem = f"works only with code:FILE, whose rows have tests; {source} has the task {source.task.name}"
        raise InputError(problem, field="add_cases")
    parameters = CodeReward().parameters
    limits = Limits(
        parameters.timeout,
        parameters.memory_mb,
        parameters.packages,
        parameters.without_landlock,
    )
    work = partial(
        _with_cases, is_mixed=source.task.is_mixed, count=count, seed=seed, limits=limits
    )
    try:
        yield from map_in_order(work, rows, max(1, min(usable_cores(), len(rows))))
    except SandboxError as error:
        raise InputError(f"needs the sandbox: {error}", field="add_cases") from error


def _with_cases(
    numbered: tuple[int, dict[str, Any]], is_mixed: bool, count: int, seed: int, limits: Limits
) -> WithCases:
    line, row = numbered
    if is_mixed and part_of(row) != TASK:
        return WithCases(line, row)
    # Tests of an earlier run are replaced.
    row = {name: value for name, value in row.items() if name != ADDED}
    # Columns that only other rows of a Parquet file have are None in this one.
    present = {name: value for name, value in row.items() if value is not None}
    prepared = preprocess(present)
    question = prepared["messages"][-1]["content"]
    entry_point = prepared.get("entry_point")
    try:
        added = add_tests(
            prepared["tests"],
            references_of(present),
            entry_point=entry_point,
            question=question,
            count=count,
            seed=f"{seed} {question}",
            limits=limits,
        )
        number = len(read_tests(added.tests, entry_point, limits.packages))
    except (NoTests, BadTests) as error:
        return WithCases(line, row, problem=str(error))
    except OSError as error:  # no room for another process, also after some waiting
        return WithCases(line, row, problem=f"no room to run it: {error}")
    tests = {**row, ADDED: added.tests}
    return WithCases(line, tests, number, added.mutants, added.surviving)
