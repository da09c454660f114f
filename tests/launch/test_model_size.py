"""The size of a model, by its files and by its name."""

import json
import shutil

import pytest

from paths import ROOT
from present import present
from swift_rlvr.launch.model_size import ModelSize, model_folder, model_size
from swift_rlvr.utils.files import TINY_MODEL as TINY


@pytest.fixture(autouse=True)
def in_the_root(monkeypatch, tmp_path):
    """No model is in a hub's cache."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("HF_HOME", "HF_HUB_CACHE", "MODELSCOPE_CACHE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("Qwen/Qwen2.5-3B-Instruct", 3_000_000_000),
        ("Qwen/Qwen2.5-0.5B", 500_000_000),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", 135_000_000),
        ("Qwen/Qwen3-30B-A3B", 30_000_000_000),  # all experts, not those of a token
        ("output/my-7b-run", 7_000_000_000),
        ("7B/who-knows", None),
        ("mistralai/Mixtral-8x7B", None),
    ],
)
def test_a_models_name_tells_its_size(name, parameters):
    size = model_size(name)
    assert (size and size.parameters) == parameters


def test_the_size_of_a_model_that_is_here_is_that_of_its_files():
    config = json.loads((TINY / "config.json").read_text())
    table = config["vocab_size"] * config["hidden_size"]
    expected = ModelSize(856_704, config["vocab_size"], 1024, layers=4, embedding=table)
    assert model_size(str(TINY)) == expected


@pytest.mark.parametrize(
    "weights", [None, b"", b"version https://git-lfs", b"\x08" + bytes(7) + b"{"]
)
def test_without_weights_that_can_be_read_the_name_counts(tmp_path, weights):
    folder = tmp_path / "my-7B"
    folder.mkdir()
    (folder / "config.json").write_text('{"vocab_size": 100}')
    if weights is not None:
        (folder / "model.safetensors").write_bytes(weights)
    assert present(model_size(str(folder))).parameters == 7_000_000_000


@pytest.mark.parametrize(
    "folder",
    [
        ".cache/huggingface/hub/models--some--Model-1.5/snapshots/abc",
        ".cache/modelscope/models/some--Model-1.5/snapshots/master",
        ".cache/modelscope/hub/models/some/Model-1___5",
    ],
)
def test_a_model_in_a_hubs_cache(tmp_path, folder):
    environ = {"HOME": str(tmp_path)}
    assert model_folder("some/Model-1.5", environ) is None
    shutil.copytree(TINY, tmp_path / folder)
    assert model_folder("some/Model-1.5", environ) == tmp_path / folder
    assert present(model_size("some/Model-1.5")).parameters == 856_704
