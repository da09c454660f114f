"""Calls as ms-swift's agent templates write them into a conversation: the reward reads them all."""

import json

import pytest
from swift.agent_template import agent_template_map

from swift_rlvr.rewards import REWARDS

TOOLS = [
    {"name": "find", "parameters": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    {"name": "add", "parameters": {"a": {"type": "number"}, "b": {"type": "number"}}},
]
CALLS = [
    {"name": "find", "arguments": {"city": "Bonn", "days": 3}},
    {"name": "add", "arguments": {"a": 1, "b": 2.5}},
]


@pytest.mark.parametrize("template", agent_template_map.values(), ids=agent_template_map)
def test_the_reward_reads_the_calls_of_an_agent_template(template):
    for calls in (CALLS, CALLS[:1]):
        turns = [{"role": "tool_call", "content": json.dumps(call)} for call in calls]
        text = template()._format_tool_calls(turns)
        row = {"functions": [json.dumps(TOOLS)], "calls": [json.dumps(calls)]}
        assert REWARDS["tool_call"]()([text], **row) == [1.0], text
        wrong = text.replace("Bonn", "Ulm")
        assert REWARDS["tool_call"]()([wrong], **row) == [0.0], wrong
