"""The page plugin/swift_rlvr/rewards/README.md says what the code says, and what it shows works.

python tests/rewards/test_readme.py     # prints the page's table of all parameters
"""

import ast
import doctest
import json
import logging
import os
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path

import pytest
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.gate import GATE_REASONS, GateParameters
from swift_rlvr.rewards.parameters import BaseParameters, names_elsewhere, variable

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "plugin" / "swift_rlvr" / "rewards" / "README.md"
TEXT = PAGE.read_text(encoding="utf-8")
PROSE = re.sub(r"^```.*?^```$", "", TEXT, flags=re.DOTALL | re.MULTILINE)
PARAMETER_HEADER = ("reward", "parameter", "default", "ms-swift flag", "meaning")
MIGRATION_HEADER = ("open-r1", "TRL", "ms-swift", "here", "what differs here")
NAMES_HEADER = ("reward", "from", "name there", "default there", "name here", "default here")
OVERVIEW_HEADER = ("reward", "pays for", "range", "columns (optional)", "tasks by default")


def parameter_rows() -> list[tuple[str, ...]]:
    """The rows of the table: those all rewards share once, and of each reward what is its own or differs from them."""
    shared = {each.name: each for each in fields(GateParameters)}
    everywhere = {each.name for each in fields(BaseParameters)}
    rows = [row("all" if name in everywhere else "shaping", each) for name, each in shared.items()]
    for name, reward in REWARDS.items():
        for each in fields(reward.Parameters):
            if each.name not in shared or row(name, each) != row(name, shared[each.name]):
                rows.append(row(f"`{name}`", each))
    return rows


def row(reward: str, each) -> tuple[str, ...]:
    default, flag = each.default, each.metadata.get("flag")
    if isinstance(default, bool):
        default = str(default).lower()
    elif isinstance(default, tuple):
        default = ",".join(default)
    shown = "none" if default == "" else f"`{default}`"
    # A bare tag would be taken for HTML, a bare | for the end of the cell.
    meaning = re.sub(r"(?<!`)</?\w+>", r"`\g<0>`", each.metadata["help"]).replace("|", r"\|")
    return reward, f"`{each.name}`", shown, f"`--{flag}`" if flag else "", meaning


def render(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """The table as markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(re.sub(" +", " ", f"| {' | '.join(line)} |") for line in lines)


def table(header: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The rows of the page's table with this header."""
    rows = []
    lines = iter(TEXT.splitlines())
    for line in lines:
        if cells(line) == header:
            assert set(next(lines)) <= set("|- ")
            break
    for line in lines:
        if not line.startswith("|"):
            break
        rows.append(cells(line))
    return rows


def cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def section(heading: str) -> str:
    """What stands under a heading, up to the next one of any level."""
    return re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#+ |\Z)", TEXT, re.DOTALL | re.MULTILINE)[1]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_every_parameter_is_in_a_row():
    named = {(reward.strip("`"), parameter.strip("`")) for reward, parameter, *_ in table(PARAMETER_HEADER)}
    for name, reward in REWARDS.items():
        for each in fields(reward.Parameters):
            assert {(name, each.name), ("all", each.name), ("shaping", each.name)} & named


def source_of(package: str, file: str) -> ast.Module:
    """A file of an installed package, which is not imported: that takes ten seconds."""
    spec = find_spec(package)
    if spec is None:
        pytest.skip("needs the extra [train]")
    return ast.parse((Path(spec.origin).parent / file).read_text(encoding="utf-8"))


def trl_rewards() -> dict[str, list[str]]:
    """The rewards of TRL, each with its arguments."""
    found = {}
    for file in ("accuracy_rewards", "format_rewards", "other_rewards"):
        for node in source_of("trl", f"rewards/{file}.py").body:
            if isinstance(node, ast.FunctionDef):
                found[node.name] = [each.arg for each in node.args.args]
    return found


def ms_swift_rewards() -> set[str]:
    (names,) = [
        node.value.keys
        for node in source_of("swift", "rewards/orm.py").body
        if isinstance(node, ast.Assign) and node.targets[0].id == "orms"
    ]
    return {name.value for name in names}


def ms_swift_defaults() -> dict[str, str]:
    """ms-swift's flags for rewards, each with its default."""
    nodes = ast.walk(source_of("swift", "rlhf_trainers/args_mixin.py"))
    fields = [node for node in nodes if isinstance(node, ast.AnnAssign) and node.value is not None]
    return {node.target.id: ast.unparse(node.value) for node in fields}


def test_the_table_of_rewards_names_those_that_exist():
    rows = table(MIGRATION_HEADER)
    here = {name for *_, here, _ in rows for name in quoted(here)}
    assert here < set(REWARDS) and len(rows) == 13
    assert all(bool(quoted(here)) != (here == "none") for *_, here, _ in rows)
    trl, ms_swift = ([name for row in rows for name in quoted(row[column])] for column in (1, 2))
    assert sorted(trl) == sorted(trl_rewards())
    assert set(ms_swift) == {"accuracy", "format", "cosine", "repetition", "soft_overlong"} <= ms_swift_rewards()


def test_the_table_of_names_is_that_of_the_code():
    """Each name leads to ours, no name of the code is left out, and our defaults are right."""
    rows = table(NAMES_HEADER)
    shown: dict[tuple[str, str], set[str]] = {}
    for reward, _, there, _, here, default in rows:
        (reward,), (here,) = quoted(reward), quoted(here)
        shown.setdefault((reward, here), set()).update(quoted(there))
        (ours,) = [each for each in fields(REWARDS[reward].Parameters) if each.name == here]
        assert default == f"`{ours.default}`"
        for name in quoted(there):
            assert name == here or names_elsewhere(REWARDS[reward].Parameters)[name] == here
    for name, reward in REWARDS.items():
        for each in fields(reward.Parameters):
            known = {*each.metadata.get("elsewhere", ()), each.metadata.get("flag")} - {None}
            assert shown.get((name, each.name), set()) - {each.name} == known


def test_the_table_of_names_is_that_of_trl_and_ms_swift():
    arguments, defaults = trl_rewards(), ms_swift_defaults()
    for reward, source, there, default, *_ in table(NAMES_HEADER):
        if source == "TRL":
            (theirs,) = [quoted(row[1])[0] for row in table(MIGRATION_HEADER) if quoted(reward)[0] in row[3]]
            assert set(quoted(there)) <= set(arguments[theirs])
        elif source == "ms-swift":
            ((name,), (value, *_)) = quoted(there), quoted(default)
            assert defaults[name] == value
    assert {source for _, source, *_ in table(NAMES_HEADER)} == {"open-r1", "TRL", "ms-swift"}
    without = section("Coming from open-r1, TRL or ms-swift").partition("Names without a counterpart")[2]
    assert (
        "reasoning_delimiters" in quoted(without) and "reasoning_delimiters" in arguments["reasoning_accuracy_reward"]
    )


@pytest.mark.parametrize("name", REWARDS)
def test_the_section_of_a_reward_names_its_reasons_its_source_and_its_limits(name):
    text = section(name)
    reasons = re.search(r"^- Reasons: (.*?)\n- ", text, re.DOTALL | re.MULTILINE)[1]
    assert quoted(" ".join(reasons.split())) == list(REWARDS[name].reasons)
    assert "\n- Source: " in text and "\n- Limits: " in text


def test_the_section_of_the_gate_names_its_reasons_and_the_rewards_that_have_it():
    text = section("The outcome gate")
    assert [name for name in quoted(text) if name in GATE_REASONS] == list(GATE_REASONS)
    (shaping,) = re.findall(r"^Shaping rewards are (.*?)\. ", " ".join(text.split()))
    assert set(quoted(shaping)) == {name for name, reward in REWARDS.items() if reward.role != "verifier"}


def test_links_lead_somewhere():
    headings = {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in re.findall("^#+ (.+)$", TEXT, re.M)
    }
    for target in re.findall(r"\[`?[\w.]+`?\]\(([^)]+)\)", PROSE):
        assert target[1:] in headings if target.startswith("#") else (PAGE.parent / target).is_file(), target


def test_reward_names_and_variables_exist():
    own = set(re.findall(r'name = "(external_\w+)"', TEXT))
    text = re.sub(r"^```console\n.*?^```$", "", TEXT, flags=re.DOTALL | re.MULTILINE)  # those are run
    assert set(re.findall(r"\bexternal_\w+", text)) - own - {"external_plugins"} == set(REWARDS)
    variables = {variable(name, each.name) for name, reward in REWARDS.items() for each in fields(reward.Parameters)}
    named = set(re.findall(r"\bEXTERNAL_[A-Z][A-Z_]*", text))
    assert named and named <= variables


def launches() -> list[tuple[dict[str, str], dict[str, list[str]]]]:
    """Environment and flags of each `swift rlhf` of the page."""
    found = []
    for block in blocks("bash"):
        words = shlex.split(block.replace("\\\n", " "))
        start = words.index("swift")
        assert words[start + 1] == "rlhf"
        flags: dict[str, list[str]] = {}
        for word in words[start + 2 :]:
            if word.startswith("--"):
                assert word[2:] not in flags, f"{word} stands twice"
                flag = flags.setdefault(word[2:], [])
            elif word != "...":
                flag.append(word)
        found.append((dict(word.split("=", 1) for word in words[:start]), flags))
    return found


@pytest.mark.slow  # it imports ms-swift
@pytest.mark.parametrize("number", range(5))
def test_launch_commands_name_what_exists(number, monkeypatch):
    pytest.importorskip("swift", reason="needs the extra [train]")
    from swift.arguments import RLHFArguments
    from swift.rewards import orms

    assert len(launches()) == 5
    environment, flags = launches()[number]
    assert set(flags) <= {each.name for each in fields(RLHFArguments)}
    assert all(values for values in flags.values())
    assert all((ROOT / path).is_file() for path in flags["external_plugins"])
    names = flags["reward_funcs"]
    assert set(names) <= {*REWARDS, *orms}
    assert len(flags.get("reward_weights", names)) == len(names)
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    for name in names:
        if name in REWARDS:
            REWARDS[name]()  # raises for a value that does not fit
    used = {variable(name, each.name) for name in names if name in REWARDS for each in fields(REWARDS[name].Parameters)}
    assert set(environment) <= used, "set for a reward that is not used"


@pytest.mark.slow  # it imports ms-swift
def test_flags_and_callback_in_the_text_exist():
    pytest.importorskip("swift", reason="needs the extra [train]")
    from swift.arguments import RLHFArguments

    known = {each.name for each in fields(RLHFArguments)} | {
        "row",
        "set",
        "reward",
    }  # the last three are those of swift-rlvr
    assert set(re.findall(r"`[^`\n]*?--([a-z_]+)", PROSE)) <= known
    for name in re.findall(r"--callbacks (\w+)", TEXT):
        assert f'"{name}": ' in (ROOT / "plugin" / "rlvr_plugin.py").read_text()


@pytest.mark.parametrize("number", range(4))
def test_console_output_is_what_the_command_prints(number, tmp_path):
    assert len(blocks("console")) == 4
    command, _, expected = blocks("console")[number].removeprefix("$ ").partition("\n")
    words = shlex.split(command)
    start = words.index("swift-rlvr")
    (tmp_path / "completions.jsonl").write_text(*blocks("jsonl"))
    result = subprocess.run(
        [sys.executable, "-m", "swift_rlvr.cli", *words[start + 1 :]],
        cwd=tmp_path,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("EXTERNAL_")},
            **dict(word.split("=", 1) for word in words[:start]),
            **{"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONPATH": str(ROOT / "plugin")},
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    assert result.returncode == (2 if expected.startswith("Error") else 0)
    same = doctest.OutputChecker().check_output(
        expected, result.stdout, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    assert same, result.stdout


@pytest.mark.parametrize("number", range(5))
def test_python_examples_run(number):
    assert len(blocks("python")) == 5
    example = doctest.DocTestParser().get_doctest(blocks("python")[number], {}, f"example {number}", str(PAGE), 0)
    assert example.examples
    before = dict(REWARDS)
    try:
        output: list[str] = []
        assert doctest.DocTestRunner().run(example, out=output.append).failed == 0, "".join(output)
    finally:  # what an example adds is not to be seen by other tests
        REWARDS.clear()
        REWARDS.update(before)


def test_the_trl_example_is_python():
    (block,) = blocks("py")
    compile(block, str(PAGE), "exec")


def test_logged_names_are_those_of_the_code():
    classes = {reward.__name__: reward for reward in REWARDS.values()}
    logged = re.findall(r"^reasons/(\w+)/(\w+) ", TEXT, re.MULTILINE)
    assert logged
    for name, reason in logged:
        assert reason in [each.replace(" ", "_") for each in classes[name].reasons]
    (line,) = [json.loads(block) for block in blocks("json") if '"step"' in block]
    for name, reason in line["reasons"].items():
        assert reason in classes[name].reasons and name in line["rewards"]
    for name in re.findall(r"rewards/([A-Z]\w+)/mean", TEXT):
        assert name in classes


def test_the_json_examples_can_be_graded():
    tests = [each for each in quoted(section("external_code")) if each[0] in "[{"]
    assert len(tests) == 10
    function, program = "def add(a, b): return a + b", "print(3)"
    for test in tests:
        right, wrong = (function, program) if "add" in test else (program, function)
        answers = [f"<answer>{each}</answer>" for each in (right, wrong)]
        assert REWARDS["external_code"]()(answers, tests=[test, test]) == [1.0, 0.0], test
    solution = json.loads(blocks("json")[0])["solution"]
    assert REWARDS["external_accuracy"]()(["<answer>72</answer>"], solution=[solution]) == [1.0]


def test_the_warning_is_the_one_that_is_logged(caplog):
    (shown,) = [block for block in blocks("text") if "no reward other than 0" in block]
    reward = REWARDS["external_format_strict"]()
    with caplog.at_level(logging.WARNING):
        for _ in range(20):
            reward(["<think>1 + 1</think><answer>2</answer>"] * 8)
    assert [" ".join(message.split()) for message in caplog.messages] == [" ".join(shown.split())]


if __name__ == "__main__":
    print(render(PARAMETER_HEADER, parameter_rows()))
