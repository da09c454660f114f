"""Rows with pictures, before a training: the model must see them, and they must fit."""

import json

import pytest

pytest.importorskip("swift", reason="needs the extra [train]")
from helpers import planned
from pictures import write_dots
from present import present
from small_models import TOKENS_OF_A_PICTURE, save_vision_model
from swift_rlvr.contract.datasets import check_dataset
from swift_rlvr.evaluation.models import load_tokenizer, sees_pictures
from swift_rlvr.launch import parse_arguments
from swift_rlvr.launch.checks import Launch, data, pictures, rows
from swift_rlvr.launch.parse_arguments import Parsed
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.jsonl import write_jsonl

CPU = "scripts/configs/countdown_cpu.yaml"
SEES = "Qwen/Qwen2-VL-2B-Instruct"
READS = "Qwen/Qwen2.5-3B-Instruct"


@pytest.fixture(scope="module")
def seeing(tmp_path_factory):
    return save_vision_model(tmp_path_factory.mktemp("model"))


def results(check, *words, parsed=Parsed()):  # noqa: B008
    plan = planned(CPU, "--reward_funcs", "external_accuracy", *words)
    return [(result.status, result.message) for result in check(Launch(plan, parsed))]


def test_a_model_that_reads_text_alone_is_refused(tmp_path, seeing):
    """ms-swift would drop the pictures without a word, and train on questions about nothing."""
    dataset = f"math:{write_dots(tmp_path / 'data')}"
    ((status, message),) = results(data.pictures, "--dataset", dataset)
    assert status == "failed"
    assert message.startswith("8 of 8 rows have pictures, and ")
    assert message.endswith("reads text alone: it would be trained without them")
    ((status, message),) = results(data.pictures, "--dataset", dataset, "--model", seeing)
    assert (status, "all can be read" in message) == ("passed", True)
    text = tmp_path / "text.jsonl"
    write_jsonl(text, [{"problem": "1 + 1?", "answer": "2"}])
    assert results(data.pictures, "--dataset", f"math:{text}") == []


def test_pictures_that_nobody_opens_are_no_reason_to_be_silent(tmp_path, seeing):
    """At URLs, and in a file that ms-swift reads itself."""
    (tmp_path / "urls").mkdir()
    url = tmp_path / "urls" / "rows.jsonl"
    row = {"image": "https://example.org/a.png", "problem": "How many?", "answer": "1"}
    write_jsonl(url, [row])
    bare = tmp_path / "bare.jsonl"
    messages = [{"role": "user", "content": "<image>How many?"}]
    write_jsonl(bare, [{"messages": messages, "images": ["nowhere.png"]}])
    for dataset in (f"math:{url}", bare):
        words = ("--dataset", dataset, "--model")
        ((status, message),) = results(data.pictures, *words, seeing)
        assert (status, message) == (
            "warning",
            "1 of 1 rows have pictures, those of 1 were not opened",
        )
        assert results(data.pictures, *words, TINY_MODEL)[0][0] == "failed"


def test_models_of_a_hub_are_looked_up_in_ms_swifts_table(tmp_path, monkeypatch):
    dataset = f"math:{write_dots(tmp_path / 'data')}"
    for model, expected in ((SEES, True), (READS, False), ("org/other-7B", None)):
        monkeypatch.setenv(parse_arguments.NAMED_MODEL, model)
        assert parse_arguments.sees_pictures(model) is expected
        words = ("--dataset", dataset, "--model", model)
        found = results(data.pictures, *words, parsed=Parsed(sees_pictures=expected))
        status = {True: "passed", False: "failed", None: "warning"}[expected]
        assert found[0][0] == status


def test_what_a_qwen_needs_is_named(tmp_path, monkeypatch):
    dataset = f"math:{write_dots(tmp_path / 'data')}"
    monkeypatch.setattr(pictures, "find_spec", lambda name: None)
    words = ("--dataset", dataset, "--model", "Qwen/Qwen2.5-VL-3B-Instruct")
    found = results(data.pictures, *words, parsed=Parsed(sees_pictures=True))
    assert found[-1] == (
        "failed",
        "Qwen/Qwen2.5-VL-3B-Instruct needs qwen_vl_utils, which is not installed",
    )


def test_the_tokens_of_pictures_count(tmp_path, seeing):
    """A picture of a phone has more tokens than all the text around it."""
    dataset = f"math:{write_dots(tmp_path / 'data')}"
    words = ("--dataset", dataset, "--model", seeing, "--max_completion_length", "64")
    launch = Launch(planned(CPU, *words))
    asked_rows = rows.asked_rows(launch, load_tokenizer(str(seeing)))
    text = max(present(asked.tokens) for asked in asked_rows)
    longest = f"the longest of 8 prompts has {text + TOKENS_OF_A_PICTURE} tokens"
    found = results(data.prompts, *words, "--max_length", "900")
    assert {status for status, _ in found} == {"passed"}
    assert all(said.startswith(longest) for _, said in found)
    found = results(data.prompts, *words, "--max_length", str(text))
    assert found[-1][0] == "failed"
    assert "8 prompts with pictures are cut, which ends the run" in found[-1][1]
    found = results(data.prompts, *words, "--max_length", "900", "--truncation_strategy", "delete")
    assert {status for status, _ in found} == {"passed"}


def test_more_pictures_than_vllm_takes_in_a_prompt(tmp_path, seeing):
    dataset = f"math:{write_dots(tmp_path / 'data')}"
    words = ("--dataset", dataset, "--model", seeing, "--vllm_limit_mm_per_prompt")
    found = results(data.pictures, *words, '{"image": 0}')
    assert found[-1] == (
        "failed",
        "a row has 1 pictures, and vLLM takes 0 in a prompt: the run would end there",
    )
    assert results(data.pictures, *words, '{"image": 1}')[-1][0] == "passed"


@pytest.mark.parametrize(
    ("config", "sees"),
    [
        ({"architectures": ["Qwen2ForCausalLM"]}, False),
        ({"architectures": ["GPT2LMHeadModel"]}, False),
        ({"architectures": ["Qwen2_5_VLForConditionalGeneration"], "vision_config": {}}, True),
        ({"architectures": ["Qwen2_5OmniModel"], "thinker_config": {}}, True),
        ({"architectures": ["Phi3VForCausalLM"], "img_processor": {}}, True),
        ({"architectures": ["T5ForConditionalGeneration"]}, None),
        ({}, None),
    ],
)
def test_a_config_says_whether_a_model_sees(tmp_path, config, sees):
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert sees_pictures(tmp_path) is sees
    assert sees_pictures(tmp_path / "nowhere") is None


def test_the_check_of_a_dataset_opens_each_picture(tmp_path):
    file = write_dots(tmp_path / "data")
    findings = check_dataset(parse_source(f"math:{file}"))
    assert (findings.with_pictures, findings.bad, findings.duplicates) == (8, 0, 0)
    assert not findings.doubts
    (tmp_path / "data/pictures/2.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    findings = check_dataset(parse_source(f"math:{file}"))
    assert (findings.bad, findings.unusable) == (1, {"unreadable picture": 1})
    line, problem = findings.problems[0]
    assert line == 2 and "column 'image'" in problem and "2.png: cannot be read" in problem
    rows = [{"image": "https://example.org/a.png", "problem": "How many?", "answer": "1"}]
    write_jsonl(file, rows)
    (doubt,) = check_dataset(parse_source(f"math:{file}")).doubts
    assert "1 row: pictures at URLs, which were not opened" in doubt
