"""What a training reaches, arm by arm and seed by seed: success on held-out tasks, before and
after.

    outcome     The quickstart's training: the real rollout server and two ZeRO-3 ranks. It also
                writes FOLDER/curves.png.
    gate        external_length at -0.01 a token, so that a trial costs more than it finds, with
                and without the gate.
    curriculum  Six levels of rows, drawn by the curriculum or, as a mixture, in a random order.
    smollm2     A language model after its cold start (--start FOLDER, from scripts/cold_start.sh),
                and two controls: a random reward and that of the form alone. Server and two ZeRO-3
                ranks, 18 GiB, two pictures.

All but `smollm2` train the tiny model; `gate` and `curriculum` do it with TRL. The models of one
experiment are evaluated on the same held-out tasks with equally many completions. Where pass@k rises
for a large k, the model has learnt something. Where only pass@1 rises, RL has made likely what was
possible before (Yue et al. 2025, arXiv 2504.13837).

Usage: PYTHONPATH=plugin python tests/benchmarks/bench_training.py EXPERIMENT --folder FOLDER
           [--seeds 0 1 2] [--rows N] [--start FOLDER] [flags of the training]
To see it work: --max_steps 2 --seeds 0 --rows 12

Prints a table and, last, one line of JSON. Runs and evaluations that are in the folder are kept, not
made again. `outcome` exits with 1 if a seed misses a success of 0.80 or a format of 0.95.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from swift_rlvr.evaluation.compare import in_words, paired
from swift_rlvr.runs.folder import checkpoints
from swift_rlvr.runs.records import Record, read_records
from swift_rlvr.runs.statistics import by_row
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.jsonl import read_json, read_jsonl

ROOT = Path(__file__).resolve().parents[2]
GOALS = {"success": 0.80, "format": 0.95}  # of every seed of `outcome`
WINDOW = 5  # steps over which a curve is averaged
DATASETS = "countdown:datasets/countdown"
TRL = "scripts/configs/countdown_trl_cpu.yaml"
GATE_STEPS, CURRICULUM_STEPS = ("--max_steps 30 --save_steps 30", "--max_steps 40 --save_steps 40")
OUTCOME = "--reward_funcs external_countdown external_format"
LENGTH = f"{OUTCOME} external_length EXTERNAL_LENGTH_UNIT=tokens EXTERNAL_LENGTH_SCALE=-0.01"
LENGTH += " EXTERNAL_LENGTH_MAX_LENGTH=320"
GATED = f"{LENGTH} EXTERNAL_LENGTH_GATE=outcome EXTERNAL_LENGTH_ACCURACY=external_countdown"


@dataclass(frozen=True)
class Experiment:
    train: str  # words of `swift-rlvr train`
    arms: dict[str, str]  # name -> more of them
    rows: str  # held-out ones
    count: int
    samples: int
    length: int = 320  # tokens of a completion


EXPERIMENTS = {
    "outcome": Experiment("tiny", {"trained": ""}, f"{DATASETS}/tiny_test.jsonl", 400, 16, 512),
    "gate": Experiment(
        f"{TRL} {GATE_STEPS}",
        {"none": OUTCOME, "length": LENGTH, "length, gated": GATED},
        f"{DATASETS}/tiny_test.jsonl",
        400,
        1,
    ),
    "curriculum": Experiment(
        f"{TRL} {CURRICULUM_STEPS} {OUTCOME} --dataset {DATASETS}/tiny_levels_train.jsonl",
        {"mixture": "", "curriculum": "--curriculum true"},
        f"{DATASETS}/tiny_levels_test.jsonl",
        420,
        4,
    ),
    "smollm2": Experiment(
        "scripts/configs/smollm2_cpu.yaml",
        {
            "verifier": "",
            "random": "--reward_funcs external_random external_format",
            "format": "--reward_funcs external_format",
        },
        "reasoning_gym:chain_sum?min_terms=2&max_terms=3&min_digits=1&max_digits=1:test",
        400,
        1,
        64,
    ),
}
LOGGED = {"in training": "success", "no spread": "frac_reward_zero_std"}


def swift_rlvr(*words: object) -> None:
    variables = [str(word) for word in words if str(word).startswith("EXTERNAL_")]
    command = [
        sys.executable,
        "-m",
        "swift_rlvr.cli",
        *(word for word in map(str, words) if word not in variables),
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "plugin")}
    environment |= dict(variable.split("=", 1) for variable in variables)
    subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL)


def trained(run: Path, words: list[str], seed: int) -> Path:
    """The last checkpoint of a run, which is made where it is not there or was interrupted."""
    if not (run / "minutes.json").is_file():
        shutil.rmtree(run, ignore_errors=True)
        start = time.monotonic()
        seeds = ["--seed", seed, "--data_seed", seed]
        swift_rlvr("train", *words, *seeds, "--output_dir", run)
        (run / "minutes.json").write_text(json.dumps({"minutes": (time.monotonic() - start) / 60}))
    return checkpoints(run)[-1]


def evaluated(
    model: Path, out: Path, experiment: Experiment, rows: int
) -> tuple[dict, list[Record]]:
    """The summary and the graded completions of the held-out rows."""
    if not (out / "summary.json").is_file():
        flags = [
            "--num_generations",
            experiment.samples,
            "--max_completion_length",
            experiment.length,
            "--batch_size",
            400,
        ]
        swift_rlvr(
            "evaluate", model, "--dataset", f"{experiment.rows}#{rows}", *flags, "--out", out
        )
    return read_json(out / "summary.json"), list(read_records(out / "records.jsonl"))


def by_level(records: list[Record]) -> dict[int, float]:
    """Success of the rows of each level, where they have one."""
    of_file = [
        row for _, row in read_jsonl(ROOT / EXPERIMENTS["curriculum"].rows.partition(":")[2])
    ]
    levels = defaultdict(list)
    for index, right in by_row(records).items():
        levels[of_file[index]["level"]].append(sum(right) / len(right))
    return {level: statistics.mean(levels[level]) for level in sorted(levels)}


def logged(run: Path) -> dict[str, float]:
    """Means over the steps of a run, and the minutes of the whole launch."""
    steps = [step for _, step in read_jsonl(run / "logging.jsonl") if "reward" in step]
    means = {
        name: statistics.mean(step.get(key, 0.0) for step in steps) for name, key in LOGGED.items()
    }
    return means | read_json(run / "minutes.json")


PANELS = (
    ("success", "Success", "share of completions"),
    ("format", "Format", "share of completions"),
    ("completions/mean_length", "Completion length", "tokens"),
)


def draw(runs: list[Path], path: Path, panels: Sequence[tuple[str, str, str]] = PANELS) -> None:
    """Values over the steps, a line for each run. panels: what is logged, title and unit of
    each.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(panels), figsize=(12, 3.4), layout="constrained")
    for axis, (key, title, unit) in zip(axes, panels, strict=True):
        for run in runs:
            values = [
                row[key] for _, row in read_jsonl(run / "logging.jsonl") if key in row
            ]  # no success: a control
            means = [
                statistics.mean(values[max(0, end - WINDOW) : end])
                for end in range(1, len(values) + 1)
            ]
            if means:
                name = run.name.replace("trained_", "seed ").replace("_", " ")
                # not clipped: a format of 1 lies on the frame
                axis.plot(range(1, len(means) + 1), means, label=name, clip_on=False)
        axis.set(title=title, xlabel="training step", ylabel=unit, ylim=(0, None))
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=120)


def draw_held_out(lines: list[dict], path: Path) -> None:
    """Success on the held-out rows with its interval, for each line of the table: `arm`, `success`
    and `interval`.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(10, 0.7 + 0.35 * len(lines)), layout="constrained")
    for place, line in enumerate(reversed(lines)):
        (low, high), success = line["interval"], line["success"]
        axis.errorbar(
            success, place, xerr=[[success - low], [high - success]], fmt="o", capsize=4, color="C0"
        )
        axis.annotate(
            f"{success:.3f}",
            (success, place),
            xytext=(0, 5),
            textcoords="offset points",
            ha="center",
        )
    axis.set(
        yticks=range(len(lines)),
        yticklabels=[line["arm"] for line in reversed(lines)],
        xlim=(-0.02, 0.8),
    )
    axis.set(xlabel="success on 400 held-out rows, 95% interval", ylim=(-0.5, len(lines) - 0.3))
    axis.grid(alpha=0.3)
    figure.savefig(path, dpi=100)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", type=int)
    parser.add_argument(
        "--start", type=Path, default=TINY_MODEL, help="the model before the training"
    )
    options, flags = parser.parse_known_args()
    experiment, folder, start = (
        EXPERIMENTS[options.experiment],
        options.folder.resolve(),
        options.start.resolve(),
    )
    runs: list[tuple[str, str, Path | None]] = [("before", "", None)]
    runs += [
        (arm, str(seed), folder / f"{arm.replace(', ', '_')}_{seed}")
        for seed in options.seeds
        for arm in experiment.arms
    ]
    lines = []
    pooled: defaultdict[str, list] = defaultdict(list)
    for arm, seed, run in runs:
        model = (
            trained(
                run,
                [
                    *experiment.train.split(),
                    "--model",
                    str(start),
                    *experiment.arms[arm].split(),
                    *flags,
                ],
                int(seed),
            )
            if run
            else start
        )
        out = (run or folder / "before") / "evaluation"
        summary, records = evaluated(model, out, experiment, options.rows or experiment.count)
        pooled[arm] += records
        passes = {f"pass@{k}": share for k, share in summary["pass_at_k"].items() if k != "1"}
        figures = passes | {"format": summary["format"], "tokens": summary["mean_tokens"]}
        if options.experiment == "curriculum":
            figures |= {f"level {level}": share for level, share in by_level(records).items()}
        figures |= logged(run) if run else {}
        lines.append(
            {
                "arm": arm,
                "seed": seed,
                "success": summary["success"],
                "interval": summary["success_interval"],
                **figures,
            }
        )
        low, high = lines[-1]["interval"]
        shown = ", ".join(f"{name} {value:.3f}" for name, value in figures.items())
        print(
            f"{arm:14} {seed:>2}  {summary['success']:.3f} ({low:.3f} to {high:.3f})  {shown}",
            flush=True,
        )
    first, *others = experiment.arms
    compared = {arm: paired(pooled[first], pooled[arm]) for arm in others}
    for arm, comparison in compared.items():
        shown = "nothing to compare" if comparison is None else in_words(comparison)
        print(f"{arm} beside {first}, over all seeds: {shown}")
    missed = []
    if options.experiment in ("outcome", "smollm2"):
        draw([run for _, _, run in runs if run], folder / "curves.png")
    if options.experiment == "smollm2":
        draw_held_out(lines, folder / "held_out.png")
    if options.experiment == "outcome":
        for line in lines[1:]:  # the first is the model before the training
            for name, goal in GOALS.items():
                if line[name] < goal:
                    text = f"seed {line['seed']}: {name} {line[name]:.3f}, expected at least {goal}"
                    missed.append(text)
    print(
        json.dumps(
            {"benchmark": options.experiment, "lines": lines, "paired": compared, "missed": missed}
        )
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
