"""The guides in docs/: their Python runs, and their commands print what the pages show."""

import doctest
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from commands import ran, refused
from paths import ROOT
from swift_rlvr.evaluation.compare import figures_table
from swift_rlvr.rewards import REWARDS
from swift_rlvr.runs.records import Record
from swift_rlvr.runs.statistics import summarize
from swift_rlvr.tasks import TASKS
from swift_rlvr.utils.files import TINY_MODEL

GUIDES = ROOT / "docs" / "guides"
RESULTS = ROOT / "docs" / "results"
CODE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# The file that a page's JSON lines make.
FILES = {
    "code": "add.jsonl",
    "flat_reward": "completions.jsonl",
    "own_data": "my_math.jsonl",
    "several_tasks": "mixed.jsonl",
}
# Their figures are sampled, of one day: test_measures_have_the_names_that_evaluate_and_probe_print.
SAMPLED = ("probe", "compare")
SHOWN = sorted(
    page.stem for page in GUIDES.glob("*.md") if "```console\n$ swift-rlvr" in page.read_text()
)


def blocks_of(page: str, language: str) -> list[str]:
    text = (GUIDES / f"{page}.md").read_text(encoding="utf-8")
    return [code for found, code in CODE.findall(text) if found == language]


def commands_of(page: str) -> Iterator[tuple[list[str], list[str]]]:
    """The words of each `$ swift-rlvr` command that a page shows, and the lines printed below it."""
    for block in blocks_of(page, "console"):
        command, *shown = block.replace("\\\n", " ").splitlines()
        words = shlex.split(command.removeprefix("$ "))
        if words[0] == "swift-rlvr":
            yield words[1:], shown


def assert_shown(shown: list[str], output: str) -> None:
    """Every shown line is a line of the output; `...` stands for others."""
    printed = [" ".join(line.split()) for line in output.splitlines()]
    for line in shown:
        assert line == "..." or " ".join(line.split()) in printed, line


@pytest.mark.parametrize("page", ["own_reward", "several_tasks"])
def test_the_python_in_it_runs(page):
    code = "".join(blocks_of(page, "python"))
    test = doctest.DocTestParser().get_doctest(code, {}, page, page, 0)
    assert len(test.examples) > 3
    before = dict(REWARDS)
    output: list[str] = []
    try:
        assert doctest.DocTestRunner().run(test, out=output.append).failed == 0, "".join(output)
    finally:  # what an example adds is not to be seen by other tests
        REWARDS.clear()
        REWARDS.update(before)


@pytest.mark.parametrize("page", SHOWN)
def test_commands_print_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    if page in FILES:
        (tmp_path / FILES[page]).write_text("".join(blocks_of(page, "json")))
    commands = [each for each in commands_of(page) if each[0][0] not in SAMPLED]
    assert commands
    for words, shown in commands:
        # No test downloads a model: the tiny one has the same chat template.
        local = [str(TINY_MODEL) if word.startswith("Qwen/") else word for word in words]
        assert_shown(shown, ran(*local))


@pytest.mark.parametrize("page", ["flat_reward", "reading_a_run"])
def test_measures_have_the_names_that_evaluate_and_probe_print(page):
    """A sampled table is too slow to make again, and its figures are those of one day."""
    records = [
        Record(
            index=0,
            completion="",
            rewards={},
            row={"task": task},
            success=True,
            strict=True,
            format=True,
            tokens=7,
            finish="stop",
            seed=sample % 3,
        )
        for task in ("countdown", "gsm8k")
        for sample in range(8)
    ]
    printed = {label for label, *_ in figures_table(summarize(records))}
    group_figure = re.compile(r"groups of \d+ without a gradient")  # cli/probe.py

    text = (GUIDES / f"{page}.md").read_text(encoding="utf-8")
    tables = re.findall(r"^measure .*\n(?:─+\n)?((?:.+\n)+?)(?=\n|```)", text, re.MULTILINE)
    assert tables
    for line in "".join(tables).splitlines():
        label = re.split(r"\s{2,}", line)[0]
        if label != "..." and not label.startswith("reason: "):
            assert label in printed or group_figure.fullmatch(label), line


def test_a_name_of_open_r1_is_refused_as_shown(monkeypatch):
    (block,) = blocks_of("migrate", "console")
    command, shown = block.splitlines()
    variable, _, rest = command.removeprefix("$ ").partition(" swift-rlvr ")
    monkeypatch.setenv(*variable.split("="))
    assert refused(*shlex.split(rest)).startswith(shown.removesuffix("..."))


def test_every_dataset_is_listed():
    text = (GUIDES / "own_data.md").read_text(encoding="utf-8")
    for name in TASKS:
        assert f"`{name}`" in text or f"`{name}:FILE`" in text, name


def test_every_reward_there_is_named_for_those_who_move():
    """What ms-swift, TRL and open-r1 call a parameter, beside what it is called here."""
    text = (GUIDES / "migrate.md").read_text(encoding="utf-8")
    for reward in REWARDS.values():
        for parameter in fields(reward.Parameters):
            for name, library in parameter.metadata.get("elsewhere", {}).items():
                row = rf"\| {library} `{name}` \| `{parameter.name}`"
                assert re.search(row, text), (reward.name, name)


def test_the_script_that_regrades_writes_what_score_reads(tmp_path, monkeypatch):
    text = (RESULTS / "regraded.md").read_text(encoding="utf-8")
    (script,) = [code for language, code in CODE.findall(text) if language == "python"]
    right = {"is_correct": True, "solution": "9 * 2 = $<<9*2=18>>18\nA: 18"}
    wrong = {"is_correct": False, "solution": "13 * 2 = $<<13*2=26>>26\nA: 26"}
    row = {"question": "?", "ground_truth": "2 * 9 = <<2*9=18>>18\nA: 18", "6b_finetuning": wrong}
    row |= {"6b_verification": wrong, "175b_finetuning": wrong, "175b_verification": right}
    monkeypatch.chdir(tmp_path)
    Path("example_model_solutions.jsonl").write_text(json.dumps(row) + "\n")
    exec(script, {})
    for model, mean in (("175b_verification", 1.0), ("6b_finetuning", 0.0)):
        command = ("score", f"{model}.jsonl", "--reward_funcs", "accuracy", "--json")
        summary = json.loads(ran(*command, "--workers", 1))
        assert summary["rewards"]["external_accuracy"]["mean"] == mean
