"""Files of completions -> rewards, reasons and counts, on several cores; memory does not grow with
the files.

For `swift-rlvr score`; `swift_rlvr.evaluation.completion_files` describes the lines. One that
cannot be used is counted and reported, and has no effect on others.
"""

import math
import os
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from swift_rlvr.evaluation.completion_files import (
    FROM_PROMPT,
    Item,
    column_names,
    is_completion,
    read_items,
    with_columns_from_prompt,
)
from swift_rlvr.rewards import REWARDS, Reward
from swift_rlvr.rewards.build import build_rewards, columns_for, missing_column
from swift_rlvr.runs.records import is_record
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import LineError, brief, opened, read_jsonl, write_jsonl
from swift_rlvr.utils.parallel import map_in_order, usable_cores

SHOWN_PROBLEMS = 10
_BLOCK = (
    1 << 18
)  # bytes graded at a time: few enough for the cores to share a file, enough to be worth handing over
_WORTH_A_WORKER = (
    1 << 20
)  # bytes: a process takes longer to start than Countdown takes to grade them


class Block(NamedTuple):
    """A part of a file, from a line with this number on."""

    file: str
    first: int
    text: bytes


class Verdict(NamedTuple):
    """What rewards have said of one completion, by their names; position: on its line, None where
    it is alone.
    """

    line: int
    position: int | None
    rewards: Mapping[str, float | None]
    reasons: Mapping[str, str]


def grade_block(
    block: Block, rewards: Sequence[Reward]
) -> tuple[Block, list[Verdict], int, list[str]]:
    """Grade a block: it, its verdicts, how many rows got nums and target from their prompt, and
    what cannot be used.
    """
    needed = frozenset(name for reward in rewards for name in reward.columns)
    usable: list[tuple[int, Item]] = []
    problems: list[str] = []
    from_prompt = 0
    for number, item in _items(block):
        problem: object = item
        if isinstance(item, Item):
            row = item.row
            if not needed <= row.keys() and needed >= FROM_PROMPT:
                row = with_columns_from_prompt(row)
                from_prompt += row is not item.row
            problem = _problem(item.completion, row, rewards)
            if problem is None:
                usable.append((number, item._replace(row=row)))
                continue
        within = (
            f", completion {item.position}"
            if isinstance(item, Item) and item.position is not None
            else ""
        )
        problems.append(f"{block.file}, line {number}{within}: {problem}")
    completions, rows = [item.completion for _, item in usable], [item.row for _, item in usable]
    grades = zip(
        *(reward.grades(completions, **columns_for(reward, rows)) for reward in rewards),
        strict=True,
    )
    names = [reward.name for reward in rewards]
    verdicts = []
    for (number, item), each in zip(usable, grades, strict=True):
        values, reasons = zip(*each, strict=True)
        by_name = (dict(zip(names, column, strict=True)) for column in (values, reasons))
        verdicts.append(Verdict(number, item.position, *by_name))
    return block, verdicts, from_prompt, problems


def _items(block: Block) -> Iterator[tuple[int, Item | LineError]]:
    """The completions of a block with the numbers of their lines, and what is wrong with a line."""
    for number, line in enumerate(block.text.split(b"\n"), start=block.first):
        if line and not line.isspace():
            try:
                yield from ((number, item) for item in read_items(line))
            except LineError as error:
                yield number, error


def _problem(completion: object, row: Mapping[str, Any], rewards: Iterable[Reward]) -> str | None:
    if not is_completion(completion):
        return f"expected a text or a list of messages, got {brief(completion)}"
    for reward in rewards:
        if (name := missing_column(reward, row)) is not None:
            return f"{reward.name} needs the column {name!r}, and there is {column_names(row)}"
    return None


def score(
    files: Sequence[str | Path],
    rewards: Sequence[Reward],
    out: str | Path | None = None,
    *,
    workers: int | None = None,
    advance: Callable[[float], object] = lambda share: None,
    against: Mapping[tuple[int, int | None], Verdict] | None = None,
) -> dict[str, Any]:
    """Grade .jsonl files; returns all counts and figures, by name. InputError for one that is empty
    or cannot be read.

    Args:
        out: a file for the verdict on each completion, in order, with its file, line and position.
        workers: processes; None for one a core, or fewer where the files are too small to be worth
        it.
        advance: called with the share that is done.
        against: earlier verdicts, see `stored_verdicts`; `changed` of the result lists those that
        are others now.
    """
    names = list(dict.fromkeys(map(str, files)))  # one that is named twice counts once
    if out is not None and Path(out).resolve() in [Path(path).resolve() for path in names]:
        raise InputError(f"{out}: this is a file to be graded, and would be replaced", field="out")
    size, done, start = sum(map(_file_size, names)), 0, time.perf_counter()
    workers = workers or max(1, min(usable_cores(), size // _WORTH_A_WORKER))
    counts: Counter[str] = Counter()
    problems: list[str] = []
    changed: list[dict[str, Any]] = []
    graded: Counter[str] = Counter()
    totals: defaultdict[str, float] = defaultdict(float)
    reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def verdicts() -> Iterator[dict[str, Any]]:
        nonlocal done
        grade = partial(grade_block, rewards=rewards)
        for block, made, from_prompt, wrong in map_in_order(grade, read_blocks(names), workers):
            problems.extend(wrong[: SHOWN_PROBLEMS - len(problems)])
            counts.update(completions=len(made), from_prompt=from_prompt, unusable=len(wrong))
            for verdict in made:
                place = {"file": block.file, "line": verdict.line, "position": verdict.position}
                place = {key: value for key, value in place.items() if value is not None}
                before = (against or {}).get(verdict[:2])
                for name, value in verdict.rewards.items():
                    reason = verdict.reasons[name]
                    reasons[name][reason] += 1
                    if value is not None:
                        graded[name] += 1
                        totals[name] += value
                    if before is None or name not in before.rewards:
                        continue
                    counts["compared"] += 1
                    was, why = before.rewards[name], before.reasons.get(name, "")
                    if _differ(was, value):
                        changed.append(
                            {**place, "reward": name, "before": [was, why], "now": [value, reason]}
                        )
                yield {**place, "rewards": verdict.rewards, "reasons": verdict.reasons}
            done += len(block.text)
            advance(done / size)
        if not counts["completions"]:
            shown = "; ".join(problems[:3])
            raise InputError(
                f"no line can be used: {shown}"
                if shown
                else "no completions: there are only empty lines"
            )

    if out is None:
        deque(verdicts(), maxlen=0)
    else:
        write_jsonl(out, verdicts())
    seconds = time.perf_counter() - start
    return {
        "files": names,
        **{name: counts[name] for name in ("completions", "from_prompt", "unusable")},
        **({"compared": counts["compared"], "changed": changed} if against is not None else {}),
        "problems": problems,
        "workers": workers,
        "seconds": round(seconds, 3),
        "rewards": {
            reward.name: {
                "mean": totals[reward.name] / graded[reward.name] if graded[reward.name] else None,
                "graded": graded[reward.name],
                "ungraded": counts["completions"] - graded[reward.name],
                "reasons": dict(reasons[reward.name].most_common()),
                "parameters": asdict(reward.parameters),
            }
            for reward in rewards
        },
    }


def _differ(was: float | None, now: float | None) -> bool:
    if was is None or now is None:
        return was is not now
    return not math.isclose(was, now, abs_tol=1e-6)


def stored_verdicts(path: str | Path) -> dict[tuple[int, int | None], Verdict]:
    """What a file says of completions, by line and position: records, or what `swift-rlvr score
    --out` wrote of others.

    InputError for a line that has no rewards.
    """
    found: dict[tuple[int, int | None], Verdict] = {}
    for number, row in read_jsonl(path):
        if not isinstance(row.get("rewards"), Mapping):
            raise InputError(
                f"{path}, line {number}: no rewards; expected records, or what `score --out` writes"
            )
        place = (
            (number, None)
            if is_record(row)
            else (int(row.get("line", number)), row.get("position"))
        )
        found[place] = Verdict(*place, row["rewards"], row.get("reasons") or {})
    return found


def read_blocks(files: Iterable[str]) -> Iterator[Block]:
    """Parts of the files, of whole lines, in order."""
    for path in files:
        with opened(path) as file:
            number = 1
            while text := file.read(_BLOCK):
                text += file.readline()
                yield Block(path, number, text)
                number += text.count(b"\n")


def _file_size(path: str) -> int:
    with opened(path) as file:
        size = file.seek(0, os.SEEK_END)
    if not size:
        raise InputError(f"{path}: the file is empty; expected completions, one a line")
    return size


def default_rewards(files: Iterable[str | Path]) -> list[Reward]:
    """The rewards whose columns the first usable line has, without those that run code; InputError
    where none fits.
    """
    where, row = _first_row(files)
    plain = [name for name, reward in REWARDS.items() if not reward.runs_code]
    # Built before their columns are read: those of a reward may depend on its parameters.
    fitting = [
        each
        for each in build_rewards(plain)
        if not each.runs_code and set(each.columns) <= row.keys()
    ]
    if not fitting:
        raise InputError(
            f"{where}: no reward fits {column_names(row)}; choose one with --reward_funcs: {', '.join(REWARDS)}"
        )
    return fitting


def _first_row(files: Iterable[str | Path]) -> tuple[str, dict[str, Any]]:
    problem = None
    for block in read_blocks(map(str, files)):
        for number, item in _items(block):
            where = f"{block.file}, line {number}"
            if isinstance(item, LineError):
                problem = problem or f"{where}: {item}"
            elif is_completion(item.completion):
                return where, with_columns_from_prompt(item.row)
    raise InputError(
        f"no line can be used; {problem}"
        if problem
        else "no completions: there are only empty lines"
    )
