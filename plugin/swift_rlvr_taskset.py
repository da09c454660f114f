"""The datasets of swift-rlvr for verifiers and prime-rl, which import a taskset by a top-level name:
see docs/guides/other_trainers.md.
"""

from swift_rlvr.adapters.verifiers import RlvrTaskset

__all__ = ["RlvrTaskset"]
