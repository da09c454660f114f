"""The recipes of scripts/configs: the experiment's values, what each differs in, and that their
trainers read them so.

ms-swift's own arguments are built and checked on the CPU, without a server.
"""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml

from helpers import planned
from paths import ROOT
from swift_rlvr.evaluation.models import SMOLLM2
from swift_rlvr.launch import estimate
from swift_rlvr.launch.machine import Gpu, Machine
from swift_rlvr.launch.settings import ACCUMULATION, BATCH, GrpoSettings
from swift_rlvr.rewards import REWARDS
from swift_rlvr.runs.curriculum import CurriculumSettings
from swift_rlvr.tasks import TASKS
from swift_rlvr.tasks.countdown import SYSTEM_PROMPT
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.network import free_port

CONFIGS = ROOT / "scripts" / "configs"
RECIPES = sorted(path.name for path in CONFIGS.glob("*.yaml"))
# Of ms-swift 4.6.0.
BUILT_IN_REWARDS = {"accuracy", "format", "cosine", "repetition", "soft_overlong"}
TINY = [
    "--model",
    str(TINY_MODEL),
    "--model_type",
    "qwen2",
    "--template",
    "qwen2_5",
    "--check_model",
    "false",
]


def recipe(name: str) -> dict:
    return yaml.safe_load((CONFIGS / name).read_text())


def header(name: str) -> str:
    return (CONFIGS / name).read_text().partition("\n\n")[0]


def recipes_of(trainer: str | None) -> list[str]:
    return [name for name in RECIPES if recipe(name).get("trainer") == trainer]


TRAININGS = [name for name in recipes_of(None) if "rlhf_type" in recipe(name)]

# The experiments, value by value as their sources have them (top_p, top_k and split_dataset_ratio
# were ms-swift's defaults then; it reported to wandb, and named the dataset by its id). Evaluations
# differ: the source samples eight completions of a task, in batches of 8.
COUNTDOWN: dict[str, Any] = {
    "rlhf_type": "grpo",
    "model": "Qwen/Qwen2.5-3B-Instruct",
    "reward_funcs": ["external_countdown", "format"],
    "use_vllm": True,
    "vllm_mode": "server",
    "vllm_server_host": "127.0.0.1",
    "vllm_server_port": 8000,
    "tuner_type": "full",
    "torch_dtype": "bfloat16",
    "dataset": "countdown#50000",
    "split_dataset_ratio": 0.01,
    "max_length": 2048,
    "max_completion_length": 1024,
    "num_train_epochs": 1,
    "per_device_train_batch_size": 8,
    "learning_rate": 5e-7,
    "gradient_accumulation_steps": 8,
    "eval_steps": 500,
    "save_steps": 100,
    # The source keeps 20, of 42 GB each.
    "save_total_limit": 3,
    "logging_steps": 1,
    "output_dir": "output/GRPO_COUNTDOWN",
    "warmup_ratio": 0.01,
    "dataloader_num_workers": 4,
    "num_generations": 8,
    "temperature": 1.0,
    "top_p": 0.9,
    "top_k": 50,
    "system": "You are a helpful assistant. You first thinks about the reasoning process in the mind "
    "and then provides the user with the answer.",
    "deepspeed": "zero3",
    "log_completions": True,
    "beta": 0.001,
    "num_iterations": 1,
}
GSM8K = {
    "reward_funcs": ["external_format_strict", "external_tag_count", "external_accuracy"],
    "reward_weights": [0.5, 0.5, 1.0],
    "temperature": 1.0,
    "top_p": 0.9,
    "top_k": 50,
    "learning_rate": 1e-6,
    "beta": 0.04,
    "epsilon": 0.2,
    "num_iterations": 1,
}
R1_ZERO = {
    "model": "Qwen/Qwen2.5-0.5B-Instruct",
    "dataset": "numina_math_tir",
    "reward_funcs": [
        *("external_accuracy", "external_format", "external_reasoning_steps"),
        *("external_cosine", "external_repetition_penalty"),
    ],
    "num_train_epochs": 1,
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 2,
    "learning_rate": 5e-5,
    "warmup_ratio": 0.1,
    "weight_decay": 0.01,
    "logging_steps": 10,
    "save_steps": 50,
    "save_total_limit": 2,
    "dataloader_num_workers": 2,
    "seed": 42,
}
# What other hardware changes in the Countdown experiment.
ACCUMULATES = {"gradient_accumulation_steps", "output_dir"}
COLOCATE = ACCUMULATES | {"vllm_mode", "vllm_server_host", "vllm_server_port"}
LORA = COLOCATE | {"per_device_train_batch_size", "tuner_type", "learning_rate", "deepspeed"}
CARRIED = [
    ("countdown", COUNTDOWN, ACCUMULATES),
    ("countdown_colocate", COUNTDOWN, COLOCATE),
    ("countdown_lora", COUNTDOWN, LORA),
    ("gsm8k", GSM8K, set()),
    ("r1_zero", R1_ZERO | {"eval_steps": 50}, set()),
    ("r1_zero_trl", R1_ZERO, set()),
]


def completions(values: dict) -> int:
    """A step's, of all processes on all nodes."""
    env = values["ENV"]
    batch = values["per_device_train_batch_size"] * values["gradient_accumulation_steps"]
    return env["NPROC_PER_NODE"] * env.get("NNODES", 1) * batch


def on(gpus: int, *words: object, gigabytes: int = 80, **environ: str):
    """The plan of `swift-rlvr train WORDS` on so many GPUs."""
    there = tuple(Gpu(str(index), "GPU", gigabytes * 1000, 0) for index in range(gpus))
    return planned(
        *words, machine=Machine(there, "580.82", cores=16, memory=131072), environ=environ
    )


@pytest.mark.parametrize(("name", "experiment", "changes"), CARRIED)
def test_a_recipe_carries_its_experiments_values(name, experiment, changes):
    values = recipe(f"{name}.yaml")
    for key in experiment.keys() - changes:
        assert values[key] == experiment[key], key


def test_on_three_gpus_the_countdown_recipe_is_the_experiment(monkeypatch):
    monkeypatch.chdir(ROOT)
    plan = on(3, "countdown")
    assert (plan.processes, plan.train_gpus, plan.server_gpus) == (2, ("0", "1"), ("2",))
    assert plan.settings.items() >= COUNTDOWN.items()
    assert plan.completions == 128


def test_every_gpu_recipe_of_the_experiment_has_128_completions_a_step_and_a_folder_of_its_own():
    folders = []
    for name in RECIPES:
        values = recipe(name)
        if values.get("dataset") != COUNTDOWN["dataset"]:
            continue
        folders.append(values["output_dir"])
        assert completions(values) == 128
        if "vllm_max_model_len" in values and "max_length" in values:
            context = GrpoSettings.read(values).longest_row
            assert values["vllm_max_model_len"] == context
    assert len(folders) == len(set(folders)) == 3


def test_the_server_for_gpus_holds_the_models_context_of_the_trainings():
    server = recipe("rollout.yaml")
    assert server["model"] == COUNTDOWN["model"] and server["host"] == "127.0.0.1"
    assert (
        server["vllm_max_model_len"] == COUNTDOWN["max_length"] + COUNTDOWN["max_completion_length"]
    )


def test_the_countdown_experiment_in_small_has_the_same_settings_and_a_model_and_tasks_that_are_here():
    """Its prompt is the task's own, with which the tiny model was made. One reward comes on top, for
    the length.
    """
    small, server = recipe("countdown_cpu.yaml"), recipe("rollout_cpu.yaml")
    for name in ("use_vllm", "vllm_mode", "num_generations", "temperature", "beta"):
        assert small[name] == COUNTDOWN[name]
    assert small["reward_funcs"] == [*COUNTDOWN["reward_funcs"], "external_soft_overlong"]
    assert completions(small) == completions(COUNTDOWN | {"ENV": {"NPROC_PER_NODE": 2}}) == 128
    assert small["system"] == SYSTEM_PROMPT
    assert ROOT / small["model"] == ROOT / server["model"] == TINY_MODEL
    assert (
        server["model_type"] == small["model_type"]
        and server["vllm_max_model_len"] == small["max_length"]
    )


def test_levels_differ_from_the_experiment_in_their_rows_and_how_these_are_drawn():
    for name, base in (
        ("countdown_levels_cpu", "countdown_cpu"),
        ("countdown_levels", "countdown"),
    ):
        levels, other = recipe(f"{name}.yaml"), recipe(f"{base}.yaml")
        assert levels.pop("callbacks") == ["reward_reasons", "held_out", "curriculum"]
        assert "levels" in levels.pop("dataset") and "LEVELS" in levels.pop("output_dir").upper()
        env = levels.pop("ENV")
        CurriculumSettings.from_environment({key: str(value) for key, value in env.items()})
        rest = {key: value for key, value in other.items() if key in levels}
        assert levels == rest | {"split_dataset_ratio": 0}
        assert other.keys() - levels.keys() <= {
            "ENV",
            "dataset",
            "output_dir",
            "callbacks",
            "eval_steps",
            "num_generations_eval",
        }
        assert env["NPROC_PER_NODE"] == other["ENV"]["NPROC_PER_NODE"]


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_says_how_it_is_run_and_names_things_that_are_here(name):
    text = header(name)
    assert all(line.startswith("#") for line in text.splitlines())
    assert "Hardware:" in text
    assert f"scripts/configs/{name}" in text
    for script in re.findall(r"\bscripts/\S+\.sh\b", text):
        assert (ROOT / script).is_file()
    values = recipe(name)
    named = [
        values.get(key, "")
        for key in ("model", "dataset", "val_dataset", "external_plugins", "deepspeed")
    ]
    for path in (value.rpartition(":")[2].partition("#")[0] for value in named if value):
        if path.startswith(("plugin/", "datasets/", "scripts/")):
            assert (ROOT / path).exists(), path
    rewards = values.get("reward_funcs", [])
    assert set(rewards) <= REWARDS.keys() | BUILT_IN_REWARDS
    assert len(values.get("reward_weights", rewards)) == len(rewards)
    ours = {id for task in TASKS.values() for id in (task.name, task.ms_dataset_id)}
    for key in ("dataset", "val_dataset"):
        if key in values:
            assert values[key].partition(":")[0].partition("#")[0] in ours


@pytest.mark.parametrize("name", TRAININGS)
def test_a_recipe_of_ms_swift_says_for_how_many_processes_it_is_and_fills_its_groups(name):
    values = recipe(name)
    assert values["add_version"] is False
    assert completions(values) % values["num_generations"] == 0
    if "val_dataset" in values or values.get("split_dataset_ratio"):
        at_once = values["ENV"]["NPROC_PER_NODE"] * values["per_device_eval_batch_size"]
        assert at_once % values.get("num_generations_eval", values["num_generations"]) == 0
    if values["vllm_mode"] == "colocate":
        assert not [key for key in values if key.startswith("vllm_server")], (
            "ms-swift would connect to a server"
        )
    if values["tuner_type"] == "full":
        assert "deepspeed" in values, (
            "without it bfloat16 weights are updated in bfloat16, which loses small updates"
        )


@pytest.mark.parametrize("name", ["gsm8k", "r1_zero"])
def test_on_one_gpu_the_plan_of_a_recipe_for_it_is_the_recipe(name, monkeypatch):
    monkeypatch.chdir(ROOT)
    plan = on(1, f"scripts/configs/{name}.yaml", gigabytes=24)
    assert (plan.train_gpus, plan.server_gpus, plan.notes) == (("0",), (), ())
    assert plan.completions == completions(recipe(f"{name}.yaml"))


def test_my_data_fits_one_small_gpu_and_marks_what_its_user_changes(monkeypatch):
    monkeypatch.chdir(ROOT)
    plan = on(1, "my_data", "--dataset", "math:mine.jsonl", gigabytes=16)
    assert plan.settings["dataset"] == "math:mine.jsonl"
    assert (plan.completions, plan.notes, plan.added) == (64, (), ())
    assert estimate.memory(plan).fits
    assert estimate.memory(on(1, "my_data", "--model", "Qwen/Qwen2.5-3B", gigabytes=24)).fits
    values = recipe("my_data.yaml")
    lengths = values["max_length"] + values["max_completion_length"]
    assert values["vllm_max_model_len"] == lengths
    marked = []
    for text in (CONFIGS / "my_data.yaml").read_text().partition("\n\n")[2].splitlines():
        if "# CHANGE" in text:
            marked.append(text.partition(":")[0])
    assert marked == [
        *("model", "dataset", "max_length", "reward_funcs", "max_completion_length", "output_dir")
    ]


def test_without_a_gpu_my_data_names_the_recipe_for_a_cpu():
    message = r"^my_data: needs a GPU, and none is visible; for a CPU there is .*smollm2_cpu\.yaml"
    with pytest.raises(InputError, match=message):
        on(0, "my_data")


def test_the_table_of_machines_is_what_is_planned(monkeypatch):
    monkeypatch.chdir(ROOT)
    # MiB as nvidia-smi has them.
    memory = {"16": 16376, "24": 24564, "40": 40960, "48": 46068, "80": 81559}
    text = (ROOT / "docs" / "recipes" / "index.md").read_text()
    table = text.partition("GiB for each trainer |\n")[2].partition("\n\n")[0]
    pattern = r"\| (\d) x (\d+) GB \| (.+?) \| (\d) x (\d) x (\d+) = (\d+) \| (\d+) \|"
    rows = re.findall(pattern, table)
    assert len(rows) == len(table.splitlines()) - 1 > 11
    for gpus, gigabytes, roles, *step, needed in rows:
        cards = tuple(Gpu(str(index), "GPU", memory[gigabytes], 0) for index in range(int(gpus)))
        machine = Machine(cards, "580.82", cores=16, memory=131072)
        plan = planned("countdown", machine=machine, environ={})
        settings = plan.settings
        planned_step = [plan.processes, settings[BATCH], settings[ACCUMULATION], plan.completions]
        assert [str(number) for number in planned_step] == step, (gpus, gigabytes)
        memory_line = estimate.memory(plan)
        assert memory_line.fits, (gpus, gigabytes)
        assert memory_line.text.startswith(f"training about {needed} of "), (gpus, gigabytes)
        if plan.server_gpus:
            assert roles.startswith(f"{plan.processes} + {len(plan.server_gpus)}")
        else:
            assert roles in ("all do both", "both do both", "it does both")


@pytest.mark.parametrize(
    ("gpus", "words", "tasks", "batches"),
    [
        (3, "countdown", 500, 16),
        (8, "countdown", 500, 4),
        (1, "scripts/configs/r1_zero.yaml", 99, 4),
        # As the sources have it.
        (3, "countdown --num_generations_eval 8 --per_device_eval_batch_size 8", 500, 250),
    ],
)
def test_an_evaluation_is_a_few_batches(gpus, words, tasks, batches, monkeypatch):
    """ms-swift makes them one after another; the numbers are those of docs/recipes/memory.md."""
    monkeypatch.chdir(ROOT)
    plan = on(gpus, *words.split())
    at_once = plan.processes * plan.settings["per_device_eval_batch_size"]
    completions = tasks * plan.settings["num_generations_eval"]
    assert math.ceil(completions / at_once) == batches
    # GRPOTrainer asserts it.
    assert tasks >= at_once // plan.settings["num_generations_eval"]


@pytest.mark.parametrize("name", TRAININGS)
def test_a_recipe_for_several_gpus_sends_the_weights_in_parts(name):
    values = recipe(name)
    if name.endswith("_cpu.yaml") or values["ENV"]["NPROC_PER_NODE"] == 1:
        return
    assert values["move_model_batches"] == 16


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_model_and_datasets_of_a_recipe_are_found_on_both_hubs(name):
    """By ms-swift's own tables, with our tasks registered."""
    from swift.dataset.dataset_syntax import DatasetSyntax
    from swift.dataset.register import DATASET_MAPPING
    from swift.model.register import MODEL_MAPPING
    from swift.utils import import_external_file

    import_external_file(str(ROOT / "plugin" / "rlvr_plugin.py"))
    values = recipe(name)
    for key in ("dataset", "val_dataset"):
        dataset = DatasetSyntax.parse(values.get(key, "countdown"))
        if dataset.dataset != "reasoning_gym" and not any(
            Path(each).suffix for each in dataset.subsets
        ):
            meta = DATASET_MAPPING[dataset.dataset]
            assert meta.ms_dataset_id and meta.hf_dataset_id, dataset
    if values.get("model", SMOLLM2) != SMOLLM2 and not (ROOT / values["model"]).exists():
        models = [
            each
            for meta in MODEL_MAPPING.values()
            for group in meta.model_groups
            for each in group.models
        ]
        assert any(values["model"] == each.ms_model_id == each.hf_model_id for each in models)


@pytest.mark.slow
@pytest.mark.parametrize("name", recipes_of(None))
def test_ms_swift_reads_a_recipe_as_it_is_meant_and_flags_override_it(name, monkeypatch):
    """With ms-swift's own two steps: YAML to flags, flags to fields; an unknown key is an error of
    the second.
    """
    from swift.arguments import RLHFArguments, RolloutArguments
    from swift.cli.main import parse_yaml_args
    from swift.utils.utils import HfArgumentParser, _patch_get_type_hints

    monkeypatch.chdir(ROOT)
    argv = [f"scripts/configs/{name}", "--seed", "7", "--model", "another"]
    expected = recipe(name) | {"seed": 7, "model": "another"}
    with mock.patch.dict(os.environ):
        for variable in (env := expected.pop("ENV", {})):
            os.environ.pop(variable, None)
        parse_yaml_args(argv)
        assert {variable: os.environ[variable] for variable in env} == {
            key: str(value) for key, value in env.items()
        }
    with _patch_get_type_hints():
        parser = HfArgumentParser(
            [RolloutArguments if name.startswith("rollout") else RLHFArguments]
        )
    values = vars(parser.parse_args(argv))
    for key, value in expected.items():
        assert values[key] in (value, [value], str(value)), (key, values[key], value)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, dict]:
    """What ms-swift makes of every recipe; in a process of its own, because it changes the whole
    process.
    """
    out = tmp_path_factory.mktemp("built")
    command = [sys.executable, __file__, str(out), *TRAININGS]
    port = str(free_port())  # where a process group of one will meet
    environment = os.environ | {
        "MASTER_PORT": port,
        "DS_ACCELERATOR": "cpu",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "plugin", ROOT / "tests"))),
    }
    run = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1800
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads((out / "built.json").read_text())


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", TRAININGS)
def test_ms_swift_accepts_what_a_recipe_combines(name, built):
    """RLHFArguments and GRPOConfig with all their checks, for as many processes as the recipe
    says.
    """
    values, made = recipe(name), built[name]
    assert made["generation_batch_size"] == completions(values)
    hosts = values.get("vllm_server_host")
    assert made["servers"] == ([hosts] if isinstance(hosts, str) else hosts)
    evaluates = bool("val_dataset" in values or values.get("split_dataset_ratio"))
    assert made["eval_strategy"] == ("steps" if evaluates else "no")
    assert made["metric_for_best_model"] == "reward"
    assert made["sleep_level"] == values.get("sleep_level", 0)
    assert made["output_dir"] == str(Path(made["folder"]) / name)
    assert (made["ref_model"] is None) == (values["tuner_type"] == "lora")


def build(out: Path, names: list[str]) -> None:
    """Builds RLHFArguments of recipes and writes what they came to to out/built.json.

    The tiny model stands in for the recipes', so that nothing is downloaded. The server is not
    connected to, and the number of processes is the recipe's without their being started.
    """
    from swift.arguments import RLHFArguments
    from swift.cli.main import parse_yaml_args
    from swift.utils import parse_args
    from transformers import TrainingArguments

    made = {}
    for name in names:
        values = recipe(name)
        env = values.get("ENV", {})
        processes = env["NPROC_PER_NODE"] * env.get("NNODES", 1)
        argv = [
            f"scripts/configs/{name}",
            *TINY,
            "--use_cpu",
            "true",
            "--output_dir",
            str(out / name),
        ]
        with (
            mock.patch.dict(os.environ),
            mock.patch.object(RLHFArguments, "_init_external_vllm", lambda self: None),
            mock.patch.object(TrainingArguments, "world_size", processes),
        ):
            for variable in env:
                os.environ.pop(variable, None)
            parse_yaml_args(argv)
            args, unknown = parse_args(RLHFArguments, argv)
        assert not unknown, unknown
        config = args.training_args
        made[name] = {
            "servers": args.vllm_server_host,
            "folder": str(out),
            "ref_model": args.ref_model,
            "generation_batch_size": config.generation_batch_size,
            "eval_strategy": str(getattr(config.eval_strategy, "value", config.eval_strategy)),
            "metric_for_best_model": config.metric_for_best_model,
            "sleep_level": config.sleep_level,
            "output_dir": config.output_dir,
        }
    (out / "built.json").write_text(json.dumps(made))


@pytest.mark.slow
@pytest.mark.parametrize("name", recipes_of("trl"))
def test_trl_reads_a_recipe_as_it_is_meant(name):
    from swift_rlvr.training.arguments import read_command
    from swift_rlvr.training.trl import read

    with mock.patch.dict(os.environ):
        command = read_command([str(CONFIGS / name), "--seed", "7"])
    assert command.trainer == "trl"
    check(name, *read(command))


def check(name: str, *parts) -> None:
    """The settings of a recipe, read with `--seed 7`, are those in its file."""
    expected = recipe(name) | {"seed": 7}
    del expected["trainer"]
    expected.pop("ENV", None)
    for key, value in expected.items():
        (actual,) = (getattr(part, key) for part in parts if hasattr(part, key))
        assert actual == value or actual == [value] or list(actual) == value, key


if __name__ == "__main__":
    build(Path(sys.argv[1]), sys.argv[2:])
