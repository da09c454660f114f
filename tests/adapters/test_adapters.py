"""Adapters under the signatures that trainers call them with; test_loaders.py has the trainers'
own code.
"""

import asyncio
import doctest
import importlib
import inspect
import json
import re
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pydantic import BaseModel, ConfigDict

from mixed_rows import COMPLETIONS, VERIFIERS, prepare
from paths import ROOT
from present import present
from swift_rlvr.adapters.grading import grade, row_of, same_keys, short_name, task_of
from swift_rlvr.adapters.nemo import step, verify
from swift_rlvr.adapters.openrlhf import reward_func
from swift_rlvr.adapters.rows import FORMATS, PARQUET, refuse_media
from swift_rlvr.adapters.slime import custom_rm
from swift_rlvr.adapters.verl import compute_score
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import read_jsonl

ROW = {"nums": [3, 4], "target": 7, "task": "countdown"}
LABEL = json.dumps(ROW)
UNGRADED = json.dumps({**ROW, "nums": None})
RIGHT = "<think>sum</think><answer>3 + 4</answer>"
WRONG = "<think>sum</think><answer>3 - 4</answer>"


def test_grade():
    grades = grade(RIGHT, ROW, ["external_countdown", "format"], [1, 0.5])
    assert grades == {
        "score": 1.5,
        "countdown": 1.0,
        "countdown_reason": "correct",
        "format": 1.0,
        "format_reason": "ok",
    }
    # None is left out of the sum, and is the sum where there is nothing else.
    ungraded = {**ROW, "nums": None}
    assert grade(RIGHT, ungraded, ["countdown", "format"])["score"] == 1.0
    assert grade(RIGHT, ungraded) == {
        "score": None,
        "countdown": None,
        "countdown_reason": "bad gold",
    }
    by_tool = [{"role": "assistant", "content": ""}, {"role": "tool", "content": RIGHT}]
    assert grade(by_tool, ROW)["score"] == 0.0
    of_pandas = pytest.importorskip("pandas").Series(ROW)
    assert grade(RIGHT, of_pandas, "countdown")["score"] == 1.0


@pytest.mark.parametrize(
    ("row", "rewards", "weights", "message"),
    [
        (ROW, ["nothing"], None, "there is no reward 'nothing'"),
        (
            ROW,
            ["countdown"],
            [1, 2],
            "reward_weights: must have one weight for each of countdown, got 2",
        ),
        (ROW, ["countdown", "external_countdown"], None, "a reward is named twice"),
        ({"nums": [1]}, None, None, "SWIFT_RLVR_REWARD_FUNCS: no reward is named"),
        ({"nums": [1]}, ["countdown"], None, "needs the dataset column 'target'"),
        ({"solution": "7"}, ["countdown"], None, "needs the dataset column 'nums'"),
    ],
)
def test_what_cannot_be_graded_is_named(row, rewards, weights, message):
    with pytest.raises(ValueError, match=message):
        grade(RIGHT, row, rewards, weights)


def test_rewards_come_from_variables_where_a_trainer_has_no_place_for_them(monkeypatch):
    monkeypatch.setenv("SWIFT_RLVR_REWARD_FUNCS", "countdown, format")
    monkeypatch.setenv("SWIFT_RLVR_REWARD_WEIGHTS", "1, 0.1")
    assert grade("<answer>3 + 4</answer>", ROW)["score"] == 1.0
    assert grade(RIGHT, ROW)["score"] == 1.1
    assert grade(RIGHT, ROW, ["format"], [1])["score"] == 1.0
    monkeypatch.setenv("SWIFT_RLVR_REWARD_WEIGHTS", "one")
    with pytest.raises(InputError, match="SWIFT_RLVR_REWARD_WEIGHTS: must be finite numbers"):
        grade(RIGHT, ROW)


@pytest.mark.parametrize(
    ("label", "row"),
    [
        (LABEL, ROW),
        (ROW, ROW),
        ("72", {"solution": "72"}),
        (72, {"solution": "72"}),
        (np.int64(72), {"solution": "72"}),
        ("{1, 2}", {"solution": "{1, 2}"}),
        ("[1, 2]", {"solution": "[1, 2]"}),
        ('{"open', {"solution": '{"open'}),
        ("", {"solution": None}),
        (" ", {"solution": None}),
        (None, {"solution": None}),
        (float("nan"), {"solution": None}),
        ([], {"solution": None}),
        (np.array([]), {"solution": None}),
        ([None], {"solution": None}),
        ([71, "72", None], {"solution": '["71", "72"]'}),
        (np.array(["71", "72"], dtype=object), {"solution": '["71", "72"]'}),
        ('["71", "72"]', {"solution": '["71", "72"]'}),  # Skywork-OR1
        ({"target": np.array(["Rhine"], dtype=object)}, {"solution": "Rhine"}),  # Search-R1
        ({"value": "Rhine", "aliases": ["Rhein"]}, {"solution": '["Rhine", "Rhein"]'}),  # TriviaQA
        ({"solution": [71, "72"]}, {"solution": '["71", "72"]'}),
        ({"target": 7, "numbers": np.array([3, 4])}, {"target": 7, "numbers": [3, 4]}),  # TinyZero
        (
            '{"inputs": ["1"], "outputs": ["2"]}',
            {"tests": {"inputs": ["1"], "outputs": ["2"]}},
        ),
        ('[{"input": "1", "output": "2"}]', {"tests": [{"input": "1", "output": "2"}]}),  # PRIME
    ],
)
def test_row_of(label, row):
    assert row_of(label) == row
    with_task = {"task": "countdown", **row}
    assert row_of(label, "countdown") == with_task and row_of(label, "no task of ours") == row
    assert row_of(label, other=1) == {"other": 1, **row}
    # What extra_info holds may be called anything, and an empty label takes nothing away.
    theirs = {"label": 1, "task": "algebra", "completions": [], "self": 2, "columns": 3}
    assert row_of(label, **theirs) == {**theirs, **row}
    kept = row_of(label, solution="8")["solution"]
    assert kept == row.get("solution") or kept == "8"


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("openai/gsm8k", "gsm8k"),
        ("AI-MO/NuminaMath-TIR", "numina_math_tir"),
        ("numina_olympiads", "math"),
        ("taco", "code"),
        ("searchR1_hotpotqa", "qa"),
        ("countdown", "countdown"),
        ("algebra", None),
        (np.array(["math", "qa"]), None),
        (7, None),
    ],
)
def test_task_of(name, task):
    assert task_of(name) == task


PROGRAM = "```python\nprint(int(input()) + 1)\n```"
RHINE = "<think>r</think><answer>Rhein</answer>"


@pytest.mark.parametrize(
    ("source", "completion", "label", "rewards", "score", "reason"),
    [
        ("searchR1_nq", RHINE, {"target": np.array(["Rhine", "Rhein"])}, None, 1.0, "correct"),
        ("my_qa", RHINE, {"target": ["Rhine", "Rhein"]}, "exact_match", 1.0, "correct"),
        ("my_qa", RHINE, "Rhein", "exact_match", 1.0, "correct"),
        ("countdown", RIGHT, {"target": 7, "numbers": np.array([3, 4])}, None, 1.0, "correct"),
        ("countdown", RIGHT, {"target": 7, "numbers": [3, 4]}, "countdown", 1.0, "correct"),
        ("numina_olympiads", r"\boxed{72}", "72", ["accuracy", "code"], 1.0, "correct"),
        ("numina_olympiads", r"\boxed{72}", ["71", "72"], "accuracy", 1.0, "correct"),
        ("gsm8k", r"\boxed{72}", '["71", "72"]', ["cosine"], 1.0, "right"),
        ("taco", PROGRAM, '{"inputs": ["1"], "outputs": ["2"]}', ["code"], 1.0, "all tests passed"),
        ("taco", PROGRAM, '["assert add(1, 2) == 3"]', ["code"], 0.0, "error"),
        ("taco", RIGHT, None, ["code"], 0.0, "bad tests"),
        ("countdown", RIGHT, None, None, 0.0, "bad gold"),
        ("gsm8k", RIGHT, float("nan"), None, 0.0, "bad gold"),
        ("my_math", RIGHT, "", "accuracy", 0.0, "bad gold"),
        ("my_math", RIGHT, '{"answer": "3 + 4"}', "accuracy", 1.0, "correct"),
    ],
)
def test_rows_of_others(source, completion, label, rewards, score, reason):
    """PRIME, Search-R1, TinyZero and labels as they come out of a parquet file."""
    result = compute_score(source, completion, label, {"index": 0, "task": "algebra"}, rewards)
    assert reason in [result[name] for name in result if name.endswith("_reason")]
    assert (result["score"] > 0) == (score > 0)


def test_one_name_or_several(monkeypatch):
    several = grade(RIGHT, ROW, ["countdown", "format"], [1, 0.5])
    assert grade(RIGHT, ROW, "countdown,format", "1,0.5") == several
    assert grade(RIGHT, ROW, np.array(["countdown", "format"]), np.array([1, 0.5])) == several
    assert grade(RIGHT, ROW, "countdown", 2)["score"] == 2.0


def test_verl():
    """Also the keywords that it adds with a reward model."""
    more = {"reward_router_address": "host", "reward_model_tokenizer": None}
    result = compute_score(
        data_source="countdown", solution_str=RIGHT, ground_truth=LABEL, extra_info=None, **more
    )
    assert result == same_keys({"score": 1.0, "countdown": 1.0, "countdown_reason": "correct"})
    # a user's own file: the task by its name, the columns in extra_info, the label as it is
    own = compute_score("gsm8k", r"<answer>\boxed{72}</answer>", "72", {"index": 3})
    assert own["score"] == 1.0
    assert compute_score("countdown", RIGHT, "", {"nums": [3, 4], "target": 7})["score"] == 1.0
    ungraded = compute_score("countdown", RIGHT, UNGRADED)
    assert (ungraded["score"], ungraded["countdown"]) == (0.0, None)


def test_openrlhf_grades_no_prompt():
    prompt = "Write <answer>3 + 4</answer>."
    result = reward_func([prompt + WRONG, prompt + RIGHT], [prompt] * 2, [LABEL] * 2, images=None)
    assert result["rewards"].tolist() == result["scores"].tolist() == [0.0, 1.0]
    assert result["extra_logs"]["countdown"].tolist() == [0.0, 1.0]
    assert result["extra_logs"]["countdown_graded"].tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="does not begin with its prompt 'Write"):
        reward_func([RIGHT], [prompt], [LABEL])


@dataclass
class Sample:
    """The fields of slime.utils.types.Sample that matter here."""

    response: str
    label: str | None
    prompt: str = "?"
    metadata: dict = field(default_factory=dict)
    remove_sample: bool = False


@dataclass
class Arguments:
    reward_key: str | None = None


def test_slime():
    samples = [Sample(RIGHT, LABEL), Sample(WRONG, None, metadata=ROW), Sample(RIGHT, UNGRADED)]
    arguments = Arguments()
    assert asyncio.run(custom_rm(arguments, samples[0])) == 1.0
    assert asyncio.run(custom_rm(arguments, samples, evaluation=True)) == [1.0, 0.0, 0.0]
    assert [sample.remove_sample for sample in samples] == [False, False, True]
    (whole,) = asyncio.run(custom_rm(Arguments(reward_key="score"), samples[:1]))
    assert whole == {"score": 1.0, "countdown": 1.0, "countdown_reason": "correct"}


def message(text):
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"type": "message", "role": "assistant", "status": "completed", "content": content}


REASONING = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "sum"}]}
CALL = {"type": "function_call", "name": "solve", "arguments": "{}", "call_id": "1"}
OUTPUT = {"type": "function_call_output", "call_id": "1", "output": RIGHT}


@pytest.mark.parametrize(
    ("output", "rewards"),
    [
        ([message(RIGHT)], (1.0, 1.0)),
        ([REASONING, message("<answer>3 + 4</answer>")], (1.0, 1.0)),
        ([{**message(""), "content": RIGHT}], (1.0, 1.0)),
        ([REASONING, CALL, OUTPUT, message("<answer>3 + 4</answer>")], (1.0, 0.0)),
        ([CALL, OUTPUT], (0.0, 0.0)),
        ([message(RIGHT), CALL], (0.0, 0.0)),
        ([REASONING], (0.0, 0.0)),
        ([], (0.0, 0.0)),
    ],
)
def test_nemo_gym(monkeypatch, output, rewards):
    monkeypatch.setenv("SWIFT_RLVR_REWARD_FUNCS", "countdown,format")
    request = {"responses_create_params": {"input": []}, "response": {"output": output}}
    for row in ({"expected_answer": LABEL}, ROW):
        result = verify({**request, **row})
        assert (result["countdown"], result["format"]) == rewards
        assert result["reward"] == sum(rewards) and result["response"] == {"output": output}
        assert not result["mask_sample"]


def test_nemo_gyms_models_keep_what_they_allow():
    """As in a resources server: FastAPI reads the request into one model, the answer is another."""

    class Request(BaseModel):
        response: dict

    class AnyRequest(Request):
        model_config = ConfigDict(extra="allow")

    class Response(AnyRequest):
        reward: float
        mask_sample: bool = False

    line: dict[str, Any] = {"response": {"output": [message(RIGHT)]}, "expected_answer": LABEL}
    answer = Response(**verify(AnyRequest(**line).model_dump())).model_dump()
    assert answer["expected_answer"] == LABEL and answer["countdown_reason"] == "correct"
    assert (answer["reward"], answer["mask_sample"]) == (1.0, False)
    ungraded = Response(**verify({**line, "expected_answer": UNGRADED}))
    assert (ungraded.reward, ungraded.mask_sample) == (0.0, True)
    # Without it the gold is gone, which is an error and no reward of 0.
    with pytest.raises(InputError, match="no reward is named"):
        verify(Request(**line).model_dump())


def test_nemo_gyms_lines():
    line = json.dumps({"response": {"output": [message(RIGHT)]}, "expected_answer": UNGRADED})
    done = subprocess.run(
        [sys.executable, "-m", "swift_rlvr.adapters.nemo"],
        input=f"{line}\n{line}\n", capture_output=True, text=True, check=True,
    )  # fmt: skip
    results = [json.loads(each) for each in done.stdout.splitlines()]
    assert [result["reward"] for result in results] == [0.0, 0.0]
    assert results[0]["countdown"] is None and results[0]["countdown_reason"] == "bad gold"


def test_nemo_rl():
    user, right = {"role": "user", "content": "?"}, {"role": "assistant", "content": RIGHT}
    logs = [[user, right], [user, right, {"role": "environment", "content": RIGHT}]]
    results = step(logs, [{"ground_truth": LABEL}, ROW])
    assert [result["reward"] for result in results] == [1.0, 0.0]


def by_verl(completion, row):
    label, info = row["reward_model"]["ground_truth"], {"index": 0, "num_turns": None}
    return compute_score(row["data_source"], completion, label, info)


def by_openrlhf(completion, row):
    result = reward_func(["?" + completion], ["?"], [row["label"]])
    logs = {name: values.item() for name, values in result["extra_logs"].items()}
    grades = {"score": result["rewards"].item()}
    for name, value in logs.items():
        if not name.endswith("_graded"):
            grades[name] = value if logs[f"{name}_graded"] else None
    return grades


def by_slime(completion, row):
    arguments = Arguments(reward_key="score")
    return asyncio.run(custom_rm(arguments, Sample(completion, row["label"])))


def by_nemo_gym(completion, row):
    grades = verify({**row, "response": {"output": [message(completion)]}})
    return {**grades, "score": grades["reward"]}


def by_nemo_rl(completion, row):
    log = [{"role": "assistant", "content": completion}]
    (grades,) = step([log], [{"ground_truth": row["expected_answer"]}])
    return {**grades, "score": grades["reward"]}


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize(
    ("format", "grades_of"),
    [
        ("verl", by_verl),
        ("openrlhf", by_openrlhf),
        ("slime", by_slime),
        ("nemo", by_nemo_gym),
        ("nemo", by_nemo_rl),
    ],
)
def test_rows_of_several_tasks(monkeypatch, tmp_path, format, grades_of, named):
    """Math, code, countdown and qa in one file: each is graded by its own verifier, and the others
    say "other task".
    """
    if named:
        monkeypatch.setenv("SWIFT_RLVR_REWARD_FUNCS", ",".join([*VERIFIERS, "format"]))
    file = prepare(format, tmp_path)
    if format in PARQUET:
        rows = pq.read_table(file).to_pylist()
    else:
        rows = [row for _, row in read_jsonl(file)]
    keys = set()
    for (task, completions), row in zip(COMPLETIONS.items(), rows, strict=True):
        own = short_name(present(TASKS[task].verifier))
        for completion, right in zip(completions, (1.0, 0.0), strict=True):
            grades = grades_of(completion, row)
            assert grades[own] == right
            assert grades["score"] == right + (1.0 if named else 0.0)
            others = [grades[name] for name in VERIFIERS if name != own and name in grades]
            assert others == [None] * len(others)
            keys.add(tuple(grades))
    if named or format in ("verl", "openrlhf"):
        assert len(keys) == 1  # these take the keys of one row for all


def test_a_completion_that_is_cut_off_in_a_thinking_of_the_prompt_has_no_answer():
    """OpenRLHF and slime hand over the rendered prompt; verl's rows may say it."""
    prompt = "<|im_start|>assistant\n<think>\n"
    cut_off, closed = r"It may be \boxed{7}.", r"It is.</think>\boxed{7}"
    label = '{"solution": "7", "task": "math"}'
    result = reward_func([prompt + cut_off, prompt + closed], [prompt] * 2, [label] * 2)
    assert result["rewards"].tolist() == [0.0, 1.0]
    samples = [Sample(cut_off, label, prompt), Sample(closed, label, prompt)]
    assert asyncio.run(custom_rm(Arguments(), samples)) == [0.0, 1.0]
    for text, score in ((cut_off, 0.0), (closed, 1.0)):
        assert compute_score("math", text, "7", {"thinking_opened": True})["score"] == score
        assert compute_score("math", text, "7", {"thinking_opened": None})["score"] == 1.0


def test_a_row_that_names_no_task_is_for_the_verifier_whose_columns_it_has():
    names = ["accuracy", "countdown", "format"]
    own = grade(r"\boxed{7}", row_of("7", "my_math"), names)
    assert (own["accuracy"], own["countdown"], own["countdown_reason"]) == (1.0, None, "other task")
    numbers = grade(RIGHT, {"nums": [3, 4], "target": 7}, names)
    assert (numbers["accuracy_reason"], numbers["countdown"]) == ("other task", 1.0)


@pytest.mark.parametrize("name", [*REWARDS.present, "countdown", "format"])
def test_trl_and_axolotl_find_every_reward(name):
    """As trl/scripts/grpo.py and axolotl's GRPOStrategy.get_reward_func do it."""
    module, _, attribute = f"swift_rlvr.adapters.trl.{name}".rpartition(".")
    reward = getattr(importlib.import_module(module), attribute)
    assert type(reward) is REWARDS[name] and reward.__name__ == REWARDS[name].__name__
    assert len(inspect.signature(reward).parameters) >= 2


def test_trl_names_what_is_no_reward():
    module = importlib.import_module("swift_rlvr.adapters.trl")
    assert "countdown" in dir(module)
    with pytest.raises(AttributeError, match="has no reward 'nothing'"):
        module.nothing  # noqa: B018


# By format, what its trainer hands over of a row: the label, and the name of the task.
HANDED_OVER = {
    "verl": lambda row: (row["reward_model"]["ground_truth"], row["data_source"]),
    "skyrl": lambda row: (row["reward_spec"]["ground_truth"], row["data_source"]),
    "openrlhf": lambda row: (row["label"], None),
    "slime": lambda row: (row["label"], None),
    "nemo": lambda row: (row["expected_answer"], None),
    "trl": lambda row: ({name: value for name, value in row.items() if name != "prompt"}, None),
}


def test_no_format_takes_pictures():
    with pytest.raises(InputError, match="rows have images, which go to ms-swift alone"):
        refuse_media(TASKS["boxes"].preprocess(TASKS["boxes"].examples[0]))


WITHOUT_PICTURES = [name for name in TASKS.present if TASKS[name].verifier and name != "boxes"]


@pytest.mark.parametrize("name", WITHOUT_PICTURES)
@pytest.mark.parametrize("format", FORMATS)
def test_every_task_goes_through_every_format(format, name):
    """The gold earns the full reward of what is left in the label."""
    task = TASKS[name]
    raw = task.examples[0]
    gold = task.gold_completion(raw) or "<answer>\ndef add(a, b):\n    return a + b\n</answer>"
    label, data_source = HANDED_OVER[format](FORMATS[format](name, task.preprocess(raw), 0))
    row = row_of(label, data_source)
    assert TASKS[row["task"]].verifier == task.verifier
    score = grade(gold, row, task.rewards)["score"]
    assert score == sum(REWARDS[reward].full_reward for reward in task.rewards)


def test_the_page_shows_what_grade_returns():
    page = ROOT / "docs" / "guides" / "other_trainers.md"
    (example,) = re.findall(
        r"^```python\n(>>> .*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE
    )
    test = doctest.DocTestParser().get_doctest(example, {}, "example", str(page), 0)
    assert len(test.examples) == 2 and doctest.DocTestRunner().run(test).failed == 0


def test_a_function_that_raises_on_the_first_completions_does_not_end_the_training(tmp_path):
    """A trainer hands them over one by one, and the first are those of an untrained model."""
    (tmp_path / "mine.py").write_text(
        "import json\ndef f(completion):\n    return float(json.loads(completion)['ok'])\n"
    )
    reward = f"{tmp_path}/mine.py:f"
    scores = [grade(text, {}, [reward])["score"] for text in ("no", "no", '{"ok": 1}')]
    assert scores == [0.0, 0.0, 1.0]
