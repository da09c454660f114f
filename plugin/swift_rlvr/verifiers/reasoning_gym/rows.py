"""Rows of reasoning-gym's tasks: item i is a function of the task, its settings, the seed, the
split and i alone.

Items are drawn in blocks whose seeds are hashes, since reasoning-gym's seeds 1 and 2 share 499 of
500 items. A hash of its question decides the split of an item; for each i up to TRIES items are
drawn, and the first of the split is taken.

A row has one column, `entry`: JSON with the task, its settings, the question, the answer, and the
metadata that the scorer reads, with tuples and keys that are numbers as `encode` writes them.
"""

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from swift_rlvr.utils.errors import InputError
from swift_rlvr.verifiers.code.inside.values import decode, encode
from swift_rlvr.verifiers.reasoning_gym import library, processes
from swift_rlvr.verifiers.reasoning_gym.naming import SPLITS, Part

BLOCK = 500  # items that are drawn from one dataset of reasoning-gym
TRIES = 64
_SECONDS = 20  # a thirtieth of the time that an item may take
_TEST_SHARE = 1 / 4
_LARGEST_SEED = 2**32 - 2 * BLOCK  # numpy's, which some tasks draw with
_NOT_KEPT = ("source_dataset", "source_index", "difficulty")
_NO_OBJECT = "expected the JSON object of a row of reasoning_gym"
# what `decode` raises for what `encode` does not write
_NOT_ENCODED = (
    ValueError,
    TypeError,
    AttributeError,
    RecursionError,
    OverflowError,
    ZeroDivisionError,
)


class BadEntry(ValueError):
    """A column `entry` that is not what `to_entry` writes."""


def split_of(question: str) -> str:
    """The split that a question belongs to: a hash of its words decides.

    >>> split_of("What is 2 + 2?") == split_of(" What is  2 + 2?\\n") in SPLITS
    True
    """
    return SPLITS[_hash(identity(question)) < _TEST_SHARE * 2**64]


def identity(question: str) -> str:
    """A text that is the same for questions that differ in white space only."""
    return " ".join(question.split())


def item(part: Part, split: str, number: int) -> dict[str, Any]:
    """Item `number`, from 0, of a task: question, answer and metadata as reasoning-gym has them.

    Several tasks choose from sets of texts, so that it is the same under one PYTHONHASHSEED only.
    InputError where none of TRIES items is of the split: the task has too few different questions
    for two splits.
    """
    block, index = divmod(number, BLOCK)
    settings = json.dumps(part.settings, sort_keys=True)
    for attempt in range(TRIES):
        seed = _hash(f"{part.seed} {attempt} {block}") % _LARGEST_SEED
        items = dataset(part.name, settings, seed, BLOCK)
        try:
            drawn = _drawn(items, index, seed)
        except TypeError:  # an answer of codeio that JSON cannot write
            continue
        if part.name == "codeio" and repr(drawn) != repr(_drawn(items, index, seed)):
            continue  # the code that it quotes reads the clock, or the address of an object
        if split_of(drawn["question"]) == split:
            return drawn
    raise InputError(
        f"reasoning_gym:{part.name}: none of {TRIES} questions is in the split {split}: with these settings it has "
        "too few different ones for two splits"
    )


def rows(parts: Sequence[Part], split: str) -> Iterator[dict[str, str]]:
    """Raw rows without end; row i is of task i modulo the number of tasks. InputError as of `item`.

    They are drawn in a process whose sets have the same order everywhere, ever more at a time.
    """
    start = 0
    size = 1
    while True:
        items_of_parts = []
        for part in parts:
            job = {"part": asdict(part), "split": split, "start": start, "size": size}
            report = processes.pool(1).submit(processes.ask, job, _SECONDS * size).result()
            items_of_parts.append(report.get("items", [report] * size))
        for items in zip(*items_of_parts, strict=True):
            for part, drawn in zip(parts, items, strict=True):
                if "refused" in drawn:
                    raise InputError(drawn["refused"])
                if "entry" not in drawn:
                    raise RuntimeError(
                        f"reasoning_gym:{part.name}: an item could not be drawn: {drawn}"
                    )
                yield drawn
        start += size
        size = min(2 * size, 64)


def to_entry(part: Part, drawn: Mapping[str, Any]) -> str:
    """The column `entry` of an item."""
    metadata = {key: value for key, value in drawn["metadata"].items() if key not in _NOT_KEPT}
    entry = {
        "task": part.name,
        "settings": dict(part.settings),
        "question": drawn["question"],
        "answer": gold(part.name, drawn),
        "metadata": encode(metadata),
    }
    if part.insisted:
        entry["refused"] = "yes"
    return json.dumps(entry, ensure_ascii=False)


def read_entry(text: object) -> dict[str, Any]:
    """What `to_entry` wrote, with the metadata as it was; BadEntry for anything else."""
    if not isinstance(text, str):
        raise BadEntry(_NO_OBJECT)
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadEntry(str(error)) from None
    if not isinstance(entry, dict):
        raise BadEntry(_NO_OBJECT)
    for key in ("task", "question", "answer"):
        if not isinstance(entry.get(key), str):
            raise BadEntry(f"{key!r} must be a text")
    if not isinstance(entry.get("settings"), dict):
        raise BadEntry("'settings' must be an object")
    try:
        metadata = decode(entry.get("metadata"))
    except _NOT_ENCODED as error:
        raise BadEntry(str(error)) from None
    if not isinstance(metadata, dict):
        raise BadEntry("'metadata' must be an encoded dict")
    return entry | {"metadata": metadata}


def gold(name: str, drawn: Mapping[str, Any]) -> str:
    """A right answer to an item as a policy would write it, or "" where none is known.

    Where several answers are right, reasoning-gym has none as `answer`, and mostly an example in
    the metadata.
    """
    answer = drawn["answer"]
    metadata = drawn["metadata"]
    if name == "graph_color":
        colors = metadata["possible_answer"]
        return json.dumps({str(vertex): color for vertex, color in colors.items()})
    if name == "polynomial_equations" and answer == "":
        return '""'  # as the question asks for it; an empty answer earns nothing
    for example in ("example_correct_answer", "example_answer"):
        if answer is None:
            answer = metadata.get(example)
    return "" if answer is None else str(answer)


# A mixture of all tasks draws from two blocks of each; to score them takes 90 MB.
@lru_cache(maxsize=256)
def dataset(name: str, settings: str, seed: int, size: int) -> Any:
    """The dataset of reasoning-gym for settings that are written as JSON; InputError where it
    refuses them.
    """
    _seed(seed)
    return library.create(name, json.loads(settings), seed=seed, size=size)


def _drawn(items: Any, index: int, seed: int) -> dict[str, Any]:
    _seed(seed + index)
    return items[index]


def _seed(seed: int) -> None:
    """Of the generators that a process shares, which code that codeio quotes draws from."""
    import numpy

    random.seed(seed)
    numpy.random.seed(seed)


def _hash(text: str) -> int:
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big")
