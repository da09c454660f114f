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

from swift_rlvr.evaluation.sampling.engines import Engine, Groups, OnProgress
from swift_rlvr.evaluation.sampling.settings import Completion, SamplingSettings
from swift_rlvr.runs.records import Messages
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.network import is_loopback

# seconds for one request; a server that has died in the middle of one would never answer
TIMEOUT = 1800


class ServerEngine(Engine):
    """A rollout server, asked for `batch_size` completions at a time; InputError where none answers
    at its URL.
    """

    def __init__(self, settings: SamplingSettings):
        super().__init__(settings)
        self.url = settings.server or ""
        if urlsplit(self.url).scheme not in ("http", "https") or not urlsplit(self.url).hostname:
            raise InputError(
                f"must be a URL such as http://127.0.0.1:8000, got {self.url}", "server"
            )
        _request(self.url, "health/", timeout=10)

    def _sample(
        self, conversations: Sequence[Messages], settings: SamplingSettings, on_progress: OnProgress
    ) -> Groups:
        n = settings.num_generations
        wanted = [messages for messages in conversations for _ in range(n)]
        completions: list[Completion] = []
        while len(completions) < len(wanted):
            part = wanted[len(completions) : len(completions) + self.batch_size]
            completions += self._ask(part, settings)
            on_progress(len(completions) / len(wanted))
        return [completions[start : start + n] for start in range(0, len(completions), n)]

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
            "return_details": True,  # the token ids
        }
        requests = [{"messages": messages} for messages in conversations]
        body = {"infer_requests": requests, "request_config": config, "use_tqdm": False}
        answers = _request(self.url, "infer/", body, TIMEOUT)
        if not isinstance(answers, list) or len(answers) != len(conversations):
            raise InputError(
                f"{self.url}: expected an answer to each of {len(conversations)} prompts of a rollout server",
                "server",
            )
        return [_completion(self.url, answer) for answer in answers]


def _completion(url: str, answer: Any) -> Completion:
    try:
        choice = answer["response"]["choices"][0]
        text, ids = choice["message"]["content"], choice["token_ids"]
        return Completion(text, len(ids), choice["finish_reason"], ids)
    except (KeyError, IndexError, TypeError) as error:
        raise InputError(
            f"{url}: its answer is none of a rollout server ({error!r})", "server"
        ) from error


def _request(url: str, path: str, body: Any = None, timeout: float = TIMEOUT) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{url.rstrip('/')}/{path}", data, {"Content-Type": "application/json"}
    )
    local = is_loopback(urlsplit(url).hostname or "")  # where a proxy does not reach
    opener = urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if local else []))
    try:
        with opener.open(request, timeout=timeout) as response:
            return json.loads(response.read()) if body is not None else None
    except urllib.error.HTTPError as error:
        said = error.read(300).decode(errors="replace")
        raise InputError(
            f"{url}: the server refuses /{path} with status {error.code}: {said}", "server"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise InputError(
            f"{url}: no rollout server answers there ({reason}); start one with scripts/rollout.sh",
            "server",
        ) from error
