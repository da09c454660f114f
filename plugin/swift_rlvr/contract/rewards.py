"""The rules for a reward class. Each rule yields the problems that it finds, in plain words."""

import copy
import math
import pickle
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from operator import methodcaller
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from swift_rlvr.contract.rules import NotJudgedError, Problems, Rule, rule
from swift_rlvr.rewards import Example, Explanation, Grade, Reward
from swift_rlvr.rewards.function import FunctionReward, NoRewardError, as_messages
from swift_rlvr.rewards.signature import PROMPTS, TOKENS
from swift_rlvr.success import RAISED, VERIFIER
from swift_rlvr.tasks.task import Row, shown
from swift_rlvr.utils.errors import InputError
from swift_rlvr.utils.parallel import map_within

HUGE = 1_000_000
# What a policy may write, as a text, as messages, and as neither.
HOSTILE: tuple[Any, ...] = (
    "",
    None,
    3,
    [],
    {},
    [None],
    [{}],
    [{"role": "assistant", "content": None}],
    "\0\ud800\u200b",
    "</answer></think><answer>",
    "<answer>nan</answer>",
    "<answer>9**9**9**9</answer>",
    "<answer>{}</answer>",
    "<answer>[[1, 2], {3: 4}]</answer>",
    "(" * HUGE,
    "<answer>" + "(" * HUGE + "</answer>",
    "<answer>" + "[" * HUGE + "</answer>",
    "<answer>" * (HUGE // 8),
    "<answer>" + "9" * HUGE + "</answer>",
    "<answer>" + "1+" * (HUGE // 2) + "1</answer>",
    "<answer>" + "\\frac{" * (HUGE // 6) + "</answer>",
    "<answer>" + "９" * HUGE + "</answer>",
    "<answer>" + " a" * (HUGE // 2) + "</answer>",
)
# What a policy may write that works on a task whose gold is GOLD, for functions without examples.
GOLD, OTHER_GOLD = "7", "8"
ATTEMPTS = (
    *("7", "8", "So the answer is 7.", "So \\boxed{7}.", "I do not know."),
    *("<answer>7</answer>", "<think>\n3 + 4\n</think>\n<answer>7</answer>"),
)
GENERATED = (*ATTEMPTS, *(text for text in HOSTILE if isinstance(text, str)))
# Python code that leaves a trace if it is run.
CODE = "__import__('pathlib').Path({!r}).touch()"
# What may stand in a column in place of its value.
JUNK = (None, "", "no such value", -1, float("nan"))
REWARD_RULES: dict[str, Rule] = {}
# What a trainer hands over beside the row.
QUESTION = [{"role": "user", "content": "?"}]
STATE = SimpleNamespace(global_step=0, max_steps=1)


@rule(REWARD_RULES, "it can be built the way trainers build it, and pickled")
def _built(cls: type[Reward]) -> Problems:
    # TRL takes any callable with a name; ms-swift calls cls(args=args).
    for reward in (cls(), cls(args=object())):
        if reward.__name__ != cls.__name__:
            yield f"its __name__ is {reward.__name__!r}, and ms-swift logs it as {cls.__name__!r}"
    # A function without a name cannot be pickled, so the reward must not keep its `args`.
    pickled = pickle.dumps(cls(args=lambda: None))
    if not isinstance(pickle.loads(pickled), cls):
        yield "a pickled and loaded reward has another class"


@rule(REWARD_RULES, "its examples earn what they declare, with declared reasons")
def _exemplified(cls: type[Reward]) -> Problems:
    if not cls.examples:
        yield (
            "it has no examples, and without them nothing else can be tried: "
            "examples=[(completion, row, reward), ...] of @reward, or an attribute of the function"
        )
        return
    values = {example.reward for example in cls.examples}
    if len(values - {None}) < 2:
        yield "`examples` must have a completion that earns the most and one that earns less"
    if cls().columns and None not in values:
        yield "`examples` must have a row that cannot be graded, with reward None"
    for number, example in enumerate(cls.examples, start=1):
        grade = _grade(cls(), example.completion, example.row)
        if not _same(grade.reward, example.reward):
            yield f"example {number} earns {grade.reward} ({grade.reason}), and should earn {example.reward}"
        if grade.reason not in cls.reasons:
            yield f"example {number} gives the reason {grade.reason!r}, which is not one of `reasons`"


@rule(REWARD_RULES, "it requires its columns, ignores others and changes none")
def _columns(cls: type[Reward]) -> Problems:
    reward = cls()
    best = _best(cls)
    columns = _listed(cls, [best.row])
    for name in reward.columns:
        if name not in columns:
            yield f"the examples have no column {name!r}"
            return
        others = dict(columns)
        del others[name]
        if repr(name) not in _refusal(reward, [best.completion], others):
            yield f"a missing column {name!r} must raise a ValueError that names it"
        shorter = _listed(cls, [best.row] * 2)
        shorter[name] = columns[name]
        if repr(name) not in _refusal(reward, [best.completion] * 2, shorter):
            yield f"a column {name!r} of another length must raise a ValueError that names it"
    before = copy.deepcopy(columns)
    extra = {"trainer_state": object(), "finish_reason": [None], "other": ["x"]}
    (value,) = reward([best.completion], **{**extra, **columns})
    if not _same(value, best.reward):
        yield "it must ignore the columns that it does not declare"
    if columns != before:
        yield "it changes the columns, which other rewards also read"


@rule(REWARD_RULES, "texts and messages earn the same")
def _shapes(cls: type[Reward]) -> Problems:
    reward, completions, columns = _batch(cls, cls.examples)
    expected = reward(completions, **columns)
    if _as_ms_swift_calls(reward, completions, columns) != expected:
        yield "called with all columns that ms-swift's trainer has, it gives different rewards"
    of_texts: list[Any] = []
    of_parts: list[Any] = []
    of_a_tool: list[Any] = []
    for text in completions:
        of_texts.append([{"role": "assistant", "content": text}])
        of_parts.append([{"role": "assistant", "content": [{"type": "text", "text": text}]}])
        of_a_tool.append([{"role": "tool", "content": text}])
    for shape, batch in (("messages", of_texts), ("messages of parts", of_parts)):
        if _as_trl_calls(reward, batch, columns) != expected:
            yield f"completions as {shape}, which TRL passes, get different rewards than the same texts"
    # TRL ends a completion so where the turn after the call was cut off.
    if reward(of_a_tool, **columns) != reward([None] * len(completions), **columns):
        yield "it grades the messages of a tool as if the policy had written them"
    if any(value is not None and type(value) is not float for value in expected):
        yield f"a reward must be a float or None, got {expected!r:.80}"


def _as_ms_swift_calls(
    reward: Reward, completions: Sequence[str], columns: Mapping[str, Any]
) -> list[float | None]:
    """Texts, all columns as lists, and what ms-swift knows of each completion."""
    count = len(completions)
    rollout = {
        "messages": [[*QUESTION, *as_messages(text)] for text in completions],
        "request_id": [f"request-{number}" for number in range(count)],
        "prompt_id": ["prompt-0"] * count,
        "finish_reason": ["stop"] * count,
        "is_truncated": [False] * count,
        "rollout_infos": [{}] * count,
        "response_token_ids": [[1, 2]] * count,
        "trainer_state": STATE,
    }
    return reward(completions, **_without_own(reward, rollout), **columns)


def _as_trl_calls(
    reward: Reward, completions: Sequence[Any], columns: Mapping[str, Any]
) -> list[float | None]:
    """Message lists by name, and TRL's names for the same."""
    count = len(completions)
    rollout = {
        "prompts": [QUESTION] * count,
        "completion_ids": [[1, 2]] * count,
        "trainer_state": STATE,
        "log_extra": _log_nothing,
        "log_metric": _log_nothing,
    }
    return reward(completions=completions, **_without_own(reward, rollout), **columns)


def _without_own(reward: Reward, rollout: Mapping[str, Any]) -> dict[str, Any]:
    """What a trainer has beside the columns of the examples, on which a grade may depend."""
    own = {*reward.columns, *reward.optional_columns}
    if isinstance(reward, FunctionReward):
        own.update(reward.signature.trainers)
    return {name: values for name, values in rollout.items() if name not in own}


def _log_nothing(name: str, values: Any) -> None:
    """In place of TRL's `log_extra` and `log_metric`."""


@rule(REWARD_RULES, "a batch is graded like its completions one by one")
def _batches(cls: type[Reward]) -> Problems:
    # Each example with others before and behind it: what a batch shares must not depend on its order.
    examples = [*cls.examples, *reversed(cls.examples)]
    reward, completions, columns = _batch(cls, examples)
    together = reward.grades(completions, **columns)
    if len(together) != len(examples):
        yield f"it gives {len(together)} rewards for {len(examples)} completions"
    for example, other in zip(examples, together, strict=False):
        one = _grade(cls(), example.completion, example.row)
        if not _same(one.reward, other.reward) or one.reason != other.reason:
            yield f"{shown(example.completion)} gets {one} alone, and {other} among others"
            return
    if reward.grades([], **{name: [] for name in columns}) != []:
        yield "an empty batch must give an empty list"


@rule(REWARD_RULES, "its explanations agree with its rewards")
def _explained(cls: type[Reward]) -> Problems:
    reward = cls()
    best = _best(cls)
    cases: list[tuple[Any, Row]] = [(example.completion, example.row) for example in cls.examples]
    cases += [("", best.row), (None, best.row)]
    for completion, row in cases:
        explanation = _explain(reward, completion, row)
        grade = _grade(reward, completion, row)
        if not _same(explanation.reward, grade.reward) or explanation.reason != grade.reason:
            explained = f"{explanation.reward} ({explanation.reason})"
            graded = f"{grade.reward} ({grade.reason})"
            yield f"`explain` says {explained} of {shown(completion)}, and the reward gives {graded}"
        if not explanation.rules:
            yield f"`explain` lists no rule for {shown(completion)}"


@rule(REWARD_RULES, "a row without a readable gold answer is not graded and raises no error")
def _golds(cls: type[Reward]) -> Problems:
    reward = cls()
    best = _best(cls)
    # Between two rows that can be graded: a bad gold must cost its own row alone.
    for name, value in product(best.row, JUNK):
        place = f"{value!r} in the column {name!r}"
        row = {**best.row, name: value}
        columns = _listed(cls, [best.row, row, best.row])
        before, grade, after = reward.grades([best.completion] * 3, **columns)
        if not (_same(before.reward, best.reward) and _same(after.reward, best.reward)):
            yield f"a row with {place} changes the rewards of other rows"
        if isinstance(reward, FunctionReward) and grade.reason == RAISED:
            error = _error(reward, best.completion, row)
            yield f"{place} makes it raise {error}: return None there"
        elif grade.reason not in reward.reasons:
            yield f"{place} gives the reason {grade.reason!r}, not one of `reasons`"
    grade = _grade(reward, best.completion, dict.fromkeys(best.row))
    if reward.columns and grade.reward is not None:
        yield f"a row with empty columns must give None, not {grade.reward}"


@rule(
    REWARD_RULES,
    "the same completion always earns the same: again, pickled, in threads, in another process",
)
def _repeatable(cls: type[Reward]) -> Problems:
    reward, completions, columns = _batch(cls, [*cls.examples] * 10)
    grade: Callable[[Reward], list[Grade]] = methodcaller("grades", completions, **columns)
    first = grade(reward)
    if grade(reward) != first:
        yield "the same completions get different rewards the second time"
    pickled = pickle.dumps(reward)
    if grade(pickle.loads(pickled)) != first:
        yield "a pickled and loaded reward gives different rewards"

    with ThreadPoolExecutor(4) as pool:
        by_thread = list(pool.map(grade, [reward] * 4))
    if by_thread != [first] * 4:
        yield "it gives different rewards in threads"

    # Without a limit of its own, since the rule as a whole has one.
    for _, elsewhere in map_within(grade, [reward], seconds=3600, start=int):
        if isinstance(elsewhere, Exception):
            raise elsewhere
        if elsewhere != first:
            yield "it gives different rewards in another process"


@rule(REWARD_RULES, "rows of other tasks are skipped")
def _routed(cls: type[Reward]) -> Problems:
    # A row without a task is anyone's: ms-swift's own datasets have no such column.
    reward = cls(tasks=("mine", "ours"))
    best = _best(cls)
    expected = {"mine": best.reward, "theirs": None, None: best.reward, "ours": best.reward}
    columns = _listed(cls, [best.row] * 4)
    values = reward([best.completion] * 4, **columns, task=list(expected))
    if len(values) != 4 or not all(map(_same, values, expected.values())):
        yield "rows of another task must give None, and other rows the same as without the column `task`"


@rule(REWARD_RULES, "it runs no code from completions")
def _runs_nothing(cls: type[Reward]) -> Problems:
    if cls.runs_code:
        return
    row = _best(cls).row
    with tempfile.TemporaryDirectory() as folder:
        # Seen on the disk, since a sandbox or a process of the reward's own would hide it from us.
        trace = Path(folder) / "trace"
        code = CODE.format(str(trace))
        completions = (
            code,
            f"<answer>{code}</answer>",
            f"<answer>1 + {code}</answer>",
            rf"\boxed{{{code}}}",
        )
        for completion in completions:
            _grade(cls(), completion, row)
            if trace.exists():
                yield f"it runs code from the completion {shown(completion)}"
                return


def _hostile(completion: object, cls: type[Reward]) -> Problems:
    reward = cls()
    row = _best(cls).row
    value, reason = _grade(reward, completion, row)
    # What a wrong answer is worth.
    least = min(example.reward for example in cls.examples if example.reward is not None)
    if isinstance(reward, FunctionReward) and reason == RAISED:
        yield f"{shown(completion)} makes it raise {_error(reward, completion, row)}"
    elif reason not in cls.reasons:
        yield f"{shown(completion)} gives the reason {reason!r}, which is not one of `reasons`"
    if value is None or not math.isfinite(value):
        yield f"{shown(completion)} earns {value}: every completion must be graded"
    elif cls.role == VERIFIER and value > least:
        yield f"{shown(completion)} earns {value}, more than a wrong answer"


for _number, _completion in enumerate(HOSTILE, start=1):
    _name = f"hostile text {_number} of {len(HOSTILE)} is graded and earns nothing"
    REWARD_RULES[_name] = partial(_hostile, _completion)


def _called(cls: type[Reward]) -> Problems:
    """For a function without examples: it can be called with anything, and says the same again.

    Raises:
        NotJudgedError: it can, which says nothing of what it pays.
    """
    reward = cls()
    # Some of them twice, as in a group, and with another gold: a function may keep what it pays by the
    # completion, or read the gold of the first row for all.
    completions = [*GENERATED, *ATTEMPTS]
    golds = [GOLD] * len(GENERATED) + [OTHER_GOLD] * len(ATTEMPTS)
    columns = _listed(cls, [dict.fromkeys(reward.columns, gold) for gold in golds])
    called = f"{len(completions)} generated completions"
    if reward.columns:
        called += f" and {GOLD!r} or {OTHER_GOLD!r} in {', '.join(reward.columns)}"
    needs = "that needs examples=[(completion, row, reward), ...] of @reward, or function.examples"
    before = copy.deepcopy(columns)
    try:
        grades = reward.grades(completions, **columns)
    except InputError as error:  # raised on every completion
        # What it returns does not depend on what is in the columns.
        if not reward.columns or isinstance(error.__cause__, NoRewardError):
            raise
        problem = f"called with {called}, it raised on each ({error}): your rows may have"
        raise NotJudgedError(
            f"{problem} something else there, so nothing was judged: {needs}"
        ) from error
    values = []
    for completion, gold, grade in zip(completions, golds, grades, strict=True):
        values.append(grade.reward)
        if grade.reason == RAISED:
            row = dict.fromkeys(reward.columns, gold)
            yield f"{shown(completion)} makes it raise {_error(reward, completion, row)}"
            return
    if columns != before:
        yield "it changes the columns, which other rewards also read"
        return
    if not all(map(_same, reward(completions, **columns), values)):
        yield "the same completions get different rewards the second time"
        return
    backwards = {}
    for name, column in columns.items():
        # What is no list is of the whole batch, as the trainer's state.
        backwards[name] = column[::-1] if isinstance(column, list) else column
    if not all(map(_same, reward(completions[::-1], **backwards)[::-1], values)):
        yield (
            "in reverse order the same completions get different rewards: it has to return them in the order "
            "of the completions, and to read each one's own row"
        )
        return
    messages = list(map(as_messages, completions))
    if not all(map(_same, _as_trl_calls(reward, messages, columns), values)):
        yield "completions as messages, which TRL passes, get different rewards than the same texts"
        return
    numbers = [value for value in values if value is not None]
    if None in values and numbers and min(numbers) == max(numbers) > 0:
        yield (
            f"it gives {numbers[0]:g} to some completions and None to all others: None says that a row cannot be "
            "graded, and a trainer leaves it out; what is wrong earns 0.0"
        )
        return
    paid = f"{min(numbers):g} to {max(numbers):g}" if numbers else "None to all"
    raise NotJudgedError(
        f"called with {called}, as texts and as messages, it raised nothing and gave {paid}. Not judged: "
        f"whether right answers earn more than wrong ones, and rows without a gold None; {needs}"
    )


WITHOUT_EXAMPLES: dict[str, Rule] = {
    "it can be built the way trainers build it, and pickled": _built,
    "generated completions are graded": _called,
}


def rules_of(cls: type[Reward]) -> dict[str, Rule]:
    """The rules that can be tried on a reward: of one without examples those that need none."""
    if cls.examples:
        return REWARD_RULES
    without = (_built, _exemplified)
    return {name: each for name, each in REWARD_RULES.items() if each in without}


def _best(cls: type[Reward]) -> Example:
    """The example that earns the most."""
    graded = [example for example in cls.examples if example.reward is not None]
    if not graded:
        raise ValueError("it has no `examples` to check")
    return max(graded, key=lambda example: example.reward or 0.0)


def _listed(cls: type[Reward], rows: Sequence[Row]) -> dict[str, Any]:
    """The rows as columns, and what a function needs of the trainer. A row that lacks a column has
    None in it.
    """
    columns: dict[str, Any] = {}
    for number, row in enumerate(rows):
        for name, value in row.items():
            column = columns.setdefault(name, [None] * len(rows))
            column[number] = value
    if not issubclass(cls, FunctionReward):
        return columns
    of_trainer: dict[str, Any] = {
        "trainer_state": STATE,
        "log_extra": _log_nothing,
        "log_metric": _log_nothing,
    }
    for name in PROMPTS:
        # A copy, since a function that changes it would change it for all rules.
        of_trainer[name] = copy.deepcopy([QUESTION] * len(rows))
    for name in TOKENS:
        of_trainer[name] = [[1, 2]] * len(rows)
    for name in cls.signature.trainers:
        if name in of_trainer:
            columns.setdefault(name, of_trainer[name])
    return columns


def _batch(
    cls: type[Reward], examples: Sequence[Example]
) -> tuple[Reward, list[str], dict[str, list]]:
    """A reward, with the completions and the columns of these examples."""
    _best(cls)  # raises where no example has a reward
    completions = [example.completion for example in examples]
    columns = _listed(cls, [example.row for example in examples])
    return cls(), completions, columns


def _grade(reward: Reward, completion: object, row: Row) -> Grade:
    return reward.grades([completion], **_listed(type(reward), [row]))[0]


def _explain(reward: Reward, completion: object, row: Row) -> Explanation:
    whole = {}
    for name, values in _listed(type(reward), [row]).items():
        whole[name] = values[0] if isinstance(values, list) else values
    return reward.explain(completion, whole)


def _error(reward: Reward, completion: object, row: Row) -> str:
    """What a function raises for a completion."""
    return _explain(reward, completion, row).rules[0].detail


def _refusal(reward: Reward, completions: list[str], columns: dict[str, list]) -> str:
    try:
        reward(completions, **columns)
    except ValueError as error:
        return str(error)
    return ""


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-4)
