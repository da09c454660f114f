"""Rewards of others by import path: they earn what they earn in their own trainer."""

import asyncio
import pickle
import re
from pathlib import Path

import pytest

from rewards import others_rewards
from rewards.function_rewards import word_count
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.build import build_rewards
from swift_rlvr.rewards.imported import import_reward, paths_in_file
from swift_rlvr.runs.grade_log import GradeLog
from swift_rlvr.success import Judges, key_of, logged_name, role_of
from swift_rlvr.utils.errors import InputError

MODULE = "rewards.others_rewards"
FILE = Path(others_rewards.__file__)
TEXTS = ["so 7", "no", ""]


def messages(text):
    return [{"role": "assistant", "content": text}]


def built(name, module=MODULE):
    (reward,) = build_rewards([f"{module}:{name}"])
    return reward


# function, columns, what it earns for TEXTS
CASES = [
    ("right", {"solution": ["7", "7", None]}, [1.0, 0.0, None]),
    ("short", {"limit": [3, 3, 3]}, [0.0, 1.0, 1.0]),
    ("short", {}, [1.0, 1.0, 1.0]),
    ("three", {}, [0.0, 1.0, 1.0]),
    ("through_a_helper", {}, [1.0, 0.0, 0.0]),
    ("later", {}, [0.4, 0.2, 0.0]),
    ("Orm", {"solution": ["so 7", "yes", ""]}, [1.0, 0.0, 1.0]),
    ("one_by_one", {"solution": ["7", "7", "7"]}, [1.0, 0.0, 0.0]),
]


@pytest.mark.parametrize("module", [MODULE, str(FILE)], ids=["module", "file"])
@pytest.mark.parametrize(("name", "columns", "earned"), CASES)
def test_both_trainers_shapes_earn_the_same(module, name, columns, earned):
    """Texts as ms-swift hands them over, messages as TRL does; other columns change nothing."""
    for completions in (TEXTS, [messages(text) for text in TEXTS]):
        reward = built(name, module)
        others = {"nums": [[1]] * 3, "trainer_state": object()}
        assert reward(completions, **columns, **others) == pytest.approx(earned)


def test_trls_own_rewards():
    rewards = pytest.importorskip("trl.rewards")
    completions = ["<think>\na\n</think>\nb", "b"]
    (ours,) = build_rewards(["trl.rewards:think_format_reward"])
    theirs = rewards.think_format_reward([messages(text) for text in completions])
    assert ours(completions) == theirs == [1.0, 0.0]
    assert (role_of(ours), logged_name(ours)) == ("format", "think_format_reward")
    (accuracy,) = build_rewards(["trl.rewards:accuracy_reward"])
    assert accuracy.columns == ("solution",) and role_of(accuracy) == "verifier"
    assert accuracy([r"\boxed{7}", r"\boxed{8}"], solution=["$7$", "$7$"]) == [1.0, 0.0]


def test_what_trainers_have_beside_the_row_comes_by_trls_names():
    reward = built("asked")
    assert reward.columns == ()  # none that a dataset must have
    turns = [{"role": "user", "content": "?"}]
    under_trl = {"prompts": [turns], "completion_ids": [[1, 2]]}
    under_ms_swift = {"messages": [turns + messages("x")], "response_token_ids": [[1, 2]]}
    assert reward(["x"], **under_trl) == reward(["x"], **under_ms_swift) == [2.0]


def test_it_can_be_asked_while_an_event_loop_runs():
    async def ask():
        return built("later")(["12345"])

    assert asyncio.run(ask()) == [0.5]


def test_roles_and_names(monkeypatch):
    assert (role_of(built("Orm")), role_of(built("short"))) == ("verifier", None)
    reward = built("right")
    assert (key_of(reward), logged_name(reward)) == (f"{MODULE}:right", "right")
    monkeypatch.setenv("SWIFT_RLVR_ROLES", "right=verifier")
    judges = Judges.from_rewards([built("right"), REWARDS["external_format"]()])
    judgement = judges.of({f"{MODULE}:right": 1.0, "external_format": 0.0})
    assert (judgement.success, judgement.strict) == (True, False)


def test_it_is_recorded_explained_pickled_and_built_as_ms_swift_builds_it():
    reward = import_reward(f"{MODULE}:right")(args=object())
    reward.log = GradeLog()
    assert reward(["so 7"], solution=["7"]) == [1.0]
    (record,) = reward.log.take()
    assert record.rewards == {f"{MODULE}:right": 1.0} and record.row == {"solution": "7"}
    assert reward.explain("no", {"solution": "7"}).reason == "no reward"
    for name in ("right", "one_by_one"):
        again = pickle.loads(pickle.dumps(built(name)))
        assert again(["so 7"], solution=["7"]) == [1.0]


def test_a_reward_of_this_kind_is_itself():
    assert build_rewards(["rewards.function_rewards:word_count"])[0].name == word_count.name
    path = "swift_rlvr.rewards.countdown:CountdownReward"
    assert [reward.name for reward in build_rewards([path, "countdown"])] == ["external_countdown"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (
            "nowhere:f",
            "there is no module 'nowhere'; to name a file, write .py, as in nowhere.py:f",
        ),
        ("nowhere.py:f", "there is no file nowhere.py"),
        (f"{MODULE}:nothing", f"{MODULE} has no 'nothing'"),
        (f"{MODULE}:", "must be module:function or file.py:function"),
        (":f", "must be module:function or file.py:function"),
        (f"{MODULE}:number", "must be a function, got 7"),
        (
            f"{MODULE}:Weighted",
            r"cannot be built without arguments \(.*'weight'\); name an object of it",
        ),
        (f"{MODULE}:Weighted.score", "is a method of a class; name that of an object"),
        (f"{MODULE}:no_completions", r"no_completions: \(solution\) does not say what it takes"),
    ],
)
def test_what_cannot_be_imported_is_named(path, message):
    with pytest.raises(InputError, match=f"--reward_funcs: .*{message}"):
        build_rewards([path])


@pytest.mark.parametrize(
    ("code", "line", "problem"),
    [
        ("x = 1\ndef f(:", 2, "SyntaxError: invalid syntax"),
        ("import no_such_module_at_all", 1, "ModuleNotFoundError: No module named 'no_such_mod"),
        ("\nimport sys\nsys.exit('no GPU')", 3, "SystemExit: no GPU"),
        # The decorator raises in a file of ours.
        (
            "from swift_rlvr.rewards import reward\n"
            "@reward('mine', role='shaping')\ndef f(completion):\n    return 1.0",
            2,
            "ValueError: .*must begin with 'external_'",
        ),
    ],
)
def test_a_file_that_cannot_be_imported_is_named_with_its_line(tmp_path, code, line, problem):
    (file := tmp_path / "broken_file.py").write_text(code)
    expected = rf"^--reward_funcs: {re.escape(str(file))}, line \d+: {problem}"
    for build in (lambda: build_rewards([f"{file}:f"]), lambda: paths_in_file(str(file))):
        with pytest.raises(InputError, match=expected) as info:
            build()
        assert f", line {line}:" in str(info.value) and "\n" not in str(info.value)


def test_a_module_that_cannot_be_imported_is_named_with_its_line(tmp_path, monkeypatch):
    (tmp_path / "broken_module.py").write_text("import broken_helper\n")
    (tmp_path / "broken_helper.py").write_text("\n1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    where = re.escape(f"{tmp_path / 'broken_helper.py'}, line 2")
    with pytest.raises(InputError, match=f"{where}: ZeroDivisionError: division by zero"):
        build_rewards(["broken_module:f"])
    with pytest.raises(InputError, match=f"{where}: ZeroDivisionError"):
        build_rewards([f"{tmp_path / 'broken_module.py'}:f"])


def test_what_a_function_gets_wrong_is_named():
    with pytest.raises(ValueError, match="'solution'"):
        built("right")(["x"])
    with pytest.raises(ValueError, match="must return a list of 64 numbers.*returned \\[1.0\\]"):
        built("too_few")(["x", "y"] * 32)
    with pytest.raises(ValueError, match="must return a list .*returned array\\(0.5\\)"):
        built("one_for_all")(["x", "y"] * 32)
    with pytest.raises(ValueError, match="needs 'log_extra', which does not come with these rows"):
        built("only_in_trl")(["x"])


def test_one_error_changes_no_later_verdict():
    """The shape of a completion is read once, and not tried out."""
    reward = built("short")
    assert reward(["abc"] * 2, limit=[5, 5]) == [1.0, 1.0]
    assert reward(["abc"] * 2, limit=["5", 5]) == [0.0, 1.0]
    assert reward(["abc" * 9] * 2, limit=[5, 5]) == [0.0, 0.0], "of messages the length would be 1"
    assert built("reads_kwargs")(["x", "y"], gold=["x", "x"]) == [1.0, 0.0]


def test_two_rewards_of_one_name_are_refused():
    """The trainers log by it."""
    with pytest.raises(InputError, match="would both be logged as right"):
        build_rewards([f"{MODULE}:right", f"{FILE}:right"])
