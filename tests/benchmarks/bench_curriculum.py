"""What difficulty that follows the model gains over a fixed mixture of the same levels: the tiny model, three seeds.

    PYTHONPATH=plugin python tests/benchmarks/bench_curriculum.py --folder FOLDER
    PYTHONPATH=plugin python tests/benchmarks/bench_curriculum.py --steps 2 --seeds 0 --rows 12    # only to see it work

Both arms are `swift-rlvr train --trainer scratch` on the six levels of datasets/countdown/tiny_levels_train.jsonl, with
as many rows of each, as many steps and completions, and the same seeds; the mixture draws all rows in a random order.
`swift-rlvr evaluate` samples four completions of held-out tasks, as many of each level. The comparison is task by task,
over the completions of all seeds. Prints a table and, last, one line of JSON; with --folder the runs stay there, and
those that are there are not made again.
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

from swift_rlvr.evaluation.paired import in_words, paired
from swift_rlvr.jsonl import read_jsonl
from swift_rlvr.runs.statistics import bootstrap, by_row
from swift_rlvr.tiny_model import WEIGHTS

ROOT = Path(__file__).resolve().parents[2]
TRAIN, TEST = (f"datasets/countdown/tiny_levels_{split}.jsonl" for split in ("train", "test"))
ARMS = {"mixture": [], "curriculum": ["--curriculum", "true"]}
SAMPLES = 4
Records = list[dict]


def swift_rlvr(*words: object) -> None:
    command = [sys.executable, "-m", "swift_rlvr.cli", *map(str, words)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "plugin")}
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)


def train(folder: Path, settings: list[str], seed: int, steps: int) -> None:
    swift_rlvr(
        "train", "scripts/configs/countdown_scratch_cpu.yaml", "--dataset", f"countdown:{TRAIN}", "--seed", seed,
        "--max_steps", steps, "--save_steps", steps, "--output_dir", folder, *settings,
    )  # fmt: skip


def evaluated(model: Path, folder: Path, rows: int) -> Records:
    """The graded completions of the held-out tasks, made where they are not there yet."""
    if not (folder / "summary.json").is_file():
        words = ["evaluate", model, "--dataset", f"countdown:{TEST}#{rows}", "--seed", 0, "--num_generations", SAMPLES]
        swift_rlvr(*words, "--max_completion_length", 320, "--engine", "transformers", "--out", folder)
    levels = [row["level"] for _, row in read_jsonl(ROOT / TEST)]
    return [{**record, "level": levels[record["index"]]} for _, record in read_jsonl(folder / "records.jsonl")]


def success(records: Records) -> list[float]:
    """The share of right completions of each task."""
    return [sum(right) / len(right) for right in by_row(records).values()]


def of_training(run: Path) -> dict[str, float]:
    """Means over the steps: success, groups without spread in the reward, tokens of a completion; seconds in all."""
    steps = [step for _, step in read_jsonl(run / "logging.jsonl") if "reward" in step]
    names = {"success": "rewards/CountdownReward/mean", "no_spread": "frac_reward_zero_std",
             "tokens": "completions/mean_length"}  # fmt: skip
    means = {name: statistics.mean(step[key] for step in steps) for name, key in names.items()}
    times = ("time/generate", "time/score", "time/log_probs", "time/train")
    return means | {"seconds": sum(step.get(time, 0.0) for step in steps for time in times)}


def show(results: dict[str, dict[str, Records]], runs: dict[str, list[dict[str, float]]]) -> dict[str, dict]:
    """Print success of all and by level, with 95% intervals over the tasks, and what the trainings were like."""
    levels = sorted({record["level"] for records in results["before"].values() for record in records})
    print(f"{'':11} {'seed':>4}  {'held-out success':23}" + "".join(f"  level {level}" for level in levels))
    summary: dict[str, dict] = {}
    for arm, seeds in results.items():
        pooled = [record for records in seeds.values() for record in records]
        for seed, records in [*seeds.items(), *([("all", pooled)] if len(seeds) > 1 else [])]:
            low, high = bootstrap(success(records))
            mean = statistics.mean(success(records))
            each = {level: statistics.mean(success([r for r in records if r["level"] == level])) for level in levels}
            shown = "".join(f"  {value:7.3f}" for value in each.values())
            print(f"{arm:11} {seed!s:>4}  {mean:.3f} ({low:.3f} to {high:.3f}){shown}")
            summary.setdefault(arm, {})[seed] = {"success": mean, "interval": [low, high], "levels": each}
    print(f"\n{'training':11} {'success':>7} {'no spread':>9} {'tokens':>6} {'seconds':>7}")
    for arm, each in runs.items():
        means = {name: statistics.mean(run[name] for run in each) for name in each[0]}
        print(
            f"{arm:11} {means['success']:7.3f} {means['no_spread']:9.3f} {means['tokens']:6.1f} {means['seconds']:7.0f}"
        )
        summary[arm]["training"] = means
    return summary


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", type=int, default=420)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder, started = (options.folder or Path(scratch)).resolve(), time.monotonic()
        results: dict[str, dict[str, Records]] = {"before": {"": evaluated(WEIGHTS, folder / "before", options.rows)}}
        trainings: dict[str, list[dict[str, float]]] = {}
        for seed in options.seeds:
            for arm, settings in ARMS.items():
                run = folder / f"{arm}_{seed}"
                model = run / f"checkpoint-{options.steps}"
                if not model.is_dir():
                    shutil.rmtree(run, ignore_errors=True)  # one that was interrupted
                    train(run, settings, seed, options.steps)
                results.setdefault(arm, {})[str(seed)] = evaluated(model, run / "evaluation", options.rows)
                trainings.setdefault(arm, []).append(of_training(run))
                print(arm, seed, f"{time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    summary = show(results, trainings)
    pooled = {arm: [record for records in results[arm].values() for record in records] for arm in ARMS}
    comparison = paired(pooled["mixture"], pooled["curriculum"])
    assert comparison is not None  # the same tasks
    print("\ncurriculum beside mixture:", in_words(comparison))
    print(json.dumps({"benchmark": "curriculum", "steps": options.steps, "arms": summary, "paired": comparison}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
