"""Requests to a server that samples, with errors that name its URL."""

import http.client
import json
import os
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.network import is_loopback

# Where the key for a server is, as in OpenAI's own client.
KEY = "OPENAI_API_KEY"
# Seconds for one request; a server that has died in the middle of one would never answer.
TIMEOUT = 1800


class RefusedError(InputError):
    """A server answers a request with an error. status: of HTTP. text: what it says."""

    def __init__(self, url: str, path: str, status: int, text: str, retry_after: str | None):
        remedy = ""
        if status in (401, 403):
            remedy = f"; the key for it is read from the environment variable {KEY}"
        super().__init__(
            f"{url}: the server refuses /{path} with status {status}: {text[:300]}{remedy}",
            "server",
        )
        self.status = status
        self.text = text
        self.retry_after = retry_after


class SilentError(InputError):
    """No server answers a request."""


def check_url(url: str) -> None:
    """InputError for what is no URL of a server."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"must be a URL such as http://127.0.0.1:8000, got {url}", "server")


def request(url: str, path: str, body: Any = None, timeout: float = TIMEOUT) -> Any:
    """The JSON value that a server answers with, None for anything else; a body is posted.

    RefusedError if it answers with an error, SilentError if none answers.
    """
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    if os.environ.get(KEY):
        headers["Authorization"] = f"Bearer {os.environ[KEY]}"
    posted = urllib.request.Request(f"{url.rstrip('/')}/{path}", data, headers)
    handlers = []
    if is_loopback(urlsplit(url).hostname or ""):
        # A proxy does not reach this machine's own address.
        handlers.append(urllib.request.ProxyHandler({}))
    opener = urllib.request.build_opener(*handlers)
    try:
        with opener.open(posted, timeout=timeout) as response:
            text = response.read()
    except urllib.error.HTTPError as error:
        said = error.read(2000).decode(errors="replace")
        retry_after = error.headers.get("Retry-After")
        raise RefusedError(url, path, error.code, said, retry_after) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise SilentError(
            f"{url}: no server answers there ({reason}); start a rollout server with "
            "scripts/rollout.sh, or name one with OpenAI's API",
            "server",
        ) from error
    try:
        return json.loads(text)
    except ValueError:
        return None
