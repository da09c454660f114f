"""GRPO from scratch: small enough to read in an evening, with the numbers of TRL and ms-swift, on
one GPU or a CPU.

README.md says in which order to read it; `walkthrough.ipynb` goes through the mathematics with
numbers and pictures.
"""

from typing import TYPE_CHECKING, Any

from swift_rlvr.grpo.settings import GRPOSettings

if TYPE_CHECKING:
    from swift_rlvr.grpo.trainer import GRPOTrainer

__all__ = ["GRPOSettings", "GRPOTrainer"]


def __getattr__(name: str) -> Any:
    """The trainer, which imports torch, where it is used: a wrong setting should be named at
    once.
    """
    if name != "GRPOTrainer":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from swift_rlvr.grpo.trainer import GRPOTrainer

    return GRPOTrainer
