"""The command line: what its commands leave behind; a user's mistakes end with code 2, a flag and no traceback."""

import json
import sys

import pytest
from swift_rlvr.cli import app as cli
from swift_rlvr.countdown.generator import TUTORIAL, make_task
from swift_rlvr.evaluation.summary import summarize


def run(monkeypatch, *arguments):
    """The exit code of `swift-rlvr ARGUMENTS`."""
    monkeypatch.setattr(sys, "argv", ["swift-rlvr", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code or 0


def test_dataset_make(monkeypatch, tmp_path):
    out = tmp_path / "new" / "train.jsonl"
    make = ["dataset", "make", "countdown", "--preset", "tutorial", "--split", "train", "--seed", 4, "--out", out]
    assert run(monkeypatch, *make, "--rows", 5) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows == [make_task(TUTORIAL, "train", 4, index) for index in range(5)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--preset", "huge", "--split", "test", "--out", "x.jsonl"],
            "'huge' is not one of 'tutorial', 'tv', '24', 'tiny'",
        ),
        (
            ["--preset", "tiny", "--split", "test", "--out", "x.csv"],
            "--out: expected a name ending in .jsonl or .parquet",
        ),
        (
            ["--preset", "tiny", "--split", "dev", "--out", "x.jsonl"],
            "'dev' is not one of 'train', 'validation', 'test'",
        ),
        (["--preset", "tiny", "--split", "test", "--out", "x.jsonl", "--count", "3-9"], "--count: count must be"),
        (["--preset", "tiny", "--split", "test", "--out", "x.jsonl", "--target", "few"], "--target: expected a range"),
        (
            ["--preset", "tiny", "--split", "test", "--out", "x.jsonl", "--with-depth", "0"],
            "--with-depth: depth must be",
        ),
        (
            ["--preset", "tv", "--split", "test", "--out", "x.jsonl", "--rows", "9", "--count", "7", "--solutions"],
            "--solutions, --difficulty: solutions are counted for 6 numbers at most",
        ),
        (["--preset", "tutorial", "--split", "test", "--out", "x.jsonl"], "--rows: how many rows?"),
        (["--preset", "tiny", "--split", "test", "--rows", "99999", "--out", "x.jsonl"], "--rows: 99999 rows wanted"),
        (["--preset", "tiny", "--split", "test", "--out", "/dev/null/x.jsonl"], "cannot write /dev/null/x.jsonl"),
    ],
)
def test_mistakes_in_dataset_make(monkeypatch, tmp_path, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "dataset", "make", "countdown", *arguments) == 2
    said = " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert message in said and "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


def test_dataset_make_with_columns_and_settings_of_ones_own(monkeypatch, tmp_path):
    out = tmp_path / "tasks.jsonl"
    make = ["dataset", "make", "countdown", "--preset", "tutorial", "--split", "validation", "--rows", 50, "--out", out]
    own = [
        "--count",
        "5",
        "--number",
        "1-20",
        "--target",
        "24",
        "--operators",
        "+-*",
        "--no-negative",
        "--no-fractions",
    ]
    assert run(monkeypatch, *make, *own, "--with-depth", "2-3", "--solution", "--difficulty", "--workers", 2) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 50 and all(row["target"] == 24 and len(row["nums"]) == 5 for row in rows)
    assert list(rows[0]) == ["nums", "target", "solution", "solutions", "operators", "depth"]
    assert all("/" not in row["solution"] + row["operators"] and 2 <= row["depth"] <= 3 for row in rows)
    assert [path.name for path in tmp_path.iterdir()] == ["tasks.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("3 4 5 6 24", 0, "(3 + 5 - 4) * 6 = 24\n"),
        ("4 4 10 10 24 --all", 0, "(10 * 10 - 4) / 4 = 24\n"),
        ("1 2 3 6 --count", 0, "3\n"),
        ("1 1 1 24", 1, "no solution: 24 cannot be made of 1, 1, 1\n"),
        ("1 1 1 24 --count", 1, "0\nno solution: 24 cannot be made of 1, 1, 1\n"),
        ("24", 2, "expected 1 to 8 numbers, got 0"),
        ("1 2 3 4 5 6 7 28 --all", 2, "expected 1 to 6 numbers, got 7"),
        ("1 2 x", 2, "valid integer"),
    ],
)
def test_solve(monkeypatch, capsys, arguments, code, said):
    assert run(monkeypatch, "solve", *arguments.split()) == code
    shown = "".join(capsys.readouterr())
    assert shown == said if code < 2 else said in " ".join(shown.replace("│", " ").split())


def test_compare(monkeypatch, tmp_path, capsys):
    record = {"index": 0, "reward": 1.0, "format": True, "reason": "correct", "tokens": 7, "finish": "stop"}
    for name, reward in (("before", 0.0), ("after", 1.0)):
        (tmp_path / name).mkdir()
        summary = {"settings": {"model": name, "seed": int(reward)}, **summarize([record | {"reward": reward}])}
        (tmp_path / name / "summary.json").write_text(json.dumps(summary))
    out = tmp_path / "comparison.json"
    assert run(monkeypatch, "compare", tmp_path / "before", tmp_path / "after" / "summary.json", "--out", out) == 0
    said = capsys.readouterr().out
    assert "0.000 (0.000 to 0.793)" in said and "1.000 (0.207 to 1.000)" in said
    assert "seed differs: 0 before, 1 after" in said
    assert json.loads(out.read_text())["after"]["success"] == 1.0
    (tmp_path / "before" / "summary.json").write_text("{}")
    assert run(monkeypatch, "compare", tmp_path / "before", tmp_path / "after") == 2
    assert 'expected a summary of `swift-rlvr evaluate`, which has "success"' in capsys.readouterr().err


def test_mistakes_in_evaluate_and_report(monkeypatch, tmp_path, capsys):
    assert run(monkeypatch, "evaluate", "model", "--data", tmp_path / "no.jsonl", "--out", tmp_path) == 2
    assert f"Error: cannot read {tmp_path}/no.jsonl: No such file or directory" in capsys.readouterr().err
    assert run(monkeypatch, "report", tmp_path, "--out", tmp_path) == 2
    assert "expected a training run, a folder with logging.jsonl" in capsys.readouterr().err
