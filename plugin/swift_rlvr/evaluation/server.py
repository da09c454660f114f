"""Completions from a running rollout server (`swift rollout`), asked as ms-swift's trainers ask it.

Of a server that serves a training these are of the policy as it is at that moment, and the training waits meanwhile.
"""

import json
import urllib.error
import urllib.request
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from swift_rlvr.data.grading import Completion
from swift_rlvr.errors import InputError
from swift_rlvr.network import is_loopback

TIMEOUT = 1800  # seconds for one request; a server that has died in the middle of one would never answer


def check_server(url: str) -> None:
    """InputError where no rollout server answers at a URL such as http://127.0.0.1:8000."""
    if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
        raise InputError(f"must be a URL such as http://127.0.0.1:8000, got {url}", "server")
    _request(url, "health/", timeout=10)


def ask(url: str, conversations: Sequence[list[dict[str, str]]], max_tokens: int, temperature: float) -> list[Any]:
    """One Completion for each conversation, sampled by temperature alone, in one request; InputError where it fails."""
    config = {
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_p": 1.0,
        "top_k": -1,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "return_details": True,  # the token ids
    }
    requests = [{"messages": messages} for messages in conversations]
    body = {"infer_requests": requests, "request_config": config, "use_tqdm": False}
    answers = _request(url, "infer/", body, TIMEOUT)
    if not isinstance(answers, list) or len(answers) != len(conversations):
        raise InputError(
            f"{url}: expected an answer to each of {len(conversations)} prompts of a rollout server", "server"
        )
    return [_completion(url, answer) for answer in answers]


def _completion(url: str, answer: Any) -> Completion:
    try:
        choice = answer["response"]["choices"][0]
        return Completion(choice["message"]["content"], len(choice["token_ids"]), choice["finish_reason"])
    except (KeyError, IndexError, TypeError) as error:
        raise InputError(f"{url}: its answer is none of a rollout server ({error!r})", "server") from error


def _request(url: str, path: str, body: Any = None, timeout: float = TIMEOUT) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"{url.rstrip('/')}/{path}", data, {"Content-Type": "application/json"})
    local = is_loopback(urlsplit(url).hostname or "")  # where a proxy does not reach
    opener = urllib.request.build_opener(*([urllib.request.ProxyHandler({})] if local else []))
    try:
        with opener.open(request, timeout=timeout) as response:
            return json.loads(response.read()) if body is not None else None
    except urllib.error.HTTPError as error:
        said = error.read(300).decode(errors="replace")
        raise InputError(f"{url}: the server refuses /{path} with status {error.code}: {said}", "server") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise InputError(
            f"{url}: no rollout server answers there ({reason}); start one with swift-rlvr rollout", "server"
        ) from error
