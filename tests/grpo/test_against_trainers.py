"""Our loss and gradients beside those of TRL's and ms-swift's own GRPO trainers: same weights,
completions and rewards.

    python -m pytest tests/grpo/test_against_trainers.py -s      # prints the table of differences

Each case has four optimizer steps. Completions are taken over at the first and the third, so these
are first inner iterations, and the second and fourth later ones; in the fourth, policy, old and
reference policy are three. peers.py says what is put into the trainers. Two differences are known
and not met here: a completion to which no reward applies counts for nothing with us, and as a reward
of 0 in ms-swift and in TRL before 1.6; and ms-swift clamps k3 at 10.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from functools import cache, lru_cache
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from grpo import peers as grpo_peers
from grpo.peers import MAX_LENGTH, REWARD_WEIGHTS, STEPS, Case, Sampled
from grpo_from_scratch import (
    Batch,
    accumulate_gradient,
    all_log_probs,
    group_advantages,
    token_weights,
    total_rewards,
)
from swift_rlvr.tasks.countdown import to_messages
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.jsonl import read_jsonl
from waiting import wait_until

PEERS = {"TRL": grpo_peers.run_trl}
if find_spec("swift"):  # not in the environment of TRL 1.x, which ms-swift 4.6 does not take
    PEERS["ms-swift"] = grpo_peers.run_swift
MICRO_BATCH = 5  # ours, of 12 completions
TOLERANCES = {"advantages": 1e-5, "loss": 1e-5, "gradient": 1e-5, "worst parameter": 1e-4}
# Each aggregation with and without the KL term, and every other setting once.
CASES = (
    Case("grpo"),
    Case("grpo", 0.04, micro_batches=1),
    Case("grpo", 0.04, low=0.006, high=0.008, level="sequence"),  # GSPO
    Case("dapo"),
    Case("dapo", 0.04, high=0.28, temperature=0.7),
    Case("dr_grpo", 0.04),
    Case("dr_grpo", scale=False, iterations=1),
)
CUT = ("<think>\n6+5=11,11*3=33 high\n5-3=2,6/2=3 low\n6+3=9,9*5=45 high\n6-", "<think>\n7*4=28,28")
# for each of the first three tasks: a right one, wrong ones and one without an end; the same; equal
# rewards
TEXTS = (
    (
        "<think>\n6-5=1,3+1=4 yes\n</think>\n<answer>3+(6-5)</answer>",
        "<think>\n5*3=15,15-6=9 high\n</think>\n<answer>(5*3)-6</answer>",
        "<think>\n5+3=8,8+6=14 high\n6-5=1,3/1=3 low\n6*3=18,18-5=13 high\n</think>\n<answer>3/(6-5)</answer>",
        CUT[0],
    ),
    (
        "<think>\n7*4=28,28-2=26 high\n7+4=11,11-2=9 yes\n</think>\n<answer>(7+4)-2</answer>",
        CUT[1],
        "<think>\n7*4=28,28*2=56 high\n7-2=5,5*4=20 high\n7*2=14,14*4=56 high\n</think>\n<answer>(7*2)*4</answer>",
        "<think>\n4*2=8,8-7=1 low\n</think>\n<answer>(4*2)-7</answer>",
    ),
    (
        "<think>\n8*1=8,8-4=4 high\n</think>\n<answer>(8*1)-4</answer>",
        "<think>\n8/1=8,8-4=4 high\n</think>\n<answer>(8/1)-4</answer>",
        "<think>\n8/4=2,2*1=2 high\n</think>\n<answer>(8/4)*1</answer>",
        "<think>\n8-4=4,4*1=4 high\n</think>\n<answer>(8-4)*1</answer>",
    ),
)


def sampled_at(case: Case, step: int) -> int:
    """The step whose policy is the old one: the same step in a first inner iteration."""
    return step - step % case.iterations


class Ours:
    """What grpo_from_scratch makes of the same completions."""

    def __init__(
        self,
        root: Path,
        model: str = str(TINY_MODEL),
        groups: Sequence[Sequence[str]] = TEXTS,
        **more: Any,
    ):
        """groups: completions of the first tasks; more: of `Sampled`."""
        samples = root / "datasets" / "countdown" / "tiny_train.jsonl"
        rows = [row for _, (_, row) in zip(groups, read_jsonl(samples), strict=False)]
        tokenizer = transformers.AutoTokenizer.from_pretrained(model)
        ids = [
            [tokenizer.encode(x) + [tokenizer.eos_token_id] * (x not in CUT) for x in group]
            for group in groups
        ]
        self.sampled = Sampled(rows, ids, model, **more)
        self.rows = [row for row in rows for _ in range(self.sampled.generations)]
        self.texts = [text for group in groups for text in group]
        prompts = tokenizer.apply_chat_template(
            [to_messages(**row) for row in self.rows],
            add_generation_prompt=True,
            return_dict=False,
        )
        completions = [tokens for group in ids for tokens in group]
        self.completions = padded(prompts, completions, tokenizer.pad_token_id)
        self.model = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
        self.weights = grpo_peers.policies(self.model, self.sampled.steps, self.sampled.noise)
        self.log_probs, self.train = cache(self._log_probs), lru_cache(maxsize=1)(self._train)

    def _log_probs(self, step: int, temperature: float) -> Tensor:
        grpo_peers.set_weights(self.model, self.weights[step])
        return all_log_probs(self.model, self.completions, MICRO_BATCH, temperature)

    def advantages(self, scale: bool) -> Tensor:
        columns = {name: [row[name] for row in self.rows] for name in ("nums", "target")}
        paid = [reward(self.texts, **columns) for reward in grpo_peers.rewards()]
        paid = torch.tensor(
            [[torch.nan if value is None else value for value in values] for values in paid]
        )
        totals = total_rewards(paid.T, torch.tensor(REWARD_WEIGHTS))
        # The eps of TRL and ms-swift.
        return group_advantages(totals, self.sampled.generations, scale=scale, eps=1e-4)

    def batch(self, case: Case, step: int) -> Batch:
        old = sampled_at(case, step)
        return replace(
            self.completions,
            weights=token_weights(self.completions.mask, case.aggregation, MAX_LENGTH),
            advantages=self.advantages(case.scale),
            old=self.log_probs(old, case.temperature) if old != step else None,
            ref=self.log_probs(0, case.temperature) if case.beta else None,
        )

    def _train(self, case: Case) -> list[dict[str, Any]]:
        """For each optimizer step its batch, the loss and what goes with it, and the gradients."""
        steps: list[dict[str, Any]] = []
        for batch in [self.batch(case, step) for step in range(self.sampled.steps)]:
            grpo_peers.set_weights(self.model, self.weights[len(steps)])
            self.model.zero_grad()
            figures = accumulate_gradient(
                self.model,
                batch,
                MICRO_BATCH,
                case.temperature,
                epsilon=case.low,
                epsilon_high=case.high,
                beta=case.beta,
                level=case.level,
            )
            gradients = {
                name: parameter.grad.clone() for name, parameter in self.model.named_parameters()
            }
            steps.append({"batch": batch, "gradients": gradients, "logged": figures})
        return steps


def padded(prompts: list[list[int]], completions: list[list[int]], pad: int) -> Batch:
    """Completions with their prompts as a batch, without advantages and weights yet."""
    before, after = max(map(len, prompts)), max(map(len, completions))
    tokens, attention, mask = [], [], []
    for prompt, completion in zip(prompts, completions, strict=True):
        left, right = before - len(prompt), after - len(completion)
        tokens.append([pad] * left + prompt + completion + [pad] * right)
        attention.append([0] * left + [1] * (len(prompt) + after))
        mask.append([True] * len(completion) + [False] * right)
    mask = torch.tensor(mask)
    return Batch(
        torch.tensor(tokens), torch.tensor(attention), mask, torch.zeros(len(mask)), mask.float()
    )


@pytest.fixture(scope="module")
def ours(request) -> Iterator[Ours]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the trainers have the other cores
    yield Ours(request.config.rootpath)
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def started(ours) -> Iterator[Callable[[str], tuple[Path, Future]]]:
    """A function that starts a trainer once, and returns where its results will be and what says that
    it has ended.
    """
    with (
        TemporaryDirectory() as folder,
        ProcessPoolExecutor(len(PEERS), mp_context=get_context("spawn")) as pool,
    ):

        @cache
        def start(peer: str) -> tuple[Path, Future]:
            place = Path(folder, peer)
            return place, pool.submit(PEERS[peer], CASES, ours.sampled, place)

        yield start


@pytest.fixture
def theirs(started, peer, case) -> list[dict[str, Any]]:
    return result(peer, case, *started(peer))


def result(peer: str, case: Case, folder: Path, run: Future) -> list[dict[str, Any]]:
    path = folder / f"{case}.pt"

    def is_there() -> bool:
        if run.done():
            run.result()  # raises what ended it
        return path.exists()

    wait_until(is_there, f"{case} of {peer}")
    return torch.load(path)


@pytest.fixture(scope="module")
def table() -> Iterator[list[tuple]]:
    head = ("trainer", "aggregation, beta, other settings", "iteration", "clipped", *TOLERANCES)
    rows: list[tuple] = []
    yield rows
    print(
        "\n\nLargest relative differences; clipped: share of tokens at the lower and the upper bound, at most"
    )
    for row in (head, *rows):
        print("{:<9} {:<51} {:<9} {:<10} {:>10} {:>8} {:>8} {:>15}".format(*row))


def differences(
    found: dict[str, Any], expected: dict[str, Any], texts: list[str]
) -> tuple[float, ...]:
    """What TOLERANCES names, of one optimizer step, each relative.

    The advantages' largest difference to the largest advantage. The loss's to the sum of the
    absolute values of its terms at a ratio of 1, as the terms themselves may cancel. The norm of
    the gradient's difference to its norm, of all parameters together and of the parameter where
    that is largest: one whose gradient is small because it cancels.
    """
    batch, right = found["batch"], expected["gradients"]
    advantages = torch.tensor([expected["advantages"][text] for text in texts])
    size = (batch.weights * batch.advantages.abs().unsqueeze(1)).sum().item()
    assert found["gradients"].keys() == right.keys()
    apart = torch.stack(
        [(gradient - right[name]).norm() for name, gradient in found["gradients"].items()]
    )
    norms = torch.stack([gradient.norm() for gradient in right.values()])
    return (
        ((batch.advantages - advantages).abs().max() / advantages.abs().max()).item(),
        abs(found["logged"]["loss"] - expected["loss"]) / max(size, abs(expected["loss"])),
        (apart.norm() / norms.norm()).item(),
        (apart / norms).max().item(),
    )


@pytest.mark.slow
@pytest.mark.weekly  # trainers of pinned versions; test_objective.py has the same formulas in loops
@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_same_advantages_loss_and_gradients(peer, case, ours, theirs, table):
    steps = ours.train(case)
    apart = [differences(*step, ours.texts) for step in zip(steps, theirs, strict=True)]
    first = [step for step in range(STEPS) if sampled_at(case, step) == step]
    for name, chosen in {
        "first": first,
        "later": [step for step in range(STEPS) if step not in first],
    }.items():
        if chosen:
            clipped = [
                max(steps[i]["logged"][f"clip_ratio/{side}_mean"] for i in chosen)
                for side in ("low", "high")
            ]
            worst = [f"{max(apart[i][j] for i in chosen):.1e}" for j in range(len(TOLERANCES))]
            table.append(
                (peer, str(case), name, " ".join(f"{share:.1%}" for share in clipped), *worst)
            )
    for step, values in enumerate(apart):
        for (name, tolerance), value in zip(TOLERANCES.items(), values, strict=True):
            tolerance *= 2 if case.temperature != 1 else 1  # which sharpens every difference
            assert value <= tolerance, (step, name)
    if (
        case.micro_batches == 1
    ):  # else they log the mean of the micro-batches' means, and we that of all tokens
        for found, expected in zip(steps, theirs, strict=True):
            for name in (
                "kl",
                "clip_ratio/low_mean",
                "clip_ratio/high_mean",
                "clip_ratio/region_mean",
            ):
                assert found["logged"][name] == pytest.approx(
                    expected["logged"][name], rel=1e-4, abs=1e-9
                ), name


@pytest.mark.e2e  # one at a time, for its memory
@pytest.mark.weekly  # the tiny model's show the same, but for the size of the sums
@pytest.mark.timeout(3600)
def test_the_same_with_a_language_model(smollm2, request, table):
    """SmolLM2-135M: logits of a vocabulary of 49,152, half of a gigabyte of gradients."""
    case = Case("dapo", 0.04, micro_batches=2)
    # A right completion and a wrong one, and a right one and one without an end.
    groups = [group[:2] for group in TEXTS[:2]]
    sampled = {
        "swift": "--model_type llama --template chatml",
        "steps": 2,
        "noise": 0.0005,
    }  # more, and k3 passes 10
    with TemporaryDirectory() as folder:
        ours = Ours(request.config.rootpath, smollm2, groups, **sampled)
        steps = ours.train(case)
        for name, run in PEERS.items():  # one after the other, for their memory
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                place = Path(folder, name)
                found = result(name, case, place, pool.submit(run, [case], ours.sampled, place))
            apart = [differences(*step, ours.texts) for step in zip(steps, found, strict=True)]
            for number, values in enumerate(apart):
                table.append(
                    (name, f"SmolLM2, {case}", number, "", *(f"{value:.1e}" for value in values))
                )
                for (measure, tolerance), value in zip(TOLERANCES.items(), values, strict=True):
                    assert value <= 5 * tolerance, (
                        name,
                        number,
                        measure,
                    )  # sums of 150 times as many terms
