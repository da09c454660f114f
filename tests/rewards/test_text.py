"""external_reasoning_steps and external_language_consistency: what is counted in a reasoning, and
what is not.
"""

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import done_within
from swift_rlvr.rewards.language_consistency import (
    LANGUAGES,
    LanguageConsistencyReward,
    count_words,
)
from swift_rlvr.rewards.reasoning_steps import ReasoningStepsReward, steps
from swift_rlvr.verifiers.thinking import reasoning


def one(reward, text, **columns):
    (grade,) = reward.grades([text], **{name: [value] for name, value in columns.items()})
    assert grade.reason in reward.reasons
    explanation = reward.explain(text, columns)
    assert explanation[:2] == grade
    assert any(rule.passed is False for rule in explanation.rules) is (
        grade.reward is None or grade.reward < 0.99
    )
    return grade


REASONING = [
    # (text, the part that holds its reasoning)
    ("a", "a"),
    ("<think>a</think>b<answer>c</answer>", "a"),
    ("a</think>b<answer>c</answer>", "a"),  # opened by the prompt
    ("x<think>a</think>b<think>c</think>d", "a</think>b<think>c"),  # all that is thought
    ("<think>a <answer>1</answer></think><answer>c</answer>", "a <answer>1</answer>"),
    ("a<answer>c</answer>", "a"),
    ("a<answer>b</answer>c<answer>d", "a<answer>b</answer>c"),
    ("<think>a<answer>c</answer>", "a"),  # never closed
    ("<think>a", "a"),
    ("a<|im_end|>\n", "a"),
    ("<answer>c</answer>", ""),
    ("", ""),
]


@pytest.mark.parametrize(("text", "part"), REASONING)
def test_reasoning(text, part):
    assert reasoning(text) == part


STEPS = [
    # (text, number of steps)
    ("Step 1: Add.\nStep 2: Double.\nStep 3: Halve.", 3),
    ("Step 1: Add. Step 2: Double.", 2),  # on one line
    ("Step 1:\nAdd them.\nStep 2:\nDouble it.", 2),  # its text may stand below
    ("1. Add\n2. Double\n10. Halve", 3),
    ("We do:\n- add\n- double", 2),
    ("We do:\n* add\n* double", 2),
    ("First, add. Second, double. Next, halve. Finally, write.", 4),
    ("- add\n  - the tens\n  - the ones", 3),  # indented
    ("x\n- 3 + 4 = 7", 1),
    ("x\n-3 + 4 = 1", 1),  # as in the recipe, without a space
    ("x\n**Bold** text", 1),  # so, too
    ("1、相加\n2、相乘", 2),
    ("步骤1：相加。步骤 2: 相乘。步骤三：相减。", 3),
    ("第一步：相加。第二步，相乘。", 2),
    ("首先，相加。其次相乘。然后，相减；接着相除。最后写下。", 5),
    ("第一，相加；第二，相乘。", 2),
    # no steps
    ("It is 7.", 0),
    ("first, we add; nextly, or Next we", 0),
    ("Step one: add", 0),
    ("Footstep 1: add", 0),
    ("1.5 + 2 = 3.5\n2.25", 0),  # decimal numbers
    ("a 1. b - c * d", 0),  # not at the beginning of a line
    ("十个里最后一个", 0),  # in the middle of a clause
    # markers with nothing behind them
    ("-\n-\n-", 0),
    ("- \n* \n1. \n2.\n", 0),
    ("---\n***", 0),
    ("First, Second, Next, Finally,", 0),
    ("Step 1: Step 2: Step 3:", 0),
    ("Step 1: ...\nStep 2: ...", 0),
    ("- \ntext below a bullet is not its own", 0),
    ("首先，其次，最后，", 0),
    # the same text again
    ("Step 1: Add.\nStep 1: Add.\nStep 1: Add.", 1),
    ("1. add\n2. add\n3.  ADD ", 1),
    ("- a\n- b\n- a\n- b", 2),
    # one step with two markers
    ("- Step 1: add\n- Step 2: double", 2),
    ("**Step 1:** add\n**Step 2:** double", 2),
    ("1. First, add", 1),
    # the reasoning alone
    ("<think>\n- add\n- double\n</think>\n<answer>\n- 1\n- 2\n</answer>", 2),
    ("<think>It is 7.</think><answer>1. a\n2. b\n3. c</answer>", 0),
    ("- add\n<answer>\n- 7\n</answer>", 1),
    ("- add\n</think>\n- 7", 1),
    ("<think>- add", 1),  # at the very beginning, and cut off
    ("- <|im_end|>", 0),
]


@pytest.mark.parametrize(("text", "count"), STEPS)
def test_reasoning_steps(text, count):
    assert len(steps(reasoning(text))) == count
    reason = "no steps" if count == 0 else "few steps" if count < 3 else "enough steps"
    assert one(ReasoningStepsReward(), text) == (min(1.0, count / 3), reason)
    assert one(ReasoningStepsReward(steps=5), text).reward == min(1.0, count / 5)


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_no_text_has_no_steps(text):
    assert one(ReasoningStepsReward(), text) == (0.0, "no text")


MARKERS = [
    "Step 1: ",
    "Step 2: ",
    "\n1. ",
    "\n- ",
    "\n* ",
    "First, ",
    "Second, ",
    "Next, ",
    "Finally, ",
]


@given(st.lists(st.sampled_from(MARKERS), max_size=8))
def test_with_different_text_behind_each_marker_the_count_is_the_recipe(markers):
    text = "".join(f"{marker}do {number} things.\n" for number, marker in enumerate(markers))
    text = "\n" + text
    recipe = re.findall(
        r"Step \d+:|^\d+\.|\n-|\n\*|First,|Second,|Next,|Finally,", text, re.MULTILINE
    )
    assert one(ReasoningStepsReward(), text).reward == min(1.0, len(recipe) / 3)


@given(st.text(alphabet="-*1. \nStep:First,a", max_size=60))
def test_more_of_the_same_earns_nothing(text):
    assert set(steps(text + "\n" + text)) <= set(steps(text + "\n")) | set(
        steps("\n" + text)
    ) | set(steps(text))


WORDS = [
    # (text, words by script)
    ("We add them.", {"Latin": 3}),
    ("it's well-known", {"Latin": 3}),
    ("Größe, naïve, cafe\u0301", {"Latin": 3}),
    ("I have a x and y, π", {"Latin": 2}),  # single letters may be variables
    ("我们相加", {"Han": 4}),
    ("我们 add 它们", {"Han": 4, "Latin": 1}),
    ("数を足す", {"Han": 2, "kana": 2}),
    ("답은 수이다", {"Hangul": 2}),
    ("и мы складываем", {"Cyrillic": 3}),
    ("نجمع الأعداد", {"Arabic": 2}),
    ("हम जोड़ते हैं", {"Devanagari": 3}),
    ("נחבר אותם", {"Hebrew": 2}),
    ("προσθέτουμε και", {"Greek": 2}),
    ("เราบวกเลข", {"Thai": 3}),  # nine signs
    ("যোগ করি", {"other": 1}),  # a script without a language here
    # a word has a vowel, also one with an accent
    ("Xqzt brfl mn pqr", {}),
    ("5 cm and 3 kg, LHS, RHS, sqrt", {"Latin": 1}),
    ("là où ça, höchst, tím, sự, rhythm, øl", {"Latin": 8}),
    # prose in code and formulas
    ("```python\nx = 1  # 我们相加\n```", {"Han": 4}),
    ("`相加` $\\text{相加} + x$ \\(\\text{мы складываем}\\)", {"Han": 4, "Cyrillic": 2}),
    ("$$\\text{因为}$$ and ```\nтак как", {"Latin": 1, "Han": 2, "Cyrillic": 2}),
    # nothing that has words
    ("", {}),
    ("3 + 4 = 7, ٣ ३ ３ ½ ² ① Ⅳ ℝ 𝑥 µ", {}),
    ("<think> </answer> <br/> <|im_end|>", {}),
    ("$x = \\text{speed}$ $$a\nspeed$$", {}),
    (r"\(\text{speed}\) \[\text{speed}" + "\n" + r"\frac{a}{b}\]", {}),
    (r"\frac{1}{2} \begin{align*} 1 \end{align*} \cdot", {}),
    ("`speed = 1` ```python\nspeed = distance / time\n```", {}),
    ("```python\nspeed = distance / time", {}),  # cut off
    ("https://example.com/a_page?x=1 www.example.org", {}),
    # what only looks like it
    ("it costs $5 today\nand more", {"Latin": 5}),
    (r"\( never closed" + "\n" + r"here \)", {"Latin": 3}),  # inline formulas stay on their line
    (r"a \[ never closed", {"Latin": 2}),
    (r"line \\(not a formula\\)", {"Latin": 3}),
    ("见https://example.com。然后", {"Han": 3}),  # an address ends where its characters do
    ("3 < 4 but not > 5", {"Latin": 2}),
]


@pytest.mark.parametrize(("text", "words"), WORDS)
def test_count_words(text, words):
    assert count_words(text) == words


NAMED = ("Latin", "Greek", "Cyrillic", "Hangul", "Arabic", "Devanagari", "Hebrew", "Thai")
NAMES = {name.upper(): name for name in NAMED}
NAMES |= {"CJK": "Han", "HIRAGANA": "kana", "KATAKANA": "kana"}
OTHERS = (
    "BENGALI",
    "TAMIL",
    "TELUGU",
    "LAO",
    "KHMER",
    "MYANMAR",
    "GEORGIAN",
    "ARMENIAN",
    "ETHIOPIC",
    "TIBETAN",
)
NO_LETTERS = (
    "SUBSCRIPT",
    "MATHEMATICAL",
    "NUMERAL SIGN",
)  # signs of formulas and figures, though Unicode says letters


def test_the_scripts_are_those_that_unicode_names():
    wrong = []
    for code in [
        *range(0x1_0000),
        *range(0x2_0000, sys.maxunicode + 1),
    ]:  # between them are historical scripts
        letter = chr(code)
        name = unicodedata.name(letter, "") if letter.isalpha() else ""
        first = name.removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ").split(" ")[0]
        script = NAMES.get(first, "other" if first in OTHERS else None)
        if script is None or any(sign in name for sign in NO_LETTERS) or code in (0x2184, 0xAB65):
            continue
        # a Latin word has a vowel
        word = f"{letter}a{letter}" if script == "Latin" else letter * 4
        if count_words(word).keys() != {script}:
            wrong.append(f"{code:04x} {name}")
    assert not wrong


LANGUAGE = [
    # (language, text, reward, reason)
    ("en", "<think>We add them.</think><answer>相加</answer>", 1.0, "consistent"),
    ("en", "<think>We add 它</think>", 2 / 3, "mixed"),
    ("en", "<think>We 相加它</think>", 1 / 4, "other language"),
    ("en", "<think>我们相加</think><answer>We add</answer>", 0.0, "other language"),
    (
        "en",
        "We add them. <answer>七</answer>",
        1.0,
        "consistent",
    ),  # without a think part: before the answer
    ("en", "We add them.", 1.0, "consistent"),
    ("en", "we " * 99 + "它", 0.99, "consistent"),
    ("en", "<think>3 + 4 = $x$</think>", 0.0, "no words"),
    ("en", "<answer>We add</answer>", 0.0, "no words"),
    ("en", "<think>Xqzt brfl</think>", 0.0, "no words"),
    # what hides from a think part, and from the words
    ("en", "<think>We add.</think>我们相加<answer>7</answer>", 2 / 6, "other language"),
    ("en", "<think>We add.</think><answer>7</answer>我们相加", 2 / 6, "other language"),
    ("en", "我们相加<think>We add.</think><answer>7</answer>", 2 / 6, "other language"),
    ("en", "我们相加<think>We add.</think>", 2 / 6, "other language"),
    ("en", "<think>We add.\n```\n我们相加\n```</think>", 2 / 6, "other language"),
    ("en", "<think>We add. $\\text{我们相加}$</think>", 2 / 6, "other language"),
    ("zh", "<think>相加</think>We add them all<answer>7</answer>", 2 / 6, "other language"),
    ("zh", "<think>我们相加\n```python\nx = 1  # 相加\n```</think>", 1.0, "consistent"),
    # without an answer block what follows the think part is the answer
    ("en", "<think>We add.</think> 七", 1.0, "consistent"),
    ("en", "<think>We add.</think><answer>七", 1.0, "consistent"),
    ("en", "", 0.0, "no text"),
    ("en", None, 0.0, "no text"),
    ("zh", "我们把 x 和 $\\text{speed}$ 相加", 1.0, "consistent"),
    ("zh", "我们把它们 multiply", 5 / 6, "mixed"),  # one word is one word, however long
    ("zh", "数を足す", 2 / 4, "mixed"),
    ("ja", "数を足す", 1.0, "consistent"),
    ("ja", "我们把它们相加", 0.0, "other language"),  # Han alone is not Japanese
    ("ja", "我们把它们相加の", 5 / 8, "mixed"),  # and one kana does not make it so
    ("ko", "답은 칠이다", 1.0, "consistent"),
    ("ru", "Мы складываем numbers", 2 / 3, "mixed"),
    ("uk", "Ми додаємо їх", 1.0, "consistent"),
    ("ar", "نجمع الأعداد", 1.0, "consistent"),
    ("hi", "हम जोड़ते हैं", 1.0, "consistent"),
    ("th", "เราบวกเลข", 1.0, "consistent"),
    ("el", "προσθέτουμε και", 1.0, "consistent"),
    ("he", "נחבר אותם", 1.0, "consistent"),
    ("de", "Wir größere Zahlen", 1.0, "consistent"),
    ("fr", "Nous élevons", 1.0, "consistent"),
    ("es", "Sumamos mañana", 1.0, "consistent"),
    ("en", "যোগ করি", 0.0, "other language"),
    ("zh-CN", "相加", 1.0, "consistent"),
    (" ZH_hans ", "相加", 1.0, "consistent"),
    ("python", "We add", None, "unknown language"),
    ("", "We add", None, "unknown language"),
    (3, "We add", None, "unknown language"),
    (float("nan"), None, None, "unknown language"),
]


@pytest.mark.parametrize(("language", "text", "reward", "reason"), LANGUAGE)
def test_language_consistency(language, text, reward, reason):
    assert one(LanguageConsistencyReward(), text, language=language) == (reward, reason)
    if reward is not None:
        assert one(LanguageConsistencyReward(language=language), text) == (reward, reason)


def test_the_column_overrides_the_parameter_where_it_has_a_value():
    reward = LanguageConsistencyReward(language="zh")
    assert reward(["相加"] * 4, language=["en", None, "zh", "??"]) == [0.0, 1.0, 1.0, None]
    assert reward(["相加"]) == [1.0]


@given(st.text(max_size=80), st.sampled_from(list(LANGUAGES)))
def test_the_share_is_a_share(text, language):
    assert 0.0 <= one(LanguageConsistencyReward(language=language), text).reward <= 1.0


HUGE = 400_000
UNITS = [
    "ab ",
    "中 ",
    "- a\n",
    "Step 1: ",
    "First, a%",
    "1.\n",
    "$a",
    "```",
    "<",
    "\\(",
    "\\[",
    "a'",
    "http://",
    "<think>",
]


@pytest.mark.parametrize("unit", UNITS)
def test_time_is_linear_in_the_text(unit):
    text = unit * (HUGE // len(unit))
    texts = [text, f"<think>\\({text}</think>", f"<think>\\[{text}</think>"]
    with done_within(300):  # 1 or 2; quadratic time would be many minutes
        for reward in (ReasoningStepsReward(), LanguageConsistencyReward()):
            reward(texts)
