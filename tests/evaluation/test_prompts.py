"""`swift-rlvr dataset show` and `prepare`: the prompt that the model sees, to the letter; what is
cut to its length.
"""

import json

import pytest
from datasets import load_dataset

import commands
from paths import DATASETS
from present import present
from swift_rlvr.adapters.verl import compute_score
from swift_rlvr.evaluation.models import load_tokenizer
from swift_rlvr.evaluation.prompts import SystemPrompt, ask, asked_row, system_prompt
from swift_rlvr.tasks import TASKS
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.tasks.task import with_system
from swift_rlvr.utils.files import TINY_MODEL
from swift_rlvr.utils.jsonl import read_jsonl

pytestmark = pytest.mark.slow  # as a whole

pytest.importorskip("transformers", reason="needs the extra [train]")
MODEL = str(TINY_MODEL)
FILES = {
    name: DATASETS / name / "train.jsonl"
    for name in ("countdown", "gsm8k", "numina_math_tir", "bespoke_stratos")
}


def ran(*arguments, **options):
    return commands.ran("dataset", *arguments, **options)


def refused(*arguments):
    return commands.refused("dataset", *arguments)


def raw(name, row=1):
    return [row for _, row in read_jsonl(FILES[name])][row - 1]


@pytest.mark.parametrize("name", FILES)
def test_the_prompt_is_the_chat_template_of_system_and_question(name):
    task, shown = TASKS[name], asked_row(parse_source(str(FILES[name])), MODEL, number=3)
    question = task.preprocess(raw(name, 3))["messages"][-1]["content"]
    turns = [("system", task.system), ("user", question)]
    text = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in turns)
    assert shown.prompt == f"{text}<|im_start|>assistant\n"
    assert shown.tokens == len(load_tokenizer(MODEL)(shown.prompt)["input_ids"])
    assert set(shown.row) == {*task.reward_columns, "messages", "task"}
    assert shown.system_from == ("the task countdown" if name == "countdown" else "the row")


@pytest.mark.parametrize("name", FILES)
def test_it_is_what_ms_swift_gives_to_the_model(name):
    pytest.importorskip("swift", reason="needs the extra [train]")
    from swift.model import get_processor
    from swift.template import get_template

    task = TASKS[name]
    processor = get_processor(MODEL, model_type="qwen2")
    template = get_template(processor, template_type="qwen2_5", default_system=task.system)
    template.set_mode("vllm")
    encoded = template.encode({"messages": task.preprocess(raw(name))["messages"]})
    assert (
        processor.decode(encoded["input_ids"])
        == asked_row(parse_source(str(FILES[name])), MODEL).prompt
    )


def test_on_the_terminal(tmp_path, monkeypatch):
    (tmp_path / "rows.jsonl").write_bytes(FILES["gsm8k"].read_bytes())
    monkeypatch.chdir(tmp_path)  # a short path, for the one line that is as long as the path is
    shown = ran("show", "gsm8k:rows.jsonl", "--model", MODEL, columns=80)
    assert shown.startswith("rows.jsonl, line 1: a prompt of 234 tokens\n")
    for text in ("<|im_start|>system", "the row", "101"):
        assert text in shown
    # "[...": what a package may log when it is loaded here for the first time
    assert [
        line for line in shown.splitlines() if len(line) > 80 and not line.startswith("[")
    ] == []


def test_another_row():
    shown = asked_row(parse_source(str(FILES["gsm8k"])), MODEL, 2)
    assert (shown.line, shown.row["solution"], shown.form) == (2, "140", "tags")
    assert shown.ideal is not None and shown.ideal.startswith("<think>\n")
    assert shown.ideal.endswith("\n</think>\n<answer>\n140\n</answer>")


def test_the_system_prompt_is_for_rows_without_one():
    countdown, gsm8k = (
        asked_row(parse_source(str(FILES[name])), MODEL, 1, "Be brief.")
        for name in ("countdown", "gsm8k")
    )
    assert (
        countdown.prompt.startswith("<|im_start|>system\nBe brief.<|im_end|>")
        and countdown.system_from == "--system"
    )
    assert "Be brief." not in gsm8k.prompt and gsm8k.system_from == "the row"


DAPO = "Compute 3 + 4. The last line should be of the form Answer: $Answer (without quotes)."


@pytest.mark.parametrize("column", ["problem", "prompt", "messages"])
def test_show_prints_what_the_rows_own_instruction_asks_for(tmp_path, column):
    asked = DAPO if column == "problem" else [{"role": "user", "content": DAPO}]
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({column: asked, "answer": "7"}) + "\n")
    shown = ran("show", f"math:{path}", "--model", MODEL, columns=200)
    assert "<answer>" not in shown and "<|im_start|>system" not in shown
    assert "since the row says where its answer stands" in shown
    assert 'The prompt asks for "Answer:". An ideal completion:' in shown
    assert "Answer: 7" in shown
    rewards = [line.split()[:2] for line in shown.splitlines() if line.startswith("external_")]
    assert rewards == [["external_accuracy", "1"], ["external_format", "0"]]


def test_a_template_that_opens_the_thinking_is_gone_on_with():
    tokenizer = load_tokenizer(MODEL)
    tokenizer.chat_template += "{% if add_generation_prompt %}{{ '<think>\\n' }}{% endif %}"
    row = {"problem": "What is 3 + 4?", "answer": "7"}
    asked = ask(TASKS["math"], row, tokenizer=tokenizer)
    assert asked.prompt.endswith("<think>\n") and asked.thinking_opened
    assert asked.ideal == "This takes a few steps.\n</think>\n<answer>7</answer>"
    # As ms-swift hands it to rewards.
    assert asked.graded == f"<think>\n{asked.ideal}"
    assert asked.answering("8") == "<think>\nA guess.\n</think>\n<answer>8</answer>"


def test_a_default_gives_way_to_the_row_and_a_choice_does_not():
    row = {"messages": [{"role": "user", "content": DAPO}], "answer": "7"}
    for text, is_default, roles in (
        (TASKS["math"].system, True, ["user"]),
        ("Be brief.", True, ["system", "user"]),  # says nothing of the answer
        (TASKS["math"].system, False, ["system", "user"]),
    ):
        asked = ask(TASKS["math"], row, system=SystemPrompt(text, "a test", is_default))
        assert [turn["role"] for turn in asked.messages] == roles


def test_a_prompt_cannot_hide_what_it_holds(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(
        json.dumps({"question": "[bold]1\u200b + 1?[/bold]", "answer": "So.\n#### 2"}) + "\n"
    )
    assert "[bold]1\\u200b + 1?[/bold]" in ran("show", path, "--model", MODEL)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([FILES["gsm8k"], "--model", MODEL, "--row", 99], "train.jsonl has no row 99"),
        ([f"gsm8k:{FILES['countdown']}", "--model", MODEL], "column question, answer missing"),
        (
            [f"{FILES['bespoke_stratos']}", "--model", MODEL, "--row", 23],
            "line 23: column 'conversations': expected",
        ),
        (
            [FILES["gsm8k"], "--model", "no/such/model/here"],
            "--model: no/such/model/here: cannot be loaded",
        ),
    ],
)
def test_mistakes(monkeypatch, arguments, message):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert message in refused("show", *arguments)


# prepare


def test_prepare_keeps_the_first_rows_that_are_short_enough(tmp_path):
    tokenizer, task = load_tokenizer(MODEL), TASKS["gsm8k"]
    rows = [row for _, row in read_jsonl(FILES["gsm8k"])]
    prompts = [
        present(asked_row(parse_source(str(FILES["gsm8k"])), MODEL, number).tokens)
        for number in range(1, len(rows) + 1)
    ]
    answers = [len(tokenizer(present(task.gold(row)).text)["input_ids"]) for row in rows]
    most, longest = sorted(prompts)[20], sorted(answers)[20]
    fitting = [
        row for row, p, a in zip(rows, prompts, answers, strict=True) if p <= most and a <= longest
    ]
    assert 5 < len(fitting) < 25
    out = tmp_path / "kept.jsonl"
    limits = ["--max_prompt_tokens", most, "--max_answer_tokens", longest]
    long = sum(prompt > most for prompt in prompts)
    shown = ran("prepare", FILES["gsm8k"], "--model", MODEL, *limits, "--out", out)
    assert [row for _, row in read_jsonl(out)] == fitting
    assert f"Kept {len(fitting)} of the {len(rows)} rows read (" in shown
    assert (
        f"prompt too long: {long}" in shown
        and f"answer too long: {len(rows) - len(fitting) - long}" in shown
    )
    shown = ran(
        "prepare",
        f"gsm8k:{FILES['gsm8k']}",
        "--model",
        MODEL,
        *limits,
        "--rows",
        5,
        "--out",
        tmp_path / "5.jsonl",
    )
    assert [row for _, row in read_jsonl(tmp_path / "5.jsonl")] == fitting[:5]
    assert f"train on it with --dataset gsm8k:{tmp_path / '5.jsonl'}" in shown
    words = ("prepare", out, "--model", MODEL, "--rows", 99, "--out")
    assert "You asked for 99 rows; the dataset has no more." in ran(*words, tmp_path / "99.jsonl")
    assert f"--out: {out} already exists and is not overwritten" in refused(*words, out)


@pytest.mark.parametrize("format", ["verl", "skyrl", "openrlhf", "slime", "nemo"])
def test_prepare_writes_the_rows_of_other_trainers(tmp_path, format):
    """Three rows with the system prompt, read as the trainers read them: datasets' loaders."""
    suffix = "parquet" if format in ("verl", "skyrl") else "jsonl"
    out = tmp_path / f"rows.{suffix}"
    words = ("prepare", FILES["gsm8k"], "--model", MODEL, "--rows", 3, "--format", format)
    assert f"in the format of {format}" in ran(*words, "--out", out)
    loader = "parquet" if suffix == "parquet" else "json"
    table = load_dataset(
        loader, data_files=str(out), split="train", cache_dir=str(tmp_path / "cache")
    )
    assert len(table) == 3
    first = table[0]
    if format == "verl":
        assert set(first) == {"data_source", "prompt", "ability", "reward_model", "extra_info"}
        assert first["reward_model"]["style"] == "rule" and first["extra_info"] == {"index": 0}
        score = compute_score(
            first["data_source"], "<answer>1</answer>", first["reward_model"]["ground_truth"]
        )
        assert score["accuracy_reason"] == "wrong answer"
    prompt = first["responses_create_params"]["input"] if format == "nemo" else first["prompt"]
    assert [turn["role"] for turn in prompt] == ["system", "user"]
    other = "jsonl" if suffix == "parquet" else "parquet"
    assert f"must end in .{suffix}" in refused(*words, "--out", tmp_path / f"x.{other}")


def test_prepare_names_the_forms_that_there_are(tmp_path):
    words = ("prepare", FILES["gsm8k"], "--model", MODEL, "--out", tmp_path / "x.jsonl")
    assert "--format: must be one of verl, skyrl" in refused(*words, "--format", "rllm")


def test_prepare_counts_rows_that_cannot_be_used(tmp_path):
    shown = ran(
        "prepare", FILES["bespoke_stratos"], "--model", MODEL, "--out", tmp_path / "kept.jsonl"
    )
    assert "Kept 22 of the 24 rows read (cannot be used, no box: 2)" in shown


def test_prepare_leaves_no_file_where_no_row_is_left(tmp_path):
    out = tmp_path / "kept.jsonl"
    message = refused(
        "prepare", FILES["gsm8k"], "--model", MODEL, "--max_prompt_tokens", 3, "--out", out
    )
    assert "is left (prompt too long: 28)" in message and not out.exists()
    message = refused("prepare", FILES["gsm8k"], "--model", MODEL, "--out", tmp_path / "kept.csv")
    assert "--out: must end in .jsonl" in message


# the system prompt


def test_the_rows_own_system_prompt_is_kept_unless_overridden():
    messages = [{"role": "system", "content": "own"}, {"role": "user", "content": "?"}]
    assert with_system(messages, "other") == messages
    assert with_system(messages, "other", override=True)[0] == {
        "role": "system",
        "content": "other",
    }
    assert with_system(messages, "", override=True) == messages[1:]
    assert with_system(messages[1:], None) == messages[1:]


def test_the_system_prompt_is_that_of_the_training(tmp_path):
    checkpoint = tmp_path / "run" / "checkpoint-2"
    checkpoint.mkdir(parents=True)
    countdown, numina = TASKS["countdown"], TASKS["numina_math_tir"]
    assert system_prompt(str(checkpoint), countdown)[0] == countdown.system
    above, beside = checkpoint.parent / "args.json", checkpoint / "args.json"
    cases = [
        ({"system": "Think.", "dataset": "countdown"}, "Think."),
        (
            {"system": None, "dataset": ["countdown:tasks.jsonl#9"]},
            None,
        ),  # the template's own default
        # Rows that bring their system prompt: ms-swift notes none.
        ({"system": None, "dataset": ["AI-MO/NuminaMath-TIR#100"]}, numina.system),
        ({"system": None, "dataset": "gsm8k:train.jsonl"}, TASKS["gsm8k"].system),
        ({"system": None, "dataset": ["gsm8k", "countdown"]}, None),
        ({}, None),
    ]
    for noted, expected in cases:
        above.write_text(json.dumps(noted))
        assert system_prompt(str(checkpoint), countdown) == system_prompt(
            str(checkpoint), TASKS["gsm8k"]
        )
        assert system_prompt(str(checkpoint), countdown)[0] == expected, noted
    beside.write_text(json.dumps({"system": "Nearer."}))
    assert system_prompt(str(checkpoint), countdown)[:2] == ("Nearer.", str(beside))


def test_after_supervised_training_the_system_prompt_is_the_tasks(tmp_path):
    """`dataset make sft` writes it into the rows, and ms-swift's args.json says none; --system
    stays what was given.
    """
    for args, expected in (
        ({"system": None}, TASKS["gsm8k"].system),
        ({"system": "Mine."}, "Mine."),
    ):
        (tmp_path / "args.json").write_text(
            json.dumps({"task_type": "causal_lm", "dataset": ["rows.jsonl"], **args})
        )
        assert system_prompt(str(tmp_path), TASKS["gsm8k"])[0] == expected
