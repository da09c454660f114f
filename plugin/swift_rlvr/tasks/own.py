r"""Questions and answers of one's own, whatever their columns are called: `math:FILE`,
`choice:FILE` and `qa:FILE`.

The question and the right answer are looked for under the names in `NAMES`, without regard to case,
spaces, hyphens and underscores, or under those that the variables SWIFT_RLVR_QUESTION_COLUMN and
SWIFT_RLVR_ANSWER_COLUMN give. The prompt is the question after the R1-Zero system prompt, which is
left out where the row has a system prompt of its own, or its question says where the answer stands.
`messages` that end with a user turn are such a question; where they end with the assistant's and
there is no question beside them, they are the prompt without that turn, as in ms-swift. ShareGPT's
`conversations` are read like `messages`.

- `math`: an answer, or a solution with a box or ``####``, that `external_accuracy` can read.
- `choice`: `choices` or `options` in any form that `options.py` reads, or columns A, B and so on.
  The answer is a label, a choice as it is written, or its index from 0. The policy is asked for the
  letter.
- `qa`: a text, a list of texts of which any will do, or SQuAD's ``{"text": [...]}``, for
  `external_exact_match`.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from swift_rlvr.tasks.math_prompts import R1_ZERO_SYSTEM
from swift_rlvr.tasks.options import COLUMNS, LETTERS, choices_by_label
from swift_rlvr.tasks.task import (
    Gold,
    Row,
    RowError,
    Task,
    folded_name,
    normalised,
    shown,
    with_default_system,
    with_system,
)
from swift_rlvr.utils.settings import PREFIX, Settings, setting
from swift_rlvr.verifiers.answer_forms import asked_form
from swift_rlvr.verifiers.answers import normalised_answer
from swift_rlvr.verifiers.mathematics import readable_gold

# Columns with a conversation. The assistant's last turn is an answer too, the unlikeliest.
MESSAGES = ("messages", "conversations", "conversation")
# Roles as ShareGPT calls them.
_ROLES = {"human": "user", "gpt": "assistant", "bot": "assistant"}
# The usual names of the two columns, the likeliest first; compared as `folded_name` says.
NAMES = {
    "problem": (
        *("problem", "question", "problem_statement", "question_text", "problem_text"),
        *("query", "prompt", "input", "instruction", "题目", "题干", "问题", *MESSAGES),
    ),
    "answer": (
        *("answer", "final_answer", "expected_answer", "gold", "gold_answer", "target"),
        *("ground_truth", "gt", "gt_answer"),
        *("reward_model", "answers", "answerkey", "label", "solution", "output", "response"),
        *("答案", "标准答案", "参考答案", "解答", *MESSAGES),
    ),
}
# Where their names are given.
_VARIABLES = {"problem": f"{PREFIX}QUESTION_COLUMN", "answer": f"{PREFIX}ANSWER_COLUMN"}
# Further ones, of the right choice alone: elsewhere an index would be taken for the answer.
_RIGHT_CHOICE = ("answer_idx", "answer_index", "answer_letter", "correct_answer", "correct")
# Of an answer that is no value: "on a Monday" is one, a sentence is not.
_MOST_WORDS = 3
# "B", "(B)", "B."
_MARKS_OF_LABEL = "()[]{}.: "

Messages = list[dict[str, str]]


@dataclass(frozen=True)
class ColumnSettings(Settings):
    """What the columns of a file are called."""

    question_column: str | None = setting(None, "The column with the question.")
    answer_column: str | None = setting(None, "The column with the right answer.")


def find_columns(present: Iterable[str], further: Sequence[str] = ()) -> dict[str, list[str]]:
    """For `problem` and `answer` the columns that may hold them, the likeliest first.

    further: names of the answer's column, besides those in `NAMES`.
    """
    exact = list(present)
    folded: dict[str, str] = {}  # the column of the file, by its folded name
    for name in exact:
        folded.setdefault(folded_name(name), name)

    settings = ColumnSettings.from_environment()
    chosen = {"problem": settings.question_column, "answer": settings.answer_column}
    columns: dict[str, list[str]] = {}
    for column, usual in NAMES.items():
        choice = chosen[column]
        more = further if column == "answer" else ()
        columns[column] = []
        for name in (choice,) if choice else (*usual, *more):
            found = name if name in exact else folded.get(folded_name(name))
            if found is not None:
                columns[column].append(found)
    return columns


def conversation(messages: Any) -> Messages:
    """Messages that end with a question of the user; RowError for anything else."""
    content = None
    if isinstance(messages, (list, tuple)) and messages:
        last = messages[-1]
        if isinstance(last, Mapping) and last.get("role") == "user":
            content = last.get("content")
    if not isinstance(content, str) or not content.strip():
        expected = '[..., {"role": "user", "content": a text}]'
        raise RowError("messages", f"expected {expected}, got {shown(messages)}")
    return [dict(message) for message in messages]


def question_of(messages: Any) -> Messages:
    """The messages without the assistant's answer at the end, in whatever form `turns_of` reads;
    RowError where no question of the user comes before that.
    """
    turns = turns_of(messages)
    if len(turns) > 1 and turns[-1]["role"] == "assistant":
        turns.pop()
    return conversation(turns or messages)


def turns_of(messages: Any) -> list[dict[str, Any]]:
    """The turns of a conversation with `role` and `content`; empty for what is none.

    Also read are ShareGPT's forms, as ms-swift does.

    >>> turns_of([{"from": "human", "value": "1 + 1?"}])
    [{'role': 'user', 'content': '1 + 1?'}]
    >>> turns_of([{"human": "1 + 1?", "assistant": "2"}])
    [{'role': 'user', 'content': '1 + 1?'}, {'role': 'assistant', 'content': '2'}]
    """
    turns: list[dict[str, Any]] = []
    if not isinstance(messages, (list, tuple)):
        return turns
    for message in messages:
        if not isinstance(message, Mapping):
            return []
        if "from" in message:
            turns.append({"role": message["from"], "content": message.get("value")})
        elif "role" in message:
            turns.append(dict(message))
        else:
            question = message.get("human", message.get("user"))
            turns.append({"role": "user", "content": question})
            turns.append({"role": "assistant", "content": message.get("assistant")})
    for turn in turns:
        turn["role"] = _ROLES.get(turn["role"], turn["role"])
    return turns


def _last_answer(messages: Any) -> str | None:
    """What the assistant says in the last turn; None where that is another's."""
    turns = turns_of(messages)
    return turns[-1].get("content") if turns and turns[-1]["role"] == "assistant" else None


def _read(row: Row, further: Sequence[str] = ()) -> tuple[Messages, list[Any]]:
    """The messages of a row, and what may be its right answer, the likeliest first; RowError where
    there is none.

    further: as in `find_columns`.
    """
    columns = find_columns(row, further)
    questions = [row[name] for name in columns["problem"] if row[name] is not None]
    answers = list(_answers(row, columns["answer"]).values())
    if not questions:
        raise _nothing_in("problem", columns, row)
    if not answers:
        raise _nothing_in("answer", columns, row)
    # A row's own instruction stays alone.
    return with_default_system(_messages(row, questions[0]), R1_ZERO_SYSTEM), answers


def _answers(row: Row, columns: Iterable[str]) -> dict[str, Any]:
    """What may be the right answer of a row, by its column."""
    answers = {}
    for name in columns:
        is_conversation = folded_name(name) in MESSAGES
        answer = _last_answer(row[name]) if is_conversation else row[name]
        if answer is not None:
            answers[name] = answer
    return answers


def _bad_answer(
    row: Row, problem: str, label: str | None = None, further: Sequence[str] = (), at: int = 0
) -> RowError:
    """The error for an answer that cannot be used, with the name that its column has in the file.

    at: its place among the answers of the row.
    """
    names = list(_answers(row, find_columns(row, further)["answer"]))
    return RowError("answer", problem, label, in_file=names[at])


def _nothing_in(column: str, columns: dict[str, list[str]], row: Row) -> RowError:
    where = ", ".join(columns[column] or map(str, row)) or "none"
    problem = f"nothing in the columns {where}; set {_VARIABLES[column]} to use another column"
    return RowError(column, problem)


def _messages(row: Row, question: Any) -> Messages:
    """The messages of a row where they end with a question, else the question."""
    for name in MESSAGES:
        turns = turns_of(row.get(name))
        if turns and turns[-1]["role"] == "user":
            with suppress(RowError):
                return _after_system(row, conversation(turns))
    if isinstance(question, (list, tuple)):
        return _after_system(row, question_of(question))
    if not isinstance(question, str) or not question.strip():
        raise RowError("problem", f"expected a question, got {shown(question)}")
    return _after_system(row, [{"role": "user", "content": question.strip()}])


def _after_system(row: Row, turns: Messages) -> Messages:
    """The turns after the row's column `system`, where they have no system turn of their own."""
    system = row.get("system")
    return with_system(turns, system if isinstance(system, str) else None)


def _only(answer: Any) -> Any:
    """What is in a list of one, and verl's ``{"ground_truth": ...}``."""
    if isinstance(answer, Mapping):
        answer = answer.get("ground_truth")
    if isinstance(answer, (list, tuple)) and len(answer) == 1:
        return answer[0]
    return answer


def identity(row: Row) -> str:
    """The same text for rows that ask the same."""
    messages, _ = _read(row)
    return normalised(messages[-1]["content"])


# --- math: an answer that external_accuracy can read


def math_answer(row: Row) -> str | list[str]:
    """The right answer of a row for `external_accuracy`, or several for its `gold_is_list`;
    RowError where none is.
    """
    _, answers = _read(row)
    in_words: str | list[str] | None = None
    for answer in map(_only, answers):
        several = answer if isinstance(answer, (list, tuple)) else [answer]
        readable = _readable(several)
        if readable is None:
            continue
        golds, is_value = readable
        gold = golds if len(golds) > 1 else golds[0]
        if is_value:
            return gold
        # The box in a later column is better than the answer "proof".
        in_words = gold if in_words is None else in_words
    if in_words is None:
        shown_answer = shown(_only(answers[0]))
        problem = f"expected an answer that external_accuracy can read, got {shown_answer}"
        raise _bad_answer(row, problem, "no answer that can be read")
    return in_words


def _readable(answers: Sequence[Any]) -> tuple[list[str], bool] | None:
    """The golds in these answers and whether all are values; None where one cannot be read."""
    golds = []
    all_values = True
    for answer in answers:
        gold = readable_gold(answer)
        if gold is None:
            return None
        text, is_words = gold
        if is_words:
            if len(text.split()) > _MOST_WORDS:
                return None
            all_values = False
        golds.append(text)
    return (golds, all_values) if golds else None


def prepare_math(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, `solution`, `options` where it has choices, and
    `task`.
    """
    messages, _ = _read(row)
    prepared = {"messages": messages, "solution": math_answer(row), "task": "math"}
    choices = choices_by_label(_choices_value(row))
    # Only those that a letter can name: the reward calls them A, B, C.
    if choices and list(choices) == list(LETTERS[: len(choices)]):
        prepared["options"] = list(choices.values())
    return prepared


def math_gold(row: Row) -> Gold:
    """The right answer of a raw row; RowError for one that cannot be used."""
    answer = math_answer(row)
    return Gold(answer if isinstance(answer, str) else answer[0])


# --- choice: the letter of a choice


def choices_of(row: Row) -> dict[str, str]:
    """The choices by their labels; RowError where there are none."""
    value = _choices_value(row)
    choices = choices_by_label(value)
    if not choices:
        expected = f"2 to {len(LETTERS)} different texts, in a list or by label"
        raise RowError("choices", f"expected {expected}, got {shown(value)}")
    return choices


def _choices_value(row: Row) -> Any:
    """The choices of a row in the form that the row has, or something that is none."""
    for name in COLUMNS:
        if row.get(name) is not None:
            return row[name]
    return {letter: row.get(letter) for letter in LETTERS}  # columns A, B and so on


def right_choice(row: Row) -> str:
    """The letter of the right choice; RowError where the answer is none of them, or could be
    two.
    """
    choices = choices_of(row)
    _, answers = _read(row, _RIGHT_CHOICE)
    for answer in map(_only, answers):
        numbers = _numbers_of(answer, choices)
        if len(numbers) == 1:
            return LETTERS[numbers[0]]
    expected = f"one of {', '.join(choices)}, a choice or its index from 0"
    problem = f"expected {expected}, got {shown(_only(answers[-1]))}"
    raise _bad_answer(row, problem, further=_RIGHT_CHOICE, at=-1)


def _numbers_of(answer: Any, choices: dict[str, str]) -> list[int]:
    """The choices that an answer may mean, counted from 0."""
    text = str(answer).strip()
    label = text.strip(_MARKS_OF_LABEL).casefold()
    numbers = [
        number
        for number, (known, choice) in enumerate(choices.items())
        if label == known.casefold() or text == choice
    ]
    if not numbers and type(answer) is int and 0 <= answer < len(choices):
        return [answer]
    return numbers


def prepare_choice(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, where the choices follow the question, `solution`,
    `options` and `task`.
    """
    messages, _ = _read(row, _RIGHT_CHOICE)
    solution = right_choice(row)
    choices = list(choices_of(row).values())
    lines = [messages[-1]["content"], ""]
    for letter, choice in zip(LETTERS, choices, strict=False):
        lines.append(f"{letter}. {choice}")
    if asked_form(messages[-1]["content"]) is None:
        lines += ["", "Answer with the letter of the right choice."]
    question = {"role": "user", "content": "\n".join(lines)}
    return {
        "messages": [*messages[:-1], question],
        "solution": solution,
        "options": choices,
        "task": "choice",
    }


def choice_identity(row: Row) -> str:
    """The same text for rows that ask the same."""
    messages, _ = _read(row, _RIGHT_CHOICE)
    return normalised(messages[-1]["content"])


def choice_gold(row: Row) -> Gold:
    """The right answer of a raw row; RowError for one that cannot be used."""
    return Gold(right_choice(row))


# --- qa: one of several texts


def accepted_answers(row: Row) -> list[str]:
    """The texts of which each is a right answer; RowError where there is none."""
    _, answers = _read(row)
    answer = answers[0]
    if isinstance(answer, Mapping):
        answer = answer.get("text", answer.get("ground_truth"))
    texts = list(answer) if isinstance(answer, (list, tuple)) else [answer]
    if not texts or not all(map(_is_text, texts)):
        raise _bad_answer(row, f"expected a text, or a list of texts, got {shown(answer)}")
    return [str(text).strip() for text in texts]


def _is_text(value: Any) -> bool:
    return isinstance(value, (str, int)) and bool(normalised_answer(str(value)))


def prepare_qa(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, `accepted_answers` and `task`."""
    messages, _ = _read(row)
    return {"messages": messages, "accepted_answers": accepted_answers(row), "task": "qa"}


def qa_gold(row: Row) -> Gold:
    """The right answer of a raw row; RowError for one that cannot be used."""
    return Gold(accepted_answers(row)[0])


@dataclass(frozen=True)
class OwnTask(Task):
    """A task whose columns may be called anything that is usual."""

    any_columns: ClassVar[bool] = True
    # As in `find_columns`.
    further: ClassVar[tuple[str, ...]] = ()

    def find_columns(self, present: Iterable[str]) -> dict[str, list[str]]:
        return find_columns(present, self.further)

    def names_of(self, column: str) -> Sequence[str]:
        return (*NAMES[column], *self.further) if column == "answer" else NAMES[column]

    def variable_of(self, column: str) -> str | None:
        return _VARIABLES[column]


@dataclass(frozen=True)
class ChoiceTask(OwnTask):
    """The same, whose answer may also be an index or a letter in a column of its own."""

    further: ClassVar[tuple[str, ...]] = _RIGHT_CHOICE


MATH = OwnTask(
    name="math",
    columns=("problem", "answer"),
    preprocess=prepare_math,
    identity=identity,
    gold=math_gold,
    system=R1_ZERO_SYSTEM,
    examples=(
        {"problem": "What is 3/4 of 20?", "answer": "15"},
        {"problem": "Solve $x^2 = 2$.", "answer": r"Thus $x = \boxed{\pm\sqrt{2}}$."},
    ),
)
CHOICE = ChoiceTask(
    name="choice",
    columns=MATH.columns,
    preprocess=prepare_choice,
    identity=choice_identity,
    gold=choice_gold,
    system=R1_ZERO_SYSTEM,
    reward_columns=("solution", "options"),
    examples=(
        {"problem": "Which is a metal?", "choices": ["oxygen", "iron"], "answer": "B"},
        {"problem": "Which is a gas?", "choices": ["helium", "lead", "salt"], "answer": 0},
    ),
)
QA = replace(
    MATH,
    name="qa",
    preprocess=prepare_qa,
    gold=qa_gold,
    reward_columns=("accepted_answers",),
    verifier="external_exact_match",
    examples=(
        {"problem": "Which river flows through Cologne?", "answer": ["the Rhine", "Rhein"]},
        {"problem": "Who wrote Faust?", "answer": "Goethe"},
    ),
)
