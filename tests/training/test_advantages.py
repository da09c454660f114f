"""How ms-swift, TRL and grpo_from_scratch.py turn rewards into advantages: with None, and with gated
rewards.

The code of the installed versions runs: ms-swift's `GRPOTrainer._compute_advantages`, and of TRL's
`_generate_and_score_completions` the statements that do it, which are no function of their own.
"""

import ast
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs the extra [train]")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch import Tensor  # noqa: E402

from grpo_from_scratch import group_advantages, total_rewards  # noqa: E402
from present import present  # noqa: E402

Rewards = Sequence[Sequence[float]]  # by function: of each completion, NaN for None
NONE = float("nan")
Estimator = Callable[[Rewards, Sequence[float], int], Tensor]


def matrix(rewards: Rewards) -> Tensor:
    return torch.tensor(list(zip(*rewards, strict=True)), dtype=torch.float32)


# --- ms-swift


@cache
def swift_trainer() -> Any:
    pytest.importorskip("swift", reason="needs the extra [train]")
    from swift.rlhf_trainers.grpo_trainer import GRPOTrainer

    return GRPOTrainer


def swift_object(
    rewards: Rewards, weights: Sequence[float], size: int, estimator: str, scale: str
) -> SimpleNamespace:
    """What `_compute_advantages` reads of a trainer, and where it logs."""
    return SimpleNamespace(
        model=SimpleNamespace(training=True), num_generations=size, reward_weights=torch.tensor(weights).float(),
        reward_func_names=[f"reward {number}" for number in range(len(rewards))], advantage_estimator=estimator,
        scale_rewards=scale, kl_in_reward=False, beta=0.0, dynamic_num_samples=False,
        _metrics={"train": defaultdict(list)}, _logs={"rewards": defaultdict(list)},
    )  # fmt: skip


def swift(estimator: str, scale: str) -> Estimator:
    def advantages(rewards: Rewards, weights: Sequence[float], size: int) -> Tensor:
        trainer = swift_object(rewards, weights, size, estimator, scale)
        return swift_trainer()._compute_advantages(trainer, [], matrix(rewards), [])

    return advantages


# --- TRL


@cache
def trl_code() -> Any:
    """The `if self.multi_objective_aggregation == ...` of the trainer, and its `nanstd`."""
    spec = find_spec("trl")
    if spec is None:
        pytest.skip("needs the extra [trl]")
    folder = Path(present(spec.origin)).parent / "trainer"
    test = "self.multi_objective_aggregation == 'sum_then_normalize'"
    (statement,) = [
        node for node in ast.walk(ast.parse((folder / "grpo_trainer.py").read_text()))
        if isinstance(node, ast.If) and ast.unparse(node.test) == test
    ]  # fmt: skip
    (nanstd,) = [
        node for node in ast.parse((folder / "utils.py").read_text()).body
        if isinstance(node, ast.FunctionDef) and node.name == "nanstd"
    ]  # fmt: skip
    return compile(ast.Module([nanstd, statement], type_ignores=[]), "trl", "exec")


def trl(aggregation: str, scale: str) -> Estimator:
    def advantages(rewards: Rewards, weights: Sequence[float], size: int) -> Tensor:
        trainer = SimpleNamespace(
            multi_objective_aggregation=aggregation, scale_rewards=scale, reward_funcs=rewards,
            reward_weights=torch.tensor(weights).float(),
        )  # fmt: skip
        names = {
            "torch": torch,
            "self": trainer,
            "rewards_per_func": matrix(rewards),
            "num_generations": size,
        }
        exec(trl_code(), names := {**names, "device": "cpu"})
        return names["advantages"]

    return advantages


# --- the script


def scratch(scale: bool) -> Estimator:
    def advantages(rewards: Rewards, weights: Sequence[float], size: int) -> Tensor:
        totals = total_rewards(matrix(rewards), torch.tensor(weights).float())
        return group_advantages(totals, size, scale=scale, eps=1e-4)

    return advantages


SUMS: dict[str, Estimator] = {  # the rewards are summed, and the sums normalized
    **{
        f"ms-swift {estimator} {scale}": swift(estimator, scale)
        for estimator in ("grpo", "rloo", "reinforce_plus_plus")
        for scale in ("group", "batch", "none")
    },
    **{f"TRL {scale}": trl("sum_then_normalize", scale) for scale in ("group", "batch", "none")},
    "ours group": scratch(True),
    "ours none": scratch(False),
}
SEPARATE: dict[str, Estimator] = {  # each reward is normalized, then the sum
    "ms-swift grpo gdpo": swift("grpo", "gdpo"),
    "ms-swift rloo gdpo": swift("rloo", "gdpo"),
    "TRL normalize_then_sum": trl("normalize_then_sum", "group"),
}
ALL = {**SUMS, **SEPARATE}


def marked(names: Any) -> list:
    """Those of ms-swift are slow: importing it takes half a minute on a slow disk."""
    return [
        pytest.param(name, marks=[pytest.mark.slow] if "ms-swift" in name else []) for name in names
    ]


SIZE = 4
grades = st.sampled_from([0.0, 0.25, 0.5, 1.0, -0.5])
optional_grades = st.one_of(grades, st.just(NONE))


def batches(values: st.SearchStrategy, groups: int = 3, functions: int = 3) -> st.SearchStrategy:
    return st.lists(st.lists(values, min_size=groups * SIZE, max_size=groups * SIZE), min_size=functions,
                    max_size=functions)  # fmt: skip


WEIGHTS = (1.0, 0.5, 2.0)


@pytest.mark.parametrize("name", marked(ALL))
@settings(deadline=None, max_examples=50)
@given(batches(optional_grades))
def test_advantages_are_finite_whatever_is_none(name, rewards):
    assert ALL[name](rewards, WEIGHTS, SIZE).isfinite().all()


@pytest.mark.parametrize("name", marked(SUMS))
@settings(deadline=None, max_examples=50)
@given(batches(optional_grades, functions=2), st.lists(grades, min_size=12, max_size=12))
def test_none_is_the_same_as_a_sum_without_that_reward(name, rewards, always):
    """`always` is a reward that applies to every row: see the next test for rows to which none
    applies.
    """
    rewards = [*rewards, always]
    terms = [
        [weight * value for value in column]
        for weight, column in zip(WEIGHTS, rewards, strict=True)
    ]
    totals = [sum(value for value in row if value == value) for row in zip(*terms, strict=True)]
    expected = SUMS[name]([totals], [1.0], SIZE)
    torch.testing.assert_close(SUMS[name](rewards, WEIGHTS, SIZE), expected, atol=2e-3, rtol=1e-3)


@pytest.mark.parametrize("name", marked(SUMS))
def test_a_completion_to_which_no_reward_applies_counts_as_0_but_with_us_not_at_all(name):
    rewards, zero = [[1.0, 0.5, NONE, 0.0]], [[1.0, 0.5, 0.0, 0.0]]
    advantages = SUMS[name](rewards, [1.0], 4)
    if "ours" in name:
        without = SUMS[name]([[1.0, 0.5, 0.0]], [1.0], 3)
        torch.testing.assert_close(advantages[[0, 1, 3]], without)
        assert advantages[2] == 0.0
    else:
        assert advantages.tolist() == SUMS[name](zero, [1.0], 4).tolist()


# --- what a gated reward gives: something for right answers, 0.0 for wrong ones

shapes = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.9, 1.0, 3.2])
gated_rows = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0]), shapes), min_size=2 * SIZE, max_size=2 * SIZE
)


@pytest.mark.parametrize("name", marked(ALL))
@settings(deadline=None, max_examples=100)
@given(gated_rows, st.sampled_from([0.01, 0.5, 1.0, 10.0]))
def test_gated_no_wrong_answer_has_a_better_advantage_than_a_right_one_of_its_group(
    name, rows, weight
):
    outcome = [right for right, _ in rows]
    gated = [right * shape for right, shape in rows]
    advantages = ALL[name]([outcome, gated], [1.0, weight], SIZE).tolist()
    for start in range(0, len(rows), SIZE):
        group = range(start, start + SIZE)
        right = [advantages[place] for place in group if outcome[place]]
        wrong = [advantages[place] for place in group if not outcome[place]]
        if right and wrong:
            assert min(right) > max(wrong)


@pytest.mark.parametrize("name", marked(SEPARATE))
def test_with_none_for_wrong_answers_a_long_right_one_would_be_worse_than_a_wrong_one(name):
    """The example of docs/rewards/gate.md. Why a closed gate gives 0.0."""
    outcome = [1.0] * 7 + [0.0]
    shaping = [0.9] * 6 + [0.1]
    none = SEPARATE[name]([outcome, [*shaping, NONE]], [1.0, 2.0], 8)
    zero = SEPARATE[name]([outcome, [*shaping, 0.0]], [1.0, 2.0], 8)
    assert none[6] < none[7] and zero[6] > zero[7]
    assert [round(value, 2) for value in none[5:].tolist()] == [0.53, -1.99, -1.18]
    assert [round(value, 2) for value in zero[5:].tolist()] == [0.51, -0.94, -2.13]


@pytest.mark.parametrize("name", marked(name for name in SUMS))
def test_in_sums_a_closed_gate_is_the_same_as_none(name):
    outcome, shaping = [1.0, 1.0, 0.0, 0.0], [0.9, 0.1]
    none = SUMS[name]([outcome, [*shaping, NONE, NONE]], [1.0, 0.5], 4)
    assert none.tolist() == SUMS[name]([outcome, [*shaping, 0.0, 0.0]], [1.0, 0.5], 4).tolist()


# --- what is wrong in ms-swift 4.6.0; a failure here means that docs/rewards/gate.md has to change


@pytest.mark.slow
def test_gdpo_makes_advantages_of_rounding_in_a_group_without_a_spread():
    """Six right answers that a second reward gives 0.3 each; in another group it gives 0.5, to
    right and wrong ones.
    """
    rewards = [[1.0] * 9 + [0.0] * 3, [0.3] * 6 + [0.5] * 6]
    advantages = {
        name: estimator(rewards, [1.0, 1.0], 6)[:6] for name, estimator in SEPARATE.items()
    }
    assert [round(value, 2) for value in advantages["ms-swift grpo gdpo"].tolist()] == [
        0.46
    ] * 6  # it should be 0
    assert advantages["TRL normalize_then_sum"].abs().max() < 0.01
