"""The share of digits once more, as people write a reward of their own: with the decorator, and as
functions and classes for an import path.
"""

import asyncio

from swift.rewards import ORM, AsyncORM, orms

from swift_rlvr.rewards import reward


def share(text):
    return sum(letter.isdigit() for letter in text) / max(1, len(text))


@reward("external_single", role="shaping")
def single(completion, target):
    assert isinstance(target, int)
    return share(completion)


@reward("external_single_later", role="shaping")
async def single_later(completion, **kwargs):
    await asyncio.sleep(0)
    assert isinstance(kwargs["target"], int)
    return share(completion)


@reward("external_batch", role="shaping")
def batch(completions, target, trainer_state):
    assert trainer_state.max_steps > 1 and len(target) == len(completions)
    return list(map(share, completions))


@reward("external_batch_later", role="shaping")
async def batch_later(completions, **kwargs):
    await asyncio.sleep(0)
    assert len(kwargs["nums"]) == len(kwargs["request_id"]) == len(completions)
    return list(map(share, completions))


@reward("external_of_messages", role="shaping")
def of_messages(prompts, completions):
    assert all(turns[-1]["role"] == "user" for turns in prompts)
    return [share(completion[0]["content"]) for completion in completions]


@reward("external_sometimes", role="shaping")
def sometimes(completion):
    # Rarely enough that it is not all that a rank has seen after its first completions.
    if len(completion) % 5 == 1:
        raise ValueError("one too many")
    return 1.0


def by_path(completions, target, log_extra=None, **kwargs):
    return [share(completion[0]["content"]) for completion in completions]


class ByPathLater:
    async def __call__(self, completions, nums, **kwargs):
        return list(map(share, completions))


class Synchronous(ORM):
    def __call__(self, completions, target, **kwargs):
        return list(map(share, completions))


class Asynchronous(AsyncORM):
    async def __call__(self, completions, **kwargs):
        return list(map(share, completions))


orms["synchronous"] = Synchronous
orms["asynchronous"] = Asynchronous
