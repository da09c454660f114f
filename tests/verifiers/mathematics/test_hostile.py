"""Texts made to be slow: whatever is repeated, however often, is graded in a time that grows with
its length.

Each family of texts is graded in a child process that may use 100 seconds of the processor, where
it needs 1 to 10: no clock takes part, so that a busy machine fails nothing, and only what would
take minutes or for ever fails.
"""

import itertools
import multiprocessing
import resource
import signal

import pytest

from swift_rlvr.verifiers.mathematics import Reason, grade

BITS = [
    "(", "{", r"\{", "a,", "1 ", "x^", "^{", r"\frac", "|", "-", r"\text{", r"\text{a}", r"\begin{array}{c}",
    r"\begin{pmatrix}1\end{pmatrix}+", "$", "$a$", "e^", "9^", " or ", " and ", "=", "<", r"\pm", "1/(", r"\sin ",
    "!", "a b ", "answer is ", "<answer>", r"\boxed{", r"\boxed{}", "####", "x=1,", r"\cup ", "(1,2),", "5 (", "1.",
    "1,", "\\", "\\\\", "&", r"n\in Z ", "integer n ", "**", "**a", "^o", "°", "{,}", r"\,", "one ", "hundred ", ":",
    "1:", "√", "²", "ａ", "不", "999999999", "(x+1)", "(x+1)^", r"\sqrt{x+", r"\ln(", r"\binom{9}{", r"\sum_{k=1}^{9}",
    "e^{e^{", "100!", "\0", "\1", "\2", "not ", " is ", "is 5 ", "a_{", "f(", "'", "<think>", "</think>", "~",
    r"\text{ or }", r"k\pi+", r"\left", r"\left(", r"\begin{cases}", "}", ")", r"\in ", r"1\le ",
    r"\frac{d}{dx}", r"\int_0^1 ", "dx", "C(", "{}_9C_3", "|x|<", "∛",
    r"\Omega ", r"\mu\text{m}", r"5 \pmod 7 ", "for all x ", "since ", "0.333...", "&= ", "选", "else 8 "]  # fmt: skip
FORMS = ("%s", "<answer>%s</answer>", r"\boxed{%s}", "the answer is %s", "5%s", "%s5")
GOLDS = (
    "5",
    r"\frac{\sqrt{3}}{2}x^2",
    r"(-\infty,1)\cup(2,\infty)",
    r"x=\frac{n\pi}{10},n\in\mathbb{Z}",
    "yes",
)
EXPRESSIONS = [
    "(x+y+z+u+v+w+a+b)^40", "(x+y)^{40}(z+w)^{40}", "((x+1)^{20}+y)^{20}", "9^{9^9}", "9^{9^{9^9}}", "2^{2000}",
    "(1+1)^{99999}", "1.0000000001^{99999}", "100!^2", "100!" + r"\cdot 100!" * 20, "((100!)!)!", "2000!" * 20,
    r"\sqrt{99999999999}", r"\sqrt{999983}" * 16, r"\frac{1}{" * 20 + "x" + "}" * 20, "(" * 29 + "x" + ")" * 29,
    r"\binom{200}{100}" * 12, r"\binom{2000}{1000}^{2000}", r"\binom{10^{10}}{10^9}", r"\sqrt[5]{999999999999999}",
    r"\sqrt[9999]{x}" * 20, "x^40" * 50, "1/3+" * 49 + "1", "x_1+" * 49 + "x", "abcdefgh" * 25, "5" + "!" * 199,
    "e^{e^e}", "e^{e^{e^{e^x}}}", r"\sin(9^{999})", r"\tan(e^{9999})", r"\Gamma(10^{999})", "(x+0.5)!" * 20,
    "(1999.5)!" * 20, "i^{40}" * 30, "(1+i)^{40}(2+3i)^{40}(5+7i)^{40}", "i^{i^{i^{i^i}}}", "0^{-99999}",
    r"(\sqrt2+\sqrt3+\sqrt5+\sqrt7+\sqrt{11}+\sqrt{13})^{40}", r"\sqrt{2" + r"+\sqrt{2" * 25 + "}" * 26,
    "(x+1/3)^{40}", "(x^{40})^{40}", r"\frac1{x+1}+\frac1{x+2}+\frac1{y+3}+\frac1{y+4}" * 4,
    r"\sum_{a=1}^{200}\sum_{b=1}^{200}\sum_{c=1}^{200} abc", r"\prod_{k=1}^{200} k^{k^k}", r"\sum_{k=1}^{10^9} k",
    r"\sum_{k=1}^{200} \frac{1}{k^{200}}", r"\gcd(9^{999}, 6^{999})",
    r"\int_0^1 " * 20 + "x" + "dx" * 20, r"\int_0^1 \int_0^x \int_0^y \sin(xyz) dz dy dx", r"\int_0^9 e^{e^x} dx",
    r"\int_0^x (\int_0^y (\int_0^z \sin(xyz) dx) dy) dz", r"\int_0^{10^{99}} \sin(x^9) dx",
    r"\frac{d}{dx}" * 20 + "x^{40}", r"\frac{d}{dx}\int_0^x \sum_{k=1}^{100} \frac{x^k}{k!} dx", "x^{2}" * 90 + "<1",
    "(x+1)^2" * 40 + "<1", "|x|" * 60 + "<1", "|" * 20 + "x" + "|" * 20 + "<1", "<".join(["x"] * 150),
    "10^{999}x^2-10^{-999}x<9^{999}", r"\sqrt{2}x^2-\pi x<e^{e^e}",
    r"\lfloor 10^{4000}\pi \rfloor", "10^{-9999}",
    ",".join(map(str, range(500))), ",".join(f"{n}%" for n in range(350)), ",".join(f"x={n}" for n in range(250)),
    ",".join(f"{n}x" for n in range(400)), ",".join(rf"\sin {n}" for n in range(50)), r"\pm " * 20 + "1",
    "+".join([r"\pm 1"] * 40), "(" + "),(".join(f"{{{n},{n}x}}" for n in range(150)) + ")",
    r"\cup".join(f"({n},{n + 1})" for n in range(120)), " or ".join(f"x>{n}" for n in range(120)),
    " or ".join(f"x=2^{{{n}}}k\\pi" for n in range(60)) + r", k \in \mathbb{Z}",
    r"x=\frac{k\pi}{9973}, x=\frac{k\pi}{9967}, k \in \mathbb{Z}", "0." + "3" * 390 + r"\overline{7}",
    r"\begin{pmatrix}" + r"1 & \sqrt2 & x \\" * 30 + r"\end{pmatrix}",
    r"\begin{pmatrix}1\end{pmatrix}" + r"+x\begin{pmatrix}1\end{pmatrix}" * 7,
    "f(x) for all " + " " * 1900 + "!", r"k\pi" + " " * 1900 + r"+1, k \in \mathbb{Z}"]  # fmt: skip
ONCE_SLOW = [
    r"\text{ cm}" * 200, r"5\text{ " + "c" * 1900 + "}", "5 " + "square " * 280, "5 " + "ab-" * 600, "2^{" * 600,
    "{" * 1000 + "}" * 1000, "12:30 p.m. " * 180, "2024-01-15" * 200, "ABCDEF_" * 285, "1e999" * 400,
    r"1.\overline" * 180, "5" + " " * 1998 + "x", "5" + "0" * 390 + " million" * 150, "Answer: $" * 220]  # fmt: skip
MEGABYTE = 1_000_000
MEGABYTES = [
    "x" * MEGABYTE, "(" * MEGABYTE, r"\boxed{" * (MEGABYTE // 7), "<answer>" * (MEGABYTE // 8), "<think>" * 140_000,
    "{" * MEGABYTE, "<answer>" + "9" * MEGABYTE + "</answer>", r"\boxed{" + "{" * 400_000 + "}" * 400_000 + "}",
    "####" * (MEGABYTE // 4), "\n####" * (MEGABYTE // 5), "answer is " * (MEGABYTE // 10),
    "Answer: $" * (MEGABYTE // 9), "答案" * (MEGABYTE // 2), r"\boxed{5}" * (MEGABYTE // 9) + r"\boxed{",
    r"\boxed{5}, \boxed{6} and " * (MEGABYTE // 24), "5\n" * (MEGABYTE // 2), "</think>" * (MEGABYTE // 8),
    "\\" * MEGABYTE, "```answer\n" + "\n" * 400_000 + "x", "```answer\n" * (MEGABYTE // 10), "~~a " * (MEGABYTE // 4),
    "not 8 but " * (MEGABYTE // 10), '{"result": 8, ' * (MEGABYTE // 14)]  # fmt: skip


def single():
    for number, (bit, form) in enumerate(itertools.product(BITS, FORMS)):
        yield form % (bit * (1900 // len(bit))), GOLDS[number % len(GOLDS)]
    for number, bit in enumerate(BITS):
        yield f"<answer>{bit * (900 // len(bit))}</answer>", GOLDS[number % len(GOLDS)]


def long():
    for number, bit in enumerate(BITS):
        yield FORMS[number % len(FORMS)] % (bit * (200_000 // len(bit))), "5"


def megabytes():
    for text in MEGABYTES:
        yield text, "7"


def pairs():
    """Every ninth pair, so that each bit is first and second ten times."""
    for (first, one), (second, other) in itertools.product(enumerate(BITS), repeat=2):
        if (7 * first + 3 * second) % 9 == 1:
            yield (
                f"<answer>{(one + other) * (900 // len(one + other))}</answer>",
                GOLDS[second % len(GOLDS)],
            )


def golds():
    for bit in BITS:
        yield r"\boxed{5}", bit * (1900 // len(bit))


def expressions():
    for number, text in enumerate([*EXPRESSIONS, *ONCE_SLOW]):
        yield rf"\boxed{{{text}}}", GOLDS[number % len(GOLDS)]
        yield f"<answer>{text} </answer>", f"{text} + 1"
        yield rf"\boxed{{{text} + 1}}", f"1 + {text}"


def grade_all_within_the_limit(family):
    def too_long(*_):
        raise TimeoutError(f"{len(text)} characters, {text[:60]!r}, for the gold {gold[:60]!r}")

    signal.signal(signal.SIGXCPU, too_long)
    resource.setrlimit(
        resource.RLIMIT_CPU, (100, 110)
    )  # the second one kills where Python's code does not run
    for text, gold in family():
        verdict = grade(text, gold)
        assert verdict.reason is not Reason.ERROR, (text[:60], gold[:60])
        assert verdict.reward != 1.0 or family is not megabytes, text[:60]


@pytest.mark.parametrize(
    "family",
    [single, long, megabytes, pairs, golds, expressions],
    ids=lambda family: family.__name__,
)
def test_hostile_texts_end(family, capfd):
    child = multiprocessing.get_context("fork").Process(
        target=grade_all_within_the_limit, args=(family,)
    )
    child.start()
    child.join()
    assert child.exitcode == 0, capfd.readouterr().err[-2000:]
