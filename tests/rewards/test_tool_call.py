"""external_tool_call: the ways to write calls, what is right, and everything that must not be paid."""

import json
import time

import pytest

from swift_rlvr.rewards import REWARDS

TOOLS = [
    {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "days": {"type": "integer", "default": 1},
                "unit": {"type": "string"},
                "places": {"type": "array", "items": {"type": "number"}},
                "more": {"type": "object"},
            },
            "required": ["city"],
        },
    },
    {"name": "math.add", "parameters": {"a": {"type": "float"}, "b": {"type": "float"}}},
    {"name": "Market Trends API", "parameters": {"kind": {"type": "str"}}},
    {"name": "clear", "parameters": {}},
]
WEATHER = {"name": "get_weather", "arguments": {"city": "Bonn", "days": 3}}
ADD = {"name": "math.add", "arguments": {"a": 1, "b": 2.5}}
ULM = {"name": "get_weather", "arguments": {"city": "Ulm"}}


def hermes(*calls):
    return "\n".join(f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in calls)


def graded(text, golds=(WEATHER,), tools=TOOLS, **parameters):
    golds = golds if isinstance(golds, str) else json.dumps(list(golds))
    columns = {"functions": [json.dumps(tools)], "calls": [golds]}
    ((reward, reason),) = REWARDS["tool_call"](**parameters).grades([text], **columns)
    return reward, reason


GLM = """<tool_call>get_weather
<arg_key>city</arg_key>
<arg_value>Bonn</arg_value>
<arg_key>days</arg_key>
<arg_value>3</arg_value>
</tool_call>
<tool_call>math.add
<arg_key>a</arg_key>
<arg_value>1</arg_value>
<arg_key>b</arg_key>
<arg_value>2.5</arg_value>
</tool_call>"""
GEMMA = (
    '<|tool_call>call:get_weather{city:<|"|>Bonn<|"|>,days:3}<tool_call|>'
    "<|tool_call>call:math.add{a:1,b:2.5}<tool_call|>"
)
FUNCTION_GEMMA = (
    "<start_function_call>call:get_weather{city:<escape>Bonn<escape>,days:<escape>3<escape>}"
    "<end_function_call>\n<start_function_call>call:math.add{a:1, b:2.5}<end_function_call>"
)
DEEPSEEK_V3 = "<｜tool▁calls▁begin｜>" + "\n".join(
    f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{call['name']}\n```json\n"
    f"{json.dumps(call['arguments'])}\n```<｜tool▁call▁end｜>"
    for call in (WEATHER, ADD)
)
DEEPSEEK_V31 = "<｜tool▁calls▁begin｜>" + "".join(
    f"<｜tool▁call▁begin｜>{call['name']}<｜tool▁sep｜>{json.dumps(call['arguments'])}<｜tool▁call▁end｜>"
    for call in (WEATHER, ADD)
)
DSML = """<｜DSML｜function_calls>
<｜DSML｜invoke name="get_weather">
<｜DSML｜parameter name="city" string="true">Bonn</｜DSML｜parameter>
<｜DSML｜parameter name="days" string="false">3</｜DSML｜parameter>
</｜DSML｜invoke>
<｜DSML｜invoke name="math.add">
<｜DSML｜parameter name="a" string="false">1</｜DSML｜parameter>
<｜DSML｜parameter name="b">2.5</｜DSML｜parameter>
</｜DSML｜invoke>
</｜DSML｜function_calls>"""
KIMI = "<|tool_calls_section_begin|>" + "".join(
    f"<|tool_call_begin|>functions.{call['name']}:{number}<|tool_call_argument_begin|>"
    f"{json.dumps(call['arguments'])}<|tool_call_end|>"
    for number, call in enumerate((WEATHER, ADD))
)
MINIMAX = """<minimax:tool_call>
<invoke name="get_weather">
<parameter name="city">Bonn</parameter>
<parameter name="days">3</parameter>
</invoke>
<invoke name="math.add">
<parameter name="a">1</parameter>
<parameter name="b">2.5</parameter>
</invoke>
</minimax:tool_call>"""
LLAMA = [{"name": call["name"], "parameters": call["arguments"]} for call in (WEATHER, ADD)]
OPENAI = [
    {
        "id": f"call_{number}",
        "type": "function",
        "function": {"name": call["name"], "arguments": json.dumps(call["arguments"])},
    }
    for number, call in enumerate((WEATHER, ADD))
]
PYTHON = "get_weather(city='Bonn', days=3), math.add(a=1, b=2.5)"
CODER = """<tool_call>
<function=get_weather>
<parameter=city>
Bonn
</parameter>
<parameter=days>
3
</parameter>
</function>
</tool_call>
<tool_call>
<function=math.add>
<parameter=a>1</parameter>
<parameter=b>2.5</parameter>
</function>
</tool_call>"""


@pytest.mark.parametrize(
    "text",
    [
        hermes(WEATHER, ADD),
        hermes(ADD, WEATHER) + "<|im_end|>",
        f"<think>\n{hermes(ULM)}\n</think>\n\n{hermes(WEATHER, ADD)}",
        f"<tool_call>{json.dumps([WEATHER, ADD])}</tool_call>",
        CODER,
        f"[TOOL_CALLS]{json.dumps([WEATHER, ADD])}</s>",
        f"[TOOL_CALLS] {json.dumps([WEATHER, ADD])}",
        '[TOOL_CALLS]get_weather[ARGS]{"city": "Bonn", "days": 3}[TOOL_CALLS]math.add{"a": 1, "b": 2.5}',
        json.dumps([WEATHER, ADD]),
        json.dumps(LLAMA, indent=2),
        "\n".join(map(json.dumps, LLAMA)),
        "; ".join(map(json.dumps, LLAMA)),
        f"<|python_tag|>{json.dumps(LLAMA[0])}; {json.dumps(LLAMA[1])}<|eom_id|>",
        json.dumps(OPENAI),
        f"```json\n{json.dumps([WEATHER, ADD])}\n```",
        f"[{PYTHON}]",
        PYTHON,
        PYTHON.replace("), ", ")\n"),
        f"```python\n[{PYTHON}]\n```",
        f"```tool_code\n{PYTHON.replace('), ', ')' + chr(10))}\n```",
        "```tool_code\nprint(default_api.get_weather(city='Bonn', days=3))\n"
        "print(default_api.math.add(a=1, b=2.5))\n```",
        f"<|python_start|>[{PYTHON}]<|python_end|>",
        "[get_weather('Bonn', 3), math.add(1, 2.5)]",
        f"<answer>{hermes(WEATHER, ADD)}</answer>",
        GLM,
        GLM.replace("\n", ""),
        GEMMA,
        GEMMA + "<turn|>",
        GEMMA + "<|tool_response>",
        GEMMA.removesuffix("<tool_call|>"),
        FUNCTION_GEMMA,
        DEEPSEEK_V3 + "<｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
        DEEPSEEK_V3,
        DEEPSEEK_V31 + "<｜tool▁calls▁end｜>",
        DSML,
        DSML.replace("function_calls", "tool_calls"),
        DSML.removesuffix("</｜DSML｜function_calls>"),
        KIMI + "<|tool_calls_section_end|><|im_end|>",
        KIMI.replace("functions.", ""),
        MINIMAX,
        MINIMAX.removesuffix("</minimax:tool_call>"),
        f"<|tool_call|>{json.dumps([WEATHER, ADD])}<|/tool_call|>",
        f"<|tool_call|>{json.dumps([WEATHER, ADD])}<|end_of_text|>",
    ],
)
def test_calls_are_read_in_every_way_in_which_models_write_them(text):
    assert graded(text, [WEATHER, ADD]) == (1.0, "correct")


def test_a_name_may_be_no_name_of_python():
    for kind in ("A (Market Trends API(x)", "the Market Trends API (x)"):
        gold = [{"name": "Market Trends API", "arguments": {"kind": kind}}]
        text = f'[Market Trends API(kind="{kind}")]'
        assert graded(text, gold) == (1.0, "correct")
        hedge = f'{text}  # or Market Trends API(kind="y")'
        assert graded(hedge, gold, text_around=True) == (0.0, "unreadable call")
    assert graded("[clear()]", [{"name": "clear", "arguments": {}}]) == (1.0, "correct")


@pytest.mark.parametrize(
    ("arguments", "gold", "reward"),
    [
        # 1 is 1.0, and is neither true nor a text
        ({"city": "Bonn", "days": 3.0}, {"city": "Bonn", "days": 3}, 1.0),
        ({"city": "Bonn", "days": "3"}, {"city": "Bonn", "days": 3}, 0.0),
        ({"city": "Bonn", "days": True}, {"city": "Bonn", "days": 1}, 0.0),
        # a dataset writes a text where its schema says a number
        ({"city": "Bonn", "days": 3}, {"city": "Bonn", "days": "3"}, 1.0),
        # a default may be given or left out, if it is right
        ({"city": "Bonn"}, {"city": "Bonn", "days": 1}, 1.0),
        ({"city": "Bonn", "days": 1}, {"city": "Bonn"}, 1.0),
        ({"city": "Bonn"}, {"city": "Bonn", "days": 2}, 0.0),
        ({"city": "Bonn", "days": 2}, {"city": "Bonn"}, 0.0),
        ({"city": "Bonn", "unit": "F"}, {"city": "Bonn"}, 0.0),
        ({"city": "Bonn", "unit": None}, {"city": "Bonn"}, 0.0),
        # what a table has padded with null may be left out
        ({"city": "Bonn"}, {"city": "Bonn", "days": None, "town": None}, 1.0),
        ({"city": "Bonn", "days": 2}, {"city": "Bonn", "days": None}, 0.0),
        ({}, {"city": None}, 0.0),
        ({"city": "Bonn", "town": "Bonn"}, {"city": "Bonn"}, 0.0),
        ({}, {"city": "Bonn"}, 0.0),
        # lists in order, objects without
        ({"city": "B", "places": [1, 2.0]}, {"city": "B", "places": [1.0, 2]}, 1.0),
        ({"city": "B", "places": [2, 1]}, {"city": "B", "places": [1, 2]}, 0.0),
        ({"city": "B", "places": [1]}, {"city": "B", "places": [1, 2]}, 0.0),
        ({"city": "B", "more": {"b": [1], "a": 1}}, {"city": "B", "more": {"a": 1, "b": [1]}}, 1.0),
        ({"city": "B", "more": {"a": 1, "b": 2}}, {"city": "B", "more": {"a": 1}}, 0.0),
        ({"city": " Bonn "}, {"city": "Bonn"}, 1.0),
        ({"city": "bonn"}, {"city": "Bonn"}, 0.0),
    ],
)
def test_arguments_are_compared_by_the_schema_of_the_tool(arguments, gold, reward):
    call = {"name": "get_weather", "arguments": arguments}
    assert graded(hermes(call), [{"name": "get_weather", "arguments": gold}])[0] == reward


def test_several_values_are_accepted_as_in_bfcl():
    gold = [
        {
            "get_weather": {
                "city": ["Bonn", "Bonn, NRW"],
                "days": [3, 4],
                "unit": ["C", ""],
                "more": [{"wind": [True], "sea": ["high", ""]}, ""],
            }
        }
    ]

    def reward(**arguments):
        text = hermes({"name": "get_weather", "arguments": arguments})
        return graded(text, gold)[0]

    assert reward(city="Bonn, NRW", days=4) == 1.0
    assert reward(city="Bonn", days=3, unit="C", more={"wind": True}) == 1.0
    assert reward(city="Bonn", days=3, more={"wind": True, "sea": "high"}) == 1.0
    assert reward(city="Bonn", days=3, more={"wind": False}) == 0.0
    assert reward(city="Bonn", days=3, more={"wind": True, "rain": 1}) == 0.0
    assert reward(city="Bonn", days=3, unit="F") == 0.0
    assert reward(city="Bonn", days=5) == 0.0
    assert reward(city="Bonn") == 0.0
    assert reward(city=["Bonn", "Bonn, NRW"], days=3) == 0.0
    loose = hermes({"name": "get_weather", "arguments": {"city": "bonn nrw", "days": 3}})
    assert graded(loose, gold)[0] == 0.0
    assert graded(loose, gold, loose_text=True)[0] == 1.0


def test_two_calls_find_the_golds_that_they_fit():
    """The first gold that the first call fits is the only one that the second fits."""
    golds = [{"get_weather": {"city": ["Bonn", "Ulm"]}}, {"get_weather": {"city": ["Bonn"]}}]
    bonn = {"name": "get_weather", "arguments": {"city": "Bonn"}}
    for calls in ((bonn, ULM), (ULM, bonn)):
        assert graded(hermes(*calls), golds) == (1.0, "correct")


def test_the_order_of_calls_is_a_setting():
    assert graded(hermes(ADD, WEATHER), [WEATHER, ADD]) == (1.0, "correct")
    assert graded(hermes(ADD, WEATHER), [WEATHER, ADD], ordered=True) == (0.0, "wrong order")
    assert graded(hermes(WEATHER, ADD), [WEATHER, ADD], ordered=True) == (1.0, "correct")


RIGHT = hermes(WEATHER)
BARE = json.dumps(WEATHER)
WRONG = {"name": "get_weather", "arguments": {"city": "Bonn", "days": 4}}
EVERY = [
    WEATHER,
    {"name": "math.add", "arguments": {"a": 1, "b": 1}},
    {"name": "clear", "arguments": {}},
]
# The right call with text around it.
AROUND = [
    f"{RIGHT} That is all.",
    f"{RIGHT}\nThe weather in Bonn will be fine.",
    f"Sure: {BARE}",
    f"I would not call {BARE}",
    f"{BARE} is wrong",
    "The call is get_weather(city='Bonn', days=3).",
    "# get_weather(city='Bonn', days=3)",
    f"```json\n{BARE}\n```\nis wrong",
]
UNPAID = [
    "",
    " ",
    "...",
    "[]",
    "{}",
    "null",
    "0",
    "get_weather",
    "get_weather()",
    "The weather in Bonn will be fine for 3 days.",
    "I cannot do that.",
    json.dumps(TOOLS),
    json.dumps([]),
    # more or other calls than are right
    hermes(*EVERY),
    hermes(WEATHER, WEATHER),
    hermes(WEATHER, WRONG),
    hermes(WRONG, WEATHER),
    hermes(*({"name": "get_weather", "arguments": {"city": "Bonn", "days": n}} for n in range(9))),
    hermes(WEATHER, {"name": "get_time", "arguments": {}}),
    json.dumps(EVERY),
    f"{BARE}\n{json.dumps(WRONG)}",
    f"{json.dumps(WRONG)}; {BARE}",
    "[get_weather(city='Bonn', days=3), get_weather(city='Bonn', days=4)]",
    "[get_weather(city='Bonn', days=3), clear()]",
    f"[TOOL_CALLS]{json.dumps([WEATHER, WRONG])}",
    f"{RIGHT}[get_weather(city='Bonn', days=4)]",
    f"{json.dumps(WRONG)}{RIGHT}",
    f"{RIGHT}[TOOL_CALLS]{json.dumps([WRONG])}",
    f"[TOOL_CALLS]{json.dumps([WEATHER])}{hermes(WRONG)}",
    f"```json\n{BARE}\n```\n```json\n{json.dumps(WRONG)}\n```",
    f"```python\nget_weather(city='Bonn', days=4)\n```\n{BARE}",
    f"```\n{RIGHT}\n```\n```\n{RIGHT}\n```",
    f"<function_call>{BARE}<function_call>{BARE}",
    # in the thinking alone
    f"<think>{RIGHT}</think>",
    f"<think>{RIGHT}",
    f"<think>{RIGHT}</think>Done.",
    f"<think>{BARE}</think>",
    f"[THINK]{RIGHT}[/THINK]I do not know.",
    # a call that is run stands before the answer
    f"{hermes(ULM)}<answer>{BARE}</answer>",
    f"[TOOL_CALLS]{json.dumps([ULM])}<answer>{RIGHT}</answer>",
    # not closed, or not a call
    RIGHT.replace("</tool_call>", ""),
    RIGHT.replace("<tool_call>", "", 1),
    f"<tool_call>{RIGHT}</tool_call>",
    f"<tool_call>{BARE}{BARE}</tool_call>",
    f"<tool_call>{BARE[:-1]}</tool_call>",
    f"<tool_call>{str(WEATHER)}</tool_call>",
    f"[TOOL_CALLS]{BARE[:-1]}",
    "[TOOL_CALLS]get_weather",
    # two answers in one
    '{"name": "get_weather", "arguments": {"city": "Ulm", "city": "Bonn", "days": 3}}',
    '{"name": "math.add", "name": "get_weather", "arguments": {"city": "Bonn", "days": 3}}',
    '{"name": "get_weather", "arguments": {"city": "Bonn", "days": 3}, "parameters": {"city": "Ulm"}}',
    '{"name": "get_weather", "arguments": {"city": "Bonn", "days": 3}, "or": {"city": "Ulm"}}',
    "get_weather(city='Ulm', city='Bonn', days=3)",
    "get_weather('Bonn', city='Bonn', days=3)",
    "get_weather(**{'city': 'Bonn', 'days': 3})",
    "get_weather(*['Bonn', 3])",
    # what would have to be evaluated
    "get_weather(city='Bo' + 'nn', days=3)",
    "get_weather(city='Bonn', days=1 + 2)",
    "get_weather(city='Bonn', days=int('3'))",
    "get_weather(city=__import__('os').popen('echo Bonn').read(), days=3)",
    "[get_weather(city='Bonn', days=d) for d in [3]]",
    "(lambda: get_weather(city='Bonn', days=3))()",
    "x = get_weather(city='Bonn', days=3)",
    "get_weather(city='Bonn', days=3) or clear()",
    "if True: get_weather(city='Bonn', days=3)",
    "print(get_weather(city='Bonn', days=3))",
    "get_weather(city='Bonn', days=3).clear()",
    # other arguments
    hermes({"name": "get_weather", "arguments": {"city": "Bonn", "days": 3, "unit": "C"}}),
    hermes({"name": "get_weather", "arguments": {"city": "Bonn", "days": 3, "x": 1}}),
    hermes({"name": "get_weather", "arguments": {"city": "Bonn"}}),
    hermes({"name": "get_weather", "arguments": {"city": "Bonn or Ulm", "days": 3}}),
    hermes({"name": "get_weather", "arguments": {"city": ["Bonn", "Ulm"], "days": 3}}),
    hermes({"name": "get_weather", "arguments": {"city": "", "days": 3}}),
    hermes({"name": "get_weather", "arguments": ["Bonn", 3]}),
    hermes({"name": "Get_Weather", "arguments": {"city": "Bonn", "days": 3}}),
    hermes({"name": "weather", "arguments": {"city": "Bonn", "days": 3}}),
    hermes({"name": ["get_weather", "clear"], "arguments": {"city": "Bonn", "days": 3}}),
    '{"name": "get_weather", "arguments": {"city": "Bonn", "days": NaN}}',
    # long and deep
    "[" * 50_000,
    "(" * 50_000,
    "get_weather(" * 20_000,
    "<tool_call>" * 10_000,
    "<tool_call>" + "[" * 40_000 + "</tool_call>",
    "get_weather(city=" + "-" * 40_000 + "1)",
    "[TOOL_CALLS]" * 10_000,
    "```json\n" * 10_000,
    '{"name":' * 10_000,
    "get_weather(city='Bonn', days=3)\n" * 1000,
]


def test_at_least_sixty_attempts_are_made():
    assert len({*UNPAID, *AROUND}) >= 60


@pytest.mark.parametrize("text", UNPAID, ids=range(len(UNPAID)))
def test_nothing_else_is_paid(text):
    assert graded(text)[0] == 0.0
    assert graded(text, text_around=True)[0] == 0.0


@pytest.mark.parametrize("text", AROUND)
def test_text_around_is_not_paid_unless_it_is_allowed(text):
    assert graded(text)[0] == 0.0


@pytest.mark.parametrize(
    "call",
    [
        RIGHT,
        "<function=get_weather><parameter=city>Bonn</parameter><parameter=days>3</parameter></function>",
        f"[TOOL_CALLS][{BARE}]",
    ],
    ids=["hermes", "xml", "mistral"],
)
def test_a_call_with_a_mark_may_be_explained_before_it(call):
    """As Qwen3-Coder's template says: reasoning before the call, but not after."""
    assert graded(f"I look it up.\n\n{call}") == (1.0, "correct")
    assert graded(f"{call}\nI looked it up.")[0] == 0.0
    for hedge in (
        "get_weather(city='Ulm', days=3)",
        json.dumps(WRONG),
        hermes(WRONG),
        "<tool_call>",
    ):
        assert graded(f"Or {hedge}\n{call}")[0] == 0.0


def test_text_around_is_a_setting_and_all_calls_count():
    assert graded(f"I call:\n```json\n{BARE}\n```", text_around=True) == (1.0, "correct")
    assert graded(f"I call {BARE} now.", text_around=True) == (1.0, "correct")
    text = f"{json.dumps(WRONG)} or rather {RIGHT}"
    assert graded(text, text_around=True) == (0.0, "unreadable call")
    for text in (f"I would not call {BARE}", f"{BARE} is wrong.", f"Not ```json\n{BARE}\n```"):
        assert graded(text, text_around=True) == (0.0, "unreadable call")


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        ("None of these tools can write a poem.", 1.0),
        ("The sea (calm) is {blue}.", 1.0),
        ("[]", 1.0),
        ("没有合适的工具可用", 1.0),
        ("", 0.0),
        ("271828183", 0.0),
        ("Yes", 0.0),
        ("{}", 0.0),
        ("<think>No tool fits.</think>", 0.0),
        (RIGHT, 0.0),
        (f"I cannot, but: {RIGHT}", 0.0),
        (BARE, 0.0),
        (f"No: {BARE}", 0.0),
        (f"{RIGHT}<answer>[]</answer>", 0.0),
        ('{"tool_calls": []}', 1.0),
        (f"```\nNo: {BARE}\n```", 0.0),
        ("[get_weather(city='Bonn')]", 0.0),
        ("I call get_weather(city='Bonn').\nget_weather(city='Bonn')", 0.0),
        ("<tool_call>{broken", 0.0),
        ("<|tool_call>call:broken", 0.0),
        ("<arg_key>city</arg_key> broken", 0.0),
        ("[TOOL_CALLS]", 0.0),
        ("[math.add(a=1e999, b=2)]", 0.0),
        ("get_weather(city='Bonn'", 0.0),
        ("x = get_weather(city='Bonn')", 0.0),
        ("To get_weather (the tool) I would need a city.", 1.0),
        (f"<think>{RIGHT}</think>No tool fits.", 1.0),
    ],
)
def test_where_no_call_is_right_any_answer_without_one_is(text, reward):
    assert graded(text, [])[0] == reward


@pytest.mark.parametrize(
    ("tools", "calls", "reason"),
    [
        ("no tools", "[]", "bad tools"),
        ([{"description": "no name"}], "[]", "bad tools"),
        ([{"name": "f", "parameters": {"properties": {"a": "integer"}}}], "[]", "bad tools"),
        ([TOOLS[0], TOOLS[0]], "[]", "bad tools"),
        (TOOLS, "", "bad gold"),
        (TOOLS, "call it", "bad gold"),
        (TOOLS, "[1]", "bad gold"),
        (TOOLS, '[{"name": "other", "arguments": {}}]', "bad gold"),
        (TOOLS, '[{"name": "clear", "arguments": [1]}]', "bad gold"),
        (TOOLS, '[{"get_weather": {"city": []}, "b": 1}]', "bad gold"),
    ],
)
def test_what_cannot_be_read_is_not_graded(tools, calls, reason):
    columns = {"functions": [tools] * 3, "calls": [calls] * 3}
    grades = REWARDS["tool_call"]().grades([RIGHT, "", "No tool fits."], **columns)
    assert [tuple(grade) for grade in grades] == [(None, reason)] * 3


def test_explain_lists_every_argument_that_failed():
    call = {"name": "get_weather", "arguments": {"days": "4", "x": 1}}
    row = {"functions": json.dumps(TOOLS), "calls": json.dumps([WEATHER, ADD])}
    further = {"name": "clear", "arguments": {}}
    explanation = REWARDS["tool_call"]().explain(hermes(call, further), row)
    failed = [rule.name for rule in explanation.rules if rule.passed is False]
    assert failed == [
        "each right function is called as often as is right",
        "call 1, get_weather: city",
        "call 1, get_weather: days",
        "call 1, get_weather: x",
        "call 2, math.add",
        "no further call",
    ]


LONG = "1" + "0" * 400


@pytest.mark.parametrize(
    "text",
    [
        f"[math.add(a={LONG}, b=2.5)]",
        "[math.add(a=1e999, b=2.5)]",
        f"[math.add(a=0x{'f' * 5000}, b=2.5)]",
        f"[math.add(a=1, b=2.5, c=0x{'f' * 5000})]",
        f"[math.add(a=1, b=[-{LONG}])]",
        f"<function=math.add><parameter=a>{LONG}</parameter><parameter=b>2.5</parameter></function>",
        "<function=math.add><parameter=a>Infinity</parameter></function>",
    ],
)
def test_numbers_beyond_64_bits_are_none(text):
    for around in (False, True):
        assert graded(text, [ADD], text_around=around)[0] == 0.0
        assert graded(text, [{"name": "math.add", "arguments": {"a": 2.5}}])[0] == 0.0


def test_a_gold_beyond_64_bits_is_not_graded():
    gold = f'[{{"name": "math.add", "arguments": {{"a": {LONG}}}}}]'
    assert graded("[math.add(a=2.5)]", gold) == (None, "bad gold")


@pytest.mark.parametrize("arguments", ["0", "false", "[]", '"0"', '"[]"'])
def test_only_null_stands_for_no_arguments(arguments):
    gold = [{"name": "clear", "arguments": {}}]
    assert graded(f'{{"name": "clear", "arguments": {arguments}}}', gold)[0] == 0.0
    assert graded('{"name": "clear", "arguments": null}', gold)[0] == 1.0


def test_an_argument_in_tags_is_read_strictly():
    gold = [{"name": "get_weather", "arguments": {"city": "B", "more": {"a": 2}}}]
    text = "<function=get_weather><parameter=city>B</parameter><parameter=more>{}</parameter></function>"
    assert graded(text.replace("{}", '{"a": 2}'), gold)[0] == 1.0
    assert graded(text.replace("{}", '{"a": 1, "a": 2}'), gold)[0] == 0.0


@pytest.mark.parametrize(
    ("schema", "written", "gold"),
    [
        ({"type": "string"}, "True", "True"),
        ({"type": "string"}, "5", "5"),
        ({"type": "Optional[str]"}, "5", "5"),
        ({"type": "Optional[int]"}, "5", 5),
        ({"type": "boolean"}, "True", True),
        ({"type": "object"}, "{'a': True}", {"a": True}),
        ({"type": "array"}, "['a', None]", ["a", None]),
        # a schema that says nothing
        (True, "True", True),
        ({}, "5", 5),
    ],
)
def test_an_argument_in_tags_is_read_by_its_type(schema, written, gold):
    tools = [{"name": "f", "parameters": {"properties": {"a": schema}}}]
    text = f"<function=f><parameter=a>{written}</parameter></function>"
    call = {"name": "f", "arguments": {"a": gold}}
    assert graded(text, [call], tools) == (1.0, "correct")


MEANT = "get_weather(city='Bonn', days=3)"
MEANT_NOT = "get_weather(city='Ulm', days=3)"


@pytest.mark.parametrize(
    "text",
    [
        f"# Ulm? Bonn? I do not know.\n[{MEANT}]  # or {MEANT_NOT}",
        f"[{MEANT}]  # or {MEANT_NOT}",
        f"```python\n{MEANT}\n# {MEANT_NOT}\n```",
        f'{{"function": {BARE}, "alternatives": [{json.dumps(ULM)}]}}',
        f'{{"name": "get_weather", "function": {BARE}, "arguments": {{"city": "Ulm"}}}}',
        # several forms
        f"{BARE}\n{MEANT_NOT}",
        f"{BARE} or rather {MEANT_NOT}",
        f"[{MEANT}]\nor {MEANT_NOT}",
        f"{RIGHT}\nor {MEANT_NOT}",
        f"```json\n{BARE}\n```\nor {MEANT_NOT}",
        # behind what is no JSON
        f"{BARE} {'{x ' * 100}{json.dumps(WRONG)}",
        f"{BARE} {'{x ' * 15_000}{json.dumps(WRONG)}",
        # beside a mark, half written or in another form
        f"{RIGHT}<function=get_weather><parameter=city>Ulm",
        f'{RIGHT}[TOOL_CALLS]get_weather[ARGS]{{"city": "Ulm"}}',
        # in a block that is no call alone
        f"```\nx = {MEANT_NOT}\n```\n{BARE}",
        f"```\n{json.dumps(ULM)} perhaps\n```\n{BARE}",
        # as Llama calls built-in tools
        f"{BARE}\nget_weather.call(city='Ulm')",
    ],
)
def test_no_hedge_is_hidden_in_a_comment_or_another_form(text):
    assert graded(text)[0] == 0.0
    assert graded(text, text_around=True)[0] == 0.0


def test_a_comment_is_text_around():
    assert graded(f"{MEANT}  # the 3 days") == (0.0, "unreadable call")
    assert graded(f"{MEANT}  # the 3 days", text_around=True) == (1.0, "correct")
    gold = [{"name": "get_weather", "arguments": {"city": "# Bonn"}}]
    assert graded("get_weather(city='# Bonn')", gold) == (1.0, "correct")


@pytest.mark.parametrize(
    "text",
    [
        f"<function=get_weather>{json.dumps(WEATHER['arguments'])}</function>",
        '<|python_tag|>get_weather.call(city="Bonn", days=3)<|eom_id|>',
        # a decoder leaves special tokens out
        'get_weather.call(city="Bonn", days=3)',
        f"```json\r\n{BARE}\r\n```",
        f"\ufeff{BARE}",
        f"```xml\n{RIGHT}\n```",
        f"```\n{RIGHT}\n```",
        f"<function_call>{BARE}</function_call>",
    ],
)
def test_further_ways_of_one_call_are_read(text):
    assert graded(text) == (1.0, "correct")


def test_two_calls_may_stand_in_one_tag():
    text = f"<tool_call>\n{BARE}\n{json.dumps(ADD)}\n</tool_call>"
    assert graded(text, [WEATHER, ADD]) == (1.0, "correct")
    assert graded(text) == (0.0, "wrong number")


@pytest.mark.parametrize(
    "text",
    [
        "```" + " " * 45_000 + "x",
        "[TOOL_CALLS]f" + " " * 45_000 + "x",
        "<function=" * 4900,
        "{x " * 16_000,
        "<|tool_call>call:f" + "{a:" * 15_000,
        "<|tool_call>call:f{" + ",".join(f"a{n}:1" for n in range(5000)) + "}<tool_call|>",
        "<|tool_call_begin|>" + "a:1" * 15_000,
        "<|tool_call_begin|>a:1<|tool_call_argument_begin|>" + "<" * 45_000,
        '<minimax:tool_call><invoke name="f">' + '<parameter name="a">' * 2200,
        "<|tool_call|>" * 3_500,
        "<tool_call>f" + "<arg_key>a</arg_key>" * 2400 + "</tool_call>",
        "<tool_call>" + " " * 45_000 + "<arg_key></tool_call>",
        "<tool_call>f" + " " * 45_000 + "<arg_key></tool_call>",
    ],
)
def test_no_text_takes_long(text):
    start = time.process_time()
    assert graded(text, text_around=True)[0] == 0.0
    assert time.process_time() - start < 1


@pytest.mark.parametrize(
    ("arguments", "remark"),
    [
        ({"city": "Bonn", "days": 3}, None),
        ({"city": "Bonn", "days": "3", "unit": None}, None),
        ({"city": "Bonn", "town": "Ulm"}, "does not have"),
        ({"days": 3}, "requires"),
        ({"city": 3}, "another type"),
        ({"city": "Bonn", "days": "three"}, "another type"),
        ({"city": "Bonn", "days": 2.5}, "another type"),
    ],
)
def test_golds_that_contradict_their_tools_are_named(arguments, remark):
    calls = json.dumps([{"name": "get_weather", "arguments": arguments}])
    remarks = REWARDS["tool_call"].remarks({"functions": json.dumps(TOOLS), "calls": calls})
    assert len(remarks) == (remark is not None)
    assert not remark or remark in remarks[0]


@pytest.mark.parametrize(
    ("arguments", "reward"),
    [
        ('{"city": "Bonn", "days": 3}', 1.0),
        ({"city": "Bonn", "days": 3}, 1.0),
        # read as strictly as in a text
        ('{"city": "Ulm", "city": "Bonn", "days": 3}', 0.0),
        ('{"city": "Bonn", "days": 3', 0.0),
        ("", 0.0),
    ],
)
def test_calls_that_a_parser_has_split_off_count(arguments, reward):
    call = {"id": "1", "type": "function", "function": {**WEATHER, "arguments": arguments}}
    completion = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    assert graded(completion)[0] == reward
    row = {"functions": json.dumps(TOOLS), "calls": json.dumps([WEATHER])}
    assert REWARDS["tool_call"]().explain(completion, row).reward == reward
    # Beside calls in the text they are too many.
    completion[0]["content"] = hermes(WEATHER)
    assert graded(completion)[0] == 0.0


V31_WEATHER = (
    '<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Bonn", "days": 3}<｜tool▁call▁end｜>'
)
DSML_WEATHER = DSML[: DSML.index('<｜DSML｜invoke name="math')]


@pytest.mark.parametrize(
    "text",
    [
        V31_WEATHER * 2,
        V31_WEATHER + hermes(ULM),
        V31_WEATHER + "<｜tool▁call▁begin｜>math.add",
        V31_WEATHER.removesuffix("<｜tool▁call▁end｜>"),
        V31_WEATHER.replace("}", ""),
        V31_WEATHER.replace("}", '}{"city": "Ulm", "days": 3}'),
        V31_WEATHER.replace('{"city": "Bonn", "days": 3}', ""),
        V31_WEATHER.replace("<｜tool▁sep｜>", ""),
        V31_WEATHER.replace('"days"', '"city": "Bonn", "days"'),
        f"{V31_WEATHER} is right",
        f"{DSML_WEATHER}</｜DSML｜function_calls> is right",
        DSML_WEATHER * 2,
        DSML_WEATHER + hermes(ULM),
        DSML_WEATHER + V31_WEATHER,
        DSML_WEATHER.replace("</｜DSML｜invoke>", ""),
        DSML_WEATHER.replace("</｜DSML｜parameter>", "", 1),
        DSML_WEATHER.replace('"days" string="false"', '"days" string="true"'),
        DSML_WEATHER.replace('"city" string="true"', '"city" string="false"'),
        DSML_WEATHER.replace('"days"', '"city"'),
        DSML_WEATHER.replace("</｜DSML｜invoke>", "city = Ulm</｜DSML｜invoke>"),
    ],
)
def test_nothing_but_the_right_call_is_paid_in_deepseeks_forms(text):
    assert graded(V31_WEATHER)[0] == graded(DSML_WEATHER)[0] == 1.0
    for around in (False, True):
        reward, _ = graded(text, text_around=around)
        assert reward == (1.0 if around and text.endswith(" is right") else 0.0)


KIMI_WEATHER = KIMI[KIMI.index("<|tool_call_begin") : KIMI.rindex("<|tool_call_begin")]
MINIMAX_WEATHER = MINIMAX[: MINIMAX.index('<invoke name="math')]
LISTED_WEATHER = f"<|tool_call|>[{BARE}]<|/tool_call|>"


@pytest.mark.parametrize("call", [KIMI_WEATHER, MINIMAX_WEATHER, LISTED_WEATHER])
def test_nothing_but_the_right_call_is_paid_between_tokens(call):
    assert graded(call) == (1.0, "correct")
    assert graded(call, []) == (0.0, "needless call")
    for text in (
        call * 2,
        call + hermes(ULM),
        hermes(ULM) + call,
        call + V31_WEATHER,
        call.replace("Bonn", "Ulm"),
        call.replace("get_weather", "clear"),
        call.replace("days", "city"),
        call.replace("3", ""),
        call[: call.index("Bonn")],
        f"{call} or {json.dumps(ULM)}",
    ):
        for around in (False, True):
            assert graded(text, text_around=around)[0] == 0.0, text
    assert graded(f"{call} is right")[0] == 0.0


WEATHER_OF_BONN = '<|tool_call>call:get_weather{city:<|"|>Bonn<|"|>,days:3}<tool_call|>'


@pytest.mark.parametrize(
    "text",
    [
        WEATHER_OF_BONN * 2,
        f"{WEATHER_OF_BONN} {hermes(ULM)}",
        f"{WEATHER_OF_BONN} is right",
        WEATHER_OF_BONN.replace("days:3", "days:3,days:4"),
        WEATHER_OF_BONN.replace("days:3", "days:"),
        WEATHER_OF_BONN.replace("days:3", "days:[3"),
        WEATHER_OF_BONN.replace(",days", " days"),
        WEATHER_OF_BONN.replace("call:", ""),
        WEATHER_OF_BONN.replace('Bonn<|"|>', "Bonn"),
        GLM,
        GLM.replace("3", "4").partition("\n<tool_call>math")[0],
        "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Bonn</arg_value>days 3</tool_call>",
        "<tool_call>get_weather<arg_key>city</arg_key></tool_call>",
        "<tool_call>get_weather</tool_call>",
    ],
)
def test_nothing_but_the_right_call_is_paid_in_the_forms_of_glm_and_gemma(text):
    for around in (False, True):
        reward, _ = graded(text, text_around=around)
        assert reward == (1.0 if around and text.endswith(" is right") else 0.0)


def test_gemmas_texts_may_hold_any_character_and_its_values_be_lists_and_objects():
    arguments = {
        "city": "Bonn, {NRW} <b>",
        "places": [1, 2.5],
        "more": {"a": "x:y", "b": [True, None]},
    }
    text = (
        '<|tool_call>call:get_weather{city:<|"|>Bonn, {NRW} <b><|"|>,places:[1,2.5],'
        'more:{a:<|"|>x:y<|"|>,b:[true,null]}}<tool_call|>'
    )
    assert graded(text, [{"name": "get_weather", "arguments": arguments}]) == (1.0, "correct")


def test_a_call_of_glm_may_have_no_arguments():
    assert graded("<tool_call>clear</tool_call>", [{"name": "clear", "arguments": {}}])[0] == 1.0
