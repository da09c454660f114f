"""The command line: what its commands leave behind; a user's mistakes end with code 2, a flag and
no traceback.
"""

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from inspect import cleandoc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer
from rich.console import Console
from typer.core import TyperOption
from typer.models import OptionInfo
from typer.utils import get_params_from_function

import swift_rlvr
from commands import ran, refused
from helpers import graded, printed
from swift_rlvr.cli import main
from swift_rlvr.cli.app import app
from swift_rlvr.cli.doctor import print_results
from swift_rlvr.launch.checks import failed, passed
from swift_rlvr.runs.statistics import summarize
from swift_rlvr.utils import errors
from swift_rlvr.utils.errors import how_to_install
from swift_rlvr.verifiers.countdown.generator import make_tasks
from swift_rlvr.verifiers.countdown.solver import difficulty
from swift_rlvr.verifiers.countdown.task_settings import TUTORIAL

MAKE = ["dataset", "make", "countdown", "--preset"]
TINY = ["tiny", "--split", "test", "--out", "x.jsonl"]


def functions_of(group):
    """The functions of all commands of a typer, and of the groups in it."""
    for command in group.registered_commands:
        yield command.callback
    for subgroup in group.registered_groups:
        yield from functions_of(subgroup.typer_instance)


def test_an_option_with_a_metavar_is_declared_by_its_name():
    """typer 0.27 calls an option by its metavar where it is given no name: --DATASET."""
    with_metavar = set()
    unnamed = []
    for function in functions_of(app):
        for name, parameter in get_params_from_function(function).items():
            option = parameter.default
            if isinstance(option, OptionInfo) and option.metavar:
                with_metavar.add(name)
                if f"--{name}" not in (option.param_decls or ()):
                    unnamed.append((function.__name__, name))
    assert unnamed == []
    assert with_metavar >= {"dataset", "columns", "server", "keep", "count"}


def test_no_paragraph_of_help_is_broken_twice_at_80_columns():
    """typer keeps the line breaks of a docstring, and a terminal breaks what is longer once more."""
    broken = []
    for function in functions_of(app):
        for paragraph in cleandoc(function.__doc__).split("\n\n"):
            lines = paragraph.split("\n")
            if len(lines) > 1:
                broken += [line for line in lines if len(line) > 78]
    assert broken == []


def test_each_flag_is_the_name_of_its_parameter_or_declared():
    renamed = {"as_json": "--json", "model_name": "--model", "all_rows": "--all"}
    checked = 0
    groups: list[Any] = [typer.main.get_command(app)]
    while groups:
        for command in groups.pop().commands.values():
            if hasattr(command, "commands"):
                groups.append(command)
                continue
            for parameter in command.params:
                if isinstance(parameter, TyperOption):
                    flag = renamed.get(parameter.name, f"--{parameter.name}")
                    assert parameter.opts[0] == flag, command.name
                    checked += 1
    assert checked > 80


def test_dataset_make(tmp_path):
    out = tmp_path / "new" / "train.jsonl"
    ran(*MAKE, "tutorial", "--split", "train", "--seed", 4, "--out", out, "--rows", 5)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows == list(make_tasks(TUTORIAL, "train", 4, 5))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["huge", "--split", "test", "--out", "x.jsonl"],
            "'huge' is not one of 'tutorial', 'tv', '24', 'tiny'",
        ),
        (["tiny", "--split", "test", "--out", "x.csv"], "--out: must end in .jsonl, got x.csv"),
        (
            ["tiny", "--split", "dev", "--out", "x.jsonl"],
            "'dev' is not one of 'train', 'validation', 'test'",
        ),
        ([*TINY, "--count", "3-9"], "--count: must be at least 2 and at most 6, got (3, 9)"),
        ([*TINY, "--target", "few"], "--target: must be a range"),
        ([*TINY, "--with_depth", "0"], "--with_depth: must be"),
        (["tutorial", *TINY[1:]], "--rows: is required"),
        ([*TINY, "--rows", "99999"], "--rows: is too large: asked for 99999 rows"),
        (
            ["tiny", "--split", "test", "--out", "/dev/null/x.jsonl"],
            "cannot write /dev/null/x.jsonl",
        ),
    ],
)
def test_mistakes_in_dataset_make(monkeypatch, tmp_path, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused(*MAKE, *arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_path_is_shown_as_it_is_written(tmp_path):
    """It may look like rich's marks: [red], :100:."""
    out = tmp_path / "[red]:100:.jsonl"
    shown = ran(*MAKE, "tutorial", "--split", "train", "--out", out, "--rows", 2)
    assert shown == f"written: {out}\n"
    graded = tmp_path / "[red]:100:graded.jsonl"
    shown = ran("dataset", "prepare", f"countdown:{out}", "--out", graded)
    assert shown.endswith(f"written: {graded}; train on it with --dataset countdown:{graded}\n")


def test_dataset_make_with_settings_of_ones_own(tmp_path):
    out = tmp_path / "tasks.jsonl"
    make = [*MAKE, "tutorial", "--split", "validation", "--rows", 50, "--out", out]
    own = [
        "--count",
        "5",
        "--number",
        "1-20",
        "--target",
        "24",
        "--operators",
        "+-*",
        "--no_negative",
    ]
    ran(*make, *own, "--no_fractions", "--with_depth", "2-3")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 50 and all(row["target"] == 24 and len(row["nums"]) == 5 for row in rows)
    settings = replace(TUTORIAL, operators="+-*", negative=False, fractions=False)
    assert all(2 <= difficulty(row["nums"], 24, settings)[1] <= 3 for row in rows)
    assert [path.name for path in tmp_path.iterdir()] == ["tasks.jsonl"]


def test_compare(tmp_path):
    for name, reward in (("before", 0.0), ("after", 1.0)):
        (tmp_path / name).mkdir()
        summary = {
            "settings": {"model": name, "seed": int(reward)},
            **summarize([graded(0, reward == 1.0)]),
        }
        (tmp_path / name / "summary.json").write_text(json.dumps(summary))
    out = tmp_path / "comparison.json"
    shown = ran("compare", tmp_path / "before", tmp_path / "after" / "summary.json", "--out", out)
    assert "0.000 (0.000 to 0.793)" in shown and "1.000 (0.207 to 1.000)" in shown
    assert "seed differs: 0 before, 1 after" in shown
    narrow = ran("compare", tmp_path / "before", tmp_path / "after", columns=40)
    assert (
        "success with format\n  before 0.000 (0.000 to 0.793)\n  after 1.000 (0.207 to 1.000)\n"
        in narrow
    )
    assert json.loads(out.read_text())["after"]["success"] == 1.0
    summary = tmp_path / "before" / "summary.json"
    message = refused("compare", summary, tmp_path / "after", "--out", summary)
    assert message == f"Error: --out: {summary} is compared, and would be overwritten"
    message = refused("compare", summary, tmp_path / "after", "--out", tmp_path / "x.txt")
    assert message == f"Error: --out: must end in .json, got {tmp_path}/x.txt"
    summary.write_text("{}")
    message = refused("compare", tmp_path / "before", tmp_path / "after")
    assert "expected a summary written by `swift-rlvr evaluate`" in message


def test_mistakes_in_evaluate_and_report(tmp_path):
    message = refused("evaluate", "model", "--dataset", tmp_path / "no.jsonl", "--out", tmp_path)
    assert message == f"Error: cannot read {tmp_path}/no.jsonl: No such file or directory"
    assert "expected a training run, a folder that has logging.jsonl" in refused(
        "report", tmp_path, "--out", tmp_path
    )


def test_an_error_names_the_flag_of_the_setting_and_ends_the_command_with_code_2(
    monkeypatch, capsys
):
    arguments = [
        "evaluate",
        "model",
        "--dataset",
        "x.jsonl",
        "--out",
        "out",
        "--max_completion_length",
        "0",
    ]
    monkeypatch.setattr(sys, "argv", ["swift-rlvr", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "Error: --max_completion_length: must be at least 1, got 0\n"


def test_an_interrupt_while_the_command_is_imported_shows_no_traceback(tmp_path):
    """Ctrl-C in its first seconds, before there is a command to end."""
    (tmp_path / "rich.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    done = subprocess.run(
        [sys.executable, "-m", "swift_rlvr.cli", "score", "x.jsonl"],
        env={
            **os.environ,
            "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 130 and not done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
@pytest.mark.parametrize("arguments", [["rewards"], ["--help"], ["explain", "4", "--gold", "4"]])
def test_a_full_disk_behind_the_output_is_an_error_of_one_line(arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "swift_rlvr.cli", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.stderr == "Error: cannot write the output: No space left on device\n"
    assert done.returncode == 2


def test_the_plugin_is_found_without_ms_swift(monkeypatch):
    with monkeypatch.context() as blocked:
        blocked.setitem(sys.modules, "swift", None)
        path = Path(ran("plugin").strip())
    assert path.is_absolute() and path.name == "rlvr_plugin.py" and "registered" in path.read_text()


@pytest.mark.parametrize(
    ("package", "extra", "arguments"),
    [
        ("transformers", "train", ["dataset", "show", "countdown.jsonl", "--model", "."]),
        ("torch", "train", ["evaluate", "model", "--dataset", "countdown.jsonl", "--out", "out"]),
        ("pyarrow", "train", ["dataset", "check", "countdown:rows.parquet"]),
        ("swift", "train", ["dataset", "check", "gsm8k"]),
        ("transformers", "trl", ["train", "trl"]),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch, tmp_path, package, extra, arguments
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "countdown.jsonl").write_text('{"nums": [1, 2], "target": 3}\n')
    (tmp_path / "rows.parquet").write_bytes(b"")
    with (
        monkeypatch.context() as blocked
    ):  # only for the command: pytest-randomly's hooks use torch after the test
        blocked.setitem(sys.modules, package, None)
        message = refused(*arguments)
    assert f"Error: {package.replace('_', '-')} is not installed, and " in message
    assert message.endswith(f"needs it: {how_to_install(extra)}")


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, "pip install 'swift-rlvr[train]'"),
        ({"url": "file:///a/b.whl"}, "pip install 'swift-rlvr[train] @ file:///a/b.whl'"),
        ({"url": "file:///a%20b", "dir_info": {"editable": True}}, "pip install -e '/a b[train]'"),
        (
            {"url": "https://x/y.git", "vcs_info": {"vcs": "git", "commit_id": "c0"}},
            "pip install 'swift-rlvr[train] @ git+https://x/y.git@c0'",
        ),
    ],
)
def test_what_is_missing_is_installed_from_where_this_copy_is_from(monkeypatch, origin, command):
    known = SimpleNamespace(read_text=lambda name: origin and json.dumps(origin))
    monkeypatch.setattr(errors, "distribution", lambda name: known)
    assert how_to_install("train") == command


def test_a_checkout_that_is_not_installed_names_its_script(monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(errors, "distribution", missing)
    assert Path(how_to_install("train").removeprefix("bash ")).is_file()


def test_the_version():
    assert ran("--version") == f"swift-rlvr {swift_rlvr.__version__}\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("train cou", ["countdown"]),
        ("doctor tin", ["tiny"]),
        ("dataset check gsm8k_", ["gsm8k_one_shot:"]),
        ("evaluate model --dataset gsm8k_", ["gsm8k_one_shot:"]),
        ("rewards external_cos", ["external_cosine"]),
        (
            "score --reward_funcs external_co",
            ["external_countdown", "external_code", "external_cosine"],
        ),
    ],
)
def test_names_are_completed(words, expected):
    variables = {"_SWIFT_RLVR_COMPLETE": "complete_bash", "COMP_WORDS": f"swift-rlvr {words}"}
    variables |= {"COMP_CWORD": str(len(words.split()))}
    done = subprocess.run(
        [sys.executable, "-c", "from swift_rlvr.cli.app import app; app(prog_name='swift-rlvr')"],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == expected, done.stderr


@pytest.mark.parametrize("width", [40, 80])
def test_the_doctor_breaks_lines_between_words_and_never_in_a_path(width):
    console, path = Console(file=io.StringIO(), width=width), "/a-folder/" * 12 + "train.jsonl"
    results = [
        passed("steps", "60 (max_steps)"),
        failed("dataset", f"there is no file {path}\nof a name", "correct it"),
    ]
    print_results([*results, failed("dataset", "another")], console)
    lines = [line.rstrip() for line in printed(console).splitlines()]
    assert lines == [
        "passed   steps    60 (max_steps)", "failed   dataset  there is no file", f"{'':18}{path}", f"{'':18}of a name",
        f"{'':18}-> correct it", f"failed   {'':9}another",
    ]  # fmt: skip
