"""verifiers 0.4 and prime-rl: the datasets of this package as a taskset.

verifiers imports a taskset by the name of a top-level module, which is `swift_rlvr_taskset`:

    vf-eval swift_rlvr_taskset --env.taskset.dataset countdown:train.jsonl

In the other direction, `scored_by` makes a reward for `--reward_funcs` of a task of verifiers.
"""

import asyncio
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from verifiers.v1 import (
    AgentConfig,
    AgentInfo,
    MessageNode,
    Task,
    TaskConfig,
    TaskData,
    Taskset,
    TasksetConfig,
    Trace,
    TraceTask,
)
from verifiers.v1.types import AssistantMessage
from verifiers.v1.utils.decorators import reward

from swift_rlvr.adapters.grading import grade
from swift_rlvr.adapters.rows import refuse_media
from swift_rlvr.tasks import RowError
from swift_rlvr.tasks.sources import parse_source
from swift_rlvr.tasks.task import with_default_system
from swift_rlvr.tasks.tool_calls import refuse_native_tools


class RewardConfig(TaskConfig):
    """Which rewards grade: by default the verifier of the row's task."""

    reward_funcs: list[str] = []
    reward_weights: list[float] = []


class RlvrConfig(TasksetConfig):
    """Which rows: as in `--dataset`, such as countdown:train.jsonl or gsm8k."""

    dataset: str = "countdown"
    use_hf: bool = False
    task: RewardConfig = RewardConfig()


class RlvrData(TaskData):
    """A row. The prompt is in verifiers' own fields."""

    row: dict[str, Any]


class RlvrTask(Task[RlvrData, Any, RewardConfig]):
    """One question, graded once at the end."""

    @reward
    async def swift_rlvr(self, trace: Trace) -> float:
        """The score of the last message, 0.0 where no reward grades the row; each reward and each
        reason are in the trace.
        """
        # Not only the assistant's: who is cut off after a tool has written has no answer.
        messages = [trace.last_message.model_dump()] if trace.nodes else []
        config = self.config
        # verifiers takes one number. Why it is so can be read in the trace, and each reward's mean in the metrics.
        grades = grade(messages, self.data.row, config.reward_funcs, config.reward_weights)
        score = grades.pop("score")
        trace.info["swift_rlvr"] = grades
        for name, value in grades.items():
            if isinstance(value, float):
                trace.record_metric(name, value)
        return score or 0.0


class RlvrTaskset(Taskset[RlvrTask, RlvrConfig]):
    """The rows of a dataset that can be used."""

    def load(self) -> Iterator[RlvrTask]:
        """A task for each row, in order."""
        source = parse_source(self.config.dataset, self.config.use_hf)
        for _, raw in source.rows():
            # As ms-swift's loader does it; `dataset check` counts such rows.
            try:
                row = source.task.preprocess(raw)
            except RowError:
                continue
            refuse_native_tools([row], "verifiers")
            refuse_media(row)
            turns = with_default_system(row.pop("messages"), source.task.system)
            system = turns.pop(0)["content"] if turns[0]["role"] == "system" else None
            data = RlvrData(prompt=turns, system_prompt=system, row=row)
            yield RlvrTask(data, self.config.task)


def scored_by(make_task: Callable[..., Task]) -> Callable[..., Any]:
    """A reward that scores completions as a task of verifiers does, with all its `@reward` methods.

    In a file of your own, ``--reward_funcs mine.py:gsm8k``:

        def task(question, solution):
            return GSM8KTask(GSM8KData(prompt=question, answer=solution))

        gsm8k = scored_by(task)

    Methods that need a runtime are left out, as verifiers does without one.

    make_task: makes the task of a row; its parameters are the columns.
    """

    async def score(completion: str, row: dict[str, Any]) -> float:
        task = make_task(**row)
        recorded = TraceTask(type=type(task).__name__, data=task.data)
        trace: Trace = Trace(task=recorded, agent=AgentInfo(config=AgentConfig()))
        trace.nodes.append(MessageNode(message=AssistantMessage(content=completion), sampled=True))
        await task.score(trace)
        return trace.reward

    async def scored(completions: Sequence[str], **columns: Sequence[Any]) -> list[float]:
        rows = []
        for index in range(len(completions)):
            rows.append({name: values[index] for name, values in columns.items()})
        return await asyncio.gather(*map(score, completions, rows))

    # A plain function tells by its parameters which columns it needs.
    own = inspect.Parameter("completions", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [own, *inspect.signature(make_task).parameters.values()]
    scored.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return scored
