"""GRPO's formulas beside slow loops that are written straight from the papers, and where rounding
would matter.
"""

import math
import statistics

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from grpo_from_scratch import (
    LOSS_TYPES,
    clipped_objective,
    completion_mask,
    group_advantages,
    grpo_loss,
    k3_kl,
    selected_log_probs,
    token_weights,
    total_rewards,
)

pytestmark = pytest.mark.slow  # as a whole

NAN, INF = math.nan, math.inf
RATIO_LEVELS = ("token", "sequence")
REWARDS = st.floats(-1e6, 1e6, width=32)
GROUPS = st.integers(1, 6).flatmap(
    lambda size: st.lists(
        st.lists(REWARDS | st.just(NAN), min_size=size, max_size=size), min_size=1, max_size=4
    )
)
AWKWARD = (0.1, 0.1 + 0.2, 1 / 3, 0.7, 1e6, -1e6 / 3, 1e-20, 0.0)


# Advantages


def advantages_by_loop(groups: list[list[float]], scale: bool, eps: float) -> list[float]:
    """(r - mean) / (standard deviation of the sample + eps) with Python's exact means, over the
    known rewards of each group.
    """
    result = []
    for group in groups:
        known = [reward for reward in group if not math.isnan(reward)]
        for reward in group:
            if math.isnan(reward) or len(set(known)) == 1:
                result.append(0.0)
                continue
            difference = reward - statistics.mean(known)
            result.append(difference / (statistics.stdev(known) + eps) if scale else difference)
    return result


@given(GROUPS, st.booleans(), st.sampled_from([1e-8, 1e-4, 0.01]))
@example([[1e6, 999999.9375]], True, 1e-8)  # neighbours in float32
@example([[NAN, NAN], [1.0, NAN]], True, 1e-8)
def test_advantages_are_those_of_the_loop(groups, scale, eps):
    rewards = torch.tensor(groups).flatten()
    advantages = group_advantages(rewards, len(groups[0]), scale=scale, eps=eps)
    expected = advantages_by_loop(groups, scale, eps)
    assert advantages.dtype == torch.float32
    assert advantages.tolist() == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert advantages.isfinite().all()


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ([106.0, 77.0, 71.0, 44.0], [1.2379, 0.0982, -0.1375, -1.1986]),
        ([1.0, 0.0, 1.0, 0.0], [0.8513, -0.8513, 0.8513, -0.8513]),
    ],
)
def test_worked_advantages_with_an_eps_of_a_hundredth(rewards, expected):
    advantages = group_advantages(torch.tensor(rewards), 4, eps=0.01)
    assert advantages.tolist() == pytest.approx(expected, abs=5e-5)


@given(
    st.sampled_from(AWKWARD),
    st.integers(2, 70),
    st.booleans(),
    st.sampled_from([torch.float32, torch.float64]),
)
def test_equal_rewards_earn_exactly_nothing(reward, size, scale, dtype):
    rewards = torch.tensor([reward] * size + [1.0] + [0.0] * (size - 1), dtype=dtype)
    advantages = group_advantages(rewards, size, scale=scale)
    assert advantages[:size].tolist() == [0.0] * size
    assert advantages[size] > 0 > advantages[size + 1]


def test_rewards_that_differ_only_by_rounding_are_equal():
    rewards = torch.tensor([0.1 + 0.2, 0.3, 0.3], dtype=torch.float64)
    assert rewards[0] != rewards[1]
    assert group_advantages(rewards, 3, eps=0.0).tolist() == [0, 0, 0]


@given(
    st.lists(
        st.lists(st.floats(-9, 9, width=32) | st.just(NAN), min_size=3, max_size=3),
        min_size=1,
        max_size=6,
    )
)
def test_the_total_reward_leaves_out_what_does_not_apply(rows):
    weights = [0.5, 0.5, 2.0]
    expected = []
    for row in rows:
        known = [w * r for w, r in zip(weights, row, strict=True) if not math.isnan(r)]
        expected.append(sum(known) if known else NAN)
    found = total_rewards(torch.tensor(rows), torch.tensor(weights))
    assert found.tolist() == pytest.approx(expected, rel=1e-5, abs=1e-5, nan_ok=True)


# The clip


@pytest.mark.parametrize(
    "advantage, ratio, objective, slope",
    [
        (2.0, 0.7, 1.4, 2.0),  # good and already rarer: back up, with the full gradient
        (2.0, 1.1, 2.2, 2.0),
        (2.0, 1.25, 2.5, 2.0),
        (2.0, 1.5, 2.6, 0.0),  # good and made likely enough: nothing more to gain
        (-2.0, 0.7, -1.6, 0.0),  # bad and made rare enough
        (-2.0, 0.9, -1.8, -2.0),
        (-2.0, 1.5, -3.0, -2.0),  # bad and still more likely: down, with the full gradient
        (0.0, 1.5, 0.0, 0.0),
    ],
)
def test_the_cases_of_the_clip(advantage, ratio, objective, slope):
    ratios = torch.tensor([ratio], dtype=torch.float64, requires_grad=True)
    advantages = torch.tensor([advantage], dtype=torch.float64)
    found = clipped_objective(ratios, advantages, low=0.2, high=0.3)
    assert found.item() == pytest.approx(objective)
    found.sum().backward()
    assert ratios.grad.item() == slope
    one = torch.ones(1, 1)
    log_probs = ratios.detach().log().unsqueeze(1)
    zero = torch.zeros_like(log_probs)
    _, sums = grpo_loss(log_probs, zero, None, advantages, one, one, epsilon=0.2, epsilon_high=0.3)
    assert sums["clip_ratio/low_mean"] == (advantage < 0 and slope == 0)
    assert sums["clip_ratio/high_mean"] == (advantage > 0 and slope == 0)


def mask_of(lengths: list[int], longest: int = 9) -> torch.Tensor:
    return torch.arange(longest) < torch.tensor(lengths).unsqueeze(1)


def test_an_unknown_aggregation_is_refused_by_name():
    with pytest.raises(ValueError, match="grpo, dapo, dr_grpo, got 'mean'"):
        token_weights(torch.ones(1, 1), "mean", 1)


# The loss


def loss_by_loop(
    log_probs, old, ref, advantages, lengths, aggregation, level, low, high, beta, max_length
):
    """Token by token as the papers write it, in the precision of its arguments."""
    losses: list[list] = []  # of each completion, a list over its tokens
    lower, upper = (torch.tensor(bound, dtype=log_probs.dtype) for bound in (1 - low, 1 + high))
    for i, length in enumerate(lengths):
        ratios = [torch.exp(log_probs[i, t] - old[i, t]) for t in range(length)]
        if level == "sequence" and length:
            product = torch.ones((), dtype=log_probs.dtype)
            for ratio in ratios:
                product = product * ratio
            ratios = [product ** (1 / length)] * length
        losses.append([])
        for t, ratio in enumerate(ratios):
            bounded = min(max(ratio, lower), upper)
            objective = min(ratio * advantages[i], bounded * advantages[i])
            odds = torch.exp(ref[i, t]) / torch.exp(log_probs[i, t])
            losses[-1].append(beta * (odds - torch.log(odds) - 1) - objective)
    if aggregation == "grpo":
        return sum(sum(tokens) / len(tokens) for tokens in losses if tokens) / len(losses)
    if aggregation == "dapo":
        return sum(sum(tokens) for tokens in losses) / sum(lengths)
    return sum(sum(tokens) for tokens in losses) / (len(losses) * max_length)


def random_batch(lengths: list[int], seed: int = 0, spread: float = 0.3):
    """log_probs (with gradient), old, ref: (B, T) in float64, and advantages (B,)."""
    generator = torch.Generator().manual_seed(seed)
    shape = len(lengths), max(lengths)
    log_probs = -3 * torch.rand(shape, generator=generator, dtype=torch.float64) - 0.1
    old, ref = (
        log_probs + spread * torch.randn(shape, generator=generator, dtype=torch.float64)
        for _ in range(2)
    )
    advantages = torch.randn(len(lengths), generator=generator, dtype=torch.float64)
    return log_probs.requires_grad_(), old, ref, advantages


@pytest.mark.parametrize("aggregation", LOSS_TYPES)
@pytest.mark.parametrize("level", RATIO_LEVELS)
@pytest.mark.parametrize("beta", [0.0, 0.04])
@pytest.mark.parametrize("low, high", [(0.2, None), (0.2, 0.28), (0.01, 0.01), (0.0003, 0.0004)])
def test_loss_and_gradient_are_those_of_the_loop(aggregation, level, beta, low, high):
    lengths = [5, 1, 8, 0, 3, 8]
    for seed in range(3):
        log_probs, old, ref, advantages = random_batch(lengths, seed)
        mask = mask_of(lengths, 8)
        weights = token_weights(mask, aggregation, max_length=10)
        loss, sums = grpo_loss(
            log_probs,
            old,
            ref if beta else None,
            advantages,
            mask,
            weights,
            epsilon=low,
            epsilon_high=high,
            beta=beta,
            level=level,
        )
        upper = low if high is None else high
        expected = loss_by_loop(
            log_probs,
            old,
            ref,
            advantages,
            lengths,
            aggregation,
            level,
            low,
            upper,
            beta,
            max_length=10,
        )
        assert loss.item() == pytest.approx(
            expected.item(), rel=1e-6, abs=1e-9
        )  # the weights are float32
        (found,) = torch.autograd.grad(loss, log_probs)
        (right,) = torch.autograd.grad(expected, log_probs)
        torch.testing.assert_close(found, right, rtol=1e-6, atol=1e-9)
        assert ("kl" in sums) == bool(beta)


@pytest.mark.parametrize("level", RATIO_LEVELS)
@pytest.mark.parametrize("name", ["log_probs", "old", "ref"])
@pytest.mark.parametrize("junk", [NAN, INF, -INF, 300.0, -300.0, 0.0])
def test_nothing_leaks_out_of_the_padding(level, name, junk):
    """Neither into the loss nor into its gradient nor into what is logged; 300 is where exp
    overflows in float32.
    """
    lengths = [3, 0, 5]
    mask = mask_of(lengths, 5)
    weights = token_weights(mask, "grpo", 5)

    def results(**filled):
        log_probs, old, ref, advantages = (x.detach().float() for x in random_batch(lengths))
        parts = {"log_probs": log_probs, "old": old, "ref": ref}
        for part, value in filled.items():
            parts[part] = parts[part].masked_fill(~mask, value)
        parts["log_probs"].requires_grad_()
        loss, sums = grpo_loss(
            **parts,
            advantages=advantages,
            mask=mask,
            weights=weights,
            epsilon=0.1,
            beta=0.04,
            level=level,
        )
        loss.backward()
        return loss.detach(), parts["log_probs"].grad, sums

    loss, grad, sums = results(**{name: junk})
    clean_loss, clean_grad, clean_sums = results()
    assert clean_grad.isfinite().all() and (clean_grad[~mask] == 0).all()
    assert loss == clean_loss
    torch.testing.assert_close(grad, clean_grad, rtol=0, atol=0)
    assert sums == clean_sums


# Log-probabilities


@pytest.mark.parametrize("temperature", [1.0, 0.6, 3.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_log_probs_are_those_of_the_log_softmax_and_so_is_the_gradient(temperature, dtype):
    generator = torch.Generator().manual_seed(0)
    logits = (5 * torch.randn(3, 7, 31, generator=generator)).to(dtype).requires_grad_()
    tokens = torch.randint(31, (3, 7), generator=generator)
    found = selected_log_probs(logits, tokens, temperature)
    expected = (
        (logits.float() / temperature).log_softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    )
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    upstream = torch.randn(3, 7, generator=generator)
    (grad,), (right,) = (torch.autograd.grad(x, logits, upstream) for x in (found, expected))
    torch.testing.assert_close(
        grad, right, rtol=1e-2 if dtype == torch.bfloat16 else 1e-5, atol=1e-6
    )


def test_tokens_that_the_sampler_excludes_have_no_influence():
    logits = torch.tensor([[1.0, -INF, 2.0]], requires_grad=True)
    found = selected_log_probs(logits, torch.tensor([0]))
    assert found.item() == pytest.approx(math.log(1 / (1 + math.e)))
    found.backward(torch.ones(1))
    assert logits.grad.isfinite().all()
    assert selected_log_probs(logits, torch.tensor([1])).item() == -INF


# The mask


def test_the_mask_ends_with_the_first_stop_token_and_a_cut_completion_counts_whole():
    completions = torch.tensor([[5, 2, 2, 2], [5, 6, 7, 8], [3, 9, 2, 0], [2, 2, 2, 2]])
    lengths = completion_mask(completions, [2, 3]).sum(1).tolist()
    assert lengths == [2, 4, 1, 1]


def test_the_kl_of_equal_and_unequal_probabilities():
    log_probs, ref = torch.tensor([0.5, 0.1]).log(), torch.tensor([0.5, 0.2]).log()
    assert k3_kl(log_probs, ref).tolist() == pytest.approx([0.0, 2 - math.log(2) - 1], abs=1e-6)
