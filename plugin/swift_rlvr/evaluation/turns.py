"""Success with feedback: the model answers again after what the verifier says, up to N turns; beside N blind attempts.

The first turns are the evaluation's own samples, so the two are compared on the same tasks and the same model.
"""

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from swift_rlvr.data.grading import grade_samples
from swift_rlvr.environments import FeedbackEnvironment
from swift_rlvr.evaluation.paired import paired_shares
from swift_rlvr.evaluation.sampled import Rows
from swift_rlvr.evaluation.summary import summarize
from swift_rlvr.rewards import REWARDS
from swift_rlvr.runs.records import Record
from swift_rlvr.runs.statistics import by_row, mean_interval, pass_at_k
from swift_rlvr.sampling import Completion, Engine, mixed_seed


def take_turns(
    engine: Engine, rows: Rows, first: Sequence[Record], max_turns: int, on_progress: Callable[[float], None]
) -> list[Record]:
    """One record for each of `first`, samples of some rows: of the last answer of the conversation that it begins.

    `turn` is the answer's number, `tokens` are those of all answers, and `messages` the conversation before it, with
    earlier answers and feedback. An answer that was cut off is the last one.
    """
    conversations = [Conversation(rows, record, max_turns) for record in first]
    for turn in range(1, max_turns):
        going = [each for each in conversations if each.feedback is not None]
        if not going:
            break
        seed = mixed_seed(engine.settings.seed, (going[0].index + 1) * max_turns + turn)
        answers = engine.sample([each.messages for each in going], num_generations=1, seed=seed)
        for each, (answer,) in zip(going, answers, strict=True):
            each.answer(answer)
        on_progress(turn / max_turns)
    answered = [(rows.prepared[each.index], each.messages, [each.answers[-1]]) for each in conversations]
    prepared, messages, groups = map(list, zip(*answered, strict=True))
    graded = grade_samples(rows.task, prepared, messages, groups)
    for record, before, each in zip(graded, first, conversations, strict=True):
        record.index, record.sample, record.seed = before.index, before.sample, before.seed
        record.tokens, record.turn = sum(answer.tokens for answer in each.answers), len(each.answers)
    return graded


class Conversation:
    """A row's, that a sample begins. messages: up to where the model answers; feedback: None once it is over."""

    def __init__(self, rows: Rows, first: Record, max_turns: int):
        row = rows.prepared[first.index]
        self.index, self.messages, self.answers = first.index, list(first.messages or ()), list[Completion]()
        self.environment = FeedbackEnvironment(REWARDS[rows.task.of(row).verifier or ""](), max_turns)
        self.environment.reset(row)
        self.answer(Completion(first.completion, first.tokens or 0, first.finish or "stop"))

    def answer(self, completion: Completion) -> None:
        """Take the model's next answer, and add it with its feedback to the messages, if there is any."""
        self.answers.append(completion)
        turn = self.environment.step(completion.text)
        self.feedback = None if completion.finish == "length" else turn.feedback
        if self.feedback is not None:
            self.messages.append({"role": "assistant", "content": completion.text})
            self.messages.append({"role": "user", "content": self.feedback})


def summarize_turns(attempts: Sequence[Record], last: Sequence[Record], max_turns: int) -> dict[str, Any]:
    """The summary of the conversations, with `blind`: as many attempts as turns without feedback, and `paired` with it.

    attempts: the records of the first turns. A task with fewer of them than turns has no part in the comparison.
    `mended` is the share of right last answers where the first one was followed up, `mended_blind` that of the other
    attempts at the same tasks. Blind attempts get another try where an answer is cut off too, conversations do not.
    """
    graded = by_row(attempts)
    blind = {
        task: pass_at_k(len(right), sum(right), max_turns) for task, right in graded.items() if len(right) >= max_turns
    }
    shares = {task: fmean(right) for task, right in by_row(last).items() if task in blind}
    continued = [record for record in last if (record.turn or 1) > 1 and record.success is not None]
    # All of them were wrong at first, so another attempt is one of the task's other samples.
    others = [graded[record.index] for record in continued if len(graded[record.index]) > 1]
    return {
        **summarize(last),
        "max_turns": max_turns,
        "mean_turns": fmean([record.turn or 1 for record in last]),
        "mended": fmean([bool(record.success) for record in continued]) if continued else None,
        "mended_blind": fmean([sum(right) / (len(right) - 1) for right in others]) if others else None,
        "blind": fmean(list(blind.values())) if blind else None,
        "blind_interval": list(mean_interval(list(blind.values()))) if blind else None,
        "paired": paired_shares(blind, shares),
    }
