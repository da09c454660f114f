"""A file with rows of mathematics, code, countdown and questions, as each trainer's own format."""

from pathlib import Path

from typer.testing import CliRunner

from swift_rlvr.adapters.rows import PARQUET
from swift_rlvr.cli.app import app

MIXED = Path(__file__).with_name("adapters") / "mixed.jsonl"
# By task, in the order of the file, a right and a wrong completion.
COMPLETIONS = {
    "math": ("<think>a</think><answer>15</answer>", "<think>a</think><answer>16</answer>"),
    "code": (
        "<think>a</think><answer>\ndef add(a, b):\n    return a + b\n</answer>",
        "<think>a</think><answer>\ndef add(a, b):\n    return a - b\n</answer>",
    ),
    "countdown": (
        "<think>a</think><answer>3 + 4</answer>",
        "<think>a</think><answer>3 - 4</answer>",
    ),
    "qa": ("<think>a</think><answer>Rhein</answer>", "<think>a</think><answer>Danube</answer>"),
}
VERIFIERS = ("accuracy", "code", "countdown", "exact_match")


def prepare(format: str, folder: Path) -> Path:
    """What `dataset prepare --format` writes of the file."""
    out = folder / ("mixed.parquet" if format in PARQUET else "mixed.jsonl")
    command = ["dataset", "prepare", str(MIXED), "--format", format, "--out", str(out)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    return out
