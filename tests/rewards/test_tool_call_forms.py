"""external_tool_call: each way in which a model writes calls, right, wrong, half, doubled and hedged.

The forms are those that the readers of the installed vLLM know (vllm/tool_parsers).
"""

import json
import re
import time

import pytest

from swift_rlvr.rewards import REWARDS

TOOLS = json.dumps(
    [
        {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer"},
                    "more": {"type": "object"},
                },
                "required": ["city"],
            },
        },
        {"name": "clear", "parameters": {}},
    ]
)
BONN = ("get_weather", {"city": "Bonn", "days": 3})
ULM = ("get_weather", {"city": "Ulm", "days": 3})
CLEAR: tuple[str, dict] = ("clear", {})


def graded(text, *golds, **parameters):
    calls = json.dumps([{"name": name, "arguments": arguments} for name, arguments in golds])
    columns = {"functions": [TOOLS], "calls": [calls]}
    ((reward, _),) = REWARDS["tool_call"](**parameters).grades([text], **columns)
    return reward


def as_json(call, name="name", arguments="arguments"):
    return json.dumps({name: call[0], arguments: call[1]})


def tagged(arguments, opening, closing):
    """Each argument between two tags, in which {} is its name."""
    return "".join(
        f"{opening.format(name)}{value}{closing.format(name)}" for name, value in arguments.items()
    )


def gpt_oss(*calls):
    return "<|start|>assistant".join(
        f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>"
        f"{json.dumps(arguments)}<|call|>"
        for name, arguments in calls
    )


def gpt_oss_recipient_first(*calls):
    return "".join(
        f"<|start|>assistant to=functions.{name}<|channel|>commentary json<|message|>"
        f"{json.dumps(arguments)}<|call|>"
        for name, arguments in calls
    )


def gpt_oss_without_tokens(*calls):
    return "".join(
        f"assistantcommentary to=functions.{name} json{json.dumps(arguments)}"
        for name, arguments in calls
    )


def functions_in(tag):
    """Qwen3-Coder's elements within a tag."""

    def written(*calls):
        texts = []
        for name, arguments in calls:
            inner = tagged(arguments, "<parameter={}>", "</parameter>\n")
            texts.append(f"<{tag}>\n<function={name}>\n{inner}</function>\n</{tag}>")
        return "\n".join(texts)

    return written


def pairs(key="arg_key", value="arg_value", tag="tool_call", behind_name="", around=None):
    """GLM's keys and values, and those of others."""

    def written(*calls):
        texts = []
        for name, arguments in calls:
            inner = tagged(arguments, f"<{key}>{{}}</{key}>\n<{value}>", f"</{value}>\n")
            texts.append(f"<{tag}>{name}{behind_name}\n{inner}</{tag}>")
        inside = "\n".join(texts)
        return f"<{around}>\n{inside}\n</{around}>" if around else inside

    return written


def ifm_typed(*calls):
    texts = []
    for name, arguments in calls:
        inner = "".join(
            f"<ifm|arg_key>{key}</ifm|arg_key><ifm|arg_type>"
            f"{'string' if isinstance(value, str) else 'integer'}</ifm|arg_type>"
            f"<ifm|arg_value>{value}</ifm|arg_value>"
            for key, value in arguments.items()
        )
        texts.append(f"<ifm|tool_call>{name}\n{inner}</ifm|tool_call>")
    return f"<ifm|tool_calls>{''.join(texts)}</ifm|tool_calls>"


def each_between(start, end, name="name", arguments="arguments"):
    """Each call in JSON between two marks."""
    return lambda *calls: "\n".join(f"{start}{as_json(c, name, arguments)}{end}" for c in calls)


def listed_between(start, end, name="name", arguments="arguments"):
    """All calls in one list of JSON between two marks."""
    return lambda *calls: f"{start}[{', '.join(as_json(c, name, arguments) for c in calls)}]{end}"


def elements(call="invoke", argument="parameter", before="", behind=""):
    """Elements with attributes."""

    def written(*calls):
        texts = []
        for name, arguments in calls:
            inner = tagged(arguments, f'<{argument} name="{{}}">', f"</{argument}>\n")
            texts.append(f'<{call} name="{name}">\n{inner}</{call}>\n')
        return f"{before}{''.join(texts)}{behind}"

    return written


def deepseek_v41(*calls):
    return elements(
        "｜DSML｜ invoke", "｜DSML｜ parameter", "<｜DSML｜ calls>\n", "</｜DSML｜ calls>"
    )(*calls)


def muse(*calls):
    return "".join(
        "<|start|>assistant to=weather<|message|>"
        + elements(
            "atem:invoke", "atem:parameter", "<atem:function_calls>", "</atem:function_calls>"
        )(call)
        + "<|eom|>"
        for call in calls
    )


def step3(*calls):
    inside = "".join(
        "<｜tool_call_begin｜>function<｜tool_sep｜>"
        + elements("steptml:invoke", "steptml:parameter")(call)
        + "<｜tool_call_end｜>"
        for call in calls
    )
    return f"<｜tool_calls_begin｜>{inside}<｜tool_calls_end｜>"


def plamo3(*calls):
    def between(part, inside):
        return f"<|plamo:begin_tool_{part}:plamo|>{inside}<|plamo:end_tool_{part}:plamo|>"

    texts = []
    for name, arguments in calls:
        written = f"<|plamo:constrain|>json<|plamo:msg|>{json.dumps(arguments)}"
        texts.append(between("request", between("name", name) + between("arguments", written)))
    return between("requests", "".join(texts))


def kimi_k3(*calls):
    texts = []
    for number, (name, arguments) in enumerate(calls):
        inner = "".join(
            f'<|open|>argument key="{key}" type="{"string" if isinstance(value, str) else "number"}"'
            f"<|sep|>{value}<|close|>argument<|sep|>"
            for key, value in arguments.items()
        )
        texts.append(
            f'<|open|>call tool="{name}" index="{number + 1}"<|sep|>{inner}<|close|>call<|sep|>'
        )
    return f"<|open|>tools<|sep|>{''.join(texts)}<|close|>tools<|sep|>"


def minimax_m3(*calls):
    texts = []
    for name, arguments in calls:
        inner = tagged(arguments, "<{}>", "</{}>")
        texts.append(f'<invoke name="{name}">{inner}</invoke>\n')
    text = f"<tool_call>\n{''.join(texts)}</tool_call>"
    return text.replace("<", "]<]minimax[>[<")


def apertus(*calls):
    inside = json.dumps([{name: arguments} for name, arguments in calls])
    return f"<|tools_prefix|>{inside}<|tools_suffix|>"


def python(call):
    return f"{call[0]}({', '.join(f'{name}={value!r}' for name, value in call[1].items())})"


def lfm2(*calls):
    return f"<|tool_call_start|>[{', '.join(map(python, calls))}]<|tool_call_end|>"


def olmo3(*calls):
    inside = "\n".join(map(python, calls))
    return f"<function_calls>\n{inside}\n</function_calls>"


def react(action, written, observation, as_text=json.dumps):
    return lambda *calls: (
        "\n".join(f"{action}: {name}\n{written}: {as_text(args)}" for name, args in calls)
        + f"\n{observation}:"
    )


def glm_4(*calls):
    return "<|assistant|>".join(f"{name}\n{json.dumps(args)}" for name, args in calls)


def deepseek_v3(*calls):
    texts = (
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{json.dumps(args)}\n```<｜tool▁call▁end｜>"
        for name, args in calls
    )
    return f"<｜tool▁calls▁begin｜>{chr(10).join(texts)}<｜tool▁calls▁end｜>"


def kimi_k2(*calls):
    return "".join(
        f"<|tool_call_begin|>functions.{name}:{number}<|tool_call_argument_begin|>"
        f"{json.dumps(args)}<|tool_call_end|>"
        for number, (name, args) in enumerate(calls)
    )


def mistral(call_id=""):
    return lambda *calls: "".join(
        f"[TOOL_CALLS]{name}{call_id}[ARGS]{json.dumps(args)}" for name, args in calls
    )


def gemma(text='<|"|>', start="<|tool_call>", end="<tool_call|>"):
    def written(*calls):
        texts = []
        for name, arguments in calls:
            values = []
            for key, value in arguments.items():
                values.append(
                    f"{key}:{text}{value}{text}" if isinstance(value, str) else f"{key}:{value}"
                )
            texts.append(f"{start}call:{name}{{{','.join(values)}}}{end}")
        return "".join(texts)

    return written


# What TRL and most servers leave out of a completion.
SPECIAL = re.compile(
    r"<\|[^<>|]+\|>|<｜[^<>]+?｜>|</?minimax:tool_call>|\[(?:TOOL_CALLS|ARGS|CALL_ID)\]"
    r"|</?(?:start|end)_function_call>|<escape>|<\|tool_call>|<tool_call\|>|<\|\"\|>"
)


def without_tokens(form):
    return lambda *calls: SPECIAL.sub("", form(*calls))


FORMS = {
    "gpt-oss": gpt_oss,
    "gpt-oss, the recipient first": gpt_oss_recipient_first,
    "gpt-oss without special tokens": gpt_oss_without_tokens,
    "Seed-OSS": functions_in("seed:tool_call"),
    "LongCat": each_between("<longcat_tool_call>", "</longcat_tool_call>"),
    "InternLM": each_between(
        "<|action_start|><|plugin|>\n", "<|action_end|>", arguments="parameters"
    ),
    "MiniMax M1": lambda *calls: f"<tool_calls>\n{each_between('', '')(*calls)}\n</tool_calls>",
    "Jamba, Hunyuan A13B": listed_between("<tool_calls>", "</tool_calls>"),
    "Hunyuan": lambda *calls: (
        f"<tool_calls>\n{each_between('<tool_call>', '</tool_call>')(*calls)}\n</tool_calls>"
    ),
    "Hunyuan 3": pairs(behind_name="<tool_sep>", around="tool_calls"),
    "Hunyuan 3, open source": pairs(
        "arg_key:opensource",
        "arg_value:opensource",
        "tool_call:opensource",
        "<tool_sep:opensource>",
        "tool_calls:opensource",
    ),
    "Xing 4": pairs("param_key", "param_value"),
    "K2 Horizon": pairs("ifm|arg_key", "ifm|arg_value", "ifm|tool_call", around="ifm|tool_calls"),
    "K2 Horizon, with types": ifm_typed,
    "K2 Horizon, in JSON": each_between("<ifm|tool_call>", "</ifm|tool_call>"),
    "DeepSeek V4.1": deepseek_v41,
    "MiniMax M3": minimax_m3,
    "dots": elements(before="<dots_function_call>\n", behind="</dots_function_call>"),
    "MiniCPM5": elements("function", "param"),
    "MuseGlimmer": muse,
    "Step 3": step3,
    "PLaMo 3": plamo3,
    "Kimi K3": kimi_k3,
    "Command A": listed_between("<|START_ACTION|>", "<|END_ACTION|>", "tool_name", "parameters"),
    "Apertus": apertus,
    "Inkling": each_between(
        "<|message_model|><|content_invoke_tool_json|>", "<|end_message|>", arguments="args"
    ),
    "GigaChat 3": each_between("<|function_call|>", ""),
    "GigaChat 3, in words": each_between("function call<|role_sep|>\n", ""),
    "Granite 20B": each_between("<function_call> ", ""),
    "Granite 3.1": listed_between("<tool_call>", ""),
    "Phi-4-mini": listed_between("functools", ""),
    "LFM2": lfm2,
    "OLMo 3": olmo3,
    "ReAct": react("Action", "Action Input", "Observation"),
    "ReAct, as ms-swift writes it": react("Action", "Action Input", "Observation", str),
    "Qwen's agents": react("✿FUNCTION✿", "✿ARGS✿", "✿RESULT✿"),
    "Anthropic": elements(before="<function_calls>\n", behind="</function_calls>"),
    "xLAM": listed_between('{"tool_calls": ', "}"),
    "xLAM with a thought": listed_between('{"thought": "I look it up.", "tool_calls": ', "}"),
    "GLM-4": glm_4,
    # Decoded without special tokens
    "gpt-oss, the recipient first, without tokens": without_tokens(gpt_oss_recipient_first),
    "MuseGlimmer without tokens": without_tokens(muse),
    "Step 3 without tokens": without_tokens(step3),
    "GigaChat 3 in words, without tokens": each_between("function call\n", "\n"),
    "DeepSeek V4 without tokens": elements(before="<tool_calls>\n", behind="</tool_calls>"),
    "MiniMax M2 without tokens": elements(),
    "DeepSeek V3 without tokens": without_tokens(deepseek_v3),
    "Kimi K2 without tokens": without_tokens(kimi_k2),
    "Kimi K3 without tokens": without_tokens(kimi_k3),
    "Mistral without tokens": without_tokens(mistral()),
    "Mistral without tokens, with ids": without_tokens(mistral("[CALL_ID]VvvODy9mT")),
    "PLaMo 3 without tokens": without_tokens(plamo3),
    "GLM-4 without tokens": without_tokens(glm_4),
    "Gemma 4 without tokens": without_tokens(gemma()),
    "FunctionGemma without tokens": without_tokens(
        gemma("<escape>", "<start_function_call>", "<end_function_call>")
    ),
    "Apertus without tokens": without_tokens(apertus),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_right_calls_are_paid_in_every_form_and_no_others(form):
    assert graded(form(BONN), BONN) == 1.0
    assert graded(form(BONN, CLEAR), CLEAR, BONN) == 1.0
    assert graded(f"<think>{form(ULM)}</think>\n\n{form(BONN)}", BONN) == 1.0
    right = form(BONN)
    for text in (
        form(ULM),
        form(BONN, ULM),
        form(BONN, BONN),
        f"{right}{right}",
        f"{right}\n{form(ULM)}",
        f"{right} or {as_json(ULM)}",
        f"{as_json(ULM)} or {right}",
        f"<tool_call>{as_json(ULM)}</tool_call>{right}",
        f"{form(ULM)}<tool_call>{as_json(BONN)}</tool_call>",
        f"{right}<tool_call>{as_json(ULM)}",
        right.replace("get_weather", "get_time"),
        right.replace("days", "city"),
        right.replace("3", ""),
        right[: right.index("Bonn") + 3],
        right[: right.index("3")],
        f"<think>{right}</think>No tool fits.",
    ):
        for around in (False, True):
            assert graded(text, BONN, text_around=around) == 0.0, text
    assert graded(f"{right} is wrong", BONN) == 0.0


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_call_in_any_form_is_needless_where_none_is_right(form):
    assert graded(form(BONN)) == 0.0
    assert graded(f"<think>{form(BONN)}</think>No tool fits.") == 1.0


# A call that is left without its mark has to stand alone.
UNMARKED = (
    *(
        "xLAM",
        "xLAM with a thought",
        "GLM-4",
        "DeepSeek V3 without tokens",
        "Kimi K2 without tokens",
    ),
    *("Mistral without tokens", "Mistral without tokens, with ids", "PLaMo 3 without tokens"),
    *("GLM-4 without tokens", "Gemma 4 without tokens", "FunctionGemma without tokens"),
    "Apertus without tokens",
)
MARKED = {name: form for name, form in FORMS.items() if name not in UNMARKED}


@pytest.mark.parametrize("form", MARKED.values(), ids=MARKED)
def test_a_call_with_a_mark_may_be_explained_before_it(form):
    assert graded(f"I look it up.\n{form(BONN)}", BONN) == 1.0
    assert graded(f"I look it up.\n{form(BONN, CLEAR)}", BONN, CLEAR) == 1.0


ANALYSIS = "<|channel|>analysis<|message|>I {}.<|end|><|start|>assistant"
QUOTED = "could call to=functions.get_weather"


@pytest.mark.parametrize(
    ("text", "golds", "reward"),
    [
        (ANALYSIS.format("add") + gpt_oss(BONN), [BONN], 1.0),
        (ANALYSIS.format(QUOTED) + gpt_oss(BONN), [BONN], 1.0),
        ("analysisI look it up." + gpt_oss_without_tokens(BONN), [BONN], 1.0),
        # a preamble for the user
        (
            ANALYSIS.format("add")
            + "<|channel|>commentary<|message|>I look it up.<|end|><|start|>assistant"
            + gpt_oss(BONN),
            [BONN],
            1.0,
        ),
        # what is said behind a call, and a call behind which nothing fits any more
        (gpt_oss(BONN) + "<|start|>assistant<|channel|>final<|message|>Fine.", [BONN], 0.0),
        (gpt_oss(BONN) + "<|start|>assistant<|channel|>final<|message|>No tool fits.", [], 0.0),
        # the thinking alone
        (ANALYSIS.format(QUOTED) + "<|channel|>final<|message|>No tool fits.", [], 1.0),
        (f"<|channel|>analysis<|message|>I write {gpt_oss(BONN)}", [BONN], 0.0),
        (ANALYSIS.format("do not know") + "<|channel|>final<|message|>It is 7.", [BONN], 0.0),
    ],
)
def test_gpt_oss_calls_without_a_final_channel(text, golds, reward):
    assert graded(text, *golds) == reward


@pytest.mark.parametrize("name", ["sentiment_analysis", "add_commentary", "to_json", "function"])
def test_a_name_may_end_like_what_stands_behind_names(name):
    tools = json.dumps([{"name": name, "parameters": {}}, {"name": "add_", "parameters": {}}])
    columns = {"functions": [tools], "calls": [json.dumps([{"name": name, "arguments": {}}])]}
    for form in FORMS.values():
        assert REWARDS["tool_call"]()([form((name, {}))], **columns) == [1.0], form((name, {}))


def test_texts_of_kimi_k3_may_hold_its_words_where_its_tokens_are_gone():
    for city in ("an argument", "call", "argument, call tools", "\ntools", " "):
        call = ("get_weather", {"city": city, "days": 3})
        assert graded(without_tokens(kimi_k3)(call), call) == 1.0
        assert graded(without_tokens(kimi_k3)(call), BONN) == 0.0


def test_gemmas_texts_may_hold_commas_where_their_marks_are_gone():
    call = ("get_weather", {"city": "Bonn, or: Ulm}", "more": {"a": [1, "x"]}, "days": 3})
    text = "call:get_weather{city:Bonn, or: Ulm},more:{a:[1,x]},days:3}"
    assert graded(text, call) == 1.0
    for wrong in (
        text.replace("days:3", "days:3,days:3"),
        text.replace("days:3", "days:3 or 4"),
        text.replace("days:3", "days:3]"),
        text.replace("{city", "{x,city"),
        text.removesuffix("}"),
    ):
        assert graded(wrong, call) == 0.0


def test_a_mark_in_an_argument_is_a_text():
    """An earlier form's mark does not make it the form of the call."""
    call = ("get_weather", {"city": "<|tool_call|> ✿ARGS✿ <function name=", "days": 3})
    assert graded(f"<tool_call>{as_json(call)}</tool_call>", call) == 1.0


def test_minimax_m3_nests_objects_and_lists():
    more = {"a": [1, {"b": "<x>"}], "c": {"item": True}}
    call = ("get_weather", {"city": "B", "more": more})
    text = (
        "<tool_call><invoke name='get_weather'><city>B</city><more><a><item>1</item><item><b>"
        "{}</b></item></a><c><item>true</item></c></more></invoke></tool_call>"
    ).replace("'", '"')
    text = text.replace("<", "]<]minimax[>[<").format("<x>")
    # In a schema that says nothing, an element `item` alone is a list.
    listed = ("get_weather", {"city": "B", "more": {**more, "c": [True]}})
    assert graded(text, listed) == 1.0
    assert graded(text, call) == 0.0
    for wrong in (
        text.replace("]<]minimax[>[</more>", ""),
        text.replace("]<]minimax[>[</more>", "]<]minimax[>[</city>"),
        text.replace("]<]minimax[>[<c>", "]<]minimax[>[<a>2]<]minimax[>[</a>]<]minimax[>[<c>"),
        text.replace("]<]minimax[>[<more>", "or Ulm]<]minimax[>[<more>"),
    ):
        assert graded(wrong, listed) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        " to=functions.f" * 3000,
        " to=functions.f<|message|>" + "{" * 45_000,
        "\nAction Input:" * 3500,
        "Action: f\nAction Input: " + "{" * 45_000,
        ']<]minimax[>[<invoke name="f">' + "]<]minimax[>[<a>" * 2500 + "]<]minimax[>[</invoke>",
        '<|open|>call tool="f"<|sep|>' + "<|open|>argument" * 2500,
        '<atem:invoke name="f">' + " to=a<|message|>" * 3000,
        "<tool_calls>" * 4000,
        "<ifm|tool_call>f" + "<ifm|arg_key>a</ifm|arg_key>" * 1500 + "</ifm|tool_call>",
        "<|plamo:begin_tool_name:plamo|>" * 1500,
        "<function_calls>" + "f(" * 20_000,
        "✿FUNCTION✿:" * 4000 + "✿ARGS✿",
        "get_weather\n" + "{" * 45_000,
        "<|channel|>analysis<|message|>" * 1500 + " to=functions.f",
    ],
)
def test_no_text_takes_long(text):
    start = time.process_time()
    assert graded(text, BONN, text_around=True) == 0.0
    assert time.process_time() - start < 1
