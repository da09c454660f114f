"""Each adapter is found and called by the trainer's own code, on fixed completions.

The package of a trainer is installed for its test, in a folder that is put before this
environment's packages. slime, NeMo Gym and NeMo RL are on no index: test_adapters.py simulates
them.
"""

import json
import os
import subprocess
import sys

import pytest

from mixed_rows import COMPLETIONS, MIXED, VERIFIERS, prepare
from paths import ROOT
from swift_rlvr.utils.files import TINY_MODEL

pytestmark = pytest.mark.e2e

# What its own code needs of what it requires; without --no-deps it would bring another torch.
VERL = "--no-deps verl==0.9.1 ray tensordict pyvers omegaconf antlr4-python3-runtime==4.9.3 codetiming orjson"
SKYRL = "--no-deps skyrl_gym==0.4.0"
OPENRLHF = "--no-deps openrlhf==0.11.2 pylatexenc"
VERIFIERS_PACKAGE = "verifiers==0.4.0"
TEXTS = json.dumps(list(COMPLETIONS.values()))

COMMON = """
import asyncio, json, os, sys
LABEL = json.dumps({"nums": [3, 4], "target": 7, "task": "countdown"})
RIGHT = "<think>sum</think><answer>3 + 4</answer>"
WRONG = "<think>sum</think><answer>3 - 4</answer>"
UNGRADED = json.dumps({"nums": None, "target": 7, "task": "countdown"})
def show(*values):
    print(json.dumps(values))
"""

PROGRAMS = {
    "verl": """
from omegaconf import OmegaConf
from verl.trainer.ppo.metric_utils import process_validation_metrics
from verl.trainer.ppo.reward import get_custom_reward_fn

function = {"path": "pkg://swift_rlvr.adapters.verl", "name": "compute_score"}
function["reward_kwargs"] = {"rewards": ["countdown", "format"], "weights": [1, 0.5]}
score = get_custom_reward_fn(OmegaConf.create({"reward": {"custom_reward_function": function}}))
results = []
for text, label in ((RIGHT, LABEL), (WRONG, LABEL), ("3 + 4", LABEL), (RIGHT, UNGRADED)):
    results.append(score(data_source="countdown", solution_str=text, ground_truth=label,
                         extra_info={"index": 0, "num_turns": None, "rollout_reward_scores": {}}))
columns = {key: [result[key] for result in results] for key in results[0]}
metrics = process_validation_metrics(["countdown"] * 4, list("abcd"), columns)["countdown"]

# A mixed file, by its own reader and reward manager, which decodes tokens and calls in a thread.
import numpy as np
import torch
from transformers import AutoTokenizer
from verl import DataProto
from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn

file, model, completions = sys.argv[1:4]
tokenizer = AutoTokenizer.from_pretrained(model)
config = OmegaConf.create({"cache_dir": "cache", "filter_overlong_prompts": False})
batch = collate_fn(list(RLHFDataset(file, tokenizer, config)))
mixed = []
for rewards in (["accuracy", "code", "countdown", "exact_match", "format"], None):
    function["reward_kwargs"] = {"rewards": rewards}
    score = get_custom_reward_fn(OmegaConf.create({"reward": {"custom_reward_function": function}}))
    async def graded():
        manager = NaiveRewardManager(config, tokenizer, score)
        infos = []
        for index, texts in enumerate(json.loads(completions)):
            for text in texts:
                ids = torch.tensor([tokenizer(text)["input_ids"]])
                tensors = {"responses": ids, "attention_mask": torch.ones_like(ids)}
                row = {key: np.array([batch[key][index]], dtype=object)
                       for key in ("data_source", "reward_model", "extra_info")}
                data = DataProto.from_dict(tensors=tensors, non_tensors=row)
                infos.append((await manager.run_single(data))["reward_extra_info"])
        return infos
    infos = asyncio.run(graded())
    # As its reward loop and agent loop collect them: the keys of the first one.
    mixed.append({key: [info[key] for info in infos] for key in infos[0]})
    process_validation_metrics(list(batch["data_source"].repeat(2)), list("abcdefgh"), mixed[-1])
show([result["score"] for result in results], [result["countdown_reason"] for result in results],
     metrics["score"]["mean@1"], metrics["countdown"]["mean@1"], mixed)
""",
    "skyrl": """
import skyrl_gym
from skyrl_gym.envs import register

register(id="swift_rlvr", entry_point="swift_rlvr.adapters.skyrl:RewardEnv")
results = []
for text, label in ((RIGHT, LABEL), (WRONG, LABEL), (RIGHT, UNGRADED)):
    extras = {"data_source": "countdown", "reward_spec": {"method": "rule", "ground_truth": label}}
    env = skyrl_gym.make("swift_rlvr", env_config={"rewards": ["countdown"]}, extras=extras)
    prompt, info = env.init([{"role": "user", "content": "?"}])
    output = env.step(text)
    assert output["done"] and output["observations"] == []
    results.append([output["reward"], output["metadata"]["countdown_reason"], env.get_metrics()])

import pyarrow.parquet
from skyrl_gym.metrics import aggregate_for_environment

mixed = []
file, completions = sys.argv[1:3]
names = ["accuracy", "code", "countdown", "exact_match", "format"]
for row, texts in zip(pyarrow.parquet.read_table(file).to_pylist(), json.loads(completions), strict=True):
    for text in texts:
        env = skyrl_gym.make(row.pop("env_class", "swift_rlvr"), env_config={"rewards": names}, extras=row)
        env.init(row["prompt"])
        mixed.append([env.step(text)["reward"], env.get_metrics()])
show(results, [reward for reward, _ in mixed],
     aggregate_for_environment("swift_rlvr", [metrics for _, metrics in mixed]))
""",
    "openrlhf": """
from openrlhf.utils.agent import SingleTurnAgentExecutor
from swift_rlvr.adapters import openrlhf

executor = SingleTurnAgentExecutor(openrlhf.__file__)
prompt = "3, 4 make 7, as in <answer>3 + 4</answer>"
results = []
for text, label in ((RIGHT, LABEL), (WRONG, LABEL), ("none", LABEL), (RIGHT, UNGRADED)):
    query = prompt + text + "<|im_end|>"
    (info,) = asyncio.run(executor._fetch_rewards_via_func([query], [prompt], [label]))
    results.append([info["rewards"].tolist(), {k: v.item() for k, v in info["extra_logs"].items()}])

# A mixed file, by its own reader of prompts, and as it merges what it logs of a batch.
from types import SimpleNamespace
import torch
from datasets import load_dataset
from openrlhf.datasets import PromptDataset
from openrlhf.trainer.ppo_utils.experience import Experience, split_experience_batch
from transformers import AutoTokenizer

file, model, completions = sys.argv[1:4]
data = SimpleNamespace(input_key="prompt", label_key="label", apply_chat_template=True)
strategy = SimpleNamespace(args=SimpleNamespace(data=data), is_rank_0=lambda: True)
rows = load_dataset("json", data_files=file, split="train", cache_dir="cache")
prompts = PromptDataset(rows, AutoTokenizer.from_pretrained(model), strategy)
mixed = []
for rewards in ("accuracy,code,countdown,exact_match,format", ""):
    os.environ["SWIFT_RLVR_REWARD_FUNCS"] = rewards
    experiences = []
    for index, texts in enumerate(json.loads(completions)):
        _, prompt, label, _ = prompts[index]
        for text in texts:
            (info,) = asyncio.run(executor._fetch_rewards_via_func([prompt + text], [prompt], [label]))
            logs = {k: torch.tensor([v.flatten()[0].item()]) for k, v in info["extra_logs"].items()}
            experiences.append(Experience(sequences=torch.zeros(1, 2), rewards=info["rewards"], info=logs))
    merged = Experience.concat_experiences(experiences, 0)
    assert len(split_experience_batch(merged)) == 8
    mixed.append([merged.rewards.flatten().tolist(), {k: v.float().mean().item() for k, v in merged.info.items()}])
show(results, mixed)
""",
    "verifiers": """
import verifiers.v1 as vf
from verifiers.v1.configs.agent import AgentConfig
from verifiers.v1.graph import MessageNode
from verifiers.v1.trace import AgentInfo, Trace, TraceTask
from verifiers.v1.types import AssistantMessage, ToolMessage
from verifiers.v1.utils.loaders import load_taskset, taskset_config_type

config = taskset_config_type("swift_rlvr_taskset")(
    id="swift_rlvr_taskset", dataset="countdown:" + sys.argv[1],
    task={"reward_funcs": ["countdown", "format"], "reward_weights": [1, 0.5]},
)
tasks = list(load_taskset(config).take(2))
task = tasks[0]
text = "<answer>3 + 4</answer>"
results = [[len(tasks), [message.role for message in task.data.prompt], bool(task.data.system_prompt)]]
for last in (
    AssistantMessage(content=text, reasoning_content="sum"),
    AssistantMessage(content="<answer>3 - 4</answer>"),
    ToolMessage(content=text, tool_call_id="1"),
):
    trace = Trace(task=TraceTask(type="RlvrTask", data=task.data), agent=AgentInfo(config=AgentConfig()))
    trace.nodes.append(MessageNode(message=last, sampled=last.role == "assistant"))
    asyncio.run(task.score(trace))
    results.append([trace.reward, trace.info["swift_rlvr"], trace.metrics])

from pathlib import Path
from swift_rlvr.rewards.build import build_rewards

Path("other.py").write_text('''
import verifiers.v1 as vf
from swift_rlvr.adapters.verifiers import scored_by
from verifiers.v1.utils.decorators import reward

class Data(vf.TaskData):
    answer: str

class Ends(vf.Task[Data]):
    @reward(weight=0.5)
    async def ends(self, trace) -> float:
        return float(trace.last_reply.endswith(self.data.answer))

def task(question, solution):
    return Ends(Data(prompt=question, answer=solution))

ends = scored_by(task)
''')
(ends,) = build_rewards(["other.py:ends"])
turns = [[{"role": "assistant", "content": text}] for text in ("so 7", "so 8")]

names = ["accuracy", "code", "countdown", "exact_match", "format"]
mixed = []
for rewards in (names, []):
    config = taskset_config_type("swift_rlvr_taskset")(
        id="swift_rlvr_taskset", dataset=sys.argv[2], task={"reward_funcs": rewards})
    for task, texts in zip(load_taskset(config).load(), json.loads(sys.argv[3]), strict=True):
        for text in texts:
            trace = Trace(task=TraceTask(type="RlvrTask", data=task.data), agent=AgentInfo(config=AgentConfig()))
            trace.nodes.append(MessageNode(message=AssistantMessage(content=text), sampled=True))
            asyncio.run(task.score(trace))
            mixed.append(trace.reward)

rows = {"question": ["?", "?"], "solution": ["7", "7"]}
show(results, [ends(["so 7", "so 8"], **rows), ends(turns, **rows), ends.columns], mixed)
""",
}


@pytest.fixture
def run(tmp_path):
    """Install packages for a trainer, run its program, and return what it shows last."""

    def run(name, requirements, *arguments):
        folder = tmp_path / name
        install = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder)]
        subprocess.run([*install, *requirements.split()], check=True, timeout=1800)
        environment = os.environ | {"PYTHONPATH": f"{ROOT / 'plugin'}:{folder}"}
        program = [sys.executable, "-c", COMMON + PROGRAMS[name], *map(str, arguments)]
        done = subprocess.run(
            program, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=1800
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    return run


def test_verl(run, tmp_path):
    arguments = prepare("verl", tmp_path), TINY_MODEL, TEXTS
    scores, reasons, mean, graded, mixed = run("verl", VERL, *arguments)
    assert scores == [1.5, 0.5, 0.0, 0.5]  # the format reward grades every row
    assert reasons == ["correct", "wrong value", "no answer", "bad gold"]
    assert mean == sum(scores) / 4
    assert graded == 1 / 3  # without the row that is not graded
    named, by_task = mixed
    assert named["score"] == [2.0, 1.0] * 4 and by_task["score"] == [1.0, 0.0] * 4
    for columns in mixed:
        for index, name in enumerate(VERIFIERS):
            own: list[float | None] = [None] * 8
            own[2 * index : 2 * index + 2] = [1.0, 0.0]
            assert columns[name] == own
            assert columns[f"{name}_reason"].count("other task") == 6


def test_skyrl_gym(run, tmp_path):
    results, mixed, metrics = run("skyrl", SKYRL, prepare("skyrl", tmp_path), TEXTS)
    assert results == [
        [1.0, "correct", {"score": 1.0, "countdown": 1.0}],
        [0.0, "wrong value", {"score": 0.0, "countdown": 0.0}],
        [0.0, "bad gold", {}],
    ]
    assert mixed == [2.0, 1.0] * 4
    assert metrics == {"score": 1.5, "format": 1.0, **dict.fromkeys(VERIFIERS, 0.5)}


def test_openrlhf(run, tmp_path):
    arguments = prepare("openrlhf", tmp_path), TINY_MODEL, TEXTS
    results, mixed = run("openrlhf", OPENRLHF, *arguments)
    rewards = [[reward, logs["countdown"], logs["countdown_graded"]] for (reward,), logs in results]
    assert rewards == [
        [1.0, 1.0, 1.0],
        [0.0, 0.0, 1.0],
        [0.0, 0.0, 1.0],  # not the example in the prompt
        [0.0, 0.0, 0.0],
    ]
    (named, means), (by_task, means_by_task) = mixed
    assert named == [2.0, 1.0] * 4 and by_task == [1.0, 0.0] * 4
    for name in VERIFIERS:
        assert means[name] == means_by_task[name] == 1 / 8
        assert means[f"{name}_graded"] == means_by_task[f"{name}_graded"] == 1 / 4


def test_verifiers(run, tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"nums": [3, 4], "target": 7}\n{"nums": [5, 6], "target": 11}\n')
    results, others, mixed = run("verifiers", VERIFIERS_PACKAGE, rows, MIXED, TEXTS)
    (count, roles, has_system), right, wrong, by_tool = results
    assert (count, roles, has_system) == (2, ["user"], True)
    assert (right[0], right[1]["countdown_reason"]) == (1.5, "correct")
    assert right[2] == {"countdown": 1.0, "format": 1.0}
    assert (wrong[0], wrong[1]["format_reason"]) == (0.0, "no think part")
    assert (by_tool[0], by_tool[1]["countdown_reason"]) == (0.0, "no answer")
    # in the other direction
    assert others == [[0.5, 0.0], [0.5, 0.0], ["question", "solution"]]
    assert mixed == [2.0, 1.0] * 4 + [1.0, 0.0] * 4
