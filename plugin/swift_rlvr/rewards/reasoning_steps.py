r"""The reasoning steps reward: reasoning that is written in steps.

Source: the R1-Zero recipe, min(1, count / 3), where count is that of ``Step n:``, ``n.`` at the
beginning of a line, ``\n-``, ``\n*`` and ``First,`` ``Second,`` ``Next,`` ``Finally,`` (open-r1's
`reasoning_steps_reward`). Here only the reasoning counts, and Chinese markers too. A marker without
text does not count, and steps with the same text count once. The text of a bullet or number is the
rest of its line, that of other markers ends at the next marker.
"""

import re
from dataclasses import dataclass

from swift_rlvr.rewards.base import Example, Explanation, Row, Rule
from swift_rlvr.rewards.gate import NO_TEXT, GateParameters, ShapingReward
from swift_rlvr.utils.settings import setting
from swift_rlvr.verifiers.thinking import reasoning

_MARKER = re.compile(
    r"""
    ^[ \t]*(?P<line> [-*] | [0-9]{1,4} (?: \. (?![0-9]) | 、 ) )
    | \bStep[ ][0-9]{1,4}:
    | \b(?: First | Second | Next | Finally ) [,，]
    | 步骤[ ]?[0-9一二三四五六七八九十]{1,4}[ ]?[:：]
    | 第[0-9一二三四五六七八九十]{1,4}(?: 步 | [，,：:] )
    | (?<! [^\s。！？；，.!?;,] ) (?: 首先 | 其次 | 然后 | 接着 | 最后 )  # at the beginning of a clause
    """,
    re.MULTILINE | re.VERBOSE,
)
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")


def steps(text: str) -> list[str]:
    r"""The different steps of a reasoning, each without its marker and in lower case.

    >>> steps("Step 1: Add 3 and 4. Step 2: Double it.\n- \n- \n- double it.")
    ['add 3 and 4.', 'double it.']
    """
    different: dict[str, None] = {}  # a set that keeps the order
    markers = list(_MARKER.finditer(text))
    for number, marker in enumerate(markers):
        end = markers[number + 1].start() if number + 1 < len(markers) else len(text)
        if marker["line"]:
            line_end = text.find("\n", marker.end(), end)
            end = end if line_end < 0 else line_end
        step = text[marker.end() : end]
        if _LETTER_OR_DIGIT.search(step):
            different[" ".join(step.lower().split())] = None
    return list(different)


class ReasoningStepsReward(ShapingReward):
    """Reward min(1, count / 3) for the number of marked steps in the reasoning.

    >>> reward = ReasoningStepsReward()
    >>> reward(["First, add. Second, double. Finally, halve.", "Step 1: Add. Step 2: Add.", "It is 7."])
    [1.0, 0.3333333333333333, 0.0]
    """

    name = "external_reasoning_steps"
    reasons = ("enough steps", "few steps", "no steps", "no text")
    examples = (
        Example("<think>\nFirst, add.\nNext, compare.\nFinally, check.\n</think>", {}, 1.0),
        Example("<think>so it is</think>", {}, 0.0),
    )

    @dataclass(frozen=True)
    class Parameters(GateParameters):
        steps: int = setting(3, "number of steps that earns the full reward", at_least=1)

    def grade(self, text: str | None, row: Row) -> Explanation:
        if text is None or not text.strip():
            return NO_TEXT
        part = reasoning(text)
        count, enough = len(steps(part)), self.parameters.steps
        reason = "enough steps" if count >= enough else "few steps" if count else "no steps"
        name = f"the reasoning has at least {enough} different steps that are marked and not empty"
        return Explanation(
            min(1.0, count / enough), reason, part, [Rule(name, count >= enough, f"it has {count}")]
        )
