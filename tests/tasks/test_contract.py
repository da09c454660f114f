"""Every registered task: rows, golds, prompts, columns, samples. A new task is tested with a line
in SAMPLES.
"""

import json
import pickle
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from present import present
from swift_rlvr.contract import check_task
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.format import FormatReward
from swift_rlvr.tasks import (
    TASKS,
    RowError,
    add_task,
    tasks_of,
    unused_columns,
    verifier_of,
)
from swift_rlvr.tasks.row_check import RowCheck, allowed_share
from swift_rlvr.tasks.task import normalised
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import LONGEST_ROW, check_jsonl

ROOT = Path(__file__).parents[2] / "datasets"
SAMPLES = {
    "countdown": "countdown",
    "gsm8k": "gsm8k",
    "gsm8k_one_shot": "gsm8k",
    "numina_math_tir": "numina_math_tir",
    "bespoke_stratos": "bespoke_stratos",
    "reasoning_gym": "reasoning_gym",
    "math": "math",
    "choice": "choice",
    "qa": "qa",
    "sql": "sql",
    "instructions": "instructions",
    "json": "json",
    "tool_calls": "tool_calls",
    "boxes": "boxes",
}
# Their prompts ask for a form of their own, without think and answer tags.
OWN_FORM = ("json", "tool_calls", "boxes")
NOT_MIXED = (
    "gsm8k_one_shot",
    "reasoning_gym",
    "sql",
)  # the latter two have rewards of their own, which start processes


def raw_rows(name, split="train"):
    return [
        json.loads(line)
        for line in (ROOT / SAMPLES[name] / f"{split}.jsonl").read_text().splitlines()
    ]


def usable(task, rows):
    """(raw row, preprocessed row) of those that the task does not refuse."""
    pairs = []
    for row in rows:
        try:
            pairs.append((row, task.preprocess(row)))
        except RowError as error:
            assert error.label == "no box", error  # the only ones that the samples have on purpose
    return pairs


def mixed_rows():
    return [
        {"task": name, **row}
        for name in SAMPLES
        if name not in NOT_MIXED
        for row in raw_rows(name)[:5]
    ]


def test_every_task_has_samples():
    assert {*SAMPLES, "code", "mixed"} == set(TASKS)  # code has no dataset of its own


@pytest.mark.parametrize("name", TASKS)
def test_every_rule_holds(name):
    assert check_task(TASKS[name]) == []


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("split", ["train", "test"])
def test_every_rule_holds_on_the_samples(name, split):
    pairs = usable(TASKS[name], raw_rows(name, split))
    assert len(pairs) >= 8
    assert check_task(TASKS[name], [raw for raw, _ in pairs]) == []
    if name in OWN_FORM:
        return
    assert all(set(row) == {"messages", "task", *TASKS[name].reward_columns} for _, row in pairs)


@pytest.mark.parametrize("name", [name for name in SAMPLES if TASKS[name].further_rewards])
def test_the_prompt_asks_for_the_format_that_the_format_reward_checks(name):
    task = TASKS[name]
    messages = usable(task, raw_rows(name))[0][1]["messages"]
    first_user = next(index for index, message in enumerate(messages) if message["role"] == "user")
    asked = "\n".join(message["content"] for message in messages[: first_user + 1])
    tags = list(dict.fromkeys(re.findall(r"</?(?:think|answer)>", asked)))
    assert tags == ["<think>", "</think>", "<answer>", "</answer>"]
    (reward,) = (REWARDS[each]() for each in task.rewards if "format" in each)
    assert isinstance(reward, FormatReward)
    if reward.name == "external_format_strict":  # the form is shown as it has to be
        (shown,) = re.findall(r"<think>\n.*</answer>", asked, re.DOTALL)
        assert reward([shown]) == [1.0]
    assert reward(["{}1{}\n{}1{}".format(*tags)]) == [0.0 if reward.strict else 1.0]


@pytest.mark.parametrize("name", TASKS)
def test_a_changed_prompt_changes_the_task(name):
    """ms-swift caches rows under a hash of the pickle."""
    task = TASKS[name]
    assert pickle.dumps(replace(task, prompt=task.prompt + " ")) != pickle.dumps(task)


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_repeat_nothing_and_their_splits_share_nothing(name):
    task = TASKS[name]
    keys = [[task.identity(row) for row in raw_rows(name, split)] for split in ("train", "test")]
    assert len(set(keys[0] + keys[1])) == len(keys[0]) + len(keys[1])


@pytest.mark.parametrize("name", TASKS)
@given(data=st.data())
@settings(deadline=None, max_examples=40)
def test_any_row_is_read_or_refused(name, data):
    task = TASKS[name]
    value = st.recursive(
        st.none() | st.text() | st.floats() | st.integers(),
        lambda inner: st.lists(inner, max_size=3),
    )
    columns = [*task.columns, "task"]
    row = data.draw(st.dictionaries(st.sampled_from(columns), value))
    for read in (task.preprocess, task.identity, task.gold):
        try:
            read(row)
        except RowError as error:
            assert error.column in [*columns, "messages", "choices"]


def test_mixed_rows_are_what_their_own_tasks_make_of_them():
    task, columns = TASKS["mixed"], {column for row in mixed_rows() for column in row}
    for row in mixed_rows():
        alone = TASKS[row["task"]].preprocess(
            {name: value for name, value in row.items() if name != "task"}
        )
        padded = {**dict.fromkeys(columns), **row}  # as a table of all columns has it
        assert task.preprocess(padded) == alone
        assert task.of(row).gold_completion(row) == TASKS[row["task"]].gold_completion(row)
        assert row["task"] in task.identity(padded)


def test_a_task_of_another_package_may_be_mixed_too():
    own = replace(TASKS["gsm8k"], name="mine", verifier="external_mine")
    before = pickle.dumps(TASKS["mixed"])
    add_task(own)
    try:
        row = {"task": "mine", **own.examples[0]}
        assert TASKS["mixed"].preprocess(row) == own.preprocess(row)
        assert TASKS["mixed"].of(row) is own and verifier_of("mine") == "external_mine"
        added = pickle.dumps(TASKS["mixed"])
        TASKS["mine"] = replace(own, prompt="another")
        assert len({before, added, pickle.dumps(TASKS["mixed"])}) == 3  # ms-swift's hash of it
    finally:
        del TASKS["mine"]
    assert verifier_of("code") == "external_code" and tasks_of("external_code") == ("code",)


def test_mixed_rows_are_graded_by_the_rewards_of_their_own_tasks_only():
    rows = [TASKS["mixed"].preprocess(row) for row in mixed_rows()]
    golds = [TASKS[row["task"]].gold_completion(row) for row in mixed_rows()]
    columns = {
        name: [row.get(name) for row in rows] for name in {name for row in rows for name in row}
    }
    verifiers = [TASKS["mixed"].of(row).verifier for row in rows]
    assert {"external_countdown", "external_accuracy", "external_exact_match"} <= {*verifiers}
    assert "external_instructions" in verifiers
    assert {*verifiers} == {TASKS[name].verifier for name in SAMPLES if name not in NOT_MIXED}
    for verifier in {*verifiers}:
        expected = [1.0 if each == verifier else None for each in verifiers]
        assert REWARDS[present(verifier)]()(golds, **columns) == expected


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"task": "chess"}, "column 'task': expected one of countdown, .*, code, .*got 'chess'"),
        ({"nums": [1, 2], "target": 3}, "column 'task': .* got None"),
        ({"task": ["gsm8k"]}, "column 'task'"),
        ({"task": "gsm8k", "nums": [1, 2], "target": 3}, "column 'question'"),
        ({"task": "math", "solution": "2"}, "column 'problem': nothing in the columns"),
        (
            {"task": "math", "messages": [{"role": "user", "content": "?"}]},
            "column 'answer': nothing in the columns",
        ),
        (
            {"task": "code", "messages": [{"role": "user", "content": "?"}], "tests": None},
            "column 'tests': nothing in the columns",
        ),
    ],
)
def test_mixed_rows_that_are_refused(row, message):
    with pytest.raises(RowError, match=message):
        TASKS["mixed"].preprocess(row)


def test_mixed_rows_of_tasks_without_a_dataset_bring_their_messages():
    messages = [{"role": "user", "content": "Write a function add."}]
    row = {
        "task": "code",
        "messages": messages,
        "tests": ["assert add(1, 2) == 3"],
        "solution": None,
    }
    assert TASKS["mixed"].preprocess(row) == {
        "task": "code",
        "messages": messages,
        "tests": row["tests"],
    }
    math = {"task": "math", "messages": messages, "solution": "2"}
    system = {"role": "system", "content": TASKS["math"].system}
    assert TASKS["mixed"].preprocess(math) == {**math, "messages": [system, *messages]}
    assert [TASKS["mixed"].of(each).verifier for each in (row, math)] == [
        "external_code",
        "external_accuracy",
    ]
    assert TASKS["mixed"].of(row).gold_completion(row) is None
    assert "<answer>2</answer>" in present(TASKS["mixed"].of(math).gold_completion(math))
    with pytest.raises(RowError, match="column 'task'"):
        TASKS["mixed"].of({"task": "chess"})


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("How many eggs are left?", "how many  EGGS are\nleft", True),
        ("She has $1,500.", "She has 1500", True),
        ("Find $x$ with $x + 1 = 2$.", "Find x with x+1=2", True),
        ("１２ apples", "12 apples", True),  # full-width digits
        ("What is 3 - 5?", "What is 3 + 5?", False),
        ("What is 3.5 + 1?", "What is 35 + 1?", False),
        ("What is 5!?", "What is 5?", False),
        ("Is x < 3?", "Is x > 3?", False),
        ("1,50", "150", True),  # the price of leaving out punctuation
    ],
)
def test_normalised_questions(one, other, same):
    assert (normalised(one) == normalised(other)) is same


@pytest.mark.parametrize(
    ("errors", "usable_rows", "share", "stops"),
    [
        (10, 1, 0.1, False),
        (11, 1, 0.1, True),
        (11, 99, 0.1, False),
        (11, 98, 0.1, True),
        (1, 0, 1.0, True),
        (0, 5, 0, False),
    ],
)
def test_the_limit_on_unusable_rows(errors, usable_rows, share, stops):
    check = RowCheck(usable_rows, [(0, "?")] * errors)
    assert (check.excess(share) is not None) is stops


def test_the_limit_is_set_by_the_task_or_by_a_variable():
    assert (
        allowed_share(TASKS["gsm8k"], {}) == 0.1
        and allowed_share(TASKS["bespoke_stratos"], {}) == 0.5
    )
    assert allowed_share(TASKS["bespoke_stratos"], {"SWIFT_RLVR_MAX_UNUSABLE": "0.02"}) == 0.02
    for wrong in ("10%", "1.5", "-0.1", "nan"):
        with pytest.raises(InputError, match="^SWIFT_RLVR_MAX_UNUSABLE: must be "):
            allowed_share(TASKS["gsm8k"], {"SWIFT_RLVR_MAX_UNUSABLE": wrong})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"question"\n', "line 1: not JSON"),
        (b"\n[1, 2]\n", r"line 2: expected an object such as \{...\}, got \[1, 2\]"),
        (b'{"question": "\xff"}\n', "line 1: not UTF-8 text"),
        (b'{"a": ' + b"9" * 5000 + b"}\n", "line 1: not JSON"),
        (b"[" * 200_000, "line 1: (JSON is nested too deeply|not JSON)"),
        (b"", "no rows"),
        (b"\n \n", "no rows"),
        (
            b'{"a": 1}\n{"a": "' + b"x" * LONGEST_ROW + b'"}\n',
            "line 2: longer than 8,388,608 bytes",
        ),
    ],
)
def test_bad_files_are_refused_with_file_and_line(tmp_path, content, message):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"rows.jsonl.*{message}"):
        check_jsonl(path)


def test_an_endless_line_is_not_read_to_its_end(tmp_path):
    """A sparse file of 20 GB in one line: refused at once, in little memory."""
    path = tmp_path / "rows.jsonl"
    with path.open("wb") as file:
        file.truncate(20 * 2**30)
    with pytest.raises(InputError, match="line 1: longer than"):
        check_jsonl(path)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_system_prompt_is_in_the_prompt_or_named(name):
    task = TASKS[name]
    told = "Speak like a captain."
    for column in ("system", "system_prompt"):
        row = {**raw_rows(name)[0], column: told}
        prompt = "".join(str(turn["content"]) for turn in task.preprocess(row)["messages"])
        assert (told in prompt) != (column in unused_columns(task, row))
