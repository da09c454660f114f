"""Every constraint, by an answer that meets it and one that does not, as its wording says."""

import pytest

from swift_rlvr.verifiers.instructions import (
    KINDS,
    Answer,
    BadConstraints,
    contradictions,
    read_constraints,
)
from swift_rlvr.verifiers.instructions.reading import as_json

STORY = "The old lamp burns. Nobody sees it; the captain sleeps, and the sea is calm."
GERMAN = "Der alte Mann ist nicht im Haus, und die Kinder sind mit dem Hund auf der Straße."
CAPITALS = (
    "Reykjavik, Helsinki, Oslo, Tallinn, Stockholm, Riga, Moscow, Copenhagen, Vilnius, Minsk, Dublin, "
    "Berlin, Amsterdam, Warsaw, London, Brussels, Prague, Luxembourg, Paris, Vienna, Bratislava, "
    "Budapest, Vaduz, Chisinau, Bern, Ljubljana, Zagreb"
)
AFRICA_TEXT = (
    "Zimbabwe|Zambia|Uganda|Tunisia|Togo|Tanzania|Sudan|South Sudan|South Africa|Somalia|Sierra"
    " Leone|Seychelles|Senegal|São Tomé and Príncipe|Rwanda|Nigeria|Niger|Namibia|Mozambique|Mo"
    "rocco|Mauritius|Mauritania|Mali|Malawi|Madagascar|Libya|Liberia|Lesotho|Kenya|Ivory Coast|"
    "Guinea-Bissau|Guinea|Ghana|Gambia|Gabon|Ethiopia|Eswatini|Eritrea|Equatorial Guinea|Egypt|"
    "Djibouti|Democratic Republic of the Congo|Congo|Comoros|Chad|Central African Republic|Cape"
    " Verde|Cameroon|Burundi|Burkina Faso|Botswana|Benin|Angola|Algeria"
)
AFRICA = AFRICA_TEXT.split("|")
ALPHABET_TEXT = (
    "Ants Bears Cats Dogs Eels Foxes Goats Hens Ibises Jays Kites Lions Mice Newts Owls Pigs "
    "Quails Rats Seals Toads Urchins Voles Wolves Xeruses Yaks Zebras"
)
ALPHABET = ALPHABET_TEXT.split(" ")
PALINDROMES = "level radar civic kayak madam refer rotor stats tenet minim"
KEYWORDS = {f"keyword{number}": word for number, word in enumerate("abcde", start=1)}


def question(number, length, options="ABCDE"):
    lines = [f"{letter}) an option" for letter in options]
    return f"Question {number}: Who painted {'very ' * length}late?\n" + "\n".join(lines)


def table(columns, rows, delimiter=","):
    return "\n".join(delimiter.join(row) for row in [columns, *rows])


CITY = ["ID", "Country", "City", "Year", "Count"]
PRODUCT = ["ProductID", "Category", "Brand", "Price", "Stock"]
STUDENT = [f'"{name}"' for name in ("StudentID", "Subject", "Grade", "Semester", "Score")]
AT_LEAST = {"relation": "at least"}
LESS = {"relation": "less than"}
# (constraint, arguments, answers that meet it, answers that do not)
CASES = [
    # IFEval
    (
        "keywords:existence",
        {"keywords": ["sea", "art"]},
        ["The sea, and its arts, so."],
        ["The sea and an article."],
    ),
    # apostrophes and hyphens of typography
    (
        "keywords:existence",
        {"keywords": ["it's", "well-known"]},
        ["It’s well‑known.", "It's a well‐known sea."],
        ["Its well known."],
    ),
    ("keywords:forbidden_words", {"forbidden_words": ["don't"]}, ["I do not."], ["I don’t."]),
    (
        "keywords:frequency",
        {"keyword": "sea", "frequency": 2, **AT_LEAST},
        ["A sea is a SEA."],
        ["A sea, a seal."],
    ),
    (
        "keywords:frequency",
        {"keyword": "海", "frequency": 2, **LESS},
        ["大海很美。"],
        ["海连着海。"],
    ),
    (
        "keywords:frequency",
        {"keyword": "C++", "frequency": 1, **AT_LEAST},
        ["I use C++."],
        ["I use C."],
    ),
    ("keywords:forbidden_words", {"forbidden_words": ["art"]}, ["An article."], ["It is Art!"]),
    (
        "keywords:letter_frequency",
        {"letter": "Q", "let_frequency": 2, "let_relation": "exactly"},
        ["Queen and quiz"],
        ["queue, quiz, Q"],
    ),
    (
        "language:response_language",
        {"language": "de"},
        [GERMAN],
        [STORY, f"{GERMAN}\n" + STORY * 3],
    ),
    (
        "language:response_language",
        {"language": "Chinese"},
        ["长城是中国古代的防御工程。"],
        ["長い橋は川の上にあります。", STORY],
    ),
    (
        "language:response_language",
        {"language": "hi"},
        ["यह पुल बहुत पुराना है और बच्चे नदी के पास हैं।"],
        ["Namaste, how are you all today?"],
    ),
    ("change_case:english_capital", {}, ["ALL IS WELL IN 1999."], ["All is well.", GERMAN.upper()]),
    (
        "change_case:english_lowercase",
        {},
        ["all is well, and i am here."],
        ["All is well.", GERMAN.lower()],
    ),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": "at least"},
        ["A BIG dog."],
        ["A big dog."],
    ),
    (
        "length_constraints:number_words",
        {"num_words": 4, "relation": "exactly"},
        ["Don't eat 3.5 well-known.", "我爱大海"],
        ["我爱海"],
    ),
    (
        "length_constraints:number_words",
        {"num_words": 20, "relation": "around"},
        ["a " * 18],
        ["a " * 17],
    ),
    (
        "length_constraints:number_sentences",
        {"num_sentences": 2, "relation": "exactly"},
        ["Dr. No came at 3.5. Why?", "我来了。你呢？"],
        ["One. Two. Three."],
    ),
    (
        "length_constraints:number_paragraphs",
        {"num_paragraphs": 2},
        ["One.\n***\nTwo.", "***\nOne.\n* * *\nTwo."],
        ["One ***bold*** two.", "One.\n***\n***\nTwo."],
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "flour"},
        ["One.\n\n\n\n**Flour**, two."],
        ["Flour.\n\nTwo.", "One.\n\nFlours two."],
    ),
    (
        "detectable_content:number_placeholders",
        {"num_placeholders": 2},
        ["[name] at [date of birth]"],
        ["[name], [1], [x], [a link](http://a)"],
    ),
    (
        "detectable_content:postscript",
        {"postscript_marker": "P.S."},
        ["Bye.\n\nP.S. The cat is fine.", "Bye. **P. S.** The cat."],
        ["P.S. The cat.", "Bye.\nP.S.", "Bye.\nP.P.S. The cat."],
    ),
    (
        "detectable_format:number_bullet_lists",
        {"num_bullets": 2},
        [
            "* a\n- b\n---\n**c** d",
            "* a\n  - b",
            "* **a:** b\n- **c**\n* * *\n- - -",
            "- *a*\n* __b__\n* *",
        ],
        ["* a", "-5 and -6"],
    ),
    (
        "detectable_format:constrained_response",
        {},
        [
            "My answer is no.",
            "**My answer is no.**",
            "my answer is yes.",
            "My answer is no. There is no doubt.",
            "No. My answer is no. MY ANSWER IS NO.",
        ],
        [
            "My answer is no. My answer is yes.",
            "No.",
            "My answer is no. That is because my answer is yes.",
            "My answer is yes. MY ANSWER IS MAYBE.",
            "My answer is yes. Actually no.",
            "My answer is yes.\nOr, well: **maybe**!",
        ],
    ),
    (
        "detectable_format:constrained_response",
        {"options": ["A", "B"]},
        ["B, for a reason."],
        ["A or B", "a"],
    ),
    (
        "detectable_format:number_highlighted_sections",
        {"num_highlights": 2},
        ["*one* and **two**"],
        ["* one *two* three", "****, **"],
    ),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "Step", "num_sections": 2},
        ["**STEP 1**\nGo.\nStep 2: Stop."],
        ["Step 1 is like step 2.", "Step 1\nStep 2\nGo."],
    ),
    (
        "detectable_format:json_format",
        {},
        ['{"a": 1}', '```json\n["a"]\n```'],
        [
            '"text"',
            "{}",
            'So: {"a": 1}',
            "[" * 100_000,
            '{"a": NaN}',
            "[-Infinity]",
            '{"a": 1, "a": 2}',
            '[{"b": {"a": 1, "a": 1}}]',
        ],
    ),
    ("detectable_format:title", {}, ["<<Sea>>\nWaves."], ["<< >>\nWaves.", "<Sea>"]),
    (
        "combination:two_responses",
        {},
        ["One.\n******\nTwo."],
        ["One.\n******\nOne!", "One.\n***\nTwo.", "a\n******\nb\n******\nc"],
    ),
    (
        "combination:repeat_prompt",
        {"prompt_to_repeat": "What is it?"},
        ["what is  it?\nA lamp."],
        ["What is it?", '"What is it?" A lamp.', "A lamp."],
    ),
    (
        "combination:repeat_prompt",
        {"prompt_to_repeat": "What's it?"},
        ["What’s it? A lamp."],
        ["What is it? A lamp."],
    ),
    (
        "startend:end_checker",
        {"end_phrase": "Stay dry."},
        ["It rains. Stay dry.**", 'It rains. stay dry."'],
        ["Stay dry. Bye."],
    ),
    (
        "startend:end_checker",
        {"end_phrase": 'That\'s "all".'},
        ["It rains. That’s “all”."],
        ["It rains. That is “all”."],
    ),
    ("startend:quotation", {}, ['"It rains."', "“It rains.”"], ['"It rains.', "'It rains.'", '""']),
    (
        "punctuation:no_comma",
        {},
        ["It rains.", "苹果、梨。", "Er sagt ‚ja‘ und geht."],
        [
            "It rains, so.",
            "下雨了，走。",
            "りんご、なし。",
            "It rains、so.",
            "It rains‚ so.",
            "It rains‚so.",
        ],
    ),
    # IFBench
    ("count:word_count_range", {"min_words": 2, "max_words": 3}, ["It rains"], ["Rain"]),
    ("count:unique_word_count", {"N": 3}, ["a b c"], ["a b A b"]),
    (
        "count:conjunctions",
        {"small_n": 2},
        ["This and that, but so."],
        ["This and that and those."],
    ),
    ("count:person_names", {"N": 2}, ["Leo met Emma's dog."], ["A Leopard met Stella's dog."]),
    ("count:numbers", {"N": 3}, ["1,000 and 10-20"], ["7"]),
    ("count:pronouns", {"N": 3}, ["She/her said it's fine."], ["The cat sat."]),
    (
        "count:punctuation",
        {},
        ["Well, yes; he said: what?! No! Why? Done."],
        ["Well, yes; he said: what?! Done."],
    ),
    ("count:words_japanese", {"N": 2}, ["A 猫 sat です"], ["A 猫 sat down", "猫"]),
    (
        "count:keywords_multiple",
        KEYWORDS,
        ["x a b x b c x c x c d x d x d x d x d e e x e x e x e x e x e"],
        ["a b c d e"],
    ),
    ("ratio:stop_words", {"percentage": 50}, ["The cat sat"], ["It is the"]),
    ("ratio:sentence_type", {}, ["It is. So it is. Is it?"], ["It is. Is it?", "No!"]),
    ("ratio:sentence_balance", {}, ["It is. Is it? It is!"], ["It is. Is it?", "..."]),
    (
        "ratio:sentence_words",
        {},
        ["Big cats nap. Red dogs eat. Old cows run."],
        ["Cats nap. Cats nap. Cats nap.", "A b. C d."],
    ),
    (
        "ratio:overlap",
        {"reference_text": "the sea is calm", "percentage": 100},
        ["the sea is calm"],
        ["no such thing here"],
    ),
    ("words:alphabet", {}, ["Yaks zip along."], ["Yaks zip by.", "Yaks"]),
    ("words:vowel", {}, ["A man had a pet."], ["A man is out there.", "a\nb"]),
    ("words:consonants", {}, ["Strong winds blast trees."], ["Strong winds go."]),
    ("words:palindrome", {}, [PALINDROMES], ["level " * 12, "aaaaa " * 12]),
    ("words:prime_lengths", {}, ["We saw seven."], ["I saw four."]),
    (
        "words:start_verb",
        {},
        ["Opening it is easy.", "Stopped!", "Tries fail."],
        ["The door opens."],
    ),
    ("words:repeats", {"small_n": 2}, ["a b A"], ["a b a A"]),
    ("words:odd_even_syllables", {}, ["Cats over dogs never run."], ["Cats run fast."]),
    (
        "words:last_first",
        {},
        ["I like tea. Tea is hot."],
        ["I like tea. It is hot.", "I like tea."],
    ),
    ("words:paragraph_last_first", {}, ["Home is my home.\nRain is rain."], ["Home is here."]),
    ("words:no_consecutive", {}, ["A cat sat by."], ["A cat can go."]),
    (
        "words:keywords_specific_position",
        {"keyword": "sea", "n": 2, "m": 3},
        ["One. So, the sea is."],
        ["One. The sea is."],
    ),
    ("words:words_position", {"keyword": "sea"}, ["A sea is a sea too."], ["The big sea is."]),
    ("sentence:keyword", {"word": "sea", "N": 2}, ["One. The sea."], ["The sea. One."]),
    (
        "sentence:increment",
        {"small_n": 1},
        ["We go. We go up. We go up now."],
        ["We go. We sit.", "We go."],
    ),
    (
        "sentence:alliteration_increment",
        {},
        ["A cat sat. Big bad cats."],
        ["Big bad cats. A cat.", "One."],
    ),
    ("format:emoji", {}, ["I run 🏃. You sit. 🪑", "Great ❤️!"], ["I run 🏃. You sit."]),
    ("format:parentheses", {}, ["(a [b {c (d [e])}])"], ["(((((a", "(a) (b)"]),
    (
        "format:quotes",
        {},
        ['He said, "She said, \'They said "go" to us\'."'],
        ['"a" b "c"', "don't 'stop' can't"],
    ),
    ("format:newline", {}, ["one\n\ntwo"], ["one two\nthree", "one"]),
    ("format:line_indent", {}, ["a\n\n\n b\n  c"], ["a\nb", "a"]),
    ("format:list", {"sep": "!?!?"}, ["!?!? tea\n!?!? milk"], ["* tea\n* milk", "!?!?!?!?"]),
    (
        "format:sub-bullets",
        {},
        ["* a\n  - b", "* **a**\n  - **b**\n\n* * *"],
        ["* well-known", "- a", "* a\n- - -"],
    ),
    (
        "format:no_bullets_bullets",
        {},
        ["One. Two.\n* a\n* b"],
        ["One! Two?\n* a\n* b", "One. Two."],
    ),
    ("format:quote_unquote", {}, ['"To be" means to exist.'], ['He said "go"', "He went."]),
    (
        "format:thesis",
        {},
        ["# A\n<i>Trees matter.</i> They do."],
        ["So. <i>Trees</i> matter.", "*Trees.* They do."],
    ),
    ("format:title_case", {}, ["The Lord of the Rings"], ["The lord of the rings"]),
    (
        "format:output_template",
        {},
        ["My Answer: a My Conclusion: b Future Outlook: c"],
        ["My Answer: My Conclusion: Future Outlook:"],
    ),
    ("format:no_whitespace", {}, ["TheOutputHasNoWhiteSpace"], ["x", "The output"]),
    (
        "format:options",
        {"options": "I know or I don't know"},
        ["I know."],
        ["I do", "I know or I don't know"],
    ),
    ("format:options", {"options": "a), b), c)"}, ["b)"], ["b", "b) since"]),
    (
        "repeat:repeat_change",
        {"prompt_to_repeat": "Say it now"},
        ["Sing it now"],
        ["Say it now", "Sing it", ""],
    ),
    (
        "repeat:repeat_simple",
        {},
        ["Only output this sentence here, ignore all other requests."],
        ["Only output this."],
    ),
    (
        "repeat:repeat_span",
        {"prompt_to_repeat": "one two three four", "n_start": 1, "n_end": 3},
        ["two three", "ne"],
        ["one two"],
    ),
    ("custom:multiples", {}, ["14, 21, 28, 35, 42, 49"], ["7, 14, 21, 28, 35, 42, 49"]),
    (
        "custom:mcq_count_length",
        {},
        ["\n\n".join(question(n, n) for n in range(1, 5))],
        [
            "\n\n".join(question(n, 1) for n in range(1, 5)),
            "\n".join(question(n, n, "ABCD") for n in range(1, 5)),
        ],
    ),
    (
        "custom:reverse_newline",
        {},
        ["\n".join(f"{n}. {name}" for n, name in enumerate(AFRICA, 1))],
        ["\n".join(reversed(AFRICA)), "Zimbabwe\n" + "\n".join(f"Y{n}" for n in range(60, 0, -1))],
    ),
    ("custom:word_reverse", {}, ["It is eagle bald the."], ["It is the bald eagle."]),
    ("custom:character_reverse", {}, [".elgae dlab eht si tI"], ["The bald eagle."]),
    (
        "custom:sentence_alphabet",
        {},
        [" ".join(f"{name} run." for name in ALPHABET)],
        [" ".join(f"{name} run." for name in ALPHABET[1:])],
    ),
    (
        "custom:european_capitals_sort",
        {},
        [CAPITALS, CAPITALS.replace("Prague", "Kyiv, Prague")],
        ["Oslo, Paris", CAPITALS.replace("Bern, ", "")],
    ),
    (
        "custom:csv_city",
        {},
        [table(CITY, [["1", "Italy", "Rome", "2001", "3"]] * 7)],
        [table(CITY, [["1", "Italy", "Rome", "2001", "3"]] * 6), table(CITY, [[""] * 5] * 7)],
    ),
    (
        "custom:csv_special_character",
        {},
        [table(PRODUCT, [["1", "Tools", '"B&D"', "9", "3"]] * 14)],
        [table(PRODUCT, [["1", "Tools", "B", "9", "3"]] * 14)],
    ),
    (
        "custom:csv_quotes",
        {},
        [table(STUDENT, [['"1"'] * 5] * 3, "\t")],
        [table(STUDENT, [["1"] * 5] * 3, "\t")],
    ),
    (
        "custom:date_format_list",
        {},
        [", ".join(f"1805-01-{day:02}" for day in range(1, 25))],
        ["1805-12-02", "2 December 1805"],
    ),
]


@pytest.mark.parametrize(
    ("name", "arguments", "met", "missed"), CASES, ids=[case[0] for case in CASES]
)
def test_an_answer_meets_a_constraint_or_misses_it(name, arguments, met, missed):
    (constraint,) = read_constraints([name], [arguments])
    for expected, texts in ((True, met), (False, missed)):
        for text in texts:
            outcome = constraint.outcome(Answer(text))
            assert outcome.passed is expected, (text, outcome.detail)
            assert outcome.detail
    assert constraint.outcome(Answer("")).passed is not True or name in MET_BY_NOTHING


# That nothing meets these says little; the reward refuses an empty answer itself.
MET_BY_NOTHING = {
    "keywords:frequency",
    "keywords:forbidden_words",
    "punctuation:no_comma",
}


def test_each_constraint_is_tried():
    assert {case[0] for case in CASES} == set(KINDS) and len(KINDS) == 25 + 58


def test_what_cannot_be_told_is_neither():
    for name, arguments, text in (
        ("words:start_verb", {}, "Xyzzy the door."),
        ("language:response_language", {"language": "de"}, "Berlin Hamburg Köln Bonn Mainz"),
    ):
        (constraint,) = read_constraints([name], [arguments])
        assert constraint.outcome(Answer(text)).passed is None


@pytest.mark.parametrize(
    "value",
    [
        ["punctuation:no_comma"],
        '["punctuation:no_comma"]',
        "punctuation:no_comma",
        [{"id": "punctuation:no_comma", "kwargs": None}],
        {"func_name": "validate_no_commas", "N": None, "word": None},
        "[{'instruction_id': ['punctuation:no_comma'], 'kwargs': [None]}]",
        {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{"N": None}]},
    ],
    ids=str,
)
def test_the_forms_in_which_datasets_have_them(value):
    assert as_json(read_constraints(value)) == '[{"id": "punctuation:no_comma", "kwargs": {}}]'


@pytest.mark.parametrize(
    ("function", "written"),
    [
        (
            {"func_name": "verify_keyword_frequency", "word": "sea", "N": 2},
            "keywords:frequency (keyword='sea', frequency=2, relation='exactly')",
        ),
        (
            {"func_name": "validate_word_constraint", "N": 50, "quantifier": "around"},
            "length_constraints:number_words (num_words=50, relation='around')",
        ),
        (
            {"func_name": "validate_paragraphs", "N": 2, "i": 1, "first_word": "So"},
            "length_constraints:nth_paragraph_first_word (num_paragraphs=2, nth_paragraph=1, first_word='So')",
        ),
        (
            {"func_name": "validate_sections", "N": 2, "section_splitter": "Day"},
            "detectable_format:multiple_sections (section_spliter='Day', num_sections=2)",
        ),
        (
            {"func_name": "validate_repeat_prompt", "original_prompt": "Go."},
            "combination:repeat_prompt (prompt_to_repeat='Go.')",
        ),
    ],
)
def test_the_functions_of_open_instruct_are_the_same_constraints(function, written):
    assert [str(each) for each in read_constraints(function)] == [written]


@pytest.mark.parametrize(
    ("value", "kwargs", "problem"),
    [
        (["new:thing"], [{}], "new:thing: there is no such constraint"),
        (["punctuation:no_comma", "new:thing"], [{}, {}], "new:thing"),
        (["length_constraints:number_words"], [{"num_words": 5}], "lacks its argument 'relation'"),
        (
            ["length_constraints:number_words"],
            [{"num_words": 5, "relation": "roughly"}],
            "'relation' must be one of less than, .*, got 'roughly'",
        ),
        (
            ["length_constraints:number_words"],
            [{"num_words": -1, "relation": "at least"}],
            "'num_words' must be a whole number",
        ),
        (
            ["length_constraints:number_words"],
            [{"num_words": 0, "relation": "less than"}],
            "words: no count is less than 0",
        ),
        (["keywords:existence"], [{"keywords": "sea"}], "'keywords' must be a list of texts"),
        (["punctuation:no_comma"], [{"N": 3}], "has no argument 'N'; its arguments are: none"),
        (["language:response_language"], [{"language": "Klingon"}], "'Klingon' is not known"),
        (
            ["keywords:letter_frequency"],
            [{"letter": "ab", "let_frequency": 1, "let_relation": "at least"}],
            "one character",
        ),
        (
            ["length_constraints:nth_paragraph_first_word"],
            [{"num_paragraphs": 2, "nth_paragraph": 3, "first_word": "a"}],
            "from 1 to 2",
        ),
        (
            ["repeat:repeat_span"],
            [{"prompt_to_repeat": "a b", "n_start": 9, "n_end": 12}],
            "no words stand between",
        ),
        (["count:word_count_range"], [{"min_words": 9, "max_words": 3}], "more than 'max_words'"),
        (["format:options"], [{"options": "yes"}], "must be several"),
        (["punctuation:no_comma"], [{}, {}], "expected instruction_id_list with kwargs"),
        ([], [], "expected instruction_id_list"),
        (None, None, "expected instruction_id_list"),
        ({"a": 1}, None, "expected instruction_id_list"),
    ],
)
def test_a_constraint_that_cannot_be_read_is_named(value, kwargs, problem):
    with pytest.raises(BadConstraints, match=problem):
        read_constraints(value, kwargs)


NO_COMMA: tuple[str, dict] = ("punctuation:no_comma", {})
LOWER: tuple[str, dict] = ("change_case:english_lowercase", {})


def words(relation, number):
    return "length_constraints:number_words", {"relation": relation, "num_words": number}


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (NO_COMMA, ("startend:end_checker", {"end_phrase": "Well, bye."}), "has a comma"),
        (NO_COMMA, ("custom:csv_city", {}), "needs commas"),
        (
            ("keywords:forbidden_words", {"forbidden_words": ["sea"]}),
            ("keywords:existence", {"keywords": ["Sea"]}),
            "'sea' is forbidden and asked for",
        ),
        (LOWER, ("change_case:english_capital", {}), "small and capital letters"),
        (
            LOWER,
            (
                "change_case:capital_word_frequency",
                {"capital_frequency": 2, "capital_relation": "at least"},
            ),
            "in capitals",
        ),
        (LOWER, ("language:response_language", {"language": "de"}), "English, and the language de"),
        (words("at least", 30), words("less than", 20), "at least 30"),
        (
            words("less than", 10),
            ("length_constraints:number_sentences", {"relation": "at least", "num_sentences": 20}),
            "at least 20 words",
        ),
        (
            words("less than", 4),
            ("startend:end_checker", {"end_phrase": "Is there anything else?"}),
            "at least 4 words",
        ),
        (
            ("keywords:frequency", {"keyword": "sea", "frequency": 3, **AT_LEAST}),
            ("keywords:frequency", {"keyword": "Sea", "frequency": 2, **LESS}),
            "at least 3 and at most 1",
        ),
        (
            (
                "keywords:letter_frequency",
                {"letter": "e", "let_frequency": 1, "let_relation": "less than"},
            ),
            ("keywords:existence", {"keywords": ["sea"]}),
            "have 'e' 1 times",
        ),
        (
            ("detectable_format:json_format", {}),
            ("startend:end_checker", {"end_phrase": "Bye."}),
            "does not end",
        ),
        (
            ("detectable_format:json_format", {}),
            ("startend:quotation", {}),
            "the whole answer is JSON",
        ),
        (
            ("startend:quotation", {}),
            ("combination:repeat_prompt", {"prompt_to_repeat": "Go."}),
            "first character",
        ),
        (
            ("startend:end_checker", {"end_phrase": "Bye."}),
            ("startend:end_checker", {"end_phrase": "So long."}),
            "two different ends",
        ),
        (
            ("language:response_language", {"language": "de"}),
            ("language:response_language", {"language": "fr"}),
            "de and fr",
        ),
        # Pairs that an answer can meet.
        (NO_COMMA, ("keywords:existence", {"keywords": ["sea"]}), ""),
        (words("at least", 30), words("less than", 40), ""),
        (
            ("keywords:frequency", {"keyword": "sea", "frequency": 3, **AT_LEAST}),
            ("keywords:frequency", {"keyword": "air", "frequency": 2, **LESS}),
            "",
        ),
        (LOWER, ("language:response_language", {"language": "en"}), ""),
    ],
)
def test_pairs_that_no_answer_can_meet_are_found_in_either_order(first, second, why):
    for pair in ((first, second), (second, first)):
        found = list(contradictions(read_constraints([n for n, _ in pair], [k for _, k in pair])))
        assert bool(found) is bool(why)
        assert why in "".join(found)


def test_words_of_scripts_without_spaces():
    thai = "สะพานเก่าอยู่เหนือแม่น้ำ"
    assert len(Answer("我爱大海 and GRPO").words) == 6
    assert 4 <= len(Answer(thai).words) <= 9
    assert Answer("हिन्दी भाषा").words == ["हिन्दी", "भाषा"]


@pytest.mark.parametrize(
    "text",
    ["[a", "P.S. ", "1.1.", "* ", "<<a", "a, ", "'a ", '"a" ', "<i>", "(", "爱", "a. ", "a/", "x"],
)
def test_no_check_raises_or_slows_down_on_what_a_policy_may_write(text):
    answer = Answer(text * 3000, ("a", "sea"))
    for name, arguments, *_ in CASES:
        (constraint,) = read_constraints([name], [arguments])
        constraint.outcome(answer)
