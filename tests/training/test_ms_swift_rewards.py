"""The plugin in ms-swift: loaded by ms-swift's own argument parsing, used through ms-swift's own dataset loader."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("swift", reason="needs the extra [train]")
from ms_swift_names import MAP_COLUMNS, NOTES_DATASET, without_nulls
from swift.arguments import RLHFArguments
from swift.dataset import load_dataset
from swift.dataset.dataset_syntax import DatasetSyntax
from swift.rewards import orms
from swift.utils import parse_args
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks.countdown import PROMPT

pytestmark = pytest.mark.slow  # as a whole

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "plugin" / "rlvr_plugin.py"
SAMPLE = ROOT / "datasets" / "countdown" / "tiny_train.jsonl"
MODELSCOPE_ID, HF_ID = "zouxuhong/Countdown-Tasks-3to4", "Jiayi-Pan/Countdown-Tasks-3to4"
builtin_rewards = dict(orms)
builtin_entry = DatasetSyntax.parse(MODELSCOPE_ID).get_dataset_meta(use_hf=False)


@pytest.fixture(scope="module")
def args(tmp_path_factory):
    """ms-swift's arguments of a GRPO run, as `swift rlhf` parses them; this imports the plugin."""
    from transformers import Qwen2Config

    model = tmp_path_factory.mktemp("model")
    small = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    Qwen2Config(vocab_size=64, num_key_value_heads=1, architectures=["Qwen2ForCausalLM"], **small).save_pretrained(
        model
    )
    flags = f"""--rlhf_type grpo --model {model} --model_type qwen2 --template qwen2_5 --check_model false
        --external_plugins {PLUGIN} --reward_funcs external_countdown format --dataset countdown:{SAMPLE}#20
        --torch_dtype float32 --num_generations 2 --per_device_train_batch_size 2 --output_dir {model}/output"""
    return parse_args(RLHFArguments, flags.split())[0]


def load(args, name, **options):
    return load_dataset(name, remove_unused_columns=args.remove_unused_columns, **options)[0]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return f"countdown:{path}"


def test_rewards_are_in_orms_and_none_of_ms_swifts_is_replaced(args):
    assert {name: orms[name] for name in REWARDS} == REWARDS
    assert {name: orms[name] for name in builtin_rewards} == builtin_rewards
    reward = orms["external_countdown"](args=args)
    assert type(reward).__name__ == "CountdownReward"  # the name in the logs: rewards/CountdownReward/mean
    assert reward(["<answer>1 + 2</answer>"], nums=[[1, 2]], target=[3], trainer_state=None, messages=[[]]) == [1.0]


def test_no_reward_is_logged_under_the_name_of_another(args):
    names = [reward.__name__ for reward in orms.values()]
    assert len(names) == len(set(names)) == len(builtin_rewards) + len(REWARDS)


def test_local_file_with_sample_count(args):
    dataset = load(args, args.dataset)
    assert len(dataset) == 20
    row = dataset[0]
    prompt = {"role": "user", "content": PROMPT.format(nums=row["nums"], target=row["target"])}
    assert without_nulls(row["messages"]) == [prompt]
    assert dataset.features["nums"].feature.dtype == dataset.features["target"].dtype == "int64"
    if NOTES_DATASET:
        assert row["dataset"] == str(SAMPLE)


def test_loaded_columns_reach_the_reward(args):
    dataset = load(args, f"countdown:{SAMPLE}")
    assert len(dataset) == len(SAMPLE.read_text().splitlines())
    reward = orms["external_countdown"](args=args)
    batch = dataset[:50]
    assert reward(["<answer>none</answer>"] * 50, **{name: batch[name] for name in batch}) == [0.0] * 50


@pytest.mark.parametrize("suffix", [".json", ".parquet", ".csv"])
def test_other_file_types(args, tmp_path, suffix):
    from datasets import Dataset

    rows = [{"nums": [3, 5, 7], "target": 22}, {"nums": [4, 4, 9], "target": 25}]
    if suffix == ".csv":
        rows = [row | {"nums": str(row["nums"])} for row in rows]
    path = tmp_path / f"rows{suffix}"
    {".json": Dataset.to_json, ".parquet": Dataset.to_parquet, ".csv": Dataset.to_csv}[suffix](
        Dataset.from_list(rows), str(path)
    )
    dataset = load(args, f"countdown:{path}")
    assert (dataset["nums"][:], dataset["target"][:]) == ([[3, 5, 7], [4, 4, 9]], [22, 25])


def test_streaming(args):
    row = next(iter(load(args, f"countdown:{SAMPLE}", streaming=True)))
    assert row["messages"][0]["content"] == PROMPT.format(nums=row["nums"], target=row["target"])


def test_unusable_rows_are_left_out_and_reported_or_end_the_run(args, tmp_path, caplog):
    good, bad = {"nums": [3, 5, 7], "target": 22}, {"nums": [3, 5, 7], "target": None}
    name = write(tmp_path / "rows.jsonl", [good, bad, good])
    with caplog.at_level("WARNING", logger="swift"):
        swift_logger_propagates(caplog)
        assert len(load(args, name)) == 2
    assert "countdown: 1 of 3 rows cannot be used (target: 1)\n  row 2: column 'target': expected" in caplog.text
    with pytest.raises(ValueError, match="row 2: column 'target'"):
        load(args, name, strict=True)
    with pytest.raises(ValueError, match="2 of 2 rows cannot be used"):
        load(args, write(tmp_path / "all_bad.jsonl", [bad, bad]))


def swift_logger_propagates(caplog):
    """ms-swift's logger does not hand records on to the root logger, where caplog listens."""
    import logging

    logger = logging.getLogger("swift")
    if caplog.handler not in logger.handlers:
        logger.addHandler(caplog.handler)


def test_missing_column_and_missing_file(args, tmp_path):
    with pytest.raises(ValueError, match="column target missing; the dataset has nums, goal"):
        load(args, write(tmp_path / "rows.jsonl", [{"nums": [1, 2], "goal": 3}]))
    with pytest.raises(FileNotFoundError, match="--dataset countdown:no/such.jsonl: no such file"):
        load(args, "countdown:no/such.jsonl")


@pytest.mark.parametrize(("name", "use_hf"), [(MODELSCOPE_ID, False), (HF_ID, True)])
def test_ids_on_the_hubs_find_our_entry(args, name, use_hf):
    entry = DatasetSyntax.parse(f"{name}#50000").get_dataset_meta(use_hf)
    assert entry.dataset_name == "countdown"


def test_ours_shows_the_same_prompt_as_ms_swifts_entry_for_the_same_rows(args):
    from datasets import Dataset

    rows = Dataset.from_list([{"nums": [3, 5, 7], "target": 22}])
    theirs = builtin_entry.preprocess_func(rows, **MAP_COLUMNS)[0]
    ours = DatasetSyntax.parse(MODELSCOPE_ID).get_dataset_meta(False).preprocess_func(rows, **MAP_COLUMNS)[0]
    assert builtin_entry.dataset_name is None  # it was ms-swift's own
    assert [m for m in theirs["messages"] if m["content"]] == ours["messages"]
    assert (theirs["nums"], theirs["target"]) == (ours["nums"], ours["target"])


@pytest.mark.slow
def test_plugin_needs_no_installation(tmp_path):
    """ms-swift puts only the plugin's folder on sys.path; -I -S leaves out the rest but for ms-swift's own."""
    site = next(path for path in sys.path if path.endswith("site-packages"))
    program = (
        f"import sys; sys.path.append({site!r}); "
        "from swift.utils import import_external_file; "
        f"import_external_file({str(PLUGIN)!r}); import swift_rlvr; from swift.rewards import orms; "
        "print(swift_rlvr.__file__, orms['external_countdown'].__name__)"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == [str(ROOT / "plugin" / "swift_rlvr" / "__init__.py"), "CountdownReward"], done.stderr
