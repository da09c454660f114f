r"""Questions and answers of one's own, whatever their columns are called: `math:FILE` and `qa:FILE`,
and what `choice:FILE` (`choice.py`) and others share with them.

The question and the right answer are looked for under the names in `columns.NAMES`, or under those
that the variables SWIFT_RLVR_QUESTION_COLUMN and SWIFT_RLVR_ANSWER_COLUMN give. The prompt is the
passage, where there is one, and the question after the R1-Zero system prompt, which is left out
where the row has a system prompt of its own, or its question says where the answer stands.
`messages` that end with a user turn are such a question; where they end with the assistant's and
there is no question beside them, they are the prompt without that turn, as in ms-swift. ShareGPT's
`conversations` are read like `messages`.

- `math`: answers, or a solution with a box, ``####`` or a last sentence, that `external_accuracy` can
  read.
- `qa`: texts of which any will do, for `external_exact_match`.
"""

import html
import json
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from swift_rlvr.tasks.columns import (
    KEPT_NAMES,
    MESSAGES,
    NAMES,
    PASSAGES,
    PICTURES,
    VARIABLES,
    find_columns,
    kept_columns,
    parsed,
    passage_of,
    passage_text,
    pictures_in,
    unused_images,
    unused_passages,
    value_at,
    with_kept,
)
from swift_rlvr.tasks.math_prompts import R1_ZERO_SYSTEM
from swift_rlvr.tasks.options import (
    COLUMNS,
    LETTERS,
    choices_by_label,
    choices_in_text,
    number_of_gold,
)
from swift_rlvr.tasks.pictures import digests, text_of_parts
from swift_rlvr.tasks.task import (
    Gold,
    Row,
    RowError,
    Task,
    asked_text,
    columns_named,
    folded_name,
    normalised,
    prompt_text,
    shown,
    turns_text,
    with_default_system,
    with_system,
)
from swift_rlvr.verifiers.answers import marked_answer, normalised_answer
from swift_rlvr.verifiers.mathematics import readable_gold
from swift_rlvr.verifiers.statements import final_statement
from swift_rlvr.verifiers.thinking import thinking_end

# Roles as ShareGPT, OpenAI's newer models, Gemini and others call them, in small letters.
ROLES = {
    **{"human": "user", "developer": "system"},
    **dict.fromkeys(("gpt", "bot", "chatbot", "model", "ai"), "assistant"),
}
# Those that ms-swift takes: it deletes a row with another one, and says so only in its log.
TAKEN_ROLES = ("system", "user", "assistant", "tool_call", "tool_response", "tool")
# Further names of the answer's column, of the right choice alone: elsewhere an index would be taken
# for the answer.
RIGHT_CHOICE = (
    *("answer_idx", "answer_index", "answer_letter", "answer_label", "answer_choice"),
    *("correct_answer", "correct", "correct_option", "correct_index", "correct_choice"),
    *("correct_answer_id", "correct_answer_index", "answer_id"),
    *("right_answer", "best_answer", "gold_index", "gold_label", "cop", "mc1_targets"),
)
# Where the golds are in one that is an object, the likeliest first.
_GOLD_KEYS = (
    *("ground_truth", "target", "targets", "value", "text", "spans", "answer", "answers"),
    *("final_answer", "expected_answer", "gold", "number"),
)
# Columns with other names of the answer to a question of text.
_ALIASES = ("answer_aliases", "aliases")
# Of an answer that is no value: "on a Monday" is one, a sentence is not.
_MOST_WORDS = 3
# What datasets write where there is no answer, and where there is none that mathematics could grade:
# a text may be "unknown", or sodium's "Na".
_NO_ANSWER = ("notfound", "n/a", "#n/a", "nan", "null", "tbd", "")
_NO_VALUE = (*_NO_ANSWER, "proof", "na", "unknown")
# Between them, a number of 32 bits keeps six digits.
_SMALLEST, _LARGEST = 1e-37, 1e38
# The answers to several questions in one: "(a) 1 (b) 2" would be read as a product.
_SEVERAL = re.compile(
    # but not the ratios 1:2, 2:1
    r"(?:part\s+)?\(?(?:a|1|i)\s?(?:\)|:\s)\s*[^\s()].*[\s,;](?:part\s+)?\(?(?:b|2|ii)\s?(?:\)|:\s)\s*\S",
    re.IGNORECASE | re.DOTALL,
)
# A whole text within an element of HTML, as editors of quizzes write one.
_IN_HTML = re.compile(
    r"<(p|div|span|b|strong|i|em|u|font|h[1-6]|li|td)\b[^<>]*>(.*)</\1>", re.DOTALL | re.I
)
# "Yes, since it conducts."
_YES_OR_NO = re.compile(r"(yes|no)(?:[,;:]|\.(?! ?\d))\s", re.IGNORECASE)
# Two words for one thing each.
_BOOLEANS = {"true": ["Yes"], "yes": ["True"], "false": ["No"], "no": ["False"]}

Messages = list[dict[str, str]]


def conversation(messages: Any) -> Messages:
    """Messages that end with a question of the user; RowError for anything else, and for what ms-swift
    would delete, cut or fail at: a turn that is no text, calls beside a text, a system turn later on.
    """
    content = None
    if isinstance(messages, (list, tuple)) and messages:
        last = messages[-1]
        if isinstance(last, Mapping) and last.get("role") == "user":
            content = last.get("content")
    if not isinstance(content, str) or not content.strip():
        expected = (
            '[..., {"role": "user", "content": a text}], or as content OpenAI\'s parts of the types '
            "text and image_url"
        )
        raise RowError("messages", f"expected {expected}, got {shown(messages)}")

    turns: Messages = []
    for number, message in enumerate(messages, start=1):
        role = message.get("role")
        if role not in TAKEN_ROLES:
            problem = f"expected one of the roles {', '.join(TAKEN_ROLES)}, got {shown(role)}"
            raise RowError("messages", f"turn {number}: {problem}")
        calls = message.get("tool_calls") or message.get("function_call")
        if calls:
            problem = f"expected each call as a turn of the role tool_call, got {shown(calls)}"
            raise RowError("messages", f"turn {number}: {problem}")
        if not isinstance(message.get("content"), str):
            problem = f"expected a text as content, got {shown(message.get('content'))}"
            raise RowError("messages", f"turn {number}: {problem}")
        # ms-swift runs two turns of one role together: "I have 3" and "4 more" would be 34.
        if turns and turns[-1]["role"] == role and role in ("system", "user", "assistant"):
            turns[-1]["content"] += f"\n\n{message['content']}"
            continue
        results = ("tool_response", "tool")
        before = turns[-1]["role"] if turns else "system"
        if (role == "user" and before in results) or (role in results and before == "system"):
            problem = (
                "expected a result of a tool after another turn, and the assistant's turn after it"
            )
            raise RowError("messages", f"turn {number}: {problem}")
        if role == "system" and turns:
            raise RowError(
                "messages", f"turn {number}: expected a system turn only at the beginning"
            )
        turns.append(dict(message))
    return turns


def question_of(messages: Any) -> Messages:
    """The messages without the assistant's answer at the end, in whatever form `turns_of` reads;
    RowError if no question of the user comes before that.
    """
    turns = turns_of(messages)
    if len(turns) > 1 and turns[-1]["role"] == "assistant":
        turns.pop()
    return conversation(turns or messages)


def turns_of(messages: Any) -> list[dict[str, Any]]:
    """The turns of a conversation with `role` and `content`; empty for what is none.

    Also read are ShareGPT's forms and OpenAI's parts of text and images, as ms-swift does.

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
        role = str(turn["role"]).casefold()
        turn["role"] = ROLES.get(role, role)
        turn["content"] = text_of_parts(turn.get("content"))
    return turns


@dataclass(frozen=True)
class Question:
    """What of a row becomes the prompt.

    asked: the question alone. columns: those that hold question or answer.
    """

    messages: Messages
    asked: str
    answers: dict[str, Any]  # what may be the right answer, by its column, the likeliest first
    columns: list[str]


def read_question(row: Row, further: Sequence[str] = ()) -> Question:
    """The messages of a row, and what may be its right answer; RowError if there is none.

    further: as in `find_columns`.
    """
    columns = find_columns(row, further)
    questions = {}
    for name in columns["problem"]:
        value = value_at(row, name)
        # Alpaca's `input` is empty where the whole question is the instruction.
        if value is not None and value != "":
            questions[name] = value
    answers = {}
    for name in columns["answer"]:
        value = value_at(row, name)
        if folded_name(name) in MESSAGES:
            # Of a conversation the assistant's last turn is one.
            turns = turns_of(value)
            is_answered = bool(turns) and turns[-1]["role"] == "assistant"
            value = turns[-1].get("content") if is_answered else None
        if isinstance(value, str):
            # What a reasoning model wrote: its answer is behind the thinking, if anything is.
            value = value[thinking_end(value) :].strip() or value
        if value is not None:
            answers[name] = value
    if not questions:
        raise _nothing_in("problem", columns, row)
    if not answers:
        raise _nothing_in("answer", columns, row)
    name, question = next(iter(questions.items()))
    used = [name, *columns["answer"]]
    # A row's own instruction stays alone.
    messages = with_default_system(prompt_of(row, question, used), R1_ZERO_SYSTEM)
    asked = question if isinstance(question, str) else str(messages[-1]["content"])
    return Question(messages, asked.strip(), answers, used)


def _nothing_in(column: str, columns: dict[str, list[str]], row: Row) -> RowError:
    where = ", ".join(columns[column] or map(str, row)) or "none"
    problem = f"nothing in the columns {where}; set {VARIABLES[column]} to use another column"
    return RowError(column, problem)


def prompt_of(row: Row, question: Any, used: Sequence[str]) -> Messages:
    """The messages of a row where they end with a question, else the passage and the question.

    used: the column of the question, and those of the answer.
    """
    for name in columns_named(MESSAGES, row):
        turns = turns_of(row[name])
        last = turns[-1] if turns else {}
        text = last.get("content")
        if last.get("role") == "user" and isinstance(text, str) and text.strip():
            return _after_system(row, conversation(turns))
    question = parsed(question)
    if isinstance(question, (list, tuple)):
        if len(question) > 1 and all(isinstance(each, str) for each in question):
            problem = f"expected one question a row, got {len(question)}: {shown(question)}"
            raise RowError("problem", problem, in_file=used[0])
        return _after_system(row, question_of(question))
    if not isinstance(question, str) or not question.strip():
        raise RowError("problem", f"expected a question, got {shown(question)}", in_file=used[0])
    question = question.strip()
    passage = passage_of(row, question, used)
    asked = f"{passage}\n\n{question}" if passage else question
    return _after_system(row, [{"role": "user", "content": asked}])


def _after_system(row: Row, turns: Messages) -> Messages:
    """The turns after the row's column `system`, where they have no system turn of their own."""
    system = row.get("system")
    return with_system(turns, system if isinstance(system, str) else None)


def golds_in(answer: Any) -> list[Any]:
    """The right answers that a value holds, of which any will do: a text, a list, an object such as
    verl's ``{"ground_truth": ...}``, each of them also as text.

    A text such as ``[1, 2]``, with no text in it, is one answer, a list.

    >>> golds_in('["121", "11^2"]'), golds_in({"ground_truth": "{'target': ['Rhine']}"})
    (['121', '11^2'], ['Rhine'])
    >>> golds_in("[1, 2]"), golds_in([1, 2])
    (['[1, 2]'], [1, 2])
    >>> golds_in([{"value": "Rhine", "aliases": ["Rhein", "Rhine"]}])
    ['Rhine', 'Rhein']
    """
    value = parsed(answer)
    golds = [value]
    if isinstance(value, Mapping):
        names = columns_named(_GOLD_KEYS, value)
        held = [value[name] for name in names if value[name] not in (None, "", [])]
        golds = golds_in(held[0]) if held else []
        golds = golds + list(value.get("aliases") or [])
        if isinstance(answer, str) and not golds:
            return [answer]
    elif isinstance(value, (list, tuple)):
        has_text = any(isinstance(each, (str, dict)) for each in value)
        if isinstance(answer, str) and value and not has_text:
            return [answer]
        golds = []
        for each in value:
            golds += golds_in(each) if isinstance(each, (str, Mapping)) else [each]

    different: list[Any] = []
    for gold in golds:
        if isinstance(gold, float):
            gold = as_written(gold)
        # True is not the number 1.
        if gold not in different or isinstance(gold, bool):
            different.append(gold)
    return different


def as_written(number: float) -> float:
    """The number that a float was written as, where a file keeps it in 32 bits.

    >>> as_written(0.10000000149011612), as_written(0.1), as_written(1 / 3), as_written(2.0**-20) == 2.0**-20
    (0.1, 0.1, 0.3333333333333333, True)
    """
    if not _SMALLEST < abs(number) < _LARGEST:
        return number
    # Columns that are written with more digits are of 64 bits.
    short = float(f"{number:.6g}")
    (in_32_bits,) = struct.unpack("f", struct.pack("f", short))
    return short if in_32_bits == number else number


def with_kept_columns(row: Row, question: Question, prepared: dict[str, Any]) -> dict[str, Any]:
    """A row for training with what ms-swift takes beside the messages."""
    text = turns_text(question.messages)
    # Choices may show an image too.
    asked = "\n".join([question.asked, *prepared.get("options", [])])
    return with_kept(prepared, kept_columns(row, text, asked))


def identity(row: Row) -> str:
    """The same text for rows that ask the same, of the same pictures."""
    return normalised(asked_text(read_question(row).messages)) + pictures_digest(row)


def pictures_digest(row: Row) -> str:
    """What tells a question about a picture from the same one about another."""
    pictures = pictures_in(row)
    return f"\n{digests(pictures)}" if pictures else ""


def choices_value(row: Row) -> Any:
    """The choices of a row in the form that the row has, or None."""
    for name in columns_named(COLUMNS, row):
        value = value_at(row, name)
        if value is not None and value != "" and value != []:
            return value
    # In columns A, B and so on
    by_letter = {letter: row[letter] for letter in LETTERS if row.get(letter) is not None}
    if len(by_letter) > 1:
        return by_letter
    # As in ReClor, where the right one has a column of its own
    answers = columns_named(("answers",), row)
    value = value_at(row, answers[0]) if answers else None
    has_label = columns_named(("label", *RIGHT_CHOICE), row)
    return value if has_label and isinstance(value, (list, tuple)) and len(value) > 1 else None


# --- math: an answer that external_accuracy can read


def math_answer(answers: Mapping[str, Any]) -> list[str]:
    """The right answers in what may be one, by column, as `external_accuracy` reads them: any will
    do. RowError if none is.
    """
    in_words: list[str] = []
    for column, answer in answers.items():
        golds, is_value = _readable(column, golds_in(answer))
        if is_value:
            return golds
        # The box in a later column is better than the answer "even". Beside "proof" only a box is.
        in_words = in_words or golds
    if _is_one_of(_NO_VALUE, next(iter(answers.values()))):
        in_words = []
    if not in_words:
        column, answer = next(iter(answers.items()))
        problem = f"expected an answer that external_accuracy can read, got {shown(answer)}"
        raise RowError("answer", problem, "no answer that can be read", in_file=column)
    return in_words


def _is_one_of(words: Sequence[str], answer: Any) -> bool:
    return isinstance(answer, str) and answer.strip().rstrip(".").casefold() in words


def _readable(column: str, answers: Sequence[Any]) -> tuple[list[str], bool]:
    """Those of these answers that can be read, and whether all are values; none where one of them
    is no answer at all.
    """
    golds = []
    all_values = True
    for answer in answers:
        if isinstance(answer, str):
            answer = without_html(answer)
            if isinstance(parsed(answer), Mapping):
                return [], False
        gold = readable_gold(answer)
        if gold is None or _is_one_of(_NO_VALUE, gold.text):
            return [], False
        if _SEVERAL.match(gold.text):
            problem = (
                f"expected the answer to one question, got those to several: {shown(gold.text)}"
            )
            raise RowError("answer", f"{problem}; write a row for each", in_file=column)
        if gold.is_words and len(gold.text.split()) > _MOST_WORDS:
            return [], False
        # A solution in words may state a number that is not its answer.
        all_values = all_values and not (gold.is_words or gold.in_sentence)
        golds.append(gold.text)
    return golds, all_values and bool(golds)


def prepare_math(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, `solution`, `options` where it has choices, and
    `task`. Several right answers are a list in JSON, so that `solution` is a text in every row.
    """
    question = read_question(row)
    golds = math_answer(question.answers)
    solution = golds[0] if len(golds) == 1 else json.dumps(golds, ensure_ascii=False)
    prepared = {"messages": question.messages, "solution": solution, "task": "math"}
    choices = choices_by_label(choices_value(row))
    if not choices:
        # Those that the question shows, where the answer is one of them: its parts a) and b) are none.
        listed = choices_in_text(question.asked)
        numbers = [number_of_gold(gold, listed, first=None) for gold in golds]
        choices = listed if None not in numbers else {}
    # Only those that a letter can name: the reward calls them A, B, C.
    if choices and list(choices) == list(LETTERS[: len(choices)]):
        prepared["options"] = list(choices.values())
    return with_kept_columns(row, question, prepared)


def without_html(text: str) -> str:
    """A text without the elements of HTML around it, and with the characters that it writes as
    `&nbsp;`; the tags that an answer is about stay.

    >>> without_html("<p><b>Goethe&nbsp;</b></p>"), without_html("<b>"), without_html("use <b>x</b>")
    ('Goethe', '<b>', 'use <b>x</b>')
    """
    text = text.strip()
    while element := _IN_HTML.fullmatch(text):
        text = element[2].strip()
    return html.unescape(text).replace("\xa0", " ").strip()


def math_gold(row: Row) -> Gold:
    """The right answer of a raw row; RowError for one that cannot be used."""
    return Gold(math_answer(read_question(row).answers)[0])


# --- qa: one of several texts


def accepted_answers(row: Row, answers: Mapping[str, Any]) -> list[str]:
    """The texts of which each is a right answer, in what may be one, by column; RowError if there
    is none. True and Yes are one answer, False and No another.
    """
    aliases: list[str] = []
    for name in columns_named(_ALIASES, row):
        aliases += filter(None, map(_as_text, golds_in(value_at(row, name) or [])))
    for answer in answers.values():
        golds = golds_in(answer)
        texts = []
        for gold in golds:
            text = _as_text(gold)
            # "The answer is Tom.": the name alone is meant, and who repeats the sentence is right, too.
            statement = final_statement(text)
            if statement is not None and statement.mark == "text":
                texts.append(statement.answer)
            texts.append(text)
        if not texts or not all(texts):
            continue
        accepted = [*texts, *aliases]
        if len(golds) == 1 and not aliases:
            # To explain the answer is not asked for.
            short = texts[0]
            yes_or_no = _YES_OR_NO.match(short)
            if yes_or_no:
                short = yes_or_no[1].capitalize()
                accepted.append(short)
            accepted += _BOOLEANS.get(short.casefold(), ())
        return accepted
    column, answer = next(iter(answers.items()))
    problem = f"expected a text, or a list of texts, got {shown(answer)}"
    raise RowError("answer", problem, in_file=column)


def _as_text(value: Any) -> str:
    """A gold as text; empty if it is none."""
    if isinstance(value, bool):
        return "Yes" if value else "No"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = without_html(str(value)) if isinstance(value, (str, int, float)) else ""
    # A solution states it in a box, in tags or behind ####; nobody would repeat the whole of it.
    marked = marked_answer(text)
    if marked is not None:
        text = marked[1]
    return text if normalised_answer(text) and not _is_one_of(_NO_ANSWER, text) else ""


def prepare_qa(row: Row) -> dict[str, Any]:
    """Raw row -> row for training: `messages`, `accepted_answers` and `task`."""
    question = read_question(row)
    accepted = accepted_answers(row, question.answers)
    # Of choices that the question shows, the letter and the text are one answer.
    listed = choices_in_text(question.asked)
    for gold in list(accepted):
        number = number_of_gold(gold, listed, first=None)
        if number is not None:
            letter, text = list(listed.items())[number]
            accepted += [each for each in (letter, text, f"{letter}. {text}") if each != gold]
    prepared = {"messages": question.messages, "accepted_answers": accepted}
    return with_kept_columns(row, question, {**prepared, "task": "qa"})


def qa_gold(row: Row) -> Gold:
    """The right answer of a raw row; RowError for one that cannot be used."""
    return Gold(accepted_answers(row, read_question(row).answers)[0])


@dataclass(frozen=True)
class OwnTask(Task):
    """A task whose columns may be called anything that is usual."""

    any_columns: ClassVar[bool] = True
    # As in `find_columns`.
    further: ClassVar[tuple[str, ...]] = ()

    def find_columns(self, present: Iterable[str]) -> dict[str, list[str]]:
        return find_columns(present, self.further)

    def golds_by_column(self, row: Row) -> dict[str, str]:
        answers = list(read_question(row, self.further).answers)
        gold = self.gold(row)
        if gold is None or len(answers) < 2:
            return {}
        golds: dict[str, str] = {}
        for name in answers:
            others = {other.partition(".")[0] for other in answers} - {name.partition(".")[0]}
            alone = {column: value for column, value in row.items() if column not in others}
            # The question may be in one of the others, or no answer in this one.
            with suppress(RowError):
                by_itself = self.gold(alone)
                # A word in a likelier column gives way to a value.
                if by_itself is not None and (golds or by_itself.answer == gold.answer):
                    golds[name] = by_itself.answer
        return golds

    def read_columns(self, row: Row) -> list[str]:
        question = read_question(row, self.further)
        # Of a question the prompt tells: beside messages it is not used. Nor is the answer of a
        # second column.
        not_known = {*columns_named(NAMES["problem"], row), *question.answers}
        read = [name for name in question.columns if name not in not_known]
        used = list(self.golds_by_column(row))[:1] or list(question.answers)
        prompt = prompt_text(question.messages)
        for name in columns_named(PASSAGES, row):
            passage = passage_text(row[name])
            if passage and passage in prompt:
                used.append(name)
        return [*read, *used, *columns_named((*KEPT_NAMES, *COLUMNS, *PICTURES), row)]

    def unused(self, row: Row) -> list[str]:
        prepared = self.preprocess(row)
        prompt = turns_text(prepared["messages"])
        used = [*read_question(row, self.further).columns, *self.read_columns(row)]
        left_over = unused_passages(row, used, prompt)
        if not {"images", "videos", "audios"} & prepared.keys():
            left_over += unused_images(row, used)
        return left_over

    def names_of(self, column: str) -> Sequence[str]:
        return (*NAMES[column], *self.further) if column == "answer" else NAMES[column]

    def variable_of(self, column: str) -> str | None:
        return VARIABLES[column]


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
