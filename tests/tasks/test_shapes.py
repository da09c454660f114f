"""Rows in the schemas of public datasets: nothing of them vanishes, a right answer earns the maximum
and a wrong one nothing, or the row is refused and counted.
"""

import base64
import json

import pytest

from pictures import content, dots
from present import present
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.build import columns_for
from swift_rlvr.tasks import TASKS, RowError, unused_columns
from swift_rlvr.tasks.columns import passage_text

METALS = ["oxygen", "iron", "wood"]
ASKS = {"question": "Which is a metal?"}
YEAR = {"question": "In which year?", "answer": "854"}
PLACE = "Cologne lies on the Rhine, which comes from the Alps and flows into the North Sea."


def earned(kind, row, answer):
    """What the verifier of a task pays for an answer in tags, on the row as it is prepared."""
    prepared = TASKS[kind].preprocess(row)
    reward = REWARDS[present(TASKS[kind].verifier)]()
    completion = f"<think>Well.</think><answer>{answer}</answer>"
    return reward([completion], **columns_for(reward, [prepared]))[0]


def prompt_of(kind, row):
    return TASKS[kind].preprocess(row)["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("kind", "row", "passage"),
    [
        (
            "qa",
            {"context": PLACE, "question": "Which river?", "answers": {"text": ["Rhine"]}},
            PLACE,
        ),
        ("qa", {"passage": PLACE, "question": "is it so", "answer": True}, PLACE),
        (
            "qa",
            {
                "question": "Which river?",
                "answer": "Rhine",
                "context": {"title": ["Cologne"], "sentences": [["It is old.", " It is big."]]},
            },
            "Cologne\nIt is old. It is big.",
        ),
        (
            "qa",
            {
                "question": "Which river?",
                "answer": "Rhine",
                "paragraphs": [{"idx": 0, "title": "Cologne", "paragraph_text": "It is old."}],
            },
            "Cologne\nIt is old.",
        ),
        ("qa", {"question": "?", "answer": "a", "context": {"contexts": ["X.", "Y."]}}, "X.\n\nY."),
        ("choice", {"Article": PLACE, **ASKS, "options": METALS, "answer": "B"}, PLACE),
        ("choice", {"text": PLACE, **ASKS, "options": METALS, "answer": 1}, PLACE),
        (
            "math",
            {"Body": "Tom has 3 apples.", "Question": "How many?", "Answer": 3.0},
            "Tom has 3",
        ),
        ("math", {"instruction": "Solve it.", "input": "x = 3", "output": "3"}, "Solve it."),
        # tables: of WikiTableQuestions, of FinQA, by columns, of objects, as text
        (
            "qa",
            {"table": {"header": ["city", "year"], "rows": [["Ulm", "854"]]}, **YEAR},
            "| city | year |\n| Ulm | 854 |",
        ),
        (
            "math",
            {"table": [["city", "year"], ["Bonn", None], ["Ulm Inc.", 854]], **YEAR},
            "| city | year |\n| Bonn |  |\n| Ulm Inc. | 854 |",
        ),
        (
            "qa",
            {"context": {"city": ["Bonn", "Ulm"], "year": [11, 854]}, **YEAR},
            "| city | year |\n| Bonn | 11 |\n| Ulm | 854 |",
        ),
        (
            "qa",
            {"context": '[{"city": "Bonn", "year": 11}, {"city": "Ulm", "year": 854}]', **YEAR},
            "| city | year |\n| Bonn | 11 |\n| Ulm | 854 |",
        ),
        ("qa", {"table": "city,year\nUlm,854", **YEAR}, "city,year\nUlm,854"),
        ("qa", {"context": [["Bonn", ["It is old."]]], **YEAR}, "Bonn\nIt is old."),
        ("qa", {"context": [["It is old.", "So."], ["A", "B"]], **YEAR}, "It is old.\n\nSo."),
    ],
)
def test_the_passage_stands_before_the_question(kind, row, passage):
    prompt = prompt_of(kind, row)
    question = next(row[name] for name in ("question", "Question", "input") if name in row)
    assert passage in prompt and prompt.index(passage) < prompt.index(question)
    # With another passage it is another question.
    column = next(name for name in row if passage_text(row[name]).startswith(passage[:9]))
    other = {**row, column: "Something else."}
    assert TASKS[kind].identity(row) != TASKS[kind].identity(other)
    assert unused_columns(TASKS[kind], row) == []


def test_the_instruction_is_the_question_where_there_is_no_input():
    for empty in ("", None):
        row = {"instruction": "What is 1 + 1?", "input": empty, "output": "2"}
        assert prompt_of("math", row) == "What is 1 + 1?"


@pytest.mark.parametrize(
    ("columns", "unused"),
    [
        ({"evidence": PLACE}, ["evidence"]),
        ({"evidence": [PLACE, PLACE]}, ["evidence"]),
        # the answer in other words, which no prompt may show, and what is no prose
        ({"rationale": PLACE, "long_answer": PLACE, "id": "x" * 80, "source": "web"}, []),
        # the question is in it: another trainer's prompt, perhaps with the answer
        ({"text": f"Which river? {PLACE} The answer is the Rhine."}, ["text"]),
    ],
)
def test_what_is_not_used_is_named(columns, unused):
    row = {"question": "Which river?", "answer": "Rhine", **columns}
    assert unused_columns(TASKS["qa"], row) == unused
    assert all(str(value) not in prompt_of("qa", row) for value in columns.values())


def test_a_passage_that_a_task_with_other_columns_does_not_use_is_named():
    tests = {"tests": ["assert f() == 1"], "test_notes": PLACE, "editorial": PLACE}
    limits = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}], "response": PLACE}
    row = {"instruction": "Sum it up.", "input": PLACE, **limits}
    assert unused_columns(TASKS["instructions"], row) == ["input"]
    calls = {"tools": [{"name": "f", "parameters": {}}], "calls": [{"name": "f"}]}
    for kind, columns in (("code", tests), ("instructions", limits), ("tool_calls", calls)):
        row = {"question": "Write f().", "context": "Tom has 3.", **columns}
        assert unused_columns(TASKS[kind], row) == ["context"]
        told = {**row, "question": "Tom has 3.\nWrite f()."}
        assert unused_columns(TASKS[kind], told) == []


def test_several_questions_in_a_row_are_refused_with_the_column_that_has_them():
    row = {"question": ["1 + 1?", "1 + 2?"], "answer": ["2", "3"]}
    with pytest.raises(RowError, match="column 'question': expected one question a row, got 2"):
        TASKS["math"].preprocess(row)


def test_what_the_trainer_takes_beside_the_messages_is_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dots(1).save(tmp_path / "a.png")
    images = [{"bytes": None, "path": "a.png"}]
    beside = {
        "images": images,
        "tools": [{"type": "function"}],
        "chat_template_kwargs": {"enable_thinking": False},
        "objects": {"bbox": [[1, 2, 3, 4]]},
    }
    for kind, row in (
        ("math", {"question": "<image>1 + 1?", "answer": "2"}),
        ("qa", {"question": "<image>Who?", "answer": "Tom"}),
        ("choice", {"question": "<image>Which?", "options": METALS, "answer": "B"}),
    ):
        prepared = TASKS[kind].preprocess({**row, **beside})
        assert {name: prepared[name] for name in beside} == beside
        single = TASKS[kind].preprocess({**row, "image": "a.png", "video": None, "audio": ""})
        assert single["images"] == images and "videos" not in single and "audios" not in single
        with pytest.raises(RowError, match="'images': the question has <image> once, and the"):
            TASKS[kind].preprocess(row)


PNG = content(dots(1))
BASE64 = base64.b64encode(PNG).decode("ascii")


@pytest.mark.parametrize(
    ("images", "problem"),
    [
        (["nix.png"], "column 'images': there is no file 'nix.png' beside the data file, in the"),
        (["a.png", "nix.png"], "no file 'nix.png'"),
        ("nix.png", "no file 'nix.png'"),
        ('["nix.png"]', "no file 'nix.png'"),  # of a .csv file
        ([{"path": "nix.png", "bytes": None}], "no file 'nix.png'"),
        ([{"path": "nix.png", "bytes": PNG}], None),
        (["a.png"], None),
        (["b.png"], None),  # in ROOT_IMAGE_DIR
        (["https://example.org/nix.png", f"data:image/png;base64,{BASE64}", BASE64], None),
        ([PNG], None),
    ],
)
def test_an_image_that_is_not_there_is_named(tmp_path, monkeypatch, images, problem):
    (tmp_path / "pictures").mkdir()
    for path in ("a.png", "pictures/b.png"):
        dots(1).save(tmp_path / path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOT_IMAGE_DIR", "pictures")
    row = {"question": "What is it?", "answer": "Tom", "images": images}
    if problem is None:
        assert "images" in TASKS["qa"].preprocess(row)
        return
    with pytest.raises(RowError, match=problem):
        TASKS["qa"].preprocess(row)


@pytest.mark.parametrize(
    ("question", "is_shown"),
    [
        ("See ![figure](x.png). Who?", True),
        ("![](https://cdn.example.org/cropped/1?height=10) Who?", True),
        ('<img src="x.png"> Who?', True),
        ("<image 1> Who?", True),
        ("What does `<img src=x.png>` show in HTML?", False),
        ("What is 5![1](2)?", False),
        ("Is <imgs> a tag? Is a < image 1 > b?", False),
    ],
)
def test_an_image_that_only_the_question_shows_is_named(question, is_shown):
    row = {"question": question, "answer": "Tom"}
    if not is_shown:
        TASKS["qa"].preprocess(row)
        return
    with pytest.raises(RowError, match="'images': the question has .*, and the row has 0 images"):
        TASKS["qa"].preprocess(row)
    TASKS["qa"].preprocess({**row, "images": [PNG]})
    row = {"question": "Which?", "options": [f"A {question}", "B"], "answer": "A"}
    with pytest.raises(RowError, match="'images': the question has .*, and the row has 0 images"):
        TASKS["choice"].preprocess(row)


def test_an_image_is_shown_as_often_as_one_likes():
    row = {"question": "<image 1> and <image 2>, or <image 1>?", "answer": "Tom"}
    other = content(dots(2))
    images = TASKS["qa"].preprocess({**row, "images": [PNG, other]})["images"]
    assert [image["bytes"] for image in images] == [PNG, other, PNG]
    with pytest.raises(RowError, match="the question has <image 2>, and the row has 1 image"):
        TASKS["qa"].preprocess({**row, "images": [PNG]})


@pytest.mark.parametrize(
    ("columns", "unused"),
    [
        ({"thumbnail": "a.png", "image_id": 7, "has_image": True}, ["thumbnail"]),
        ({"scene": {"bytes": PNG, "path": None}}, ["scene"]),
        ({"view_1": PNG, "view_2": None}, ["view_1"]),
        ({"img_link": "https://example.org/1", "url": "https://example.org/2"}, ["img_link"]),
        ({"photos": ["a.png"], "image_size": [3, 4], "img_caption": "A cat."}, ["photos"]),
        ({"images": [PNG], "thumbnail": "a.png"}, []),  # the same
        ({"figure": "Figure 3", "diagram": 7}, []),  # no pictures
        ({"clip": "a.mp4", "speech": "https://example.org/a.wav"}, ["clip", "speech"]),
    ],
)
def test_an_image_that_no_trainer_is_given_is_named(columns, unused):
    row = {"question": "What is it?", "answer": "Tom", **columns}
    assert unused_columns(TASKS["qa"], row) == unused


@pytest.mark.parametrize(
    "columns",
    [
        {"image_path": "a.png", "image_id": 7, "has_image": True},
        {"decoded_image": {"bytes": PNG, "path": None}, "image": "nix.png"},
        {"image_1": PNG, "image_2": None},
        {"pictures": ["a.png"], "image_size": [3, 4], "img_caption": "A cat."},
    ],
)
def test_other_names_of_columns_with_images(columns, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dots(1).save(tmp_path / "a.png")
    row = {"question": "What is it?", "answer": "Tom", **columns}
    assert len(TASKS["qa"].preprocess(row)["images"]) == 1
    assert unused_columns(TASKS["qa"], row) == []


@pytest.mark.parametrize(
    "gold", ["(a) 1 (b) 2", r"So \boxed{(1) 3; (2) 4}.", "(i) 5\n(ii) 7", "Part A: 5, Part B: 7"]
)
def test_the_answers_to_several_questions_are_no_gold_of_one(gold):
    """As a product, `(a) 2 (b) 1` would be right."""
    with pytest.raises(RowError, match="those to several: .*; write a row for each"):
        TASKS["math"].preprocess({"problem": "(a) 0 + 1? (b) 1 + 1?", "answer": gold})
    # The steps of a solution are none.
    row = {"problem": "0 + 1?", "solution": "1) We add 0. 2) We add 1.\n\n\\boxed{1}"}
    assert TASKS["math"].preprocess(row)["solution"]


@pytest.mark.parametrize("gold", ["1:2, 2:1", "1:30 and 2:45"])
def test_ratios_and_times_are_no_numbers_of_questions(gold):
    row = {"problem": "Which?", "answer": gold}
    assert TASKS["math"].preprocess(row)["solution"] == gold


@pytest.mark.parametrize(
    "gold", ["(1, 2)", "(a)(b)", "(A) and (B)", "a = 1, b = 2", "(1) (2)", "a(b + 2)", "(1)(x)"]
)
def test_one_answer_with_brackets_is_one(gold):
    TASKS["math"].preprocess({"problem": "What?", "answer": gold})


CHOICES_OF = {"choices": METALS}
INSIDE = {"question": "Which is a metal? A. oxygen B. iron C. wood"}
NUMBERED = {"question": "Which is a metal?\n1. oxygen\n2. iron\n3. wood", "options": METALS}
SUM = {"question": "1 + 2?\nA) 2\nB) 3\nC) 4\nGive the letter only."}


@pytest.mark.parametrize(
    ("kind", "gold", "right", "wrong"),
    [
        ("math", {"reward_model": {"ground_truth": '["121"]'}}, ["121"], "120"),
        ("math", {"reward_model": {"ground_truth": '["6", "\\\\text{C}"]'}}, ["6", "C"], "D"),
        ("math", {"verification_info": "{'ground_truth': '121'}"}, ["121"], "120"),
        ("math", {"extra_info": {"answer": "121"}}, ["121"], "120"),
        ("math", {"answer": "[1, 2]"}, ["[1, 2]"], "1"),
        ("math", {"answer": None, "answer_number": 2}, ["2"], "3"),
        # solutions in words, as in Orca-Math
        ("math", {"answer": "He lifts 390 pounds."}, ["390", "390 pounds"], "39"),
        ("math", {"answer": "We add 5 and 3, which is 8. So Tom has 8 apples."}, ["8"], "5"),
        (
            "math",
            {"answer": f"{'It is long. ' * 99}\n\nTherefore, he has 216 marks."},
            ["216"],
            "21",
        ),
        ("math", {"answer": "even", "solution": "We see 5 apples."}, ["even"], "5"),
        ("qa", {"possible_answers": '["politician", "political leader"]'}, ["politician"], "poet"),
        ("qa", {"answer": {"value": "Rhine", "aliases": ["Rhein"]}}, ["Rhine", "Rhein"], "Main"),
        ("qa", {"answer": [{"value": "Rhine", "aliases": ["Rhein"]}]}, ["Rhein"], "Main"),
        ("qa", {"reward_model": {"ground_truth": {"target": ["Rhine"]}}}, ["Rhine"], "Main"),
        ("qa", {"answers_spans": {"spans": ["12"], "types": ["number"]}}, ["12"], "13"),
        ("qa", {"answer": "[1, 2]"}, ["[1, 2]"], "1"),
        ("qa", {"answer": "Rhine", "answer_aliases": ["Rhein"]}, ["Rhine", "Rhein"], "Main"),
        ("qa", {"answer": {"number": "12", "spans": [], "date": {}}}, ["12"], "13"),
        ("qa", {"question": {"text": "Who?"}, "answers": [{"text": "Tom"}]}, ["Tom"], "Ann"),
        ("qa", {"answer": True}, ["Yes", "True", "yes."], "No"),
        ("qa", {"answer": "False"}, ["no", "False"], "True"),
        ("qa", {"final_decision": "yes"}, ["Yes", "true"], "maybe"),
        ("qa", {"answer": "Yes, since it conducts."}, ["Yes", "true"], "No"),
        ("qa", {"answer": "No. 7"}, ["No. 7"], "No"),
        ("qa", {"answer": "The answer is Tom."}, ["Tom"], "Ann"),
        ("qa", {"answer": "Antwort: Tom"}, ["Tom"], "Ann"),
        ("qa", {"answer": "Answer: yes"}, ["Yes", "true"], "No"),
        # of an editor of quizzes
        ("qa", {"answer": "<p><b>Tom&nbsp;Fox</b></p>"}, ["Tom Fox"], "Ann"),
        ("math", {"answer": '<p class="x">121&nbsp;</p>'}, ["121"], "120"),
        # of choices that only the question shows, the letter, the text, and both
        ("math", {**SUM, "answer": "3"}, ["3", "B", "B) 3"], "A"),
        ("math", {**SUM, "answer": "(B)"}, ["3", "B"], "2"),
        ("math", {"question": "Of A) 2 B) 3 C) 4, how many are even?", "answer": "2"}, ["2"], "C"),
        ("qa", {**INSIDE, "answer": "iron"}, ["iron", "B", "B) iron"], "C"),
        ("qa", {**INSIDE, "answer": "B"}, ["iron", "B", "(B) iron"], "wood"),
        ("qa", {**INSIDE, "answer": ["A", "Fe"]}, ["oxygen", "Fe"], "B"),
    ],
)
def test_golds(kind, gold, right, wrong):
    row = {"question": "What is it?", **gold}
    assert [earned(kind, row, answer) for answer in right] == [1.0] * len(right)
    assert earned(kind, row, wrong) == 0.0
    assert TASKS[kind].gold_completion(row)


def test_an_object_is_no_answer_of_mathematics_also_as_text():
    for gold in ({"x": 1, "y": 0}, '{"x": 1, "y": 0}'):
        with pytest.raises(RowError, match="expected an answer that external_accuracy can read"):
            TASKS["math"].preprocess({"problem": "Solve it.", "answer": gold})


@pytest.mark.parametrize("gold", ["proof", "Proof.", "notfound", "N/A", "NA", "unknown", ""])
def test_what_is_no_answer_is_refused(gold):
    in_words = {"problem": "Show it.", "answer": gold, "solution": "So there are 5 apples."}
    with pytest.raises(RowError):
        TASKS["math"].preprocess(in_words)
    with pytest.raises(RowError) as error:
        TASKS["math"].preprocess({"problem": "Show it.", "solution": "...", "answer": gold})
    assert error.value.label == "no answer that can be read"


@pytest.mark.parametrize(
    "columns",
    [
        {**CHOICES_OF, "answer": "B. iron"},
        {**CHOICES_OF, "answer": "(B) iron"},
        {**CHOICES_OF, "answer": r"\boxed{B}"},
        {**CHOICES_OF, "answer": "<answer>B</answer>"},
        {**CHOICES_OF, "answer": "1"},
        {**CHOICES_OF, "correct_option": 1},
        {**CHOICES_OF, "golden_answers": ["B"]},
        {"options": "A) oxygen B) iron C) wood", "answer": "B"},
        {"options": "a ) oxygen , b ) iron , c ) wood", "correct": "b"},
        {"opa": "oxygen", "opb": "iron", "opc": "wood", "cop": 1},
        {"option_a": "oxygen", "option_b": "iron", "option_c": "wood", "answer": "B"},
        {"endings": METALS, "label": "1"},
        {"answers": METALS, "label": 1},
        # the number in a column's name, and the index of PIQA
        {"option1": "oxygen", "option2": "iron", "option3": "wood", "answer": "2"},
        {"sol1": "oxygen", "sol2": "iron", "sol3": "wood", "label": 1},
        {"answerA": "oxygen", "answerB": "iron", "answerC": "wood", "label": "2"},
        {"answer0": "oxygen", "answer1": "iron", "answer2": "wood", "label": 1},
        {**INSIDE, "answer": "B"},
        # by number, as the question shows them
        {**NUMBERED, "answer": "2"},
        {**NUMBERED, "answer": 2},
        {"question": {"stem": "Which is a metal?", "choices": METALS}, "answerKey": "B"},
        {
            "question": None,
            "question_stem": "Which is a metal?",
            "choices": METALS,
            "answerKey": "B",
        },
        {"mc1_targets": {"choices": ["iron", "oxygen", "wood"], "labels": [1, 0, 0]}},
        {"Correct Answer": "iron\n", "Incorrect Answer 1": "oxygen", "Incorrect Answer 2": "wood"},
        {"correct_answer": "iron", "distractor1": "oxygen", "distractor2": "wood"},
        {"best_answer": "iron", "incorrect_answers": ["oxygen", "wood"]},
    ],
)
def test_choices(columns):
    row = {**ASKS, **columns}
    prepared = TASKS["choice"].preprocess(row)
    assert sorted(prepared["options"]) == sorted(METALS)
    assert prepared["options"]["ABC".index(prepared["solution"])] == "iron"
    prompt = prepared["messages"][-1]["content"]
    times = 2 if row["question"] == NUMBERED["question"] else 1
    assert "Which is a metal?" in prompt and all(prompt.count(text) == times for text in METALS)
    assert earned("choice", row, prepared["solution"]) == 1.0
    assert earned("choice", row, "iron") == 1.0 and earned("choice", row, "wood") == 0.0


def test_where_the_right_choice_has_a_column_of_its_own_it_is_not_always_a():
    letters = []
    for number in range(60):
        row = {"Question": f"Which is a metal, {number}?", "Correct Answer": "iron"}
        row |= {"Incorrect Answer 1": "oxygen", "Incorrect Answer 2": "wood"}
        letters.append(TASKS["choice"].preprocess(row)["solution"])
        # The order is the row's own.
        assert TASKS["choice"].preprocess(row)["solution"] == letters[-1]
    assert all(letters.count(letter) > 8 for letter in "ABC")


def test_choices_that_are_missing_are_said_with_the_flag_that_names_them():
    message = """none in the columns question, answer, x; .*--columns '{"NAME OF THE CHOICES"""
    with pytest.raises(RowError, match=message):
        TASKS["choice"].preprocess({**ASKS, "answer": "B", "x": 1})
    with pytest.raises(RowError, match="expected one of A, B, C, .*got 'B. wood'"):
        TASKS["choice"].preprocess({**ASKS, **CHOICES_OF, "answer": "B. wood"})


def test_a_prompt_of_nemo_gym_is_read():
    turns = [{"role": "user", "content": "What is 2 squared?"}]
    row = {"responses_create_params": {"input": turns}, "expected_answer": "4"}
    assert TASKS["math"].preprocess(row)["messages"][1:] == turns
    assert earned("math", row, "4") == 1.0
    as_text = {"responses_create_params": json.dumps({"input": turns}), "expected_answer": "4"}
    assert TASKS["math"].preprocess(as_text)["messages"][1:] == turns
