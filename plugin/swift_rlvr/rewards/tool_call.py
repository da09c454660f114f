"""The reward of tool calls: exactly the calls that are right, with the right arguments."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from swift_rlvr.rewards.base import Example, Explanation, Grade, Reward, Row, Rule, explained_by
from swift_rlvr.rewards.parameters import BaseParameters
from swift_rlvr.success import VERIFIER
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers.answers import last_answer
from swift_rlvr.verifiers.thinking import after_thinking, without_end_tokens
from swift_rlvr.verifiers.tool_calls import (
    MOST_CHARS,
    BadCall,
    Call,
    Comparer,
    GoldCall,
    Tool,
    calls_in,
    doubts,
    has_call,
    read_golds,
    read_tools,
    with_calls,
)
from swift_rlvr.verifiers.tool_calls.formats import HARMONY, MARKS

# An answer without a call is a sentence, of so many letters at least: no number, yes or dots.
_FEWEST_LETTERS = 6
# What gpt-oss thinks, and what its other messages begin with, with its special tokens or without.
_ANALYSIS = re.compile(
    r"<\|channel\|>analysis<\|message\|>.*?(?:<\|end\|>|\Z)"
    r"|\A\s*analysis(?=[A-Z]).*?(?=assistant(?:commentary|final| to=)|\Z)",
    re.DOTALL,
)
_CHANNELS = ("<|start|>", "<|channel|>", "assistant", "commentary", HARMONY.strip())
# Reason -> what has to hold, in the order in which it is checked.
RULES = {
    "bad tools": "the column functions is a list of tools",
    "bad gold": "the column calls is a list of calls of these tools",
    "no answer": "there is an answer after the thinking",
    "too long": f"it has at most {MOST_CHARS:,} characters",
    "needless call": "it makes no call where none is right",
    "no words": f"without a call it says so in words, {_FEWEST_LETTERS} letters at least, or as []",
    "unreadable call": "its calls can be read, and nothing that is not allowed stands around them",
    "no call": "it makes a call",
    "wrong number": "it makes as many calls as are right",
    "wrong function": "each right function is called as often as is right",
    "wrong argument": "the arguments are right",
    "wrong order": "the calls are in order",
}
_TOOLS = json.dumps(
    [
        {
            "name": "add",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                "required": ["a", "b"],
            },
        }
    ]
)
_ADD = {"functions": _TOOLS, "calls": '[{"name": "add", "arguments": {"a": 1, "b": 2}}]'}


class ToolCallReward(Reward):
    """Reward 1.0 for the calls in the row's `calls` and no other, of the tools in `functions`.

    Calls are read in any way in which models write them, see `swift_rlvr.verifiers.tool_calls`, after
    the thinking. Text may stand before calls that have a mark, such as ``<tool_call>``, and anywhere
    with ``text_around=True``. Arguments are right by the
    tool's schema: 1 is 1.0, and what has a default may be left out where the default is right. Where
    `calls` is empty, an answer without a call is right. Golds of BFCL list the accepted values; source
    of that form: Patil et al., the Berkeley Function Calling Leaderboard.

    >>> call = '<tool_call>{"name": "add", "arguments": {"a": 1.0, "b": 2}}</tool_call>'
    >>> texts = [call, "[add(b=2, a=1)]", call + call, "It is 3."]
    >>> columns = {name: [value] * 4 for name, value in _ADD.items()}
    >>> ToolCallReward()(texts, **columns)
    [1.0, 1.0, 0.0, 0.0]
    """

    name = "external_tool_call"
    role = VERIFIER
    columns = ("functions", "calls")
    columns_elsewhere = {
        "functions": ("tools", "function"),
        "calls": ("answers", "possible_answer", "ground_truth", "tool_calls"),
    }
    reasons = (*RULES, "no call is right", "correct")
    without_gold = "no right call was tried, since none is right: any answer without a call is paid"
    examples = (
        Example('<think>Add.</think>{"name": "add", "arguments": {"a": 1, "b": 2}}', _ADD, 1.0),
        Example("[add(a=1, b=3)]", _ADD, 0.0),
        Example("[add(a=1, b=2), add(a=1, b=3)]", _ADD, 0.0),
        Example("[add(a=1, b=2)]", {"functions": _TOOLS, "calls": "add them"}, None),
    )

    @dataclass(frozen=True)
    class Parameters(BaseParameters):
        ordered: bool = setting(False, "several calls have to be in the order of the gold's")
        text_around: bool = setting(
            False,
            "accept text around all calls, not only before those with a mark; all calls in the answer"
            " still count",
        )
        loose_text: bool = setting(
            False,
            "compare texts as BFCL does: without case, spaces and the characters , . / - _ * ^",
        )

    @classmethod
    def remarks(cls, row: Row) -> list[str]:
        try:
            tools = {tool.name: tool for tool in _tools(row["functions"])}
            golds = _golds(row["functions"], row["calls"])
        except BadCall:
            return []
        found = []
        for gold in golds:
            found += doubts(gold, tools[gold.name])
        return list(dict.fromkeys(found))

    def grades(self, completions: Sequence, /, **columns: Any) -> list[Grade]:
        if isinstance(completions, (list, tuple)):
            completions = [_as_written(each) for each in completions]
        return super().grades(completions, **columns)

    def explain(self, completion: object, row: Row) -> Explanation:
        return super().explain(_as_written(completion), row)

    def grade(self, text: str | None, row: Row) -> Explanation:
        try:
            tools = _tools(row["functions"])
        except BadCall as error:
            return explained_by(RULES, None, "bad tools", detail=str(error))
        try:
            golds = _golds(row["functions"], row["calls"])
        except BadCall as error:
            return explained_by(RULES, None, "bad gold", detail=str(error))

        written = answer_in(text or "")
        has_content = written == "[]" or any(character.isalnum() for character in written)
        if not has_content:
            return explained_by(RULES, 0.0, "no answer")
        if len(written) > MOST_CHARS:
            return explained_by(RULES, 0.0, "too long", detail=f"it has {len(written):,}")
        # Where no call is right, words are, or an empty list. Some letters are asked for, so that a dot or a
        # smiley for every row earns nothing.
        if not golds:
            letters = sum(character.isalpha() for character in written)
            if has_call(written, tools):
                return explained_by(RULES, 0.0, "needless call", written)
            if letters < _FEWEST_LETTERS and written != "[]":
                return explained_by(RULES, 0.0, "no words", written)
            return explained_by(RULES, 1.0, "no call is right", written)

        try:
            calls = calls_in(written, tools, self.parameters.text_around)
        except BadCall as error:
            return explained_by(RULES, 0.0, "unreadable call", written, str(error))
        if not calls:
            return explained_by(RULES, 0.0, "no call", written)
        comparer = Comparer({tool.name: tool for tool in tools}, self.parameters.loose_text)
        reason = self._reason(golds, calls, comparer)
        reward = 1.0 if reason == "correct" else 0.0
        rules = _rules_of_calls(golds, calls, comparer)
        return explained_by(RULES, reward, reason, written, further=rules)

    def _reason(self, golds: list[GoldCall], calls: list[Call], comparer: Comparer) -> str:
        # From the coarsest fault to the finest: a call too many makes it wrong, whatever the others are.
        if len(calls) != len(golds):
            return "wrong number"
        if sorted(call.name for call in calls) != sorted(gold.name for gold in golds):
            return "wrong function"
        if len(comparer.pairs(golds, calls)) < len(golds):
            return "wrong argument"
        if self.parameters.ordered:
            for gold, call in zip(golds, calls, strict=True):
                if comparer.differences(gold, call):
                    return "wrong order"
        return "correct"


def _as_written(completion: Any) -> Any:
    """A completion of messages with the calls that a parser has split off the last one."""
    if isinstance(completion, (list, tuple)) and completion:
        return [*completion[:-1], with_calls(completion[-1])]
    return completion


def answer_in(text: str) -> str:
    """What of a completion makes calls: what follows the thinking, or the last answer block in it."""
    if HARMONY in text:
        # gpt-oss calls from its channel commentary, and what ends its thinking is an answer alone.
        spoken = _ANALYSIS.sub("", text)
        if HARMONY in spoken and spoken.lstrip().startswith(_CHANNELS):
            return without_end_tokens(spoken).strip()
    scope = without_end_tokens(after_thinking(text)).strip().removeprefix("\ufeff")
    block = last_answer(text) if scope.endswith("</answer>") else None
    # Whoever runs the calls runs those before a block, too.
    if block is None or any(mark in scope.removesuffix(f"{block}</answer>") for mark in MARKS):
        return scope
    return block.strip()


def _tools(value: Any) -> list[Tool]:
    return _read_tools(_as_text(value))


def _golds(functions: Any, value: Any) -> list[GoldCall]:
    return _read_golds(_as_text(functions), _as_text(value))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


# The completions of a group have the same row.
_read_tools = lru_cache(maxsize=1024)(read_tools)


@lru_cache(maxsize=1024)
def _read_golds(functions: str, text: str) -> list[GoldCall]:
    return read_golds(text, _read_tools(functions))


def _rules_of_calls(golds: list[GoldCall], calls: list[Call], comparer: Comparer) -> list[Rule]:
    """A rule for each right call and each argument of it that failed, and for each further call."""
    pairs = comparer.pairs(golds, calls)
    left = [index for index in range(len(calls)) if index not in pairs.values()]
    rules = []
    for number, gold in enumerate(golds):
        name = f"call {number + 1}, {gold.name}"
        if number in pairs:
            rules.append(Rule(name, True, str(calls[pairs[number]])))
            continue
        # The nearest of the calls that are nobody's.
        same = [index for index in left if calls[index].name == gold.name]
        if not same:
            rules.append(Rule(name, False, "is not made"))
            continue
        nearest = min(same, key=lambda index: len(comparer.differences(gold, calls[index])))
        left.remove(nearest)
        for argument, problem in comparer.differences(gold, calls[nearest]):
            rules.append(Rule(f"{name}: {argument}", False, problem))
    for index in left:
        rules.append(Rule("no further call", False, str(calls[index])))
    return rules
