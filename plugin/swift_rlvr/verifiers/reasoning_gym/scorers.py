"""Is an answer right? reasoning-gym's scorer of the task says so, except where it is unsafe or
wrong: then ours does.

Each is `scorer(answer, entry, theirs) -> float` for an answer without white space around it;
`entry` has question, answer and metadata; `theirs` is the dataset of reasoning-gym. docs/rewards/reasoning_gym.md says
what is wrong with each of theirs, and `tests/verifiers/reasoning_gym/test_scorers.py` shows it.
"""

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from itertools import chain
from typing import Any

from swift_rlvr.verifiers.countdown import verify
from swift_rlvr.verifiers.mathematics.formulas import is_antiderivative, same_polynomial

Entry = Mapping[str, Any]
Scorer = Callable[[str, Entry, Any], float]

# A block of Markdown, or a text between two equal marks that it does not hold itself.
_WRAPPED = re.compile(
    r"\s*(?:```\w*\n((?:(?!```).)*?)\n?```|(\*\*|[`$\"])((?:(?!\2).)+)\2)\s*", re.DOTALL
)
# 12, -12.50, .5 and 1e-9; of bounded length, since 1e999999999 would fill the memory
_NUMBER = re.compile(
    r"[+-]?(?:\d{1,300}(?:\.\d{0,300})?|\.\d{1,300})(?:[eE][+-]?\d{1,3})?", re.ASCII
)
# 3 days, 04:05:06.789 and parts of it: 2 days, 4:05
_DURATION = re.compile(
    r"(?:(\d{1,7}) days?)?(?:,? ?(\d{1,3}):(\d\d)(?::(\d\d(?:\.\d{1,6})?))?)?", re.ASCII
)
# 3/4 and $\frac{3}{4}$
_ANY_FRACTION = re.compile(
    r"\$?\s*(?:\d+\s*/\s*\d+|\\d?frac\s*{\s*\d+\s*}\s*{\s*\d+\s*})\s*\$?", re.ASCII
)
_COMPLEX_NUMBER = re.compile(r"[0-9+\-.ijeEIJ() ]+")
# -3/4, 3 / 4
_FRACTION = re.compile(r"[+-]?\d{1,300}\s?/\s?\d{1,300}", re.ASCII)


def without_wrapping(answer: str) -> str:
    r"""An answer out of what models put around all of it: a block of Markdown, bold, code, dollars, quotes.

    >>> without_wrapping("```text\n1 2\n3 4\n```"), without_wrapping("**$7$**"), without_wrapping('"a" or "b"')
    ('1 2\n3 4', '7', '"a" or "b"')
    """
    while match := _WRAPPED.fullmatch(answer):
        block, _, inner = match.groups()
        answer = block if block is not None else inner
    return answer


def number(text: object) -> Decimal | None:
    """The number that a text is, or None; a finite one of at most 300 digits and an exponent of
    three.

    >>> number("-12.50"), number("nan"), number("1e9999"), number("2**9")
    (Decimal('-12.50'), None, None, None)
    """
    if not isinstance(text, str):
        return None
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        return None
    return Decimal(text)


def numbers(texts: list[str]) -> list[Decimal] | None:
    """All of them as numbers, or None."""
    values = []
    for text in texts:
        value = number(text)
        if value is None:
            return None
        values.append(value)
    return values


def json_list(text: str) -> list | None:
    """The list that a text is as JSON, or as a Python list of texts in single quotes; or None.

    >>> json_list('[1, "a"]'), json_list("['a', 'b']"), json_list('{"a": 1}'), json_list("__import__('os')")
    ([1, 'a'], ['a', 'b'], None, None)
    """
    for as_json in (text, text.replace("'", '"')):
        try:
            value = json.loads(as_json)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, list) else None
    return None


def _expression(target: Callable[[Entry], int]) -> Scorer:
    """For tasks whose answer is an expression over given numbers.

    Theirs runs what a policy writes, in sympy's parser. That of puzzle24 compares with no given
    number and rounds to a whole one.
    """

    def score(answer: str, entry: Entry, theirs: Any) -> float:
        verdict = verify(f"<answer>{answer}</answer>", entry["metadata"]["numbers"], target(entry))
        return verdict.reward or 0.0

    return score


def integration(answer: str, entry: Entry, theirs: Any) -> float:
    """Theirs runs what a policy writes, in sympy's parser, and then a simplification that may take
    minutes.
    """
    metadata = entry["metadata"]
    return float(is_antiderivative(answer, metadata["integrand"], metadata["variable"]))


def polynomial_equations(answer: str, entry: Entry, theirs: Any) -> float:
    """Theirs leaves out what is no number, so that any text is right where there is no solution."""
    written = entry["answer"].strip('"').split(", ")
    gold = sorted(Decimal(text) for text in written if text)
    if not gold:
        return float(answer == '""')
    values = numbers(answer.split(","))
    if values is None or len(values) != len(gold):
        return 0.0
    # The question rounds to four places, and says of a 5 both up and down.
    pairs = zip(sorted(values), gold, strict=True)
    return float(all(abs(value - expected) <= Decimal("0.0001") for value, expected in pairs))


def _listed(partial: float, write: Callable[[list], str]) -> Scorer:
    """For tasks whose answer may also be a list, which is worth `partial`; `write` writes a list as
    the gold is written.

    Theirs evaluates an answer that is not the gold, to see whether it is the same as a Python list.
    """

    def score(answer: str, entry: Entry, theirs: Any) -> float:
        # A board of n_queens has several solutions, and its row lists them.
        golds = entry["metadata"].get("valid_answers") or [entry["answer"]]
        if answer in golds:
            return 1.0
        values = json_list(answer)
        if values is None:
            return 0.0
        try:
            return partial if write(values) in golds else 0.0
        except TypeError:  # not lists of lists, or not of texts
            return 0.0

    return score


def _rows(matrix: list) -> str:
    return "\n".join([_spaced(row) for row in matrix])


def _spaced(values: list) -> str:
    return " ".join(map(str, values))


def number_sorting(answer: str, entry: Entry, theirs: Any) -> float:
    """Theirs lets each number be off by 1."""
    values = json_list(answer)
    gold = json_list(entry["answer"])
    if values is None or gold is None:
        return 0.0
    # JSON has read them as numbers, or as texts that are numbers.
    texts = []
    for value in values:
        is_number = type(value) in (int, float)
        texts.append(str(value) if is_number else value)
    answered = numbers(texts)
    return float(answered is not None and answered == numbers(gold))


def bitwise_arithmetic(answer: str, entry: Entry, theirs: Any) -> float:
    """Theirs evaluates the problem of the row, which may be from anyone's file."""
    try:
        return float(len(answer) < 1000 and int(answer, 0) == int(entry["answer"], 0))
    except ValueError:
        return 0.0


def _only(is_right: Callable[[str, Entry], bool]) -> Scorer:
    """Their scorer, whose full score counts only where the answer is right by ours.

    Theirs takes an answer that goes on after the right one, and so several of which one is right.
    """

    def score(answer: str, entry: Entry, theirs: Any) -> float:
        their_score = theirs.score_answer(answer, entry)
        if their_score < 1 or is_right(answer, entry):
            return their_score
        return 0.0

    return score


def _checked(is_readable: Callable[[str], bool]) -> Scorer:
    """Their scorer, for answers that it should be asked about.

    Theirs takes what it should refuse to read: nan for a number, a turn a billion times, several
    answers in one.
    """

    def score(answer: str, entry: Entry, theirs: Any) -> float:
        if not is_readable(answer):
            return 0.0
        return theirs.score_answer(answer, entry)

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
    value = number(answer.replace(",", "").removeprefix("$"))
    return float(value is not None and value == number(entry["answer"]))


def coin_flip(answer: str, entry: Entry, theirs: Any) -> float:
    """Theirs takes 0 for right where the probability begins with it or is small; 1e999999999 fills
    its memory.
    """
    gold = Fraction(entry["answer"])
    value: Decimal | Fraction | None = number(answer)
    if value is None and _FRACTION.fullmatch(answer):
        numerator, _, denominator = answer.partition("/")
        if int(denominator):
            value = Fraction(int(numerator), int(denominator))
    if value is None:
        return 0.0
    # A fixed tolerance would take 0 for a small probability.
    tolerance = min(Fraction(1, 10_000), gold / 100)
    return float(abs(Fraction(value) - gold) <= tolerance)


def decimal_arithmetic(answer: str, entry: Entry, theirs: Any) -> float:
    """Theirs asks for 12 digits and takes what is off by 0.001, such as 0 for a small result."""
    value = number(answer)
    gold = number(entry["answer"])
    if value is None or gold is None:
        return 0.0
    return float(abs(value - gold) <= abs(gold) * Decimal("1e-9"))


def pool_matrix(answer: str, entry: Entry, theirs: Any) -> float:
    """Theirs takes what is off by 1%, and reads numbers such as nan."""
    try:
        rows = _matrix(answer)
        golds = _matrix(entry["answer"])
    except InvalidOperation:
        return 0.0
    if [len(row) for row in rows] != [len(row) for row in golds]:
        return 0.0
    values = list(chain.from_iterable(rows))
    # nan and inf, and numbers whose difference takes very long
    if not all(value.is_finite() and abs(value.adjusted()) < 100 for value in values):
        return 0.0
    pairs = zip(values, chain.from_iterable(golds), strict=True)
    is_right = all(abs(value - gold) <= Decimal("0.01") for value, gold in pairs)
    return 1.0 if is_right else 0.1


def _matrix(text: str) -> list[list[Decimal]]:
    rows: list[list[Decimal]] = []
    for line in text.split("\n"):
        rows.append([Decimal(word) for word in line.split()])
    return rows


def halting(answer: str, entry: Entry, theirs: Any) -> float:
    """Theirs compares bool("False") with bool("True"): any text is right."""
    return float(answer.lower() == entry["answer"].lower())


def multiplication(answer: str, entry: Entry, theirs: Any) -> float:
    """Theirs runs what a policy writes, in sympy's parser."""
    return float(same_polynomial(answer, entry["answer"]))


def knights_knaves(answer: str, entry: Entry, theirs: Any) -> float:
    """Theirs looks for names and roles, and passes over any other word: "not Emma is a sage" is that
    she is one, and so is "if Emma is a sage then ...", copied from the question.
    """
    terms = entry["metadata"]["knight_knave_terms"]
    roles = "|".join(re.escape(terms[term]) for term in ("knight", "knave"))
    claim = rf"\w+\s+is\s+(?:an?\s+)?(?:{roles})"
    # "So Emma is a sage, and Liam is a fool."
    claims = (
        rf"(?:(?:so|thus|hence|therefore)\b[,:\s]*)?{claim}(?:[.,\s]+(?:and\s+)?{claim})*[.\s]*"
    )
    if not re.fullmatch(claims, answer, re.IGNORECASE):
        return 0.0
    return theirs.score_answer(answer, entry)


def _has_short_moves(answer: str) -> bool:
    # a turn a billion times, U1000000000, never ends
    return not re.search(r"\d{3}", answer)


def _is_the_duration(answer: str, entry: Entry) -> bool:
    # 04:05 and 4:05:00 are one
    duration = _duration(answer)
    gold = _duration(entry["answer"])
    return gold is not None and duration == gold


SCORERS: dict[str, Scorer] = {
    "binary_matrix": _listed(0.1, _rows),
    "bitwise_arithmetic": bitwise_arithmetic,
    "coin_flip": coin_flip,
    "complex_arithmetic": _checked(lambda answer: _COMPLEX_NUMBER.fullmatch(answer) is not None),
    "countdown": _expression(lambda entry: entry["metadata"]["target"]),
    "decimal_arithmetic": decimal_arithmetic,
    "figlet_font": _only(
        lambda answer, entry: answer.replace(" ", "").lower() == entry["answer"].strip().lower()
    ),
    "fraction_simplification": _only(
        lambda answer, entry: _ANY_FRACTION.fullmatch(answer) is not None
    ),
    "game_of_life": _only(lambda answer, entry: json_list(answer) == json_list(entry["answer"])),
    "game_of_life_halting": halting,
    "gsm_symbolic": gsm_symbolic,
    "intermediate_integration": integration,
    "knights_knaves": knights_knaves,
    "letter_jumble": _only(
        lambda answer, entry: answer.lower().split() == entry["answer"].lower().split()
    ),
    "n_queens": _listed(0.5, _rows),
    "number_sorting": number_sorting,
    "polynomial_equations": polynomial_equations,
    "polynomial_multiplication": multiplication,
    "pool_matrix": pool_matrix,
    "puzzle24": _expression(lambda entry: 24),
    # Theirs reads the letters A to C of any text.
    "quantum_lock": _checked(lambda answer: re.fullmatch(r"[A-Ca-c\s,>→-]+", answer) is not None),
    "rubiks_cube": _checked(_has_short_moves),
    "rush_hour": _checked(_has_short_moves),
    "simple_integration": integration,
    "sokoban": _checked(lambda answer: set(answer) <= set("UDLR")),
    "spiral_matrix": _listed(0.1, _spaced),
    "string_insertion": _listed(0.1, "".join),
    "time_intervals": _only(_is_the_duration),
    "word_sorting": _only(
        lambda answer, entry: re.split(r",\s*", answer) == entry["metadata"]["sorted_words"]
    ),
}
"""Tasks that are scored by us."""
