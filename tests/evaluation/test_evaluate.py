"""Evaluation with a real, small, untrained model: sampling, grading, the files, and the errors in
what a user gives.
"""

import io
import json
import re
import shutil
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from commands import ran
from helpers import printed
from paths import DATASETS
from swift_rlvr.evaluation import sample_dataset
from swift_rlvr.evaluation.evaluate import evaluate
from swift_rlvr.evaluation.grade_samples import grade_samples
from swift_rlvr.evaluation.sample_dataset import SampledDataset
from swift_rlvr.evaluation.sampling import Completion, SamplingSettings
from swift_rlvr.runs.records import read_records
from swift_rlvr.tasks import TASKS
from swift_rlvr.tasks.sources import Source
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.jsonl import read_jsonl, write_jsonl

pytestmark = pytest.mark.slow  # as a whole

TASK = TASKS["countdown"]
QUIET = Console(quiet=True)
FORMAT = re.compile(
    r"^<think>.*?</think>\s*<answer>.*?</answer>(?![\s\S])", re.DOTALL | re.MULTILINE
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A Qwen2 with random weights and a tokenizer of single characters; one token in 100 ends a
    completion.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import (
        GenerationConfig,
        PreTrainedTokenizerFast,
        Qwen2Config,
        Qwen2ForCausalLM,
    )

    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("model")
    characters = [chr(code) for code in range(32, 127)] + ["\n"]
    vocabulary = {token: i for i, token in enumerate(["<pad>", "<end>", "<unk>", *characters])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    tokenizer.decoder = decoders.Fuse()
    template = (
        "{% for m in messages %}{{ m['role'] + ':' + m['content'] + '\n' }}{% endfor %}assistant:"
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<end>",
        unk_token="<unk>",
        chat_template=template,
    ).save_pretrained(folder)
    torch.manual_seed(0)
    small = {
        "hidden_size": 32,
        "intermediate_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
    }
    config = Qwen2Config(
        vocab_size=len(vocabulary),
        num_key_value_heads=1,
        eos_token_id=1,
        max_position_embeddings=1024,
        **small,
    )
    untrained = Qwen2ForCausalLM(config)
    # What published models bring along, and what would make sampling greedy if it were used.
    untrained.generation_config = GenerationConfig(
        do_sample=True, top_k=1, top_p=0.5, repetition_penalty=1.2, eos_token_id=1
    )
    untrained.save_pretrained(folder)
    return str(folder)


def conversation(text):
    return [{"role": "user", "content": text}]


def test_evaluation_writes_records_and_summary(model, tmp_path):
    data = tmp_path / "test.jsonl"
    data.write_text('{"nums": [1, 2], "target": 3}\n\n{"nums": "[4, 4, 9]", "target": 25.0}\n')
    sampling = SamplingSettings(model, num_generations=2, max_completion_length=8)
    summary = evaluate(sampling, str(data), tmp_path / "out", QUIET, system="think")
    records = list(read_records(tmp_path / "out" / "records.jsonl"))
    assert [(r.index, r.sample, r.row["nums"], r.row["target"]) for r in records] == [
        (0, 0, [1, 2], 3),
        (0, 1, [1, 2], 3),
        (1, 0, [4, 4, 9], 25),
        (1, 1, [4, 4, 9], 25),
    ]
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == summary
    # The same once more samples nothing, and says so; a file is refused before the model is loaded.
    console = Console(file=io.StringIO(), width=400)
    assert evaluate(sampling, str(data), tmp_path / "out", console, system="think") == summary
    records_file = tmp_path / "out" / "records.jsonl"
    assert f"nothing is left to sample: all 2 rows are in {records_file}" in printed(console)
    with pytest.raises(InputError, match="out: expected a folder, and .* is a file"):
        evaluate(sampling, str(data), records_file, QUIET, system="think")
    assert (
        summary["settings"]["engine"] == "transformers" and summary["settings"]["system"] == "think"
    )
    assert (summary["tasks"], summary["completions"], summary["success"]) == (2, 4, 0.0)


def test_500_tasks_of_a_hubs_dataset_unless_a_number_is_asked_for(monkeypatch):
    limits = []

    def rows(self, renamed=None):
        limits.append(self.limit)
        yield 1, {"question": "1 + 1?", "answer": "#### 2"}

    monkeypatch.setattr(Source, "rows", rows)
    for dataset in ("gsm8k:test", "gsm8k:test#9", str(DATASETS / "gsm8k" / "test.jsonl")):
        SampledDataset.read(dataset, "some/model")
    assert limits == [500, 9, None]


def test_records_keep_what_the_verifier_may_read_and_the_task_does_not_always_have():
    """Graded again from the record, a completion gets the same verdict."""
    task = TASKS["math"]
    raw = {"problem": "1 + 1?", "answer": "A", "options": ["2", "3"]}
    rows = [task.preprocess(raw), task.preprocess({"problem": "1 + 1?", "answer": "2"})]
    completions = [[Completion("<answer>2</answer>", 3, "stop")]] * 2
    first, second = grade_samples(task, rows, [row["messages"] for row in rows], completions)
    assert first.row == {"solution": "A", "options": ["2", "3"], "task": "math"}
    assert second.row == {"solution": "2", "task": "math"}
    assert first.rewards["external_accuracy"] == second.rewards["external_accuracy"] == 1.0


def test_grade_samples():
    rows = [{"nums": [1, 2], "target": 3}]
    right = Completion("<think>1 + 2 = 3</think> <answer>1 + 2</answer>", 9, "stop")
    cut = Completion("<think>1 + 1", 4, "length")
    first, second = grade_samples(TASK, rows, [conversation("?")], [[right, cut]])
    assert (first.success, first.strict, first.format) == (True, True, True)
    assert (first.reasons["external_countdown"], first.tokens) == ("correct", 9)
    assert (second.success, second.strict, second.format) == (False, False, False)
    assert second.reasons["external_countdown"] == "no answer"
    assert second.finish == "length" and second.messages == conversation("?")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_generations": 0}, "num_generations: must be at least 1, got 0"),
        ({"temperature": -1.0}, "temperature: must be at least 0, got -1.0"),
        ({"temperature": 0.0, "num_generations": 2}, "num_generations: must be 1 at temperature 0"),
        ({"engine": "tgi"}, "engine: must be one of auto, transformers, vllm, got 'tgi'"),
    ],
)
def test_bad_settings_name_the_field_and_the_range(change, message):
    with pytest.raises(InputError, match=message):
        SamplingSettings("model", **change)


def test_rows_that_cannot_be_used_are_left_out_and_named_as_in_training():
    rows = SampledDataset.read(str(DATASETS / "gsm8k" / "train.jsonl"), "m")
    assert len(rows.rows) == 28 and rows.notes == []

    rows = SampledDataset.read(str(DATASETS / "bespoke_stratos" / "train.jsonl"), "m")
    (note,) = rows.notes
    assert "2 of 24 rows cannot be used" in note and "line 23: column 'conversations'" in note
    assert [row.line for row in rows.rows] == list(range(1, 23))


def test_the_files_of_a_folder_and_columns_that_no_row_has_are_named(tmp_path):
    for split in ("train", "test"):
        write_jsonl(tmp_path / f"{split}.jsonl", [{"zahlen": [1, 2], "target": 3}])
    columns = '{"zahlen": "nums", "Ziel": "target"}'
    rows = SampledDataset.read(f"countdown:{tmp_path}", "m", columns=columns)
    assert rows.notes == [
        f"read of {tmp_path}: train.jsonl",
        "no row has the column 'Ziel', which --columns renames",
    ]


def test_too_many_rows_that_cannot_be_used_end_an_evaluation(tmp_path):
    good, bad = {"nums": [1, 2], "target": 3}, {"nums": [1, None], "target": 3}
    file = tmp_path / "rows.jsonl"
    write_jsonl(file, [good] * 9 + [bad] * 11)
    with pytest.raises(InputError, match="(?s)line 10: column 'nums'.*SWIFT_RLVR_MAX_UNUSABLE"):
        SampledDataset.read(f"countdown:{file}", "m")


def test_a_tiny_evaluation_of_gsm8k_end_to_end(model, tmp_path):
    data = ["--dataset", f"gsm8k:{DATASETS / 'gsm8k' / 'train.jsonl'}#2"]
    ran(
        "evaluate",
        model,
        *data,
        "--max_completion_length",
        8,
        "--engine",
        "transformers",
        "--out",
        tmp_path,
    )
    records = list(read_records(tmp_path / "records.jsonl"))
    assert [record.row["solution"] for record in records] == ["101", "140"]
    assert all(record.success is False and record.reason for record in records)


@pytest.fixture
def countdown(tmp_path):
    path = tmp_path / "test.jsonl"
    path.write_text(
        '{"nums": [1, 2], "target": 3}\n{"nums": [4, 4, 9], "target": 25}\n{"nums": [5, 3], "target": 2}\n'
    )
    return str(path)


def texts(folder, **columns):
    rows = [row for _, row in read_jsonl(folder / "records.jsonl")]
    return [
        row["completion"]
        for row in rows
        if all(row[name] == value for name, value in columns.items())
    ]


def test_several_seeds_are_the_evaluations_with_each(model, countdown, tmp_path):
    settings = SamplingSettings(model, num_generations=2, max_completion_length=8)
    summary = evaluate(settings, countdown, tmp_path / "both", QUIET, seeds=[4, 7])
    records = [row for _, row in read_jsonl(tmp_path / "both" / "records.jsonl")]
    places = [(row["index"], row["sample"], row["seed"]) for row in records]
    assert places == [
        (index, sample, 4 if sample < 2 else 7) for index in range(3) for sample in range(4)
    ]
    for seed in (4, 7):
        evaluate(replace(settings, seed=seed), countdown, tmp_path / str(seed), QUIET)
        assert texts(tmp_path / "both", seed=seed) == texts(tmp_path / str(seed))
    assert texts(tmp_path / "4") != texts(tmp_path / "7")
    assert summary["settings"]["seeds"] == [4, 7] and list(summary["pass_at_k"]) == ["1", "2", "4"]
    assert (summary["seeds"], summary["seed_spread"]) == ({"4": 0.0, "7": 0.0}, 0.0)


def test_greedy_stands_beside_sampled(model, countdown, tmp_path):
    out, alone = tmp_path / "out", tmp_path / "alone"
    flags = [
        "--dataset",
        countdown,
        "--max_completion_length",
        8,
        "--engine",
        "transformers",
        "--num_generations",
        2,
    ]
    shown = ran("evaluate", model, *flags, "--greedy", "--seeds", "0,1", "--out", out, columns=200)
    assert re.search(r"measure +sampled +greedy\n", shown) and re.search(
        r"pass@2 +0\.000 .* +-\n", shown
    )
    assert (
        re.search(r"success with seed 1 +0\.000 +-\n", shown)
        and "standard deviation over seeds" in shown
    )
    ran("evaluate", model, *flags[:-2], "--temperature", 0, "--out", alone)
    assert texts(out / "greedy") == texts(alone) and len(texts(alone)) == 3
    summary = json.loads((out / "summary.json").read_text())
    assert summary["greedy"] == json.loads((out / "greedy" / "summary.json").read_text())
    assert (summary["greedy"]["settings"]["temperature"], summary["settings"]["temperature"]) == (
        0,
        1.0,
    )
    compared = ran("compare", out, out / "greedy", columns=400)
    assert (
        "on 3 tasks: 0 better, 0 worse" in compared
        and "temperature differs: 1.0 before, 0 after" in compared
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": [1, 1]}, "seeds: must be different seeds, got 1,1"),
        (
            {"seeds": [0, 1], "temperature": 0},
            "temperature: must be above 0 with --greedy or --seeds",
        ),
        (
            {"greedy": True, "temperature": 0},
            "temperature: must be above 0 with --greedy or --seeds",
        ),
    ],
)
def test_options_that_do_not_go_together(model, countdown, tmp_path, options, message):
    settings = SamplingSettings(model, temperature=options.pop("temperature", 1.0))
    with pytest.raises(InputError, match=message):
        evaluate(settings, countdown, tmp_path / "out", QUIET, **options)


def test_an_interrupted_evaluation_goes_on_and_comes_to_the_same(
    model, countdown, tmp_path, monkeypatch
):
    """With several seeds and greedy completions; other settings do not go into the same folder."""
    sampling = SamplingSettings(model, num_generations=2, max_completion_length=4, batch_size=2)
    options: dict[str, Any] = {"seeds": [0, 7], "greedy": True}
    whole = evaluate(sampling, countdown, tmp_path / "whole", QUIET, **options)
    grade = sample_dataset.grade_samples
    for stopped, folder in ((1, "first"), (4, "greedy")):
        out, chunks = tmp_path / folder, iter(range(99))

        def interrupted(*arguments, chunks=chunks, stopped=stopped, **options):
            if next(chunks) == stopped:
                raise KeyboardInterrupt
            return grade(*arguments, **options)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(sample_dataset, "grade_samples", interrupted)
            evaluate(sampling, countdown, out, QUIET, **options)
        assert evaluate(sampling, countdown, out, QUIET, **options) == whole
        for name in ("records.jsonl", "greedy/records.jsonl"):
            assert (out / name).read_text() == (tmp_path / "whole" / name).read_text()
    with pytest.raises(
        InputError, match="samples with other settings: temperature was 1.0 and is 0.5"
    ):
        evaluate(
            replace(sampling, temperature=0.5), countdown, tmp_path / "whole", QUIET, **options
        )


def test_a_template_that_opens_the_thinking(tmp_path):
    """As R1's distills have it: the completions begin inside the thinking, and their format is as
    good as without.
    """
    folder = tmp_path / "opening"
    shutil.copytree(TINY_MODEL, folder)
    template = folder / "chat_template.jinja"
    opened = template.read_text().replace("assistant\n", "assistant\n<think>")
    assert opened != template.read_text()
    template.write_text(opened)
    dataset = f"{DATASETS}/countdown/tiny_test.jsonl#20"

    summaries = []
    for model in (TINY_MODEL, folder):
        settings = SamplingSettings(str(model), temperature=0, max_completion_length=200)
        out = tmp_path / f"of_{model.name}"
        summaries.append(evaluate(settings, dataset, out, QUIET))
        assert all(
            record.completion.startswith("<think>")
            for record in read_records(out / "records.jsonl")
        )
    plain, opening = summaries
    assert plain["format"] == opening["format"] > 0.8
    assert plain["success"] == opening["success"]
