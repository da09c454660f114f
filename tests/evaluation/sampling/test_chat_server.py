"""Sampling from a server with OpenAI's API: what is asked for and understood, and what `evaluate`
and `probe` make of it without any model on this machine.

The server is tests/chat_server.py; vLLM's own is in tests/e2e/test_probe.py.
"""

import json
import subprocess
import sys

import pytest
from rich.console import Console

from chat_server import KEY, running
from commands import ran, refused
from paths import DATASETS
from present import present
from swift_rlvr.evaluation.evaluate import evaluate
from swift_rlvr.evaluation.sampling import Completion, SamplingSettings, open_engine
from swift_rlvr.runs.folder import RECORDS
from swift_rlvr.runs.records import read_records
from swift_rlvr.tasks import TASKS as BY_NAME
from swift_rlvr.tasks.countdown import gold as countdown_gold
from swift_rlvr.tasks.countdown import read_prompt
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.jsonl import read_json, read_jsonl

TASKS = f"{DATASETS}/countdown/tiny_test.jsonl#6"


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    # A proxy does not reach this machine's own addresses.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setattr("swift_rlvr.evaluation.sampling.server.WAITS", (0, 0))
    with running() as made:
        yield made


def asked(server, n=1, model="tiny", url=None, **options):
    """The completions of two conversations."""
    conversations = [[{"role": "user", "content": f"say {word}"}] for word in ("one", "two")]
    settings = SamplingSettings(model, n, server=url or server.url, **options)
    with open_engine(settings, conversations) as engine:
        return engine.sample(conversations)


def test_each_completion_is_a_request_of_its_own(server):
    groups = asked(server, 3, temperature=0.7, max_completion_length=40, batch_size=4)
    assert groups == [[Completion("one", 2, "stop")] * 3, [Completion("two", 2, "stop")] * 3]
    assert len(server.asked) == 6
    message = {"role": "user", "content": "say one"}
    # Nothing that a provider could refuse.
    assert server.asked[0] == {
        "model": "tiny",
        "messages": [message],
        "temperature": 0.7,
        "max_tokens": 40,
    }


@pytest.mark.parametrize("path", ["/v1", "/v1/", "/"])
def test_the_url_may_end_in_v1(server, path):
    assert asked(server, url=server.url + path)[0] == [Completion("one", 2, "stop")]


def test_a_server_of_vllm_gets_all_settings(server):
    """Else it takes those that the model's authors recommend, and success would be another."""
    server.models = [{"id": "tiny", "owned_by": "vllm", "max_model_len": 640}]
    asked(server, max_completion_length=600)
    options = {"top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0}
    assert server.asked[0].items() >= options.items()
    message = "max_completion_length: must be less than 640, the context of the server"
    with pytest.raises(InputError, match=message):
        asked(server, max_completion_length=640)


def test_a_server_that_knows_only_the_newer_name_of_the_limit(server):
    server.refused_parameter = "max_tokens"
    assert asked(server, batch_size=1) == [
        [Completion("one", 2, "stop")],
        [Completion("two", 2, "stop")],
    ]
    assert server.asked[-1]["max_completion_tokens"] == 1024


def test_the_name_of_the_limit_is_changed_once_also_at_the_last_try(server):
    change = (400, "Use 'max_completion_tokens' instead.")
    server.refusals = [(429, "slow down"), (429, "slow down"), change]
    assert asked(server, batch_size=1)[0] == [Completion("one", 2, "stop")]
    server.refusals = [change] + [(400, "max_completion_tokens is too large: 200000.")] * 9
    with pytest.raises(InputError, match="status 400: .*max_completion_tokens is too large"):
        asked(server, batch_size=1)


def test_a_busy_server_is_asked_again(server):
    server.refusals = [(429, "slow down"), (503, "overloaded")]
    assert asked(server, batch_size=1)[0] == [Completion("one", 2, "stop")]
    server.refusals = [(429, "slow down")] * 9
    with pytest.raises(InputError, match="refuses /chat/completions with status 429"):
        asked(server, batch_size=1)


def test_mistakes(server, monkeypatch):
    with pytest.raises(InputError, match="model: http://.* has no gpt-4o; it has tiny"):
        asked(server, model="gpt-4o")
    server.refusals = [(400, "This model's maximum context length is 640 tokens.")]
    with pytest.raises(InputError, match="with status 400: .*maximum context length is 640"):
        asked(server, batch_size=1)
    server.write = lambda body: {"choices": []}
    with pytest.raises(InputError, match="this is not a chat completion of OpenAI's API"):
        asked(server)
    monkeypatch.setenv("OPENAI_API_KEY", "another")
    with pytest.raises(InputError, match="status 401: .*the key for it is read from .*OPENAI_API"):
        asked(server)
    server.models = None
    with pytest.raises(InputError, match="refuses /health/ with status 404"):
        asked(server)


def test_a_provider_that_lists_no_models(server):
    server.models = None
    assert asked(server, url=f"{server.url}/v1")[0] == [Completion("one", 2, "stop")]


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": "7", "reasoning_content": "3 + 4"}, "<think>\n3 + 4\n</think>\n7"),
        ({"content": "3 + 4\n</think>\n7"}, "<think>\n3 + 4\n</think>\n7"),
        ({"content": "<think>3 + 4</think>7"}, "<think>3 + 4</think>7"),
        ({"content": None}, ""),
    ],
)
def test_the_thinking(server, message, text):
    """Whether the server splits it off, or its template has opened it."""
    server.write = lambda body: server.choice(message, tokens=5)
    assert asked(server)[0][0].text == text


def test_a_thinking_that_is_cut_off_where_the_template_opens_it(server):
    texts = iter(["3 + 4\n</think>\n7", "So 3 + 4 is \\boxed{7}, and"])
    server.write = lambda body: server.choice({"content": next(texts)}, tokens=5)
    closed, cut = asked(server, batch_size=1)
    assert closed[0].text == "<think>\n3 + 4\n</think>\n7"
    assert cut[0].text == "<think>\nSo 3 + 4 is \\boxed{7}, and"


def right(server, tokens=30, finish="stop"):
    """Answers that are right."""

    def write(body):
        nums, target = present(read_prompt(body["messages"][-1]["content"]))
        answer = present(countdown_gold({"nums": nums, "target": target})).answer
        text = f"<think>I search.</think>\n<answer>{answer}</answer>"
        return server.choice({"content": text}, tokens, finish)

    return write


def test_evaluate_needs_no_model_here(server, tmp_path):
    server.write = right(server)
    flags = ["--server", server.url, "--model", "tiny", "--dataset", TASKS]
    output = ran("evaluate", *flags, "--out", tmp_path / "eval")
    assert "\nsampled 6 completions" in output and "\ntiny\n" in output
    summary = read_json(tmp_path / "eval" / "summary.json")
    assert (summary["success"], summary["format"], summary["mean_tokens"]) == (1.0, 1.0, 30)
    assert summary["settings"]["server"] == server.url and KEY not in json.dumps(summary)
    assert summary["settings"]["served_model"] is None
    # The prompt is the training's.
    assert [turn["role"] for turn in server.asked[0]["messages"]] == ["system", "user"]


def test_probe_through_a_server(server, tmp_path):
    server.write = right(server, tokens=None)
    flags = ["--server", server.url, "--dataset", TASKS, "--num_generations", 8]
    output = ran("probe", "tiny", *flags, "--out", tmp_path / "probe")
    assert "every completion is right; use harder rows." in output
    # What the server does not say is unknown, and not 0.
    assert "mean length in tokens" not in output
    records = [row for _, row in read_jsonl(tmp_path / "probe" / "records.jsonl")]
    assert len(records) == 48 and "tokens" not in records[0]


def test_a_context_of_the_server_that_is_too_short_is_not_our_limit(server, tmp_path):
    server.write = lambda body: server.choice({"content": "<think>hm"}, 90, "length")
    flags = ["--server", server.url, "--dataset", TASKS, "--max_completion_length", 400]
    output = ran("probe", "tiny", *flags, "--out", tmp_path / "probe", columns=400)
    assert "The server's own context ended 100.0% of the completions before 400 tokens" in output
    assert "--vllm_max_model_len" in output and "raise --max_completion_length" not in output
    output = ran("evaluate", "tiny", *flags, "--out", tmp_path / "eval", columns=400)
    assert "note: the server's own context ended 100.0% of the completions" in output
    # At our own limit it is ours.
    server.write = lambda body: server.choice({"content": "<think>hm"}, 400, "length")
    output = ran("probe", "tiny", *flags, "--out", tmp_path / "ours", columns=400)
    assert "100.0% of the completions were cut off at 400 tokens: raise" in output


def test_another_model_is_recorded_as_what_it_is(server, tmp_path):
    server.write, server.served = right(server), "tiny-2026-11-01"
    flags = ["--server", server.url, "--dataset", TASKS, "--out", tmp_path / "eval"]
    output = ran("evaluate", "tiny", *flags, columns=200)
    assert "note: the server answers with the model tiny-2026-11-01, and the results are" in output
    assert "\ntiny-2026-11-01\n" in output
    settings = read_json(tmp_path / "eval" / "summary.json")["settings"]
    assert (settings["model"], settings["served_model"]) == ("tiny", "tiny-2026-11-01")
    # An interrupted evaluation does not go on with a third one.
    records = (tmp_path / "eval" / "records.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "eval" / "records.jsonl").write_text("".join(records[:3]))
    server.served = "tiny-2026-12-01"
    sampling = {"model": "tiny", "server": server.url}
    message = "answers with the model tiny-2026-12-01, and earlier samples are of tiny-2026-11-01"
    with pytest.raises(InputError, match=message):
        evaluate(SamplingSettings(**sampling), TASKS, tmp_path / "eval", Console(quiet=True))


def test_the_model_is_named_once(server, tmp_path):
    flags = ["--server", server.url, "--dataset", TASKS, "--out", tmp_path / "eval"]
    assert "MODEL: give a folder, a hub id or, with --server" in refused("evaluate", *flags)
    message = refused("evaluate", "tiny", "--model", "large", *flags)
    assert "--model: MODEL is tiny already, got large" in message


def test_a_laptop_needs_no_package_of_a_trainer(server, tmp_path):
    missing = ("torch", "transformers", "vllm", "swift", "datasets", "trl", "peft", "modelscope")
    hidden = f"import sys; sys.modules.update(dict.fromkeys({missing}))"
    code = f"{hidden}; from swift_rlvr.cli import main; main()"
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps({"question": "say 7", "answer": "7"}) + "\n")
    out = str(tmp_path / "eval")
    flags = ["--server", server.url, "--model", "tiny", "--dataset", f"math:{rows}", "--out", out]
    command = [sys.executable, "-c", code, "evaluate", *flags]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert read_json(tmp_path / "eval" / "summary.json")["tasks"] == 1


def test_tools_go_with_the_request_and_calls_come_back_in_the_text(server, monkeypatch, tmp_path):
    monkeypatch.setenv("SWIFT_RLVR_NATIVE_TOOLS", "true")
    function = {"name": "get_weather", "arguments": '{"city": "Bonn", "days": 3}'}
    call = {"id": "1", "type": "function", "function": function}
    message = {"content": None, "reasoning_content": "Bonn.", "tool_calls": [call]}
    server.write = lambda body: server.choice(message, tokens=9, finish="tool_calls")
    (row,) = BY_NAME["tool_calls"].examples[:1]
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps(row) + "\n")

    settings = SamplingSettings("tiny", server=server.url)
    evaluate(settings, f"tool_calls:{rows}", str(tmp_path / "out"), Console(quiet=True))

    (body,) = server.asked
    assert body["messages"] == [{"role": "user", "content": row["problem"]}]
    assert [tool["function"]["name"] for tool in body["tools"]] == ["get_weather"]
    (record,) = read_records(tmp_path / "out" / RECORDS)
    assert record.rewards["external_tool_call"] == 1.0
    assert record.completion.startswith("<think>\nBonn.\n</think>\n<tool_call>\n")
