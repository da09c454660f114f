"""The report on training runs: what it reads of the trainers' files, what it refuses, and what the
page then says.
"""

import json
import math
import os
import random
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from helpers import graded, write_records
from report_pages import HOSTILE, Document
from swift_rlvr.evaluation.compare import side_by_side
from swift_rlvr.evaluation.report import write_report
from swift_rlvr.evaluation.report.completions import PageCompletions, gold_text
from swift_rlvr.evaluation.report.curves import (
    LONGEST_TITLE,
    Panel,
    curves,
    draw_panel,
    panels,
)
from swift_rlvr.evaluation.report.observations import observations
from swift_rlvr.evaluation.report.reading import Run, read_run, read_runs
from swift_rlvr.runs.folder import find_run
from swift_rlvr.runs.records import Record
from swift_rlvr.runs.statistics import summarize
from swift_rlvr.success import VERIFIER, Judge, Judges
from swift_rlvr.tasks import TASKS
from swift_rlvr.tasks.countdown import to_messages
from swift_rlvr.utils.errors import InputError

QUESTION = to_messages([1, 2], 3)[1]["content"]
PROMPT = f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n"


def logged_step(step, rng):
    """One line of logging.jsonl as ms-swift 4.6.0 writes it in a GRPO run, of a run that learns."""
    success = 0.25 + 0.35 / (1 + math.exp(-(step - 60) / 15)) + rng.gauss(0, 0.04)
    return {
        "loss": rng.gauss(0, 1e-4),
        "grad_norm": 0.5,
        "learning_rate": 5e-4,
        "completions/mean_length": 60 + step / 2 + rng.gauss(0, 6),
        "completions/min_length": 20.0,
        "completions/max_length": 200.0,
        "completions/clipped_ratio": 0.0,
        "reward": success + 0.97,
        "reward_std": 0.35 + rng.gauss(0, 0.03),
        "frac_reward_zero_std": max(0, 0.3 + rng.gauss(0, 0.05)),
        "rewards/CountdownReward/mean": success,
        "rewards/CountdownReward/std": 0.45,
        "rewards/Format/mean": min(1, 0.97 + rng.gauss(0, 0.01)),
        "rewards/Format/std": 0.1,
        "kl": step / 4000,
        "reasons/CountdownReward/correct": success,
        "reasons/CountdownReward/wrong_value": (1 - success) * 0.6,
        **({"reasons/CountdownReward/no_answer": (1 - success) * 0.4} if step > 20 else {}),
        "global_step/max_steps": f"{step}/120",
    }


def table(step, texts, prompts=PROMPT, **columns):
    """One line of completions.jsonl; by default all of one prompt, and wrong."""
    count = len(texts)
    prompts = [prompts] * count if isinstance(prompts, str) else prompts
    rewards = {} if columns else {"CountdownReward": [0.0] * count}
    return {
        "step": [str(step)] * count,
        "prompt": prompts,
        "completion": texts,
        **rewards,
        **columns,
    }


def log_rewards(run, *names):
    """Have the log hold one step of a run with these rewards."""
    means = {f"rewards/{name}/mean": 0.5 for name in names}
    write_lines(run / "logging.jsonl", [{"reward": 0.5, **means, "global_step/max_steps": "1/1"}])


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def run(tmp_path):
    """output_dir/v0-<time> with both logs, as ms-swift leaves it; a resume has logged steps 61 to
    70 twice.
    """
    rng = random.Random(0)
    folder = tmp_path / "output" / "v0-20260101-120000"
    folder.mkdir(parents=True)
    lines = [logged_step(step, rng) for step in [*range(1, 71), *range(61, 121)]]
    lines.insert(50, {"eval_loss": 0.1, "eval_reward": 1.2, "global_step/max_steps": "50/120"})
    lines += [
        {"train_runtime": 35.9, "global_step/max_steps": "120/120"},
        {"global_step": 120, "log_history": []},
    ]
    write_lines(folder / "logging.jsonl", lines)
    answers = ["1 + 2", "2 - 1", "1 + 2", "1 + 1"]
    tables = [
        table(
            step,
            [f"<think>step {step}\n{i}+1={i + 1} low</think>\n<answer>{answer}</answer>" for i, answer in
             enumerate(answers)],
            CountdownReward=[1.0, 0.0, None, 0.0], Format=[1.0] * 4, advantages=[1.5, -0.5, 0.0, -0.5],
        )
        for step in (1, 60, 120)
    ]  # fmt: skip
    write_lines(folder / "completions.jsonl", tables)
    return folder


@pytest.fixture
def curves_are_drawn():
    """For the tests that look at the picture; the others save the second that it takes."""


@pytest.fixture(autouse=True)
def without_picture(request, monkeypatch):
    if "curves_are_drawn" not in request.fixturenames:
        monkeypatch.setattr(
            "swift_rlvr.evaluation.report.page.draw", lambda rows, path, title: path.touch()
        )


def page_of(runs, out, *arguments, **options):
    _, page = write_report(runs, out, *arguments, **options)
    return Document(page.read_text())


def said(document):
    return re.sub(r"\s+", " ", " ".join(document.seen))


# ---- What is read ----


def test_steps_are_read_in_order_and_of_those_logged_twice_the_last(run):
    steps = read_run(run).steps
    assert [step["step"] for step in steps] == list(range(1, 121))
    lines = [json.loads(line) for line in (run / "logging.jsonl").read_text().splitlines()]
    twice = [
        line["reward"]
        for line in lines
        if "reward" in line and line["global_step/max_steps"] == "65/120"
    ]
    assert len(twice) == 2 and steps[64]["reward"] == twice[1]


def test_completions_that_a_resumed_run_makes_again_are_read_once(run):
    steps = [
        1,
        2,
        2,
        3,
        2,
        3,
        3,
    ]  # two tables of step 2; step 2 again after a resume; the last table written twice
    texts = [["a"], ["b"], ["c"], ["d"], ["B"], ["D"], ["D"]]
    write_lines(
        run / "completions.jsonl",
        [table(step, text) for step, text in zip(steps, texts, strict=True)],
    )
    assert [(record.step, record.completion) for record in read_run(run).records()] == [
        (1, "a"),
        (2, "B"),
        (3, "D"),
    ]
    write_lines(run / "completions.jsonl", [table(1, ["a"]), table(1, ["b", "c"])])
    assert [record.index for record in read_run(run).records()] == [0, 1, 2]


def test_panels_follow_what_was_logged(run):
    shown = panels(read_run(run).steps)
    assert [panel.title for panel in shown[:3]] == ["Success", "Rewards", "Completion length"]
    assert shown[1].keys == {f"rewards/{name}/mean": name for name in ("CountdownReward", "Format")}
    assert shown[-1].title == "Why: CountdownReward"
    assert list(shown[-1].keys.values()) == [
        "correct",
        "wrong value",
        "no answer",
    ]  # the most frequent first
    assert [panel.keys for panel in panels([{"reward": 0.5, "step": 1}])] == [{"reward": "reward"}]
    judged = panels(
        [{"success": 0.5, "strict": 0.25, "format": 0.5, "rewards/Format/mean": 0.5, "step": 1}]
    )
    assert [panel.title for panel in judged] == ["Success", "Rewards", "Format"]
    assert list(judged[0].keys) == ["success", "strict"]


def test_a_curriculum_has_its_level_and_the_success_of_each_level_in_their_order():
    logged = {f"curriculum/success_{level}": 0.5 for level in (10, 9, 0)}
    drawn = panels([{"step": 1, "reward": 1.0, "curriculum/level": 2.5, **logged}])
    assert [list(panel.keys.values()) for panel in drawn[1:]] == [
        ["level"],
        ["level 0", "level 9", "level 10"],
    ]


# ---- What the page says ----


def records_of(texts=("1 + 2", "2 - 1"), **values):
    """Graded completions of one Countdown row, the first right and the others wrong, as a training
    writes them.
    """
    row = {"nums": [1, 2], "target": 3, "task": "countdown"}
    return [
        Record(
            index=index, step=1, mode="train", completion=f"<think>1+2=3</think><answer>{text}</answer>", row=row,
            messages=[{"role": "user", "content": QUESTION}],
            rewards={"external_countdown": float(index == 0), "external_tag_count": 0.5},
            reasons={"external_countdown": "wrong value" if index else "correct", "external_tag_count": "missing tag"},
            success=index == 0, strict=False, format=False, **values,
        )
        for index, text in enumerate(texts)
    ]  # fmt: skip


def test_the_page_holds_every_completion_with_its_verdict_rewards_reasons_and_rules(run, tmp_path):
    write_records(run / "records.jsonl", records_of(advantage=0.5))
    roles = {
        "external_tag_count": ("shaping", "TagCountReward"),
        "external_countdown": ("verifier", "CountdownReward"),
    }
    judges = {
        name: {"role": role, "logged": logged, "full": 1.0}
        for name, (role, logged) in roles.items()
    }
    (run / "rewards.json").write_text(json.dumps(judges))
    document = page_of(run.parent, tmp_path / "report")
    right, wrong = document.completions()
    assert right["question"] == "Using the numbers [1, 2], create an equation that equals 3."
    assert document.data("columns")["success"] == [1, 0]
    assert document.data("page")["verifiers"] == {"external_countdown": 1.0}
    assert right["gold"] == wrong["gold"] == "target 3 from 1, 2"
    assert right["rewards"] == {"external_countdown": 1.0, "external_tag_count": 0.5}
    assert wrong["reasons"] == {
        "external_countdown": "wrong value",
        "external_tag_count": "missing tag",
    }
    assert [document.data("page")["names"][why] for why in document.data("columns")["why"]] == [
        "correct",
        "wrong value",
    ]
    number, reward, reason, judged, details = wrong["rules"]["external_countdown"]
    rules = document.data("page")["rules"][number]
    assert (reward, reason, judged) == (0.0, "wrong value", "2 - 1")
    assert rules["rules"][-1] == "the value is the target" and rules["outcome"] == "1" * 12 + "0"
    assert details == {"12": "the value is 1, the target 3"}
    assert "guessed" not in said(document)


def test_what_is_assumed_of_a_run_that_did_not_write_it_down_is_said(run, tmp_path):
    """A run of ms-swift without our callback: its tables are read, and its rewards known by their
    names.
    """
    document = page_of(run.parent, tmp_path / "report")
    text = said(document)
    assert (
        "the roles of the rewards are guessed from their names (verifier: CountdownReward; format reward: Format)"
        in text
    )
    assert "logging.jsonl has no success: it was computed from the completions" in text
    assert document.data("columns")["success"] == [1, 0, None, 0] * 3
    assert read_run(run).steps[0]["success"] == 1 / 3  # of those that could be graded
    assert "they were computed for this page" in text
    assert "3 of 12 completions were not graded by a verifier" in text
    (run / "completions.jsonl").unlink()
    assert "the mean of CountdownReward is shown instead" in said(page_of(run, tmp_path / "report"))
    nobody = json.dumps({"reward": 1.0, "rewards/Mine/mean": 1.0, "global_step/max_steps": "1/1"})
    (run / "logging.jsonl").write_text(nobody + "\n")
    document = page_of(run, tmp_path / "report")
    assert "reward of unknown role: Mine" in said(document) and "Success not logged" in said(
        document
    )


def test_rows_of_other_tasks_are_no_failures_and_the_experiment_stands_beside_countdown_alone(
    run, tmp_path
):
    own, other = records_of(), records_of(texts=["x"])
    for record in other:
        record.row, record.index = {"task": "gsm8k", "solution": "7"}, 2
        record.rewards, record.reasons = (
            {"external_countdown": None},
            {"external_countdown": "other task"},
        )
        record.success = record.strict = None
    write_records(run / "records.jsonl", own + other)
    assert "stays at 0.9 to 1" in said(page_of(run, tmp_path / "report"))
    log_rewards(run, "CountdownReward", "AccuracyReward")
    text = said(page_of(run, tmp_path / "report"))
    assert "Countdown experiment" not in text
    assert "last failures: wrong value 100%" in text
    panels_shown = page_of(run, tmp_path / "report").data("page")["panels"]
    labels = [curve["label"] for panel in panels_shown for curve in panel["curves"]]
    assert "other task" not in labels


def test_of_a_mixture_the_figures_are_there_by_task(run, tmp_path):
    """A right and two wrong answers to Countdown, a wrong and an ungraded one to GSM8K; held out,
    one of each.
    """
    own, others = records_of(["1 + 2", "2 - 1", "1 - 2"]), records_of(["x", "y"])
    for record in others:
        record.row, record.success, record.index = (
            {"task": "gsm8k", "solution": "7"},
            False,
            record.index + 3,
        )
        record.reasons = {"external_countdown": "other task", "external_accuracy": "no answer"}
    others[1].success = None
    write_records(run / "records.jsonl", own + others)
    write_records(
        run / "held_out.jsonl",
        [replace(record, index=i) for i, record in enumerate((own[1], others[0]))],
    )
    with (run / "logging.jsonl").open("a") as log:
        log.write(json.dumps({"eval/success": 0.0, "global_step/max_steps": "1/120"}) + "\n")
    document = page_of(run, tmp_path / "report")
    page, columns = document.data("page"), document.data("columns")
    drawn = {panel["title"]: panel["curves"] for panel in page["panels"]}
    of_tasks = {
        curve["label"]: (curve["steps"], curve["values"]) for curve in drawn["Success by task"]
    }
    assert of_tasks == {"countdown": ([1], [round(1 / 3, 8)]), "gsm8k": ([1], [0.0])}
    assert [curve["label"] for curve in drawn["Held-out success by task"]] == ["countdown", "gsm8k"]
    assert [page["names"][task] for task in columns["task"][:5]] == ["countdown"] * 3 + [
        "gsm8k"
    ] * 2
    assert document.completions()[3]["reasons"] == {"external_accuracy": "no answer"}
    write_records(run / "records.jsonl", own)
    assert "Success by task" not in {
        panel["title"] for panel in page_of(run, tmp_path / "one").data("page")["panels"]
    }


def test_the_observations_have_their_figures(run, tmp_path):
    text = said(page_of(run, tmp_path / "report"))
    for expected in (
        r"Success 0\.\d\d → 0\.\d\d, best 0\.\d\d around step \d+ rises to about 0\.5",
        r"Spread within a group standard deviation 0\.3\d → 0\.3\d; groups without spread 0\.\d\d → 0\.\d\d",
        r"Kinds of failure last failures: wrong value 50%, reused number 50% many are slips",
        r"Length 6\d → 11\d tokens, shortest \d\d around step",
    ):
        assert re.search(expected, text), expected


def test_what_experiments_have_seen_has_the_names_of_the_observations(run):
    names = observations(read_run(run), {}).keys()
    seen = {name for task in TASKS.values() for name in task.seen_in_experiment}
    assert seen and seen <= names


def test_the_comparison_is_on_the_page_with_what_it_means(run, tmp_path):
    summary = summarize([graded(0)])
    paired = {
        "tasks": 9,
        "better": 7,
        "worse": 0,
        "difference": 0.78,
        "interval": [0.5, 1.0],
        "p": 0.0156,
    }
    before, after = summary | {"settings": {}}, summary | {"settings": {"seed": 1}}
    comparison = side_by_side(before, after) | {"paired": paired}
    text = said(page_of(run, tmp_path / "report", [comparison]))
    assert "success 1.000 (0.207 to 1.000) 1.000 (0.207 to 1.000)" in text
    assert "This is significant." in text and "seed differs: not set before, 1 after." in text
    # The verdict stands above everything else.
    assert text.index("p = 0.016") < text.index("Curves", text.index("Held-out success"))
    assert "Held-out success: 1.000 (0.207 to 1.000) before, 1.000 (0.207 to 1.000) after." in text


def test_a_comparison_that_was_not_tested_says_so_on_the_page(run, tmp_path):
    summary = summarize([graded(0)])
    comparison = side_by_side(summary, summary) | {"not_tested": "no task is in both"}
    text = said(page_of(run, tmp_path / "report", [comparison]))
    assert "The difference was not tested: no task is in both." in text


def test_the_title_names_the_model_and_the_task_and_the_log_is_the_verdict_without_a_comparison(
    run, tmp_path
):
    (run / "args.json").write_text(json.dumps({"model": "/home/me/tiny_model/weights"}))
    text = said(page_of(run, tmp_path / "report"))
    assert text.count("GRPO: tiny_model/weights on countdown") == 2  # in the tab and on the page
    assert re.search(r"Success in training: 0\.\d\d → 0\.\d\d, best 0\.\d\d", text)
    assert "pass the result with --comparison" in text


@pytest.mark.parametrize(
    ("row", "gold"),
    [
        ({"solution": ["1/2", "0.5"]}, "1/2 or 0.5"),
        ({"solution": "#### 72"}, "#### 72"),
        ({"accepted_answers": ["Rhine", "Rhein"]}, "Rhine or Rhein"),
        ({"entry": '{"question": "?", "answer": "3"}'}, "3"),
        ({"entry": "not JSON"}, ""),
        ({"nums": "1 2", "target": 3}, "target 3 from 1 2"),
        ({"answer": 7}, "7"),
        ({"tests": ["assert f() == 1"]}, ""),
    ],
)
def test_the_gold_answer_is_found_in_the_columns_of_each_task(row, gold):
    assert gold_text(row) == gold


def test_a_task_says_how_its_gold_is_shown_and_which_rewards_of_others_verify_it(monkeypatch):
    dice = replace(
        TASKS["math"],
        name="dice",
        gold_text=lambda row: f"{row['solution']} eyes",
        other_verifiers=("DiceORM",),
    )
    monkeypatch.setitem(TASKS.data, "dice", dice)
    assert gold_text({"task": "dice", "solution": "3"}) == "3 eyes"
    judges = Judges({"DiceORM": Judge(VERIFIER, "DiceORM")})
    assert Run(Path("run"), "run", judges=judges).tasks == ["dice"]


def test_success_is_seen_behind_success_with_format(run):
    rows = [{"step": step, "reward": 1.0, "success": 0.5, "strict": 0.5} for step in (1, 2)]
    (panel, *_) = panels(rows)
    solid, dashed = curves(panel, {"run": rows})
    assert (solid.label, solid.dashed) == ("success", False)
    assert (dashed.label, dashed.dashed) == ("success with format", True)


def test_held_out_figures_and_alarms_are_shown(run, tmp_path):
    held_out = [{"eval/success": 0.2 + step / 300, "eval/format": 0.9, "eval/pass@4": 0.5, "eval/mean_length": 70.0,
                 "global_step/max_steps": f"{step}/120"} for step in (0, 60, 120)]  # fmt: skip
    with (run / "logging.jsonl").open("a") as log:
        log.writelines(json.dumps(row) + "\n" for row in held_out)
    alarm = {
        "step": 43,
        "kind": "kl",
        "message": "step 43: the KL runs away",
        "completions": ["<b>x</b>", "y"],
    }
    write_lines(run / "alarms.jsonl", [alarm])
    document = page_of(run, tmp_path / "report")
    page = document.data("page")
    drawn = {panel["title"]: panel["curves"] for panel in page["panels"]}
    assert [curve["label"] for curve in drawn["Held-out tasks"]] == ["success", "pass@4"]
    assert drawn["Held-out tasks"][0]["steps"] == [0, 60, 120] and "Held-out length" in drawn
    assert "held-out tasks 0.20 → 0.60, best 0.60 at step 120" in said(document)
    assert (
        page["alarms"][0] | {"step": 43, "run": 0, "completions": ["<b>x</b>", "y"]}
        == page["alarms"][0]
    )


def test_completions_of_held_out_rows_are_there_with_their_task_at_every_step(run, tmp_path):
    held_out = []
    for step, text in ((0, "2"), (1, "1 + 2"), (1, "1 + 2")):
        (record,) = records_of(texts=[text])
        held_out.append(replace(record, index=5, step=step, mode=None, success=bool(step)))
    write_records(run / "held_out.jsonl", held_out)
    document = page_of(run, tmp_path / "report")
    shown = document.completions()[12:]
    assert (
        document.data("columns")["held_out"] == [0] * 12 + [1] * 2
        and document.data("page")["total"] == 14
    )
    assert [completion["step"] for completion in shown] == [
        0,
        1,
    ]  # what a resumed run has logged twice is there once
    assert {completion["prompt"] for completion in shown} == {QUESTION}
    assert document.data("columns")["success"][12:] == [0, 1]
    assert shown[0]["rules"]["external_countdown"][1] == 0.0


def test_two_runs_stand_side_by_side(run, tmp_path, curves_are_drawn):
    other = tmp_path / "unstable" / "v0-20260101-120000"
    other.mkdir(parents=True)
    for name in ("logging.jsonl", "completions.jsonl"):
        (other / name).write_text((run / name).read_text())
    for folder, rate in ((run, 3e-4), (other, 3e-3)):
        arguments = {"learning_rate": rate, "beta": 0.001, "reward_funcs": ["format", "mine"]}
        (folder / "args.json").write_text(json.dumps(arguments))
    document = page_of([run.parent, other], tmp_path / "report")
    page = document.data("page")
    assert page["runs"] == ["output", "unstable"]
    drawn = {panel["title"]: panel["curves"] for panel in page["panels"]}
    assert [(curve["label"], curve["color"]) for curve in drawn["Success"]] == [
        ("output", 0),
        ("unstable", 1),
    ]
    assert [curve["dashed"] for curve in drawn["Completion length"]] == [False, True] * 2
    # Too many lines for both in one: side by side.
    assert {"Why: CountdownReward · output", "Why: CountdownReward · unstable"} <= drawn.keys()
    shown = document.completions()
    assert (
        len(shown) == 24
        and {completion["run"] for completion in shown} == {0, 1}
        and len({completion["prompt"] for completion in shown}) == 1
    )
    assert "learning_rate * 0.0003 0.003" in said(document) and "beta 0.001 0.001" in said(document)
    assert "reward_funcs format, mine format, mine" in said(document)
    with pytest.raises(InputError, match="the same run is named twice"):
        write_report([run, run.parent], tmp_path / "report")


def test_a_run_of_plain_ms_swift_has_reasons_and_rules_too(run, tmp_path):
    """It logs CountdownORM and Format, which are not of this package, and no reasons; its columns
    are in the prompt.
    """
    log_rewards(run, "CountdownORM", "Format")
    texts = ["<answer>1 + 2</answer>", "no answer"]
    write_lines(
        run / "completions.jsonl", [table(1, texts, CountdownORM=[1.0, 0.0], Format=[0.0, 0.0])]
    )
    shown = page_of(run, tmp_path / "report").completions()
    assert [completion["rewards"] for completion in shown] == [
        {"CountdownORM": value, "Format": 0.0} for value in (1.0, 0.0)
    ]
    assert [completion["reasons"]["external_countdown"] for completion in shown] == [
        "correct",
        "no answer",
    ]
    assert shown[1]["rules"]["external_countdown"][1:4] == [0.0, "no answer", None]


def test_the_reason_of_a_format_does_not_stand_for_that_of_a_verdict(run, tmp_path):
    """The verifier is a plain function of others, which gives no reasons."""
    records = []
    for index, value in enumerate((1.0, 0.0)):
        record = Record(
            index=index,
            step=1,
            mode="train",
            completion="<think>2</think><answer>2</answer>",
            row={"solution": "2"},
            rewards={"MyORM": value, "external_format": 1.0},
            reasons={"external_format": "valid"},
            success=bool(value),
            strict=bool(value),
            format=True,
        )
        records.append(record)
    write_records(run / "records.jsonl", records)
    roles = {"MyORM": "verifier", "external_format": "format"}
    judges = {name: {"role": role, "logged": name, "full": 1.0} for name, role in roles.items()}
    (run / "rewards.json").write_text(json.dumps(judges))
    document = page_of(run.parent, tmp_path / "report")
    assert document.data("columns")["why"] == [-1, -1]
    assert document.data("columns")["success"] == [1, 0]
    assert document.completions()[1]["reasons"]["external_format"] == "valid"


def test_mathematics_is_explained_with_its_gold_and_of_many_a_part(run, tmp_path, monkeypatch):
    texts = [rf"<answer>\boxed{{{i}}}</answer>" for i in range(10)]
    write_lines(
        run / "completions.jsonl",
        [table(1, texts, "How many?", solution=["7"] * 10, MathAccuracy=[0.0] * 10)],
    )
    shown = page_of(run, tmp_path / "report").completions()
    assert [completion["rules"]["external_accuracy"][1] for completion in shown] == [
        float(i == 7) for i in range(10)
    ]
    monkeypatch.setattr("swift_rlvr.evaluation.report.completions.EXPLAINED_SLOWLY", 5)
    document = page_of(run, tmp_path / "report")
    assert [
        i
        for i, completion in enumerate(document.completions())
        if "external_accuracy" in completion["rules"]
    ] == [
        0,
        2,
        4,
        6,
        8,
    ]
    assert "rules of the mathematical verifier are shown for 1 in 2 completions" in said(document)


def test_no_code_of_a_model_is_run(run, tmp_path):
    log_rewards(run, "CodeReward")
    text = f"<answer>\n```python\nopen({str(tmp_path / 'ran')!r}, 'w')\n```\n</answer>"
    write_lines(
        run / "completions.jsonl", [table(1, [text], CodeReward=[1.0], tests=[["assert True"]])]
    )
    document = page_of(run, tmp_path / "report")
    assert not (tmp_path / "ran").exists() and "rules of code rewards are not shown" in said(
        document
    )
    assert "external_code" not in document.completions()[0]["rules"]


def test_parameters_of_the_run_are_those_of_its_rules(run, tmp_path):
    write_lines(run / "completions.jsonl", [table(1, ["<answer>1 ＋ 2</answer>"])])
    assert (
        page_of(run, tmp_path / "report").completions()[0]["rules"]["external_countdown"][1] == 1.0
    )
    (run / "args.json").write_text(
        json.dumps({"reward_parameters": {"external_countdown": {"notation": "strict"}}})
    )
    assert (
        page_of(run, tmp_path / "report").completions()[0]["rules"]["external_countdown"][1] == 0.0
    )


@pytest.mark.parametrize("limit", [1, 24, 100, 400])
def test_of_too_many_completions_whole_groups_are_taken_over_all_steps(run, tmp_path, limit):
    tables = [table(step, [f"{step} {i}" for i in range(16)], [f"prompt {step} {i // 8}" for i in range(16)])
              for step in range(1, 26)]  # fmt: skip
    write_lines(run / "completions.jsonl", tables)
    document = page_of(run, tmp_path / "report", limit=limit)
    shown = document.completions()
    assert len(shown) <= max(8, limit) and len(shown) >= limit - 8
    groups = [completion["prompt"] for completion in shown]
    assert all(groups.count(group) == 8 for group in groups)
    if limit == 100:
        assert sorted({completion["step"] for completion in shown}) == list(range(2, 25, 2))
    sampled = f"this page shows {len(shown):,} of 400 completions" in said(document)
    assert sampled == (limit < 400) and document.data("page")["total"] == 400


def test_runs_that_end_in_the_middle_have_a_page_that_says_so(run, tmp_path):
    for name in ("logging.jsonl", "completions.jsonl"):
        lines = (run / name).read_text().splitlines()
        (run / name).write_text("\n".join([*lines[:2], lines[2][: len(lines[2]) // 2]]))
    told: list[str] = []
    curves, page = write_report(run, tmp_path / "report", tell=told.append)
    text = said(Document(page.read_text()))
    assert (
        curves is not None
        and curves.is_file()
        and len(Document(page.read_text()).completions()) == 8
    )
    for expected in (
        "the log ends at step 2 of 120: the run is still training, or was stopped",
        "logging.jsonl, line 3 is skipped: it is not complete yet",
        "completions.jsonl, line 3 is skipped: it is not complete yet",
    ):
        assert expected in text and any(expected in note for note in told)


def test_a_run_without_completions_and_one_without_steps_have_a_page(run, tmp_path):
    (run / "completions.jsonl").unlink()
    document = page_of(run, tmp_path / "report")
    assert (
        "there are no completions in records.jsonl or completions.jsonl" in said(document)
        and document.data("columns")["rewards"] == {}
    )
    (run / "logging.jsonl").write_text("")
    curves, page = write_report(run, tmp_path / "other")
    assert curves is None and not (tmp_path / "other" / "curves.png").exists()
    assert "logging.jsonl has no training step yet" in said(Document(page.read_text()))


def test_the_picture_is_a_png_and_values_that_are_no_numbers_are_left_out(
    run, tmp_path, curves_are_drawn
):
    lines = (run / "logging.jsonl").read_text().replace('"kl": 0.00025', '"kl": NaN')
    assert "NaN" in lines
    (run / "logging.jsonl").write_text(lines)
    curves, page = write_report(run, tmp_path / "report")
    assert curves is not None
    with curves.open("rb") as file:
        assert file.read(8) == b"\x89PNG\r\n\x1a\n" and curves.stat().st_size > 20_000
    (kl,) = [
        panel
        for panel in Document(page.read_text()).data("page")["panels"]
        if panel["title"].startswith("KL")
    ]
    assert kl["curves"][0]["steps"][0] == 2


def test_the_same_runs_have_the_same_page(run, tmp_path):
    pages = [write_report(run, tmp_path / name)[1].read_bytes() for name in ("a", "b")]
    assert pages[0] == pages[1]
    assert PageCompletions(read_runs([run])).columns["step"] == [1] * 4 + [60] * 4 + [120] * 4


# ---- What a model writes cannot get out of its block ----


def test_nothing_that_a_model_writes_is_outside_the_blocks_of_data(run, tmp_path):
    for name in ("hostile & <b>", "plain"):
        (tmp_path / name).mkdir()
        for file in ("logging.jsonl", "completions.jsonl"):
            (tmp_path / name / file).write_text((run / file).read_text())
    folder = tmp_path / "hostile & <b>"
    names = {"<img src=x>": [1.0] * len(HOSTILE), "</script>": [0.5] * len(HOSTILE)}
    write_lines(folder / "completions.jsonl", [table(1, HOSTILE, HOSTILE, **names)])
    alarm = {"step": 1, "alarm": "</script>", "message": HOSTILE[0], "completions": HOSTILE}
    write_lines(folder / "alarms.jsonl", [alarm])
    row = logged_step(1, random.Random(0)) | {"rewards/</title><script>/mean": 1.0}
    write_lines(folder / "logging.jsonl", [row])
    (folder / "args.json").write_text(json.dumps({"model": HOSTILE[0], "beta": HOSTILE[1]}))
    hostile, plain = (
        write_report(run_folder, tmp_path / f"{number}")[1]
        for number, run_folder in enumerate((folder, tmp_path / "plain"))
    )
    text = hostile.read_text(encoding="ascii", errors="replace")
    document = Document(hostile.read_text())
    assert document.scripts == Document(plain.read_text()).scripts and len(document.scripts) == 2
    assert not {tag for tag, _ in document.tags} & {
        "img",
        "svg",
        "iframe",
        "object",
        "base",
        "link",
    }
    assert text.count("<script") == text.count("</script>") == len(document.blocks) + 2
    assert all(re.fullmatch(r"[A-Za-z0-9+/=]+", block) for block in document.blocks.values())
    assert [
        name
        for _, known in document.tags
        for name in known
        if name.startswith("on") or name in ("src", "style")
    ] == []
    # And nothing is lost, lone surrogates and NUL included.
    assert [completion["text"] for completion in document.completions()] == HOSTILE
    assert document.data("page")["alarms"][0]["completions"] == HOSTILE


def test_the_policy_allows_the_scripts_and_styles_of_the_package_and_no_network(run, tmp_path):
    from base64 import b64encode
    from hashlib import sha256

    document = page_of(run, tmp_path / "report")
    rules = dict(rule.split(" ", 1) for rule in document.policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules.keys() == {"default-src", "script-src", "style-src", "base-uri", "form-action"}
    for name, texts in (("script-src", document.scripts), ("style-src", document.styles)):
        hashes = [
            f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in texts
        ]
        assert rules[name].split() == hashes and len(texts) == 2
    assert not any(re.search(r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval)\b", script)
                   for script in document.scripts[1:])  # fmt: skip
    assert (
        "Copyright (c) 2022 Leon Sorokin" in write_report(run, tmp_path / "report")[1].read_text()
    )


# ---- What is refused ----


def test_newest_run_of_an_output_folder_is_taken(run):
    newer = run.parent / "v10-20260101-130000"
    newer.mkdir()
    (newer / "logging.jsonl").write_text((run / "logging.jsonl").read_text())
    os.utime(run / "logging.jsonl", (1, 1))
    assert find_run(run.parent) == newer
    assert find_run(run) == run


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            '{"rew\n{"reward": 1, "global_step/max_steps": "1/2"}\n',
            r"logging.jsonl, line 1: not JSON",
        ),
        ("[1]\n", r"logging.jsonl, line 1: expected an object such as \{...\}, got \[1\]"),
        (
            '{"reward": 1}\n',
            r'logging.jsonl, line 1: expected "global_step/max_steps" such as "7/100"',
        ),
    ],
)
def test_bad_log_is_refused_with_file_and_line(tmp_path, content, message):
    (tmp_path / "logging.jsonl").write_text(content)
    with pytest.raises(InputError, match=message):
        read_run(tmp_path)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {"step": ["1"]},
            "completions.jsonl, line 1: no completion: expected a column such as completion",
        ),
        (
            {"step": ["1"], "prompt": [], "completion": ["a"]},
            "lists of unequal length: completion has 1, prompt has 0",
        ),
        (
            {"step": ["x"], "prompt": ["p"], "completion": ["a"]},
            "line 1: expected a step such as 7, got 'x'",
        ),
    ],
)
def test_bad_completions_and_missing_run_are_refused(run, tmp_path, row, message):
    write_lines(run / "completions.jsonl", [row])
    with pytest.raises(InputError, match=message):
        read_run(run)
    with pytest.raises(
        InputError, match="expected a training run, a folder that has logging.jsonl"
    ):
        find_run(tmp_path / "nothing")


def test_a_folder_that_cannot_be_written_is_named(run, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot write .*file"):
        write_report(run, tmp_path / "file" / "report")


def drawn_axis(panel, rows):
    from matplotlib.figure import Figure

    axis = Figure().subplots()
    draw_panel(axis, panel, curves(panel, {"run": rows}))
    return axis


def test_the_highest_value_stays_below_the_frame_of_the_picture():
    """A penalty of -20 beside a reward of 1 used to leave the reward on the frame."""
    panel = Panel("Rewards", "mean", {"reward": "reward", "penalty": "penalty"})
    rows = [{"step": step, "reward": 1.0, "penalty": -20.0} for step in (1, 2, 3)]
    low, high = drawn_axis(panel, rows).get_ylim()
    assert low < -20 and high - 1 > 0.04 * (high - low)


def test_a_single_step_is_a_whole_one_and_a_point_that_is_seen():
    axis = drawn_axis(
        Panel("Success", "share", {"success": "success"}), [{"step": 1, "success": 1}]
    )
    assert axis.get_xlim() == (0, 2)
    assert [line.get_alpha() for line in axis.lines if line.get_marker() == "o"] == [None]


def test_a_legend_of_many_lines_stays_below_the_label_of_its_axis():
    """It makes the axes lower, and used to be drawn over "training step"."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 1, figsize=(6, 8), layout="constrained")
    names = {f"r{i}": f"reward of a name that takes a whole line {i}" for i in range(9)}
    rows = [{"step": step, **dict.fromkeys(names, 1.0)} for step in (1, 2, 3)]
    panel = Panel("Rewards", "mean", names)
    for axis in axes:
        draw_panel(axis, panel, curves(panel, {"run": rows}))
    figure.canvas.draw()
    label = axes[0].xaxis.label.get_window_extent()
    assert axes[0].get_legend().get_window_extent().y1 <= label.y0
    pyplot.close(figure)


def test_the_title_of_a_picture_is_cut_and_a_glyph_that_its_font_lacks_is_no_warning(
    run, tmp_path, recwarn, monkeypatch, curves_are_drawn
):
    from matplotlib import pyplot

    figures: list = []
    monkeypatch.setattr(pyplot, "close", figures.append)
    runs = []
    for number in range(3):
        runs.append(tmp_path / f"{'a long name ' * 5}\U0001f389 {number}")
        run.rename(runs[-1]) if number == 2 else shutil.copytree(run, runs[-1])
    write_report(runs, tmp_path / "report")
    assert not [each for each in recwarn if "Glyph" in str(each.message)]
    figure = figures[-1]
    title = figure.get_suptitle()
    assert title.startswith("GRPO") and " ... " in title and len(title) < 130
    monkeypatch.undo()
    pyplot.close(figure)


def test_a_long_title_stays_on_the_picture():
    title = f"Rewards · {'runs/' * 20}last"
    rows = [{"step": step, "success": 1.0} for step in (1, 2)]
    shown = drawn_axis(Panel(title, "share", {"success": "success"}), rows).get_title()
    assert len(shown) <= LONGEST_TITLE and shown.startswith("Rewards · ") and shown.endswith("last")
