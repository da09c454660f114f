"""The tiny model's tokenizer: Qwen2's class and pre-tokenizer, with a byte-level BPE trained on the Countdown prompt.

Qwen2 splits numbers into digits. Here 10 to 99 and the think and answer tags are tokens of their own, so that a trial
takes 12 tokens and arithmetic is a look-up. All other text is encoded byte by byte.
"""

import json
from collections.abc import Iterable

from tokenizers import AddedToken, trainers
from tokenizers.pre_tokenizers import ByteLevel
from transformers import Qwen2Tokenizer

TAGS = ("<think>", "</think>", "<answer>", "</answer>")
VOCABULARY = 640  # at most, without added tokens
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build_tokenizer(texts: Iterable[str]) -> Qwen2Tokenizer:
    """Trains the merges on `texts`, whose words become single tokens, and adds the tags and the two-digit numbers."""
    specials = {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", "unk_token": "<|endoftext|>"}
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=sorted(ByteLevel.alphabet()),
        show_progress=False,
    )
    bpe = Qwen2Tokenizer(**specials).backend_tokenizer
    bpe.train_from_iterator(texts, trainer)
    model = json.loads(bpe.to_str())["model"]
    tokenizer = Qwen2Tokenizer(vocab=model["vocab"], merges=[tuple(pair) for pair in model["merges"]], **specials)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    numbers = [AddedToken(str(n), special=False, single_word=True, normalized=False) for n in range(10, 100)]
    tokenizer.add_tokens([AddedToken(tag, special=False, normalized=False) for tag in TAGS] + numbers)
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer
