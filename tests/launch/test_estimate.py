"""Estimates of steps, memory and disk, against files, DeepSpeed's and TRL's own counts, and what torch really keeps."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from helpers import planned
from paths import DATASETS, PLUGIN, ROOT
from swift_rlvr.launch import estimate, sizes
from swift_rlvr.launch.estimate import GIB
from swift_rlvr.launch.machine import Gpu, Machine
from swift_rlvr.launch.plan import Variables

TINY = PLUGIN / "swift_rlvr" / "tiny_model" / "weights"
QWEN = "Qwen/Qwen2.5-3B-Instruct"
FULL = {"tuner_type": "full", "torch_dtype": "bfloat16", "deepspeed": "zero3"}
LOADED = {"HOME": "/nonexistent"}  # no model is in a hub's cache


@pytest.fixture(autouse=True)
def in_the_root(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("HF_HOME", "HF_HUB_CACHE", "MODELSCOPE_CACHE"):
        monkeypatch.delenv(name, raising=False)


def plan_for(recipe: str, *words: object, gpus: int = 0, memory: int = 81559):
    cards = tuple(Gpu(str(index), "NVIDIA H100 80GB HBM3", memory, 0) for index in range(gpus))
    machine = Machine(cards, "580.65.06" if gpus else None, 8, 24000)
    path = f"scripts/configs/{recipe}.yaml"
    return planned(path, "--output_dir", "output/no-such-run", *words, machine=machine, environ={})


@pytest.mark.parametrize(
    ("model", "parameters"),  # as the models' weights have them
    [("0.5B", 494_032_768), ("1.5B", 1_543_714_304), ("3B", 3_085_938_688), ("7B", 7_615_616_512)],
)
def test_parameters_of_the_recipes_models(model, parameters):
    assert sizes.model_shape(f"Qwen/Qwen2.5-{model}-Instruct", LOADED).parameters == parameters


def test_parameters_from_the_header_of_the_weights_and_from_the_config_are_the_same(tmp_path):
    counted = sizes.model_shape(str(TINY))
    shutil.copy(TINY / "config.json", tmp_path)
    assert sizes.model_shape(str(tmp_path)) == counted and counted.parameters == 856_704
    assert (counted.context, counted.dtype, counted.head_size) == (1024, "float32", 32)


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
    assert sizes.model_shape("some/Model-1.5", environ) is None
    shutil.copytree(TINY, tmp_path / folder)
    assert sizes.model_shape("some/Model-1.5", environ).parameters == 856_704


@pytest.mark.parametrize("config", ["{", "[]", "{}", '{"hidden_size": "wide"}'])
def test_a_config_that_cannot_be_read_is_a_model_of_unknown_size(tmp_path, config):
    (tmp_path / "config.json").write_text(config)
    assert sizes.model_shape(str(tmp_path)) is None


def test_checkpoints():
    tiny, qwen = sizes.model_shape(str(TINY)), sizes.model_shape(QWEN, LOADED)
    # What a training of two steps left with the recipe for a CPU: 13.95 MB with the tokenizer, 3.43 of them weights.
    assert sizes.checkpoint_size(tiny, {**FULL, "torch_dtype": "float32"}) == pytest.approx(13.95e6, rel=0.02)
    # The same with ZeRO-2, 17.44 MB, and with LoRA of rank 4 and ZeRO-3, 0.64 MB.
    assert sizes.checkpoint_size(tiny, {**FULL, "torch_dtype": "float32", "deepspeed": "zero2"}) == pytest.approx(
        17.44e6, rel=0.02
    )
    lora = {"tuner_type": "lora", "lora_rank": 4, "torch_dtype": "float32", "deepspeed": "zero3"}
    assert sizes.checkpoint_size(tiny, lora) == pytest.approx(162_688 + 2 * 237_523, rel=0.03)
    assert sizes.gigabytes(sizes.checkpoint_size(qwen, FULL)) == "43 GB"
    assert sizes.gigabytes(sizes.checkpoint_size(qwen, {**FULL, "save_only_model": True})) == "6.2 GB"
    assert sizes.checkpoint_size(qwen, {**FULL, "deepspeed": None}) == 6 * qwen.parameters


def test_the_experiments_plan():
    plan = plan_for("countdown", gpus=3)
    assert estimate.steps(plan).text == "3,093 = 1 epoch x 49,500 rows x 8 completions / 128 a step"
    disk = estimate.disk(plan)
    assert disk.text.startswith("20 checkpoints of 43 GB: 0.86 TB; ")
    assert estimate.memory(plan).text == (
        "training about 45 of 80 GiB a GPU; vLLM 72: weights 5.7 and 1,920,487 tokens of cache"
    )
    assert estimate.tokens(plan).text == "prompt up to 2,048 + completion 1,024, of 3,072 (vllm_max_model_len)"


def test_the_tiny_plan():
    plan = plan_for("countdown_cpu")
    assert estimate.steps(plan).text == "60 (max_steps)"
    assert estimate.disk(plan).text.startswith("2 checkpoints of 14 MB: 27 MB; ")
    assert estimate.tokens(plan).text == "prompt up to 512 + completion 320, of 512 (vllm_max_model_len)"
    assert estimate.tokens(plan, longest_prompt=123).text.startswith("prompt 123 + completion 320, of 512")
    assert not estimate.tokens(plan, longest_prompt=300).fits
    assert estimate.memory(plan).fits


def test_what_is_not_known_is_said():
    plan = plan_for("countdown", "--model", "who/knows", "--dataset", "gsm8k", gpus=3)
    assert estimate.steps(plan).text == "not known before gsm8k is loaded"
    assert estimate.memory(plan).text == "not known before who/knows is here"
    assert "not known before who/knows is here" in estimate.disk(plan).text
    assert "the model's context is not known" not in estimate.tokens(plan).text  # vllm_max_model_len is
    unknown = plan_for("countdown", "--dataset", "gsm8k", gpus=3)
    del unknown.settings["save_total_limit"]
    assert "their number is not known" in estimate.disk(unknown).text


@pytest.mark.parametrize(
    ("words", "limited", "kept"),
    [
        (["--save_steps", 7], True, 2),
        (["--save_steps", 7], False, 9),
        (["--save_steps", 0.5], False, 2),
        (["--save_strategy", "no"], True, 0),
        (["--save_strategy", "epoch", "--num_train_epochs", 5], False, 5),
    ],
)
def test_checkpoints_kept(words, limited, kept):
    plan = plan_for("countdown_cpu", *words)  # 60 steps, and 2 checkpoints at most
    if not limited:
        del plan.settings["save_total_limit"]
    assert estimate.checkpoints_kept(plan) == kept


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        ([f"countdown:{DATASETS}/countdown/tiny_train.jsonl"], 1096),
        ([f"{DATASETS}/gsm8k/train.jsonl", f"gsm8k:{DATASETS}/gsm8k/test.jsonl#5"], 33),
        (["gsm8k#100"], 100),
        (["gsm8k"], None),
        (["countdown:none.jsonl"], None),
    ],
)
def test_rows(names, rows):
    assert estimate.training_rows({"dataset": names}) == rows
    if rows:
        assert estimate.training_rows({"dataset": names, "split_dataset_ratio": 0.1}) == rows - rows // 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("batch", "accumulation", "group", "rows", "extra"),
    [
        (8, 8, 8, 50_000, {}),
        (4, 2, 4, 101, {}),
        (4, 4, 8, 101, {"steps_per_generation": 2}),
        (4, 1, 8, 37, {"generation_batch_size": 32}),
        (4, 2, 4, 100, {"num_iterations": 2}),
    ],
)
def test_steps_are_those_of_trls_sampler(batch, accumulation, group, rows, extra):
    """As transformers' Trainer counts: the sampler's length in batches, shared out, by accumulation."""
    from trl.trainer.utils import RepeatSampler

    settings = {
        "per_device_train_batch_size": batch, "gradient_accumulation_steps": accumulation, "num_generations": group,
        "num_train_epochs": 2, "dataset": f"gsm8k#{rows}", **extra,
    }  # fmt: skip
    plan = SimpleNamespace(settings=settings, processes=2, variables=Variables())
    sampled = estimate.generation_batch(plan)
    per_generation = sampled // (2 * batch)
    repeats = settings.get("num_iterations", 1) * per_generation
    sampler = RepeatSampler(range(rows), group, sampled // group, repeats)
    micro_batches = len(sampler) // (batch * per_generation * 2)
    assert estimate.steps(plan).count == 2 * (micro_batches // accumulation)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_memory_of_the_states_is_deepspeeds_own_estimate(processes):
    from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs
    from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs

    shape = sizes.model_shape(QWEN, LOADED)
    options = {"num_gpus_per_node": processes, "cpu_offload": False}
    _, zero3, _ = estimate_zero3_model_states_mem_needs(
        shape.parameters, shape.largest_layer, cpu_offload_params=False, **options
    )
    _, zero2 = estimate_zero2_model_states_mem_needs(shape.parameters, **options)
    for name, wanted in (("zero3", zero3), ("zero2", zero2)):
        parts = sizes.training_memory(shape, {**FULL, "deepspeed": name, "beta": 0}, processes)
        own = sum(size for part, size in parts.items() if part not in sizes.ACTIVATIONS)
        assert own == pytest.approx(wanted, rel=1e-6), name


@pytest.mark.slow
@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_activations_are_what_torch_keeps_for_the_backward_pass(dtype, checkpointing):
    import torch
    from transformers import AutoModelForCausalLM

    batch, prompt, completion = 4, 64, 192
    model = AutoModelForCausalLM.from_pretrained(TINY, dtype=getattr(torch, dtype)).train()
    if checkpointing:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, tuple[int, torch.Tensor]] = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes(), tensor
        return tensor

    ids = torch.randint(0, 500, (batch, prompt + completion))
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model.model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False)
    measured = sum(size for size, _ in kept.values())
    settings = {
        **FULL, "torch_dtype": dtype, "max_length": prompt, "max_completion_length": completion,
        "per_device_train_batch_size": batch, "gradient_checkpointing": checkpointing,
    }  # fmt: skip
    shape = sizes.model_shape(str(TINY))
    estimated = sizes.training_memory(shape, settings, 1)["activations"]
    if checkpointing:  # the insides of one layer come in the backward pass
        size = 4 if dtype == "float32" else 2
        estimated -= batch * (prompt + completion) * size * (8 * shape.hidden + 4 * shape.intermediate)
        assert 1 <= measured / estimated < 2  # besides the layers' inputs the rotations of all layers
    else:
        assert 1 <= measured / estimated < 1.25


def test_memory_by_settings():
    shape = sizes.model_shape(QWEN, LOADED)

    def needed(processes=2, **settings):
        return sum(sizes.training_memory(shape, {**FULL, **settings}, processes).values())

    assert needed(4) < needed(2) < needed(1)
    assert needed(deepspeed="zero3_offload") < needed() < needed(deepspeed="zero2") < needed(deepspeed="zero1")
    assert needed(beta=0) < needed()
    assert needed(gradient_checkpointing=False) > needed()
    assert needed(max_completion_length=1024) > needed()
    assert needed(1, tuner_type="lora", deepspeed=None) < needed(1) / 2
    assert needed(1, tuner_type="lora", deepspeed=None) > 2 * shape.parameters


def test_zero_stage_of_a_file(tmp_path):
    assert sizes.zero_stage({"deepspeed": "scripts/configs/zero3_cpu.json"}) == (3, False)
    offload = {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}
    (tmp_path / "own.json").write_text(json.dumps(offload))
    assert sizes.zero_stage({"deepspeed": str(tmp_path / "own.json")}) == (2, True)


def test_vllms_share():
    shape = sizes.model_shape(QWEN, LOADED)
    server = sizes.server_memory(shape, {}, 80 * GIB)
    assert (server.share, server.weights) == (72 * GIB, 2 * shape.parameters)
    # Keys and values of 36 layers, 2 heads of 128, in 16 bits: 36,864 bytes a token.
    assert server.tokens == (72 * GIB - 2 * shape.parameters) // 36_864
    halved = sizes.server_memory(shape, {"vllm_tensor_parallel_size": 2}, 80 * GIB)
    assert halved.weights == shape.parameters
    assert sizes.server_memory(shape, {}, 4 * GIB).tokens < 0


def test_one_gpu_for_both():
    parts = {"weights": 6, "optimizer": 10, "logits": 20}
    server = sizes.ServerMemory(share=50, weights=6, tokens=1)
    assert sizes.colocated_memory(parts, server, {}) == 86
    assert sizes.colocated_memory(parts, server, {"sleep_level": 1}) == 66
    offloaded = {"sleep_level": 1, "offload_model": True, "offload_optimizer": True}
    assert sizes.colocated_memory(parts, server, offloaded) == 50


def test_free_space_of_a_folder_that_is_not_there_yet(tmp_path):
    assert estimate.free_space(tmp_path / "a" / "b") == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.01)
    assert estimate.free_space(Path("output/no-such-run")) > 0
