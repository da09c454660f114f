"""`swift-rlvr evaluate --max_turns`: conversations that go on after a wrong answer, beside as many blind attempts."""

import json
from pathlib import Path

import pytest
from helpers import graded
from paths import DATASETS
from swift_rlvr.cli import app
from swift_rlvr.countdown import verify
from swift_rlvr.evaluation.paired import beside_blind, paired
from swift_rlvr.evaluation.turns import summarize_turns
from swift_rlvr.jsonl import read_json
from swift_rlvr.runs.grades import reason_of
from swift_rlvr.runs.records import Record, read_records
from swift_rlvr.runs.statistics import pass_at_k
from swift_rlvr.tiny_model import WEIGHTS
from typer.testing import CliRunner

pytestmark = pytest.mark.slow  # three evaluations of the tiny model

DATA = DATASETS / "countdown" / "tiny_test.jsonl"
ROWS, SAMPLES, TURNS = 6, 3, 3


def evaluate(out: Path, *flags: object):
    words = ["evaluate", WEIGHTS, "--dataset", f"{DATA}#{ROWS}", "--num_generations", SAMPLES, "--out", out, *flags]
    # Turns of at most 60 tokens: some are cut off.
    return CliRunner().invoke(app, [*map(str, words), "--max_completion_length", "60"], env={"COLUMNS": "300"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("turns")
    for name, flags in {"plain": (), "several": ("--max_turns", TURNS), "seeds": ("--seeds", "0,1")}.items():
        more = ("--max_turns", 2) if name == "seeds" else ()
        result = evaluate(folder / name, *flags, *more)
        assert result.exit_code == 0, result.output
        (folder / name / "output").write_text(result.output)
    return folder


def records(path: Path) -> list[Record]:
    return list(read_records(path / "records.jsonl"))


def answers_of(record: Record) -> list[str]:
    earlier = [each["content"] for each in record.messages if each["role"] == "assistant"]
    return [*earlier, record.completion]


def test_the_first_turns_are_the_samples_of_an_evaluation_without_turns(folder):
    plain, several = records(folder / "plain"), records(folder / "several")
    assert plain == several
    continued = records(folder / "several" / "turns")
    assert [record.completion for record in plain] == [answers_of(each)[0] for each in continued]


def test_a_wrong_answer_is_followed_by_its_reason_and_another_one(folder):
    """A right one and one that is cut off end the conversation; the reward is that of the last answer."""
    first = {(each.index, each.sample): each for each in records(folder / "several")}
    lengths = set()
    for record in records(folder / "several" / "turns"):
        verdicts = [verify(answer, record.row["nums"], record.row["target"]) for answer in answers_of(record)]
        feedback = [each["content"] for each in record.messages if each["role"] == "user"][1:]
        assert record.turn == len(verdicts) == len(feedback) + 1 <= TURNS
        assert [verdict.reward for verdict in verdicts[:-1]] == [0.0] * (record.turn - 1)
        assert (float(record.success), reason_of(record)) == (verdicts[-1].reward, str(verdicts[-1].reason))
        for verdict, text in zip(verdicts, feedback, strict=False):
            assert text.lower().startswith(str(verdict.reason)) and text.endswith("Try again.")
        assert record.turn == TURNS or record.success or record.finish == "length"
        own = first[record.index, record.sample]
        assert own.question == record.question
        assert record.tokens > own.tokens if record.turn > 1 else record.tokens == own.tokens
        lengths.add(record.turn)
    assert {1, 3} <= lengths


def test_the_summary_lays_them_beside_blind_attempts_at_the_same_tasks(folder):
    summary = read_json(folder / "several" / "summary.json")["turns"]
    assert summary == read_json(folder / "several" / "turns" / "summary.json")
    attempts, last = records(folder / "several"), records(folder / "several" / "turns")
    right = [sum(each.success for each in attempts if each.index == index) for index in range(ROWS)]
    blind = [pass_at_k(SAMPLES, int(count), TURNS) for count in right]
    assert summary["blind"] == pytest.approx(sum(blind) / ROWS)
    assert summary["success"] == pytest.approx(sum(each.success for each in last) / (ROWS * SAMPLES))
    assert summary["paired"]["difference"] == pytest.approx(summary["success"] - summary["blind"])
    assert summary["mean_turns"] == pytest.approx(sum(each.turn for each in last) / len(last))
    continued = [each for each in last if each.turn > 1]
    assert summary["mended"] == pytest.approx(sum(each.success for each in continued) / len(continued))
    other = [
        [each.success for each in attempts if each.index == own.index and each.sample != own.sample]
        for own in continued
    ]
    assert summary["mended_blind"] == pytest.approx(sum(map(sum, other)) / (len(other) * (SAMPLES - 1)))
    shown = (folder / "several" / "output").read_text()
    assert beside_blind(summary) in shown
    assert paired(attempts, last)["tasks"] == ROWS  # `swift-rlvr compare OUT OUT/turns` knows that they are of the same


def test_several_seeds_continue_their_own_samples(folder):
    attempts, last = records(folder / "seeds"), records(folder / "seeds" / "turns")
    keys = [[(each.index, each.sample, each.seed) for each in records] for records in (attempts, last)]
    assert keys[0] == keys[1] and len(last) == ROWS * SAMPLES * 2
    assert [answers_of(each)[0] for each in last] == [each.completion for each in attempts]


def test_fewer_samples_than_turns_cannot_be_compared():
    summary = summarize_turns([graded(0, False)], [graded(0, False, turn=2)], 2)
    assert summary["paired"] is None and summary["mended"] == 0.0
    assert "at least 2 samples" in beside_blind({**summary, "max_turns": 2})
    json.dumps(summary)


def test_there_is_at_least_one_turn(tmp_path):
    result = evaluate(tmp_path / "new", "--max_turns", 0)
    assert result.exit_code == 2 and "--max_turns must be at least 1, got 0" in result.output
    assert not (tmp_path / "new").exists()
