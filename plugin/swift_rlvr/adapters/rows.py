"""The rows of other trainers: what `swift-rlvr dataset prepare --format` writes.

But for TRL's, one label holds the columns of a row as a JSON object, which `grading.row_of` reads:
their types differ from task to task, and a parquet file has one schema.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from swift_rlvr.utils.errors import InputError, require

Row = dict[str, Any]


def verl_row(task: str, row: Mapping[str, Any], index: int) -> Row:
    """The schema of verl's parquet files.

    row: preprocessed, with its messages.

    >>> row = {"messages": [{"role": "user", "content": "?"}], "nums": [1, 2], "target": 3}
    >>> verl_row("countdown", row, 0)["reward_model"]["ground_truth"]
    '{"nums": [1, 2], "target": 3, "task": "countdown"}'
    """
    return {
        "data_source": task,
        "prompt": row["messages"],
        "ability": task,
        "reward_model": {"style": "rule", "ground_truth": _label(task, row)},
        "extra_info": {"index": index},
    }


def skyrl_row(task: str, row: Mapping[str, Any], index: int) -> Row:
    """The schema of SkyRL: verl's, with the environment that grades."""
    label = {"method": "rule", "ground_truth": _label(task, row)}
    return {
        "data_source": task,
        "prompt": row["messages"],
        "env_class": "swift_rlvr",
        "reward_spec": label,
        "extra_info": {"index": index},
    }


def label_row(task: str, row: Mapping[str, Any], index: int) -> Row:
    """A prompt and a label: OpenRLHF and slime with their flags for the names of the two."""
    return {"prompt": row["messages"], "label": _label(task, row)}


def nemo_row(task: str, row: Mapping[str, Any], index: int) -> Row:
    """The lines of NeMo Gym."""
    return {
        "responses_create_params": {"input": row["messages"]},
        "expected_answer": _label(task, row),
    }


def trl_row(task: str, row: Mapping[str, Any], index: int) -> Row:
    """The lines that TRL's GRPOTrainer takes as its dataset: `prompt` and the row's columns.

    >>> row = {"messages": [{"role": "user", "content": "?"}], "nums": [1, 2], "target": 3}
    >>> trl_row("countdown", row, 0)
    {'prompt': [{'role': 'user', 'content': '?'}], 'nums': [1, 2], 'target': 3, 'task': 'countdown'}
    """
    return {"prompt": row["messages"], **_columns(task, row)}


FORMATS: dict[str, Callable[[str, Mapping[str, Any], int], Row]] = {
    "verl": verl_row,
    "skyrl": skyrl_row,
    "openrlhf": label_row,
    "slime": label_row,
    "nemo": nemo_row,
    "trl": trl_row,
}
MEDIA = ("images", "videos", "audios")
# The others are JSON lines.
PARQUET = ("verl", "skyrl")


def refuse_media(row: Mapping[str, Any]) -> None:
    """InputError for a preprocessed row with pictures, videos or audios: none of these formats holds
    them, and its trainer would ask about what its model does not see.
    """
    # Said before anything is written: a training on such a file would run to its end.
    media = [name for name in MEDIA if row.get(name)]
    if media:
        problem = f"rows have {', '.join(media)}, which go to ms-swift alone"
        raise InputError(
            f"{problem}, and to TRL with swift_rlvr.training.trl.load_dataset", "dataset"
        )


def write_parquet(path: Path, rows: Sequence[Row]) -> None:
    """Write rows with one schema; NotInstalledError without pyarrow."""
    require("pyarrow", "train", "a parquet file")
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)


def _columns(task: str, row: Mapping[str, Any]) -> Row:
    # A row of a mixed file names its own task.
    columns = {name: value for name, value in row.items() if name != "messages"}
    return {**columns, "task": columns.get("task") or task}


def _label(task: str, row: Mapping[str, Any]) -> str:
    return json.dumps(_columns(task, row), ensure_ascii=False)
