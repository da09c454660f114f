"""A reward that is a function: what the decorator makes of it, and what holds whatever it does."""

import asyncio
import doctest
import inspect
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from paths import ROOT
from rewards import function_rewards, own_kinds
from rewards.function_rewards import careless, costly, short, word_count
from swift_rlvr.contract import check_reward
from swift_rlvr.rewards import REWARDS, Reward, add_reward, reward
from swift_rlvr.rewards.function import ENOUGH, as_messages
from swift_rlvr.rewards.imported import _reward_class, import_reward
from swift_rlvr.success import RAISED, role_of
from swift_rlvr.utils.errors import InputError, NotInstalledError

WORDS = "one two"
STATE = SimpleNamespace(global_step=3)


def test_it_is_a_reward_like_any_other():
    assert isinstance(word_count, Reward) and word_count.__name__ == "WordCountReward"
    assert (word_count.name, role_of(word_count)) == ("external_word_count", "verifier")
    messages = [{"role": "assistant", "content": WORDS}]
    assert word_count([WORDS, messages, "one"], count=[2, 2, 2], other=[0] * 3) == [1.0, 1.0, 0.0]
    assert all(type(value) is float for value in word_count([WORDS, "one"], count=[2, 2]))
    with pytest.raises(ValueError, match="needs the dataset column 'count'; .* are 'number'"):
        word_count([WORDS], number=[2])


def test_every_rule_holds():
    assert check_reward(type(word_count)) == []


def test_it_is_registered_and_built_as_ms_swift_builds_it(monkeypatch):
    function: Any = word_count  # as an entry point may name it, rather than its class
    add_reward(function)
    built = REWARDS["word_count"](args=object())
    assert built([WORDS], count=[2]) == [1.0]
    monkeypatch.setenv("EXTERNAL_WORD_COUNT_TASKS", "mine")
    built = REWARDS["word_count"](args=None)
    assert built([WORDS] * 2, count=[2, None], task=["mine", "theirs"]) == [1.0, None]
    with pytest.raises(ValueError, match="'external_word_count' is taken by WordCountReward"):
        reward("external_word_count", role="verifier")(lambda completion: 1.0)


def test_a_function_that_is_defined_again_takes_its_own_place():
    for value in (1.0, 0.5):  # as a cell of a notebook that is run twice

        @reward("external_again", role="shaping")
        def again(completion, value=value):
            return value

    assert REWARDS["again"]()(["x"]) == again(["x"]) == [0.5]


def test_reasons_and_optional_columns():
    assert short.columns == ("limit",) and short.optional_columns == ("margin", "unit")
    grades = short.grades(
        ["abc", "abc", "a b", "abc"],
        limit=[3, 3, 2, "3"],
        margin=[None, 1, None, None],
        unit=[None, None, "words", None],
    )
    assert grades == [(1.0, "short"), (0.25, "long"), (1.0, "short"), (None, "not graded")]
    assert {reason for _, reason in grades} <= set(short.reasons)


@pytest.mark.parametrize(
    ("value", "grade"),
    [
        (2, (2.0, "full reward")),
        (True, (1.0, "full reward")),
        (0.5, (0.5, "partial reward")),
        (-1, (-1.0, "no reward")),
        (None, (None, "not graded")),
        ((None, "bad count"), (None, "bad count")),
        ((0, "too long"), (0.0, "too long")),
        (float("nan"), (None, "not graded")),
        (float("inf"), (0.0, RAISED)),
        ("right", (0.0, RAISED)),
        ("1.0", (0.0, RAISED)),
        ((1.0, "a", "b"), (0.0, RAISED)),
        ([1.0], (0.0, RAISED)),
        ({"score": 1.0}, (0.0, RAISED)),
        # A reason that is no text ended TRL's training, which counts reasons.
        ((1.0, {"length": 3}), (0.0, RAISED)),
        ((1.0, 2.0), (0.0, RAISED)),
    ],
)
def test_what_a_function_may_return(value, grade):
    @reward("external_returns", role="shaping")
    def returns(completion):
        return value

    assert returns.grades(["x"]) == [grade]
    assert returns(["x"], log_metric=lambda *metric: None) == [grade[0]]
    explanation = returns.explain("x", {})
    assert explanation[:2] == grade and explanation.rules


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([1.0], "returned [1.0] in place of a number"),
        ((1.0, {"a": 3}), "returned (1.0, {'a': 3}): it takes a number, or a number and a text"),
    ],
)
def test_what_is_no_number_or_no_reason_is_shown(value, message, caplog):
    made("decorated", lambda completion: value)(["x"])
    assert message in caplog.text


def test_two_lambdas_are_two_rewards():
    names = ("external_first_of_two", "external_second_of_two")
    first, second = [reward(name, role="shaping")(lambda completion: 0.5) for name in names]
    assert first.__name__ == "FirstOfTwoReward" and second(["x"]) == [0.5]
    del REWARDS[names[0]], REWARDS[names[1]]


def test_it_is_not_asked_about_a_missing_text_or_a_missing_gold():
    function_rewards.CALLS.clear()
    completions = [None, [{"role": "assistant", "content": None}], 3, WORDS]
    grades = word_count.grades(completions, count=[2, 2, 2, None])
    assert grades == [(0.0, "no text")] * 3 + [(None, "not graded")]
    assert function_rewards.CALLS == []


HOW = {
    "decorated": lambda function: reward("external_kind", role="verifier")(function),
    "by import path": lambda function: _reward_class("own_kinds:kind", "kind", function)(),
}


def made(how, function):
    """A reward of a function, which is registered for nobody."""
    if how == "by import path" and inspect.isclass(function):
        function = function()
    try:
        return HOW[how](function)
    finally:
        REWARDS.present.pop("external_kind", None)


def as_ms_swift_calls(reward):
    """All columns as lists, and what its trainer knows of a completion."""
    count = len(own_kinds.TEXTS)
    turns = [{"role": "user", "content": "?"}]
    return reward(
        own_kinds.TEXTS,
        gold=own_kinds.GOLD,
        messages=[[*turns, *as_messages(text)] for text in own_kinds.TEXTS],
        request_id=["chatcmpl-1"] * count,
        finish_reason=["stop"] * count,
        rollout_infos=[{}] * count,
        response_token_ids=[[1, 2]] * count,
        trainer_state=STATE,
    )


def as_trl_calls(reward):
    count = len(own_kinds.TEXTS)
    return reward(
        prompts=[[{"role": "user", "content": "?"}]] * count,
        completions=list(map(as_messages, own_kinds.TEXTS)),
        completion_ids=[[1, 2]] * count,
        gold=own_kinds.GOLD,
        trainer_state=STATE,
        log_extra=lambda column, values: None,
        log_metric=lambda name, value: None,
    )


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("function", [*own_kinds.KINDS, 0, 1])
def test_every_kind_of_function_earns_the_same_in_both_trainers(function, how):
    if function in (0, 1):
        pytest.importorskip("swift.rewards")
        function = own_kinds.ms_swift()[function]
    for call in (as_ms_swift_calls, as_trl_calls):
        assert call(made(how, function)) == own_kinds.EARNED
    if function not in (own_kinds.of_the_state, own_kinds.of_the_state_alone):
        row = {"gold": "7", "messages": [{"role": "user", "content": "?"}]}
        assert made(how, function).explain("so 7", row).reward == 1.0


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("function", own_kinds.ONLY_FAIL)
def test_a_function_that_only_fails_ends_the_run(function, how):
    for call in (as_ms_swift_calls, as_trl_calls):
        reward = made(how, function)
        with pytest.raises(ValueError, match="raised on every completion so far: .*Error") as info:
            for _ in range(ENOUGH):
                call(reward)
        assert info.value.__cause__ is not None, "its traceback"
        assert reward.failed >= ENOUGH


def test_a_command_ends_where_a_training_waits_for_more_completions():
    reward = made("decorated", own_kinds.always_raises)
    assert reward.grades(["7"], gold=["7"]) == [(0.0, RAISED)], "which may be what the model wrote"
    with pytest.raises(ValueError, match="on every completion so far: ZeroDivisionError"):
        reward.grades(["7"], gold=["7"])
    assert reward.__getstate__()["first_failure"] is None, "which may not pickle"


def test_a_training_whose_first_completions_a_reward_cannot_read_goes_on():
    strict = made("decorated", own_kinds.raises_sometimes)
    for _ in range(ENOUGH - 1):
        assert strict(["seven"], gold=["7"]) == [0.0]
    assert strict(["so 7", "seven"], gold=["7"] * 2) == [1.0, 0.0]
    assert strict(["seven"] * ENOUGH, gold=["7"] * ENOUGH) == [0.0] * ENOUGH
    # So does one that another reward asks.
    asked, asking = made("decorated", own_kinds.always_raises), made("decorated", own_kinds.single)
    asking.ask(asked)
    assert asking(["so 7"], gold=["7"]) == [1.0]
    assert asked.grades(["7"] * 2, gold=["7"] * 2) == [(0.0, RAISED)] * 2


@pytest.mark.parametrize(
    "function", [own_kinds.raises_sometimes, own_kinds.raises_sometimes_together]
)
def test_a_completion_on_which_it_raises_earns_nothing_and_the_others_their_own(function):
    sometimes = made("decorated", function)
    grades = sometimes.grades(["so 7", "so seven", "so 8", "7"], gold=["7"] * 4)
    assert grades == [
        (1.0, "full reward"),
        (0.0, RAISED),
        (0.0, "no reward"),
        (1.0, "full reward"),
    ]
    # It has worked, so that a batch on which it fails does not end the run.
    assert sometimes(["seven", "eight"], gold=["7"] * 2) == [0.0, 0.0]


def exits_sometimes(completion: str, gold: str) -> float:
    """As argparse does for a command line that it cannot read."""
    if "-" in completion:
        raise SystemExit(2)
    return float(gold in completion)


async def exits_later(completion: str, gold: str) -> float:
    await asyncio.sleep(0)
    return exits_sometimes(completion, gold)


def exits_in_a_generator(completions: list[str], gold: list[str]) -> Iterator[float]:
    yield from map(exits_sometimes, completions, gold)


@pytest.mark.parametrize("function", [exits_sometimes, exits_later, exits_in_a_generator])
def test_a_completion_on_which_it_ends_the_program_does_not_end_the_training(function):
    """Where it ran in a thread of its own, what waits for it waited forever."""
    paid = made("decorated", function).grades(["7", "--seven"], gold=["7"] * 2)
    assert paid == [(1.0, "full reward"), (0.0, RAISED)]


def test_a_batch_is_never_graded_one_by_one():
    """Where a function compares completions, each alone would be the best."""

    @reward("external_longest", role="shaping")
    def longest(completions):
        if "bad" in completions:
            raise ValueError("bad")
        return [float(text == max(completions, key=len)) for text in completions]

    del REWARDS["external_longest"]
    assert longest(["a", "bad", "aaaa"]) == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("function", own_kinds.CANNOT_BE_TOLD)
def test_a_function_of_which_it_cannot_be_told_what_it_takes_is_refused(function, how):
    with pytest.raises(ValueError, match=r"kind: \(.*\) does not say what it takes: name a"):
        made(how, function)


def test_what_it_takes_can_be_said():
    @reward("external_kind", role="shaping", batch=True, messages=True)
    def answers(answers, **columns):
        return [float(len(answer)) for answer in answers]

    @reward("external_kind_2", role="shaping", batch=False)
    def answer(answer):
        return 1.0

    del REWARDS["external_kind"], REWARDS["external_kind_2"]
    assert answers(["two turns", as_messages("a") * 2]) == [1.0, 2.0]
    assert answer(["x"]) == [1.0]


def test_coroutines_of_one_event_loop_run_at_the_same_time():
    """What a function keeps from one batch to the next, such as a semaphore, belongs to one loop."""
    together = asyncio.Barrier(3)

    @reward("external_waiting", role="shaping")
    async def waiting(completion):
        await together.wait()
        return 1.0

    del REWARDS["external_waiting"]
    for _ in range(2):
        assert waiting(["a", "b", "c"]) == [1.0] * 3


def test_what_trl_logs_reaches_trl():
    logged = []
    logs = made("decorated", own_kinds.logs)
    logs(["so 7"], gold=["7"], log_extra=lambda *extra: logged.append(extra))
    assert logged == [("gold", ["7"]), ("LogsReward/reason", ["full reward"])]


def test_what_only_a_trainer_has_is_asked_for():
    state = made("decorated", own_kinds.of_the_state)
    assert state.columns == ("gold",), "a dataset need not have it"
    with pytest.raises(ValueError, match="needs 'trainer_state', which does not come with these"):
        state(["so 7"], gold=["7"])


def test_a_function_that_raises_pays_nothing_and_says_so_once(caplog, monkeypatch):
    monkeypatch.setattr(type(careless), "warned", False)
    assert careless(["7", "seven", "8", ""], number=[7] * 4) == [1.0, 0.0, 0.0, 0.0]
    assert (
        caplog.text.count("external_careless raised an error; the completion earns 0.0: Value") == 1
    )
    rule = careless.explain("seven", {"number": 7}).rules[0]
    assert rule.passed is False and rule.detail.startswith("ValueError: invalid literal for int()")


def test_an_error_earns_no_more_than_a_wrong_answer(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(type(costly), "warned", False)
    texts = ["7", "seven", "8", None]
    assert costly(texts, number=[7] * 4) == [1.0, -1.0, -1.0, -1.0]
    assert costly.explain("seven", {"number": 7}).reward == -1.0
    assert "declare least" not in caplog.text

    file = tmp_path / "mine.py"
    file.write_text(
        "def silent(completion, number): return 1.0 if int(completion) == number else -1.0\n"
        "def said(completion, number): return silent(completion, number)\nsaid.least = -1\n"
        "def kind(completion, number): return 0.5 + int(completion) / 20\nkind.least = 0.5\n"
    )
    assert import_reward(f"{file}:said")()(texts, number=[7] * 4) == [1.0, -1.0, -1.0, -1.0]
    # It raises on all, and so has paid nothing that would be less.
    assert import_reward(f"{file}:kind")()(["seven"], number=[7]) == [0.5]
    assert "declare least" not in caplog.text
    silent = import_reward(f"{file}:silent")()
    for _ in range(2):
        assert silent(texts, number=[7] * 4) == [1.0, 0.0, -1.0, 0.0]
    warned = (
        "silent pays -1, less than the 0 that a completion earns on which it raises: declare least"
    )
    assert caplog.text.count(warned) == 1


def test_the_contract_finds_a_function_that_raises():
    problems = [problem for _, problem in check_reward(type(careless))]
    assert any("'<answer>nan</answer>' makes it raise ValueError" in each for each in problems)


@pytest.mark.parametrize("error", [ImportError("no sympy"), NotInstalledError("no sympy")])
def test_a_package_that_is_missing_is_not_the_policys_fault(error):
    @reward("external_needy", role="verifier")
    def needy(completion):
        raise error

    with pytest.raises(InputError, match="no sympy"):
        needy(["x"])


@pytest.mark.parametrize(
    ("function", "columns", "message"),
    [
        (lambda completion: 1.0, ["count"], "must take the completion and the columns count"),
        (
            lambda completion, other: 1.0,
            ["count"],
            "must take the completion and the columns count",
        ),
    ],
)
def test_a_function_that_does_not_take_its_columns_is_refused(function, columns, message):
    with pytest.raises(ValueError, match=message):
        reward("external_odd", role="verifier", columns=columns)(function)
    assert "odd" not in REWARDS


def test_a_name_or_a_role_that_cannot_be_used_is_refused():
    with pytest.raises(ValueError, match="must begin with 'external_'"):
        reward("odd", role="verifier")(lambda completion: 1.0)
    with pytest.raises(ValueError, match="`role` of .* must be one of verifier, format, shaping"):
        reward("external_odd", role="judge")(lambda completion: 1.0)


def test_it_pickles_by_the_name_of_the_function(tmp_path):
    again = pickle.loads(pickle.dumps(word_count))
    assert type(again) is type(word_count) and again([WORDS], count=[2]) == [1.0]
    (tmp_path / "pickle").write_bytes(pickle.dumps(type(word_count)(tasks=("mine",))))
    code = f"""if 1:
        import pickle, pathlib
        reward = pickle.loads(pathlib.Path({str(tmp_path / "pickle")!r}).read_bytes())
        print(reward.own_tasks, reward(["one two"], count=[2]))
    """
    # The other process finds this module where the tests are.
    paths = os.pathsep.join(map(str, (ROOT / "plugin", ROOT / "tests")))
    shown = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == "('mine',) [1.0]\n"


MAIN = """
from swift_rlvr.rewards import reward

@reward("external_mine", role="verifier")
def mine(completion, gold):
    return is_right(completion, gold)

def is_right(completion, gold):
    return float(completion == gold)

if __name__ == "__main__":
    import pathlib, sys, {module} as pickle
    pathlib.Path(sys.argv[1]).write_bytes(pickle.dumps(type(mine)()))
"""
LOADED = """
import pathlib, pickle, sys
print(pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())(["7", "8"], gold=["7", "7"]))
"""


def ran_script(folder, name, text, *arguments):
    (folder / name).write_text(text)
    env = os.environ | {"PYTHONPATH": str(ROOT / "plugin")}
    command = [sys.executable, name, *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


def test_one_of_a_script_can_be_shipped_to_a_worker_of_ray(tmp_path):
    """Ray pickles with cloudpickle, and its workers have another `__main__`."""
    pytest.importorskip("cloudpickle")
    dumped = ran_script(tmp_path, "main.py", MAIN.format(module="cloudpickle"), "mine.pickle")
    assert dumped.returncode == 0, dumped.stderr
    assert ran_script(tmp_path, "worker.py", LOADED, "mine.pickle").stdout == "[1.0, 0.0]\n"


def test_one_of_a_script_pickles_for_a_process_with_that_script(tmp_path):
    main = MAIN.format(module="pickle") + LOADED.replace("\n", "\n    ")
    loaded = ran_script(tmp_path, "main.py", main, "mine.pickle")
    assert loaded.stdout == "[1.0, 0.0]\n", loaded.stderr


def test_one_of_a_plugin_file_pickles_by_the_file(tmp_path):
    """ms-swift imports it under a name that no other process knows."""
    (tmp_path / "mine.py").write_text(MAIN.format(module="pickle"))
    plugin = """
import importlib.util, pathlib, pickle, sys
spec = importlib.util.spec_from_file_location("_swift_external_1f", "mine.py")
module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
pathlib.Path(sys.argv[1]).write_bytes(pickle.dumps(type(module.mine)()))
"""
    assert ran_script(tmp_path, "plugin.py", plugin, "mine.pickle").stderr == ""
    loaded = ran_script(tmp_path, "worker.py", LOADED, "mine.pickle")
    assert loaded.stdout == "[1.0, 0.0]\n", loaded.stderr


def test_its_doctests_are_found():
    assert doctest.testmod(function_rewards).attempted >= 1
