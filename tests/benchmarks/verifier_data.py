"""Public files of golds and model outputs, each schema with its own reader; used by
`bench_verifiers.py`.

A file is recognised by the keys of its first row. `docs/results/verifiers.md` says where the files are and how
they are labelled.
"""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    gold: str
    completion: str
    right: bool | None  # the label; None where the file has none
    source: str  # which part of the file: a data set, a model
    place: str = ""  # file and line


def gold_answer(text: str) -> str:
    """Return the answer of a GSM8K solution, which follows `####` or, in older files, `A:`; any
    other gold as it is.

    >>> gold_answer("2 + 3 = <<2+3=5>>5 hens\\n#### 5"), gold_answer("5 hens.\\nA: 5"), gold_answer("\\\\frac{1}{2}")
    ('5', '5', '\\\\frac{1}{2}')
    """
    match = re.search(r"(?:^|\n)(?:####|A:)[ \t]*([^\n]*)\s*$", text)
    return match[1].strip() if match else text


def boxed(answer: str) -> str:
    """Return a completion with this answer, which is boxed unless it already is.

    >>> boxed("$x + 1$"), boxed(r"So \\boxed{3}.")
    ('\\\\boxed{x + 1}', 'So \\\\boxed{3}.')
    """
    if r"\boxed" in answer:
        return answer
    inline = re.fullmatch(r"\$([^$]+)\$", answer.strip())
    return rf"\boxed{{{inline[1] if inline else answer}}}"


def read_completion(row: dict, path: Path) -> list[Row]:
    source = str(row.get("source") or path.stem)
    return [Row(gold_answer(row["gold"]), row["completion"], row.get("right"), source)]


def read_gold(row: dict, path: Path) -> list[Row]:
    """A gold alone must be right against itself, in a box and in answer tags."""
    gold = gold_answer(row["gold"] if "gold" in row else row["answer"])
    return [
        Row(gold, boxed(gold), True, "in a box"),
        Row(gold, f"<answer>{gold}</answer>", True, "in answer tags"),
    ]


def gsm8k_models(row: dict) -> dict[str, dict]:
    return {
        name: value
        for name, value in row.items()
        if isinstance(value, dict) and "is_correct" in value
    }


def read_gsm8k_models(row: dict, path: Path) -> list[Row]:
    gold = gold_answer(row["ground_truth"])
    return [
        Row(
            gold,
            re.sub(r"(^|\n)A:(?=[^\n]*$)", r"\1####", one["solution"]),
            one["is_correct"],
            model,
        )
        for model, one in gsm8k_models(row).items()
    ]


def read_mathcoder(row: dict, path: Path) -> list[Row]:
    """The label is in the name of the file. The last block is the answer that their grader
    extracted, not output.
    """
    blocks = [block for block in row["debug_result"] if block["role"] not in ("system", "user")]
    if len(blocks) > 1 and blocks[-1]["content"] == row.get("completion"):
        blocks.pop()
    right = {"correct": True, "wrong": False}.get(path.stem.rpartition("-")[2])
    completion = "\n".join(block["content"] for block in blocks)
    return [Row(row["ground_truth"]["answer"], completion, right, path.parent.parent.name)]


def read_tora(row: dict, path: Path) -> list[Row]:
    """ToRA and what descends from its evaluation, as Qwen2.5-Math: `score` is the verdict of their
    grader.
    """
    scores = row.get("score") or [None] * len(row["code"])
    rows = zip(row["code"], scores, strict=True)
    return [
        Row(row["gt"], code, None if score is None else bool(score), path.stem)
        for code, score in rows
    ]


READERS: tuple[
    tuple[Callable[[dict], bool], Callable[[dict, Path], list[Row]]], ...
] = (  # the first that fits
    (lambda row: row.keys() >= {"gold", "completion"}, read_completion),
    (
        lambda row: (
            "gold" in row or ("answer" in row and bool({"question", "problem"} & row.keys()))
        ),
        read_gold,
    ),
    (lambda row: "ground_truth" in row and bool(gsm8k_models(row)), read_gsm8k_models),
    (lambda row: row.keys() >= {"ground_truth", "debug_result"}, read_mathcoder),
    (lambda row: row.keys() >= {"gt", "code"}, read_tora),
)


def read_file(path: Path, name: str) -> list[Row]:
    """The rows of a .jsonl file, which messages call `name`; ValueError for a row that cannot be
    read.
    """
    rows: list[Row] = []
    read = None
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            read = read or next(read for fits, read in READERS if fits(row))
            rows += [one._replace(place=f"{name}:{number}") for one in read(row, path)]
        except (KeyError, TypeError, ValueError, AttributeError, StopIteration) as error:
            raise ValueError(f"{name}:{number}: {type(error).__name__}: {error}") from error
    return rows


def read_folder(folder: Path, sample: int | None = None, seed: int = 0) -> dict[str, list[Row]]:
    """The rows of every .jsonl file below `folder` by its name; of each at most `sample`, drawn
    with `seed`, in order.

    A file is left out that has others beside it called FILE-correct and FILE-wrong, which have its
    rows.
    """
    result = {}
    for path in sorted(folder.rglob("*.jsonl")):
        name = path.relative_to(folder).as_posix()
        if any(
            path.with_name(f"{path.stem}-{part}.jsonl").exists() for part in ("correct", "wrong")
        ):
            continue
        rows = read_file(path, name)
        if sample is not None and len(rows) > sample:
            rows = [rows[i] for i in sorted(random.Random(seed).sample(range(len(rows)), sample))]
        if rows:
            result[name] = rows
    return result
