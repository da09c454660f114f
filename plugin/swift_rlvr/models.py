"""Loading models and tokenizers, from a folder or a hub."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from swift_rlvr.errors import InputError


def load_pretrained(kind: Any, model: str, **options: Any) -> Any:
    """`kind.from_pretrained(model, **options)`; InputError where there is no such model."""
    try:
        return kind.from_pretrained(model, **options)
    except (OSError, ValueError) as error:
        raise InputError(f"model {model}: cannot be loaded, expected a folder or a hub id ({error})") from error


def check_length(settings: Any, prompts: Sequence[Sequence[int]], config: Any) -> None:
    """InputError where the longest prompt and `settings.max_new_tokens` are more than the model reads."""
    longest, room = max(map(len, prompts)), getattr(config, "max_position_embeddings", None)
    if room and longest + settings.max_new_tokens > room:
        raise InputError(
            f"max_new_tokens must be at most {room - longest}, got {settings.max_new_tokens}: "
            f"the model reads {room} tokens and the longest prompt has {longest}"
        )


def load_tokenizer(model: str) -> Any:
    """The tokenizer of a model, a folder or a hub id; InputError where it cannot be loaded or has no chat template."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        raise InputError(f"--model {model}: cannot be loaded, expected a folder or a hub id ({error})") from error
    if not tokenizer.chat_template:
        raise InputError(f"--model {model}: its tokenizer has no chat template")
    return tokenizer
