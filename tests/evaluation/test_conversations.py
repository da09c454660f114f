"""Rows for supervised training: right answers only, none of a held-out question, and of records so
many a question.
"""

import re
from collections import Counter
from dataclasses import replace
from itertools import islice

import pytest

from commands import ran, refused
from present import present
from swift_rlvr.evaluation.conversations import from_answers
from swift_rlvr.runs.records import Record, append_records
from swift_rlvr.tasks import TASKS
from swift_rlvr.tasks.sources import Source, parse_source
from swift_rlvr.tasks.task import Gold
from swift_rlvr.utils.jsonl import read_jsonl, write_jsonl
from swift_rlvr.verifiers.countdown.generator import make_tasks
from swift_rlvr.verifiers.countdown.task_settings import GAME24, TINY, TUTORIAL

SOLVABLE, UNSOLVABLE = {"nums": [3, 5, 7], "target": 22}, {"nums": [1, 1, 1], "target": 90}


def kept(source, held_out=()):
    left_out: Counter[str] = Counter()
    return list(from_answers(source, held_out, left_out)), left_out


def file_of(tmp_path, rows, name="rows.jsonl"):
    write_jsonl(tmp_path / name, rows)
    return parse_source(f"countdown:{tmp_path / name}")


@pytest.mark.parametrize("settings", [TINY, TUTORIAL, GAME24], ids=["tiny", "tutorial", "24"])
def test_a_search_is_true_and_ends_in_the_answer(tmp_path, settings):
    """Every step is right, no trial that is called a miss hits the target, and the last one is the
    answer's.
    """
    rows, left_out = kept(file_of(tmp_path, islice(make_tasks(settings, "train", 0, 100), 100)))
    assert len(rows) == 100 and not left_out
    trials = 0
    for row in rows:
        system, user, answer = row["messages"]
        assert [turn["role"] for turn in row["messages"]] == ["system", "user", "assistant"]
        assert system["content"] == TASKS["countdown"].system
        target = present(re.search(r"equals (\d+)", user["content"]))[1]
        thought = present(re.search("<think>(.*)</think>", answer["content"], re.DOTALL))[1]
        *misses, hit = thought.split("\n")
        trials += len(misses)
        for line in (*misses, hit):
            steps = re.findall(r"([^,]+?) = ([^,.]+)", line.removeprefix("Try "))
            assert all(abs(eval(left) - eval(right)) < 1e-9 for left, right in steps)
            assert (steps[-1][1] == target) == (line == hit) == line.endswith(f"That is {target}.")
    assert trials > 100


@pytest.mark.parametrize(
    ("name", "reasoning"),
    [
        ("chain_sum?max_terms=3&min_terms=3", r"(-?\d+) [+-] (\d+) = (-?\d+)\n\3 [+-] \d+ = -?\d+"),
        ("gsm_symbolic", r"((?!####)[\s\S]){20,}"),
        ("gcd", r"The answer is \d+\."),
    ],
)
def test_reasoning_gyms_derivations(name, reasoning):
    """A text of the metadata, an expression of it that is calculated, or the answer alone."""
    rows, _ = kept(parse_source(f"reasoning_gym:{name}:train#3"))
    for row in rows:
        assert re.fullmatch(
            f"<think>{reasoning}</think>\n<answer>.+</answer>", row["messages"][-1]["content"]
        )


def test_what_is_left_out_of_a_dataset(tmp_path):
    again, held = {**SOLVABLE, "nums": [7, 5, 3]}, {"nums": [2, 4, 6], "target": 12}
    source = file_of(tmp_path, [SOLVABLE, again, UNSOLVABLE, {"nums": "x", "target": 1}, held])
    rows, left_out = kept(source, [file_of(tmp_path, [{**held, "nums": [6, 4, 2]}], "held.jsonl")])
    assert len(rows) == 1 and "22" in rows[0]["messages"][1]["content"]
    reasons = {
        "asked before": 1,
        "no right answer is known": 1,
        "cannot be used, nums": 1,
        "held out": 1,
    }
    assert left_out == reasons


@pytest.mark.parametrize(
    ("answer", "reasoning", "reason"),
    [
        ("3 * 5 + 8 = 22", "My reasoning.", "not right"),
        ("3 * 5 + 7 = 22", "A </think> in it.", "right answer in the wrong format"),
        ("3 * 5 + 7 = 22", "My reasoning.", None),
    ],
)
def test_the_answers_of_a_task_of_ones_own_are_judged(tmp_path, answer, reasoning, reason):
    own = replace(TASKS["countdown"], worked=lambda row: Gold(answer, reasoning, ""))
    source = Source(own, file_of(tmp_path, [SOLVABLE]).path)
    rows, left_out = kept(source)
    assert left_out == ({reason: 1} if reason else {}) and len(rows) == (reason is None)
    assert reason or "My reasoning." in rows[0]["messages"][-1]["content"]


def record(index, text, success=True, strict=True, finish="stop"):
    asked = [{"role": "user", "content": f"Question {index}?"}]
    rewards: dict[str, float | None] = {"external_accuracy": float(bool(success))}
    return Record(
        index=index,
        completion=text,
        rewards=rewards,
        success=success,
        strict=strict,
        finish=finish,
        messages=asked,
    )


RECORDS = [
    *[record(0, text) for text in ("a long one", "short", "middle", "short")],
    record(1, "wrong", success=False, strict=False),
    record(1, "right, without tags", strict=False),
    record(2, "not graded", success=None, strict=None),
    record(3, "cut", finish="length"),
    record(4, "right", strict=None),
    record(5, "held out"),
]


@pytest.mark.parametrize(
    ("flags", "texts"),
    [
        (("--most", 2, "--shortest"), {0: {"short", "middle"}, 4: {"right"}}),
        (("--most", 9), {0: {"a long one", "short", "middle"}, 4: {"right"}}),
        (("--shortest",), {0: {"short"}, 4: {"right"}}),
    ],
)
def test_right_completions_of_records(tmp_path, flags, texts):
    append_records(tmp_path / "records.jsonl", RECORDS)
    held = {
        "messages": [{"role": "user", "content": "Question 5?"}],
        "solution": "1",
        "task": "math",
    }
    write_jsonl(tmp_path / "held.jsonl", [held])
    out = tmp_path / "sft.jsonl"
    sources = ["--records", tmp_path / "records.jsonl", "--against", tmp_path / "held.jsonl"]
    said = ran("dataset", "make", "sft", *sources, "--out", out, *flags)
    written: dict[int, set[str]] = {}
    for _, row in read_jsonl(out):
        question, answer = row["messages"]
        written.setdefault(int(present(re.search(r"\d", question["content"]))[0]), set()).add(
            answer["content"]
        )
    assert written == texts
    for reason in (
        "not right: 1",
        "right answer in the wrong format: 1",
        "not graded: 1",
        "cut off: 1",
        "held out: 1",
    ):
        assert reason in said


def test_random_completions_are_the_same_each_time(tmp_path):
    append_records(
        tmp_path / "records.jsonl",
        [record(index, f"{text}") for index in range(40) for text in range(5)],
    )
    texts = []
    for name in ("a", "b"):
        out = tmp_path / f"{name}.jsonl"
        ran("dataset", "make", "sft", "--records", tmp_path / "records.jsonl", "--out", out)
        texts.append([row["messages"][-1]["content"] for _, row in read_jsonl(out)])
    assert texts[0] == texts[1] and len(texts[0]) == 40 and set(texts[0]) == set("01234")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--records: give either a dataset or --records"),
        (("gcd.jsonl", "--records", "x.jsonl"), "--records: give either a dataset or --records"),
        (("--records", "none.jsonl"), "cannot read none.jsonl"),
        (("--records", "wrong.jsonl"), "no right answer to write (left out: not right: 1)"),
    ],
)
def test_mistakes(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    append_records("wrong.jsonl", [RECORDS[4]])
    assert message in refused("dataset", "make", "sft", *arguments, "--out", "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()
