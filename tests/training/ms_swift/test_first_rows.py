"""The first rows of a dataset as ms-swift's training will have them."""

import json

import pytest

pytest.importorskip("swift", reason="needs the extra [train]")

pytestmark = pytest.mark.slow  # as a whole

READ = """
import json, sys
from dataclasses import asdict
from swift.utils import import_external_file

for plugin in sys.argv[3:]:
    import_external_file(plugin)
from swift_rlvr.training.ms_swift.first_rows import names_to_read, read_first_rows

chosen = names_to_read([sys.argv[1]], use_hf=False)
first = read_first_rows(sys.argv[1], int(sys.argv[2]), {"remove_unused_columns": False, "use_hf": False})
print(json.dumps([chosen, asdict(first)]))
"""
REGISTERED = """
from swift.dataset import DatasetMeta, RowPreprocessor, register_dataset


class Sums(RowPreprocessor):
    def preprocess(self, row):
        if row["gold"] == "0":
            return None
        question = {"role": "user", "content": row["question"]}
        return {"messages": [question], "solution": row["gold"].strip()}


register_dataset(DatasetMeta(dataset_path=PATH, dataset_name="sums", preprocess_func=Sums()))
"""


@pytest.fixture
def read(ms_swift, tmp_path):
    def first(name, count=200, *plugins):
        done = ms_swift.run(READ, name, count, *plugins, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return first


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_file_in_ms_swifts_own_form(read, tmp_path):
    rows = [{"query": f"{number} + 1?", "solution": str(number + 1)} for number in range(500)]
    path = write(tmp_path / "sums.jsonl", rows)
    chosen, first = read(path, 3)
    assert chosen == [str(path)] and len(first["rows"]) == 3 and not first["refused"]
    assert first["rows"][2]["solution"] == "3"
    assert first["rows"][2]["messages"][0] == {"role": "user", "content": "2 + 1?"}
    assert "dataset" not in first["rows"][0]


def test_a_registered_dataset_and_the_rows_that_its_preprocessor_loses(read, tmp_path):
    rows = [
        {"question": f"{number}?", "gold": None if number % 2 else str(number)}
        for number in range(9)
    ]
    path = write(tmp_path / "gold.jsonl", rows)
    plugin = tmp_path / "registers.py"
    plugin.write_text(f"PATH = {str(path)!r}\n{REGISTERED}")
    chosen, first = read("sums", 200, plugin)
    assert chosen == ["sums"]
    assert [row["solution"] for row in first["rows"]] == ["2", "4", "6", "8"]
    # Four without a gold, and the one that the preprocessor leaves out.
    assert (first["refused"], first["skipped"], first["are_all"]) == (4, 1, True)
    assert not read("sums", 2, plugin)[1]["are_all"]


def test_a_preprocessor_that_ends_the_program_is_a_problem(read, tmp_path):
    path = write(tmp_path / "gold.jsonl", [{"question": "1?", "gold": "1"}])
    plugin = tmp_path / "registers.py"
    ends = REGISTERED.replace('if row["gold"] == "0":', "raise SystemExit(3)")
    plugin.write_text(f"PATH = {str(path)!r}\n{ends}".replace("            return None\n", ""))
    assert "registers.py" in read("sums", 200, plugin)[1]["problem"]


def test_a_file_that_cannot_be_read_is_a_problem(read, tmp_path):
    path = tmp_path / "broken.jsonl"
    path.write_text('{"query": "1 + 1?", "solution": "2"}\n{"query": \n')
    assert read(path)[1]["problem"]


def test_where_every_row_is_lost_reading_ends(read, tmp_path):
    rows = [{"question": f"{number}?", "gold": None} for number in range(5000)]
    plugin = tmp_path / "registers.py"
    plugin.write_text(f"PATH = {str(write(tmp_path / 'lost.jsonl', rows))!r}\n{REGISTERED}")
    _, first = read("sums", 20, plugin)
    lost = first["refused"] or first["problem"]
    assert not first["rows"] and lost and "registers.py" in first["why"] + first["problem"]


def test_hubs_and_tasks_of_ours_are_not_read(ms_swift, tmp_path):
    names = ["owner/other", "countdown", "math:sums.jsonl", "gsm8k"]
    code = (
        "import rlvr_plugin\n"
        "from swift_rlvr.training.ms_swift.first_rows import names_to_read\n"
        f"print(names_to_read({names!r}, use_hf=False))"
    )
    write(tmp_path / "sums.jsonl", [{"query": "1 + 1?", "solution": "2"}])
    done = ms_swift.run(code, cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_a_preprocessor_that_never_ends(read, tmp_path):
    """The rows before that are read, and the line at which it was is named."""
    plugin = tmp_path / "waits.py"
    text = REGISTERED.replace("PATH", repr(str(tmp_path / "sums.jsonl")))
    waits = "        if row['gold'] == '3':\n            while True: pass\n        question"
    text = text.replace("        question", waits)
    limit = "from swift_rlvr.training.ms_swift import first_rows\nfirst_rows.SECONDS = 3\n"
    plugin.write_text(limit + text)
    write(tmp_path / "sums.jsonl", [{"question": f"{n}?", "gold": str(n)} for n in range(9)])
    _, first = read("sums", 200, plugin)
    assert "waits.py, line 1" in first["late"] and not first["refused"] and not first["problem"]
    assert [row["solution"] for row in first["rows"]] in ([], ["1", "2"])
