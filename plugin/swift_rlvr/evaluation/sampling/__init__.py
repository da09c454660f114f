"""Conversations -> completions, with one interface and three engines: transformers, vLLM, a server.

    with open_engine(SamplingSettings("Qwen/Qwen2.5-0.5B-Instruct"), conversations) as engine:
        groups = engine.sample(conversations, num_generations=8, temperature=0.7, seed=1)

evaluate and probe sample with it; ms-swift's and TRL's trainers have their
own. torch, transformers and vLLM are imported when an engine is opened.
"""

from swift_rlvr.evaluation.sampling.engines import choose_engine, open_engine
from swift_rlvr.evaluation.sampling.interface import (
    Completion,
    Engine,
    SamplingSettings,
    mixed_seed,
)

__all__ = ["Completion", "Engine", "SamplingSettings", "choose_engine", "mixed_seed", "open_engine"]
