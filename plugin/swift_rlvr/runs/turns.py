"""The prompts of conversations in which the policy answered several times, as they were before its first answer."""

from collections.abc import Mapping, Sequence
from typing import Any

NUM_TURNS = "num_turns"  # ms-swift's column beside `prompt` and `completion`
_ANSWER = "<|im_start|>assistant\n"


def first_prompts(table: Mapping[str, Sequence[Any]]) -> list[Any]:
    """The first prompt of each conversation: the same for all completions of a task.

    ms-swift logs as the prompt all that is before the last answer. Its templates other than ChatML are left as they
    are, and so are prompts that are no text.

    >>> asked = "<|im_start|>user\\n1+1?<|im_end|>\\n<|im_start|>assistant\\n"
    >>> again = f"{asked}3<|im_end|>\\n<|im_start|>user\\nNo.<|im_end|>\\n<|im_start|>assistant\\n"
    >>> first_prompts({"prompt": [asked, again], "num_turns": [1, 2]}) == [asked, asked]
    True
    """
    prompts = list(table["prompt"])
    turns = table.get(NUM_TURNS)
    if turns is None or len(turns) != len(prompts):
        return prompts
    return [_first(prompt, count) for prompt, count in zip(prompts, turns, strict=True)]


def _first(prompt: Any, turns: Any) -> Any:
    if not isinstance(prompt, str) or not isinstance(turns, (int, float)) or not 1 < turns < 1000:
        return prompt
    end = len(prompt)
    for _ in range(int(turns)):
        end = prompt.rfind(_ANSWER, 0, end)
        if end < 0:
            return prompt
    return prompt[: end + len(_ANSWER)]
