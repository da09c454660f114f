"""TRL's GRPOTrainer with our verifier: two steps with the tiny model on a CPU.

A reward of this package is a reward function of TRL. `load_dataset` makes the prompts and the columns
that rewards read, from a file in any of our formats.

    python examples/trl_grpo.py

Needs `pip install 'swift-rlvr[trl]'`. `swift-rlvr train trl` is the whole recipe: held-out success,
alarms and a page of every completion.
"""

from trl import GRPOConfig, GRPOTrainer

from swift_rlvr.rewards import REWARDS
from swift_rlvr.runs.log import RunLog
from swift_rlvr.training.reason_callback import ReasonCallback
from swift_rlvr.training.trl import load_dataset
from swift_rlvr.utils.files import TINY_MODEL


def main() -> None:
    rewards = [REWARDS["countdown"](), REWARDS["format"]()]
    dataset = load_dataset("countdown:datasets/countdown/tiny_train.jsonl#32", rewards)
    config = GRPOConfig(
        output_dir="output/trl_grpo",
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
    trainer = GRPOTrainer(str(TINY_MODEL), reward_funcs=rewards, args=config, train_dataset=dataset)
    # Success and reasons in the log, alarms, and records.jsonl with every graded completion.
    trainer.add_callback(ReasonCallback(config, trainer, RunLog(config.output_dir)))
    trainer.train()

    print("step  success  format  grad_norm")
    for step in trainer.state.log_history:
        if "reward" in step:
            success = step["rewards/CountdownReward/mean"]
            followed = step["rewards/FormatReward/mean"]
            print(f"{step['step']:4}  {success:7.3f}  {followed:6.3f}  {step['grad_norm']:9.3f}")


if __name__ == "__main__":
    main()
