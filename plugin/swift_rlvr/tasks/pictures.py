"""Pictures in rows: one form for all the ways in which datasets hold them, whether a trainer can read
them, and their places in a prompt.

A prepared row has the column `images`, a list of ``{"bytes": ..., "path": ...}``, which is ms-swift's
own form: the content of a file, or its path or URL. A prompt shows each of them as ``<image>``, in
their order.
"""

import base64
import binascii
import io
import os
import re
import struct
import warnings
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from swift_rlvr.tasks.task import Messages, RowError, shown
from swift_rlvr.utils.errors import InputError, require

IMAGES = "images"
TAG = "<image>"
# As in ms-swift, a longer text is no path but the file itself, in base64. No image is as short as
# the other bound.
LONGEST_PATH = 2000
# EXIF's tag of how a picture is turned, and its value for one that is not.
_ORIENTATION, _UPRIGHT = 0x0112, 1
# Qwen's models that see raise an error where one side is more than so many times the other.
_MOST_TIMES_LONGER = 200
BASE64 = re.compile(r"[A-Za-z0-9+/\s]{80,}=*\s*")

Picture = dict[str, Any]  # `bytes` and `path`, of which one is None, or the path is a mere name

# What is in backticks shows nothing: a question may be about the tag.
CODE = re.compile(r"`[^`]*`")
# <image>, MMMU's <image 1>, and code.
_TAGS = re.compile(rf"{CODE.pattern}|<image[ _]?(?P<number>\d+)>|<image>")
# What ms-swift takes for a picture, a video or a sound, wherever it stands.
_TAG_OF_SWIFT = re.compile(r"<(image|video|audio)>")
# The types of OpenAI's parts of a message. Further ones are of transformers and the Responses API.
_TEXT_PARTS = ("text", "input_text")
_IMAGE_PARTS = ("image_url", "image", "input_image")
_URL = re.compile(r"https?://")
_DATA = re.compile(r"data:[^,;]*;base64,")
# What Pillow raises for what is no picture, or half of one.
_BROKEN = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    TypeError,
    struct.error,
    zlib.error,
)


@dataclass(frozen=True)
class Content:
    """What is in the file of a picture.

    problem: why no trainer can use it; empty if one can. digest: of its bytes. format: as Pillow
    calls it, such as PNG.
    """

    digest: str
    problem: str = ""
    width: int = 0
    height: int = 0
    format: str = ""


# What was seen already: a check prepares each row several times.
_seen: dict[tuple[Any, ...], Content] = {}


def picture_of(value: Any, column: str) -> Picture:
    """A picture in whatever form a dataset has it: a path, a URL, a data URI, base64, bytes, an
    object with `bytes`, `path` or `url`, or a picture that a reader of datasets has opened.

    RowError, which names the column, for anything else, a file that is not there, and a picture that
    cannot be read. A URL is not opened.
    """
    picture = _in_one_form(value, column)
    if picture["bytes"] is None and not _is_url(picture["path"]):
        file = file_of(picture["path"])
        if file is None:
            where = "beside the data file, in the working folder or ROOT_IMAGE_DIR"
            raise RowError(
                column, f"there is no file {picture['path']!r:.200} {where}", "no picture"
            )
        picture = {"bytes": None, "path": str(file)}
    content = content_of(picture)
    if content is not None and content.problem:
        name = picture["path"] or "the picture"
        raise RowError(column, f"{name}: {content.problem}", "unreadable picture")
    return picture


def _in_one_form(value: Any, column: str) -> Picture:
    path = None
    if isinstance(value, Mapping):
        path = value.get("path") or value.get("url")
        held = value.get("bytes")
        if held and isinstance(held, str):
            return {"bytes": _decoded(held, column), "path": path}
        value = held or path
    if isinstance(value, bytes):
        return {"bytes": value, "path": path}
    if hasattr(value, "getpixel"):
        file = io.BytesIO()
        value.save(file, "PNG")
        return {"bytes": file.getvalue(), "path": None}
    if not isinstance(value, str) or not value.strip():
        expected = "a path, a URL, base64, bytes, or an object with bytes or path"
        raise RowError(column, f"expected a picture as {expected}, got {shown(value)}")
    return _of_text(value.strip().removeprefix("file://"), column)


def _of_text(text: str, column: str) -> Picture:
    """A picture of its content in base64, or of where it is."""
    data = _DATA.match(text)
    if data:
        return {"bytes": _decoded(text[data.end() :], column), "path": None}
    looks_like_content = len(text) > LONGEST_PATH or BASE64.fullmatch(text)
    if looks_like_content and not _is_url(text) and file_of(text) is None:
        return {"bytes": _decoded(text, column), "path": None}
    return {"bytes": None, "path": text}


def _decoded(text: str, column: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise RowError(
            column, f"not base64 ({error}): {shown(text)}", "unreadable picture"
        ) from error


def _is_url(text: str | None) -> bool:
    return bool(text and _URL.match(text))


def file_of(path: str) -> Path | None:
    """The file of a path, where ms-swift looks for it; None if there is none."""
    if len(path) > LONGEST_PATH:
        return None
    in_folder = os.path.join(os.environ.get("ROOT_IMAGE_DIR", ""), path)
    for candidate in (path, os.path.expanduser(in_folder)):
        # Path.is_file raises where a name has too many bytes, and Path.expanduser for the home of nobody.
        if os.path.isfile(candidate):
            return Path(candidate)
    return None


def beside(folder: Path, value: Any) -> Any:
    """A value of a row whose paths count from the folder of its data file, where that has them."""
    if isinstance(value, list):
        return [beside(folder, each) for each in value]
    if isinstance(value, Mapping) and not value.get("bytes") and value.get("path"):
        return {**value, "path": beside(folder, value["path"])}
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_PATH or "\n" in value:
        return value
    file = str(folder / value.strip())
    return file if os.path.isfile(file) else value


def content_of(picture: Picture) -> Content | None:
    """What is in a picture's file, decoded as ms-swift does; None for a URL, which nobody opens."""
    held, path = picture["bytes"], picture["path"]
    if held is None:
        if _is_url(path):
            return None
        stat = os.stat(path)
        key: tuple[Any, ...] = (path, stat.st_size, stat.st_mtime_ns)
        if key in _seen:
            return _seen[key]
        held = Path(path).read_bytes()
    else:
        key = (sha256(held).digest(),)
        if key in _seen:
            return _seen[key]
    require("PIL", extra="pictures", purpose="reading pictures")
    # Pillow's warnings, as of a picture that may be a decompression bomb, name no file.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _seen[key] = content = _decode(held)
    for warning in caught:
        text = f"{path or 'a picture'}: {warning.message}"
        warnings.warn(text, warning.category, stacklevel=2)
    return content


def _decode(held: bytes) -> Content:
    from PIL import Image

    digest = sha256(held).hexdigest()
    try:
        with Image.open(io.BytesIO(held)) as image:
            kind = image.format or ""
            width, height = image.size
            turned = image.getexif().get(_ORIENTATION, _UPRIGHT)
            is_transparent = "A" in image.getbands() or "transparency" in image.info
            image.load()
            # ms-swift drops the transparency: black lines on nothing become a black picture.
            is_lost = is_transparent and _is_in_transparency(image)
            is_cut_off = _is_above_a_byte(image)
    except Image.DecompressionBombError as error:
        return Content(digest, f"too large to be opened ({error})")
    except _BROKEN as error:
        start = held[:20]
        what = "an empty file" if not held else f"it begins with {start!r}"
        return Content(digest, f"cannot be read as a picture ({what}; {type(error).__name__})")
    problem = ""
    if is_lost:
        problem = "all that it shows is in its transparency, which ms-swift drops; save it on a white ground"
    elif is_cut_off:
        problem = (
            "its values are above 255, and ms-swift makes all of them white; bring them into 0 to 255 and "
            "save it with 8 bits a colour"
        )
    # vLLM turns the picture as EXIF says, the trainer does not: the policy would be trained on another
    # picture than the one that it answered.
    elif turned in range(2, 9):
        problem = (
            f"its EXIF orientation is {turned}: vLLM turns it, and ms-swift does not; save it upright, "
            "with PIL.ImageOps.exif_transpose"
        )
    elif max(width, height) > _MOST_TIMES_LONGER * min(width, height):
        problem = (
            f"it has {width} x {height} pixels; Qwen's models refuse a picture of which one side is more "
            f"than {_MOST_TIMES_LONGER} times the other"
        )
    return Content(digest, problem, width, height, kind)


def count_text(count: int) -> str:
    """So many images, in words."""
    return "1 image" if count == 1 else f"{count} images"


def _is_in_transparency(image: Any) -> bool:
    """Whether a picture has one colour, of which more and less is seen."""
    is_one_colour = all(low == high for low, high in image.convert("RGB").getextrema())
    least, most = image.convert("RGBA").getextrema()[3]
    return is_one_colour and least != most


def _is_above_a_byte(image: Any) -> bool:
    """Whether a picture of 16 or 32 bits loses something as RGB: Pillow cuts its values off at 255."""
    if image.mode not in ("I", "F") and not image.mode.startswith("I;"):
        return False
    return bool(image.getextrema()[1] > 255)


def name_of(picture: Picture) -> str:
    """What stands for a picture in records and on pages: its path, or else the beginning of its
    digest, beside its size.
    """
    held, path = picture.get("bytes"), picture.get("path")
    if not held:
        return str(path)
    content = content_of({"bytes": held, "path": path})
    size = f" {content.width}x{content.height}" if content and content.width else ""
    digest = sha256(held).hexdigest()[:12]
    return f"{path or 'picture'} ({digest}{size})"


def digest_of(picture: Picture) -> str:
    """What tells a picture from others: its content, and of a URL the URL."""
    content = content_of(picture)
    return str(picture["path"]) if content is None else content.digest


def opened(picture: Picture) -> Any:
    """A picture for Pillow, as ms-swift opens it; InputError for one at a URL."""
    from PIL import Image

    if content_of(picture) is None:
        raise InputError(f"{picture['path']}: a picture at a URL; download it, and name the file")

    held = picture["bytes"] or Path(picture["path"]).read_bytes()
    return Image.open(io.BytesIO(held)).convert("RGB")


def data_uri(picture: Picture) -> str:
    """A picture for a server with OpenAI's API: a URL as it is, else the file itself in a URL."""
    content = content_of(picture)
    if content is None:
        return str(picture["path"])
    held = picture["bytes"] or Path(picture["path"]).read_bytes()
    kind = content.format.lower() or "png"
    return f"data:image/{kind};base64,{base64.b64encode(held).decode('ascii')}"


def named(images: Any) -> Any:
    """What a record keeps of the column `images`: their names, and never their content."""
    if not isinstance(images, (list, tuple)):
        return images
    names = []
    for image in images:
        if isinstance(image, Mapping):
            names.append(name_of(dict(image)))
        elif isinstance(image, str) and len(image) <= LONGEST_PATH:
            names.append(image)
        else:
            names.append(f"a picture ({type(image).__name__})")
    return names


# --- Parts of a message


def text_of_parts(content: Any) -> Any:
    """What a message says whose content is a list of OpenAI's parts, with `<image>` for a picture, as
    ms-swift reads it; anything else as it is.

    >>> text_of_parts([{"type": "image_url", "image_url": {"url": "a.png"}}, {"type": "text", "text": "Who?"}])
    '<image>Who?'
    """
    if not isinstance(content, (list, tuple)) or not content:
        return content
    texts = []
    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind in _TEXT_PARTS and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind in _IMAGE_PARTS:
            texts.append(TAG)
        else:
            return content
    return "".join(texts)


def pictures_of_parts(messages: Any) -> list[Any]:
    """The pictures in OpenAI's parts of the messages, in the form that these have; the assistant's
    are no part of a prompt.
    """
    pictures = []
    for message in messages if isinstance(messages, (list, tuple)) else ():
        content = message.get("content") if isinstance(message, Mapping) else None
        if not isinstance(content, (list, tuple)) or message.get("role") == "assistant":
            continue
        for part in content:
            picture = _picture_of_part(part)
            if picture:
                pictures.append(picture)
    return pictures


def _picture_of_part(part: Any) -> Any:
    if not isinstance(part, Mapping) or part.get("type") not in _IMAGE_PARTS:
        return None
    for name in ("image_url", "image", "path", "url"):
        if part.get(name):
            return part[name]
    return None


def parts_beside(folder: Path, messages: Sequence[Any]) -> list[Any]:
    """The messages with the paths of pictures in their parts as `beside` gives them."""
    turns = []
    for message in messages:
        content = message.get("content") if isinstance(message, Mapping) else None
        if not isinstance(content, (list, tuple)):
            turns.append(message)
            continue
        parts = []
        for part in content:
            picture = _picture_of_part(part)
            if isinstance(picture, Mapping) and picture.get("url"):
                picture = picture["url"]
            if picture:
                part = {"type": "image", "image": beside(folder, picture)}
            parts.append(part)
        turns.append({**message, "content": parts})
    return turns


# --- The place of pictures in a prompt


def placed(messages: Messages, pictures: Sequence[Picture]) -> tuple[Messages, list[Picture]]:
    """The messages with a ``<image>`` for each picture, and the pictures in the order in which
    these come.

    ``<image 2>`` is the second one, and is shown again where the text names it again. Pictures that
    the text does not name come first, at the beginning of the first user turn, as in ms-swift. In
    code the tag is written ``< image >``, because ms-swift would put a picture there too.

    RowError if the text names more pictures than there are.
    """
    named, plain = _named_in(messages, len(pictures))
    others = [index for index in range(len(pictures)) if index not in named]
    not_shown = len(others) - plain
    if not_shown < 0:
        times = "once" if plain == 1 else f"{plain} times"
        problem = (
            f"the question has {TAG} {times}, and the row has {count_text(len(others))} for it"
        )
        raise RowError(IMAGES, problem)
    # As in ms-swift, what the text does not show comes first.
    order = others[:not_shown]
    left = iter(others[not_shown:])

    def place(match: re.Match[str]) -> str:
        if match["number"] is not None:
            order.append(int(match["number"]) - 1)
        elif match[0] == TAG:
            order.append(next(left))
        else:  # code
            return _TAG_OF_SWIFT.sub(r"< \1 >", match[0])
        return TAG

    turns = []
    for turn in messages:
        content = turn["content"]
        if isinstance(content, str):
            content = _TAGS.sub(place, content)
        turns.append({**turn, "content": content})
    if not_shown:
        first = next(turn for turn in turns if turn["role"] != "system")
        first["content"] = TAG * not_shown + first["content"]
    return turns, [pictures[index] for index in order]


def _named_in(messages: Messages, count: int) -> tuple[set[int], int]:
    """The pictures that the texts name by their numbers, and how many tags are without one."""
    named: set[int] = set()
    plain = 0
    texts = [turn["content"] for turn in messages if isinstance(turn["content"], str)]
    for match in _TAGS.finditer("\n".join(texts)):
        if match["number"] is None:
            plain += match[0] == TAG
            continue
        index = int(match["number"]) - 1
        if not 0 <= index < count:
            problem = f"the question has {match[0]}, and the row has {count_text(count)}"
            raise RowError(IMAGES, problem)
        named.add(index)
    return named, plain


def with_pictures(messages: Messages, pictures: Sequence[Picture]) -> list[dict[str, Any]]:
    """The messages in the form of OpenAI's API, with the pictures where the texts have ``<image>``."""
    if not pictures:
        return list(messages)
    turns, ordered = placed(messages, pictures)
    left = iter(ordered)
    result: list[dict[str, Any]] = []
    for turn in turns:
        texts = str(turn["content"]).split(TAG)
        if len(texts) == 1:
            result.append(dict(turn))
            continue
        parts: list[dict[str, Any]] = []
        for number, text in enumerate(texts):
            if number:
                url = data_uri(next(left))
                parts.append({"type": "image_url", "image_url": {"url": url}})
            if text:
                parts.append({"type": "text", "text": text})
        result.append({**turn, "content": parts})
    return result


def digests(pictures: Iterable[Picture]) -> str:
    """What tells the pictures of a row from those of others, as text."""
    return " ".join(map(digest_of, pictures))
