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

from swift_rlvr.evaluation.report.reading import Entry, Run
from swift_rlvr.rewards import REWARDS, Explanation, Reward
from swift_rlvr.rewards.base import OTHER_TASK
from swift_rlvr.rewards.build import missing_column
from swift_rlvr.runs.grades import TOKENS, reason_of
from swift_rlvr.runs.records import Record
from swift_rlvr.tasks import verifier_of
from swift_rlvr.verifiers.answers import completion_text

COMPLETIONS, CHARACTERS = 200_000, 250_000_000
"""What a page holds at most."""
BLOCK, BLOCK_CHARACTERS = (
    1000,
    2_000_000,
)  # completions and characters in a block: what is read at a time
SLOW = "solution"  # rewards with this column take milliseconds a completion
EXPLAINED_SLOWLY = 5000
LONGEST_PART, LONGEST_DETAIL = 2000, 500
COUNTDOWN = {"nums", "target"}
_OPENING = "<|im_start|>user\n"


def numbers() -> defaultdict[Any, int]:
    """The number of each key, in the order in which they were first asked for."""
    return defaultdict(count().__next__)


class Explainers:
    """The rewards whose rules are shown for a run: those of the run that are ours, and the verifier
    of a row's task.
    """

    def __init__(self, run: Run, total: int):
        self.run, self.built = (
            run,
            {name: _build(name, run) for name in run.judges.judges if name in REWARDS},
        )
        self.stride = max(1, -(-total // EXPLAINED_SLOWLY))
        self.has_code = self.is_slow = False

    def explain(self, number: int, record: Record) -> Iterator[tuple[Reward, Explanation]]:
        """What they say of the completion with this number; nothing of those that would run code or
        lack a column.
        """
        row = {**record.row, "prompts": record.messages}
        verifier = verifier_of(row.get("task")) or (
            "external_countdown" if row.keys() >= COUNTDOWN else None
        )
        verifier = verifier or ("external_accuracy" if SLOW in row else None)
        if verifier is not None and verifier not in self.built:
            self.built[verifier] = _build(verifier, self.run)
        for reward in self.built.values():
            if missing_column(reward, row) is not None or {*TOKENS} & {*reward.optional_columns}:
                continue  # rewards for length have nothing to explain on a page
            self.has_code |= reward.runs_code
            self.is_slow |= SLOW in reward.columns
            if not reward.runs_code and not (SLOW in reward.columns and number % self.stride):
                explanation = reward.explain(record.completion, row)
                if explanation.reason != OTHER_TASK:
                    yield reward, explanation

    def notes(self) -> Iterator[str]:
        """What is not explained."""
        if self.has_code:
            yield "the rules of rewards for code are not shown: that would run code which the model wrote"
        if self.is_slow and self.stride > 1:
            yield f"the rules of the mathematical verifier are shown for 1 in {self.stride} completions"


def _build(name: str, run: Run) -> Reward:
    """A reward with the parameters of the run, as far as its settings say them; a bad one is as
    good as none here.
    """
    try:
        return REWARDS[name](**run.settings["reward_parameters"][name])
    except (KeyError, TypeError, ValueError):
        return REWARDS[name]()


class Collector:
    """The completions of runs as the page needs them: `columns` has a value of each, `blocks` is
    packed JSON by name.

    failures: for each run, by step the reasons of its wrong completions. total: also those for
    which there is no room.
    rewards, reasons: by their name, the value and the number in `names` of the completions up to
    the last that has one.
    """

    def __init__(self, runs: Sequence[Run], limit: int = COMPLETIONS):
        self.columns: dict[str, list[Any]] = defaultdict(list)
        self.rewards: dict[str, list[float | None]] = defaultdict(list)
        self.reasons: dict[str, list[int]] = defaultdict(list)
        self.names, self.rules, self._prompts = numbers(), numbers(), numbers()
        self.starts: list[int] = []  # the first completion of each block of texts
        self.blocks: dict[str, str] = {}
        self.failures: list[dict[int, Counter[str]]] = [defaultdict(Counter) for _ in runs]
        self._texts: list[str] = []
        self._explained: list[list[Any]] = []
        self._characters = 0
        self.total = sum(len(run.entries) for run in runs)
        characters = sum(entry.characters for run in runs for entry in run.entries.values())
        self.share = min(1.0, limit / max(1, self.total), CHARACTERS / max(1, characters))
        kept_total = round(self.share * self.total)
        for number, run in enumerate(runs):
            self._collect(number, run, Explainers(run, kept_total))
        self._close()
        prompts = list(self._prompts)
        self.prompt_starts = list(range(0, len(prompts), BLOCK))
        for number, start in enumerate(self.prompt_starts):
            self.blocks[f"prompts-{number}"] = packed(prompts[start : start + BLOCK])

    def data(self) -> dict[str, Any]:
        """The columns, those of rewards and reasons among them; None and -1 where a completion has
        none.
        """
        length = len(self.columns["step"])
        rewards = {name: _padded(known, length, None) for name, known in self.rewards.items()}
        reasons = {name: _padded(known, length, -1) for name, known in self.reasons.items()}
        return {**self.columns, "rewards": rewards, "reasons": reasons}

    def _collect(self, number: int, run: Run, explainers: Explainers) -> None:
        kept, explained_here = kept_positions(run.entries, self.share), 0
        for position, record in zip(run.entries, run.records(), strict=True):
            if position in kept:
                explained_here += self._add(number, record, explainers)
        for record in run.held_out_records():
            self.total += 1
            if math.floor((record.index + 1) * self.share) > math.floor(record.index * self.share):
                self._add(number, record, explainers, held_out=True)
        run.notes += explainers.notes()
        if explained_here:
            run.notes.append(
                f"the reasons of {explained_here:,} completions are not logged, and were worked out here"
            )
        if len(kept) < len(run.entries):
            run.notes.append(
                f"{len(kept):,} of {len(run.entries):,} completions are on this page, in whole groups evenly spaced "
                "over the steps"
            )

    def _add(
        self, run: int, record: Record, explainers: Explainers, held_out: bool = False
    ) -> bool:
        """Add a completion; returns whether its reasons were not logged, and are those found
        here.
        """
        position, step = len(self.columns["step"]), record.step or 0
        explained = list(explainers.explain(position, record))
        reasons = record.reasons or {
            each.name: explanation.reason for each, explanation in explained
        }
        for name, value in record.rewards.items():
            _padded(self.rewards[name], position, None).append(_number(value))
        for name, reason in reasons.items():
            if reason != OTHER_TASK:
                _padded(self.reasons[name], position, -1).append(self.names[reason])
        why = reason_of(record) or next(iter(reasons.values()), "")
        if record.success is False and not held_out:
            self.failures[run][step][why] += 1
        values = {
            "run": run,
            "held_out": int(held_out),
            "step": step,
            "success": None if record.success is None else int(record.success),
            "why": self.names.get(why, -1),
            "task": self.names[record.task] if record.task else -1,
            "length": len(record.completion),
            "prompt": self._prompts[prompt_text(record), question(record)],
            "advantage": _number(record.advantage),
        }
        for name, value in values.items():
            self.columns[name].append(value)
        if not self._texts:
            self.starts.append(position)
        self._texts.append(record.completion)
        self._characters += len(record.completion)
        self._explained.append(
            [self._compact(reward, each, record.completion) for reward, each in explained]
        )
        if len(self._texts) >= BLOCK or self._characters >= BLOCK_CHARACTERS:
            self._close()
        return bool(explained) and not record.reasons

    def _compact(self, reward: Reward, explanation: Explanation, text: str) -> list[Any]:
        """[rules and outcomes, reward, reason, what was judged (1: the whole text), details by the
        rule's number].
        """
        outcome = "".join(
            "-" if rule.passed is None else "01"[rule.passed] for rule in explanation.rules
        )
        rules = self.rules[
            reward.name, outcome, tuple(rule.name[:LONGEST_DETAIL] for rule in explanation.rules)
        ]
        part = explanation.extracted
        judged = 1 if part and part == text else part and part[:LONGEST_PART]
        details = {
            str(i): rule.detail[:LONGEST_DETAIL]
            for i, rule in enumerate(explanation.rules)
            if rule.detail
        }
        return [rules, explanation.reward, explanation.reason, judged, details]

    def _close(self) -> None:
        if self._texts:
            number = len(self.starts) - 1
            self.blocks[f"texts-{number}"] = packed(self._texts)
            self.blocks[f"explained-{number}"] = packed(self._explained)
            self._texts, self._explained, self._characters = [], [], 0


def kept_positions(entries: Mapping[int, Entry], share: float) -> set[int]:
    """The positions of the completions that a page shows: groups as a whole, a share of them,
    evenly spaced.

    >>> kept_positions(dict(enumerate(Entry(1, question, 9, None) for question in (1, 1, 2, 2))), share=0.5)
    {2, 3}
    """
    groups: dict[tuple[int, int], list[int]] = defaultdict(list)
    for position, entry in entries.items():
        groups[entry.step, entry.question].append(position)
    kept, before = set[int](), 0
    for positions in groups.values():
        # A group is as long as its completions; it is taken where a multiple of 1 / share lies in
        # it.
        size = len(positions)
        if math.floor((before + size) * share / size) > math.floor(before * share / size):
            kept.update(positions)
        before += size
    return kept


def _padded(column: list[Any], length: int, empty: Any) -> list[Any]:
    column += [empty] * (length - len(column))
    return column


def packed(value: Any) -> str:
    """JSON in ASCII, compressed, in base64: no character of it means anything in HTML."""
    return b64encode(
        zlib.compress(json.dumps(value, separators=(",", ":")).encode("ascii"))
    ).decode("ascii")


def prompt_text(record: Record) -> str:
    """The conversation before a completion, for people."""
    turns = [
        (str(turn.get("role", "")), completion_text([turn]) or "") for turn in record.messages or ()
    ]
    if len(turns) == 1:
        return turns[0][1]
    if not turns:
        return f"row {record.index}: {json.dumps(record.row, ensure_ascii=False, default=str)}"
    return "\n\n".join(f"[{role}]\n{text}" for role, text in turns)


def question(record: Record) -> str:
    """The first line of what the user asked before any answer; at most 300 characters.

    >>> question(Record(index=0, completion="2", rewards={}, messages=[{"role": "user", "content": "1 + 1?\\nThink."}]))
    '1 + 1?'
    """
    messages = record.messages or []
    asked = [
        turn
        for turn in messages[: len(messages) - 2 * ((record.turn or 1) - 1)]
        if turn.get("role") == "user"
    ]
    text = (completion_text(asked[-1:]) or "") if asked else prompt_text(record)
    text = (text.rpartition(_OPENING)[2] or text).strip()  # of a prompt with its chat template
    return text.splitlines()[0][:300] if text else ""


def _number(value: Any) -> float | None:
    return round(value, 4) if isinstance(value, (int, float)) and math.isfinite(value) else None
