"""GRPO from scratch in one file: sample, reward, compare within the group, update, save, chat.

    python scripts/grpo_from_scratch.py                           # Countdown, the tiny model, a CPU
    swift-rlvr dataset prepare gsm8k --model Qwen/Qwen2.5-0.5B-Instruct --max_prompt_tokens 300 \
        --max_answer_tokens 200 --rows 1024 --out output/gsm8k_1024.jsonl
    python scripts/grpo_from_scratch.py --task gsm8k --model Qwen/Qwen2.5-0.5B-Instruct  # 24 GB GPU
    python scripts/grpo_from_scratch.py --help                                      # every setting
    python scripts/grpo_from_scratch.py --chat output/grpo_countdown/checkpoint-60 "Using the ..."
    swift-rlvr report output/grpo_countdown --out report

Read it from top to bottom: formulas, model, loop, settings. tests/grpo compares its advantages, loss
and gradient with TRL's and ms-swift's own trainers; examples/grpo_walkthrough.ipynb goes through the
formulas with numbers and pictures. Two things differ on purpose: a completion to which no reward
applies (all None) counts for nothing, where ms-swift, and TRL before 1.6, take its reward for 0; and
k3 is not clamped, as ms-swift's is. Left out: several GPUs, vLLM, LoRA, resumption, held-out
evaluation, the curriculum. `swift-rlvr train` has them, with ms-swift or TRL.

Papers: GRPO is DeepSeekMath (arXiv 2402.03300); an equation without a name is one of its. PPO
(1707.06347), DAPO (2503.14476), Dr.GRPO (2503.20783), GSPO (2507.18071).
"""

import argparse
import copy
import math
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor
from transformers import AutoModelForCausalLM, GenerationConfig, get_scheduler

from swift_rlvr.evaluation import models
from swift_rlvr.rewards.build import build_rewards
from swift_rlvr.runs.folder import ARGS, checkpoint_to_resume, diverged
from swift_rlvr.runs.grade_log import GradeLog
from swift_rlvr.runs.log import RunLog
from swift_rlvr.runs.records import Record, judge
from swift_rlvr.success import Judges, logged_name
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.tasks.task import with_system
from swift_rlvr.training.rows import reward_columns
from swift_rlvr.utils.errors import DivergedError, InputError
from swift_rlvr.utils.files import TINY_MODEL, find_file
from swift_rlvr.utils.jsonl import write_json
from swift_rlvr.utils.settings import Accepts

# --- The formulas. B completions, those of a prompt side by side; T tokens, padded on the right.

LOSS_TYPES = ("grpo", "dapo", "dr_grpo")


def total_rewards(rewards: Tensor, weights: Tensor) -> Tensor:
    """The weighted sum of F rewards, (B, F) and (F,) -> (B,). NaN is None, "does not apply"."""
    none_applies = rewards.isnan().all(1)
    return (rewards * weights).nansum(1).masked_fill(none_applies, torch.nan)


def group_advantages(
    rewards: Tensor, group_size: int, *, scale: bool = True, eps: float = 1e-8
) -> Tensor:
    """(r - mean) / (std + eps) within each group, (B,) -> (B,); section 4.1.2.

    The standard deviation is the sample's. TRL and ms-swift have an eps of 1e-4. `scale=False`
    leaves the division out (Dr.GRPO, section 3.2). A NaN reward counts for nothing and gets 0.
    """
    # In float64: the rounding of a float32 mean would be divided by eps.
    groups = rewards.double().view(-1, group_size)
    known = ~groups.isnan()
    count = known.sum(1, keepdim=True)
    mean = groups.nansum(1, keepdim=True) / count.clamp(min=1)
    centered = (groups - mean).masked_fill(~known, 0.0)
    std = (centered.square().sum(1, keepdim=True) / (count - 1).clamp(min=1)).sqrt()
    # Rewards that differ only by rounding, such as 0.1 + 0.2 and 0.3, are equal: exactly 0.
    largest = groups.nan_to_num().abs().amax(1, keepdim=True)
    equal = std <= 1e-12 * largest
    advantages = centered / (std + eps) if scale else centered
    return advantages.masked_fill(equal, 0.0).flatten().to(rewards.dtype)


def selected_log_probs(logits: Tensor, tokens: Tensor, temperature: float = 1.0) -> Tensor:
    """log softmax(logits / temperature) at the tokens, (..., V) and (...) -> (...), in float32."""
    logits = logits.float() / temperature
    return logits.gather(-1, tokens.unsqueeze(-1)).squeeze(-1) - logits.logsumexp(-1)


def k3_kl(log_probs: Tensor, ref: Tensor) -> Tensor:
    """pi_ref / pi - log(pi_ref / pi) - 1 per token: unbiased, never negative. Equation 4."""
    difference = ref - log_probs
    return difference.exp() - difference - 1


def log_ratio(log_probs: Tensor, old: Tensor, mask: Tensor, level: str = "token") -> Tensor:
    """log(pi / pi_old) per token, (B, T); with level "sequence" GSPO's mean, equation 7: (B, 1)."""
    ratio = log_probs - old
    if level == "token":
        return ratio
    return (ratio * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)


def clipped_objective(ratio: Tensor, advantages: Tensor, low: float, high: float) -> Tensor:
    """min(ratio A, clip(ratio, 1 - low, 1 + high) A): PPO's equation 7, DeepSeekMath's equation 3.

    A `high` above `low` is DAPO's clip-higher (section 3.1).
    """
    return torch.min(ratio * advantages, ratio.clamp(1 - low, 1 + high) * advantages)


def token_weights(mask: Tensor, loss_type: str, max_length: int) -> Tensor:
    """The weight of each token in the loss of a whole batch, (B, T) -> (B, T).

    They are the batch's, not a micro-batch's, so that the losses of micro-batches add up exactly.
    """
    mask = mask.float()
    if loss_type == "grpo":  # mean over a completion's tokens, then over completions; equation 3
        return mask / mask.sum(1, keepdim=True).clamp(min=1) / len(mask)
    if loss_type == "dapo":  # mean over all tokens: long completions count more; DAPO, equation 8
        return mask / mask.sum().clamp(min=1)
    if loss_type == "dr_grpo":  # a constant divisor: no length matters; Dr.GRPO, section 3.2
        return mask / (len(mask) * max_length)
    raise ValueError(f"loss_type must be one of {', '.join(LOSS_TYPES)}, got {loss_type!r}")


def grpo_loss(
    log_probs: Tensor,  # (B, T) under the policy, with gradient
    old: Tensor,  # (B, T) under the policy that sampled
    ref: Tensor | None,  # (B, T) under the reference policy; None at beta 0
    advantages: Tensor,  # (B,)
    mask: Tensor,  # (B, T), the tokens that count
    weights: Tensor,  # (B, T), see `token_weights`
    *,
    epsilon: float = 0.2,
    epsilon_high: float | None = None,
    beta: float = 0.0,
    level: str = "token",
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of a micro-batch, to be summed over the batch, and sums over its tokens to log."""
    high = epsilon if epsilon_high is None else epsilon_high
    advantages = advantages.unsqueeze(1)
    # Padding goes first: whatever stands there, 0 times infinity would be NaN in the gradient.
    counts = mask.bool()
    log_probs = log_probs.masked_fill(~counts, 0.0)
    old = old.masked_fill(~counts, 0.0)

    ratio = log_ratio(log_probs, old, mask, level).exp()
    losses = -clipped_objective(ratio, advantages, epsilon, high).expand_as(log_probs)
    at_low = (ratio < 1 - epsilon) & (advantages < 0) & counts
    at_high = (ratio > 1 + high) & (advantages > 0) & counts
    sums = {
        "clip_ratio/low_mean": at_low.sum(),
        "clip_ratio/high_mean": at_high.sum(),
        "clip_ratio/region_mean": (at_low | at_high).sum(),
    }
    if beta and ref is not None:
        kl = k3_kl(log_probs, ref.masked_fill(~counts, 0.0))
        losses = losses + beta * kl
        sums["kl"] = kl.detach().sum()
    return (losses * weights).sum(), sums


# --- The model: samples of a policy, and the log-probabilities of their tokens.


@dataclass
class Batch:
    """B completions, each behind its prompt, which is padded on the left to P tokens."""

    tokens: Tensor  # (B, P + T)
    attention: Tensor  # (B, P + T), 0 for the padding before the prompt
    mask: Tensor  # (B, T), the completion tokens that count
    advantages: Tensor  # (B,)
    weights: Tensor  # (B, T)
    old: Tensor | None = None  # (B, T); None while the policy is still the one that sampled
    ref: Tensor | None = None  # (B, T)

    def micro_batches(self, size: int) -> Iterator[tuple[Tensor, "Batch"]]:
        """Numbers of rows and their part of the batch; like lengths together, for less padding."""
        lengths = self.mask.sum(1)
        prompt = self.tokens.shape[1] - self.mask.shape[1]
        for rows in lengths.argsort(stable=True).split(size):
            longest = max(1, int(lengths[rows].max()))
            tokens, attention = (x[rows, : prompt + longest] for x in (self.tokens, self.attention))
            mask, weights = (x[rows, :longest] for x in (self.mask, self.weights))
            old = None if self.old is None else self.old[rows, :longest]
            ref = None if self.ref is None else self.ref[rows, :longest]
            yield rows, Batch(tokens, attention, mask, self.advantages[rows], weights, old, ref)


def completion_mask(completions: Tensor, stop_ids: Sequence[int]) -> Tensor:
    """True up to the first stop token and for it, since stopping is a decision: (B, T) -> (B, T)."""
    stops = torch.isin(completions, torch.tensor(stop_ids, device=completions.device)).long()
    return stops.cumsum(1) - stops == 0


def sample(model: Any, prompts: list[list[int]], stop_ids: list[int], copies: int, settings: Any):
    """`copies` completions of each prompt: tokens and attention (B, P + T), and mask (B, T)."""
    longest = max(map(len, prompts))
    pad = stop_ids[0]
    rows = [[pad] * (longest - len(prompt)) + prompt for prompt in prompts]
    attention = [[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    config = GenerationConfig(
        do_sample=True,
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=settings.top_k,
        repetition_penalty=1.0,  # published models bring one, of which the loss knows nothing
        max_new_tokens=settings.max_completion_length,
        num_return_sequences=copies,
        eos_token_id=stop_ids,
        pad_token_id=pad,
    )
    prompt_mask = torch.tensor(attention, device=model.device)
    tokens = model.eval().generate(
        torch.tensor(rows, device=model.device),
        attention_mask=prompt_mask,
        generation_config=config,
    )
    mask = completion_mask(tokens[:, longest:], stop_ids)
    # What follows a completion may be attended to: no token that counts stands behind it.
    return (
        tokens,
        torch.cat([prompt_mask.repeat_interleave(copies, 0), torch.ones_like(mask)], 1),
        mask,
    )


def completion_log_probs(model: Any, batch: Batch, temperature: float) -> Tensor:
    """Log-probabilities of the completion tokens, (B, T); arbitrary where the mask is False."""
    length = batch.mask.shape[1]
    with torch.autocast(model.device.type, torch.bfloat16, enabled=model.device.type == "cuda"):
        logits = model(
            batch.tokens,
            attention_mask=batch.attention,
            position_ids=(batch.attention.cumsum(1) - 1).clamp(min=0),
            use_cache=False,
            logits_to_keep=length + 1,
        ).logits
    # The logits at place i are about the token at i + 1: those of the prompt's last token count,
    # those of the last token do not.
    return selected_log_probs(logits[:, :-1], batch.tokens[:, -length:], temperature)


@torch.no_grad()
def all_log_probs(model: Any, batch: Batch, size: int, temperature: float) -> Tensor:
    """The same for a whole batch without gradient, `size` completions at a time."""
    result = torch.zeros(batch.mask.shape, device=batch.mask.device)
    for rows, part in batch.micro_batches(size):
        result[rows, : part.mask.shape[1]] = completion_log_probs(model, part, temperature)
    return result


def accumulate_gradient(
    model: Any, batch: Batch, size: int, temperature: float, **objective: Any
) -> dict[str, float]:
    """Add the gradient of a batch's loss to `.grad`; returns the loss, and means over its tokens.

    objective: keywords of `grpo_loss`.
    """
    totals: Counter[str] = Counter()
    for _, part in batch.micro_batches(size):
        log_probs = completion_log_probs(model, part, temperature)
        old = log_probs.detach() if part.old is None else part.old
        loss, sums = grpo_loss(
            log_probs, old, part.ref, part.advantages, part.mask, part.weights, **objective
        )
        loss.backward()
        totals.update({"loss": loss.detach(), **sums})
    tokens = max(1, int(batch.mask.sum()))
    figures = {name: float(total) / tokens for name, total in totals.items()}
    return {**figures, "loss": float(totals["loss"])}


# --- The loop: a rollout, and `num_iterations` updates with it.


def endless(rows: list[dict[str, Any]], seed: int) -> Iterator[dict[str, Any]]:
    """All rows in a new order in each epoch."""
    order = random.Random(seed)
    while True:
        yield from order.sample(rows, len(rows))


def score(
    rewards: Sequence[Any], rows: list[dict[str, Any]], texts: list[str], **columns: list[Any]
) -> tuple[Tensor, list[Record]]:
    """The rewards of completions, (B, F) with NaN for None, and a record of each for the log.

    rows: that of each completion. columns: what rewards and records may take besides.
    """
    for name in set[str]().union(*rows):
        columns[name] = [row.get(name) for row in rows]
    grades = GradeLog()
    scores = []
    for reward in rewards:
        reward.log = grades
        values = reward(texts, **columns)
        scores.append([math.nan if value is None else value for value in values])
    records = grades.take()
    judge(records, Judges.from_rewards(rewards))
    return torch.tensor(scores, dtype=torch.float32).T, records


def rollout(model, reference, tokenizer, rewards, rows, step, settings):
    """Completions of a step's rows: the batch with advantages, records, and figures to log."""
    stop_ids = models.stop_token_ids(tokenizer, model.generation_config)
    size, longest = settings.num_generations, settings.max_completion_length
    conversations = [row["messages"] for row in rows]
    prompts = models.fitting_prompts(tokenizer, conversations, longest, model.config)
    tokens, attention, mask = sample(model, prompts, stop_ids, size, settings)

    completions = tokens[:, -mask.shape[1] :]
    ids = [row[counts].tolist() for row, counts in zip(completions, mask, strict=True)]
    finish = ["stop" if row[-1] in stop_ids else "length" for row in ids]
    texts = tokenizer.batch_decode(ids, skip_special_tokens=True)
    row_of_each = [row for row in rows for _ in range(size)]
    scores, records = score(rewards, row_of_each, texts, completion_ids=ids, finish_reason=finish)
    totals = total_rewards(scores, torch.tensor(settings.reward_weights))
    advantages = group_advantages(totals, size, scale=settings.scale_rewards == "group")
    for index, record in enumerate(records):
        record.index, record.step, record.mode = index, step, "train"
        record.advantage = round(float(advantages[index]), 6)

    weights = token_weights(mask, settings.loss_type, longest)
    batch = Batch(tokens, attention, mask, advantages.to(model.device), weights)
    options = settings.micro_batch_size, settings.temperature
    if reference is not None:
        batch.ref = all_log_probs(reference, batch, *options)
    if settings.num_iterations > 1:  # else the policy is the old one, and one pass will do
        batch.old = all_log_probs(model, batch, *options)

    lengths = mask.sum(1).float()
    spread = totals.nan_to_num().view(-1, size).std(1)
    figures = {
        "reward": totals.nanmean().item(),
        "reward_std": spread.mean().item(),
        # Groups of equal rewards, all right or all wrong, teach nothing.
        "frac_reward_zero_std": (spread < 1e-6).float().mean().item(),
        "completions/mean_length": lengths.mean().item(),
        "completions/clipped_ratio": finish.count("length") / len(finish),
    }
    for reward, mean in zip(rewards, scores.nanmean(0).tolist(), strict=True):
        figures[f"rewards/{logged_name(reward)}/mean"] = mean
    return batch, records, figures


def update(model, optimizer, scheduler, batch, step, settings) -> dict[str, float]:
    """One step of the optimizer with all of a batch; what there is to log about it."""
    model.train(model.is_gradient_checkpointing)  # which works in training mode only
    optimizer.zero_grad()
    options = settings.micro_batch_size, settings.temperature
    figures = accumulate_gradient(
        model, batch, *options, epsilon=settings.epsilon, beta=settings.beta
    )
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), settings.max_grad_norm).item()
    if not math.isfinite(norm + figures["loss"]):
        sign = f"the loss is {figures['loss']}, the norm of its gradient {norm}"
        raise diverged(settings.output_dir, step, sign)
    rate = scheduler.get_last_lr()[0]
    optimizer.step()
    scheduler.step()
    return {**figures, "grad_norm": norm, "learning_rate": rate}


def train(settings: Any, console: Console) -> Path:
    """Train, and return the folder of the last checkpoint."""
    folder = Path(settings.output_dir)
    checkpoint_to_resume(folder, None)  # InputError where the folder holds another run
    torch.manual_seed(settings.seed)
    rewards = build_rewards(settings.reward_funcs)
    if len(rewards) != len(settings.reward_weights):
        problem = f"a reward is named twice in {', '.join(settings.reward_funcs)}"
        raise InputError(problem, "reward_funcs")
    source = parse_source(find_file(settings.dataset))
    rows = []
    for line, raw in source.rows():
        with source.at(line):  # an error names the line
            row = source.task.preprocess_for_training(raw)
        rows.append({**row, "messages": with_system(row["messages"], source.task.system)})
    reward_columns(source, rewards, rows)  # InputError where one lacks a column, or grades no row

    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = models.load_tokenizer(settings.model)
    # Weights are float32 and run under autocast: an update of 1e-6 would be lost in bfloat16.
    model = models.load_pretrained(AutoModelForCausalLM, settings.model, dtype=torch.float32)
    reference = copy.deepcopy(model).to(device) if settings.beta else None
    model.to(device)
    if device == "cuda":
        model.gradient_checkpointing_enable()
    matrices = [weights for weights in model.parameters() if weights.dim() >= 2]
    vectors = [weights for weights in model.parameters() if weights.dim() < 2]
    optimizer = torch.optim.AdamW(
        [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}],
        lr=settings.learning_rate,
        betas=(0.9, settings.adam_beta2),
        weight_decay=settings.weight_decay,
    )
    scheduler = get_scheduler(settings.lr_scheduler_type, optimizer, 0, settings.max_steps)
    info = {"trainer": "grpo_from_scratch", "system": source.task.system, **vars(settings)}
    write_json(folder / ARGS, info)
    with RunLog(folder, console) as log:
        log.rewards(Judges.from_rewards(rewards))
        log.start(0, settings.max_steps)
        upcoming = endless(rows, settings.seed)
        step = 0
        while step < settings.max_steps:
            started = time.perf_counter()
            chosen = [next(upcoming) for _ in range(settings.prompts_per_step)]
            batch, records, figures = rollout(
                model, reference, tokenizer, rewards, chosen, step + 1, settings
            )
            # `log.records` gives success, form and reasons, as values of which the mean is logged.
            for name, values in log.records(records).items():
                figures[name] = sum(values) / len(values)
            for _ in range(min(settings.num_iterations, settings.max_steps - step)):
                step += 1
                figures |= update(model, optimizer, scheduler, batch, step, settings)
                log.update(step, {**figures, "step_time": time.perf_counter() - started})
                started = time.perf_counter()
                checkpoint = folder / f"checkpoint-{step}"
                if step % settings.save_steps == 0 or step == settings.max_steps:
                    model.save_pretrained(checkpoint)
                    tokenizer.save_pretrained(checkpoint)
    return checkpoint


def chat(folder: str, question: str, settings: Any) -> str:
    """What a saved model answers, with the system prompt of the task."""
    tokenizer = models.load_tokenizer(folder)
    model = models.load_pretrained(AutoModelForCausalLM, folder, dtype=torch.float32)
    system = parse_source(find_file(settings.dataset)).task.system
    messages = with_system([{"role": "user", "content": question}], system)
    longest = settings.max_completion_length
    prompts = models.fitting_prompts(tokenizer, [messages], longest, model.config)
    stop_ids = models.stop_token_ids(tokenizer, model.generation_config)
    tokens, _, mask = sample(model, prompts, stop_ids, 1, settings)
    return tokenizer.decode(tokens[0, -mask.shape[1] :][mask[0]], skip_special_tokens=True)


# --- The settings: those of a task, which flags of the same names override.

BOTH = {
    "num_generations": 8,  # the size of a group
    "prompts_per_step": 8,  # 8 x 8 = 64 completions
    "temperature": 1.0,
    "loss_type": "grpo",
    "scale_rewards": "group",  # or none
    "epsilon": 0.2,
    "num_iterations": 1,  # mu
    "max_grad_norm": 1.0,
    "seed": 42,
}
TASKS: dict[str, dict[str, Any]] = {
    # ms-swift's defaults for the optimizer, with which docs/start/quickstart.md compares the trainers.
    "countdown": {
        **BOTH,
        "model": str(TINY_MODEL),
        "dataset": "countdown:datasets/countdown/tiny_train.jsonl",
        "output_dir": "output/grpo_countdown",
        "reward_funcs": ["external_countdown", "external_format"],
        "reward_weights": [1.0, 1.0],
        "micro_batch_size": 16,  # changes memory and speed, not the result
        "max_completion_length": 320,
        "top_p": 1.0,
        "top_k": 0,
        "beta": 0.001,
        "learning_rate": 3e-4,
        "lr_scheduler_type": "cosine",
        "weight_decay": 0.1,
        "adam_beta2": 0.95,
        "max_steps": 60,
        "save_steps": 20,
    },
    # One epoch over 1,024 rows, with DeepSeekMath's epsilon, beta, mu and learning rate.
    "gsm8k": {
        **BOTH,
        "model": "Qwen/Qwen2.5-0.5B-Instruct",
        "dataset": "gsm8k:output/gsm8k_1024.jsonl",
        "output_dir": "output/grpo_gsm8k",
        "reward_funcs": ["external_format_strict", "external_tag_count", "external_accuracy"],
        "reward_weights": [0.5, 0.5, 1.0],
        "micro_batch_size": 4,  # logits of 4 x 512 tokens x 152,000 are 1.2 GB
        "max_completion_length": 512,
        "top_p": 0.9,
        "top_k": 50,
        "beta": 0.04,
        "learning_rate": 1e-6,
        "lr_scheduler_type": "constant",
        "weight_decay": 0.0,
        "adam_beta2": 0.999,
        "max_steps": 128,
        "save_steps": 64,
    },
}

# What would end in a traceback after the model is loaded, or run to its end and teach nothing.
ACCEPTED = {
    "num_generations": Accepts({"at_least": 2}),  # one has nothing to be compared with
    "prompts_per_step": Accepts({"at_least": 1}),
    "micro_batch_size": Accepts({"at_least": 1}),
    "max_completion_length": Accepts({"at_least": 1}),
    "temperature": Accepts({"more_than": 0}),
    "top_p": Accepts({"more_than": 0, "at_most": 1}),
    "top_k": Accepts({"at_least": 0}),  # 0: all tokens
    "loss_type": Accepts(choices=LOSS_TYPES),
    "scale_rewards": Accepts(choices=("group", "none")),
    "epsilon": Accepts({"at_least": 0}),
    "beta": Accepts({"at_least": 0}),
    "num_iterations": Accepts({"at_least": 1}),
    "max_grad_norm": Accepts({"more_than": 0}),
    "learning_rate": Accepts({"more_than": 0}),
    "lr_scheduler_type": Accepts(choices=("constant", "cosine", "linear")),
    "weight_decay": Accepts({"at_least": 0}),
    "adam_beta2": Accepts({"at_least": 0, "less_than": 1}),
    "max_steps": Accepts({"at_least": 1}),
    "save_steps": Accepts({"at_least": 1}),
    "seed": Accepts({"at_least": 0}),
}


def read_settings(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The settings of `--task` with the flags of a command line."""
    task = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    task.add_argument("--task", choices=TASKS, default="countdown")
    parser = argparse.ArgumentParser(parents=[task], allow_abbrev=False)
    parser.add_argument("--chat", nargs=2, metavar=("FOLDER", "QUESTION"), help="ask a saved model")
    for name, default in TASKS[task.parse_known_args(argv)[0].task].items():
        several = isinstance(default, list)
        kind = type(default[0] if several else default)
        nargs = "+" if several else None
        parser.add_argument(f"--{name}", nargs=nargs, type=kind, default=default, help=f"{default}")
    settings = parser.parse_args(argv)
    for name, accepts in ACCEPTED.items():
        value = getattr(settings, name)
        if not accepts.allows(value):
            parser.error(f"--{name}: must be {accepts}, got {value}")
    weights = settings.reward_weights
    if len(weights) != len(settings.reward_funcs):
        parser.error("--reward_weights: expected one for each of --reward_funcs")
    if not any(weights) or not all(map(math.isfinite, weights)):
        parser.error(f"--reward_weights: must be finite and not all 0, got {weights}")
    return settings


if __name__ == "__main__":
    options = read_settings()
    if not torch.cuda.is_available():
        torch.set_num_threads(1)  # more would wait for each other, with a model this small
    try:
        if options.chat:
            folder, question = options.chat
            print(chat(folder, question, options))
        else:
            print(f"saved: {train(options, Console(highlight=False))}")
    except (InputError, DivergedError) as error:
        raise SystemExit(f"error: {error}") from None
