"""The rewards under TRL's own GRPOTrainer, as the README shows: message-list completions, columns, the logged name.

In a process of its own: importing ms-swift, as other tests do, replaces transformers' callbacks for good.
"""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from swift_rlvr.jsonl import read_jsonl
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks.countdown import to_messages
from swift_rlvr.tiny_model import WEIGHTS


def train(rows: list[dict], folder: Path) -> tuple[list[dict], bool]:
    """Two GRPO steps with three rewards; returns what was logged and whether any weight changed."""
    import torch
    from swift_rlvr.training.reason_callback import ReasonCallback
    from trl import GRPOConfig, GRPOTrainer

    from datasets import Dataset

    dataset = Dataset.from_list([{"prompt": to_messages(**row), **row} for row in rows])
    config = GRPOConfig(
        output_dir=str(folder),
        per_device_train_batch_size=16,
        num_generations=8,
        max_completion_length=128,
        max_steps=2,
        learning_rate=1e-4,
        logging_steps=1,
        report_to=[],
        use_cpu=True,
        bf16=False,
        save_strategy="no",
        seed=0,
    )
    names = ["external_countdown", "external_format", "external_cosine"]
    rewards = [REWARDS[name](**({"accuracy": names[0]} if name == "external_cosine" else {})) for name in names]
    trainer = GRPOTrainer(str(WEIGHTS), reward_funcs=rewards, train_dataset=dataset, args=config)
    trainer.add_callback(ReasonCallback(config, trainer))
    before = [parameter.detach().clone() for parameter in trainer.model.parameters()]
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "reward" in entry]
    changed = any(not torch.equal(a, b) for a, b in zip(before, trainer.model.parameters(), strict=True))
    return logged, changed


def test_two_steps_of_trl_train_the_tiny_model_with_three_of_our_rewards(tmp_path, request):
    samples = request.config.rootpath / "datasets" / "countdown" / "tiny_train.jsonl"
    rows = [row for _, row in read_jsonl(samples)][:8]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        logged, changed = pool.submit(train, rows, tmp_path).result(timeout=300)
    assert changed
    assert len(logged) == 2
    right = [step["rewards/CountdownReward/mean"] for step in logged]
    # A quarter of the tiny model's completions are right: 32 of them without a single one would mean that the columns
    # or the text did not arrive (chance below 0.001, and the seed is fixed).
    assert 0 < sum(right) <= 2
    for step, share in zip(logged, right, strict=True):
        assert step["reasons/CountdownReward/correct"] == pytest.approx(share, abs=1e-6)
        assert step["rewards/FormatReward/mean"] > 0.5  # TRL hands over token ids and decoded texts without end tokens
        # Between the worst of all right and all wrong, and never 0: it knows right from wrong and sees the length.
        assert step["rewards/CosineLengthReward/mean"] == pytest.approx(share * 0.99 - (1 - share) * 0.49, abs=0.05)
    for line in (row for _, row in read_jsonl(tmp_path / "reasons.jsonl")):
        assert (line["rewards"]["CosineLengthReward"] > 0) == (line["rewards"]["CountdownReward"] == 1.0)
