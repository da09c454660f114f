"""Models and tokenizers from a folder or a hub, what they say about where a completion ends, and where they compute."""

from collections.abc import Sequence
from typing import Any

from swift_rlvr.errors import InputError, require


def visible_device() -> str:
    """What torch computes on here: "cuda" (NVIDIA or AMD), another accelerator's name, or "cpu".

    NVIDIA's driver is asked, not CUDA: a process that has asked CUDA can start no other by fork that uses it, such as
    vLLM's engine ("Cannot re-initialize CUDA in forked subprocess").
    """
    import torch

    accelerator = torch.accelerator.current_accelerator()
    return "cpu" if accelerator is None or not torch.accelerator.device_count() else accelerator.type


def load_pretrained(cls: Any, model: str, **options: Any) -> Any:
    """`cls.from_pretrained(model, **options)`; InputError where there is no such model."""
    try:
        return cls.from_pretrained(model, **options)
    except (OSError, ValueError) as error:
        raise InputError(f"{model}: cannot be loaded, expected a folder or a hub id ({error})", "model") from error


def load_tokenizer(model: str) -> Any:
    """The tokenizer of a model, a folder or a hub id; InputError where it cannot be loaded or has no chat template."""
    require("transformers", extra="train", purpose=f"loading {model}")
    from transformers import AutoTokenizer

    tokenizer = load_pretrained(AutoTokenizer, model)
    if not tokenizer.chat_template:
        raise InputError(f"{model}: its tokenizer has no chat template", "model")
    return tokenizer


def stop_token_ids(tokenizer: Any, generation_config: Any) -> list[int]:
    """The tokens that end a completion, ascending: those of a model's generation config and the tokenizer's own."""
    ids = generation_config.eos_token_id
    return sorted({*(ids if isinstance(ids, list) else [ids]), tokenizer.eos_token_id} - {None})


def fitting_prompts(tokenizer: Any, conversations: Sequence[Any], length: int, config: Any) -> list[list[int]]:
    """Each conversation as token ids, up to where the model begins to write.

    InputError where the longest and a completion of `length` tokens together exceed the context of the model's config.
    """
    if not conversations:
        return []
    prompts = tokenizer.apply_chat_template(list(conversations), add_generation_prompt=True, return_dict=False)
    longest, context = max(map(len, prompts)), getattr(config, "max_position_embeddings", None)
    if context and longest + length > context:
        problem = f"the model reads {context} tokens and the longest prompt has {longest}"
        raise InputError(f"must be at most {context - longest}, got {length}: {problem}", "max_completion_length")
    return prompts
