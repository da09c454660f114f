"""Completions from a running server: a rollout server (`swift rollout`), or one with OpenAI's API,
such as vLLM, SGLang, Ollama, llama.cpp or a provider's.
"""

import time
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit

from swift_rlvr.evaluation.models import sees_pictures
from swift_rlvr.evaluation.sampling.http import RefusedError, SilentError, check_url, request
from swift_rlvr.evaluation.sampling.interface import (
    Completion,
    Engine,
    Groups,
    OnProgress,
    SamplingSettings,
)
from swift_rlvr.evaluation.tools import as_chat, split
from swift_rlvr.runs.records import Messages
from swift_rlvr.utils.errors import InputError
from swift_rlvr.verifiers.messages import message_text
from swift_rlvr.verifiers.thinking import DELIMITERS, thinking_end, with_opening
from swift_rlvr.verifiers.tool_calls import with_calls

# Requests to a server with OpenAI's API that run at the same time.
MOST_AT_ONCE = 64
# Seconds before each further try of a request that a busy server has refused.
WAITS = (1, 2, 4, 8, 16, 32)
_BUSY = (408, 409, 429, 500, 502, 503, 504)
# Newer models of OpenAI's call the limit so and refuse max_tokens; older servers do not know the name.
_NEWER_LIMIT = "max_completion_tokens"
# Servers that take all the sampling settings, and would else use the model's own.
_WITH_ALL_SETTINGS = ("vllm", "sglang")


def open_server(settings: SamplingSettings) -> Engine:
    """The server at the settings' URL; InputError if none answers, or it has not the model."""
    url = settings.server or ""
    check_url(url)
    # A provider's URL has a path, such as /api/v1; a server of one's own is mostly named without one.
    has_path = bool(urlsplit(url).path.strip("/"))
    base = url if has_path else f"{url.rstrip('/')}/v1"
    try:
        answer = request(base, "models", timeout=10)
        models = answer["data"]
    except RefusedError as error:
        if error.status not in (404, 405):
            raise
        # Some providers list no models.
        models = [] if has_path else None
    except (KeyError, TypeError):
        models = None
    # A rollout server has no list of models.
    if models is None:
        return RolloutEngine(settings)
    return ChatEngine(settings, base, models)


class ServerEngine(Engine):
    """What both kinds of servers share."""

    takes_pictures = True

    def __init__(self, settings: SamplingSettings):
        super().__init__(settings)
        self.url = settings.server or ""
        self._opens_thinking = False

    def _sample(
        self, conversations: Sequence[Messages], settings: SamplingSettings, on_progress: OnProgress
    ) -> Groups:
        samples = settings.num_generations
        repeated: list[Messages] = []
        for messages in conversations:
            repeated += [messages] * samples
        completions: list[Completion] = []
        for completion in self.answers(repeated, settings):
            completions.append(completion)
            on_progress(len(completions) / len(repeated))

        # A server does not show the prompt that it renders. That the prompt opens the thinking is seen
        # in a completion that closes it.
        for completion in completions:
            thinking = completion.text[: thinking_end(completion.text)]
            if thinking and not any(opening in thinking for opening, _ in DELIMITERS):
                self._opens_thinking = True
        if self._opens_thinking:
            for number, completion in enumerate(completions):
                text = with_opening(completion.text, opened=True)
                completions[number] = replace(completion, text=text)
        groups = []
        for start in range(0, len(completions), samples):
            groups.append(completions[start : start + samples])
        return groups

    @abstractmethod
    def answers(
        self, conversations: Sequence[Messages], settings: SamplingSettings
    ) -> Iterator[Completion]:
        """One completion for each conversation, in order; InputError where the server fails."""

    def _note_model(self, served: object) -> None:
        """Keep the name of the model that has answered; the last part of a path is its name too."""
        asked = self.settings.model
        if isinstance(served, str) and served != asked:
            is_same = PurePath(served).name.lower() == PurePath(asked).name.lower()
            self.served_model = None if is_same else served


class RolloutEngine(ServerEngine):
    """A rollout server, asked for `batch_size` completions at a time, as ms-swift's trainers do.

    Of a server that serves a training these are of the policy as it is at that moment, and the
    training waits meanwhile.
    """

    def __init__(self, settings: SamplingSettings):
        super().__init__(settings)
        request(self.url, "health/", timeout=10)

    def answers(
        self, conversations: Sequence[Messages], settings: SamplingSettings
    ) -> Iterator[Completion]:
        config = {
            "max_tokens": settings.max_completion_length,
            "temperature": settings.temperature,
            **_all_settings(settings),
            # With the token ids.
            "return_details": True,
        }
        for start in range(0, len(conversations), self.batch_size):
            requests = []
            for conversation in conversations[start : start + self.batch_size]:
                messages, tools = split(conversation)
                requests.append({"messages": messages, **({"tools": tools} if tools else {})})
            body = {"infer_requests": requests, "request_config": config, "use_tqdm": False}
            results = request(self.url, "infer/", body)
            if not isinstance(results, list) or len(results) != len(requests):
                raise InputError(
                    f"{self.url}: the rollout server did not answer each of {len(requests)} prompts",
                    "server",
                )
            yield from map(self._completion, results)

    def _completion(self, answer: Any) -> Completion:
        """The completion in a server's answer; InputError if it has another form."""
        try:
            choice = answer["response"]["choices"][0]
            text = choice["message"]["content"]
            ids = choice["token_ids"]
            completion = Completion(text, len(ids), choice["finish_reason"], ids)
        except (KeyError, IndexError, TypeError) as error:
            raise InputError(
                f"{self.url}: this is not the answer of a rollout server ({error!r})", "server"
            ) from error
        served = answer["response"].get("model")
        if self.has_pictures and isinstance(served, str) and sees_pictures(Path(served)) is False:
            # ms-swift drops pictures that such a model is sent.
            problem = f"the rows have pictures, and the server's {served} reads text alone"
            raise InputError(problem, "server")
        self._note_model(served)
        return completion


class ChatEngine(ServerEngine):
    """A server with OpenAI's API, asked for each completion by a request of its own, since not all
    servers know several choices.

    base: its URL with the path before /chat/completions. models: that it lists; empty if it lists
    none.
    """

    def __init__(self, settings: SamplingSettings, base: str, models: Sequence[dict[str, Any]]):
        super().__init__(settings)
        self.base = base
        by_name = {str(model.get("id")): model for model in models if isinstance(model, dict)}
        if by_name and settings.model not in by_name:
            names = list(by_name)
            shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
            raise InputError(f"{self.url} has no {settings.model}; it has {shown}", "model")
        model = by_name.get(settings.model, {})
        self._options = {}
        if model.get("owned_by") in _WITH_ALL_SETTINGS:
            self._options = _all_settings(settings)
        elif settings.top_p < 1:
            self._options = {"top_p": settings.top_p}
        context = model.get("max_model_len")
        if isinstance(context, int) and settings.max_completion_length >= context:
            raise InputError(
                f"must be less than {context:,}, the context of the server, which holds the prompt "
                f"too; got {settings.max_completion_length:,}",
                "max_completion_length",
            )
        self._limit = "max_tokens"

    def answers(
        self, conversations: Sequence[Messages], settings: SamplingSettings
    ) -> Iterator[Completion]:
        # Without waiting at the end: after Ctrl-C or an error nobody wants the other completions.
        pool = ThreadPoolExecutor(min(self.batch_size, MOST_AT_ONCE))
        try:
            yield from pool.map(partial(self._ask, settings), conversations)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _ask(self, settings: SamplingSettings, messages: Messages) -> Completion:
        """A completion; InputError if the server refuses it, also after waiting."""
        turns, tools = as_chat(messages, calls_in_text=True)
        waits = iter(WAITS)
        while True:
            limit = self._limit
            body = {
                "model": settings.model,
                "messages": turns,
                **({"tools": tools} if tools else {}),
                "temperature": settings.temperature,
                **self._options,
                limit: settings.max_completion_length,
            }
            try:
                return self._completion(request(self.base, "chat/completions", body))
            except RefusedError as error:
                # Once: a limit that is too large is refused with the same word in the text.
                is_renamed = error.status == 400 and _NEWER_LIMIT in error.text
                if is_renamed and limit != _NEWER_LIMIT:
                    self._limit = _NEWER_LIMIT
                    continue
                wait = next(waits, None)
                if wait is None or error.status not in _BUSY:
                    raise
                # Seconds; a date, which HTTP allows too, is not read.
                asked = error.retry_after or ""
                time.sleep(min(float(asked), 60.0) if asked.isdigit() else wait)
            except SilentError:
                wait = next(waits, None)
                if wait is None:
                    raise
                time.sleep(wait)

    def _completion(self, answer: Any) -> Completion:
        """The completion in a server's answer; InputError if it has another form.

        A thinking that the server has split off stands before the rest again, and calls after it.
        """
        # Servers that call themselves compatible leave out parts, or answer with an error and status 200.
        try:
            choice = answer["choices"][0]
            text = message_text(with_calls(choice["message"])) or ""
            finish = choice["finish_reason"]
        except (KeyError, IndexError, TypeError) as error:
            raise InputError(
                f"{self.url}: this is not a chat completion of OpenAI's API ({error!r})", "server"
            ) from error
        tokens = (answer.get("usage") or {}).get("completion_tokens")
        self._note_model(answer.get("model"))
        return Completion(text, tokens if isinstance(tokens, int) else None, finish)


def _all_settings(settings: SamplingSettings) -> dict[str, Any]:
    """The sampling settings besides the temperature, in vLLM's names."""
    return {
        "top_p": settings.top_p,
        "top_k": settings.top_k or -1,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
    }
