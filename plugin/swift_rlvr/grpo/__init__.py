"""GRPO from scratch: small enough to read in an evening, with the numbers of TRL and ms-swift, on one GPU or a CPU.

README.md says in which order to read it; `walkthrough.ipynb` goes through the mathematics with numbers and pictures.
"""

from swift_rlvr.grpo.settings import GRPOSettings
from swift_rlvr.grpo.trainer import GRPOTrainer

__all__ = ["GRPOSettings", "GRPOTrainer"]
