"""The run's own rewards on a few completions, called as ms-swift's trainer calls them."""

import copy
import itertools
import math
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from swift_rlvr.rewards.function import FunctionReward


@dataclass(frozen=True)
class Trial:
    """What the rewards of a run make of some completions.

    paid: by name, what each reward pays for each row, or the error that it raises. changed: by the
    name of a reward that changes what it is handed, the argument; the rewards after it get that.
    """

    paid: dict[str, list[float | None] | str] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)


def try_rewards(names: Sequence[str], arguments: Any, rows: Sequence[Mapping[str, Any]]) -> Trial:
    """Grade rows with all rewards of a run in one call, as the trainer does, so that they share their
    arguments.

    rows: with `messages`, of which the last is the completion, and the other columns. All of them
    make one batch, in which a column is None in rows that lack it.

    Empty where this version of ms-swift keeps that call elsewhere.
    """
    import torch
    from swift.rewards import orms
    from transformers import TrainerState

    try:
        from swift.rl_core.data import GRPOSample
        from swift.rl_core.grpo_algorithm import compute_rewards_per_func
    except ImportError:  # before 4.5
        return Trial()

    training_arguments = getattr(arguments, "training_args", arguments)

    def paid_by(rewards: Sequence[Any]) -> list[list[float | None]]:
        # Of copies: a reward may change what it is handed, and one that is tried alone afterwards begins
        # with what the trainer has.
        samples = []
        for number, row in enumerate(copy.deepcopy(list(rows))):
            text = row["messages"][-1]["content"]
            of_the_rollout = {
                "prompt_id": f"prompt-{number}",
                "request_id": f"request-{number}",
                "finish_reason": "stop",
                "rollout_infos": {},
                # As many as a text of this length has, about.
                "response_token_ids": [0] * (len(text) // 4 + 1),
            }
            samples.append(GRPOSample.from_row({**row, **of_the_rollout}))
        paid = compute_rewards_per_func(
            samples, list(rewards), None, torch.device("cpu"), trainer_state=TrainerState()
        )
        for reward in rewards:
            if isinstance(reward, FunctionReward):
                reward.end_if_it_only_fails()  # a training would wait for more completions
        return [
            [None if math.isnan(value) else value for value in values] for values in paid.T.tolist()
        ]

    rewards: dict[str, Any] = {}
    paid: dict[str, list[float | None] | str] = {}
    for name in names:
        try:
            rewards[name] = orms[name](args=training_arguments)
        except (Exception, SystemExit) as error:  # of somebody else's class, whatever it is
            paid[name] = _described(error)
    # A reward after each one that sees what it has done to the arguments of all.
    before: dict[str, Any] = {}
    changed: dict[str, str] = {}
    in_turn = [partial(_note_changes, "", before, changed)]
    for name, reward in rewards.items():
        in_turn += [reward, partial(_note_changes, name, before, changed)]
    try:
        values = paid_by(in_turn)[1::2]
    except (Exception, SystemExit):
        # Which one it was, and what the others pay, is seen of each alone.
        for name, reward in rewards.items():
            try:
                (paid[name],) = paid_by([reward])
            except (Exception, SystemExit) as error:
                problem = _described(error)
                # A task renames columns, `answer` to `solution` for one: whoever wrote the reward saw the file's.
                is_missing = isinstance(error, TypeError) and "required" in str(error)
                if is_missing or isinstance(error, KeyError):
                    columns = sorted({*itertools.chain(*rows)} - {"messages"})
                    problem += f" (the columns of the rows are {', '.join(columns) or 'none'})"
                paid[name] = problem
        return Trial(paid)
    paid |= dict(zip(rewards, values, strict=True))
    for name, of_reward in zip(rewards, values, strict=True):
        # It is more than a wrong completion earns, and the mean of its group is no number for anybody in it.
        if any(math.isinf(value) for value in of_reward if value is not None):
            paid[name] = (
                "it pays inf or -inf, so that the advantages of the whole group would be NaN"
            )
    return Trial(paid, changed)


def _note_changes(
    name: str,
    before: dict[str, Any],
    changed: dict[str, str],
    completions: list[str],
    trainer_state: Any,
    **columns: Any,
) -> list[float]:
    """A reward that pays nothing and compares the arguments of all rewards with what they were before
    the one of this name; "" is before the first.
    """
    now = {"completions": completions, **columns}
    if now != before:
        if name:
            changed[name] = next(each for each in now if now[each] != before[each])
        before.update(copy.deepcopy(now))
    return [0.0] * len(completions)


def _described(error: BaseException) -> str:
    """An error and, where it has a cause in somebody's function, the line that raised that."""
    text = f"{type(error).__name__}: {error}"
    if error.__cause__ is None:
        return text
    while error.__cause__ is not None:
        error = error.__cause__
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{text} [{where.filename}, line {where.lineno}: {where.line}]"
