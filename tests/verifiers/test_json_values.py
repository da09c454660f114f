"""Pairs of golds and answers, against all ways to pair them; JSON against Python's own reader."""

import json
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swift_rlvr.verifiers.json_values import canonical, compare, equal, matched, read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=1), inner),
    max_leaves=8,
)
PAIRS = st.sets(st.tuples(st.integers(0, 3), st.integers(0, 3)))


@given(PAIRS, st.integers(0, 4), st.integers(0, 4))
def test_as_many_are_paired_as_can_be(fitting, golds, answers):
    pairs = matched(range(golds), range(answers), lambda *pair: pair in fitting)
    assert all(pair in fitting for pair in pairs.items())
    assert len(set(pairs.values())) == len(pairs)
    most = 0
    places = [*range(answers), *[None] * golds]
    for order in permutations(places, golds):
        most = max(most, sum((gold, answer) in fitting for gold, answer in enumerate(order)))
    assert len(pairs) == most


@given(VALUES)
def test_what_python_writes_is_read(value):
    assert read_json(json.dumps(value)) == value
    assert equal(value, read_json(json.dumps(value)))


@given(VALUES, VALUES)
def test_values_are_equal_where_their_canonical_texts_are(one, other):
    assert equal(one, other) == (canonical(one) == canonical(other))
    # Which of the two is the gold changes no number of fields.
    assert len(compare(one, other)) == len(compare(other, one))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1", "1.0", True),
        ("1e23", "100000000000000000000000", True),
        ("9007199254740993", "9007199254740992.0", False),
        ("123456789012345678", "123456789012345679", False),
        ("-0.0", "0", True),
    ],
)
def test_large_numbers_are_the_same_as_they_are_written(one, other, same):
    one, other = read_json(one), read_json(other)
    assert equal(one, other) == equal(other, one) == same
    assert (canonical(one) == canonical(other)) == same


@given(st.lists(VALUES, max_size=4), st.data())
def test_the_order_of_lists_does_not_matter_where_it_says_nothing(values, data):
    turned = data.draw(st.permutations(values))
    assert equal(values, turned, unordered=True)
