"""The examples run as a reader would run them, and print what they promise."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from swift_rlvr.runs.records import read_records
from swift_rlvr.utils.files import CHECKOUT
from swift_rlvr.utils.jsonl import read_jsonl

EXAMPLES = CHECKOUT / "examples"
HANG = 1800  # seconds: the machine may be busy, and an example takes a minute or two


def run(*command: object, folder: Path = CHECKOUT, **variables: object) -> str:
    """What a command prints; it must succeed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    values = {name: str(value) for name, value in variables.items()}
    result = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=os.environ | {"PATH": path, "OMP_NUM_THREADS": "1"} | values,
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-4000:]
    return result.stdout


def commands_of(example: str) -> list[str]:
    """The `swift-rlvr` commands in an example's header."""
    header = (EXAMPLES / example).read_text().split('"""')[1]
    lines = map(str.strip, header.splitlines())
    return [line for line in lines if line.startswith("swift-rlvr ")]


def test_every_example_is_in_the_table_and_has_a_test():
    table = (EXAMPLES / "README.md").read_text()
    tests = Path(__file__).read_text() + (CHECKOUT / "tests/grpo/notebook_outputs.py").read_text()
    names = [path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh", ".ipynb")]
    assert len(names) >= 6
    for name in names:
        assert f"({name})" in table
        assert f'"{name}"' in tests


def test_a_reward_in_five_lines():
    path = EXAMPLES / "five_line_reward.py"
    assert run(sys.executable, path).splitlines() == [
        "'one two' with count 2: 1.0 (full reward)",
        "'one' with count 2: 0.0 (no reward)",
        "'one' with count None: None (not graded)",
    ]
    code = (
        "import runpy, sys; example = runpy.run_path(sys.argv[1]);"
        "print(example['word_count'](['one two', 'one'], count=[2, 2]))"
    )
    assert run(sys.executable, "-c", code, path) == "[1.0, 0.0]\n"


def test_own_data(tmp_path):
    lines = run(sys.executable, EXAMPLES / "own_data.py", folder=tmp_path).splitlines()
    assert lines[0] == "11 rows can be used"
    assert "line 12" in lines[2]
    assert lines[-1] == "rewards of the group: [1.0, 0.0, 0.0, 0.0]"

    check, show, explain = commands_of("own_data.py")
    assert "line 12" in run("bash", "-c", check)
    assert "5:15 pm" in run("bash", "-c", show)
    assert "0.0" in run("bash", "-c", explain)


def test_a_code_task(tmp_path):
    lines = run(sys.executable, EXAMPLES / "code_task.py", folder=tmp_path).splitlines()
    assert lines[:2] == ["line 1: 10 tests were added", "line 2: 10 tests were added"]
    verdicts = {line[5:25].strip(): (line[:3], line[26:]) for line in lines[-5:]}
    assert verdicts == {
        "right": ("1.0", "all tests passed"),
        "memorised": ("0.0", "passes only the visible tests"),
        "equal to everything": ("0.0", "some tests failed"),
        "writes a file": ("0.0", "error"),
        "hangs": ("0.0", "timeout"),
    }

    # The header's commands write more.jsonl, and read an answer, in the folder in which they run.
    (tmp_path / "examples").symlink_to(EXAMPLES)
    (tmp_path / "answer.md").write_text("```python\ndef median(numbers):\n    return 2\n```\n")
    check, prepare, explain = commands_of("code_task.py")
    run("bash", "-c", check, folder=tmp_path)
    run("bash", "-c", prepare, folder=tmp_path)
    rows = [row for _, row in read_jsonl(tmp_path / "more.jsonl")]
    assert [len(json.loads(row["added_tests"])) >= 10 for row in rows] == [True, True]
    assert "0.0" in run("bash", "-c", explain, folder=tmp_path)


@pytest.mark.product
@pytest.mark.slow
def test_trl():
    pytest.importorskip("trl", reason="needs the extra [trl]")
    # The extra [trl] brings no ms-swift.
    alone = "import runpy, sys; sys.modules['swift'] = None; runpy.run_path(sys.argv[1], run_name='__main__')"
    lines = run(sys.executable, "-c", alone, EXAMPLES / "trl_grpo.py").splitlines()
    steps = [line.split() for line in lines[lines.index("step  success  format  grad_norm") + 1 :]]
    assert [step[0] for step in steps] == ["1", "2"]
    for _, success, form, grad_norm in steps:
        assert 0 <= float(success) <= 1 and 0 < float(form) <= 1 and float(grad_norm) > 0
    # Those of an earlier run in this folder are gone.
    assert len(list(read_records(CHECKOUT / "output/trl_grpo/records.jsonl"))) == 2 * 32


@pytest.mark.product
@pytest.mark.e2e
def test_a_swift_rlhf_command(tmp_path):
    output = tmp_path / "output"
    text = run("bash", EXAMPLES / "swift_rlhf.sh", OUTPUT=output)
    steps = [row for _, row in read_jsonl(output / "logging.jsonl") if "reward" in row]
    assert len(steps) == 2
    for step in steps:
        assert "success" in step
        assert any(name.startswith("reasons/AccuracyReward/") for name in step)
    assert len(list(read_records(output / "records.jsonl"))) == 2 * 32
    # The table at the end.
    assert "external_accuracy" in text
    assert "external_format" in text
