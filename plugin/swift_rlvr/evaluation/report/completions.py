"""The completions of runs -> compact blocks for the page: columns of figures, texts, prompts, and explanations.

Each completion is there with its rewards and reasons as they were logged, and with what `explain` finds now: what the
verifier read, and every rule. No code that a model wrote is run. Where there are more completions than a page can hold,
whole groups are taken, evenly spaced over the steps.
"""

import json
import math
import zlib
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from swift_rlvr.answers import completion_text
from swift_rlvr.countdown import read_gold
from swift_rlvr.errors import InputError
from swift_rlvr.evaluation.completion_files import with_columns_from_prompt
from swift_rlvr.evaluation.report.curves import FORMATS
from swift_rlvr.evaluation.report.reading import Run, Table, read_held_out, read_reasons, tables_of
from swift_rlvr.evaluation.report.thinking import thinking
from swift_rlvr.rewards import REWARDS, Explanation, Reward
from swift_rlvr.rewards.build import missing_column
from swift_rlvr.runs.turns import NUM_TURNS, first_prompts
from swift_rlvr.tasks.countdown import parse_row, to_messages

COMPLETIONS, CHARACTERS = 200_000, 250_000_000
"""What a page holds at most."""
BLOCK, BLOCK_CHARACTERS = 1000, 2_000_000  # completions and characters in a block: what is read at a time
SLOW = "solution"  # rewards with this column take milliseconds a completion
EXPLAINED_SLOWLY = 5000
LONGEST_PART, LONGEST_DETAIL = 2000, 500
_NOT_REWARDS = {"step", "prompt", "completion", "advantages", NUM_TURNS}
_OF_A_SAMPLE = {"step", "index", "sample", "completion", "reward", "format", "reason", "tokens", "finish"}
_OPENING = "<|im_start|>user\n"


@dataclass
class Page:
    """What a page is made of: `columns` hold a value for each completion; `blocks` are compressed JSON by name."""

    columns: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    rewards: dict[str, list[float | None]] = field(default_factory=dict)
    reasons: dict[str, list[int]] = field(default_factory=dict)  # numbers of `names`, -1 for none
    names: list[str] = field(default_factory=list)
    rules: list[dict[str, Any]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)  # the first completion of each block of texts
    prompt_starts: list[int] = field(default_factory=list)
    blocks: dict[str, str] = field(default_factory=dict)
    thinking: list[dict[int, dict[str, float]]] = field(default_factory=list)  # for each run, sums by step
    total: int = 0


class Explainers:
    """The rewards whose rules are shown for a run: those that it logged, and verifier and format in any case."""

    def __init__(self, run: Run, row: Mapping[str, Any], total: int):
        logged = {reward.__name__: name for name, reward in REWARDS.items() if reward.__name__ in row}
        names = [name for reward, name in logged.items() if not REWARDS[name].runs_code]
        fitting = {"external_countdown": {"nums", "target"} <= row.keys(), "external_accuracy": SLOW in row}
        if not logged.keys() - FORMATS:
            names = [name for name, fits in fitting.items() if fits][:1] + names
        if not logged.keys() & FORMATS:
            names.append("external_format")
        self.rewards: list[Reward] = []
        for name in names:
            reward = _build(name, run)
            if missing_column(reward, row) is None and not set(reward.optional_columns) - {"prompts", *row}:
                self.rewards.append(reward)
        code = sorted(name for name in logged.values() if REWARDS[name].runs_code)
        if code:
            run.notes.append(f"the rules of {', '.join(code)} are not shown: that would run code which the model wrote")
        self.stride = max(1, -(-total // EXPLAINED_SLOWLY))
        if self.stride > 1 and any(SLOW in reward.columns for reward in self.rewards):
            run.notes.append(f"the rules of the mathematical verifier are shown for 1 in {self.stride} completions")

    def explain(self, number: int, text: str | None, row: Mapping[str, Any]) -> Iterator[tuple[Reward, Explanation]]:
        for reward in self.rewards:
            if SLOW in reward.columns and number % self.stride:
                continue
            if missing_column(reward, row) is None:
                yield reward, reward.explain(text, row)


def _build(name: str, run: Run) -> Reward:
    """A reward with the parameters of the run, as far as its settings say them; a bad one is as good as none here."""
    parameters = run.settings.get("reward_parameters")
    own = parameters.get(name) if isinstance(parameters, dict) else None
    try:
        return REWARDS[name](**own) if isinstance(own, dict) else REWARDS[name]()
    except (InputError, TypeError, ValueError):
        return REWARDS[name]()


class Collector:
    """Fills a `Page` with the completions of runs, one block at a time."""

    def __init__(self, runs: Sequence[Run], limit: int = COMPLETIONS):
        self.runs, self.page = runs, Page()
        self._texts: list[str] = []
        self._explained: list[list[Any]] = []
        self._characters = 0
        self._prompts: dict[str, int] = {}
        self._asked: dict[str, str] = {}  # by prompt, what it was before the policy's first answer
        self._names: dict[str, int] = {}
        self._rules: dict[tuple[Any, ...], int] = {}
        self.page.total = sum(len(table.steps) for run in runs for table in run.tables)
        characters = sum(table.characters for run in runs for table in run.tables)
        self.share = min(1.0, limit / max(1, self.page.total), CHARACTERS / max(1, characters))

    def collect(self) -> Page:
        for number, run in enumerate(self.runs):
            self.page.thinking.append(self._run(number, run))
        self._close()
        self._close_prompts()
        count = len(self.page.columns["step"])
        for values in self.page.rewards.values():
            values += [None] * (count - len(values))
        for numbers in self.page.reasons.values():
            numbers += [-1] * (count - len(numbers))
        return self.page

    def _run(self, number: int, run: Run) -> dict[int, dict[str, float]]:
        reasons, explainers = read_reasons(run), None
        thoughts: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        kept = total = unlike = worked_out = 0
        for table, row in tables_of(run.folder, run.tables):
            names = [name for name in row if name not in _NOT_REWARDS and _is_reward(row[name], len(table.steps))]
            others = [name for name, values in row.items() if name not in names and name not in _NOT_REWARDS
                      and isinstance(values, list) and len(values) == len(table.steps)]  # fmt: skip
            asked = first_prompts(row)
            for i in self._kept(table, total):
                text = completion_text(row["completion"][i])
                prompt = _prompt(row["prompt"][i])
                self._asked[prompt] = _prompt(asked[i])
                columns = {"prompt": prompt, "prompts": prompt, **{name: row[name][i] for name in others}}
                columns = with_columns_from_prompt(columns)
                rewards = {name: _number(row[name][i]) for name in names}
                if explainers is None:
                    explainers = Explainers(run, columns | dict.fromkeys(names), self._expected())
                explained = list(explainers.explain(kept, text, columns))
                line = reasons.get((table.steps[i], table.places[i]))
                given = dict(line["reasons"]) if line and _agree(line["rewards"], rewards) else {}
                unlike += bool(line) and not given
                for reward, explanation in explained:
                    name = reward.__name__
                    if name not in given and (name in rewards or name not in FORMATS):
                        given[name] = explanation.reason
                        worked_out += name in rewards
                self._add(number, table.steps[i], prompt, text or "", rewards, given, explained)
                advantages = row.get("advantages")
                self.page.columns["advantage"].append(_number(advantages[i]) if isinstance(advantages, list) else None)
                thought = thinking(text or "")
                for each, value in thought.items():
                    thoughts[table.steps[i]][each] += value
                thoughts[table.steps[i]]["completions"] += 1
                self.page.columns["trials"].append(thought["trials"])
                kept += 1
            total += len(table.steps)
        self._held_out(number, run, explainers)
        if unlike:
            run.notes.append(f"reasons.jsonl has other rewards than completions.jsonl for {unlike:,} completions")
        if worked_out and not reasons:
            run.notes.append("there is no reasons.jsonl: the reasons were worked out for this page from the texts")
        if kept < total:
            run.notes.append(
                f"{kept:,} of {total:,} completions are on this page, in whole groups evenly spaced over the steps; "
                "the figures of the way of thinking are of these"
            )
        return thoughts

    def _held_out(self, number: int, run: Run, explainers: Explainers | None) -> None:
        """The completions of held-out rows, under the name of the reward that graded them; of too many a part of the
        rows, at every step."""
        for kept, record in enumerate(read_held_out(run)):
            index = record["index"]
            self.page.total += 1
            if math.floor((index + 1) * self.share) == math.floor(index * self.share):
                continue
            task = {name: value for name, value in record.items() if name not in _OF_A_SAMPLE}
            if "prompt" in record:
                prompt = _prompt(record["prompt"])
            elif read_gold(record.get("nums"), record.get("target")):
                prompt = to_messages(*parse_row(record), system=None)[0]["content"]
            else:
                prompt = f"held-out row {index}: {json.dumps(task, ensure_ascii=False)}"
            explainers = explainers or Explainers(run, task, self._expected())
            text = completion_text(record["completion"])
            explained = list(explainers.explain(kept, text, task | {"prompts": prompt}))
            names = [reward.__name__ for reward, _ in explained]
            name = next((name for name in names if name not in FORMATS), "held-out reward")
            rewards = {name: _number(record["reward"])}
            if "format" in record:
                rewards["Format"] = float(bool(record["format"]))
            reasons = {name: record["reason"]} if record.get("reason") else {}
            self._add(number, record["step"], prompt, text or "", rewards, reasons, explained, held_out=True)
            self.page.columns["advantage"].append(None)
            self.page.columns["trials"].append(thinking(text or "")["trials"])

    def _expected(self) -> int:
        return round(self.share * self.page.total)

    def _kept(self, table: Table, before: int) -> Iterator[int]:
        """The completions of a table that are on the page: those of a group all or none."""
        if self.share == 1:
            yield from range(len(table.steps))
            return
        first = {group: i for i, group in reversed(list(enumerate(table.groups)))}
        sizes = [table.groups.count(group) for group in sorted(first)]
        chosen, place = set(), float(before)
        for group, size in zip(sorted(first), sizes, strict=True):
            # A group is as long as its completions; it is taken where a multiple of 1 / share lies in it.
            if math.floor((place + size) * self.share / size) > math.floor(place * self.share / size):
                chosen.add(group)
            place += size
        yield from (i for i, group in enumerate(table.groups) if group in chosen)

    def _add(
        self, run: int, step: int, prompt: str, text: str, rewards: Mapping[str, float | None],
        reasons: Mapping[str, str], explained: Sequence[tuple[Reward, Explanation]],
        held_out: bool = False,
    ) -> None:  # fmt: skip
        columns = self.page.columns
        place = len(columns["step"])
        for name, value in rewards.items():
            known = self.page.rewards.setdefault(name, [])
            known += [None] * (place - len(known)) + [value]
        for name, reason in reasons.items():
            numbers = self.page.reasons.setdefault(name, [])
            numbers += [-1] * (place - len(numbers)) + [self._names.setdefault(str(reason), len(self._names))]
        self.page.names = list(self._names)
        if not self._texts:
            self.page.starts.append(place)
        columns["run"].append(run)
        columns["held_out"].append(int(held_out))
        columns["step"].append(step)
        columns["length"].append(len(text))
        columns["prompt"].append(self._prompts.setdefault(prompt, len(self._prompts)))
        self._texts.append(text)
        self._explained.append([self._compact(reward, explanation, text) for reward, explanation in explained])
        self._characters += len(text)
        if len(self._texts) >= BLOCK or self._characters >= BLOCK_CHARACTERS:
            self._close()

    def _compact(self, reward: Reward, explanation: Explanation, text: str) -> list[Any]:
        """[rules and outcomes, reward, reason, what was judged (1: the whole text), details by the rule's number]."""
        outcome = "".join("-" if rule.passed is None else "01"[rule.passed] for rule in explanation.rules)
        key = (reward.name, outcome, *(rule.name for rule in explanation.rules))
        if key not in self._rules:
            self._rules[key] = len(self._rules)
            rules = [rule.name[:LONGEST_DETAIL] for rule in explanation.rules]
            shown = {"reward": reward.name, "class": reward.__name__, "outcome": outcome, "rules": rules}
            self.page.rules.append(shown)
        part = explanation.extracted
        judged = 1 if part and part == text else part and part[:LONGEST_PART]
        details = {str(i): rule.detail[:LONGEST_DETAIL] for i, rule in enumerate(explanation.rules) if rule.detail}
        return [self._rules[key], explanation.reward, explanation.reason, judged, details]

    def _close(self) -> None:
        if self._texts:
            number = len(self.page.starts) - 1
            self.page.blocks[f"texts-{number}"] = packed(self._texts)
            self.page.blocks[f"explained-{number}"] = packed(self._explained)
            self._texts, self._explained, self._characters = [], [], 0

    def _close_prompts(self) -> None:
        block: list[list[str]] = []
        for number, prompt in enumerate(self._prompts):
            if not block:
                self.page.prompt_starts.append(number)
            block.append([prompt, question(self._asked.get(prompt, prompt))])
            if len(block) >= BLOCK or number == len(self._prompts) - 1:
                self.page.blocks[f"prompts-{len(self.page.prompt_starts) - 1}"] = packed(block)
                block = []


def packed(value: Any) -> str:
    """JSON in ASCII, compressed, in base64: no character of it means anything in HTML."""
    return b64encode(zlib.compress(json.dumps(value, separators=(",", ":")).encode("ascii"))).decode("ascii")


def question(prompt: str) -> str:
    """The first line of the last user turn of a rendered prompt; the first 100 characters of what has no such turn.

    >>> question("<|im_start|>user\\nWhat is 1 + 1?\\nThink first.<|im_end|>")
    'What is 1 + 1?'
    """
    turn = (prompt.rpartition(_OPENING)[2] or prompt).strip()
    return turn.splitlines()[0][:100] if turn else ""


def _prompt(prompt: Any) -> str:
    text = completion_text(prompt)
    return json.dumps(prompt) if text is None else text


def _is_reward(values: Any, count: int) -> bool:
    if not isinstance(values, list) or len(values) != count:
        return False
    return all(value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)) for value in values)


def _number(value: Any) -> float | None:
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return round(value, 4)


def _agree(one: Any, other: Mapping[str, float | None]) -> bool:
    """Whether two logs have the same rewards, as far as both have them."""
    if not isinstance(one, dict):
        return False
    pairs = [(_number(one[name]), other[name]) for name in one.keys() & other.keys()]
    return all(a == b or (a is not None and b is not None and abs(a - b) < 2e-3) for a, b in pairs)
