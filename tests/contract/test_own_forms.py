"""The forms of the answer that prompts show and that are none of ours, and what only looks like one."""

import pytest

from swift_rlvr.contract.own_forms import own_form

# (what a prompt says, the right answer 7 in the form that it asks for)
FORMS = [
    ("Your answer should be in the form #ANSWER#: x", "#ANSWER#: 7"),
    ("Answer in the form: [RESULT]: 12", "[RESULT]: 7"),
    ("Answer in this format: RESULT -> x", "RESULT -> 7"),
    ("Answer in the format `ANS=x`.", "ANS=7"),
    ("State your answer as FINAL_RESULT=<value>", "FINAL_RESULT=7"),
    ("Write the final answer on the last line as `Result = <number>`.", "Result = 7"),
    ('Your response must conclude with: "The solution equals X".', "The solution equals 7"),
    ("The final line of your response should be: OUTCOME >> x", "OUTCOME >> 7"),
    ("Finish with a line `>>> 7`.", ">>> 7"),
    ("Reply in the following format:\nReasoning: <reasoning>\nFinal: <answer>", "Final: 7"),
    ("Give your answer in the form **7**.", "**7**"),
    ("End with your final answer as [[5]].", "[[7]]"),
    ("Write the result as <<the sum>>.", "<<7>>"),
    ("Answer format: ##x##", "##7##"),
    ("Answer with |7|.", "|7|"),
    ("Surround the final answer with @@ (for example @@42@@).", "@@7@@"),
    ("Put the answer between [ANS] and [/ANS].", "[ANS]7[/ANS]"),
    ("Use the format <response>your answer</response>.", "<response>7</response>"),
    ("Put the answer between %% and %%.", "%%7%%"),
    ("Enclose your answer in <<< >>>.", "<<<7>>>"),
    ("Put your final answer in parentheses.", "(7)"),
    ("Your final answer must be inside double curly braces.", "{{7}}"),
    ("Bold your final answer.", "**7**"),
    ("Put the final answer in an ```answer block.", "```answer\n7\n```"),
    ("End with\n```result\n<your answer>\n```", "```result\n7\n```"),
    ("Put your answer in a code block labelled answer.", "```answer\n7\n```"),
    ("Give the answer after the word RESULT.", "RESULT 7"),
    ("Write your answer after 'Therefore:'", "Therefore: 7"),
    ('Respond with {"reasoning": ..., "value": n}', '{"reasoning": "...", "value": "7"}'),
    ('Output format: {"result": 12, "thinking": "..."}', '{"result": "7", "thinking": "..."}'),
    ("将最终答案放在【答案】后面。", "【答案】7"),
    ("請將最終答案放在【最終答案】中。", "【最終答案】7"),
    ("请按如下格式回答：【解析】<推理过程>【答案】<答案>", "【答案】7"),
    ("把答案写在【】里。", "【7】"),
    ("最终答案请用【】括起来。", "【7】"),
    ("请用<<>>括起最终答案。", "<<7>>"),
    ("答案的格式为 ##x##。", "##7##"),
    ("请用<答案></答案>包裹最终答案。", "<答案>7</答案>"),
    ("最后一行写：答案：x", "答案：7"),
    ("最后一行以“结果=”开头。", "结果=7"),
    ("请以“答：____”的形式作答。", "答：7"),
]
OTHERS = [
    "What is the ratio in the form a:b?",
    "Write the line in the form y = mx + b.",
    "If the answer is in the form x = n, give n.",
    "Express your answer in the form $a+b\\sqrt{c}$.",
    "Give the time in the form HH:MM.",
    "Answer as a common fraction in the form x/y.",
    "Give your answer as an ordered pair (x, y).",
    "Write the answer in the form p^n.",
    "Give the answer in interval notation, like (1, 2].",
    "Express the result in the form {x | x > 3}.",
    "What is the result of the sum in parentheses?",
    "Do not put the answer in parentheses.",
    "Answer with the matrix [[1, 2]].",
    "Give your answer in **meters**.",
    "Return the answer with 2 decimal places.",
    'Write a function that does return {"a": 1}.',
    # gaps of an exercise, forms of a value, signs of the question
    "下列各式的结果是【】",
    "1 + 1 的结果是（ ）",
    "结果用{x|x>3}的形式表示。",
    "答案用[a,b]的形式表示。",
    "用<、>或=填空，写出结果。",
    "用《》标出书名，答案是几？",
    "不要将答案写在【】中。",
    "答案不要写在【】里。",
    # asked for in a form of ours
    "请将答案写在\\boxed{}中，不要用【】。",
    "以 #### 开头给出最终答案。",
    "Write your answer as [[5]] in \\boxed{}.",
    "End your response with 'Answer: X'.",
]


@pytest.mark.parametrize(("prompt", "completion"), FORMS)
def test_a_form_of_the_prompts_own_holds_the_answer(prompt: str, completion: str) -> None:
    for turn in (prompt, f"What is 3 + 4? {prompt}", f"{prompt}\n\nWhat is 3 + 4?"):
        form = own_form(turn)
        assert form is not None
        assert form.completions("7")[0] == completion


@pytest.mark.parametrize("prompt", OTHERS)
def test_what_only_looks_like_a_form(prompt: str) -> None:
    assert own_form(prompt) is None


@pytest.mark.parametrize(
    "piece",
    [
        "answer in ",
        "the form [[",
        "not answer as **7",
        "end with `x: ",
        "答案写在【",
        "格式[[[",
        "<答案>",
        "用【答案",
    ],
)
def test_a_long_prompt_ends(piece: str) -> None:
    """Quadratic time would take minutes."""
    own_form(piece * (200_000 // len(piece)))
