"""Engines: the same completions for the same seed, from the whole policy, whatever the batch.

That greedy ones are transformers' own is in test_generation.py for the loop, and here for the
engine. The server is in test_server.py, vLLM in tests/e2e.
"""

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from paths import DATASETS
from present import present
from swift_rlvr.evaluation.models import fitting_prompts
from swift_rlvr.evaluation.sampling import SamplingSettings, open_engine
from swift_rlvr.evaluation.sampling.engines import TransformersEngine
from swift_rlvr.tasks.countdown import to_messages
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.jsonl import read_jsonl

pytestmark = pytest.mark.slow  # as a whole

TASKS = [row for _, row in read_jsonl(DATASETS / "countdown" / "tiny_test.jsonl")][:6]
CONVERSATIONS = [to_messages(row["nums"], row["target"]) for row in TASKS]
CONVERSATIONS[1] = [{"role": "user", "content": "Why? " * 30}]  # of another length


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """The tiny model with what published ones bring along, which would make sampling greedy if it
    were used.
    """
    folder = tmp_path_factory.mktemp("model")
    for file in TINY_MODEL.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    config = {
        "do_sample": True,
        "top_k": 1,
        "top_p": 0.5,
        "repetition_penalty": 1.2,
        "eos_token_id": 2,
    }
    (folder / "generation_config.json").write_text(json.dumps(config))
    return str(folder)


def sampled(model, conversations=CONVERSATIONS, **settings):
    with open_engine(
        SamplingSettings(model, **{"max_completion_length": 80, **settings}), conversations
    ) as engine:
        return engine.sample(conversations)


def ids(groups):
    return [[list(completion.token_ids) for completion in group] for group in groups]


def test_greedy_completions_are_those_of_transformers_one_by_one_and_in_batches(model):
    plain, tokenizer = (
        AutoModelForCausalLM.from_pretrained(TINY_MODEL),
        AutoTokenizer.from_pretrained(TINY_MODEL),
    )
    expected = []
    for prompt in fitting_prompts(tokenizer, CONVERSATIONS, 80, plain.config):
        tokens = torch.tensor([prompt])
        output = plain.generate(
            tokens, attention_mask=torch.ones_like(tokens), do_sample=False, max_new_tokens=80
        )
        expected.append([output[0, len(prompt) :].tolist()])
    assert ids(sampled(model, temperature=0)) == expected
    assert ids(sampled(model, temperature=0, batch_size=2)) == expected
    with open_engine(SamplingSettings(model, max_completion_length=80)) as engine:  # temperature 1
        assert ids(engine.sample(CONVERSATIONS, temperature=0)) == expected
        assert ids(engine.sample([one], temperature=0)[0] for one in CONVERSATIONS) == expected


def test_samples_are_drawn_from_the_whole_policy_and_repeat_with_the_seed(model):
    with open_engine(SamplingSettings(model, max_completion_length=60), CONVERSATIONS) as engine:
        groups = engine.sample(CONVERSATIONS[:2], num_generations=40, seed=5)
        other = engine.sample(CONVERSATIONS[:2], num_generations=40, seed=6)
        torch.manual_seed(3)  # which has no part in it
        assert engine.sample(CONVERSATIONS[:2], num_generations=40, seed=5) == groups != other
    assert (
        sampled(model, CONVERSATIONS[:2], num_generations=40, seed=5, max_completion_length=60)
        == groups
    )
    assert len({completion.text for completion in groups[1]}) > 30
    for completion in (completion for group in groups for completion in group):
        assert completion.tokens == len(completion.token_ids) <= 60
        assert completion.finish == ("stop" if completion.token_ids[-1] == 2 else "length")
        assert completion.finish == "stop" or completion.tokens == 60
        assert "<|im_end|>" not in completion.text
    assert {completion.finish for group in groups for completion in group} == {"stop", "length"}


def test_samples_of_a_prompt_that_do_not_fit_into_a_batch(model):
    groups = sampled(
        model, CONVERSATIONS[:2], num_generations=5, max_completion_length=20, batch_size=2
    )
    assert [len(group) for group in groups] == [5, 5]
    assert len({completion.text for group in groups for completion in group}) > 5


def test_progress_grows_to_the_end(model):
    shares: list[float] = []
    settings = SamplingSettings(model, max_completion_length=4, batch_size=4)
    with open_engine(settings, CONVERSATIONS) as engine:
        engine.sample(CONVERSATIONS, num_generations=2, on_progress=shares.append)
        assert shares == sorted(shares) and shares[-1] == 1 and len(shares) == 12
    with open_engine(SamplingSettings(model, max_completion_length=200), CONVERSATIONS) as engine:
        reached = []
        for _ in range(2):
            shares = []
            completions = engine.sample(CONVERSATIONS[2:4], on_progress=shares.append)
            reached.append(shares[-1])
        longest = max(present(completion.tokens) for group in completions for completion in group)
        assert longest < 200 and reached == [
            longest / 200,
            1.0,
        ]  # how long they get is known from the ones before


def test_unusable_models_and_conversations_that_are_too_long(model, tmp_path):
    with pytest.raises(
        InputError, match="model: .*nothing: cannot be loaded, expected a folder or a hub id"
    ):
        sampled(str(tmp_path / "nothing"))
    problem = "max_completion_length: must be at most [89].., got 1000: the model has a context of 1024 tokens"
    with pytest.raises(InputError, match=problem):
        sampled(model, max_completion_length=1000)
    with (
        open_engine(SamplingSettings(model, max_completion_length=1000)) as engine,
        pytest.raises(InputError) as raised,
    ):
        engine.sample(CONVERSATIONS)
    assert raised.match(problem)


def test_a_small_model_has_one_thread_and_gives_the_others_back(model):
    torch.set_num_threads(2)
    try:
        with open_engine(SamplingSettings(model, max_completion_length=8)):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_a_completion_begins_with_the_thinking_that_the_template_opens(model, tmp_path):
    """As a rollout server of ms-swift returns it; its tokens are those that were sampled."""
    for file in Path(model).iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    tokenizer = AutoTokenizer.from_pretrained(model)
    end = "<|im_start|>assistant\n"
    tokenizer.chat_template = tokenizer.chat_template.replace(end, f"{end}<think>\n")
    tokenizer.save_pretrained(tmp_path)
    for (completion,) in sampled(str(tmp_path), temperature=0):
        text = tokenizer.decode(completion.token_ids, skip_special_tokens=True)
        assert completion.text == f"<think>\n{text}"


def test_special_tokens_stay_in_the_text_as_in_ms_swifts_training(model):
    """They mark calls of tools."""
    with open_engine(SamplingSettings(model, max_completion_length=80)) as engine:
        assert isinstance(engine, TransformersEngine)
        tokenizer = engine.tokenizer
        (before,) = engine.sample(CONVERSATIONS[:1], temperature=0)
        (prompt,) = fitting_prompts(tokenizer, CONVERSATIONS[:1], 80, engine.model.config)
        words = map(tokenizer.decode, before[0].token_ids)
        word = next(word for word in words if word.strip() and word not in tokenizer.decode(prompt))
        tokenizer.add_special_tokens({"additional_special_tokens": [word]})
        assert word not in tokenizer.decode(before[0].token_ids, skip_special_tokens=True)
        assert engine.sample(CONVERSATIONS[:1], temperature=0) == [before]
