"""TRL's and ms-swift's own GRPO trainers on given completions; for test_against_trainers.py.

`run_trl` and `run_swift` each belong into a process of their own: importing ms-swift changes
transformers for good. Both trainers are built from their usual arguments and run their usual
`train()`: it renders the prompts, calls and weighs the rewards, computes advantages, old and
reference log-probabilities, loss and gradient, and accumulates that over micro-batches. Two things
are put in: completions, in the place of what would sample them, and after each optimizer step the
weights for the next one, which are the same in every process.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from paths import words
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks.countdown import SYSTEM_PROMPT, to_messages
from swift_rlvr.training.ms_swift.patching import apply_patches
from swift_rlvr.training.ms_swift.table import SPEEDUPS
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.jsonl import write_jsonl
from swift_rlvr.verifiers.messages import completion_text

PLUGIN = Path(__file__).parents[2] / "plugin" / "rlvr_plugin.py"
STEPS = 4
NOISE = 0.01  # so much that some ratios leave the clip range
MAX_LENGTH = 96  # of a completion, in tokens: the constant of Dr.GRPO
LENGTH = {"scale": -1 / 128, "max_length": 96}
REWARD_WEIGHTS = (1.0, 0.5, 0.25)


@dataclass(frozen=True)
class Case:
    """Settings of the objective, and in how many micro-batches the trainers compute an optimizer
    step.
    """

    aggregation: str
    beta: float = 0.0
    low: float = 0.2
    high: float | None = None
    level: str = "token"
    scale: bool = True
    temperature: float = 1.0
    iterations: int = 2
    micro_batches: int = 3
    flags: str = ""  # further ones of ms-swift

    def __str__(self) -> str:
        usual = vars(Case(self.aggregation, self.beta))
        changed = [f"{name}={value}" for name, value in vars(self).items() if value != usual[name]]
        return ",".join([self.aggregation, f"beta={self.beta:g}", *changed])


@dataclass(frozen=True)
class Sampled:
    """Countdown rows, and for each the same number of completions as the token ids of a model, for
    `steps` steps.
    """

    rows: list[dict[str, Any]]
    completions: list[list[list[int]]]
    model: str = str(TINY_MODEL)
    swift: str = "--model_type qwen2 --template qwen2_5"
    steps: int = STEPS
    noise: float = NOISE

    @property
    def generations(self) -> int:
        return len(self.completions[0])

    def micro_batch(self, case: Case) -> int:
        return len(self.rows) * self.generations // case.micro_batches

    def hand_out(self, rows: list[int]) -> list[list[int]]:
        """A completion for each of these rows: the first, the second ... where a row comes
        again.
        """
        return [self.completions[row][rows[:i].count(row)] for i, row in enumerate(rows)]


def thought(completions: list, **columns: Any) -> list[float | None]:
    """A reward that does not apply to completions whose think part is not closed."""
    texts = [completion_text(completion) or "" for completion in completions]
    return [float(text.count("high")) if "</think>" in text else None for text in texts]


def rewards() -> list[Callable]:
    return [REWARDS["external_countdown"](), REWARDS["external_length"](**LENGTH), thought]


def policies(model: nn.Module, steps: int, noise: float) -> list[dict[str, Tensor]]:
    """The weights at each optimizer step: the model's own, then these with noise; the same in every
    process.
    """
    initial = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    generator = torch.Generator().manual_seed(1)

    def noisy() -> dict[str, Tensor]:
        return {
            name: x + noise * torch.randn(x.shape, generator=generator)
            for name, x in initial.items()
        }

    return [initial, *(noisy() for _ in range(steps - 1))]


@torch.no_grad()
def set_weights(model: nn.Module, weights: dict[str, Tensor]) -> None:
    for name, parameter in model.named_parameters():
        parameter.copy_(weights[name])


def train(trainer: Any, sampled: Sampled) -> list[dict[str, Any]]:
    """Train for its optimizer steps; for each: loss, gradients, advantage of each completion's
    text, logged values, and the tokens of each forward pass of the policy.

    The loss is what went into `backward`, summed over the step's micro-batches.
    """
    from transformers import TrainerCallback

    weights, losses, steps = policies(trainer.model, sampled.steps, sampled.noise), [], []
    passes: list[int] = []
    training_step, callback = trainer.training_step, TrainerCallback()

    def record_loss(*args: Any, **kwargs: Any) -> Tensor:
        losses.append(training_step(*args, **kwargs))
        return losses[-1]

    def record_gradient(*args: Any, **kwargs: Any) -> None:
        gradients = {
            name: parameter.grad.clone()
            for name, parameter in trainer.model.named_parameters()
            if parameter.grad is not None  # of LoRA only the adapter's
        }
        # TRL 1.x logs the completions as messages.
        texts = map(completion_text, trainer._logs["completion"])
        advantages = dict(zip(texts, trainer._logs["advantages"], strict=True))
        steps.append(
            {
                "loss": sum(map(float, losses)),
                "gradients": gradients,
                "advantages": advantages,
                "passes": list(passes),
            }
        )
        losses.clear()
        passes.clear()

    def record_pass(module: nn.Module, args: Any, kwargs: dict[str, Any]) -> None:
        passes.append(kwargs["input_ids"].numel())

    def change_weights(args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step < sampled.steps:
            set_weights(trainer.model, weights[state.global_step])

    trainer.training_step = record_loss
    trainer.model.register_forward_pre_hook(record_pass, with_kwargs=True)
    callback.on_pre_optimizer_step, callback.on_step_end = record_gradient, change_weights
    trainer.add_callback(callback)
    # accelerate collects garbage after each run, and would look through all that was imported every
    # time
    gc.freeze()
    trainer.train()
    logged = [entry for entry in trainer.state.log_history if "loss" in entry]
    return [{**step, "logged": entry} for step, entry in zip(steps, logged, strict=True)]


def start(folder: Path) -> None:
    """In the new process: one core, no GPU, and what it prints goes to a file."""
    folder.mkdir()
    log = os.open(folder / "log.txt", os.O_CREAT | os.O_WRONLY)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    torch.set_num_threads(1)


def save(result: list[dict[str, Any]], folder: Path, case: Case) -> None:
    """As CASE.pt, which is there only when it is complete."""
    torch.save(result, folder / "unfinished")
    (folder / "unfinished").rename(folder / f"{case}.pt")


def run_trl(cases: Sequence[Case], sampled: Sampled, folder: Path) -> None:
    """For each case, save what `train` returns."""
    start(folder)
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer, __version__

    # What the sampler returns: token ids, their log probabilities and, before TRL 1.0, more columns.
    rest: tuple = (None, {}) if __version__.startswith("0.") else (None,)
    dataset = Dataset.from_list([{"prompt": to_messages(**row), **row} for row in sampled.rows])
    for case in cases:
        config = GRPOConfig(
            use_bias_correction_kl=False,  # the default until 1.9
            output_dir=str(folder / "output"),
            loss_type=case.aggregation,
            beta=case.beta,
            epsilon=case.low,
            epsilon_high=case.high,
            importance_sampling_level=case.level,
            scale_rewards="group" if case.scale else "none",
            temperature=case.temperature,
            num_iterations=case.iterations,
            per_device_train_batch_size=sampled.micro_batch(case),
            gradient_accumulation_steps=case.micro_batches,
            num_generations=sampled.generations,
            max_completion_length=MAX_LENGTH,
            reward_weights=list(REWARD_WEIGHTS),
            shuffle_dataset=False,
            max_steps=sampled.steps,
            max_grad_norm=0.0,
            gradient_checkpointing=False,
            logging_steps=1,
            report_to=[],
            use_cpu=True,
            bf16=False,
            save_strategy="no",
        )
        trainer = GRPOTrainer(
            sampled.model, reward_funcs=rewards(), train_dataset=dataset, args=config
        )
        prompts = trainer._tokenize_prompts(list(dataset["prompt"]))[0]

        def sample(prompt_ids: list, *unused: Any, prompts: list = prompts) -> tuple:
            return sampled.hand_out([prompts.index(ids) for ids in prompt_ids]), *rest

        trainer._generate_single_turn = sample
        save(train(trainer, sampled), folder, case)


def run_swift(
    cases: Sequence[Case], sampled: Sampled, folder: Path, speedups: bool = False
) -> None:
    """The same; with the patches that leave work out, or as ms-swift is."""
    start(folder)
    if speedups:
        apply_patches(SPEEDUPS)
    os.environ |= {f"EXTERNAL_LENGTH_{name.upper()}": str(value) for name, value in LENGTH.items()}
    from swift.infer_engine.protocol import (
        ChatCompletionResponse,
        ChatCompletionResponseChoice,
        ChatMessage,
        UsageInfo,
    )
    from swift.pipelines.train.rlhf import SwiftRLHF
    from swift.rewards import orms

    orms["thought"] = lambda args: thought
    questions = [to_messages(**row)[-1]["content"] for row in sampled.rows]
    write_jsonl(folder / "tasks.jsonl", sampled.rows)

    class Run(SwiftRLHF):
        def answer(self, tokens: list[int]) -> ChatCompletionResponse:
            message = ChatMessage(
                "assistant", self.tokenizer.decode(tokens, skip_special_tokens=True)
            )
            reason = "stop" if tokens[-1] == self.tokenizer.eos_token_id else "length"
            # As of a server whose weights are others: a token's log probability depends on nothing else.
            logprobs = {"content": [{"logprob": -0.01 * (token % 100)} for token in tokens]}
            choice = ChatCompletionResponseChoice(
                0, message, reason, logprobs=logprobs, token_ids=tokens
            )
            return ChatCompletionResponse("model", [choice], UsageInfo(0, 0, 0))

        def infer(self, requests: list, *unused: Any, **more: Any) -> list[ChatCompletionResponse]:
            rows = [questions.index(request.messages[-1]["content"]) for request in requests]
            return list(map(self.answer, sampled.hand_out(rows)))

        def train(self, trainer: Any) -> list[dict[str, Any]]:
            trainer.engine.infer = self.infer
            return train(trainer, sampled)

    for case in cases:
        flags = f"""--rlhf_type grpo --model {sampled.model} {sampled.swift} --check_model false
            --tuner_type full --torch_dtype float32 --bf16 false --fp16 false --use_cpu true --use_vllm false
            --external_plugins {PLUGIN} --dataset countdown:{folder}/tasks.jsonl --dataset_shuffle false
            --split_dataset_ratio 0 --dataloader_num_workers 0 --max_length 512
            --reward_funcs external_countdown external_length thought
            --reward_weights {" ".join(map(str, REWARD_WEIGHTS))}
            --loss_type {case.aggregation} --beta {case.beta}
            --epsilon {case.low} --epsilon_high {case.high or case.low}
            --importance_sampling_level {case.level} --scale_rewards {"group" if case.scale else "none"}
            --temperature {case.temperature} --num_iterations {case.iterations}
            --per_device_train_batch_size {sampled.micro_batch(case)}
            --gradient_accumulation_steps {case.micro_batches} --num_generations {sampled.generations}
            --max_completion_length {MAX_LENGTH} --max_steps {sampled.steps} --max_grad_norm 0
            --gradient_checkpointing false --logging_steps 1 --save_strategy no
            --report_to none --output_dir {folder}/output {case.flags}"""
        save(Run([*words(flags), "--system", SYSTEM_PROMPT]).main(), folder, case)
