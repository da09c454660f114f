"""Our scorers in place of reasoning-gym's: what theirs pay for or run, and ours do not; right
answers.
"""

import json
import re
from decimal import Decimal
from importlib.util import find_spec

import pytest

from swift_rlvr.verifiers.mathematics.formulas import is_antiderivative, same_polynomial
from swift_rlvr.verifiers.reasoning_gym import library
from swift_rlvr.verifiers.reasoning_gym.library import REFUSED
from swift_rlvr.verifiers.reasoning_gym.naming import Part
from swift_rlvr.verifiers.reasoning_gym.rows import item, read_entry, to_entry
from swift_rlvr.verifiers.reasoning_gym.scorers import SCORERS, number

pytestmark = pytest.mark.skipif(
    find_spec("reasoning_gym") is None, reason="needs the extra [reasoning-gym]"
)
RUNS_ANSWERS = (
    *(
        "countdown",
        "puzzle24",
        "simple_integration",
        "intermediate_integration",
        "polynomial_multiplication",
    ),
    *("binary_matrix", "n_queens", "spiral_matrix", "string_insertion"),
)


def entry_of(name, index=0, **changes):
    """An item as its row has it; `changes` are of the metadata or, for `answer`, of the entry."""
    part = Part(name)
    entry = read_entry(to_entry(part, item(part, "train", index)))
    answer = changes.pop("answer", entry["answer"])
    return entry | {"answer": answer, "metadata": entry["metadata"] | changes}


def both(name, answer, entry):
    """(theirs, ours)"""
    theirs = library.create(name, {}, seed=0, size=1)
    return theirs.score_answer(answer, entry), SCORERS[name](answer, entry, theirs)


@pytest.mark.parametrize("name", sorted({*SCORERS} - {*REFUSED}))
def test_ours_pays_for_right_answers(name):
    for index in range(4):
        entry = entry_of(name, index)
        assert both(name, entry["answer"], entry)[1] == 1.0, entry["answer"]


@pytest.mark.parametrize("name", RUNS_ANSWERS)
def test_theirs_runs_the_answer_and_ours_does_not(name, tmp_path):
    trace, entry = tmp_path / "trace", entry_of(name)
    code = f"__import__('pathlib').Path({str(trace)!r}).touch()"
    theirs = library.create(name, {}, seed=0, size=1)
    assert SCORERS[name](code, entry, theirs) == 0.0 and not trace.exists()
    theirs.score_answer(code, entry)
    assert trace.exists()


def test_theirs_runs_the_problem_of_the_row_and_ours_does_not(tmp_path):
    trace = tmp_path / "trace"
    entry = entry_of(
        "bitwise_arithmetic", problem=f"__import__('pathlib').Path({str(trace)!r}).touch()"
    )
    theirs = library.create("bitwise_arithmetic", {}, seed=0, size=1)
    assert (
        SCORERS["bitwise_arithmetic"](entry["answer"], entry, theirs) == 1.0 and not trace.exists()
    )
    theirs.score_answer("0x1", entry)
    assert trace.exists()


def shifted(answer, by):
    return json.dumps(
        [str(Decimal(value) + Decimal(by)) for value in json.loads(answer.replace("'", '"'))]
    )


def test_what_theirs_pays_in_full():
    def check(name, answer, entry, ours=0.0):
        assert both(name, answer, entry) == (1.0, ours), (name, answer, entry["answer"])

    check("puzzle24", "6*4*1*1", entry_of("puzzle24", numbers=[3, 3, 8, 8]))  # other numbers
    check("puzzle24", "6*4 + 1/9", entry_of("puzzle24", numbers=[6, 4, 1, 9]))  # 24 and a ninth
    for index in range(3):
        check("game_of_life_halting", "perhaps", entry_of("game_of_life_halting", index))
    check("coin_flip", "0", entry_of("coin_flip", answer="0.3125"))
    check("coin_flip", "0", entry_of("coin_flip", answer="0.00006103515625"))
    check("complex_arithmetic", "nan", entry_of("complex_arithmetic"))
    check("decimal_arithmetic", "0", entry_of("decimal_arithmetic", answer="0.000214"))
    check(
        "number_sorting",
        shifted(entry_of("number_sorting")["answer"], "0.9"),
        entry_of("number_sorting"),
    )
    check("polynomial_equations", "none", entry_of("polynomial_equations", answer=""))
    check("pool_matrix", "9.05 4", entry_of("pool_matrix", answer="9 4"), ours=0.1)
    check(
        "game_of_life", "[[0, 1, 1], [1, 0]]", entry_of("game_of_life", answer="[[0, 1], [1, 0]]")
    )
    check("gsm_symbolic", "5 or 6", entry_of("gsm_symbolic", answer="5"))
    check("gsm_symbolic", "-5", entry_of("gsm_symbolic", answer="5"))
    fraction = {"simplified_numerator": 3, "simplified_denominator": 4}
    check(
        "fraction_simplification",
        r"\frac{3}{4} or \frac{4}{3}",
        entry_of("fraction_simplification", **fraction),
    )
    check("letter_jumble", "you see or not", entry_of("letter_jumble", answer="You see"))
    words = entry_of("word_sorting")
    check("word_sorting", f"{words['answer']}, other", words)
    check(
        "time_intervals",
        "39 or 40 days",
        entry_of("time_intervals", answer="39 days", task_type="date"),
    )
    check("figlet_font", "abcdefghijx", entry_of("figlet_font", answer="abcdefghijk"))
    sokoban = entry_of("sokoban")
    check("sokoban", f"or {sokoban['answer']}", sokoban)
    lock = entry_of("quantum_lock")
    check("quantum_lock", f"{lock['answer']} or 12", lock)


DEVILS = {
    "names": ["Emma", "Liam"],
    "knight_knave_terms": {
        "knight": "angel",
        "knave": "devil",
        "a_knight": "an angel",
        "a_knave": "a devil",
        "Knight": "Angel",
        "Knave": "Devil",
    },
    "answer": "Emma is an angel, and Liam is a devil.",
}


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Emma is an angel, and Liam is a devil.", True),
        ("Emma is an angel, and Liam is a devil", True),
        ("emma is an angel and liam is a devil", True),
        ("Liam is a devil, Emma is an angel", True),
        ("Emma is an angel. Liam is a devil.", True),
        ("Emma is angel, Liam is devil", True),
        ("Emma is a angel\nLiam is a devil\n", True),  # as the question's own format has it
        ("So Emma is an angel, and Liam is a devil.", True),
        ("Therefore, Emma is an angel, and Liam is a devil.", True),
        # what theirs pays
        ("not Emma is an angel, and Liam is a devil", False),
        ("Emma is not an angel, and Liam is a devil", False),
        ("Emma is an angel, and Liam is not a devil", False),
        ("Emma is an angel, and not Liam is a devil", False),
        ("if Emma is an angel then Liam is a devil", False),
        ("Emma is an angel if and only if Liam is a devil", False),
        ("Emma is an angel or Liam is a devil", False),
        ("it is not the case that (Emma is an angel and Liam is a devil)", False),
        ("either Emma is an angel, or Liam is a devil", False),
        ("Liam said that Emma is an angel and Liam is a devil", False),
        ("It is wrong that Emma is an angel, and Liam is a devil", False),
        ("Not quite: Emma is an angel, and Liam is a devil", False),
        ("Emma is an angel, and Liam is a devil. Or not.", False),
        ("Emma is an angel, and Liam is a devil?", False),
        ("Emma is an angel, and Liam is a devil, unless", False),
        # what neither pays
        ("Emma is an angel, and Liam is an angel", False),
        ("Emma is a devil, and Liam is an angel", False),
        ("Emma is an angel", False),
        ("Emma is an angel, Emma is a devil, and Liam is a devil", False),
        ("Emma is an angel, Liam is a devil, and Noah is a devil", False),
        ("Emma is an angel/devil, and Liam is an angel/devil", False),
        ("Emma is a knight, and Liam is a knave", False),
        ("angel devil", False),
        ("", False),
    ],
)
def test_who_is_a_knight_is_stated_and_nothing_else(answer, right):
    entry = entry_of("knights_knaves", **DEVILS)
    theirs = library.create("knights_knaves", {}, seed=0, size=1)
    score = SCORERS["knights_knaves"](answer, entry, theirs)
    assert (score == 1.0) is right
    assert score <= theirs.score_answer(answer, entry)


def test_statements_of_the_question_earn_nothing():
    """Each person's own words, which are mostly an implication or the like about all of them."""
    theirs = library.create("knights_knaves", {}, seed=0, size=1)
    paid = 0
    for index in range(40):
        entry = entry_of("knights_knaves", index)
        for sentence in entry["question"].split(". ")[2:]:
            copied = sentence.partition("(Format")[0].strip()
            assert SCORERS["knights_knaves"](copied, entry, theirs) < 1.0
            paid += theirs.score_answer(copied, entry) == 1.0
            said = re.search(r'"(.+?)[.,]?"', copied)
            if said and " is " in said[1]:
                paid += theirs.score_answer(said[1], entry) == 1.0
                if re.search(r"\b(?:if|or|not)\b", said[1]):
                    assert SCORERS["knights_knaves"](said[1], entry, theirs) < 1.0
    assert paid  # by theirs


def test_a_turn_a_billion_times_is_not_tried():
    assert SCORERS["rubiks_cube"]("R999999999", entry_of("rubiks_cube"), None) == 0.0
    assert SCORERS["rush_hour"]("A+999999999", entry_of("rush_hour"), None) == 0.0


@pytest.mark.parametrize(
    ("name", "changes", "answer", "score"),
    [
        ("coin_flip", {"answer": "0.3125"}, "5/16", 1.0),
        ("coin_flip", {"answer": "0.3125"}, "0.3125000", 1.0),
        ("coin_flip", {"answer": "0.3125"}, "0.32", 0.0),
        ("coin_flip", {"answer": "0.003173828125"}, "0.0032", 1.0),
        ("coin_flip", {"answer": "0.3125"}, "1/0", 0.0),
        ("coin_flip", {"answer": "0.3125"}, "1e999999999", 0.0),
        ("bitwise_arithmetic", {"answer": "0x3eb2"}, "16050", 1.0),
        ("bitwise_arithmetic", {"answer": "0x3eb2"}, "3eb2", 0.0),
        ("decimal_arithmetic", {"answer": "-12.582507840"}, "-12.58250784", 1.0),
        ("decimal_arithmetic", {"answer": "-12.582507840"}, "-12.5825", 0.0),
        ("number_sorting", {"answer": "['-1.5', '2', '10.0']"}, "[-1.5, 2.0, 10]", 1.0),
        ("number_sorting", {"answer": "['-1.5', '2', '10.0']"}, "[2, -1.5, 10]", 0.0),
        ("number_sorting", {"answer": "['-1.5', '2', '10.0']"}, "[NaN, 2, 10]", 0.0),
        ("polynomial_equations", {"answer": "-3.625, 0.0"}, "0, -3.625", 1.0),
        ("polynomial_equations", {"answer": "-3.625, 0.0"}, "0, -3.625, 1", 0.0),
        ("polynomial_equations", {"answer": "-3.625, 0.0"}, "0, nan", 0.0),
        ("polynomial_equations", {"answer": '""'}, '""', 1.0),
        ("pool_matrix", {"answer": "2.33 4\n1 0"}, "2.333 4.0\n1 0", 1.0),
        ("pool_matrix", {"answer": "2.33 4\n1 0"}, "2.33 4 1 0", 0.0),
        ("pool_matrix", {"answer": "2.33 4\n1 0"}, "nan 4\n1 0", 0.0),
        ("game_of_life_halting", {"answer": "False"}, "false", 1.0),
        ("gsm_symbolic", {"answer": "1250"}, "$1,250.00", 1.0),
        ("gsm_symbolic", {"answer": "-5"}, "-5", 1.0),
        (
            "fraction_simplification",
            {"simplified_numerator": 3, "simplified_denominator": 4},
            "3/4",
            1.0,
        ),
        (
            "fraction_simplification",
            {"simplified_numerator": 3, "simplified_denominator": 4},
            r"\frac{3}{4}",
            1.0,
        ),
        (
            "time_intervals",
            {"answer": "3 days, 04:05", "task_type": "datetime"},
            "3 days, 04:05:00",
            1.0,
        ),
        ("time_intervals", {"answer": "1 days", "task_type": "date"}, "1 day", 1.0),
        ("letter_jumble", {"answer": "You see"}, "you  see", 1.0),
        ("spiral_matrix", {"answer": "1 2 3"}, "[1, 2, 3]", 0.1),
        ("binary_matrix", {"answer": "1 2\n3 4"}, "[[1, 2], [3, 4]]", 0.1),
        ("string_insertion", {"answer": "AB"}, "['A', 'B']", 0.1),
        ("string_insertion", {"answer": "AB"}, "[1, 2]", 0.0),
        ("puzzle24", {"numbers": [3, 3, 8, 8]}, "8/(3 - 8/3)", 1.0),
        ("puzzle24", {"numbers": [3, 3, 8, 8]}, "3*8", 0.0),
    ],
)
def test_ours(name, changes, answer, score):
    theirs = library.create(name, {}, seed=0, size=1)
    assert SCORERS[name](answer, entry_of(name, **changes), theirs) == score


@pytest.mark.parametrize(
    ("answer", "integrand", "right"),
    [
        ("x**3/3 + C", "x**2", True),
        ("x^3/3", "x**2", True),
        ("x**3/3 + 7", "x**2", True),
        ("x**3/3 + x", "x**2", False),
        ("log(Abs(x)) + C", "1/x", True),
        ("ln(x)", "1/x", True),
        ("x*exp(x) - exp(x) + C", "x*exp(x)", True),
        ("x*E**x - E**x", "x*exp(x)", True),
        ("-log(cos(x))", "tan(x)", True),
        ("asin(x)", "1/sqrt(1 - x**2)", True),
        ("sin(x)**2/2", "sin(x)*cos(x)", True),
        ("-cos(x)**2/2", "sin(x)*cos(x)", True),
        ("y**2", "2*x", False),
        ("x*asin(3*x) + sqrt(1 - 9*x**2)/3", "asin(3*x)", True),  # defined and real near 0 alone
        ("2*(0 - 2*x - 4)**(3/2)", "-6*sqrt(-2*x - 4)", True),  # below -2 alone
        ("log(0) + x", "1", False),
        ("1e999*x", "1", False),
        ("C", "0", True),
        ("", "0", False),
        ("x", "1 + nan", False),
        ("10**9**9**9*x", "x", False),
        ("(" * 500 + "x", "1", False),
        ("x + " * 5000 + "x", "5001", False),  # deeper than is read
        ("__import__('os')._exit(3)", "1", False),
        ("(lambda: 0)()", "1", False),
        ("x.__class__", "1", False),
        ("exp(*[x])", "exp(x)", False),
    ],
)
def test_integrals(answer, integrand, right):
    assert is_antiderivative(answer, integrand, "x") is right


@pytest.mark.parametrize(
    ("answer", "gold", "right"),
    [
        ("-665614*y + 934619*y**3", "934619*y**3 - 665614*y", True),
        ("y*y*x", "x*y**2", True),
        ("x/2 + x/2", "x", True),
        ("(x + 1)*(x - 1)", "x**2 - 1", False),
        ("(x + 1)**2", "x**2 + 2*x + 1", False),
        ("x**-1", "1", False),
        ("x**99999999999", "x", False),
        ("9**9**9**9", "1", False),
        ("0*x", "0", True),
        ("x/0", "x", False),
        ("1.0*x", "x", False),
        ("True*x", "x", False),
        ("", "0", False),
        ("+".join(["x"] * 100), "100*x", True),
        ("+".join(["x"] * 900), "900*x", False),  # deeper than is read, and than Python's stack
    ],
)
def test_products_of_polynomials(answer, gold, right):
    assert same_polynomial(answer, gold) is right


def test_numbers_have_an_end():
    assert [number(text) for text in ("٣", "1_000", "0x10", "1e1000", "9" * 301, "")] == [None] * 6
