"""TRL's GRPOTrainer with our verifier: two steps with the tiny model on a CPU.

A reward of this package is a reward function of TRL. Give the trainer an object of it, and a dataset
with the columns that the reward reads.

    python examples/trl_grpo.py

Needs `pip install 'swift-rlvr[trl]'`. `swift-rlvr train trl` is the whole recipe: held-out success,
alarms and a page of every completion.
"""

import tempfile

from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.tasks.task import with_system
from swift_rlvr.utils.files import TINY_MODEL, find_file
from trl import GRPOConfig, GRPOTrainer

from datasets import Dataset

DATA = find_file("countdown:datasets/countdown/tiny_train.jsonl#32")


def training_rows() -> Dataset:
    """One row for each task: `prompt` for the trainer, `nums` and `target` for the reward."""
    source = parse_source(DATA)
    rows = []
    for _, raw in source.usable_rows()[0]:
        row = source.task.preprocess(raw)
        # ms-swift has a flag for the system prompt. In TRL it is part of the prompt.
        prompt = with_system(row["messages"], source.task.system)
        rows.append({"prompt": prompt, "nums": row["nums"], "target": row["target"]})
    return Dataset.from_list(rows)


def main() -> None:
    verifier = REWARDS["countdown"]()
    form = REWARDS["format"]()
    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        max_steps=2,
        per_device_train_batch_size=32,
        num_generations=8,
        max_completion_length=128,
        learning_rate=3e-4,
        reward_weights=[1.0, 0.2],
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        bf16=False,
        seed=42,
    )
    trainer = GRPOTrainer(
        str(TINY_MODEL), reward_funcs=[verifier, form], args=config, train_dataset=training_rows()
    )
    trainer.train()

    print("step  success  format  grad_norm")
    for step in trainer.state.log_history:
        if "reward" in step:
            success = step["rewards/CountdownReward/mean"]
            followed = step["rewards/FormatReward/mean"]
            print(f"{step['step']:4}  {success:7.3f}  {followed:6.3f}  {step['grad_norm']:9.3f}")


if __name__ == "__main__":
    main()
