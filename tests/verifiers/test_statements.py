"""Which statement of a completion is its final answer: the last one, in the form that is asked for.

Every row that pays has a neighbour that must not: a hedge, a denial, an answer on the way.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swift_rlvr.verifiers.answer_forms import asked_form, completion_in_form
from swift_rlvr.verifiers.languages import LANGUAGES
from swift_rlvr.verifiers.mathematics import grade
from swift_rlvr.verifiers.statements import check_form, final_statement

JSON_BLOCK = '```json\n{"reasoning": "3 + 4", "answer": "7"}\n```'
# (text, the final answer; None where there is none)
ANSWERS = [
    # the last statement, of whatever kind
    ("\\boxed{7}\nFinal answer: 8", "8"),
    ("\\boxed{8}\n#### 7", "7"),
    ("#### 7\nSo it is \\boxed{8}.", "8"),
    ("The answer is 7. So \\boxed{8}.", "8"),
    ("#### 7\nThe answer is 8.", "8"),
    ('{"answer": 7}\n\\boxed{8}', "8"),
    ('\\boxed{8}\n{"answer": 7}', "7"),
    ("\\boxed{8}\n<final_answer>7</final_answer>", "7"),
    ("\\boxed{7}\n\nB", "B"),
    ("\\boxed{8}\nDie Antwort ist 7.", "7"),
    ("\\boxed{A}\n【答案】B", "B"),
    # what says nothing new leaves it
    ("\\boxed{8}\nThe answer is in meters.", "8"),
    ("\\boxed{8}\nThe answer makes sense.", "8"),
    ("\\boxed{8} The answer is not 7.", "8"),
    ("\\boxed{8}\nThe answer is 8, but I could have been faster.", "8"),
    ("\\boxed{8}\n#### Explanation\nWe add 3 and 5.", "8"),
    ("\\boxed{8}\n\n8", "8"),
    ("The answer is $\\boxed{8}$.", "8"),
    ("**Final Answer**\n\\boxed{8}", "8"),
    ("#### \\boxed{8}", "8"),
    ("#### $\\boxed{8}$.", "8"),
    ("#### not \\boxed{8}", None),
    ("#### \\boxed{8} is wrong", "\\boxed{8} is wrong"),
    ("<final_answer>not \\boxed{8}</final_answer>", "not \\boxed{8}"),
    ('{"answer": "\\\\boxed{8}"}', "8"),
    # one statement of two values is none
    ("\\boxed{8}\nThe answer is 7 or 8.", None),
    ("\\boxed{8}\nThe answer is 8 or 7.", None),
    ("The answer is 7 or 8.", None),
    ('{"answer": 3} or {"answer": 4}', ""),
    ("【答案】A或B", ""),
    # tags win over all, before and behind them
    ("<answer>7</answer> Final answer: 8", "7"),
    ("<answer>7</answer> \\boxed{8} #### 8", "7"),
    ("Final answer: 8 <answer>7</answer>", "7"),
    ("\\boxed{8} <answer>7", None),
    ("The answer is 8. <answer>7", None),
    # an answer in the thinking only
    ("<think>\\boxed{8} #### 8\nThe answer is 8.</think>", None),
    ("[THINK]The answer is 8.[/THINK] I am done.", None),
    ("<|channel|>analysis<|message|>\\boxed{8}<|end|><|start|>assistant<|channel|>final<|message|>\\boxed{7}", "7"),
    # GLM's mark
    ("So <|begin_of_box|>7<|end_of_box|>.", "7"),
    ("<think>a</think><answer><|begin_of_box|>7<|end_of_box|></answer>", "7"),
    ("<|begin_of_box|>7<|end_of_box|> or <|begin_of_box|>8<|end_of_box|>", "7 or 8"),
    # 【答案】 of GAOKAO-Bench
    ("【解析】略<eoe>\n【答案】B<eoa>", "B"),
    ("【答案】 ABD <eoa>", "ABD"),
    ("【答案】B\n【解析】" + "因为这个选项不对。" * 300, "B"),
    # JSON, also fenced
    ('{"answer": 3}', "3"),
    (f"Sure.\n{JSON_BLOCK}", "7"),
    ('{"answer": "C", "confidence": 0.9}', "C"),
    ("{'answer': 'C'}", "C"),
    ('{"answer": "\\\\frac{1}{2}"}', "\\frac{1}{2}"),
    ('{"answer": "\\frac{1}{2}"}', "\\frac{1}{2}"),  # one backslash, which is no form feed here
    ('{"final_answer": true}', "true"),
    ('{"answers": 3}', None),
    ('"answer": 3\n', None),
    # without braces, as Qwen's prompt for multiple choice asks for it
    ('It is iron.\n\n"answer": "C"', "C"),
    ('**"answer": "C"**', "C"),
    ('It is not "answer": "C"', None),
    ('"answer": "C" or "answer": "D"', None),
    # on the next line, with an explanation behind it
    ("The correct answer is:\n\n18", "18"),
    ("The correct answer is:\n\n18\n\nExplanation: 20 - 2 = 18, as 2 are gone.", "18"),
    ("The correct answer is:\n\nB. The Rhine\n\nThe other options are not 3 rivers.", "B"),
    ("The correct answer is:\n\n18\n\n19", None),
    ("Answer:\n18\n19", None),
    ("The correct answer is:\n\n18\n\nWait, that is wrong. It is 19.", None),
    ("The correct answer is:\n\nB\n\nC", None),
    ("Answer:\n1. Add the numbers\n\n2. Divide by 3", None),
    # words around it
    ("The answer (in dollars) is 40.", "40"),
    ("The answer is most likely A.", "A"),
    ("The answer is probably A.", None),
    ("The answer is False.", "False"),
    ("The answer is No.", "No"),
    ("Answer: incorrect", "incorrect"),
    ("The answer is not false.", None),
    ("The answer is (B) and (C).", "(B) and (C)"),
    ("The answer is J. K. Rowling.", "J. K. Rowling"),
    ("The answer is George W. Bush.", "George W. Bush"),
    ("The answer is Dr. Smith. He said so.", "Dr. Smith"),
    ("The answer is B. This is because 3 is odd.", "B"),
    ("The answer is vitamin C. It is needed.", "vitamin C"),
    ("The answer is 5. Next question: 6", "5"),
    ("答：还剩7个", "还剩7个"),
    ("回答：我不知道", None),
    ("*Answer*: 7", "7"),
    ("The answer equals 7.", "7"),
    ("The answer is equal to 7.", "7"),
    ("The answer is not equal to 7.", None),
    ("The answer equals 7 or 8.", None),
    ("The answer turns out to be 7.", "7"),
    ("The answer must be 7.", "7"),
    ("The answer must not be 7.", None),
    ("The answer is exactly 7.", "7"),
    ("The answer is only 7 or 8.", None),
    ("所以答案等于7。", "7"),
    ("答案就是7", "7"),
    ("答案不等于7", None),
    ("The answer is 7. Alternatively, 8.", None),
    ("The answer is 7. Wait, it is 8.", None),
    ("The answer is 7. I hope that it helps.", "7"),
    # boxes and the words around them
    ("\\boxed{100}, not 255", "100"),
    ("\\boxed{100}, not $255$.", "100"),
    ("It is not \\boxed{100}", None),
    ("\\boxed{100}? Not sure.", None),
    ("\\boxed{100}, not", None),
    ("\\boxed{100} or 255", None),
    # told from another value, or struck out
    ("The answer is B, not C.", "B"),
    ("The answer is not C but B.", "B"),
    ("The answer is B, not B.", None),
    ("The answer is the Rhine, not the Rhone.", None),
    ("#### 7 (not 8)", "7"),
    ("~~\\boxed{8}~~ The answer is 7.", "7"),
    ("So \\boxed 12.", "12"),
    # alone on the last line
    ("So I choose\nB", "B"),
    ("It is\n\n(C)", "C"),
    ("It is\n\n**D**", "D"),
    ("3 + 4 is\n7", "7"),
    ("7", "7"),
    ("6\n7", None),
    ("3 + 4 = 7\n7", "7"),
    ("A\nB", None),
    ("It is 7", None),
    ("", None),
    # a label with marks around it, alone and in tags
    ("#ANSWER#: 7", "7"),
    ("[ANSWER]: 7", "7"),
    ("#ANSWER#: 7 or 8", None),
    ("#ANSWER#: not 7", None),
    ("<answer>#ANSWER#: 7</answer>", "7"),
    ("<answer>### Answer: Rhine</answer>", "Rhine"),
    ("<answer>The answer: 3 lines\n7</answer>", "The answer: 3 lines\n7"),
    # a block fenced as the answer
    ("```answer\n7\n```", "7"),
    ("```answer\n8\n```\n```answer\n7\n```", "7"),
    ("```output\n7\n```", None),
    ("<answer>```answer\n7\n```</answer>", "7"),
    # JSON with one key that names a result, beside texts
    ('{"reasoning": "3 + 4", "final": 7}', "7"),
    ('{"final_result": "7", "reasoning": "3 + 4"}', "7"),
    ('```json\n{"reasoning": "\\\\frac{6}{2} + 4", "result": 7}\n```', "7"),
    ('{"result": 7, "final": 8}', None),
    ('{"result": 8} or {"result": 7}', ""),
    ('{"steps": 2, "result": 7} of the first step', None),
    ('<answer>{"reasoning": "3 + 4", "answer": 7}</answer>', "7"),
    # in bold at the end
    ("So it is **7**.", "7"),
    ("It is not **7**.", None),
    ("It may be **7**, perhaps **8**", None),
    ("It is 8 or **7**", None),
    ("It might be **7**", None),
    ("Is it **7**?", None),
    ("- apples: **7**", None),
    ("So it is **done**.", None),
    ("It is **7**, as 3 + 4 is.", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "answer"), ANSWERS)
def test_final_answer(text, answer):
    statement = final_statement(text)
    if statement is None:
        assert answer is None
        return
    found = statement.answer
    if answer is not None and found is not None and statement.mark == "last line":
        found = found.strip("() ")
    assert found == answer


# (form, text, answer)
FORMS = [
    ("tags", "\\boxed{8} <answer>7</answer>", "7"),
    ("tags", "\\boxed{8}", None),
    ("boxed", "<answer>7</answer> \\boxed{8}\n#### 9", "8"),
    ("boxed", "The answer is 8.", None),
    ("boxed", "It is not \\boxed{8}", None),
    ("hash", "\\boxed{8}\n#### 7\nFinal answer: 9", "7"),
    ("hash", "7", None),
    ("marker", "Answer: 7\n\\boxed{8}", "7\n\\boxed{8}".partition("\n")[0]),
    ("marker", "\\boxed{8}", None),
    ("marker", "Answer: 7 or 8", None),
    ("json", '{"answer": 7} \\boxed{8}', "7"),
    ("json", "\\boxed{8}", None),
    ("last_line", "The answer is 8.\nthe Rhine", "the Rhine"),
    ("last_line", "<think>8", None),
    (r"<solution>(.*?)</solution>", "<solution>7</solution> <solution> 8\n</solution>", "8"),
    (r"<solution>(.*?)</solution>", "<think><solution>7</solution></think>", None),
    ("code", "```python\nprint(7)\n```", "print(7)"),
]


def answer_in(text: str) -> str | None:
    statement = final_statement(text)
    return None if statement is None else statement.answer


@pytest.mark.parametrize(
    "tag", ["final_answer", "finalanswer", "final", "result", "SOLUTION", "ans"]
)
def test_other_tags_that_a_prompt_may_ask_for_are_read(tag):
    """In a completion that says its answer nowhere else."""
    form = asked_form(f"Put the answer between <{tag}> and </{tag}>.")
    completion = completion_in_form(str(form), "I add them.", "42")
    assert completion == f"I add them.\n<{tag}>42</{tag}>"
    for text in (
        completion,
        f"<response>{completion}</response>",
        f"<{tag}>41</{tag}>{completion}",
    ):
        assert answer_in(text) == "42"
    assert answer_in(f"<think>{completion}</think>") is None
    assert answer_in(f"I add them.\n<{tag}>42") is None


def test_a_worked_solution_in_tags_is_read_as_one_without():
    assert answer_in("<solution>\n20 + 22\n= 42\n</solution>\nAnswer: 42") == "42"
    assert answer_in("<solution>So \\boxed{42}</solution>") == "42"
    assert answer_in("<solution>We add. The answer is 42</solution>") == "42"
    assert answer_in("<SOLUTION>20 + 22\nThe answer is 42.</SOLUTION>") == "42"
    assert answer_in("<solution>The answer is 41</solution>\nThe answer is 42.") == "42"
    assert answer_in("<solution>The answer is 41 or 42</solution>") is None


@pytest.mark.parametrize(("form", "text", "answer"), FORMS)
def test_in_a_form_that_is_named_nothing_else_is_read(form, text, answer):
    statement = final_statement(text, form)
    assert (None if statement is None else statement.answer) == answer


@pytest.mark.parametrize("form", ["box", "(a)(b)", "(", 7, ["boxed"]])
def test_what_is_no_form(form):
    with pytest.raises(ValueError, match="answer_form must be one of tags, boxed, hash"):
        check_form(form)


SENTENCES = {
    "ar": "الجواب هو {}.", "bg": "Отговорът е {}.", "bn": "উত্তর হলো {}।", "cs, sk": "Odpověď je {}.",
    "da, no": "Svaret er {}.",
    "de": "Die Antwort ist {}.", "el": "Η απάντηση είναι {}.", "es": "La respuesta es {}.", "fa": "پاسخ {} است.",
    "fi": "Vastaus on {}.", "fr": "La réponse est {}.", "he": "התשובה היא {}.", "hi": "उत्तर {} है।",
    "hr, sr": "Odgovor je {}.",
    "hu": "A válasz {}.", "id": "Jawabannya adalah {}.", "it": "La risposta è {}.", "ja": "答えは{}です。",
    "ko": "정답은 {}입니다.", "nl": "Het antwoord is {}.", "pl": "Odpowiedź to {}.", "pt": "A resposta é {}.",
    "ro": "Răspunsul este {}.", "ru": "Ответ: {}.", "sv": "Svaret är {}.", "sw": "Jibu ni {}.",
    "ta": "பதில்: {}.",
    "te": "సమాధానం {}.", "th": "คำตอบคือ {}", "tr": "Cevap {}'dir.", "uk": "Відповідь: {}.", "vi": "Đáp án: {}.",
}  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_states_an_answer_and_refuses_two(language):
    sentence = SENTENCES[language]
    assert grade(sentence.format(18), "18").reward == 1.0
    assert grade(sentence.format(18), "17").reward == 0.0
    assert grade("3 + 15\n" + sentence.format(18), "18").reward == 1.0
    or_ = LANGUAGES[language].or_.split("|")[0]
    for gold in ("17", "18"):
        assert grade(sentence.format(f"17 {or_} 18"), gold).reward == 0.0
    wrong = LANGUAGES[language].wrong.split("|")[0].partition("(")[0]
    assert grade(f"{wrong}: {sentence.format(18)}", "18").reward == 0.0
    assert grade(f"\\boxed{{18}}. {wrong}!", "18").reward == 0.0


# What also names the result of a step, and so is read on the last line alone.
LABELS = [
    "Ergebnis: {}", "Résultat : {}", "Resultado: {}", "Solución: {}.", "Risultato: {}", "Solução: {}",
    "Результат: {}", "Итого: {}", "Wynik: {}", "Resultaat: {}", "Sonuç: {}", "Kết quả: {}", "Trả lời: {}",
    "Hasil: {}", "結果：{}", "결과: {}", "الحل: {}", "النتيجة: {}", "हल: {}", "תשובה: {}", "Răspuns: {}",
    "Endergebnis: {}", "Résultat final : {}", "إجابة: {}", "最終回答: {}", "解：{}", "답변: {}",
    "**Resultado:** {}", "## Résultat\n{}", "### Ergebnis:\n\n{}",
]  # fmt: skip


@pytest.mark.parametrize("label", LABELS)
def test_a_label_on_the_last_line(label):
    line = label.format(18)
    for text in (line, f"3 + 15\n{line}", f"9 + 9 = 18, 1 + 1 = 2.\n\n{line}"):
        assert grade(text, "18").reward == 1.0, text
        assert grade(text, "17").reward == 0.0, text
    # another answer follows, or two stand behind it
    assert grade(f"{line}\n\n17", "18").reward == 0.0
    assert grade(f"{line}\nThe answer is 17.", "18").reward == 0.0
    assert grade(label.format("17 or 18"), "18").reward == 0.0
    assert answer_in(label.format("Paris")) == "Paris"


@pytest.mark.parametrize(("opening", "closing"), [("$$", "$$"), (r"\[", r"\]")])
def test_mathematics_on_display_is_one_line_however_it_is_broken(opening, closing):
    for block in (
        f"{opening}\n18\n{closing}",
        f"{opening}x\n= 18\n{closing}.",
        f"{opening}18{closing}",
    ):
        assert grade(f"So it is\n{block}", "18").reward == 1.0, block
        assert grade(block, "18").reward == 1.0, block
        assert grade(block, "17").reward == 0.0, block
        # several values are a list
        assert grade(f"{opening}\n17\n{closing}\n{opening}\n18\n{closing}", "18").reward == 0.0
    # this one was never opened
    assert grade(f"18\n{closing}", "18").reward == 0.0


RESULTS = {
    "ar": "النتيجة هي {}.", "bg": "Резултатът е {}.", "bn": "ফলাফল হলো {}।", "cs, sk": "Výsledek je {}.",
    "da, no": "Resultatet er {}.", "de": "Das Ergebnis ist {}.", "el": "Το αποτέλεσμα είναι {}.",
    "es": "Por lo tanto, el resultado es {}.", "fa": "نتیجه {} است.", "fi": "Tulos on {}.",
    "fr": "Le résultat est {}.", "he": "התוצאה היא {}.", "hi": "परिणाम {} है।", "hr, sr": "Rezultat je {}.",
    "hu": "Az eredmény {}.", "id": "Hasilnya adalah {}.", "it": "Il risultato è {}.",
    "ja": "したがって、結果は{}です。",
    "ko": "결과는 {}입니다.", "nl": "Het resultaat is {}.", "pl": "Wynik wynosi {}.", "pt": "O resultado é {}.",
    "ro": "Rezultatul este {}.", "ru": "Результат равен {}.", "sv": "Resultatet är {}.", "sw": "Matokeo ni {}.",
    "te": "ఫలితం {}.", "th": "ผลลัพธ์คือ {}", "tr": "Sonuç {}'dir.", "uk": "Результат дорівнює {}.",
    "vi": "Kết quả là {}.",
}  # fmt: skip


@pytest.mark.parametrize("language", [name for name, words in LANGUAGES.items() if words.label])
def test_a_result_in_the_last_sentence(language):
    sentence = RESULTS[language]
    for text in (sentence.format(18), f"3 + 15 = 18. {sentence.format(18)}"):
        assert grade(text, "18").reward == 1.0, text
        assert grade(text, "17").reward == 0.0, text
    or_ = LANGUAGES[language].or_.split("|")[0]
    assert grade(sentence.format(f"18 {or_} 17"), "18").reward == 0.0
    # the result of a step, or another follows
    assert grade(f"{sentence.format(18)}\n3 + 4 = 7", "18").reward == 0.0
    assert grade(f"{sentence.format(18)} {sentence.format(17)}", "18").reward == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "Ich glaube nicht, dass das Ergebnis 7 ist.",
        "No es cierto que el resultado es 7.",
        "Das Ergebnis ist nicht 7.",
        "Das Ergebnis ist größer als 7.",
        "Das Ergebnis ist 7, das Ergebnis ist 8.",
        "Das ist Ergebnis 7 der Studie.",
        "Das Zwischenergebnis ist 7.",
        "Das Ergebnis ist 7? Nein.",
    ],
)
def test_a_result_that_is_denied_or_another_thing(text):
    assert grade(text, "7").reward == 0.0


def test_kana_may_stand_before_an_answer():
    assert grade("足します。したがってこの問題の答えは18です。", "18").reward == 1.0
    assert grade("不正解は18です。", "18").reward == 0.0


PIECES = st.sampled_from(
    ["<answer>", "</answer>", "<think>", "</think>", "\\boxed{", "{", "}", "#### ", "\n", "The answer is ", "Answer:",
     '{"answer": ', '"', "【答案】", "Die Antwort ist ", "答案是", "7", "8", " or ", "B", "(C)", ".", ", not ", "$",
     "?", "<final_answer>", "</final_answer>", "<|begin_of_box|>", "<|end_of_box|>"]
)  # fmt: skip


@settings(max_examples=500, derandomize=True)
@given(st.lists(PIECES, max_size=12).map("".join))
def test_no_text_raises(text):
    final_statement(text)
    for form in ("tags", "boxed", "hash", "marker", "json", "last_line", "code", "<b>(.*)</b>"):
        final_statement(text, form)


@pytest.mark.parametrize(
    "piece",
    [
        '{"answer": ',
        "#### ",
        "\\boxed{7} ",
        "The answer is ",
        "【答案】",
        "<final_answer>",
        "<result>",
        "<result>7</final>",
        "</result>",
        "<|begin_of_box|>",
        "\n7",
        "{",
    ],
)
def test_a_megabyte_of_marks_ends(piece):
    """Quadratic time would take hours."""
    final_statement(piece * (1_000_000 // len(piece)))
