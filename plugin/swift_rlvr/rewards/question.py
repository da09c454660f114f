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
        turns = [turn for turn in prompt if isinstance(turn, Mapping)]
        asked = [dict(turn) for turn in turns if turn.get("role") == "user"]
        if asked:
            return "\n".join(message_text(turn) or "" for turn in asked)
    return ""
