"""`swift-rlvr check`: over ours and other people's rewards and tasks, whatever those do."""

import os
import subprocess
import sys

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
    assert "exit code 3" in text
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


OWN = """
from helper import is_right
from swift_rlvr.rewards import reward

EXAMPLES = [("so 7", {"gold": "7"}, 1.0), ("so 8", {"gold": "7"}, 0.0), ("7", {"gold": None}, None)]

@reward("external_mine", role="verifier", examples=EXAMPLES)
async def mine(completions, gold):
    return list(map(is_right, completions, gold))

def bare(completion, gold):
    return is_right(completion, gold)

def plain(completions, gold, **kwargs):
    return list(map(is_right, completions, gold))

plain.examples = EXAMPLES
plain.role = "verifier"
"""


@pytest.fixture
def own_folder(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "helper.py").write_text(
        "def is_right(text, gold):\n    return float(text.split()[-1:] == [gold])\n"
    )
    return tmp_path


def in_folder(folder, *words):
    """The console script, which does not have the working folder on its path."""
    command = [sys.executable, "-P", "-m", "swift_rlvr.cli", *words]
    env = os.environ | {"PYTHONPATH": str(ROOT / "plugin")}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


def test_a_file_of_ones_own_and_functions_in_it(own_folder):
    rules = len(REWARD_RULES)
    done = in_folder(own_folder, "check", "mine.py", "mine.py:plain", "mine:mine")
    text = " ".join(done.stdout.split())
    for name, owner in (
        ("mine.py:mine", "mine.py"),
        ("mine.py:plain", "mine.py"),
        ("mine:mine", "mine"),
    ):
        assert f"passed reward {name} {owner} {rules} rules" in text, done.stdout + done.stderr
    assert "3 passed" in text and done.returncode == 0


WITHOUT_EXAMPLES = """
import random

def short(completion):
    return -len(completion) / 1000

def same(completion, gold):
    return float(gold in completion)

def of_a_dict(completion, gold):
    return float(gold["value"] in completion)

def raises(completions):
    return [1 / 0]

def drawn(completion):
    return random.random()

def spoils(completions, messages):
    messages[0].append({"role": "user", "content": "?"})
    return [1.0] * len(completions)

def returns_nothing(completions, gold):
    [float(each in text) for text, each in zip(completions, gold)]

def texts(completions, gold):
    return [str(float(each in text)) for text, each in zip(completions, gold)]

def by_the_completion(completions, gold):
    paid = {text: float(each in text) for text, each in zip(completions, gold)}
    return list(paid.values())

def in_another_order(completions, gold):
    paid = sorted((len(text), each in text) for text, each in zip(completions, gold))
    return [float(right) for _, right in paid]

def of_the_first_row(completions, gold):
    return [float(gold[0] in text) for text in completions]

def none_for_wrong(completion, gold):
    return 1.0 if gold in completion else None

def among_all(completions, gold):
    right = [float(each in text) for text, each in zip(completions, gold)]
    return [each - sum(right) / len(right) for each in right]
"""


# What is said of each, by the exit status of the command that tries them.
OF_FUNCTIONS: dict[int, dict[str, tuple[str, ...]]] = {
    0: {
        "short": (
            "completions, as texts and as messages, it raised nothing and gave -1000.02 to 0",
            "Not judged: whether right answers earn more than wrong ones",
        ),
        "same": ("generated completions and '7' or '8' in gold, as texts and as messages",),
        "of_a_dict": (
            "and '7' or '8' in gold, it raised on each",
            "so nothing was judged: that needs examples=[(completion, row, reward)",
        ),
        "among_all": ("as texts and as messages, it raised nothing and gave",),
    },
    1: {
        "raises": ("ZeroDivisionError",),
        "spoils": ("it changes the columns, which other rewards also read",),
        "drawn": ("the same completions get different rewards the second time",),
        # Of what it returns, the rows are not the cause.
        "returns_nothing": ("one per completion; it returned None",),
        "texts": ("the function returned '1.0' in place of a number",),
        # A completion may occur twice, and rows differ.
        "by_the_completion": ("must return a list of 30 numbers",),
        "in_another_order": ("in reverse order the same completions get different rewards",),
        "none_for_wrong": ("it gives 1 to some completions and None to all others",),
        "of_the_first_row": ("in reverse order the same completions get different rewards",),
    },
}


@pytest.mark.parametrize(("code", "ends"), [(0, "4 not judged"), (1, "9 failed")])
def test_functions_without_examples_are_called_with_generated_completions(tmp_path, code, ends):
    (tmp_path / "bare.py").write_text(WITHOUT_EXAMPLES)
    functions = OF_FUNCTIONS[code]
    done = in_folder(tmp_path, "check", *(f"bare.py:{name}" for name in functions))
    said = " ".join(done.stdout.split())
    assert done.returncode == code and said.endswith(ends), done.stdout + done.stderr
    for name, messages in functions.items():
        assert f"reward bare.py:{name} " in said
        for message in messages:
            assert message in said


def test_a_file_without_rewards_is_refused(own_folder):
    done = in_folder(own_folder, "check", "helper.py")
    assert "helper.py has no @reward; to name a function, write helper.py:is_right" in done.stderr
    assert in_folder(own_folder, "check", "none.py").stderr == "Error: there is no file none.py\n"


def test_a_file_in_place_of_a_function_names_its_functions(own_folder):
    (own_folder / "rows.jsonl").write_text('{"problem": "1 + 1?", "answer": "2"}\n')
    (own_folder / "bare.py").write_text(
        "import json\nfrom helper import is_right\n\ndef _own(completion):\n    return 1.0\n\n"
        "def no_reward():\n    return 1.0\n\ndef short(completion):\n    return 1.0\n"
    )
    asked = in_folder(own_folder, "attack", "mine.py", "--dataset", "math:rows.jsonl").stderr
    functions = "mine.py:mine, mine.py:bare, mine.py:plain"
    assert f"mine.py names no function; name one as mine.py:NAME ({functions})" in asked
    scored = in_folder(own_folder, "score", "rows.jsonl", "--reward_funcs", "none.py").stderr
    assert "--reward_funcs: there is no file none.py" in scored
    listed = in_folder(own_folder, "rewards", "bare.py").stderr
    assert listed.endswith("bare.py has no @reward; to name a function, write bare.py:short\n")


def test_a_file_that_cannot_be_imported_is_one_line(own_folder):
    (own_folder / "bad.py").write_text("x = 1\ndef f(:\n")
    (own_folder / "rows.jsonl").write_text('{"problem": "1 + 1?", "answer": "2"}\n')
    for words in (
        ["check", "bad.py"],
        ["rewards", "bad.py"],
        ["attack", "bad.py:f", "--dataset", "math:rows.jsonl"],
    ):
        done = in_folder(own_folder, *words)
        assert done.returncode == 2, words
        assert done.stderr.count("\n") == 1, done.stderr
        assert "bad.py, line 2: SyntaxError: invalid syntax" in done.stderr


def test_a_reward_that_only_raises_ends_scoring_with_one_line(own_folder):
    (own_folder / "raises.py").write_text("def f(completion):\n    return 1 / 0\n")
    line = '{"problem": "1 + 1?", "answer": "2", "completion": "2"}\n'
    (own_folder / "c.jsonl").write_text(line * 4)
    done = in_folder(own_folder, "score", "c.jsonl", "--reward_funcs", "raises.py:f")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "ZeroDivisionError" in done.stderr
    assert "raises.py, line 2; it is handed texts" in done.stderr


def test_rewards_shows_how_a_function_of_ones_own_is_called(own_folder):
    shown = in_folder(own_folder, "rewards", "mine.py:plain").stdout
    assert "mine.py:plain, verifier, logged as plain" in shown
    assert "Takes: a batch of texts at a time, all other columns" in shown
    assert (
        "external_mine, verifier, logged as MineReward"
        in in_folder(own_folder, "rewards", "mine.py").stdout
    )
