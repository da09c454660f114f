"""Is an answer right? reasoning-gym's scorer of the task says so, except where it is unsafe or
wrong: then ours does.

Each is `scorer(answer, entry, theirs) -> float` for an answer without white space around it;
`entry` has question, answer and metadata; `theirs` is the dataset of reasoning-gym. README.md says
what is wrong with each of theirs, and `tests/verifiers/reasoning_gym/test_scorers.py` shows it.
"""

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from swift_rlvr.verifiers.countdown import verify
from swift_rlvr.verifiers.mathematics.formulas import is_antiderivative, same_polynomial

Entry = Mapping[str, Any]
_NUMBER = re.compile(
    r"[+-]?(?:\d{1,300}(?:\.\d{0,300})?|\.\d{1,300})(?:[eE][+-]?\d{1,3})?", re.ASCII
)
_DURATION = re.compile(
    r"(?:(\d{1,7}) days?)?(?:,? ?(\d{1,3}):(\d\d)(?::(\d\d(?:\.\d{1,6})?))?)?", re.ASCII
)
_ANY_FRACTION = re.compile(
    r"\$?\s*(?:\d+\s*/\s*\d+|\\d?frac\s*{\s*\d+\s*}\s*{\s*\d+\s*})\s*\$?", re.ASCII
)
_FRACTION = re.compile(r"[+-]?\d{1,300}\s?/\s?\d{1,300}", re.ASCII)


def number(text: object) -> Decimal | None:
    """The number that a text is, or None; a finite one of at most 300 digits and an exponent of
    three.

    >>> number("-12.50"), number("nan"), number("1e9999"), number("2**9")
    (Decimal('-12.50'), None, None, None)
    """
    text = text.strip() if isinstance(text, str) else ""
    return Decimal(text) if _NUMBER.fullmatch(text) else None


def numbers(texts: list[str]) -> list[Decimal] | None:
    """All of them as numbers, or None."""
    values = [value for text in texts if (value := number(text)) is not None]
    return values if len(values) == len(texts) else None


def json_list(text: str) -> list | None:
    """The list that a text is as JSON, or as a Python list of texts in single quotes; or None."""
    for each in (text, text.replace("'", '"')):
        try:
            value = json.loads(each)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, list) else None
    return None


def _expression(target: Callable[[Entry], int]) -> Callable[[str, Entry, Any], float]:
    # sympy's parser runs what a policy writes. puzzle24 compares with no given number and rounds to
    # a whole one.
    def score(answer: str, entry: Entry, theirs: Any) -> float:
        return float(
            verify(f"<answer>{answer}</answer>", entry["metadata"]["numbers"], target(entry)).reward
            or 0.0
        )

    return score


def integration(answer: str, entry: Entry, theirs: Any) -> float:
    """Theirs runs what a policy writes, in sympy's parser, and then a simplification that may take
    minutes.
    """
    metadata = entry["metadata"]
    return float(is_antiderivative(answer, metadata["integrand"], metadata["variable"]))


def polynomial_equations(answer: str, entry: Entry, theirs: Any) -> float:
    """Theirs leaves out what is no number, so that any text is right where there is no solution."""
    gold = sorted(map(Decimal, filter(None, entry["answer"].strip('"').split(", "))))
    if not gold:
        return float(answer == '""')
    values = numbers(answer.split(","))
    if values is None or len(values) != len(gold):
        return 0.0
    # the question rounds to four places, and says of a 5 both up and down
    return float(
        all(
            abs(one - other) <= Decimal("0.0001")
            for one, other in zip(sorted(values), gold, strict=True)
        )
    )


def _listed(partial: float, write: Callable[[list], str]) -> Callable[[str, Entry, Any], float]:
    # evaluates an answer that is not the gold, to see whether it is the same as a Python list
    def score(answer: str, entry: Entry, theirs: Any) -> float:
        golds = entry["metadata"].get("valid_answers") or [entry["answer"]]
        if answer in golds:
            return 1.0
        listed = json_list(answer)
        try:
            return partial if listed is not None and write(listed) in golds else 0.0
        except TypeError:  # not lists of lists, or not of texts
            return 0.0

    return score


def _rows(matrix: list) -> str:
    return "\n".join(" ".join(str(value) for value in row) for row in matrix)


def number_sorting(answer: str, entry: Entry, theirs: Any) -> float:
    """Theirs lets each number be off by 1."""
    values, gold = json_list(answer), json_list(entry["answer"])
    if values is None or gold is None:
        return 0.0
    read = numbers([str(value) if type(value) in (int, float) else value for value in values])
    return float(read is not None and read == numbers(gold))


def bitwise_arithmetic(answer: str, entry: Entry, theirs: Any) -> float:
    """Theirs evaluates the problem of the row, which may be from anyone's file."""
    try:
        return float(len(answer) < 1000 and int(answer, 0) == int(entry["answer"], 0))
    except ValueError:
        return 0.0


def _only(is_right: Callable[[str, Entry], bool]) -> Callable[[str, Entry, Any], float]:
    # take an answer that goes on after the right one, and so several of which one is right
    def score(answer: str, entry: Entry, theirs: Any) -> float:
        score = theirs.score_answer(answer, entry)
        return score if score < 1 or is_right(answer, entry) else 0.0

    return score


def _duration(text: str) -> Decimal | None:
    """Seconds of what is written as 3 days, 04:05:06.789 or a part of it."""
    match = _DURATION.fullmatch(text)
    if not match or not any(match.groups()):
        return None
    days, hours, minutes, seconds = (Decimal(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


def gsm_symbolic(answer: str, entry: Entry, theirs: Any) -> float:
    """Theirs takes the first number of any text, without its sign."""
    value, gold = number(answer.replace(",", "").removeprefix("$")), number(entry["answer"])
    return float(value is not None and value == gold)


def coin_flip(answer: str, entry: Entry, theirs: Any) -> float:
    """Theirs takes 0 for right where the probability begins with it or is small; 1e999999999 fills
    its memory.
    """
    gold = Fraction(entry["answer"])
    value: Decimal | Fraction | None = number(answer)
    if value is None and _FRACTION.fullmatch(answer):
        numerator, _, denominator = answer.partition("/")
        value = Fraction(int(numerator), int(denominator)) if int(denominator) else None
    if value is None:
        return 0.0
    return float(abs(Fraction(value) - gold) <= min(Fraction(1, 10_000), gold / 100))


def decimal_arithmetic(answer: str, entry: Entry, theirs: Any) -> float:
    """Theirs asks for 12 digits and takes what is off by 0.001, such as 0 for a small result."""
    value, gold = number(answer), number(entry["answer"])
    return float(
        value is not None and gold is not None and abs(value - gold) <= abs(gold) * Decimal("1e-9")
    )


def pool_matrix(answer: str, entry: Entry, theirs: Any) -> float:
    """Theirs takes what is off by 1%, and reads numbers such as nan."""
    try:
        rows, golds = (
            [list(map(Decimal, line.split())) for line in text.split("\n")]
            for text in (answer, entry["answer"])
        )
    except InvalidOperation:
        return 0.0
    if [len(row) for row in rows] != [len(row) for row in golds]:
        return 0.0
    pairs = [
        pair for row, gold in zip(rows, golds, strict=True) for pair in zip(row, gold, strict=True)
    ]
    if not all(value.is_finite() and abs(value.adjusted()) < 100 for value, _ in pairs):
        return 0.0
    return 1.0 if all(abs(value - gold) <= Decimal("0.01") for value, gold in pairs) else 0.1


def _checked(is_readable: Callable[[str], bool]) -> Callable[[str, Entry, Any], float]:
    # take what they should refuse to read: nan for a number, a turn a billion times, several
    # answers in one
    return lambda answer, entry, theirs: (
        theirs.score_answer(answer, entry) if is_readable(answer) else 0.0
    )


def _has_short_moves(answer: str) -> bool:
    return not re.search(r"\d{3}", answer)


SCORERS: dict[str, Callable[[str, Entry, Any], float]] = {
    "binary_matrix": _listed(0.1, _rows),
    "bitwise_arithmetic": bitwise_arithmetic,
    "coin_flip": coin_flip,
    "complex_arithmetic": _checked(
        lambda answer: re.fullmatch(r"[0-9+\-.ijeEIJ() ]+", answer) is not None
    ),
    "countdown": _expression(lambda entry: entry["metadata"]["target"]),
    "decimal_arithmetic": decimal_arithmetic,
    "fraction_simplification": _only(
        lambda answer, entry: _ANY_FRACTION.fullmatch(answer) is not None
    ),
    "game_of_life": _only(lambda answer, entry: json_list(answer) == json_list(entry["answer"])),
    # Theirs compares bool("False") with bool("True"): any text is right.
    "game_of_life_halting": lambda answer, entry, theirs: float(
        answer.lower() == entry["answer"].lower()
    ),
    "gsm_symbolic": gsm_symbolic,
    "intermediate_integration": integration,
    "letter_jumble": _only(
        lambda answer, entry: answer.lower().split() == entry["answer"].lower().split()
    ),
    "n_queens": _listed(0.5, _rows),
    "number_sorting": number_sorting,
    "polynomial_equations": polynomial_equations,
    # Theirs runs what a policy writes, in sympy's parser.
    "polynomial_multiplication": lambda answer, entry, theirs: float(
        same_polynomial(answer, entry["answer"])
    ),
    "pool_matrix": pool_matrix,
    "puzzle24": _expression(lambda entry: 24),
    "rubiks_cube": _checked(_has_short_moves),
    "rush_hour": _checked(_has_short_moves),
    "simple_integration": integration,
    "sokoban": _checked(lambda answer: set(answer) <= set("UDLR")),
    "spiral_matrix": _listed(0.1, lambda values: " ".join(map(str, values))),
    "string_insertion": _listed(0.1, "".join),
    "time_intervals": _only(
        lambda answer, entry: _duration(answer) == _duration(entry["answer"]) is not None
    ),
    "word_sorting": _only(
        lambda answer, entry: re.split(r",\s*", answer) == entry["metadata"]["sorted_words"]
    ),
}
"""Tasks that are scored by us."""
