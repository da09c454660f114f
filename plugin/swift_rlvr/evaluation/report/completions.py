"""The completions of runs -> compact blocks for the page: columns of figures, texts, prompts, and
explanations.

Each completion is there with its rewards and reasons as they were logged, and with what `explain`
finds now: what the verifier read, and every rule. No code that a model wrote is run. Where there
are more completions than a page can hold, whole groups are taken, evenly spaced over the steps.
"""

import json
import math
import zlib
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from swift_rlvr.evaluation.completion_files import task_of
from swift_rlvr.evaluation.report.reading import Entry, Run
from swift_rlvr.evaluation.score import verifiers_for
from swift_rlvr.rewards import REWARDS, Explanation, Reward
from swift_rlvr.rewards.base import OTHER_TASK
from swift_rlvr.rewards.build import missing_column
from swift_rlvr.rewards.signature import TOKENS
from swift_rlvr.runs.records import Record
from swift_rlvr.success import FORMAT, SHAPING
from swift_rlvr.tasks import verifier_of
from swift_rlvr.tasks.pictures import IMAGES
from swift_rlvr.verifiers.messages import message_text

# What a page holds at most: completions, and characters of their texts.
COMPLETIONS = 200_000
CHARACTERS = 250_000_000
# Completions and characters in a block, which the page reads at a time.
BLOCK = 1000
BLOCK_CHARACTERS = 2_000_000
# Rewards with this column take milliseconds a completion, so only so many are explained.
SLOW = "solution"
EXPLAINED_SLOWLY = 5000
# Characters that the page shows of what was judged, and of a rule's name or detail.
LONGEST_PART = 2000
LONGEST_DETAIL = 500
# Where the right answer stands, if the task does not say.
GOLDS = ("solution", "accepted_answers", "answer")
# In a prompt with its chat template, what comes before the user's turn.
_OPENING = "<|im_start|>user\n"


def numbers() -> defaultdict[Any, int]:
    """The number of each key, in the order in which they were first asked for."""
    return defaultdict(count().__next__)


class Explainer:
    """Explains the completions of a run, by the run's own rewards that are ours and by the verifier
    of each row's task.

    total: of the completions to explain.
    """

    def __init__(self, run: Run, total: int):
        self.run = run
        self.rewards: dict[str, Reward] = {}
        for name in run.judges.judges:
            if name in REWARDS:
                self.rewards[name] = _reward_of_run(name, run)
        # One completion in so many is explained by slow rewards.
        self.stride = max(1, math.ceil(total / EXPLAINED_SLOWLY))
        self.has_code = False
        self.is_slow = False

    def explain(self, number: int, record: Record) -> list[tuple[Reward, Explanation]]:
        """What the rewards say of the completion with this number.

        Left out are rewards that would run code, lack a column or are for another task.
        """
        row = {**record.row, "prompts": record.messages}
        for verifier in verifiers_for(row):
            if verifier not in self.rewards:
                self.rewards[verifier] = _reward_of_run(verifier, self.run)
        explanations = []
        for reward in self.rewards.values():
            is_for_length = not {*TOKENS}.isdisjoint(reward.optional_columns)
            # Rewards for length have nothing to explain on a page.
            if is_for_length or missing_column(reward, row) is not None:
                continue
            is_slow = SLOW in reward.columns
            self.has_code |= reward.runs_code
            self.is_slow |= is_slow
            if reward.runs_code or (is_slow and number % self.stride):
                continue
            explanation = reward.explain(record.completion, row)
            if explanation.reason != OTHER_TASK:
                explanations.append((reward, explanation))
        return explanations

    def notes(self) -> Iterator[str]:
        """What is not explained."""
        if self.has_code:
            yield (
                "the rules of code rewards are not shown, because that would run code from the "
                "completions"
            )
        if self.is_slow and self.stride > 1:
            yield (
                f"the rules of the mathematical verifier are shown for 1 in {self.stride} "
                "completions"
            )


def _reward_of_run(name: str, run: Run) -> Reward:
    """A reward with the parameters of the run, or the default ones where its settings have none
    that can be used.
    """
    try:
        return REWARDS[name](**run.settings["reward_parameters"][name])
    except (KeyError, TypeError, ValueError):
        return REWARDS[name]()


def _why(record: Record, reasons: Mapping[str, str], run: Run) -> str:
    """Why a completion is a success or not; empty if the reward that decides gives no reason.

    A format reward's reason does not count: beside a plain function of the user's it would be taken
    for the reason of the verdict.
    """
    # In a mixture other verifiers have a reason too, which says "other task".
    verifier = verifier_of(record.row.get("task"))
    if verifier is not None and verifier in reasons:
        return reasons[verifier]
    for name, reason in reasons.items():
        judge = run.judges.judges.get(name)
        role = judge.role if judge else getattr(REWARDS.get(name), "role", None)
        if record.success is None or role not in (FORMAT, SHAPING):
            return reason
    return ""


class TextBlocks:
    """Texts and their explanations, packed in blocks, which the page reads one at a time.

    starts: the position of the first text of each block. packed: the blocks by name.
    """

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.packed: dict[str, str] = {}
        # Of the block that is being filled.
        self._texts: list[str] = []
        self._explained: list[Any] = []
        self._characters = 0

    def add(self, position: int, text: str, explained: Any) -> None:
        """Add the text of the completion with this position."""
        if not self._texts:
            self.starts.append(position)
        self._texts.append(text)
        self._explained.append(explained)
        self._characters += len(text)
        if len(self._texts) >= BLOCK or self._characters >= BLOCK_CHARACTERS:
            self.close()

    def close(self) -> None:
        """Pack what is left."""
        if self._texts:
            number = len(self.starts) - 1
            self.packed[f"texts-{number}"] = packed(self._texts)
            self.packed[f"explained-{number}"] = packed(self._explained)
            self._texts = []
            self._explained = []
            self._characters = 0


class PageCompletions:
    """The completions of runs as the page needs them.

    columns: a value of each completion. rewards, reasons: the same by reward, up to the last
    completion that has one; a reason is its number in `names`.
    texts: see `TextBlocks`. prompts: their packed blocks by name. prompt_starts: the first prompt of
    each block.
    failures: for each run, by step the reasons of its wrong completions.
    total: of the completions, also those for which there is no room.
    """

    def __init__(self, runs: Sequence[Run], limit: int = COMPLETIONS):
        self.columns: dict[str, list[Any]] = defaultdict(list)
        self.rewards: dict[str, list[float | None]] = defaultdict(list)
        self.reasons: dict[str, list[int]] = defaultdict(list)
        self.names = numbers()
        self.rules = numbers()
        self.texts = TextBlocks()
        self.prompts: dict[str, str] = {}
        self.failures: list[dict[int, Counter[str]]] = [defaultdict(Counter) for _ in runs]
        self._prompts = numbers()

        self.total = 0
        characters = 0
        for run in runs:
            self.total += len(run.entries)
            characters += sum(entry.characters for entry in run.entries.values())
        self.share = min(1.0, limit / max(1, self.total), CHARACTERS / max(1, characters))
        kept = round(self.share * self.total)
        for number, run in enumerate(runs):
            self._collect(number, run, Explainer(run, kept))
        self.texts.close()
        prompts = list(self._prompts)
        self.prompt_starts = list(range(0, len(prompts), BLOCK))
        for number, start in enumerate(self.prompt_starts):
            self.prompts[f"prompts-{number}"] = packed(prompts[start : start + BLOCK])

    def data(self) -> dict[str, Any]:
        """The columns, with those of rewards and reasons. A completion without a reward has None
        there, without a reason -1.
        """
        length = len(self.columns["step"])
        for rewards in self.rewards.values():
            _padded(rewards, length, None)
        for reasons in self.reasons.values():
            _padded(reasons, length, -1)
        return {**self.columns, "rewards": self.rewards, "reasons": self.reasons}

    def _collect(self, number: int, run: Run, explainer: Explainer) -> None:
        kept = kept_positions(run.entries, self.share)
        # Reasons that are computed now are those of today's rewards, which the note below says.
        reasons_found_here = 0
        # Both are in the order of the file, without what a resumed run has made again.
        for position, record in zip(run.entries, run.records(), strict=True):
            if position in kept:
                explanations = self._add(number, record, explainer)
                reasons_found_here += bool(explanations) and not record.reasons
        for record in run.held_out_records():
            self.total += 1
            # The same rows at each evaluation, so that a page shows how their answers change.
            if math.floor((record.index + 1) * self.share) > math.floor(record.index * self.share):
                self._add(number, record, explainer, held_out=True)
        run.notes += explainer.notes()
        if reasons_found_here:
            run.notes.append(
                f"the reasons of {reasons_found_here:,} completions were not logged; they were "
                "computed for this page"
            )
        if len(kept) < len(run.entries):
            run.notes.append(
                f"this page shows {len(kept):,} of {len(run.entries):,} completions: whole groups, "
                "evenly spaced over the steps"
            )

    def _add(
        self, run: int, record: Record, explainer: Explainer, held_out: bool = False
    ) -> list[tuple[Reward, Explanation]]:
        """Add a completion; returns its explanations."""
        position = len(self.columns["step"])
        step = record.step or 0
        explanations = explainer.explain(position, record)
        reasons = record.reasons
        if not reasons:
            reasons = {reward.name: explanation.reason for reward, explanation in explanations}
        # Completions before this one may be without it, of another run or task.
        for name, value in record.rewards.items():
            _padded(self.rewards[name], position, None).append(_rounded(value))
        for name, reason in reasons.items():
            if reason != OTHER_TASK:
                _padded(self.reasons[name], position, -1).append(self.names[reason])
        why = _why(record, reasons, explainer.run)
        if record.success is False and not held_out:
            self.failures[run][step][why or "wrong"] += 1
        values = {
            "run": run,
            "held_out": int(held_out),
            "step": step,
            "success": None if record.success is None else int(record.success),
            "why": self.names.get(why, -1),
            "task": self.names[record.task] if record.task else -1,
            "length": len(record.completion),
            "prompt": self._prompts[prompt_text(record), question(record), gold_text(record.row)],
            "advantage": _rounded(record.advantage),
        }
        for name, value in values.items():
            self.columns[name].append(value)

        explained = []
        for reward, explanation in explanations:
            explained.append(self._compact(reward, explanation, record.completion))
        self.texts.add(position, record.completion, explained)
        return explanations

    def _compact(self, reward: Reward, explanation: Explanation, text: str) -> list[Any]:
        """[rules and outcomes, reward, reason, what was judged (1: the whole text), details by the
        rule's number].
        """
        # Most completions have the same rules with the same outcomes: these are numbered, and only the
        # details are their own.
        outcome = ""
        names = []
        details = {}
        for number, rule in enumerate(explanation.rules):
            outcome += "-" if rule.passed is None else str(int(rule.passed))
            names.append(rule.name[:LONGEST_DETAIL])
            if rule.detail:
                details[str(number)] = rule.detail[:LONGEST_DETAIL]
        rules = self.rules[reward.name, outcome, tuple(names)]
        judged: Any = explanation.extracted
        if judged:
            judged = 1 if judged == text else judged[:LONGEST_PART]
        return [rules, explanation.reward, explanation.reason, judged, details]


def kept_positions(entries: Mapping[int, Entry], share: float) -> set[int]:
    """The positions of the completions that a page shows: groups as a whole, a share of them,
    evenly spaced.

    >>> kept_positions(dict(enumerate(Entry(1, question, 9, None) for question in (1, 1, 2, 2))), share=0.5)
    {2, 3}
    """
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for position, entry in entries.items():
        groups[entry.step, entry.question].append(position)
    kept = set[int]()
    before = 0
    for positions in groups.values():
        # A group is as long as its completions; it is taken where a multiple of 1 / share lies in
        # it.
        size = len(positions)
        if math.floor((before + size) * share / size) > math.floor(before * share / size):
            kept.update(positions)
        before += size
    return kept


def _padded(column: list[Any], length: int, empty: Any) -> list[Any]:
    """The column itself, filled up to a length."""
    column += [empty] * (length - len(column))
    return column


def packed(value: Any) -> str:
    """JSON in ASCII, compressed, in base64: no character of it means anything in HTML."""
    text = json.dumps(value, separators=(",", ":"))
    return b64encode(zlib.compress(text.encode("ascii"))).decode("ascii")


def prompt_text(record: Record) -> str:
    """The conversation before a completion, for people."""
    turns = []
    for turn in record.messages or ():
        turns.append((str(turn.get("role", "")), message_text(turn) or ""))
    if not turns:
        return f"row {record.index}: {json.dumps(record.row, ensure_ascii=False, default=str)}"
    pictures = record.row.get(IMAGES)
    if pictures:
        turns.append((IMAGES, "\n".join(map(str, pictures))))
    if len(turns) == 1:
        return turns[0][1]
    return "\n\n".join(f"[{role}]\n{text}" for role, text in turns)


def gold_text(row: Mapping[str, Any]) -> str:
    """The right answer of a row, for people; empty if no column has it.

    >>> gold_text({"accepted_answers": ["Rhine", "Rhein"]})
    'Rhine or Rhein'
    """
    task = task_of(row)
    gold: object = None
    if task.gold_text is not None:
        gold = task.gold_text(row)
    else:
        for column in GOLDS:
            if row.get(column) is not None:
                gold = row[column]
                break
    if isinstance(gold, (list, tuple)):
        gold = " or ".join(map(str, gold))
    return "" if gold is None else str(gold)[:LONGEST_PART]


def question(record: Record) -> str:
    """The first line of what the user asked before any answer; at most 300 characters.

    >>> question(Record(index=0, completion="2", rewards={}, messages=[{"role": "user", "content": "1 + 1?\\nThink."}]))
    '1 + 1?'
    """
    user_turns = [turn for turn in record.first_prompt if turn.get("role") == "user"]
    if user_turns:
        text = message_text(user_turns[-1]) or ""
    else:
        text = prompt_text(record)
    # A prompt with its chat template has the question after the opening of the user's turn.
    text = (text.rpartition(_OPENING)[2] or text).strip()
    return text.splitlines()[0][:300] if text else ""


def _rounded(value: Any) -> float | None:
    """A figure as the page holds it; None for infinity, NaN and what is not a number."""
    if isinstance(value, (int, float)) and math.isfinite(value):
        return round(value, 4)
    return None
