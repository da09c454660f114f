"""The math verifier from text to verdict: which mark decides, which golds can be graded, what is judged how often."""

import pytest
from hangs import done_within
from hypothesis import given, settings
from hypothesis import strategies as st
from swift_rlvr.math_answers import Reason
from swift_rlvr.math_answers.verifier import MAX_ANSWER_CHARS, read_gold

MEGABYTE = 1_000_000


@pytest.fixture
def batches(verifier, monkeypatch):
    """The jobs that reach the worker processes, call by call."""
    seen, run = [], verifier.pool.run

    def spy(jobs):
        seen.append([(job.gold_text, list(job.answers)) for job in jobs])
        run(jobs)

    monkeypatch.setattr(verifier.pool, "run", spy)
    return seen


def one(verifier, text, gold):
    (verdict,) = verifier.grade_all([text], [gold])
    return verdict


@pytest.mark.parametrize(
    "text, marked, answer",
    [
        ("<answer>5</answer>", "answer tag", "5"),
        (r"\boxed{4} <answer>5</answer>", "answer tag", "5"),
        (r"<answer>5</answer> \boxed{4}", "answer tag", "5"),
        (r"<answer>4 or \boxed{5}</answer>", "boxed", "5"),
        (r"<answer>4</answer> and <answer> 5 </answer>", "answer tag", "5"),
        (r"\boxed{4} then \boxed{5}", "boxed", "5"),
        (r"\boxed{5} #### 4", "boxed", "5"),
        (r"\boxed {5}", "boxed", "5"),
        (r"\fbox{5}", "boxed", "5"),
        (r"\boxed{5} and \boxed{4", "boxed", "5"),
        ("#### 4\nno\n#### 5\nmore", "####", "5"),
        (r"<think>\boxed{4}</think> #### 5", "####", "5"),
        (r"<think>#### 4</think>\boxed{5}", "boxed", "5"),
        ("The final answer is $5$.", "text", None),
        ("<think>the answer is 4</think>So the answer is $5$.", "text", None),
        ("Yes.\n" * 5000 + "The answer is $5$.", "text", None),
    ],
)
def test_which_mark_decides(verifier, text, marked, answer):
    verdict = one(verifier, text, "5")
    assert (verdict.reward, verdict.reason, verdict.marked, verdict.gold) == (1.0, Reason.CORRECT, marked, "5")
    assert answer is None or verdict.answer == answer
    assert one(verifier, text, "4").reward == 0.0


@pytest.mark.parametrize(
    "text, gold, reason",
    [
        (None, "5", Reason.NO_ANSWER),
        ("", "5", Reason.NO_ANSWER),
        ("5", "5", Reason.NO_ANSWER),
        ("it is 5", "5", Reason.NO_ANSWER),
        ("I have no answer", "5", Reason.NO_ANSWER),
        ("<answer>5</answer></think> done", "5", Reason.NO_ANSWER),
        (r"\boxed{5", "5", Reason.NO_ANSWER),
        ("The answer is $5$." + " " * 2000 + "x", "5", Reason.NO_ANSWER),
        ("<answer>5", "5", Reason.UNCLOSED_ANSWER),
        ("<think></think><answer>5", "5", Reason.UNCLOSED_ANSWER),
        ("<answer></answer>", "5", Reason.EMPTY_ANSWER),
        (r"<answer> \boxed{ } </answer>", "5", Reason.EMPTY_ANSWER),
        ("####", "5", Reason.EMPTY_ANSWER),
        (rf"\boxed{{{'x+' * 600}x}}", "5", Reason.TOO_LONG),
        (rf"\boxed{{{'x' * 2001}}}", "5", Reason.TOO_LONG),
        (r"\boxed{\frac{}", "5", Reason.NO_ANSWER),
        (r"\boxed{\frac{1}{}}", "5", Reason.UNREADABLE),
        ("<answer>I tried 1, then 2 and then 5</answer>", "5", Reason.UNREADABLE),
        ("<answer>either 4 or 5</answer>", "5", Reason.UNREADABLE),
        (r"\boxed{6}", "5", Reason.WRONG),
        (r"\boxed{\ln 6}", "5", Reason.WRONG),
        (r"\boxed{5}", "5", Reason.CORRECT),
        (r"\boxed{\ln e^5}", "5", Reason.CORRECT),
        (r"\boxed{5}", "", Reason.BAD_GOLD),
        (r"\boxed{\ln 5}", r"\frac{1}{", Reason.BAD_GOLD),
    ],
)
def test_reasons(verifier, text, gold, reason):
    verdict = one(verifier, text, gold)
    assert verdict.reason is reason
    assert verdict.reward == {Reason.CORRECT: 1.0, Reason.BAD_GOLD: None}.get(reason, 0.0)


@pytest.mark.parametrize(
    "gold, text",
    [
        ("7", "7"), (" 7 ", "7"), (7, "7"), (-7, "-7"), (0, "0"), (7.0, "7.0"), (0.1, "0.1"), (10**30, "1" + "0" * 30),
        (1e-7, "1e-07"), (r"$\frac12$", r"$\frac12$"), ("#### 7", "7"), ("so\n#### 1,234\n", "1,234"),
        ("<answer>7</answer>", "7"),
        (r"Thus $x = \boxed{\frac12}$. \boxed{}" [:-9], r"\frac12"), (r"<think>\boxed{1}</think>\boxed{2}", "2"),
        ("yes", "yes"),
        ("x is 7 cm long", "x is 7 cm long"), ("No solution", "No solution"),
    ],
)  # fmt: skip
def test_golds(gold, text):
    assert read_gold(gold).text == text


@pytest.mark.parametrize(
    "gold",
    [None, "", "  ", "$$", "$ $", "####", r"\boxed{}", "<answer> </answer>", True, False, float("nan"), float("inf"),
     -float("inf"), b"7", [7], ["7"], (7,), {"answer": 7}, {7}, object(), 7j, "Let n be even. This proves the claim."],
    ids=lambda gold: repr(gold).partition(" at 0x")[0],
)  # fmt: skip
def test_what_is_no_gold(verifier, gold):
    assert read_gold(gold) is None
    assert one(verifier, r"\boxed{7}", gold) == (None, Reason.BAD_GOLD, None, None, None)


def test_the_gold_is_looked_at_first(verifier):
    for text in (None, "", "<answer>", "<answer></answer>", r"\boxed{x}", "x" * 5000):
        assert one(verifier, text, "$$").reason is Reason.BAD_GOLD


def test_as_many_golds_as_texts(verifier):
    with pytest.raises(ValueError, match="zip"):
        verifier.grade_all(["a", "b"], ["1"])


def test_easy_answers_reach_no_process(verifier, batches):
    texts = [r"\boxed{\sqrt{8}}", "<answer>1/2</answer>", r"\boxed{(2, 1)}", "no", r"\boxed{\frac{x^2-1}{x-1}}"]
    verdicts = verifier.grade_all(texts, [r"2\sqrt{2}", r"50\%", "(1,2)", "7", "x+1"])
    assert [verdict.reward for verdict in verdicts] == [1.0, 1.0, 0.0, 0.0, 1.0]
    assert batches == []


def test_equal_answers_are_judged_once_and_each_gold_is_parsed_once(verifier, batches):
    golds = [r"\ln 9", r"\ln 4"] * 6
    texts = [r"\boxed{2\ln 3}", r"\boxed{2\ln 3}", r"<answer>2\ln 3</answer>", r"\boxed{2\ln 2}"] * 3
    verdicts = verifier.grade_all(texts, golds)
    assert [verdict.reward for verdict in verdicts] == [1.0, 0.0, 1.0, 1.0] * 3
    assert [verdict.marked for verdict in verdicts] == ["boxed", "boxed", "answer tag", "boxed"] * 3
    (jobs,) = batches
    assert [gold for gold, _ in jobs] == [r"\ln 9", r"\ln 4"]
    assert [[answer for answer, _ in answers] for _, answers in jobs] == [[r"2\ln 3"], [r"2\ln 3", r"2\ln 2"]]


def test_solutions_with_one_answer_share_their_gold(verifier, batches):
    golds = [rf"Way {number}: $\boxed{{\ln 9}}$" for number in range(5)]
    assert [verdict.reward for verdict in verifier.grade_all([r"\boxed{2\ln 3}"] * 5, golds)] == [1.0] * 5
    assert [len(jobs) for jobs in batches] == [1]


def test_the_order_of_a_mixed_batch_is_kept(verifier):
    rows = [(r"\boxed{2\ln 3}", r"\ln 9", 1.0), (None, "5", 0.0), (r"\boxed{5}", "5", 1.0), (r"\boxed{5}", None, None),
            (r"\boxed{\ln 7}", r"\ln 9", 0.0), (r"\boxed{6}", "5", 0.0),
            ("the answer is $5$", "5", 1.0)] * 3  # fmt: skip
    texts, golds, rewards = map(list, zip(*rows, strict=True))
    assert [verdict.reward for verdict in verifier.grade_all(texts, golds)] == rewards
    assert [verdict.reward for verdict in verifier.grade_all(texts[::-1], golds[::-1])] == rewards[::-1]


def test_an_answer_of_any_length_may_equal_the_gold(verifier):
    for length in (MAX_ANSWER_CHARS + 1, 3000):
        gold = "7" * length
        assert one(verifier, f"<answer>{gold}</answer>", gold).reward == 1.0
        assert one(verifier, f"<answer>{gold}8</answer>", gold).reason is Reason.TOO_LONG


@pytest.mark.parametrize(
    "text",
    ["x" * MEGABYTE, "(" * MEGABYTE, r"\boxed{" * (MEGABYTE // 7), "<answer>" * (MEGABYTE // 8), "<think>" * 140_000,
     "{" * MEGABYTE,
     "<answer>" + "9" * MEGABYTE + "</answer>", r"\boxed{" + "{" * 400_000 + "}" * 400_000 + "}",
     "####" * (MEGABYTE // 4),
     "\n####" * (MEGABYTE // 5), "answer is " * (MEGABYTE // 10), "Answer: $" * (MEGABYTE // 9),
     "答案" * (MEGABYTE // 2),
     r"\boxed{5}" * (MEGABYTE // 9) + r"\boxed{", "5\n" * (MEGABYTE // 2),
     "</think>" * (MEGABYTE // 8), "\\" * MEGABYTE],
    ids=lambda text: repr(text[:12]),
)  # fmt: skip
def test_texts_of_a_megabyte(verifier, text):
    one(verifier, r"\boxed{\ln 6}", "5")  # started
    with done_within(30):  # 1 is what a comparison may take; most are far below
        assert one(verifier, text, "7").reward == 0.0


def test_a_gold_of_a_megabyte(hurried):
    assert one(hurried, r"\boxed{5}", "x " * 500_000 + r"\boxed{5}").reward == 1.0
    assert one(hurried, r"\boxed{5}", "(" * MEGABYTE).reward in (None, 0.0)


PIECES = st.sampled_from([r"\boxed{", "}", "<answer>", "</answer>", "</think>", "####", "\n", "5", " ",
                          "the answer is ", "$", r"\frac", "{", "or", "x", "=", "\\", "~", "\0"])  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.lists(PIECES, max_size=12).map("".join),
    st.one_of(st.lists(PIECES, max_size=8).map("".join), st.none(), st.floats()),
)
def test_no_text_and_no_gold_raises(verifier, text, gold):
    verdict = verifier.grade_all([text], [gold])[0]
    assert verdict.reward in (0.0, 1.0, None)
    assert (verdict.reward is None) is (verdict.reason is Reason.BAD_GOLD)
    assert (verdict.reward == 1.0) is (verdict.reason is Reason.CORRECT)


@settings(max_examples=60, deadline=None)
@given(st.integers(-(10**6), 10**6), st.integers(-(10**6), 10**6))
def test_numbers_in_every_mark(verifier, number, other):
    texts = [
        f"<answer>{number}</answer>",
        rf"\boxed{{{number}}}",
        f"#### {number:,}",
        rf"<answer>$\boxed{{{number}.0}}$</answer>",
    ]
    for gold in (number, str(number), f"${number}$", f"So\n#### {number}", float(number)):
        assert [verdict.reward for verdict in verifier.grade_all(texts, [gold] * 4)] == [1.0] * 4
    assert {verdict.reward for verdict in verifier.grade_all(texts, [other] * 4)} == {float(number == other)}
