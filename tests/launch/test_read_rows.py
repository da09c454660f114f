"""Datasets that ms-swift reads by itself: what the doctor makes of the rows that it has read."""

import json
from dataclasses import replace

import pytest

from helpers import planned
from paths import DATASETS
from swift_rlvr.launch import doctor
from swift_rlvr.launch.checks import Launch, data, rewards
from swift_rlvr.launch.checks.rows import asked_rows
from swift_rlvr.launch.parse_arguments import Parsed
from swift_rlvr.training.ms_swift.first_rows import FirstRows

NAME = "sums"  # as a plugin registers it
BOXED = "Put the final answer in \\boxed{}."


def launch_with(first: FirstRows | None, *rewards: str) -> Launch:
    words = ["--dataset", NAME, "--reward_funcs", *(rewards or ("external_accuracy",))]
    plan = planned("scripts/configs/countdown_cpu.yaml", *words)
    roles = (
        ("external_accuracy", "verifier"),
        ("external_format", "format"),
        ("mine.py:f", "verifier"),
    )
    known: dict[str, str | None] = dict(roles)
    return Launch(plan, Parsed(rewards=known), {} if first is None else {NAME: first})


def sums(count: int = 30, question: str = BOXED, **columns: object) -> list[dict]:
    rows = []
    for number in range(count):
        asked = {"role": "user", "content": f"What is {number} + 2? {question}"}
        rows.append({"messages": [asked], "solution": str(number + 2), **columns})
    return rows


def statuses(launch: Launch) -> list[str]:
    return [result.status for result in data.without_task(launch)]


def test_rows_whose_golds_earn_the_reward_pass():
    assert statuses(launch_with(FirstRows(sums()))) == ["passed"]


def test_a_green_line_says_whether_all_rows_were_looked_at():
    (some,) = data.without_task(launch_with(FirstRows(sums())))
    assert ": the first 30 rows" in some.message
    (whole,) = data.without_task(launch_with(FirstRows(sums(), are_all=True)))
    assert ": 30 rows" in whole.message


def test_the_prompt_is_the_rows_own():
    """No prompt of a task of ours is added, as none is in the training."""
    (first, *_) = asked_rows(launch_with(FirstRows(sums())))
    system, question = first.messages  # the recipe's --system
    assert question == sums()[0]["messages"][0] and first.form == "boxed"
    assert system["content"] == launch_with(None).settings["system"]
    assert "task" not in first.row


def test_the_answer_that_grpo_takes_away_is_not_part_of_the_prompt():
    rows = sums()
    for row in rows:
        row["messages"].append({"role": "assistant", "content": "Some answer."})
    (first, *_) = asked_rows(launch_with(FirstRows(rows)))
    assert [turn["role"] for turn in first.messages] == ["system", "user"]


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        # Prompt and reward want another form.
        ((sums(), "external_accuracy", "external_format"), ["warning"]),
        # The prompt says nothing of a form.
        ((sums(question=""),), ["warning"]),
        # A right answer that no verifier of ours grades, and golds that there are not.
        ((sums(), "mine.py:f"), ["warning"]),
        (([{"messages": row["messages"], "note": "red"} for row in sums()],), ["failed"]),
    ],
)
def test_what_cannot_be_graded_or_earned_is_not_green(first, expected):
    rows, *names = first
    assert statuses(launch_with(FirstRows(rows), *names)) == expected


def test_golds_that_no_answer_equals_fail():
    rows = sums()
    for row in rows:
        row["solution"] = "\\frac{1}{"
    assert statuses(launch_with(FirstRows(rows))) == ["failed"]


def test_rows_that_ms_swift_leaves_out_are_named():
    some = FirstRows(sums(), refused=5, why="mine.py, line 4: KeyError")
    (left_out, graded) = data.without_task(launch_with(some))
    assert (left_out.status, graded.status) == ("warning", "passed")
    assert "5 of the first 35" in left_out.message and "mine.py, line 4" in left_out.message

    most = FirstRows(sums(), refused=31, why="mine.py, line 4: KeyError")
    assert statuses(launch_with(most)) == ["failed", "passed"]


def test_a_preprocessor_may_choose_rows():
    """None for a row is ms-swift's way to leave it out, so that no launch is refused for it."""
    assert statuses(launch_with(FirstRows(sums(), skipped=300))) == ["warning", "passed"]
    (unseen,) = data.without_task(launch_with(FirstRows(skipped=200)))
    assert unseen.status == "warning" and "none was checked" in unseen.message
    assert statuses(launch_with(FirstRows(skipped=200, are_all=True))) == ["failed"]


def test_a_preprocessor_that_takes_long_is_named():
    (late,) = data.without_task(launch_with(FirstRows(late="mine.py, line 4")))
    assert late.status == "warning" and "was at mine.py, line 4" in late.message
    assert statuses(launch_with(FirstRows(sums(), late="mine.py, line 4"))) == ["warning", "passed"]


def test_a_dataset_without_rows_fails():
    assert statuses(launch_with(FirstRows(are_all=True))) == ["failed"]


def test_golds_in_boxes_pass():
    """They fit NuminaMath-TIR, too, whose questions are in another column."""
    rows = sums()
    for row in rows:
        row["solution"] = f"So it is \\boxed{{{row['solution']}}}."
    assert statuses(launch_with(FirstRows(rows))) == ["passed"]


def test_a_prompt_of_ones_own_owes_nothing_to_a_reward_that_is_not_in_the_run():
    """`accuracy` is ms-swift's, so that none of our rewards is in the run."""
    assert statuses(launch_with(FirstRows(sums()), "accuracy")) == ["passed"]


def test_a_verifier_that_no_task_names_grades_the_rows_that_have_its_columns():
    in_box = launch_with(FirstRows(sums()), "external_boxed")
    assert statuses(in_box) == ["passed"]
    elsewhere = FirstRows(sums(question="End with #### and the answer."))
    assert statuses(launch_with(elsewhere, "external_boxed")) == ["failed"]


def test_rows_may_be_mixed_with_those_of_a_task(tmp_path):
    """In ms-swift all rows then have the columns of both, and each verifier skips the other's rows."""
    path = tmp_path / "sums.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in sums()))
    words = ["--dataset", str(path), f"countdown:{DATASETS / 'countdown' / 'tiny_train.jsonl'}"]
    words += ["--reward_funcs", "external_accuracy", "external_countdown"]
    plan = planned("scripts/configs/countdown_cpu.yaml", *words)
    roles: dict[str, str | None] = dict.fromkeys(words[-2:], "verifier")
    launch = Launch(plan, Parsed(rewards=roles), {str(path): FirstRows(sums())})
    checked = [*data.datasets(launch), *data.without_task(launch)]
    assert "failed" not in [result.status for result in checked], checked


def test_a_dataset_that_cannot_be_read_fails():
    assert statuses(launch_with(FirstRows(problem="mine.py, line 4: KeyError"))) == ["failed"]


def test_what_was_not_read_is_not_green():
    assert statuses(launch_with(None)) == ["warning"]
    checks = doctor.check_data(launch_with(None).plan)  # a dry run, which asks no ms-swift
    assert "warning" in [result.status for result in checks if result.name == "dataset"]


def graded(*paid: float | None, question: str = BOXED) -> list[tuple[str, str]]:
    """What is said of rows of which a reward of one's own is paid this, by turns for right and wrong
    completions.
    """
    launch = launch_with(FirstRows(sums(question=question), are_all=True), "mine.py:f")
    parsed = replace(launch.parsed, paid={"mine.py:f": list(paid) * 30})
    launch = replace(launch, parsed=parsed)
    results = [*rewards.together(launch), *data.without_task(launch)]
    return [(result.status, result.message) for result in results]


def test_a_reward_of_ones_own_is_held_against_the_golds_that_columns_name():
    """Of which it may want others: what is only guessed ends no launch."""
    (paid, rows) = graded(1.0, 0.0)
    assert paid[0] == rows[0] == "passed"
    (paid, _) = graded(0.0, 0.0)
    assert paid[0] == "warning" and "the columns' names alone tell what is right" in paid[1]
    (paid, _) = graded(1.0, 1.0)
    assert paid[0] == "warning" and "no more" in paid[1]
    launch = launch_with(FirstRows(sums()), "mine.py:f")
    (untried,) = data.without_task(launch)
    assert untried.status == "warning" and "was not tried" in untried.message


def test_golds_under_another_name_are_those_of_a_reward_of_ones_own():
    rows = sums()
    for row in rows:
        row["answer"] = row.pop("solution")
    (untried,) = data.without_task(launch_with(FirstRows(rows), "mine.py:f"))
    assert untried.status == "warning"
    assert "was not tried" in untried.message and "cannot be trained on" not in untried.message


def test_choices_that_only_the_prompt_shows_are_no_column():
    rows = sums(question="A) 1 B) 2. Put the letter in \\boxed{}.")
    for number, row in enumerate(rows):
        row["solution"] = "AB"[number % 2]
    (untried,) = data.without_task(launch_with(FirstRows(rows), "mine.py:f"))
    assert untried.status == "warning"


def test_rows_of_which_few_have_a_gold_are_not_guessed_at():
    rows = sums()
    for row in rows[:20]:
        del row["solution"]
    (unknown,) = data.without_task(launch_with(FirstRows(rows), "mine.py:f"))
    assert unknown.status == "warning" and "usual names" in unknown.message


def test_a_system_prompt_that_rows_do_not_get_is_named():
    rows = sums()
    for row in rows:
        row["messages"].insert(0, {"role": "system", "content": "You are a calculator."})
    (lost,) = data.system(launch_with(FirstRows(rows)))
    assert lost.status == "warning" and "--system is not used for 30 rows" in lost.message


def test_the_rewards_are_tried_on_these_rows():
    launch = launch_with(FirstRows(sums()))
    right, wrong = rewards.rows_to_grade(launch)[:2]
    assert right["messages"][-1]["content"].endswith("\\boxed{2}")
    assert right["solution"] == wrong["solution"] == "2" and "task" not in right
