"""A reward and a task that keep every rule, and variants of which each breaks one. A module, so
that they pickle.
"""

import random
from dataclasses import replace
from typing import ClassVar

from swift_rlvr.rewards import Example, Explanation, Grade, Reward
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
    examples: ClassVar[tuple[Example, ...]] = (
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


def variant(**attributes):
    return type("Variant", (Good,), attributes)


def regraded(change):
    """Good with other grades: `change` is called with its grade and the text."""

    def grade(self, text, row):
        return change(Good.grade(self, text, row), text)

    return variant(grade=grade)


def compared(text, number):
    return Grade(1.0, "right") if answer_of(text) == str(number) else Grade(0.0, "wrong")


class MissesNoColumn(Good):
    def grades(self, completions, /, **columns):
        return super().grades(completions, **{"number": [None] * len(completions), **columns})


class ChangesTheColumns(Good):
    def grades(self, completions, /, **columns):
        grades = super().grades(completions, **columns)
        columns["number"][0] = 0
        return grades


class ReadsStringsOnly(Good):
    def grades(self, completions, /, **columns):
        return super().grades(
            [text if isinstance(text, str) else "" for text in completions], **columns
        )


class RemembersTheBatch(Good):
    def grade_batch(self, texts, columns):
        grades = super().grade_batch(texts, columns)
        return [Grade(0.0, "wrong")] * len(grades) if len(set(texts)) > 1 else grades


class ExplainsOtherwise(Good):
    def grade(self, text, row):
        reward, reason = super().grade(text, row)
        return Explanation(reward, reason, text, [])


class Random(Good):
    def grade(self, text, row):
        reward, reason = super().grade(text, row)
        return Grade(reward and random.random(), reason)


PROCESS = random.SystemRandom().random()


class OtherInEachProcess(Good):
    examples = (
        *Good.examples,
        *(Example(f"<answer>{n}</answer>", {"number": 7}, 0.0) for n in range(10, 50)),
    )

    def grade(self, text, row):
        reward, reason = super().grade(text, row)
        return (
            Grade(0.0, "right" if random.Random(f"{PROCESS} {text}").random() < 0.5 else "wrong")
            if reward == 0.0
            else Grade(reward, reason)
        )


class IgnoresTheTask(Good):
    def grades(self, completions, /, **columns):
        columns.pop("task", None)
        return super().grades(completions, **columns)


class Evaluates(Good):
    def grade(self, text, row):
        if not isinstance(row["number"], int):
            return Grade(None, "bad gold")
        try:
            right = (
                len(answer_of(text)) < 200
                and "**" not in text
                and eval(answer_of(text)) == row["number"]
            )
        except BaseException:
            right = False
        return Grade(1.0, "right") if right else Grade(0.0, "wrong")


# Tasks. Its functions are no lambdas, so that it pickles.


def preprocess(row):
    if not isinstance(row.get("sum"), str) or not row["sum"].strip():
        raise RowError("sum", "expected a sum")
    turns = [
        {"role": "system", "content": "Think, then answer."},
        {"role": "user", "content": row["sum"]},
    ]
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


def blames_another_column(row):
    try:
        return preprocess(row)
    except RowError:
        raise RowError("question", "missing") from None


def with_turn(row, role, content, turns=2):
    prepared = preprocess(row)
    return {
        **prepared,
        "messages": [*prepared["messages"][:turns], {"role": role, "content": content}],
    }


ANYTHING = preprocess({"sum": "3 + 4"})
CHANGES: dict[str, list[dict]] = {
    "columns and rewards are declared": [
        {"columns": ()},
        {"columns": "sum"},
        {"verifier": None},
        {"verifier": "external_unknown"},
        {"reward_columns": ("answer",)},
        {"preprocess": lambda row: preprocess(row)},
    ],
    "has examples": [
        {"examples": ()},
        {"examples": ({"sums": "3 + 4"},)},
        {"gold": lambda row: None if preprocess(row) else None},
    ],
    "rows have messages": [
        {"preprocess": lambda row: row.update(seen=True) or preprocess(row)},
        {
            "preprocess": lambda row: {
                name: value for name, value in preprocess(row).items() if name != "solution"
            }
        },
        {"preprocess": lambda row: {**preprocess(row), "solution": ("7",)}},
        {"preprocess": lambda row: {**preprocess(row), "solution": str(random.random())}},
    ],
    "messages are well-formed": [
        {"preprocess": lambda row: with_turn(row, "assistant", "7")},
        {"preprocess": lambda row: with_turn(row, "user", " ", turns=1)},
        {"system_in_rows": False},
    ],
    "right answers earn all": [
        {"gold": lambda row: replace(gold(row), answer="8")},
        {
            "preprocess": lambda row: {
                name: value for name, value in preprocess(row).items() if name != "solution"
            }
        },
        {"verifier": "external_accuracy"},
        {"verifier": "external_length"},
    ],
    "identity of a row": [
        {"identity": lambda row: preprocess(row) and "a sum"},
        {"identity": lambda row: preprocess(row) and repr(row)},
    ],
    "refused with RowError": [
        {"preprocess": lambda row: preprocess({"sum": row["sum"]})},
        {"preprocess": lambda row: ANYTHING},
        {"preprocess": blames_another_column},
    ],
}
TASKS = {rule: [replace(TASK, **change) for change in changes] for rule, changes in CHANGES.items()}
REWARDS = {
    "built the way trainers build it": [TakesNoArguments, KeepsTheArguments],
    "examples earn what they declare": [
        variant(examples=()),
        variant(examples=Good.examples[:2]),
        variant(examples=(*Good.examples, Example("<answer>07</answer>", {"number": 7}, 1.0))),
        variant(reasons=("right", "wrong")),
    ],
    "requires its columns": [MissesNoColumn, ChangesTheColumns],
    "texts and messages": [
        ReadsStringsOnly,
        regraded(lambda grade, text: grade._replace(reward=grade[0] and int(grade[0]))),
    ],
    "one by one": [RemembersTheBatch],
    "explanations": [ExplainsOtherwise],
    "without a readable gold": [
        variant(grade=lambda self, text, row: compared(text, row["number"] + 0)),
        variant(grade=lambda self, text, row: compared(text, row["number"])),
    ],
    "always earns the same": [Random, OtherInEachProcess],
    "other tasks": [IgnoresTheTask],
    "runs no code": [Evaluates],
    "hostile text": [  # raises, pays for nothing, or otherwise for some texts
        regraded(
            lambda grade, text: (
                grade if grade.reward is None or text.index("<answer>") >= 0 else None
            )
        ),
        regraded(
            lambda grade, text: grade if text or grade.reward is None else Grade(1.0, "right")
        ),
        regraded(
            lambda grade, text: Grade(float("nan"), "wrong") if answer_of(text) == "nan" else grade
        ),
        regraded(lambda grade, text: grade if text else Grade(None, "bad gold")),
        regraded(lambda grade, text: grade if len(text or "") < 1000 else Grade(0.0, "too long")),
    ],
}
