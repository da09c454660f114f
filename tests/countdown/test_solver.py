"""The Countdown solver and the counting of essentially different solutions, against brute force written another way."""

import random
from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from swift_rlvr.countdown import verify
from swift_rlvr.countdown.counting import all_targets, difficulty
from swift_rlvr.countdown.forms import forms_over
from swift_rlvr.countdown.settings import GAME24, OPERATORS, TINY, TUTORIAL, TV, CountdownSettings
from swift_rlvr.countdown.solver import ANYTHING, solutions, solve

NO_FRACTIONS = CountdownSettings(count=(3, 4), number=(1, 20), target=(1, 100), fractions=False)
MINUS_ONLY = CountdownSettings(count=(3, 4), number=(1, 20), target=(1, 100), operators="-")


def results(x, y):
    """Every result of two (numerator, denominator), with the operator and whether it stands in this order."""
    (a, b), (c, d) = x, y
    yield "+", True, (a * d + c * b, b * d)
    yield "-", True, (a * d - c * b, b * d)
    yield "-", False, (c * b - a * d, b * d)
    yield "*", True, (a * c, b * d)
    if c:
        yield "/", True, (a * d, b * c)
    if a:
        yield "/", False, (c * b, d * a)


def values_of(nums, rules):
    """Every value that joining two again and again ends in, as a Fraction, by brute force; allowed ones only."""
    if len(nums) == 1:
        return set(nums)
    values = set()
    for i, j in combinations(range(len(nums)), 2):
        rest = [number for k, number in enumerate(nums) if k not in (i, j)]
        pairs = results(nums[i].as_integer_ratio(), nums[j].as_integer_ratio())
        joined = {Fraction(*value) for kind, _, value in pairs if kind in rules.operators and allowed(value, rules)}
        values = values.union(*(values_of([*rest, value], rules) for value in joined))
    return values


def reachable(nums, rules):
    """The targets within the rules' range, sorted."""
    values = values_of([Fraction(number) for number in nums], rules)
    return sorted(
        int(value) for value in values if value.denominator == 1 and rules.target[0] <= value <= rules.target[1]
    )


def can_make(values, target):
    """Whether joining two values again and again can end in the target: the textbook way to solve a Countdown task."""
    if len(values) == 1:
        return values[0][0] == target * values[0][1]
    for i, j in combinations(range(len(values)), 2):
        rest = [value for k, value in enumerate(values) if k not in (i, j)]
        if any(can_make([*rest, value], target) for _, _, value in results(values[i], values[j])):
            return True
    return False


def allowed(value, rules):
    n, d = value
    return (
        (rules.negative or n * d >= 0)
        and (rules.fractions or n % d == 0)
        and (rules.largest is None or abs(n) <= rules.largest * abs(d))
    )


# Normal forms as nested tuples: ("number", n), ("sum", terms), ("product", sign, factors above, factors below).
# A term is (sign, form); a sign is 0 where the form is its own negative.
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
    return (repr(one) < repr(other)) - (repr(other) < repr(one)), (("sum", min(one, other, key=repr)),), ()


def joined(one, kind, other):
    """The normal form of `one kind other`."""
    if kind in "+-":
        a, b = terms_of(one), terms_of(other)
        return "sum", tuple(sorted(a + (b if kind == "+" else negated(b)), key=repr))
    (s, above, below), (t, above2, below2) = factors_of(one), factors_of(other)
    if kind == "/":
        above2, below2 = below2, above2
    return "product", s * t, tuple(sorted(above + above2, key=repr)), tuple(sorted(below + below2, key=repr))


def forms_by_brute_force(nums, target, rules):
    """The normal forms of all solutions, by joining two parts in every way; allowed ones only."""
    found, seen = set(), set()

    def search(parts):
        state = tuple(sorted(Counter(parts).items(), key=repr))
        if state in seen:
            return
        seen.add(state)
        if len(parts) == 1:
            ((n, d), form) = parts[0]
            if n == target * d:
                found.add(form)
            return
        for i, j in combinations(range(len(parts)), 2):
            rest = [part for k, part in enumerate(parts) if k not in (i, j)]
            (x, form_x), (y, form_y) = parts[i], parts[j]
            for kind, in_order, value in results(x, y):
                if kind in rules.operators and allowed(value, rules):
                    value = Fraction(*value)
                    form = joined(form_x, kind, form_y) if in_order else joined(form_y, kind, form_x)
                    search([*rest, ((value.numerator, value.denominator), form)])

    search([((number, 1), ("number", number)) for number in nums])
    return found


def test_a_thousand_random_tasks_are_solved_exactly_where_brute_force_can():
    rng, solved = random.Random(0), 0
    for _ in range(1000):
        size = rng.choice((2, 3, 3, 4, 4))
        nums, target = [rng.randint(1, rng.choice((9, 30, 99))) for _ in range(size)], rng.randint(1, 100)
        expression = solve(nums, target)
        assert (expression is not None) == can_make([(number, 1) for number in nums], target), (nums, target)
        if expression is not None:
            solved += 1
            assert verify(f"<answer>{expression} = {target}</answer>", nums, target).reward == 1.0
    assert 150 < solved < 850


@pytest.mark.parametrize(("operands", "forms"), [(1, 1), (2, 6), (3, 68), (4, 1170), (5, 27142), (6, 793002)])
def test_different_operands_have_as_many_forms_as_in_the_literature(operands, forms):
    """https://oeis.org/A140606"""
    table = forms_over((1,) * operands)
    assert forms == (table.blocks[-1][1] - table.blocks[-1][0] if operands > 1 else len(table))


@pytest.mark.parametrize("repeats", [(2,), (2, 1), (3,), (2, 2), (3, 1), (2, 1, 1), (4,), (2, 2, 1), (5,)])
def test_no_form_is_missed_by_listing_each_once(repeats):
    once, every_way = forms_over(repeats), forms_over(repeats, every_way=True)
    keys = [table.key[slice(*table.blocks[-1])].tolist() for table in (once, every_way)]
    assert len(set(keys[0])) == len(keys[0]) and set(keys[0]) == set(keys[1])


@pytest.mark.parametrize(
    "rules", [ANYTHING, TINY, NO_FRACTIONS, MINUS_ONLY, CountdownSettings((2, 4), (1, 9), (1, 9), "-/")]
)
def test_solutions_are_counted_as_by_brute_force(rules):
    rng, total = random.Random(3), 0
    for size, tasks in ((2, 60), (3, 100), (4, 12)):
        nums = [[rng.randint(1, rng.choice((4, 9, 20))) for _ in range(size)] for _ in range(tasks)]
        target = [rng.choice(reachable(each, rules) or [7]) for each in nums]
        expected = [len(forms_by_brute_force(each, goal, rules)) for each, goal in zip(nums, target, strict=True)]
        assert difficulty(np.array(nums), np.array(target), rules)["solutions"].tolist() == expected
        assert [len(solutions(each, goal, rules)) for each, goal in zip(nums, target, strict=True)] == expected
        total += sum(expected)
    assert total > 50


@pytest.mark.parametrize("rules", [TINY, GAME24, NO_FRACTIONS])
def test_all_targets_are_those_of_each_set_of_numbers(rules):
    rng = random.Random(1)
    nums = [[rng.randint(1, 12) for _ in range(4)] for _ in range(12)]
    rows, targets = all_targets(np.array(nums), rules)
    assert list(zip(rows.tolist(), targets.tolist(), strict=True)) == [
        (row, target) for row, each in enumerate(nums) for target in reachable(each, rules)
    ]


# task, number of solutions, operators that suffice, depth
@pytest.mark.parametrize(
    ("nums", "target", "expected"),
    [
        ([3, 3, 8, 8], 24, (1, "-/", 3)),  # 8 / (3 - 8 / 3)
        ([4, 4, 10, 10], 24, (1, "-*/", 3)),  # (10 * 10 - 4) / 4
        ([1, 2, 3], 6, (3, "+", 1)),  # 1 + 2 + 3, 1 * 2 * 3 and 2 * 3 / 1
        ([5, 3, 3], 5, (2, "+-", 1)),  # 5 + 3 - 3 and 5 * 3 / 3
        ([7, 5], 2, (1, "-", 1)),
        ([1, 1, 1], 24, (0, "", 0)),
        ([2, 3, 4], 20, (1, "+*", 2)),  # (2 + 3) * 4
    ],
)
def test_difficulty(nums, target, expected):
    measures = difficulty(np.array([nums]), np.array([target]), ANYTHING)
    assert tuple(column[0] for column in measures.values()) == expected


def test_restrictions_of_intermediate_results():
    whole = CountdownSettings((2, 4), (1, 10), (1, 99), negative=False, fractions=False, largest=99)
    assert solve([3, 3, 8, 8], 24) and solve([3, 3, 8, 8], 24, whole) is None  # only by way of fractions
    products = CountdownSettings((2, 4), (1, 10), (1, 59), operators="*/", fractions=False, largest=59)
    assert solve([4, 6, 10], 15, products) is None  # only by way of 6 * 10
    assert solve([4, 6, 10], 15, CountdownSettings((2, 4), (1, 10), (1, 60), "*/", fractions=False, largest=60))
    assert solve([2, 3, 4], 5, CountdownSettings((2, 4), (1, 10), (1, 60), "-")) == "3 - (2 - 4)"
    assert solve([2, 3, 4], 5, CountdownSettings((2, 4), (1, 10), (1, 60), "-", negative=False)) is None


@pytest.mark.parametrize("size", [5, 6, 7, 8])
def test_many_numbers(size):
    rng = random.Random(size)
    for _ in range(3):
        nums, target = [rng.choice(TV.tiles) for _ in range(size)], rng.randint(101, 999)
        expression = solve(nums, target)
        assert expression is None or verify(f"<answer>{expression}</answer>", nums, target).reward == 1.0
        assert expression is not None or size < 7


def test_large_numbers_are_exact():
    big = 10**9
    assert solve([big, big, big, big - 1], big, TUTORIAL) is not None
    assert solve([big, big - 1, 7, 3], 21) is not None  # (big - (big - 1)) * 7 * 3
    nums = [big, big - 1, big - 2, big - 3]  # (big - 1) * (big - 2) - big * (big - 3) is 2, in a float it is 0
    made = [target for target in range(1, 9) if solve(nums, target) is not None]
    assert (
        made == [target for target in range(1, 9) if can_make([(number, 1) for number in nums], target)] and 2 in made
    )
    assert difficulty(np.array([[big, big, 1]]), np.array([1]), ANYTHING)["solutions"] == [3]  # a-a+1, a/a*1, a/a/1


def test_what_cannot_be_solved_is_refused():
    for nums in ([], [1] * 9):
        with pytest.raises(ValueError, match="expected 1 to 8 numbers"):
            solve(nums, 1)
    with pytest.raises(ValueError, match="expected 1 to 6 numbers, got 7"):
        solutions([1] * 7, 1)
    with pytest.raises(ValueError, match=r"expected whole numbers within 0\.\.1000000000, got -3"):
        solve([1, -3], 1)
    assert solve([7], 7) == "7" and solve([7], 8) is None
    assert OPERATORS == "+-*/"
