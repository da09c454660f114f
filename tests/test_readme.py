"""The two READMEs: short, equal in their code, and true where a test can tell."""

import doctest
import re
import shlex

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
        assert (ROOT / path.partition("#")[0]).exists(), path


def test_both_show_the_same_code():
    english, chinese = (CODE.findall((ROOT / name).read_text()) for name in READMES)
    assert english == chinese


def test_the_python_in_it_runs():
    blocks = [
        code
        for language, code in CODE.findall((ROOT / "README.md").read_text())
        if language == "python"
    ]
    test = doctest.DocTestParser().get_doctest("".join(blocks), {}, "README.md", "README.md", 0)
    assert len(test.examples) > 3
    assert doctest.DocTestRunner().run(test).failed == 0


def test_every_reward_and_dataset_is_listed():
    from swift_rlvr.rewards import REWARDS
    from swift_rlvr.tasks import TASKS

    for name in READMES:
        text = (ROOT / name).read_text()
        for item in [*REWARDS, *TASKS]:
            assert f"`{item}`" in text, f"{name}: {item}"


def test_the_shown_output_of_explain_is_what_it_prints(monkeypatch):
    from commands import ran

    (block,) = [
        code
        for language, code in CODE.findall((ROOT / "README.md").read_text())
        if language == "console"
    ]
    command, *shown = block.splitlines()
    output = [" ".join(line.split()) for line in ran(*shlex.split(command)[2:]).splitlines()]
    for line in shown:
        assert line == "..." or " ".join(line.split()) in output, line


def test_the_flags_in_it_exist():
    """Of every `swift-rlvr` line; those of `train` are the trainer's own."""
    from swift_rlvr.cli import app
    from typer.main import get_command

    text = "\n".join(
        code.replace("\\\n", " ") for _, code in CODE.findall((ROOT / "README.md").read_text())
    )
    lines = re.findall(r"^(?:\$ )?swift-rlvr (.*)$", text, re.MULTILINE)
    assert len(lines) > 3
    for line in lines:
        words = shlex.split(line, comments=True)
        command = get_command(app)
        while words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        known = {name for parameter in command.params for name in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, line
