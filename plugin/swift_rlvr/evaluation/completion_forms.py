"""The lines of a file of completions, whichever tool wrote it: which completions and columns each line
holds.

- A record, as everything here writes it: see `swift_rlvr.runs.records`.
- One completion of a row, a text or a list of messages, under a name of COMPLETION_KEYS:
  ``{"completion": ..., "nums": [3, 5, 7], "target": 22}``. `swift infer` writes `response`, and the
  gold as `labels`; verl's `validation_data_dir` has `output`, and the gold as `gts`.
- Several completions of a row: ``{"question": ..., "answer": "7", "responses": ["...", "..."]}``.
- Messages that end with the assistant's turn, which is the completion.
- A table, whose columns are all lists of equal length, with one value for each completion.
  ms-swift's completions.jsonl has one for each logging step. Of the dataset's columns it holds at
  most `solution`.
- A sample of lm-evaluation-harness (`--log_samples`), with `doc`, `target` and `resps`.
- A line of an output file of OpenAI's batch API, which has no gold, or a chat completion alone.
"""

import codecs
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from swift_rlvr.evaluation.grade_samples import with_token_ids
from swift_rlvr.runs.records import is_record
from swift_rlvr.tasks import TASKS
from swift_rlvr.tasks.own import MESSAGES, turns_of
from swift_rlvr.tasks.task import columns_named
from swift_rlvr.utils.jsonl import LineError, brief, parse_object
from swift_rlvr.verifiers.messages import last_text

COMPLETION_KEYS = (
    *("completion", "response", "output", "generation", "prediction", "generated_text"),
    *("model_output", "model_response", "model_completion", "solution_str"),
    *("completions", "responses", "outputs", "generations", "predictions", "samples"),
    *("model_outputs", "model_responses", "model_completions"),
)
# Where the prompt stands: `prompts` as the rewards call it, `input` of verl. A rendered prompt says
# more than the question in it.
_PROMPTS = ("prompts", "prompt", "input", "messages", "question", "problem")
# The gold's column in verl's dumps, and in what `swift infer` writes.
GOLDS_ELSEWHERE = ("gts", "labels")
_OF_LM_EVAL = {"doc", "target", "resps"}
_OF_OPENAI = ("chat.completion", "text_completion", "response")
# What says nothing about the row in the answer of such a server.
_NO_COLUMN = (
    *("id", "object", "created", "usage", "status"),
    *("choices", "output", "response", "error"),
)


class NoCompletionError(LineError):
    """A line without a completion, which may be a row of a dataset."""


class Item(NamedTuple):
    """One completion, with the other columns of its line.

    position: from 1, among the completions of the line; None if the line has only one.
    finish: "length" where it was cut off, if the line says how it ended.
    """

    position: int | None
    completion: object
    row: dict[str, Any]
    finish: str | None = None


def items_of(row: dict[str, Any]) -> list[Item]:
    """The completions of a line's object; LineError if it has none.

    >>> items_of({"completion": "<answer>1+2</answer>", "nums": [1, 2], "target": 3})[0].row["target"]
    3
    >>> [(item.position, item.completion) for item in items_of({"step": ["7", "7"], "completion": ["a", "b"]})]
    [(1, 'a'), (2, 'b')]
    """
    if is_record(row):
        messages = row.get("messages")
        of_row = row.get("row") or {}
        if not isinstance(of_row, Mapping):
            raise LineError(f"row: expected an object, got {brief(of_row)}")
        columns = {**of_row, "messages": messages, "prompts": messages}
        return [Item(None, row["completion"], with_token_ids(columns, row.get("tokens")))]

    # A line of OpenAI's batch API. A request that failed has a null response and an error.
    response = row.get("response")
    has_failed = response is None and "error" in row
    is_of_batch = "custom_id" in row and (has_failed or isinstance(response, Mapping))
    if is_lm_eval_sample(row):
        items = _lm_eval_items(row)
    elif is_of_batch or row.get("object") in _OF_OPENAI:
        items = _openai_items(row)
    else:
        for key in columns_named(COMPLETION_KEYS, row):
            if row[key] is not None:
                items = _items_under(key, row)
                break
        else:
            items = [_conversation_item(row)]
    return [item._replace(row=_with_usual_names(item.row)) for item in items]


def _items_under(key: str, row: dict[str, Any]) -> list[Item]:
    """The completions in the column of this name: one, several of the row, or those of a table."""
    value = _as_text(row[key])
    if is_completion(value):
        return [Item(None, value, row)]
    is_table = all(isinstance(column, list) for column in row.values())
    # An empty list alone is no table; ms-swift writes empty tables with several columns.
    is_empty_table = is_table and len(row) > 1
    if not isinstance(value, list) or not (value or is_empty_table):
        expected = "expected a text, a list of messages or a list of completions"
        raise LineError(f"{key}: {expected}, got {brief(value)}")
    if not is_table:
        return _several(value, row)

    for name, values in row.items():
        if len(values) != len(value):
            raise LineError(
                f"lists of unequal length: {key} has {len(value)}, {name} has {len(values)}"
            )
    items = []
    for position, row_values in enumerate(zip(*row.values(), strict=True), start=1):
        of_completion = dict(zip(row, row_values, strict=True))
        items.append(Item(position, _as_text(of_completion[key]), of_completion))
    return items


def _several(completions: Sequence[Any], row: dict[str, Any]) -> list[Item]:
    """Completions of the same row: texts, messages, or objects as servers answer with."""
    items = []
    for position, completion in enumerate(completions, start=1):
        finish = None
        if isinstance(completion, Mapping):
            finish = completion.get("finish_reason")
            # A choice has a message, one of the older API a text; a message stands for itself.
            if isinstance(completion.get("message"), Mapping):
                completion = [completion["message"]]
            elif "text" in completion:
                completion = completion["text"]
            else:
                completion = [completion]
        items.append(Item(position, _as_text(completion), row, finish))
    return items


def _as_text(completion: Any) -> Any:
    """A completion that is a number as text: 7 in a .csv file is what a model wrote."""
    is_number = isinstance(completion, (int, float)) and not isinstance(completion, bool)
    return str(completion) if is_number else completion


def _conversation_item(row: dict[str, Any]) -> Item:
    """The assistant's last turn of the messages, with the turns before it."""
    # ShareGPT calls them conversations; `turns_of` reads their roles, too.
    for name in MESSAGES:
        turns = turns_of(row.get(name))
        if not turns:
            continue
        if turns[-1]["role"] != "assistant":
            raise NoCompletionError(
                f"no completion: {name} end with the turn of {turns[-1]['role']!r:.40}, expected "
                "the assistant's"
            )
        return Item(None, turns[-1:], {**row, "messages": turns[:-1]})
    without_value = columns_named(COMPLETION_KEYS, row)
    if without_value:
        raise NoCompletionError(f"no completion: {without_value[0]} is null")
    raise NoCompletionError(
        "no completion: expected a column such as completion, response or output (--columns names "
        f"another), or messages that end with the assistant's turn, got {column_names(row)}"
    )


def is_lm_eval_sample(row: Mapping[str, Any]) -> bool:
    """Whether a line is a sample of lm-evaluation-harness."""
    return row.keys() >= _OF_LM_EVAL


def _lm_eval_items(sample: dict[str, Any]) -> list[Item]:
    doc = sample["doc"] if isinstance(sample["doc"], Mapping) else {}
    # {"gen_args_0": {"arg_0": PROMPT, ...}} or [[PROMPT, ...]]
    arguments: Any = sample.get("arguments")
    prompt = None
    with suppress(KeyError, IndexError, TypeError):
        if isinstance(arguments, Mapping):
            prompt = arguments["gen_args_0"]["arg_0"]
        else:
            prompt = arguments[0][0]
    # Of the same names those of the harness count: doc may have a prompt or a target of its own.
    row = {**doc, "doc_id": sample.get("doc_id")}
    row["prompt"] = prompt if isinstance(prompt, str) else None
    if sample["target"] not in (None, ""):
        row["answer"] = sample["target"]
    # A list for each request of the sample, with a text for each repetition.
    texts = []
    for request in _listed(sample, "resps"):
        texts += request if isinstance(request, list) else [request]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise LineError(
            "no completion: this sample of lm-evaluation-harness has likelihoods, and no text that "
            "a model wrote"
        )
    if len(texts) == 1:
        return [Item(None, texts[0], row)]
    return _several(texts, row)


def _openai_items(line: dict[str, Any]) -> list[Item]:
    """The choices of a chat completion, or of the one that a line of a batch holds; LineError where the
    request of that line has failed.
    """
    row = {name: value for name, value in line.items() if name not in _NO_COLUMN}
    answer: Mapping[str, Any] = line
    if "custom_id" in line:
        response = line.get("response") or {}
        answer = response.get("body") or {}
        if not isinstance(answer, Mapping):
            raise LineError(f"body: expected an object, got {brief(answer)}")
        # It may have failed as a whole, or have been answered with an error.
        error = line.get("error") or answer.get("error")
        if error or not answer:
            reason = error.get("message", error) if isinstance(error, Mapping) else error
            raise LineError(f"the request {line['custom_id']!r:.60} failed: {reason!s:.200}")

    if "model" in answer:
        row["model"] = answer["model"]
    if answer.get("object") == "response":
        # The responses API: reasoning and tool calls come before the message.
        message = None
        for part in _listed(answer, "output"):
            if isinstance(part, Mapping) and part.get("type") == "message":
                message = [part]
        finish = "length" if answer.get("status") == "incomplete" else "stop"
        return [Item(None, message, row, finish)]
    items = _several(_listed(answer, "choices"), row)
    if not items:
        raise LineError(f"no completion: expected choices, got {column_names(answer)}")
    return [items[0]._replace(position=None)] if len(items) == 1 else items


def _listed(answer: Mapping[str, Any], name: str) -> list[Any]:
    """The list under this name, which servers leave out or write as null where it is empty; LineError
    for anything else.
    """
    values = answer.get(name) or []
    if not isinstance(values, list):
        raise LineError(f"{name}: expected a list, got {brief(values)}")
    return values


def _with_usual_names(row: dict[str, Any]) -> dict[str, Any]:
    """The row with `prompts`, without the completion in its messages, and with a gold that has a
    trainer's name for it as `answer`.
    """
    turns = turns_of(row.get("messages"))
    # Some keep the answer there a second time; a reward that reads the question must not see it.
    if turns and turns[-1]["role"] == "assistant":
        row = {**row, "messages": turns[:-1]}
    for name in columns_named(_PROMPTS, row):
        if isinstance(row[name], (str, list)):
            row = {**row, "prompts": row[name]}
            break
    for name in GOLDS_ELSEWHERE:
        gold = row.get(name)
        if gold is None or "answer" in row:
            continue
        if isinstance(gold, Mapping) and {"numbers", "target"} <= gold.keys():
            # TinyZero's Countdown.
            row = {**row, "nums": gold["numbers"], "target": gold["target"]}
        else:
            row = {**row, "answer": gold}
    return row


def read_object(line: bytes | str) -> dict[str, Any]:
    """The JSON object on a line, which may begin with a byte order mark; LineError for anything
    else.
    """
    if isinstance(line, bytes):
        line = line.removeprefix(codecs.BOM_UTF8)
    return parse_object(line)


def is_completion(value: object) -> bool:
    """Whether a value is a text or a list of messages.

    >>> is_completion("7"), is_completion([{"role": "assistant", "content": "7"}]), is_completion(["7"])
    (True, True, False)
    """
    if isinstance(value, str):
        return True
    if not isinstance(value, list) or not value:
        return False
    return isinstance(value[-1], dict) and ("content" in value[-1] or "role" in value[-1])


def no_completion(value: object) -> LineError:
    """The error for what stands in a completion's place and is none."""
    return LineError(f"expected a text or a list of messages, got {brief(value)}")


def readers_of_prompts() -> dict[frozenset[str], Callable[[str], dict[str, Any] | None]]:
    """What reads the columns of a verifier in a prompt, by these columns."""
    readers = {}
    for task in TASKS.data.values():
        if task.columns_in_prompt is not None:
            readers[frozenset(task.reward_columns)] = task.columns_in_prompt
    return readers


def with_columns_from_prompt(row: dict[str, Any]) -> dict[str, Any]:
    """The row with the columns that its prompt tells, where it has none of them and its prompt is one
    of a task that can be read, as Countdown's can; else the row itself.

    The prompt is `prompt`, a text or messages, or the last user turn of `messages`.
    """
    readers = []
    for columns, read in readers_of_prompts().items():
        if columns.isdisjoint(row.keys()):
            readers.append(read)
    if not readers:
        return row
    prompt = row.get("prompt")
    messages = row.get("messages")
    if prompt is None and isinstance(messages, list):
        prompt = []
        for turn in messages:
            if isinstance(turn, dict) and turn.get("role") == "user":
                prompt.append(turn)
    text = last_text(prompt) or ""
    for read in readers:
        told = read(text)
        if told is not None:
            return {**row, **told}
    return row


def column_names(row: Mapping[str, Any]) -> str:
    """The keys of a row in at most 120 characters."""
    text = ", ".join(map(repr, row)) or "nothing"
    return text if len(text) <= 120 else f"{text[:117]}..."
