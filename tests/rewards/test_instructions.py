"""external_instructions: what is judged, its settings, and attempts to be paid for nothing."""

import json
import time

import pytest

from paths import ROOT
from swift_rlvr.rewards import REWARDS
from swift_rlvr.tasks import TASKS, RowError
from swift_rlvr.utils.jsonl import read_jsonl

TEXT = "The Rhine rises in the Alps and flows past Cologne to a cold grey sea"
NO_COMMA = ["punctuation:no_comma"]


def graded(text, constraints, prompt="Describe a river.", **parameters):
    messages = [{"role": "user", "content": prompt}, {"role": "assistant", "content": "?"}]
    reward = REWARDS["instructions"](**parameters)
    ((value, reason),) = reward.grades([text], constraints=[constraints], messages=[messages])
    return value, reason


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT, (1.0, "all met")),
        (f"<think>First, I plan.</think>\n{TEXT}", (1.0, "all met")),
        (f"<think>a, b</think><answer>{TEXT}</answer>", (1.0, "all met")),
        (f"{TEXT}<|im_end|>\n, and more", (1.0, "all met")),
        (f"{TEXT}, slowly", (0.0, "some not met")),
        (f"<think>{TEXT}</think>", (0.0, "no answer")),
        (f"<think>{TEXT}", (0.0, "no answer")),
        ("", (0.0, "no answer")),
        (" \n . - ", (0.0, "no answer")),
        ("A river.", (0.0, "too little text")),
        ("therefore " * 400, (0.0, "too little text")),
        (
            "The quick brown fox jumps over the lazy dog while nobody sees it. " * 40,
            (0.0, "too little text"),
        ),
    ],
)
def test_the_answer_is_what_follows_the_thinking(text, expected):
    assert graded(text, NO_COMMA) == expected


def test_json_may_have_few_words_where_nothing_else_is_asked_for():
    text = '{"name": "Ann Smith", "age": 30, "city": "Paris"}'
    json_format = ["detectable_format:json_format"]
    assert graded(text, json_format) == (1.0, "all met")
    assert graded('{"a": 1}', json_format) == (0.0, "too little text")
    assert graded(text.replace(",", ";"), json_format) == (0.0, "some not met")
    assert graded(text, [*json_format, "startend:quotation"]) == (0.0, "too little text")


def test_a_copy_of_the_prompt_is_no_answer():
    prompt = "Describe a river of Germany that flows through several old cities in plain words."
    assert graded(prompt, NO_COMMA, prompt) == (0.0, "copied from the prompt")
    assert graded(f"{prompt}\n{TEXT}", NO_COMMA, prompt) == (1.0, "all met")


def test_one_that_cannot_be_read_leaves_the_row_ungraded_and_is_named():
    explanation = REWARDS["instructions"]().explain(
        TEXT, {"constraints": '["punctuation:no_comma", "new:thing"]'}
    )
    assert (explanation.reward, explanation.reason) == (None, "bad constraints")
    assert [rule.name for rule in explanation.rules] == ["new:thing"]


def test_each_constraint_is_explained():
    constraints = ["punctuation:no_comma", "detectable_format:title"]
    rules = REWARDS["instructions"]().explain(TEXT, {"constraints": constraints}).rules
    assert [(rule.name, rule.passed, rule.detail) for rule in rules] == [
        ("punctuation:no_comma", True, "commas: 0"),
        ("detectable_format:title", False, "no <<title>>"),
    ]


def test_all_or_the_share():
    constraints = ["punctuation:no_comma", "detectable_format:title"]
    assert graded(TEXT, constraints) == (0.0, "some not met")
    assert graded(TEXT, constraints, partial=True) == (0.5, "some not met")
    assert graded("", constraints, partial=True) == (0.0, "no answer")


@pytest.mark.parametrize("text", [f"Sure, here it is:\n{TEXT}", f"{TEXT}\nWell, bye."])
def test_loose_takes_away_a_line(text):
    assert graded(text, NO_COMMA) == (0.0, "some not met")
    assert graded(text, NO_COMMA, loose=True) == (1.0, "all met")


def test_where_no_rule_can_tell_the_row_is_not_graded_unless_another_constraint_decides():
    verb = {"id": "words:start_verb"}
    text = f"Xyzzy! {TEXT}"
    assert graded(text, [verb]) == (None, "cannot be told")
    assert graded(text, [verb, {"id": "detectable_format:title"}]) == (0.0, "some not met")
    assert graded(text, [verb, {"id": "detectable_format:title"}], partial=True)[0] is None


def test_the_least_text_is_a_setting_and_gives_way_to_the_constraints():
    assert graded("A wide river.", NO_COMMA, min_words=2) == (1.0, "all met")
    assert graded("x", NO_COMMA, min_words=0) == (1.0, "all met")
    few = [
        {
            "id": "length_constraints:number_words",
            "kwargs": {"relation": "less than", "num_words": 7},
        }
    ]
    assert graded("A wide river in Germany.", few) == (1.0, "all met")
    assert graded("My answer is no.", ["detectable_format:constrained_response"])[0] == 1.0


# --- Attempts to be paid for nothing

PROMPT = (
    "Write a travel guide to the river Rhine for a friend who has never been to Germany before. Include "
    "the keywords castle, vineyard and ferry."
)
KEYWORDS = {"id": "keywords:existence", "kwargs": {"keywords": ["castle", "vineyard", "ferry"]}}
OFTEN = {
    "id": "keywords:frequency",
    "kwargs": {"keyword": "castle", "frequency": 5, "relation": "at least"},
}
LONG = {
    "id": "length_constraints:number_words",
    "kwargs": {"num_words": 100, "relation": "at least"},
}
SENTENCES = {
    "id": "length_constraints:number_sentences",
    "kwargs": {"num_sentences": 10, "relation": "at least"},
}
GERMAN = {"id": "language:response_language", "kwargs": {"language": "de"}}
CHINESE = {"id": "language:response_language", "kwargs": {"language": "zh"}}
BULLETS = {"id": "detectable_format:number_bullet_lists", "kwargs": {"num_bullets": 3}}
HIGHLIGHTS = {
    "id": "detectable_format:number_highlighted_sections",
    "kwargs": {"num_highlights": 3},
}
PLACEHOLDERS = {"id": "detectable_content:number_placeholders", "kwargs": {"num_placeholders": 3}}
POSTSCRIPT = {"id": "detectable_content:postscript", "kwargs": {"postscript_marker": "P.S."}}
SECTIONS = {
    "id": "detectable_format:multiple_sections",
    "kwargs": {"section_spliter": "Section", "num_sections": 3},
}
REPEAT = {"id": "combination:repeat_prompt", "kwargs": {"prompt_to_repeat": PROMPT}}
END = {"id": "startend:end_checker", "kwargs": {"end_phrase": "Have a good trip."}}
PARAGRAPHS = {"id": "length_constraints:number_paragraphs", "kwargs": {"num_paragraphs": 3}}
LETTER = {
    "id": "keywords:letter_frequency",
    "kwargs": {"letter": "q", "let_frequency": 20, "let_relation": "at least"},
}
FORBIDDEN = {"id": "keywords:forbidden_words", "kwargs": {"forbidden_words": ["boring"]}}
CAPITAL_WORDS = {
    "id": "change_case:capital_word_frequency",
    "kwargs": {"capital_frequency": 9, "capital_relation": "at least"},
}
SHORT = {
    "id": "length_constraints:number_words",
    "kwargs": {"num_words": 200, "relation": "less than"},
}
PALINDROMES = {"id": "words:palindrome"}
ENGLISH = (
    "You take the train to the old town and walk along the water until the evening comes, and then you "
    "look for a place to eat that is not full of people from all over the world."
)
NOTHING = "I am sorry, but I cannot do that."
# (constraints, completion)
ATTEMPTS = [
    # no answer
    *(
        (constraint, "")
        for constraint in (*NO_COMMA, FORBIDDEN, SHORT, "change_case:english_lowercase")
    ),
    *(
        (constraint, text)
        for constraint in (*NO_COMMA, FORBIDDEN, SHORT)
        for text in (
            ".",
            "ok",
            "\n\n\n",
            "1 2 3 4 5 6 7 8 9 10 11 12 13",
            "a b c d e f g h i j k l m n",
            NOTHING.replace(",", ""),
        )
    ),
    ("change_case:english_capital", "A"),
    ("change_case:english_lowercase", "ok."),
    ("startend:quotation", '""'),
    ("startend:quotation", '"."'),
    ("startend:quotation", '"yes"'),
    ("detectable_format:title", "<<x>>"),
    ("detectable_format:title", "<<A Travel Guide>>"),
    ("detectable_format:json_format", "{}"),
    ("detectable_format:json_format", "[]"),
    ("detectable_format:json_format", "0"),
    ("detectable_format:json_format", json.dumps(ENGLISH)),
    ("detectable_format:json_format", json.dumps({"a": ""})),
    ("combination:two_responses", "a\n******\nb"),
    ("combination:two_responses", f"{ENGLISH}\n******\n{ENGLISH}"),
    ("combination:two_responses", f"{ENGLISH}\n******\n{ENGLISH.upper()}!"),
    (END, "Have a good trip."),
    (BULLETS, "* a\n* b\n* c"),
    (BULLETS, "* * *\n* * *\n* * *"),
    (HIGHLIGHTS, "*a* *b* *c*"),
    (HIGHLIGHTS, f"{ENGLISH}\n* * * * * *"),
    (PLACEHOLDERS, "[ab] [cd] [ef]"),
    (PLACEHOLDERS, f"{ENGLISH} [] [] []"),
    (POSTSCRIPT, f"P.S. {ENGLISH}"),
    (POSTSCRIPT, f"{ENGLISH}\n\nP.S."),
    (SECTIONS, "Section 1\nSection 2\nSection 3"),
    (SECTIONS, f"{ENGLISH} Section 1 Section 2 Section 3"),
    (SECTIONS, f"Section 1\n{ENGLISH}\nSection 1\nso\nSection 1\nso"),
    (PARAGRAPHS, "a\n***\nb\n***\nc"),
    (PARAGRAPHS, f"{ENGLISH}\n***\n***\n"),
    (PARAGRAPHS, f"***{ENGLISH}*** and ***so***"),
    # the prompt again
    (REPEAT, PROMPT),
    (REPEAT, f"{PROMPT}\n\nOk."),
    (REPEAT, f"{PROMPT}\n\n{PROMPT}"),
    (KEYWORDS, PROMPT),
    (KEYWORDS, f"{PROMPT} {PROMPT}"),
    (KEYWORDS, f"You asked: {PROMPT}"),
    (OFTEN, f"{PROMPT} castle castle castle castle"),
    (*NO_COMMA, PROMPT.replace(",", "")),
    ("change_case:english_lowercase", PROMPT.lower()),
    ("change_case:english_capital", PROMPT.upper()),
    ("startend:quotation", f'"{PROMPT}"'),
    ("detectable_format:title", f"<<Guide>>\n{PROMPT}"),
    # in the thinking
    (KEYWORDS, f"<think>{ENGLISH} castle, vineyard, ferry</think>{ENGLISH}"),
    (LONG, f"<think>{ENGLISH * 9}</think>{ENGLISH}"),
    ("detectable_format:title", f"<think><<A Guide>></think>{ENGLISH}"),
    (BULLETS, f"<think>\n* a\n* b\n* c\n</think>\n{ENGLISH}"),
    (KEYWORDS, f"[THINK]castle, vineyard, ferry[/THINK]{ENGLISH}"),
    # stuffed
    (KEYWORDS, f"{ENGLISH}\nKeywords: castle, vineyard, ferry"),
    (KEYWORDS, f"{ENGLISH} castle, vineyard, ferry."),
    (KEYWORDS, f"{ENGLISH}\n\ncastle\nvineyard\nferry"),
    (KEYWORDS, f"{ENGLISH}<|im_end|>A castle, a vineyard and a ferry are there."),
    (KEYWORDS, f"{ENGLISH}</s> The castle above the vineyard waits for the ferry."),
    (KEYWORDS, f"{ENGLISH} Castlevania, vineyarding, ferryman."),
    (OFTEN, f"{ENGLISH}\n{'castle ' * 20}"),
    (OFTEN, f"{ENGLISH} {'castle, ' * 20}"),
    (LETTER, f"{'q' * 40}"),
    (LETTER, f"{'qa ' * 40}"),
    (CAPITAL_WORDS, "A B C D E F G H I J"),
    (LONG, "word " * 200),
    (LONG, "one two three four five six seven eight nine ten eleven twelve " * 20),
    (LONG, f"{'，'.join('好' * 200)}"),
    (LONG, "-" * 400),
    (SENTENCES, ". " * 40),
    (SENTENCES, "Go. " * 40),
    (SENTENCES, f"{ENGLISH} {'! ' * 20}"),
    (PALINDROMES, f"{ENGLISH} {'level ' * 12}"),
    (PALINDROMES, f"{ENGLISH} {'aaaaa bbbbb ccccc ddddd eeeee fffff ggggg hhhhh iiiii jjjjj'}"),
    # another language
    (GERMAN, f"Das ist ein Text auf Deutsch.\n{ENGLISH}"),
    (GERMAN, f"{ENGLISH}\nDas ist ein Text auf Deutsch, und er ist nicht lang."),
    (GERMAN, f"der die das und {ENGLISH}"),
    (GERMAN, ENGLISH),
    (CHINESE, f"你好，这是中文。\n{ENGLISH}"),
    (CHINESE, f"{ENGLISH} 你好"),
    (CHINESE, "好" * 300),
    # vacuous in IFBench
    ("words:last_first", f"{ENGLISH}"),
    (
        "ratio:sentence_type",
        "So many things to see along the way and so little time for all of them!",
    ),
    ("format:quote_unquote", ENGLISH),
    ("format:line_indent", ENGLISH.splitlines()[0]),
    ("format:output_template", "My Answer: My Conclusion: Future Outlook:"),
    ("format:no_whitespace", "x"),
    ({"id": "count:words_japanese", "kwargs": {"N": 90}}, ENGLISH),
]


def test_there_are_enough_attempts():
    assert len(ATTEMPTS) >= 60


@pytest.mark.parametrize(("constraint", "completion"), ATTEMPTS)
def test_none_is_paid_for_nothing(constraint, completion):
    for parameters in ({}, {"partial": True}):
        assert graded(completion, [constraint], PROMPT, **parameters)[0] == 0.0


# --- The task


def test_the_rows_of_datasets():
    task = TASKS["instructions"]
    prompt = {"prompt": "Describe it."}
    asked = [{"role": "user", "content": "Describe it."}]
    written = '[{"id": "punctuation:no_comma", "kwargs": {}}]'
    rows: list[dict] = [
        {**prompt, "instruction_id_list": NO_COMMA, "kwargs": [{"num_words": None}], "key": 1},
        {"messages": asked, "ground_truth": '{"func_name": "validate_no_commas", "N": null}'},
        {
            "messages": asked,
            "ground_truth": "[{'instruction_id': ['punctuation:no_comma'], 'kwargs': [None]}]",
        },
        {**prompt, "constraints": [{"id": "punctuation:no_comma"}]},
    ]
    for row in rows:
        expected = {"messages": asked, "constraints": written, "task": "instructions"}
        assert task.preprocess(row) == expected
        assert task.gold_completion(row) is None
    with pytest.raises(RowError, match="new:thing: there is no such constraint") as error:
        task.preprocess({**prompt, "constraints": ["new:thing"]})
    assert error.value.label == "constraint new:thing"


@pytest.mark.parametrize("name", ["train", "test"])
def test_the_answers_of_our_rows_meet_their_constraints(name):
    rows = [row for _, row in read_jsonl(ROOT / "datasets" / "instructions" / f"{name}.jsonl")]
    for row in rows:
        prepared = TASKS["instructions"].preprocess(row)
        constraints = prepared["constraints"]
        assert graded(row["response"], constraints, row["prompt"]) == (1.0, "all met")


RIVERS = (
    "Rivers shape the land over many centuries and carry fresh water through valleys towards the sea "
    "while people build towns beside them"
)
RIVERS_ZH = "河流塑造大地并且带来生命和希望人们在河边建立城市种植庄稼捕鱼航行世世代代依靠水源生活"
ASKS_NO_COMMA = {"id": "punctuation:no_comma"}
ASKS_NO_WATER = {"id": "keywords:forbidden_words", "kwargs": {"forbidden_words": ["water"]}}
ASKS_KEYWORDS = {"id": "keywords:existence", "kwargs": {"keywords": ["volcano", "piano"]}}
ASKS_TITLE = {"id": "detectable_format:title"}


def asked_for(name, **kwargs):
    return {"id": name, "kwargs": kwargs}


HIDDEN = [
    # commas of other scripts
    *[(ASKS_NO_COMMA, f"{RIVERS}{comma} and then") for comma in "⸴⹁፣︐﹑՝ꓹ᠂"],
    (ASKS_NO_COMMA, f"{RIVERS}&#44; and then"),
    (ASKS_NO_COMMA, f"{RIVERS}&comma; and then"),
    # a word with what nobody sees, or with letters that look like its own
    *[
        (ASKS_NO_WATER, RIVERS.replace("water", f"wa{sign}ter"))
        for sign in "\u200b\u00ad\u034f\u200d\u2060"
    ],
    (ASKS_NO_WATER, RIVERS.replace("water", "w\u0430t\u0435r")),  # Cyrillic
    (asked_for("keywords:forbidden_words", forbidden_words=["café"]), f"{RIVERS} by a cafe\u0301"),
    (ASKS_NO_WATER, RIVERS.replace("water", "wa**te**r")),
    (ASKS_NO_WATER, RIVERS.replace("water", "w_a_t_e_r")),
    (ASKS_NO_WATER, RIVERS.replace("water", "ｗａｔｅｒ")),
    (ASKS_NO_WATER, RIVERS.replace("water", "𝐰𝐚𝐭𝐞𝐫")),
    (ASKS_NO_WATER, RIVERS.replace("water", "w&#97;ter")),
    # what is asked for, where it is not shown
    (ASKS_KEYWORDS, f"{RIVERS}.\n<!-- the volcano has a piano inside of the mountain -->"),
    (ASKS_KEYWORDS, f"{RIVERS}.\n<!-- the volcano has a piano inside of the mountain"),
    (ASKS_KEYWORDS, f'{RIVERS}. <span title="the volcano plays a piano now"></span>'),
    (ASKS_KEYWORDS, f"{RIVERS}.\n\n[//]: # (the volcano plays a piano now)"),
    (ASKS_KEYWORDS, f'{RIVERS}. <div style="display:none">the volcano plays a piano</div>'),
    (ASKS_KEYWORDS, f"{RIVERS}. <p hidden>the volcano plays a piano</p>"),
    (ASKS_TITLE, f"{RIVERS}. <!-- <<title>> -->"),
    (
        asked_for(
            "keywords:letter_frequency", letter="z", let_frequency=10, let_relation="at least"
        ),
        f"{RIVERS}.\n<!-- zzzzzzzzzzzz -->",
    ),
    (
        asked_for("length_constraints:number_words", num_words=40, relation="at least"),
        f"{RIVERS}. <!-- {RIVERS} -->",
    ),
    (
        asked_for("length_constraints:number_sentences", num_sentences=4, relation="at least"),
        f"{RIVERS}. <!-- One is here. Two is here. Three is here. -->",
    ),
    (
        asked_for("length_constraints:number_paragraphs", num_paragraphs=2),
        f"{RIVERS}.\n***\n<!-- other words -->",
    ),
    (
        asked_for("detectable_format:number_bullet_lists", num_bullets=2),
        f"{RIVERS}.\n<!--\n* some one\n* two here\n-->",
    ),
    (
        asked_for("detectable_format:number_highlighted_sections", num_highlights=2),
        f"{RIVERS}. <!-- *some* *other* -->",
    ),
    (
        asked_for("detectable_content:number_placeholders", num_placeholders=2),
        f"{RIVERS}. <!-- [name] [city] -->",
    ),
    (
        asked_for("detectable_content:postscript", postscript_marker="P.S."),
        f"{RIVERS}.\n<!--\nP.S. something -->",
    ),
    (asked_for("startend:end_checker", end_phrase="The end."), f"{RIVERS}. <!-- The end."),
    (asked_for("combination:two_responses"), f"{RIVERS}.\n******\n<!-- other words -->"),
    # marks without words, and nothing that is shown
    (
        asked_for("length_constraints:number_sentences", num_sentences=9, relation="at least"),
        f"{RIVERS_ZH}{'。！？' * 9}",
    ),
    (ASKS_NO_COMMA, f"<!-- {RIVERS} -->"),
    (ASKS_NO_COMMA, "\u200b\u2060\u200b"),
]


@pytest.mark.parametrize(("constraint", "text"), HIDDEN)
def test_what_is_not_shown_does_not_count(constraint, text):
    constraints = [json.dumps([constraint])]
    ((reward, _),) = REWARDS["instructions"]().grades([text], constraints=constraints)
    assert reward == 0.0


def test_at_least_forty_are_tried():
    assert len(HIDDEN) >= 40


@pytest.mark.parametrize(
    ("constraint", "text"),
    [
        (ASKS_KEYWORDS, f"{RIVERS}. A volcano & a piano <b>stand</b> there: 1 < 2 > 0."),
        (ASKS_KEYWORDS, f'{RIVERS}:\n```html\n<!-- volcano --><p title="piano">text</p>\n```'),
        (ASKS_KEYWORDS, f"{RIVERS}. See [volcano]: a piano stands there."),
        (ASKS_NO_WATER, RIVERS.replace("water", "freshwater")),
        (ASKS_NO_WATER, f"{RIVERS.replace('water', 'streams')} and Вода течёт"),
        (ASKS_TITLE, f"<<A title>>\n{RIVERS}."),
        # an emoji that is joined, and Persian with its joiner
        (
            asked_for("startend:end_checker", end_phrase="👨\u200d👩\u200d👧"),
            f"{RIVERS} 👨\u200d👩\u200d👧",
        ),
        (
            asked_for("keywords:existence", keywords=["می\u200cخواهم"]),
            "من امروز می\u200cخواهم با دوستان خود کنار رودخانه بزرگ شهر قدیمی بنشینم و چای تازه بنوشم",
        ),
    ],
)
def test_what_is_shown_does(constraint, text):
    constraints = [json.dumps([constraint])]
    ((reward, _),) = REWARDS["instructions"]().grades([text], constraints=constraints)
    assert reward == 1.0


def test_where_sentences_of_thai_end_cannot_be_told():
    text = "แม่น้ำเป็นแหล่งชีวิตของผู้คนมากมายในทวีปยุโรป และพัดพาน้ำจืดไปสู่ทะเลอย่างต่อเนื่อง"
    asked = asked_for("length_constraints:number_sentences", num_sentences=2, relation="less than")
    ((reward, reason),) = REWARDS["instructions"]().grades(
        [text], constraints=[json.dumps([asked])]
    )
    assert (reward, reason) == (None, "cannot be told")


@pytest.mark.parametrize(
    "part",
    ["<", "<!--", "<a ", "<p hidden>", "&#44", "`", "```", "[a]:", "<a b=", "\u200b", "display:"],
)
def test_no_markup_takes_long(part):
    text = part * (60_000 // len(part))
    start = time.process_time()
    REWARDS["instructions"]().grades([text], constraints=[json.dumps([ASKS_NO_COMMA])])
    assert time.process_time() - start < 5
