r"""Text of an answer -> one plain form of LaTeX: what does not change the meaning is removed or
written in one way.

`clean` keeps `\text{...}`, in which units and words stand; `tidy` puts its content in its place;
`plain` is for comparing how two answers are written.
"""

import re
import unicodedata
from functools import lru_cache

from swift_rlvr.verifiers.mathematics.parser import FUNCTION_NAMES

# --- Unicode signs -> LaTeX or ASCII

# pairs of a sign and what it becomes
_SIGN_NAMES = r"""
    µ μ − - – - ‐ - ‑ - ﹣ - × \times · \cdot ⋅ \cdot ∙ \cdot ÷ \div ≤ \leq ≥ \geq ⩽ \leq ⩾ \geq ≠ \neq ≈ \approx
    ≡ \equiv ∪ \cup ∩ \cap ∅ \emptyset ∈ \in ∞ \infty ± \pm ∓ \mp √ \sqrt π \pi θ \theta α \alpha β \beta γ \gamma
    λ \lambda μ \mu φ \phi ω \omega σ \sigma ρ \rho δ \delta ε \epsilon ∠ \angle △ \triangle ∛ \sqrt[3] ℝ \mathbb{R}
    ℤ \mathbb{Z} ℕ \mathbb{N} ∨ \lor ∧ \land ⟨ \langle ⟩ \rangle ⌊ \lfloor ⌋ \rfloor ⌈ \lceil ⌉ \rceil
    ⁄ / ∕ / ٫ . ٬ , ٪ % ≅ \approx ≃ \approx ∝ \propto ≫ \gg ≪ \ll ⇒ \Rightarrow ⟹ \Rightarrow
    º ° ℃ °C ℉ °F 、 , 。 . ： : ∶ : ； ; ′ ' ’ ' ″ '' ∣ | “ " ” " … ... 根号 \sqrt
"""
# {sign: its plain form}; a command gets a space behind it, so that ≤x does not become \leqx
_SIGNS = {"，": ", ", "（": " ("}
for _sign, _name in zip(_SIGN_NAMES.split()[::2], _SIGN_NAMES.split()[1::2], strict=True):
    _SIGNS[_sign] = f"{_name} " if re.fullmatch(r"\\\w+", _name) else _name
# the digits of other scripts, by their zeros: Arabic, Persian, Devanagari, Bengali, Tamil, Telugu, Thai
for _zero in "٠۰०০௦౦๐":
    for _digit in range(10):
        _SIGNS[chr(ord(_zero) + _digit)] = str(_digit)
# ½
for _sign in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒":
    _above, _, _below = unicodedata.normalize("NFKC", _sign).partition("⁄")
    _SIGNS[_sign] = rf"\frac{{{_above}}}{{{_below}}}"
# signs that say nothing of the value: ∴ x = 5 ✓
_SIGNS |= dict.fromkeys("∴✓✔✅☑∎\ufe0f", "")
_ANY_SIGN = re.compile("|".join(map(re.escape, _SIGNS)))
# full-width and mathematical letters, spaces
_WIDE = re.compile("[\uff00-\uffef\U0001d400-\U0001d7ff\u00a0\u2000-\u200a\u202f\u3000]+")
# x² -> x^{2}
_SUPERSCRIPT = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ]+")
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ⁿ", "0123456789-+n")

# ①、③ and ①和③ -> ①③, the statements that are right
_BETWEEN_CIRCLED = re.compile(r"(?<=[①-⑳])[\s,，、;；和与及]+(?=[①-⑳])")

# --- what does not change the meaning

# 1{,}5 and 0{,}125, which are how LaTeX sets a decimal comma; not 1{,}234 and 12{,}34{,}567
_DECIMAL_COMMA = re.compile(
    r"(?<![\d},.])((?:0(?=\{,\}\d)|\d+(?=\{,\}(?!\d{3}(?!\d)))))\{,\}(?=\d+(?![\d{]))"
)
# 1{,}234, 1\,234, 1,\!234, 1~234
_THOUSANDS = re.compile(r"(?<=\d),?(?:\\[!,]|\{,\}|~)\s*(?=\d{3}(?!\d))|(?<=\d)\{,\}(?=\d)")
# 5~cm, 28~%, (2,~3): a space; not ~5, which is about 5, nor 5~6, a range
_TIE = re.compile(r"(?<=[\d)}])~(?=[A-Za-z%°\\])|(?<=[,;])~(?=\S)")
_SPACING = re.compile(
    # \left( and \displaystyle
    r"\\(?:left|right|middle|[bB]igg?[lrm]?|displaystyle|textstyle|scriptstyle|limits|nolimits"
    r"|q?quad|enspace|thinspace|therefore|boldsymbol|bf|rm|it|small|normalsize|[lL]arge|LARGE|[hH]uge"
    r")(?![A-Za-z])"
    # \, and ~, but not the \\ of a row
    r"|(?<!\\)\\[,!;:> ]|(?<!\\)~"
    # \hspace{1cm}; \phantom{5} stays, because what is not printed is no answer
    r"|\\hspace\*?\{[^{}]*\}|\\phantom\{\s*\}"
    # 5 \checkmark, 5 \tag{1}
    r"|\\(?:checkmark|blacksquare)(?![A-Za-z])|\\tag\*?\{[^{}]*\}"
)
# \text{cm}, \mathrm{cm}, \mathbf{x}, \boxed{5}: `_as_text` decides what becomes of the content
_TEXT = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal|up)?|math(?:rm|bf|it|sf|tt|normal)|[mh]box"
    r"|operatorname\*?|underline|pmb|bm|emph|boxed|fbox)\s*\{([^{}]*)\}"
)
# \mathrm{m s^{-1}}: the braces of a power would hide those of the text
_POWER_IN_TEXT = re.compile(r"(\\(?:text|mathrm|rm)\s*\{[^{}]*\^)\s*\{\s*(-?\d)\s*\}")
# \hat{i}, \vec{j}, \hat{\imath} and \mathbf{\hat{k}}, which are also written \mathbf{i} or i
_UNIT_VECTOR = re.compile(
    r"\\(?:hat|widehat|vec|overrightarrow)(?:\s*(?P<brace>\{)\s*|\s+)(?P<bold>\\(?:text|math)bf\s*\{\s*)?"
    r"\\?(?P<name>[ijk])(?:math)?(?![A-Za-z])(?(bold)\s*\})(?(brace)\s*\})"
)
# \color{red}
_COLOR = re.compile(r"\\(?:color|textcolor|colorbox)\s*\{[^{}]*\}")
# `\\frac`, as JSON writes it
_ESCAPED = re.compile(r"\\\\(?:\\\\|(?=[A-Za-z{}()\[\]%$]))")
# "5", '5', ```5```
_QUOTED = re.compile(r"([\"'`]{1,3})(?:\w*\n)?([^\"'`]+)\1")
# **5**, but not the power 2**3
_MARKDOWN = re.compile(r"\*\*(?=\S)((?:[^*]|\*(?!\*))*?\S)\*\*(?![\w(])")
# \text{ cm and } -> \text{ cm} and; \0 and \1 mark the beginning and end of a text
_JOINED_TEXT = re.compile("\0([^\0\1]*\\S)\\s+(and|or)\\s*\1")
# characters that stand for marks in here
_CONTROL = {0: None, 1: None, 2: None}
# 60^o
_LETTER_O = re.compile(r"(?<=\d)\s*\^\s*\{?\s*o\s*\}?$")

# --- names of functions, which may be set as text: \text{sin} x

_FUNCTIONS = FUNCTION_NAMES | {"arcsec", "arccsc", "mod"}
# \text{min}(a, b) is a function, 5 \text{ min} a unit, which has no argument
_ARGUMENT = re.compile(r"\s*(?:\\[,!;: ]\s*)*[\w({\\^]")

# --- commands that say the same

_COMMAND = re.compile(r"\\([A-Za-z]+)")
# in each group the first stands for all
_OTHER_NAMES = r"""
    \frac dfrac tfrac cfrac nicefrac sfrac|\{ lbrace|\} rbrace
    |\leq leqslant leqq le|\geq geqslant geqq ge|\neq ne|< lt|> gt
    |\Rightarrow implies Longrightarrow therefore|\epsilon varepsilon|\phi varphi|\theta vartheta
    |\emptyset varnothing oslash|\lor vee|\land wedge|\setminus smallsetminus backslash|\mathbb{R} R reals|: colon
    |\\ cr newline|... ldots cdots dots|£ pounds textsterling|€ euro texteuro|° degree|' prime|\binom dbinom tbinom
"""
# {command: the one that stands for it}
_SAME_COMMANDS = dict.fromkeys((r"\mid", r"\vert", r"\lvert", r"\rvert"), "|")
for _group in _OTHER_NAMES.split("|"):
    _command, *_names = _group.split()
    for _name in _names:
        _SAME_COMMANDS[f"\\{_name}"] = _command
_SAME_FORMS = (
    # x \not= 3
    (re.compile(r"\\not\s*=(?![A-Za-z])"), r"\\neq "),
    (re.compile(r"\\bigcup(?![A-Za-z_])"), r"\\cup"),
    # 25\% \text{ of } 60
    (re.compile(r"(?<=[%}])\s*\x00\s*of\s*\x01\s*(?=[\d\\])"), r"\\cdot "),
    # \mathbb{R} - \{2\}
    (re.compile(r"(\\mathbb\s*\{?\s*R\s*\}?)\s*-\s*(?=\\\{)"), r"\1 \\setminus "),
    # \pmod 7
    (re.compile(r"\\pmod\s*(\d+|[A-Za-z])"), r"\\pmod{\1}"),
    # 2{:}3, without the space of a relation
    (re.compile(r"\{\s*:\s*\}"), ":"),
    # 90{}^\circ
    (re.compile(r"(?<=[\w)}])\{\s*\}(?=\s*\^)"), ""),
    # 30^\circ, 30^{\circ}
    (re.compile(r"\^\s*(?:\{\s*\\circ\s*\}|\{?\s*\\circ(?![A-Za-z]))"), "°"),
    # 25^\circ C
    (re.compile(r"°\s+(?=[CF](?![A-Za-z]))"), "°"),
    # f^{'}
    (re.compile(r"\^\s*\{\s*('+)\s*\}|\^\s*(')"), r"\1\2"),
)
# \mathbb{R}^+; the positive integers, \mathbb{N}^* and \mathbb{Z}^+, get a letter of their own
_POSITIVE = re.compile(
    r"\\mathbb\s*\{?\s*(?:([RNZ])\s*\}?\s*[\^_]\s*\{?\s*(?:\+|>\s*0)|N\s*\}?\s*[\^_]\s*\{?\s*(?:\*|\\ast))\s*\}?"
)
_IN_GROUP = r"((?:[^{}]|\{[^{}]*\})*?)"
# {command: what plain TeX writes for it}: {1 \over 2} and {5 \choose 2}, or without the braces where it is
# all of the text
_INFIX = {}
for _name, _infix in (("frac", "over"), ("binom", "choose")):
    _between = rf"{_IN_GROUP}\\{_infix}(?![A-Za-z]){_IN_GROUP}"
    _INFIX[_name] = re.compile(rf"\{{{_between}\}}|^{_between}$")

# --- dollars

# $5, 5 US$ and the like: one dollar sign is money
_MONEY = re.compile(r"[^$]*\$\s*[\d.].*|[+-]?[\d.,]+\s*(?:US)?\$")
# between dollars that are money: $5 and $6
_MONEY_WORDS = re.compile(r"\d[^\\]*\s(?:and|or|to|per)\s*$")
# delimiters around parts or all of a text: \( \) \[ \], but not the \\ of a row with a bracket behind it
_DELIMITER = re.compile(r"(?<!\\)\\[()]|(?<!\\)\\\[|(?<!\\)\\\]")

# --- for `plain`

# 1 2, but not 1 234
_DIGIT_GAP = re.compile(r"(?<=\d)\s+(?=\d)(?!\d{3}(?!\d))")
# 1, 234 are two numbers, and 1,234 is one
_LIST_COMMA = re.compile(r"(?<=\d),\s+(?=\d{3}(?!\d))")
# x^{2}
_ONE_IN_BRACES = re.compile(r"(?<=[\^_])\{\s*([A-Za-z0-9])\s*\}")

# most golds: nothing to clean
_DIGITS_AND_SIGN = re.compile(r"[+-]?\d+")
# fonts within fonts: \textbf{\text{5}}
_MAX_NESTED_TEXTS = 3


@lru_cache(maxsize=8192)
def clean(text: str) -> str:
    r"""One plain form of LaTeX for the text.

    >>> print(clean(r"$\left(\dfrac{1}{2},\, 5\mathrm{ cm}\right)$."), clean("x ≥ ３２"), clean(r"32,\! 349"))
    (\frac{1}{2},  5\text{ cm} ) x \geq  32 32349
    """
    text = text.translate(_CONTROL).strip()
    if _DIGITS_AND_SIGN.fullmatch(text) and text.isascii():
        return text

    # what JSON, Markdown and prose put around it: `\\frac`, `**5**`, `"5".`; in a matrix `\\` ends a row
    if "\\\\" in text and not re.search(r"(?<!\\)\\begin", text):
        text = _ESCAPED.sub(lambda match: match[0][: len(match[0]) // 2], text)
    if text.startswith("**") or text.endswith("**"):
        text = _MARKDOWN.sub(r"\1", text)
    # before the quotes, some of which are typographic
    if not text.isascii():
        # and before the wide letters, of which the normal form would make x² x2
        text = _BETWEEN_CIRCLED.sub("", text)
        text = _SUPERSCRIPT.sub(lambda match: "^{" + match[0].translate(_SUPERSCRIPTS) + "}", text)
        text = _with_plain_signs(text)
        text = _WIDE.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
        # a wide letter may be such a sign: 𝜋
        text = _with_plain_signs(text)
    text = _without_stop(text, (".",))
    quoted = _QUOTED.fullmatch(text)
    if quoted:
        text = quoted[2].strip()

    # 【5】
    if text.startswith("【") and text.find("】") == len(text) - 1:
        text = text[1:-1].strip()
    # a backslash at the end is a slip
    text = text.rstrip("\\")
    text = _without_dollars(text)
    if "\\" in text:
        text = _DELIMITER.sub(" ", text).replace(r"\%", "%")
    text = text.strip()
    if "\\" in text or "{,}" in text or "{:}" in text or "~" in text:
        text = _in_one_form(text)
    text = text.replace("\0", r"\text{").replace("\1", "}")
    text = _LETTER_O.sub("°", text.strip())
    return _without_stop(text, (".", ",", ";"))


def _without_stop(text: str, stops: tuple[str, ...]) -> str:
    """The text without one of the stops at its end; `1, 2, ...` goes on."""
    if text.endswith(stops) and not text.endswith(".."):
        return text[:-1].rstrip()
    return text


def _with_plain_signs(text: str) -> str:
    return _ANY_SIGN.sub(lambda match: _SIGNS[match[0]], text)


def _in_one_form(text: str) -> str:
    r"""LaTeX with one command for each meaning; `\text{...}` is marked by \0 and \1."""
    if "{,}" in text:
        text = _DECIMAL_COMMA.sub(r"\1.", text)
    text = _THOUSANDS.sub("", text)
    if "~" in text:
        text = _TIE.sub(" ", text)
    if "\\" in text:
        text = _COLOR.sub("", _SPACING.sub(" ", text))
    if "hat" in text or "vec" in text or "overrightarrow" in text:
        text = _UNIT_VECTOR.sub(r"\g<name>", text)
    for _ in range(_MAX_NESTED_TEXTS):
        text = _POWER_IN_TEXT.sub(r"\1\2", text)
    for _ in range(_MAX_NESTED_TEXTS):
        text, count = _TEXT.subn(_as_text, text)
        if not count:
            break
    if "\0" in text:
        text = _JOINED_TEXT.sub("\0\\1\1\0 \\2 \1", text)
    text = _COMMAND.sub(lambda match: _SAME_COMMANDS.get(match[0], match[0]), text)
    for pattern, replacement in _SAME_FORMS:
        text = pattern.sub(replacement, text)
    if r"\mathbb" in text:
        text = _POSITIVE.sub(
            lambda match: r"(0, \infty)" if match[1] == "R" else r"\mathbb{P}", text
        )
    if r"\over" in text or r"\choose" in text:
        for name, infix in _INFIX.items():
            text = infix.sub(rf"\\{name}{{\1\3}}{{\2\4}}", text)
    return text


def _as_text(match: re.Match[str]) -> str:
    r"""One letter, a number or a function is set in a font; all else is text: `\text{...}`, marked
    until the end.
    """
    content = match[1].replace("\\", "").strip()
    name = content.lower()
    if match[0].startswith((r"\boxed", r"\fbox", r"\underline", r"\pmb", r"\bm")):
        return match[1]
    if name in _FUNCTIONS:
        # also units: minutes and seconds
        has_argument = _ARGUMENT.match(match.string, match.end())
        if name not in ("min", "sec") or has_argument:
            return f"\\{name} "
    if content.isdigit():
        return match[1]
    if content in (",", ";"):
        return match[1]
    if len(content) == 1:
        # constants, and variables in bold, italic or sans serif; \text{A} is a choice
        font = match[0][5:7]
        if content in "eid" or font in ("bf", "it", "sf"):
            return match[1]
    return f"\0{match[1]}\1"


def _without_dollars(text: str) -> str:
    """Without `$...$` around parts or all of the text; a single `$` is a currency's."""
    if "$" not in text:
        return text
    if text.count("$") - text.count(r"\$") > 1:
        # \$ is money, and marked by \2
        parts = text.replace(r"\$", "\2").replace("$$", "$").split("$")
        is_money = any(_MONEY_WORDS.match(part) for part in parts[1::2])
        if len(parts) % 2 and not is_money:
            parts[::2] = [f" {part} " for part in parts[::2]]
            text = "".join(parts).replace("\2", r"\$")
    text = text.replace(r"\$", "$")
    if text.count("$") == 1 and not _MONEY.fullmatch(text):
        return text.strip("$") or "$"
    # $5 + $6 = $11
    if "=" in text and not re.search("[A-Za-z]{2}", text):
        return re.sub(r"\$(?=[\d.])", "", text)
    return text


def tidy(text: str) -> str:
    r"""A cleaned text with the content of `\text{...}` in its place, as one line of words and
    formulas.

    >>> print(tidy(r"$\left(\dfrac{1}{2},\, 5\text{ cm}\right)$."))
    (\frac{1}{2}, 5 cm )
    """
    text = clean(text)
    if r"\text{" in text:
        text = re.sub(r"\\text\{([^{}]*)\}", r"\1", text)
        text = _without_stop(text.strip(), (".",))
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
    text = _ONE_IN_BRACES.sub(r"\1", _LIST_COMMA.sub(",\0", tidy(text)))
    return "".join(_DIGIT_GAP.sub("\0", text).split())
