"""The Countdown solver and the counting of essentially different solutions, against brute force
written another way.
"""

import random
from collections import Counter
from fractions import Fraction
from itertools import combinations

import pytest

from present import present
from swift_rlvr.verifiers.countdown import solver, verify
from swift_rlvr.verifiers.countdown.solver import ANYTHING, difficulty, solve, targets
from swift_rlvr.verifiers.countdown.task_settings import TINY, TV, CountdownSettings

NO_FRACTIONS = CountdownSettings(count=(3, 4), number=(1, 20), target=(1, 100), fractions=False)
MINUS_ONLY = CountdownSettings(count=(3, 4), number=(1, 20), target=(1, 100), operators="-")


def results(x, y):
    """Every result of two (numerator, denominator), with the operator and whether it stands in this
    order.
    """
    (a, b), (c, d) = x, y
    yield "+", True, (a * d + c * b, b * d)
    yield "-", True, (a * d - c * b, b * d)
    yield "-", False, (c * b - a * d, b * d)
    yield "*", True, (a * c, b * d)
    if c:
        yield "/", True, (a * d, b * c)
    if a:
        yield "/", False, (c * b, d * a)


def allowed(value, rules):
    n, d = value
    return (
        (rules.negative or n * d >= 0)
        and (rules.fractions or n % d == 0)
        and (rules.largest is None or abs(n) <= rules.largest * abs(d))
    )


# Normal forms as nested tuples: ("number", n), ("sum", terms), ("product", sign, factors above,
# factors below). A term is (sign, form); a sign is 0 where the form is its own negative.
def terms_of(form):
    if form[0] == "sum":
        return form[1]
    return ((form[1], ("product", 1, *form[2:])),) if form[0] == "product" else ((1, form),)


def negated(terms):
    return tuple(sorted(((-sign, term) for sign, term in terms), key=repr))


def factors_of(form):
    """(sign, factors above, factors below); a sum becomes one factor without its sign."""
    if form[0] == "product":
        return form[1:]
    if form[0] == "number":
        return 1, (form,), ()
    one, other = form[1], negated(form[1])
    return (
        (repr(one) < repr(other)) - (repr(other) < repr(one)),
        (("sum", min(one, other, key=repr)),),
        (),
    )


def joined(one, kind, other):
    """The normal form of `one kind other`."""
    if kind in "+-":
        a, b = terms_of(one), terms_of(other)
        return "sum", tuple(sorted(a + (b if kind == "+" else negated(b)), key=repr))
    (s, above, below), (t, above2, below2) = factors_of(one), factors_of(other)
    if kind == "/":
        above2, below2 = below2, above2
    return (
        "product",
        s * t,
        tuple(sorted(above + above2, key=repr)),
        tuple(sorted(below + below2, key=repr)),
    )


def forms_by_brute_force(nums, rules):
    """value -> the normal forms of all expressions with it, by joining two parts in every way;
    allowed ones only.
    """
    found: dict[Fraction, set] = {}
    seen = set()

    def search(parts):
        state = tuple(sorted(Counter(parts).items(), key=repr))
        if state in seen:
            return
        seen.add(state)
        if len(parts) == 1:
            found.setdefault(Fraction(*parts[0][0]), set()).add(parts[0][1])
            return
        for i, j in combinations(range(len(parts)), 2):
            rest = [part for k, part in enumerate(parts) if k not in (i, j)]
            (x, form_x), (y, form_y) = parts[i], parts[j]
            for kind, in_order, value in results(x, y):
                if kind in rules.operators and allowed(value, rules):
                    value = Fraction(*value)
                    form = (
                        joined(form_x, kind, form_y) if in_order else joined(form_y, kind, form_x)
                    )
                    search([*rest, ((value.numerator, value.denominator), form)])

    search([((number, 1), ("number", number)) for number in nums])
    return found


@pytest.mark.parametrize(("operands", "forms"), [(1, 1), (2, 6), (3, 68), (4, 1170)])
def test_different_numbers_have_as_many_expressions_as_in_the_literature(operands, forms):
    """https://oeis.org/A140606. No two values of these numbers are equal but those of the same
    expression.
    """
    search = solver._Search(ANYTHING)
    nums = (7, 101, 10007, 1000003)[:operands]
    assert sum(len(search.trees(nums, value)) for value in search.values(nums)) == forms


@pytest.mark.parametrize(
    "rules",
    [ANYTHING, TINY, NO_FRACTIONS, MINUS_ONLY, CountdownSettings((2, 4), (1, 9), (1, 9), "-/")],
)
def test_solutions_are_counted_as_by_brute_force(rules):
    rng, total = random.Random(3), 0
    for size, tasks in ((2, 60), (3, 100), (4, 6)):
        for _ in range(tasks):
            nums = [rng.randint(1, rng.choice((4, 9, 20))) for _ in range(size)]
            forms = forms_by_brute_force(nums, rules)
            low, high = rules.target
            reached = sorted(
                int(value) for value in forms if value.denominator == 1 and low <= value <= high
            )
            assert targets(nums, rules) == reached
            target = rng.choice(reached) if reached and rng.random() < 0.8 else rng.randint(1, 40)
            expected = len(forms.get(target, ()))
            assert difficulty(nums, target, rules)[0] == expected
            texts = map(solver._text, solver._Search(rules).trees(tuple(sorted(nums)), target))
            assert all(
                verify(f"<answer>{text}</answer>", nums, target).reward == 1.0 for text in texts
            )
            assert (solve(nums, target, rules) is None) == (expected == 0)
            total += expected
    assert total > 50


def test_with_zeros_among_the_numbers():
    for nums, target in (([0, 3, 5], 0), ([0, 0, 4, 2], 0), ([3, 3, 5, 6], 6), ([2, 2, 7, 7], 0)):
        assert difficulty(nums, target)[0] == len(forms_by_brute_force(nums, ANYTHING)[target])


# task, number of solutions, depth
@pytest.mark.parametrize(
    ("nums", "target", "expected"),
    [
        ([3, 3, 8, 8], 24, (1, 3)),  # 8 / (3 - 8 / 3)
        ([4, 4, 10, 10], 24, (1, 3)),  # (10 * 10 - 4) / 4
        ([1, 2, 3], 6, (3, 1)),  # 1 + 2 + 3, 1 * 2 * 3 and 2 * 3 / 1
        ([5, 3, 3], 5, (2, 1)),  # 5 + 3 - 3 and 5 * 3 / 3
        ([9, 2, 3], 4, (1, 1)),  # 9 - 2 - 3, in whatever order it is computed
        ([7, 5], 2, (1, 1)),
        ([1, 1, 1], 24, (0, 0)),
        ([2, 3, 4], 20, (1, 2)),  # (2 + 3) * 4
        ([10**9, 10**9, 1], 1, (3, 1)),  # a - a + 1, a / a * 1 and a / a / 1
    ],
)
def test_difficulty(nums, target, expected):
    assert difficulty(nums, target) == expected


def test_restrictions_of_intermediate_results():
    whole = CountdownSettings((2, 4), (1, 10), (1, 99), negative=False, fractions=False, largest=99)
    assert (
        solve([3, 3, 8, 8], 24) and solve([3, 3, 8, 8], 24, whole) is None
    )  # only by way of fractions
    products = CountdownSettings(
        (2, 4), (1, 10), (1, 59), operators="*/", fractions=False, largest=59
    )
    assert solve([4, 6, 10], 15, products) is None  # only by way of 6 * 10
    assert solve(
        [4, 6, 10],
        15,
        CountdownSettings((2, 4), (1, 10), (1, 60), "*/", fractions=False, largest=60),
    )
    assert solve([2, 3, 4], 5, CountdownSettings((2, 4), (1, 10), (1, 60), "-")) == "3 - (2 - 4)"
    assert (
        solve([2, 3, 4], 5, CountdownSettings((2, 4), (1, 10), (1, 60), "-", negative=False))
        is None
    )


@pytest.mark.parametrize("size", [5, 6])
def test_many_numbers(size):
    rng = random.Random(size)
    for _ in range(3):
        nums, target = [rng.choice(present(TV.tiles)) for _ in range(size)], rng.randint(101, 999)
        expression = solve(nums, target)
        assert (
            expression is None
            or verify(f"<answer>{expression}</answer>", nums, target).reward == 1.0
        )


def test_what_cannot_be_solved_is_refused():
    for nums in ([], [1] * 7):
        with pytest.raises(ValueError, match="expected 1 to 6 numbers"):
            solve(nums, 1)
    with pytest.raises(ValueError, match=r"expected whole numbers within 0\.\.1000000000, got -3"):
        difficulty([1, -3], 1)
    assert solve([7], 7) == "7" and solve([7], 8) is None
