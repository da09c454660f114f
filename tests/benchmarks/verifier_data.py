"""Public files of golds and model outputs, each schema with its own reader; used by `bench_verifiers.py`.

A file is recognised by the keys of its first row. `VERIFIERS.md` says where the files are and how they are labelled.
"""

import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    gold: str
    completion: str
    right: bool | None  # the label; None where the file has none
    source: str  # which part of the file: a data set, a model
    place: str = ""  # file and line


class Format(NamedTuple):
    name: str
    keys: str  # what a row must have, for people
    fits: Callable[[dict], bool]
    read: Callable[[dict, Path], list[Row]]


class Folder(NamedTuple):
    rows: dict[str, list[Row]]  # file -> its rows
    broken: list[str]  # "file:line: what is wrong", one for each row that cannot be read
    unknown: list[str]  # files in no known format
    skipped: list[str]  # "file: why"


def gold_answer(text: str) -> str:
    """Return the answer of a GSM8K solution, which follows `####` or, in older files, `A:`; any other gold as it is.

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


def label(value) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise TypeError(f"the label must be true, false or null: {value!r}")


def text(value) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(f"expected text: {str(value)[:60]!r}")


def read_completion(row: dict, path: Path) -> list[Row]:
    source = str(row.get("source") or path.stem)
    return [Row(gold_answer(text(row["gold"])), text(row["completion"]), label(row.get("right")), source)]


def read_gold(row: dict, path: Path) -> list[Row]:
    """A gold alone must be right against itself, in a box and in answer tags."""
    gold = gold_answer(text(row["gold"] if "gold" in row else row["answer"]))
    return [
        Row(gold, boxed(gold), True, "in a box"),
        Row(gold, f"<answer>{gold}</answer>", True, "in answer tags"),
    ]


def gsm8k_models(row: dict) -> dict[str, dict]:
    return {name: value for name, value in row.items() if isinstance(value, dict) and "is_correct" in value}


def read_gsm8k_models(row: dict, path: Path) -> list[Row]:
    gold = gold_answer(text(row["ground_truth"]))
    return [
        Row(gold, re.sub(r"(^|\n)A:(?=[^\n]*$)", r"\1####", text(one["solution"])), label(one["is_correct"]), model)
        for model, one in gsm8k_models(row).items()
    ]


def read_mathcoder(row: dict, path: Path) -> list[Row]:
    """The label is in the name of the file. The last block is the answer that their grader extracted, not output."""
    blocks = [block for block in row["debug_result"] if block["role"] not in ("system", "user")]
    if len(blocks) > 1 and blocks[-1]["content"] == row.get("completion"):
        blocks.pop()
    right = {"correct": True, "wrong": False}.get(path.stem.rpartition("-")[2])
    completion = "\n".join(text(block["content"]) for block in blocks)
    return [Row(text(row["ground_truth"]["answer"]), completion, right, path.parent.parent.name)]


def read_tora(row: dict, path: Path) -> list[Row]:
    """ToRA and what descends from its evaluation, as Qwen2.5-Math: `score` is the verdict of their grader."""
    scores = row.get("score") or [None] * len(row["code"])
    if len(scores) != len(row["code"]):
        raise ValueError(f"{len(row['code'])} outputs in `code`, {len(scores)} in `score`")
    rows = zip(row["code"], scores, strict=True)
    return [Row(text(row["gt"]), text(code), None if score is None else bool(score), path.stem) for code, score in rows]


DATA_FILES = (".jsonl", ".json", ".parquet", ".csv")  # of which only the first is read, and the others are named


def has(*keys: str) -> Callable[[dict], bool]:
    return lambda row: row.keys() >= set(keys)


FORMATS = (
    Format("completions", "gold, completion, right (true, false, null)", has("gold", "completion"), read_completion),
    Format("golds", "gold; no completion", lambda row: "gold" in row and "completion" not in row, read_gold),
    Format(
        "problems",
        "answer, and question or problem; no completion",
        lambda row: "answer" in row and bool({"question", "problem"} & row.keys()) and "completion" not in row,
        read_gold,
    ),
    Format(
        "GSM8K model solutions",
        "ground_truth, and for each model {solution, is_correct}",
        lambda row: "ground_truth" in row and bool(gsm8k_models(row)),
        read_gsm8k_models,
    ),
    Format("MathCoder", "ground_truth {answer}, debug_result", has("ground_truth", "debug_result"), read_mathcoder),
    Format("ToRA, Qwen2.5-Math", "gt, code (a list), score (a list, may lack)", has("gt", "code"), read_tora),
)


def numbered(path: Path) -> Iterator[tuple[int, dict | str]]:
    """Yield each row of a file with its line; one that is no JSON object as the text of what is wrong with it."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                yield number, f"no JSON: {error}"
            else:
                yield number, row if isinstance(row, dict) else f"no JSON object: {str(row)[:60]}"


def read_file(path: Path, name: str) -> tuple[Format | None, list[Row], list[str]]:
    """Return the format, the rows and the broken rows of a file that `name` stands for in messages."""
    chosen, rows, broken = None, [], []
    for number, row in numbered(path):
        if isinstance(row, str):
            broken.append(f"{name}:{number}: {row}")
            continue
        if chosen is None:
            chosen = next((one for one in FORMATS if one.fits(row)), None)
            if chosen is None:
                return None, [], []
        try:
            rows += [one._replace(place=f"{name}:{number}") for one in chosen.read(row, path)]
        except KeyError as error:
            broken.append(f"{name}:{number}: lacks {error}, or it has another value than {chosen.name} has")
        except (TypeError, ValueError, AttributeError) as error:
            broken.append(f"{name}:{number}: {error}")
    return chosen, rows, broken


def read_folder(folder: Path, sample: int | None = None, seed: int = 0) -> Folder:
    """Read every .jsonl file below `folder`; of each, at most `sample` rows drawn with `seed`, in order."""
    result = Folder({}, [], [], [])
    for path in sorted(path for path in folder.rglob("*") if path.suffix in DATA_FILES and path.is_file()):
        relative = path.relative_to(folder)
        if any(part.startswith(".") for part in relative.parts):  # .git
            continue
        name = relative.as_posix()
        if path.suffix != ".jsonl":
            result.unknown.append(name)
            continue
        labelled = [path.with_name(f"{path.stem}-{part}{path.suffix}") for part in ("correct", "wrong")]
        if any(other.exists() for other in labelled):
            result.skipped.append(f"{name}: its rows are in {' and '.join(p.name for p in labelled if p.exists())}")
            continue
        chosen, rows, broken = read_file(path, name)
        result.broken.extend(broken)
        if chosen is None:
            if not broken:
                result.unknown.append(name)
            continue
        if sample is not None and len(rows) > sample:
            rows = [rows[i] for i in sorted(random.Random(seed).sample(range(len(rows)), sample))]
        if rows:
            result.rows[name] = rows
    return result
