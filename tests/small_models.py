"""Small models of three kinds, for what may not depend on the kind."""

import torch
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
)

from swift_rlvr.utils.files import TINY_MODEL

SMALL_MODELS = ("qwen2", "gpt2", "gemma2")
VOCABULARY = 532


def small_model(name: str):
    """The tiny model; GPT-2 with absolute positions; Gemma 2, which caps its logits and slides a
    window.
    """
    torch.manual_seed(1)
    if name == "qwen2":
        return AutoModelForCausalLM.from_pretrained(TINY_MODEL, dtype=torch.float32).eval()
    if name == "gpt2":
        config = GPT2Config(vocab_size=VOCABULARY, n_positions=256, n_embd=32, n_layer=2, n_head=2)
        return GPT2LMHeadModel(config).eval()
    sizes = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "head_dim": 16,
        "sliding_window": 8,
    }
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "final_logit_softcapping": 0.5}
    return Gemma2ForCausalLM(Gemma2Config(vocab_size=VOCABULARY, **sizes, **heads)).eval()
