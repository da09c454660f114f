"""`swift-rlvr new`: the package passes its tests at once, and everything knows it once it is
installed.
"""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from commands import ran, refused
from distributions import distribution, python
from paths import PLUGIN, ROOT
from swift_rlvr.cli.new import PATHS, render

CLI = ("-m", "swift_rlvr.cli")


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("somewhere") / "vowels"
    ran("new", "vowel_sort", "--folder", folder)
    return folder


@pytest.fixture(scope="module")
def installed(project) -> Path:
    """The folder that has the package and its information, as an editable installation has."""
    entries = tomllib.loads((project / "pyproject.toml").read_text())["project"]["entry-points"]
    return distribution(
        project / "src", "vowel-sort", {}, entries["swift_rlvr.rewards"], entries["swift_rlvr.tasks"]
    )  # fmt: skip


def test_what_is_written(project):
    assert {str(path.relative_to(project)) for path in project.rglob("*") if path.is_file()} >= {
        "pyproject.toml",
        "README.md",
        "sample.jsonl",
        "src/vowel_sort/__init__.py",
        "src/vowel_sort/reward.py",
        "src/vowel_sort/task.py",
        "tests/test_vowel_sort.py",
    }
    for path, text in render("vowel_sort").items():
        assert (project / path).read_text() == text
        assert "letter_sort" not in text and "letter-sort" not in text and "LetterSort" not in text
    assert (
        tomllib.loads((project / "pyproject.toml").read_text())["project"]["name"] == "vowel-sort"
    )
    assert len((project / "src" / "vowel_sort" / "reward.py").read_text().splitlines()) <= 45


def test_the_next_steps_bring_pytest_along(tmp_path):
    """The first of them failed in a fresh environment, which has no pytest."""
    folder = tmp_path / "of mine"
    steps = ran("new", "vowel_sort", "--folder", folder).partition("README.md:\n")[2].splitlines()
    assert [step.strip() for step in steps] == [
        f"cd '{folder}'", "pip install -e '.[test]'", "python -m pytest", "swift-rlvr check vowel_sort",
    ]  # fmt: skip
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["optional-dependencies"] == {"test": ["pytest"]}
    assert "pip install -e '.[test]'" in (folder / "README.md").read_text()


def test_its_tests_pass_at_once(project, tmp_path):
    """Outside of this repository, before it is installed, with nothing but swift-rlvr and
    pytest.
    """
    result = python(
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        path=tmp_path,
        folder=project,
        PYTEST_ADDOPTS="",
        PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
    )
    assert (
        " passed" in result.stdout
        and "failed" not in result.stdout
        and "skipped" not in result.stdout
    )


def test_its_doctests_and_its_style(project, tmp_path):
    for module in ("reward.py", "task.py"):
        result = python(
            "-m",
            "doctest",
            "-v",
            str(project / "src" / "vowel_sort" / module),
            path=project / "src",
        )
        assert result.returncode == 0 and "Trying" in result.stdout, result.stdout
    for name in ("ab", "vowel_sort", "a_name_of_all_the_letters_here"):
        for path, text in render(name).items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_text(text)
        ruff = [
            sys.executable,
            "-m",
            "ruff",
            "check",
            "--isolated",
            "--line-length",
            "120",
            "--select",
            "E,F,I,UP,B",
        ]
        result = subprocess.run([*ruff, "."], cwd=tmp_path / name, capture_output=True, text=True)
        assert result.returncode == 0, result.stdout


def test_the_commands_know_it_once_it_is_installed(project, installed, tmp_path):
    sample = f"vowel_sort:{project}/sample.jsonl"
    shown = python(*CLI, "check", "vowel_sort", path=installed).stdout
    assert "\n2 passed\n" in shown and "reward   external_vowel_sort   vowel-sort" in shown
    shown = python(*CLI, "dataset", "check", sample, "--json", path=installed).stdout
    figures = json.loads(shown)
    assert figures["rows"] == 16 and figures["bad"] == 0
    assert {name: each["full"] for name, each in figures["rewards"].items()} == {
        "external_vowel_sort": 16,
        "external_format": 16,
    }
    answer = "<think>a, a, a</think><answer>aaabn</answer>"
    explain = ("explain", answer, "--reward_funcs", "vowel_sort", "--column", "letters=banana")
    shown = python(*CLI, *explain, path=installed).stdout
    assert "external_vowel_sort: reward 0.0 (wrong letters)" in shown
    completions = tmp_path / "completions.jsonl"
    completions.write_text(
        json.dumps({"completion": answer.replace("aaabn", "aaabnn"), "letters": "banana"}) + "\n"
    )
    shown = python(*CLI, "score", str(completions), "--json", path=installed).stdout
    assert json.loads(shown)["rewards"]["external_vowel_sort"]["mean"] == 1.0


CLASH = """
from dataclasses import replace
from faulty import TASK, Good
class MathAccuracy(Good):
    name = "external_clash"
TASK = replace(TASK, name="open_jev_jev")
"""


@pytest.mark.slow
def test_the_plugin_brings_it_to_ms_swift_and_leaves_out_what_ms_swift_has(
    project, installed, tmp_path
):
    pytest.importorskip("swift", reason="needs the extra [train]")
    clash = {"clash.py": CLASH, "faulty.py": (ROOT / "tests" / "faulty.py").read_text()}
    distribution(tmp_path, "clash", clash, {"c": "clash:MathAccuracy"}, {"c": "clash:TASK"})
    code = f"""if 1:
        from swift.utils import import_external_file
        import_external_file({str(PLUGIN / "rlvr_plugin.py")!r})
        from swift.dataset import load_dataset
        from swift.rewards import orms
        rows = load_dataset(["vowel_sort:{project}/sample.jsonl"], remove_unused_columns=False)[0]
        reward = orms["external_vowel_sort"](args=None)
        answers = ["<answer>" + "".join(sorted(row["letters"])) + "</answer>" for row in rows]
        print("RESULT", len(rows), rows[0]["task"], set(reward(answers, letters=rows["letters"], task=rows["task"])))
        print("RESULT", "external_clash" in orms, "external_countdown" in orms)
    """
    result = python("-c", code, path=f"{installed}{os.pathsep}{tmp_path}")
    assert [line for line in result.stdout.splitlines() if line.startswith("RESULT")] == [
        "RESULT 16 vowel_sort {1.0}",
        "RESULT False True",
    ]
    warnings = result.stdout + result.stderr
    assert (
        "left out the reward external_clash of the distribution clash: a reward class is called"
        in warnings
    )
    assert "left out the dataset open_jev_jev of the distribution clash: " in warnings


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "Words",
            "NAME: must be 2 to 30 of a-z, 0-9 and _, a letter first and no _ last, such as word_count, "
            "got 'Words'",
        ),
        ("word-count", "NAME: must be 2 to 30"),
        ("1st", "NAME: must be 2 to 30"),
        ("a" * 31, "NAME: must be 2 to 30"),
        ("wörter", "NAME: must be 2 to 30"),
        ("lambda", "NAME: 'lambda' is a word of Python's syntax: choose another name"),
        ("gsm8k", "NAME: 'gsm8k' is taken by a dataset of swift-rlvr: choose another name"),
        ("format", "NAME: 'format' is taken by a reward of swift-rlvr"),
        (
            "cosine_length",
            "NAME: 'cosine_length' is taken by the class CosineLengthReward of swift-rlvr",
        ),
        ("json", "NAME: 'json' is taken by a dataset of swift-rlvr"),
        ("rich", "NAME: 'rich' is taken by an installed module"),
        ("tests", "NAME: 'tests' is taken by an installed module"),
    ],
)
def test_names_that_are_refused(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused("new", name)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "mine").mkdir()
    ran("new", "vowel_sort", "--folder", tmp_path / "mine")  # an empty folder will do
    (tmp_path / "mine" / "sample.jsonl").write_text("mine")
    assert "already exists and is not overwritten" in refused(
        "new", "vowel_sort", "--folder", tmp_path / "mine"
    )
    assert (tmp_path / "mine" / "sample.jsonl").read_text() == "mine"
    file = tmp_path / "file"
    file.touch()
    assert "already exists" in refused("new", "vowel_sort", "--folder", file)
    assert "cannot write" in refused("new", "vowel_sort", "--folder", file / "below")


def test_a_wheel_has_the_templates():
    (listed,) = [
        line
        for line in (ROOT / "setup.cfg").read_text().splitlines()
        if line.startswith("swift_rlvr.cli =")
    ]
    assert listed == "swift_rlvr.cli = templates/*"
    templates = {path.name for path in (PLUGIN / "swift_rlvr" / "cli" / "templates").iterdir()}
    assert templates == {f"{Path(path).name}.txt" for path in PATHS}
