"""`compare` and `report` on what people have: evaluations, and completions of other tools, which are
graded as `score` grades them.
"""

import json
import shutil
from typing import Any

import pytest

from commands import ran, refused
from evaluation.test_completion_files import GOLDS, QUESTIONS, batch, of_lm_eval, of_verl, write
from helpers import write_records
from report_pages import Document
from swift_rlvr.evaluation.graded_files import graded_records
from swift_rlvr.runs.records import Record
from swift_rlvr.runs.statistics import summarize
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import write_json


def page(*arguments, out):
    """What people see on the page of `swift-rlvr report`, and what it knows of each completion."""
    ran("report", *arguments, "--out", out)
    document = Document((out / "report.html").read_text(encoding="utf-8"))
    return " ".join(" ".join(document.seen).split()), document.completions()


def evaluation(folder, right):
    """The folder of an evaluation of four tasks."""
    records = []
    for index in range(4):
        success = index < right
        records.append(
            Record(
                index=index,
                completion="<answer>3 * 5 + 7</answer>",
                rewards={"external_countdown": float(success)},
                reasons={"external_countdown": "correct" if success else "wrong value"},
                success=success,
                row={"nums": [3, 5, 7], "target": 22, "task": "countdown"},
                messages=[{"role": "user", "content": f"Task {index}"}],
                tokens=9,
                finish="stop",
            )
        )
    folder.mkdir(parents=True)
    write_records(folder / "records.jsonl", records)
    settings = {"model": f"model-{right}", "seed": 0}
    write_json(folder / "summary.json", {"settings": settings, **summarize(records)})
    return folder


def test_compare_reads_samples_of_other_tools(tmp_path):
    before = write(tmp_path / "samples_before.jsonl", of_lm_eval())
    better = [{**row, "resps": [[f"\\boxed{{{GOLDS[row['doc_id']]}}}"]]} for row in of_lm_eval()]
    # The order does not matter.
    after = write(tmp_path / "samples_after.jsonl", reversed(better))
    output = ran("compare", before, after, columns=120)
    assert "on 3 tasks: 1 better, 0 worse" in output
    assert "0.667 (0.208 to 0.939)   1.000 (0.438 to 1.000)" in output
    # A file has no settings that could differ.
    assert "note:" not in output


def test_compare_reads_rows_in_a_json_file(tmp_path):
    row = {"question": "1+1?", "answer": "2", "completion": "The answer is 2."}
    for name, value in {"one": row, "list": [row], "held": {"data": [row]}}.items():
        file = tmp_path / f"{name}.json"
        file.write_text(json.dumps(value, indent=1))
        assert "on 1 task: 0 better, 0 worse" in ran("compare", file, file, columns=200)


def test_compare_pairs_what_both_files_have(tmp_path):
    before = write(tmp_path / "before.jsonl", of_lm_eval())
    rest = [row for row in of_lm_eval() if row["doc_id"] != 1]
    output = ran("compare", before, write(tmp_path / "after.jsonl", rest), columns=400)
    assert "on 2 tasks" in output and ": 1 of before, 0 of after." in output
    # Without their questions, rows are told apart by their ids; without both, only their order is left.
    rows = [{"id": name, "answer": "7", "completion": "\\boxed{7}"} for name in "abc"]
    named = write(tmp_path / "named.jsonl", rows)
    output = ran("compare", named, write(tmp_path / "fewer.jsonl", rows[:0:-1]), columns=400)
    assert "on 2 tasks" in output and "by their order" not in output
    nameless = write(tmp_path / "nameless.jsonl", [{**row, "id": None} for row in rows])
    output = ran("compare", nameless, nameless, columns=400)
    # Without an id each line is a row of its own, though all have the same gold.
    assert "on 3 tasks" in output and "by their order" in output
    assert "not tested" in ran("compare", named, nameless, columns=400)
    # Only the names of `valid: true` and of a grid end as those of ids do.
    like_ids: dict[str, Any] = {"id": None, "valid": True, "grid": []}
    questions = [{**row, **like_ids, "question": row["id"]} for row in rows]
    marked = write(tmp_path / "marked.jsonl", questions)
    assert "on 3 tasks" in ran("compare", marked, marked, columns=400)


def test_compare_takes_the_last_step_of_a_folder_of_verl(tmp_path):
    for step in (0, 20):
        write(tmp_path / "dumps" / f"{step}.jsonl", of_verl(step))
    first = tmp_path / "dumps" / "0.jsonl"
    output = ran("compare", first, tmp_path / "dumps", columns=120)
    assert "dumps: only the completions of step 20 are compared" in output
    assert "on 3 tasks: 2 better, 0 worse" in output


def test_compare_reads_a_batch_with_its_dataset(tmp_path):
    answers = write(tmp_path / "out.jsonl", batch())
    rows = [
        {"id": f"q-{number}", "question": question, "answer": gold}
        for number, (question, gold) in enumerate(zip(QUESTIONS, GOLDS, strict=True))
    ]
    dataset = write(tmp_path / "rows.jsonl", rows)
    output = ran("compare", answers, answers, "--dataset", f"math:{dataset}", columns=200)
    assert "on 2 tasks: 0 better, 0 worse" in output
    assert f"{answers}: line 3: the request 'q-1' failed" in output
    # New names of columns are also those of the dataset.
    renamed = [{"id": row["id"], "Q": row["question"], "A": row["answer"]} for row in rows]
    dataset = write(tmp_path / "renamed.jsonl", renamed)
    names = ("--columns", '{"Q": "problem", "A": "answer"}')
    output = ran("compare", answers, answers, "--dataset", f"math:{dataset}", *names, columns=200)
    assert "on 2 tasks: 0 better, 0 worse" in output


def test_compare_reads_evaluations_and_their_records(tmp_path):
    before, after = evaluation(tmp_path / "before", 1), evaluation(tmp_path / "after", 4)
    folders = ran("compare", before, after, columns=120)
    assert "on 4 tasks: 3 better, 0 worse" in folders and "note:" not in folders
    files = ran("compare", before / "records.jsonl", after / "records.jsonl", columns=120)
    assert files == folders
    # Nothing is tested without the completions.
    assert "tasks: " not in ran("compare", before / "summary.json", after, columns=120)


def test_report_of_an_evaluation(tmp_path):
    text, completions = page(evaluation(tmp_path / "eval", 3), out=tmp_path / "page")
    assert "Success: 0.750 (0.301 to 0.954) of 4 tasks." in text
    assert "Completions: model-3 on countdown" in text
    assert "mean length in tokens 9" in text and "Spread within a group" not in text
    assert [completion["reasons"] for completion in completions] == [
        {"external_countdown": "correct"}
    ] * 3 + [{"external_countdown": "wrong value"}]


def test_report_of_a_file_of_completions(tmp_path):
    file = write(tmp_path / "samples.jsonl", of_lm_eval())
    text, completions = page(file, out=tmp_path / "page")
    assert "Success: 0.667 (0.208 to 0.939) of 3 tasks." in text and "Completions on math" in text
    assert [completion["question"] for completion in completions] == [
        f"Question: {question}" for question in QUESTIONS
    ]
    assert completions[1]["reasons"]["external_accuracy"] == "wrong answer"
    assert completions[1]["gold"] == "30"


def test_report_of_a_folder_of_verl_has_curves(tmp_path):
    for step in (0, 20, 40):
        write(tmp_path / "dumps" / f"{step}.jsonl", of_verl(step))
    out = tmp_path / "page"
    text, completions = page(tmp_path / "dumps", out=out)
    assert "Success in training: 0.00 → 0.67, best 0.67 around step 20" in text
    assert "dumps, step 40 value tasks 3 success 0.667" in text
    assert [completion["step"] for completion in completions] == [0] * 3 + [20] * 3 + [40] * 3
    assert (out / "curves.png").is_file()


def test_report_of_the_folder_of_the_quickstart(tmp_path):
    """It holds the run, the evaluations before and after, and their comparison."""
    folder = tmp_path / "quickstart"
    before, after = evaluation(folder / "before", 1), evaluation(folder / "after", 4)
    ran("compare", before, after, "--out", folder / "comparison.json")
    line = {"global_step/max_steps": "1/1", "reward": 0.5, "rewards/CountdownReward/mean": 0.5}
    write(folder / "run" / "logging.jsonl", [line])
    write_json(folder / "run" / "rewards.json", {})
    # A cold start has no rewards.
    write(folder / "cold_start" / "logging.jsonl", [{"loss": 1.0}])
    text, _ = page(folder, out=tmp_path / "page")
    assert "Held-out success: 0.250" in text and "on 4 tasks: 3 better, 0 worse" in text

    shutil.copytree(folder / "run", folder / "second_run")
    message = refused("report", folder, "--out", tmp_path / "page")
    assert "quickstart: holds several runs; name those to show: " in message
    assert f"{folder}/run, {folder}/second_run" in message


def test_what_is_no_evaluation(tmp_path):
    (tmp_path / "empty").mkdir()
    message = refused("report", tmp_path / "empty", "--out", tmp_path / "page")
    assert "; or an evaluation's folder or a file of completions" in message
    write_json(tmp_path / "x.json", {"before": {}, "after": {}, "different_settings": {}})
    comparison = tmp_path / "x.json"
    for arguments in (("score",), ("report", "--out", tmp_path / "page"), ("compare", comparison)):
        message = refused(*arguments, comparison)
        assert "x.json: a comparison, written by `swift-rlvr compare --out`; give one of" in message
    message = refused("compare", tmp_path / "empty", tmp_path / "empty")
    assert "empty: expected a folder with records.jsonl, other .jsonl files" in message


def test_completions_of_one_row_are_its_samples(tmp_path):
    rows = [{"question": "3 + 4?", "answer": "7", "response": text} for text in ("7", "8")]
    lists = [{"question": "3 + 4?", "answer": "7", "responses": ["7", "8"]}]
    for name, lines in (("rows", rows), ("lists", lists)):
        records = graded_records(write(tmp_path / f"{name}.jsonl", lines)).records
        assert [(record.index, record.sample) for record in records] == [(0, 0), (0, 1)]
        assert [record.success for record in records] == [True, False]


def test_rows_without_a_question_are_told_apart_by_their_line(tmp_path):
    rows = [{"answer": "7", "response": "7"}, {"answer": "7", "response": "8"}]
    records = graded_records(write(tmp_path / "x.jsonl", rows)).records
    assert [record.index for record in records] == [0, 1]


@pytest.mark.parametrize("count", [3, 12])
def test_what_cannot_be_used_is_noted(tmp_path, count):
    rows = [{"answer": "7", "response": "7"}, *[{"answer": "7"}] * count]
    notes = graded_records(write(tmp_path / "x.jsonl", rows)).notes
    assert len(notes) == min(count, 11)
    assert notes[0].startswith("line 2: no completion")
    assert json.dumps(notes).count("... and 2 more that could not be used") == (count == 12)


def test_a_damaged_line_of_records_is_named_wherever_it_stands(tmp_path):
    """A damaged first line used to make all records be graded anew, by the rewards of their task."""
    folder = evaluation(tmp_path / "eval", right=2)
    file = folder / "records.jsonl"
    lines = file.read_text().splitlines()
    for place in (0, 2):
        damaged = [*lines]
        damaged[place] = damaged[place][:40]
        file.write_text("\n".join(damaged) + "\n")
        with pytest.raises(InputError, match=rf"records\.jsonl, line {place + 1}: not JSON"):
            graded_records(file)
