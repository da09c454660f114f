"""A server with OpenAI's API, of the standard library alone: what it answers can be set."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "a secret"


class ChatServer(ThreadingHTTPServer):
    """Answers each conversation with `write`.

    models: that it lists; None for a server that lists none. refusals: (status, text) of the next
    answers, the first first. asked: the bodies of the requests, in order.
    """

    # Of connections that wait to be accepted.
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.models: list[dict[str, Any]] | None = [
            {"id": "tiny", "object": "model", "owned_by": "me"}
        ]
        self.served = "tiny"
        self.refusals: list[tuple[int, str]] = []
        self.refused_parameter = ""
        self.asked: list[dict[str, Any]] = []
        self.key = KEY

    def write(self, body: dict[str, Any]) -> dict[str, Any]:
        """The choice and usage of an answer."""
        text = body["messages"][-1]["content"].split()[-1]
        return self.choice({"content": text}, tokens=2)

    @staticmethod
    def choice(message: dict[str, Any], tokens: int | None, finish: str = "stop") -> dict[str, Any]:
        """What an answer has besides the model."""
        message = {"role": "assistant", **message}
        answer: dict[str, Any] = {
            "choices": [{"index": 0, "message": message, "finish_reason": finish}]
        }
        if tokens is not None:
            answer["usage"] = {"prompt_tokens": 9, "completion_tokens": tokens}
        return answer


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer

    def do_GET(self):
        if self.path != "/v1/models" or self.server.models is None:
            self._reply(404, {"error": {"message": "Not Found"}})
        elif self._may_ask():
            self._reply(200, {"object": "list", "data": self.server.models})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/v1/chat/completions":
            self._reply(404, {"error": {"message": "Not Found"}})
        elif self._may_ask():
            self.server.asked.append(body)
            if self.server.refusals:
                self._reply(*self.server.refusals.pop(0))
            elif self.server.refused_parameter in body:
                self._reply(400, "Use 'max_completion_tokens' instead.")
            else:
                answer = {"id": "c", "object": "chat.completion", "model": self.server.served}
                self._reply(200, answer | self.server.write(body))

    def _may_ask(self) -> bool:
        allowed = self.headers["Authorization"] == f"Bearer {self.server.key}"
        if not allowed:
            self._reply(401, {"error": {"message": "Incorrect API key provided."}})
        return allowed

    def _reply(self, status, value):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def log_message(self, *args):
        pass


@contextmanager
def running(kind=ChatServer):
    """The server, which ends with the `with` block."""
    server = kind()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
