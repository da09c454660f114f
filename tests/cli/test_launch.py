"""`DRY_RUN=1 swift-rlvr train`: what the plan says of data and rewards, and where it refuses them."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from commands import WIDE
from swift_rlvr.cli.app import app

ROW = {"question": "What is 1 + 1?", "answer": "2"}
WITHOUT_ANSWER = {"question": "Why?", "answer": "See the notes for the whole proof"}


@pytest.fixture
def planned(tmp_path, monkeypatch):
    """Writes rows and a recipe of one's own, and plans its launch."""
    monkeypatch.chdir(tmp_path)
    for name in ("MODEL", "DATASET", "OUTPUT", "USE_HF"):
        monkeypatch.delenv(name, raising=False)

    def plan(lines: list[str] | None, *words: str, **settings: object):
        if lines is not None:
            Path("rows.jsonl").write_text("\n".join(lines) + "\n")
        values = {
            "rlhf_type": "grpo",
            "model": "Qwen/Qwen2.5-1.5B-Instruct",
            "dataset": "math:rows.jsonl",
            "reward_funcs": ["external_accuracy", "external_format"],
            "output_dir": "out",
            "per_device_train_batch_size": 8,
        }
        Path("mine.yaml").write_text(yaml.safe_dump(values | settings))
        env = {**WIDE, "DRY_RUN": "1", "CUDA_VISIBLE_DEVICES": ""}
        result = CliRunner().invoke(app, ["train", "mine.yaml", *words], env=env)
        assert not Path("out").exists()
        return result.exit_code, " ".join(result.output.split())

    return plan


def rows(count: int, row: dict = ROW) -> list[str]:
    return [json.dumps(row)] * count


def test_the_plan_shows_dataset_rewards_and_additions(planned):
    status, said = planned(rows(3), reward_weights=[1.0, 0.5])
    assert status == 0, said
    assert "dataset math:rows.jsonl (3 rows)" in said
    assert "rewards external_accuracy x 1, external_format x 0.5" in said
    for name in ("external_plugins", "callbacks reward_reasons", "logging_steps 1"):
        assert f"added: {name}" in said
    assert said.endswith("--callbacks reward_reasons --logging_steps=1")


def test_without_weights_the_rewards_are_named(planned):
    _, said = planned(rows(3))
    assert "rewards external_accuracy, external_format devices" in said


def test_a_dataset_on_a_hub_is_not_downloaded(planned):
    status, said = planned(None, "--dataset", "gsm8k#100", "owner/theirs")
    assert status == 0, said
    assert "gsm8k#100 (100 rows from ModelScope; DRY_RUN downloads nothing)" in said
    assert "owner/theirs (from ModelScope; DRY_RUN downloads nothing)" in said
    _, said = planned(None, "--dataset", "owner/theirs", "--use_hf", "true")
    assert "owner/theirs (from Hugging Face; DRY_RUN downloads nothing)" in said


def test_a_name_that_is_no_hubs_id_is_a_plugins(planned):
    _, said = planned(None, "--dataset", "my_sums")
    assert "my_sums (as a plugin registers it)" in said and "from ModelScope" not in said


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (None, "there is no file rows.jsonl"),
        # One such line is left out; more than ten, and than a tenth of all, are too many.
        ([*rows(3), *['{"question": '] * 12], "line 4: column 'row': not JSON"),
        (
            rows(3, {"question": "1 + 1?", "x": 2}),
            "column answer missing; the dataset has question",
        ),
        (
            # More than a tenth, which is what a training leaves out.
            [*rows(179), *rows(21, WITHOUT_ANSWER)],
            "21 cannot be trained on: line 180: column 'answer'",
        ),
        ([], "rows.jsonl"),
    ],
)
def test_a_dataset_that_a_training_cannot_load_ends_the_dry_run(planned, lines, message):
    status, said = planned(lines)
    assert status == 2 and message in said, said
    assert "a launch would be refused here; `swift-rlvr doctor` shows all checks" in said
    assert "rlhf mine.yaml" not in said  # no command that would fail


def test_what_needs_a_gpu_ends_the_dry_run_without_one(planned):
    status, said = planned(rows(9), use_vllm=True, vllm_mode="colocate", sleep_level=1)
    assert status == 2 and "none is visible, and vLLM cannot sleep without one" in said, said


def test_a_flag_without_its_value_ends_the_dry_run(planned):
    status, said = planned(rows(9), "--learning_rate")
    assert status == 2 and "--learning_rate: expected a value" in said and "rlhf" not in said


@pytest.mark.parametrize(
    ("rewards", "status", "message"),
    [
        (["external_countdown"], 2, "no reward grades rows of math: all their completions get 0"),
        (
            ["external_countdown", "format"],
            2,
            "no reward verifies answers of math, there are format",
        ),
        (["external_accuracy"], 0, "--reward_funcs external_accuracy"),
        (["accuracy"], 0, "--reward_funcs accuracy"),
        # Of a plugin that is not loaded here: it may verify.
        (["external_countdown", "mine"], 0, "--reward_funcs external_countdown mine"),
        # It may be meant: a run for the format alone.
        (["external_format"], 0, "no reward verifies answers of math"),
    ],
)
def test_rows_that_no_verifier_grades_end_the_dry_run_as_the_launch(
    planned, rewards, status, message
):
    found, said = planned(rows(3), "--reward_funcs", *rewards)
    assert found == status and message in said, said


def test_bad_rows_that_the_training_leaves_out_are_named_and_do_not_end_it(planned):
    status, said = planned([*rows(180), *rows(20, WITHOUT_ANSWER)])
    assert status == 0, said
    assert "20 left out or not graded: line 181: column 'answer'" in said
