r"""Text of an answer -> one plain form of LaTeX: what does not change the meaning is removed or
written in one way.

`clean` keeps `\text{...}`, in which units and words stand; `tidy` puts its content in its place;
`plain` is for comparing how two answers are written.
"""

import re
import unicodedata
from functools import lru_cache, partial

_SIGN_NAMES = r"""
    µ μ − - – - ‐ - ‑ - ﹣ - × \times · \cdot ⋅ \cdot ∙ \cdot ÷ \div ≤ \leq ≥ \geq ⩽ \leq ⩾ \geq ≠ \neq ≈ \approx
    ≡ \equiv ∪ \cup ∩ \cap ∅ \emptyset ∈ \in ∞ \infty ± \pm ∓ \mp √ \sqrt π \pi θ \theta α \alpha β \beta γ \gamma
    λ \lambda μ \mu φ \phi ω \omega σ \sigma ρ \rho δ \delta ε \epsilon ∠ \angle △ \triangle ℝ \mathbb{R}
    ℤ \mathbb{Z} ℕ \mathbb{N} ∨ \lor ∧ \land ⟨ \langle ⟩ \rangle ⌊ \lfloor ⌋ \rfloor ⌈ \lceil ⌉ \rceil
    º ° ℃ °C ℉ °F 、 , 。 . ： : ； ; ′ ' ’ ' ∣ | “ " ” " 根号 \sqrt
"""
_SIGN_PAIRS = _SIGN_NAMES.split()
_SIGNS = dict(zip(_SIGN_PAIRS[::2], _SIGN_PAIRS[1::2], strict=True))
_SIGNS = {
    sign: f"{name} " if re.fullmatch(r"\\\w+", name) else name for sign, name in _SIGNS.items()
} | {"，": ", "}
_with_plain_signs = partial(
    re.compile("|".join(map(re.escape, _SIGNS))).sub, lambda match: _SIGNS[match[0]]
)
# full-width and mathematical letters, spaces
_WIDE = re.compile("[\uff00-\uffef\U0001d400-\U0001d7ff\u00a0\u2000-\u200a\u202f\u3000]+")
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ]+")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n")
_THOUSANDS = re.compile(r"(?<=\d),?(?:\\[!,]|\{,\}|~)\s*(?=\d{3}(?!\d))|(?<=\d)\{,\}(?=\d)")
_SPACING = re.compile(
    r"\\(?:left|right|middle|[bB]igg?[lrm]?|displaystyle|textstyle|scriptstyle|limits|nolimits|q?quad|enspace|thinspace"
    r"|therefore|boldsymbol|bf|rm|it)(?![A-Za-z])|(?<!\\)\\[,!;:> ]|(?<!\\)~|\\hspace\*?\{[^{}]*\}|\\phantom\{\s*\}"
)
_TEXT = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal|up)?|math(?:rm|bf|it|sf|tt|normal)|[mh]box|operatorname\*?|underline|pmb|bm|emph"
    r"|boxed|fbox)\s*\{([^{}]*)\}"
)
_COLOR = re.compile(r"\\(?:color|textcolor)\s*\{[^{}]*\}")
_FUNCTION_NAMES = """
    sin cos tan cot sec csc arcsin arccos arctan arccot arcsec arccsc sinh cosh tanh coth ln log lg exp gcd lcm
    min max det sgn sign mod arsinh arcosh artanh asin acos atan
"""
_FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_OTHER_NAMES = r"""
    \frac dfrac tfrac cfrac|\{ lbrace|\} rbrace|\leq leqslant leqq le|\geq geqslant geqq ge|\neq ne|< lt|> gt
    |\emptyset varnothing oslash|\lor vee|\land wedge|\setminus smallsetminus backslash|\mathbb{R} R reals|: colon
    |... ldots cdots dots|° degree|' prime|\binom dbinom tbinom
"""
_SAME_COMMANDS = dict.fromkeys((r"\mid", r"\vert", r"\lvert", r"\rvert"), "|")
for _command, *_names in map(str.split, _OTHER_NAMES.split("|")):
    _SAME_COMMANDS |= dict.fromkeys((f"\\{name}" for name in _names), _command)
_SAME_FORMS = (
    (re.compile(r"\\not\s*=(?![A-Za-z])"), r"\\neq "),
    (re.compile(r"\\bigcup(?![A-Za-z_])"), r"\\cup"),
    (re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\{?\s*\\circ(?![A-Za-z]))"), "°"),
    (re.compile(r"\^\s*\{\s*('+)\s*\}|\^\s*(')"), r"\1\2"),
)
_ESCAPED = re.compile(r"\\\\(?:\\\\|(?=[A-Za-z{}()\[\]%$]))")  # `\\frac`, as JSON writes it
_IN_GROUP = r"((?:[^{}]|\{[^{}]*\})*?)"
_OVER = re.compile(
    rf"\{{{_IN_GROUP}\\over(?![A-Za-z]){_IN_GROUP}\}}|^{_IN_GROUP}\\over(?![A-Za-z]){_IN_GROUP}$"
)
_QUOTED = re.compile(r"([\"'`]{1,3})(?:\w*\n)?([^\"'`]+)\1")
_JOINED_TEXT = re.compile("\0([^\0\1]*\\S)\\s+(and|or)\\s*\1")  # \\text{ cm and }
_LETTER_O = re.compile(r"(?<=\d)\s*\^\s*\{?\s*o\s*\}?$")  # 60^o
_DIGIT_GAP = re.compile(r"(?<=\d)\s+(?=\d)(?!\d{3}(?!\d))")
_ONE_IN_BRACES = re.compile(r"(?<=[\^_])\{\s*([A-Za-z0-9])\s*\}")
_MARKDOWN = re.compile(r"\*\*(?=\S)((?:[^*]|\*(?!\*))*?\S)\*\*(?![\w(])")
_ARGUMENT = re.compile(r"\s*(?:\\[,!;: ]\s*)*[\w({\\^]")  # behind a function; a unit has none
_CONTROL = {0: None, 1: None, 2: None}  # which stand for marks below
_MONEY = re.compile(r"[^$]*\$\s*[\d.].*|[+-]?[\d.,]+\s*(?:US)?\$")
_DIGITS_AND_SIGN = re.compile(r"[+-]?\d+")


@lru_cache(maxsize=8192)
def clean(text: str) -> str:
    r"""One plain form of LaTeX for the text.

    >>> print(clean(r"$\left(\dfrac{1}{2},\, 5\mathrm{ cm}\right)$."), clean("x ≥ ３２"), clean(r"32,\! 349"))
    (\frac{1}{2},  5\text{ cm} ) x \geq  32 32349
    """
    text = text.translate(_CONTROL).strip()
    if _DIGITS_AND_SIGN.fullmatch(text) and text.isascii():
        return text
    if "\\\\" in text and not re.search(r"(?<!\\)\\begin", text):
        text = _ESCAPED.sub(lambda match: match[0][: len(match[0]) // 2], text)
    if text.startswith("**") or text.endswith("**"):
        text = _MARKDOWN.sub(r"\1", text)
    if not text.isascii():
        text = _SUPERSCRIPT.sub(lambda match: "^{" + match[0].translate(_SUPERSCRIPTS) + "}", text)
        text = _WIDE.sub(
            lambda match: unicodedata.normalize("NFKC", match[0]), _with_plain_signs(text)
        )
        text = _with_plain_signs(text)
    if text.endswith(".") and not text.endswith(".."):
        text = text[:-1].rstrip()
    if quoted := _QUOTED.fullmatch(text):
        text = quoted[2].strip()
    text = _without_delimiters(text.rstrip("\\") if text.endswith("\\") else text)
    if "\\" in text or "{,}" in text:
        text = _THOUSANDS.sub("", text)
        text = _COLOR.sub("", _SPACING.sub(" ", text)) if "\\" in text else text
        for _ in range(3):
            text, count = _TEXT.subn(_as_text, text)
            if not count:
                break
        text = _JOINED_TEXT.sub("\0\\1\1\0 \\2 \1", text) if "\0" in text else text
        text = _COMMAND.sub(lambda match: _SAME_COMMANDS.get(match[0], match[0]), text)
        for pattern, replacement in _SAME_FORMS:
            text = pattern.sub(replacement, text)
        if r"\over" in text:
            text = _OVER.sub(
                lambda match: r"\frac" + "".join(f"{{{part}}}" for part in match.groups() if part),
                text,
            )
    text = text.replace("\0", r"\text{").replace("\1", "}")
    text = _LETTER_O.sub("°", text.strip())
    if text.endswith((".", ",", ";")) and not text.endswith(".."):
        text = text[:-1].rstrip()
    return text


def _as_text(match: re.Match) -> str:
    r"""One letter, a number or a function is set in a font; all else is text: `\text{...}`, marked
    until the end.
    """
    content = match[1].replace("\\", "").strip()
    if match[0].startswith((r"\boxed", r"\fbox", r"\underline", r"\pmb", r"\bm")):
        return match[1]
    if content.lower() in _FUNCTIONS and (
        content.lower() not in ("min", "sec") or _ARGUMENT.match(match.string, match.end())
    ):
        return f"\\{content.lower()} "
    if content.isdigit() or (
        len(content) == 1 and (content in "eid" or match[0][5:7] in ("bf", "it", "sf"))
    ):
        return match[1]
    return f"\0{match[1]}\1"


def _without_delimiters(text: str) -> str:
    r"""Without `$...$`, `\(...\)` and `\[...\]` around parts or all of the text; a single `$` is a
    currency's.
    """
    if "$" in text:
        if text.count("$") - text.count(r"\$") > 1:
            parts = text.replace(r"\$", "\2").replace("$$", "$").split("$")
            if len(parts) % 2 and not any(
                re.match(r"\d[^\\]*\s(?:and|or|to|per)\s*$", part) for part in parts[1::2]
            ):
                parts[::2] = [f" {part} " for part in parts[::2]]
                text = "".join(parts).replace("\2", r"\$")
        text = text.replace(r"\$", "$")
        if text.count("$") == 1 and not _MONEY.fullmatch(text):
            text = text.strip("$") or "$"
        elif "=" in text and not re.search("[A-Za-z]{2}", text):  # $5 + $6 = $11
            text = re.sub(r"\$(?=[\d.])", "", text)
    if "\\" in text:
        text = re.sub(r"(?<!\\)\\[()]|(?<!\\)\\\[|(?<!\\)\\\]", " ", text).replace(r"\%", "%")
    return text.strip()


def tidy(text: str) -> str:
    r"""A cleaned text with the content of `\text{...}` in its place, as one line of words and
    formulas.

    >>> print(tidy(r"$\left(\dfrac{1}{2},\, 5\text{ cm}\right)$."))
    (\frac{1}{2}, 5 cm )
    """
    text = clean(text)
    if "\\text{" in text:
        text = re.sub(r"\\text\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\s+", " ", text)
    for sign, name in (("°C", " celsius"), ("°F", " fahrenheit"), ("°", " degrees")):
        text = text.replace(sign, name)
    return text.strip()


@lru_cache(maxsize=8192)
def plain(text: str) -> str:
    """The tidied text without white space and braces that mean nothing. `1 2` does not become `12`.

    >>> plain("x^2 + 1") == plain("x^{2}+1"), plain("1 234") == plain("1234"), plain("1 2") == plain("12")
    (True, True, False)
    """
    text = _ONE_IN_BRACES.sub(r"\1", tidy(text))
    return "".join(_DIGIT_GAP.sub("\0", text).split())
