"""The two READMEs: short, equal in their code, and true where a test can tell."""

import doctest
import re

import pytest
from paths import ROOT

READMES = ("README.md", "README_zh.md")
CODE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)([^)]+)\)")


@pytest.mark.parametrize("name", READMES)
def test_short_and_without_dead_links(name):
    text = (ROOT / name).read_text()
    assert len(text.splitlines()) <= 150
    for path in LINK.findall(text):
        assert (ROOT / path).exists(), path


def test_both_show_the_same_code():
    english, chinese = (CODE.findall((ROOT / name).read_text()) for name in READMES)
    assert english == chinese


def test_the_python_in_it_runs():
    blocks = [code for language, code in CODE.findall((ROOT / "README.md").read_text()) if language == "python"]
    test = doctest.DocTestParser().get_doctest("".join(blocks), {}, "README.md", "README.md", 0)
    assert len(test.examples) > 5
    assert doctest.DocTestRunner().run(test).failed == 0


def test_every_reward_and_dataset_is_listed():
    from swift_rlvr.rewards import REWARDS
    from swift_rlvr.tasks import TASKS

    for name in READMES:
        text = (ROOT / name).read_text()
        for item in [*REWARDS, *TASKS]:
            assert f"`{item}`" in text, f"{name}: {item}"
