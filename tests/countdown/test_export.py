"""Files of Countdown tasks: whole or not there, the same after an interruption, and read by what trains on them."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from swift_rlvr.countdown import export
from swift_rlvr.countdown.export import write_tasks
from swift_rlvr.countdown.generator import Columns, make_tasks
from swift_rlvr.countdown.settings import TINY, TUTORIAL, TV
from swift_rlvr.errors import InputError

EVERYTHING = Columns(solution=True, difficulty=True)


@pytest.mark.parametrize(("wanted", "rows"), [(TUTORIAL, 5000), (TV, 30), (TINY, None)])
@pytest.mark.parametrize("columns", [Columns(), Columns(solutions=True), EVERYTHING])
def test_lines_are_what_json_makes_of_the_rows(tmp_path, wanted, rows, columns):
    made = list(make_tasks(wanted, "train", 1, rows, columns=columns))
    assert write_tasks(tmp_path / "t.jsonl", wanted, "train", 1, rows, columns=columns) == len(made)
    assert (tmp_path / "t.jsonl").read_text() == "".join(json.dumps(row) + "\n" for row in made)


def test_the_file_is_the_same_on_two_workers(tmp_path):
    for workers in (1, 2):
        write_tasks(tmp_path / f"{workers}.jsonl", TUTORIAL, "test", 2, 9000, workers, EVERYTHING)
    assert (tmp_path / "1.jsonl").read_bytes() == (tmp_path / "2.jsonl").read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


class Stopped(BaseException):
    """Ends a call as Ctrl-C does."""


def stop_after(rows):
    def progress(done):
        if done >= rows:
            raise Stopped

    return progress


@given(st.integers(1, 15_000), st.integers(0, 60))
@settings(deadline=None, max_examples=6)
def test_an_interrupted_file_is_finished_to_the_same_bytes(tmp_path_factory, rows, lost):
    folder = tmp_path_factory.mktemp("files")
    whole, out = folder / "whole.jsonl", folder / "out.jsonl"
    write_tasks(whole, TUTORIAL, "train", 3, 15_000)
    with pytest.raises(Stopped):
        write_tasks(out, TUTORIAL, "train", 3, 15_000, progress=stop_after(rows))
    assert not out.exists()
    part = folder / "out.jsonl.part"
    part.write_bytes(part.read_bytes()[: part.stat().st_size - lost])  # as after a crash, in the middle of a line
    seen = []
    assert write_tasks(out, TUTORIAL, "train", 3, 15_000, progress=seen.append) == 15_000
    assert out.read_bytes() == whole.read_bytes() and sorted(folder.iterdir()) == [out, whole]
    assert not seen or seen[0] > len(whole.read_bytes()[: -lost or None].splitlines()) // 15_000  # went on, not anew


def test_what_was_made_with_other_settings_is_not_gone_on_with(tmp_path, monkeypatch):
    out = tmp_path / "t.jsonl"
    changes = [{"seed": 1}, {"split": "test"}, {"rows": 11_000}, {"columns": Columns(solution=True)}]
    for change in changes:
        arguments = {"settings": TUTORIAL, "split": "train", "seed": 0, "rows": 10_000} | change
        with pytest.raises(Stopped):
            write_tasks(out, TUTORIAL, "train", 0, 10_000, progress=stop_after(1))
        write_tasks(out, **arguments)
        lines = out.read_text().splitlines()
        expected = list(make_tasks(*(arguments[name] for name in ("settings", "split", "seed")), arguments["rows"],
                                   columns=change.get("columns", Columns())))  # fmt: skip
        assert list(map(json.loads, lines)) == expected
    with pytest.raises(Stopped):
        write_tasks(out, TUTORIAL, "train", 0, 10_000, progress=stop_after(1))
    monkeypatch.setattr(export, "_STREAM", 99)  # another version, whose rows are others
    seen = []
    write_tasks(out, TUTORIAL, "train", 0, 10_000, progress=seen.append)
    assert seen[0] < 6000


def test_an_old_file_stays_until_the_new_one_is_whole(tmp_path):
    out = tmp_path / "t.jsonl"
    out.write_text("old")
    with pytest.raises(Stopped):
        write_tasks(out, TUTORIAL, "train", 0, 10_000, progress=stop_after(1))
    assert out.read_text() == "old"
    with pytest.raises(IndexError, match="99999 rows wanted"):
        write_tasks(out, TINY, "train", 0, 99_999)
    assert out.read_text() == "old"


@pytest.mark.parametrize("columns", [Columns(), EVERYTHING])
def test_parquet_holds_the_same_rows(tmp_path, columns):
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "t.parquet"
    assert write_tasks(out, TUTORIAL, "train", 1, 5000, columns=columns) == 5000
    assert parquet.read_table(out).to_pylist() == list(make_tasks(TUTORIAL, "train", 1, 5000, columns=columns))
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_hugging_face_datasets_and_trl_read_both_as_they_are(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = list(make_tasks(TUTORIAL, "train", 1, 300, columns=EVERYTHING))
    for builder, name in (("json", "t.jsonl"), ("parquet", "t.parquet")):
        write_tasks(tmp_path / name, TUTORIAL, "train", 1, 300, columns=EVERYTHING)
        loaded = datasets.load_dataset(builder, data_files=str(tmp_path / name), split="train", cache_dir=str(tmp_path))
        assert loaded.to_list() == rows


def test_mistakes(tmp_path):
    with pytest.raises(InputError, match=r"out must end in \.jsonl or \.parquet, got t\.csv"):
        write_tasks(tmp_path.relative_to(tmp_path) / "t.csv", TINY, "train", 0, 1)
    (tmp_path / "file").write_text("")
    for name in ("t.jsonl", "t.parquet"):
        with pytest.raises(InputError, match="cannot write"):
            write_tasks(tmp_path / "file" / name, TINY, "train", 0, 1)
