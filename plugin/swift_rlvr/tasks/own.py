r"""Questions and answers of one's own, whatever their columns are called: `math:FILE`,
`choice:FILE` and `qa:FILE`.

The question and the right answer are looked for under the names in `NAMES`, or under those that the
variables SWIFT_RLVR_QUESTION_COLUMN and SWIFT_RLVR_ANSWER_COLUMN give. The prompt is the R1-Zero
system prompt and the question; `messages` that end with a user turn stay as they are.

- `math`: an answer, or a solution with a box or ``####``, that `external_accuracy` can read.
- `choice`: `choices` or `options` are a list, a dict by label or ``{"text": [...], "label":
  [...]}``, or columns A, B and so on. The answer is a label, a choice as it is written, or its
  index from 0. The policy is asked for the letter.
- `qa`: a text, a list of texts of which any will do, or SQuAD's ``{"text": [...]}``, for
  `external_exact_match`.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from string import ascii_uppercase
from typing import Any

from swift_rlvr.tasks.math_prompts import R1_ZERO_SYSTEM, to_messages
from swift_rlvr.tasks.task import Gold, Row, RowError, Task, normalised, shown
from swift_rlvr.utils.settings import PREFIX, Settings, setting
from swift_rlvr.verifiers.answers import normalised_answer
from swift_rlvr.verifiers.mathematics import readable_gold

NAMES = {
    "problem": (
        "problem",
        "question",
        "query",
        "prompt",
        "input",
        "instruction",
        "题目",
        "问题",
        "messages",
    ),
    "answer": (
        "answer",
        "final_answer",
        "gold",
        "target",
        "ground_truth",
        "reward_model",
        "answers",
        "answerkey",
    )
    + ("label", "solution", "output", "response", "答案", "解答"),
}
_CHOICES = ("choices", "options", "选项")
_MOST_WORDS = 3  # of an answer that is no value: "on a Monday", but no sentence
_LETTERS = ascii_uppercase[:8]  # I and J are numbers to the verifier of mathematics


@dataclass(frozen=True)
class ColumnSettings(Settings):
    """What the columns of a file are called."""

    question_column: str | None = setting(None, "The column with the question.")
    answer_column: str | None = setting(None, "The column with the right answer.")


def find_columns(present: Iterable[str]) -> dict[str, list[str]]:
    """For `problem` and `answer` the columns that may hold them, the likeliest first."""
    chosen, known = ColumnSettings.from_environment(), dict[str, str]()
    for name in present:
        known.setdefault(name.strip().casefold(), name)
        known[name] = name
    wanted = {"problem": chosen.question_column, "answer": chosen.answer_column}
    names = {column: (wanted[column],) if wanted[column] else NAMES[column] for column in NAMES}
    return {
        column: [known[name] for name in each if name in known] for column, each in names.items()
    }


def conversation(messages: Any) -> list[dict[str, str]]:
    """Messages that end with a question of the user; RowError for anything else."""
    last = messages[-1] if isinstance(messages, (list, tuple)) and messages else None
    content = (
        last.get("content") if isinstance(last, Mapping) and last.get("role") == "user" else None
    )
    if not isinstance(content, str) or not content.strip():
        raise RowError(
            "messages",
            f'expected [..., {{"role": "user", "content": a text}}], got {shown(messages)}',
        )
    return [dict(each) for each in messages]


def _read(row: Row) -> tuple[list[dict[str, str]], list[Any]]:
    """The messages of a row, and what may be its right answer, the likeliest first; RowError where
    there is none.
    """
    columns = find_columns(row)
    answers = [row[name] for name in columns["answer"] if row[name] is not None]
    question = next((row[name] for name in columns["problem"] if row[name] is not None), None)
    for column, value, variable in (
        ("problem", question, "QUESTION"),
        ("answer", answers, "ANSWER"),
    ):
        if value is None or value == []:
            where = ", ".join(columns[column] or map(str, row)) or "none"
            raise RowError(
                column, f"nothing in the columns {where}; {PREFIX}{variable}_COLUMN names another"
            )
    with suppress(RowError):
        return conversation(row.get("messages")), answers
    if isinstance(question, (list, tuple)):
        return conversation(question), answers
    if not isinstance(question, str) or not question.strip():
        raise RowError("problem", f"expected a question, got {shown(question)}")
    return to_messages(question.strip(), R1_ZERO_SYSTEM), answers


def identity(row: Row) -> str:
    """The same text for rows that ask the same."""
    return normalised(_read(row)[0][-1]["content"])


def math_answer(row: Row) -> str | list[str]:
    """The right answer of a row for `external_accuracy`, or several for its `gold_is_list`;
    RowError where none is.
    """
    answers = [_only(each) for each in _read(row)[1]]
    found = []
    for answer in answers:
        texts = [
            readable_gold(each)
            for each in (answer if isinstance(answer, (list, tuple)) else [answer])
        ]
        known = [
            each for each in texts if each and not (each[1] and len(each[0].split()) > _MOST_WORDS)
        ]
        if texts and len(known) == len(texts):
            golds = [text for text, _ in known]
            found.append((any(words for _, words in known), golds if len(golds) > 1 else golds[0]))
    if not found:
        problem = f"expected an answer that external_accuracy can read, got {shown(answers[0])}"
        raise RowError("answer", problem, "no answer that can be read")
    return min(found, key=lambda each: each[0])[
        1
    ]  # a box in the solution rather than the answer "proof"


def _only(answer: Any) -> Any:
    """What is in a list of one, and verl's ``{"ground_truth": ...}``."""
    answer = answer.get("ground_truth") if isinstance(answer, Mapping) else answer
    return answer[0] if isinstance(answer, (list, tuple)) and len(answer) == 1 else answer


def prepare_math(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, `solution` and `task`."""
    return {"messages": _read(row)[0], "solution": math_answer(row), "task": "math"}


def math_gold(row: Row) -> Gold:
    """The right answer of a raw row; RowError for one that cannot be used."""
    answer = math_answer(row)
    return Gold(answer if isinstance(answer, str) else answer[0])


def choices_of(row: Row) -> dict[str, str]:
    """The choices by their labels; RowError where there are none."""
    value = next((row[name] for name in _CHOICES if row.get(name) is not None), None)
    value = {each: row.get(each) for each in _LETTERS} if value is None else value
    if isinstance(value, Mapping) and {"text", "label"} <= value.keys():
        labels, texts = value["label"], value["text"]
        value = (
            dict(zip(labels, texts, strict=False))
            if isinstance(labels, list) and isinstance(texts, list)
            else None
        )
    if isinstance(value, (list, tuple)):
        value = dict(zip(ascii_uppercase, value, strict=False))
    found = (
        {str(key): each for key, each in value.items() if each is not None}
        if isinstance(value, Mapping)
        else {}
    )
    texts = [each.strip() if isinstance(each, str) else "" for each in found.values()]
    if not 2 <= len(texts) <= len(_LETTERS) or not all(texts) or len({*texts}) < len(texts):
        problem = f"expected 2 to {len(_LETTERS)} different texts, in a list or by label, got {shown(value)}"
        raise RowError("choices", problem)
    return dict(zip(found, texts, strict=True))


def right_choice(row: Row) -> str:
    """The letter of the right choice; RowError where the answer is none of them, or could be
    two.
    """
    choices = choices_of(row)
    for answer in map(_only, _read(row)[1]):
        text = str(answer).strip()
        found = {
            index
            for index, each in enumerate(choices.items())
            if text.strip("().") == each[0] or text == each[1]
        }
        if not found and type(answer) is int and 0 <= answer < len(choices):
            found = {answer}
        if len(found) == 1:
            return _LETTERS[found.pop()]
    raise RowError(
        "answer",
        f"expected one of {', '.join(choices)}, a choice or its index from 0, got {shown(answer)}",
    )


def prepare_choice(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, where the choices follow the question, `solution`
    and `task`.
    """
    messages, letter = _read(row)[0], right_choice(row)
    lines = [
        f"{letter}. {text}"
        for letter, text in zip(_LETTERS, choices_of(row).values(), strict=False)
    ]
    asked = "\n".join(
        [messages[-1]["content"], "", *lines, "", "Answer with the letter of the right choice."]
    )
    return {
        "messages": [*messages[:-1], {"role": "user", "content": asked}],
        "solution": letter,
        "task": "choice",
    }


def choice_gold(row: Row) -> Gold:
    """The right answer of a raw row; RowError for one that cannot be used."""
    return Gold(right_choice(row))


def accepted_answers(row: Row) -> list[str]:
    """The texts of which each is a right answer; RowError where there is none."""
    answer = _read(row)[1][0]
    if isinstance(answer, Mapping):
        answer = answer.get("text", answer.get("ground_truth"))
    texts = [*answer] if isinstance(answer, (list, tuple)) else [answer]
    if not texts or not all(
        isinstance(each, (str, int)) and normalised_answer(str(each)) for each in texts
    ):
        raise RowError("answer", f"expected a text, or a list of texts, got {shown(answer)}")
    return [str(each).strip() for each in texts]


def prepare_qa(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, `accepted_answers` and `task`."""
    return {"messages": _read(row)[0], "accepted_answers": accepted_answers(row), "task": "qa"}


def qa_gold(row: Row) -> Gold:
    """The right answer of a raw row; RowError for one that cannot be used."""
    return Gold(accepted_answers(row)[0])


MATH = Task(
    name="math",
    columns=("problem", "answer"),
    find_columns=find_columns,
    preprocess=prepare_math,
    identity=identity,
    gold=math_gold,
    system=R1_ZERO_SYSTEM,
    examples=(
        {"problem": "What is 3/4 of 20?", "answer": "15"},
        {"problem": "Solve $x^2 = 2$.", "answer": r"Thus $x = \boxed{\pm\sqrt{2}}$."},
    ),
)
CHOICE = replace(
    MATH,
    name="choice",
    preprocess=prepare_choice,
    gold=choice_gold,
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
