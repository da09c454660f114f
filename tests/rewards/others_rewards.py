"""Rewards as others write them; nothing here knows this package."""

import asyncio
import re
from functools import partial

import numpy as np


def right(completions, solution, **kwargs):
    """A verifier as in TRL: messages in, None where there is no gold."""
    contents = [completion[0]["content"] for completion in completions]
    rewards = []
    for content, gold in zip(contents, solution, strict=True):
        rewards.append(None if gold is None else float(gold in content))
    return rewards


def short(completions, limit=10, **kwargs):
    """As in ms-swift: texts in. Of messages the length would be 1."""
    limits = limit if isinstance(limit, list) else [limit] * len(completions)
    return [float(len(text) <= each) for text, each in zip(completions, limits, strict=True)]


def _content(completion):
    return completion[-1]["content"]


def through_a_helper(completions):
    """Nothing in its code says that it reads messages."""
    return [float(bool(re.search("7", _content(completion)))) for completion in completions]


async def later(completions, **kwargs):
    async def one(completion):
        await asyncio.sleep(0)
        return len(completion[0]["content"]) / 10

    return await asyncio.gather(*map(one, completions))


def asked(prompts, completions, completion_ids, **kwargs):
    """What the trainer has beside the row."""
    rewards = []
    for prompt, ids in zip(prompts, completion_ids, strict=True):
        rewards.append(float(prompt[-1]["content"] == "?") * len(ids))
    return rewards


class Orm:
    """A class as in a plugin of ms-swift."""

    role = "verifier"

    def __init__(self, args=None):
        self.args = args

    def __call__(self, completions, solution, **kwargs):
        return [float(text == gold) for text, gold in zip(completions, solution, strict=True)]


class Weighted:
    """One that needs an argument, and has a method."""

    def __init__(self, weight):
        self.weight = weight

    def score(self, completions, **kwargs):
        return [self.weight] * len(completions)


def one_by_one(completion, solution):
    return 1.0 if solution in completion else (0.0, "not in it")


three = partial(short, limit=3)


def too_few(completions):
    return [1.0]


def one_for_all(completions):
    return np.array(0.5)  # as the mean of a tensor is


def reads_kwargs(completions, **kwargs):
    return [float(gold in text) for text, gold in zip(completions, kwargs["gold"], strict=True)]


def no_completions(solution):
    return 1.0


def only_in_trl(completions, log_extra):
    return [0.0 for _ in completions]


number = 7
