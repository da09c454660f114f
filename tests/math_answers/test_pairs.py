"""The table in pairs.py, row by row: in one batch, in the reverse order, and some rows alone."""

import collections

import pytest
from math_answers.pairs import PAIRS

IDS = [f"{number}-{comment}" for number, (_, _, _, comment) in enumerate(PAIRS)]
EXPECTED = [expected for _, _, expected, _ in PAIRS]


def grade(verifier, rows):
    return verifier.grade_all([text for _, text, _, _ in rows], [gold for gold, _, _, _ in rows])


@pytest.fixture(scope="module")
def grades(verifier):
    return grade(verifier, PAIRS)


def describe(number, result):
    gold, text, expected, comment = PAIRS[number]
    return (
        f"{comment}: gold {gold!r}, completion {str(text)[:200]!r}: {result.reward} ({result.reason}), not {expected}"
    )


@pytest.mark.parametrize("number", range(len(PAIRS)), ids=IDS)
def test_reward(grades, number):
    result, expected = grades[number], EXPECTED[number]
    assert result.reward == expected, describe(number, result)
    assert result.reward is None or type(result.reward) is float
    assert isinstance(result.reason, str) and result.reason


@pytest.mark.parametrize("number", range(0, len(PAIRS), 12), ids=IDS[::12])
def test_a_row_alone_is_graded_as_in_the_batch(verifier, grades, number):
    (result,) = grade(verifier, [PAIRS[number]])
    assert (result.reward, result.reason) == (grades[number].reward, grades[number].reason), describe(number, result)


def test_the_order_of_the_batch_does_not_matter(verifier, grades):
    backwards = grade(verifier, PAIRS[::-1])[::-1]
    different = [describe(n, b) for n, (a, b) in enumerate(zip(grades, backwards, strict=True)) if a.reward != b.reward]
    assert not different, "\n".join(different)


def test_no_code_of_a_completion_or_a_gold_runs(verifier, tmp_path):
    marker = tmp_path / "ran"
    code = [
        f"""__import__("os").system("touch {marker}")""",
        f"""open("{marker}", "w")""",
        rf"\input{{|touch {marker}}}",
    ]
    answers = [form % piece for piece in code for form in ("\\boxed{%s}", "<answer>%s</answer>", "#### %s")]
    assert [result.reward for result in verifier.grade_all(answers, ["0"] * len(answers))] == [0.0] * len(answers)
    rewards = [result.reward for result in verifier.grade_all(["\\boxed{0}"] * len(code), code)]
    assert 1.0 not in rewards
    assert not marker.exists()


def test_an_empty_batch(verifier):
    assert verifier.grade_all([], []) == []


def test_the_table_is_long_and_has_no_row_twice():
    keys = collections.Counter((repr(gold), text) for gold, text, _, _ in PAIRS)
    assert [key for key, count in keys.items() if count > 1] == []
    assert [name for name, count in collections.Counter(IDS).items() if count > 1] == []
    assert len(PAIRS) >= 220
    assert collections.Counter(EXPECTED).keys() == {1.0, 0.0, None}
    assert all(comment for _, _, _, comment in PAIRS)
