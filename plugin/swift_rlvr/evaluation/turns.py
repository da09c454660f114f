"""Success with feedback: the model answers again after what the verifier says, up to N turns; beside N blind attempts.

The first turns are the evaluation's own samples, so the two are compared on the same tasks and the same model.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from swift_rlvr.data.grading import grade_samples
from swift_rlvr.environments import FeedbackEnvironment
from swift_rlvr.evaluation.paired import paired_shares
from swift_rlvr.evaluation.summary import summarize
from swift_rlvr.rewards import REWARDS
from swift_rlvr.runs.records import Messages, Record
from swift_rlvr.runs.statistics import by_row, mean_interval, pass_at_k
from swift_rlvr.sampling import Completion, Engine
from swift_rlvr.sampling.progress import sample_with_bar
from swift_rlvr.tasks import Task


def take_turns(
    engine: Engine,
    seed: int,
    task: Task,
    rows: Sequence[Mapping[str, Any]],
    conversations: Sequence[Messages],
    first: Sequence[Sequence[Completion]],
    max_turns: int,
    console: Console,
) -> list[Record]:
    """One record for each conversation that `first`, the samples of each row, begins.

    As in `grade_samples`, of its last answer: `turn` is its number, `tokens` are those of all answers, and `messages`
    the conversation before it, with earlier answers and feedback. An answer that was cut off is the last one.
    """
    talks = [
        Talk(conversations[index], each, FeedbackEnvironment(REWARDS[task.of(row).verifier or ""](), max_turns), row)
        for index, (row, group) in enumerate(zip(rows, first, strict=True))
        for each in group
    ]
    for turn in range(1, max_turns):
        going = [talk for talk in talks if talk.feedback is not None]
        if not going:
            break
        asked = [talk.messages for talk in going]
        for talk, (answer,) in zip(going, sample_with_bar(engine, asked, console, n=1, seed=seed + turn), strict=True):
            talk.answer(answer)
    ended, graded = iter(talks), []
    groups = [[next(ended).answers[-1] for _ in group] for group in first]
    for record, talk in zip(grade_samples(task, rows, conversations, groups), talks, strict=True):
        record.tokens = sum(answer.tokens for answer in talk.answers)
        record.turn, record.messages = len(talk.answers), talk.messages
        graded.append(record)
    return graded


class Talk:
    """One conversation. messages: up to where the model answers; feedback: None once it is over."""

    def __init__(self, messages: Messages, first: Completion, environment: FeedbackEnvironment, row: Mapping[str, Any]):
        self.messages, self.start, self.environment = [*messages], len(messages), environment
        self.answers: list[Completion] = []
        environment.reset(row)
        self.answer(first)

    def answer(self, completion: Completion) -> None:
        self.answers.append(completion)
        step = self.environment.step(completion.text)
        self.feedback = None if completion.finish == "length" else step.feedback
        if self.feedback is not None:
            self.messages.append({"role": "assistant", "content": completion.text})
            self.messages.append({"role": "user", "content": self.feedback})


def summarize_turns(attempts: Sequence[Record], talks: Sequence[Record], max_turns: int) -> dict[str, Any]:
    """The summary of the conversations, with `blind`: as many attempts as turns without feedback, and `paired` with it.

    attempts: the records of the first turns. A task with fewer of them than turns has no part in the comparison.
    `mended` is the share of right last answers where the first one was followed up, `mended_blind` that of the other
    attempts at the same tasks. Blind attempts get another try where an answer is cut off too, conversations do not.
    """
    graded = by_row(attempts)
    blind = {
        task: pass_at_k(len(right), sum(right), max_turns) for task, right in graded.items() if len(right) >= max_turns
    }
    shares = {task: _mean(right) for task, right in by_row(talks).items() if task in blind}
    continued = [record for record in talks if (record.turn or 1) > 1 and record.success is not None]
    # All of them were wrong at first, so another attempt is one of the task's other samples.
    others = [graded[record.index] for record in continued if len(graded[record.index]) > 1]
    return {
        **summarize(talks),
        "max_turns": max_turns,
        "mean_turns": _mean([record.turn or 1 for record in talks]),
        "mended": _mean([bool(record.success) for record in continued]) if continued else None,
        "mended_blind": _mean([sum(right) / (len(right) - 1) for right in others]) if others else None,
        "blind": _mean(list(blind.values())) if blind else None,
        "blind_interval": list(mean_interval(list(blind.values()))) if blind else None,
        "paired": paired_shares(blind, shares),
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
