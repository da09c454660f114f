"""`swift-rlvr check`: over ours and other people's rewards and tasks, whatever those do."""

import pytest
from commands import ran, refused
from distributions import distribution, python
from paths import ROOT
from swift_rlvr.contract.rewards import REWARD_RULES

CLI = ("-m", "swift_rlvr.cli", "check")
FAULTY = """
import os
from faulty import TASK, Good

class Hangs(Good):
    name = "external_hangs"
    def grade(self, text, row):
        while "**" in (text or ""):
            pass
        return super().grade(text, row)

class Ends(Good):
    name = "external_ends"
    def grade(self, text, row):
        if "**" in (text or ""):
            os._exit(3)
        return super().grade(text, row)

class Noisy(Good):
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


def checked(folder, *arguments, code=1):
    result = python(*CLI, *arguments, path=folder, check=False)
    assert result.returncode == code, result.stderr
    return result


def test_ours_by_every_name_they_have():
    for name in ("external_boxed", "boxed"):
        assert f"passed    reward   external_boxed   swift-rlvr   {len(REWARD_RULES)} rules" in ran(
            "check", name
        )
    both = " ".join(ran("check", "countdown").split())
    assert (
        "passed reward external_countdown" in both
        and "passed task countdown" in both
        and "2 passed" in both
    )
    assert (
        "no reward, task or installed package is named 'sudoku'; rewards: external_countdown, "
        in refused("check", "sudoku")
    )


def test_a_reward_that_hangs_is_ended(folder):
    shown = checked(folder, "slow-package", "--timeout", "4").stdout
    assert shown.count("not finished after 4 s") == 1, "and the texts after it are left out"


def test_the_table_and_the_exit_status(folder):
    """All of a package by its name, with the entry point that cannot be loaded; a process that ends
    is a finding.
    """
    fine = checked(folder, "good", "sums", "noisy", code=0)
    assert "\n3 passed\n" in fine.stdout and "grading" not in fine.stdout
    broken = checked(folder, "my-package")
    assert "3 passed, 3 failed" in broken.stdout
    text = " ".join(broken.stdout.split())
    assert f"failed reward external_ends my-package 1 of {len(REWARD_RULES)} rules" in text
    assert "earns nothing: a worker process died with exit code 3" in text
    assert f"passed reward external_good my-package {len(REWARD_RULES)} rules" in text
    assert (
        "passed task sums my-package" in text
        and "failed entry point external_gone my-package" in text
    )
    for name in ("external_gone = not_there:Gone", "lost = not_there:TASK"):
        assert (
            f"entry point {name} cannot be loaded: ModuleNotFoundError: No module named 'not_there'"
            in text
        )
        left_out = f"left out {name.partition(' ')[0]} of the distribution my-package"
        assert broken.stderr.count(left_out) == 1, "not by the processes that try the rules as well"


def test_what_needs_a_package_that_is_not_installed_is_skipped(tmp_path):
    module = """
from faulty import Good
from swift_rlvr.utils.errors import require
class Needy(Good):
    name = "external_needy"
    def grade(self, text, row):
        require("no_package", extra="train", purpose="it")
"""
    (tmp_path / "faulty.py").write_text((ROOT / "tests" / "faulty.py").read_text())
    distribution(tmp_path, "needy", {"needy.py": module}, {"external_needy": "needy:Needy"})
    result = python(*CLI, "needy", path=tmp_path)
    assert (
        result.stdout.endswith("\n1 skipped\n")
        and "no-package is not installed, and it needs it" in result.stdout
    )
