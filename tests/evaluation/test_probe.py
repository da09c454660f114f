"""The probe: its figures against values worked out by hand, what it keeps, how it goes on, and what
it refuses.

Completions come from a stand-in for the model here, but for one test at the end with each real
sampler.
"""

import io
import json
import re
import statistics
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest
from rich.console import Console

from commands import ran, refused
from helpers import printed
from paths import DATASETS
from swift_rlvr.evaluation import sample_dataset
from swift_rlvr.evaluation.probe import conclusion, parse_keep, probe
from swift_rlvr.evaluation.sampling import Completion, SamplingSettings
from swift_rlvr.runs.records import read_records
from swift_rlvr.runs.statistics import bootstrap, wilson
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.jsonl import read_json, read_jsonl, write_jsonl

QUIET = Console(quiet=True)
ROWS = [{"nums": [i, 1], "target": i + 1, "note": f"row {i}"} for i in range(1, 9)]
RIGHT = [0, 1, 2, 3, 4, 4, 2, 0]  # of the four samples of each row


class StandIn:
    """Writes so many right completions for each row, and counts what it is asked for."""

    served_model = None
    use: Callable[[Any], Any]  # of the fixture's: takes another in its place

    def __init__(self, right=RIGHT, batch_size=8, fails_at=None):
        self.right, self.batch_size, self.fails_at, self.asked, self.seeds = (
            right,
            batch_size,
            fails_at,
            [],
            [],
        )

    def sample(self, conversations, on_progress, seed):
        indices = [self.conversations.index(conversation) for conversation in conversations]
        if self.fails_at is not None and self.fails_at in indices:
            raise KeyboardInterrupt
        self.asked += indices
        self.seeds.append(seed)
        on_progress(0.5)
        return [
            [self.completion(index, n < self.right[index]) for n in range(self.n)]
            for index in indices
        ]

    def completion(self, index, right):
        number = ROWS[index]["nums"][0]
        answer = f"{number} + 1" if right else f"{number} - 1"
        return Completion(f"<think>so</think><answer>{answer}</answer>", 9, "stop")

    def __call__(self, settings, conversations):
        self.conversations, self.n = conversations, settings.num_generations
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    """Takes the place of the models; the dataset is data.jsonl."""
    pytest.importorskip("torch")
    write_jsonl(tmp_path / "data.jsonl", ROWS)
    model = StandIn()

    def use(other):
        monkeypatch.setattr(sample_dataset, "open_engine", other)
        return other

    model.use = use
    return use(model)


def probed(tmp_path, samples=4, group_size=2, **options):
    settings = SamplingSettings("some/model", samples, seed=options.pop("seed", 0))
    console = options.pop("console", QUIET)
    data = f"{tmp_path}/data.jsonl{options.pop('first', '')}"
    return probe(settings, data, tmp_path / "out", console, group_size=group_size, **options)


def test_figures_of_rows_and_of_the_set(stand_in, tmp_path):
    summary = probed(tmp_path)
    rows = [row for _, row in read_jsonl(tmp_path / "out" / "probe.jsonl")]
    assert [row["right"] for row in rows] == RIGHT and [row["line"] for row in rows] == list(
        range(1, 9)
    )
    assert rows[1]["pass_rate"] == 0.25 and rows[1]["interval"] == list(wilson(0.25, 4))
    assert (rows[1]["nums"], rows[1]["target"], rows[1]["graded"]) == ([2, 1], 3, 4)
    assert rows[1]["reasons"] == {"wrong value": 3, "correct": 1}
    assert summary["success"] == sum(RIGHT) / 32
    for k in (1, 2, 4):  # over all subsets of the samples of each row
        subsets = [list(combinations([n < right for n in range(4)], k)) for right in RIGHT]
        shares = [sum(map(any, draws)) / len(draws) for draws in subsets]
        assert summary["pass_at_k"][str(k)] == pytest.approx(statistics.fmean(shares))
        low, high = summary["pass_at_k_interval"][str(k)]
        assert low < summary["pass_at_k"][str(k)] < high
    pairs = [list(combinations([n < right for n in range(4)], 2)) for right in RIGHT]
    alike = [sum(len(set(pair)) == 1 for pair in row_pairs) / len(row_pairs) for row_pairs in pairs]
    assert summary["no_spread"] == pytest.approx(statistics.fmean(alike))
    assert summary["no_spread_interval"] == pytest.approx(bootstrap(alike))
    assert summary["pass_rates"] == {
        "0": 2,
        "up to 0.25": 1,
        "up to 0.5": 2,
        "up to 0.75": 1,
        "below 1": 0,
        "1": 2,
    }
    assert "GRPO has something to learn from here" in summary["verdict"]
    assert summary == read_json(tmp_path / "out" / "summary.json")


def test_the_rewards_of_a_run_take_the_place_of_the_tasks(stand_in, tmp_path):
    """A run may be paid by something else than the task's verifier, and learn nothing."""
    (tmp_path / "mine.py").write_text(
        "def shout(completions, target, **columns):\n"
        "    return [float(text.isupper() and target > 0) for text in completions]\n"
        "shout.role = 'verifier'\n"
    )
    mine = f"{tmp_path / 'mine.py'}:shout"
    summary = probed(tmp_path, reward_funcs=[mine, "format"])
    assert summary["success"] == 0 and "nothing to learn" in summary["verdict"]
    record = next(iter(read_records(tmp_path / "out" / "records.jsonl")))
    assert set(record.rewards) == {mine, "external_format"} and "target" in record.row
    with pytest.raises(InputError, match="reward_funcs was .*shout.* and is None"):
        probed(tmp_path)


def test_rewards_that_do_not_say_what_is_right_measure_nothing(stand_in, tmp_path):
    with pytest.raises(
        InputError, match="reward_funcs: none of external_format says what is right"
    ):
        probed(tmp_path, reward_funcs=["format"])


def test_rows_that_cannot_be_used_are_skipped_and_named(stand_in, tmp_path):
    bad = {"nums": [5, None], "target": 6, "note": "bad"}
    write_jsonl(tmp_path / "data.jsonl", [*ROWS[:3], bad, *ROWS[3:]])
    console = Console(file=io.StringIO())
    summary = probed(tmp_path, keep=(0.2, 0.9), console=console)
    assert "1 of 9 rows cannot be used (nums: 1)\n  line 4: column 'nums'" in (printed(console))
    assert summary["tasks"] == 8
    rows = [row for _, row in read_jsonl(tmp_path / "out" / "probe.jsonl")]
    assert [row["line"] for row in rows] == [1, 2, 3, 5, 6, 7, 8, 9]
    assert [row["right"] for row in rows] == RIGHT
    kept = [row for _, row in read_jsonl(tmp_path / "out" / "keep.jsonl")]
    assert [row["note"] for row in kept] == ["row 2", "row 3", "row 4", "row 7"]


def test_columns_are_renamed_also_in_what_is_kept(stand_in, tmp_path):
    rows = [{"nums": row["nums"], "Goal": row["target"]} for row in ROWS]
    write_jsonl(tmp_path / "data.jsonl", rows)
    summary = probed(tmp_path, keep=(0.2, 0.9), columns='{"goal": "target"}')
    assert summary["tasks"] == 8
    kept = [row for _, row in read_jsonl(tmp_path / "out" / "keep.jsonl")]
    assert [row["target"] for row in kept] == [3, 4, 5, 8]


def test_rows_worth_training_on(stand_in, tmp_path):
    kept = probed(tmp_path, keep=parse_keep("0.25..0.75"))["keep"]
    rows = [row for _, row in read_jsonl(tmp_path / "out" / "keep.jsonl")]
    chosen = [place for place, right in enumerate(RIGHT) if 1 <= right <= 3]
    assert rows == [{**ROWS[place], "pass_rate": RIGHT[place] / 4} for place in chosen]
    assert (kept["rows"], kept["of"]) == (len(rows), 8)
    again = [row for _, row in parse_source(f"countdown:{tmp_path / 'out' / 'keep.jsonl'}").rows()]
    assert again == rows
    probed(tmp_path, keep=(0.5, 0.5))
    assert len(stand_in.asked) == len(ROWS)  # nothing was sampled again


def test_an_interrupted_probe_goes_on_and_comes_to_the_same(stand_in, tmp_path):
    whole = probed(tmp_path)
    assert (
        stand_in.asked == list(range(8)) and len(set(stand_in.seeds)) == 4
    )  # each chunk has a seed of its own
    records = (tmp_path / "out" / "records.jsonl").read_text()
    for path in (tmp_path / "out").iterdir():
        path.unlink()
    broken = stand_in.use(StandIn(fails_at=5))
    with pytest.raises(KeyboardInterrupt):
        probed(tmp_path)
    assert broken.asked == [0, 1, 2, 3]
    file = tmp_path / "out" / "records.jsonl"
    file.write_text(
        file.read_text() + records.splitlines(keepends=True)[16] + '{"index": 4, "sam'
    )  # killed while writing
    other = stand_in.use(StandIn())
    assert probed(tmp_path) == whole
    assert other.asked == [4, 5, 6, 7] and other.seeds == stand_in.seeds[2:]
    assert file.read_text() == records
    stand_in.use(StandIn(fails_at=0))  # all samples are there: no model is needed
    assert probed(tmp_path)["success"] == whole["success"]


def test_other_settings_are_refused_by_name(stand_in, tmp_path):
    probed(tmp_path)
    with pytest.raises(
        ValueError,
        match=r"out holds samples with other settings: num_generations was 4 and is 8; choose",
    ):
        probed(tmp_path, samples=8)
    with pytest.raises(ValueError, match=r"seed was 0 and is 1; system was .* and is 'Think.'"):
        probed(tmp_path, seed=1, system="Think.")
    with pytest.raises(ValueError, match="rows was 8 and is 3; the content of the dataset differs"):
        probed(tmp_path, first="#3")
    write_jsonl(tmp_path / "data.jsonl", [ROWS[0] | {"target": 3}, *ROWS[1:]])
    with pytest.raises(ValueError, match="settings: the content of the dataset differs; choose"):
        probed(tmp_path)


def test_nothing_sampled_yet_binds_to_no_settings(stand_in, tmp_path):
    stand_in.use(StandIn(fails_at=0))
    with pytest.raises(KeyboardInterrupt):
        probed(tmp_path, seed=5)
    stand_in.use(StandIn())
    assert probed(tmp_path)["settings"]["seed"] == 0


def test_ctrl_c_says_how_to_go_on(stand_in, tmp_path):
    stand_in.use(StandIn(fails_at=4, batch_size=32))
    arguments = [
        "probe",
        "some/model",
        "--dataset",
        tmp_path / "data.jsonl",
        "--out",
        tmp_path / "out",
        "--num_generations",
        8,
    ]
    shown = ran(*arguments, "--group_size", 2, code=130)
    assert "interrupted; run the same command again to continue" in shown
    stand_in.use(StandIn())
    assert "continuing after 4 of 8 rows" in ran(*arguments, "--group_size", 2, columns=400)


def test_weights_that_have_changed_are_other_settings(tmp_path):
    assert sample_dataset.weights_digest("some/model") is None
    (tmp_path / "model.safetensors").write_bytes(b"12")
    before = sample_dataset.weights_digest(str(tmp_path))
    assert before == sample_dataset.weights_digest(str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"123")
    assert sample_dataset.weights_digest(str(tmp_path)) != before


def test_records_of_something_else_are_left_alone(stand_in, tmp_path):
    (tmp_path / "out").mkdir()
    file = tmp_path / "out" / "records.jsonl"
    file.write_text('{"index": 0}\n')
    with pytest.raises(ValueError, match="records.jsonl was not written by this command"):
        probed(tmp_path)
    assert file.read_text() == '{"index": 0}\n'


def test_two_probes_do_not_write_into_one_folder(stand_in, tmp_path):
    class Second(StandIn):
        def sample(self, conversations, on_progress, seed):
            stand_in.use(StandIn())
            with pytest.raises(ValueError, match="another command is writing to it"):
                probed(tmp_path)
            return super().sample(conversations, on_progress, seed)

    stand_in.use(Second())
    assert probed(tmp_path)["completions"] == 32


@pytest.mark.parametrize(
    "text", ["", "0.1", "0.1-0.9", "0.9..0.1", "0.1..1.5", "-1..1", "a..b", "0.1...0.9", "nan..1"]
)
def test_malformed_ranges(text):
    with pytest.raises(
        ValueError,
        match="keep: must be LOW..HIGH, two pass rates from 0 to 1 such as 0.1..0.9, got",
    ):
        parse_keep(text)


def test_ranges():
    assert parse_keep(".25..1") == (0.25, 1.0)


def test_of_a_range_without_a_row_nothing_is_written_but_the_figures(stand_in, tmp_path):
    summary = probed(tmp_path, keep=(0.6, 0.7))
    assert summary["keep"]["rows"] == 0 and summary == read_json(tmp_path / "out" / "summary.json")
    assert not (tmp_path / "out" / "keep.jsonl").exists()


def test_the_time_left_is_a_bound_until_the_first_completions_have_ended(
    stand_in, tmp_path, monkeypatch
):
    monkeypatch.setattr(sample_dataset, "_SECONDS_BETWEEN_LINES", -1)
    console = Console(file=io.StringIO(), width=80)
    probed(tmp_path, console=console)  # 8 rows, 2 in a chunk
    lines = [line for line in printed(console).splitlines() if line.endswith(" left")]
    words = [re.sub("[0-9]+:[0-9]+", "T", line) for line in lines]
    bounds = [f"{done} of 8 rows, {'at most' if number == 0 else 'about'} T left"
              for number, done in enumerate((1, 2, 3, 4, 5, 6, 7, 8))]  # fmt: skip
    assert words == bounds
    assert re.search(r"\nsampled 32 completions in 0 s, [\d,]+ a second\n", printed(console))


@pytest.mark.parametrize(
    ("right", "words"),
    [
        (
            [0] * 8,
            "GRPO has nothing to learn from here: none of 32 completions is right; use easier rows, "
            r"or train on right answers first \(cold start\).",
        ),
        ([4] * 8, "GRPO has nothing to learn from here: every completion is right"),
        (
            [2] * 8,
            "GRPO has plenty to learn from here: 67% of the groups of 2 have a gradient; pass@4 is 1.00, pass@1 0.50",
        ),
        (
            [1] + [0] * 7,
            "GRPO has little to learn from here: 6% .* most of the others are all wrong",
        ),
        (
            [3] + [4] * 7,
            "GRPO has little to learn from here: 6% .* most of the others are all right",
        ),
        ([2, 2] + [0] * 6, "GRPO has something to learn from here: 17% .* --keep 0.1..0.9"),
    ],
)
def test_the_verdict(stand_in, tmp_path, right, words):
    stand_in.right = right
    summary = probed(tmp_path)
    assert re.match(words, summary["verdict"]), summary["verdict"]
    assert conclusion(summary) == summary["verdict"] and summary["verdict"].count(". ") == 0


@pytest.mark.parametrize("right", [[0] * 8, RIGHT])
def test_completions_that_are_cut_off_ask_for_a_longer_limit(stand_in, tmp_path, right):
    class CutOff(StandIn):
        def completion(self, index, right):
            whole = super().completion(index, right)
            return whole if right else Completion("<think>so", 1024, "length")

    stand_in.use(CutOff(right))
    verdict = probed(tmp_path)["verdict"]
    share = 1 - sum(right) / 32
    assert f"{share:.1%} of the completions were cut off at 1,024 tokens: raise --max_comp" in (
        verdict
    )
    # They need not be too hard.
    assert "easier rows" not in verdict


def test_a_dataset_that_cannot_be_graded(stand_in, tmp_path, monkeypatch):
    monkeypatch.setattr(StandIn, "completion", lambda self, place, right: Completion("", 1, "stop"))
    write_jsonl(tmp_path / "math.jsonl", [{"question": "1 + 1?", "answer": "no number"}])
    settings = SamplingSettings("some/model", 2)
    with pytest.raises(ValueError, match="math.jsonl"):
        probe(settings, f"gsm8k:{tmp_path / 'math.jsonl'}", tmp_path / "out", QUIET, group_size=2)


def command(*arguments):
    return refused(
        "probe", TINY_MODEL, "--dataset", DATASETS / "countdown" / "tiny_test.jsonl", *arguments
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--num_generations", 4],
            "Error: --num_generations: must be at least --group_size, 8, got 4",
        ),
        (["--group_size", 1], "Error: --group_size: must be at least 2, got 1"),
        (["--keep", "0.9..0.1"], "Error: --keep: must be LOW..HIGH"),
        (["--temperature", 0], "Error: --num_generations: must be 1 at temperature 0"),
        (
            ["--server", "127.0.0.1:8000"],
            "Error: --server: must be a URL such as http://127.0.0.1:8000",
        ),
        (
            ["--server", "http://127.0.0.1:9"],
            "Error: --server: http://127.0.0.1:9/v1: no server answers there",
        ),
    ],
)
def test_mistakes(tmp_path, arguments, message):
    assert message in command("--out", tmp_path / "out", *arguments)
    assert not (tmp_path / "out").exists()


def test_mistakes_in_the_files(tmp_path):
    out = ["--out", tmp_path / "out"]
    (tmp_path / "empty.jsonl").write_text("")
    assert "no rows" in refused(
        "probe", TINY_MODEL, "--dataset", f"countdown:{tmp_path / 'empty.jsonl'}", *out
    )
    other = f"countdown:{DATASETS / 'gsm8k' / 'test.jsonl'}"
    message = refused("probe", TINY_MODEL, "--dataset", other, *out)
    assert "column nums, target missing; the dataset has" in message
    data = DATASETS / "countdown" / "tiny_test.jsonl"
    message = refused("probe", tmp_path / "nothing", "--dataset", f"{data}#1", *out)
    assert "MODEL" in message and "cannot be loaded, expected a folder or a hub id" in message
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.jsonl"]


@pytest.mark.slow
def test_the_tiny_model_end_to_end(tmp_path):
    """Through the command: the tables, the files, the rows kept, and the same again without
    sampling.
    """
    out = tmp_path / "hard"
    data = [
        "--dataset",
        f"{DATASETS}/countdown/tiny_train.jsonl#12",
        "--max_completion_length",
        320,
    ]
    arguments = [
        "probe",
        TINY_MODEL,
        *data,
        "--num_generations",
        8,
        "--keep",
        "0.1..0.9",
        "--out",
        out,
    ]
    shown = ran(*arguments, columns=200)
    rows = [row for _, row in read_jsonl(out / "keep.jsonl")]
    source = [row for _, row in read_jsonl(DATASETS / "countdown" / "tiny_train.jsonl")][:12]
    assert rows and all(
        {k: v for k, v in row.items() if k != "pass_rate"} in source for row in rows
    )
    assert all(0.1 <= row["pass_rate"] <= 0.9 for row in rows)
    summary = json.loads((out / "summary.json").read_text())
    assert summary["completions"] == 96 and summary["format"] > 0.9 and 0 < summary["success"] < 1
    assert (
        "sampled 96 completions" in shown
        and "pass@8" in shown
        and "groups of 8 without a gradient" in shown
    )
    assert (
        f"train on it with --dataset countdown:{out}/keep.jsonl" in shown
        and summary["verdict"] in shown
    )
    again = ran(*arguments, columns=200)
    assert "sampled" not in again and summary["verdict"] in again
    none = ran(
        *["0.51..0.52" if word == "0.1..0.9" else word for word in arguments], columns=200, code=2
    )
    assert (
        "pass@8" in none and summary["verdict"] in none
    )  # the figures, though no eighth is in that range
