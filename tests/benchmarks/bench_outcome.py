"""What the quickstart's training reaches, over several seeds: success, pass@k, format and length, before and after.

Each seed is a run of its own: the real rollout server, two ZeRO-3 ranks, the recipe of `scripts/quickstart.sh`. All
models write the same number of completions for the same held-out tasks. What pass@k gains where k is large was learnt;
what only pass@1 gains was likely enough before and was sharpened (Yue et al. 2025, arXiv 2504.13837).

Usage: PYTHONPATH=plugin python tests/benchmarks/bench_outcome.py --out FOLDER [--seeds 0 1 2] [flags of the training]
Prints a table, writes FOLDER/curves.png, and prints, last, one line of JSON. Exits 1 where the mean success of the
seeds stays below 0.75. A seed whose files are there is not run again.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from swift_rlvr.jsonl import read_json, read_jsonl
from swift_rlvr.tiny_model import WEIGHTS

ROOT = Path(__file__).resolve().parents[2]
GOAL, WINDOW = 0.75, 5
HELD_OUT = "datasets/countdown/tiny_test.jsonl"


def swift_rlvr(*words: object) -> None:
    subprocess.run([sys.executable, "-m", "swift_rlvr.cli", *map(str, words)], cwd=ROOT, check=True)


def evaluated(model: Path, out: Path, rows: int, samples: int) -> dict:
    """The summary of an evaluation, made where it is not there yet."""
    if not (out / "summary.json").is_file():
        flags = ["--num_generations", samples, "--batch_size", 400, "--max_completion_length", 320]
        swift_rlvr("evaluate", model, "--dataset", f"{HELD_OUT}#{rows}", *flags, "--out", out)
    return read_json(out / "summary.json")


def trained(folder: Path, seed: int, flags: list[str]) -> tuple[Path, float]:
    """The last checkpoint of a run and the seconds that the whole launch took."""
    if not (folder / "seconds.json").is_file():
        start = time.monotonic()
        swift_rlvr("train", "tiny", "--output_dir", folder / "run", "--seed", seed, "--data_seed", seed, *flags)
        (folder / "seconds.json").write_text(json.dumps({"seconds": time.monotonic() - start}))
    checkpoints = sorted((folder / "run").glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    return checkpoints[-1], read_json(folder / "seconds.json")["seconds"]


def draw(folders: list[Path], path: Path) -> None:
    """Success and length over the steps, a line for each seed, averaged over `WINDOW` steps."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = {
        "rewards/CountdownReward/mean": ("Success", "share of completions"),
        "completions/mean_length": ("Completion length", "tokens"),
    }
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
    for axis, (key, (title, unit)) in zip(axes, panels.items(), strict=True):
        for folder in folders:
            values = [row[key] for _, row in read_jsonl(folder / "run" / "logging.jsonl") if key in row]
            means = [
                sum(part) / len(part) for i in range(len(values)) if (part := values[max(0, i - WINDOW + 1) : i + 1])
            ]
            axis.plot(range(1, len(means) + 1), means, label=folder.name.replace("-", " "))
        axis.set(title=title, xlabel="training step", ylabel=unit, ylim=(0, None))
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--model", type=Path, default=WEIGHTS)
    arguments, flags = parser.parse_known_args()
    out = arguments.out.resolve()
    models = {"before": (arguments.model, None)}
    for seed in arguments.seeds:
        models[f"seed-{seed}"] = trained(out / f"seed-{seed}", seed, ["--model", str(arguments.model), *flags])
    results = {}
    largest = str(arguments.samples)
    print(f"{'':8} {'success':>24} {'pass@' + largest:>8} {'format':>7} {'tokens':>7} {'minutes':>8}")
    for name, (model, seconds) in models.items():
        figures = evaluated(model, out / name / "evaluation", arguments.rows, arguments.samples)
        interval = figures["success_interval"]
        results[name] = {key: figures[key] for key in ("success", "pass_at_k", "format", "mean_tokens")}
        results[name] |= {"interval": interval, "seconds": seconds}
        shown = f"{figures['success']:.3f} ({interval[0]:.3f} to {interval[1]:.3f})"
        minutes = f"{seconds / 60:8.1f}" if seconds else ""
        print(
            f"{name:8} {shown:>24} {figures['pass_at_k'][largest]:8.3f} {figures['format']:7.3f} "
            f"{figures['mean_tokens']:7.0f} {minutes}"
        )
    draw([out / name for name in models if name != "before"], out / "curves.png")
    mean = sum(results[name]["success"] for name in models if name != "before") / len(arguments.seeds)
    missed = [f"mean success {mean:.3f}, expected at least {GOAL}"] if mean < GOAL else []
    print(json.dumps({"mean_success": mean, "models": results, "missed": missed}))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
