"""GRPO from scratch: small enough to read in an evening, with the numbers of TRL and ms-swift, on one GPU or a CPU.

Read it in this order: `objective.py` is the mathematics; `log_probs.py` and `policy.py` the model's side of it, with
micro-batches; `generation.py` and `samplers.py` make completions; `trainer.py` is the loop; `settings.py`,
`checkpoint.py` and `metrics.py` keep the books. `walkthrough.ipynb` goes through the mathematics with numbers and
pictures.

    swift-rlvr train --model Qwen/Qwen2.5-0.5B-Instruct --dataset gsm8k --reward_funcs external_accuracy \
        --output_dir output/gsm8k
"""

from typing import TYPE_CHECKING, Any

from swift_rlvr.grpo.settings import GRPOSettings

if TYPE_CHECKING:
    from swift_rlvr.grpo.trainer import GRPOTrainer

__all__ = ["GRPOSettings", "GRPOTrainer"]


def __getattr__(name: str) -> Any:
    """Load the trainer, and torch with it, when it is first asked for."""
    if name == "GRPOTrainer":
        from swift_rlvr.grpo.trainer import GRPOTrainer

        return GRPOTrainer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
