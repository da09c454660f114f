"""Rewards and tasks of other distributions: found by their entry points, each in a process of its
own.
"""

import pytest

from distributions import distribution, python

REWARD = """
from swift_rlvr.rewards import Grade, Reward

class {name}Reward(Reward):
    name, role, reasons = "external_{name}".lower(), "verifier", ("yes", "no")
    def grade(self, text, row):
        return Grade(1.0, "yes") if text else Grade(0.0, "no")
"""
TASK = """
from dataclasses import replace
from swift_rlvr.tasks.gsm8k import TASK as GSM8K

TASK = replace(GSM8K, name="mine", verifier="external_mine")
"""


def test_they_come_after_ours_in_the_order_of_their_names_whatever_the_order_on_the_path(tmp_path):
    distribution(tmp_path, "zebra", {"one.py": REWARD.format(name="One")}, {"a": "one:OneReward"})
    distribution(
        tmp_path, "apple", {"two.py": REWARD.format(name="Two"), "mine.py": TASK}, {"b": "two:TwoReward"},
        {"mine": "mine:TASK"},
    )  # fmt: skip
    code = """if 1:
        from swift_rlvr.rewards import REWARDS
        from swift_rlvr.tasks import TASKS
        print(list(REWARDS)[-2:], REWARDS.owners, REWARDS["one"]()(["text", ""]), list(TASKS)[-1], TASKS.owner("mine"))
        print(REWARDS.owner("external_countdown"), len(REWARDS) == len(list(REWARDS)), REWARDS.refused, TASKS.refused)
    """
    assert python("-c", code, path=tmp_path).stdout.splitlines() == [
        "['external_one', 'external_two'] {'external_one': 'zebra', 'external_two': 'apple'} [1.0, 0.0] mine apple",
        "swift-rlvr True [] []",
    ]


def test_importing_the_registries_imports_nobody_else(tmp_path):
    distribution(
        tmp_path, "loud", {"loud.py": "print('imported')"}, {"x": "loud:X"}, {"x": "loud:X"}
    )
    result = python(
        "-c", "import swift_rlvr.rewards, swift_rlvr.tasks; print('done')", path=tmp_path
    )
    assert (result.stdout, result.stderr) == ("done\n", "")


@pytest.mark.parametrize("words", [(), ("dataset",), ("evaluate",), ("score",)], ids=" ".join)
def test_help_imports_nobody_else(tmp_path, words):
    distribution(
        tmp_path, "loud", {"loud.py": "print('imported')"}, {"x": "loud:X"}, {"x": "loud:X"}
    )
    shown = python("-m", "swift_rlvr.cli", *words, "--help", path=tmp_path).stdout
    assert "Usage: " in shown and "imported" not in shown


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        ("import not_there", "ModuleNotFoundError: No module named 'not_there'"),
        ("raise SystemExit('stop')", "SystemExit: stop"),
        ("def", "SyntaxError: "),
        ("", "AttributeError: module 'broken' has no attribute 'BrokenReward'"),
        ("BrokenReward = 3", "expected a subclass of swift_rlvr.rewards.Reward, got 3"),
        (
            REWARD.format(name="Broken").replace("external_", ""),
            "must begin with 'external_', got 'broken'",
        ),
        (
            REWARD.format(name="Broken").replace('("yes", "no")', "()"),
            "BrokenReward must name every reason",
        ),
        (
            REWARD.format(name="Broken").replace('"external_Broken"', '"external_format"'),
            "the name 'external_format' is taken by FormatReward of swift-rlvr",
        ),
        (
            REWARD.format(name="Broken").replace('"external_Broken"', '"external_fine"'),
            "the name 'external_fine' is taken by FineReward of good",
        ),
        (
            REWARD.format(name="Broken") + "BrokenReward.__name__ = 'FineReward'",
            "the class name 'FineReward' is taken by external_fine of good, and two would be logged as one",
        ),
    ],
)
def test_a_broken_one_is_named_with_its_distribution_and_the_rest_goes_on(
    tmp_path, module, problem
):
    distribution(
        tmp_path, "good", {"fine.py": REWARD.format(name="Fine")}, {"z": "fine:FineReward"}
    )
    distribution(tmp_path, "bad", {"broken.py": module}, {"zz": "broken:BrokenReward"})
    code = "from swift_rlvr.rewards import REWARDS; print(list(REWARDS)[-1], *REWARDS.refused)"
    result = python("-c", code, path=tmp_path)
    assert result.stdout.startswith(
        "external_fine Refused(distribution='bad', entry_point='zz = broken:BrokenReward'"
    )
    assert problem in " ".join(result.stderr.split()) and result.stderr.count("\n") == 1
    assert result.stderr.startswith("swift_rlvr.rewards: left out zz of the distribution bad: ")


def test_one_rank_of_a_training_warns(tmp_path):
    distribution(tmp_path, "bad", {}, {"zz": "not_there:X"})
    code = "from swift_rlvr.rewards import REWARDS; len(REWARDS)"
    first, second = (python("-c", code, path=tmp_path, RANK=rank).stderr for rank in "01")
    assert "left out zz of the distribution bad: ModuleNotFoundError" in first and second == ""


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        ("TASK = 3", "expected a swift_rlvr.tasks.Task, got 3"),
        (
            TASK.replace('"mine"', '"a/b"'),
            "must be lower-case letters, digits and _, got 'a/b'",
        ),
        (TASK.replace('"mine"', '"gsm8k"'), "the name 'gsm8k' is taken by a task of swift-rlvr"),
    ],
)
def test_tasks_that_cannot_be_used(tmp_path, task, problem):
    distribution(tmp_path, "bad", {"mine.py": task}, None, {"mine": "mine:TASK"})
    result = python(
        "-c", "from swift_rlvr.tasks import TASKS; print(list(TASKS)[-1])", path=tmp_path
    )
    assert result.stdout == "mixed\n"
    assert result.stderr.startswith("swift_rlvr.tasks: left out mine of the distribution bad: ")
    assert problem in result.stderr


@pytest.mark.parametrize(
    "first",
    [
        "import mine.reward",
        "import mine",
        "from swift_rlvr.rewards import REWARDS",
        "from swift_rlvr.rewards import REWARDS; list(REWARDS)",
        "import swift_rlvr.cli",
    ],
)
def test_a_package_that_looks_into_the_registry_while_it_is_imported(tmp_path, first):
    """Whichever is imported first: the package's entry point waits until its import has ended."""
    look = "from swift_rlvr.rewards import REWARDS\nSEEN = list(REWARDS), REWARDS['accuracy'](), 'none' in REWARDS\n"
    modules = {
        "mine/reward.py": look + REWARD.format(name="Mine"),
        "mine/__init__.py": f"{look}import mine.reward\n",
    }
    distribution(tmp_path, "mine", modules, {"external_mine": "mine.reward:MineReward"})
    code = f"{first}\nfrom swift_rlvr.rewards import REWARDS\nprint(REWARDS['mine'].__module__, REWARDS.refused)"
    result = python("-c", code, path=tmp_path)
    assert (result.stdout, result.stderr) == ("mine.reward []\n", "")


def test_a_package_that_adds_its_reward_itself_as_well(tmp_path):
    module = (
        REWARD.format(name="Mine")
        + "from swift_rlvr.rewards import add_reward\nadd_reward(MineReward)\n"
    )
    distribution(tmp_path, "someone", {"mine.py": module}, {"external_mine": "mine:MineReward"})
    code = "import mine; from swift_rlvr.rewards import REWARDS; print(REWARDS.owner('external_mine'), REWARDS.refused)"
    assert python("-c", code, path=tmp_path).stdout == "someone []\n"


def test_several_threads_see_all_of_it(tmp_path):
    module = "import time; time.sleep(0.2)\n" + REWARD.format(name="Mine")
    distribution(tmp_path, "mine", {"mine.py": module}, {"external_mine": "mine:MineReward"})
    code = """if 1:
        from concurrent.futures import ThreadPoolExecutor
        from swift_rlvr.rewards import REWARDS
        with ThreadPoolExecutor(8) as pool:
            print(set(pool.map(lambda _: "external_mine" in REWARDS, range(8))))
    """
    assert python("-c", code, path=tmp_path).stdout == "{True}\n"


def test_a_file_whose_columns_are_those_of_ours_is_ours(tmp_path):
    distribution(
        tmp_path, "someone", {"mine.py": TASK.replace('"mine"', '"a"')}, None, {"a": "mine:TASK"}
    )
    (tmp_path / "rows.jsonl").write_text('{"question": "1 + 1?", "answer": "#### 2"}\n')
    code = f"""if 1:
        from swift_rlvr.tasks.sources import parse_source
        print([parse_source(name + "{tmp_path}/rows.jsonl").task.name for name in ("", "a:")])
    """
    assert python("-c", code, path=tmp_path).stdout == "['gsm8k', 'a']\n"
