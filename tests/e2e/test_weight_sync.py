"""The trainer's weights reach the server, all of them, and an update that fails stops the run."""

import pytest
import requests
import torch
import transformers

from e2e.programs import send
from swift_rlvr.utils.files import TINY_MODEL
from waiting import HANG

pytestmark = pytest.mark.e2e
PROMPTS = ["[3, 5, 7] 22", "[1, 2, 9] 18", "[4, 4, 6] 10"]


@torch.no_grad()
def largest_difference(server, model) -> float:
    """Samples on the server and compares its log-probabilities of the sampled tokens with the
    model's.
    """
    request = {
        "max_tokens": 24,
        "temperature": 1.0,
        "logprobs": True,
        "return_details": True,
        "seed": 1,
    }
    requests_ = [{"messages": [{"role": "user", "content": prompt}]} for prompt in PROMPTS]
    answer = requests.post(
        f"{server.url}/infer/",
        json={"infer_requests": requests_, "request_config": request},
        timeout=HANG,
    )
    answer.raise_for_status()
    worst = 0.0
    for output in answer.json():
        choice = output["response"]["choices"][0]
        prompt, sampled = output["response"]["prompt_token_ids"], choice["token_ids"]
        theirs = torch.tensor([token["logprob"] for token in choice["logprobs"]["content"]])
        logits = model(torch.tensor([prompt + sampled])).logits[0, len(prompt) - 1 : -1]
        ours = logits.log_softmax(-1).gather(1, torch.tensor(sampled)[:, None])[:, 0]
        worst = max(worst, (ours - theirs).abs().max().item())
    return worst


@pytest.fixture
def changed_model():
    """The tiny model with every parameter moved."""
    model = transformers.AutoModelForCausalLM.from_pretrained(TINY_MODEL, dtype=torch.float32)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.05 * torch.randn(parameter.shape, generator=generator)
    return model


@pytest.mark.parametrize("batches", [1, 3])
def test_the_server_has_the_trainers_weights_after_a_sync_and_not_before(
    rollout_server, client, changed_model, batches
):
    with torch.no_grad():
        changed_model.model.norm.weight *= 1 + batches  # of another case the server has the weights
    assert largest_difference(rollout_server, changed_model) > 0.1
    send(client, changed_model.named_parameters(), batches)
    assert largest_difference(rollout_server, changed_model) < 1e-3


@pytest.mark.parametrize(
    "left_out",
    [
        ["model.embed_tokens.weight"],
        ["model.norm.weight"],
        # One parameter in vLLM, which counts as loaded when either half is.
        ["model.layers.1.mlp.gate_proj.weight", "model.layers.1.mlp.up_proj.weight"],
    ],
)
def test_an_update_that_leaves_a_parameter_out_is_an_error(client, changed_model, left_out):
    kept = [
        (name, tensor) for name, tensor in changed_model.named_parameters() if name not in left_out
    ]
    with pytest.raises(RuntimeError, match="left out 1 parameters"):
        send(client, kept)


def test_a_tensor_that_the_server_cannot_load_is_an_error(client):
    with pytest.raises(RuntimeError, match="could not load the new weights"):
        client.update_named_param("model.layers.0.no_such.weight", torch.zeros(4, 4))


def test_a_worker_is_a_fork_which_has_the_servers_imports(rollout_server):
    """Spawned, it would have another command line."""
    started = [member.cmdline() for member in rollout_server.command.family()]
    assert sum("swift_rlvr.training.ms_swift" in words for words in started) == 2, started


def test_an_update_that_fails_in_the_server_is_an_error(rollout_server, client, changed_model):
    """In the trainer too, which would otherwise go on with completions of old weights."""
    rollout_server.fail_updates.touch()
    try:
        with pytest.raises(RuntimeError, match="(?s)could not load the new weights.*no room"):
            send(client, changed_model.named_parameters())
    finally:
        rollout_server.fail_updates.unlink()
    assert rollout_server.is_healthy()
