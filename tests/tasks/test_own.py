"""Own files of questions and answers: columns of any name, what becomes the gold, what is refused,
text answers.
"""

import json
import re
import string
from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from swift_rlvr.contract.datasets import check_dataset
from swift_rlvr.rewards import REWARDS
from swift_rlvr.rewards.exact_match import f1
from swift_rlvr.tasks import TASKS, RowError, unread_columns
from swift_rlvr.tasks.own import MESSAGES, question_of
from swift_rlvr.tasks.sources import file_rows, parse_source
from swift_rlvr.utils.errors import InputError
from swift_rlvr.verifiers.answers import normalised_answer

ASKED = [{"role": "user", "content": "1 + 1?"}]
SAYS_3 = {"role": "assistant", "content": r"So $\boxed{3}$."}
HUMAN = {"from": "human", "value": "1 + 1?"}


@pytest.mark.parametrize(
    ("row", "solution"),
    [
        ({"question": "1 + 1?", "answer": "2"}, "2"),
        ({"Problem": "1 + 1?", "Final_Answer": 2}, "2"),
        ({"题目": "1 + 1?", "答案": "2"}, "2"),
        ({"Problem Statement": "1 + 1?", "Ground Truth": "2"}, "2"),
        ({"question_text": "1 + 1?", "gt": "2"}, "2"),
        ({"题干": "1 + 1?", "标准答案": "2"}, "2"),
        ({"Question-Text": "1 + 1?", "groundTruth": "2"}, "2"),
        # the exact name before one that differs by its case
        ({"Problem": "No.", "problem": "1 + 1?", "ANSWER": "3", "answer": "2"}, "2"),
        ({"problem": "1 + 1?", "solution": r"So $\boxed{2}$."}, "2"),
        (
            {"problem": "1 + 1?", "answer": "proof", "solution": r"So $\boxed{2}$."},
            "2",
        ),  # what is more than words
        ({"problem": "1 + 1?", "answer": "even"}, "even"),
        ({"problem": "1 + 1?", "answer": "It is easy.\n#### 2"}, "2"),
        ({"problem": "1 + 1?", "answer": ["2"]}, "2"),
        ({"question": "1 + 1?", "expected_answer": "2"}, "2"),  # NeMo-Gym
        ({"question": "1 + 1?", "expected_answer": "2", "solution": "No box."}, "2"),
        # an index is no answer to a question of mathematics
        ({"question": "1 + 1?", "options": ["2", "3"], "answer_index": 0}, None),
        ({"problem": "1 + 1?", "answer": ["2", r"\frac{1}{"]}, None),
        ({"problem": "1 + 1?", "answer": ["2", "4/2"]}, '["2", "4/2"]'),  # any will do
        ({"problem": "1 + 1?", "answer": '["2", "4/2"]'}, '["2", "4/2"]'),
        ({"problem": "1 + 1?", "answer": '["2", 2.0]'}, '["2", "2.0"]'),
        ({"problem": "1 + 1?", "answer": [2, 3]}, '["2", "3"]'),
        ({"problem": "1 + 1?", "answer": "[2, 3]"}, "[2, 3]"),  # one answer, a list
        ({"prompt": ASKED, "reward_model": {"ground_truth": "2", "style": "rule"}}, "2"),  # verl's
        ({"messages": ASKED, "solution": "2", "level": 3}, "2"),
        # conversations that end with an answer, which is taken where there is no other
        ({"messages": [*ASKED, SAYS_3], "answer": "2"}, "2"),
        ({"messages": [*ASKED, SAYS_3]}, "3"),
        # behind the thinking of the model that wrote it, if anything is
        ({"problem": "1 + 1?", "response": "<think>\\boxed{3}?</think>\n\nIt is 2."}, "It is 2."),
        ({"problem": "1 + 1?", "response": r"<think>It is \boxed{2}.</think>"}, None),
        ({"messages": [*ASKED, SAYS_3, *ASKED], "answer": "2"}, "2"),
        ({"messages": [*ASKED, SAYS_3, SAYS_3], "answer": "2"}, None),
        ({"messages": [SAYS_3], "answer": "2"}, None),
        ({"messages": ASKED}, None),
        # ShareGPT's
        ({"conversations": [HUMAN, {"from": "gpt", "value": "3"}], "answer": "2"}, "2"),
        ({"conversations": [HUMAN], "answer": "2"}, "2"),
        ({"conversation": [{"human": "1 + 1?", "assistant": "2"}]}, "2"),
        ({"conversations": [{"from": "human", "value": None}], "answer": "2"}, None),
        ({"conversations": ["1 + 1?"], "answer": "2"}, None),
        (
            {
                "problem": "1 + 1?",
                "messages": [*ASKED, {"role": "assistant", "content": "2"}],
                "answer": "2",
            },
            "2",
        ),
        ({"problem": "Prove it.", "solution": "Left to the reader."}, None),
        ({"problem": "1 + 1?", "answer": True}, None),
        ({"problem": "1 + 1?", "answer": []}, None),
        ({"problem": "1 + 1?", "answer": None}, None),
        ({"problem": " ", "answer": "2"}, None),
        ({"text": "1 + 1?", "number": "2"}, None),
        ({}, None),
    ],
)
def test_own_mathematics(row, solution):
    task = TASKS["math"]
    if solution is None:
        with pytest.raises(RowError):
            task.preprocess(row)
        return
    prepared = task.preprocess_for_training(row)
    assert (prepared["solution"], prepared["task"], prepared.get("level")) == (
        solution,
        "math",
        row.get("level"),
    )
    assert prepared["messages"][-1] == {"role": "user", "content": "1 + 1?"}
    conversations = [name for name in (*MESSAGES, "prompt") if name in row]
    if conversations and "problem" not in row:
        (name,) = conversations
        turns = question_of(row[name])
        assert prepared["messages"][-len(turns) :] == turns
    # after the system prompt that asks for the tags, unless an earlier answer shows another form
    roles = [turn["role"] for turn in prepared["messages"]]
    assert roles == (
        ["system", "user"] if "assistant" not in roles else ["user", "assistant", "user"]
    )
    assert REWARDS["accuracy"]()([task.gold_completion(row)], solution=[prepared["solution"]]) == [
        1.0
    ]


@pytest.mark.parametrize(
    ("row", "roles"),
    [
        ({"system": "Think.", "conversations": [HUMAN]}, ["system", "user"]),
        ({"messages": [{"role": "user", "content": "1 + 1? Put it in \\boxed{}."}]}, ["user"]),
        (
            {"system": "No.", "messages": [{"role": "system", "content": "Think."}, *ASKED]},
            ["system", "user"],
        ),
        (
            {"system": "Think.", "messages": [*ASKED, SAYS_3, *ASKED, SAYS_3]},
            ["system", "user", "assistant", "user"],
        ),
    ],
)
def test_prompts_from_conversations(row, roles):
    messages = TASKS["math"].preprocess({**row, "answer": "2"})["messages"]
    assert [turn["role"] for turn in messages] == roles
    if roles[0] == "system":
        assert messages[0]["content"] == "Think."


CALL = {"name": "add", "arguments": "{}"}
RESULT = {"role": "tool", "content": "3"}
CALLS = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": CALL}]}


@pytest.mark.parametrize(
    ("turns", "taken"),
    [
        # other names of the roles
        ([{"role": "developer", "content": "Think."}, *ASKED], ["system", "user"]),
        (
            [{"role": "System", "content": "Think."}, {**ASKED[0], "role": "User"}],
            ["system", "user"],
        ),
        ([*ASKED, {"role": "model", "content": "3"}, *ASKED], ["user", "assistant", "user"]),
        # two of one role, which ms-swift would write as one word
        ([{"role": "user", "content": "I have 3."}, *ASKED], ["user"]),
        (
            [*ASKED, {"role": "moderator", "content": "Go on."}, *ASKED],
            "turn 2: .*one of the roles",
        ),
        (
            [*ASKED, {"role": "system", "content": "Think."}, *ASKED],
            "turn 2: .*system turn only at",
        ),
        ([*ASKED, {"role": "assistant", "content": None}, *ASKED], "turn 2: expected a text as"),
        ([*ASKED, SAYS_3, RESULT, *ASKED], "turn 4: expected a result of a tool after another"),
        ([RESULT, *ASKED], "turn 1: expected a result of a tool after another"),
        ([*ASKED, SAYS_3, RESULT, SAYS_3, *ASKED], ["tool", "assistant", "user"]),
        ([*ASKED, CALLS, *ASKED], "turn 2: expected each call as a turn of the role tool_call"),
        (
            [*ASKED, {"role": "assistant", "content": "", "function_call": CALL}, *ASKED],
            "turn 2: expected each call",
        ),
    ],
)
@pytest.mark.parametrize("beside", [{}, {"question": "And now?"}])
def test_turns_are_those_that_ms_swift_takes_or_refused(turns, taken, beside):
    """ms-swift deletes a row with another role or no content, drops calls, and its templates fail at a
    later system turn.
    """
    row = {"messages": turns, "answer": "2", **beside}
    if isinstance(taken, str):
        with pytest.raises(RowError, match=taken):
            TASKS["math"].preprocess(row)
        return
    messages = TASKS["math"].preprocess(row)["messages"]
    assert [turn["role"] for turn in messages][-len(taken) :] == taken
    assert messages[-1]["content"] == ("I have 3.\n\n1 + 1?" if taken == ["user"] else "1 + 1?")


@pytest.mark.parametrize("name", ["math", "qa", "choice", "code", "instructions"])
def test_with_other_earlier_turns_it_is_another_question(name):
    columns = {"choices": ["1", "2"], "answer": "2", "tests": ["assert f() == 2"]}
    constraints = {"instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    rows: list[dict[str, Any]] = []
    for said in ("I have 3.", "I have 4."):
        first = {"role": "user", "content": said}
        turns = [first, {"role": "assistant", "content": "Well."}, *ASKED]
        rows.append({"prompt": turns, **columns, **constraints})
    identity = TASKS[name].identity
    assert identity(rows[0]) != identity(rows[1])
    # The system prompt is no part of the question.
    turns = [{"role": "system", "content": "Think."}, *rows[0]["prompt"]]
    assert identity({**rows[0], "prompt": turns}) == identity(rows[0])


@pytest.mark.parametrize(
    "instruction",
    [
        "The last line of your response should be of the form Answer: $Answer (without quotes).",
        "Put your final answer within \\boxed{}.",
        'Output the final answer after "####".',
        "请将最终答案放在\\boxed{}中。",
        'Respond with JSON: {"answer": ...}',
        "Return the answer in <answer> </answer> tags.",
    ],
)
@pytest.mark.parametrize("name", ["math", "choice", "qa"])
@pytest.mark.parametrize("column", ["problem", "messages", "prompt"])
def test_an_instruction_of_the_row_stays_alone(column, name, instruction):
    question = f"Which number is 1 + 1?\n{instruction}"
    asked = question if column == "problem" else [{"role": "user", "content": question}]
    row = {column: asked, "choices": ["1", "2"], "answer": "2"}
    (message,) = TASKS[name].preprocess(row)["messages"]
    assert message["content"].startswith(question)
    assert "Answer with the letter" not in message["content"]


@pytest.mark.parametrize("name", ["math", "choice", "qa"])
def test_an_instruction_of_ours_is_added_where_there_is_none(name):
    """Also where the question says what to answer, but not where: a letter, or a single word."""
    for question in ("1 + 1?", "1 + 1? Answer with the letter only.", "```python\nprint(2)\n```?"):
        for asked in (question, [{"role": "user", "content": question}]):
            row = {"prompt": asked, "choices": ["1", "2"], "answer": "2"}
            system, _ = TASKS[name].preprocess(row)["messages"]
            assert "<answer> </answer> tags" in system["content"]


def test_columns_of_any_name_can_be_named(monkeypatch):
    row = {"text": "1 + 1?", "number": "2", "answer": "7"}
    with pytest.raises(
        RowError, match="column 'problem': nothing in .*text.*; set SWIFT_RLVR_QUESTION_COLUMN"
    ):
        TASKS["math"].preprocess(row)
    with pytest.raises(RowError, match="column 'input': expected a question, got"):
        TASKS["math"].preprocess({"input": {"q": "1 + 1?"}, "answer": "2"})
    monkeypatch.setenv("SWIFT_RLVR_QUESTION_COLUMN", "text")
    monkeypatch.setenv("SWIFT_RLVR_ANSWER_COLUMN", "number")
    assert TASKS["math"].preprocess(row)["solution"] == "2"


def test_columns_without_a_usual_name_are_offered_with_the_flag_that_renames_them(
    tmp_path, monkeypatch
):
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"Text of the problem": "1 + 1?", "Right": "2"}) + "\n")
    columns = '{"Text of the problem": "problem", "NAME OF THE ANSWER": "answer"}'
    message = (
        f"has Text of the problem, Right; rename columns with --columns '{columns}'"
        " or set SWIFT_RLVR_QUESTION_COLUMN and SWIFT_RLVR_ANSWER_COLUMN"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        check_dataset(parse_source(f"math:{file}"))
    given = columns.replace("NAME OF THE ANSWER", "RIGHT")  # in any case, as in ms-swift
    assert check_dataset(parse_source(f"math:{file}", columns=given)).bad == 0

    # BigCodeBench's: `test` is near to `text`, and holds the tests
    file.write_text(json.dumps({"instruct_prompt": "Write f().", "test": "assert f()"}) + "\n")
    with pytest.raises(InputError, match=re.escape('{"instruct_prompt": "messages"}')):
        check_dataset(parse_source(f"code:{file}"))
    file.write_text(json.dumps({"Text of the problem": "1 + 1?", "Right": "2"}) + "\n")

    monkeypatch.setenv("SWIFT_RLVR_ANSWER_COLUMN", "gold")
    message = "SWIFT_RLVR_ANSWER_COLUMN is gold, which is not one of these"
    with pytest.raises(InputError, match=message):
        check_dataset(parse_source(f"math:{file}", columns={"Text of the problem": "problem"}))


def test_the_nearest_column_of_a_task_with_fixed_columns_is_offered(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"Question": "1 + 1?", "Answers": "#### 2"}) + "\n")
    columns = '{"Question": "question", "Answers": "answer"}'
    with pytest.raises(
        InputError, match=re.escape(f"rename columns with --columns '{columns}'") + "$"
    ):
        check_dataset(parse_source(f"gsm8k:{file}"))
    assert parse_source(str(file), columns=columns).task.name == "gsm8k"
    assert check_dataset(parse_source(f"gsm8k:{file}", columns=columns)).bad == 0


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("problem", "columns: must be an object in JSON such as .*, got 'problem'"),
        ('{"q": 1}', "columns: must be an object in JSON"),
        ('["q"]', "columns: must be an object in JSON"),
        ('{"q": "answer"}', "columns: line 1: two columns would be named answer"),
    ],
)
def test_new_names_that_cannot_be_used(tmp_path, columns, message):
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps({"q": "1 + 1?", "answer": "2"}) + "\n")
    with pytest.raises(InputError, match=message):
        check_dataset(parse_source(f"math:{file}", columns=columns))


@pytest.mark.parametrize(
    ("columns", "letter"),
    [
        ({"choices": ["oxygen", "iron", "salt"], "answer": "B"}, "B"),
        ({"options": ["oxygen", "iron", "salt"], "answer": "iron"}, "B"),
        ({"choices": ["oxygen", "iron", "salt"], "answer": 1}, "B"),
        ({"choices": {"text": ["oxygen", "iron"], "label": ["1", "2"]}, "answerKey": "2"}, "B"),
        ({"choices": {"a": "oxygen", "b": "iron"}, "answer": "(b)"}, "B"),
        ({"A": "oxygen", "B": "iron", "C": None, "answer": "B"}, "B"),
        ({"choices": ["0", "1", "2"], "answer": "1"}, "B"),  # as it is written, not an index
        (
            {"choices": ["B", "A"], "answer": "A"},
            None,
        ),  # the label of one and the text of the other
        ({"choices": ["oxygen", "iron"], "answer": 2}, None),
        ({"choices": ["oxygen", "iron"], "answer": "lead"}, None),
        ({"choices": ["iron", "iron"], "answer": "A"}, None),
        ({"choices": ["iron"], "answer": "A"}, None),
        ({"choices": [str(n) for n in range(11)], "answer": "A"}, None),
        ({"answer": "A"}, None),
        # letters and indices beside `options`, in the forms of other datasets
        ({"options": ["oxygen", "iron", "salt"], "expected_answer": "B"}, "B"),
        ({"options": ["oxygen", "iron", "salt"], "answer": "[B]"}, "B"),
        ({"options": ["oxygen", "iron", "salt"], "answer": "b"}, "B"),
        ({"options": {"A": "oxygen", "B": "iron"}, "answer": "B"}, "B"),
        ({"options": {"A": "oxygen", "B": "iron"}, "answer": 1}, "B"),
        ({"options": {"A": "oxygen", "B": "iron", "C": None}, "answer_idx": "B"}, "B"),  # MedQA
        ({"options": {"A": "oxygen", "B": "iron"}, "answer": "iron", "answer_idx": "B"}, "B"),
        ({"options": ["A)oxygen", "B)iron"], "correct": "B"}, "B"),  # AQuA
        ({"options": ["(A) oxygen", "(B) iron"], "answer": "(B)"}, "B"),
        ({"options": [{"A": "oxygen"}, {"B": "iron"}], "expected_answer": "B"}, "B"),  # NeMo-Gym
        (
            {
                "choices": [{"label": "A", "text": "oxygen"}, {"label": "B", "text": "iron"}],
                "answerKey": "B",
            },
            "B",
        ),
        ({"options": ["oxygen", "iron", *"CDEFGH"], "answer": "B", "answer_index": 1}, "B"),
        ({"options": "['oxygen', 'iron']", "answer": "B"}, "B"),  # of a .csv file
        ({"options": '["oxygen", "iron"]', "answer_index": 1}, "B"),
        ({"options": "oxygen or iron", "answer": "B"}, None),
        ({"options": "{[]: 1}", "answer": "B"}, None),
        ({"options": "(" * 9000, "answer": "B"}, None),
        ({"options": ["oxygen", "iron"], "answer": "C"}, None),
        ({"options": ["oxygen", "iron"], "answer_index": 2}, None),
        ({"options": ["oxygen", "iron"], "answer": True}, None),
        ({"options": ["oxygen", ["iron"]], "answer": "B"}, None),
        ({"options": [{"A": "oxygen"}, {"A": "iron"}], "answer": "B"}, None),
    ],
)
def test_multiple_choice(columns, letter):
    row = {"question": "Which is a metal?", **columns}
    if letter is None:
        with pytest.raises(RowError):
            TASKS["choice"].preprocess(row)
        return
    task = TASKS["choice"]
    assert task.find_columns(row)["answer"] and task.identity(row)
    prepared = task.preprocess(row)
    assert (
        prepared["solution"] == letter
        and prepared["options"][:2] == ["oxygen", "iron"]
        or (prepared["options"] == ["0", "1", "2"])
    )
    assert REWARDS["accuracy"]()(
        [task.gold_completion(row)], solution=[letter], options=[prepared["options"]]
    ) == [1.0]
    assert re.search("Which is a metal\\?\n\nA. .*\nB. .*\n", prepared["messages"][-1]["content"])
    texts = [
        f"<answer>{each}</answer>"
        for each in ("B", "(B)", "B. iron", "A", "A. iron", "A or B", "", "neither")
    ]
    assert REWARDS["accuracy"]()(texts, solution=["B"] * 8) == [
        1.0,
        1.0,
        1.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
    ]


@pytest.mark.parametrize(
    ("columns", "letter"),
    [
        # MMLU's choices are texts, and its answer is an index where one of them is its number, too
        ({"choices": ["8", "2", "24", "120"], "answer": 2}, "C"),
        ({"choices": '["8", "2", "24", "120"]', "answer": 2.0}, "C"),
        ({"A": "8", "B": "2", "C": "24", "D": "120", "answer": 2}, "C"),
        ({"choices": ["8", "2", "24", "120"], "answer": "2"}, "B"),
        ({"choices": ["8", "2", "24", "120"], "answer_idx": "2"}, "C"),
        ({"choices": [8, 2, 24, 120], "answer": 2}, "B"),
        ({"choices": ["2", "4", "6", "8"], "answer": 8}, "D"),
    ],
)
def test_a_number_beside_choices_that_are_texts_is_an_index(columns, letter):
    assert TASKS["choice"].preprocess({"question": "Which?", **columns})["solution"] == letter


@pytest.mark.parametrize(
    ("answer", "accepted"),
    [
        ("Rhine", ["Rhine"]),
        (["the Rhine", "Rhein"], ["the Rhine", "Rhein"]),
        ({"text": ["Rhine"], "answer_start": [3]}, ["Rhine"]),
        (1492, ["1492"]),
        # a solution
        ("<think>Cologne.</think><answer>Rhine</answer>", ["Rhine"]),
        ("<think>Cologne.</think>\n\nRhine", ["Rhine"]),
        ([r"It is the \boxed{Rhine}.", "It flows there.\n#### Rhein"], ["Rhine", "Rhein"]),
        ({"text": [], "answer_start": []}, None),
        (["Rhine", None], None),
        ("N/A", None),
        (["Rhine", "TBD"], None),
        (" ", None),
    ],
)
def test_text_answers(answer, accepted):
    row = {"question": "Which river?", "answers": answer}
    if accepted is None:
        with pytest.raises(RowError):
            TASKS["qa"].preprocess(row)
    else:
        assert TASKS["qa"].preprocess(row)["accepted_answers"] == accepted


@pytest.mark.parametrize(
    ("answer", "gold", "right", "partial"),
    [
        ("The Rhine.", "rhine", 1.0, 1.0),
        ("Rhine river", "Rhine", 0.0, 2 / 3),
        ("the of capital", "capital of", 0.0, 0.99),  # the same words are not the same answer
        ("Rhine Rhine Rhine", "Rhine", 0.0, 0.0),
        ("A", "A", 1.0, 1.0),
        ("the", "A", 0.0, 0.0),  # nothing is left of either in SQuAD
        ("...", "the", 0.0, 0.0),
        ("15", "1.5", 0.0, 0.0),  # 15 in SQuAD
        ("5", "-5", 0.0, 0.0),
        ("1,000", "1000", 1.0, 1.0),
        ("35", "3-5", 0.0, 0.0),
        ("C", "C++", 0.0, 0.0),
        ("Rh-", "Rh+", 0.0, 0.0),
        ("105", "10^5", 0.0, 0.0),
        ("50", "50%", 0.0, 0.0),
        ("3", "-3", 0.0, 0.0),
        ("巴黎。", "巴黎", 1.0, 1.0),
        ("x" * 2000, "x" * 2000, 0.0, 0.0),
        (r"\text{the Rhine}", "Rhine", 1.0, 1.0),
        ("New York", r"$\textbf{New }\mathrm{York}$", 1.0, 1.0),
        (r"\text{not Rhine}", "Rhine", 0.0, 2 / 3),
    ],
)
def test_exact_match(answer, gold, right, partial):
    for parameter, expected in ((False, right), (True, partial)):
        reward = REWARDS["exact_match"](partial=parameter)
        texts = [
            f"<think>{gold}</think><answer>{answer}</answer>",
            f"I think that it is {gold}",
            f"<answer>{gold}",
            "<answer> </answer>",
        ]
        values = reward(texts, accepted_answers=[["something else", gold]] * 4)
        assert values[0] == pytest.approx(expected) and values[1:] == [0.0, 0.0, 0.0]


SAME = [
    # texts that are one answer
    ("The  Rhine.", "rhine", "the Rhine", "**Rhine**", "`Rhine`", "_Rhine_", "# Rhine", "- Rhine"),
    ("well-known", "wellknown"),
    ("x-ray", "xray"),
    ("U.S.", "US"),
    ("Rhine — river", "Rhine - river", "the Rhine, river", "Rhine (river)"),
    ("-3", "−3", "–3", "(-3)", "$-3$", "-3."),
    ("50%", "50 %", "50%."),
    ("10^5", "10⁵", "10 ^ 5", "$10^5$"),
    ("10^-5", "10⁻⁵"),
    ("x^2", "x²"),
    ("H2O", "H₂O", "h2o"),
    ("Ca2+", "Ca²⁺"),
    ("Rh+", "Rh⁺", "rh+"),
    ("1/2", "½", "1 / 2"),
    ("1 1/2", "1½"),
    ("1914-1918", "1914–1918"),
    ("1,234,567", "1234567"),
    ("C++", "c++", "**C++**", "C++."),
    ("x = 5", "x=5", "x=5."),
    ("vitamin A", "Vitamin a", "the vitamin A"),
    ("50 °C", "50°C"),
]
DIFFERENT = [
    # texts of which no two are one answer
    ("C", "C++", "C#", "C-", "C*", "C+", "C^"),
    ("Rh", "Rh+", "Rh-", "Rh--"),
    (
        "10^5",
        "105",
        "10/5",
        "10*5",
        "10-5",
        "10.5",
        "10:5",
        "10+5",
        "10=5",
        "10, 5",
        "10'5",
        "10...5",
    ),
    (
        "50",
        "50%",
        "$50",
        "€50",
        "50°",
        "50‰",
        "#50",
        "<50",
        ">50",
        "~50",
        "50!",
        "50+",
        "50*",
        "-50",
    ),
    ("3", "-3", "+3", "±3", "=3", "3-"),
    ("H2O", "HO", "H20", "H2O2", "H3O+", "H2O-"),
    ("A", "A*", "A+", "A-", "A**", "-A", "A′"),
    (
        "xy",
        "x-y",
        "x+y",
        "x*y",
        "x/y",
        "x=y",
        "x<y",
        "x>y",
        "x^y",
        "x|y",
        "x&y",
        "x_y",
        "x y",
        "x\\y",
    ),
    ("1.5", "15", "1:5", "1/5", "1-5"),
    ("x²", "x2", "2x"),
    ("1½", "11/2", "1/2"),
    ("1914–1918", "19141918"),
    ("vitamin A", "vitamin", "vitamin B"),
    ("n", "n!"),
    ("$5 to $6", "5 to 6"),
    ("(a)*(b)*(c)", "(a)(b)(c)"),
]


@pytest.mark.parametrize("texts", SAME)
def test_what_is_folded(texts):
    assert {normalised_answer(text) for text in texts} == {normalised_answer(texts[0])}


@pytest.mark.parametrize("texts", DIFFERENT)
def test_signs_and_digits_are_not_folded(texts):
    assert len({normalised_answer(text) for text in texts}) == len(texts)


@given(*[st.text(st.sampled_from("ab1 25+*/^%#=<>&|.,"), max_size=8)] * 2)
def test_texts_with_other_signs_or_digits_are_never_one_answer(first, second):
    def says(text):
        text = re.sub(r"(?<!\w)[*]", "", text)  # of Markdown
        return [each for each in text if each.isdigit() or each in "+/^%=<>&|"]

    assume(not first.lstrip().startswith("#") and not second.lstrip().startswith("#"))  # headings
    if normalised_answer(first) == normalised_answer(second):
        assert says(first) == says(second)


@pytest.mark.parametrize(
    ("answer", "gold", "reward"),
    [
        ("hello", "hello", 1.0),
        ("\nhello\n", "hello\n", 1.0),  # white space around it is the block's own
        ("Hello", "hello", 0.0),
        ("hello.", "hello", 0.0),
        ("the hello", "hello", 0.0),
        ("a  b", "a b", 0.0),
        ("1,000", "1000", 0.0),
        ("[1, 2]", "(1, 2)", 0.0),
        ("'a'", '"a"', 1.0),  # one value of Python
        ("1", "1.0", 0.0),
        ("a\nb", "a b", 0.0),
    ],
)
def test_literal(answer, gold, reward):
    literal = REWARDS["exact_match"](literal=True)
    assert literal([f"<answer>{answer}</answer>"], accepted_answers=[["else", gold]]) == [reward]
    explanation = literal.explain(f"<answer>{answer}</answer>", {"accepted_answers": [gold]})
    assert explanation.reward == reward


@given(
    st.text(st.sampled_from("ab the.,'? \n"), max_size=40),
    st.text(st.sampled_from("ab the. "), max_size=20),
)
def test_words_are_those_of_squad(answer, gold):
    """SQuAD's evaluation script, written again: lower case, no punctuation, no articles, one
    space.
    """

    def without_punctuation(text):
        return "".join(each for each in text.lower() if each not in string.punctuation)

    def squad(text):
        text = without_punctuation(text)
        return [each for each in re.split(r"\s+", re.sub(r"\b(a|an|the)\b", " ", text)) if each]

    def ends_with_an_article(text):
        return re.search(r"\b(?:a|an|the)\s*\Z", without_punctuation(text))

    assume(not any(map(ends_with_an_article, (answer, gold))))  # there it is kept
    words, wanted = squad(answer), squad(gold)
    if words and wanted:  # else more is kept
        assert normalised_answer(answer).split() == words
        common = sum((Counter(words) & Counter(wanted)).values())
        precision, recall = common / len(words), common / len(wanted)
        expected = 2 * precision * recall / (precision + recall) if common else 0.0
        assert f1(normalised_answer(answer), normalised_answer(gold)) == pytest.approx(expected)


def test_a_file_is_checked_alone_and_in_mixed_and_bad_rows_are_named(tmp_path):
    rows = [{"q": "1", "task": "math", "问题": f"{n} + 1?", "答案": str(n + 1)} for n in range(5)]
    rows += [{**rows[0], "问题": "Why?", "答案": "This follows from the definition."}]
    path = tmp_path / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for name in ("math", "mixed"):
        found = check_dataset(parse_source(f"{name}:{path}"))
        assert (found.rows, found.bad, found.unusable) == (6, 1, {"no answer that can be read": 1})
        assert found.rewards["external_accuracy"].full == found.rewards["external_format"].full == 5
        line, problem = found.problems[0]
        assert line == 6 and "line 6" not in problem
        assert problem.startswith("column '答案': expected an answer that")  # as the file calls it
    path.write_text('{"text": "1 + 1?", "number": 2}\n')
    with pytest.raises(InputError, match="own.jsonl, line 1: math: column problem, answer missing"):
        check_dataset(parse_source(f"math:{path}"))


def test_a_file_with_choices_is_said_to_be_one_of_choices(tmp_path):
    path = tmp_path / "own.jsonl"
    path.write_text('{"question": "?", "options": ["1", "2"], "expected_answer": "A"}\n')
    with pytest.raises(InputError, match="write choice:"):
        parse_source(str(path))
    found = check_dataset(parse_source(f"choice:{path}"))
    assert (found.bad, found.rewards["external_accuracy"].full) == (0, 1)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("question,answer\n1+1,2\n2+2,4\n", [2, 3]),
        ('question,answer\n"1\n+\n1",2\n\n"2+2",4\n', [2, 6]),
        ('question,answer\r\n"1\r\n+1",2\r\n2+2,4\r\n', [2, 4]),
        ("\ufeffquestion,answer\n1+1,2\n", [2]),
        ('question,answer\n"a ""quoted"" word\n",2\n2+2,4', [2, 4]),
        # of Excel: the delimiter in a line of its own, empty lines with delimiters
        ("sep=;\r\nquestion;answer\r\n1,1+1;2\r\n;\r\n2+2;4\r\n;\r\n", [3, 5]),
        ("sep=,\nquestion,answer\n1;1;1,2\n", [3]),
    ],
)
def test_the_line_of_a_csv_row_is_its_line_in_the_file(tmp_path, text, lines):
    path = tmp_path / "mine.csv"
    path.write_bytes(text.encode())
    assert [line for line, _ in file_rows(path)] == lines


@pytest.mark.parametrize(
    ("row", "unread"),
    [
        ({"hint": {"passage": "Smith beat Jones."}}, ["hint"]),
        ({"scores": [["a", 1], ["b", 2]]}, ["scores"]),
        ({"note": "Red."}, ["note"]),
        ({"messages": [{"role": "user", "content": "Hello there?"}]}, ["question"]),
        # A second answer, even in a column that has the name of the gold's.
        ({"label": "easy"}, ["label"]),
        ({"solution": "Smith was first at the line."}, ["solution"]),
        # What the prompt shows, and what says nothing.
        ({"context": "Smith beat Jones."}, []),
        ({"table": [["a", 1], ["b", 2]]}, []),
        ({"question": '[{"role": "user", "content": "Who won?"}]'}, []),
        ({"question_text": "Who won?"}, []),
        ({"note": "", "table": [], "hint": None}, []),
    ],
)
def test_every_column_that_nobody_reads_is_named(row, unread):
    """However short it is, and whatever its name and form."""
    row = {"question": "Who won?", "answer": "Smith", **row}
    assert unread_columns(TASKS["qa"], row) == unread


@pytest.mark.parametrize(
    "question",
    [
        "Which is a metal?\nA. oxygen\nB. wood\nC. iron\nAnswer:",
        "Which is a metal?\nA. oxygen\nB. wood\nC. iron\n\nAnswer with the letter of the right choice.",
        "Which is a metal? (A) oxygen (B) wood (C) iron\nThink step by step.",
    ],
)
def test_what_follows_the_last_choice_is_no_part_of_it(question):
    prepared = TASKS["choice"].preprocess({"question": question, "answer": "C"})
    assert prepared["options"] == ["oxygen", "wood", "iron"]


def test_a_last_choice_may_have_several_lines_where_others_have():
    question = "Which prints 1?\nA. x = 0\nprint(x)\nB. x = 1\nprint(x)"
    prepared = TASKS["choice"].preprocess({"question": question, "answer": "B"})
    assert prepared["options"] == ["x = 0\nprint(x)", "x = 1\nprint(x)"]


SEVERAL = {"question": "Which are metals?", "choices": ["salt", "iron", "gold", "wood"]}


@pytest.mark.parametrize(
    "answer",
    ["B, C", "BC", "B and C", "(B)(C)", ["B", "C"], "['B', 'C']", [1, 2], ["gold", "iron"]],
)
def test_several_choices_may_be_right(answer):
    row = {**SEVERAL, "answer": answer}
    prepared = TASKS["choice"].preprocess(row)
    assert prepared["solution"] == "B, C"
    assert prepared["messages"][-1]["content"].endswith("the letters of all right choices.")
    completion = TASKS["choice"].gold_completion(row)
    for name in TASKS["choice"].rewards:
        columns = {column: [value] for column, value in prepared.items()}
        assert REWARDS[name]()([completion], **columns) == [1.0]


@pytest.mark.parametrize("answer", ["BAD", "CB", "B, E", "iron, gold", "B or C", ["B", "lead"], []])
def test_what_does_not_list_choices_is_refused(answer):
    with pytest.raises(RowError):
        TASKS["choice"].preprocess({**SEVERAL, "answer": answer})


@pytest.mark.parametrize(
    ("kind", "name", "column"),
    [("math", "accuracy", "solution"), ("qa", "exact_match", "accepted_answers")],
)
def test_a_gold_of_32_bits_is_the_number_that_was_written(tmp_path, kind, name, column):
    golds = [0.1, 3.1, -1234.56, 0.25, 7.0]
    table = pa.table({"question": ["How much?"] * 5, "answer": pa.array(golds, pa.float32())})
    pq.write_table(table, tmp_path / "rows.parquet")
    rows = [TASKS[kind].preprocess(row) for _, row in file_rows(tmp_path / "rows.parquet")]
    reward = REWARDS[name]()
    texts = [f"<answer>{gold:g}</answer>" for gold in golds]
    assert reward(texts, **{column: [row[column] for row in rows]}) == [1.0] * 5
