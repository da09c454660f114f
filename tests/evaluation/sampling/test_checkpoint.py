"""Finding and loading what is evaluated: folders, hub ids and real LoRA adapters; and vLLM's engine
beside CUDA.
"""

import json
import os
import sys
from types import SimpleNamespace
from unittest import mock

import pytest
import torch
from rich.console import Console

from commands import ran
from paths import DATASETS
from swift_rlvr.evaluation.models import stop_token_ids, visible_device
from swift_rlvr.evaluation.sampling import (
    SamplingSettings,
    checkpoint,
    choose_engine,
    engines,
    open_engine,
)
from swift_rlvr.evaluation.sampling.checkpoint import Checkpoint, find_checkpoint
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.jsonl import read_jsonl

pytestmark = pytest.mark.slow  # as a whole
QUIET = Console(quiet=True)
ASKED = [
    [{"role": "user", "content": "Using the numbers [3, 5, 7], create an equation that equals 22."}]
]


@pytest.fixture(scope="module")
def adapter(tmp_path_factory):
    """A LoRA adapter of the tiny model, as ms-swift leaves it: no tokenizer, args.json one folder
    above.
    """
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    folder = tmp_path_factory.mktemp("run") / "checkpoint-7"
    torch.manual_seed(0)
    config = LoraConfig(r=4, lora_alpha=32, target_modules="all-linear", init_lora_weights=False)
    get_peft_model(AutoModelForCausalLM.from_pretrained(TINY_MODEL), config).save_pretrained(folder)
    (folder.parent / "args.json").write_text(
        json.dumps({"model": str(TINY_MODEL), "system": "of the run"})
    )
    return folder


@torch.no_grad()
def test_an_adapter_is_merged_into_its_base_model(adapter, tmp_path):
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    ids = torch.arange(5, 25)[None]
    base = AutoModelForCausalLM.from_pretrained(TINY_MODEL)
    before = base(ids).logits
    adapted = PeftModel.from_pretrained(base, adapter)(ids).logits
    checkpoint = find_checkpoint(str(adapter))
    assert checkpoint == Checkpoint(str(TINY_MODEL), str(adapter))
    assert torch.allclose(checkpoint.model()(ids).logits, adapted, atol=1e-4)
    assert not torch.allclose(before, adapted, atol=0.1)
    with checkpoint.merged() as folder:
        whole = find_checkpoint(folder)
        assert whole == Checkpoint(folder)
        assert torch.allclose(whole.model()(ids).logits, adapted, atol=1e-4)
        assert whole.tokenizer().chat_template == checkpoint.tokenizer().chat_template
    assert not os.path.exists(folder)


def test_an_adapter_is_evaluated_like_a_whole_model(adapter, tmp_path):
    data = ["--dataset", f"{DATASETS}/countdown/tiny_test.jsonl#2", "--temperature", 0]
    ran("evaluate", adapter, *data, "--max_completion_length", 8, "--out", tmp_path)
    records = [row["completion"] for _, row in read_jsonl(tmp_path / "records.jsonl")]
    assert len(records) == 2
    assert json.loads((tmp_path / "summary.json").read_text())["settings"]["system"] == "of the run"


def test_the_base_model_is_where_args_json_says_when_it_has_moved(adapter, tmp_path):
    moved = tmp_path / "adapter"
    moved.mkdir()
    for file in adapter.iterdir():
        (moved / file.name).write_bytes(file.read_bytes())
    config = json.loads((moved / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = "/of/another/machine"
    (moved / "adapter_config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match="/of/another/machine: cannot be loaded"):
        find_checkpoint(str(moved))
    (moved / "args.json").write_text(json.dumps({"model": str(TINY_MODEL)}))
    assert find_checkpoint(str(moved)) == Checkpoint(str(TINY_MODEL), str(moved))


def test_the_tokens_that_end_a_completion_are_those_of_the_loaded_model(tmp_path):
    checkpoint = Checkpoint(str(TINY_MODEL))
    assert (
        checkpoint.stop_token_ids()
        == stop_token_ids(checkpoint.tokenizer(), checkpoint.model().generation_config)
        == [2]
    )
    for file in TINY_MODEL.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [0, 2]}')
    assert Checkpoint(str(tmp_path)).stop_token_ids() == [0, 2]
    (tmp_path / "generation_config.json").unlink()
    assert Checkpoint(str(tmp_path)).stop_token_ids() == [2]


def test_an_adapter_of_another_model_is_refused(adapter, tmp_path):
    from transformers import AutoConfig, AutoModelForCausalLM

    other = tmp_path / "other"
    config = AutoConfig.from_pretrained(TINY_MODEL)
    config.hidden_size = 64
    AutoModelForCausalLM.from_config(config).save_pretrained(other)
    with pytest.raises(InputError, match="checkpoint-7 does not fit the model .*other"):
        Checkpoint(str(other), str(adapter)).model()


@pytest.mark.parametrize(
    ("flag", "variable", "hub"),
    [(False, None, "ModelScope"), (True, None, "Hugging Face"), (False, "1", "Hugging Face")],
)
def test_a_hub_id_comes_from_the_hub_of_the_training(monkeypatch, flag, variable, hub):
    """As far as the hub's own library: that the id is not there, is its answer."""
    hubs = pytest.importorskip("swift.hub")
    asked = []

    def get_hub(use_hf):
        asked.append(
            "Hugging Face"
            if use_hf or (use_hf is None and os.environ.get("USE_HF") == "1")
            else "ModelScope"
        )
        raise ValueError("no such model")

    monkeypatch.setattr(hubs, "get_hub", get_hub)
    monkeypatch.delenv("USE_HF", raising=False)
    if variable is not None:
        monkeypatch.setenv("USE_HF", variable)
    for problem in (None, "hub.x cannot be reached"):
        monkeypatch.setattr(checkpoint, "why_no_hub", lambda use_hf, problem=problem: problem)
        said = f"somebody/model: cannot be loaded, expected .* on {hub} \\({problem or 'no such model'}"
        with pytest.raises(InputError, match=said):
            find_checkpoint("somebody/model", flag)
    assert asked == [hub, hub]


@pytest.mark.parametrize("model", ["nothing", "./some/folder", "a/b/c", "~/model"])
def test_what_cannot_be_a_hub_id_is_refused_at_once(model):
    with pytest.raises(InputError, match="cannot be loaded, expected a folder or a hub id"):
        find_checkpoint(model)


def test_vllms_engine_is_started_by_spawn_and_nothing_has_asked_cuda_before(monkeypatch):
    """torch as in a build for CUDA, with one GPU that NVIDIA's driver library reports; vLLM's part
    is left out.
    """

    class Built(Exception):
        pass

    def build(model, **options):
        raise Built(os.environ.get("VLLM_WORKER_MULTIPROC_METHOD"))

    def asked(*args):
        raise AssertionError("CUDA was asked")

    monkeypatch.setitem(
        sys.modules, "vllm", SimpleNamespace(LLM=build, SamplingParams=dict, __spec__="here")
    )
    monkeypatch.delenv("VLLM_WORKER_MULTIPROC_METHOD", raising=False)
    monkeypatch.delenv("PYTORCH_NVML_BASED_CUDA_CHECK", raising=False)
    monkeypatch.setattr(torch._C, "_accelerator_getAccelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.cuda, "_is_compiled", lambda: True)
    monkeypatch.setattr(torch.cuda, "_device_count_nvml", lambda: 1)
    for name in ("_cuda_getDeviceCount", "_cuda_init", "_cuda_setDevice"):
        monkeypatch.setattr(torch._C, name, asked, raising=False)
    with pytest.raises(AssertionError, match="CUDA was asked"):
        torch.cuda.is_available()
    assert choose_engine(SamplingSettings(str(TINY_MODEL))) == "vllm"
    with mock.patch.dict(os.environ), pytest.raises(Built, match="spawn"):
        open_engine(SamplingSettings(str(TINY_MODEL), max_completion_length=8), ASKED).__enter__()


def test_on_a_cpu_vllm_samples_from_large_models(monkeypatch):
    pytest.importorskip("vllm")
    assert visible_device() == "cpu"
    assert choose_engine(SamplingSettings(str(TINY_MODEL))) == "transformers"
    monkeypatch.setattr(
        engines, "WORTH_VLLM", (TINY_MODEL / "model.safetensors").stat().st_size - 1
    )
    assert choose_engine(SamplingSettings(str(TINY_MODEL))) == "vllm"
    assert choose_engine(SamplingSettings(str(TINY_MODEL), engine="transformers")) == "transformers"
