"""One question, whether the gold is the last word, as a reward function of every kind that people write."""

import asyncio
import functools
import math
from collections import deque

import pytest

TEXTS = ["so 7", "so 8", "so 7"]
GOLD = ["7", "7", None]
# What each kind earns for them: right, wrong, and a row without a gold.
EARNED = [1.0, 0.0, None]


def is_right(text, gold):
    return float(text.split()[-1] == gold)


def single(completion, gold):
    return is_right(completion, gold)


def single_with_kwargs(completion, **kwargs):
    if kwargs["gold"] is None:
        return None
    return is_right(completion, kwargs["gold"])


async def single_async(completion: str, gold: str):
    await asyncio.sleep(0)
    return is_right(completion, gold), "asked"


def single_of_messages(completion, gold):
    return is_right(completion[-1]["content"], gold)


def batch(completions, gold):
    return list(map(is_right, completions, gold))


def batch_with_kwargs(completions, **kwargs):
    rewards = []
    for text, gold in zip(completions, kwargs["gold"], strict=True):
        rewards.append(None if gold is None else is_right(text, gold))
    return rewards


async def batch_async(completions, gold, **kwargs):
    async def one(text, gold):
        await asyncio.sleep(0)
        return is_right(text, gold)

    return await asyncio.gather(*map(one, completions, gold))


def batch_of_messages(completions, gold, **kwargs):
    contents = [completion[0]["content"] for completion in completions]
    return list(map(is_right, contents, gold))


async def batch_async_of_messages(prompts, completions, gold, **kwargs):
    contents = [completion[-1].get("content", "") for completion in completions]
    return list(map(is_right, contents, gold))


def _text(completion):
    return completion[0]["content"]


def batch_of_messages_by_a_helper(completions, gold):
    return [
        is_right(_text(completion), each)
        for completion, each in zip(completions, gold, strict=True)
    ]


def batch_of_messages_by_annotation(completions: list[list[dict[str, str]]], gold):
    key = "".join(["con", "tent"])
    return [
        is_right(completion[0][key], each)
        for completion, each in zip(completions, gold, strict=True)
    ]


def batch_of_texts_that_knows_the_word(completions, gold):
    rewards = []
    for text, each in zip(completions, gold, strict=True):
        rewards.append(0.0 if "content" in text else is_right(text, each))
    return rewards


class Callable:
    def __call__(self, completions, gold, **kwargs):
        return batch(completions, gold)


class AsyncCallable:
    async def __call__(self, completions, gold, **kwargs):
        return batch(completions, gold)


class WithMethod:
    def grade(self, completions, gold):
        return batch(completions, gold)


def _with_word(completions, gold, word):
    return [
        is_right(f"{text} {word}".strip(), each)
        for text, each in zip(completions, gold, strict=True)
    ]


bound = functools.partial(_with_word, word="")
short = lambda completions, gold: list(map(is_right, completions, gold))  # noqa: E731
method = WithMethod().grade


def tensor(completions, gold):
    torch = pytest.importorskip("torch")
    return torch.tensor(batch(completions, gold))


def array(completions, gold):
    numpy = pytest.importorskip("numpy")
    return numpy.array(batch(completions, gold), dtype=numpy.float32)


def column_of_a_matrix(completions, gold):
    """As the logits of a reward model."""
    torch = pytest.importorskip("torch")
    return torch.tensor(batch(completions, gold)).unsqueeze(1)


def queue(completions, gold):
    return deque(batch(completions, gold))


def array_with_nan(completions, **kwargs):
    numpy = pytest.importorskip("numpy")
    rewards = numpy.array(batch(completions, kwargs["gold"]))
    rewards[[gold is None for gold in kwargs["gold"]]] = math.nan
    return rewards


def bools(completions, gold):
    return [bool(each) for each in batch(completions, gold)]


def numpy_number(completion, gold):
    numpy = pytest.importorskip("numpy")
    return numpy.float32(is_right(completion, gold))


def generator(completions, gold):
    return (is_right(text, each) for text, each in zip(completions, gold, strict=True))


def logs(completions, gold, log_extra=None, log_metric=None, **kwargs):
    if log_extra:
        log_extra("gold", list(gold))
    if log_metric:
        log_metric("asked", 1.0)
    return batch(completions, gold)


def of_the_state(completions, gold, trainer_state):
    return [each if trainer_state.global_step >= 0 else -1.0 for each in batch(completions, gold)]


def of_the_state_alone(completion, gold, trainer_state):
    return is_right(completion, gold) if trainer_state.global_step >= 0 else -1.0


def positional(completions, /, gold):
    return batch(completions, gold)


def ms_swift():
    """Subclasses of ms-swift's two classes."""
    from swift.rewards import ORM, AsyncORM

    class Mine(ORM):
        def __call__(self, completions, gold, **kwargs):
            return batch(completions, gold)

    class MineAsync(AsyncORM):
        async def __call__(self, completions, gold, **kwargs):
            return batch(completions, gold)

    return Mine, MineAsync


KINDS = [
    single,
    single_with_kwargs,
    single_async,
    single_of_messages,
    batch,
    batch_with_kwargs,
    batch_async,
    batch_of_messages,
    batch_async_of_messages,
    batch_of_messages_by_a_helper,
    batch_of_messages_by_annotation,
    batch_of_texts_that_knows_the_word,
    Callable,
    AsyncCallable,
    bound,
    short,
    method,
    tensor,
    array,
    column_of_a_matrix,
    queue,
    array_with_nan,
    bools,
    numpy_number,
    generator,
    logs,
    of_the_state,
    of_the_state_alone,
    positional,
]


# What goes wrong.


def always_raises(completion, gold):
    return 1 / 0


def always_raises_together(completions, gold):
    return 1 / 0


async def always_raises_async(completions, gold):
    return 1 / 0


def raises_sometimes(completion, gold):
    return float(int(completion.split()[-1]) == int(gold))


def raises_sometimes_together(completions, gold):
    return [raises_sometimes(text, each) for text, each in zip(completions, gold, strict=True)]


def text_in_place_of_a_number(completion, gold):
    return "right"


def infinite(completion, gold):
    return math.inf


def too_few(completions, gold):
    return [1.0]


def one_number(completions, gold):
    return 1.0


def list_of_one(completion, gold):
    return [1.0]


def messages_where_nothing_says_so(completions, gold):
    return [
        float(completion[0]["con" + "tent"] == each)
        for completion, each in zip(completions, gold, strict=True)
    ]


def in_a_key(completions, **kwargs):
    return [kwargs["golds"] for _ in completions]


ONLY_FAIL = [
    always_raises,
    always_raises_together,
    always_raises_async,
    text_in_place_of_a_number,
    infinite,
    too_few,
    one_number,
    list_of_one,
    messages_where_nothing_says_so,
    in_a_key,
]
CANNOT_BE_TOLD = [
    lambda answer, gold: 1.0,
    lambda completion, completions: 1.0,
    lambda gold, /: 1.0,
    lambda *args, **kwargs: [],
    lambda: 1.0,
]
