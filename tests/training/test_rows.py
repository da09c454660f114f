"""The rows that a trainer gets: which are left out, and whose system prompt they have."""

import json
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import pytest
from rich.console import Console

from paths import DATASETS
from pictures import write_dots
from swift_rlvr.evaluation.models import load_tokenizer
from swift_rlvr.rewards.build import build_rewards
from swift_rlvr.tasks import TASKS
from swift_rlvr.training.arguments import RunArguments
from swift_rlvr.training.rows import read_data
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import TINY_MODEL

QUIET = Console(quiet=True)


def test_unusable_rows_are_counted_named_and_limited(tmp_path, capsys):
    rows = [{"nums": [3, 5, 7], "target": 22}] * 30 + [{"nums": [3, 5, None], "target": 22}] * 3
    file = tmp_path / "tasks.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = RunArguments(
        model="model", dataset=f"countdown:{file}", reward_funcs=["countdown"], system="Think."
    )
    rewards = build_rewards(arguments.reward_funcs)
    used, system = read_data(arguments, rewards, Console(soft_wrap=True))
    assert len(used) == 30 and system == "Think."
    assert used[0]["prompt"][0] == {"role": "system", "content": "Think."}
    assert used[0].keys() == {"prompt", "nums", "target", "task"}
    output = capsys.readouterr().out
    assert "3 of 33 rows cannot be used (nums: 3)" in output and "line 31: column 'nums'" in output
    file.write_text("".join(json.dumps(row) + "\n" for row in rows[:2] + rows[-1:] * 20))
    with pytest.raises(
        InputError, match=r"(?s)^dataset: .*more than 10 rows and more than 10% of all"
    ):
        read_data(arguments, rewards, QUIET)


def test_columns_are_renamed(tmp_path):
    file = tmp_path / "tasks.jsonl"
    file.write_text(json.dumps({"Zahlen": [3, 5, 7], "Ziel": 22}) + "\n")
    columns = '{"Zahlen": "nums", "Ziel": "target"}'
    arguments = RunArguments(
        model="model", dataset=f"countdown:{file}", reward_funcs=["countdown"], columns=columns
    )
    (row,), _ = read_data(arguments, build_rewards(arguments.reward_funcs), QUIET)
    assert (row["nums"], row["target"]) == ([3, 5, 7], 22)
    bad = replace(arguments, columns="nums")
    with pytest.raises(InputError, match="^columns: must be an object in JSON"):
        read_data(bad, build_rewards(arguments.reward_funcs), QUIET)


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["accuracy"], "1 row of qa: no reward grades them, so nothing is learned"),
        (["accuracy", "format"], "1 row of qa: no reward verifies their answers"),
        (["accuracy", "exact_match"], None),
    ],
)
def test_a_task_that_no_reward_grades_is_named(tmp_path, capsys, names, problem):
    file = tmp_path / "mixed.jsonl"
    rows = [
        {"task": "math", "question": "1 + 1?", "answer": "2"},
        {"task": "qa", "question": "Which river?", "answer": "Rhine"},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = RunArguments(model="model", dataset=f"mixed:{file}", reward_funcs=names)
    read_data(arguments, build_rewards(names), Console(soft_wrap=True))
    output = capsys.readouterr().out
    assert problem in output if problem else not output


def test_rows_with_a_system_prompt_of_their_own_keep_it(capsys):
    file, rewards = (
        DATASETS / "numina_math_tir" / "train.jsonl",
        build_rewards(["accuracy", "cosine"]),
    )
    arguments = RunArguments(
        model="model",
        dataset=f"numina_math_tir:{file}",
        reward_funcs=["accuracy", "cosine"],
        system="No.",
    )
    rows, system = read_data(arguments, rewards, Console(soft_wrap=True))
    assert system == TASKS["numina_math_tir"].system == rows[0]["prompt"][0]["content"]
    assert "`system` is not used" in capsys.readouterr().out
    assert rows[0].keys() == {"prompt", "solution", "task"}


def test_pictures_are_refused_by_a_trainer_that_does_not_show_them(tmp_path):
    dataset = f"math:{write_dots(tmp_path / 'data')}"
    arguments = RunArguments(model="model", dataset=dataset, reward_funcs=["accuracy"])
    with pytest.raises(InputError, match="rows have images, which this trainer does not show"):
        read_data(arguments, build_rewards(["accuracy"]), QUIET)


@pytest.mark.parametrize("is_special", [False, True])
def test_the_rewards_are_tried_on_what_trl_decodes(is_special):
    """Without special tokens: where a form's tags are such, a right answer earns 0 in every step."""
    tokenizer = load_tokenizer(str(TINY_MODEL))
    marks = ["<answer>", "</answer>"]
    tokenizer.add_tokens(marks, special_tokens=is_special)
    arguments = RunArguments(
        model="m",
        dataset=f"countdown:{DATASETS / 'countdown' / 'tiny_train.jsonl'}#9",
        reward_funcs=["countdown"],
    )
    rewards = build_rewards(["countdown"])
    refused: AbstractContextManager[object] = nullcontext()
    if is_special:
        refused = pytest.raises(
            InputError, match="^reward_funcs: .*, here <answer>, </answer>; ms-"
        )
    with refused:
        read_data(arguments, rewards, QUIET, weights=[1.0], tokenizer=lambda: tokenizer)
