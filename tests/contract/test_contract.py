"""The rules of the contract: what keeps them all passes, and each catches what breaks it."""

import faulty
import pytest
from swift_rlvr.contract import check_reward, check_task, problems_of
from swift_rlvr.contract.rewards import REWARD_RULES
from swift_rlvr.contract.tasks import TASK_RULES


def test_what_keeps_all_rules_passes():
    assert check_reward(faulty.Good) == []
    assert check_task(faulty.TASK) == []


def broken(rules, part, item):
    return [
        problem
        for name, rule in rules.items()
        if part in name
        for problem in problems_of(rule, item)
    ]


@pytest.mark.parametrize(
    ("rule", "cls"), [(rule, cls) for rule, many in faulty.REWARDS.items() for cls in many]
)
def test_a_faulty_reward_breaks_the_rule(rule, cls):
    assert broken(REWARD_RULES, rule, faulty.Good) == []
    assert broken(REWARD_RULES, rule, cls) != []


@pytest.mark.parametrize(
    ("rule", "task"), [(rule, task) for rule, many in faulty.TASKS.items() for task in many]
)
def test_a_faulty_task_breaks_the_rule(rule, task):
    assert broken(TASK_RULES, rule, task) != []


@pytest.mark.parametrize(
    ("rules", "faults"), [(REWARD_RULES, faulty.REWARDS), (TASK_RULES, faulty.TASKS)]
)
def test_every_rule_has_a_fault(rules, faults):
    assert [rule for rule in rules if not any(part in rule for part in faults)] == []


def test_rows_of_a_file_in_place_of_the_examples():
    assert check_task(faulty.TASK, [{"sum": "1 + 6"}]) == []
    (finding,) = check_task(faulty.TASK, [{"sum": "1 + 6"}, {"sum": "1 + 6"}])
    assert finding.problem == "`identity` says that examples 1 and 2 ask the same"
