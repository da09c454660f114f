"""What the end-to-end tests share: one rollout server, and the trainings that many of them read.

A rollout server takes half a minute to start and a training as long, so that one server serves
everybody, and the tests of a module read what one training has left.
"""

import atexit
import json
import re
import shutil
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest

from e2e.programs import PLUGINS, Launcher, RolloutServer, Training, train_on
from paths import DATASETS, words
from sharing import ONE_SERVER
from swift_rlvr.runs.folder import whole_checkpoints
from swift_rlvr.training.ms_swift.patching import apply_patches
from swift_rlvr.training.ms_swift.table import CPU
from swift_rlvr.utils.jsonl import read_json, read_jsonl, write_jsonl
from swift_rlvr.utils.network import free_port

# Programs and plugins, which change the process that loads them.
collect_ignore = ["plugins", "zero2_ranks.py"]


def pytest_collection_modifyitems(items):
    """In several processes each file with the server that is not known for it would start one more."""
    for item in items:
        file = item.location[0]
        if "rollout_server" in item.fixturenames and file not in ONE_SERVER:
            raise pytest.UsageError(f"{file} is missing in ONE_SERVER, tests/sharing.py")


@pytest.fixture(scope="session")
def rollout_server(tmp_path_factory):
    """The rollout server of all tests. Whatever trains or sends weights changes what it samples from."""
    server = RolloutServer(tmp_path_factory.mktemp("server"))
    yield server
    server.stop()


@pytest.fixture
def client(rollout_server, monkeypatch):
    """ms-swift's own client to the server, as `swift rlhf` has it on this machine."""
    for patch in CPU.trainer:  # set to itself: after the test the original comes back
        owner, attribute = re.split(r"[:.](?=\w+$)", patch.target)
        monkeypatch.setattr(resolve_name(owner), attribute, resolve_name(patch.target))
    apply_patches(CPU.trainer)
    from swift.rlhf_trainers.vllm_client import VLLMClient

    client = VLLMClient(base_urls=[rollout_server.url], group_ports=rollout_server.sync_port)
    client.close_communicator()
    client.init_communicator()
    yield client
    client.close_communicator()
    atexit.unregister(client.close_communicator)


@pytest.fixture
def launcher(tmp_path):
    """Of a folder of its own."""
    launcher = Launcher(tmp_path)
    yield launcher
    launcher.kill()


# Trainings that tests of several modules read

STEPS = 3  # of `mixed`
# Seconds, in place of torchrun's 900: less than a launch takes for its checks, after which it starts its own.
TORCHRUN_WAITS = 1


def tasks_of_three_kinds(folder: Path) -> Path:
    """A file with eight rows each of Countdown, mathematics and code."""
    countdown = [row for _, row in read_jsonl(DATASETS / "countdown" / "tiny_train.jsonl")]
    rows = [{**row, "task": "countdown"} for row in countdown[:8]]
    for number in range(8):
        question = f"What is {number} + 4? Think in <think> tags, answer in <answer> tags."
        messages = [{"role": "user", "content": question}]
        solution = rf"It is $\boxed{{{number + 4}}}$."
        rows.append({"messages": messages, "solution": solution, "task": "math"})
        tests = [f"assert add({number}, 4) == {number + 4}"]
        messages = [{"role": "user", "content": f"Write add(a, b), for example of {number} and 4."}]
        rows.append({"messages": messages, "tests": tests, "task": "code"})
    path = folder / "tasks.jsonl"
    write_jsonl(path, rows)
    return path


@pytest.fixture(scope="session")
def mixed(rollout_server, tmp_path_factory) -> Training:
    """Four tasks of two datasets in one training on two nodes, which are two launches on this
    machine: test_training.py, test_mixed_tasks.py, test_nodes.py.

    Of the 24 completions of a step each node makes 12. A quarter of each dataset, 8 of 32 rows, is
    kept for an evaluation of ms-swift's after the last step. The weights go to the server in three
    parts, as from recipes for GPUs: two of two layers each, and the embeddings.
    """
    folder = tmp_path_factory.mktemp("mixed")
    launcher = Launcher(folder)
    launcher.use(rollout_server)
    flags = f"""
        --max_steps {STEPS} --seed 1 --log_completions true --report_to tensorboard
        --dataset mixed:{tasks_of_three_kinds(folder)} gsm8k:{DATASETS}/gsm8k/train.jsonl#8
        --split_dataset_ratio 0.25 --eval_steps {STEPS} --per_device_eval_batch_size 8
        --reward_funcs external_countdown external_accuracy external_code external_cosine
        external_format external_share_of_digits
        --per_device_train_batch_size 12 --max_length 400 --move_model_batches 3
        --save_steps {STEPS} --save_only_model true
    """
    variables = {
        "EXTERNAL_FORMAT_TASKS": "countdown,math,gsm8k",
        "NNODES": 2,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": free_port(),
        "NPROC_PER_NODE": 1,
        # What torchrun would go by if the launcher did not tell it SERVER_TIMEOUT.
        "PET_RDZV_CONF": f"timeout={TORCHRUN_WAITS}",
    }
    try:
        second = launcher.start(*words(flags), NODE_RANK=1, **variables)
        torchrun = "the second node's torchrun"
        second.wait_for(lambda: launcher.members(second, "trainer"), torchrun)
        # The first node comes late, which is what is tried here.
        first = launcher.start(*words(flags), NODE_RANK=0, **variables)
        assert first.finish() == 0, first.text()[-4000:]
        assert second.finish() == 0, second.text()[-4000:]
    finally:
        launcher.kill()
    return Training(launcher.output, first.text(), second.text())


HELD_OUT: dict[str, Any] = {
    "SWIFT_RLVR_HELD_OUT_DATASET": f"countdown:{DATASETS}/countdown/tiny_validation.jsonl",
    "SWIFT_RLVR_HELD_OUT_ROWS": 9,  # 27 completions, which two ranks cannot share evenly
    "SWIFT_RLVR_HELD_OUT_SAMPLES": 3,
    "SWIFT_RLVR_HELD_OUT_EVERY": 2,
}
LEVELS = DATASETS / "countdown" / "tiny_levels_train.jsonl"
OWN = PLUGINS / "own_rewards.py"
# The same reward in every form that one of one's own may have: what the trainer is told, and the name that is logged.
OWN_REWARDS = {
    "external_single": "SingleReward",
    "external_single_later": "SingleLaterReward",
    "external_batch": "BatchReward",
    "external_batch_later": "BatchLaterReward",
    "external_of_messages": "OfMessagesReward",
    f"{OWN}:by_path": "by_path",
    f"{OWN}:ByPathLater": "ByPathLater",
    "synchronous": "Synchronous",
    "asynchronous": "Asynchronous",
}
CURRICULUM = f"""
    --external_plugins {OWN} plugin/rlvr_plugin.py
    --reward_funcs external_countdown format external_sometimes {" ".join(OWN_REWARDS)}
    --dataset countdown:{LEVELS} --dataset_shuffle false --dataloader_num_workers 2
    --callbacks reward_reasons curriculum held_out --log_completions true
    --max_completion_length 64
    --save_strategy steps --save_steps 100 --save_total_limit 2
"""


@pytest.fixture(scope="session")
def curriculum(rollout_server, tmp_path_factory) -> Training:
    """Six steps with a curriculum, rewards of one's own, and held-out evaluations before the first and
    after every second: test_curriculum.py, test_held_out.py, test_own_rewards.py.
    """
    folder = tmp_path_factory.mktemp("curriculum")
    flags = words(f"{CURRICULUM} --max_steps 6")
    return train_on(rollout_server, folder, *flags, **HELD_OUT)


@pytest.fixture(scope="session")
def continued_curriculum(curriculum, rollout_server, tmp_path_factory) -> Training:
    """`curriculum`, continued from its last checkpoint in another folder, as if its best held-out
    success had been 1.1. Nothing is better, so that its patience of two ends it at step 10.
    """
    folder = tmp_path_factory.mktemp("continued")
    checkpoint = folder / "checkpoint-6"
    shutil.copytree(whole_checkpoints(curriculum.output)[-1], checkpoint)
    state = read_json(checkpoint / "trainer_state.json")
    memory = state["stateful_callbacks"]["swift_rlvr.held_out"]
    memory["best"] = 1.1
    memory["without_best"] = 0
    (checkpoint / "trainer_state.json").write_text(json.dumps(state))
    flags = words(f"{CURRICULUM} --max_steps 40 --resume_from_checkpoint {checkpoint}")
    variables = HELD_OUT | {"SWIFT_RLVR_HELD_OUT_PATIENCE": 2}
    return train_on(rollout_server, folder, *flags, **variables)
