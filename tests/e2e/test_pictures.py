"""Two steps of GRPO on questions about pictures, with a small model that sees: its eyes learn, and each
completion is logged beside the name of its picture.

ms-swift's trainer samples, not vLLM.
"""

import json

import pytest
from safetensors.torch import load_file

from e2e.programs import SHARE_OF_DIGITS, SWIFT, Training, run_to_the_end
from paths import DATASETS, words
from pictures import write_dots
from present import present
from small_models import VISION_MODEL_TYPE, save_vision_model
from swift_rlvr.runs.folder import checkpoints
from swift_rlvr.tasks import TASKS
from swift_rlvr.utils.jsonl import read_jsonl, write_jsonl

pytestmark = pytest.mark.e2e

STEPS = 2
BOXES = DATASETS / "boxes" / "train.jsonl"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_vision_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def training(model, tmp_path_factory) -> Training:
    """Of questions about pictures, others without, and boxes in pictures, in one batch: STEPS steps of
    four prompts, each with four completions. Held-out rows have pictures too.
    """
    folder = tmp_path_factory.mktemp("training")
    held_out = write_dots(folder / "held_out", (1, 2))
    text = folder / "text.jsonl"
    write_jsonl(text, [{"problem": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(8)])
    variables = {
        "SWIFT_RLVR_HELD_OUT_DATASET": f"math:{held_out}",
        "SWIFT_RLVR_HELD_OUT_EVERY": STEPS,
        "SWIFT_RLVR_HELD_OUT_SAMPLES": 2,
    }
    arguments = words(f"""
        rlhf --rlhf_type grpo --model {model} --model_type {VISION_MODEL_TYPE} --tuner_type full
        --freeze_vit false --freeze_aligner false --torch_dtype float32 --bf16 false --fp16 false
        --gradient_checkpointing false --load_from_cache_file false --dataset_num_proc 1
        --split_dataset_ratio 0 --max_length 512 --use_vllm false
        --external_plugins plugin/rlvr_plugin.py {SHARE_OF_DIGITS}
        --dataset math:{DATASETS}/pictures/dots.jsonl math:{text} boxes:{BOXES}#8
        --reward_funcs external_accuracy external_box external_format external_share_of_digits
        --callbacks reward_reasons held_out
        --num_generations 4 --max_completion_length 16 --seed 1
        --per_device_train_batch_size 8 --gradient_accumulation_steps 2 --max_steps {STEPS}
        --learning_rate 1e-3 --lr_scheduler_type constant --beta 0 --report_to none
        --output_dir {folder}/output --add_version false --logging_steps 1 --save_steps {STEPS}
        --save_only_model true --log_completions true --dataloader_num_workers 0
    """)
    log = run_to_the_end(SWIFT, arguments, folder / "train.log", **variables)
    return Training(folder / "output", log)


def test_every_step_is_made_and_logged(training):
    assert len(training.steps()) == STEPS
    records = training.records()
    assert len(records) == STEPS * 16
    kinds = set()
    for record in records:
        question = record.messages[-1]["content"]
        if "dots" in question:
            kinds.add("dots")
            (name,) = record.row["images"]
            assert question.startswith("<image>How many ")
            # The gold is that of its picture: dots_0.png shows one.
            assert int(record.row["solution"]) == int(name.rpartition("dots_")[2][0]) + 1
        elif "<image>" in question:
            kinds.add("boxes")
        else:
            kinds.add("text")
            assert not record.row.get("images")
    assert kinds == {"dots", "boxes", "text"}
    longest = max(len(line) for line in (training.output / "records.jsonl").open())
    assert longest < 5000


def test_the_eyes_learn(model, training):
    """No gradient reaches them where pictures do not reach the model."""
    (checkpoint,) = checkpoints(training.output)
    before = load_file(model / "model.safetensors")
    after = load_file(checkpoint / "model.safetensors")
    moved = {name for name in before if not before[name].equal(after[name])}
    assert any("multi_modal_projector" in name for name in moved)
    assert any("vision_tower" in name for name in moved)


def test_held_out_rows_are_asked_with_their_pictures(training):
    evaluations = training.evaluations()
    assert sorted(evaluations) == [0, STEPS]
    lines = (training.output / "held_out.jsonl").read_text().splitlines()
    names = {json.loads(line)["row"]["images"][0] for line in lines}
    assert {name.rpartition("/")[2] for name in names} == {"1.png", "2.png"}


def test_boxes_are_graded_against_the_right_ones_of_their_picture(training):
    right: dict[str, set[str]] = {}
    for _, raw in read_jsonl(BOXES):
        row = TASKS["boxes"].preprocess(raw)
        right.setdefault(row["messages"][-1]["content"], set()).add(row["solution"])
    for record in training.records():
        golds = right.get(present(record.messages)[-1]["content"])
        if golds is None:
            assert record.reasons["external_box"] == "other task"
            continue
        assert record.row["solution"] in golds
        assert record.reasons["external_accuracy"] == "other task"
        # What a model writes that has learned nothing is no box: graded, and not left out.
        assert record.rewards["external_box"] == 0.0
        assert record.reasons["external_box"] not in ("bad gold", "bad canvas")
