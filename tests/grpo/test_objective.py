"""GRPO's formulas: the notebook's values, properties, and a slow loop that is written straight from the papers."""

import math
import statistics

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from swift_rlvr.grpo.log_probs import chunked_log_probs, selected_log_probs
from swift_rlvr.grpo.objective import (
    AGGREGATIONS,
    RATIO_LEVELS,
    clipped,
    clipped_objective,
    completion_mask,
    group_advantages,
    k1,
    k2,
    k3,
    log_ratio,
    policy_loss,
    token_weights,
    total_reward,
)
from torch.utils._python_dispatch import TorchDispatchMode

pytestmark = pytest.mark.slow  # as a whole

NAN, INF = math.nan, math.inf
REWARDS = st.floats(-1e6, 1e6, width=32)
KNOWN_OR_NOT = st.lists(st.tuples(st.integers(-3, 3), REWARDS | st.just(NAN)), min_size=1, max_size=20)
AWKWARD = (0.1, 0.1 + 0.2, 1 / 3, 0.7, 1e6, -1e6 / 3, 1e-20, 0.0)


# Advantages


def advantages_by_loop(rewards: list[float], groups: list[int], scale: bool, eps: float) -> list[float]:
    """(r - mean) / (standard deviation of the sample + eps) with Python's exact means, over the known rewards."""
    result = []
    for reward, group in zip(rewards, groups, strict=True):
        known = [r for r, g in zip(rewards, groups, strict=True) if g == group and not math.isnan(r)]
        if math.isnan(reward) or len(set(known)) == 1:
            result.append(0.0)
        else:
            difference = reward - statistics.mean(known)
            result.append(difference / (statistics.stdev(known) + eps) if scale else difference)
    return result


@pytest.mark.parametrize(
    "rewards, expected",
    [
        ([106, 77, 71, 44], [1.2379, 0.0982, -0.1375, -1.1986]),
        ([1, 0, 1, 0], [0.8513, -0.8513, 0.8513, -0.8513]),
        ([100, 66], [0.7068, -0.7068]),
    ],
)
def test_the_notebooks_advantages(rewards, expected):
    found = group_advantages(torch.tensor(rewards, dtype=torch.float32), torch.zeros(len(rewards)).long(), eps=0.01)
    assert found.tolist() == pytest.approx(expected, abs=5e-5)


@given(KNOWN_OR_NOT, st.booleans(), st.sampled_from([1e-8, 1e-4, 0.01]))
@example([(0, 1e6), (0, 999999.9375)], True, 1e-8)  # neighbours in float32
def test_advantages_are_those_of_the_loop(rows, scale, eps):
    groups, rewards = map(list, zip(*rows, strict=True))
    found = group_advantages(torch.tensor(rewards), torch.tensor(groups), scale=scale, eps=eps)
    expected = advantages_by_loop(rewards, groups, scale, eps)
    assert found.dtype == torch.float32
    assert found.tolist() == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert found.isfinite().all()


@given(KNOWN_OR_NOT, st.randoms(use_true_random=False), st.booleans())
def test_the_order_of_the_batch_and_the_names_of_the_groups_do_not_matter(rows, rng, scale):
    groups, rewards = (torch.tensor(column) for column in zip(*rows, strict=True))
    order = torch.tensor(rng.sample(range(len(rows)), len(rows)))
    renamed = 1000 - 17 * groups
    expected = group_advantages(rewards, groups, scale=scale)[order]
    found = group_advantages(rewards[order], renamed[order], scale=scale)
    assert found.tolist() == pytest.approx(expected.tolist(), rel=1e-5, abs=1e-6)


@given(st.sampled_from(AWKWARD), st.integers(1, 70), st.booleans(), st.sampled_from([torch.float32, torch.float64]))
def test_equal_rewards_earn_exactly_nothing(reward, size, scale, dtype):
    rewards = torch.tensor([reward] * size + [1.0, 0.0], dtype=dtype)
    groups = torch.tensor([5] * size + [2, 2])
    found = group_advantages(rewards, groups, scale=scale)
    assert found[:-2].tolist() == [0.0] * size
    assert found[-2] > 0 > found[-1]


def test_rewards_that_differ_only_by_rounding_are_equal():
    rewards = torch.tensor([0.1 + 0.2, 0.3, 0.3], dtype=torch.float64)
    assert rewards[0] != rewards[1]
    assert group_advantages(rewards, torch.zeros(3).long(), eps=0.0).tolist() == [0, 0, 0]


def test_small_differences_of_large_rewards_count():
    rewards = torch.tensor([1e6 + 1, 1e6])
    assert group_advantages(rewards, torch.zeros(2).long()).tolist() == pytest.approx([0.5**0.5, -(0.5**0.5)], rel=1e-3)
    assert group_advantages(rewards, torch.zeros(2).long(), scale=False).tolist() == [0.5, -0.5]


@given(KNOWN_OR_NOT, st.booleans())
def test_a_reward_of_none_is_as_a_completion_that_is_not_there(rows, scale):
    groups, rewards = (torch.tensor(column) for column in zip(*rows, strict=True))
    known = ~rewards.isnan()
    found = group_advantages(rewards, groups, scale=scale)
    assert found[~known].tolist() == [0.0] * int((~known).sum())
    if known.any():
        alone = group_advantages(rewards[known], groups[known], scale=scale)
        assert found[known].tolist() == pytest.approx(alone.tolist(), rel=1e-6, abs=1e-7)


@given(st.lists(st.lists(st.floats(-9, 9, width=32) | st.just(NAN), min_size=3, max_size=3), min_size=1, max_size=6))
def test_the_total_reward_leaves_out_what_does_not_apply(rows):
    weights = [0.5, 0.5, 2.0]
    expected = []
    for row in rows:
        known = [w * r for w, r in zip(weights, row, strict=True) if not math.isnan(r)]
        expected.append(sum(known) if known else NAN)
    found = total_reward(torch.tensor(rows), torch.tensor(weights))
    assert found.tolist() == pytest.approx(expected, rel=1e-5, abs=1e-5, nan_ok=True)


# The mask


@given(
    st.integers(0, 9).flatmap(lambda t: st.lists(st.lists(st.integers(0, 4), min_size=t, max_size=t), min_size=1)),
    st.lists(st.integers(0, 4), max_size=3),
)
def test_the_mask_is_that_of_the_loop(rows, ends):
    expected = []
    for row in rows:
        first = next((place for place, token in enumerate(row) if token in ends), len(row))
        expected.append([place <= first for place in range(len(row))])
    found = completion_mask(torch.tensor(rows).long().view(len(rows), -1), ends)
    assert found.dtype == torch.bool
    assert found.tolist() == expected


# The KL's estimates


def two_policies(seed: int, vocabulary: int = 7) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities (V,) of a policy, float64 and with gradient to its logits, and of a reference."""
    generator = torch.Generator().manual_seed(seed)
    logits, ref = torch.randn(2, vocabulary, generator=generator, dtype=torch.float64)
    return logits.requires_grad_().log_softmax(0), ref.log_softmax(0)


def kl(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
    return (p.exp() * (p - q)).sum()


def gradient(value: torch.Tensor, log_probs: torch.Tensor) -> torch.Tensor:
    """To the logits that `log_probs` is made of."""
    logits = log_probs.grad_fn.next_functions[0][0].variable
    (found,) = torch.autograd.grad(value, logits, retain_graph=True)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_k1_and_k3_are_unbiased_and_k2_is_not(seed):
    log_probs, ref = two_policies(seed)

    def expectation(estimate):
        return (log_probs.exp() * estimate(log_probs, ref)).sum().item()

    exact = kl(log_probs, ref).item()
    assert exact > 0.01
    assert expectation(k1) == pytest.approx(exact, rel=1e-12)
    assert expectation(k3) == pytest.approx(exact, rel=1e-12)
    assert expectation(k2) != pytest.approx(exact, rel=1e-3)


@pytest.mark.parametrize("seed", range(5))
def test_the_gradient_of_k2_is_the_kls_and_that_of_k3_the_reverse_kls(seed):
    """As a loss over sampled tokens, whose sampling has no gradient; that of k1 is nothing at all."""
    log_probs, ref = two_policies(seed)
    probability = log_probs.exp().detach()

    def expected_gradient(estimate):
        return gradient((probability * estimate(log_probs, ref)).sum(), log_probs)

    exact, reverse = gradient(kl(log_probs, ref), log_probs), gradient(kl(ref, log_probs), log_probs)
    torch.testing.assert_close(expected_gradient(k2), exact, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(expected_gradient(k3), reverse, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(expected_gradient(k1), torch.zeros(7, dtype=torch.float64), rtol=0, atol=1e-12)
    assert (exact - reverse).abs().max() > 1e-3


@given(st.floats(-30, 0), st.floats(-30, 0))
def test_k2_and_k3_are_never_negative_and_the_derivatives_are_those_on_paper(a, b):
    log_probs = torch.tensor(a, dtype=torch.float64, requires_grad=True)
    ref = torch.tensor(b, dtype=torch.float64)
    assert k1(log_probs, ref).item() == a - b
    for estimate, value, slope in (
        (k2, (a - b) ** 2 / 2, a - b),
        (k3, math.expm1(b - a) - (b - a), -math.expm1(b - a)),
    ):
        found = estimate(log_probs, ref)
        assert found.item() == pytest.approx(value, rel=1e-9, abs=1e-14)
        assert found.item() >= -1e-15
        assert torch.autograd.grad(found, log_probs)[0].item() == pytest.approx(slope, rel=1e-9, abs=1e-12)


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
    at_low, at_high = clipped(ratios, advantages, low=0.2, high=0.3)
    assert at_low.item() == (advantage < 0 and slope == 0)
    assert at_high.item() == (advantage > 0 and slope == 0)


@given(
    st.lists(st.tuples(st.floats(0.01, 4), st.floats(-3, 3).filter(lambda a: abs(a) > 1e-6)), min_size=1, max_size=8),
    st.floats(0, 0.9),
    st.floats(0, 2),
)
def test_the_clip_takes_the_gradient_away_exactly_where_it_says(rows, low, high):
    ratio, advantages = (torch.tensor(column, dtype=torch.float64) for column in zip(*rows, strict=True))
    ratio.requires_grad_()
    clipped_objective(ratio, advantages, low, high).sum().backward()
    at_low, at_high = clipped(ratio, advantages, low, high)
    assert not (at_low & at_high).any()
    assert (ratio.grad == 0).tolist() == (at_low | at_high).tolist()
    torch.testing.assert_close(ratio.grad[ratio.grad != 0], advantages[ratio.grad != 0])


def test_the_sequences_ratio_is_the_geometric_mean_over_the_tokens_that_count():
    log_probs, old = (
        torch.tensor([[-1.0, -2.0, -5.0], [-1.0, -1.0, -1.0]]),
        torch.tensor([[-1.5, -2.1, -9.0], [-2.0] * 3]),
    )
    mask = torch.tensor([[1, 1, 0], [0, 0, 0]])
    found = log_ratio(log_probs, old, mask, "sequence")
    assert found.shape == (2, 1)
    assert found.exp().flatten().tolist() == pytest.approx([math.sqrt(math.exp(0.5) * math.exp(0.1)), 1.0])
    torch.testing.assert_close(log_ratio(log_probs, old, mask), log_probs - old)


# The weights of the tokens


LENGTHS = st.lists(st.integers(0, 9), min_size=1, max_size=7)


def mask_of(lengths: list[int], longest: int = 9) -> torch.Tensor:
    return torch.arange(longest) < torch.tensor(lengths).unsqueeze(1)


@given(LENGTHS, st.sampled_from(AGGREGATIONS), st.integers(9, 40))
def test_the_weights_of_the_tokens(lengths, aggregation, max_length):
    mask = mask_of(lengths)
    weights = token_weights(mask, aggregation, max_length)
    assert (weights[~mask] == 0).all()
    per_completion = [1 / len(lengths) if length else 0 for length in lengths]
    expected = {
        "grpo": per_completion,
        "dapo": [length / max(1, sum(lengths)) for length in lengths],
        "dr_grpo": [length / len(lengths) / max_length for length in lengths],
    }[aggregation]
    assert weights.sum(1).tolist() == pytest.approx(expected, rel=1e-5)
    for row, length in zip(weights, lengths, strict=True):
        assert (row[:length] == row[0]).all(), "all tokens of a completion count the same"


def test_an_unknown_aggregation_is_refused_by_name():
    with pytest.raises(ValueError, match="grpo, dapo, dr_grpo, not 'mean'"):
        token_weights(torch.ones(1, 1), "mean", 1)


# The loss


def loss_by_loop(log_probs, old, ref, advantages, lengths, aggregation, level, low, high, beta, max_length):
    """Token by token as the papers write it, in the precision of its arguments."""
    losses = []  # of each completion, a list over its tokens
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
    old, ref = (log_probs + spread * torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2))
    advantages = torch.randn(len(lengths), generator=generator, dtype=torch.float64)
    return log_probs.requires_grad_(), old, ref, advantages


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("level", RATIO_LEVELS)
@pytest.mark.parametrize("beta", [0.0, 0.04])
@pytest.mark.parametrize("low, high", [(0.2, None), (0.2, 0.28), (0.01, 0.01), (0.0003, 0.0004)])
def test_loss_and_gradient_are_those_of_the_loop(aggregation, level, beta, low, high):
    lengths = [5, 1, 8, 0, 3, 8]
    for seed in range(3):
        log_probs, old, ref, advantages = random_batch(lengths, seed)
        mask = mask_of(lengths, 8)
        weights = token_weights(mask, aggregation, max_length=10)
        loss, sums = policy_loss(
            log_probs, old, ref if beta else None, advantages, mask, weights, low=low, high=high, beta=beta, level=level
        )
        upper = low if high is None else high
        expected = loss_by_loop(
            log_probs, old, ref, advantages, lengths, aggregation, level, low, upper, beta, max_length=10
        )
        assert loss.item() == pytest.approx(expected.item(), rel=1e-6, abs=1e-9)  # the weights are float32
        (found,) = torch.autograd.grad(loss, log_probs)
        (right,) = torch.autograd.grad(expected, log_probs)
        torch.testing.assert_close(found, right, rtol=1e-6, atol=1e-9)
        assert ("kl" in sums) == bool(beta)


@pytest.mark.parametrize("level", RATIO_LEVELS)
def test_the_sums_to_log_are_those_of_the_loop(level):
    lengths = [5, 1, 8, 0, 3, 8]
    log_probs, old, ref, advantages = random_batch(lengths, seed=1)
    mask = mask_of(lengths, 8)
    _, sums = policy_loss(
        log_probs, old, ref, advantages, mask, token_weights(mask, "grpo", 8), low=0.1, high=0.15, beta=1.0, level=level
    )
    low = high = divergence = 0
    for i, length in enumerate(lengths):
        differences = [(log_probs[i, t] - old[i, t]).item() for t in range(length)]
        for t in range(length):
            ratio = math.exp(differences[t] if level == "token" else sum(differences) / length)
            low += ratio < 0.9 and advantages[i].item() < 0
            high += ratio > 1.15 and advantages[i].item() > 0
            d = (ref[i, t] - log_probs[i, t]).item()
            divergence += math.exp(d) - d - 1
    assert low > 0 and high > 0
    assert {name: value.item() for name, value in sums.items()} == {
        "clip_ratio/low_mean": low,
        "clip_ratio/high_mean": high,
        "clip_ratio/region_mean": low + high,
        "kl": pytest.approx(divergence),
    }


def test_on_the_policy_that_sampled_it_is_the_policy_gradient():
    """With a ratio of 1 the gradient is -A times the weight, whatever the clip range, of both levels."""
    lengths = [2, 4]
    log_probs, *_, advantages = random_batch(lengths)
    mask = mask_of(lengths, 4)
    weights = token_weights(mask, "grpo", 4)
    for level in RATIO_LEVELS:
        loss, _ = policy_loss(log_probs, log_probs.detach(), None, advantages, mask, weights, low=0.0, level=level)
        (found,) = torch.autograd.grad(loss, log_probs)
        torch.testing.assert_close(found, -advantages.unsqueeze(1) * weights, rtol=1e-12, atol=0)


@pytest.mark.parametrize("level", RATIO_LEVELS)
@pytest.mark.parametrize("place", ["log_probs", "old", "ref"])
@pytest.mark.parametrize("junk", [NAN, INF, -INF, 300.0, -300.0, 0.0])
def test_nothing_leaks_out_of_the_padding(level, place, junk):
    """Neither into the loss nor into its gradient nor into what is logged; 300 is where exp overflows in float32."""
    lengths = [3, 0, 5]
    mask = mask_of(lengths, 5)
    weights = token_weights(mask, "grpo", 5)

    def results(**filled):
        log_probs, old, ref, advantages = (x.detach().float() for x in random_batch(lengths))
        parts = {"log_probs": log_probs, "old": old, "ref": ref}
        for name, value in filled.items():
            parts[name] = parts[name].masked_fill(~mask, value)
        parts["log_probs"].requires_grad_()
        loss, sums = policy_loss(
            **parts, advantages=advantages, mask=mask, weights=weights, low=0.1, beta=0.04, level=level
        )
        loss.backward()
        return loss.detach(), parts["log_probs"].grad, sums

    loss, grad, sums = results(**{place: junk})
    clean_loss, clean_grad, clean_sums = results()
    assert clean_grad.isfinite().all() and (clean_grad[~mask] == 0).all()
    assert loss == clean_loss
    torch.testing.assert_close(grad, clean_grad, rtol=0, atol=0)
    assert sums == clean_sums


@given(
    st.permutations(range(6)), st.sets(st.integers(1, 5)), st.sampled_from(AGGREGATIONS), st.sampled_from(RATIO_LEVELS)
)
@settings(deadline=None)
def test_micro_batches_add_up_to_the_batch(order, cuts, aggregation, level):
    lengths = [5, 1, 8, 0, 3, 8]
    log_probs, old, ref, advantages = random_batch(lengths)
    mask = mask_of(lengths, 8)
    weights = token_weights(mask, aggregation, max_length=10).double()
    options = {"low": 0.1, "high": 0.2, "beta": 0.04, "level": level}
    whole, whole_sums = policy_loss(log_probs, old, ref, advantages, mask, weights, **options)
    (whole_gradient,) = torch.autograd.grad(whole, log_probs)
    total, sums = 0.0, dict.fromkeys(whole_sums, 0.0)
    for rows in torch.tensor(order).tensor_split(sorted(cuts)):
        width = max(1, max(lengths[row] for row in rows))  # a micro-batch is cut to its longest completion
        parts = (x[rows, :width] for x in (log_probs, old, ref))
        loss, part_sums = policy_loss(*parts, advantages[rows], mask[rows, :width], weights[rows, :width], **options)
        loss.backward()
        total += loss.item()
        for name, value in part_sums.items():
            sums[name] += value.item()
    assert total == pytest.approx(whole.item(), rel=1e-12)
    torch.testing.assert_close(log_probs.grad, whole_gradient, rtol=1e-12, atol=1e-15)
    assert sums == pytest.approx({name: value.item() for name, value in whole_sums.items()}, rel=1e-12)


# Log-probabilities


@pytest.mark.parametrize("temperature", [1.0, 0.6, 3.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_log_probs_are_those_of_the_log_softmax_and_so_is_the_gradient(temperature, dtype):
    generator = torch.Generator().manual_seed(0)
    logits = (5 * torch.randn(3, 7, 31, generator=generator)).to(dtype).requires_grad_()
    tokens = torch.randint(31, (3, 7), generator=generator)
    found = selected_log_probs(logits, tokens, temperature)
    expected = (logits.float() / temperature).log_softmax(-1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    upstream = torch.randn(3, 7, generator=generator)
    (grad,), (right,) = (torch.autograd.grad(x, logits, upstream) for x in (found, expected))
    torch.testing.assert_close(grad, right, rtol=1e-2 if dtype == torch.bfloat16 else 1e-5, atol=1e-6)


def test_tokens_that_the_sampler_excludes_have_no_influence():
    logits = torch.tensor([[1.0, -INF, 2.0]], requires_grad=True)
    found = selected_log_probs(logits, torch.tensor([0]))
    assert found.item() == pytest.approx(math.log(1 / (1 + math.e)))
    found.backward(torch.ones(1))
    assert logits.grad.isfinite().all()
    assert selected_log_probs(logits, torch.tensor([1])).item() == -INF


class LargestTensor(TorchDispatchMode):
    """Remembers the number of elements of the largest tensor that an operation gives, also on the way back."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for value in result if isinstance(result, (list, tuple)) else [result]:
            if isinstance(value, torch.Tensor):
                self.elements = max(self.elements, value.numel())
        return result


N, HIDDEN, VOCABULARY = 50, 8, 101


def head_and_tokens(bias: bool):
    generator = torch.Generator().manual_seed(0)
    head = torch.nn.Linear(HIDDEN, VOCABULARY, bias=bias)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    hidden = torch.randn(N, HIDDEN, generator=generator).requires_grad_()
    return hidden, head, torch.randint(VOCABULARY, (N,), generator=generator), torch.randn(N, generator=generator)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("chunk", [1, 7, 25, N - 1, N, N + 9])
def test_chunks_make_no_difference(bias, chunk):
    hidden, head, tokens, upstream = head_and_tokens(bias)
    inputs = [hidden, *head.parameters()]
    expected = selected_log_probs(head(hidden), tokens, 0.8)
    found = chunked_log_probs(hidden, head, tokens, 0.8, chunk)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    gradients, right = (torch.autograd.grad(x, inputs, upstream) for x in (found, expected))
    torch.testing.assert_close(gradients, right, rtol=1e-5, atol=1e-5)
    with torch.no_grad():
        torch.testing.assert_close(chunked_log_probs(hidden, head, tokens, 0.8, chunk), expected, rtol=1e-5, atol=1e-5)


def test_chunks_never_hold_the_logits_of_all_tokens():
    hidden, head, tokens, upstream = head_and_tokens(bias=False)
    with LargestTensor() as at_once:
        selected_log_probs(head(hidden), tokens).backward(upstream)
    assert at_once.elements == N * VOCABULARY, "what is measured is the logits"
    with LargestTensor() as in_chunks:
        chunked_log_probs(hidden, head, tokens, 1.0, chunk=5).backward(upstream)
    assert in_chunks.elements == max(5 * VOCABULARY, HIDDEN * VOCABULARY, N * HIDDEN)
    with torch.no_grad(), LargestTensor() as without_gradient:
        chunked_log_probs(hidden, head, tokens, 1.0, chunk=5)
    assert without_gradient.elements <= max(5 * VOCABULARY, HIDDEN * VOCABULARY)


def test_a_chunks_logits_are_not_kept_for_the_gradient():
    """Between forward and backward only the hidden states are: what grows with the tokens is not the vocabulary."""
    kept = []
    hidden, head, tokens, upstream = head_and_tokens(bias=False)
    with torch.autograd.graph.saved_tensors_hooks(lambda x: kept.append(x.numel()) or x, lambda x: x):
        found = chunked_log_probs(hidden, head, tokens, 1.0, chunk=5)
        assert sum(kept) < N * VOCABULARY / 2
        found.backward(upstream)
