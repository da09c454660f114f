"""GRPO from scratch: small enough to read in an evening, with the numbers of TRL and ms-swift, on one GPU or a CPU.

Read it in this order: `objective.py` is the mathematics; `log_probs.py` and `policy.py` the model's side of it, with
micro-batches; `generation.py` and `samplers.py` make completions; `trainer.py` is the loop; `settings.py`, and
beside this folder `run_log.py` and `run_checkpoint.py`, keep the books. `walkthrough.ipynb` goes through the
mathematics with numbers and pictures.

    swift-rlvr train --model Qwen/Qwen2.5-0.5B-Instruct --dataset gsm8k:gsm8k_1024.jsonl --out output/gsm8k ...
"""

from .settings import GRPOSettings
from .trainer import GRPOTrainer, TrainingError

__all__ = ["GRPOSettings", "GRPOTrainer", "TrainingError"]
