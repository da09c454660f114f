"""The plugin in ms-swift: loaded by ms-swift's own argument parsing; test_tasks.py has the
datasets.
"""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("swift", reason="needs the extra [train]")
from swift.arguments import RLHFArguments
from swift.dataset.dataset_syntax import DatasetSyntax
from swift.rewards import orms
from swift.utils import parse_args

from paths import words
from swift_rlvr.rewards import REWARDS
from training.ms_swift.names import MAP_COLUMNS

pytestmark = [pytest.mark.slow, pytest.mark.product]  # as a whole

ROOT = Path(__file__).parents[3]
PLUGIN = ROOT / "plugin" / "rlvr_plugin.py"
SAMPLE = ROOT / "datasets" / "countdown" / "tiny_train.jsonl"
MODELSCOPE_ID = "zouxuhong/Countdown-Tasks-3to4"
builtin_rewards = dict(orms)
builtin_entry = DatasetSyntax.parse(MODELSCOPE_ID).get_dataset_meta(use_hf=False)


@pytest.fixture(scope="module")
def args(tmp_path_factory):
    """ms-swift's arguments of a GRPO run, as `swift rlhf` parses them; this imports the plugin."""
    from transformers import Qwen2Config

    model = tmp_path_factory.mktemp("model")
    small = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
    }
    Qwen2Config(
        vocab_size=64, num_key_value_heads=1, architectures=["Qwen2ForCausalLM"], **small
    ).save_pretrained(model)
    flags = f"""--rlhf_type grpo --model {model} --model_type qwen2 --template qwen2_5 --check_model false
        --external_plugins {PLUGIN} --reward_funcs external_countdown format --dataset countdown:{SAMPLE}#20
        --torch_dtype float32 --num_generations 2 --per_device_train_batch_size 2 --output_dir {model}/output"""
    return parse_args(RLHFArguments, words(flags))[0]


def test_rewards_are_in_orms_and_none_of_ms_swifts_is_replaced(args):
    assert {name: orms[name] for name in REWARDS} == REWARDS
    assert {name: orms[name] for name in builtin_rewards} == builtin_rewards
    reward = orms["external_countdown"](args=args)
    assert (
        type(reward).__name__ == "CountdownReward"
    )  # the name in the logs: rewards/CountdownReward/mean
    assert reward(
        ["<answer>1 + 2</answer>"], nums=[[1, 2]], target=[3], trainer_state=None, messages=[[]]
    ) == [1.0]


def test_no_reward_is_logged_under_the_name_of_another(args):
    names = [reward.__name__ for reward in orms.values()]
    assert len(names) == len(set(names)) == len(builtin_rewards) + len(REWARDS)


def test_ours_shows_the_same_prompt_as_ms_swifts_entry_for_the_same_rows(args):
    from datasets import Dataset

    rows = Dataset.from_list([{"nums": [3, 5, 7], "target": 22}])
    theirs = builtin_entry.preprocess_func(rows, **MAP_COLUMNS)[0]
    ours = (
        DatasetSyntax.parse(MODELSCOPE_ID)
        .get_dataset_meta(False)
        .preprocess_func(rows, **MAP_COLUMNS)[0]
    )
    assert builtin_entry.dataset_name is None  # it was ms-swift's own
    assert [m for m in theirs["messages"] if m["content"]] == ours["messages"]
    assert (theirs["nums"], theirs["target"]) == (ours["nums"], ours["target"])


def test_plugin_needs_no_installation(tmp_path):
    """ms-swift puts only the plugin's folder on sys.path; -I -S leaves out the rest but for
    ms-swift's own.
    """
    site = next(path for path in sys.path if path.endswith("site-packages"))
    program = (
        f"import sys; sys.path.append({site!r}); "
        "from swift.utils import import_external_file; "
        f"import_external_file({str(PLUGIN)!r}); import swift_rlvr; from swift.rewards import orms; "
        "print(swift_rlvr.__file__, orms['external_countdown'].__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout == f"{ROOT / 'plugin' / 'swift_rlvr' / '__init__.py'} CountdownReward\n", (
        done.stderr
    )
