"""What it costs a training step to log why completions got their rewards (`--callbacks reward_reasons`).

Two processes over gloo, as the two ranks of a run, each with 32 completions of `bench_countdown`'s corpus a step and
five rewards. Measured for each step: grading without a log, grading with one, and what the callback does at the end
of the step: gathering from all ranks, the metrics, the record of each completion in records.jsonl. The callback gets a
stand-in for the trainer that has what it uses: the rewards, the metrics and the accelerator.

Usage: PYTHONPATH=plugin python tests/benchmarks/bench_reasons.py [--steps 200] [--step-seconds 5]
Prints a table and, last, one line of JSON. `--step-seconds` is the length of a training step to compare with; 5 s is
that of quickstart.sh on two CPU cores. Exits 1 where it costs more than 1% of it.
"""

import argparse
import json
import multiprocessing
import os
import socket
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

from bench_countdown import make_corpus
from swift_rlvr.rewards import REWARDS

NAMES = ["external_countdown", "external_format", "external_tag_count", "external_reasoning_steps", "external_length"]
PER_RANK, LIMIT = 32, 0.01


def measure(rank: int, port: int, steps: int, folder: str, results) -> None:
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank), MASTER_ADDR="127.0.0.1")
    os.environ.update(MASTER_PORT=str(port), ACCELERATE_USE_CPU="true", CUDA_VISIBLE_DEVICES="")
    import torch
    from accelerate import Accelerator
    from swift_rlvr.training.reason_callback import ReasonCallback

    completions, nums, target, _ = make_corpus(rank, 0.5, tasks=steps * PER_RANK // 8)
    rewards = [REWARDS[name](warn_after=0) for name in NAMES]
    recorded = {reward.__name__: [0.0] * PER_RANK * 2 for reward in rewards}
    trainer = SimpleNamespace(
        reward_funcs=rewards, _metrics={"train": defaultdict(list)}, accelerator=Accelerator(cpu=True),
        reward_func_names=list(recorded), reward_weights=torch.ones(len(rewards)), num_generations=8,
        _logs={"rewards": recorded},
    )  # fmt: skip
    callback = ReasonCallback(SimpleNamespace(output_dir=folder), trainer)
    times = {"grading": [], "grading with the log": [], "callback": []}
    for step in range(steps):
        part = slice(step * PER_RANK, (step + 1) * PER_RANK)
        for reward in rewards:
            reward.log = None
        start = time.perf_counter()
        plain = [reward(completions[part], nums=nums[part], target=target[part]) for reward in rewards]
        times["grading"].append(time.perf_counter() - start)
        callback.on_train_begin(None, SimpleNamespace(global_step=0, is_world_process_zero=rank == 0), None)
        start = time.perf_counter()
        logged = [reward(completions[part], nums=nums[part], target=target[part]) for reward in rewards]
        times["grading with the log"].append(time.perf_counter() - start)
        if plain != logged:
            raise AssertionError("the log changes the rewards")
        trainer.accelerator.wait_for_everyone()
        start = time.perf_counter()
        callback.on_step_end(None, SimpleNamespace(global_step=step), None)
        times["callback"].append(time.perf_counter() - start)
    results.put((rank, {name: statistics.median(values) for name, values in times.items()}))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--step-seconds", type=float, default=5.0)
    given = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=measure, args=(rank, port, given.steps, folder, results)) for rank in (0, 1)]
        for process in ranks:
            process.start()
        found = dict(results.get(timeout=300) for _ in ranks)
        for process in ranks:
            process.join()
        lines = sum(1 for _ in (Path(folder) / "records.jsonl").open())
    if lines != given.steps * PER_RANK * 2:
        raise AssertionError(f"{lines} lines for {given.steps * PER_RANK * 2} completions")
    print(f"{'median ms a step':<24}{'rank 0':>10}{'rank 1':>10}")
    for name in found[0]:
        print(f"{name:<24}{found[0][name] * 1000:>10.2f}{found[1][name] * 1000:>10.2f}")
    cost = max(each["grading with the log"] - each["grading"] + each["callback"] for each in found.values())
    share = cost / given.step_seconds
    print(f"cost of the log: {cost * 1000:.2f} ms, {share:.2%} of a step of {given.step_seconds:g} s")
    print(json.dumps({"benchmark": "reasons", "ms": found, "cost_ms": cost * 1000, "share": share}))
    return 1 if share > LIMIT else 0


if __name__ == "__main__":
    sys.exit(main())
