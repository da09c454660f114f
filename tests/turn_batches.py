"""Which tokens of a conversation ms-swift's trainer trains on, compared one by one with those that
were sampled.
"""

from collections.abc import Sequence
from typing import Any


def check_trained_tokens(
    tokenizer: Any,
    ids: Sequence[int],
    trained: Sequence[bool],
    sampled: Sequence[Sequence[int]],
    messages: Sequence[dict],
) -> None:
    """The trained tokens are the sampled ones, turn by turn, and the others are what the template
    puts between them.

    Args:
        ids: a row of the batch without padding. trained: its mask, for each of them.
        sampled: what the engine sampled, by turn. messages: the whole conversation as texts.
    """
    assert len(ids) == len(trained)
    runs: list[tuple[bool, list[int]]] = []
    for token, mark in zip(ids, trained, strict=True):
        if not runs or runs[-1][0] != bool(mark):
            runs.append((bool(mark), []))
        runs[-1][1].append(token)
    turns = [tokens for mark, tokens in runs if mark]
    assert turns == [list(turn) for turn in sampled], (
        "exactly the sampled tokens are trained, in their order"
    )
    # What is between them, rendered turn by turn; the sampled tokens end with the end of their
    # message.
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    texts = [tokenizer.decode(tokens) for mark, tokens in runs if not mark]
    expected, pending = [], ""
    for message in messages:
        if message["role"] == "assistant":
            expected.append(pending + "<|im_start|>assistant\n")
            pending = "\n" if sampled[len(expected) - 1][-1] == end else "<|im_end|>\n"
        else:
            pending += f"<|im_start|>{message['role']}\n{message['content']}<|im_end|>\n"
    rest = texts[len(expected) :]
    assert texts[: len(expected)] == expected
    assert rest in ([], [pending], [pending.rstrip("\n")]), rest
