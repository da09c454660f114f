"""Verifiable rewards and task datasets that plug into ms-swift's GRPO training."""

__version__ = "0.1.0"
