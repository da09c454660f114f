"""Our plugin in a process of `megatron rlhf`, as far as that goes without the megatron package: ms-swift's
own base class of callbacks, its registries, and its functions that make and call rewards. The trainer
is a stand-in, with the attributes and the order of events of swift/megatron/trainers.
"""

import json
from pathlib import Path

import pytest

pytest.importorskip("swift", reason="needs the extra [train]")

pytestmark = pytest.mark.slow  # as a whole

ROOT = Path(__file__).parents[3]
# In place of swift/megatron/__init__.py and callbacks/mapping.py, which import megatron.core.
PROCESS = """
import json, sys, types
from pathlib import Path
import swift
folder = Path(swift.__file__).parent / "megatron"
for name, path in (("swift.megatron", folder), ("swift.megatron.callbacks", folder / "callbacks")):
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = [str(path)]
from swift.megatron.callbacks.base import MegatronCallback
callbacks = sys.modules["swift.megatron.callbacks"]
callbacks.MegatronCallback, callbacks.megatron_callbacks_map = MegatronCallback, {}
from swift.utils import import_external_file
"""
TRAINING = """
import torch
from collections import defaultdict, deque
from types import SimpleNamespace
output, names = sys.argv[1], json.loads(sys.argv[2])
sys.argv = ["rlhf.py", "--callbacks", "reward_reasons", "--reward_funcs", *names]
import_external_file("plugin/rlvr_plugin.py")
from swift.rl_core.data import GRPOSample
from swift.rl_core.grpo_algorithm import score_completions
from swift.rlhf_trainers.utils import resolve_reward_funcs

args = SimpleNamespace(output_dir=output, train_iters=2, max_completion_length=64)
rewards, reward_names = resolve_reward_funcs(list(names), args=args)
trainer = SimpleNamespace(
    args=args, state=SimpleNamespace(iteration=0), is_main_process=True, reward_funcs=rewards,
    reward_func_names=reward_names, reward_model_plugins=[None] * len(rewards),
    _logs={"rewards": defaultdict(lambda: deque(maxlen=2)), "advantages": deque(maxlen=2)},
    _metrics={"train": defaultdict(list), "eval": defaultdict(list)},
)
callback = callbacks.megatron_callbacks_map["reward_reasons"](trainer)
callback.on_train_begin()
lines = []

def grade(answers):
    samples = []
    for answer in answers:
        turns = [{"role": "user", "content": "?"}, {"role": "assistant", "content": answer}]
        samples.append(GRPOSample(messages=turns, extra={"nums": [1, 2], "target": 3}))
    values = score_completions(
        samples, reward_funcs=trainer.reward_funcs, reward_model_plugins=trainer.reward_model_plugins,
        use_gym_env=False, device=torch.device("cpu"), trainer_state=trainer.state)
    for index, name in enumerate(reward_names):
        trainer._logs["rewards"][name].extend(values[:, index].tolist())
    trainer._logs["advantages"].extend([0.5, -0.5])

for step in (1, 2):
    callback.on_step_begin()
    grade(["<answer>1 + 2</answer>", "<answer>1 - 2</answer>" if step == 1 else "<answer>2 + 1</answer>"])
    trainer.state.iteration += 1
    callback.on_step_end()
    lines.append({"loss": 0.0, "grad_norm": 1.0})
    callback.on_log(lines[-1])
callback.on_eval_begin()
grade(["<answer>1 - 2</answer>", "<answer>1 + 2</answer>"])
callback.on_eval_step()
lines.append({"eval_loss": 0.0})
callback.on_log(lines[-1])
callback.on_eval_end()
callback.on_train_end()
print(json.dumps(lines))
"""


def test_success_and_reasons_are_logged_in_the_step_that_they_are_of(ms_swift, tmp_path):
    names = ["external_countdown", "trl.rewards:think_format_reward", "format"]
    done = ms_swift.run(PROCESS + TRAINING, tmp_path, json.dumps(names), cwd=ROOT)
    assert done.stdout, done.stderr[-3000:]
    first, second, evaluation = json.loads(done.stdout.splitlines()[-1])
    assert (first["success"], second["success"], evaluation["eval_success"]) == (0.5, 1.0, 0.5)
    reasons = [value for name, value in first.items() if name.startswith("reasons/Countdown")]
    assert reasons == [0.5, 0.5], first
    assert "grading/external_countdown" in second and first["loss"] == 0.0
    records = [json.loads(line) for line in (tmp_path / "records.jsonl").read_text().splitlines()]
    assert [(each["step"], each["mode"], each["success"]) for each in records] == [
        *((1, "train", True), (1, "train", False), (2, "train", True), (2, "train", True)),
        *((2, "eval", False), (2, "eval", True)),
    ]
    assert records[0]["advantage"] == 0.5 and records[0]["rewards"]["Format"] == 0.0
    assert (tmp_path / "rewards.json").is_file()


@pytest.mark.parametrize("name", ["held_out", "curriculum"])
def test_callbacks_that_are_not_for_it_are_refused_before_a_model_is_built(ms_swift, name):
    code = PROCESS + "import_external_file('plugin/rlvr_plugin.py')"
    done = ms_swift.run(code, "--callbacks", "reward_reasons", name, cwd=ROOT)
    assert done.returncode == 1
    assert f"InputError: --callbacks: {name} is for `swift rlhf`" in done.stderr


@pytest.mark.parametrize("place", ["{names}", "reward_funcs: format\ntrain:\n  gpus: 4\n  {names}"])
def test_an_import_path_in_the_file_of_the_pipeline_on_ray_becomes_a_reward(
    ms_swift, tmp_path, place
):
    """In the registry, where `resolve_reward_funcs` looks; it leaves other texts as they are."""
    config = tmp_path / "ray.yaml"
    names = "reward_funcs: [trl.rewards:think_format_reward, external_countdown]\n"
    config.write_text("rlhf_type: grpo\n" + place.format(names=names))
    code = """
sys.modules["swift.ray"] = types.ModuleType("swift.ray")
import_external_file("plugin/rlvr_plugin.py")
from swift.rewards import orms
print(callable(orms["trl.rewards:think_format_reward"]()))
"""
    done = ms_swift.run(PROCESS + code, "--config", config, cwd=ROOT)
    assert done.stdout.splitlines()[-1:] == ["True"], done.stderr[-3000:]
