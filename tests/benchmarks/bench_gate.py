"""What a reward for short completions does to the outcome, with and without the gate: the tiny model, three seeds.

    PYTHONPATH=plugin python tests/benchmarks/bench_gate.py            # 9 trainings and evaluations, one after another
    PYTHONPATH=plugin python tests/benchmarks/bench_gate.py --steps 2 --seeds 0 --rows 16     # only to see it work

Each arm is `swift-rlvr train --trainer scratch` on Countdown, with the same seeds, and `swift-rlvr evaluate` on
held-out tasks. The shaping is external_length, -0.01 a token, with which a trial costs more than it finds. Prints a
table and, last, one line of JSON; with --folder the runs stay there, and those that are there are not made again.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from swift_rlvr.runs.statistics import wilson

ROOT = Path(__file__).parents[2]
LENGTH = ["external_length.unit=tokens", "external_length.scale=-0.01", "external_length.max_length=320"]
GATE = ["external_length.gate=outcome", "external_length.accuracy=external_countdown"]
ARMS: dict[str, list[str]] = {"none": [], "length": LENGTH, "length, gated": LENGTH + GATE}
GROUPS = ("frac_reward_zero_std", "groups/only_shaping")


def swift_rlvr(*words: str) -> None:
    command = [sys.executable, "-m", "swift_rlvr.cli", *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "plugin")}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)


def train(folder: Path, settings: list[str], seed: int, steps: int) -> None:
    rewards = ["external_countdown", "external_format", *(["external_length"] if settings else [])]
    swift_rlvr(
        "train", "scripts/configs/countdown_scratch_cpu.yaml", "--max_steps", str(steps), "--seed", str(seed),
        "--save_steps", str(steps), "--output_dir", str(folder), "--reward_funcs", *rewards,
        *(["--set", *settings] if settings else []),
    )  # fmt: skip


def evaluate(folder: Path, model: Path, rows: int) -> None:
    data = f"countdown:datasets/countdown/tiny_test.jsonl#{rows}"
    words = ["evaluate", str(model), "--dataset", data, "--seed", "0", "--max_completion_length", "320"]
    swift_rlvr(*words, "--engine", "transformers", "--out", str(folder))


def figures(run: Path) -> dict[str, float]:
    """Held-out figures, and what the training logged about its groups, as means over all steps."""
    records = [json.loads(line) for line in (run / "evaluation" / "records.jsonl").read_text().splitlines()]
    steps = [json.loads(line) for line in (run / "logging.jsonl").read_text().splitlines()]
    return {
        "right": sum(record["reward"] == 1.0 for record in records),
        "rows": len(records),
        "tokens": statistics.mean(record["tokens"] for record in records),
        **{name: statistics.mean(step[name] for step in steps) for name in GROUPS},
    }


def show(results: dict[str, dict[int, dict[str, float]]]) -> dict[str, dict]:
    """Print the table, with 95% intervals over the tasks and ranges over the seeds; returns what goes into the JSON."""
    print(f"{'shaping':14} {'seed':>4}  {'held-out success':23} {'tokens':>6} {'no spread':>9} {'only shaping':>12}")
    summary: dict[str, dict] = {}
    for name, runs in results.items():
        shares = [run["right"] / run["rows"] for run in runs.values()]
        means = {key: statistics.mean(run[key] for run in runs.values()) for key in ("tokens", *GROUPS)}
        lines = [(seed, share, wilson(share, int(run["rows"])), run)
                 for (seed, run), share in zip(runs.items(), shares, strict=True)]  # fmt: skip
        for seed, share, (low, high), run in [
            *lines, ("mean", statistics.mean(shares), (min(shares), max(shares)), means),
        ]:  # fmt: skip
            print(
                f"{name:14} {seed!s:>4}  {share:.3f} ({low:.3f} to {high:.3f})  {run['tokens']:6.1f} "
                f"{run[GROUPS[0]]:9.3f} {run[GROUPS[1]]:12.3f}"
            )
        summary[name] = {"success": dict(zip(runs, shares, strict=True)), **means}
    return summary


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder, started = options.folder or Path(scratch), time.monotonic()
        results: dict[str, dict[int, dict[str, float]]] = {name: {} for name in ARMS}
        for seed in options.seeds:
            for name, settings in ARMS.items():
                run = (folder / f"{name.replace(', ', '_')}_{seed}").resolve()
                if not (run / "evaluation" / "summary.json").is_file():
                    shutil.rmtree(run, ignore_errors=True)  # one that was interrupted
                    train(run, settings, seed, options.steps)
                    evaluate(run / "evaluation", run / f"checkpoint-{options.steps}", options.rows)
                results[name][seed] = figures(run)
                print(name, seed, f"{time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    print(json.dumps({"benchmark": "gate", "steps": options.steps, "arms": show(results)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
