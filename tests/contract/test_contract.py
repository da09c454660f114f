"""The rules of the contract: what keeps them all passes, and each catches what breaks it."""

import pytest

import faulty
from rewards import own_kinds
from swift_rlvr.contract import check_reward, check_task, problems_of
from swift_rlvr.contract.rewards import REWARD_RULES, rules_of
from swift_rlvr.contract.tasks import TASK_RULES
from swift_rlvr.rewards.function import function_reward
from swift_rlvr.rewards.signature import read_signature


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


EXAMPLES = [("so 7", {"gold": "7"}, 1.0), ("so 8", {"gold": "7"}, 0.0), ("7", {"gold": None}, None)]


def of_function(function, examples=EXAMPLES):
    signature = read_signature(function, "kind")
    return function_reward(
        function,
        "external_kind",
        "Kind",
        role="verifier",
        signature=signature,
        examples=examples,
        reasons=["asked"],
    )


# The rules that call a reward as the trainers do; the others are the same for every reward.
OF_TRAINERS = (
    "its examples earn",
    "it requires its columns",
    "texts and messages",
    "a batch is graded",
    "its explanations",
)


@pytest.mark.parametrize("function", own_kinds.KINDS)
def test_every_kind_of_function_is_called_as_the_trainers_call_it(function):
    made = function() if isinstance(function, type) else function
    for part in OF_TRAINERS:
        assert broken(REWARD_RULES, part, of_function(made)) == []


@pytest.mark.parametrize(
    "function", [own_kinds.in_a_key, own_kinds.messages_where_nothing_says_so, own_kinds.too_few]
)
def test_a_function_of_a_batch_that_pays_all_the_same_does_not_pass(function):
    assert broken(REWARD_RULES, "its examples earn", of_function(function)) != []
    assert broken(REWARD_RULES, "a batch is graded", of_function(function)) != []


def test_a_function_without_examples_does_not_pass_and_says_so_once():
    bare = of_function(own_kinds.batch, examples=())
    (problem,) = broken(rules_of(bare), "", bare)[1:]  # after that it does not pickle
    assert "it has no examples, and without them nothing else can be tried" in problem
