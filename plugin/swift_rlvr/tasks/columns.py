"""Which column of a row holds what: the names that are usual for it, values within values, the
passage that a question is about, what a trainer takes beside the messages, and what is left over.
"""

import json
import math
import os
import re
from ast import literal_eval
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from swift_rlvr.tasks.pictures import (
    BASE64,
    CODE,
    LONGEST_PATH,
    TAG,
    Picture,
    count_text,
    picture_of,
    pictures_of_parts,
    placed,
)
from swift_rlvr.tasks.task import Row, RowError, columns_named, folded_name
from swift_rlvr.utils.settings import PREFIX, Settings, setting

# Columns with a conversation. The assistant's last turn is an answer too, the unlikeliest.
MESSAGES = ("messages", "conversations", "conversation")
# The usual names of the two columns, the likeliest first, compared as `columns_named` does. One with
# a dot is within another column.
NAMES = {
    "problem": (
        *("problem", "question.stem", "question.text", "question", "problem_statement"),
        *(
            "question_text",
            "problem_text",
            "question_stem",
            "stem",
            "query",
            "prompt",
            "input",
            "instruction",
        ),
        *("goal", "ctx", "sentence", "original_text", "question_chinese"),
        *("题目", "题干", "问题", *MESSAGES, "responses_create_params.input"),
    ),
    "answer": (
        *("answer", "final_answer", "expected_answer", "gold", "gold_answer", "golden"),
        *("golden_answer", "golden_answers", "target", "ground_truth", "ground_truth_answer"),
        *("gt", "gt_answer", "reward_model", "answers", "answerkey", "possible_answers"),
        *("reference_answer", "expected_output", "expected", "ideal"),
        *("answer_number", "answers_spans", "final_decision", "label", "ans", "result"),
        *("solution", "gold_standard_solution", "verification_info", "output", "response"),
        *("答案", "标准答案", "参考答案", "解答", "extra_info.answer", *MESSAGES),
    ),
}
# Where their names are given.
VARIABLES = {"problem": f"{PREFIX}QUESTION_COLUMN", "answer": f"{PREFIX}ANSWER_COLUMN"}
# The text that a question is about. `instruction` is one where the question is in another column.
PASSAGES = (
    *("instruction", "context", "contexts", "passage", "article", "paragraph", "paragraphs"),
    *("document", "documents", "story", "dialogue", "background", "support", "body", "text"),
    *("premise", "premises", "pre_text", "table", "tables", "post_text", "材料", "短文"),
)
# What ms-swift takes beside the messages, with the other names that it knows for it.
KEPT = {
    "images": ("images", "image"),
    "videos": ("videos", "video"),
    "audios": ("audios", "audio"),
    "tools": ("tools",),
    "objects": ("objects",),
    "chat_template_kwargs": ("chat_template_kwargs",),
    # and what our rewards take beside the gold
    "answer_form": ("answer_form",),
    "thinking_opened": ("thinking_opened",),
}
KEPT_NAMES = tuple(chain.from_iterable(KEPT.values()))
# Other names of columns with pictures, the likeliest first. MathVista's `image` is a path that only its
# authors have, beside the picture in `decoded_image`.
PICTURES = (
    *(*KEPT["images"], "decoded_image", "image_path", "image_paths", "image_file", "image_url"),
    *("image_urls", "image_base64", "img", "imgs", "img_path", "picture", "pictures", "figure"),
    *("figure_path", "diagram"),
)
# MMMU's image_1 to image_7.
_NUMBERED_COLUMN = re.compile(r"image_?(\d+)", re.IGNORECASE)
# What stands in a question for one of them.
_TAGS = {"images": TAG, "videos": "<video>", "audios": "<audio>"}
# Other ways to show an image: Markdown's, HTML's, and MMMU's <image 1>.
_SHOWN_IMAGE = re.compile(
    r"!\[[^\]\n]*\]\((?:https?:|data:|[^)\s]+\.(?:png|jpe?g|gif|svg|webp|bmp))[^)\n]*\)|<img\b[^>]*>",
    re.IGNORECASE,
)
_NUMBERED_IMAGE = re.compile(r"<image[ _]?(\d+)>")
_IMAGE_FILE = re.compile(r"\S+\.(?:png|jpe?g|gif|svg|webp|bmp|tiff?)", re.IGNORECASE)
_SOUND_OR_FILM = re.compile(r"\S+\.(?:mp4|mov|avi|mkv|webm|wav|mp3|flac|ogg|m4a)", re.IGNORECASE)
# Parts of a passage that is an object, the likeliest first.
_PARTS = (
    *("text", "paragraph_text", "contexts", "sentences", "paragraphs", "passage", "content"),
    *("contents", "context", "document", "summary", "table"),
)
# What holds the names of the columns of a table that is an object, and what its rows.
_HEADERS = ("header", "headers", "columns")
_ROWS = ("rows", "data", "values")
# Lists of texts are rows of a table where none is longer, and none is a sentence.
_LONGEST_CELL = 80
# What else may be long: other forms of the answer, which no prompt may show.
_ABOUT_THE_ANSWER = (
    *("solution", "rationale", "explanation", "exp", "analysis", "reasoning", "response", "output"),
    *("cot", "completion", "proof", "fact", "hint", "long_answer", "trace", "thought", "generat"),
    *("answer", "code", "解", "答"),
)
# What looks like a passage is at least this long.
_SHORTEST_PASSAGE = 60
# Of a text that stands for an object or a list, as in a .csv file.
_LONGEST_NOTATION = 1_000_000


@dataclass(frozen=True)
class ColumnSettings(Settings):
    """What the columns of a file are called."""

    question_column: str | None = setting(None, "The column with the question.")
    answer_column: str | None = setting(None, "The column with the right answer.")


def find_columns(present: Iterable[str], further: Sequence[str] = ()) -> dict[str, list[str]]:
    """For `problem` and `answer` the columns that may hold them, the likeliest first.

    further: names of the answer's column, besides those in `NAMES`.
    """
    present = list(present)
    settings = ColumnSettings.from_environment()
    question, answer = settings.question_column, settings.answer_column
    return {
        "problem": columns_named((question,) if question else NAMES["problem"], present),
        "answer": columns_named((answer,) if answer else (*NAMES["answer"], *further), present),
    }


def value_at(row: Row, path: str) -> Any:
    """What is in a column, or within one at a path with dots; None if there is nothing.

    The path leads through objects, lists (`choices.0`) and texts that stand for them. A number that
    is none, as of an empty field, is nothing.

    >>> value_at({"info": '{"gold": ["4", "5"]}'}, "info.gold.1"), value_at({"a.b": 1}, "a.b")
    ('5', 1)
    """
    if path in row:
        return _something(row[path])
    name, dot, rest = path.partition(".")
    columns = columns_named((name,), row)
    value = row[columns[0]] if columns else None
    while dot:
        value = parsed(value)
        name, dot, rest = rest.partition(".")
        if isinstance(value, Mapping):
            names = columns_named((name,), value)
            value = value[names[0]] if names else None
        elif isinstance(value, (list, tuple)) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        else:
            return None
    return _something(value)


def _something(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def parsed(value: Any) -> Any:
    """What a text of JSON, or of Python's notation, stands for, where that is an object or a list;
    anything else as it is.

    >>> parsed('["121", "11^2"]'), parsed("{'a': None}"), parsed("(1, 2)"), parsed("[1, 2")
    (['121', '11^2'], {'a': None}, '(1, 2)', '[1, 2')
    """
    text = value.strip() if isinstance(value, str) else ""
    if text[:1] + text[-1:] not in ("[]", "{}") or len(text) > _LONGEST_NOTATION:
        return value
    for read in (json.loads, literal_eval):
        try:
            result = read(text)
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(result, (list, dict)):
            return result
    return value


# --- The passage


def passage_of(row: Row, question: str, used: Iterable[str]) -> str:
    """The passage that a question is about; empty if there is none, or the question holds it.

    used: the columns that hold question and answer.
    """
    passages: list[str] = []
    names_used = {name.partition(".")[0] for name in used}
    for name in columns_named(PASSAGES, row):
        if name in names_used:
            continue
        text = passage_text(row[name])
        # One with the question in it is the prompt of another trainer, perhaps with the answer.
        is_new = text and text not in question and question not in text
        if is_new and text not in passages:
            passages.append(text)
    return "\n\n".join(passages)


def passage_text(value: Any) -> str:
    """A passage as text, in whatever form a dataset has it: a text, paragraphs, paragraphs with
    titles as in HotpotQA, a table by rows or by columns; empty for anything else.

    >>> passage_text({"title": ["Rhine", "Main"], "sentences": [["It is long.", " And wide."], ["So."]]})
    'Rhine\\nIt is long. And wide.\\n\\nMain\\nSo.'
    >>> passage_text([{"title": "Rhine", "paragraph_text": "It is long."}]), passage_text(["a", "b"])
    ('Rhine\\nIt is long.', 'a\\n\\nb')
    >>> passage_text({"header": ["city", "year"], "rows": [["Bonn", 11], ["Ulm", 850]]})
    '| city | year |\\n| Bonn | 11 |\\n| Ulm | 850 |'
    """
    value = parsed(value)
    if isinstance(value, str):
        return value.strip()
    rows = _table_rows(value)
    if rows:
        return "\n".join(f"| {' | '.join(row)} |" for row in rows)
    if isinstance(value, Mapping):
        title = value.get("title")
        for name in columns_named(_PARTS, value):
            part = value[name]
            if isinstance(title, (list, tuple)) and isinstance(part, (list, tuple)):
                return _joined(map(_titled, title, part))
            if part:
                return _titled(title, part)
        return ""
    if isinstance(value, (list, tuple)):
        # HotpotQA's own files: [title, [sentence, ...]]
        if len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], (list, tuple)):
            return _titled(*value)
        return _joined(map(passage_text, value))
    return ""


def _table_rows(value: Any) -> list[list[str]]:
    """The rows of a table, the names of its columns first where it has some; empty if it is none."""
    table, has_names = _as_table(value)
    rows: list[list[str]] = []
    has_numbers = has_sentences = False
    for row in table:
        if not isinstance(row, (list, tuple)):
            return []
        rows.append([])
        for cell in row:
            if cell is not None and not isinstance(cell, (str, int, float)):
                return []
            text = "" if cell is None else str(cell).strip()
            has_numbers = has_numbers or isinstance(cell, (int, float))
            has_sentences = has_sentences or text.endswith(".") or len(text) > _LONGEST_CELL
            rows[-1].append(text)
    if has_names or has_numbers:
        return rows
    # Lists of texts may be paragraphs, of sentences.
    is_even = len(rows) > 1 and len(set(map(len, rows))) == 1 < len(rows[0])
    return rows if is_even and not has_sentences else []


def _as_table(value: Any) -> tuple[list[Any], bool]:
    """What may be the rows of a table, and whether it names its columns, which are then the first."""
    if isinstance(value, Mapping):
        headers, rows = columns_named(_HEADERS, value), columns_named(_ROWS, value)
        if headers and rows and isinstance(value[rows[0]], (list, tuple)):
            # as in WikiTableQuestions
            return [value[headers[0]], *value[rows[0]]], True
        # {"city": ["Bonn", "Ulm"], "year": [11, 850]}
        lengths = set()
        for column in value.values():
            lengths.add(len(column) if isinstance(column, (list, tuple)) else None)
        if len(lengths) == 1 and not {None, 0} & lengths and not columns_named(_PARTS, value):
            return [list(value), *zip(*value.values(), strict=True)], True
        return [], False
    if not isinstance(value, (list, tuple)) or not value:
        return [], False
    first = value[0]
    if not isinstance(first, Mapping):
        return list(value), False
    # [{"city": "Bonn", "year": 11}, ...], but not paragraphs with titles
    table = [list(first)]
    for row in value:
        if not isinstance(row, Mapping) or list(row) != table[0] or columns_named(_PARTS, first):
            return [], False
        table.append(list(row.values()))
    return table, True


def _titled(title: Any, part: Any) -> str:
    """A paragraph after its title. The sentences of one are joined as they are."""
    is_sentences = isinstance(part, (list, tuple)) and all(isinstance(each, str) for each in part)
    if is_sentences and isinstance(title, str):
        spaced = [each if each[:1].isspace() else f" {each}" for each in part]
        text = "".join(spaced).strip()
    else:
        text = passage_text(part)
    return f"{title.strip()}\n{text}" if isinstance(title, str) and text else text


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(text for text in texts if text)


# --- What a trainer takes beside the messages


def kept_columns(row: Row, prompt: str, question: str) -> dict[str, Any]:
    """Images, tools and the like under ms-swift's names.

    prompt: all that the messages say. question: what the row asks, alone.

    RowError if the question shows more images, videos or audios than the row has, or one of them
    is not there or cannot be read.
    """
    kept: dict[str, Any] = {}
    pictures = pictures_in(row)
    if pictures:
        kept["images"] = pictures
    for name, names in KEPT.items():
        for column in columns_named(names, row):
            value = _something(row[column])
            if name == "images" or name in kept or value is None or _is_empty(value):
                continue
            if name in _TAGS:
                value = parsed(value)
                value = list(value) if isinstance(value, (list, tuple)) else [value]
                _require_files(value, column)
            kept[name] = value
    _require_what_is_shown(row, kept, prompt, question)
    return kept


def _require_what_is_shown(row: Row, kept: Row, prompt: str, question: str) -> None:
    """RowError if a prompt shows more images, videos or audios than a row has."""
    in_words = CODE.sub("", prompt)
    for name, tag in _TAGS.items():
        shown = in_words.count(tag)
        count = len(kept.get(name, []))
        if shown > count:
            times = "once" if shown == 1 else f"{shown} times"
            things = name if count != 1 else name.removesuffix("s")
            problem = f"the question has {tag} {times}, and the row has {count} {things}"
            raise RowError(name, problem)
    images = len(kept.get("images", []))
    text = CODE.sub("", question)
    numbered = set(_NUMBERED_IMAGE.findall(text))
    if len(numbered) > images:
        last = max(numbered, key=int)
        problem = f"the question has <image {last}>, and the row has {count_text(images)}"
        raise RowError("images", problem)
    # Without image_1, <image 2> would be the picture in image_3.
    is_filled = [bool(_present(row[column])) for column in numbered_pictures(row)]
    if numbered and is_filled != sorted(is_filled, reverse=True):
        empty = numbered_pictures(row)[is_filled.index(False)]
        problem = f"the question numbers its images, and {empty} is empty before others"
        raise RowError("images", problem)
    written = _SHOWN_IMAGE.search(text)
    if written and not images:
        raise RowError("images", f"the question has {written[0]:.80}, and the row has 0 images")


def with_kept(prepared: Mapping[str, Any], kept: Mapping[str, Any]) -> dict[str, Any]:
    """A row for training with what `kept_columns` gave, and its pictures in their places."""
    messages, pictures = placed(prepared["messages"], kept.get("images", []))
    row = {**prepared, **kept, "messages": messages}
    if pictures:
        row["images"] = pictures
    return row


def pictures_in(row: Row) -> list[Picture]:
    """The pictures of a row, each in one form; RowError if one cannot be read.

    They are in the first column with a usual name that has any. One with paths of files that are not
    here gives way to another.
    """
    refused: RowError | None = None
    for column, values in _picture_columns(row):
        try:
            return [picture_of(value, column) for value in values]
        except RowError as error:
            if error.label != "no picture":
                raise
            refused = refused or error
    if refused is not None:
        raise refused
    return []


def has_pictures(row: Row) -> bool:
    """Whether a raw row has pictures, which may not be there."""
    return next(_picture_columns(row), None) is not None


def _picture_columns(row: Row) -> Iterator[tuple[str, list[Any]]]:
    """The columns that hold pictures, each with what is in it; image_1, image_2 and so on are one. The
    last are conversations with OpenAI's parts.
    """
    for column in columns_named(PICTURES, row):
        values = _present(row[column])
        # Other names may stand for something else, such as the number of a figure.
        is_usual = folded_name(column) in KEPT["images"]
        if values and (is_usual or _are_images(column, values)):
            yield column, values
    columns = numbered_pictures(row)
    numbered: list[Any] = []
    for column in columns:
        numbered += _present(row[column])
    if numbered and _are_images(columns[0], numbered):
        yield columns[0], numbered
    for column in columns_named((*MESSAGES, *NAMES["problem"]), row):
        if pictures := pictures_of_parts(parsed(value_at(row, column))):
            yield column, pictures
            return


def _are_images(column: str, values: Iterable[Any]) -> bool:
    return all(_is_image(column, value) for value in values)


def numbered_pictures(present: Iterable[str]) -> list[str]:
    """The columns image_1, image_2 and so on, in order."""
    numbered = []
    for column in present:
        if match := _NUMBERED_COLUMN.fullmatch(str(column)):
            numbered.append((int(match[1]), column))
    return [column for _, column in sorted(numbered)]


def _present(value: Any) -> list[Any]:
    """What a column holds, as a list, without what is empty."""
    value = parsed(_something(value))
    if isinstance(value, Mapping) and not (value.get("bytes") or value.get("path")):
        value = value.get("url")
    values = value if isinstance(value, (list, tuple)) else [value]
    return [each for each in values if each is not None and not _is_empty(each)]


def _require_files(values: Iterable[Any], column: str) -> None:
    """RowError if one of these videos or audios is the path of a file that is not there."""
    for value in values:
        path = value
        if isinstance(value, Mapping):
            path = None if value.get("bytes") else value.get("path")
        if not isinstance(path, str) or "://" in path or path.startswith("data:"):
            continue
        path = path.strip()
        if len(path) > LONGEST_PATH or BASE64.fullmatch(path):
            continue
        # As ms-swift looks for it.
        in_folder = os.path.join(os.environ.get("ROOT_IMAGE_DIR", ""), path)
        if not os.path.exists(path) and not os.path.exists(os.path.expanduser(in_folder)):
            where = "in the working folder or ROOT_IMAGE_DIR"
            raise RowError(column, f"there is no file {path!r:.200} {where}")


def _is_empty(value: Any) -> bool:
    return isinstance(value, (str, list, tuple, dict)) and not value


# --- What is left over


def unused_passages(row: Row, used: Iterable[str], prompt: str) -> list[str]:
    """The columns that hold a text which looks like a passage and that are not in the prompt.

    used: the columns that are known to hold something else.
    """
    known = {name.partition(".")[0] for name in used}
    left_over = []
    for name, value in row.items():
        if name in known or not isinstance(value, (str, list, tuple, Mapping)):
            continue
        folded = folded_name(name)
        if any(folded_name(part) in folded for part in _ABOUT_THE_ANSWER):
            continue
        text = passage_text(value)
        # A column with the name of a passage may be short.
        is_named = bool(columns_named(PASSAGES, [name]))
        is_prose = " " in text.strip() and (is_named or len(text) >= _SHORTEST_PASSAGE)
        if is_prose and text not in prompt:
            left_over.append(name)
    return left_over


def unused_images(row: Row, used: Iterable[str]) -> list[str]:
    """The columns that hold an image, or the path of one, of a video or of a sound, and that no trainer
    is given.

    used: the columns that are known to hold something else.
    """
    known = {name.partition(".")[0] for name in used}
    left_over = []
    for name, value in row.items():
        is_file = isinstance(value, str) and bool(_SOUND_OR_FILM.fullmatch(value.strip()))
        if name not in known and (is_file or _is_image(name, value)):
            left_over.append(name)
    return left_over


def _is_image(name: str, value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_is_image(name, each) for each in value)
    if isinstance(value, Mapping):
        return bool(value.get("bytes")) or _is_image(name, value.get("path"))
    if isinstance(value, str):
        if _IMAGE_FILE.fullmatch(value.strip()):
            return True
        is_called_so = any(word in folded_name(name) for word in ("image", "img", "picture"))
        return is_called_so and bool(re.match(r"https?://|data:", value) or BASE64.fullmatch(value))
    # A picture that a reader of datasets has opened already.
    return isinstance(value, bytes) or hasattr(value, "getpixel")
