"""Prompts with constraints on how the answer is written: `instructions:FILE`.

The rows are in the columns of google/IFEval and allenai/IFBench_test (`prompt`,
`instruction_id_list`, `kwargs`), of IF-RLVR and RLVR-IFeval (`messages`, `ground_truth`), or in our
own (`prompt`, `constraints`); `swift_rlvr.verifiers.instructions.reading` lists their forms. No
system prompt is added, and no form of answer is asked for: the whole response is the answer. A row
with a constraint that cannot be read is refused, since it could not be graded.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from swift_rlvr.tasks.columns import (
    KEPT_NAMES,
    MESSAGES,
    ColumnSettings,
    kept_columns,
    unused_passages,
    with_kept,
)
from swift_rlvr.tasks.own import question_of
from swift_rlvr.tasks.task import (
    Gold,
    Messages,
    Row,
    RowError,
    Task,
    asked_text,
    columns_named,
    normalised,
    prompt_text,
    shown,
    turns_text,
    with_system,
)
from swift_rlvr.utils.settings import PREFIX
from swift_rlvr.verifiers.answer_forms import WHOLE
from swift_rlvr.verifiers.instructions import BadConstraints, read_constraints
from swift_rlvr.verifiers.instructions.reading import as_json

# The usual names of the columns, the likeliest first.
QUESTIONS = ("messages", "prompt", "query", "question", "instruction", "input", "problem")
CONSTRAINTS = ("constraints", "instruction_id_list", "ground_truth", "reward_model.ground_truth")
# Where a dataset keeps an answer that is right.
RESPONSES = ("response", "reference_response", "gold_response")
_VARIABLES = {"prompt": f"{PREFIX}QUESTION_COLUMN", "constraints": f"{PREFIX}ANSWER_COLUMN"}


def find_columns(present: Iterable[str]) -> dict[str, list[str]]:
    """For `prompt` and `constraints` the columns that may hold them, the likeliest first."""
    present = list(present)
    settings = ColumnSettings.from_environment()
    question, answer = settings.question_column, settings.answer_column
    return {
        "prompt": columns_named((question,) if question else QUESTIONS, present),
        "constraints": columns_named((answer,) if answer else CONSTRAINTS, present),
    }


def _first(row: Row, column: str) -> Any:
    """What is in the first of the columns that holds something; RowError if none does."""
    names = find_columns(row)[column]
    for name in names:
        head, _, rest = name.partition(".")
        value = row[head]
        if rest:
            value = value.get(rest) if isinstance(value, Mapping) else None
        if value not in (None, "", [], {}):
            return value
    where = ", ".join(names or map(str, row)) or "none"
    problem = f"nothing in the columns {where}; set {_VARIABLES[column]} to use another column"
    raise RowError(column, problem)


def has_constraints(row: Row) -> bool:
    """Whether a row has constraints in the columns of a dataset of them, whatever its task."""
    if columns_named(("instruction_id_list",), row):
        return True
    written = str(row.get("ground_truth"))
    return "func_name" in written or "instruction_id" in written


def messages_of(row: Row) -> Messages:
    """The messages of a row, after its column `system` where they have no system turn."""
    question = _first(row, "prompt")
    if isinstance(question, (list, tuple)):
        turns = question_of(question)
    elif isinstance(question, str) and question.strip():
        turns = [{"role": "user", "content": question.strip()}]
    else:
        raise RowError("prompt", f"expected a prompt, got {shown(question)}")
    system = row.get("system")
    return with_system(turns, system if isinstance(system, str) else None)


def constraints_of(row: Row) -> str:
    """The constraints of a row, as `external_instructions` reads them; RowError if one cannot be
    read.
    """
    value = _first(row, "constraints")
    try:
        constraints = read_constraints(value, row.get("kwargs"))
    except BadConstraints as error:
        names = ", ".join(error.problems)
        raise RowError("constraints", str(error), f"constraint {names}") from None
    return as_json(constraints)


def preprocess(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, `constraints` as JSON, and `task`."""
    messages = messages_of(row)
    prepared = {"messages": messages, "constraints": constraints_of(row), "task": "instructions"}
    text = turns_text(messages)
    return with_kept(prepared, kept_columns(row, text, str(messages[-1]["content"])))


def identity(row: Row) -> str:
    """The same text for rows that ask the same."""
    return normalised(asked_text(messages_of(row)))


def gold(row: Row) -> Gold | None:
    """An answer that meets the constraints, where the row brings one; RowError for a row that cannot
    be used.
    """
    messages_of(row)
    constraints_of(row)
    for name in columns_named(RESPONSES, row):
        if isinstance(row[name], str) and row[name].strip():
            return Gold(row[name], text=row[name])
    return None


@dataclass(frozen=True)
class InstructionsTask(Task):
    """A task whose columns may be called anything that is usual, and whose answer is the whole
    response.
    """

    any_columns: ClassVar[bool] = True

    def find_columns(self, present: Iterable[str]) -> dict[str, list[str]]:
        return find_columns(present)

    def read_columns(self, row: Row) -> list[str]:
        return [*super().read_columns(row), "kwargs"]

    def unused(self, row: Row) -> list[str]:
        # Beside `instruction`, `input` is no other question.
        used = columns_named((*MESSAGES, *CONSTRAINTS, *RESPONSES, "kwargs", *KEPT_NAMES), row)
        return unused_passages(row, used, prompt_text(messages_of(row)))

    def names_of(self, column: str) -> Sequence[str]:
        return QUESTIONS if column == "prompt" else CONSTRAINTS

    def variable_of(self, column: str) -> str | None:
        return _VARIABLES[column]

    def form_of(self, prompt: str) -> str | None:
        return WHOLE

    def completion(
        self, prompt: str, reasoning: str, answer: str, thinking_opened: bool = False
    ) -> str:
        return f"{reasoning}\n</think>\n{answer}" if thinking_opened else answer


TASK = InstructionsTask(
    name="instructions",
    columns=("prompt", "constraints"),
    preprocess=preprocess,
    identity=identity,
    gold=gold,
    system="",
    system_in_rows=False,
    reward_columns=("constraints",),
    verifier="external_instructions",
    further_rewards=(),
    examples=(
        {
            "prompt": "Describe the Rhine. Use no commas and give the text a title in <<>>.",
            "constraints": [{"id": "punctuation:no_comma"}, {"id": "detectable_format:title"}],
            "response": "<<The Rhine>>\nThe Rhine rises in the Alps and flows past Cologne to a cold sea.",
        },
        {
            "prompt": "Name two rivers of Germany. Answer in at least twelve words.",
            "instruction_id_list": ["length_constraints:number_words"],
            "kwargs": [{"relation": "at least", "num_words": 12}],
        },
    ),
)
