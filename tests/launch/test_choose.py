"""Which recipe an experiment's name stands for: by the machine, the model and the flags."""

import shlex
import shutil
from pathlib import Path

import pytest

from helpers import planned
from paths import ROOT
from present import present
from swift_rlvr.launch.choose import read_words
from swift_rlvr.launch.machine import Gpu, Machine
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import TINY_MODEL


def machine(gpus: int, mib: int | None = 80 * 1024) -> Machine:
    names = (Gpu(str(index), "GPU", mib, 0) for index in range(gpus))
    return Machine(tuple(names), "580.65" if gpus else None, cores=16, memory=1 << 18)


@pytest.fixture(autouse=True)
def in_the_root(monkeypatch, tmp_path):
    """No model is in a hub's cache."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("HF_HOME", "HF_HUB_CACHE", "MODELSCOPE_CACHE"):
        monkeypatch.delenv(name, raising=False)


BATCH_4 = "countdown --per_device_train_batch_size 4"
BATCH_2 = "countdown --per_device_train_batch_size 2 --per_device_eval_batch_size 8"
COLOCATE_4 = "countdown_colocate --per_device_train_batch_size 4 --offload_optimizer true"
SMALL = f"{COLOCATE_4} --vllm_gpu_memory_utilization 0.45"
LORA_16 = (
    "countdown_lora --offload_model true --vllm_gpu_memory_utilization 0.7 "
    "--per_device_eval_batch_size 8"
)
# MiB as nvidia-smi has them of cards of 16, 24, 32, 40, 48 and 80 GB, of a T4, of an L4 and of an
# H200.
T4, RTX_4080, L4, RTX_4090, RTX_5090 = 15360, 16376, 23034, 24564, 32607
A100_40, A40, H100, H200 = 40960, 46068, 81559, 143771
MACHINES = [  # GPUs, their memory, the recipe with its flags, how many GPUs are left over
    (0, 0, "countdown_cpu", 0),
    (1, T4, LORA_16, 0),
    (1, RTX_4080, LORA_16, 0),
    (1, L4, "countdown_lora", 0),
    (1, RTX_4090, "countdown_lora", 0),
    (1, A40, "countdown_lora", 0),
    (1, H100, COLOCATE_4, 0),
    (1, H200, "countdown_colocate", 0),
    (2, RTX_4080, LORA_16, 0),
    (2, RTX_4090, "countdown_lora", 0),
    (2, A40, COLOCATE_4, 0),
    (2, H100, "countdown_colocate", 0),
    # 128 completions are not divided among three trainers, and a server takes more than 24 GB.
    (3, RTX_4090, "countdown_lora", 1),
    (3, A100_40, BATCH_2, 0),
    (3, A40, BATCH_4, 0),
    (3, H100, "countdown", 0),
    (4, RTX_4090, "countdown_lora", 0),
    (4, RTX_5090, SMALL, 0),
    (4, A100_40, "countdown_colocate", 0),
    (4, H100, "countdown_colocate", 0),
    (5, RTX_4090, BATCH_2, 0),
    (6, H100, "countdown", 0),
    (7, H100, "countdown", 0),
    (8, RTX_4080, LORA_16, 0),
    (8, L4, SMALL, 0),
    (8, RTX_4090, SMALL, 0),
    (8, RTX_5090, "countdown_colocate", 0),
    (8, A100_40, "countdown_colocate", 0),
    (8, H100, "countdown_colocate", 0),
]


@pytest.mark.parametrize("model", ["Qwen/Qwen2.5-3B-Instruct", "who/knows"])
@pytest.mark.parametrize(("gpus", "mib", "words", "left_over"), MACHINES)
def test_an_experiments_name_stands_for_the_recipe_of_the_machines_class(
    gpus, mib, words, left_over, model
):
    """A model of unknown size counts as the recipe's own."""
    name, *changes = words.split()
    plan = planned(
        "countdown", "--model", model, "--top_p", "1", machine=machine(gpus, mib), environ={}
    )
    assert plan.recipe == Path(f"scripts/configs/{name}.yaml")
    assert plan.settings["top_p"] == 1 and plan.settings["model"] == model
    assert shlex.join([*changes, "--model", model, "--top_p", "1"]) in shlex.join(plan.trainer.argv)
    assert plan.completions == 128
    used = {*plan.train_gpus, *plan.server_gpus}
    assert len(used) == gpus - left_over
    is_first_choice = words in ("countdown", "countdown_colocate", "countdown_cpu")
    by_memory = [note for note in plan.notes if note.startswith("chosen by memory: ")]
    assert len(by_memory) == (not is_first_choice)
    assert len(plan.notes) == len(by_memory) + bool(left_over)


@pytest.mark.parametrize(
    ("gpus", "mib", "typed", "expected"),
    [
        (1, H100, "--model Qwen/Qwen2.5-0.5B-Instruct", "countdown_colocate"),
        (1, H100, "--model Qwen/Qwen2.5-1.5B-Instruct", "countdown_colocate"),
        (1, RTX_4090, "--model Qwen/Qwen2.5-0.5B-Instruct", "countdown_colocate"),
        (1, H100, "--model Qwen/Qwen2.5-7B-Instruct", "countdown_lora"),
        (8, H100, "--model Qwen/Qwen2.5-7B-Instruct", "countdown_colocate"),
        # The other flags count too.
        (1, H100, "--per_device_train_batch_size 2 --offload_optimizer true", "countdown_colocate"),
        (2, A40, "--per_device_train_batch_size 4", "countdown_colocate"),
        (1, H100, "--max_completion_length 8192", "countdown_lora"),
        (1, H100, "--tuner_type lora", "countdown_lora"),
        # The last one where none fits: the doctor warns.
        (1, RTX_4090, "--model Qwen/Qwen2.5-32B-Instruct", LORA_16),
        (1, RTX_4090, "--tuner_type full", COLOCATE_4),
    ],
)
def test_the_choice_reads_the_users_model_and_flags(gpus, mib, typed, expected):
    name, *changes = expected.split()
    for words, environ in (
        (["countdown", *typed.split()], {}),
        (["countdown", *typed.split()[2:]], {"MODEL": typed.split()[1]}),
    ):
        if environ and not typed.startswith("--model"):
            continue
        plan = planned(*words, machine=machine(gpus, mib), environ=environ)
        assert plan.recipe.stem == name
        assert shlex.join(changes) in shlex.join(plan.trainer.argv)
        assert ("offload_optimizer" in plan.settings) == ("offload_optimizer" in expected + typed)


def test_the_choice_stays_when_the_model_has_been_downloaded(tmp_path, monkeypatch):
    """Whatever its files say of its size: a name's 3B are 3.09."""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    before = planned("countdown", machine=machine(1, mib=76 * 1024), environ={})
    snapshot = tmp_path / "hub" / "models--Qwen--Qwen2.5-3B-Instruct" / "snapshots" / "abc"
    shutil.copytree(TINY_MODEL, snapshot)
    after = planned("countdown", machine=machine(1, mib=76 * 1024), environ={})
    assert (after.recipe, after.trainer.argv) == (before.recipe, before.trainer.argv)


def test_gpus_of_unknown_memory_and_several_nodes_get_a_recipe_too():
    plan = planned("countdown", machine=machine(1, mib=None), environ={})
    assert plan.recipe.stem == "countdown_lora" and plan.settings["offload_model"] is True
    # The GPUs of other nodes may differ, their settings must not.
    nodes = {"NNODES": "2", "MASTER_ADDR": "10.0.0.1"}
    plan = planned("countdown", machine=machine(8, mib=RTX_4090), environ=nodes)
    assert plan.recipe.stem == "countdown_colocate"
    assert plan.settings["per_device_train_batch_size"] == 8


def test_a_recipe_after_an_experiments_name_takes_its_place():
    assert planned(
        "countdown", "scripts/configs/gsm8k.yaml", machine=machine(3), environ={}
    ).recipe == Path("scripts/configs/gsm8k.yaml")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("cuntdown", r"^cuntdown: did you mean countdown\? The experiments are countdown, "),
        ("mine", r"^mine: there is no such experiment\. The experiments are countdown, "),
        ("nowhere.yaml", "cannot read nowhere.yaml"),
    ],
)
def test_a_word_that_names_no_recipe(word, message):
    with pytest.raises(InputError, match=message):
        planned(word)


@pytest.mark.parametrize(("gpus", "name"), [(0, "countdown_trl_cpu"), (1, "r1_zero_trl")])
def test_trl_stands_for_a_recipe_of_its_own(gpus, name):
    recipe, flags = read_words(["trl", "--seed", "7"], machine(gpus))
    assert present(recipe).path.name == f"{name}.yaml"
    assert flags == ["--seed", "7"]
