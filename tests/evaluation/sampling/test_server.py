"""Sampling from a rollout server: what is asked for and understood, against a server that answers
as ms-swift's does.

The real one is in tests/e2e/test_probe.py. Servers with OpenAI's API are in test_chat_server.py.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from swift_rlvr.evaluation.sampling import Completion, SamplingSettings, open_engine
from swift_rlvr.utils.errors import InputError


@pytest.fixture
def server():
    """Answers every prompt with its last word and the number of the request; `status` and `answer`
    can be changed.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.reply(200 if self.path == "/health/" else 404, {"status": "ok"})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            made.asked.append((self.path, body))
            texts = [
                request["messages"][-1]["content"].split()[-1] for request in body["infer_requests"]
            ]
            answers = [
                {
                    "response": {
                        "model": made.model,
                        "choices": [
                            {
                                "message": {"content": t},
                                "token_ids": [5, 6],
                                "finish_reason": "stop",
                            }
                        ],
                    }
                }
                for t in texts
            ]
            self.reply(made.status, answers if made.answer is None else made.answer)

        def reply(self, status, value):
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(value).encode())

        def log_message(self, *args):
            pass

    class Server(HTTPServer):
        def __init__(self):
            super().__init__(("127.0.0.1", 0), Handler)
            self.url = f"http://127.0.0.1:{self.server_port}"
            self.asked: list[tuple[str, Any]] = []
            self.status = 200
            self.answer: Any = None
            self.model = "m"

    made = Server()
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def conversation(text):
    return [{"role": "system", "content": "Think."}, {"role": "user", "content": text}]


def asked(server, n=1, **settings):
    """The completions of two conversations."""
    conversations = [conversation("say one"), conversation("say two")]
    with open_engine(
        SamplingSettings("m", n, server=server.url, **settings), conversations
    ) as engine:
        return engine.sample(conversations)


def test_each_sample_is_a_request_of_its_own_in_batches(server, monkeypatch):
    monkeypatch.setenv(
        "http_proxy", "http://127.0.0.1:9"
    )  # which does not reach this machine's own addresses
    groups = asked(server, 3, temperature=0.7, max_completion_length=40, batch_size=4)
    assert groups == [[Completion("one", 2, "stop")] * 3, [Completion("two", 2, "stop")] * 3]
    assert groups[0][0].token_ids == [5, 6]
    assert [path for path, _ in server.asked] == ["/infer/"] * 2
    assert [len(body["infer_requests"]) for _, body in server.asked] == [4, 2]
    config = server.asked[0][1]["request_config"]
    assert (config["max_tokens"], config["temperature"], config["top_p"], config["top_k"]) == (
        40,
        0.7,
        1.0,
        -1,
    )
    assert server.asked[0][1]["infer_requests"][0] == {"messages": conversation("say one")}


def test_a_server_that_fails(server):
    server.status = 500
    with pytest.raises(
        InputError, match=r"server: http://127.*: the server refuses /infer/ with status 500"
    ):
        asked(server)
    server.status, server.answer = 200, []
    with pytest.raises(InputError, match="did not answer each of 2 prompts"):
        asked(server)
    server.answer = [{"choices": []}] * 2
    with pytest.raises(InputError, match="this is not the answer of a rollout server"):
        asked(server)


def test_no_server(server):
    server.shutdown()
    server.server_close()
    with pytest.raises(InputError, match="no server answers there"):
        asked(server)
    for url in ("localhost:8000", "file:///etc/passwd", "http://"):
        server.url = url
        with pytest.raises(InputError, match="server: must be a URL such as http://127.0.0.1:8000"):
            asked(server)


def test_a_server_of_another_model_is_noted(server):
    for served, noted in (("m", None), ("M", None), ("checkpoint-5", "checkpoint-5")):
        server.model = served
        # ms-swift's server says the last part of the path.
        settings = SamplingSettings("output/run/m", server=server.url)
        with open_engine(settings, [conversation("say one")]) as engine:
            engine.sample([conversation("say one")])
            assert engine.served_model == noted
