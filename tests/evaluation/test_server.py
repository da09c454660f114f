"""Sampling from a rollout server: what is asked for and understood, against a server that answers as ms-swift's does.

The real one is in tests/e2e/test_probe.py.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from rich.console import Console
from swift_rlvr.data.grading import Completion
from swift_rlvr.errors import InputError
from swift_rlvr.evaluation.sampling import SamplingSettings, sample
from swift_rlvr.evaluation.server import ask, check_server

QUIET = Console(quiet=True)


@pytest.fixture
def server():
    """Answers every prompt with its last word and the number of the request; `status` and `answer` can be changed."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.reply(200 if self.path == "/health/" else 404, {"status": "ok"})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            made.asked.append((self.path, body))
            texts = [each["messages"][-1]["content"].split()[-1] for each in body["infer_requests"]]
            answers = [
                {"response": {"choices": [{"message": {"content": t}, "token_ids": [5, 6], "finish_reason": "stop"}]}}
                for t in texts
            ]
            self.reply(made.status, answers if made.answer is None else made.answer)

        def reply(self, status, value):
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())

        def log_message(self, *args):
            pass

    made = HTTPServer(("127.0.0.1", 0), Handler)
    made.asked, made.status, made.answer = [], 200, None
    made.url = f"http://127.0.0.1:{made.server_port}"
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def conversation(text):
    return [{"role": "system", "content": "Think."}, {"role": "user", "content": text}]


def test_each_sample_is_a_request_of_its_own_in_batches(server, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # which does not reach this machine's own addresses
    settings = SamplingSettings("m", 3, 0.7, 40, batch_size=4, server=server.url)
    groups = sample(settings, [conversation("say one"), conversation("say two")], QUIET)
    assert groups == [[Completion("one", 2, "stop")] * 3, [Completion("two", 2, "stop")] * 3]
    assert [path for path, _ in server.asked] == ["/infer/"] * 2
    assert [len(body["infer_requests"]) for _, body in server.asked] == [4, 2]
    config = server.asked[0][1]["request_config"]
    assert (config["max_tokens"], config["temperature"], config["top_p"], config["top_k"]) == (40, 0.7, 1.0, -1)
    assert server.asked[0][1]["infer_requests"][0] == {"messages": conversation("say one")}


def test_a_server_that_fails(server):
    server.status = 500
    with pytest.raises(InputError, match=r"server http://127.*: the server refuses /infer/ with status 500"):
        ask(server.url, [conversation("a")], 4, 1.0)
    server.status, server.answer = 200, []
    with pytest.raises(InputError, match="expected an answer to each of 1 prompts"):
        ask(server.url, [conversation("a")], 4, 1.0)
    server.answer = [{"choices": []}]
    with pytest.raises(InputError, match="its answer is none of a rollout server"):
        ask(server.url, [conversation("a")], 4, 1.0)


def test_no_server(server):
    check_server(server.url)
    server.shutdown()
    server.server_close()
    with pytest.raises(InputError, match="no rollout server answers there"):
        check_server(server.url)
    for url in ("localhost:8000", "file:///etc/passwd", "http://"):
        with pytest.raises(InputError, match="server must be a URL such as http://127.0.0.1:8000"):
            check_server(url)
