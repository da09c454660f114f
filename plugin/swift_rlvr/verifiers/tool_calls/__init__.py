"""Calls of tools: read in the ways in which models write them, and compared with the right ones.

Read are Hermes's and Qwen's ``<tool_call>`` with JSON, Qwen3-Coder's with ``<function=...>``, GLM's
with ``<arg_key>``, Gemma's ``call:name{...}``, DeepSeek's, between tokens and in DSML, Kimi's,
MiniMax's ``<invoke name="...">``, ``<|tool_call|>`` of Phi-4 and Granite, Mistral's ``[TOOL_CALLS]``
(a reader each in `formats`), Llama's JSON with ``parameters``, a list or objects of JSON alone
(`json_calls`), and Python calls, which are parsed and never evaluated (`python_calls`).

`reading.calls_in` says which calls a text makes, `rows` what the tools and the right calls of a row are,
and `comparison.Comparer` which calls are right.
"""

from swift_rlvr.verifiers.tool_calls.calls import MOST_CHARS, BadCall, Call, GoldCall, Tool
from swift_rlvr.verifiers.tool_calls.comparison import Comparer
from swift_rlvr.verifiers.tool_calls.reading import calls_in, has_call
from swift_rlvr.verifiers.tool_calls.rows import doubts, read_golds, read_tools
from swift_rlvr.verifiers.tool_calls.writing import in_hermes, with_calls

__all__ = [
    "MOST_CHARS",
    "BadCall",
    "Call",
    "Comparer",
    "GoldCall",
    "Tool",
    "calls_in",
    "doubts",
    "has_call",
    "in_hermes",
    "read_golds",
    "read_tools",
    "with_calls",
]
