r"""The inputs of verdicts.py: real answers, what the tests of the rewards grade, and 20,000
generated completions.

    PYTHONPATH=plugin python tests/benchmarks/verdict_inputs.py ../shared/real_math INPUTS

They are stored, so that both versions that are compared get the same ones. The generated ones have
seed 19.
"""

import json
import random
import sys
import time
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
FORM: list[list] = [
    [name, {}] for name in ("format", "format_strict", "tag_count", "length", "repetition_penalty")
]
FORM += [["reasoning_steps", {}], ["language_consistency", {}]]
MATH: list[list] = [["accuracy", {}], ["boxed", {}], ["cosine", {"unit": "characters"}]]
COUNTDOWN: list[list] = [["countdown", {}], ["countdown", {"notation": "strict"}]]
COUNTDOWN += [["cosine", {"accuracy": "external_countdown", "unit": "characters"}]]
THOUGHTS = [
    "First, add them.",
    "Step 1: add. Step 2: look.",
    "- try 3 + 4 = 7",
    "我们把它们相加。",
    "设 $x$，",
    "",
]
THOUGHTS += [
    "wait wait wait wait wait",
    r"So \boxed{7}?",
    "<answer>7</answer>",
    "Складываем.",
    "It is 12.",
]
LAYOUTS = [
    *(
        "<think>{0}</think><answer>{1}</answer>",
        "<think>\n{0}\n</think>\n<answer>\n{1}\n</answer>",
        "{0}<answer>{1}",
    ),
    *(
        "<think>{0}<answer>{1}</answer>",
        "{0}</think>\n<answer>{1}</answer><|im_end|>\n",
        "{0} <answer> {1} </answer>.",
    ),
    *(
        "<answer>7</answer>{0}<answer>{1}</answer>",
        "<answer>{1}</answer>{0}<answer>7</answer>",
        "{0} {1}",
        "{1}",
    ),
    *(
        "<think>{0}<answer>{1}</answer></think>",
        "<Think>{0}</Think><Answer>{1}</Answer>",
        "<answer>{1}</answer>{0}",
    ),
    *(
        r"{0} \boxed{{{1}}}",
        r"<think>{0}</think> So $\boxed{{{1}}}$.",
        "{0}\n#### {1}",
        "{0} The answer is {1}.",
    ),
    *(
        r"<answer>\boxed{{{1}}}</answer>",
        r"{0} $$\fbox{{{1}}}$$",
        r"<think>{0}\boxed{{{1}}}",
        "<answer>${1}$</answer>",
    ),
]
NOTATIONS = [  # of Countdown: which signs are replaced by which, and what is put around
    *[
        ({}, "{}"),
        ({" ": ""}, "{}"),
        ({"*": "×", "/": "÷", "-": "−"}, "{}"),
        ({"*": "·", "-": "–"}, "`{}`"),
    ],
    *[
        ({"*": r"\times", "/": r"\div"}, "${}$"),
        ({"*": r"\cdot"}, r"\[ {} \]"),
        ({}, r"\boxed{{{}}}"),
    ],
    *[
        ({"(": r"\left(", ")": r"\right)"}, "{}"),
        ({"*": "**"}, "{}"),
        ({"/": "//"}, "{}"),
        ({"*": "x"}, "{}"),
    ],
    *[
        ({"2": "²"}, "{}"),
        ({" ": ","}, "{}"),
        ({"(": "[", ")": "]"}, "{}"),
        ({}, "x = {}"),
        ({}, "{}."),
    ],
    *[({}, "```\n{}\n```"), ({"*": ""}, "{}"), ({" ": "\n"}, "\n{}\n"), ({"+": "+ -"}, "{}")],
    (dict(zip("0123456789()=+", "０１２３４５６７８９（）＝＋", strict=True)), "{}"),
]


def laid_out(rng: random.Random, answer: str) -> str:
    thoughts = " ".join(rng.choices(THOUGHTS, k=rng.randint(0, 6)))
    return rng.choice(LAYOUTS[: 2 if rng.random() < 0.6 else None]).format(thoughts, answer)


def countdown(rng: random.Random) -> tuple[str, dict]:
    """An answer with the value of the target, three times out of four; often numbers or text are
    changed.
    """
    nums = [rng.randint(0, 99) for _ in range(rng.randint(2, 6))]
    terms = [(str(number), Fraction(number), "") for number in nums]
    while len(terms) > 1:
        first, second = (terms.pop(rng.randrange(len(terms))) for _ in range(2))
        sign = rng.choice("+-*/" if second[1] else "+-*")
        value = {
            "+": first[1] + second[1],
            "-": first[1] - second[1],
            "*": first[1] * second[1],
        }.get(sign)
        left, right = (
            f"({text})" if used and rng.random() < 0.95 else text
            for text, _, used in (first, second)
        )
        text = (
            rf"\frac{{{left}}}{{{right}}}"
            if sign == "/" and rng.random() < 0.3
            else f"{left} {sign} {right}"
        )
        terms.append((text, first[1] / second[1] if value is None else value, sign))
    text, value, _ = terms[0]
    target = (
        value.numerator if value.denominator == 1 and rng.random() < 0.75 else rng.randint(-5, 999)
    )
    text += rng.choice(
        ["", "", f" = {value}", f" = {target}", f" = {target} + 0", f" = {text}", " = ?", " ="]
    )
    replacements, around = rng.choice(NOTATIONS)
    for old, new in replacements.items():
        text = text.replace(old, new)
    if rng.random() < 0.2:
        place = rng.randrange(len(text))
        text = (
            text[:place]
            + rng.choice(["", " ", "7", "+", "(", ")", "=", ".", "!", "\0", "é"])
            + text[place + 1 :]
        )
    odd: list[Any] = [1, 7, None, 2.0, "3"]
    if rng.random() < 0.15:
        nums[rng.randrange(len(nums))] = rng.choice(odd)
    return laid_out(rng, around.format(text)), {
        "nums": str(nums) if rng.random() < 0.1 else nums,
        "target": target,
    }


def math(rng: random.Random, golds: list[str]) -> tuple[str, dict]:
    """A gold of a public test set or of the tests' table, and itself, a mutation of it, another
    gold or anything.
    """
    from verifiers.mathematics.generated import PIECES
    from verifiers.mathematics.mutations import mutations

    gold = rng.choice(golds)
    anything = "".join(rng.choices(PIECES, k=rng.randint(1, 12)))
    mutation = rng.choice([gold, *(text for _, text in mutations(gold))])
    answer = rng.choice(
        [
            gold,
            mutation,
            mutation,
            rng.choice(golds),
            anything,
            f"{gold} {rng.choice(PIECES)}",
            "(" + gold,
        ]
    )
    return laid_out(rng, answer), {"solution": anything if rng.random() < 0.1 else gold}


def tables(real: Path) -> list[tuple]:
    """The rows of the tests' tables of mathematics and Countdown, and the real answers and
    golds.
    """
    from verifiers.countdown.test_verifier import TABLE, block
    from verifiers.mathematics import test_expressions, test_reading
    from verifiers.mathematics.tables import PAIRS

    inputs: list[tuple] = [(MATH, case.completion, {"solution": case.gold}) for case in PAIRS]
    for first, second, _ in [
        *test_expressions.EQUAL,
        *test_expressions.DIFFERENT,
        *test_reading.EQUAL,
        *test_reading.DIFFERENT,
    ]:
        inputs += [
            (MATH, f"<answer>{a}</answer>", {"solution": b})
            for a, b in ((first, second), (second, first))
        ]
    for text, nums, target, *_ in TABLE:
        inputs.append(
            (
                COUNTDOWN,
                block(text) if isinstance(text, str) else text,
                {"nums": nums, "target": target},
            )
        )
    for line in (real / "dev.jsonl").read_text(encoding="utf-8").splitlines():
        inputs.append(
            (MATH + FORM, json.loads(line)["completion"], {"solution": json.loads(line)["gold"]})
        )
    for gold in real_golds(real):
        inputs += [
            (MATH, form % gold, {"solution": gold})
            for form in (r"\boxed{%s}", "<answer>%s</answer>", "%s")
        ]
    return inputs


def real_golds(real: Path) -> list[str]:
    return [
        json.loads(line)["gold"]
        for line in (real / "golds.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def graded_by_tests() -> list[tuple]:
    """What the tests of the rewards grade, with the parameters that they set."""
    import pytest

    from swift_rlvr.rewards import REWARDS, Reward

    inputs: list[tuple] = []
    grades_of, names = Reward.grades, list(REWARDS)

    def recording(self, completions, **columns):
        started = time.monotonic()
        grades = grades_of(self, completions, **columns)
        if time.monotonic() - started < 1 and REWARDS.get(self.name) is type(
            self
        ):  # not what a time limit decides
            defaults = {
                each.name: each.default
                for each in fields(self.parameters)
                if each.name not in ("tasks", "timeout")
            }
            values = {name: getattr(self.parameters, name) for name in defaults}
            changed = {name: value for name, value in values.items() if value != defaults[name]}
            for number, completion in enumerate(completions):
                if len(str(completion)) > 20_000:  # one of those that are only to take long
                    continue
                row = {
                    name: values[number]
                    for name, values in columns.items()
                    if isinstance(values, (list, tuple))
                }
                inputs.append(([[self.name, changed]], completion, row))
        return grades

    setattr(Reward, "grades", recording)  # noqa: B010
    tests = [str(TESTS / name) for name in ("rewards", "verifiers/reasoning_gym")]
    pytest.main(
        ["-q", "-p", "no:randomly", "-p", "no:cacheprovider", "--hypothesis-seed=19", *tests]
    )
    setattr(Reward, "grades", grades_of)  # noqa: B010
    return [
        each
        for each in inputs
        if {each[0][0][0], each[0][0][1].get("accuracy", names[0])} <= set(names)
    ]


def as_json(given: tuple) -> str | None:
    """A line, or None for what JSON would change, and for a huge one."""
    try:
        line = json.dumps(given)
    except (TypeError, ValueError):
        return None
    return (
        line
        if len(line) < 1_000_000 and repr(json.loads(line)) == repr([given[0], *given[1:]])
        else None
    )


if __name__ == "__main__":
    sys.path[:0] = [str(TESTS)]
    real, path, rng = Path(sys.argv[1]), Path(sys.argv[2]), random.Random(19)
    inputs = tables(real)
    golds = [
        row["solution"]
        for _, _, row in inputs
        if isinstance(row.get("solution"), str) and len(row["solution"]) < 200
    ]
    inputs += [(COUNTDOWN + FORM, *countdown(rng)) for _ in range(10_000)]
    inputs += [(MATH + FORM, *math(rng, golds)) for _ in range(10_000)]
    lines = dict.fromkeys(map(as_json, [*inputs, *graded_by_tests()]))
    path.write_text("".join(f"{line}\n" for line in lines if line is not None), encoding="utf-8")
