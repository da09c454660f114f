"""The pages of the repository: their links lead somewhere, and the code that they show runs. No test
compares prose. tests/test_docs.py builds the site from docs/.
"""

import doctest
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from paths import ROOT

TRANSLATIONS = {
    "README.md": "README_zh.md",
    "docs/start/install.md": "docs/zh/install.md",
    "docs/start/quickstart.md": "docs/zh/quickstart.md",
    "docs/guides/own_data.md": "docs/zh/own_data.md",
    "docs/guides/own_reward.md": "docs/zh/own_reward.md",
    "docs/guides/flat_reward.md": "docs/zh/flat_reward.md",
    "docs/launch/index.md": "docs/zh/launch.md",
}
# Their Python runs, and what they show of `swift-rlvr explain` is what it prints.
RUN = ("README.md", "docs/index.md", "docs/start/quickstart.md")
CODE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# [text](path), [text](path#heading) and ![picture](path); not an address of the web
LINK = re.compile(r"\]\((?!https?://|mailto:)([^)\s]+)\)")
ANY_LINK = re.compile(r"\]\([^)\s]+\)")
INLINE_CODE = re.compile(r"`[^`\n]*`")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
# 64, 1.6, 9:40; not the month of a Chinese date
FIGURE = re.compile(r"\d[\d.,:]*\d|\d")
CHINESE_MONTH = re.compile(r"\d+ 月")


def pages() -> list[Path]:
    """Every .md file of the repository, without environments and the outputs of runs. In an sdist
    `share` has copies of datasets/ and scripts/configs, whose links start elsewhere.
    """
    found = []
    for path in ROOT.rglob("*.md"):
        folders = path.relative_to(ROOT).parts[:-1]
        outside = ("output", "build", "share")
        if not any(name.startswith(".") or name in outside for name in folders):
            found.append(path)
    return sorted(found)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def text_of(page: Path) -> str:
    """Without its blocks of code, in which brackets are no links and # no headings."""
    return CODE.sub("", page.read_text(encoding="utf-8"))


def code_of(page: Path, language: str) -> list[str]:
    blocks = CODE.findall(page.read_text(encoding="utf-8"))
    return [code for name, code in blocks if name == language]


def anchors_of(page: Path) -> set[str]:
    """What can stand after # in a link to a page, as GitHub makes it of the headings."""
    anchors = set()
    for heading in HEADING.findall(text_of(page)):
        kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
        anchors.add(kept.replace(" ", "-"))
    return anchors


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_no_dead_links(page):
    for link in LINK.findall(INLINE_CODE.sub("", text_of(page))):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        # mkdocs makes the anchors of the site as GitHub does: `toc` in mkdocs.yml.
        if anchor and target.suffix == ".md":
            assert anchor in anchors_of(target), link


def test_on_a_package_index_every_link_is_an_address():
    from release_links import absolute_links

    text = text_of(ROOT / "README.md")
    if not LINK.findall(INLINE_CODE.sub("", text)):
        pytest.skip("the README of a release, for which release_links.py has run")
    there = absolute_links(text, "https://github.com/owner/swift-rlvr", "v1.0.0")
    assert LINK.findall(INLINE_CODE.sub("", there)) == []
    assert "https://github.com/owner/swift-rlvr/raw/v1.0.0/docs/images/page.png" in there


@pytest.mark.parametrize(("english", "chinese"), TRANSLATIONS.items())
def test_a_translation_shows_the_same_code(english, chinese):
    """Its commands and outputs are tested in English only."""
    original, translated = (CODE.findall((ROOT / name).read_text()) for name in (english, chinese))
    assert original == translated


def facts_of(page: Path) -> tuple[set[str], set[str]]:
    """What stands in backticks in a page's prose, and its figures outside of them."""
    # Blocks of code may be indented, in a list.
    prose = re.sub(r"^ *```.*?^ *```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)
    names = set(INLINE_CODE.findall(prose))
    # In a release the links of README.md are addresses, and have its version in them.
    for pattern in (INLINE_CODE, ANY_LINK, CHINESE_MONTH):
        prose = pattern.sub("", prose)
    return names, set(FIGURE.findall(prose))


@pytest.mark.parametrize(("english", "chinese"), TRANSLATIONS.items())
def test_a_translation_has_the_same_figures_and_names(english, chinese):
    """A page that changes in English alone loses a figure or a name in most cases."""
    names, figures = facts_of(ROOT / english)
    translated_names, translated_figures = facts_of(ROOT / chinese)
    assert names ^ translated_names == set()
    assert figures ^ translated_figures == set()


@pytest.mark.parametrize("name", RUN)
def test_the_python_in_it_runs(name):
    code = "".join(code_of(ROOT / name, "python"))
    test = doctest.DocTestParser().get_doctest(code, {}, name, name, 0)
    assert test.examples or name == "docs/index.md"
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.mark.parametrize("name", RUN)
def test_the_shown_output_of_explain_is_what_it_prints(name):
    from commands import ran

    blocks = [code for code in code_of(ROOT / name, "console") if "swift-rlvr explain" in code]
    assert blocks
    for block in blocks:
        command, *shown = block.splitlines()
        output = [" ".join(line.split()) for line in ran(*shlex.split(command)[2:]).splitlines()]
        for line in shown:
            assert line == "..." or " ".join(line.split()) in output, line


def test_every_reward_and_dataset_is_named():
    from swift_rlvr.rewards import REWARDS
    from swift_rlvr.tasks import TASKS

    text = "".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    text += (ROOT / "README.md").read_text()
    for item in [*REWARDS, *TASKS]:
        assert f"`{item}`" in text or f"`{item}:FILE`" in text, item


def test_the_flags_that_pages_show_exist():
    """In every `swift-rlvr` line. Those of `train` and `doctor` are the trainer's own."""
    from typer.main import get_command

    from swift_rlvr.cli.app import app

    checked = 0
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        blocks = [code for _, code in CODE.findall(page.read_text(encoding="utf-8"))]
        text = "\n".join(blocks).replace("\\\n", " ")
        # `$ ` and variables may stand before it.
        for line in re.findall(r"^(?:\$ )?(?:\w+=\S* )*swift-rlvr (.*)$", text, re.MULTILINE):
            # shlex would take the # of file.jsonl#50 for the beginning of a comment.
            words = shlex.split(re.sub(r"\s#.*| \[.*\]", "", line))
            command: Any = get_command(app)
            while words and words[0] in getattr(command, "commands", {}):
                command = command.commands[words.pop(0)]
            if command.context_settings.get("ignore_unknown_options"):
                continue
            known = {name for parameter in command.params for name in parameter.opts}
            used = {word for word in words if word.startswith("--")}
            assert used <= known, f"{name_of(page)}: {line}"
            checked += 1
    assert checked > 3


# In another repository, or in an earlier commit that the page names.
ELSEWHERE = {
    "examples/train/grpo/plugin/plugin.py",
    "tests/benchmarks/bench_grpo.py",
    "tests/benchmarks/bench_turns.py",
}


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_the_files_that_it_names_exist(page):
    if page.name == "CHANGELOG.md":  # is about earlier versions
        return
    folders = "scripts|tests|plugin|examples|datasets|docs"
    pattern = rf"(?<![\w/.-])(?:{folders})/[\w/.-]*\w"
    for path in re.findall(pattern, page.read_text(encoding="utf-8")):
        if path not in ELSEWHERE and "NAME" not in path:
            assert (ROOT / path).exists() or (page.parent / path).exists(), path
