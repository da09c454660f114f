"""Files of completions of other tools are read: each form in the public schema of its tool, with the
gold where that tool keeps it.
"""

import gzip
import json
import os

import pytest
from typer.testing import CliRunner

from commands import WIDE, ran, refused
from swift_rlvr.cli.app import app

QUESTIONS = ["Tom has 3 apples and buys 4. How many?", "What is 5*6?", "What is 2^5?"]
GOLDS = ["7", "30", "32"]
# Two are right.
ANSWERS = ["3 + 4 = \\boxed{7}", "I get \\boxed{31}", "<think>2*16</think>\n<answer>32</answer>"]


def write(path, rows):
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def scored(*arguments):
    """The summary's rewards, and how many completions there were."""
    summary = json.loads(ran("score", *arguments, "--json"))
    means = {name: figures["mean"] for name, figures in summary["rewards"].items()}
    return means, summary["completions"], summary


TWO_OF_THREE = {
    "external_accuracy": pytest.approx(2 / 3),
    "external_format": pytest.approx(1 / 3),
}


def chat(text, finish="stop"):
    """A chat completion as an OpenAI-compatible server answers."""
    message = {"role": "assistant", "content": text, "refusal": None}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
    usage = {"prompt_tokens": 20, "completion_tokens": 12, "total_tokens": 32}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o-mini",
        "choices": [choice],
        "usage": usage,
    }


def of_verl(step=20):
    """A dump of verl's validation_data_dir."""
    for number, (question, gold, answer) in enumerate(zip(QUESTIONS, GOLDS, ANSWERS, strict=True)):
        yield {
            "input": f"user\n{question}\nassistant\n",
            "output": answer if step else "I don't know.",
            "gts": gold,
            "score": float(number != 1),
            "step": step,
            "acc": number != 1,
        }


def of_lm_eval():
    """Samples of lm-evaluation-harness: a line for each filter, with the same completion."""
    for number, (question, gold, answer) in enumerate(zip(QUESTIONS, GOLDS, ANSWERS, strict=True)):
        worked = f"Some steps.\n#### {gold}"
        for name in ("strict-match", "flexible-extract"):
            yield {
                "doc_id": number,
                "doc": {"question": question, "answer": worked},
                "target": worked,
                "arguments": {"gen_args_0": {"arg_0": f"Question: {question}", "arg_1": {}}},
                "resps": [[answer]],
                "filtered_resps": ["[invalid]"],
                "filter": name,
                "metrics": ["exact_match"],
                "doc_hash": "a",
                "exact_match": 0.0,
            }


def asked(**columns):
    """Rows with a question, a gold and what else `columns` make of an answer."""
    rows = []
    for question, gold, answer in zip(QUESTIONS, GOLDS, ANSWERS, strict=True):
        made = {name: make(question, gold, answer) for name, make in columns.items()}
        rows.append(made)
    return rows


FORMS = {
    "answer": asked(answer=lambda q, g, a: g, completion=lambda q, g, a: a),
    "ground_truth": asked(
        ground_truth=lambda q, g, a: int(g), generation=lambda q, g, a: a, prompt=lambda q, g, a: q
    ),
    "names as in a table": asked(
        Question=lambda q, g, a: q,
        **{"Ground Truth": lambda q, g, a: g, "Model Output": lambda q, g, a: a},
    ),
    "a gold under another name, and a solution": asked(
        question=lambda q, g, a: q, answer=lambda q, g, a: g, response=lambda q, g, a: a
    ),
    "swift infer": asked(
        response=lambda q, g, a: a,
        labels=lambda q, g, a: g,
        logprobs=lambda q, g, a: None,
        messages=lambda q, g, a: [
            {"role": "user", "content": q},
            {"role": "assistant", "content": a},
        ],
    ),
    "messages": asked(
        messages=lambda q, g, a: [
            {"role": "user", "content": q},
            {"role": "assistant", "content": a},
        ],
        answer=lambda q, g, a: g,
    ),
    "ShareGPT": asked(
        conversations=lambda q, g, a: [{"from": "human", "value": q}, {"from": "gpt", "value": a}],
        answer=lambda q, g, a: g,
    ),
    "verl": list(of_verl()),
    "lm-eval": list(of_lm_eval()),
    "chat completions": asked(
        object=lambda q, g, a: "chat.completion",
        choices=lambda q, g, a: chat(a)["choices"],
        answer=lambda q, g, a: g,
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_is_graded_by_its_gold(tmp_path, form):
    means, count, summary = scored(write(tmp_path / "x.jsonl", FORMS[form]))
    assert means == TWO_OF_THREE
    assert count == 3 and not summary["unusable"]


@pytest.mark.parametrize(
    ("form", "column"),
    [
        ("answer", "answer"),
        ("verl", "gts"),
        ("lm-eval", "target"),
        ("swift infer", "labels"),
        ("ground_truth", "ground_truth"),
    ],
)
def test_where_the_gold_was_found_is_shown(tmp_path, form, column):
    shown = ran("score", write(tmp_path / "x.jsonl", FORMS[form]))
    (line,) = [line for line in shown.splitlines() if line.startswith("Right answers")]
    assert line.partition(",")[0] == f"Right answers are in the column {column}"


def test_a_list_of_completions_for_each_row(tmp_path):
    texts = asked(
        question=lambda q, g, a: q, answer=lambda q, g, a: g, responses=lambda q, g, a: [a, "no"]
    )
    objects = asked(
        answer=lambda q, g, a: g, outputs=lambda q, g, a: [{"text": a}, chat(a)["choices"][0]]
    )
    means, count, _ = scored(write(tmp_path / "texts.jsonl", texts))
    assert means["external_accuracy"] == pytest.approx(1 / 3) and count == 6
    means, count, _ = scored(write(tmp_path / "objects.jsonl", objects))
    assert means["external_accuracy"] == pytest.approx(2 / 3) and count == 6


def test_other_file_forms(tmp_path):
    array = tmp_path / "x.json"
    array.write_text(json.dumps(FORMS["answer"]))
    assert scored(array)[0] == TWO_OF_THREE
    table = tmp_path / "x.csv"
    table.write_text("question,prediction,answer\n1+1?,2,2\n1+2?,4,3\n2+2?,It is \\boxed{4},4\n")
    assert scored(table)[0]["external_accuracy"] == pytest.approx(2 / 3)
    numbers = [{"question": "1 + 1?", "answer": 2, "responses": [2, 3.5]}]
    assert scored(write(tmp_path / "numbers.jsonl", numbers))[0]["external_accuracy"] == 0.5
    packed = tmp_path / "x.jsonl.gz"
    packed.write_bytes(gzip.compress(write(tmp_path / "x.jsonl", FORMS["answer"]).read_bytes()))
    assert scored(packed)[0] == TWO_OF_THREE
    packed.write_bytes(packed.read_bytes()[:60])
    assert "x.jsonl.gz: cannot be read (Compressed file ended" in refused("score", packed)
    packed.write_bytes(gzip.compress(b"{}")[:10] + b"\xff" * 20)
    assert "x.jsonl.gz: cannot be read (Error -3 while decompressing" in refused("score", packed)


def test_a_pipe_is_refused(tmp_path):
    """It was empty for the second reader, and said to hold no line."""
    os.mkfifo(tmp_path / "pipe")
    message = refused("score", tmp_path / "pipe")
    assert message.endswith(
        "pipe: a pipe can be read only once, and completions are read twice; write them to a file first"
    )


def test_a_folder_of_trl(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow = pytest.importorskip("pyarrow")
    for step in (1, 2):
        columns = {"step": [step] * 2, "prompt": ["3 + 4?"] * 2, "completion": ["7", "8"]}
        table = pyarrow.table({**columns, "solution": ["7"] * 2, "advantage": [1.0, -1.0]})
        parquet.write_table(table, tmp_path / f"completions_{step:05d}.parquet")
    means, count, _ = scored(tmp_path)
    assert means["external_accuracy"] == 0.5 and count == 4
    assert "written" in ran("report", tmp_path, "--out", tmp_path / "page")


def test_what_of_a_folder_is_not_read_is_named(tmp_path):
    write(tmp_path / "a.jsonl", FORMS["answer"])
    (tmp_path / "b.json").write_text(json.dumps(FORMS["answer"]))
    write(tmp_path / "questions.jsonl", [{"question": "1 + 1?", "answer": "2"}])
    (tmp_path / "notes.md").write_text("")
    shown = CliRunner().invoke(app, ["score", str(tmp_path)], env=WIDE)
    expected = (
        f"Not read: {tmp_path}/b.json, {tmp_path}/questions.jsonl. Name a file to have it read."
    )
    assert shown.stderr.strip() == expected
    noted = f"note: {tmp_path}: 2 of its files not read: b.json, questions.jsonl; name a file to"
    assert noted in ran("compare", tmp_path / "a.jsonl", tmp_path, columns=400)
    # Which files of a folder have completions depends on the names of their columns.
    write(tmp_path / "own" / "x.jsonl", [{"question": "3 + 4?", "answer": "7", "mine": "7"}])
    renamed = ("--columns", '{"mine": "completion"}')
    assert "1 completion graded" in ran("score", tmp_path / "own", *renamed)


def test_a_folder_of_verl_or_of_lm_eval(tmp_path):
    for step in (0, 20, 100):
        write(tmp_path / "verl" / f"{step}.jsonl", of_verl(step))
    means, count, summary = scored(tmp_path / "verl")
    assert means["external_accuracy"] == pytest.approx(4 / 9) and count == 9
    assert [path.rpartition("/")[2] for path in summary["files"]] == [
        "0.jsonl",
        "20.jsonl",
        "100.jsonl",
    ]
    by_step = [means["external_accuracy"] for means in summary["means_by_file"].values()]
    assert by_step == [0.0, pytest.approx(2 / 3), pytest.approx(2 / 3)]
    assert "Means by file" in ran("score", tmp_path / "verl", columns=200)
    write(tmp_path / "lm_eval" / "samples_gsm8k_2026-11-01T00-00-00.jsonl", of_lm_eval())
    assert scored(tmp_path / "lm_eval")[0] == TWO_OF_THREE


def test_countdown_of_tinyzero_in_a_dump_of_verl(tmp_path):
    row = {"input": "user\n...", "output": "<answer>3*5+7</answer>", "score": 1.0, "step": 3}
    gold = {"target": 22, "numbers": [3, 5, 7]}
    means, *_ = scored(write(tmp_path / "x.jsonl", [{**row, "gts": gold}]))
    assert means == {"external_countdown": 1.0, "external_format": 0.0}


def batch():
    """An output file of OpenAI's batch API: its order is not that of the requests, and one has
    failed.
    """
    for number in (2, 0):
        response = {"status_code": 200, "request_id": "r", "body": chat(ANSWERS[number])}
        yield {"id": "b", "custom_id": f"q-{number}", "response": response, "error": None}
    error = {"code": "batch_expired", "message": "This request could not be executed."}
    yield {"id": "b", "custom_id": "q-1", "response": None, "error": error}


def test_a_batch_finds_its_golds_by_id(tmp_path):
    answers = write(tmp_path / "out.jsonl", batch())
    rows = [
        {"id": f"q-{number}", "question": question, "answer": gold, "level": 0}
        for number, (question, gold) in enumerate(zip(QUESTIONS, GOLDS, strict=True))
    ]
    dataset = write(tmp_path / "rows.jsonl", rows)
    means, count, summary = scored(answers, "--dataset", f"math:{dataset}")
    assert means["external_accuracy"] == 1.0 and count == 2
    (problem,) = summary["problems"]
    assert "line 3: the request 'q-1' failed: This request could not be executed." in problem

    message = refused("score", answers)
    assert "no right answer in 'custom_id', 'model'; expected one in a column such as" in message
    other = write(tmp_path / "other.jsonl", [{**row, "id": row["level"]} for row in rows])
    message = refused("score", answers, "--dataset", f"math:{other}")
    assert "--dataset: " in message and "which has custom_id 'q-2'; expected a column" in message
    twice = write(tmp_path / "twice.jsonl", [*rows, {**rows[2], "answer": "0"}])
    message = refused("score", answers, "--dataset", f"math:{twice}")
    assert "its column id has the same value in several rows" in message
    # Only some have a row.
    short = write(tmp_path / "short.jsonl", rows[2:])
    _, count, summary = scored(answers, "--dataset", f"math:{short}")
    assert count == 1
    assert "line 2: no row of the dataset has the custom_id 'q-0'" in summary["problems"][0]


def test_the_responses_api(tmp_path):
    parts = [
        {"type": "reasoning", "summary": []},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "The answer is \\boxed{7}"}],
        },
    ]
    body = {"object": "response", "model": "o4-mini", "status": "completed", "output": parts}
    line = {"custom_id": "1", "response": {"status_code": 200, "body": body}, "error": None}
    answers = write(tmp_path / "out.jsonl", [line])
    dataset = write(tmp_path / "rows.jsonl", [{"custom_id": 1, "question": "3+4?", "answer": "7"}])
    assert scored(answers, "--dataset", f"math:{dataset}")[0]["external_accuracy"] == 1.0


def test_columns_with_names_of_ones_own(tmp_path):
    rows = asked(Frage=lambda q, g, a: q, Loesung=lambda q, g, a: g, Modell=lambda q, g, a: a)
    file = write(tmp_path / "x.jsonl", rows)
    assert "line 1: no completion: expected a column such as completion" in refused("score", file)
    columns = {"Modell": "completion"}
    assert "line 1: no right answer in 'Frage', 'Loesung', 'completion'" in refused(
        "score", file, "--columns", json.dumps(columns)
    )
    columns["Loesung"] = "answer"
    assert scored(file, "--columns", json.dumps(columns))[0] == TWO_OF_THREE


def test_columns_that_no_row_has_are_named(tmp_path):
    rows = asked(question=lambda q, g, a: q, answer=lambda q, g, a: g, completion=lambda q, g, a: a)
    file = write(tmp_path / "x.jsonl", rows)
    flags = ("--columns", '{"Question": "problem", "Loesung": "gold"}')
    said = "none of the first rows has the column Loesung, which --columns renames"
    result = CliRunner().invoke(app, ["score", str(file), *flags])
    assert f"note: {said}" in result.stderr and result.exit_code == 0
    assert f"note: {file}: {said}" in ran("compare", file, file, *flags)
    # It may be a column of the dataset that has the golds.
    dataset = write(tmp_path / "golds.jsonl", [{"id": 1, "Question": "1+1?", "Loesung": "2"}])
    completions = write(tmp_path / "answers.jsonl", [{"id": 1, "completion": "2"}])
    flags = ("--columns", '{"Question": "problem", "Loesung": "answer"}')
    joined = CliRunner().invoke(
        app, ["score", str(completions), "--dataset", f"math:{dataset}", *flags]
    )
    assert joined.exit_code == 0 and "note:" not in joined.output


def test_the_task_may_be_named(tmp_path):
    golds = ["Paris", "the city of Paris, in France"]
    row = {"question": "Capital?", "answers": golds, "response": "<answer>Paris</answer>"}
    file = write(tmp_path / "x.jsonl", [row])
    assert scored(f"qa:{file}")[0] == {"external_exact_match": 1.0, "external_format": 0.0}
    # So does the reward.
    assert scored(file, "--reward_funcs", "exact_match")[0] == {"external_exact_match": 1.0}


def test_a_verifier_that_graded_nothing_is_named(tmp_path):
    rows = [{"completion": "7", "solution": None}] * 2
    shown = ran("score", write(tmp_path / "x.jsonl", rows))
    assert "note: external_accuracy graded nothing (bad gold); qa:FILE compares texts" in shown


def test_choices(tmp_path):
    row = {"question": "Sky?", "choices": ["green", "blue"], "answer": 1}
    rows = [{**row, "response": f"The answer is <answer>{letter}</answer>"} for letter in "AB"]
    assert scored(write(tmp_path / "x.jsonl", rows))[0]["external_accuracy"] == 0.5
    row = {"question": "Sky?", "opa": "green", "opb": "blue", "opc": "red", "opd": "up", "cop": 2}
    rows = [{**row, "response": f"<answer>{letter}</answer>"} for letter in "ABCD"]
    assert scored(write(tmp_path / "x.jsonl", rows))[0]["external_accuracy"] == 0.25
    # The order in which the model has seen these is unknown.
    row = {"Question": "Sky?", "Correct Answer": "blue", "Incorrect Answer 1": "green"}
    file = write(tmp_path / "x.jsonl", [{**row, "response": "<answer>A</answer>"}])
    message = refused("score", file)
    assert "no right answer in 'Question', 'Correct Answer'" in message
    assert "to read it as another task, write qa:FILE, choice:FILE or code:FILE" in message


def test_a_gold_that_cannot_be_read_is_named_with_its_line(tmp_path):
    rows = [*FORMS["answer"], {"answer": "x" * 5 + " is what we were to show", "completion": "7"}]
    _, count, summary = scored(write(tmp_path / "x.jsonl", rows))
    assert count == 3
    assert "line 4: column 'answer': " in summary["problems"][0]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            {
                "doc_id": 0,
                "doc": {"choices": ["a", "b"]},
                "target": 1,
                "resps": [[["-3.1", "False"]], [["-0.2", "True"]]],
            },
            "this sample of lm-evaluation-harness has likelihoods, and no text",
        ),
        (
            {"messages": [{"role": "user", "content": "1 + 1?"}], "answer": "2"},
            "messages end with the turn of 'user', expected the assistant's",
        ),
        ({"custom_id": "a", "response": {"status_code": 200, "body": {"choices": []}}}, "choices"),
        (
            {"custom_id": "a", "response": {"body": {"choices": "7"}}},
            'choices: expected a list, got "7"',
        ),
        ({"custom_id": "a", "response": {"body": "7"}}, 'body: expected an object, got "7"'),
        ({"object": "response", "output": "7"}, 'output: expected a list, got "7"'),
        (
            {"object": "response", "output": ["7"]},
            "expected a text or a list of messages, got null",
        ),
        ({"doc": {}, "target": "2", "resps": 7}, "resps: expected a list, got 7"),
        (
            {"completion": "7", "index": 0, "rewards": {}, "row": "7"},
            'row: expected an object, got "7"',
        ),
    ],
)
def test_a_line_without_a_text_says_why(tmp_path, row, message):
    assert message in refused("score", write(tmp_path / "x.jsonl", [row]))


def test_a_prompt_that_opens_the_think_part(tmp_path):
    row = {"input": "user\n1 + 1?\nassistant\n<think>\n", "gts": "2", "step": 1, "score": 1.0}
    rows = [{**row, "output": "1 and 1.\n</think>\n<answer>2</answer>"}]
    means, *_ = scored(write(tmp_path / "x.jsonl", rows))
    assert means == {"external_accuracy": 1.0, "external_format": 1.0}


def test_a_quote_that_is_not_closed_hides_no_completion(tmp_path):
    rows = [f"What is {n} + 1?,<answer>{n + 1}</answer>,{n + 1}" for n in range(4)]
    rows[1] = f'"{rows[1]}'
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["prompt,completion,solution", *rows]))
    _, completions, summary = scored(path, "--reward_funcs", "external_accuracy")
    assert (completions, summary["unusable"]) == (1, 3)
