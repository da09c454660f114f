"""The report on a training run: what it reads of ms-swift's files, what it refuses, and that it writes what it says."""

import json
import math
import random

import pytest
from swift_rlvr.errors import InputError
from swift_rlvr.evaluation.report import FORMATS, panels, read_completions, read_steps, smoothed, write_report
from swift_rlvr.evaluation.summary import compare, summarize
from swift_rlvr.rewards import REWARDS
from swift_rlvr.runs.folder import find_run


def logged_step(step, rng):
    """One line of logging.jsonl as ms-swift 4.6.0 writes it in a GRPO run, of a run that learns."""
    success = 0.25 + 0.35 / (1 + math.exp(-(step - 60) / 15)) + rng.gauss(0, 0.04)
    return {
        "loss": rng.gauss(0, 1e-4),
        "grad_norm": 0.5,
        "learning_rate": 5e-4,
        "completions/mean_length": 60 + step / 2 + rng.gauss(0, 6),
        "completions/min_length": 20.0,
        "completions/max_length": 200.0,
        "completions/clipped_ratio": 0.0,
        "reward": success + 0.97,
        "reward_std": 0.35 + rng.gauss(0, 0.03),
        "frac_reward_zero_std": max(0, 0.3 + rng.gauss(0, 0.05)),
        "rewards/CountdownReward/mean": success,
        "rewards/CountdownReward/std": 0.45,
        "rewards/Format/mean": min(1, 0.97 + rng.gauss(0, 0.01)),
        "rewards/Format/std": 0.1,
        "kl": step / 4000,
        "reasons/CountdownReward/correct": success,
        "reasons/CountdownReward/wrong_value": (1 - success) * 0.6,
        **({"reasons/CountdownReward/no_answer": (1 - success) * 0.4} if step > 20 else {}),
        "global_step/max_steps": f"{step}/120",
    }


@pytest.fixture
def run(tmp_path):
    """output_dir/v0-<time> with both logs, as ms-swift leaves it; a resume has logged steps 61 to 70 twice."""
    rng = random.Random(0)
    folder = tmp_path / "output" / "v0-20260101-120000"
    folder.mkdir(parents=True)
    lines = [logged_step(step, rng) for step in [*range(1, 71), *range(61, 121)]]
    lines.insert(50, {"eval_loss": 0.1, "eval_reward": 1.2, "global_step/max_steps": "50/120"})
    lines += [{"train_runtime": 35.9, "global_step/max_steps": "120/120"}, {"global_step": 120, "log_history": []}]
    (folder / "logging.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    question = "<|im_start|>user\nUsing the numbers [1, 2], create an equation that equals 3.\nYou can ...<|im_end|>"
    tables = [
        {
            "step": [str(step)] * 4,
            "prompt": [question] * 4,
            "completion": [f"<think>step {step}, completion {i}</think>\n<answer>1 + 2</answer>" for i in range(4)],
            "CountdownReward": [1.0, 0.0, None, 0.0],
            "advantages": [1.5, -0.5, 0.0, -0.5],
        }
        for step in (1, 60, 120)
    ]
    (folder / "completions.jsonl").write_text("".join(json.dumps(table) + "\n" for table in tables))
    return folder


def test_steps_are_read_in_order_and_of_those_logged_twice_the_last(run):
    steps = read_steps(run)
    assert [step["step"] for step in steps] == list(range(1, 121))
    lines = [json.loads(line) for line in (run / "logging.jsonl").read_text().splitlines()]
    twice = [line["reward"] for line in lines if "reward" in line and line["global_step/max_steps"] == "65/120"]
    assert len(twice) == 2 and steps[64]["reward"] == twice[1]


def test_panels_follow_what_was_logged(run):
    shown = panels(read_steps(run))
    assert [panel.title for panel in shown[:3]] == ["Reward", "Format", "Completion length"]
    assert [list(panel.keys) for panel in shown[3:5]] == [["reward_std"], ["kl"]]
    assert shown[0].keys == {"rewards/CountdownReward/mean": "CountdownReward"}
    assert shown[-1].title == "Why: CountdownReward"
    assert list(shown[-1].keys.values()) == ["correct", "wrong value", "no answer"]  # the most frequent first
    assert [panel.keys for panel in panels([{"reward": 0.5, "step": 1}])] == [{"reward": "reward"}]


@pytest.mark.parametrize(
    ("trainer", "formats"),
    [
        ("ms-swift with its own format", ["Format"]),
        ("ms-swift with ours", ["FormatReward"]),
        ("scratch", ["FormatStrictReward"]),
        ("trl", ["FormatReward", "FormatStrictReward"]),
    ],
)
def test_the_format_has_a_panel_of_its_own_in_the_runs_of_every_trainer(trainer, formats):
    """All trainers log a reward as rewards/<its class>/mean, so that the names of the format's classes decide."""
    step = {"step": 1, "reward": 1.0, "rewards/AccuracyReward/mean": 0.5}
    step |= {f"rewards/{name}/mean": 0.5 for name in formats}
    drawn = {panel.title: list(panel.keys.values()) for panel in panels([step])}
    assert drawn == {"Reward": ["AccuracyReward"], "Format": formats}


def test_the_trainers_log_our_format_rewards_under_names_that_the_report_knows():
    for name in ("external_format", "external_format_strict"):
        assert REWARDS[name]().__name__ in FORMATS and REWARDS[name].__name__ in FORMATS


def test_smoothing_keeps_length_and_level():
    assert smoothed([2.0] * 7, window=5) == [2.0] * 7
    assert smoothed([1.0, 5.0], window=1) == [1.0, 5.0]


def test_report_holds_a_picture_and_completions_of_early_and_late_steps(run, tmp_path):
    record = {"index": 0, "reward": 1.0, "format": True, "reason": "correct", "tokens": 7, "finish": "stop"}
    summary = summarize([record])
    curves, page = write_report(run.parent, tmp_path / "report", compare(summary, summary), examples=2)
    with curves.open("rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n" and curves.stat().st_size > 20_000
    text = page.read_text()
    assert "![curves](curves.png)" in text
    assert "| success | 1.000 (0.207 to 1.000) | 1.000 (0.207 to 1.000) |" in text
    for step in (1, 60, 120):
        shown = [f"<think>step {step}, completion {i}</think>" in text for i in range(4)]
        assert shown == [True, False, True, False]
    assert "**Using the numbers [1, 2], create an equation that equals 3.** CountdownReward 1, advantages 1.5" in text
    assert "CountdownReward -, advantages 0" in text


def test_no_completion_ends_its_fence(run, tmp_path):
    table = {"step": ["1"], "prompt": [""], "completion": ["```\n# not a heading\n````"]}
    (run / "completions.jsonl").write_text(json.dumps(table) + "\n")
    _, page = write_report(run, tmp_path / "report")
    assert "\n`````\n```\n# not a heading\n````\n`````\n" in page.read_text()


def test_values_that_are_not_numbers_are_left_out_of_the_curves(run, tmp_path):
    lines = (run / "logging.jsonl").read_text().replace('"kl": 0.00025', '"kl": NaN')
    assert "NaN" in lines
    (run / "logging.jsonl").write_text(lines)
    curves, _ = write_report(run, tmp_path / "report")
    assert curves.is_file()


def test_run_without_logged_completions_has_a_report_too(run, tmp_path):
    (run / "completions.jsonl").unlink()
    assert read_completions(run) == []
    _, page = write_report(run, tmp_path / "report")
    assert "Completions" not in page.read_text()


def test_newest_run_of_an_output_folder_is_taken(run):
    import os

    newer = run.parent / "v10-20260101-130000"
    newer.mkdir()
    (newer / "logging.jsonl").write_text((run / "logging.jsonl").read_text())
    os.utime(run / "logging.jsonl", (1, 1))
    assert find_run(run.parent) == newer
    assert find_run(run) == run


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"reward": 1, "global_step/max_steps": "1/2"}\n{"rew', r"logging.jsonl, line 2: not JSON"),
        ("[1]\n", r"logging.jsonl, line 1: expected an object such as \{...\}, got \[1\]"),
        ('{"reward": 1}\n', r'logging.jsonl, line 1: expected "global_step/max_steps" such as "7/100"'),
        ('{"loss": 1}\n', r'logging.jsonl: no training step is logged, no line has "reward"'),
    ],
)
def test_bad_log_is_refused_with_file_and_line(tmp_path, content, message):
    (tmp_path / "logging.jsonl").write_text(content)
    with pytest.raises(InputError, match=message):
        read_steps(tmp_path)


def test_bad_completions_and_missing_run_are_refused(run, tmp_path):
    (run / "completions.jsonl").write_text('{"step": ["1"]}\n')
    with pytest.raises(InputError, match="completions.jsonl, line 1: expected the lists step, prompt and completion"):
        read_completions(run)
    with pytest.raises(InputError, match="expected a training run, a folder with logging.jsonl"):
        find_run(tmp_path / "nothing")
