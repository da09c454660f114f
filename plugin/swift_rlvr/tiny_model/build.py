"""Builds the tiny Countdown model: a Qwen2 of 0.9 million parameters, its tokenizer, and a supervised warm start.

    python -m swift_rlvr.tiny_model.build --out plugin/swift_rlvr/tiny_model/weights

Plain torch on the CPU, most of an hour on two cores. The first phase has long searches, in which most tokens teach
arithmetic and copying numbers; the last has short ones, which set the probability of giving up and so the success
before reinforcement learning. Searches in any order teach the arithmetic of all trials; a model of this size cannot
remember which it has made, so the later phases have them in one order. Leaves out: several devices.
"""

import argparse
import math
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import Qwen2Config, Qwen2ForCausalLM

from swift_rlvr.countdown import verify
from swift_rlvr.countdown.generator import make_tasks
from swift_rlvr.countdown.settings import TINY
from swift_rlvr.tasks.countdown import to_messages
from swift_rlvr.tiny_model import WEIGHTS
from swift_rlvr.tiny_model.tokenizer import build_tokenizer
from swift_rlvr.tiny_model.traces import compare, trace, trials

BATCH_SIZE, WARMUP = 32, 50


@dataclass(frozen=True)
class Phase:
    """Supervised training on traces of this `give_up`, `ordered` or not, with an optimizer of its own.

    lr: peak learning rate, reached after `WARMUP` of the `steps` and followed by a cosine to a tenth.
    """

    steps: int
    give_up: float
    lr: float
    ordered: bool

    def lr_at(self, step: int) -> float:
        if step < WARMUP:
            return self.lr * (step + 1) / WARMUP
        progress = (step - WARMUP) / max(1, self.steps - WARMUP)
        return self.lr * (0.1 + 0.45 * (1 + math.cos(math.pi * progress)))


PHASES = (
    Phase(4500, give_up=0.05, lr=3e-3, ordered=False),
    Phase(200, give_up=0.25, lr=3e-4, ordered=False),
    Phase(700, give_up=0.05, lr=1e-3, ordered=True),
    Phase(200, give_up=0.25, lr=3e-4, ordered=True),
    Phase(600, give_up=0.02, lr=1e-3, ordered=True),
    Phase(150, give_up=0.25, lr=3e-4, ordered=True),
)


def chat_prompt(tokenizer, nums: list[int], target: int) -> list[int]:
    """Token ids of the prompt, as ms-swift's template renders it."""
    return tokenizer.apply_chat_template(to_messages(nums, target), add_generation_prompt=True, return_dict=False)


def batches(tokenizer, rows: list[dict], phase: Phase, rng: random.Random) -> Iterator[tuple]:
    """Yields (input_ids, labels, tokens): int64 [BATCH_SIZE, length] twice, labels -100 on the prompt and on padding.

    Rows are drawn at random and sorted by length within blocks of 16 batches, which saves padding. `tokens` is the mean
    number of labels of the block's batches, for the loss: divided by each batch's own number, it would weigh the tokens
    of short completions more, and the model would learn to give up more often than the traces do.
    """
    pad, end = tokenizer.pad_token_id, tokenizer.convert_tokens_to_ids("<|im_end|>")
    while True:
        block = []
        for row in rng.choices(rows, k=16 * BATCH_SIZE):
            nums = rng.sample(row["nums"], len(row["nums"]))
            prompt = chat_prompt(tokenizer, nums, row["target"])
            completion = tokenizer.encode(trace(rng, nums, row["target"], phase.give_up, phase.ordered)) + [end]
            block.append((prompt + completion, len(prompt)))
        tokens = sum(len(ids) - n for ids, n in block) / 16
        block.sort(key=lambda item: len(item[0]))
        chunks = [block[i : i + BATCH_SIZE] for i in range(0, len(block), BATCH_SIZE)]
        rng.shuffle(chunks)
        for chunk in chunks:
            length = max(len(ids) for ids, _ in chunk)
            ids = torch.tensor([ids + [pad] * (length - len(ids)) for ids, _ in chunk])
            labels = torch.tensor([[-100] * n + ids[n:] + [-100] * (length - len(ids)) for ids, n in chunk])
            yield ids, labels, tokens


@torch.no_grad()
def quality(model: Qwen2ForCausalLM, tokenizer, rows: list[dict]) -> dict[str, float]:
    """Samples one completion per row at temperature 1.0; returns the share of right answers (success), of trials that
    use each number once and calculate and compare correctly (valid) and of trials that repeat an earlier one, and means
    per completion (trials, tokens).
    """
    torch.manual_seed(0)
    prompts = [chat_prompt(tokenizer, row["nums"], row["target"]) for row in rows]
    width = max(map(len, prompts))
    pad = tokenizer.pad_token_id
    padded = torch.tensor([[pad] * (width - len(ids)) + ids for ids in prompts])
    mask = torch.tensor([[0] * (width - len(ids)) + [1] * len(ids) for ids in prompts])
    output = model.generate(padded, attention_mask=mask, do_sample=True, top_k=0, max_new_tokens=300)
    completions = tokenizer.batch_decode(output[:, width:], skip_special_tokens=True)
    success = valid = repeats = total = 0
    for row, completion in zip(rows, completions, strict=True):
        success += verify(completion, row["nums"], row["target"]).reward == 1.0
        known = {line + compare(value, row["target"]) for line, _, value in trials(tuple(sorted(row["nums"])))}
        lines = completion.partition("\n</think>")[0].split("\n")[1:]
        total += len(lines)
        repeats += len(lines) - len(set(lines))
        valid += sum(line in known for line in lines)
    tokens = (output[:, width:] != pad).sum().item()
    shares = {"success": success / len(rows), "valid": valid / max(1, total), "repeats": repeats / max(1, total)}
    return {**shares, "trials": total / len(rows), "tokens": tokens / len(rows)}


def train(out: Path, seed: int = 0, start: Path | None = None, done: int = 0) -> None:
    """Trains tokenizer and model and writes both to `out`; prints a line every 25 steps.

    start: a model that this function made, with `done` of the PHASES behind it.
    """
    torch.manual_seed(seed)
    rng = random.Random(seed)
    rows = list(make_tasks(TINY, "train", seed=0, rows=None))
    held_out = rng.sample(list(make_tasks(TINY, "test", seed=0, rows=None)), 200)
    texts = ["\n".join(m["content"] for m in to_messages(row["nums"], row["target"])) for row in rows[:200]]
    tokenizer = build_tokenizer(texts + ["system\n", "user\n", "assistant\n", " low high yes"] * 200)
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
    model = Qwen2ForCausalLM(config) if start is None else Qwen2ForCausalLM.from_pretrained(start, dtype=torch.float32)
    print(f"{model.num_parameters():,} parameters, {len(tokenizer)} tokens, {len(rows)} tasks to train on", flush=True)
    for phase in PHASES[done:]:
        optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.01)
        data = batches(tokenizer, rows, phase, rng)
        began = time.time()
        for step in range(phase.steps):
            for group in optimizer.param_groups:
                group["lr"] = phase.lr_at(step)
            ids, labels, tokens = next(data)
            with torch.autocast("cpu", torch.bfloat16):
                loss = model(ids, labels=labels, num_items_in_batch=tokens).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            if (step + 1) % 25 == 0:
                print(f"step {step + 1}/{phase.steps} loss {loss.item():.4f} {time.time() - began:.0f} s", flush=True)
            if (step + 1) % 500 == 0 or step + 1 == phase.steps:
                scores = quality(model.eval(), tokenizer, held_out)
                model.train()
                print("held out:", "  ".join(f"{name} {value:.3f}" for name, value in scores.items()), flush=True)
                model.save_pretrained(out)
                tokenizer.save_pretrained(out)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=WEIGHTS, help="folder to write (default: the package's weights)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=Path, help="a model that was made so before, to go on with")
    parser.add_argument("--done", type=int, default=0, help="the phases that it has behind it")
    train(**vars(parser.parse_args()))
