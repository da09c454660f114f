"""Rows of our own for `bench_verifiers.py --own`: what public data lack, and what no verifier should choke on.

`algebra`: pairs that only algebra can tell apart. `towers`: power towers among ordinary answers, which cost a verifier
that evaluates them its whole time limit. `hostile`: completions of 1 MB.
"""

import random

from verifier_data import Row


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


def algebra_rows(seed: int = 1, size: int = 250) -> list[Row]:
    """Return that many rows, 60% of them right; no gold and no answer occurs twice."""
    rng, seen, rows = random.Random(seed), set(), []
    while len(rows) < size:
        is_right = rng.random() < 0.6
        gold, right, wrong = make_algebra(rng)
        answer = right if is_right else wrong
        if gold not in seen and answer not in seen:
            seen |= {gold, answer}
            completion = f"We simplify and find the following.\n\n\\boxed{{{answer}}}"
            rows.append(Row(f"${gold}$", completion, is_right, "algebra", f"algebra:{len(rows) + 1}"))
    return rows


def tower_rows(seed: int = 1, count: int = 16) -> list[Row]:
    """Return `count` power towers, all wrong, and as many ordinary right answers, alternating."""
    rng = random.Random(seed)
    towers = [f"{a}^{{{b}^{{{c}^{{{d}}}}}}}" for a in (7, 8, 9) for b in (7, 8, 9) for c in (7, 8, 9) for d in (8, 9)]
    towers += [f"{a}^{{{a}^{{{a}}}}} + {k}" for k, a in enumerate((97, 98, 99))]
    towers += [f"\\frac{{9^{{9^{{9^{{9}}}}}}}}{{{k}^{{{k}^{{{k}^{{{k}}}}}}}}}" for k in (5, 6, 7)]
    towers += ["(10^{10})!", "((99!)!)!", "\\binom{10^{12}}{10^{11}}", "2^{3^{4^{5^{6}}}} \\bmod 7 + 9^{9^{9^{9}}}"]
    rows = []
    for tower in rng.sample(towers, count):
        n, gold = rng.randint(2, 10**6), rng.randint(2, 10**6)
        rows.append(Row(str(n), f"It is $\\boxed{{{n}}}$.", True, "ordinary", f"towers:{len(rows) + 1}"))
        rows.append(Row(str(gold), f"It is $\\boxed{{{tower}}}$.", False, "towers", f"towers:{len(rows) + 1}"))
    return rows


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
