"""GRPO from scratch beside TRL's GRPOTrainer: completions trained a second, where the time goes,
and peak memory.

    PYTHONPATH=plugin python tests/benchmarks/bench_grpo.py            # the comparison
    PYTHONPATH=plugin python tests/benchmarks/bench_grpo.py --memory   # peak memory over batch and
    micro-batch

Each trainer runs in a process of its own, one after the other, on the tiny model and Countdown
tasks, float32 on the CPU, with the same prompts a step, rewards, optimizer and settings, in rounds.
"natural" is the real job: completions end where the model ends them. "fixed" gives all of them
exactly the same length: the end-of-sequence token is one that the model never writes. Prints a
table, and one line of JSON last.
"""

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMPLETIONS, GENERATIONS, STEPS = 64, 8, 5
LENGTHS = {"natural": 320, "fixed": 160}


def make_model(folder: Path) -> None:
    """The tiny model with an end-of-sequence token that it never writes."""
    from swift_rlvr.utils.files import TINY_MODEL
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, tokenizer = (
        AutoModelForCausalLM.from_pretrained(TINY_MODEL),
        AutoTokenizer.from_pretrained(TINY_MODEL),
    )
    unused = tokenizer.convert_ids_to_tokens(len(tokenizer) - 1)
    tokenizer.eos_token = unused
    model.generation_config.eos_token_id = model.config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def rows() -> list[dict]:
    from swift_rlvr.tasks.countdown import to_messages
    from swift_rlvr.utils.jsonl import read_jsonl

    tasks = [row for _, row in read_jsonl(ROOT / "datasets" / "countdown" / "tiny_train.jsonl")]
    return [{"messages": to_messages(row["nums"], row["target"]), **row} for row in tasks]


def rewards() -> list:
    from swift_rlvr.rewards import REWARDS

    return [REWARDS["external_countdown"](), REWARDS["external_format"]()]


def train_ours(job: dict) -> dict:
    import torch
    from rich.console import Console
    from swift_rlvr.grpo import GRPOSettings, GRPOTrainer
    from swift_rlvr.utils.jsonl import read_jsonl
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, reference = (
        AutoModelForCausalLM.from_pretrained(job["model"], dtype=torch.float32) for _ in range(2)
    )
    settings = GRPOSettings(
        num_generations=GENERATIONS,
        per_device_train_batch_size=job["micro_batch"],
        gradient_accumulation_steps=job["batch"] // job["micro_batch"],
        sampling_batch_size=job.get("sampling_batch", COMPLETIONS),
        max_steps=job["steps"],
        max_completion_length=job["length"],
        top_p=1.0,
        top_k=0,
        beta=0.04,
        learning_rate=1e-5,
        seed=job["seed"],
    )
    tokenizer = AutoTokenizer.from_pretrained(job["model"])
    trainer = GRPOTrainer(
        model,
        tokenizer,
        rewards(),
        rows(),
        settings,
        job["out"],
        reference=reference,
        console=Console(quiet=True),
    )
    ends = []
    update = trainer.update
    trainer.update = lambda batch: (update(batch), ends.append(time.perf_counter()))[0]
    trainer.train()
    logged = [row for _, row in read_jsonl(Path(job["out"]) / "logging.jsonl")][1:]
    parts = {
        "generation": statistics.mean(row["time/generate"] for row in logged),
        "scoring": statistics.mean(row["time/score"] for row in logged),
        "reference": statistics.mean(row["time/log_probs"] for row in logged),
        "gradient and update": statistics.mean(row["time/train"] for row in logged),
    }
    tokens = statistics.mean(row["completions/mean_length"] for row in logged)
    return {"step": (ends[-1] - ends[0]) / (len(ends) - 1), "tokens": tokens, "parts": parts}


def train_trl(job: dict) -> dict:
    import torch
    from transformers import AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    from datasets import Dataset

    config = GRPOConfig(
        output_dir=job["out"],
        per_device_train_batch_size=job["micro_batch"],
        gradient_accumulation_steps=job["batch"] // job["micro_batch"],
        num_generations=GENERATIONS,
        max_completion_length=job["length"],
        max_steps=job["steps"],
        beta=0.04,
        loss_type="grpo",
        learning_rate=1e-5,
        gradient_checkpointing=False,
        logging_steps=1,
        report_to=[],
        use_cpu=True,
        bf16=False,
        save_strategy="no",
        disable_tqdm=True,
        seed=job["seed"],
    )
    dataset = Dataset.from_list([{"prompt": row.pop("messages"), **row} for row in rows()])
    trainer = GRPOTrainer(
        job["model"],
        reward_funcs=rewards(),
        train_dataset=dataset,
        args=config,
        processing_class=AutoTokenizer.from_pretrained(job["model"], padding_side="left"),
    )
    times: dict[str, list[float]] = {}

    def timed(name: str, attribute: str) -> None:
        inner = getattr(trainer, attribute)

        def call(*args, **kwargs):
            start = time.perf_counter()
            try:
                return inner(*args, **kwargs)
            finally:
                times.setdefault(name, []).append(time.perf_counter() - start)

        setattr(trainer, attribute, call)

    timed("generation", "_generate")
    timed("scoring", "_calculate_rewards")
    log_probs = trainer._get_per_token_logps_and_entropies

    def without_gradient(*args, **kwargs):
        start = time.perf_counter()
        result = log_probs(*args, **kwargs)
        if not torch.is_grad_enabled():
            times.setdefault("reference", []).append(time.perf_counter() - start)
        return result

    trainer._get_per_token_logps_and_entropies = without_gradient
    ends = []

    class Clock(TrainerCallback):
        def on_step_end(self, *args, **kwargs):
            ends.append(time.perf_counter())

    trainer.add_callback(Clock())
    trainer.train()
    logged = [row for row in trainer.state.log_history if "reward" in row][1:]
    step = (ends[-1] - ends[0]) / (len(ends) - 1)
    parts = {name: sum(spent[1:]) / (len(ends) - 1) for name, spent in times.items()}
    parts["gradient and update"] = step - sum(parts.values())
    return {
        "step": step,
        "tokens": statistics.mean(row["completions/mean_length"] for row in logged),
        "parts": parts,
    }


def in_process(job: dict) -> dict:
    """Run one job in a fresh process; adds its peak memory in MB."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--job", json.dumps({**job, "out": folder})]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{job} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def compare(rounds: int, models: dict[str, str]) -> dict:
    jobs = {
        "ours": ("ours", 16),
        "TRL, 16 at a time": ("trl", 16),
        "TRL, all 64 at once": ("trl", 64),
    }
    result = {}
    for kind, length in LENGTHS.items():
        found: dict[str, list[dict]] = {name: [] for name in jobs}
        for number in range(rounds):
            for name, (trainer, micro_batch) in jobs.items():
                job = {
                    "trainer": trainer,
                    "model": models[kind],
                    "batch": COMPLETIONS,
                    "micro_batch": micro_batch,
                    "length": length,
                    "steps": STEPS + 1,
                    "seed": number,
                }
                found[name].append(in_process(job))
                print(f"  {kind}, {name}: {found[name][-1]['step']:.2f} s a step", file=sys.stderr)
        print(
            f"\n{kind}: {COMPLETIONS} completions a step of at most {length} tokens; medians of {rounds} runs"
        )
        print(f"{'':22}{'compl./s':>9}{'tokens':>8}{'MB':>6}   seconds a step")
        result[kind] = {}
        for name, runs in found.items():
            step = statistics.median(run["step"] for run in runs)
            tokens, peak = (statistics.mean(run[key] for run in runs) for key in ("tokens", "peak"))
            parts = {
                key: statistics.median(run["parts"][key] for run in runs)
                for key in runs[0]["parts"]
            }
            output = ", ".join(
                f"{key} {value:.2f}"
                for key, value in sorted(parts.items(), key=lambda item: -item[1])
            )
            print(
                f"{name:22}{COMPLETIONS / step:9.1f}{tokens:8.0f}{peak:6.0f}   {step:.2f}: {output}"
            )
            result[kind][name] = {
                "completions_per_second": COMPLETIONS / step,
                "peak_mb": peak,
                "parts": parts,
            }
        best = max(
            value["completions_per_second"]
            for name, value in result[kind].items()
            if name != "ours"
        )
        result[kind]["ratio"] = result[kind]["ours"]["completions_per_second"] / best
        print(f"ours beside the faster TRL: {result[kind]['ratio']:.2f} times")
    return result


def memory(models: dict[str, str]) -> dict:
    result = {}
    print(f"{'completions a step':>20}{'micro-batch':>13}{'peak MB':>9}")
    for batch, micro_batch in ((32, 8), (128, 8), (256, 8), (128, 32), (128, 128)):
        job = {
            "trainer": "ours",
            "model": models["fixed"],
            "batch": batch,
            "micro_batch": micro_batch,
            "length": 160,
            "sampling_batch": 32,
            "steps": 2,
            "seed": 0,
        }
        result[f"{batch}/{micro_batch}"] = in_process(job)["peak"]
        print(f"{batch:20}{micro_batch:13}{result[f'{batch}/{micro_batch}']:9.0f}")
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        job = json.loads(given.job)
        found = {"ours": train_ours, "trl": train_trl}[job["trainer"]](job)
        print(
            json.dumps({**found, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024})
        )
        return
    from swift_rlvr.utils.files import TINY_MODEL

    folder = Path(tempfile.mkdtemp())
    try:
        make_model(folder)
        models = {"natural": str(TINY_MODEL), "fixed": str(folder)}
        result = memory(models) if given.memory else compare(given.rounds, models)
    finally:
        shutil.rmtree(folder)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
