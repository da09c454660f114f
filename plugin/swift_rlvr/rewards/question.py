"""The question of a row, as trainers hand it over."""

from collections.abc import Mapping, Sequence

from swift_rlvr.rewards.base import Row
from swift_rlvr.verifiers.messages import message_text

# Where trainers have it: ms-swift, whose messages end with the completion, and TRL.
QUESTION_COLUMNS = ("messages", "prompts")


def question_in(row: Row) -> str:
    """All user turns of a row: of several turns the first has the question. Empty without any."""
    for name in QUESTION_COLUMNS:
        prompt = row.get(name)
        if isinstance(prompt, str):
            return prompt
        if not isinstance(prompt, Sequence):
            continue
        asked = []
        for turn in prompt:
            if isinstance(turn, Mapping) and turn.get("role") == "user":
                asked.append(message_text(turn) or "")
        if asked:
            return "\n".join(asked)
    return ""
