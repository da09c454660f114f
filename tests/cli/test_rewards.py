"""`swift-rlvr explain` and `swift-rlvr score`: what they print and write, and how they refuse
mistakes.
"""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from commands import ran, refused
from helpers import write_records
from paths import PLUGIN
from swift_rlvr.cli.app import app
from swift_rlvr.rewards import REWARDS, Explanation, Reward, Rule
from swift_rlvr.rewards.countdown import CountdownReward
from swift_rlvr.rewards.parameters import BaseParameters
from swift_rlvr.runs.records import Record
from swift_rlvr.tasks.countdown import to_messages
from swift_rlvr.utils.settings import setting

TASK = ["--nums", "3 5 7", "--target", "22"]
RIGHT, WRONG = "<answer>3 * 5 + 7 = 22</answer>", "<answer>3 + 5 * 7</answer>"


class Accuracy(Reward):
    """Stands in for a reward with a gold: compares texts."""

    name, role, columns, reasons = (
        "external_test_gold",
        "verifier",
        ("solution",),
        ("right", "wrong"),
    )

    def grade(self, text, row):
        right = text == str(row["solution"])
        rules = [
            Rule("length", None, str(len(text))),
            Rule("[red]equal[/red]", right, row["solution"]),
        ]
        return Explanation(float(right), "right" if right else "wrong", text, rules)


class Optional(Accuracy):
    """Stands in for a reward with a parameter that may be None."""

    name = "external_test_optional"

    @dataclass(frozen=True)
    class Parameters(BaseParameters):
        most: float | None = setting(None, "no more than this")


@pytest.fixture
def registry(monkeypatch):
    for name in set(REWARDS) - {"external_countdown"}:
        monkeypatch.delitem(REWARDS, name)
    monkeypatch.setitem(REWARDS, Accuracy.name, Accuracy)


def explained(*arguments, stdin=None) -> dict:
    return json.loads(ran("explain", *arguments, "--json", stdin=stdin))["rewards"]


def write(path: Path, *rows) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_explain_for_people():
    output = ran("explain", RIGHT, *TASK)
    assert "external_countdown: reward 1.0 (correct)" in output
    assert "Judged (14 characters):\n  3 * 5 + 7 = 22" in output
    assert (
        "the value is the target: the value is 22, the target 22" in output
        and "failed" not in output
    )
    output = ran("explain", "<think>no</think>", *TASK)
    assert (
        "external_countdown: reward 0.0 (no answer)" in output
        and "There is nothing to judge in this completion." in output
    )
    outcomes = [
        line[:12].strip()
        for line in output.splitlines()
        if line.startswith(("passed", "failed", "not checked"))
    ]
    assert outcomes == ["passed", "failed"] + ["not checked"[:12].strip()] * 11
    assert max(map(len, output.splitlines())) <= 80


def test_explain_for_programs():
    found = explained(WRONG, *TASK)["external_countdown"]
    expected = CountdownReward().explain(WRONG, {"nums": [3, 5, 7], "target": 22})
    assert found == {**expected._asdict(), "rules": [rule._asdict() for rule in expected.rules]}
    assert (found["reward"], found["reason"]) == (0.0, "wrong value")


def test_where_the_completion_comes_from(tmp_path):
    (tmp_path / "c.txt").write_text(RIGHT + "\n")
    records = write(
        tmp_path / "r.jsonl", {"a": 1}, {"completion": RIGHT, "nums": [3, 5, 7], "target": 22}
    )
    turns = to_messages([3, 5, 7], 22, system=None)
    table = {"step": ["1", "1"], "prompt": [turns[0]["content"]] * 2, "completion": [WRONG, RIGHT]}
    tables = write(tmp_path / "completions.jsonl", table)
    for arguments, stdin in (
        ([RIGHT, *TASK], None),
        (["-", *TASK], RIGHT + "\n"),
        ([RIGHT, "--row", '{"nums": "3, 5, 7", "target": 22.0}'], None),
        (
            [
                "--row",
                json.dumps({"completion": [{"content": RIGHT}], "nums": [3, 5, 7], "target": 22}),
            ],
            None,
        ),
        (["--row", f"{records}:2"], None),
        (["--row", f"{tables}:1:2"], None),
        ([RIGHT, "--row", f"{records}:1", *TASK], None),
        ([RIGHT, "--row", f"{records}:2", "--target", "22"], None),
        ([RIGHT, "--row", f"{tables}:1:1", "--reward_funcs", "countdown"], None),
        ([RIGHT, "--column", "nums=[3, 5, 7]", "--column", "target=22"], None),
    ):
        assert explained(*arguments, stdin=stdin)["external_countdown"]["reward"] == 1.0, arguments
    assert explained("--row", f"{tables}:1:1")["external_countdown"]["reward"] == 0.0


def test_a_row_of_a_file_that_is_not_json_lines(tmp_path):
    (tmp_path / "c.csv").write_text(
        f'completion,nums,target\n"{WRONG}",3 5 7,22\n\n"{RIGHT}",3 5 7,22\n'
    )
    (tmp_path / "c.json").write_text(
        json.dumps([{"completion": RIGHT, "nums": [3, 5, 7], "target": 22}])
    )
    for place in ("c.csv:4", "c.json:1"):
        found = explained("--row", tmp_path / place)
        assert found["external_countdown"]["reward"] == 1.0, place
    message = refused("explain", "--row", tmp_path / "c.csv:3")
    assert f"--row: {tmp_path / 'c.csv'} has no row in line 3" in message
    (tmp_path / "c.csv").write_text("completion,nums,target\n1,2\n")
    message = refused("explain", "--row", tmp_path / "c.csv:2")
    assert "2 fields, and the first line names 3" in message


def test_only_one_line_break_at_the_end_is_taken_off(registry):
    gold = ["--gold", "7", "--reward_funcs", "test_gold"]
    assert explained("-", *gold, stdin="7\n\n")["external_test_gold"]["extracted"] == "7\n"


def test_rewards_and_parameters(registry):
    both = [
        "--reward_funcs",
        "countdown",
        "--reward_funcs",
        "external_test_gold",
        "--gold",
        "7",
        *TASK,
    ]
    found = explained("7", *both)
    assert {name: each["reason"] for name, each in found.items()} == {
        "external_countdown": "no answer",
        "external_test_gold": "right",
    }
    assert found["external_test_gold"]["rules"][0] == {
        "name": "length",
        "passed": None,
        "detail": "1",
    }
    typographic = ["<answer>3 × 5 + 7</answer>", *TASK]
    assert explained(*typographic)["external_countdown"]["reward"] == 1.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EXTERNAL_COUNTDOWN_NOTATION", "strict")
        assert explained(*typographic)["external_countdown"]["reward"] == 0.0
    assert (
        explained(RIGHT, *TASK, "--column", "task=math")["external_countdown"]["reason"]
        == "other task"
    )
    assert (
        explained(RIGHT, "--column", "task=math", "--reward_funcs", "countdown")[
            "external_countdown"
        ]["reward"]
        is None
    )
    assert "reward none, cannot be graded (bad gold)" in ran(
        "explain", "7", "--row", '{"nums": 0, "target": 1}'
    )


def test_a_parameter_that_may_be_none_is_shown(registry, monkeypatch):
    monkeypatch.setitem(REWARDS, Optional.name, Optional)
    assert "most: float | None; default None" in ran("rewards", "test_optional")


def test_gold_is_for_external_accuracy(registry, monkeypatch):
    monkeypatch.setitem(
        REWARDS, "external_accuracy", type("Gold", (Accuracy,), {"name": "external_accuracy"})
    )
    assert explained("7", "--gold", "7")["external_accuracy"]["reason"] == "right"
    assert list(explained("7", "--gold", "7", *TASK)) == ["external_countdown", "external_accuracy"]


def test_no_text_reaches_the_terminal_as_it_is(registry):
    text = "<answer>[bold]3[/bold] [/] \x1b[31m\u202e\u200b\ud800\n7\t</answer>"
    row = json.dumps({"completion": text, "solution": text})
    output = ran("explain", "--row", row, "--reward_funcs", "test_gold")
    assert (
        r"<answer>[bold]3[/bold] [/] \x1b[31m\u202e\u200b\ud800\n" in output
        and r"7\t</answer>" in output
    )
    assert "[red]equal[/red]: <answer>[bold]3" in output
    assert not set("\x1b\u202e\u200b\ud800\t") & set(output)


def test_long_texts_are_cut(registry):
    output = ran(
        "explain", "-", "--gold", "1", "--reward_funcs", "test_gold", stdin="(" * 999_999 + ")"
    )
    assert "Judged (1,000,000 characters):" in output
    assert "(...999,400morecharacters...(" in "".join(output.split())
    assert output.count("(") < 700 and "()\n" in output.replace(" ", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (TASK, "COMPLETION: there is no completion to grade: give one as an argument"),
        (
            ["x"],
            "name a reward with --reward_funcs, or give a Countdown task with --nums and --target",
        ),
        (["x", "--nums", "3"], "name a reward with --reward_funcs"),
        (
            ["x", "--nums", "3", "--reward_funcs", "countdown"],
            "needs the column 'target': give it with --target 22",
        ),
        (
            ["x", "--target", "3", "--reward_funcs", "countdown"],
            "needs the column 'nums': give it with --nums",
        ),
        (
            ["x", "--reward_funcs", "test_gold"],
            "external_test_gold needs the column 'solution': give it with --gold",
        ),
        (
            ["x", "--reward_funcs", "nope"],
            "there is no reward 'nope'; there are external_countdown, external_test_gold",
        ),
        (
            ["x", "--nums", "3 x", "--target", "1"],
            "--nums: expected whole numbers such as [3, 5, 7], got '3 x'",
        ),
        (
            ["x", "--nums", "3", "--target", "[/red]"],
            "--target: expected a whole number such as 22, got '[/red]'",
        ),
        (["x", "--column", "nums"], "--column: must be NAME=VALUE, got 'nums'"),
        (["x", "--row", "{"], "--row: the object: not JSON"),
        (
            ["x", "--row", "rows.jsonl"],
            "--row: must be '{\"nums\": [3, 5, 7], ...}', FILE:LINE, FILE:LINE:POSITION or TASK:FILE:LINE",
        ),
        (["x", "--columns", '{"q": "problem"}'], "--columns: renames columns of a row: give one"),
        (["x", "--columns", "q", "--row", "{}"], "--columns: must be an object in JSON"),
        (
            ["x", "--columns", '{"q": "p"}', "--row", '{"q": 1, "p": 2}'],
            "--row: the object: --columns: two columns would be named p",
        ),
        (["x", "--row", "no.jsonl:1"], "cannot read no.jsonl: No such file or directory"),
        (["--row", "table.jsonl:1"], "line 1 of table.jsonl has 2 completions: add a position"),
        (["--row", "table.jsonl:1:3"], "line 1 of table.jsonl has 2 completions, got position 3"),
        (["--row", "table.jsonl:1:0"], "line 1 of table.jsonl has 2 completions, got position 0"),
        (["--row", "table.jsonl:2"], "table.jsonl has no line 2"),
        (["--row", "table.jsonl:0"], "table.jsonl has no line 0"),
    ],
)
def test_mistakes_in_explain(registry, monkeypatch, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "table.jsonl", {"prompt": ["p", "p"], "completion": ["a", "b"]})
    assert message in refused("explain", *arguments)


def test_explain_renames_the_columns_of_a_row(tmp_path):
    row = {
        "Text of the task": "What is 3+4?",
        "meta": {"right": "7"},
        "reply": "<answer>7</answer>",
    }
    write(tmp_path / "rows.jsonl", row)
    place = f"{tmp_path}/rows.jsonl:1"
    names = {"Text of the task": "problem", "meta.right": "answer"}
    as_dataset = ("<answer>7</answer>", "--row", f"math:{place}")
    # The refusal names the flag that helps.
    assert "rename columns with --columns" in refused("explain", *as_dataset)
    right = "external_accuracy: reward 1.0"
    assert ran("explain", *as_dataset, "--columns", json.dumps(names)).startswith(right)

    names["reply"] = "completion"
    for named in (place, json.dumps(row)):
        assert ran("explain", "--row", named, "--columns", json.dumps(names)).startswith(right)

    # A name that the row lacks is noted; case does not matter.
    renamed = ["--columns", '{"ANSWER": "answer", "level": "l"}']
    arguments = ["explain", "7", "--row", '{"problem": "3+4?", "answer": "7"}', *renamed]
    result = CliRunner().invoke(app, arguments)
    assert result.stdout.startswith(right)
    assert result.stderr == "note: --row has no column level, which --columns renames\n"


ROWS = [
    {"completion": text, "nums": [3, 5, 7], "target": 22} for text in (RIGHT, WRONG, WRONG, "no")
]


def test_score(tmp_path, registry):
    file, out = write(tmp_path / "c.jsonl", *ROWS), tmp_path / "new" / "graded.jsonl"
    output = ran("score", file, "--out", out)
    assert "Verifier and format of the first lines: external_countdown" in output
    assert "4 completions graded by 1 process in" in output and f"written: {out}" in output.replace(
        "\n", ""
    )
    assert (
        max(
            len(line) for line in output.splitlines() if "written" not in line and "tmp" not in line
        )
        <= 80
    )
    cells = [" ".join(line.split()) for line in output.splitlines()]
    assert "external_countdown 0.250 0" in cells
    assert cells[cells.index("external_countdown wrong value 2 50.0%") :][1:3] == [
        "correct 1 25.0%",
        "no answer 1 25.0%",
    ]
    assert [json.loads(line) for line in out.read_text().splitlines()] == [
        {
            "file": str(file),
            "line": number,
            "rewards": {"external_countdown": reward},
            "reasons": {"external_countdown": reason},
        }
        for number, (reward, reason) in enumerate(
            [(1.0, "correct"), (0.0, "wrong value"), (0.0, "wrong value"), (0.0, "no answer")],
            start=1,
        )
    ]


def test_score_against_earlier_verdicts(tmp_path):
    """A verifier that pays something else than it did is found, with both reasons, in the file and
    in another one.
    """
    row = {"nums": [3, 5, 7], "target": 22, "task": "countdown"}
    records = []
    for index, (text, reward, reason) in enumerate(
        ((RIGHT, 1.0, "correct"), ("<answer>3</answer>", 1.0, "correct"))
    ):
        rewards: dict[str, float | None] = {"external_countdown": reward}
        reasons = {"external_countdown": reason}
        records.append(
            Record(index=index, completion=text, row=row, rewards=rewards, reasons=reasons)
        )
    write_records(tmp_path / "records.jsonl", records)
    flags = ("--against", "stored", "--fail-on-change")
    shown = ran("score", tmp_path / "records.jsonl", *flags, code=1, columns=300)
    assert "1 of 2 verdicts changed" in shown
    assert "line 2: external_countdown was 1.0 (correct) and is 0.0 (missing number)" in shown
    ran(
        "score",
        tmp_path / "records.jsonl",
        "--reward_funcs",
        "countdown",
        "--out",
        tmp_path / "now.jsonl",
    )
    same = ran(
        "score", tmp_path / "records.jsonl", "--against", tmp_path / "now.jsonl", "--fail-on-change"
    )
    assert "0 of 2 verdicts changed" in same
    found = json.loads(ran("score", tmp_path / "records.jsonl", "--against", "stored", "--json"))
    assert [(each["line"], each["now"]) for each in found["changed"]] == [
        (2, [0.0, "missing number"])
    ]
    assert "--fail_on_change: needs --against" in refused(
        "score", tmp_path / "records.jsonl", "--fail-on-change"
    )


def test_score_for_programs(tmp_path, monkeypatch):
    monkeypatch.setenv("EXTERNAL_COUNTDOWN_NOTATION", "strict")
    file = write(tmp_path / "c.jsonl", *ROWS, {"completion": RIGHT, "nums": [3, 5], "target": "22"})
    output = json.loads(ran("score", file, "--reward_funcs", "countdown", "--json"))
    assert output["completions"] == 5 and output["unusable"] == 0 and output["files"] == [str(file)]
    figures = output["rewards"]["external_countdown"]
    assert figures["reasons"] == {"wrong value": 2, "correct": 1, "no answer": 1, "extra number": 1}
    assert figures["mean"] == 0.2 and figures["parameters"]["notation"] == "strict"


def test_lines_that_cannot_be_used_are_named(tmp_path):
    file, out = (
        write(tmp_path / "c.jsonl", *ROWS, *[{"[/red]": 1}] * 12, *ROWS),
        tmp_path / "graded.jsonl",
    )
    output = ran("score", file, "--reward_funcs", "countdown", "--out", out)
    assert "12 could not be used:" in output and "... and 2 more" in output
    named = [line.partition(", line ")[2] for line in output.splitlines() if ", line " in line]
    assert [line.partition(": ")[0] for line in named] == [str(line) for line in range(5, 15)]
    assert all(line.endswith("got '[/red]'") for line in named)
    assert [json.loads(line)["line"] for line in out.read_text().splitlines()] == [
        1,
        2,
        3,
        4,
        17,
        18,
        19,
        20,
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no.jsonl"], "cannot read no.jsonl: No such file or directory"),
        (["empty.jsonl"], "no completions: the file is empty"),
        (["empty.jsonl", "--reward_funcs", "countdown"], "empty.jsonl: the file is empty"),
        (["c.jsonl", "empty.jsonl"], "empty.jsonl: the file is empty"),
        (["c.jsonl", "--reward_funcs", "nope"], "--reward_funcs: there is no reward 'nope'"),
        (
            ["c.jsonl", "--reward_funcs", "test_gold"],
            "line 1: external_test_gold needs the column 'solution', and the row has",
        ),
        (["c.jsonl", "--out", "out.txt"], "--out: must end in .jsonl, got out.txt"),
        (
            ["c.jsonl", "--out", "c.jsonl"],
            "--out: c.jsonl already exists and is not overwritten",
        ),
        (["c.jsonl", "--workers", "0"], "Invalid value for --workers"),
        (["c.jsonl", "--workers", "100000"], "--workers: must be at most"),
    ],
)
def test_mistakes_in_score(registry, monkeypatch, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "c.jsonl", *ROWS)
    write(tmp_path / "empty.jsonl")
    assert message in refused("score", *arguments).replace("'--workers'", "--workers")


def start(*arguments, **options) -> subprocess.Popen:
    command = [sys.executable, "-m", "swift_rlvr.cli", *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=PLUGIN, stdout=pipe, stderr=pipe, text=True, **options)


def test_several_processes_of_the_real_command(tmp_path):
    file = write(tmp_path / "c.jsonl", *ROWS * 2000)
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    summary = json.loads(
        ran("score", file, "--reward_funcs", "countdown", "--workers", 1, "--out", one, "--json")
    )
    assert summary["completions"] == 8000 and summary["workers"] == 1
    command = start(
        "score", file, "--reward_funcs", "countdown", "--workers", 2, "--out", two, "--json"
    )
    output, errors = command.communicate(timeout=1800)
    assert command.returncode == 0 and not errors
    assert json.loads(output)["completions"] == 8000 and json.loads(output)["workers"] == 2
    assert one.read_bytes() == two.read_bytes()


def test_interrupt(tmp_path):
    """Ctrl-C, which a terminal sends to all its processes: code 130, no file left, nothing
    printed.
    """
    long = {
        "completion": "<think>" + "1 + 2 is 3. " * 800 + "</think>" + RIGHT,
        "nums": [3, 5, 7],
        "target": 22,
    }
    file, part = write(tmp_path / "c.jsonl", *[long] * 10_000), tmp_path / "out.jsonl.part"
    arguments = [
        "score",
        file,
        "--reward_funcs",
        "countdown",
        "--workers",
        2,
        "--out",
        tmp_path / "out.jsonl",
    ]
    command, deadline = start(*arguments, start_new_session=True), time.monotonic() + 1800
    while not (part.exists() and part.stat().st_size):
        assert time.monotonic() < deadline and command.poll() is None, command.communicate()
        time.sleep(0.002)
    os.killpg(command.pid, signal.SIGINT)
    output, errors = command.communicate(timeout=1800)
    assert command.returncode == 130 and not output and not errors
    assert [path.name for path in tmp_path.iterdir()] == ["c.jsonl"]


@pytest.mark.parametrize(
    ("task", "row", "completion", "gets"),
    [
        (
            "tool_calls",
            {
                "query": "1 + 2?",
                "tools": '[{"name": "add", "parameters": {"a": {"type": "int"}, "b": {"type": "int"}}}]',
                "answers": '[{"name": "add", "arguments": {"a": 1, "b": 2}}]',
            },
            "[add(a=1, b=3)]",
            "external_tool_call: reward 0.0 (wrong argument)",
        ),
        (
            # `completion` is the right answer of json-mode-eval's rows, and not to be graded
            "json",
            {
                "prompt": "Ann is 30.",
                "schema": '{"type": "object", "required": ["age"]}',
                "completion": '{"age": 30}',
            },
            '{"age": 31}',
            "external_json: reward 0.0 (wrong answer)",
        ),
        (
            "sql",
            {
                "question": "How many?",
                "context": "CREATE TABLE head (age INTEGER)",
                "answer": "SELECT COUNT(*) FROM head WHERE age > 56",
            },
            "<answer>SELECT count(age) FROM head WHERE age > 56</answer>",
            "external_sql: reward 1.0 (correct)",
        ),
        (
            "instructions",
            {
                "prompt": "Use no commas.",
                "instruction_id_list": ["punctuation:no_comma"],
                "kwargs": [{}],
            },
            "One, two.",
            "external_instructions: reward 0.0 (too little text)",
        ),
    ],
)
def test_explain_reads_a_row_of_a_dataset_as_a_training_does(tmp_path, task, row, completion, gets):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n" + json.dumps(row) + "\n")
    assert ran("explain", completion, "--row", f"{task}:{path}:2").startswith(gets)
    message = refused("explain", completion, "--row", f"{task}:{path}:3")
    assert "rows.jsonl has no row in line 3" in message
