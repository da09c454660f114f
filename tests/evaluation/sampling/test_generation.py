"""Sampling from the policy: the same tokens as transformers' generate where there is nothing to
draw, the right distribution where there is, whatever the lengths of prompts and completions.
"""

import pytest
import torch
from transformers import (
    GenerationConfig,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from small_models import SMALL_MODELS, small_model
from swift_rlvr.evaluation.sampling import SamplingSettings
from swift_rlvr.evaluation.sampling.engines import generate

pytestmark = pytest.mark.slow  # as a whole

END = 2


@pytest.fixture(scope="module", params=SMALL_MODELS)
def model(request):
    return small_model(request.param)


def prompts_of(*lengths):
    draw = torch.Generator().manual_seed(0)
    return [torch.randint(3, 60, (length,), generator=draw).tolist() for length in lengths]


def settings(tokens, **options):
    return SamplingSettings("", max_completion_length=tokens, **options)


def with_transformers(model, prompts, tokens):
    """transformers' greedy completions, one prompt at a time, without what comes after the end."""
    found = []
    for prompt in prompts:
        config = GenerationConfig(
            do_sample=False, max_new_tokens=tokens, eos_token_id=END, pad_token_id=0
        )
        ids = torch.tensor([prompt])
        out = model.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)
        found.append(out[0, len(prompt) :].tolist())
    return found


@pytest.mark.parametrize("lengths", [(5, 12, 1, 30), (9, 9)], ids=["ragged", "equal"])
def test_the_likeliest_tokens_are_those_of_transformers(model, lengths):
    prompts = prompts_of(*lengths)
    tokens = 84
    expected = with_transformers(model, prompts, tokens)
    assert generate(model, prompts, 1, settings(tokens, top_k=1), [END]) == expected


def test_completions_that_end_leave_and_the_others_go_on_unchanged(model):
    """With an end that some completions meet early and others never: each is cut there and is else
    as before.
    """
    prompts = prompts_of(5, 12, 1, 30, 7, 8, 9, 22)
    whole = generate(model, prompts, 2, settings(40, top_k=1), [END])
    end = whole[0][1]
    cut = [tokens[: tokens.index(end) + 1] if end in tokens else tokens for tokens in whole]
    assert len(set(map(len, cut))) > 1
    assert generate(model, prompts, 2, settings(40, top_k=1), [end, END]) == cut


def test_copies_of_a_prompt_stand_side_by_side_and_differ():
    model, prompts = small_model("qwen2"), prompts_of(5, 9)
    torch.manual_seed(0)
    found = generate(model, prompts, 3, settings(6), [END])
    assert len(found) == 6 and len(set(map(tuple, found))) == 6
    again = generate(
        model, prompts, 3, settings(6), [END], generator=torch.Generator().manual_seed(5)
    )
    assert (
        again
        == generate(
            model, prompts, 3, settings(6), [END], generator=torch.Generator().manual_seed(5)
        )
        != found
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 0.5},
        {"top_k": 4},
        {"top_p": 0.6},
        {"temperature": 1.5, "top_k": 12, "top_p": 0.8},
    ],
    ids=str,
)
def test_sampling_has_the_distribution_of_transformers_warpers(options):
    options = {"temperature": 1.0, "top_k": 0, "top_p": 1.0} | options
    model, (prompt,) = small_model("gpt2"), prompts_of(9)
    with torch.no_grad():
        # An untrained model's logits are nearly equal: sharpened, there is something to cut off.
        model.lm_head.weight.mul_(8)
        logits = model(torch.tensor([prompt])).logits[:, -1]
    warped = TemperatureLogitsWarper(options["temperature"])(None, logits)
    if options["top_k"]:
        warped = TopKLogitsWarper(options["top_k"])(None, warped)
    if options["top_p"] < 1:
        warped = TopPLogitsWarper(options["top_p"])(None, warped)
    expected = warped.softmax(-1)[0]

    draw = torch.Generator().manual_seed(3)
    completions = generate(model, [prompt], 20_000, settings(1, **options), [END], draw)
    drawn = torch.tensor(completions).flatten()
    share = torch.bincount(drawn, minlength=len(expected)) / len(drawn)
    assert set(drawn.tolist()) <= set(expected.nonzero().squeeze(1).tolist())
    assert (expected > 0).sum() > 1
    deviation = (expected * (1 - expected) / len(drawn)).sqrt()
    assert ((share - expected).abs() <= 5 * deviation + 1e-9).all()


def test_a_top_p_below_the_likeliest_probability_leaves_that_token():
    model, prompts = small_model("qwen2"), prompts_of(9)
    greedy = generate(model, prompts, 1, settings(5, temperature=0), [END])
    sampled = generate(model, prompts, 50, settings(5, top_p=0.001), [END])
    assert sampled == greedy * 50
