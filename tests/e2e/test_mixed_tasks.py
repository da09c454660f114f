"""Four tasks from two datasets in one real run: None where a reward does not apply, and the reasons in the logs."""

import itertools
import math
import re

import pytest
from swift_rlvr.jsonl import read_jsonl, write_jsonl

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
STEPS = 3
ROUTED = {"countdown": "CountdownReward", "math": "AccuracyReward", "code": "CodeReward"}


def write_tasks(folder, root) -> list[str]:
    """One file with eight rows of each of three tasks, and the first eight of a dataset of this package."""
    user = [{"role": "user", "content": "What is 3 + 4? Think in <think> tags, answer in <answer> tags."}]
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
    env = {
        "EXTERNAL_CODE_WARN_AFTER": "1",
        "EXTERNAL_ACCURACY_WARN_AFTER": "1",
        "EXTERNAL_FORMAT_TASKS": "countdown,math,gsm8k",
    }
    run = _servers().trainer(folder, *flags, "--dataset", *datasets, env=env)
    try:
        assert run.finish(400) == 0, run.text()[-4000:]
    finally:
        run.kill_if_alive()
    (folder / "output" / "train.log").write_text(run.text())
    return folder / "output"


@pytest.fixture(scope="module")
def samples(output) -> list[dict]:
    return [row for _, row in read_jsonl(output / "reasons.jsonl")]


def test_no_step_has_nan_in_its_total(output):
    steps = [row for _, row in read_jsonl(output / "logging.jsonl") if "reward" in row]
    assert len(steps) == STEPS
    for step in steps:
        for name in ("reward", "loss", "grad_norm", "rewards/FormatReward/mean"):
            assert math.isfinite(step[name]), (name, step)


def test_every_row_is_graded_by_the_reward_of_its_task_alone(samples):
    assert len(samples) == STEPS * 24
    graded = dict.fromkeys(ROUTED.values(), 0)
    for sample in samples:
        (name,) = [name for name in ROUTED.values() if sample["rewards"][name] is not None]
        graded[name] += 1
        others = set(ROUTED.values()) - {name}
        assert {sample["reasons"][other] for other in others} == {"other task"}
        # Parameters come from the environment of the command, in every rank.
        assert (sample["rewards"]["FormatReward"] is None) == (name == "CodeReward")
        is_math = name == "AccuracyReward"  # the cosine reward builds on it
        assert (sample["rewards"]["CosineLengthReward"] is not None) == is_math
    assert all(graded.values()), f"a task without a row shows nothing: {graded}"


def test_each_line_is_the_completion_at_its_place_in_completions_jsonl(output, samples):
    tables = [table for _, table in read_jsonl(output / "completions.jsonl")]
    by_step = {int(table["step"][0]): table for table in tables}
    assert set(by_step) == {sample["step"] for sample in samples}
    for sample in samples:
        table = by_step[sample["step"]]
        for name, reward in sample["rewards"].items():
            logged = table[name][sample["index"]]
            if reward is None:
                assert logged is None or math.isnan(logged)
            else:
                assert logged == pytest.approx(reward)


def test_the_share_of_each_reason_stands_in_the_logs_and_in_tensorboard(output, samples):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    steps = [row for _, row in read_jsonl(output / "logging.jsonl") if "reward" in row]
    board = EventAccumulator(str(next(output.rglob("events.out.tfevents*")).parent))
    board.Reload()
    for number, step in enumerate(steps, start=1):
        rows = [sample for sample in samples if sample["step"] == number]
        for name in (*ROUTED.values(), "FormatReward"):
            reasons = [sample["reasons"][name] for sample in rows]
            for reason in set(reasons):
                key = f"reasons/{name}/{reason.replace(' ', '_')}"
                assert step[key] == pytest.approx(reasons.count(reason) / len(reasons), abs=1e-6)
                assert f"train/{key}" in board.Tags()["scalars"]
    for before, after in itertools.pairwise(
        steps
    ):  # a reason seen once is logged from then on, as 0 where it is absent
        assert {key for key in before if key.startswith("reasons/")} <= after.keys()


def test_a_reward_that_never_pays_is_reported_with_the_reason_and_a_completion(output):
    log = (output / "train.log").read_text()
    # Rank 0 warns, of its own rows; which of the two tasks it got first is a matter of the seed.
    assert re.search(r"external_(code|accuracy): no reward other than 0 in 1 batches\. In the last one the most", log)
