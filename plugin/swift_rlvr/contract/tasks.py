"""The rules for a task. Each rule yields the problems that it finds, in plain words."""

import copy
import json
import pickle
from collections.abc import Callable
from itertools import product
from typing import Any

from swift_rlvr.contract.attack import grades_of
from swift_rlvr.contract.findings import Findings
from swift_rlvr.contract.graders import Graders, graded_rows
from swift_rlvr.contract.rules import Problems, Rule, rule
from swift_rlvr.evaluation.prompts import ask
from swift_rlvr.rewards import REWARDS
from swift_rlvr.success import VERIFIER
from swift_rlvr.tasks import RowError, Task
from swift_rlvr.tasks.pictures import IMAGES
from swift_rlvr.tasks.row_check import check_columns
from swift_rlvr.tasks.task import Row, shown

# What may stand in a column of a raw row in place of its value.
JUNK: tuple[Any, ...] = (
    *(None, "", "no such value", "x" * 1_000_000, -1, float("nan"), True),
    *([], {}, [None], {"a": 1}),
)
# Columns of which ms-swift makes a prompt, and a response, before a preprocessor sees a row.
QUERY_COLUMNS = frozenset(["query", "prompt", "input", "instruction", "question", "problem"])
RESPONSE_COLUMNS = frozenset(
    ["response", "answer", "answers", "answer_key", "output", "target", "targets"]
    + ["solution", "text", "completion", "content"]
)
# What it renames or keeps for itself; `target` and `solution` reach the rewards all the same.
TAKEN_COLUMNS = {
    *QUERY_COLUMNS,
    *(RESPONSE_COLUMNS - {"target", "solution"}),
    *["system", "system_prompt", "history", "images", "videos", "audios", "tools", "objects"],
    *["label", "channel", "margin", "rejected_response", "dataset"],
}
TASK_RULES: dict[str, Rule] = {}


def example_rule(sentence: str) -> Callable[[Callable[[Task, Row], Problems]], Rule]:
    """As `rule`, for a function that looks at one example of the task."""

    def add(function: Callable[[Task, Row], Problems]) -> Rule:
        @rule(TASK_RULES, sentence)
        def of_each(task: Task) -> Problems:
            for number, row in enumerate(task.examples, start=1):
                for problem in function(task, row):
                    yield f"example {number}: {problem}"

        return of_each

    return add


@rule(TASK_RULES, "its columns and rewards are declared, and it can be pickled")
def _declared(task: Task) -> Problems:
    for field in ("columns", "reward_columns", "further_rewards", "splits"):
        if not isinstance(getattr(task, field), tuple):
            yield f"`{field}` must be a tuple of texts"
    if pickle.loads(pickle.dumps(task)) != task:
        yield "a pickled and loaded task differs"
    if not task.columns:
        yield "`columns` must name the columns of a raw row"
    if not task.is_mixed and task.verifier is None:
        yield "`verifier` must name the reward that says what is right"
    if task.verifier in REWARDS.data:
        role = REWARDS[task.verifier].role
        if role != VERIFIER:
            yield (
                f"its `verifier` must be a reward with the role {VERIFIER!r},"
                f" but {task.verifier} has the role {role!r}"
            )
    for name in task.rewards:
        if name not in REWARDS.data:
            yield f"there is no reward {name!r}"
    for name in sorted(TAKEN_COLUMNS & {*task.reward_columns}):
        yield (
            f"the reward's column {name!r} must have another name:"
            " ms-swift renames it or uses it itself"
        )


@rule(TASK_RULES, "it has examples, with a right answer")
def _examples(task: Task) -> Problems:
    if not task.examples:
        yield "`examples` must have at least one raw row"
    for number, row in enumerate(task.examples, start=1):
        try:
            check_columns(task, row)
        except ValueError as error:
            yield f"example {number}: {error}"
    verifier = REWARDS.get(task.verifier or "")
    if verifier is not None and verifier.without_gold:
        # Other columns of a row, such as its tests, say what is right.
        return
    if task.examples and all(task.gold(row) is None for row in task.examples):
        yield "no example has a right answer: `gold` gives None for all of them"


@example_rule("its rows have messages, the task and the columns of its rewards")
def _rows(task: Task, row: Row) -> Problems:
    # Rows are read again by the identity and the gold, and by the next epoch.
    before = copy.deepcopy(row)
    prepared = task.preprocess(row)
    columns = ("messages", "task", *task.of(row).reward_columns)
    if row != before:
        yield "`preprocess` changes the raw row"
    missing = [name for name in columns if name not in prepared]
    if missing:
        yield f"the preprocessed row lacks {', '.join(missing)}"
    if task.preprocess(row) != prepared:
        yield "`preprocess` gives a different row the second time"
    # A picture may be the content of its file.
    written = {name: value for name, value in prepared.items() if name != IMAGES}
    if json.loads(json.dumps(written)) != written:
        yield "the preprocessed row changes when it is written to JSON and read back"


@example_rule("its messages are well-formed")
def _messages(task: Task, row: Row) -> Problems:
    messages = task.preprocess(row)["messages"]
    roles = [message["role"] for message in messages]
    if task.of(row).system_in_rows:
        start = "a system turn"
        expected = ["system"]
    else:
        start = "no system turn (`system_in_rows`)"
        expected = []
    expected += ["user", "assistant"] * len(roles)
    if roles != expected[: len(roles)] or roles[-1:] != ["user"]:
        yield f"expected {start}, then user and assistant in turn, the user last, got {roles}"
    for message in messages:
        text = message["content"]
        if not isinstance(text, str) or not text.strip():
            yield "a message has no text"
            return


@rule(TASK_RULES, "right answers earn all of its rewards in full, and wrong ones do not")
def _graded(task: Task) -> Problems:
    """By the rules of `swift-rlvr dataset check`."""
    findings = Findings(limit=0.0, shared={})
    rows = []
    with_gold = []
    for number, row in enumerate(task.examples, start=1):
        asked = ask(task, row, number)
        rows.append(asked)
        if asked.ideal is not None:
            with_gold.append(asked)
    for reward, of_reward in Graders(None).by_reward(with_gold).items():
        for graded in graded_rows(reward, of_reward):
            problem = findings.count(graded)
            if problem:
                yield f"example {graded.asked.line}: {problem}"
    for each in findings.disagreements:
        less = f"earns less of {each.reward} ({each.reason})"
        yield f"the prompt asks for {each.asked}, and the right answer in it {less}"
    if with_gold and not findings.verified.total():
        yield "no verifier grades the right answers"
    # Of the rows without a known answer, too: a verifier that pays an empty one pays anything.
    for asked in rows:
        verifier = REWARDS[asked.task.verifier or ""]()
        ((value, reason),) = grades_of(verifier, [asked], [""])
        if value is None or value >= verifier.full_reward:
            yield f"example {asked.line}: no answer earns {value} of {verifier.name} ({reason})"


@rule(TASK_RULES, "the identity of a row is stable, and differs between questions")
def _identity(task: Task) -> Problems:
    identities = []
    again = []
    for row in task.examples:
        identities.append(task.identity(row))
        # As another file may have the row: written and read again, with a column of its own.
        reread = json.loads(json.dumps(row))
        again.append(task.identity({**reread, "other column": 1}))
    if identities != again:
        yield "`identity` changes for the same row when it has one more column"
    for number, identity in enumerate(identities, start=1):
        if not isinstance(identity, str) or not identity:
            yield f"example {number}: `identity` must be a text, got {identity!r:.80}"
            continue
        first = identities.index(identity) + 1
        if first != number:
            yield f"`identity` says that examples {first} and {number} ask the same"


@rule(TASK_RULES, "rows that cannot be used are refused with RowError")
def _refusals(task: Task) -> Problems:
    rows: list[Row] = [{}, dict.fromkeys(task.columns)]
    for example in task.examples[:1]:
        rows += [{**example, name: junk} for name, junk in product(task.columns, JUNK)]
    # The columns that a RowError may name.
    columns = {*task.columns, "messages"}.union(*task.examples)

    for row in rows:
        for name in ("preprocess", "identity", "gold"):
            method = getattr(task, name)
            try:
                method(row)
            except RowError as error:
                if error.column not in columns:
                    because = f"{error.column!r}, which is not one of its columns"
                    yield f"`{name}` refuses {shown(row)} because of {because}"
            except Exception as error:
                raised = f"{type(error).__name__}: {error}"
                yield f"`{name}` must raise RowError for {shown(row)}, but raises {raised}"
                return
            else:
                if name == "preprocess" and not row:
                    yield "`preprocess` must raise RowError for a row without columns"
