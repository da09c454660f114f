"""NeMo Gym and NeMo RL: a line of rollouts, or a batch of conversations, with its rewards.

    python -m swift_rlvr.adapters.nemo < rollouts.jsonl > graded.jsonl

A resources server of NeMo Gym answers /verify with what `verify` makes of the request's fields. An
environment of NeMo RL fills its EnvironmentReturn from `step`.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from swift_rlvr.adapters.grading import grade, row_of

_NOT_COLUMNS = ("responses_create_params", "response", "expected_answer")


def verify(request: Mapping[str, Any]) -> dict[str, Any]:
    """A request of NeMo Gym with its `reward`, each reward and each reason.

    The row is every other field; `expected_answer` is a label, see `row_of`. Where no reward of ours
    grades the row, the reward is 0.0, and `mask_sample` keeps the sample out of the scores.

    request: with `response`, in the form of OpenAI's Responses API, whose items are in `output`.
    """
    # Everything else is the row: NeMo Gym has no place of its own for columns.
    columns = {name: value for name, value in request.items() if name not in _NOT_COLUMNS}
    row = row_of(request.get("expected_answer", {}), **columns)
    grades = grade(_messages(request["response"].get("output") or []), row)
    score = grades.pop("score")
    return {**request, "reward": score or 0.0, "mask_sample": score is None, **grades}


def step(
    message_logs: Sequence[Sequence[Mapping[str, Any]]], metadata: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The `reward` of each conversation of NeMo RL, each reward and each reason.

    metadata: of a conversation, its row; `ground_truth` in it is a label, see `row_of`.
    """
    results = []
    for log, data in zip(message_logs, metadata, strict=True):
        columns = {name: value for name, value in data.items() if name != "ground_truth"}
        grades = grade(list(log), row_of(data.get("ground_truth", {}), **columns))
        results.append({"reward": grades.pop("score") or 0.0, **grades})
    return results


def _messages(output: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The items of a response as messages. Reasoning is an item of its own before its message."""
    messages: list[dict[str, Any]] = []
    thinking: list[Any] = []
    for item in output:
        # What was thought stands in front of the message that it led to, as in a completion of text.
        if item.get("type") == "reasoning":
            thinking.append(item)
        elif item.get("type") == "message":
            content = item.get("content")
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            role = item.get("role", "assistant")
            messages.append({"role": role, "content": [*thinking, *(parts or [])]})
            thinking = []
        # A call of a tool, or what it says. An empty message of the tool's stands for it: a rollout that ends
        # there has no answer.
        else:
            messages.append({"role": "tool", "content": None})
            thinking = []
    return messages


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(verify(json.loads(line))), flush=True)
