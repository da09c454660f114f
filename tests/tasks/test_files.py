"""Files and folders as people have them: what is read, without any package, and what a line that
cannot be read costs.
"""

import csv
import gzip
import json
import sys
from decimal import Decimal

import pytest

from swift_rlvr.contract.datasets import check_dataset
from swift_rlvr.tasks.files import UnreadableRow, file_rows
from swift_rlvr.tasks.row_check import FORGIVEN
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.utils.errors import InputError

ROWS = [{"question": "1 + 1?", "answer": 2}, {"question": "2 + 2?", "answer": 4}]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
# Compressed data that is none from its first byte on. It has no time in it, since its bytes are in the names of tests,
# which must be the same in all processes.
DAMAGED = gzip.compress(LINES, mtime=0)[:10] + b"\xff" * 20
CSV = b"question,answer\n1 + 1?,2\n2 + 2?,4\n"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.jsonl", LINES),
        ("rows.jsonl.gz", gzip.compress(LINES, mtime=0)),
        ("rows.JSONL", LINES),
        ("rows.jsonl", b"\xef\xbb\xbf" + LINES),
        ("rows.json", b"\xef\xbb\xbf" + json.dumps(ROWS).encode()),
        ("rows.txt", LINES),
        ("rows.json", json.dumps(ROWS).encode()),
        ("rows.json", json.dumps({"version": 1, "data": ROWS}).encode()),
        ("rows.json", b'{"question": ["1 + 1?", "2 + 2?"], "answer": [2, 4]}'),
        ("rows.json", LINES),
        ("rows.json.gz", gzip.compress(json.dumps(ROWS).encode(), mtime=0)),
        ("rows.csv", CSV),
        ("rows.csv", b"\xef\xbb\xbf" + CSV),
        ("rows.csv", CSV.replace(b",", b";")),
        ("rows.csv", b'"question, in words";answer\n1 + 1?;2\n2 + 2?;4\n'),
        ("rows.csv.gz", gzip.compress(CSV, mtime=0)),
        ("rows.tsv", CSV.replace(b",", b"\t")),
        ("rows.txt", CSV.replace(b",", b"\t")),
    ],
)
def test_what_is_read_without_a_package(tmp_path, monkeypatch, name, content):
    for package in ("datasets", "pyarrow", "pandas", "swift"):
        monkeypatch.setitem(sys.modules, package, None)  # to import it is an error
    path = tmp_path / name
    path.write_bytes(content)
    rows = [tuple(row.values()) for _, row in file_rows(path)]
    assert rows == [("1 + 1?", 2), ("2 + 2?", 4)]


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.json"])
def test_half_a_character_makes_a_row_unreadable(tmp_path, name):
    rows = [{"question": "1 + 1? \ud83d", "answer": 2}, ROWS[1]]
    path = tmp_path / name
    path.write_text(json.dumps(rows) if name.endswith("json") else "\n".join(map(json.dumps, rows)))
    (_, first), (_, second) = file_rows(path)
    assert isinstance(first, UnreadableRow) and "\\ud83d" in first.problem
    assert second == ROWS[1]


def test_lines_of_text(tmp_path):
    (tmp_path / "notes.txt").write_text("One.\n\nTwo, and more.\n")
    assert list(file_rows(tmp_path / "notes.txt")) == [
        (1, {"text": "One."}),
        (3, {"text": "Two, and more."}),
    ]


def test_a_folder_of_files(tmp_path):
    for number, row in enumerate(ROWS):
        (tmp_path / f"part-{number}.jsonl").write_text(json.dumps(row))
    (tmp_path / "notes.md").write_text("No data.")
    source = parse_source(f"math:{tmp_path}")
    assert [row for _, row in source.rows()] == ROWS
    # where the files' names say their split, it is one of them
    (tmp_path / "train-0.jsonl").write_bytes(LINES)
    (tmp_path / "test-0.jsonl").write_text(json.dumps(ROWS[1]))
    assert [row for _, row in parse_source(f"math:{tmp_path}").rows()] == ROWS
    assert [row for _, row in parse_source(f"math:{tmp_path}:test#5").rows()] == ROWS[1:]
    with pytest.raises(InputError, match="no data files of the split dev in this folder"):
        list(parse_source(f"math:{tmp_path}:dev").rows())


@pytest.mark.parametrize(
    ("name", "good", "bad", "problem"),
    [
        ("rows.jsonl", json.dumps(ROWS[0]), '{"question": "1 +', "not JSON"),
        ("rows.jsonl", json.dumps(ROWS[0]), "[1]", "expected an object"),
        ("rows.csv", "1 + 1?,2", "1,2,3", "3 fields, and the first line names 2"),
        ("rows.csv", "1 + 1?,2", "1", "1 field, and the first line names 2"),
    ],
)
def test_a_line_that_cannot_be_read_is_a_bad_row_with_its_number(
    tmp_path, name, good, bad, problem
):
    header = ["question,answer"] if name.endswith("csv") else []
    path = tmp_path / name
    path.write_text("\n".join([*header, good, bad, *[good] * 20]))
    line = 2 + len(header)
    found = check_dataset(parse_source(f"math:{path}"))
    assert (found.rows, found.bad, found.too_many) == (22, 1, False)
    assert [text for number, text in found.problems if number == line and problem in text]
    usable, problems = parse_source(f"math:{path}").usable_rows()
    assert len(usable) == 21 and f"line {line}: " in problems and problem in problems
    # Too many of them are too many bad rows.
    path.write_text("\n".join([*header, good, *[bad] * (FORGIVEN + 1)]))
    assert check_dataset(parse_source(f"math:{path}")).too_many
    with pytest.raises(InputError, match="11 of 12 rows cannot be used .*(?s:.)*more than 10%"):
        parse_source(f"math:{path}").usable_rows()


def test_an_unreadable_row_is_refused_wherever_it_is_looked_into(tmp_path):
    (tmp_path / "rows.jsonl").write_text("{\n" + json.dumps(ROWS[0]))
    (_, row), _ = file_rows(tmp_path / "rows.jsonl")
    assert isinstance(row, UnreadableRow)
    for look in (dict, list, len, str.format_map.__get__("{a}"), lambda row: {**row}):
        with pytest.raises(ValueError, match="not JSON"):
            look(row)


@pytest.mark.parametrize(
    ("stray", "swallowed"),
    [
        ({50: '"What is 50?,50'}, range(50, 101)),  # up to the end of the file
        ({50: '"What is 50?,50', 70: '"What is 70?,70'}, range(50, 71)),
        ({50: '"What is 50?,50', 70: 'What is 70",70'}, range(50, 71)),
        ({50: '"What is 50?,50', 70: 'What is 70?,70"'}, range(50, 71)),
        ({50: '"It is 5"",50', 70: '"A, B, and C?",70'}, range(50, 71)),
        ({50: '"What is 50?,50', 70: 'What is 70?,"70"'}, range(50, 71)),
        ({50: '"What is 50?,5.5', 60: "And 60?,6.5", 70: 'What is 70",7.5'}, range(50, 71)),
        ({99: 'What is 99?,"99'}, range(99, 101)),
    ],
)
def test_the_rows_in_a_quote_that_is_not_closed_are_named(tmp_path, stray, swallowed):
    rows = [stray.get(n, f"What is {n}?,{n}") for n in range(2, 101)]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(["question,answer", *rows]))
    read = dict(file_rows(path))
    unreadable = [line for line, row in read.items() if isinstance(row, UnreadableRow)]
    assert unreadable == list(swallowed) and list(read) == list(range(2, 101))
    first, last = min(swallowed), max(swallowed)
    row = read[last]
    assert isinstance(row, UnreadableRow)
    assert f"opens in line {first} takes in all up to line {last}" in row.problem


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ('"question,answer', "a quote that opens in the first line"),
        ("question,answer,answer", "the first line names two columns 'answer'; rename one"),
    ],
)
def test_a_first_line_that_names_no_columns_is_refused(tmp_path, header, problem):
    (tmp_path / "rows.csv").write_text(f"{header}\n1 + 1?,2,3\n")
    with pytest.raises(InputError, match=f"rows.csv: {problem}"):
        list(file_rows(tmp_path / "rows.csv"))


@pytest.mark.parametrize(
    "question",
    [
        "First, a line.\nSecond, a line.\nThird, a line.\nHow many?",
        "It costs 1,000 Euro.\nHow much is half?",
        'He said "1, 2, 3".\n\nWhat comes then?',
        "x,y,z\n1,2,3\n4,5,6\nWhat is the sum?",
        "def f(x):\n    return x\n\nf(1)?",
        "f(1,2) is 3\nf(3,4) is 7\nWhat is f(2,2)?",
    ],
)
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_quoted_text_may_have_several_lines(tmp_path, question, delimiter):
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerows([["question", "answer"], *[[question, 7]] * 3, ["1 + 1?", 2]])
    rows = [row for _, row in file_rows(tmp_path / "rows.csv")]
    assert rows == [{"question": question, "answer": 7}] * 3 + [ROWS[0]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.jsonl.gz", LINES, "cannot be read .*[Nn]ot a gzipped file"),
        ("rows.jsonl.gz", DAMAGED, "cannot be read .Error -3 while decompressing"),
        ("rows.json", b"{nonsense", "cannot be read as json"),
        ("rows.json", b"7", "cannot be read as json .expected a list of objects"),
        # one row, as pandas writes all rows by their columns
        (
            "rows.json",
            b'{"question": {"0": "1 + 1?"}, "answer": {"0": 2}}',
            "cannot be read as json .expected a list .* got one object of 2 objects with the same keys",
        ),
        ("rows.csv", b"question\n\xff\n", "cannot be read as csv in UTF-8"),
    ],
)
def test_what_is_not_what_its_name_says(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name}: {message}"):
        list(file_rows(tmp_path / name))


NESTED = {
    "q": {"text": "1 + 1?"},
    "extra_info": '{"answer": "2"}',
    "answer": "no value at all, is it",
}


def test_columns_may_lead_into_a_column(tmp_path):
    (tmp_path / "rows.jsonl").write_text(json.dumps(NESTED))
    columns = {"q.text": "problem", "Extra_Info.answer": "answer", "absent.x": "note"}
    ((_, row),) = parse_source(f"math:{tmp_path / 'rows.jsonl'}", columns=columns).rows()
    assert (row["problem"], row["answer"], "note" in row) == ("1 + 1?", "2", False)
    # a column whose name has a dot, as a flat table has it, comes first
    (tmp_path / "rows.jsonl").write_text(json.dumps({"q.text": "3?", "q": {"text": "1?"}, "gt": 1}))
    ((_, row),) = parse_source(f"math:{tmp_path / 'rows.jsonl'}", columns=columns).rows()
    assert row["problem"] == "3?"


@pytest.mark.parametrize(
    ("rows", "task"),
    [
        ([{"problem": "1 + 1?", "solution": "2"}] * 3, "write math:"),
        ([{"question": "1 + 1?", "answer": "2"}] * 3, "write math:"),
        ([{"question": "?", "Options": ["a", "b"], "answer": "A"}] * 3, "write choice:"),
        ([{"Question": "?", "Test List": ["assert f(1) == 1"]}] * 3, "write code:"),
        (
            [{"problem": "1 + 1?", "solution": r"\boxed{2}"}, {"problem": "?", "solution": "2"}],
            None,
        ),
    ],
)
def test_a_task_is_guessed_only_where_it_can_use_the_rows(tmp_path, rows, task):
    path = tmp_path / "my.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    if task is None:
        assert parse_source(str(path)).task.name == "numina_math_tir"
        return
    with pytest.raises(InputError, match=f"no task is sure to fit .*{task}{path}"):
        parse_source(str(path))


def test_decimals_are_numbers(tmp_path):
    """What a column of a database is in Parquet."""
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    rows = [{"nums": [3, 8], "target": Decimal("24.00")}, {"nums": [5, 5], "target": Decimal(25)}]
    write_table(pyarrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    source = parse_source(f"countdown:{tmp_path / 'rows.parquet'}")
    assert [row["target"] for _, row in source.rows()] == [24, 25]
    golds = [{"question": "1 + 1/2?", "answer": Decimal("1.50")}]
    write_table(pyarrow.Table.from_pylist(golds), tmp_path / "golds.parquet")
    source = parse_source(f"math:{tmp_path / 'golds.parquet'}")
    assert next(source.rows())[1]["answer"] == "1.50" and source.usable_rows()[1] == ""
