"""Files of rows: whole or not there, the same after an interruption, and read by what trains on them."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from swift_rlvr.countdown.export import write_rows
from swift_rlvr.countdown.generator import make_tasks
from swift_rlvr.countdown.settings import TUTORIAL
from swift_rlvr.errors import InputError

ROWS = list(make_tasks(TUTORIAL, "train", 1, 300, columns=["solution", "solutions", "operators", "depth"]))


class Stopped(BaseException):
    """Ends a call as Ctrl-C does."""


def stopping(rows, after):
    def rows_from(skip):
        yield from rows[skip:after]
        raise Stopped

    return rows_from


@given(st.integers(0, 300), st.integers(0, 200))
@settings(deadline=None, max_examples=10)
def test_an_interrupted_file_is_finished_to_the_same_bytes(tmp_path_factory, done, lost):
    folder = tmp_path_factory.mktemp("files")
    out, started = folder / "out.jsonl", []
    with pytest.raises(Stopped):
        write_rows(out, stopping(ROWS, done), "these")
    (part,) = folder.iterdir()
    part.write_bytes(part.read_bytes()[: max(0, part.stat().st_size - lost)])  # as after a crash, within a line
    whole = part.read_bytes().count(b"\n")
    assert write_rows(out, lambda skip: started.append(skip) or ROWS[skip:], "these") == 300
    assert out.read_text() == "".join(json.dumps(row) + "\n" for row in ROWS)
    assert started == [whole] and list(folder.iterdir()) == [out]


def test_what_was_made_with_other_settings_is_not_gone_on_with(tmp_path):
    out = tmp_path / "t.jsonl"
    with pytest.raises(Stopped):
        write_rows(out, stopping(ROWS, 5), "these")
    assert write_rows(out, lambda skip: ROWS[skip:][::-1], "others") == 300
    assert json.loads(out.read_text().splitlines()[0]) == ROWS[-1]


def test_an_old_file_stays_until_the_new_one_is_whole(tmp_path):
    out = tmp_path / "t.jsonl"
    out.write_text("old")

    def too_few(skip):
        yield from ROWS
        raise IndexError("too few")

    with pytest.raises(IndexError, match="too few"):
        write_rows(out, too_few, "these")
    assert out.read_text() == "old" and list(tmp_path.iterdir()) == [out]


def test_hugging_face_datasets_and_trl_read_both_as_they_are(tmp_path):
    datasets = pytest.importorskip("datasets")
    for builder, name in (("json", "t.jsonl"), ("parquet", "t.parquet")):
        assert write_rows(tmp_path / name, lambda skip: ROWS[skip:], "these") == 300
        loaded = datasets.load_dataset(builder, data_files=str(tmp_path / name), split="train", cache_dir=str(tmp_path))
        assert loaded.to_list() == ROWS


def test_mistakes(tmp_path):
    with pytest.raises(InputError, match=r"out must end in \.jsonl or \.parquet, got t\.csv"):
        write_rows(tmp_path.relative_to(tmp_path) / "t.csv", lambda skip: [], "")
    (tmp_path / "file").write_text("")
    for name in ("t.jsonl", "t.parquet"):
        with pytest.raises(InputError, match="cannot write"):
            write_rows(tmp_path / "file" / name, lambda skip: ROWS, "")
