"""Does the second turn help? The tiny model before a training, after one with two turns, and after one with one turn.

Each model answers held-out tasks, and after a wrong answer once more with the verifier's feedback (`swift-rlvr evaluate
--max_turns 2`). Beside it stands pass@2 of the same first answers, two blind attempts. The last line asks whether two
turns of the model trained with them beat two blind attempts of the model trained with one.

With --taught STEPS there is a fourth model: the first one after a short supervised training on conversations made by a
script, whose second turn goes on with the search where the first one gave it up. It shows what feedback is worth to a
model that has learned to use it; nothing of the package is made from it.

The trainings have the same seed, dataset, completions and steps: TRL's trainer with `--max_turns 2`, and ours with one.

Usage: PYTHONPATH=plugin python tests/benchmarks/bench_turns.py --out FOLDER [--steps 60] [--taught 150]
Prints a table and, last, one line of JSON. A training or evaluation whose files are there is not run again.
"""

import argparse
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from swift_rlvr.environments import FeedbackEnvironment
from swift_rlvr.evaluation.paired import in_words, paired_shares
from swift_rlvr.jsonl import read_json, read_jsonl
from swift_rlvr.models import load_tokenizer
from swift_rlvr.rewards import REWARDS
from swift_rlvr.runs.statistics import by_task, pass_at_k
from swift_rlvr.tasks.countdown import to_messages
from swift_rlvr.tiny_model import WEIGHTS
from swift_rlvr.tiny_model.traces import compare, trials

ROOT = Path(__file__).resolve().parents[2]
TURNS = 2
SAME = """--dataset countdown:datasets/countdown/tiny_train.jsonl --reward_funcs external_countdown format
    --num_generations 8 --max_completion_length 320 --temperature 1.0 --learning_rate 3e-4 --lr_scheduler_type cosine
    --weight_decay 0.01 --beta 0.001 --seed 0 --save_steps 20"""  # 64 completions a step
TRAININGS = {
    "two turns": f"""--trainer trl --max_turns {TURNS} --per_device_train_batch_size 64 --gradient_accumulation_steps 1
        --loss_type grpo --gradient_checkpointing false --logging_steps 1 --report_to none""",
    "one turn": """--trainer scratch --per_device_train_batch_size 16 --gradient_accumulation_steps 4
        --adam_beta2 0.999""",
}


GIVE_UP = 0.1  # after each miss of the taught conversations


def swift_rlvr(*words: object) -> None:
    subprocess.run([sys.executable, "-m", "swift_rlvr.cli", *map(str, words)], cwd=ROOT, check=True)


def trained(folder: Path, steps: int, step: int, flags: str) -> Path:
    checkpoint = folder / f"checkpoint-{step}"
    if not checkpoint.is_dir():
        swift_rlvr(
            "train", "--model", WEIGHTS, *f"{SAME} {flags}".split(), "--max_steps", steps, "--output_dir", folder
        )
    return checkpoint


def taught_conversation(rng: random.Random, tokenizer: Any, row: dict) -> tuple[list[int], list[int]]:
    """Token ids, and labels that are -100 outside the answers. The search goes on from turn to turn in one order."""
    pool = trials(tuple(sorted(row["nums"])))
    place = rng.randrange(len(pool))
    environment = FeedbackEnvironment(REWARDS["countdown"](), TURNS)
    environment.reset(row)
    read = tokenizer.apply_chat_template(to_messages(**row), add_generation_prompt=True, return_dict=False)
    ids, labels = list(read), [-100] * len(read)
    while True:
        lines, value = [], None
        while not lines or (value != row["target"] and rng.random() >= GIVE_UP and len(lines) < 20):
            line, expression, value = pool[place % len(pool)]
            lines.append(line + compare(value, row["target"]))
            place += 1
        text = "<think>\n" + "\n".join(lines) + f"\n</think>\n<answer>{expression}</answer>"
        answer = tokenizer.encode(text) + [tokenizer.eos_token_id]
        ids, labels = ids + answer, labels + answer
        feedback = environment.step(text).feedback
        if feedback is None:
            return ids, labels
        between = tokenizer.encode(f"\n<|im_start|>user\n{feedback}<|im_end|>\n<|im_start|>assistant\n")
        ids, labels = ids + between, labels + [-100] * len(between)


def taught(folder: Path, steps: int, batch: int = 32, rate: float = 5e-4) -> Path:
    """The shipped model after `steps` of supervised training on taught conversations."""
    import torch
    from transformers import AutoModelForCausalLM

    if (folder / "model.safetensors").is_file():
        return folder
    torch.manual_seed(0)
    torch.set_num_threads(1)
    rng, tokenizer = random.Random(0), load_tokenizer(str(WEIGHTS))
    rows = [
        {"nums": row["nums"], "target": row["target"]}
        for _, row in read_jsonl(ROOT / "datasets" / "countdown" / "tiny_train.jsonl")
    ]
    model = AutoModelForCausalLM.from_pretrained(WEIGHTS, dtype=torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for step in range(steps):
        talks = [taught_conversation(rng, tokenizer, row) for row in rng.choices(rows, k=batch)]
        longest = max(len(ids) for ids, _ in talks)
        ids = torch.tensor([ids + [tokenizer.pad_token_id] * (longest - len(ids)) for ids, _ in talks])
        labels = torch.tensor([labels + [-100] * (longest - len(labels)) for _, labels in talks])
        loss = model(ids, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if (step + 1) % 10 == 0:
            print(f"taught: step {step + 1}/{steps} loss {loss.item():.4f}", flush=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def evaluated(model: Path, out: Path, rows: int, samples: int) -> dict:
    if not (out / "summary.json").is_file():
        flags = ["--num_generations", samples, "--max_turns", TURNS, "--batch_size", 400]
        data = f"datasets/countdown/tiny_test.jsonl#{rows}"
        swift_rlvr("evaluate", model, "--dataset", data, *flags, "--max_completion_length", 320, "--out", out)
    return read_json(out / "summary.json")


def right(folder: Path) -> dict[int, list[bool]]:
    return by_task([record for _, record in read_jsonl(folder / "records.jsonl")])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument(
        "--checkpoint", type=int, help="the step that is evaluated, of those saved; by default the last"
    )
    parser.add_argument("--taught", type=int, default=0)
    parser.add_argument("--rows", type=int, default=400)
    parser.add_argument("--samples", type=int, default=4)
    arguments = parser.parse_args()
    out, results = arguments.out.resolve(), {}
    models = {"before": WEIGHTS}
    for name, flags in TRAININGS.items():
        folder = out / name.replace(" ", "_")
        models[name] = trained(folder, arguments.steps, arguments.checkpoint or arguments.steps, flags)
    if arguments.taught:
        models["taught"] = taught(out / "taught", arguments.taught)
    folders = {name: out / "evaluation" / name.replace(" ", "_") for name in models}
    print(f"{'':10} {'one attempt':>24} {'two blind':>24} {'two turns':>24} {'mended':>7} {'blind':>6} {'turns':>6}")
    for name, model in models.items():
        summary = evaluated(model, folders[name], arguments.rows, arguments.samples)
        talks = summary["turns"]
        shown = [
            (summary["success"], summary["success_interval"]),
            (talks["blind"], talks["blind_interval"]),
            (talks["success"], talks["success_interval"]),
        ]
        cells = " ".join(f"{value:.3f} ({low:.3f} to {high:.3f})".rjust(24) for value, (low, high) in shown)
        print(f"{name:10} {cells} {talks['mended']:7.3f} {talks['mended_blind']:6.3f} {talks['mean_turns']:6.2f}")
        print(f"{'':10} two turns beside two blind attempts: {in_words(talks['paired'])}")
        results[name] = {"one": shown[0], "blind": shown[1], "turns": shown[2], "paired": talks["paired"]}
    blind = {task: pass_at_k(len(each), sum(each), TURNS) for task, each in right(folders["one turn"]).items()}
    turns = {task: sum(each) / len(each) for task, each in right(folders["two turns"] / "turns").items()}
    across = paired_shares(blind, turns)
    assert across is not None
    print(f"trained with two turns and asked so, beside trained with one and two blind attempts: {in_words(across)}")
    print(json.dumps({"models": results, "across": across, "missed": []}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
