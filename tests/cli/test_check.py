"""`swift-rlvr check`: over ours and other people's rewards and tasks, whatever those do."""

import json

import pytest
from commands import ran, refused
from distributions import distribution, python
from paths import ROOT
from swift_rlvr.data.contract.rewards import REWARD_RULES

CLI = ("-m", "swift_rlvr.cli", "check")
FAULTY = """
import os
from faulty import TASK, Good, ZeroForGolds
from dataclasses import replace

class Hangs(Good):
    '''It compares powers.

    >>> 1
    1
    '''
    name = "external_hangs"
    def grade(self, text, row):
        while "**" in (text or ""):
            pass
        return super().grade(text, row)

class Ends(Good):
    '''It ends.

    >>> 1
    1
    '''
    name = "external_ends"
    def grade(self, text, row):
        if "**" in (text or ""):
            os._exit(3)
        return super().grade(text, row)

class Noisy(Good):
    '''It says what it does.

    >>> 1
    1
    '''
    name = "external_noisy"
    def grade(self, text, row):
        print("grading")
        return super().grade(text, row)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("installed")
    entries = {f"external_{name}": f"mine:{name.capitalize()}" for name in ("ends", "noisy")}
    entries |= {"external_good": "faulty:Good", "external_gone": "not_there:Gone"}
    (folder / "faulty.py").write_text((ROOT / "tests" / "faulty.py").read_text())
    distribution(folder, "slow-package", {}, {"external_hangs": "mine:Hangs"})
    tasks = {"sums": "faulty:TASK", "lost": "not_there:TASK"}
    return distribution(folder, "my-package", {"mine.py": FAULTY}, entries, tasks)


def checked(folder, *arguments, code=0):
    result = python(*CLI, *arguments, "--json", path=folder, check=False)
    assert result.returncode == code, result.stderr
    return json.loads(result.stdout)


def test_ours_by_every_name_they_have():
    for name in ("external_boxed", "boxed"):
        assert f"passed    reward   external_boxed   swift-rlvr   {len(REWARD_RULES)} rules" in ran(
            "check", name, columns=120
        )
    both = json.loads(ran("check", "countdown", "--json"))
    assert [(each["kind"], each["name"], each["findings"]) for each in both["checked"]] == [
        ("reward", "external_countdown", []),
        ("task", "countdown", []),
    ]
    assert "'sudoku' is no reward, task or installed package; rewards: external_countdown, " in refused(
        "check", "sudoku"
    )


def test_those_of_a_package_by_its_name(folder):
    """All of it, with the entry point that cannot be loaded; that a process ends is a finding, and the rest goes on."""
    result = checked(folder, "my-package", code=1)
    assert [(each["kind"], each["name"], each["distribution"]) for each in result["checked"]] == [
        *(("reward", f"external_{name}", "my-package") for name in ("ends", "good", "noisy")),
        ("task", "sums", "my-package"),
    ]
    ends, *others = (each["findings"] for each in result["checked"])
    assert others == [[], [], []]
    (ended,) = ends
    assert ended["rule"].startswith("hostile text 12 of ") and "ended early, with exit code 3" in ended["problem"]
    assert result["refused"] == [
        {
            "distribution": "my-package",
            "entry_point": entry,
            "problem": "ModuleNotFoundError: No module named 'not_there'",
        }
        for entry in ("external_gone = not_there:Gone", "lost = not_there:TASK")
    ]
    assert (result["passed"], result["skipped"], result["failed"]) == (3, 0, 3)


def test_a_reward_that_hangs_is_ended(folder):
    (hangs,) = checked(folder, "slow-package", "--timeout", "4", code=1)["checked"]
    hostile = [each["problem"] for each in hangs["findings"] if each["rule"].startswith("hostile text ")]
    assert hostile == ["no end within 4 s"], "and the texts after it are left out"


def test_the_table_and_the_exit_status(folder):
    fine = python(*CLI, "good", "sums", "noisy", path=folder)
    assert "\n3 passed\n" in fine.stdout and "grading" not in fine.stdout
    broken = python(*CLI, "my-package", path=folder, check=False)
    assert broken.returncode == 1 and "3 passed, 3 failed" in broken.stdout
    text = " ".join(broken.stdout.split())
    assert f"failed reward external_ends my-package 1 of {len(REWARD_RULES)} rules" in text
    assert f"passed reward external_good my-package {len(REWARD_RULES)} rules" in text
    assert "failed entry point external_gone my-package" in text
    assert "entry point external_gone = not_there:Gone cannot be loaded: ModuleNotFoundError: No module" in text
    for name in ("external_gone", "lost"):  # not by the processes that try the rules as well
        assert broken.stderr.count(f"left out {name} of the distribution my-package") == 1


def test_what_needs_a_package_that_is_not_installed_is_skipped(tmp_path):
    module = """
from faulty import Good
from swift_rlvr.errors import require
class Needy(Good):
    name = "external_needy"
    def grade(self, text, row):
        require("no_package", extra="train", purpose="it")
"""
    (tmp_path / "faulty.py").write_text((ROOT / "tests" / "faulty.py").read_text())
    distribution(tmp_path, "needy", {"needy.py": module}, {"external_needy": "needy:Needy"})
    result = python(*CLI, "needy", path=tmp_path)
    assert result.stdout.endswith("\n1 skipped\n") and "no-package is not installed, and it needs it" in result.stdout
