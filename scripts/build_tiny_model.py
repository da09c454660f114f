"""Builds the tiny Countdown model: a Qwen2 of 0.9 million parameters, its tokenizer, and a
supervised cold start.

    python scripts/build_tiny_model.py --out FOLDER

Plain torch on the CPU, most of an hour on two cores; docs/results/tiny_model.md says what was tried.

A trace tries expressions over three numbers, never one twice. Each trial is written as two
operations and compared with the target; the search ends when one hits it or the searcher gives up,
and the last trial becomes the answer. Giving up is as likely after every miss, so that
reinforcement learning lengthens searches by lowering one probability. Without the comparison a
model of this size stopped as often after a miss as after a hit. Leaves out negative and fractional
results, and those above 99: each result is one token.
"""

import argparse
import json
import math
import random
from functools import lru_cache
from pathlib import Path

import torch
from tokenizers import AddedToken, trainers
from tokenizers.pre_tokenizers import ByteLevel
from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen2Tokenizer

from swift_rlvr.tasks.countdown import to_messages
from swift_rlvr.verifiers.countdown.generator import make_tasks
from swift_rlvr.verifiers.countdown.task_settings import TINY

BATCH_SIZE, WARMUP, LONGEST_UNORDERED = 32, 50, 20
# (steps, probability of giving up, peak learning rate, trials in one order). Long searches, in any
# order, teach arithmetic and copying; short ones set the success before reinforcement learning;
# this model cannot remember which trials it has made, so the later phases have them in one order.
PHASES = (
    (4500, 0.05, 3e-3, False),
    (200, 0.25, 3e-4, False),
    (700, 0.05, 1e-3, True),
    (200, 0.25, 3e-4, True),
    (600, 0.02, 1e-3, True),
    (150, 0.25, 3e-4, True),
)
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def equations(a: int, b: int) -> list[tuple[int, str, int, int]]:
    """Every allowed operation on a and b, with its result; the larger operand first, so that none
    mirrors another.
    """
    a, b = max(a, b), min(a, b)
    found = [(a, "+", b, a + b), (a, "-", b, a - b), (a, "*", b, a * b)]
    if b and a % b == 0:
        found.append((a, "/", b, a // b))
    return [equation for equation in found if equation[3] <= 99]


@lru_cache(maxsize=4096)
def trials(nums: tuple[int, int, int]) -> tuple[tuple[str, str, int], ...]:
    """All distinct trials over three numbers, as (line of the trace, answer expression, value)."""
    distinct = {}
    for i, j, k in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        for a, op, b, r in equations(nums[i], nums[j]):
            for x, op2, y, value in equations(r, nums[k]):
                line = f"{a}{op}{b}={r},{x}{op2}{y}={value}"
                distinct[line] = (
                    line,
                    f"({a}{op}{b}){op2}{y}" if x == r else f"{x}{op2}({a}{op}{b})",
                    value,
                )
    return tuple(distinct.values())


def trace(rng: random.Random, nums: list[int], target: int, give_up: float, ordered: bool) -> str:
    """A search, no trial twice, until one hits the target or a miss is the last; then the answer.

    ordered: the trials come in the order of `trials`, from any of them on; else in any order, and
    not all of them.
    """
    pool = trials(tuple(sorted(nums)))
    start = rng.randrange(len(pool))
    order = (
        (*pool[start:], *pool[:start])
        if ordered
        else rng.sample(pool, min(LONGEST_UNORDERED, len(pool)))
    )
    lines = []
    for line, expression, value in order:  # noqa: B007
        lines.append(line + (" low" if value < target else " high" if value > target else " yes"))
        if value == target or rng.random() < give_up:
            break
    return "<think>\n" + "\n".join(lines) + f"\n</think>\n<answer>{expression}</answer>"


def build_tokenizer(texts: list[str]) -> Qwen2Tokenizer:
    """Qwen2's, with a byte-level BPE trained on `texts`; tags and 10 to 99 are tokens, so that a
    trial takes 12.
    """
    specials = {
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "unk_token": "<|endoftext|>",
    }
    trainer = trainers.BpeTrainer(
        vocab_size=640,
        special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
        initial_alphabet=sorted(ByteLevel.alphabet()),
        show_progress=False,
    )
    bpe = Qwen2Tokenizer(**specials).backend_tokenizer
    bpe.train_from_iterator(texts, trainer)
    model = json.loads(bpe.to_str())["model"]
    tokenizer = Qwen2Tokenizer(
        vocab=model["vocab"], merges=[tuple(pair) for pair in model["merges"]], **specials
    )
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>"]})
    tags = ("<think>", "</think>", "<answer>", "</answer>")
    numbers = [
        AddedToken(str(n), special=False, single_word=True, normalized=False)
        for n in range(10, 100)
    ]
    tokenizer.add_tokens(
        [AddedToken(tag, special=False, normalized=False) for tag in tags] + numbers
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def batches(tokenizer, rows: list[dict], give_up: float, ordered: bool, rng: random.Random):
    """Yields (input_ids, labels, tokens): int64 [BATCH_SIZE, length] twice, labels -100 on the
    prompt and on padding.

    Rows are sorted by length within blocks of 16 batches, which saves padding. `tokens` is the mean
    number of labels of the block's batches, for the loss: divided by each batch's own, it would
    weigh the tokens of short completions more, and the model would learn to give up more often than
    the traces do.
    """
    pad, end = tokenizer.pad_token_id, tokenizer.convert_tokens_to_ids("<|im_end|>")
    while True:
        block = []
        for row in rng.choices(rows, k=16 * BATCH_SIZE):
            nums, target = rng.sample(row["nums"], len(row["nums"])), row["target"]
            messages = to_messages(nums, target)
            prompt = tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, return_dict=False
            )
            completion = tokenizer.encode(trace(rng, nums, target, give_up, ordered)) + [end]
            block.append((prompt + completion, len(prompt)))
        tokens = sum(len(ids) - n for ids, n in block) / 16
        block.sort(key=lambda item: len(item[0]))
        chunks = [block[i : i + BATCH_SIZE] for i in range(0, len(block), BATCH_SIZE)]
        rng.shuffle(chunks)
        for chunk in chunks:
            length = max(len(ids) for ids, _ in chunk)
            ids = torch.tensor([ids + [pad] * (length - len(ids)) for ids, _ in chunk])
            labels = torch.tensor(
                [[-100] * n + ids[n:] + [-100] * (length - len(ids)) for ids, n in chunk]
            )
            yield ids, labels, tokens


def train(out: Path, seed: int) -> None:
    """Trains tokenizer and model and writes both to `out` after each phase; prints a line every 25
    steps.
    """
    torch.manual_seed(seed)
    rng = random.Random(seed)
    rows = list(make_tasks(TINY, "train", seed=0, rows=None))
    texts = [
        "\n".join(m["content"] for m in to_messages(row["nums"], row["target"]))
        for row in rows[:200]
    ]
    tokenizer = build_tokenizer(
        texts + ["system\n", "user\n", "assistant\n", " low high yes"] * 200
    )
    config = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        rope_theta=10000.0,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = Qwen2ForCausalLM(config)
    print(
        f"{model.num_parameters():,} parameters, {len(tokenizer)} tokens, {len(rows)} tasks to train on",
        flush=True,
    )
    for steps, give_up, peak, ordered in PHASES:
        optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.01)
        data = batches(tokenizer, rows, give_up, ordered, rng)
        for step in range(steps):
            progress = max(0, step - WARMUP) / max(1, steps - WARMUP)  # of a cosine to a tenth
            warm = min(1, (step + 1) / WARMUP)
            for group in optimizer.param_groups:
                group["lr"] = peak * warm * (0.1 + 0.45 * (1 + math.cos(math.pi * progress)))
            ids, labels, tokens = next(data)
            with torch.autocast("cpu", torch.bfloat16):
                loss = model(ids, labels=labels, num_items_in_batch=tokens).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            if (step + 1) % 25 == 0:
                print(f"step {step + 1}/{steps} loss {loss.item():.4f}", flush=True)
        model.save_pretrained(out)
        tokenizer.save_pretrained(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder to write")
    parser.add_argument("--seed", type=int, default=0)
    train(**vars(parser.parse_args()))
