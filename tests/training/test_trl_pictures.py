"""The same rows under TRL's own trainer, whose processor gets the pictures."""

import subprocess
import sys

import pytest

pytest.importorskip("trl", reason="needs the extra [trl]")

from paths import DATASETS, ROOT
from pictures import write_dots
from small_models import save_vision_model
from swift_rlvr.rewards.build import build_rewards
from swift_rlvr.training.arguments import RunArguments
from swift_rlvr.training.rows import read_data
from swift_rlvr.utils.errors import InputError

pytestmark = [pytest.mark.slow, pytest.mark.product]

# A process of its own: importing ms-swift, as other tests do, changes transformers for good.
PROGRAM = """
import sys
import torch
from transformers import AutoModelForImageTextToText, AutoProcessor
from trl import GRPOConfig, GRPOTrainer
from swift_rlvr.rewards import REWARDS
from swift_rlvr.training.trl import load_dataset

model, name, out = sys.argv[1:]
processor = AutoProcessor.from_pretrained(model)
rewards = [REWARDS["accuracy"]()]
dataset = load_dataset(name, rewards, processing_class=processor)
assert [part["type"] for part in dataset[0]["prompt"][-1]["content"]] == ["image", "text"]
assert dataset[0]["images"][0].size == (112, 112)

def digits(completions, **columns):
    texts = [turns[0]["content"] for turns in completions]
    return [sum(map(str.isdigit, text)) / max(1, len(text)) for text in texts]

model = AutoModelForImageTextToText.from_pretrained(model)
before = model.state_dict()["model.multi_modal_projector.linear_1.weight"].clone()
settings = GRPOConfig(
    out, per_device_train_batch_size=8, num_generations=4, max_completion_length=16, max_steps=2,
    learning_rate=1e-2, use_cpu=True, bf16=False, report_to="none", logging_steps=1,
    dataloader_pin_memory=False, save_strategy="no", gradient_checkpointing=False,
)
trainer = GRPOTrainer(model, [*rewards, digits], settings, train_dataset=dataset, processing_class=processor)
trainer.train()
after = trainer.model.state_dict()["model.multi_modal_projector.linear_1.weight"]
assert len([line for line in trainer.state.log_history if "reward" in line]) == 2
assert not torch.equal(before, after)
print("TRAINED")
"""


def test_two_steps_with_pictures(tmp_path):
    model = save_vision_model(tmp_path / "model")
    name = f"math:{DATASETS / 'pictures' / 'dots.jsonl'}"
    command = [sys.executable, "-c", PROGRAM, str(model), name, str(tmp_path / "out")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "TRAINED" in result.stdout, result.stderr[-3000:]


def test_a_trainer_that_does_not_show_them_is_refused(tmp_path):
    dataset = f"math:{write_dots(tmp_path / 'data')}"
    arguments = RunArguments(model="model", dataset=dataset, reward_funcs=["accuracy"])
    from rich.console import Console

    with pytest.raises(InputError, match="rows have images, which this trainer does not show"):
        read_data(arguments, build_rewards(["accuracy"]), Console(quiet=True))
