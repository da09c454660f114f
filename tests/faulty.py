"""A reward and a task that keep every rule, and variants of which each breaks one. A module, so that they pickle."""

import random
from dataclasses import dataclass, replace

from swift_rlvr.rewards import Example, Explanation, Grade, Reward
from swift_rlvr.settings import setting
from swift_rlvr.tasks import RowError, Task
from swift_rlvr.tasks.task import Gold


def answer_of(text):
    return (text or "").partition("<answer>")[2].partition("</answer>")[0].strip()


class Good(Reward):
    """1.0 for the number of the row.

    >>> Good()(["<answer>7</answer>"], number=[7])
    [1.0]
    """

    name, role, columns = "external_good", "verifier", ("number",)
    reasons = ("right", "wrong", "bad gold")
    examples = (
        Example("<answer>7</answer>", {"number": 7}, 1.0),
        Example("<answer>8</answer>", {"number": 7}, 0.0),
        Example("<answer>7</answer>", {"number": None}, None),
    )

    def grade(self, text, row):
        if not isinstance(row["number"], int):
            return Grade(None, "bad gold")
        right = answer_of(text) == str(row["number"])
        return Grade(1.0, "right") if right else Grade(0.0, "wrong")


class TakesNoArguments(Good):
    def __init__(self):
        super().__init__()


class KeepsTheArguments(Good):
    def __init__(self, args=None, **parameters):
        super().__init__(args, **parameters)
        self.args = args


class SameReasonTwice(Good):
    reasons = ("right", "wrong", "bad gold", "wrong")


class LongReason(Good):
    reasons = ("right", "wrong", "bad gold", "a reason that nobody wants to read in a table of reasons")


class UnfrozenParameters(Good):
    @dataclass
    class Parameters:
        tasks: tuple[str, ...] = setting((), "tasks")


class BadName(Good):
    name = "external_Bad-Name"


class NoExamples(Good):
    examples = ()


class NoUngradedExample(Good):
    examples = Good.examples[:2]


class WrongExample(Good):
    examples = (*Good.examples, Example("<answer>07</answer>", {"number": 7}, 1.0))


class UndeclaredReason(Good):
    reasons = ("right", "wrong")


class MissesNoColumn(Good):
    def grades(self, completions, **columns):
        return super().grades(completions, **{"number": [None] * len(completions), **columns})


class ChangesTheColumns(Good):
    def grades(self, completions, **columns):
        grades = super().grades(completions, **columns)
        columns["number"][0] = 0
        return grades


class ReadsStringsOnly(Good):
    def grades(self, completions, **columns):
        return super().grades([text if isinstance(text, str) else "" for text in completions], **columns)


class GivesWholeNumbers(Good):
    def grade(self, text, row):
        reward, reason = super().grade(text, row)
        return Grade(reward and int(reward), reason)


class RemembersTheBatch(Good):
    def grade_batch(self, texts, columns):
        grades = super().grade_batch(texts, columns)
        return [Grade(0.0, "wrong")] * len(grades) if len(set(texts)) > 1 else grades


class ExplainsOtherwise(Good):
    def explain_text(self, text, row):
        return Explanation(*self.grade(text, row), text, [])


class RaisesForGolds(Good):
    def grade(self, text, row):
        right = answer_of(text) == str(row["number"] + 0)
        return Grade(1.0, "right") if right else Grade(0.0, "wrong")


class ZeroForGolds(Good):
    def grade(self, text, row):
        right = answer_of(text) == str(row["number"])
        return Grade(1.0, "right") if right else Grade(0.0, "wrong")


class Random(Good):
    def grade(self, text, row):
        reward, reason = super().grade(text, row)
        return Grade(reward and random.random(), reason)


PROCESS = random.SystemRandom().random()


class OtherInEachProcess(Good):
    examples = (*Good.examples, *(Example(f"<answer>{n}</answer>", {"number": 7}, 0.0) for n in range(10, 50)))

    def grade(self, text, row):
        reward, reason = super().grade(text, row)
        return (
            Grade(0.0, "right" if random.Random(f"{PROCESS} {text}").random() < 0.5 else "wrong")
            if reward == 0.0
            else Grade(reward, reason)
        )


class IgnoresTheTask(Good):
    def grades(self, completions, **columns):
        columns.pop("task", None)
        return super().grades(completions, **columns)


class Evaluates(Good):
    def grade(self, text, row):
        if not isinstance(row["number"], int):
            return Grade(None, "bad gold")
        try:
            right = len(answer_of(text)) < 200 and "**" not in text and eval(answer_of(text)) == row["number"]
        except BaseException:
            right = False
        return Grade(1.0, "right") if right else Grade(0.0, "wrong")


class RaisesForText(Good):
    def grade(self, text, row):
        grade = super().grade(text, row)
        if grade.reward is not None:
            text.index("<answer>")
        return grade


class PaysForNothing(Good):
    def grade(self, text, row):
        reward, reason = super().grade(text, row)
        return Grade(1.0, "right") if reward == 0.0 and not text else Grade(reward, reason)


class GradesNaN(Good):
    def grade(self, text, row):
        reward, reason = super().grade(text, row)
        return Grade(float("nan"), "wrong") if answer_of(text) == "nan" else Grade(reward, reason)


class LeavesUngraded(Good):
    def grade(self, text, row):
        return super().grade(text, row) if text else Grade(None, "bad gold")


class OtherReasonForLongTexts(Good):
    def grade(self, text, row):
        return super().grade(text, row) if len(text or "") < 1000 else Grade(0.0, "too long")


# Tasks. Functions of their own, so that they pickle.


def preprocess(row):
    if not isinstance(row.get("sum"), str) or not row["sum"].strip():
        raise RowError("sum", "expected a sum")
    turns = [{"role": "system", "content": "Think, then answer."}, {"role": "user", "content": row["sum"]}]
    return {"messages": turns, "solution": "7", "task": "sums"}


def identity(row):
    return preprocess(row)["messages"][1]["content"]


def gold(row):
    preprocess(row)
    return Gold("7", "It is 7.", "7")


TASK = Task(
    name="sums",
    columns=("sum",),
    preprocess=preprocess,
    identity=identity,
    gold=gold,
    system="Think, then answer.",
    verifier="external_boxed",
    further_rewards=(),
    layout="{reasoning}\\boxed{{{answer}}}",
    examples=({"sum": "3 + 4"}, {"sum": "5 + 2"}),
)


def changes_the_row(row):
    row["seen"] = True
    return preprocess(row)


def without_solution(row):
    return {name: value for name, value in preprocess(row).items() if name != "solution"}


def with_a_tuple(row):
    return {**preprocess(row), "solution": ("7",)}


def with_random(row):
    return {**preprocess(row), "solution": str(random.random())}


def messages_end_with_assistant(row):
    prepared = preprocess(row)
    return {**prepared, "messages": [*prepared["messages"], {"role": "assistant", "content": "7"}]}


def empty_message(row):
    prepared = preprocess(row)
    return {**prepared, "messages": [prepared["messages"][0], {"role": "user", "content": " "}]}


def another_task(row):
    return {**preprocess(row), "task": "other"}


def raises_key_error(row):
    return preprocess({"sum": row["sum"]})


def accepts_anything(row):
    return {
        "messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}],
        "solution": "7",
        "task": "sums",
    }


def blames_another_column(row):
    try:
        return preprocess(row)
    except RowError:
        raise RowError("question", "missing") from None


def same_identity(row):
    preprocess(row)
    return "a sum"


def identity_of_all_columns(row):
    preprocess(row)
    return repr(row)


def wrong_gold(row):
    return replace(gold(row), answer="8")


def no_gold(row):
    preprocess(row)
    return None


TASKS = {
    "columns and rewards are declared": [
        replace(TASK, columns=()),
        replace(TASK, columns="sum"),
        replace(TASK, verifier=None),
        replace(TASK, verifier="external_unknown"),
        replace(TASK, reward_columns=("answer",)),
    ],
    "has examples": [
        replace(TASK, examples=()),
        replace(TASK, examples=({"sums": "3 + 4"},)),
        replace(TASK, gold=no_gold),
    ],
    "rows have messages": [
        replace(TASK, preprocess=changes_the_row),
        replace(TASK, preprocess=without_solution),
        replace(TASK, preprocess=with_a_tuple),
        replace(TASK, preprocess=with_random),
    ],
    "messages are well-formed": [
        replace(TASK, preprocess=messages_end_with_assistant),
        replace(TASK, preprocess=empty_message),
        replace(TASK, system_in_rows=False),
    ],
    "right answers earn all": [
        replace(TASK, gold=wrong_gold),
        replace(TASK, preprocess=without_solution),
        replace(TASK, verifier="external_accuracy"),
        replace(TASK, verifier="external_length"),
    ],
    "identity of a row": [replace(TASK, identity=same_identity), replace(TASK, identity=identity_of_all_columns)],
    "refused with RowError": [
        replace(TASK, preprocess=raises_key_error),
        replace(TASK, preprocess=accepts_anything),
        replace(TASK, preprocess=blames_another_column),
    ],
    "pickled": [replace(TASK, preprocess=lambda row: preprocess(row))],
}
REWARDS = {
    "built as the trainers build it": [TakesNoArguments, KeepsTheArguments],
    "name, reasons and parameters": [SameReasonTwice, LongReason, UnfrozenParameters, BadName],
    "examples earn what they say": [NoExamples, NoUngradedExample, WrongExample, UndeclaredReason],
    "needs its columns": [MissesNoColumn, ChangesTheColumns],
    "both shapes": [ReadsStringsOnly, GivesWholeNumbers],
    "one by one": [RemembersTheBatch],
    "explanations": [ExplainsOtherwise],
    "without a gold": [RaisesForGolds, ZeroForGolds],
    "earns the same": [Random, OtherInEachProcess],
    "other tasks": [IgnoresTheTask],
    "runs nothing": [Evaluates],
    "hostile text": [RaisesForText, PaysForNothing, GradesNaN, LeavesUngraded, OtherReasonForLongTexts],
}
