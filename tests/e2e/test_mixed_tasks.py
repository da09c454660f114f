"""Four tasks from two datasets in one real run: None where a reward does not apply, and the reasons
in the logs.
"""

import itertools
import math

import pytest
from swift_rlvr.runs.records import Record, read_records
from swift_rlvr.utils.jsonl import read_json, read_jsonl, write_jsonl

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
STEPS = 3
ROUTED = {  # by the reward that verifies a task, the name that is logged
    "external_countdown": "CountdownReward",
    "external_accuracy": "AccuracyReward",
    "external_code": "CodeReward",
}


def write_tasks(folder, root) -> list[str]:
    """One file with eight rows of each of three tasks, and the first eight of a dataset of this
    package.
    """
    user = [
        {
            "role": "user",
            "content": "What is 3 + 4? Think in <think> tags, answer in <answer> tags.",
        }
    ]
    tiny = [row for _, row in read_jsonl(root / "datasets" / "countdown" / "tiny_train.jsonl")][:8]
    rows = [{**row, "task": "countdown"} for row in tiny]
    rows += [{"messages": user, "solution": r"It is $\boxed{7}$.", "task": "math"}] * 8
    rows += [{"messages": user, "tests": ["assert add(3, 4) == 7"], "task": "code"}] * 8
    write_jsonl(folder / "tasks.jsonl", rows)
    return [f"mixed:{folder}/tasks.jsonl", f"gsm8k:{root}/datasets/gsm8k/train.jsonl#8"]


@pytest.fixture(scope="module")
def output(_servers, tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("mixed")
    datasets = write_tasks(folder, request.config.rootpath)
    flags = f"""--max_steps {STEPS} --log_completions true --callbacks reward_reasons --report_to tensorboard --seed 1
        --reward_funcs external_countdown external_accuracy external_code external_cosine external_format
        --per_device_train_batch_size 12 --max_length 400""".split()
    env = {"EXTERNAL_FORMAT_TASKS": "countdown,math,gsm8k"}
    run = _servers().trainer(folder, *flags, "--dataset", *datasets, env=env)
    try:
        assert run.finish(400) == 0, run.text()[-4000:]
    finally:
        run.kill_if_alive()
    (folder / "output" / "train.log").write_text(run.text())
    return folder / "output"


@pytest.fixture(scope="module")
def records(output) -> list[Record]:
    return list(read_records(output / "records.jsonl"))


def test_no_step_has_nan_in_its_total(output):
    steps = [row for _, row in read_jsonl(output / "logging.jsonl") if "reward" in row]
    assert len(steps) == STEPS
    for step in steps:
        for name in ("reward", "loss", "grad_norm", "rewards/FormatReward/mean"):
            assert math.isfinite(step[name]), (name, step)


def test_every_row_is_graded_by_the_reward_of_its_task_alone(records):
    assert len(records) == STEPS * 24
    graded = dict.fromkeys(ROUTED, 0)
    for record in records:
        (name,) = [name for name in ROUTED if record.rewards[name] is not None]
        graded[name] += 1
        assert {record.reasons[other] for other in set(ROUTED) - {name}} == {"other task"}
        assert record.success == (record.rewards[name] == 1.0)
        # Parameters come from the environment of the command, in every rank.
        assert (record.rewards["external_format"] is None) == (name == "external_code")
        is_math = name == "external_accuracy"  # the cosine reward builds on it
        assert (record.rewards["external_cosine"] is not None) == is_math
    assert all(graded.values()), f"a task without a row shows nothing: {graded}"


def test_each_record_is_the_completion_that_ms_swift_logs_there(output, records):
    tables = [table for _, table in read_jsonl(output / "completions.jsonl")]
    by_step = {int(table["step"][0]): table for table in tables}
    names = {key: judge["logged"] for key, judge in read_json(output / "rewards.json").items()}
    assert set(by_step) == {record.step for record in records}
    for record in records:
        table = by_step[record.step]
        assert record.completion == table["completion"][record.index]
        assert record.messages[-1]["content"] in table["prompt"][record.index]
        assert record.advantage == pytest.approx(table["advantages"][record.index], abs=1e-5)
        for key, reward in record.rewards.items():
            logged = table[names[key]][record.index]
            if reward is None:
                assert logged is None or math.isnan(logged)
            else:
                assert logged == pytest.approx(reward)


def test_success_and_the_share_of_each_reason_stand_in_the_logs_and_in_tensorboard(output, records):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    steps = [row for _, row in read_jsonl(output / "logging.jsonl") if "reward" in row]
    board = EventAccumulator(str(next(output.rglob("events.out.tfevents*")).parent))
    board.Reload()
    for number, step in enumerate(steps, start=1):
        own = [record for record in records if record.step == number]
        for name in ("success", "strict", "format"):
            known = [value for record in own if (value := getattr(record, name)) is not None]
            assert step[name] == pytest.approx(sum(known) / len(known), abs=1e-6)
            assert f"train/{name}" in board.Tags()["scalars"]
        for key, name in {**ROUTED, "external_format": "FormatReward"}.items():
            reasons = [record.reasons[key] for record in own]
            for reason in set(reasons):
                key = f"reasons/{name}/{reason.replace(' ', '_')}"
                assert step[key] == pytest.approx(reasons.count(reason) / len(reasons), abs=1e-6)
                assert f"train/{key}" in board.Tags()["scalars"]
    for before, after in itertools.pairwise(
        steps
    ):  # a reason seen once is logged from then on, as 0 where it is absent
        assert {key for key in before if key.startswith("reasons/")} <= after.keys()
