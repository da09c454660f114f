"""Completions from a running rollout server (`swift rollout`), asked as ms-swift's trainers ask it.

Of a server that serves a training these are of the policy as it is at that moment, and the training
waits meanwhile.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from swift_rlvr.evaluation.sampling.interface import (
    Completion,
    Engine,
    Groups,
    OnProgress,
    SamplingSettings,
)
from swift_rlvr.runs.records import Messages
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.network import is_loopback

# Seconds for one request; a server that has died in the middle of one would never answer.
TIMEOUT = 1800


class ServerEngine(Engine):
    """A rollout server, asked for `batch_size` completions at a time; InputError where none answers
    at its URL.
    """

    def __init__(self, settings: SamplingSettings):
        super().__init__(settings)
        self.url = settings.server or ""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(
                f"must be a URL such as http://127.0.0.1:8000, got {self.url}", "server"
            )
        _request(self.url, "health/", timeout=10)

    def _sample(
        self, conversations: Sequence[Messages], settings: SamplingSettings, on_progress: OnProgress
    ) -> Groups:
        samples = settings.num_generations
        repeated = [messages for messages in conversations for _ in range(samples)]
        completions: list[Completion] = []
        while len(completions) < len(repeated):
            batch = repeated[len(completions) : len(completions) + self.batch_size]
            completions += self._ask(batch, settings)
            on_progress(len(completions) / len(repeated))
        return [
            completions[start : start + samples] for start in range(0, len(completions), samples)
        ]

    def _ask(
        self, conversations: Sequence[Messages], settings: SamplingSettings
    ) -> list[Completion]:
        """One completion for each conversation, in one request; InputError where it fails."""
        config = {
            "max_tokens": settings.max_completion_length,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "top_k": settings.top_k or -1,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            # With the token ids.
            "return_details": True,
        }
        requests = [{"messages": messages} for messages in conversations]
        body = {"infer_requests": requests, "request_config": config, "use_tqdm": False}
        answers = _request(self.url, "infer/", body, TIMEOUT)
        if not isinstance(answers, list) or len(answers) != len(conversations):
            raise InputError(
                f"{self.url}: the rollout server did not answer each of {len(conversations)} prompts",
                "server",
            )
        return [_completion(self.url, answer) for answer in answers]


def _completion(url: str, answer: Any) -> Completion:
    """The completion in a server's answer; InputError where it has another form."""
    try:
        choice = answer["response"]["choices"][0]
        text = choice["message"]["content"]
        ids = choice["token_ids"]
        return Completion(text, len(ids), choice["finish_reason"], ids)
    except (KeyError, IndexError, TypeError) as error:
        raise InputError(
            f"{url}: this is not the answer of a rollout server ({error!r})", "server"
        ) from error


def _request(url: str, path: str, body: Any = None, timeout: float = TIMEOUT) -> Any:
    """What the server answers: to a body, which is posted, a JSON value; else None."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{url.rstrip('/')}/{path}", data, {"Content-Type": "application/json"}
    )
    handlers = []
    if is_loopback(urlsplit(url).hostname or ""):
        # A proxy does not reach this machine's own address.
        handlers.append(urllib.request.ProxyHandler({}))
    opener = urllib.request.build_opener(*handlers)
    try:
        with opener.open(request, timeout=timeout) as response:
            if body is None:
                return None
            return json.loads(response.read())
    except urllib.error.HTTPError as error:
        text = error.read(300).decode(errors="replace")
        raise InputError(
            f"{url}: the server refuses /{path} with status {error.code}: {text}", "server"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise InputError(
            f"{url}: no rollout server answers there ({reason}); start one with scripts/rollout.sh",
            "server",
        ) from error
