"""The battery: our verifiers pay none of it, and rewards that look right are found out."""

import json

import pytest

from commands import ran
from paths import DATASETS
from swift_rlvr.contract.attack import (
    NOT_STATED,
    PROGRAMS,
    QUERIES,
    WITHOUT_WORK,
    Strategy,
    asked_rows,
    paid_by,
    strategies,
    targets,
    try_strategy,
)
from swift_rlvr.contract.datasets import check_dataset
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.imported import import_reward
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.utils.errors import InputError

FILES = {
    "math": "external_accuracy",
    "numina_math_tir": "external_accuracy",
    "gsm8k": "external_accuracy",
    "qa": "external_exact_match",
    "choice": "external_accuracy",
    "countdown": "external_countdown",
    "sql": "external_sql",
    "boxes": "external_box",
}
# A number of the question may be its answer.
MAY_BE_RIGHT = "number of the question"

LENIENT = """
def contains(completion, solution):
    return float(solution in completion)

def last_line(completion, solution):
    return float("".join(completion.split()).endswith(solution + "</answer>"))
"""

BEST_OF_ALL_BOXES = """
import json
from swift_rlvr.verifiers.boxes import iou, read_gold, spots_in

def best_of_all(completion, solution):
    try:
        boxes = spots_in(json.loads(completion))
        return float(max(iou(box, gold) for box in boxes for gold in read_gold(solution)) >= 0.5)
    except (ValueError, IndexError):
        return 0.0
"""


def rows_of(task: str):
    asked, _ = asked_rows(parse_source(f"{task}:{DATASETS / task / 'train.jsonl'}"), 20)
    return targets(asked)


@pytest.mark.parametrize("task, reward", FILES.items())
def test_our_verifiers_pay_for_none_of_it(task, reward):
    rows = rows_of(task)
    for strategy in (*WITHOUT_WORK, *NOT_STATED):
        if MAY_BE_RIGHT in strategy.name or strategy.name == "the question as the answer":
            continue
        earned = try_strategy(REWARDS[reward](), strategy, rows)
        assert not earned.paid, (strategy.name, earned.example)


def test_queries_that_only_look_right():
    rows = rows_of("sql")
    battery = strategies(rows, runs_code=False)
    assert [each for each in battery if each in QUERIES] == [*QUERIES]
    assert not {*QUERIES} & {*strategies(rows_of("qa"), runs_code=False)}
    for strategy in QUERIES:
        earned = try_strategy(REWARDS["external_sql"](), strategy, rows)
        # The first of the rows asks how many books there are, and no table of them is shown first.
        assert earned.rows == len(rows) and not earned.paid, (strategy.name, earned.example)


def test_what_a_verifier_names_is_tried_on_any_reward_of_its_rows(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(BEST_OF_ALL_BOXES)
    rows = rows_of("boxes")
    named = [each for each in strategies(rows, runs_code=False) if "picture" in each.name]
    assert len(named) >= 5
    ours, theirs = REWARDS["external_box"](), import_reward(f"{file}:best_of_all")()
    assert not any(try_strategy(ours, strategy, rows).paid for strategy in named)
    hedge = next(each for each in named if each.name == "the right boxes and the whole picture")
    assert try_strategy(theirs, hedge, rows).paid


def test_the_right_answer_is_paid_on_the_same_rows():
    right = Strategy("right", lambda target: target.gold and target.says(target.gold), True)
    for task, reward in FILES.items():
        earned = try_strategy(REWARDS[reward](), right, rows_of(task))
        assert earned.rows and earned.mean == 1.0, task


@pytest.mark.parametrize("strategy", PROGRAMS, ids=lambda strategy: strategy.name)
def test_programs_that_only_look_right(strategy, tmp_path):
    file = tmp_path / "rows.jsonl"
    row = {
        "problem": "Write add(a, b).",
        "tests": ["assert add(1, 2) == 3", "assert add(2, 2) == 4"],
        "solution": "def add(a, b): return a + b",
    }
    file.write_text(json.dumps(row) + "\n")
    asked, _ = asked_rows(parse_source(f"code:{file}"), 1)
    rows = targets(asked)
    reward = REWARDS["external_code"]()
    assert strategy in strategies(rows, reward.runs_code)
    assert not try_strategy(reward, strategy, rows).paid


def test_a_row_whose_tests_all_stand_in_the_prompt_pays_for_learning_them_by_heart(tmp_path):
    file = tmp_path / "rows.jsonl"
    test = "assert add(1, 2) == 3"
    row = {"problem": f"Write add(a, b). It has to pass:\n{test}", "tests": [test]}
    file.write_text(json.dumps(row) + "\n")
    asked, _ = asked_rows(parse_source(f"code:{file}"), 1)
    (by_heart,) = (each for each in PROGRAMS if "by heart" in each.name)
    assert try_strategy(REWARDS["external_code"](), by_heart, targets(asked)).mean == 1.0


def test_a_lenient_reward_is_found_out(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(LENIENT)
    rows = rows_of("gsm8k")
    paid = {}
    for name in ("contains", "last_line"):
        reward = import_reward(f"{file}:{name}")()
        paid[name] = [
            strategy.name for strategy in NOT_STATED if try_strategy(reward, strategy, rows).paid
        ]
    assert {
        "hedge: RIGHT or WRONG",
        "denial: not RIGHT",
        "the answer in the thinking alone",
    } <= set(paid["contains"])
    assert "hedge: WRONG or RIGHT" in paid["last_line"]
    assert "hedge: RIGHT or WRONG" not in paid["last_line"]


def test_a_question_that_names_tags_of_its_own_and_a_prompt_without_a_form(tmp_path):
    questions = ["What is 1+2? Give the final result as XML: <result>5</result>", "What is 1+2?"]
    for question in questions:
        file = tmp_path / "rows.jsonl"
        system = {"role": "system", "content": "Write your answer as [[5]]."}
        row = {"messages": [system, {"role": "user", "content": question}], "answer": "3"}
        file.write_text(json.dumps(row) + "\n")
        asked, _ = asked_rows(parse_source(f"math:{file}"), 1)
        paid = paid_by({REWARDS["accuracy"](): asked})
        assert [earned.strategy.name for earned in paid if earned.strategy.knows_gold] == []


def test_a_reward_that_pays_or_grades_nothing_is_no_green_light(tmp_path):
    silent = tmp_path / "silent.py"
    silent.write_text(
        "def zero(completion, solution):\n    return 0.0\n\n"
        "def none(completion, solution):\n    return None\n"
    )
    rows = f"gsm8k:{DATASETS / 'gsm8k' / 'test.jsonl'}"
    for name, outcome in (("zero", "paid"), ("none", "graded")):
        said = ran("attack", f"{silent}:{name}", "--dataset", rows, code=1, columns=400)
        assert f"The right answer is not {outcome} on any row" in said
    said = ran("attack", "accuracy", "--dataset", rows, "--limit", "0.2", columns=400)
    assert "The right answer is paid on 12 of 12 rows, 1.000 a row." in said


def test_tests_that_accept_any_program_are_found(tmp_path):
    file = tmp_path / "rows.jsonl"
    rows = [
        {"problem": f"Task {test}", "tests": [test], "solution": "def add(a, b):\n    return a + b"}
        for test in ("assert add", "assert add(1, 2) or True", "assert add(1, 2) == 3")
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = check_dataset(parse_source(f"code:{file}"))
    assert [line for line, _ in found.problems] == [1, 2]
    assert "pays a program that returns 271828183 in full too" in found.problems[0][1]


def test_frequent_golds_are_constants_and_a_row_that_is_not_graded_does_not_count(tmp_path):
    file = tmp_path / "rows.jsonl"
    golds = ["17", "17", "3", "Because blue light is scattered more than red"]
    rows = [{"problem": f"Question {number}?", "answer": gold} for number, gold in enumerate(golds)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked, unusable = asked_rows(parse_source(f"math:{file}"), 10)
    attacked = targets(asked)
    assert (len(attacked), unusable) == (3, 1)
    (frequent,) = (
        strategy for strategy in strategies(attacked, False) if strategy.name == "the constant 17"
    )
    earned = try_strategy(REWARDS["accuracy"](), frequent, attacked)
    assert (earned.rows, earned.total, earned.paid) == (3, 2.0, [1, 2])


def test_no_row_at_all_is_an_error(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text('{"problem": "", "answer": "1"}\n')
    with pytest.raises(InputError, match="no row can be used"):
        asked_rows(parse_source(f"math:{file}"), 10)


def test_what_was_not_graded_is_not_green(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "def abstains(completions, **kwargs):\n    return [None for _ in completions]\n"
        "def refuses(completions, **kwargs):\n    return [0.0 for _ in completions]\n"
    )
    row = {"question": "Write `f`.", "tests": ["assert f(1) == 1"]}  # without a reference
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps(row) + "\n")
    dataset = f"code:{rows}"
    shown = ran("attack", f"{mine}:abstains", "--dataset", dataset, code=1, columns=400)
    assert "nothing is known" in shown
    shown = ran("attack", f"{mine}:refuses", "--dataset", dataset, columns=400)
    assert "what it earns is not known" in shown
