"""Estimates of steps, memory and disk, against files, DeepSpeed's and TRL's own counts, and what
torch really keeps.
"""

import json
import math
import shutil

import pytest
from helpers import planned
from paths import DATASETS, PLUGIN, ROOT
from rich.filesize import decimal
from safetensors import safe_open
from swift_rlvr.launch import estimate, sizes
from swift_rlvr.launch.estimate import GIB
from swift_rlvr.launch.machine import Gpu, Machine

TINY = PLUGIN / "swift_rlvr" / "share" / "tiny_model" / "weights"
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


# The size of a model.


@pytest.mark.parametrize(
    ("model", "parameters"),  # as the models' weights have them
    [
        ("0.5B", 494_032_768),
        ("1.5B", 1_543_714_304),
        ("3B", 3_085_938_688),
        ("7B", 7_615_616_512),
        ("14B", 14_770_033_664),
        ("32B", 32_763_876_352),
    ],
)
def test_parameters_of_qwen(model, parameters):
    assert sizes.model_size(f"Qwen/Qwen2.5-{model}-Instruct", LOADED).parameters == parameters


def test_parameters_of_the_tiny_model_are_those_in_its_weights():
    size = sizes.model_size(str(TINY))
    with safe_open(TINY / "model.safetensors", "np") as weights:
        assert size.parameters == sum(
            math.prod(weights.get_slice(name).get_shape())
            for name in weights.keys()  # noqa: SIM118
        )
    assert (size.context, size.bytes, size.head_size) == (1024, 4, 32)


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
    assert sizes.model_size("some/Model-1.5", environ) is None
    shutil.copytree(TINY, tmp_path / folder)
    assert sizes.model_size("some/Model-1.5", environ).parameters == 856_704


# The plan's lines.


@pytest.mark.parametrize(
    ("recipe", "words", "gpus", "line", "text"),
    [
        ("countdown", [], 3, "steps", "3,093 = 1 epoch x 49,500 rows x 8 completions / 128 a step"),
        (
            "countdown",
            ["--save_total_limit", 20],
            3,
            "disk",
            "20 checkpoints of 43.2 GB: 864.1 GB; ",
        ),
        (
            "countdown",
            [],
            3,
            "memory",
            "training about 44 of 80 GiB a GPU; vLLM 72: weights 5.7 and 1,880,809 tokens ",
        ),
        (
            "countdown",
            ["--deepspeed", "zero3_offload"],
            3,
            "memory",
            "training about 24 of 80 GiB a GPU; about 46 of the host's 23 GiB; vLLM 72",
        ),
        (
            "countdown",
            [],
            3,
            "tokens",
            "prompt up to 2,048 + completion 1,024, of 3,072 (vllm_max_model_len)",
        ),
        ("countdown_cpu", [], 0, "steps", "60 (max_steps)"),
        ("countdown_cpu", [], 0, "disk", "2 checkpoints of 13.7 MB: 27.4 MB; "),
        (
            "countdown_cpu",
            [],
            0,
            "tokens",
            "prompt up to 512 + completion 320, of 512 (vllm_max_model_len)",
        ),
        ("countdown_cpu", [], 0, "memory", "models and activations about 1.4 of 23 GiB"),
        ("countdown", ["--dataset", "gsm8k"], 3, "steps", "not known before gsm8k is loaded"),
        ("countdown", ["--model", "who/knows"], 3, "memory", "not known before who/knows is here"),
        (
            "countdown",
            ["--model", "who/knows"],
            3,
            "disk",
            "checkpoints of a size that is not known before who/knows",
        ),
        (
            "countdown_cpu",
            ["--num_iterations", 2, "--max_steps", -1],
            0,
            "steps",
            "274 = 1 epoch x 1,096 rows x 8",
        ),
    ],
)
def test_lines(recipe, words, gpus, line, text):
    assert getattr(estimate, line)(plan_for(recipe, *words, gpus=gpus)).text.startswith(text)


@pytest.mark.parametrize(
    ("words", "limited", "kept"),
    [
        (["--save_steps", 7], True, 2),
        (["--save_steps", 7], False, 9),
        (["--save_steps", 0.5], False, None),
        (["--save_strategy", "no"], True, 0),
        (["--save_strategy", "epoch", "--num_train_epochs", 5], True, 2),
        (["--dataset", "gsm8k", "--max_steps", -1], True, 2),
        (["--dataset", "gsm8k", "--max_steps", -1], False, None),
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
        assert (
            estimate.training_rows({"dataset": names, "split_dataset_ratio": 0.1})
            == rows - rows // 10
        )


# Memory and disk.


@pytest.mark.parametrize(
    (
        "recipe",
        "gpus",
        "memory",
        "expected",
    ),  # GiB, by DeepSpeed's own counts, every LoRA layer and gathered layers
    [
        ("countdown", 3, 81559, 45.3),
        ("countdown", 8, 40960, 31.0),
        ("countdown_1gpu_80gb", 1, 81559, 66.4),
        ("countdown_1gpu_24gb", 1, 24564, 16.7),
        ("gsm8k", 1, 24564, 16.4),
        ("r1_zero", 1, 24564, 16.4),
        ("countdown_cpu", 0, 0, 1.4),
    ],
)
def test_recipes_fit_the_hardware_that_they_are_for(recipe, gpus, memory, expected):
    result = estimate.memory(plan_for(recipe, gpus=gpus, memory=memory))
    assert result.fits and not result.tight
    assert result.count / GIB == pytest.approx(expected, rel=0.15)


def test_checkpoints():
    tiny, qwen = sizes.model_size(str(TINY)), sizes.model_size(QWEN, LOADED)
    # What a training of two steps left with the recipe for a CPU: 13.95 MB with the tokenizer, 3.43
    # of them weights; the same with ZeRO-2, and with LoRA of rank 4.
    for settings, measured in (
        ({}, 13.95e6),
        ({"deepspeed": "zero2"}, 17.44e6),
        ({"tuner_type": "lora", "lora_rank": 4}, 162_688 + 2 * 237_523),
    ):
        size = sizes.checkpoint_size(tiny, {**FULL, "torch_dtype": "float32", **settings})
        assert size == pytest.approx(measured, rel=0.1)
    assert decimal(sizes.checkpoint_size(qwen, FULL)) == "43.2 GB"
    assert decimal(sizes.checkpoint_size(qwen, {**FULL, "save_only_model": True})) == "6.2 GB"
    assert sizes.checkpoint_size(qwen, {**FULL, "deepspeed": None}) == 6 * qwen.parameters


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2, 4])
def test_memory_of_the_states_is_about_deepspeeds_own_estimate(processes):
    from deepspeed.runtime.zero.stage3 import estimate_zero3_model_states_mem_needs
    from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs

    size = sizes.model_size(QWEN, LOADED)
    options = {"num_gpus_per_node": processes, "cpu_offload": False}
    embedding = size.vocabulary * size.hidden
    _, zero3, _ = estimate_zero3_model_states_mem_needs(
        size.parameters, embedding, cpu_offload_params=False, **options
    )
    _, zero2 = estimate_zero2_model_states_mem_needs(size.parameters, **options)
    for name, expected in (("zero3", zero3), ("zero2", zero2)):
        states = sizes.training_memory(
            size, {**FULL, "deepspeed": name, "beta": 0}, processes
        )._replace(batch=0)
        assert sum(states) == pytest.approx(expected, rel=0.11), name


def test_memory_by_settings():
    size = sizes.model_size(QWEN, LOADED)

    def needed(processes=2, **settings):
        return sum(sizes.training_memory(size, {**FULL, **settings}, processes))

    assert needed(4) < needed(2) < needed(1)
    assert (
        needed(deepspeed="zero3_offload")
        < needed()
        < needed(deepspeed="zero2")
        < needed(deepspeed="zero0")
    )
    assert needed(beta=0) < needed()
    assert needed(gradient_checkpointing=False) > needed()
    assert needed(max_completion_length=1024) > needed()
    assert needed(1, tuner_type="lora", deepspeed=None) < needed(1) / 2
    assert needed(1, tuner_type="lora", deepspeed=None) > 2 * size.parameters
    whole = {"tuner_type": "lora", "gradient_checkpointing": False}  # what PEFT copies
    assert (
        needed(**whole)
        > needed(**whole, lora_dropout=0)
        > needed(**whole, lora_dropout=0, lora_dtype="bfloat16")
    )


def test_zero_stage_of_a_file(tmp_path):
    assert sizes.zero_stage({"deepspeed": "scripts/configs/zero3_cpu.json"}) == (3, False)
    offload = {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}
    (tmp_path / "own.json").write_text(json.dumps(offload))
    assert sizes.zero_stage({"deepspeed": str(tmp_path / "own.json")}) == (2, True)


def test_vllms_share():
    size = sizes.model_size(QWEN, LOADED)
    share, weights, tokens = sizes.server_memory(size, {}, 80 * GIB)
    assert (share, weights) == (72 * GIB, 2 * size.parameters)
    # Keys and values of 36 layers, 2 heads of 128, in 16 bits: 36,864 bytes a token; and CUDA
    # graphs, and the logits of 256 sequences in 16 bits and twice in 32, which are more than a
    # forward pass over 2,048 tokens.
    assert tokens == (71 * GIB - 2 * size.parameters - 256 * 151_936 * 10) // 36_864
    eager = sizes.server_memory(
        size, {"vllm_enforce_eager": True, "vllm_max_num_seqs": 16}, 80 * GIB
    )[2]
    assert eager == (72 * GIB - 2 * size.parameters - 2048 * 2 * (4 * 2048 + 3 * 11008)) // 36_864
    assert (
        sizes.server_memory(size, {"vllm_tensor_parallel_size": 2}, 80 * GIB)[1] == size.parameters
    )
    assert sizes.server_memory(size, {}, 4 * GIB)[2] < 0


@pytest.mark.parametrize(
    ("flags", "fits"),
    [
        ([], False),  # vLLM's share holds the weights and what it reserves, and no completion
        (["--vllm_gpu_memory_utilization", 0.5], True),
        (["--vllm_gpu_memory_utilization", 0.7], False),
        (["--vllm_gpu_memory_utilization", 0.7, "--offload_model", "true"], True),
    ],
)
def test_one_gpu_of_16_gb(flags, fits):
    result = estimate.memory(plan_for("countdown_1gpu_24gb", *flags, gpus=1, memory=16376))
    assert (result.fits and not result.tight) == fits, result


def test_a_model_of_another_family(tmp_path):
    """SmolLM2-135M. Its logits and activations as measured on a CPU: 8 and 16 rows of 256 + 128
    tokens, in 32 bits.
    """
    config = {
        "model_type": "llama",
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
    }
    config |= {
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "vocab_size": 49152,
        "tie_word_embeddings": True,
    }
    (tmp_path / "config.json").write_text(
        json.dumps(config | {"dtype": "float32", "max_position_embeddings": 8192})
    )
    size = sizes.model_size(str(tmp_path))
    assert size.parameters == 134_515_008
    settings = {**FULL, "torch_dtype": "float32", "max_length": 128, "max_completion_length": 256}
    for rows, checkpointing, measured in ((8, True, 2398), (16, True, 3679), (8, False, 5897)):
        changes = {"per_device_train_batch_size": rows, "gradient_checkpointing": checkpointing}
        batch = sizes.training_memory(size, settings | changes, 1).batch
        assert batch / 2**20 == pytest.approx(measured, rel=0.25)
    longer = sizes.training_memory(size, settings | {"max_length": 2048}, 1).batch
    limited = sizes.training_memory(
        size, settings | {"max_length": 2048, "vllm_max_model_len": 512}, 1
    ).batch
    assert sizes.training_memory(size, settings, 1).batch < limited < longer
