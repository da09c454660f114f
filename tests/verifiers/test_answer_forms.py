"""The form in which a prompt asks for the answer, and questions whose words only look alike."""

import re

import pytest

from present import present
from swift_rlvr.tasks import TASKS
from swift_rlvr.verifiers.answer_forms import (
    FORMS,
    asked_form,
    completion_in_form,
    ideal_completion,
)
from swift_rlvr.verifiers.answers import find_code, last_answer, last_boxed

R1_ZERO = (
    "The reasoning process is enclosed in <think> </think> tags and the answer in <answer> </answer> tags, that is, "
    "<think> reasoning process here </think><answer> answer here </answer>."
)
# (where it is from, what it says, the form)
PROMPTS = [
    ("R1-Zero", R1_ZERO, "tags"),
    (
        "TinyZero",
        "Show your work in <think> </think> tags. And return the final answer in <answer> </answer> tags, "
        "for example <answer> (1 + 2) / 3 </answer>.",
        "tags",
    ),
    (
        "Search-R1",
        "you can directly provide the answer inside <answer> and </answer>, without detailed illustrations. "
        "For example, <answer> Beijing </answer>. Question: who wrote Faust?",
        "tags",
    ),
    ("tags in words", "Write the answer inside <answer> tags.", "tags"),
    (
        "R1-Zero, with a box in the tags",
        f"{R1_ZERO}\nPlease reason step by step, and put your final answer within \\boxed{{}}.",
        "tags",
    ),
    (
        "DAPO",
        "Solve the following math problem step by step. The last line of your response should be of the form "
        "Answer: $Answer (without quotes) where $Answer is the answer to the problem.\n\nWhat is 3 + 4?\n\n"
        'Remember to put your answer on its own line after "Answer:".',
        "marker",
    ),
    (
        "simple-evals, MATH",
        "Solve the following math problem step by step. The last line of your response should be of the form "
        "Answer: $ANSWER (without quotes) where $ANSWER is the answer to the problem.\n\nWhat is 3 + 4?\n\n"
        'Remember to put your answer on its own line after "Answer:", and you do not need to use a \\boxed command.',
        "marker",
    ),
    (
        "simple-evals and lighteval, MMLU and GPQA",
        "Answer the following multiple choice question. The last line of your response should be of the following "
        "format: 'Answer: $LETTER' (without quotes) where LETTER is one of ABCD. Think step by step before answering."
        "\n\nWhich is a metal?\n\nA) salt\nB) iron",
        "marker",
    ),
    (
        "lighteval and open-r1, MATH",
        "Solve the following math problem efficiently and clearly. The last line of your response should be of the "
        "following format: 'Therefore, the final answer is: $\\boxed{ANSWER}$. I hope it is correct' (without quotes) "
        "where ANSWER is just the final number or expression that solves the problem.",
        "boxed",
    ),
    (
        "NeMo-Gym",
        "Answer the following multiple choice question. The last line of your response should be in the following "
        "format: 'Answer: \\boxed{A/B/C/D}' (e.g. 'Answer: \\boxed{A}').",
        "boxed",
    ),
    (
        "MMLU-Pro",
        'Think step by step and then finish your answer with "the answer is (X)" where X is the correct letter choice.',
        "marker",
    ),
    (
        "chain of thought, examples",
        "Q: There are 15 trees and 6 more are planted. How many are there?\n"
        "A: There are 15 + 6 = 21. The answer is 21.\n\nQ: What is 3 + 4?\nA:",
        "marker",
    ),
    ("Llama, final answer", "Conclude with: Final Answer: [answer]", "marker"),
    (
        "MATH",
        "What is 3 + 4? Please reason step by step, and put your final answer within \\boxed{}.",
        "boxed",
    ),
    ("MATH, in words", "Present the answer in LaTeX boxed format.", "boxed"),
    ("MATH, in words", "Write your final answer in a box.", "boxed"),
    ("Chinese", "3 加 4 等于几？请逐步推理，并将最终答案放在\\boxed{}中。", "boxed"),
    ("Chinese, marker", "请一步一步推理，并在最后用“所以答案为选项X”给出答案。", "marker"),
    ("Chinese, letter", "请只回答选项字母。", "last_line"),
    ("verl, GSM8K", 'Let\'s think step by step and output the final answer after "####".', "hash"),
    ("GSM8K, prefix", "Output the answer at the very end with the prefix '#### '.", "hash"),
    (
        "GSM8K, examples",
        "Question: What is 9 + 9?\nAnswer: 9 + 9 = 18\n#### 18\n\nQuestion: What is 3 + 4?\nAnswer:",
        "hash",
    ),
    ("GSM8K, place", "End with a line such as\n#### <answer>", "hash"),
    ("MMLU, examples", "Which is a metal?\nA. salt\nB. iron\nAnswer:", "last_line"),
    ("LLaVA", "Answer with the option's letter from the given choices directly.", "last_line"),
    ("this package", "Answer with the letter of the right choice.", "last_line"),
    ("alone", "Respond with only the letter of the correct option.", "last_line"),
    ("alone", "Give only the final number.", "last_line"),
    ("VQA", "Answer the question using a single word or phrase.", "last_line"),
    ("JSON", 'Respond with a JSON object: {"reasoning": "...", "answer": "B"}', "json"),
    ("JSON, Chinese", "请以 JSON 格式输出答案。", "json"),
    ("JSON, by example", 'End with {"answer": 5}.', "json"),
    (
        "LiveCodeBench",
        "You will generate a correct Python program. Enclose your code within delimiters as follows.\n"
        "```python\n# YOUR CODE HERE\n```\n\n### Answer: (use the provided format with backticks)\n\n",
        "code",
    ),
    (
        "MBPP",
        "Write a python function to add two numbers. Your code should pass these tests:\n\nassert add(1, 2) == 3",
        "code",
    ),
    ("HumanEval", 'def add(a: int, b: int) -> int:\n    """Add two numbers."""\n', "code"),
    ("APPS", "The program reads standard input and prints to standard output.", "code"),
    (
        "Unsloth",
        "Then, provide your solution between <SOLUTION></SOLUTION>",
        "<SOLUTION>(.*?)</SOLUTION>",
    ),
    ("ours, of several", "Answer with the letters of all right choices.", "last_line"),
    ("a tag of another name", "Put the query between <sql> and </sql>.", "<sql>(.*?)</sql>"),
    ("German", "Schreibe in die letzte Zeile „Antwort: N“.", "marker"),
    ("German, without quotes", "Beende sie mit: Endgültige Antwort: <Zahl>", "marker"),
    ("French", "Termine par « Résultat : N ».", "marker"),
    ("Spanish", "La última línea debe ser «La respuesta es N.»", "marker"),
    ("Japanese", "最後に「答えはNです。」と書いてください。", "marker"),
    ("Korean", "마지막 줄에 '최종 답변: N' 형식으로 쓰세요.", "marker"),
    ("Russian", "В последней строке напиши «Ответ: N».", "marker"),
    ("Arabic", "اكتب في السطر الأخير: «الإجابة: N».", "marker"),
    ("words of its own", 'The last line must be "FINAL: <number>".', "marker"),
    ("JSON, in German", 'Gib das Ergebnis als JSON aus: {"antwort": N}', "json"),
]
# A question alone, some with words that an instruction would have.
QUESTIONS = [
    "What is 3/4 of 20?",
    "Find the only positive integer $n$ for which $n^2 + n$ is a prime.",
    "How many times does the letter r occur in strawberry?",
    "There are 5 balls in a box. What is the answer to 5 + 2?",
    "If the answer is $\\frac{a}{b}$ in lowest terms, find $a + b$. Express your answer as a common fraction.",
    "How many four-digit codes are there? Write the code of the lock as a number.",
    "What is the last line of the poem?",
    "#### Problem 3\nA student completes a program of 4 courses. In how many ways?",
    "Solve $x < 3$ and write the function in the form $y = mx + b$.",
    "You are a helpful assistant.",
    "Which river flows through Cologne? Give its name in German.",
    "What is JSON?",
    "小明有3个苹果，又买了4个。一共有几个？",
    "Wer antwortet: „Die Antwort ist nein“?",
    "Print a line 'Case #1: Y' for each case.",
    "What does <b></b> do in HTML? Give an example.",
    "この問題の答えを求めよ。",
]


@pytest.mark.parametrize(("source", "prompt", "form"), PROMPTS)
def test_a_prompt_asks_for_one_form(source: str, prompt: str, form: str) -> None:
    assert asked_form(prompt) == form, source


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_alone_asks_for_none(question: str) -> None:
    assert asked_form(question) is None


@pytest.mark.parametrize(
    "name", sorted(set(TASKS) - {"boxes", "code", "instructions", "json", "tool_calls"})
)
def test_the_tasks_of_the_package_ask_for_tags(name: str) -> None:
    task = TASKS[name]
    for row in task.examples:
        prepared = task.preprocess(row)
        text = "\n".join(message["content"] for message in prepared["messages"])
        assert asked_form(text) == "tags"


def test_a_question_of_ours_about_code_asks_for_a_block() -> None:
    task = TASKS["code"]
    (message,) = task.preprocess(task.examples[1])["messages"]
    assert asked_form(message["content"]) == "code"


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_completion_has_the_answer_in_its_form(form: str, opened: bool) -> None:
    text = completion_in_form(form, "3 + 4 is 7.", "7", thinking_opened=opened)
    assert text.startswith("3 + 4 is 7.\n</think>") == opened
    read = {
        "tags": last_answer,
        "boxed": last_boxed,
        "code": find_code,
        "hash": lambda text: text.rpartition("#### ")[2],
        "marker": lambda text: text.rpartition("Answer: ")[2],
        "json": lambda text: present(re.search('{"answer": "(7)"}', text))[1],
        "last_line": lambda text: text.rpartition("\n")[2],
    }
    assert read[form](text) == "7"


def test_a_gold_in_a_box_is_not_boxed_twice() -> None:
    assert completion_in_form("boxed", "So", r"\boxed{7}") == "So\n\\boxed{7}"
    assert completion_in_form("hash", "So", r"\boxed{7}") == "So\n#### 7"


@pytest.mark.parametrize(
    "form",
    [r"<SOLUTION>(.*?)</SOLUTION>", r"ANSWER = (\S+)", r"final:\s*(.+)$", r"\\answer\{([^}]*)\}"],
)
def test_an_expression_is_written_out(form: str) -> None:
    text = completion_in_form(form, "3 + 4 is 7.", "7")
    assert present(re.search(form, text))[1] == "7"


@pytest.mark.parametrize("form", ["box", "(a)(b)", "(?:x|y)=(.*)", "(?i)z (.+) [a-f]"])
def test_an_expression_of_more_than_one_group_between_texts_is_refused(form: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        completion_in_form(form, "3 + 4 is 7.", "7")


@pytest.mark.parametrize(
    ("prompt", "completion"),
    [
        (R1_ZERO, "<think>so</think>\n<answer>7</answer>"),
        (
            "<think>\n...\n</think>\n<answer>\n...\n</answer>",
            "<think>\nso\n</think>\n<answer>\n7\n</answer>",
        ),
        ("Put the answer in <answer> </answer> tags.", "so\n<answer>7</answer>"),
        (f"{R1_ZERO} Put it within \\boxed{{}}.", "<think>so</think>\n<answer>\\boxed{7}</answer>"),
        ("Think in <think> </think>, then \\boxed{}.", "<think>so</think>\n\\boxed{7}"),
        ('Output JSON: {"final_answer": 5}', 'so\n{"final_answer": "7"}'),
        ('Respond in JSON: {"step": "...", "value": N}', 'so\n{"value": "7"}'),
        ("Respond in JSON with the keys 'step' and 'value'.", 'so\n{"value": "7"}'),
        ("Schreibe in die letzte Zeile „Antwort: N“.", "so\nAntwort: 7"),
        ("最後に「答えはNです。」と書いてください。", "so\n答えは7です。"),
        (
            "Say 'The final answer is: [answer]. I hope it is correct.'",
            "so\nThe final answer is: 7. I hope it is correct.",
        ),
        ("Finish with 'FINAL: N'.", "so\nFINAL: 7"),
        ("Put the number in <ans></ans>.", "so\n<ans>7</ans>"),
        ("What is 3 + 4?", "so\n7"),
    ],
)
def test_an_ideal_completion_has_all_that_the_prompt_shows(prompt: str, completion: str) -> None:
    assert ideal_completion(prompt, "so", "7") == completion


def test_a_prompt_that_opens_the_thinking_is_gone_on_with() -> None:
    assert ideal_completion(R1_ZERO, "so", "7", True) == "so\n</think>\n<answer>7</answer>"
