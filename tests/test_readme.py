"""The pages of the repository: no dead links, both READMEs with the same code, and what they show is
so where a test can tell.
"""

import doctest
import re
import shlex
from pathlib import Path

import pytest
from paths import ROOT

READMES = ("README.md", "README_zh.md")
CODE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# [text](path), [text](path#heading) and ![picture](path); not an address of the web
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)\s]+)\)")
INLINE_CODE = re.compile(r"`[^`\n]*`")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def pages() -> list[Path]:
    """Every .md file of the repository, without environments and the outputs of runs."""
    found = []
    for path in ROOT.rglob("*.md"):
        folders = path.relative_to(ROOT).parts[:-1]
        if not any(name.startswith(".") or name in ("output", "build") for name in folders):
            found.append(path)
    return sorted(found)


def text_of(page: Path) -> str:
    """Without its blocks of code, in which brackets are no links and # no headings."""
    return CODE.sub("", page.read_text(encoding="utf-8"))


def anchors_of(page: Path) -> set[str]:
    """What can stand after # in a link to a page, as GitHub makes it of the headings."""
    anchors = set()
    for heading in HEADING.findall(text_of(page)):
        kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        anchors.add(kept.replace(" ", "-"))
    return anchors


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_no_dead_links(page):
    for link in LINK.findall(INLINE_CODE.sub("", text_of(page))):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in anchors_of(target), link


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
