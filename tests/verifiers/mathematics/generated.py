"""Strategies for random texts: anything at all, and answers of which the value is known."""

from hypothesis import strategies as st

PIECES = [
    r"\frac", r"\frac{1}{2}", r"\sqrt", r"\sqrt{2}", r"\text{", r"\text{ cm}", r"\text{ or }", r"\left", r"\right",
    r"\{", r"\}", r"\begin{cases}", r"\end{cases}", r"\begin{pmatrix}", r"\end{pmatrix}", "&", r"\\", r"\infty",
    r"\pi", r"\pm", r"\cup", r"\in", r"\mathbb{Z}", r"\leq", r"\neq", r"\approx", r"\cdot", r"\circ", r"\overline",
    r"\sin", r"\log_2", r"\ln", r"\binom{5}{2}", r"\sum_{k=1}^{n}", r"\int", r"\lfloor", r"\rfloor", r"\langle",
    r"\angle", r"\,", r"\!", r"\$", r"\%", r"\emptyset", r"\mathbf{f}", r"\unknown", "{", "}", "(", ")", "[", "]",
    "|", "$", "%", "^", "^2", "_", "_1", ",", ";", ":", ".", "...", " ", "  ", "-", "+", "*", "/", "=", "<", ">",
    "!", "'", "\"", "~", "0", "1", "2", "10", "1,234", "0.5", "007", "x", "y", "n", "k", "i", "e", "A", "B", "C",
    "f(x)", "g", " and ", " or ", "yes", "no solution", "not ", " cm", " m/s", " million", " percent", "forty two",
    "integer n",
    "the answer is ", "is ", "°", "−", "√", "²", "π", "５", "，", "。", "答案", "不", "①", "\\", "\n", "\0",
    "\1", "e5", "#### ", "**"]  # fmt: skip
MARKS = [
    "<answer>",
    "</answer>",
    "<think>",
    "</think>",
    r"\boxed{",
    r"\fbox{",
    "}",
    "#### ",
    "\n",
    "$",
]

TEXTS = st.one_of(st.lists(st.sampled_from(PIECES), max_size=14).map("".join), st.text(max_size=30))
COMPLETIONS = st.lists(st.one_of(st.sampled_from(MARKS), TEXTS), max_size=8).map("".join)

_VALUES = st.one_of(
    st.integers(-9, 9).map(str),
    st.tuples(st.integers(-9, 9), st.integers(1, 9)).map(lambda pair: rf"\frac{{{pair[0]}}}{{{pair[1]}}}"),
    st.sampled_from([r"\sqrt{2}", r"\sqrt{8}", r"2\sqrt{2}", r"\pi", r"\frac{\pi}{2}", "0.5", "x", "x+1", "1+x", "2x",
                     "x^2", r"\ln 4", r"2\ln 2", "3i", r"\infty", r"-\infty"]),
)  # fmt: skip
_LISTS = st.lists(_VALUES, min_size=2, max_size=4)
NUMBERS_AND_SETS = st.one_of(
    _VALUES,
    _LISTS.map(", ".join),
    _LISTS.map(lambda values: rf"\{{{', '.join(values)}\}}"),
    _LISTS.map(lambda values: f"({', '.join(values)})"),
    st.tuples(st.sampled_from("(["), _VALUES, _VALUES, st.sampled_from(")]")).map(
        lambda parts: f"{parts[0]}{parts[1]}, {parts[2]}{parts[3]}"
    ),
    st.tuples(_VALUES, _VALUES).map(
        lambda pair: rf"\begin{{pmatrix}} {pair[0]} \\ {pair[1]} \end{{pmatrix}}"
    ),
)
