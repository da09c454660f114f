"""Reward for constraints on how an answer is written: IFEval's, IFBench's, RLVR-IFeval's."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from swift_rlvr.rewards.base import Example, Explanation, Reward, Row, Rule
from swift_rlvr.rewards.parameters import BaseParameters
from swift_rlvr.rewards.question import QUESTION_COLUMNS, question_in
from swift_rlvr.success import VERIFIER
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers.instructions import (
    Answer,
    BadConstraints,
    Constraint,
    Outcome,
    contradictions,
    distinct_own_words,
    enough_words,
    read_constraints,
)
from swift_rlvr.verifiers.instructions.answer import has_word
from swift_rlvr.verifiers.instructions.conflicts import texts_of, word_bounds
from swift_rlvr.verifiers.instructions.shown import as_shown
from swift_rlvr.verifiers.thinking import after_thinking

CONTRADICTION = "no answer can meet both"
_BAD, _UNKNOWN = "bad constraints", "cannot be told"
_NO_ANSWER, _TOO_LITTLE, _COPIED = "no answer", "too little text", "copied from the prompt"
_ALL_MET, _SOME_MISSED = "all met", "some not met"
# What stands behind one of these is not the answer, though some trainers decode it.
_END = re.compile(
    r"<\|(?:im_end|endoftext|eot_id|eom_id|end_of_text|end|return)\|>|<｜end▁of▁sentence｜>|</s>"
    r"|<end_of_turn>|<eos>"
)
_TAGGED = re.compile(r"\s*<answer>(.*)</answer>\s*\Z", re.DOTALL)
_NO_COMMA = '[{"id": "punctuation:no_comma"}, {"id": "detectable_format:title"}]'
_PRAISE = "<<The Rhine>>\nThe Rhine flows through Cologne and past many old castles to the sea."
# Where nothing but JSON is asked for, a key and a value may be all.
_JSON = "detectable_format:json_format"
_LEAST_OF_JSON = 2
# The constraints that ask for keywords.
_KEYWORDS = ("keywords:existence", "keywords:frequency", "count:keywords_multiple")


class InstructionsReward(Reward):
    """1.0 for an answer that meets all constraints of the row, else 0.0; with `partial` the share
    that it meets.

    The answer is what follows the thinking, without answer tags around it. It needs a few different
    words of its own: an empty answer and a copy of the prompt earn nothing. A constraint that is
    unknown, or whose arguments cannot be read, makes the row one that is not graded.
    `swift_rlvr.verifiers.instructions` has the constraints. Sources: Zhou et al. 2023, IFEval (arXiv
    2311.07911); Pyatkin et al. 2025, IFBench (arXiv 2507.02833).

    >>> row = {"constraints": [["punctuation:no_comma"]] * 2}
    >>> text = "The Rhine flows through Cologne and past many old castles to the sea"
    >>> InstructionsReward()([f"{text}.", f"{text}, slowly."], **row)
    [1.0, 0.0]
    """

    name = "external_instructions"
    role = VERIFIER
    without_gold = "no response was tried, since the rows bring none that is right"
    shows_details = True
    columns = ("constraints",)
    optional_columns = QUESTION_COLUMNS
    columns_elsewhere = {"constraints": ("instruction_id_list", "ground_truth")}
    reasons = (_BAD, _UNKNOWN, _NO_ANSWER, _TOO_LITTLE, _COPIED, _SOME_MISSED, _ALL_MET)
    examples = (
        Example(_PRAISE, {"constraints": _NO_COMMA}, 1.0),
        Example(_PRAISE.replace(" and", ", and"), {"constraints": _NO_COMMA}, 0.0),
        Example(_PRAISE, {"constraints": ["no:such_constraint"]}, None),
    )

    @dataclass(frozen=True)
    class Parameters(BaseParameters):
        partial: bool = setting(
            False, "reward the share of the constraints that are met, instead of all or nothing"
        )
        loose: bool = setting(
            False,
            "as IFEval's loose accuracy: a constraint may also be met without the first line, the "
            "last line, both, or the asterisks",
        )
        min_words: int = setting(
            12,
            "the different words that an answer needs besides what it copies of the prompt; where the "
            "constraints ask for a shorter one, less; 0 asks for none",
            at_least=0,
        )

    @classmethod
    def remarks(cls, row: Row) -> list[str]:
        try:
            constraints = read_constraints(row["constraints"])
        except BadConstraints:
            return []  # the task has refused the row
        return [f"{CONTRADICTION}: {pair}" for pair in contradictions(constraints)]

    def grade(self, text: str | None, row: Row) -> Explanation:
        written = row["constraints"]
        try:
            constraints = (
                _read_text(written) if isinstance(written, str) else read_constraints(written)
            )
        except BadConstraints as error:
            rules = [Rule(name, None, why) for name, why in error.problems.items()]
            return Explanation(None, _BAD, None, rules)

        answer = answer_in(text or "", constraints)
        outcomes = []
        rules = []
        for constraint in constraints:
            outcome = self._outcome(constraint, answer)
            outcomes.append(outcome.passed)
            rules.append(Rule(str(constraint), outcome.passed, outcome.detail))
        refusal = self._refusal(answer, constraints, question_in(row))
        if refusal is not None:
            reason, rule = refusal
            return Explanation(0.0, reason, answer.text, [rule, *rules])

        missed = outcomes.count(False)
        # One that is missed decides where all must be met.
        if None in outcomes and (self.parameters.partial or not missed):
            return Explanation(None, _UNKNOWN, answer.text, rules)
        share = outcomes.count(True) / len(outcomes)
        reward = share if self.parameters.partial else float(not missed)
        return Explanation(reward, _SOME_MISSED if missed else _ALL_MET, answer.text, rules)

    def _refusal(
        self, answer: Answer, constraints: Sequence[Constraint], prompt: str
    ) -> tuple[str, Rule] | None:
        """The reason, with its rule, why an answer is none, whatever constraints it meets: "no commas" is met
        by saying nothing, and many others by the prompt itself.
        """
        if not has_word(answer.text):
            return _NO_ANSWER, Rule("there is an answer after the thinking", False)
        is_brief = any(constraint.kind.brief for constraint in constraints)
        if is_brief or not self.parameters.min_words:
            return None
        # "In at most ten words" is no reason to ask for twelve.
        least = self.parameters.min_words
        for constraint in constraints:
            _, most = word_bounds(constraint)
            if most is not None:
                least = min(least, most // 2)
        if {constraint.name for constraint in constraints} == {_JSON}:
            least = min(least, _LEAST_OF_JSON)
        needed = enough_words(answer, least)
        different, own = distinct_own_words(answer, prompt)
        if own >= needed:
            return None
        name = f"it has {needed} different words of its own"
        detail = f"{own}, and {different} with those of the prompt"
        return _COPIED if different >= needed else _TOO_LITTLE, Rule(name, False, detail)

    def _outcome(self, constraint: Constraint, answer: Answer) -> Outcome:
        outcome = constraint.outcome(answer)
        if outcome.passed is not False or not self.parameters.loose:
            return outcome
        # IFEval's variants, by what they lack.
        lines = answer.text.split("\n")
        cuts = {
            "the first line": lines[1:],
            "the last line": lines[:-1],
            "the first and the last line": lines[1:-1],
        }
        variants = {"the asterisks": answer.text.replace("*", "")}
        for name, kept in cuts.items():
            text = "\n".join(kept).strip()
            variants[name] = text
            variants[f"{name} and the asterisks"] = text.replace("*", "")
        for name, text in variants.items():
            variant = Answer(text, answer.keywords)
            if has_word(text) and constraint.outcome(variant).passed:
                return Outcome(True, f"met without {name}")
        return outcome


def answer_in(text: str, constraints: Sequence[Constraint]) -> Answer:
    """The answer of a completion: after the thinking, up to the end token, out of answer tags that
    are around all of it.
    """
    answer = _END.split(after_thinking(text), maxsplit=1)[0]
    tagged = _TAGGED.match(answer)
    if tagged and "<answer>" not in tagged[1]:
        answer = tagged[1]
    keywords = []
    for constraint in constraints:
        if constraint.name in _KEYWORDS:
            keywords += texts_of(constraint)
    return Answer(as_shown(answer).strip("\n"), tuple(dict.fromkeys(keywords)))


# Each row is asked for many times, by each completion of its group.
_read_text = lru_cache(maxsize=4096)(read_constraints)
