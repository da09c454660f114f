"""Two turns with the real rollout server, two real ZeRO-3 ranks and the recipe: its batches, logs
and completions.
"""

import json
from collections import Counter
from pathlib import Path

import pytest
import transformers

from e2e.programs import PLUGINS, SWIFT_RLVR, UNCOMPILED, run_to_the_end
from paths import words
from present import present
from swift_rlvr.rewards import REWARDS
from swift_rlvr.runs.records import read_records
from swift_rlvr.tasks.countdown import read_prompt
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.network import free_port
from turn_batches import check_trained_tokens

pytestmark = pytest.mark.e2e
STEPS = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Where a short run of the recipe for a CPU has written its logs and its batches."""
    folder = tmp_path_factory.mktemp("turns")
    arguments = words(f"""
        train scripts/configs/countdown_cpu.yaml --output_dir {folder}/output --max_steps {STEPS}
        --multi_turn_scheduler rlvr_feedback --max_turns 2 --vllm_max_model_len 1024
        --vllm_server_port {free_port()} --vllm_server_group_port {free_port()}
        --external_plugins plugin/rlvr_plugin.py {PLUGINS / "batch_recorder.py"}
        --load_from_cache_file false --dataset_num_proc 1
        --max_completion_length 160 --num_generations 4 --per_device_train_batch_size 4
        --gradient_accumulation_steps 2 --learning_rate 1e-3 --lr_scheduler_type constant
        --save_strategy no --report_to none --log_rollout_offpolicy_metrics true
    """)
    variables = {
        "MASTER_PORT": free_port(),
        "SWIFT_RLVR_HELD_OUT_ROWS": 4,
        "E2E_BATCHES": folder,
        **UNCOMPILED,
    }
    run_to_the_end(SWIFT_RLVR, arguments, folder / "launch.log", **variables)
    return folder


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_only_sampled_tokens_are_in_the_trainers_batches(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(TINY_MODEL)
    turns: Counter[int] = Counter()
    for rank in (0, 1):
        for row in lines(folder / f"batches-{rank}.jsonl"):
            mask = [0] * (len(row["ids"]) - len(row["mask"])) + row["mask"]
            ids = []
            trained = []
            for token, mark, is_there in zip(row["ids"], mask, row["present"], strict=True):
                if is_there:
                    ids.append(token)
                    trained.append(bool(mark))
            messages = []
            for message in row["messages"]:
                content = message["content"]
                if not isinstance(content, str):
                    content = tokenizer.decode(content)
                messages.append({**message, "content": content})
            check_trained_tokens(tokenizer, ids, trained, row["sampled"], messages)
            turns[len(row["sampled"])] += 1
    assert turns.total() == 16 * STEPS
    assert turns[2] > 0
    assert set(turns) <= {1, 2}


def test_the_trainer_sees_every_token_in_the_context_in_which_it_was_sampled(folder):
    """The server's log-probabilities of both turns' tokens are the trainer's, also after an
    update.
    """
    steps = [line for line in lines(folder / "output" / "logging.jsonl") if "reward" in line]
    assert len(steps) == STEPS
    for step in steps:
        assert step["rollout_correction/k3_kl"] < 1e-5
        assert step["grad_norm"] > 0
        assert 1 < step["num_turns"] <= 2


def test_the_completions_show_both_turns_and_the_rewards_are_the_last_ones(folder):
    reward = REWARDS["countdown"]()
    tables = {table["step"][0]: table for table in lines(folder / "output" / "completions.jsonl")}
    assert len(tables) == STEPS
    for table in tables.values():
        columns = ("prompt", "completion", "CountdownReward", "num_turns")
        for prompt, completion, right, turns in zip(*map(table.get, columns), strict=True):
            nums, target = present(read_prompt(prompt))
            row = {"nums": nums, "target": target}
            assert right == reward.explain(completion, row).reward
            assert prompt.count("<|im_start|>assistant\n") == turns
            if turns == 2:
                first, between = prompt.split("<|im_start|>assistant\n")[1].split(
                    "<|im_end|>\n<|im_start|>user\n"
                )
                reason = reward.explain(first, row).reason
                assert between.startswith(reason.capitalize()), (reason, between)


def test_every_step_logs_the_rewards_of_the_recipe(folder):
    for step in lines(folder / "output" / "logging.jsonl"):
        if "reward" in step:
            outcome, form, overlong = (
                step[f"rewards/{name}/mean"]
                for name in ("CountdownReward", "Format", "SoftOverlongReward")
            )
            assert 0 <= outcome <= 1 and 0 <= form <= 1 and -1 <= overlong <= 0
            assert step["reward"] == pytest.approx(outcome + form + overlong, abs=1e-4)


def test_the_reasons_are_those_of_the_last_turn(folder):
    table = lines(folder / "output" / "completions.jsonl")[0]
    records = [
        record for record in read_records(folder / "output" / "records.jsonl") if record.step == 1
    ]
    assert [record.success for record in records] == [
        value == 1 for value in table["CountdownReward"]
    ]
    assert [record.turn for record in records] == table["num_turns"]
    assert [record.completion for record in records] == table["completion"]
    (step,) = [
        row
        for row in lines(folder / "output" / "logging.jsonl")
        if str(row.get("global_step/max_steps")).startswith("1/") and "reward" in row
    ]
    assert step["success"] == pytest.approx(
        sum(present(record.success) for record in records) / len(records)
    )


def test_held_out_tasks_are_tried_in_turns_too_and_the_log_says_so(folder):
    """Of such a conversation the record has the last answer, and the tokens of all."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(TINY_MODEL)
    records = list(read_records(folder / "output" / "held_out.jsonl"))
    assert (
        len(records) == 2 * 4 * 2
    )  # before the first step and after the last, two of each of four tasks
    longer = [
        present(record.tokens) - len(tokenizer.encode(record.completion)) for record in records
    ]
    assert max(longer) > 20 >= min(longer) >= 0
    assert (
        "held-out success is measured on whole conversations"
        in (folder / "output" / "trainer.log").read_text()
    )
