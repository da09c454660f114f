"""The command `swift-rlvr report`: what it leaves and says, and what it refuses."""

import json
import sys

import pytest

from commands import ran, refused
from report_pages import Document


@pytest.fixture
def runs(tmp_path):
    for name in ("stable", "unstable"):
        (tmp_path / name).mkdir()
        row = {"reward": 0.5, "global_step/max_steps": "1/9"}
        (tmp_path / name / "logging.jsonl").write_text(json.dumps(row) + "\n")
    table = {
        "step": ["1"] * 4,
        "prompt": ["p", "p", "q", "q"],
        "completion": ["a", "b", "c", "d"],
        "Mine": [1.0] * 4,
    }
    (tmp_path / "stable" / "completions.jsonl").write_text(json.dumps(table) + "\n")
    return tmp_path


def test_a_page_of_two_runs(runs):
    out = runs / "new" / "report"
    shown = " ".join(
        ran(
            "report", runs / "stable", runs / "unstable", "--out", out, "--limit", 2, columns=400
        ).split()
    )
    assert "note: stable: this page shows 2 of 4 completions" in shown
    assert "note: unstable: there are no completions in records.jsonl or completions.jsonl" in shown
    assert f"written: {out}/curves.png" in shown and f"written: {out}/report.html" in shown
    assert sorted(path.name for path in out.iterdir()) == ["curves.png", "report.html"]
    document = Document((out / "report.html").read_text())
    assert (
        document.data("page")["runs"] == ["stable", "unstable"] and len(document.completions()) == 2
    )


def test_without_matplotlib_there_is_the_page_alone_and_the_picture_is_said_to_be_missing(
    runs, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    shown = " ".join(ran("report", runs / "stable", "--out", runs / "report", columns=400).split())
    assert "note: curves.png was not written: matplotlib is not installed" in shown
    assert [path.name for path in (runs / "report").iterdir()] == ["report.html"]
    (panel,) = Document((runs / "report" / "report.html").read_text()).data("page")["panels"]
    assert panel["curves"][0]["values"] == [0.5]


def test_mistakes(runs):
    assert "RUNS: the same run is named twice" in refused(
        "report", runs / "stable", runs / "stable", "--out", runs
    )
    assert "--out: expected a folder, in which report.html is written" in refused(
        "report", runs / "stable", "--out", runs / "page.html"
    )
    assert "--limit': Input should be greater than or equal to 1" in refused(
        "report", runs / "stable", "--out", runs, "--limit", "0"
    )
    message = refused(
        "report", runs / "stable", "--out", runs / "out", "--comparison", runs / "none.json"
    )
    assert message == f"Error: cannot read {runs}/none.json: No such file or directory"
    (runs / "other.json").write_text("{}")
    message = refused(
        "report", runs / "stable", "--out", runs / "out", "--comparison", runs / "other.json"
    )
    assert f"--comparison: {runs}/other.json: expected a file written by" in message
    message = refused("report", runs / "stable", "--out", runs / "stable" / "logging.jsonl")
    assert message.startswith(f"Error: --out: cannot write {runs}/stable/logging.jsonl")
    assert not (runs / "out").exists()
