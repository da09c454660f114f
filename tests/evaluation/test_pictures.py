"""Evaluating and probing with pictures: the server is sent them, other engines refuse, and what is
written holds their names alone.
"""

import base64
import json
from collections import Counter

import pytest
from rich.console import Console

from chat_server import KEY, ChatServer, running
from pictures import content, dots, write_dots
from swift_rlvr.evaluation.conversations import from_answers, from_records
from swift_rlvr.evaluation.evaluate import evaluate
from swift_rlvr.evaluation.probe import parse_keep, probe
from swift_rlvr.evaluation.report.completions import prompt_text
from swift_rlvr.evaluation.sampling import SamplingSettings
from swift_rlvr.rewards import REWARDS
from swift_rlvr.runs.grade_log import GradeLog
from swift_rlvr.runs.records import append_records, read_records
from swift_rlvr.tasks import TASKS
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.jsonl import read_jsonl, write_jsonl

QUIET = Console(quiet=True)


class Counting(ChatServer):
    """Answers with the number of dots in the picture that it is sent, and 0 without one."""

    def write(self, body):
        counts = {base64.b64encode(content(dots(count))).decode(): count for count in range(1, 9)}
        seen = 0
        for turn in body["messages"]:
            for part in turn["content"] if isinstance(turn["content"], list) else ():
                if part["type"] == "image_url":
                    seen = counts[part["image_url"]["url"].partition("base64,")[2]]
        return self.choice({"content": f"<think>I look.</think><answer>{seen}</answer>"}, tokens=5)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with running(Counting) as server:
        yield server


def sampling(server, **changes):
    return SamplingSettings("tiny", server=server.url, **changes)


def test_the_server_sees_what_it_is_asked_about(server, tmp_path):
    file = write_dots(tmp_path / "data")
    summary = evaluate(sampling(server), f"math:{file}", tmp_path / "out", QUIET)
    assert summary["success"] == 1.0 and summary["completions"] == 8
    body = server.asked[0]
    (text,) = [part for part in body["messages"][-1]["content"] if part["type"] == "text"]
    assert text["text"] == "How many dots are there?"

    records = list(read_records(tmp_path / "out" / "records.jsonl"))
    assert [record.row["images"] for record in records] == [
        [str(tmp_path / f"data/pictures/{count}.png")] for count in range(1, 9)
    ]
    assert len({record.question for record in records}) == 8
    assert "pictures/1.png" in prompt_text(records[0])
    assert "base64" not in (tmp_path / "out" / "records.jsonl").read_text()


def test_a_probe_writes_rows_that_can_be_trained_on(server, tmp_path):
    """Also where the file holds the pictures themselves, which JSON cannot."""
    held = [base64.b64encode(content(dots(count))).decode() for count in (1, 2)]
    rows: list[dict] = [
        {"images": [{"bytes": held[0], "path": None}], "question": "How many?", "answer": "1"},
        {"image": held[1], "question": "How many?", "answer": "9"},
    ]
    write_jsonl(tmp_path / "rows.jsonl", rows)
    dataset = f"math:{tmp_path / 'rows.jsonl'}"
    settings = sampling(server, num_generations=2)
    out = tmp_path / "out"
    summary = probe(settings, dataset, out, QUIET, group_size=2, keep=parse_keep("0.9..1"))
    assert summary["success"] == 0.5 and summary["keep"]["rows"] == 1
    ((_, kept),) = read_jsonl(out / "keep.jsonl")
    (picture,) = TASKS["math"].preprocess(kept)["images"]
    assert picture["bytes"] == content(dots(1))
    for name in ("records.jsonl", "probe.jsonl"):
        assert held[0] not in (out / name).read_text()


def test_what_no_server_is_sent_is_refused(server, tmp_path):
    file = write_dots(tmp_path / "data")
    settings = SamplingSettings(str(TINY_MODEL), server=server.url)
    with pytest.raises(InputError, match="reads text alone"):
        evaluate(settings, f"math:{file}", tmp_path / "out", QUIET)
    (tmp_path / "a.mp4").touch()
    row = {"videos": [str(tmp_path / "a.mp4")], "question": "How many?", "answer": "1"}
    write_jsonl(tmp_path / "rows.jsonl", [row])
    with pytest.raises(InputError, match="the rows have videos, which no engine here is sent"):
        evaluate(sampling(server), f"math:{tmp_path / 'rows.jsonl'}", tmp_path / "out", QUIET)
    assert server.asked == []


@pytest.mark.parametrize("engine", ["transformers", "vllm"])
def test_an_engine_without_eyes_refuses(tmp_path, engine):
    file = write_dots(tmp_path / "data")
    settings = SamplingSettings(str(TINY_MODEL), engine=engine)
    with pytest.raises(InputError, match="which only a server is sent"):
        evaluate(settings, f"math:{file}", tmp_path / "out", QUIET)
    assert not (tmp_path / "out" / "records.jsonl").exists()


def test_a_step_of_a_training_is_logged_by_names(tmp_path):
    """ms-swift hands the pictures to the rewards as they lie in the dataset."""
    log = GradeLog()
    reward = REWARDS["accuracy"]()
    picture = {"bytes": content(dots(3)), "path": None}
    columns = {
        "solution": ["3", "4"],
        "task": ["math", "math"],
        "images": [[picture], None],
        "messages": [[{"role": "user", "content": "<image>How many?"}]] * 2,
    }
    log.add(reward, ["3", "4"], columns, [(1.0, "correct"), (1.0, "correct")])
    records = log.take()
    append_records(tmp_path / "records.jsonl", records)
    first, second = read_records(tmp_path / "records.jsonl")
    (name,) = first.row["images"]
    assert name.endswith("60x40)") and len((tmp_path / "records.jsonl").read_text()) < 1500
    assert "images" not in second.row or second.row["images"] is None
    assert first.question != second.question


def test_rows_for_supervised_training_keep_their_pictures(server, tmp_path):
    file = write_dots(tmp_path / "data")
    source = parse_source(f"math:{file}")
    made = list(from_answers(source, [], Counter()))
    names = [[str(tmp_path / f"data/pictures/{count}.png")] for count in range(1, 9)]
    assert [row["images"] for row in made] == names
    assert made[0]["messages"][-2]["content"].count("<image>") == 1
    evaluate(sampling(server), f"math:{file}", tmp_path / "out", QUIET)
    counted: Counter[str] = Counter()
    right = list(from_records([tmp_path / "out" / "records.jsonl"], [], counted, 1, False))
    assert [row["images"] for row in right] == names
    json.dumps([made, right])
