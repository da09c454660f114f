"""The trainer from scratch with a vLLM engine in its process: the engine's weights follow the policy's, in place.

The test runs in a process of its own, because the engine takes over signals and threads until its process ends.
"""

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

pytestmark = pytest.mark.e2e


def train(folder: str, samples: str) -> tuple[list, list, list]:
    """Two updates, greedy so that both samplers must agree: completions before them, after them, and transformers'."""
    sys.stdout = sys.stderr
    import torch
    from rich.console import Console
    from swift_rlvr.grpo import GRPOSettings, GRPOTrainer
    from swift_rlvr.jsonl import read_jsonl
    from swift_rlvr.sampling.engines import TransformersEngine
    from swift_rlvr.tasks.countdown import to_messages
    from swift_rlvr.tiny_model import WEIGHTS
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tasks = [row for _, row in read_jsonl(samples)][:4]
    rows = [{"messages": to_messages(row["nums"], row["target"]), **row} for row in tasks]
    settings = GRPOSettings(
        num_generations=2,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=1,
        max_steps=2,
        max_completion_length=16,
        top_k=1,
        top_p=1.0,
        beta=0.0,
        learning_rate=1e-2,
        use_vllm=True,
        save_steps=1,
    )
    model = AutoModelForCausalLM.from_pretrained(WEIGHTS, dtype=torch.float32)
    calls = []

    def reward(completions, **columns):
        calls.append(completions)
        return [float(number % 2) for number in range(len(completions))]  # a spread in every group

    tokenizer, console = AutoTokenizer.from_pretrained(WEIGHTS), Console(quiet=True)
    trainer = GRPOTrainer(model, tokenizer, [reward], rows, settings, folder, console=console)
    conversations = [row["messages"] for row in rows]
    before = token_ids(trainer.engine.sample(conversations))
    # Greedy completions of a group are equal, and opposite advantages of equal completions cancel: something must move.
    update = trainer.update

    def nudged(batch):
        metrics = update(batch)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.05 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))
        return metrics

    trainer.update = nudged
    trainer.train()
    after = trainer.engine.sample(conversations)
    policy = TransformersEngine(trainer.engine.settings, model, trainer.tokenizer).sample(conversations)
    return before, token_ids(after), token_ids(policy)


def token_ids(groups: list) -> list[list[int]]:
    return [list(completion.token_ids) for group in groups for completion in group]


def test_the_engine_samples_from_the_updated_policy(tmp_path, request):
    samples = request.config.rootpath / "datasets" / "countdown" / "tiny_train.jsonl"
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        before, after, policy = pool.submit(train, str(tmp_path), str(samples)).result(timeout=400)
    assert after == policy
    assert after != before
    assert len(after) == 8 and {len(tokens) for tokens in after} <= set(range(1, 17))
