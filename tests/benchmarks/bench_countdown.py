"""How fast the Countdown reward is beside the one of the Countdown experiment, and its slowest
completions.

Speed: 2,000 completions of 200 to 1,500 characters, once with single-line answers and once with
half of the answers on lines of their own; for each, 250 tasks with a group of 8 completions and
2,000 tasks with 1. The reward is called as ms-swift calls it, with a `GradeLog`, so that every
reward is computed with its reason. Beside it runs ms-swift's CountdownORM. Both are timed in
processor time, one after the other in each round; the ratio is the median of the rounds' ratios, so
that other work on the machine disturbs it less. Only the shapes of expressions are kept from call
to call: "warm" is the state of a training run, in which nearly all shapes have been seen; "cold"
empties that cache before each timing. Worst cases: the longest of five timings for each 1 MB
completion.

Usage: PYTHONPATH=plugin python tests/benchmarks/bench_countdown.py [--rounds 21]
Prints a table and, last, one line of JSON. Exits 1 where a figure is missed.
"""

import argparse
import json
import random
import re
import statistics
import sys
import time
from fractions import Fraction

from swift_rlvr.rewards.countdown import CountdownReward
from swift_rlvr.runs.grade_log import GradeLog
from swift_rlvr.verifiers.countdown import arithmetic

# Times the speed of CountdownORM, warm, at least. On a busy machine both ratios come out about a
# tenth lower.
FIGURES = {"single-line": 2.0, "half multi-line": 1.0}
GROUPS = (8, 1)  # completions a task
WORST_MS = 50.0
OPERATIONS = {
    "+": Fraction.__add__,
    "-": Fraction.__sub__,
    "*": Fraction.__mul__,
    "/": Fraction.__truediv__,
}


def countdown_orm(completions, target, nums, **_):
    """The method of CountdownORM, which the Countdown experiment uses (README.md, Glossary); for
    comparison only.

    The first answer tag by regex, the part left of "=", its digits compared with nums, a character
    filter, then eval with a tolerance. It credits ``7 // 2``, hangs on ``9**9**9`` and misses
    answers that contain a line break.
    """
    rewards = []
    for completion, goal, given in zip(completions, target, nums, strict=True):
        try:
            match = re.search(r"<answer>(.*?)<\/answer>", completion)
            if match is None:
                rewards.append(0.0)
                continue
            equation = match.group(1).strip()
            if "=" in equation:
                equation = equation.split("=")[0]
            if sorted(int(number) for number in re.findall(r"\d+", equation)) != sorted(given):
                rewards.append(0.0)
                continue
            if not re.match(r"^[\d+\-*/().\s]+$", equation):
                rewards.append(0.0)
                continue
            result = eval(equation, {"__builtins__": None}, {})
            rewards.append(1.0 if abs(float(result) - float(goal)) < 1e-5 else 0.0)
        except Exception:
            rewards.append(0.0)
    return rewards


def random_expression(rng: random.Random, numbers: list[int]) -> tuple[str, Fraction, str]:
    """Return an expression over the numbers in a random order, its exact value and its last
    operator, if any.
    """
    if len(numbers) == 1:
        return str(numbers[0]), Fraction(numbers[0]), ""
    numbers = rng.sample(numbers, len(numbers))
    cut = rng.randrange(1, len(numbers))
    left, a, left_operator = random_expression(rng, numbers[:cut])
    right, b, right_operator = random_expression(rng, numbers[cut:])
    even = b != 0 and (a % b == 0 or rng.random() < 0.05)
    operator = rng.choice("+-*/" if even else "+-*")
    if left_operator in ("+", "-") and operator in "*/":
        left = f"({left})"
    if right_operator and (operator in "*/" or (operator == "-" and right_operator in "+-")):
        right = f"({right})"
    return f"{left} {operator} {right}", OPERATIONS[operator](a, b), operator


def make_corpus(seed: int, multi_line_share: float, tasks: int = 250, group: int = 8):
    """Return completions, nums, target and the right rewards. 55% are right; most others are slips
    in arithmetic.
    """
    rng = random.Random(seed)
    completions, nums, target, gold = [], [], [], []
    for _ in range(tasks):
        given = [rng.randint(1, 99) for _ in range(rng.choice((3, 4)))]
        answer, value, _ = random_expression(rng, given)
        while value.denominator != 1 or not 1 <= value <= 200:
            answer, value, _ = random_expression(rng, given)
        goal = int(value)
        for _ in range(group):
            kind = rng.choices(("right", "value", "numbers", "none"), (55, 34, 8, 3))[0]
            written, reward = answer, 1.0
            if kind == "value":
                written, other, _ = random_expression(rng, given)
                reward = float(other == goal)
            elif kind == "numbers":
                written, _, _ = random_expression(rng, [*given[:-1], given[-1] + rng.randint(1, 9)])
                reward = 0.0
            if rng.random() < 0.3:
                written = written.replace(" ", "")
            if rng.random() < 0.7:
                written += f" = {goal}"
                # With "=" a wrong value is a false equation as well; the reward is the same.
            multi_line = rng.random() < multi_line_share
            written = f"\n{written}\n" if multi_line else rng.choice(("{}", " {} ")).format(written)
            lines, length = ["<think>"], max(rng.randint(200, 1500) - len(written) - 30, 170)
            while sum(map(len, lines)) + len(lines) < length:
                trial, result, _ = random_expression(rng, given)
                lines.append(
                    f"Let me try {trial} = {float(result):.4g}, which is {'too low' if result < goal else 'not it'}."
                )
            thought = "\n".join(lines)[:length] + "\n</think>\n"
            completions.append(
                thought
                + ("So the answer is clear." if kind == "none" else f"<answer>{written}</answer>")
            )
            nums.append(given)
            target.append(goal)
            gold.append(0.0 if kind == "none" else reward)
    return completions, nums, target, gold


def seconds(score, corpus) -> float:
    completions, nums, target, _ = corpus
    start = time.process_time()
    score(completions, nums=nums, target=target)
    return time.process_time() - start


def compare(multi_line_share: float, group: int, rounds: int) -> dict:
    """Time both rewards on one corpus, and count how often each differs from the right rewards."""
    corpus = make_corpus(1, multi_line_share, 2000 // group, group)
    reward = CountdownReward()
    times: dict[str, list[float]] = {"countdown_orm": [], "cold": [], "warm": []}
    for _ in range(rounds):
        times["countdown_orm"].append(seconds(countdown_orm, corpus))
        arithmetic._parse_shape.cache_clear()
        for state in ("cold", "warm"):
            reward.log = GradeLog()
            times[state].append(seconds(reward, corpus))

    def ratio(state: str) -> float:
        pairs = zip(times["countdown_orm"], times[state], strict=True)
        return round(statistics.median(theirs / ours for theirs, ours in pairs), 2)

    completions, nums, target, gold = corpus
    lengths = [len(completion) for completion in completions]
    return {
        "per_second": {
            name: round(len(gold) / statistics.median(values)) for name, values in times.items()
        },
        "ratio": ratio("warm"),
        "ratio_cold": ratio("cold"),
        "wrong": sum(
            a != b for a, b in zip(reward(completions, nums=nums, target=target), gold, strict=True)
        ),
        "wrong_countdown_orm": sum(
            a != b for a, b in zip(countdown_orm(completions, target, nums), gold, strict=True)
        ),
        "characters": [min(lengths), max(lengths)],
    }


def nasty_completions(size: int = 1_000_000) -> dict[str, str]:
    """Completions of `size` characters that are built to be slow to search, to match or to
    evaluate.
    """
    units = [
        "(",
        "<answer>",
        "</answer><answer>",
        "<answer",
        "</answer",
        "</think>",
        "<",
        "we try 1 + 2 = 3, ",
    ]
    texts = {unit: unit * (size // len(unit)) for unit in units}
    for unit in ("(", "1+", "9", "9**", " ", "= ", "<answer>", "\\frac{", "×", "\ud800", "１"):
        texts[f"block of {unit!a}"] = f"<answer>{unit * (size // len(unit))}</answer>"
    blocks = {
        "fractions": f"1+2+3={'+'.join(f'1/{n}' for n in range(800, 935))}",
        "quotient": f"1+2+3={'/'.join(['7', '9'] * 254)}",
        "product": f"1+2+3={'*'.join(['99999'] * 165)}",
        "depth": f"{'(' * 509}1+2+3{')' * 509}",
        "signs": f"1+2+3{'--3' * 300}",
        "\\frac": "\\frac{" * 170,
        "= =": f"1+2+3{'=6' * 500}",
        "spaces": f"1+2+3={' ' * (size // 2)}6.0",
    }
    return texts | {
        f"longest block: {name}": f"<answer>{text}</answer>".rjust(size, "x")
        for name, text in blocks.items()
    }


def worst_cases() -> dict[str, float]:
    """Return the longest of five timings in milliseconds for each nasty completion, the shape cache
    being empty.
    """
    reward, result = CountdownReward(), {}
    for name, text in nasty_completions().items():
        times = []
        for _ in range(5):
            arithmetic._parse_shape.cache_clear()
            start = time.process_time()
            reward([text], nums=[[1, 2, 3]], target=[6])
            times.append(time.process_time() - start)
        result[name] = round(max(times) * 1000, 2)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--rounds", type=int, default=21, help="timings of each scorer on each corpus (default: 21)"
    )
    rounds = parser.parse_args().rounds
    shares = {"single-line": 0.0, "half multi-line": 0.5}
    speed = {
        f"{name}, {group} a task": compare(share, group, rounds)
        for name, share in shares.items()
        for group in GROUPS
    }
    worst = worst_cases()

    heads = ("CountdownORM/s", "warm/s", "ratio", "cold/s", "ratio", "wrong: CountdownORM", "ours")
    widths = (16, 12, 8, 12, 8, 21, 6)
    print(
        f"{'2,000 completions':<27}"
        + "".join(f"{head:>{width}}" for head, width in zip(heads, widths, strict=True))
    )
    for name, row in speed.items():
        rates = row["per_second"]
        print(
            f"{name:<27}{rates['countdown_orm']:>16,}{rates['warm']:>12,}{row['ratio']:>8}{rates['cold']:>12,}"
            f"{row['ratio_cold']:>8}{row['wrong_countdown_orm']:>21}{row['wrong']:>6}"
        )
    print(f"\n{'1 MB of':<32}{'ms':>8}")
    for name, milliseconds in sorted(worst.items(), key=lambda item: -item[1]):
        print(f"{name:<32}{milliseconds:>8.2f}")
    missed = [
        f"{name}: ratio {row['ratio']} < {FIGURES[name.split(',')[0]]}"
        for name, row in speed.items()
        if row["ratio"] < FIGURES[name.split(",")[0]]
    ]
    missed += [
        f"{name}: {row['wrong']} wrong rewards" for name, row in speed.items() if row["wrong"]
    ]
    missed += [
        f"{name}: {value} ms >= {WORST_MS} ms" for name, value in worst.items() if value >= WORST_MS
    ]
    print()
    print(
        json.dumps(
            {"benchmark": "countdown", "speed": speed, "worst_ms": worst, "missed": missed},
            ensure_ascii=True,
        )
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
