"""OpenRLHF: ``--reward.remote_url PATH_OF_THIS_FILE``; the label is a row's, see `row_of`."""

from collections.abc import Sequence
from typing import Any

import torch

from swift_rlvr.adapters.grading import grade, row_of, same_keys


def reward_func(
    queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **others: Any
) -> dict[str, Any]:
    """The scores of B completions, (B,), 0.0 where no reward grades the row, and each reward in the
    logs.

    OpenRLHF logs plain means and wants the same names for every row. So a reward is logged as NAME,
    0.0 where it does not grade, and as NAME_graded, 1.0 or 0.0: the mean over the rows that it
    grades is the quotient of the two.

    A query is a prompt with its completion. ValueError if it does not begin with the prompt,
    which OpenRLHF cuts when it is too long: the example in a prompt must not be graded.
    """
    scores = []
    logs: dict[str, list[float]] = {}
    for query, prompt, label in zip(queries, prompts, labels, strict=True):
        if not query.startswith(prompt):
            raise ValueError(
                f"a query does not begin with its prompt {prompt[:60]!r}; it may have been truncated"
            )
        grades = same_keys(grade(query[len(prompt) :], row_of(label, prompts=prompt)))
        scores.append(grades.pop("score") or 0.0)
        for name, value in grades.items():
            if not name.endswith("_reason"):  # logs are numbers
                logs.setdefault(name, []).append(value or 0.0)
                logs.setdefault(f"{name}_graded", []).append(float(value is not None))
    rewards = torch.tensor(scores, dtype=torch.float)
    extra_logs = {name: torch.tensor(values) for name, values in logs.items()}
    return {"rewards": rewards, "scores": rewards, "extra_logs": extra_logs}
