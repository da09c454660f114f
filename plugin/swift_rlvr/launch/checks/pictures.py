"""The check of rows with pictures, and how many tokens their pictures are."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

from swift_rlvr.evaluation.models import load_pretrained, sees_pictures
from swift_rlvr.evaluation.prompts import AskedRow
from swift_rlvr.launch.checks import CheckResult, Launch, failed, passed, warning
from swift_rlvr.launch.checks.rows import FIRST
from swift_rlvr.launch.estimate import local_file, task_in
from swift_rlvr.launch.model_size import model_folder
from swift_rlvr.tasks.columns import has_pictures
from swift_rlvr.tasks.files import UnreadableRow
from swift_rlvr.tasks.pictures import IMAGES, content_of
from swift_rlvr.tasks.sources import file_rows
from swift_rlvr.utils.errors import InputError

# Variables that limit the pixels of a picture for Qwen's models.
PIXELS = ("MIN_PIXELS", "MAX_PIXELS")
# Models whose code in ms-swift imports qwen_vl_utils.
_QWEN_VL = re.compile(r"qwen[\d.]*-?(?:vl|omni)", re.IGNORECASE)


def pictures(launch: Launch) -> Iterator[CheckResult]:
    """Rows with pictures have a model that sees them: ms-swift drops them for another without a word."""
    rows, seen, not_opened, most = _count_pictures(launch)
    if not seen:
        return
    model = str(launch.settings.get("model"))
    folder = model_folder(model)
    sees = launch.parsed.sees_pictures
    if folder is not None:
        sees = sees_pictures(folder)
    have = f"{seen:,} of {rows:,} rows have pictures"
    remedy = "a model that sees, such as Qwen/Qwen2.5-VL-3B-Instruct"
    if sees is False:
        message = f"{have}, and {model} reads text alone: it would be trained without them"
        yield failed("pictures", message, remedy)
        return
    if sees is None:
        yield warning("pictures", f"{have}; whether {model} sees them is not known", remedy)
    elif not_opened:
        message = f"{have}, those of {not_opened:,} were not opened"
        remedy = "name files, not URLs, and a task: math:FILE, choice:FILE or qa:FILE"
        yield warning("pictures", message, remedy)
    else:
        yield passed("pictures", f"{have}, all can be read, and {model} sees them")
    allowed = launch.plan.engine.pictures_in_a_prompt
    if allowed is not None and most > allowed:
        message = f"a row has {most} pictures, and vLLM takes {allowed} in a prompt: the run would end there"
        remedy = f"""--vllm_limit_mm_per_prompt '{{"image": {most}}}'"""
        yield failed("pictures", message, remedy)
    # Its model's code imports it, and its own error comes after the rollout server has started.
    if _QWEN_VL.search(model) and find_spec("qwen_vl_utils") is None:
        message = f"{model} needs qwen_vl_utils, which is not installed"
        yield failed("pictures", message, "pip install 'qwen-vl-utils>=0.0.14' torchvision")


def _count_pictures(launch: Launch) -> tuple[int, int, int, int]:
    """Count rows, those with pictures, of these the rows whose pictures were not opened, and the
    pictures of the row that has most.
    """
    rows = seen = not_opened = most = 0
    for asked in launch.asked:
        rows += 1
        images = asked.row.get(IMAGES) or []
        seen += bool(images)
        most = max(most, len(images))
        not_opened += any(content_of(image) is None for image in images)
    for name in launch.listed("dataset"):
        # ms-swift reads a file without a task itself.
        file, _ = local_file(name)
        if file is None or not file.is_file() or task_in(name):
            continue
        with suppress(InputError):
            for _, row in islice(file_rows(file), FIRST):
                if not isinstance(row, UnreadableRow):
                    rows += 1
                    seen += has_pictures(row)
                    not_opened += has_pictures(row)
    return rows, seen, not_opened, most


def tokens_of_pictures(
    folder: Path, rows: Sequence[AskedRow], environ: Mapping[str, str]
) -> list[int]:
    """How many tokens the pictures of each row are, by the model's own processor.

    Raises:
        InputError, ImportError, AttributeError: the processor cannot be loaded, or does not say, or a
            picture is at a URL.
    """
    from transformers import AutoProcessor

    processor = load_pretrained(AutoProcessor, str(folder))
    # Of ms-swift's template for Qwen's models, in place of the processor's own.
    limits = {name.lower(): int(environ[name]) for name in PIXELS if environ.get(name)}
    tokens = []
    for asked in rows:
        sizes = []
        for picture in asked.row.get(IMAGES) or []:
            content = content_of(picture)
            if content is None:
                raise InputError(f"{picture['path']} is at a URL")
            sizes.append((content.height, content.width))
        count = 0
        if sizes:
            counts = processor._get_num_multimodal_tokens(image_sizes=sizes, **limits)
            count = sum(counts["num_image_tokens"])
        tokens.append(count)
    return tokens
