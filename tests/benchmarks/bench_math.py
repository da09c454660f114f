r"""How fast the math verifier is beside ms-swift's and TRL's accuracy rewards, and what hostile answers can do to it.

1. "boxed" and "answer tags": 500 completions with 200 to 1,000 characters of reasoning, 8 to a gold, 55% of them right
   in several notations, against the ``accuracy`` of ms-swift 4.6.0 on one core. Every right answer that ms-swift
   credits must be credited, and no wrong one.
2. "expressions": 250 different golds and an answer to each in another notation, for which exact forms or algebra are
   needed, against TRL's ``accuracy_reward`` on one core; the verifier on one core, and with two workers on two. "sympy
   only": the same with only those that the verifier's exact forms do not cover, so every comparison goes to a worker.
3. 64 power towers among 64 ordinary answers: the time until all are graded. The ordinary ones must be right.
4. 1 MB completions: the longest of three timings of each.

Times are wall-clock times with the process and its children pinned to one core (or two), since the verifier works in
child processes. The scorers alternate, and medians are compared. Every round has its own corpus and its own verifier,
whose workers have started and graded a few other answers. A ratio is that of the first call, with golds never seen
before; "again" is the same call once more, when golds may be cached. sympy's cache is emptied before each timing.

Usage: PYTHONPATH=plugin python tests/benchmarks/bench_math.py [--rounds 3]
Needs ms-swift, TRL, and two cores for the figures on two. Prints a table and, last, one line of JSON. Exits 1 where a
required figure is not reached.
"""

import argparse
import json
import logging
import os
import random
import statistics
import sys
import time
from fractions import Fraction

from swift_rlvr.math_answers import MathVerifier
from swift_rlvr.math_answers.reading import read
from swift_rlvr.math_answers.values import same

FIGURES = {"boxed": 20.0, "answer tags": 10.0, "expressions, 1 core": 1.0, "expressions, 2 cores": 1.6}  # at least
FIGURES |= {"sympy only, 1 core": 1.0, "sympy only, 2 cores": 1.6}
TOWERS_S, WORST_S = 10.0, 1.0  # at most
TIMEOUT = 2.0
KINDS = {"integer": 28, "fraction": 9, "expression": 13, "collection": 5, "unit or word": 5, "letter": 3}  # of 63 golds
SENTENCES = (
    r"First, note that ${a}x + {b} = {c}$, which gives $x = \frac{{{c} - {b}}}{{{a}}}$.",
    r"We know that $\gcd({a}, {b})$ divides ${c}$, so we can write ${a} \cdot {b} = {c}k + {d}$ for some integer $k$.",
    "Let me compute this step by step: {a} + {b} = {ab}, and then {ab} - {d} is what remains.",
    "\\[ \\sum_{{k=1}}^{{{a}}} k^2 = \\frac{{{a}({a}+1)(2 \\cdot {a}+1)}}{{6}} \\]",
    r"By Pythagoras the hypotenuse is $\sqrt{{{a}^2 + {b}^2}}$, and the area is $\frac{{1}}{{2}} \cdot {ab}$.",
    r"Since $f({d}) = {a} \cdot {d} + {b}$, the value of $f$ at ${c}$ is larger than ${b}$.",
    "Wait, I should check this again. With $n = {d}$ we get ${a}n - {b}$, which is not what we want.",
    r"Dividing both sides by {a} leaves us with $y^2 \le \frac{{{b}}}{{{a}}}$, hence there are at most {d} cases.",
)
BOXED_ENDS = (
    "Therefore the answer is $\\boxed{%s}$.",
    "\\[\n\\boxed{%s}\n\\]",
    "**Final Answer**\n\n\\boxed{%s}",
    "Thus, the final answer is: $\\boxed{%s}$",
)


# A maker returns a gold in LaTeX, right answers (the usual notation first) and wrong answers.


def make_integer(rng):
    n = rng.choice((rng.randint(2, 20), rng.randint(21, 999), rng.randint(1000, 99999), -rng.randint(2, 50)))
    right = [f"{n}"] * 3 + [f"{n}.0", f"x = {n}", f"{n}\\text{{ units}}", f"\\mathbf{{{n}}}", f"\\frac{{{2 * n}}}{{2}}"]
    if n >= 1000:
        right += [f"{n:,}", f"{n:,}".replace(",", "{,}")] * 2
    return (
        str(n),
        right,
        [str(n + 1), str(n - 1), str(10 * n), str(-n), f"{n}.5", f"\\frac{{{n}}}{{7}}", f"{n}, {n + 3}"],
    )


def make_fraction(rng):
    value = Fraction(rng.randint(1, 60), rng.choice((2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 20)))
    while value.denominator == 1:
        value = Fraction(rng.randint(1, 60), rng.choice((2, 3, 4, 5, 6, 7, 8, 9)))
    p, q = value.numerator, value.denominator
    right = [f"\\frac{{{p}}}{{{q}}}"] * 2 + [f"\\dfrac{{{p}}}{{{q}}}", f"{p}/{q}", f"\\frac{{{3 * p}}}{{{3 * q}}}"]
    wrong = [f"\\frac{{{q}}}{{{p}}}", f"\\frac{{{p + q}}}{{{q}}}", f"{p}/{q + 1}", str(p), f"-\\frac{{{p}}}{{{q}}}"]
    gold = f"\\frac{{{p}}}{{{q}}}"
    if 10**6 % q == 0:
        decimal = f"{p / q:.6f}".rstrip("0")
        right += [decimal, decimal]
        gold = rng.choice((gold, decimal))
        wrong.append(f"{decimal}1")
    else:
        wrong.append(f"{p / q:.2f}")
    return gold, right, wrong


def make_expression(rng):
    a, b, c = rng.randint(2, 9), rng.randint(2, 9), rng.choice((2, 3, 5, 6, 7))
    makers = (
        lambda: (
            f"{a}\\sqrt{{{c}}}",
            [f"{a}\\sqrt{{{c}}}", f"{a} \\sqrt{{{c}}}", f"\\sqrt{{{a * a * c}}}"],
            [f"{a + 1}\\sqrt{{{c}}}", f"\\sqrt{{{a * c}}}", str(a * c)],
        ),
        lambda: (
            f"\\frac{{{a}\\pi}}{{11}}",
            [f"\\frac{{{a}\\pi}}{{11}}", f"\\frac{{{a}}}{{11}}\\pi", f"{a}\\pi/11"],
            [f"\\frac{{{a}}}{{11}}", f"\\frac{{{a}\\pi}}{{12}}", f"\\frac{{11\\pi}}{{{a}}}"],
        ),
        lambda: (
            f"x^2 + {a + b}x + {a * b}",
            [f"x^2 + {a + b}x + {a * b}", f"(x+{a})(x+{b})", f"{a * b} + {a + b}x + x^2"],
            [f"x^2 + {a + b}x - {a * b}", f"(x+{a})(x-{b})", f"x^2 + {a * b}"],
        ),
        lambda: (
            f"y = {a}x + {b}",
            [f"y = {a}x + {b}", f"y={b}+{a}x", f"{a}x - y + {b} = 0"],
            [f"y = {a}x - {b}", f"y = {a + 1}x + {b}", f"x = {a}y + {b}"],
        ),
        lambda: (
            f"{a}^{{{b + 10}}}",
            [f"{a}^{{{b + 10}}}", f"{a} \\cdot {a}^{{{b + 9}}}", str(a ** (b + 10))],
            [f"{a}^{{{b + 11}}}", f"{a * (b + 10)}", f"{a + 11}^{{{b + 10}}}"],
        ),
        lambda: (
            f"{a} - {b}\\sqrt{{{c}}}",
            [f"{a} - {b}\\sqrt{{{c}}}", f"{a}-{b}\\sqrt{{{c}}}", f"-{b}\\sqrt{{{c}}} + {a}"],
            [f"{a} + {b}\\sqrt{{{c}}}", f"{b} - {a + 1}\\sqrt{{{c}}}", str(a - b)],
        ),
        lambda: (
            f"\\frac{{x+{a}}}{{{b}}}",
            [f"\\frac{{x+{a}}}{{{b}}}", f"\\dfrac{{x + {a}}}{{{b}}}", f"\\frac{{x}}{{{b}}} + \\frac{{{a}}}{{{b}}}"],
            [f"\\frac{{x-{a}}}{{{b}}}", f"x + \\frac{{{a}}}{{{b}}}", f"\\frac{{{b}}}{{x+{a}}}"],
        ),
    )
    return rng.choice(makers)()


def make_collection(rng):
    a, b = rng.randint(-9, 5), rng.randint(6, 20)
    makers = (
        lambda: (f"({a}, {b})", [f"({a}, {b})", f"({a},{b})", f"\\left({a}, {b}\\right)"], [f"({b}, {a})", f"{a}"]),
        lambda: (f"[{a}, {b})", [f"[{a}, {b})", f"[{a},{b})"], [f"[{a}, {b}]", f"({a}, {b}]", f"[{a}, {b + 1})"]),
        lambda: (
            f"(-\\infty, {a}) \\cup ({b}, \\infty)",
            [f"(-\\infty, {a}) \\cup ({b}, \\infty)", f"(-\\infty,{a})\\cup({b},+\\infty)"],
            [f"(-\\infty, {a}] \\cup ({b}, \\infty)", f"({a}, {b})"],
        ),
        lambda: (
            f"\\{{{a}, {b}\\}}",
            [f"\\{{{a}, {b}\\}}", f"\\{{{b}, {a}\\}}", f"{a}, {b}"],
            [f"\\{{{a}, {b + 1}\\}}", f"\\{{{a}, {b}, 99\\}}", f"{b}"],
        ),
        lambda: (
            f"{a}, {b}, {b + 3}",
            [f"{a}, {b}, {b + 3}", f"{b},{a},{b + 3}"],
            [f"{a}, {b}", f"{a}, {b}, {b + 4}", f"{a}"],
        ),
    )
    return rng.choice(makers)()


def make_unit_or_word(rng):
    n = rng.randint(2, 89)
    word, others = rng.choice(
        (("even", ["odd", "neither"]), ("east", ["west", "north"]), ("Evelyn", ["Carla", "Debra"]))
    )
    makers = (
        lambda: (f"{n}\\text{{ cm}}", [f"{n}\\text{{ cm}}", f"{n}", f"{n} \\text{{ cm}}"], [f"{n + 1}\\text{{ cm}}"]),
        lambda: (f"{n}^\\circ", [f"{n}^\\circ", f"{n}", f"{n}^{{\\circ}}"], [f"{n + 1}^\\circ", f"{90 - n + 91}"]),
        lambda: (f"{n}\\%", [f"{n}\\%", f"{n / 100}"], [f"{n + 1}\\%", f"{n / 10}"]),
        lambda: (f"\\text{{{word}}}", [f"\\text{{{word}}}"], [f"\\text{{{other}}}" for other in others]),
        lambda: (f"\\${n}.50", [f"\\${n}.50", f"{n}.5", f"{n}.50"], [f"\\${n}.05", f"{n}"]),
    )
    return rng.choice(makers)()


def make_letter(rng):
    letter, *others = rng.sample("ABCDE", 3)
    return letter, [letter, f"\\text{{({letter})}}", f"\\text{{{letter}}}"], [*others, f"\\text{{({others[0]})}}"]


MAKERS = dict(
    zip(
        KINDS,
        (make_integer, make_fraction, make_expression, make_collection, make_unit_or_word, make_letter),
        strict=True,
    )
)


def reasoning(rng: random.Random, length: int) -> str:
    """Return reasoning of that many characters at most, cut after a sentence."""
    lines, total = [], 0
    while True:
        a, b, c, d = (rng.randint(2, 99) for _ in range(4))
        line = rng.choice(SENTENCES).format(a=a, b=b, c=c, d=d, ab=a + b)
        if lines and total + len(line) + 1 > length:
            return "\n".join(lines)
        lines.append(line)
        total += len(line) + 1


def tagged(rng: random.Random, answer: str) -> str:
    """Half of the answers with commands stand between dollars, as ms-swift's ``accuracy`` needs them."""
    return f"<answer>{f'${answer}$' if not answer.isdigit() and rng.random() < 0.5 else answer}</answer>"


def make_corpus(seed: int, tags: bool, group: int = 8, size: int = 500):
    """Return completions, golds (numbers plain, the rest between dollars) and the right rewards; 55% are right."""
    rng = random.Random(seed)
    kinds = [kind for kind, count in KINDS.items() for _ in range(count)]
    rng.shuffle(kinds)
    completions, golds, rewards = [], [], []
    for kind in kinds:
        gold, right, wrong = MAKERS[kind](rng)
        for _ in range(group):
            reward = float(rng.random() < 0.55)
            answer = (right[0] if rng.random() < 0.5 else rng.choice(right)) if reward else rng.choice(wrong)
            text = reasoning(rng, rng.randint(200, 1000))
            end = f"\n</think>\n{tagged(rng, answer)}" if tags else "\n\n" + rng.choice(BOXED_ENDS) % answer
            completions.append(("<think>\n" if tags else "") + text + end)
            golds.append(gold if kind == "integer" else f"${gold}$")
            rewards.append(reward)
    return completions[:size], golds[:size], rewards[:size]


def make_algebra(rng: random.Random) -> tuple[str, str, str]:
    """Return a gold, the same in another notation, and something else, all of which only algebra can tell apart."""
    a, b, c, d = (rng.randint(2, 40) for _ in range(4))
    s = rng.choice((2, 3, 5, 6, 7, 10, 11, 13))
    x = rng.choice("xyztnk")
    small = rng.randint(2, 6)
    return rng.choice(
        (
            (
                f"{x}^2 + {a + b}{x} + {a * b}",
                f"({x} + {a})({x} + {b})",
                f"({x} + {a})({x} - {b})",
            ),
            (
                f"{c}{x}^2 - {a * a * c}",
                f"{c}({x} - {a})({x} + {a})",
                f"{c}({x} - {a})^2",
            ),
            (f"{a}\\sqrt{{{s}}}", f"\\sqrt{{{a * a * s}}}", f"\\sqrt{{{a * a * s + 1}}}"),
            (
                f"\\frac{{{a}\\sqrt{{{s}}}}}{{{s}}} + {b}",
                f"{b} + \\frac{{{a}}}{{\\sqrt{{{s}}}}}",
                f"{b} - \\frac{{{a}}}{{\\sqrt{{{s}}}}}",
            ),
            (
                f"\\frac{{{a + b}{x} + {a}}}{{{x}({x}+1)}}",
                f"\\frac{{{a}}}{{{x}}} + \\frac{{{b}}}{{{x}+1}}",
                f"\\frac{{{a}}}{{{x}}} - \\frac{{{b}}}{{{x}+1}}",
            ),
            (f"{a}\\ln {s} + {b}", f"\\ln({s}^{{{a}}}) + {b}", f"\\ln({s}^{{{a}}}) + {b + 1}"),
            (f"{2 * a}\\sin {x} \\cos {x} + {b}", f"{a}\\sin(2{x}) + {b}", f"{a}\\cos(2{x}) + {b}"),
            (f"e^{{{a}{x} + {b}}}", f"e^{{{b}}} e^{{{a}{x}}}", f"e^{{{b}}} + e^{{{a}{x}}}"),
            (f"y = {a}x + {b}", f"{a}x - y = -{b}", f"{a}x - y = {b}"),
            (
                f"(\\frac{{{a}}}{{{b + 40}}}, {c}\\pi)",
                f"\\left(\\frac{{{2 * a}}}{{{2 * b + 80}}}, \\frac{{{3 * c}\\pi}}{{3}}\\right)",
                f"\\left(\\frac{{{2 * a}}}{{{2 * b + 80}}}, \\frac{{{3 * c}\\pi}}{{4}}\\right)",
            ),
            (
                f"(-\\infty, -{a}\\sqrt{{{s}}}) \\cup ({b}, \\infty)",
                f"({b}, \\infty) \\cup (-\\infty, -\\sqrt{{{a * a * s}}})",
                f"({b}, \\infty) \\cup (-\\infty, \\sqrt{{{a * a * s}}})",
            ),
            (
                f"\\{{{a}, {b + 40} + \\sqrt{{{4 * s}}}\\}}",
                f"\\{{2\\sqrt{{{s}}} + {b + 40}, {a}\\}}",
                f"\\{{3\\sqrt{{{s}}} + {b + 40}, {a}\\}}",
            ),
            (
                f"\\begin{{pmatrix}} {a} & {b} \\\\ {c}\\sqrt{{{s}}} & {d} \\end{{pmatrix}}",
                f"\\begin{{bmatrix}} {a} & {b} \\\\ \\sqrt{{{c * c * s}}} & {d} \\end{{bmatrix}}",
                f"\\begin{{bmatrix}} {a} & {b} \\\\ \\sqrt{{{c * c * s}}} & {d + 1} \\end{{bmatrix}}",
            ),
            (
                f"{x}^{{{small + 1}}} - {a}{x}^{{{small}}}",
                f"{x}^{{{small}}}({x} - {a})",
                f"{x}^{{{small}}}({x} + {a})",
            ),
            (
                f"\\frac{{{a}{x} + {b}}}{{{c}}}",
                f"\\frac{{{a}{x}}}{{{c}}} + \\frac{{{b}}}{{{c}}}",
                f"\\frac{{{a}{x}}}{{{c}}} + {b}",
            ),
            (f"{x} \\ge {a}\\sqrt{{{s}}}", f"\\sqrt{{{a * a * s}}} \\le {x}", f"\\sqrt{{{a * a * s}}} \\ge {x}"),
            (
                f"{a}\\pi + {b}\\sqrt{{{s}}}",
                f"\\sqrt{{{b * b * s}}} + \\frac{{{2 * a}\\pi}}{{2}}",
                f"\\sqrt{{{b * b * s}}} - \\frac{{{2 * a}\\pi}}{{2}}",
            ),
        )
    )


def settled_exactly(gold: str, answer: str) -> bool:
    """Whether the verifier compares these two itself, without sympy."""
    values = [read(text) for text in (gold, answer)]
    return None not in values and same(*values) is not None


def make_expressions(seed: int, size: int = 250, hard: bool = False):
    """Return completions with boxed answers, golds and the right rewards; no gold and no answer occurs twice.

    hard: only those that go to sympy, whatever the verifier can do itself.
    """
    rng, seen = random.Random(seed), set()
    completions, golds, rewards = [], [], []
    while len(golds) < size:
        reward = float(rng.random() < 0.6)
        gold, right, wrong = make_algebra(rng)
        answer = right if reward else wrong
        if gold in seen or answer in seen or (hard and settled_exactly(f"${gold}$", answer)):
            continue
        seen |= {gold, answer}
        completions.append(reasoning(rng, rng.randint(200, 1000)) + "\n\n" + rng.choice(BOXED_ENDS) % answer)
        golds.append(f"${gold}$")
        rewards.append(reward)
    return completions, golds, rewards


def make_towers(seed: int, count: int = 64):
    """Return completions, golds and the right rewards: power towers and ordinary answers alternating, no two alike."""
    rng = random.Random(seed)
    towers = [f"{a}^{{{b}^{{{c}^{{{d}}}}}}}" for a in (7, 8, 9) for b in (7, 8, 9) for c in (7, 8, 9) for d in (8, 9)]
    towers += [f"{a}^{{{a}^{{{a}}}}} + {k}" for k, a in enumerate((97, 98, 99))]
    towers += [f"\\frac{{9^{{9^{{9^{{9}}}}}}}}{{{k}^{{{k}^{{{k}^{{{k}}}}}}}}}" for k in (5, 6, 7)]
    towers += ["(10^{10})!", "((99!)!)!", "\\binom{10^{12}}{10^{11}}", "2^{3^{4^{5^{6}}}} \\bmod 7 + 9^{9^{9^{9}}}"]
    towers = rng.sample(towers, count)
    algebra = list(zip(*make_expressions(seed + 1, 4 * count), strict=True))
    algebra = [(text, gold) for text, gold, reward in algebra if reward][: count // 2]
    normal = [(f"It is \\boxed{{{n}}}.", str(n)) for n in rng.sample(range(10**6), count - len(algebra))] + algebra
    rng.shuffle(normal)
    rows = []
    for (text, gold), tower in zip(normal, towers, strict=True):
        rows += [(text, gold, 1.0), (f"It is $\\boxed{{{tower}}}$.", str(rng.randint(2, 10**6)), 0.0)]
    return tuple(list(column) for column in zip(*rows, strict=True))


def hostile_completions(size: int = 1_000_000) -> dict[str, tuple[str, float]]:
    """Completions of `size` characters that are slow to search or to parse, with their reward where the gold is 5."""

    def fill(unit: str, prefix: str = "", suffix: str = "") -> str:
        return prefix + unit * ((size - len(prefix) - len(suffix)) // len(unit)) + suffix

    return {
        "prose, right": (fill("we try 1 + 2 = 3, ", suffix=r"\boxed{5}"), 1.0),
        "formulas, right": (fill(r"$\frac{1}{2}$ ", suffix=r"\boxed{5}"), 1.0),
        "answer first": (fill("x", "<answer>5</answer>"), 1.0),
        "spaces in the block, right": (fill(" ", "<answer>", "5</answer>"), 1.0),
        r"\boxed{": (fill(r"\boxed{"), 0.0),
        r"\boxed{ closed": (r"\boxed{" * (size // 8) + "}" * (size // 8), 0.0),
        r"\boxed{1}": (fill(r"\boxed{1}"), 0.0),
        "<answer>": (fill("<answer>"), 0.0),
        "<think>": (fill("<think>"), 0.0),
        "####": (fill("#### ", suffix="6"), 0.0),
        "$": (fill("$"), 0.0),
        "block of $": (fill("$", "<answer>", "</answer>"), 0.0),
        "block of digits": (fill("9", "<answer>", "</answer>"), 0.0),
        "block of 1+": (fill("1+", "<answer>", "1</answer>"), 0.0),
        "block of (": (fill("(", "<answer>", "</answer>"), 0.0),
        "block of words": (fill("the answer is 6 or ", "<answer>", "</answer>"), 0.0),
        "box of commas": (fill("1,", r"\boxed{", "}"), 0.0),
        r"box of \frac{": (r"\boxed{" + r"\frac{" * (size // 8) + "}" * (size // 8) + "}", 0.0),
        "box of ^": (fill("9^", r"\boxed{", "9}"), 0.0),
        "box of \\": (fill("\\\\", r"\boxed{", "}"), 0.0),
        "box of CJK": (fill("\u4e2d", r"\boxed{", "}"), 0.0),
        "box of lone surrogates": (fill("\ud800", r"\boxed{", "}"), 0.0),
    }


def timed(score, *arguments):
    """Return the wall-clock seconds of one call and what it returned, sympy's cache being empty at the start."""
    from sympy.core.cache import clear_cache

    clear_cache()
    start = time.perf_counter()
    result = score(*arguments)
    return time.perf_counter() - start, result


def swift_accuracy():
    """Return ms-swift's ``accuracy`` as a function of texts and golds. The import takes long."""
    from swift.rewards.orm import MathAccuracy

    accuracy = MathAccuracy()
    return lambda texts, golds: accuracy(list(texts), solution=list(golds))


def trl_accuracy():
    """Return TRL's ``accuracy_reward`` as a function of texts and golds."""
    from trl.rewards import accuracy_reward

    return lambda texts, golds: accuracy_reward([[{"role": "assistant", "content": text}] for text in texts], golds)


class Ours:
    """A verifier whose workers have started and have graded a few rows that no corpus contains."""

    def __init__(self, workers: int):
        self.verifier = MathVerifier(workers=workers, timeout=TIMEOUT)
        rows = [(f"\\boxed{{\\ln {2 * n}}}", f"$\\ln {n} + \\ln 2$") for n in range(101, 101 + 32 * workers)]
        texts, golds = zip(*rows, strict=True)
        assert self(list(texts), list(golds)) == [1.0] * len(rows)

    def __call__(self, texts, golds):
        return [grade.reward for grade in self.verifier.grade_all(texts, golds)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.verifier.close()


class Cores:
    """Pin this process, and the children it starts, to the first `count` of its cores."""

    def __init__(self, count: int):
        self.before = os.sched_getaffinity(0)
        self.now = set(sorted(self.before)[:count])

    def __enter__(self):
        os.sched_setaffinity(0, self.now)

    def __exit__(self, *_):
        os.sched_setaffinity(0, self.before)


def compare(make, baseline, rounds: int, two_cores: bool = False) -> dict:
    """Time both alternately, each round on a new corpus; count right and wrong answers that each credits."""
    times = {name: [] for name in ("baseline", "ours", "ours again", "ours, 2 cores")}
    counts = dict.fromkeys(("right", "wrong", "right baseline", "right ours", "wrong baseline", "wrong ours"), 0)
    lost, characters = [], []
    for round_number in range(rounds):
        texts, golds, rewards = make(1 + round_number)
        characters += map(len, texts)
        results = {}

        def run_baseline(texts=texts, golds=golds, results=results):
            with Cores(1):
                seconds, results["baseline"] = timed(baseline, texts, golds)
            times["baseline"].append(seconds)

        def run_ours(texts=texts, golds=golds, results=results):
            with Cores(1), Ours(workers=1) as ours:
                seconds, results["ours"] = timed(ours, texts, golds)
                times["ours"].append(seconds)
                times["ours again"].append(timed(ours, texts, golds)[0])
            if two_cores:
                with Cores(2), Ours(workers=2) as ours:
                    times["ours, 2 cores"].append(timed(ours, texts, golds)[0])

        turns = [run_baseline, run_ours]
        for run in turns if round_number % 2 == 0 else turns[::-1]:
            run()
        for text, gold, reward, theirs, mine in zip(
            texts, golds, rewards, results["baseline"], results["ours"], strict=True
        ):
            name = "right" if reward else "wrong"
            counts[name] += 1
            counts[f"{name} baseline"] += theirs == 1.0
            counts[f"{name} ours"] += mine == 1.0
            if reward and theirs == 1.0 and mine != 1.0:
                lost.append(f"gold {gold}: ...{text[-60:]}")
    median = {name: statistics.median(values) for name, values in times.items() if values}
    return {
        "per_second": {name: round(len(rewards) / seconds) for name, seconds in median.items()},
        "ratio": {name: round(median["baseline"] / s, 2) for name, s in median.items() if name != "baseline"},
        "credited": counts,
        "lost": lost,
        "characters": [min(characters), max(characters)],
    }


def grade_towers(cores: int) -> dict:
    texts, golds, rewards = make_towers(1)
    with Cores(cores), Ours(workers=cores) as ours:
        seconds, results = timed(ours, texts, golds)
    normal = [result for result, reward in zip(results, rewards, strict=True) if reward]
    towers = [result for result, reward in zip(results, rewards, strict=True) if not reward]
    return {
        "seconds": round(seconds, 2),
        "normal_not_credited": sum(r != 1.0 for r in normal),
        "towers_not_zero": sum(r != 0.0 for r in towers),
    }


def worst_cases(repeats: int = 3) -> dict:
    """Return the longest timing of each hostile completion in seconds, and those with a wrong reward."""
    seconds, wrong = {}, []
    with Cores(1):
        for name, (text, reward) in hostile_completions().items():
            with Ours(workers=1) as ours:
                runs = [timed(ours, [text], ["5"]) for _ in range(repeats)]
            seconds[name] = round(max(run[0] for run in runs), 4)
            if any(result != [reward] for _, result in runs):
                wrong.append(name)
    return {"seconds": seconds, "wrong": wrong}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="timings of each scorer on each kind (default: 3)")
    rounds = parser.parse_args().rounds
    logging.disable(logging.WARNING)  # math_verify reports each of its timeouts
    cores = min(2, len(os.sched_getaffinity(0)))

    swift, trl = swift_accuracy(), trl_accuracy()
    speed = {
        "boxed": compare(lambda seed: make_corpus(seed, tags=False), swift, rounds),
        "answer tags": compare(lambda seed: make_corpus(seed, tags=True), swift, rounds),
        "expressions": compare(make_expressions, trl, rounds, two_cores=cores == 2),
        "sympy only": compare(lambda seed: make_expressions(seed, hard=True), trl, rounds, two_cores=cores == 2),
    }
    towers = grade_towers(cores)
    worst = worst_cases()

    ratios = {
        "boxed": speed["boxed"]["ratio"]["ours"],
        "answer tags": speed["answer tags"]["ratio"]["ours"],
        "expressions, 1 core": speed["expressions"]["ratio"]["ours"],
        "expressions, 2 cores": speed["expressions"]["ratio"].get("ours, 2 cores"),
        "sympy only, 1 core": speed["sympy only"]["ratio"]["ours"],
        "sympy only, 2 cores": speed["sympy only"]["ratio"].get("ours, 2 cores"),
    }
    print(f"{'':<14}{'completions a second':>46}{'right credited':>24}{'wrong credited':>18}")
    print(
        f"{'':<14}{'baseline':>10}{'ours':>10}{'again':>10}{'2 cores':>16}{'of':>8}{'baseline':>10}{'ours':>6}", end=""
    )
    print(f"{'baseline':>12}{'ours':>6}")
    for name, row in speed.items():
        rate, count = row["per_second"], row["credited"]
        print(
            f"{name:<14}{rate['baseline']:>10,}{rate['ours']:>10,}{rate['ours again']:>10,}"
            f"{rate.get('ours, 2 cores', '-'):>16}{count['right']:>8}{count['right baseline']:>10}"
            f"{count['right ours']:>6}{count['wrong baseline']:>12}{count['wrong ours']:>6}"
        )
    print(f"\n{'times the baseline (first call)':<34}{'is':>8}{'asked':>8}")
    for name, figure in FIGURES.items():
        print(f"{name:<34}{'-' if ratios[name] is None else ratios[name]:>8}{figure:>8}")
    print(f"\n64 power towers among 64 ordinary answers: {towers['seconds']} s", end="")
    print(f", {towers['normal_not_credited']} ordinary answers not credited")
    print(f"\n{'1 MB of':<32}{'ms':>10}")
    for name, seconds in sorted(worst["seconds"].items(), key=lambda item: -item[1]):
        print(f"{name:<32}{seconds * 1000:>10.1f}")

    missed = [f"{name}: needs two cores" for name, ratio in ratios.items() if ratio is None]
    missed += [
        f"{name}: ratio {r} < {FIGURES[name]}" for name, r in ratios.items() if r is not None and r < FIGURES[name]
    ]
    for name, row in speed.items():
        if row["lost"]:
            missed.append(f"{name}: {len(row['lost'])} right answers that the baseline credits, e.g. {row['lost'][0]}")
        if row["credited"]["wrong ours"]:
            missed.append(f"{name}: {row['credited']['wrong ours']} wrong answers credited")
    if towers["seconds"] >= TOWERS_S:
        missed.append(f"towers: {towers['seconds']} s >= {TOWERS_S} s")
    if towers["normal_not_credited"] or towers["towers_not_zero"]:
        missed.append(
            f"towers: {towers['normal_not_credited']} ordinary answers and {towers['towers_not_zero']} towers misgraded"
        )
    missed += [f"1 MB of {name}: {s} s >= {WORST_S} s" for name, s in worst["seconds"].items() if s >= WORST_S]
    missed += [f"1 MB of {name}: wrong reward" for name in worst["wrong"]]
    print()
    result = {"benchmark": "math", "speed": speed, "ratios": ratios, "towers": towers, "worst": worst, "missed": missed}
    print(json.dumps(result, ensure_ascii=True))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
