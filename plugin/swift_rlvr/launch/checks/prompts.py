"""The check of prompts and right answers against the lengths of a launch."""

from collections.abc import Iterator, Sequence
from typing import Any

from swift_rlvr.contract.findings import form_text
from swift_rlvr.evaluation.prompts import AskedRow, token_count
from swift_rlvr.launch import estimate
from swift_rlvr.launch.checks import CheckResult, Launch, failed, passed, warning
from swift_rlvr.launch.checks.pictures import tokens_of_pictures
from swift_rlvr.launch.checks.rows import asked_rows
from swift_rlvr.launch.model_size import model_folder
from swift_rlvr.tasks.pictures import IMAGES
from swift_rlvr.utils.errors import InputError

# Rows that ms-swift draws for each that it needs, before it gives up (swift/rl_core/resample.py).
DRAWN = 11


def prompts(launch: Launch) -> Iterator[CheckResult]:
    """How many prompts are longer than max_length, which ms-swift cuts or leaves out without a
    word; how many leave no room for a completion; how many answers max_completion_length cuts off,
    even without any reasoning.
    """
    folder = model_folder(str(launch.settings.get("model")))
    if folder is None:
        return
    try:
        tokenizer = launch.load_tokenizer(str(folder))
    except InputError as error:  # ms-swift has templates of its own
        remedy = "compare max_length and max_completion_length with the data yourself"
        yield warning("prompts", f"their lengths were not checked: {error}", remedy)
        return
    rows = list(asked_rows(launch, tokenizer))
    if not rows:
        return
    yield from _cut_answers(launch, tokenizer, rows)
    tokens = [asked.tokens or 0 for asked in rows]
    if any(asked.row.get(IMAGES) for asked in rows):
        try:
            of_pictures = tokens_of_pictures(folder, rows, launch.environ)
            tokens = [sum(both) for both in zip(tokens, of_pictures, strict=True)]
        except (InputError, ImportError, AttributeError) as error:
            problem = " ".join(str(error).split())[:200]
            message = f"the tokens of pictures were not counted: {problem}"
            remedy = "leave room in max_length: a Qwen2.5-VL has one for each 28 x 28 pixels"
            yield warning("prompts", message, remedy)
    limit = launch.plan.grpo.max_length
    cut_pictures = 0
    for count, asked in zip(tokens, rows, strict=True):
        cut_pictures += bool(limit and count > limit and asked.row.get(IMAGES))
    yield from _cut_prompts(launch, tokens, cut_pictures)


def _cut_prompts(launch: Launch, tokens: Sequence[int], cut_pictures: int) -> Iterator[CheckResult]:
    """Warn of prompts that are longer than max_length, and see what room the others leave. Where most
    are cut, the check fails: the policy would be trained on other prompts than it is asked.

    tokens: of each prompt. cut_pictures: how many of those that are longer have pictures.
    """
    limit = launch.plan.grpo.max_length
    if not limit:
        yield from _without_room(launch, tokens)
        return
    is_left_out = launch.settings.get("truncation_strategy") == "delete"
    longest = max(tokens)
    longer = 0
    sampled = []
    for count in tokens:
        longer += count > limit
        if count <= limit or not is_left_out:
            sampled.append(min(count, limit))
    fate = "cut at the beginning"
    report = failed if 2 * longer > len(tokens) else warning
    if is_left_out:
        fate = "left out"
        # ms-swift draws others for them, and ends the training where it has to do that too often.
        report = failed if len(tokens) > DRAWN * len(sampled) else warning
    yield from _without_room(launch, sampled)
    text = (
        f"the longest of {len(tokens):,} prompts has {longest:,} tokens, of {limit:,} (max_length)"
    )
    if not longer:
        yield passed("prompts", text)
        return
    message = f"{longer:,} of {len(tokens):,} prompts are silently {fate}: {text}"
    if cut_pictures and not is_left_out:
        # The model then gets a picture of more tokens than there are places for it.
        message = f"{cut_pictures:,} prompts with pictures are cut, which ends the run: {text}"
        remedy = f"--truncation_strategy delete, or --max_length {longest}"
        yield failed("prompts", message, remedy)
        return
    remedy = f"--max_length {longest} or more, or leave them out: `swift-rlvr dataset prepare`"
    yield report("prompts", message, remedy)


def _without_room(launch: Launch, tokens: Sequence[int]) -> Iterator[CheckResult]:
    """Fail if a prompt fills what the model reads; warn if it leaves less than max_completion_length,
    because ms-swift's engine then samples so much less.

    tokens: of the prompts as they are sampled from, with max_length applied.
    """
    limit = estimate.context_limit(launch.plan)
    if limit is None or not tokens:
        return
    completion = launch.plan.grpo.max_completion_length
    longest = max(tokens)
    needed = longest + completion
    figures = (
        f"the longest of {len(tokens):,} prompts has {longest:,} tokens, with max_completion_length "
        f"{completion:,} that is {needed:,}, of {limit.tokens:,} ({limit.name})"
    )
    if needed <= limit.tokens:
        yield passed("prompts", figures)
        return
    count = sum(each + completion > limit.tokens for each in tokens)
    room = limit.tokens - longest
    remedy = f"--max_length {max(limit.tokens - completion, 1)} --truncation_strategy delete"
    if limit.name == "vllm_max_model_len":
        remedy = f"--vllm_max_model_len {needed}, where the model reads as much, or {remedy}"
    if room > 0:
        remedy = f"--max_completion_length {room}, {remedy}"
        message = f"completions of {count:,} prompts are cut off earlier: {figures}"
        yield warning("prompts", message, remedy)
    else:
        yield failed("prompts", f"there is no room for a completion: {figures}", remedy)


def _cut_answers(launch: Launch, tokenizer: Any, rows: Sequence[AskedRow]) -> Iterator[CheckResult]:
    """Fail if no right answer fits into max_completion_length; warn if some do not.

    Measured is the shortest completion in the form that the prompt asks for, with its end token.
    """
    limit = launch.plan.grpo.max_completion_length
    answers = 0
    cut = []
    for asked in rows:
        if asked.gold is None:
            continue
        answers += 1
        tokens = token_count(tokenizer, asked.answering(asked.gold.answer)) + 1
        if tokens > limit:
            cut.append((tokens, asked))
    if not cut:
        return
    tokens, asked = max(cut, key=lambda pair: pair[0])
    form = form_text(asked.form) if asked.form else "no form of its own"
    message = (
        f"{len(cut):,} of {answers:,} right answers do not fit into max_completion_length {limit:,}: "
        f"that of line {asked.line} takes {tokens:,} tokens without any reasoning ({form})"
    )
    report = failed if len(cut) == answers else warning
    yield report("completions", message, f"--max_completion_length {tokens} and room to think")
