r"""Compares two mathematical answers with math_verify and sympy.

A comparison may take forever or all memory, so this runs in `worker.py`'s processes, which are killed at a deadline.
math_verify (https://github.com/huggingface/Math-Verify) decides. Three things around it save time:

- Where the text is one formula, math_verify's search for an answer, with its long regular expressions, is skipped. Its
  grammar, its clean-up of LaTeX and its comparison are used as they are.
- A formula is parsed in ANTLR's SLL mode first, and in the slower full LL mode only where that fails. Where SLL finds a
  parse, LL finds the same one (see PredictionMode in ANTLR's documentation), up to 20 times slower.
- Two expressions whose values differ clearly at one point never reach sympy's `simplify`, which would come to the same
  result in a hundred times the time.
"""

import re
from functools import lru_cache
from typing import Any

from antlr4.atn.PredictionMode import PredictionMode
from latex2sympy2_extended.latex2sympy2 import NormalizationConfig, _Latex2Sympy, normalize_latex
from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify
from math_verify.grader import get_pct_val, should_treat_as_complex
from math_verify.parser import get_last_eq
from sympy import Expr, I, Rational, Symbol, Union
from sympy.core.relational import Relational

from swift_rlvr.math_answers.reading import split_unit

NORMALIZATION = NormalizationConfig(
    basic_latex=True, units=True, malformed_operators=True, nits=True, boxed="all", equations=False
)
DECIMALS = 12  # places to which a decimal must agree with an expression; math_verify's 6 would accept 0.333333 for 1/3
ANCHORED = LatexExtractionConfig(boxed_match_priority=0, try_extract_without_anchor=False)
ANYWHERE = (LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig())
SIGNS = {"π": r"\pi ", "∞": r"\infty ", "×": r"\times ", "·": r"\cdot ", "÷": r"\div ", "≤": r"\leq ", "≥": r"\geq ",
         "∪": r"\cup ", "∩": r"\cap ", "∅": r"\emptyset ", r"\varnothing": r"\emptyset ", "∈": r"\in ", "√(": "sqrt(",
         "²": "^2", "³": "^3", "**": "^", "*": r"\cdot "}  # fmt: skip
NAMES = {"infinity": "infty", "inf": "infty"}
_ROOT = re.compile(r"(?<![\\A-Za-z])sqrt\s*\(([^()]*)\)|√\s*(\d+|[a-z])")
_NAME = re.compile(r"(?<![\\A-Za-z])(?:pi|infinity|inf|sin|cos|tan|log|ln|exp)(?![A-Za-z])")
_COLOR = re.compile(r"\\(?:text)?color\s*\{\w*\}")
_GREATER = re.compile(r">|\\geq?(?![A-Za-z])")
_LESS = re.compile(r"[<=]|\\leq?(?![A-Za-z])|\\in(?![A-Za-z])")
_TRIGONOMETRY = re.compile(r"\\(?:sin|cos|tan|cot|sec|csc)(?![A-Za-z])")
_HALF_RELATION = re.compile(r"\s*(?:\\(?:neq?|approx|sim|not|leq?|geq?)(?![A-Za-z])|[<>=≈≠~]|!=)")
_BARE_ROOT = re.compile(r"(\\sqrt\s*\[[^\[\]]{1,20}\])\s*(\w)")
_HIDDEN = re.compile(r"\\(?:[hv]?phantom|cancel|bcancel|xcancel|sout)(?![A-Za-z])")
_OR = re.compile(r"\s+or\s+|\\(?:lor|vee)(?![A-Za-z])|∨")
_INEQUALITY = re.compile(r"[<>≤≥]|\\[lg]eq?(?![A-Za-z])")


class _Parser(_Latex2Sympy):
    """latex2sympy in one of ANTLR's prediction modes."""

    def __init__(self, mode: int, **settings: bool):
        super().__init__(**settings)
        self.mode = mode

    def create_parser(self, latex_str: str) -> Any:
        parser = super().create_parser(latex_str)
        parser._interp.predictionMode = self.mode
        return parser


def prepare(text: str) -> str:
    r"""Rewrite common plain notations, and LaTeX that the grammar does not know, as LaTeX that it knows.

    >>> print(prepare("2*sqrt(5) + π"), prepare(r"2 > x > -1"), prepare(r"\varnothing"))
    2\cdot \sqrt{5} + \pi -1< x <2 \emptyset
    """
    text = split_unit(text)[0].lstrip("$€£¥₹").replace(" degrees", r"^{\circ}").replace(r"\not=", r"\neq ")
    text = _BARE_ROOT.sub(r"\1{\2}", text)
    for sign, latex in SIGNS.items():
        text = text.replace(sign, latex)
    text = _ROOT.sub(lambda match: rf"\sqrt{{{match[1] or match[2]}}}", text)
    text = _NAME.sub(lambda match: rf"\{NAMES.get(match[0], match[0])} ", text)
    text = _COLOR.sub("", text)
    parts, signs = _GREATER.split(text), _GREATER.findall(text)
    if len(signs) > 1 and not _LESS.search(text):  # the grammar knows only rising chains
        text = parts.pop()
        for part, sign in zip(reversed(parts), reversed(signs), strict=True):
            text += ("<" if sign == ">" else r"\leq ") + part
    return text.strip()


def parse_formula(text: str) -> list[Any]:
    """A text that is one formula, LaTeX or plain -> [sympy object], or [] where it cannot be parsed.

    >>> parse_formula("\\\\frac{x}{2}"), parse_formula("\\\\frac{"), parse_formula("\\\\neq 5")
    ([x/2], [], [])
    """
    text = prepare(text)
    if _HALF_RELATION.match(text) or _HIDDEN.search(text):
        return []
    if (parts := _OR.split(text, maxsplit=4))[1:] and all(map(_INEQUALITY.search, parts)):
        # `x < 1 or x > 2`: the set where one of several inequalities in one variable holds
        relations = [relation for part in parts for relation in parse_formula(part) if isinstance(relation, Relational)]
        symbols = set().union(*(relation.free_symbols for relation in relations))
        is_set = len(relations) == len(parts) and len(symbols) == 1
        return [Union(*(relation.as_set() for relation in relations))] if is_set else []
    latex = normalize_latex(text, NORMALIZATION)
    for formula in dict.fromkeys((latex, get_last_eq(latex))):
        is_complex = should_treat_as_complex(formula)
        in_degrees = r"\circ" in formula and _TRIGONOMETRY.search(formula) is not None
        for mode in (PredictionMode.SLL, PredictionMode.LL):
            try:
                parsed = _Parser(mode, is_real=not is_complex, convert_degrees=in_degrees).parse(formula)
                imaginary = {symbol: I for symbol in parsed.free_symbols if symbol.name == "i"} if is_complex else {}
                return [parsed.subs(imaginary) if imaginary else parsed]
            except Exception:  # the grammar, the conversion and sympy raise exceptions of any type
                continue
    return []


@lru_cache(maxsize=4096)
def parse_answer(text: str, how: str) -> tuple[Any, ...]:
    """The possible readings of an answer; none where nothing can be parsed.

    `how` is "formula" where the text is one formula. Else math_verify searches it for an answer: "text" anywhere,
    "anchored" only after "answer is", for a whole completion.
    """
    if how == "formula":
        return tuple(parse_formula(text))
    return tuple(parse(text, (ANCHORED,) if how == "anchored" else ANYWHERE, parsing_timeout=None))


def clearly_apart(gold: Any, answer: Any) -> bool:
    """Whether expressions in the same variables differ clearly at a positive point, where roots and logs are real."""
    for side in (gold, answer):
        if not isinstance(side, Expr) or isinstance(side, Symbol) or get_pct_val(side) is not None:
            return False
    names, others = (sorted(symbol.name for symbol in side.free_symbols) for side in (gold, answer))
    if names != others:
        return False
    place = {name: Rational(7 + 4 * n, 5 + 3 * n) for n, name in enumerate(names)}
    try:
        first, second = (
            complex(side.evalf(20, subs={symbol: place[symbol.name] for symbol in side.free_symbols}))
            for side in (gold, answer)
        )
    except (TypeError, ValueError, OverflowError, ArithmeticError):
        return False
    return abs(first - second) > 1e-4 * max(1.0, abs(first))  # nan compares as False


def equal(golds: tuple[Any, ...], answers: tuple[Any, ...]) -> bool:
    """Whether any reading of the answer equals any reading of the gold."""
    if golds and answers and clearly_apart(golds[0], answers[0]) and len(answers) == 1:
        return False
    options = {"timeout_seconds": None, "allow_set_relation_comp": True, "float_rounding": DECIMALS}
    return verify(list(golds), list(answers), **options)
