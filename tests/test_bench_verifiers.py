"""The scoreboard of verifiers: every schema is read, broken rows are named, the figures are those of the rows, and the
faults listed for math_verify are still there. The rows are our own; public data stay outside the repository."""

import doctest
import importlib
import json
import re
import subprocess
import sys
from importlib.metadata import version

import pytest
from paths import PLUGIN, ROOT

BENCHMARKS = ROOT / "tests" / "benchmarks"
UPSTREAM = BENCHMARKS / "UPSTREAM.md"


@pytest.fixture
def data(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import verifier_data

    return verifier_data


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import bench_verifiers

    return bench_verifiers


def write(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


MATHCODER = {
    "messages": [],
    "ground_truth": {"solution": "", "answer": "12"},
    "debug_result": [
        {"role": "system", "content": "Solve it."},
        {"role": "user", "content": "What is 3 times 4?"},
        {"role": "text", "content": "We multiply."},
        {"role": "code", "content": "3 * 4"},
        {"role": "execution", "content": "12"},
        {"role": "text", "content": r"So it is \(\boxed{12}\)."},
        {"role": "text", "content": "12"},
    ],
    "completion": "12",
}
MATHCODER_TEXT = "We multiply.\n3 * 4\n12\nSo it is \\(\\boxed{12}\\)."
# file, a row in it, and what is read from it: (gold, completion, right, source)
SCHEMAS = [
    (
        "ours.jsonl",
        {"gold": "2 + 3 = <<2+3=5>>5\n#### 5", "completion": "#### 6", "right": False, "source": "hens"},
        [("5", "#### 6", False, "hens")],
    ),
    ("unlabelled.jsonl", {"gold": "5", "completion": "6", "right": None}, [("5", "6", None, "unlabelled")]),
    (
        "golds.jsonl",
        {"gold": "$x + 1$", "source": "college"},
        [
            ("$x + 1$", r"\boxed{x + 1}", True, "in a box"),
            ("$x + 1$", "<answer>$x + 1$</answer>", True, "in answer tags"),
        ],
    ),
    (
        "test.jsonl",
        {"question": "How many hens?", "answer": "4 + 3 = <<4+3=7>>7 hens\n#### 7"},
        [("7", r"\boxed{7}", True, "in a box"), ("7", "<answer>7</answer>", True, "in answer tags")],
    ),
    (
        "example_model_solutions.jsonl",
        {
            "question": "How many hens?",
            "ground_truth": "4 + 3 = <<4+3=7>>7\nA: 7",
            "6b_finetuning": {"is_correct": False, "solution": "A: 4 hens\n4 + 4 = 8\nA: 8"},
            "175b_verification": {"is_correct": True, "solution": "4 + 3 = 7\n#### 7"},
        },
        [
            ("7", "A: 4 hens\n4 + 4 = 8\n#### 8", False, "6b_finetuning"),
            ("7", "4 + 3 = 7\n#### 7", True, "175b_verification"),
        ],
    ),
    ("outs/M-7b/GSM8K/result-correct.jsonl", MATHCODER, [("12", MATHCODER_TEXT, True, "M-7b")]),
    ("outs/M-7b/GSM8K/result-wrong.jsonl", MATHCODER, [("12", MATHCODER_TEXT, False, "M-7b")]),
    ("outs/M-7b/MATH/result.jsonl", MATHCODER, [("12", MATHCODER_TEXT, None, "M-7b")]),
    (
        "tora.jsonl",
        {"idx": 0, "gt": "9", "code": [r"\boxed{9}"], "pred": ["9"], "report": [None]},
        [("9", r"\boxed{9}", None, "tora")],
    ),
    (
        "math_cot.jsonl",
        {"gt": "9", "code": [r"\boxed{9}", r"\boxed{8}"], "score": [True, False]},
        [("9", r"\boxed{9}", True, "math_cot"), ("9", r"\boxed{8}", False, "math_cot")],
    ),
    (
        "HardVerify.json",
        [{"question": "?", "ground_truth": "0.5", "fn_output": r"\frac{1}{2}", "tn_output": r"\boxed{2}"}],
        [("0.5", r"\boxed{\frac{1}{2}}", True, "fn_output"), ("0.5", r"\boxed{2}", False, "tn_output")],
    ),
    (
        "verifierbench.json",
        [
            {"gold_answer": "1", "llm_response": "one", "gold_judgment": "A", "domain": "Math", "data_source": "s"},
            {"gold_answer": "1", "llm_response": "two", "gold_judgment": "B", "domain": "Math", "data_source": "s"},
            {"gold_answer": "1", "llm_response": "1 1 1", "gold_judgment": "C", "domain": "Math", "data_source": "s"},
            {"gold_answer": "Rome", "llm_response": "Rome", "gold_judgment": "A", "domain": "Knowledge"},
        ],
        [("1", "one", True, "s"), ("1", "two", False, "s"), ("1", "1 1 1", None, "s")],
    ),
    (
        "verifybench.jsonl",
        {
            "question": "?",
            "answer": "4",
            "completion": "It is 4.",
            "gold_correct": True,
            "answer_type": "numeric_values",
        },
        [("4", "It is 4.", True, "numeric_values")],
    ),
]


@pytest.mark.parametrize(("name", "content", "expected"), SCHEMAS, ids=[schema[0] for schema in SCHEMAS])
def test_every_schema_is_read(data, tmp_path, name, content, expected):
    write(tmp_path / name, content)
    folder = data.read_folder(tmp_path)
    assert (folder.broken, folder.unknown, folder.skipped) == ([], [], [])
    assert [row[:4] for row in folder.rows[name]] == expected
    assert {row.place for row in folder.rows[name]} <= {f"{name}:{n}" for n in range(1, 5)}


def test_no_schema_is_taken_for_another(data):
    formats = set()
    for _, content, _ in SCHEMAS:
        row = content[0] if isinstance(content, list) else content
        fitting = [one.name for one in data.FORMATS if one.fits(row)]
        formats.update(fitting)
        assert len(fitting) == 1, fitting
    assert formats == {one.name for one in data.FORMATS}


def test_broken_rows_are_named_with_file_and_line_and_the_others_are_read(data, tmp_path):
    good = {"gold": "5", "completion": "5", "right": True}
    no_text, no_label, no_key = good | {"gold": 5}, good | {"right": "yes"}, {"gold": "5", "right": True}
    write(tmp_path / "sub" / "a.jsonl", good, "{not json", "", no_text, no_label, no_key, "[1]", good)
    write(tmp_path / "judged.jsonl", {"gold_answer": "1", "llm_response": "1", "gold_judgment": "D"})
    write(tmp_path / "lengths.jsonl", {"gt": "1", "code": ["1", "1"], "score": [True]})
    write(tmp_path / "cut.json", '[{"gold": "1"')
    folder = data.read_folder(tmp_path)
    assert [row.place for row in folder.rows["sub/a.jsonl"]] == ["sub/a.jsonl:1", "sub/a.jsonl:8"]
    places = [message.rsplit(": ", 1)[0].split(": ")[0] for message in folder.broken]
    assert places == ["cut.json:1", "judged.jsonl:1", "lengths.jsonl:1"] + [f"sub/a.jsonl:{n}" for n in (2, 4, 5, 6, 7)]
    assert "completion" in next(message for message in folder.broken if ":6:" in message)


def test_unknown_files_are_named_and_a_clone_is_not_searched(data, tmp_path):
    write(tmp_path / "other.jsonl", {"prompt": "?", "reply": "!"})
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    write(tmp_path / ".git" / "x.json", {"gold": "1"})
    (tmp_path / "README.md").write_text("data")
    folder = data.read_folder(tmp_path)
    assert folder.unknown == ["other.jsonl", "rows.parquet"]
    assert not folder.rows and not folder.broken


def test_rows_that_also_stand_in_labelled_files_are_read_once(data, tmp_path):
    for name in ("result.jsonl", "result-wrong.jsonl"):
        write(tmp_path / "M" / "GSM8K" / name, MATHCODER)
    folder = data.read_folder(tmp_path)
    assert list(folder.rows) == ["M/GSM8K/result-wrong.jsonl"]
    assert folder.skipped == ["M/GSM8K/result.jsonl: its rows are in result-wrong.jsonl"]


def test_a_sample_is_the_same_every_time_and_in_order(data, tmp_path):
    write(tmp_path / "a.jsonl", *({"gold": str(n), "completion": "1", "right": True} for n in range(50)))
    first, second = (data.read_folder(tmp_path, sample=10).rows["a.jsonl"] for _ in range(2))
    golds = [int(row.gold) for row in first]
    assert first == second and len(first) == 10 and golds == sorted(golds)


@pytest.mark.parametrize("module", ["bench_verifiers", "verifier_data"])
def test_the_examples_in_the_docstrings(monkeypatch, module):
    """pytest does not collect the folder."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    failed, attempted = doctest.testmod(importlib.import_module(module))
    assert attempted and not failed


def test_groups_have_one_gold_and_at_most_eight_rows(bench, data):
    golds = ["1"] * 9 + ["2"] + ["3", "1"] * 3
    parts = bench.groups([data.Row(gold, "", None, "s") for gold in golds])
    assert [[golds[i] for i in part] for part in parts] == [["1"] * 8, ["1"] * 4, ["3"] * 3]


def test_figures_are_counted_by_label_and_by_verdict(bench, data):
    labels = [True, True, True, False, False, None]
    verdicts = ["right", "declined", "timed out", "right", "wrong", "error"]
    rows = [data.Row("1", "", label, "s") for label in labels]
    in_groups = {0: bench.Result("right"), 3: bench.Result("wrong")}
    measured = bench.Measured([bench.Result(name) for name in verdicts], 2.0, in_groups, 0.5)
    figures = bench.summary(rows, measured)
    assert figures == {
        "rows": 6,
        "right": 3,
        "right credited": 1,
        "wrong": 2,
        "wrong credited": 1,
        "declined": 1,
        "errors": 1,
        "timed out": 1,
        "changed": 1,
        "a second": 3.0,
        "a second in groups": 4.0,
    }
    both = bench.total([(rows, measured), (rows, measured)])
    assert (both["rows"], both["right credited"], both["a second"]) == (12, 2, 3.0)


def test_exceptions_and_time_outs_are_counted_for_their_row(bench):
    import logging

    from math_verify.errors import TimeoutException

    def grade(text, gold):
        if text == "raise":
            raise ValueError("no")
        if text == "late":
            raise TimeoutException()
        if text == "late in the log":
            logging.getLogger("math_verify.grader").warning("Timeout during comparison")
            return 0.0
        return {"1": 1.0, "0": 0.0, "none": None}[text]

    handlers = [(logging.getLogger(name), list(logging.getLogger(name).handlers)) for name in bench.LOGGERS]
    try:
        texts = ["1", "raise", "late", "late in the log", "0", "none"]
        results = bench.row_by_row(grade)(texts, ["1"] * len(texts))
    finally:
        for logger, before in handlers:
            logger.handlers, logger.propagate = before, True
    assert [result.verdict for result in results] == ["right", "error", "timed out", "timed out", "wrong", "declined"]
    assert results[1].reason == "ValueError: no"


def test_a_process_that_hangs_or_dies_is_started_again_and_its_rows_are_graded_alone(bench):
    starts, waited = [], []

    class Pretended(bench.Worker):
        """Its process hangs on a batch with "hang" in it, dies on one with "die" and raises on one with "raise"."""

        def start(self):
            starts.append(1)
            self.connection = self.process = self

        def kill(self):
            pass

        join = kill

        def send(self, batch):
            self.texts = batch[0]

        def poll(self, seconds):
            waited.append(seconds)
            return "hang" not in self.texts

        def recv(self):
            if "die" in self.texts:
                raise EOFError
            return 0.5, "ValueError: no" if "raise" in self.texts else [bench.Result("right")] * len(self.texts)

    texts = ["1", "hang", "die", "raise", "2"]
    seconds, results = Pretended("ours", 0).judge(texts, ["1"] * 5)
    assert [result.verdict for result in results] == ["right", "timed out", "error", "error", "right"]
    assert [result.reason for result in results[1:4]] == ["hangs", "the process died", "ValueError: no"]
    assert len(starts) == 1 + 3 and seconds >= 1.0  # at first, after the batch, and after two of its rows
    assert waited == [bench.HANG_S + 20] + [bench.HANG_S] * 5


def command(*arguments, timeout=300):
    return subprocess.run(
        [sys.executable, str(BENCHMARKS / "bench_verifiers.py"), *map(str, arguments)],
        env={"PYTHONPATH": str(PLUGIN), "PATH": "", "COLUMNS": "140"},
        capture_output=True,
        text=True,
        timeout=timeout,
    )


@pytest.mark.slow
def test_the_command_grades_a_folder_with_verifiers_in_processes(tmp_path):
    rows = [("5", r"\boxed{5}", True), ("5", r"\boxed{6}", False), ("7", r"\boxed{8}", True), ("7", r"\boxed{7}", None)]
    write(tmp_path / "a.jsonl", *({"gold": g, "completion": c, "right": r} for g, c, r in rows), "broken")
    out, different = tmp_path / "out.md", tmp_path / "different.jsonl"
    result = command("--data", tmp_path, "--out", out, "--disagreements", different, "--verifiers", "ours,math_verify")
    assert result.returncode == 1, result.stderr
    assert "broken row: a.jsonl:5" in result.stderr
    report = json.loads(result.stdout.splitlines()[-1])
    assert report["missed"] == ["broken row: " + m for m in re.findall(r"broken row: (a\.jsonl:5.*)", result.stderr)]
    assert [line["verifier"] for line in report["lines"]] == ["ours", "math_verify"]
    for line in report["lines"]:
        counts = [line[name] for name in ("rows", "right", "right credited", "wrong", "wrong credited", "changed")]
        assert counts == [4, 2, 1, 1, 0, 0]
        assert line["a second"] > 0 and line["a second in groups"] > 0
    assert "| a.jsonl | math_verify | 4 | 1 of 2 | 0 of 1 |" in out.read_text()
    (row,) = [json.loads(line) for line in different.read_text().splitlines()]
    assert (row["place"], row["right"], row["verdicts"]["math_verify"]) == ("a.jsonl:3", True, "wrong")


def test_the_command_says_what_it_reads_where_there_is_nothing(tmp_path, data):
    write(tmp_path / "other.jsonl", {"prompt": "?"})
    result = command("--data", tmp_path)
    assert result.returncode == 1
    assert "not read: other.jsonl" in result.stderr
    for one in data.FORMATS:
        assert f"{one.name}: {one.keys}" in result.stderr


def reproducers():
    text = UPSTREAM.read_text()
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run_reproducers(*blocks):
    """In a process of their own: they set alarms and start threads."""
    code = (
        "import doctest, sys\n"
        "test = doctest.DocTestParser().get_doctest(sys.stdin.read(), {}, 'UPSTREAM.md', 'UPSTREAM.md', 0)\n"
        "sys.exit(bool(doctest.DocTestRunner().run(test).failed))"
    )
    return subprocess.run([sys.executable, "-c", code], input="".join(blocks), capture_output=True, text=True)


def test_upstream_reproducers_print_what_the_page_says():
    blocks = [code for code in reproducers() if "swift" not in code]
    assert len(doctest.DocTestParser().get_examples("".join(blocks))) > 40
    result = run_reproducers(*blocks)
    assert result.returncode == 0, result.stdout


@pytest.mark.slow
def test_upstream_reproducer_of_ms_swift():
    (block,) = [code for code in reproducers() if "swift" in code]
    result = run_reproducers(block)
    assert result.returncode == 0, result.stdout


def test_upstream_page_names_the_installed_versions():
    text = UPSTREAM.read_text()
    for package in ("math-verify", "latex2sympy2_extended", "sympy", "ms-swift"):
        assert f"{package} {version(package)}" in text
